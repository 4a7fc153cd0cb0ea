//! The builder, and the pipeline it builds: coreset, seeds, restarts, and the phases of EM.

mod builder;
mod estimator;
mod phase;
mod rows;
mod run;

pub use builder::{Builder, Clusterer, Fit};
pub use estimator::{BoxedMixture, BoxedObserver, Estimator};
pub use phase::{Columns, Phase, Shape};
pub(crate) use run::{Fitted, Run, run};
