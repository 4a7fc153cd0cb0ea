//! The parameters of a Gaussian mixture, as files have them, checked when they are read.

use super::covariance::Covariance;
use super::prior::Advance;
use crate::base::cancel::{Watch, unwatched};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::linalg;
use crate::families::proportions::Proportions;
use crate::families::variances::{RESOLVED, resolved_beside};
use crate::io::{all_finite, all_positive, rule};
use crate::kernels::stride;
use crate::rows::{Centres, Frame};
use ndarray::Array2;
use std::cmp::Ordering;

/// The least variance of a full covariance in any direction, as a share of those of its columns: below, sums of products have
/// too few digits left in it.
pub(super) const LEAST_SHARE: f64 = 1e-8;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(in crate::families) struct Parameters<F> {
    pub(in crate::families) covariance: Covariance,
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
    /// The least variances of the columns of such covariances, (d) or (k, d): each is at least the diagonal matrix of its own
    /// (E52).
    pub(super) least_variances: Vec<f64>,
    /// The least variance of all, and factors by which those of columns (d) differ; none where they do not (E20).
    pub(super) least_variance: f64,
    pub(super) relative: Vec<f64>,
    /// The variance that costs are in units of.
    pub(super) unit: f64,
    pub(in crate::families) proportions: Proportions,
    pub(in crate::families) prior: Advance,
    /// The loadings of factors (k, q, d), padded, in the unit of the frame: none for other kinds, and before the first variance is
    /// known.
    pub(super) loadings: Vec<F>,
}

impl<F: Float> Parameters<F> {
    /// With variances of 1.
    pub(super) fn new(
        covariance: Covariance,
        centres: Centres<F>,
        frame: Frame<F>,
        proportions: Proportions,
    ) -> Self {
        let (exact_means, least_variances) = if covariance.has_pairs() {
            (
                centres.coordinates().collect(),
                vec![f64::MIN_POSITIVE; covariance.columns(centres.len(), centres.dim())],
            )
        } else {
            Default::default()
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
            relative: Vec::new(),
            unit: 1.0,
            proportions,
            prior: Advance::default(),
            loadings: Vec::new(),
        };
        new.spread = new.isotropic(1.0);
        new
    }

    pub(in crate::families) fn k(&self) -> usize {
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

    /// One variance in every direction, which costs are in units of.
    pub(super) fn set_all(&mut self, variance: f64) {
        (self.spread, self.unit) = (self.isotropic(variance), variance);
        self.loadings = Vec::new();
        self.least_variances.fill(variance);
    }

    /// The part of the spread that component `c` has.
    pub(super) fn own(&self, c: usize) -> &[f64] {
        let size = self.covariance.numbers(1, self.dim());
        &self.spread[c * size % self.spread.len()..][..size]
    }

    /// The least variances of columns that component `c` has.
    pub(super) fn least_of(&self, c: usize) -> &[f64] {
        let dim = self.dim();
        &self.least_variances[c * dim % self.least_variances.len()..][..dim]
    }

    /// The floors (E20) of the variances of component `c`: of each column, or of their mean. Coordinates of a basis are sums
    /// over all columns, with the rounding of the largest.
    fn own_floors(&self, c: usize) -> Vec<f64> {
        let dim = self.dim();
        let frame = &self.frame;
        let resolved = |j: usize| {
            let apart = match self.exact_means.get(c * dim + j) {
                Some(mean) => *mean,
                None => self.centres.row(c)[j].to_f64(),
            };
            let value = frame.enter_length(j, frame.offset[j].to_f64()) + apart;
            (F::EPSILON.max(RESOLVED) * value).powi(2)
        };
        let mut floors: Vec<f64> = (0..dim).map(resolved).collect();
        if frame.basis().is_some() {
            let most = floors.iter().copied().fold(0.0, f64::max);
            floors.fill(most);
        }
        if matches!(
            self.covariance,
            Covariance::TiedSpherical | Covariance::Spherical
        ) {
            floors = vec![floors.iter().sum::<f64>() / dim as f64];
        }
        let columns = floors.into_iter().enumerate();
        columns.map(|(j, v)| v.max(self.least(j))).collect()
    }

    /// The least variance of column `j`, whatever its numbers are.
    pub(super) fn least(&self, j: usize) -> f64 {
        let relative = self.relative.get(j).copied().unwrap_or(1.0);
        (self.least_variance * relative).max(resolved_beside::<F>(0.0).min(self.least_variance))
    }

    /// The floors (E20) of the variances of component `c`, or of those that all components share: the least of all.
    pub(super) fn floors(&self, c: usize) -> Vec<f64> {
        let sharing = if self.covariance.is_tied() {
            0..self.k()
        } else {
            c..c + 1
        };
        let lower = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a.min(b)).collect();
        let all = sharing.map(|c| self.own_floors(c));
        all.reduce(lower).unwrap_or_default()
    }

