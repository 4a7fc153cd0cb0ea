//! Weighted moments with the products of all pairs of columns: what full covariances, with a prior or without, follow from.

use crate::base::float::Float;
use crate::base::simd::{LANES, vectorised};
use crate::base::sort;
use crate::costs::whitened::Shared;
use crate::costs::whitening::{MOST_INFLATION, Whitening};
use crate::kernels::quadratic::{COLUMN, Columns};
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
    /// gives its covariance, in units of `unit`, and these are enough for it, and else all of `f64`.
    pub(crate) fn add_pairs<'a, F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        mean: impl Fn(usize) -> &'a [f64],
        anchor: impl Fn(usize) -> Option<&'a Whitening>,
        unit: f64,
        origin: &[f64],
    ) {
        let (k, n) = (block.components(), rows.len());
        let one = self.kind == SecondMoments::Pairs;
        let shared = one && !origin.is_empty();
        (self.about_means, self.scatter_known) = (one && !shared, false);
        let mut sums = Pairs::new(rows, !shared);
        if block.is_full() {
            // Shares by component. Lines that are not a power of two apart stay in the cache together.
            let line = n.next_multiple_of(COLUMN) + LANES;
            let mut shares = vec![0.0; LANES * line];
            for first in (0..k).step_by(LANES) {
                let count = LANES.min(k - first);
                for i in 0..n {
                    let of_row = &block.responsibilities[i * block.stride + first..][..count];
                    for (share, q) in shares[i..].iter_mut().step_by(line).zip(of_row) {
                        *share = rows.weight(i) * q.to_f64();
                    }
                }
                for (c, shares) in (first..k).zip(shares.chunks_exact(line)) {
                    let shares = &shares[..line - LANES];
                    self.add_component(c, mean(c), anchor(c), unit, shares, &mut sums);
                }
            }
        } else {
            let of_rows = || {
                let of_row = |i| {
                    let weight = rows.weight(i);
                    let members = block.members(i).map(move |(c, q)| (c, (i, weight * q)));
                    members.filter(|(_, (_, share))| *share > 0.0)
                };
                (0..n).flat_map(of_row)
            };
            let (starts, members) = sort::sorted(k, (0, 0.0), of_rows);
            for (c, places) in sort::among(&starts, 0..members.len()) {
                sums.members.clear();
                sums.members.extend_from_slice(&members[places]);
                self.add_members(c, mean(c), anchor(c), unit, &mut sums);
            }
        }
        if shared {
            self.add_scatter(rows, block, origin);
        }
    }

    /// Adds rows with their shares in component `c`, and zeros up to a multiple of [`COLUMN`].
    fn add_component<F: Float>(
        &mut self,
        c: usize,
        mean: &[f64],
        anchor: Option<&Whitening>,
        unit: f64,
        shares: &[f64],
        sums: &mut Pairs<'_, F>,
    ) {
        let some: usize = shares.iter().map(|share| usize::from(*share > 0.0)).sum();
        // Rows without a share take less time than a list of the others.
        if let Some(columns) = sums.columns.as_mut().filter(|_| 3 * some > shares.len()) {
            self.add_columns(c, mean, columns, shares);
        } else if some > 0 {
            let members = shares.iter().copied().enumerate();
            sums.members.clear();
            sums.members.extend(members.filter(|member| member.1 > 0.0));
            self.add_members(c, mean, anchor, unit, sums);
        }
    }

    fn add_columns(&mut self, c: usize, mean: &[f64], columns: &mut Columns<f64>, shares: &[f64]) {
        self.mass[c] += shares.iter().sum::<f64>();
        let mut first = vec![0.0; self.dim];
        let second = self.second_of_pairs(c);
        columns.add_pairs(mean, shares, &mut first, second);
        self.first_mut(c)
            .iter_mut()
            .zip(first)
            .for_each(|(sum, x)| *sum += x);
    }

    fn second_of_pairs(&mut self, c: usize) -> &mut [f64] {
        let size = self.dim * self.dim;
        let place = if self.kind == SecondMoments::Pairs {
            0
        } else {
            c
        };
        &mut self.second[place * size..][..size]
    }

    /// Adds some rows with their shares in component `c`.
    fn add_members<F: Float>(
        &mut self,
        c: usize,
        mean: &[f64],
        anchor: Option<&Whitening>,
        unit: f64,
        sums: &mut Pairs<'_, F>,
    ) {
        let Pairs { rows, members, .. } = sums;
        if sums.columns.is_some() {
            let row = |place: usize| rows.row(members[place].0);
            let mut columns = Columns::new(members.len(), self.dim, row);
            let mut shares: Vec<f64> = members.iter().map(|member| member.1).collect();
            shares.resize(shares.len().next_multiple_of(COLUMN), 0.0);
            return self.add_columns(c, mean, &mut columns, &shares);
        }
        self.mass[c] += members.iter().map(|member| member.1).sum::<f64>();
        let (narrow, wide) = (&mut sums.narrow, &mut sums.wide);
        let is_narrow = anchor.is_some_and(|anchor| {
            let squares = narrow.take(rows, members, mean);
            fits_narrow(squares, members, anchor, unit)
        });
        if !is_narrow {
            wide.take(rows, members, mean);
        }
        let first = if is_narrow {
            &narrow.first
        } else {
            &wide.first
        };
        self.first_mut(c)
            .iter_mut()
            .zip(first)
            .for_each(|(sum, x)| *sum += x);
        if sums.seconds {
            match is_narrow {
                true => narrow.add(self.second_of_pairs(c)),
                false => wide.add(self.second_of_pairs(c)),
            }
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
        let share = |i| {
            let shares = block.responsibilities(i).iter();
            rows.weight(i) * shares.map(|q| q.to_f64()).sum::<f64>()
        };
        let members: Vec<_> = (0..rows.len()).map(|i| (i, share(i))).collect();
        let mut wide = Products::<f64>::new(self.dim);
        wide.take(rows, &members, origin);
        wide.add(&mut self.second);
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

/// Whether sums of products in the type of the data have digits enough: rows about the anchor, of these squares (d), are not much
/// farther apart than its covariance says, and it is well-conditioned.
fn fits_narrow(squares: &[f64], members: &[(usize, f64)], anchor: &Whitening, unit: f64) -> bool {
    /// Shares within these bounds can be rounded to any type.
    const HELD: std::ops::Range<f64> = 1e-6..1e12;
    let shares = members.iter().map(|member| member.1);
    let (mass, most) = shares.fold((0.0, 0.0f64), |(mass, most), q| (mass + q, most.max(q)));
    let precisions = anchor.precisions();
    let squared: f64 = squares.iter().zip(&precisions).map(|(u, p)| p * u).sum();
    let spread = MOST_INFLATION * precisions.len() as f64 * mass * unit;
    anchor.inflation <= MOST_INFLATION && squared <= spread && HELD.contains(&most)
}

/// Rows of a block, and scratch for their sums.
struct Pairs<'a, F> {
    rows: &'a Rows<F>,
    /// The rows by coordinate, where there are so few that sums of their pairs are.
    columns: Option<Columns<f64>>,
    /// Some rows, and their shares in a component.
    members: Vec<(usize, f64)>,
    narrow: Products<F>,
    wide: Products<f64>,
    /// Whether there are second moments of components.
    seconds: bool,
}

impl<'a, F: Float> Pairs<'a, F> {
    fn new(rows: &'a Rows<F>, seconds: bool) -> Self {
        /// Up to here, pairs of columns fill vectors of rows better than vectors of columns.
        const SHORT: usize = 16;
        let short = seconds && rows.dim <= SHORT;
        Self {
            rows,
            columns: short.then(|| Columns::new(rows.len(), rows.dim, |i| rows.row(i))),
            members: Vec::new(),
            narrow: Products::new(rows.dim),
            wide: Products::new(rows.dim),
            seconds,
        }
    }
}

/// Weighted sums of the products of rows with themselves, as matrix products, with their scratch.
struct Products<T> {
    /// Differences of rows from a point, in rows of whole vectors.
    rows: Vec<T>,
    /// They times their shares.
    shared: Vec<T>,
    /// Their sums, and those of their squares (d).
    first: Vec<f64>,
    squares: Vec<f64>,
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
            first: vec![0.0; dim],
            squares: vec![0.0; dim],
            ones: vec![1.0; dim],
            zeros: vec![0.0; dim * dim],
            order: (0..dim as u32).collect(),
        }
    }

    /// Takes some rows with their shares, as seen from a point (d). Returns the sums of their squares (d).
    fn take<F: Float>(
        &mut self,
        rows: &Rows<F>,
        members: &[(usize, f64)],
        point: &[f64],
    ) -> &[f64] {
        let stride = point.len().next_multiple_of(LANES);
        let places = members.len() * stride;
        self.rows.resize(places, T::zero());
        self.shared.resize(places + weighted::SPARE, T::zero());
        self.first.fill(0.0);
        self.squares.fill(0.0);
        vectorised!({
            let all = self.rows.chunks_exact_mut(stride);
            let places = all.zip(self.shared.chunks_exact_mut(stride));
            for (&(i, share), (all, shared)) in members.iter().zip(places) {
                let sums = self.first.iter_mut().zip(&mut self.squares);
                let of_row = rows.row(i).iter().zip(point).zip(sums);
                for (((z, m), (first, square)), (all, shared)) in
                    of_row.zip(all.iter_mut().zip(shared))
                {
                    let u = z.to_f64() - m;
                    let part = share * u;
                    *all = T::from_f64(u);
                    *shared = T::from_f64(part);
                    *first += part;
                    *square += part * u;
                }
            }
        });
        &self.squares
    }

    /// Adds the lower half of $\sum_n q_n u_n u_n^T$ to a matrix (d, d), for the rows $u$ (n, d) that were taken; what is above it is
    /// left undefined.
    fn add(&self, into: &mut [f64]) {
        /// Rows whose sums stay in this type, before they are added up in `f64`.
        const ROWS: usize = 128;
        let dim = self.ones.len();
        let stride = dim.next_multiple_of(LANES);
        for (part, rows) in self.rows.chunks(ROWS * stride).enumerate() {
            let shares = &self.shared[part * ROWS * stride..][..rows.len() + weighted::SPARE];
            weighted::add(Weighted {
                shares,
                places: stride,
                rows,
                stride,
                scale: 1.0,
                mass: &self.ones,
                from: &self.zeros,
                columns: dim,
                place_of: &self.order,
                first: &mut *into,
                second: &mut [],
                lower: true,
            });
        }
    }
}
