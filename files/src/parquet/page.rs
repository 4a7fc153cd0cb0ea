//! The pages of a column chunk: read one at a time, and checked before anything is allocated for them.

use super::thrift::{Reader, Wrong, kind};
use super::{codec, delta};
use crate::ReadAt;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use std::ops::Range;
use std::sync::Arc;

/// What a page says of itself.
#[derive(Clone, Debug)]
struct Header {
    uncompressed: usize,
    compressed: usize,
    checksum: Option<u32>,
    is: Is,
}

#[derive(Clone, Debug)]
enum Is {
    Dictionary {
        values: u32,
        encoding: Encoding,
    },
    Data {
        values: u32,
        encoding: Encoding,
        definition: Encoding,
        repetition: Encoding,
    },
    DataV2 {
        values: u32,
        nulls: u32,
        rows: u32,
        encoding: Encoding,
        definition: usize,
        repetition: usize,
        compressed: bool,
    },
    Other,
}

/// How the numbers of a column lie in its pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) compression: Compression,
    /// Bytes of a number; 0 where they differ.
    pub(super) size: usize,
    /// Whether values are bytes of any length.
    pub(super) is_bytes: bool,
    /// Whether values can be missing.
    pub(super) optional: bool,
    /// Whether rows are lists.
    pub(super) lists: bool,
}

/// The pages of a column chunk.
pub(super) struct Pages {
    bytes: Arc<dyn ReadAt>,
    /// What was not read yet.
    left: Range<u64>,
    storage: Storage,
    /// The header of the next page.
    next: Option<Header>,
}

/// The longest header: statistics may be long.
const LONGEST: u64 = 1 << 20;
/// Pages up to this size need no reason.
const SMALL: usize = 1 << 24;
/// How many times larger a page may become, at most, beyond that.
const GROWTH: usize = 1_000;

fn wrong(what: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(format!("damaged: {what}"))
}

impl Pages {
    pub(super) fn new(bytes: Arc<dyn ReadAt>, range: Range<u64>, storage: Storage) -> Self {
        Self {
            bytes,
            left: range,
            storage,
            next: None,
        }
    }

    fn read(&self, from: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let read = self.bytes.read_at(from, &mut bytes);
        read.map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(bytes)
    }

    /// The header of the next page that holds dictionaries or data; `None` after the last one.
    fn peek(&mut self) -> Result<Option<&Header>> {
        while self.next.is_none() {
            if self.left.is_empty() {
                return Ok(None);
            }
            let mut len = 128;
            let (header, read) = loop {
                let most = len.min(self.left.end - self.left.start);
                let bytes = self.read(self.left.start, most as usize)?;
                let mut reader = Reader::new(&bytes);
                match header(&mut reader) {
                    Ok(header) => break (header, reader.at()),
                    Err(Wrong::End) if most == len && len < LONGEST => len *= 8,
                    Err(what) => return Err(wrong(format!("the header of a page: {what}"))),
                }
            };
            self.left.start += read as u64;
            if header.compressed as u64 > self.left.end - self.left.start {
                return Err(wrong("a page ends after its column"));
            }
            match header.is {
                Is::Other => self.left.start += header.compressed as u64,
                _ => self.next = Some(header),
            }
        }
        Ok(self.next.as_ref())
    }

    /// Whether what a page says of itself can be.
    fn check(&self, header: &Header) -> Result<()> {
        let most = SMALL.max(header.compressed.saturating_mul(GROWTH));
        if header.uncompressed > most {
            let (from, to) = (header.compressed, header.uncompressed);
            return Err(wrong(format!("a page of {from} bytes that become {to}")));
        }
        if self.storage.compression == Compression::UNCOMPRESSED
            && header.compressed != header.uncompressed
        {
            return Err(wrong("a page that is not compressed has two sizes"));
        }
        match header.is {
            Is::Dictionary { values, .. } => {
                let size = self.storage.size.max(1);
                if (values as usize).saturating_mul(size) > header.uncompressed {
                    return Err(wrong("a dictionary has more values than bytes for them"));
                }
            }
            Is::Data { values, .. } | Is::DataV2 { values, .. } => {
                // One row could have all of them.
                let most = SMALL.max(header.uncompressed.saturating_mul(GROWTH));
                if self.storage.lists && values as usize > most {
                    return Err(wrong("a page has more values than it can have"));
                }
            }
            Is::Other => {}
        }
        Ok(())
    }

