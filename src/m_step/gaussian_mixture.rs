//! A mixture of Gaussians: its parameters, the scores of rows under it, and its files.

use super::Covariance;
use super::proportions::{Proportions, penalised};
use crate::base::cached::Cached;
use crate::base::error::{Error, Result, positive, same_columns, same_length};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::data::{Basis, Centres, Frame, Linear, Part, Rows, Scales, Scores, Summary};
use crate::io::{self, Common, FileFault, Reader, Save};
use crate::model::Mixture;
use crate::model::posterior::LogJoint;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2};
use std::f64::consts::PI;

/// A mixture of Gaussians with covariances of one [kind](Covariance), and a mixing proportion each.
///
/// $$p(y \mid \theta) = \sum_{c=1}^{C} \pi_c \mathcal N(y; \mu_c, \Sigma_c)$$
///
/// What it predicts and how it scores is in the trait [`Mixture`].
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture<F> {
    covariance: Covariance,
    centres: Centres<F>,
    frame: Frame<F>,
    /// One, (k) or (k, d), as the kind says; in the unit of the frame, squared.
    variances: Vec<f64>,
    pub(super) least_variance: f64,
    pub(super) proportions: Proportions,
    /// The variance that scores are in units of.
    unit: f64,
    costs: Costs<F>,
    /// Scores as products.
    linear: Cached<Linear<F>>,
    /// Those given, or the centres out of the frame: few updates of a fit are asked for them.
    means: Cached<Array2<F>>,
}

