//! Statistics of the whole data that a fit needs before it starts, from one pass.

use super::Data;
use crate::base::error::{Error, Result, ensure, require, sound_total, sound_value, sound_weight};
use crate::base::float::{Element, Float};
use crate::base::parallel::{self, BLOCK};
use crate::base::simd::vectorised;
use crate::rows::{Frame, Rows};
use ndarray::ArrayView2;
use std::borrow::Cow;
use std::ops::Range;

/// Totals of a weighted data set, in `f64` and in the data's own unit. Rows of weight 0 do not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of rows of positive weight.
    pub rows: usize,
    /// Sum of the weights, $W = \sum_n w_n$.
    pub total_weight: f64,
    /// Weighted mean of each column (d): $\frac 1W \sum_n w_n y_n$.
    pub mean: Vec<f64>,
    /// Weighted variance of each column about that mean, divided by $W$ (d).
    pub variance: Vec<f64>,
    /// Smallest and largest value of each column (d).
    pub range: Vec<(f64, f64)>,
    /// The range of the widest column in a few neighbouring rows: the median over all of these, which outliers leave alone. 0
    /// where it is not known, or all neighbours are equal. A fit is refused if its type cannot resolve this range within the
    /// widest one.
    pub(crate) range_of_few: f64,
}

impl Summary {
    /// Largest absolute value.
    #[must_use]
    pub(crate) fn max_abs(&self) -> f64 {
        let ends = self
            .range
            .iter()
            .map(|(low, high)| low.abs().max(high.abs()));
        ends.fold(0.0, f64::max)
    }

    pub(crate) fn widest_range(&self) -> f64 {
        let ranges = self.range.iter().map(|(low, high)| high - low);
        ranges.fold(0.0, f64::max)
    }

    /// The summary of some of the rows, with these weights: means, variances and ranges stay those of the whole data, so
    /// that both live in the same frame.
    #[must_use]
    pub(crate) fn reweighted(&self, weights: &[f64]) -> Self {
        Self {
            rows: weights.iter().filter(|w| **w > 0.0).count(),
            total_weight: weights.iter().sum(),
            ..self.clone()
        }
    }

    /// Checks and sums up `n` rows of `dim` numbers that are read block by block, from several threads: `read` fills its
    /// numbers with these rows, one after the other. For the same rows it is the summary of [`Dense`](super::Dense) ones,
    /// bit for bit. `weight` gives the weight of a row.
    ///
    /// # Errors
    /// As [`Dense::weighted`](super::Dense::weighted), and what `read` returns.
    pub fn from_blocks<T: Element>(
        n: usize,
        dim: usize,
        weight: impl Fn(usize) -> f64 + Sync,
        read: impl Fn(Range<usize>, &mut [T]) -> Result<()> + Sync,
    ) -> Result<Self> {
        ensure(n > 0 && dim > 0, || Error::Empty { what: "data" })?;
        Self::of_rows(n, dim, Weights::Given(&weight), "data", &|rows| {
            let mut values = vec![T::default(); rows.len() * dim];
            read(rows, &mut values)?;
            Ok(Cow::Owned(values))
        })
    }

    /// The summary of no rows of `dim` columns: all zeros.
    pub(crate) fn of_none(dim: usize) -> Self {
        Self {
            mean: vec![0.0; dim],
            variance: vec![0.0; dim],
            range: vec![(0.0, 0.0); dim],
            ..Self::default()
        }
    }

    /// Checks and sums up points (n, d) that are not a data set; `what` names them in errors.
    pub(crate) fn of_points<F: Float>(
        points: ArrayView2<'_, F>,
        what: &'static str,
    ) -> Result<Self> {
        ensure(!points.is_empty(), || Error::Empty { what })?;
        let values: Vec<F> = points.iter().copied().collect();
        Self::check(&values, points.ncols(), None, what)
    }

    /// Checks rows (n, d) in memory and their weights, and sums them up.
    #[inline(never)]
    pub(crate) fn check<T: Element>(
        values: &[T],
        dim: usize,
        weights: Option<&[f64]>,
        what: &'static str,
    ) -> Result<Self> {
        let weights = weights.map_or(Weights::One, Weights::Listed);
        Self::of_rows(values.len() / dim, dim, weights, what, &|rows| {
            Ok(Cow::Borrowed(&values[rows.start * dim..rows.end * dim]))
        })
    }

