//! Weighted moments with the products of all pairs of columns: what full covariances, with a prior or without, follow from.

use super::members::members;
use super::moments::Moments;
use crate::base::float::Float;
use crate::base::simd::{LANES, vectorised};
use crate::base::sort;
use crate::costs::observed::Observed;
use crate::costs::whitened::Shared;
use crate::costs::whitening::{MOST_INFLATION, Whitening};
use crate::kernels::quadratic::{COLUMN, Columns};
use crate::model::block::Block;
use crate::rows::Rows;

/// Adds a ridge (d), or none, to the squares of so much weight. Rows that lack a column count it there as negative, so only all
/// together are positive. Far seeds: nearly all of the old variances cancels, and only rounding is left.
fn keep_rounding(moved: &mut [f64], old: &[f64], dim: usize, (weight, ridge): (f64, &[f64])) {
    let diagonal = moved.iter_mut().zip(old).step_by(dim + 1);
    for (j, (x, old)) in diagonal.enumerate() {
        let more = ridge.get(j).map_or(0.0, |ridge| weight * ridge);
        *x = (*x + more).max(8.0 * f64::EPSILON * (old + more));
    }
}

/// Points that second moments of pairs of coordinates are about, and all that these follow from.
pub(crate) struct Pairs<'a, F> {
    /// (k, d).
    pub(crate) points: &'a [f64],
    /// Completes rows that know some of their coordinates.
    pub(crate) observed: Option<Observed<'a>>,
    /// (k), or none: sums of dense rows have the digits of the type of the data where the covariance of a component is here, and these
    /// are enough for it, and else all of `f64`.
    pub(crate) anchors: Vec<Option<&'a Whitening>>,
    /// The point (d), if there is one, that second moments of dense rows are about where all components share them.
    pub(crate) origin: Vec<f64>,
    /// The one transform that whitens the rows of all components, if there is one.
    pub(crate) shared: Option<&'a Shared<F>>,
    /// Whether second moments about the origin may stay as they are whatever the responsibilities.
    pub(crate) stay: bool,
}

impl<'a, F> Pairs<'a, F> {
    /// About these points (k, d), all in `f64`.
    pub(crate) fn about(points: &'a [f64]) -> Self {
        Self {
            points,
            observed: None,
            anchors: Vec::new(),
            origin: Vec::new(),
            shared: None,
            stay: false,
        }
    }
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

