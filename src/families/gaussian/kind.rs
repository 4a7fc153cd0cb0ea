//! The trait of a kind of covariances. Variances and covariances are in the unit of the frame, squared.

use super::common::Common;
use super::costs::{Costs, Form};
use super::floors::LEAST_SHARE;
use crate::base::cancel::{Watch, unwatched};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::parallel;
use crate::costs::{Cost, LowRank, Whitened};
use crate::families::variances::ROUNDING;
use crate::io::rule;
use crate::kernels::stride;
use crate::m_step::sums::accumulate::About;
use crate::m_step::sums::moments::{Moments, OfKind};
use crate::rows::FARTHEST;
use ndarray::Array2;
use std::slice::ChunksExact;

/// The parameters of one kind. Provided methods suit kinds of variances alone.
pub(in crate::families) trait Kind<F: Float>: Send + Sync {
    /// All variances, or all whitening triangles.
    fn numbers(&self) -> &[f64];

    fn numbers_mut(&mut self) -> &mut [f64];

    /// How many of these one component has.
    fn size(&self) -> usize;

    /// How many covariances there are: k, or one.
    fn number(&self) -> usize {
        self.numbers().len() / self.size()
    }

    /// The numbers of component `c`: one variance, those of the columns (d), or a triangle (d, d).
    fn numbers_of(&self, c: usize) -> &[f64] {
        let numbers = self.numbers();
        &numbers[c * self.size() % numbers.len()..][..self.size()]
    }

    /// Takes over variances, or covariance matrices. Returns a variance of the first matrix that is not positive definite, with
    /// the digits of `f64`.
    fn set(&mut self, variances: &[f64]) -> Result<Option<f64>> {
        self.numbers_mut().copy_from_slice(variances);
        Ok(None)
    }

    /// Takes over the same variances of columns (d) for all components, or one for every column.
    fn set_all(&mut self, variances: &[f64]) {
        for (v, given) in self.numbers_mut().iter_mut().zip(variances.iter().cycle()) {
            *v = *given;
        }
    }

    /// The means (k, d) that triangles are about, not rounded to the type of the data: narrow components may be narrower than that.
    fn exact_means(&self) -> &[f64] {
        &[]
    }

    /// The least variances of the columns of matrices (d), or (k, d): each is at least the diagonal matrix of its own (E52).
    fn least_variances(&self) -> &[f64] {
        &[]
    }

    /// The loadings of factors (k, q, d), padded.
    fn loadings(&self) -> &[F] {
        &[]
    }