    /// The summary of the rows once each is brought to length 1, as a fit of [directions](crate::Builder::directions) has them.
    ///
    /// # Errors
    /// As [`Data::load`], and rows with missing values.
    pub fn of_directions<F: Float>(data: &dyn Data<F>) -> Result<Self> {
        if let Some(known) = data.special().directions {
            return known.sum_up();
        }
        let n = data.len();
        let dim = data.dim();
        let frame = &Frame::sphere(dim);
        data.check(frame)?;
        Self::from_blocks(
            n,
            dim,
            |n| data.weight(n),
            |rows, out: &mut [F]| {
                let mut block = Rows::default();
                data.load(rows, frame, &mut block)?;
                for (i, out) in out.chunks_exact_mut(dim).enumerate() {
                    out.copy_from_slice(&block.row(i)[..dim]);
                }
                Ok(())
            },
        )
    }

    /// Sums up rows that are given block by block.
    ///
    /// Moments are taken about a row of the data: no cancellation for data far from 0.
    fn of_rows<'a, T: Element>(
        n: usize,
        dim: usize,
        weights_of: Weights<'_>,
        what: &'static str,
        values_of: &(dyn Fn(Range<usize>) -> Result<Cow<'a, [T]>> + Sync),
    ) -> Result<Self> {
        let are_known = matches!(weights_of, Weights::One);
        let weights = || (0..if are_known { 0 } else { n }).map(|n| weights_of.of(n));
        let unit = unit_of(weights());
        let pivot = pivot_row(weights());
        let pivot = values_of(pivot..pivot + 1)?;
        let pivot: Vec<f64> = pivot.iter().map(|x| x.widen().to_f64()).collect();
        let mut total = Partial::new(dim);
        // Some blocks at a time: what is kept of all would grow with the data.
        for part in (0..n).step_by(PASS_ROWS) {
            let blocks = parallel::map_blocks(PASS_ROWS.min(n - part), BLOCK, |_, rows| {
                let from = part + rows.start;
                let rows = from..part + rows.end;
                let values = values_of(rows.clone())?;
                // Weights known to be 1 take no time.
                if are_known {
                    return Ok(Partial::of(&values, &pivot, |_| 1.0));
                }
                let weight = |n: usize| in_unit(weights_of.of(n), unit);
                let weights: Vec<f64> = rows.map(weight).collect();
                Ok(Partial::of(&values, &pivot, |i| weights[i]))
            });
            for block in blocks {
                total.merge(&block?);
            }
        }
        total.finish(&pivot, unit, T::Float::LIMIT, &|| {
            for from in (0..n).step_by(BLOCK) {
                let rows = from..(from + BLOCK).min(n);
                let of_rows = || rows.clone().map(|n| weights_of.of(n)).collect();
                let weights: Option<Vec<f64>> = (!are_known).then(of_rows);
                let values = values_of(rows)?;
                let rows = table(&values, dim);
                check_rows(rows, weights.as_deref(), what, T::Float::LIMIT, from)?;
            }
            Ok(())
        })
    }
}

/// The weights of rows.
#[derive(Clone, Copy)]
enum Weights<'a> {
    One,
    Listed(&'a [f64]),
    Given(&'a (dyn Fn(usize) -> f64 + Sync)),
}

impl Weights<'_> {
    #[inline(always)]
    fn of(self, row: usize) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Listed(weights) => weights[row],
            Self::Given(weight) => weight(row),
        }
    }
}

