//! Mixing proportions: equal, or learned as the mass of each component.

use crate::base::error::{Error, Result, not_negative, positive, require, same_length};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::io::{all_finite, rule};
use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1};

/// Mixing proportions (k): not negative, with sum 1.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(super) struct Proportions {
    pub(super) values: Vec<f64>,
    pub(super) mixing: Mixing,
}

impl Proportions {
    pub(super) fn equal(k: usize, mixing: Mixing) -> Self {
        Self {
            values: vec![1.0 / k as f64; k],
            mixing,
        }
    }

    /// In proportion to the masses (E32).
    pub(super) fn learned(masses: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = masses.collect();
        let total: f64 = values.iter().sum();
        for value in &mut values {
            *value /= total;
        }
        Self {
            values,
            mixing: Mixing::Learned,
        }
    }

    pub(super) fn to_stay_equal(&self) -> Result<Self> {
        let k = self.values.len();
        let off = |p: &&f64| (**p * k as f64 - 1.0).abs() > 1e-6;
        if let Some(p) = self.values.iter().find(off) {
            let rule = "must be equal to the others";
            return Err(Error::parameter("proportion", p, rule));
        }
        Ok(Self::equal(k, Mixing::Equal))
    }

    /// Proportions given by the user, up to rounding of their sum.
    pub(super) fn check(proportions: ArrayView1<'_, f64>, k: usize) -> Result<Self> {
        same_length("proportions", k, proportions.len())?;
        for &p in proportions {
            not_negative("proportions", p)?;
        }
        let sum = proportions.sum();
        let rule = "must be 1: divide them by it";
        require((sum - 1.0).abs() <= 1e-6, "sum of proportions", sum, rule)?;
        Ok(Self::learned(proportions.iter().copied()))
    }

    /// Checks those of a file, for `k` components.
    pub(super) fn check_stored(&self, k: usize) -> std::result::Result<(), FileFault> {
        const NAME: &str = "proportions";
        all_finite(NAME, &self.values, k)?;
        let sign = self.values.iter().all(|p| *p >= 0.0);
        rule(sign, NAME, "must not be negative")?;
        let sum = self.values.iter().sum::<f64>();
        rule((sum - 1.0).abs() <= 1e-6, NAME, "must sum to 1")?;
        let equal = self.values.iter().all(|p| *p == 1.0 / k as f64);
        let as_said = self.mixing == Mixing::Learned || equal;
        rule(as_said, NAME, "must be equal, or learned")
    }

    /// How many of them are free: none if they stay equal, and one follows from the others.
    pub(super) fn free(&self) -> usize {
        match self.mixing {
            Mixing::Equal => 0,
            Mixing::Learned => self.values.len() - 1,
        }
    }

    /// The addend to the costs of a component by its proportion, in units of the variance `unit` (E31): nothing if
    /// proportions are equal, infinity if it was discarded.
    pub(super) fn penalty(&self, c: usize, unit: f64) -> f64 {
        let advantage = self.values[c] * self.values.len() as f64;
        // Exactly nothing where proportions are equal up to rounding.
        if (advantage - 1.0).abs() <= 2.0 * f64::EPSILON {
            0.0
        } else {
            -2.0 * unit * advantage.ln()
        }
    }

    /// Draws `n` points (n, dim) as `point` makes one of a component, and their components (n).
    pub(super) fn draw<F: Float>(
        &self,
        n: usize,
        dim: usize,
        seed: u64,
        mut point: impl FnMut(usize, &mut Rng, ArrayViewMut1<'_, F>),
    ) -> Result<(Array2<F>, Array1<u32>)> {
        let mut rng = Rng::from_seed(seed);
        let labels = components(&self.values, n, &mut rng)?;
        let mut points = Array2::from_elem((n, dim), F::zero());
        for (row, c) in points.outer_iter_mut().zip(&labels) {
            point(*c as usize, &mut rng, row);
        }
        Ok((points, labels))
    }
}

/// Draws `n` components with these proportions.
pub(super) fn components(proportions: &[f64], n: usize, rng: &mut Rng) -> Result<Array1<u32>> {
    positive("n", n)?;
    let mut draw = || rng.proportional(proportions.iter().copied(), 1.0);
    Ok(Array1::from_shape_fn(n, |_| draw().unwrap_or(0) as u32))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Mixing {
    #[default]
    Learned,
    Equal,
}
