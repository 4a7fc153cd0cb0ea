//! Dense rows: a borrowed or owned (n, d) array in row-major order.

use super::frame::{self, Frame};
use super::{Centres, Data, Moments, Rows, Scales, Second, Summary};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::float::{Element, Float};
use crate::kernels::{distance, nearest, scaled, select, short, stride, vectorised};
use ndarray::{Array2, ArrayView1, ArrayView2};
use std::borrow::Cow;
use std::ops::Range;

/// What weights may be stored in: `f32` or `f64`. Sealed.
pub trait Weight: Float {
    /// Weights in `f64`, in which all sums are: borrowed where they lie one after the other in that type.
    #[doc(hidden)]
    fn in_f64(weights: ArrayView1<'_, Self>) -> Cow<'_, [f64]>;
}

impl Weight for f32 {
    fn in_f64(weights: ArrayView1<'_, f32>) -> Cow<'_, [f64]> {
        Cow::Owned(weights.iter().map(|&w| f64::from(w)).collect())
    }
}

impl Weight for f64 {
    fn in_f64(weights: ArrayView1<'_, f64>) -> Cow<'_, [f64]> {
        match weights.to_slice() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(weights.to_vec()),
        }
    }
}

/// Dense points, checked once.
///
/// `T` is how values are stored: `f32`, `f64`, or `u8` (computed in `f32`). Rows that lie one after the
/// other in memory are borrowed; any other memory order is copied once into row-major order.
///
/// ```
/// use coremix::prelude::*;
/// use ndarray::array;
///
/// let x = array![[0.0, 1.0], [2.0, 3.0]];
/// let w = array![1.0, 2.5];
/// let data = Dense::weighted(x.view(), w.view())?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dense<'a, T: Element> {
    values: Cow<'a, [T]>,
    dim: usize,
    weights: Option<Cow<'a, [f64]>>,
    summary: Summary,
    /// Whether every number was found to be sound.
    checked: bool,
}

impl<'a, T: Element> Dense<'a, T> {
    /// Points (n, d), each of weight 1: anything that views as a matrix, such as `&array` or `array.view()`.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows or columns, [`Error::NotFinite`] for NaN or infinite values,
    /// [`Error::TooLarge`] for values beyond a quarter of the largest `f32` (1e150 in `f64`).
    pub fn new(points: impl Into<ArrayView2<'a, T>>) -> Result<Self> {
        Self::check(points.into(), None)
    }

    /// Points (n, d) to ask a model about, each of weight 1, such as a batch that came to a service: as [`new`](Self::new), but
    /// there may be no rows. The answers about none are empty, and sums over them are 0. A fit needs rows, and refuses such data
    /// with [`Error::Empty`].
    ///
    /// ```
    /// use coremix::{algorithms, datasets::Birch, prelude::*};
    /// use ndarray::Array2;
    ///
    /// let birch = Birch::grid(20).generate::<f32>(1)?;
    /// let fit = algorithms::k_means(25).build()?.fit(&Dense::new(&birch.points)?)?;
    /// let nothing = Array2::<f32>::zeros((0, 2));
    /// assert_eq!(fit.model.predict(&Dense::batch(&nothing)?)?.len(), 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Empty`] without columns; otherwise as [`new`](Self::new).
    pub fn batch(points: impl Into<ArrayView2<'a, T>>) -> Result<Self> {
        let points = points.into();
        let (n, dim) = points.dim();
        if n > 0 || dim == 0 {
            return Self::check(points, None);
        }
        Ok(Self {
            values: Cow::Borrowed(&[]),
            dim,
            weights: None,
            summary: Summary::of_none(dim),
            checked: true,
        })
    }

    /// Points (n, d) with weights (n), of `f32` or `f64`: finite, not negative, not all zero. A row of weight `w` counts as
    /// `w` copies of it, a row of weight 0 as absent.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::LengthMismatch`], [`Error::Weight`] or [`Error::TotalWeight`] for
    /// the weights.
    pub fn weighted<W: Weight>(
        points: impl Into<ArrayView2<'a, T>>,
        weights: impl Into<ArrayView1<'a, W>>,
    ) -> Result<Self> {
        let (points, weights) = (points.into(), weights.into());
        if weights.len() != points.nrows() {
            let (expected, found) = (points.nrows(), weights.len());
            return Err(Error::LengthMismatch {
                what: "weights",
                expected,
                found,
            });
        }
        Self::check(points, Some(W::in_f64(weights)))
    }

