//! The parameters of a Gaussian mixture, as files have them, checked when they are read.

use super::covariance::Covariance;
use super::proportions::Proportions;
use crate::base::cancel::{Never, Watch};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::io::{all_finite, all_positive, rule};
use crate::rows::{Centres, Frame};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// All that a mixture follows from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "F: Float", deny_unknown_fields)]
pub(super) struct Parameters<F> {
    pub(super) covariance: Covariance,
    pub(super) frame: Frame<F>,
    pub(super) centres: Centres<F>,
    /// The means in the data's own unit (k, columns), if they were given and not fitted.
    pub(super) means: Option<Vec<F>>,
    /// One, (k) or (k, d) variances, as the kind says, in the unit of the frame, squared; or the lower triangles $M$ (d, d)
    /// or (k, d, d) of whitening transforms, $M^T M = \Sigma^{-1}$, which have digits that $\Sigma$ has not.
    pub(super) spread: Vec<f64>,
    /// The means (k, d) that such transforms are about, not rounded to the type of the data: narrow components may be
    /// narrower than that. None for others.
    pub(super) exact_means: Vec<f64>,
    /// The least variances of the columns of such covariances (d).
    pub(super) least_variances: Vec<f64>,
    pub(super) least_variance: f64,
    /// The variance that scores are in units of.
    pub(super) unit: f64,
    pub(super) proportions: Proportions,
}

impl<F: Float> Parameters<F> {
    /// With variances of 1.
    pub(super) fn new(
        covariance: Covariance,
        centres: Centres<F>,
        frame: Frame<F>,
        proportions: Proportions,
    ) -> Self {
        let (exact_means, least_variances) = match covariance.has_pairs() {
            true => (
                centres.coordinates().collect(),
                vec![f64::MIN_POSITIVE; centres.dim()],
            ),
            false => Default::default(),
        };
        let mut new = Self {
            covariance,
            frame,
            centres,
            means: None,
            spread: Vec::new(),
            exact_means,
            least_variances,
            least_variance: f64::MIN_POSITIVE,
            unit: 1.0,
            proportions,
        };
        new.spread = new.isotropic(1.0);
        new
    }

    pub(super) fn k(&self) -> usize {
        self.centres.len()
    }

    pub(super) fn dim(&self) -> usize {
        self.centres.dim()
    }

    /// A spread with this variance in every direction.
    pub(super) fn isotropic(&self, variance: f64) -> Vec<f64> {
        let dim = self.dim();
        let numbers = self.covariance.numbers(self.k(), dim);
        if !self.covariance.has_pairs() {
            return vec![variance; numbers];
        }
        let mut triangles = vec![0.0; numbers];
        for triangle in triangles.chunks_exact_mut(dim * dim) {
            let diagonal = triangle.iter_mut().step_by(dim + 1);
            diagonal.for_each(|x| *x = 1.0 / variance.sqrt());
        }
        triangles
    }

    /// What component `c` has of the spread.
    pub(super) fn own(&self, c: usize) -> &[f64] {
        let size = self.covariance.numbers(1, self.dim());
        &self.spread[c * size % self.spread.len()..][..size]
    }

    /// The mean of component `c` that its triangle is about.
    pub(super) fn exact_mean(&self, c: usize) -> &[f64] {
        &self.exact_means[c * self.dim()..][..self.dim()]
    }

    /// The variances or covariances, in the unit of the frame, squared.
    pub(super) fn covariances<W: Watch>(&self, watch: &W) -> Result<Vec<f64>, W::Stopped> {
        let dim = self.dim();
        if !self.covariance.has_pairs() {
            return Ok(self.spread.clone());
        }
        let triangles = self.spread.chunks_exact(dim * dim);
        let all: Result<Vec<_>, _> = triangles
            .map(|own| covariance_of(own, dim, watch))
            .collect();
        Ok(all?.into_iter().flatten().collect())
    }

    /// The variances of the coordinates of component `c`: one, or (d).
    pub(super) fn variances_of<W: Watch>(
        &self,
        c: usize,
        watch: &W,
    ) -> Result<Vec<f64>, W::Stopped> {
        let own = self.own(c);
        Ok(match self.covariance.has_pairs() {
            true => covariance_of(own, self.dim(), watch)?.into_diag().to_vec(),
            false => own.to_vec(),
        })
    }

