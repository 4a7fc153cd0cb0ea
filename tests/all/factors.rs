//! Factor analysers: costs and EM against dense matrices, scikit-learn's `FactorAnalysis`, full covariances, and hard input.

use crate::common::{blobs, close, read, rises, rounding, same_on_threads, seeds, turned};
use coremix::Save;
use coremix::families::{ExactSums, GaussianMixture};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, algorithms};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, Array2, Array3, Axis, array, concatenate};
use std::f64::consts::TAU;

/// Rows of `d` columns in `k` groups, each with `q` factors of its own.
fn rows(n: usize, d: usize, k: usize, q: usize, noise: f64) -> Array2<f64> {
    let mut rng = Rng::from_seed(9);
    let loadings = Array3::from_shape_fn((k, d, q), |_| rng.normal());
    let means = Array2::from_shape_fn((k, d), |_| 3.0 * rng.normal());
    let mut x = Array2::zeros((n, d));
    for (i, mut row) in x.outer_iter_mut().enumerate() {
        let c = i % k;
        let z = Array1::from_shape_fn(q, |_| rng.normal());
        row.assign(&(&loadings.index_axis(Axis(0), c).dot(&z) + &means.row(c)));
        row.mapv_inplace(|x| x + noise * rng.normal());
    }
    x
}

/// A naive mixture of factor analysers, with dense matrices.
#[derive(Clone)]
struct Naive {
    means: Vec<DVector<f64>>,
    loadings: Vec<DMatrix<f64>>,
    noise: Vec<DVector<f64>>,
    proportions: Vec<f64>,
}

impl Naive {
    fn of<F: Float>(model: &GaussianMixture<F>) -> Self {
        let (loadings, noise, means) = (model.loadings(), model.noise(), model.means());
        let (k, d, q) = loadings.dim();
        Self {
            means: (0..k)
                .map(|c| DVector::from_fn(d, |j, _| means[[c, j]].to_f64()))
                .collect(),
            loadings: (0..k)
                .map(|c| DMatrix::from_fn(d, q, |j, l| loadings[[c, j, l]]))
                .collect(),
            noise: (0..k)
                .map(|c| DVector::from_fn(d, |j, _| noise[[c, j]]))
                .collect(),
            proportions: model.proportions().to_vec(),
        }
    }

    fn covariance(&self, c: usize) -> DMatrix<f64> {
        &self.loadings[c] * self.loadings[c].transpose() + DMatrix::from_diagonal(&self.noise[c])
    }

    /// ln p(c, x) of every row (n, k).
    fn log_joints(&self, x: &Array2<f64>) -> Array2<f64> {
        let (n, d) = x.dim();
        let mut out = Array2::zeros((n, self.means.len()));
        for c in 0..self.means.len() {
            let factor = self.covariance(c).cholesky().unwrap();
            let volume = 2.0 * factor.l().diagonal().map(f64::ln).sum();
            for i in 0..n {
                let u = DVector::from_fn(d, |j, _| x[[i, j]]) - &self.means[c];
                let form = u.dot(&factor.solve(&u));
                out[[i, c]] =
                    self.proportions[c].ln() - 0.5 * (d as f64 * TAU.ln() + volume + form);
            }
        }
        out
    }

    fn log_densities(&self, x: &Array2<f64>) -> Array1<f64> {
        let logs = self.log_joints(x);
        let of = |row: ndarray::ArrayView1<'_, f64>| {
            let most = row.fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            most + row.mapv(|x| (x - most).exp()).sum().ln()
        };
        Array1::from_iter(logs.outer_iter().map(of))
    }

    /// Parameter-expanded EM by Liu, Rubin and Wu, 1998: factors may have any covariance, which the loadings take over.
    fn step(&mut self, x: &Array2<f64>, w: &Array1<f64>) {
        let (logs, densities) = (self.log_joints(x), self.log_densities(x));
        for c in 0..self.means.len() {
            let q = self.loadings[c].ncols();
            let shares = (&logs.column(c) - &densities).mapv(f64::exp) * w;
            let (mean, scatter) = mean_and_scatter(x, &shares);
            let beta = self.loadings[c].transpose() * self.covariance(c).try_inverse().unwrap();
            let across = &scatter * beta.transpose();
            let rest = DMatrix::identity(q, q) - &beta * &self.loadings[c];
            let expected = rest + &beta * &across;
            let slopes = &across * expected.clone().try_inverse().unwrap();
            self.noise[c] = (scatter - &slopes * across.transpose()).diagonal();
            self.loadings[c] = slopes * expected.cholesky().unwrap().l();
            self.means[c] = mean;
            self.proportions[c] = shares.sum() / w.sum();
        }
    }
}

