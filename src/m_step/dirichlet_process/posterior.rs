//! Normal-Wishart distributions of a mean and a precision matrix: the posterior from sufficient statistics, expectations,
//! divergences from the prior, predictive densities (Bishop, PRML, 10.2 and appendix B).
//!
//! Everything here is in the coordinates of a frame; what is written $W^{-1}$ is an inverse scale matrix (d, d).

use crate::base::linalg::{self, Cholesky};
use crate::m_step::Moments;
use crate::model::whitened::Whitening;
use serde::{Deserialize, Serialize};
use special::Gamma;
use std::f64::consts::{LN_2, PI};

/// Quadratic forms are clamped here, so that numbers computed from them stay finite.
pub(super) const FARTHEST: f64 = 1e300;

/// The prior of every component: a Normal-Wishart distribution with known parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prior {
    /// $\alpha$.
    pub(super) concentration: f64,
    /// $\beta_0$.
    pub(super) mean_precision: f64,
    /// $\nu_0$.
    pub(super) degrees: f64,
    /// $m_0$ (d).
    pub(super) mean: Vec<f64>,
    /// $W_0^{-1}$ (d, d).
    pub(super) inverse_scale: Vec<f64>,
    /// Its lower Cholesky factor (d, d).
    #[serde(skip)]
    pub(super) factor: Vec<f64>,
    /// $\ln |W_0|$.
    #[serde(skip)]
    pub(super) log_det: f64,
}

impl Prior {
    /// `None` if the inverse scale matrix is not positive definite.
    pub(super) fn new(
        concentration: f64,
        mean_precision: f64,
        degrees: f64,
        mean: Vec<f64>,
        inverse_scale: Vec<f64>,
    ) -> Option<Self> {
        let prior = Self {
            concentration,
            mean_precision,
            degrees,
            mean,
            inverse_scale,
            factor: Vec::new(),
            log_det: 0.0,
        };
        prior.factored()
    }

    /// With all that follows from the inverse scale matrix.
    pub(super) fn factored(mut self) -> Option<Self> {
        let Cholesky { factor, log_det } = Cholesky::of(&self.inverse_scale, self.mean.len())?;
        (self.factor, self.log_det) = (factor, -log_det);
        Some(self)
    }

    /// One that counts only so much, as if from so many points: $\beta_0$ and $W_0^{-1}$ times `share`.
    pub(super) fn weaker(&self, share: f64) -> Option<Self> {
        let inverse_scale = self.inverse_scale.iter().map(|x| x * share).collect();
        let mean_precision = self.mean_precision * share;
        Self::new(
            self.concentration,
            mean_precision,
            self.degrees,
            self.mean.clone(),
            inverse_scale,
        )
    }
}

/// $q(\mu, \Lambda) = \mathcal N(\mu; m, (\beta \Lambda)^{-1}) \thinspace \mathcal W(\Lambda; W, \nu)$ of one component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NormalWishart {
    /// $\beta$.
    pub(super) mean_precision: f64,
    /// $\nu$.
    pub(super) degrees: f64,
    /// The mean $m$ and a factor of the expected precision $\nu W$.
    pub(super) whitening: Whitening,
}

/// The mean and the inverse scale matrix of a posterior (E29).
pub(super) struct Updated {
    /// $m_t$ (d).
    pub(super) mean: Vec<f64>,
    /// The lower half of $W_t^{-1}$ (d, d).
    pub(super) inverse_scale: Vec<f64>,
}

