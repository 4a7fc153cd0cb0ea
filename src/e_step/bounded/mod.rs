//! The bounded search: the nearest of near centres, for the rows that bounds do not settle.
//!
//! Most rows are settled after a few iterations, and the work goes by those that are not:
//!
//! - Rows are kept by component, with bounds on their distances ([`assignment`], E35); rows that the bounds settle are not
//!   read.
//! - An open row is compared with the centres near its own ([`list_search`], [`lists`]). They are packed, so that all rows of
//!   a component share them.
//! - The first search of a phase goes through inverted lists (E40), and rows that lists do not cover are searched over all
//!   centres where that pays ([`full_search`]).
//! - The sums of the M-step are kept, and only rows that change their component are moved in them ([`sums`], E36).
//! - An exact search that keeps bounds has the rows in their order, and compares open ones with all centres ([`in_order`]).
//! - Components move ([`split_merge`], E37), and single rows do ([`hartigan`], E50), where that is sure to pay.

mod assignment;
mod full_search;
pub(crate) mod hartigan;
mod in_order;
mod limits;
mod list_search;
mod lists;
pub(crate) mod split_merge;
mod sums;

pub(crate) use assignment::{Assignment, Change, Member};
pub(crate) use in_order::{Bounds, RowsInOrder, cells_pay, moves};
pub(crate) use limits::LIMITS;
pub(crate) use lists::{NeighbourLists, are_lists, nearest_lists};
pub(crate) use lists::{time_of_all, time_of_lists};
pub(crate) use sums::{KeptSums, Offset};

use super::exhaustive::All;
use super::{EStep, Search, check_squared};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::model::Mixture;

/// The nearest of the centres near a row's own, for rows that bounds do not settle: supports of width 1
/// ([E35](crate::equations#e35), [E36](crate::equations#e36), [E40](crate::equations#e40)).
///
/// For [`Gaussian`](crate::families::Gaussian): bounds are on distances to the means. On rows
/// that lack coordinates (a [`Sketch`](crate::data::Sketch), sparse rows, missing values) it is
/// [`Exhaustive::nearest`](super::Exhaustive::nearest), with the two nearest centres of each row as long as components move. It is the E-step of [`algorithms::fast`](crate::algorithms::fast).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::k_means(25).e_step(Bounded::default()).build()?.fit(&data)?;
/// let searches = fit.report.free_energies.len() as u64;
/// assert!(fit.report.evaluations.search < searches * 1_000 * 25); // settled rows cost nothing
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded {
    nearest_centres: usize,
    streaming: bool,
}

impl Bounded {
    /// Centres a row is compared with: its own and the nearest others. Default 48: with fewer, rows of many columns often stay
    /// at a centre that is not the nearest. With all centres the labels are exact, up to the rounding of distances; then
    /// [`Exhaustive::nearest`](super::Exhaustive::nearest), which needs less memory, is faster with more than a few.
    #[must_use]
    pub fn nearest_centres(self, nearest_centres: usize) -> Self {
        Self {
            nearest_centres,
            ..self
        }
    }

    /// Keeps no bounds: every iteration compares each row with all centres, as
    /// [`Exhaustive::nearest`](super::Exhaustive::nearest) does. It reads all rows again, and keeps 4 bytes of each in place
    /// of about 40. Its labels are exact. Rounds of [split and merge](crate::Phase::split_and_merge) and of [transfers](crate::Phase::transfers)
    /// need bounds, so there are none. For rows that are not in memory: see
    /// [`algorithms::fast_within`](crate::algorithms::fast_within).
    #[must_use]
    pub fn streaming(self) -> Self {
        Self {
            streaming: true,
            ..self
        }
    }
}

impl Default for Bounded {
    fn default() -> Self {
        Self {
            nearest_centres: 48,
            streaming: false,
        }
    }
}

impl Stage for Bounded {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("nearest_centres", self.nearest_centres)
    }
}

impl<F: Float> EStep<F> for Bounded {
    fn compares_distances(&self) -> bool {
        true
    }

    /// A search over all components, for passes that keep no bounds.
    #[inline(never)]
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        check_squared(model.cost().is_squared(), self.name())?;
        Ok(Box::new(All::of_width(1)))
    }

    fn bounds(&self) -> Option<usize> {
        (!self.streaming).then_some(self.nearest_centres)
    }
}
