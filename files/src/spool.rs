//! Rows that can be read only one after the other: they are written to a temporary file, and read from there.

use crate::batch::Conversion;
use crate::choice::{self, Columns};
use crate::fault::{fault, guarded};
use crate::format::Format;
use crate::numbers::{Kind, Number};
use crate::open::{self, Opened};
use crate::options::Options;
use crate::plain::temporary;
use crate::source::source;
use crate::table::{Layout, OnDisk, ReadAt, Table};
use crate::texts::Texts;
use crate::write::NpyNumber;
use arrow_array::RecordBatch;
use arrow_buffer::ToByteSlice;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};
use coremix::Result;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use tempfile::TempPath;

/// The name of batches in errors.
const NAME: &str = "record batches";

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
        let named = |error: io::Error| fault(NAME, error);
        let folder = options.spool.clone().unwrap_or_else(std::env::temp_dir);
        let at = |error: io::Error| fault(&folder.display().to_string(), error);
        let file = tempfile::Builder::new()
            .prefix("coremix-")
            .tempfile_in(&folder);
        let (mut file, path) = file.map_err(at)?.into_parts();
        let mut conversion = None;
        let mut values = Vec::new();
        let mut len = 0;
        for batch in batches {
            let batch = batch.map_err(|error| fault(NAME, error))?;
            let conversion = match &mut conversion {
                Some(begun) => begun,
                None => {
                    let mut columns = Columns::of(&batch.schema());
                    columns.look_at(options, |places| batch.project(&places).ok().into_iter());
                    let made = Conversion::new::<T>(&columns, options);
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
        let dim = conversion
            .and_then(|conversion| conversion.dim)
            .ok_or_else(|| fault(NAME, none))?;
        let bytes = OnDisk::of(file, path.display().to_string()).map_err(at)?;
        let kind =
            Kind::named(&T::NAME[1..]).ok_or_else(|| fault(NAME, "numbers that are not read"))?;
        let mut table = Table::new(Arc::new(bytes), 0, [len, dim], kind, Layout::Rows, false)?;
        table.may_miss = options.lenient;
        Ok(Self { table, _file: path })
    }
}

source!(Spool, table);

/// Rows of a batch that is written: decoding one for few of its rows takes little.
const ROWS: usize = 1 << 14;

/// Record batches that came once, with weights, keys and text among their columns, in a temporary file: [`open`](Self::open)
/// reads it as [`open`](crate::open) reads a file of Arrow.
///
/// The file has no name, and goes when what was opened is dropped. It lies in the folder of [`Options::spool`], or in that for
/// temporary files.
#[derive(Debug)]
pub struct Batches {
    bytes: Arc<OnDisk>,
    columns: Columns,
}

impl Batches {
    /// Writes batches of this schema, one at a time: those of their columns that will be read.
    ///
    /// # Errors
    /// The error that a batch is; [`Error::File`](coremix::Error::File) where the columns are not there, a batch has
    /// others, or the file cannot be written: a disk is full.
    pub fn write(
        schema: &Schema,
        batches: impl IntoIterator<Item = Result<RecordBatch>>,
        options: &Options,
    ) -> Result<Self> {
        let mut batches = batches.into_iter().peekable();
        let mut columns = Columns::of(schema);
        let first = batches.peek().and_then(|first| first.as_ref().ok());
        columns.look_at(options, |places| {
            first
                .and_then(|first| first.project(&places).ok())
                .into_iter()
        });
        let named = |what: String| fault(NAME, what);
        let mut with_texts = options.clone();
        for name in &options.categories {
            // Their texts are looked for when the file is opened.
            let none = || Texts::new(Vec::new());
            with_texts.texts.entry(name.clone()).or_insert_with(none);
        }
        let mut places = columns.features(&with_texts).map_err(named)?;
        places.extend(columns.keys(options).map_err(named)?);
        places.extend(columns.places(options.weight.as_slice()).map_err(named)?);
        let places = choice::in_order(&places).0;
        let named = |error: io::Error| fault(NAME, error);
        let mut file = temporary(options).map_err(named)?;
        let arrow = |error: ArrowError| fault(NAME, error);
        let projected = schema.project(&places).map_err(arrow)?;
        // Batches of a stream may have dictionaries of their own.
        let mut writer =
            StreamWriter::try_new(BufWriter::new(&mut file), &projected).map_err(arrow)?;
        for batch in batches {
            let batch = batch?.project(&places).map_err(arrow)?;
            let kind = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
            if !batch
                .schema()
                .fields()
                .iter()
                .map(kind)
                .eq(projected.fields().iter().map(kind))
            {
                let what = "a batch whose columns are not those of the first one, and must be";
                return Err(fault(NAME, what));
            }
            for first in (0..batch.num_rows()).step_by(ROWS) {
                let some = batch.slice(first, ROWS.min(batch.num_rows() - first));
                writer.write(&some).map_err(arrow)?;
            }
        }
        writer.finish().map_err(arrow)?;
        writer.get_mut().flush().map_err(named)?;
        drop(writer);
        let bytes = Arc::new(OnDisk::of(file, NAME.into()).map_err(named)?);
        Ok(Self { bytes, columns })
    }

    /// Bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.len()
    }

    /// The rows, and what belongs to them.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn open(&self, options: &Options) -> Result<Opened> {
        let bytes: Arc<OnDisk> = Arc::clone(&self.bytes);
        let mut opened = open::of_bytes(bytes, Format::Arrow, options)?;
        let mut others = self.columns.not_used(&opened.columns, options);
        for (name, holds) in &mut others {
            if let Some((_, known)) = opened.not_used.iter().find(|other| other.0 == *name) {
                holds.clone_from(known);
            }
        }
        opened.not_used = others;
        Ok(opened)
    }
}
