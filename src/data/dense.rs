//! Dense rows: a borrowed or owned (n, d) array in row-major order.

use super::{Data, Frame, RowKind, Rows, Summary, missing, weight_of};
use crate::base::error::{Error, Result, ensure, same_length, whole_rows};
use crate::base::float::{Element, Float};
use crate::base::parallel::{self, BLOCK};
use crate::base::simd::vectorised;
use crate::kernels::{features, stride};
use ndarray::{Array2, ArrayView1, ArrayView2};
use pulp::bytemuck::cast_slice;
use std::any::TypeId;
use std::borrow::Cow;
use std::ops::Range;

/// Dense points, checked once.
///
/// `T` is how values are stored: `f32`, `f64`, or another [`Element`], such as `u8` (computed in `f32`). Rows that lie one after the
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
    /// Whether values are missing: they are NaN.
    has_missing: bool,
}

/// Numbers that are copied before they enter the frame: they stay in the nearest cache.
const BATCH_NUMBERS: usize = 1 << 12;

/// Data of at least this many bytes fits in no cache.
const UNCACHED_BYTES: usize = 1 << 27;

impl<'a, T: Element> Dense<'a, T> {
    /// Points (n, d), each of weight 1: anything that views as a matrix, such as `&array` or `array.view()`. Points that may
    /// have no rows go into a [`batch`](Self::batch), those of a slice or a vector into [`of_rows`](Self::of_rows).
    ///
    /// # Errors
    /// [`Error::Empty`] without rows or columns, [`Error::NotFinite`] for NaN or infinite values,
    /// [`Error::TooLarge`] for values beyond a quarter of the largest `f32` (1e150 in `f64`).
    pub fn new(points: impl Into<ArrayView2<'a, T>>) -> Result<Self> {
        Self::check(points.into(), None, false)
    }

    /// Points (n, d) of which some values are missing, each of weight 1: NaN stands for a value that is not known. Fits and
    /// answers are about the known values of each row ([E55](crate::equations#e55)); points of which none is missing
    /// are those of [`new`](Self::new), bit for bit. [`impute`](crate::Mixture::impute) fills in what a model expects.
    ///
    /// k-means and mixtures take such rows, those whose columns depend on one another by conditional expectation; for directions they
    /// are an error of the fit.
    ///
    /// ```
    /// use coremix::prelude::*;
    /// use ndarray::array;
    ///
    /// let nan = f64::NAN;
    /// let x = array![[0.0, 0.1], [nan, 0.0], [0.2, nan], [9.0, 9.1], [9.1, nan], [nan, 8.9]];
    /// let model = algorithms::k_means(2).build()?.fit(&Dense::with_missing(&x)?)?.model;
    /// let labels = model.predict(&Dense::with_missing(&x)?)?;
    /// assert!((0..3).all(|n| labels[n] == labels[0] && labels[n + 3] == labels[3]));
    /// let filled = model.impute(&Dense::with_missing(&x)?)?;
    /// assert!(filled[[1, 0]] < 0.3 && filled[[5, 0]] > 8.7 && filled[[0, 1]] == 0.1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new), but NaN is no error. A column without any value is an error of a fit.
    pub fn with_missing(points: impl Into<ArrayView2<'a, T>>) -> Result<Self> {
        Self::check(points.into(), None, true)
    }

    /// Points with [missing values](Self::with_missing) and weights (n), as those of [`weighted`](Self::weighted).
    ///
    /// # Errors
    /// As [`with_missing`](Self::with_missing) and [`weighted`](Self::weighted).
    pub fn weighted_with_missing<W: Float>(
        points: impl Into<ArrayView2<'a, T>>,
        weights: impl Into<ArrayView1<'a, W>>,
    ) -> Result<Self> {
        Self::check(points.into(), Some(in_f64(weights.into())), true)
    }

