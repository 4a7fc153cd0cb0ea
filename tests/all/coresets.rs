//! Laws of the coresets that a fit draws: how even the chances of the rows are, and how much the costs of centres are off.

use crate::common::{blobs, squared_distance};
use approx::assert_abs_diff_eq;
use coremix::algorithms;
use coremix::coreset::{Coreset, Subset};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array1, Array2, ArrayView2, Axis};

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

/// Cost of centres: the squared distances of rows to the nearest of them, times weights.
fn cost(x: ArrayView2<'_, f64>, weights: impl Fn(usize) -> f64, centres: &Array2<f64>) -> f64 {
    let rows = x.outer_iter().enumerate();
    let costs = rows.map(|(n, row)| {
        let squared = centres
            .outer_iter()
            .map(|centre| squared_distance(row, centre));
        weights(n) * squared.fold(f64::INFINITY, f64::min)
    });
    costs.sum()
}

/// Centres that a coreset may be wrong about: fitted to it, far from all rows, all on the mean, at random on many scales, and on rows:
/// any, those that the coreset lacks, and the first, which are far away.
fn hostile(x: &Array2<f64>, fit: &Fit<GaussianMixture<f64>>, seed: u64) -> Vec<Array2<f64>> {
    let fitted = fit.model.means().to_owned();
    let (k, d) = fitted.dim();
    let mut rng = Rng::from_seed(seed);
    let drawn = &fit.coreset.as_ref().unwrap().rows;
    let lacking: Vec<usize> = (0..x.nrows())
        .filter(|n| !drawn.contains(n))
        .take(k)
        .collect();
    let any: Vec<usize> = (0..k).map(|_| rng.below(x.nrows())).collect();
    let first: Vec<usize> = (0..k).collect();
    let mean = x.mean_axis(Axis(0)).unwrap();
    let mut all = vec![fitted, Array2::from_elem((k, d), 1e5)];
    all.push(mean.broadcast((k, d)).unwrap().to_owned());
    all.extend([any, lacking, first].map(|rows| x.select(Axis(0), &rows)));
    all.extend(
        [0.1, 10.0, 1e3].map(|scale| Array2::from_shape_fn((k, d), |_| scale * rng.normal())),
    );
    all
}

/// The largest error of the cost of hostile centres, over the sum of their cost and that of the mean.
fn worst_error(x: &Array2<f64>, k: usize, coreset: impl Coreset<f64> + 'static, seed: u64) -> f64 {
    let data = Dense::new(x).unwrap();
    let fit = algorithms::k_means(k).coreset(coreset).seed(seed);
    let fit = fit.build().unwrap().fit(&data).unwrap();
    let Subset { rows, weights, .. } = fit.coreset.as_ref().unwrap();
    let few = x.select(Axis(0), rows);
    let mean = x.mean_axis(Axis(0)).unwrap().insert_axis(Axis(0));
    let spread = cost(x.view(), |_| 1.0, &mean);
    let errors = hostile(x, &fit, seed).into_iter().map(|centres| {
        let all = cost(x.view(), |_| 1.0, &centres);
        let estimate = cost(few.view(), |i| weights[i], &centres);
        (estimate - all).abs() / (all + spread)
    });
    errors.fold(0.0, f64::max)
}

/// The bound of Bachem, Lucic and Krause (KDD 2018): a lightweight coreset of $c (d k \ln k + \ln 1 / \delta) / \epsilon^2$ draws
/// is off by at most $\epsilon / 2$ times the costs of the centres and of the mean, for all centres at once, with probability
/// $1 - \delta$. Here $c = 1$. A uniform coreset of the same size is off by more where few rows have most of the cost.
#[test]
fn lightweight_coresets_keep_their_bound() {
    const DELTA: f64 = 0.1;
    const DRAWS: u64 = 40;
    const EPSILON: f64 = 0.2;
    for (d, k) in [(2, 5), (5, 3)] {
        let x = with_outliers(2_000, d, 6);
        let size = ((d * k) as f64 * (k as f64).ln() - DELTA.ln()) / EPSILON.powi(2);
        let size = size.ceil() as usize;
        let broken = |errors: &[f64]| errors.iter().filter(|e| **e > EPSILON / 2.0).count();
        let each = |of: &dyn Fn(u64) -> f64| (0..DRAWS).map(of).collect::<Vec<_>>();
        let lightweight = each(&|seed| worst_error(&x, k, Lightweight::new(size), seed));
        let uniform = each(&|seed| worst_error(&x, k, UniformCoreset::new(size), seed));
        let allowed = (DELTA * DRAWS as f64) as usize;
        assert!(broken(&lightweight) <= allowed, "{lightweight:?}");
        assert!(broken(&uniform) > DRAWS as usize / 2, "{uniform:?}");
    }
}
