//! The density of a prior at the parameters of a Gaussian mixture (E59), and the penalty of a ridge.

use super::parameters::Parameters;
use crate::base::float::Float;

impl<F: Float> Parameters<F> {
    /// Twice the nats by which a ridge raises the cost of a row that knows all coordinates, under component `c`:
    /// $\operatorname{tr}(\Sigma_c^{-1} R)$.
    pub(super) fn ridge_trace(&self, c: usize) -> f64 {
        let ridge = self.prior.ridge.iter().enumerate().take(self.dim());
        let precisions = if self.prior.ridge.is_empty() {
            Vec::new()
        } else {
            self.precisions(c)
        };
        ridge
            .map(|(j, r)| r * precisions[j % precisions.len()])
            .sum()
    }

    /// The logarithm of the prior density less that at its mode.
    pub(super) fn prior_terms(&self) -> f64 {
        let prior = &self.prior;
        let proportions: f64 = if prior.proportions > 0.0 {
            (self.proportions.values.iter())
                .map(|p| prior.proportions * (p * self.k() as f64).ln())
                .sum()
        } else {
            0.0
        };
        if prior.variances.is_empty() {
            return proportions;
        }
        let apart = |c: usize| {
            let precisions = self.precisions(c);
            let log_det = self.log_det(c, prior.variances.len());
            let columns = prior.variances.iter().enumerate();
            let terms = columns.map(|(j, v)| v * precisions[j % precisions.len()] - 1.0 - v.ln());
            log_det + terms.sum::<f64>()
        };
        proportions - 0.5 * prior.rows * (0..self.number_of_covariances()).map(apart).sum::<f64>()
    }
}
