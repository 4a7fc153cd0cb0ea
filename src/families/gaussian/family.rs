//! Gaussian components: one family, with covariances of several kinds.

use super::covariance::Covariance;
use super::factors;
use super::mixture::GaussianMixture;
use super::parameters::Parameters;
use super::prior::{Advance, Prior};
use crate::base::cancel::{Cancel, Watch, unwatched};
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::base::{linalg, parallel};
use crate::costs::Cost;
use crate::data::{Data, RowKind};
use crate::families::proportions::{Mixing, Proportions};
use crate::families::variances::{
    ROUNDING, STEPS_WITH_ONE_VARIANCE, relative_variances, resolved_beside, variance_of,
};
use crate::kernels::stride;
use crate::m_step::{MStep, Moments, Needs, SecondMoments, Started};
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, FARTHEST, Frame, Rows};

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
/// **Start**: one variance for all components, once, from the first search ([E8](crate::equations#e8); \[VC\] Eq. 8), and equal
/// proportions. A truncated search keeps to them for the first two M-steps, as published: its first supports are random, and
/// so would be the variances of the components.
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
    mixing: Mixing,
    prior: Option<Prior>,
}

impl Gaussian {
    /// Covariances of this kind, and learned mixing proportions, except with [`Covariance::TiedSpherical`].
    #[must_use]
    pub const fn new(covariance: Covariance) -> Self {
        let mixing = match covariance {
            Covariance::TiedSpherical => Mixing::Equal,
            _ => Mixing::Learned,
        };
        Self {
            covariance,
            mixing,
            prior: None,
        }
    }

    /// The kind of the covariances.
    pub(in crate::families) fn kind(&self) -> Covariance {
        self.covariance
    }

