//! Cancelling: a fit ends within a few blocks of rows, with what its last complete search found.

use crate::common::{on, phases, with_starts};
use coremix::data::{Frame, Rows, Summary};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Algorithm, Cancel};
use ndarray::{Array2, Axis, s};
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows in memory that count how many of them are loaded, and cancel at one of these.
pub(crate) struct Counting<'a> {
    inner: Dense<'a, f64>,
    pub(crate) loaded: Arc<AtomicUsize>,
    at: usize,
    pub(crate) cancel: Cancel,
}

impl<'a> Counting<'a> {
    pub(crate) fn new(points: &'a Array2<f64>, at: usize) -> Self {
        Self {
            inner: Dense::new(points).unwrap(),
            loaded: Arc::default(),
            at,
            cancel: Cancel::default(),
        }
    }

    fn count(&self, rows: usize) {
        let before = self.loaded.fetch_add(rows, Ordering::Relaxed);
        if (before..before + rows).contains(&self.at) {
            self.cancel.cancel();
        }
    }
}

impl Data<f64> for Counting<'_> {
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn dim(&self) -> usize {
        self.inner.dim()
    }
    fn weights(&self) -> Option<&[f64]> {
        self.inner.weights()
    }
    fn summary(&self) -> &Summary {
        self.inner.summary()
    }
    fn load(&self, rows: Range<usize>, frame: &Frame<f64>, into: &mut Rows<f64>) -> Result<()> {
        self.count(rows.len());
        self.inner.load(rows, frame, into)
    }
    fn gather(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Rows<f64>) -> Result<()> {
        self.count(rows.len());
        self.inner.gather(rows, frame, into)
    }
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<f64> + '_>> {
        let values = self.inner.points().select(Axis(0), rows);
        Ok(Box::new(Counting {
            inner: Dense::part_of(self.summary(), values, weights)?,
            loaded: self.loaded.clone(),
            at: self.at,
            cancel: self.cancel.clone(),
        }))
    }
}

fn points() -> Array2<f64> {
    Array2::from_shape_fn((6_000, 3), |(n, j)| {
        let noise = ((n * 7_919 + j * 104_729) % 1_009) as f64 / 1_009.0;
        (n % 24 * (j + 2) % 7) as f64 + noise
    })
}

/// Rows that a thread may still read after the flag: a task that has begun is finished, and the longest task is that of a pass
/// that only reads.
const LONGEST_TASK: usize = 4_096;

fn algorithm(name: &str) -> Algorithm {
    let algorithm = name.parse::<Algorithm>().unwrap().clusters(24);
    let algorithm = algorithm.coreset(600).restarts(2);
    algorithm.max_iterations(8).tolerance(0.0)
}

