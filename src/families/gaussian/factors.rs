//! Factor analysers (E58): how their loadings start, their sums, and their update.

use super::covariance::Covariance;
use super::mixture::GaussianMixture;
use super::parameters::{LEAST_SHARE, Parameters};
use crate::base::cancel::{Cancel, Watch, check};
use crate::base::error::{Result, require, same_columns, same_length};
use crate::base::float::Float;
use crate::base::linalg;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::base::simd::vectorised;
use crate::base::sort;
use crate::costs::LowRank;
use crate::costs::low_rank::Factored;
use crate::costs::observed_factors::GroupSums;
use crate::costs::patterns::{Expects, Patterns, add_shared};
use crate::families::proportions::Mixing;
use crate::families::variances::resolved_beside;
use crate::kernels::sparse::Entries;
use crate::kernels::stride;
use crate::m_step::Moments;
use crate::m_step::sums::completed::{Member, groups, members};
use crate::model::block::Block;
use crate::rows::{Centres, Rows};
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayView3, Axis};

/// The variance along a factor that starts, and along one that vanished, as parts of the variance besides factors.
const STARTS: f64 = 1.0 / 16.0;
const VANISHED: f64 = 1e-12;

/// Rows whose products are added up together.
const ROWS: usize = 4;

impl<F: Float> Parameters<F> {
    /// Gives loadings to components of one variance in every direction: the same random ones to all, so that components still differ
    /// by their means alone. Loadings of 0 would stay 0.
    pub(super) fn start_factors(&mut self) {
        let dim = self.dim();
        let q = self.covariance.factors();
        let length = (STARTS * self.unit / dim as f64).sqrt();
        let mut rng = Rng::from_seed(0);
        let mut own = vec![F::zero(); q * stride(dim)];
        for row in own.chunks_exact_mut(stride(dim)) {
            row[..dim].fill_with(|| F::from_f64(length * rng.normal()));
        }
        self.loadings = own.repeat(self.k());
    }
}

impl<F: Float> GaussianMixture<F> {
    /// Factor analysers ([E58](crate::equations#e58)): means (k, d), loadings (k, d, q) of fewer factors than columns, the variance of
    /// each column besides them (k, d), and proportions (k).
    ///
    /// # Errors
    /// As [`from_parameters`](Self::from_parameters).
    pub fn from_factors(
        means: ArrayView2<'_, F>,
        loadings: ArrayView3<'_, f64>,
        noise: ArrayView2<'_, f64>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        let (own, dim, q) = loadings.dim();
        same_length("loadings", means.nrows(), own)?;
        same_columns("loadings", means.ncols(), dim)?;
        same_columns("noise", means.ncols(), noise.ncols())?;
        let kind = Covariance::Factors(q);
        kind.check_columns(dim)?;
        let whole = &noise + &loadings.mapv(|w| w * w).sum_axis(Axis(2));
        let diagonal = Covariance::Diagonal;
        // The frame is as wide as the components; variances besides factors may be no smaller than others.
        let frame = Self::from_parameters(diagonal, means, whole.view(), proportions)?
            .theta
            .frame;
        let mut model = Self::from_parameters(diagonal, means, noise, proportions)?;
        let given = std::mem::replace(&mut model.theta.frame, frame);
        let theta = &mut model.theta;
        let factor = |j: usize| theta.frame.enter_length(j, given.unit_of(j)).powi(2);
        for (place, v) in theta.spread.iter_mut().enumerate() {
            *v *= factor(place % dim);
        }
        theta.centres = Centres::enter(means, &theta.frame);
        theta.covariance = kind;
        for own in loadings.outer_iter() {
            for column in own.columns() {
                let row = column.iter().enumerate();
                let row = row.map(|(j, w)| theta.frame.enter_length(j, *w));
                theta.push_loadings(&row.collect::<Vec<_>>());
            }
        }
        let finite = theta.loadings.iter().all(|w| w.is_finite());
        require(finite, "loadings", "one of them", "must be finite")?;
        theta.unit = theta.mean_variance(None)?;
        theta.set_least(resolved_beside::<F>(theta.unit));
        model.renew(None)?;
        Ok(model)
    }

