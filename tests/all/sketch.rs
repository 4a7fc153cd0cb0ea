//! Sparsified data: against dense data, against naive formulas, and on input that nobody should send.

use crate::common::{on, rises, rounding, same_on_threads};
use approx::assert_abs_diff_eq;
use coremix::data::Data;
use coremix::m_step::MStep;
use coremix::prelude::*;
use coremix::stage::{Rng, Stage};
use coremix::{Builder, Float, algorithms};
use ndarray::{Array1, Array2, ArrayView2, Axis, Slice, array, s};
use std::f64::consts::PI;

/// `k` spread clusters in `d` columns of different scale, with their labels.
fn clusters(n: usize, d: usize, k: usize, seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    let centres = Array2::from_shape_fn((k, d), |_| 4.0 * rng.normal());
    let scale: Vec<f64> = (0..d).map(|j| 1.0 + (j % 3) as f64).collect();
    Array2::from_shape_fn((n, d), |(n, j)| {
        100.0 + scale[j] * (centres[[n % k, j]] + rng.normal())
    })
}

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| [1.0, 0.5, 3.0, 0.0, 2.0][n % 5])
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

#[track_caller]
fn assert_near(a: f64, b: f64, tolerance: f64) {
    assert!(near(a, b, tolerance), "{a} against {b}");
}

/// Everything that can be compared between two fits.
struct Outcome {
    labels: Array1<u32>,
    free_energies: Vec<f64>,
    means: Array2<f64>,
    log_likelihood: f64,
    quantization_error: f64,
}

macro_rules! outcome {
    ($builder:expr, $data:expr) => {{
        let fit = $builder
            .tolerance(0.0)
            .max_iterations(12)
            .build()
            .unwrap()
            .fit($data)
            .unwrap();
        Outcome {
            labels: fit.model.predict($data).unwrap(),
            free_energies: fit.report.free_energies.clone(),
            means: fit.model.means().mapv(|x| f64::from(x)),
            log_likelihood: fit.model.log_likelihood($data).unwrap(),
            quantization_error: fit.model.quantization_error($data).unwrap(),
        }
    }};
}

#[track_caller]
fn assert_alike(a: &Outcome, b: &Outcome, tolerance: f64) {
    assert_eq!(a.labels, b.labels);
    // When nothing changes any more, rounding decides how many iterations there are.
    for (a, b) in a.free_energies.iter().zip(&b.free_energies) {
        assert_near(*a, *b, tolerance);
    }
    let last = |outcome: &Outcome| *outcome.free_energies.last().unwrap();
    assert_near(last(a), last(b), tolerance);
    assert_near(a.log_likelihood, b.log_likelihood, tolerance);
    assert_near(a.quantization_error, b.quantization_error, tolerance);
    assert_eq!(a.means.dim(), b.means.dim());
    for (a, b) in a.means.iter().zip(&b.means) {
        assert_near(*a, *b, tolerance);
    }
}

#[test]
fn all_entries_are_the_dense_data_for_families_that_may_be_rotated() {
    let (x, w) = (clusters(400, 13, 5, 1), weights(400));
    let dense = Dense::weighted(x.view(), w.view()).unwrap();
    let sketch = Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), 13, 3).unwrap();
    rotated_families(&x, &dense, &sketch);
}

fn rotated_families(x: &Array2<f64>, dense: &Dense<'_, f64>, sketch: &Sketch<f64>) {
    let seeds = x.slice(s![10..15, ..]);
    let given = || Given::new(seeds);
    let k_means = || algorithms::k_means(5).seeder(given());
    assert_alike(
        &outcome!(k_means(), dense),
        &outcome!(k_means(), sketch),
        1e-9,
    );
    let gmm = || algorithms::gmm(5).seeder(given());
    assert_alike(&outcome!(gmm(), dense), &outcome!(gmm(), sketch), 1e-9);
    let isotropic = || gmm().covariance(Covariance::Spherical);
    assert_alike(
        &outcome!(isotropic(), dense),
        &outcome!(isotropic(), sketch),
        1e-9,
    );
    let truncated = || isotropic().e_step(Exhaustive::truncated(2));
    assert_alike(
        &outcome!(truncated(), dense),
        &outcome!(truncated(), sketch),
        1e-9,
    );
}

#[test]
fn all_entries_of_a_diagonal_mixture_are_the_rotated_dense_data() {
    for d in [16, 11] {
        let (x, w) = (clusters(400, d, 3, 1), weights(400));
        let mut builder = Sketch::builder(d, d, 3);
        builder.push_weighted(x.view(), w.view()).unwrap();
        let sketch = builder.finish().unwrap();
        let rotated = sketch.basis().forward(x.view()).unwrap();
        let dense = Dense::weighted(rotated.view(), w.view()).unwrap();
        let (seeds, rotated_seeds) = (x.slice(s![..3, ..]), rotated.slice(s![..3, ..]));
        let gmm =
            |seeds: ArrayView2<'_, f64>| algorithms::sparsified_gmm(3).seeder(Given::new(seeds));
        let on_sketch = outcome!(gmm(seeds), &sketch);
        let mut on_dense = outcome!(gmm(rotated_seeds), &dense);
        let axes = sketch.basis().forward(Array2::eye(d).view()).unwrap();
        on_dense.means = on_dense.means.dot(&axes.t());
        assert_alike(&on_dense, &on_sketch, 1e-9);
    }
}