    /// The loadings of component `c` on each of its factors, padded.
    fn loadings_of(&self, common: &Common<F>, c: usize) -> ChunksExact<'_, F> {
        let size = self.loadings().len() / common.k();
        self.loadings()[c * size..][..size].chunks_exact(stride(common.dim()))
    }

    /// Starts what would never leave one variance for all.
    fn start(&mut self, _common: &Common<F>) {}

    /// Carries over the parameters of another model of this kind.
    fn carry_over(
        &mut self,
        from: &dyn Kind<F>,
        common: &Common<F>,
        units: &Scales<'_>,
    ) -> Result<()> {
        let dim = common.dim();
        let by_column = self.size() == dim;
        let numbers = self.numbers_mut().iter_mut().zip(from.numbers());
        for (place, (v, from)) in numbers.enumerate() {
            let j = place % dim;
            let square = units.ratios[j] * units.ratios[j];
            let factor = if by_column { square } else { units.mean };
            *v = (from * factor).max(common.floors.of_column::<F>(j));
        }
        Ok(())
    }

    /// The floors of the variances about the mean of component `c`: of each column, or of their mean.
    fn own_floors(&self, common: &Common<F>, c: usize) -> Vec<f64> {
        let of_all = self.size() == 1;
        common.floors.about(&common.frame, common.centre(c), of_all)
    }

    /// The floors (E20) of the variances of component `c`: of a covariance that all share, the least of all.
    fn floors(&self, common: &Common<F>, c: usize) -> Vec<f64> {
        if self.number() > 1 {
            return self.own_floors(common, c);
        }
        let lower = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a.min(b)).collect();
        let floors = (0..common.k()).map(|c| self.own_floors(common, c));
        floors.reduce(lower).unwrap_or_default()
    }

    /// The narrowest variance of component `c`, or less.
    fn narrowest(&self, c: usize) -> f64 {
        self.numbers_of(c)
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }

    /// Takes over the least variance in any direction.
    fn set_least(&mut self, _least: f64) {}

    /// Whether a floor holds component `c`: with all others, where they share a covariance.
    fn is_held(&self, common: &Common<F>, c: usize) -> bool {
        let whole = unwatched(self.variances(c, None));
        let variances = self.numbers_of(c).iter().zip(self.floors(common, c));
        let mut variances = variances.zip(whole);
        variances.any(|((v, floor), whole)| *v <= AT_FLOOR * floor.max(LEAST_SHARE * whole))
    }

    /// The components that a floor holds.
    fn at_floor(&self, common: &Common<F>) -> Vec<usize> {
        let number = self.number();
        let at_floor = parallel::map(number, |c| self.is_held(common, c));
        (0..common.k()).filter(|c| at_floor[c % number]).collect()
    }

    /// The precisions (d) of the columns of component `c`, given all others; or the one of all.
    fn precisions(&self, c: usize) -> Vec<f64> {
        self.numbers_of(c).iter().map(|v| 1.0 / v).collect()
    }

    /// The logarithm of the determinant of the covariance of component `c` in `dim` coordinates.
    fn log_det(&self, c: usize, dim: usize) -> f64 {
        let variances = self.numbers_of(c);
        let sum = variances.iter().map(|v| v.ln()).sum::<f64>();
        (dim / variances.len()) as f64 * sum
    }

    /// The variances of the coordinates of component `c`: one, or (d).
    fn variances(&self, c: usize, _watch: Watch<'_>) -> Result<Vec<f64>> {
        Ok(self.numbers_of(c).to_vec())
    }

    /// The covariance matrix of component `c`, of kinds that have all pairs of columns.
    fn matrix(&self, _c: usize, _watch: Watch<'_>) -> Option<Result<Array2<f64>>> {
        None
    }

    /// How many of the numbers are free.
    fn free(&self) -> usize {
        self.numbers().len()
    }

    fn costs(&self, common: &Common<F>, watch: Watch<'_>) -> Result<Costs<F>>;

    fn cost<'m>(&'m self, common: &'m Common<F>, costs: &'m Costs<F>) -> Cost<'m, F> {
        let centres = &common.centres;
        match &costs.form {
            Form::Squared => Cost::Squared(centres),
            Form::Scaled(scaled) => Cost::Scaled(scaled),
            Form::Factors(factored) => Cost::LowRank(LowRank {
                factored,
                centres,
                loadings: self.loadings(),
                noise: self.numbers(),
                ridge: &common.prior.ridge,
                penalties: &costs.penalties,
            }),
            Form::Tied(shared) => {
                let observed = costs.observed(common, Some(self.exact_means()));
                Cost::Whitened(Whitened::shared(shared, observed))
            }
            Form::Full(added) => {
                Cost::Whitened(Whitened::each(added, costs.observed(common, None)))
            }
        }
    }

    /// The sums that the kind has besides its second moments.
    fn further_sums(&self, _k: usize) -> Option<OfKind> {
        None
    }

    /// The points that its sums are about.
    fn about<'m>(&'m self, common: &'m Common<F>, _costs: &'m Costs<F>) -> About<'m, F> {
        About::Centres(&common.centres)
    }

    /// One variance for all, from a sum of squares and the mass that it is over, with the rows of the prior.
    fn one_variance(&self, common: &Common<F>, squared: f64, mass: f64) -> f64 {
        let (known, rows) = common.prior.of_all(self.number());
        (squared + known) / (mass + rows)
    }

    /// The floor of one variance for all coordinates of all components: the least there is, or any that is below `variance`
    /// and so does not hold it.
    fn floor_below(&self, common: &Common<F>, variance: f64) -> f64 {
        let floors = (0..common.k()).flat_map(|c| self.own_floors(common, c));
        let mut floors = floors.map(|floor| floor.max(common.floors.least));
        let mut least = f64::INFINITY;
        let below = floors.find(|floor| {
            least = least.min(*floor);
            *floor <= variance
        });
        below.unwrap_or(least)
    }

    /// The M-step that keeps to one variance for all, which costs are in units of.
    fn update_one(&mut self, common: &mut Common<F>, variance: f64) {
        // The unit is the variance before.
        let most = common.unit.max(common.floors.least);
        let floor = self.floor_below(common, variance).min(most);
        common.unit = variance.max(floor);
        self.set_all(&[common.unit]);
    }

    /// The M-step: moves the means, and replaces the variances of the components (k) or (k, d) by those of their rows (E32, E34),
    /// clamped from below (E20).
    fn update(&mut self, common: &mut Common<F>, step: Step<'_, F>) -> Result<()> {
        let sums = &step.sums;
        let squared = sums.about_new_means(&mut common.centres);
        let size = self.size();
        let mut variances = self.numbers().to_vec();
        let mut noise = 0.0;
        for (place, variance) in variances.iter_mut().enumerate() {
            let j = place % size;
            let (squared, mass) = sums.second_of(&squared, place / size, j);
            let (known, rows) = if size == 1 {
                common.prior.of_all(1)
            } else {
                common.prior.of_column(j)
            };
            let of_ridge = mass * common.prior.ridge_of(j);
            noise += of_ridge;
            if mass + rows > 0.0 {
                *variance = (squared + of_ridge + known) / (mass + rows);
            }
        }
        let (squared, entries) = sums.squares_of_all(&squared);
        // The one that all would share.
        let shared = self.one_variance(common, squared + noise, entries);
        if step.restricted {
            self.update_one(common, shared);
            return Ok(());
        }
        // The parameters there are must be among those allowed.
        for (c, variances) in variances.chunks_exact_mut(size).enumerate() {
            let before = self.numbers_of(c).iter().zip(self.floors(common, c));
            for (v, (j, (before, floor))) in variances.iter_mut().zip(before.enumerate()) {
                let (sum, mass) = sums.second_of(sums.second(), c, j);
                let rounding = if mass <= 0.0 {
                    0.0
                } else if sums.of_kind == OfKind::Narrow(true) {
                    // Squares are about a point that is at most so far from the mean before.
                    32.0 * F::EPSILON * (sum / mass + (1.0 + FARTHEST) * before)
                } else {
                    ROUNDING * sum / mass
                };
                *v = v.max(floor.max(rounding).min(*before));
            }
        }
        self.numbers_mut().copy_from_slice(&variances);
        common.set_unit(shared, &variances);
        Ok(())
    }

    /// An error of the section that holds what no model has. There are as many numbers as it has.
    fn check(&self, common: &Common<F>) -> std::result::Result<(), FileFault> {
        let unit = common.unit;
        let dim = common.dim();
        let proper = self.numbers().iter().enumerate().all(|(place, v)| {
            let is_above = *v >= common.floors.of_column::<F>(place % dim);
            is_above && is_number::<F>(unit / v) && is_number::<F>(unit * (v / unit).ln())
        });
        rule(proper, "variances", OF_UNIT)
    }
}

/// How another model is to be carried over.
pub(in crate::families) struct Scales<'a> {
    /// Its units of columns (d), in ours, and the mean of their squares.
    pub(super) ratios: Vec<f64>,
    pub(super) mean: f64,
    /// Whether its frame is ours.
    pub(super) same: bool,
    pub(super) watch: Watch<'a>,
}

/// An M-step.
pub(in crate::families) struct Step<'a, F> {
    /// With which the sums were found.
    pub(super) costs: &'a Costs<F>,
    pub(super) sums: Moments,
    /// To one variance in every direction, or to those that there were times a factor.
    pub(super) restricted: bool,
    pub(super) cancel: Watch<'a>,
}

/// Clamped variances are at their floor up to rounding.
pub(super) const AT_FLOOR: f64 = 1.0 + 1e-6;

pub(super) const OF_UNIT: &str =
    "must not be below their least value, nor far from the unit of costs";

/// Whether a number is finite, also in the type of the data.
pub(super) fn is_number<F: Float>(x: f64) -> bool {
    x.is_finite() && F::from_f64(x).is_finite()
}
