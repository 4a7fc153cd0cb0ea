//! The footer of a Parquet file: what is in it, checked against the length of the file.

use super::page::{Pages, Storage};
use super::thrift;
use crate::ReadAt;
use crate::choice::{Columns, Features, columns_of};
use crate::fault::{guarded, invalid};
use crate::numbers::Kind;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::ColumnDescPtr;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// What a footer says.
pub(super) struct Footer {
    pub(super) metadata: ParquetMetaData,
    /// Where it starts: columns end before.
    start: u64,
}

impl Footer {
    pub(super) fn read(bytes: &dyn ReadAt) -> io::Result<Self> {
        let len = bytes.len();
        let (mut first, mut last) = ([0; 4], [0; 8]);
        if len >= 12 {
            bytes.read_at(0, &mut first)?;
            bytes.read_at(len - 8, &mut last)?;
        }
        if first != MAGIC || last[4..] != *MAGIC {
            let what = match last[4..] == *b"PARE" {
                true => "an encrypted Parquet file, which is not read",
                false => "not a Parquet file: it does not begin and end with PAR1",
            };
            return Err(invalid(what));
        }
        let [a, b, c, d, ..] = last;
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        if size > len - 12 {
            let what = format!("damaged: a footer of {size} bytes in a file of {len}");
            return Err(invalid(what));
        }
        let start = len - 8 - size;
        let mut text = vec![0; size as usize];
        bytes.read_at(start, &mut text)?;
        thrift::check_footer(&text).map_err(|what| invalid(format!("damaged footer: {what}")))?;
        let metadata = guarded(|| {
            let metadata = ParquetMetaDataReader::decode_metadata(&text);
            metadata.map_err(|error| invalid(format!("damaged footer: {error}")))
        })?;
        Ok(Self { metadata, start })
    }

    /// The names and types of its columns.
    pub(super) fn columns(&self) -> io::Result<Columns> {
        let schema = self.metadata.file_metadata().schema_descr();
        let schema = guarded(|| parquet_to_arrow_schema(schema, None).map_err(invalid));
        Ok(columns_of(&schema?))
    }

    /// Where the numbers of a column of the table lie: the column of numbers that it is made of.
    pub(super) fn leaf(&self, column: usize) -> io::Result<usize> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mut leaves =
            (0..schema.num_columns()).filter(|leaf| schema.get_column_root_idx(*leaf) == column);
        match (leaves.next(), leaves.next()) {
            (Some(leaf), None) => Ok(leaf),
            _ => Err(invalid("a column that is not one column of numbers")),
        }
    }

    /// A column chunk, and whether it lies before the footer.
    pub(super) fn chunk(&self, group: usize, leaf: usize) -> io::Result<Chunk> {
        let damaged = |what: String| invalid(format!("damaged: row group {group}: {what}"));
        let columns = self.metadata.row_group(group).columns();
        let chunk = columns
            .get(leaf)
            .ok_or_else(|| damaged("no column".into()))?;
        if chunk.file_path().is_some_and(|path| !path.is_empty()) {
            return Err(damaged("a column that lies in another file".into()));
        }
        let start = chunk.dictionary_page_offset().filter(|start| *start > 0);
        let start = start.unwrap_or(i64::MAX).min(chunk.data_page_offset());
        let range = u64::try_from(start).ok().and_then(|start| {
            let size = u64::try_from(chunk.compressed_size()).ok()?;
            Some(start..start.checked_add(size)?)
        });
        let range = range.filter(|range| range.start >= 4 && range.end <= self.start);
        let range = range.ok_or_else(|| damaged("a column that is not in the file".into()))?;
        let values = usize::try_from(chunk.num_values());
        Ok(Chunk {
            range,
            storage: storage(chunk),
            values: values.map_err(|_| damaged("a column of a negative length".into()))?,
        })
    }

    /// The rows of each group.
    pub(super) fn rows(&self) -> io::Result<Vec<usize>> {
        let groups = self.metadata.row_groups().iter();
        let rows: Option<Vec<usize>> = groups
            .map(|group| usize::try_from(group.num_rows()).ok())
            .collect();
        let sum = |rows: &Vec<usize>| rows.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
        let total = usize::try_from(self.metadata.file_metadata().num_rows()).ok();
        rows.filter(|rows| sum(rows).is_some_and(|sum| Some(sum) == total))
            .ok_or_else(|| invalid("damaged footer: the rows of its groups are not those it has"))
    }
}

