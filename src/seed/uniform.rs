//! Seeds drawn in proportion to the weights, without any distances.

use super::{Seeder, Seeds, by_weight};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::View;

/// `k` distinct rows, drawn one after the other in proportion to their weight. No distance evaluations.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::k_means(25).seeder(UniformSeeder).build()?.fit(&data)?;
/// assert_eq!(fit.report.evaluations.seeding, 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uniform;

impl Stage for Uniform {}

impl<F: Float> Seeder<F> for Uniform {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let rows = by_weight(view.data, &[], k, rng);
        Seeds::at_rows(view, &rows, 0)
    }
}
