//! Weighted moments with the products of all pairs of columns: what full covariances, with a prior or without, follow from.

use super::Statistics;
use crate::base::float::Float;
use crate::base::simd::{LANES, vectorised};
use crate::base::{parallel, sort};
use crate::data::Rows;
use crate::kernels::weighted::{self, Weighted};
use crate::model::block::Block;
use crate::model::whitened::{MOST_INFLATION, Whitening};

/// Mass, first and second moments of every component about its anchor, the current mean. Those of disjoint sets of rows add
/// up ([`Statistics`]).
///
/// $$m_c = \sum_n w_n q_{nc}, \qquad f_c = \sum_n w_n q_{nc} u_{nc}, \qquad S_c = \sum_n w_n q_{nc} u_{nc} u_{nc}^T, \qquad u_{nc} = z_n - a_c$$
#[derive(Clone, Debug, PartialEq)]
pub struct OuterMoments {
    dim: usize,
    /// (k).
    pub(crate) mass: Vec<f64>,
    /// (k, d).
    first: Vec<f64>,
    /// (k, d, d), of which the lower half counts.
    second: Vec<f64>,
}

/// Which digits of the products are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Those of the type of the data where these are enough for the covariance.
    Enough,
    /// All digits of `f64`.
    All,
}

impl Statistics for OuterMoments {
    fn merge(parts: &mut Vec<Self>) -> Self {
        const ELEMENTS: usize = 1 << 13;
        let mut total = Self::zeros(parts[0].mass.len(), parts[0].dim);
        for part in &*parts {
            add(&mut total.mass, &part.mass);
            add(&mut total.first, &part.first);
        }
        parallel::map_chunks(&mut total.second, ELEMENTS, |_, range, total| {
            for part in &*parts {
                add(total, &part.second[range.clone()]);
            }
        });
        parallel::map_chunks(parts, 1, |_, _, parts| {
            let part = &mut parts[0];
            part.mass.fill(0.0);
            part.first.fill(0.0);
            part.second.fill(0.0);
        });
        total
    }

    fn zero_mass(&self) -> usize {
        self.mass.iter().filter(|mass| **mass <= 0.0).count()
    }
}

fn add(total: &mut [f64], part: &[f64]) {
    for (total, x) in total.iter_mut().zip(part) {
        *total += x;
    }
}

impl OuterMoments {
    /// Of no rows.
    pub(crate) fn zeros(k: usize, dim: usize) -> Self {
        Self {
            dim,
            mass: vec![0.0; k],
            first: vec![0.0; k * dim],
            second: vec![0.0; k * dim * dim],
        }
    }

    /// $f_c$ (d).
    pub(crate) fn first(&self, c: usize) -> &[f64] {
        &self.first[c * self.dim..][..self.dim]
    }

    /// The lower half of $S_c$ (d, d).
    pub(crate) fn second(&self, c: usize) -> &[f64] {
        let size = self.dim * self.dim;
        &self.second[c * size..][..size]
    }

    /// Adds a block of rows, shared out by its responsibilities, about the means of the components.
    pub(crate) fn add<'a, F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        component: impl Fn(usize) -> &'a Whitening,
        digits: Digits,
    ) {
        let (dim, k) = (self.dim, self.mass.len());
        let shares = || {
            let of_row = |i| {
                let weight = rows.weight(i);
                let members = block.members(i).map(move |(c, q)| (c, (i, weight * q)));
                members.filter(|(_, (_, share))| *share > 0.0)
            };
            (0..rows.len()).flat_map(of_row)
        };
        let (starts, members) = sort::sorted(k, (0, 0.0), shares);
        let (mut apart, mut products) = (Vec::new(), Products::<F>::default());
        for (c, places) in sort::among(&starts, 0..members.len()) {
            let members = &members[places];
            let anchor = component(c);
            let first = &mut self.first[c * dim..(c + 1) * dim];
            apart.resize(members.len() * dim, 0.0);
            self.mass[c] += members.iter().map(|member| member.1).sum::<f64>();
            vectorised!({
                let apart = apart.chunks_exact_mut(dim);
                for (&(i, share), apart) in members.iter().zip(apart) {
                    let row = rows.row(i).iter().zip(&anchor.mean);
                    for ((z, m), (apart, first)) in row.zip(apart.iter_mut().zip(&mut *first)) {
                        *apart = z.to_f64() - m;
                        *first += share * *apart;
                    }
                }
            });
            let shares = || members.iter().map(|member| member.1);
            let narrow = digits == Digits::Enough && fits_narrow(&apart, shares(), anchor);
            let second = &mut self.second[c * dim * dim..(c + 1) * dim * dim];
            products.add(&apart, dim, shares(), narrow, second);
        }
    }

    /// The lower half of the second moments of component `c` about another point, which is `step` (d) beyond the anchor:
    /// $S - f s^T - s f^T + m s s^T$.
    pub(crate) fn about(&self, c: usize, step: &[f64]) -> Vec<f64> {
        let (dim, mass, first) = (self.dim, self.mass[c], self.first(c));
        let mut about = self.second(c).to_vec();
        for i in 0..dim {
            for (j, sum) in about[i * dim..][..=i].iter_mut().enumerate() {
                let old = *sum;
                *sum += mass * step[i] * step[j] - first[i] * step[j] - step[i] * first[j];
                if i == j {
                    // Far seeds: nearly all of the old sum cancels, and only rounding is left.
                    *sum = sum.max(8.0 * f64::EPSILON * old);
                }
            }
        }
        about
    }

    /// Gives component `into` all that `from` has, whose anchor is `step` (d) beyond its own.
    pub(crate) fn join(&mut self, into: usize, from: usize, step: &[f64]) {
        let (dim, size) = (self.dim, self.dim * self.dim);
        let back: Vec<f64> = step.iter().map(|x| -x).collect();
        let (mass, second) = (self.mass[from], self.about(from, &back));
        for (j, step) in step.iter().enumerate() {
            self.first[into * dim + j] += self.first[from * dim + j] + mass * step;
        }
        add(&mut self.second[into * size..][..size], &second);
        self.mass[into] += mass;
        self.mass[from] = 0.0;
        self.first[from * dim..][..dim].fill(0.0);
        self.second[from * size..][..size].fill(0.0);
    }

    /// The moments of two components alone.
    pub(crate) fn pair(&self, a: usize, b: usize) -> Self {
        Self {
            dim: self.dim,
            mass: vec![self.mass[a], self.mass[b]],
            first: [self.first(a), self.first(b)].concat(),
            second: [self.second(a), self.second(b)].concat(),
        }
    }
}

