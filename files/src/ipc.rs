//! Rows of an Arrow file or stream, through the decoder of the crate `arrow-ipc`; numbers that are not compressed are read
//! where they lie.

use crate::batch::Conversion;
use crate::choice::Columns;
use crate::fault::{damaged, guarded, invalid};
use crate::keys::Keys;
use crate::numbers::{Kind, Number};
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use crate::source::{by_parts, ends, opened, source};
use crate::table::{ReadAt, not_empty};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_data::{DataTypeLayout, layout};
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, DictionaryBatch, Endianness, Message, MessageHeader, MetadataVersion};
use arrow_ipc::{root_as_footer_with_opts, root_as_message_with_opts};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use base64::prelude::{BASE64_STANDARD, Engine};
use flatbuffers::VerifierOptions;
use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The rows of an Arrow file, read when they are asked for: a [`Source`](coremix::data::Source). Arrow calls the format IPC; files of Feather,
/// version 2, are the same. A file is read by its footer; a stream in a file is gone through once, from message to message.
///
/// Rows are columns of numbers, or the lists of one column ([`Options::columns`]). `T` is a type that holds all numbers
/// exactly, unless they may be [rounded](Options::rounded).
///
/// Numbers, and vectors of them, that are not compressed are read where they lie: in memory are the rows that were asked for.
/// If a batch is compressed by lz4 or zstd, has nulls, or has decimals, lists or numbers that are coded by dictionaries, the
/// columns that are read are decoded as a whole. The batches of all files that were decoded last are kept: 32 MiB, or one for
/// each processor, and one more. A null,
/// NaN, an infinity, or a list of another length is an error that names the column and the row.
pub struct ArrowFile<T> {
    path: String,
    messages: Messages,
    conversion: Conversion,
    /// The rows before which batches end.
    ends: Vec<usize>,
    len: usize,
    dim: usize,
    may_miss: bool,
    /// Batches that were decoded.
    pool: Pool<Decoded>,
    /// Bytes of one, at most: none where numbers are read where they lie.
    pub(crate) decoder: u64,
    of: std::marker::PhantomData<T>,
}

/// A batch that one thread decodes, while others wait for it.
type Slot = Arc<OnceLock<std::result::Result<RecordBatch, String>>>;

/// A batch at its place among the others.
#[derive(Clone)]
struct Decoded(usize, Slot);

impl Cursor for Decoded {
    fn row(&self) -> usize {
        self.0
    }
}

/// The parts of a file or a stream.
struct Contents {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Vec<Block>,
    /// Batches of rows, each with the number of dictionaries that come before it.
    batches: Vec<(Block, usize)>,
}

/// The columns of a file that are read.
struct Messages {
    bytes: Arc<dyn ReadAt>,
    contents: Contents,
    columns: Vec<usize>,
    /// If all of the columns are numbers, or vectors of them: which numbers, and how many of them a row has.
    kinds: Option<Vec<(Kind, usize)>>,
    batches: Vec<Batch>,
    /// A decoder, and how many of the dictionaries it knows: a later one can replace an earlier one.
    decoder: Mutex<(Arc<FileDecoder>, usize)>,
}

/// Parts of the file.
type Places = Vec<Range<u64>>;

/// Rows that lie together.
struct Batch {
    block: Block,
    /// Dictionaries that hold for it, if columns that are read are coded so.
    dictionaries: usize,
    rows: usize,
    /// Where in the file the buffers of the columns that are read lie; `None` where the decoder alone knows.
    buffers: Option<Places>,
    /// Where the numbers of each column lie, if they are as they are read: not compressed, and without nulls.
    plain: Option<Places>,
}

