//! Normal-Wishart distributions of a mean and a precision matrix: the posterior from sufficient statistics, expectations,
//! divergences from the prior, predictive densities (Bishop, PRML, 10.2 and appendix B).
//!
//! Everything here is in the coordinates of a frame; what is written $W^{-1}$ is an inverse scale matrix (d, d).

use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::gamma::{digamma, log_gamma};
use crate::base::linalg::{self, Cholesky};
use crate::costs::whitening::Whitening;
use crate::m_step::Moments;
use std::f64::consts::{LN_2, PI};

/// Quadratic forms are clamped here, so that numbers computed from them stay finite.
pub(super) const FARTHEST: f64 = 1e300;

/// The prior of every component: a Normal-Wishart distribution with known parameters.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
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
    #[cfg_attr(feature = "files", serde(skip))]
    pub(super) factor: Vec<f64>,
    /// $\ln |W_0|$.
    #[cfg_attr(feature = "files", serde(skip))]
    pub(super) log_det: f64,
}

impl Prior {
    /// With all that follows from the inverse scale matrix; `None` if that is not positive definite.
    pub(super) fn factored(mut self, watch: Watch<'_>) -> Result<Option<Self>> {
        let cholesky = Cholesky::of(&self.inverse_scale, self.mean.len(), watch)?;
        Ok(cholesky.map(|Cholesky { factor, log_det }| {
            (self.factor, self.log_det) = (factor, -log_det);
            self
        }))
    }

    /// A prior that counts for fewer points: $\beta_0$ and $W_0^{-1}$ times `share`.
    pub(super) fn weaker(&self, share: f64, watch: Watch<'_>) -> Result<Option<Self>> {
        let weaker = Self {
            mean_precision: self.mean_precision * share,
            inverse_scale: self.inverse_scale.iter().map(|x| x * share).collect(),
            ..self.clone()
        };
        weaker.factored(watch)
    }
}

/// $q(\mu, \Lambda) = \mathcal N(\mu; m, (\beta \Lambda)^{-1}) \thinspace \mathcal W(\Lambda; W, \nu)$ of one component.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
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
    /// The lower half (d, d) of $W_t^{-1}$ without the square of `apart`.
    within: Vec<f64>,
    /// $(\beta_0 N_t / \beta_t)^{1/2} (\bar y_t - m_0)$ (d): a prior that is far away makes it long, and takes all digits of
    /// `within` in the sum.
    apart: Vec<f64>,
}

impl Updated {
    /// The prior plus the statistics of component `t`, about any point that is near its rows.
    pub(super) fn new(prior: &Prior, moments: &Moments, t: usize, about: &[f64]) -> Self {
        let mass = moments.mass(t);
        let beta0 = prior.mean_precision;
        let step = |x: &f64| if mass > 0.0 { x / mass } else { 0.0 };
        let step: Vec<f64> = moments.first(t)[..about.len()].iter().map(step).collect();
        let mean_of_rows = about.iter().zip(&step).map(|(a, step)| a + step);
        let from_prior: Vec<f64> = mean_of_rows
            .zip(&prior.mean)
            .map(|(m, m0)| m - m0)
            .collect();
        // The nearer of the two is the one to start from: less is rounded.
        let of_prior = beta0 / (beta0 + mass);
        let of_rows = mass / (beta0 + mass);
        let mean = from_prior.iter().zip(&prior.mean);
        let mean = mean.map(|(difference, m0)| {
            if of_rows < 0.5 {
                m0 + of_rows * difference
            } else {
                (m0 + difference) - of_prior * difference
            }
        });
        let mut within = moments.about(t, &step, &[]);
        let prior = &prior.inverse_scale;
        within.iter_mut().zip(prior).for_each(|(sum, x)| *sum += x);
        let weight = (beta0 * of_rows).sqrt();
        Self {
            mean: mean.collect(),
            within,
            apart: from_prior.iter().map(|x| weight * x).collect(),
        }
    }

