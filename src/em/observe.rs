//! The observer: one closure that sees a fit from the coreset to the last iteration, and can stop it.

use std::ops::ControlFlow;
use std::time::Duration;

/// What an observer is shown. Times count from the start of the stage, evaluations within it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a, M> {
    /// The coreset is drawn (once per fit).
    #[non_exhaustive]
    Coreset {
        /// Rows EM will run on.
        rows: usize,
        /// Sum of their weights.
        weight: f64,
        /// Distance evaluations.
        evaluations: u64,
        /// Time taken.
        elapsed: Duration,
    },
    /// The seeds of a restart, or of one of its starts ([`Refine::starts`](crate::refine::Refine::starts)), are chosen.
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
        /// M-steps so far.
        iteration: usize,
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

/// The user's closure, erased, and whether it has asked to stop.
pub(crate) struct Observer<'a, M> {
    closure: Option<Closure<'a, M>>,
    flow: ControlFlow<()>,
}

type Closure<'a, M> = &'a mut dyn FnMut(&Progress<'_, M>) -> ControlFlow<()>;

impl<'a, M> Observer<'a, M> {
    pub(crate) fn new(closure: Closure<'a, M>) -> Self {
        Self {
            closure: Some(closure),
            flow: ControlFlow::Continue(()),
        }
    }

    /// Nobody looks.
    pub(crate) fn none() -> Self {
        Self {
            closure: None,
            flow: ControlFlow::Continue(()),
        }
    }

    /// Whether somebody looks: what is shown need not be up to date otherwise.
    pub(crate) fn looks(&self) -> bool {
        self.closure.is_some() && !self.stopped()
    }

    /// Shows progress. Once stopped it stays stopped, and the closure is called no more.
    pub(crate) fn see(&mut self, progress: Progress<'_, M>) -> ControlFlow<()> {
        if let (ControlFlow::Continue(()), Some(closure)) = (self.flow, &mut self.closure) {
            self.flow = closure(&progress);
        }
        self.flow
    }

    pub(crate) fn stopped(&self) -> bool {
        self.flow.is_break()
    }
}
