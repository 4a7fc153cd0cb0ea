//! Missing values: the likelihood of what is known, against the naive sums over known coordinates.

use crate::common::{Known, Settings, all, blobs, close, on, rises_in_phases, rounding};
use coremix::data::{Blocks, Source};
use coremix::prelude::*;
use coremix::{Float, algorithms};
use ndarray::{Array1, Array2, array};
use std::f64::consts::TAU;
use std::io;

/// Rows in blobs, of which this share of the values is missing.
fn holes<F: Float>(n: usize, d: usize, k: usize, share: f64, seed: u64) -> (Array2<F>, Array2<F>) {
    let whole = blobs::<F>(n, d, k, seed);
    let mut x = whole.clone();
    let nan = F::from_f64(f64::NAN);
    for ((n, j), x) in x.indexed_iter_mut() {
        let uniform =
            (n * 7919 + j * 104_729 + seed as usize * 31) as f64 * 0.618_033_988_749_894_9;
        if uniform.fract() < share {
            *x = nan;
        }
    }
    (x, whole)
}

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| (n % 4) as f64 * 0.5)
}

/// The log-joints (n, k) of known coordinates, one by one.
fn naive_joints(x: &Array2<f64>, model: &dyn Mixture<f64>) -> Array2<f64> {
    let (means, variances, shares) = (model.means(), model.variances(), model.proportions());
    Array2::from_shape_fn((x.nrows(), means.nrows()), |(n, c)| {
        let known = (0..x.ncols()).filter(|j| !x[[n, *j]].is_nan());
        let terms = known.map(|j| {
            let v = variances[[c, j]];
            -0.5 * ((TAU * v).ln() + (x[[n, j]] - means[[c, j]]).powi(2) / v)
        });
        shares[c].ln() + terms.sum::<f64>()
    })
}

fn log_sum(joints: ndarray::ArrayView1<'_, f64>) -> f64 {
    let most = joints.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + joints.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

/// Densities, responsibilities, errors and what is filled in are those of the known coordinates; one iteration of EM is the naive one.
#[test]
fn the_likelihood_is_that_of_known_coordinates() {
    let (x, _) = holes::<f64>(400, 5, 4, 0.3, 3);
    let x = x * &array![1.0, 100.0, 1e-3, 1.0, 7.0];
    let w = weights(400);
    let data = Dense::weighted_with_missing(&x, &w).unwrap();
    for (kind, standardise) in [
        (Covariance::TiedSpherical, false),
        (Covariance::Spherical, false),
        (Covariance::Diagonal, false),
        (Covariance::TiedSpherical, true),
        (Covariance::Spherical, true),
        (Covariance::Diagonal, true),
    ] {
        let what = format!("{kind:?}, standardised {standardise}");
        let gmm = algorithms::gmm::<f64>(4)
            .covariance(kind)
            .standardise(standardise);
        let fit = gmm
            .seed(2)
            .max_iterations(8)
            .tolerance(0.0)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let (model, joints) = (&fit.model, naive_joints(&x, &fit.model));
        let densities = model.log_densities(&data).unwrap();
        let shares = model.responsibilities(&data).unwrap();
        let means = model.means();
        let filled = model.impute(&data).unwrap();
        let mut likelihood = 0.0;
        for n in 0..400 {
            let all = log_sum(joints.row(n));
            assert!(
                close(densities[n], all, 1e-9),
                "{what}: {} {all}",
                densities[n]
            );
            likelihood += w[n] * all;
            for c in 0..4 {
                let naive = (joints[[n, c]] - all).exp();
                assert!((shares[[n, c]] - naive).abs() < 1e-9, "{what}");
            }
            for j in 0..5 {
                let expected: f64 = match x[[n, j]].is_nan() {
                    true => (0..4)
                        .map(|c| (joints[[n, c]] - all).exp() * means[[c, j]])
                        .sum(),
                    false => x[[n, j]],
                };
                assert!(close(filled[[n, j]], expected, 1e-9), "{what}");
            }
        }
        let last = *fit.report.free_energies.last().unwrap();
        assert!(close(last, likelihood, 1e-9), "{what}: {last} {likelihood}");
        // One more step: means and variances over the rows that know a column.
        if standardise || kind != Covariance::Diagonal {
            continue;
        }
        let next = algorithms::gmm::<f64>(4)
            .covariance(kind)
            .start_from(model)
            .max_iterations(1)
            .tolerance(0.0);
        let next = next.build().unwrap().fit(&data).unwrap().model;
        for (c, j) in (0..4).flat_map(|c| (0..5).map(move |j| (c, j))) {
            let known = (0..400).filter(|n| !x[[*n, j]].is_nan());
            let share = |n: usize| w[n] * (joints[[n, c]] - log_sum(joints.row(n))).exp();
            let mass: f64 = known.clone().map(share).sum();
            let mean = known.clone().map(|n| share(n) * x[[n, j]]).sum::<f64>() / mass;
            let variance = known
                .map(|n| share(n) * (x[[n, j]] - mean).powi(2))
                .sum::<f64>()
                / mass;
            assert!(
                (next.means()[[c, j]] - mean).abs() < 1e-8 * variance.sqrt(),
                "{what}"
            );
            assert!(close(next.variances()[[c, j]], variance, 1e-8), "{what}");
        }
    }
}

fn needs_all(name: &str) -> bool {
    ["full", "tied", "dp-gmm"]
        .iter()
        .any(|part| name.contains(part))
        && !name.contains("tied-spherical")
}

fn laws<F: Float>() {
    let (x, whole) = holes::<F>(500, 6, 5, 0.25, 4);
    let w = weights(500);
    let settings = Settings::new(5, 3);
    let mut fitted = 0;
    for algorithm in all::<F>().iter().filter(|a| a.rows == Known::Dense) {
        let name = algorithm.name;
        let none = Dense::weighted_with_missing(&whole, &w).unwrap();
        let dense = Dense::weighted(&whole, &w).unwrap();
        let [a, b] = [none, dense].map(|data| (algorithm.fit)(&data, &settings).unwrap());
        assert!(
            a.means == b.means && a.report.free_energies == b.report.free_energies,
            "{name}"
        );
        let data = Dense::weighted_with_missing(&x, &w).unwrap();
        match (algorithm.fit)(&data, &settings) {
            Ok(fit) => {
                let drawn = fit
                    .coreset
                    .as_ref()
                    .map(|coreset| coreset.weights.iter().sum());
                let weight = drawn.unwrap_or(w.sum());
                rises_in_phases(name, &fit.report, weight, rounding::<F>());
                assert!(fit.means.iter().all(|mean| mean.is_finite()), "{name}");
                let again = on(3, || (algorithm.fit)(&data, &settings).unwrap());
                assert_eq!(fit.means, again.means, "{name}");
                fitted += 1;
            }
            Err(error) => {
                assert!(
                    error.to_string().contains("needs all coordinates"),
                    "{name}: {error}"
                );
                assert!(needs_all(name), "{name}: {error}");
            }
        }
    }
    assert!(fitted > 12, "{fitted}");
}

/// Where nothing is missing, bits are those of dense rows; otherwise F rises, with the same bits on any number of threads.
#[test]
fn all_algorithms_take_missing_values_or_say_why_not() {
    laws::<f32>();
    laws::<f64>();
}

struct Rowwise<'a>(&'a Array2<f32>);