/// ln p(c, y) of known coordinates, from parameters in the coordinates of the basis.
fn log_joint(
    known: &[(usize, f64)],
    mean: ndarray::ArrayView1<'_, f64>,
    variance: impl Fn(usize) -> f64,
    proportion: f64,
) -> f64 {
    let density = known.iter().map(|&(j, y)| {
        let v = variance(j);
        -0.5 * ((2.0 * PI * v).ln() + (y - mean[j]).powi(2) / v)
    });
    proportion.ln() + density.sum::<f64>()
}

fn log_sum(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + terms.iter().map(|t| (t - most).exp()).sum::<f64>().ln()
}

/// The coordinates that a row of a sketch knows.
fn known(sketch: &Sketch<f64>) -> Vec<Vec<(usize, f64)>> {
    let (indices, values) = (sketch.indices(), sketch.values());
    let row = |(ids, values): (ndarray::ArrayView1<'_, u32>, ndarray::ArrayView1<'_, f64>)| {
        let pairs = ids.iter().zip(values.iter());
        pairs.map(|(&j, &y)| (j as usize, y)).collect()
    };
    indices
        .outer_iter()
        .zip(values.outer_iter())
        .map(row)
        .collect()
}

/// Parameters of a model in the coordinates of a sketch: means, variances (k, d), proportions.
type Parameters = (Array2<f64>, Array2<f64>, Array1<f64>);

/// Log-likelihood, labels and quantization error of rows that know some coordinates, by the formulas.
fn naive(
    rows: &[Vec<(usize, f64)>],
    weights: &Array1<f64>,
    (means, variances, proportions): &Parameters,
) -> (f64, Vec<u32>, f64) {
    let (mut likelihood, mut labels, mut error) = (0.0, Vec::new(), 0.0);
    for (row, &w) in rows.iter().zip(weights) {
        let joints: Vec<f64> = (0..means.nrows())
            .map(|c| {
                let variance = |j| variances[[c, j]];
                log_joint(row, means.row(c), variance, proportions[c])
            })
            .collect();
        likelihood += w * log_sum(&joints);
        let best = (0..joints.len()).max_by(|&a, &b| joints[a].total_cmp(&joints[b]));
        labels.push(best.unwrap() as u32);
        let distance =
            |c: usize| -> f64 { row.iter().map(|&(j, y)| (y - means[[c, j]]).powi(2)).sum() };
        error += w
            * (0..means.nrows())
                .map(distance)
                .fold(f64::INFINITY, f64::min);
    }
    let entries = rows[0].len() as f64;
    (likelihood, labels, error * means.ncols() as f64 / entries)
}

/// Checks a fitted model against the formulas, on the sketch and on dense rows.
macro_rules! check_scores {
    ($fit:expr, $sketch:expr, $x:expr, $w:expr, $variances:expr, $proportions:expr) => {{
        let (fit, sketch) = (&$fit, &$sketch);
        let means = sketch.basis().forward(fit.model.means()).unwrap();
        let parameters = (means, $variances, $proportions);
        let (likelihood, labels, error) = naive(&known(sketch), &$w, &parameters);
        assert_near(fit.model.log_likelihood(sketch).unwrap(), likelihood, 1e-9);
        assert_near(*fit.report.free_energies.last().unwrap(), likelihood, 1e-9);
        assert_near(fit.model.quantization_error(sketch).unwrap(), error, 1e-9);
        assert_eq!(fit.model.predict(sketch).unwrap().to_vec(), labels);
        let score = fit.model.score(sketch).unwrap();
        assert_near(score.log_likelihood, likelihood, 1e-9);
        // Dense rows know all coordinates.
        let rotated = sketch.basis().forward($x.view()).unwrap();
        let all: Vec<Vec<(usize, f64)>> = rotated
            .outer_iter()
            .map(|row| row.iter().copied().enumerate().collect())
            .collect();
        let (likelihood, labels, error) = naive(&all, &$w, &parameters);
        let dense = Dense::weighted($x.view(), $w.view()).unwrap();
        assert_near(fit.model.log_likelihood(&dense).unwrap(), likelihood, 1e-9);
        assert_near(fit.model.quantization_error(&dense).unwrap(), error, 1e-9);
        assert_eq!(fit.model.predict(&dense).unwrap().to_vec(), labels);
    }};
}

#[test]
fn scores_are_the_formulas_over_known_entries_and_never_rescaled() {
    for d in [11, 16] {
        let (x, w) = (clusters(300, d, 4, 2), weights(300));
        let mut builder = Sketch::builder(d, 5, 8).shared(2);
        builder.push_weighted(x.view(), w.view()).unwrap();
        let sketch = builder.finish().unwrap();
        let p = sketch.dim();
        let equal = Array1::from_elem(4, 0.25);
        let gmm = || {
            algorithms::gmm(4)
                .tolerance(1e-7)
                .max_iterations(40)
                .seed(2)
        };

        let fit = gmm().build().unwrap().fit(&sketch).unwrap();
        let variances = Array2::from_elem((4, p), fit.model.variance());
        check_scores!(fit, sketch, x, w, variances, equal);

        let fit = gmm().covariance(Covariance::Spherical).build().unwrap();
        let fit = fit.fit(&sketch).unwrap();
        let variances = fit.model.variances().slice_move(s![.., ..1]);
        let variances = variances.broadcast((4, p)).unwrap().to_owned();
        check_scores!(
            fit,
            sketch,
            x,
            w,
            variances,
            fit.model.proportions().to_owned()
        );

        let fit = gmm().covariance(Covariance::Diagonal).build().unwrap();
        let fit = fit.fit(&sketch).unwrap();
        let variances = fit.model.variances();
        check_scores!(
            fit,
            sketch,
            x,
            w,
            variances,
            fit.model.proportions().to_owned()
        );
    }
}

