//! Rows of a CSV file.

use crate::ReadAt;
use crate::choice::{Column, Columns, Holds};
use crate::fault::{fault, invalid};
use crate::keys::Keys;
use crate::numbers::{Kind, Number};
use crate::options::Options;
use crate::pool::{Cursor, Pool};
use crate::source::{opened, source};
use crate::table::ReadFrom;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use coremix::Result;
use csv::{ByteRecord, Position, Reader, ReaderBuilder};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// The rows of a CSV file, read when they are asked for: a [`Source`](coremix::data::Source).
///
/// Opening it goes through the file once, and keeps the place of every 1024th row. A column is one of numbers unless most of
/// its first hundred fields are none; one that is asked for by its name is read as numbers in any case. Fields are read as the nearest `f32` or `f64`; `u8` reads integers from 0 to 255.
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
    text: Text,
    path: String,
    fields: Fields,
    /// The place of every [`STEP`]th row.
    places: Vec<Position>,
    len: usize,
    dim: usize,
    pool: Pool<Lines>,
    of: std::marker::PhantomData<T>,
}

/// Rows from one known place to the next.
const STEP: usize = 1_024;
/// Rows that say what columns hold.
const SAMPLE: usize = 100;

/// A file of lines, and how they are read.
struct Text {
    bytes: Arc<dyn ReadAt>,
    compressed: bool,
    delimiter: u8,
}

/// Lines of fields, one after the other.
struct Lines {
    reader: Reader<Box<dyn Read + Send>>,
    /// The last one.
    record: ByteRecord,
    /// The row that comes next.
    row: usize,
    /// Lines before those of the reader.
    before: u64,
    /// Lines end with `\r\n`: records begin with the `\n` before them.
    crlf: bool,
}

impl Cursor for Lines {
    fn row(&self) -> usize {
        self.row
    }
}

impl Text {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options, compressed: bool) -> Self {
        let name = bytes.name().to_ascii_lowercase();
        let tab = name.ends_with(".tsv") || name.ends_with(".tsv.gz");
        let delimiter = options.delimiter.unwrap_or(if tab { b'\t' } else { b',' });
        Self {
            bytes,
            compressed,
            delimiter,
        }
    }

    /// From the first line on, without it if it is a header.
    fn lines(&self, header: bool) -> io::Result<Lines> {
        let mut lines = self.lines_from(&Position::new(), 0);
        if header {
            lines.next()?;
            lines.row = 0;
        }
        Ok(lines)
    }

    /// From the place of a row on.
    fn lines_from(&self, place: &Position, row: usize) -> Lines {
        let (bytes, at) = (Arc::clone(&self.bytes), place.byte());
        let from = ReadFrom { bytes, at };
        let from: Box<dyn Read + Send> = match self.compressed {
            true => {
                let from = BufReader::with_capacity(1 << 16, from);
                Box::new(flate2::bufread::MultiGzDecoder::new(from))
            }
            false => Box::new(from),
        };
        // The first byte of a row that is not the first, after the `\r` of the line before.
        let mut byte = [0];
        let crlf = at > 0 && self.bytes.read_at(at, &mut byte).is_ok() && byte == *b"\n";
        Lines {
            reader: ReaderBuilder::new()
                .delimiter(self.delimiter)
                .has_headers(false)
                .buffer_capacity(1 << 16)
                .from_reader(from),
            record: ByteRecord::new(),
            row,
            before: place.line() - 1,
            crlf,
        }
    }
}

impl Lines {
    /// Goes on to the next line; `false` after the last one.
    fn next(&mut self) -> io::Result<bool> {
        let place = self.reader.position();
        self.crlf |= place.byte() > 0 && place.line() == 1;
        let found = self.reader.read_byte_record(&mut self.record);
        let found = found.map_err(|error| {
            let line = self.line(error.position());
            match error.kind() {
                csv::ErrorKind::UnequalLengths {
                    expected_len, len, ..
                } => invalid(format!(
                    "line {line} has {len} fields, where others have {expected_len}: is the delimiter right?"
                )),
                _ => invalid(format!("line {line}: {error}")),
            }
        })?;
        self.row += usize::from(found);
        Ok(found)
    }

