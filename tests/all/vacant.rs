//! Components without mass (E54): where there is one variance for all, they get rows, as long as there are different ones.

use crate::common::{Stored, blobs, on, phases, rises_in_phases};
use coremix::data::Blocks;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Cancel, Float, algorithms};
use ndarray::{Array1, Array2, Axis, array, concatenate};
use proptest::prelude::*;
use std::ops::ControlFlow;

type Of<F> = fn(usize) -> Builder<F>;

fn error(fit: &Fit<GaussianMixture<f64>>, data: &Dense<'_, f64>) -> f64 {
    fit.model.quantization_error(data).unwrap()
}

fn far(k: usize, d: usize) -> Array2<f64> {
    Array2::from_shape_fn((k, d), |(c, j)| match (c, j) {
        (0, _) => 0.0,
        (_, 0) => 500.0 + c as f64,
        _ => 500.0,
    })
}

/// Width 1 in every kind of pass.
fn hard<F: Float>() -> Vec<(&'static str, Of<F>)> {
    let list = |k| algorithms::k_means(k).e_step(Bounded::default());
    vec![
        ("k-means", algorithms::k_means),
        ("lazy", |k| algorithms::lazy_k_means(k, 0.1)),
        ("coreset of all", |k| algorithms::lwcs_k_means(k, 1 << 20)),
        ("bounded", list),
        ("short lists", |k| {
            algorithms::k_means(k).e_step(Bounded::default().nearest_centres(2))
        }),
        ("streaming", |k| {
            algorithms::k_means(k).e_step(Bounded::default().streaming())
        }),
        ("fast", algorithms::fast),
        ("phases of fast", |k| {
            algorithms::fast(k).phases(phases(48, None, None, 3))
        }),
        ("neighborhood", |k| {
            algorithms::var_gmm_s(k, 1, 4).e_step(Neighborhood::new(1, 4).random(1))
        }),
        ("similarity", |k| algorithms::d_gmm(k, 1, 2)),
    ]
}

#[test]
fn a_far_centre_gets_rows() {
    let x = array![
        [0.0, 0.0],
        [0.0, 1.0],
        [10.0, 0.0],
        [10.0, 1.0],
        [0.0, 10.0],
        [0.0, 11.0]
    ];
    let start = array![[0.0, 0.0], [10.0, 0.0], [500.0, 500.0]];
    let data = Dense::new(x.view()).unwrap();
    for (name, algorithm) in hard() {
        let fit = algorithm(3).seeder(Given::new(start.view())).tolerance(0.0);
        let fit = fit.build().unwrap().fit(&data).unwrap();
        rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
        assert!(
            (error(&fit, &data) - 1.5).abs() < 1e-9,
            "{name}: {}",
            error(&fit, &data)
        );
        assert_eq!(fit.report.zero_mass, 0, "{name}");
        assert_eq!(fit.report.stop, Stop::Converged, "{name}");
    }
}

#[test]
fn copies_leave_centres_for_other_rows() {
    // Two of the seeds are copies, so one of five distinct rows has none.
    let x = array![
        [0.0, 0.0],
        [0.0, 0.0],
        [3.0, 1.0],
        [7.0, 2.0],
        [9.0, 9.0],
        [1.0, 8.0]
    ];
    let data = Dense::new(x.view()).unwrap();
    for (name, algorithm) in hard() {
        let start = x.select(Axis(0), &[0, 1, 2, 3, 4, 2]);
        let fit = algorithm(6).seeder(Given::new(start.view())).tolerance(0.0);
        let fit = fit.build().unwrap().fit(&data).unwrap();
        assert_eq!(error(&fit, &data), 0.0, "{name}");
        // Five distinct rows leave one of six components without any.
        // Where rows are not compared with all, copies may be in two.
        let most = usize::from(!matches!(name, "neighborhood" | "similarity"));
        assert!((most..=1).contains(&fit.report.zero_mass), "{name}");
        assert_eq!(fit.report.stop, Stop::Converged, "{name}");
    }
}

