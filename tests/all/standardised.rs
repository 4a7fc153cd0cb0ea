//! Standardised columns: their units do not matter, and models answer in them.

use crate::common::{Settings, all, blobs, close, rises_in_phases, rounding, seeds};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::{Float, algorithms};
use ndarray::{Array1, Array2, Axis, array};

const COVARIANCES: [Covariance; 6] = [
    Covariance::TiedSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
    Covariance::Factors(1),
];

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| (1 + n % 4) as f64)
}

/// Other units of the columns, powers of two, change units of the answers and no bit besides: all algorithms.
fn units_do_not_matter<F: Float>() {
    let x = blobs::<F>(700, 4, 6, 5);
    let exponents = [-9, 0, 3, 20];
    let units = exponents.map(|e| 2f64.powi(e));
    let in_units =
        Array2::from_shape_fn(x.dim(), |(n, j)| F::from_f64(x[[n, j]].to_f64() * units[j]));
    let w = weights(700);
    let settings = Settings {
        standardise: true,
        ..Settings::new(6, 3)
    };
    for algorithm in all::<F>().iter().filter(|a| a.standardises()) {
        let fit = |x: &Array2<F>| {
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            (algorithm.fit)(&data, &settings).unwrap()
        };
        let (name, own, other) = (algorithm.name, fit(&x), fit(&in_units));
        assert_eq!(own.labels, other.labels, "{name}");
        assert_eq!(own.supports, other.supports, "{name}");
        let back = Array2::from_shape_fn(own.means.dim(), |(c, j)| {
            other.means[[c, j]].to_f64() / units[j]
        });
        let apart = (&back - &own.means.mapv(|m| m.to_f64())).mapv(f64::abs);
        let size = own
            .means
            .iter()
            .fold(0.0, |size: f64, m| size.max(m.to_f64().abs()));
        assert!(apart.iter().all(|a| *a <= rounding::<F>() * size), "{name}");
        let drawn = own
            .coreset
            .as_ref()
            .map(|coreset| coreset.weights.iter().sum());
        let weight: f64 = drawn.unwrap_or(w.sum());
        let shift: f64 = exponents.iter().map(|e| f64::from(*e)).sum::<f64>() * 2f64.ln();
        let pairs = own
            .report
            .free_energies
            .iter()
            .zip(&other.report.free_energies);
        for (own, other) in pairs {
            assert!(
                close(*own, other + weight * shift, 1e-10),
                "{name}: {own} {other}"
            );
        }
        rises_in_phases(name, &other.report, weight, rounding::<F>());
    }
}

#[test]
fn units_of_columns_do_not_matter() {
    units_do_not_matter::<f32>();
    units_do_not_matter::<f64>();
}

