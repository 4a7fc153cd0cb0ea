//! Stage 5, the M-step: weighted statistics, and the parameters that follow from them in closed form.
//!
//! A component family keeps its density and its update in one file: both derive from one model. So far there is
//! one, [`SharedIsotropic`]. With the responsibilities fixed, an update maximises (E4)
//!
//! $$F(q, \theta) = \sum_n w_n \sum_c q_{nc} \left( \ln p(c, y_n \mid \theta) - \ln q_{nc} \right)$$
//!
//! over the parameters $\theta$; for the responsibilities of a search (E2) this is its free energy (E3).

mod shared_isotropic;

pub use shared_isotropic::{SharedIsotropic, SharedIsotropicMixture};

use crate::block::Block;
use crate::data::{Centres, Data, Frame, Summary};
use crate::mixture::Mixture;
use crate::posterior::Likelihood;
use crate::stage::Stage;

/// A component family: how its parameters start, and how they follow from responsibilities.
///
/// Laws: given the responsibilities, [`finish`](Self::finish) never lowers the free energy; statistics of
/// disjoint blocks add up.
pub trait MStep<D: Data>: Stage + Sync {
    /// The model with its parameters.
    type Model: Mixture<D>;
    /// Mergeable weighted sums.
    type Statistics: Send;

    /// The model at the seeds, before anything is known of its variance: scores are squared distances.
    fn start(
        &self,
        seeds: Centres<D::Float>,
        frame: Frame<D::Float>,
        data: &Summary,
    ) -> Self::Model;

    /// Starts the variance from the sums of the first search (E8; \[VC\] Eq. 8).
    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood);

    /// Sums over no points yet.
    fn statistics(&self, model: &Self::Model) -> Self::Statistics;

    /// Adds a block of rows, shared out by its responsibilities (E5).
    fn accumulate(
        &self,
        rows: &D::Rows,
        block: &Block<D::Float>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    );

    /// The sums over all rows from the sums over some (at least one of these), added up in their order.
    fn merge(&self, parts: Vec<Self::Statistics>) -> Self::Statistics;

    /// Number of components that answer for no point.
    fn emptied(&self, statistics: &Self::Statistics) -> usize;

    /// The parameters that maximise the free energy for the responsibilities behind the statistics.
    /// `iteration` counts M-steps from 0.
    fn finish(&self, statistics: Self::Statistics, model: &mut Self::Model, iteration: usize);
}
