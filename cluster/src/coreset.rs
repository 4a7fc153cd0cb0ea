//! The lightweight coreset of a table, drawn row by row.

use crate::error::{Error, Result};
use crate::model::Precision;
use crate::partial::{Drawn, Partial, Range};
use crate::summary::{Summary, unchanged};
use crate::table::Table;
use crate::task::{Sample, Work};
use coremix::Fit;
use coremix::data::Dense;
use coremix::ndarray::{Array1, Array2};
use coremix::{Algorithm, BoxedMixture, Float};

/// Weighted rows that stand for all rows of a table, sorted by their content and key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coreset {
    /// The rows (m, d), each different from all others, or with another key.
    pub points: Array2<f64>,
    /// The weight of each (m): the number of its copies in the table, divided by its probability.
    pub weights: Array1<f64>,
    /// The numbers that the rows are of.
    pub precision: Precision,
}

/// Draws a coreset of about `size` rows.
///
/// A row is kept if a hash of the seed, its content and its key, as a number in [0, 1), is below its probability. So copies
/// without a key are kept or left out together: they come as one row with their total weight. Where copies are
/// many, this makes fewer rows than asked for, and the rate is raised until half of the size is reached. What a smaller
/// rate keeps, a larger one keeps too.
pub(crate) async fn draw(
    table: &Table,
    range: &Range,
    summary: &Summary,
    size: usize,
    seed: u64,
) -> Result<Coreset> {
    let rows = summary.rows as f64;
    let all = 2.0 * rows;
    // What comes back: a row of `f64` with its key, length, copies and probability.
    let expected = size.min(usize::try_from(summary.rows).unwrap_or(usize::MAX));
    table.check_size(expected.saturating_mul(8 * summary.mean.len() + 64))?;
    let mut rate = if (size as u64) < summary.rows {
        size as f64
    } else {
        all
    };
    loop {
        let work = Work::Sample(Sample {
            seed,
            rows: summary.rows,
            rate,
            mean: summary.mean.clone(),
            spread: summary.spread(),
        });
        let Partial::Sample(drawn) = table.pass(work).await? else {
            return Err(Error::version("but another pass came back"));
        };
        unchanged(range, drawn.rows)?;
        let found = drawn.drawn.len();
        if found >= size.div_ceil(2) || rate >= all {
            return coreset_of(&drawn, summary.mean.len(), table.precision());
        }
        // Three deviations more than were found: by chance they may be too few, and the next coreset too large.
        let (size, found) = (size as f64, found as f64);
        let factor = size / (found + 3.0 * found.sqrt() + 3.0);
        rate = (rate * factor.max(1.5)).min(all);
    }
}

fn coreset_of(drawn: &Drawn, dim: usize, precision: Precision) -> Result<Coreset> {
    let (mut values, mut weights) = (Vec::new(), Vec::new());
    for (identity, (copies, probability)) in &drawn.drawn {
        let (numbers, _) = identity.as_chunks::<8>();
        let row = numbers.iter().take(dim);
        values.extend(row.map(|bits| f64::from_bits(u64::from_le_bytes(*bits))));
        weights.push(*copies as f64 / probability);
    }
    let points = Array2::from_shape_vec((weights.len(), dim), values)
        .map_err(|_| Error::version("but its rows have other columns"))?;
    Ok(Coreset {
        points,
        weights: weights.into(),
        precision,
    })
}

impl Coreset {
    /// Fits an algorithm to the rows, in their precision.
    pub(crate) fn fit(&self, algorithm: &Algorithm) -> coremix::Result<crate::Model> {
        match self.precision {
            Precision::Single => {
                let points = self.points.mapv(|x| x as f32);
                let fit: Fitted<f32> = fit(&points, &self.weights, algorithm)?;
                crate::Model::of_fit::<f32>(&*fit.model)
            }
            Precision::Double => {
                let fit: Fitted<f64> = fit(&self.points, &self.weights, algorithm)?;
                crate::Model::of_fit::<f64>(&*fit.model)
            }
        }
    }
}

type Fitted<F> = Fit<BoxedMixture<F>>;

fn fit<F: Float>(
    points: &Array2<F>,
    weights: &Array1<f64>,
    algorithm: &Algorithm,
) -> coremix::Result<Fitted<F>> {
    let data = Dense::weighted(points.view(), weights.view())?;
    algorithm.boxed::<F>()?.fit(&data)
}
