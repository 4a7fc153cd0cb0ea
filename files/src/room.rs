//! Whether rows and their fit have room in a limit of memory.

use crate::Bytes;
use crate::pool::MOST;
use coremix::{Algorithm, Element, Error, Float, Result};

/// Bytes that are there in any case: the program, blocks of rows, rows that are read ahead, and decoders that take no more than
/// they always may.
const PROGRAM: u64 = 32 << 20;

/// The room for rows and their fit, in a limit of memory: what the command and Python do about rows of files.
///
/// Rows that fit beside what the fit takes are loaded. Others stay in their file, and the fit is the one that takes less; where
/// none does, it is refused before the work.
///
/// ```
/// use coremix::Algorithm;
/// use coremix_files::{Bytes, Room};
///
/// let algorithm = "fast".parse::<Algorithm>()?.clusters(10);
/// let room = Room::new(Bytes(1 << 30), (1_000_000, 16), false);
/// assert!(room.holds::<f32>(&algorithm, 1)?);
/// let room = Room::new(Bytes(65 << 20), (1_000_000, 16), false);
/// assert!(!room.holds::<f32>(&algorithm, 1)? && room.within::<f32>(algorithm).is_err());
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Room {
    limit: Bytes,
    /// Bytes that are taken in any case, and those that are left.
    taken: u64,
    left: usize,
    rows: usize,
    columns: usize,
    /// Whether the rows are in memory in any case.
    beside: bool,
}

impl Room {
    /// The room that a limit for the whole program leaves to rows of this shape, with a weight for each row if there are weights.
    #[must_use]
    pub fn new(limit: Bytes, (rows, columns): (usize, usize), weighted: bool) -> Self {
        let room = Self {
            beside: false,
            ..Self::beside(limit, (rows, columns))
        };
        let weights = if weighted { 8 * rows as u64 } else { 0 };
        room.taking(PROGRAM + MOST + weights)
    }

    /// The room beside rows that are in memory in any case: neither they nor the program count.
    #[must_use]
    pub fn beside(limit: Bytes, (rows, columns): (usize, usize)) -> Self {
        Self {
            limit,
            taken: 0,
            left: usize::try_from(limit.0).unwrap_or(usize::MAX),
            rows,
            columns,
            beside: true,
        }
    }

    /// The room that is left when something takes this number of bytes more.
    #[must_use]
    pub fn taking(mut self, bytes: u64) -> Self {
        self.taken = self.taken.saturating_add(bytes);
        let left = self.limit.0.saturating_sub(self.taken);
        self.left = usize::try_from(left).unwrap_or(usize::MAX);
        self
    }

    /// The room that is left when decoders of files take this number of bytes ([`Opened::decoders`](crate::Opened::decoders)).
    #[must_use]
    pub fn decoders(self, bytes: u64) -> Self {
        self.taking(bytes.saturating_sub(MOST))
    }

    /// The algorithm, and whether rows are loaded for it: they are where the room holds this number of copies of them, and else
    /// it is the algorithm that takes less.
    ///
    /// # Errors
    /// As [`within`](Self::within).
    pub fn plan<T: Element>(
        self,
        algorithm: Algorithm,
        copies: usize,
    ) -> Result<(Algorithm, bool)> {
        match self.holds::<T>(&algorithm, copies)? {
            true => Ok((algorithm, true)),
            false => Ok((self.within::<T::Float>(algorithm)?, false)),
        }
    }

    /// Whether the room holds this number of copies of the rows and all that the fit takes besides.
    ///
    /// # Errors
    /// As [`Algorithm::peak_memory`].
    pub fn holds<T: Element>(self, algorithm: &Algorithm, copies: usize) -> Result<bool> {
        let beside = algorithm.peak_memory::<T::Float>(self.rows, self.columns)?;
        Ok(self.of_rows(copies * size_of::<T>()).saturating_add(beside) <= self.left)
    }

    /// The algorithm, for rows that stay where they are.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the bytes that are needed, if it takes more, or reads rows in an order that no file has.
    pub fn within<F: Float>(self, algorithm: Algorithm) -> Result<Algorithm> {
        let name = algorithm.to_string();
        let (algorithm, hint) = match &*name {
            "fast" => (
                algorithm.memory(self.left),
                "give more, or ask for fewer clusters",
            ),
            "vc-gmm" | "lwcs-k-means" => (algorithm, "give more, or ask for a smaller coreset"),
            _ => (algorithm, "give more; fast and vc-gmm need less"),
        };
        let mut needed = algorithm.peak_memory::<F>(self.rows, self.columns)?;
        if !self.beside && matches!(&*name, "var-gmm-s" | "d-gmm") {
            // They read rows by component.
            needed = needed.saturating_add(self.of_rows(size_of::<F>()));
        } else if needed <= self.left {
            return Ok(algorithm);
        }
        Err(self.too_small(&name, needed, hint))
    }

    /// An error if the room does not hold `bytes` and `each` bytes for every number of the rows.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the bytes that are needed.
    pub fn check(
        self,
        what: &str,
        (bytes, each): (usize, usize),
        rule: &'static str,
    ) -> Result<()> {
        let needed = self.of_rows(each).saturating_add(bytes);
        match needed <= self.left {
            true => Ok(()),
            false => Err(self.too_small(what, needed, rule)),
        }
    }

    fn of_rows(self, each: usize) -> usize {
        let numbers = self.rows.saturating_mul(self.columns);
        numbers.saturating_mul(each)
    }

    fn too_small(self, what: &str, needed: usize, rule: &'static str) -> Error {
        let mib = self.taken.saturating_add(needed as u64).div_ceil(1 << 20);
        Error::Parameter {
            name: "memory",
            value: format!("{}, where {what} needs {mib} MiB", self.limit),
            rule,
        }
    }
}
