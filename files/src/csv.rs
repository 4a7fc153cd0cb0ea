//! Rows of a CSV file.

use crate::ReadAt;
use crate::cells::{Cells, Signs};
use crate::choice::{AS_CATEGORY, Column, Columns, FAR, Holds, SAMPLE};
use crate::fault::invalid;
use crate::keys::Keys;
use crate::numbers::{ALLOW, Kind, Number, exact, nothing, readable};
use crate::options::{Missing, Options};
use crate::plain::{self, plain};
use crate::pool::{Cursor, Pool};
use crate::source::{opened, source};
use crate::table::ReadFrom;
use crate::texts::Texts;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Read, Take};
use std::ops::Range;
use std::sync::Arc;

/// The rows of a CSV file, read when they are asked for: a [`Source`](coremix::data::Source).
///
/// Opening it goes through the file once, and keeps the place of every 1024th row. A column is one of numbers unless most of
/// its first hundred fields are none; one that is asked for by its name is read as numbers in any case. Fields are read as
/// the nearest `f32` or `f64`; `u8` reads integers from 0 to 255. A field that is empty or no number, NaN, an infinity, or a
/// line with more or fewer fields is an error that names the column and the line.
///
/// Lines end with `\n`, `\r` or both. A blank line is none, but a missing value where there is one column; blank lines at the
/// end are none in any case. A first line that is a field shorter than the others, as R writes it, does not name the first
/// column. A delimiter may end all lines, or the first one. A line before it may say the delimiter, as `sep=;` for Excel. Text that is compressed by gzip, or not UTF-8 ([`Options::encoding`]), is read from
/// a temporary file ([`Options::spool`]).
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
    /// The fields that are read.
    fields: Vec<Field>,
    /// The place of every [`STEP`]th row.
    places: Vec<u64>,
    len: usize,
    dim: usize,
    may_miss: bool,
    pool: Pool<Lines>,
    of: std::marker::PhantomData<T>,
}

/// A field that is read.
struct Field {
    /// Its place in a line.
    place: usize,
    /// Its texts, where they are categories.
    texts: Option<Texts>,
    /// How it says a number, where it is none as it stands.
    cells: Option<Cells>,
    /// The first rows are text.
    is_text: bool,
}

/// Rows from one known place to the next.
const STEP: usize = 1_024;
/// Bytes that are read at once.
const PIECE: u64 = 1 << 16;

/// A file of lines, and what they are.
struct Text {
    how: Arc<Dialect>,
    columns: Columns,
    /// Whether it is a guess if the first line names them.
    guessed: bool,
    /// Where the rows begin.
    first: u64,
}

/// How lines are read.
#[derive(Clone)]
struct Dialect {
    bytes: Arc<dyn ReadAt>,
    delimiter: u8,
    options: Options,
    signs: Signs,
    /// Where lines are: not the ends of blank ones after the last.
    range: Range<u64>,
    /// Fields of a line; 0 where that is not known yet.
    width: usize,
    /// A delimiter may end a line.
    trailing: bool,
}

