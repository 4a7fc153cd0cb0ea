//! Labels and other results, with the keys of the rows.

use super::npy::{self, NpyWriter};
use super::output::Output;
use crate::fault::{fault, guarded, invalid, of_rows};
use crate::keys::Keys;
use crate::plain::RECORD;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_csv::WriterBuilder;
use arrow_ipc::reader::FileReader as ArrowReader;
use arrow_ipc::writer::FileWriter as ArrowFileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use coremix::data::{Data, Dense, Lists, Source, Sparse};
use coremix::ndarray::ArrayView2;
use coremix::{Element, Error, Mixture, Result};
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression as Level, GzBuilder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

/// Writes a file of results, block by block: the keys of the rows, their labels, and columns of `f64`, such as scores.
///
/// How its name ends is its format: `.parquet`, `.arrow`, `.csv`, `.csv.gz`, or `.npy` for labels alone. The columns are the key columns, `label`
/// (u32), and those that are named. The file gets its name in [`finish`](Self::finish), when all of it is on the disk. Until
/// then, and after an error, what was there before stays as it was. In memory is one row group of 65,536 rows.
///
/// ```
/// use coremix_files::LabelWriter;
///
/// let path = std::env::temp_dir().join(format!("coremix-labels-{}.csv", std::process::id()));
/// let mut labels = LabelWriter::create(&path, None, &["score"])?;
/// labels.write(&[0, 1, 0], &[&[0.5, 0.25, 0.125]])?;
/// labels.finish()?;
/// # std::fs::remove_file(path).expect("it is there");
/// # Ok::<(), coremix::Error>(())
/// ```
pub struct LabelWriter {
    to: To,
    path: String,
    schema: SchemaRef,
    keys: Option<Keys>,
    /// The components of a row that are written.
    top: usize,
    /// Columns of `f64`, besides their shares.
    more: usize,
}

/// A file of one of the formats.
enum To {
    Npy(NpyWriter<u32>),
    Parquet(Box<ArrowWriter<Output>>),
    Arrow(Box<ArrowFileWriter<Output>>),
    Csv(Output),
    CsvGz(Box<GzEncoder<Output>>),
    Stream(Box<dyn Write + Send>),
}

/// The entry in the metadata of a Parquet or Arrow file of labels: its name and its value.
const MARK: (&str, &str) = ("coremix", "labels");

/// The comment in the header of compressed text.
const COMMENT: &str = "coremix labels";

impl fmt::Debug for LabelWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LabelWriter")
            .field("path", &self.path)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// Rows of a row group.
const GROUP: usize = 1 << 16;

/// Rows that are labelled in one batch take at most this many bytes, and are at most `BATCH_ROWS`.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ROWS: usize = 1 << 16;

impl LabelWriter {
    /// An error if labels and these columns have no place in a file of this name.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a name of another format, and for columns in an `.npy` file.
    pub fn check(path: impl AsRef<Path>, columns: &[&str]) -> Result<()> {
        let path = path.as_ref();
        let what = match ending(path) {
            Some(".npy") if !columns.is_empty() => {
                "an .npy file holds labels alone: .csv, .csv.gz, .parquet and .arrow have room for more"
            }
            Some(_) => return Ok(()),
            None => {
                "labels are written as .csv, .csv.gz, .parquet, .arrow or .npy: choose one of these endings"
            }
        };
        Err(fault(&path.display().to_string(), what))
    }

    /// Begins a file. `keys` are those of the file that the rows come from: an `.npy` file leaves them out. `columns` names what
    /// is written with the labels.
    ///
    /// # Errors
    /// As [`check`](Self::check). [`Error::File`](coremix::Error::File) where nothing can be written to its folder, or two
    /// columns have one name.
    pub fn create(path: impl AsRef<Path>, keys: Option<Keys>, columns: &[&str]) -> Result<Self> {
        Self::create_with_top(path, keys, 0, columns)
    }

