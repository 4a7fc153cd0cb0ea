//! Rows of a CSV file.

use crate::choice::{Columns, Features, Holds, features, keys as key_places};
use crate::fault::{fault, invalid, rows_asked_for, unread};
use crate::keys::Keys;
use crate::numbers::{Kind, Number};
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use crate::table::ReadFrom;
use crate::{OnDisk, ReadAt};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coremix::Result;
use coremix::data::Source;
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// The rows of a CSV file, read when they are asked for: a [`Source`].
///
/// Opening it goes through the file once, and keeps the place of every 1024th row. A column is one of numbers unless most of
/// its first hundred fields are none. Fields are read as the nearest `f32` or `f64`; `u8` reads integers from 0 to 255.
/// A field that is empty or no number, NaN, an infinity, or a line with more or fewer fields is an error that names the
/// column and the line.
///
/// A few readers wait at the rows that were read last, so that each block of rows is parsed once in a pass.
///
/// ```
/// use coremix::data::Source;
/// use coremix_files::{CsvFile, Options};
///
/// let text = b"name,x,y\na,1.5,2\nb,3,4e-3\n".to_vec();
/// let rows = CsvFile::<f64>::over(text, &Options::new())?;
/// assert_eq!((rows.len(), rows.dim()), (2, 2));
/// let mut out = [0.0; 4];
/// rows.read(0, &mut out).expect("two rows");
/// assert_eq!(out, [1.5, 2.0, 3.0, 0.004]);
/// # Ok::<(), coremix::Error>(())
/// ```
pub struct CsvFile<T> {
    bytes: Arc<dyn ReadAt>,
    path: String,
    names: Vec<String>,
    /// The fields that are read.
    fields: Vec<usize>,
    delimiter: u8,
    /// The byte and the line of every [`STEP`]th row.
    places: Vec<Place>,
    len: usize,
    pool: Pool<Lines>,
    of: std::marker::PhantomData<T>,
}

impl<T> fmt::Debug for CsvFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvFile")
            .field("path", &self.path)
            .field("len", &self.len)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// Rows from one known place to the next.
const STEP: usize = 1_024;
/// Rows that say what columns hold.
const SAMPLE: usize = 100;

/// Where a row begins.
#[derive(Clone, Copy)]
struct Place {
    byte: u64,
    line: u64,
}

/// A reader at a row.
struct Lines {
    reader: Reader<ReadFrom>,
    record: ByteRecord,
    row: usize,
    /// Lines before those of the reader.
    before: u64,
}

impl Cursor for Lines {
    fn row(&self) -> usize {
        self.row
    }
}

fn reader<R: Read>(from: R, delimiter: u8, header: bool) -> Reader<R> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(header)
        .buffer_capacity(1 << 16)
        .from_reader(from)
}

/// A field as it is, without blanks around it.
fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok().map(str::trim)
}

/// The columns of a table, and whether its first line names them.
pub(crate) struct Head {
    pub(crate) columns: Columns,
    header: bool,
}

impl Head {
    fn read<R: Read>(mut reader: Reader<R>, header: Option<bool>) -> io::Result<Self> {
        let is_number = |field: &[u8]| text(field).is_some_and(|text| text.parse::<f64>().is_ok());
        let (mut record, mut rows) = (ByteRecord::new(), 0);
        let some = reader.read_byte_record(&mut record).map_err(invalid)?;
        let header = header.unwrap_or(!some || !record.iter().all(is_number));
        let name = |field: &[u8]| {
            let name = String::from_utf8_lossy(field);
            name.trim().trim_start_matches('\u{feff}').to_owned()
        };
        let names: Vec<String> = match header {
            true => record.iter().map(name).collect(),
            false => (1..=record.len()).map(|i| format!("column_{i}")).collect(),
        };
        let mut others = vec![0; names.len()];
        let mut more =
            some && (!header || reader.read_byte_record(&mut record).map_err(invalid)?);
        while more && rows < SAMPLE {
            for (others, field) in others.iter_mut().zip(&record) {
                *others += usize::from(!is_number(field));
            }
            rows += 1;
            more = reader.read_byte_record(&mut record).map_err(invalid)?;
        }
        let holds = others.iter().map(|others| match 2 * others > rows {
            true => Holds::Other,
            false => Holds::Numbers(Kind::F64),
        });
        let columns = names.into_iter().zip(holds).collect();
        Ok(Self { columns, header })
    }

    /// Of bytes that may be compressed.
    pub(crate) fn of(
        bytes: &Arc<dyn ReadAt>,
        options: &Options,
        compressed: bool,
    ) -> io::Result<Self> {
        let delimiter = delimiter(&bytes.name(), options);
        Self::read(
            reader(plain(bytes, compressed), delimiter, false),
            options.header,
        )
    }
}

