//! Rows of a Parquet file, through the reader of the crate `parquet`.

mod declared;
mod footer;

use crate::ReadAt;
use crate::batch::Conversion;
use crate::choice::{self, Columns};
use crate::fault::{damaged, guarded, invalid};
use crate::keys::Keys;
use crate::numbers::Number;
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use crate::source::{by_parts, ends, opened, source};
use arrow_array::RecordBatch;
use footer::Footer;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection, RowSelector};
use std::io;
use std::sync::Arc;

/// The rows of a Parquet file, read when they are asked for: a [`Source`](coremix::data::Source).
///
/// Rows are columns of numbers, or the lists of one column ([`Options::columns`]). `T` is a type that holds all numbers
/// exactly, unless they may be [rounded](Options::rounded). Pages are compressed by snappy, zstd, gzip or lz4, or not.
///
/// A few decoders wait at the rows that were read last: those of all files take 32 MiB together, or there is one for each
/// processor, and one more. A read goes on with the one that is nearest before its first row, so that threads that read one
/// block after the other decode each page once. A decoder holds a page, a dictionary and 4,096 numbers of each column. A null, NaN, an infinity, or a list of another
/// length is an error that names the column and the row.
///
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix_files::ReadAhead;
/// use coremix::prelude::*;
/// use coremix_files::{Options, ParquetFile};
///
/// let source = ParquetFile::<f32>::open("points.parquet", &Options::new().columns(["x", "y"]))?;
/// let data = Blocks::new(ReadAhead::new(source))?;
/// let fit = algorithms::fast_within(1_000, 1 << 30).build()?.fit(&data)?;
/// # Ok::<(), Error>(())
/// ```
pub struct ParquetFile<T> {
    path: String,
    footer: Footer,
    /// The rows before which row groups end.
    ends: Vec<usize>,
    /// The columns that are read.
    columns: ProjectionMask,
    conversion: Conversion,
    len: usize,
    dim: usize,
    may_miss: bool,
    /// Rows that are decoded at once.
    batch: usize,
    pool: Pool<Sequence>,
    /// Bytes of a decoder, at most.
    pub(crate) decoder: u64,
    of: std::marker::PhantomData<T>,
}

/// Rows that are decoded at once, at most, and numbers.
const ROWS: usize = 4_096;
const NUMBERS: usize = 1 << 20;
/// Batches that a decoder goes past: it takes no longer than beginning anew and skipping pages.
const FAR: usize = 16;
/// Rows of a batch of keys: few bytes of a file can be the same long key many times.
const KEYS: usize = 256;

