//! Missing values: the likelihood of what is known, against the naive sums over known coordinates.

use crate::common::{Known, Settings, all, blobs, close, on, rises_in_phases, rounding, turned};
use coremix::data::{Blocks, Source, Sparse};
use coremix::families::{DirichletProcessMixture, GaussianMixture};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, algorithms};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, Array2, ArrayView1, Axis, array};
use special::Gamma;
use std::f64::consts::{LN_2, TAU};
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

/// A row under a component, by the parts of its covariance: the log-density of what is known, the row with the expectation of what is
/// missing, and the covariance of that (d, d), zeros elsewhere.
fn naive(x: ArrayView1<'_, f64>, mean: ArrayView1<'_, f64>, covariance: &Array2<f64>) -> Naive {
    let d = x.len();
    let (known, missing): (Vec<_>, Vec<_>) = (0..d).partition(|j| !x[*j].is_nan());
    let part = |a: &[usize], b: &[usize]| {
        DMatrix::from_fn(a.len(), b.len(), |i, j| covariance[[a[i], b[j]]])
    };
    // In units of the columns, whose variances may be far apart.
    let unit = |a: &[usize]| {
        let roots = a.iter().map(|j| 1.0 / covariance[[*j, *j]].sqrt());
        DMatrix::from_diagonal(&DVector::from_iterator(a.len(), roots))
    };
    let of_known = unit(&known) * part(&known, &known) * unit(&known);
    let inverse = unit(&known) * of_known.clone().try_inverse().unwrap() * unit(&known);
    let u = DVector::from_fn(known.len(), |j, _| x[known[j]] - mean[known[j]]);
    let log_det = of_known.determinant().ln() - 2.0 * unit(&known).diagonal().map(f64::ln).sum();
    let form = u.dot(&(&inverse * &u));
    let gain = part(&missing, &known) * inverse;
    let (expected, mut row, mut rest) = (&gain * u, x.to_owned(), Array2::zeros((d, d)));
    let own = part(&missing, &missing) - gain * part(&known, &missing);
    for (i, &a) in missing.iter().enumerate() {
        row[a] = mean[a] + expected[i];
        for (j, &b) in missing.iter().enumerate() {
            rest[[a, b]] = own[(i, j)];
        }
    }
    let log_density = -0.5 * (known.len() as f64 * TAU.ln() + log_det + form);
    Naive {
        log_density,
        row,
        rest,
    }
}

struct Naive {
    log_density: f64,
    row: Array1<f64>,
    rest: Array2<f64>,
}

/// All rows under all components (n, k).
fn naive_rows(x: &Array2<f64>, model: &GaussianMixture<f64>) -> Vec<Vec<Naive>> {
    let (means, covariances) = (model.means().to_owned(), model.covariances());
    let of_row = |row: ArrayView1<'_, f64>| {
        let own = means.outer_iter().zip(covariances.outer_iter());
        own.map(|(mean, own)| naive(row, mean, &own.to_owned()))
            .collect()
    };
    x.outer_iter().map(of_row).collect()
}