/// Blobs far from all initial centres but one.
#[test]
fn all_centres_but_one_may_be_far() {
    for (d, k, n) in [(1, 4, 60), (2, 8, 400), (5, 12, 900), (3, 40, 2_000)] {
        let x: Array2<f64> = blobs(n, d, k, 3);
        let data = Dense::new(x.view()).unwrap();
        let good = algorithms::k_means(k).seeder(KMeansPlusPlus::greedy());
        let good = good.build().unwrap().fit(&data).unwrap();
        for (name, algorithm) in hard() {
            let fit = algorithm(k).seeder(Given::new(far(k, d).view()));
            let fit = fit.build().unwrap().fit(&data).unwrap();
            rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
            assert_eq!(fit.report.zero_mass, 0, "{name} {d} {k}");
            let (found, best) = (error(&fit, &data), error(&good, &data));
            // Searches that compare few components end in worse optima.
            let within = match name {
                "neighborhood" | "similarity" | "short lists" => 40.0,
                _ => 3.0,
            };
            assert!(found <= within * best, "{name} {d} {k}: {found} {best}");
        }
    }
}

/// A weight counts as copies do, and rows of weight 0 are none.
#[test]
fn weights_count_as_copies() {
    let x = array![[0.0], [1.0], [2.0], [8.0], [8.5], [20.0], [1e3]];
    let w = array![1.0, 2.0, 1.0, 9.0, 1.0, 2.0, 0.0];
    let places: Vec<usize> = (0..7).flat_map(|i| vec![i; w[i] as usize]).collect();
    let copies = x.select(Axis(0), &places);
    let (weighted, copies) = (
        Dense::weighted(x.view(), w.view()).unwrap(),
        Dense::new(copies.view()).unwrap(),
    );
    for (name, algorithm) in hard().into_iter().take(7) {
        let start = array![[1.0], [5e3], [6e3]];
        let fit = |data: &Dense<'_, f64>| {
            let fit = algorithm(3).seeder(Given::new(start.view())).tolerance(0.0);
            fit.build().unwrap().fit(data).unwrap()
        };
        let (one, other) = (fit(&weighted), fit(&copies));
        assert_eq!(one.model.means(), other.model.means(), "{name}");
        assert_eq!(one.report.zero_mass, 0, "{name}");
        assert!(one.model.means().iter().all(|mean| *mean < 21.0), "{name}");
    }
}

#[test]
fn numbers_of_32_bits_at_an_offset() {
    let x: Array2<f32> = blobs(500, 3, 6, 5);
    let x = x.mapv(|x| x + 1e4);
    let data = Dense::new(x.view()).unwrap();
    for (name, algorithm) in hard() {
        let start =
            Array2::from_shape_fn((6, 3), |(c, _)| if c > 2 { -1e5 } else { 1e4 + c as f32 });
        let fit = algorithm(6).seeder(Given::new(start.view()));
        let fit = fit.build().unwrap().fit(&data).unwrap();
        rises_in_phases("vacant", &fit.report, 1.0, 1e-6);
        assert_eq!(fit.report.zero_mass, 0, "{name}");
    }
}

/// Rows that know some of their coordinates.
#[test]
fn sketches() {
    for q in [2, 3, 6] {
        let x: Array2<f64> = blobs(300, 6, 5, 8);
        let sketch = Sketch::new(x.view(), q, 2).unwrap();
        let start = Array2::from_shape_fn((5, 6), |(c, _)| if c > 0 { 1e4 } else { 0.0 });
        for e_step in [Exhaustive::nearest(), Exhaustive::truncated(2)] {
            let fit = algorithms::k_means(5).e_step(e_step);
            let fit = fit.seeder(Given::new(start.view())).build().unwrap();
            let fit = fit.fit(&sketch).unwrap();
            rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
            assert_eq!(fit.report.zero_mass, 0, "{q}");
        }
    }
}