/// The mean and the covariance of rows with these shares.
fn mean_and_scatter(x: &Array2<f64>, shares: &Array1<f64>) -> (DVector<f64>, DMatrix<f64>) {
    let mean = shares.dot(x) / shares.sum();
    let apart = x - &mean;
    let scatter = apart
        .t()
        .dot(&(&apart * &shares.view().insert_axis(Axis(1))))
        / shares.sum();
    let d = mean.len();
    let scatter = DMatrix::from_fn(d, d, |i, j| scatter[[i, j]]);
    (DVector::from_vec(mean.to_vec()), scatter)
}

/// The largest log-likelihood of a row that one component with `q` factors has, by the steps of scikit-learn's `FactorAnalysis`: the
/// loadings that are best for the noise, by eigenvectors, then the noise.
fn best_of_one(x: &Array2<f64>, q: usize) -> f64 {
    let (mean, scatter) = mean_and_scatter(x, &Array1::ones(x.nrows()));
    let variances = scatter.diagonal();
    let mut found = Naive {
        means: vec![mean],
        loadings: vec![DMatrix::zeros(x.ncols(), q)],
        noise: vec![variances.clone()],
        proportions: vec![1.0],
    };
    for _ in 0..1_500 {
        let unit = found.noise[0].map(f64::sqrt);
        let scale = DMatrix::from_diagonal(&unit.map(|s| 1.0 / s));
        let eigen = (&scale * &scatter * &scale).symmetric_eigen();
        let mut order: Vec<usize> = (0..x.ncols()).collect();
        order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
        let loadings = DMatrix::from_fn(x.ncols(), q, |j, l| {
            let length = (eigen.eigenvalues[order[l]] - 1.0).max(0.0).sqrt();
            unit[j] * eigen.eigenvectors[(j, order[l])] * length
        });
        let noise = variances.clone() - (&loadings * loadings.transpose()).diagonal();
        let moved = (&noise - &found.noise[0]).component_div(&noise).amax();
        found.loadings[0] = loadings;
        found.noise[0] = noise;
        if moved < 1e-7 {
            break;
        }
    }
    found.log_densities(x).mean().unwrap()
}

/// Factors with narrow noise move at once: at the default tolerance a fit is at the optimum, in few iterations, where
/// plain EM takes thousands.
#[test]
fn narrow_noise_is_no_reason_to_be_slow() {
    for (n, d, q, noise, most) in [
        (1_000, 20, 3, 0.3, 40),
        (1_000, 20, 3, 0.03, 40),
        (1_000, 20, 3, 0.01, 40),
        (300, 40, 2, 0.02, 40),
        (800, 8, 2, 0.1, 120),
        (800, 5, 1, 1e-3, 120),
    ] {
        let x = rows(n, d, 1, q, noise);
        let kind = Covariance::Factors(q);
        let fit = algorithms::gmm(1).covariance(kind).build().unwrap();
        let fit = fit.fit(&Dense::new(&x).unwrap()).unwrap();
        rises(
            noise,
            &fit.report.free_energies,
            n as f64,
            rounding::<f64>(),
        );
        let (found, best) = (
            fit.report.free_energies.last().unwrap() / n as f64,
            best_of_one(&x, q),
        );
        let what = format!("{d}, {noise}: {found} of {best}, {}", fit.report.iterations);
        assert_eq!(fit.report.stop, Stop::Converged, "{what}");
        assert!((found - best).abs() < 1e-3, "{what}");
        assert!(fit.report.iterations <= most, "{what}");
    }
}

