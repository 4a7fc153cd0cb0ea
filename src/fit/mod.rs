//! The builder, and the pipeline it builds: coreset, seeds, restarts, and the phases of EM.

mod begin;
mod begun;
mod builder;
mod clusterer;
mod course;
mod estimator;
mod means_of;
mod phase;
mod result;
mod rows;
mod run;
mod spent;
mod warm;

pub(crate) use begin::{Begin, Beginning};
pub use builder::{Builder, Clusterer};
pub use estimator::{BoxedObserver, Estimator};
pub use means_of::MeansOf;
pub use phase::{Columns, Phase, Shape};
pub use result::Fit;
pub(crate) use warm::WarmStart;
