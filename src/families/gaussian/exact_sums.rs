//! Sums of an E-step over rows that lie in many places: the same bits, however rows are split.

use super::family::Gaussian;
use super::mixture::GaussianMixture;
use crate::base::cancel::unwatched;
use crate::base::error::{Error, Result, positive, require, same_length, sound_weight};
use crate::base::fixed::Fixed;
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK, Spare};
use crate::costs::Cost;
use crate::data::{Data, Guarded};
use crate::io;
use crate::kernels::soft::LOST;
use crate::m_step::MStep;
use crate::model::{Mixture, posterior, predict};
use crate::rows::Rows;
use ndarray::{Array2, ArrayView1, Axis};

/// The sums that the E-step of a Gaussian mixture finds on some rows, for an M-step on all: partitions of a table, chunks of a stream.
///
/// Sums are integers ([E53](crate::equations#e53)), so that they have the same bits however rows are split, ordered and
/// weighted into parts, and on any number of threads. They travel as [bytes](Self::to_bytes), or by serde.
///
/// ```
/// use coremix::families::ExactSums;
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f64>(1)?;
/// # let points = birch.points;
/// let start = algorithms::gmm(25).max_iterations(1).build()?.fit(&Dense::new(&points)?)?.model;
/// // An iteration of EM on parts, each where its rows are. All components share a row.
/// let parts = points.axis_chunks_iter(ndarray::Axis(0), 300);
/// let sums = parts.map(|part| ExactSums::e_step(&start, &Dense::batch(part)?, None, 25));
/// let all = sums.reduce(|a, b| a?.merge(b?)).expect("some parts")?;
/// let next = all.update(&start)?;
/// assert_eq!(all, ExactSums::e_step(&start, &Dense::new(&points)?, None, 25)?);
/// assert!(next.log_likelihood(&Dense::new(&points)?)? >= all.free_energy());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct ExactSums {
    /// A checksum of the model: sums of different ones must not meet.
    model: u32,
    rows: u64,
    weight: i128,
    free_energy: i128,
    /// The logarithm of the prior density of the model, which rows do not change.
    prior: i128,
    /// Squared distances to the nearest mean.
    squared: i128,
    /// Mass, first moments (d) and second moments (1 or d) of each component about its mean; none without mass.
    components: Vec<Vec<i128>>,
}

/// Weights and masses.
const WEIGHT: Fixed = Fixed::of(0);

/// Log-densities.
const NATS: Fixed = Fixed::of(20);

/// No coordinate of a row may be this many units away from a mean: squares of larger ones are beyond fixed point.
const FARTHEST: f64 = (1 << 20) as f64;

struct Units {
    /// For each column: above how far means lie apart, and above the deviations from them.
    columns: Vec<Fixed>,
    squared: Fixed,
}

impl Units {
    fn of<F: Float>(model: &GaussianMixture<F>) -> Self {
        let k = model.theta.common.k();
        let dim = model.theta.common.dim();
        let centre = |c: usize, j: usize| model.theta.common.centres.row(c)[j].to_f64();
        let variances =
            (0..k).map(|c| unwatched(model.theta.covariances.kind().variances(c, None)));
        let variances: Vec<_> = variances.collect();
        let size = |j: usize| {
            let of_component = |c: usize| {
                let variance = variances[c][j % variances[c].len()];
                (centre(c, j) - centre(0, j)).abs().max(variance.sqrt())
            };
            (0..k).map(of_component).fold(0.0, f64::max)
        };
        let sizes: Vec<f64> = (0..dim).map(size).collect();
        // A column whose spread is rounding, as it was constant so far, may not be so in other rows.
        let widest = sizes.iter().copied().fold(0.0, f64::max);
        let columns = sizes.into_iter().map(|size| {
            let is_constant = size * FARTHEST * FARTHEST < widest;
            Fixed::bounding(if is_constant { widest / FARTHEST } else { size })
        });
        let columns: Vec<_> = columns.collect();
        let widest = columns.iter().copied().reduce(Fixed::max).unwrap_or(WEIGHT);
        let squared = widest.times(widest).times(Fixed::bounding(dim as f64));
        Self { columns, squared }
    }

