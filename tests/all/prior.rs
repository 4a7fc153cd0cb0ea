//! Priors of Gaussian mixtures: rows in advance, against closed forms, finite differences, and naive sums.

use crate::common::{blobs, close, last, rises_in_phases, rounding};
use coremix::families::{ExactSums, GaussianMixture};
use coremix::prelude::*;
use coremix::{Checkpoint, Float, algorithms};
use nalgebra::DMatrix;
use ndarray::{Array1, Array2, Axis, array};
use std::f64::consts::TAU;

const KINDS: [Covariance; 5] = [
    Covariance::TiedSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
];

fn matrix(c: usize, model: &GaussianMixture<f64>) -> DMatrix<f64> {
    let own = model.covariance(c).unwrap();
    DMatrix::from_fn(own.nrows(), own.ncols(), |i, j| own[[i, j]])
}

/// The parameters of a mixture, for naive sums.
#[derive(Clone)]
struct Theta {
    means: Array2<f64>,
    covariances: Vec<DMatrix<f64>>,
    proportions: Vec<f64>,
}

impl Theta {
    fn of(model: &GaussianMixture<f64>) -> Self {
        Self {
            means: model.means().to_owned(),
            covariances: (0..model.means().nrows())
                .map(|c| matrix(c, model))
                .collect(),
            proportions: model.proportions().to_vec(),
        }
    }

    fn log_likelihood(&self, x: &Array2<f64>, w: &Array1<f64>) -> f64 {
        self.expected(x, w, 0.0)
    }

    /// The log-likelihood with expected log-joints of rows that are known with this variance.
    fn expected(&self, x: &Array2<f64>, w: &Array1<f64>, ridge: f64) -> f64 {
        let d = x.ncols();
        let inverses = self
            .covariances
            .iter()
            .map(|own| own.clone().try_inverse().unwrap());
        let inverses: Vec<_> = inverses.collect();
        let mut total = 0.0;
        for (row, w) in x.outer_iter().zip(w) {
            let joints = (0..self.proportions.len()).map(|c| {
                let u = nalgebra::DVector::from_fn(d, |j, _| row[j] - self.means[[c, j]]);
                let form =
                    (u.transpose() * &inverses[c] * &u)[(0, 0)] + ridge * inverses[c].trace();
                let log_det = self.covariances[c].determinant().ln();
                self.proportions[c].ln() - 0.5 * (d as f64 * TAU.ln() + log_det + form)
            });
            let joints: Vec<f64> = joints.collect();
            let most = joints.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            total += w * (most + joints.iter().map(|x| (x - most).exp()).sum::<f64>().ln());
        }
        total
    }

    /// Rows in advance of these variances: as many copies of a normal distribution as there are covariances, seen by each, less the
    /// same where it is the same distribution.
    fn log_prior(&self, rows: f64, v: &[f64], proportions: f64, number: usize) -> f64 {
        let k = self.proportions.len() as f64;
        let of_covariance = |own: &DMatrix<f64>| {
            let inverse = own.clone().try_inverse().unwrap();
            let terms = v
                .iter()
                .enumerate()
                .map(|(j, v)| v * inverse[(j, j)] - 1.0 - v.ln());
            -0.5 * rows * (own.determinant().ln() + terms.sum::<f64>())
        };
        let of_proportions = self.proportions.iter().map(|p| proportions * (k * p).ln());
        let covariances = self.covariances[..number].iter().map(of_covariance);
        covariances.sum::<f64>() + of_proportions.sum::<f64>()
    }
}

fn weighted_variances(x: &Array2<f64>, w: &Array1<f64>) -> (Array1<f64>, Vec<f64>, Array2<f64>) {
    let total = w.sum();
    let mean = (x * &w.view().insert_axis(Axis(1))).sum_axis(Axis(0)) / total;
    let apart = x - &mean;
    let scatter = apart.t().dot(&(&apart * &w.view().insert_axis(Axis(1))));
    let variances = scatter.diag().iter().map(|s| s / total).collect();
    (mean, variances, scatter)
}

