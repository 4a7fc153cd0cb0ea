//! Covariances with all pairs of columns, one for all components or one each, as the triangles that whiten them (E52).

use super::common::Common;
use super::costs::{Costs, Form};
use super::floors::LEAST_SHARE;
use super::kind::{AT_FLOOR, Kind, OF_UNIT, Scales, Step, is_number};
use crate::base::cancel::{Watch, unwatched};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::base::parallel;
use crate::costs::whitened::Shared;
use crate::costs::whitening::Whitening;
use crate::families::variances::ROUNDING;
use crate::io::{all_finite, all_positive, rule};
use crate::m_step::sums::accumulate::About;
use crate::m_step::sums::outer::Pairs;
use ndarray::Array2;
use std::cmp::Ordering;

/// Second moments about a fixed point are kept from pass to pass up to this many roundings of shares in the variance of the
/// narrowest direction.
const LEAST_SHARED: f64 = 1e-2;

/// One covariance for all components: $\Sigma$.
pub(in crate::families) type Tied = Triangles<true>;

/// A covariance for each component: $\Sigma_c$.
pub(in crate::families) type Full = Triangles<false>;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(deny_unknown_fields))]
pub(in crate::families) struct Triangles<const ONE: bool> {
    pub(in crate::families) columns: usize,
    /// Lower triangles $M$ (d, d), or (k, d, d), $M^T M = \Sigma^{-1}$, which have digits that $\Sigma$ has not.
    pub(in crate::families) triangles: Vec<f64>,
    /// The means (k, d) that these are about, not rounded to the type of the data: narrow components may be narrower than that.
    pub(in crate::families) means: Vec<f64>,
    /// The least variances of the columns, (d) or (k, d): each covariance is at least the diagonal matrix of its own.
    pub(in crate::families) least: Vec<f64>,
}

/// The covariances that sums give.
struct Scattered {
    /// Sums of products about the new means: the lower halves of (d, d).
    sums: Vec<Vec<f64>>,
    /// The weights of the rows that they are of.
    masses: Vec<f64>,
    /// The share of sums about the means before that is rounding.
    lost: f64,
    /// The squares of what means are off by, by column, in sums about another point; none where `lost` is more.
    off: Vec<f64>,
}

impl<const ONE: bool> Triangles<ONE> {
    /// With variances of 1, for these means (k, d).
    pub(super) fn new(columns: usize, means: Vec<f64>) -> Self {
        let number = if ONE { 1 } else { means.len() / columns };
        let mut new = Self {
            columns,
            triangles: vec![0.0; number * columns * columns],
            means,
            least: vec![f64::MIN_POSITIVE; number * columns],
        };
        new.spread(&[1.0]);
        new
    }

    fn triangle(&self, c: usize) -> &[f64] {
        let size = self.columns * self.columns;
        &self.triangles[c * size % self.triangles.len()..][..size]
    }

    fn least(&self, c: usize) -> &[f64] {
        &self.least[c * self.columns % self.least.len()..][..self.columns]
    }

    fn mean(&self, c: usize) -> &[f64] {
        &self.means[c * self.columns..][..self.columns]
    }

