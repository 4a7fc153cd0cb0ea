//! A block of rows, the one type of rows there is: the arithmetic of the crate on points.

use super::frame::Frame;
use super::{Centres, Linear, Moments, Scales};
use crate::base::error::{Error, Result};
use crate::base::float::{Element, Float};
use crate::base::simd::vectorised;
use crate::kernels::sparse::{self, Entries};
use crate::kernels::{distance, nearest, select, short, stride};
use crate::model::block::Block;
use std::borrow::Cow;
use std::sync::Arc;

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

/// A block of weighted rows in the coordinates of a frame: the inner loops of the crate.
///
/// Rows are dense, or sparse: rows of a [`Sketch`](super::Sketch) know some of their coordinates, each as many. All rows of
/// a block are of one kind.
#[derive(Clone, Debug, Default)]
pub struct Rows<F> {
    pub(super) dim: usize,
    /// Coordinates that each row stands for: more than it has, for projected rows; those that it knows, for sparse ones.
    pub(super) entries: usize,
    /// Dense rows, padded; or (n, entries), the known coordinates of sparse rows.
    pub(super) values: Vec<F>,
    pub(super) weights: Vec<f64>,
    pub(super) sparse: Option<Sparse<F>>,
}

/// What sparse rows have beside their values.
#[derive(Clone, Debug)]
pub(super) struct Sparse<F> {
    /// (n, entries): which coordinates are known.
    pub(super) ids: Vec<u32>,
    /// The mean of the data, in the frame, padded: it stands for coordinates that are not known.
    pub(super) mean: Arc<[F]>,
}