/// With one component the mode of the posterior has a closed form, in the data's own unit; the default follows the data.
#[test]
fn one_component_is_the_closed_form() {
    let x = blobs::<f64>(60, 4, 3, 1) * &array![1.0, 50.0, 1e-3, 1.0] + 3.0;
    let w = Array1::from_shape_fn(60, |n| 0.5 * (n % 4) as f64);
    let data = Dense::weighted(&x, &w).unwrap();
    let (mean, of_data, scatter) = weighted_variances(&x, &w);
    // One component fills all the space.
    for (prior, v) in [
        (Prior::new(7.5), of_data.clone()),
        (Prior::new(7.5).variance(2.5), vec![2.5; 4]),
    ] {
        for (kind, standardise) in KINDS
            .into_iter()
            .flat_map(|kind| [(kind, false), (kind, true)])
        {
            let builder = algorithms::gmm(1).covariance(kind).prior(prior);
            let fit = builder.standardise(standardise).tolerance(0.0);
            let fit = fit.build().unwrap().fit(&data).unwrap();
            let (rows, total) = (7.5, w.sum());
            let one = |s: &dyn Fn(usize) -> f64| (0..4).map(s).sum::<f64>() / 4.0;
            for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
                let known = if i == j { rows * v[j] } else { 0.0 };
                let own = match kind {
                    Covariance::Full | Covariance::Tied => {
                        (scatter[[i, j]] + known) / (total + rows)
                    }
                    _ if i != j => 0.0,
                    Covariance::Diagonal => (scatter[[j, j]] + known) / (total + rows),
                    // One variance of columns of deviation 1 is another one in each column.
                    _ if standardise => {
                        let all = one(&|l| (scatter[[l, l]] + rows * v[l]) / of_data[l]);
                        all / (total + rows) * of_data[j]
                    }
                    _ => one(&|l| scatter[[l, l]] + rows * v[l]) / (total + rows),
                };
                let found = fit.model.covariance(0).unwrap()[[i, j]];
                let scale = (of_data[i] * of_data[j]).sqrt().max(own.abs());
                assert!(
                    (found - own).abs() < 1e-9 * scale,
                    "{kind:?} {standardise}: {found} {own}"
                );
            }
            for (found, own) in fit.model.means().iter().zip(&mean) {
                assert!(close(*found, *own, 1e-12), "{found} {own}");
            }
        }
    }
}

/// F is the naive log-likelihood and the logarithm of the prior density; where it has settled, no parameter raises it.
#[test]
fn the_free_energy_has_no_slope_where_it_has_settled() {
    let x = blobs::<f64>(120, 3, 3, 8);
    let w = Array1::from_shape_fn(120, |n| 0.5 + (n % 3) as f64);
    let data = Dense::weighted(&x, &w).unwrap();
    let (_, v, _) = weighted_variances(&x, &w);
    let share = 3f64.powf(-2.0 / 3.0);
    let v: Vec<f64> = v.iter().map(|v| v * share).collect();
    for (kind, number) in [
        (Covariance::Full, 3),
        (Covariance::Diagonal, 3),
        (Covariance::Tied, 1),
    ] {
        let builder = algorithms::gmm(3).covariance(kind);
        let builder = builder.prior(Prior::new(20.0).proportions(4.0));
        let builder = builder.tolerance(0.0).max_iterations(5_000);
        let fit = builder.build().unwrap().fit(&data).unwrap();
        let theta = Theta::of(&fit.model);
        let free_energy =
            |theta: &Theta| theta.log_likelihood(&x, &w) + theta.log_prior(20.0, &v, 4.0, number);
        let f = free_energy(&theta);
        assert!(close(last(&fit), f, 1e-10), "{kind:?}: {} {f}", last(&fit));
        let slope = |change: &dyn Fn(&mut Theta, f64)| {
            let at = |h: f64| {
                let mut other = theta.clone();
                change(&mut other, h);
                free_energy(&other)
            };
            assert!(at(1e-2) < f && at(-1e-2) < f, "{kind:?}: not a maximum");
            (at(1e-5) - at(-1e-5)) / 2e-5
        };
        for c in 0..3 {
            for i in 0..3 {
                let found = slope(&|theta, h| theta.means[[c, i]] += h);
                assert!(found.abs() < 1e-4, "{kind:?}: mean {found}");
                for j in 0..=i {
                    if kind == Covariance::Diagonal && i != j || c >= number {
                        continue;
                    }
                    let found = slope(&|theta, h| {
                        let all = if number == 1 { 0..3 } else { c..c + 1 };
                        for c in all {
                            theta.covariances[c][(i, j)] += h;
                            theta.covariances[c][(j, i)] = theta.covariances[c][(i, j)];
                        }
                    });
                    assert!(found.abs() < 1e-4, "{kind:?}: covariance {found}");
                }
            }
            let found = slope(&|theta, h| {
                theta.proportions[c] += 0.1 * h;
                theta.proportions[(c + 1) % 3] -= 0.1 * h;
            });
            assert!(found.abs() < 1e-4, "{kind:?}: proportions {found}");
        }
    }
}

