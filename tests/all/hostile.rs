//! Bad and extreme input: an error that names the cause, or a sound result. Never a panic, never a NaN.

use crate::common::{Known, Outcome, Settings, all, blobs, seeds, squared_distance};
use approx::assert_abs_diff_eq;
use coremix::m_step::GaussianMixture;
use coremix::prelude::*;
use coremix::{Element, Float, algorithms};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, array, concatenate, s};
use std::ops::ControlFlow;

// ---- Sound results and helpful errors --------------------------------------------------------

/// Asserts that a result is the error of this pattern, and that its text names all of these.
macro_rules! refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?, $($text:expr),+ $(,)?) => {{
        let error = $result.err().expect(stringify!($pattern));
        assert!(matches!(&error, $pattern $(if $guard)?), "{error:?}");
        let shown = error.to_string();
        $(assert!(shown.contains($text), "{shown:?} does not name {:?}", $text);)+
    }};
}

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
        data.weight(n) * least
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
    let tolerance = if F::EPSILON > 1e-10 { 1e-6 } else { 1e-9 };
    let energies = &fit.report.free_energies;
    let last = fit.report.phases.last().unwrap();
    assert_eq!(energies.len(), last.iterations + 1, "{name}");
    let iterations: usize = fit.report.phases.iter().map(|p| p.iterations).sum();
    assert_eq!(fit.report.iterations, iterations, "{name}");
    assert!(
        energies.iter().all(|f| f.is_finite()),
        "{name}: {energies:?}"
    );
    for pair in energies.windows(2) {
        let slack = tolerance * pair[0].abs().max(weight);
        assert!(pair[1] >= pair[0] - slack, "{name}: F fell: {energies:?}");
    }
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

// ---- Data that is refused -------------------------------------------------------------------------------

fn empty<T: Element + Default>() {
    for shape in [(0, 3), (3, 0), (0, 0)] {
        let x = Array2::<T>::default(shape);
        refused!(Dense::new(x.view()), Error::Empty { what: "data" }, "data");
        let w = unit_weights(shape.0);
        let weighted = Dense::weighted(x.view(), w.view());
        refused!(weighted, Error::Empty { what: "data" }, "data");
    }
}

#[test]
fn empty_data() {
    empty::<f32>();
    empty::<f64>();
    empty::<u8>();
}

/// No rows, and as many columns as the model has: empty answers, and sums of 0.
#[track_caller]
fn answers_about_nothing<F: Float>(name: &str, model: &dyn Mixture<F>, d: usize) {
    let x = Array2::<F>::zeros((0, d));
    let data = Dense::batch(&x).unwrap();
    let k = Mixture::<F>::centres(model).len();
    assert!(data.is_empty() && data.points().dim() == (0, d), "{name}");
    assert_eq!(model.predict(&data).unwrap().len(), 0, "{name}");
    let shares = model.responsibilities(&data).unwrap();
    assert_eq!(shares.dim(), (0, k), "{name}");
    let (ids, shares) = model.truncated_responsibilities(&data, 2).unwrap();
    assert_eq!((ids.dim(), shares.dim()), ((0, 2), (0, 2)), "{name}");
    assert_eq!(model.log_densities(&data).unwrap().len(), 0, "{name}");
    let score = model.score(&data).unwrap();
    assert_eq!(score.labels.len(), 0, "{name}");
    let sums = [
        model.log_likelihood(&data).unwrap(),
        model.quantization_error(&data).unwrap(),
        score.log_likelihood,
        score.quantization_error,
    ];
    // Not -0 either.
    assert_eq!(sums.map(f64::to_bits), [0; 4], "{name}: {sums:?}");
    let wider = Array2::<F>::zeros((0, d + 1));
    refused!(
        model.predict(&Dense::batch(&wider).unwrap()),
        Error::DimensionMismatch { expected, found, .. } if (*expected, *found) == (d, d + 1),
        "data"
    );
}

fn empty_batches_of<F: Float>() {
    let x = blobs::<F>(120, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>() {
        let fit = (algorithm.fit)(&data, &Settings::new(4, 3)).unwrap();
        answers_about_nothing(algorithm.name, &*fit.model, 3);
    }
    let fit = algorithms::dp_gmm(4, 1.0).build().unwrap().fit(&data);
    let fit = fit.unwrap().boxed();
    answers_about_nothing("dp-gmm", &*fit.model, 3);
    answers_about_nothing("dp-gmm, boxed", &fit.model, 3);
    // Rows are as they are in other data.
    let batch = Dense::batch(&x).unwrap();
    assert_eq!(fit.model.predict(&batch), fit.model.predict(&data));
    refused!(
        Dense::batch(&Array2::<F>::zeros((3, 0))),
        Error::Empty { what: "data" },
        "data"
    );
}

#[test]
fn empty_batches_have_empty_answers() {
    empty_batches_of::<f32>();
    empty_batches_of::<f64>();
    let bytes = Array2::<u8>::zeros((0, 3));
    let fit = algorithms::k_means(2).build().unwrap();
    let fit = fit.fit(&Dense::new(&blobs::<f32>(20, 3, 2, 5)).unwrap());
    let labels = fit.unwrap().model.predict(&Dense::batch(&bytes).unwrap());
    assert_eq!(labels.unwrap().len(), 0);
}

/// A batch without rows is nothing to fit.
#[test]
fn empty_batches_are_not_fitted() {
    let x = Array2::<f64>::zeros((0, 3));
    let data = Dense::batch(&x).unwrap();
    for algorithm in all::<f64>().iter().filter(|a| a.rows == Known::Dense) {
        let fit = (algorithm.fit)(&data, &Settings::new(4, 3));
        refused!(fit, Error::Empty { what: "data" }, "at least one row");
    }
    refused!(
        algorithms::dp_gmm(4, 1.0).build().unwrap().fit(&data),
        Error::Empty { what: "data" },
        "at least one row"
    );
    refused!(
        Sketch::of_dense(&data, 2, 1),
        Error::Empty { what: "data" },
        "at least one row"
    );
}

fn not_finite<F: Float>() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for (row, column) in [(0, 0), (1, 2), (700, 1), (1_299, 2)] {
            let mut x = blobs::<F>(1_300, 3, 4, 5);
            x[[row, column]] = F::from_f64(bad);
            x[[1_299, 2]] = F::from_f64(bad);
            let expected = Error::NotFinite {
                what: "data",
                row,
                column,
            };
            let result = Dense::new(x.view());
            assert_eq!(result.err(), Some(expected.clone()));
            let text = expected.to_string();
            assert!(
                text.contains(&format!("row {row}, column {column}")),
                "{text}"
            );
            // Also where no weight points at it.
            let mut w = unit_weights(1_300);
            w[row] = 0.0;
            w[1_299] = 0.0;
            let result = Dense::weighted(x.view(), w.view());
            assert_eq!(result.err(), Some(expected));
        }
    }
}

#[test]
fn nan_and_infinity() {
    not_finite::<f32>();
    not_finite::<f64>();
}