/// The fields that are read, and their names.
fn chosen(columns: &Columns, options: &Options) -> io::Result<(Vec<usize>, Vec<String>)> {
    let features = features(columns, options).map_err(invalid)?;
    let Features::Each(each) = features else {
        return Err(invalid("has no lists"));
    };
    let fields: Vec<usize> = each.into_iter().map(|(place, _)| place).collect();
    let names = fields.iter().map(|place| columns[*place].0.clone());
    let names = names.collect();
    Ok((fields, names))
}

/// Reads the fields of a row.
fn parse<T: Number>(
    record: &ByteRecord,
    fields: &[usize],
    names: &[String],
    line: u64,
    out: &mut [T],
) -> io::Result<()> {
    for ((place, name), out) in fields.iter().zip(names).zip(out) {
        let field = text(record.get(*place).unwrap_or_default());
        let Some(text) = field else {
            return Err(wrong(name, line, "not text in UTF-8"));
        };
        let Some(number) = T::parse(text) else {
            let shown: String = text.chars().take(40).collect();
            let what = match shown.is_empty() {
                true => "an empty field".into(),
                false => format!("{shown:?} is not a number of type {}", T::TYPE),
            };
            return Err(wrong(name, line, what));
        };
        if !coremix::Float::is_finite(number.widen()) {
            return Err(wrong(name, line, "a value is NaN or infinite"));
        }
        *out = number;
    }
    Ok(())
}

/// What is wrong with a field, and in which line.
fn wrong(name: &str, line: u64, what: impl fmt::Display) -> io::Error {
    invalid(format!("column {name:?}, line {line}: {what}"))
}

/// What is wrong with a line, so many lines after the reader's own.
fn broken(before: u64, error: &csv::Error) -> io::Error {
    let line = before + error.position().map_or(1, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => invalid(format!(
            "line {line} has {len} fields, where others have {expected_len}: is the delimiter right?"
        )),
        _ => invalid(format!("line {line}: {error}")),
    }
}

/// The line of a record, so many lines after the reader's own.
fn line(before: u64, record: &ByteRecord) -> u64 {
    before + record.position().map_or(1, csv::Position::line)
}

impl<T: Number> CsvFile<T> {
    /// Opens a file, and goes through it once.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a file that cannot be read, whose lines have different numbers of fields,
    /// or that does not have such columns of numbers.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::over(OnDisk::open(path)?, options)
    }

    /// The same for bytes that come from elsewhere.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(bytes: impl ReadAt + 'static, options: &Options) -> Result<Self> {
        let path = bytes.name();
        let bytes: Arc<dyn ReadAt> = Arc::new(bytes);
        Self::new(bytes, options).map_err(|error| fault(&path, error))
    }

    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let path = bytes.name();
        let delimiter = delimiter(&path, options);
        let Head { columns, header } = Head::of(&bytes, options, false)?;
        let (fields, names) = chosen(&columns, options)?;
        let from = ReadFrom {
            bytes: Arc::clone(&bytes),
            at: 0,
        };
        let mut lines = reader(from, delimiter, header);
        let (mut places, mut len, mut record) = (Vec::new(), 0, ByteRecord::new());
        if header {
            lines.byte_headers().map_err(invalid)?;
        }
        loop {
            let place = Place {
                byte: lines.position().byte(),
                line: lines.position().line(),
            };
            let found = lines.read_byte_record(&mut record);
            if !found.map_err(|error| broken(0, &error))? {
                break;
            }
            if len % STEP == 0 {
                places.push(place);
            }
            len += 1;
        }
        Ok(Self {
            bytes,
            path,
            names,
            fields,
            delimiter,
            places,
            len,
            pool: Pool::new(),
            of: std::marker::PhantomData,
        })
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let known = first / STEP;
        let cursor = self.pool.take(first.saturating_sub(STEP), first);
        let mut lines = cursor.unwrap_or_else(|| {
            let from = ReadFrom {
                bytes: Arc::clone(&self.bytes),
                at: self.places[known].byte,
            };
            Lines {
                reader: reader(from, self.delimiter, false),
                record: ByteRecord::new(),
                row: known * STEP,
                before: self.places[known].line - 1,
            }
        });
        lines.go_to(first)?;
        for out in out.chunks_exact_mut(self.fields.len()) {
            lines.next()?;
            let line = line(lines.before, &lines.record);
            parse(&lines.record, &self.fields, &self.names, line, out)?;
            lines.row += 1;
        }
        if lines.row < self.len {
            self.pool.give(lines);
        }
        Ok(())
    }
}