    /// Points (n, d) to ask a model about, each of weight 1: as [`new`](Self::new), but there may be no rows. The answers
    /// about none are empty, and sums over them are 0. A fit refuses such data with [`Error::Empty`].
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
            return Self::check(points, None, false);
        }
        Ok(Self::of_none(dim))
    }

    /// No rows.
    fn of_none(dim: usize) -> Self {
        Self {
            values: Cow::Borrowed(&[]),
            dim,
            weights: None,
            summary: Summary::of_none(dim),
            has_missing: false,
        }
    }

    /// Rows of this number of columns, one after the other in a slice or a vector, each of weight 1. As in a
    /// [`batch`](Self::batch), there may be none. If values are missing,
    /// `ArrayView2::from_shape((n, columns), &values)` of [`coremix::ndarray`](crate::ndarray) is what
    /// [`with_missing`](Self::with_missing) takes.
    ///
    /// ```
    /// use coremix::prelude::*;
    ///
    /// let rows = [0.0_f32, 1.0, 0.1, 1.2, 8.0, 9.0, 8.2, 9.1];
    /// let data = Dense::of_rows(&rows, 2)?; // not copied
    /// let model = algorithms::k_means(2).build()?.fit(&data)?.model;
    /// let (labels, centres) = (model.predict(&data)?.to_vec(), model.means());
    /// assert!(labels[0] == labels[1] && labels[0] != labels[2]);
    /// assert_eq!(centres.as_slice().map(<[f32]>::len), Some(4));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] if the columns do not divide the number of values; otherwise as [`batch`](Self::batch).
    pub fn of_rows(values: impl Into<Cow<'a, [T]>>, columns: usize) -> Result<Self> {
        let values = values.into();
        match whole_rows("data", values.len(), columns)? {
            0 => Ok(Self::of_none(columns)),
            rows => Self::of_checked(values, rows, columns, None, false),
        }
    }

    /// [Rows of a slice or a vector](Self::of_rows) with weights (n) of `f64`, otherwise as those of [`weighted`](Self::weighted).
    ///
    /// # Errors
    /// As [`of_rows`](Self::of_rows) and [`weighted`](Self::weighted).
    pub fn of_weighted_rows(
        values: impl Into<Cow<'a, [T]>>,
        columns: usize,
        weights: impl Into<Cow<'a, [f64]>>,
    ) -> Result<Self> {
        let values = values.into();
        let rows = whole_rows("data", values.len(), columns)?;
        Self::of_checked(values, rows, columns, Some(weights.into()), false)
    }

    /// Points (n, d) with weights (n), of `f32` or `f64`: finite, not negative, not all zero. A row of weight `w` counts as
    /// `w` copies of it, a row of weight 0 as absent.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::LengthMismatch`], [`Error::Weight`] or [`Error::TotalWeight`] for
    /// the weights.
    pub fn weighted<W: Float>(
        points: impl Into<ArrayView2<'a, T>>,
        weights: impl Into<ArrayView1<'a, W>>,
    ) -> Result<Self> {
        Self::check(points.into(), Some(in_f64(weights.into())), false)
    }

    fn check(
        points: ArrayView2<'a, T>,
        weights: Option<Cow<'a, [f64]>>,
        may_miss: bool,
    ) -> Result<Self> {
        let values = match points.to_slice() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(points.iter().copied().collect()),
        };
        Self::of_checked(values, points.nrows(), points.ncols(), weights, may_miss)
    }

    /// Values (n, d), one row after the other, and their weights (n), once they have been looked at.
    fn of_checked(
        values: Cow<'a, [T]>,
        n: usize,
        dim: usize,
        weights: Option<Cow<'a, [f64]>>,
        may_miss: bool,
    ) -> Result<Self> {
        if let Some(weights) = &weights {
            same_length("weights", n, weights.len())?;
        }
        ensure(n > 0 && dim > 0, || Error::Empty { what: "data" })?;
        let known = if may_miss {
            missing::summary_of(&values, dim, weights.as_deref())?
        } else {
            None
        };
        let has_missing = known.is_some();
        let summary = match known {
            Some(summary) => summary,
            None => Summary::check(&values, dim, weights.as_deref(), "data")?,
        };
        Ok(Self {
            values,
            dim,
            weights,
            summary,
            has_missing,
        })
    }

    /// A block of other data, (n, d) values and (n) weights, to load rows from: nothing else may be asked of it.
    pub(crate) fn of_block(
        values: &'a [T],
        dim: usize,
        weights: Option<&'a [f64]>,
        has_missing: bool,
    ) -> Self {
        Self {
            values: Cow::Borrowed(values),
            dim,
            weights: weights.map(Cow::Borrowed),
            summary: Summary::of_none(0),
            has_missing,
        }
    }

    /// The points (n, d).
    #[must_use]
    pub fn points(&self) -> ArrayView2<'_, T> {
        let shape = (self.values.len() / self.dim, self.dim);
        ArrayView2::from_shape(shape, &self.values).expect("n x d numbers")
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

    /// Longer rows. A batch is copied before it enters the frame, so that many rows are on their way from memory at the same
    /// time. If no cache holds the data, the rows of the batch are touched first, because copying waits for each.
    #[inline(always)]
    fn enter_long(
        &self,
        mut rows: impl Iterator<Item = usize> + Clone,
        frame: &Frame<T::Float>,
        out: &mut [T::Float],
    ) {
        let stride = stride(self.dim);
        let far = size_of_val(&*self.values) >= UNCACHED_BYTES;
        for out in out.chunks_mut(stride * (BATCH_NUMBERS / stride).max(1)) {
            if far {
                for n in rows.clone().take(out.len() / stride) {
                    let row = self.row(n);
                    std::hint::black_box((row[0], row[self.dim - 1]));
                }
            }
            vectorised!({
                for (out, n) in out.chunks_exact_mut(stride).zip(&mut rows) {
                    for (out, x) in out.iter_mut().zip(self.row(n)) {
                        *out = x.widen();
                    }
                }
            });
            frame.first().enter(out, stride);
            features::enter(out, &frame.offset, &frame.scale, Frame::most());
        }
    }

    #[inline(always)]
    pub(crate) fn fill(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        frame: &Frame<T::Float>,
        into: &mut Rows<T::Float>,
    ) {
        if self.has_missing {
            let weights = self.weights.as_deref();
            let rows = rows.map(|n| (weight_of(weights, n), self.row(n)));
            return missing::fill(rows, frame, into);
        }
        into.reset(rows.len(), frame.dim());
        let stride = stride(frame.dim());
        match &self.weights {
            None => into.weights.resize(rows.len(), 1.0),
            Some(weights) => into.weights.extend(rows.clone().map(|n| weights[n])),
        }
        if frame.basis().is_some() {
            let places = rows.zip(into.values.chunks_exact_mut(stride));
            return places
                .for_each(|(n, out)| frame.enter(self.row(n).iter().map(|x| x.widen()), out));
        }
        let out = &mut into.values;
        if self.dim > 8 || !frame.is_plain() {
            return self.enter_long(rows, frame, out);
        }
        vectorised!({
            match self.dim {
                1 => self.enter_short::<1>(rows, frame, out),
                2 => self.enter_short::<2>(rows, frame, out),
                3 => self.enter_short::<3>(rows, frame, out),
                4 => self.enter_short::<4>(rows, frame, out),
                5 => self.enter_short::<5>(rows, frame, out),
                6 => self.enter_short::<6>(rows, frame, out),
                7 => self.enter_short::<7>(rows, frame, out),
                _ => self.enter_short::<8>(rows, frame, out),
            }
        });
    }
}

