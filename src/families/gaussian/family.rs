//! Gaussian components: one family, with covariances of several kinds.

use super::common::Common;
use super::covariance::Covariance;
use super::covariances::{Covariances, Parameters};
use super::floors::Floors;
use super::kind::{Scales, Step};
use super::mixture::GaussianMixture;
use super::prior::{Advance, Prior};
use crate::base::cancel::{Cancel, unwatched};
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::data::{Data, RowKind};
use crate::families::proportions::{Mixing, Proportions};
use crate::families::variances::{
    STEPS_WITH_ONE_VARIANCE, relative_variances, resolved_beside, variance_of,
};
use crate::m_step::{MStep, Moments, Needs, Started};
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, Frame, Rows};

/// Gaussian components with covariances of one [kind](Covariance).
///
/// $$p(c, y \mid \theta) = \pi_c \mathcal N(y; \mu_c, \Sigma_c)$$
///
/// | kind | $\Sigma_c$ | $\pi_c$ | |
/// |---|---|---|---|
/// | `TiedSpherical` | $\sigma^2 I_D$ | $1 / C$ | [E1](crate::equations#e1); \[KM\] Eq. 2, \[VC\] Eq. 1 |
/// | `Spherical` | $\sigma_c^2 I_D$ | learned | [E31](crate::equations#e31); \[VC\] in the published version, \[SG\] for sketches |
/// | `Diagonal` | $\operatorname{diag}(\sigma_{c1}^2, \dots, \sigma_{cD}^2)$ | learned | [E33](crate::equations#e33); \[SG\] Eq. 14 to 19 |
/// | `Tied` | $\Sigma$ | learned | [E52](crate::equations#e52) |
/// | `Full` | $\Sigma_c$ | learned | [E52](crate::equations#e52) |
/// | `Factors(q)` | $W_c W_c^T + \operatorname{diag}(\psi_{c1}, \dots, \psi_{cD})$ | learned | [E58](crate::equations#e58) |
///
/// **Update** from sums about the current means ([E5](crate::equations#e5), [E6](crate::equations#e6),
/// [E7](crate::equations#e7), [E32](crate::equations#e32), [E34](crate::equations#e34); \[VC\] Eq. 6). On a
/// [`Sketch`](crate::data::Sketch) every coordinate has its own mass ([E28](crate::equations#e28)). One that no row of the
/// component observes keeps its mean and variance, and is counted in the report. Where values are missing, full, tied and low-rank
/// covariances follow from their conditional expectations ([E55](crate::equations#e55)). Variances are clamped from below
/// ([E20](crate::equations#e20)), in matrices those of every direction ([E52](crate::equations#e52)); a clamp keeps the free
/// energy monotone, where an added ridge would not; a [prior](Self::prior) does as well. The report counts components that this
/// [holds](crate::Report::at_floor).
///
/// **Start**: one variance for all components, once, from the first search ([E8](crate::equations#e8); \[VC\] Eq. 8), or those of
/// standardised columns where [`gmm`](crate::algorithms::gmm) begins at their means; and equal proportions. A truncated search keeps to
/// one variance for the first two M-steps, as published: its first supports are random, and so would be the variances of the components.
///
/// A component without mass is discarded: its proportion is 0, no point can choose it again, and its mean does not change. The
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    covariance: Covariance,
    /// The shares of components that have not all one variance.
    mixing: Mixing,
    prior: Option<Prior>,
}

impl Gaussian {
    /// Covariances of this kind, and learned mixing proportions, except with [`Covariance::TiedSpherical`].
    #[must_use]
    pub const fn new(covariance: Covariance) -> Self {
        Self {
            covariance,
            mixing: Mixing::Learned,
            prior: None,
        }
    }

    /// The kind of the covariances.
    pub(in crate::families) fn kind(&self) -> Covariance {
        self.covariance
    }

    /// With covariances of another kind.
    pub(crate) fn with(self, covariance: Covariance) -> Self {
        Self { covariance, ..self }
    }

    fn mixing(&self) -> Mixing {
        if self.covariance.is_one_variance() {
            Mixing::Equal
        } else {
            self.mixing
        }
    }

    /// All mixing proportions are $1 / C$ and stay so.
    #[must_use]
    pub fn equal_proportions(self) -> Self {
        Self {
            mixing: Mixing::Equal,
            ..self
        }
    }

    /// With rows in advance ([E59](crate::equations#e59)). Default: none, and maximum likelihood.
    #[must_use]
    pub const fn prior(self, prior: Prior) -> Self {
        Self {
            prior: Some(prior),
            ..self
        }
    }

    /// An error unless components may have these columns of a product. One variance would keep their shares equal.
    pub(in crate::families) fn check_as_part(&self, clusters: usize) -> Result<()> {
        let rule = "must be another one of numbers in a table: use Spherical";
        let suits = !self.covariance.is_one_variance();
        require(suits, "covariance", format!("{:?}", self.covariance), rule)?;
        self.check(clusters)
    }

