//! Where points come from: generated, a `.npy` file, or a `.csv` file.

use crate::Result;
use coremix::datasets::Birch;
use ndarray::{Array1, Array2};
use ndarray_npy::{ReadNpyError, ReadNpyExt, ReadableElement};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

/// Points and what is known about them.
pub(crate) struct Input {
    /// What to call the data.
    pub(crate) name: String,
    pub(crate) points: Points,
    /// Names of the columns, if the file has them.
    pub(crate) columns: Option<Vec<String>>,
    /// The answer, for generated data.
    pub(crate) truth: Option<Truth>,
}

/// Points (n, d) in the type they are stored in.
pub(crate) enum Points {
    F32(Array2<f32>),
    F64(Array2<f64>),
    U8(Array2<u8>),
}

/// The clusters that generated the points.
pub(crate) struct Truth {
    pub(crate) labels: Array1<u32>,
    pub(crate) centres: Array2<f64>,
}

const PER_CLUSTER: usize = 100;
/// Fixed, so that `--seed` changes what the algorithm does and not what it is given.
const SEED: u64 = 1;

/// BIRCH data: a 5 x 5 grid of round clusters.
pub(crate) fn generated() -> Result<Input> {
    let birch = Birch::grid(PER_CLUSTER).generate(SEED)?;
    Ok(Input {
        name: format!("generated BIRCH data, 5 x 5 clusters of {PER_CLUSTER} points"),
        points: Points::F64(birch.points),
        columns: None,
        truth: Some(Truth {
            labels: birch.labels,
            centres: birch.centres,
        }),
    })
}

/// The points in a file; its extension says how to read it.
pub(crate) fn read(path: &Path) -> Result<Input> {
    let name = path.display().to_string();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let read = match extension.to_lowercase().as_str() {
        "npy" => npy(path).map(|points| (points, None)),
        "csv" => csv(path).map(|(points, columns)| (Points::F64(points), columns)),
        _ => Err("unknown extension; .npy and .csv can be read".into()),
    };
    let (points, columns) = read.map_err(|error| format!("{name}: {error}"))?;
    Ok(Input {
        name,
        points,
        columns,
        truth: None,
    })
}

/// Tries the types in turn: which one it is stands in the header, and the others stop there.
fn npy(path: &Path) -> Result<Points> {
    let mut found = npy_of(path)?.map(Points::F32);
    if found.is_none() {
        found = npy_of(path)?.map(Points::F64);
    }
    if found.is_none() {
        found = npy_of(path)?.map(Points::U8);
    }
    found
        .ok_or_else(|| "values of this type cannot be read, only float32, float64 and uint8".into())
}

/// The array, or `None` if its values are of another type.
fn npy_of<T: ReadableElement>(path: &Path) -> Result<Option<Array2<T>>> {
    match Array2::read_npy(File::open(path)?) {
        Ok(points) => Ok(Some(points)),
        Err(ReadNpyError::WrongDescriptor(_)) => Ok(None),
        Err(ReadNpyError::WrongNdim(_, axes)) => {
            Err(format!("the array has {axes} axes, but 2 are needed: rows and columns").into())
        }
        Err(ReadNpyError::MissingData) => Err(CUT_SHORT.into()),
        Err(ReadNpyError::Io(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(CUT_SHORT.into())
        }
        Err(error) => Err(error.into()),
    }
}

const CUT_SHORT: &str = "the file ends before its data does";

/// Rows of numbers, all of one length. A first line without any number is a header.
fn csv(path: &Path) -> Result<(Array2<f64>, Option<Vec<String>>)> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        // Lengths are checked here, for a message that names the line.
        .flexible(true)
        .trim(csv::Trim::All)
        .from_path(path)?;
    let (mut values, mut columns, mut width) = (Vec::new(), None, None);
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record)? {
        let expected = *width.get_or_insert(record.len());
        if record.len() != expected {
            let (line, found) = (line_of(path, &record)?, record.len());
            return Err(format!("line {line} has {found} fields, but {expected} expected").into());
        }
        // Bytes that are no text become a sign that is in no number.
        let fields = || record.iter().map(String::from_utf8_lossy);
        let first = values.is_empty() && columns.is_none();
        if first && fields().all(|field| field.parse::<f64>().is_err()) {
            columns = Some(fields().map(|field| field.into_owned()).collect());
            continue;
        }
        for (column, field) in fields().enumerate() {
            let fault = match field.parse::<f64>() {
                Ok(value) if value.is_finite() => {
                    values.push(value);
                    continue;
                }
                Ok(_) => "is not finite",
                Err(_) if field.is_empty() => "is empty",
                Err(_) => "is no number",
            };
            let (line, column) = (line_of(path, &record)?, column + 1);
            let field: String = field.chars().take(40).collect();
            return Err(format!("line {line}, column {column}: {field:?} {fault}").into());
        }
    }
    let width = width.unwrap_or(0);
    if values.is_empty() {
        return Err("no rows of numbers".into());
    }
    let points = Array2::from_shape_vec((values.len() / width, width), values)?;
    Ok((points, columns))
}

/// The line on which a record begins, from 1.
///
/// Counted from the record's place in bytes: the reader's own line number is that of the line after the
/// last record, which differs where empty lines or carriage returns come between.
fn line_of(path: &Path, record: &csv::ByteRecord) -> Result<usize> {
    let place = record.position().map_or(0, |position| position.byte());
    let text = fs::read(path)?;
    let (before, after) = text.split_at(text.len().min(place as usize));
    let gap = after.iter().take_while(|byte| b"\r\n".contains(byte));
    let breaks = before.iter().chain(gap).filter(|byte| **byte == b'\n');
    Ok(breaks.count() + 1)
}