    /// For the second moments of a component, as many as there are.
    fn second(&self, per_column: bool) -> Vec<Fixed> {
        if per_column {
            self.columns.iter().map(|unit| unit.times(*unit)).collect()
        } else {
            vec![self.squared]
        }
    }
}

/// An E-step over blocks of rows: what of it does not change.
struct Pass<'a, F> {
    model: &'a GaussianMixture<F>,
    units: Units,
    second: Vec<Fixed>,
    /// Whether an M-step follows.
    moments: bool,
}

impl ExactSums {
    /// The sums of an E-step over rows, each shared by its `width` best components; more than all are all. These are the weights of
    /// the rows, in place of those of the data: all of them may be 0. There may be no rows.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `width` of 0, and for models of full or tied covariances or on a
    /// [`Sketch`](crate::data::Sketch); [`Error::LengthMismatch`] and [`Error::Weight`] for weights;
    /// [`Error::DimensionMismatch`] for rows of other columns. [`Error::Stage`] for a row that is more than 2^20 times as far from
    /// the means as these lie apart.
    pub fn e_step<F: Float>(
        model: &GaussianMixture<F>,
        data: &dyn Data<F>,
        weights: Option<ArrayView1<'_, f64>>,
        width: usize,
    ) -> Result<Self> {
        Self::pass(model, data, weights, width, true)
    }

    /// As above over all components, without what only an M-step needs, and without the prior: the free energy is the log-likelihood.
    ///
    /// # Errors
    /// As [`e_step`](Self::e_step).
    pub fn score<F: Float>(model: &GaussianMixture<F>, data: &dyn Data<F>) -> Result<Self> {
        Self::pass(model, data, None, model.theta.common.k(), false)
    }

    fn pass<F: Float>(
        model: &GaussianMixture<F>,
        data: &dyn Data<F>,
        weights: Option<ArrayView1<'_, f64>>,
        width: usize,
        moments: bool,
    ) -> Result<Self> {
        let rule = "need all their coordinates: rows of a sketch, sparse rows, and rows with missing values have only some";
        require(!data.is_ragged(), "rows", "known in part", rule)?;
        let mut empty = Self::of_none(model)?;
        if moments {
            let rule = "must be less far from its mode";
            let prior = NATS.cut(model.prior_terms());
            let far = || Error::parameter("prior of the model", model.prior_terms(), rule);
            empty.prior = prior.ok_or_else(far)?;
        }
        positive("width", width)?;
        if let Some(weights) = weights {
            same_length("weights", data.len(), weights.len())?;
            let mut weights = weights.iter().enumerate();
            weights.try_for_each(|(row, weight)| sound_weight(row, *weight))?;
        }
        data.check(model.frame())?;
        if data.is_empty() {
            return Ok(empty);
        }
        let k = model.theta.common.k();
        let supports = match width.min(k) {
            width if width == k => None,
            1 => Some(model.predict(data)?.insert_axis(Axis(1))),
            width => Some(model.truncated_responsibilities(data, width)?.0),
        };
        let all_ids = Array2::from_shape_fn((1, k), |(_, c)| c as u32);
        let units = Units::of(model);
        let pass = Pass {
            second: units.second(model.theta.covariance().is_by_column()),
            model,
            units,
            moments,
        };
        let data: &dyn Data<F> = &Guarded::new(data, None)?;
        let spare = Spare::default();
        let blocks = parallel::map_blocks(data.len(), BLOCK, |_, range| {
            let mut rows = Rows::default();
            data.load(range.clone(), model.frame(), &mut rows)?;
            let nearest = !model.cost().is_squared();
            let nearest = nearest.then(|| predict::label(Cost::Squared(model.centres()), &rows));
            let mut sums = spare.take().unwrap_or_else(|| empty.clone());
            for (i, n) in range.enumerate() {
                let support = match &supports {
                    Some(supports) => supports.row(n),
                    None => all_ids.row(0),
                };
                let weight = weights.map_or_else(|| data.weight(n), |weights| weights[n]);
                let support = support.to_slice().expect("in standard layout");
                let nearest = nearest.as_ref().map(|nearest| nearest[i]);
                let added = pass.add(&rows, i, weight, support, nearest, &mut sums);
                added.ok_or_else(|| {
                    let what = "is too far away: more than 2^20 times as far as the means of the model lie apart";
                    Error::stage(data.name(), format!("row {n} {what}"))
                })?;
            }
            // Integers: it does not matter which rows meet in which sums.
            spare.give([sums]);
            Ok(())
        });
        parallel::all(blocks)?;
        std::iter::from_fn(|| spare.take()).try_fold(empty, Self::merge)
    }

