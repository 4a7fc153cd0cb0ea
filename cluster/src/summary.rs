//! The summary of a table, and the fixed point of the sums over it.

use crate::error::{Error, Result};
use crate::fixed::{Fixed, MOST_TERMS};
use crate::model::{Model, Precision};
use crate::partial::{Partial, Range};
use crate::table::Table;
use crate::task::Work;
use coremix::Float;

/// What is known of a table: exact, whatever the order of its rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of rows, n.
    pub rows: u64,
    /// The least value of each coordinate (d).
    pub min: Vec<f64>,
    /// The largest value of each coordinate (d).
    pub max: Vec<f64>,
    /// The mean of each coordinate (d): the exact sum, rounded once, divided by n.
    pub mean: Vec<f64>,
    /// The mean square of the distance from the mean, per coordinate (d).
    pub variance: Vec<f64>,
}

impl Summary {
    /// The sum of all squared distances to the mean.
    pub(crate) fn spread(&self) -> f64 {
        self.variance.iter().sum::<f64>() * self.rows as f64
    }

    /// The smallest variance of a model (E20), as in the core.
    pub(crate) fn variance_floor(&self, precision: Precision) -> f64 {
        let mean = self.variance.iter().sum::<f64>() / self.variance.len() as f64;
        let bound = |x: f64, y: &f64| x.max(y.abs());
        let size = self.min.iter().chain(&self.max).fold(0.0, bound);
        let epsilon = match precision {
            Precision::Single => <f32 as Float>::EPSILON,
            Precision::Double => <f64 as Float>::EPSILON,
        };
        let rounding = (epsilon * size).powi(2);
        let floor = (1e-12 * mean).max(rounding);
        // All rows are zero: any variance is as good.
        if floor > 0.0 { floor } else { 1e-20 }
    }
}

/// The first pass: the range, and what cannot be used.
pub(crate) async fn range(table: &Table) -> Result<Range> {
    let Partial::Range(range) = table.pass(Work::Range).await? else {
        return Err(Error::version("but another pass came back"));
    };
    for (unusable, name) in range.unusable.iter().zip(table.names()) {
        if !unusable.none() {
            let (nulls, not_finite) = (unusable.nulls, unusable.not_finite);
            let what = format!(
                "{nulls} NULL and {not_finite} NaN or infinite values in {} rows; every value must be a finite number",
                range.rows
            );
            return Err(Error::column(name, what));
        }
    }
    if range.rows == 0 || range.ranges.is_empty() {
        return Err(Error::Empty);
    }
    if range.rows > MOST_TERMS {
        let what = format!("the table has more than {MOST_TERMS} rows: fit a sample of it");
        return Err(Error::Rows(what));
    }
    let limit = match table.precision() {
        Precision::Single => <f32 as Float>::LIMIT,
        Precision::Double => <f64 as Float>::LIMIT,
    };
    for (j, (min, max)) in range.ranges.iter().enumerate() {
        let size = min.abs().max(max.abs());
        if size > limit {
            let what = format!(
                "a value of {size:e}; its size must not exceed {limit:e}: use a larger unit"
            );
            return Err(Error::column(table.name_of(j), what));
        }
    }
    Ok(range)
}

/// All of the summary: two more passes.
pub(crate) async fn summary(table: &Table, range: &Range) -> Result<Summary> {
    let bounds = Bounds::of(range);
    let sums = sums(table, range, &bounds.offsets, &bounds.columns, false).await?;
    let n = range.rows as f64;
    let mean: Vec<f64> = sums
        .iter()
        .zip(&bounds.offsets)
        .map(|(sum, offset)| offset + sum / n)
        .collect();
    let squares: Vec<Fixed> = range
        .ranges
        .iter()
        .zip(&mean)
        .map(|(range, mean)| Fixed::bounding(farthest(range, *mean).powi(2)))
        .collect();
    let sums = self::sums(table, range, &mean, &squares, true).await?;
    Ok(Summary {
        rows: range.rows,
        min: range.ranges.iter().map(|range| range.0).collect(),
        max: range.ranges.iter().map(|range| range.1).collect(),
        mean,
        variance: sums.iter().map(|sum| sum / n).collect(),
    })
}

async fn sums(
    table: &Table,
    range: &Range,
    about: &[f64],
    fixed: &[Fixed],
    squares: bool,
) -> Result<Vec<f64>> {
    let work = Work::Sums {
        about: about.to_vec(),
        exponents: fixed.iter().map(|fixed| fixed.exponent()).collect(),
        squares,
    };
    let Partial::Sums { rows, sums } = table.pass(work).await? else {
        return Err(Error::version("but another pass came back"));
    };
    unchanged(range, rows)?;
    let value = |(sum, fixed): (&i128, &Fixed)| fixed.value(*sum);
    Ok(sums.iter().zip(fixed).map(value).collect())
}

/// Whether a pass found as many rows as the first one.
pub(crate) fn unchanged(range: &Range, rows: u64) -> Result<()> {
    match rows == range.rows {
        true => Ok(()),
        false => {
            let what = format!("{} rows at first, {rows} later", range.rows);
            Err(Error::Changed(what))
        }
    }
}

/// The largest distance within a range from a value.
fn farthest(range: &(f64, f64), from: f64) -> f64 {
    (range.0 - from).abs().max((range.1 - from).abs())
}

/// What sums of rows are taken about, and the fixed point of each coordinate.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) offsets: Vec<f64>,
    pub(crate) columns: Vec<Fixed>,
    ranges: Vec<(f64, f64)>,
}

impl Bounds {
    pub(crate) fn of(range: &Range) -> Self {
        let middle = |range: &(f64, f64)| 0.5 * range.0 + 0.5 * range.1;
        let offsets: Vec<f64> = range.ranges.iter().map(middle).collect();
        let columns = range.ranges.iter().zip(&offsets);
        let columns = columns.map(|(range, offset)| Fixed::bounding(farthest(range, *offset)));
        Self {
            columns: columns.collect(),
            offsets,
            ranges: range.ranges.clone(),
        }
    }

    /// The fixed point of squared distances to the means of a model.
    pub(crate) fn squared(&self, model: &Model) -> Fixed {
        let of_mean = |mean: coremix::ndarray::ArrayView1<'_, f64>| {
            let places = self.ranges.iter().zip(mean);
            places
                .map(|(range, mean)| farthest(range, *mean).powi(2))
                .sum::<f64>()
        };
        let means = model.means();
        let largest = means.outer_iter().map(of_mean).fold(0.0, f64::max);
        // Another order of the same sum may round to a little more.
        Fixed::bounding(largest * (1.0 + 1e-9))
    }
}
