//! Squared Mahalanobis distances under covariances of a few factors and a variance for each column.

use super::patterns::Expects;
use super::scaled::penalised;
use crate::base::cancel::{Watch, check, unwatched};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::linalg;
use crate::base::parallel;
use crate::base::simd::{SimdFloat, kernel, vectorised};
use crate::kernels::stride;
use crate::rows::{Centres, Rows};
use pulp::Simd;
use std::fmt;

/// A sum that keeps less than this part of its terms has lost too many digits: it is computed in another way.
const LEAST_KEPT: f64 = 1.0 / 16.0;

/// The parts of costs that follow from the covariances $\Sigma_c = W_c W_c^T + \Psi_c$ (E58), in units of a variance $u$. With $L_c L_c^T = I + W_c^T
/// \Psi_c^{-1} W_c$ there is no matrix of all pairs of columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Factored<F> {
    unit: f64,
    /// $u / \psi_{cj}$ (k, d), padded with zeros.
    precisions: Vec<F>,
    /// $\sqrt u L_c^{-1} W_c^T \Psi_c^{-1}$ (k, q, d), padded with zeros.
    maps: Vec<F>,
    /// $L_c$ (k, q, q).
    lower: Vec<f64>,
    /// Addends of determinants, a ridge and proportions (k).
    added: Vec<f64>,
}

impl<F: Float> Factored<F> {
    /// For loadings (k, q, d), padded, variances (k, d), a ridge (d) or none, and what is added to the costs of each component.
    pub(crate) fn new(
        unit: f64,
        loadings: &[F],
        noise: &[f64],
        ridge: &[f64],
        dim: usize,
        penalty: impl Fn(usize) -> f64 + Sync,
        watch: Watch<'_>,
    ) -> Result<Self> {
        let k = noise.len() / dim;
        let wide = stride(dim);
        let q = loadings.len() / k / wide;
        let mut maps = vec![F::zero(); loadings.len()];
        let parts = parallel::map_chunks(&mut maps, q * wide, |c, range, map| {
            check(watch)?;
            let component = &loadings[range];
            let noise = &noise[c * dim..][..dim];
            let mut rows: Vec<f64> = component.iter().map(|w| w.to_f64()).collect();
            let (lower, volume) = whitened(&mut rows, noise, wide, unit);
            for (to, row) in map.chunks_exact_mut(wide).zip(rows.chunks_exact(wide)) {
                for ((to, x), v) in to.iter_mut().zip(row).zip(noise) {
                    *to = F::from_f64(x / v.sqrt() * unit.sqrt());
                }
            }
            let of_ridge = ridge.iter().zip(noise).enumerate().map(|(j, (r, v))| {
                let along = rows[j..].iter().step_by(wide).map(|x| x * x);
                r / v * (1.0 - along.sum::<f64>())
            });
            Ok((lower, unit * (volume + of_ridge.sum::<f64>()) + penalty(c)))
        });
        let mut precisions = vec![F::zero(); k * wide];
        for (to, noise) in precisions
            .chunks_exact_mut(wide)
            .zip(noise.chunks_exact(dim))
        {
            to.iter_mut()
                .zip(noise)
                .for_each(|(to, v)| *to = F::from_f64(unit / v));
        }
        let parts = parallel::all(parts)?.into_iter();
        let (lower, added) = parts.unzip::<_, _, Vec<_>, Vec<_>>();
        let lower = lower.concat();
        Ok(Self {
            unit,
            precisions,
            maps,
            lower,
            added,
        })
    }

    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// $L_c$ (q, q).
    pub(crate) fn lower(&self, c: usize) -> &[f64] {
        let size = self.lower.len() / self.added.len();
        &self.lower[c * size..][..size]
    }

    /// $\sqrt u L_c^{-1} W_c^T \Psi_c^{-1}$ (q, d), padded: with $\sqrt u$ it takes a difference from the mean to its expected factors,
    /// in coordinates in which their posterior covariance is $I$.
    pub(crate) fn map(&self, c: usize) -> &[F] {
        let size = self.maps.len() / self.added.len();
        &self.maps[c * size..][..size]
    }
}

