//! The observer: one closure that sees a fit from the coreset to the last iteration, and can stop it.

use super::{Joint, PhaseReport};
use crate::data::Rows;
use crate::mixture::Mixture;
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What an observer is shown. Times count from the start of the stage, evaluations within it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a, M: ?Sized> {
    /// A coreset is drawn (once per fit, and once more if there is a larger one).
    #[non_exhaustive]
    Coreset {
        /// Its rows.
        rows: usize,
        /// Sum of their weights.
        weight: f64,
        /// Distance evaluations.
        evaluations: u64,
        /// Time taken.
        elapsed: Duration,
    },
    /// The seeds of a restart, or of one of its [starts](crate::Phase::starts), are chosen.
    #[non_exhaustive]
    Seeded {
        /// Which restart, from 0.
        restart: usize,
        /// Which of its starts, from 0.
        start: usize,
        /// Distance evaluations.
        evaluations: u64,
        /// Time taken.
        elapsed: Duration,
    },
    /// A search is done: the model, and the free energy of its supports. Phases of restarts and starts that are not kept
    /// are seen as well.
    #[non_exhaustive]
    Iteration {
        /// Which restart, from 0.
        restart: usize,
        /// Which phase of it, from 0.
        phase: usize,
        /// Rows of the phase.
        rows: usize,
        /// M-steps so far.
        iteration: usize,
        /// Most M-steps of the phase.
        limit: usize,
        /// Free energy under the current model.
        free_energy: f64,
        /// Distance evaluations of the searches of this phase so far.
        evaluations: u64,
        /// Time since the phase began.
        elapsed: Duration,
        /// The current model.
        model: &'a M,
    },
}

/// Progress with a model of hidden type.
pub(crate) type Event<'a> = Progress<'a, dyn Any>;

impl<'a, M: ?Sized> Progress<'a, M> {
    /// The same with another view of the model.
    fn with<N: ?Sized>(self, view: impl FnOnce(&'a M) -> &'a N) -> Progress<'a, N> {
        match self {
            Progress::Coreset {
                rows,
                weight,
                evaluations,
                elapsed,
            } => Progress::Coreset {
                rows,
                weight,
                evaluations,
                elapsed,
            },
            Progress::Seeded {
                restart,
                start,
                evaluations,
                elapsed,
            } => Progress::Seeded {
                restart,
                start,
                evaluations,
                elapsed,
            },
            Progress::Iteration {
                restart,
                phase,
                rows,
                iteration,
                limit,
                free_energy,
                evaluations,
                elapsed,
                model,
            } => Progress::Iteration {
                restart,
                phase,
                rows,
                iteration,
                limit,
                free_energy,
                evaluations,
                elapsed,
                model: view(model),
            },
        }
    }
}

impl<'a> Event<'a> {
    /// The same with a model of its own type.
    pub(crate) fn of<M: 'static>(self) -> Progress<'a, M> {
        self.with(|model| model.downcast_ref().expect("a model of the fit"))
    }
}

impl<'a, M: 'static> Progress<'a, M> {
    /// The same with a model of any type.
    pub(crate) fn erased<R: Rows>(self) -> Progress<'a, dyn Mixture<R>>
    where
        M: Mixture<R>,
    {
        self.with(|model| model as &dyn Mixture<R>)
    }
}

/// The user's closure, erased, and whether it has asked to stop.
pub(crate) struct Watch<'a> {
    closure: Option<Closure<'a>>,
    flow: ControlFlow<()>,
    /// Set where what follows cannot count: the data broke its rules.
    fault: Option<Arc<AtomicBool>>,
}

type Closure<'a> = &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>;

impl<'a> Watch<'a> {
    pub(crate) fn new(closure: Option<Closure<'a>>) -> Self {
        Self {
            closure,
            flow: ControlFlow::Continue(()),
            fault: None,
        }
    }

    /// Stops as soon as `fault` is set.
    pub(crate) fn stop_at(&mut self, fault: Arc<AtomicBool>) {
        self.fault = Some(fault);
    }

    /// Shows progress. Once stopped it stays stopped, and the closure is called no more.
    pub(crate) fn see(&mut self, progress: Event<'_>) {
        if let (ControlFlow::Continue(()), Some(closure)) = (self.flow, &mut self.closure) {
            self.flow = closure(progress);
        }
    }

    /// Shows a search. Whether to stop.
    pub(crate) fn iteration<R: Rows>(
        &mut self,
        joint: &mut dyn Joint<R>,
        report: &PhaseReport,
        limit: usize,
    ) -> bool {
        // Taking a model out of a subspace is worth it only if there is an observer.
        if self.closure.is_some() && !self.stopped() {
            self.see(Progress::Iteration {
                restart: report.restart,
                phase: report.phase,
                rows: report.rows,
                iteration: report.iterations,
                limit,
                free_energy: report.free_energies[report.iterations],
                evaluations: report.evaluations,
                elapsed: report.elapsed,
                model: joint.shown(),
            });
        }
        self.stopped()
    }

    pub(crate) fn stopped(&self) -> bool {
        let fault = self.fault.as_ref();
        self.flow.is_break() || fault.is_some_and(|fault| fault.load(Ordering::Relaxed))
    }
}