    /// The loadings of factor analysers (k, d, q), in the data's own unit: the covariance of component $c$ is $W_c W_c^T$ and the
    /// [`noise`](Self::noise) on the diagonal. Factors are turned so that they are independent given a row, the strongest first.
    /// There are none (k, d, 0) for other kinds.
    #[must_use]
    pub fn loadings(&self) -> Array3<f64> {
        let theta = &self.theta;
        let q = if theta.loadings.is_empty() {
            0
        } else {
            theta.covariance.factors()
        };
        let mut all = Array3::zeros((theta.k(), theta.dim(), q));
        for (c, mut own) in all.outer_iter_mut().enumerate() {
            for (mut column, row) in own.columns_mut().into_iter().zip(theta.loadings_of(c)) {
                for (j, (w, x)) in column.iter_mut().zip(row).enumerate() {
                    *w = x.to_f64() * theta.frame.unit_of(j);
                }
            }
        }
        all
    }

    /// The variance of each column besides factors (k, d), in the data's own unit, squared; without factors, all of it
    /// ([`variances`](crate::Mixture::variances)).
    #[must_use]
    pub fn noise(&self) -> Array2<f64> {
        let theta = &self.theta;
        if theta.loadings.is_empty() {
            return crate::model::Mixture::variances(self);
        }
        let leave = |(c, j)| theta.frame.leave_product(j, j, theta.own(c)[j]);
        Array2::from_shape_fn((theta.k(), theta.dim()), leave)
    }
}

/// Adds a block of rows, shared out by its responsibilities: masses, first moments, second moments of columns, and the products of
/// differences $u$ from the mean with the coordinates $b$ of their expected factors.
pub(super) fn accumulate<F: Float>(
    rows: &Rows<F>,
    block: &Block<F>,
    known: LowRank<'_, F>,
    sums: &mut Moments,
) {
    if let Some(entries) = rows.entries() {
        return accumulate_completed(rows, entries, block, known, sums);
    }
    let wide = stride(rows.dim);
    let (starts, members) = members(rows, block);
    let mut apart = vec![0.0; ROWS * wide];
    for (c, places) in sort::among(&starts, 0..members.len()) {
        let mean = known.centres.row(c);
        let map = known.factored.map(c);
        let members = &members[places];
        for some in members.chunks(ROWS) {
            for (u, (i, share)) in apart.chunks_exact_mut(wide).zip(some) {
                vectorised!({
                    for ((u, x), m) in u.iter_mut().zip(rows.row(*i)).zip(mean) {
                        *u = x.to_f64() - m.to_f64();
                    }
                });
                sums.mass[c] += share;
            }
            match some.len() {
                ROWS => add_rows::<F, ROWS>(some, &apart, map, c, sums),
                _ => (some.iter().zip(apart.chunks_exact(wide))).for_each(|(one, u)| {
                    add_rows::<F, 1>(&[*one], u, map, c, sums);
                }),
            }
        }
        // A ridge (E59) adds nothing to masses and first moments.
        let share = members.iter().map(|member| member.1).sum();
        let first = sums.first_mut(c).to_vec();
        for (j, ridge) in known.ridge.iter().enumerate() {
            let mut u = vec![0.0; wide];
            u[j] = ridge.sqrt();
            add_rows::<F, 1>(&[(0, share)], &u, map, c, sums);
        }
        sums.first_mut(c).copy_from_slice(&first);
    }
}

/// As above, rows that know some of their columns: they are completed, and what is missing adds its covariance given what is known (E55).
fn accumulate_completed<F: Float>(
    rows: &Rows<F>,
    entries: Entries<'_, F>,
    block: &Block<F>,
    known: LowRank<'_, F>,
    moments: &mut Moments,
) {
    let wide = stride(rows.dim);
    let patterns = Patterns::of(&entries, rows.dim);
    groups(rows, block, |ids, shares| {
        let group = known.group(ids);
        let mut sums = GroupSums::new(&group);
        add_shared(&known, &group, &patterns, entries, shares, &mut sums);
        for (l, &c) in ids.iter().enumerate() {
            let c = c as usize;
            moments.mass[c] += shares.iter().map(|shares| shares.0[l]).sum::<f64>();
            let first = moments.first_mut(c).iter_mut().zip(&sums.first);
            first.for_each(|(to, x)| *to += x.0[l]);
            let second = moments.second[c * wide..].iter_mut().zip(&sums.second);
            second.for_each(|(to, x)| *to += x.0[l]);
            let rows = moments.products_mut(c).chunks_exact_mut(wide);
            let q = rows.len();
            for (row, to) in rows.enumerate() {
                let column = sums.products[row..].iter().step_by(q);
                to.iter_mut().zip(column).for_each(|(to, x)| *to += x.0[l]);
            }
        }
    });
}

