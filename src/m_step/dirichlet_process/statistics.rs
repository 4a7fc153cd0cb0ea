//! Weighted sums over rows: mass, first and second moments of every component.

use super::matrices::{add, unpacked};
use super::merging::Overlaps;
use super::mixture::DirichletProcessMixture;
use super::normal_wishart::NormalWishart;
use super::prior::Prior;
use super::products::add_products;
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::Rows;
use crate::kernels::vectorised;
use crate::m_step::Statistics;
use crate::model::block::Block;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

/// Mass, first and second moments of every component about its current mean, as in [`DirichletProcess`].
#[derive(Clone, Debug)]
pub struct Scatter {
    pub(super) dim: usize,
    /// (k).
    pub(super) mass: Vec<f64>,
    /// (k, d).
    pub(super) first: Vec<f64>,
    /// (k, d, d), of which the lower half counts.
    pub(super) second: Vec<f64>,
    /// In a pass after which components may merge (E51).
    pub(super) overlaps: Option<Overlaps>,
}

impl Statistics for Scatter {
    fn merge(parts: &mut Vec<Self>) -> Self {
        const ELEMENTS: usize = 1 << 13;
        let mut total = parts.remove(0);
        for part in &*parts {
            add(&mut total.mass, &part.mass);
            add(&mut total.first, &part.first);
            match (&mut total.overlaps, &part.overlaps) {
                (Some(total), Some(part)) => add(&mut total.lost, &part.lost),
                // Rows of a part without them would be missing.
                (total, _) => *total = None,
            }
        }
        parallel::map_chunks(&mut total.second, ELEMENTS, |_, range, total| {
            for part in &*parts {
                add(total, &part.second[range.clone()]);
            }
        });
        parallel::map_chunks(parts, 1, |_, _, parts| {
            let Self {
                mass,
                first,
                second,
                overlaps,
                ..
            } = &mut parts[0];
            *overlaps = None;
            mass.fill(0.0);
            first.fill(0.0);
            second.fill(0.0);
        });
        total
    }

    fn zero_mass(&self) -> usize {
        self.mass.iter().filter(|mass| **mass <= 0.0).count()
    }
}

