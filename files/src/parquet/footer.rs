//! The footer of a Parquet file: what is in it, checked before anything is read as it says.

use super::pages::Groups;
use super::thrift;
use crate::ReadAt;
use crate::choice::Columns;
use crate::fault::invalid;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A file, and what its footer says.
pub(super) struct Footer {
    pub(super) bytes: Arc<dyn ReadAt>,
    pub(super) metadata: ParquetMetaData,
}

/// Rows for each byte of a file: a row group of a million rows that are all the same takes some dozen bytes.
const ROWS: u128 = 1 << 16;

impl Footer {
    pub(super) fn read(bytes: Arc<dyn ReadAt>) -> io::Result<Self> {
        let (len, mut last) = (bytes.len(), [0; 8]);
        if len >= 12 {
            bytes.read_at(len - 8, &mut last)?;
        }
        let [a, b, c, d, magic @ ..] = last;
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        match &magic {
            b"PAR1" if size <= len - 12 => {}
            b"PAR1" => {
                let what = format!("damaged: a footer of {size} bytes in a file of {len}");
                return Err(invalid(what));
            }
            b"PARE" => return Err(invalid("an encrypted Parquet file, which is not read")),
            _ => return Err(invalid("not a Parquet file: it does not end with PAR1")),
        }
        let mut text = vec![0; size as usize];
        bytes.read_at(len - 8 - size, &mut text)?;
        if !thrift::is_sound(&text) {
            return Err(invalid("damaged footer"));
        }
        let metadata = ParquetMetaDataReader::decode_metadata(&text);
        let metadata = metadata.map_err(|error| invalid(format!("damaged footer: {error}")))?;
        Ok(Self { bytes, metadata })
    }

    /// The names and types of its columns.
    pub(super) fn columns(&self) -> io::Result<Columns> {
        let schema = self.metadata.file_metadata().schema_descr();
        let schema = parquet_to_arrow_schema(schema, None).map_err(invalid)?;
        Ok(Columns {
            has_rows: self.metadata.file_metadata().num_rows() > 0,
            ..Columns::of(&schema)
        })
    }

    /// The rows of each group.
    pub(super) fn rows(&self) -> io::Result<Vec<usize>> {
        let groups = self.metadata.row_groups().iter();
        let rows = groups.map(|group| usize::try_from(group.num_rows()));
        let rows = rows.collect::<Result<Vec<_>, _>>().unwrap_or_default();
        let sum: u128 = rows.iter().map(|rows| *rows as u128).sum();
        let total = u128::try_from(self.metadata.file_metadata().num_rows());
        match total == Ok(sum) && sum <= u128::from(self.bytes.len()) * ROWS {
            true => Ok(rows),
            false => Err(invalid("damaged footer: rows that the file cannot have")),
        }
    }

    /// Reads columns of some row groups, so many rows at once. Their places are sorted.
    pub(super) fn batches(
        self: &Arc<Self>,
        places: &[usize],
        range: Range<usize>,
        rows: usize,
        selection: Option<RowSelection>,
    ) -> io::Result<ParquetRecordBatchReader> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::roots(schema, places.iter().copied());
        let levels = parquet_to_arrow_field_levels(schema, mask, None).map_err(invalid)?;
        let file = Arc::clone(self);
        let groups = Groups { file, range };
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, rows, selection);
        reader.map_err(invalid)
    }
}
