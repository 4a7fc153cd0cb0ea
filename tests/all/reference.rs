//! Against independent implementations: scikit-learn's Lloyd and its Gaussian mixtures with spherical and diagonal
//! covariances, and a naive numpy loop for EM and k-means-C'.
//!
//! `tests/fixtures/README.md` says what the files hold and how they were made.

use crate::common::read;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::{Element, Float, algorithms};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

/// A data set of the fixtures, in the type under test.
struct Set<F> {
    name: String,
    data: Array2<F>,
    weights: Option<Array1<f64>>,
    start: Array2<F>,
}

/// `blobs` with and without weights, `grid` without.
fn sets<F: Float>() -> Vec<Set<F>> {
    [("blobs", false), ("blobs", true), ("grid", false)]
        .map(|(name, weighted)| Set {
            name: format!(
                "{name}_{}",
                if weighted { "weighted" } else { "unweighted" }
            ),
            data: read(&format!("{name}_data")).mapv(F::from_f64),
            weights: weighted.then(|| read(&format!("{name}_weights")).column(0).to_owned()),
            start: read(&format!("{name}_start")).mapv(F::from_f64),
        })
        .into()
}

impl<F: Element<Float = F>> Set<F> {
    fn dense(&self) -> Dense<'_, F> {
        match &self.weights {
            Some(weights) => Dense::weighted(self.data.view(), weights.view()),
            None => Dense::new(self.data.view()),
        }
        .expect("fixtures are sound")
    }
}

/// How far results may be from the reference, relative to the size of the value.
#[derive(Clone, Copy)]
struct Tolerance {
    means: f64,
    sums: f64,
}

/// Sums over a few hundred points, which both implementations add in different orders.
const F64: Tolerance = Tolerance {
    means: 1e-9,
    sums: 1e-9,
};

/// The data themselves are rounded to 6e-8 of the largest value, and squares of differences of them are
/// what all sums are made of.
const F32: Tolerance = Tolerance {
    means: 5e-6,
    sums: 5e-6,
};

#[track_caller]
fn close(got: f64, expected: f64, scale: f64, tolerance: f64, what: &str) {
    assert!(
        (got - expected).abs() <= tolerance * scale,
        "{what}: {got:e} instead of {expected:e}, off by {:e} of {scale:e}",
        (got - expected).abs() / scale
    );
}

