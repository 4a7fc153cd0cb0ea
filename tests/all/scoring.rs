//! Answers of models on data, compared with naive sums over all components, in `f64`, of the same numbers.

use crate::common::blobs;
use coremix::Float;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array1, Array2, Axis};
use std::f64::consts::PI;

/// Points, means and a standard deviation: components that are far apart, that have a few neighbors, and that overlap; with
/// copies among the means, far from 0, and with one mean that is far out.
fn cases(n: usize, k: usize, d: usize) -> Vec<(String, Array2<f64>, Array2<f64>, f64)> {
    let mut rng = Rng::from_seed(7);
    let mut cases = Vec::new();
    for (name, offset) in [
        ("", 0.0),
        (", copies", 0.0),
        (", far off", 3e5),
        (", an outlier", 0.0),
    ] {
        for (kind, spread) in [
            ("tight", 0.02),
            ("near", 0.3),
            ("overlapping", 1.5),
            ("wide", 30.0),
        ] {
            // Numbers this far from 0 are stored in steps of 1/32 in `f32`.
            let spread = if offset > 0.0 { 20.0 * spread } else { spread };
            let mut means = Array2::from_shape_fn((k, d), |_| {
                offset + rng.normal() * if offset > 0.0 { 20.0 } else { 1.0 }
            });
            if name == ", copies" {
                for c in (1..k).step_by(2) {
                    let row = means.row(c / 2).to_owned();
                    means.row_mut(c).assign(&row);
                }
            }
            if name == ", an outlier" {
                means.row_mut(k / 2).fill(4e3);
            }
            let x =
                Array2::from_shape_fn((n, d), |(i, j)| means[[i % k, j]] + spread * rng.normal());
            cases.push((format!("{kind}{name}"), x, means, spread));
        }
    }
    cases
}

/// Weights of clusters, and the row nearest to each mean, of all kinds of rows: by the labels and naive distances.
#[test]
fn sizes_and_medoids_are_those_of_the_labels() {
    let x = blobs::<f64>(900, 4, 6, 3);
    let w = Array1::from_shape_fn(900, |n| [1.0, 0.0, 2.5][n % 3]);
    let mut holes = x.clone();
    for n in 0..900 {
        holes[[n, n % 4]] = f64::NAN;
    }
    holes.row_mut(7).fill(f64::NAN);
    for kind in [
        Covariance::TiedSpherical,
        Covariance::Diagonal,
        Covariance::Full,
    ] {
        let data = Dense::weighted(&x, &w).unwrap();
        let with_missing = Dense::weighted_with_missing(&holes, &w).unwrap();
        let fit = algorithms::gmm(7).covariance(kind).fit(&data).unwrap();
        for (x, data) in [(&x, data), (&holes, with_missing)] {
            let (labels, variances) = (fit.model.predict(&data).unwrap(), fit.model.variances());
            let mut sizes = [0.0; 7];
            let mut medoids = [None; 7];
            for (n, (row, label)) in x.outer_iter().zip(&labels).enumerate() {
                let c = *label as usize;
                sizes[c] += w[n];
                let lacks = row.iter().filter(|x| x.is_nan()).count() as f64;
                let of_missing = row.iter().zip(variances.row(c));
                let of_missing = of_missing.filter(|(x, _)| x.is_nan()).map(|(_, v)| v);
                let known = row.iter().zip(fit.model.means().row(c).to_owned());
                let known = known.filter(|(x, _)| !x.is_nan());
                let squared: f64 = known.map(|(x, m)| (x - m).powi(2)).sum();
                let squared = squared + of_missing.sum::<f64>();
                let is_nearer = medoids[c].is_none_or(|(_, least)| squared < least);
                if w[n] > 0.0 && lacks < 4.0 && is_nearer {
                    medoids[c] = Some((n, squared));
                }
            }
            assert_eq!(fit.model.sizes(&data).unwrap().to_vec(), sizes);
            let found = fit.model.medoids(&data).unwrap();
            for (found, expected) in found.into_iter().zip(medoids) {
                assert_eq!(
                    found.map(|of_one| of_one.0),
                    expected.map(|of_one| of_one.0)
                );
                if let (Some(found), Some(expected)) = (found, expected) {
                    assert!((found.1 - expected.1).abs() < 1e-9 * (1.0 + expected.1));
                }
            }
        }
    }
}

