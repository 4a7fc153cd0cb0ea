//! Making a sketch in one pass over blocks of rows.

use super::known_sums::KnownSums;
use super::summary::{check_rows, nearest_zero};
use super::{Data, Dense, Sketch};
use crate::base::error::{Error, Result, positive, require, same_columns, same_length};
use crate::base::float::{Element, Float};
use crate::base::parallel::{self, BLOCK};
use crate::base::rng::{Purpose, Streams};
use crate::rows::Basis;
use ndarray::{ArrayView1, ArrayView2, Axis, Slice};
use std::ops::Range;

/// Takes rows block by block and keeps a few coordinates of each: see [`Sketch`].
///
/// The sketch does not depend on how the rows are split into blocks. Row numbers in errors count the rows of all blocks.
///
/// ```
/// use coremix::prelude::*;
/// use ndarray::Array2;
///
/// let block = |b: usize| Array2::from_shape_fn((100, 8), |(n, j)| ((n + b) * j % 7) as f32);
/// let mut builder = Sketch::builder(8, 3, 1).shared(1);
/// for b in 0..5 {
///     builder.push(block(b).view())?; // the block can be dropped
/// }
/// let sketch = builder.finish()?;
/// assert_eq!(sketch.indices().dim(), (500, 3));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is finished"]
pub struct SketchBuilder<F> {
    settings: Settings,
    /// Whether a setting came after the first rows.
    late: bool,
    making: Option<Making<F>>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    columns: usize,
    q: usize,
    seed: u64,
    shared: usize,
}

impl<F: Float> Sketch<F> {
    /// `q` coordinates of each of the points (n, P), chosen by `seed`; each point has weight 1.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows or columns, [`Error::Parameter`] if `q` is 0 or more than P,
    /// [`Error::NotFinite`] for NaN or infinite values. [`Error::TooLarge`] for values beyond a quarter of the largest `f32`
    /// (1e150 in `f64`) divided by the square root of P: coordinates are sums over all columns.
    pub fn new<T: Element<Float = F>>(
        points: ArrayView2<'_, T>,
        q: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::of_dense(&Dense::new(points)?, q, seed)
    }

    /// A sketch of rows in memory, with their weights.
    pub fn of_dense<T: Element<Float = F>>(
        data: &Dense<'_, T>,
        q: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut builder = Self::builder(data.points().ncols(), q, seed);
        builder.take(data.points(), data.weights())?;
        builder.finish()
    }

    /// A sketch made in one pass: rows of `columns` numbers, P, come in blocks of any size and can be dropped; `q`
    /// coordinates of each are kept, chosen by `seed`. Nothing is checked before the first rows.
    pub fn builder(columns: usize, q: usize, seed: u64) -> SketchBuilder<F> {
        SketchBuilder::new(columns, q, seed)
    }
}

impl<F: Float> SketchBuilder<F> {
    pub(super) fn new(columns: usize, q: usize, seed: u64) -> Self {
        let settings = Settings {
            columns,
            q,
            seed,
            shared: 0,
        };
        Self {
            settings,
            late: false,
            making: None,
        }
    }

    /// How many of the q coordinates are the same for all rows, $Q_S$ of \[SG\]. Default 0: then every coordinate is known to
    /// about equally many rows, and no component lacks one for long.
    pub fn shared(mut self, shared: usize) -> Self {
        self.settings.shared = shared;
        self.late |= self.making.is_some();
        self
    }

    /// Takes rows (any number, P), each of weight 1. Without rows nothing happens.
    ///
    /// # Errors
    /// [`Error::Parameter`] for settings out of range, [`Error::DimensionMismatch`] for another number of columns,
    /// [`Error::NotFinite`] and [`Error::TooLarge`] as in [`Sketch::new`]. Nothing of the block is taken then.
    pub fn push<T: Element<Float = F>>(&mut self, rows: ArrayView2<'_, T>) -> Result<()> {
        self.take(rows, None)
    }

    /// Takes rows (any number, P) with their weights: finite and not negative.
    ///
    /// # Errors
    /// As [`push`](Self::push); [`Error::LengthMismatch`] or [`Error::Weight`] for the weights.
    pub fn push_weighted<T: Element<Float = F>>(
        &mut self,
        rows: ArrayView2<'_, T>,
        weights: ArrayView1<'_, f64>,
    ) -> Result<()> {
        same_length("weights", rows.nrows(), weights.len())?;
        self.take(rows, Some(&weights.to_vec()))
    }