/// The free energy of truncated supports, and the statistics behind one M-step, from their formulas.
#[test]
fn one_iteration_is_the_formula_per_coordinate() {
    let (x, w, k, d) = (clusters(300, 11, 4, 2), weights(300), 4, 11);
    let sketch = Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), 3, 8).unwrap();
    let rows = known(&sketch);
    let seeds = x.slice(s![..k, ..]);
    let fit = |iterations: usize| {
        let builder = algorithms::sparsified_gmm(k).seeder(Given::new(seeds));
        let builder = builder.tolerance(0.0).max_iterations(iterations);
        builder.build().unwrap().fit(&sketch).unwrap()
    };
    let (start, next) = (fit(0), fit(1));
    let shared = start.model.variances();
    let mut means = sketch.basis().forward(seeds).unwrap();
    let (mut seen, mut first) = (Array2::<f64>::zeros((k, d)), Array2::<f64>::zeros((k, d)));
    let (mut second, mut mass) = (Array2::<f64>::zeros((k, d)), Array1::<f64>::zeros(k));
    for (row, &w) in rows.iter().zip(&w) {
        let joint = |c: usize| log_joint(row, means.row(c), |_| shared[[0, 0]], 0.25);
        let joints: Vec<f64> = (0..k).map(joint).collect();
        let total = log_sum(&joints);
        for c in 0..k {
            let share = w * (joints[c] - total).exp();
            mass[c] += share;
            for &(j, y) in row {
                seen[[c, j]] += share;
                first[[c, j]] += share * y;
                second[[c, j]] += share * y * y;
            }
        }
    }
    means = &first / &seen;
    let variances = &second / &seen - &means * &means;
    let found = sketch.basis().forward(next.model.means()).unwrap();
    for ((place, &mean), &variance) in means.indexed_iter().zip(&variances) {
        assert_near(found[place], mean, 1e-9);
        assert_near(next.model.variances()[place], variance, 1e-7);
    }
    let proportions = &mass / mass.sum();
    for (a, b) in next.model.proportions().iter().zip(&proportions) {
        assert_near(*a, *b, 1e-9);
    }
}

#[test]
fn the_density_is_not_rescaled_and_the_quantization_error_is() {
    // One of the two coordinates of each row: the expected joint density at distance (1, 0) is (e^-1/2 + 1) / 2 times
    // that at distance 0, not e^-1/2.
    let x = clusters(2_000, 2, 1, 5);
    let sketch = Sketch::new(x.view(), 1, 1).unwrap();
    let axes = sketch.basis().forward(Array2::eye(2).view()).unwrap();
    let seed = array![[100.0, 100.0]].dot(&axes.t());
    let builder = algorithms::gmm(1).seeder(Given::new(seed.view()));
    let fit = builder.max_iterations(0).build().unwrap();
    let model = fit.fit(&sketch).unwrap().model;
    let v = model.variance();
    let naive: f64 = known(&sketch)
        .iter()
        .map(|row| -0.5 * ((2.0 * PI * v).ln() + (row[0].1 - 100.0).powi(2) / v))
        .sum();
    assert_near(model.log_likelihood(&sketch).unwrap(), naive, 1e-10);
    let squared: f64 = known(&sketch)
        .iter()
        .map(|r| (r[0].1 - 100.0).powi(2))
        .sum();
    assert_near(
        model.quantization_error(&sketch).unwrap(),
        2.0 * squared,
        1e-10,
    );
    // An estimate of that of the rows.
    let dense = model
        .quantization_error(&Dense::new(x.view()).unwrap())
        .unwrap();
    assert_abs_diff_eq!(2.0 * squared / dense, 1.0, epsilon = 0.1);
}

