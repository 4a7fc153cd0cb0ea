//! Gaussian components: one family, with covariances of several kinds.

use super::proportions::{Mixing, Proportions};
use super::{GaussianMixture, MStep, SharedVariance, first_variance, steps_with_one_variance};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::data::{Centres, Data, Frame, Moments, Rows, Second, Subspace};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::{Likelihood, expected_total};

/// The form of the covariances of Gaussian components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Covariance {
    /// One variance for all components and columns, and equal mixing proportions: the model behind k-means.
    TiedSpherical,
    /// A variance per component.
    Spherical,
    /// A variance per component and column. On a [`Sketch`](crate::data::Sketch) the columns are the preconditioned ones.
    Diagonal,
}

impl Covariance {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::TiedSpherical, Self::Spherical, Self::Diagonal];

    /// Its name, in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TiedSpherical => "TiedSpherical",
            Self::Spherical => "Spherical",
            Self::Diagonal => "Diagonal",
        }
    }

    /// Numbers of all covariances, for `k` components in `dim` coordinates.
    pub(super) fn numbers(self, k: usize, dim: usize) -> usize {
        match self {
            Self::TiedSpherical => 1,
            Self::Spherical => k,
            Self::Diagonal => k * dim,
        }
    }
}

/// Gaussian components with covariances of one [kind](Covariance).
///
/// $$p(c, y \mid \theta) = \pi_c \mathcal N(y; \mu_c, \Sigma_c)$$
///
/// | kind | $\Sigma_c$ | $\pi_c$ | |
/// |---|---|---|---|
/// | `TiedSpherical` | $\sigma^2 I_D$ | $1 / C$ | [E1](crate::equations#e1); \[KM\] Eq. 1, \[VC\] Eq. 1 |
/// | `Spherical` | $\sigma_c^2 I_D$ | learned | [E31](crate::equations#e31); \[VC\] in the published version, \[SG\] for sketches |
/// | `Diagonal` | $\operatorname{diag}(\sigma_{c1}^2, \dots, \sigma_{cD}^2)$ | learned | [E33](crate::equations#e33); \[SG\] Eq. 14 to 19 |
///
/// **Statistics** about the current means ([E5](crate::equations#e5)). Those of disjoint sets of rows add up:
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad f_c = \sum_n w_n q_{nc} (y_n - \mu_c), \qquad s_{cj} = \sum_n w_n q_{nc} (y_{nj} - \mu_{cj})^2$$
///
/// and sums of $s_{cj}$ over coordinates, or components as well, where variances are shared.
///
/// **Update** ([E6](crate::equations#e6), [E7](crate::equations#e7), [E32](crate::equations#e32),
/// [E34](crate::equations#e34); \[VC\] Eq. 6), with $W$ the total weight:
///
/// $$\mu_c^{\text{new}} = \mu_c + \delta_c, \qquad \delta_c = \frac{f_c}{m_c}, \qquad \sigma^2_{cj} = \frac{s_{cj}}{m_c} - \delta_{cj}^2, \qquad \pi_c = \frac{m_c}{W}$$
///
/// or their means: $\sigma_c^2$ that over the coordinates, $\sigma^2$ that over components by mass as well.
///
/// On a [`Sketch`](crate::data::Sketch) every coordinate has its own mass, the weight of the rows that observe it
/// ([E28](crate::equations#e28)). A coordinate that no row of the component observes keeps its mean and variance, and is
/// counted in the report.
///
/// Variances are clamped from below ([E20](crate::equations#e20)), which keeps the free energy monotone where an added ridge
/// would not:
///
/// $$\sigma^2 \ge \max \left( 10^{-12} \bar v, (\epsilon \max |x|)^2, v_{\min} \right)$$
///
/// with $\bar v$ the mean variance of the columns and $\epsilon$ the machine epsilon of the number type. The last term is
/// for data that are all zero: the smallest variance that can be the unit of scores in that type.
///
/// **Start**: one variance for all components, once, from the first search ([E8](crate::equations#e8); \[VC\] Eq. 8), and equal
/// proportions.
///
/// $$\sigma^2 = \frac{1}{D W} \sum_n w_n \min_{c \in K(n)} \lVert y_n - \mu_c \rVert^2$$
///
/// A truncated search keeps to them for the first two M-steps, as published: its first supports are random, and so would be
/// the variances of the components.
///
/// A zero-mass component is discarded: its proportion is 0, no point can choose it again, and its mean does not change. The
/// report counts it. With [`equal_proportions`](Self::equal_proportions) it keeps mean and variance, and points can come
/// back to it.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::gmm(25).covariance(Covariance::Diagonal).build()?.fit(&data)?;
/// assert_eq!((fit.model.means().dim(), fit.model.variances().dim()), ((25, 2), (25, 2)));
/// assert!((fit.model.proportions().sum() - 1.0).abs() < 1e-9);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaussian {
    covariance: Covariance,
    mixing: Mixing,
}

impl Gaussian {
    /// Covariances of this kind, and learned mixing proportions, but for [`Covariance::TiedSpherical`].
    #[must_use]
    pub const fn new(covariance: Covariance) -> Self {
        let mixing = match covariance {
            Covariance::TiedSpherical => Mixing::Equal,
            _ => Mixing::Learned,
        };
        Self { covariance, mixing }
    }