    /// With covariances of another kind.
    pub(crate) fn with(self, covariance: Covariance) -> Self {
        let equal = !self.covariance.is_one_variance() && self.mixing == Mixing::Equal;
        let other = if equal {
            Self::new(covariance).equal_proportions()
        } else {
            Self::new(covariance)
        };
        Self {
            prior: self.prior,
            ..other
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

    /// Carries variances and proportions over to parameters at seeds from others, unless those are of another kind: whether it did.
    fn carry_over<F: Float>(
        &self,
        from: &Parameters<F>,
        theta: &mut Parameters<F>,
        data: &dyn Data<F>,
    ) -> Result<bool> {
        let other_axes = from.frame.basis() != theta.frame.basis();
        if from.covariance != self.covariance
            || other_axes && self.covariance == Covariance::Diagonal
        {
            return Ok(false);
        }
        let dim = theta.dim();
        let ours = theta.frame.clone();
        let theirs = &from.frame;
        let ratio = |j: usize| ours.enter_length(j, theirs.unit_of(j));
        let factor = |i: usize, j: usize| ratio(i) * ratio(j);
        let mean_factor = (0..dim).map(|j| factor(j, j)).sum::<f64>() / dim as f64;
        let same = from.frame == theta.frame;
        // One variance for all columns, those of the columns, or of pairs of them.
        let raised = |values: &[f64], columns: usize, least: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let raise = |place: usize| {
                let i = place / dim % dim;
                let j = place % dim;
                let factor = match columns {
                    0 => mean_factor,
                    1 => factor(j, j),
                    _ => factor(i, j),
                };
                (values[place] * factor).max(least(j))
            };
            (0..values.len()).map(raise).collect()
        };
        theta.least_variance = theta.least_variance.min(from.least_variance * mean_factor);
        theta.least_variance = theta.least_variance.max(resolved_beside::<F>(0.0));
        theta.least_variances = raised(&from.least_variances, 1, &|j| theta.least(j));
        theta.spread = match self.covariance.has_pairs() {
            true if same && from.least_variances == theta.least_variances => from.spread.clone(),
            true => {
                let covariances = from.covariances(data.cancel())?;
                let scaled = raised(&covariances, 2, &|_| f64::NEG_INFINITY);
                clamped(scaled, theta, data.cancel())?
            }
            false => {
                let columns = usize::from(self.covariance.numbers(1, dim) == dim);
                raised(&from.spread, columns, &|j| theta.least(j))
            }
        };
        if self.mixing == Mixing::Learned {
            let weight = data.summary().total_weight;
            let added = theta.prior.proportions;
            let shares = &from.proportions.values;
            theta.proportions = if added > 0.0 && shares.contains(&0.0) {
                // The prior has rows of components that were discarded.
                Proportions::learned(shares.iter().map(|p| p * weight + added))
            } else {
                from.proportions.clone()
            };
            theta.proportions.mixing = Mixing::Learned;
        }
        if same {
            theta.exact_means.clone_from(&from.exact_means);
        }
        let wide = stride(dim);
        let loadings = from.loadings.iter().enumerate();
        let scaled = loadings.map(|(place, w)| match place % wide {
            j if j < dim => F::from_f64(w.to_f64() * ratio(j)),
            _ => F::zero(),
        });
        theta.loadings = scaled.collect();
        theta.unit = theta.mean_variance(data.cancel())?;
        if self.covariance.factors() > 0 && theta.loadings.is_empty() {
            theta.start_factors();
        }
        Ok(true)
    }
}

/// Second moments about a fixed point are kept from pass to pass up to this many roundings of shares in the variance of the
/// narrowest direction.
const LEAST_SHARED: f64 = 1e-2;

/// The triangles of covariances that are clamped from below (E52).
fn clamped<F: Float>(
    mut covariances: Vec<f64>,
    theta: &Parameters<F>,
    watch: Watch<'_>,
) -> Result<Vec<f64>> {
    let size = theta.dim() * theta.dim();
    let all = parallel::map_chunks(&mut covariances, size, |c, _, matrix| {
        let found = linalg::whitening(matrix, theta.least_of(c), watch)?;
        matrix.copy_from_slice(&found);
        Ok(())
    });
    parallel::all(all)?;
    Ok(covariances)
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
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let variance = variance_of(&frame, data.summary());
        let least = resolved_beside::<F>(variance);
        let rule = "needs all coordinates of a row, or rows with missing values: use Diagonal or Spherical for a sketch or sparse rows";
        let missing = data.kind() != RowKind::Sparse && frame.basis().is_none();
        let suits = missing || !data.is_sparse() || !self.covariance.has_dependent_columns();
        require(suits, "covariance", format!("{:?}", self.covariance), rule)?;
        self.covariance.check_columns(data.dim())?;
        let proportions = Proportions::equal(seeds.len(), self.mixing);
        let mut theta = Parameters::new(self.covariance, seeds, frame, proportions);
        theta.least_variance = least;
        if self.covariance.is_by_column() && theta.frame.basis().is_none() {
            theta.relative = relative_variances(&theta.frame, data.summary());
        }
        theta.prior = Advance::of(self.prior, self.covariance, theta.k(), &theta.frame, data)?;
        // The unit is this variance itself: so far costs are exactly the squared distances, and of rows with a ridge the expected ones.
        theta.set_all(variance.max(least));
        let at_seeds = theta.clone();
        let mut goes_on = match before {
            Some(before) => self.carry_over(&before.theta, &mut theta, data)?,
            None => false,
        };
        // Under components that are narrower than a ridge allows no row would have a share.
        let is_narrow = |c| theta.ridge_trace(c) > theta.dim() as f64;
        if self.covariance.factors() == 0 && (0..theta.k()).any(is_narrow) {
            (theta, goes_on) = (at_seeds, false);
        }
        let model = GaussianMixture::new(theta, data.cancel())?;
        Ok(Started { model, goes_on })
    }

