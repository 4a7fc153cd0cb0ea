//! Laws of the coresets that a fit draws: how even the chances of the rows are.

use crate::common::{blobs, squared_distance};
use approx::assert_abs_diff_eq;
use coremix::algorithms;
use coremix::coreset::Coreset;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array1, Array2, Axis};

/// Blobs, of which the first rows are far away.
fn with_outliers(n: usize, d: usize, far: usize) -> Array2<f64> {
    let mut x = blobs(n, d, 4, 5);
    let mut rng = Rng::from_seed(6);
    let outliers = x.iter_mut().take(far * d);
    outliers.for_each(|x| *x += 1_000.0 * rng.normal());
    x
}

fn fit(
    x: &Array2<f64>,
    w: &Array1<f64>,
    coreset: impl Coreset<f64> + 'static,
    seed: u64,
) -> Fit<GaussianMixture<f64>> {
    let data = Dense::weighted(x, w).unwrap();
    let builder = algorithms::k_means(2).max_iterations(0).seed(seed);
    builder
        .coreset(coreset)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
}

#[test]
fn the_entropy_of_a_coreset_is_that_of_the_formula() {
    let (n, size, seeds) = (1_000, 200, 40);
    let x = with_outliers(n, 3, 5);
    let w = Array1::from_shape_fn(n, |n| (n % 3) as f64);
    let mean = w.dot(&x) / w.sum();
    let d2 = Array1::from_shape_fn(n, |i| squared_distance(x.row(i), mean.view()));
    let q = &w * (0.5 / w.sum() + 0.5 * &d2 / w.dot(&d2));
    let rows = w.iter().filter(|w| **w > 0.0).count() as f64;
    let nats = q.mapv(|q: f64| if q > 0.0 { -q.ln() } else { 0.0 });
    let expected = q.dot(&nats) / rows.ln();
    let variance = q.dot(&(&nats / rows.ln() - expected).mapv(|x| x * x));
    assert!(expected < 0.8, "not even: {expected}");

    let order: Vec<usize> = (0..n).rev().collect();
    let (turned, turned_w) = (x.select(Axis(0), &order), w.select(Axis(0), &order));
    for (x, w) in [(&x, &w), (&turned, &turned_w)] {
        let entropies = Array1::from_shape_fn(seeds, |seed| {
            let fit = fit(x, w, Lightweight::new(size), seed as u64);
            fit.report.coreset_entropy.unwrap()
        });
        let error = (variance / (size * seeds) as f64).sqrt();
        assert_abs_diff_eq!(entropies.mean().unwrap(), expected, epsilon = 4.0 * error);
        assert!(
            entropies
                .iter()
                .all(|entropy| (0.0..=1.0).contains(entropy))
        );
    }
    let entropy = |x: &Array2<f64>| fit(x, &w, Lightweight::new(size), 7).report.coreset_entropy;
    let scaled = entropy(&(&x * 1_000.0)).unwrap();
    assert_abs_diff_eq!(scaled, entropy(&x).unwrap(), epsilon = 1e-9);
}

#[test]
fn the_entropy_is_one_where_all_rows_have_the_same_chance() {
    let x = with_outliers(300, 2, 3);
    let w = Array1::from_shape_fn(300, |n| (n % 3) as f64);
    let uniform = fit(&x, &w, UniformCoreset::new(50), 1).report;
    assert_abs_diff_eq!(uniform.coreset_entropy.unwrap(), 1.0, epsilon = 1e-12);
    assert!(uniform.to_string().contains("normalised entropy 1.000"));
    let equal = fit(
        &Array2::ones((300, 2)),
        &Array1::ones(300),
        Lightweight::new(50),
        1,
    )
    .report;
    assert_abs_diff_eq!(equal.coreset_entropy.unwrap(), 1.0, epsilon = 1e-12);
    for whole in [fit(&x, &w, Full, 1), fit(&x, &w, Lightweight::new(200), 1)] {
        assert_eq!(whole.report.coreset_entropy, None);
    }
}
