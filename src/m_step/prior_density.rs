//! The density of a prior at the parameters of a Gaussian mixture (E59), and the proportions that maximise it with the masses.

use super::parameters::Parameters;
use super::proportions::Proportions;
use crate::base::float::Float;

impl<F: Float> Parameters<F> {
    /// The mixing proportions that follow from masses and the covariances there are: where a ridge makes narrow components less
    /// likely, the root of a function that falls, by steps of Newton from below.
    pub(super) fn likeliest_proportions(&self, masses: &[f64]) -> Proportions {
        let prior = &self.prior;
        let rows = masses.iter().map(|mass| mass + prior.proportions);
        if prior.ridge.is_empty() || self.covariance.is_tied() {
            return Proportions::learned(rows);
        }
        // In units of all rows.
        let rows: Vec<f64> = rows.map(|n| n / prior.weight).collect();
        let pulls: Vec<f64> = (0..self.k()).map(|c| self.pull(c)).collect();
        let with_rows = (0..self.k()).filter(|c| rows[*c] > 0.0);
        let least = with_rows.min_by(|a, b| pulls[*a].total_cmp(&pulls[*b]));
        let Some(least) = least else {
            return self.proportions.clone();
        };
        let (mut root, least) = (rows[least], pulls[least]);
        let terms = |root: f64| {
            rows.iter()
                .zip(&pulls)
                .map(move |(n, h)| (n, root + (h - least)))
        };
        for _ in 0..100 {
            let (mut sum, mut slope) = (0.0, 0.0);
            for (n, h) in terms(root).filter(|term| *term.0 > 0.0) {
                sum += n / h;
                slope += n / h / h;
            }
            let step = (sum - 1.0) / slope;
            root += step.max(0.0);
            if step <= f64::EPSILON * root {
                break;
            }
        }
        Proportions::learned(terms(root).map(|(n, h)| if *n > 0.0 { n / h } else { 0.0 }))
    }

    /// The fall of the logarithm of the prior density for a unit of the proportion of component `c`, in units of all rows.
    fn pull(&self, c: usize) -> f64 {
        let (precisions, ridge) = (self.precisions(c), self.prior.ridge.iter().enumerate());
        let trace: f64 = ridge
            .map(|(j, r)| r * precisions[j % precisions.len()])
            .sum();
        0.5 * trace
    }

    /// The logarithm of the prior density less that at its mode.
    pub(super) fn prior_terms(&self) -> f64 {
        let prior = &self.prior;
        let shares = self.proportions.values.iter().enumerate();
        let ridge = match prior.ridge.is_empty() {
            false => prior.weight * shares.map(|(c, p)| p * self.pull(c)).sum::<f64>(),
            true => 0.0,
        };
        let proportions: f64 = match prior.proportions > 0.0 {
            true => (self.proportions.values.iter())
                .map(|p| prior.proportions * (p * self.k() as f64).ln())
                .sum(),
            false => 0.0,
        };
        if prior.variances.is_empty() {
            return proportions - ridge;
        }
        let apart = |c: usize| {
            let precisions = self.precisions(c);
            let log_det = self.log_det(c, prior.variances.len());
            let columns = prior.variances.iter().enumerate();
            let terms = columns.map(|(j, v)| v * precisions[j % precisions.len()] - 1.0 - v.ln());
            log_det + terms.sum::<f64>()
        };
        proportions
            - ridge
            - 0.5 * prior.rows * (0..self.number_of_covariances()).map(apart).sum::<f64>()
    }
}
