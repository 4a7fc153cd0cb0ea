//! The lazy search of lazy-k-means.

use super::EStep;
use crate::base::error::{Result, not_negative};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::m_step::GaussianMixture;
use crate::model::block::{Block, UNSET};
use crate::model::search::{self, Exact};
use crate::model::{Erased, Mixture};

/// A point leaves its component only for one that is nearer by a factor 1 + epsilon on unsquared distances
/// ([E11](crate::equations#e11); \[KM\] Eq. 21, after Har-Peled and Sadri, How fast is the k-means method?, 2005). n k
/// distance evaluations per search; epsilon = 0 is k-means, except for ties.
///
/// A point of component $c$ moves, to the nearest component $\tilde c$, if
///
/// $$(1 + \varepsilon) \lVert y_n - \mu_{\tilde c} \rVert \lt \lVert y_n - \mu_c \rVert$$
///
/// A point that moves gets a larger log-joint, and one that stays keeps its own, so the free energy never falls. The error
/// of the assignment is at most $(1 + \varepsilon)^2$ times the quantization error ([E22](crate::equations#e22)).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::k_means(25).e_step(Lazy::new(0.1)).build()?.fit(&data)?;
/// assert!(!fit.exact); // a point may have a slightly nearer component
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lazy {
    epsilon: f64,
}

impl Lazy {
    /// The factor is 1 + `epsilon`; `epsilon` is finite and at least 0.
    #[must_use]
    pub fn new(epsilon: f64) -> Self {
        Self { epsilon }
    }
}

impl Stage for Lazy {
    fn check(&self, _clusters: usize) -> Result<()> {
        not_negative("epsilon", self.epsilon)
    }

    fn settings(&self) -> String {
        format!("{self:?}")
    }
}

/// Scores are squared distances only for a shared variance, so this is the only family that it works with.
impl<F: Float> EStep<F, GaussianMixture<F>> for Lazy {
    type State = ();
    type Worker = LazyWorker<F>;

    fn width(&self, _: usize) -> usize {
        1
    }

    fn is_exact(&self, _: usize) -> bool {
        self.epsilon == 0.0
    }

    fn needs_one_variance(&self) -> bool {
        true
    }

    fn search(
        &self,
        (): &(),
        model: &GaussianMixture<F>,
        rows: &Rows<F>,
        block: &mut Block<F>,
        _: &mut Rng,
        worker: &mut Self::Worker,
    ) {
        search(self.epsilon, model.erased(), rows, block, worker);
    }
}

/// The nearest component of every row, or its last one where that is nearly as near (E11).
#[inline(never)]
pub(crate) fn search<F: Float>(
    epsilon: f64,
    model: &dyn Mixture<F>,
    rows: &Rows<F>,
    block: &mut Block<F>,
    worker: &mut LazyWorker<F>,
) {
    worker.old.clone_from(&block.supports);
    search::exhaustive(model, rows, block, &mut worker.exact);
    let factor = (1.0 + epsilon).powi(2);
    for (i, &old) in worker.old.iter().enumerate().filter(|(_, c)| **c != UNSET) {
        let nearest = block.scores[i];
        rows.distances_to(i, model.centres(), &[old], &mut worker.distance);
        if factor * nearest.to_f64() >= worker.distance[0].to_f64() {
            block.supports[i] = old;
            block.scores[i] = worker.distance[0];
        }
    }
}

/// Scratch of [`Lazy`].
#[derive(Debug, Default)]
pub struct LazyWorker<F> {
    exact: Exact<F>,
    old: Vec<u32>,
    distance: Vec<F>,
}