#[test]
fn covariances_in_the_columns_of_the_data() {
    let mut x = clusters(500, 2, 1, 5);
    x.outer_iter_mut().for_each(|mut row| row[1] += row[0]);
    let mut builder = Sketch::builder(2, 2, 1);
    builder.push(x.view()).unwrap();
    let sketch = builder.finish().unwrap();
    let fit = algorithms::sparsified_gmm(1).build().unwrap();
    let model = fit.fit(&sketch).unwrap().model;
    let (v, covariance) = (model.variances(), model.covariance(0).unwrap());
    let (a, b) = (v[[0, 0]], v[[0, 1]]);
    assert!((a - b).abs() > 0.1 * a);
    for j in 0..2 {
        assert_near(covariance[[j, j]], 0.5 * (a + b), 1e-12);
        assert_near(model.column_variances()[[0, j]], 0.5 * (a + b), 1e-12);
    }
    assert_near(covariance[[0, 1]].abs(), 0.5 * (a - b).abs(), 1e-12);
    assert_near(covariance[[0, 1]], covariance[[1, 0]], 1e-12);

    let x = clusters(500, 7, 2, 5);
    let mut builder = Sketch::builder(7, 4, 1);
    builder.push(x.view()).unwrap();
    let sketch = builder.finish().unwrap();
    let model = fit_diagonal(&sketch);
    let axes = sketch.basis().forward(Array2::eye(7).view()).unwrap();
    let v = model.variances();
    for c in 0..2 {
        let naive = axes.dot(&Array2::from_diag(&v.row(c))).dot(&axes.t());
        let covariance = model.covariance(c).unwrap();
        for (place, &value) in naive.indexed_iter() {
            assert_near(covariance[place], value, 1e-12);
        }
        for j in 0..7 {
            assert_near(model.column_variances()[[c, j]], naive[[j, j]], 1e-12);
        }
    }
    // Columns are explained by their own means and variances.
    let [variances, means] = [model.column_variances(), model.means().to_owned()];
    let shares = model.proportions();
    for (j, nats) in model.explain().columns().into_iter().enumerate() {
        let mean = shares.dot(&means.column(j));
        let squares = means.column(j).mapv(|m| (m - mean).powi(2));
        let variance = shares.dot(&(&squares + &variances.column(j)));
        for c in 0..2 {
            let ratio = variances[[c, j]] / variance;
            let naive = 0.5 * (squares[c] / variance + ratio - 1.0 - ratio.ln());
            assert_near(nats[c], naive, 1e-12);
        }
    }
    assert!(matches!(
        model.covariance(2),
        Err(Error::Parameter {
            name: "component",
            ..
        })
    ));
    // Fitted on dense rows: the variances themselves.
    let fit = algorithms::sparsified_gmm(2).build().unwrap();
    let model = fit.fit(&Dense::new(x.view()).unwrap()).unwrap().model;
    assert_eq!(model.column_variances(), model.variances());
    let diagonal = Array2::from_diag(&model.variances().row(1));
    assert_eq!(model.covariance(1).unwrap(), diagonal);
}

fn fit_diagonal(sketch: &Sketch<f64>) -> coremix::families::GaussianMixture<f64> {
    let builder = algorithms::sparsified_gmm(2).seed(1);
    builder.build().unwrap().fit(sketch).unwrap().model
}

/// A sketch in blocks of these sizes, over and over.
fn in_blocks(x: &Array2<f32>, w: &Array1<f64>, sizes: &[usize], shared: usize) -> Sketch<f32> {
    let mut builder = Sketch::builder(x.ncols(), 6, 4).shared(shared);
    let (mut from, mut sizes) = (0, sizes.iter().cycle());
    while from < x.nrows() {
        let to = (from + sizes.next().unwrap()).min(x.nrows());
        let block = Slice::from(from..to);
        let rows = x.slice_axis(Axis(0), block);
        let weights = w.slice_axis(Axis(0), block);
        builder.push_weighted(rows, weights).unwrap();
        from = to;
    }
    builder.finish().unwrap()
}

#[test]
fn blocks_threads_and_memory_order_do_not_matter() {
    let x = clusters(1_700, 20, 3, 7).mapv(|x| x as f32);
    // Rows without weight first; weights that span hundreds of powers of ten.
    let w = Array1::from_shape_fn(1_700, |n| match n {
        0..700 => 0.0,
        _ => 10f64.powi([-200, 0, 30, 100][n / 5 % 4]),
    });
    let reference = in_blocks(&x, &w, &[1_700], 2);
    let same = |sketch: &Sketch<f32>| {
        assert_eq!(sketch.indices(), reference.indices());
        assert_eq!(sketch.values(), reference.values());
        assert_eq!(sketch.summary(), reference.summary());
        assert_eq!(sketch.frame(), reference.frame());
    };
    for sizes in [
        &[1][..],
        &[3, 0, 511, 2],
        &[512],
        &[700, 1, 1_000],
        &[1_300],
    ] {
        same(&in_blocks(&x, &w, sizes, 2));
    }
    for threads in [1, 2, 3, 7] {
        on(threads, || same(&in_blocks(&x, &w, &[900], 2)));
    }
    let mut turned = Array2::zeros((20, 1_700));
    turned.assign(&x.t());
    let mut builder = Sketch::builder(20, 6, 4).shared(2);
    builder.push_weighted(turned.t(), w.view()).unwrap();
    same(&builder.finish().unwrap());
    let other = in_blocks(&x, &w, &[1_700], 3);
    assert_ne!(other.indices(), reference.indices());
}

#[test]
fn index_sets_are_distinct_sorted_shared_and_uniform() {
    let (n, d, q, shared) = (4_000, 25, 6, 2);
    let x = clusters(n, d, 2, 3);
    let mut builder = Sketch::builder(d, q, 11).shared(shared);
    builder.push(x.view()).unwrap();
    let sketch = builder.finish().unwrap();
    let mut counts = vec![0; d];
    for row in sketch.indices().outer_iter() {
        assert!(row.iter().zip(row.iter().skip(1)).all(|(a, b)| a < b));
        row.iter().for_each(|&j| counts[j as usize] += 1);
    }
    assert_eq!(counts.iter().filter(|c| **c == n).count(), shared);
    let expected = (n * (q - shared)) as f64 / (d - shared) as f64;
    for &count in counts.iter().filter(|c| **c < n) {
        assert!(
            (count as f64 - expected).abs() < 6.0 * expected.sqrt(),
            "{counts:?}"
        );
    }
    // The entries are those of the transformed rows.
    let rotated = sketch.basis().forward(x.view()).unwrap();
    for (n, row) in known(&sketch).iter().enumerate() {
        for &(j, y) in row {
            assert_near(y, rotated[[n, j]], 1e-12);
        }
    }
    assert_ne!(sketch.indices().row(0), sketch.indices().row(1));
}