/// Adds `R` rows with their shares, given as differences from the mean of component `c`.
fn add_rows<F: Float, const R: usize>(
    members: &[Member],
    apart: &[f64],
    map: &[F],
    c: usize,
    sums: &mut Moments,
) {
    const LANES: usize = 4;
    let wide = apart.len() / R;
    let shares: [f64; R] = std::array::from_fn(|r| members[r].1);
    let apart: [&[f64]; R] = std::array::from_fn(|r| &apart[r * wide..][..wide]);
    let first = sums.first_mut(c);
    vectorised!(add_up(first, apart, shares));
    let second = &mut sums.second[c * wide..][..wide];
    vectorised!({
        for (u, share) in apart.iter().zip(shares) {
            for (sum, u) in second.iter_mut().zip(*u) {
                *sum += share * (u * u);
            }
        }
    });
    let products = sums.products_mut(c).chunks_exact_mut(wide);
    vectorised!({
        for (sums, row) in products.zip(map.chunks_exact(wide)) {
            let mut along = [[0.0; LANES]; R];
            for (j, b) in row.as_chunks::<LANES>().0.iter().enumerate() {
                for r in 0..R {
                    let u = &apart[r][LANES * j..][..LANES];
                    for l in 0..LANES {
                        along[r][l] += b[l].to_f64() * u[l];
                    }
                }
            }
            let mut factors = [0.0; R];
            for r in 0..R {
                let [a, b, c, d] = along[r];
                factors[r] = shares[r] * ((a + b) + (c + d));
            }
            add_up(sums, apart, factors);
        }
    });
}

