//! Cancelling: a flag, or a time limit. [`Guarded`](crate::data::Guarded) data looks at it for every block of rows, and linear
//! algebra between its pieces ([`Watch`]), so that every stage of a fit ends with [`Error::Cancelled`] soon after it is set.

use super::error::{Error, Result, ensure};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Ends fits from outside: from another thread, from a signal handler, or when a time is up.
///
/// A clone is the same flag. Every stage checks it between blocks of rows, and between the pieces of what it computes with
/// covariance matrices, so a fit ends within a small part of a second.
/// It returns what its last complete search found, with [`Stop::Cancelled`](crate::Stop::Cancelled) in the report, or
/// [`Error::Cancelled`](crate::Error::Cancelled) where there was none yet.
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
/// let data = Dense::new(&x)?;
/// let cancel = Cancel::default();
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
    asked_of: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Tests count how often a flag is looked at, and have it set after some number of times.
    #[cfg(test)]
    asked: std::sync::atomic::AtomicUsize,
    #[cfg(test)]
    patience: Option<usize>,
}

impl Cancel {
    /// A flag that is set when this time has passed: the fit ends with what it has found by then.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Arc::new(Flag {
            // A time that no clock can tell never comes.
            deadline: Instant::now().checked_add(time),
            ..Flag::default()
        }))
    }

    /// A flag that is set, for good, once this closure says so: several threads ask it for every block of rows, so it should be fast.
    ///
    /// ```
    /// use coremix::prelude::*;
    /// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// # let session = Arc::new(AtomicBool::new(true)); // of a query, say
    /// let cancel = Cancel::when(move || session.load(Ordering::Relaxed));
    /// let data = Dense::of_rows(vec![1.0, 2.0, 9.0], 1)?;
    /// assert_eq!(algorithms::k_means(2).cancel(&cancel).fit(&data).unwrap_err(), Error::Cancelled);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn when(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Flag {
            asked_of: Some(Box::new(is_cancelled)),
            ..Flag::default()
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
        if self.0.set.load(Ordering::Relaxed) || self.0.deadline.is_some_and(late) {
            return true;
        }
        let is_asked_to = self.0.asked_of.as_ref().is_some_and(|ask| ask());
        if is_asked_to {
            // Every thread must hear of it, whatever is said later.
            self.cancel();
        }
        is_asked_to
    }

    pub(crate) fn check(&self) -> Result<()> {
        #[cfg(test)]
        {
            let before = self.0.asked.fetch_add(1, Ordering::Relaxed);
            if self.0.patience.is_some_and(|patience| before >= patience) {
                self.cancel();
            }
        }
        ensure(!self.is_cancelled(), || Error::Cancelled)
    }
}

#[cfg(test)]
impl Cancel {
    /// One that is set when it has been asked so often.
    pub(crate) fn after_checks(patience: usize) -> Self {
        Self(Arc::new(Flag {
            patience: Some(patience),
            ..Flag::default()
        }))
    }

    pub(crate) fn checks(&self) -> usize {
        self.0.asked.load(Ordering::Relaxed)
    }
}

/// Long work asks between its pieces whether to go on: the flag of a fit, or nobody.
pub(crate) type Watch<'a> = Option<&'a Cancel>;

/// An error if the work must end.
pub(crate) fn check(watch: Watch<'_>) -> Result<()> {
    watch.map_or(Ok(()), Cancel::check)
}

/// The result of work that nobody watches: only a flag ends it.
pub(crate) fn unwatched<T>(outcome: Result<T>) -> T {
    outcome.expect("nobody watches it")
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl PartialEq for Cancel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::m_step::MStep;
    use crate::prelude::*;
    use crate::testing::stepped::Stepped;
    use ndarray::Array2;

    /// An M-step ends with the next check of each thread, wherever the flag is set: also between the pieces of a single factor.
    fn ends_at_the_next_check<M: MStep<f64> + Clone>(family: &M) {
        const COLUMNS: usize = 70;
        let mut rng = crate::base::rng::Rng::from_seed(1);
        let low = rng.normals(6, COLUMNS);
        let noise = rng.normals(300, COLUMNS);
        // Some rows are of low rank, so one component has a variance that is raised.
        let x = Array2::from_shape_fn((300, COLUMNS), |(i, j)| match i % 2 {
            0 => low[[i % 6, j]],
            _ => 40.0 + noise[[i, j]],
        });
        let data = Dense::new(&x).unwrap();
        let update = |cancel: &Cancel| {
            let mut stepped = Stepped::new(family.clone(), &data, 2);
            stepped.update(Some(cancel))
        };
        let never = Cancel::default();
        update(&never).unwrap();
        let checks = never.checks();
        assert!(checks > COLUMNS / 8, "{family:?}: {checks} checks");
        for at in (0..checks).step_by(1 + checks / 40) {
            let cancel = Cancel::after_checks(at);
            assert_eq!(update(&cancel), Err(Error::Cancelled), "{family:?}");
            // Each component and pair of components asks once.
            let after = cancel.checks() - at;
            assert!(after <= 40, "{family:?}: {after} checks after the flag");
        }
    }

    #[test]
    fn m_steps_end_at_the_next_check() {
        ends_at_the_next_check(&Gaussian::new(Covariance::Full));
        ends_at_the_next_check(&DirichletProcess::new(1.0));
    }

    #[test]
    fn times_that_never_come() {
        assert!(!Cancel::after(Duration::MAX).is_cancelled());
        assert!(Cancel::after(Duration::ZERO).is_cancelled());
    }
}