/// The columns of a file.
pub(crate) fn columns(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<Columns> {
    looked(&Contents::read(&**bytes)?, bytes, options)
}

fn looked(contents: &Contents, bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<Columns> {
    let mut columns = Columns {
        has_rows: !contents.batches.is_empty(),
        ..Columns::of(&contents.schema)
    };
    columns.look(options, |key_options| {
        guarded(|| keys(Arc::clone(bytes), key_options)).ok()
    });
    Ok(columns)
}

/// The key columns that options name.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Keys> {
    let name = bytes.name();
    let contents = Contents::read(&bytes)?;
    let keys = Columns::of(&contents.schema)
        .keys(options)
        .map_err(invalid)?;
    let schema = contents.schema.project(&keys).map_err(invalid)?;
    let messages = Messages::new(bytes, contents, keys)?;
    let batches = (0..messages.batches.len()).map(move |i| guarded(|| messages.decode(i)));
    Ok(Keys::new(name, &schema, batches))
}

/// Bytes that must be there.
fn part(bytes: &dyn ReadAt, from: u64, len: u64) -> io::Result<Vec<u8>> {
    if from.checked_add(len).is_none_or(|end| end > bytes.len()) {
        return Err(damaged("it ends too early"));
    }
    let mut read = vec![0; len as usize];
    bytes.read_at(from, &mut read)?;
    Ok(read)
}

/// Tables can be part of several others: without a limit, few bytes are very many columns.
fn limits(text: &[u8]) -> VerifierOptions {
    VerifierOptions {
        max_tables: text.len(),
        ..VerifierOptions::default()
    }
}

/// The message in its text. Before version 0.15 of Arrow, its length came without a mark before it.
fn message(text: &[u8]) -> io::Result<Message<'_>> {
    let before = if text.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let text = text.get(before..).unwrap_or_default();
    root_as_message_with_opts(&limits(text), text).map_err(damaged)
}

/// The batch that a message is, of rows or of a dictionary.
fn batch_of(text: &[u8]) -> io::Result<arrow_ipc::RecordBatch<'_>> {
    let message = message(text)?;
    let dictionary = message.header_as_dictionary_batch();
    let batch = message
        .header_as_record_batch()
        .or_else(|| dictionary.and_then(|dictionary| dictionary.data()));
    batch.ok_or_else(|| damaged("a message that is no batch"))
}

fn schema_of(schema: Option<arrow_ipc::Schema<'_>>) -> io::Result<SchemaRef> {
    let none = || damaged("it has no columns");
    let schema = schema.ok_or_else(none)?;
    if schema.endianness() != Endianness::Little {
        let what = "its numbers are in big-endian order, which is not read";
        return Err(invalid(what));
    }
    let fields = schema.fields().ok_or_else(none)?.iter().map(|field| {
        let name = field.name().unwrap_or_default();
        let int = field.type_as_int();
        match int.map(|int| (int.bitWidth(), int.is_signed())) {
            // Polars writes them: they lie as decimals without digits after the point do.
            Some((128, true)) => Ok(Field::new(name, DataType::Decimal128(38, 0), true)),
            Some((128, false)) => Ok(Field::new(name, DataType::FixedSizeBinary(16), true)),
            _ => guarded(|| Ok(Field::from(field))).map_err(|_| {
                let kind = field.type_type().variant_name().unwrap_or("unknown");
                invalid(format!(
                    "column {name:?} is of a type that is not read: {kind}"
                ))
            }),
        }
    });
    Ok(Arc::new(Schema::new(
        fields.collect::<io::Result<Vec<_>>>()?,
    )))
}

/// The schema that writers of Parquet put into its words.
pub(crate) fn schema_in(text: &str) -> io::Result<SchemaRef> {
    let text = BASE64_STANDARD.decode(text).map_err(damaged)?;
    schema_of(message(&text)?.header_as_schema())
}