/// The log-joints (n, k) of known coordinates.
fn naive_joints(rows: &[Vec<Naive>], model: &GaussianMixture<f64>) -> Array2<f64> {
    let shares = model.proportions();
    Array2::from_shape_fn((rows.len(), shares.len()), |(n, c)| {
        shares[c].ln() + rows[n][c].log_density
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
        (Covariance::Tied, false),
        (Covariance::Full, false),
        (Covariance::Factors(2), false),
        (Covariance::Factors(4), false),
        (Covariance::TiedSpherical, true),
        (Covariance::Spherical, true),
        (Covariance::Diagonal, true),
        (Covariance::Tied, true),
        (Covariance::Full, true),
        (Covariance::Factors(3), true),
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
        let (model, rows) = (&fit.model, naive_rows(&x, &fit.model));
        let joints = naive_joints(&rows, model);
        let densities = model.log_densities(&data).unwrap();
        let shares = model.responsibilities(&data).unwrap();
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
                        .map(|c| (joints[[n, c]] - all).exp() * rows[n][c].row[j])
                        .sum(),
                    false => x[[n, j]],
                };
                assert!(close(filled[[n, j]], expected, 1e-9), "{what}");
            }
        }
        let last = *fit.report.free_energies.last().unwrap();
        assert!(close(last, likelihood, 1e-9), "{what}: {last} {likelihood}");
        // One more step: means and variances over the rows that know a column, or over completed rows.
        let (factors, tied) = (model.loadings().dim().2, kind == Covariance::Tied);
        let pairs = factors > 0 || tied || kind == Covariance::Full;
        if standardise || !pairs && kind != Covariance::Diagonal {
            continue;
        }
        let next = algorithms::gmm::<f64>(4)
            .covariance(kind)
            .start_from(model)
            .max_iterations(1)
            .tolerance(0.0);
        let next = next.build().unwrap().fit(&data).unwrap().model;
        if pairs {
            let share = |n: usize, c: usize| w[n] * (joints[[n, c]] - log_sum(joints.row(n))).exp();
            let mut covariances = vec![Array2::<f64>::zeros((5, 5)); 4];
            let masses: Vec<f64> = (0..4)
                .map(|c| (0..400).map(|n| share(n, c)).sum())
                .collect();
            for c in 0..4 {
                let sum = |n: usize| share(n, c) * &rows[n][c].row;
                let mean = (0..400)
                    .map(sum)
                    .fold(Array1::<f64>::zeros(5), |a, b| a + b)
                    / masses[c];
                for (n, own) in rows.iter().enumerate() {
                    let u = (&own[c].row - &mean).insert_axis(Axis(1));
                    covariances[c] += &(share(n, c) * (u.dot(&u.t()) + &own[c].rest));
                }
                if factors > 0 {
                    let own = &covariances[c] / masses[c];
                    covariances[c] = naive_factors(model, c, &own) * masses[c];
                }
                let deviations = model.variances().row(c).mapv(f64::sqrt);
                for (j, mean) in mean.iter().enumerate() {
                    let off: f64 = next.means()[[c, j]] - mean;
                    assert!(off.abs() < 1e-8 * deviations[j], "{what}: {off}");
                }
                assert!(
                    close(next.proportions()[c], masses[c] / w.sum(), 1e-9),
                    "{what}"
                );
            }
            for c in 0..4 {
                let own = match tied {
                    false => &covariances[c] / masses[c],
                    true => {
                        covariances
                            .iter()
                            .fold(Array2::<f64>::zeros((5, 5)), |a, b| a + b)
                            / w.sum()
                    }
                };
                for ((i, j), found) in next.covariance(c).unwrap().indexed_iter() {
                    let unit = (own[[i, i]] * own[[j, j]]).sqrt();
                    let off = (found - own[[i, j]]).abs();
                    assert!(off < 1e-8 * unit, "{what}: {found} {}", own[[i, j]]);
                }
            }
            continue;
        }
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

/// The covariance after the M-step of a factor analyser (parameter-expanded EM), from that of its completed rows.
fn naive_factors(model: &GaussianMixture<f64>, c: usize, covariance: &Array2<f64>) -> Array2<f64> {
    let (loadings, noise) = (model.loadings(), model.noise());
    let (_, d, q) = loadings.dim();
    let w = DMatrix::from_fn(d, q, |j, l| loadings[[c, j, l]]);
    let precise = DMatrix::from_fn(q, d, |l, j| w[(j, l)] / noise[[c, j]]);
    let own = DMatrix::from_fn(d, d, |i, j| covariance[[i, j]]);
    let rest = (DMatrix::identity(q, q) + &precise * &w)
        .try_inverse()
        .unwrap();
    let beta = &rest * precise;
    let across = &own * beta.transpose();
    let expected = &beta * &across + rest;
    // Loadings take over the covariance of the factors.
    let explained = &across * expected.try_inverse().unwrap() * across.transpose();
    Array2::from_shape_fn((d, d), |(i, j)| {
        if i == j {
            own[(i, i)]
        } else {
            explained[(i, j)]
        }
    })
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
        let fit = (algorithm.fit)(&data, &settings).unwrap();
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
    assert!(fitted > 40, "{fitted}");
}

/// Where nothing is missing, bits are those of dense rows; otherwise F rises, with the same bits on any number of threads.
#[test]
fn all_algorithms_take_missing_values() {
    laws::<f32>();
    laws::<f64>();
}