/// Components of fewer rows than columns have proper covariances, of copies of one row too, and each is as wide as its rows in advance
/// make it.
fn no_component_collapses<F: Float>() {
    let x = blobs::<F>(30, 12, 6, 3);
    let mut copies = x.clone();
    for n in 0..30 {
        let row = x.row(n % 6).to_owned();
        copies.row_mut(n).assign(&row);
    }
    for x in [&x, &copies] {
        let data = Dense::new(x.view()).unwrap();
        for kind in KINDS {
            for e_step in [
                Exhaustive::all(),
                Exhaustive::nearest(),
                Exhaustive::truncated(2),
            ] {
                let builder = algorithms::gmm(6).covariance(kind).prior(Prior::new(2.0));
                let fit = builder.e_step(e_step).max_iterations(60).tolerance(1e-9);
                let fit = fit.build().unwrap().fit(&data).unwrap();
                rises_in_phases(format!("{kind:?}"), &fit.report, 30.0, rounding::<F>());
                assert_eq!(fit.report.at_floor, 0, "{kind:?}");
                let share = 6f64.powf(-2.0 / 12.0);
                let least = (0..12).map(|j| data.summary().variance[j]);
                let least = 2.0 / 32.0 * share * least.fold(f64::INFINITY, f64::min);
                for c in 0..6 {
                    let own = fit.model.covariance(c).unwrap();
                    let own = DMatrix::from_fn(12, 12, |i, j| own[[i, j]]);
                    let narrowest = own.symmetric_eigen().eigenvalues.min();
                    assert!(narrowest > 0.99 * least, "{kind:?}: {narrowest} {least}");
                }
            }
        }
    }
}

#[test]
fn few_rows_leave_components_wide() {
    no_component_collapses::<f32>();
    no_component_collapses::<f64>();
}

/// Components without rows have the variances of the prior, and a Dirichlet prior leaves them a proportion.
#[test]
fn components_without_rows_are_those_of_the_prior() {
    let x = array![[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.2, 0.1]];
    let seeds = array![[0.0, 0.0], [1.0, 1.0], [1e9, 1e9]];
    let prior = Prior::new(1.0).variance(0.25);
    for kind in [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Full,
    ] {
        for (rows, proportion) in [(0.0, 0.0), (2.0, 0.2)] {
            let builder = algorithms::gmm(3)
                .covariance(kind)
                .prior(prior.proportions(rows));
            let builder = builder.seeder(Given::new(seeds.view())).max_iterations(1);
            let fit = builder
                .build()
                .unwrap()
                .fit(&Dense::new(&x).unwrap())
                .unwrap();
            let own = fit.model.covariance(2).unwrap();
            assert!(
                close(own[[0, 0]], 0.25, 1e-9) && own[[0, 1]].abs() < 1e-9,
                "{kind:?}: {own}"
            );
            assert!(
                close(fit.model.proportions()[2], proportion, 1e-12),
                "{kind:?}"
            );
            assert!(last(&fit).is_finite());
        }
    }
}