impl Dialect {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let name = bytes.name().to_ascii_lowercase();
        let tab = name.ends_with(".tsv") || name.ends_with(".tsv.gz");
        let decimal = options.decimal.unwrap_or('.');
        let usual = match decimal {
            _ if tab => b'\t',
            ',' => b';',
            _ => b',',
        };
        if options.thousands == Some(decimal) {
            return Err(invalid("the decimal sign cannot separate thousands too"));
        }
        let mut mark = [0; 3];
        let mut end = bytes.len();
        let marked = end >= 3 && bytes.read_at(0, &mut mark).is_ok() && mark == *b"\xef\xbb\xbf";
        let mut start = if marked { 3 } else { 0 };
        let mut line = Vec::new();
        let from = ReadFrom {
            bytes: Arc::clone(&bytes),
            at: start,
        };
        from.take(16).read_to_end(&mut line)?;
        let said = said_delimiter(&line);
        start += said.map_or(0, |(_, length)| length);
        let said = said.map(|(delimiter, _)| delimiter);
        let delimiter = options.delimiter.or(said).unwrap_or(usual);
        let mut piece = Vec::new();
        while end > start {
            piece.resize((end - start).min(PIECE) as usize, 0);
            bytes.read_at(end - piece.len() as u64, &mut piece)?;
            // Ctrl-Z ends a file of DOS.
            let last = piece.iter().rposition(|byte| !b"\r\n\x1a".contains(byte));
            end -= (piece.len() - last.map_or(0, |last| last + 1)) as u64;
            if last.is_some() {
                break;
            }
        }
        Ok(Self {
            bytes,
            delimiter,
            options: options.clone(),
            signs: options.signs(),
            range: start..end,
            width: 0,
            trailing: false,
        })
    }

    fn is_missing_field(&self, field: &[u8]) -> bool {
        text(field).is_some_and(|text| self.is_missing(text))
    }

    fn is_number(&self, field: &[u8]) -> bool {
        let number = text(field).and_then(|text| self.signs.plain(text));
        number.is_some_and(|number| number.parse::<f64>().is_ok_and(|x| !x.is_nan()))
    }

    /// The number of a field, or that which it says, or the code of its text.
    fn number<T: Number>(&self, field: &[u8], read: &Field) -> std::result::Result<T, String> {
        let text = text(field).ok_or(NOT_UTF_8)?;
        let is_finite = |number: &T| coremix::Float::is_finite(number.widen());
        let parsed = match (&read.texts, read.cells) {
            (Some(texts), _) => Some(Ok(T::nearest(texts.code(text)))),
            (None, Some(cells)) => {
                let number = cells.number(text, &self.signs);
                number.map(|number| Ok(T::nearest(number)))
            }
            (None, None) => {
                let number = self.signs.plain(text);
                if let Some(Err(error)) = number.as_deref().map(exact)
                    && !self.is_missing(text)
                {
                    return Err(error);
                }
                number.map(|number| T::from_str(&number))
            }
        };
        let has_texts = read.texts.is_some() || !self.options.missing_texts.is_empty();
        let stands = has_texts && self.is_missing(text);
        if let (Some(Ok(number)), false) = (&parsed, stands)
            && is_finite(number)
        {
            return Ok(*number);
        }
        let is_missing = stands || self.is_missing(text);
        if self.options.lenient && is_missing {
            return Ok(nothing());
        }
        let allow = if is_missing { ALLOW } else { "" };
        Err(match parsed {
            Some(Ok(number)) if !is_finite(&number) => {
                format!("a value is NaN or infinite: mend it, or take the row out{allow}")
            }
            Some(Ok(_)) => {
                format!("{text:?}, a missing value: fill it in, or take the row out{allow}")
            }
            _ if text.is_empty() => {
                format!("an empty field: fill it in, or take the row out{allow}")
            }
            _ => {
                if let Some(cells) = read.cells {
                    return Err(cells.not(text));
                }
                let shown: String = text.chars().take(40).collect();
                let kind = T::TYPE;
                let cure = if read.is_text {
                    AS_CATEGORY
                } else {
                    ": mend it, or take the row out"
                };
                format!("{shown:?} is not a number of type {kind}{cure}{allow}")
            }
        })
    }

    /// Whether a program writes a value that is missing so, or options say it.
    fn is_missing(&self, text: &str) -> bool {
        self.signs.is_missing(text)
    }
}

/// The delimiter that a first line such as `sep=;` says, as Excel writes it, and the length of this line.
fn said_delimiter(text: &[u8]) -> Option<(u8, u64)> {
    let length = text.iter().position(|byte| b"\r\n".contains(byte))?;
    let pair = usize::from(text[length..].starts_with(b"\r\n"));
    let line = &text[..length];
    let quoted = line
        .strip_prefix(b"\"")
        .and_then(|line| line.strip_suffix(b"\""));
    let (name, sign) = quoted.unwrap_or(line).split_at_checked(4)?;
    let [sign] = sign else { return None };
    let says =
        name.eq_ignore_ascii_case(b"sep=") && sign.is_ascii() && !sign.is_ascii_alphanumeric();
    says.then_some((*sign, (length + 1 + pair) as u64))
}

const NOT_UTF_8: &str = "not text in UTF-8: give its encoding, such as windows-1252";

/// A field as it is, without blanks around it.
fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok().map(str::trim)
}

fn is_whole(field: &[u8]) -> bool {
    text(field).is_some_and(|text| text.parse::<i64>().is_ok())
}

/// Lines of fields, one after the other.
struct Lines {
    how: Arc<Dialect>,
    core: Reader,
    from: BufReader<Take<ReadFrom>>,
    /// The place in the file of the byte that comes next.
    place: u64,
    /// The last line: where it begins, its fields one after the other, where each ends, and how many there are.
    start: u64,
    text: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
    /// The row that comes next.
    row: usize,
}

