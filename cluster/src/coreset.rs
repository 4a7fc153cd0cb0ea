//! The lightweight coreset of a table, drawn row by row.

use crate::error::{Error, Result};
use crate::model::{Model, Precision};
use crate::partial::{Drawn, Found};
use crate::summary::{Range, Summary};
use crate::table::Table;
use crate::task::{Sample, Work};
use coremix::data::Dense;
use coremix::families::{Covariance, ExactSums, Family, GaussianMixture};
use coremix::ndarray::{Array1, Array2};
use coremix::{Algorithm, Float};
use std::collections::BTreeMap;

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
/// without a key are kept or left out together: they come as one row with their total weight. Where copies are many, this makes
/// fewer rows than asked for, and the rate is raised until half of the size is reached. A larger rate keeps all rows that a
/// smaller one keeps.
pub(crate) async fn draw(
    table: &Table,
    range: &Range,
    summary: &Summary,
    size: usize,
    seed: u64,
) -> Result<Coreset> {
    let all = 2.0 * summary.rows as f64;
    // The result has, for each row, its `f64` numbers, key, length, copies and probability.
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
        let Found::Drawn(drawn) = table.pass_again(range.rows, work).await? else {
            return Err(Error::other_pass());
        };
        let found = drawn.len();
        if found >= size.div_ceil(2) || rate >= all {
            return Ok(coreset_of(&drawn, summary.mean.len(), table.precision()));
        }
        // Three deviations more than were found: by chance they may be too few, and the next coreset too large.
        let (size, found) = (size as f64, found as f64);
        let factor = size / (found + 3.0 * found.sqrt() + 3.0);
        rate = (rate * factor.max(1.5)).min(all);
    }
}

fn coreset_of(drawn: &BTreeMap<Vec<u8>, Drawn>, dim: usize, precision: Precision) -> Coreset {
    // The content of a row comes before its key.
    let number = |row: &[u8], j: usize| {
        let bytes = row[8 * j..].first_chunk().copied().unwrap_or_default();
        f64::from_bits(u64::from_le_bytes(bytes))
    };
    let values = drawn
        .keys()
        .flat_map(|row| (0..dim).map(move |j| number(row, j)));
    let points = Array2::from_shape_vec((drawn.len(), dim), values.collect());
    let weight = |drawn: &Drawn| drawn.copies as f64 / drawn.probability;
    Coreset {
        points: points.expect("n x d numbers"),
        weights: drawn.values().map(weight).collect(),
        precision,
    }
}

impl Coreset {
    /// Fits an algorithm to the rows, in their precision.
    pub(crate) fn fit(&self, algorithm: &Algorithm) -> coremix::Result<Model> {
        match self.precision {
            Precision::Single => self.fit_in(algorithm).map(Model::Single),
            Precision::Double => self.fit_in(algorithm).map(Model::Double),
        }
    }

    fn fit_in<F: Float>(&self, algorithm: &Algorithm) -> coremix::Result<GaussianMixture<F>> {
        let points = self.points.mapv(F::from_f64);
        let data = Dense::weighted(&points, &self.weights)?;
        let fit = algorithm.boxed::<F>()?.fit(&data)?;
        let Some(Family::Gaussian(model)) = Family::of(&*fit.model) else {
            return Err(coremix::Error::Parameter {
                name: "algorithm",
                value: algorithm.to_string(),
                rule: "must be of Gaussians: no other family can be fitted on a table; Job::sample draws a coreset, which all can be fitted to",
            });
        };
        use Covariance::{Diagonal, Spherical, TiedSpherical};
        let kind = model.covariance_kind();
        if !matches!(kind, Diagonal | Spherical | TiedSpherical) {
            return Err(coremix::Error::Parameter {
                name: "covariance",
                value: format!("{kind:?}"),
                rule: "must have a variance per component or column, as sums over a table are of these; Job::sample draws a coreset, which \
                       other covariances can be fitted to",
            });
        }
        // Over no rows: whether there are such sums for the model.
        let none = Array2::zeros((0, points.ncols()));
        ExactSums::e_step(model, &Dense::<F>::batch(&none)?, None, 1)?;
        Ok(model.clone())
    }
}
