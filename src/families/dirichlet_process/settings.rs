//! The settings of the family, and the prior: as the user gives it, or from the data.

use super::posterior::Prior;
use crate::base::cancel::Watch;
use crate::base::error::{Error, Result, require, same_columns};
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::base::parallel::{self, BLOCK};
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Data, Summary, check_rows};
use crate::families::variances::{is_proper, variance_floors, variances_of};
use crate::io::hash_of;
use crate::kernels::stride;
use crate::m_step::Moments;
use crate::m_step::sums::accumulate::About;
use crate::m_step::sums::outer::Pairs;
use crate::model::block::Block;
use crate::model::search::block_rows;
use crate::rows::{Frame, Rows};
use ndarray::{Array, Array1, ArrayView1, ArrayView2, Axis, Dimension, Ix1, Ix2};
use std::fmt;

/// A Dirichlet process mixture, truncated at $T$ components (the builder's clusters), with Normal-Wishart components
/// ([E29](crate::equations#e29), [E30](crate::equations#e30); \[DP\]; Bishop, PRML, 10.2; Blei and Jordan 2006).
///
/// The other families find parameters. This one finds a distribution over parameters, and the free energy of its report is
/// the complete evidence lower bound (E30), with all constants.
///
/// **Priors.** By default they follow the data, so that a fit does not depend on its unit or origin: $m_0$ is the weighted
/// mean of all rows and $W_0^{-1}$ their weighted covariance, $\beta_0 = 1$ and $\nu_0 = D$, also where EM runs on a
/// coreset. Far values count less in both: a value is taken to be no farther from the median of its column than 16 times
/// the distance that nine tenths of the values have which differ from it. Otherwise one such row would widen all components.
/// [`paper_priors`](Self::paper_priors) are those of \[DP\].
///
/// **Start**: the means at the seeds, each with the mass $W / T$ and the same variance in every direction, from the first
/// search ([E8](crate::equations#e8)). This is a proper $q$, so the first free energy is a bound too. A truncated search
/// keeps to one variance for the first two M-steps, as in [`Gaussian`](crate::families::Gaussian).
///
/// **Merges.** Where the bound would settle, two components become one if that is sure to raise it
/// ([E51](crate::equations#e51)), and EM goes on. Only full supports merge: with
/// [`Exhaustive::truncated`](crate::e_step::Exhaustive::truncated) and other truncated searches components only empty.
///
/// **Weights count points** here, so not only their ratios matter: the larger the total weight, the weaker the prior. If
/// columns determine one another, or if components collapse onto few points, only the prior bounds the precision. So a
/// prior has a variance floor like ([E20](crate::equations#e20)) for all points: where it would leave a column less than
/// $10^{-11} W$ times its variance, so much is added to its diagonal, and $10^{-8}$ times the variance at least where it
/// follows the data.
///
/// Works on [`Dense`](crate::data::Dense) data, of which values may be missing ([E60](crate::equations#e60)). Time $n T D^2$ per
/// iteration; the sums take $T D^2$ numbers per shard of the rows.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let process = DirichletProcess::new(1.0).mean_precision(0.1);
/// let fit = algorithms::gmm(30).m_step(process).build()?.fit(&data)?; // at most 30 components
/// let used = fit.model.proportions().iter().filter(|p| **p >= 1e-3).count();
/// assert!(used <= 30 && fit.model.covariances().dim() == (30, 2, 2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DirichletProcess {
    concentration: f64,
    mean_precision: f64,
    degrees: Option<f64>,
    mean: PriorMean,
    scale: PriorScale,
    pub(super) merges: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum PriorMean {
    OfData,
    Zero,
    Given(Hashed<Ix1>),
}

/// An array whose numbers are not printed: there may be many.
#[derive(Clone, PartialEq)]
struct Hashed<D: Dimension>(Array<f64, D>);

impl<D: Dimension> fmt::Debug for Hashed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hash_of(self.0.iter().copied()))
    }
}

#[derive(Clone, Debug, PartialEq)]
enum PriorScale {
    OfData,
    /// This multiple of the identity.
    Multiple(f64),
    Given(Hashed<Ix2>),
}

