//! The Dirichlet process mixture: against scikit-learn's and a naive loop (`tests/fixtures`), and by its laws.

use crate::common::{blobs, close, read, rises, rounding, seeds, turned};
use approx::assert_abs_diff_eq;
use coremix::families::DirichletProcessMixture;
use coremix::metrics::adjusted_rand_index;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Element, Float, algorithms};
use ndarray::{Array1, Array2, ArrayView2, Axis, array, concatenate, s};
use proptest::prelude::*;

type Fitted<F> = Fit<DirichletProcessMixture<F>>;

fn dense<'a, F: Element>(x: &'a Array2<F>, w: Option<&'a Array1<f64>>) -> Dense<'a, F> {
    match w {
        Some(w) => Dense::weighted(x.view(), w.view()),
        None => Dense::new(x.view()),
    }
    .unwrap()
}

/// A fit from given seeds, for exactly this many M-steps if nothing settles earlier.
fn fit<F: Float>(
    data: &Dense<'_, F>,
    family: DirichletProcess,
    start: ArrayView2<'_, F>,
    steps: usize,
) -> Fitted<F> {
    algorithms::dp_gmm(start.nrows(), 1.0)
        .m_step(family)
        .seeder(Given::new(start))
        .tolerance(0.0)
        .max_iterations(steps)
        .build()
        .unwrap()
        .fit(data)
        .unwrap()
}

#[track_caller]
fn near(got: f64, expected: f64, scale: f64, tolerance: f64, what: &str) {
    assert!(
        (got - expected).abs() <= tolerance * scale,
        "{what}: {got:e} instead of {expected:e}, off by {:e} of {scale:e}",
        (got - expected).abs() / scale
    );
}

/// Parameters, ELBO and predictive log-likelihood after 1, 2, 5 and 50 M-steps.
fn against_fixture<F: Float>(set: &str, weighting: &str, parameters: f64, sums: f64) {
    let x = read(&format!("{set}_data")).mapv(F::from_f64);
    let w = (weighting == "integer").then(|| read("blobs_integer_weights").column(0).to_owned());
    let start = read(&format!("{set}_dp_start")).mapv(F::from_f64);
    let prefix = format!("{set}_{weighting}_dp");
    let [all, proportions, summary] =
        ["parameters", "proportions", "summary"].map(|what| read(&format!("{prefix}_{what}")));
    let (data, d) = (dense(&x, w.as_ref()), x.ncols());
    for run in summary.rows() {
        let fit = fit(
            &data,
            DirichletProcess::new(0.5).merges(false),
            start.view(),
            run[0] as usize,
        );
        // Fewer only where nothing changes any more.
        assert!(fit.report.iterations as f64 == run[0] || run[0] > 5.0);
        let model = &fit.model;
        let rows = |table: &Array2<f64>| -> Array2<f64> {
            let rows: Vec<usize> = (0..table.nrows())
                .filter(|&r| table[[r, 0]] == run[0])
                .collect();
            table.select(Axis(0), &rows)
        };
        let expected = rows(&all);
        let check = |got: Array2<f64>, columns: std::ops::Range<usize>, what: &str| {
            let expected = expected.slice(s![.., columns]);
            let scale = expected.fold(0.0f64, |most, x| most.max(x.abs()));
            for (got, expected) in got.iter().zip(expected) {
                near(
                    *got,
                    *expected,
                    scale,
                    parameters,
                    &format!("{prefix} {what}"),
                );
            }
        };
        let column = |values: Array1<f64>| values.insert_axis(Axis(1));
        check(model.sticks(), 2..4, "sticks");
        check(column(model.mean_precisions()), 4..5, "beta");
        check(model.means().mapv(|m| m.to_f64()), 5..5 + d, "means");
        check(column(model.degrees_of_freedom()), 5 + d..6 + d, "nu");
        let covariances = model.covariances();
        let flat = covariances
            .into_shape_with_order((start.nrows(), d * d))
            .unwrap();
        check(flat, 6 + d..6 + d + d * d, "covariances");
        for (t, row) in rows(&proportions).rows().into_iter().enumerate() {
            near(
                model.proportions()[t],
                row[2],
                1.0,
                parameters,
                "proportions",
            );
        }
        let elbo = *fit.report.free_energies.last().unwrap();
        near(elbo, run[1], run[1].abs(), sums, &format!("{prefix} ELBO"));
        let predictive = model.log_likelihood(&data).unwrap();
        near(
            predictive,
            run[2],
            run[2].abs(),
            // Not at a maximum there: as far off as the parameters are.
            parameters.max(sums),
            &format!("{prefix} predictive"),
        );
    }
}

#[test]
fn agrees_with_the_reference() {
    for (set, weighting) in [
        ("blobs", "unweighted"),
        ("blobs", "integer"),
        ("correlated", "unweighted"),
    ] {
        // The last run may stop once its bound stands still to the last bit: at a maximum that leaves the parameters
        // the square root of it, some 1e-9.
        against_fixture::<f64>(set, weighting, 1e-8, 1e-11);
        against_fixture::<f32>(set, weighting, 1e-3, 1e-5);
    }
}

