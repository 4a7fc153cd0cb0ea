//! The observer of a fit, and its evaluations and times so far.

use crate::base::float::Float;
use crate::em::{Evaluations, Monitor, PhaseReport, Timings};
use crate::io::{FileFault, all_counts, rule};
use std::time::Instant;

/// The observer of a fit or of one of its restarts, and its evaluations and times so far.
pub(super) struct Context<'a, F: Float> {
    pub(super) monitor: Monitor<'a, F>,
    pub(super) spent: Spent,
}

/// Evaluations and times of a fit, or of one of its restarts, so far.
#[derive(Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Spent {
    pub(super) evaluations: Evaluations,
    pub(super) timings: Timings,
}

impl Spent {
    pub(super) fn add_phase(&mut self, phase: &PhaseReport) {
        let search = &mut self.evaluations.search;
        *search = search.saturating_add(phase.evaluations);
        self.timings.add(&phase.timings);
    }

    pub(super) fn seeding(&mut self, evaluations: u64, started: Instant) {
        let seeding = &mut self.evaluations.seeding;
        *seeding = seeding.saturating_add(evaluations);
        self.timings.seeding += started.elapsed();
    }

    pub(super) fn add(&mut self, restart: &Self) {
        self.evaluations.add(&restart.evaluations);
        self.timings.add(&restart.timings);
    }

    pub(super) fn check(&self) -> std::result::Result<(), FileFault> {
        let Evaluations {
            coreset,
            seeding,
            search,
            scoring,
        } = self.evaluations;
        all_counts("spent", &[coreset, seeding, search, scoring])?;
        rule(self.timings.is_sound(), "spent", "must have times of a fit")
    }
}