    /// The line of a place in the file.
    fn line(&self, place: Option<&Position>) -> u64 {
        self.before + place.map_or(1, Position::line) + u64::from(self.crlf)
    }

    /// The same as [`next`](Self::next), where there must be one.
    fn expect(&mut self) -> io::Result<()> {
        match self.next()? {
            true => Ok(()),
            false => Err(invalid(format!("ends before row {}", self.row))),
        }
    }
}

/// A field as it is, without blanks around it.
fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok().map(str::trim)
}

fn is_number(field: &[u8]) -> bool {
    text(field).is_some_and(|text| text.parse::<f64>().is_ok())
}

impl Text {
    /// The columns: what their first rows say about them.
    fn columns(&self, options: &Options) -> io::Result<Columns> {
        let (mut lines, mut rows) = (self.lines(false)?, 0);
        let some = lines.next()?;
        let named = options.header;
        let named = named.unwrap_or(!some || !lines.record.iter().all(is_number));
        let name = |i: usize| match named {
            true => String::from_utf8_lossy(&lines.record[i]).trim().to_owned(),
            false => format!("column_{}", i + 1),
        };
        let names: Vec<String> = (0..lines.record.len()).map(name).collect();
        // Fields that are no numbers; those that are empty, and those with a decimal comma, among them.
        let (mut others, mut kinds) = (vec![0; names.len()], vec![[0; 2]; names.len()]);
        let mut more = some && (!named || lines.next()?);
        while more && rows < SAMPLE {
            let counts = others.iter_mut().zip(&mut kinds).zip(&lines.record);
            for ((others, [empty, commas]), field) in counts.filter(|(_, field)| !is_number(field))
            {
                let field = text(field).unwrap_or_default();
                *others += 1;
                *empty += usize::from(field.is_empty());
                *commas += usize::from(is_number(field.replacen(',', ".", 1).as_bytes()));
            }
            rows += 1;
            more = lines.next()?;
        }
        let counts = others.into_iter().zip(kinds);
        let each = names
            .into_iter()
            .zip(counts)
            .map(|(name, (others, [empty, commas]))| {
                let (holds, words) = match 2 * others > rows {
                    true if 2 * empty > others => (Holds::Text, "empty fields"),
                    true if 2 * commas > others => (Holds::Text, "commas within numbers"),
                    true => (Holds::Text, "text"),
                    false => (Holds::Numbers(Kind::F64), "numbers"),
                };
                let words = words.to_owned();
                Column { name, holds, words }
            });
        Ok(Columns::new(each.collect(), named, rows > 0))
    }
}

/// The columns of a file.
pub(crate) fn columns(
    bytes: Arc<dyn ReadAt>,
    options: &Options,
    compressed: bool,
) -> io::Result<Columns> {
    Text::new(bytes, options, compressed).columns(options)
}

/// The fields that are read: their places in a line, and their names.
struct Fields(Vec<(usize, String)>);

impl Fields {
    fn new(columns: &Columns, options: &Options) -> io::Result<Self> {
        let places = columns.features(options).map_err(invalid)?.into_iter();
        let fields = places.map(|place| (place, columns.each[place].name.clone()));
        Ok(Self(fields.collect()))
    }

    /// Reads the fields of a line.
    fn read<T: Number>(&self, lines: &Lines, out: &mut [T]) -> io::Result<()> {
        for ((place, name), out) in self.0.iter().zip(out) {
            *out = number(lines.record.get(*place).unwrap_or_default()).map_err(|what| {
                let line = lines.line(lines.record.position());
                invalid(format!("column {name:?}, line {line}: {what}"))
            })?;
        }
        Ok(())
    }
}