    /// The precisions (d) of the columns, given all others.
    fn column_precisions(&self, c: usize) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns];
        for row in self.triangle(c).chunks_exact(self.columns) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
        }
        sums
    }

    fn covariance(&self, c: usize, watch: Watch<'_>) -> Result<Array2<f64>> {
        let dim = self.columns;
        let deviations = linalg::inverse_of_lower(self.triangle(c), dim, watch)?;
        let covariance = linalg::square(&deviations, dim, watch)?;
        Ok(Array2::from_shape_vec((dim, dim), covariance).expect("d x d numbers"))
    }

    /// Takes over the same variances of columns (d) for all components, or one for every column.
    fn spread(&mut self, variances: &[f64]) {
        let variances = variances.iter().cycle();
        for triangle in self.triangles.chunks_exact_mut(self.columns * self.columns) {
            triangle.fill(0.0);
            let diagonal = triangle.iter_mut().step_by(self.columns + 1);
            for (x, variance) in diagonal.zip(variances.clone()) {
                *x = 1.0 / variance.sqrt();
            }
        }
        for (least, variance) in self.least.iter_mut().zip(variances) {
            *least = *variance;
        }
    }

    /// Whether there is this variance in every direction.
    fn is_round(&self, variance: f64) -> bool {
        let diagonal = 1.0 / variance.sqrt();
        let is_round = |(place, x): (usize, &f64)| {
            let at = place % (self.columns * self.columns);
            *x == if at.is_multiple_of(self.columns + 1) {
                diagonal
            } else {
                0.0
            }
        };
        self.triangles.iter().enumerate().all(is_round)
    }

    /// Moves means, and the centres with them, by so much (k, d).
    fn step<F: Float>(&mut self, common: &mut Common<F>, steps: &[f64]) {
        let moved = self.means.iter_mut().zip(steps);
        moved.for_each(|(mean, step)| *mean += step);
        common.centres.update(|c, row| {
            for (z, mean) in row.iter_mut().zip(self.mean(c)) {
                *z = F::from_f64(*mean);
            }
        });
    }

    /// The mean (d) of the data that sums of all components are about, if there are such sums and these have digits enough for the
    /// narrowest direction; else none. With whether they may be kept from pass to pass.
    fn shared_origin<F: Float>(&self, common: &Common<F>) -> (Vec<f64>, bool) {
        /// The part subtracted from these sums, in variances of that direction.
        const MOST: f64 = 1e8;
        // Before the first M-step it is not known how narrow that is.
        if !ONE || self.is_round(common.unit) {
            return (Vec::new(), false);
        }
        let origin = common.origin();
        // How far the means are from it, squared.
        let mut between = vec![0.0; origin.len()];
        let means = self.means.chunks_exact(origin.len());
        for (mean, share) in means.zip(&common.proportions.values) {
            for ((sum, m), a) in between.iter_mut().zip(mean).zip(&origin) {
                *sum += share * (m - a).powi(2);
            }
        }
        let between = dot(&between, &self.column_precisions(0));
        if between <= MOST {
            // Shares sum to 1 up to their rounding, which must not count in the narrowest direction.
            (origin, between <= LEAST_SHARED / F::EPSILON)
        } else {
            (Vec::new(), false)
        }
    }

    /// Moves the means to those of the sums.
    fn scattered<F: Float>(&mut self, common: &mut Common<F>, step: &Step<'_, F>) -> Scattered {
        let sums = &step.sums;
        let dim = common.dim();
        let mut steps = sums.steps();
        let scatter = sums.scatter();
        if scatter.whitened {
            let back = unwatched(step.costs.whitenings[0].inverse(None));
            for step in steps.chunks_exact_mut(dim) {
                for (j, row) in back.chunks_exact(dim).enumerate().rev() {
                    let along = row[..=j].iter().zip(&*step);
                    step[j] = along.map(|(x, s)| x * s).sum();
                }
            }
        }
        self.step(common, &steps);
        let ridge = &common.prior.ridge;
        if ONE {
            // A step is a sum of numbers of its own size, which have the digits of the rows' type.
            let farthest = |j: usize| {
                let column = steps.iter().skip(j).step_by(dim);
                column.fold(0.0, |most: f64, s| most.max(s.abs()))
            };
            let off = (0..dim).map(|j| dim as f64 * (F::EPSILON * farthest(j)).powi(2));
            return Scattered {
                sums: vec![sums.within(&common.origin(), &self.means, &steps, ridge)],
                masses: vec![sums.mass.iter().sum()],
                // Sums about the mean of the data are never about the means: they keep what digits they have.
                lost: if scatter.about_means {
                    ROUNDING
                } else {
                    64.0 * f64::EPSILON
                },
                off: off.collect(),
            };
        }
        Scattered {
            sums: parallel::map(common.k(), |c| {
                sums.about(c, &steps[c * dim..][..dim], ridge)
            }),
            masses: sums.mass.clone(),
            lost: ROUNDING,
            off: Vec::new(),
        }
    }

    /// The least variances that the covariance (d, d) of component `c` is clamped at, and the triangle that follows. The triangle there
    /// is must be among those allowed, or be no better: or the step could lower the free energy.
    fn clamped(
        &self,
        c: usize,
        matrix: &[f64],
        mut least: Vec<f64>,
        watch: Watch<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let dim = least.len();
        let triangle = linalg::whitening(matrix, &least, watch)?;
        // The sum of the eigenvalues of the precision, in these units, is at least the largest.
        if dot(&least, &self.column_precisions(c)) <= 1.0
            || fit_of(&triangle, matrix, dim) >= fit_of(self.triangle(c), matrix, dim)
        {
            return Ok((least, triangle));
        }
        for (least, before) in least.iter_mut().zip(self.least(c)) {
            *least = least.min(*before);
        }
        let triangle = linalg::whitening(matrix, &least, watch)?;
        Ok((least, triangle))
    }
}

impl<F: Float, const ONE: bool> Kind<F> for Triangles<ONE> {
    fn numbers(&self) -> &[f64] {
        &self.triangles
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.triangles
    }

    fn size(&self) -> usize {
        // A file may say any number.
        self.columns.saturating_mul(self.columns)
    }

