//! The footer of a Parquet file and the bytes of its pages, for the crate `parquet`: what they declare is checked before the
//! crate makes room for it, where that can be seen.

use super::declared;
use crate::choice::{Columns, Holds};
use crate::fault::{damaged, invalid};
use crate::ipc;
use crate::table::{ReadAt, ReadFrom, not_empty};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// A file, and what its footer says.
pub(super) struct Footer {
    bytes: Arc<dyn ReadAt>,
    metadata: ArrowReaderMetadata,
}

/// Rows for each byte of a file: a row group of a million rows that are all the same takes some dozen bytes.
const ROWS: u128 = 1 << 16;
/// Pages up to this size, or up to this number of values, need no reason.
const SMALL: u64 = 1 << 24;
/// How many times larger a page may become, at most, beyond that.
const GROWTH: u64 = 1_000;
/// The longest header of a page: statistics may be long.
const LONGEST: u64 = 1 << 20;

impl Footer {
    pub(super) fn read(bytes: Arc<dyn ReadAt>) -> io::Result<Self> {
        not_empty(&bytes)?;
        let len = bytes.len();
        let mut last = [0; 8];
        if len >= 12 {
            bytes.read_at(len - 8, &mut last)?;
        }
        let [a, b, c, d, magic @ ..] = last;
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        match &magic {
            b"PAR1" if size <= len - 12 => {}
            b"PAR1" => {
                return Err(damaged(format!(
                    "a footer of {size} bytes in a file of {len}"
                )));
            }
            b"PARE" => return Err(invalid("an encrypted Parquet file, which is not read")),
            _ => return Err(invalid("not a Parquet file: it does not end with PAR1")),
        }
        let mut text = vec![0; size as usize];
        bytes.read_at(len - 8 - size, &mut text)?;
        let wrong = |error: &dyn std::fmt::Display| invalid(format!("damaged footer: {error}"));
        if !declared::is_sound(&text) {
            return Err(wrong(&"a list that is longer than the footer"));
        }
        let metadata = ParquetMetaDataReader::decode_metadata(&text);
        let metadata = Arc::new(metadata.map_err(|error| wrong(&error))?);
        // Columns are read as they are stored, whatever they were before.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::try_new(metadata, options).map_err(invalid)?;
        Ok(Self { bytes, metadata })
    }