/// The columns of a file.
pub(crate) fn columns(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<Columns> {
    looked(&Footer::read(Arc::clone(bytes))?, bytes, options)
}

fn looked(footer: &Footer, bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<Columns> {
    let mut columns = footer.columns()?;
    columns.look(options, |key_options| {
        guarded(|| keys(Arc::clone(bytes), key_options)).ok()
    });
    Ok(columns)
}

/// The key columns that options name.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Keys> {
    let name = bytes.name();
    let footer = Footer::read(bytes)?;
    let keys = footer.columns()?.keys(options).map_err(invalid)?;
    let schema = footer.schema().project(&keys).map_err(invalid)?;
    let groups = footer.rows()?.len();
    let (places, order) = choice::in_order(&keys);
    let places = footer.columns_at(&places);
    let mut group = 0;
    let mut reader = None;
    let mut next = move || {
        while group < groups {
            if reader.is_none() {
                footer.check_texts(&places, group)?;
                reader = Some(footer.batches(&places, group, KEYS, None)?);
            }
            if let Some(batch) = reader.as_mut().and_then(Iterator::next) {
                let batch = batch.map_err(|error| footer.blame(&places, group, &error));
                return batch?.project(&order).map(Some).map_err(invalid);
            }
            (group, reader) = (group + 1, None);
        }
        Ok(None)
    };
    let batches = std::iter::from_fn(move || guarded(&mut next).transpose());
    Ok(Keys::new(name, &schema, batches))
}

impl<T: Number> ParquetFile<T> {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let path = bytes.name();
        let footer = Footer::read(Arc::clone(&bytes))?;
        let mut conversion = Conversion::new::<T>(&looked(&footer, &bytes, options)?, options)?;
        let columns = footer.columns_at(&conversion.project());
        let ends = ends(footer.rows()?);
        // A group without rows may have no bytes.
        let group = ends.iter().position(|end| *end > 0);
        if let (None, Some(group)) = (conversion.dim, group) {
            // The first lists may be missing.
            let rows = if conversion.lenient { ROWS } else { 1 };
            let mut batches = footer.batches(&columns, group, rows, None)?;
            let first = batches.next().ok_or_else(|| damaged("no first row"))?;
            let first = first.map_err(|error| footer.blame(&columns, group, &error))?;
            conversion.see(&first, 0)?;
        }
        let dim = conversion.dim.unwrap_or(0);
        let batch = (NUMBERS / dim.max(1)).clamp(1, ROWS);
        let decoder = footer.decoder(&columns, batch.saturating_mul(dim));
        Ok(Self {
            path,
            footer,
            len: ends.last().copied().unwrap_or(0),
            ends,
            columns,
            may_miss: conversion.lenient,
            conversion,
            dim,
            batch,
            pool: Pool::new(decoder),
            decoder,
            of: std::marker::PhantomData,
        })
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let read = |group: usize, start: usize, row: usize, out: &mut [T]| {
            let near = start.max(row.saturating_sub(FAR * self.batch));
            let make = || self.decode(group, start, row);
            self.pool.read(near, row, make, |sequence| {
                sequence.read(row, out, self)?;
                Ok(sequence.row < self.ends[group])
            })
        };
        by_parts(&self.ends, self.dim, first, out, read)
    }

    /// A decoder of a row group that begins at `start`, from one of its rows on.
    fn decode(&self, group: usize, start: usize, row: usize) -> io::Result<Sequence> {
        let rest = RowSelector::select(self.ends[group] - row);
        let selection = vec![RowSelector::skip(row - start), rest];
        let selection = (row > start).then(|| RowSelection::from(selection));
        let columns = &self.columns;
        let rows = self.batch;
        Ok(Sequence {
            batches: self.footer.batches(columns, group, rows, selection)?,
            group,
            row,
            rest: None,
        })
    }
}

source!(ParquetFile);
opened!(ParquetFile);

/// Batches of a row group that are decoded one after the other.
struct Sequence {
    batches: ParquetRecordBatchReader,
    group: usize,
    /// The row that comes next.
    row: usize,
    /// The rest of the batch with that row.
    rest: Option<RecordBatch>,
}

impl Cursor for Sequence {
    fn row(&self) -> usize {
        self.row
    }
}

impl Sequence {
    /// Goes on to a row of the file, and reads from there as many as there is room for.
    fn read<T: Number>(
        &mut self,
        row: usize,
        out: &mut [T],
        file: &ParquetFile<T>,
    ) -> io::Result<()> {
        let end = row + out.len() / file.dim;
        while self.row < end {
            let next = self.rest.take().map(Ok).or_else(|| self.batches.next());
            let none = || {
                invalid(format!(
                    "damaged, or has changed: ends before row {}",
                    self.row
                ))
            };
            let blame = |error| file.footer.blame(&file.columns, self.group, &error);
            let batch = next.ok_or_else(none)?.map_err(blame)?;
            let len = batch.num_rows();
            let from = row.saturating_sub(self.row).min(len);
            let to = len.min(end - self.row);
            if from < to {
                let first = self.row + from;
                let out = &mut out[(first - row) * file.dim..][..(to - from) * file.dim];
                file.conversion
                    .rows(&batch.slice(from, to - from), first, out)?;
            }
            if to < len {
                self.rest = Some(batch.slice(to, len - to));
            }
            self.row += to;
        }
        Ok(())
    }
}