/// What turns rows into scores, in units of a variance: it follows from variances and proportions.
#[derive(Clone, Debug, PartialEq)]
enum Costs<F> {
    /// Scores are squared distances.
    Distances,
    /// Squared distances with a factor for each component (E31). The last one has the largest factor, and as a penalty the
    /// largest of all that is added to a row: they bound rounding.
    Factors(Vec<Factor>, Factor),
    /// Squared differences with a factor for each component and coordinate (E33), and what proportions add (k).
    Scales(Scales<F>, Vec<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Factor {
    /// Of the squared distance.
    factor: f64,
    /// What each coordinate adds.
    per_entry: f64,
    /// What the proportion adds.
    penalty: f64,
}

impl Factor {
    #[inline(always)]
    fn score<F: Float>(&self, squared: F, entries: f64) -> F {
        let score = self.factor * squared.to_f64() + entries * self.per_entry;
        penalised(score, self.penalty)
    }
}

impl<F: Float> GaussianMixture<F> {
    /// Means (k, d), one variance for all columns of all components, and equal proportions.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::NotFinite`] or [`Error::TooLarge`] for the means. [`Error::LengthMismatch`] or
    /// [`Error::DimensionMismatch`] for another number of variances or proportions. [`Error::Parameter`] for variances
    /// that are not positive and finite, and for proportions that are negative or do not sum to 1.
    pub fn tied_spherical(means: ArrayView2<'_, F>, variance: f64) -> Result<Self> {
        Self::from_parameters(Covariance::TiedSpherical, means, vec![variance], None)
    }

    /// Means (k, d), the variance of all columns of each component (k), and proportions (k). A component of proportion 0 is
    /// one that was discarded.
    ///
    /// # Errors
    /// As [`tied_spherical`](Self::tied_spherical).
    pub fn spherical(
        means: ArrayView2<'_, F>,
        variances: ArrayView1<'_, f64>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        same_length("variances", means.nrows(), variances.len())?;
        Self::from_parameters(
            Covariance::Spherical,
            means,
            variances.to_vec(),
            Some(proportions),
        )
    }

    /// Means (k, d), variances (k, d), and proportions (k), as [`spherical`](Self::spherical).
    ///
    /// # Errors
    /// As [`tied_spherical`](Self::tied_spherical).
    pub fn diagonal(
        means: ArrayView2<'_, F>,
        variances: ArrayView2<'_, f64>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        same_length("variances", means.nrows(), variances.nrows())?;
        same_columns("variances", means.ncols(), variances.ncols())?;
        let variances = variances.iter().copied().collect();
        Self::from_parameters(Covariance::Diagonal, means, variances, Some(proportions))
    }

    fn from_parameters(
        covariance: Covariance,
        means: ArrayView2<'_, F>,
        variances: Vec<f64>,
        proportions: Option<ArrayView1<'_, f64>>,
    ) -> Result<Self> {
        let summary = Summary::of_points(means, "means")?;
        let largest = check_variances::<F>(&variances)?;
        let k = means.nrows();
        let proportions = match proportions {
            Some(proportions) => Proportions::check(proportions, k)?,
            None => Proportions::equal(k, super::proportions::Mixing::Equal),
        };
        // Wide enough for the means and for the deviations from them.
        let frame = Frame::around(&summary, largest.sqrt());
        let scaled = variances
            .iter()
            .map(|v| frame.enter_square(*v).max(f64::MIN_POSITIVE));
        let scaled: Vec<f64> = scaled.collect();
        let centres = Centres::enter(means, &frame);
        let mut model = Self::assemble(covariance, (centres, frame), proportions);
        model.means.get(|| means.to_owned());
        let unit = model.mean_of(&scaled);
        model.set(scaled, f64::MIN_POSITIVE, unit);
        Ok(model)
    }

    /// A model without variances, which are [set](Self::set) next.
    pub(super) fn assemble(
        covariance: Covariance,
        (centres, frame): (Centres<F>, Frame<F>),
        proportions: Proportions,
    ) -> Self {
        Self {
            covariance,
            variances: vec![1.0; covariance.numbers(centres.len(), centres.dim())],
            centres,
            frame,
            least_variance: f64::MIN_POSITIVE,
            proportions,
            unit: 1.0,
            costs: Costs::Distances,
            linear: Cached::default(),
            means: Cached::default(),
        }
    }

    /// Other variances, and the one that scores are in units of.
    pub(super) fn set(&mut self, variances: Vec<f64>, least: f64, unit: f64) {
        (self.variances, self.least_variance, self.unit) = (variances, least, unit);
        self.linear = Cached::default();
        let (k, dim, variances) = (self.centres.len(), self.centres.dim(), &self.variances);
        // What a variance makes of the square of a difference: a factor, and a term.
        let relative = |variance: f64| (unit / variance, unit * (variance / unit).ln());
        let penalties = (0..k).map(|c| self.proportions.penalty(c, unit));
        self.costs = match self.covariance {
            Covariance::TiedSpherical => Costs::Distances,
            Covariance::Spherical => {
                let factors = variances.iter().zip(penalties).map(|(&variance, penalty)| {
                    let (factor, per_entry) = relative(variance);
                    Factor {
                        factor,
                        per_entry,
                        penalty,
                    }
                });
                let factors: Vec<Factor> = factors.collect();
                let mut largest = Factor {
                    factor: 1.0,
                    per_entry: 0.0,
                    penalty: 0.0,
                };
                for own in factors.iter().filter(|own| own.penalty.is_finite()) {
                    let added = dim as f64 * own.per_entry.abs() + own.penalty.abs();
                    largest.factor = largest.factor.max(own.factor);
                    largest.penalty = largest.penalty.max(added);
                }
                Costs::Factors(factors, largest)
            }
            Covariance::Diagonal => {
                let scales = Scales::new(k, dim, |c, j| relative(variances[c * dim + j]));
                Costs::Scales(scales, penalties.collect())
            }
        };
    }

    /// One variance for all coordinates of all components, which scores are in units of.
    pub(super) fn set_all(&mut self, variance: f64) {
        let variance = variance.max(self.least_variance);
        let mut variances = std::mem::take(&mut self.variances);
        variances.fill(variance);
        self.set(variances, self.least_variance, variance);
    }

    /// The centres, to be changed.
    pub(super) fn move_centres(&mut self) -> &mut Centres<F> {
        (self.means, self.linear) = (Cached::default(), Cached::default());
        &mut self.centres
    }

    pub(super) fn kind(&self) -> Covariance {
        self.covariance
    }

    /// As the model keeps them.
    pub(super) fn scaled_variances(&self) -> &[f64] {
        &self.variances
    }

    /// The mean of such variances, of components by their proportion.
    pub(super) fn mean_of(&self, variances: &[f64]) -> f64 {
        if variances.len() == 1 {
            return variances[0];
        }
        let of_component = variances.chunks_exact(variances.len() / self.centres.len());
        let means = of_component.map(|own| own.iter().sum::<f64>() / own.len() as f64);
        self.proportions.average(means)
    }

    /// The variance of coordinate `j` of component `c`, in the unit of the frame, squared.
    fn scaled(&self, c: usize, j: usize) -> f64 {
        match self.covariance {
            Covariance::TiedSpherical => self.variances[0],
            Covariance::Spherical => self.variances[c],
            Covariance::Diagonal => self.variances[c * self.centres.dim() + j],
        }
    }

    /// The kind of the covariances.
    #[must_use]
    pub fn covariance_kind(&self) -> Covariance {
        self.covariance
    }

    /// The means (k, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        let leave = || self.centres.leave(&self.frame);
        self.means.get(leave).view()
    }

    /// The mean variance of a column, of components by their proportion, in the data's own unit, squared: for
    /// [`Covariance::TiedSpherical`] the one there is.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.frame.leave_square(self.mean_of(&self.variances))
    }

