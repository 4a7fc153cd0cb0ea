//! Whether rows and their fit have room in a limit of memory.

use crate::Bytes;
use crate::pool::bytes_of_cursors;
use crate::sketch::sketch_bytes;
use coremix::data::Summary;
use coremix::families::Column;
use coremix::{Algorithm, Element, Error, Float, Result};

/// Bytes that are there in any case: the program, blocks of rows, and rows that are read ahead.
const PROGRAM: u64 = 32 << 20;

/// The room for rows and their fit, in a limit of memory: what the command and Python do about rows of files.
///
/// Rows are loaded if they fit together with what the fit takes. Others stay in their file, and the fit is the one that takes less; where
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
    /// Bytes that are taken in any case.
    taken: u64,
    /// Bytes of a decoder; none where the rows are in memory in any case.
    decoder: Option<u64>,
    rows: usize,
    columns: usize,
    /// Values of sparse rows.
    stored: Option<usize>,
}

impl Room {
    /// The room that a limit for the whole program leaves to rows of this shape, with a weight for each row if there are weights.
    #[must_use]
    pub fn new(limit: Bytes, (rows, columns): (usize, usize), weighted: bool) -> Self {
        let weights = if weighted { 8 * rows as u64 } else { 0 };
        let room = Self::beside(limit, (rows, columns)).decoder(0);
        room.taking(PROGRAM + weights)
    }

    /// The room that is left where the rows are in memory in any case: neither they nor the program count.
    #[must_use]
    pub fn beside(limit: Bytes, (rows, columns): (usize, usize)) -> Self {
        Self {
            limit,
            taken: 0,
            decoder: None,
            rows,
            columns,
            stored: None,
        }
    }

    /// The room that is left by sparse rows with this number of stored values, whose lists are in memory in any case.
    #[must_use]
    pub fn sparse(mut self, stored: usize) -> Self {
        self.stored = Some(stored);
        self
    }

    fn peak<F: Float>(self, algorithm: &Algorithm) -> Result<usize> {
        algorithm.peak_memory::<F>(self.rows, self.columns, self.stored)
    }

    /// The room that is left when something takes this number of bytes more.
    #[must_use]
    pub fn taking(mut self, bytes: u64) -> Self {
        self.taken = self.taken.saturating_add(bytes);
        self
    }

    /// The room for rows of files of which a decoder takes this number of bytes ([`Opened::decoder`](crate::Opened::decoder)).
    #[must_use]
    pub fn decoder(mut self, bytes: u64) -> Self {
        self.decoder = Some(bytes);
        self
    }

    /// Bytes that are taken, and those that are left, where rows are read once, or again and again by several threads.
    fn split(self, once: bool) -> (u64, usize) {
        let decoders = self.decoder.map_or(0, |each| bytes_of_cursors(each, once));
        let taken = self.taken.saturating_add(decoders);
        let left = self.limit.0.saturating_sub(taken);
        (taken, usize::try_from(left).unwrap_or(usize::MAX))
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
        let loaded = self.loaded::<T>(&algorithm, copies)?;
        if loaded <= self.limit.0 {
            Ok((algorithm, true))
        } else {
            let algorithm = self.within_or::<T::Float>(algorithm, loaded)?;
            Ok((algorithm, false))
        }
    }

    /// Whether the room holds this number of copies of the rows and all that the fit takes besides.
    ///
    /// # Errors
    /// As [`Algorithm::peak_memory`].
    pub fn holds<T: Element>(self, algorithm: &Algorithm, copies: usize) -> Result<bool> {
        Ok(self.loaded::<T>(algorithm, copies)? <= self.limit.0)
    }

    /// Bytes that a fit takes in all whose rows are loaded.
    fn loaded<T: Element>(self, algorithm: &Algorithm, copies: usize) -> Result<u64> {
        let rows = self.of_rows(copies * size_of::<T>());
        let fit = self.peak::<T::Float>(algorithm)?;
        let taken = self.split(true).0;
        Ok(taken.saturating_add(rows.saturating_add(fit) as u64))
    }

    /// The algorithm, for rows that stay where they are.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the bytes that are needed, if it takes more, or reads rows in an order that no file has.
    pub fn within<F: Float>(self, algorithm: Algorithm) -> Result<Algorithm> {
        self.within_or::<F>(algorithm, u64::MAX)
    }

    /// As [`within`](Self::within), where another way needs `other` bytes in all.
    fn within_or<F: Float>(self, algorithm: Algorithm, other: u64) -> Result<Algorithm> {
        let (name, (taken, left)) = (algorithm.to_string(), self.split(false));
        let (algorithm, hint) = match &*name {
            "fast" => (
                algorithm.memory(left),
                "give more, or ask for fewer clusters",
            ),
            "vc-gmm" | "lwcs-k-means" => (algorithm, "give more, or ask for a smaller coreset"),
            _ => (algorithm, "give more; fast and vc-gmm need less"),
        };
        let mut needed = self.peak::<F>(&algorithm)?;
        if self.decoder.is_some() && matches!(&*name, "var-gmm-s" | "d-gmm") {
            // They read rows by component.
            needed = needed.saturating_add(self.of_rows(size_of::<F>()));
        } else if needed <= left {
            return Ok(algorithm);
        }
        let needed = taken.saturating_add(needed as u64).min(other);
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
        let (taken, left) = self.split(true);
        let needed = self.of_rows(each).saturating_add(bytes);
        if needed <= left {
            Ok(())
        } else {
            Err(self.too_small(what, taken.saturating_add(needed as u64), rule))
        }
    }

