//! Mixing proportions: equal, or learned as the mass of each component.

use crate::error::{Error, Result};
use crate::rng::Rng;
use ndarray::ArrayView1;

/// Mixing proportions (k): not negative, with sum 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proportions(Vec<f64>);

impl Proportions {
    pub(super) fn equal(k: usize) -> Self {
        Self(vec![1.0 / k as f64; k])
    }

    /// In proportion to the masses (E32).
    pub(super) fn learned(masses: impl Iterator<Item = f64>) -> Self {
        let mut masses: Vec<f64> = masses.collect();
        let total: f64 = masses.iter().sum();
        for mass in &mut masses {
            *mass /= total;
        }
        Self(masses)
    }

    /// Proportions given by the user, up to rounding of their sum.
    pub(super) fn check(proportions: ArrayView1<'_, f64>, k: usize) -> Result<Self> {
        if proportions.len() != k {
            return Err(Error::LengthMismatch {
                what: "proportions",
                expected: k,
                found: proportions.len(),
            });
        }
        for &p in proportions {
            if !(p >= 0.0 && p.is_finite()) {
                let rule = "must be finite and not negative";
                return Err(Error::parameter("proportions", p, rule));
            }
        }
        let sum = proportions.sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(Error::parameter("sum of proportions", sum, "must be 1"));
        }
        Ok(Self::learned(proportions.iter().copied()))
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.0
    }

    /// ln(C pi_c): 0 for equal proportions; `None` for a component that was discarded.
    pub(super) fn log_advantage(&self, c: usize) -> Option<f64> {
        let advantage = self.0[c] * self.0.len() as f64;
        (advantage > 0.0).then(|| advantage.ln())
    }

    /// A component at random.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let mut left = rng.uniform();
        let mut last = 0;
        for (c, &p) in self.0.iter().enumerate() {
            if p > 0.0 {
                last = c;
                left -= p;
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }
}

/// How proportions come about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mixing {
    #[default]
    Learned,
    Equal,
}
