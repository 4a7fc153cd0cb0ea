//! The exhaustive search: every point against every component.

use super::{EStep, Search};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::parallel::{BLOCK, Spare};
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::costs::Cost;
use crate::data::Rows;
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::search::{self, Exact};

/// K(n) = the C' best of all components. Width 1 is Lloyd's k-means, C' is k-means-C' (\[KM\] Alg. 3), all
/// components is EM. n k distance evaluations per search, and fewer where bounds settle rows.
///
/// The best are those with the largest log-joints, so no other support of this width has a larger free energy
/// ([E13](crate::equations#e13)). Distances are expanded to rank, and computed directly wherever rounding could matter
/// ([E21](crate::equations#e21)).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let three = Exhaustive::truncated(3);
/// let fit = algorithms::k_means(25).e_step(three).build()?.fit(&data)?;
/// let supports = fit.supports.expect("fewer than all components");
/// assert!(fit.exact && supports.dim() == (1_000, 3));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhaustive {
    /// `None`: all components.
    c_prime: Option<usize>,
    bounds: bool,
}

impl Exhaustive {
    /// The nearest component alone: k-means. Where one variance is shared, rows get bounds on their distances
    /// ([E35](crate::equations#e35)) once these would settle half of the rows, by what the last search has seen: then only the
    /// others are read, and sums are kept. With very many components a row is compared with those of a few cells
    /// ([E45](crate::equations#e45)), where that takes an eighth of the distances or less. Labels are the same; sums are rounded in
    /// another order. Fits with fewer than 4 million products in an iteration compare all rows with all components.
    #[must_use]
    pub fn nearest() -> Self {
        Self {
            bounds: true,
            ..Self::truncated(1)
        }
    }

    /// The `c_prime` best components: k-means-C'. At least 1; a value above the number of components means all. It compares all
    /// rows with all components in every search: with 1 it is [`nearest`](Self::nearest) without bounds.
    #[must_use]
    pub fn truncated(c_prime: usize) -> Self {
        Self {
            c_prime: Some(c_prime),
            bounds: false,
        }
    }

    /// All components: EM.
    #[must_use]
    pub fn all() -> Self {
        Self {
            c_prime: None,
            bounds: false,
        }
    }
}

impl Stage for Exhaustive {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("c_prime", self.c_prime.unwrap_or(1))
    }
}

impl<F: Float> EStep<F> for Exhaustive {
    #[inline(never)]
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let k = model.components();
        let width = self.c_prime.unwrap_or(k).min(k);
        Ok(Box::new(All {
            bounds: self.bounds && bounds_may_pay(k, model.centres().dim()),
            ..All::of_width(width)
        }))
    }
}

pub(super) struct All<F> {
    width: usize,
    /// Whether some blocks get bounds on the distances to others.
    bounds: bool,
    scratch: Spare<Exact<F>>,
}

/// One of this many blocks of rows gets bounds: these tell what bounds of all rows would settle.
const BLOCKS: usize = 8;

/// Whether bounds may cost less than the products of a row: they have to be read as well. Between few clusters lie few rows.
pub(crate) fn bounds_may_pay(clusters: usize, columns: usize) -> bool {
    const PRODUCTS: usize = 32;
    const CLUSTERS: usize = 4;
    clusters <= CLUSTERS || clusters.saturating_mul(columns) >= PRODUCTS
}

impl<F> All<F> {
    pub(super) fn of_width(width: usize) -> Self {
        Self {
            width,
            bounds: false,
            scratch: Spare::default(),
        }
    }
}

impl<F: Float> Search<F> for All<F> {
    fn width(&self) -> usize {
        self.width
    }

    fn is_exact(&self) -> bool {
        true
    }

    #[inline(never)]
    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        if self.bounds
            && let Cost::Squared(centres) = model.cost()
            && block.width() == 1
            && !block.is_full()
            && (block.wants_bounds || (block.row(0) / BLOCK).is_multiple_of(BLOCKS))
        {
            block.others.resize(rows.len(), F::zero());
            let Block {
                supports,
                costs,
                others,
                ..
            } = block;
            if rows.nearest_and_others(centres, supports, costs, others) {
                block.count(rows.len() * centres.len());
                return;
            }
            block.others.clear();
        }
        let mut scratch = self.scratch.take().unwrap_or_default();
        search::exhaustive(model, rows, block, &mut scratch);
        self.scratch.give([scratch]);
    }
}