    /// The variances (k, d) of the coordinates the model was fitted in, in the data's own unit, squared: those of the
    /// columns, unless it was fitted on a [`Sketch`](crate::data::Sketch). Then they are the variances of the
    /// preconditioned coordinates (k, P'), and no diagonal covariance of the columns has them: see
    /// [`covariance`](Self::covariance) and [`column_variances`](Self::column_variances).
    #[must_use]
    pub fn variances(&self) -> Array2<f64> {
        let shape = (self.centres.len(), self.centres.dim());
        Array2::from_shape_fn(shape, |(c, j)| self.frame.leave_square(self.scaled(c, j)))
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
        Ok(self.covariance_of(c))
    }

    fn covariance_of(&self, c: usize) -> Array2<f64> {
        let (variances, columns) = (self.variances(), self.frame.columns());
        let mut covariance = Array2::zeros((columns, columns));
        let Some(mut axes) = self.axes() else {
            covariance.diag_mut().assign(&variances.row(c));
            return covariance;
        };
        // Each as long as the deviation along it.
        for (mut axis, variance) in axes.outer_iter_mut().zip(variances.row(c)) {
            axis *= variance.sqrt();
        }
        general_mat_mul(1.0, &axes.t(), &axes, 0.0, &mut covariance);
        covariance
    }

    /// The axes of the basis, if the model was fitted on a sketch.
    fn axes(&self) -> Option<Array2<f64>> {
        let axes = |basis: &Basis| basis.inverse(Array2::eye(self.centres.dim()).view());
        self.frame
            .basis()
            .map(|basis| axes(basis).expect("as many coordinates as the basis has"))
    }

    /// The covariances of all components (k, P, P), as [`covariance`](Self::covariance).
    #[must_use]
    pub fn covariances(&self) -> Array3<f64> {
        let (k, columns) = (self.centres.len(), self.frame.columns());
        let mut all = Array3::zeros((k, columns, columns));
        for (c, mut own) in all.outer_iter_mut().enumerate() {
            own.assign(&self.covariance_of(c));
        }
        all
    }

    /// The variance of every column of each component (k, P), in the data's own unit, squared: the diagonals of
    /// [`covariance`](Self::covariance).
    #[must_use]
    pub fn column_variances(&self) -> Array2<f64> {
        let variances = self.variances();
        match self.axes() {
            Some(axes) => variances.dot(&axes.mapv(|x| x * x)),
            None => variances,
        }
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
                let deviation = self.scaled(c as usize, j).sqrt();
                *z = F::from_f64(z.to_f64() + deviation * rng.normal());
            }
            drawn.push(&row);
        }
        Ok((drawn.leave(&self.frame), labels))
    }
}

