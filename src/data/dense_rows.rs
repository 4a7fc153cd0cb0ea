//! A block of dense rows, and the arithmetic on it.

use super::frame::{self, Frame};
use super::{Centres, Linear, Moments, Rows, Scales, Second};
use crate::block::Block;
use crate::float::{Element, Float};
use crate::kernels::{distance, nearest, scaled, select, short, stride, vectorised};
use std::borrow::Cow;

/// A squared distance held where it stays finite: rows of weight 0 may be far enough to overflow. NaN stays NaN: it is a fault of
/// the data.
#[inline(always)]
pub(super) fn finite<F: Float>(squared: F) -> F {
    let most = F::from_f64(F::LARGEST_SCORE);
    if squared > most { most } else { squared }
}

/// Squared distance of a stored row, not padded, to a centre in the coordinates of a frame.
#[inline(always)]
pub(super) fn squared_distance<T: Element>(
    row: &[T],
    offset: &[T::Float],
    scale: T::Float,
    centre: &[T::Float],
) -> T::Float {
    const LANES: usize = 16;
    let (rows, rest) = row.as_chunks::<LANES>();
    let (offsets, centres) = (offset.as_chunks::<LANES>().0, centre.as_chunks::<LANES>().0);
    let mut sums = [T::Float::from_f64(0.0); LANES];
    for ((x, offset), centre) in rows.iter().zip(offsets).zip(centres) {
        for l in 0..LANES {
            let t = (x[l].widen() - offset[l]) * scale - centre[l];
            sums[l] += t * t;
        }
    }
    let first = LANES * rows.len();
    let (eight, rest) = rest.as_chunks::<8>();
    let (offset, centre) = (&offset[first..], &centre[first..]);
    let (offsets, centres) = (offset.as_chunks::<8>().0, centre.as_chunks::<8>().0);
    for ((x, offset), centre) in eight.iter().zip(offsets).zip(centres) {
        for l in 0..8 {
            let t = (x[l].widen() - offset[l]) * scale - centre[l];
            sums[l] += t * t;
        }
    }
    let first = 8 * eight.len();
    for (l, x) in rest.iter().enumerate() {
        let t = (x.widen() - offset[first + l]) * scale - centre[first + l];
        sums[l] += t * t;
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for l in 0..width {
            sums[l] += sums[l + width];
        }
    }
    sums[0]
}

/// A block of dense rows in the coordinates of a frame, padded, with weights.
#[derive(Clone, Debug, Default)]
pub struct DenseRows<F> {
    pub(super) dim: usize,
    /// Coordinates that each row stands for: more than it has, for projected rows.
    pub(super) entries: usize,
    pub(super) values: Vec<F>,
    pub(super) weights: Vec<f64>,
}

impl<F: Float> DenseRows<F> {
    pub(super) fn reset(&mut self, n: usize, dim: usize) {
        if self.dim != dim {
            // Padding is never written by `fill`, so it must start as zeros.
            self.values.clear();
            self.dim = dim;
        }
        self.values.resize(n * stride(dim), F::zero());
        self.weights.clear();
        self.entries = dim;
    }

    /// Takes rows of these weights in the coordinates of `frame`: `read` fills the numbers of row `i` (as many as the
    /// data has columns) as they are stored. For the same numbers it is what [`Dense`](super::Dense) loads, bit for bit.
    pub fn fill(
        &mut self,
        frame: &Frame<F>,
        weights: impl ExactSizeIterator<Item = f64>,
        mut read: impl FnMut(usize, &mut [F]),
    ) {
        let n = weights.len();
        self.reset(n, frame.dim());
        self.weights.extend(weights);
        let mut row = vec![F::zero(); frame.columns()];
        let mut workspace = frame.basis().map(super::Basis::workspace);
        for (i, out) in self
            .values
            .chunks_exact_mut(stride(frame.dim()))
            .enumerate()
        {
            read(i, &mut row);
            if !row.iter().all(|x| x.is_finite()) {
                // The frame would hold an infinite value where it holds far ones.
                out[..frame.dim()].fill(F::from_f64(f64::NAN));
                continue;
            }
            match &mut workspace {
                Some(workspace) => {
                    let row = row.iter().map(|x| x.to_f64());
                    frame.enter_exact(workspace.forward(row), out);
                }
                None => frame.enter(&row, out),
            }
        }
    }

    /// Makes it so many rows at the origin of a frame, of weight 1.
    pub(crate) fn blank(&mut self, n: usize, frame: &Frame<F>) {
        self.reset(n, frame.dim());
        self.values.fill(F::zero());
        self.weights.resize(n, 1.0);
    }

    /// Puts NaN in the places of rows that could not be read.
    pub(super) fn spoil(&mut self, rows: impl Iterator<Item = usize>) {
        let stride = stride(self.dim);
        for i in rows {
            self.values[i * stride..][..self.dim].fill(F::from_f64(f64::NAN));
        }
    }