    fn check(points: ArrayView2<'a, T>, weights: Option<Cow<'a, [f64]>>) -> Result<Self> {
        let (n, dim) = points.dim();
        if n == 0 || dim == 0 {
            return Err(Error::Empty { what: "data" });
        }
        let values = match points.to_slice() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(points.iter().copied().collect()),
        };
        Self::of_checked(values, dim, weights)
    }

    /// Values (n, d), one row after the other, once they have been looked at.
    fn of_checked(
        values: Cow<'a, [T]>,
        dim: usize,
        weights: Option<Cow<'a, [f64]>>,
    ) -> Result<Self> {
        let summary = T::check(&values, dim, weights.as_deref(), "data")?;
        Ok(Self {
            values,
            dim,
            weights,
            summary,
            checked: true,
        })
    }

    /// Rows that are made of checked ones, (n, d) values and (n) weights, in the coordinates of a frame already: about 0, and
    /// of the order of 1.
    pub(crate) fn of_values(values: Vec<T>, dim: usize, weights: Vec<f64>) -> Self {
        let summary = Summary {
            rows: weights.iter().filter(|w| **w > 0.0).count(),
            total_weight: weights.iter().sum(),
            mean: vec![0.0; dim],
            variance: vec![1.0; dim],
            range: vec![(-1.0, 1.0); dim],
        };
        Self {
            values: Cow::Owned(values),
            dim,
            weights: Some(Cow::Owned(weights)),
            summary,
            checked: true,
        }
    }

    /// Copies rows that are in the coordinates of their frame already, and report so many entries.
    pub(crate) fn copy(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        frame: &Frame<T::Float>,
        entries: usize,
        into: &mut DenseRows<T::Float>,
    ) {
        self.fill(rows, frame, into);
        into.entries = entries;
    }

    /// The points (n, d).
    #[must_use]
    pub fn points(&self) -> ArrayView2<'_, T> {
        let shape = (self.values.len() / self.dim, self.dim);
        ArrayView2::from_shape(shape, &self.values).expect("n x d numbers")
    }

    /// The weights (n); `None` if each is 1.
    #[must_use]
    pub fn weights(&self) -> Option<ArrayView1<'_, f64>> {
        self.weights.as_deref().map(ArrayView1::from)
    }

    fn row(&self, n: usize) -> &[T] {
        &self.values[n * self.dim..(n + 1) * self.dim]
    }

    /// Rows of `D` coordinates into the frame: there is no time for a loop over so few.
    #[inline(always)]
    fn enter_short<const D: usize>(
        &self,
        rows: impl Iterator<Item = usize>,
        frame: &Frame<T::Float>,
        out: &mut [T::Float],
    ) {
        let (values, _) = self.values.as_chunks::<D>();
        let entry = frame.entry::<D>();
        for (n, out) in rows.zip(out.chunks_exact_mut(stride(D))) {
            let row = &values[n];
            for j in 0..D {
                out[j] = entry(j, row[j].widen());
            }
        }
    }

    /// Loads rows in the given order.
    #[inline(always)]
    pub(crate) fn fill(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        frame: &Frame<T::Float>,
        into: &mut DenseRows<T::Float>,
    ) {
        into.reset(rows.len(), frame.dim());
        let stride = stride(frame.dim());
        if let Some(basis) = frame.basis() {
            let mut workspace = basis.workspace();
            for (n, out) in rows.zip(into.values.chunks_exact_mut(stride)) {
                into.weights.push(self.weight(n));
                let row = self.row(n).iter().map(|x| x.widen().to_f64());
                frame.enter_exact(workspace.forward(row), out);
            }
            return;
        }
        match &self.weights {
            None => into.weights.resize(rows.len(), 1.0),
            Some(weights) => into.weights.extend(rows.clone().map(|n| weights[n])),
        }
        let out = &mut into.values;
        vectorised!({
            match self.dim {
                1 => self.enter_short::<1>(rows, frame, out),
                2 => self.enter_short::<2>(rows, frame, out),
                3 => self.enter_short::<3>(rows, frame, out),
                4 => self.enter_short::<4>(rows, frame, out),
                5 => self.enter_short::<5>(rows, frame, out),
                6 => self.enter_short::<6>(rows, frame, out),
                7 => self.enter_short::<7>(rows, frame, out),
                8 => self.enter_short::<8>(rows, frame, out),
                _ => {
                    for (n, out) in rows.zip(out.chunks_exact_mut(stride)) {
                        frame.enter(self.row(n), out);
                    }
                }
            }
        });
    }
}