/// Other units of the columns are other units of the answers, by default and where the variance of the prior is in the same unit.
#[test]
fn units_do_not_matter() {
    let x = blobs::<f64>(200, 3, 4, 5);
    let scale = array![1000.0, 1e-3, 7.0];
    for kind in KINDS {
        let by_column = matches!(
            kind,
            Covariance::Diagonal | Covariance::Full | Covariance::Tied
        );
        for (factors, given) in [(&array![8.0, 8.0, 8.0], true), (&scale, false)] {
            if !given && !by_column {
                continue;
            }
            let fit = |x: &Array2<f64>, variance: f64| {
                let prior = match given {
                    true => Prior::new(5.0).variance(variance),
                    false => Prior::new(5.0),
                };
                // The start is one variance of all columns.
                let builder = algorithms::gmm(4)
                    .covariance(kind)
                    .prior(prior)
                    .standardise(!given);
                let seeds = x.select(Axis(0), &[0, 1, 2, 3]);
                let builder = builder.seeder(Given::new(seeds.view())).tolerance(0.0);
                let data = Dense::new(x).unwrap();
                let model = builder
                    .max_iterations(2_000)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap()
                    .model;
                (
                    model.responsibilities(&data).unwrap(),
                    model.prior_terms(),
                    model,
                )
            };
            let (a, b) = (fit(&x, 0.5), fit(&(&x * factors), 0.5 * 64.0));
            let off = (&a.0 - &b.0)
                .iter()
                .fold(0.0f64, |most, x| most.max(x.abs()));
            assert!(off < 1e-6, "{kind:?}: {off}");
            assert!(close(a.1, b.1, 1e-6), "{kind:?}: {} {}", a.1, b.1);
            for (c, j) in (0..4).flat_map(|c| (0..3).map(move |j| (c, j))) {
                let scaled = a.2.variances()[[c, j]] * factors[j] * factors[j];
                assert!(
                    close(b.2.variances()[[c, j]] / scaled, 1.0, 1e-6),
                    "{kind:?}"
                );
            }
        }
    }
}

