//! Limits of memory.

use crate::input::{Number, Rows};
use crate::scan::Ahead;
use coremix::{Algorithm, Result};
use coremix_files::{Bytes, Room};
use half::f16;

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
    let shape = rows.shape();
    let numbers = shape.0.saturating_mul(shape.1);
    let Some(reading) = rows.reading() else {
        let Some(limit) = limit else {
            return Ok((algorithm, false));
        };
        // Rows that are held out are copied.
        let each = made.map_or((copies - 1) * size_of::<F>(), |made| made.each);
        let bytes = numbers.saturating_mul(each);
        let bytes = bytes.saturating_add(made.map_or(0, |made| made.bytes));
        let room = Room::beside(limit, shape).taking(bytes as u64);
        let room = rows.stored().map_or(room, |stored| room.sparse(stored));
        return Ok((room.within::<F>(algorithm)?, false));
    };
    let peak = || algorithm.peak_memory::<F>(shape.0, shape.1, None);
    let room = Room::new(limit.unwrap_or(reading.memory), shape, weighted);
    // The weights are copied for the fit.
    let copy = if weighted { 8 * shape.0 as u64 } else { 0 };
    let room = room.decoder(reading.decoder).taking(copy);
    if let Some(made) = made {
        let bytes = peak()?.saturating_add(made.bytes);
        let rule = "give more, or take fewer clusters";
        room.check(made.what, (bytes, made.each), rule)?;
        return Ok((algorithm, false));
    }
    if streamed {
        return match &reading.ahead {
            Ahead::U8(_) => room.plan::<u8>(algorithm, copies),
            Ahead::I8(_) => room.plan::<i8>(algorithm, copies),
            Ahead::F16(_) => room.plan::<f16>(algorithm, copies),
            Ahead::F32(_) => room.plan::<f32>(algorithm, copies),
            Ahead::F64(_) => room.plan::<f64>(algorithm, copies),
        };
    }
    let rule = "give more, or a coreset_size: without one, the rows are in memory twice";
    let each = match &reading.ahead {
        Ahead::U8(_) | Ahead::I8(_) => size_of::<u8>(),
        Ahead::F16(_) => size_of::<f16>(),
        _ => size_of::<F>(),
    };
    room.check(&algorithm.to_string(), (peak()?, copies * each), rule)?;
    Ok((algorithm, true))
}
