//! Whether rows and their fit have room in `--memory`.

use crate::bytes::Bytes;
use crate::failure::{Failure, Result};
use coremix::prelude::*;
use coremix::{Element, Float};

/// Bytes that are there in any case: the program, blocks of rows, and rows that are read ahead.
const PROGRAM: u64 = 64 << 20;

/// The room for rows and their fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes that are taken in any case, and those that are left.
    taken: u64,
    left: usize,
    rows: usize,
    columns: usize,
}

impl Room {
    pub(crate) fn new(memory: Bytes, (rows, columns): (usize, usize), weighted: bool) -> Self {
        let weights = if weighted { 8 * rows as u64 } else { 0 };
        let taken = PROGRAM + weights;
        let left = memory.0.saturating_sub(taken);
        Self {
            taken,
            left: usize::try_from(left).unwrap_or(usize::MAX),
            rows,
            columns,
        }
    }

    /// Whether memory holds `copies` copies of the rows, and all that the fit takes besides.
    pub(crate) fn holds<T: Element>(self, algorithm: &Algorithm, copies: usize) -> Result<bool> {
        let numbers = self.rows.saturating_mul(self.columns);
        let rows = numbers.saturating_mul(copies * size_of::<T>());
        let needed = algorithm.peak_memory::<T::Float>(self.rows, self.columns)?;
        Ok(rows.saturating_add(needed) <= self.left)
    }

    /// The algorithm, for rows that stay where they are: an error if it takes more, or reads them in an order that no file has.
    pub(crate) fn within<F: Float>(self, algorithm: Algorithm) -> Result<Algorithm> {
        let name = algorithm.to_string();
        let (algorithm, hint) = match &*name {
            "fast" => (algorithm.memory(self.left), "fewer clusters need less"),
            "vc-gmm" | "lwcs-k-means" => (algorithm, "a smaller --coreset needs less"),
            _ => (algorithm, "fast and vc-gmm need less"),
        };
        let mut needed = algorithm.peak_memory::<F>(self.rows, self.columns)?;
        if matches!(&*name, "var-gmm-s" | "d-gmm") {
            // They read rows by component.
            needed = needed.saturating_add(self.rows * self.columns * size_of::<F>());
        } else if needed <= self.left {
            return Ok(algorithm);
        }
        let mib = (self.taken + needed as u64).div_ceil(1 << 20);
        Err(Failure::arguments(format!(
            "--memory is too small: {name} needs about {mib} MiB here; {hint}"
        )))
    }
}