/// A saved model keeps its prior; a fit from it goes on as if it had not stopped, and so does one step over rows in many places.
#[test]
fn the_model_keeps_it() {
    let x = blobs::<f64>(150, 3, 4, 2);
    let data = Dense::new(&x).unwrap();
    for kind in KINDS {
        let builder = |iterations| {
            let builder = algorithms::gmm(4).covariance(kind);
            let builder = builder.prior(Prior::new(6.0).proportions(1.5));
            builder.tolerance(0.0).max_iterations(iterations)
        };
        let fit = |iterations| builder(iterations).build().unwrap().fit(&data).unwrap();
        let (three, four) = (fit(3), fit(4));
        let loaded = Save::from_bytes(&three.model.to_bytes(&[]).unwrap()).unwrap();
        assert_eq!(three.model, loaded);
        assert_eq!(three.model.prior_terms(), loaded.prior_terms());
        assert!(loaded.prior_terms() < 0.0);
        let warm = builder(1)
            .start_from(&loaded)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        assert!(
            close(warm.report.free_energies[0], last(&three), 1e-12),
            "{kind:?}"
        );
        let next = match kind {
            Covariance::Tied | Covariance::Full => None,
            _ => {
                // In two places: what is known in advance counts once, and not in a likelihood.
                let parts = x.axis_chunks_iter(Axis(0), 100);
                let sums = parts.map(|part| {
                    let part = Dense::batch(part).unwrap();
                    ExactSums::e_step(&loaded, &part, None, 4).unwrap()
                });
                let sums = sums.reduce(|a, b| a.merge(b).unwrap()).unwrap();
                let likelihood = ExactSums::score(&loaded, &data).unwrap().free_energy();
                let own = loaded.log_likelihood(&data).unwrap();
                assert!(close(likelihood, own, 1e-11), "{kind:?}");
                let energy = likelihood + loaded.prior_terms();
                assert!(close(sums.free_energy(), energy, 1e-11), "{kind:?}");
                assert!(close(sums.free_energy(), last(&three), 1e-11), "{kind:?}");
                Some(sums.update(&loaded).unwrap())
            }
        };
        for other in [Some(warm.model), next].into_iter().flatten() {
            let (a, b) = (Mixture::variances(&four.model), Mixture::variances(&other));
            assert!(
                a.iter().zip(&b).all(|(a, b)| close(a / b, 1.0, 1e-9)),
                "{kind:?}"
            );
            let shares = four.model.proportions().to_owned() - other.proportions();
            assert!(shares.iter().all(|x| x.abs() < 1e-12), "{kind:?}");
        }
    }
    // Proportions of 0 of the model before are none under a Dirichlet prior.
    let (means, v) = (array![[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], array![1.0, 1.0]);
    let shares = array![1.0, 0.0];
    let kind = Covariance::Spherical;
    let from = GaussianMixture::from_parameters(kind, means.view(), v.view(), shares.view());
    let builder = algorithms::gmm(2)
        .covariance(kind)
        .start_from(&from.unwrap());
    let builder = builder
        .prior(Prior::weak().proportions(1.0))
        .max_iterations(0);
    let fit = builder.build().unwrap().fit(&data).unwrap();
    assert!(close(fit.model.proportions()[1], 1.0 / 152.0, 1e-12));
    // It is part of what a checkpoint is for.
    let path = std::env::temp_dir().join(format!("coremix-prior-{}.cmk", std::process::id()));
    let checkpoint = Checkpoint::to(&path);
    let fit = |rows: f64, checkpoint: &Checkpoint| {
        let builder = algorithms::gmm::<f64>(4).covariance(Covariance::Full);
        let builder = builder.prior(Prior::new(rows)).checkpoint(checkpoint);
        builder.build().unwrap().fit(&data).map(|fit| fit.model)
    };
    let first = fit(1.0, &checkpoint).unwrap();
    let resumed = checkpoint.resume();
    assert_eq!(fit(1.0, &resumed).unwrap(), first);
    assert!(fit(2.0, &resumed).is_err());
    std::fs::remove_file(path).unwrap();
}

/// No rows in advance are maximum likelihood, bit for bit; and settings that are none are errors that name them.
#[test]
fn hostile_settings() {
    let x = blobs::<f32>(80, 3, 4, 2);
    let data = Dense::new(&x).unwrap();
    for kind in KINDS {
        let builder = || algorithms::gmm(4).covariance(kind);
        let (a, b) = (builder(), builder().prior(Prior::new(0.0)));
        let [a, b] = [a, b].map(|builder| builder.build().unwrap().fit(&data).unwrap());
        assert_eq!(a.report.free_energies, b.report.free_energies);
        assert_eq!(a.model.means(), b.model.means());
        assert_eq!(Mixture::variances(&a.model), Mixture::variances(&b.model));
        // The order of the settings does not matter.
        let (a, b) = (
            algorithms::gmm::<f32>(4)
                .prior(Prior::weak())
                .covariance(kind),
            algorithms::gmm::<f32>(4)
                .covariance(kind)
                .prior(Prior::weak()),
        );
        let [a, b] = [a, b].map(|builder| builder.build().unwrap().fit(&data).unwrap());
        assert_eq!(a.model, b.model);
        // Extreme ones that are allowed.
        for prior in [
            Prior::new(1e9),
            Prior::new(1e-300),
            Prior::new(1.0).variance(1e-20),
            Prior::new(1e9).variance(1e20),
            Prior::new(1e-9).variance(1e20),
            Prior::new(0.0).proportions(1e9),
            Prior::new(0.0).proportions(1e-300),
        ] {
            for e_step in [Exhaustive::all(), Exhaustive::nearest()] {
                let fit = builder().prior(prior).e_step(e_step).build().unwrap();
                let fit = fit.fit(&data).unwrap();
                rises_in_phases(
                    format!("{kind:?} {prior:?}"),
                    &fit.report,
                    80.0,
                    rounding::<f32>(),
                );
                assert!(fit.model.means().iter().all(|x| x.is_finite()));
                let loaded = Save::from_bytes(&fit.model.to_bytes(&[]).unwrap()).unwrap();
                assert_eq!(fit.model, loaded);
            }
        }
    }
    let nan = f64::NAN;
    for (prior, name) in [
        (Prior::new(-1.0), "rows"),
        (Prior::new(nan), "rows"),
        (Prior::new(2e9), "rows"),
        (Prior::weak().variance(0.0), "variance"),
        (Prior::weak().variance(-1.0), "variance"),
        (Prior::weak().variance(nan), "variance"),
        (Prior::weak().variance(f64::INFINITY), "variance"),
        (Prior::weak().proportions(-0.5), "proportions"),
        (Prior::weak().proportions(nan), "proportions"),
    ] {
        let error = algorithms::gmm::<f32>(4).prior(prior).build().map(|_| ());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    for far in [1e-40, 1e40] {
        let builder = algorithms::gmm::<f32>(4).prior(Prior::weak().variance(far));
        let error = builder
            .build()
            .unwrap()
            .fit(&data)
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("prior variance"), "{error}");
    }
    // Constant columns, and rows that are all equal.
    let flat = Array2::from_elem((10, 2), 3.0f64);
    for kind in KINDS {
        let builder = algorithms::gmm(2).covariance(kind).prior(Prior::weak());
        let fit = builder
            .build()
            .unwrap()
            .fit(&Dense::new(&flat).unwrap())
            .unwrap();
        assert!(last(&fit).is_finite());
    }
}

/// The laws that hold for all families.
#[test]
fn it_holds_the_laws_of_families() {
    let x = blobs::<f64>(90, 3, 4, 6);
    let data = Dense::new(&x).unwrap();
    for kind in KINDS {
        let family = Gaussian::new(kind).prior(Prior::new(2.0).proportions(1.0));
        coremix::testing::family(&family, &data, 4).unwrap();
    }
}

/// With one component the maximum has a closed form, in every kind of covariances and in the unit of the data.
#[test]
fn a_ridge_is_added_to_covariances() {
    let x = blobs::<f64>(80, 3, 3, 4) * &array![1.0, 30.0, 0.1];
    let w = Array1::from_shape_fn(80, |n| 0.5 + (n % 3) as f64);
    let data = Dense::weighted(&x, &w).unwrap();
    let (_, v, scatter) = weighted_variances(&x, &w);
    let ridge = 0.7;
    for (kind, standardise) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        let builder = algorithms::gmm(1)
            .covariance(kind)
            .prior(Prior::new(0.0).ridge(ridge));
        let builder = builder.standardise(standardise).tolerance(0.0);
        let model = builder.build().unwrap().fit(&data).unwrap().model;
        let found = model.covariance(0).unwrap();
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let added = if i == j { ridge } else { 0.0 };
            let own = match kind {
                Covariance::Tied | Covariance::Full => scatter[[i, j]] / w.sum() + added,
                _ if i != j => 0.0,
                Covariance::Diagonal => v[j] + added,
                _ if standardise => (0..3).map(|l| 1.0 + ridge / v[l]).sum::<f64>() / 3.0 * v[j],
                _ => v.iter().sum::<f64>() / 3.0 + ridge,
            };
            let unit = (v[i] * v[j]).sqrt().max(1.0);
            assert!(
                (found[[i, j]] - own).abs() < 1e-9 * unit,
                "{kind:?}: {found} {own}"
            );
        }
    }
}

