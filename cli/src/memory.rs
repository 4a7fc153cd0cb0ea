//! How much memory a fit takes, from the table in `docs/performance.md`.

use crate::bytes::Bytes;
use crate::failure::{Failure, Result};

/// Rows, columns and clusters of a fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) clusters: usize,
}

/// Bytes that are there in any case: the program, blocks of rows, and rows that are read ahead.
const PROGRAM: f64 = (64 << 20) as f64;

/// Bytes per row where all rows are streamed: the label, and what belongs to a block of rows.
const STREAMED: f64 = 7.0;

/// Sums of all shards of a pass, at most: means, and as much again.
fn sums(shape: Shape) -> f64 {
    40.0 * 8.0 * (shape.clusters * (shape.columns + 2)) as f64
}

/// Bytes per row, of rows that are not in memory.
fn per_row(algorithm: &str) -> f64 {
    match algorithm {
        "lwcs-k-means" | "vc-gmm" => 5.0,
        "var-gmm-s" => 50.0,
        "d-gmm" => 60.0,
        _ => 22.0,
    }
}

/// What is left of the memory for the rows of coresets: for `fast`.
pub(crate) fn for_rows(memory: Bytes, shape: Shape) -> Result<usize> {
    let rest = PROGRAM + STREAMED * shape.rows as f64 + sums(shape);
    let left = memory.0 as f64 - rest;
    // 32 rows per cluster, of a few numbers each.
    match left >= (8 << 20) as f64 {
        true => Ok(left as usize),
        false => Err(too_little("fast", rest + (8 << 20) as f64)),
    }
}

/// An error if an algorithm takes more.
pub(crate) fn check(memory: Bytes, algorithm: &str, shape: Shape) -> Result<()> {
    let needed = PROGRAM + per_row(algorithm) * shape.rows as f64 + sums(shape);
    match needed <= memory.0 as f64 {
        true => Ok(()),
        false => Err(too_little(algorithm, needed)),
    }
}

fn too_little(algorithm: &str, needed: f64) -> Failure {
    let mib = (needed / f64::from(1 << 20)).ceil();
    let hint = match algorithm {
        "fast" => "fewer clusters, or a sample of the rows, need less",
        _ => "fast and vc-gmm need less",
    };
    Failure::arguments(format!(
        "--memory: {algorithm} needs about {mib} MiB here; {hint}"
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
        };
        let gigabyte = Bytes(1 << 30);
        assert!(for_rows(gigabyte, shape).is_ok_and(|bytes| bytes > 700 << 20));
        assert!(for_rows(Bytes(150 << 20), shape).is_err());
        assert!(check(gigabyte, "k-means", shape).is_ok());
        assert!(check(Bytes(400 << 20), "vc-gmm", shape).is_ok());
        let error = check(gigabyte, "var-gmm-s", shape).unwrap_err();
        assert_eq!(error.code(), 2);
        assert!(error.to_string().contains("vc-gmm need less"));
    }
}
