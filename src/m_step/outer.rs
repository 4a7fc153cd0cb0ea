//! Weighted moments with the products of all pairs of columns: what full covariances, with a prior or without, follow from.

use crate::base::float::Float;
use crate::base::simd::{LANES, vectorised};
use crate::base::sort;
use crate::costs::whitened::Shared;
use crate::costs::whitening::{MOST_INFLATION, Whitening};
use crate::kernels::weighted::{self, Weighted};
use crate::m_step::{Moments, SecondMoments};
use crate::model::block::Block;
use crate::rows::Rows;

/// Far seeds: nearly all of the old variances cancels, and only rounding is left.
fn keep_rounding(moved: &mut [f64], old: &[f64], dim: usize) {
    let diagonal = moved.iter_mut().zip(old).step_by(dim + 1);
    diagonal.for_each(|(x, old)| *x = x.max(8.0 * f64::EPSILON * old));
}

/// Second moments of pairs of coordinates, about the current means:
///
/// $$S_c = \sum_n w_n q_{nc} u_{nc} u_{nc}^T, \qquad u_{nc} = z_n - \mu_c$$
impl Moments {
    /// The lower half of $S_c$ (d, d).
    pub(crate) fn pairs_of(&self, c: usize) -> &[f64] {
        let size = self.dim * self.dim;
        &self.second()[c * size..][..size]
    }

