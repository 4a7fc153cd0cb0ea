//! The Dirichlet process mixture where its matrices are nearly singular and its weights are large.

use crate::common::{rises, rounding};
use coremix::families::DirichletProcessMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Element, Float, algorithms};
use ndarray::{Array1, Array2, array};
use std::f64::consts::PI;

/// The free energies of a fit: they are finite and never fall, to 1e-9 (f64) or 1e-6 (f32) of max(|F|, W).
fn rising<T: Element>(
    what: &str,
    x: &Array2<T>,
    w: Option<&Array1<f64>>,
    k: usize,
    family: DirichletProcess,
) -> Vec<f64> {
    let data = match w {
        Some(w) => Dense::weighted(x.view(), w.view()),
        None => Dense::new(x.view()),
    }
    .unwrap();
    let fit = algorithms::dp_gmm(k, 1.0)
        .m_step(family)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    let total = w.map_or(x.nrows() as f64, |w| w.sum());
    let found = fit.report.free_energies;
    rises(what, &found, total, rounding::<T::Float>());
    found
}

/// Weights of different sizes.
fn weights(n: usize, scale: f64) -> Array1<f64> {
    Array1::from_shape_fn(n, |i| scale * (0.1 + (i % 7) as f64))
}

const SCALES: [f64; 10] = [1e-100, 1.0, 1e3, 1e6, 1e8, 1e12, 1e16, 1e20, 1e100, 1e250];

#[test]
fn rows_of_bytes_with_large_weights() {
    let x = Array2::from_shape_fn((40, 8), |(i, j)| ((37 * i + 11 * j) % 256) as u8);
    for scale in SCALES {
        for k in [1, 3] {
            let w = weights(40, scale);
            let family = DirichletProcess::new(1.0);
            rising(&format!("{scale:e}, k = {k}"), &x, Some(&w), k, family);
        }
    }
}

/// Columns that are multiples of one another, except the last.
fn collinear(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 4), |(i, j)| {
        let t = ((i * 7919) % n) as f64 * 15.0 / n as f64;
        let other = if j == 3 { ((i * 31) % 17) as f64 } else { 0.0 };
        (1.0 + j as f64) * t + other
    })
}

#[test]
fn collinear_columns_with_large_weights() {
    for scale in SCALES {
        for k in [1, 3] {
            let (x, w) = (collinear(200), weights(200, scale));
            let family = DirichletProcess::new(1.0);
            rising(&format!("{scale:e}, k = {k}"), &x, Some(&w), k, family);
        }
    }
}

#[test]
fn many_collinear_rows_without_weights() {
    for k in [1, 2, 5] {
        let family = DirichletProcess::new(1.0);
        rising("4 columns", &collinear(20_000), None, k, family.clone());
        let x = Array2::from_shape_fn((20_000, 12), |(i, j)| {
            let other = if j < 6 { (i as f64).cos() } else { 1e6 };
            (j as f64 + 0.3) * (0.37 * i as f64).sin() + other
        });
        rising("12 columns", &x, None, k, family);
        rising(
            "12 columns, far from the prior",
            &x,
            None,
            k,
            DirichletProcess::new(1.0).paper_priors(),
        );
    }
}

/// Clusters along `rank` directions, with as much noise around them.
fn blurred<T: Float>(n: usize, d: usize, rank: usize, noise: f64) -> Array2<T> {
    let mut rng = Rng::from_seed(3);
    let directions = Array2::from_shape_fn((rank, d), |_| rng.normal());
    let mut x = Array2::zeros((n, d));
    for (i, mut row) in x.rows_mut().into_iter().enumerate() {
        for (r, direction) in directions.rows().into_iter().enumerate() {
            let place = rng.normal() + 3.0 * ((i + r) % 4) as f64;
            row.scaled_add(place, &direction);
        }
        row.mapv_inplace(|x: f64| x + noise * rng.normal());
    }
    x.mapv(T::from_f64)
}

