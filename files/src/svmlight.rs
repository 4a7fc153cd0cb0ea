//! Sparse rows as text, in the format of svmlight and libsvm: a label, and pairs of a column and a value.

use crate::fault::{fault, guarded, invalid};
use crate::numbers::{ElementType, Kind, Number, exact, readable};
use crate::options::Options;
use crate::plain::{RECORD, plain};
use crate::sparse::SparseRows;
use crate::table::{ReadAt, ReadFrom};
use coremix::Result;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// The text of a file, at any place, and its number of columns: one more than the largest that is named.
pub(crate) fn about(
    bytes: Arc<dyn ReadAt>,
    options: &Options,
) -> io::Result<(Arc<dyn ReadAt>, usize)> {
    let text = plain(bytes, options)?;
    let mut columns = 0;
    lines(&text, |row| {
        let ids = row.iter().map(|entry| entry.0 as usize + 1);
        columns = columns.max(ids.max().unwrap_or(0));
        Ok(())
    })?;
    Ok((text, columns))
}

/// The element type of all such text.
pub(crate) const ELEMENT: ElementType = ElementType::F64;

/// The rows of text, of as many columns as the options say.
pub(crate) fn rows<T: Number>(text: &Arc<dyn ReadAt>, options: &Options) -> Result<SparseRows<T>> {
    let named = |error| fault(&text.name(), error);
    readable::<T>(Kind::F64, options.rounded).map_err(|what| fault(&text.name(), what))?;
    let mut rows = SparseRows::new(options.width).within(options.memory);
    guarded(|| lines(text, |row| rows.push(row))).map_err(named)?;
    Ok(rows)
}

/// Shows the entries of each row. Columns keep their numbers: where a file counts from 1, column 0 is empty.
fn lines(
    text: &Arc<dyn ReadAt>,
    mut see: impl FnMut(&mut [(u32, f64)]) -> io::Result<()>,
) -> io::Result<()> {
    let mut from = BufReader::new(ReadFrom::start(text));
    let mut line = String::new();
    let mut row = Vec::new();
    for number in 1.. {
        line.clear();
        let length = from.by_ref().take(RECORD).read_line(&mut line)?;
        if length == 0 {
            break;
        }
        if length as u64 == RECORD {
            return Err(invalid(format!("line {number}: it is longer than 16 MiB")));
        }
        let entries = line.split('#').next().unwrap_or_default();
        let mut fields = entries.split_ascii_whitespace();
        // The label, which may be a list of numbers.
        let Some(label) = fields.next() else {
            continue;
        };
        let at = |what: &str, field: &str| {
            let field: String = field.chars().take(40).collect();
            invalid(format!("line {number}: {field:?} {what}"))
        };
        if !label.split(',').all(|part| part.parse::<f64>().is_ok()) {
            return Err(at("is no label: a row begins with a number", label));
        }
        row.clear();
        for field in fields.filter(|field| !field.starts_with("qid:")) {
            let what = "is no column and its value, such as 7:0.5";
            let entry = field.split_once(':').ok_or_else(|| at(what, field))?;
            let (Ok(id), Ok(value)) = (entry.0.parse::<u32>(), entry.1.parse::<f64>()) else {
                return Err(at(what, field));
            };
            if id == u32::MAX || !value.is_finite() {
                return Err(at("is beyond all columns, or not finite", field));
            }
            exact(entry.1).map_err(|error| invalid(format!("line {number}: {error}")))?;
            row.push((id, value));
        }
        see(&mut row).map_err(|error| invalid(format!("line {number} {error}")))?;
    }
    Ok(())
}