    /// The trace of $W_t^{-1}$.
    pub(super) fn trace(&self) -> f64 {
        let dim = self.mean.len();
        let squares = self.apart.iter().map(|x| x * x);
        self.within.iter().step_by(dim + 1).sum::<f64>() + squares.sum::<f64>()
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
    pub(super) fn new(
        prior: &Prior,
        mass: f64,
        updated: Updated,
        watch: Watch<'_>,
    ) -> Result<Option<Self>> {
        let dim = updated.mean.len();
        let degrees = prior.degrees + mass;
        let mut covariance: Vec<f64> = updated.within.iter().map(|x| x / degrees).collect();
        let beyond = updated.apart.iter().map(|x| x / degrees.sqrt());
        let beyond: Vec<f64> = beyond.collect();
        let mean = updated.mean;
        let mut whitening = Whitening::new(mean.clone(), &covariance, beyond.clone(), watch)?;
        if whitening.is_none() {
            for (place, x) in covariance.iter_mut().enumerate() {
                if place % (dim + 1) != 0 {
                    *x = 0.0;
                }
            }
            whitening = Whitening::new(mean, &covariance, beyond, watch)?;
        }
        Ok(whitening.map(|whitening| Self {
            mean_precision: prior.mean_precision + mass,
            degrees,
            whitening,
        }))
    }

    /// The mean of the rows of the component (d), up to rounding: the prior may have drawn its own far away from them, where
    /// sums about it would have no digits. Rows are within 1 of the origin of their frame.
    pub(super) fn near_rows(&self, prior: &Prior) -> Vec<f64> {
        let mass = self.mean_precision - prior.mean_precision;
        let beta0 = prior.mean_precision;
        let ratio = if mass > 0.0 { beta0 / mass } else { 0.0 };
        let means = self.whitening.mean.iter().zip(&prior.mean);
        let near = means.map(|(m, m0)| (m + ratio * (m - m0)).clamp(-1.0, 1.0));
        near.collect()
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
        let digammas = halves(self.degrees, self.dim()).map(digamma);
        digammas.sum::<f64>() + self.dim() * LN_2 + self.log_det()
    }

    /// The part of the bound that follows from the sums of the component, except the part in proportion to its mass (E51).
    pub(super) fn evidence(&self, prior: &Prior) -> f64 {
        let ratio = prior.mean_precision / self.mean_precision;
        let by_scale = self.degrees * self.log_det() - prior.degrees * prior.log_det;
        0.5 * (self.dim() * ratio.ln() + by_scale) + self.log_gamma_rises(prior)
    }

    /// $\ln \Gamma_d(\nu / 2) - \ln \Gamma_d(\nu_0 / 2)$, up to a constant: by differences, as both may be much larger.
    fn log_gamma_rises(&self, prior: &Prior) -> f64 {
        let gained = 0.5 * (self.degrees - prior.degrees);
        let halves = halves(prior.degrees, self.dim());
        halves.map(|half| log_gamma_rise(half, gained)).sum()
    }

    /// The divergence from the prior, $\text{KL}(q(\mu, \Lambda) \parallel p(\mu, \Lambda))$ (E30; Bishop 10.74, 10.77,
    /// B.79).
    pub(super) fn divergence(&self, prior: &Prior, watch: Watch<'_>) -> Result<f64> {
        let dim = self.dim();
        let ratio = prior.mean_precision / self.mean_precision;
        let squared = self.whitening.form(&prior.mean, &mut Vec::new());
        let squared = squared.min(FARTHEST);
        let normal = 0.5 * (dim * (ratio - 1.0 - ratio.ln()) + prior.mean_precision * squared);

        // nu tr(W_0^-1 W) = |M C|^2 for the factor C of W_0^-1.
        let size = self.whitening.mean.len();
        let factor = linalg::unpacked(&self.whitening.factor, size);
        let squares = |matrix: &[f64]| matrix.iter().map(|x| x * x).sum::<f64>();
        let trace = if self.whitening.is_diagonal() {
            let rows = prior.factor.chunks_exact(size).enumerate();
            rows.map(|(j, row)| squares(&factor[j * (size + 1)..][..1]) * squares(row))
                .sum()
        } else {
            squares(&linalg::multiply(&factor, &prior.factor, size, watch)?)
        };
        let nu = self.degrees;
        let nu0 = prior.degrees;
        let digammas = halves(nu, dim).map(digamma).sum::<f64>();
        let by_scale = nu0 * (prior.log_det - self.log_det());
        let wishart = 0.5 * (by_scale + (nu - nu0) * digammas + trace - nu * dim)
            - self.log_gamma_rises(prior);
        Ok(normal + wishart)
    }

    /// The predictive density of the component, a Student t (Bishop 10.81), of the columns that are left where this number is missing.
    /// The expected precision of the missing ones, given the others, has a determinant of this logarithm.
    pub(super) fn predictive(&self, missing: usize, log_det: f64) -> StudentT {
        let missing = missing as f64;
        let dim = self.dim() - missing;
        let share = self.mean_precision / (1.0 + self.mean_precision);
        // Half the degrees of freedom, in an order in which nothing cancels if they are near 0.
        let half = 0.5 * (self.degrees - (self.dim() - 1.0));
        let rise = log_gamma_rise(half, 0.5 * dim);
        let log_det = self.log_det() - (log_det - missing * self.degrees.ln());
        StudentT {
            constant: rise + 0.5 * (log_det + dim * (share / PI).ln()),
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