/// Whether sums of products in the type of the data have digits enough: rows $u$ (n, d) about the anchor are not much
/// farther apart than its covariance says, and it is well-conditioned.
fn fits_narrow(rows: &[f64], shares: impl Iterator<Item = f64>, anchor: &Whitening) -> bool {
    /// Shares within these bounds can be rounded to any type.
    const HELD: std::ops::Range<f64> = 1e-6..1e12;
    let precisions = anchor.precisions();
    let dim = precisions.len();
    let (mut mass, mut squares, mut most) = (0.0, 0.0, 0.0f64);
    for (row, share) in rows.chunks_exact(dim).zip(shares) {
        mass += share;
        most = most.max(share);
        let squared = row.iter().zip(&precisions).map(|(u, p)| p * u * u);
        squares += share * squared.sum::<f64>();
    }
    let spread = MOST_INFLATION * dim as f64 * mass;
    anchor.inflation <= MOST_INFLATION && squares <= spread && HELD.contains(&most)
}

/// Weighted sums of the products of rows with themselves, as matrix products, with their scratch.
#[derive(Debug, Default)]
struct Products<F> {
    narrow: Buffers<F>,
    wide: Buffers<f64>,
    ones: Vec<f64>,
    zeros: Vec<f64>,
    order: Vec<u32>,
}

impl<F: Float> Products<F> {
    /// Adds the lower half of $\sum_n q_n u_n u_n^T$ to a matrix (d, d), for rows $u$ (n, d) with their shares, in the type
    /// of the data or in `f64`; what is above it is left undefined.
    fn add(
        &mut self,
        rows: &[f64],
        dim: usize,
        shares: impl Iterator<Item = f64>,
        narrow: bool,
        into: &mut [f64],
    ) {
        self.ones.resize(dim, 1.0);
        self.zeros.resize(dim * dim, 0.0);
        self.order.clear();
        self.order.extend(0..dim as u32);
        let constants = Constants {
            ones: &self.ones,
            zeros: &self.zeros,
            order: &self.order,
        };
        match narrow {
            true => self.narrow.add(rows, shares, constants, into),
            false => self.wide.add(rows, shares, constants, into),
        }
    }
}

/// What the kernel adds products with: no component has a mean of its own.
#[derive(Clone, Copy)]
struct Constants<'a> {
    ones: &'a [f64],
    zeros: &'a [f64],
    order: &'a [u32],
}

/// Rows, and the same times their shares.
#[derive(Debug, Default)]
struct Buffers<T> {
    rows: Vec<T>,
    shared: Vec<T>,
}