/// Adds rows, times a factor each.
#[inline(always)]
fn add_up<const R: usize>(sums: &mut [f64], rows: [&[f64]; R], factors: [f64; R]) {
    for j in 0..sums.len() {
        for r in 0..R {
            sums[j] += factors[r] * rows[r][j];
        }
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
        let rest = &self.first - step;
        let across = self.map.dot(step);
        for ((mut row, along), across) in products.rows_mut().into_iter().zip(along).zip(across) {
            row.scaled_add(-along, step);
            row.scaled_add(-across, &rest);
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
    /// The variances besides factors, and the least ones that have digits (d).
    noise: Vec<f64>,
    least: Vec<f64>,
}

/// The M-step of a component with mass: its mean is that of its rows, and its factors may have any covariance, which new loadings
/// take over (E58). They are put into `loadings`, turned so that factors are independent given a row, the strongest first. The
/// variances besides factors are (d) means over rows, to which a `prior` adds.
fn updated<F: Float>(
    own: &Own,
    mean: &[F],
    loadings: &mut [F],
    prior: impl Iterator<Item = impl Fn(f64) -> f64>,
    watch: Watch<'_>,
) -> Result<Next<F>> {
    check(watch)?;
    let moved = mean.iter().zip(&own.first);
    let moved = moved.map(|(m, step)| F::from_f64(m.to_f64() + step));
    let moved: Vec<F> = moved.collect();
    // A mean is rounded to the type of the data, and all else is about that.
    let steps = moved.iter().zip(mean);
    let steps = steps.map(|(new, old)| new.to_f64() - old.to_f64());
    let (second, mut found) = own.about(&steps.collect());
    let q = found.nrows();
    let mut expected = (found.dot(&own.map.t()) + Array2::<f64>::eye(q))
        .into_raw_vec_and_offset()
        .0;
    let values = found.as_slice_mut().expect("rows one after the other");
    if linalg::cholesky(&mut expected, q, None)? {
        linalg::forward(&expected, q, values, mean.len())
    } else {
        values.fill(0.0)
    }
    let noise = second - (&found * &found).sum_axis(Axis(0));
    let noise = noise.iter().zip(prior).map(|(v, with)| with(*v));
    let noise: Vec<f64> = noise.collect();
    let least = own.second.iter().take(noise.len());
    let least = least.map(|s| (LEAST_SHARE * s).max(f64::MIN_POSITIVE));
    let least: Vec<f64> = least.collect();
    let held = noise.iter().zip(&least).map(|(v, least)| v.max(*least));
    let turned = turn(&found, &held.collect::<Vec<f64>>())?;
    let turned = turned.iter().map(|x| F::from_f64(*x));
    loadings.iter_mut().zip(turned).for_each(|(w, x)| *w = x);
    Ok(Next {
        mean: moved,
        noise,
        least,
    })
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

/// The M-step that keeps to one factor, by which it scales the covariances that components started with, all the same.
fn scale<F: Float>(sums: &Moments, model: &mut GaussianMixture<F>, shared: f64) {
    let explained = model.costs.factored().map_or(0.0, |factored| {
        let of = parallel::map(model.theta.k(), |c| {
            let own = Own::of(sums, sums.products[c].clone(), factored, c);
            let (_, products) = own.about(&own.first);
            sums.mass(c) * (&products * &own.map).sum()
        });
        of.iter().sum::<f64>() / (sums.mass.iter().sum::<f64>() * model.theta.dim() as f64)
    });
    sums.move_centres(model.move_centres(), |_, _, _| ());
    let theta = &mut model.theta;
    let before = theta.spread[0];
    let mut loadings = std::mem::take(&mut theta.loadings);
    let entries = sums.mass.iter().sum::<f64>() * theta.dim() as f64;
    let variance = theta.with_prior((shared - explained * before) * entries, entries);
    let variance = variance.max(f64::MIN_POSITIVE);
    let floor = theta
        .floor_below(variance)
        .min(before.max(theta.least_variance));
    theta.set_all(variance.max(floor));
    let factor = (theta.unit / before).sqrt();
    let scaled = loadings.iter_mut();
    scaled.for_each(|w| *w = F::from_f64(w.to_f64() * factor));
    theta.loadings = loadings;
}

/// The M-step.
pub(super) fn update<F: Float>(
    mut sums: Moments,
    model: &mut GaussianMixture<F>,
    restricted: bool,
    mixing: Mixing,
    cancel: Option<&Cancel>,
) -> Result<()> {
    let k = model.theta.k();
    let dim = model.theta.dim();
    // The mean variance of a column about the new means: of far seeds what is left is rounding.
    let about = |c: usize| {
        let mass = sums.mass(c).max(f64::MIN_POSITIVE);
        let own = sums.second()[c * stride(dim)..][..dim].iter();
        let left = own
            .zip(sums.first(c))
            .map(|(s, f)| (s - f * (f / mass)).max(8.0 * f64::EPSILON * s));
        left.sum::<f64>()
    };
    let shared = (0..k).map(about).sum::<f64>() / (sums.mass.iter().sum::<f64>() * dim as f64);
    let Some(factored) = model.costs.factored().filter(|_| !restricted) else {
        scale(&sums, model, shared);
        drop(sums);
        return model.renew(cancel);
    };
    if mixing == Mixing::Learned {
        model.theta.proportions = model.theta.prior.proportions_of(&sums.mass);
    }
    // Products may take most of the memory: each is given back once it is used.
    let mut products = std::mem::take(&mut sums.products);
    let mut loadings = std::mem::take(&mut model.theta.loadings);
    let size = loadings.len() / k;
    let theta = &model.theta;
    let parts = products
        .iter_mut()
        .map(std::mem::take)
        .zip(loadings.chunks_exact_mut(size));
    let next = parallel::map_parts(parts.collect(), |c, (products, loadings)| {
        if sums.mass(c) <= 0.0 {
            return Ok(None);
        }
        let own = Own::of(&sums, products, factored, c);
        let mass = sums.mass(c);
        let prior = (0..dim).map(|j| {
            let (known, rows) = theta.prior.of_column(j);
            move |variance: f64| (mass * variance + known) / (mass + rows)
        });
        updated(&own, theta.centres.row(c), loadings, prior, cancel).map(Some)
    });
    let next = parallel::all(next)?;
    model.move_centres().update(|c, row| {
        if let Some(next) = &next[c] {
            row.copy_from_slice(&next.mean[..row.len()]);
        }
    });
    let theta = &mut model.theta;
    let mut spread = std::mem::take(&mut theta.spread);
    for (c, own) in spread.chunks_exact_mut(dim).enumerate() {
        if let Some(next) = &next[c] {
            // The parameters there are must be among those allowed.
            let floors = theta.floors(c).into_iter().zip(&next.least);
            for ((v, next), (floor, least)) in own.iter_mut().zip(&next.noise).zip(floors) {
                *v = next.max(floor.max(*least).min(*v));
            }
        }
    }
    let narrowest = spread.iter().copied().fold(f64::INFINITY, f64::min);
    (theta.spread, theta.loadings, theta.unit) = (spread, loadings, shared.max(narrowest));
    drop(sums);
    model.renew(cancel)
}