/// Every E-step that gives the family a support, on all rows and on coresets: name, free energies.
fn runs<F: Float>(x: &Array2<F>, k: usize, seed: u64) -> Vec<(&'static str, Fitted<F>)> {
    let data = dense(x, None);
    let base = move || {
        algorithms::dp_gmm(k, 0.7)
            .tolerance(0.0)
            .max_iterations(25)
            .seed(seed)
    };
    fn run<F>(
        name: &'static str,
        builder: Builder<F, DirichletProcess>,
        data: &Dense<'_, F>,
    ) -> (&'static str, Fitted<F>)
    where
        F: Float,
    {
        (name, builder.build().unwrap().fit(data).unwrap())
    }
    let size = (x.nrows() / 2).max(2 * k);
    vec![
        run("full", base(), &data),
        run("nearest", base().e_step(Exhaustive::nearest()), &data),
        run("truncated", base().e_step(Exhaustive::truncated(2)), &data),
        run(
            "neighborhood",
            base().e_step(Neighborhood::new(3, 3)),
            &data,
        ),
        run(
            "neighborhood, warm",
            base().e_step(Neighborhood::new(3, 3).initial_searches(1).random(1)),
            &data,
        ),
        run(
            "similarity",
            base().e_step(SimilaritySampling::new(3, 2)),
            &data,
        ),
        run("lightweight", base().coreset(Lightweight::new(size)), &data),
        run(
            "uniform, truncated",
            base()
                .coreset(UniformCoreset::new(size))
                .e_step(Neighborhood::new(2, 3)),
            &data,
        ),
        run(
            "paper's priors",
            base().m_step(DirichletProcess::new(2.0).paper_priors()),
            &data,
        ),
    ]
}

fn never_falls<F: Float>(x: &Array2<F>, k: usize, seed: u64) {
    for (name, fit) in runs(x, k, seed) {
        let energies = &fit.report.free_energies;
        rises(name, energies, x.nrows() as f64, rounding::<F>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_bound_never_falls(n in 40usize..300, d in 1usize..7, k in 1usize..12, seed in 0u64..1_000) {
        never_falls::<f64>(&turned(n, d, seed), k, seed);
        never_falls::<f32>(&turned(n, d, seed), k, seed);
    }
}

#[test]
fn the_bound_never_falls_where_prior_and_data_are_degenerate() {
    let mut rng = Rng::from_seed(4);
    for n in [6, 60, 400] {
        // A constant column, a copy, a sum, and one that is nothing but rounding.
        let x = Array2::from_shape_fn((n, 6), |_| rng.normal());
        let mut x = x;
        for mut row in x.rows_mut() {
            row[1] = 3.0;
            row[2] = row[0];
            row[4] = row[0] + row[3];
            row[5] = 1.0 + 1e-13 * row[5];
        }
        never_falls::<f64>(&x, 5, 1);
        never_falls::<f32>(&x.mapv(|v| v as f32), 5, 1);
        let repeated = Array2::from_shape_fn((n, 3), |(i, j)| ((i % 4) * (j + 1)) as f64);
        never_falls::<f64>(&repeated, 4, 1);
        never_falls::<f32>(&repeated.mapv(|v| v as f32), 4, 1);
    }
}

fn same<F: Float>(a: &Fitted<F>, b: &Fitted<F>, tolerance: f64, what: &str) {
    let last = |fit: &Fitted<F>| *fit.report.free_energies.last().unwrap();
    assert!(
        close(last(a), last(b), tolerance),
        "{what}: {} {}",
        last(a),
        last(b)
    );
    let pairs = [
        (
            a.model.means().mapv(|m| m.to_f64()).into_dyn(),
            b.model.means().mapv(|m| m.to_f64()).into_dyn(),
        ),
        (
            a.model.precisions().into_dyn(),
            b.model.precisions().into_dyn(),
        ),
        (a.model.sticks().into_dyn(), b.model.sticks().into_dyn()),
    ];
    for (a, b) in pairs {
        let scale = a.fold(1e-30f64, |most, x| most.max(x.abs()));
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() <= tolerance * scale, "{what}: {a} {b}");
        }
    }
}

/// To more digits than the law over all algorithms has. Weights count not only through their ratios.
#[test]
fn a_weight_is_so_many_copies() {
    let x = turned::<f64>(150, 3, 1);
    let w = Array1::from_shape_fn(150, |n| (n % 4) as f64);
    let copies: Vec<usize> = (0..150).flat_map(|n| vec![n; n % 4]).collect();
    let (copies, start) = (x.select(Axis(0), &copies), seeds(&x, 6, 2));
    let twice = w.mapv(|w| 2.0 * w);
    let [weighted, copied, twice] = [(&x, Some(&w)), (&copies, None), (&x, Some(&twice))]
        .map(|(x, w)| fit(&dense(x, w), DirichletProcess::new(0.5), start.view(), 20));
    same(&weighted, &copied, 1e-9, "copies");
    let degrees = |fit: &Fitted<f64>| fit.model.degrees_of_freedom().sum();
    assert!(degrees(&twice) > 1.5 * degrees(&copied));
}

/// To more digits than the law over all algorithms has: the default priors know no origin, and the paper's do.
#[test]
fn the_default_priors_know_no_origin() {
    // Multiples of 2^-20, so that shifts are exact.
    let x = turned::<f64>(200, 3, 5).mapv(|v| (v * 1048576.0).round() / 1048576.0);
    let start = seeds(&x, 5, 3);
    let at = |family: DirichletProcess, offset: f64| {
        let (x, start) = (&x + offset, &start + offset);
        let fit = fit(&dense(&x, None), family, start.view(), 15);
        (last(&fit), &fit.model.means() - offset)
    };
    let default = || DirichletProcess::new(0.5);
    let (here, there) = (at(default(), 0.0), at(default(), 4096.0));
    assert!(close(here.0, there.0, 1e-9));
    assert!(crate::common::distance(&here.1, &there.1) < 1e-9);
    let paper = |offset| at(default().paper_priors(), offset).0;
    assert!((paper(0.0) - paper(4096.0)).abs() > 1.0);
}

#[test]
fn a_support_of_all_is_the_full_one_and_a_narrow_one_bounds_from_below() {
    let x = turned::<f64>(250, 3, 9);
    let data = dense(&x, None);
    let start = seeds(&x, 6, 1);
    let run = |e_step: Exhaustive, steps: usize| {
        let builder = algorithms::dp_gmm(6, 0.5)
            .e_step(e_step)
            .seeder(Given::new(start.view()));
        let builder = builder.tolerance(0.0).max_iterations(steps);
        builder.build().unwrap().fit(&data).unwrap()
    };
    let full = run(Exhaustive::all(), 12);
    same(&full, &run(Exhaustive::truncated(6), 12), 0.0, "width T");
    assert_eq!(full.search_labels, full.model.predict(&data).unwrap());
    let first = |width| run(Exhaustive::truncated(width), 0).report.free_energies[0];
    let bounds: Vec<f64> = (1..=6).map(first).collect();
    assert!(
        bounds.windows(2).all(|pair| pair[0] < pair[1]),
        "{bounds:?}"
    );
    // Where the components are apart, few are enough.
    let narrow = run(Exhaustive::truncated(3), 12);
    assert!(
        last(&narrow) <= last(&full) + 1e-6 * last(&full).abs()
            || narrow.report.stop == Stop::MaxIterations
    );
}

fn last<F: Float>(fit: &Fitted<F>) -> f64 {
    *fit.report.free_energies.last().unwrap()
}

/// With one component nothing is approximated: the bound is the evidence, the product of the predictive densities of
/// each point given those before.
#[test]
fn one_component_has_the_exact_evidence() {
    let x = turned::<f64>(40, 2, 3);
    let (mean, scale) = (array![0.3, -1.0], array![[0.5, 0.1], [0.1, 0.3]]);
    let family = || {
        DirichletProcess::new(0.8)
            .mean_precision(0.6)
            .degrees_of_freedom(3.5)
            .mean(mean.view())
            .scale(scale.view())
    };
    let start = x.slice(s![..1, ..]).to_owned();
    let mut evidence = 0.0;
    for n in 0..40 {
        // Rows of weight 0 have been seen by nobody.
        let w = Array1::from_shape_fn(40, |i| if i < n { 1.0 } else { 0.0 });
        let density = if n == 0 {
            let prior = 1e-200 * Array1::<f64>::ones(40);
            fit(&dense(&x, Some(&prior)), family(), start.view(), 3)
        } else {
            fit(&dense(&x, Some(&w)), family(), start.view(), 3)
        };
        let row = x.slice(s![n..=n, ..]).to_owned();
        evidence += density.model.log_densities(&dense(&row, None)).unwrap()[0];
        // Whether a point takes the one stick there is: an event of its own.
        let sticks = density.model.sticks();
        evidence += (sticks[[0, 0]] / sticks.sum()).ln();
    }
    let whole = fit(&dense(&x, None), family(), start.view(), 3);
    near(last(&whole), evidence, evidence.abs(), 1e-10, "evidence");
}

#[test]
fn answers_agree_with_each_other() {
    let x = turned::<f64>(300, 3, 6);
    let w = Array1::from_shape_fn(300, |n| 0.5 + (n % 3) as f64);
    let data = dense(&x, Some(&w));
    let mut fit = fit(
        &data,
        DirichletProcess::new(0.5),
        seeds(&x, 7, 4).view(),
        30,
    );
    let model = fit.model.clone();
    let densities = model.log_densities(&data).unwrap();
    let likelihood = model.log_likelihood(&data).unwrap();
    assert!(close(densities.dot(&w), likelihood, 1e-12));
    let score = fit.score(&data).unwrap();
    assert!(close(score.log_likelihood, likelihood, 1e-14));
    assert_eq!(score.labels, model.predict(&data).unwrap());
    let error = model.quantization_error(&data).unwrap();
    assert!(close(score.quantization_error, error, 1e-14));

    let (precisions, covariances) = (model.precisions(), model.covariances());
    for (p, c) in precisions.outer_iter().zip(covariances.outer_iter()) {
        let product = p.dot(&c) - Array2::<f64>::eye(3);
        assert!(product.iter().all(|x| x.abs() < 1e-10));
    }
    let proportions = model.proportions();
    assert!(close(proportions.sum(), 1.0, 1e-14));
    let entropy: f64 = proportions.iter().map(|p| -p * p.ln()).sum();
    let occupied = proportions.iter().filter(|p| **p >= 0.05).count();
    assert!(occupied >= 2 && entropy.exp() < 7.0);

    // Responsibilities are those of the E-step, from the parameters that a user sees.
    let responsibilities = model.responsibilities(&data).unwrap();
    let (nu, beta) = (model.degrees_of_freedom(), model.mean_precisions());
    let log_pi = expected_logs(&model.sticks());
    for n in 0..300 {
        let logs: Vec<f64> = (0..7)
            .map(|t| {
                let u = &x.row(n) - &model.means().row(t);
                let form = u.dot(&precisions.index_axis(Axis(0), t).dot(&u));
                let log_det =
                    log_det3(&precisions.index_axis(Axis(0), t).to_owned()) - 3.0 * nu[t].ln();
                let psi: f64 = (0..3).map(|i| digamma(0.5 * (nu[t] - f64::from(i)))).sum();
                log_pi[t] + 0.5 * (psi + 3.0 * 2f64.ln() + log_det - 3.0 / beta[t] - form)
            })
            .collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
        for (t, log) in logs.iter().enumerate() {
            let expected = (log - most).exp() / total;
            assert_abs_diff_eq!(responsibilities[[n, t]], expected, epsilon = 1e-10);
        }
    }
}

fn expected_logs(sticks: &Array2<f64>) -> Vec<f64> {
    let mut before = 0.0;
    (sticks.rows().into_iter())
        .map(|stick| {
            let both = digamma(stick[0] + stick[1]);
            let log = before + digamma(stick[0]) - both;
            before += digamma(stick[1]) - both;
            log
        })
        .collect()
}

/// The slope of the logarithm of the gamma function, by its recurrence and series.
fn digamma(x: f64) -> f64 {
    if x < 12.0 {
        return digamma(x + 1.0) - 1.0 / x;
    }
    let q = 1.0 / (x * x);
    x.ln()
        - 0.5 / x
        - q * (1.0 / 12.0 - q * (1.0 / 120.0 - q * (1.0 / 252.0 - q * (1.0 / 240.0 - q / 132.0))))
}

fn log_det3(a: &Array2<f64>) -> f64 {
    let minor = |i: usize, j: usize| a[[1, i]] * a[[2, j]] - a[[1, j]] * a[[2, i]];
    (a[[0, 0]] * minor(1, 2) - a[[0, 1]] * minor(0, 2) + a[[0, 2]] * minor(0, 1)).ln()
}

#[test]
fn draws_are_from_the_predictive_density() {
    let x = concatenate![
        Axis(0),
        turned::<f64>(60, 2, 2),
        turned::<f64>(60, 2, 2) + 30.0
    ];
    let fit = fit(
        &dense(&x, None),
        DirichletProcess::new(0.5),
        seeds(&x, 3, 1).view(),
        20,
    );
    let (points, labels) = fit.model.sample(40_000, 7).unwrap();
    assert_eq!(points, fit.model.sample(40_000, 7).unwrap().0);
    assert!(fit.model.sample(0, 7).is_err());
    let shares = fit.model.proportions();
    for t in 0..3 {
        let drawn: Vec<usize> = (0..40_000).filter(|&n| labels[n] == t as u32).collect();
        let share = drawn.len() as f64 / 40_000.0;
        assert_abs_diff_eq!(share, shares[t], epsilon = 0.01);
        if share > 0.2 {
            let mine = points.select(Axis(0), &drawn);
            let mean = mine.mean_axis(Axis(0)).unwrap();
            let apart = &mine - &mean;
            let covariance = apart.t().dot(&apart) / drawn.len() as f64;
            let (nu, beta) = (
                fit.model.degrees_of_freedom()[t],
                fit.model.mean_precisions()[t],
            );
            let expected = &fit.model.covariances().index_axis(Axis(0), t)
                * (nu / (nu - 3.0) * (1.0 + 1.0 / beta));
            for ((got, expected), mean) in covariance.iter().zip(&expected).zip(mean.iter().cycle())
            {
                assert!(
                    (got - expected).abs() < 0.05 * expected.abs() + 0.3,
                    "{got} {expected} {mean}"
                );
            }
        }
    }
}

#[test]
fn priors_are_what_they_are_set_to() {
    let x = turned::<f64>(80, 2, 1);
    let data = dense(&x, None);
    let start = seeds(&x, 4, 2);
    let paper = fit(
        &data,
        DirichletProcess::new(1.5).paper_priors(),
        start.view(),
        10,
    );
    let (zero, ten) = (array![0.0, 0.0], array![[10.0, 0.0], [0.0, 10.0]]);
    let spelled = DirichletProcess::new(1.5)
        .mean(zero.view())
        .scale(ten.view())
        .mean_precision(0.8)
        .degrees_of_freedom(2.0);
    same(
        &paper,
        &fit(&data, spelled, start.view(), 10),
        1e-12,
        "spelled out",
    );
    let mean = x.mean_axis(Axis(0)).unwrap();
    let apart = &x - &mean;
    let covariance = apart.t().dot(&apart) / 80.0;
    let det = covariance[[0, 0]] * covariance[[1, 1]] - covariance[[0, 1]].powi(2);
    let scale = array![
        [covariance[[1, 1]] / det, -covariance[[0, 1]] / det],
        [-covariance[[0, 1]] / det, covariance[[0, 0]] / det]
    ];
    let spelled = DirichletProcess::new(1.5)
        .mean(mean.view())
        .scale(scale.view());
    let default = fit(&data, DirichletProcess::new(1.5), start.view(), 10);
    same(
        &default,
        &fit(&data, spelled, start.view(), 10),
        1e-9,
        "the data's",
    );
    // On a coreset the prior is still that of the whole data.
    let on_one = |family: DirichletProcess| {
        let builder = algorithms::dp_gmm(4, 1.5)
            .coreset(UniformCoreset::new(12))
            .m_step(family);
        builder
            .tolerance(0.0)
            .max_iterations(10)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap()
    };
    let spelled = DirichletProcess::new(1.5)
        .mean(mean.view())
        .scale(scale.view());
    same(
        &on_one(DirichletProcess::new(1.5)),
        &on_one(spelled),
        1e-9,
        "coreset",
    );
}

fn refused(family: DirichletProcess, name: &str) {
    let x = turned::<f64>(30, 2, 1);
    let fit = algorithms::dp_gmm(2, 1.0)
        .m_step(family)
        .build()
        .and_then(|c| c.fit(&dense(&x, None)));
    let message = fit.expect_err(name).to_string();
    assert!(message.contains(name), "{message}");
}

#[test]
fn bad_settings_are_named() {
    let good = || DirichletProcess::new(1.0);
    // Beyond a range gamma functions would overflow or lose their digits.
    for bad in [0.0, -1.0, 1e-310, 1e300, f64::NAN, f64::INFINITY] {
        refused(DirichletProcess::new(bad), "concentration");
        refused(good().mean_precision(bad), "mean_precision");
        refused(good().degrees_of_freedom(bad), "degrees_of_freedom");
    }
    refused(good().degrees_of_freedom(1.0), "degrees_of_freedom");
    refused(good().mean(array![0.0].view()), "mean");
    refused(good().mean(array![0.0, f64::NAN].view()), "mean");
    refused(good().scale(array![[1.0]].view()), "scale");
    refused(good().scale(array![[1.0, 0.0]].view()), "scale");
    refused(good().scale(array![[1.0, 0.5], [0.4, 1.0]].view()), "scale");
    refused(good().scale(array![[1.0, 2.0], [2.0, 1.0]].view()), "scale");
    refused(good().scale(array![[0.0, 0.0], [0.0, 1.0]].view()), "scale");
    refused(
        good().scale(array![[f64::INFINITY, 0.0], [0.0, 1.0]].view()),
        "scale",
    );
}

/// Fits with every E-step, then asks everything: nothing may panic or be NaN.
fn survives<F: Float>(what: &str, x: &Array2<F>, w: Option<&Array1<f64>>, k: usize) {
    let data = dense(x, w);
    let base = || algorithms::dp_gmm(k, 1.0).max_iterations(20);
    let fits = [
        base().build().unwrap().fit(&data).unwrap(),
        base()
            .e_step(Exhaustive::nearest())
            .build()
            .unwrap()
            .fit(&data)
            .unwrap(),
        base()
            .e_step(Neighborhood::new(2, 2))
            .build()
            .unwrap()
            .fit(&data)
            .unwrap(),
        base()
            .e_step(SimilaritySampling::new(2, 2))
            .build()
            .unwrap()
            .fit(&data)
            .unwrap(),
        base()
            .coreset(Lightweight::new(2 * k))
            .build()
            .map(|c| c.fit(&data))
            .unwrap()
            .unwrap_or_else(|_| base().build().unwrap().fit(&data).unwrap()),
    ];
    for fit in fits {
        let model = &fit.model;
        // With weights this large the prior is lost in rounding, and with it the limit of the bound.
        let weight = data_weight(&data);
        let within = if weight > 1e15 { f64::INFINITY } else { 1e-6 };
        rises(what, &fit.report.free_energies, weight, within);
        assert!(model.means().iter().all(|m| m.is_finite()), "{what}");
        assert!(model.sticks().iter().all(|s| s.is_finite()), "{what}");
        assert!(model.proportions().iter().all(|s| s.is_finite()), "{what}");
        assert!(model.log_likelihood(&data).unwrap().is_finite(), "{what}");
        assert!(
            model
                .responsibilities(&data)
                .unwrap()
                .iter()
                .all(|q| q.is_finite()),
            "{what}"
        );
        assert!(
            model.sample(5, 1).unwrap().0.iter().all(|x| x.is_finite()),
            "{what}"
        );
        // Rows that are no part of the data.
        let far = Array2::from_elem((2, x.ncols()), F::from_f64(F::LIMIT));
        let far = dense(&far, None);
        assert!(
            model
                .log_densities(&far)
                .unwrap()
                .iter()
                .all(|l| !l.is_nan()),
            "{what}"
        );
        let shares = model.responsibilities(&far).unwrap();
        assert!(
            shares
                .sum_axis(Axis(1))
                .iter()
                .all(|q| (q.to_f64() - 1.0).abs() < 1e-3),
            "{what}"
        );
    }
}

fn data_weight<F: Float>(data: &Dense<'_, F>) -> f64 {
    use coremix::data::Data;
    data.summary().total_weight
}

#[test]
fn hostile_data_is_survived() {
    fn both(what: &str, x: &Array2<f64>, w: Option<&Array1<f64>>, k: usize) {
        survives::<f64>(what, x, w, k);
        survives::<f32>(what, &x.mapv(|v| v as f32), w, k);
    }
    let x = turned::<f64>(60, 3, 1);
    both("plain", &x, None, 5);
    both("one point", &x.slice(s![..1, ..]).to_owned(), None, 1);
    both("one column", &x.slice(s![.., ..1]).to_owned(), None, 4);
    both("fewer rows than columns", &turned::<f64>(5, 12, 2), None, 3);
    both("all the same", &Array2::from_elem((9, 3), 1.25), None, 3);
    both(
        "duplicates",
        &Array2::from_shape_fn((40, 2), |(n, _)| (n % 2) as f64),
        None,
        4,
    );
    let mut constant = x.clone();
    constant.column_mut(1).fill(-7.5);
    both("a constant column", &constant, None, 4);
    both("far away", &x.mapv(|v| v + 1e6), None, 4);
    both("large", &x.mapv(|v| v * 1e30), None, 4);
    both("small", &x.mapv(|v| v * 1e-30), None, 4);
    let w = Array1::from_shape_fn(60, |n| f64::from(u8::from(n % 3 == 0)));
    both("weights of zero", &x, Some(&w), 5);
    for unit in [1e-280, 1e-20, 1e20, 1e280] {
        both("weights of any size", &x, Some(&w.mapv(|w| w * unit)), 3);
    }
    let mut outlier = x.clone();
    outlier[[7, 1]] = 1e30;
    survives::<f64>("an outlier", &outlier, None, 4);
    outlier[[7, 1]] = 1e12;
    both("an outlier", &outlier, None, 4);
    survives::<f64>("very large", &x.mapv(|v| v * 1e145), None, 4);
    survives::<f64>("very small", &x.mapv(|v| v * 1e-300), None, 4);
}

#[test]
fn seeds_far_outside_the_data_come_back() {
    fn from<F: Float>(far: f64) {
        let x = turned::<F>(100, 2, 1);
        let mut start = seeds(&x, 3, 1);
        start.row_mut(1).fill(F::from_f64(far));
        let fit = fit(
            &dense(&x, None),
            DirichletProcess::new(1.0),
            start.view(),
            20,
        );
        assert!(last(&fit).is_finite(), "{far}");
        assert!(
            fit.model.means().iter().all(|m| m.to_f64().abs() < 100.0),
            "{far}"
        );
    }
    for far in [1e3, 1e9, 1e30] {
        from::<f32>(far);
        from::<f64>(far);
    }
    from::<f64>(1e149);
}

#[test]
fn a_truncation_larger_than_needed_leaves_components_at_the_prior() {
    let x = blobs::<f64>(400, 2, 3, 11);
    let data = dense(&x, None);
    let fit = algorithms::dp_gmm(20, 0.1)
        .tolerance(1e-9)
        .max_iterations(300)
        .build()
        .unwrap();
    let fit = fit.fit(&data).unwrap();
    let nu = fit.model.degrees_of_freedom();
    let proportions = fit.model.proportions();
    let used = proportions.iter().filter(|p| **p >= 0.01).count();
    let positive = proportions.iter().filter(|p| **p > 0.0);
    let effective = positive.map(|p| -p * p.ln()).sum::<f64>().exp();
    assert!(nu.iter().filter(|nu| **nu < 2.5).count() >= 5, "{nu}");
    assert!(used < 15 && effective < 12.0, "{effective}");
}

/// Round clusters in turn, `apart` deviations from the next one on average.
fn round_clusters(n: usize, clusters: usize, dim: usize, apart: f64, seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    let centres = Array2::from_shape_fn((clusters, dim), |_| apart * rng.normal());
    Array2::from_shape_fn((n, dim), |(i, j)| centres[[i % clusters, j]] + rng.normal())
}

/// Components that have at least one row.
fn in_use<F: Float>(fit: &Fitted<F>, data: &Dense<'_, F>) -> usize {
    let labels = fit.model.predict(data).unwrap();
    let mut used: Vec<u32> = labels.to_vec();
    used.sort_unstable();
    used.dedup();
    used.len()
}

/// With few rows and with more, the components that are left are the clusters, also by a large tolerance. Without merges
/// too many components are left.
#[test]
fn components_merge_until_they_are_the_clusters() {
    for n in [1_500, 24_000] {
        for seed in 0..3 {
            let x = round_clusters(n, 10, 6, 5.0, seed);
            let data = dense(&x, None);
            let fit = |merges: bool| {
                let family = DirichletProcess::new(1.0).merges(merges);
                let builder = algorithms::dp_gmm(25, 1.0).m_step(family).tolerance(1e-3);
                builder.seed(seed).build().unwrap().fit(&data).unwrap()
            };
            let (merged, plain) = (fit(true), fit(false));
            let f = |fit: &Fitted<f64>| *fit.report.free_energies.last().unwrap();
            assert_eq!(in_use(&merged, &data), 10, "{n} rows, seed {seed}");
            assert!(in_use(&plain, &data) > 10 || n < 10_000);
            assert!(f(&merged) >= f(&plain), "{} {}", f(&merged), f(&plain));
            assert_eq!(merged.report.stop, Stop::Converged);
            rises("merged", &merged.report.free_energies, 0.0, 1e-9);
        }
    }
}

/// Merges need all components in every support.
#[test]
fn truncated_searches_do_not_merge() {
    let x = round_clusters(2_000, 5, 3, 6.0, 1);
    let data = dense(&x, None);
    let fit = |merges: bool| {
        let family = DirichletProcess::new(1.0).merges(merges);
        let builder = algorithms::dp_gmm(12, 1.0).m_step(family);
        let builder = builder.e_step(Neighborhood::new(3, 3));
        builder.build().unwrap().fit(&data).unwrap()
    };
    let (one, other) = (fit(true), fit(false));
    assert_eq!(one.report.free_energies, other.report.free_energies);
    assert_eq!(one.search_labels, other.search_labels);
    // Nor is there a pass for them.
    assert_eq!(one.report.evaluations, other.report.evaluations);
}

/// Iterations that are used up where components would merge: the same free energies up to there, and no pass for merges that
/// no update follows.
#[test]
fn merges_keep_to_the_iterations() {
    let x = round_clusters(2_000, 5, 3, 6.0, 1);
    let data = dense(&x, None);
    let fit = |iterations: usize, merges: bool| {
        let family = DirichletProcess::new(1.0).merges(merges);
        let builder = algorithms::dp_gmm(12, 1.0).m_step(family).tolerance(1e-3);
        let fit = builder.max_iterations(iterations).build().unwrap();
        fit.fit(&data).unwrap().report
    };
    let (whole, plain) = (fit(100, true), fit(100, false));
    assert!(whole.iterations > plain.iterations && whole.stop == Stop::Converged);
    for iterations in 0..=whole.iterations {
        let report = fit(iterations, true);
        assert_eq!(report.free_energies, whole.free_energies[..=iterations]);
        if iterations <= plain.iterations {
            let plain = fit(iterations, false);
            assert_eq!(report.evaluations, plain.evaluations, "{iterations}");
        }
    }
}

/// A tolerance below rounding: one pass for merges where the free energy has settled, not one in each iteration.
#[test]
fn merges_are_tried_once() {
    let x = round_clusters(500, 3, 2, 8.0, 2);
    let data = dense(&x, None);
    let fit = |merges: bool| {
        let family = DirichletProcess::new(1.0).merges(merges);
        let builder = algorithms::dp_gmm(3, 1.0).m_step(family).tolerance(0.0);
        builder
            .max_iterations(300)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap()
            .report
    };
    let (tried, plain) = (fit(true), fit(false));
    // Where a change of exactly 0 comes first, the fit that tries goes on for an iteration.
    let (searches, more) = (
        plain.free_energies.len(),
        tried.iterations - plain.iterations,
    );
    assert_eq!(tried.free_energies[..searches], plain.free_energies);
    assert!(more <= 1, "{more}");
    let one_pass = 3 * 500;
    let [tried, plain] = [tried, plain].map(|report| report.distance_evaluations);
    assert_eq!(tried - plain, one_pass * (1 + more as u64));
}

/// However weak the prior, scores keep their digits: what an empty component adds to its own is no part of any other.
#[test]
fn weak_priors_cost_no_digits() {
    let x = blobs::<f64>(400, 3, 4, 3);
    let narrow = x.mapv(|x| x as f32);
    let (data, narrow) = (
        Dense::new(x.view()).unwrap(),
        Dense::new(narrow.view()).unwrap(),
    );
    for (mean_precision, degrees) in [(1.0, 3.0), (1e-8, 3.0), (1.0, 2.0 + 1e-6), (1e-12, 2.5)] {
        fn fit<F: Float>(data: &dyn Data<F>, prior: DirichletProcess) -> Fitted<F> {
            let builder = algorithms::dp_gmm(30, 1.0)
                .tolerance(0.0)
                .max_iterations(12);
            let clusterer = builder.m_step(prior).seed(3).build();
            clusterer.unwrap().fit(data).unwrap()
        }
        let prior = DirichletProcess::new(1.0)
            .mean_precision(mean_precision)
            .degrees_of_freedom(degrees);
        let (exact, rounded) = (fit(&data, prior.clone()), fit(&narrow, prior));
        for fit in [&exact.report, &rounded.report] {
            rises("a weak prior", &fit.free_energies, 0.0, 1e-6);
        }
        let f = |report: &Report| report.free_energies[1];
        let (f, g) = (f(&exact.report), f(&rounded.report));
        assert!(
            (f - g).abs() < 1e-4 * f.abs(),
            "{mean_precision:e} {degrees}: {f} {g}"
        );
        let (points, _) = rounded.model.sample(2_000, 1).unwrap();
        assert!(points.iter().all(|x| x.is_finite()));
    }
}

/// Under the prior of the data alone, narrow clusters with few rows would become one wide one.
#[test]
fn narrow_clusters_with_few_rows_do_not_merge() {
    let mut rng = Rng::from_seed(3);
    let x = Array2::from_shape_fn((600, 3), |(i, j)| {
        ((i % 6) * (j + 1)) as f64 + 0.05 * rng.normal()
    });
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::dp_gmm(8, 1.0).build().unwrap();
    let model = fit.fit(&data).unwrap().model;
    let used = model.proportions().iter().filter(|p| **p > 0.01).count();
    assert_eq!(used, 6);
}

/// Three blobs of deviation 1, ten apart, on a grid that numbers far from 0 have, too.
fn three_blobs(d: usize) -> (Array2<f64>, Array1<u32>) {
    let mut rng = Rng::from_seed(3);
    let place = |i: usize, j: usize| 10.0 * ((i % 3 + j) % 3) as f64;
    let x = Array2::from_shape_fn((600, d), |(i, j)| {
        ((place(i, j) + rng.normal()) * 256.0).round() / 256.0
    });
    (x, Array1::from_shape_fn(600, |i| (i % 3) as u32))
}

/// A prior at 0 and data far from it, such as metres and Unix times: F rises by the tolerance of the law, or there is advice.
fn far_from_the_prior<F: Float>(within: f64, family: &DirichletProcess, must: f64) {
    for d in [1, 2, 5] {
        for offset in [3e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1.7e9, 1e10, 1e11, 1e12] {
            let x = three_blobs(d).0.mapv(|x| F::from_f64(x + offset));
            let builder = algorithms::dp_gmm(8, 1.0).m_step(family.clone());
            let builder = builder.tolerance(0.0).max_iterations(60).build().unwrap();
            match builder.fit(&dense(&x, None)) {
                Err(error) => {
                    assert!(error.to_string().contains("subtract the mean"), "{error}");
                    assert!(offset > must, "{offset:e}: {error}");
                }
                Ok(fit) => {
                    let what = format!("{d} columns at {offset:e}");
                    rises(what, &fit.report.free_energies, 600.0, within);
                }
            }
        }
    }
}

#[test]
fn the_bound_rises_far_from_the_prior() {
    let zero = |d: usize| Array1::<f64>::zeros(d);
    far_from_the_prior::<f64>(1e-9, &DirichletProcess::new(1.0).paper_priors(), 2e9);
    far_from_the_prior::<f32>(1e-6, &DirichletProcess::new(1.0).paper_priors(), 1e6);
    for beta in [0.01, 100.0] {
        let family = DirichletProcess::new(1.0)
            .paper_priors()
            .mean_precision(beta);
        far_from_the_prior::<f64>(1e-9, &family, 2e9);
    }
    // A prior mean alone is far, in one of two columns that differ in size.
    let (x, _) = three_blobs(2);
    let units = array![1e-3, 1e3];
    let x = &x * &units + &array![1e5, 0.0];
    let family = DirichletProcess::new(1.0).mean(zero(2).view());
    let fit = fit(&dense(&x, None), family, seeds(&x, 6, 1).view(), 40);
    rises("a mean", &fit.report.free_energies, 600.0, 1e-9);
}

/// With one component the bound is the evidence, in which only $-\\frac{\\nu}{2} \\ln(1 + x^T A^{-1} x)$ depends on how far the data is
/// from the prior.
#[test]
fn the_evidence_far_from_the_prior_is_exact() {
    let (x, _) = three_blobs(2);
    let mean = x.mean_axis(Axis(0)).unwrap();
    let apart = &x - &mean;
    let mut a = apart.t().dot(&apart);
    a.diag_mut().mapv_inplace(|v| v + 0.1);
    let det = a[[0, 0]] * a[[1, 1]] - a[[0, 1]] * a[[1, 0]];
    let inverse = array![[a[[1, 1]], -a[[0, 1]]], [-a[[1, 0]], a[[0, 0]]]] / det;
    let log = |offset: f64| {
        let from_prior = &mean + offset;
        let square = 0.8 * 600.0 / 600.8 * from_prior.dot(&inverse.dot(&from_prior));
        -0.5 * (2.0 + 600.0) * square.ln_1p()
    };
    let bound = |offset: f64| {
        let x = x.mapv(|x| x + offset);
        let start = x.slice(s![..1, ..]).to_owned();
        let family = DirichletProcess::new(1.0).paper_priors();
        last(&fit(&dense(&x, None), family, start.view(), 4))
    };
    let near = bound(0.0);
    for offset in [1e2, 1e4, 1e6, 1e8, 1e9] {
        let expected = near + log(offset) - log(0.0);
        let got = bound(offset);
        assert!(
            (got - expected).abs() <= 1e-9 * expected.abs(),
            "{offset:e}: {got} {expected}"
        );
    }
}

/// The default prior does not follow a few far values: the clusters are found as without them.
#[test]
fn far_rows_do_not_widen_the_prior() {
    for d in [1, 2, 5] {
        let (x, labels) = three_blobs(d);
        let data = dense(&x, None);
        let found = |rows: &dyn Data<f64>, coreset: Option<usize>| {
            let mut builder = algorithms::dp_gmm(8, 1.0);
            if let Some(size) = coreset {
                builder = builder.coreset(Lightweight::new(size));
            }
            let fit = builder.build().unwrap().fit(rows).unwrap();
            let index =
                adjusted_rand_index(labels.view(), fit.model.predict(&data).unwrap().view());
            (
                index.unwrap(),
                fit.model.log_likelihood(&data).unwrap() / 600.0,
            )
        };
        let (index, likelihood) = found(&data, None);
        assert!(index > 0.98);
        for far in [1e3, 1e4, 999_999.0, -1e7, 1e8] {
            for rows in [1, 3] {
                let mut y = x.clone();
                for row in 0..rows {
                    let row = Array1::from_elem(d, far * (1.0 + row as f64));
                    y.push_row(row.view()).unwrap();
                }
                let w = Array1::from_shape_fn(600 + rows, |i| if i < 600 { 2.0 } else { 1.0 });
                for (data, coreset) in [
                    (dense(&y, None), None),
                    (dense(&y, Some(&w)), None),
                    (dense(&y, None), Some(400)),
                ] {
                    let (index, with_far) = found(&data, coreset);
                    let name = || format!("{d} columns, {rows} rows at {far:e}, {coreset:?}");
                    assert!(index > 0.98, "{}: {index}", name());
                    assert!(
                        with_far > likelihood - 0.6,
                        "{}: {with_far} {likelihood}",
                        name()
                    );
                }
            }
        }
    }
}
