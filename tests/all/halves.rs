//! A row of weight w and two rows of weight w / 2 are the same to whatever draws rows. Whole fits are in `laws.rs`.

use crate::common::blobs;
use coremix::coreset::Coreset;
use coremix::data::{Rows, View};
use coremix::prelude::*;
use coremix::seed::Seeder;
use coremix::stage::Rng;
use ndarray::{Array1, Array2, ArrayView1, Axis, concatenate};

const ROWS: usize = 40;
const SEEDS: u64 = 4_000;

/// Rows with weights that are no whole numbers, and the same with every other row as two of half the weight. Row n of the
/// former is the rows n and n + ROWS of the latter.
fn rows() -> [(Array2<f64>, Array1<f64>); 2] {
    let x = blobs::<f64>(ROWS, 2, 5, 41);
    let w = Array1::from_shape_fn(ROWS, |n| [0.3, 1.7, 0.0, 0.9, 2.6][n % 5]);
    let share = |n: usize| [[0.5, 0.5], [1.0, 0.0]][n % 2][n / ROWS];
    let halves = Array1::from_shape_fn(2 * ROWS, |n| w[n % ROWS] * share(n));
    [(x.clone(), w), (concatenate![Axis(0), x, x], halves)]
}

/// How far the numbers of draws of each row are from those of the other data, in units of what chance does: chi squared of
/// two samples, by its standard deviation.
fn apart(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    assert!(a.sum() == b.sum() && a.sum() > 0.0);
    let drawn = a.iter().zip(&b).filter(|(a, b)| *a + *b > 0.0);
    let terms: Vec<f64> = drawn.map(|(a, b)| (a - b).powi(2) / (a + b)).collect();
    let freedom = (terms.len() - 1) as f64;
    (terms.iter().sum::<f64>() - freedom) / (2.0 * freedom).sqrt()
}

/// Seed by seed, since later ones depend on those before.
fn seeds_are_the_same(name: &str, seeder: &impl Seeder<f64>, k: usize) {
    let mut from = 0;
    let [one, two] = rows().map(|(x, w)| {
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let frame = data.frame();
        let mut block = Rows::default();
        data.load(0..ROWS, &frame, &mut block).unwrap();
        let mut counts = Array2::zeros((k, ROWS));
        for seed in from..from + SEEDS {
            let mut rng = Rng::from_seed(seed);
            let seeds = seeder.seed(View::new(&data, &frame), k, &mut rng).unwrap();
            for c in 0..k {
                let is_seed = |n: &usize| *block.coordinates(*n) == *seeds.centres.row(c);
                counts[[c, (0..ROWS).find(is_seed).unwrap()]] += 1.0;
            }
        }
        from += SEEDS;
        counts
    });
    for c in 0..k {
        let apart = apart(one.row(c), two.row(c));
        assert!(apart < 4.0, "{name}: seed {c} is {apart} apart");
    }
}

#[test]
fn seeds_respect_weights_that_are_fractions() {
    // Later ones of these are other rows, and so perhaps the second half of the same.
    seeds_are_the_same("uniform", &UniformSeeder, 1);
    seeds_are_the_same("k-means++", &KMeansPlusPlus::default(), 3);
    seeds_are_the_same("greedy k-means++", &KMeansPlusPlus::greedy(), 3);
    seeds_are_the_same("AFK-MC2", &AfkMc2::new(5), 3);
    seeds_are_the_same("hierarchical", &HierarchicalKMeansPlusPlus, 3);
}

/// The weight that a coreset gives a row, on average: that of both its halves.
fn weights_are_the_same(name: &str, coreset: &impl Coreset<f64>) {
    let [one, two] = rows().map(|(x, w)| {
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let frame = data.frame();
        let mut drawn = Array2::<f64>::zeros((ROWS, SEEDS as usize));
        for seed in 0..SEEDS {
            let mut rng = Rng::from_seed(seed);
            let subset = coreset
                .sample(View::new(&data, &frame), &mut rng)
                .unwrap()
                .unwrap();
            for (row, weight) in subset.rows.iter().zip(&subset.weights) {
                drawn[[row % ROWS, seed as usize]] += weight;
            }
        }
        let errors = drawn.var_axis(Axis(1), 0.0) / SEEDS as f64;
        (drawn.mean_axis(Axis(1)).unwrap(), errors)
    });
    for row in 0..ROWS {
        let (a, b) = (one.0[row], two.0[row]);
        let slack = 4.5 * (one.1[row] + two.1[row]).sqrt();
        assert!((a - b).abs() <= slack, "{name}: row {row}: {a} and {b}");
    }
}

#[test]
fn coresets_respect_weights_that_are_fractions() {
    weights_are_the_same("lightweight", &Lightweight::new(12));
    weights_are_the_same("uniform", &UniformCoreset::new(12));
}
