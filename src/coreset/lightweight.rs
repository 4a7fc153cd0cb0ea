//! Lightweight coresets (Bachem, Lucic, Krause: Scalable k-means clustering via lightweight coresets,
//! KDD 2018), on weighted data.

use super::{Coreset, Subset};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Rows, View};

/// Rows drawn half in proportion to their weight and half to their weighted squared distance from the mean
/// ([E15](crate::equations#e15); Bachem, Lucic, Krause, KDD 2018). One distance evaluation per row.
///
/// With $W = \sum_n w_n$, row $n$ has in each of the $N'$ draws the probability
///
/// $$q_n = w_n \left( \frac{1}{2 W} + \frac{d_n^2}{2 \sum_j w_j d_j^2} \right), \qquad d_n = \left\lVert y_n - \frac 1W \sum_j w_j y_j \right\rVert$$
///
/// and stands in the coreset with weight $w_n / (N' q_n)$, at most $2 W / N'$. The new weights sum to $W$ on
/// average only. If all rows coincide, $q_n = w_n / W$.
///
/// Draws are independent and with replacement. A row drawn several times occurs in the coreset as often. A truncated search
/// searches each copy separately, so that together they evaluate more components than one row of their total weight.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let coreset = Lightweight::new(300);
/// let fit = algorithms::k_means(25).coreset(coreset).build()?.fit(&data)?;
/// let subset = fit.coreset.as_ref().expect("fewer rows");
/// assert!(subset.rows.len() == 300 && subset.weights.iter().all(|w| *w <= 2.0 * 1_000.0 / 300.0));
/// assert_eq!(fit.model.predict(&data)?.len(), 1_000); // all rows
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct Lightweight {
    pub(crate) size: usize,
}

impl Lightweight {
    /// A coreset of `size` draws, $N'$, at least 1. If the data has at most `size` rows, the coreset is all rows as they are.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { size }
    }
}

impl Stage for Lightweight {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("coreset", self.size)
    }
}

impl<F: Float> Coreset<F> for Lightweight {
    #[inline(never)]
    fn sample(&self, view: View<'_, F>, rng: &mut Rng) -> Result<Option<Subset>> {
        self.draw(view, false, rng)
    }
}

impl Lightweight {
    /// Draws the coreset, by independent uniform numbers, or by one from each of N' parts of the interval from 0 to 1: `in_strata`
    /// the probabilities are the same, but the numbers of draws of a row differ less.
    #[inline(never)]
    pub(crate) fn draw<F: Float>(
        &self,
        view: View<'_, F>,
        in_strata: bool,
        rng: &mut Rng,
    ) -> Result<Option<Subset>> {
        let data = view.data;
        if self.size >= data.summary().rows {
            return Ok(None);
        }
        let total_weight = data.summary().total_weight;
        // Weights in the unit of a power of two near their total: without rounding, and their products stay in range.
        let unit = 2f64.powi(-total_weight.log2().floor() as i32);
        let (squared, blocks) = squared_distances_to_mean(view, unit)?;
        let total = total_weight * unit;
        let spread: f64 = blocks.iter().map(|block| block.spread).sum();
        // q_n / w_n = (base + slope d_n^2) / (2 W); without spread, q_n = w_n / W.
        let slope = total / spread;
        let (base, slope) = if spread > 0.0 && slope.is_finite() {
            (1.0, slope)
        } else {
            (2.0, 0.0)
        };
        let density = |d2: F| (base + slope * d2.to_f64()) / (2.0 * total);

        // The ends of the shares of the blocks. The shares sum to 1 up to rounding: draws past the end go to the last block
        // that has rows.
        let draws = sorted_uniforms(self.size, in_strata, rng);
        let mut ends = vec![0.0];
        for block in &blocks {
            let share = (base * block.weight + slope * block.spread) / (2.0 * total);
            ends.push(ends[ends.len() - 1] + share);
        }
        let last_block = blocks.iter().rposition(|block| block.weight > 0.0);
        let below = |bound: f64| draws.partition_point(|draw| *draw < bound);
        let chosen = parallel::map(blocks.len(), |block| {
            let end = if last_block == Some(block) {
                draws.len()
            } else {
                below(ends[block + 1])
            };
            let mut draws = &draws[below(ends[block])..end];
            let mut chosen = Vec::with_capacity(draws.len());
            let mut cumulated = ends[block];
            let mut last = 0;
            let first = block * TASK_ROWS;
            let piece = &squared[first..(first + TASK_ROWS).min(data.len())];
            for (n, &squared) in (first..).zip(piece) {
                if draws.is_empty() {
                    break;
                }
                let weight = data.weight(n);
                if weight <= 0.0 {
                    continue;
                }
                cumulated += weight * unit * density(squared);
                last = n;
                while let [draw, rest @ ..] = draws
                    && *draw < cumulated
                {
                    chosen.push(n);
                    draws = rest;
                }
            }
            // Draws that rounding puts behind the last row go to that row.
            chosen.extend(draws.iter().map(|_| last));
            chosen
        });
        let rows = chosen.concat();
        let weight = |&n: &usize| 1.0 / (self.size as f64 * density(squared[n])) / unit;
        Ok(Some(Subset {
            weights: rows.iter().map(weight).collect(),
            rows,
            evaluations: data.len() as u64,
        }))
    }
}

