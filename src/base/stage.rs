//! The trait that all stages of the pipeline share.

use crate::base::error::Result;
use std::fmt::Debug;

/// A stage of the pipeline: a value with settings, checked once when the builder builds.
///
/// `Debug` prints them all: a [checkpoint](crate::Checkpoint) of a fit with stages that print otherwise is refused.
///
/// ```
/// use coremix::prelude::*;
/// use coremix::stage::Stage;
///
/// #[derive(Debug)]
/// struct Own {
///     random: usize,
/// }
///
/// impl Stage for Own {
///     fn check(&self, clusters: usize) -> Result<()> {
///         if self.random == 0 || self.random > clusters {
///             return Err(Error::Parameter {
///                 name: "random",
///                 value: self.random.to_string(),
///                 rule: "must be at least 1, and at most the number of clusters",
///             });
///         }
///         Ok(())
///     }
/// }
/// let error = Own { random: 7 }.check(5).unwrap_err();
/// assert!(error.to_string().starts_with("random = 7: must be at least 1"));
/// ```
#[diagnostic::on_unimplemented(
    note = "every stage derives `Debug` and is a `Stage`, most often with nothing to check: `impl Stage for Own {{}}`"
)]
pub trait Stage: Debug {
    /// Checks the settings, knowing the number of clusters.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) naming the setting and the rule.
    fn check(&self, _clusters: usize) -> Result<()> {
        Ok(())
    }

    /// Its name in errors: that of its type.
    #[doc(hidden)]
    fn name(&self) -> &'static str {
        name::<Self>()
    }
}

impl<T: Stage + ?Sized> Stage for Box<T> {
    fn check(&self, clusters: usize) -> Result<()> {
        (**self).check(clusters)
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
}

/// The name of a stage, as errors give it: that of its type, without its path and parameters.
pub(crate) fn name<T: ?Sized>() -> &'static str {
    let path = std::any::type_name::<T>();
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}