#[test]
fn the_summary_is_over_the_rows_that_know_a_coordinate() {
    let (x, w) = (clusters(60, 30, 2, 3), weights(60));
    let sketch = Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), 2, 5).unwrap();
    let summary = sketch.summary();
    let rows = known(&sketch);
    let mut variances = Vec::new();
    let mut unknown = Vec::new();
    for j in 0..30 {
        let of: Vec<(f64, f64)> = (rows.iter().zip(&w))
            .filter(|(_, w)| **w > 0.0)
            .flat_map(|(row, &w)| row.iter().filter(|e| e.0 == j).map(move |e| (w, e.1)))
            .collect();
        if of.is_empty() {
            unknown.push(j);
            continue;
        }
        let total: f64 = of.iter().map(|e| e.0).sum();
        let mean = of.iter().map(|(w, y)| w * y).sum::<f64>() / total;
        let variance = of.iter().map(|(w, y)| w * (y - mean).powi(2)).sum::<f64>() / total;
        assert_near(summary.mean[j], mean, 1e-10);
        assert_near(summary.variance[j], variance, 1e-9);
        let low = of.iter().map(|e| e.1).fold(f64::INFINITY, f64::min);
        let high = of.iter().map(|e| e.1).fold(f64::NEG_INFINITY, f64::max);
        assert_near(summary.range[j].0, low, 1e-12);
        assert_near(summary.range[j].1, high, 1e-12);
        variances.push(variance);
    }
    let typical = variances.iter().sum::<f64>() / variances.len() as f64;
    assert!(
        unknown
            .iter()
            .all(|&j| near(summary.variance[j], typical, 1e-9))
    );
    assert_eq!(summary.rows, 48);
    assert_near(summary.total_weight, w.sum(), 1e-12);
}

#[test]
fn seeds_take_the_global_mean_where_they_know_nothing() {
    let x = clusters(500, 40, 4, 3);
    let sketch = Sketch::new(x.view(), 3, 5).unwrap();
    let fit = algorithms::k_means(4).seeder(UniformSeeder);
    let fit = fit.max_iterations(0).build().unwrap();
    let means = fit.fit(&sketch).unwrap().model.means().to_owned();
    let means = sketch.basis().forward(means.view()).unwrap();
    let mean = &sketch.summary().mean;
    for seed in means.outer_iter() {
        let unseen = (0..40).filter(|&j| near(seed[j], mean[j], 1e-9)).count();
        assert_eq!(unseen, 37);
        let row = known(&sketch);
        let is = |row: &Vec<(usize, f64)>| row.iter().all(|&(j, y)| near(seed[j], y, 1e-9));
        assert!(row.iter().any(is), "a seed is a row where that is known");
    }
    // Coordinates that a component never sees are counted.
    let few = x.slice(s![..9, ..]);
    let fit = algorithms::gmm(3).build().unwrap();
    let fit = fit.fit(&Sketch::new(few, 3, 5).unwrap()).unwrap();
    assert!(fit.report.phases.last().unwrap().unobserved > 0);
}

#[test]
fn far_from_zero_in_f32_is_the_rounded_data_in_f64() {
    let far = clusters(600, 24, 3, 9).mapv(|x| (1e6 + x) as f32);
    let same = far.mapv(f64::from);
    let near_by = Sketch::new(same.view(), 8, 2).unwrap();
    let sketch = Sketch::new(far.view(), 8, 2).unwrap();
    for (a, b) in sketch.values().iter().zip(&near_by.values()) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    let seeds = same.slice(s![..3, ..]).to_owned();
    let narrow = seeds.mapv(|x| x as f32);
    let gmm = |seeder: Given<f64>| algorithms::sparsified_gmm(3).seeder(seeder);
    let wide = outcome!(gmm(Given::new(seeds.view())), &near_by);
    let narrow = algorithms::sparsified_gmm(3).seeder(Given::new(narrow.view()));
    let narrow = outcome!(narrow, &sketch);
    assert_eq!(wide.labels, narrow.labels);
    for (a, b) in wide.free_energies.iter().zip(&narrow.free_energies) {
        assert_near(*a, *b, 1e-5);
    }
    for (a, b) in wide.means.iter().zip(&narrow.means) {
        assert!((a - b).abs() < 0.1, "{a} {b}");
    }
    // The model, on dense rows that are as far off.
    let fit = algorithms::sparsified_gmm(3).build().unwrap();
    let model = fit.fit(&sketch).unwrap().model;
    let labels = model.predict(&Dense::new(far.view()).unwrap()).unwrap();
    let on_sketch = model.predict(&sketch).unwrap();
    let agree = labels.iter().zip(&on_sketch).filter(|(a, b)| a == b);
    assert!(agree.count() > 550);
}

#[test]
fn rows_without_weight_are_absent() {
    let x = clusters(300, 9, 3, 1).mapv(|x| x as f32);
    let gmm = || algorithms::sparsified_gmm(3).seed(4);
    let outcome_of = |x: &Array2<f32>, w: &Array1<f64>| {
        let sketch = Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), 4, 1).unwrap();
        outcome!(gmm(), &sketch)
    };
    let mut longer = Array2::from_elem((340, 9), 1e25f32);
    longer.slice_mut(s![..300, ..]).assign(&x);
    let mut w = Array1::zeros(340);
    w.slice_mut(s![..300]).fill(1.0);
    let (a, b) = (outcome_of(&x, &Array1::ones(300)), outcome_of(&longer, &w));
    assert_eq!(a.means, b.means);
    assert_eq!(a.free_energies, b.free_energies);
    // In front they must not become what the others are measured against.
    let mut front = Array2::from_elem((340, 9), 1e25f32);
    front.slice_mut(s![40.., ..]).assign(&x);
    w.fill(1.0);
    w.slice_mut(s![..40]).fill(0.0);
    let sketch = Sketch::of_dense(&Dense::weighted(front.view(), w.view()).unwrap(), 4, 1).unwrap();
    let wide = Sketch::of_dense(
        &Dense::weighted(front.mapv(f64::from).view(), w.view()).unwrap(),
        4,
        1,
    )
    .unwrap();
    let values = sketch.values().into_iter().zip(wide.values());
    for (a, b) in values.skip(40 * 4) {
        assert_abs_diff_eq!(a, b, epsilon = 1e-3);
    }
}

