//! What a phase leaves.

use super::{Pass, PhaseReport, Stop, Supports};
use crate::base::float::Float;
use crate::m_step::MStep;

/// A model on its way through the phases, with what the last search under it found.
#[derive(Clone, Debug)]
pub(crate) struct Outcome<Model> {
    pub(crate) model: Model,
    /// The start of the restart that it comes from, and whether its variances were known before the first phase.
    pub(crate) start: usize,
    pub(crate) calibrated: bool,
    /// What the last search found, and the place of its rows.
    pub(crate) found: Option<(Supports, usize)>,
    /// Whether that was the best component of every row.
    pub(crate) exact: bool,
    /// Phases of the plan behind it, also those that it left out, and the reports of the others.
    pub(crate) reached: usize,
    pub(crate) phases: Vec<PhaseReport>,
}

impl<Model> Outcome<Model> {
    /// How far it has come: free energies compare on the same rows alone, so the one that came further is better.
    pub(crate) fn standing(&self) -> (usize, f64) {
        let last = self.phases.last().and_then(|p| p.free_energies.last());
        (self.reached, last.copied().unwrap_or(f64::NEG_INFINITY))
    }

    /// The same, where the fit was cancelled after it.
    pub(crate) fn cancelled(mut self) -> Self {
        if let Some(phase) = self.phases.last_mut() {
            phase.stop = Stop::Cancelled;
        }
        self
    }
}

/// What the last search of a phase found, in case the fit is cancelled before the next one is done.
pub(crate) struct LastSearch<Model> {
    /// Whether a fit can be cancelled: each search is copied then.
    pub(crate) is_wanted: bool,
    pub(crate) found: Option<Found<Model>>,
}

/// A model, what a search under it found, and whether that is the best component of every row.
pub(crate) struct Found<Model> {
    pub(crate) model: Model,
    pub(crate) supports: Supports,
    pub(crate) exact: bool,
}

impl<Model: Clone> LastSearch<Model> {
    pub(super) fn keep<'a, F, M>(&mut self, pass: &mut dyn Pass<'a, F, M>)
    where
        F: Float,
        M: MStep<F, Model = Model>,
    {
        if self.is_wanted {
            self.found = Some(Found {
                model: pass.stages().whole_model().clone(),
                supports: pass.supports(),
                exact: pass.is_exact(),
            });
        }
    }
}