    fn take<T: Element<Float = F>>(
        &mut self,
        rows: ArrayView2<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        self.settings.check(self.late)?;
        same_columns("data", self.settings.columns, rows.ncols())?;
        if rows.nrows() == 0 {
            return Ok(());
        }
        let taken = self.making.as_ref().map_or(0, Making::len);
        check(rows, weights, taken, self.settings.limit::<F>())?;
        let new = || Making::new(&self.settings, rows.row(0));
        self.making.get_or_insert_with(new).take(rows, weights);
        Ok(())
    }

    /// The sketch of all rows.
    ///
    /// # Errors
    /// [`Error::Parameter`] for settings out of range, [`Error::Empty`] if no row came, [`Error::TotalWeight`] if the
    /// weights sum to nothing or too much.
    pub fn finish(self) -> Result<Sketch<F>> {
        self.settings.check(self.late)?;
        let making = self.making.ok_or(Error::Empty { what: "data" })?;
        making.finish()
    }
}

impl Settings {
    fn check(&self, late: bool) -> Result<()> {
        let Self {
            columns, q, shared, ..
        } = *self;
        let rule = "must be set before the first rows";
        require(!late, "shared", "changed after rows came", rule)?;
        positive("columns", columns)?;
        let rule = "must be at most 2^31";
        require(columns <= 1 << 31, "columns", columns, rule)?;
        positive("q", q)?;
        let rule = "must be at most the number of columns";
        require(q <= columns, "q", q, rule)?;
        require(shared <= q, "shared", shared, "must be at most q")
    }

    /// The largest value allowed: a coordinate is at most this times the square root of their number.
    fn limit<F: Float>(&self) -> f64 {
        F::LIMIT / (self.columns as f64).sqrt()
    }
}

#[derive(Debug)]
struct Making<F> {
    basis: Basis,
    choice: Choice,
    /// The row (P) that all entries are relative to, and its coordinates (P): nothing cancels in the moments, and far-off
    /// data keeps its digits. It is the first one of positive weight; until that comes, the first one.
    row: Vec<f64>,
    pivot: Vec<f64>,
    entries: usize,
    ids: Vec<u32>,
    values: Vec<F>,
    /// Empty as long as all weights are 1.
    weights: Vec<f64>,
    /// Sums over all whole groups of [`BLOCK`] rows.
    total: KnownSums,
    /// Sums over the rows after these.
    rest: KnownSums,
}

/// A row before it enters a basis.
fn wide<T: Element>(row: ArrayView1<'_, T>) -> impl Iterator<Item = f64> {
    row.into_iter().map(|x| x.widen().to_f64())
}

impl<F: Float> Making<F> {
    fn new<T: Element<Float = F>>(settings: &Settings, first: ArrayView1<'_, T>) -> Self {
        let basis = Basis::new(settings.seed, settings.columns);
        let dim = settings.columns;
        let row = wide(first).collect::<Vec<f64>>();
        let mut pivot = row.clone();
        basis.enter(&mut pivot);
        Self {
            choice: Choice::new(settings, dim),
            pivot,
            row,
            entries: settings.q,
            ids: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
            total: KnownSums::new(dim),
            rest: KnownSums::new(dim),
            basis,
        }
    }

    fn len(&self) -> usize {
        self.values.len() / self.entries
    }

    /// Rows that were checked.
    fn take<T: Element<Float = F>>(&mut self, rows: ArrayView2<'_, T>, weights: Option<&[f64]>) {
        let n = self.len();
        match weights {
            Some(weights) => {
                self.weights.resize(n, 1.0);
                self.weights.extend_from_slice(weights);
            }
            None if !self.weights.is_empty() => self.weights.resize(n + rows.nrows(), 1.0),
            None => {}
        }
        let mut from = 0;
        if self.total.rows + self.rest.rows == 0 {
            let first = |w: &[f64]| w.iter().position(|w| *w > 0.0);
            from = weights.map_or(Some(0), first).unwrap_or(rows.nrows());
            self.keep(rows, weights, 0..from);
            if from < rows.nrows() {
                self.row = wide(rows.row(from)).collect();
                let mut pivot = self.row.clone();
                self.basis.enter(&mut pivot);
                self.turn_to(pivot);
            }
        }
        self.keep(rows, weights, from..rows.nrows());
    }

    /// Makes entries relative to other coordinates (P).
    fn turn_to(&mut self, pivot: Vec<f64>) {
        for (&j, value) in self.ids.iter().zip(&mut self.values) {
            let j = j as usize;
            *value = F::from_f64(value.to_f64() + (self.pivot[j] - pivot[j]));
        }
        self.pivot = pivot;
    }