impl<T: Element> Dense<'static, T> {
    /// Points (n, d) that belong to the data, and their weights (n), if they have any.
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`weighted`](Self::weighted).
    pub fn owned(points: Array2<T>, weights: Option<Vec<f64>>) -> Result<Self> {
        let (n, dim) = points.dim();
        let values = if points.is_standard_layout() {
            let (mut values, from) = points.into_raw_vec_and_offset();
            values.drain(..from.unwrap_or(0));
            values.truncate(n * dim);
            values
        } else {
            points.iter().copied().collect()
        };
        Self::of_checked(Cow::Owned(values), n, dim, weights.map(Cow::Owned), false)
    }

    /// Rows (n, d) of other data with new weights (n): what [`Data::select`] returns. The summary is that of the `whole` data,
    /// except the number of rows and the total weight.
    pub fn part_of(whole: &Summary, points: Array2<T>, weights: Vec<f64>) -> Result<Self> {
        let part = Self::owned(points, Some(weights))?;
        Ok(Self {
            summary: whole.reweighted(part.weights.as_deref().unwrap_or_default()),
            ..part
        })
    }
}

impl<F: Float> Dense<'static, F> {
    /// Rows of other data, read into memory, with new weights.
    pub(super) fn selected<D: Data<F> + ?Sized>(
        data: &D,
        rows: &[usize],
        weights: Vec<f64>,
    ) -> Result<Self> {
        let dim = data.dim();
        let summary = data.summary();
        // A unit other than 1 only where numbers would be clamped: it is a power of two, so that the way there and back is exact, but
        // the smallest numbers have no room below it.
        let widest = summary.max_abs() / Frame::<F>::most().to_f64();
        let frame = Frame::new(&vec![0.0; dim], widest.max(1.0));
        let mut values = vec![F::zero(); rows.len() * dim];
        let read = parallel::map_chunks(&mut values, BLOCK * dim, |_, places, out| {
            let mut block = Rows::default();
            let rows = &rows[places.start / dim..places.end / dim];
            data.gather(rows, &frame, &mut block)?;
            let expected = out.len() / dim;
            let gathered = block.len();
            let is_as_said = block.entries().is_some() != data.kind().is_dense();
            if (gathered, block.dim) != (expected, dim) || !is_as_said {
                let columns = block.dim;
                let what = format!(
                    "{gathered} rows of {columns} coordinates gathered: there must be {expected}, with all of {dim}"
                );
                return Err(Error::stage(data.special().name, what));
            }
            for (i, out) in out.chunks_exact_mut(dim).enumerate() {
                block.leave(i, &frame, out);
            }
            Ok(())
        });
        parallel::all(read)?;
        if data.kind() == RowKind::Partial {
            return Ok(Self {
                values: Cow::Owned(values),
                dim,
                summary: summary.reweighted(&weights),
                weights: Some(Cow::Owned(weights)),
                has_missing: true,
            });
        }
        let values = Array2::from_shape_vec((rows.len(), dim), values).expect("n x d numbers");
        Self::part_of(summary, values, weights)
    }
}