#[test]
fn values_whose_sums_would_overflow() {
    for value in [1e200, -1e200, f64::MAX, 1.0001e150] {
        let mut x = blobs::<f64>(900, 3, 4, 5);
        x[[800, 1]] = value;
        refused!(
            Dense::new(x.view()),
            Error::TooLarge { what: "data", row: 800, column: 1, value: v, .. } if *v == value,
            "row 800, column 1",
            &format!("{value:e}"),
            "1e150",
        );
    }
    for value in [f32::MAX, -1e38] {
        let mut x = blobs::<f32>(900, 3, 4, 5);
        x[[3, 2]] = value;
        refused!(
            Dense::new(x.view()),
            Error::TooLarge {
                what: "data",
                row: 3,
                column: 2,
                ..
            },
            "row 3, column 2",
            &format!("{:e}", f64::from(value)),
        );
    }
}

#[test]
fn weights_that_are_none() {
    let x = blobs::<f32>(900, 3, 4, 5);
    for bad in [-1.0, -1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for row in [0, 511, 899] {
            let mut w = unit_weights(900);
            w[row] = bad;
            w[899] = bad;
            refused!(
                Dense::weighted(x.view(), w.view()),
                Error::Weight { row: r, value } if *r == row && value.to_bits() == bad.to_bits(),
                &format!("row {row}"),
                &bad.to_string(),
            );
        }
    }
    for zero in [0.0, -0.0] {
        let w = Array1::from_elem(900, zero);
        let result = Dense::weighted(x.view(), w.view());
        refused!(result, Error::TotalWeight { total } if *total == 0.0, "sum to 0");
    }
    let w = Array1::from_elem(900, 1e306);
    let result = Dense::weighted(x.view(), w.view());
    refused!(result, Error::TotalWeight { total } if total.is_infinite(), "sum to inf");
    for n in [0, 899, 901] {
        let w = unit_weights(n);
        refused!(
            Dense::weighted(x.view(), w.view()),
            Error::LengthMismatch { what: "weights", expected: 900, found } if *found == n,
            "weights",
            &n.to_string(),
            "900",
        );
    }
}

// ---- Settings that are refused --------------------------------------------------------------------------

