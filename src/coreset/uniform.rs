//! Uniform subsampling, with the weights that keep sums right (E16).

use super::{Coreset, Subset};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Data, View};

/// Rows drawn uniformly without replacement among those of positive weight ([E16](crate::equations#e16)). No distance
/// evaluations.
///
/// With $n_+$ rows of positive weight, each is drawn with probability $N' / n_+$ and stands in the coreset with
/// weight $w_n n_+ / N'$.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let coreset = UniformCoreset::new(250);
/// let fit = algorithms::k_means(25).coreset(coreset).build()?.fit(&data)?;
/// let subset = fit.coreset.as_ref().expect("fewer rows");
/// assert!(subset.weights.iter().all(|w| *w == 4.0));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    size: usize,
}

impl Uniform {
    /// A coreset of `size` rows, $N'$, at least 1. If the data has at most `size` rows, the coreset is all rows as they are.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { size }
    }
}

impl Stage for Uniform {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("coreset", self.size)
    }
}

impl<F: Float> Coreset<F> for Uniform {
    #[inline(never)]
    fn sample(&self, view: View<'_, F>, rng: &mut Rng) -> Result<Option<Subset>> {
        let data = view.data;
        if self.size >= data.summary().rows {
            return Ok(None);
        }
        let scale = data.summary().rows as f64 / self.size as f64;
        let rows = some_rows(data, self.size, rng);
        Ok(Some(Subset {
            weights: rows.iter().map(|&n| data.weight(n) * scale).collect(),
            rows,
            evaluations: 0,
        }))
    }
}

/// `size` of the rows of positive weight, in order: each such set has the same chance.
///
/// Selection sampling: each row in turn is taken with a probability by which exactly `size` rows are taken in the end.
pub(crate) fn some_rows<F: Float>(data: &dyn Data<F>, size: usize, rng: &mut Rng) -> Vec<usize> {
    let mut left = data.summary().rows;
    let mut chosen = Vec::with_capacity(size);
    for n in (0..data.len()).filter(|&n| data.weight(n) > 0.0) {
        if rng.below(left) < size - chosen.len() {
            chosen.push(n);
        }
        left = left.saturating_sub(1);
    }
    chosen
}