impl DirichletProcess {
    /// With the concentration $\alpha \gt 0$: the larger, the more components are expected. About
    /// $\alpha \ln(1 + W / \alpha)$ of them, for points of total weight $W$.
    #[must_use]
    pub fn new(concentration: f64) -> Self {
        Self {
            concentration,
            mean_precision: 1.0,
            degrees: None,
            mean: PriorMean::OfData,
            scale: PriorScale::OfData,
            merges: true,
        }
    }

    pub(super) fn prior_is_of_data(&self) -> bool {
        matches!(self.scale, PriorScale::OfData)
    }

    /// Whether components merge where that is sure to raise the bound ([E51](crate::equations#e51)). By default they do.
    /// Without it EM is that of \[DP\]: components that are not needed empty slowly, and the more rows there are, the more of
    /// them are left when the bound has settled.
    #[must_use]
    pub fn merges(self, merges: bool) -> Self {
        Self { merges, ..self }
    }

    /// $\beta_0 \gt 0$: the weight of the prior mean, in points. Default 1.
    #[must_use]
    pub fn mean_precision(self, mean_precision: f64) -> Self {
        Self {
            mean_precision,
            ..self
        }
    }

    /// $\nu_0 \gt D - 1$: the weight of the prior precision, in points. Default $D$, the least whole number allowed.
    #[must_use]
    pub fn degrees_of_freedom(self, degrees_of_freedom: f64) -> Self {
        Self {
            degrees: Some(degrees_of_freedom),
            ..self
        }
    }

    /// $m_0$ (d), in the data's own unit. Default: the weighted mean of the data. A fit refuses values that rows of its
    /// type may not have, and those more than about $10^8$ deviations of the data away from their mean.
    #[must_use]
    pub fn mean(self, mean: ArrayView1<'_, f64>) -> Self {
        Self {
            mean: PriorMean::Given(Hashed(mean.to_owned())),
            ..self
        }
    }

    /// $W_0$ (d, d), symmetric and positive definite: precisions, in the data's own unit to the power -2. The prior
    /// expects the precision $\nu_0 W_0$. Default: the inverse of the weighted covariance of the data.
    #[must_use]
    pub fn scale(self, scale: ArrayView2<'_, f64>) -> Self {
        Self {
            scale: PriorScale::Given(Hashed(scale.to_owned())),
            ..self
        }
    }

    /// The priors of \[DP\]: $m_0 = 0$, $W_0 = 10 I$, $\beta_0 = 0.8$, and $\nu_0 = D$. They suit data of variance about 1
    /// around 0, and depend on unit and origin: far from 0 they draw all means there, and widen components in that direction. A
    /// fit refuses data that are more than about $10^8$ deviations away. The concentration stays what it is; \[DP\] has
    /// $\alpha = 5$.
    #[must_use]
    pub fn paper_priors(self) -> Self {
        Self {
            mean: PriorMean::Zero,
            scale: PriorScale::Multiple(10.0),
            mean_precision: 0.8,
            merges: self.merges,
            ..Self::new(self.concentration)
        }
    }
}

/// The rounding of a prior mean may be so much of a deviation of the data. Means of components with few rows are as far from
/// these, and F feels their rounding a hundredth as much.
const FARTHEST_MEAN: f64 = 1e-7;

