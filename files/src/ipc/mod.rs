//! Rows of an Arrow file or stream.

mod body;
mod keys;
mod layout;
mod messages;

pub(crate) use keys::keys;

use crate::choice::{Columns, Features, columns_of, features};
use crate::fault::{fault, guarded, invalid, rows_asked_for, unread};
use crate::numbers::{Number, readable};
use crate::options::Options;
use crate::{OnDisk, ReadAt};
use arrow_schema::Field;
use body::{Column, Decoded};
use coremix::Result;
use coremix::data::Source;
use layout::Batch;
use messages::Messages;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The rows of an Arrow file, read when they are asked for: a [`Source`]. Arrow calls the format IPC; files of Feather,
/// version 2, are the same. A stream in a file is read like a file.
///
/// Rows are columns of numbers, or the lists of one column ([`Options::columns`]). `T` is a type that holds all numbers
/// exactly, unless they may be [rounded](Options::rounded).
///
/// Numbers that are not compressed are read where they lie: in memory are the rows that were asked for. A batch that is
/// compressed, by lz4 or zstd, is decompressed as a whole. The batches that were read last are kept: one for each processor,
/// and one more. A null, NaN, an infinity, or a list of another length is an error that names the column and the row.
///
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix::prelude::*;
/// use coremix_files::{ArrowFile, Options};
///
/// let data = Blocks::new(ArrowFile::<f32>::open("points.arrow", &Options::new().key("id"))?)?;
/// let fit = algorithms::fast_within(1_000, 1 << 30).build()?.fit(&data)?;
/// # Ok::<(), Error>(())
/// ```
pub struct ArrowFile<T> {
    bytes: Arc<dyn ReadAt>,
    path: String,
    names: Vec<String>,
    batches: Vec<Batch>,
    len: usize,
    dim: usize,
    lists: bool,
    /// Batches that were decompressed, the last one used last.
    decoded: Mutex<Vec<(usize, Slot)>>,
    of: std::marker::PhantomData<T>,
}

/// A batch that one thread decompresses, while others wait for it.
type Slot = Arc<OnceLock<std::result::Result<Arc<Decoded>, String>>>;

impl<T> fmt::Debug for ArrowFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowFile")
            .field("path", &self.path)
            .field("len", &self.len)
            .field("dim", &self.dim)
            .finish_non_exhaustive()
    }
}

/// What a file consists of, and which of its columns are read.
fn plan(bytes: &dyn ReadAt, options: &Options) -> io::Result<(Messages, Features)> {
    let messages = Messages::read(bytes)?;
    let features = features(&columns_of(&messages.schema), options).map_err(invalid)?;
    Ok((messages, features))
}

/// The columns of a file.
pub(crate) fn columns(bytes: &dyn ReadAt) -> io::Result<Columns> {
    Ok(columns_of(&Messages::read(bytes)?.schema))
}

impl<T: Number> ArrowFile<T> {
    /// Opens a file, and reads where its batches lie. No row is read yet.
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
        let made = guarded(|| Self::new(Arc::new(bytes), options));
        made.map_err(|error| fault(&path, error))
    }

    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let (messages, features) = plan(&bytes, options)?;
        let fields: Vec<&Field> = messages.schema.fields().iter().map(AsRef::as_ref).collect();
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for (place, kind) in features.kinds() {
            let name = fields[place].name().clone();
            let readable = readable::<T>(kind, options.rounded);
            readable.map_err(|what| invalid(format!("column {name:?} {what}")))?;
            columns.push(place);
            names.push(name);
        }
        let (mut batches, mut len) = (Vec::with_capacity(messages.batches.len()), 0usize);
        for place in &messages.batches {
            let batch = place.batch(&bytes, |batch| {
                let (body, version) = (place.body.clone(), messages.version);
                Batch::new(batch, &fields, &columns, body, version, len)
            })?;
            let end = len.checked_add(batch.rows);
            len = end.ok_or_else(|| invalid("damaged: more rows than can be counted"))?;
            if batch.rows > 0 {
                batches.push(batch);
            }
        }
        let mut file = Self {
            path: bytes.name(),
            bytes,
            batches,
            len,
            dim: names.len(),
            names,
            lists: matches!(features, Features::Lists(..)),
            decoded: Mutex::new(Vec::new()),
            of: std::marker::PhantomData,
        };
        if file.lists && len > 0 {
            file.dim = file.column(0, 0)?.length()?;
        }
        Ok(file)
    }

    fn column(&self, batch: usize, place: usize) -> io::Result<Column<'_>> {
        Ok(Column {
            bytes: &self.bytes,
            name: &self.names[place],
            batch: &self.batches[batch],
            place,
            decoded: self.decoded(batch)?,
        })
    }

    /// The numbers of a batch that is compressed.
    fn decoded(&self, batch: usize) -> io::Result<Option<Arc<Decoded>>> {
        let Some(codec) = self.batches[batch].compression else {
            return Ok(None);
        };
        let slot = {
            let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
            let found = decoded.iter().position(|(other, _)| *other == batch);
            let slot = match found {
                Some(found) => decoded.remove(found).1,
                None => Slot::default(),
            };
            let most = std::thread::available_parallelism().map_or(1, usize::from) + 1;
            if decoded.len() >= most {
                decoded.remove(0);
            }
            decoded.push((batch, Arc::clone(&slot)));
            slot
        };
        let make = || {
            let made = Decoded::new(&self.bytes, &self.batches[batch], codec);
            made.map(Arc::new).map_err(|error| error.to_string())
        };
        slot.get_or_init(make).clone().map(Some).map_err(invalid)
    }

    fn read_rows(&self, first: usize, rows: usize, out: &mut [T]) -> io::Result<()> {
        let (mut row, end, dim) = (first, first + rows, self.dim);
        let stride = if self.lists { 1 } else { dim };
        while row < end {
            let batch = self
                .batches
                .partition_point(|batch| batch.first + batch.rows <= row);
            let found = &self.batches[batch];
            let to = end.min(found.first + found.rows);
            let out = &mut out[(row - first) * dim..(to - first) * dim];
            for place in 0..self.names.len() {
                let column = self.column(batch, place)?;
                column.read(row - found.first, to - row, &mut out[place..], stride)?;
            }
            row = to;
        }
        Ok(())
    }
}

impl<T: Number> Source for ArrowFile<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let read = rows_asked_for(first, out.len(), [self.len, self.dim]);
        let read = read.and_then(|rows| guarded(|| self.read_rows(first, rows, out)));
        read.map_err(|error| unread(&self.path, &error))
    }
}