impl<T: Element> Dense<'static, T> {
    /// Points (n, d), each of weight 1, that belong to the data.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn owned(points: Array2<T>) -> Result<Self> {
        let (n, dim) = points.dim();
        if n == 0 || dim == 0 {
            return Err(Error::Empty { what: "data" });
        }
        Self::of_checked(Cow::Owned(values_of(points)), dim, None)
    }

    /// Rows (n, d) of other data with new weights (n): what [`Data::select`] returns. The summary is that of the `whole` data
    /// but for the number of rows and the total weight.
    ///
    /// It is made of rows that could not be read as well, NaN in their places: then the fit is an error that says so.
    #[must_use]
    pub fn part_of(whole: &Summary, points: Array2<T>, mut weights: Vec<f64>) -> Self {
        let (n, dim) = points.dim();
        let values = values_of(points);
        weights.resize(n, f64::NAN);
        let checked = n > 0 && dim > 0 && T::check(&values, dim, Some(&weights), "data").is_ok();
        Self {
            values: Cow::Owned(values),
            dim,
            summary: whole.reweighted(&weights),
            weights: Some(Cow::Owned(weights)),
            checked,
        }
    }
}

/// The numbers of an array, row after row.
fn values_of<T: Copy>(points: Array2<T>) -> Vec<T> {
    if points.is_standard_layout() {
        let size = points.len();
        let (mut values, from) = points.into_raw_vec_and_offset();
        values.drain(..from.unwrap_or(0));
        values.truncate(size);
        return values;
    }
    points.iter().copied().collect()
}

impl<T: Element> Dense<'_, T> {
    /// Squared distances of consecutive rows to one centre.
    pub(crate) fn distances(
        &self,
        rows: Range<usize>,
        frame: &Frame<T::Float>,
        centre: &[T::Float],
        out: &mut [T::Float],
    ) {
        if frame.basis().is_some() {
            let mut block = DenseRows::default();
            self.load(rows, frame, &mut block);
            block.distances_from(centre, out);
            return;
        }
        // Not copied into a block, and not padded.
        let values = &self.values[rows.start * self.dim..rows.end * self.dim];
        let scale = T::Float::from_f64(frame.inverse_unit());
        vectorised!({
            for (row, out) in values.chunks_exact(self.dim).zip(out) {
                *out = held(squared_distance(row, frame.offset(), scale, centre));
            }
        });
    }
}

/// Rows by their numbers.
#[derive(Clone, Debug)]
pub enum Chosen<'a> {
    /// Consecutive ones.
    Range(Range<usize>),
    /// Any, in this order.
    List(&'a [usize]),
}

impl<T: Element> Data for Dense<'_, T> {
    type Rows = DenseRows<T::Float>;

    fn is_checked(&self) -> bool {
        self.checked
    }

    fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    fn dim(&self) -> usize {
        self.dim
    }

    #[inline(always)]
    fn weight(&self, n: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[n])
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<T::Float>, into: &mut Self::Rows) {
        T::load(self, Chosen::Range(rows), frame, into);
    }

    fn gather(&self, rows: &[usize], frame: &Frame<T::Float>, into: &mut Self::Rows) {
        T::load(self, Chosen::List(rows), frame, into);
    }

    fn distances_from(
        &self,
        rows: Range<usize>,
        frame: &Frame<T::Float>,
        centre: &[T::Float],
        out: &mut [T::Float],
    ) {
        T::distances_from(self, rows, frame, centre, out);
    }

    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Box<dyn Data<Rows = Self::Rows> + '_> {
        let mut values = Vec::with_capacity(rows.len() * self.dim);
        for &n in rows {
            values.extend_from_slice(self.row(n));
        }
        Box::new(Dense {
            values: Cow::Owned(values),
            dim: self.dim,
            summary: self.summary.reweighted(&weights),
            weights: Some(Cow::Owned(weights)),
            checked: self.checked,
        })
    }
}

