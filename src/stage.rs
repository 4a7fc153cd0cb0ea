//! What every stage of the pipeline has in common.

use crate::error::Result;

/// A stage of the pipeline: a value with knobs, checked once when the builder builds.
///
/// The traits of the stages are public so that code generic over stages can name them. Their inner loops
/// work on parts of the crate that are not, so new stages are written inside the crate for now.
pub trait Stage {
    /// Checks the knobs, knowing the number of clusters.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) naming the knob and the rule.
    fn check(&self, clusters: usize) -> Result<()>;
}