impl<F: Float> Frame<F> {
    /// The frame of a data set: offset at the values nearest 0, widest column range scaled into (1/2, 1]. Data that
    /// hardly differ have the rounding of their values in place of the range: it is what bounds variances
    /// ([E20](crate::equations#e20)).
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        Self::around(summary, F::EPSILON * summary.max_abs())
    }

    /// The frame in which every column has mean square deviation 1, up to one power of two for all. A column that is constant,
    /// or differs by no more than the rounding of its values, is in units of its largest value.
    pub(crate) fn standardised(summary: &Summary) -> Self {
        let columns = summary.range.iter().zip(&summary.variance);
        let deviations = columns.map(|((low, high), variance)| {
            let largest = low.abs().max(high.abs());
            let deviation = variance.sqrt();
            match deviation > F::EPSILON * largest {
                true => deviation,
                false if largest > 0.0 => largest,
                false => 1.0,
            }
        });
        let deviations: Vec<f64> = deviations.collect();
        let ranges = summary.range.iter().zip(&deviations);
        let widest = ranges.fold(0.0, |widest: f64, ((low, high), s)| {
            widest.max((high - low) / s)
        });
        let offset: Vec<f64> = nearest_zero(&summary.range).collect();
        let frame = Self::new(&offset, widest);
        let least = 2f64.powi(1 - F::MAX_EXPONENT);
        let scale = |s: &f64| F::from_f64((1.0 / frame.unit() / s).clamp(least, 1.0 / least));
        let scale: Vec<F> = deviations.iter().map(scale).collect();
        frame.with_scale(&scale).with_mean(&summary.mean)
    }

    /// The data's own coordinates, where neither rows nor their squares leave the range of the type.
    pub(crate) fn raw(summary: &Summary) -> Result<Self> {
        let farthest = summary.max_abs();
        let most = Self::most().to_f64();
        let name = "largest number of the data";
        let rule = "is too far from 0 for a family in raw coordinates: use another unit";
        require(farthest <= most, name, farthest, rule)?;
        Ok(Self::new(&vec![0.0; summary.mean.len()], 1.0).with_mean(&summary.mean))
    }

    /// A frame for rows of this summary, whose widest column is taken to be as wide as `least` at least.
    pub(crate) fn around(summary: &Summary, least: f64) -> Self {
        let offset: Vec<f64> = nearest_zero(&summary.range).collect();
        Self::new(&offset, summary.widest_range().max(least)).with_mean(&summary.mean)
    }
}

/// The value of each range that is nearest 0.
pub(super) fn nearest_zero(ranges: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    let nearest = |&(low, high): &(f64, f64)| if low > 0.0 { low } else { high.min(0.0) };
    ranges.iter().map(nearest)
}

/// The row that moments are about: the first of the largest weight. A light one may be so far from the others that the variance
/// would cancel.
fn pivot_row(weights: impl Iterator<Item = f64>) -> usize {
    let heavier =
        |pivot: (usize, f64), row: (usize, f64)| if row.1 > pivot.1 { row } else { pivot };
    weights.enumerate().fold((0, f64::NEG_INFINITY), heavier).0
}

/// A weight in this unit. A weight other than 0 keeps its sign, even if it underflows.
#[inline(always)]
fn in_unit(weight: f64, unit: f64) -> f64 {
    let scaled = weight / unit;
    if scaled == 0.0 && weight != 0.0 {
        f64::MIN_POSITIVE.copysign(weight)
    } else {
        scaled
    }
}

/// Rows read in one parallel pass: the sums of each of their blocks are in memory at once.
const PASS_ROWS: usize = 128 * BLOCK;

/// Columns summed together.
const LANES: usize = 16;

/// At most this many rows are summed column by column before the next ones, so that memory is read in order.
const MAX_PART_ROWS: usize = 32;

/// A block is cut into at least this many parts, if it has two rows for each.
const MIN_PARTS: usize = 8;

/// Weighted sums of a block of rows about the pivot.
struct Partial {
    rows: usize,
    weight: f64,
    first: Vec<f64>,
    second: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    /// The range of the widest column in each few rows, where they differ; in a sum of blocks, the median of each block.
    widths: Vec<f64>,
    /// Largest absolute value in rows that do not count; `low` and `high` have the others.
    largest: f64,
    /// NaN as soon as a weight, or a value in a row that does not count, is not finite. Values in rows that count show in `second`.
    probe: f64,
    negative_weight: bool,
}

impl Partial {
    fn new(dim: usize) -> Self {
        Self {
            rows: 0,
            weight: 0.0,
            first: vec![0.0; dim],
            second: vec![0.0; dim],
            low: vec![f64::INFINITY; dim],
            high: vec![f64::NEG_INFINITY; dim],
            widths: Vec::new(),
            largest: 0.0,
            probe: 0.0,
            negative_weight: false,
        }
    }