impl DirichletProcess {
    pub(super) fn prior<F: Float>(&self, frame: &Frame<F>, data: &dyn Data<F>) -> Result<Prior> {
        let dim = data.dim();
        let degrees = self.degrees.unwrap_or(dim as f64);
        let rule = "must be greater than the number of columns less 1";
        let proper = degrees > dim as f64 - 1.0;
        require(proper, "degrees_of_freedom", degrees, rule)?;
        let too_far = || {
            let rule = "this is the unit of the data: bring the data or the prior to another unit";
            Error::parameter("scale", format!("too far from {:e}", frame.unit()), rule)
        };
        let scale_of_data = self.scale == PriorScale::OfData;
        let of_data = moments(frame, data)?;
        let cancel = data.cancel();
        let mean = match &self.mean {
            PriorMean::OfData => of_data.mean.clone(),
            PriorMean::Zero => enter(&Array1::zeros(dim), frame, dim)?,
            PriorMean::Given(Hashed(mean)) => enter(mean, frame, dim)?,
        };
        let least = least_variances(frame, data.summary(), &of_data, scale_of_data);
        let mut inverse_scale = match &self.scale {
            PriorScale::OfData => of_data.covariance.clone(),
            PriorScale::Multiple(multiple) => {
                let mut diagonal = vec![0.0; dim * dim];
                let entries = diagonal.iter_mut().step_by(dim + 1);
                let columns = entries.enumerate();
                columns.for_each(|(j, x)| *x = frame.enter_product(j, j, 1.0) / multiple);
                diagonal
            }
            PriorScale::Given(Hashed(scale)) => {
                same_columns("scale", dim, scale.nrows())?;
                let inverse = inverse_of(scale.view(), cancel)?.ok_or_else(too_far)?;
                let places = inverse.into_iter().enumerate();
                let enter = |(place, x)| frame.enter_product(place / dim, place % dim, x);
                places.map(enter).collect()
            }
        };
        raise(&mut inverse_scale, &least, cancel)?;
        for (column, (m0, m)) in mean.iter().zip(&of_data.mean).enumerate() {
            let place = column * (dim + 1);
            let variance = of_data.covariance[place] + inverse_scale[place] / degrees;
            if f64::EPSILON * (m0 - m).abs() > FARTHEST_MEAN * variance.sqrt() {
                let distance = (m0 - m).abs() * frame.unit_of(column);
                let value = format!("{distance:e} from the mean of the data in column {column}");
                let rule = "is too far for the deviations there: subtract the mean of each column from the data, or give \
                            DirichletProcess::mean";
                return Err(Error::parameter("prior mean", value, rule));
            }
        }
        let prior = Prior {
            concentration: self.concentration,
            mean_precision: self.mean_precision,
            degrees,
            mean,
            inverse_scale,
            ..Prior::default()
        };
        prior.factored(cancel)?.ok_or_else(too_far)
    }
}

impl Stage for DirichletProcess {
    fn check(&self, _clusters: usize) -> Result<()> {
        let rule = "must be between 1e-100 and 1e12";
        for (name, value) in [
            ("concentration", self.concentration),
            ("mean_precision", self.mean_precision),
            ("degrees_of_freedom", self.degrees.unwrap_or(1.0)),
        ] {
            // Beyond these, gamma functions and the squares of reciprocals leave the range of `f64`, or its digits.
            require((1e-100..=1e12).contains(&value), name, value, rule)?;
        }
        if let PriorMean::Given(Hashed(mean)) = &self.mean {
            let mean = mean.view().insert_axis(Axis(0));
            check_rows(mean, None, "mean", f64::INFINITY, 0)?;
        }
        if let PriorScale::Given(Hashed(scale)) = &self.scale {
            let (rows, columns) = scale.dim();
            let what = "scale";
            same_columns(what, rows, columns)?;
            check_rows(scale.view(), None, what, f64::INFINITY, 0)?;
            let values: Vec<f64> = scale.iter().copied().collect();
            let value = format!("a {rows} x {columns} matrix");
            let rule = "must be symmetric and positive definite";
            require(is_proper(&values, rows), what, value, rule)?;
        }
        Ok(())
    }
}

/// A prior mean in the coordinates of the frame. It has the range of rows there: means of components may be the prior mean.
fn enter<F: Float>(mean: &Array1<f64>, frame: &Frame<F>, dim: usize) -> Result<Vec<f64>> {
    same_columns("mean", dim, mean.len())?;
    let most = Frame::<F>::most().to_f64();
    check_rows(mean.view().insert_axis(Axis(0)), None, "mean", F::LIMIT, 0)?;
    let enter = mean.iter().enumerate().map(|(j, &value)| {
        let entered = frame.enter_length(j, value - frame.offset[j].to_f64());
        let rule = "is too far from the data: the prior must be near it";
        require(entered.abs() <= most, "mean", value, rule)?;
        Ok(entered)
    });
    enter.collect()
}

