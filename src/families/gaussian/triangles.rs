//! Covariances with all pairs of columns, as the triangles that whiten them (E52): their floors, costs and M-step.

use super::common::Common;
use super::costs::{Costs, Form};
use super::floors::LEAST_SHARE;
use super::kind::{AT_FLOOR, Kind, OF_UNIT, Scales, is_number};
use crate::base::cancel::{Watch, unwatched};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::base::parallel;
use crate::costs::whitening::Whitening;
use crate::costs::{Factor, Scaled};
use crate::io::{all_finite, all_positive, rule};
use ndarray::Array2;
use std::cmp::Ordering;

/// One or several covariances.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(in crate::families) struct Triangles {
    pub(in crate::families) columns: usize,
    /// Lower triangles $M$ (d, d), or (k, d, d), $M^T M = \Sigma^{-1}$, which have digits that $\Sigma$ has not.
    pub(in crate::families) triangles: Vec<f64>,
    /// The means (k, d) that these are about, not rounded to the type of the data: narrow components may be narrower than that.
    pub(in crate::families) means: Vec<f64>,
    /// The least variances of the columns, (d) or (k, d): each covariance is at least the diagonal matrix of its own.
    pub(in crate::families) least: Vec<f64>,
}

impl Triangles {
    /// This number of covariances, with variances of 1.
    pub(super) fn new(number: usize, columns: usize, means: Vec<f64>) -> Self {
        let mut new = Self {
            columns,
            triangles: vec![0.0; number * columns * columns],
            means,
            least: vec![f64::MIN_POSITIVE; number * columns],
        };
        new.set_all(1.0);
        new
    }

    pub(super) fn size(&self) -> usize {
        // A file may say any number.
        self.columns.saturating_mul(self.columns)
    }

    pub(super) fn number(&self) -> usize {
        self.triangles.len() / self.size()
    }

    pub(super) fn own(&self, c: usize) -> &[f64] {
        &self.triangles[c * self.size() % self.triangles.len()..][..self.size()]
    }

    pub(super) fn least(&self, c: usize) -> &[f64] {
        &self.least[c * self.columns % self.least.len()..][..self.columns]
    }

    pub(super) fn mean(&self, c: usize) -> &[f64] {
        &self.means[c * self.columns..][..self.columns]
    }