    fn parquet(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// The names and types of its columns.
    pub(super) fn columns(&self) -> io::Result<Columns> {
        let file = self.parquet().file_metadata();
        let mut columns = Columns::of(self.schema());
        // Durations are stored as integers. The schema of Arrow tells them apart, if there is one.
        let mut words = file.key_value_metadata().into_iter().flatten();
        let before = words.find(|word| word.key == ARROW_SCHEMA_META_KEY);
        let before = before.and_then(|word| ipc::schema_in(word.value.as_deref()?).ok());
        let before = before.iter().flat_map(|schema| schema.fields());
        for (column, before) in columns.each.iter_mut().zip(before) {
            let asked = Holds::of(before.data_type());
            if let (Holds::Asked(_), true) = (asked, asked.is_read_as(column.holds))
                && column.holds != asked
            {
                (column.holds, column.words) = (asked, "durations".into());
            }
        }
        columns.has_rows = file.num_rows() > 0;
        Ok(columns)
    }

    /// The rows of each group.
    pub(super) fn rows(&self) -> io::Result<Vec<usize>> {
        let groups = self.parquet().row_groups().iter();
        let rows = groups
            .map(|group| usize::try_from(group.num_rows()))
            .collect::<std::result::Result<Vec<_>, _>>()
            .unwrap_or_default();
        let sum: u128 = rows.iter().map(|rows| *rows as u128).sum();
        let total = u128::try_from(self.parquet().file_metadata().num_rows());
        if total == Ok(sum) && sum <= u128::from(self.bytes.len()) * ROWS {
            Ok(rows)
        } else {
            Err(invalid("damaged footer: rows that the file cannot have"))
        }
    }

    /// The columns at these places, which are sorted.
    pub(super) fn columns_at(&self, places: &[usize]) -> ProjectionMask {
        let schema = self.parquet().file_metadata().schema_descr();
        ProjectionMask::roots(schema, places.iter().copied())
    }

    /// Bytes that a decoder of these columns takes with the numbers of a batch: a page and a dictionary of each column. Where
    /// chunks are large, the first pages of the largest say how large pages are.
    pub(super) fn decoder(&self, columns: &ProjectionMask, numbers: usize) -> u64 {
        /// Chunks up to this size are no larger than pages are.
        const CHUNK: u64 = 1 << 20;
        /// The reader of a column.
        const READER: u64 = 24 << 10;
        let schema = self.parquet().file_metadata().schema_descr();
        let leaves = (0..schema.num_columns()).filter(|leaf| columns.leaf_included(*leaf));
        let groups = self.parquet().row_groups();
        let size = |chunk: &&ColumnChunkMetaData| chunk.uncompressed_size();
        let of_leaf = |leaf| {
            let chunks = groups.iter().filter_map(|group| group.columns().get(leaf));
            let Some(largest) = chunks.max_by_key(size) else {
                return 0;
            };
            let whole = u64::try_from(size(&largest)).unwrap_or(0);
            if whole <= CHUNK {
                return whole;
            }
            let page = |at: i64| {
                let mut text = [0; 256];
                let at = u64::try_from(at).ok()?;
                let len = text
                    .len()
                    .min(usize::try_from(self.bytes.len().checked_sub(at)?).ok()?);
                self.bytes.read_at(at, &mut text[..len]).ok()?;
                Some(declared::header(&text[..len])?.sizes[0])
            };
            let dictionary = largest.dictionary_page_offset().map_or(Some(0), page);
            let pages = dictionary.zip(page(largest.data_page_offset()));
            pages.map_or(whole, |(one, other)| whole.min(one.saturating_add(other)))
        };
        // Numbers of 8 bytes, and whether each is there.
        let batch = (numbers as u64).saturating_mul(12);
        let of_leaf = |leaf| READER.saturating_add(of_leaf(leaf));
        leaves.map(of_leaf).fold(batch, u64::saturating_add)
    }

    /// Reads columns of a row group, a batch of rows at a time.
    pub(super) fn batches(
        &self,
        columns: &ProjectionMask,
        group: usize,
        rows: usize,
        selection: Option<RowSelection>,
    ) -> io::Result<ParquetRecordBatchReader> {
        let schema = self.parquet().file_metadata().schema_descr();
        let mut leaves = (0..schema.num_columns()).filter(|leaf| columns.leaf_included(*leaf));
        let lists = leaves.any(|leaf| schema.column(leaf).max_rep_level() > 0);
        let bytes = Arc::clone(&self.bytes);
        let chunks = Chunks { bytes, lists };
        let mut reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
                .with_projection(columns.clone())
                .with_row_groups(vec![group])
                .with_batch_size(rows);
        if let Some(selection) = selection {
            reader = reader.with_row_selection(selection);
        }
        reader.build().map_err(invalid)
    }

    /// Checks texts that are stored by differences: the crate makes room for as many lengths as they say.
    pub(super) fn check_texts(&self, columns: &ProjectionMask, group: usize) -> io::Result<()> {
        let group = self.parquet().row_group(group);
        for (leaf, chunk) in group.columns().iter().enumerate() {
            if !columns.leaf_included(leaf)
                || chunk.encodings().all(|encoding| streams(encoding) == 0)
            {
                continue;
            }
            let bytes = Arc::clone(&self.bytes);
            let column = chunk.column_descr();
            let lists = column.max_rep_level() > 0;
            let chunks = Arc::new(Chunks { bytes, lists });
            let name = || format!("column {:?}", column.path().string());
            let pages = SerializedPageReader::new(chunks, chunk, group.num_rows() as usize, None);
            for page in pages.map_err(damaged)? {
                let page = page.map_err(|error| damaged(format!("{}: {error}", name())))?;
                let more = || damaged(format!("{}: a page has more lengths than values", name()));
                few_lengths(&page, column).ok_or_else(more)?;
            }
        }
        Ok(())
    }

    /// An error of some columns of a row group, with the name of the first one that cannot be read alone.
    pub(super) fn blame(
        &self,
        columns: &ProjectionMask,
        group: usize,
        error: &ArrowError,
    ) -> io::Error {
        let schema = self.parquet().file_metadata().schema_descr();
        let fails = |leaf: &usize| {
            let alone = ProjectionMask::leaves(schema, [*leaf]);
            let read = self.batches(&alone, group, 1_024, None);
            read.is_ok_and(|mut read| read.any(|batch| batch.is_err()))
        };
        let mut leaves = (0..schema.num_columns()).filter(|leaf| columns.leaf_included(*leaf));
        match leaves.find(fails) {
            Some(leaf) => {
                let name = schema.column(leaf).path().string();
                if error.to_string().contains("Disabled feature") {
                    return invalid(format!(
                        "column {name:?} is compressed in a way that is not read: write it with zstd, snappy, gzip or lz4"
                    ));
                }
                damaged(format!("column {name:?}: {error}"))
            }
            None => damaged(error),
        }
    }
}

/// How many times texts have lengths that are stored by differences: of the part that they share with the text before them, and of
/// the rest.
fn streams(encoding: Encoding) -> u8 {
    match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => 0,
    }
}