/// The mean of ln p(x | c) - ln p(x) over rows drawn from a component, of each column.
#[test]
fn explanations_are_mean_differences_of_densities() {
    let x = blobs::<f64>(2_000, 3, 4, 5);
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::gmm(4)
        .covariance(Covariance::Diagonal)
        .fit(&data)
        .unwrap();
    let (model, nats) = (&fit.model, fit.model.explain());
    let (means, variances, shares) = (model.means(), model.variances(), model.proportions());
    let mut rng = Rng::from_seed(2);
    let log_density = |x: f64, m: f64, v: f64| -0.5 * ((2.0 * PI * v).ln() + (x - m).powi(2) / v);
    for j in 0..3 {
        let mean: f64 = (0..4).map(|c| shares[c] * means[[c, j]]).sum();
        let squares = (0..4).map(|c| shares[c] * (variances[[c, j]] + means[[c, j]].powi(2)));
        let variance = squares.sum::<f64>() - mean.powi(2);
        for c in 0..4 {
            let (m, v) = (means[[c, j]], variances[[c, j]]);
            let each = (0..40_000).map(|_| {
                let x = m + v.sqrt() * rng.normal();
                log_density(x, m, v) - log_density(x, mean, variance)
            });
            let expected = each.sum::<f64>() / 40_000.0;
            assert!(
                (nats[[c, j]] - expected).abs() < 0.02 * (1.0 + expected),
                "{c} {j}"
            );
        }
    }
}

/// Answers of a mixture on a row, computed naively.
struct Naive {
    log_density: f64,
    /// The least scaled squared distance to a component that is there.
    nearest: f64,
    responsibilities: Vec<f64>,
}

/// Variances are (k, d).
fn naive<F: Float>(
    x: &Array2<F>,
    means: &Array2<F>,
    variances: &Array2<f64>,
    proportions: &Array1<f64>,
) -> Vec<Naive> {
    let of_row = |row: ndarray::ArrayView1<'_, F>| {
        let mut nearest = f64::INFINITY;
        let mut logs = Vec::new();
        for (c, mean) in means.rows().into_iter().enumerate() {
            let (mut log, mut quadratic) = (proportions[c].ln(), 0.0);
            for ((x, mu), v) in row.iter().zip(mean).zip(variances.row(c)) {
                let t = x.to_f64() - mu.to_f64();
                quadratic += 0.5 * t * t / v;
                log -= 0.5 * (2.0 * PI * v).ln();
            }
            if proportions[c] > 0.0 {
                nearest = f64::min(nearest, quadratic);
            }
            logs.push(log - quadratic);
        }
        let most = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
        let log_density = most + sum.ln();
        Naive {
            log_density,
            nearest,
            responsibilities: logs.iter().map(|log| (log - log_density).exp()).collect(),
        }
    };
    x.rows().into_iter().map(of_row).collect()
}

/// Log-densities and responsibilities are the naive ones, and the other answers agree with them and with each other.
fn check<F: Float>(
    name: &str,
    model: &dyn Mixture<F>,
    x: &Array2<F>,
    expected: &[Naive],
    within: f64,
) {
    let data = Dense::new(x.view()).unwrap();
    let densities = model.log_densities(&data).unwrap();
    let responsibilities = model.responsibilities(&data).unwrap();
    for (i, (found, row)) in densities.iter().zip(expected).enumerate() {
        let (expected, off) = (row.log_density, (found - row.log_density).abs());
        assert!(
            off <= within * (1.0 + row.nearest),
            "{name}, row {i}: {found} {expected}, off {off:e}"
        );
        // The errors of two log-joints; those of components far behind are larger, and their shares so much smaller.
        let within = 4.0 * within * (1.0 + row.nearest) + F::EPSILON;
        for (q, p) in responsibilities.row(i).iter().zip(&row.responsibilities) {
            let off = (q.to_f64() - p).abs();
            assert!(off <= within, "{name}, row {i}: {q} {p}, off {off:e}");
        }
    }
    let sum: f64 = expected.iter().map(|row| row.log_density).sum();
    let size = |row: &Naive| 1.0 + row.log_density.abs() + row.nearest;
    let size: f64 = expected.iter().map(size).sum();
    let likelihood = model.log_likelihood(&data).unwrap();
    assert!(
        (likelihood - sum).abs() <= within * size,
        "{name}: {likelihood} {sum}"
    );
    let score = model.score(&data).unwrap();
    assert_eq!(score.labels, model.predict(&data).unwrap(), "{name}");
    assert_eq!(score.log_likelihood, likelihood, "{name}");
    let error = model.quantization_error(&data).unwrap();
    let off = (score.quantization_error - error).abs();
    assert!(off <= 1e-12 * error, "{name}: off {off:e} of {error}");
}

