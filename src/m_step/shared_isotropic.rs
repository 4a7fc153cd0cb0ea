//! Isotropic Gaussians with one shared variance and equal mixing proportions: the model behind k-means.

use super::{
    MStep, SharedVariance, Statistics, check_variances, first_variance, frame_around,
    log_joint_in_units_of, rescaling,
};
use crate::base::cached::Cached;
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, Data, Frame, Linear, Moments, Part, Rows, Scores, Subspace, Summary};
use crate::io::{self, Common, FileFault, Reader, Save};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::{Likelihood, LogJoint, expected_total};
use ndarray::{Array1, Array2, ArrayView2};

/// One variance for all components and columns, equal mixing proportions ([E1](crate::equations#e1); \[KM\] Eq. 1, \[VC\]
/// Eq. 1).
///
/// $$p(c, y \mid \theta) = \frac 1C \mathcal N(y; \mu_c, \sigma^2 I_D)$$
///
/// **Statistics** about the current means ([E5](crate::equations#e5)). Those of disjoint sets of rows add up:
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad f_c = \sum_n w_n q_{nc} (y_n - \mu_c), \qquad s = \sum_n w_n \sum_c q_{nc} \lVert y_n - \mu_c \rVert^2$$
///
/// **Update** ([E6](crate::equations#e6), [E7](crate::equations#e7); \[VC\] Eq. 6), with $W$ the total weight:
///
/// $$\mu_c^{\text{new}} = \mu_c + \delta_c, \qquad \delta_c = f_c / m_c, \qquad \sigma^2_{\text{new}} = \frac{1}{D W} \left( s - \sum_c m_c \lVert \delta_c \rVert^2 \right)$$
///
/// A zero-mass component ($m_c = 0$) keeps its mean and is counted in the report. The variance is
/// clamped from below ([E20](crate::equations#e20)), which keeps the free energy monotone where an added ridge would not:
///
/// $$\sigma^2 \ge \max \left( 10^{-12} \bar v, (\epsilon \max |x|)^2, v_{\min} \right)$$
///
/// with $\bar v$ the mean variance of the columns and $\epsilon$ the machine epsilon of the number type. The last term is
/// for data that are all zero: the smallest variance that can be the unit of scores in that type.
///
/// **Start** of the variance, once, from the first search ([E8](crate::equations#e8); \[VC\] Eq. 8):
///
/// $$\sigma^2 = \frac{1}{D W} \sum_n w_n \min_{c \in K(n)} \lVert y_n - \mu_c \rVert^2$$
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::gmm(25).build()?.fit(&data)?; // the default
/// let (means, variance) = (fit.model.means(), fit.model.variance());
/// assert!(means.dim() == (25, 2) && variance > 0.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedIsotropic;

impl SharedIsotropic {
    /// The only one there is.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Stage for SharedIsotropic {}

impl<F: Float> MStep<F> for SharedIsotropic {
    type Model = SharedIsotropicMixture<F>;
    type Statistics = SharedStatistics;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        let (variance, least_variance) = first_variance(&frame, data.summary());
        Ok(SharedIsotropicMixture::assemble(
            seeds,
            frame,
            variance,
            least_variance,
        ))
    }

    fn start_from(
        &self,
        from: &Self::Model,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Option<Self::Model>> {
        let mut model = self.start(seeds, frame, data)?;
        model.set_variance(from.variance * rescaling(&from.frame, &model.frame));
        Ok(Some(model))
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        model.set_variance(first.best / first.entries);
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        let moments = Moments::zeros(model.centres.len(), model.centres.dim());
        SharedStatistics {
            entries: 0.0,
            moments,
            squared: 0.0,
        }
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    ) {
        let (weight, squared) = expected_total(rows, block);
        statistics.entries += weight * rows.entries() as f64;
        statistics.squared += squared;
        rows.accumulate(block, &model.centres, &mut statistics.moments);
    }

    fn update(&self, statistics: Self::Statistics, model: &mut Self::Model, _: bool) {
        let mut gain = 0.0;
        let moments = &statistics.moments;
        moments.move_centres(&mut model.centres, |_, _, fall| gain += fall);
        // Seeds far outside the data: nearly all of the old sum cancels, and only rounding is left.
        let rounding = (model.centres.dim() + 8) as f64 * F::EPSILON * statistics.squared;
        let squared = (statistics.squared - gain).max(rounding);
        model.set_variance(squared / statistics.entries);
        model.forget();
    }

    fn shared_variance(&self) -> Option<&dyn SharedVariance<F, Self::Model, Self::Statistics>> {
        Some(self)
    }
}

impl<F: Float> SharedVariance<F, SharedIsotropicMixture<F>, SharedStatistics> for SharedIsotropic {
    fn add_residual(&self, statistics: &mut SharedStatistics, residual: f64) {
        statistics.squared += residual;
    }