    /// Adds a block of dense rows, shared out by its responsibilities.
    pub(super) fn sum_pairs<F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        pairs: &Pairs<'_, F>,
    ) {
        let dim = self.dim;
        let origin = &pairs.origin[..];
        let mean = |c: usize| &pairs.points[c * dim..][..dim];
        let anchor = |c: usize| pairs.anchors.get(c).copied().flatten();
        let k = block.components();
        let n = rows.len();
        let shared = self.is_shared() && !origin.is_empty();
        self.begin_scatter(!shared);
        if block.is_full() && !shared {
            let mut by_column = ByColumn::new(rows, None);
            // Shares by component. Lines that are no power of two apart stay in the cache together.
            let line = n.next_multiple_of(COLUMN) + LANES;
            let mut shares = vec![0.0; k.min(LANES) * line];
            for first in (0..k).step_by(LANES) {
                let count = LANES.min(k - first);
                vectorised!({
                    for (i, weight) in rows.weights.iter().enumerate() {
                        let of_row = &block.responsibilities[i * block.stride + first..][..count];
                        for (share, q) in shares[i..].iter_mut().step_by(line).zip(of_row) {
                            *share = weight * q.to_f64();
                        }
                    }
                });
                for (c, shares) in (first..k).zip(shares.chunks_exact(line)) {
                    let shares = &shares[..line - LANES];
                    let is_some = |share: &f64| usize::from(*share > 0.0);
                    let some: usize = vectorised!(shares.iter().map(is_some).sum());
                    // Rows without a share take less time than columns of the others.
                    if 3 * some > shares.len() {
                        self.add_columns(c, mean(c), anchor(c), shares, &mut by_column);
                    } else if some > 0 {
                        let members = shares.iter().copied().enumerate();
                        let members = members.filter(|member| member.1 > 0.0);
                        let (mut some, shares) = ByColumn::of_members(rows, members);
                        self.add_columns(c, mean(c), anchor(c), &shares, &mut some);
                    }
                }
            }
            return;
        }
        let (starts, members) = members(rows, block);
        for (c, places) in sort::among(&starts, 0..members.len()) {
            let members = &members[places];
            if !shared {
                let some = members
                    .iter()
                    .map(|member| (member.row as usize, member.share));
                let (mut some, shares) = ByColumn::of_members(rows, some);
                self.add_columns(c, mean(c), anchor(c), &shares, &mut some);
                continue;
            }
            self.mass[c] += members.iter().map(|member| member.share).sum::<f64>();
            let first = self.first_mut(c);
            vectorised!({
                for member in members {
                    let row = rows.row(member.row as usize);
                    for ((first, z), m) in first.iter_mut().zip(row).zip(mean(c)) {
                        *first += member.share * (z.to_f64() - m);
                    }
                }
            });
        }
        if shared {
            self.add_scatter(rows, shares_of_all(rows, block), origin);
        }
    }

    /// Adds rows with their shares in component `c`, and zeros up to a multiple of [`COLUMN`].
    fn add_columns<F: Float>(
        &mut self,
        c: usize,
        mean: &[f64],
        anchor: Option<&Whitening>,
        shares: &[f64],
        columns: &mut ByColumn<'_, F>,
    ) {
        let mut masses = [0.0; COLUMN];
        let mut largest = [0.0; COLUMN];
        vectorised!({
            for shares in shares.as_chunks::<COLUMN>().0 {
                for l in 0..COLUMN {
                    masses[l] += shares[l];
                    largest[l] = if shares[l] > largest[l] {
                        shares[l]
                    } else {
                        largest[l]
                    };
                }
            }
        });
        let mass: f64 = masses.iter().sum();
        let most = largest.into_iter().fold(0.0, f64::max);
        self.mass[c] += mass;
        let dim = self.dim;
        let mut first = vec![0.0; dim];
        let mut second = vec![0.0; dim * dim];
        let fits = anchor.filter(|_| F::EPSILON > f64::EPSILON);
        let fits = fits.filter(|anchor| anchor.inflation <= MOST_INFLATION);
        let fits = fits.is_some_and(|anchor| {
            let narrow = columns.narrow();
            narrow.add_pairs(mean, shares, [mass, most], &mut first, &mut second);
            let precisions = anchor.precisions().into_iter();
            let squares = precisions.zip(second.iter().step_by(dim + 1));
            let squared: f64 = squares.map(|(p, square)| p * square).sum();
            // Rows are not much farther apart than the covariance says.
            squared <= MOST_INFLATION * dim as f64 * mass
        });
        if !fits {
            first.fill(0.0);
            second.fill(0.0);
            let wide = columns.wide();
            wide.add_pairs(mean, shares, [mass, most], &mut first, &mut second);
        }
        let add = |sums: &mut [f64], parts: &[f64]| {
            sums.iter_mut().zip(parts).for_each(|(sum, x)| *sum += x);
        };
        add(self.first_mut(c), &first);
        add(self.second_mut(c), &second);
    }

    /// Adds a block of rows, shared out by its responsibilities, all components in each support: masses and first moments of rows
    /// that `shared` whitens, about its centres, and second moments about the origin. If these stay, they may be known.
    pub(super) fn sum_whitened<F: Float>(
        &mut self,
        rows: &Rows<F>,
        block: &Block<F>,
        shared: &Shared<F>,
        Pairs { origin, stay, .. }: &Pairs<'_, F>,
    ) {
        let stay = *stay;
        let Some(scatter) = self.of_kind.scatter() else {
            return;
        };
        scatter.whitened = true;
        scatter.known &= stay;
        let known = scatter.known;
        if stay && !known {
            scatter.weight += rows.weights.iter().sum::<f64>();
        }
        let mut entered = Rows::default();
        let seen = if block.seen.len() == rows.len() {
            &block.seen
        } else {
            shared.enter(rows, &mut Vec::new(), &mut entered);
            &entered
        };
        seen.sum_by_row(block, shared.centres(), self);
        if !stay {
            self.add_scatter(rows, shares_of_all(rows, block), origin);
        } else if !known {
            self.add_scatter(rows, rows.weights.clone(), origin);
        }
    }

    /// Adds all rows with these shares to second moments about `origin`.
    fn add_scatter<F: Float>(&mut self, rows: &Rows<F>, mut shares: Vec<f64>, origin: &[f64]) {
        let mass = shares.iter().sum();
        let most = shares.iter().copied().fold(0.0, f64::max);
        shares.resize(shares.len().next_multiple_of(COLUMN), 0.0);
        let mut by_column = ByColumn::new(rows, None);
        let mut first = vec![0.0; self.dim];
        let wide = by_column.wide();
        let second = &mut self.second;
        wide.add_pairs(origin, &shares, [mass, most], &mut first, second);
    }

    /// Takes second moments about a fixed point, and the weight that they are of, from an earlier pass over the same rows, or gives
    /// them to later ones.
    pub(crate) fn keep_scatter(&mut self, kept: &mut Option<(Vec<f64>, f64)>) {
        let Some(scatter) = self.of_kind.scatter() else {
            return;
        };
        match kept {
            Some((second, weight)) if scatter.known => {
                self.second.clone_from(second);
                scatter.weight = *weight;
            }
            None if scatter.weight > 0.0 => *kept = Some((self.second.clone(), scatter.weight)),
            _ => (),
        }
    }

    /// Second moments of all components together are about a fixed point, or about the means.
    pub(super) fn begin_scatter(&mut self, about_means: bool) {
        if let Some(scatter) = self.of_kind.scatter() {
            scatter.about_means = about_means;
            scatter.known = false;
        }
    }

    /// How far the means of the rows are from what first moments are about (k, d): nothing without mass.
    pub(crate) fn steps(&self) -> Vec<f64> {
        let steps_of = |c: usize| {
            let mass = self.mass(c);
            let step = move |first: &f64| if mass > 0.0 { first / mass } else { 0.0 };
            self.first(c)[..self.dim].iter().map(step)
        };
        (0..self.mass.len()).flat_map(steps_of).collect()
    }

    /// The lower half of the second moments of all components about their means, which are `means` (k, d) after these `steps`:
    /// $\sum_c \sum_n w_n q_{nc} (z_n - \mu_c)(z_n - \mu_c)^T = S - \sum_c m_c (\mu_c - a)(\mu_c - a)^T$ with $S$ about $a$, or
    /// about the means before the steps where there was no `origin`. A ridge (d), if there is one, adds to each row.
    pub(crate) fn within(
        &self,
        origin: &[f64],
        means: &[f64],
        steps: &[f64],
        ridge: &[f64],
    ) -> Vec<f64> {
        let dim = self.dim;
        // Responsibilities sum to 1 up to rounding, which must not count where means are far apart.
        let scatter = self.scatter();
        let factor = if scatter.weight > 0.0 {
            self.mass.iter().sum::<f64>() / scatter.weight
        } else {
            1.0
        };
        let mut old: Vec<f64> = self.second().iter().map(|x| factor * x).collect();
        let mut within = old.clone();
        let moved = means.chunks_exact(dim).zip(steps.chunks_exact(dim));
        for (c, (mean, step)) in moved.enumerate() {
            let difference: Vec<f64> = if scatter.about_means {
                step.to_vec()
            } else {
                mean.iter().zip(origin).map(|(m, a)| m - a).collect()
            };
            for (i, row) in within.chunks_exact_mut(dim).enumerate() {
                let factor = self.mass(c) * difference[i];
                let pairs = row.iter_mut().zip(&difference[..=i]);
                pairs.for_each(|(x, u)| *x -= factor * u);
                old[i * (dim + 1)] += self.mass(c) * step[i] * step[i];
            }
        }
        let weight = self.mass.iter().sum();
        keep_rounding(&mut within, &old, dim, (weight, ridge));
        within
    }

    /// The lower half of the second moments of component `c` about another point, which is `step` (d) beyond the mean:
    /// $S - f s^T - s f^T + m s s^T$. A ridge (d), if there is one, adds to each row.
    pub(crate) fn about(&self, c: usize, step: &[f64], ridge: &[f64]) -> Vec<f64> {
        let dim = self.dim;
        let mass = self.mass(c);
        let first = self.first(c);
        let mut about = self.pairs_of(c).to_vec();
        for i in 0..dim {
            for (j, sum) in about[i * dim..][..=i].iter_mut().enumerate() {
                *sum += mass * step[i] * step[j] - first[i] * step[j] - step[i] * first[j];
            }
        }
        keep_rounding(&mut about, self.pairs_of(c), dim, (mass, ridge));
        about
    }

    /// Gives component `into` all that `from` has, whose mean is `step` (d) beyond its own.
    pub(crate) fn join(&mut self, into: usize, from: usize, step: &[f64]) {
        let back: Vec<f64> = step.iter().map(|x| -x).collect();
        let mass = self.mass(from);
        let second = self.about(from, &back, &[]);
        let sums = self.first(into).iter().zip(self.first(from)).zip(step);
        let first = sums.map(|((into, from), step)| into + from + mass * step);
        let first: Vec<f64> = first.collect();
        self.set(into, self.mass(into) + mass, first.into_iter());
        let into = self.second_mut(into).iter_mut().zip(&second);
        into.for_each(|(total, x)| *total += x);
        self.set(from, 0.0, std::iter::repeat(0.0));
        self.second_mut(from).fill(0.0);
    }

    pub(crate) fn pair(&self, a: usize, b: usize) -> Self {
        let mut pair = Self::pairs(2, self.dim);
        for (place, c) in [a, b].into_iter().enumerate() {
            pair.set(place, self.mass(c), self.first(c).iter().copied());
        }
        let second = [self.pairs_of(a), self.pairs_of(b)].concat();
        pair.second.copy_from_slice(&second);
        pair
    }
}