/// Bit for bit the fit that an observer stops after the same search, and next to nothing is loaded any more.
#[test]
fn the_last_complete_search_counts() {
    let points = points();
    for name in Algorithm::NAMES {
        let whole = Counting::new(&points, usize::MAX);
        let boxed = algorithm(name).boxed().unwrap();
        on(1, || boxed.fit(&whole)).unwrap();
        let loaded = whole.loaded.load(Ordering::Relaxed);
        let (mut with, mut without) = (0, 0);
        for part in 0..13 {
            let data = Counting::new(&points, loaded * part / 13);
            let boxed = algorithm(name).cancel(&data.cancel).boxed().unwrap();
            let mut searches = 0;
            let found = on(1, || {
                boxed.fit_observed(&data, &mut |progress| {
                    searches += usize::from(matches!(progress, Progress::Iteration { .. }));
                    ControlFlow::Continue(())
                })
            });
            let after = data.loaded.load(Ordering::Relaxed) - data.at - 1;
            assert!(after <= LONGEST_TASK, "{name}: {after} rows after the flag");
            let Ok(found) = found else {
                assert_eq!(found.unwrap_err(), Error::Cancelled, "{name}");
                without += 1;
                continue;
            };
            with += 1;
            assert_eq!(found.report.stop, Stop::Cancelled, "{name}");
            let left = Cell::new(searches);
            let boxed = algorithm(name).boxed().unwrap();
            let stopped = boxed.fit_observed(&data.inner, &mut |progress| {
                if matches!(progress, Progress::Iteration { .. }) {
                    left.set(left.get() - 1);
                }
                match left.get() {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            });
            let stopped = stopped.unwrap();
            assert_eq!(found.report.restart, stopped.report.restart, "{name}");
            assert_eq!(
                found.report.free_energies, stopped.report.free_energies,
                "{name}"
            );
            assert_eq!(found.search_labels, stopped.search_labels, "{name}");
            assert_eq!(found.supports, stopped.supports, "{name}");
            assert_eq!(found.exact, stopped.exact, "{name}");
            assert_eq!(found.model.means(), stopped.model.means(), "{name}");
            assert_eq!(found.coreset.is_some(), stopped.coreset.is_some(), "{name}");
        }
        assert!(with > 0 && without > 0, "{name}: {with} and {without}");
    }
}

/// On several threads each finishes its task, and begins no other: with restarts one after the other, and at the same time.
#[test]
fn each_thread_ends_soon() {
    let points = points();
    for name in Algorithm::NAMES {
        for restarts in [1, 7] {
            let fit = |data: &Counting<'_>, threads| {
                let algorithm = algorithm(name).restarts(restarts);
                let boxed = algorithm.cancel(&data.cancel).boxed().unwrap();
                on(threads, || boxed.fit(data).map(|fit| fit.report.stop))
            };
            let whole = Counting::new(&points, usize::MAX);
            fit(&whole, 3).unwrap();
            let loaded = whole.loaded.load(Ordering::Relaxed);
            for (part, threads) in [2, 3, 7, 2, 3, 7].into_iter().enumerate() {
                let data = Counting::new(&points, loaded * part / 6);
                let stop = fit(&data, threads);
                let cancelled = matches!(stop, Ok(Stop::Cancelled) | Err(Error::Cancelled));
                assert!(cancelled, "{name}: {stop:?}");
                let after = data.loaded.load(Ordering::Relaxed) - data.at - 1;
                assert!(
                    after <= threads * LONGEST_TASK,
                    "{name}, {restarts} restarts: {after} rows after the flag on {threads} threads"
                );
            }
        }
    }
}

/// Rows of many columns come in small blocks while principal directions are looked for, and the flag is looked at before each.
#[test]
fn many_columns_do_not_keep_a_fit_from_ending() {
    let points = Array2::from_shape_fn((600, 4_000), |(n, j)| ((n + 1) * (j + 3) % 101) as f64);
    for at in [0, 700] {
        let data = Counting::new(&points, at);
        let seeds = points.slice(s![..3, ..]);
        let k_means = algorithms::k_means(3).seeder(Given::new(seeds));
        let k_means = k_means.phases(phases(3, None, Some(2), 0));
        let k_means = k_means.cancel(&data.cancel).build().unwrap();
        let fit = on(1, || k_means.fit(&data).map(|_| ()));
        assert_eq!(fit.unwrap_err(), Error::Cancelled);
        let after = data.loaded.load(Ordering::Relaxed) - at;
        assert!(4_000 * after <= 1 << 20, "{after} rows after the flag");
    }
}

/// A flag that is never set changes nothing.
#[test]
fn a_flag_alone_changes_nothing() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    for name in Algorithm::NAMES {
        let without = algorithm(name).boxed().unwrap().fit(&data).unwrap();
        let with = algorithm(name).cancel(&Cancel::default()).boxed().unwrap();
        let with = with.fit(&data).unwrap();
        assert_eq!(
            with.report.free_energies, without.report.free_energies,
            "{name}"
        );
        assert_eq!(with.search_labels, without.search_labels, "{name}");
        assert_eq!(with.report.stop, without.report.stop, "{name}");
    }
}

/// From the observer itself: the search it was shown is the last one.
#[test]
fn the_observer_may_cancel() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let cancel = Cancel::default();
    let fit = algorithms::k_means(24)
        .tolerance(0.0)
        .cancel(&cancel)
        .build();
    let fit = fit.unwrap().fit_observed(&data, |progress| {
        if matches!(progress, Progress::Iteration { iteration: 2, .. }) {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    });
    let fit = fit.unwrap();
    assert_eq!(
        (fit.report.stop, fit.report.iterations),
        (Stop::Cancelled, 2)
    );
    assert_eq!(fit.search_labels, fit.model.predict(&data).unwrap());
}

/// A cancelled restart is worth less than a finished one.
#[test]
fn finished_restarts_are_kept() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let cancel = Cancel::default();
    let k_means = algorithms::k_means(24).restarts(3).cancel(&cancel);
    let first = algorithms::k_means(24).build().unwrap().fit(&data).unwrap();
    let fit = k_means.build().unwrap().fit_observed(&data, |progress| {
        if matches!(progress, Progress::Seeded { restart: 1, .. }) {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    });
    let fit = fit.unwrap();
    assert_eq!((fit.report.restart, fit.report.stop), (0, Stop::Cancelled));
    assert_eq!(fit.search_labels, first.search_labels);
}

