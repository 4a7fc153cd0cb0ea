//! Gaussian components: one family, with covariances of several kinds.

use super::parameters::Parameters;
use super::proportions::{Mixing, Proportions};
use super::{
    Covariance, GaussianMixture, MStep, first_variance, steps_with_one_variance, variances_of,
};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::base::{linalg, parallel};
use crate::data::Data;
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::model::posterior::{Likelihood, expected_total};
use crate::rows::{Centres, Frame, Rows};

/// The least variance of a full covariance in any direction, as a share of those of the columns: below, sums of products have
/// too few digits left in it.
const LEAST_SHARE: f64 = 1e-8;

/// Gaussian components with covariances of one [kind](Covariance).
///
/// $$p(c, y \mid \theta) = \pi_c \mathcal N(y; \mu_c, \Sigma_c)$$
///
/// | kind | $\Sigma_c$ | $\pi_c$ | |
/// |---|---|---|---|
/// | `TiedSpherical` | $\sigma^2 I_D$ | $1 / C$ | [E1](crate::equations#e1); \[KM\] Eq. 1, \[VC\] Eq. 1 |
/// | `Spherical` | $\sigma_c^2 I_D$ | learned | [E31](crate::equations#e31); \[VC\] in the published version, \[SG\] for sketches |
/// | `Diagonal` | $\operatorname{diag}(\sigma_{c1}^2, \dots, \sigma_{cD}^2)$ | learned | [E33](crate::equations#e33); \[SG\] Eq. 14 to 19 |
/// | `Tied` | $\Sigma$ | learned | [E52](crate::equations#e52) |
/// | `Full` | $\Sigma_c$ | learned | [E52](crate::equations#e52) |
///
/// **Update** from sums about the current means ([E5](crate::equations#e5), [E6](crate::equations#e6),
/// [E7](crate::equations#e7), [E32](crate::equations#e32), [E34](crate::equations#e34); \[VC\] Eq. 6). On a
/// [`Sketch`](crate::data::Sketch) every coordinate has its own mass ([E28](crate::equations#e28)). One that no row of the
/// component observes keeps its mean and variance, and is counted in the report. Variances are clamped from below
/// ([E20](crate::equations#e20)), in matrices those of every direction ([E52](crate::equations#e52)).
///
/// **Start**: one variance for all components, once, from the first search ([E8](crate::equations#e8); \[VC\] Eq. 8), and equal
/// proportions. A truncated search keeps to them for the first two M-steps, as published: its first supports are random, and
/// so would be the variances of the components.
///
/// A zero-mass component is discarded: its proportion is 0, no point can choose it again, and its mean does not change. The
/// report counts it. With [`equal_proportions`](Self::equal_proportions) it keeps mean and variance, and points can come
/// back to it. With one variance for all it gets a row ([E54](crate::equations#e54)).
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

/// Variances, or the triangles of covariances, that are clamped from below (E20, E52).
fn clamped<F: Float>(mut variances: Vec<f64>, theta: &Parameters<F>) -> Vec<f64> {
    if !theta.covariance.has_pairs() {
        variances
            .iter_mut()
            .for_each(|v| *v = v.max(theta.least_variance));
        return variances;
    }
    let size = theta.dim() * theta.dim();
    parallel::map_chunks(&mut variances, size, |_, _, matrix| {
        matrix.copy_from_slice(&linalg::whitening(matrix, &theta.least_variances));
    });
    variances
}

impl Default for Gaussian {
    fn default() -> Self {
        Self::new(Covariance::TiedSpherical)
    }
}

impl Stage for Gaussian {}