impl Updated {
    /// The prior plus the statistics of component `t` about its old mean.
    pub(super) fn new(prior: &Prior, moments: &Moments, t: usize, old: &[f64]) -> Self {
        let (mass, beta0) = (moments.mass(t), prior.mean_precision);
        let of_prior = old.iter().zip(&prior.mean).map(|(m, m0)| beta0 * (m0 - m));
        let sums = moments.first(t).iter().zip(of_prior);
        let steps = sums.map(|(sum, of_prior)| (sum + of_prior) / (beta0 + mass));
        let mean: Vec<f64> = old.iter().zip(steps).map(|(m, step)| m + step).collect();
        // Both differences are from the rounded mean, which is the one that is stored.
        let from =
            |other: &[f64]| -> Vec<f64> { mean.iter().zip(other).map(|(m, x)| m - x).collect() };
        let apart = from(&prior.mean);
        let mut inverse_scale = moments.about(t, &from(old));
        let dim = mean.len();
        for (place, sum) in inverse_scale.iter_mut().enumerate() {
            let (i, j) = (place / dim, place % dim);
            *sum += prior.inverse_scale[place] + beta0 * apart[i] * apart[j];
        }
        Self {
            mean,
            inverse_scale,
        }
    }
}

impl NormalWishart {
    /// With the mass `mass` of points and the expected precision $I / \sigma^2$.
    pub(super) fn isotropic(prior: &Prior, mass: f64, mean: Vec<f64>, variance: f64) -> Self {
        Self {
            mean_precision: prior.mean_precision + mass,
            degrees: prior.degrees + mass,
            whitening: Whitening::spherical(mean, variance),
        }
    }

    /// The prior and points of the mass `mass`; `None` if the matrix is not finite. One that is not positive definite, by
    /// rounding alone, keeps its diagonal.
    pub(super) fn new(prior: &Prior, mass: f64, updated: Updated) -> Option<Self> {
        let (dim, degrees) = (updated.mean.len(), prior.degrees + mass);
        let scaled = updated.inverse_scale.iter().map(|x| x / degrees);
        let mut covariance: Vec<f64> = scaled.collect();
        let mean = updated.mean;
        let whitening = Whitening::new(mean.clone(), &covariance).or_else(|| {
            for (place, x) in covariance.iter_mut().enumerate() {
                if place % (dim + 1) != 0 {
                    *x = 0.0;
                }
            }
            Whitening::new(mean, &covariance)
        })?;
        Some(Self {
            mean_precision: prior.mean_precision + mass,
            degrees,
            whitening,
        })
    }

    /// The posterior of component `t`, from its statistics about its old mean (E29).
    pub(super) fn posterior(
        prior: &Prior,
        moments: &Moments,
        t: usize,
        old: &[f64],
    ) -> Option<Self> {
        Self::new(prior, moments.mass(t), Updated::new(prior, moments, t, old))
    }

    fn dim(&self) -> f64 {
        self.whitening.mean.len() as f64
    }

    /// $\ln |W|$.
    pub(super) fn log_det(&self) -> f64 {
        -self.whitening.log_det() - self.dim() * self.degrees.ln()
    }

    /// $\mathbb E[\ln |\Lambda|]$ (E29; Bishop 10.65 and B.81).
    pub(super) fn expected_log_det(&self) -> f64 {
        let digammas = halves(self.degrees, self.dim()).map(f64::digamma);
        digammas.sum::<f64>() + self.dim() * LN_2 + self.log_det()
    }

    /// The part of the bound that follows from the sums of the component, but for what is in proportion to its mass (E51).
    pub(super) fn evidence(&self, prior: &Prior) -> f64 {
        let ratio = prior.mean_precision / self.mean_precision;
        let by_scale = self.degrees * self.log_det() - prior.degrees * prior.log_det;
        0.5 * (self.dim() * ratio.ln() + by_scale) + self.log_gamma_rises(prior)
    }

    /// $\ln \Gamma_d(\nu / 2) - \ln \Gamma_d(\nu_0 / 2)$, but for a constant: by differences, as both may be much larger.
    fn log_gamma_rises(&self, prior: &Prior) -> f64 {
        let gained = 0.5 * (self.degrees - prior.degrees);
        halves(prior.degrees, self.dim())
            .map(|half| log_gamma_rise(half, gained))
            .sum()
    }