    /// An error if the room does not hold a sketch with `q` coordinates of each row, and the fit to it.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`Algorithm::peak_memory`].
    pub fn check_sketch<F: Float>(self, algorithm: &Algorithm, q: usize) -> Result<()> {
        let bytes = self.peak::<F>(algorithm)?;
        let bytes = bytes.saturating_add(sketch_bytes::<F>(self.rows, q));
        let rule = "give more, or keep fewer coordinates";
        self.check("the sketch", (bytes, 0), rule)
    }

    /// An error if the room does not hold a table of these kinds of columns, and the rows if they are loaded. A column of categories
    /// counts with the most that rows of this summary can have: one for each row, or for each code in its range.
    ///
    /// # Errors
    /// As [`within`](Self::within).
    pub fn check_categories<T: Element>(
        self,
        algorithm: &Algorithm,
        (kinds, summary): (&[Column], &Summary),
        loaded: bool,
    ) -> Result<()> {
        let count = |(kind, (low, high)): (&Column, &(f64, f64))| match kind {
            Column::Category(_) => {
                Column::Category(self.rows.min((high - low + 1.0).max(1.0) as usize))
            }
            kind => *kind,
        };
        let counted: Vec<Column> = kinds.iter().zip(&summary.range).map(count).collect();
        let rows = if loaded { size_of::<T>() } else { 0 };
        let room = self.taking(self.of_rows(rows) as u64);
        let counted = algorithm.clone().columns(counted);
        room.within::<T::Float>(counted).map(drop)
    }

    fn of_rows(self, each: usize) -> usize {
        let dense = self.rows.saturating_mul(self.columns);
        // A value, and its column.
        let numbers = self.stored.map_or(dense, |stored| stored.saturating_mul(2));
        numbers.saturating_mul(each)
    }

    fn too_small(self, what: &str, needed: u64, rule: &'static str) -> Error {
        let mib = needed.div_ceil(1 << 20);
        Error::Parameter {
            name: "memory",
            value: format!("{}, where {what} needs {mib} MiB", self.limit),
            rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gmm() -> Algorithm {
        "gmm".parse::<Algorithm>().unwrap().clusters(5)
    }

    fn needed(room: Room) -> usize {
        named(&room.within::<f32>(gmm()).unwrap_err())
    }

    /// The MiB that an error names.
    fn named(refused: &Error) -> usize {
        let text = refused.to_string();
        let (_, after) = text.split_once("needs ").unwrap();
        after.split_once(" MiB").unwrap().0.parse().unwrap()
    }

    /// Small ones are part of what is there in any case; rows that are in memory have none.
    #[test]
    fn decoders_count() {
        let limit = Bytes(1 << 20);
        let shape = (1_000_000, 16);
        let room = Room::new(limit, shape, false);
        let without = needed(room);
        assert_eq!(needed(room.decoder(1 << 20)), without);
        for mib in [40, 100, 300] {
            let each = mib << 20;
            let more = (bytes_of_cursors(each, false) - bytes_of_cursors(0, false)) >> 20;
            assert!(needed(room.decoder(each)).abs_diff(without + more as usize) <= 1);
        }
        assert!(needed(Room::beside(limit, shape)) < without);
        assert!(needed(room.decoder(u64::MAX)) > 1 << 40);
    }

    /// One decoder is enough to load rows.
    #[test]
    fn rows_are_loaded_in_less_than_passes_take() {
        let (_, loaded) = Room::new(Bytes(400 << 20), (1_000_000, 16), false)
            .decoder(60 << 20)
            .plan::<f32>(gmm(), 1)
            .unwrap();
        assert!(loaded);
        let small = Room::new(Bytes(150 << 20), (1_000_000, 16), false).decoder(60 << 20);
        assert!(small.plan::<f32>(gmm(), 1).is_err());
    }
    /// Few rows with many columns are loaded in less than passes take.
    #[test]
    fn what_an_error_names_is_enough() {
        for mib in [1, 40, 480] {
            let room = |mib_of_limit: u64| {
                let room = Room::new(Bytes(mib_of_limit << 20), (64, 20_000), false);
                room.decoder(mib << 20).plan::<f64>(gmm(), 1)
            };
            let least = named(&room(1).unwrap_err()) as u64;
            assert!(room(least).is_ok() && room(least - 1).is_err(), "{least}");
        }
    }
}
