//! Categories alone: a probability of each.

use super::column::LEAST;
use super::law::{Law, Whole};
use crate::base::rng::Rng;

pub(super) struct Categorical;

/// The place of a code that the fit did not see.
pub(super) const NONE: f64 = -1.0;

/// The place of the largest number, the first of several.
fn likeliest(probabilities: &[f64]) -> f64 {
    let larger = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 { b } else { a };
    let numbered = probabilities.iter().copied().enumerate();
    numbered.reduce(larger).map_or(NONE, |(l, _)| l as f64)
}

impl Law for Categorical {
    fn at(&self, seed: f64, whole: &[f64]) -> Vec<f64> {
        // The mean stands in for a value that a seed lacks: as if it were no category.
        if seed < 0.0 {
            return whole.to_vec();
        }
        let mut probabilities: Vec<f64> = whole.iter().map(|p| 0.5 * p).collect();
        probabilities[seed as usize] += 0.5;
        probabilities
    }

    /// The likeliest one stands for it.
    fn mean(&self, own: &[f64]) -> f64 {
        likeliest(own)
    }

    /// The probability that two rows differ.
    fn variance(&self, own: &[f64]) -> f64 {
        (1.0 - own.iter().map(|p| p * p).sum::<f64>()).max(0.0)
    }

    fn draw(&self, own: &[f64], rng: &mut Rng) -> f64 {
        let drawn = rng.proportional(own.iter().copied(), 1.0);
        drawn.unwrap_or(0) as f64
    }

    fn cost(&self, x: f64, _: &[f64], logs: &[f64]) -> f64 {
        const UNSEEN: f64 = 27.6; // one in 10^12
        if x < 0.0 { UNSEEN } else { -logs[x as usize] }
    }

    fn add(&self, x: f64, share: f64, _: &[f64], _: &Whole, sums: &mut [f64]) {
        if x >= 0.0 {
            sums[x as usize] += share;
        }
    }

    fn update(&self, own: &mut [f64], mass: f64, sums: &[f64], whole: &Whole) {
        for ((p, sum), share) in own.iter_mut().zip(sums).zip(&whole.parameters) {
            *p = ((sum + whole.prior * share) / (mass + whole.prior)).max(LEAST);
        }
    }

    fn prior(&self, own: &[f64], whole: &[f64]) -> f64 {
        own.iter().zip(whole).map(|(p, share)| share * p.ln()).sum()
    }

    fn divergence(&self, own: &[f64], mixed: &[f64]) -> f64 {
        own.iter()
            .zip(mixed)
            .map(|(p, mean)| p * (p / mean).ln())
            .sum()
    }

    fn datum(&self, mixed: &[f64], _: f64, _: bool) -> f64 {
        likeliest(mixed)
    }

    fn free(&self, n: usize) -> usize {
        n - 1
    }
}