/// Turns the rows of $W^T$ (q, d) into those of $L^{-1} W^T \Psi^{-1/2}$, with $L L^T = I + W^T \Psi^{-1} W$. Returns $L$ (q, q), and the
/// logarithm of the determinant of the covariance in this unit.
fn whitened(rows: &mut [f64], noise: &[f64], wide: usize, unit: f64) -> (Vec<f64>, f64) {
    let q = rows.len() / wide;
    for row in rows.chunks_exact_mut(wide) {
        row.iter_mut().zip(noise).for_each(|(x, v)| *x /= v.sqrt());
    }
    let mut lower = linalg::gram_of_rows(rows, wide);
    lower.iter_mut().step_by(q + 1).for_each(|x| *x += 1.0);
    unwatched(linalg::cholesky(&mut lower, q, None));
    linalg::forward(&lower, q, rows, wide);
    let volume = (0..q).map(|l| 2.0 * lower[l * (q + 1)].ln()).sum::<f64>()
        + noise.iter().map(|v| (v / unit).ln()).sum::<f64>();
    (lower, volume)
}

/// The costs $\lVert z - m_c \rVert^2_{\Sigma_c^{-1}} + a_c$ of low-rank covariances (E58).
#[derive(Clone, Copy)]
pub struct LowRank<'m, F: Float> {
    pub(crate) factored: &'m Factored<F>,
    pub(crate) centres: &'m Centres<F>,
    /// (k, q, d), padded.
    pub(crate) loadings: &'m [F],
    /// Variances besides factors (k, d).
    pub(crate) noise: &'m [f64],
    pub(crate) ridge: &'m [f64],
    /// Added by proportions (k).
    pub(crate) penalties: &'m [f64],
}

impl<F: Float> fmt::Debug for LowRank<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Low-rank costs of {} components", self.components())
    }
}

/// Scratch: a difference from a mean, and its factors.
#[derive(Default)]
struct Apart<F> {
    apart: Vec<F>,
    along: Vec<F>,
}

impl<F: Float> LowRank<'_, F> {
    pub(super) fn components(&self) -> usize {
        self.factored.added.len()
    }

    pub(super) fn dim(&self) -> usize {
        self.centres.dim()
    }

    pub(super) fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        if let Some(entries) = rows.entries() {
            return Expects::all(self, entries, out);
        }
        let k = self.components();
        let mut scratch = Apart::default();
        out.clear();
        out.resize(rows.len() * k, F::zero());
        // Each component is read once for all rows.
        for c in 0..k {
            let costs = out[c..].iter_mut().step_by(k);
            (0..rows.len())
                .zip(costs)
                .for_each(|(i, cost)| *cost = self.one(rows.row(i), c, &mut scratch));
        }
    }

    pub(super) fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        if let Some(entries) = rows.entries() {
            return Expects::some(self, entries.row(i), ids, out);
        }
        let mut scratch = Apart::default();
        out.clear();
        out.extend(
            ids.iter()
                .map(|&c| self.one(rows.row(i), c as usize, &mut scratch)),
        );
    }

    /// $\lVert u \rVert^2_{\Psi^{-1}} - \lVert L^{-1} W^T \Psi^{-1} u \rVert^2$ for the difference $u$ from the mean. Where little is left of
    /// the first term, it is the sum of what the expected factors $z$ leave, $\lVert u - W z \rVert^2_{\Psi^{-1}} + \lVert z \rVert^2$.
    fn one(&self, row: &[F], c: usize, Apart { apart, along }: &mut Apart<F>) -> F {
        let factored = self.factored;
        let wide = row.len();
        let precisions = &factored.precisions[c * wide..][..wide];
        let map = factored.map(c);
        apart.resize(wide, F::zero());
        along.resize(map.len() / wide, F::zero());
        let squared = project(row, self.centres.row(c), precisions, map, apart, along).to_f64();
        let explained: f64 = along.iter().map(|b| b.to_f64() * b.to_f64()).sum();
        let mut form = squared - explained;
        if form.is_nan() || form < LEAST_KEPT * squared {
            let loadings = &self.loadings[c * map.len()..][..map.len()];
            form = self.left(precisions, loadings, factored.lower(c), apart, along);
        }
        penalised(form, factored.added[c])
    }

    #[inline(never)]
    fn left(
        &self,
        precisions: &[F],
        loadings: &[F],
        lower: &[f64],
        apart: &[F],
        along: &[F],
    ) -> f64 {
        let q = along.len();
        let unit = self.factored.unit;
        let mut z: Vec<f64> = along.iter().map(|b| b.to_f64() / unit.sqrt()).collect();
        linalg::backward(lower, q, &mut z, 1);
        let mut residuals: Vec<f64> = apart.iter().map(|u| u.to_f64()).collect();
        let mut sums = [0.0; 4];
        vectorised!({
            for (row, z) in loadings.chunks_exact(apart.len()).zip(&z) {
                for (residual, w) in residuals.iter_mut().zip(row) {
                    *residual -= w.to_f64() * z;
                }
            }
            for (chunk, p) in residuals
                .as_chunks::<4>()
                .0
                .iter()
                .zip(precisions.as_chunks::<4>().0)
            {
                for l in 0..4 {
                    sums[l] += chunk[l] * chunk[l] * p[l].to_f64();
                }
            }
        });
        sums.iter().sum::<f64>() + unit * z.iter().map(|z| z * z).sum::<f64>()
    }
}

