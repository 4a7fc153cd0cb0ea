//! Generated data with known answers.

mod birch;

pub use birch::Birch;

use ndarray::{Array1, Array2};

/// Points with the truth about them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Labelled<F> {
    /// Points (n, d).
    pub points: Array2<F>,
    /// The cluster of each point (n).
    pub labels: Array1<u32>,
    /// The true centres (k, d).
    pub centres: Array2<F>,
}