impl Contents {
    fn read(bytes: &dyn ReadAt) -> io::Result<Self> {
        not_empty(bytes)?;
        let len = bytes.len();
        let is = |from, with: &[u8]| part(bytes, from, 6).is_ok_and(|at| at.starts_with(with));
        if is(0, b"FEA1") {
            let what = "the first version of Feather, which is not read";
            return Err(invalid(what));
        }
        if !is(0, b"ARROW1") {
            return Self::of_stream(bytes);
        }
        let tail = part(bytes, len.saturating_sub(10), 10)?
            .try_into()
            .map_err(|_| damaged("it ends too early"))?;
        let size = read_footer_length(tail).map_err(|_| damaged("it ends too early"))? as u64;
        let text = part(bytes, len.saturating_sub(10 + size), size)?;
        let footer = root_as_footer_with_opts(&limits(&text), &text).map_err(damaged)?;
        let dictionaries: Vec<_> = footer
            .dictionaries()
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let batches = footer.recordBatches().into_iter().flatten();
        Ok(Self {
            schema: schema_of(footer.schema())?,
            version: footer.version(),
            batches: batches.map(|block| (*block, dictionaries.len())).collect(),
            dictionaries,
        })
    }

    /// Goes from one message to the next.
    fn of_stream(bytes: &dyn ReadAt) -> io::Result<Self> {
        let len = bytes.len();
        let mut at = 0;
        let mut contents = None::<Self>;
        let other = || invalid("neither a file nor a stream of Arrow");
        while at < len {
            let mut start = [0; 8];
            bytes.read_at(at, &mut start[..(len - at).min(8) as usize])?;
            let [a, b, c, d, e, f, g, h] = start;
            let (before, size) = match [a, b, c, d] {
                [0xff, 0xff, 0xff, 0xff] => (8, [e, f, g, h]),
                size => (4, size),
            };
            let size = before + u64::from(u32::from_le_bytes(size));
            if size == before {
                break;
            }
            if size > len - at && contents.is_none() {
                return Err(other());
            }
            let mut text = part(bytes, at, size)?;
            align_counts(&mut text);
            let message = message(&text)?;
            let body = u64::try_from(message.bodyLength()).map_err(damaged)?;
            let block = Block::new(at as i64, size as i32, body as i64);
            at = (at + size).saturating_add(body);
            if at > len {
                return Err(damaged("it ends within a message"));
            }
            match (message.header_type(), &mut contents) {
                (MessageHeader::Schema, None) => {
                    contents = Some(Self {
                        schema: schema_of(message.header_as_schema())?,
                        version: message.version(),
                        dictionaries: Vec::new(),
                        batches: Vec::new(),
                    });
                }
                (MessageHeader::RecordBatch, Some(contents)) => {
                    contents.batches.push((block, contents.dictionaries.len()));
                }
                (MessageHeader::DictionaryBatch, Some(contents)) => {
                    contents.dictionaries.push(block)
                }
                _ => return Err(other()),
            }
        }
        contents.ok_or_else(other)
    }

    /// A decoder of these columns that knows no dictionary.
    fn decoder(&self, columns: &[usize]) -> (Arc<FileDecoder>, usize) {
        let decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
        (Arc::new(decoder.with_projection(columns.to_vec())), 0)
    }
}

impl Messages {
    fn new(bytes: Arc<dyn ReadAt>, contents: Contents, columns: Vec<usize>) -> io::Result<Self> {
        let is_read: HashSet<usize> = columns.iter().copied().collect();
        let mut layouts = Vec::new();
        let mut coded = false;
        let mut known = true;
        for (place, field) in contents.schema.fields().iter().enumerate() {
            let read = is_read.contains(&place);
            let inner = Schema::new(vec![Arc::clone(field)]);
            let inner = inner.flattened_fields().into_iter();
            let depth = inner.len();
            for (level, inner) in (1..).zip(inner) {
                let kind = inner.data_type();
                let is_coded = matches!(kind, DataType::Dictionary(..));
                coded |= read && is_coded;
                let is_other = matches!(kind, DataType::Union(..) | DataType::RunEndEncoded(..));
                known &= !(is_other || is_coded && kind.is_nested());
                layouts.push((read, level == depth, layout(kind)));
            }
        }
        let kinds = columns
            .iter()
            .map(|column| match contents.schema.field(*column).data_type() {
                DataType::FixedSizeList(item, each) => {
                    Some((Kind::of(item.data_type())?, usize::try_from(*each).ok()?))
                }
                kind => Some((Kind::of(kind)?, 1)),
            })
            .collect::<Option<Vec<_>>>();
        let mut batches = Vec::<Batch>::new();
        for &(block, dictionaries) in &contents.batches {
            let text = text_of(&bytes, &block)?;
            let batch = batch_of(&text)?;
            let compressed = batch.compression().is_some();
            let body = block.bodyLength() as u64;
            let most = if compressed { growth(body) } else { body };
            let rows = u64::try_from(batch.length())
                .ok()
                .filter(|rows| *rows / 8 <= most)
                .ok_or_else(|| damaged("more rows than a batch can have"))?;
            let places = known.then(|| buffers(batch, &block, &layouts));
            let (buffers, numbers) = places.transpose()?.unzip();
            let plain = kinds.is_some() && !compressed;
            batches.push(Batch {
                block,
                dictionaries: if coded { dictionaries } else { 0 },
                rows: rows as usize,
                buffers,
                plain: numbers.flatten().filter(|_| plain),
            });
        }
        Ok(Self {
            decoder: Mutex::new(contents.decoder(&columns)),
            bytes,
            contents,
            columns,
            kinds,
            batches,
        })
    }

