//! Costs of rows under the components of a model: the lower, the better the component.
//!
//! A family says its costs as data, as one of a few kinds of [`Cost`]. Everything fast follows from the kind: costs of all
//! components as matrix products, bounds on their rounding, and the choice of those that are computed again directly, so that
//! labels do not depend on rounding.

pub(crate) mod lanes;
pub(crate) mod low_rank;
pub(crate) mod observed;
pub(crate) mod observed_factors;
pub(crate) mod patterns;
mod scaled;
pub(crate) mod whitened;
pub(crate) mod whitening;

pub(crate) use low_rank::LowRank;
use patterns::Expects;
pub(crate) use scaled::penalised;
pub use scaled::{Factor, Scaled};
pub(crate) use whitened::Whitened;

use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::data::RowKind;
use crate::rows::{Centres, Linear, Ranking, Rows};
use ndarray::ArrayView1;
use std::fmt;

/// The costs of rows under the components of a model. With $\beta$ nats for a cost of 1, and constants that all components share,
/// it is $-\ln p(c, y \mid \theta)$: see [`LogJoint`](crate::stage::LogJoint).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Cost<'m, F: Float> {
    /// The squared distance to a centre, $\lVert z - \mu_c \rVert^2$. A family with this cost has it whatever its parameters
    /// are: then searches may compare distances alone.
    Squared(&'m Centres<F>),
    /// Squared distances times factors, with addends.
    Scaled(&'m Scaled<F>),
    /// Squared distances of rows that each component, or one transform for all of them, whitens.
    Whitened(Whitened<'m, F>),
    /// Squared distances under covariances of a few factors and a variance for each column.
    LowRank(LowRank<'m, F>),
    /// Costs of any other form, computed one by one: correct for every family, and slow.
    Own(&'m dyn OwnCost<F>),
}

/// Costs that are none of the kinds the library knows, computed one by one.
pub trait OwnCost<F: Float>: Sync {
    /// Number of components, k.
    fn components(&self) -> usize;
    /// Costs of row `i` under the components `ids`, into `out`: as many as there are ids.
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>);
    /// Costs of all rows under all components at once, (len, k) into `out`, if that takes less time than row by row: those of
    /// [`some`](Self::some), to the last bit. By default `false`, and nothing is done.
    fn all(&self, _rows: &Rows<F>, _out: &mut Vec<F>) -> bool {
        false
    }
    /// Row `i` (d) as component `c` completes it, in the coordinates of the frame, where what is missing depends on what is known.
    /// `None` by default: it is the mean.
    fn completed(&self, _rows: &Rows<F>, _i: usize, _c: usize) -> Option<Vec<f64>> {
        None
    }
    /// Whether costs of rows that [know](Rows::known) some of their coordinates are over these. By default rows must know all: data
    /// of others are an error.
    fn are_of_known(&self) -> bool {
        false
    }
    /// Whether squared distances to means say anything: not where columns hold labels. By default they do.
    fn has_distances(&self) -> bool {
        true
    }
    /// An error for the first row that holds what the family does not take; that of the block has the number `first`. Rows of weight 0
    /// may hold anything. By default all numbers are taken.
    ///
    /// # Errors
    /// [`Error::NotOfKind`](crate::Error::NotOfKind), for example.
    fn takes(&self, _rows: &Rows<F>, _first: usize) -> Result<()> {
        Ok(())
    }
    /// The value that replaces a missing one of a column, where components have these shares, and this is expected; `whole`: as data, and not
    /// as an expectation. By default what is expected.
    fn datum(
        &self,
        _column: usize,
        _shares: ArrayView1<'_, F>,
        expected: f64,
        _whole: bool,
    ) -> f64 {
        expected
    }
}

impl<'m, F: Float> Cost<'m, F> {
    /// Number of components, k.
    #[must_use]
    pub fn components(&self) -> usize {
        match self {
            Self::Squared(centres) => centres.len(),
            Self::Scaled(scaled) => scaled.components(),
            Self::Whitened(whitened) => whitened.components(),
            Self::LowRank(low_rank) => low_rank.components(),
            Self::Own(own) => own.components(),
        }
    }

    /// Number of coordinates that rows must have; `None` if an [`OwnCost`] does not say.
    pub(crate) fn dim(&self) -> Option<usize> {
        match self {
            Self::Squared(centres) => Some(centres.dim()),
            Self::Scaled(scaled) => Some(scaled.centres().dim()),
            Self::LowRank(low_rank) => Some(low_rank.dim()),
            // A family of the library.
            Self::Whitened(_) | Self::Own(_) => None,
        }
    }

    /// Whether squared distances to means say anything.
    pub(crate) fn has_distances(&self) -> bool {
        match self {
            Self::Own(own) => own.has_distances(),
            _ => true,
        }
    }

    /// An error where rows have some coordinates, and costs need all.
    pub(crate) fn check(&self, kind: RowKind) -> Result<()> {
        let of_pairs = matches!(self, Self::Whitened(_) | Self::LowRank(_));
        let of_known = self.takes_missing() && (!of_pairs || kind == RowKind::Partial);
        let rule = if of_pairs {
            "this model needs all coordinates of a row, or rows with missing values: not rows of a sketch, nor sparse rows"
        } else {
            "this model needs all coordinates of a row: rows of a sketch, sparse rows, and rows with missing values have only some"
        };
        require(of_known || kind.is_dense(), "rows", "known in part", rule)
    }

    /// Whether rows with [missing values](crate::data::Dense::with_missing) have such costs: those of what is known.
    #[must_use]
    pub(crate) fn takes_missing(&self) -> bool {
        match self {
            Self::Squared(_) | Self::Scaled(_) | Self::Whitened(_) | Self::LowRank(_) => true,
            Self::Own(own) => own.are_of_known(),
        }
    }

    /// Costs of any other form, if these are such.
    pub(crate) fn own(&self) -> Option<&'m dyn OwnCost<F>> {
        match self {
            Self::Own(own) => Some(*own),
            _ => None,
        }
    }

    /// Row `i` as component `c` completes it, in the coordinates of the frame (d), in a family where what is missing depends on what
    /// is known; else it is the mean.
    pub(crate) fn completed(&self, rows: &Rows<F>, i: usize, c: usize) -> Option<Vec<f64>> {
        match self {
            Self::Whitened(whitened) => Some(whitened.completed(rows.entries()?.row(i), c)),
            Self::LowRank(low_rank) => Some(low_rank.completed(rows.entries()?.row(i), c)),
            Self::Own(own) => own.completed(rows, i, c),
            _ => None,
        }
    }

    /// Costs of row `i` under the components `ids`, computed directly. If an [`OwnCost`] gives another number of costs, all are
    /// NaN: then the row has none, which is an error of the family.
    #[inline(always)]
    pub fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        match self {
            Self::Squared(centres) => rows.distances_to(i, centres, ids, out),
            Self::Scaled(scaled) => scaled.some(rows, i, ids, out),
            Self::Whitened(whitened) => whitened.some(rows, i, ids, out),
            Self::LowRank(low_rank) => low_rank.some(rows, i, ids, out),
            Self::Own(own) => {
                own.some(rows, i, ids, out);
                if out.len() != ids.len() {
                    out.clear();
                    out.resize(ids.len(), F::from_f64(f64::NAN));
                }
            }
        }
    }

    /// Costs of all rows under all components, fast, good to the [margin](Self::margin): (len, k) into `out`. They are those
    /// that [`some`](Self::some) computes to the last bit where the margin is 0, for every component that may be the best of its
    /// row.
    pub(crate) fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        match self {
            Self::Squared(centres) => rows.distances(centres, out),
            Self::Scaled(scaled) => scaled.all(rows, out),
            Self::Whitened(whitened) => whitened.all(rows, out),
            Self::LowRank(low_rank) => low_rank.all(rows, out),
            Self::Own(own) => {
                let ids: Vec<u32> = (0..own.components() as u32).collect();
                if own.all(rows, out) && out.len() == rows.len() * ids.len() {
                    return;
                }
                let mut costs = Vec::new();
                out.clear();
                for i in 0..rows.len() {
                    self.some(rows, i, &ids, &mut costs);
                    out.extend_from_slice(&costs);
                }
            }
        }
    }

    /// Bound on the rounding error of the costs of row `i` in [`all`](Self::all), for components whose cost could be as low as
    /// `reach`.
    pub(crate) fn margin(&self, rows: &Rows<F>, i: usize, reach: F) -> F {
        match self {
            Self::Squared(centres) => rows.margin(i, centres, reach),
            Self::Scaled(scaled) => scaled.margin(rows, i),
            Self::Whitened(_) | Self::LowRank(_) | Self::Own(_) => F::zero(),
        }
    }

    /// Finds the components that may be among the `width` best of row `i`, by the costs `fast` (k) of [`all`](Self::all).
    pub(crate) fn ranked(
        &self,
        rows: &Rows<F>,
        i: usize,
        fast: &[F],
        width: usize,
        ranking: &mut Ranking<F>,
    ) {
        let margin = |reach| self.margin(rows, i, reach);
        ranking.among(fast, width, margin, |ids, out| self.some(rows, i, ids, out));
    }

    /// Costs of dense rows as products, if they are: they take the place of [`all`](Self::all) where all components share a
    /// row.
    pub(crate) fn products(&self) -> Option<&'m Linear<F>> {
        match *self {
            Self::Squared(centres) => Some(centres.products()),
            Self::Scaled(scaled) => scaled.products(),
            Self::Whitened(_) | Self::LowRank(_) | Self::Own(_) => None,
        }
    }

    /// The best component of every row and its cost, as [`some`](Self::some) finds it: the lowest index where several are as
    /// good. `false`, and nothing done, where that is no faster than to go through [`all`](Self::all).
    pub(crate) fn best(&self, rows: &Rows<F>, ids: &mut [u32], costs: &mut [F]) -> bool {
        match self {
            Self::Squared(centres) => rows.nearest(centres, ids, costs),
            _ => false,
        }
    }

    /// Whether the best component of a row is the one with the nearest centre, whatever the row.
    #[must_use]
    pub fn is_squared(&self) -> bool {
        matches!(self, Self::Squared(_))
    }
}

impl<F: Float> fmt::Debug for Cost<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Squared(_) => "Squared",
            Self::Scaled(_) => "Scaled",
            Self::Whitened(_) => "Whitened",
            Self::LowRank(_) => "LowRank",
            Self::Own(_) => "Own",
        };
        write!(f, "{kind} costs of {} components", self.components())
    }
}
