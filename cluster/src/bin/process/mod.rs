//! A process of the cluster: its log, its threads, its end.

use coremix_cluster::Result;
use std::process::ExitCode;

/// Runs it until it ends; an error is a line that begins with `name`.
pub(crate) fn run(name: &str, work: impl Future<Output = Result<()>>) -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).init();
    // Plans are walked by recursion.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(8 << 20)
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(work).map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
