//! The density of a prior at the parameters of a Gaussian mixture (E59).

use super::common::Common;
use super::kind::Kind;
use crate::base::float::Float;

/// The logarithm of the prior density less that at its mode.
pub(super) fn prior_terms<F: Float>(common: &Common<F>, kind: &dyn Kind<F>) -> f64 {
    let prior = &common.prior;
    let proportions: f64 = if prior.proportions > 0.0 {
        (common.proportions.values.iter())
            .map(|p| prior.proportions * (p * common.k() as f64).ln())
            .sum()
    } else {
        0.0
    };
    if prior.variances.is_empty() {
        return proportions;
    }
    let apart = |c: usize| {
        let precisions = kind.precisions(c);
        let log_det = kind.log_det(c, prior.variances.len());
        let columns = prior.variances.iter().enumerate();
        let terms = columns.map(|(j, v)| v * precisions[j % precisions.len()] - 1.0 - v.ln());
        log_det + terms.sum::<f64>()
    };
    proportions - 0.5 * prior.rows * (0..kind.number()).map(apart).sum::<f64>()
}