    /// Keeps entries of some of the rows, in groups that depend on row numbers alone.
    fn keep<T: Element<Float = F>>(
        &mut self,
        rows: ArrayView2<'_, T>,
        weights: Option<&[f64]>,
        which: Range<usize>,
    ) {
        let start = self.len();
        let q = self.entries;
        let dim = self.basis.columns();
        let end = start + which.len();
        self.ids.resize(end * q, 0);
        self.values.resize(end * q, F::zero());
        let mut ids = &mut self.ids[start * q..];
        let mut values = &mut self.values[start * q..];
        let mut groups = Vec::new();
        let mut from = start;
        while from < end {
            let to = end.min((from / BLOCK + 1) * BLOCK);
            let of_group = ..(to - from) * q;
            let parts = (ids.split_off_mut(of_group)).zip(values.split_off_mut(of_group));
            let sums = std::mem::replace(&mut self.rest, KnownSums::new(dim));
            groups.extend(parts.map(|part| (from..to, part, sums)));
            from = to;
        }
        let done = parallel::map_parts(groups, |_, (range, (ids, values), mut sums)| {
            let mut coordinates = vec![0.0; dim];
            let mut scratch = Vec::new();
            let entries = ids.chunks_exact_mut(q).zip(values.chunks_exact_mut(q));
            for (n, (ids, values)) in range.clone().zip(entries) {
                let row = n - start + which.start;
                let weight = weights.map_or(1.0, |weights| weights[row]);
                self.choice.draw(n, ids, &mut scratch);
                // The difference is taken before the transform: it is linear.
                let relative = wide(rows.row(row)).zip(&self.row).map(|(x, p)| x - p);
                let places = coordinates.iter_mut().zip(relative);
                places.for_each(|(out, x)| *out = x);
                self.basis.enter(&mut coordinates);
                for (&j, value) in ids.iter().zip(&mut *values) {
                    *value = F::from_f64(coordinates[j as usize]);
                }
                let known = ids.iter().zip(&*values);
                let known = known.map(|(&j, x)| (j as usize, x.to_f64()));
                sums.push(weight, known, &coordinates);
            }
            (range, sums)
        });
        for (range, sums) in done {
            match range.end % BLOCK {
                0 => self.total.merge(&sums),
                _ => self.rest = sums,
            }
        }
    }

    fn finish(mut self) -> Result<Sketch<F>> {
        self.total.merge(&self.rest);
        let summary = self.total.finish(&self.pivot)?;
        // Relative to the offset of the frame, rows are loaded without looking at each coordinate.
        let offset = nearest_zero(&summary.range).map(|x| F::from_f64(x).to_f64());
        self.turn_to(offset.collect());
        Ok(Sketch {
            basis: self.basis,
            pivot: self.pivot.into(),
            entries: self.entries,
            ids: self.ids,
            values: self.values,
            weights: (!self.weights.is_empty()).then_some(self.weights),
            summary,
        })
    }
}

#[derive(Debug)]
struct Choice {
    streams: Streams,
    shared: Vec<u32>,
    rest: Vec<u32>,
}

impl Choice {
    fn new(settings: &Settings, dim: usize) -> Self {
        let streams = Streams::new(settings.seed, 0);
        let mut rest: Vec<u32> = (0..dim as u32).collect();
        // Block 0 has drawn the signs.
        let mut rng = streams.at(Purpose::Sketch, 0, 1);
        let draw = |_| rest.swap_remove(rng.below(rest.len()));
        let shared = (0..settings.shared).map(draw).collect();
        rest.sort_unstable();
        Self {
            streams,
            shared,
            rest,
        }
    }

    /// The coordinates of row `n`, ascending: the shared ones, and others at random; through `rest`.
    fn draw(&self, n: usize, out: &mut [u32], rest: &mut Vec<u32>) {
        let (shared, others) = out.split_at_mut(self.shared.len());
        shared.copy_from_slice(&self.shared);
        let mut rng = self.streams.at(Purpose::Sketch, 1 + (n >> 32), n);
        rest.clone_from(&self.rest);
        for (i, id) in others.iter_mut().enumerate() {
            let other = i + rng.below(rest.len() - i);
            rest.swap(i, other);
            *id = rest[i];
        }
        out.sort_unstable();
    }
}

/// [`check_rows`] for a block of rows, after `taken` others, on several threads.
fn check<T: Element>(
    rows: ArrayView2<'_, T>,
    weights: Option<&[f64]>,
    taken: usize,
    limit: f64,
) -> Result<()> {
    let checked = parallel::map_blocks(rows.nrows(), BLOCK, |_, range| {
        let block = rows.slice_axis(Axis(0), Slice::from(range.clone()));
        let weights = weights.map(|weights| &weights[range.clone()]);
        check_rows(block, weights, "data", limit, taken + range.start)
    });
    checked.into_iter().collect()
}
