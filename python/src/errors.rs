//! Errors of the core as exceptions.

use coremix::{Error, FileFault};
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};
use std::collections::HashMap;
use std::io::{self, ErrorKind};

/// The name of a parameter in Python, where it is another than the core's.
pub(crate) type Names = HashMap<String, String>;

/// The cure for values that are missing.
pub(crate) const ALLOW: &str =
    "; an estimator with allow_missing=True takes NaN and nulls as missing values";

/// The exception: the core's message as it is.
pub(crate) fn raise(error: Error) -> PyErr {
    raise_in(error, None)
}

/// The exception with the names of columns, if they have any.
pub(crate) fn raise_in(error: Error, columns: Option<&[String]>) -> PyErr {
    exception(error, &Names::new(), columns, "")
}

/// The exception with the names of columns for sums of partitions, which need all values.
pub(crate) fn raise_summed(error: Error, columns: Option<&[String]>) -> PyErr {
    const SAMPLE: &str = "; coremix.sample(..., allow_missing=True) keeps NaN and nulls as missing values in a coreset";
    exception(error, &Names::new(), columns, SAMPLE)
}

/// The exception for rows that an estimator is asked about.
pub(crate) fn raise_asked(error: Error, columns: Option<&[String]>) -> PyErr {
    named(error, &Names::new(), columns)
}

/// The exception with the names of columns and of parameters in Python.
pub(crate) fn named(error: Error, names: &Names, columns: Option<&[String]>) -> PyErr {
    exception(error, names, columns, ALLOW)
}

/// The exception, and what to do about NaN.
fn exception(error: Error, names: &Names, columns: Option<&[String]>, allow: &str) -> PyErr {
    match &error {
        Error::Parameter { name, value, rule } => {
            let name = names.get(*name).map_or(*name, |own| own);
            let nan = if rule.contains("missing values") {
                "; NaN is one"
            } else {
                ""
            };
            PyValueError::new_err(format!("{name} = {value}: {rule}{nan}"))
        }
        Error::Setting {
            algorithm,
            setting,
            has,
            ..
        } => {
            let own = |name: &&str| names.get(*name).map_or(*name, |own| own).to_owned();
            let has: Vec<_> = has.iter().map(own).collect();
            let setting = own(setting);
            let has = has.join(", ");
            PyValueError::new_err(format!(
                "{algorithm} has no setting {setting}; it has {has}"
            ))
        }
        Error::NotFinite { .. } | Error::TooLarge { .. } | Error::NotOfKind { .. } => {
            let named = error.naming(columns.unwrap_or_default());
            let message = named.unwrap_or_else(|| error.to_string());
            let cure = match error {
                Error::NotFinite { .. } => allow,
                _ => "",
            };
            PyValueError::new_err(format!("{message}; rows count from 0{cure}"))
        }
        // Python has an exception for each kind, such as FileNotFoundError.
        Error::Model {
            fault: FileFault::System { kind, .. },
            ..
        } => io::Error::new(*kind, error.to_string()).into(),
        Error::File { what, .. } => {
            // A file that cannot be opened says so with the number of the system; all else is about what it holds.
            let code = what.split_once("(os error ").and_then(|(_, code)| {
                let code: i32 = code.split_once(')')?.0.parse().ok()?;
                Some(io::Error::from_raw_os_error(code).kind())
            });
            unread(code.unwrap_or(ErrorKind::InvalidData), &error.to_string())
        }
        Error::Checkpoint { .. } => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for rows of files: about what a file holds, or about the file.
pub(crate) fn unread(kind: ErrorKind, text: &str) -> PyErr {
    let category = ": leave it out, or name it in categories of TableMixture, and of a scan";
    let text = &text.replace(coremix_files::ALLOW, ", or give missing=True");
    let text = &text.replace(coremix_files::AS_CATEGORY, category);
    match kind {
        ErrorKind::InvalidData | ErrorKind::InvalidInput => PyValueError::new_err(text.clone()),
        kind => io::Error::new(kind, text.clone()).into(),
    }
}

/// The number of the row that an error is about.
pub(crate) fn row_of(error: &mut Error) -> Option<&mut usize> {
    match error {
        Error::NotFinite { row, .. }
        | Error::TooLarge { row, .. }
        | Error::NotOfKind { row, .. }
        | Error::TooFar { row, .. }
        | Error::Weight { row, .. } => Some(row),
        _ => None,
    }
}
