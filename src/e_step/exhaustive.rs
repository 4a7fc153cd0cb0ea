//! The exhaustive search: every point against every component.

use super::{EStep, Search};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::parallel::Spare;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::search::{self, Exact};

/// K(n) = the C' best of all components. Width 1 is Lloyd's k-means, C' is k-means-C' (\[KM\] Alg. 3), all
/// components is EM. n k distance evaluations per search.
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
}

impl Exhaustive {
    /// The nearest component alone: k-means.
    #[must_use]
    pub fn nearest() -> Self {
        Self::truncated(1)
    }

    /// The `c_prime` best components: k-means-C'. At least 1; a value above the number of components means all.
    #[must_use]
    pub fn truncated(c_prime: usize) -> Self {
        Self {
            c_prime: Some(c_prime),
        }
    }

    /// All components: EM.
    #[must_use]
    pub fn all() -> Self {
        Self { c_prime: None }
    }
}

impl Stage for Exhaustive {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("c_prime", self.c_prime.unwrap_or(1))
    }
}

impl<F: Float> EStep<F> for Exhaustive {
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let k = model.components();
        Ok(Box::new(All::of_width(self.c_prime.unwrap_or(k).min(k))))
    }
}

pub(super) struct All<F> {
    width: usize,
    scratch: Spare<Exact<F>>,
}

impl<F> All<F> {
    pub(super) fn of_width(width: usize) -> Self {
        let scratch = Spare::default();
        Self { width, scratch }
    }
}

impl<F: Float> Search<F> for All<F> {
    fn width(&self) -> usize {
        self.width
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        let mut scratch = self.scratch.take().unwrap_or_default();
        search::exhaustive(model, rows, block, &mut scratch);
        self.scratch.give([scratch]);
    }
}
