//! Rows of an `.npy` file.

use crate::fault::fault;
use crate::numbers::{ElementType, Kind, Number};
use crate::table::{Layout, OnDisk, ReadAt, Table, table};
use coremix::Result;
use std::path::Path;
use std::sync::Arc;

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
        Self::of(Arc::new(OnDisk::open(path)?), rounded)
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
        Self::of(Arc::new(bytes), false)
    }

    fn of(file: Arc<dyn ReadAt>, rounded: bool) -> Result<Self> {
        let (from, header) = header(&file).map_err(|what| fault(&file.name(), what))?;
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
    let file = OnDisk::open(path)?;
    let (_, header) = header(&file).map_err(|what| fault(&file.name(), what))?;
    Ok(header.kind.element())
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
fn header(file: &dyn ReadAt) -> std::result::Result<(u64, Header), String> {
    let mut start = [0; 12];
    let length = file.len().min(12);
    file.read_at(0, &mut start[..length as usize])
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
    file.read_at(before, &mut bytes)
        .map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| "the header is not text".to_string())?;
    Ok((from, parse(text)?))
}

/// The header as text: a dictionary of three entries.
fn parse(text: &str) -> std::result::Result<Header, String> {
    let entry = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let found = quoted.iter().find_map(|key| text.split_once(key));
        let value = found.and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
        let value = value.map(str::trim_start);
        value.ok_or_else(|| format!("the header has no entry {key:?}"))
    };
    let within = |key: &str, open: &[char], close: &[char]| {
        let value = entry(key)?;
        let found = value
            .strip_prefix(open)
            .and_then(|rest| rest.split_once(close));
        let shown: String = value.chars().take(40).collect();
        found.map_or_else(|| Err(wrong(key, &shown)), |(found, _)| Ok(found))
    };
    fn wrong(key: &str, value: &str) -> String {
        format!("the entry {key:?} of the header is {value:?}")
    }
    let quotes = &['\'', '"'];
    let kind = kind_of(within("descr", quotes, quotes)?)?;
    let by_columns = match entry("fortran_order")? {
        order if order.starts_with("False") => false,
        order if order.starts_with("True") => true,
        _ => return Err(wrong("fortran_order", "neither True nor False")),
    };
    let shape = within("shape", &['('], &[')'])?.split(',').map(str::trim);
    let shape = shape.filter(|number| !number.is_empty()).map(|number| {
        let fault = |_| format!("not a number of rows or columns: {number:?}");
        number.parse().map_err(fault)
    });
    let shape = shape.collect::<std::result::Result<Vec<usize>, _>>()?;
    let shape = shape.try_into().map_err(|shape: Vec<usize>| {
        format!(
            "an array of {} axes; it must have 2: reshape it",
            shape.len()
        )
    })?;
    Ok(Header {
        kind,
        by_columns,
        shape,
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
        let written = |descr, order, shape| {
            parse(&format!(
                "{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"
            ))
        };
        for (descr, part) in [
            ("'>f4'", "\">f4\""),
            ("'<c8'", "\"<c8\""),
            ("[('a', '<f4')]", "[('a'"),
        ] {
            let error = written(descr, "False", "(3, 2)").unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        for (shape, part) in [
            ("()", "0 axes"),
            ("(3,)", "1 axes"),
            ("(3, 2, 1)", "3 axes"),
            ("(-3, 2)", "not a number"),
            ("(99999999999999999999999, 2)", "not a number"),
            ("(3 2)", "not a number"),
            ("3", "\"shape\""),
        ] {
            let error = written("'<f4'", "True", shape).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(
            written("'<f4'", "0", "(3, 2)")
                .unwrap_err()
                .contains("neither True")
        );
        for text in ["", "{}", "{'descr' '<f4'}", "{'descr': '<f4"] {
            assert!(parse(text).unwrap_err().contains("\"descr\""), "{text}");
        }
    }
}
