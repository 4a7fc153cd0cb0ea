//! Rows of an Arrow file or stream, through the decoder of the crate `arrow-ipc`; what is not compressed is read where it
//! lies.

mod in_place;
mod messages;

use crate::ReadAt;
use crate::batch::Conversion;
use crate::choice::Columns;
use crate::fault::{fault, guarded, invalid};
use crate::keys::Keys;
use crate::numbers::Number;
use crate::options::Options;
use crate::source::{opened, source};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use arrow_schema::SchemaRef;
use coremix::Result;
use messages::{Messages, Place, damaged, growth};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The rows of an Arrow file, read when they are asked for: a [`Source`](coremix::data::Source). Arrow calls the format IPC; files of Feather,
/// version 2, are the same. A stream in a file is read like a file.
///
/// Rows are columns of numbers, or the lists of one column ([`Options::columns`]). `T` is a type that holds all numbers
/// exactly, unless they may be [rounded](Options::rounded).
///
/// Numbers that are not compressed are read where they lie: in memory are the rows that were asked for. A batch that is
/// compressed, by lz4 or zstd, is decompressed as a whole. The batches that were read last are kept: one for each processor,
/// and one more. A null, NaN, an infinity, or a list of another length is an error that names the column and the row.
pub struct ArrowFile<T> {
    bytes: Arc<dyn ReadAt>,
    path: String,
    /// The columns that are read, in the order of the file.
    schema: SchemaRef,
    conversion: Conversion,
    batches: Vec<Batch>,
    len: usize,
    dim: usize,
    decoder: FileDecoder,
    /// Batches that were decompressed, the last one used last.
    decoded: Mutex<Vec<(usize, Slot)>>,
    of: std::marker::PhantomData<T>,
}

/// Rows that lie together.
struct Batch {
    place: Place,
    first: usize,
    end: usize,
    /// Where the buffers of the columns that are read lie.
    columns: Vec<in_place::Column>,
    compressed: bool,
}

/// A batch that one thread decompresses, while others wait for it.
type Slot = Arc<OnceLock<std::result::Result<RecordBatch, String>>>;

/// The columns of a file.
pub(crate) fn columns(bytes: &dyn ReadAt) -> io::Result<Columns> {
    guarded(|| {
        let messages = Messages::read(bytes)?;
        Ok(Columns {
            has_rows: !messages.batches.is_empty(),
            ..Columns::of(&messages.schema)
        })
    })
}

/// The key columns that options name.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options) -> Result<Keys> {
    let name = bytes.name();
    let opened = guarded(|| {
        let messages = Messages::read(&bytes)?;
        let columns = Columns::of(&messages.schema);
        let places = columns.keys(options).map_err(invalid)?;
        let schema = messages.schema.project(&places).map_err(invalid)?;
        let decoder = FileDecoder::new(messages.schema, messages.version);
        let mut decoder = decoder.with_projection(places);
        for place in &messages.dictionaries {
            let dictionary = checked(place, &bytes, [&place.body])?;
            let read = decoder.read_dictionary(&place.block(), &dictionary);
            read.map_err(invalid)?;
        }
        Ok((schema, decoder, messages.batches))
    });
    let (schema, decoder, places) = opened.map_err(|error| fault(&name, error))?;
    let batches = places.into_iter();
    let batches = batches.map(move |place| {
        guarded(|| decode(&decoder, &place, &checked(&place, &bytes, [&place.body])?))
    });
    Ok(Keys::new(name, &schema, batches))
}

/// The bytes of a message, whose compressed buffers can be as long as they say, and these parts of its body.
fn checked<'a>(
    place: &'a Place,
    bytes: &dyn ReadAt,
    parts: impl IntoIterator<Item = &'a Range<u64>>,
) -> io::Result<Buffer> {
    place.check_lengths(bytes)?;
    Ok(Buffer::from_vec(place.bytes(bytes, parts)?))
}

fn decode(decoder: &FileDecoder, place: &Place, bytes: &Buffer) -> io::Result<RecordBatch> {
    let batch = decoder.read_record_batch(&place.block(), bytes);
    let batch = batch.map_err(damaged)?;
    batch.ok_or_else(|| damaged("a message that is no record batch"))
}

