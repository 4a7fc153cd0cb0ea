//! Cancelling: a flag, or a time limit, that every stage of a fit checks.
//!
//! A fit is cancelled in the middle of a stage by unwinding to where the fit began, as an error that no stage has to hand
//! on. The flag of the fit is kept per thread: [`under`] sets it around work, [`check`] tests it, and [`catch`] is where
//! the unwinding ends. It never leaves the crate. In programs that abort on panics there is no unwinding: there a fit ends
//! after the next search.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

thread_local! {
    /// The flag of the fit that this thread works for.
    static CURRENT: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

/// What unwinds.
struct Cancelled;

/// The flag of the fit that this thread works for, for those that work for it.
pub(crate) fn current() -> Option<Cancel> {
    CURRENT.with_borrow(Clone::clone)
}

/// Works under a flag, or under none. A thread may be in the middle of other work: its flag is put back.
pub(crate) fn under<T>(flag: &Option<Cancel>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Cancel>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(flag.clone()));
    work()
}

/// Ends the work if its flag is set. For loops that take long: [`parallel`](crate::base::parallel) checks between its parts.
pub(crate) fn check() {
    let cancelled = CURRENT.with_borrow(|flag| flag.as_ref().is_some_and(Cancel::is_cancelled));
    if cfg!(panic = "unwind") && cancelled {
        // No panic: the hook is not called, and nothing is printed.
        resume_unwind(Box::new(Cancelled));
    }
}

/// What the work returns, or `None` if it was cancelled. A panic goes on.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What cancelled work leaves behind is dropped by the caller, or is a cache that is whole at any time.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Cancelled>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn parts_after_the_flag_are_left_out() {
        let cancel = Cancel::new();
        let done = AtomicUsize::new(0);
        let found = under(&Some(cancel.clone()), || {
            catch(|| {
                parallel::map_blocks(1_000_000, 1, |i, _| {
                    done.fetch_add(1, Ordering::Relaxed);
                    if i == 3 {
                        cancel.cancel();
                    }
                })
            })
        });
        assert!(found.is_none());
        assert!(done.into_inner() < 1_000_000);
        assert!(current().is_none());
    }

    #[test]
    fn work_under_no_flag_goes_on() {
        let cancel = Cancel::after(Duration::ZERO);
        let inner = under(&Some(cancel), || {
            catch(|| under(&None, || parallel::map(10, |i| i)))
        });
        assert_eq!(inner, Some((0..10).collect()));
    }

    #[test]
    fn panics_are_not_caught() {
        let quiet = || catch(|| resume_unwind(Box::new("other")));
        assert!(catch_unwind(quiet).is_err());
    }

    #[test]
    fn times_that_never_come() {
        assert!(!Cancel::after(Duration::MAX).is_cancelled());
        assert!(Cancel::after(Duration::ZERO).is_cancelled());
    }
}