    /// The floor of one variance for all coordinates of all components: the least there is, or any that is below `variance`
    /// and so does not hold it.
    pub(super) fn floor_below(&self, variance: f64) -> f64 {
        let all = (0..self.k()).flat_map(|c| self.own_floors(c));
        let mut all = all.map(|floor| floor.max(self.least_variance));
        let least = |least: f64, floor| {
            if floor <= variance {
                Err(floor)
            } else {
                Ok(least.min(floor))
            }
        };
        all.try_fold(f64::INFINITY, least)
            .unwrap_or_else(|below| below)
    }

    /// The least variances that the covariance (d, d) of component `c` is clamped at (E52), and the triangle that follows. The
    /// triangle there is must be among those allowed, or be no better: or the step could lower the free energy. Variances below
    /// `rounding` (d) have no digits.
    pub(super) fn held(
        &self,
        c: usize,
        matrix: &[f64],
        rounding: &[f64],
        watch: Watch<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let mut next = self.floors(c);
        let variances = matrix.iter().step_by(self.dim() + 1).zip(rounding);
        for (least, (variance, rounding)) in next.iter_mut().zip(variances) {
            *least = least.max(LEAST_SHARE * variance).max(*rounding);
        }
        let found = linalg::whitening(matrix, &next, watch)?;
        // The sum of the eigenvalues of the precision, in these units, is at least the largest.
        if dot(&next, &self.precisions(c)) <= 1.0
            || fit_of(&found, matrix, self.dim()) >= fit_of(self.own(c), matrix, self.dim())
        {
            return Ok((next, found));
        }
        for (least, before) in next.iter_mut().zip(self.least_of(c)) {
            *least = least.min(*before);
        }
        let found = linalg::whitening(matrix, &next, watch)?;
        Ok((next, found))
    }

