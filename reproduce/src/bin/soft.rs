//! EM with full supports, compared with the bare matrix products it needs: milliseconds of an iteration, of the products, and
//! their ratio.
//!
//! `cargo run --release -p reproduce --bin soft -- [shape] [family] [f32 | f64]` on generated rows: all of `SHAPES`, or one of
//! them by its number; `shared`, `isotropic`, `diagonal`, `tied`, `full`, `dirichlet` or `all`.
//!
//! An iteration is the difference of two fits with 12 and 2 iterations, divided by 10. The products are those of the same rows
//! with as many directions as the family needs, in blocks of rows: two for one shared variance and for one of each component
//! (scores, and sums of rows), four for diagonal ones. Full covariances have none to compare with: `peers/soft.py` times
//! scikit-learn's.

use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Element, Float, algorithms};
use ndarray::{Array2, Axis, LinalgScalar};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Rows, columns, components.
const SHAPES: [(usize, usize, usize); 9] = [
    (130_290, 90, 100),
    (130_290, 90, 10),
    (32_768, 90, 2_000),
    (262_144, 8, 100),
    (65_536, 8, 2_000),
    (16_384, 784, 100),
    (16_384, 784, 10),
    (131_072, 32, 256),
    (4_096, 784, 2_000),
];

/// Rows, columns, components of full covariances.
const MATRICES: [(usize, usize, usize); 4] = [
    (100_000, 8, 20),
    (50_000, 32, 20),
    (20_000, 90, 20),
    (10_000, 256, 20),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wants = |place: usize, what: &str| {
        let wish = wanted.get(place).map_or("all", |wish| wish);
        wish == what || wish == "all"
    };
    println!(
        "{:>4}{:>8}{:>5}{:>6}  {:>10}{:>14}{:>14}{:>8}",
        "", "rows", "d", "k", "family", "iteration/ms", "products/ms", "ratio"
    );
    for (number, shape) in SHAPES.into_iter().enumerate() {
        if wants(0, &number.to_string()) {
            for family in ["shared", "isotropic", "diagonal"] {
                if wants(1, family) && wants(2, "f32") {
                    report::<f32>("f32", shape, family);
                }
                if wants(1, family) && wants(2, "f64") {
                    report::<f64>("f64", shape, family);
                }
            }
        }
    }
    for (number, shape) in MATRICES.into_iter().enumerate() {
        for family in ["tied", "full", "dirichlet"] {
            if wants(0, &number.to_string()) && wants(1, family) {
                if wants(2, "f32") {
                    report::<f32>("f32", shape, family);
                }
                if wants(2, "f64") {
                    report::<f64>("f64", shape, family);
                }
            }
        }
    }
}

/// Runs `$iterations` iterations from rows at random.
macro_rules! fit {
    ($builder:expr, $iterations:expr, $data:expr) => {{
        let builder = $builder.seeder(UniformSeeder::new()).tolerance(0.0);
        let clusterer = builder.max_iterations($iterations).build();
        let fit = clusterer.expect("valid settings").fit(&$data);
        black_box(fit.expect("enough rows"));
    }};
}

fn report<F: Float + Element<Float = F> + LinalgScalar>(
    kind: &str,
    (n, d, k): (usize, usize, usize),
    family: &str,
) {
    let x = points::<F>(n, d, k);
    let data = Dense::new(x.view()).expect("finite data");
    let gmm = || algorithms::gmm(k);
    let ms = match family {
        "shared" => iteration(|t| fit!(gmm(), t, data)),
        "isotropic" => iteration(|t| fit!(gmm().covariance(Covariance::Spherical), t, data)),
        "diagonal" => iteration(|t| fit!(gmm().covariance(Covariance::Diagonal), t, data)),
        "tied" => iteration(|t| fit!(gmm().covariance(Covariance::Tied), t, data)),
        "full" => iteration(|t| fit!(gmm().covariance(Covariance::Full), t, data)),
        _ => iteration(|t| fit!(algorithms::dp_gmm(k, 1.0), t, data)),
    };
    print!("{kind:>4}{n:>8}{d:>5}{k:>6}  {family:>10}{ms:>14.2}");
    let factor = match family {
        "tied" | "full" | "dirichlet" => {
            println!();
            return;
        }
        "diagonal" => 2.0,
        _ => 1.0,
    };
    let products = factor * median(|| products(&x, k));
    println!("{products:>14.2}{:>8.2}", ms / products);
}

/// Milliseconds of an iteration.
fn iteration(run: impl Fn(usize)) -> f64 {
    median(|| {
        let of = |iterations| {
            let started = Instant::now();
            run(iterations);
            started.elapsed().as_secs_f64()
        };
        let few = of(2);
        1e3 * (of(12) - few) / 10.0
    })
}

/// The median of three runs.
fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut times = [run(), run(), run()];
    times.sort_by(f64::total_cmp);
    times[1]
}

/// Milliseconds of the products of all rows with k directions, and of what that gives with all rows.
fn products<F: Float + LinalgScalar>(x: &Array2<F>, k: usize) -> f64 {
    let centres = x.view().split_at(Axis(0), k).0.reversed_axes().to_owned();
    let started = Instant::now();
    let blocks: Vec<_> = x.axis_chunks_iter(Axis(0), 512).collect();
    blocks.into_par_iter().for_each(|rows| {
        let scores = rows.dot(&centres);
        black_box(scores.t().dot(&rows));
    });
    1e3 * started.elapsed().as_secs_f64()
}

/// Rows around `k` centres that overlap.
fn points<F: Float>(n: usize, d: usize, k: usize) -> Array2<F> {
    let mut rng = Rng::from_seed(7);
    let centres = Array2::from_shape_fn((k, d), |_| 0.7 * rng.normal());
    Array2::from_shape_fn((n, d), |(n, j)| {
        F::from_f64(centres[[n % k, j]] + rng.normal())
    })
}