    fn of_none<F: Float>(model: &GaussianMixture<F>) -> Result<Self> {
        let theta = &model.theta;
        let suits =
            !theta.covariance().has_dependent_columns() && theta.common.frame.basis().is_none();
        let kind = format!("{:?} covariances", theta.covariance());
        let rule = "must have a variance per component or column, and not be fitted on a sketch";
        require(suits, "model", kind, rule)?;
        let numbers = io::to_vec(theta).map_err(|error| io::FileFault::from(error).of_bytes())?;
        Ok(Self {
            model: io::checksum(&numbers),
            rows: 0,
            weight: 0,
            free_energy: 0,
            prior: 0,
            squared: 0,
            components: vec![Vec::new(); theta.common.k()],
        })
    }

    /// The sums over these rows and others.
    ///
    /// # Errors
    /// [`Error::Parameter`] for those of another model, and if a sum is beyond 128 bits.
    pub fn merge(mut self, other: Self) -> Result<Self> {
        let lengths = self.components.iter().zip(&other.components);
        let mut lengths = lengths.map(|(a, b)| a.is_empty() || b.is_empty() || a.len() == b.len());
        let identity = |sums: &Self| (sums.model, sums.prior, sums.components.len());
        let same = identity(&self) == identity(&other);
        let same = same && lengths.all(|same| same);
        let rule = "must be of one model: parts of different models cannot be merged";
        require(same, "sums", "of another model", rule)?;
        let rule = "must stay within 128 bits: use smaller weights";
        let too_large = || Error::parameter("sums", "too large", rule);
        let rows = self.rows.checked_add(other.rows);
        self.rows = rows.ok_or_else(too_large)?;
        let sum = |a: i128, b: i128| a.checked_add(b).ok_or_else(too_large);
        self.weight = sum(self.weight, other.weight)?;
        self.free_energy = sum(self.free_energy, other.free_energy)?;
        self.squared = sum(self.squared, other.squared)?;
        for (totals, parts) in self.components.iter_mut().zip(other.components) {
            totals.resize(totals.len().max(parts.len()), 0);
            for (total, part) in totals.iter_mut().zip(parts) {
                *total = sum(*total, part)?;
            }
        }
        Ok(self)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The sum of the weights.
    #[must_use]
    pub fn weight(&self) -> f64 {
        WEIGHT.value(self.weight)
    }

    /// The free energy of the model ([E3](crate::equations#e3)), in nats, with its [prior](crate::families::Prior): where all components
    /// share a row and there is no prior, its log-likelihood.
    #[must_use]
    pub fn free_energy(&self) -> f64 {
        NATS.value(self.free_energy.saturating_add(self.prior))
    }

    /// The masses of the components (k).
    #[must_use]
    pub fn masses(&self) -> impl ExactSizeIterator<Item = f64> {
        let mass = |sums: &Vec<i128>| WEIGHT.value(sums.first().copied().unwrap_or(0).max(0));
        self.components.iter().map(mass)
    }

    /// The quantization error of the model of these sums ([E22](crate::equations#e22)).
    #[must_use]
    pub fn quantization_error<F: Float>(&self, model: &GaussianMixture<F>) -> f64 {
        let squared = Units::of(model).squared.value(self.squared);
        model.frame().leave_square(squared)
    }

    /// The model after the M-step ([`Gaussian`]).
    ///
    /// # Errors
    /// [`Error::Parameter`] for sums of another model, or over no row of positive weight.
    pub fn update<F: Float>(&self, model: &GaussianMixture<F>) -> Result<GaussianMixture<F>> {
        let k = model.theta.common.k();
        let dim = model.theta.common.dim();
        let units = Units::of(model);
        let second = units.second(model.theta.covariance().is_by_column());
        let sound = |sums: &Vec<i128>| sums.is_empty() || sums.len() == 1 + dim + second.len();
        let same = Self::of_none(model)?.model == self.model && self.components.len() == k;
        let same = same && self.components.iter().all(sound);
        let rule = "must be of the model that they update";
        require(same, "sums", "of another model", rule)?;
        let rule = "no row has positive weight, and at least one must";
        require(self.masses().any(|mass| mass > 0.0), "sums", "empty", rule)?;
        let family = match model.theta.common.proportions.free() {
            0 => Gaussian::new(model.theta.covariance()).equal_proportions(),
            _ => Gaussian::new(model.theta.covariance()),
        };
        let mut moments = MStep::<F>::statistics(&family, model);
        for (c, mass) in self.masses().enumerate().filter(|(_, mass)| *mass > 0.0) {
            let (firsts, seconds) = self.components[c][1..].split_at(dim);
            let firsts = firsts.iter().zip(&units.columns);
            moments.set(c, mass, firsts.map(|(sum, unit)| unit.value(*sum)));
            let seconds = seconds.iter().zip(&second);
            let seconds: Vec<f64> = seconds.map(|(sum, unit)| unit.value(*sum)).collect();
            moments.set_second(c, &seconds, mass * dim as f64);
        }
        let mut next = model.clone();
        family.update(moments, &mut next, false, None)?;
        Ok(next)
    }

    /// The sums as bytes, with a checksum.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = io::write_to(&mut bytes, &io::SUMS, "", &|to| io::put(self, to));
        written.expect("a vector takes all bytes");
        bytes
    }