    /// The precisions (d) of the columns of component `c`, given all others; or the one of all.
    pub(super) fn precisions(&self, c: usize) -> Vec<f64> {
        if !self.covariance.has_pairs() {
            return self.own(c).iter().map(|v| 1.0 / v).collect();
        }
        let mut sums = vec![0.0; self.dim()];
        for row in self.own(c).chunks_exact(self.dim()) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
        }
        sums
    }

    /// One, where all components share it, or k.
    pub(super) fn number_of_covariances(&self) -> usize {
        if self.covariance.is_tied() {
            1
        } else {
            self.k()
        }
    }

    /// One variance for all, from a sum of squares and the mass that it is over, with the rows of the prior.
    pub(super) fn with_prior(&self, squared: f64, mass: f64) -> f64 {
        let (known, rows) = self.prior.of_all(self.number_of_covariances());
        (squared + known) / (mass + rows)
    }

    /// The logarithm of the determinant of the covariance of component `c` in `dim` coordinates.
    pub(super) fn log_det(&self, c: usize, dim: usize) -> f64 {
        let own = self.own(c);
        if self.covariance.has_pairs() {
            -2.0 * own.iter().step_by(dim + 1).map(|x| x.ln()).sum::<f64>()
        } else {
            (dim / own.len()) as f64 * own.iter().map(|v| v.ln()).sum::<f64>()
        }
    }

    /// Floors for parameters that were given.
    pub(super) fn set_least(&mut self, least: f64) {
        let narrowest = (0..self.k()).map(|c| {
            if self.covariance.has_pairs() {
                1.0 / self.precisions(c).iter().sum::<f64>()
            } else {
                self.own(c).iter().copied().fold(f64::INFINITY, f64::min)
            }
        });
        self.least_variance = narrowest.fold(least, f64::min).max(f64::MIN_POSITIVE);
        self.least_variances.fill(self.least_variance);
    }

    /// Whether a floor holds component `c`: all, where they share a covariance.
    pub(super) fn is_held(&self, c: usize) -> bool {
        /// Clamped variances are at their floor up to rounding.
        const NEAR: f64 = 1.0 + 1e-6;
        if !self.covariance.has_pairs() {
            let whole = unwatched(self.variances_of(c, None));
            let mut own = self.own(c).iter().zip(self.floors(c)).zip(whole);
            return own.any(|((v, floor), whole)| *v <= NEAR * floor.max(LEAST_SHARE * whole));
        }
        if dot(self.least_of(c), &self.precisions(c)) * NEAR < 1.0 {
            return false;
        }
        // The largest eigenvalue of the precision in units of the floors is 1. One variance in all directions is above them.
        let dim = self.dim();
        let floors = self.floors(c).into_iter();
        let variances = unwatched(self.variances_of(c, None));
        let floors = floors.zip(variances).zip(self.least_of(c));
        let floors = floors.map(|((floor, v), least)| least.min(floor.max(LEAST_SHARE * v)));
        let least: Vec<f64> = floors.collect();
        let scaled = self.own(c).iter().enumerate();
        let scaled: Vec<f64> = scaled.map(|(i, x)| x * least[i % dim].sqrt()).collect();
        let mut rest = unwatched(linalg::gram(&scaled, dim, None));
        rest.iter_mut().for_each(|x| *x *= -NEAR);
        rest.iter_mut().step_by(dim + 1).for_each(|x| *x += 1.0);
        let is_proper = unwatched(linalg::cholesky(&mut rest, dim, None));
        !is_proper
    }

    /// The mean (d) of the data that sums of all components are about (E52), if these have digits enough for the narrowest
    /// direction; else none.
    pub(super) fn shared_origin(&self) -> Vec<f64> {
        /// The part subtracted from these sums, in variances of that direction.
        const MOST: f64 = 1e8;
        // Before the first M-step it is not known how narrow that is.
        if self.spread == self.isotropic(self.unit) {
            return Vec::new();
        }
        let origin = self.origin();
        if self.spread_between(&origin) <= MOST {
            origin
        } else {
            Vec::new()
        }
    }

    /// How far the means are from a point (d), squared, in variances of the narrowest direction.
    pub(super) fn spread_between(&self, origin: &[f64]) -> f64 {
        let mut between = vec![0.0; self.dim()];
        let means = self.exact_means.chunks_exact(self.dim());
        for (mean, share) in means.zip(&self.proportions.values) {
            for ((sum, m), a) in between.iter_mut().zip(mean).zip(origin) {
                *sum += share * (m - a).powi(2);
            }
        }
        dot(&between, &self.precisions(0))
    }

    /// The mean of component `c` that its triangle is about.
    pub(super) fn exact_mean(&self, c: usize) -> &[f64] {
        &self.exact_means[c * self.dim()..][..self.dim()]
    }

    /// The variances or covariances, in the unit of the frame, squared.
    pub(super) fn covariances(&self, watch: Watch<'_>) -> Result<Vec<f64>> {
        let dim = self.dim();
        if !self.covariance.has_pairs() {
            return Ok(self.spread.clone());
        }
        let triangles = self.spread.chunks_exact(dim * dim);
        let all = triangles.map(|own| covariance_of(own, dim, watch));
        Ok(all
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The variances of the coordinates of component `c`: one, or (d).
    pub(super) fn variances_of(&self, c: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
        let own = self.own(c);
        Ok(if self.covariance.has_pairs() {
            covariance_of(own, self.dim(), watch)?.into_diag().to_vec()
        } else {
            let mut all = own.to_vec();
            for loadings in self.loadings_of(c) {
                let squares = all.iter_mut().zip(loadings);
                squares.for_each(|(v, w)| *v += w.to_f64() * w.to_f64());
            }
            all
        })
    }

    /// The loadings of component `c` on each of its factors, padded.
    pub(super) fn loadings_of(&self, c: usize) -> impl Iterator<Item = &[F]> {
        let wide = stride(self.dim());
        let q = self.covariance.factors();
        let all = self.loadings.chunks_exact(wide);
        all.skip(c * q).take(q)
    }

    /// Adds the loadings of a factor (d), in the unit of the frame.
    pub(super) fn push_loadings(&mut self, row: &[f64]) {
        self.loadings.extend(row.iter().map(|w| F::from_f64(*w)));
        let padding = stride(row.len()) - row.len();
        self.loadings
            .extend(std::iter::repeat_n(F::zero(), padding));
    }

    /// The mean variance, of components by their proportion.
    pub(super) fn mean_variance(&self, watch: Watch<'_>) -> Result<f64> {
        let mean = |c: usize| {
            let own = self.variances_of(c, watch)?;
            Ok(own.iter().sum::<f64>() / own.len() as f64)
        };
        if self.covariance.is_tied() {
            return mean(0);
        }
        let means = (0..self.k()).map(mean).collect::<Result<Vec<_>>>()?;
        let shares = self.proportions.values.iter().zip(means);
        Ok(shares.map(|(p, mean)| p * mean).sum())
    }

    /// The mean (d) of the data.
    pub(super) fn origin(&self) -> Vec<f64> {
        let mean = &self.frame.mean[..self.dim()];
        mean.iter().map(|m| m.to_f64()).collect()
    }

    /// An error of the section that holds what no model has.
    pub(in crate::families) fn check(&self) -> Result<(), FileFault> {
        let k = self.k();
        let dim = self.dim();
        let covariance = self.covariance;
        rule(dim == self.frame.dim(), "centres", "must be in the frame")?;
        let most = Frame::<F>::farthest_centre();
        let near = self.centres.coordinates().all(|z| z.abs() <= most);
        rule(near, "centres", "must be near the frame")?;
        if let Some(means) = &self.means {
            all_finite("means", means, k * self.frame.dim())?;
        }
        let variances = &self.spread;
        let unit = self.unit;
        let least = self.least_variance;
        all_finite("variances", variances, covariance.numbers(k, dim))?;
        let pairs = usize::from(covariance.has_pairs());
        let held = |x: f64| x.is_finite() && F::from_f64(x).is_finite();
        match covariance {
            Covariance::Factors(q) => {
                let fits = covariance.check_columns(dim).is_ok();
                let fits = fits && q.checked_mul(k * dim).is_some();
                rule(fits, "factors", "must be fewer than columns")?;
                let wide = stride(dim);
                let all = &self.loadings;
                let number = if all.is_empty() { 0 } else { q * k * wide };
                all_finite("loadings", all, number)?;
                let held = all.iter().enumerate().all(|(place, w)| {
                    let (c, j, w) = (place / (q * wide), place % wide, w.to_f64());
                    let is_padding = j >= dim && w == 0.0;
                    is_padding || j < dim && held(w * w / variances[c * dim + j])
                });
                rule(held, "loadings", "must not be far from the variances")?;
            }
            _ => rule(self.loadings.is_empty(), "loadings", "are those of factors")?,
        }
        all_finite("exact means", &self.exact_means, pairs * k * dim)?;
        let columns = covariance.columns(k, dim);
        all_positive("least variances", &self.least_variances, columns)?;
        let columns = if self.relative.is_empty() { 0 } else { dim };
        all_positive("relative variances", &self.relative, columns)?;
        all_positive("least variance", &[least], 1)?;
        all_positive("unit of costs", &[unit], 1)?;
        let proper = if covariance.has_pairs() {
            // Triangles, whose eigenvalues were clamped, up to rounding.
            variances.iter().enumerate().all(|(place, x)| {
                let i = place / dim % dim;
                let j = place % dim;
                match i.cmp(&j) {
                    Ordering::Less => *x == 0.0,
                    Ordering::Equal => *x > 0.0 && held(unit * x * x),
                    Ordering::Greater => held(unit * x * x),
                }
            })
        } else {
            variances.iter().enumerate().all(|(place, v)| {
                let is_held = *v >= self.least(place % dim);
                is_held && held(unit / v) && held(unit * (v / unit).ln())
            })
        };
        let of_unit = "must not be below their least value, nor far from the unit of costs";
        rule(proper, "variances", of_unit)?;
        self.proportions.check_stored(k)?;
        self.prior
            .check((!covariance.is_one_variance()).then_some(dim))?;
        let plain =
            !covariance.is_one_variance() || unit == variances[0] && self.proportions.free() == 0;
        let equal = "must be the unit of costs, and proportions equal";
        rule(plain, "variances", equal)
    }
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The covariance (d, d) of a whitening transform.
pub(super) fn covariance_of(triangle: &[f64], dim: usize, watch: Watch<'_>) -> Result<Array2<f64>> {
    let deviations = linalg::inverse_of_lower(triangle, dim, watch)?;
    let covariance = linalg::square(&deviations, dim, watch)?;
    Ok(Array2::from_shape_vec((dim, dim), covariance).expect("d x d numbers"))
}