    fn set(&mut self, covariances: &[f64]) -> Result<Option<f64>> {
        let dim = self.columns;
        let size = dim * dim;
        let triangles = self.triangles.chunks_exact_mut(size);
        for (triangle, covariance) in triangles.zip(covariances.chunks_exact(size)) {
            let Some(Cholesky { factor, .. }) = Cholesky::of(covariance, dim, None)? else {
                return Ok(Some(covariance[0]));
            };
            triangle.copy_from_slice(&linalg::inverse_of_lower(&factor, dim, None)?);
        }
        Ok(None)
    }

    fn set_all(&mut self, variances: &[f64]) {
        self.spread(variances);
    }

    fn exact_means(&self) -> &[f64] {
        &self.means
    }

    fn least_variances(&self) -> &[f64] {
        &self.least
    }

    fn carry_over(
        &mut self,
        from: &dyn Kind<F>,
        common: &Common<F>,
        units: &Scales<'_>,
    ) -> Result<()> {
        let ratios = &units.ratios;
        let watch = units.watch;
        let dim = self.columns;
        let pairs = self.least.iter_mut().zip(from.least_variances());
        for (place, (least, from)) in pairs.enumerate() {
            let j = place % dim;
            *least = (from * (ratios[j] * ratios[j])).max(common.floors.of_column::<F>(j));
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
            *v *= ratios[place / dim % dim] * ratios[place % dim];
        }
        let done = parallel::map_chunks(&mut covariances, dim * dim, |c, _, matrix| {
            let triangle = linalg::whitening(matrix, self.least(c), watch)?;
            matrix.copy_from_slice(&triangle);
            Ok(())
        });
        parallel::all(done)?;
        self.triangles = covariances;
        Ok(())
    }

    fn own_floors(&self, common: &Common<F>, c: usize) -> Vec<f64> {
        let mean = self.mean(c).iter().copied();
        common.floors.about(&common.frame, mean, false)
    }

    fn narrowest(&self, c: usize) -> f64 {
        1.0 / self.column_precisions(c).iter().sum::<f64>()
    }

    fn set_least(&mut self, least: f64) {
        self.least.fill(least);
    }

    fn is_held(&self, common: &Common<F>, c: usize) -> bool {
        if dot(self.least(c), &self.column_precisions(c)) * AT_FLOOR < 1.0 {
            return false;
        }
        // The largest eigenvalue of the precision in units of the floors is 1. One variance in all directions is above them.
        let dim = self.columns;
        let variances = unwatched(self.covariance(c, None)).into_diag();
        let floors = self.floors(common, c).into_iter().zip(variances);
        let floors = floors.zip(self.least(c));
        let floors = floors.map(|((floor, v), least)| least.min(floor.max(LEAST_SHARE * v)));
        let least: Vec<f64> = floors.collect();
        let scaled = self.triangle(c).iter().enumerate();
        let scaled: Vec<f64> = scaled.map(|(i, x)| x * least[i % dim].sqrt()).collect();
        let mut difference = unwatched(linalg::gram(&scaled, dim, None));
        difference.iter_mut().for_each(|x| *x *= -AT_FLOOR);
        difference
            .iter_mut()
            .step_by(dim + 1)
            .for_each(|x| *x += 1.0);
        let is_proper = unwatched(linalg::cholesky(&mut difference, dim, None));
        !is_proper
    }

    fn precisions(&self, c: usize) -> Vec<f64> {
        self.column_precisions(c)
    }

    fn log_det(&self, c: usize, dim: usize) -> f64 {
        let diagonal = self.triangle(c).iter().step_by(dim + 1);
        -2.0 * diagonal.map(|x| x.ln()).sum::<f64>()
    }

    fn variances(&self, c: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
        Ok(self.covariance(c, watch)?.into_diag().to_vec())
    }

    fn matrix(&self, c: usize, watch: Watch<'_>) -> Option<Result<Array2<f64>>> {
        Some(self.covariance(c, watch))
    }

    fn free(&self) -> usize {
        self.least.len() * (self.columns + 1) / 2
    }