/// The shares of rows in all components together.
fn shares_of_all<F: Float>(rows: &Rows<F>, block: &Block<F>) -> Vec<f64> {
    let share = |i| {
        let shares = block.responsibilities(i).iter();
        rows.weight(i) * shares.map(|q| q.to_f64()).sum::<f64>()
    };
    (0..rows.len()).map(share).collect()
}

/// All rows of a block, or some of them, by coordinate: in either type, made when they are asked for.
struct ByColumn<'a, F> {
    rows: &'a Rows<F>,
    some: Option<Vec<usize>>,
    narrow: Option<Columns<F>>,
    wide: Option<Columns<f64>>,
}

impl<'a, F: Float> ByColumn<'a, F> {
    fn new(rows: &'a Rows<F>, some: Option<Vec<usize>>) -> Self {
        let narrow = None;
        let wide = None;
        Self {
            rows,
            some,
            narrow,
            wide,
        }
    }

    /// Some rows, and their shares with zeros up to a multiple of [`COLUMN`].
    fn of_members(
        rows: &'a Rows<F>,
        members: impl Iterator<Item = (usize, f64)>,
    ) -> (Self, Vec<f64>) {
        let (ids, mut shares) = members.unzip::<_, _, Vec<_>, Vec<_>>();
        shares.resize(shares.len().next_multiple_of(COLUMN), 0.0);
        (Self::new(rows, Some(ids)), shares)
    }

    fn columns<T: Float>(rows: &Rows<F>, some: Option<&[usize]>) -> Columns<T> {
        match some {
            Some(ids) => Columns::new(ids.len(), rows.dim, |place| rows.row(ids[place])),
            None => Columns::new(rows.len(), rows.dim, |i| rows.row(i)),
        }
    }

    fn narrow(&mut self) -> &mut Columns<F> {
        let rows = self.rows;
        let some = self.some.as_deref();
        self.narrow.get_or_insert_with(|| Self::columns(rows, some))
    }

    fn wide(&mut self) -> &mut Columns<f64> {
        let rows = self.rows;
        let some = self.some.as_deref();
        self.wide.get_or_insert_with(|| Self::columns(rows, some))
    }
}
