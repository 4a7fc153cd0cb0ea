//! How many components a Dirichlet process leaves in use, with merges and without: `cargo run --release -p reproduce --bin merging`.
//!
//! Rows are of round clusters, so their number is known. Seeds 0 to 3; medians of iterations and seconds.

use coremix::prelude::*;
use coremix::{Rng, algorithms};
use ndarray::Array2;
use reproduce::median;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rows, columns, clusters, deviations of the centres, most components.
const SETS: [(usize, usize, usize, f64, usize); 5] = [
    (2_000, 8, 10, 4.0, 20),
    (20_000, 8, 10, 4.0, 20),
    (200_000, 8, 10, 4.0, 20),
    (20_000, 2, 10, 8.0, 20),
    (20_000, 20, 30, 3.0, 60),
];

fn main() -> Result<()> {
    println!(
        "| rows x columns, clusters, at most | tolerance | merges | in use | iterations | s |"
    );
    println!("|---|---|---|---|---|---|");
    for set in SETS {
        for (merges, tolerance) in [(false, 1e-3), (false, 1e-5), (true, 1e-3), (true, 1e-5)] {
            report(set, merges, tolerance)?;
        }
    }
    Ok(())
}

fn report(
    (n, d, clusters, apart, most): (usize, usize, usize, f64, usize),
    merges: bool,
    tolerance: f64,
) -> Result<()> {
    let (mut used, mut iterations, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..4 {
        let x = rows(n, d, clusters, apart, seed);
        let data = Dense::new(x.view())?;
        let started = Instant::now();
        let fit = algorithms::dp_gmm(most, 1.0)
            .m_step(DirichletProcess::new(1.0).merges(merges))
            .tolerance(tolerance)
            .seed(seed)
            .build()?
            .fit(&data)?;
        seconds.push(started.elapsed().as_secs_f64());
        iterations.push(fit.report.iterations as f64);
        let mut labels = fit.model.predict(&data)?.to_vec();
        labels.sort_unstable();
        labels.dedup();
        used.push(labels.len().to_string());
    }
    println!(
        "| {n} x {d}, {clusters}, {most} | {tolerance:e} | {} | {} | {:.0} | {:.2} |",
        if merges { "yes" } else { "no" },
        used.join(", "),
        median(&iterations),
        median(&seconds)
    );
    Ok(())
}

fn rows(n: usize, d: usize, clusters: usize, apart: f64, seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    let centres = Array2::from_shape_fn((clusters, d), |_| apart * rng.normal());
    Array2::from_shape_fn((n, d), |(i, j)| centres[[i % clusters, j]] + rng.normal())
}