    /// Squared distances of rows that one transform, or that of each component, whitens.
    fn costs(&self, common: &Common<F>, watch: Watch<'_>) -> Result<Costs<F>> {
        let dim = self.columns;
        let unit = common.unit;
        let penalties = common.penalties();
        let is_round = self.is_round(unit) && penalties.iter().all(|p| *p == 0.0);
        let whitenings = parallel::map(self.least.len() / dim, |c| {
            let mean = self.mean(c).to_vec();
            if is_round {
                return Ok(Whitening::spherical(mean, 1.0));
            }
            let relative = self.triangle(c).iter().map(|x| x * unit.sqrt());
            Whitening::of_factor(mean, &relative.collect::<Vec<f64>>(), watch)
        });
        let whitenings: Vec<Whitening> = parallel::all(whitenings)?;
        let form = if is_round && common.prior.ridge.is_empty() {
            Form::round(common)
        } else {
            let log_dets = whitenings.iter().cycle().map(Whitening::log_det);
            let added = log_dets.zip(&penalties).enumerate();
            let added = added.map(|(c, (log_det, penalty))| {
                let of_ridge = common.prior.ridge_trace(dim, || self.column_precisions(c));
                unit * (log_det + of_ridge) + penalty
            });
            if ONE {
                let added: Vec<f64> = added.collect();
                Form::Tied(Box::new(Shared::new(&whitenings[0], &self.means, &added)))
            } else {
                // A discarded component is ranked last.
                let most = 10.0 * F::LARGEST_COST;
                Form::Full(added.map(|added| added.min(most)).collect())
            }
        };
        Ok(Costs::new(whitenings, penalties, form))
    }

    fn about<'m>(&'m self, common: &'m Common<F>, costs: &'m Costs<F>) -> About<'m, F> {
        let (origin, stay) = self.shared_origin(common);
        About::Pairs(Pairs {
            observed: Some(costs.observed(common, ONE.then_some(&self.means))),
            origin,
            shared: costs.shared(),
            stay,
            ..Pairs::about(&self.means)
        })
    }

    fn update(&mut self, common: &mut Common<F>, step: Step<'_, F>) -> Result<()> {
        let sums = &step.sums;
        let mut scattered = self.scattered(common, &step);
        let dim = common.dim();
        let prior = &common.prior;
        let matrices = scattered.sums.iter();
        let traces = matrices.flat_map(|matrix| matrix.iter().step_by(dim + 1));
        let total = sums.mass.iter().sum::<f64>() * dim as f64;
        // The one variance that all would share.
        let shared = self.one_variance(common, traces.sum(), total);
        if step.restricted {
            self.update_one(common, shared);
            return Ok(());
        }
        let before = sums.second().chunks_exact(dim * dim);
        let of_components = scattered.sums.iter_mut().zip(before).zip(&scattered.masses);
        let next = parallel::map_parts(of_components.collect(), |c, ((matrix, before), mass)| {
            // A component without mass keeps its covariance.
            if mass + prior.rows <= 0.0 {
                return Ok((self.least(c).to_vec(), self.triangle(c).to_vec()));
            }
            let columns = matrix.iter_mut().step_by(dim + 1).enumerate();
            columns.for_each(|(j, x)| *x += prior.of_column(j).0);
            let with_prior = (mass + prior.rows).max(f64::MIN_POSITIVE);
            matrix.iter_mut().for_each(|x| *x /= with_prior);
            let mass = mass.max(f64::MIN_POSITIVE);
            // The floors, and variances that have digits.
            let mut least = self.floors(common, c);
            let variances = matrix.iter().zip(before).step_by(dim + 1);
            for (j, (least, (variance, sum))) in least.iter_mut().zip(variances).enumerate() {
                let off = scattered.off.get(j).copied().unwrap_or(0.0);
                let rounding = scattered.lost * sum / mass + off;
                *least = least.max(LEAST_SHARE * variance).max(rounding);
            }
            self.clamped(c, matrix, least, step.cancel)
        });
        let (least, triangles): (Vec<_>, Vec<_>) = parallel::all(next)?.into_iter().unzip();
        self.least = least.concat();
        self.triangles = triangles.concat();
        common.set_unit(shared, &self.least);
        Ok(())
    }

    /// Triangles are of eigenvalues that were clamped, up to rounding.
    fn check(&self, common: &Common<F>) -> std::result::Result<(), FileFault> {
        let dim = self.columns;
        let number = self.triangles.len() / (dim * dim);
        all_finite("exact means", &self.means, common.k() * dim)?;
        all_positive("least variances", &self.least, number * dim)?;
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Twice the mean log-density of rows whose covariance has this lower half, up to a constant, under that of a triangle $M$:
/// $2 \ln |M| - \operatorname{tr} M S M^T$.
fn fit_of(triangle: &[f64], matrix: &[f64], dim: usize) -> f64 {
    let of_row = |(i, row): (usize, &[f64])| {
        let along = |a: usize| {
            let across: f64 = (0..a).map(|b| matrix[a * dim + b] * row[b]).sum();
            row[a] * (matrix[a * (dim + 1)] * row[a] + 2.0 * across)
        };
        2.0 * row[i].ln() - (0..=i).map(along).sum::<f64>()
    };
    triangle.chunks_exact(dim).enumerate().map(of_row).sum()
}