    /// The precisions (d) of the columns, given all others.
    pub(super) fn precisions(&self, c: usize) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns];
        for row in self.own(c).chunks_exact(self.columns) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
        }
        sums
    }

    pub(super) fn log_det(&self, c: usize) -> f64 {
        let diagonal = self.own(c).iter().step_by(self.columns + 1);
        -2.0 * diagonal.map(|x| x.ln()).sum::<f64>()
    }

    pub(super) fn matrix(&self, c: usize, watch: Watch<'_>) -> Result<Array2<f64>> {
        let dim = self.columns;
        let deviations = linalg::inverse_of_lower(self.own(c), dim, watch)?;
        let covariance = linalg::square(&deviations, dim, watch)?;
        Ok(Array2::from_shape_vec((dim, dim), covariance).expect("d x d numbers"))
    }

    /// See [`Kind::set`].
    pub(super) fn set(&mut self, covariances: &[f64]) -> Result<Option<f64>> {
        let dim = self.columns;
        let size = self.size();
        let all = self.triangles.chunks_exact_mut(size);
        for (own, covariance) in all.zip(covariances.chunks_exact(size)) {
            let Some(Cholesky { factor, .. }) = Cholesky::of(covariance, dim, None)? else {
                return Ok(Some(covariance[0]));
            };
            own.copy_from_slice(&linalg::inverse_of_lower(&factor, dim, None)?);
        }
        Ok(None)
    }

    pub(super) fn set_all(&mut self, variance: f64) {
        let size = self.size();
        for triangle in self.triangles.chunks_exact_mut(size) {
            triangle.fill(0.0);
            let diagonal = triangle.iter_mut().step_by(self.columns + 1);
            diagonal.for_each(|x| *x = 1.0 / variance.sqrt());
        }
        self.least.fill(variance);
    }

    pub(super) fn is_round(&self, variance: f64) -> bool {
        let diagonal = 1.0 / variance.sqrt();
        let is_round = |(place, x): (usize, &f64)| {
            let at = place % self.size();
            *x == if at.is_multiple_of(self.columns + 1) {
                diagonal
            } else {
                0.0
            }
        };
        self.triangles.iter().enumerate().all(is_round)
    }

    /// See [`Kind::carry_over`].
    pub(super) fn carry_over<F: Float>(
        &mut self,
        from: &dyn Kind<F>,
        common: &Common<F>,
        units: &Scales<'_>,
    ) -> Result<()> {
        let ratio = &units.ratio;
        let watch = units.watch;
        let dim = self.columns;
        let pairs = self.least.iter_mut().zip(from.least_variances());
        for (place, (least, from)) in pairs.enumerate() {
            let j = place % dim;
            *least = (from * (ratio(j) * ratio(j))).max(common.floors.of_column::<F>(j));
        }
        if units.same {
            self.means.copy_from_slice(from.exact_means());
        }
        if units.same && from.least_variances() == self.least {
            self.triangles.copy_from_slice(from.numbers());
            return Ok(());
        }
        let mut covariances = Vec::with_capacity(self.triangles.len());
        for c in 0..from.number() {
            if let Some(matrix) = from.matrix(c, units.watch) {
                covariances.extend(matrix?);
            }
        }
        for (place, v) in covariances.iter_mut().enumerate() {
            *v *= ratio(place / dim % dim) * ratio(place % dim);
        }
        let all = parallel::map_chunks(&mut covariances, self.size(), |c, _, matrix| {
            let found = linalg::whitening(matrix, self.least(c), watch)?;
            matrix.copy_from_slice(&found);
            Ok(())
        });
        parallel::all(all)?;
        self.triangles = covariances;
        Ok(())
    }

    /// Whether the `floors` hold component `c`.
    pub(super) fn is_held(&self, c: usize, floors: Vec<f64>) -> bool {
        if dot(self.least(c), &self.precisions(c)) * AT_FLOOR < 1.0 {
            return false;
        }
        // The largest eigenvalue of the precision in units of the floors is 1. One variance in all directions is above them.
        let dim = self.columns;
        let variances = unwatched(self.matrix(c, None)).into_diag();
        let floors = floors.into_iter().zip(variances).zip(self.least(c));
        let floors = floors.map(|((floor, v), least)| least.min(floor.max(LEAST_SHARE * v)));
        let least: Vec<f64> = floors.collect();
        let scaled = self.own(c).iter().enumerate();
        let scaled: Vec<f64> = scaled.map(|(i, x)| x * least[i % dim].sqrt()).collect();
        let mut rest = unwatched(linalg::gram(&scaled, dim, None));
        rest.iter_mut().for_each(|x| *x *= -AT_FLOOR);
        rest.iter_mut().step_by(dim + 1).for_each(|x| *x += 1.0);
        let is_proper = unwatched(linalg::cholesky(&mut rest, dim, None));
        !is_proper
    }

    /// The costs of components that have not all one variance: their form follows from what determinants, a ridge and proportions add.
    pub(super) fn costs<F: Float>(
        &self,
        common: &Common<F>,
        form: impl FnOnce(&[Whitening], Vec<f64>) -> Form<F>,
        watch: Watch<'_>,
    ) -> Result<Costs<F>> {
        let dim = self.columns;
        let unit = common.unit;
        let penalties = common.penalties();
        let is_round = self.is_round(unit) && penalties.iter().all(|p| *p == 0.0);
        let all = parallel::map(self.number(), |c| {
            let mean = self.mean(c).to_vec();
            if is_round {
                return Ok(Whitening::spherical(mean, 1.0));
            }
            let relative: Vec<f64> = self.own(c).iter().map(|x| x * unit.sqrt()).collect();
            Whitening::of_factor(mean, &relative, watch)
        });
        let whitenings: Vec<Whitening> = parallel::all(all)?;
        let form = if is_round && common.prior.ridge.is_empty() {
            let centres = common.centres.clone();
            Form::Scaled(Box::new(Scaled::new(centres, |_| Factor::ONE)))
        } else {
            let log_dets = whitenings.iter().cycle().map(Whitening::log_det);
            let added = log_dets.zip(&penalties).enumerate();
            let added = added.map(|(c, (log_det, penalty))| {
                unit * (log_det + common.prior.ridge_trace(dim, || self.precisions(c))) + penalty
            });
            form(&whitenings, added.collect())
        };
        Ok(Costs::new(whitenings, penalties, form))
    }

    /// Moves means, and the centres with them, by so much (k, d).
    pub(super) fn step<F: Float>(&mut self, common: &mut Common<F>, steps: &[f64]) {
        let moved = self.means.iter_mut().zip(steps);
        moved.for_each(|(mean, step)| *mean += step);
        common.centres.update(|c, row| {
            for (z, mean) in row.iter_mut().zip(self.mean(c)) {
                *z = F::from_f64(*mean);
            }
        });
    }

    /// An error of the section that holds what no model has. Triangles are of eigenvalues that were clamped, up to rounding.
    pub(super) fn check<F: Float>(&self, common: &Common<F>) -> std::result::Result<(), FileFault> {
        let dim = self.columns;
        all_finite("exact means", &self.means, common.k() * dim)?;
        all_positive("least variances", &self.least, self.number() * dim)?;
        let proper = self.triangles.iter().enumerate().all(|(place, x)| {
            let i = place / dim % dim;
            match i.cmp(&(place % dim)) {
                Ordering::Less => *x == 0.0,
                Ordering::Equal => *x > 0.0 && is_number::<F>(common.unit * x * x),
                Ordering::Greater => is_number::<F>(common.unit * x * x),
            }
        });
        rule(proper, "variances", OF_UNIT)
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