    /// The first row that is not sound, and what is wrong with it.
    pub(crate) fn unsound(&self, frame: &Frame<F>) -> Option<(usize, String)> {
        if self.dim != frame.dim() {
            let (found, expected) = (self.dim, frame.dim());
            return Some((0, format!("{found} coordinates, but {expected} expected")));
        }
        // NaN as soon as any value is not finite: a sum that needs no branch.
        let rows = self.values.chunks_exact(stride(self.dim));
        let probe = |row: &[F]| row.iter().fold(F::zero(), |sum, &x| sum + x * F::zero());
        let mut probes = rows.map(probe);
        let row = probes.position(|probe| probe != F::zero())?;
        Some((row, "a value is NaN or infinite".into()))
    }

    /// Padded rows of `dim` coordinates, of weight 1.
    pub(crate) fn of_padded(values: &[F], dim: usize) -> Self {
        Self {
            dim,
            entries: dim,
            values: values.to_vec(),
            weights: vec![1.0; values.len() / stride(dim)],
        }
    }

    /// All rows as seen from a point, padded; `None` is the origin.
    pub(crate) fn relative(&self, about: Option<&[F]>) -> Cow<'_, [F]> {
        relative_to(&self.values, about)
    }

    /// All rows, padded, one after the other.
    pub(crate) fn values(&self) -> &[F] {
        &self.values
    }

    /// Row `i`: `d` numbers, padded.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[F] {
        let stride = stride(self.dim);
        &self.values[i * stride..(i + 1) * stride]
    }
}

/// Padded rows as seen from a point, padded; `None` is the origin.
fn relative_to<'a, F: Float>(rows: &'a [F], about: Option<&[F]>) -> Cow<'a, [F]> {
    about.map_or(Cow::Borrowed(rows), |about| {
        let mut relative = vec![F::zero(); rows.len()];
        distance::minus(rows, about, &mut relative);
        Cow::Owned(relative)
    })
}

/// What squares and products of so many columns can lose, in a distance by expansion and in a direct one, where they are too
/// small for the type (E21).
pub(super) fn underflow<F: Float>(dim: usize) -> f64 {
    4.0 * (dim + 8) as f64 * F::LEAST
}

/// Bound on the rounding error of a distance by expansion (E21) for a row of this squared norm, to centres that could be as
/// near as the squared distance `reach`. Without roots: $(a + b)^2 \le 2 a^2 + 2 b^2$.
#[inline(always)]
pub(super) fn rounding<F: Float>(dim: usize, norm: f64, largest_norm: f64, reach: f64) -> f64 {
    let gamma = (dim + 8) as f64 * F::EPSILON;
    let all = gamma * (2.0 * norm + 2.0 * largest_norm);
    // A centre much farther out than the row is too far away to be one of the nearest, rounded or not (E21).
    let within = gamma * (8.0 * norm + 4.5 * reach);
    let relative = match 2.0 * within <= 1.25 * reach {
        true => within.min(all),
        false => all,
    };
    relative + underflow::<F>(dim)
}

impl<F: Float> Rows for DenseRows<F> {
    type Float = F;

    #[inline(always)]
    fn len(&self) -> usize {
        self.weights.len()
    }

    #[inline(always)]
    fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn to_centre(&self, i: usize) -> Cow<'_, [F]> {
        Cow::Borrowed(self.row(i))
    }

    fn use_cells() -> bool {
        true
    }

    super::compiled_loops!(F);
}

impl<F: Float> super::Arithmetic for DenseRows<F> {
    fn typical(&self) -> Option<f64> {
        let mut values = Vec::with_capacity(self.len());
        let columns = (0..self.dim).filter_map(|column| {
            values.clear();
            values.extend((0..self.len()).map(|i| self.row(i)[column].to_f64()));
            frame::typical(&mut values)
        });
        columns.reduce(f64::max)
    }

    /// In the order of [`Dense`](super::Dense)'s own: the same bits, wherever rows come from.
    fn distances_from(&self, centre: &[F], out: &mut [F]) {
        let (stride, zeros) = (stride(self.dim), vec![F::zero(); centre.len()]);
        vectorised!({
            for (row, out) in self.values.chunks_exact(stride).zip(out) {
                *out = finite(squared_distance(&row[..self.dim], &zeros, F::one(), centre));
            }
        });
    }

    fn distances(&self, centres: &Centres<F>, out: &mut Vec<F>) {
        let expanded = centres.expanded();
        let relative = self.relative(expanded.about());
        let mut norms = Vec::new();
        distance::norms(&relative, stride(self.dim), &mut norms);
        let rows = (&relative[..], &norms[..]);
        let centres = (expanded.values(centres), expanded.norms());
        distance::to_all(rows, centres, self.dim, out);
    }

