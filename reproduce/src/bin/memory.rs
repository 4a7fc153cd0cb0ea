//! The memory of a fit, per row and apart from rows, for every named algorithm, on rows that are not in memory.
//!
//! `cargo run --release -p reproduce --bin memory -- [ROWS COLUMNS CLUSTERS]`; 2,000,000 x 16 and 100 clusters unless told.
//! Rows are generated when they are read. Each fit is a process of its own, with that many rows and with twice as many. The
//! peak of its memory is what the system says (VmHWM, on Linux).

use coremix::Estimator;
use coremix::data::{Blocks, Source};
use coremix::prelude::*;
use std::io;
use std::process::Command;

/// Rows in clusters, computed from their numbers.
struct Generated {
    rows: usize,
    columns: usize,
    clusters: usize,
}

impl Source for Generated {
    type Element = f32;

    fn len(&self) -> usize {
        self.rows
    }

    fn dim(&self) -> usize {
        self.columns
    }

    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        for (n, row) in (first..).zip(out.chunks_exact_mut(self.columns)) {
            let cluster = (mixed(n as u64) % self.clusters as u64) << 32;
            for (j, x) in (0u64..).zip(row) {
                let place = unit(mixed(cluster + j));
                *x = 10.0 * place + unit(mixed(((n as u64) << 16) + j + (1 << 60)));
            }
        }
        Ok(())
    }
}

/// All bits of a number, mixed.
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n ^ (n >> 32)
}

/// Between 0 and 1.
fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 24) as f32
}

/// Bytes that `fast` may keep in the line with a limit.
const LIMIT: usize = 50 << 20;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("fit", rest)) = arguments
        .split_first()
        .map(|(first, rest)| (&**first, rest))
    {
        return fit(&rest[0], &numbers(&rest[1..])?);
    }
    let numbers = match &numbers(&arguments)?[..] {
        [] => [2_000_000, 16, 100],
        [n, d, k] => [*n, *d, *k],
        _ => return Err("ROWS COLUMNS CLUSTERS".into()),
    };
    let [n, d, k] = numbers;
    println!(
        "{n} and {} rows, {d} columns of f32, {k} clusters, 3 iterations",
        2 * n
    );
    println!("{:<18}{:>14}{:>14}", "", "bytes per row", "besides / MiB");
    let limited = format!("fast-{LIMIT}");
    for name in Algorithm::NAMES.into_iter().chain([&*limited]) {
        let (once, twice) = (peak(name, [n, d, k])?, peak(name, [2 * n, d, k])?);
        let per_row = (twice - once) / n as f64;
        let besides = (once - per_row * n as f64) / f64::from(1 << 20);
        println!("{name:<18}{per_row:>14.1}{besides:>14.1}");
    }
    Ok(())
}

fn numbers(texts: &[String]) -> std::result::Result<Vec<usize>, std::num::ParseIntError> {
    texts.iter().map(|text| text.parse()).collect()
}

/// The peak of a fit in a process of its own, in bytes.
fn peak(name: &str, shape: [usize; 3]) -> io::Result<f64> {
    let shape = shape.map(|number| number.to_string());
    let mut program = Command::new(std::env::current_exe()?);
    let output = program.args(["fit", name]).args(shape).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kib = text.trim().parse::<f64>();
    kib.map(|kib| kib * 1024.0).map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("{name}: {error}"))
    })
}

fn fit(name: &str, shape: &[usize]) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [rows, columns, clusters] = shape[..] else {
        return Err("ROWS COLUMNS CLUSTERS".into());
    };
    let data = Blocks::new(Generated {
        rows,
        columns,
        clusters,
    })?;
    let (name, limit) = match name.strip_prefix("fast-") {
        Some(limit) => ("fast", Some(limit.parse()?)),
        None => (name, None),
    };
    let mut algorithm = name.parse::<Algorithm>()?.clusters(clusters);
    if let Some(limit) = limit {
        algorithm = algorithm.memory(limit);
    }
    let algorithm = algorithm.max_iterations(3);
    let boxed: Box<dyn Estimator<f32>> = algorithm.boxed()?;
    let found = boxed.fit(&data)?;
    assert!(found.model.components() == clusters);
    println!("{}", reproduce::memory("VmHWM:")?);
    Ok(())
}