/// Shared rows: whatever the width, no component is left where no row is.
#[test]
fn soft_supports() {
    let x: Array2<f64> = blobs(600, 2, 7, 4);
    let data = Dense::new(x.view()).unwrap();
    for width in [2, 3, 7] {
        let fit = algorithms::k_means_c_prime(7, width);
        let fit = fit.seeder(Given::new(far(7, 2).view()));
        let fit = fit.build().unwrap().fit(&data).unwrap();
        rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
        assert_eq!(fit.report.zero_mass, 0, "{width}");
        assert!(
            fit.model.means().iter().all(|mean| mean.abs() < 50.0),
            "{width}"
        );
    }
}

/// From a file, on any number of threads, and after a checkpoint: the bits of one fit.
#[test]
fn the_same_bits() {
    let x: Array2<f64> = blobs(9_000, 3, 12, 6);
    let data = Dense::new(x.view()).unwrap();
    let read = Blocks::new(Stored(x.clone())).unwrap();
    let folder = std::env::temp_dir().join(format!("coremix-vacant-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, algorithm) in hard() {
        let fit = |data: &(dyn Data<f64> + Sync), threads: usize| {
            let fit = algorithm(12).seeder(Given::new(far(12, 3).view()));
            let fit = fit.build().unwrap();
            on(threads, || fit.fit(data)).unwrap()
        };
        let one = fit(&data, 1);
        for other in [fit(&data, 3), fit(&read, 2)] {
            assert_eq!(one.model, other.model, "{name}");
            assert_eq!(
                one.report.free_energies, other.report.free_energies,
                "{name}"
            );
            assert_eq!(
                one.report.evaluations.search, other.report.evaluations.search,
                "{name}"
            );
        }
        for stop in [0, 1, 2, 5] {
            let checkpoint = Checkpoint::to(folder.join(name)).every_iterations(1);
            let to = |checkpoint: &Checkpoint| {
                let fit = algorithm(12).seeder(Given::new(far(12, 3).view()));
                fit.checkpoint(checkpoint).build().unwrap()
            };
            let mut left = stop;
            let stopped = to(&checkpoint).fit_observed(&data, |progress| {
                if matches!(progress, Progress::Iteration { .. }) {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                }
                ControlFlow::Continue(())
            });
            stopped.unwrap();
            let resumed = to(&checkpoint.resume()).fit(&data).unwrap();
            assert_eq!(one.model, resumed.model, "{name} {stop}");
            assert_eq!(one.search_labels, resumed.search_labels, "{name} {stop}");
            assert_eq!(
                one.report.free_energies, resumed.report.free_energies,
                "{name}"
            );
        }
    }
    std::fs::remove_dir_all(folder).ok();
}

/// From a model of which a centre is far from the new rows, restarts, and a coreset.
#[test]
fn other_places_to_start() {
    let x: Array2<f64> = blobs(1_000, 2, 6, 9);
    let away = x.slice(ndarray::s![..100, ..]).mapv(|x| x + 1e3);
    let both = concatenate![Axis(0), x, away];
    let (data, both) = (
        Dense::new(x.view()).unwrap(),
        Dense::new(both.view()).unwrap(),
    );
    let model = algorithms::fast(7)
        .build()
        .unwrap()
        .fit(&both)
        .unwrap()
        .model;
    for (name, algorithm) in hard() {
        let fit = algorithm(7)
            .start_from(&model)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
        assert_eq!(fit.report.zero_mass, 0, "{name}");
        let given = algorithm(6)
            .seeder(Given::new(far(6, 2).view()))
            .restarts(3);
        let fit = given.build().unwrap().fit(&data).unwrap();
        assert_eq!(
            (fit.report.zero_mass, fit.report.restarts.len()),
            (0, 3),
            "{name}"
        );
    }
    for size in [50, 300] {
        let fit = algorithms::lwcs_k_means(6, size).seeder(Given::new(far(6, 2).view()));
        let fit = fit.build().unwrap().fit(&data).unwrap();
        rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
        assert_eq!(fit.report.zero_mass, 0);
    }
}

/// Families that learn proportions discard such a component, and do not call it back.
#[test]
fn learned_proportions_discard() {
    let x: Array2<f64> = blobs(300, 2, 3, 4);
    let data = Dense::new(x.view()).unwrap();
    for kind in [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
        Covariance::Factors(1),
    ] {
        let fit = algorithms::gmm(3)
            .covariance(kind)
            .seeder(Given::new(far(3, 2).view()));
        let fit = fit.build().unwrap().fit(&data).unwrap();
        assert_eq!(fit.report.zero_mass, 2);
    }
}

/// A fit without such components evaluates nothing more, and one with them a distance per row each time.
#[test]
fn what_it_costs() {
    let x: Array2<f64> = blobs(700, 2, 5, 4);
    let data = Dense::new(x.view()).unwrap();
    let fit = |start: Array2<f64>| {
        let fit = algorithms::k_means(5).seeder(Given::new(start.view()));
        fit.build().unwrap().fit(&data).unwrap().report
    };
    let report = fit(x.select(Axis(0), &[0, 1, 2, 3, 4]));
    let searches = report.free_energies.len() as u64;
    assert_eq!(report.evaluations.search, searches * 700 * 5);
    let report = fit(far(5, 2));
    let searches = report.free_energies.len() as u64;
    assert_eq!(report.evaluations.search, searches * 700 * 5 + 700);
}

/// The limit of iterations holds, and a cancelled fit says what is true after its last search.
#[test]
fn the_number_is_that_of_the_last_search() {
    let x: Array2<f64> = blobs(700, 2, 5, 4);
    let data = Dense::new(x.view()).unwrap();
    for (name, algorithm) in hard() {
        for iterations in 0..6 {
            let cancel = Cancel::default();
            let fit = algorithm(5).seeder(Given::new(far(5, 2).view()));
            let fit = fit
                .max_iterations(iterations)
                .cancel(&cancel)
                .build()
                .unwrap();
            let fit = fit.fit_observed(&data, |progress| {
                if matches!(progress, Progress::Iteration { iteration: 3, .. }) {
                    cancel.cancel();
                }
                ControlFlow::Continue(())
            });
            let fit = fit.unwrap();
            let used = (0..5)
                .filter(|c| fit.search_labels.iter().any(|l| l == c))
                .count();
            assert_eq!(fit.report.zero_mass, 5 - used, "{name} {iterations}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// A hard clustering that has converged has rows for every component, as long as rows differ.
    #[test]
    fn no_component_is_left_without_rows(
        n in 1..60usize, d in 1..4usize, share in 0.0..1.0f64, values in 1..12usize, seed in 0..1_000_000u64,
    ) {
        let mut rng = Rng::from_seed(seed);
        let x = Array2::from_shape_fn((n, d), |_| rng.below(values) as f64);
        let w = Array1::from_shape_fn(n, |_| rng.below(4) as f64 + f64::from(u8::from(seed % 3 > 0)));
        prop_assume!(w.sum() > 0.0);
        let counted: Vec<_> = (0..n).filter(|i| w[*i] > 0.0).collect();
        let k = (1.0 + share * counted.len() as f64).min(counted.len() as f64) as usize;
        let mut rows: Vec<_> = counted.iter().map(|i| x.row(*i).iter().map(|v| *v as u64).collect::<Vec<_>>()).collect();
        rows.sort();
        rows.dedup();
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let start = Array2::from_shape_fn((k, d), |_| 3.0 * rng.below(30) as f64 - 40.0);
        for (name, algorithm) in hard() {
            let mut fit = algorithm(k).tolerance(1e-6).seed(seed);
            if seed % 2 == 0 {
                fit = fit.seeder(Given::new(start.view()));
            }
            let fit = fit.build().unwrap().fit(&data).unwrap();
            rises_in_phases("vacant", &fit.report, 1.0, 1e-9);
            if fit.report.stop == Stop::Converged {
                // Where rows are compared with some components alone, copies of a row may be in several.
                let most = k.saturating_sub(rows.len());
                let some = matches!(name, "neighborhood" | "similarity" | "short lists");
                let least = if some { 0 } else { most };
                prop_assert!((least..=most).contains(&fit.report.zero_mass), "{} {} of {}", name, fit.report.zero_mass, most);
            }
        }
    }
}
