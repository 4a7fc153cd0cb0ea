//! Isotropic Gaussians, each with a variance and a mixing proportion of its own.

use super::proportions::{Mixing, Proportions, penalised};
use super::{
    MStep, check_saved, check_variances, first_variance, frame_around, log_joint_in_units_of,
    rescaling, steps_with_one_variance,
};
use crate::base::cached::Cached;
use crate::base::error::{Result, positive, same_length};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{
    Centres, Data, Frame, Linear, Moments, Part, PerComponent, Rows, Scores, Summary,
};
use crate::io::{self, Common, FileFault, Reader, Save};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::{Likelihood, LogJoint};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// A variance and a mixing proportion per component ([E31](crate::equations#e31); \[VC\] in the published version, \[SG\]
/// for sketches).
///
/// $$p(c, y \mid \theta) = \pi_c \mathcal N(y; \mu_c, \sigma_c^2 I_D)$$
///
/// **Update** ([E32](crate::equations#e32)), with the statistics of [`SharedIsotropic`](super::SharedIsotropic) and $s_c$
/// the second moment of each component about its current mean:
///
/// $$\mu_c^{\text{new}} = \mu_c + \delta_c, \qquad \delta_c = \frac{f_c}{m_c}, \qquad \sigma^2_c = \frac{s_c - m_c \lVert \delta_c \rVert^2}{D m_c}, \qquad \pi_c = \frac{m_c}{\sum_{c'} m_{c'}}$$
///
/// On a [`Sketch`](crate::data::Sketch) every coordinate is averaged over the rows that observe it, and $D m_c$ becomes the
/// weight of all entries ([E28](crate::equations#e28)). The variance is clamped from below ([E20](crate::equations#e20)).
///
/// **Start**: one variance for all components, from the first search ([E8](crate::equations#e8)), and equal proportions.
/// A truncated search keeps to them for the first two M-steps, as published: its first supports are random, and so would
/// be the variances of the components.
///
/// A zero-mass component is discarded: its proportion is 0, no point can choose it again, and its mean does not change. The
/// report counts it. With [`equal_proportions`](Self::equal_proportions) it keeps mean and
/// variance, and points can come back to it.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::gmm(25).m_step(Isotropic::new()).build()?.fit(&data)?;
/// let (variances, proportions) = (fit.model.variances(), fit.model.proportions());
/// assert!(variances.len() == 25 && (proportions.sum() - 1.0).abs() < 1e-9);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isotropic {
    mixing: Mixing,
}

