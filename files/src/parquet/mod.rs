//! Rows of a Parquet file.

mod codec;
mod column;
mod delta;
mod footer;
mod keys;
mod page;
mod thrift;

pub(crate) use keys::keys;

use crate::choice::{Columns, Features, features};
use crate::fault::{fault, guarded, rows_asked_for, unread};
use crate::numbers::{Number, readable};
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use crate::{OnDisk, ReadAt};
use column::Values;
use coremix::Result;
use coremix::data::Source;
use footer::{Footer, Plan};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The rows of a Parquet file, read when they are asked for: a [`Source`].
///
/// Rows are columns of numbers, or the lists of one column ([`Options::columns`]). `T` is a type that holds all numbers
/// exactly, unless they may be [rounded](Options::rounded). Pages are compressed by snappy, zstd, gzip or lz4, or not.
///
/// A few decoders wait at the rows that were read last: one for each processor, and two more. A read goes on with the one
/// that is nearest before its first row, so that threads that read one block after the other decode each page once. In
/// memory are one page of each column for each decoder. A null, NaN, an infinity, or a list of another length is an error
/// that names the column and the row.
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
    bytes: Arc<dyn ReadAt>,
    path: String,
    plan: Plan,
    pool: Pool<Open>,
    of: std::marker::PhantomData<T>,
}

impl<T> fmt::Debug for ParquetFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile")
            .field("path", &self.path)
            .field("len", &self.plan.len)
            .field("dim", &self.plan.dim)
            .finish_non_exhaustive()
    }
}

/// Rows that a cursor of the same row group goes past rather than being left where it is: those of a few pages.
const FAR: usize = 1 << 16;

/// A row group that is being read.
struct Open {
    /// The row of the file that comes next.
    row: usize,
    columns: Vec<Values>,
}

impl Cursor for Open {
    fn row(&self) -> usize {
        self.row
    }
}

/// What is read of a file, and what it holds.
fn plan(bytes: &dyn ReadAt, options: &Options) -> io::Result<(Footer, Features)> {
    let footer = Footer::read(bytes)?;
    let features = features(&footer.columns()?, options).map_err(crate::fault::invalid)?;
    Ok((footer, features))
}

/// The columns of a file.
pub(crate) fn columns(bytes: &dyn ReadAt) -> io::Result<Columns> {
    Footer::read(bytes)?.columns()
}

impl<T: Number> ParquetFile<T> {
    /// Opens a file, and checks its footer. No row is read yet.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a file that cannot be read, is damaged, or does not have such columns.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::over(OnDisk::open(path)?, options)
    }

    /// The same for bytes that come from elsewhere.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(bytes: impl ReadAt + 'static, options: &Options) -> Result<Self> {
        let path = bytes.name();
        let named = |error: io::Error| fault(&path, error);
        let (footer, features) = plan(&bytes, options).map_err(named)?;
        let plan = Plan::new(&footer, &features, bytes.len()).map_err(named)?;
        for column in &plan.columns {
            let readable = readable::<T>(column.kind, options.rounded);
            readable.map_err(|what| fault(&path, format!("column {:?} {what}", column.name)))?;
        }
        Ok(Self {
            bytes: Arc::new(bytes),
            path,
            plan,
            pool: Pool::new(),
            of: std::marker::PhantomData,
        })
    }

    fn read_rows(&self, first: usize, rows: usize, out: &mut [T]) -> io::Result<()> {
        let (mut row, end, dim) = (first, first + rows, self.plan.dim);
        while row < end {
            let groups = &self.plan.groups;
            let group = &groups[groups.partition_point(|group| group.first + group.rows <= row)];
            let to = end.min(group.first + group.rows);
            let cursor = self.pool.take(group.first, row, FAR);
            let mut cursor = cursor.unwrap_or_else(|| Open {
                row: group.first,
                columns: self.open_columns(&group.chunks),
            });
            let out = &mut out[(row - first) * dim..(to - first) * dim];
            self.read_on(&mut cursor, row, to - row, out)?;
            if to < group.first + group.rows {
                self.pool.give(cursor);
            }
            row = to;
        }
        Ok(())
    }

    fn open_columns(&self, chunks: &[footer::Chunk]) -> Vec<Values> {
        let list = self.plan.lists.then_some(self.plan.dim);
        let columns = self.plan.columns.iter().zip(chunks);
        columns
            .map(|(column, chunk)| Values::open(&self.bytes, column, chunk, list))
            .collect()
    }

    /// Goes on to a row of the group, and reads from there.
    fn read_on(&self, cursor: &mut Open, row: usize, rows: usize, out: &mut [T]) -> io::Result<()> {
        let stride = if self.plan.lists { 1 } else { self.plan.dim };
        let columns = cursor.columns.iter_mut().zip(&self.plan.columns);
        for (place, (values, column)) in columns.enumerate() {
            if cursor.row < row {
                values.skip(row - cursor.row, &column.name)?;
            }
            values.read(rows, row, column, &mut out[place..], stride)?;
        }
        cursor.row = row + rows;
        Ok(())
    }
}

impl<T: Number> Source for ParquetFile<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.plan.len
    }

    fn dim(&self) -> usize {
        self.plan.dim
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let read = rows_asked_for(first, out.len(), [self.plan.len, self.plan.dim]);
        let read = read.and_then(|rows| guarded(|| self.read_rows(first, rows, out)));
        read.map_err(|error| unread(&self.path, &error))
    }
}
