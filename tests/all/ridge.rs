//! Ridges: rows that are known with a variance, against a naive EM with the expected costs of rows.

use crate::common::{blobs, close, last, rises_in_phases, rounding};
use coremix::data::Sparse;
use coremix::families::{GaussianMixture, Product};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Error, Float, algorithms};
use nalgebra::DMatrix;
use ndarray::{Array1, Array2, Axis};
use std::f64::consts::TAU;

const KINDS: [Covariance; 6] = [
    Covariance::TiedSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
    Covariance::Factors(1),
];

fn ridge(variance: f64) -> Prior {
    Prior::new(0.0).ridge(variance)
}

/// Rows known in part, with this share of values missing.
fn holes(x: &Array2<f64>, share: f64) -> Array2<f64> {
    let mut rng = Rng::from_seed(7);
    x.mapv(|x| if rng.uniform() < share { f64::NAN } else { x })
}

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| 0.5 + (n % 3) as f64)
}

fn part(all: &DMatrix<f64>, a: &[usize], b: &[usize]) -> DMatrix<f64> {
    DMatrix::from_fn(a.len(), b.len(), |i, j| all[(a[i], b[j])])
}

/// A row under a component: its expected log-density, the row as it is completed, and the covariance of what it may be: that of what is
/// missing given what is known, and of what is known with the ridge.
struct Naive {
    log_density: f64,
    row: Array1<f64>,
    noise: DMatrix<f64>,
}

fn naive(row: &Array1<f64>, mean: &Array1<f64>, covariance: &DMatrix<f64>, ridge: f64) -> Naive {
    let d = row.len();
    let (known, missing): (Vec<_>, Vec<_>) = (0..d).partition(|j| !row[*j].is_nan());
    let of_known = part(covariance, &known, &known);
    let inverse = of_known.clone().try_inverse().unwrap();
    let u = nalgebra::DVector::from_fn(known.len(), |i, _| row[known[i]] - mean[known[i]]);
    let form = u.dot(&(&inverse * &u)) + ridge * inverse.trace();
    let log_det = of_known.determinant().ln();
    let slopes = part(covariance, &missing, &known) * &inverse;
    let rest = part(covariance, &missing, &missing) - &slopes * part(covariance, &known, &missing);
    let expected = &slopes * u;
    // A known coordinate as it is, and what follows from it.
    let mut map = DMatrix::zeros(d, known.len());
    known
        .iter()
        .enumerate()
        .for_each(|(i, j)| map[(*j, i)] = 1.0);
    let mut completed = row.clone();
    let mut noise = DMatrix::zeros(d, d);
    for (i, a) in missing.iter().enumerate() {
        completed[*a] = mean[*a] + expected[i];
        map.row_mut(*a).copy_from(&slopes.row(i));
        for (j, b) in missing.iter().enumerate() {
            noise[(*a, *b)] = rest[(i, j)];
        }
    }
    Naive {
        log_density: -0.5 * (known.len() as f64 * TAU.ln() + log_det + form),
        row: completed,
        noise: noise + &map * map.transpose() * ridge,
    }
}

struct Step {
    free_energy: f64,
    shares: Array2<f64>,
    proportions: Vec<f64>,
    means: Array2<f64>,
    covariances: Vec<DMatrix<f64>>,
}

