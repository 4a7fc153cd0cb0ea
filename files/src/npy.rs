//! Rows of an `.npy` file.

use crate::numbers::{ElementType, Kind, Number};
use crate::table::{Layout, Placed, ReadAt, Table, table};
use coremix::Result;
use std::path::Path;

/// The rows of a matrix in an `.npy` file of `NumPy`, read when they are asked for: a [`Source`](coremix::data::Source).
///
/// Format versions 1 to 3. `T` is the type of the numbers in the file, or one that holds all of them exactly: `u8` reads
/// `u1`; `f32` reads `f4`, `f2`, `u1`, `i1`, `u2` and `i2`; `f64` reads these, `u4`, `i4`, `f8`, and `u8` and `i8` up to 2^53.
/// All are little-endian.
///
/// Where the matrix lies column after column (Fortran order), a block of rows takes a read per column, and rows in any
/// order take one per row and column: for many columns, write the file row after row.
///
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix::prelude::*;
/// use coremix_files::NpyFile;
///
/// let data = Blocks::new(NpyFile::<f32>::open("points.npy")?)?;
/// let fit = algorithms::fast(1_000).build()?.fit(&data)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct NpyFile<T> {
    table: Table<T>,
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
        Self::open_as(path.as_ref(), false)
    }

    /// The same for numbers that may be rounded.
    pub(crate) fn open_as(path: &Path, rounded: bool) -> Result<Self> {
        Self::of(Placed::open(path)?, rounded)
    }

    /// The same for bytes that come from elsewhere.
    ///
    /// ```
    /// use coremix::data::Source;
    /// use coremix_files::NpyFile;
    ///
    /// let mut bytes = b"\x93NUMPY\x01\x00\x37\x00".to_vec();
    /// bytes.extend(b"{'descr':'|u1','fortran_order':False,'shape':(3, 2), }\n");
    /// bytes.extend([1, 2, 3, 4, 5, 6]);
    /// let rows = NpyFile::<u8>::over(bytes)?;
    /// let mut out = [0; 4];
    /// rows.read(1, &mut out).expect("rows 1 and 2");
    /// assert_eq!(out, [3, 4, 5, 6]);
    /// # Ok::<(), coremix::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(bytes: impl ReadAt + 'static) -> Result<Self> {
        Self::of(Placed::over(bytes), false)
    }

    fn of(file: Placed, rounded: bool) -> Result<Self> {
        let (from, header) = match header(&file) {
            Ok(found) => found,
            Err(what) => return Err(file.fault(what)),
        };
        let layout = match header.by_columns {
            true => Layout::Columns,
            false => Layout::Rows,
        };
        let table = Table::new(file, from, header.shape, header.kind, layout)?;
        let table = table.readable(rounded)?;
        Ok(Self { table })
    }
}

/// The smallest element type that holds all numbers of a file exactly.
pub(crate) fn element(path: &Path) -> Result<ElementType> {
    let file = Placed::open(path)?;
    let found = header(&file).map_err(|what| file.fault(what));
    found.map(|(_, header)| header.kind.element())
}

table!(NpyFile);

/// What a header says.
#[derive(Debug, PartialEq)]
struct Header {
    kind: Kind,
    by_columns: bool,
    shape: [usize; 2],
}

/// Where the numbers start, and what is said about them.
fn header(file: &Placed) -> std::result::Result<(u64, Header), String> {
    let mut start = [0; 12];
    let length = file.len().min(12);
    file.read(0, &mut start[..length as usize])
        .map_err(|error| error.to_string())?;
    if length < 10 || !start.starts_with(b"\x93NUMPY") {
        return Err("not an .npy file: it does not start with \\x93NUMPY and a version".into());
    }
    let [a, b, c, d] = [start[8], start[9], start[10], start[11]];
    let (before, length) = match (start[6], start[7]) {
        (1, 0) => (10, u64::from(u16::from_le_bytes([a, b]))),
        (2 | 3, 0) if length == 12 => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        (2 | 3, 0) => return Err("it ends within the length of the header".into()),
        (major, minor) => {
            return Err(format!(
                "version {major}.{minor} of the .npy format; 1.0, 2.0 and 3.0 are read"
            ));
        }
    };
    if length > LONGEST {
        return Err(format!(
            "a header of {length} bytes; it must not exceed {LONGEST}"
        ));
    }
    let from = before + length;
    if from > file.len() {
        let found = file.len();
        return Err(format!(
            "the header ends at byte {from}, the file at {found}"
        ));
    }
    let mut bytes = vec![0; length as usize];
    file.read(before, &mut bytes)
        .map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| "the header is not text".to_string())?;
    Ok((from, parse(text)?))
}

