//! The outcome of a phase.

use super::{AnyModel, PhaseReport, Stop, Supports};
use crate::base::float::Float;

/// A model on its way through the phases, with what the last search under it found.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Outcome<Model> {
    pub(crate) model: Model,
    /// The start of the restart that it comes from, and whether its variances were known before the first phase.
    pub(crate) start: usize,
    pub(crate) calibrated: bool,
    /// Supports of the last search, and the place of its rows.
    pub(crate) found: Option<(Supports, usize)>,
    /// Whether these are the best components of every row.
    pub(crate) exact: bool,
    /// Phases of the plan behind it, also those that it left out, and the reports of the others.
    pub(crate) reached: usize,
    pub(crate) phases: Vec<PhaseReport>,
}

impl<Model> Outcome<Model> {
    /// The free energy that it has come to.
    pub(crate) fn last(&self) -> f64 {
        let last = self.phases.last().and_then(|p| p.free_energies.last());
        last.copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Whether it came further, or as far and to a higher free energy: these compare on the same rows alone. A gain of rounding is none,
    /// so the first of two ways to the same clusters is taken in every unit.
    pub(crate) fn is_better_than(&self, other: &Self) -> bool {
        let free_energy = self.last();
        let gains = free_energy - other.last() > free_energy.abs() * 2f64.powi(-40);
        self.reached > other.reached || self.reached == other.reached && gains
    }

    /// Whether its last phase was cancelled, or there is none.
    pub(crate) fn is_cancelled(&self) -> bool {
        let last = self.phases.last();
        last.is_none_or(|phase| phase.stop == Stop::Cancelled)
    }

    /// This outcome with another form of its model.
    pub(crate) fn with<Other, E>(
        self,
        make: impl FnOnce(Model) -> Result<Other, E>,
    ) -> Result<Outcome<Other>, E> {
        Ok(Outcome {
            model: make(self.model)?,
            start: self.start,
            calibrated: self.calibrated,
            found: self.found,
            exact: self.exact,
            reached: self.reached,
            phases: self.phases,
        })
    }

    /// This outcome, of a fit that was cancelled after the phase.
    pub(crate) fn cancelled(mut self) -> Self {
        if let Some(phase) = self.phases.last_mut() {
            phase.stop = Stop::Cancelled;
        }
        self
    }
}

/// The result of the last search of a phase.
pub(crate) struct Ended<F: Float> {
    /// In all coordinates.
    pub(crate) model: AnyModel<F>,
    pub(crate) supports: Supports,
    /// Whether these are the best components of every row, for sure.
    pub(crate) exact: bool,
}
