//! Lists of phases: which of them run, on what, and what the report says of it.

use coremix::Error;
use coremix::prelude::*;
use coremix::stage::Shape;
use ndarray::{Array1, Array2, arr1};
use std::ops::ControlFlow;

fn points() -> Array2<f64> {
    Array2::from_shape_fn((900, 3), |(n, j)| {
        let noise = ((n * 7_919 + j * 104_729) % 1_009) as f64 / 1_009.0;
        (n % 30 * (j + 2) % 7) as f64 + noise
    })
}

fn bounded<F: coremix::Float>(near: usize) -> Phase<F> {
    Phase::new(Bounded::default().nearest_centres(near))
}

fn parameter(error: Error) -> &'static str {
    match error {
        Error::Parameter { name, .. } => name,
        other => panic!("{other}"),
    }
}

/// A list of which nothing is left for the data is an error, at the latest when it is known.
#[test]
fn at_least_one_phase_runs() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let builder = || Clusterer::builder().clusters(5);
    let after = || Phase::new(Exhaustive::nearest()).after_subspace();
    let only_after = builder().phases(move |_| vec![after()]).build().unwrap();
    assert_eq!(parameter(only_after.fit(&data).unwrap_err()), "phases");
    let larger = PhaseRows::Larger(Lightweight::new(100));
    let only_larger = builder().phases(move |_| vec![bounded(3).rows(larger)]);
    let only_larger = only_larger.build().unwrap();
    assert_eq!(parameter(only_larger.fit(&data).unwrap_err()), "phases");
    // A fit that is stopped at once still has its only phase. Found by a fuzz target.
    let with_coreset = builder().coreset(Lightweight::new(50));
    let with_coreset = with_coreset.phases(move |_| vec![bounded(3).rows(larger)]);
    let fit = with_coreset.build().unwrap();
    let stopped = fit.fit_observed(&data, |_| ControlFlow::Break(())).unwrap();
    assert_eq!(stopped.report.stop, Stop::Observer);
    assert_eq!(stopped.report.phases[0].iterations, 0);
    assert_eq!(stopped.report.phases[0].rows, 100);
    // The second phase is left out, so the first one runs.
    let first =
        builder().phases(|_| vec![bounded(3), bounded(3).rows(PhaseRows::All).after_subspace()]);
    let fit = first.build().unwrap().fit(&data).unwrap();
    assert_eq!(fit.report.phases.len(), 1);
}

/// Phases on a coreset that is not there are left out only for one on all rows that comes later.
#[test]
fn phases_without_a_coreset() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let ran = |list: fn(Shape) -> Vec<Phase<f64>>| {
        let fit = Clusterer::builder().clusters(5).phases(list);
        fit.build().unwrap().fit(&data).unwrap().report.phases.len()
    };
    assert_eq!(
        ran(|_| vec![
            Phase::new(Exhaustive::nearest()),
            Phase::new(Exhaustive::truncated(3))
        ]),
        2
    );
    assert_eq!(
        ran(|_| vec![
            Phase::new(Exhaustive::nearest()),
            Phase::new(Exhaustive::truncated(3)).rows(PhaseRows::All)
        ]),
        1
    );
}

#[test]
fn one_subspace_for_all_phases() {
    let two = |_| {
        vec![
            bounded::<f64>(3).columns(Columns::Principal(1)),
            bounded(3).columns(Columns::Principal(2)),
        ]
    };
    let built = algorithms::fast::<f64>(5).phases(two).build();
    assert_eq!(parameter(built.unwrap_err()), "coordinates");
}

/// Components that come from the phase before are not better for a search that never ran.
#[test]
fn exact_is_about_the_search_that_ran() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let fit = |iterations: usize| {
        let list = |_| {
            [3, 30]
                .map(|near| bounded(near).rows(PhaseRows::All))
                .to_vec()
        };
        let fit = algorithms::k_means(30)
            .phases(list)
            .max_iterations(iterations);
        fit.build().unwrap().fit(&data).unwrap()
    };
    assert!(!fit(0).exact);
    let exact = fit(5);
    assert!(exact.exact);
    assert_eq!(exact.search_labels, exact.model.predict(&data).unwrap());
    // On a sketch every search is over all components.
    let sketch = Sketch::new(points.view(), 2, 1).unwrap();
    let fit = algorithms::k_means(30).e_step(Bounded::default().nearest_centres(3));
    let fit = fit.build().unwrap().fit(&sketch).unwrap();
    assert!(fit.exact);
    assert_eq!(fit.search_labels, fit.model.predict(&sketch).unwrap());
}

#[test]
fn the_report_counts_the_rows_of_the_first_phase() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let list = |_| vec![bounded(3).rows(PhaseRows::All)];
    let fit = algorithms::k_means(5)
        .coreset(Lightweight::new(100))
        .phases(list);
    let fit = fit.build().unwrap().fit(&data).unwrap();
    assert_eq!(fit.report.coreset_size, 900);
    assert!(fit.coreset.is_none());
}

/// Rows of tiny weight count as rows, whatever the others weigh.
#[test]
fn weights_of_very_different_size() {
    let points = Array2::from_shape_fn((40, 2), |(n, j)| (n * (j + 1) % 11) as f64);
    let mut weights = Array1::from_elem(40, 1e-40);
    weights[7] = 1e290;
    let data = Dense::weighted(&points, weights.view()).unwrap();
    assert_eq!(data.summary().rows, 40);
    let fit = algorithms::k_means(1)
        .coreset(UniformCoreset::new(3))
        .build();
    let fit = fit.unwrap().fit(&data).unwrap();
    assert_eq!(fit.search_labels.len(), 3);
    let sums = data.summary();
    assert_eq!(arr1(&sums.mean), points.row(7));
}

