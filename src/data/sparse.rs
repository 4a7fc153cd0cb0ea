//! Sparse rows: a list of the columns that are not 0, and their values.

use super::known_sums::KnownSums;
use super::{Data, Directions, Frame, RowKind, Rows, Special, Summary, weight_of};
use crate::base::error::{Error, Result, ensure, same_length, sound_value, sound_weight};
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::rows::{First, clamped};
use std::borrow::Cow;
use std::ops::Range;

/// Rows (n, d) in compressed form, as text has them: for each row the columns whose values are not 0, and these values.
///
/// A value that is not there is 0, and fits are those of [`Dense`](super::Dense) rows with these zeros, up to rounding; but memory and
/// time follow the values that are there, and no n x d copy is made. Centres are dense: (k, d) numbers.
///
/// k-means, spherical and diagonal covariances, and directions take such rows; families with full covariances do not. Searches with
/// bounds, and a subspace, are for dense rows: phases that ask for these search all components.
///
/// ```
/// use coremix::data::Sparse;
/// use coremix::prelude::*;
///
/// // [[1, 0, 0], [0.9, 0, 0.1], [0, 2, 0], [0, 2.1, 0]]
/// let (starts, columns) = ([0, 1, 3, 4, 5], [0, 0, 2, 1, 1]);
/// let values = [1.0, 0.9, 0.1, 2.0, 2.1];
/// let data = Sparse::new(3, &starts, &columns, &values)?;
/// let labels = algorithms::k_means(2).build()?.fit(&data)?.model.predict(&data)?;
/// assert!(labels[0] == labels[1] && labels[2] == labels[3] && labels[0] != labels[2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sparse<'a, F: Float> {
    dim: usize,
    /// (n + 1).
    starts: Cow<'a, [usize]>,
    ids: Cow<'a, [u32]>,
    values: Cow<'a, [F]>,
    weights: Option<Cow<'a, [f64]>>,
    summary: Summary,
}

impl<'a, F: Float> Sparse<'a, F> {
    /// Rows of `dim` columns, each of weight 1. Row `i` has the values `values[starts[i]..starts[i + 1]]` in the columns `ids` at the
    /// same places: `starts` has n + 1 numbers, which begin with 0, do not fall, and end with the number of values; the columns of a
    /// row ascend. These are `indptr`, `indices` and `data` of a CSR matrix in canonical form.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows or columns, [`Error::Stage`] for lists that are no rows, [`Error::NotFinite`] and
    /// [`Error::TooLarge`] as for [`Dense::new`](super::Dense::new).
    pub fn new(
        dim: usize,
        starts: impl Into<Cow<'a, [usize]>>,
        ids: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [F]>>,
    ) -> Result<Self> {
        Self::checked(dim, starts.into(), ids.into(), values.into(), None)
    }

    /// Rows with weights (n): finite, not negative, not all zero.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::LengthMismatch`], [`Error::Weight`] or [`Error::TotalWeight`] for the weights.
    pub fn weighted(
        dim: usize,
        starts: impl Into<Cow<'a, [usize]>>,
        ids: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [F]>>,
        weights: impl Into<Cow<'a, [f64]>>,
    ) -> Result<Self> {
        let weights = Some(weights.into());
        Self::checked(dim, starts.into(), ids.into(), values.into(), weights)
    }

    fn checked(
        dim: usize,
        starts: Cow<'a, [usize]>,
        ids: Cow<'a, [u32]>,
        values: Cow<'a, [F]>,
        weights: Option<Cow<'a, [f64]>>,
    ) -> Result<Self> {
        let n = starts.len().saturating_sub(1);
        ensure(n > 0 && dim > 0, || Error::Empty { what: "data" })?;
        let wrong = |what: String| Err(Error::stage("Sparse", what));
        if u32::try_from(dim - 1).is_err() {
            return wrong(format!("{dim} columns are more than 32 bits number"));
        }
        same_length("columns of values", values.len(), ids.len())?;
        if let Some(weights) = &weights {
            same_length("weights", n, weights.len())?;
        }
        if starts[0] != 0 || starts[n] != values.len() {
            let first = starts[0];
            let last = starts[n];
            let what = format!(
                "rows start at {first} and end at {last}: they must start at 0, and end at {}",
                values.len()
            );
            return wrong(what);
        }
        if let Some(row) = (0..n).find(|row| starts[*row] > starts[row + 1]) {
            return wrong(format!("row {row} ends before it starts"));
        }
        let mut data = Self {
            dim,
            starts,
            ids,
            values,
            weights,
            summary: Summary::default(),
        };
        data.summary = data.summary_after(&First::Nothing)?;
        Ok(data)
    }

    fn weight(&self, n: usize) -> f64 {
        weight_of(self.weights.as_deref(), n)
    }

    fn row(&self, n: usize) -> (&[u32], &[F]) {
        let places = self.starts[n]..self.starts[n + 1];
        (&self.ids[places.clone()], &self.values[places])
    }

