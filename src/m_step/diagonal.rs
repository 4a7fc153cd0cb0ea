//! Gaussians with diagonal covariances: a variance per component and coordinate, and mixing proportions.

use super::proportions::{Mixing, Proportions, penalised};
use super::{
    MStep, check_saved, check_variances, first_variance, frame_around, log_joint_in_units_of,
    rescaling, steps_with_one_variance,
};
use crate::base::cached::Cached;
use crate::base::error::{Error, Result, positive, same_columns, same_length};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{
    Centres, Data, Frame, Linear, Moments, PerCoordinate, Rows, Scales, Scores, Summary,
};
use crate::io::{self, Common, FileFault, Reader, Save};
use crate::kernels::stride;
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::{Likelihood, LogJoint};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// A variance per component and coordinate, and a mixing proportion per component ([E33](crate::equations#e33); \[SG\] Eq.
/// 14 to 19).
///
/// $$p(c, y \mid \theta) = \pi_c \prod_{j=1}^{D} \mathcal N(y_j; \mu_{cj}, \sigma_{cj}^2)$$
///
/// **Update** ([E34](crate::equations#e34)), with $s_{cj}$ the second moment of each coordinate about the current mean:
///
/// $$\mu_c^{\text{new}} = \mu_c + \delta_c, \qquad \delta_c = \frac{f_c}{m_c}, \qquad \sigma^2_{cj} = \frac{s_{cj}}{m_c} - \delta_{cj}^2, \qquad \pi_c = \frac{m_c}{\sum_{c'} m_{c'}}$$
///
/// On a [`Sketch`](crate::data::Sketch) the coordinates are the preconditioned ones, and each has its own mass, the
/// weight of the rows that observe it ([E28](crate::equations#e28)). A coordinate that no row of the component observes
/// keeps its mean and variance, and is counted in the report. Variances are clamped from below
/// ([E20](crate::equations#e20)).
///
/// **Start**, the first M-steps of a truncated search, and components without mass: as in
/// [`Isotropic`](super::Isotropic).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::gmm(25).m_step(Diagonal::new()).build()?.fit(&data)?;
/// assert_eq!(fit.model.column_variances().dim(), (25, 2));
/// assert_eq!(fit.model.covariance(0)?.dim(), (2, 2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagonal {
    mixing: Mixing,
}

impl Diagonal {
    /// Learned mixing proportions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All mixing proportions are $1 / C$ and stay so.
    #[must_use]
    pub fn equal_proportions(self) -> Self {
        Self {
            mixing: Mixing::Equal,
        }
    }
}

impl Stage for Diagonal {
    fn settings(&self) -> String {
        format!("{self:?}")
    }
}

impl<F: Float> MStep<F> for Diagonal {
    type Model = DiagonalMixture<F>;
    type Statistics = Moments<PerCoordinate>;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        let (variance, least_variance) = first_variance(&frame, data.summary());
        let variances = vec![variance; seeds.len() * stride(seeds.dim())];
        let proportions = Proportions::equal(seeds.len(), self.mixing);
        // The unit is this variance itself: so far scores are exactly the squared distances.
        let model = DiagonalMixture::assemble(
            seeds,
            frame,
            (variances, variance),
            proportions,
            least_variance,
        );
        Ok(model)
    }

    fn start_from(
        &self,
        from: &Self::Model,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Option<Self::Model>> {
        if from.frame.basis() != frame.basis() {
            // Its variances are along other axes.
            return Ok(None);
        }
        let mut model = self.start(seeds, frame, data)?;
        let factor = rescaling(&from.frame, &model.frame);
        let rescaled = from.variances.iter().map(|v| v * factor);
        model.variances = rescaled.map(|v| v.max(model.least_variance)).collect();
        if self.mixing == Mixing::Learned {
            model.proportions = from.proportions.to_learn();
        }
        let means = means_of_rows(&model.variances, model.centres.dim());
        let unit = model.proportions.average(means);
        model.renew_scores(unit);
        Ok(Some(model))
    }

    fn restricted_steps(&self, truncated: bool) -> usize {
        steps_with_one_variance(truncated)
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let variance = (first.best / first.entries).max(model.least_variance);
        model.variances.fill(variance);
        model.renew_scores(variance);
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        Moments::zeros(model.centres.len(), model.centres.dim())
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    ) {
        rows.accumulate(block, &model.centres, statistics);
    }

    fn update(&self, moments: Self::Statistics, model: &mut Self::Model, restricted: bool) {
        let (k, dim, least) = (
            model.centres.len(),
            model.centres.dim(),
            model.least_variance,
        );
        let stride = stride(dim);
        let squared = moments.about_new_means(&mut model.centres);
        let entries: f64 = (0..k).map(|c| moments.entries(c)).sum();
        let shared = (squared.iter().sum::<f64>() / entries).max(least);
        if restricted {
            model.variances.fill(shared);
        } else {
            for c in 0..k {
                for j in 0..dim {
                    let (place, mass) = (c * stride + j, moments.observed(c, j));
                    if mass > 0.0 {
                        model.variances[place] = (squared[place] / mass).max(least);
                    }
                }
            }
            if self.mixing == Mixing::Learned {
                model.proportions = Proportions::learned((0..k).map(|c| moments.mass(c)));
            }
        }
        model.renew_scores(shared);
        model.means = model.centres.leave(&model.frame);
    }
}