    /// The sums of some rows.
    fn of<T: Element>(values: &[T], pivot: &[f64], weight: impl Fn(usize) -> f64 + Copy) -> Self {
        let dim = pivot.len();
        let mut sums = Self::new(dim);
        for weight in (0..values.len() / dim).map(weight) {
            sums.probe += weight * 0.0;
            sums.negative_weight |= weight < 0.0;
            if weight > 0.0 {
                sums.rows += 1;
                sums.weight += weight;
            }
        }
        let few = (values.len() / dim / MIN_PARTS).clamp(2, MAX_PART_ROWS);
        vectorised!({
            for (part, values) in values.chunks(few * dim).enumerate() {
                let weights = (part * few..).map(weight);
                let mut column = 0;
                let mut widest = 0.0f64;
                while column + LANES <= dim {
                    let width = sums.columns::<T, LANES>(values, column, pivot, weights.clone());
                    widest = widest.max(width);
                    column += LANES;
                }
                while column < dim {
                    let width = sums.columns::<T, 1>(values, column, pivot, weights.clone());
                    widest = widest.max(width);
                    column += 1;
                }
                if widest > 0.0 {
                    sums.widths.push(widest);
                }
            }
        });
        sums
    }

    /// `L` columns of some rows of the block: few enough for all their sums to be in registers meanwhile. Returns the widest
    /// range among them.
    #[inline(always)]
    fn columns<T: Element, const L: usize>(
        &mut self,
        values: &[T],
        column: usize,
        pivot: &[f64],
        weights: impl Iterator<Item = f64>,
    ) -> f64 {
        let columns = column..column + L;
        let mut about = [0.0; L];
        about.copy_from_slice(&pivot[columns.clone()]);
        let mut first = [0.0; L];
        let mut second = [0.0; L];
        let mut low = [f64::INFINITY; L];
        let mut high = [f64::NEG_INFINITY; L];
        first.copy_from_slice(&self.first[columns.clone()]);
        second.copy_from_slice(&self.second[columns.clone()]);
        let mut largest = [0.0; L];
        let mut probe = [0.0; L];
        for (row, weight) in values.chunks_exact(pivot.len()).zip(weights) {
            let row = &row[columns.clone()];
            for l in 0..L {
                let x = row[l].widen().to_f64();
                if weight > 0.0 {
                    let t = x - about[l];
                    first[l] += weight * t;
                    second[l] += weight * (t * t);
                    low[l] = if x < low[l] { x } else { low[l] };
                    high[l] = if x > high[l] { x } else { high[l] };
                } else {
                    largest[l] = if x.abs() > largest[l] {
                        x.abs()
                    } else {
                        largest[l]
                    };
                    probe[l] += x * 0.0;
                }
            }
        }
        self.first[columns.clone()].copy_from_slice(&first);
        self.second[columns.clone()].copy_from_slice(&second);
        let mut widest = f64::NEG_INFINITY;
        for (l, column) in columns.enumerate() {
            widest = widest.max(high[l] - low[l]);
            self.low[column] = self.low[column].min(low[l]);
            self.high[column] = self.high[column].max(high[l]);
        }
        self.largest = largest.iter().fold(self.largest, |a, b| a.max(*b));
        self.probe += probe.iter().sum::<f64>();
        widest
    }

    fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.probe += other.probe;
        self.largest = self.largest.max(other.largest);
        self.negative_weight |= other.negative_weight;
        self.widths.extend(median(other.widths.clone()));
        for j in 0..self.first.len() {
            self.first[j] += other.first[j];
            self.second[j] += other.second[j];
            self.low[j] = self.low[j].min(other.low[j]);
            self.high[j] = self.high[j].max(other.high[j]);
        }
    }

    /// `unit` is what weights were divided by, and `limit` the largest value allowed. `locate` is the error of the row at
    /// fault, and is only asked when something is wrong.
    fn finish(
        self,
        pivot: &[f64],
        unit: f64,
        limit: f64,
        locate: &dyn Fn() -> Result<()>,
    ) -> Result<Summary> {
        let ends = || self.low.iter().chain(&self.high);
        let sound = self.probe == 0.0
            && !self.negative_weight
            && self.second.iter().chain(ends()).all(|x| x.is_finite());
        let largest = ends().fold(self.largest, |a, b| a.max(b.abs()));
        // Values may be finite and yet too large; without rows that count, the ranges are infinite too.
        if !sound || largest > limit {
            locate()?;
        }
        let total_weight = sound_total(self.weight * unit)?;
        let w = self.weight;
        let columns = || self.first.iter().map(|first| first / w);
        let mean = columns().zip(pivot).map(|(f, p)| p + f).collect();
        let squares = columns().zip(&self.second);
        let variance = squares.map(|(f, s)| (s / w - f * f).max(0.0)).collect();
        let range = self.low.into_iter().zip(self.high).collect();
        Ok(Summary {
            rows: self.rows,
            total_weight,
            mean,
            variance,
            range,
            range_of_few: median(self.widths).unwrap_or(0.0),
        })
    }
}