/// A power of two scales a fit of the Dirichlet process exactly, down to where squares are at the edge of the type.
#[test]
fn the_dirichlet_process_at_small_scales() {
    let points = points();
    let dp = algorithms::dp_gmm(6, 1.0)
        .max_iterations(5)
        .build()
        .unwrap();
    let at = |scale: f64| {
        let scaled = &points * scale;
        let data = Dense::new(&scaled).unwrap();
        &dp.fit(&data).unwrap().model.means() / scale
    };
    assert_eq!(at(1.0), at(2f64.powi(-500)));
}

/// Labels can be made exact for the fitted data alone.
#[test]
fn other_data_are_not_labelled_again() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let half = points.slice(ndarray::s![..450, ..]);
    let fewer = Dense::new(half).unwrap();
    let larger = ndarray::concatenate![ndarray::Axis(0), points, points];
    let more = Dense::new(&larger).unwrap();
    let lazy = || algorithms::lazy_k_means(30, 0.1);
    let fit = lazy().build().unwrap().fit(&data).unwrap();
    for other in [&fewer, &more] {
        let result = fit.clone().relabel(other);
        assert!(matches!(result, Err(Error::LengthMismatch { .. })));
    }
    let coreset = lazy().coreset(Lightweight::new(200)).build().unwrap();
    let mut fit = coreset.fit(&data).unwrap();
    let result = fit.clone().relabel(&fewer);
    assert!(matches!(result, Err(Error::LengthMismatch { .. })));
    fit.relabel(&data).unwrap();
    let rows = &fit.coreset.as_ref().unwrap().rows;
    let all = fit.model.predict(&data).unwrap();
    assert!(
        rows.iter()
            .zip(&fit.search_labels)
            .all(|(n, label)| all[*n] == *label)
    );
}

/// A fit that is stopped at once, where the first phases of its list do not run: the first that does is its only one.
#[test]
fn a_stopped_fit_leaves_out_what_it_would_leave_out() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let after = || bounded(3).rows(PhaseRows::All).after_subspace();
    let inside = || bounded(3).columns(Columns::Principal(2));
    let lists: [(Vec<Phase<f64>>, usize); 5] = [
        (vec![after(), bounded(3)], 200),
        (vec![after(), after(), bounded(3).rows(PhaseRows::All)], 900),
        (
            vec![
                bounded(3).after_subspace(),
                bounded(3).rows(PhaseRows::Larger(Lightweight::new(220))),
            ],
            220,
        ),
        (
            vec![after(), Phase::new(Exhaustive::nearest()), bounded(3)],
            200,
        ),
        (vec![after(), inside(), bounded(3)], 0),
    ];
    for (list, rows) in lists {
        for stop in 0..3 {
            let list = list.clone();
            let fit = algorithms::k_means(5).coreset(Lightweight::new(200));
            let fit = fit
                .phases(move |_| list.clone())
                .restarts(2)
                .build()
                .unwrap();
            // While coresets are drawn, at the seeds, and at the first search.
            let stopped = fit.fit_observed(&data, |progress| match (progress, stop) {
                (Progress::Coreset { .. }, 0)
                | (Progress::Seeded { .. }, 1)
                | (Progress::Iteration { .. }, 2) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            });
            let report = stopped.unwrap().report;
            assert_eq!(report.stop, Stop::Observer);
            assert_eq!((report.phases.len(), report.iterations), (1, 0));
            assert!(
                rows == 0 || report.phases[0].rows == rows,
                "{:?}",
                report.phases
            );
        }
    }
}

/// Starts are those of the first phase that runs, or of phases before it that are left out.
#[test]
fn starts_belong_to_the_first_phase_that_runs() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let seeded = |coreset: usize, list: Vec<Phase<f64>>| {
        let (mut seeded, mut first) = (0, 0);
        let fit = algorithms::k_means(5).coreset(Lightweight::new(coreset));
        let fit = fit.phases(move |_| list.clone()).build().unwrap();
        let fit = fit.fit_observed(&data, |progress| {
            match progress {
                Progress::Seeded { .. } => seeded += 1,
                Progress::Iteration {
                    phase: 0,
                    iteration: 0,
                    ..
                } => first += 1,
                _ => (),
            }
            ControlFlow::Continue(())
        });
        let fit = fit.unwrap();
        // All of them went through the first phase, and the best is there.
        assert_eq!(first, seeded);
        (seeded, fit.report.phases.len())
    };
    let all = || bounded(5).rows(PhaseRows::All);
    let after = || all().after_subspace();
    for (coreset, list, expected) in [
        (200, vec![bounded(5).starts(4), all()], (4, 2)),
        // The coreset is all rows, and its phase is left out.
        (2_000, vec![bounded(5).starts(4), all()], (4, 1)),
        (2_000, vec![bounded(5).starts(2), all().starts(3)], (3, 1)),
        (
            2_000,
            vec![bounded(5).starts(3), bounded(5), all(), after()],
            (3, 1),
        ),
        (200, vec![bounded(5), all().starts(4)], (1, 2)),
        (200, vec![after(), bounded(5).starts(4)], (4, 1)),
        (200, vec![after().starts(4), bounded(5)], (4, 1)),
        (2_000, vec![after(), bounded(5).starts(4), all()], (4, 1)),
    ] {
        assert_eq!(seeded(coreset, list), expected);
    }
    // In a subspace the phase after it runs, as the first if it comes first.
    let inside = || bounded::<f64>(5).columns(Columns::Principal(2));
    assert_eq!(seeded(200, vec![inside().starts(3), after()]), (3, 2));
    assert_eq!(
        seeded(200, vec![after().starts(2), inside().starts(5)]),
        (2, 2)
    );
}
