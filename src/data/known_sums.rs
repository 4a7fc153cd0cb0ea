//! Moments of the coordinates that rows know.

use super::Summary;
use crate::base::error::{Result, sound_total};

/// Weighted moments of the rows that know a coordinate, about the pivot: running means, which neither very small nor very
/// large weights take out of the range of `f64`.
#[derive(Clone, Copy, Debug)]
struct Known {
    rows: usize,
    weight: f64,
    mean: f64,
    variance: f64,
    low: f64,
    high: f64,
}

impl Known {
    const NONE: Self = Self {
        rows: 0,
        weight: 0.0,
        mean: 0.0,
        variance: 0.0,
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
    };

    /// The moments of one row.
    fn one(weight: f64, x: f64) -> Self {
        Self {
            rows: 1,
            weight,
            mean: x,
            variance: 0.0,
            low: x,
            high: x,
        }
    }

    /// Adds other rows, by the pairwise update of Chan, Golub and LeVeque.
    fn merge(&mut self, other: &Self) {
        let share = share(other.weight, self.weight);
        let difference = other.mean - self.mean;
        self.mean += share * difference;
        let between = (1.0 - share) * (difference * difference);
        self.variance += share * (other.variance - self.variance + between);
        self.rows += other.rows;
        self.weight += other.weight;
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }
}

/// The share of `weight` in the sum of both.
fn share(weight: f64, others: f64) -> f64 {
    if weight > 0.0 {
        weight / (weight + others)
    } else {
        0.0
    }
}

/// The moments of all coordinates.
#[derive(Debug)]
pub(super) struct KnownSums {
    pub(super) rows: usize,
    weight: f64,
    known: Vec<Known>,
    /// The means over all rows, whether they keep the coordinate or not: they stand in where no row does.
    whole: Vec<f64>,
}

impl KnownSums {
    pub(super) fn new(dim: usize) -> Self {
        Self {
            rows: 0,
            weight: 0.0,
            known: vec![Known::NONE; dim],
            whole: vec![0.0; dim],
        }
    }

    /// Adds a row: the coordinates that it knows, and all of them, if they stand in for what no row knows.
    pub(super) fn push(
        &mut self,
        weight: f64,
        known: impl Iterator<Item = (usize, f64)>,
        whole: &[f64],
    ) {
        if weight > 0.0 {
            known.for_each(|(j, x)| self.known[j].merge(&Known::one(weight, x)));
            self.count(1, weight, whole);
        }
    }

    /// Counts zeros for the coordinates that rows do not know.
    pub(super) fn with_zeros(mut self) -> Self {
        for known in (self.known.iter_mut()).filter(|known| known.rows < self.rows) {
            let zeros = Known {
                rows: self.rows - known.rows,
                // Weights that are summed in another order may differ in their last bits.
                weight: (self.weight - known.weight).max(0.0),
                low: 0.0,
                high: 0.0,
                ..Known::NONE
            };
            known.merge(&zeros);
        }
        self
    }

    /// The coordinates that no row knows.
    pub(super) fn unknown(&self) -> impl Iterator<Item = usize> {
        let columns = self.known.iter().enumerate();
        columns.filter_map(|(j, known)| (known.weight <= 0.0).then_some(j))
    }

    /// Counts rows with these means.
    fn count(&mut self, rows: usize, weight: f64, means: &[f64]) {
        let share = share(weight, self.weight);
        self.rows += rows;
        self.weight += weight;
        for (mean, other) in self.whole.iter_mut().zip(means) {
            *mean += share * (other - *mean);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (known, other) in self.known.iter_mut().zip(&other.known) {
            known.merge(other);
        }
        self.count(other.rows, other.weight, &other.whole);
    }

    pub(super) fn finish(&self, pivot: &[f64]) -> Result<Summary> {
        let total_weight = sound_total(self.weight)?;
        let seen = self.known.iter().filter(|known| known.weight > 0.0);
        let sum: f64 = seen.clone().map(|known| known.variance).sum();
        let typical = sum / seen.count().max(1) as f64;
        let mut summary = Summary {
            rows: self.rows,
            total_weight,
            ..Summary::default()
        };
        for ((known, whole), pivot) in self.known.iter().zip(&self.whole).zip(pivot) {
            let (mean, variance, low, high) = if known.weight > 0.0 {
                (known.mean, known.variance, known.low, known.high)
            } else {
                (*whole, typical, *whole, *whole)
            };
            summary.mean.push(pivot + mean);
            summary.variance.push(variance);
            summary.range.push((pivot + low, pivot + high));
        }
        Ok(summary)
    }
}
