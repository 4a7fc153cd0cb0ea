//! The scheduler of a cluster, with the functions of coremix registered.

mod process;

use clap::Parser;
use coremix_cluster::{SchedulerOptions, run_scheduler};
use std::net::SocketAddr;
use std::process::ExitCode;

/// Schedules the passes of clustering jobs on its executors.
///
/// There is no authentication: keep it in a trusted network.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:50050")]
    address: SocketAddr,
    /// Seconds without a sign of life after which an executor is lost.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    executor_timeout: u64,
    /// The largest message, in MiB.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..2048))]
    message_limit: u32,
    /// The version in the names of its functions, for tests.
    #[arg(long, hide = true, default_value = coremix_cluster::VERSION)]
    functions_of: String,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let scheduler = run_scheduler(SchedulerOptions {
        address: options.address,
        executor_timeout: options.executor_timeout,
        message_limit: options.message_limit << 20,
        functions_of: options.functions_of,
    });
    process::run("coremix-scheduler", scheduler)
}
