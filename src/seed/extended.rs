//! Seeds from the means of a model with fewer components.

use super::{Given, KMeansPlusPlus, Seeder, Seeds};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Data, Frame};
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

impl<F: Float> Seeder<F> for Extended<F> {
    fn seed(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<F>> {
        let first = self.means.seed(data, frame, k, rng)?.centres;
        let greedy = KMeansPlusPlus::greedy();
        greedy.choose(data, frame, (k, Some(&first)), rng)
    }
}
