//! Amounts of memory, as Python gives them.

use coremix_files::Bytes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An amount of memory: a number of bytes, or text such as `"1GiB"`.
pub(crate) fn bytes_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(text) = value.extract::<&str>() {
        let wrong = |rule| PyValueError::new_err(format!("{name} = {text:?}: {rule}"));
        return text.parse().map_err(wrong);
    }
    match value.extract::<i128>() {
        Ok(bytes) => match u64::try_from(bytes).ok().filter(|bytes| *bytes > 0) {
            Some(bytes) => Ok(Bytes(bytes)),
            None => Err(PyValueError::new_err(format!(
                "{name} = {bytes}: must be at least 1"
            ))),
        },
        Err(_) => {
            let rule = "must be a number of bytes, or text such as '1GiB'";
            Err(PyTypeError::new_err(format!("{name} = {value:?}: {rule}")))
        }
    }
}
