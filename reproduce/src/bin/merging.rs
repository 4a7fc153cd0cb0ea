//! How many components a Dirichlet process leaves in use, with merges and without: `cargo run --release -p reproduce --bin merging`.
//!
//! Rows are of round clusters of variance 1, so their number is known. Seeds 0 to 3; medians of iterations and seconds. Held
//! out: nats per row of 5,000 other rows, the median. "Prior given": the prior has the variances of the columns as numbers that
//! are given, and correlations between clusters are no part of it.

use coremix::algorithms;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, Axis};
use reproduce::median;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rows, columns, clusters, deviations of the centres, most components.
const SETS: [(usize, usize, usize, f64, usize); 8] = [
    (2_000, 8, 10, 4.0, 20),
    (20_000, 8, 10, 4.0, 20),
    (200_000, 8, 10, 4.0, 20),
    (20_000, 2, 10, 8.0, 20),
    (20_000, 20, 30, 3.0, 60),
    // Few rows for a component: the prior matters.
    (600, 3, 6, 20.0, 8),
    (1_200, 10, 8, 5.0, 24),
    (1_200, 30, 8, 5.0, 10),
];

const HELD_OUT: usize = 5_000;

#[derive(Clone, Copy)]
enum Merges {
    No,
    Yes,
    PriorGiven,
}

fn main() -> Result<()> {
    println!(
        "| rows x columns, clusters, at most | merges | tolerance | in use | held out | iterations | s |"
    );
    println!("|---|---|---|---|---|---|---|");
    for set in SETS {
        report(set, Merges::No, 1e-3)?;
        report(set, Merges::No, 1e-5)?;
        report(set, Merges::Yes, 1e-5)?;
        report(set, Merges::PriorGiven, 1e-5)?;
    }
    Ok(())
}

fn report(
    (n, d, clusters, apart, most): (usize, usize, usize, f64, usize),
    merges: Merges,
    tolerance: f64,
) -> Result<()> {
    let (mut used, mut held_out) = (Vec::new(), Vec::new());
    let (mut iterations, mut seconds) = (Vec::new(), Vec::new());
    for seed in 0..4 {
        let x = rows(n + HELD_OUT, d, clusters, apart, seed);
        let (x, others) = x.view().split_at(Axis(0), n);
        let (data, others) = (Dense::new(x)?, Dense::new(others)?);
        let mut process = DirichletProcess::new(1.0).merges(!matches!(merges, Merges::No));
        if let Merges::PriorGiven = merges {
            let precisions = x.var_axis(Axis(0), 0.0).recip();
            process = process.scale(Array2::from_diag(&precisions).view());
        }
        let started = Instant::now();
        let fit = algorithms::dp_gmm(most, 1.0)
            .m_step(process)
            .tolerance(tolerance)
            .seed(seed)
            .build()?
            .fit(&data)?;
        seconds.push(started.elapsed().as_secs_f64());
        iterations.push(fit.report.iterations as f64);
        held_out.push(fit.model.log_likelihood(&others)? / HELD_OUT as f64);
        let mut labels = fit.search_labels.to_vec();
        labels.sort_unstable();
        labels.dedup();
        used.push(labels.len().to_string());
    }
    println!(
        "| {n} x {d}, {clusters}, {most} | {} | {tolerance:e} | {} | {:.3} | {:.0} | {:.2} |",
        match merges {
            Merges::No => "no",
            Merges::Yes => "yes",
            Merges::PriorGiven => "prior given",
        },
        used.join(", "),
        median(&held_out),
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