/// The first search, by squared distances, expects other values than the search with the variance that it starts.
#[test]
fn f_rises_with_supports_of_any_width() {
    for (seed, share, k) in [(1, 0.1, 2), (2, 0.3, 3), (3, 0.3, 6)] {
        let (x, _) = holes::<f64>(200, 5, 4, share, seed);
        let x = x * &array![1.0, 1.0, 30.0, 1.0, 1.0];
        let w = weights(200);
        let data = Dense::weighted_with_missing(&x, &w).unwrap();
        for kind in [
            Covariance::TiedSpherical,
            Covariance::Spherical,
            Covariance::Diagonal,
            Covariance::Tied,
            Covariance::Full,
            Covariance::Factors(2),
        ] {
            let widths = [1, 2, k].map(|width| algorithms::k_means_c_prime(k, width));
            let others = [
                algorithms::k_means(k),
                algorithms::lwcs_k_means(k, 120),
                algorithms::var_gmm_s(k, 1, 1),
                algorithms::gmm(k).prior(Prior::weak()),
                algorithms::k_means(k).prior(Prior::weak()),
            ];
            for (number, builder) in widths.into_iter().chain(others).enumerate() {
                let builder = builder.covariance(kind).tolerance(1e-8).max_iterations(40);
                let fit = builder.seed(seed).build().unwrap().fit(&data).unwrap();
                let what = format!("{kind:?}, {number}, k = {k}");
                rises_in_phases(what, &fit.report, w.sum(), 1e-9);
            }
        }
    }
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
        for number in 0..4 {
            let fit = |data: &dyn Data<f32>| {
                let builder = match number {
                    0 => algorithms::lwcs_k_means(6, 500),
                    1 => algorithms::fast(6),
                    2 => algorithms::gmm(6).covariance(Covariance::Full),
                    _ => algorithms::vc_gmm(6, 500, 3, 3).covariance(Covariance::Tied),
                };
                builder.seed(5).build().unwrap().fit(data).unwrap().model
            };
            let (a, b) = (fit(&blocks), fit(&dense));
            assert_eq!(a, b);
            assert_eq!(a.predict(&blocks).unwrap(), a.predict(&dense).unwrap());
            let densities = [&blocks as &dyn Data<f32>, &dense].map(|data| a.log_densities(data));
            let [of_blocks, of_array] = densities.map(Result::unwrap);
            assert_eq!(of_blocks, of_array);
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

/// A model of complete rows can be asked about rows with missing values if its family can, and says so if not; so can sums over rows in
/// many places.
#[test]
fn models_of_complete_rows_can_be_asked() {
    let (x, whole) = holes::<f64>(300, 4, 3, 0.2, 2);
    let (dense, data) = (
        Dense::new(&whole).unwrap(),
        Dense::with_missing(&x).unwrap(),
    );
    for kind in [
        Covariance::Tied,
        Covariance::Full,
        Covariance::Diagonal,
        Covariance::Factors(2),
    ] {
        let fit = algorithms::gmm(3)
            .covariance(kind)
            .build()
            .unwrap()
            .fit(&dense)
            .unwrap();
        assert!(fit.model.predict(&data).is_ok());
        assert!(fit.model.responsibilities(&data).is_ok());
        assert!(fit.model.truncated_responsibilities(&data, 2).is_ok());
        assert!(fit.model.score(&data).is_ok());
        assert!(fit.model.log_likelihood(&data).is_ok());
        assert!(fit.model.impute(&data).is_ok());
        let warm = algorithms::gmm(3).covariance(kind).start_from(&fit.model);
        assert!(warm.build().unwrap().fit(&data).is_ok());
        assert!(coremix::families::ExactSums::e_step(&fit.model, &data, None, 3).is_err());
    }
    let process = algorithms::dp_gmm(4, 1.0).build().unwrap();
    let process = process.fit(&dense).unwrap().model;
    assert!(process.predict(&data).is_ok() && process.score(&data).is_ok());
    let warm = algorithms::dp_gmm(4, 1.0).start_from(&process);
    assert!(warm.build().unwrap().fit(&data).is_ok());
}

/// Sparse rows and sketches have other columns than those that depend on one another.
#[test]
fn what_is_zero_or_in_another_basis_is_told() {
    let x = blobs::<f64>(60, 4, 3, 2);
    let zeros = Sparse::new(4, vec![0, 1, 2, 3], vec![0, 1, 3], vec![1.0, 2.0, 3.0]).unwrap();
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    let others: [&dyn Data<f64>; 2] = [&zeros, &sketch];
    let dense = Dense::new(&x).unwrap();
    for kind in DEPENDENT {
        let builder = || algorithms::gmm(2).covariance(kind).build().unwrap();
        let model = builder().fit(&dense).unwrap().model;
        for data in others {
            let error = builder().fit(data).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("missing values"), "{error}");
            assert!(model.predict(data).is_err());
        }
    }
    let builder = || algorithms::dp_gmm(2, 1.0).build().unwrap();
    let model = builder().fit(&dense).unwrap().model;
    for data in others {
        let error = builder().fit(data).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("missing values"), "{error}");
        assert!(model.predict(data).is_err());
    }
}