    /// The bytes of a message, with these parts of its body, or all of it: what is compressed can be as long as it says.
    fn checked(&self, block: &Block, parts: Option<&[Range<u64>]>) -> io::Result<(Block, Buffer)> {
        let text = text_of(&self.bytes, block)?;
        let mut message = vec![0; text.len() + block.bodyLength() as usize];
        message[..text.len()].copy_from_slice(&text);
        let start = block.offset() as u64 + block.metaDataLength() as u64;
        let place = |part: &Range<u64>| {
            let [from, to] = [part.start, part.end].map(|at| (at - start) as usize + text.len());
            from..to
        };
        let whole = start..start + block.bodyLength() as u64;
        for part in parts.unwrap_or(slice::from_ref(&whole)) {
            self.bytes.read_at(part.start, &mut message[place(part)])?;
        }
        let batch = batch_of(&text)?;
        for buffer in batch.buffers().into_iter().flatten() {
            let part = &message[place(&range(buffer, block)?)];
            let says = part
                .first_chunk()
                .map_or(0, |says| i64::from_le_bytes(*says));
            if batch.compression().is_some() && says > growth(part.len() as u64) as i64 {
                return Err(damaged("a buffer becomes longer than it can be"));
            }
        }
        let block = Block::new(0, text.len() as i32, block.bodyLength());
        Ok((block, Buffer::from_vec(message)))
    }

    /// A decoder that knows this number of dictionaries, the first ones, and no others.
    fn decoder(&self, dictionaries: usize) -> io::Result<Arc<FileDecoder>> {
        let mut state = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1 > dictionaries
            || (state.1 < dictionaries && Arc::get_mut(&mut state.0).is_none())
        {
            *state = self.contents.decoder(&self.columns);
        }
        while state.1 < dictionaries {
            let (block, bytes) = self.checked(&self.contents.dictionaries[state.1], None)?;
            if let Some(decoder) = Arc::get_mut(&mut state.0) {
                decoder.read_dictionary(&block, &bytes).map_err(damaged)?;
            }
            state.1 += 1;
        }
        Ok(Arc::clone(&state.0))
    }

    /// The columns of a batch that are read.
    fn decode(&self, place: usize) -> io::Result<RecordBatch> {
        let batch = &self.batches[place];
        let decoder = self.decoder(batch.dictionaries)?;
        let (block, bytes) = self.checked(&batch.block, batch.buffers.as_deref())?;
        let decoded = decoder
            .read_record_batch(&block, &bytes)
            .map_err(damaged)?
            .filter(|decoded| decoded.num_rows() == batch.rows);
        decoded.ok_or_else(|| damaged("a batch of another length"))
    }

