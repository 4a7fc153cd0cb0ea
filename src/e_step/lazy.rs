//! The lazy search of lazy-k-means.

use super::exhaustive::All;
use super::{EStep, Search, check_squared};
use crate::base::error::{Result, not_negative};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::model::Mixture;
use crate::model::block::{Block, UNSET};

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
}

impl<F: Float> EStep<F> for Lazy {
    fn compares_distances(&self) -> bool {
        true
    }

    #[inline(never)]
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        check_squared(model.cost().is_squared(), self.name())?;
        Ok(Box::new(LazySearch {
            epsilon: self.epsilon,
            nearest: All::of_width(1),
        }))
    }
}

struct LazySearch<F> {
    epsilon: f64,
    nearest: All<F>,
}

impl<F: Float> Search<F> for LazySearch<F> {
    fn width(&self) -> usize {
        1
    }

    fn is_exact(&self) -> bool {
        self.epsilon == 0.0
    }

    fn compares_all(&self) -> bool {
        true
    }

    /// The nearest component of every row, or its last one where that is nearly as near (E11).
    #[inline(never)]
    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, rng: &mut Rng) {
        let old = block.supports.clone();
        self.nearest.search(model, rows, block, rng);
        let factor = (1.0 + self.epsilon).powi(2);
        let mut distance = Vec::new();
        for (i, &old) in old.iter().enumerate().filter(|(_, c)| **c != UNSET) {
            let nearest = block.costs[i];
            rows.distances_to(i, model.centres(), &[old], &mut distance);
            if factor * nearest.to_f64() >= distance[0].to_f64() {
                block.supports[i] = old;
                block.costs[i] = distance[0];
            }
        }
    }
}
