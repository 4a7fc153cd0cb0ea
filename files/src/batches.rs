//! Rows of record batches that can be made again from the first one on.

use crate::batch::Conversion;
use crate::fault::{fault, guarded, invalid, rows_asked_for, unread};
use crate::numbers::Number;
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use coremix::Result;
use coremix::data::Source;
use std::fmt;
use std::io;

/// Rows of record batches that a function makes, as often as it is called and always the same: a [`Source`].
///
/// Making it goes through all batches once, to count rows. A read goes on with the sequence of batches that is nearest
/// before its first row; a few are kept open. Where there is none, the function is called, and the batches before are passed
/// over: this is for batches that cost little. Where they cost more than writing and reading them, use
/// [`Spool`](crate::Spool).
///
/// ```
/// use arrow_array::{ArrayRef, Float32Array, RecordBatch};
/// use coremix::data::Source;
/// use coremix_files::{Batches, Options};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
/// let batch = RecordBatch::try_from_iter([("x", x)]).expect("one column");
/// let open = move || Ok(vec![Ok(batch.clone()), Ok(batch.clone())].into_iter());
/// let rows = Batches::<f32>::new(open, &Options::new())?;
/// assert_eq!((rows.len(), rows.dim()), (6, 1));
/// let mut out = [0.0; 2];
/// rows.read(2, &mut out).expect("rows 2 and 3");
/// assert_eq!(out, [3.0, 1.0]);
/// # Ok::<(), coremix::Error>(())
/// ```
pub struct Batches<T> {
    open: Box<dyn Fn() -> std::result::Result<Running, ArrowError> + Send + Sync>,
    conversion: Conversion,
    len: usize,
    dim: usize,
    pool: Pool<Place<T>>,
}

type Running = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

impl<T> fmt::Debug for Batches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("len", &self.len)
            .field("dim", &self.dim)
            .finish_non_exhaustive()
    }
}

/// What they are called in errors.
const NAME: &str = "record batches";

/// A sequence of batches at a row.
struct Place<T> {
    batches: Running,
    /// The rows of one of them, from row `first` on.
    values: Vec<T>,
    first: usize,
    /// The row after them.
    end: usize,
    /// The row that comes next.
    row: usize,
}

impl<T> Cursor for Place<T> {
    fn row(&self) -> usize {
        self.row
    }
}

impl<T: Number> Batches<T> {
    /// The rows of the batches that `open` makes. All have one schema.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where there is no batch, a batch is an error, or does not have such columns.
    pub fn new<I>(
        open: impl Fn() -> std::result::Result<I, ArrowError> + Send + Sync + 'static,
        options: &Options,
    ) -> Result<Self>
    where
        I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send + 'static,
    {
        let named = |error: ArrowError| fault(NAME, error);
        let (mut conversion, mut len) = (None, 0);
        for batch in open().map_err(named)? {
            let batch = batch.map_err(named)?;
            if conversion.is_none() {
                let made = Conversion::new::<T>(&batch.schema(), options);
                conversion = Some(made.map_err(|error| fault(NAME, error))?);
            }
            if let Some(conversion) = &mut conversion
                && conversion.dim.is_none()
                && batch.num_rows() > 0
            {
                let rows = conversion.rows::<T>(&batch.slice(0, 1), len, &mut Vec::new());
                rows.map_err(|error| fault(NAME, error))?;
            }
            len += batch.num_rows();
        }
        let none = "there is no batch: at least one is needed";
        let conversion = conversion.ok_or_else(|| fault(NAME, none))?;
        Ok(Self {
            open: Box::new(move || open().map(|batches| Box::new(batches) as Running)),
            dim: conversion.dim.unwrap_or(0),
            conversion,
            len,
            pool: Pool::new(),
        })
    }

    fn read_rows(&self, first: usize, rows: usize, out: &mut [T]) -> io::Result<()> {
        let place = match self.pool.take(0, first, usize::MAX) {
            Some(place) => Ok(place),
            None => (self.open)().map(|batches| Place {
                batches,
                values: Vec::new(),
                first: 0,
                end: 0,
                row: 0,
            }),
        };
        let mut place = place.map_err(invalid)?;
        let end = first + rows;
        place.row = first;
        while place.row < end {
            if place.row >= place.end {
                self.next(&mut place)?;
                continue;
            }
            let to = end.min(place.end);
            let from = (place.row - place.first) * self.dim;
            let values = &place.values[from..from + (to - place.row) * self.dim];
            out[(place.row - first) * self.dim..][..values.len()].copy_from_slice(values);
            place.row = to;
        }
        if end < self.len {
            self.pool.give(place);
        }
        Ok(())
    }

    /// Goes on to the next batch, and makes rows of it if they are wanted.
    fn next(&self, place: &mut Place<T>) -> io::Result<()> {
        let Some(batch) = place.batches.next() else {
            return Err(invalid(format!(
                "there are {} rows this time, but were {}: batches must not change",
                place.end, self.len
            )));
        };
        let batch = batch.map_err(invalid)?;
        place.first = place.end;
        place.end += batch.num_rows();
        if place.row < place.end {
            let mut conversion = self.conversion.clone();
            conversion.rows(&batch, place.first, &mut place.values)?;
        }
        Ok(())
    }
}

impl<T: Number> Source for Batches<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let read = rows_asked_for(first, out.len(), [self.len, self.dim]);
        let read = read.and_then(|rows| match rows {
            0 => Ok(()),
            _ => guarded(|| self.read_rows(first, rows, out)),
        });
        read.map_err(|error| unread(NAME, &error))
    }
}
