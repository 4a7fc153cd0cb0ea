//! The cluster: Ballista's client, scheduler and executor with the functions of this crate registered.

use crate::functions::Functions;
use crate::stores::Stores;
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::ConfigProducer;
use ballista_core::config::BallistaConfig;
use ballista_core::error::BallistaError;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use clap::Parser;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// In MiB: the sums of 120,000 components of 128 columns.
const MESSAGE_LIMIT: u32 = 256;

/// How a client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The largest message in bytes. It must not be above that of the scheduler and the executors. Default 256 MiB.
    pub message_limit: u32,
    /// Into how many partitions a table is cut at most. Default 16.
    pub partitions: usize,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            message_limit: MESSAGE_LIMIT << 20,
            partitions: 16,
        }
    }
}

/// Settings of a scheduler: its command line, with these defaults.
///
/// There is no authentication: it belongs into a trusted network.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(
    name = "coremix-scheduler",
    version,
    about = "Schedules the passes of clustering jobs on its executors."
)]
pub struct SchedulerOptions {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:50050")]
    pub address: SocketAddr,
    /// Seconds without a sign of life after which an executor is lost, and its tasks are given to others.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub executor_timeout: u64,
    /// The largest message, in MiB.
    #[arg(long, default_value_t = MESSAGE_LIMIT, value_parser = clap::value_parser!(u32).range(1..2048))]
    pub message_limit: u32,
    /// The version in the names of the functions: for tests of what happens where versions differ.
    #[doc(hidden)]
    #[arg(long, hide = true, default_value = crate::VERSION)]
    pub functions_of: String,
}

/// Settings of an executor: its command line, with these defaults.
///
/// There is no authentication: it belongs into a trusted network.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(
    name = "coremix-executor",
    version,
    about = "Runs the passes of clustering jobs for a scheduler."
)]
pub struct ExecutorOptions {
    /// The host of the scheduler.
    #[arg(long, default_value = "localhost")]
    pub scheduler_host: String,
    /// The port of the scheduler.
    #[arg(long, default_value_t = 50050)]
    pub scheduler_port: u16,
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub bind_host: IpAddr,
    /// The host that the others reach it at, if it is not where the scheduler sees it.
    #[arg(long)]
    pub external_host: Option<String>,
    /// The port of its results.
    #[arg(long, default_value_t = 50051)]
    pub port: u16,
    /// The port of its tasks.
    #[arg(long, default_value_t = 50052)]
    pub grpc_port: u16,
    /// How many partitions it works on at a time; 0 stands for all cores.
    #[arg(long, default_value_t = 0)]
    pub cores: usize,
    /// The folder for what is passed between stages; by default a temporary one.
    #[arg(long)]
    pub work_dir: Option<PathBuf>,
    /// Seconds between signs of life.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    pub heartbeat: u64,
    /// The largest message, in MiB.
    #[arg(long, default_value_t = MESSAGE_LIMIT, value_parser = clap::value_parser!(u32).range(1..2048))]
    pub message_limit: u32,
    /// As [`SchedulerOptions::functions_of`].
    #[doc(hidden)]
    #[arg(long, hide = true, default_value = crate::VERSION)]
    pub functions_of: String,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// A session whose plans run on the cluster of the scheduler at `url`, such as `df://localhost:50050`.
///
/// ```no_run
/// use coremix_cluster::{Connection, connect};
/// use datafusion::prelude::ParquetReadOptions;
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = connect("df://localhost:50050", Connection::default()).await?;
/// let table = context.read_parquet("/shared/rows/", ParquetReadOptions::default()).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Connection`](crate::Error::Connection) and [`Error::Engine`](crate::Error::Engine).
pub async fn connect(url: &str, connection: Connection) -> crate::Result<SessionContext> {
    let config = config(connection.message_limit).with_target_partitions(connection.partitions);
    let state = state(config, Stores::new().runtime()?, crate::VERSION)?;
    let context = SessionContext::remote_with_state(url, state).await?;
    Ok(context)
}

/// Runs a scheduler until the process ends.
///
/// # Errors
/// If it cannot listen on its address.
pub async fn run_scheduler(options: SchedulerOptions) -> crate::Result<()> {
    let (limit, version) = (options.message_limit << 20, options.functions_of);
    let producer: ConfigProducer = Arc::new(move || config(limit));
    let scheduler = SchedulerConfig {
        bind_host: options.address.ip().to_string(),
        bind_port: options.address.port(),
        external_host: options.address.ip().to_string(),
        executor_timeout_seconds: options.executor_timeout,
        expire_dead_executor_interval_seconds: options.executor_timeout.div_ceil(4).max(1),
        no_executors_grace_period_seconds: options.executor_timeout,
        grpc_server_max_decoding_message_size: limit,
        grpc_server_max_encoding_message_size: limit,
        grpc_client_max_message_size: limit,
        override_config_producer: Some(producer),
        override_session_builder: Some(Arc::new(move |config| {
            state(config, Stores::new().runtime()?, &version)
        })),
        ..SchedulerConfig::default()
    };
    let run = async {
        let cluster = BallistaCluster::new_from_config(&scheduler).await?;
        start_server(cluster, options.address, Arc::new(scheduler)).await
    };
    run.await.map_err(of_ballista)
}

/// Runs an executor until the process ends.
///
/// # Errors
/// If it cannot listen on its ports, or cannot reach the scheduler within 30 seconds.
pub async fn run_executor(options: ExecutorOptions) -> crate::Result<()> {
    let limit = options.message_limit << 20;
    let cores = match options.cores {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores,
    };
    let runtime = Stores::new().runtime()?;
    let known = state(config(limit), runtime, &options.functions_of)?;
    let executor = ExecutorProcessConfig {
        bind_host: options.bind_host.to_string(),
        external_host: options.external_host,
        port: options.port,
        grpc_port: options.grpc_port,
        scheduler_host: options.scheduler_host,
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        vcores: cores,
        work_dir: options.work_dir.map(|path| path.display().to_string()),
        executor_heartbeat_interval_seconds: options.heartbeat.max(1),
        grpc_max_decoding_message_size: limit,
        grpc_max_encoding_message_size: limit,
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&known))),
        override_config_producer: Some(Arc::new(move || config(limit))),
        override_runtime_producer: Some(Arc::new(|_: &SessionConfig| Stores::new().runtime())),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(executor))
        .await
        .map_err(of_ballista)
}

fn config(message_limit: u32) -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_ballista_grpc_client_max_message_size(message_limit as usize)
}

/// A session with the functions of a version.
fn state(
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
    version: &str,
) -> datafusion::common::Result<SessionState> {
    let mut state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_scalar_functions(ballista_core::extension::ballista_scalar_functions())
        .with_aggregate_functions(ballista_core::extension::ballista_aggregate_functions())
        .with_window_functions(ballista_core::extension::ballista_window_functions())
        .build();
    Functions::of_version(version).register(&mut state)?;
    Ok(state)
}

/// The largest message of a session, if its plans go to a cluster.
pub(crate) fn message_limit(state: &SessionState) -> Option<usize> {
    let extensions = &state.config().options().extensions;
    let ballista = extensions.get::<BallistaConfig>();
    ballista.map(|config| config.grpc_client_max_message_size())
}

fn of_ballista(error: BallistaError) -> crate::Error {
    datafusion::error::DataFusionError::External(Box::new(error)).into()
}