/// A squared distance held where it stays finite: rows of weight 0 may be far enough to overflow.
#[inline(always)]
fn held<F: Float>(squared: F) -> F {
    let most = F::from_f64(F::LARGEST_SCORE);
    if squared <= most { squared } else { most }
}

/// Squared distance of a stored row, not padded, to a centre in the coordinates of a frame.
#[inline(always)]
fn squared_distance<T: Element>(
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
    dim: usize,
    /// Coordinates that each row stands for: more than it has, for projected rows.
    entries: usize,
    values: Vec<F>,
    weights: Vec<f64>,
}

impl<F: Float> DenseRows<F> {
    fn reset(&mut self, n: usize, dim: usize) {
        if self.dim != dim {
            // Padding is never written by `fill`, so it must start as zeros.
            self.values.clear();
            self.dim = dim;
        }
        self.values.resize(n * stride(dim), F::zero());
        self.weights.clear();
        self.entries = dim;
    }

    /// Takes rows of these weights in the coordinates of `frame`: `read` fills the numbers of row `i` (as many as the data has
    /// columns) as they are stored. For the same numbers it is what [`Dense`] loads, bit for bit.
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
    pub(crate) fn seen(&self, about: Option<&[F]>) -> Cow<'_, [F]> {
        about.map_or(Cow::Borrowed(&self.values), |about| {
            let mut seen = vec![F::zero(); self.values.len()];
            distance::minus(&self.values, about, &mut seen);
            Cow::Owned(seen)
        })
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

impl<F: Float> DenseRows<F> {
    /// What each row adds to the components of its support (len, width), and to their masses.
    fn shares<S: Second>(&self, block: &Block<F>, moments: &mut Moments<S>) -> Vec<f64> {
        let width = block.width();
        let mut shares = block.responsibilities.clone();
        let supports = block.supports.chunks_exact(width);
        let of_rows = shares.chunks_exact_mut(width).zip(supports);
        for ((shares, support), weight) in of_rows.zip(&self.weights) {
            for (share, &c) in shares.iter_mut().zip(support) {
                *share *= weight;
                moments.add_mass(c as usize, *share);
            }
        }
        shares
    }

    /// First moments row by row, of rows of `D` numbers with their padding: so few that nothing is gained by an order.
    fn accumulate_short<S: Second, const D: usize>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments<S>,
    ) {
        let width = block.width();
        let shares = self.shares(block, moments);
        let (places, first) = moments.first_of::<D>(&block.supports);
        let (rows, _) = self.values.as_chunks::<D>();
        let (centres, _) = centres.values().as_chunks::<D>();
        vectorised!({
            let found = block.supports.chunks_exact(width);
            let found = found.zip(shares.chunks_exact(width));
            for (row, (support, shares)) in rows.iter().zip(found) {
                for (&c, &share) in support.iter().zip(shares) {
                    let (centre, place) = (&centres[c as usize], places[c as usize]);
                    let mut total = first[place as usize];
                    for j in 0..D {
                        total[j] += share * (row[j].to_f64() - centre[j].to_f64());
                    }
                    first[place as usize] = total;
                }
            }
        });
    }

