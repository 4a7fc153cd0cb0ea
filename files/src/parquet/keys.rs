//! The key columns of a Parquet file, through the decoder of Arrow.

use super::footer::Footer;
use crate::choice;
use crate::fault::{fault, guarded, invalid};
use crate::keys::Keys;
use crate::options::Options;
use bytes::Bytes;
use coremix::Result;
use coremix::data::{OnDisk, ReadAt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Rows of a batch: a key may be long.
const ROWS: usize = 1_024;

/// Bytes as the decoder reads them.
#[derive(Clone)]
struct Chunks(Arc<dyn ReadAt>);

/// Bytes from a place on.
struct From {
    bytes: Arc<dyn ReadAt>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.len().saturating_sub(self.at);
        let some = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.bytes.read_at(self.at, &mut out[..some])?;
        self.at += some as u64;
        Ok(some)
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<From>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let bytes = Arc::clone(&self.0);
        // Headers of pages are read through it.
        Ok(io::BufReader::with_capacity(512, From { bytes, at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.0.len())
        {
            let what = "a part that is not in the file".into();
            return Err(parquet::errors::ParquetError::EOF(what));
        }
        let mut found = vec![0; length];
        self.0.read_at(start, &mut found)?;
        Ok(Bytes::from(found))
    }
}

/// The key columns that options name.
pub(crate) fn keys(path: &Path, options: &Options) -> Result<Keys> {
    let bytes: Arc<dyn ReadAt> = Arc::new(OnDisk::open(path)?);
    let name = bytes.name();
    let opened = guarded(|| open(&bytes, options));
    let mut reader = opened.map_err(|error| fault(&name, error))?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let batches = std::iter::from_fn(move || {
        let next = guarded(|| reader.next().transpose().map_err(invalid));
        next.transpose()
    });
    Ok(Keys::new(name, &schema, batches))
}

fn open(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<ParquetRecordBatchReader> {
    let footer = Footer::read(bytes)?;
    let columns = footer.columns()?;
    let places = choice::keys(&columns, options).map_err(invalid)?;
    let schema = footer.metadata.file_metadata().schema_descr_ptr();
    let leaves = (0..schema.num_columns())
        .filter(|leaf| places.contains(&schema.get_column_root_idx(*leaf)));
    // The decoder trusts what pages say of themselves.
    for (group, leaf) in (0..footer.metadata.num_row_groups())
        .flat_map(|group| leaves.clone().map(move |leaf| (group, leaf)))
    {
        let pages = footer.chunk(group, leaf)?.pages(bytes);
        pages.check_all().map_err(invalid)?;
    }
    footer.rows()?;
    let arrow = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::new(footer.metadata), arrow);
    let metadata = metadata.map_err(invalid)?;
    let chunks = Chunks(Arc::clone(bytes));
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, metadata);
    let mask = ProjectionMask::roots(&schema, places);
    let builder = builder.with_projection(mask).with_batch_size(ROWS);
    builder.build().map_err(invalid)
}
