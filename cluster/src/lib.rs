#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

/// A chapter of the guide: its Rust is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/src/bigger-than-one-machine.md")]
struct Guide;

mod checkpoint;
#[cfg(feature = "ballista")]
mod cluster;
mod coreset;
mod error;
mod fit;
mod functions;
mod job;
mod model;
mod partial;
mod rows;
mod stores;
mod summary;
mod table;
mod task;

#[cfg(feature = "ballista")]
pub use cluster::{
    Connection, ExecutorOptions, SchedulerOptions, connect, run_executor, run_scheduler,
};
pub use coreset::Coreset;
pub use error::{Error, Result};
pub use fit::{Fitted, Progress};
pub use job::{Job, Score, Support};
pub use model::{Model, Precision};
pub use stores::Stores;
pub use summary::Summary;

/// The version of this crate, which the names of its functions carry.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Registers the functions of this crate: for schedulers and executors of your own, in place of the two binaries.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// let mut context = SessionContext::new();
/// coremix_cluster::register(&mut context)?;
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// If the registry takes no functions.
pub fn register(
    registry: &mut dyn datafusion::execution::FunctionRegistry,
) -> datafusion::common::Result<()> {
    functions::Functions::new().register(registry)
}

/// The largest message of a session, if its plans go to a cluster.
#[cfg(feature = "ballista")]
use cluster::message_limit;

/// Plans stay in the process: there are no messages.
#[cfg(not(feature = "ballista"))]
fn message_limit(_: &datafusion::execution::SessionState) -> Option<usize> {
    None
}
