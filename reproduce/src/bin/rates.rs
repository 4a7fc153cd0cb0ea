//! How near the stages come to what the machine can do: matrix products, one iteration of k-means, `fast` and its phases, truncated iterations,
//! each on one thread and on all.
//!
//! `cargo run --release -p reproduce --bin rates -- [rows]` on generated data (131,072 rows unless told).

use coremix::algorithms;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::Array2;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Columns and clusters.
const SHAPES: [(usize, usize); 5] = [(8, 500), (64, 256), (74, 500), (128, 1000), (784, 500)];

fn main() -> Result<()> {
    let rows = std::env::args().nth(1).map_or(Ok(131_072), |n| n.parse())?;
    let all = std::thread::available_parallelism()?.get();
    println!(
        "f32, GFLOP/s of 2 n d k operations; 1 thread and {all}, and the ratio of the times\n"
    );
    println!(
        "{:>5}{:>6}{:>30}{:>30}{:>26}",
        "d", "k", "matrix product", "k-means iteration", "fast / ms"
    );
    for (d, k) in SHAPES {
        let n = rows * 64 / d.max(64);
        let x = points(n, d, k);
        let work = 2e-9 * (n * d * k) as f64;
        print!("{d:>5}{k:>6}");
        for what in [product, iteration] {
            let (one, many) = (time(1, &x, k, what)?, time(all, &x, k, what)?);
            let (a, b, ratio) = (work / one, work / many, one / many);
            print!("{a:>12.0}{b:>9.0}{ratio:>8.2}x");
        }
        let (one, many) = (time(1, &x, k, fast)?, time(all, &x, k, fast)?);
        println!("{:>10.0}{:>8.0}{:>7.2}x", 1e3 * one, 1e3 * many, one / many);
    }
    println!("\nTruncated iterations, G evaluations of a coordinate per second\n");
    println!(
        "{:>5}{:>6}{:>30}{:>30}",
        "d", "k", "var-GMM-S, C' = G = 5", "bounded, 48 near means"
    );
    for (d, k) in SHAPES {
        let n = rows * 64 / d.max(64);
        let x = points(n, d, k);
        print!("{d:>5}{k:>6}");
        for what in [truncated, bounded] {
            let (one, many) = (time(1, &x, k, what)?, time(all, &x, k, what)?);
            let (a, b, ratio) = (1.0 / one, 1.0 / many, one / many);
            print!("{a:>12.1}{b:>9.1}{ratio:>8.2}x");
        }
        println!();
    }
    Ok(())
}

/// Seconds of a truncated search, the shares and the sums, per 10^9 coordinates of an evaluation.
fn truncated(x: &Array2<f32>, k: usize) -> f64 {
    let data = Dense::new(x.view()).expect("finite data");
    let builder = algorithms::var_gmm_s(k, 5, 5).seeder(UniformSeeder);
    let clusterer = builder
        .tolerance(0.0)
        .max_iterations(10)
        .build()
        .expect("valid settings");
    per_evaluation(&clusterer.fit(&data).expect("enough rows").report, x)
}

/// The rate of k-means with bounds and lists of near means, on all columns: first search, searches and sums. Rows that bounds
/// settle are not evaluated, and do not count.
fn bounded(x: &Array2<f32>, k: usize) -> f64 {
    let data = Dense::new(x.view()).expect("finite data");
    let builder = algorithms::fast(k).coreset(Full).e_step(Bounded::default());
    let builder = builder.seeder(UniformSeeder);
    let clusterer = builder.build().expect("valid settings");
    per_evaluation(&clusterer.fit(&data).expect("enough rows").report, x)
}

/// Seconds per 10^9 coordinates of an evaluation.
fn per_evaluation(report: &Report, x: &Array2<f32>) -> f64 {
    let evaluations = report.evaluations.search as f64 * x.ncols() as f64;
    1e9 * report.timings.search.as_secs_f64() / evaluations
}

/// Rows around `k` centres that overlap.
fn points(n: usize, d: usize, k: usize) -> Array2<f32> {
    let mut rng = Rng::from_seed(7);
    let centres = Array2::from_shape_fn((k, d), |_| 0.7 * rng.normal());
    Array2::from_shape_fn((n, d), |(n, j)| (centres[[n % k, j]] + rng.normal()) as f32)
}

/// The median of five runs on a pool of `threads`.
fn time(
    threads: usize,
    x: &Array2<f32>,
    k: usize,
    run: fn(&Array2<f32>, usize) -> f64,
) -> Result<f64> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut times: Vec<f64> = (0..5).map(|_| pool.install(|| run(x, k))).collect();
    times.sort_by(f64::total_cmp);
    Ok(times[2])
}

/// The products of all rows with k centres, in blocks of rows, and nothing else.
fn product(x: &Array2<f32>, k: usize) -> f64 {
    let centres = x.view().split_at(ndarray::Axis(0), k).0.to_owned();
    let started = Instant::now();
    let blocks: Vec<_> = x.axis_chunks_iter(ndarray::Axis(0), 512).collect();
    blocks.into_par_iter().for_each(|rows| {
        black_box(rows.dot(&centres.t()));
    });
    started.elapsed().as_secs_f64()
}

/// A search of all rows over all components, and the sums of the M-step.
fn iteration(x: &Array2<f32>, k: usize) -> f64 {
    let data = Dense::new(x.view()).expect("finite data");
    let builder = algorithms::k_means(k).seeder(UniformSeeder);
    let clusterer = builder
        .tolerance(0.0)
        .max_iterations(4)
        .build()
        .expect("valid settings");
    let report = clusterer.fit(&data).expect("enough rows").report;
    let searches = report.iterations as f64 + 1.0;
    (report.timings.search + report.timings.update).as_secs_f64() / searches
}

fn fast(x: &Array2<f32>, k: usize) -> f64 {
    let started = Instant::now();
    let data = Dense::new(x.view()).expect("finite data");
    let clusterer = algorithms::fast(k).build().expect("valid settings");
    black_box(clusterer.fit(&data).expect("enough rows"));
    started.elapsed().as_secs_f64()
}