impl<T: Number> ArrowFile<T> {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let messages = Messages::read(&bytes)?;
        let (schema, version) = (messages.schema, messages.version);
        let mut conversion = Conversion::new::<T>(&Columns::of(&schema), options)?;
        let places = conversion.project();
        let (mut batches, mut len) = (Vec::with_capacity(messages.batches.len()), 0);
        for place in messages.batches {
            let batch = place.batch(&bytes, |batch| {
                let (rows, body) = (batch.length(), place.body.end - place.body.start);
                let compressed = batch.compression().is_some();
                let most = if compressed { growth(body) } else { body };
                let rows = usize::try_from(rows)
                    .ok()
                    .filter(|rows| *rows as u64 <= most);
                let rows = rows.ok_or_else(|| damaged("more rows than a batch can have"))?;
                let columns = in_place::columns(batch, &schema, &places, &place, version)?;
                let (first, end, place) = (len, len + rows, place.clone());
                Ok(Batch {
                    place,
                    first,
                    end,
                    columns,
                    compressed,
                })
            })?;
            len = batch.end;
            if batch.end > batch.first {
                batches.push(batch);
            }
        }
        let mut file = Self {
            path: bytes.name(),
            bytes,
            schema: Arc::new(schema.project(&places).map_err(invalid)?),
            conversion: conversion.clone(),
            batches,
            len,
            dim: 0,
            decoder: FileDecoder::new(schema, version).with_projection(places),
            decoded: Mutex::new(Vec::new()),
            of: std::marker::PhantomData,
        };
        if conversion.dim.is_none() && len > 0 {
            conversion.see(&file.rows(0, 0..1)?, 0)?;
        }
        file.dim = conversion.dim.unwrap_or(0);
        file.conversion = conversion;
        Ok(file)
    }

    /// Some rows of a batch.
    fn rows(&self, place: usize, rows: Range<usize>) -> io::Result<RecordBatch> {
        let batch = &self.batches[place];
        if batch.compressed {
            return Ok(self.decoded(place)?.slice(rows.start, rows.len()));
        }
        let columns = batch.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| {
            in_place::rows(&self.bytes, field.data_type(), column, rows.clone())
        });
        let columns = columns.collect::<io::Result<_>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(damaged)
    }

    /// A batch that is compressed.
    fn decoded(&self, place: usize) -> io::Result<RecordBatch> {
        let slot = {
            let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
            let found = decoded.iter().position(|(other, _)| *other == place);
            let slot = found
                .map(|found| decoded.remove(found).1)
                .unwrap_or_default();
            let most = std::thread::available_parallelism().map_or(1, usize::from) + 1;
            if decoded.len() >= most {
                decoded.remove(0);
            }
            decoded.push((place, Arc::clone(&slot)));
            slot
        };
        let batch = &self.batches[place];
        let make = || {
            let levels = batch.columns.iter().flatten();
            let parts = levels.flat_map(|level| [&level.nulls, &level.data]);
            let made = checked(&batch.place, &self.bytes, parts);
            let made = made.and_then(|bytes| decode(&self.decoder, &batch.place, &bytes));
            let made = made.and_then(|made| match made.num_rows() == batch.end - batch.first {
                true => Ok(made),
                false => Err(damaged("a batch of another length")),
            });
            made.map_err(|error| error.to_string())
        };
        slot.get_or_init(make).clone().map_err(invalid)
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let dim = self.dim;
        let (mut row, end) = (first, first + out.len() / dim);
        while row < end {
            let place = self.batches.partition_point(|batch| batch.end <= row);
            let batch = &self.batches[place];
            let to = end.min(batch.end);
            let out = &mut out[(row - first) * dim..(to - first) * dim];
            let rows = self.rows(place, row - batch.first..to - batch.first)?;
            self.conversion.rows(&rows, row, out)?;
            row = to;
        }
        Ok(())
    }
}

source!(ArrowFile);
opened!(ArrowFile);