/// The mean of each of some padded rows of `dim` numbers.
fn means_of_rows(rows: &[f64], dim: usize) -> impl Iterator<Item = f64> {
    let rows = rows.chunks_exact(stride(dim));
    rows.map(move |row| row[..dim].iter().sum::<f64>() / dim as f64)
}

/// A mixture of Gaussians with diagonal covariances and a mixing proportion each ([E33](crate::equations#e33)).
///
/// $$p(y \mid \theta) = \sum_{c=1}^{C} \pi_c \prod_{j=1}^{D} \mathcal N(y_j; \mu_{cj}, \sigma_{cj}^2)$$
///
/// What it predicts and how it scores is in the trait [`Mixture`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiagonalMixture<F> {
    centres: Centres<F>,
    frame: Frame<F>,
    /// (k, d), padded; in the unit of the frame, squared.
    variances: Vec<f64>,
    least_variance: f64,
    proportions: Proportions,
    /// The variance that is the unit of the scores.
    unit: f64,
    scales: Scales<F>,
    /// What the proportion of each component adds to its scores (k).
    penalties: Vec<f64>,
    /// Scores as products, of these centres and variances.
    linear: Cached<Linear<F>>,
    means: Array2<F>,
}

impl<F: Float> DiagonalMixture<F> {
    /// A model from known parameters: means (k, d), variances (k, d), mixing proportions (k). A component of proportion
    /// 0 is one that was discarded.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::NotFinite`] or [`Error::TooLarge`] for the means. [`Error::LengthMismatch`] or
    /// [`Error::DimensionMismatch`] for another number of variances or proportions. [`Error::Parameter`] for variances
    /// that are not positive and finite, and for proportions that are negative or do not sum to 1.
    pub fn from_parameters(
        means: ArrayView2<'_, F>,
        variances: ArrayView2<'_, f64>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        let summary = Summary::of_points(means, "means")?;
        let (k, dim) = means.dim();
        same_length("variances", k, variances.nrows())?;
        same_columns("variances", dim, variances.ncols())?;
        let largest = check_variances::<F>(variances.iter().copied())?;
        let proportions = Proportions::check(proportions, k)?;
        let frame = frame_around(&summary, largest);
        let mut scaled = vec![1.0; k * stride(dim)];
        for ((c, j), &variance) in variances.indexed_iter() {
            scaled[c * stride(dim) + j] = frame.enter_square(variance).max(f64::MIN_POSITIVE);
        }
        let unit = proportions.average(means_of_rows(&scaled, dim));
        let centres = Centres::enter(means, &frame);
        let model = Self::assemble(
            centres,
            frame,
            (scaled, unit),
            proportions,
            f64::MIN_POSITIVE,
        );
        let means = means.to_owned();
        Ok(Self { means, ..model })
    }

