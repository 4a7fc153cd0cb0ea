//! An executor of a cluster, with the functions of coremix registered.

mod process;

use clap::Parser;
use coremix_cluster::{ExecutorOptions, run_executor};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the passes of clustering jobs for a scheduler.
///
/// There is no authentication: keep it in a trusted network.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// The host of the scheduler.
    #[arg(long, default_value = "localhost")]
    scheduler_host: String,
    /// The port of the scheduler.
    #[arg(long, default_value_t = 50050)]
    scheduler_port: u16,
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    bind_host: IpAddr,
    /// The host that the others reach it at, if it is not where the scheduler sees it.
    #[arg(long)]
    external_host: Option<String>,
    /// The port of its results.
    #[arg(long, default_value_t = 50051)]
    port: u16,
    /// The port of its tasks.
    #[arg(long, default_value_t = 50052)]
    grpc_port: u16,
    /// How many partitions it works on at a time; 0 stands for all cores.
    #[arg(long, default_value_t = 0)]
    cores: usize,
    /// The folder for what is passed between stages.
    #[arg(long)]
    work_dir: Option<PathBuf>,
    /// Seconds between signs of life.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat: u64,
    /// The largest message, in MiB.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..2048))]
    message_limit: u32,
    /// The version in the names of its functions, for tests.
    #[arg(long, hide = true, default_value = coremix_cluster::VERSION)]
    functions_of: String,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let executor = run_executor(ExecutorOptions {
        scheduler_host: options.scheduler_host,
        scheduler_port: options.scheduler_port,
        bind_host: options.bind_host,
        external_host: options.external_host,
        port: options.port,
        grpc_port: options.grpc_port,
        cores: options.cores,
        work_dir: options.work_dir,
        heartbeat: options.heartbeat,
        message_limit: options.message_limit << 20,
        functions_of: options.functions_of,
    });
    process::run("coremix-executor", executor)
}
