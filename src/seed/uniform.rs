//! Seeds drawn in proportion to the weights, without looking at distances.

use super::{Seeder, Seeds};
use crate::data::{Data, Frame};
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

impl<D: Data> Seeder<D> for Uniform {
    fn seed(
        &self,
        data: &D,
        frame: &Frame<D::Float>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<D::Float>> {
        // The k smallest of Exp(1) / w are a draw without replacement in proportion to w
        // (Efraimidis, Spirakis 2006).
        let mut keys: Vec<(f64, usize)> = (0..data.len())
            .filter(|&n| data.weight(n) > 0.0)
            .map(|n| (rng.exponential() / data.weight(n), n))
            .collect();
        if k < keys.len() {
            keys.select_nth_unstable_by(k, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        keys.truncate(k);
        keys.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let rows: Vec<usize> = keys.into_iter().map(|(_, n)| n).collect();
        Ok(Seeds::at_rows(data, frame, &rows, 0))
    }
}