/// "Converged" means that at most the tolerance is left to gain, in nats per row.
#[test]
fn what_converged_has_little_left_to_gain() {
    for (k, noise) in [(2, 0.3), (3, 0.02)] {
        let x = rows(900, 12, k, 2, noise);
        let data = Dense::new(&x).unwrap();
        let fit = algorithms::gmm(k).covariance(Covariance::Factors(2));
        let first = fit.clone().build().unwrap().fit(&data).unwrap();
        assert_eq!(first.report.stop, Stop::Converged);
        let on = fit.start_from(&first.model).tolerance(0.0);
        let on = on
            .max_iterations(1_000)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let last = |energies: &[f64]| *energies.last().unwrap();
        let left = last(&on.report.free_energies) - last(&first.report.free_energies);
        let what = format!("{k}: {left} after {}", first.report.iterations);
        assert!((-1e-9..=0.9).contains(&left), "{what}");
    }
}

/// A model with random parameters, of which a column is much narrower.
fn model<F: Float>(k: usize, d: usize, q: usize, narrow: f64) -> GaussianMixture<F> {
    let mut rng = Rng::from_seed(5);
    let means = Array2::from_shape_fn((k, d), |_| F::from_f64(2.0 * rng.normal()));
    let loadings = Array3::from_shape_fn((k, d, q), |_| rng.normal());
    let noise = Array2::from_shape_fn((k, d), |(_, j)| {
        (0.2 + rng.uniform()) * if j == 0 { narrow } else { 1.0 }
    });
    let shares = Array1::from_shape_fn(k, |c| (c + 1) as f64);
    let shares = &shares / shares.sum();
    GaussianMixture::from_factors(means.view(), loadings.view(), noise.view(), shares.view())
        .unwrap()
}

fn densities_are_naive<F: Float + coremix::Element<Float = F>>(within: f64) {
    for (d, q) in [(2, 1), (7, 3), (20, 5), (33, 6)] {
        for narrow in [1.0, 1e-3, 1e-7] {
            let model = model::<F>(4, d, q, narrow);
            let (x, _) = model.sample(200, 3).unwrap();
            let wide = x.mapv(Float::to_f64);
            let naive = Naive::of(&model);
            let data = Dense::new(x.view()).unwrap();
            let found = model.log_densities(&data).unwrap();
            for (a, b) in found.iter().zip(&naive.log_densities(&wide)) {
                assert!(
                    (a - b).abs() <= within * b.abs().max(d as f64) / narrow.sqrt(),
                    "{d} {q} {narrow}: {a} {b}"
                );
            }
            // Alone and among others, costs are the same bits.
            let labels = model.predict(&data).unwrap();
            let mut predictor = model.predictor();
            for (row, label) in x.outer_iter().zip(&labels) {
                assert_eq!(
                    predictor.predict(row.as_slice().unwrap()).unwrap().0,
                    *label
                );
            }
            let covariance = naive.covariance(1);
            let own = model.covariance(1).unwrap();
            for ((i, j), v) in own.indexed_iter() {
                assert!(close(*v, covariance[(i, j)], 1e-12));
            }
        }
    }
}

#[test]
fn densities_are_those_of_dense_matrices() {
    densities_are_naive::<f64>(1e-11);
    densities_are_naive::<f32>(1e-5);
}

