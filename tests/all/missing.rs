//! Missing values: the likelihood of what is known, against the naive sums over known coordinates.

use crate::common::{Known, Settings, all, blobs, close, on, rises_in_phases, rounding};
use coremix::data::{Blocks, Source};
use coremix::m_step::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, algorithms};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, Array2, ArrayView1, Axis, array};
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
        (Covariance::TiedSpherical, true),
        (Covariance::Spherical, true),
        (Covariance::Diagonal, true),
        (Covariance::Tied, true),
        (Covariance::Full, true),
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
        let pairs = matches!(kind, Covariance::Tied | Covariance::Full);
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
                let own = match kind {
                    Covariance::Full => &covariances[c] / masses[c],
                    _ => {
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

fn needs_all(name: &str) -> bool {
    name.contains("dp-gmm") || name.contains("factors")
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
    assert!(fitted > 30, "{fitted}");
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
    for kind in [Covariance::Tied, Covariance::Full, Covariance::Diagonal] {
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
        assert!(coremix::m_step::ExactSums::e_step(&fit.model, &data, None, 3).is_err());
    }
    let process = algorithms::dp_gmm(4, 1.0).build().unwrap();
    let process = process.fit(&dense).unwrap().model;
    assert!(process.predict(&data).is_err() && process.log_densities(&data).is_err());
}

const PAIRS: [Covariance; 2] = [Covariance::Tied, Covariance::Full];

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
    for kind in PAIRS {
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
    for kind in PAIRS {
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
        for kind in PAIRS {
            for prior in [Prior::new(0.0), Prior::weak()] {
                let builder = algorithms::gmm(2).covariance(kind).prior(prior);
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
                let builder = algorithms::gmm(2).covariance(kind).prior(prior);
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
}
