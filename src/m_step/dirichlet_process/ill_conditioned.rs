//! Components whose inverse scale matrix is nearly singular: the coordinates their sums are taken in, and the update there.
//!
//! A sum of products of rows holds sixteen digits of its largest eigenvalue, and what the update needs of the smallest may
//! lie beyond them. In the coordinates $M y$ of the component itself all eigenvalues are about the same.

use super::matrices::{Cholesky, packed, product, solve, times, unpacked};
use super::normal_wishart::{ILL_CONDITIONED, NormalWishart};
use super::prior::Prior;
use crate::base::linalg::inverse_of_lower as inverse;

impl NormalWishart {
    /// The same for a component that was ill-conditioned: `matrix` is $M W^{-1} M^T$ (its lower half), with the factor
    /// $M$ that this component has. $W^{-1}$ itself, which could not hold its own small eigenvalues, is never formed.
    pub(super) fn refined(
        &self,
        prior: &Prior,
        mass: f64,
        mean: Vec<f64>,
        matrix: &[f64],
    ) -> Option<Self> {
        let dim = mean.len();
        let cholesky = Cholesky::of_rounded(matrix, dim)?;
        let degrees = prior.degrees + mass;
        let old = unpacked(&self.factor, dim);
        let by = inverse(&cholesky.factor, dim);
        let mut factor = product((&by, false), (&old, false), dim);
        for x in &mut factor {
            *x *= degrees.sqrt();
        }
        let logs = (0..dim).map(|j| factor[j * (dim + 1)].ln());
        let log_det = 2.0 * logs.sum::<f64>() - dim as f64 * degrees.ln();
        let ill_conditioned = least_pivot(&factor, dim) < ILL_CONDITIONED;
        let factor = packed(&factor, dim);
        factor.iter().all(|x| x.is_finite()).then_some(Self {
            mean_precision: prior.mean_precision + mass,
            degrees,
            mean,
            factor,
            log_det,
            ill_conditioned,
        })
    }

    /// A difference of points in the coordinates that sums of this component are taken in.
    pub(super) fn enter(&self, u: Vec<f64>) -> Vec<f64> {
        if self.ill_conditioned {
            times(&self.factor, &u)
        } else {
            u
        }
    }

    /// A difference of points from these coordinates.
    pub(super) fn leave(&self, v: Vec<f64>) -> Vec<f64> {
        if self.ill_conditioned {
            solve(&self.factor, &v)
        } else {
            v
        }
    }

    /// The inverse scale matrix of the prior in these coordinates (d, d).
    pub(super) fn enter_prior(&self, prior: &Prior) -> Vec<f64> {
        if !self.ill_conditioned {
            return prior.inverse_scale.clone();
        }
        let spread = self.spread(prior);
        product((&spread, false), (&spread, true), self.mean.len())
    }

    /// The trace of a matrix (its lower half) from these coordinates.
    pub(super) fn leave_trace(&self, matrix: &[f64]) -> f64 {
        let dim = self.mean.len();
        if !self.ill_conditioned {
            return matrix.iter().step_by(dim + 1).sum();
        }
        let whole: Vec<f64> = (0..dim * dim)
            .map(|p| matrix[(p / dim).max(p % dim) * dim + (p / dim).min(p % dim)])
            .collect();
        let back = inverse(&unpacked(&self.factor, dim), dim);
        let half = product((&back, false), (&whole, false), dim);
        half.iter().zip(&back).map(|(a, b)| a * b).sum()
    }
}

/// The least pivot of $(M^T M)^{-1}$ for a lower triangle $M$ (d, d), as in [`Cholesky`].
fn least_pivot(factor: &[f64], dim: usize) -> f64 {
    let back = inverse(factor, dim);
    let pivots = back.chunks_exact(dim).enumerate().map(|(j, row)| {
        let variance: f64 = row.iter().map(|x| x * x).sum();
        row[j] * row[j] / variance
    });
    pivots.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    /// A symmetric positive definite matrix.
    fn definite(d: usize, rng: &mut Rng) -> Vec<f64> {
        let a: Vec<f64> = (0..d * d).map(|_| rng.normal()).collect();
        let mut matrix = product((&a, false), (&a, true), d);
        for j in 0..d {
            matrix[j * (d + 1)] += 0.5;
        }
        matrix
    }

    #[test]
    fn an_update_in_coordinates_of_the_component_is_the_same_update() {
        let mut rng = Rng::from_seed(4);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{a} {b}");
        for d in [1, 2, 5, 8] {
            let (of_prior, of_old, of_new) = (
                definite(d, &mut rng),
                definite(d, &mut rng),
                definite(d, &mut rng),
            );
            let mean: Vec<f64> = (0..d).map(|_| rng.normal()).collect();
            let degrees = d as f64 + 0.5;
            let prior = Prior::new(1.0, 0.8, degrees, mean.clone(), of_prior.clone()).unwrap();
            let mut old = NormalWishart::new(&prior, 3.0, mean.clone(), &of_old).unwrap();
            assert!(!old.ill_conditioned);
            assert_eq!(
                old.leave_trace(&of_new),
                (0..d).map(|j| of_new[j * (d + 1)]).sum::<f64>()
            );
            old.ill_conditioned = true;
            let factor = unpacked(&old.factor, d);
            let entered = |matrix: &[f64]| {
                let half = product((&factor, false), (matrix, false), d);
                product((&half, false), (&factor, true), d)
            };
            let expected = NormalWishart::new(&prior, 7.0, mean.clone(), &of_new).unwrap();
            let got = old
                .refined(&prior, 7.0, mean.clone(), &entered(&of_new))
                .unwrap();
            assert!(!got.ill_conditioned);
            close(got.log_det, expected.log_det);
            for (a, b) in got.factor.iter().zip(&expected.factor) {
                close(*a, *b);
            }
            close(got.divergence(&prior), expected.divergence(&prior));
            let trace: f64 = (0..d).map(|j| of_new[j * (d + 1)]).sum();
            close(old.leave_trace(&entered(&of_new)), trace);
            for (a, b) in old.enter_prior(&prior).iter().zip(entered(&of_prior)) {
                close(*a, b);
            }
            for (a, b) in old.leave(old.enter(mean.clone())).iter().zip(&mean) {
                close(*a, *b);
            }
        }
    }

    #[test]
    fn an_ill_conditioned_update_keeps_its_small_eigenvalues() {
        // W^-1 = diag(1, s) in turned coordinates, with s far below the rounding of 1.
        let s = 1e-24;
        let prior = Prior::new(1.0, 1.0, 2.0, vec![0.0; 2], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let first = NormalWishart::new(&prior, 0.0, vec![0.0; 2], &[1.0, 1.0, 1.0, 1.0]).unwrap();
        assert!(first.ill_conditioned);
        // It knows the direction, not the size: the next update has 1 for what lies along it.
        let size = first.factor[2].powi(2);
        let next = [first.factor[0].powi(2), 0.0, 0.0, s * size];
        let next = first.refined(&prior, 0.0, vec![0.0; 2], &next).unwrap();
        assert!(next.ill_conditioned);
        assert!((next.log_det + s.ln()).abs() < 1e-12);
    }
}