/// Means, loadings, variances and proportions after several M-steps, with weights, are those of a naive one.
#[test]
fn em_is_the_naive_one() {
    for (d, q) in [(3, 2), (8, 3), (17, 1)] {
        let x = rows(300, d, 3, q, 0.5);
        let w = Array1::from_shape_fn(300, |i| 0.5 + (i % 3) as f64);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let fit = algorithms::gmm(3)
            .covariance(Covariance::Factors(q))
            .max_iterations(5);
        let start = fit.build().unwrap().fit(&data).unwrap().model;
        let mut naive = Naive::of(&start);
        for steps in 1..=6 {
            naive.step(&x, &w);
            let fit = algorithms::gmm(3)
                .covariance(Covariance::Factors(q))
                .start_from(&start);
            let fit = fit.tolerance(0.0).max_iterations(steps).build().unwrap();
            let fit = fit.fit(&data).unwrap();
            let f = fit.report.free_energies[steps];
            let likelihood = (&naive.log_densities(&x) * &w).sum();
            assert!(close(f, likelihood, 1e-11), "{f} {likelihood}");
            let found = Naive::of(&fit.model);
            for c in 0..3 {
                assert!((&found.means[c] - &naive.means[c]).amax() < 1e-8);
                assert!((&found.noise[c] - &naive.noise[c]).amax() < 1e-8);
                let off = found.covariance(c) - naive.covariance(c);
                assert!(off.amax() < 1e-8, "{d} {q} {steps}: {off}");
                assert!((found.proportions[c] - naive.proportions[c]).abs() < 1e-10);
            }
        }
    }
}

/// Factors are independent given a row, the strongest first: the loadings with the noise in their columns' units are orthogonal.
#[test]
fn loadings_are_turned() {
    let x = rows(400, 8, 2, 3, 0.5);
    let fit = algorithms::gmm(2)
        .covariance(Covariance::Factors(3))
        .build()
        .unwrap();
    let model = fit.fit(&Dense::new(&x).unwrap()).unwrap().model;
    let naive = Naive::of(&model);
    for (loadings, noise) in naive.loadings.iter().zip(&naive.noise) {
        // The variances that the last M-step clamped or rounded may differ in their last digits.
        let precision = DMatrix::from_diagonal(&noise.map(|v| 1.0 / v));
        let gram = loadings.transpose() * precision * loadings;
        for i in 0..3 {
            for j in 0..i {
                assert!(gram[(i, j)].abs() < 1e-9 * gram[(0, 0)]);
                assert!(gram[(j, j)] >= gram[(i, i)]);
            }
        }
    }
}

/// With as many factors as there can be, and few columns, the likelihood is that of full covariances, and never above.
#[test]
fn most_factors_are_as_likely_as_full_covariances() {
    for (d, q) in [(3, 1), (4, 2), (5, 3)] {
        // Rows of a full covariance that as many factors do have: Ledermann's bound counts the parameters.
        let x = turned::<f64>(1_500, d, 3);
        let data = Dense::new(&x).unwrap();
        let start = seeds(&x, 1, 4);
        let fit = |kind| {
            let fit = algorithms::gmm(1)
                .covariance(kind)
                .seeder(Given::new(start.view()));
            fit.tolerance(0.0)
                .max_iterations(3_000)
                .build()
                .unwrap()
                .fit(&data)
                .unwrap()
        };
        let full = fit(Covariance::Full).model.log_likelihood(&data).unwrap();
        let mut last = f64::NEG_INFINITY;
        for q in q..d {
            let factors = fit(Covariance::Factors(q))
                .model
                .log_likelihood(&data)
                .unwrap();
            assert!(factors <= full + 1e-9 * full.abs(), "{factors} {full}");
            last = factors;
        }
        assert!((full - last) / 1_500.0 < 1e-3, "{d}: {last} of {full}");
    }
}

/// One component against scikit-learn's `FactorAnalysis`, in stored numbers: `tests/fixtures/make_factors.py`.
#[test]
fn one_component_agrees_with_scikit_learn() {
    let summary = read("factors_summary");
    let x = read("factors_data");
    let data = Dense::new(&x).unwrap();
    for reference in summary.outer_iter() {
        let q = reference[0] as usize;
        let fit = algorithms::gmm(1)
            .covariance(Covariance::Factors(q))
            .tolerance(0.0);
        let fit = fit
            .max_iterations(20_000)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let found = fit.model.log_likelihood(&data).unwrap() / x.nrows() as f64;
        assert!(
            (found - reference[1]).abs() < 1e-6,
            "{q}: {found} {}",
            reference[1]
        );
        let noise = read(&format!("factors_{q}_noise"));
        let off = (&fit.model.noise() - &noise).mapv(f64::abs);
        assert!(off.iter().all(|off| *off < 1e-3), "{q}: {off}");
        let covariance = read(&format!("factors_{q}_covariance"));
        let off = (&fit.model.covariance(0).unwrap() - &covariance).mapv(f64::abs);
        assert!(off.iter().all(|off| *off < 1e-3), "{q}: {off}");
    }
}