fn storage(chunk: &ColumnChunkMetaData) -> Storage {
    use parquet::basic::Type;
    Storage {
        compression: chunk.compression(),
        size: match chunk.column_type() {
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => {
                usize::try_from(chunk.column_descr().type_length()).unwrap_or(0)
            }
            // The length of each comes before it.
            Type::BYTE_ARRAY => 4,
            Type::BOOLEAN => 0,
        },
        is_bytes: chunk.column_type() == Type::BYTE_ARRAY,
        optional: chunk.column_descr().max_def_level() > 0,
        lists: chunk.column_descr().max_rep_level() > 0,
    }
}

/// A column of a row group.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    range: Range<u64>,
    storage: Storage,
    pub(super) values: usize,
}

impl Chunk {
    pub(super) fn pages(&self, bytes: &Arc<dyn ReadAt>) -> Pages {
        Pages::new(Arc::clone(bytes), self.range.clone(), self.storage)
    }

    fn size(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }
}

/// A column that is read.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) description: ColumnDescPtr,
}

/// Rows that lie together.
pub(super) struct Group {
    pub(super) first: usize,
    pub(super) rows: usize,
    /// One for each column that is read.
    pub(super) chunks: Vec<Chunk>,
}

/// What is read of a file.
pub(super) struct Plan {
    pub(super) columns: Vec<Column>,
    pub(super) groups: Vec<Group>,
    pub(super) len: usize,
    pub(super) dim: usize,
    /// Whether rows are the lists of one column.
    pub(super) lists: bool,
}

/// Memory that a small file may need for a row: beyond it, what follows from the size of the file.
const SMALL: usize = 1 << 26;
/// Numbers for each byte of a column.
const GROWTH: usize = 1_000;
/// Rows for each byte of a file: a row group of a million rows that are all the same takes some dozen bytes.
const ROWS: usize = 1 << 16;

impl Plan {
    pub(super) fn new(footer: &Footer, features: &Features, bytes: u64) -> io::Result<Self> {
        let names = footer.columns()?;
        let schema = footer.metadata.file_metadata().schema_descr();
        let lists = matches!(features, Features::Lists(..));
        let (mut columns, mut leaves) = (Vec::new(), Vec::new());
        for (place, kind) in features.kinds() {
            let (leaf, name) = (footer.leaf(place)?, names[place].0.clone());
            let description = schema.column(leaf);
            if description.max_rep_level() != i16::from(lists) {
                return Err(invalid(format!("column {name:?} holds lists of lists")));
            }
            leaves.push(leaf);
            columns.push(Column {
                name,
                kind,
                description,
            });
        }
        let (mut groups, mut first) = (Vec::new(), 0);
        for (group, rows) in footer.rows()?.into_iter().enumerate() {
            // A group without rows may have no bytes.
            if rows > 0 {
                let chunks = leaves.iter().map(|leaf| footer.chunk(group, *leaf));
                let chunks = chunks.collect::<io::Result<Vec<_>>>()?;
                groups.push(Group {
                    first,
                    rows,
                    chunks,
                });
            }
            first += rows;
        }
        let most = ROWS.saturating_mul(usize::try_from(bytes).unwrap_or(usize::MAX));
        if first > most {
            return Err(invalid(format!("damaged: {first} rows in {bytes} bytes")));
        }
        let mut plan = Self {
            dim: columns.len(),
            columns,
            groups,
            len: first,
            lists,
        };
        plan.check_values()?;
        Ok(plan)
    }

    /// Every column has a number for each row, every list as many as the others.
    fn check_values(&mut self) -> io::Result<()> {
        if self.lists {
            self.dim = self.groups.first().map_or(0, |group| {
                let values = group.chunks.iter().map(|chunk| chunk.values).sum::<usize>();
                // Rounded up, so that the row that has fewer is found.
                values.div_ceil(group.rows)
            });
        }
        for group in &self.groups {
            for (chunk, column) in group.chunks.iter().zip(&self.columns) {
                let (name, values, rows) = (&column.name, chunk.values, group.rows);
                if !self.lists && values != rows {
                    let what = format!("column {name:?} has {values} values in {rows} rows");
                    return Err(invalid(format!("damaged: {what}")));
                }
                let most = SMALL.max(chunk.size().saturating_mul(GROWTH));
                if self.lists && values > most {
                    let what = format!("column {name:?} has {values} values in few bytes");
                    return Err(invalid(format!("damaged: {what}")));
                }
            }
        }
        Ok(())
    }
}