/// In the middle of a later start, the best of those before it is what a cancelled fit returns, unless the later one is better.
#[test]
fn a_worse_start_is_not_returned() {
    let mut rng = Rng::from_seed(4);
    // Two good pairs of clusters, of which one is better.
    let corner = |n: usize, j: usize| if j == 0 { n % 2 * 10 } else { n / 2 % 2 * 9 } as f64;
    let points = Array2::from_shape_fn((4_000, 2), |(n, j)| corner(n, j) + 0.1 * rng.normal());
    let data = Dense::new(&points).unwrap();
    let (mut worse, mut better) = (0, 0);
    for seed in 0..30 {
        let cancel = Cancel::default();
        let fast = algorithms::fast(2)
            .coreset(Lightweight::new(200))
            .phases(with_starts(10, phases(48, None, None, 0)))
            .max_iterations(12)
            .seed(seed)
            .cancel(&cancel);
        // The free energies of the last searches of the starts, the one that is cancelled after its first search the last.
        let mut last = Vec::new();
        let fit = fast.build().unwrap().fit_observed(&data, |progress| {
            if let Progress::Iteration {
                iteration,
                free_energy,
                ..
            } = progress
            {
                if *iteration == 0 {
                    last.push(f64::NEG_INFINITY);
                }
                *last.last_mut().unwrap() = *free_energy;
                if last.len() == 4 {
                    cancel.cancel();
                }
            }
            ControlFlow::Continue(())
        });
        let report = fit.unwrap().report;
        assert_eq!(report.stop, Stop::Cancelled, "{last:?}");
        let (own, others) = last.split_last().unwrap();
        let others = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The first of starts that differ by rounding stays.
        let returned = report.free_energies.last().copied().unwrap();
        assert!(last.contains(&returned), "{seed}: {last:?}");
        let lost = own.max(others) - returned;
        assert!(lost <= returned.abs() * 2f64.powi(-40), "{seed}: {last:?}");
        worse += usize::from(*own < others);
        better += usize::from(*own > others);
    }
    assert!(worse > 3, "{worse} {better}");
}

/// The work of a cancelled fit is counted, and only once.
#[test]
fn what_was_done_is_counted() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    for name in ["k-means", "fast", "vc-gmm"] {
        let cancel = Cancel::default();
        let algorithm = algorithm(name).restarts(1).cancel(&cancel);
        let fit = algorithm
            .boxed()
            .unwrap()
            .fit_observed(&data, &mut |progress| {
                if matches!(progress, Progress::Iteration { iteration: 3, .. }) {
                    cancel.cancel();
                }
                ControlFlow::Continue(())
            });
        let report = fit.unwrap().report;
        let of_phases: u64 = report.phases.iter().map(|phase| phase.evaluations).sum();
        assert!(of_phases > 0, "{name}");
        assert!(report.evaluations.search >= of_phases, "{name}");
    }
}