/// Columns depend on one another.
const DEPENDENT: [Covariance; 3] = [Covariance::Tied, Covariance::Full, Covariance::Factors(2)];

/// Rows that all lack the same columns have the density of the others, whose mixture is known; rows that know nothing have that of no
/// column, and the proportions.
#[test]
fn patterns_have_the_density_of_their_columns() {
    let x = blobs::<f64>(400, 5, 4, 7).dot(&Array2::from_shape_fn((5, 5), |(i, j)| {
        if i == j {
            1.0
        } else {
            ((3 * i + j) % 4) as f64 * 0.3
        }
    }));
    for kind in DEPENDENT {
        let fit = algorithms::gmm(4).covariance(kind).build().unwrap();
        let model = fit.fit(&Dense::new(&x).unwrap()).unwrap().model;
        for columns in [
            &[0, 1, 2, 3][..],
            &[1, 2, 3, 4],
            &[0, 2, 4],
            &[3],
            &[2, 4],
            &[],
        ] {
            let mut part = x.clone();
            let others = (0..5).filter(|j| !columns.contains(j));
            others.for_each(|j| part.column_mut(j).fill(f64::NAN));
            let data = Dense::with_missing(&part).unwrap();
            let (densities, shares) = (model.log_densities(&data), model.responsibilities(&data));
            let (densities, shares) = (densities.unwrap(), shares.unwrap());
            if columns.is_empty() {
                assert!(densities.iter().all(|x| x.abs() < 1e-12));
                for row in shares.outer_iter() {
                    let off = &row - &model.proportions();
                    assert!(off.iter().all(|x| x.abs() < 1e-12));
                }
                let filled = model.impute(&data).unwrap();
                let mean = model.proportions().dot(&model.means());
                let off = &filled.row(3) - &mean;
                assert!(off.iter().all(|x| x.abs() < 1e-9), "{off}");
                continue;
            }
            let marginal = model.marginal(columns).unwrap();
            let known = x.select(Axis(1), columns);
            let known = Dense::new(&known).unwrap();
            let of_columns = marginal.log_densities(&known).unwrap();
            for (a, b) in densities.iter().zip(&of_columns) {
                assert!(close(*a, *b, 1e-9), "{kind:?} {columns:?}: {a} {b}");
            }
            let others = marginal.responsibilities(&known).unwrap();
            assert!(
                shares
                    .iter()
                    .zip(&others)
                    .all(|(a, b)| (a - b).abs() < 1e-9)
            );
            assert_eq!(
                model.predict(&data).unwrap(),
                marginal.predict(&known).unwrap()
            );
            let likeliest = model.truncated_responsibilities(&data, 2).unwrap().0;
            assert_eq!(likeliest.column(0), model.predict(&data).unwrap());
        }
    }
}

/// A weight of 2 is two rows, one of 0 is none; another order of the rows is other rounding.
#[test]
fn weights_are_copies() {
    let (x, _) = holes::<f64>(120, 4, 3, 0.3, 5);
    let w = Array1::from_shape_fn(120, |n| (n % 3) as f64);
    let rows: Vec<usize> = (0..120).flat_map(|n| vec![n; n % 3]).rev().collect();
    let copies = x.select(Axis(0), &rows);
    let seeds = array![
        [0.0, 0.0, 0.0, 0.0],
        [4.0, -4.0, 1.0, 2.0],
        [-3.0, 3.0, 1.0, 0.0]
    ];
    for kind in DEPENDENT {
        let fit = |data: Dense<'_, f64>| {
            let builder = algorithms::gmm(3)
                .covariance(kind)
                .seeder(Given::new(seeds.view()));
            let builder = builder.tolerance(0.0).max_iterations(6);
            builder.build().unwrap().fit(&data).unwrap()
        };
        let a = fit(Dense::weighted_with_missing(&x, &w).unwrap());
        let b = fit(Dense::with_missing(&copies).unwrap());
        for (f, g) in a.report.free_energies.iter().zip(&b.report.free_energies) {
            assert!(close(*f, *g, 1e-9), "{kind:?}: {f} {g}");
        }
        let off = &a.model.covariances() - &b.model.covariances();
        assert!(off.iter().all(|x| x.abs() < 1e-7), "{kind:?}: {off}");
    }
}