    /// Whether the values of a page can be as many as they say.
    fn check_values(&self, header: &Header, page: &[u8]) -> std::result::Result<(), Wrong> {
        let (encoding, most, from) = match header.is {
            Is::Data {
                encoding, values, ..
            } if delta::is(encoding) => {
                let levels = usize::from(self.storage.lists) + usize::from(self.storage.optional);
                (encoding, values, delta::after_levels(page, levels)?)
            }
            Is::DataV2 {
                encoding,
                values,
                definition,
                repetition,
                ..
            } => (encoding, values, definition + repetition),
            _ => return Ok(()),
        };
        delta::check(encoding, page.get(from..).ok_or(Wrong::End)?, most)
    }

    fn page(&mut self) -> Result<Option<Page>> {
        if self.peek()?.is_none() {
            return Ok(None);
        }
        let Some(header) = self.next.take() else {
            return Ok(None);
        };
        self.check(&header)?;
        let stored = self.read(self.left.start, header.compressed)?;
        self.left.start += header.compressed as u64;
        if header
            .checksum
            .is_some_and(|sum| sum != crc32fast::hash(&stored))
        {
            return Err(wrong("the checksum of a page differs"));
        }
        // The levels of pages of version 2 are not compressed.
        let plain = match header.is {
            Is::DataV2 {
                definition,
                repetition,
                compressed,
                ..
            } => {
                let levels = definition + repetition;
                if levels > stored.len() || levels > header.uncompressed {
                    return Err(wrong("the levels of a page are longer than the page"));
                }
                if compressed { levels } else { stored.len() }
            }
            _ => 0,
        };
        let page = codec::decompress(self.storage.compression, stored, plain, header.uncompressed);
        let buf = Bytes::from(page.map_err(wrong)?);
        self.check_values(&header, &buf).map_err(wrong)?;
        Ok(Some(match header.is {
            Is::Dictionary { values, encoding } => Page::DictionaryPage {
                buf,
                num_values: values,
                encoding,
                is_sorted: false,
            },
            Is::Data {
                values,
                encoding,
                definition,
                repetition,
            } => Page::DataPage {
                buf,
                num_values: values,
                encoding,
                def_level_encoding: definition,
                rep_level_encoding: repetition,
                statistics: None,
            },
            Is::DataV2 {
                values,
                nulls,
                rows,
                encoding,
                definition,
                repetition,
                compressed,
            } => Page::DataPageV2 {
                buf,
                num_values: values,
                encoding,
                num_nulls: nulls,
                num_rows: rows,
                def_levels_byte_len: definition as u32,
                rep_levels_byte_len: repetition as u32,
                is_compressed: compressed,
                statistics: None,
            },
            Is::Other => return Err(wrong("a page of another kind")),
        }))
    }