kernel! {
    /// The difference of a padded row from a mean into `apart`, its products with the rows of `map` into `along`, and its squares times
    /// `precisions`, added up.
    fn project[F: Float](
        row: &[F],
        mean: &[F],
        precisions: &[F],
        map: &[F],
        apart: &mut [F],
        along: &mut [F],
    ) -> F = projected
}

#[inline(always)]
fn projected<F: SimdFloat + Float, S: Simd>(
    simd: S,
    row: &[F],
    mean: &[F],
    precisions: &[F],
    map: &[F],
    apart: &mut [F],
    along: &mut [F],
) -> F {
    let wide = row.len();
    let (x, x_rest) = F::vectors::<S>(row);
    let (m, m_rest) = F::vectors::<S>(mean);
    let (p, p_rest) = F::vectors::<S>(precisions);
    let mut sums = F::splat(simd, F::zero());
    let mut few = F::zero();
    {
        let (u, u_rest) = F::vectors_mut::<S>(apart);
        for (((u, &x), &m), &p) in u.iter_mut().zip(x).zip(m).zip(p) {
            *u = F::minus(simd, x, m);
            sums = F::times_plus(simd, F::times(simd, *u, *u), p, sums);
        }
        // Rows shorter than a vector.
        for (((u, &x), &m), &p) in u_rest.iter_mut().zip(x_rest).zip(m_rest).zip(p_rest) {
            *u = x - m;
            few += *u * *u * p;
        }
    }
    let (u, u_rest) = F::vectors::<S>(apart);
    let (fours, rest) = along.as_chunks_mut::<4>();
    let mut maps = map.chunks_exact(4 * wide);
    for (along, map) in fours.iter_mut().zip(&mut maps) {
        *along = products::<F, S, 4>(simd, u, u_rest, map, wide);
    }
    for (along, map) in rest.iter_mut().zip(maps.remainder().chunks_exact(wide)) {
        [*along] = products::<F, S, 1>(simd, u, u_rest, map, wide);
    }
    F::sum(simd, sums) + few
}

/// The products of a vector with `Q` rows.
#[inline(always)]
fn products<F: SimdFloat + Float, S: Simd, const Q: usize>(
    simd: S,
    u: &[F::Vector<S>],
    u_rest: &[F],
    map: &[F],
    wide: usize,
) -> [F; Q] {
    let mut rows = [u; Q];
    let mut out = [F::zero(); Q];
    for (l, row) in rows.iter_mut().enumerate() {
        let (vectors, rest) = F::vectors::<S>(&map[l * wide..][..wide]);
        *row = &vectors[..u.len()];
        for (&u, &b) in u_rest.iter().zip(rest) {
            out[l] += u * b;
        }
    }
    let mut sums = [F::splat(simd, F::zero()); Q];
    for (j, &u) in u.iter().enumerate() {
        for (sum, row) in sums.iter_mut().zip(&rows) {
            *sum = F::times_plus(simd, u, row[j], *sum);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out += F::sum(simd, sum);
    }
    out
}