/// Columns that no row knows together, rows that each lack one column, few rows, and columns that determine one another.
#[test]
fn hostile_patterns_have_proper_covariances() {
    let nan = f64::NAN;
    let apart = Array2::from_shape_fn((90, 3), |(n, j)| match (n + j) % 3 == 0 {
        true => ((n * 37) % 23) as f64 + 10.0 * (n % 2) as f64,
        false => nan,
    });
    let mut one = blobs::<f64>(60, 6, 3, 1);
    (0..60).for_each(|n| one[[n, n % 6]] = nan);
    let mut few = blobs::<f64>(8, 6, 2, 1);
    (0..8).for_each(|n| few[[n, (2 * n) % 6]] = nan);
    let mut alike = Array2::from_shape_fn((200, 4), |(n, j)| {
        ((n * 31) % 57) as f64 * (1.0 + j as f64) + 1e-9 * ((n * 7 + j) % 5) as f64
    });
    (0..200).for_each(|n| alike[[n, (n * n) % 4]] = nan);
    let far = &alike + 1e7;
    for (what, x) in [
        ("apart", apart),
        ("one", one),
        ("few", few),
        ("alike", alike),
        ("far", far),
    ] {
        let data = Dense::with_missing(&x).unwrap();
        let narrow = x.mapv(|x| x as f32);
        let of_narrow = Dense::with_missing(&narrow).unwrap();
        for kind in DEPENDENT {
            for prior in [Prior::new(0.0), Prior::weak()] {
                let builder = algorithms::gmm(2)
                    .seeder(KMeansPlusPlus::default())
                    .covariance(kind)
                    .prior(prior);
                let builder = builder.tolerance(0.0).max_iterations(40);
                let fit = builder.build().unwrap().fit(&data).unwrap();
                let weight = x.nrows() as f64;
                rises_in_phases(what, &fit.report, weight, rounding::<f64>());
                assert!(
                    fit.model.covariances().iter().all(|x| x.is_finite()),
                    "{what}"
                );
                assert!(
                    fit.model
                        .impute(&data)
                        .unwrap()
                        .iter()
                        .all(|x| x.is_finite())
                );
                let builder = algorithms::gmm(2)
                    .seeder(KMeansPlusPlus::default())
                    .covariance(kind)
                    .prior(prior);
                let builder = builder.tolerance(0.0).max_iterations(40);
                let fit = builder.build().unwrap().fit(&of_narrow).unwrap();
                rises_in_phases(what, &fit.report, weight, rounding::<f32>());
                assert!(
                    fit.model
                        .impute(&of_narrow)
                        .unwrap()
                        .iter()
                        .all(|x| x.is_finite())
                );
            }
        }
    }
    // Models whose columns determine one another to the last digits.
    let means = array![[0.0, 0.0], [1.0, 1.0]];
    let covariance = array![[1.0, 1.0 - 1e-15], [1.0 - 1e-15, 1.0]];
    let (kind, shares) = (Covariance::Tied, array![0.5, 0.5]);
    let model =
        GaussianMixture::from_parameters(kind, means.view(), covariance.view(), shares.view());
    let model = model.unwrap();
    let x = array![[0.3, nan], [nan, 1e300 / 1e160], [nan, nan]];
    let data = Dense::with_missing(&x).unwrap();
    assert!(
        model
            .log_densities(&data)
            .unwrap()
            .iter()
            .all(|x| x.is_finite())
    );
    assert!((model.impute(&data).unwrap()[[0, 1]] - 0.3).abs() < 1e-6);
}