    /// Sums from their bytes.
    ///
    /// # Errors
    /// [`Error::Model`] for bytes that are no sums, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let sums = io::Contents::of(&io::SUMS, bytes)
            .and_then(|contents| io::only("sums", contents.values));
        sums.map_err(io::FileFault::of_bytes)
    }
}

impl<F: Float> Pass<'_, F> {
    /// Adds row `i`, with the component of the nearest mean where that is not the likeliest. The sums of a row depend on it alone,
    /// never on the rows next to it. `None` if it is too far away.
    fn add(
        &self,
        rows: &Rows<F>,
        i: usize,
        weight: f64,
        support: &[u32],
        nearest: Option<u32>,
        sums: &mut ExactSums,
    ) -> Option<()> {
        sums.rows += 1;
        // A row of weight 0 may be anywhere.
        if weight == 0.0 {
            return Some(());
        }
        let dim = rows.dim;
        let log_joint = self.model.log_joint();
        let mut costs = Vec::with_capacity(support.len());
        self.model.cost().some(rows, i, support, &mut costs);
        let least = |a: usize, b: usize| if costs[b] < costs[a] { b } else { a };
        let place = (0..costs.len()).reduce(least)?;
        let best = costs[place].to_f64();
        let mut shares = vec![0.0; support.len()];
        let sum = posterior::shares(&costs, best, log_joint.beta, &mut shares);
        let known = log_joint.alpha + dim as f64 * log_joint.gamma;
        let density = known - log_joint.beta * best + sum.ln();
        WEIGHT.count(weight, &mut sums.weight)?;
        NATS.count(weight * density, &mut sums.free_energy)?;
        let mut difference = vec![0.0; dim];
        let nearest = nearest.unwrap_or(support[place]);
        let squared = self.apart(rows.row(i), nearest, &mut difference)?;
        let unit = self.units.squared;
        unit.count(weight * squared, &mut sums.squared)?;
        if !self.moments {
            return Some(());
        }
        // No sum needs the others (E41).
        for (share, c) in shares.iter().zip(support).filter(|(q, _)| **q >= LOST) {
            let mass = weight * share;
            let squared = self.apart(rows.row(i), *c, &mut difference)?;
            let component = &mut sums.components[*c as usize];
            component.resize(1 + dim + self.second.len(), 0);
            let (first, second) = component.split_at_mut(1 + dim);
            WEIGHT.count(mass, &mut first[0])?;
            let columns = first[1..].iter_mut().zip(&self.units.columns);
            for ((total, unit), x) in columns.zip(&difference) {
                unit.count(mass * x, total)?;
            }
            match second {
                [total] if !self.model.theta.covariance().is_by_column() => {
                    unit.count(mass * squared, total)?;
                }
                totals => {
                    for ((total, unit), x) in totals.iter_mut().zip(&self.second).zip(&difference) {
                        unit.count(mass * x * x, total)?;
                    }
                }
            }
        }
        Some(())
    }

    /// How far a row is from a mean in every column, and its squared distance; `None` if it is too far away.
    fn apart(&self, row: &[F], c: u32, apart: &mut [f64]) -> Option<f64> {
        let centre = self.model.theta.common.centres.row(c as usize);
        let mut squared = 0.0;
        let columns = row.iter().zip(centre).zip(&self.units.columns);
        for (((x, mean), unit), difference) in columns.zip(apart) {
            *difference = x.to_f64() - mean.to_f64();
            squared += *difference * *difference;
            if difference.abs() > FARTHEST * unit.unit() {
                return None;
            }
        }
        Some(squared)
    }
}

