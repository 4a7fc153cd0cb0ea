//! Seeds drawn in proportion to the weights, without any distances.

use super::{Seeder, Seeds, by_weight};
use crate::data::{Data, Frame, Rows};
use crate::error::Result;
use crate::rng::Rng;
use crate::stage::Stage;

/// `k` distinct rows, drawn one after the other in proportion to their weight. No distance evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uniform;

impl Uniform {
    /// The only one there is.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Stage for Uniform {
    fn check(&self, _clusters: usize) -> Result<()> {
        Ok(())
    }
}

impl<R: Rows> Seeder<R> for Uniform {
    fn seed(
        &self,
        data: &dyn Data<Rows = R>,
        frame: &Frame<R::Float>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<R::Float>> {
        let rows = by_weight(data, &[], k, rng);
        Ok(Seeds::at_rows(data, frame, &rows, 0))
    }
}
