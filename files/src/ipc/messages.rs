//! The messages of an Arrow file or stream: where each lies, and what it says.

use crate::ReadAt;
use crate::fault::{guarded, invalid};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::{Block, Endianness, Message, MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::Schema;
use flatbuffers::VerifierOptions;
use std::io;
use std::ops::Range;

/// What a file or a stream consists of.
pub(super) struct Messages {
    pub(super) schema: Schema,
    pub(super) version: MetadataVersion,
    pub(super) batches: Vec<Place>,
    pub(super) dictionaries: Vec<Place>,
}

/// Where a message lies.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// From the length of what it says on.
    head: Range<u64>,
    pub(super) body: Range<u64>,
}

const MAGIC: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];

fn damaged(what: impl std::fmt::Display) -> io::Error {
    invalid(format!("damaged: {what}"))
}

impl Messages {
    pub(super) fn read(bytes: &dyn ReadAt) -> io::Result<Self> {
        let mut start = [0; 6];
        let len = bytes.len();
        bytes.read_at(0, &mut start[..len.min(6) as usize])?;
        if start == *MAGIC {
            return Self::of_file(bytes);
        }
        if start.starts_with(b"FEA1") {
            return Err(invalid("the first version of Feather, which is not read"));
        }
        Self::of_stream(bytes)
    }

    fn of_file(bytes: &dyn ReadAt) -> io::Result<Self> {
        let len = bytes.len();
        let mut end = [0; 10];
        if len < 8 + 10 {
            return Err(damaged("it ends too early"));
        }
        bytes.read_at(len - 10, &mut end)?;
        if end[4..] != *MAGIC {
            return Err(damaged("it does not end as an Arrow file does"));
        }
        let [a, b, c, d, ..] = end;
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        if size > len - 18 {
            return Err(damaged(format!(
                "a footer of {size} bytes in a file of {len}"
            )));
        }
        let mut footer = vec![0; size as usize];
        bytes.read_at(len - 10 - size, &mut footer)?;
        let options = VerifierOptions {
            // Tables can be part of several others: without a limit, few bytes are very many columns.
            max_tables: footer.len(),
            ..VerifierOptions::default()
        };
        guarded(|| {
            let footer = arrow_ipc::root_as_footer_with_opts(&options, &footer);
            let footer = footer.map_err(|error| damaged(format!("footer: {error}")))?;
            let schema = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
            let places = |blocks: Option<flatbuffers::Vector<'_, Block>>| {
                let blocks = blocks.iter().flatten();
                blocks
                    .map(|block| Place::of(block, len))
                    .collect::<io::Result<Vec<_>>>()
            };
            Ok(Self {
                schema: schema_of(schema)?,
                version: footer.version(),
                batches: places(footer.recordBatches())?,
                dictionaries: places(footer.dictionaries())?,
            })
        })
    }

    /// From one message to the next.
    fn of_stream(bytes: &dyn ReadAt) -> io::Result<Self> {
        let (mut at, len) = (0, bytes.len());
        let mut found: Option<Self> = None;
        while at < len {
            let mut start = [0; 8];
            let read = start.len().min((len - at) as usize);
            bytes.read_at(at, &mut start[..read])?;
            let (before, size) = prefix(start);
            if size == 0 {
                break;
            }
            let head = at..at.saturating_add(u64::from(before)).saturating_add(size);
            if head.end > len {
                let what = match found {
                    Some(_) => "it ends within a message",
                    None => "neither a file nor a stream of Arrow",
                };
                return Err(damaged(what));
            }
            let text = head_of(bytes, &head)?;
            let message = message(&text)?;
            let body = u64::try_from(message.bodyLength()).map_err(damaged)?;
            let body = head.end..head.end.saturating_add(body);
            if body.end > len {
                return Err(damaged("it ends within a message"));
            }
            at = body.end;
            let place = Place { head, body };
            match (message.header_type(), &mut found) {
                (MessageHeader::Schema, None) => {
                    let schema = message.header_as_schema();
                    let schema = schema.ok_or_else(|| damaged("it has no schema"))?;
                    found = Some(Self {
                        schema: guarded(|| schema_of(schema))?,
                        version: message.version(),
                        batches: Vec::new(),
                        dictionaries: Vec::new(),
                    });
                }
                (MessageHeader::RecordBatch, Some(found)) => found.batches.push(place),
                (MessageHeader::DictionaryBatch, Some(found)) => found.dictionaries.push(place),
                _ => return Err(invalid("neither a file nor a stream of Arrow")),
            }
        }
        found.ok_or_else(|| invalid("neither a file nor a stream of Arrow"))
    }
}

