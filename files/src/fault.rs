//! Errors that name the file, the column and the row.

use coremix::Error;
use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An error of a file that is opened or written.
pub(crate) fn fault(path: &str, what: impl Display) -> Error {
    Error::File {
        path: path.into(),
        what: what.to_string(),
    }
}

/// An error of rows that are read: with the name of the file, the kind of the cause.
pub(crate) fn unread(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

/// An error of rows that were read: it begins with the name of the file.
pub(crate) fn of_rows(error: &io::Error) -> Error {
    let text = error.to_string();
    let (path, what) = text.split_once(": ").unwrap_or(("rows", &text));
    fault(path, what)
}

/// An error of the content of a file.
pub(crate) fn invalid(what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// An error of a file that no writer has written so.
pub(crate) fn damaged(what: impl Display) -> io::Error {
    invalid(format!("damaged: {what}"))
}

/// An error of the content at a column and a row of a file.
pub(crate) fn at(column: &str, row: usize, what: impl Display) -> io::Error {
    invalid(format!("column {column:?}, row {row}: {what}"))
}

/// Returns what `work` returns, and an error where a decoder panics.
pub(crate) fn guarded<R>(work: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| Err(invalid(said(&*cause))))
}

fn said(cause: &(dyn Any + Send)) -> String {
    let text = cause
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| cause.downcast_ref::<String>().cloned());
    format!(
        "damaged: the decoder stopped with {:?}",
        text.unwrap_or_default()
    )
}

/// Whether rows from `first` on are rows of a table, and `numbers` a multiple of its columns: their number.
pub(crate) fn rows_asked_for(
    first: usize,
    numbers: usize,
    [len, dim]: [usize; 2],
) -> io::Result<usize> {
    let rows = numbers.checked_div(dim).unwrap_or(0);
    let end = first.checked_add(rows);
    if rows * dim != numbers || end.is_none_or(|end| end > len) {
        let what = format!("{numbers} numbers asked for, from row {first} of {len} rows of {dim}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(rows)
}
