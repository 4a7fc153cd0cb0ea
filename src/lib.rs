//! Clustering and mixture models at scale.
#![forbid(unsafe_code)]

pub mod algorithms;
mod block;
mod clusterer;
pub mod coreset;
pub mod data;
pub mod datasets;
pub mod e_step;
mod em;
mod error;
mod float;
mod kernels;
pub mod m_step;
pub mod metrics;
mod mixture;
mod parallel;
mod posterior;
mod rng;
mod search;
pub mod seed;
mod stage;

pub use block::Block;
pub use clusterer::{Builder, Clusterer, Fit};
pub use em::{Evaluations, PhaseReport, Progress, Report, Stop, Timings};
pub use error::{Error, Result};
pub use float::{Element, Float};
pub use mixture::{Mixture, Score};
pub use posterior::{Likelihood, LogJoint};
pub use rng::Rng;
pub use stage::Stage;

/// Everything a user of the crate names: the builder, data, every stage, the model's trait.
///
/// Two stages are called `Uniform`; here they are `UniformCoreset` and `UniformSeeder`.
pub mod prelude {
    pub use crate::clusterer::{Clusterer, Fit};
    pub use crate::coreset::{Full, Lightweight, Uniform as UniformCoreset};
    pub use crate::data::Dense;
    pub use crate::e_step::{Exhaustive, Lazy, Neighborhood, Start};
    pub use crate::em::{Progress, Report, Stop};
    pub use crate::error::{Error, Result};
    pub use crate::m_step::SharedIsotropic;
    pub use crate::mixture::Mixture;
    pub use crate::seed::{AfkMc2, Given, KMeansPlusPlus, Uniform as UniformSeeder};
}