fn schema_of(schema: arrow_ipc::Schema<'_>) -> io::Result<Schema> {
    if schema.endianness() != Endianness::Little {
        return Err(invalid(
            "its numbers are in big-endian order, which is not read",
        ));
    }
    if schema.fields().is_none() {
        return Err(damaged("its schema has no columns"));
    }
    Ok(fb_to_schema(schema))
}

/// The bytes before what a message says, and the length of that.
fn prefix(start: [u8; 8]) -> (u32, u64) {
    let [a, b, c, d, e, f, g, h] = start;
    match [a, b, c, d] == CONTINUATION {
        true => (8, u64::from(u32::from_le_bytes([e, f, g, h]))),
        // As it was before version 0.15 of Arrow.
        false => (4, u64::from(u32::from_le_bytes([a, b, c, d]))),
    }
}

/// What a message says, without its length.
fn head_of(bytes: &dyn ReadAt, head: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut text = vec![0; (head.end - head.start) as usize];
    bytes.read_at(head.start, &mut text)?;
    let mut start = [0; 8];
    let known = text.len().min(8);
    start[..known].copy_from_slice(&text[..known]);
    let (before, size) = prefix(start);
    let before = before as usize;
    let end = usize::try_from(size)
        .ok()
        .and_then(|size| before.checked_add(size));
    let end = end.filter(|end| *end <= text.len() && before <= *end);
    let end = end.ok_or_else(|| damaged("a message is longer than its place"))?;
    text.truncate(end);
    text.drain(..before);
    Ok(text)
}

fn message(text: &[u8]) -> io::Result<Message<'_>> {
    root_as_message(text).map_err(|error| damaged(format!("a message: {error}")))
}

impl Place {
    fn of(block: &Block, len: u64) -> io::Result<Self> {
        let place = || {
            let start = u64::try_from(block.offset()).ok()?;
            let middle = start.checked_add(u64::try_from(block.metaDataLength()).ok()?)?;
            let end = middle.checked_add(u64::try_from(block.bodyLength()).ok()?)?;
            (end <= len).then_some(Self {
                head: start..middle,
                body: middle..end,
            })
        };
        place().ok_or_else(|| damaged("a batch that is not in the file"))
    }

    /// Where it lies, as the decoder of Arrow wants it.
    pub(super) fn block(&self) -> Block {
        let head = (self.head.end - self.head.start) as i32;
        let body = (self.body.end - self.body.start) as i64;
        Block::new(self.head.start as i64, head, body)
    }

    /// All of it.
    pub(super) fn bytes(&self, bytes: &dyn ReadAt) -> io::Result<Vec<u8>> {
        let mut all = vec![0; (self.body.end - self.head.start) as usize];
        bytes.read_at(self.head.start, &mut all)?;
        Ok(all)
    }

    /// What `work` makes of the record batch that it describes.
    pub(super) fn batch<R>(
        &self,
        bytes: &dyn ReadAt,
        work: impl FnOnce(arrow_ipc::RecordBatch<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let text = head_of(bytes, &self.head)?;
        let message = message(&text)?;
        let batch = message.header_as_record_batch();
        work(batch.ok_or_else(|| damaged("a message that is no record batch"))?)
    }

    /// Checks the lengths that compressed buffers have before them, of a batch or of a dictionary.
    pub(super) fn check_lengths(&self, bytes: &dyn ReadAt) -> io::Result<()> {
        /// What a few bytes can become.
        const SMALL: i64 = 1 << 26;
        const GROWTH: i64 = 1_000;
        let text = head_of(bytes, &self.head)?;
        let message = message(&text)?;
        let dictionary = message.header_as_dictionary_batch();
        let batch = match message.header_as_record_batch() {
            Some(batch) => Some(batch),
            None => dictionary.and_then(|dictionary| dictionary.data()),
        };
        let batch = batch.ok_or_else(|| damaged("a message that is no batch"))?;
        let compressed = batch.compression().is_some();
        for buffer in batch.buffers().iter().flatten() {
            let (from, length) = (buffer.offset(), buffer.length());
            let body = (self.body.end - self.body.start) as i64;
            let end = from
                .checked_add(length)
                .filter(|_| from >= 0 && length >= 0);
            if end.is_none_or(|end| end > body) {
                return Err(damaged("a buffer that is not in the file"));
            }
            if compressed && length >= 8 {
                let mut says = [0; 8];
                bytes.read_at(self.body.start + from as u64, &mut says)?;
                if i64::from_le_bytes(says) > SMALL.max(length.saturating_mul(GROWTH)) {
                    return Err(damaged("a buffer becomes longer than it can be"));
                }
            }
        }
        Ok(())
    }
}
