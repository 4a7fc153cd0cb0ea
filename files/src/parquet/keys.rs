//! The key columns of a Parquet file, through the decoder of Arrow.

use super::footer::Footer;
use super::page::Pages;
use crate::ReadAt;
use crate::choice;
use crate::fault::{fault, guarded, invalid};
use crate::keys::Keys;
use crate::options::Options;
use arrow_array::RecordBatchReader;
use coremix::Result;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::column::page::{PageIterator, PageReader};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use std::io;
use std::sync::Arc;

/// Rows of a batch, at most.
const ROWS: usize = 1_024;
/// Bytes of a batch of long keys: few bytes of a file can be the same long key many times.
const LONG: usize = 1 << 27;

/// The pages of a file, for the decoder.
struct Groups {
    bytes: Arc<dyn ReadAt>,
    footer: Footer,
}

/// The pages of a column, row group after row group.
struct Column(std::vec::IntoIter<Pages>);

impl Iterator for Column {
    type Item = parquet::errors::Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let pages: Box<dyn PageReader> = Box::new(self.0.next()?);
        Some(Ok(pages))
    }
}

impl PageIterator for Column {}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        self.footer.rows().map_or(0, |rows| rows.iter().sum())
    }

    fn column_chunks(&self, leaf: usize) -> parquet::errors::Result<Box<dyn PageIterator>> {
        let groups = 0..self.footer.metadata.num_row_groups();
        let chunks = groups.map(|group| {
            let chunk = self.footer.chunk(group, leaf)?;
            Ok(chunk.pages(&self.bytes))
        });
        let chunks = chunks.collect::<io::Result<Vec<_>>>()?;
        Ok(Box::new(Column(chunks.into_iter())))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.footer.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.footer.metadata
    }
}

/// The key columns that options name.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options) -> Result<Keys> {
    let name = bytes.name();
    let opened = guarded(|| open(&bytes, options));
    let (mut reader, order) = opened.map_err(|error| fault(&name, error))?;
    let schema = RecordBatchReader::schema(&reader).project(&order);
    let schema = schema.map_err(|error| fault(&name, error))?;
    let batches = std::iter::from_fn(move || {
        let next = guarded(|| {
            let batch = reader.next().transpose().map_err(invalid)?;
            let batch = batch.map(|batch| batch.project(&order));
            batch.transpose().map_err(invalid)
        });
        next.transpose()
    });
    Ok(Keys::new(name, &schema, batches))
}

/// A reader of the columns, and their places among those that it reads: these come in the order of the file.
fn open(
    bytes: &Arc<dyn ReadAt>,
    options: &Options,
) -> io::Result<(ParquetRecordBatchReader, Vec<usize>)> {
    let footer = Footer::read(bytes)?;
    let columns = footer.columns()?;
    let places = choice::keys(&columns, options).map_err(invalid)?;
    let mut of_file = places.clone();
    of_file.sort_unstable();
    of_file.dedup();
    let order = places
        .iter()
        .map(|place| of_file.partition_point(|other| other < place));
    let order = order.collect();
    let schema = footer.metadata.file_metadata().schema_descr_ptr();
    let leaves = (0..schema.num_columns())
        .filter(|leaf| places.contains(&schema.get_column_root_idx(*leaf)));
    // How many rows are decoded at once follows from the longest value.
    let mut repeated = 1;
    for group in 0..footer.metadata.num_row_groups() {
        for leaf in leaves.clone() {
            let pages = footer.chunk(group, leaf)?.pages(bytes);
            repeated = repeated.max(pages.check_all().map_err(invalid)?);
        }
    }
    footer.rows()?;
    let mask = ProjectionMask::roots(&schema, places);
    let levels = parquet_to_arrow_field_levels(&schema, mask, None).map_err(invalid)?;
    let bytes = Arc::clone(bytes);
    let groups = Groups { bytes, footer };
    let rows = (LONG / repeated).clamp(1, ROWS);
    let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, rows, None);
    Ok((reader.map_err(invalid)?, order))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;

    /// A key of nearly a megabyte, a thousand times: the file is small, and so are the batches that are made of it.
    #[test]
    fn long_keys() {
        // As long as a dictionary can be.
        let long = "x".repeat((1 << 20) - 4_096);
        let text = StringArray::from_iter_values((0..1_000).map(|_| &long));
        let batch = RecordBatch::try_from_iter([("text", Arc::new(text) as ArrayRef)]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert!(file.len() < 20_000, "{}", file.len());
        let bytes: Arc<dyn ReadAt> = Arc::new(file);
        let (mut reader, _) = open(&bytes, &Options::new().key("text")).unwrap();
        let first = reader.next().unwrap().unwrap();
        assert!((1..200).contains(&first.num_rows()), "{}", first.num_rows());
        assert_eq!(first.column(0).as_string::<i32>().value(0), long);
    }
}
