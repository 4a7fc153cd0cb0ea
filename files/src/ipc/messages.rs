//! The messages of an Arrow file or stream: where each lies, and whether what it declares can be.

use crate::ReadAt;
use crate::fault::invalid;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::{
    Block, Endianness, Message, MessageHeader, MetadataVersion, RecordBatch,
    root_as_message_with_opts,
};
use arrow_schema::SchemaRef;
use flatbuffers::VerifierOptions;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What a file or a stream consists of.
pub(super) struct Messages {
    pub(super) schema: SchemaRef,
    pub(super) version: MetadataVersion,
    pub(super) batches: Vec<Place>,
    pub(super) dictionaries: Vec<Place>,
}

/// Where a message lies: within the file.
#[derive(Clone)]
pub(super) struct Place {
    /// What it says, after the length of that.
    head: Range<u64>,
    pub(super) body: Range<u64>,
}

pub(super) fn damaged(what: impl std::fmt::Display) -> io::Error {
    invalid(format!("damaged: {what}"))
}

impl Messages {
    /// Goes from one message to the next. A file is a stream after its first eight bytes, and a list of the messages.
    pub(super) fn read(bytes: &dyn ReadAt) -> io::Result<Self> {
        let (len, mut at) = (bytes.len(), 0);
        let ends = |from, with: &[u8]| {
            let mut found = vec![0; with.len()];
            bytes.read_at(from, &mut found).is_ok() && found == with
        };
        if ends(0, b"FEA1") {
            return Err(invalid("the first version of Feather, which is not read"));
        }
        if ends(0, b"ARROW1") {
            at = 8;
            if len < 20 || !ends(len - 6, b"ARROW1") {
                return Err(damaged("it ends too early"));
            }
        }
        let mut found: Option<Self> = None;
        let other = || invalid("neither a file nor a stream of Arrow");
        while at < len {
            let mut start = [0; 8];
            bytes.read_at(at, &mut start[..(len - at).min(8) as usize])?;
            let [a, b, c, d, e, f, g, h] = start;
            // Before version 0.15 of Arrow, the length came without a mark before it.
            let (before, size) = match [a, b, c, d] {
                [0xff, 0xff, 0xff, 0xff] => (8, [e, f, g, h]),
                size => (4, size),
            };
            let size = u64::from(u32::from_le_bytes(size));
            if size == 0 && found.is_none() && (8..64).contains(&at) {
                // Some writers begin the stream in a file at a multiple of 64 bytes.
                at += 8;
                continue;
            }
            if size == 0 {
                break;
            }
            let end = at + before + size;
            if end > len {
                return Err(found.map_or_else(other, |_| damaged("it ends within a message")));
            }
            let mut place = Place {
                head: at..end,
                body: end..end,
            };
            let text = place.text(bytes)?;
            let message = message(&text)?;
            let body = u64::try_from(message.bodyLength()).map_err(damaged)?;
            at = end.saturating_add(body);
            if at > len {
                return Err(damaged("it ends within a message"));
            }
            place.body.end = at;
            match (message.header_type(), &mut found) {
                (MessageHeader::Schema, None) => {
                    found = Some(Self {
                        schema: schema_of(message.header_as_schema())?,
                        version: message.version(),
                        batches: Vec::new(),
                        dictionaries: Vec::new(),
                    });
                }
                (MessageHeader::RecordBatch, Some(found)) => found.batches.push(place),
                (MessageHeader::DictionaryBatch, Some(found)) => found.dictionaries.push(place),
                _ => return Err(other()),
            }
        }
        found.ok_or_else(other)
    }
}

fn message(text: &[u8]) -> io::Result<Message<'_>> {
    let options = VerifierOptions {
        // Tables can be part of several others: without a limit, few bytes are very many columns.
        max_tables: text.len(),
        ..VerifierOptions::default()
    };
    root_as_message_with_opts(&options, text).map_err(damaged)
}

fn schema_of(schema: Option<arrow_ipc::Schema<'_>>) -> io::Result<SchemaRef> {
    let schema = schema.filter(|schema| schema.fields().is_some());
    let schema = schema.ok_or_else(|| damaged("it has no columns"))?;
    match schema.endianness() {
        Endianness::Little => Ok(Arc::new(fb_to_schema(schema))),
        _ => Err(invalid(
            "its numbers are in big-endian order, which is not read",
        )),
    }
}

impl Place {
    /// Where it lies in its own bytes, as the decoder of Arrow wants it.
    pub(super) fn block(&self) -> Block {
        let [head, body] = [&self.head, &self.body].map(|range| range.end - range.start);
        Block::new(0, head as i32, body as i64)
    }

    /// What it says, and these parts of its body; zeros in place of the others.
    pub(super) fn bytes<'a>(
        &'a self,
        bytes: &dyn ReadAt,
        parts: impl IntoIterator<Item = &'a Range<u64>>,
    ) -> io::Result<Vec<u8>> {
        let start = self.head.start;
        let mut all = vec![0; (self.body.end - start) as usize];
        for part in [&self.head].into_iter().chain(parts) {
            if !part.is_empty() {
                let out = &mut all[(part.start - start) as usize..(part.end - start) as usize];
                bytes.read_at(part.start, out)?;
            }
        }
        Ok(all)
    }

    /// What it says.
    fn text(&self, bytes: &dyn ReadAt) -> io::Result<Vec<u8>> {
        let mut text = vec![0; (self.head.end - self.head.start) as usize];
        bytes.read_at(self.head.start, &mut text)?;
        let before = if text.starts_with(&[0xff; 4]) { 8 } else { 4 };
        text.drain(..before.min(text.len()));
        Ok(text)
    }

    /// What `work` makes of the batch that it describes, of rows or of a dictionary.
    pub(super) fn batch<R>(
        &self,
        bytes: &dyn ReadAt,
        work: impl FnOnce(RecordBatch<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let text = self.text(bytes)?;
        let message = message(&text)?;
        let dictionary = message.header_as_dictionary_batch();
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| dictionary.and_then(|dictionary| dictionary.data()));
        work(batch.ok_or_else(|| damaged("a message that is no batch"))?)
    }

    /// Checks the lengths that compressed buffers have before them: the decoder makes room for so many bytes.
    pub(super) fn check_lengths(&self, bytes: &dyn ReadAt) -> io::Result<()> {
        let batch = |batch: RecordBatch<'_>| {
            let compressed = batch.compression().is_some();
            let buffers = batch.buffers();
            buffers.iter().flatten().try_for_each(|buffer| {
                let range = self.part(buffer)?;
                let (length, mut says) = (range.end - range.start, [0; 8]);
                if compressed && length >= 8 {
                    bytes.read_at(range.start, &mut says)?;
                }
                match i64::from_le_bytes(says) > growth(length) as i64 {
                    true => Err(damaged("a buffer becomes longer than it can be")),
                    false => Ok(()),
                }
            })
        };
        self.batch(bytes, batch)
    }

    /// Where a buffer lies in the file.
    pub(super) fn part(&self, buffer: &arrow_ipc::Buffer) -> io::Result<Range<u64>> {
        let place = || {
            let from = u64::try_from(buffer.offset()).ok()?;
            let start = self.body.start.checked_add(from)?;
            let end = start.checked_add(u64::try_from(buffer.length()).ok()?)?;
            (end <= self.body.end).then_some(start..end)
        };
        place().ok_or_else(|| damaged("a buffer that is not in the file"))
    }
}

/// What so many compressed bytes can become.
pub(super) fn growth(bytes: u64) -> u64 {
    bytes.saturating_mul(1_000).clamp(1 << 26, i64::MAX as u64)
}