    /// Checks what all pages say of themselves, without reading them. How long a value can be that many rows have, though
    /// its bytes are stored once: the size of the largest page with such values.
    pub(super) fn check_all(mut self) -> Result<usize> {
        let mut repeated = 0;
        while let Some(header) = self.peek()?.cloned() {
            self.check(&header)?;
            let repeats = match header.is {
                Is::Dictionary { .. } => true,
                Is::Data { encoding, .. } | Is::DataV2 { encoding, .. } => {
                    encoding == Encoding::DELTA_BYTE_ARRAY
                }
                Is::Other => false,
            };
            if repeats && self.storage.is_bytes {
                repeated = repeated.max(header.uncompressed);
            }
            self.skip_next_page()?;
        }
        Ok(repeated)
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.page()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.peek()?.map(|header| match header.is {
            Is::Data { values, .. } => PageMetadata {
                num_rows: None,
                num_levels: Some(values as usize),
                is_dict: false,
            },
            Is::DataV2 { values, rows, .. } => PageMetadata {
                num_rows: Some(rows as usize),
                num_levels: Some(values as usize),
                is_dict: false,
            },
            Is::Dictionary { .. } | Is::Other => PageMetadata {
                num_rows: None,
                num_levels: None,
                is_dict: true,
            },
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.peek()?;
        if let Some(header) = self.next.take() {
            self.left.start += header.compressed as u64;
        }
        Ok(())
    }
}

fn header(reader: &mut Reader<'_>) -> std::result::Result<Header, Wrong> {
    let (mut uncompressed, mut compressed, mut checksum, mut is) = (None, None, None, None);
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        match number {
            2 => uncompressed = Some(size(reader.i32(kind)?)? as usize),
            3 => compressed = Some(size(reader.i32(kind)?)? as usize),
            4 => checksum = Some(reader.i32(kind)? as u32),
            5 if kind == kind::STRUCT => is = Some(data(reader)?),
            7 if kind == kind::STRUCT => is = Some(dictionary(reader)?),
            8 if kind == kind::STRUCT => is = Some(data_v2(reader)?),
            _ => reader.skip(kind)?,
        }
    }
    let missing = Wrong::Content("a size is missing");
    Ok(Header {
        uncompressed: uncompressed.ok_or(missing)?,
        compressed: compressed.ok_or(missing)?,
        checksum,
        is: is.unwrap_or(Is::Other),
    })
}

fn size(value: i32) -> std::result::Result<u32, Wrong> {
    u32::try_from(value).map_err(|_| Wrong::Content("a size is negative"))
}

fn encoding(value: i32) -> std::result::Result<Encoding, Wrong> {
    Ok(match value {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        #[allow(deprecated)]
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return Err(Wrong::Content("an encoding that is not known")),
    })
}

/// The integers of a structure, by their numbers, and whether field 7 is false.
fn integers(reader: &mut Reader<'_>) -> std::result::Result<([Option<i32>; 8], bool), Wrong> {
    let (mut found, mut is_false, mut last) = ([None; 8], false, 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (1..=7, kind::I32) => found[number as usize] = Some(reader.i32(kind)?),
            (7, kind::FALSE) => is_false = true,
            _ => reader.skip(kind)?,
        }
    }
    Ok((found, is_false))
}

fn dictionary(reader: &mut Reader<'_>) -> std::result::Result<Is, Wrong> {
    let ([_, values, code, ..], _) = integers(reader)?;
    Ok(Is::Dictionary {
        values: size(values.unwrap_or(-1))?,
        encoding: encoding(code.unwrap_or(-1))?,
    })
}

fn data(reader: &mut Reader<'_>) -> std::result::Result<Is, Wrong> {
    let ([_, values, code, definition, repetition, ..], _) = integers(reader)?;
    Ok(Is::Data {
        values: size(values.unwrap_or(-1))?,
        encoding: encoding(code.unwrap_or(-1))?,
        definition: encoding(definition.unwrap_or(-1))?,
        repetition: encoding(repetition.unwrap_or(-1))?,
    })
}

fn data_v2(reader: &mut Reader<'_>) -> std::result::Result<Is, Wrong> {
    let ([_, values, nulls, rows, code, definition, repetition, _], is_false) = integers(reader)?;
    let (values, nulls) = (size(values.unwrap_or(-1))?, size(nulls.unwrap_or(-1))?);
    let rows = size(rows.unwrap_or(-1))?;
    if nulls > values || rows > values {
        return Err(Wrong::Content("a page has more nulls or rows than values"));
    }
    Ok(Is::DataV2 {
        values,
        nulls,
        rows,
        encoding: encoding(code.unwrap_or(-1))?,
        definition: size(definition.unwrap_or(-1))? as usize,
        repetition: size(repetition.unwrap_or(-1))? as usize,
        compressed: !is_false,
    })
}