impl Source for Rowwise<'_> {
    type Element = f32;

    fn len(&self) -> usize {
        self.0.nrows()
    }
    fn dim(&self) -> usize {
        self.0.ncols()
    }
    fn may_miss(&self) -> bool {
        true
    }
    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        let from = first * self.dim();
        out.copy_from_slice(&self.0.as_slice().unwrap()[from..from + out.len()]);
        Ok(())
    }
}

#[test]
fn blocks_and_arrays_have_the_same_bits() {
    let (x, whole) = holes::<f32>(3_000, 4, 6, 0.2, 9);
    for x in [&x, &whole] {
        let blocks = Blocks::new(Rowwise(x)).unwrap();
        let dense = Dense::with_missing(x).unwrap();
        for coreset in [false, true] {
            let fit = |data: &dyn Data<f32>| {
                let builder = match coreset {
                    true => algorithms::lwcs_k_means(6, 500),
                    false => algorithms::fast(6),
                };
                builder.seed(5).build().unwrap().fit(data).unwrap().model
            };
            let (a, b) = (fit(&blocks), fit(&dense));
            assert_eq!(a, b);
            assert_eq!(a.predict(&blocks).unwrap(), a.predict(&dense).unwrap());
        }
    }
}

/// Blobs far apart are found although a third of the values is missing, better than with the mean of the column in their place.
#[test]
fn clusters_are_found_with_a_third_of_the_values() {
    let (x, whole) = holes::<f64>(3_000, 8, 6, 0.35, 12);
    let truth = algorithms::fast(6).seed(1).build().unwrap();
    let truth = truth.fit(&Dense::new(&whole).unwrap()).unwrap().model;
    let truth = truth.predict(&Dense::new(&whole).unwrap()).unwrap();
    let means = Array1::from_shape_fn(8, |j| {
        let known: Vec<f64> = x
            .column(j)
            .iter()
            .copied()
            .filter(|x| !x.is_nan())
            .collect();
        known.iter().sum::<f64>() / known.len() as f64
    });
    let filled = Array2::from_shape_fn(x.dim(), |(n, j)| match x[[n, j]].is_nan() {
        true => means[j],
        false => x[[n, j]],
    });
    let index = |data: &Dense<'_, f64>| {
        let fit = algorithms::fast(6)
            .seed(1)
            .build()
            .unwrap()
            .fit(data)
            .unwrap();
        let labels = fit.model.predict(data).unwrap();
        coremix::metrics::adjusted_rand_index(labels.view(), truth.view()).unwrap()
    };
    let (known, with_means) = (
        index(&Dense::with_missing(&x).unwrap()),
        index(&Dense::new(&filled).unwrap()),
    );
    assert!(known > with_means && known > 0.9, "{known} {with_means}");
}