/// Covariances of what is known and what is missing fill values in better than means of components do.
#[test]
fn correlated_columns_are_filled_in_better() {
    let mut rng = Rng::from_seed(3);
    let loads = Array2::from_shape_fn((2, 5), |_| 2.0 * rng.normal());
    let whole = Array2::from_shape_fn((2_000, 2), |_| rng.normal()).dot(&loads);
    let whole = &whole + &Array2::from_shape_fn((2_000, 5), |_| 0.3 * rng.normal());
    let mut x = whole.clone();
    for ((n, j), x) in x.indexed_iter_mut() {
        if ((n * 7919 + j * 104_729) as f64 * 0.618_033_988_749_894_9).fract() < 0.25 {
            *x = f64::NAN;
        }
    }
    let data = Dense::with_missing(&x).unwrap();
    let error = |kind| {
        let fit = algorithms::gmm(1).covariance(kind).build().unwrap();
        let filled = fit.fit(&data).unwrap().model.impute(&data).unwrap();
        (&filled - &whole).mapv(|x| x * x).sum()
    };
    let (full, diagonal) = (error(Covariance::Full), error(Covariance::Diagonal));
    assert!(full < 0.5 * diagonal, "{full} {diagonal}");
    let factors = error(Covariance::Factors(2));
    assert!(factors < 1.05 * full, "{factors} {full}");
}

/// As many factors as there can be are as likely as a full covariance, of what is known.
#[test]
fn most_factors_are_as_likely_as_full_covariances() {
    let whole = turned::<f64>(1_500, 4, 3);
    let holes = holes::<f64>(1_500, 4, 1, 0.25, 6).0;
    let x = &whole + &holes.mapv(|x| 0.0 * x);
    let data = Dense::with_missing(&x).unwrap();
    let likelihood = |kind| {
        let fit = algorithms::gmm(1).covariance(kind).tolerance(0.0);
        let fit = fit.max_iterations(3_000).build().unwrap();
        fit.fit(&data).unwrap().model.log_likelihood(&data).unwrap()
    };
    let (full, factors) = (
        likelihood(Covariance::Full),
        likelihood(Covariance::Factors(3)),
    );
    assert!(factors <= full + 1e-9 * full.abs(), "{factors} {full}");
    assert!((full - factors) / 1_500.0 < 1e-3, "{factors} of {full}");
}

/// The bound of a Dirichlet process over rows with missing values: expected log-joints with the best distribution of what is missing,
/// by sums with dense matrices, and the update by conditional expectations.
#[test]
fn the_bound_of_a_process_is_the_naive_one() {
    let (x, _) = self::holes::<f64>(300, 4, 3, 0.3, 8);
    let w = weights(300);
    let data = Dense::weighted_with_missing(&x, &w).unwrap();
    let mean = Array1::from_shape_fn(4, |j| 0.1 * j as f64);
    let scale = Array2::from_shape_fn((4, 4), |(i, j)| if i == j { 0.5 } else { 0.05 });
    let family = || {
        let family = DirichletProcess::new(0.7)
            .mean(mean.view())
            .mean_precision(0.9);
        family
            .degrees_of_freedom(6.0)
            .scale(scale.view())
            .merges(false)
    };
    let start = algorithms::dp_gmm(5, 0.7)
        .m_step(family())
        .max_iterations(6)
        .tolerance(0.0);
    let start = start.build().unwrap().fit(&data).unwrap();
    let model = &start.model;
    let process = Process::of(model, &mean, &scale);
    let (bound, shares) = process.bound(&x, &w);
    let found = *start.report.free_energies.last().unwrap();
    assert!(close(found, bound, 1e-10), "{found} {bound}");
    let own = model.responsibilities(&data).unwrap();
    assert!(own.iter().zip(&shares).all(|(a, b)| (a - b).abs() < 1e-9));
    let next = algorithms::dp_gmm(5, 0.7)
        .m_step(family())
        .start_from(model)
        .max_iterations(1);
    let next = next.tolerance(0.0).build().unwrap().fit(&data).unwrap();
    let naive = process.step(&x, &w, &shares);
    let (bound, _) = naive.bound(&x, &w);
    let found = *next.report.free_energies.last().unwrap();
    assert!(close(found, bound, 1e-9), "{found} {bound}");
    for (t, precision) in next.model.precisions().outer_iter().enumerate() {
        let own = naive.degrees[t] * &naive.scales[t];
        for ((i, j), p) in precision.indexed_iter() {
            let unit = (own[(i, i)] * own[(j, j)]).sqrt();
            assert!((p - own[(i, j)]).abs() < 1e-8 * unit, "{p} {}", own[(i, j)]);
        }
    }
}

/// A Dirichlet process by dense matrices.
struct Process {
    sticks: Vec<[f64; 2]>,
    strength: Vec<f64>,
    degrees: Vec<f64>,
    means: Vec<DVector<f64>>,
    scales: Vec<DMatrix<f64>>,
    /// The prior.
    mean: DVector<f64>,
    scale: DMatrix<f64>,
}