    fn statistics_of(&self, moments: Moments, squared: f64, entries: f64) -> SharedStatistics {
        SharedStatistics {
            entries,
            moments,
            squared,
        }
    }

    fn place(&self, model: &mut SharedIsotropicMixture<F>, centres: Centres<F>) {
        model.centres = centres;
        model.forget();
    }

    fn project(
        &self,
        model: &SharedIsotropicMixture<F>,
        subspace: &Subspace<F>,
    ) -> SharedIsotropicMixture<F> {
        let centres = subspace.enter(&model.centres);
        SharedIsotropicMixture::assemble(
            centres,
            subspace.frame(),
            model.variance,
            model.least_variance,
        )
    }

    fn lift(
        &self,
        model: &mut SharedIsotropicMixture<F>,
        projected: &SharedIsotropicMixture<F>,
        subspace: &Subspace<F>,
    ) {
        model.variance = projected.variance;
        model.centres = subspace.leave(&projected.centres);
        model.forget();
    }
}

/// Mass and first moments per component, and the squared distances over all ([E5](crate::equations#e5)), as in
/// [`SharedIsotropic`].
#[derive(Clone, Debug, Default)]
pub struct SharedStatistics {
    /// The weight of all observed coordinates: D W for dense rows.
    entries: f64,
    moments: Moments,
    squared: f64,
}

impl Statistics for SharedStatistics {
    fn merge(parts: &mut Vec<Self>) -> Self {
        let mut total = Self::default();
        for part in &mut *parts {
            total.entries += std::mem::take(&mut part.entries);
            total.squared += std::mem::take(&mut part.squared);
        }
        total.moments = Moments::merge(parts.iter_mut().map(|part| &mut part.moments));
        total
    }

    fn zero_mass(&self) -> usize {
        self.moments.zero_mass()
    }

    fn unobserved(&self) -> usize {
        self.moments.unobserved()
    }
}

/// A mixture of isotropic Gaussians with one shared variance and equal mixing proportions ([E1](crate::equations#e1)).
///
/// $$p(y \mid \theta) = \frac 1C \sum_{c=1}^{C} \mathcal N(y; \mu_c, \sigma^2 I_D)$$
///
/// What it predicts and how it scores is in the trait [`Mixture`].
#[derive(Clone, Debug, PartialEq)]
pub struct SharedIsotropicMixture<F> {
    centres: Centres<F>,
    frame: Frame<F>,
    /// In the unit of the frame, squared.
    variance: f64,
    least_variance: f64,
    /// Those given, or the centres out of the frame: few updates of a fit are asked for them.
    means: Cached<Array2<F>>,
    /// Scores as products, of these centres and this variance.
    linear: Cached<Linear<F>>,
}

impl<F: Float> SharedIsotropicMixture<F> {
    /// A model from known parameters: means (k, d) and the variance per column, shared by all components.
    ///
    /// # Errors
    /// [`Error::Empty`](crate::Error::Empty), [`Error::NotFinite`](crate::Error::NotFinite) or
    /// [`Error::TooLarge`](crate::Error::TooLarge) for the means, [`Error::Parameter`](crate::Error::Parameter) for a
    /// variance that is not positive and finite.
    pub fn from_parameters(means: ArrayView2<'_, F>, variance: f64) -> Result<Self> {
        let summary = Summary::of_points(means, "means")?;
        check_variances::<F>(std::iter::once(variance))?;
        let frame = frame_around(&summary, variance);
        let scaled = frame.enter_square(variance);
        let centres = Centres::enter(means, &frame);
        let model = Self::assemble(centres, frame, scaled, f64::MIN_POSITIVE);
        model.means.get(|| means.to_owned());
        Ok(model)
    }

