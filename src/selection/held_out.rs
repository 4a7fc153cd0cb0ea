//! Rows that no model is fitted to, and how models compare on them (E49).

use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::coreset::some_rows;
use crate::data::Data;
use crate::model::Mixture;

/// Most groups of rows that the standard error is made of.
const GROUPS: usize = 1024;

/// A part of the rows of positive weight, in order: each such part has the same chance.
pub(super) fn choose<F: Float>(
    data: &dyn Data<F>,
    fraction: f64,
    rng: &mut Rng,
) -> Result<Vec<usize>> {
    let rows = data.summary().rows;
    let wanted = (fraction * rows as f64).round() as usize;
    let rule = "must leave rows of positive weight on both sides; 0 holds none out";
    require((1..rows).contains(&wanted), "held_out", fraction, rule)?;
    Ok(some_rows(data, wanted, rng))
}

/// The log-likelihood of held-out rows, in groups.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    sums: Vec<f64>,
}

impl Groups {
    pub(super) fn of<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> Result<Self> {
        let mut sums = vec![0.0; data.len().min(GROUPS)];
        let groups = sums.len();
        for (n, density) in model.log_densities(data)?.iter().enumerate() {
            sums[n % groups] += data.weight(n) * density;
        }
        Ok(Self { sums })
    }

    pub(super) fn weights<F: Float>(data: &dyn Data<F>) -> Vec<f64> {
        let mut weights = vec![0.0; data.len().min(GROUPS)];
        let groups = weights.len();
        (0..data.len()).for_each(|n| weights[n % groups] += data.weight(n));
        weights
    }

    /// The mean per unit of weight.
    pub(super) fn mean(&self, weights: &[f64]) -> f64 {
        self.sums.iter().sum::<f64>() / weights.iter().sum::<f64>()
    }

    /// The standard error of the difference of two such means.
    pub(super) fn error_of_difference(&self, other: &Self, weights: &[f64]) -> f64 {
        let total: f64 = weights.iter().sum();
        let difference = self.mean(weights) - other.mean(weights);
        let off = |((a, b), w): ((&f64, &f64), &f64)| (a - b - difference * w).powi(2);
        let groups = self.sums.iter().zip(&other.sums).zip(weights);
        let squares: f64 = groups.map(off).sum();
        let groups = weights.len() as f64;
        (squares * groups / (groups - 1.0).max(1.0)).sqrt() / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use ndarray::{Array1, Array2};

    #[test]
    fn rows_without_weight_are_never_held_out_and_others_equally_often() {
        let x = Array2::from_shape_fn((10, 1), |(n, _)| n as f64);
        let w = Array1::from_shape_fn(10, |n| if n % 3 == 0 { 0.0 } else { n as f64 });
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let mut counts = [0usize; 10];
        let mut rng = Rng::from_seed(1);
        for _ in 0..6_000 {
            let chosen = choose(&data, 0.5, &mut rng).unwrap();
            assert_eq!(chosen.len(), 3);
            assert!(chosen.is_sorted());
            chosen.iter().for_each(|&n| counts[n] += 1);
        }
        for (n, count) in counts.into_iter().enumerate() {
            match n % 3 {
                0 => assert_eq!(count, 0),
                _ => assert!((2_800..3_200).contains(&count), "{counts:?}"),
            }
        }
    }

    #[test]
    fn the_error_of_a_difference_is_that_of_the_naive_formula() {
        let a = [1.0, 4.0, 2.0, 8.0];
        let b = [0.5, 3.0, 2.5, 6.0];
        let groups = |sums: [f64; 4]| Groups {
            sums: sums.to_vec(),
        };
        let weights = [1.0; 4];
        let error = groups(a).error_of_difference(&groups(b), &weights);
        // Differences 0.5, 1, -0.5, 2 of mean 0.75: the variance is 13/12.
        assert!((error - (13.0f64 / 12.0 / 4.0).sqrt()).abs() < 1e-15);
        assert_eq!(groups(a).error_of_difference(&groups(a), &weights), 0.0);
    }
}