    /// Carries variances and proportions over to parameters at seeds from others, unless those are of another kind: whether it did.
    fn carry_over<F: Float>(
        &self,
        from: &Parameters<F>,
        theta: &mut Parameters<F>,
        data: &dyn Data<F>,
    ) -> Result<bool> {
        let common = &mut theta.common;
        let theirs = &from.common.frame;
        let other_axes = theirs.basis() != common.frame.basis();
        if from.covariance() != self.covariance || other_axes && self.covariance.is_by_column() {
            return Ok(false);
        }
        let dim = common.dim();
        let ours = &common.frame;
        let ratios = (0..dim).map(|j| ours.enter_length(j, theirs.unit_of(j)));
        let ratios: Vec<f64> = ratios.collect();
        let units = Scales {
            mean: ratios.iter().map(|ratio| ratio * ratio).sum::<f64>() / dim as f64,
            ratios,
            same: theirs == ours,
            watch: data.cancel(),
        };
        let least = common
            .floors
            .least
            .min(from.common.floors.least * units.mean);
        common.floors.least = least.max(resolved_beside::<F>(0.0));
        let kind = theta.covariances.kind_mut();
        kind.carry_over(from.covariances.kind(), common, &units)?;
        if self.mixing() == Mixing::Learned {
            let weight = data.summary().total_weight;
            let added = common.prior.proportions;
            let shares = &from.common.proportions.values;
            common.proportions = if added > 0.0 && shares.contains(&0.0) {
                // The prior has rows of components that were discarded.
                Proportions::learned(shares.iter().map(|p| p * weight + added))
            } else {
                from.common.proportions.clone()
            };
            common.proportions.mixing = Mixing::Learned;
        }
        theta.common.unit = theta.mean_variance(data.cancel())?;
        theta.covariances.kind_mut().start(&theta.common);
        Ok(true)
    }
}

impl Default for Gaussian {
    fn default() -> Self {
        Self::new(Covariance::TiedSpherical)
    }
}

impl Stage for Gaussian {
    fn check(&self, _clusters: usize) -> Result<()> {
        self.covariance.check_columns(usize::MAX)?;
        self.prior.map_or(Ok(()), |prior| prior.check())
    }
}

impl<F: Float> MStep<F> for Gaussian {
    type Model = GaussianMixture<F>;

    fn start(
        &self,
        mut seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let spread = seeds.take_spread();
        let variance = variance_of(&frame, data.summary());
        let least = resolved_beside::<F>(variance);
        let rule = "needs all coordinates of a row, or rows with missing values: use Diagonal or Spherical for a sketch or sparse rows";
        let missing = data.kind() == RowKind::Partial && frame.basis().is_none();
        let suits = missing || !data.is_ragged() || !self.covariance.has_dependent_columns();
        require(suits, "covariance", format!("{:?}", self.covariance), rule)?;
        self.covariance.check_columns(data.dim())?;
        let by_column = self.covariance.is_by_column() && frame.basis().is_none();
        let relative = by_column.then(|| relative_variances(&frame, data.summary()));
        let prior = Advance::of(self.prior, self.covariance, seeds.len(), &frame, data)?;
        let covariances = Covariances::new(self.covariance, &seeds);
        let common = Common {
            proportions: Proportions::equal(seeds.len(), self.mixing()),
            frame,
            centres: seeds,
            means: None,
            unit: 1.0,
            floors: Floors {
                least,
                relative: relative.unwrap_or_default(),
            },
            prior,
        };
        let mut theta = Parameters {
            common,
            covariances,
        };
        // The unit is this variance itself: so far costs are exactly the squared distances, and of rows with a ridge the expected ones.
        theta.set_all(variance.max(least));
        let at_seeds = theta.clone();
        let mut goes_on = match before {
            Some(before) => self.carry_over(&before.theta, &mut theta, data)?,
            None if by_column && !spread.is_empty() => {
                theta.set_columns(&spread);
                true
            }
            None => false,
        };
        // Under components that are narrower than a ridge allows no row would have a share.
        let kind = theta.covariances.kind();
        let prior = &theta.common.prior;
        let dim = theta.common.dim();
        let is_narrow = |c| prior.ridge_trace(dim, || kind.precisions(c)) > dim as f64;
        if kind.loadings().is_empty() && (0..theta.common.k()).any(is_narrow) {
            (theta, goes_on) = (at_seeds, false);
        }
        let model = GaussianMixture::new(theta, data.cancel())?;
        Ok(Started { model, goes_on })
    }

    fn needs(&self) -> Needs {
        let several = usize::from(!self.covariance.is_one_variance());
        Needs {
            // Loadings start with the variance.
            searches_first: self.covariance.factors().is_some(),
            restricted_steps: several * STEPS_WITH_ONE_VARIANCE,
            variances: self.covariance.variances(),
            ..Needs::default()
        }
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let theta = &mut model.theta;
        let common = &mut theta.common;
        // The costs of one variance are squared distances alone.
        let squared = if model.costs.are_squared() {
            first.best + first.entries * common.prior.ridge_of(0)
        } else {
            first.best
        };
        let kind = theta.covariances.kind_mut();
        let variance = kind.one_variance(common, squared, first.entries);
        // The variance of the data may be that of one far value.
        if variance > 0.0 {
            common.floors.least = common.floors.least.min(resolved_beside::<F>(variance));
        }
        common.unit = variance.max(kind.floor_below(common, variance));
        // No matrix is factored: it is the same in every direction.
        kind.set_all(&[common.unit]);
        kind.start(common);
        unwatched(model.renew(None));
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        model.theta.statistics()
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        let theta = &model.theta;
        let kind = theta.covariances.kind();
        let about = kind.about(&theta.common, &model.costs);
        sums.add_about(rows, block, &about);
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        model.forget();
        let common = &mut model.theta.common;
        if self.mixing() == Mixing::Learned && !restricted {
            common.proportions = common.prior.proportions_of(&sums.mass);
        }
        let kind = model.theta.covariances.kind_mut();
        let step = Step {
            costs: &model.costs,
            sums,
            restricted: restricted || model.costs.are_squared(),
            cancel,
        };
        kind.update(common, step)?;
        model.renew(cancel)
    }
}