/// The header as text: a dictionary of three entries.
fn parse(text: &str) -> std::result::Result<Header, String> {
    let mut rest = Rest(text);
    let (mut kind, mut by_columns, mut shape) = (None, None, None);
    rest.expect("{")?;
    while !rest.take("}") {
        let key = rest.string()?;
        rest.expect(":")?;
        let known = match key {
            "descr" => kind.replace(kind_of(rest.string()?)?).is_some(),
            "fortran_order" => by_columns.replace(rest.truth()?).is_some(),
            "shape" => shape.replace(rest.shape()?).is_some(),
            _ => return Err(format!("the header has an unknown entry {key:?}")),
        };
        if known {
            return Err(format!("the header has two entries {key:?}"));
        }
        if !rest.take(",") {
            rest.expect("}")?;
            break;
        }
    }
    if !rest.0.trim_ascii().is_empty() {
        return Err("the header goes on after its last brace".into());
    }
    let missing = |key: &str| format!("the header has no entry {key:?}");
    Ok(Header {
        kind: kind.ok_or_else(|| missing("descr"))?,
        by_columns: by_columns.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

/// The type of numbers by its name in `NumPy`.
fn kind_of(name: &str) -> std::result::Result<Kind, String> {
    Ok(match name {
        "|u1" | "<u1" => Kind::U8,
        "|i1" | "<i1" => Kind::I8,
        "<u2" => Kind::U16,
        "<i2" => Kind::I16,
        "<u4" => Kind::U32,
        "<i4" => Kind::I32,
        "<u8" => Kind::U64,
        "<i8" => Kind::I64,
        "<f2" => Kind::F16,
        "<f4" => Kind::F32,
        "<f8" => Kind::F64,
        _ => {
            return Err(format!(
                "holds numbers of type {name:?}; u1, i1, and u2, i2, u4, i4, u8, i8, f2, f4 and f8 in little-endian order are read"
            ));
        }
    })
}

/// What is left of a header.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// What comes next, for errors.
    fn shown(&self) -> String {
        self.0.chars().take(40).collect()
    }

    /// Goes on after this sign, if it comes next.
    fn take(&mut self, sign: &str) -> bool {
        self.0 = self.0.trim_ascii_start();
        let after = self.0.strip_prefix(sign);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    fn expect(&mut self, sign: &str) -> std::result::Result<(), String> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(format!(
                "the header needs {sign:?} before {:?}",
                self.shown()
            )),
        }
    }

    fn string(&mut self) -> std::result::Result<&'a str, String> {
        for quote in ["'", "\""] {
            if self.take(quote)
                && let Some((text, rest)) = self.0.split_once(quote)
            {
                self.0 = rest;
                return Ok(text);
            }
        }
        Err(format!(
            "the header needs a name in quotes before {:?}",
            self.shown()
        ))
    }

    fn truth(&mut self) -> std::result::Result<bool, String> {
        if self.take("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    /// Two numbers.
    fn shape(&mut self) -> std::result::Result<[usize; 2], String> {
        self.expect("(")?;
        let mut numbers = Vec::new();
        while !self.take(")") {
            let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.0.split_at(digits);
            let fault = format!("not a number of rows or columns: {:?}", self.shown());
            numbers.push(number.parse().map_err(|_| fault)?);
            self.0 = rest;
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        let axes = numbers.len();
        let shape = numbers.try_into();
        shape.map_err(|_| format!("an array of {axes} axes; it must have 2: reshape it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_they_may_be_written() {
        let expected = |kind, by_columns, shape| {
            Ok(Header {
                kind,
                by_columns,
                shape,
            })
        };
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }      \n";
        assert_eq!(parse(text), expected(Kind::F32, false, [3, 2]));
        let text = "{\"shape\":(3,2,),\"fortran_order\":True,\"descr\":\"|u1\"}";
        assert_eq!(parse(text), expected(Kind::U8, true, [3, 2]));
        for (text, part) in [
            ("", "\"{\""),
            ("{", "name in quotes"),
            ("{}", "no entry \"descr\""),
            (
                "{'descr': '<f4', 'fortran_order': False}",
                "no entry \"shape\"",
            ),
            ("{'descr': '>f4'}", "\">f4\""),
            ("{'descr': '<c8'}", "\"<c8\""),
            ("{'descr': '>f2'}", "\">f2\""),
            ("{'descr': [('a', '<f4')]}", "[('a', '<f4')]"),
            ("{'descr': '<f4", "name in quotes"),
            ("{'descr': '<f4', 'descr': '<f4'}", "two entries"),
            ("{'fortran_order': 0}", "\"False\""),
            ("{'shape': ()}", "0 axes"),
            ("{'shape': (3,)}", "1 axes"),
            ("{'shape': (3, 2, 1)}", "3 axes"),
            ("{'shape': (-3, 2)}", "not a number"),
            ("{'shape': (99999999999999999999999, 2)}", "not a number"),
            ("{'shape': (3 2)}", "\")\""),
            ("{'other': 1}", "\"other\""),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)} 1",
                "after its last brace",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