/// Rows of one parallel task: enough that the totals of all tasks need little memory.
const TASK_ROWS: usize = 4_096;

/// Totals of the rows of a task, from which draws are placed; weights are in some unit.
struct Totals {
    weight: f64,
    /// Weighted sum of the squared distances to the mean of the data.
    spread: f64,
}

/// Squared distances of all rows to the mean of the data (n), and the totals of each task, with weights times `unit`.
fn squared_distances_to_mean<F: Float>(
    view: View<'_, F>,
    unit: f64,
) -> Result<(Vec<F>, Vec<Totals>)> {
    let View { data, frame, .. } = view;
    let mut centre = vec![F::from_f64(0.0); frame.offset.len()];
    frame.enter_exact(&data.summary().mean, &mut centre);
    let mut squared = vec![F::from_f64(0.0); data.len()];
    let blocks = parallel::map_chunks(&mut squared, TASK_ROWS, |_, range, squared| {
        let mut block = Rows::default();
        let firsts = range.clone().step_by(BLOCK);
        for (first, out) in firsts.zip(squared.chunks_mut(BLOCK)) {
            data.load(first..first + out.len(), frame, &mut block)?;
            block.distances_from(&centre, out);
        }
        // Four sums side by side: with a single one, each addition would wait for the one before.
        let mut weights = [0.0; 4];
        let mut spreads = [0.0; 4];
        for (i, (n, d2)) in range.zip(squared).enumerate() {
            let weight = data.weight(n) * unit;
            weights[i % 4] += weight;
            // A row of weight 0 may be at any distance.
            spreads[i % 4] += if weight > 0.0 {
                weight * d2.to_f64()
            } else {
                0.0
            };
        }
        Ok(Totals {
            weight: weights.iter().sum(),
            spread: spreads.iter().sum(),
        })
    });
    Ok((squared, parallel::all(blocks)?))
}

/// Uniform numbers in ascending order: independent ones, or one in each of `size` parts of the interval.
fn sorted_uniforms(size: usize, in_strata: bool, rng: &mut Rng) -> Vec<f64> {
    let mut last = 0.0;
    let next = |i: usize| {
        let u = 1.0 - rng.uniform();
        last = if in_strata {
            (i as f64 + (1.0 - u)) / size as f64
        } else {
            // The smallest of those that are left on [last, 1).
            last + (1.0 - last) * (1.0 - u.powf(1.0 / (size - i) as f64))
        };
        last
    };
    (0..size).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Dense};
    use ndarray::{Array1, Array2};

    /// Weights are those of the formula; that they are right on average is a law of all coresets.
    #[test]
    fn draws_and_weights_follow_the_formula() {
        let mut rng = Rng::from_seed(11);
        let n = 40;
        let size = 20;
        let rounds = 4_000;
        let x = Array2::from_shape_fn((n, 3), |_| 5.0 + rng.normal() * rng.normal());
        let w = Array1::from_shape_fn(n, |i| (i % 3) as f64 * 0.7);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let frame = data.frame();
        let mean = w.dot(&x) / w.sum();
        let squared = |row| (&row - &mean).mapv(|t: f64| t * t).sum();
        let d2: Vec<f64> = x.outer_iter().map(squared).collect();
        let spread: f64 = (0..n).map(|i| w[i] * d2[i]).sum();
        let q = |i: usize| w[i] * (0.5 / w.sum() + 0.5 * d2[i] / spread);
        for in_strata in [false, true] {
            let mut counts = vec![0.0; n];
            for round in 0..rounds {
                let view = View::new(&data, &frame);
                let mut rng = Rng::from_seed(round);
                let drawn = Lightweight::new(size).draw(view, in_strata, &mut rng);
                let subset = drawn.unwrap().unwrap();
                assert_eq!((subset.evaluations, subset.rows.len()), (n as u64, size));
                for (&i, &weight) in subset.rows.iter().zip(&subset.weights) {
                    let expected = w[i] / (size as f64 * q(i));
                    assert!((weight - expected).abs() < 1e-9 * expected, "row {i}");
                    counts[i] += 1.0;
                }
            }
            for (i, count) in counts.iter().enumerate() {
                let draws = (size * rounds as usize) as f64;
                let error = 5.0 * (q(i) * draws).sqrt();
                assert!((count - q(i) * draws).abs() <= error, "row {i}: {count}");
            }
        }
    }
}
