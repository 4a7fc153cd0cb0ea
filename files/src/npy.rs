//! Rows of an `.npy` file.

use crate::fault::{damaged, fault, invalid};
use crate::numbers::{ElementType, Kind, Number, put_bytes, readable};
use crate::source::source;
use crate::table::{Layout, OnDisk, ReadAt, Table};
use coremix::Result;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The rows of a matrix in an `.npy` file of `NumPy`, read when they are asked for: a [`Source`](coremix::data::Source).
///
/// Format versions 1 to 3. `T` is the type of the numbers in the file, or one that holds all of them exactly: `u8` reads
/// `u1`, `i8` reads `i1`, `half::f16` reads `f2`, `u1` and `i1`; `f32` reads `f4`, `f2`, `u1`, `i1`, `u2` and `i2`; `f64` reads these, `u4`, `i4`, `f8`, and `u8` and `i8` up to 2^53.
/// All are little-endian.
///
/// Where the matrix lies column after column (Fortran order), a block of rows takes a read per column, and rows in any
/// order take one per row and column: for many columns, write the file row after row.
pub struct NpyFile<T> {
    pub(crate) table: Table<T>,
}

/// The longest header: that of a matrix has about a hundred bytes.
const LONGEST: u64 = 1 << 20;

impl<T: Number> NpyFile<T> {
    /// Opens a file and checks its header. No row is read yet.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for a file that cannot be read, for a header that is not that of a matrix of such
    /// numbers, and for another length than the header says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::over(OnDisk::open(path)?)
    }

    /// Opens bytes that come from elsewhere.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(bytes: impl ReadAt + 'static) -> Result<Self> {
        Self::of(bytes, false)
    }

    /// Opens bytes whose numbers may be rounded.
    pub(crate) fn of(file: impl ReadAt + 'static, rounded: bool) -> Result<Self> {
        let (from, header) = header(&file).map_err(|what| fault(&file.name(), what))?;
        let layout = if header.by_columns {
            Layout::Columns
        } else {
            Layout::Rows
        };
        let axes = header.shape.len();
        let shape = header.shape.try_into().map_err(|_| {
            let what = format!("an array of {axes} axes; it must have 2: reshape it");
            fault(&file.name(), what)
        })?;
        let table = Table::new(Arc::new(file), from, shape, header.kind, layout, rounded)?;
        Ok(Self { table })
    }
}

/// The numbers of an array of one axis, all of which the type holds.
pub(crate) fn vector<T: Number>(bytes: &Vec<u8>) -> io::Result<Vec<T>> {
    let (from, header) = header(bytes).map_err(invalid)?;
    let numbers = &bytes[from as usize..];
    if header.shape.len() != 1
        || numbers.len() != header.shape[0].saturating_mul(header.kind.size())
    {
        return Err(damaged("an array that is no list of numbers"));
    }
    readable::<T>(header.kind, false).map_err(invalid)?;
    let mut values = vec![T::default(); header.shape[0]];
    put_bytes(header.kind, numbers, &mut values, 1, false)
        .map_err(|(place, what)| invalid(format!("number {place}: {what}")))?;
    Ok(values)
}

/// The smallest element type that holds all numbers of an array exactly.
pub(crate) fn element_of(bytes: &Vec<u8>) -> io::Result<ElementType> {
    let (_, header) = header(bytes).map_err(invalid)?;
    Ok(header.kind.element())
}

/// An error where the numbers of an array are not of this type, unless they may be rounded.
pub(crate) fn check<T: Number>(bytes: &Vec<u8>, rounded: bool) -> io::Result<()> {
    let (_, header) = header(bytes).map_err(invalid)?;
    readable::<T>(header.kind, rounded).map_err(invalid)
}

/// The smallest element type that holds all numbers of a file exactly.
pub(crate) fn element(file: &dyn ReadAt) -> Result<ElementType> {
    let header = header(file).map_err(|what| fault(&file.name(), what));
    header.map(|(_, header)| header.kind.element())
}

source!(NpyFile, table);

/// The content of a header.
struct Header {
    kind: Kind,
    by_columns: bool,
    shape: Vec<usize>,
}

