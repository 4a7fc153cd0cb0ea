//! The cost of the answers of a model relative to its labels: `log_likelihood` and `score` over `predict`.
//!
//! `cargo run --release -p reproduce --bin scoring -- CLUSTERS [own]` on generated data, on one thread. `own`: components
//! have variances of their own.
//! In `tight` data every row has one component, in `near` ones a few, in `overlapping` ones nearly all.

use coremix::Float;
use coremix::m_step::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array1, Array2};
use rayon::ThreadPoolBuilder;
use reproduce::median;
use std::hint::black_box;
use std::time::Instant;

type Answer<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const COLUMNS: [usize; 4] = [8, 16, 64, 256];

/// Products of a coordinate in one search, and the most rows.
const PRODUCTS: usize = 800_000_000;
const ROWS: usize = 20_000;

/// The standard deviation of a component, where means have 1.
const SPREADS: [(&str, f64); 3] = [("tight", 0.05), ("near", 0.4), ("overlapping", 1.5)];

/// Runs of which the median is told.
const RUNS: usize = 5;

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let k: usize = arguments.first().map_or(Ok(2_000), |k| k.parse())?;
    let own = arguments.get(1).is_some_and(|family| family == "own");
    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    println!("one thread, medians of {RUNS}, milliseconds; ratios to `predict`\n");
    print!(
        "{:>5}{:>7}{:>7}{:>5}{:>13}",
        "type", "rows", "k", "d", "data"
    );
    println!("{:>10}{:>22}{:>22}", "predict", "log_likelihood", "score");
    pool.install(|| {
        for d in COLUMNS {
            let rows = (PRODUCTS / (k * d)).clamp(200, ROWS);
            for (name, spread) in SPREADS {
                compare::<f32>("f32", (rows, k, d), (name, spread), own)?;
                compare::<f64>("f64", (rows, k, d), (name, spread), own)?;
            }
        }
        Ok(())
    })
}

fn compare<F: Float>(
    kind: &str,
    (n, k, d): (usize, usize, usize),
    (name, spread): (&str, f64),
    own: bool,
) -> Answer<()> {
    let mut rng = Rng::from_seed(1);
    let means = Array2::from_shape_fn((k, d), |_| F::from_f64(rng.normal()));
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        F::from_f64(means[[i % k, j]].to_f64() + spread * rng.normal())
    });
    let data = Dense::new(x.view())?;
    let variance = spread * spread;
    let model: Box<dyn Mixture<F>> = if own {
        let variances = Array1::from_shape_fn(k, |c| variance * (0.8 + 0.1 * (c % 5) as f64));
        let proportions = Array1::from_elem(k, 1.0 / k as f64);
        let (variances, proportions) = (variances.view(), proportions.view());
        Box::new(GaussianMixture::from_parameters(
            Covariance::Spherical,
            means.view(),
            variances,
            proportions,
        )?)
    } else {
        Box::new(GaussianMixture::tied_spherical(means.view(), variance)?)
    };
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
    print!("{kind:>5}{n:>7}{k:>7}{d:>5}{name:>13}{predict:>10.1}");
    let ratios = [likelihood, score].map(|time| format!("{time:>14.1}{:>7.2}x", time / predict));
    println!("{}", ratios.concat());
    Ok(())
}
