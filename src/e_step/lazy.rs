//! The lazy search of lazy-k-means.

use super::{EStep, Started};
use crate::block::{Block, UNSET};
use crate::data::{Data, Rows};
use crate::error::{Error, Result};
use crate::float::Float;
use crate::m_step::SharedIsotropicMixture;
use crate::mixture::Mixture;
use crate::rng::Rng;
use crate::search::{self, Exact};
use crate::stage::Stage;

/// A point leaves its component only for one that is nearer by a factor 1 + epsilon on unsquared distances
/// (E11; \[KM\] Eq. 21, after Har-Peled and Sadri, How fast is the k-means method?, 2005). n k distance
/// evaluations per search; epsilon = 0 is k-means but for ties.
///
/// A point of component $c$ moves, to the nearest component $\tilde c$, if
///
/// $$(1 + \varepsilon) \lVert y_n - \mu_{\tilde c} \rVert \lt \lVert y_n - \mu_c \rVert$$
///
/// Whoever moves gains in log-joint and whoever stays loses nothing, so the free energy never falls. The
/// assignment costs at most $(1 + \varepsilon)^2$ times the quantization error (E22).
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
        if self.epsilon.is_finite() && self.epsilon >= 0.0 {
            Ok(())
        } else {
            Err(Error::parameter(
                "epsilon",
                self.epsilon,
                "must be finite and not negative",
            ))
        }
    }
}

/// Scores are squared distances for a shared variance alone, so that is the only family it works with.
impl<D: Data> EStep<D, SharedIsotropicMixture<D::Float>> for Lazy {
    type State = ();
    type Worker = LazyWorker<D::Float>;

    fn width(&self, _: usize) -> usize {
        1
    }

    fn initial_searches(&self, _: usize) -> usize {
        0
    }

    fn start(&self, _: &SharedIsotropicMixture<D::Float>, _: &mut Rng) -> Started<()> {
        Started {
            state: (),
            evaluations: 0,
        }
    }

    fn worker(&self, _: &SharedIsotropicMixture<D::Float>) -> Self::Worker {
        LazyWorker::default()
    }

    fn search(
        &self,
        (): &(),
        model: &SharedIsotropicMixture<D::Float>,
        rows: &D::Rows,
        _: &mut Rng,
        block: &mut Block<D::Float>,
        worker: &mut Self::Worker,
    ) -> u64 {
        if block.is_full() {
            // One component: there is no other to leave it for.
            let beta = Mixture::<D>::log_joint(model).beta;
            search::all(model, beta, rows, block, &mut worker.exact);
            return rows.len() as u64;
        }
        worker.old.clone_from(&block.supports);
        search::best(model, rows, block, &mut worker.exact);
        let factor = (1.0 + self.epsilon).powi(2);
        for (i, &old) in worker.old.iter().enumerate().filter(|(_, c)| **c != UNSET) {
            let nearest = block.scores[i];
            rows.distances_to(
                i,
                Mixture::<D>::centres(model),
                &[old],
                &mut worker.distance,
            );
            if factor * nearest.to_f64() >= worker.distance[0].to_f64() {
                block.supports[i] = old;
                block.scores[i] = worker.distance[0];
            }
        }
        (rows.len() * block.components()) as u64
    }

    fn finish_pass(&self, (): &mut (), _: Vec<Self::Worker>) {}
}

/// Scratch of [`Lazy`].
#[derive(Debug, Default)]
pub struct LazyWorker<F> {
    exact: Exact<F>,
    old: Vec<u32>,
    distance: Vec<F>,
}