    fn assemble(centres: Centres<F>, frame: Frame<F>, variance: f64, least_variance: f64) -> Self {
        let variance = variance.max(least_variance);
        Self {
            centres,
            frame,
            variance,
            least_variance,
            means: Cached::default(),
            linear: Cached::default(),
        }
    }

    /// Forgets what was made of the centres and the variance.
    fn forget(&mut self) {
        self.means = Cached::default();
        self.linear = Cached::default();
    }

    /// The same model with another variance, in the unit of its frame.
    fn set_variance(&mut self, variance: f64) {
        self.variance = variance.max(self.least_variance);
        self.linear = Cached::default();
    }

    /// The means (k, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        let leave = || self.centres.leave(&self.frame);
        self.means.get(leave).view()
    }

    /// The variance sigma^2 of every column of every component, in the data's own unit, squared.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.frame.leave_square(self.variance)
    }

    /// Draws `n` points from the mixture: points (n, d), in the data's own unit, and the components they came
    /// from (n). The same `seed` gives the same points.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if `n` is 0.
    pub fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        positive("n", n)?;
        let mut rng = Rng::from_seed(seed);
        let deviation = self.variance.sqrt() * self.frame.unit();
        let labels = Array1::from_shape_fn(n, |_| rng.below(self.centres.len()) as u32);
        let means = self.means();
        let points = Array2::from_shape_fn((n, means.ncols()), |(n, j)| {
            let mean = means[[labels[n] as usize, j]].to_f64();
            F::from_f64(mean + deviation * rng.normal())
        });
        Ok((points, labels))
    }
}

/// Scores are squared distances to the means, in the unit of the frame.
impl<F: Float> Scores<F> for SharedIsotropicMixture<F> {
    fn components(&self) -> usize {
        self.centres.len()
    }
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        rows.distances(&self.centres, out);
    }
    fn margin(&self, rows: &Rows<F>, i: usize, reach: F) -> F {
        rows.margin(i, &self.centres, reach)
    }
    fn linear(&self) -> Option<&Linear<F>> {
        let beta = 0.5 / self.variance;
        let (factor, added) = (1.0, 0.0);
        let make = || Linear::isotropic(&self.centres, beta, |_| Part { factor, added });
        Some(self.linear.get(make))
    }
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        rows.distances_to(i, &self.centres, ids, out);
    }
    fn best(&self, rows: &Rows<F>, ids: &mut [u32], scores: &mut [F]) -> bool {
        rows.nearest(&self.centres, ids, scores)
    }
}

impl<F: Float> Mixture<F> for SharedIsotropicMixture<F> {
    fn variances(&self) -> Array2<f64> {
        Array2::from_elem((self.centres.len(), self.centres.dim()), self.variance())
    }

    fn free_parameters(&self) -> Option<usize> {
        Some(self.centres.len() * self.centres.dim() + 1)
    }

    fn saved(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        self.to_bytes(notes)
    }

    fn loaded(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes(bytes)
    }

    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    fn log_joint(&self) -> LogJoint {
        log_joint_in_units_of(self.variance, &self.centres, &self.frame)
    }

    fn likeliest_is_nearest(&self) -> bool {
        true
    }
}

const FAMILY: &str = "SharedIsotropic";

impl<F: Float> Save for SharedIsotropicMixture<F> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let common = (&self.centres, &self.frame);
        io::model(FAMILY, common, self.means(), notes, &|file| {
            file.numbers("variance", &[self.variance, self.least_variance]);
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let mut file = Reader::new(bytes)?;
            let common: Common<F> = file.common(FAMILY)?;
            let variances = file.positive("variance", &[2])?;
            file.end()?;
            if variances[0] < variances[1] {
                let rule = "must not be below its least value";
                return Err(FileFault::content("variance", rule));
            }
            let (centres, frame) = (common.centres, common.frame);
            let model = Self::assemble(centres, frame, variances[0], variances[1]);
            model.means.get(|| common.means);
            Ok(model)
        };
        read().map_err(FileFault::of_bytes)
    }
}