/// F is that of expected costs: it rises and has no slope where it has settled, and no component is narrower.
#[test]
fn a_ridge_is_part_of_the_free_energy() {
    let x = blobs::<f64>(90, 3, 4, 8);
    let w = Array1::from_shape_fn(90, |n| 0.5 + (n % 3) as f64);
    let data = Dense::weighted(&x, &w).unwrap();
    let prior = Prior::new(0.0).proportions(0.5).ridge(0.4);
    let builder = algorithms::gmm(3).covariance(Covariance::Full).prior(prior);
    let builder = builder.tolerance(0.0).max_iterations(5_000);
    let fit = builder.build().unwrap().fit(&data).unwrap();
    rises_in_phases("ridge", &fit.report, w.sum(), rounding::<f64>());
    let theta = Theta::of(&fit.model);
    let free_energy =
        |theta: &Theta| theta.expected(&x, &w, 0.4) + theta.log_prior(0.0, &[1.0; 3], 0.5, 3);
    let f = free_energy(&theta);
    assert!(close(last(&fit), f, 1e-10), "{} {f}", last(&fit));
    let slope = |change: &dyn Fn(&mut Theta, f64)| {
        let at = |h: f64| {
            let mut other = theta.clone();
            change(&mut other, h);
            free_energy(&other)
        };
        assert!(at(1e-2) < f && at(-1e-2) < f, "not a maximum");
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!(slope.abs() < 1e-4, "{slope}");
    };
    for c in 0..3 {
        for (i, j) in (0..3).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            slope(&|theta, h| {
                theta.covariances[c][(i, j)] += h;
                theta.covariances[c][(j, i)] = theta.covariances[c][(i, j)];
            });
        }
        slope(&|theta, h| theta.means[[c, 0]] += h);
        slope(&|theta, h| {
            theta.proportions[c] += 0.1 * h;
            theta.proportions[(c + 1) % 3] -= 0.1 * h;
        });
    }
    // Few rows, copies, and searches of all kinds.
    let mut few = blobs::<f32>(30, 12, 6, 3);
    for n in 12..30 {
        let row = few.row(n % 6).to_owned();
        few.row_mut(n).assign(&row);
    }
    let data = Dense::new(&few).unwrap();
    for kind in KINDS {
        for e_step in [
            Exhaustive::all(),
            Exhaustive::nearest(),
            Exhaustive::truncated(2),
        ] {
            let builder = algorithms::gmm(6).covariance(kind).e_step(e_step);
            let builder = builder.prior(Prior::new(0.0).ridge(0.01)).tolerance(1e-9);
            let fit = builder
                .max_iterations(60)
                .build()
                .unwrap()
                .fit(&data)
                .unwrap();
            rises_in_phases(format!("{kind:?}"), &fit.report, 30.0, rounding::<f32>());
            assert_eq!(fit.report.at_floor, 0, "{kind:?}");
            let loaded = Save::from_bytes(&fit.model.to_bytes(&[]).unwrap()).unwrap();
            assert_eq!(fit.model, loaded);
        }
    }
    for extreme in [1e-300, 1e20] {
        for kind in KINDS {
            let prior = Prior::new(0.0).ridge(extreme);
            let builder = algorithms::gmm(6).covariance(kind).prior(prior);
            let fit = builder.build().unwrap().fit(&data).unwrap();
            rises_in_phases(format!("{kind:?}"), &fit.report, 30.0, rounding::<f32>());
            let loaded = Save::from_bytes(&fit.model.to_bytes(&[]).unwrap()).unwrap();
            assert_eq!(fit.model, loaded);
        }
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let builder = algorithms::gmm::<f64>(2).prior(Prior::new(0.0).ridge(bad));
        assert!(builder.build().unwrap_err().to_string().contains("ridge"));
    }
    let far = algorithms::gmm(2)
        .prior(Prior::new(0.0).ridge(1e40))
        .build()
        .unwrap();
    assert!(
        far.fit(&data)
            .map(|_| ())
            .unwrap_err()
            .to_string()
            .contains("ridge")
    );
}
