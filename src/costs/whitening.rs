//! Full covariance matrices: the transforms that whiten the points of a component.

use crate::base::cancel::{Watch, unwatched};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::base::simd::vectorised;
use crate::kernels::quadratic;

/// The whitening transform of a component: for its points $M (z - m)$ has mean 0 and covariance $I$, so
/// $M^T M = \Sigma^{-1}$ and $\lvert M (z - m) \rvert^2$ is the squared Mahalanobis distance.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Whitening {
    /// $m$ (d).
    pub(crate) mean: Vec<f64>,
    /// The lower triangle $M$, row after row.
    pub(crate) factor: Vec<f64>,
    /// The mean of the variance inflation factors of the columns, $\Sigma_{jj} (\Sigma^{-1})_{jj}$: 1 for a diagonal
    /// covariance, and the larger, the more of the digits of a sum are lost in the smallest eigenvalue. It does not depend
    /// on the units of the columns.
    pub(crate) inflation: f64,
}

/// `f32` has digits enough for components whose variance inflation is at most this: a sum of products is off by about 1e-7
/// and a pivot by this factor times as much, which counts squared in the free energy.
pub(crate) const MOST_INFLATION: f64 = 64.0;

/// A transform for each component.
pub(crate) trait Transforms: Sync {
    fn transform(&self, c: usize) -> &Whitening;
}

impl Transforms for Vec<Whitening> {
    fn transform(&self, c: usize) -> &Whitening {
        &self[c]
    }
}

impl Whitening {
    /// From $M$ (d, d), a lower triangle with a positive diagonal.
    pub(crate) fn of_factor(mean: Vec<f64>, factor: &[f64], watch: Watch<'_>) -> Result<Self> {
        let inverse = linalg::inverse_of_lower(factor, mean.len(), watch)?;
        let rows = inverse.chunks_exact(mean.len());
        let variances = rows.map(|row| row.iter().map(|x| x * x).sum::<f64>());
        Ok(Self::with_variances(mean, factor, variances))
    }

    /// From $M$ (d, d), and the diagonal of $\Sigma$ that follows from it.
    fn with_variances(
        mean: Vec<f64>,
        factor: &[f64],
        variances: impl Iterator<Item = f64>,
    ) -> Self {
        let dim = mean.len();
        let mut whitening = Self {
            mean,
            factor: linalg::packed(factor, dim),
            inflation: 0.0,
        };
        let factors = whitening.precisions().into_iter().zip(variances);
        whitening.inflation = factors.map(|(p, v)| p * v).sum::<f64>() / dim as f64;
        whitening
    }

    /// From the covariance $A + x x^T$ of the lower half of $A$ (d, d), whose digits it has however long $x$ is; `None` unless $A$
    /// is finite and positive definite.
    pub(crate) fn new(
        mean: Vec<f64>,
        covariance: &[f64],
        beyond: Vec<f64>,
        watch: Watch<'_>,
    ) -> Result<Option<Self>> {
        let dim = mean.len();
        let Some(Cholesky { mut factor, .. }) = Cholesky::of(covariance, dim, watch)? else {
            return Ok(None);
        };
        let variances = (0..dim).map(|j| covariance[j * (dim + 1)] + beyond[j] * beyond[j]);
        let variances: Vec<f64> = variances.collect();
        linalg::rank_one_update(&mut factor, beyond);
        let factor = linalg::inverse_of_lower(&factor, dim, watch)?;
        let whitening = Self::with_variances(mean, &factor, variances.into_iter());
        Ok(whitening.inflation.is_finite().then_some(whitening))
    }

    pub(crate) fn spherical(mean: Vec<f64>, variance: f64) -> Self {
        let dim = mean.len();
        let mut factor = vec![0.0; dim * (dim + 1) / 2];
        for j in 0..dim {
            factor[j * (j + 3) / 2] = 1.0 / variance.sqrt();
        }
        Self {
            mean,
            factor,
            inflation: 1.0,
        }
    }