    fn needs(&self) -> Needs {
        let several = !self.covariance.is_one_variance();
        Needs {
            // Loadings start with the variance.
            searches_first: self.covariance.factors() > 0,
            restricted_steps: usize::from(several) * STEPS_WITH_ONE_VARIANCE,
            ..Needs::default()
        }
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let theta = &mut model.theta;
        // The costs of one variance are squared distances alone.
        let squared = if self.covariance.is_one_variance() {
            first.best + first.entries * theta.prior.ridge_of(0)
        } else {
            first.best
        };
        let variance = theta.with_prior(squared, first.entries);
        // The variance of the data may be that of one far value.
        if variance > 0.0 {
            theta.least_variance = theta.least_variance.min(resolved_beside::<F>(variance));
        }
        let floor = theta.floor_below(variance);
        // No matrix is factored: it is the same in every direction.
        theta.set_all(variance.max(floor));
        if self.covariance.factors() > 0 {
            theta.start_factors();
        }
        unwatched(model.renew(None));
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        let k = model.theta.k();
        let dim = model.theta.dim();
        let mut sums = Moments::zeros(k, dim, self.covariance.second());
        sums.may_be_narrow = true;
        sums.with_factors(self.covariance.factors())
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        if let Cost::LowRank(low_rank) = model.costs.of(&model.theta) {
            return factors::accumulate(rows, block, low_rank, sums);
        }
        if self.covariance.has_pairs() {
            let theta = &model.theta;
            let mean = |c: usize| theta.exact_mean(c);
            if let Some(entries) = rows.entries() {
                let observed = model.costs.observed(theta);
                return sums.add_completed(rows, entries, block, &observed, mean);
            }
            let origin = if self.covariance.is_tied() {
                theta.shared_origin()
            } else {
                Vec::new()
            };
            if let Some(shared) = model.costs.shared()
                && block.is_full()
                && !origin.is_empty()
            {
                // Shares sum to 1 up to their rounding, which must not count in the narrowest direction.
                let stay = theta.spread_between(&origin) <= LEAST_SHARED / F::EPSILON;
                return sums.add_whitened(rows, block, shared, &origin, stay);
            }
            return sums.add_pairs(rows, block, mean, |_| None, &origin);
        }
        sums.add(rows, block, &model.theta.centres);
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        if model.costs.factored().is_some() {
            return factors::update(sums, model, restricted, self.mixing, cancel);
        }
        let dim = model.theta.dim();
        let mass = &sums.mass;
        let one = restricted || self.covariance.is_one_variance();
        if self.mixing == Mixing::Learned && !one {
            model.theta.proportions = model.theta.prior.proportions_of(mass);
        }
        // The new variances where there is mass, and the one that all would share.
        let (mut variances, shared, rounding) = if self.covariance.has_pairs() {
            move_means(&sums, model)
        } else {
            let squared = sums.about_new_means(model.move_centres());
            let mut variances = model.theta.spread.clone();
            let mut noise = 0.0;
            let per_component = self.covariance.numbers(1, dim);
            for (place, variance) in variances.iter_mut().enumerate() {
                let c = place / per_component;
                let j = place % per_component;
                let (squared, mass) = sums.second_of(&squared, c, j);
                let prior = &model.theta.prior;
                let (known, rows) = match per_component {
                    1 => prior.of_all(1),
                    _ => prior.of_column(j),
                };
                let own = mass * prior.ridge_of(j);
                noise += own;
                if mass + rows > 0.0 {
                    *variance = (squared + own + known) / (mass + rows);
                }
            }
            let (squared, entries) = sums.squares_of_all(&squared);
            let shared = model.theta.with_prior(squared + noise, entries);
            (variances, shared, Vec::new())
        };
        let theta = &mut model.theta;
        let least = theta.least_variance;
        if one {
            // The unit is the variance before.
            let floor = theta.floor_below(shared).min(theta.unit.max(least));
            theta.set_all(shared.max(floor));
            return model.renew(cancel);
        }
        if !self.covariance.has_pairs() {
            // The parameters there are must be among those allowed.
            let size = self.covariance.numbers(1, dim);
            for (c, own) in variances.chunks_exact_mut(size).enumerate() {
                let before = theta.own(c).iter().zip(theta.floors(c)).enumerate();
                for (v, (j, (before, floor))) in own.iter_mut().zip(before) {
                    let (sum, mass) = sums.second_of(sums.second(), c, j);
                    let rounding = match mass > 0.0 {
                        // Squares are about a point that is at most so far from the mean before.
                        true if sums.narrow => {
                            32.0 * F::EPSILON * (sum / mass + (1.0 + FARTHEST) * before)
                        }
                        true => ROUNDING * sum / mass,
                        false => 0.0,
                    };
                    *v = v.max(floor.max(rounding).min(*before));
                }
            }
            // The unit is none of variances that are all clamped above it: costs would be rounded next to their logarithm.
            let narrowest = variances.iter().copied().fold(f64::INFINITY, f64::min);
            (theta.spread, theta.unit) = (variances, shared.max(narrowest));
            return model.renew(cancel);
        }
        // A component without mass keeps its covariance.
        let rows = theta.prior.rows;
        let keeps = |c: usize| !self.covariance.is_tied() && mass[c] + rows <= 0.0;
        let next = parallel::map(variances.len() / (dim * dim), |c| {
            if keeps(c) {
                Ok((theta.least_of(c).to_vec(), theta.own(c).to_vec()))
            } else {
                let matrix = &variances[c * dim * dim..][..dim * dim];
                theta.held(c, matrix, &rounding[c * dim..][..dim], cancel)
            }
        });
        let (least, triangles): (Vec<_>, Vec<_>) = parallel::all(next)?.into_iter().unzip();
        (theta.least_variances, theta.spread) = (least.concat(), triangles.concat());
        let narrowest = theta.least_variances.iter().copied();
        let narrowest = narrowest.fold(f64::INFINITY, f64::min);
        theta.unit = shared.max(narrowest);
        model.renew(cancel)
    }
}