    /// `unit`: the variance that scores are in units of.
    fn assemble(
        centres: Centres<F>,
        frame: Frame<F>,
        (variances, unit): (Vec<f64>, f64),
        proportions: Proportions,
        least_variance: f64,
    ) -> Self {
        let means = centres.leave(&frame);
        let mut model = Self {
            scales: Scales::new(0, centres.dim(), |_, _| (0.0, 0.0)),
            penalties: Vec::new(),
            linear: Cached::default(),
            unit,
            centres,
            frame,
            variances,
            least_variance,
            proportions,
            means,
        };
        model.renew_scores(unit);
        model
    }

    /// In the unit of the frame, squared.
    fn variance(&self, c: usize, j: usize) -> f64 {
        self.variances[c * stride(self.centres.dim()) + j]
    }

    /// The scores of the current parameters, in units of the variance `unit`.
    fn renew_scores(&mut self, unit: f64) {
        let (k, dim) = (self.centres.len(), self.centres.dim());
        // The padding, so that models with the same variances are equal.
        for row in self.variances.chunks_exact_mut(stride(dim)) {
            row[dim..].fill(1.0);
        }
        self.scales = Scales::new(k, dim, |c, j| {
            let variance = self.variance(c, j);
            (unit / variance, unit * (variance / unit).ln())
        });
        self.penalties = (0..k).map(|c| self.proportions.penalty(c, unit)).collect();
        self.unit = unit;
        self.linear = Cached::default();
    }

    /// The means (k, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        self.means.view()
    }

    /// The variances (k, d) of the coordinates the model was fitted in, in the data's own unit, squared: those of the
    /// columns, unless it was fitted on a [`Sketch`](crate::data::Sketch). Then they are the variances of the
    /// preconditioned coordinates (k, P'), and no covariance of the columns is diagonal: see
    /// [`covariance`](Self::covariance) and [`column_variances`](Self::column_variances).
    #[must_use]
    pub fn variances(&self) -> Array2<f64> {
        let shape = (self.centres.len(), self.centres.dim());
        Array2::from_shape_fn(shape, |(c, j)| self.frame.leave_square(self.variance(c, j)))
    }

    /// The covariance of component `c` in the columns of the data (P, P), in the data's own unit, squared, whatever
    /// coordinates the model was fitted in: diagonal only if these were the columns.
    ///
    /// $$(H D)^\top \operatorname{diag}(\sigma_{c1}^2, \dots, \sigma_{cP'}^2) \thinspace H D$$
    ///
    /// # Errors
    /// [`Error::Parameter`] if there is no component `c`.
    pub fn covariance(&self, c: usize) -> Result<Array2<f64>> {
        if c >= self.centres.len() {
            let rule = "must be below the number of components";
            return Err(Error::parameter("component", c, rule));
        }
        let (variances, columns) = (self.variances(), self.frame.columns());
        let mut covariance = Array2::zeros((columns, columns));
        let Some(basis) = self.frame.basis() else {
            covariance.diag_mut().assign(&variances.row(c));
            return Ok(covariance);
        };
        // The axes of the basis, each as long as the deviation along it.
        let mut axes = basis.inverse(Array2::eye(self.centres.dim()).view())?;
        for (mut axis, variance) in axes.outer_iter_mut().zip(variances.row(c)) {
            axis *= variance.sqrt();
        }
        general_mat_mul(1.0, &axes.t(), &axes, 0.0, &mut covariance);
        Ok(covariance)
    }

    /// The variance of every column of each component (k, P), in the data's own unit, squared: the diagonals of
    /// [`covariance`](Self::covariance).
    #[must_use]
    pub fn column_variances(&self) -> Array2<f64> {
        let variances = self.variances();
        let Some(basis) = self.frame.basis() else {
            return variances;
        };
        let axes = basis.inverse(Array2::eye(self.centres.dim()).view());
        let axes = axes.expect("as many coordinates as the basis has");
        variances.dot(&axes.mapv(|x| x * x))
    }

    /// The mixing proportions (k): they sum to 1. 0 for a component that was discarded.
    #[must_use]
    pub fn proportions(&self) -> ArrayView1<'_, f64> {
        ArrayView1::from(self.proportions.values())
    }

    /// Draws `n` points from the mixture: points (n, d), in the data's own unit, and the components they came
    /// from (n). The same `seed` gives the same points.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `n` is 0.
    pub fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        positive("n", n)?;
        let mut rng = Rng::from_seed(seed);
        let labels = Array1::from_shape_fn(n, |_| self.proportions.draw(&mut rng) as u32);
        let mut drawn = Centres::with_capacity(n, self.centres.dim());
        for &c in &labels {
            let mut row = self.centres.row(c as usize).to_vec();
            for (j, z) in row.iter_mut().take(self.centres.dim()).enumerate() {
                let deviation = self.variance(c as usize, j).sqrt();
                *z = F::from_f64(z.to_f64() + deviation * rng.normal());
            }
            drawn.push(&row);
        }
        Ok((drawn.leave(&self.frame), labels))
    }
}

