//! Bad and extreme input: an error that names the cause, or a sound result. Never a panic, never a NaN.

use crate::common::{
    Algorithm, Known, Outcome, Settings, all, blobs, rises, rounding, seeds, squared_distance,
};
use approx::assert_abs_diff_eq;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::{Element, Float, algorithms};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, array, concatenate, s};
use std::ops::ControlFlow;

mod not_finite;
mod scales;
mod settings;
mod shapes;
mod weights;

/// Asserts that a result is the error of this pattern, and that its text names all of these.
macro_rules! refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?, $($text:expr),+ $(,)?) => {{
        let error = $result.err().expect(stringify!($pattern));
        assert!(matches!(&error, $pattern $(if $guard)?), "{error:?}");
        let shown = error.to_string();
        $(assert!(shown.contains($text), "{shown:?} does not name {:?}", $text);)+
    }};
}

use refused;

/// Answers about `data` are answers: no NaN, no label out of range. Infinities are allowed in sums alone,
/// where the true value may be beyond any float.
#[track_caller]
fn answers<F: Float>(name: &str, model: &dyn Mixture<F>, data: &Dense<'_, F>) {
    let k = Mixture::<F>::centres(model).len();
    let labels = model.predict(data).unwrap();
    assert!(labels.iter().all(|&label| (label as usize) < k), "{name}");
    let shares = model.responsibilities(data).unwrap();
    let narrow = model.truncated_responsibilities(data, 2).unwrap();
    let wide = model.truncated_responsibilities(data, k + 7).unwrap();
    assert_eq!(shares.dim(), (labels.len(), k), "{name}");
    assert_eq!(narrow.0.dim(), (labels.len(), k.min(2)), "{name}");
    assert_eq!(wide.0.dim(), (labels.len(), k), "{name}");
    for shares in [&shares, &narrow.1, &wide.1] {
        for row in shares.rows() {
            let sum: f64 = row.iter().map(|q| q.to_f64()).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{name}: shares {row:?}");
            assert!(row.iter().all(|q| q.to_f64() >= 0.0), "{name}: {row:?}");
        }
    }
    for supports in [&narrow.0, &wide.0] {
        for row in supports.rows() {
            let mut members = row.to_vec();
            members.sort_unstable();
            members.dedup();
            assert_eq!(members.len(), row.len(), "{name}: support {row:?}");
            assert!(members.iter().all(|&c| (c as usize) < k), "{name}: {row:?}");
        }
    }
    let likelihood = model.log_likelihood(data).unwrap();
    assert!(!likelihood.is_nan(), "{name}: log-likelihood is NaN");
    // A sum that no float holds is an error that names it.
    let means = model.means();
    let nearest = |(n, x): (usize, ArrayView1<'_, F>)| {
        let squared = |mu| squared_distance(x, mu);
        let least = means
            .rows()
            .into_iter()
            .map(squared)
            .fold(f64::INFINITY, f64::min);
        data.weights().map_or(1.0, |weights| weights[n]) * least
    };
    let sum: f64 = data
        .points()
        .rows()
        .into_iter()
        .enumerate()
        .map(nearest)
        .sum();
    if !sum.is_finite() {
        for result in [
            model.quantization_error(data).map(|_| ()),
            model.score(data).map(|_| ()),
        ] {
            refused!(result, Error::Parameter { .. }, "weighted squared distance");
        }
    } else {
        let error = model.quantization_error(data).unwrap();
        assert!(error >= 0.0, "{name}: quantization error {error}");
        let score = model.score(data).unwrap();
        let found = (score.quantization_error, score.log_likelihood);
        assert_eq!(found, (error, likelihood), "{name}");
        assert_eq!(score.labels.len(), labels.len(), "{name}");
    }
    refused!(
        model.truncated_responsibilities(data, 0),
        Error::Parameter {
            name: "c_prime",
            ..
        },
        "0"
    );
}

