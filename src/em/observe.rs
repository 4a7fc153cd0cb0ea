//! The observer: one closure that sees a fit from the coreset to the last iteration, and can stop it.

use super::{Joint, Pass, PhaseReport, Saver, Stop, Supports};
use crate::base::cancel::{self, Cancel};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::em::trace;
use crate::model::Mixture;
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What an observer is shown. Times count from the start of the stage, evaluations within it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a, M: ?Sized> {
    /// A coreset is drawn (once per fit, and once for each larger one).
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
        /// Most M-steps of the phase. It often converges before.
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
    pub(crate) fn erased<F: Float>(self) -> Progress<'a, dyn Mixture<F>>
    where
        M: Mixture<F>,
    {
        self.with(|model| model as &dyn Mixture<F>)
    }
}

/// The user's closure, erased, and whether anything has asked to stop.
pub(crate) struct Watch<'a> {
    closure: Option<Observer<'a>>,
    flow: ControlFlow<()>,
    cancel: Option<Cancel>,
    /// What a fit that is cancelled returns, and where it is: the place of the rows, the phases behind it, all of them
    /// and those that ran.
    last_search: Option<LastSearch>,
    at: (usize, usize, Vec<PhaseReport>),
    /// Set when the data broke its rules: the result is discarded.
    fault: Option<Arc<AtomicBool>>,
    /// Writes checkpoints, if there are to be any.
    saver: Option<Saver>,
}

/// What the last complete search of a restart found, while the fit goes on.
pub(crate) struct LastSearch {
    /// In all coordinates.
    pub(crate) model: Box<dyn Any + Send>,
    pub(crate) supports: Supports,
    pub(crate) exact: bool,
    /// The place of its rows in the plan.
    pub(crate) place: usize,
    /// Phases of the plan behind it.
    pub(crate) reached: usize,
    /// The phases that ran, its own the last.
    pub(crate) phases: Vec<PhaseReport>,
}

impl LastSearch {
    pub(crate) fn standing(&self) -> (usize, f64) {
        standing(self.reached, &self.phases)
    }
}

/// How far a fit has come: free energies compare on the same rows alone, so the one that came further is better.
pub(crate) fn standing(reached: usize, phases: &[PhaseReport]) -> (usize, f64) {
    let last = phases.last().and_then(|p| p.free_energies.last());
    (reached, last.copied().unwrap_or(f64::NEG_INFINITY))
}

/// The user's closure.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>;

impl<'a> Watch<'a> {
    /// Stops where the closure or the flag says so, or as soon as there is a fault.
    pub(crate) fn new(
        closure: Option<Observer<'a>>,
        cancel: Option<Cancel>,
        fault: Option<Arc<AtomicBool>>,
    ) -> Self {
        Self {
            closure,
            flow: ControlFlow::Continue(()),
            cancel,
            last_search: None,
            at: (0, 0, Vec::new()),
            fault,
            saver: None,
        }
    }

    /// What makes others for restarts that run beside each other; `None` if there is an observer, or there are checkpoints:
    /// these see one restart after the other.
    pub(crate) fn beside(&self) -> Option<impl Fn() -> Watch<'static> + Sync + use<>> {
        let alone = self.closure.is_some() || self.saver.is_some();
        let (cancel, fault) = (self.cancel.clone(), self.fault.clone());
        (!alone).then_some(move || Watch::new(None, cancel.clone(), fault.clone()))
    }

    /// The same with checkpoints.
    pub(crate) fn with_checkpoints(self, saver: Option<Saver>) -> Self {
        Self { saver, ..self }
    }

    /// What writes checkpoints; nothing does once the fit is stopped: it would go on from where it was stopped as if it
    /// had ended there.
    pub(crate) fn saver(&mut self) -> Option<&mut Saver> {
        match self.stopped() {
            true => None,
            false => self.saver.as_mut(),
        }
    }

    /// What the fit is, if there are checkpoints.
    pub(crate) fn header(&self) -> Option<&str> {
        self.saver.as_ref().map(Saver::header)
    }

    /// Why the last checkpoint could not be written, if it could not.
    pub(crate) fn checkpoint_fault(&self) -> Option<String> {
        self.saver.as_ref().and_then(Saver::fault)
    }

    /// Writes a checkpoint before the next search, if it is due. An E-step whose state cannot be saved leaves it to the end
    /// of the phase.
    pub(crate) fn save<F: Float>(
        &mut self,
        pass: &mut dyn Pass<F>,
        report: &PhaseReport,
    ) -> Result<()> {
        let Some(saver) = self.saver() else {
            return Ok(());
        };
        if !saver.is_due() {
            return Ok(());
        }
        let stages = pass.joint().save().map_err(|fault| saver.error(fault))?;
        let Some(stages) = stages else {
            return Ok(());
        };
        let pass = &*pass;
        saver.write_phase(&|out| {
            report.write("phase ", out);
            stages.write(out);
            pass.save(out);
        })
    }

    /// A phase begins.
    pub(crate) fn begin(&mut self, place: usize, reached: usize, phases: &[PhaseReport]) {
        if self.cancel.is_some() {
            // As if the phase ended with its last search.
            self.at = (place, reached + 1, phases.to_vec());
        }
    }

    /// Keeps what a search has found, in case the fit is cancelled before the next one is done.
    pub(crate) fn keep<F: Float>(&mut self, pass: &mut dyn Pass<F>, report: &PhaseReport) {
        if self.cancel.is_some() {
            let (place, reached, ref phases) = self.at;
            let own = standing(reached, std::slice::from_ref(report));
            let better = |last: &LastSearch| {
                let same = last.phases.last().is_some_and(|p| p.began == report.began);
                !same && last.standing() > own
            };
            if self.last_search.as_ref().is_some_and(better) {
                // Another start was better.
                return;
            }
            self.last_search = Some(LastSearch {
                model: pass.joint().copy(),
                supports: pass.copy_of_supports(),
                exact: pass.is_exact(),
                place,
                reached,
                phases: phases.iter().chain([report]).cloned().collect(),
            });
        }
    }

    /// The last search, once.
    pub(crate) fn take_last_search(&mut self) -> Option<LastSearch> {
        self.last_search.take()
    }

    /// Shows progress. Once stopped it stays stopped, and the closure is called no more.
    pub(crate) fn see(&mut self, progress: Event<'_>) {
        trace::before(&progress);
        if let (ControlFlow::Continue(()), Some(closure)) = (self.flow, &mut self.closure) {
            // What the user does there is not part of the fit.
            self.flow = cancel::under(&None, || closure(progress));
        }
    }

    /// Shows a search. Whether to stop, and why.
    pub(crate) fn iteration<F: Float>(
        &mut self,
        joint: &mut dyn Joint<F>,
        report: &PhaseReport,
        limit: usize,
    ) -> Option<Stop> {
        trace::iteration(report);
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
        self.stop()
    }

    /// Why to stop, if anything asks for it.
    pub(crate) fn stop(&self) -> Option<Stop> {
        let fault = self.fault.as_ref();
        if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return Some(Stop::Cancelled);
        }
        let stopped =
            self.flow.is_break() || fault.is_some_and(|fault| fault.load(Ordering::Relaxed));
        stopped.then_some(Stop::Observer)
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop().is_some()
    }
}
