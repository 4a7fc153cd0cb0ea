//! How much memory a fit takes, from the table in `docs/performance.md`.

use crate::bytes::Bytes;
use crate::failure::{Failure, Result};

/// Rows, columns and clusters of a fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) clusters: usize,
    /// Bytes of a number as it is computed with.
    pub(crate) bytes: usize,
    /// Whether rows have weights: 8 bytes each.
    pub(crate) weighted: bool,
}

impl Shape {
    /// What is there in any case.
    fn fixed(self) -> f64 {
        let weights = if self.weighted { 8.0 } else { 0.0 };
        PROGRAM + sums(self) + weights * self.rows as f64
    }

    /// Bytes of a row that is kept, with what belongs to it.
    fn kept(self) -> f64 {
        BESIDE as f64 + (self.bytes * self.columns) as f64
    }
}

/// Bytes that are there in any case: the program, blocks of rows, and rows that are read ahead.
const PROGRAM: f64 = (64 << 20) as f64;

/// Bytes per row where all rows are streamed: the labels, what each search found for whoever interrupts the fit, and what belongs
/// to a block of rows.
const STREAMED: f64 = 24.0;

/// Sums of all shards of a pass, at most: means, and as much again.
fn sums(shape: Shape) -> f64 {
    40.0 * 8.0 * shape.clusters as f64 * (shape.columns as f64 + 2.0)
}

/// Bytes per row that all algorithms together stay below, of rows in memory, beside the rows.
const BESIDE: usize = 80;

/// Whether all rows fit in the memory, with what any algorithm keeps of them: then they are loaded.
pub(crate) fn holds_all(memory: Bytes, shape: Shape, bytes_of_a_number: usize) -> bool {
    let per_row = (shape.columns * bytes_of_a_number + BESIDE) as f64;
    shape.fixed() + per_row * shape.rows as f64 <= memory.0 as f64
}

/// What is left of the memory for the rows of coresets: for `fast`, where not all rows fit.
pub(crate) fn for_coresets(memory: Bytes, shape: Shape) -> Result<usize> {
    let rest = shape.fixed() + STREAMED * shape.rows as f64;
    let left = memory.0 as f64 - rest;
    // The first coreset has 32 rows per cluster, 8,192 at least, in any case.
    let least = (32.0 * shape.clusters as f64).max(8_192.0) * shape.kept();
    if left < least {
        return Err(too_little("fast", rest + least));
    }
    // It counts 4 bytes for a number.
    let left = left * 4.0 / shape.bytes as f64;
    // Less than all rows: they are streamed.
    Ok((left as usize).min((4 * shape.rows * shape.columns).saturating_sub(1)))
}

/// An error if an algorithm takes more, of rows that are not in memory, or reads them in an order that no file has.
pub(crate) fn check(
    memory: Bytes,
    (algorithm, coreset): (&str, Option<usize>),
    shape: Shape,
) -> Result<()> {
    let draws = coreset.unwrap_or(0).min(shape.rows);
    let per_row = match algorithm {
        // Labels and distances of all rows while it is drawn.
        "lwcs-k-means" | "vc-gmm" => 8.0,
        _ if coreset.is_some() => 8.0,
        // By component: all rows must be in memory.
        "var-gmm-s" | "d-gmm" => {
            let all = (shape.columns * 8 + BESIDE) as f64 * shape.rows as f64;
            return Err(too_little(algorithm, shape.fixed() + all));
        }
        _ => 36.0,
    };
    let needed = shape.fixed() + per_row * shape.rows as f64 + shape.kept() * draws as f64;
    match needed <= memory.0 as f64 {
        true => Ok(()),
        false => Err(too_little(algorithm, needed)),
    }
}

fn too_little(algorithm: &str, needed: f64) -> Failure {
    let mib = (needed / f64::from(1 << 20)).ceil();
    let hint = match algorithm {
        "fast" => "fewer clusters need less",
        "vc-gmm" | "lwcs-k-means" => "a smaller --coreset needs less",
        _ => "fast and vc-gmm need less",
    };
    Failure::arguments(format!(
        "--memory is too small: {algorithm} needs about {mib} MiB here; {hint}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let shape = Shape {
            rows: 20_000_000,
            columns: 16,
            clusters: 1_000,
            bytes: 4,
            weighted: false,
        };
        let gigabyte = Bytes(1 << 30);
        assert!(!holds_all(gigabyte, shape, 4) && holds_all(Bytes(3 << 30), shape, 4));
        assert!(for_coresets(gigabyte, shape).is_ok_and(|bytes| bytes > 400 << 20));
        assert!(for_coresets(Bytes(500 << 20), shape).is_err());
        assert!(check(gigabyte, ("k-means", None), shape).is_ok());
        assert!(check(Bytes(400 << 20), ("vc-gmm", None), shape).is_ok());
        let error = check(gigabyte, ("var-gmm-s", None), shape).unwrap_err();
        assert_eq!(error.code(), 2);
        assert!(check(gigabyte, ("dp-gmm", Some(usize::MAX)), shape).is_err());
        assert!(error.to_string().contains("vc-gmm need less"));
    }
}