/// A thread that waits inside a fit may work for others: the flag of the fit is none of theirs.
#[test]
fn other_work_goes_on() {
    use rayon::prelude::*;
    let points = points();
    let data = Dense::new(&points).unwrap();
    let model = algorithms::k_means(24)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    let labels = model.predict(&data).unwrap();
    (0..48).into_par_iter().for_each(|i| {
        let cancel = Cancel::after(std::time::Duration::from_micros(200 * (i % 16)));
        let fit = algorithms::k_means(60)
            .seed(i)
            .tolerance(0.0)
            .cancel(&cancel);
        match fit.build().unwrap().fit(&data) {
            Ok(_) | Err(Error::Cancelled) => (),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(model.predict(&data).unwrap(), labels);
    });
}

/// A fit that has left out starts, or was cut short in one that is not returned, was cancelled; after the last one it was not.
#[test]
fn starts_that_are_left_out_are_no_convergence() {
    let mut rng = Rng::from_seed(4);
    let corner = |n: usize, j: usize| if j == 0 { n % 2 * 10 } else { n / 2 % 2 * 9 } as f64;
    let points = Array2::from_shape_fn((4_000, 2), |(n, j)| corner(n, j) + 0.1 * rng.normal());
    let data = Dense::new(&points).unwrap();
    let fit = |cancel: &Cancel, starts: usize, restarts: usize| {
        let list = move |_| vec![Phase::new(Bounded::default()).starts(starts)];
        let fit = algorithms::k_means(2).phases(list).cancel(cancel);
        fit.restarts(restarts).build().unwrap()
    };
    for (starts, restarts) in [(4, 1), (2, 1), (3, 2), (1, 2)] {
        // Every search in turn is the last.
        let mut searches = 0;
        let whole = fit(&Cancel::default(), starts, restarts).fit_observed(&data, |progress| {
            searches += usize::from(matches!(progress, Progress::Iteration { .. }));
            ControlFlow::Continue(())
        });
        let whole = whole.unwrap().report;
        assert_eq!(whole.stop, Stop::Converged);
        for stop in 1..=searches {
            let (cancel, mut seen) = (Cancel::default(), 0);
            let found = fit(&cancel, starts, restarts).fit_observed(&data, |progress| {
                seen += usize::from(matches!(progress, Progress::Iteration { .. }));
                if seen == stop {
                    cancel.cancel();
                }
                ControlFlow::Continue(())
            });
            let found = found.unwrap().report;
            // The flag is seen with the search: also after the last one there is something that says so.
            let expected = Stop::Cancelled;
            assert_eq!(
                found.stop, expected,
                "{starts} {restarts}: {stop} of {searches}"
            );
            assert_eq!(seen, stop, "{starts} {restarts}");
        }
        // After all was done, it is what it was.
        let cancel = Cancel::default();
        let late = fit(&cancel, starts, restarts).fit(&data).unwrap().report;
        cancel.cancel();
        assert_eq!(
            (late.stop, late.free_energies),
            (whole.stop, whole.free_energies)
        );
    }
}

/// Between two starts, while rows are loaded for the next: the best so far is returned, as cancelled.
#[test]
fn starts_that_ended_are_kept() {
    let points = points();
    for restarts in [1, 2] {
        for e_step in [Bounded::default(), Bounded::default().streaming()] {
            let fit = |data: &Counting<'_>| {
                let list = move |_| vec![Phase::new(e_step).starts(3)];
                let fit = algorithms::k_means(24).phases(list).restarts(restarts);
                let fit = fit.max_iterations(4).tolerance(0.0).cancel(&data.cancel);
                let (mut seeded, mut searches) = (0, 0);
                let found = on(1, || {
                    fit.build().unwrap().fit_observed(data, |progress| {
                        match progress {
                            Progress::Seeded { .. } => seeded += 1,
                            Progress::Iteration { .. } => searches += 1,
                            _ => (),
                        }
                        ControlFlow::Continue(())
                    })
                });
                (found, seeded, searches)
            };
            let whole = Counting::new(&points, usize::MAX);
            let (best, _, all) = fit(&whole);
            assert_eq!(best.unwrap().report.stop, Stop::MaxIterations);
            let loaded = whole.loaded.load(Ordering::Relaxed);
            let mut kept = 0;
            for part in 0..200 {
                let data = Counting::new(&points, loaded * part / 200);
                let (found, seeded, searches) = fit(&data);
                match found {
                    Err(error) => {
                        assert_eq!(error, Error::Cancelled);
                        assert_eq!(searches, 0, "{seeded} seeded: what was found is lost");
                    }
                    Ok(found) => {
                        assert_eq!(found.report.stop, Stop::Cancelled, "{searches} of {all}");
                        kept += 1;
                    }
                }
            }
            assert!(kept > 10, "{kept}");
        }
    }
}

/// Restarts at the same time, of which some have left out starts.
#[test]
fn restarts_beside_each_other_say_so_too() {
    let points = points();
    let data = Dense::new(&points).unwrap();
    let fit = |cancel: &Cancel| {
        let list = |_| vec![Phase::new(Bounded::default()).starts(8)];
        let fit = algorithms::k_means(8)
            .phases(list)
            .restarts(7)
            .cancel(cancel);
        on(2, || fit.build().unwrap().fit(&data))
    };
    let whole = fit(&Cancel::default()).unwrap().report;
    for micros in (0..40).map(|i| 500 * i) {
        let cancel = Cancel::after(std::time::Duration::from_micros(micros));
        match fit(&cancel) {
            Err(error) => assert_eq!(error, Error::Cancelled),
            // With all that was to be done, or cancelled.
            Ok(found) if found.report.stop != Stop::Cancelled => {
                assert_eq!(found.report.evaluations, whole.evaluations);
            }
            Ok(_) => (),
        }
    }
}