    /// Begins a file that [`label`](Self::label) fills, and nothing else, with the `top` likeliest components of each row, best first, and
    /// how they share it: the columns `label`, `share`, `label_2`, `share_2` and so on. With 0 there are labels alone.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with_top(
        path: impl AsRef<Path>,
        keys: Option<Keys>,
        top: usize,
        columns: &[&str],
    ) -> Result<Self> {
        let shares = ["share"];
        Self::check(&path, if top > 0 { &shares } else { columns })?;
        let made = Self::of_fields(path, keys, label_fields(top, columns))?;
        let more = columns.len();
        Ok(Self { top, more, ..made })
    }

    /// Begins a file with these columns after the keys.
    pub(super) fn of_fields(
        path: impl AsRef<Path>,
        keys: Option<Keys>,
        columns: Vec<Field>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let mut output = Output::create(path)?;
        let name = output.path();
        let ending = ending(path);
        if ending == Some(".npy") {
            let npy = NpyWriter::new(output, None)?;
            return Self::begin(&name, keys, columns, |_| Ok(To::Npy(npy)));
        }
        Self::begin(&name, keys, columns, |schema| {
            if ending == Some(".csv") {
                return names(&mut output, schema).map(|()| To::Csv(output));
            }
            if ending == Some(".csv.gz") {
                let marked = GzBuilder::new().comment(COMMENT);
                let mut packed = marked.write(output, Level::default());
                return names(&mut packed, schema).map(|()| To::CsvGz(Box::new(packed)));
            }
            if ending == Some(".arrow") {
                let mut writer = ArrowFileWriter::try_new(output, schema)?;
                writer.write_metadata(MARK.0, MARK.1);
                return Ok(To::Arrow(Box::new(writer)));
            }
            let mark = KeyValue::new(MARK.0.to_owned(), MARK.1.to_owned());
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(Some(GROUP))
                .set_key_value_metadata(Some(vec![mark]))
                .build();
            let writer = ArrowWriter::try_new(output, Arc::clone(schema), Some(properties))?;
            Ok(To::Parquet(Box::new(writer)))
        })
    }

    /// Begins CSV that goes elsewhere, for instance to the standard output: `name` tells where in errors.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where nothing can be written, or two columns have one name.
    pub fn to_stream(
        to: impl Write + Send + 'static,
        name: &str,
        keys: Option<Keys>,
        columns: &[&str],
    ) -> Result<Self> {
        Self::to_stream_with_top(to, name, keys, 0, columns)
    }

    /// As [`to_stream`](Self::to_stream), with the columns of [`create_with_top`](Self::create_with_top).
    ///
    /// # Errors
    /// As [`to_stream`](Self::to_stream).
    pub fn to_stream_with_top(
        to: impl Write + Send + 'static,
        name: &str,
        keys: Option<Keys>,
        top: usize,
        columns: &[&str],
    ) -> Result<Self> {
        let made = Self::of_fields_to_stream(to, name, keys, label_fields(top, columns))?;
        let more = columns.len();
        Ok(Self { top, more, ..made })
    }

    /// Begins CSV with these columns after the keys.
    pub(super) fn of_fields_to_stream(
        to: impl Write + Send + 'static,
        name: &str,
        keys: Option<Keys>,
        columns: Vec<Field>,
    ) -> Result<Self> {
        let mut to: Box<dyn Write + Send> = Box::new(to);
        Self::begin(name, keys, columns, |schema| {
            names(&mut to, schema).map(|()| To::Stream(to))
        })
    }

    /// Whether a file holds labels that this type wrote, as far as the file tells: a Parquet, Arrow, `.csv.gz` or `.npy` file says so, and a CSV
    /// file has no columns but `label`, with whole numbers, and at least one of those called `others`, such as its keys. Labels
    /// alone may be anyone's.
    #[must_use]
    pub fn wrote(path: impl AsRef<Path>, others: &[&str]) -> bool {
        let path = path.as_ref();
        let Ok(mut file) = File::open(path) else {
            return false;
        };
        match ending(path) {
            Some(".npy") => npy::is_of_numbers::<u32>(&mut file),
            Some(".parquet") => SerializedFileReader::new(file).is_ok_and(|file| {
                let marks = file.metadata().file_metadata().key_value_metadata();
                let is_mark =
                    |mark: &KeyValue| (&*mark.key, mark.value.as_deref()) == (MARK.0, Some(MARK.1));
                marks.is_some_and(|marks| marks.iter().any(is_mark))
            }),
            Some(".arrow") => guarded(|| ArrowReader::try_new(file, None).map_err(invalid))
                .is_ok_and(|file| {
                    file.custom_metadata()
                        .get(MARK.0)
                        .is_some_and(|value| value == MARK.1)
                }),
            Some(".csv.gz") => {
                let text = GzDecoder::new(file);
                let comment = text.header().and_then(|header| header.comment());
                comment == Some(COMMENT.as_bytes())
            }
            _ => {
                let mut rows = csv::Reader::from_reader(file.take(RECORD));
                let names = rows.headers().cloned().unwrap_or_default();
                let known = |name: &str| {
                    let kind = name.split_once('_').map_or(name, |(kind, place)| {
                        if place.parse::<u32>().is_ok() {
                            kind
                        } else {
                            name
                        }
                    });
                    ["label", "share"].contains(&kind) || others.contains(&name)
                };
                let place = names.iter().position(|name| name == "label");
                let first = rows.records().next();
                let is_label = |place: usize| {
                    let is_whole = |row: csv::StringRecord| row[place].parse::<u32>().is_ok();
                    first.is_none_or(|row| row.is_ok_and(is_whole))
                };
                names.len() > 1 && names.iter().all(known) && place.is_some_and(is_label)
            }
        }
    }

    fn begin(
        path: &str,
        keys: Option<Keys>,
        columns: Vec<Field>,
        to: impl FnOnce(&SchemaRef) -> std::result::Result<To, ArrowError>,
    ) -> Result<Self> {
        let mut fields: Vec<Field> = keys
            .iter()
            .flat_map(|keys| keys.schema().fields())
            .map(|field| (**field).clone())
            .collect();
        fields.extend(columns);
        let mut names: Vec<&String> = fields.iter().map(Field::name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let what = format!("would have two columns {:?}: rename the key", pair[0]);
            return Err(fault(path, what));
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self {
            to: to(&schema).map_err(|error| fault(path, error))?,
            path: path.to_owned(),
            schema,
            keys,
            top: 0,
            more: 0,
        })
    }

    /// Writes the labels of the rows that follow, and what was named: as many numbers for each column.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where there are not as many, where the file of the keys ends or is damaged, and
    /// where it cannot be written: a disk is full.
    pub fn write(&mut self, labels: &[u32], columns: &[&[f64]]) -> Result<()> {
        let rows = labels.len();
        if columns.len() != self.more || columns.iter().any(|column| column.len() != rows) {
            let what = format!(
                "{rows} labels need as many numbers in {} columns",
                self.more
            );
            return Err(fault(&self.path, what));
        }
        let arrays: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(labels.to_vec()))];
        self.put_labels(labels, arrays, columns)
    }

    /// Writes columns of labels, and of shares between them.
    fn put_labels(
        &mut self,
        labels: &[u32],
        mut arrays: Vec<ArrayRef>,
        columns: &[&[f64]],
    ) -> Result<()> {
        if let To::Npy(writer) = &mut self.to {
            return writer.write(labels);
        }
        for column in columns {
            arrays.push(Arc::new(Float64Array::from(column.to_vec())));
        }
        self.put(labels.len(), arrays)
    }

    /// Writes the columns of some rows after their keys.
    pub(super) fn put(&mut self, rows: usize, columns: Vec<ArrayRef>) -> Result<()> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        if let Some(keys) = &mut self.keys {
            arrays.extend(keys.next(rows)?.columns().iter().cloned());
        }
        arrays.extend(columns);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| fault(&self.path, error))?;
        let named = |what: &dyn fmt::Display| fault(&self.path, what);
        match &mut self.to {
            To::Npy(_) => Ok(()),
            To::Parquet(writer) => writer.write(&batch).map_err(|error| named(&error)),
            To::Arrow(writer) => writer.write(&batch).map_err(|error| named(&error)),
            To::Csv(to) => lines(to, &batch).map_err(|error| named(&error)),
            To::CsvGz(to) => lines(to, &batch).map_err(|error| named(&error)),
            To::Stream(to) => lines(to, &batch).map_err(|error| named(&error)),
        }
    }

    /// Writes the label of every row of a source: its likeliest component under a model. Where a column was named, it gets the
    /// log-densities. A block of rows is in memory at a time. `see` is told after each how many rows are done, and can end it
    /// there.
    ///
    /// # Errors
    /// As [`write`](Self::write). [`Error::File`](coremix::Error::File) for rows that cannot be read, with the row, and errors
    /// of the model about rows that it does not take.
    pub fn label<T: Element>(
        &mut self,
        model: &dyn Mixture<T::Float>,
        rows: &impl Source<Element = T>,
        mut see: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<()> {
        let n = rows.len();
        let dim = rows.dim();
        let at_once = match rows.lists() {
            Some(_) => BATCH_ROWS,
            None => (BATCH_BYTES / (dim * size_of::<T>()).max(1)).clamp(1, BATCH_ROWS),
        };
        let mut values = Vec::new();
        for first in (0..n).step_by(at_once) {
            let count = at_once.min(n - first);
            let data = match rows.lists() {
                Some(lists) => of_lists::<T>(dim, lists, first..first + count),
                None => {
                    values.resize(count * dim, T::default());
                    rows.read(first, &mut values)
                        .map_err(|error| of_rows(&error))?;
                    of_values(&values, [count, dim], rows.may_miss())
                }
            };
            let data = &*data.map_err(|error| numbered(error, first))?;
            let mut arrays: Vec<ArrayRef> = Vec::new();
            let labels = match self.top {
                0 => model.predict(data)?.to_vec(),
                top => {
                    let (components, shares) = model.truncated_responsibilities(data, top)?;
                    for (labels, shares) in components.columns().into_iter().zip(shares.columns()) {
                        arrays.push(Arc::new(UInt32Array::from(labels.to_vec())));
                        let shares = shares.iter().map(|share| coremix::Float::to_f64(*share));
                        arrays.push(Arc::new(Float64Array::from_iter_values(shares)));
                    }
                    components.column(0).to_vec()
                }
            };
            if arrays.is_empty() {
                arrays.push(Arc::new(UInt32Array::from(labels.clone())));
            }
            let densities = (self.more > 0)
                .then(|| model.log_densities(data))
                .transpose()?
                .map(|densities| densities.to_vec());
            let columns: Vec<&[f64]> = densities.iter().map(Vec::as_slice).collect();
            self.put_labels(&labels, arrays, &columns)?;
            if see(first + count).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where that is not possible; what was there before stays.
    pub fn finish(self) -> Result<()> {
        match self.to {
            To::Npy(writer) => writer.finish(),
            To::Parquet(writer) => {
                let output = writer.into_inner();
                output.map_err(|error| fault(&self.path, error))?.finish()
            }
            To::Arrow(writer) => {
                let output = writer.into_inner();
                output.map_err(|error| fault(&self.path, error))?.finish()
            }
            To::Csv(output) => output.finish(),
            To::CsvGz(packed) => {
                let output = packed.finish();
                output.map_err(|error| fault(&self.path, error))?.finish()
            }
            To::Stream(mut to) => to.flush().map_err(|error| fault(&self.path, error)),
        }
    }
}

/// How the name of a file ends, if files can be written so.
fn ending(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let is_of = |ending: &&str| name.len() > ending.len() && name.ends_with(ending);
    [".csv", ".csv.gz", ".parquet", ".arrow", ".npy"]
        .into_iter()
        .find(is_of)
}

/// The fields of labels, of the likeliest components with their shares, and of named columns.
fn label_fields(top: usize, columns: &[&str]) -> Vec<Field> {
    let mut fields = vec![Field::new("label", DataType::UInt32, false)];
    for place in 1..=top {
        let ranked = |name: &str| match place {
            1 => name.to_owned(),
            _ => format!("{name}_{place}"),
        };
        if place > 1 {
            fields.push(Field::new(ranked("label"), DataType::UInt32, false));
        }
        fields.push(Field::new(ranked("share"), DataType::Float64, false));
    }
    let named = columns.iter();
    fields.extend(named.map(|name| Field::new(*name, DataType::Float64, false)));
    fields
}

/// Some rows as data to ask a model about.
type Asked<'a, T> = Result<Box<dyn Data<<T as Element>::Float> + 'a>>;

fn of_values<T: Element>(values: &[T], shape: [usize; 2], may_miss: bool) -> Asked<'_, T> {
    let block = ArrayView2::from_shape(shape, values).expect("rows of d numbers");
    Ok(Box::new(if may_miss {
        Dense::with_missing(block)?
    } else {
        Dense::batch(block)?
    }))
}

fn of_lists<T: Element>(
    dim: usize,
    (starts, ids, values): Lists<'_, T>,
    rows: Range<usize>,
) -> Asked<'_, T> {
    let places = starts[rows.start]..starts[rows.end];
    let starts: Vec<usize> = starts[rows.start..=rows.end]
        .iter()
        .map(|start| start - places.start)
        .collect();
    let ids = &ids[places.clone()];
    let values = &values[places];
    Ok(Box::new(Sparse::new(dim, starts, ids, values)?))
}

/// The error, with the number of its row in the file.
fn numbered(mut error: Error, first: usize) -> Error {
    if let Error::NotFinite { row, .. } | Error::TooLarge { row, .. } = &mut error {
        *row += first;
    }
    error
}

/// Writes the names of the columns, also where no rows follow.
fn names(to: &mut impl Write, schema: &SchemaRef) -> std::result::Result<(), ArrowError> {
    let names = RecordBatch::new_empty(Arc::clone(schema));
    WriterBuilder::new().build(to).write(&names)
}

/// Writes rows as lines.
fn lines(to: &mut impl Write, rows: &RecordBatch) -> std::result::Result<(), ArrowError> {
    let mut writer = WriterBuilder::new().with_header(false).build(to);
    writer.write(rows)
}
