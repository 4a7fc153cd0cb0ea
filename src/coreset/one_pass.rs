//! Lightweight coresets of rows that come once: merge and reduce.

use super::Lightweight;
use crate::base::error::{
    Error, Result, ensure, positive, same_columns, same_length, sound_value, sound_weight,
    whole_rows,
};
use crate::base::float::{Element, Float};
use crate::base::rng::{Purpose, Streams};
use crate::data::{Data, Dense, View, check_rows};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// A lightweight coreset of rows that come once, block after block, and are not kept.
///
/// [`Lightweight`] reads the rows twice: for their mean, and for their distances to it. This draws from what is there, and draws
/// again from what was drawn ("merge and reduce", Har-Peled and Mazumdar, STOC 2004; Bentley and Saxe 1980;
/// [E42](crate::equations#e42)). It keeps coresets of parts of the stream, no two of which stand for about as many rows.
///
/// The law of all coresets holds: the expected weight of every row is its old weight. The coreset depends on the seed and on
/// the order of the rows, but not on how they are split into blocks. Rows may have [missing values](Self::may_miss): their
/// distances are over the known ones, as those of `Lightweight`.
///
/// ```
/// use coremix::coreset::OnePass;
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(400).generate::<f32>(1)?;
/// # let points = birch.points; // 10,000 points in 25 clusters
/// let mut coreset = OnePass::<f32>::new(2, 1_000, 42)?;
/// for block in points.axis_chunks_iter(ndarray::Axis(0), 300) {
///     coreset.push(block)?; // from a socket, say
/// }
/// let (rows, weights) = coreset.finish()?;
/// assert!(rows.nrows() <= 1_000 && (weights.sum() / 10_000.0 - 1.0).abs() < 0.1);
///
/// let data = Dense::weighted(&rows, &weights)?;
/// let fit = algorithms::k_means(25).build()?.fit(&data)?;
/// # assert_eq!(fit.model.means().dim(), (25, 2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub struct OnePass<T> {
    dim: usize,
    size: usize,
    seed: u64,
    may_miss: bool,
    /// Rows as they came, at most as many as a list.
    fresh: List<T>,
    /// List i stands for 2^i times as many rows as the first one.
    lists: Vec<Option<List<T>>>,
    /// Rows that came, and reductions so far.
    rows: usize,
    reductions: usize,
    /// Why a list could not be drawn: its rows are lost.
    #[cfg_attr(feature = "files", serde(skip))]
    broken: Option<Error>,
}