/// The free energy of a mixture, and a step of EM from it. Where columns are independent given the component, each has the mean and the
/// variance of the rows that know it.
fn step(x: &Array2<f64>, w: &Array1<f64>, model: &GaussianMixture<f64>, ridge: f64) -> Step {
    let kind = model.covariance_kind();
    let ((n, d), k) = (x.dim(), model.means().nrows());
    let covariance = |c| {
        let own = model.covariance(c).unwrap();
        DMatrix::from_fn(d, d, |i, j| own[[i, j]])
    };
    let of_component = |c: usize| {
        let (mean, own) = (model.means().row(c).to_owned(), covariance(c));
        let rows = x.outer_iter();
        rows.map(|row| naive(&row.to_owned(), &mean, &own, ridge))
            .collect::<Vec<_>>()
    };
    let all: Vec<Vec<Naive>> = (0..k).map(of_component).collect();
    let mut shares = Array2::from_shape_fn((n, k), |(n, c)| {
        model.proportions()[c].ln() + all[c][n].log_density
    });
    let mut free_energy = 0.0;
    for (mut row, w) in shares.outer_iter_mut().zip(w) {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = row.mapv(|x| (x - most).exp()).sum();
        free_energy += w * (most + sum.ln());
        row.mapv_inplace(|x| (x - most).exp() / sum);
    }
    let by_column = matches!(kind, Covariance::Diagonal | Covariance::Spherical);
    let mut means = Array2::zeros((k, d));
    let (mut covariances, mut masses) = (Vec::new(), Vec::new());
    for (c, own) in all.iter().enumerate() {
        let share = |n: usize| w[n] * shares[[n, c]];
        let knows = |n: usize, j: usize| !by_column || !x[[n, j]].is_nan();
        let of = |j: usize, value: &dyn Fn(usize) -> f64| -> f64 {
            let rows = (0..n).filter(|n| knows(*n, j));
            rows.map(|n| share(n) * value(n)).sum()
        };
        for j in 0..d {
            means[[c, j]] = of(j, &|n| own[n].row[j]) / of(j, &|_| 1.0);
        }
        let apart = |n: usize, j: usize| own[n].row[j] - means[[c, j]];
        let sums = DMatrix::from_fn(d, d, |i, j| {
            of(j, &|n| apart(n, i) * apart(n, j) + own[n].noise[(i, j)])
        });
        let known: Vec<f64> = (0..d).map(|j| of(j, &|_| 1.0)).collect();
        masses.push((0..n).map(share).sum::<f64>());
        covariances.push(match kind {
            Covariance::Spherical => {
                DMatrix::identity(d, d) * (sums.trace() / known.iter().sum::<f64>())
            }
            Covariance::Diagonal => DMatrix::from_fn(d, d, |i, j| match i == j {
                true => sums[(i, i)] / known[i],
                false => 0.0,
            }),
            Covariance::Tied => sums / w.sum(),
            _ => sums / masses[c],
        });
    }
    if kind == Covariance::Tied {
        let all = covariances.iter().sum::<DMatrix<f64>>();
        covariances = vec![all; k];
    }
    Step {
        free_energy,
        shares,
        proportions: masses.iter().map(|m| m / w.sum()).collect(),
        means,
        covariances,
    }
}

/// Each step of EM is the naive one, of complete rows and of rows with missing values: a ridge is added to the covariances, whatever the
/// weight of their component, and shares follow from expected costs.
#[test]
fn steps_are_those_of_naive_em() {
    let x = blobs::<f64>(90, 4, 3, 4);
    let w = weights(90);
    for (x, ridge_of) in [(x.clone(), 0.3), (holes(&x, 0.3), 0.3), (x, 1e-3)] {
        let data = || Dense::weighted_with_missing(&x, &w).unwrap();
        for kind in &KINDS[1..] {
            let fit = |iterations: usize| {
                let builder = algorithms::gmm(3).covariance(*kind).prior(ridge(ridge_of));
                let builder = builder.tolerance(0.0).max_iterations(iterations);
                builder.build().unwrap().fit(&data()).unwrap()
            };
            let (three, four) = (fit(3), fit(4));
            let naive = step(&x, &w, &three.model, ridge_of);
            let say = format!("{kind:?} {ridge_of}");
            let f = last(&three);
            assert!(
                close(f, naive.free_energy, 1e-9),
                "{say}: {f} {}",
                naive.free_energy
            );
            let shares = three.model.responsibilities(&data()).unwrap() - &naive.shares;
            assert!(shares.iter().all(|x| x.abs() < 1e-8), "{say}");
            // An update of factors is no closed form of these sums.
            if matches!(kind, Covariance::Factors(_)) {
                continue;
            }
            for c in 0..3 {
                let own = four.model.covariance(c).unwrap();
                for ((i, j), v) in own.indexed_iter() {
                    let right = naive.covariances[c][(i, j)];
                    assert!((v - right).abs() < 1e-8, "{say}: {v} {right}");
                }
                let shares = four.model.proportions()[c] - naive.proportions[c];
                assert!(shares.abs() < 1e-10, "{say}: {shares}");
                let steps = &four.model.means().row(c) - &naive.means.row(c);
                assert!(steps.iter().all(|x| x.abs() < 1e-8), "{say}: {steps}");
            }
        }
    }
}

