//! The scheduler of a cluster, with the functions of coremix registered.

mod process;

use clap::Parser;
use coremix_cluster::{SchedulerOptions, run_scheduler};

fn main() -> std::process::ExitCode {
    process::run(
        "coremix-scheduler",
        run_scheduler(SchedulerOptions::parse()),
    )
}