/// Why the rows of a sequence were not all taken: the sequence has an error of its own type, `E`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Stopped<E> {
    /// The sequence failed.
    #[error("the rows end early")]
    Rows(#[source] E),
    /// The coreset refused what came.
    #[error(transparent)]
    Coreset(#[from] Error),
}

#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
struct List<T> {
    values: Vec<T>,
    weights: Vec<f64>,
}

/// Rows of a list, in those of the coreset: only the last reduction is to that size.
const LONGER: usize = 2;

impl<T: Element> OnePass<T> {
    /// A coreset of `size` draws, at least 1, of rows of `columns` numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`] for 0 columns or draws.
    pub fn new(columns: usize, size: usize, seed: u64) -> Result<Self> {
        positive("columns", columns)?;
        positive("size", size)?;
        Ok(Self {
            dim: columns,
            size,
            seed,
            may_miss: false,
            fresh: List::default(),
            lists: Vec::new(),
            rows: 0,
            reductions: 0,
            broken: None,
        })
    }

    /// Whether values of the next rows may be missing: NaN. They are so in the coreset, for [`Dense::weighted_with_missing`].
    /// Default: no.
    ///
    /// ```
    /// use coremix::coreset::OnePass;
    /// # use ndarray::array;
    /// let mut coreset = OnePass::<f64>::new(2, 100, 42)?.may_miss(true);
    /// coreset.push(array![[1.0, f64::NAN], [2.0, 3.0]].view())?;
    /// let (rows, weights) = coreset.finish()?;
    /// assert!(rows[[0, 1]].is_nan() && weights.sum() == 2.0);
    /// # Ok::<(), coremix::Error>(())
    /// ```
    #[must_use]
    pub fn may_miss(self, may_miss: bool) -> Self {
        Self { may_miss, ..self }
    }

    /// Takes a block of rows (n, d), each of weight 1. There may be none.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`]; [`Error::NotFinite`] and [`Error::TooLarge`] with the number of the row in the
    /// stream. Then none of the block is taken.
    pub fn push(&mut self, rows: ArrayView2<'_, T>) -> Result<()> {
        self.take(rows, None)
    }

    /// As [`push`](Self::push), of rows that lie one after the other in a slice.
    ///
    /// # Errors
    /// As [`push`](Self::push); [`Error::Parameter`] for a part of a row.
    pub fn push_rows(&mut self, rows: &[T]) -> Result<()> {
        let n = whole_rows("rows", rows.len(), self.dim)?;
        let view = ArrayView2::from_shape((n, self.dim), rows);
        self.push(view.expect("n x d numbers"))
    }

    /// Takes all rows of a sequence, such as those that a cursor of a database or a reader of a file gives, until it fails. Each
    /// item is a row, or several rows one after the other.
    ///
    /// ```
    /// use coremix::coreset::{OnePass, Stopped};
    /// use std::num::ParseFloatError;
    ///
    /// let lines = ["1 2", "3 4", "5 x"];
    /// let rows = lines.iter().map(|line| line.split(' ').map(str::parse).collect());
    /// let mut coreset = OnePass::<f32>::new(2, 100, 42)?;
    /// let stopped: Stopped<ParseFloatError> = coreset.push_all::<Vec<f32>, _>(rows).unwrap_err();
    /// assert!(matches!(stopped, Stopped::Rows(_)) && coreset.rows() == 2);
    /// # Ok::<(), coremix::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Stopped::Rows`] with the error of the sequence, [`Stopped::Coreset`] with that of [`push_rows`](Self::push_rows). The
    /// items before it are taken.
    pub fn push_all<R: AsRef<[T]>, E>(
        &mut self,
        rows: impl IntoIterator<Item = Result<R, E>>,
    ) -> Result<(), Stopped<E>> {
        for item in rows {
            self.push_rows(item.map_err(Stopped::Rows)?.as_ref())?;
        }
        Ok(())
    }

    /// Takes rows with weights (n). Rows of weight 0 are left out.
    ///
    /// # Errors
    /// As [`push`](Self::push); [`Error::LengthMismatch`] and [`Error::Weight`] for the weights. [`Error::TotalWeight`] for
    /// weights whose sum cannot be computed with: nothing can be drawn after that, and every further call says so.
    pub fn push_weighted(
        &mut self,
        rows: ArrayView2<'_, T>,
        weights: ArrayView1<'_, f64>,
    ) -> Result<()> {
        self.take(rows, Some(weights))
    }

    /// The coreset: rows (N', d) and weights (N'). Where no more rows came than it has draws, these are the rows.
    ///
    /// # Errors
    /// [`Error::Empty`] if no row of positive weight came; [`Error::TotalWeight`] for weights whose sum cannot be computed
    /// with.
    pub fn finish(mut self) -> Result<(Array2<T>, Array1<f64>)> {
        self.whole()?;
        let lists = std::mem::take(&mut self.lists);
        // The rows that came last, then the lists.
        let mut gathered = std::mem::take(&mut self.fresh);
        for list in lists.into_iter().flatten() {
            gathered.append(list);
        }
        ensure(!gathered.weights.is_empty(), || Error::Empty {
            what: "stream",
        })?;
        let reduced = self.reduced(gathered, self.size)?;
        let shape = (reduced.weights.len(), self.dim);
        let rows = Array2::from_shape_vec(shape, reduced.values).expect("n x d numbers");
        Ok((rows, Array1::from_vec(reduced.weights)))
    }

    /// Rows that came so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn take(
        &mut self,
        rows: ArrayView2<'_, T>,
        weights: Option<ArrayView1<'_, f64>>,
    ) -> Result<()> {
        self.whole()?;
        let (n, dim) = rows.dim();
        same_columns("rows", self.dim, dim)?;
        if self.may_miss {
            for ((row, column), x) in rows.indexed_iter() {
                let value = x.widen().to_f64();
                let place = (self.rows + row, column);
                if !value.is_nan() {
                    sound_value("data", place, value, T::Float::LIMIT)?;
                }
            }
        } else {
            check_rows(rows, None, "data", T::Float::LIMIT, self.rows)?;
        }
        if let Some(weights) = &weights {
            same_length("weights", n, weights.len())?;
            for (row, weight) in (self.rows..).zip(weights) {
                sound_weight(row, *weight)?;
            }
        }
        for (i, row) in rows.outer_iter().enumerate() {
            let weight = weights.as_ref().map_or(1.0, |weights| weights[i]);
            if weight > 0.0 {
                self.fresh.values.extend(row);
                self.fresh.weights.push(weight);
                if self.fresh.weights.len() == LONGER.saturating_mul(self.size) {
                    let full = std::mem::take(&mut self.fresh);
                    if let Err(error) = self.put(full) {
                        self.broken = Some(error.clone());
                        return Err(error);
                    }
                }
            }
        }
        self.rows += n;
        Ok(())
    }

    /// An error if rows were lost.
    fn whole(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Puts a list in its place, after one of each shorter part of the stream: as 1 is added to a binary number.
    fn put(&mut self, mut list: List<T>) -> Result<()> {
        for place in 0.. {
            if place == self.lists.len() {
                self.lists.push(None);
            }
            match self.lists[place].take() {
                None => {
                    self.lists[place] = Some(list);
                    break;
                }
                Some(mut older) => {
                    older.append(list);
                    list = self.reduced(older, LONGER.saturating_mul(self.size))?;
                }
            }
        }
        Ok(())
    }

    /// A lightweight coreset of a list.
    fn reduced(&mut self, list: List<T>, size: usize) -> Result<List<T>> {
        let shape = (list.weights.len(), self.dim);
        let rows = ArrayView2::from_shape(shape, &list.values).expect("n x d numbers");
        let is_missing = |x: &T| x.widen().to_f64().is_nan();
        let weights = ArrayView1::from(&list.weights);
        let data = if list.values.iter().any(is_missing) {
            Dense::weighted_with_missing(rows, weights)?
        } else {
            Dense::weighted(rows, weights)?
        };
        let streams = Streams::new(self.seed, 0);
        let mut rng = streams.at(Purpose::Coreset, self.reductions, 1);
        self.reductions += 1;
        let frame = data.frame();
        let drawn = Lightweight::new(size).draw(View::new(&data, &frame), true, &mut rng)?;
        let Some(subset) = drawn else {
            return Ok(list);
        };
        // Copies of a row are one row with their weight.
        let mut reduced = List::default();
        let mut last = None;
        for (row, weight) in subset.rows.into_iter().zip(subset.weights) {
            match reduced.weights.last_mut() {
                Some(sum) if last == Some(row) => *sum += weight,
                _ => {
                    let values = &list.values[row * self.dim..][..self.dim];
                    reduced.values.extend_from_slice(values);
                    reduced.weights.push(weight);
                }
            }
            last = Some(row);
        }
        Ok(reduced)
    }
}

impl<T: Element> List<T> {
    fn append(&mut self, other: Self) {
        self.values.extend(other.values);
        self.weights.extend(other.weights);
    }
}
