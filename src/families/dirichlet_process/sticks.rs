//! The sticks of a Dirichlet process: expectations, and the divergence from the prior.

use super::posterior::log_gamma_rise;
use crate::base::gamma::{digamma, log_gamma};
use std::ops::RangeInclusive;

/// The sticks of the Dirichlet process: $q(v_t) = \text{Beta}(\gamma_{t1}, \gamma_{t2})$ for $t = 1..T$.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Sticks(pub(super) Vec<[f64; 2]>);

impl Sticks {
    /// From the masses of the components (E29; Blei and Jordan, Eq. 18 and 19).
    pub(super) fn new(concentration: f64, masses: &[f64]) -> Self {
        let mut sticks = vec![[1.0, concentration]; masses.len()];
        let mut after = 0.0;
        for (stick, &mass) in sticks.iter_mut().zip(masses).rev() {
            *stick = [1.0 + mass, concentration + after];
            after += mass;
        }
        Self(sticks)
    }

    /// The `log` of each stick plus that of the rest of the sticks before it, for each proportion (T).
    fn logs(&self, log: fn(f64) -> f64) -> Vec<f64> {
        let mut before = 0.0;
        let logs = self.0.iter().map(|&[a, b]| {
            let both = log(a + b);
            let log_share = before + log(a) - both;
            before += log(b) - both;
            log_share
        });
        logs.collect()
    }

    /// $\mathbb E[\ln \pi_t]$ (T).
    pub(super) fn expected_logs(&self) -> Vec<f64> {
        self.logs(digamma)
    }

    /// Logarithms of the expected proportions, normalised over the T sticks (T).
    pub(super) fn log_proportions(&self) -> Vec<f64> {
        let mut logs = self.logs(f64::ln);
        let total = log_sum_exp(&logs);
        logs.iter_mut().for_each(|log| *log -= total);
        logs
    }

    /// The part of the bound that follows from the masses, of some sticks:
    /// $\sum_t \ln \left( B(\gamma_{t1}, \gamma_{t2}) / B(1, \alpha) \right)$ (E51).
    pub(super) fn evidence(&self, concentration: f64, of: RangeInclusive<usize>) -> f64 {
        let term = |&[a, b]: &[f64; 2]| log_gamma(a) + concentration.ln() - log_gamma_rise(b, a);
        self.0[of].iter().map(term).sum()
    }

    /// The divergence from the prior, $\sum_t \text{KL}(q(v_t) \parallel \text{Beta}(1, \alpha))$ (E30).
    pub(super) fn divergence(&self, concentration: f64) -> f64 {
        let terms = self.0.iter().map(|&[a, b]| {
            let both = digamma(a + b);
            log_gamma_rise(b, a) - log_gamma(a) - concentration.ln()
                + (a - 1.0) * (digamma(a) - both)
                + (b - concentration) * (digamma(b) - both)
        });
        terms.sum()
    }
}

pub(super) fn log_sum_exp(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|l| (l - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trapezoids on a lattice so wide and fine that the rest is rounding.
    fn integral(low: f64, high: f64, steps: usize, f: impl Fn(f64) -> f64) -> f64 {
        let h = (high - low) / steps as f64;
        (0..=steps).map(|i| f(low + h * i as f64)).sum::<f64>() * h
    }

    #[test]
    fn the_divergence_of_a_stick_is_its_integral() {
        for (concentration, a, b) in [(0.5, 3.5, 0.5), (2.0, 1.0, 7.25), (1.0, 40.0, 1.5)] {
            // In the logit of v, where both ends fall off exponentially.
            let expected = integral(-120.0, 120.0, 40_000, |x| {
                let log_v = -((-x).exp().ln_1p());
                let log_rest = -(x.exp().ln_1p());
                let log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b);
                let q = (a - 1.0) * log_v + (b - 1.0) * log_rest - log_beta;
                let p = (concentration - 1.0) * log_rest + f64::ln(concentration);
                (q + log_v + log_rest).exp() * (q - p)
            });
            let got = Sticks(vec![[a, b]]).divergence(concentration);
            assert!(
                (got - expected).abs() < 1e-9 * (1.0 + expected),
                "{got} {expected}"
            );
        }
    }

    /// A stick of a large concentration has about 1 / concentration, and this times it a gamma distribution.
    #[test]
    fn the_divergence_under_a_large_concentration_is_that_of_gammas() {
        for concentration in [1e10, 1e12, 1e15, 1e100] {
            for (a, after) in [(1.0, 0.0), (12.25, 22.5), (300.0, 1e3)] {
                let got = Sticks(vec![[a, concentration + after]]).divergence(concentration);
                let expected = (a - 1.0) * digamma(a) - log_gamma(a);
                let left = (a + after).powi(2) / concentration;
                let rounding = 1e-14 * (1.0 + a * concentration.ln());
                let off = (got - expected).abs();
                assert!(
                    off < left + rounding,
                    "{concentration} {a}: {got} {expected}"
                );
            }
        }
    }
}
