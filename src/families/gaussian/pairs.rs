//! The part that kinds of covariances with all pairs of columns share (E52): all but sums of rows.

use super::common::Common;
use super::costs::{Costs, Form};
use super::covariance::Covariance;
use super::floors::LEAST_SHARE;
use super::kind::{Among, Kind, Scales, Step};
use super::triangles::{Triangles, dot};
use crate::base::cancel::Watch;
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::{linalg, parallel};
use crate::costs::whitening::Whitening;
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::rows::Rows;
use ndarray::Array2;

pub(in crate::families) trait Pairs: Send + Sync {
    const KIND: Covariance;
    const SECOND: SecondMoments;

    fn triangles(&self) -> &Triangles;

    fn triangles_mut(&mut self) -> &mut Triangles;

    /// Costs of rows, by what determinants, a ridge and proportions add (k).
    fn form<F: Float>(&self, whitenings: &[Whitening], added: Vec<f64>) -> Form<F>;

    fn add<F: Float>(
        &self,
        common: &Common<F>,
        costs: &Costs<F>,
        rows: &Rows<F>,
        block: &Block<F>,
        sums: &mut Moments,
    );

    /// Moves the means to those of the sums.
    fn found<F: Float>(&mut self, common: &mut Common<F>, step: &Step<'_, F>) -> Found;
}

/// The covariances that sums give.
pub(in crate::families) struct Found {
    /// Sums of products about the new means: the lower halves of (d, d).
    pub(super) sums: Vec<Vec<f64>>,
    /// The weights of the rows that they are of.
    pub(super) masses: Vec<f64>,
    /// The share of sums about the means before that is rounding.
    pub(super) lost: f64,
}

impl<F: Float, P: Pairs> Kind<F> for P {
    fn covariance(&self) -> Covariance {
        P::KIND
    }

    fn numbers(&self) -> &[f64] {
        &self.triangles().triangles
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.triangles_mut().triangles
    }

    fn size(&self) -> usize {
        self.triangles().size()
    }

    fn set(&mut self, covariances: &[f64]) -> Result<Option<f64>> {
        self.triangles_mut().set(covariances)
    }

    fn set_all(&mut self, variance: f64) {
        self.triangles_mut().set_all(variance);
    }

    fn exact_means(&self) -> &[f64] {
        &self.triangles().means
    }

    fn least_variances(&self) -> &[f64] {
        &self.triangles().least
    }

    fn carry_over(
        &mut self,
        from: &dyn Kind<F>,
        common: &Common<F>,
        units: &Scales<'_>,
    ) -> Result<()> {
        self.triangles_mut().carry_over(from, common, units)
    }

    fn own_floors(&self, common: &Common<F>, c: usize) -> Vec<f64> {
        let mean = self.triangles().mean(c).iter().copied();
        common.floors.about(&common.frame, mean, false)
    }

    fn floors(&self, common: &Common<F>, c: usize) -> Vec<f64> {
        if self.triangles().number() == 1 {
            self.shared_floors(common)
        } else {
            self.own_floors(common, c)
        }
    }

    fn narrowest(&self, c: usize) -> f64 {
        1.0 / self.triangles().precisions(c).iter().sum::<f64>()
    }

    fn set_least(&mut self, least: f64) {
        self.triangles_mut().least.fill(least);
    }

    fn is_held(&self, common: &Common<F>, c: usize) -> bool {
        self.triangles().is_held(c, self.floors(common, c))
    }

    fn at_floor(&self, common: &Common<F>) -> Vec<usize> {
        let number = self.triangles().number();
        let held: Vec<bool> = (0..number)
            .map(|c| Kind::<F>::is_held(self, common, c))
            .collect();
        (0..common.k()).filter(|c| held[c % number]).collect()
    }

    fn precisions(&self, c: usize) -> Vec<f64> {
        self.triangles().precisions(c)
    }

    fn log_det(&self, c: usize, _dim: usize) -> f64 {
        self.triangles().log_det(c)
    }

    fn variances(&self, c: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
        Ok(self.triangles().matrix(c, watch)?.into_diag().to_vec())
    }

    fn matrix(&self, c: usize, watch: Watch<'_>) -> Option<Result<Array2<f64>>> {
        Some(self.triangles().matrix(c, watch))
    }