fn number<T: Number>(field: &[u8]) -> std::result::Result<T, String> {
    let text = text(field).ok_or("not text in UTF-8")?;
    match T::from_str(text) {
        Ok(number) if coremix::Float::is_finite(number.widen()) => Ok(number),
        Ok(_) => Err("a value is NaN or infinite".into()),
        Err(_) if text.is_empty() => Err("an empty field: fill it in, or take the row out".into()),
        Err(_) => {
            let shown: String = text.chars().take(40).collect();
            Err(format!(
                "{shown:?} is not a number of type {}: mend it, or take the row out",
                T::TYPE
            ))
        }
    }
}

impl<T: Number> CsvFile<T> {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let text = Text::new(bytes, options, false);
        let columns = text.columns(options)?;
        let fields = Fields::new(&columns, options)?;
        let (mut lines, mut places) = (text.lines(columns.named)?, Vec::new());
        loop {
            let (row, place) = (lines.row, lines.reader.position().clone());
            if !lines.next()? {
                break;
            }
            if row % STEP == 0 {
                places.push(place);
            }
        }
        Ok(Self {
            path: text.bytes.name(),
            text,
            places,
            len: lines.row,
            dim: fields.0.len(),
            fields,
            pool: Pool::new(),
            of: std::marker::PhantomData,
        })
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let known = first / STEP;
        let cursor = self.pool.take(first.saturating_sub(STEP), first);
        let from = || self.text.lines_from(&self.places[known], known * STEP);
        let mut lines = cursor.unwrap_or_else(from);
        while lines.row < first {
            lines.expect()?;
        }
        for out in out.chunks_exact_mut(self.dim) {
            lines.expect()?;
            self.fields.read(&lines, out)?;
        }
        if lines.row < self.len {
            self.pool.give(lines);
        }
        Ok(())
    }
}

source!(CsvFile);
opened!(CsvFile);

/// The rows of a compressed file, one after the other.
pub(crate) struct Rows {
    lines: Lines,
    fields: Fields,
}

impl Rows {
    pub(crate) fn open(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let text = Text::new(bytes, options, true);
        let columns = text.columns(options)?;
        Ok(Self {
            lines: text.lines(columns.named)?,
            fields: Fields::new(&columns, options)?,
        })
    }

    pub(crate) fn dim(&self) -> usize {
        self.fields.0.len()
    }

    /// Reads the next row; `false` after the last one.
    pub(crate) fn next<T: Number>(&mut self, out: &mut [T]) -> io::Result<bool> {
        let found = self.lines.next()?;
        if found {
            self.fields.read(&self.lines, out)?;
        }
        Ok(found)
    }
}

/// The key columns that options name, as text.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options, compressed: bool) -> Result<Keys> {
    let name = bytes.name();
    let text = Text::new(bytes, options, compressed);
    let opened = || {
        let columns = text.columns(options)?;
        let places = columns.keys(options).map_err(invalid)?;
        let fields = places.iter().map(|place| &columns.each[*place].name);
        let fields = fields.map(|name| Field::new(name, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok((text.lines(columns.named)?, places, schema))
    };
    let (mut lines, places, schema) = opened().map_err(|error: io::Error| fault(&name, error))?;
    let of = Arc::clone(&schema);
    let mut batch = move || {
        let mut texts = vec![Vec::new(); places.len()];
        let end = lines.row + STEP;
        while lines.row < end && lines.next()? {
            for (texts, place) in texts.iter_mut().zip(&places) {
                let field = lines.record.get(*place).unwrap_or_default();
                texts.push(String::from_utf8_lossy(field).into_owned());
            }
        }
        let arrays = texts.into_iter().map(StringArray::from);
        let arrays = arrays.map(|array| Arc::new(array) as ArrayRef).collect();
        RecordBatch::try_new(Arc::clone(&of), arrays).map_err(invalid)
    };
    let batches = std::iter::from_fn(move || match batch() {
        Ok(batch) if batch.num_rows() == 0 => None,
        batch => Some(batch),
    });
    Ok(Keys::new(name, &schema, batches))
}