/// Fits, and checks that F never fell and that threads do not matter.
fn never_falls<F, M>(name: &str, sketch: &Sketch<F>, builder: impl Fn() -> Builder<F, M>)
where
    F: Float,
    M: MStep<F> + Stage,
{
    let weight = sketch.summary().total_weight;
    for seed in 0..3 {
        let clusterer = builder().seed(seed).tolerance(0.0).max_iterations(15);
        let clusterer = clusterer.build().unwrap();
        same_on_threads(name, &[3], || {
            let fit = clusterer.fit(sketch).unwrap();
            let (energies, score) = (fit.report.free_energies, fit.model.score(sketch).unwrap());
            rises(name, &energies, weight, rounding::<F>());
            assert!(score.log_likelihood.is_finite() && score.quantization_error.is_finite());
            (energies, score, fit.search_labels)
        });
    }
}

fn everything<F: Float>(sketch: &Sketch<F>) {
    let k = 12;
    macro_rules! families {
        ($name:expr, $builder:expr) => {{
            let shared = || $builder;
            never_falls(concat!($name, ", shared"), sketch, shared);
            let isotropic = || $builder.covariance(Covariance::Spherical);
            never_falls(concat!($name, ", isotropic"), sketch, isotropic);
            let diagonal = || $builder.covariance(Covariance::Diagonal);
            never_falls(concat!($name, ", diagonal"), sketch, diagonal);
        }};
    }
    families!("k-means", algorithms::k_means(k));
    families!("C'", algorithms::k_means_c_prime(k, 3));
    families!("gmm", algorithms::gmm(k));
    families!("lwcs", algorithms::lwcs_k_means(k, 200));
    families!("var-gmm-s", algorithms::var_gmm_s(k, 3, 4));
    families!("vc-gmm", algorithms::vc_gmm(k, 200, 3, 4));
    families!("d-gmm", algorithms::d_gmm(k, 3, 3));
    families!(
        "d-gmm on a coreset",
        algorithms::d_gmm(k, 3, 3).coreset(Lightweight::new(200))
    );
    families!(
        "uniform coreset",
        algorithms::gmm(k).coreset(UniformCoreset::new(200))
    );
    never_falls("lazy", sketch, || algorithms::lazy_k_means(k, 0.1));
}

#[test]
fn every_stage_works_on_a_sketch_and_the_free_energy_never_falls() {
    let (x, w) = (clusters(900, 30, 12, 4), weights(900));
    everything(&Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), 6, 1).unwrap());
    let x = x.mapv(|x| x as f32);
    let mut builder = Sketch::builder(30, 6, 1);
    builder.push_weighted(x.view(), w.view()).unwrap();
    everything(&builder.finish().unwrap());
}

/// To more digits than the law over all algorithms has.
#[test]
fn another_origin_is_the_same_fit() {
    let x = clusters(400, 12, 3, 6);
    let fit = |x: &Array2<f64>| {
        let sketch = Sketch::new(x.view(), 5, 1).unwrap();
        outcome!(algorithms::sparsified_gmm(3).seed(1), &sketch)
    };
    let (base, moved) = (fit(&x), fit(&x.mapv(|x| x + 512.0)));
    assert_eq!(moved.labels, base.labels);
    for (a, b) in base.free_energies.iter().zip(&moved.free_energies) {
        assert_near(*a, *b, 1e-9);
    }
}

#[test]
fn any_sketch_with_the_same_basis_can_be_scored_and_no_other() {
    let x = clusters(300, 12, 3, 6);
    let of = |x: ArrayView2<'_, f64>, q: usize, seed: u64| {
        let mut builder = Sketch::builder(x.ncols(), q, seed);
        builder.push(x).unwrap();
        builder.finish().unwrap()
    };
    let sketch = of(x.view(), 5, 1);
    let fit = algorithms::sparsified_gmm(3).build().unwrap();
    let model = fit.fit(&sketch).unwrap().model;
    // Other rows, another number of entries, another pivot.
    let other = of(x.slice(s![100.., ..]), 7, 1);
    let variances = model.variances();
    let means = sketch.basis().forward(model.means()).unwrap();
    let parameters = (means, variances, model.proportions().to_owned());
    let (likelihood, labels, _) = naive(&known(&other), &Array1::ones(200), &parameters);
    assert_near(model.log_likelihood(&other).unwrap(), likelihood, 1e-9);
    assert_eq!(model.predict(&other).unwrap().to_vec(), labels);

    let error = model.predict(&of(x.view(), 5, 2)).unwrap_err();
    assert!(matches!(error, Error::BasisMismatch { .. }), "{error}");
    let dense = Dense::new(x.view()).unwrap();
    let on_dense = fit.fit(&dense).unwrap().model;
    let error = on_dense.predict(&sketch).unwrap_err();
    assert!(matches!(error, Error::BasisMismatch { .. }), "{error}");
    let narrower = of(x.slice(s![.., ..9]), 5, 1);
    let error = model.predict(&narrower).unwrap_err();
    assert!(matches!(
        error,
        Error::DimensionMismatch {
            expected: 12,
            found: 9,
            ..
        }
    ));
    let narrower = Dense::new(x.slice(s![.., ..9])).unwrap();
    assert!(model.predict(&narrower).is_err());
    let given = Given::new(x.slice(s![..3, ..9]));
    let given = algorithms::k_means(3).seeder(given).build().unwrap();
    assert!(matches!(
        given.fit(&sketch),
        Err(Error::DimensionMismatch { .. })
    ));
}