/// The inverse of a symmetric matrix (d, d); `None` unless it is positive definite.
fn inverse_of(matrix: ArrayView2<'_, f64>, watch: Watch<'_>) -> Result<Option<Vec<f64>>> {
    let dim = matrix.nrows();
    let values: Vec<f64> = matrix.iter().copied().collect();
    let Some(Cholesky { factor, .. }) = Cholesky::of(&values, dim, watch)? else {
        return Ok(None);
    };
    let inverse = linalg::inverse_of_lower(&factor, dim, watch)?;
    let product = linalg::gram(&inverse, dim, watch)?;
    Ok(product.iter().all(|x| x.is_finite()).then_some(product))
}

/// Weighted mean (d) and covariance (d, d; its lower half).
struct Gaussian {
    mean: Vec<f64>,
    covariance: Vec<f64>,
}

/// The range of each column (d) that no value is taken to leave, so that a few far ones do not make the prior as wide as they are
/// far: on both sides of the median several times as far as nine tenths of the values that differ from it.
fn reach<F: Float>(frame: &Frame<F>, data: &dyn Data<F>) -> Result<Vec<(F, F)>> {
    /// Nothing is beyond it of a uniform distribution, nor of a normal one to 26 deviations.
    const TIMES: f64 = 16.0;
    /// Rows that are looked at: one from each of as many parts of the data.
    const ROWS: usize = 4_096;
    let n = data.len();
    let dim = data.dim();
    let parts = n.min(ROWS);
    let mut rng = Rng::from_seed(0);
    let start = |part: usize| part * n / parts;
    let ids = (0..parts).map(|part| start(part) + rng.below(start(part + 1) - start(part)));
    let ids: Vec<usize> = ids.collect();
    let mut rows = Rows::default();
    let mut values = Vec::new();
    let mut weights = Vec::new();
    for ids in ids.chunks(block_rows(1, dim)) {
        data.gather(ids, frame, &mut rows)?;
        match rows.entries() {
            None => {
                (0..rows.len()).for_each(|i| values.extend_from_slice(&rows.row(i)[..dim]));
            }
            Some(entries) => entries.rows().for_each(|row| {
                let start = values.len();
                values.resize(start + dim, F::from_f64(f64::NAN));
                for (&j, z) in row.ids.iter().zip(row.values) {
                    values[start + j as usize] = *z;
                }
            }),
        }
        weights.extend_from_slice(&rows.weights);
    }
    Ok(parallel::map(dim, |j| {
        let column = values.iter().skip(j).step_by(dim).map(|z| z.to_f64());
        let column = column.zip(weights.iter().copied());
        let column: Vec<(f64, f64)> = column.filter(|(z, _)| !z.is_nan()).collect();
        let median = quantile(column.clone(), 0.5).unwrap_or(0.0);
        let others = column.into_iter().filter(|(z, _)| *z != median);
        let deviations = others.map(|(z, weight)| ((z - median).abs(), weight));
        let reach = quantile(deviations.collect(), 0.9).map_or(f64::INFINITY, |most| TIMES * most);
        [median - reach, median + reach].map(F::from_f64).into()
    }))
}

/// The least of weighted values that at least this share of the weight does not exceed; `None` if there is no weight.
fn quantile(mut values: Vec<(f64, f64)>, share: f64) -> Option<f64> {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut weight_left = share * values.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut with_weight = values.iter().filter(|(_, weight)| *weight > 0.0);
    let reached = with_weight.find(|(_, weight)| {
        weight_left -= weight;
        weight_left <= 0.0
    });
    reached.or(values.last()).map(|(value, _)| *value)
}