/// Borrowed where they lie one after the other in `f64`, in which all sums are.
fn in_f64<W: Float>(weights: ArrayView1<'_, W>) -> Cow<'_, [f64]> {
    match weights.to_slice() {
        Some(slice) if TypeId::of::<W>() == TypeId::of::<f64>() => Cow::Borrowed(cast_slice(slice)),
        _ => Cow::Owned(weights.iter().map(|w| w.to_f64()).collect()),
    }
}

impl<T: Element> Data<T::Float> for Dense<'_, T> {
    fn kind(&self) -> RowKind {
        missing::kind(self.has_missing)
    }

    fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    #[inline(never)]
    fn load(
        &self,
        rows: Range<usize>,
        frame: &Frame<T::Float>,
        into: &mut Rows<T::Float>,
    ) -> Result<()> {
        self.fill(rows, frame, into);
        Ok(())
    }

    #[inline(never)]
    fn gather(
        &self,
        rows: &[usize],
        frame: &Frame<T::Float>,
        into: &mut Rows<T::Float>,
    ) -> Result<()> {
        self.fill(rows.iter().copied(), frame, into);
        Ok(())
    }

    #[inline(never)]
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<T::Float> + '_>> {
        let mut values = Vec::with_capacity(rows.len() * self.dim);
        for &n in rows {
            values.extend_from_slice(self.row(n));
        }
        Ok(Box::new(Dense {
            values: Cow::Owned(values),
            dim: self.dim,
            summary: self.summary.reweighted(&weights),
            weights: Some(Cow::Owned(weights)),
            has_missing: self.has_missing,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use approx::assert_abs_diff_eq;
    use ndarray::Array1;

    fn loaded_rows_are_exact<T: Element>(x: &Array2<T>, within: f64) {
        let mut weights = Array1::ones(x.nrows());
        weights[0] = 0.0;
        let data = Dense::weighted(x.view(), weights.view()).unwrap();
        let frame = Frame::of(data.summary());
        let mut rows = Rows::default();
        data.load(0..x.nrows(), &frame, &mut rows).unwrap();
        assert!(rows.row(0).iter().all(|z| z.to_f64().is_finite()));
        for (i, j) in (1..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| (i, j))) {
            let from_offset = x[[i, j]].widen().to_f64() - frame.offset[j].to_f64();
            let z = from_offset * frame.scale[j].to_f64();
            let within = within * (1.0 + z.abs());
            assert_abs_diff_eq!(rows.row(i)[j].to_f64(), z, epsilon = within);
        }
    }

    /// All lengths of rows, the number types, and a row of weight 0 far away.
    #[test]
    fn rows_are_loaded_as_they_are() {
        for d in 1..=50 {
            let mut rng = Rng::from_seed(d as u64);
            let mut x = Array2::from_shape_fn((9, d), |_| rng.normal());
            loaded_rows_are_exact(&x.mapv(|x| (x * 20.0 + 128.0) as u8), 1e-5);
            x.row_mut(0).fill(1e30);
            loaded_rows_are_exact(&x.mapv(|x| x as f32), 1e-5);
            loaded_rows_are_exact(&x, 1e-13);
        }
    }
}