impl<F: Float> Rows<F> {
    /// Makes room for `n` dense rows.
    pub(super) fn reset(&mut self, n: usize, dim: usize) {
        if self.dim != dim || self.sparse.take().is_some() {
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
    ///
    /// # Errors
    /// What `read` returns; [`Error::NotFinite`] for a number that is NaN or infinite.
    pub fn fill(
        &mut self,
        frame: &Frame<F>,
        weights: impl ExactSizeIterator<Item = f64>,
        mut read: impl FnMut(usize, &mut [F]) -> Result<()>,
    ) -> Result<()> {
        self.reset(weights.len(), frame.dim());
        self.weights.extend(weights);
        let mut row = vec![F::zero(); frame.columns()];
        let mut workspace = frame.basis().map(super::Basis::workspace);
        let places = self.values.chunks_exact_mut(stride(frame.dim()));
        for (i, out) in places.enumerate() {
            read(i, &mut row)?;
            if let Some(column) = row.iter().position(|x| !x.is_finite()) {
                let what = "data";
                return Err(Error::NotFinite {
                    what,
                    row: i,
                    column,
                });
            }
            match &mut workspace {
                Some(workspace) => {
                    let row = row.iter().map(|x| x.to_f64());
                    frame.enter_exact(workspace.forward(row), out);
                }
                None => frame.enter(&row, out),
            }
        }
        Ok(())
    }

    /// Removes all rows. Those that follow are sparse, with `entries` known coordinates each.
    pub(super) fn reset_sparse(&mut self, dim: usize, entries: usize, mean: &Arc<[F]>) {
        (self.dim, self.entries) = (dim, entries);
        self.values.clear();
        self.weights.clear();
        let mut ids = self
            .sparse
            .take()
            .map_or_else(Vec::new, |sparse| sparse.ids);
        ids.clear();
        let mean = Arc::clone(mean);
        self.sparse = Some(Sparse { ids, mean });
    }

    /// The known coordinates, if rows know only some.
    #[inline(always)]
    pub(super) fn known(&self) -> Option<Entries<'_, F>> {
        self.sparse.as_ref().map(|sparse| Entries {
            entries: self.entries,
            ids: &sparse.ids,
            values: &self.values,
        })
    }

    /// Padded rows of `dim` coordinates, of weight 1.
    pub(crate) fn of_padded(values: &[F], dim: usize) -> Self {
        Self {
            dim,
            entries: dim,
            values: values.to_vec(),
            weights: vec![1.0; values.len() / stride(dim)],
            sparse: None,
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

impl<F: Float> Rows<F> {
    /// Number of rows in the block.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether the block has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Weight of row `i` of the block.
    #[inline(always)]
    #[must_use]
    pub fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    /// Coordinates that each row knows, out of d: all, for dense rows. Distances and densities are over these.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Row `i` as a centre: `d` numbers, padded. A coordinate that it does not know is the mean of the data there.
    #[doc(alias = "row")]
    #[must_use]
    pub fn to_centre(&self, i: usize) -> Cow<'_, [F]> {
        let Some((known, sparse)) = self.known().zip(self.sparse.as_ref()) else {
            return Cow::Borrowed(self.row(i));
        };
        let mut centre = sparse.mean.to_vec();
        let (ids, values) = known.row(i);
        for (&j, &x) in ids.iter().zip(values) {
            centre[j as usize] = x;
        }
        Cow::Owned(centre)
    }

    /// Squared distances of all rows to one centre, computed directly, into `out` (len): held where they stay finite.
    #[inline(never)]
    pub fn distances_from(&self, centre: &[F], out: &mut [F]) {
        if self.sparse.is_some() {
            out.fill(F::INFINITY);
            return self.lower(0, centre, out);
        }
        // In the order of `Dense`'s own: the same bits, wherever rows come from.
        let (stride, zeros) = (stride(self.dim), vec![F::zero(); centre.len()]);
        vectorised!({
            for (row, out) in self.values.chunks_exact(stride).zip(out) {
                *out = finite(squared_distance(&row[..self.dim], &zeros, F::one(), centre));
            }
        });
    }

    /// Squared distances of all rows to all centres by expansion (E21): (len, k) into `out`.
    ///
    /// $$\hat s_c = \lVert z - a \rVert^2 - 2 (z - a)^\top (\mu_c - a) + \lVert \mu_c - a \rVert^2$$
    ///
    /// about a point $a$ near most of the centres.
    ///
    /// Fast, and good enough to rank; in the unit of the frame, squared, as are all distances here.
    #[inline(never)]
    pub fn distances(&self, centres: &Centres<F>, out: &mut Vec<F>) {
        if let Some(known) = self.known() {
            return sparse::to_all(known, centres.by_coordinate(), centres.len(), out);
        }
        let expanded = centres.expanded();
        let relative = self.relative(expanded.about());
        let mut norms = Vec::new();
        distance::norms(&relative, stride(self.dim), &mut norms);
        let rows = (&relative[..], &norms[..]);
        let centres = (expanded.values(centres), expanded.norms());
        distance::to_all(rows, centres, self.dim, out);
    }

    /// Bound on the rounding error of row `i` in [`distances`](Self::distances) (E21).
    ///
    /// $$\gamma \left( \lVert z \rVert + \max_c \lVert \mu_c \rVert \right)^2, \qquad \gamma = (d + 8) \cdot \text{machine epsilon, for dense rows}$$
    ///
    /// with both as seen from $a$. It is about the centres that could be as near as the squared distance `reach` (all of
    /// them, for infinity): where those are no farther from the origin than $\lVert z \rVert + \frac 32
    /// \sqrt{\text{reach}}$, that is in place of the largest norm. It is 0 for sparse rows, whose distances are direct.
    #[inline(never)]
    pub fn margin(&self, i: usize, centres: &Centres<F>, reach: F) -> F {
        if self.sparse.is_some() {
            return F::zero();
        }
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

    /// The nearest of all centres for every row, and its squared distance, computed directly: the lowest index where
    /// several are as near. `false`, and nothing done, where that is no faster than to go through
    /// [`distances`](Self::distances): for sparse rows.
    #[inline(never)]
    pub fn nearest(&self, centres: &Centres<F>, ids: &mut [u32], squared: &mut [F]) -> bool {
        if self.sparse.is_some() {
            return false;
        }
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

    /// Scores of all rows that are products (E46): (len, k padded to whole vectors) into `out`, where the padding stays as
    /// it is. `features` is scratch. `false`, and nothing done, for sparse rows.
    #[inline(never)]
    pub(crate) fn linear(&self, scores: &Linear<F>, features: &mut Vec<F>, out: &mut [F]) -> bool {
        if self.sparse.is_some() {
            return false;
        }
        scores.scores(&self.values, features, out);
        true
    }

    /// The squared distance of every row to the centre that `ids` names for it, computed directly.
    #[inline(never)]
    pub(crate) fn distances_to_own(&self, centres: &Centres<F>, ids: &[u32], out: &mut [F]) {
        let Some(known) = self.known() else {
            let stride = stride(self.dim);
            return distance::to_own(&self.values, centres.values(), stride, ids, out);
        };
        let (centres, mut squared) = ((centres.values(), self.dim), Vec::new());
        for (i, out) in out.iter_mut().enumerate() {
            sparse::to_some(known.row(i), centres, &ids[i..=i], &mut squared);
            *out = squared[0];
        }
    }

    /// Squared distances of row `i` to the centres `ids`, computed directly.
    #[inline(never)]
    pub fn distances_to(&self, i: usize, centres: &Centres<F>, ids: &[u32], out: &mut Vec<F>) {
        if let Some(known) = self.known() {
            return sparse::to_some(known.row(i), (centres.values(), self.dim), ids, out);
        }
        distance::to_some(self.row(i), centres.values(), ids, out);
    }

    /// Squared distances of all rows to all centres with a factor per component and coordinate, and what the
    /// scales add (E31), computed directly: (len, k) into `out`.
    ///
    /// $$s_c = \sum_j \left( a_{cj} (z_j - \mu_{cj})^2 + b_{cj} \right)$$
    ///
    /// over the coordinates that the row knows.
    #[inline(never)]
    pub fn scaled_distances(&self, centres: &Centres<F>, scales: &Scales<F>, out: &mut Vec<F>) {
        if let Some(known) = self.known() {
            let (k, scales) = (centres.len(), scales.by_coordinate());
            return sparse::scaled_to_all(known, centres.by_coordinate(), scales, k, out);
        }
        distance::scaled_to_all(&self.values, centres.values(), scales.of_rows(), out);
    }

    /// The [scaled distances](Self::scaled_distances) of row `i` to the centres `ids`.
    #[inline(never)]
    pub fn scaled_distances_to(
        &self,
        i: usize,
        centres: &Centres<F>,
        scales: &Scales<F>,
        ids: &[u32],
        out: &mut Vec<F>,
    ) {
        if let Some(known) = self.known() {
            let (row, centres) = (known.row(i), (centres.values(), self.dim));
            return sparse::scaled_to_some(row, centres, scales.of_entries(), ids, out);
        }
        distance::scaled_to_some(self.row(i), centres.values(), scales.of_rows(), ids, out);
    }

    /// Lowers `nearest` to the squared distances of as many rows, from row `first` on, to one more centre,
    /// computed directly.
    #[inline(never)]
    pub fn lower(&self, first: usize, centre: &[F], nearest: &mut [F]) {
        if let Some(known) = self.known() {
            let places = first * self.entries..;
            let rows = Entries {
                entries: self.entries,
                ids: &known.ids[places.clone()],
                values: &known.values[places],
            };
            return sparse::lower(rows, centre, nearest);
        }
        distance::lower(&self.values[first * centre.len()..], centre, nearest);
    }

    /// Adds the rows, shared out by the responsibilities of `block`, to `moments` about `centres` (E5).
    #[inline(never)]
    pub fn accumulate(&self, block: &Block<F>, centres: &Centres<F>, moments: &mut Moments) {
        if let Some(known) = self.known() {
            return self.add_sparse(known, block, centres, moments);
        }
        self.add_up(block, centres, moments);
    }
}
