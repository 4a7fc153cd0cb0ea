//! Factor analysers: $W_c W_c^T + \operatorname{diag}(\psi_{c1}, \dots, \psi_{cD})$ (E58).

use super::common::Common;
use super::costs::{Costs, Form};
use super::diagonal::Diagonal;
use super::floors::LEAST_SHARE;
use super::kind::{Kind, Scales, Step, is_number};
use crate::base::cancel::{Watch, check};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::{linalg, parallel, sort};
use crate::costs::Cost;
use crate::costs::low_rank::Factored;
use crate::io::{all_finite, rule};
use crate::kernels::stride;
use crate::m_step::sums::accumulate::About;
use crate::m_step::sums::moments::{Moments, OfKind};
use crate::m_step::sums::products::Products;
use ndarray::{Array1, Array2, Axis};

/// The variance along a factor that starts, and along one that vanished, as parts of the variance besides factors.
const STARTS: f64 = 1.0 / 16.0;
const VANISHED: f64 = 1e-12;

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(in crate::families) struct Factors<F> {
    /// How many there are.
    pub(super) factors: usize,
    /// The variances of the columns besides factors.
    pub(super) noise: Diagonal,
    /// The loadings of factors (k, q, d), padded, in the unit of the frame: none before the first variance is known.
    pub(super) loadings: Vec<F>,
}

impl<F: Float> Factors<F> {
    /// Adds the loadings of a factor (d), in the unit of the frame.
    pub(super) fn push(&mut self, row: impl Iterator<Item = f64>) {
        let start = self.loadings.len();
        self.loadings.extend(row.map(F::from_f64));
        let end = start + stride(self.noise.columns);
        self.loadings.resize(end, F::zero());
    }
}

impl<F: Float> Kind<F> for Factors<F> {
    fn numbers(&self) -> &[f64] {
        &self.noise.variances
    }

    fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.noise.variances
    }

    fn size(&self) -> usize {
        self.noise.columns
    }

    fn set_all(&mut self, variances: &[f64]) {
        Kind::<F>::set_all(&mut self.noise, variances);
        self.loadings = Vec::new();
    }

    fn loadings(&self) -> &[F] {
        &self.loadings
    }

    /// Gives loadings to components without any: the same random ones to all, in units of the deviations of columns, so that components
    /// still differ by their means alone. Loadings of 0 would stay 0.
    fn start(&mut self, common: &Common<F>) {
        if !self.loadings.is_empty() {
            return;
        }
        let dim = common.dim();
        let length = |variance: f64| (STARTS * variance / dim as f64).sqrt();
        let mut rng = Rng::from_seed(0);
        let mut loadings = vec![F::zero(); self.factors * stride(dim)];
        for row in loadings.chunks_exact_mut(stride(dim)) {
            for (w, variance) in row.iter_mut().zip(&self.noise.variances[..dim]) {
                *w = F::from_f64(length(*variance) * rng.normal());
            }
        }
        self.loadings = loadings.repeat(common.k());
    }

    fn carry_over(
        &mut self,
        from: &dyn Kind<F>,
        common: &Common<F>,
        units: &Scales<'_>,
    ) -> Result<()> {
        self.noise.carry_over(from, common, units)?;
        let dim = common.dim();
        let loadings = from.loadings().iter().enumerate();
        let scaled = loadings.map(|(place, w)| match place % stride(dim) {
            j if j < dim => F::from_f64(w.to_f64() * units.ratios[j]),
            _ => F::zero(),
        });
        self.loadings = scaled.collect();
        Ok(())
    }

    fn variances(&self, c: usize, _watch: Watch<'_>) -> Result<Vec<f64>> {
        let wide = stride(self.noise.columns);
        let mut variances = self.numbers_of(c).to_vec();
        for loadings in self
            .loadings
            .chunks_exact(wide)
            .skip(c * self.factors)
            .take(self.factors)
        {
            let squares = variances.iter_mut().zip(loadings);
            squares.for_each(|(v, w)| *v += w.to_f64() * w.to_f64());
        }
        Ok(variances)
    }

    /// Factors can be turned; many of them are any covariance.
    fn free(&self) -> usize {
        let q = self.factors;
        let dim = self.noise.columns;
        let of_factors = dim + dim * q - q * q.saturating_sub(1) / 2;
        self.number() * of_factors.min(dim * (dim + 1) / 2)
    }

    fn costs(&self, common: &Common<F>, watch: Watch<'_>) -> Result<Costs<F>> {
        let unit = common.unit;
        let noise = &self.noise.variances;
        let ridge = &common.prior.ridge;
        let penalties = common.penalties();
        let is_round = || noise.iter().all(|v| *v == unit) && penalties.iter().all(|p| *p == 0.0);
        let form = if !self.loadings.is_empty() {
            let penalty = |c: usize| penalties[c];
            let dim = common.dim();
            let loadings = &self.loadings;
            Form::Factors(Factored::new(
                unit, loadings, noise, ridge, dim, penalty, watch,
            )?)
        } else if ridge.is_empty() && is_round() {
            Form::round(common)
        } else {
            self.noise.form(common, &penalties)
        };
        Ok(Costs::new(Vec::new(), penalties, form))
    }

    fn further_sums(&self, k: usize) -> Option<OfKind> {
        Some(OfKind::Products(Products::new(k, self.factors)))
    }

    fn about<'m>(&'m self, common: &'m Common<F>, costs: &'m Costs<F>) -> About<'m, F> {
        match self.cost(common, costs) {
            Cost::LowRank(low_rank) => About::Factors(low_rank),
            _ => About::Centres(&common.centres),
        }
    }

    fn update(&mut self, common: &mut Common<F>, step: Step<'_, F>) -> Result<()> {
        let Some(factored) = step.costs.factored() else {
            return self.noise.update(common, step);
        };
        let mut sums = step.sums;
        let k = common.k();
        let dim = common.dim();
        // The mean variance of a column about the new means: of far seeds what is left is rounding.
        let about = |c: usize| {
            let mass = sums.mass(c).max(f64::MIN_POSITIVE);
            let squares = sums.second()[c * stride(dim)..][..dim].iter();
            let left = squares
                .zip(sums.first(c))
                .map(|(s, f)| (s - f * (f / mass)).max(8.0 * f64::EPSILON * s));
            left.sum::<f64>()
        };
        let shared = (0..k).map(about).sum::<f64>() / (sums.mass.iter().sum::<f64>() * dim as f64);
        if step.restricted {
            self.scale(common, factored, sums, shared);
            return Ok(());
        }
        // Products may take most of the memory: each is given back once it is used.
        let mut products = sums.take_products();
        let size = self.loadings.len() / k;
        let parts = products
            .iter_mut()
            .map(std::mem::take)
            .zip(self.loadings.chunks_exact_mut(size));
        let next = parallel::map_parts(parts.collect(), |c, (products, loadings)| {
            if sums.mass(c) <= 0.0 {
                return Ok(None);
            }
            let statistics = Own::of(&sums, products, factored, c);
            let mass = sums.mass(c);
            let prior = (0..dim).map(|j| {
                let (known, rows) = common.prior.of_column(j);
                move |variance: f64| (mass * variance + known) / (mass + rows)
            });
            let before = &self.noise.variances[c * dim..][..dim];
            let mean = common.centres.row(c);
            updated(&statistics, mean, loadings, before, prior, step.cancel).map(Some)
        });
        let next = parallel::all(next)?;
        common.centres.update(|c, row| {
            if let Some(next) = &next[c] {
                row.copy_from_slice(&next.mean[..row.len()]);
            }
        });
        for (c, next) in next.iter().enumerate() {
            if let Some(next) = next {
                let floors = self.floors(common, c);
                let variances = self.noise.variances[c * dim..][..dim].iter_mut();
                for ((v, floor), next) in variances.zip(floors).zip(&next.noise) {
                    *v = next.clamped(floor, *v);
                }
            }
        }
        common.set_unit(shared, &self.noise.variances);
        Ok(())
    }

    fn check(&self, common: &Common<F>) -> std::result::Result<(), FileFault> {
        let k = common.k();
        let dim = common.dim();
        let q = self.factors;
        let fits = (1..dim).contains(&q) && q.checked_mul(k * dim).is_some();
        rule(fits, "factors", "must be fewer than columns")?;
        let wide = stride(dim);
        let loadings = &self.loadings;
        let number = if loadings.is_empty() { 0 } else { q * k * wide };
        all_finite("loadings", loadings, number)?;
        let sound = loadings.iter().enumerate().all(|(place, w)| {
            let c = place / (q * wide);
            let j = place % wide;
            let w = w.to_f64();
            let is_padding = j >= dim && w == 0.0;
            is_padding || j < dim && is_number::<F>(w * w / self.noise.variances[c * dim + j])
        });
        rule(sound, "loadings", "must not be far from the variances")?;
        Kind::check(&self.noise, common)
    }
}

