//! Rules that say where a fit begins, if not at its seeds in the first phase.

use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::data::{Centres, Data, Frame};
use std::fmt::Debug;

/// A rule of a phase on a coreset before one on all rows, with bounds, and all columns: whether the fit begins in the latter. It is not
/// asked for seeds that cost nothing, nor for several starts.
pub(crate) trait Begin<F: Float>: Debug + Send + Sync {
    /// Before the phase, with its seeds: other centres for the phase on all rows.
    fn before(&self, at: &mut Beginning<'_, F>, seeds: &Centres<F>) -> Result<Option<Centres<F>>>;

    /// After the phase, with the centres that it found, if the rule was [undecided](Beginning::undecided): other centres as well.
    fn after(&self, at: &mut Beginning<'_, F>, centres: &Centres<F>) -> Result<Option<Centres<F>>>;
}

/// The rows and numbers that such a rule goes by.
pub(crate) struct Beginning<'a, F: Float> {
    /// The rows of the phase, and all of them.
    pub(crate) few: &'a dyn Data<F>,
    pub(crate) all: &'a dyn Data<F>,
    pub(crate) frame: &'a Frame<F>,
    pub(crate) clusters: usize,
    /// Whether the phase on all rows is the next one.
    pub(crate) is_next: bool,
    /// It gives equal numbers before the phase and after it.
    pub(crate) rng: Rng,
    /// Distance evaluations of the rule.
    pub(crate) evaluations: u64,
    /// Whether other centres may be better than those that the phase finds.
    pub(crate) undecided: bool,
}
