//! What every stage of the pipeline has in common.

use crate::error::Result;

/// A stage of the pipeline: a value with settings, checked once when the builder builds.
pub trait Stage {
    /// Checks the settings, knowing the number of clusters.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) naming the setting and the rule.
    fn check(&self, _clusters: usize) -> Result<()> {
        Ok(())
    }
}

/// The name of a stage, as errors give it: that of its type, without its path and parameters.
pub(crate) fn name<T: ?Sized>() -> &'static str {
    let path = std::any::type_name::<T>();
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}
