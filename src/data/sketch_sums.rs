//! Sums over the coordinates that the rows of a sketch know.

use super::Summary;
use crate::base::error::{Result, sound_total};
use crate::base::float::Float;

/// Weighted sums per coordinate, over the rows that know it, about the pivot.
#[derive(Debug)]
pub(super) struct Sums {
    rows: usize,
    /// Weights are in units of $2^e$, near the largest so far: neither very small nor very large ones leave the range of
    /// `f64` when they meet the squares of the data.
    exponent: i32,
    weight: f64,
    seen: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    /// Of all rows, whether they keep the coordinate or not: the mean where no row does.
    whole: Vec<f64>,
}

/// Exponents of weights are held here: powers of two, and their reciprocals, stay normal.
const MOST: i32 = 1_020;

impl Sums {
    pub(super) fn new(dim: usize) -> Self {
        Self {
            rows: 0,
            exponent: -MOST,
            weight: 0.0,
            seen: vec![0.0; dim],
            first: vec![0.0; dim],
            second: vec![0.0; dim],
            low: vec![f64::INFINITY; dim],
            high: vec![f64::NEG_INFINITY; dim],
            whole: vec![0.0; dim],
        }
    }

    /// Adds a row: what it keeps, and all its coordinates.
    pub(super) fn add<F: Float>(&mut self, weight: f64, ids: &[u32], values: &[F], all: &[f64]) {
        if weight <= 0.0 {
            return;
        }
        self.raise((weight.log2().floor() as i32).clamp(-MOST, MOST));
        let weight = weight * 2f64.powi(-self.exponent);
        self.rows += 1;
        self.weight += weight;
        for (&j, x) in ids.iter().zip(values) {
            let (j, t) = (j as usize, x.to_f64());
            self.seen[j] += weight;
            self.first[j] += weight * t;
            self.second[j] += weight * (t * t);
            self.low[j] = self.low[j].min(t);
            self.high[j] = self.high[j].max(t);
        }
        for (sum, t) in self.whole.iter_mut().zip(all) {
            *sum += weight * t;
        }
    }

    /// Makes the unit of the weights at least $2^e$. Up to underflow nothing is rounded.
    fn raise(&mut self, exponent: i32) {
        if exponent <= self.exponent {
            return;
        }
        let scale = factor(self.exponent, exponent);
        self.exponent = exponent;
        self.weight *= scale;
        for sums in [
            &mut self.seen,
            &mut self.first,
            &mut self.second,
            &mut self.whole,
        ] {
            sums.iter_mut().for_each(|sum| *sum *= scale);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.raise(other.exponent);
        let scale = factor(other.exponent, self.exponent);
        self.rows += other.rows;
        self.weight += other.weight * scale;
        for j in 0..self.seen.len() {
            self.seen[j] += other.seen[j] * scale;
            self.first[j] += other.first[j] * scale;
            self.second[j] += other.second[j] * scale;
            self.whole[j] += other.whole[j] * scale;
            self.low[j] = self.low[j].min(other.low[j]);
            self.high[j] = self.high[j].max(other.high[j]);
        }
    }

    pub(super) fn finish(&self, pivot: &[f64]) -> Result<Summary> {
        let total_weight = sound_total(self.weight * 2f64.powi(self.exponent))?;
        let (mut mean, mut range) = (pivot.to_vec(), Vec::with_capacity(pivot.len()));
        let mut variance = vec![f64::NAN; pivot.len()];
        let (mut sum, mut known) = (0.0, 0usize);
        for j in 0..pivot.len() {
            if self.seen[j] <= 0.0 {
                mean[j] += self.whole[j] / self.weight;
                range.push((mean[j], mean[j]));
                continue;
            }
            let off = self.first[j] / self.seen[j];
            mean[j] += off;
            variance[j] = (self.second[j] / self.seen[j] - off * off).max(0.0);
            range.push((pivot[j] + self.low[j], pivot[j] + self.high[j]));
            (sum, known) = (sum + variance[j], known + 1);
        }
        let typical = sum / known.max(1) as f64;
        for variance in variance.iter_mut().filter(|v| v.is_nan()) {
            *variance = typical;
        }
        Ok(Summary {
            rows: self.rows,
            total_weight,
            mean,
            variance,
            range,
            range_of_few: 0.0,
        })
    }
}

/// From units of $2^a$ to units of $2^b$.
fn factor(from: i32, to: i32) -> f64 {
    // Where it is less than 2^-1020 nothing is left.
    2f64.powi((from - to).max(-MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A coordinate that no row keeps has the mean of all rows, and the mean of the variances that are known.
    #[test]
    fn coordinates_that_no_row_keeps() {
        let mut sums = Sums::new(4);
        sums.add::<f64>(1.0, &[0, 1], &[1.0, 6.0], &[1.0, 6.0, 5.0, 3.0]);
        sums.add::<f64>(1.0, &[0, 1], &[3.0, 0.0], &[3.0, 0.0, 1.0, 3.0]);
        let summary = sums.finish(&[0.0, 0.0, 10.0, 0.0]).unwrap();
        assert_eq!(summary.mean, [2.0, 3.0, 13.0, 3.0]);
        assert_eq!(summary.variance, [1.0, 9.0, 5.0, 5.0]);
    }
}