#[test]
fn samples_have_the_columns_of_the_data() {
    let x = clusters(300, 11, 3, 6);
    let mut builder = Sketch::builder(11, 5, 1);
    builder.push(x.view()).unwrap();
    let sketch = builder.finish().unwrap();
    let gmm = algorithms::gmm(3).build().unwrap();
    let shared = gmm.fit(&sketch).unwrap().model.sample(20, 1).unwrap();
    let own = algorithms::gmm(3)
        .covariance(Covariance::Spherical)
        .build()
        .unwrap();
    let own = own.fit(&sketch).unwrap().model.sample(20, 1).unwrap();
    let diagonal = algorithms::sparsified_gmm(3).build().unwrap();
    let diagonal = diagonal.fit(&sketch).unwrap().model.sample(20, 1).unwrap();
    for (points, _) in [shared, own, diagonal] {
        assert_eq!(points.dim(), (20, 11));
        assert!(points.iter().all(|x| x.is_finite()));
    }
}

fn error<T>(result: Result<T>) -> Error {
    result.err().expect("an error")
}

#[test]
fn bad_settings_are_named() {
    let x = clusters(20, 6, 2, 1);
    let name = |error: Error| match error {
        Error::Parameter { name, .. } => name,
        other => panic!("{other}"),
    };
    assert_eq!(name(error(Sketch::new(x.view(), 0, 1))), "q");
    assert_eq!(name(error(Sketch::new(x.view(), 7, 1))), "q");
    let push = |mut builder: coremix::data::SketchBuilder<f64>| builder.push(x.view());
    assert_eq!(
        name(error(push(Sketch::builder(6, 3, 1).shared(4)))),
        "shared"
    );
    assert_eq!(name(error(push(Sketch::builder(0, 3, 1)))), "columns");
    assert_eq!(
        name(error(push(Sketch::builder(usize::MAX, 3, 1)))),
        "columns"
    );
    assert_eq!(name(error(Sketch::<f64>::builder(6, 9, 1).finish())), "q");
    let mut late = Sketch::builder(6, 3, 1);
    late.push(x.view()).unwrap();
    assert_eq!(name(error(late.shared(2).finish())), "shared");
    let mut late = Sketch::builder(6, 3, 1);
    late.push(x.view()).unwrap();
    assert_eq!(name(error(push(late.shared(2)))), "shared");
}

#[test]
fn bad_rows_are_named_by_their_number_over_all_blocks() {
    let good = clusters(700, 6, 2, 1);
    let mut builder = Sketch::builder(6, 3, 1);
    builder.push(good.view()).unwrap();
    for (value, too_large) in [(f64::NAN, false), (f64::INFINITY, false), (1e150, true)] {
        let mut bad = good.clone();
        bad[[650, 4]] = value;
        bad[[651, 0]] = f64::NAN;
        let error = error(builder.push(bad.view()));
        match error {
            Error::NotFinite { row, column, .. } => {
                assert_eq!((row, column, too_large), (1_350, 4, false));
            }
            Error::TooLarge { row, column, .. } => {
                assert_eq!((row, column, too_large), (1_350, 4, true));
            }
            other => panic!("{other}"),
        }
    }
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        let mut w = Array1::ones(700);
        w[600] = value;
        let error = error(builder.push_weighted(good.view(), w.view()));
        assert!(matches!(error, Error::Weight { row: 1_300, .. }), "{error}");
    }
    let short = Array1::ones(3);
    let e = error(builder.push_weighted(good.view(), short.view()));
    assert!(matches!(
        e,
        Error::LengthMismatch {
            expected: 700,
            found: 3,
            ..
        }
    ));
    let e = error(builder.push(good.slice(s![.., ..5])));
    assert!(matches!(
        e,
        Error::DimensionMismatch {
            expected: 6,
            found: 5,
            ..
        }
    ));
    // Nothing of all that was taken.
    builder.push(good.slice(s![..0, ..])).unwrap();
    let sketch = builder.finish().unwrap();
    let alone = Sketch::new(good.view(), 3, 1).unwrap();
    assert_eq!(sketch.values(), alone.values());
    assert_eq!(sketch.summary(), alone.summary());

    let e = error(Sketch::<f64>::builder(6, 3, 1).finish());
    assert!(matches!(e, Error::Empty { what: "data" }));
    let e = error(Sketch::new(good.slice(s![..0, ..]), 3, 1));
    assert!(matches!(e, Error::Empty { .. }));
    let e = error(Sketch::new(good.slice(s![.., ..0]), 3, 1));
    assert!(matches!(e, Error::Empty { .. }));
    let zero = Array1::<f64>::zeros(700);
    let e = error(Dense::weighted(good.view(), zero.view()));
    assert!(matches!(e, Error::TotalWeight { .. }), "{e}");
    let most = Array1::from_elem(700, f64::MAX);
    let e = error(Dense::weighted(good.view(), most.view()));
    assert!(matches!(e, Error::TotalWeight { .. }), "{e}");
}

