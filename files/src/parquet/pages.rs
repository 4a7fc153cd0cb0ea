//! The pages of a file, read by the crate `parquet` and checked where it would believe what they declare: it makes room for
//! the decompressed page, for the values of a dictionary, and for the lengths of delta-coded texts.

use super::footer::Footer;
use super::thrift::{Rest, page_sizes};
use crate::ReadAt;
use crate::fault::invalid;
use crate::table::ReadFrom;
use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

/// Pages up to this size need no reason.
const SMALL: u64 = 1 << 24;
/// How many times larger a page may become, at most, beyond that.
const GROWTH: u64 = 1_000;
/// The longest header: statistics may be long.
const LONGEST: u64 = 1 << 20;

/// Some row groups of a file.
pub(super) struct Groups {
    pub(super) file: Arc<Footer>,
    pub(super) range: Range<usize>,
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        self.row_groups()
            .map(|group| group.num_rows() as usize)
            .sum()
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let (file, range) = (Arc::clone(&self.file), self.range.clone());
        Ok(Box::new(Column { file, range, leaf }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.file.metadata.row_groups()[self.range.clone()].iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.file.metadata
    }
}

/// A column, row group after row group.
struct Column {
    file: Arc<Footer>,
    range: Range<usize>,
    leaf: usize,
}

impl Iterator for Column {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.file.metadata.row_group(self.range.next()?);
        let chunk = group.column(self.leaf);
        let pages = Pages::new(&self.file.bytes, chunk, group.num_rows() as usize);
        Some(pages.map(|pages| Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for Column {}

/// The bytes of a file, for the crate.
struct Chunks(Arc<dyn ReadAt>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = Header;

    fn get_read(&self, at: u64) -> Result<Header> {
        let bytes = Arc::clone(&self.0);
        let bytes = ReadFrom { bytes, at }.take(LONGEST);
        Ok(Header {
            bytes: BufReader::with_capacity(128, bytes),
            begun: false,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.saturating_add(length as u64) > self.0.len() {
            return Err(wrong("a page that is not in the file"));
        }
        let mut bytes = vec![0; length];
        self.0.read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// The header of a page, where it is read at all.
struct Header {
    bytes: BufReader<io::Take<ReadFrom>>,
    begun: bool,
}

impl Read for Header {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.begun {
            self.begun = true;
            let sizes = page_sizes(self.bytes.fill_buf()?);
            let [to, from] = sizes.ok_or_else(|| invalid("damaged: a page without its sizes"))?;
            if to > SMALL.max(from.saturating_mul(GROWTH)) {
                let what = format!("damaged: a page of {from} bytes that become {to}");
                return Err(invalid(what));
            }
        }
        self.bytes.read(out)
    }
}

/// The pages of a column chunk.
struct Pages {
    pages: SerializedPageReader<Chunks>,
    /// The name of the column.
    name: String,
    /// Bytes of a value, at least.
    width: usize,
    /// Kinds of levels before the values: rows of lists, values that can be missing.
    lists: bool,
    optional: bool,
}

fn wrong(what: &str) -> ParquetError {
    ParquetError::General(format!("damaged: {what}"))
}

impl Pages {
    fn new(bytes: &Arc<dyn ReadAt>, chunk: &ColumnChunkMetaData, rows: usize) -> Result<Self> {
        let bytes = Arc::new(Chunks(Arc::clone(bytes)));
        let column = chunk.column_descr();
        Ok(Self {
            pages: SerializedPageReader::new(bytes, chunk, rows, None)?,
            name: column.path().string(),
            width: match column.physical_type() {
                Type::BOOLEAN => 0,
                Type::INT32 | Type::FLOAT => 4,
                Type::INT64 | Type::DOUBLE => 8,
                Type::INT96 => 12,
                // Its length comes before each.
                Type::BYTE_ARRAY => 4,
                Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0),
            },
            lists: column.max_rep_level() > 0,
            optional: column.max_def_level() > 0,
        })
    }

    fn check(&self, page: &Page) -> Result<()> {
        let (buf, values) = (page.buffer(), page.num_values());
        let mut rest = Rest(buf);
        let after_levels = match page {
            Page::DictionaryPage { .. } => {
                return match (values as usize).saturating_mul(self.width.max(1)) > buf.len() {
                    true => Err(wrong("a dictionary has more values than bytes for them")),
                    false => Ok(()),
                };
            }
            Page::DataPage { .. } => {
                let kinds = usize::from(self.lists) + usize::from(self.optional);
                (0..kinds).try_for_each(|_| rest.levels())
            }
            Page::DataPageV2 {
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => rest.pass(u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len)),
        };
        // One row of lists could have all of them.
        if self.lists && u64::from(values) > SMALL.max(GROWTH * buf.len() as u64) {
            return Err(wrong("a page has more values than it can have"));
        }
        let lengths = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            // The parts that texts share with those before, and the rests.
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(()),
        };
        let within = after_levels.and((0..lengths).try_for_each(|_| rest.differences(values)));
        within.ok_or_else(|| wrong("a page has more lengths than values"))
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page();
        let page = page.and_then(|page| {
            page.iter().try_for_each(|page| self.check(page))?;
            Ok(page)
        });
        page.map_err(|error| wrong(&format!("column {:?}: {error}", self.name)))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}