/// The fit of columns that were scaled by hand, in their units: labels, means, covariances, densities and errors, far from 0 too.
#[test]
fn models_are_those_of_columns_scaled_by_hand() {
    let (scales, far) = ([1e-4, 1.0, 700.0], [3.0, -2e4, 1e6]);
    let blobs = blobs::<f64>(600, 3, 5, 8);
    let x = Array2::from_shape_fn(blobs.dim(), |(n, j)| blobs[[n, j]] * scales[j] + far[j]);
    let w = weights(600);
    let mean = (&x * &w.view().insert_axis(Axis(1))).sum_axis(Axis(0)) / w.sum();
    let apart = &x - &mean;
    let variance =
        (apart.mapv(|x| x * x) * w.view().insert_axis(Axis(1))).sum_axis(Axis(0)) / w.sum();
    let deviation = variance.mapv(f64::sqrt);
    let z = &apart / &deviation;
    let (given, picked) = (seeds(&x, 5, 2), seeds(&z, 5, 2));
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let by_hand = Dense::weighted(z.view(), w.view()).unwrap();
    let volume = w.sum() * deviation.mapv(f64::ln).sum();
    for kind in COVARIANCES {
        let gmm = || {
            algorithms::gmm::<f64>(5)
                .covariance(kind)
                .tolerance(0.0)
                .max_iterations(25)
        };
        let own = gmm().standardise(true).seeder(Given::new(given.view()));
        let own = own.build().unwrap().fit(&data).unwrap();
        let other = gmm().seeder(Given::new(picked.view())).build().unwrap();
        let other = other.fit(&by_hand).unwrap();
        let near = |a: f64, b: f64| close(a, b, 1e-6);
        for ((c, j), m) in own.model.means().indexed_iter() {
            let expected = other.model.means()[[c, j]] * deviation[j];
            assert!(
                (m - mean[j] - expected).abs() < 1e-6 * deviation[j],
                "{kind:?}"
            );
        }
        let theirs = other.model.covariances();
        for ((c, i, j), v) in own.model.covariances().indexed_iter() {
            let (unit, expected) = (deviation[i] * deviation[j], theirs[[c, i, j]]);
            assert!((v / unit - expected).abs() < 1e-6, "{kind:?}: {v}");
        }
        for ((c, j), v) in own.model.variances().indexed_iter() {
            assert!(near(*v, own.model.covariances()[[c, j, j]]), "{kind:?}");
        }
        let scores = [
            own.model.score(&data).unwrap(),
            other.model.score(&by_hand).unwrap(),
        ];
        let [score, expected] = &scores;
        assert_eq!(score.labels, expected.labels, "{kind:?}");
        assert!(
            near(score.quantization_error, expected.quantization_error),
            "{kind:?}"
        );
        assert!(
            near(score.log_likelihood, expected.log_likelihood - volume),
            "{kind:?}"
        );
        let energies =
            [&own.report, &other.report].map(|report| *report.free_energies.last().unwrap());
        assert!(
            near(energies[0], energies[1] - volume),
            "{kind:?}: {energies:?}"
        );
        assert_eq!(own.model.free_parameters(), other.model.free_parameters());
        // Samples are in the units of the columns.
        let (samples, _) = own.model.sample(4_000, 3).unwrap();
        let spread = samples.std_axis(Axis(0), 0.0) / &deviation;
        assert!(
            spread.iter().all(|s| (s - 1.0).abs() < 0.1),
            "{kind:?}: {spread}"
        );
        // Files have the same bits, and a start from the model its likelihood, also in other units.
        let bytes = own.model.to_bytes(&[]).unwrap();
        let back = GaussianMixture::<f64>::from_bytes(&bytes).unwrap();
        assert!(
            back.frame().is_standardised() && back == own.model,
            "{kind:?}"
        );
        let warm = |standardise| {
            let next = gmm()
                .standardise(standardise)
                .start_from(&own.model)
                .max_iterations(0);
            let fit = next.build().unwrap().fit(&data).unwrap();
            fit.model.log_likelihood(&data).unwrap()
        };
        assert!(near(warm(true), score.log_likelihood), "{kind:?}");
        if !matches!(kind, Covariance::TiedSpherical | Covariance::Spherical) {
            assert!(near(warm(false), score.log_likelihood), "{kind:?}");
        }
    }
}

/// Columns that are constant, or all but their rounding, or of any size: fits are finite and rise, and a constant column changes
/// no label.
#[test]
fn columns_without_a_deviation_change_nothing() {
    let x = blobs::<f32>(400, 2, 4, 1);
    let wide = |extra: &dyn Fn(usize) -> f32| {
        Array2::from_shape_fn((400, 3), |(n, j)| if j == 2 { extra(n) } else { x[[n, j]] })
    };
    let labels = |x: &Array2<f32>| {
        let data = Dense::new(x.view()).unwrap();
        let fit = algorithms::k_means(4)
            .standardise(true)
            .seed(7)
            .build()
            .unwrap();
        let fit = fit.fit(&data).unwrap();
        rises_in_phases("k-means", &fit.report, 400.0, rounding::<f32>());
        fit.model.predict(&data).unwrap()
    };
    let expected = labels(&x);
    for constant in [0.0f32, 1.0, -1e30, 1e-30] {
        assert_eq!(labels(&wide(&|_| constant)), expected, "{constant:e}");
    }
    let rounding = |n: usize| f32::from_bits(1e8f32.to_bits() + (n % 2) as u32);
    assert_eq!(labels(&wide(&rounding)), expected);
    for size in [1e-30f32, 1e-3, 1e30] {
        let found = labels(&wide(&|n| size * (n % 9) as f32));
        assert_eq!(found, labels(&wide(&|n| (n % 9) as f32)), "{size:e}");
    }
    labels(&Array2::from_elem((50, 2), 3.0));
}

#[test]
fn rows_that_have_no_columns_of_their_own_are_refused() {
    let x = array![[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]];
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    let fit = algorithms::k_means(2)
        .standardise(true)
        .build()
        .unwrap()
        .fit(&sketch);
    let error = fit.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("standardise") && error.contains("sketch"),
        "{error}"
    );
}