/// The largest of some variances, if all are positive and finite, and if the type can hold their ratios: scores are in units
/// of one of them.
pub(super) fn check_variances<F: Float>(variances: &[f64]) -> Result<f64> {
    let largest = variances.iter().copied().fold(0.0, f64::max);
    for &variance in variances {
        if !(variance > 0.0 && variance.is_finite()) {
            let rule = "must be positive and finite";
            return Err(Error::parameter("variance", variance, rule));
        }
        if variance * F::LARGEST_SCORE.sqrt() < largest {
            let rule = "is too small: the largest may be 3e18 times as large in f32, 3e152 in f64";
            return Err(Error::parameter("variance", variance, rule));
        }
    }
    Ok(largest)
}

impl<F: Float> Scores<F> for GaussianMixture<F> {
    fn components(&self) -> usize {
        self.centres.len()
    }

    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        let (k, entries) = (self.centres.len(), rows.entries() as f64);
        match &self.costs {
            Costs::Distances => rows.distances(&self.centres, out),
            Costs::Factors(factors, _) => {
                rows.distances(&self.centres, out);
                for scores in out.chunks_exact_mut(k) {
                    for (score, factor) in scores.iter_mut().zip(factors) {
                        *score = factor.score(*score, entries);
                    }
                }
            }
            Costs::Scales(scales, penalties) => {
                rows.scaled_distances(&self.centres, scales, out);
                for scores in out.chunks_exact_mut(k) {
                    for (score, penalty) in scores.iter_mut().zip(penalties) {
                        *score = penalised(score.to_f64(), *penalty);
                    }
                }
            }
        }
    }

    fn margin(&self, rows: &Rows<F>, i: usize, reach: F) -> F {
        match &self.costs {
            Costs::Distances => rows.margin(i, &self.centres, reach),
            Costs::Factors(_, largest) => {
                let squared = rows.margin(i, &self.centres, F::INFINITY).to_f64();
                F::from_f64(largest.factor * squared + 4.0 * F::EPSILON * largest.penalty)
            }
            // All scores are computed directly.
            Costs::Scales(..) => F::zero(),
        }
    }

    fn linear(&self) -> Option<&Linear<F>> {
        let (centres, beta) = (&self.centres, 0.5 / self.unit);
        let make = || match &self.costs {
            Costs::Distances => Linear::isotropic(centres, beta, |_| Part {
                factor: 1.0,
                added: 0.0,
            }),
            Costs::Factors(factors, _) => {
                // Rows that know every coordinate: others have no products.
                let entries = centres.dim() as f64;
                Linear::isotropic(centres, beta, |c| {
                    let own = factors[c];
                    let (factor, added) = (own.factor, entries * own.per_entry + own.penalty);
                    Part { factor, added }
                })
            }
            Costs::Scales(scales, penalties) => Linear::diagonal(centres, beta, scales, penalties),
        };
        Some(self.linear.get(make))
    }

    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let entries = rows.entries() as f64;
        match &self.costs {
            Costs::Distances => rows.distances_to(i, &self.centres, ids, out),
            Costs::Factors(factors, _) => {
                rows.distances_to(i, &self.centres, ids, out);
                for (score, &c) in out.iter_mut().zip(ids) {
                    *score = factors[c as usize].score(*score, entries);
                }
            }
            Costs::Scales(scales, penalties) => {
                rows.scaled_distances_to(i, &self.centres, scales, ids, out);
                for (score, &c) in out.iter_mut().zip(ids) {
                    *score = penalised(score.to_f64(), penalties[c as usize]);
                }
            }
        }
    }

    fn best(&self, rows: &Rows<F>, ids: &mut [u32], scores: &mut [F]) -> bool {
        matches!(self.costs, Costs::Distances) && rows.nearest(&self.centres, ids, scores)
    }
}

impl<F: Float> Mixture<F> for GaussianMixture<F> {
    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    /// From scores in units of a variance to log-joints (E1, E31, E33).
    fn log_joint(&self) -> LogJoint {
        LogJoint {
            alpha: -(self.centres.len() as f64).ln(),
            gamma: self.frame.log_density_shift() - 0.5 * (2.0 * PI * self.unit).ln(),
            beta: 0.5 / self.unit,
        }
    }

    fn proportions(&self) -> Array1<f64> {
        self.proportions().to_owned()
    }

    fn free_parameters(&self) -> Option<usize> {
        let (k, d) = (self.centres.len(), self.centres.dim());
        Some(k * d + self.covariance.numbers(k, d) + self.proportions.free())
    }