fn shared<F: Float>(within: f64) {
    // Few components and many, a whole number of panels and not, short rows and long ones.
    for (n, k, d) in [
        (150, 3, 2),
        (300, 150, 3),
        (250, 64, 9),
        (400, 300, 16),
        (120, 90, 140),
    ] {
        for (name, x, means, spread) in cases(n, k, d) {
            let (x, means) = (x.mapv(F::from_f64), means.mapv(F::from_f64));
            let variance = spread * spread;
            let model = GaussianMixture::tied_spherical(means.view(), variance).unwrap();
            let variances = Array2::from_elem((k, d), variance);
            let expected = naive(
                &x,
                &means,
                &variances,
                &Array1::from_elem(k, 1.0 / k as f64),
            );
            check(
                &format!("{name}, k {k}, d {d}"),
                &model,
                &x,
                &expected,
                within,
            );
        }
    }
}

#[test]
fn log_densities_of_one_variance_are_naive_sums() {
    shared::<f32>(4e-6);
    shared::<f64>(2e-12);
}

/// Also where a proportion is 0, and where one component has a variance so much smaller than all others that products of
/// its rows would lose their digits (E46).
fn own<F: Float>(within: f64) {
    const NARROW: usize = 4;
    let (n, k, d) = (200, 90, 12);
    for (name, mut x, means, spread) in cases(n, k, d) {
        for mut row in x.rows_mut().into_iter().skip(NARROW).step_by(k) {
            let mean = means.row(NARROW);
            row.zip_mut_with(&mean, |x, mu| *x = mu + 1e-4 * (*x - mu));
        }
        let (x, means) = (x.mapv(F::from_f64), means.mapv(F::from_f64));
        let mut proportions = Array1::from_shape_fn(k, |c| [0.0, 1.0, 3.0][c % 3]);
        proportions /= proportions.sum();
        let narrow = |c: usize| if c == NARROW { 1e-8 } else { 1.0 };
        let factor = |c: usize, j: usize| narrow(c) * (0.5 + ((c + 3 * j) % 5) as f64 / 4.0);
        let per_column = Array2::from_shape_fn((k, d), |(c, j)| spread * spread * factor(c, j));
        let per_component = per_column.index_axis(Axis(1), 0).to_owned();
        let model = GaussianMixture::from_parameters(
            Covariance::Spherical,
            means.view(),
            per_component.view(),
            proportions.view(),
        );
        let same = Array2::from_shape_fn((k, d), |(c, _)| per_component[c]);
        let expected = naive(&x, &means, &same, &proportions);
        check(
            &format!("{name}, isotropic"),
            &model.unwrap(),
            &x,
            &expected,
            within,
        );
        let model = GaussianMixture::from_parameters(
            Covariance::Diagonal,
            means.view(),
            per_column.view(),
            proportions.view(),
        );
        let expected = naive(&x, &means, &per_column, &proportions);
        check(
            &format!("{name}, diagonal"),
            &model.unwrap(),
            &x,
            &expected,
            within,
        );
    }
}

#[test]
fn log_densities_of_own_variances_are_naive_sums() {
    own::<f32>(2e-5);
    own::<f64>(1e-11);
}