    /// First moments component by component: its sums stay in registers while all of its rows add to them.
    fn accumulate_by_component<S: Second>(
        &self,
        block: &Block<F>,
        centres: &Centres<F>,
        moments: &mut Moments<S>,
    ) {
        let width = block.width();
        let shares = self.shares(block, moments);
        let mut starts = vec![0u32; block.components() + 1];
        for (&c, share) in block.supports.iter().zip(&shares) {
            starts[c as usize + 1] += u32::from(*share > 0.0);
        }
        for c in 0..block.components() {
            starts[c + 1] += starts[c];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0u32, 0.0); next[block.components()] as usize];
        for (i, shares) in shares.chunks_exact(width).enumerate() {
            for (&c, &share) in block.support(i).iter().zip(shares) {
                if share > 0.0 {
                    let next = &mut next[c as usize];
                    entries[*next as usize] = (i as u32, share);
                    *next += 1;
                }
            }
        }
        vectorised!({
            for (c, ends) in starts.windows(2).enumerate() {
                let entries = &entries[ends[0] as usize..ends[1] as usize];
                if !entries.is_empty() {
                    let sums = moments.first_mut(c);
                    add_rows(&self.values, entries, centres.row(c), sums);
                }
            }
        });
    }
}

/// Adds the differences of some rows and a centre, times their shares.
#[inline(always)]
fn add_rows<F: Float>(rows: &[F], entries: &[(u32, f64)], centre: &[F], sums: &mut [f64]) {
    let stride = centre.len();
    let mut from = 0;
    while stride - from >= 64 {
        add_columns::<F, 64>((rows, from), entries, centre, sums);
        from += 64;
    }
    while stride - from >= 16 {
        add_columns::<F, 16>((rows, from), entries, centre, sums);
        from += 16;
    }
}

/// The same for `N` columns.
#[inline(always)]
fn add_columns<F: Float, const N: usize>(
    (rows, from): (&[F], usize),
    entries: &[(u32, f64)],
    centre: &[F],
    sums: &mut [f64],
) {
    let stride = centre.len();
    let Some(centre) = centre[from..].first_chunk::<N>() else {
        return;
    };
    let Some(sums) = sums[from..].first_chunk_mut::<N>() else {
        return;
    };
    let (mut total, centre) = (*sums, centre.map(F::to_f64));
    for &(i, share) in entries {
        let Some(row) = rows[i as usize * stride + from..].first_chunk::<N>() else {
            return;
        };
        for j in 0..N {
            total[j] += share * (row[j].to_f64() - centre[j]);
        }
    }
    *sums = total;
}