/// The means over its rows that a component has, in coordinates $b = B u$ of its factors in which their posterior covariance is $I$.
struct Own {
    /// Means of differences $u$ from the mean, and of their squares (d), padded.
    first: Array1<f64>,
    second: Array1<f64>,
    /// Means of $b u^T$, and $B$ (q, d), padded. Means of $b$ and of $b b^T$ follow.
    products: Array2<f64>,
    map: Array2<f64>,
}

impl Own {
    fn of<F: Float>(sums: &Moments, products: Vec<f64>, factored: &Factored<F>, c: usize) -> Self {
        let wide = stride(sums.dim);
        let scale = factored.unit().sqrt();
        let mass = sums.mass(c).max(f64::MIN_POSITIVE);
        let map = factored.map(c).iter().map(|b| b.to_f64() / scale);
        let map = by_factor(map.collect(), wide);
        let products = if products.is_empty() {
            vec![0.0; map.len()]
        } else {
            products.into_iter().map(|x| x / mass / scale).collect()
        };
        let mean = |sums: &[f64]| sums.iter().map(|x| x / mass).collect::<Array1<f64>>();
        Self {
            first: mean(sums.first(c)),
            second: mean(&sums.second()[c * wide..][..wide]),
            products: by_factor(products, wide),
            map,
        }
    }

    /// The means of $u^2$ (d) and of $b u^T$ (q, d) about a mean that is `step` (d) further.
    fn about(&self, step: &Array1<f64>) -> (Array1<f64>, Array2<f64>) {
        let mut products = self.products.clone();
        let along = self.map.dot(&self.first).into_iter();
        let shifted = &self.first - step;
        let across = self.map.dot(step);
        for ((mut row, along), across) in products.rows_mut().into_iter().zip(along).zip(across) {
            row.scaled_add(-along, step);
            row.scaled_add(-across, &shifted);
        }
        let second = &self.second + &(step * &(step - 2.0 * &self.first));
        (second, products)
    }
}

/// Rows of `wide` numbers.
fn by_factor(values: Vec<f64>, wide: usize) -> Array2<f64> {
    Array2::from_shape_vec((values.len() / wide, wide), values).expect("whole rows")
}

/// A component after its M-step, not clamped yet.
struct Next<F> {
    /// (d), padded.
    mean: Vec<F>,
    /// (d).
    noise: Vec<Noise>,
}

/// The variance of a column besides factors, by the M-step.
struct Noise {
    /// The mean square of what factors leave: with the new mean and loadings, and with those before.
    left: f64,
    left_before: f64,
    /// The least value that has digits.
    least: f64,
}

impl Noise {
    /// At least the floor, and what has digits. The variance `before` must be among those allowed, or be no better: or the step
    /// could lower the free energy.
    fn clamped(&self, floor: f64, before: f64) -> f64 {
        let cost = |variance: f64, left: f64| variance.ln() + left / variance;
        let floor = floor.max(self.least);
        let raised = self.left.max(floor);
        if floor <= before || cost(raised, self.left) <= cost(before, self.left_before) {
            raised
        } else {
            self.left.max(before)
        }
    }
}