impl Lines {
    fn next(&mut self) -> io::Result<()> {
        let found = self.reader.read_byte_record(&mut self.record);
        match found.map_err(|error| broken(self.before, &error))? {
            true => Ok(()),
            false => Err(invalid(format!("ends before row {}", self.row))),
        }
    }

    fn go_to(&mut self, row: usize) -> io::Result<()> {
        while self.row < row {
            self.next()?;
            self.row += 1;
        }
        Ok(())
    }
}

impl<T: Number> Source for CsvFile<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.fields.len()
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let rows = rows_asked_for(first, out.len(), [self.len, self.fields.len()]);
        let read = rows.and_then(|rows| match rows {
            0 => Ok(()),
            _ => self.read_rows(first, out),
        });
        read.map_err(|error| unread(&self.path, &error))
    }
}

fn delimiter(path: &str, options: &Options) -> u8 {
    let name = path.to_ascii_lowercase();
    let tab = name.ends_with(".tsv") || name.ends_with(".tsv.gz");
    options.delimiter.unwrap_or(if tab { b'\t' } else { b',' })
}

/// Text that may be compressed, from its first byte on.
fn plain(bytes: &Arc<dyn ReadAt>, compressed: bool) -> Box<dyn Read + Send> {
    let bytes = Arc::clone(bytes);
    let from = BufReader::with_capacity(1 << 16, ReadFrom { bytes, at: 0 });
    match compressed {
        true => Box::new(flate2::bufread::MultiGzDecoder::new(from)),
        false => Box::new(from),
    }
}

/// The rows of a compressed file, one after the other.
pub(crate) struct Rows<T> {
    reader: Reader<Box<dyn Read + Send>>,
    record: ByteRecord,
    fields: Vec<usize>,
    names: Vec<String>,
    of: std::marker::PhantomData<T>,
}

impl<T: Number> Rows<T> {
    pub(crate) fn open(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let Head { columns, header } = Head::of(bytes, options, true)?;
        let (fields, names) = chosen(&columns, options)?;
        let delimiter = delimiter(&bytes.name(), options);
        Ok(Self {
            reader: reader(plain(bytes, true), delimiter, header),
            record: ByteRecord::new(),
            fields,
            names,
            of: std::marker::PhantomData,
        })
    }

    pub(crate) fn dim(&self) -> usize {
        self.fields.len()
    }

    /// Reads the next row; `false` after the last one.
    pub(crate) fn next(&mut self, out: &mut [T]) -> io::Result<bool> {
        let found = self.reader.read_byte_record(&mut self.record);
        if !found.map_err(|error| broken(0, &error))? {
            return Ok(false);
        }
        let line = line(0, &self.record);
        parse(&self.record, &self.fields, &self.names, line, out)?;
        Ok(true)
    }
}

/// The key columns that options name, as text.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options, compressed: bool) -> Result<Keys> {
    let name = bytes.name();
    let made = key_batches(&bytes, options, compressed);
    let (schema, batches) = made.map_err(|error| fault(&name, error))?;
    Ok(Keys::new(name, &schema, batches))
}

type Batches = Box<dyn Iterator<Item = io::Result<RecordBatch>> + Send>;

fn key_batches(
    bytes: &Arc<dyn ReadAt>,
    options: &Options,
    compressed: bool,
) -> io::Result<(Schema, Batches)> {
    let Head { columns, header } = Head::of(bytes, options, compressed)?;
    let delimiter = delimiter(&bytes.name(), options);
    let places = key_places(&columns, options).map_err(invalid)?;
    let fields = places
        .iter()
        .map(|place| Field::new(&columns[*place].0, DataType::Utf8, true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let mut lines = reader(plain(bytes, compressed), delimiter, header);
    let of = Arc::new(schema.clone());
    let batches = std::iter::from_fn(move || {
        let mut texts = vec![Vec::new(); places.len()];
        let mut record = ByteRecord::new();
        while texts.first().is_some_and(|texts| texts.len() < STEP) {
            match lines.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Some(Err(broken(0, &error))),
            }
            for (texts, place) in texts.iter_mut().zip(&places) {
                let field = record.get(*place).unwrap_or_default();
                texts.push(String::from_utf8_lossy(field).into_owned());
            }
        }
        if texts.first().is_none_or(Vec::is_empty) {
            return None;
        }
        let arrays = texts.into_iter().map(|texts| {
            let array: ArrayRef = Arc::new(StringArray::from(texts));
            array
        });
        let batch = RecordBatch::try_new(Arc::clone(&of), arrays.collect());
        Some(batch.map_err(invalid))
    });
    Ok((schema, Box::new(batches)))
}