/// Whatever can be stored fits, without panic and without NaN.
#[test]
fn extreme_data_fits() {
    let mut rng = Rng::from_seed(2);
    let mut normal = |n: usize, d: usize, scale: f32, offset: f32| {
        Array2::from_shape_fn((n, d), |_| offset + scale * rng.normal() as f32)
    };
    let mut cases = vec![
        ("large", normal(60, 9, 1e30, 0.0)),
        ("small", normal(60, 9, 1e-30, 0.0)),
        ("largest", normal(60, 9, 1e36, 0.0)),
        ("far", normal(60, 9, 1.0, 1e8)),
        ("one column", normal(60, 1, 1.0, 0.0)),
        ("one point each", normal(4, 9, 1.0, 0.0)),
        ("duplicates", Array2::from_elem((60, 9), 3.5f32)),
        ("zeros", Array2::zeros((60, 9))),
    ];
    let mut constant = normal(60, 9, 1.0, 0.0);
    constant.slice_mut(s![.., 2..7]).fill(5.0);
    cases.push(("constant columns", constant));
    for (name, x) in &cases {
        for q in [1, x.ncols().min(4), x.ncols()] {
            let w = Array1::from_shape_fn(x.nrows(), |n| [1e-200, 1e-190][n % 2]);
            let plain = Sketch::new(x.view(), q, 1).unwrap();
            let weighted =
                Sketch::of_dense(&Dense::weighted(x.view(), w.view()).unwrap(), q, 1).unwrap();
            for sketch in [plain, weighted] {
                let dense = Dense::new(x.view()).unwrap();
                macro_rules! fits {
                    ($builder:expr) => {{
                        let fit = $builder.build().unwrap().fit(&sketch).unwrap();
                        assert!(fit.model.means().iter().all(|x| x.is_finite()), "{name}");
                        assert!(fit.report.free_energies.iter().all(|f| f.is_finite()));
                        let score = fit.model.score(&sketch).unwrap();
                        assert!(!score.log_likelihood.is_nan(), "{name}");
                        assert!(!score.quantization_error.is_nan(), "{name}");
                        let score = fit.model.score(&dense).unwrap();
                        assert!(!score.log_likelihood.is_nan(), "{name}");
                    }};
                }
                fits!(algorithms::k_means(3));
                fits!(algorithms::gmm(3).covariance(Covariance::Spherical));
                fits!(algorithms::sparsified_gmm(3));
                fits!(algorithms::vc_gmm(3, 30, 2, 2));
                fits!(algorithms::d_gmm(3, 2, 1).covariance(Covariance::Diagonal));
            }
        }
    }
    // Rows and given centres that are as far out as numbers go.
    let x = normal(60, 9, 1.0, 0.0);
    let sketch = Sketch::new(x.view(), 4, 1).unwrap();
    let model = algorithms::sparsified_gmm(3).build().unwrap();
    let model = model.fit(&sketch).unwrap().model;
    let far = Array2::from_elem((5, 9), f32::MAX / 4.0);
    let score = model.score(&Dense::new(far.view()).unwrap()).unwrap();
    assert!(!score.log_likelihood.is_nan() && !score.quantization_error.is_nan());
    let given = algorithms::gmm(5)
        .seeder(Given::new(far.view()))
        .build()
        .unwrap();
    let fit = given.fit(&sketch).unwrap();
    assert!(fit.model.means().iter().all(|x| x.is_finite()));
    let too_many = algorithms::k_means(61).build().unwrap();
    assert!(matches!(
        too_many.fit(&sketch),
        Err(Error::TooManyClusters { .. })
    ));
}

#[test]
fn bytes_are_computed_in_f32() {
    let x = clusters(200, 12, 3, 6).mapv(|x| x.clamp(0.0, 255.0) as u8);
    let a: Sketch<f32> = Sketch::new(x.view(), 5, 1).unwrap();
    let b = Sketch::new(x.mapv(f32::from).view(), 5, 1).unwrap();
    assert_eq!(a.values(), b.values());
    assert_eq!(a.summary(), b.summary());
}

/// A coordinate that no row keeps is at the mean of all rows, not at that of the row everything is relative to.
#[test]
fn coordinates_that_nobody_keeps_are_at_the_mean() {
    let mut rng = Rng::from_seed(4);
    let x = Array2::from_shape_fn((700, 12), |(n, j)| {
        1e3 + (n % 3 * j) as f64 + if n == 0 { 50.0 } else { rng.normal() }
    });
    let w = Array1::from_shape_fn(700, |n| 0.5 + (n % 4) as f64);
    let mut builder = Sketch::<f64>::builder(12, 3, 5).shared(3);
    builder.push_weighted(x.view(), w.view()).unwrap();
    let sketch = builder.finish().unwrap();
    let fit = algorithms::k_means(1)
        .build()
        .unwrap()
        .fit(&sketch)
        .unwrap();
    let mean = w.dot(&x) / w.sum();
    assert_eq!(fit.report.phases.last().unwrap().unobserved, 9);
    for (got, mean) in fit.model.means().row(0).iter().zip(&mean) {
        assert!((got - mean).abs() < 1e-9, "{got} {mean}");
    }
}
