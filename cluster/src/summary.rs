//! The summary of a table.

use crate::error::{Error, Result};
use crate::model::Precision;
use crate::partial::Found;
use crate::table::Table;
use crate::task::{Middle, Work};
use coremix::Float;

/// Statistics of a table, with bits that do not depend on the order of its rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of rows, n.
    pub rows: u64,
    /// The least value of each coordinate (d).
    pub min: Vec<f64>,
    /// The largest value of each coordinate (d).
    pub max: Vec<f64>,
    /// The mean of each coordinate (d).
    pub mean: Vec<f64>,
    /// The mean square of the distance from the mean, per coordinate (d).
    pub variance: Vec<f64>,
}

impl Summary {
    /// The sum of all squared distances to the mean.
    pub(crate) fn spread(&self) -> f64 {
        self.variance.iter().sum::<f64>() * self.rows as f64
    }
}

/// Statistics from the first pass over a table.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) rows: u64,
    /// Least and largest of each coordinate.
    pub(crate) ranges: Vec<(f64, f64)>,
}

/// The first pass: the range, and what cannot be used.
pub(crate) async fn range(table: &Table) -> Result<Range> {
    let found = table.pass(Work::Ranges).await?;
    let Found::Ranges(ranges) = found.found else {
        return Err(Error::other_pass());
    };
    let limit = match table.precision() {
        Precision::Single => <f32 as Float>::LIMIT,
        Precision::Double => <f64 as Float>::LIMIT,
    };
    if ranges.is_empty() {
        return Err(Error::Empty);
    }
    for (j, (min, max)) in ranges.iter().enumerate() {
        let size = min.abs().max(max.abs());
        if size > limit {
            let what = format!(
                "a value of {size:e}; its size must not exceed {limit:e}: use a larger unit"
            );
            return Err(Error::column(table.name_of(j), what));
        }
    }
    let rows = found.rows;
    Ok(Range { rows, ranges })
}

/// All of the summary: one more pass.
///
/// The variance is the mean square about the middle of the range, less that of the mean. Both ends of the range are rows, so it is
/// at least a 2n-th of the squared range, and loses less than 2n epsilon of itself in the difference.
pub(crate) async fn summary(table: &Table, range: &Range) -> Result<Summary> {
    let middles: Vec<_> = range.ranges.iter().copied().map(Middle::of).collect();
    let work = Work::Moments(middles.clone());
    let Found::Moments(sums) = table.pass_again(range.rows, work).await? else {
        return Err(Error::other_pass());
    };
    let n = range.rows as f64;
    let (mut mean, mut variance) = (Vec::new(), Vec::new());
    for ((first, second), middle) in sums.into_iter().zip(middles) {
        let step = middle.first.value(first) / n;
        mean.push(middle.at + step);
        variance.push((middle.second.value(second) / n - step * step).max(0.0));
    }
    let (min, max) = range.ranges.iter().copied().unzip();
    Ok(Summary {
        rows: range.rows,
        min,
        max,
        mean,
        variance,
    })
}
