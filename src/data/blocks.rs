//! Rows that are not in memory: blocks of them are read when they are asked for.

use super::missing::{self, is_missing};
use super::{Data, Dense, Frame, RowKind, Rows, Special, Summary};
use crate::base::error::{Error, Result, same_length};
use crate::base::float::{Element, Float};
use crate::base::parallel::{BLOCK, Spare};
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Where rows of numbers come from: a file, a table, a partition. [`Blocks`] makes data of it.
///
/// Rows are read several times in a fit, in any order, by several threads, and must be the same each time.
///
/// ```
/// use coremix::data::{Blocks, Source};
/// use coremix::prelude::*;
/// use std::io;
///
/// /// 1000 rows (i, i mod 7).
/// struct Counted;
///
/// impl Source for Counted {
///     type Element = f32;
///
///     fn len(&self) -> usize {
///         1_000
///     }
///     fn dim(&self) -> usize {
///         2
///     }
///     fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
///         for (i, row) in out.chunks_exact_mut(2).enumerate() {
///             row.copy_from_slice(&[(first + i) as f32, ((first + i) % 7) as f32]);
///         }
///         Ok(())
///     }
/// }
///
/// let data = Blocks::new(Counted)?;
/// let fit = algorithms::fast(10).build()?.fit(&data)?;
/// assert_eq!(fit.model.predict(&data)?.len(), 1_000);
/// # Ok::<(), Error>(())
/// ```
pub trait Source: Sync {
    /// How values are stored: `f32`, `f64`, or another [`Element`], such as `u8` (computed in `f32`).
    type Element: Element;

    /// The name of the source in errors: that of its type.
    fn name(&self) -> &'static str {
        crate::base::stage::name::<Self>()
    }
    /// Number of rows, n.
    fn len(&self) -> usize;
    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of columns, d.
    fn dim(&self) -> usize;
    /// Whether values may be missing: NaN stands for them, as in [`Dense::with_missing`]. By default NaN is an error.
    fn may_miss(&self) -> bool {
        false
    }
    /// The rows as lists of what is not 0, if they are in memory as such: [`Sparse`](super::Sparse) makes data of these, where [`Blocks`]
    /// would read the zeros. By default there are none.
    fn lists(&self) -> Option<Lists<'_, Self::Element>> {
        None
    }
    /// Reads consecutive rows from row `first` on, one after the other: as many as `out`, of a multiple of d numbers, has
    /// room for.
    ///
    /// # Errors
    /// The reason why rows cannot be read; the error of the fit contains it.
    fn read(&self, first: usize, out: &mut [Self::Element]) -> io::Result<()>;
}

/// Sparse rows, as [`Sparse::new`](super::Sparse::new) takes them: where each row starts, columns, and values.
pub type Lists<'a, T> = (&'a [usize], &'a [u32], &'a [<T as Element>::Float]);

macro_rules! forward {
    ($($pointer:ty: $bound:path),+) => {$(
        impl<S: Source + $bound + ?Sized> Source for $pointer {
            type Element = S::Element;

            fn name(&self) -> &'static str {
                (**self).name()
            }
            fn len(&self) -> usize {
                (**self).len()
            }
            fn dim(&self) -> usize {
                (**self).dim()
            }
            fn may_miss(&self) -> bool {
                (**self).may_miss()
            }
            fn lists(&self) -> Option<Lists<'_, S::Element>> {
                (**self).lists()
            }
            fn read(&self, first: usize, out: &mut [S::Element]) -> io::Result<()> {
                (**self).read(first, out)
            }
        }
    )+};
}
forward!(&S: Sync, Box<S>: Sync, Arc<S>: Send);