/// A result that can be used: finite everywhere, F never falls, all answers are answers.
#[track_caller]
fn sound<F: Float>(name: &str, fit: &Outcome<F>, data: &Dense<'_, F>, weight: f64) {
    let finite = fit.means.iter().all(|mean| Float::is_finite(*mean));
    assert!(finite, "{name}: means {:?}", fit.means);
    let variances = &fit.variances;
    assert!(
        variances.iter().all(|v| v.is_finite() && *v >= 0.0),
        "{name}: {variances}"
    );
    let proportions = &fit.proportions;
    assert!(proportions.iter().all(|p| *p >= 0.0), "{name}");
    let sum: f64 = proportions.iter().sum();
    assert!((sum - 1.0).abs() < 1e-12, "{name}: {proportions:?}");
    let energies = &fit.report.free_energies;
    let last = fit.report.phases.last().unwrap();
    assert_eq!(energies.len(), last.iterations + 1, "{name}");
    let iterations: usize = fit.report.phases.iter().map(|p| p.iterations).sum();
    assert_eq!(fit.report.iterations, iterations, "{name}");
    rises(name, energies, weight, rounding::<F>());
    let k = fit.means.nrows();
    assert_eq!(fit.labels.len(), last.rows, "{name}");
    assert!(fit.labels.iter().all(|&c| (c as usize) < k), "{name}");
    if let Some(supports) = &fit.supports {
        assert!(supports.iter().all(|&c| (c as usize) < k), "{name}");
    }
    if let Some(coreset) = &fit.coreset {
        let sound = |w: &f64| w.is_finite() && *w > 0.0;
        assert!(coreset.weights.iter().all(sound), "{name}: {coreset:?}");
    }
    answers(name, &*fit.model, data);
}

/// Fits every algorithm to the data; each result must be sound. Data that cannot be clustered by one of them
/// for want of rows in its coreset may be refused by it.
fn every_algorithm<F: Float>(what: &str, x: ArrayView2<'_, F>, w: Option<&Array1<f64>>, k: usize) {
    let data = match w {
        Some(w) => Dense::weighted(x, w.view()).unwrap(),
        None => Dense::new(x).unwrap(),
    };
    let weight = w.map_or(x.nrows() as f64, |w| w.sum());
    for algorithm in all::<F>() {
        for tolerance in [0.0, 1e-4] {
            let name = format!("{what}, {}, tolerance {tolerance}", algorithm.name);
            let settings = Settings {
                tolerance,
                ..Settings::new(k, 3)
            };
            match (algorithm.fit)(&data, &settings) {
                Ok(fit) => sound(&name, &fit, &data, weight),
                Err(Error::TooManyClusters { rows_of, .. }) => {
                    assert_eq!(
                        (rows_of, algorithm.deterministic),
                        ("coreset", false),
                        "{name}"
                    );
                }
                // Preconditioned coordinates are sums over all columns.
                Err(Error::TooLarge { .. }) => assert_ne!(algorithm.rows, Known::Dense, "{name}"),
                Err(error) if algorithm.is_raw() => {
                    assert!(
                        error.to_string().contains("too far from 0"),
                        "{name}: {error}"
                    );
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

/// The largest relative difference in any variance between a fit in `f32` and one in `f64`.
fn outcome_off(a: &Outcome<f32>, b: &Outcome<f64>) -> f64 {
    let pairs = a.variances.iter().zip(&b.variances);
    pairs.fold(0.0, |most, (a, b)| most.max((a / b - 1.0).abs()))
}

/// Settings under which no algorithm stops early, so that two runs take the same steps.
fn few_steps<F>(k: usize) -> Settings<F> {
    Settings {
        tolerance: 0.0,
        max_iterations: 4,
        ..Settings::new(k, 11)
    }
}

fn unit_weights(n: usize) -> Array1<f64> {
    Array1::ones(n)
}

/// Means are equal up to the rounding of centred values, which is that of the largest.
#[track_caller]
fn same_means<F: Float>(name: &str, got: ArrayView2<'_, F>, expected: ArrayView2<'_, F>) {
    let largest = expected
        .iter()
        .fold(0.0, |most: f64, x| most.max(x.to_f64().abs()));
    for (a, b) in got.iter().zip(&expected) {
        let off = (a.to_f64() - b.to_f64()).abs();
        assert!(
            off <= F::EPSILON * largest,
            "{name}: {a:e} instead of {b:e}"
        );
    }
}
