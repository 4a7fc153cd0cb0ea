//! Limits of memory.

use crate::input::{Number, Rows};
use crate::scan::Ahead;
use coremix::{Algorithm, Result};
use coremix_files::{Bytes, Room};
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

/// Something that is made of the rows before the fit: its bytes, and those for each number of the rows. Rows of files are not
/// loaded for it.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    pub(crate) what: &'static str,
    pub(crate) bytes: usize,
    pub(crate) each: usize,
}

/// The algorithm for a fit to these rows in a limit of memory, and whether rows of files are loaded: an error that says what is
/// needed, where there is no room. Rows in memory do not count, rows of files do. `copies` of them are in memory if they are
/// loaded; without `streamed` they must be.
pub(crate) fn within<F: Number>(
    rows: &Rows<'_>,
    weighted: bool,
    algorithm: Algorithm,
    limit: Option<Bytes>,
    (copies, streamed): (usize, bool),
    made: Option<Made>,
) -> Result<(Algorithm, bool)> {
    let (name, shape) = (algorithm.to_string(), rows.shape());
    let rule = "give more, or take fewer clusters";
    let peak = algorithm.peak_memory::<F>(shape.0, shape.1)?;
    let Rows::Scan(reading, _) = rows else {
        let Some(limit) = limit else {
            return Ok((algorithm, false));
        };
        let algorithm = match &*name {
            "fast" => algorithm.memory(usize::try_from(limit.0).unwrap_or(usize::MAX)),
            _ => algorithm,
        };
        let peak = algorithm.peak_memory::<F>(shape.0, shape.1)?;
        // Rows that are held out are copied.
        let each = made.map_or((copies - 1) * size_of::<F>(), |made| made.each);
        let bytes = peak.saturating_add(made.map_or(0, |made| made.bytes));
        Room::beside(limit, shape).check(&name, (bytes, each), rule)?;
        return Ok((algorithm, false));
    };
    // The weights are copied for the fit.
    let limit = limit.unwrap_or(reading.memory);
    let copy = if weighted { 8 * shape.0 as u64 } else { 0 };
    let room = Room::new(Bytes(limit.0.saturating_sub(copy)), shape, weighted);
    if let Some(made) = made {
        let bytes = peak.saturating_add(made.bytes);
        room.check(made.what, (bytes, made.each), rule)?;
        return Ok((algorithm, false));
    }
    let holds = match &reading.ahead {
        Ahead::U8(_) => room.holds::<u8>(&algorithm, copies),
        Ahead::F32(_) => room.holds::<f32>(&algorithm, copies),
        Ahead::F64(_) => room.holds::<f64>(&algorithm, copies),
    }?;
    match (holds, streamed) {
        (true, _) => Ok((algorithm, true)),
        (false, true) => Ok((room.within::<F>(algorithm)?, false)),
        (false, false) => {
            let rule = "give more, or a coreset_size: without one, the rows are in memory twice";
            room.check(&name, (peak, copies * size_of::<F>()), rule)?;
            Ok((algorithm, true))
        }
    }
}