    /// The bytes of some rows of a column whose numbers lie there.
    fn numbers(&self, rows: &Range<usize>, place: &Range<u64>, size: usize) -> io::Result<Vec<u8>> {
        let at = [rows.start, rows.end].map(|row| (row as u64).saturating_mul(size as u64));
        if at[1] <= place.end - place.start {
            part(&self.bytes, place.start + at[0], at[1] - at[0])
        } else {
            Err(damaged("a buffer is too short"))
        }
    }
}

/// The text of a message, whose body is in the file.
fn text_of(bytes: &dyn ReadAt, block: &Block) -> io::Result<Vec<u8>> {
    let size = |size: i64| u64::try_from(size).map_err(damaged);
    let from = size(block.offset())?;
    let text = size(block.metaDataLength().into())?;
    let body = size(block.bodyLength())?;
    if from.saturating_add(text).saturating_add(body) > bytes.len() {
        return Err(damaged("a message that is not in the file"));
    }
    let mut text = part(bytes, from, text)?;
    align_counts(&mut text);
    Ok(text)
}

/// Polars wrote numbers of 8 bytes to places for numbers of 4, where a message counts the buffers of texts, and what verifies
/// messages refuses them: a copy of them at a right place comes after the text.
fn align_counts(text: &mut Vec<u8>) -> Option<()> {
    let long = |at: usize| Some(u32::from_le_bytes(*text.get(at..)?.first_chunk()?) as usize);
    let short = |at: usize| Some(u16::from_le_bytes(*text.get(at..)?.first_chunk()?).into());
    // Where a table has a field, as its list of fields says.
    let field = |table: usize, slot: usize| {
        let fields = table.checked_add_signed(-(long(table)? as i32 as isize))?;
        let place = (slot < short(fields)?).then(|| short(fields + slot))??;
        (place > 0).then_some(table + place)
    };
    let within = |field: usize| Some(field + long(field)?);
    let start = if text.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = within(start)?;
    let kind = MessageHeader(*text.get(field(message, Message::VT_HEADER_TYPE.into())?)?);
    let mut batch = within(field(message, Message::VT_HEADER.into())?)?;
    if kind == MessageHeader::DictionaryBatch {
        batch = within(field(batch, DictionaryBatch::VT_DATA.into())?)?;
    }
    let counts = field(
        batch,
        arrow_ipc::RecordBatch::VT_VARIADICBUFFERCOUNTS.into(),
    )?;
    let list = within(counts)?;
    if !matches!(
        kind,
        MessageHeader::DictionaryBatch | MessageHeader::RecordBatch
    ) || (list + 4 - start).is_multiple_of(8)
    {
        return None;
    }
    let list = text.get(list..list + 4 + 8 * long(list)?)?.to_vec();
    text.resize((text.len() - start).next_multiple_of(8) + start + 4, 0);
    let offset = (text.len() - counts) as u32;
    text[counts..counts + 4].copy_from_slice(&offset.to_le_bytes());
    text.extend(list);
    text.resize(text.len().next_multiple_of(8), 0);
    Some(())
}

/// Where in the file a buffer of a batch lies.
fn range(buffer: &arrow_ipc::Buffer, block: &Block) -> io::Result<Range<u64>> {
    let range = || {
        let start = u64::try_from(buffer.offset()).ok()?;
        let end = start.checked_add(u64::try_from(buffer.length()).ok()?)?;
        let body = (block.offset() + i64::from(block.metaDataLength())) as u64;
        (end <= block.bodyLength() as u64).then(|| body + start..body + end)
    };
    range().ok_or_else(|| damaged("a buffer that is not in the file"))
}

