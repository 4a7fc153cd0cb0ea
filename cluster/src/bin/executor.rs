//! An executor of a cluster, with the functions of coremix registered.

mod process;

use clap::Parser;
use coremix_cluster::{ExecutorOptions, run_executor};

fn main() -> std::process::ExitCode {
    process::run("coremix-executor", run_executor(ExecutorOptions::parse()))
}