/// Data whose rows are read from a [`Source`] block by block, when they are asked for, and checked once before.
///
/// In memory are the weights, if there are any, and for every thread a block of 512 rows mostly, 4096 at most. A fit adds
/// what it keeps per row, such as labels, the rows of its coreset, and the few columns of a principal subspace.
///
/// Fits are those of the same rows in memory ([`Dense`]), bit for bit. Every iteration over all rows reads all of them. Rows
/// that cannot be read later, or that are no longer finite, are an error that names the source, the row, and says why. A
/// source that gives other finite numbers each time is not noticed.
#[derive(Debug)]
pub struct Blocks<S: Source> {
    source: S,
    len: usize,
    dim: usize,
    weights: Option<Vec<f64>>,
    summary: Summary,
    has_missing: bool,
    buffers: Spare<Vec<S::Element>>,
}

/// Bytes between two rows that take less time to read than a second call does: a page.
const NEAR: usize = 4096;

/// The number type in which the rows of a source are computed.
type FloatOf<S> = <<S as Source>::Element as Element>::Float;

/// Reads consecutive rows; the error names the source, and the first row that cannot be read.
fn read_from<S: Source>(source: &S, first: usize, out: &mut [S::Element]) -> Result<()> {
    let Err(error) = source.read(first, out) else {
        return Ok(());
    };
    let dim = source.dim();
    let last = first + out.len() / source.dim() - 1;
    // One by one, to tell which it is.
    let mut alone = (first..).zip(out.chunks_exact_mut(dim));
    let lost = alone.find_map(|(row, out)| Some((row, source.read(row, out).err()?)));
    let what = match lost {
        Some((row, error)) => format!("row {row} could not be read: {error}"),
        None => format!("rows {first} to {last} could not be read together: {error}"),
    };
    Err(Error::stage(source.name(), what))
}

impl<S: Source> Blocks<S> {
    /// The rows of a source, each of weight 1. All of them are read once, and some again.
    ///
    /// # Errors
    /// As [`Dense::new`]; [`Error::Stage`] with the name of the source where rows cannot be read.
    pub fn new(source: S) -> Result<Self> {
        Self::checked(source, None)
    }

    /// The rows of a source with weights (n): finite, not negative, not all zero.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::LengthMismatch`], [`Error::Weight`] or [`Error::TotalWeight`] for the weights.
    pub fn weighted(source: S, weights: Vec<f64>) -> Result<Self> {
        same_length("weights", source.len(), weights.len())?;
        Self::checked(source, Some(weights))
    }

    /// The source of the rows.
    pub fn source(&self) -> &S {
        &self.source
    }

    fn checked(source: S, weights: Option<Vec<f64>>) -> Result<Self> {
        let len = source.len();
        let dim = source.dim();
        let fault = |what: String| Error::stage(source.name(), what);
        let numbers = len.max(BLOCK).checked_mul(dim);
        if numbers.is_none_or(|numbers| numbers > isize::MAX as usize / size_of::<f64>()) {
            let what = format!("{len} rows of {dim} numbers are more than can be counted");
            return Err(fault(what));
        }
        let weight = |n: usize| weights.as_ref().map_or(1.0, |weights| weights[n]);
        let known = if source.may_miss() && len > 0 && dim > 0 {
            missing::summary(len, dim, Some(weight), |rows| {
                let mut values = vec![S::Element::default(); rows.len() * dim];
                read_from(&source, rows.start, &mut values)?;
                Ok(Cow::Owned(values))
            })?
        } else {
            None
        };
        let has_missing = known.is_some();
        let read = |rows: Range<usize>, out: &mut [S::Element]| read_from(&source, rows.start, out);
        let summary = match known {
            Some(summary) => summary,
            None => Summary::from_blocks(len, dim, weight, read)?,
        };
        Ok(Self {
            source,
            len,
            dim,
            weights,
            summary,
            has_missing,
            buffers: Spare::default(),
        })
    }

    /// Reads consecutive rows, and checks them again.
    fn read(&self, first: usize, out: &mut [S::Element]) -> Result<()> {
        read_from(&self.source, first, out)?;
        match out
            .chunks_exact(self.dim)
            .position(|row| !self.is_sound(row))
        {
            None => Ok(()),
            Some(place) => Err(Error::stage(
                self.source.name(),
                format!(
                    "row {}: a value is NaN, infinite or too large, but was not when the data was checked",
                    first + place
                ),
            )),
        }
    }

