//! Results that a seed pins: the numbers of the random streams, the rows of every seeder and every coreset.
//!
//! The data are small whole numbers about a whole mean, so every distance is exact, in f32 as in f64, and on any processor.
//! A change here is a change of results: it is named under "Changed results" in `CHANGELOG.md`.

use approx::assert_relative_eq;
use coremix::Float;
use coremix::coreset::{Coreset, Subset};
use coremix::data::{Rows, View};
use coremix::prelude::*;
use coremix::seed::Seeder;
use coremix::stage::Rng;
use ndarray::{Array1, Array2};

const ROWS: usize = 160;

/// All rows differ. The second half is the first one mirrored, so the mean is exactly 20 in each column.
pub(crate) fn points<F: Float>() -> Array2<F> {
    Array2::from_shape_fn((ROWS, 3), |(n, j)| {
        let half = n.min(ROWS - 1 - n);
        let value = [half % 17, (half * half + 3 * half) % 37, (half * 11) % 41][j];
        let value = if n == half { value } else { 40 - value };
        F::from_f64(value as f64)
    })
}

/// 0 to 3, the same for a row and its mirror image.
pub(crate) fn weights() -> Array1<f64> {
    Array1::from_shape_fn(ROWS, |n| (n.min(ROWS - 1 - n) % 4) as f64)
}

/// The rows that the seeder chooses.
fn seeds<F: Float>(seeder: &impl Seeder<F>, k: usize) -> Vec<usize> {
    let (x, w) = (points::<F>(), weights());
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let frame = data.frame();
    let chosen = seeder
        .seed(View::new(&data, &frame), k, &mut Rng::from_seed(7))
        .unwrap();
    let mut rows = Rows::default();
    data.load(0..ROWS, &frame, &mut rows).unwrap();
    let row_of = |c: usize| (0..ROWS).find(|n| *rows.coordinates(*n) == *chosen.centres.row(c));
    (0..k).map(|c| row_of(c).expect("seeds are rows")).collect()
}

fn subset<F: Float>(coreset: &impl Coreset<F>) -> Subset {
    let (x, w) = (points::<F>(), weights());
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let frame = data.frame();
    let chosen = coreset.sample(View::new(&data, &frame), &mut Rng::from_seed(7));
    chosen.unwrap().expect("fewer rows")
}

/// In both types.
fn check_seeds<S: Seeder<f32> + Seeder<f64>>(seeder: &S, expected: &[usize]) {
    let k = expected.len();
    assert_eq!(seeds::<f64>(seeder, k), expected, "f64");
    assert_eq!(seeds::<f32>(seeder, k), expected, "f32");
}

/// In both types.
fn check_subset<C: Coreset<f32> + Coreset<f64>>(coreset: &C, rows: &[usize], weights: &[f64]) {
    for (name, found) in [
        ("f64", subset::<f64>(coreset)),
        ("f32", subset::<f32>(coreset)),
    ] {
        assert_eq!(found.rows, rows, "{name}");
        assert_relative_eq!(&found.weights[..], weights, max_relative = 1e-12);
    }
}

#[test]
fn a_stream_gives_these_numbers() {
    let mut rng = Rng::from_seed(7);
    let uniforms = [rng.uniform(), rng.uniform()];
    assert_eq!(uniforms, [0.5750324435112959, 0.6938690338579454]);
    assert_eq!([rng.below(10), rng.below(1_000_000)], [1, 391_464]);
    // Few of many are guessed, many of few are shuffled.
    let mut list = Vec::new();
    rng.distinct(&mut list, 5, 100);
    assert_eq!(list, [14, 55, 29, 88, 57]);
    rng.distinct(&mut list, 5, 7);
    assert_eq!(list, [0, 5, 4, 3, 6]);
    // A logarithm is not the same to the last bit everywhere.
    let found = [rng.exponential(), rng.normal(), rng.normal()];
    let expected = [0.7848428703427006, 0.6221261906779287, -1.3642932254257198];
    assert_relative_eq!(&found[..], &expected[..], max_relative = 1e-14);
}

#[test]
fn uniform_seeds_are_these_rows() {
    let expected = [144, 25, 71, 13, 132, 18, 106, 129, 133, 124, 38, 113];
    check_seeds(&UniformSeeder, &expected);
}

#[test]
fn seeds_of_k_means_plus_plus_are_these_rows() {
    let plain = [144, 27, 29, 34, 101, 22, 39, 132, 37, 141, 100, 121];
    check_seeds(&KMeansPlusPlus::default(), &plain);
    let greedy = [144, 23, 133, 70, 62, 152, 108, 132, 14, 104, 43, 80];
    check_seeds(&KMeansPlusPlus::greedy(), &greedy);
}

#[test]
fn seeds_of_afk_mc2_are_these_rows() {
    let expected = [144, 23, 137, 58, 66, 113, 15, 96, 7, 86, 128, 65];
    check_seeds(&AfkMc2::new(10), &expected);
}