impl Isotropic {
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

impl Stage for Isotropic {
    fn settings(&self) -> String {
        format!("{self:?}")
    }
}

impl<F: Float> MStep<F> for Isotropic {
    type Model = IsotropicMixture<F>;
    type Statistics = Moments<PerComponent>;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        let (variance, least_variance) = first_variance(&frame, data.summary());
        let variances = vec![variance; seeds.len()];
        let proportions = Proportions::equal(seeds.len(), self.mixing);
        // The unit is this variance itself: so far scores are exactly the squared distances.
        let model = IsotropicMixture::assemble(
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
        let mut model = self.start(seeds, frame, data)?;
        let factor = rescaling(&from.frame, &model.frame);
        let rescaled = from.variances.iter().map(|v| v * factor);
        model.variances = rescaled.map(|v| v.max(model.least_variance)).collect();
        if self.mixing == Mixing::Learned {
            model.proportions = from.proportions.to_learn();
        }
        let unit = model.proportions.average(model.variances.iter().copied());
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
        let (k, least) = (model.centres.len(), model.least_variance);
        let squared = moments.about_new_means(&mut model.centres);
        let entries: Vec<f64> = (0..k).map(|c| moments.entries(c)).collect();
        let shared = squared.iter().sum::<f64>() / entries.iter().sum::<f64>();
        let shared = shared.max(least);
        if restricted {
            model.variances.fill(shared);
        } else {
            for c in (0..k).filter(|&c| entries[c] > 0.0) {
                model.variances[c] = (squared[c] / entries[c]).max(least);
            }
            if self.mixing == Mixing::Learned {
                model.proportions = Proportions::learned((0..k).map(|c| moments.mass(c)));
            }
        }
        model.renew_scores(shared);
        model.means = model.centres.leave(&model.frame);
    }
}

/// A mixture of isotropic Gaussians with a variance and a mixing proportion each ([E31](crate::equations#e31)).
///
/// $$p(y \mid \theta) = \sum_{c=1}^{C} \pi_c \mathcal N(y; \mu_c, \sigma_c^2 I_D)$$
///
/// What it predicts and how it scores is in the trait [`Mixture`].
#[derive(Clone, Debug, PartialEq)]
pub struct IsotropicMixture<F> {
    centres: Centres<F>,
    frame: Frame<F>,
    /// In the unit of the frame, squared.
    variances: Vec<f64>,
    least_variance: f64,
    proportions: Proportions,
    scores: OwnVariances,
    /// Scores as products, of these centres and variances.
    linear: Cached<Linear<F>>,
    means: Array2<F>,
}

/// How squared distances become scores (E31): in units of the variance `unit`.
#[derive(Clone, Debug, PartialEq)]
struct OwnVariances {
    unit: f64,
    /// Per component: the factor of the squared distance, what each coordinate adds, what the proportion adds.
    parts: Vec<(f64, f64, f64)>,
    /// The largest factor, and the largest of what is added to a row, for the rounding bound.
    largest: (f64, f64),
}

impl<F: Float> IsotropicMixture<F> {
    /// A model from known parameters: means (k, d), the variance per column of each component (k), mixing proportions
    /// (k). A component of proportion 0 is one that was discarded.
    ///
    /// # Errors
    /// [`Error::Empty`](crate::Error::Empty), [`Error::NotFinite`](crate::Error::NotFinite) or
    /// [`Error::TooLarge`](crate::Error::TooLarge) for the means. [`Error::LengthMismatch`](crate::Error::LengthMismatch)
    /// for another number of variances or proportions. [`Error::Parameter`](crate::Error::Parameter) for variances that are
    /// not positive and finite, and for proportions that are negative or do not sum to 1.
    pub fn from_parameters(
        means: ArrayView2<'_, F>,
        variances: ArrayView1<'_, f64>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        let summary = Summary::of_points(means, "means")?;
        same_length("variances", means.nrows(), variances.len())?;
        let largest = check_variances::<F>(variances.iter().copied())?;
        let proportions = Proportions::check(proportions, means.nrows())?;
        let frame = frame_around(&summary, largest);
        let scaled = variances
            .iter()
            .map(|v| frame.enter_square(*v).max(f64::MIN_POSITIVE));
        let centres = Centres::enter(means, &frame);
        let scaled: Vec<f64> = scaled.collect();
        let unit = proportions.average(scaled.iter().copied());
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
        let scores = OwnVariances {
            unit,
            parts: Vec::new(),
            largest: (1.0, 0.0),
        };
        let mut model = Self {
            centres,
            frame,
            variances,
            least_variance,
            proportions,
            scores,
            linear: Cached::default(),
            means,
        };
        model.renew_scores(unit);
        model
    }

    /// The scores of the current parameters, in units of the variance `unit`.
    fn renew_scores(&mut self, unit: f64) {
        let parts = (0..self.centres.len()).map(|c| {
            let variance = self.variances[c];
            let (factor, per_entry) = (unit / variance, unit * (variance / unit).ln());
            (factor, per_entry, self.proportions.penalty(c, unit))
        });
        let parts: Vec<_> = parts.collect();
        let dim = self.centres.dim() as f64;
        let live = parts.iter().filter(|part| part.2.is_finite());
        let largest = live.fold((0.0f64, 0.0f64), |most, part| {
            (
                most.0.max(part.0),
                most.1.max(dim * part.1.abs() + part.2.abs()),
            )
        });
        self.scores = OwnVariances {
            unit,
            parts,
            largest,
        };
        self.linear = Cached::default();
    }

    /// The means (k, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        self.means.view()
    }

    /// The variance of every column of each component (k), in the data's own unit, squared.
    #[must_use]
    pub fn variances(&self) -> Array1<f64> {
        let variances = self.variances.iter();
        variances.map(|v| self.frame.leave_square(*v)).collect()
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
    /// [`Error::Parameter`](crate::Error::Parameter) if `n` is 0.
    pub fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        positive("n", n)?;
        let mut rng = Rng::from_seed(seed);
        let labels = Array1::from_shape_fn(n, |_| self.proportions.draw(&mut rng) as u32);
        let deviation = |v: &f64| v.sqrt() * self.frame.unit();
        let deviations: Vec<f64> = self.variances.iter().map(deviation).collect();
        let points = Array2::from_shape_fn((n, self.means.ncols()), |(n, j)| {
            let c = labels[n] as usize;
            F::from_f64(self.means[[c, j]].to_f64() + deviations[c] * rng.normal())
        });
        Ok((points, labels))
    }
}