impl Scatter {
    pub(super) fn add<F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &DirichletProcessMixture<F>,
    ) {
        /// A smaller responsibility changes nothing. The log-joint is then 41 nats below that of the best component,
        /// so without it the bound changes by about 1e-16 nats per point, less than its own rounding.
        const LEAST_SHARE: f64 = 1.0 / (1u64 << 60) as f64;

        if let Some(overlaps) = &mut self.overlaps {
            overlaps.add(rows, block);
        }
        let (dim, k) = (self.dim, self.mass.len());
        // The rows of each component: (row, share), counted, then sorted by component.
        let mut ends = vec![0; k + 1];
        let visit = |see: &mut dyn FnMut(usize, usize, f64)| {
            for i in 0..rows.len() {
                let weight = rows.weight(i);
                let mut each = |c: usize, q: f64| {
                    if q > LEAST_SHARE && weight * q > 0.0 {
                        see(c, i, weight * q);
                    }
                };
                block.members(i).for_each(|(c, q)| each(c as usize, q));
            }
        };
        visit(&mut |c, _, _| ends[c + 1] += 1);
        for c in 0..k {
            ends[c + 1] += ends[c];
        }
        let mut next = ends.clone();
        let mut shares = vec![(0, 0.0); ends[k]];
        visit(&mut |c, i, share| {
            shares[next[c]] = (i, share);
            next[c] += 1;
        });

        let (mut apart, mut scratch) = (Vec::new(), Default::default());
        for c in 0..k {
            let members = &shares[ends[c]..ends[c + 1]];
            if members.is_empty() {
                continue;
            }
            apart.resize(members.len() * dim, 0.0);
            let component = &model.components[c];
            let mean = &component.mean;
            let first = &mut self.first[c * dim..(c + 1) * dim];
            self.mass[c] += members.iter().map(|member| member.1).sum::<f64>();
            if component.ill_conditioned {
                // Rare: the coordinates of the component first, then the same sums.
                for (&(i, _), apart) in members.iter().zip(apart.chunks_exact_mut(dim)) {
                    for ((u, z), m) in apart.iter_mut().zip(rows.row(i)).zip(mean) {
                        *u = z.to_f64() - m;
                    }
                }
                apart = map_rows(&apart, &unpacked(&component.factor, dim), dim);
                for (&(_, share), apart) in members.iter().zip(apart.chunks_exact(dim)) {
                    for (u, first) in apart.iter().zip(&mut *first) {
                        *first += share * u;
                    }
                }
            } else {
                vectorised!({
                    let apart = apart.chunks_exact_mut(dim);
                    for (&(i, share), apart) in members.iter().zip(apart) {
                        let row = rows.row(i).iter().zip(mean);
                        for ((z, m), (apart, first)) in row.zip(apart.iter_mut().zip(&mut *first)) {
                            *apart = z.to_f64() - m;
                            *first += share * *apart;
                        }
                    }
                });
            }
            let second = &mut self.second[c * dim * dim..(c + 1) * dim * dim];
            // What a merge gains is a small difference of large logarithms: all digits.
            let norm = match component.ill_conditioned || self.overlaps.is_some() {
                true => f64::INFINITY,
                false => component.norm(),
            };
            let shares = members.iter().map(|member| member.1);
            add_products::<F>(&apart, shares, norm, second, &mut scratch);
        }
    }

    /// The mean moved to that of the points; one without mass stays.
    pub(super) fn moved_mean(&self, t: usize, component: &NormalWishart) -> Vec<f64> {
        let mut mean = component.mean.clone();
        if self.mass[t] > 0.0 {
            let first = &self.first[t * self.dim..(t + 1) * self.dim];
            for (m, f) in mean.iter_mut().zip(component.leave(first.to_vec())) {
                *m += f / self.mass[t];
            }
        }
        mean
    }

    /// The new component (E29), from the sums about the old one; `None` if it is not finite.
    pub(super) fn update(
        &self,
        t: usize,
        old: &NormalWishart,
        prior: &Prior,
    ) -> Option<NormalWishart> {
        let (mean, inverse_scale) = self.about_new_mean(t, old, prior);
        if old.ill_conditioned {
            old.refined(prior, self.mass[t], mean, &inverse_scale)
        } else {
            NormalWishart::new(prior, self.mass[t], mean, &inverse_scale)
        }
    }

    /// The new mean $m_t$ and the trace of $W_t^{-1}$ (E29), from the sums about the old component.
    pub(super) fn trace(&self, t: usize, old: &NormalWishart, prior: &Prior) -> (Vec<f64>, f64) {
        let (mean, inverse_scale) = self.about_new_mean(t, old, prior);
        (mean, old.leave_trace(&inverse_scale))
    }

    /// The new mean $m_t$, and the lower half of $W_t^{-1}$ in the coordinates that the sums of the old component are
    /// taken in.
    fn about_new_mean(
        &self,
        t: usize,
        component: &NormalWishart,
        prior: &Prior,
    ) -> (Vec<f64>, Vec<f64>) {
        let (dim, mass, beta0) = (self.dim, self.mass[t], prior.mean_precision);
        let old = &component.mean;
        let first = &self.first[t * dim..(t + 1) * dim];
        let second = &self.second[t * dim * dim..(t + 1) * dim * dim];
        let sums = component.leave(first.to_vec());
        let mean: Vec<f64> = (0..dim)
            .map(|j| old[j] + (sums[j] + beta0 * (prior.mean[j] - old[j])) / (beta0 + mass))
            .collect();
        // Both differences are from the rounded mean, which is the one that is stored.
        let from = |other: &[f64]| -> Vec<f64> {
            component.enter(mean.iter().zip(other).map(|(m, x)| m - x).collect())
        };
        let (step, apart) = (from(old), from(&prior.mean));
        let mut inverse_scale = component.enter_prior(prior);
        for i in 0..dim {
            for j in 0..=i {
                let about_old = second[i * dim + j];
                let mut about_new =
                    about_old - first[i] * step[j] - step[i] * first[j] + mass * step[i] * step[j];
                if i == j {
                    // Far seeds: nearly all of the old sum cancels, and only rounding is left.
                    about_new = about_new.max(8.0 * f64::EPSILON * about_old);
                }
                inverse_scale[i * dim + j] += about_new + beta0 * apart[i] * apart[j];
            }
        }
        (mean, inverse_scale)
    }
}

/// $A B^T$ for a list of rows $A$ and a matrix $B$ (d, d).
fn map_rows(rows: &[f64], by: &[f64], dim: usize) -> Vec<f64> {
    let shape = (rows.len() / dim, dim);
    let mut out = vec![0.0; rows.len()];
    let rows = ArrayView2::from_shape(shape, rows).expect("whole rows");
    let by = ArrayView2::from_shape((dim, dim), by).expect("d x d numbers");
    let mut into = ArrayViewMut2::from_shape(shape, &mut out).expect("whole rows");
    general_mat_mul(1.0, &rows, &by.t(), 0.0, &mut into);
    out
}