    /// The rows of $M$.
    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.mean.len()).map(|j| &self.factor[j * (j + 1) / 2..][..=j])
    }

    /// Whether the columns are independent.
    pub(crate) fn is_diagonal(&self) -> bool {
        let mut rows = self.rows().enumerate();
        rows.all(|(j, row)| row[..j].iter().all(|x| *x == 0.0))
    }

    /// $\ln \lvert \Sigma \rvert$.
    pub(crate) fn log_det(&self) -> f64 {
        let logs = (0..self.mean.len()).map(|j| self.factor[j * (j + 3) / 2].ln());
        -2.0 * logs.sum::<f64>()
    }

    /// $M^{-1}$ (d, d): takes standard normal points to those of the component.
    pub(crate) fn inverse(&self, watch: Watch<'_>) -> Result<Vec<f64>> {
        let dim = self.mean.len();
        linalg::inverse_of_lower(&linalg::unpacked(&self.factor, dim), dim, watch)
    }

    /// The diagonal of $\Sigma^{-1}$ (d).
    pub(crate) fn precisions(&self) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.mean.len()];
        vectorised!({
            for row in self.rows() {
                for (sum, x) in diagonal.iter_mut().zip(row) {
                    *sum += x * x;
                }
            }
        });
        diagonal
    }

    /// $\Sigma$ (d, d).
    pub(crate) fn covariance(&self) -> Vec<f64> {
        let inverse = unwatched(self.inverse(None));
        unwatched(linalg::square(&inverse, self.mean.len(), None))
    }

    /// $\Sigma^{-1}$ (d, d).
    pub(crate) fn precision(&self) -> Vec<f64> {
        let dim = self.mean.len();
        let factor = linalg::unpacked(&self.factor, dim);
        unwatched(linalg::gram(&factor, dim, None))
    }

    /// $\lvert M (z - m) \rvert^2$, in `f64`; `apart` is scratch.
    pub(crate) fn form<F: Float>(&self, z: &[F], apart: &mut Vec<f64>) -> f64 {
        apart.clear();
        apart.extend(z.iter().zip(&self.mean).map(|(z, m)| z.to_f64() - m));
        quadratic::form(&self.factor, apart)
    }

    /// The mean square of the coordinates of the mean, in deviations of the columns given all others.
    fn farness(&self) -> f64 {
        let squares = self.precisions().into_iter().zip(&self.mean);
        squares.map(|(p, m)| p * m * m).sum::<f64>() / self.mean.len() as f64
    }

    /// Whether forms in `f32` have digits enough: the mean, too, is rounded to it.
    pub(super) fn fits_narrow(&self) -> bool {
        /// In deviations of a column.
        const FARTHEST: f64 = 100.0;
        self.inflation <= MOST_INFLATION && self.farness() <= FARTHEST * FARTHEST
    }

    pub(super) fn rounding<F: Float>(&self) -> Rounding {
        let dim = self.mean.len() as f64;
        Rounding {
            relative: 2.0 * (dim + 8.0) * F::EPSILON * dim * self.inflation.sqrt(),
            of_mean: 2.0 * F::EPSILON * dim * self.farness().sqrt(),
        }
    }
}

/// Bounds on the error of a form $\lvert v \rvert^2$, $v = M u$, that is computed in a type.
///
/// Each number of $v$ is a sum of products, off by $\gamma \sum_j \lvert M_{ij} u_j \rvert$ at most. With $\lvert u_j \rvert \le
/// \Sigma_{jj}^{1/2} \lvert v \rvert$ and the inequality of Cauchy and Schwarz, $v$ is off by $\gamma (d \sum_j \Sigma_{jj}
/// (\Sigma^{-1})_{jj})^{1/2} \lvert v \rvert$, which is $\gamma d$ times the root of the inflation. A mean that is rounded by
/// $\epsilon \lvert m_j \rvert$ moves $v$ by $\epsilon (d \sum_j (\Sigma^{-1})_{jj} m_j^2)^{1/2}$. The form is off by twice as much
/// times $\lvert v \rvert$.
pub(super) struct Rounding {
    relative: f64,
    of_mean: f64,
}

impl Rounding {
    /// A bound on the error of all.
    pub(super) fn worst(all: &[Self]) -> Self {
        let most = |part: fn(&Self) -> f64| all.iter().map(part).fold(0.0, f64::max);
        Self {
            relative: most(|rounding| rounding.relative),
            of_mean: most(|rounding| rounding.of_mean),
        }
    }

    /// How far beyond an upper bound a cost may be, and still be as low with its error, where `error` bounds that of the bound:
    /// with $p$ more, an error is at most $r p + o \sqrt{p} \le (r + \frac 14) p + o^2$ larger.
    pub(super) fn beyond(&self, error: f64) -> f64 {
        if self.relative < 0.2 {
            2.0 * (error + self.of_mean * self.of_mean)
        } else {
            f64::INFINITY
        }
    }

    pub(super) fn of(&self, form: f64) -> f64 {
        self.relative * form + self.of_mean * form.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    #[test]
    fn covariance_and_precision_come_back() {
        let covariance = [2.0, 0.0, 0.6, 1.5];
        let new = |mean: Vec<f64>, covariance: &[f64]| {
            let beyond = vec![0.0; mean.len()];
            unwatched(Whitening::new(mean, covariance, beyond, None))
        };
        let whitening = new(vec![0.5, -1.0], &covariance).unwrap();
        let det = 2.0 * 1.5 - 0.36;
        assert_abs_diff_eq!(whitening.log_det(), f64::ln(det), epsilon = 1e-14);
        assert_abs_diff_eq!(whitening.inflation, 3.0 / det, epsilon = 1e-14);
        for (got, expected) in whitening.covariance().iter().zip([2.0, 0.6, 0.6, 1.5]) {
            assert_abs_diff_eq!(*got, expected, epsilon = 1e-14);
        }
        for (got, expected) in whitening.precision().iter().zip([1.5, -0.6, -0.6, 2.0]) {
            assert_abs_diff_eq!(*got, expected / det, epsilon = 1e-14);
        }
        let round = Whitening::spherical(vec![0.0; 3], 4.0);
        let eye = [4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 4.0];
        assert_eq!(round, new(vec![0.0; 3], &eye).unwrap());
        assert_eq!(round.form(&[2.0, 2.0, 0.0], &mut Vec::new()), 2.0);
        assert!(new(vec![0.0; 2], &[1.0, 0.0, 2.0, 1.0]).is_none());
    }
}
