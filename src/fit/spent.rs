//! The observer of a fit, and its evaluations and times so far.

use crate::base::float::Float;
use crate::em::{Evaluations, Monitor, PhaseReport, Timings};
use crate::io::{FileFault, all_counts, rule};
use std::ops::AddAssign;
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

/// A stage from outside may have said any number of evaluations.
impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        let sums = &mut self.evaluations;
        let others = other.evaluations;
        for (sum, count) in [
            (&mut sums.coreset, others.coreset),
            (&mut sums.seeding, others.seeding),
            (&mut sums.search, others.search),
            (&mut sums.scoring, others.scoring),
        ] {
            *sum = sum.saturating_add(count);
        }
        self.timings.coreset += other.timings.coreset;
        self.timings.projection += other.timings.projection;
        self.timings.seeding += other.timings.seeding;
        self.timings.search += other.timings.search;
        self.timings.update += other.timings.update;
        self.timings.scoring += other.timings.scoring;
    }
}

impl Spent {
    pub(super) fn of(phase: &PhaseReport) -> Self {
        Self {
            evaluations: Evaluations {
                search: phase.evaluations,
                ..Evaluations::default()
            },
            timings: phase.timings,
        }
    }

    pub(super) fn seeding(&mut self, evaluations: u64, started: Instant) {
        let seeding = &mut self.evaluations.seeding;
        *seeding = seeding.saturating_add(evaluations);
        self.timings.seeding += started.elapsed();
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
