//! Rows that can be read only one after the other: they are written to a temporary file, and read from there.

use crate::batch::Conversion;
use crate::choice::Columns;
use crate::fault::{fault, guarded};
use crate::numbers::{Kind, Number};
use crate::options::Options;
use crate::source::source;
use crate::table::{Layout, OnDisk, Table};
use crate::write::NpyNumber;
use arrow_array::RecordBatch;
use arrow_buffer::ToByteSlice;
use arrow_schema::ArrowError;
use coremix::Result;
use std::io::{self, Write};
use std::sync::Arc;
use tempfile::TempPath;

/// The rows of a stream that cannot be read twice, such as a query or a pipe: a [`Source`](coremix::data::Source).
///
/// Making it writes all rows to a temporary file, as they are in memory; reads go there. The file lies in the folder of
/// [`Options::spool`], or in that for temporary files, and is removed when the source is dropped. A disk that is full is an
/// error.
///
/// ```
/// use arrow_array::{ArrayRef, Float32Array, RecordBatch};
/// use coremix::data::Source;
/// use coremix_files::{Options, Spool};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
/// let batch = RecordBatch::try_from_iter([("x", x)]).expect("one column");
/// let rows = Spool::<f32>::of_batches([Ok(batch.clone()), Ok(batch)], &Options::new())?;
/// assert_eq!((rows.len(), rows.dim()), (6, 1));
/// # Ok::<(), coremix::Error>(())
/// ```
pub struct Spool<T> {
    table: Table<T>,
    /// Removed when this is dropped.
    _file: TempPath,
}

impl<T: Number + NpyNumber> Spool<T> {
    /// The rows of batches that all have one schema.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where there is no batch, a batch is an error, does not have such columns, or cannot be written; a
    /// null, a NaN or a list of another length is named by its column and row.
    pub fn of_batches(
        batches: impl IntoIterator<Item = std::result::Result<RecordBatch, ArrowError>>,
        options: &Options,
    ) -> Result<Self> {
        const NAME: &str = "record batches";
        let named = |error: io::Error| fault(NAME, error);
        let folder = options.spool.clone().unwrap_or_else(std::env::temp_dir);
        let at = |error: io::Error| fault(&folder.display().to_string(), error);
        let file = tempfile::Builder::new()
            .prefix("coremix-")
            .tempfile_in(&folder);
        let (mut file, path) = file.map_err(at)?.into_parts();
        let (mut conversion, mut values, mut len) = (None, Vec::new(), 0);
        for batch in batches {
            let batch = batch.map_err(|error| fault(NAME, error))?;
            let conversion = match &mut conversion {
                Some(begun) => begun,
                None => {
                    let made = Conversion::new::<T>(&Columns::of(&batch.schema()), options);
                    conversion.insert(made.map_err(named)?)
                }
            };
            // Lists say how long they are where there is a row.
            conversion.see(&batch, len).map_err(named)?;
            let Some(dim) = conversion.dim else {
                continue;
            };
            values.resize(batch.num_rows() * dim, T::default());
            guarded(|| conversion.rows(&batch, len, &mut values)).map_err(named)?;
            len += batch.num_rows();
            file.write_all(values.to_byte_slice()).map_err(at)?;
        }
        let none = "there is no row, so the length of its lists is unknown";
        let dim = conversion.and_then(|conversion| conversion.dim);
        let dim = dim.ok_or_else(|| fault(NAME, none))?;
        let bytes = OnDisk::of(file, path.display().to_string()).map_err(at)?;
        let kind = Kind::named(&T::NAME[1..]);
        let kind = kind.ok_or_else(|| fault(NAME, "numbers that are not read"))?;
        let table = Table::new(Arc::new(bytes), 0, [len, dim], kind, Layout::Rows, false)?;
        Ok(Self { table, _file: path })
    }
}

source!(Spool, table);
