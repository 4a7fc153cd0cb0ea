//! Milliseconds of an iteration of EM with full supports, by the kind of covariances, and of the bare matrix products of its
//! shape.
//!
//! `covariances [KIND] [COLUMNS] [COMPONENTS] [f32 | f64]`, each a name, a number or `all`, prints a table on generated rows;
//! `covariances ROWS.npy COMPONENTS KIND` the milliseconds on the rows of a file, whose first rows are the first means.
//!
//! An iteration is the difference of two fits with 6 and 2 iterations, divided by 4: each the least of several times, taken in turn
//! with the products. The products are of the same rows, in blocks, in the type of the data: of rows with k directions and of what
//! that gives with all rows (spherical); with twice the columns (diagonal); with one matrix more than spherical ones (tied); with two
//! matrices for each component (full).

use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Element, Float, algorithms};
use ndarray::{Array2, Axis, LinalgScalar};
use ndarray_npy::read_npy;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

const KINDS: [(&str, Covariance); 4] = [
    ("spherical", Covariance::Spherical),
    ("diagonal", Covariance::Diagonal),
    ("tied", Covariance::Tied),
    ("full", Covariance::Full),
];

/// Columns, and rows; each component has more rows than there are columns.
const SHAPES: [(usize, usize); 4] = [(8, 100_000), (32, 50_000), (90, 20_000), (256, 10_000)];
const ROWS_PER_COLUMN: usize = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [path, components, kind] = &arguments[..]
        && path.ends_with(".npy")
    {
        let k = components.parse().expect("a number of components");
        let kind = KINDS.into_iter().find(|own| own.0 == kind);
        let kind = kind.expect("a kind of covariances").1;
        let ms = match read_npy(path) {
            Ok(x) => iteration::<f32>(&x, k, kind, || ()),
            Err(_) => {
                iteration::<f64>(&read_npy(path).expect("rows of f32 or f64"), k, kind, || ())
            }
        };
        return println!("{ms}");
    }
    let wants = |place: usize, what: &str| {
        let wish = arguments.get(place).map_or("all", |wish| wish);
        wish == what || wish == "all"
    };
    println!(
        "| kind | type | columns, components | ms | products, ms | ratio |\n|---|---|---|---|---|---|"
    );
    for (name, kind) in KINDS.into_iter().filter(|(name, _)| wants(0, name)) {
        for (d, n) in SHAPES.into_iter().filter(|(d, _)| wants(1, &d.to_string())) {
            for k in [10, 100].into_iter().filter(|k| wants(2, &k.to_string())) {
                for of in ["f32", "f64"].into_iter().filter(|of| wants(3, of)) {
                    let (ms, products) = match of {
                        "f32" => both::<f32>(n, d, k, kind),
                        _ => both::<f64>(n, d, k, kind),
                    };
                    let ratio = ms / products;
                    println!("| {name} | {of} | {d}, {k} | {ms:.2} | {products:.2} | {ratio:.2} |");
                }
            }
        }
    }
}

/// The least milliseconds of an iteration, and of its products.
fn both<F>(n: usize, d: usize, k: usize, kind: Covariance) -> (f64, f64)
where
    F: Float + Element<Float = F> + LinalgScalar,
{
    let x = points::<F>(n.max(ROWS_PER_COLUMN * k * d), d, k);
    let mut least = f64::INFINITY;
    let ms = iteration(&x, k, kind, || least = least.min(products(&x, k, kind)));
    (ms, least)
}

const TURNS: usize = 5;
const FEW: usize = 2;
const MORE: usize = 6;

/// The least milliseconds of an iteration, with something else after each turn.
fn iteration<F: Float + Element<Float = F>>(
    x: &Array2<F>,
    k: usize,
    kind: Covariance,
    mut beside: impl FnMut(),
) -> f64 {
    let (mut few, mut more) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..TURNS {
        few = few.min(seconds(x, k, kind, FEW));
        more = more.min(seconds(x, k, kind, MORE));
        beside();
    }
    1e3 * (more - few) / (MORE - FEW) as f64
}

/// Seconds of a fit.
fn seconds<F>(x: &Array2<F>, k: usize, kind: Covariance, iterations: usize) -> f64
where
    F: Float + Element<Float = F>,
{
    let data = Dense::new(x.view()).expect("finite data");
    let start = x.view().split_at(Axis(0), k).0;
    let builder = algorithms::gmm(k).covariance(kind).tolerance(0.0);
    let builder = builder.seeder(Given::new(start)).max_iterations(iterations);
    let clusterer = builder.build().expect("valid settings");
    let started = Instant::now();
    let fit = black_box(clusterer.fit(&data).expect("enough rows"));
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(fit.report.iterations, iterations, "the fit ended early");
    seconds
}

/// Milliseconds of the products that an iteration needs.
fn products<F: Float + LinalgScalar>(x: &Array2<F>, k: usize, kind: Covariance) -> f64 {
    let (rows, d) = x.dim();
    // Directions that rows are multiplied with and that give sums of rows; and matrices.
    let (pairs, matrices) = match kind {
        Covariance::Spherical => (k, 0),
        Covariance::Diagonal => (2 * k, 0),
        Covariance::Tied => (k, 1),
        _ => (0, 2 * k),
    };
    let axes = |number: usize| Array2::from_shape_fn((d, number), |(j, c)| x[[c % rows, j]]);
    let (centres, matrices) = (axes(pairs), axes(matrices * d));
    let started = Instant::now();
    let blocks: Vec<_> = x.axis_chunks_iter(Axis(0), 512).collect();
    blocks.into_par_iter().for_each(|rows| {
        if pairs > 0 {
            let scores = rows.dot(&centres);
            black_box(scores.t().dot(&rows));
        }
        if !matrices.is_empty() {
            black_box(rows.dot(&matrices));
        }
    });
    1e3 * started.elapsed().as_secs_f64()
}

/// Rows around `k` centres that overlap as much in any number of columns: fits do not end early.
fn points<F: Float>(n: usize, d: usize, k: usize) -> Array2<F> {
    let mut rng = Rng::from_seed(7);
    let apart = 2.0 / (d as f64).sqrt();
    let centres = Array2::from_shape_fn((k, d), |_| apart * rng.normal());
    Array2::from_shape_fn((n, d), |(n, j)| {
        F::from_f64(centres[[n % k, j]] + rng.normal())
    })
}
