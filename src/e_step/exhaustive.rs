//! The exhaustive search: every point against every component.

use super::EStep;
use crate::base::error::{Result, positive};
use crate::base::float::Float;
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

    fn settings(&self) -> String {
        format!("{self:?}")
    }
}

impl<F: Float, M: Mixture<F>> EStep<F, M> for Exhaustive {
    type State = ();
    type Worker = Exact<F>;

    fn width(&self, k: usize) -> usize {
        self.c_prime.unwrap_or(k).min(k)
    }

    fn is_exact(&self, _: usize) -> bool {
        true
    }

    fn search(
        &self,
        (): &(),
        model: &M,
        rows: &Rows<F>,
        block: &mut Block<F>,
        _: &mut Rng,
        worker: &mut Self::Worker,
    ) {
        search::exhaustive(model.erased(), rows, block, worker);
    }
}