#[cfg(test)]
mod tests {
    use super::super::covariance::Covariance;
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::Dense;
    use ndarray::{Array1, ArrayD, array};

    const KINDS: [Covariance; 3] = [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
    ];

    /// Rows of columns of very different ranges, and their weights.
    fn rows(n: usize) -> (Array2<f64>, Array1<f64>) {
        let mut rng = Rng::from_seed(3);
        let scales = [1.0, 1e-6, 300.0];
        let x = Array2::from_shape_fn((n, 3), |(i, j)| {
            scales[j] * (((i * (j + 1)) % 4) as f64 + 0.4 * rng.normal())
        });
        (x, Array1::from_shape_fn(n, |i| (i % 5) as f64 * 0.3))
    }

    fn model(kind: Covariance) -> GaussianMixture<f64> {
        let means = array![[0.1, 0.2e-6, 20.0], [1.9, 1e-6, 300.0], [3.2, 3e-6, 800.0]];
        let variances: ArrayD<f64> = match kind {
            Covariance::TiedSpherical => ndarray::arr0(1e4).into_dyn(),
            Covariance::Spherical => array![2e4, 1e4, 3e4].into_dyn(),
            _ => Array2::from_shape_fn((3, 3), |(c, j)| (c + 1) as f64 * [0.3, 1e-12, 2e4][j])
                .into_dyn(),
        };
        let proportions = match kind {
            Covariance::TiedSpherical => array![1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0],
            _ => array![0.2, 0.5, 0.3],
        };
        let means = means.view();
        let proportions = proportions.view();
        GaussianMixture::from_parameters(kind, means, variances.view(), proportions).unwrap()
    }

    /// An iteration of EM as it is written in books, with the supports and responsibilities of the model.
    #[test]
    fn an_iteration_is_the_naive_one() {
        let (x, w) = rows(700);
        for (kind, width) in KINDS
            .into_iter()
            .flat_map(|kind| (1..4).map(move |w| (kind, w)))
        {
            let model = model(kind);
            let data = Dense::new(&x).unwrap();
            let responsibilities = model.responsibilities(&data).unwrap();
            let (ids, shares) = model.truncated_responsibilities(&data, width).unwrap();
            let densities = model.log_densities(&data).unwrap();
            let mut q = Array2::<f64>::zeros((700, 3));
            let mut free_energy = 0.0;
            for (n, support) in ids.outer_iter().enumerate() {
                for (c, share) in support.iter().zip(shares.row(n)) {
                    q[[n, *c as usize]] = w[n] * share;
                }
                let covered: f64 = support
                    .iter()
                    .map(|c| responsibilities[[n, *c as usize]])
                    .sum();
                free_energy += w[n] * (densities[n] + covered.ln());
            }
            let masses = q.sum_axis(Axis(0));
            let means = q.t().dot(&x) / masses.view().insert_axis(Axis(1));
            let mut squares = Array2::<f64>::zeros((3, 3));
            for ((n, c), q) in q.indexed_iter() {
                let difference = &x.row(n) - &means.row(c);
                squares
                    .row_mut(c)
                    .scaled_add(q / masses[c], &(&difference * &difference));
            }
            let sums = ExactSums::e_step(&model, &data, Some(w.view()), width).unwrap();
            let weighted = Dense::weighted(&x, &w).unwrap();
            let own = ExactSums::e_step(&model, &weighted, None, width);
            assert_eq!(own.unwrap(), sums);
            let next = sums.update(&model).unwrap();
            let near =
                |a: f64, b: f64| assert!((a - b).abs() <= 1e-11 * b.abs(), "{kind:?} {a} {b}");
            near(sums.free_energy(), free_energy);
            near(sums.weight(), w.sum());
            sums.masses().zip(&masses).for_each(|(a, b)| near(a, *b));
            // Units are above deviations, and each term loses less than 2^-60 of one.
            let new = Mixture::means(&next);
            let cut = model.variances().mapv(|v| v.sqrt() * 2f64.powi(-57));
            for ((new, mean), cut) in new.iter().zip(&means).zip(&cut) {
                assert!(
                    (new - mean).abs() <= 1e-11 * mean.abs() + cut,
                    "{new} {mean}"
                );
            }
            let expected = match kind {
                Covariance::TiedSpherical => {
                    let variances = squares.mean_axis(Axis(1)).unwrap();
                    Array2::from_elem((3, 3), variances.dot(&masses) / masses.sum())
                }
                Covariance::Spherical => {
                    let variances = squares.mean_axis(Axis(1)).unwrap();
                    Array2::from_shape_fn((3, 3), |(c, _)| variances[c])
                }
                _ => squares,
            };
            let variances = next.variances();
            variances
                .iter()
                .zip(&expected)
                .for_each(|(a, b)| near(*a, *b));
            if kind != Covariance::TiedSpherical {
                let expected = masses.iter().map(|m| m / masses.sum());
                next.proportions()
                    .iter()
                    .zip(expected)
                    .for_each(|(a, b)| near(*a, b));
            }
        }
    }

