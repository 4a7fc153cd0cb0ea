//! `k_means` chooses its search: bounds, cells or all products, with the labels and the iterations of all products.

use crate::common::{Stored, blobs, on, seeds};
use coremix::data::Blocks;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Float, algorithms};
use ndarray::{Array2, Axis};

fn products<F: Float>(k: usize) -> Builder<F> {
    algorithms::k_means(k).e_step(Exhaustive::truncated(1))
}

/// The part of all distances that was evaluated.
fn share<M>(fit: &Fit<M>, n: usize, k: usize) -> f64 {
    let searches = fit.report.free_energies.len() as f64;
    fit.report.evaluations.search as f64 / (searches * n as f64 * k as f64)
}

/// The fits with and without a choice; labels, iterations and all numbers are the same, up to the rounding of sums.
fn same<F: Float>(
    name: &str,
    x: &Array2<F>,
    start: &Array2<F>,
    tolerance: f64,
) -> Fit<GaussianMixture<F>> {
    let (data, k) = (Dense::new(x.view()).unwrap(), start.nrows());
    let fit = |builder: Builder<F>| {
        let builder = builder.seeder(Given::new(start.view()));
        let builder = builder.tolerance(tolerance).max_iterations(25);
        builder.build().unwrap().fit(&data).unwrap()
    };
    let (all, fit) = (fit(products(k)), fit(algorithms::k_means(k)));
    assert!(all.exact && fit.exact);
    assert_eq!(fit.report.iterations, all.report.iterations, "{name}");
    assert_eq!(fit.report.stop, all.report.stop, "{name}");
    assert_eq!(fit.search_labels, all.search_labels, "{name}");
    assert_eq!(fit.report.zero_mass, all.report.zero_mass, "{name}");
    let within = 64.0 * F::EPSILON;
    let largest = x.iter().fold(0.0f64, |most, x| most.max(x.to_f64().abs()));
    for (a, b) in fit.model.means().iter().zip(&all.model.means()) {
        assert!(
            (a.to_f64() - b.to_f64()).abs() <= within * largest,
            "{name}"
        );
    }
    let energies = fit
        .report
        .free_energies
        .iter()
        .zip(&all.report.free_energies);
    for (a, b) in energies {
        assert!((a - b).abs() <= within * (1.0 + b.abs()), "{name}: {a} {b}");
    }
    fit
}

/// Rows about `groups` centres, with a deviation.
fn about(n: usize, d: usize, groups: usize, deviation: f64, seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    let centres = Array2::from_shape_fn((groups, d), |_| rng.normal());
    Array2::from_shape_fn((n, d), |(i, j)| {
        centres[[i % groups, j]] + deviation * rng.normal()
    })
}

/// Rows that bounds settle, that cells do, and that nothing does; few and many clusters and columns; whole numbers, where rows lie
/// between centres.
#[test]
fn the_choice_changes_no_label() {
    for (name, x, k, most) in [
        ("two", about(70_000, 32, 2, 1.0, 1), 2, 0.9),
        ("clusters", about(30_000, 20, 10, 0.2, 2), 10, 0.9),
        ("few columns", about(70_000, 2, 40, 0.1, 3), 40, 1.0),
        ("cells", about(9_000, 8, 3_000, 0.02, 4), 7_500, 0.5),
        ("noise", about(10_000, 16, 1, 1.0, 5), 40, 1.1),
        (
            "whole",
            about(60_000, 3, 30, 0.3, 6).mapv(|x| (4.0 * x).round()),
            30,
            1.1,
        ),
        ("equal", about(9_000, 3, 150, 0.0, 7), 200, 1.1),
    ] {
        let start = match name {
            "equal" => x.select(Axis(0), &(0..k).collect::<Vec<_>>()),
            _ => seeds(&x, k, 9),
        };
        for tolerance in [1e-9, 1e-3] {
            let fit = same(name, &x, &start, tolerance);
            let part = share(&fit, x.nrows(), k);
            assert!(part <= most || tolerance > 1e-6, "{name}: {part}");
            let narrow = x.mapv(|x| x as f32);
            same(name, &narrow, &start.mapv(|x| x as f32), tolerance);
        }
    }
}

/// Few rows are compared with all centres: bounds would cost more.
#[test]
fn few_products_are_all_made() {
    let x = about(3_000, 8, 10, 0.1, 1);
    let fit = same("few", &x, &seeds(&x, 10, 2), 1e-3);
    assert!((share(&fit, 3_000, 10) - 1.0).abs() < 1e-12);
}

/// Weights, rows in memory or not, and any number of threads: the same bits.
#[test]
fn chosen_searches_are_the_same_bits_everywhere() {
    for (x, k) in [
        (about(40_000, 16, 8, 0.2, 1), 8),
        (about(9_000, 8, 3_000, 0.02, 4), 7_500),
    ] {
        let x = x.mapv(|x| x as f32);
        let weights = ndarray::Array1::from_shape_fn(x.nrows(), |i| [1.0, 0.5, 3.0][i % 3]);
        let data = Dense::weighted(x.view(), weights.view()).unwrap();
        let blocks = Blocks::weighted(Stored(x.clone()), weights.to_vec()).unwrap();
        let builder = algorithms::k_means(k).seeder(UniformSeeder);
        let clusterer = builder.tolerance(0.0).max_iterations(6).build().unwrap();
        let whole = clusterer.fit(&data).unwrap();
        assert!(share(&whole, x.nrows(), k) < 0.9);
        let others = [1, 3].map(|threads| on(threads, || clusterer.fit(&data).unwrap()));
        for other in others.into_iter().chain([clusterer.fit(&blocks).unwrap()]) {
            assert_eq!(other.model, whole.model);
            assert_eq!(other.search_labels, whole.search_labels);
            assert_eq!(other.report.free_energies, whole.report.free_energies);
            assert_eq!(other.report.evaluations, whole.report.evaluations);
        }
    }
}

/// Centres that no row is near to get rows once bounds are kept, as before.
#[test]
fn vacant_components_get_rows_beside_bounds() {
    let x: Array2<f64> = blobs(50_000, 8, 12, 3);
    let mut start = seeds(&x, 12, 4);
    start.row_mut(3).fill(1e5);
    start.row_mut(7).fill(-1e5);
    let fit = same("vacant", &x, &start, 1e-9);
    assert_eq!(fit.report.zero_mass, 0);
}