    /// The mean variance, of components by their proportion.
    pub(super) fn mean_variance<W: Watch>(&self, watch: &W) -> Result<f64, W::Stopped> {
        let mean = |c: usize| {
            let own = self.variances_of(c, watch)?;
            Ok(own.iter().sum::<f64>() / own.len() as f64)
        };
        if self.covariance.is_tied() {
            return mean(0);
        }
        let means = (0..self.k()).map(mean).collect::<Result<Vec<_>, _>>()?;
        Ok(self.proportions.average(means.into_iter()))
    }

    /// The mean (d) of the data.
    pub(super) fn origin(&self) -> Vec<f64> {
        let mean = &self.frame.mean()[..self.dim()];
        mean.iter().map(|m| m.to_f64()).collect()
    }

    /// An error of the section that holds what no model has.
    pub(super) fn check(&self) -> std::result::Result<(), FileFault> {
        let (k, dim, covariance) = (self.k(), self.dim(), self.covariance);
        rule(dim == self.frame.dim(), "centres", "must be in the frame")?;
        let most = Frame::<F>::farthest_centre();
        let near = self.centres.coordinates().all(|z| z.abs() <= most);
        rule(near, "centres", "must be near the frame")?;
        if let Some(means) = &self.means {
            all_finite("means", means, k * self.frame.dim())?;
        }
        let (variances, unit, least) = (&self.spread, self.unit, self.least_variance);
        all_finite("variances", variances, covariance.numbers(k, dim))?;
        let pairs = usize::from(covariance.has_pairs());
        all_finite("exact means", &self.exact_means, pairs * k * dim)?;
        all_positive("least variances", &self.least_variances, pairs * dim)?;
        all_positive("least variance", &[least], 1)?;
        all_positive("unit of scores", &[unit], 1)?;
        let held = |x: f64| x.is_finite() && F::from_f64(x).is_finite();
        let proper = match covariance.has_pairs() {
            // Triangles, whose eigenvalues were clamped but for rounding.
            true => variances.iter().enumerate().all(|(place, x)| {
                let (i, j) = (place / dim % dim, place % dim);
                match i.cmp(&j) {
                    Ordering::Less => *x == 0.0,
                    Ordering::Equal => *x > 0.0 && held(unit * x * x),
                    Ordering::Greater => held(unit * x * x),
                }
            }),
            false => variances
                .iter()
                .all(|v| *v >= least && held(unit / v) && held(unit * (v / unit).ln())),
        };
        let of_unit = "must not be below their least value, nor far from the unit of scores";
        rule(proper, "variances", of_unit)?;
        self.proportions.check_stored(k)?;
        let plain =
            !covariance.is_one_variance() || unit == variances[0] && self.proportions.free() == 0;
        let equal = "must be the unit of scores, and proportions equal";
        rule(plain, "variances", equal)
    }
}

/// The covariance (d, d) of a whitening transform.
pub(super) fn covariance_of<W: Watch>(
    triangle: &[f64],
    dim: usize,
    watch: &W,
) -> Result<Array2<f64>, W::Stopped> {
    let deviations = linalg::inverse_of_lower(triangle, dim, watch)?;
    let covariance = linalg::square(&deviations, dim, watch)?;
    Ok(Array2::from_shape_vec((dim, dim), covariance).expect("d x d numbers"))
}

/// Whether a matrix (d, d) is symmetric, but for rounding, and positive definite.
pub(super) fn is_proper(matrix: &[f64], dim: usize) -> bool {
    let at = |i: usize, j: usize| matrix[i * dim + j];
    let near = |i, j| (at(i, j) - at(j, i)).abs() <= 1e-9 * (at(i, i) * at(j, j)).sqrt();
    let symmetric = (0..dim).all(|i| (0..i).all(|j| near(i, j)));
    let factor = || {
        let Ok(factor) = Cholesky::of(matrix, dim, &Never);
        factor
    };
    symmetric && factor().is_some()
}