#[test]
fn any_noise_any_weight_any_prior() {
    for scale in SCALES {
        for (n, d, rank) in [(40, 3, 2), (150, 8, 3), (60, 20, 20)] {
            let even = weights(n, scale);
            let wide = Array1::from_shape_fn(n, |i| if i % 5 == 0 { scale } else { 1.0 });
            for noise in [0.0, 1e-12, 1e-9, 1e-6, 1e-2] {
                for (k, paper) in [(1, false), (4, false), (4, true)] {
                    let mut family = DirichletProcess::new(1.0);
                    if paper {
                        family = family.paper_priors();
                    }
                    let what = format!("{scale:e} {n} x {d}, noise {noise:e}, k = {k}, {paper}");
                    for w in [&even, &wide] {
                        let x = blurred::<f64>(n, d, rank, noise);
                        rising(&what, &x, Some(w), k, family.clone());
                    }
                    let x = blurred::<f32>(n, d, rank, noise);
                    rising(&what, &x, Some(&even), k, family);
                }
            }
        }
    }
}

/// $\ln \Gamma$ of a large number (Stirling).
fn log_gamma(x: f64) -> f64 {
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + 1.0 / (12.0 * x)
}

/// With one component F is the evidence, which is known: all points on one line, so all that is there across it is the
/// prior.
#[test]
fn the_bound_of_points_on_a_line_is_their_evidence() {
    // At 1e9 the prior would be below 1e-11 of the total weight times the variance (154), and raised.
    for scale in [1.0, 1e3, 1e6] {
        let place =
            |i: usize| 0.7 * (i / 2 + 1) as f64 * if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let x = Array2::from_shape_fn((60, 2), |(i, j)| place(i) * if j == 0 { 1.0 } else { 0.1 });
        let w = Array1::from_shape_fn(60, |i| scale * (1 + (i / 2) % 3) as f64);
        let family = DirichletProcess::new(1.0)
            .mean(array![0.0, 0.0].view())
            .scale(Array2::eye(2).view());
        let got = *rising("a line", &x, Some(&w), 1, family).last().unwrap();

        let total = w.sum();
        let spread: f64 = (0..60).map(|i| w[i] * 1.01 * place(i).powi(2)).sum();
        let degrees = 2.0 + total;
        let gammas = log_gamma(0.5 * degrees) + log_gamma(0.5 * (degrees - 1.0)) - 0.5 * PI.ln();
        let normal = -total * PI.ln() - (1.0 + total).ln() - 0.5 * degrees * spread.ln_1p();
        let stick = -(1.0 + total).ln();
        let expected = normal + gammas + stick;
        let size = expected.abs().max(total);
        assert!(
            (got - expected).abs() <= 1e-9 * size,
            "{scale:e}: {got:e} instead of {expected:e}, off by {:e}",
            (got - expected).abs() / size
        );
    }
}

/// A prior mean has the range of rows: beyond it, means of components are no numbers of their type. Found by a fuzz target.
#[test]
fn a_prior_mean_beyond_the_type_is_an_error() {
    let x = Array2::from_shape_fn((30, 2), |(n, j)| 2e36 * (n * j) as f32);
    let family = DirichletProcess::new(1.0).mean(array![0.0, 1e41].view());
    let fit = algorithms::dp_gmm(3, 1.0).m_step(family);
    let error = fit.build().unwrap().fit(&Dense::new(x.view()).unwrap());
    let error = error.expect_err("a prior mean of 1e41");
    assert!(
        matches!(
            error,
            Error::TooLarge {
                what: "mean",
                column: 1,
                ..
            }
        ),
        "{error}"
    );
}

/// A prior mean is an error if it is so far from the data that rounding relative to it makes rows equal. Found by a fuzz
/// target.
#[test]
fn a_prior_mean_too_far_from_the_data_is_an_error() {
    let x = Array2::from_shape_fn((39, 2), |(n, _)| 1e15 + 5e7 * (n % 3) as f32);
    let data = Dense::new(x.view()).unwrap();
    let fit = |mean: [f64; 2]| {
        let family = DirichletProcess::new(1.0).mean(array![mean[0], mean[1]].view());
        let fit = algorithms::dp_gmm(3, 1.0).m_step(family).max_iterations(2);
        fit.build().unwrap().fit(&data)
    };
    let error = fit([8.5e37, 1.0]).unwrap_err().to_string();
    assert!(error.contains("mean"), "{error}");
    let model = fit([1e15; 2]).unwrap().model;
    let bytes = model.to_bytes(&[]).unwrap();
    assert_eq!(
        DirichletProcessMixture::<f32>::from_bytes(&bytes).unwrap(),
        model
    );
}