impl<F: Float> MStep<F> for Gaussian {
    type Model = GaussianMixture<F>;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        let (variance, mut least) = first_variance(&frame, data.summary());
        if self.covariance.has_pairs() && data.is_sparse() {
            let rule = "works on dense rows alone, not on a sketch";
            let kind = format!("{:?}", self.covariance);
            return Err(Error::parameter("covariance", kind, rule));
        }
        let proportions = Proportions::equal(seeds.len(), self.mixing);
        let mut theta = Parameters::new(self.covariance, seeds, frame, proportions);
        if self.covariance.has_pairs() {
            let columns = variances_of(&theta.frame, data.summary());
            theta.least_variances = columns.map(|v| (LEAST_SHARE * v).max(least)).collect();
            // One variance for all directions is none of those that are clamped later.
            least = theta.least_variances.iter().copied().fold(least, f64::max);
        }
        theta.least_variance = least;
        // The unit is this variance itself: so far scores are exactly the squared distances.
        (theta.spread, theta.unit) = (theta.isotropic(variance), variance);
        Ok(GaussianMixture::new(theta))
    }

    fn start_from(
        &self,
        from: &Self::Model,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Option<Self::Model>> {
        let from = &from.theta;
        let other_axes = from.frame.basis() != frame.basis();
        if from.covariance != self.covariance
            || other_axes && self.covariance == Covariance::Diagonal
        {
            return Ok(None);
        }
        let mut model: Self::Model = self.start(seeds, frame, data)?;
        let theta = &mut model.theta;
        let factor = (from.frame.unit() * theta.frame.inverse_unit()).powi(2);
        let same = from.frame == theta.frame;
        theta.spread = match self.covariance.has_pairs() {
            true if same && from.least_variances == theta.least_variances => from.spread.clone(),
            _ => {
                let covariances = from.covariances().into_iter();
                clamped(covariances.map(|v| v * factor).collect(), theta)
            }
        };
        if self.mixing == Mixing::Learned {
            theta.proportions = from.proportions.to_learn();
        }
        if same {
            theta.exact_means.clone_from(&from.exact_means);
        }
        theta.unit = theta.mean_variance();
        Ok(Some(GaussianMixture::new(model.theta)))
    }

    fn restricted_steps(&self, truncated: bool) -> usize {
        match self.covariance.is_one_variance() {
            true => 0,
            false => steps_with_one_variance(truncated),
        }
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let variance = first.best / first.entries;
        model.set_all(variance);
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        Moments::zeros(model.theta.k(), model.theta.dim(), self.covariance.second())
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        if self.covariance.has_pairs() {
            let theta = &model.theta;
            let mean = |c: usize| theta.exact_mean(c);
            return sums.add_pairs(rows, block, mean, |_| None, &theta.origin());
        }
        if self.covariance.is_one_variance() {
            // Scores are squared distances.
            let (weight, squared) = expected_total(rows, block);
            sums.add_total(squared, weight * rows.entries() as f64);
        }
        rows.accumulate(block, &model.theta.centres, sums);
    }

    fn update(&self, sums: Moments, model: &mut Self::Model, restricted: bool) {
        let (dim, mass) = (model.theta.dim(), sums.masses());
        // The new variances where there is mass, and the one that all would share.
        let (variances, shared) = match self.covariance.has_pairs() {
            true => move_means(&sums, model),
            false => {
                let squared = sums.about_new_means(model.move_centres());
                let mut variances = model.theta.spread.clone();
                let per_component = self.covariance.numbers(1, dim);
                for (place, variance) in variances.iter_mut().enumerate() {
                    let (c, j) = (place / per_component, place % per_component);
                    let (squared, mass) = sums.second_of(&squared, c, j);
                    if mass > 0.0 {
                        *variance = squared / mass;
                    }
                }
                (variances, sums.variance_of_all(&squared))
            }
        };
        let shared = shared.max(model.theta.least_variance);
        if restricted || self.covariance.is_one_variance() {
            return model.set_all(shared);
        }
        if self.mixing == Mixing::Learned {
            model.theta.proportions = Proportions::learned(mass.iter().copied());
        }
        let mut variances = clamped(variances, &model.theta);
        if self.covariance.has_pairs() && !self.covariance.is_tied() {
            // A component without mass keeps its covariance.
            let own = variances.chunks_exact_mut(dim * dim).enumerate();
            for (c, own) in own.filter(|(c, _)| mass[*c] <= 0.0) {
                own.copy_from_slice(model.theta.own(c));
            }
        }
        model.set(variances, shared);
    }

    fn with_centres(
        &self,
        model: &Self::Model,
        centres: Centres<F>,
        frame: Frame<F>,
    ) -> Option<Self::Model> {
        self.covariance.is_one_variance().then(|| {
            let theta = &model.theta;
            let proportions = theta.proportions.clone();
            let mut moved = Parameters::new(self.covariance, centres, frame, proportions);
            moved.least_variance = theta.least_variance;
            (moved.spread, moved.unit) = (theta.spread.clone(), theta.unit);
            GaussianMixture::new(moved)
        })
    }
}

/// Moves every mean to that of its rows. Returns the lower halves of the covariances, one (d, d) or one for each component
/// (k, d, d), and the mean variance of a column.
fn move_means<F: Float>(sums: &Moments, model: &mut GaussianMixture<F>) -> (Vec<f64>, f64) {
    let (k, dim) = (model.theta.k(), model.theta.dim());
    let steps = (0..k).flat_map(|c| {
        let mass = sums.mass(c);
        let step = move |first: &f64| if mass > 0.0 { first / mass } else { 0.0 };
        sums.first(c)[..dim].iter().map(step)
    });
    let (steps, origin) = (steps.collect::<Vec<f64>>(), model.theta.origin());
    model.step(&steps);
    let total: f64 = sums.masses().iter().sum();
    let (masses, mut matrices) = match sums.kind() {
        SecondMoments::Pairs => (
            vec![total],
            vec![sums.within(&origin, &model.theta.exact_means, &steps)],
        ),
        _ => (
            sums.masses().to_vec(),
            parallel::map(k, |c| sums.about(c, &steps[c * dim..][..dim])),
        ),
    };
    let traces = matrices.iter().flat_map(|own| own.iter().step_by(dim + 1));
    let shared = traces.sum::<f64>() / (total * dim as f64);
    for (matrix, mass) in matrices.iter_mut().zip(masses) {
        let mass = mass.max(f64::MIN_POSITIVE);
        matrix.iter_mut().for_each(|x| *x /= mass);
    }
    (matrices.concat(), shared)
}