    /// Checks the rows, and sums them up as they are after this step, which has factors.
    fn summary_after(&self, first: &First) -> Result<Summary> {
        /// Each has sums of all columns.
        const PARTS: usize = 8;
        let size = self.len().div_ceil(PARTS).max(BLOCK);
        let blocks = parallel::map_blocks(self.len(), size, |_, rows| {
            let mut sums = KnownSums::new(self.dim);
            for n in rows {
                let weight = self.weight(n);
                sound_weight(n, weight)?;
                self.check_row(n)?;
                let (ids, values) = self.row(n);
                let factor = first.factor(values);
                let known = ids.iter().zip(values);
                let known = known.map(|(&j, x)| (j as usize, x.to_f64() * factor));
                sums.push(weight, known, &[]);
            }
            Ok(sums)
        });
        let mut total = KnownSums::new(self.dim);
        for block in blocks {
            total.merge(&block?);
        }
        total.with_zeros().finish(&vec![0.0; self.dim])
    }

    fn check_row(&self, row: usize) -> Result<()> {
        let (ids, values) = self.row(row);
        let place = ids.windows(2).position(|pair| pair[0] >= pair[1]);
        if let Some(place) = place {
            let [one, next] = [ids[place], ids[place + 1]];
            let what =
                format!("row {row}: column {next} comes after column {one}: columns must ascend");
            return Err(Error::stage("Sparse", what));
        }
        if let Some(last) = ids.last().filter(|last| **last as usize >= self.dim) {
            let what = format!("row {row}: column {last} must be below {}", self.dim);
            return Err(Error::stage("Sparse", what));
        }
        let mut pairs = ids.iter().zip(values);
        pairs.try_for_each(|(&column, value)| {
            sound_value("data", (row, column as usize), value.to_f64(), F::LIMIT)
        })
    }

    fn fill(
        &self,
        rows: impl ExactSizeIterator<Item = usize>,
        frame: &Frame<F>,
        into: &mut Rows<F>,
    ) {
        /// With more coordinates that every row has, a block of rows becomes dense.
        const MANY: usize = 4;
        let most = Frame::most();
        let is_whole = |j: &u32| frame.offset[*j as usize] != F::zero();
        // Zeros are other numbers there.
        let whole: Vec<u32> = (0..self.dim as u32).filter(is_whole).collect();
        let first = frame.first();
        if !first.has_factors() || MANY * whole.len() > self.dim {
            let rows: Vec<usize> = rows.collect();
            return self.fill_dense(&rows, frame, into);
        }
        into.reset_sparse(frame, whole.clone());
        let mut known = Vec::new();
        let mut entered = Vec::new();
        for n in rows {
            let (ids, values) = self.row(n);
            let factor = first.factor(values);
            let enter = |j: u32, x: F| {
                let x = F::from_f64(x.to_f64() * factor);
                let j = j as usize;
                clamped((x - frame.offset[j]) * frame.scale[j], most)
            };
            let pairs = || ids.iter().zip(values);
            if whole.is_empty() {
                into.push(self.weight(n), ids, pairs().map(|(j, x)| enter(*j, *x)));
                continue;
            }
            let stored = |j: &u32| ids.binary_search(j).map_or(F::zero(), |at| values[at]);
            known.clone_from(&whole);
            entered.clear();
            entered.extend(whole.iter().map(|j| enter(*j, stored(j))));
            for (j, x) in pairs().filter(|(j, _)| !is_whole(j)) {
                known.push(*j);
                entered.push(enter(*j, *x));
            }
            into.push(self.weight(n), &known, entered.iter().copied());
        }
    }

    fn fill_dense(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) {
        let weights = rows.iter().map(|n| self.weight(*n));
        let read = |i: usize, out: &mut [F]| {
            out.fill(F::zero());
            let (ids, values) = self.row(rows[i]);
            (ids.iter().zip(values)).for_each(|(&j, &x)| out[j as usize] = x);
            Ok(())
        };
        // All values were checked.
        into.fill(frame, weights, read).ok();
    }
}

impl<F: Float> Directions for Sparse<'_, F> {
    fn sum_up(&self) -> Result<Summary> {
        self.summary_after(&First::Length)
    }
}

impl<F: Float> Data<F> for Sparse<'_, F> {
    fn kind(&self) -> RowKind {
        RowKind::Sparse
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
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
    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.fill(rows, frame, into);
        Ok(())
    }

    #[inline(never)]
    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.fill(rows.iter().copied(), frame, into);
        Ok(())
    }

    #[inline(never)]
    fn special(&self) -> Special<'_> {
        Special {
            directions: Some(self),
            ..Special::of::<Self>()
        }
    }

    #[inline(never)]
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>> {
        let mut starts = vec![0];
        let mut ids = Vec::new();
        let mut values = Vec::new();
        for &n in rows {
            let (row_ids, row_values) = self.row(n);
            ids.extend_from_slice(row_ids);
            values.extend_from_slice(row_values);
            starts.push(ids.len());
        }
        Ok(Box::new(Sparse {
            dim: self.dim,
            starts: starts.into(),
            ids: ids.into(),
            values: values.into(),
            summary: self.summary.reweighted(&weights),
            weights: Some(weights.into()),
        }))
    }
}
