//! What every stage of the pipeline has in common.

use crate::error::Result;

/// A stage of the pipeline: a value with knobs, checked once when the builder builds.
pub trait Stage {
    /// Checks the knobs, knowing the number of clusters.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) naming the knob and the rule.
    fn check(&self, clusters: usize) -> Result<()>;
}