fn largest(values: ArrayView2<'_, f64>) -> f64 {
    values.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// Runs one algorithm from the fixture's seeds for every number of iterations it holds.
///
/// `width` is the number of components in a support.
fn against_fixture<F: Float>(
    set: &Set<F>,
    algorithm: &str,
    e_step: Exhaustive,
    width: usize,
    tolerance: Tolerance,
) {
    let prefix = format!("{}_{algorithm}", set.name);
    let (means, summary) = (
        read(&format!("{prefix}_means")),
        read(&format!("{prefix}_summary")),
    );
    let labels = (width == 1).then(|| read(&format!("{prefix}_labels")));
    let k = set.start.nrows();
    assert_eq!(means.nrows(), k * summary.nrows(), "{prefix}");
    let data = set.dense();
    for (run, reference) in summary.outer_iter().enumerate() {
        let most = reference[0] as usize;
        let name = format!("{prefix}, {most} iterations");
        let fit = algorithms::k_means(k)
            .seeder(Given::new(set.start.view()))
            .e_step(e_step)
            .tolerance(0.0)
            .max_iterations(most)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let report = &fit.report;
        assert_eq!(report.free_energies.len(), report.iterations + 1, "{name}");
        // The free energy is flat at its maximum: it stops changing while the parameters still move in their
        // last eight digits. The iterations that were left out are made up for by the naive M-step.
        let mut model = fit.model.clone();
        if report.stop == Stop::Converged {
            assert!(report.iterations <= most, "{name}");
            for _ in report.iterations..most {
                model = naive_m_step(set, &model, width);
            }
            let moved = (&model.means() - &fit.model.means()).mapv(Float::to_f64);
            let (moved, scale) = (largest(moved.view()), largest(means.slice(s![.., 2..])));
            assert!(
                moved <= F::EPSILON.sqrt() * scale,
                "{name}: no fixed point, {moved:e}"
            );
        } else {
            let ended = (report.stop, report.iterations);
            assert_eq!(ended, (Stop::MaxIterations, most), "{name}");
        }

        let expected = means.slice(s![run * k..(run + 1) * k, 2..]);
        let scale = largest(expected);
        for ((c, j), &mean) in expected.indexed_iter() {
            assert_eq!(means[[run * k + c, 0]], reference[0]);
            assert_eq!(means[[run * k + c, 1]], c as f64);
            let got = model.means()[[c, j]].to_f64();
            let what = format!("{name}: mean {c}, column {j}");
            close(got, mean, scale, tolerance.means, &what);
        }
        let relative = |got: f64, column: usize, what: &str| {
            let expected = reference[column];
            let what = format!("{name}: {what}");
            close(got, expected, expected.abs(), tolerance.sums, &what);
        };
        relative(model.variance(), 1, "variance");
        let last = *report.free_energies.last().unwrap();
        relative(last, 2, "free energy");
        let log_likelihood = model.log_likelihood(&data).unwrap();
        relative(log_likelihood, 3, "log-likelihood");
        let error = model.quantization_error(&data).unwrap();
        relative(error, 4, "quantization error");

        let predicted = fit.model.predict(&data).unwrap();
        assert_eq!(predicted, fit.search_labels, "{name}");
        if let Some(labels) = &labels {
            let expected = labels.column(run).mapv(|label| label as u32);
            assert_eq!(fit.search_labels, expected, "{name}");
        }
        assert_eq!(report.zero_mass, 0, "{name}");
    }
}

/// The next parameters, from the model's own responsibilities and two plain loops.
fn naive_m_step<F: Float>(
    set: &Set<F>,
    model: &GaussianMixture<F>,
    width: usize,
) -> GaussianMixture<F> {
    let data = set.dense();
    let (supports, shares) = model.truncated_responsibilities(&data, width).unwrap();
    let (k, d) = model.means().dim();
    let mut mass = Array1::<f64>::zeros(k);
    let mut means = Array2::<f64>::zeros((k, d));
    let points = set.data.mapv(Float::to_f64);
    let share = |n: usize, place: usize| {
        set.weights.as_ref().map_or(1.0, |w| w[n]) * shares[[n, place]].to_f64()
    };
    for ((n, place), &c) in supports.indexed_iter() {
        mass[c as usize] += share(n, place);
        means
            .row_mut(c as usize)
            .scaled_add(share(n, place), &points.row(n));
    }
    means /= &mass.view().insert_axis(Axis(1));
    let mut squared = 0.0;
    for ((n, place), &c) in supports.indexed_iter() {
        let step = &points.row(n) - &means.row(c as usize);
        squared += share(n, place) * step.dot(&step);
    }
    let variance = squared / (d as f64 * mass.sum());
    GaussianMixture::tied_spherical(means.mapv(F::from_f64).view(), variance).unwrap()
}

fn all_fixtures<F: Float>(tolerance: Tolerance) {
    for set in &sets::<F>() {
        let k = set.start.nrows();
        let nearest = Exhaustive::nearest();
        against_fixture(set, "k_means", nearest, 1, tolerance);
        let two = Exhaustive::truncated(2);
        against_fixture(set, "k_means_c_prime", two, 2, tolerance);
        against_fixture(set, "gmm", Exhaustive::all(), k, tolerance);
    }
}

#[test]
fn f64_agrees_with_the_reference() {
    all_fixtures::<f64>(F64);
}

#[test]
fn f32_agrees_with_the_reference_as_far_as_its_digits_go() {
    all_fixtures::<f32>(F32);
}

/// EM with all components in every support, from the start that scikit-learn had.
fn against_scikit_learn<F: Float>(family: &str, covariance: Covariance, tolerance: Tolerance) {
    for (name, weights) in [
        ("blobs_unweighted", None),
        ("blobs_integer", Some("blobs_integer_weights")),
        ("grid_unweighted", None),
    ] {
        let base = name.split('_').next().unwrap();
        let set = Set::<F> {
            name: name.to_owned(),
            data: read(&format!("{base}_data")).mapv(F::from_f64),
            weights: weights.map(|weights| read(weights).column(0).to_owned()),
            start: read(&format!("{base}_start")).mapv(F::from_f64),
        };
        let table = |what: &str| read(&format!("{name}_{family}_{what}"));
        let (means, variances) = (table("means"), table("variances"));
        let (proportions, summary) = (table("proportions"), table("summary"));
        let (k, data) = (set.start.nrows(), set.dense());
        for (run, reference) in summary.outer_iter().enumerate() {
            let most = reference[0] as usize;
            let fit = algorithms::gmm(k)
                .seeder(Given::new(set.start.view()))
                .covariance(covariance)
                .tolerance(0.0)
                .max_iterations(most)
                .build()
                .unwrap()
                .fit(&data)
                .unwrap();
            let name = format!("{name}, {family}, {most} iterations");
            assert_eq!(fit.report.iterations, most, "{name}");
            let runs = s![run * k..(run + 1) * k, 2..];
            let compare = |got: Array2<f64>, table: &Array2<f64>, tolerance: f64, what: &str| {
                let expected = table.slice(runs);
                assert_eq!(got.dim(), expected.dim(), "{name}: {what}");
                let scale = largest(expected);
                for ((c, j), &expected) in expected.indexed_iter() {
                    let what = format!("{name}: {what} {c}, column {j}");
                    close(got[[c, j]], expected, scale, tolerance, &what);
                }
            };
            let model = &fit.model;
            let got = model.means().mapv(Float::to_f64);
            compare(got, &means, tolerance.means, "mean");
            let got = match covariance {
                Covariance::Spherical => model.variances().slice_move(s![.., ..1]),
                Covariance::Diagonal => model.variances(),
                _ => {
                    let shape = (k, variances.ncols() - 2);
                    model.covariances().into_shape_with_order(shape).unwrap()
                }
            };
            compare(got, &variances, tolerance.sums, "variance");
            let got = model.proportions().to_owned().insert_axis(Axis(1));
            compare(got, &proportions, tolerance.means, "proportion");
            let log_likelihood = model.log_likelihood(&data).unwrap();
            let what = format!("{name}: log-likelihood");
            let scale = reference[1].abs();
            close(log_likelihood, reference[1], scale, tolerance.sums, &what);
            // All components in every support: the free energy is the log-likelihood.
            let last = *fit.report.free_energies.last().unwrap();
            close(last, log_likelihood, scale, tolerance.sums, &what);
        }
    }
}

#[test]
fn own_variances_agree_with_scikit_learn() {
    against_scikit_learn::<f64>("isotropic", Covariance::Spherical, F64);
    against_scikit_learn::<f64>("diagonal", Covariance::Diagonal, F64);
    against_scikit_learn::<f64>("tied", Covariance::Tied, F64);
    against_scikit_learn::<f64>("full", Covariance::Full, F64);
}

#[test]
fn own_variances_in_f32_agree_as_far_as_its_digits_go() {
    against_scikit_learn::<f32>("isotropic", Covariance::Spherical, F32);
    against_scikit_learn::<f32>("diagonal", Covariance::Diagonal, F32);
    against_scikit_learn::<f32>("tied", Covariance::Tied, F32);
    against_scikit_learn::<f32>("full", Covariance::Full, F32);
}
