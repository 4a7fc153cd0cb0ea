//! Cancelling: a flag, or a time limit. [`Guarded`](crate::data::Guarded) data looks at it for every block of rows, so that
//! every stage of a fit ends with [`Error::Cancelled`] soon after it is set.

use super::error::{Error, Result, ensure};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Ends fits from outside: from another thread, from a signal handler, or when a time is up.
///
/// A clone is the same flag. Every stage checks it between blocks of rows, so a fit ends within a small part of a second.
/// It returns what its last complete search found, with [`Stop::Cancelled`](crate::Stop::Cancelled) in the report, or
/// [`Error::Cancelled`](crate::Error::Cancelled) where there was none yet.
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
/// let data = Dense::new(&x)?;
/// let cancel = Cancel::new();
/// let k_means = algorithms::k_means(6).cancel(&cancel).build()?;
/// assert_eq!(k_means.fit(&data)?.report.stop, Stop::Converged);
///
/// cancel.cancel(); // from any thread, at any time
/// assert_eq!(k_means.fit(&data).unwrap_err(), Error::Cancelled);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Flag>);

#[derive(Default)]
struct Flag {
    set: AtomicBool,
    deadline: Option<Instant>,
}

impl Cancel {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that is set when this time has passed from now on: the best that can be had in a given time.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Arc::new(Flag {
            set: AtomicBool::new(false),
            // A time that no clock can tell never comes.
            deadline: Instant::now().checked_add(time),
        }))
    }

    /// Sets the flag, for good.
    pub fn cancel(&self) {
        self.0.set.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let late = |deadline| Instant::now() >= deadline;
        self.0.set.load(Ordering::Relaxed) || self.0.deadline.is_some_and(late)
    }

    /// An error if it is set.
    pub(crate) fn check(&self) -> Result<()> {
        ensure(!self.is_cancelled(), || Error::Cancelled)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// The same flag.
impl PartialEq for Cancel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_never_come() {
        assert!(!Cancel::after(Duration::MAX).is_cancelled());
        assert!(Cancel::after(Duration::ZERO).is_cancelled());
    }
}
