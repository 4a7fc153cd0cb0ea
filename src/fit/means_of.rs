//! Seeds from another fit.

use super::builder::Clusterer;
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, View};
use crate::families::Gaussian;
use crate::m_step::MStep;
use crate::model::Mixture;
use crate::seed::{Seeder, Seeds};
use std::fmt;

/// Seeds that are the means of another fit to the same rows: with k-means for a mixture, the mixture starts near a good
/// clustering.
///
/// EM keeps to the neighborhood that its seeds are in. Split and merge takes [`fast`](crate::algorithms::fast) out of most of the
/// poor ones, so [`gmm`](crate::algorithms::gmm) begins at its means, and other mixtures can. The other fit has a random stream of its
/// own for every restart; its seed, its checkpoint and the model that it starts from are not used.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let seeder = MeansOf::new(algorithms::fast(25).build()?);
/// let mixture = algorithms::sparsified_gmm(25).seeder(seeder);
/// let fit = mixture.build()?.fit(&data)?;
/// assert!(metrics::matched_rmse(fit.model.means(), birch.centres.view())? < 1.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct MeansOf<F: Float, M = Gaussian>(Clusterer<F, M>);

impl<F: Float, M: Stage> fmt::Debug for MeansOf<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MeansOf").field(&self.0).finish()
    }
}

impl<F: Float, M: MStep<F>> MeansOf<F, M> {
    /// Seeds from a clusterer with as many clusters.
    #[must_use]
    pub fn new(mut clusterer: Clusterer<F, M>) -> Self {
        // The data has the flag of the fit which this is a part of.
        let settings = &mut clusterer.pipeline.settings;
        (settings.cancel, settings.checkpoint, settings.warm) = (None, None, None);
        settings.seed = 0;
        Self(clusterer)
    }
}

impl<F: Float, M: MStep<F>> Stage for MeansOf<F, M> {
    #[inline(never)]
    fn check(&self, clusters: usize) -> Result<()> {
        let seeding_clusters = self.0.pipeline.settings.clusters;
        let name = "clusters of the fit for the seeds and of this fit";
        let value = format!("{seeding_clusters} and {clusters}");
        require(seeding_clusters == clusters, name, value, "must be equal")
    }
}

impl<F: Float, M: MStep<F> + Clone> Seeder<F> for MeansOf<F, M> {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, _: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let mut other = self.0.clone();
        other.pipeline.settings.seed = rng.seed();
        let fit = other.fit(view.data)?;
        Ok(Seeds {
            centres: Centres::enter(fit.model.means().view(), view.frame),
            evaluations: fit.report.evaluations.total(),
        })
    }
}