    /// All mixing proportions are $1 / C$ and stay so.
    #[must_use]
    pub fn equal_proportions(self) -> Self {
        Self {
            mixing: Mixing::Equal,
            ..self
        }
    }
}

impl Default for Gaussian {
    fn default() -> Self {
        Self::new(Covariance::TiedSpherical)
    }
}

impl Stage for Gaussian {
    fn settings(&self) -> String {
        format!("{self:?}")
    }
}

impl<F: Float> MStep<F> for Gaussian {
    type Model = GaussianMixture<F>;
    type Statistics = Moments;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        let (variance, least) = first_variance(&frame, data.summary());
        let variances = vec![variance; self.covariance.numbers(seeds.len(), seeds.dim())];
        let proportions = Proportions::equal(seeds.len(), self.mixing);
        let mut model = GaussianMixture::assemble(self.covariance, (seeds, frame), proportions);
        // The unit is this variance itself: so far scores are exactly the squared distances.
        model.set(variances, least, variance);
        Ok(model)
    }

    fn start_from(
        &self,
        from: &Self::Model,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Option<Self::Model>> {
        let other_axes = from.frame().basis() != frame.basis();
        if from.kind() != self.covariance || other_axes && self.covariance == Covariance::Diagonal {
            return Ok(None);
        }
        let mut model: Self::Model = self.start(seeds, frame, data)?;
        let factor = (from.frame().unit() * model.frame().inverse_unit()).powi(2);
        let least = model.least_variance;
        let rescaled = from.scaled_variances().iter();
        let rescaled: Vec<f64> = rescaled.map(|v| (v * factor).max(least)).collect();
        if self.mixing == Mixing::Learned {
            model.proportions = from.proportions.to_learn();
        }
        let unit = model.mean_of(&rescaled);
        model.set(rescaled, least, unit);
        Ok(Some(model))
    }

    fn restricted_steps(&self, truncated: bool) -> usize {
        match self.covariance {
            Covariance::TiedSpherical => 0,
            _ => steps_with_one_variance(truncated),
        }
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let variance = (first.best / first.entries).max(model.least_variance);
        model.set_all(variance);
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        let second = match self.covariance {
            Covariance::TiedSpherical => Second::Total,
            Covariance::Spherical => Second::PerComponent,
            Covariance::Diagonal => Second::PerCoordinate,
        };
        Moments::zeros(model.centres().len(), model.centres().dim(), second)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        moments: &mut Self::Statistics,
    ) {
        if self.covariance == Covariance::TiedSpherical {
            // Scores are squared distances.
            let (weight, squared) = expected_total(rows, block);
            moments.add_total(squared, weight * rows.entries() as f64);
        }
        rows.accumulate(block, model.centres(), moments);
    }

    fn update(&self, moments: Self::Statistics, model: &mut Self::Model, restricted: bool) {
        let least = model.least_variance;
        let squared = moments.about_new_means(model.move_centres());
        let (k, dim) = (model.centres().len(), model.centres().dim());
        let shared = moments.variance_of_all(&squared).max(least);
        if restricted || self.covariance == Covariance::TiedSpherical {
            return model.set_all(shared);
        }
        let mut variances = model.scaled_variances().to_vec();
        let per_component = variances.len() / k;
        for (place, variance) in variances.iter_mut().enumerate() {
            let (c, j) = (place / per_component, place % per_component);
            let (squared, mass) = moments.second_of(&squared, c, j);
            if mass > 0.0 {
                *variance = (squared / mass).max(least);
            }
        }
        if self.mixing == Mixing::Learned {
            model.proportions = Proportions::learned((0..k).map(|c| moments.mass(c)));
        }
        debug_assert_eq!(variances.len(), self.covariance.numbers(k, dim));
        model.set(variances, least, shared);
    }

    fn shared_variance(&self) -> Option<&dyn SharedVariance<F, Self::Model, Self::Statistics>> {
        (self.covariance == Covariance::TiedSpherical).then_some(self)
    }
}

impl<F: Float> SharedVariance<F, GaussianMixture<F>, Moments> for Gaussian {
    fn add_residual(&self, moments: &mut Moments, residual: f64) {
        moments.add_total(residual, 0.0);
    }

    fn statistics_of(&self, moments: Moments) -> Moments {
        moments
    }

    fn place(&self, model: &mut GaussianMixture<F>, centres: Centres<F>) {
        *model.move_centres() = centres;
    }

    fn project(&self, model: &GaussianMixture<F>, subspace: &Subspace<F>) -> GaussianMixture<F> {
        let place = (subspace.enter(model.centres()), subspace.frame());
        let mut projected =
            GaussianMixture::assemble(self.covariance, place, model.proportions.clone());
        projected.least_variance = model.least_variance;
        projected.set_all(model.scaled_variances()[0]);
        projected
    }

    fn lift(
        &self,
        model: &mut GaussianMixture<F>,
        projected: &GaussianMixture<F>,
        subspace: &Subspace<F>,
    ) {
        *model.move_centres() = subspace.leave(projected.centres());
        model.set_all(projected.scaled_variances()[0]);
    }
}