/// Scores are squared distances in units of each variance, and what densities and proportions add (E33).
impl<F: Float> Scores<F> for DiagonalMixture<F> {
    fn components(&self) -> usize {
        self.centres.len()
    }
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        rows.scaled_distances(&self.centres, &self.scales, out);
        for scores in out.chunks_exact_mut(self.centres.len()) {
            for (score, penalty) in scores.iter_mut().zip(&self.penalties) {
                *score = penalised(score.to_f64(), *penalty);
            }
        }
    }
    fn margin(&self, _: &Rows<F>, _: usize, _: F) -> F {
        // All scores are computed directly.
        F::from_f64(0.0)
    }
    fn linear(&self) -> Option<&Linear<F>> {
        let make = || {
            Linear::diagonal(
                &self.centres,
                0.5 / self.unit,
                &self.scales,
                &self.penalties,
            )
        };
        Some(self.linear.get(make))
    }
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        rows.scaled_distances_to(i, &self.centres, &self.scales, ids, out);
        for (score, &c) in out.iter_mut().zip(ids) {
            *score = penalised(score.to_f64(), self.penalties[c as usize]);
        }
    }
}

impl<F: Float> Mixture<F> for DiagonalMixture<F> {
    fn proportions(&self) -> Array1<f64> {
        Array1::from(self.proportions.values().to_vec())
    }

    fn free_parameters(&self) -> Option<usize> {
        Some(2 * self.centres.len() * self.centres.dim() + self.proportions.free())
    }

    fn variances(&self) -> Array2<f64> {
        DiagonalMixture::variances(self)
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
        log_joint_in_units_of(self.unit, &self.centres, &self.frame)
    }
}

const FAMILY: &str = "Diagonal";

impl<F: Float> Save for DiagonalMixture<F> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let (k, dim) = (self.centres.len(), self.centres.dim());
        let common = (&self.centres, &self.frame);
        io::model(FAMILY, common, self.means(), notes, &|file| {
            let variances = (0..k).flat_map(|c| (0..dim).map(move |j| self.variance(c, j)));
            file.section("variances", k * dim, variances);
            file.numbers("least variance", &[self.least_variance]);
            file.numbers("unit of scores", &[self.unit]);
            self.proportions.write(file);
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let mut file = Reader::new(bytes)?;
            let common: Common<F> = file.common(FAMILY)?;
            let (k, dim) = (common.centres.len(), common.centres.dim());
            let unpadded = file.positive("variances", &[k, dim])?;
            let least = file.one_positive("least variance")?;
            let unit = file.one_positive("unit of scores")?;
            check_saved::<F>(unpadded.iter().copied(), least, unit)?;
            let proportions = Proportions::read(&mut file, k)?;
            file.end()?;
            let mut variances = vec![1.0; k * stride(dim)];
            let rows = variances.chunks_exact_mut(stride(dim));
            for (row, unpadded) in rows.zip(unpadded.chunks_exact(dim)) {
                row[..dim].copy_from_slice(unpadded);
            }
            let (centres, frame, means) = (common.centres, common.frame, common.means);
            let model = Self::assemble(centres, frame, (variances, unit), proportions, least);
            Ok(Self { means, ..model })
        };
        read().map_err(FileFault::of_bytes)
    }
}
