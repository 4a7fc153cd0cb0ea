//! Seeds from the means of a model with fewer components.

use super::{Given, KMeansPlusPlus, Seeder, Seeds};
use crate::compiled::Compiled;
use crate::data::{Data, Frame, Rows};
use crate::error::Result;
use crate::float::Float;
use crate::rng::Rng;
use crate::stage::Stage;
use ndarray::ArrayView2;

/// Given means, and as many seeds by greedy k-means++ as are missing.
#[derive(Clone, Debug)]
pub(crate) struct Extended<F> {
    means: Given<F>,
}

impl<F: Float> Extended<F> {
    /// Means (at most k, d) in the data's own unit.
    pub(crate) fn new(means: ArrayView2<'_, F>) -> Self {
        Self {
            means: Given::new(means),
        }
    }
}

impl<F: Float> Stage for Extended<F> {
    fn settings(&self) -> String {
        format!("Extended {}", self.means.settings())
    }
}

impl<R: Rows> Seeder<R> for Extended<R::Float> {
    fn seed(
        &self,
        data: &dyn Data<Rows = R>,
        frame: &Frame<R::Float>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<R::Float>> {
        let first = self.means.seed(data, frame, k, rng)?.centres;
        let greedy = KMeansPlusPlus::greedy();
        R::Float::seed_k_means_plus_plus(&greedy, data, frame, (k, Some(&first)), rng)
    }
}