    fn variances(&self) -> Array2<f64> {
        self.variances()
    }

    fn saved(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        self.to_bytes(notes)
    }

    fn loaded(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes(bytes)
    }

    fn likeliest_is_nearest(&self) -> bool {
        self.covariance == Covariance::TiedSpherical
    }
}

impl<F: Float> Save for GaussianMixture<F> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let common = (&self.centres, &self.frame);
        io::model(
            self.covariance.name(),
            common,
            self.means(),
            notes,
            &|file| {
                file.numbers("variances", &self.variances);
                file.numbers("least variance", &[self.least_variance]);
                file.numbers("unit of scores", &[self.unit]);
                self.proportions.write(file);
            },
        )
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let mut file = Reader::new(bytes)?;
            let of_name = |kind: &Covariance| kind.name() == file.family();
            let Some(covariance) = Covariance::ALL.into_iter().find(of_name) else {
                return Err(FileFault::Family {
                    expected: "Gaussian",
                    found: file.family().to_owned(),
                });
            };
            let common: Common<F> = file.common(covariance.name())?;
            let (k, dim) = (common.centres.len(), common.centres.dim());
            let variances = file.positive("variances", &[covariance.numbers(k, dim)])?;
            let least = file.one_positive("least variance")?;
            let unit = file.one_positive("unit of scores")?;
            let held = |x: f64| x.is_finite() && F::from_f64(x).is_finite();
            let rule = |v: &f64| *v >= least && held(unit / v) && held(unit * (v / unit).ln());
            if !variances.iter().all(rule) {
                let rule = "must not be below their least value, nor far from the unit of scores";
                return Err(FileFault::content("variances", rule));
            }
            let proportions = Proportions::read(&mut file, k)?;
            if covariance == Covariance::TiedSpherical
                && (unit != variances[0] || proportions.free() > 0)
            {
                let rule = "must be the unit of scores, and proportions equal";
                return Err(FileFault::content("variances", rule));
            }
            file.end()?;
            let place = (common.centres, common.frame);
            let mut model = Self::assemble(covariance, place, proportions);
            model.means.get(|| common.means);
            model.set(variances, least, unit);
            io::finite(model)
        };
        read().map_err(FileFault::of_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Dense, Rows};

    /// Rows far from all means, and so from their frame, where squared distances round by more than 1.
    #[test]
    fn the_margin_bounds_the_rounding_of_scores_far_away() {
        let mut rng = Rng::from_seed(6);
        let mut rows_of = |n: usize| {
            let far = if n >= 600 { 3e4 } else { 0.0 };
            [far + rng.normal() as f32, rng.normal() as f32, far]
        };
        let x: Vec<_> = (0..640).map(&mut rows_of).collect();
        let x = Array2::from_shape_fn((640, 3), |(n, j)| x[n][j]);
        let means = Array2::from_shape_fn((10, 3), |(c, j)| x[[c, j]]);
        let variances = Array1::from_elem(10, 0.7);
        let proportions = Array1::from_elem(10, 0.1);
        let mixture =
            GaussianMixture::spherical(means.view(), variances.view(), proportions.view()).unwrap();
        let data = Dense::new(x.view()).unwrap();
        let mut rows = Rows::default();
        let frame = Mixture::<f32>::frame(&mixture);
        data.load(600..640, frame, &mut rows).unwrap();
        let (mut fast, mut direct, mut felt) = (Vec::new(), Vec::new(), 0.0f32);
        Scores::<f32>::all(&mixture, &rows, &mut fast);
        let ids: Vec<u32> = (0..10).collect();
        for i in 0..rows.len() {
            mixture.some(&rows, i, &ids, &mut direct);
            let margin = mixture.margin(&rows, i, f32::INFINITY);
            for (a, b) in fast[i * 10..].iter().zip(&direct) {
                felt = felt.max((a - b).abs());
                assert!(
                    (a - b).abs() <= margin,
                    "row {i}: {a} and {b}, not within {margin}"
                );
            }
        }
        assert!(felt > 1.0, "{felt}");
    }
}