/// Several restarts of truncated searches on coresets and weights: F never falls, and results are the same on any number of threads.
#[test]
fn free_energies_rise_in_every_search() {
    fn check<F: Float + coremix::Element<Float = F>>() {
        let x = rows(900, 12, 6, 2, 0.4).mapv(F::from_f64);
        let w = Array1::from_shape_fn(900, |i| [1.0, 0.0, 2.5][i % 3]);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        for q in [1, 4, 11] {
            let kind = Covariance::Factors(q);
            let fits = [
                algorithms::gmm(6).covariance(kind),
                algorithms::gmm(6)
                    .e_step(Exhaustive::nearest())
                    .covariance(kind),
                algorithms::gmm(6)
                    .e_step(Exhaustive::truncated(2))
                    .m_step(Gaussian::new(kind).equal_proportions()),
                algorithms::var_gmm_s(6, 3, 3).covariance(kind),
                algorithms::d_gmm(6, 3, 2).covariance(kind),
                algorithms::vc_gmm(6, 400, 3, 3).covariance(kind),
            ];
            for (place, builder) in fits.into_iter().enumerate() {
                let build = || {
                    builder
                        .clone()
                        .tolerance(0.0)
                        .max_iterations(40)
                        .seed(3)
                        .build()
                        .unwrap()
                };
                let fit = build().fit(&data).unwrap();
                for phase in &fit.report.phases {
                    rises(
                        format!("{place}, {q}"),
                        &phase.free_energies,
                        w.sum(),
                        rounding::<F>(),
                    );
                }
                same_on_threads(place, &[2, 5], || build().fit(&data).unwrap().model);
            }
        }
    }
    check::<f64>();
    check::<f32>();
}

/// A model comes back from a file bit for bit, with one before its first M-step, and refuses what no model has.
#[test]
fn models_come_back() {
    let x = rows(200, 6, 3, 2, 0.4);
    let data = Dense::new(&x).unwrap();
    for steps in [0, 3] {
        let fit = algorithms::gmm(3)
            .covariance(Covariance::Factors(2))
            .max_iterations(steps);
        let model = fit.build().unwrap().fit(&data).unwrap().model;
        let bytes = model.to_bytes(&[]).unwrap();
        let back = GaussianMixture::<f64>::from_bytes(&bytes).unwrap();
        assert_eq!(back, model);
        assert_eq!(
            back.log_densities(&data).unwrap(),
            model.log_densities(&data).unwrap()
        );
        let json = serde_json::to_string(&model).unwrap();
        assert!(serde_json::from_str::<GaussianMixture<f64>>(&json).is_ok());
        assert!(
            serde_json::from_str::<GaussianMixture<f64>>(
                &json.replace("\"factors\":2", "\"factors\":3")
            )
            .is_err()
        );
        assert!(
            serde_json::from_str::<GaussianMixture<f64>>(
                &json.replace("\"factors\":2", "\"factors\":6")
            )
            .is_err()
        );
    }
    let narrow = model::<f32>(3, 9, 2, 1.0);
    let back = GaussianMixture::<f32>::from_bytes(&narrow.to_bytes(&[]).unwrap()).unwrap();
    assert_eq!(back, narrow);
}