#[test]
fn hostile_rows_are_fitted_or_told() {
    let nan = f64::NAN;
    // Rows and a column without any value, in rows that count or do not.
    let x = array![
        [nan, nan],
        [1.0, nan],
        [2.0, 5.0],
        [nan, 6.0],
        [nan, nan],
        [3.0, 5.5]
    ];
    let data = Dense::with_missing(&x).unwrap();
    let model = algorithms::k_means(2)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    assert!(model.quantization_error(&data).unwrap().is_finite());
    assert_eq!(model.log_densities(&data).unwrap()[0], 0.0);
    let empty = array![[1.0, nan], [2.0, nan], [5.0, nan]];
    let data = Dense::with_missing(&empty).unwrap();
    let fit = algorithms::k_means(2)
        .build()
        .unwrap()
        .fit(&data)
        .map(|_| ());
    let error = fit.unwrap_err().to_string();
    assert!(error.contains("column") && error.contains('1'), "{error}");
    // A model can be asked about such rows all the same.
    assert_eq!(model.predict(&data).unwrap().len(), 3);
    let w = array![0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    let only_light = array![
        [1.0, 2.0],
        [1.0, 3.0],
        [2.0, nan],
        [3.0, nan],
        [4.0, nan],
        [5.0, nan]
    ];
    let data = Dense::weighted_with_missing(&only_light, &w).unwrap();
    assert!(algorithms::k_means(2).build().unwrap().fit(&data).is_err());
    for (bad, what) in [(f64::INFINITY, "infinite"), (1e200, "large")] {
        let x = array![[1.0, nan], [bad, 2.0]];
        let error = Dense::with_missing(&x).unwrap_err().to_string();
        assert!(
            error.contains("row 1") && error.contains("column 0"),
            "{what}: {error}"
        );
    }
    let bad = array![1.0, -1.0, 1.0, 1.0, 1.0, 1.0];
    assert!(Dense::weighted_with_missing(&x, &bad).is_err());
    // A subspace, restarts, and no columns or rows.
    assert!(Dense::with_missing(&Array2::<f64>::zeros((0, 2))).is_err());
    let far = array![
        [1e9, nan],
        [nan, -1e-9],
        [1e9 + 1.0, 0.0],
        [nan, 1e-9],
        [1e9 + 2.0, nan]
    ];
    let fit = algorithms::fast(2)
        .standardise(true)
        .restarts(3)
        .build()
        .unwrap();
    let fit = fit.fit(&Dense::with_missing(&far).unwrap()).unwrap();
    rises_in_phases("far", &fit.report, 5.0, rounding::<f64>());
}

/// A model of complete rows can be asked about rows with missing values if its family can, and says so if not.
#[test]
fn models_that_need_all_coordinates_say_so() {
    let (x, whole) = holes::<f64>(300, 4, 3, 0.2, 2);
    let (dense, data) = (
        Dense::new(&whole).unwrap(),
        Dense::with_missing(&x).unwrap(),
    );
    for kind in [Covariance::Tied, Covariance::Full, Covariance::Diagonal] {
        let fit = algorithms::gmm(3)
            .covariance(kind)
            .build()
            .unwrap()
            .fit(&dense)
            .unwrap();
        let can = kind == Covariance::Diagonal;
        assert_eq!(fit.model.predict(&data).is_ok(), can);
        assert_eq!(fit.model.responsibilities(&data).is_ok(), can);
        assert_eq!(fit.model.truncated_responsibilities(&data, 2).is_ok(), can);
        assert_eq!(fit.model.score(&data).is_ok(), can);
        assert_eq!(fit.model.log_likelihood(&data).is_ok(), can);
        assert_eq!(fit.model.impute(&data).is_ok(), can);
        let warm = algorithms::gmm(3).covariance(kind).start_from(&fit.model);
        assert_eq!(warm.build().unwrap().fit(&data).is_ok(), can);
        assert!(coremix::m_step::ExactSums::e_step(&fit.model, &data, None, 3).is_err());
    }
    let process = algorithms::dp_gmm(4, 1.0).build().unwrap();
    let process = process.fit(&dense).unwrap().model;
    assert!(process.predict(&data).is_err() && process.log_densities(&data).is_err());
}