/// With this many rows and components labels are found by cells.
#[test]
fn labels_of_many_components() {
    let mut rng = Rng::from_seed(3);
    let (n, k, d) = (3_000, 2_100, 4);
    for (apart, spread) in [(5.0, 0.2), (0.0, 1.0)] {
        let groups = Array2::from_shape_fn((25, d), |_| apart * rng.normal());
        let means = Array2::from_shape_fn((k, d), |(c, j)| groups[[c % 25, j]] + rng.normal());
        let x = Array2::from_shape_fn((n, d), |(i, j)| means[[i % k, j]] + spread * rng.normal());
        let data = Dense::new(x.view()).unwrap();
        let model = GaussianMixture::tied_spherical(means.view(), 1.0).unwrap();
        let squared = |i: usize, c: u32| -> f64 {
            let pairs = x.row(i).into_iter().zip(means.row(c as usize));
            pairs.map(|(a, b)| (a - b).powi(2)).sum()
        };
        let nearest = |i: usize| -> u32 {
            let order = |a: &u32, b: &u32| squared(i, *a).total_cmp(&squared(i, *b));
            (0..k as u32).min_by(order).unwrap()
        };
        let nearest = Array1::from_shape_fn(n, nearest);
        // Fewer rows do not make the cells.
        let few = Dense::new(x.slice(ndarray::s![..100, ..])).unwrap();
        let first = nearest.slice(ndarray::s![..100]);
        assert_eq!(model.predict(&few).unwrap(), first);
        assert_eq!(model.predict(&data).unwrap(), nearest);
        assert_eq!(model.predict(&few).unwrap(), first);
    }
}

/// One column so wide that the squares of all others are too small for the type: `score` has the labels of `predict`.
#[test]
fn labels_are_the_same_where_squares_are_too_small() {
    let mut rng = coremix::stage::Rng::from_seed(0);
    let centre: Vec<f64> = (0..4).map(|_| 4.0 * rng.normal()).collect();
    let near = Array2::from_shape_fn((8, 4), |(_, j)| centre[j] + rng.normal());
    let x = Array2::from_shape_fn((512, 4), |(n, j)| match j {
        2 if n % 3 == 0 => 8e37f32,
        _ => near[[n % 8, j]] as f32,
    });
    let data = Dense::new(x.view()).unwrap();
    for seed in 0..20 {
        for k in [3, 10, 60] {
            let fit = algorithms::k_means(k).seed(seed).max_iterations(0);
            let model = fit.build().unwrap().fit(&data).unwrap().model;
            let labels = model.predict(&data).unwrap();
            assert_eq!(model.score(&data).unwrap().labels, labels, "{seed} {k}");
        }
    }
}

/// Log-densities over many components, near ones and ones out of reach, are the naive sums; labels, error and likelihood
/// together are those one by one, and a family whose likeliest component is the nearest is searched once for all three.
#[test]
fn densities_over_many_components() {
    for (n, d, k) in [(150, 1, 40), (120, 3, 300), (60, 20, 500)] {
        let mut rng = Rng::from_seed(k as u64);
        // Groups of means that are near each other, so that few, some and many have a share.
        let means = Array2::from_shape_fn((k, d), |(c, j)| {
            ((c % 7) as f64 - 3.0) * (1 + j % 2) as f64 + 0.2 * (c % 11) as f64 * rng.normal()
        });
        let x = Array2::from_shape_fn((n, d), |(i, j)| means[[i % k, j]] + 0.3 * rng.normal());
        let w = Array1::from_shape_fn(n, |i| (1 + i % 3) as f64);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let proportions = Array1::from_shape_fn(k, |c| (1 + c % 5) as f64);
        let proportions = &proportions / proportions.sum();
        for scale in [1e-6, 1.0] {
            let own = Array2::from_shape_fn((k, d), |(c, j)| scale * (1 + (c + j) % 3) as f64);
            let column = own.column(0).to_owned();
            let naive = |variance: &dyn Fn(usize, usize) -> f64,
                         proportion: &dyn Fn(usize) -> f64| {
                let density = |row: ndarray::ArrayView1<f64>| {
                    let joint = |c: usize| {
                        let parts = (0..d).map(|j| {
                            let (t, v) = (row[j] - means[[c, j]], variance(c, j));
                            -0.5 * (2.0 * std::f64::consts::PI * v).ln() - 0.5 * t * t / v
                        });
                        proportion(c).ln() + parts.sum::<f64>()
                    };
                    let joints: Vec<f64> = (0..k).map(joint).collect();
                    let most = joints
                        .iter()
                        .fold(f64::NEG_INFINITY, |most, l| most.max(*l));
                    most + joints.iter().map(|l| (l - most).exp()).sum::<f64>().ln()
                };
                x.rows().into_iter().map(density).collect::<Vec<f64>>()
            };
            macro_rules! family {
                ($model:expr, $naive:expr) => {
                    let (model, naive) = ($model.unwrap(), $naive);
                    let densities = model.log_densities(&data).unwrap();
                    for (got, naive) in densities.iter().zip(&naive) {
                        // Two roundings of about 1e-15 of a coordinate, in units of the deviation.
                        let within = 1e-12 * (1.0 + naive.abs()) / scale.sqrt();
                        assert!((got - naive).abs() <= within, "{k} {scale}: {got} {naive}");
                    }
                    let score = model.score(&data).unwrap();
                    assert_eq!(score.labels, model.predict(&data).unwrap());
                    assert_eq!(score.log_likelihood, model.log_likelihood(&data).unwrap());
                    let error = model.quantization_error(&data).unwrap();
                    let off = (score.quantization_error - error).abs();
                    assert!(off <= 1e-14 * error, "{off} {error}");
                };
            }
            let shared = GaussianMixture::tied_spherical(means.view(), scale);
            family!(shared, naive(&|_, _| scale, &|_| 1.0 / k as f64));
            let isotropic = GaussianMixture::from_parameters(
                Covariance::Spherical,
                means.view(),
                column.view(),
                proportions.view(),
            );
            family!(isotropic, naive(&|c, _| column[c], &|c| proportions[c]));
            let diagonal = GaussianMixture::from_parameters(
                Covariance::Diagonal,
                means.view(),
                own.view(),
                proportions.view(),
            );
            family!(diagonal, naive(&|c, j| own[[c, j]], &|c| proportions[c]));
        }
    }
}

