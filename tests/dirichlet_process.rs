//! The Dirichlet process mixture: against scikit-learn's and a naive loop (`tests/fixtures`), and by its laws.

mod common;

use common::{blobs, close, seeds};
use coremix::coreset::Coreset;
use coremix::e_step::EStep;
use coremix::m_step::DirichletProcessMixture;
use coremix::prelude::*;
use coremix::{Builder, Element, Float, Rng, Stage, algorithms};
use ndarray::{Array1, Array2, ArrayView2, Axis, array, concatenate, s};
use proptest::prelude::*;
use std::path::Path;

/// The numbers of a fixture, (rows, columns).
fn read(name: &str) -> Array2<f64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let text = std::fs::read_to_string(folder.join(format!("{name}.csv"))).expect(name);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split(',').map(|v| v.parse().expect(name)).collect())
        .collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

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
        let fit = fit(&data, DirichletProcess::new(0.5), start.view(), run[0] as usize);
        assert_eq!(fit.report.iterations as f64, run[0]);
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
                near(*got, *expected, scale, parameters, &format!("{prefix} {what}"));
            }
        };
        let column = |values: Array1<f64>| values.insert_axis(Axis(1));
        check(model.sticks(), 2..4, "sticks");
        check(column(model.mean_precisions()), 4..5, "beta");
        check(model.means().mapv(|m| m.to_f64()), 5..5 + d, "means");
        check(column(model.degrees_of_freedom()), 5 + d..6 + d, "nu");
        let covariances = model.covariances();
        let flat = covariances.into_shape_with_order((start.nrows(), d * d)).unwrap();
        check(flat, 6 + d..6 + d + d * d, "covariances");
        for (t, row) in rows(&proportions).rows().into_iter().enumerate() {
            near(model.proportions()[t], row[2], 1.0, parameters, "proportions");
        }
        let elbo = *fit.report.free_energies.last().unwrap();
        near(elbo, run[1], run[1].abs(), sums, &format!("{prefix} ELBO"));
        let predictive = model.log_likelihood(&data).unwrap();
        near(predictive, run[2], run[2].abs(), sums, &format!("{prefix} predictive"));
    }
}

#[test]
fn agrees_with_the_reference() {
    for (set, weighting) in [
        ("blobs", "unweighted"),
        ("blobs", "integer"),
        ("correlated", "unweighted"),
    ] {
        against_fixture::<f64>(set, weighting, 1e-10, 1e-11);
        against_fixture::<f32>(set, weighting, 1e-3, 1e-5);
    }
}