#[test]
fn numbers_of_clusters() {
    let x = blobs::<f64>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    let mut w = unit_weights(90);
    w.slice_mut(s![5..]).fill(0.0);
    let few = Dense::weighted(x.view(), w.view()).unwrap();
    for algorithm in all::<f64>() {
        let fit = |data, k| (algorithm.fit)(data, &Settings::new(k, 1));
        refused!(
            fit(&data, 0),
            Error::Parameter {
                name: "clusters",
                ..
            },
            "clusters = 0"
        );
        for k in [u32::MAX as usize, usize::MAX] {
            let shown = format!("clusters = {k}");
            refused!(
                fit(&data, k),
                Error::Parameter {
                    name: "clusters",
                    ..
                },
                &shown
            );
        }
        refused!(
            fit(&data, 91),
            Error::TooManyClusters {
                clusters: 91,
                rows: 90,
                rows_of: "data"
            },
            "91",
            "90",
            "data",
        );
        refused!(
            fit(&few, 6),
            Error::TooManyClusters {
                clusters: 6,
                rows: 5,
                rows_of: "data"
            },
            "6 clusters",
            "5 rows of positive weight",
        );
        // As many clusters as rows is no error, where no coreset takes rows away.
        if let Err(error) = fit(&data, 90) {
            assert!(!algorithm.deterministic, "{}: {error}", algorithm.name);
            assert!(
                matches!(
                    error,
                    Error::TooManyClusters {
                        rows_of: "coreset",
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
    let unset = Clusterer::<f64>::builder().build();
    refused!(
        unset,
        Error::Parameter {
            name: "clusters",
            ..
        },
        "must be given"
    );
    for coreset in [1, 6] {
        let fit = algorithms::lwcs_k_means(7, coreset)
            .build()
            .unwrap()
            .fit(&data);
        refused!(
            fit,
            Error::TooManyClusters { clusters: 7, rows, rows_of: "coreset" } if *rows <= coreset,
            "7",
            "coreset",
        );
        let coreset = UniformCoreset::new(coreset);
        let fit = algorithms::k_means(7)
            .coreset(coreset)
            .build()
            .unwrap()
            .fit(&data);
        refused!(
            fit,
            Error::TooManyClusters {
                rows_of: "coreset",
                ..
            },
            "7",
            "coreset"
        );
    }
}

#[test]
fn counts_of_zero() {
    let k_means = || algorithms::k_means::<f64>(3);
    let neighborhood = |e_step| k_means().e_step(e_step).build().map(drop);
    for (result, name) in [
        (k_means().restarts(0).build().map(drop), "restarts"),
        (
            k_means().e_step(Exhaustive::truncated(0)).build().map(drop),
            "c_prime",
        ),
        (
            algorithms::k_means_c_prime::<f64>(3, 0).build().map(drop),
            "c_prime",
        ),
        (neighborhood(Neighborhood::new(0, 3)), "c_prime"),
        (neighborhood(Neighborhood::new(3, 0)), "g"),
        (
            algorithms::var_gmm_s::<f64>(3, 0, 2).build().map(drop),
            "c_prime",
        ),
        (
            algorithms::vc_gmm::<f64>(3, 50, 2, 0).build().map(drop),
            "g",
        ),
        (algorithms::d_gmm::<f64>(3, 0, 2).build().map(drop), "h"),
        (algorithms::d_gmm::<f64>(3, 2, 0).build().map(drop), "r"),
        (
            algorithms::vc_gmm::<f64>(3, 0, 2, 2).build().map(drop),
            "coreset",
        ),
        (
            algorithms::lwcs_k_means::<f64>(3, 0).build().map(drop),
            "coreset",
        ),
        (
            k_means().coreset(UniformCoreset::new(0)).build().map(drop),
            "coreset",
        ),
        (k_means().seeder(AfkMc2::new(0)).build().map(drop), "chain"),
        (
            k_means()
                .seeder(KMeansPlusPlus::new().candidates(0))
                .build()
                .map(drop),
            "candidates",
        ),
    ] {
        let shown = format!("{name} = 0: must be at least 1");
        refused!(result, Error::Parameter { name: n, .. } if *n == name, &shown);
    }
}

#[test]
fn tolerances_and_epsilons() {
    let x = blobs::<f32>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-300] {
        for algorithm in all::<f32>() {
            let settings = Settings {
                tolerance: bad,
                ..Settings::new(3, 1)
            };
            let shown = format!("tolerance = {bad}");
            let fit = (algorithm.fit)(&data, &settings);
            refused!(
                fit,
                Error::Parameter {
                    name: "tolerance",
                    ..
                },
                &shown
            );
        }
        let shown = format!("epsilon = {bad}");
        let lazy = algorithms::lazy_k_means::<f64>(3, bad).build();
        refused!(
            lazy,
            Error::Parameter {
                name: "epsilon",
                ..
            },
            &shown
        );
    }
    // The largest numbers there are, where any size is allowed.
    let lazy = algorithms::lazy_k_means(3, f64::MAX).tolerance(f64::MAX);
    let fit = lazy
        .max_iterations(usize::MAX)
        .seed(u64::MAX)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    assert_eq!(fit.report.stop, Stop::Converged);
    assert!(fit.report.free_energies.iter().all(|f| f.is_finite()));
}

/// A chain that no memory holds is a setting to refuse, or to make do without; not a panic.
#[test]
fn the_longest_chain() {
    let x = blobs::<f32>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    let built = algorithms::k_means(3)
        .seeder(AfkMc2::new(usize::MAX))
        .build();
    if let Err(error) = built.and_then(|clusterer| clusterer.fit(&data)) {
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    }
}

#[test]
fn given_centres() {
    let x = blobs::<f64>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<f64>() {
        let fit = |given: &Array2<f64>| {
            let settings = Settings {
                given: Some(given.clone()),
                ..Settings::new(4, 1)
            };
            (algorithm.fit)(&data, &settings)
        };
        let what = "given centres";
        refused!(fit(&Array2::zeros((0, 3))), Error::Empty { what: w } if *w == what, what);
        refused!(fit(&Array2::zeros((4, 0))), Error::Empty { what: w } if *w == what, what);
        refused!(
            fit(&Array2::zeros((5, 3))),
            Error::LengthMismatch { what: w, expected: 4, found: 5 } if *w == what,
            what, "5", "4",
        );
        refused!(
            fit(&Array2::zeros((4, 2))),
            Error::DimensionMismatch { what: w, expected: 3, found: 2 } if *w == what,
            what, "2 columns", "3 expected",
        );
        for bad in [f64::NAN, f64::INFINITY] {
            let mut given = seeds(&x, 4, 1);
            given[[2, 1]] = bad;
            refused!(
                fit(&given),
                Error::NotFinite { what: w, row: 2, column: 1 } if *w == what,
                what, "row 2, column 1",
            );
        }
        let mut given = seeds(&x, 4, 1);
        given[[3, 0]] = -1e200;
        refused!(
            fit(&given),
            Error::TooLarge { what: w, row: 3, column: 0, .. } if *w == what,
            what, "row 3, column 0", "-1e200",
        );
    }
}

/// Sizes beyond what there is are clamped: the same bits as the largest size that is.
#[test]
fn sizes_that_are_clamped() {
    let x = blobs::<f64>(400, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    let k = 5;
    let same = |a: Array2<f64>, b: Array2<f64>| assert_eq!(a, b);
    macro_rules! means {
        ($builder:expr) => {{
            let fit = $builder.seed(4).build().unwrap().fit(&data).unwrap();
            fit.model.means().to_owned()
        }};
    }
    for huge in [k + 1, 1 << 40, usize::MAX] {
        let all = means!(algorithms::gmm(k));
        same(means!(algorithms::k_means_c_prime(k, huge)), all.clone());
        let seeded = algorithms::gmm(k).seeder(AfkMc2::default());
        same(means!(algorithms::var_gmm_s(k, huge, 2)), means!(seeded));
        let seeded = algorithms::gmm(k).seeder(AfkMc2::default());
        same(means!(algorithms::d_gmm(k, huge, huge)), means!(seeded));
        let wide = means!(algorithms::d_gmm(k, 2, k - 2));
        same(means!(algorithms::d_gmm(k, 2, huge)), wide);
        let wide = means!(algorithms::var_gmm_s(k, 2, k));
        same(means!(algorithms::var_gmm_s(k, 2, huge)), wide);
        let from_seeds = |g| Neighborhood::new(2, g).start(Start::Seeds);
        let wide = means!(algorithms::gmm(k).e_step(from_seeds(k)));
        same(means!(algorithms::gmm(k).e_step(from_seeds(huge))), wide);
        let whole = means!(algorithms::k_means(k).seeder(AfkMc2::default()));
        if huge >= data_rows(&data) {
            same(means!(algorithms::lwcs_k_means(k, huge)), whole);
            let uniform = algorithms::k_means(k).coreset(UniformCoreset::new(huge));
            same(means!(uniform), means!(algorithms::k_means(k)));
        }
    }
}

fn data_rows<T: Element>(data: &Dense<'_, T>) -> usize {
    coremix::data::Data::len(data)
}

// ---- Degenerate data ------------------------------------------------------------------------------------

fn degenerate<F: Float>() {
    let f = F::from_f64;
    for value in [0.0, 0.1, -7.0, 1e6, 3e-30, -1e30] {
        for (n, k) in [(1, 1), (2, 2), (3, 1), (90, 1), (90, 7), (700, 3)] {
            let x = Array2::from_shape_fn((n, 3), |(_, j)| f(value * (j + 1) as f64));
            let what = format!("{n} rows at {value:e}, k = {k}");
            every_algorithm(&what, x.view(), None, k);
            let data = Dense::new(x.view()).unwrap();
            for algorithm in all::<F>() {
                if let Ok(fit) = (algorithm.fit)(&data, &Settings::new(k, 2)) {
                    // There and back through a transform costs the last digits.
                    let exact = algorithm.rows == Known::Dense;
                    let digits = if exact { 0.0 } else { 8.0 * F::EPSILON };
                    let largest = x.iter().fold(0.0f64, |most, v| most.max(v.to_f64().abs()));
                    for (mean, x) in fit.means.rows().into_iter().flatten().zip(x.iter().cycle()) {
                        let off = (mean.to_f64() - x.to_f64()).abs();
                        assert!(off <= digits * largest, "{what}, {}", algorithm.name);
                    }
                    let error = fit.model.quantization_error(&data).unwrap();
                    assert!(error <= 3.0 * n as f64 * (digits * largest).powi(2));
                }
            }
        }
    }
    // Fewer distinct rows than clusters.
    for (n, k) in [(4, 4), (90, 5), (1_100, 9)] {
        let x = Array2::from_shape_fn((n, 2), |(i, j)| f((i % 3 * (j + 1)) as f64 - 0.3));
        every_algorithm(
            &format!("three distinct rows of {n}, k = {k}"),
            x.view(),
            None,
            k,
        );
        let data = Dense::new(x.view()).unwrap();
        // A prior draws means away from the rows.
        for algorithm in all::<F>().iter().filter(|a| a.deterministic && !a.bayesian) {
            let fit = (algorithm.fit)(&data, &Settings::new(k, 2)).unwrap();
            let error = fit.model.quantization_error(&data).unwrap();
            let largest = n as f64 * 9.0 * F::EPSILON * F::EPSILON;
            assert!(error <= 16.0 * largest, "{}: {error:e}", algorithm.name);
        }
    }
    // Constant columns among others.
    let mut x = blobs::<F>(300, 4, 4, 6);
    x.column_mut(0).fill(f(0.1));
    x.column_mut(2).fill(f(-3e9));
    every_algorithm("constant columns", x.view(), None, 5);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>().iter().filter(|a| a.rows == Known::Dense) {
        let fit = (algorithm.fit)(&data, &Settings::new(5, 2)).unwrap();
        for mean in fit.means.rows() {
            assert_eq!((mean[0], mean[2]), (f(0.1), f(-3e9)), "{}", algorithm.name);
        }
    }
    // One column; one cluster; a row more or less than a block.
    for n in [2, 3, 31, 33, 511, 513, 1_025] {
        let x = blobs::<F>(n, 1, 3, 7);
        every_algorithm(&format!("{n} rows of one column"), x.view(), None, 2);
        every_algorithm("one cluster", x.view(), None, 1);
    }
    // Many columns, few rows.
    every_algorithm("300 columns", blobs::<F>(5, 300, 2, 7).view(), None, 2);
}

#[test]
fn degenerate_data_f32() {
    degenerate::<f32>();
}

#[test]
fn degenerate_data_f64() {
    degenerate::<f64>();
}

// ---- Extreme scales, offsets and weights ----------------------------------------------------------------

/// A power of two times the data gives the same bits, scaled: every step happens in a frame of unit size.
fn scales_exactly<F: Float>(exponents: &[i32]) {
    let (n, d, k) = (400, 3, 5);
    let x = blobs::<F>(n, d, k, 8);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>() {
        let fit = (algorithm.fit)(&data, &few_steps(k)).unwrap();
        let error = fit.model.quantization_error(&data).unwrap();
        let likelihood = fit.model.log_likelihood(&data).unwrap();
        let base_weight = fit
            .coreset
            .as_ref()
            .map_or(n as f64, |c| c.weights.iter().sum());
        for &exponent in exponents {
            let name = format!("{}, 2^{exponent}", algorithm.name);
            let by = 2f64.powi(exponent);
            let scaled_x = x.mapv(|v| F::from_f64(v.to_f64() * by));
            let scaled_data = Dense::new(scaled_x.view()).unwrap();
            let scaled = (algorithm.fit)(&scaled_data, &few_steps(k)).unwrap();
            sound(&name, &scaled, &scaled_data, n as f64);
            assert_eq!(scaled.report.iterations, fit.report.iterations, "{name}");
            assert_eq!(
                scaled.means.mapv(|v| v.to_f64() / by),
                fit.means.mapv(Float::to_f64),
                "{name}"
            );
            assert_eq!(
                scaled.variances.mapv(|v| v / by / by),
                fit.variances,
                "{name}"
            );
            assert_eq!(scaled.proportions, fit.proportions, "{name}");
            assert_eq!(
                (&scaled.labels, &scaled.supports),
                (&fit.labels, &fit.supports),
                "{name}"
            );
            let scaled_error = scaled.model.quantization_error(&scaled_data).unwrap();
            assert_eq!(scaled_error / by / by, error, "{name}");
            // A density is per unit of volume.
            let shift = -(d as f64) * by.ln();
            let scaled_likelihood = scaled.model.log_likelihood(&scaled_data).unwrap();
            let expected = likelihood + n as f64 * shift;
            assert!(
                (scaled_likelihood - expected).abs() <= 1e-12 * expected.abs(),
                "{name}"
            );
            for (got, base) in scaled
                .report
                .free_energies
                .iter()
                .zip(&fit.report.free_energies)
            {
                let known = algorithm.rows.known(d) as f64 / d as f64;
                let expected = base + base_weight * known * shift;
                assert!((got - expected).abs() <= 1e-12 * expected.abs(), "{name}");
            }
        }
    }
}

#[test]
fn values_whose_squares_over_or_underflow() {
    scales_exactly::<f32>(&[100, -100, 70, -70]);
    scales_exactly::<f64>(&[480, -480]);
}

/// 1e30 and 1e-30 themselves in f32, against the same rounded data in f64.
#[test]
fn f32_beyond_its_squares_agrees_with_f64() {
    for by in [1e30, 1e-30] {
        let x = blobs::<f64>(400, 3, 5, 8).mapv(|v| (v * by) as f32);
        let wide = x.mapv(f64::from);
        let (data, wide_data) = (
            Dense::new(x.view()).unwrap(),
            Dense::new(wide.view()).unwrap(),
        );
        let start = seeds(&x, 5, 3);
        let (f32s, f64s) = (all::<f32>(), all::<f64>());
        for (a, b) in f32s.iter().zip(&f64s).filter(|(a, _)| a.deterministic) {
            let fit = (a.fit)(&data, &Settings::fixed(start.view(), 5)).unwrap();
            let start = start.mapv(f64::from);
            let exact = (b.fit)(&wide_data, &Settings::fixed(start.view(), 5)).unwrap();
            sound(a.name, &fit, &data, 400.0);
            let off = |got: f64, expected: f64| (got - expected).abs() / expected.abs();
            let variances_off = outcome_off(&fit, &exact);
            assert!(variances_off < 1e-5, "{} {by:e}", a.name);
            let (got, expected) = (
                fit.model.quantization_error(&data).unwrap(),
                exact.model.quantization_error(&wide_data).unwrap(),
            );
            assert!(off(got, expected) < 1e-5, "{} {by:e}", a.name);
            let difference = (&fit.means.mapv(f64::from) - &exact.means) / by;
            assert!(
                difference.iter().all(|t| t.abs() < 1e-5),
                "{} {by:e}",
                a.name
            );
        }
    }
}

/// Where the true variance or error is no number of the type any more, the rest must still be sound.
#[test]
fn beyond_every_square() {
    let x = blobs::<f64>(200, 2, 3, 9);
    for by in [1e149, 1e-181, 1e-300, 1e-320] {
        let x = x.mapv(|v| v.clamp(-9.0, 9.0) * by);
        every_algorithm(&format!("f64 times {by:e}"), x.view(), None, 3);
    }
    for by in [8e36, 1e-37, 1e-42] {
        let x = x.mapv(|v| (v.clamp(-9.0, 9.0) * by) as f32);
        every_algorithm(&format!("f32 times {by:e}"), x.view(), None, 3);
    }
    // Columns of very different units: the small ones vanish in distances.
    let mut mixed = blobs::<f32>(200, 2, 3, 9);
    mixed.column_mut(0).mapv_inplace(|v| v * 1e30);
    mixed.column_mut(1).mapv_inplace(|v| v * 1e-30);
    every_algorithm("1e30 with 1e-30", mixed.view(), None, 3);
    // One value alone at the limit: the type cannot resolve the others.
    fn refused<F: Float>(row: usize, value: f64) {
        let mut lone = blobs::<F>(200, 2, 3, 9);
        lone[[row, 1]] = F::from_f64(value);
        let data = Dense::new(lone.view()).unwrap();
        for a in all::<F>().iter().filter(|a| a.rows == Known::Dense) {
            let error = (a.fit)(&data, &Settings::new(3, 1))
                .map(|_| ())
                .unwrap_err();
            let named = error.to_string().contains(&format!("row {row}, "));
            assert!(named, "{}: {error}", a.name);
        }
    }
    refused::<f32>(77, 8e37);
    refused::<f64>(0, -1e150);
}

#[test]
fn far_from_zero() {
    let x = blobs::<f64>(400, 3, 5, 10);
    // f32 at 1e6 has steps of 1/16; what is left of the data is then the same in f64.
    let far = x.mapv(|v| (v + 1e6) as f32);
    every_algorithm("f32 at 1e6", far.view(), None, 5);
    let wide = far.mapv(f64::from);
    // f64 at 1e9, the data rounded first so that the shift loses nothing.
    let near = x.mapv(|v| (v * 1048576.0).round() / 1048576.0);
    let moved = near.mapv(|v| v + 1e9);
    every_algorithm("f64 at 1e9", moved.view(), None, 5);
    let start = seeds(&near, 5, 3);
    let far_start = seeds(&far, 5, 3);
    let data = (
        Dense::new(far.view()).unwrap(),
        Dense::new(wide.view()).unwrap(),
    );
    let shifted = (
        Dense::new(near.view()).unwrap(),
        Dense::new(moved.view()).unwrap(),
    );
    for (a, b) in all::<f32>()
        .iter()
        .zip(&all::<f64>())
        .filter(|(a, _)| a.deterministic)
    {
        let name = a.name;

        let fit = (a.fit)(&data.0, &Settings::fixed(far_start.view(), 5)).unwrap();
        let wide_start = far_start.mapv(f64::from);
        let exact = (b.fit)(&data.1, &Settings::fixed(wide_start.view(), 5)).unwrap();
        // Half a step of f32 at 1e6, and what rounding in the frame adds.
        let difference = &fit.means.mapv(f64::from) - &exact.means;
        assert!(
            difference.iter().all(|t| t.abs() <= 0.03126),
            "{name}: {difference}"
        );
        assert!(outcome_off(&fit, &exact) < 1e-5, "{name}");

        let here = (b.fit)(&shifted.0, &Settings::fixed(start.view(), 5)).unwrap();
        let moved_start = start.mapv(|v| v + 1e9);
        let there = (b.fit)(&shifted.1, &Settings::fixed(moved_start.view(), 5)).unwrap();
        // A step of f64 at 1e9 is 1.2e-7; a transform adds up several.
        let step = [1.3e-7, 1e-6][usize::from(a.rows == Known::WholeSketch)];
        let difference = &there.means.mapv(|v| v - 1e9) - &here.means;
        assert!(
            difference.iter().all(|t| t.abs() <= step),
            "{name}: {difference}"
        );
        assert!(there.variances_off(&here) < 1e-6, "{name}");
        assert_eq!(there.labels, here.labels, "{name}");
    }
}

/// The unit of the weights is the user's: a power of two times the weights changes no bit of the model.
fn weights_scale_exactly<F: Float>(exponents: &[i32], tolerance: f64) {
    let x = blobs::<F>(400, 3, 5, 12);
    let w = Array1::from_shape_fn(400, |n| 0.25 + (n % 7) as f64);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    for algorithm in all::<F>().into_iter().filter(|a| !a.bayesian) {
        let fit = (algorithm.fit)(&data, &few_steps(5)).unwrap();
        for &exponent in exponents {
            let name = format!("{}, weights times 2^{exponent}", algorithm.name);
            let scaled_w = w.mapv(|w| w * 2f64.powi(exponent));
            let scaled_data = Dense::weighted(x.view(), scaled_w.view()).unwrap();
            let scaled = (algorithm.fit)(&scaled_data, &few_steps(5)).unwrap();
            sound(&name, &scaled, &scaled_data, scaled_w.sum());
            let off = |got: f64, expected: f64| {
                assert!(
                    (got - expected).abs() <= tolerance * expected.abs().max(1.0),
                    "{name}: {got:e} instead of {expected:e}"
                );
            };
            for (got, expected) in scaled.means.iter().zip(&fit.means) {
                off(got.to_f64(), expected.to_f64());
            }
            for (got, expected) in scaled.variances.iter().zip(&fit.variances) {
                off(*got, *expected);
            }
            assert_eq!(scaled.labels, fit.labels, "{name}");
        }
    }
}

#[test]
fn the_unit_of_weights_is_free() {
    weights_scale_exactly::<f64>(&[-100, 100], 0.0);
    weights_scale_exactly::<f32>(&[-100, 100], 0.0);
}

/// 1e-300 and 1e300: shares far below the weight itself may fall out of range, nothing else.
#[test]
fn tiny_and_huge_weights() {
    weights_scale_exactly::<f64>(&[-940, 940], 1e-9);
    weights_scale_exactly::<f32>(&[-940, 940], 1e-6);
}

/// Sums of weights times squares overflow although neither does.
#[test]
fn huge_weights_on_large_values() {
    let x = blobs::<f64>(200, 3, 4, 13).mapv(|v| v * 2f64.powi(40));
    let (data, w) = (
        Dense::new(x.view()).unwrap(),
        Array1::from_elem(200, 2f64.powi(940)),
    );
    let heavy = Dense::weighted(x.view(), w.view()).unwrap();
    for algorithm in all::<f64>().into_iter().filter(|a| !a.bayesian) {
        let fit = (algorithm.fit)(&data, &few_steps(4)).unwrap();
        let same = (algorithm.fit)(&heavy, &few_steps(4)).unwrap();
        sound(algorithm.name, &same, &heavy, w.sum());
        let scale = 1e-9 * 2f64.powi(40);
        let near = fit
            .means
            .iter()
            .zip(&same.means)
            .all(|(a, b)| (a - b).abs() <= scale);
        assert!(near, "{}: {} and {}", algorithm.name, fit.means, same.means);
        let off = same.variances_off(&fit);
        assert!(off < 1e-9, "{}: {off:e}", algorithm.name);
    }
}

/// Weights whose sums over data could not be finite are refused by their sum; just inside the bounds every
/// algorithm is sound.
#[test]
fn weights_at_the_ends_of_the_range() {
    let x = blobs::<f64>(200, 3, 4, 13);
    for weight in [5e-324, 1e-310, 1e-293, 1e288, 1e306] {
        let w = Array1::from_elem(200, weight);
        let error = Dense::weighted(x.view(), w.view()).unwrap_err();
        assert!(matches!(error, Error::TotalWeight { .. }), "{error}");
        assert!(error.to_string().contains("1e290"), "{error}");
    }
    for weight in [1e-291, 1e287] {
        let w = Array1::from_elem(200, weight);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        for algorithm in all::<f64>() {
            let name = format!("{}, weights {weight:e}", algorithm.name);
            let fit = (algorithm.fit)(&data, &Settings::new(4, 2)).expect(&name);
            assert!(fit.means.iter().all(|m| m.is_finite()), "{name}");
            let sound = |v: &f64| v.is_finite() && *v > 0.0;
            assert!(fit.variances.iter().all(sound), "{name}");
            let energies = &fit.report.free_energies;
            assert!(
                energies.iter().all(|f| f.is_finite()),
                "{name}: {energies:?}"
            );
            answers(&name, &*fit.model, &data);
        }
    }
}

/// A row of weight 0 counts as absent, however far away it is and wherever it stands.
fn absent_rows<F: Float>(far: &[f64], tolerance: f64) {
    let x = blobs::<F>(300, 2, 4, 14);
    let start = seeds(&x, 4, 5);
    let without = Dense::new(x.view()).unwrap();
    for &far in far {
        let stray = Array2::from_elem((1, 2), F::from_f64(far));
        for first in [false, true] {
            let parts = if first {
                [stray.view(), x.view()]
            } else {
                [x.view(), stray.view()]
            };
            let with = concatenate(Axis(0), &parts).unwrap();
            let mut w = unit_weights(301);
            w[if first { 0 } else { 300 }] = 0.0;
            let data = Dense::weighted(with.view(), w.view()).unwrap();
            for algorithm in all::<F>() {
                let name = format!("{}, absent {far:e}, first: {first}", algorithm.name);
                let fit = match (algorithm.fit)(&data, &few_steps(4)) {
                    Err(Error::TooLarge { .. }) if algorithm.rows != Known::Dense => continue,
                    fit => fit.unwrap(),
                };
                sound(&name, &fit, &data, 300.0);
                if !algorithm.deterministic {
                    continue;
                }
                let settings = Settings::fixed(start.view(), 4);
                let fit = (algorithm.fit)(&data, &settings).unwrap();
                let expected = (algorithm.fit)(&without, &settings).unwrap();
                let off = fit.variances_off(&expected);
                assert!(off <= tolerance, "{name}: variance off by {off:e}");
                for (a, b) in fit.means.iter().zip(&expected.means) {
                    let off = (a.to_f64() - b.to_f64()).abs();
                    assert!(off <= 10.0 * tolerance, "{name}: mean off by {off:e}");
                }
                let sums = |fit: &Outcome<F>, data| {
                    let error = fit.model.quantization_error(data).unwrap();
                    [error, fit.model.log_likelihood(data).unwrap()]
                };
                for (a, b) in sums(&fit, &data).into_iter().zip(sums(&expected, &without)) {
                    assert!(
                        (a - b).abs() <= tolerance * b.abs(),
                        "{name}: {a:e} and {b:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn rows_of_weight_zero_are_absent_f32() {
    absent_rows::<f32>(&[3.0, 1e10, 8e37], 1e-5);
}

#[test]
fn rows_of_weight_zero_are_absent_f64() {
    absent_rows::<f64>(&[3.0, 1e12, 1e149], 1e-9);
}

/// Rows of weight 0 are absent also where the unit of the frame is so small that a stray row overflows.
#[test]
fn rows_of_weight_zero_are_absent_beside_tiny_data() {
    let x = blobs::<f32>(300, 2, 4, 14).mapv(|v| v * 1e-30);
    let stray = Array2::from_elem((1, 2), 1e30f32);
    let x = concatenate(Axis(0), &[x.view(), stray.view()]).unwrap();
    let mut w = unit_weights(301);
    w[300] = 0.0;
    every_algorithm("tiny data and a stray row", x.view(), Some(&w), 4);
}

/// A row that no component explains has a density of 0. Without weight it does not count.
#[test]
fn a_density_of_zero_without_weight_does_not_count() {
    let mut x = Array2::<f64>::zeros((21, 2));
    let mut w = unit_weights(21);
    let model = algorithms::gmm(2).build().unwrap();
    let model = model.fit(&Dense::new(x.view()).unwrap()).unwrap().model;
    x.row_mut(20).fill(1e150);
    w[20] = 0.0;
    let all = Dense::weighted(x.view(), w.view()).unwrap();
    let alone = x.slice(ndarray::s![..20, ..]);
    let alone = Dense::new(alone).unwrap();
    assert_eq!(model.log_densities(&all).unwrap()[20], f64::NEG_INFINITY);
    let expected = model.log_likelihood(&alone).unwrap();
    assert!(expected.is_finite());
    assert_eq!(model.log_likelihood(&all).unwrap(), expected);
    assert_eq!(model.score(&all).unwrap().log_likelihood, expected);
}

/// Seeds far away, one of them or all: the data pull in those that get points.
fn far_seeds<F: Float>(far: f64) {
    let x = blobs::<F>(300, 2, 4, 15);
    let data = Dense::new(x.view()).unwrap();
    let near = seeds(&x, 4, 5);
    let mut one = near.clone();
    one.row_mut(2).fill(F::from_f64(far));
    let every = near.mapv(|v| F::from_f64(v.to_f64() * far / 10.0));
    for algorithm in all::<F>() {
        for (what, given) in [("one seed", &one), ("all seeds", &every)] {
            let name = format!("{}, {what} at {far:e}", algorithm.name);
            let settings = Settings {
                given: Some(given.clone()),
                ..Settings::new(4, 2)
            };
            let fit = (algorithm.fit)(&data, &settings).unwrap();
            sound(&name, &fit, &data, 300.0);
            // No point is nearest to a mean that stayed out there, so the others are among the points.
            let error = fit.model.quantization_error(&data).unwrap();
            assert!(error < 300.0 * 1e3, "{name}: {error:e}");
        }
    }
}

/// Their squared distances overflow.
#[test]
fn seeds_astronomically_far_from_the_data() {
    far_seeds::<f32>(1e25);
    far_seeds::<f32>(1e37);
    far_seeds::<f64>(1e149);
}

/// Nothing overflows, as when seeds come in another unit than the data; but the first step is longer than
/// the data are wide by more than the digits of the type, and no variance must be a difference over it.
#[test]
fn seeds_in_another_unit() {
    far_seeds::<f32>(1e5);
    far_seeds::<f32>(1e9);
    far_seeds::<f64>(1e9);
    far_seeds::<f64>(1e15);
}

// ---- Representation -------------------------------------------------------------------------------------

/// Strided, reversed and column-major views give the bits of their row-major copies.
fn memory_order<F: Float>() {
    let wide = blobs::<F>(800, 6, 5, 16);
    let weights = Array1::from_shape_fn(1_600, |n| 0.5 + (n % 5) as f64);
    let columns = wide.t().as_standard_layout().into_owned();
    let views = [
        ("every other row", wide.slice(s![..;2, ..])),
        ("every other column", wide.slice(s![..400, 1..;2])),
        ("rows reversed", wide.slice(s![..400;-1, ..])),
        ("columns reversed", wide.slice(s![..400, ..;-1])),
        ("column-major", columns.t().slice_move(s![..400, ..])),
        ("broadcast", wide.slice(s![0..1, ..]).broadcast_to(400)),
    ];
    for (what, view) in &views {
        assert_eq!(view.nrows(), 400);
        let copy = Array2::from_shape_fn(view.dim(), |at| view[at]);
        let w = weights.slice(s![..800;-2]);
        let w_copy = w.to_vec();
        let data = Dense::weighted(*view, w).unwrap();
        let copied = Dense::weighted(copy.view(), ndarray::aview1(&w_copy)).unwrap();
        for algorithm in all::<F>() {
            let name = format!("{what}, {}", algorithm.name);
            let (a, b) = (
                (algorithm.fit)(&data, &few_steps(4)).unwrap(),
                (algorithm.fit)(&copied, &few_steps(4)).unwrap(),
            );
            assert_eq!(a.means, b.means, "{name}");
            assert_eq!(a.report.free_energies, b.report.free_energies, "{name}");
            assert_eq!(a.labels, b.labels, "{name}");
            let predicted = a.model.predict(&data).unwrap();
            assert_eq!(predicted, b.model.predict(&copied).unwrap(), "{name}");
        }
    }
}

/// One row many times, without a copy of it in memory.
trait BroadcastTo<'a, F> {
    fn broadcast_to(self, n: usize) -> ArrayView2<'a, F>;
}

impl<'a, F> BroadcastTo<'a, F> for ArrayView2<'a, F> {
    fn broadcast_to(self, n: usize) -> ArrayView2<'a, F> {
        let d = self.ncols();
        let row = self.index_axis_move(Axis(0), 0);
        // `broadcast` borrows; a view of stride 0 made from the slice lives as long as the data.
        let slice = row.to_slice().expect("one row of row-major data");
        use ndarray::ShapeBuilder;
        ArrayView2::from_shape((n, d).strides((0, 1)), slice).expect("stride 0")
    }
}

#[test]
fn memory_order_does_not_matter() {
    memory_order::<f32>();
    memory_order::<f64>();
}

#[test]
fn bytes_are_the_floats_they_stand_for() {
    let x = blobs::<f64>(700, 3, 5, 17).mapv(|v| (128.0 + 8.0 * v).clamp(0.0, 255.0) as u8);
    let floats = x.mapv(f32::from);
    let (bytes, floats) = (
        Dense::new(x.view()).unwrap(),
        Dense::new(floats.view()).unwrap(),
    );
    macro_rules! same {
        ($builder:expr) => {{
            let clusterer = $builder.seed(5).build().unwrap();
            let (mut a, mut b) = (
                clusterer.fit(&bytes).unwrap(),
                clusterer.fit(&floats).unwrap(),
            );
            assert_eq!(a.model, b.model);
            assert_eq!(a.report.free_energies, b.report.free_energies);
            let (a, b) = (a.score(&bytes).unwrap(), b.score(&floats).unwrap());
            assert_eq!(a.labels, b.labels);
            assert_eq!(a.quantization_error, b.quantization_error);
            assert_eq!(a.log_likelihood, b.log_likelihood);
        }};
    }
    same!(algorithms::k_means(5));
    same!(algorithms::gmm(5));
    same!(algorithms::lazy_k_means(5, 0.1));
    same!(algorithms::lwcs_k_means(5, 100));
    same!(algorithms::vc_gmm(5, 100, 3, 3));
    same!(algorithms::d_gmm(5, 3, 2));
    let extremes = array![[0u8, 255], [255, 0], [0, 0], [255, 255]];
    let data = Dense::new(extremes.view()).unwrap();
    let fit = algorithms::k_means(4).build().unwrap().fit(&data).unwrap();
    assert_eq!(fit.model.quantization_error(&data).unwrap(), 0.0);
}

// ---- Fits that end early --------------------------------------------------------------------------------

#[test]
fn no_iterations_leave_the_seeds_where_they_are() {
    let x = blobs::<f64>(300, 3, 4, 18);
    let data = Dense::new(x.view()).unwrap();
    let start = seeds(&x, 4, 6);
    // A warm-up moves the seeds before the first iteration, a refinement after the last: that is what they are for.
    let moves = |name: &str| ["warm", "refined", "fast"].iter().any(|n| name.contains(n));
    for algorithm in all::<f64>().iter().filter(|a| !moves(a.name)) {
        let fit = (algorithm.fit)(&data, &Settings::fixed(start.view(), 0)).unwrap();
        sound(algorithm.name, &fit, &data, 300.0);
        assert_eq!(
            (fit.report.iterations, fit.report.stop),
            (0, Stop::MaxIterations)
        );
        let off = (&fit.means - &start).mapv(f64::abs);
        assert!(
            off.iter().all(|t| *t < 1e-14 * 16.0),
            "{}: {off}",
            algorithm.name
        );
    }
}

#[test]
fn an_observer_can_stop_anywhere() {
    let x = blobs::<f64>(300, 3, 4, 18);
    let data = Dense::new(x.view()).unwrap();
    // How many things were seen before the break: the coreset, the seeding, the seeds, then searches.
    for seen in 1..7 {
        macro_rules! stops {
            ($builder:expr) => {{
                let clusterer = $builder.tolerance(0.0).restarts(3).build().unwrap();
                let mut left = seen;
                let fit = clusterer.fit_observed(&data, |progress| {
                    left -= 1;
                    if let Progress::Iteration {
                        free_energy, model, ..
                    } = progress
                    {
                        assert!(free_energy.is_finite());
                        assert!(model.means().iter().all(|m| m.is_finite()));
                    }
                    if left == 0 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                let fit = fit.unwrap();
                assert_eq!(left, 0, "asked again after it broke");
                assert_eq!(fit.report.stop, Stop::Observer);
                assert_eq!(fit.report.iterations, seen.max(4) - 4);
                assert_eq!(fit.report.free_energies.len(), fit.report.iterations + 1);
                assert_eq!((fit.report.restart, fit.report.restarts.len()), (0, 1));
                assert!(fit.report.free_energies.iter().all(|f| f.is_finite()));
                assert_eq!(fit.search_labels.len(), fit.report.coreset_size);
                let labels = fit.model.predict(&data).unwrap();
                assert!(labels.iter().all(|&label| label < 4));
                assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
            }};
        }
        stops!(algorithms::k_means(4));
        stops!(algorithms::k_means_c_prime(4, 2));
        stops!(algorithms::gmm(4));
        stops!(algorithms::lazy_k_means(4, 0.01));
        stops!(algorithms::lwcs_k_means(4, 100));
        stops!(algorithms::var_gmm_s(4, 2, 2));
        stops!(algorithms::vc_gmm(4, 100, 2, 2));
        stops!(algorithms::d_gmm(4, 2, 2));
    }
}

// ---- Questions to a model -------------------------------------------------------------------------------

#[test]
fn data_of_another_dimension() {
    let x = blobs::<f32>(100, 3, 4, 19);
    let data = Dense::new(x.view()).unwrap();
    for d in [1, 2, 4, 17] {
        let other = Array2::<f32>::zeros((5, d));
        let other = Dense::new(other.view()).unwrap();
        let found = format!("{d} columns");
        for algorithm in all::<f32>() {
            let fit = (algorithm.fit)(&data, &Settings::new(3, 1)).unwrap();
            let model = &*fit.model;
            macro_rules! mismatch {
                ($result:expr) => {
                    refused!(
                        $result,
                        Error::DimensionMismatch { what: "data", expected: 3, found: f } if *f == d,
                        "data", &found, "3 expected",
                    )
                };
            }
            mismatch!(model.predict(&other));
            mismatch!(model.responsibilities(&other));
            mismatch!(model.truncated_responsibilities(&other, 2));
            mismatch!(model.log_likelihood(&other));
            mismatch!(model.quantization_error(&other));
            mismatch!(model.score(&other));
        }
        let mut fit = algorithms::k_means(3).build().unwrap().fit(&data).unwrap();
        let before = fit.report.distance_evaluations;
        refused!(fit.score(&other), Error::DimensionMismatch { .. }, &found);
        assert_eq!(fit.report.distance_evaluations, before);
    }
}

/// Points so far from a model that nothing about them fits in the type.
fn far_points<F: Float>(unit: f64, far: &[f64]) {
    let x = blobs::<F>(100, 3, 4, 20).mapv(|v| F::from_f64(v.to_f64() * unit));
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>() {
        let fit = (algorithm.fit)(&data, &Settings::new(4, 1)).unwrap();
        for &far in far {
            let name = format!("{} of size {unit:e}, asked about {far:e}", algorithm.name);
            let away = Array2::from_shape_fn((70, 3), |(n, j)| match (n + j) % 4 {
                0 => F::from_f64(far),
                1 => F::from_f64(-far),
                2 => F::from_f64(0.0),
                _ => x[[n, j]],
            });
            answers(&name, &*fit.model, &Dense::new(away.view()).unwrap());
            // Among points that are near, those of weight 0 are far.
            let both = concatenate(Axis(0), &[x.view(), away.view()]).unwrap();
            let w = Array1::from_shape_fn(170, |n| if n < 100 { 1.0 } else { 0.0 });
            let both = Dense::weighted(both.view(), w.view()).unwrap();
            answers(&name, &*fit.model, &both);
            let (a, b) = (
                fit.model.quantization_error(&both).unwrap(),
                fit.model.quantization_error(&data).unwrap(),
            );
            assert!((a - b).abs() <= 1e-12 * b, "{name}: {a:e} and {b:e}");
            let (a, b) = (
                fit.model.log_likelihood(&both).unwrap(),
                fit.model.log_likelihood(&data).unwrap(),
            );
            assert!((a - b).abs() <= 1e-12 * b.abs(), "{name}: {a:e} and {b:e}");
        }
    }
}

#[test]
fn points_astronomically_far_from_the_model() {
    far_points::<f32>(1.0, &[1e6, 1e15, 1e20, 1e37]);
    far_points::<f32>(1e-30, &[1e6, 1e20, 1e37]);
    far_points::<f64>(1.0, &[1e9, 1e100, 1e149]);
    far_points::<f64>(1e-250, &[1.0, 1e149]);
}

fn parameters<F: Float>() {
    let f = F::from_f64;
    let from =
        |means: &Array2<F>, variance| GaussianMixture::tied_spherical(means.view(), variance);
    let means = blobs::<F>(4, 3, 4, 21);
    for shape in [(0, 3), (3, 0)] {
        let none = Array2::from_elem(shape, f(0.0));
        refused!(from(&none, 1.0), Error::Empty { what: "means" }, "means");
    }
    for bad in [f64::NAN, f64::NEG_INFINITY] {
        let mut means = means.clone();
        means[[2, 1]] = f(bad);
        refused!(
            from(&means, 1.0),
            Error::NotFinite {
                what: "means",
                row: 2,
                column: 1
            },
            "means: row 2, column 1",
        );
    }
    let mut large = means.clone();
    large[[3, 0]] = f(if F::EPSILON > 1e-10 { 3e38 } else { 1e200 });
    refused!(
        from(&large, 1.0),
        Error::TooLarge {
            what: "means",
            row: 3,
            column: 0,
            ..
        },
        "means: row 3, column 0",
    );
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
        let shown = format!("variance = {bad}");
        refused!(
            from(&means, bad),
            Error::Parameter {
                name: "variance",
                ..
            },
            &shown
        );
    }
    let model = from(&means, 0.5).unwrap();
    same_means("as given", model.means(), means.view());
    assert_abs_diff_eq!(model.variance(), 0.5, epsilon = 1e-15);
    refused!(
        model.sample(0, 1),
        Error::Parameter { name: "n", .. },
        "n = 0"
    );
    let (points, labels) = model.sample(50, 1).unwrap();
    assert_eq!((points.dim(), labels.len()), ((50, 3), 50));
    assert!(points.iter().all(|x| Float::is_finite(*x)) && labels.iter().all(|&c| c < 4));
    assert_eq!(model.sample(50, 1).unwrap(), (points, labels));
}

#[test]
fn parameters_from_outside() {
    parameters::<f32>();
    parameters::<f64>();
}

/// Means and variances of very different size: what is asked for is kept as far as `kept` says, and no answer
/// is NaN.
fn extreme_parameters<F: Float>(sizes: &[f64], variances: &[f64], kept: bool) {
    let base = blobs::<F>(4, 3, 4, 22);
    for &size in sizes {
        let means = base.mapv(|v| F::from_f64(v.to_f64() * size));
        let data = Dense::new(means.view()).unwrap();
        for &variance in variances {
            let name = format!("means of size {size:e}, variance {variance:e}");
            for k in [1, 4] {
                let means = means.slice(s![..k, ..]);
                let model = match GaussianMixture::tied_spherical(means, variance) {
                    // Below all numbers in the unit of the frame.
                    Err(Error::Parameter {
                        name: "variance", ..
                    }) if !kept => continue,
                    model => model.unwrap(),
                };
                same_means(&name, model.means(), means);
                let got = model.variance();
                assert!(got > 0.0 && got.is_finite(), "{name}: {got:e}");
                if kept {
                    assert!((got / variance - 1.0).abs() < 1e-12, "{name}: {got:e}");
                }
                answers(&name, &model, &data);
                let (points, _) = model.sample(20, 3).unwrap();
                assert!(points.iter().all(|x| !x.to_f64().is_nan()), "{name}");
            }
        }
    }
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

#[test]
fn parameters_of_any_size() {
    let variances = [1e-60, 1e-30, 1.0, 1e30, 1e60];
    extreme_parameters::<f32>(&[1.0, 1e-30, 1e30], &variances, true);
    let variances = [1e-100, 1.0, 1e100];
    extreme_parameters::<f64>(&[1.0, 1e-100, 1e100], &variances, true);
}

/// Parameters at the ends of the range of f64, where the variance and the squared size of the means are too far apart for one
/// unit.
#[test]
fn parameters_at_the_ends_of_the_range() {
    extreme_parameters::<f32>(&[1e-30, 1.0, 1e30], &[1e-300, 1e300], false);
    extreme_parameters::<f64>(&[1e-200, 1.0, 1e140], &[1e-300, 1.0, 1e300], false);
}
