//! Observers of a fit, and reasons to end it.

use super::{Pass, PhaseReport, Progress, Saver, Stop, trace};
use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::float::Float;
use std::ops::ControlFlow;

pub(crate) type Observer<'a, F> = &'a mut dyn FnMut(&Progress<'_, F>) -> ControlFlow<()>;

/// The observer of a fit, the requests to stop it, and the writer of its checkpoints.
pub(crate) struct Monitor<'a, F: Float> {
    observer: Option<Observer<'a, F>>,
    flow: ControlFlow<()>,
    cancel: Option<Cancel>,
    saver: Option<Saver>,
}

impl<'a, F: Float> Monitor<'a, F> {
    pub(crate) fn new(
        observer: Option<Observer<'a, F>>,
        cancel: Option<Cancel>,
        saver: Option<Saver>,
    ) -> Self {
        Self {
            observer,
            flow: ControlFlow::Continue(()),
            cancel,
            saver,
        }
    }

    /// Whether it must see one restart after the other: an observer does, and so do checkpoints.
    pub(crate) fn sees_restarts(&self) -> bool {
        self.observer.is_some() || self.saver.is_some()
    }

    /// The writer of checkpoints; `None` once the fit is stopped, because a fit would go on from such a checkpoint as if it had
    /// ended there.
    pub(crate) fn saver(&mut self) -> Option<&mut Saver> {
        if self.is_stopped() {
            None
        } else {
            self.saver.as_mut()
        }
    }

    /// Why the last checkpoint could not be written, if it could not.
    pub(crate) fn checkpoint_fault(&self) -> Option<String> {
        self.saver.as_ref().and_then(Saver::fault)
    }

    /// Writes a checkpoint before the next search, if it is due. A search whose state cannot be saved leaves it to the end
    /// of the phase.
    pub(super) fn save<'b>(
        &mut self,
        pass: &mut dyn Pass<'b, F>,
        report: &PhaseReport,
    ) -> Result<()> {
        let Some(saver) = self.saver() else {
            return Ok(());
        };
        if !saver.is_due() {
            return Ok(());
        }
        match pass.save(report) {
            Some(phase) => saver.write_phase(&phase),
            None => Ok(()),
        }
    }

    /// Shows progress. Once stopped it stays stopped, and the observer is called no more.
    pub(crate) fn see(&mut self, progress: &Progress<'_, F>) {
        trace::before(progress);
        if let (ControlFlow::Continue(()), Some(observer)) = (self.flow, &mut self.observer) {
            self.flow = observer(progress);
        }
    }

    /// Shows a search. Whether to stop, and why.
    pub(super) fn iteration<'b>(
        &mut self,
        pass: &mut dyn Pass<'b, F>,
        report: &PhaseReport,
        limit: usize,
    ) -> Option<Stop> {
        trace::iteration(report);
        // Taking a model out of a subspace is worth it only if there is an observer.
        if self.observer.is_some() && self.flow.is_continue() {
            self.see(&Progress::Iteration {
                restart: report.restart,
                phase: report.phase,
                rows: report.rows,
                iteration: report.iterations,
                limit,
                free_energy: report.free_energies[report.iterations],
                evaluations: report.evaluations,
                elapsed: report.elapsed,
                model: &**pass.stages().whole_model(),
            });
        }
        self.stop()
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return Some(Stop::Cancelled);
        }
        self.flow.is_break().then_some(Stop::Observer)
    }

    /// Whether the fit may be cancelled between two of its searches.
    pub(super) fn is_cancellable(&self) -> bool {
        self.cancel.is_some()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop().is_some()
    }
}
