//! Normal-Wishart distributions of a mean and a precision matrix: expectations, divergences from the prior, predictive
//! densities (Bishop, PRML, 10.2 and appendix B).
//!
//! Everything here is in the coordinates of a frame; what is written $W^{-1}$ is an inverse scale matrix (d, d).

use special::Gamma;
use std::f64::consts::{LN_2, PI};

use super::gamma::log_gamma_rise;
use super::matrices::{Cholesky, packed, product, unpacked};
use super::prior::Prior;
use crate::base::float::Float;
use crate::base::linalg;
use crate::kernels::quadratic;

/// Quadratic forms are clamped here, so that numbers computed from them stay finite.
pub(super) const FARTHEST: f64 = 1e300;

/// Below this least pivot a matrix keeps too few digits for the update: an error of the pivots enters the free energy
/// squared, and the first eight digits of a pivot are enough.
pub(super) const ILL_CONDITIONED: f64 = 1e-8;

/// $q(\mu, \Lambda) = \mathcal N(\mu; m, (\beta \Lambda)^{-1}) \thinspace \mathcal W(\Lambda; W, \nu)$ of one component.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NormalWishart {
    /// $\beta$.
    pub(super) mean_precision: f64,
    /// $\nu$.
    pub(super) degrees: f64,
    /// $m$ (d).
    pub(super) mean: Vec<f64>,
    /// A triangle $M$, row after row, with $M^T M = \nu W$, the expected precision.
    pub(super) factor: Vec<f64>,
    /// $\ln |W|$.
    pub(super) log_det: f64,
    /// Whether $W^{-1}$ is nearly singular. Its sums are then taken in the coordinates $M y$, in which it is about the
    /// identity, and forms in twice the digits: otherwise both suffer from catastrophic cancellation.
    pub(super) ill_conditioned: bool,
}

impl NormalWishart {
    /// With the mass `mass` of points and the expected precision $I / \sigma^2$.
    pub(super) fn isotropic(prior: &Prior, mass: f64, mean: Vec<f64>, variance: f64) -> Self {
        let dim = mean.len();
        let degrees = prior.degrees + mass;
        let mut factor = vec![0.0; dim * (dim + 1) / 2];
        let mut place = 0;
        for j in 0..dim {
            place += j;
            factor[place + j] = 1.0 / variance.sqrt();
        }
        Self {
            mean_precision: prior.mean_precision + mass,
            degrees,
            mean,
            factor,
            log_det: -(dim as f64) * (degrees.ln() + variance.ln()),
            ill_conditioned: false,
        }
    }

    /// With the mass `mass` of points and the inverse scale matrix $W^{-1}$, symmetric and positive definite but for
    /// rounding; `None` if it is not finite.
    pub(super) fn new(
        prior: &Prior,
        mass: f64,
        mean: Vec<f64>,
        inverse_scale: &[f64],
    ) -> Option<Self> {
        let strength = (prior.mean_precision + mass, prior.degrees + mass);
        Self::of(strength, mean, inverse_scale)
    }

    /// The same with $\beta$ and $\nu$.
    pub(super) fn of(
        (mean_precision, degrees): (f64, f64),
        mean: Vec<f64>,
        inverse_scale: &[f64],
    ) -> Option<Self> {
        let dim = mean.len();
        let cholesky = Cholesky::of_rounded(inverse_scale, dim)?;
        let root = degrees.sqrt();
        let mut factor = packed(&linalg::inverse_of_lower(&cholesky.factor, dim), dim);
        for x in &mut factor {
            *x *= root;
        }
        factor.iter().all(|x| x.is_finite()).then(|| Self {
            mean_precision,
            degrees,
            mean,
            factor,
            log_det: -cholesky.log_det(dim),
            ill_conditioned: cholesky.least_pivot < ILL_CONDITIONED,
        })
    }