const PRIOR: (f64, f64, f64) = (0.7, 0.9, 6.0);

impl Process {
    fn of(model: &DirichletProcessMixture<f64>, mean: &Array1<f64>, scale: &Array2<f64>) -> Self {
        let (k, d) = model.means().dim();
        let (sticks, degrees) = (model.sticks(), model.degrees_of_freedom());
        let precisions = model.precisions();
        Self {
            sticks: (0..k).map(|t| [sticks[[t, 0]], sticks[[t, 1]]]).collect(),
            strength: model.mean_precisions().to_vec(),
            means: (0..k)
                .map(|t| DVector::from_fn(d, |j, _| model.means()[[t, j]]))
                .collect(),
            scales: (0..k)
                .map(|t| DMatrix::from_fn(d, d, |i, j| precisions[[t, i, j]] / degrees[t]))
                .collect(),
            degrees: degrees.to_vec(),
            mean: DVector::from_fn(d, |j, _| mean[j]),
            scale: DMatrix::from_fn(d, d, |i, j| scale[[i, j]]),
        }
    }

    /// E ln |Lambda| of a component.
    fn log_det(&self, t: usize) -> f64 {
        let d = self.mean.len();
        let digammas = (0..d).map(|i| (0.5 * (self.degrees[t] - i as f64)).digamma());
        digammas.sum::<f64>() + d as f64 * LN_2 + self.scales[t].determinant().ln()
    }

    /// A row as a component completes it, less its mean; the covariance of what is missing (d, d); and the expected log-density with the
    /// entropy of what is missing.
    fn completed(&self, x: ArrayView1<'_, f64>, t: usize) -> (DVector<f64>, DMatrix<f64>, f64) {
        let d = x.len();
        let precision = self.degrees[t] * &self.scales[t];
        let (known, missing): (Vec<usize>, Vec<usize>) = (0..d).partition(|j| !x[*j].is_nan());
        let part = |a: &[usize], b: &[usize]| {
            DMatrix::from_fn(a.len(), b.len(), |i, j| precision[(a[i], b[j])])
        };
        let mut u = DVector::from_fn(d, |j, _| x[j] - self.means[t][j]);
        let apart = DVector::from_fn(known.len(), |j, _| u[known[j]]);
        let own = part(&missing, &missing);
        let rest = own.clone().try_inverse().unwrap();
        let expected = -&rest * (part(&missing, &known) * apart);
        let mut covariance = DMatrix::zeros(d, d);
        for (i, &a) in missing.iter().enumerate() {
            u[a] = expected[i];
            for (j, &b) in missing.iter().enumerate() {
                covariance[(a, b)] = rest[(i, j)];
            }
        }
        // The expected square of the completed row, and the entropy of a Gaussian.
        let square = u.dot(&(&precision * &u)) + (&precision * &covariance).trace();
        let entropy = 0.5 * (missing.len() as f64 * (1.0 + TAU.ln()) - own.determinant().ln());
        let density =
            0.5 * (self.log_det(t) - d as f64 * (TAU.ln() + 1.0 / self.strength[t]) - square);
        (u, covariance, density + entropy)
    }

    /// The bound and the responsibilities (n, k).
    fn bound(&self, x: &Array2<f64>, w: &Array1<f64>) -> (f64, Array2<f64>) {
        let (alpha, beta0, nu0) = PRIOR;
        let (k, d) = (self.degrees.len(), self.mean.len());
        let mut logs = Array2::zeros((x.nrows(), k));
        let (mut before, mut total) = (0.0, 0.0);
        for t in 0..k {
            let [a, b] = self.sticks[t];
            let stick = a.digamma() - (a + b).digamma() + before;
            before += b.digamma() - (a + b).digamma();
            for (n, row) in x.outer_iter().enumerate() {
                logs[[n, t]] = stick + self.completed(row, t).2;
            }
            let (digamma, gamma) = ((a + b).digamma(), |x: f64| Gamma::ln_gamma(x).0);
            total -= gamma(a + b) - gamma(a) - gamma(b) - alpha.ln()
                + (a - 1.0) * (a.digamma() - digamma)
                + (b - alpha) * (b.digamma() - digamma);
            // Bishop 10.74, 10.77 and B.79.
            let (nu, ratio, apart) = (
                self.degrees[t],
                beta0 / self.strength[t],
                &self.means[t] - &self.mean,
            );
            let log_b = |nu: f64, w: &DMatrix<f64>| {
                let gammas = (0..d).map(|i| gamma(0.5 * (nu - i as f64)));
                -0.5 * nu * w.determinant().ln() - 0.5 * nu * d as f64 * LN_2 - gammas.sum::<f64>()
            };
            let trace = (self.scale.clone().try_inverse().unwrap() * &self.scales[t]).trace();
            let form = apart.dot(&(&self.scales[t] * &apart));
            total -= 0.5 * (d as f64 * (ratio - 1.0 - ratio.ln()) + beta0 * nu * form)
                + log_b(nu, &self.scales[t])
                - log_b(nu0, &self.scale)
                + 0.5 * ((nu - nu0) * self.log_det(t) + nu * trace - nu * d as f64);
        }
        let sums: Vec<f64> = logs.outer_iter().map(log_sum).collect();
        total += sums.iter().zip(w).map(|(sum, w)| w * sum).sum::<f64>();
        for (mut row, sum) in logs.outer_iter_mut().zip(sums) {
            row.mapv_inplace(|x| (x - sum).exp());
        }
        (total, logs)
    }