impl<T: Float> Buffers<T> {
    fn add(
        &mut self,
        rows: &[f64],
        mut shares: impl Iterator<Item = f64>,
        constants: Constants<'_>,
        into: &mut [f64],
    ) {
        /// Rows whose sums stay in this type, before they are added up in `f64`.
        const ROWS: usize = 128;
        let dim = constants.ones.len();
        let stride = dim.next_multiple_of(LANES);
        for rows in rows.chunks(ROWS * dim) {
            let count = rows.len() / dim;
            self.rows.clear();
            self.rows.resize(count * stride, T::zero());
            self.shared.clear();
            self.shared
                .resize(count * stride + weighted::SPARE, T::zero());
            let all = self.rows.chunks_exact_mut(stride);
            let places = all.zip(self.shared.chunks_exact_mut(stride));
            for ((row, share), (all, shared)) in rows.chunks_exact(dim).zip(&mut shares).zip(places)
            {
                for ((&u, all), shared) in row.iter().zip(all).zip(shared) {
                    *all = T::from_f64(u);
                    *shared = T::from_f64(share * u);
                }
            }
            weighted::add(Weighted {
                shares: &self.shared,
                places: stride,
                rows: &self.rows,
                stride,
                scale: 1.0,
                mass: constants.ones,
                from: constants.zeros,
                columns: dim,
                place_of: constants.order,
                first: into,
                second: &mut [],
                lower: true,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use ndarray::{Array1, Array2};

    /// Two components that share rows, or have some of them alone, beside the naive sums.
    fn moments_are_the_naive_ones<F: Float>(n: usize, dim: usize, noise: f64, within: f64) {
        let mut rng = Rng::from_seed(4);
        let x = Array2::from_shape_fn((n, dim), |(i, j)| {
            F::from_f64((i as f64 + j as f64).sin() + noise * rng.normal())
        });
        let w = Array1::from_shape_fn(n, |i| (i % 3) as f64);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let mut rows = Rows::default();
        data.load(0..n, &data.frame(), &mut rows).unwrap();
        let component = |at: f64| Whitening::spherical(vec![at; dim], 0.5);
        let components = [component(0.1), component(-0.2)];
        let q = |i: usize, c: usize| {
            if c == 0 {
                (i % 5) as f64 / 4.0
            } else {
                1.0 - (i % 5) as f64 / 4.0
            }
        };
        let mut block = Block::<F>::listed(2, 2);
        block.supports = (0..n).flat_map(|_| [1, 0]).collect();
        block.scores = vec![F::zero(); 2 * n];
        let block = block.with_shares(|i, place| q(i, 1 - place));
        let mut sums = OuterMoments::zeros(2, dim);
        // Twice: scratch is reused, and sums add up.
        for _ in 0..2 {
            sums.add(&rows, &block, |c| &components[c], Digits::Enough);
        }
        let naive = |c: usize, of: &dyn Fn(&[f64]) -> f64| -> f64 {
            let term = |i: usize| {
                let row = rows.row(i)[..dim].iter().zip(&components[c].mean);
                let apart: Vec<f64> = row.map(|(z, m)| z.to_f64() - m).collect();
                2.0 * w[i] * q(i, c) * of(&apart)
            };
            (0..n).map(term).sum()
        };
        let close = |got: f64, expected: f64| {
            assert!(
                (got - expected).abs() <= within * n as f64,
                "{dim}: {got} {expected}"
            );
        };
        let step: Vec<f64> = (0..dim).map(|j| 0.1 * j as f64 - 0.3).collect();
        for c in 0..2 {
            close(sums.mass[c], naive(c, &|_| 1.0));
            let about = sums.about(c, &step);
            for i in 0..dim {
                close(sums.first(c)[i], naive(c, &|u| u[i]));
                for j in 0..=i {
                    close(sums.second(c)[i * dim + j], naive(c, &|u| u[i] * u[j]));
                    let moved = naive(c, &|u| (u[i] - step[i]) * (u[j] - step[j]));
                    close(about[i * dim + j], moved);
                }
            }
        }
        // Joined: about the anchor of the first.
        let mut joined = sums.pair(0, 1);
        assert_eq!(joined, sums);
        joined.join(0, 1, &vec![-0.3; dim]);
        assert_eq!(joined.zero_mass(), 1);
        close(joined.mass[0], 2.0 * w.sum());
        for i in 0..dim {
            close(
                joined.first(0)[i],
                naive(0, &|u| u[i]) + naive(1, &|u| u[i] - 0.3),
            );
            for j in 0..=i {
                let moved = naive(1, &|u| (u[i] - 0.3) * (u[j] - 0.3));
                close(
                    joined.second(0)[i * dim + j],
                    naive(0, &|u| u[i] * u[j]) + moved,
                );
            }
        }
        let mut parts = vec![sums.clone(), sums.clone()];
        let both = OuterMoments::merge(&mut parts);
        assert_eq!(both.second(1)[0], 2.0 * sums.second(1)[0]);
        assert_eq!(parts, vec![OuterMoments::zeros(2, dim); 2]);
    }

    #[test]
    fn sums_are_the_naive_ones() {
        for (n, dim) in [(2, 1), (40, 3), (300, 17), (200, 40)] {
            moments_are_the_naive_ones::<f64>(n, dim, 0.3, 1e-13);
            moments_are_the_naive_ones::<f32>(n, dim, 0.3, 1e-5);
            // Rows much farther away than the covariance says are summed in `f64` whatever they are.
            moments_are_the_naive_ones::<f32>(n, dim, 1e3, 1e-13 * 1e6);
        }
    }
}
