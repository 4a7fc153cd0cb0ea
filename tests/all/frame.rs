//! Outliers and columns of different scales leave the digits of all other rows alone (E24).

use crate::common::{Known, Settings, all};
use coremix::prelude::*;
use coremix::{Float, algorithms};
use ndarray::{Array1, Array2, ArrayView2};

/// Numbers that repeat no pattern, in [0, 1).
fn uniform(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_749_894_9 + (i * i) as f64 * 0.414_213_562_373_095_1).fract()
}

/// `n` points of a square of this side, and one at (`far`, `far`).
fn square_and_outlier<F: Float>(n: usize, side: f64, far: f64) -> Array2<F> {
    Array2::from_shape_fn((n + 1, 2), |(i, j)| {
        F::from_f64(if i == n / 3 {
            far
        } else {
            side * uniform(2 * i + j)
        })
    })
}

/// Half of the points near 1e6, half in 0..1e-3.
fn two_scales<F: Float>(n: usize) -> Array2<F> {
    Array2::from_shape_fn((n, 2), |(i, j)| {
        let x = uniform(2 * i + j);
        F::from_f64(if i % 2 == 0 { 1e6 + x } else { 1e-3 * x })
    })
}

/// The weighted squared distances to the nearest means, in `f64`, one by one.
fn brute_force<F: Float>(
    x: ArrayView2<'_, F>,
    w: Option<&Array1<f64>>,
    means: ArrayView2<'_, F>,
) -> f64 {
    let rows = x.rows().into_iter().enumerate();
    rows.map(|(n, row)| {
        let squared = means.rows().into_iter().map(|mean| {
            let apart = row.iter().zip(mean).map(|(a, b)| a.to_f64() - b.to_f64());
            apart.map(|t| t * t).sum::<f64>()
        });
        w.map_or(1.0, |w| w[n]) * squared.fold(f64::INFINITY, f64::min)
    })
    .sum()
}

/// The quantization error of every algorithm is what its means give.
fn errors_are_those_of_the_means<F: Float>(what: &str, x: &Array2<F>, k: usize, tolerance: f64) {
    let weights = Array1::from_shape_fn(x.nrows(), |n| (1 + n % 3) as f64);
    for w in [None, Some(&weights)] {
        let data = match w {
            None => Dense::new(x.view()).unwrap(),
            Some(w) => Dense::weighted(x.view(), w.view()).unwrap(),
        };
        // The means of a sketch come back through a transform, which mixes the digits of all columns.
        for algorithm in all::<F>().iter().filter(|a| a.rows == Known::Dense) {
            let name = format!("{what}, {}, weighted {}", algorithm.name, w.is_some());
            let fit = match (algorithm.fit)(&data, &Settings::new(k, 3)) {
                Err(Error::TooManyClusters { .. }) => continue,
                fit => fit.unwrap_or_else(|error| panic!("{name}: {error}")),
            };
            let found = fit.model.quantization_error(&data).unwrap();
            let naive = brute_force(x.view(), w, fit.means.view());
            assert!(
                (found - naive).abs() <= tolerance * naive,
                "{name}: {found:e}, by brute force {naive:e}"
            );
        }
    }
}

fn hostile<F: Float>(tolerance: f64) {
    // As far as squares of near rows are no less than the type has, in the unit of the widest range.
    for far in [1e10, -1e10, 1e15] {
        let x = square_and_outlier::<F>(999, 21.0, far);
        errors_are_those_of_the_means(&format!("an outlier at {far:e}"), &x, 5, tolerance);
    }
    let mut both = square_and_outlier::<F>(500, 21.0, 1e15);
    both.row_mut(7).fill(F::from_f64(-1e15));
    errors_are_those_of_the_means("outliers on both sides", &both, 6, tolerance);
    errors_are_those_of_the_means("rows of two scales", &two_scales::<F>(400), 5, tolerance);
    let scales = [1e-20, 1.0, 1e12];
    let columns = Array2::from_shape_fn((300, 3), |(i, j)| {
        F::from_f64(scales[j] * uniform(3 * i + j))
    });
    errors_are_those_of_the_means("columns of different scales", &columns, 4, tolerance);
}

#[test]
fn quantization_errors_are_those_of_the_means_in_f32() {
    hostile::<f32>(1e-4);
}

#[test]
fn quantization_errors_are_those_of_the_means_in_f64() {
    hostile::<f64>(1e-9);
    let x = square_and_outlier::<f64>(999, 21.0, 1e30);
    errors_are_those_of_the_means("an outlier at 1e30", &x, 5, 1e-9);
    let x = square_and_outlier::<f64>(300, 21.0, 1e140);
    errors_are_those_of_the_means("an outlier at 1e140", &x, 5, 1e-9);
}

/// In `f32` the squares of all other differences underflow: the fit is an error that names the row.
#[test]
fn an_outlier_that_the_type_cannot_hold_beside_the_others_is_named() {
    for (n, far) in [(8, 1e30), (20, -1e30), (999, 1e30), (9_000, 1e25)] {
        let x = square_and_outlier::<f32>(n, 21.0, far);
        let data = Dense::new(x.view()).unwrap();
        let fit = algorithms::k_means(3).build().unwrap().fit(&data);
        let shown = fit.unwrap_err().to_string();
        let row = format!("row {} is ", n / 3);
        assert!(shown.contains(&row) && shown.contains("scale"), "{shown}");
        // With weight 0 the row does not matter.
        let w = Array1::from_shape_fn(n + 1, |i| f64::from(u8::from(i != n / 3)));
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        assert!(algorithms::k_means(3).build().unwrap().fit(&data).is_ok());
    }
}

/// With an outlier, all other rows are clustered as without it, after as many M-steps. (Under an outlier the
/// variance is at its least value, and F settles early.)
#[test]
fn rows_beside_an_outlier_are_clustered_as_without_it() {
    for (far, seed) in [1e10, 1e15]
        .into_iter()
        .flat_map(|far| (1..6).map(move |seed| (far, seed)))
    {
        let n = 999;
        let x = square_and_outlier::<f32>(n, 21.0, far);
        let kept: Vec<usize> = (0..=n).filter(|&i| i != n / 3).collect();
        let without = x.select(ndarray::Axis(0), &kept);
        let error = |x: &Array2<f32>, k: usize| {
            let data = Dense::new(x.view()).unwrap();
            let builder = algorithms::k_means(k).max_iterations(1);
            let fit = builder.restarts(3).seed(seed).build().unwrap();
            let model = fit.fit(&data).unwrap().model;
            brute_force(x.view(), None, model.means())
        };
        // One more component, which the outlier takes.
        let (with, alone) = (error(&x, 301), error(&without, 300));
        assert!(
            with < 1.1 * alone,
            "{far:e}, seed {seed}: {with} with it, {alone} without"
        );
    }
}

#[test]
fn many_components_are_not_empty_on_two_scales() {
    let x = two_scales::<f32>(2_000);
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::k_means(300).seed(2).build().unwrap();
    let model = fit.fit(&data).unwrap().model;
    let mut sizes = vec![0; 300];
    for label in model.predict(&data).unwrap() {
        sizes[label as usize] += 1;
    }
    // The rows near 1e6 have few values in f32: 17 by 17 of them, and as many components at most.
    let empty = sizes.iter().filter(|size| **size == 0).count();
    assert!(empty < 60, "{empty} empty components");
}