    /// The divergence from the prior, $\text{KL}(q(\mu, \Lambda) \parallel p(\mu, \Lambda))$ (E30; Bishop 10.74, 10.77,
    /// B.79).
    pub(super) fn divergence(&self, prior: &Prior) -> f64 {
        let dim = self.dim();
        let ratio = prior.mean_precision / self.mean_precision;
        let apart = self.whitening.form(&prior.mean, &mut Vec::new());
        let apart = apart.min(FARTHEST);
        let normal = 0.5 * (dim * (ratio - 1.0 - ratio.ln()) + prior.mean_precision * apart);

        // nu tr(W_0^-1 W) = |M C|^2 for the factor C of W_0^-1.
        let size = self.whitening.mean.len();
        let factor = linalg::unpacked(&self.whitening.factor, size);
        let trace: f64 = linalg::multiply(&factor, &prior.factor, size)
            .iter()
            .map(|x| x * x)
            .sum();
        let (nu, nu0) = (self.degrees, prior.degrees);
        let digammas = halves(nu, dim).map(f64::digamma).sum::<f64>();
        let by_scale = nu0 * (prior.log_det - self.log_det());
        let wishart = 0.5 * (by_scale + (nu - nu0) * digammas + trace - nu * dim)
            - self.log_gamma_rises(prior);
        normal + wishart
    }

    /// The predictive density of the component, a Student t (Bishop 10.81).
    pub(super) fn predictive(&self) -> StudentT {
        let dim = self.dim();
        let share = self.mean_precision / (1.0 + self.mean_precision);
        // Half the degrees of freedom, in an order in which nothing cancels if they are near 0.
        let half = 0.5 * (self.degrees - (dim - 1.0));
        let rise = log_gamma_rise(half, 0.5 * dim);
        StudentT {
            constant: rise + 0.5 * (self.log_det() + dim * (share / PI).ln()),
            power: half + 0.5 * dim,
            scale: share / self.degrees,
        }
    }
}

/// A Student t: $\ln St(y) = a - b \ln(1 + c q)$, with $q = |M (y - m)|^2$.
pub(super) struct StudentT {
    /// $a$.
    constant: f64,
    /// $b$.
    power: f64,
    /// $c$.
    scale: f64,
}

impl StudentT {
    pub(super) fn log_density(&self, form: f64) -> f64 {
        self.constant - self.power * (self.scale * form.min(FARTHEST)).ln_1p()
    }
}

/// Half of what the degrees of freedom leave to each column.
fn halves(degrees: f64, dim: f64) -> impl Iterator<Item = f64> {
    (0..dim as usize).map(move |i| 0.5 * (degrees - i as f64))
}

pub(super) fn log_gamma(x: f64) -> f64 {
    Gamma::ln_gamma(x).0
}

/// From here on the series of Stirling has all digits of a difference.
const LARGE: f64 = 1e4;

/// $\ln \Gamma(x + by) - \ln \Gamma(x)$ for positive numbers. For large $x$ both are about $x \ln x$, and their difference would
/// be rounded as they are (E30).
pub(super) fn log_gamma_rise(x: f64, by: f64) -> f64 {
    if x < LARGE {
        return log_gamma(x + by) - log_gamma(x);
    }
    // (z - 1/2) ln z - z + 1 / (12 z) + ..., of both.
    let above = x + by;
    (x - 0.5) * (by / x).ln_1p() + by * (above.ln() - 1.0) + (1.0 / above - 1.0 / x) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over whole numbers a rise is a sum of logarithms.
    #[test]
    fn rises_are_sums_of_logarithms() {
        for x in [0.5, 3.0, 9_999.0, LARGE, 12_345.5, 1e8, 1e12, 1e15, 1e200] {
            for by in [0, 1, 7, 300] {
                let naive: f64 = (0..by).map(|i| (x + f64::from(i)).ln()).sum();
                let got = log_gamma_rise(x, f64::from(by));
                // Where the series is not used, the rounding is that of both.
                let size = if x < LARGE {
                    log_gamma(x + 300.0)
                } else {
                    naive
                };
                let off = (got - naive).abs();
                assert!(off <= 1e-13 * (1.0 + size), "{x} {by}: {got} {naive}");
            }
        }
    }
}