impl Cursor for Lines {
    fn row(&self) -> usize {
        self.row
    }
}

impl Lines {
    /// From the place of a row on.
    fn new(how: &Arc<Dialect>, place: u64, row: usize) -> Self {
        let bytes = Arc::clone(&how.bytes);
        let at = place;
        let from = ReadFrom { bytes, at }.take(how.range.end.saturating_sub(place));
        Self {
            how: Arc::clone(how),
            core: ReaderBuilder::new().delimiter(how.delimiter).build(),
            from: BufReader::with_capacity(PIECE as usize, from),
            place,
            start: place,
            text: vec![0; 256],
            ends: vec![0; 16],
            count: 0,
            row,
        }
    }

    /// The next byte, if there is one.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.from.fill_buf()?.first().copied())
    }

    /// Goes past some bytes.
    fn pass(&mut self, bytes: usize) {
        self.from.consume(bytes);
        self.place += bytes as u64;
    }

    /// Goes on to the next line; `false` after the last one.
    fn next(&mut self) -> io::Result<bool> {
        loop {
            let Some(byte) = self.peek()? else {
                return Ok(false);
            };
            self.start = self.place;
            if byte == b'\n' || byte == b'\r' {
                self.end_line()?;
                if self.how.width == 1 {
                    (self.ends[0], self.count) = (0, 1);
                    break;
                }
            } else if self.how.options.comment == Some(byte) {
                while self.peek()?.is_some_and(|byte| !b"\r\n".contains(&byte)) {
                    self.pass(1);
                }
                self.end_line()?;
            } else if self.record()? {
                break;
            }
        }
        self.row += 1;
        Ok(true)
    }

    /// Goes past the end of a line.
    fn end_line(&mut self) -> io::Result<()> {
        let first = self.peek()?;
        self.pass(usize::from(first.is_some()));
        self.end_pair(first)
    }

    /// Goes past the second byte of an end of a line.
    fn end_pair(&mut self, first: Option<u8>) -> io::Result<()> {
        if first == Some(b'\r') && self.peek()? == Some(b'\n') {
            self.pass(1);
        }
        Ok(())
    }

    /// Reads a line that is not blank; `false` where all of it are blanks between fields.
    fn record(&mut self) -> io::Result<bool> {
        let mut made = 0;
        let mut last = None;
        self.count = 0;
        loop {
            let input = self.from.fill_buf()?;
            let at_end = input.is_empty();
            let text = &mut self.text[made..];
            let ends = &mut self.ends[self.count..];
            let (outcome, read, written, ended) = self.core.read_record(input, text, ends);
            last = input[..read].last().copied().or(last);
            self.pass(read);
            made += written;
            self.count += ended;
            match outcome {
                ReadRecordResult::InputEmpty if made as u64 > plain::RECORD => {
                    return Err(invalid(format!(
                        "line {}: its record is longer than 16 MiB: is a quote never closed?",
                        self.line()
                    )));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::Record | ReadRecordResult::End if at_end => {
                    self.closed()?;
                    break;
                }
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        self.end_pair(last)?;
        if self.how.delimiter == b' ' {
            // Runs of blanks are one delimiter: empty fields are between them.
            self.ends.truncate(self.count);
            self.ends.dedup();
            self.ends.retain(|end| *end > 0);
            self.count = self.ends.len();
            self.ends.resize(self.count + 16, 0);
        }
        let expected = self.how.width;
        if self.how.trailing && self.count == expected + 1 && self.field(expected).is_empty() {
            self.count = expected;
        }
        if expected > 0 && self.count > 0 && self.count != expected {
            let line = self.line();
            let len = self.count;
            return Err(invalid(format!(
                "line {line} has {len} fields, where others have {expected}: is the delimiter right?"
            )));
        }
        Ok(self.count > 0)
    }

    /// An error if a quote swallows the rest of the file.
    fn closed(&self) -> io::Result<()> {
        let mut quotes = 0u64;
        let mut lines = false;
        let range = self.start..self.how.range.end;
        plain::each_byte(&*self.how.bytes, range, |byte| {
            quotes += u64::from(byte == b'"');
            lines |= byte == b'\n' || byte == b'\r';
        })?;
        if lines && quotes % 2 == 1 {
            Err(invalid(format!(
                "line {}: a quote is never closed",
                self.line()
            )))
        } else {
            Ok(())
        }
    }

    /// A field of the last line.
    fn field(&self, place: usize) -> &[u8] {
        if place < self.count {
            let from = place.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[from..self.ends[place]]
        } else {
            &[]
        }
    }

    /// The number of the last line, counted when it is asked for.
    fn line(&self) -> u64 {
        plain::line(&*self.how.bytes, self.start).unwrap_or(0)
    }

    /// An error of a field of the last line.
    fn fault(&self, column: &str, what: &str) -> io::Error {
        let line = self.line();
        invalid(format!("column {column:?}, line {line}: {what}"))
    }

    /// Goes on to the next line, which must be there.
    fn expect(&mut self) -> io::Result<()> {
        if self.next()? {
            Ok(())
        } else {
            Err(invalid(format!("ends before row {}", self.row)))
        }
    }
}

/// The fields of a line that says what others are.
type Sample = Vec<Vec<u8>>;

impl Dialect {
    /// Whether a first line of numbers names columns: it is not like the others.
    fn are_names(&self, first: &Sample, rows: &[Sample]) -> bool {
        let (index, names) = match &first[..] {
            [empty, names @ ..] if empty.is_empty() && !names.is_empty() => (1, names),
            names => (0, names),
        };
        let column = |place| rows.iter().filter_map(move |row: &Sample| row.get(place));
        let is_text = |field: &&Vec<u8>| !self.is_number(field) && !self.is_missing_field(field);
        let above_text = |place: usize| {
            let texts = column(place).filter(is_text).count();
            self.is_number(&first[place]) && 2 * texts > rows.len()
        };
        let text_below = (index..first.len()).any(above_text);
        let whole_below = (index..first.len()).any(|j| column(j).any(|field| is_whole(field)));
        let mut numbers = names.iter().enumerate();
        let counts = numbers.all(|(i, name)| text(name) == Some(&*i.to_string()));
        let distinct: HashSet<_> = names.iter().collect();
        let others = !rows.is_empty() && !whole_below;
        // Row names below a name that is empty.
        index == 1 && column(0).all(|field| !self.is_missing_field(field))
            || text_below
            || counts && (names.len() > 2 || others)
            || others
                && rows.len() >= 10
                && names.iter().all(|name| is_whole(name))
                && distinct.len() == names.len()
    }

    /// The first values of columns that have none in the first rows, where missing values are kept.
    fn late(&self, lines: &mut Lines, rows: &[Sample]) -> io::Result<HashMap<usize, Vec<u8>>> {
        let mut late = HashMap::new();
        let is_empty = |place: &usize| {
            let mut fields = rows.iter().filter_map(|row| row.get(*place));
            fields.all(|field| self.is_missing_field(field))
        };
        let mut open: Vec<usize> = (0..self.width).filter(is_empty).collect();
        if self.options.missing != Some(Missing::Keep) || rows.len() < SAMPLE {
            return Ok(late);
        }
        while !open.is_empty() && lines.row < FAR && lines.next()? {
            open.retain(|place| {
                let field = lines.field(*place);
                let is_missing = self.is_missing_field(field);
                if !is_missing {
                    late.insert(*place, field.to_vec());
                }
                is_missing
            });
        }
        Ok(late)
    }

    /// Finds out what a column holds, by its first rows.
    /// Where these have no value, `late` is the first one that comes.
    fn column(&self, name: String, place: usize, rows: &[Sample], late: Option<&[u8]>) -> Column {
        let mut others = 0;
        let mut empty = 0;
        let mut commas = 0;
        let fields = rows.iter().filter_map(|row| row.get(place));
        for field in fields.filter(|field| !self.is_number(field)) {
            let field = text(field).unwrap_or("text");
            others += 1;
            empty += usize::from(self.is_missing(field));
            commas += usize::from(self.is_number(field.replacen(',', ".", 1).as_bytes()));
        }
        let mut count = rows.len();
        let fields = rows
            .iter()
            .filter_map(|row| row.get(place))
            .map(|field| &field[..])
            .chain(late);
        let texts = fields
            .map(|field| text(field).unwrap_or("\u{fffd}"))
            .filter(|text| !self.is_missing(text));
        let first = texts
            .clone()
            .find(|text| !self.is_number(text.as_bytes()))
            .map(str::to_owned);
        let keeps = self.options.missing == Some(Missing::Keep);
        let cells = Cells::of(texts, &self.signs).filter(|_| keeps || 2 * empty <= count);
        if keeps {
            // The values that are there say it; where there are none, later rows will.
            (others, count, empty) = (others - empty, count - empty, 0);
        }
        let (holds, words) = match (cells, 2 * others > count) {
            (Some(cells), _) => (Holds::Cells(cells), cells.words()),
            (_, true) if 2 * empty > others => (Holds::Text, "empty fields".into()),
            (_, true) if 2 * commas > others => (Holds::Text, "commas within numbers".into()),
            (_, true) => (Holds::Text, "text".into()),
            (_, false) => (Holds::Numbers(Kind::F64), "numbers".into()),
        };
        let is_open = keeps && count == 0 && late.is_none();
        Column {
            name,
            holds,
            words,
            first,
            is_open,
        }
    }
}

impl Text {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let mut how = Dialect::new(plain(bytes, options)?, options)?;
        let mut lines = Lines::new(&Arc::new(how.clone()), how.range.start, 0);
        let some = lines.next()?;
        let fields = |lines: &Lines| (0..lines.count).map(|i| lines.field(i).to_vec()).collect();
        let (mut first, start, after): (Sample, _, _) = (fields(&lines), lines.start, lines.place);
        let mut rows: Vec<Sample> = Vec::new();
        while some && rows.len() < SAMPLE && lines.next()? {
            rows.push(fields(&lines));
        }
        // A delimiter at the end of all lines, or of all but the first.
        let ends = |row: &Sample| row.len() > 1 && row.last().is_some_and(Vec::is_empty);
        let longer = |rows: &[Sample], first: &Sample| {
            !rows.is_empty() && rows.iter().all(|row| row.len() == first.len() + 1)
        };
        how.trailing = rows.iter().all(ends) && (ends(&first) || longer(&rows, &first));
        if how.trailing {
            rows.iter_mut().for_each(|row| drop(row.pop()));
            first.truncate(first.len() - usize::from(ends(&first)));
        }
        // A delimiter at the end of the names alone.
        let width = rows.first().map_or(0, Vec::len);
        let shorter = width > 0 && width < first.len() && rows.iter().all(|row| row.len() == width);
        if shorter && options.header != Some(false) && first.len() == width + 1 && ends(&first) {
            first.pop();
        } else if shorter && options.header != Some(false) && width > 1 {
            let line = plain::line(&*how.bytes, start)?;
            let names = first.len();
            return Err(invalid(format!(
                "line {line} has {names} names, and the lines below it {width} fields: name as many columns as there are"
            )));
        }
        // R does not name the column of the names of rows. Below one name there may be other signs, and decimal commas.
        let other_sign = first.iter().flatten().any(|sign| b";\t|".contains(sign));
        let commas = how.delimiter == b',' && rows.iter().all(|row| how.is_number(&row[0]));
        let doubtful = first.len() == 1 && (other_sign || commas);
        let short = options.header != Some(false) && !doubtful && longer(&rows, &first);
        if short {
            first.insert(0, Vec::new());
        }
        how.width = first.len();
        let numbers = first.iter().any(|field| how.is_number(field));
        let like_a_row = |field: &Vec<u8>| how.is_number(field) || how.is_missing_field(field);
        let doubtful = numbers && !short && first.iter().all(like_a_row);
        let names = !doubtful || how.are_names(&first, &rows);
        let named = options.header.unwrap_or(names);
        let guessed = numbers && options.header.is_none();
        if !named && some {
            // Blank lines before the first row are rows, where there is one column.
            rows.insert(0, first.clone());
        }
        let late = how.late(&mut lines, &rows)?;
        let mut each = Vec::new();
        for (place, field) in first.iter().enumerate() {
            let name = match text(field) {
                _ if !named => format!("column_{}", place + 1),
                Some(name) => name.to_owned(),
                None => {
                    let line = plain::line(&*how.bytes, start)?;
                    return Err(invalid(format!("line {line}: {NOT_UTF_8}")));
                }
            };
            let late = late.get(&place).map(|field| &field[..]);
            each.push(how.column(name, place, &rows, late));
        }
        let mut columns = Columns::new(each, named, !rows.is_empty());
        columns.told(options);
        let first = if named { after } else { how.range.start };
        let how = Arc::new(how);
        // Lines of other lengths are met before columns that look strange for them.
        let mut lines = Lines::new(&how, first, 0);
        while lines.row < rows.len() && lines.next()? {}
        Ok(Self {
            how,
            columns,
            guessed,
            first,
        })
    }

    /// The rows from the first one on.
    fn lines(&self) -> Lines {
        Lines::new(&self.how, self.first, 0)
    }
}

/// The columns of a file, whether it is a guess if it names them, and its text.
pub(crate) fn columns(
    bytes: &Arc<dyn ReadAt>,
    options: &Options,
) -> io::Result<(Columns, bool, Arc<dyn ReadAt>)> {
    let text = Text::new(Arc::clone(bytes), options)?;
    Ok((text.columns, text.guessed, Arc::clone(&text.how.bytes)))
}

impl<T: Number> CsvFile<T> {
    fn new(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Self> {
        let text = Text::new(bytes, options)?;
        let fields = text.columns.features(options).map_err(invalid)?;
        let read = |place: usize| {
            let one = &text.columns.each[place];
            let texts = options.texts.get(&one.name).cloned();
            let cells = match one.holds {
                Holds::Cells(cells) => Some(cells),
                _ => None,
            };
            // Numbers as they stand are read as any type that holds them.
            let kind = match texts {
                Some(_) => Some(Kind::F64),
                None => cells.and(one.holds.kind()),
            };
            match kind.map(|kind| readable::<T>(kind, options.rounded)) {
                Some(Err(what)) => Err(invalid(format!("column {:?} {what}", one.name))),
                _ => Ok(Field {
                    place,
                    texts,
                    cells,
                    is_text: one.holds == Holds::Text && one.words == "text",
                }),
            }
        };
        let fields: Vec<Field> = fields.into_iter().map(read).collect::<io::Result<_>>()?;
        let mut lines = text.lines();
        let mut places = Vec::new();
        loop {
            let row = lines.row;
            if !lines.next()? {
                break;
            }
            if row % STEP == 0 {
                places.push(lines.start);
            }
        }
        Ok(Self {
            path: text.how.bytes.name(),
            text,
            places,
            len: lines.row,
            dim: fields.len(),
            may_miss: options.lenient::<T>()?,
            fields,
            pool: Pool::new(2 * PIECE),
            of: std::marker::PhantomData,
        })
    }

    fn read_rows(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let known = first / STEP;
        let make = || Ok(Lines::new(&self.text.how, self.places[known], known * STEP));
        self.pool
            .read(first.saturating_sub(STEP), first, make, |lines| {
                while lines.row < first {
                    lines.expect()?;
                }
                for out in out.chunks_exact_mut(self.dim) {
                    lines.expect()?;
                    for (read, out) in self.fields.iter().zip(out) {
                        let name = &self.text.columns.each[read.place].name;
                        let number = lines.how.number(lines.field(read.place), read);
                        *out = number.map_err(|what| lines.fault(name, &what))?;
                    }
                }
                Ok(lines.row < self.len)
            })
    }
}

source!(CsvFile);
opened!(CsvFile);

/// The key columns that options name, as text.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options) -> io::Result<Keys> {
    let name = bytes.name();
    let text = Text::new(bytes, options)?;
    let places = text.columns.keys(options).map_err(invalid)?;
    let fields = places
        .iter()
        .map(|place| &text.columns.each[*place].name)
        .map(|name| arrow_schema::Field::new(name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut lines = text.lines();
    let batch_schema = Arc::clone(&schema);
    let mut batch = move || {
        let mut texts = vec![Vec::new(); places.len()];
        let end = lines.row + STEP;
        while lines.row < end && lines.next()? {
            for (i, (texts, place)) in texts.iter_mut().zip(&places).enumerate() {
                let text = std::str::from_utf8(lines.field(*place));
                let text =
                    text.map_err(|_| lines.fault(batch_schema.field(i).name(), NOT_UTF_8))?;
                texts.push(text.to_owned());
            }
        }
        let arrays = texts
            .into_iter()
            .map(StringArray::from)
            .map(|array| Arc::new(array) as ArrayRef)
            .collect();
        RecordBatch::try_new(Arc::clone(&batch_schema), arrays).map_err(invalid)
    };
    let batches = std::iter::from_fn(move || match batch() {
        Ok(batch) if batch.num_rows() == 0 => None,
        batch => Some(batch),
    });
    Ok(Keys::new(name, &schema, batches))
}