#[test]
fn one_search_scores_where_the_nearest_is_the_likeliest() {
    let x = blobs::<f64>(40, 2, 3, 1);
    let data = Dense::new(x.view()).unwrap();
    let mut fit = algorithms::k_means(3).build().unwrap().fit(&data).unwrap();
    fit.score(&data).unwrap();
    assert_eq!(fit.report.evaluations.scoring, 40 * 3);
    let own = algorithms::gmm(3)
        .covariance(Covariance::Spherical)
        .build()
        .unwrap();
    let mut own = own.fit(&data).unwrap();
    own.score(&data).unwrap();
    assert_eq!(own.report.evaluations.scoring, 2 * 40 * 3);
}

/// The error of a score is that of the question for it, in all digits.
#[test]
fn errors_are_summed_in_one_order() {
    for (n, d, k) in [(700, 3, 2), (3_000, 40, 9), (1_500, 3, 900)] {
        let x = blobs::<f32>(n, d, 7, 1);
        let data = Dense::new(x.view()).unwrap();
        let kinds = [Covariance::TiedSpherical, Covariance::Diagonal];
        for kind in kinds {
            let fit = algorithms::gmm(k).covariance(kind).max_iterations(2);
            let mut fit = fit.build().unwrap().fit(&data).unwrap();
            let score = fit.score(&data).unwrap().quantization_error;
            assert_eq!(score, fit.model.quantization_error(&data).unwrap());
        }
    }
}

/// The weight of rows below a threshold is at most the share asked for, and with the next row it is more.
#[test]
fn thresholds_leave_this_share_below() {
    let (x, w) = (
        blobs::<f64>(500, 3, 4, 3),
        Array1::from_shape_fn(500, |n| (n % 4) as f64),
    );
    let data = Dense::weighted(&x, &w).unwrap();
    let model = algorithms::gmm(4)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    let densities = model.log_densities(&data).unwrap();
    let weight = |below: &dyn Fn(f64) -> bool| -> f64 {
        let rows = densities.iter().zip(&w).filter(|(x, _)| below(**x));
        rows.map(|(_, w)| w).sum()
    };
    for share in [1e-9, 0.01, 0.1, 0.5, 0.999] {
        let threshold = model.density_threshold(&data, share).unwrap();
        assert!(weight(&|x| x < threshold) <= share * w.sum());
        assert!(weight(&|x| x <= threshold) > share * w.sum());
    }
    for share in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(model.density_threshold(&data, share).is_err());
    }
    let none = Array2::<f64>::zeros((0, 3));
    let none = Dense::batch(&none).unwrap();
    assert!(model.density_threshold(&none, 0.1).is_err());
}
