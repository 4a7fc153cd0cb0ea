//! Clusters the rows of an `.npy` file that is never in memory as a whole:
//! `cargo run --release --example from_file -- [PATH.npy [CLUSTERS [NAME]]]`.
//!
//! Without a path, it writes a file of 100,000 generated rows first. `fast` and 25 clusters are the defaults.

use coremix::Element;
use coremix::data::{Blocks, NpyFile};
use coremix::datasets::Birch;
use coremix::prelude::*;
use std::error::Error as StdError;
use std::path::Path;
use std::process::ExitCode;

fn run<T: Element>(file: NpyFile<T>, clusters: usize, name: &str) -> Result<()> {
    let data = Blocks::new(file)?; // reads all rows once
    let (n, d) = (data.len(), data.dim());
    let kind = std::any::type_name::<T>();
    println!("{n} rows of {d} numbers, read as {kind}");
    let algorithm = name.parse::<Algorithm>()?.clusters(clusters);
    let fit = algorithm.boxed::<T::Float>()?.fit(&data)?;
    let error = fit.model.quantization_error(&data)?;
    println!("{algorithm}: quantization error {error:.5e}");
    println!("{}", fit.report);
    Ok(())
}

/// The most memory that the program has had, on Linux.
fn peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Some(line?.trim().to_string())
}

fn start() -> std::result::Result<(), Box<dyn StdError>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let clusters = arguments.next().map_or(Ok(25), |k| k.parse())?;
    let name = arguments.next().unwrap_or_else(|| "fast".into());
    let own = std::env::temp_dir().join(format!("coremix-from-file-{}.npy", std::process::id()));
    if path.is_none() {
        ndarray_npy::write_npy(&own, &Birch::grid(4_000).generate::<f32>(1)?.points)?;
    }
    let from = path.as_ref().map_or(own.as_path(), Path::new);
    // Integers of up to 16 bits are read as f32 as well.
    let done = match NpyFile::<f32>::open(from) {
        Ok(file) => run(file, clusters, &name),
        Err(_) => NpyFile::<f64>::open(from).and_then(|file| run(file, clusters, &name)),
    };
    if path.is_none() {
        std::fs::remove_file(&own)?;
    }
    done?;
    println!("peak memory: {}", peak().unwrap_or("not known".into()));
    Ok(())
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