    /// Adds a block of rows, shared out by its responsibilities, about the means of the components; second moments that they
    /// share are about `origin` (d), if there is one. The sums of a component have the digits of the type of the data where `anchor`
    /// gives its covariance and these are enough for it, and else all of `f64`.
    pub(crate) fn add_pairs<'a, F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        mean: impl Fn(usize) -> &'a [f64],
        anchor: impl Fn(usize) -> Option<&'a Whitening>,
        origin: &[f64],
    ) {
        let (dim, size) = (self.dim, self.dim * self.dim);
        let one = self.kind == SecondMoments::Pairs;
        let shared = one && !origin.is_empty();
        (self.about_means, self.scatter_known) = (one && !shared, false);
        let shares = || {
            let of_row = |i| {
                let weight = rows.weight(i);
                let members = block.members(i).map(move |(c, q)| (c, (i, weight * q)));
                members.filter(|(_, (_, share))| *share > 0.0)
            };
            (0..rows.len()).flat_map(of_row)
        };
        let (starts, members) = sort::sorted(block.components(), (0, 0.0), shares);
        let (mut narrow, mut wide) = (Products::<F>::new(dim), Products::<f64>::new(dim));
        let mut apart = Vec::new();
        for (c, places) in sort::among(&starts, 0..members.len()) {
            let members = &members[places];
            apart.resize(members.len() * dim, 0.0);
            self.mass[c] += members.iter().map(|member| member.1).sum::<f64>();
            let first = self.first_mut(c);
            vectorised!({
                let apart = apart.chunks_exact_mut(dim);
                for (&(i, share), apart) in members.iter().zip(apart) {
                    let row = rows.row(i).iter().zip(mean(c));
                    for ((z, m), (apart, first)) in row.zip(apart.iter_mut().zip(&mut *first)) {
                        *apart = z.to_f64() - m;
                        *first += share * *apart;
                    }
                }
            });
            if shared {
                continue;
            }
            let shares = || members.iter().map(|member| member.1);
            let start = if one { 0 } else { c * size };
            let second = &mut self.second[start..][..size];
            match anchor(c).is_some_and(|anchor| fits_narrow(&apart, shares(), anchor)) {
                true => narrow.add(&apart, shares(), second),
                false => wide.add(&apart, shares(), second),
            }
        }
        if shared {
            self.add_scatter(rows, block, origin);
        }
    }

    /// Adds a block of rows, shared out by its responsibilities, all components in each support: masses and first moments of rows
    /// that `shared` whitens, about its centres, and second moments about `origin`, unless `is_known` says that these are.
    pub(super) fn add_whitened<F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        shared: &Shared<F>,
        origin: &[f64],
        is_known: bool,
    ) {
        self.whitened = true;
        self.scatter_known &= is_known;
        let mut entered = Rows::default();
        let seen = match block.seen.len() == rows.len() {
            true => &block.seen,
            false => {
                shared.enter(rows, &mut Vec::new(), &mut entered);
                &entered
            }
        };
        seen.add_each(block, shared.centres(), self);
        if !self.scatter_known {
            self.add_scatter(rows, block, origin);
        }
    }

    /// Adds all rows, with their shares in all components, to second moments about `origin`.
    fn add_scatter<F: Float>(&mut self, rows: &Rows<F>, block: &Block<F>, origin: &[f64]) {
        let mut apart = Vec::with_capacity(rows.len() * self.dim);
        for i in 0..rows.len() {
            let row = rows.row(i).iter().zip(origin);
            apart.extend(row.map(|(z, a)| z.to_f64() - a));
        }
        let share = |i| {
            let shares = block.responsibilities(i).iter();
            rows.weight(i) * shares.map(|q| q.to_f64()).sum::<f64>()
        };
        Products::<f64>::new(self.dim).add(&apart, (0..rows.len()).map(share), &mut self.second);
    }

    /// Takes second moments about a fixed point from an earlier pass over the same rows, with the mass that they had there; or
    /// gives them to later ones. They do not depend on responsibilities, which sum to 1 up to rounding.
    pub(crate) fn keep_scatter(&mut self, kept: &mut Option<(Vec<f64>, f64)>) {
        let mass: f64 = self.mass.iter().sum();
        match kept {
            Some((scatter, before)) if self.scatter_known => {
                let factor = mass / *before;
                self.second = scatter.iter().map(|x| factor * x).collect();
            }
            None if self.whitened => *kept = Some((self.second.clone(), mass)),
            _ => (),
        }
    }

    /// The lower half of the second moments of all components about their means, which are `means` (k, d) after these `steps`:
    /// $\sum_c \sum_n w_n q_{nc} (z_n - \mu_c)(z_n - \mu_c)^T = S - \sum_c m_c (\mu_c - a)(\mu_c - a)^T$ with $S$ about $a$, or
    /// about the means before the steps where there was no `origin`.
    pub(crate) fn within(&self, origin: &[f64], means: &[f64], steps: &[f64]) -> Vec<f64> {
        let dim = self.dim;
        let (mut old, mut within) = (self.second().to_vec(), self.second().to_vec());
        let moved = means.chunks_exact(dim).zip(steps.chunks_exact(dim));
        for (c, (mean, step)) in moved.enumerate() {
            let apart: Vec<f64> = match self.about_means {
                true => step.to_vec(),
                false => mean.iter().zip(origin).map(|(m, a)| m - a).collect(),
            };
            for (i, row) in within.chunks_exact_mut(dim).enumerate() {
                let factor = self.mass(c) * apart[i];
                let pairs = row.iter_mut().zip(&apart[..=i]);
                pairs.for_each(|(x, u)| *x -= factor * u);
                old[i * (dim + 1)] += self.mass(c) * step[i] * step[i];
            }
        }
        keep_rounding(&mut within, &old, dim);
        within
    }

    /// The lower half of the second moments of component `c` about another point, which is `step` (d) beyond the mean:
    /// $S - f s^T - s f^T + m s s^T$.
    pub(crate) fn about(&self, c: usize, step: &[f64]) -> Vec<f64> {
        let (dim, mass, first) = (self.dim, self.mass(c), self.first(c));
        let mut about = self.pairs_of(c).to_vec();
        for i in 0..dim {
            for (j, sum) in about[i * dim..][..=i].iter_mut().enumerate() {
                *sum += mass * step[i] * step[j] - first[i] * step[j] - step[i] * first[j];
            }
        }
        keep_rounding(&mut about, self.pairs_of(c), dim);
        about
    }

    /// Gives component `into` all that `from` has, whose mean is `step` (d) beyond its own.
    pub(crate) fn join(&mut self, into: usize, from: usize, step: &[f64]) {
        let size = self.dim * self.dim;
        let back: Vec<f64> = step.iter().map(|x| -x).collect();
        let (mass, second) = (self.mass(from), self.about(from, &back));
        let sums = self.first(into).iter().zip(self.first(from)).zip(step);
        let first = sums.map(|((into, from), step)| into + from + mass * step);
        let first: Vec<f64> = first.collect();
        self.set(into, self.mass(into) + mass, first.into_iter());
        let into = self.second[into * size..][..size].iter_mut();
        into.zip(&second).for_each(|(total, x)| *total += x);
        self.set(from, 0.0, std::iter::repeat(0.0));
        self.second[from * size..][..size].fill(0.0);
    }

    pub(crate) fn pair(&self, a: usize, b: usize) -> Self {
        let mut pair = Self::zeros(2, self.dim, SecondMoments::PerPair);
        for (place, c) in [a, b].into_iter().enumerate() {
            pair.set(place, self.mass(c), self.first(c).iter().copied());
        }
        let second = [self.pairs_of(a), self.pairs_of(b)].concat();
        pair.second.copy_from_slice(&second);
        pair
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
struct Products<T> {
    rows: Vec<T>,
    /// Rows times their shares.
    shared: Vec<T>,
    /// Masses and means for the kernel: no component has a mean of its own.
    ones: Vec<f64>,
    zeros: Vec<f64>,
    order: Vec<u32>,
}

impl<T: Float> Products<T> {
    fn new(dim: usize) -> Self {
        Self {
            rows: Vec::new(),
            shared: Vec::new(),
            ones: vec![1.0; dim],
            zeros: vec![0.0; dim * dim],
            order: (0..dim as u32).collect(),
        }
    }

    /// Adds the lower half of $\sum_n q_n u_n u_n^T$ to a matrix (d, d), for rows $u$ (n, d) with their shares; what is above
    /// it is left undefined.
    fn add(&mut self, rows: &[f64], mut shares: impl Iterator<Item = f64>, into: &mut [f64]) {
        /// Rows whose sums stay in this type, before they are added up in `f64`.
        const ROWS: usize = 128;
        let dim = self.ones.len();
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
                mass: &self.ones,
                from: &self.zeros,
                columns: dim,
                place_of: &self.order,
                first: into,
                second: &mut [],
                lower: true,
            });
        }
    }
}