/// More than 32, so that a cell is cut.
#[test]
fn seeds_of_hierarchical_k_means_plus_plus_are_these_rows() {
    let expected = [
        92, 106, 59, 122, 120, 13, 21, 137, 124, 34, 39, 109, 43, 27, 26, 67, 125, 138, 93, 113,
        74, 55, 14, 75, 81, 134, 129, 18, 73, 3, 96, 15, 53, 148, 11, 47, 84, 112, 132, 156, 51,
        35, 128, 141, 30, 6, 31, 62,
    ];
    check_seeds(&HierarchicalKMeansPlusPlus, &expected);
}

#[test]
fn coresets_draw_these_rows_with_these_weights() {
    let rows = [13, 18, 25, 71, 106, 113, 129, 144];
    let weights = [15.0, 30.0, 15.0, 45.0, 15.0, 30.0, 30.0, 45.0];
    check_subset(&UniformCoreset::new(8), &rows, &weights);
    let rows = [18, 38, 42, 55, 59, 80, 90, 152];
    let weights = [
        23.85873456878527,
        24.818401215624352,
        28.426440978739375,
        28.22417239860401,
        29.327183748195615,
        28.426440978739375,
        30.02487113866561,
        26.274485064504937,
    ];
    check_subset(&Lightweight::new(8), &rows, &weights);
}

/// The streams of a fit: its coreset, and its seeds, which stay where they are without an M-step.
#[test]
fn a_fit_begins_at_these_rows() {
    let (x, w) = (points::<f64>(), weights());
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let fit = algorithms::lwcs_k_means(4, 12).max_iterations(0).seed(42);
    let fit = fit.build().unwrap().fit(&data).unwrap();
    let coreset = [31, 39, 65, 79, 92, 92, 96, 122, 140, 146, 146, 156];
    assert_eq!(fit.coreset.unwrap().rows, coreset);
    let means = fit.model.means();
    let row_of = |mean| (0..ROWS).find(|n| x.row(*n) == mean);
    let seeds: Vec<_> = means.outer_iter().filter_map(row_of).collect();
    assert_eq!(seeds, [96, 79, 140, 146]);
}

/// The weights of the clusters and the error, for each algorithm.
const ENDS: [(&str, [f64; 5], f64); 12] = [
    ("k-means", [33.0, 38.0, 53.0, 55.0, 61.0], 36920.62515025198),
    (
        "k-means-c-prime",
        [38.0, 38.0, 42.0, 46.0, 76.0],
        34966.31110536115,
    ),
    ("gmm", [34.0, 36.0, 42.0, 48.0, 80.0], 34965.24626077209),
    (
        "lazy-k-means",
        [30.0, 32.0, 53.0, 58.0, 67.0],
        36855.65731174764,
    ),
    (
        "lwcs-k-means",
        [25.0, 30.0, 36.0, 65.0, 84.0],
        42661.141963660404,
    ),
    (
        "var-gmm-s",
        [33.0, 42.0, 43.0, 52.0, 70.0],
        37235.25497203818,
    ),
    ("vc-gmm", [33.0, 42.0, 43.0, 52.0, 70.0], 37235.25497203818),
    ("d-gmm", [33.0, 42.0, 43.0, 52.0, 70.0], 37235.25497203818),
    (
        "sparsified-gmm",
        [19.0, 23.0, 46.0, 60.0, 92.0],
        39424.42835837678,
    ),
    ("dp-gmm", [27.0, 32.0, 49.0, 64.0, 68.0], 39467.92135205297),
    ("table", [19.0, 23.0, 46.0, 60.0, 92.0], 39448.25630161022),
    ("fast", [34.0, 42.0, 43.0, 50.0, 71.0], 33762.96226407236),
];

/// Where fits end: the weight of each cluster, from the smallest on, and the quantization error.
#[test]
fn fits_end_at_these_clusters() {
    let (x, w) = (points::<f64>(), weights());
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    assert_eq!(ENDS.map(|end| end.0), Algorithm::NAMES);
    for (name, clusters, error) in ENDS {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(5);
        let algorithm = algorithm.coreset(60).seed(42).max_iterations(20);
        let model = algorithm.boxed().unwrap().fit(&data).unwrap().model;
        let mut found = [0.0; 5];
        for (label, w) in model.predict(&data).unwrap().iter().zip(&w) {
            found[*label as usize] += w;
        }
        found.sort_by(f64::total_cmp);
        assert_eq!(found, clusters, "{name}");
        // Sums are rounded otherwise on other processors.
        let found = model.quantization_error(&data).unwrap();
        assert_relative_eq!(found, error, max_relative = 1e-6);
    }
}

/// The coordinates that a sketch keeps of the first rows.
#[test]
fn a_sketch_keeps_these_coordinates() {
    let x = Array2::from_shape_fn((4, 16), |(n, j)| (n * 16 + j) as f64);
    let sketch = Sketch::new(x.view(), 4, 42).unwrap();
    let expected = [
        [3, 9, 11, 15],
        [1, 2, 5, 12],
        [1, 4, 9, 15],
        [4, 10, 13, 15],
    ];
    assert_eq!(sketch.indices(), ndarray::arr2(&expected));
}