/// The M-step of a component with mass: its mean is that of its rows, and its factors may have any covariance, which new loadings
/// take over (E58). They are put into `loadings`, turned so that factors are independent given a row, the strongest first. The
/// variances besides factors are (d) means over rows, to which a `prior` adds; those `before` belong to the loadings there are.
fn updated<F: Float, P: Fn(f64) -> f64>(
    own: &Own,
    mean: &[F],
    loadings: &mut [F],
    before: &[f64],
    prior: impl Iterator<Item = P>,
    watch: Watch<'_>,
) -> Result<Next<F>> {
    check(watch)?;
    let moved = mean.iter().zip(&own.first);
    let moved = moved.map(|(m, step)| F::from_f64(m.to_f64() + step));
    let moved: Vec<F> = moved.collect();
    // A mean is rounded to the type of the data, and all else is about that.
    let steps = moved.iter().zip(mean);
    let steps = steps.map(|(new, old)| new.to_f64() - old.to_f64());
    let (second, mut new_loadings) = own.about(&steps.collect());
    let q = new_loadings.nrows();
    // The loadings before, in the coordinates of `map`.
    let mut explained = own.map.clone();
    for mut row in explained.rows_mut() {
        row.iter_mut().zip(before).for_each(|(x, v)| *x *= v);
    }
    let squares = own.products.dot(&own.map.t()) + Array2::<f64>::eye(q);
    let crossed = squares.dot(&explained) - 2.0 * &own.products;
    let left_before = &own.second + (&explained * &crossed).sum_axis(Axis(0));
    let mut expected = (new_loadings.dot(&own.map.t()) + Array2::<f64>::eye(q))
        .into_raw_vec_and_offset()
        .0;
    let values = new_loadings
        .as_slice_mut()
        .expect("rows one after the other");
    if linalg::cholesky(&mut expected, q, None)? {
        linalg::forward(&expected, q, values, mean.len())
    } else {
        values.fill(0.0)
    }
    let left = second - (&new_loadings * &new_loadings).sum_axis(Axis(0));
    let of_column = |(j, with): (usize, P)| Noise {
        left: with(left[j]),
        left_before: with(left_before[j]),
        least: (LEAST_SHARE * own.second[j]).max(f64::MIN_POSITIVE),
    };
    let noise: Vec<Noise> = prior.enumerate().map(of_column).collect();
    let variances = noise.iter().map(|noise| noise.left.max(noise.least));
    let turned = turn(&new_loadings, &variances.collect::<Vec<f64>>())?;
    let turned = turned.iter().map(|x| F::from_f64(*x));
    loadings.iter_mut().zip(turned).for_each(|(w, x)| *w = x);
    Ok(Next { mean: moved, noise })
}

/// Turns loadings (q, d) so that $W^T \Psi^{-1} W$ is diagonal. Rows of few distinct values leave fewer factors than there are: for
/// the others, which would stay 0, it starts very small ones.
fn turn(loadings: &Array2<f64>, noise: &[f64]) -> Result<Array2<f64>> {
    let q = loadings.nrows();
    let mut scaled = loadings.clone();
    for mut row in scaled.rows_mut() {
        row.iter_mut().zip(noise).for_each(|(x, v)| *x /= v.sqrt());
    }
    let gram = scaled.dot(&scaled.t()).into_raw_vec_and_offset().0;
    let (values, vectors) = linalg::eigen(&gram, q, None)?;
    let mut order: Vec<usize> = (0..q).collect();
    sort::by(&mut order, &|a, b| values[b].total_cmp(&values[a]));
    let axes = by_factor(vectors, q).select(Axis(0), &order);
    let mut turned = axes.dot(loadings);
    for (place, mut row) in turned.rows_mut().into_iter().enumerate() {
        let value = values[order[place]];
        if value.is_nan() || value < VANISHED {
            let length = (VANISHED / noise.len() as f64).sqrt();
            let entries = row.iter_mut().zip(noise);
            let mut rng = Rng::from_seed(place as u64);
            entries.for_each(|(x, v)| *x = length * v.sqrt() * rng.normal());
        }
    }
    Ok(turned)
}

impl<F: Float> Factors<F> {
    /// The M-step that keeps to one factor, by which it scales the covariances that components started with, all the same.
    fn scale(
        &mut self,
        common: &mut Common<F>,
        factored: &Factored<F>,
        mut sums: Moments,
        shared: f64,
    ) {
        let products = sums.take_products();
        let entries = sums.mass.iter().sum::<f64>() * common.dim() as f64;
        let terms = parallel::map(common.k(), |c| {
            let statistics = Own::of(&sums, products[c].clone(), factored, c);
            let (_, products) = statistics.about(&statistics.first);
            sums.mass(c) * (&products * &statistics.map).sum()
        });
        let explained = terms.iter().sum::<f64>() / entries;
        sums.move_centres(&mut common.centres, |_, _, _| ());
        let before = self.noise.variances[0];
        let mut loadings = std::mem::take(&mut self.loadings);
        let variance = self.one_variance(common, (shared - explained * before) * entries, entries);
        let variance = variance.max(f64::MIN_POSITIVE);
        self.update_one(common, variance);
        let factor = (common.unit / before).sqrt();
        let scaled = loadings.iter_mut();
        scaled.for_each(|w| *w = F::from_f64(w.to_f64() * factor));
        self.loadings = loadings;
    }
}
