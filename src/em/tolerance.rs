//! The one place that says how much a tolerance leaves to gain.

use crate::e_step::bounded::LIMITS;

/// The share of the error that may be left to gain. The error is what a search leaves: weighted squared distances of rows to their
/// centres, or the free energy in the unit of a [`Rule`](super::Rule), which to first order is the same.
///
/// A phase ends when it gains no more ([`StopRule`](super::StopRule)), and whatever costs more than an iteration must gain more:
/// searches over all centres, moves and transfers.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Tolerance(f64);

impl Tolerance {
    pub(crate) const fn new(share: f64) -> Self {
        Self(share)
    }

    pub(crate) fn share(self) -> f64 {
        self.0
    }

    /// The tolerance of a phase with this factor.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }

    /// How much of this error may be left.
    pub(crate) fn of(self, error: f64) -> f64 {
        self.0 * error
    }

    /// Whether nothing may be left: then a search may miss nothing either.
    pub(crate) fn is_zero(self) -> bool {
        self.0 <= 0.0
    }

    /// Where the phase would end, a search that takes as long as these iterations must gain more than this.
    pub(super) fn of_search(self, iterations: f64) -> Self {
        Self((self.0 * iterations).min(LIMITS.sure_gain.max(self.0)))
    }

    /// The last round of split and merge gains no more: a round takes many evaluations, and rounds do not end early where the tolerance
    /// is large.
    pub(super) fn of_moves(self) -> Self {
        const LEAST: f64 = 2e-3;
        Self(self.0.clamp(LEAST, 10.0 * LEAST))
    }

    /// Merges of components are tried below it (E51): smaller changes of the free energy are rounding.
    pub(super) fn of_merges(self) -> Self {
        Self(self.0.max(1e-9))
    }
}