/// Bound on the rounding error of a distance by expansion (E21) for a row of this squared norm, to centres that could be as
/// near as the squared distance `reach`. Without roots: $(a + b)^2 \le 2 a^2 + 2 b^2$.
#[inline(always)]
fn rounding<F: Float>(dim: usize, norm: f64, largest_norm: f64, reach: f64) -> f64 {
    let gamma = (dim + 8) as f64 * F::EPSILON;
    let all = gamma * (2.0 * norm + 2.0 * largest_norm);
    // A centre much farther out than the row is too far away to be one of the nearest, rounded or not (E21).
    let within = gamma * (8.0 * norm + 4.5 * reach);
    if 2.0 * within <= 1.25 * reach {
        within.min(all)
    } else {
        all
    }
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

    /// In the order of [`Dense`]'s own: the same bits, wherever rows come from.
    fn distances_from(&self, centre: &[F], out: &mut [F]) {
        let (stride, zeros) = (stride(self.dim), vec![F::zero(); centre.len()]);
        vectorised!({
            for (row, out) in self.values.chunks_exact(stride).zip(out) {
                *out = held(squared_distance(&row[..self.dim], &zeros, F::one(), centre));
            }
        });
    }

    fn distances(&self, centres: &Centres<F>, out: &mut Vec<F>) {
        let expanded = centres.expanded();
        let seen = self.seen(expanded.about());
        let mut norms = Vec::new();
        distance::norms(&seen, stride(self.dim), &mut norms);
        let rows = (&seen[..], &norms[..]);
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
        let expanded = centres.expanded();
        let rows = (&self.values[..], expanded.about());
        let (dim, farthest) = (self.dim, expanded.largest_norm());
        let margin = |norm, score| rounding::<F>(dim, norm, farthest, score);
        // Where rounding leaves several: which, as far as known.
        let mut among = Vec::new();
        if short::fits(stride, centres.len()) {
            let centres = (expanded.values(centres), expanded.norms());
            short::nearest(rows, (stride, dim), centres, margin, ids);
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
        let listed = !S::WANTED && !block.is_full();
        match stride(self.dim) {
            4 if listed => return self.accumulate_short::<S, 4>(block, centres, moments),
            8 if listed => return self.accumulate_short::<S, 8>(block, centres, moments),
            _ if listed && block.components() <= 16 * self.len() => {
                return self.accumulate_by_component(block, centres, moments);
            }
            _ => (),
        }
        let all = block.is_full() && block.width() > 1;
        vectorised!({
            let stride = stride(self.dim);
            let mut sizes = Vec::new();
            if all {
                sizes.extend(centres.values().chunks_exact(stride).map(
                    #[inline(always)]
                    |centre| moments.size(centre),
                ));
            }
            for i in 0..self.len() {
                let (row, shares) = (self.row(i), block.responsibilities(i));
                if !all {
                    let support = match block.is_full() {
                        true => &[0][..],
                        false => block.support(i),
                    };
                    for (&c, &q) in support.iter().zip(shares) {
                        let share = self.weights[i] * q;
                        if share > 0.0 {
                            moments.add(c as usize, share, row, centres);
                        }
                    }
                    continue;
                }
                // Most shares among all components are lost.
                let own = moments.size(row);
                for (c, (&q, size)) in shares.iter().zip(&sizes).enumerate() {
                    let share = self.weights[i] * q;
                    if share > 0.0 {
                        moments.add_felt(c, share, (row, own + size), centres);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use ndarray::{Array1, Array2};

    /// Short rows, rows of one vector, and rows of some; supports of one component and of several.
    #[test]
    fn moments_are_the_naive_ones() {
        let (n, k) = (70, 9);
        for (d, width) in [(1, 1), (2, 1), (3, 2), (7, 1), (8, 3), (9, 1), (80, 2)] {
            let mut rng = Rng::from_seed(d as u64);
            let x = Array2::from_shape_fn((n, d), |_| rng.normal());
            let weights = Array1::from_shape_fn(n, |i| (i % 4) as f64);
            let data = Dense::weighted(x.view(), weights.view()).unwrap();
            let frame = Frame::of(data.summary());
            let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut rows, mut block) = (DenseRows::default(), Block::new(k, width));
            data.load(0..n, &frame, &mut rows);
            let supports: Vec<u32> = (0..n * width).map(|i| (i * i % (k - 1)) as u32).collect();
            block.reset(n, &supports);
            let places = 0..n * width;
            block.responsibilities = places.map(|i| (1 + i % 3) as f64 / 6.0).collect();
            let mut moments = Moments::<()>::zeros(k, d);
            rows.accumulate(&block, &centres, &mut moments);

            let (mut mass, mut first) = (vec![0.0; k], Array2::<f64>::zeros((k, d)));
            for (place, &c) in supports.iter().enumerate() {
                let (i, c) = (place / width, c as usize);
                let share = weights[i] * block.responsibilities[place];
                mass[c] += share;
                for j in 0..d {
                    let z = (x[[i, j]] - frame.offset()[j]) * frame.inverse_unit();
                    first[[c, j]] += share * (z - centres.row(c)[j]);
                }
            }
            for c in 0..k {
                assert!((moments.mass(c) - mass[c]).abs() <= 1e-12 * (1.0 + mass[c]));
                for j in 0..d {
                    let (got, naive) = (moments.first(c)[j], first[[c, j]]);
                    assert!(
                        (got - naive).abs() <= 1e-12 * (1.0 + naive.abs()),
                        "{d} {c} {j}"
                    );
                }
            }
        }
    }

    /// Shares over eighty powers of ten, and the smaller the farther out: sums over all components are the naive ones.
    fn small_shares_far_away<S: Second>() {
        let (n, d, k) = (200, 5, 3);
        let mut rng = Rng::from_seed(12);
        let power: Vec<f64> = (0..n).map(|_| 20.0 * rng.uniform()).collect();
        let x = Array2::from_shape_fn((n, d), |(i, _)| rng.normal() * 10f64.powf(power[i]));
        let data = Dense::new(x.view()).unwrap();
        let frame = Frame::of(data.summary());
        let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
        let (mut rows, mut block) = (DenseRows::default(), Block::new(k, k));
        data.load(0..n, &frame, &mut rows);
        block.reset(n, &[]);
        let shares = (0..n * k).map(|i| 10f64.powf(-2.0 * power[i / k] - 40.0 * rng.uniform()));
        block.responsibilities = shares.collect();
        let mut moments = Moments::<S>::zeros(k, d);
        rows.accumulate(&block, &centres, &mut moments);
        for c in 0..k {
            let (mut mass, mut second) = (0.0, 0.0);
            let mut largest = vec![0.0f64; d];
            let (mut first, mut per_column) = (vec![0.0; d], vec![0.0; d]);
            for i in 0..n {
                let share = block.responsibilities(i)[c];
                mass += share;
                for j in 0..d {
                    let t = rows.row(i)[j] - centres.row(c)[j];
                    first[j] += share * t;
                    largest[j] = largest[j].max(share * t.abs());
                    per_column[j] += share * t * t;
                    second += share * t * t;
                }
            }
            assert!((moments.mass(c) - mass).abs() <= 1e-13 * mass);
            for j in 0..d {
                let off = (moments.first(c)[j] - first[j]).abs();
                assert!(off <= 1e-13 * largest[j], "{c} {j}: {off} {}", largest[j]);
            }
            let seconds = match moments.second().len() {
                0 => continue,
                len if len == k => (&moments.second()[c..=c], vec![second]),
                _ => (&moments.second()[c * stride(d)..][..d], per_column),
            };
            for (got, naive) in seconds.0.iter().zip(seconds.1) {
                assert!((got - naive).abs() <= 1e-13 * naive, "{c}: {got} {naive}");
            }
        }
    }

    #[test]
    fn shares_are_left_out_only_where_they_are_lost_in_every_sum() {
        small_shares_far_away::<()>();
        small_shares_far_away::<super::super::PerComponent>();
        small_shares_far_away::<super::super::PerCoordinate>();
    }

    fn distances_without_a_block<T: Element>(x: &Array2<T>, within: f64) {
        let mut weights = Array1::ones(x.nrows());
        weights[0] = 0.0;
        let data = Dense::weighted(x.view(), weights.view()).unwrap();
        let frame = Frame::of(data.summary());
        let mut rows = DenseRows::default();
        data.load(0..x.nrows(), &frame, &mut rows);
        let centre = rows.row(3).to_vec();
        let mut naive = vec![T::Float::INFINITY; x.nrows()];
        rows.lower(0, &centre, &mut naive);
        let mut got = naive.clone();
        data.distances_from(0..x.nrows(), &frame, &centre, &mut got);
        for (i, (a, b)) in got.iter().zip(&naive).enumerate() {
            let (a, b) = (a.to_f64(), b.to_f64());
            assert!(i == 0 || (a - b).abs() <= within * (1.0 + b), "{a} {b}");
            assert!(a.is_finite());
            // And the coordinates of the row, one by one.
            for j in (1..x.ncols()).filter(|_| i > 0) {
                let z = (x[[i, j]].widen().to_f64() - frame.offset()[j].to_f64())
                    * frame.inverse_unit();
                assert!((rows.row(i)[j].to_f64() - z).abs() <= within * (1.0 + z.abs()));
            }
        }
    }

    /// All lengths of rows, the number types, and a row of weight 0 far away.
    #[test]
    fn distances_from_one_centre_are_those_of_loaded_rows() {
        for d in 1..=50 {
            let mut rng = Rng::from_seed(d as u64);
            let mut x = Array2::from_shape_fn((9, d), |_| rng.normal());
            distances_without_a_block(&x.mapv(|x| (x * 20.0 + 128.0) as u8), 1e-5);
            x.row_mut(0).fill(1e30);
            distances_without_a_block(&x.mapv(|x| x as f32), 1e-5);
            distances_without_a_block(&x, 1e-13);
        }
    }
}