/// Parameters that were given come back; samples have them; parts are those of the dense matrix; free numbers are counted.
#[test]
fn parameters_samples_and_parts() {
    let model = model::<f64>(3, 6, 2, 1.0);
    let naive = Naive::of(&model);
    let (points, labels) = model.sample(60_000, 1).unwrap();
    for c in 0..3 {
        let own: Vec<usize> = (0..60_000).filter(|i| labels[*i] == c as u32).collect();
        let own = points.select(Axis(0), &own);
        let apart = &own - &own.mean_axis(Axis(0)).unwrap();
        let sample = apart.t().dot(&apart) / own.nrows() as f64;
        let covariance = naive.covariance(c);
        for ((i, j), v) in sample.indexed_iter() {
            let size = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
            assert!((v - covariance[(i, j)]).abs() < 0.05 * size);
        }
        for j in 0..6 {
            assert!(close(
                Mixture::variances(&model)[[c, j]],
                covariance[(j, j)],
                1e-12
            ));
        }
    }
    assert_eq!(model.free_parameters(), Some(3 * 6 + 3 * (6 + 12 - 1) + 2));
    let names: Vec<&str> = model.parameters().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["variances", "proportions", "loadings", "noise"]);
    let part = model.marginal(&[4, 0, 3]).unwrap();
    assert_eq!(part.covariance_kind(), Covariance::Factors(2));
    let (own, whole) = (part.covariance(1).unwrap(), model.covariance(1).unwrap());
    assert!(close(own[[0, 1]], whole[[4, 0]], 1e-12) && close(own[[2, 2]], whole[[3, 3]], 1e-12));
    assert_eq!(
        model.marginal(&[1, 2]).unwrap().covariance_kind(),
        Covariance::Full
    );
    let rest = model.condition(&[1], &[0.3]).unwrap();
    assert_eq!(
        (rest.covariance_kind(), rest.means().ncols()),
        (Covariance::Full, 5)
    );
}

/// Settings that no factor analysers have are errors that say so.
#[test]
fn wrong_settings_are_errors() {
    let x = blobs::<f64>(60, 3, 2, 1);
    let data = Dense::new(&x).unwrap();
    let error = algorithms::gmm::<f64>(2)
        .covariance(Covariance::Factors(0))
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("factors"), "{error}");
    for q in [3, 4, usize::MAX - 1] {
        let fit = algorithms::gmm(2)
            .covariance(Covariance::Factors(q))
            .build()
            .unwrap();
        let error = fit.fit(&data).unwrap_err();
        assert!(error.to_string().contains("fewer than columns"), "{error}");
    }
    let fit = algorithms::gmm(2).covariance(Covariance::Factors(1));
    let model = fit.build().unwrap().fit(&data).unwrap().model;
    assert!(ExactSums::e_step(&model, &data, None, 2).is_err());
    let fit = algorithms::gmm(2)
        .covariance(Covariance::Factors(1))
        .build()
        .unwrap();
    assert!(fit.fit(&Sketch::new(x.view(), 2, 1).unwrap()).is_err());
    let (noise, shares) = (Array2::ones((1, 3)), array![1.0]);
    let of = |loadings: Array3<f64>, noise: &Array2<f64>| {
        let means = x.slice(ndarray::s![..1, ..]);
        GaussianMixture::from_factors(means, loadings.view(), noise.view(), shares.view())
    };
    assert!(of(Array3::ones((1, 3, 1)), &noise).is_ok());
    assert!(of(Array3::ones((1, 3, 3)), &noise).is_err());
    assert!(of(Array3::ones((1, 3, 0)), &noise).is_err());
    assert!(of(Array3::ones((2, 3, 1)), &noise).is_err());
    assert!(of(Array3::from_elem((1, 3, 1), f64::NAN), &noise).is_err());
    assert!(of(Array3::from_elem((1, 3, 1), 1e300), &noise).is_err());
    assert!(of(Array3::ones((1, 3, 1)), &(0.0 * &noise)).is_err());
    let kind = Covariance::Factors(1);
    let given = GaussianMixture::from_parameters(
        kind,
        x.slice(ndarray::s![..1, ..]),
        noise.view(),
        shares.view(),
    );
    assert!(given.unwrap_err().to_string().contains("from_factors"));
}