    fn margin(&self, i: usize, centres: &Centres<F>, reach: F) -> F {
        let (row, expanded) = (self.row(i), centres.expanded());
        let norm = match expanded.about() {
            None => distance::norm(row),
            Some(about) => distance::between(row, about),
        };
        F::from_f64(rounding::<F>(
            self.dim,
            norm.to_f64(),
            expanded.largest_norm(),
            reach.to_f64(),
        ))
    }

    fn nearest(&self, centres: &Centres<F>, ids: &mut [u32], squared: &mut [F]) -> bool {
        let stride = stride(self.dim);
        if distance::are_few(centres.len()) {
            let centres = centres.values();
            distance::nearest_of_few(&self.values, centres, stride, ids, squared);
            return true;
        }
        let expanded = centres.expanded();
        let rows = (&self.values[..], expanded.about());
        let dim = self.dim;
        let largest_norm = expanded.largest_norm();
        let margin = |norm, score| rounding::<F>(dim, norm, largest_norm, score);
        // Where rounding leaves several: which, as far as known.
        let mut among = Vec::new();
        if short::fits(stride, centres.len()) {
            let values = (expanded.values(centres), expanded.norms());
            let panels = || expanded.panels(centres);
            short::nearest(rows, (stride, dim), values, panels, margin, ids);
            // It leaves rows open. Which centres are within their rounding, a search by panels tells.
            let is_open = |i: &usize| ids[*i] == nearest::OPEN;
            let open: Vec<usize> = match ids.contains(&nearest::OPEN) {
                true => (0..ids.len()).filter(is_open).collect(),
                false => Vec::new(),
            };
            if !open.is_empty() {
                let rows = open
                    .iter()
                    .flat_map(|i| &self.values[i * stride..][..stride]);
                let rows: Vec<F> = rows.copied().collect();
                let (rows, mut found) = ((&rows[..], expanded.about()), vec![0; open.len()]);
                let panels = expanded.panels(centres);
                nearest::nearest(rows, stride, panels, margin, &mut found, &mut among);
                for (&i, id) in open.iter().zip(found) {
                    ids[i] = id;
                }
                for (row, _) in &mut among {
                    *row = open[*row];
                }
            }
        } else {
            let panels = expanded.panels(centres);
            nearest::nearest(rows, stride, panels, margin, ids, &mut among);
        }
        let (mut listed, mut scores) = (Vec::new(), Vec::new());
        let mut among = among.into_iter().peekable();
        for (i, id) in ids.iter_mut().enumerate() {
            if *id == nearest::OPEN {
                listed.clear();
                while let Some((_, id)) = among.next_if(|(row, _)| *row == i) {
                    listed.push(id);
                }
                if listed.is_empty() {
                    listed.extend(0..centres.len() as u32);
                }
                distance::to_some(self.row(i), centres.values(), &listed, &mut scores);
                let id = std::slice::from_mut(id);
                select::smallest(&listed, &scores, id, &mut squared[i..=i]);
            }
        }
        distance::to_own(&self.values, centres.values(), stride, ids, squared);
        true
    }

    fn nearest_by_cells(
        &self,
        centres: &Centres<F>,
        epsilon: f64,
        ids: &mut [u32],
        squared: &mut [F],
    ) -> Option<u64> {
        let cells = centres.cells()?;
        Some(self.visit_cells(cells, epsilon, ids, squared))
    }

    fn together(&self, centres: &Centres<F>, beta: f64, found: &mut Vec<(u32, f64, f64)>) -> bool {
        self.sum_up(centres, beta, found);
        true
    }

    fn linear(&self, scores: &Linear<F>, features: &mut Vec<F>, out: &mut [F]) -> bool {
        scores.scores(&self.values, features, out);
        true
    }

    #[inline(always)]
    fn distances_to(&self, i: usize, centres: &Centres<F>, ids: &[u32], out: &mut Vec<F>) {
        distance::to_some(self.row(i), centres.values(), ids, out);
    }

    fn scaled_distances(&self, centres: &Centres<F>, scales: &Scales<F>, out: &mut Vec<F>) {
        scaled::to_all(&self.values, centres.values(), scales.of_rows(), out);
    }

    fn scaled_distances_to(
        &self,
        i: usize,
        centres: &Centres<F>,
        scales: &Scales<F>,
        ids: &[u32],
        out: &mut Vec<F>,
    ) {
        scaled::to_some(self.row(i), centres.values(), scales.of_rows(), ids, out);
    }

    fn lower(&self, first: usize, centre: &[F], nearest: &mut [F]) {
        distance::lower(&self.values[first * centre.len()..], centre, nearest);
    }

    fn accumulate<S: Second>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments<S>,
    ) {
        self.add_up(block, centres, moments);
    }
}