    /// The update of (E29) from completed rows (E60).
    fn step(&self, x: &Array2<f64>, w: &Array1<f64>, shares: &Array2<f64>) -> Self {
        let (alpha, beta0, nu0) = PRIOR;
        let (k, d) = (self.degrees.len(), self.mean.len());
        let masses: Vec<f64> = (0..k).map(|t| shares.column(t).dot(w)).collect();
        let (mut means, mut scales) = (Vec::new(), Vec::new());
        for t in 0..k {
            let (mut sum, mut square) = (DVector::zeros(d), DMatrix::zeros(d, d));
            for (n, row) in x.outer_iter().enumerate() {
                let (u, covariance, _) = self.completed(row, t);
                let share = w[n] * shares[[n, t]];
                square += share * (&u * u.transpose() + covariance);
                sum += share * u;
            }
            let step = &sum / masses[t];
            let centre = &self.means[t] + &step;
            let apart = &centre - &self.mean;
            let between = beta0 * masses[t] / (beta0 + masses[t]);
            let inverse = self.scale.clone().try_inverse().unwrap() + square
                - masses[t] * &step * step.transpose()
                + between * &apart * apart.transpose();
            scales.push(inverse.try_inverse().unwrap());
            means.push((beta0 * &self.mean + masses[t] * centre) / (beta0 + masses[t]));
        }
        let after = |t: usize| masses[t + 1..].iter().sum::<f64>();
        Self {
            sticks: (0..k)
                .map(|t| [1.0 + masses[t], alpha + after(t)])
                .collect(),
            strength: masses.iter().map(|mass| beta0 + mass).collect(),
            degrees: masses.iter().map(|mass| nu0 + mass).collect(),
            means,
            scales,
            mean: self.mean.clone(),
            scale: self.scale.clone(),
        }
    }
}

/// Merges of components of a process raise its bound, over rows with missing values, too.
#[test]
fn merges_of_a_process_raise_the_bound() {
    let (x, whole) = holes::<f64>(800, 4, 3, 0.25, 12);
    let data = Dense::with_missing(&x).unwrap();
    let fit = algorithms::dp_gmm(15, 1.0)
        .tolerance(1e-6)
        .max_iterations(300);
    let fit = fit.build().unwrap().fit(&data).unwrap();
    rises_in_phases("process", &fit.report, 800.0, rounding::<f64>());
    let proportions = fit.model.proportions();
    assert_eq!(proportions.iter().filter(|p| **p >= 0.02).count(), 3);
    let labels = fit.model.predict(&data).unwrap();
    let truth = Array1::from_shape_fn(800, |n| (n % 3) as u32);
    let index = coremix::metrics::adjusted_rand_index(labels.view(), truth.view()).unwrap();
    assert!(index > 0.9, "{index}");
    // As good as a mixture that is told the number of components.
    let told = algorithms::gmm(3).covariance(Covariance::Full);
    let told = told.build().unwrap().fit(&data).unwrap().model;
    let off = |filled: Array2<f64>| (filled - &whole).mapv(|x| x * x).sum();
    let [own, told] = [fit.model.impute(&data), told.impute(&data)].map(Result::unwrap);
    let (own, told) = (off(own), off(told));
    assert!(own < 1.05 * told, "{own} {told}");
}