/// Constant columns, copies of rows, more components than distinct rows, columns that are sums of others, and sizes from tiny to huge.
#[test]
fn hard_rows() {
    fn check<F: Float + coremix::Element<Float = F>>(name: &str, x: &Array2<f64>, k: usize) {
        let x = x.mapv(F::from_f64);
        let data = Dense::new(x.view()).unwrap();
        for q in [1, x.ncols() - 1] {
            for truncated in [false, true] {
                let builder = algorithms::gmm(k)
                    .covariance(Covariance::Factors(q))
                    .tolerance(0.0);
                let builder = match truncated {
                    true => builder.e_step(Exhaustive::truncated(2)),
                    false => builder,
                };
                let fit = builder
                    .max_iterations(25)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap();
                let what = format!("{name}, {q}, {truncated}");
                rises(
                    &what,
                    &fit.report.free_energies,
                    x.nrows() as f64,
                    rounding::<F>(),
                );
                let model = &fit.model;
                assert!(
                    model
                        .loadings()
                        .iter()
                        .chain(&model.noise())
                        .all(|x| x.is_finite()),
                    "{what}"
                );
                assert!(model.noise().iter().all(|v| *v > 0.0), "{what}");
                let densities = model.log_densities(&data).unwrap();
                assert!(densities.iter().all(|x| x.is_finite()), "{what}");
                let bytes = model.to_bytes(&[]).unwrap();
                assert_eq!(
                    &GaussianMixture::<F>::from_bytes(&bytes).unwrap(),
                    model,
                    "{what}"
                );
            }
        }
    }
    let x = rows(150, 5, 3, 2, 0.3);
    let mut constant = x.clone();
    constant.column_mut(1).fill(-7.5);
    let few = x.select(Axis(0), &[0, 1, 2]);
    let copies = concatenate![Axis(0), few, few, few, few, few];
    let mut sums = x.clone();
    let sum = &x.column(0) + &x.column(1);
    sums.column_mut(2).assign(&sum);
    let mut mixed = x.clone();
    mixed.column_mut(0).mapv_inplace(|x| 1e9 * x);
    mixed.column_mut(3).mapv_inplace(|x| 1e-7 * x);
    let mut far = x.clone();
    far.row_mut(3).fill(1e9);
    for (name, x, k) in [
        ("as it is", &x, 4),
        ("a constant column", &constant, 3),
        ("copies", &copies, 4),
        ("more components than rows", &copies, 9),
        ("one row", &x.select(Axis(0), &[4, 4, 4, 4]), 2),
        ("sums of columns", &sums, 3),
        ("columns of very different sizes", &mixed, 3),
        ("a far row", &far, 3),
        ("far from 0", &(&x + 1e6), 3),
        ("tiny", &(&x * 1e-30), 3),
        ("huge", &(&x * 1e30), 3),
    ] {
        check::<f64>(name, x, k);
        check::<f32>(name, x, k);
    }
}

/// Standardised: other units of the columns change nothing but the units of the results.
#[test]
fn units_do_not_matter_where_columns_are_standardised() {
    let x = rows(300, 5, 3, 2, 0.4);
    let units = array![1.0, 1024.0, 0.25, 1e-3, 3e4];
    let fit = |x: &Array2<f64>| {
        let fit = algorithms::gmm(3)
            .seeder(KMeansPlusPlus::default())
            .covariance(Covariance::Factors(2))
            .standardise(true);
        fit.max_iterations(20)
            .tolerance(0.0)
            .build()
            .unwrap()
            .fit(&Dense::new(x).unwrap())
            .unwrap()
    };
    let (a, b) = (fit(&x), fit(&(&x * &units)));
    assert_eq!(a.search_labels, b.search_labels);
    for c in 0..3 {
        let (a, b) = (
            a.model.covariance(c).unwrap(),
            b.model.covariance(c).unwrap(),
        );
        for ((i, j), v) in a.indexed_iter() {
            let size = (a[[i, i]] * a[[j, j]]).sqrt();
            assert!((v - b[[i, j]] / units[i] / units[j]).abs() < 1e-6 * size);
        }
    }
    let off = (&a.model.noise() - &(&b.model.noise() / &(&units * &units))).mapv(f64::abs);
    assert!(off.iter().all(|off| *off < 1e-6));
}