/// Where in the file all buffers of the columns that are read lie, and those of their innermost values, if there are no nulls.
fn buffers(
    batch: arrow_ipc::RecordBatch<'_>,
    block: &Block,
    layouts: &[(bool, bool, DataTypeLayout)],
) -> io::Result<(Places, Option<Places>)> {
    let mut nodes = batch.nodes().into_iter().flatten();
    let mut buffers = batch.buffers().into_iter().flatten();
    let mut views = batch.variadicBufferCounts().into_iter().flatten();
    let few = || damaged("a batch has fewer columns than the file");
    let mut places = Vec::new();
    let mut values = Vec::new();
    let mut nulls = false;
    for (read, innermost, layout) in layouts {
        let has_nulls = nodes.next().ok_or_else(few)?.null_count() != 0;
        let views = if layout.variadic {
            views.next()
        } else {
            Some(0)
        };
        let views = views.and_then(|views| usize::try_from(views).ok());
        let fixed = usize::from(layout.can_contain_null_mask) + layout.buffers.len();
        let count = fixed.saturating_add(views.ok_or_else(few)?);
        let ranges = (0..count)
            .map(|_| range(buffers.next().ok_or_else(few)?, block))
            .collect::<io::Result<Vec<_>>>()?;
        if *read {
            nulls |= has_nulls;
            values.extend(ranges.last().filter(|_| *innermost).cloned());
            places.extend(ranges);
        }
    }
    Ok((places, (!nulls).then_some(values)))
}

/// The most bytes that these compressed bytes can become.
fn growth(bytes: u64) -> u64 {
    bytes.saturating_mul(1_000).clamp(1 << 26, i64::MAX as u64)
}

impl<T: Number> ArrowFile<T> {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let path = bytes.name();
        let contents = Contents::read(&bytes)?;
        let mut conversion = Conversion::new::<T>(&looked(&contents, &bytes, options)?, options)?;
        let mut messages = Messages::new(bytes, contents, conversion.project())?;
        messages.batches.retain(|batch| batch.rows > 0);
        let ends = ends(messages.batches.iter().map(|batch| batch.rows));
        let mut decoded = None;
        if let (None, Some(first)) = (conversion.dim, messages.batches.first()) {
            if let (Some(places), Some(&[(kind, each)])) = (&first.plain, messages.kinds.as_deref())
            {
                // A length that the file does not have is no length.
                messages.numbers(&(0..1), &places[0], kind.size() * each)?;
                conversion.dim = Some(each);
            } else {
                let first = messages.decode(0)?;
                conversion.see(&first, 0)?;
                decoded = Some(Decoded(0, Arc::new(OnceLock::from(Ok(first)))));
            }
        }
        let dim = conversion.dim.unwrap_or(0);
        let others = messages.batches.iter().filter(|one| one.plain.is_none());
        let bytes = others.map(|one| {
            let numbers = one.rows.saturating_mul(dim) as u64;
            let body = u64::try_from(one.block.bodyLength()).unwrap_or(0);
            body.saturating_add(numbers.saturating_mul(8))
        });
        let decoder = bytes.max().unwrap_or(0);
        let pool = Pool::new(decoder);
        if let Some(decoded) = decoded {
            pool.share(0, || decoded);
        }
        Ok(Self {
            path,
            messages,
            dim,
            may_miss: conversion.lenient,
            conversion,
            len: ends.last().copied().unwrap_or(0),
            ends,
            pool,
            decoder,
            of: std::marker::PhantomData,
        })
    }

    /// A batch, decoded by whoever asks for it first.
    fn decoded(&self, place: usize) -> io::Result<RecordBatch> {
        let Decoded(_, slot) = self.pool.share(place, || Decoded(place, Slot::default()));
        let make = || guarded(|| self.messages.decode(place)).map_err(|error| error.to_string());
        slot.get_or_init(make).clone().map_err(invalid)
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        by_parts(&self.ends, self.dim, first, out, |part, start, row, out| {
            let rows = row - start..row - start + out.len() / self.dim;
            let plain = &self.messages.batches[part].plain;
            let (Some(places), Some(kinds)) = (plain, &self.messages.kinds) else {
                let rows = self.decoded(part)?.slice(rows.start, rows.len());
                return self.conversion.rows(&rows, row, out);
            };
            self.conversion.numbers(row, out, |column| {
                let ((kind, each), place) = (kinds[column], &places[column]);
                let bytes = self.messages.numbers(&rows, place, kind.size() * each);
                bytes.map(|bytes| (kind, bytes))
            })
        })
    }
}

source!(ArrowFile);
opened!(ArrowFile);