impl OwnVariances {
    /// The score of component `c` at this squared distance, over `entries` coordinates.
    #[inline(always)]
    fn score<F: Float>(&self, c: usize, squared: F, entries: f64) -> F {
        let (factor, per_entry, penalty) = self.parts[c];
        penalised(factor * squared.to_f64() + entries * per_entry, penalty)
    }
}

/// Scores are squared distances in units of each component's variance, and what its density and proportion add (E31).
impl<F: Float> Scores<F> for IsotropicMixture<F> {
    fn components(&self) -> usize {
        self.centres.len()
    }
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        rows.distances(&self.centres, out);
        let entries = rows.entries() as f64;
        for scores in out.chunks_exact_mut(self.centres.len()) {
            for (c, score) in scores.iter_mut().enumerate() {
                *score = self.scores.score(c, *score, entries);
            }
        }
    }
    fn margin(&self, rows: &Rows<F>, i: usize, _: F) -> F {
        let (factor, added) = self.scores.largest;
        let squared = rows.margin(i, &self.centres, F::INFINITY).to_f64();
        F::from_f64(factor * squared + 4.0 * F::EPSILON * added)
    }
    fn linear(&self) -> Option<&Linear<F>> {
        // Rows that know every coordinate: others have no products.
        let entries = self.centres.dim() as f64;
        let part = |c: usize| {
            let (factor, per_entry, penalty) = self.scores.parts[c];
            let added = entries * per_entry + penalty;
            Part { factor, added }
        };
        let make = || Linear::isotropic(&self.centres, 0.5 / self.scores.unit, part);
        Some(self.linear.get(make))
    }
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        rows.distances_to(i, &self.centres, ids, out);
        let entries = rows.entries() as f64;
        for (score, &c) in out.iter_mut().zip(ids) {
            *score = self.scores.score(c as usize, *score, entries);
        }
    }
}

impl<F: Float> Mixture<F> for IsotropicMixture<F> {
    fn proportions(&self) -> Array1<f64> {
        Array1::from(self.proportions.values().to_vec())
    }

    fn free_parameters(&self) -> Option<usize> {
        let (k, d) = (self.centres.len(), self.centres.dim());
        Some(k * (d + 1) + self.proportions.free())
    }

    fn variances(&self) -> Array2<f64> {
        let variances = IsotropicMixture::variances(self);
        Array2::from_shape_fn((self.centres.len(), self.centres.dim()), |(c, _)| {
            variances[c]
        })
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
        log_joint_in_units_of(self.scores.unit, &self.centres, &self.frame)
    }
}

const FAMILY: &str = "Isotropic";

impl<F: Float> Save for IsotropicMixture<F> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let common = (&self.centres, &self.frame);
        io::model(FAMILY, common, self.means(), notes, &|file| {
            file.numbers("variances", &self.variances);
            file.numbers("least variance", &[self.least_variance]);
            file.numbers("unit of scores", &[self.scores.unit]);
            self.proportions.write(file);
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let mut file = Reader::new(bytes)?;
            let common: Common<F> = file.common(FAMILY)?;
            let k = common.centres.len();
            let variances = file.positive("variances", &[k])?;
            let least = file.one_positive("least variance")?;
            let unit = file.one_positive("unit of scores")?;
            check_saved::<F>(variances.iter().copied(), least, unit)?;
            let proportions = Proportions::read(&mut file, k)?;
            file.end()?;
            let (centres, frame) = (common.centres, common.frame);
            let model = Self::assemble(centres, frame, (variances, unit), proportions, least);
            let means = common.means;
            Ok(Self { means, ..model })
        };
        read().map_err(FileFault::of_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Rows};

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
            IsotropicMixture::from_parameters(means.view(), variances.view(), proportions.view())
                .unwrap();
        let data = Dense::new(x.view()).unwrap();
        let mut rows = Rows::default();
        let frame = Mixture::<f32>::frame(&mixture);
        data.load(600..640, frame, &mut rows);
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