    fn free(&self) -> usize {
        let own = self.triangles();
        own.number() * own.columns * (own.columns + 1) / 2
    }

    fn of_columns(&self, _among: Among) -> Covariance {
        P::KIND
    }

    fn costs(&self, common: &Common<F>, watch: Watch<'_>) -> Result<Costs<F>> {
        let form = |whitenings: &[_], added| self.form(whitenings, added);
        self.triangles().costs(common, form, watch)
    }

    fn statistics(&self, common: &Common<F>) -> Moments {
        Moments::zeros(common.k(), common.dim(), P::SECOND)
    }

    fn accumulate(
        &self,
        common: &Common<F>,
        costs: &Costs<F>,
        rows: &Rows<F>,
        block: &Block<F>,
        sums: &mut Moments,
    ) {
        self.add(common, costs, rows, block, sums);
    }

    fn update(&mut self, common: &mut Common<F>, step: Step<'_, F>) -> Result<()> {
        let sums = &step.sums;
        let mut found = self.found(common, &step);
        let dim = common.dim();
        let prior = &common.prior;
        for (matrix, mass) in found.sums.iter_mut().zip(&found.masses) {
            let columns = matrix.iter_mut().step_by(dim + 1);
            let noise = columns.zip(&prior.ridge);
            noise.for_each(|(x, r)| *x += mass * r);
        }
        let traces = found
            .sums
            .iter()
            .flat_map(|own| own.iter().step_by(dim + 1));
        let total = sums.mass.iter().sum::<f64>() * dim as f64;
        // The one variance that all would share.
        let shared = self.one_variance(common, traces.sum(), total);
        if step.restricted {
            self.update_one(common, shared);
            return Ok(());
        }
        let before = sums.second().chunks_exact(dim * dim);
        let of_components = found.sums.iter_mut().zip(before).zip(&found.masses);
        let next = parallel::map_parts(of_components.collect(), |c, ((matrix, before), mass)| {
            let own = self.triangles();
            // A component without mass keeps its covariance.
            if mass + prior.rows <= 0.0 {
                return Ok((own.least(c).to_vec(), own.own(c).to_vec()));
            }
            let columns = matrix.iter_mut().step_by(dim + 1).enumerate();
            columns.for_each(|(j, x)| *x += prior.of_column(j).0);
            let with_prior = (mass + prior.rows).max(f64::MIN_POSITIVE);
            matrix.iter_mut().for_each(|x| *x /= with_prior);
            let mass = mass.max(f64::MIN_POSITIVE);
            // The floors, and variances that have digits.
            let mut least = self.floors(common, c);
            let variances = matrix.iter().zip(before).step_by(dim + 1);
            for (least, (variance, sum)) in least.iter_mut().zip(variances) {
                let rounding = found.lost * sum / mass;
                *least = least.max(LEAST_SHARE * variance).max(rounding);
            }
            clamped(own, c, matrix, least, step.cancel)
        });
        let (least, triangles): (Vec<_>, Vec<_>) = parallel::all(next)?.into_iter().unzip();
        let own = self.triangles_mut();
        own.least = least.concat();
        own.triangles = triangles.concat();
        let narrowest = own.least.iter().copied().fold(f64::INFINITY, f64::min);
        common.unit = shared.max(narrowest);
        Ok(())
    }

    fn check(&self, common: &Common<F>) -> std::result::Result<(), FileFault> {
        self.check_size(common)?;
        self.triangles().check(common)
    }
}

/// The least variances that the covariance (d, d) of component `c` is clamped at, and the triangle that follows. The triangle there
/// is must be among those allowed, or be no better: or the step could lower the free energy.
fn clamped(
    own: &Triangles,
    c: usize,
    matrix: &[f64],
    mut least: Vec<f64>,
    watch: Watch<'_>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let dim = least.len();
    let found = linalg::whitening(matrix, &least, watch)?;
    // The sum of the eigenvalues of the precision, in these units, is at least the largest.
    if dot(&least, &own.precisions(c)) <= 1.0
        || fit_of(&found, matrix, dim) >= fit_of(own.own(c), matrix, dim)
    {
        return Ok((least, found));
    }
    for (least, before) in least.iter_mut().zip(own.least(c)) {
        *least = least.min(*before);
    }
    let found = linalg::whitening(matrix, &least, watch)?;
    Ok((least, found))
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