/// Where the numbers start, and what is said about them.
fn header(file: &dyn ReadAt) -> std::result::Result<(u64, Header), String> {
    if file.is_empty() {
        return Err("an empty file, and not an .npy file".into());
    }
    let mut start = [0; 12];
    let length = file.len().min(12);
    let read = |from, out: &mut [u8]| file.read_at(from, out).map_err(|error| error.to_string());
    read(0, &mut start[..length as usize])?;
    if length < 10 || !start.starts_with(b"\x93NUMPY") {
        return Err("not an .npy file: it does not start with \\x93NUMPY and a version".into());
    }
    let [.., major, minor, a, b, c, d] = start;
    let (before, length) = match (major, minor) {
        (1, 0) => (10, u64::from(u16::from_le_bytes([a, b]))),
        (2 | 3, 0) if length == 12 => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        (2 | 3, 0) => return Err("it ends within the length of the header".into()),
        _ => {
            let what = "of the .npy format; 1.0, 2.0 and 3.0 are read";
            return Err(format!("version {major}.{minor} {what}"));
        }
    };
    let from = before + length;
    let size = file.len();
    if length > LONGEST {
        return Err(format!(
            "a header of {length} bytes; it must not exceed {LONGEST}"
        ));
    }
    if from > size {
        return Err(format!(
            "the header ends at byte {from}, the file at {size}"
        ));
    }
    let mut bytes = vec![0; length as usize];
    read(before, &mut bytes)?;
    let text = match major {
        3 => String::from_utf8(bytes).map_err(|_| "the header is not text")?,
        // Latin-1 before.
        _ => bytes.into_iter().map(char::from).collect(),
    };
    Ok((from, parse(&text)?))
}

/// The header as text: a dictionary of three entries.
fn parse(text: &str) -> std::result::Result<Header, String> {
    // The text after a key and its colon.
    let entry = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        quoted
            .iter()
            .find_map(|key| text.split_once(key))
            .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'))
            .map(str::trim_start)
            .ok_or_else(|| format!("the header has no entry {key:?}"))
    };
    let within = |key: &str, open: &[char], close: &[char]| {
        let value = entry(key)?;
        let shown = || value.chars().take(40).collect::<String>();
        let wrong = || format!("the entry {key:?} of the header is {:?}", shown());
        value
            .strip_prefix(open)
            .and_then(|rest| rest.split_once(close))
            .map(|(inner, _)| inner)
            .ok_or_else(wrong)
    };
    let described = entry("descr")?;
    if described.starts_with('[') {
        let shown: String = described
            .split_inclusive(']')
            .take(1)
            .flat_map(str::chars)
            .take(60)
            .collect();
        return Err(format!(
            "holds rows of fields, {shown:?}: save one matrix, as numpy.lib.recfunctions.structured_to_unstructured makes it"
        ));
    }
    let quotes = &['\'', '"'];
    let name = within("descr", quotes, quotes)?;
    let kind = name.strip_prefix('<').and_then(Kind::named).or_else(|| {
        name.strip_prefix('|')
            .and_then(Kind::named)
            .filter(|kind| kind.size() == 1)
    });
    let unknown = || {
        let read =
            "u1, i1, and u2, i2, u4, i4, u8, i8, f2, f4 and f8 in little-endian order are read";
        let values = match name.trim_start_matches(['<', '>', '|', '=']).chars().next() {
            Some('u' | 'i' | 'f') => "numbers",
            Some('O') => "Python objects",
            Some('b') => "true and false",
            Some('U' | 'S') => "text",
            Some('M' | 'm') => "times",
            Some('c') => "complex numbers",
            _ => "values",
        };
        format!("holds {values}, of type {name:?}: {read}, as x.astype(\"<f4\") makes them")
    };
    let kind = kind.ok_or_else(unknown)?;
    let order = entry("fortran_order")?;
    let by_columns = order.starts_with("True");
    if !by_columns && !order.starts_with("False") {
        return Err("the entry \"fortran_order\" of the header is neither True nor False".into());
    }
    let shape = within("shape", &['('], &[')'])?
        .split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty())
        .map(|number| {
            let fault = |_| format!("not a number of rows or columns: {number:?}");
            number.parse().map_err(fault)
        });
    let shape = shape.collect::<std::result::Result<Vec<usize>, _>>()?;
    Ok(Header {
        kind,
        by_columns,
        shape,
    })
}