/// 500 rows of deviation 1, and 60 far away that are equal, or narrow.
fn two_groups(d: usize, deviation: f64) -> Array2<f64> {
    let mut rng = Rng::from_seed(1);
    Array2::from_shape_fn((560, d), |(n, _)| match n < 500 {
        true => rng.normal(),
        false => 30.0 + deviation * rng.normal(),
    })
}

/// Rows that are equal keep their weight, and have the variance of the ridge; F never falls and is a bound of the log-likelihood.
#[test]
fn equal_and_narrow_rows_keep_their_weight() {
    for d in [1, 4, 16, 64] {
        for deviation in [0.0, 0.01] {
            let x = two_groups(d, deviation);
            let data = Dense::new(&x).unwrap();
            let seeds = x.select(Axis(0), &[0, 559]);
            for kind in KINDS
                .into_iter()
                .filter(|kind| d > 1 || !matches!(kind, Covariance::Factors(_)))
            {
                let builder = algorithms::gmm(2).covariance(kind).prior(ridge(1e-3));
                let builder = builder.seeder(Given::new(seeds.view())).tolerance(1e-9);
                let fit = builder.build().unwrap().fit(&data).unwrap();
                let say = format!("{kind:?}, {d} columns, {deviation}");
                rises_in_phases(&say, &fit.report, 560.0, rounding::<f64>());
                let likelihood = fit.model.log_likelihood(&data).unwrap();
                assert!(
                    last(&fit) < likelihood,
                    "{say}: {} {likelihood}",
                    last(&fit)
                );
                assert_eq!(fit.report.at_floor, 0, "{say}");
                assert_eq!(
                    fit.search_labels,
                    fit.model.predict(&data).unwrap(),
                    "{say}"
                );
                if kind != Covariance::TiedSpherical {
                    let share = fit.model.proportions()[1];
                    assert!(close(share, 60.0 / 560.0, 1e-9), "{say}: {share}");
                }
                if matches!(kind, Covariance::Tied | Covariance::TiedSpherical) {
                    continue;
                }
                for (j, v) in fit.model.variances().row(1).iter().enumerate() {
                    let own = x.slice(ndarray::s![500.., j]);
                    let right = match kind {
                        Covariance::Spherical => x
                            .slice(ndarray::s![500.., ..])
                            .var_axis(Axis(0), 0.0)
                            .mean()
                            .unwrap(),
                        _ => own.var(0.0),
                    };
                    let within = match kind {
                        // Factors end where F settles.
                        Covariance::Factors(_) => 0.1,
                        _ => 1e-6,
                    };
                    assert!(close(v / (right + 1e-3), 1.0, within), "{say}: {v} {right}");
                }
            }
        }
    }
}

/// Half of the values of each column are 0.
#[test]
fn inflated_zeros_have_the_shares_of_their_rows() {
    let mut rng = Rng::from_seed(3);
    for d in [2, 16] {
        let x = Array2::from_shape_fn((400, d), |(n, _)| match n < 150 {
            true => 0.0,
            false => (3.0 + rng.normal()).exp(),
        });
        let data = Dense::new(&x).unwrap();
        for kind in KINDS {
            let builder = algorithms::gmm(2).covariance(kind).prior(ridge(1e-2));
            let fit = builder
                .tolerance(1e-10)
                .max_iterations(2_000)
                .build()
                .unwrap();
            let fit = fit.fit(&data).unwrap();
            rises_in_phases(format!("{kind:?}"), &fit.report, 400.0, rounding::<f64>());
            let shares = fit.model.responsibilities(&data).unwrap();
            let shares = shares.mean_axis(Axis(0)).unwrap();
            for (share, own) in shares.iter().zip(fit.model.proportions()) {
                let equal = kind == Covariance::TiedSpherical;
                assert!(
                    equal || (share - own).abs() < 1e-3,
                    "{kind:?}: {share} {own}"
                );
            }
            assert!(
                fit.model.variances().iter().all(|v| *v > 0.99e-2),
                "{kind:?}"
            );
        }
    }
}

