//! No coreset: every row as it is.

use super::{Coreset, Subset};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::View;

/// All rows with their own weights. Costs nothing.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::lwcs_k_means(25, 300).coreset(Full).build()?.fit(&data)?;
/// assert!(fit.coreset.is_none() && fit.search_labels.len() == 1_000);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Full;

impl Stage for Full {}

impl<F: Float> Coreset<F> for Full {
    fn sample(&self, _: View<'_, F>, _: &mut Rng) -> Result<Option<Subset>> {
        Ok(None)
    }
}
