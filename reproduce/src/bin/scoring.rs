//! What the answers of a model cost beside its labels: `log_likelihood` and `score` over `predict`.
//!
//! `cargo run --release -p reproduce --bin scoring -- [rows]` on generated data (20,000 rows unless told), on one thread.
//! In `tight` data every row has one component, in `near` ones a few, in `overlapping` ones nearly all.

use coremix::data::DenseRows;
use coremix::m_step::SharedIsotropicMixture;
use coremix::prelude::*;
use coremix::{Float, Rng};
use ndarray::Array2;
use rayon::ThreadPoolBuilder;
use reproduce::median;
use std::hint::black_box;
use std::time::Instant;

type Answer<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Components and columns.
const SHAPES: [(usize, usize); 4] = [(100, 16), (100, 64), (2_000, 16), (2_000, 64)];

/// The standard deviation of a component, where means have 1.
const SPREADS: [(&str, f64); 3] = [("tight", 0.05), ("near", 0.4), ("overlapping", 1.5)];

/// Runs of which the median is told.
const RUNS: usize = 5;

fn main() -> Answer<()> {
    let rows = std::env::args().nth(1).map_or(Ok(20_000), |n| n.parse())?;
    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    println!("{rows} rows, one thread, medians of {RUNS}, milliseconds; ratios to `predict`\n");
    print!("{:>5}{:>6}{:>5}{:>13}", "type", "k", "d", "data");
    println!("{:>10}{:>22}{:>22}", "predict", "log_likelihood", "score");
    pool.install(|| {
        for (k, d) in SHAPES {
            for (name, spread) in SPREADS {
                compare::<f32>("f32", (rows, k, d), name, spread)?;
                compare::<f64>("f64", (rows, k, d), name, spread)?;
            }
        }
        Ok(())
    })
}

fn compare<F: Float>(
    kind: &str,
    (n, k, d): (usize, usize, usize),
    name: &str,
    spread: f64,
) -> Answer<()> {
    let mut rng = Rng::from_seed(1);
    let means = Array2::from_shape_fn((k, d), |_| F::from_f64(rng.normal()));
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        F::from_f64(means[[i % k, j]].to_f64() + spread * rng.normal())
    });
    let data = Dense::new(x.view())?;
    let model = SharedIsotropicMixture::from_parameters(means.view(), spread * spread)?;
    let model: &dyn Mixture<DenseRows<F>> = &model;
    let mut times = [const { Vec::new() }; 3];
    // In alternation, so that whatever else the machine does is in all three.
    for _ in 0..RUNS {
        let started = Instant::now();
        black_box(model.predict(&data)?);
        times[0].push(1e3 * started.elapsed().as_secs_f64());
        let started = Instant::now();
        black_box(model.log_likelihood(&data)?);
        times[1].push(1e3 * started.elapsed().as_secs_f64());
        let started = Instant::now();
        black_box(model.score(&data)?);
        times[2].push(1e3 * started.elapsed().as_secs_f64());
    }
    let [predict, likelihood, score] = times.map(|times| median(&times));
    print!("{kind:>5}{k:>6}{d:>5}{name:>13}{predict:>10.1}");
    let ratios = [likelihood, score].map(|time| format!("{time:>14.1}{:>7.2}x", time / predict));
    println!("{}", ratios.concat());
    Ok(())
}