/// F never falls, for all searches, kinds of rows and kinds of covariances that take them, in either unit of the columns.
fn it_never_falls<F: Float>() {
    let whole = blobs::<f64>(160, 5, 4, 5) * &ndarray::array![1.0, 20.0, 0.1, 1.0, 3.0];
    let mut equal = whole.clone();
    for n in 100..160 {
        let row = whole.row(n % 7).to_owned();
        equal.row_mut(n).assign(&row);
    }
    let thin = equal.mapv(|x| if (x * 97.0).sin() < 0.3 { 0.0 } else { x });
    let w = weights(160);
    for share in [0.0, 0.3] {
        let dense = holes(&equal, share).mapv(F::from_f64);
        let thin = thin.mapv(F::from_f64);
        let (mut starts, mut ids, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in thin.outer_iter() {
            for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != F::zero()) {
                ids.push(j as u32);
                values.push(*x);
            }
            starts.push(ids.len());
        }
        let dense = Dense::weighted_with_missing(&dense, &w).unwrap();
        let sparse = Sparse::weighted(5, &starts, &ids, &values, w.as_slice().unwrap()).unwrap();
        let sketch = Sketch::new(thin.view(), 3, 2).unwrap();
        let rows: [(&str, &dyn Data<F>); 3] =
            [("dense", &dense), ("sparse", &sparse), ("sketch", &sketch)];
        for (name, data) in rows {
            for kind in KINDS {
                for (place, e_step) in [
                    Exhaustive::all(),
                    Exhaustive::nearest(),
                    Exhaustive::truncated(2),
                ]
                .into_iter()
                .enumerate()
                {
                    for (epsilon, standardise) in [(1e-2, false), (1e-2, true), (3.0, false)] {
                        let builder = algorithms::gmm::<F>(4).covariance(kind).e_step(e_step);
                        let builder = builder.prior(ridge(epsilon)).standardise(standardise);
                        let builder = builder.tolerance(1e-9).max_iterations(40);
                        let say =
                            format!("{name} {kind:?} {place} {epsilon} {standardise} {share}");
                        match builder.build().unwrap().fit(data) {
                            Ok(fit) => {
                                rises_in_phases(&say, &fit.report, 240.0, rounding::<F>());
                                let most = fit.model.log_likelihood(data).unwrap();
                                let slack = rounding::<F>() * most.abs().max(240.0);
                                assert!(last(&fit) <= most + slack, "{say}: {} {most}", last(&fit));
                            }
                            Err(Error::Parameter { .. }) => assert_ne!(name, "dense", "{say}"),
                            Err(error) => assert!(standardise, "{say}: {error}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_free_energy_never_falls() {
    it_never_falls::<f64>();
    it_never_falls::<f32>();
}

/// Variances that rows in advance hold below the ridge: a missing value adds less than nothing to sums, to which the ridge comes.
#[test]
fn rows_in_advance_may_be_narrower_than_a_ridge() {
    let mut rng = Rng::from_seed(3);
    let x = Array2::from_shape_fn((60, 3), |_| 1e-3 * rng.normal());
    let x = holes(&x, 0.2);
    let data = Dense::with_missing(&x).unwrap();
    for epsilon in [1e-6, 1e-2, 1.0] {
        for prior in [Prior::weak(), Prior::new(20.0)].map(|prior| prior.ridge(epsilon)) {
            for kind in KINDS {
                for c_prime in [1, 3] {
                    let builder = algorithms::gmm(3).covariance(kind).prior(prior);
                    let builder = builder.e_step(Exhaustive::truncated(c_prime));
                    let builder = builder.tolerance(0.0).max_iterations(12);
                    let fit = builder.build().unwrap().fit(&data).unwrap();
                    let what = format!("{kind:?}, ridge {epsilon:e}, {prior:?}");
                    rises_in_phases(what, &fit.report, 60.0, 1e-9);
                }
            }
        }
    }
}

/// A saved model has the same labels, shares and densities, and a fit goes on from it as if it had not stopped; but only from the means
/// of a model whose components are too narrow for the ridge.
#[test]
fn models_keep_it() {
    let x = blobs::<f64>(150, 3, 4, 2);
    let w = weights(150);
    for x in [x.clone(), holes(&x, 0.2)] {
        let data = Dense::weighted_with_missing(&x, &w).unwrap();
        for kind in KINDS {
            let builder = |epsilon, iterations| {
                let builder = algorithms::gmm(4).covariance(kind).prior(ridge(epsilon));
                builder.tolerance(0.0).max_iterations(iterations)
            };
            let fit = |iterations| {
                builder(0.2, iterations)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap()
            };
            let (three, four) = (fit(3), fit(4));
            let loaded = GaussianMixture::from_bytes(&three.model.to_bytes(&[]).unwrap()).unwrap();
            assert_eq!(three.model, loaded);
            assert_eq!(three.search_labels, loaded.predict(&data).unwrap());
            let of = |model: &GaussianMixture<f64>| model.log_densities(&data).unwrap();
            assert_eq!(of(&three.model), of(&loaded));
            let warm = builder(0.2, 1).start_from(&loaded).build().unwrap();
            let warm = warm.fit(&data).unwrap();
            assert!(
                close(warm.report.free_energies[0], last(&three), 1e-10),
                "{kind:?}"
            );
            assert!(close(last(&warm), last(&four), 1e-8), "{kind:?}");
        }
    }
    let x = two_groups(3, 0.0);
    let data = Dense::new(&x).unwrap();
    let seeds = x.select(Axis(0), &[0, 559]);
    for kind in &KINDS[1..5] {
        let builder = algorithms::gmm(2).covariance(*kind);
        let builder = builder.seeder(Given::new(seeds.view()));
        let narrow = builder.build().unwrap().fit(&data).unwrap().model;
        let builder = algorithms::gmm(2).covariance(*kind).prior(ridge(1e-2));
        let fit = builder
            .start_from(&narrow)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let share = fit.model.proportions()[1];
        assert!(close(share, 60.0 / 560.0, 1e-6), "{kind:?}: {share}");
    }
}

/// A Gaussian block of a product has the ridge whatever the weight of a component, and densities have none.
#[test]
fn blocks_of_products_have_it() {
    let x = two_groups(3, 1.0);
    let data = Dense::new(&x).unwrap();
    let seeds = x.select(Axis(0), &[0, 559]);
    for kind in [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Full,
        Covariance::Tied,
    ] {
        let fit = |epsilon| {
            let family = Gaussian::new(kind).prior(ridge(epsilon));
            let builder = algorithms::gmm(2).m_step(Product::new(family));
            let builder = builder.seeder(Given::new(seeds.view())).tolerance(1e-10);
            builder.build().unwrap().fit(&data).unwrap()
        };
        let (without, with) = (fit(0.0), fit(0.1));
        let more = with.model.variances() - without.model.variances();
        assert!(
            more.iter().all(|v| (v - 0.1).abs() < 1e-9),
            "{kind:?}: {more}"
        );
        rises_in_phases(format!("{kind:?}"), &with.report, 560.0, rounding::<f64>());
        let plain = algorithms::gmm(2).covariance(kind).prior(ridge(0.1));
        let plain = plain.seeder(Given::new(seeds.view())).tolerance(1e-10);
        let plain = plain.build().unwrap().fit(&data).unwrap();
        let [a, b] = [
            with.model.log_likelihood(&data),
            plain.model.log_likelihood(&data),
        ];
        assert!(
            close(a.clone().unwrap(), b.clone().unwrap(), 1e-9),
            "{kind:?}: {a:?} {b:?}"
        );
        assert!(last(&with) < a.unwrap());
    }
}