    /// Reads rows that are in order: those near each other at once, with the rows between them.
    fn read_sorted(&self, mut rows: &[usize], mut out: &mut [S::Element]) -> Result<()> {
        let gap = NEAR / (self.dim * size_of::<S::Element>()) + 1;
        while let Some(&first) = rows.first() {
            let near = |pair: &&[usize]| pair[1] - pair[0] <= gap && pair[1] - first < BLOCK;
            let len = 1 + rows.windows(2).take_while(near).count();
            let (run, rest) = rows.split_at(len);
            let (here, after) = out.split_at_mut(len * self.dim);
            let span = run[len - 1] - first + 1;
            if span == len {
                self.read(first, here)?;
            } else {
                self.with_buffer(span, |values| {
                    self.read(first, values)?;
                    for (row, out) in run.iter().zip(here.chunks_exact_mut(self.dim)) {
                        out.copy_from_slice(&values[(row - first) * self.dim..][..self.dim]);
                    }
                    Ok(())
                })?;
            }
            (rows, out) = (rest, after);
        }
        Ok(())
    }

    /// Runs `work` on a buffer for `rows` rows.
    fn is_sound(&self, row: &[S::Element]) -> bool {
        if self.has_missing {
            row.iter().all(|x| is_missing(*x) || sound(&[*x]))
        } else {
            sound(row)
        }
    }

    fn with_buffer<T>(&self, rows: usize, work: impl FnOnce(&mut [S::Element]) -> T) -> T {
        let mut buffer = self.buffers.take().unwrap_or_default();
        buffer.resize(rows * self.dim, Default::default());
        let made = work(&mut buffer);
        self.buffers.give([buffer]);
        made
    }
}

/// Rows in order, each once, and the place of each of the given ones among them.
fn in_order(rows: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let place = |row: &usize| sorted.partition_point(|other| other < row);
    let places = rows.iter().map(place).collect();
    (sorted, places)
}

/// Whether all numbers of a row are as [`Dense`] takes them.
fn sound<T: Element>(row: &[T]) -> bool {
    let within = |x: &T| x.widen().to_f64().abs() <= T::Float::LIMIT;
    // No branch for each number.
    row.iter().fold(true, |sound, x| sound & within(x))
}

impl<S: Source> Data<FloatOf<S>> for Blocks<S> {
    fn special(&self) -> Special<'_> {
        Special::named(self.source.name())
    }

    fn kind(&self) -> RowKind {
        missing::kind(self.has_missing)
    }

    fn len(&self) -> usize {
        self.len
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

    fn load(
        &self,
        rows: Range<usize>,
        frame: &Frame<FloatOf<S>>,
        into: &mut Rows<FloatOf<S>>,
    ) -> Result<()> {
        self.with_buffer(rows.len(), |values| {
            self.read(rows.start, values)?;
            let weights = self.weights.as_ref().map(|weights| &weights[rows.clone()]);
            let block = Dense::of_block(values, self.dim, weights, self.has_missing);
            block.load(0..rows.len(), frame, into)
        })
    }

    fn gather(
        &self,
        rows: &[usize],
        frame: &Frame<FloatOf<S>>,
        into: &mut Rows<FloatOf<S>>,
    ) -> Result<()> {
        let (sorted, places) = in_order(rows);
        self.with_buffer(sorted.len(), |values| {
            self.read_sorted(&sorted, values)?;
            let weights = self.weights.as_ref();
            let weights: Option<Vec<f64>> =
                weights.map(|weights| sorted.iter().map(|&n| weights[n]).collect());
            let block = Dense::of_block(values, self.dim, weights.as_deref(), self.has_missing);
            block.gather(&places, frame, into)
        })
    }
}