/// Mean and covariance of the data in the coordinates of `frame`, with no value beyond its reach: from sums about the mean of
/// the data. Where values are missing, the variance of a column is that of the known ones, and the covariance of two is in proportion
/// to the rows that know both, so that the matrix has no negative eigenvalue.
fn moments<F: Float>(frame: &Frame<F>, data: &dyn Data<F>) -> Result<Gaussian> {
    /// Parts of the data: each has its own sums.
    const PARTS: usize = 32;
    let n = data.len();
    let dim = data.dim();
    let rows_of_block = block_rows(1, dim);
    let reach = reach(frame, data)?;
    let within = |z: F, low: F, high: F| match z {
        z if z < low => low,
        z if z > high => high,
        z => z,
    };
    let mean = frame.mean[..dim].iter().zip(&reach);
    let centre: Vec<f64> = mean
        .map(|(m, (low, high))| within(*m, *low, *high).to_f64())
        .collect();
    let size = n.div_ceil(PARTS).next_multiple_of(BLOCK);
    let parts = parallel::map_blocks(n, size, |_, range| {
        let mut sums = Moments::pairs(1, dim).with_own(dim);
        let mut rows = Rows::default();
        let mut block = Block::new(1, 1);
        for from in range.clone().step_by(rows_of_block) {
            let to = range.end.min(from + rows_of_block);
            data.load(from..to, frame, &mut rows)?;
            if let Some(entries) = rows.entries() {
                for (row, weight) in entries.rows().zip(&rows.weights) {
                    let known = sums.own_mut();
                    row.ids.iter().for_each(|&j| known[j as usize] += weight);
                }
                let values: Vec<F> = (0..rows.len())
                    .flat_map(|i| rows.coordinates(i).into_owned())
                    .collect();
                let mut filled = Rows::of_padded(&values, dim);
                filled.weights = std::mem::take(&mut rows.weights);
                rows = filled;
            }
            for row in rows.values.chunks_exact_mut(stride(dim)) {
                let numbers = row.iter_mut().zip(&reach);
                numbers.for_each(|(z, (low, high))| *z = within(*z, *low, *high));
            }
            block.reset(rows.len(), &[]);
            block.make_room();
            block.responsibilities.fill(F::one());
            sums.add_about(&rows, &block, &About::Pairs(Pairs::about(&centre)));
        }
        Ok(sums)
    });
    let sums = Moments::merge(parallel::all(parts)?.iter_mut());
    let total = sums.mass(0).max(f64::MIN_POSITIVE);
    let step: Vec<f64> = sums.first(0)[..dim].iter().map(|sum| sum / total).collect();
    // Missing values are at the mean, and add nothing: these factors are 1 where all are known.
    let factor = |j: usize| match sums.own()[j] {
        known if known > 0.0 => total / known,
        _ => 1.0,
    };
    let covariance = sums.about(0, &step, &[]).into_iter().enumerate();
    let covariance = covariance.map(|(place, x)| {
        let both = factor(place / dim) * factor(place % dim);
        x / total * both.sqrt()
    });
    let mean = centre.iter().zip(&step).enumerate();
    Ok(Gaussian {
        covariance: covariance.collect(),
        mean: mean.map(|(j, (m, step))| m + step * factor(j)).collect(),
    })
}

/// The least variance that a prior leaves to each column, when the others are known (d), so that neither it nor components that
/// collapse onto few points are lost in rounding next to the data: a variance floor like (E20) of each column, for all points.
fn least_variances<F: Float>(
    frame: &Frame<F>,
    data: &Summary,
    near: &Gaussian,
    of_data: bool,
) -> Vec<f64> {
    /// As a part of the variance of a column. Sums of products are off by about 1e-15 of it, so the smallest eigenvalue is by 1e-4,
    /// which counts squared in the free energy: 1e-9 of each point at most.
    const FLOOR: f64 = 1e-11;
    /// Columns of the data that determine one another to within this share of their variance are taken to do so exactly.
    /// Sums over a million rows still leave half of the digits of what is beyond it.
    const DEPENDENT: f64 = 1e-8;
    let floors = variance_floors(frame, data);
    let share = FLOOR * data.total_weight;
    let share = if of_data { share.max(DEPENDENT) } else { share };
    let near = near.covariance.iter().step_by(data.mean.len() + 1);
    // Few far values may make nearly all of a variance.
    let variances = variances_of(frame, data).zip(near);
    let variances = variances.map(|(whole, &near)| if near < 0.5 * whole { near } else { whole });
    variances
        .zip(floors)
        .map(|(v, floor)| share * v.max(floor))
        .collect()
}