    /// $M C$ (d, d), for the factor $C$ of the inverse scale matrix of the prior.
    pub(super) fn spread(&self, prior: &Prior) -> Vec<f64> {
        let dim = self.mean.len();
        let factor = unpacked(&self.factor, dim);
        product((&factor, false), (&prior.factor, false), dim)
    }

    /// $|M (z - m)|^2$; `apart` is scratch of d numbers.
    pub(super) fn form<F: Float>(&self, z: &[F], apart: &mut [f64]) -> f64 {
        if self.ill_conditioned {
            return quadratic::compensated(&self.factor, z, &self.mean);
        }
        for ((u, z), m) in apart.iter_mut().zip(z).zip(&self.mean) {
            *u = z.to_f64() - m;
        }
        quadratic::form(&self.factor, apart)
    }

    fn dim(&self) -> f64 {
        self.mean.len() as f64
    }

    /// $\mathbb E[\ln |\Lambda|]$ (E29; Bishop 10.65).
    pub(super) fn expected_log_det(&self) -> f64 {
        expected_log_det(self.degrees, self.mean.len(), self.log_det)
    }

    /// The Frobenius norm of the factor: no difference becomes longer than by this.
    pub(super) fn norm(&self) -> f64 {
        self.factor.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// The part of the bound that follows from the sums of the component, but for what is in proportion to its mass (E51).
    pub(super) fn evidence(&self, prior: &Prior) -> f64 {
        let (dim, gained) = (self.dim(), self.degrees - prior.degrees);
        let rises = halves(prior.degrees, self.mean.len());
        let rises = rises.map(|half| log_gamma_rise(half, 0.5 * gained));
        let ratio = prior.mean_precision / self.mean_precision;
        let by_scale = self.degrees * self.log_det - prior.degrees * prior.log_det;
        0.5 * (dim * ratio.ln() + by_scale) + rises.sum::<f64>()
    }

    /// The divergence from the prior, $\text{KL}(q(\mu, \Lambda) \parallel p(\mu, \Lambda))$ (E30; Bishop 10.74, 10.77,
    /// B.79).
    pub(super) fn divergence(&self, prior: &Prior) -> f64 {
        let dim = self.dim();
        let ratio = prior.mean_precision / self.mean_precision;
        let apart = self.form(&prior.mean, &mut vec![0.0; self.mean.len()]);
        let apart = apart.min(FARTHEST);
        let normal = 0.5 * (dim * (ratio - 1.0 - ratio.ln()) + prior.mean_precision * apart);

        // nu tr(W_0^-1 W) = |M C|^2 for the factor C of W_0^-1.
        let trace: f64 = self.spread(prior).iter().map(|x| x * x).sum();
        let (nu, nu0) = (self.degrees, prior.degrees);
        // By differences: the constants of both densities may be much larger.
        let gained = nu - nu0;
        let rises = halves(nu0, self.mean.len()).map(|half| log_gamma_rise(half, 0.5 * gained));
        let digammas = halves(nu, self.mean.len()).map(f64::digamma);
        let wishart = 0.5 * nu0 * (prior.log_det - self.log_det) - rises.sum::<f64>()
            + 0.5 * (gained * digammas.sum::<f64>() + trace - nu * dim);
        normal + wishart
    }

    /// The predictive density of the component, a Student t (Bishop 10.81): $\ln St(y) = a - b \ln(1 + c q)$, with
    /// $q = |M (y - m)|^2$; returns (a, b, c).
    pub(super) fn predictive(&self) -> (f64, f64, f64) {
        let dim = self.dim();
        let share = self.mean_precision / (1.0 + self.mean_precision);
        // Half the degrees of freedom, in an order in which nothing cancels if they are near 0.
        let half = 0.5 * (self.degrees - (dim - 1.0));
        let b = half + 0.5 * dim;
        let rise = log_gamma_rise(half, 0.5 * dim);
        let constant = rise + 0.5 * (self.log_det + dim * (share / PI).ln());
        (constant, b, share / self.degrees)
    }
}

/// Half of what the degrees of freedom leave to each column.
fn halves(degrees: f64, dim: usize) -> impl Iterator<Item = f64> {
    (0..dim).map(move |i| 0.5 * (degrees - i as f64))
}

/// $\mathbb E[\ln |\Lambda|]$ of a Wishart distribution (Bishop B.81).
fn expected_log_det(degrees: f64, dim: usize, log_det: f64) -> f64 {
    let digammas = halves(degrees, dim).map(f64::digamma);
    digammas.sum::<f64>() + dim as f64 * LN_2 + log_det
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::gamma::log_gamma;
    use super::*;
    use crate::base::rng::Rng;
    use approx::assert_abs_diff_eq;

    /// Trapezoids on a lattice so wide and fine that the rest is rounding.
    pub(in super::super) fn integral(
        low: f64,
        high: f64,
        steps: usize,
        f: impl Fn(f64) -> f64,
    ) -> f64 {
        let h = (high - low) / steps as f64;
        (0..=steps).map(|i| f(low + h * i as f64)).sum::<f64>() * h
    }

    #[test]
    fn the_divergence_of_one_column_is_its_integral() {
        let prior = Prior::new(1.0, 1.3, 2.5, vec![0.4], vec![0.8]).unwrap();
        let (mass, mean, inverse_scale) = (3.7, -0.6, 2.9);
        let q = NormalWishart::new(&prior, mass, vec![mean], &[inverse_scale]).unwrap();
        let log_density = |(beta, m, nu, inverse_scale): (f64, f64, f64, f64), mu: f64, l: f64| {
            let normal = 0.5 * (beta * l / (2.0 * PI)).ln() - 0.5 * beta * l * (mu - m).powi(2);
            let (shape, rate) = (0.5 * nu, 0.5 * inverse_scale);
            normal + shape * rate.ln() - log_gamma(shape) + (shape - 1.0) * l.ln() - rate * l
        };
        let of_q = (1.3 + mass, mean, 2.5 + mass, inverse_scale);
        let of_prior = (1.3, 0.4, 2.5, 0.8);
        // Over ln(lambda), and mu in its own deviations.
        let expected = integral(-25.0, 8.0, 2_000, |log| {
            let l = log.exp();
            let unit = 1.0 / (of_q.0 * l).sqrt();
            integral(-12.0, 12.0, 400, |u| {
                let mu = mean + unit * u;
                let (q, p) = (log_density(of_q, mu, l), log_density(of_prior, mu, l));
                q.exp() * (q - p) * l * unit
            })
        });
        let got = q.divergence(&prior);
        assert!(
            (got - expected).abs() < 1e-8 * (1.0 + expected),
            "{got} {expected}"
        );
        // And E ln|Lambda|, from the same density.
        let expected = integral(-25.0, 8.0, 4_000, |log| {
            let (shape, rate, l) = (0.5 * of_q.2, 0.5 * inverse_scale, log.exp());
            (shape * rate.ln() - log_gamma(shape) + shape * log - rate * l).exp() * log
        });
        assert_abs_diff_eq!(q.expected_log_det(), expected, epsilon = 1e-9);
    }

    #[test]
    fn the_predictive_density_integrates_to_one_and_averages_the_normal() {
        let prior = Prior::new(1.0, 0.7, 1.5, vec![0.0], vec![1.0]).unwrap();
        let q = NormalWishart::new(&prior, 4.0, vec![0.3], &[2.0]).unwrap();
        let (a, b, c) = q.predictive();
        let density = |y: f64| {
            let form = quadratic::form(&q.factor, &[y - 0.3]);
            (a - b * (c * form).ln_1p()).exp()
        };
        // y = sinh(x) reaches far out into the tails.
        let total = integral(-60.0, 60.0, 20_000, |x| density(x.sinh()) * x.cosh());
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        // A mean over the distribution: mu given lambda leaves variance (1 + 1 / beta) / lambda.
        let (nu, beta) = (5.5, 4.7);
        for y in [0.3, 1.0, -4.0] {
            let expected = integral(-25.0, 8.0, 4_000, |log| {
                let (shape, rate, l) = (0.5 * nu, 1.0, f64::exp(log));
                let precision = l / (1.0 + 1.0 / beta);
                let normal =
                    0.5 * (precision / (2.0 * PI)).ln() - 0.5 * precision * (y - 0.3f64).powi(2);
                (shape * f64::ln(rate) - log_gamma(shape) + shape * log - rate * l + normal).exp()
            });
            assert_abs_diff_eq!(density(y), expected, epsilon = 1e-9 * expected);
        }
    }

    #[test]
    fn at_the_prior_nothing_diverges_and_elsewhere_something_does() {
        let mut rng = Rng::from_seed(3);
        for d in [1, 2, 5] {
            let a: Vec<f64> = (0..d * d).map(|_| rng.normal()).collect();
            let mut inverse_scale = product((&a, false), (&a, true), d);
            for j in 0..d {
                inverse_scale[j * (d + 1)] += 0.5;
            }
            let mean: Vec<f64> = (0..d).map(|_| rng.normal()).collect();
            let prior = Prior::new(
                1.0,
                0.8,
                d as f64 + 0.5,
                mean.clone(),
                inverse_scale.clone(),
            )
            .unwrap();
            let same = NormalWishart::new(&prior, 0.0, mean.clone(), &inverse_scale).unwrap();
            assert!(same.divergence(&prior).abs() < 1e-12);
            let more = NormalWishart::new(&prior, 2.0, mean.clone(), &inverse_scale).unwrap();
            assert!(more.divergence(&prior) > 1e-3);
            let spherical = NormalWishart::isotropic(&prior, 2.0, mean, 0.3);
            assert!(spherical.divergence(&prior) > 1e-3);
            let direct: Vec<f64> = (0..d * d)
                .map(|i| {
                    if i % (d + 1) == 0 {
                        0.3 * (d as f64 + 2.5)
                    } else {
                        0.0
                    }
                })
                .collect();
            let direct = NormalWishart::new(&prior, 2.0, spherical.mean.clone(), &direct).unwrap();
            assert_abs_diff_eq!(direct.log_det, spherical.log_det, epsilon = 1e-12);
            for (a, b) in direct.factor.iter().zip(&spherical.factor) {
                assert_abs_diff_eq!(a, b, epsilon = 1e-12);
            }
        }
    }

    #[test]
    fn cholesky_takes_columns_of_any_unit_and_says_how_independent_they_are() {
        let units = [1e-140, 1.0, 1e140];
        let correlations = [1.0, 0.5, 0.2, 0.5, 1.0, 0.4, 0.2, 0.4, 1.0];
        let matrix: Vec<f64> = (0..9)
            .map(|i| correlations[i] * units[i / 3] * units[i % 3])
            .collect();
        let cholesky = Cholesky::of(&matrix, 3).unwrap();
        let back = product((&cholesky.factor, false), (&cholesky.factor, true), 3);
        for (a, b) in back.iter().zip(&matrix) {
            assert_abs_diff_eq!(a, b, epsilon = 1e-14 * b);
        }
        assert_abs_diff_eq!(cholesky.least_pivot, 0.75, epsilon = 1e-12);
        assert!(Cholesky::of(&[1.0, 1.0, 1.0, 1.0 - 1e-9], 2).is_none());
        assert!(Cholesky::of_rounded(&[1.0, 1.0, 1.0, 1.0 - 1e-9], 2).is_some());
        assert!(Cholesky::of_rounded(&[f64::NAN], 1).is_none());
        let triangle = packed(&cholesky.factor, 3);
        assert_eq!(unpacked(&triangle, 3), cholesky.factor);
    }
}