/// The lower of those in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// A power of two near the largest weight: weights are summed in this unit, so that neither very small nor
/// very large ones leave the range of `f64` when they meet the squares of the data.
fn unit_of(weights: impl Iterator<Item = f64>) -> f64 {
    let weights = weights.filter(|w| w.is_finite());
    let most = weights.fold(0.0, |most: f64, w| most.max(w));
    if most > 0.0 {
        2f64.powi((most.log2().floor() as i32).clamp(-1_020, 1_020))
    } else {
        1.0
    }
}

fn table<T>(values: &[T], dim: usize) -> ArrayView2<'_, T> {
    ArrayView2::from_shape((values.len() / dim, dim), values).expect("n x d numbers")
}

/// An error for the first thing wrong with rows (n, d) and their weights (n), in row order. `what` names the rows, whose
/// values must not exceed `limit`; their numbers start at `first`.
pub(crate) fn check_rows<T: Element>(
    rows: ArrayView2<'_, T>,
    weights: Option<&[f64]>,
    what: &'static str,
    limit: f64,
    first: usize,
) -> Result<()> {
    for (i, values) in rows.outer_iter().enumerate() {
        let row = first + i;
        weights.map_or(Ok(()), |weights| sound_weight(row, weights[i]))?;
        for (column, x) in values.iter().enumerate() {
            sound_value(what, (row, column), x.widen().to_f64(), limit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_two_passes_even_far_from_zero() {
        let mut rng = crate::base::rng::Rng::from_seed(5);
        let n = 1_500;
        let d = 3;
        let mut far = |i: usize| 1e6 * (i % d) as f64 + rng.normal();
        let x: Vec<f64> = (0..n * d).map(&mut far).collect();
        let w: Vec<f64> = (0..n).map(|i| (i % 4) as f64).collect();
        let s = Summary::check(&x, d, Some(&w), "data").unwrap();
        let total: f64 = w.iter().sum();
        assert_eq!(s.total_weight, total);
        assert_eq!(s.rows, w.iter().filter(|w| **w > 0.0).count());
        for j in 0..d {
            let mean: f64 = (0..n).map(|i| w[i] * x[i * d + j]).sum::<f64>() / total;
            let var: f64 = (0..n)
                .map(|i| w[i] * (x[i * d + j] - mean).powi(2))
                .sum::<f64>()
                / total;
            // The naive sums themselves are off by about n epsilon times 2e6.
            assert!((s.mean[j] - mean).abs() < 1e-8, "{} {mean}", s.mean[j]);
            assert!(
                (s.variance[j] - var).abs() < 1e-8,
                "{} {var}",
                s.variance[j]
            );
        }
    }

    /// A first row that is far and of next to no weight: the variance is that of the others.
    #[test]
    fn moments_about_a_row_that_counts_do_not_cancel() {
        let mut rng = crate::base::rng::Rng::from_seed(6);
        let mut x: Vec<f64> = (0..1_000).map(|_| rng.normal()).collect();
        let mut w = vec![1.0; 1_000];
        let others = Summary::check(&x[1..], 1, None, "data").unwrap();
        (x[0], w[0]) = (1e14, 1e-40);
        let s = Summary::check(&x, 1, Some(&w), "data").unwrap();
        assert!((s.variance[0] - others.variance[0]).abs() < 1e-9);
    }
}