/// Adds their least values to the diagonal of an inverse scale matrix, if any of its pivots would be below its own.
fn raise(matrix: &mut [f64], least: &[f64], watch: Watch<'_>) -> Result<()> {
    let dim = least.len();
    let enough = |c: Cholesky| (0..dim).all(|j| c.factor[j * (dim + 1)].powi(2) >= least[j]);
    if !Cholesky::of(matrix, dim, watch)?.is_some_and(enough) {
        let diagonal = matrix.iter_mut().step_by(dim + 1);
        diagonal.zip(least).for_each(|(x, least)| *x += least);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// Only what is far from nearly all others of its column is beyond the reach of a prior; no unit, origin or order matters.
    #[test]
    fn only_far_values_are_beyond_reach() {
        use crate::data::Dense;
        let mut rng = Rng::from_seed(4);
        type Column = fn(usize, &mut Rng) -> f64;
        let columns: [Column; 8] = [
            |_, rng| rng.normal(),
            |_, rng| rng.uniform(),
            |_, rng| rng.exponential(),
            |i, rng| 300.0 * (i % 3) as f64 + rng.normal(),
            |i, _| f64::from(i % 9 == 0),
            |_, rng| (3.0 * rng.exponential()).floor(),
            |_, _| 7.0,
            |i, rng| if i % 10 < 8 { 0.0 } else { rng.normal() },
        ];
        let dim = columns.len();
        for n in [1, 2, 300, 20_000] {
            let x = Array2::from_shape_fn((n, dim), |(i, j)| columns[j](i, &mut rng));
            let beyond = |x: &Array2<f64>| {
                let data = Dense::new(x).unwrap();
                let mut rows = Rows::default();
                let frame = data.frame();
                data.load(0..n, &frame, &mut rows).unwrap();
                let reach = reach(&frame, &data).unwrap();
                let places = (0..n).flat_map(|i| (0..dim).map(move |j| (i, j)));
                let out = |z: f64, (low, high): (f64, f64)| z < low || z > high;
                let outside = places.filter(|&(i, j)| out(rows.row(i)[j], reach[j]));
                outside.collect::<Vec<_>>()
            };
            assert_eq!(beyond(&x), []);
            if n < 300 {
                continue;
            }
            let mut far = x.clone();
            let places = [(7, 0), (9, 3), (20, 4), (33, 7)];
            places.iter().for_each(|place| far[*place] = -1e6);
            assert_eq!(beyond(&far), places);
            assert_eq!(beyond(&far.mapv(|x| x * 2f64.powi(-90))), places);
            assert_eq!(beyond(&far.mapv(|x| x + 3e5)), places);
        }
        // By weight, not by number.
        let half = vec![(1.0, 1.0), (5.0, 3.0), (2.0, 0.0), (3.0, 1.5)];
        assert_eq!(quantile(half.clone(), 0.5), Some(5.0));
        assert_eq!(
            [0.0, 0.4, 1.0].map(|share| quantile(half.clone(), share)),
            [1.0, 3.0, 5.0].map(Some)
        );
        assert_eq!(quantile(Vec::new(), 0.5), None);
    }

    #[test]
    fn a_proper_matrix_stays_and_a_singular_one_is_raised() {
        let good = [2.0, 0.5, 0.5, 1.0];
        let mut made = good;
        raise(&mut made, &[1e-8; 2], None).unwrap();
        assert_eq!(made, good);
        for singular in [
            [1.0, 1.0, 1.0, 1.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.0; 4],
            [1.0, 1.0 + 1e-16, 1.0 + 1e-16, 1.0],
        ] {
            let mut made = singular;
            raise(&mut made, &[1e-8, 1e-8], None).unwrap();
            let cholesky = Cholesky::of(&made, 2, None).unwrap();
            assert!(cholesky.unwrap().factor[3] > 0.9e-4);
            let moved = made.iter().zip(&singular).map(|(a, b)| (a - b).abs());
            assert!(moved.fold(0.0, f64::max) < 1.1e-8);
        }
    }
}
