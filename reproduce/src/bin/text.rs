//! Spherical k-means of sparse rows in `.npy` files: seconds of the fit, and its further memory in MiB.
//!
//! `cargo run --release -p reproduce --bin text -- FOLDER COLUMNS K`: `starts.npy` (u64), `columns.npy` (u32) and `values.npy` (f32)
//! are read from the folder, and `labels.npy` is written there. `reproduce/text/run` makes them.

use coremix::data::Sparse;
use coremix::prelude::*;
use ndarray::Array1;
use ndarray_npy::{read_npy, write_npy};
use reproduce::memory;
use std::path::Path;
use std::time::Instant;

type Answer<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The most memory that the process had so far, in MiB.
fn peak() -> f64 {
    memory("VmHWM:").unwrap_or_default() / 1024.0
}

fn main() -> Answer<()> {
    let usage = "the folder, the number of columns, and that of clusters";
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or(usage)?;
    let folder = Path::new(&folder);
    let columns: usize = arguments.next().ok_or(usage)?.parse()?;
    let k: usize = arguments.next().ok_or(usage)?.parse()?;
    let starts: Array1<u64> = read_npy(folder.join("starts.npy"))?;
    let starts: Vec<usize> = starts.iter().map(|start| *start as usize).collect();
    let ids: Array1<u32> = read_npy(folder.join("columns.npy"))?;
    let values: Array1<f32> = read_npy(folder.join("values.npy"))?;
    let (before, started) = (peak(), Instant::now());
    let data = Sparse::new(columns, starts, ids.to_vec(), values.to_vec())?;
    let fit = algorithms::spherical_k_means(k).fit(&data)?;
    let labels = fit.model.predict(&data)?;
    println!("{} {}", started.elapsed().as_secs_f64(), peak() - before);
    write_npy(folder.join("labels.npy"), &labels)?;
    Ok(())
}
