//! Rows of record batches that can be made again from the first one on.

use crate::batch::{Conversion, Running, Sequence};
use crate::choice::columns_of;
use crate::fault::{fault, invalid};
use crate::numbers::Number;
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use crate::source::source;
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use coremix::Result;
use std::io;

/// Rows of record batches that a function makes, as often as it is called and always the same: a [`Source`](coremix::data::Source).
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
    path: &'static str,
    len: usize,
    dim: usize,
    pool: Pool<Sequence>,
    of: std::marker::PhantomData<T>,
}

/// What they are called in errors.
const NAME: &str = "record batches";

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
        let named = |error: io::Error| fault(NAME, error);
        let (mut conversion, mut len) = (None, 0);
        for batch in open().map_err(|error| fault(NAME, error))? {
            let batch = batch.map_err(|error| fault(NAME, error))?;
            if conversion.is_none() {
                let columns = columns_of(&batch.schema());
                conversion = Some(Conversion::new::<T>(&columns, options).map_err(named)?);
            }
            if let Some(conversion) = &mut conversion {
                conversion.see(&batch, len).map_err(named)?;
            }
            len += batch.num_rows();
        }
        let none = "there is no batch: at least one is needed";
        let conversion = conversion.ok_or_else(|| fault(NAME, none))?;
        Ok(Self {
            open: Box::new(move || open().map(|batches| Box::new(batches) as Running)),
            dim: conversion.dim.unwrap_or(0),
            conversion,
            path: NAME,
            len,
            pool: Pool::new(),
            of: std::marker::PhantomData,
        })
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let sequence = match self.pool.take(0, first) {
            Some(sequence) => Ok(sequence),
            None => (self.open)().map(|batches| Sequence::new(batches, 0)),
        };
        let mut sequence = sequence.map_err(invalid)?;
        sequence.read(first, out, &self.conversion)?;
        if sequence.row() < self.len {
            self.pool.give(sequence);
        }
        Ok(())
    }
}

source!(Batches);