    #[test]
    fn any_split_and_order_gives_the_same_bits() {
        let (x, w) = rows(1_500);
        for (kind, width) in [(KINDS[0], 1), (KINDS[0], 2), (KINDS[1], 3), (KINDS[2], 2)] {
            let model = model(kind);
            let sums_of = |rows: std::ops::Range<usize>, step: isize| {
                let rows = ndarray::Slice::new(rows.start as isize, Some(rows.end as isize), step);
                let x = x.slice_axis(Axis(0), rows);
                let w = w.slice_axis(Axis(0), rows);
                let x = x.as_standard_layout();
                ExactSums::e_step(&model, &Dense::batch(&x).unwrap(), Some(w), width).unwrap()
            };
            let whole = sums_of(0..1_500, 1);
            let parts = [
                sums_of(700..1_500, -1),
                sums_of(0..0, 1),
                sums_of(13..700, -1),
                sums_of(0..13, 1),
            ];
            let merged = parts
                .into_iter()
                .reduce(|a, b| a.merge(b).unwrap())
                .unwrap();
            assert!(merged == whole, "{kind:?} {width}");
            assert!(ExactSums::from_bytes(&whole.to_bytes()).unwrap() == whole);
        }
    }

    /// Sums for a score do not grow with the components, and say what the model says.
    #[test]
    fn a_score_has_no_moments() {
        let (x, w) = rows(600);
        for kind in KINDS {
            let model = model(kind);
            let data = Dense::weighted(&x, &w).unwrap();
            let sums = ExactSums::score(&model, &data).unwrap();
            let expected = model.score(&data).unwrap();
            assert!(sums.components.iter().all(Vec::is_empty));
            let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} {b}");
            near(sums.quantization_error(&model), expected.quantization_error);
            near(sums.free_energy(), expected.log_likelihood);
            assert!(sums.update(&model).is_err());
        }
    }

    #[test]
    fn sums_of_other_models_and_damaged_ones_are_refused() {
        let (x, _) = rows(50);
        let data = Dense::new(&x).unwrap();
        let sums = |kind| ExactSums::e_step(&model(kind), &data, None, 3).unwrap();
        assert!(sums(KINDS[0]).merge(sums(KINDS[1])).is_err());
        assert!(sums(KINDS[0]).update(&model(KINDS[1])).is_err());
        let bytes = sums(KINDS[2]).to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(ExactSums::from_bytes(&damaged).is_err());
            assert!(ExactSums::from_bytes(&bytes[..at]).is_err());
        }
        let mut far = x.clone();
        far[[7, 0]] = 1e20;
        let far = ExactSums::e_step(&model(KINDS[2]), &Dense::new(&far).unwrap(), None, 3);
        assert!(
            far.unwrap_err()
                .to_string()
                .contains("row 7 is too far away")
        );
    }
}