/// Whether a page has no more such lengths than values; `None` also where they end too early.
fn few_lengths(page: &Page, column: &ColumnDescriptor) -> Option<()> {
    let from = &mut &page.buffer()[..];
    let values = page.num_values();
    let mut streams = 0..streams(page.encoding());
    match page {
        _ if streams.is_empty() => return Some(()),
        Page::DictionaryPage { .. } => return Some(()),
        Page::DataPage { .. } => {
            let levels = [column.max_rep_level(), column.max_def_level()];
            let mut levels = levels.into_iter().filter(|most| *most > 0);
            levels.try_for_each(|_| declared::levels(from))?;
        }
        Page::DataPageV2 {
            def_levels_byte_len: some,
            rep_levels_byte_len: others,
            ..
        } => declared::pass(from, u64::from(*some) + u64::from(*others))?,
    }
    streams.try_for_each(|_| declared::differences(from, values))
}

/// The bytes of a file, for the crate.
struct Chunks {
    bytes: Arc<dyn ReadAt>,
    /// Whether a row can have any number of values.
    lists: bool,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.bytes.len()
    }
}

impl ChunkReader for Chunks {
    type T = Header;

    fn get_read(&self, at: u64) -> Result<Header> {
        let bytes = Arc::clone(&self.bytes);
        let lists = self.lists;
        let bytes = BufReader::with_capacity(128, ReadFrom { bytes, at }.take(LONGEST));
        let begun = false;
        Ok(Header {
            bytes,
            lists,
            begun,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.saturating_add(length as u64) > self.bytes.len() {
            let what = "damaged: a page that is not in the file";
            return Err(ParquetError::General(what.into()));
        }
        let mut bytes = vec![0; length];
        self.bytes.read_at(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

/// The header of a page, where it is read at all.
struct Header {
    bytes: BufReader<io::Take<ReadFrom>>,
    lists: bool,
    begun: bool,
}

impl Read for Header {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.begun, true) {
            let says = declared::header(self.bytes.fill_buf()?)
                .ok_or_else(|| damaged("a page without its sizes"))?;
            let [to, from] = says.sizes;
            if to > SMALL.max(from.saturating_mul(GROWTH)) {
                return Err(damaged(format!("a page of {from} bytes that become {to}")));
            }
            if says.is_dictionary && says.values > to {
                return Err(damaged("a dictionary has more values than bytes for them"));
            }
            // One row of lists could have all of them.
            if self.lists && says.values > SMALL.max(to.saturating_mul(GROWTH)) {
                return Err(damaged("a page has more values than it can have"));
            }
        }
        self.bytes.read(out)
    }
}