/// Moves every mean to that of its rows. Returns the lower halves of the covariances, one (d, d) or one for each component
/// (k, d, d), the mean variance of a column, and the variances below which sums of the columns are rounding.
fn move_means<F: Float>(
    sums: &Moments,
    model: &mut GaussianMixture<F>,
) -> (Vec<f64>, f64, Vec<f64>) {
    let k = model.theta.k();
    let dim = model.theta.dim();
    let steps = (0..k).flat_map(|c| {
        let mass = sums.mass(c);
        let step = move |first: &f64| if mass > 0.0 { first / mass } else { 0.0 };
        sums.first(c)[..dim].iter().map(step)
    });
    let mut steps = steps.collect::<Vec<f64>>();
    let origin = model.theta.origin();
    if sums.whitened {
        let back = unwatched(model.costs.whitenings[0].inverse(None));
        for step in steps.chunks_exact_mut(dim) {
            for (j, row) in back.chunks_exact(dim).enumerate().rev() {
                let along = row[..=j].iter().zip(&*step);
                step[j] = along.map(|(x, s)| x * s).sum();
            }
        }
    }
    model.step(&steps);
    let total: f64 = sums.mass.iter().sum();
    let (masses, mut matrices) = match sums.kind {
        SecondMoments::Pairs => (
            vec![total],
            vec![sums.within(&origin, &model.theta.exact_means, &steps)],
        ),
        _ => (
            sums.mass.clone(),
            parallel::map(k, |c| sums.about(c, &steps[c * dim..][..dim])),
        ),
    };
    for (matrix, mass) in matrices.iter_mut().zip(&masses) {
        let columns = matrix.iter_mut().step_by(dim + 1);
        let noise = columns.zip(&model.theta.prior.ridge);
        noise.for_each(|(x, r)| *x += mass * r);
    }
    let traces = matrices.iter().flat_map(|own| own.iter().step_by(dim + 1));
    let shared = model.theta.with_prior(traces.sum(), total * dim as f64);
    // Sums about the mean of the data are never about the means: they keep what digits they have.
    let lost = if sums.kind == SecondMoments::Pairs && !sums.about_means {
        64.0 * f64::EPSILON
    } else {
        ROUNDING
    };
    let mut rounding = Vec::with_capacity(masses.len() * dim);
    let before = sums.second().chunks_exact(dim * dim);
    let of_components = matrices.iter_mut().zip(before).zip(masses);
    for ((matrix, before), mass) in of_components {
        let known = |j| model.theta.prior.of_column(j);
        let columns = matrix.iter_mut().step_by(dim + 1).enumerate();
        columns.for_each(|(j, x)| *x += known(j).0);
        let with_prior = (mass + known(0).1).max(f64::MIN_POSITIVE);
        matrix.iter_mut().for_each(|x| *x /= with_prior);
        let mass = mass.max(f64::MIN_POSITIVE);
        let diagonal = before.iter().step_by(dim + 1);
        rounding.extend(diagonal.map(|sum| lost * sum / mass));
    }
    (matrices.concat(), shared, rounding)
}
