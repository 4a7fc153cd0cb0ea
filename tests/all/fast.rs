//! `fast` with the phases that it has, at the sizes where these change. The laws of the list in `common.rs` are over
//! small data.

use crate::common::{
    blobs, close, distance, last, mean_of, rises_in_phases, rounding, same_mean, same_on_threads,
    seeds, shuffled,
};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::seed::Uniform;
use coremix::stage::Rng;
use coremix::{Float, algorithms};
use ndarray::{Array1, Array2, Axis};

/// Rows, columns and clusters, and the phases that `fast` has for them: on which rows, and in how many columns.
struct Case {
    shape: (usize, usize, usize),
    phases: &'static [(&'static str, usize)],
}

const CASES: [Case; 4] = [
    // Fewer rows than the coreset has.
    Case {
        shape: (3_000, 3, 20),
        phases: &[("all rows", 3)],
    },
    // Several starts, and a larger coreset.
    Case {
        shape: (135_000, 2, 4),
        phases: &[("the coreset", 2), ("a larger coreset", 2), ("all rows", 2)],
    },
    // A subspace.
    Case {
        shape: (12_000, 16, 20),
        phases: &[("the coreset", 8), ("all rows", 8), ("all rows", 16)],
    },
    // With this many clusters the tolerance is another one.
    Case {
        shape: (12_000, 2, 150),
        phases: &[("the coreset", 2), ("all rows", 2)],
    },
];

impl Case {
    fn points<F: Float>(&self) -> (Array2<F>, Array1<f64>) {
        let (n, d, k) = self.shape;
        let weights = Array1::from_shape_fn(n, |n| 0.5 + (n % 3) as f64);
        let mut points = blobs::<F>(n, d, k, 31);
        // Most of the variance is in six columns: a subspace is worth its while.
        for mut column in points.columns_mut().into_iter().skip(6) {
            column.mapv_inplace(|x| F::from_f64(0.05 * x.to_f64()));
        }
        (points, weights)
    }

    fn fit<F: Float>(&self, data: &Dense<'_, F>) -> Fit<GaussianMixture<F>> {
        let fit = algorithms::fast(self.shape.2).seed(2).build().unwrap();
        let fit = fit.fit(data).unwrap();
        let ran = fit.report.phases.iter();
        let ran: Vec<_> = ran.map(|p| (p.ran_on.to_string(), p.columns)).collect();
        let expected = self.phases.iter().map(|(rows, d)| (rows.to_string(), *d));
        assert_eq!(ran, expected.collect::<Vec<_>>(), "{:?}", self.shape);
        fit
    }
}

#[test]
fn threads_do_not_matter() {
    for case in &CASES {
        let (x, w) = case.points::<f32>();
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        same_on_threads(format!("{:?}", case.shape), &[2, 3, 7], || {
            let fit = case.fit(&data);
            let energies = fit.report.phases.iter().flat_map(|p| &p.free_energies);
            let energies: Vec<u64> = energies.map(|f| f.to_bits()).collect();
            let work = fit.report.evaluations;
            (fit.model, energies, fit.search_labels, fit.supports, work)
        });
    }
}

fn never_falls<F: Float>() {
    for case in &CASES {
        let (x, w) = case.points::<F>();
        let fit = case.fit(&Dense::weighted(x.view(), w.view()).unwrap());
        let what = format!("{:?}", case.shape);
        rises_in_phases(what, &fit.report, w.sum(), rounding::<F>());
    }
}

#[test]
fn the_free_energy_never_falls() {
    never_falls::<f32>();
    never_falls::<f64>();
}

/// Points, weights of them, and as many copies in another order, with the row of each.
fn copies(n: usize, d: usize, k: usize) -> (Array2<f64>, Array1<f64>, Array2<f64>, Vec<usize>) {
    let x = blobs::<f64>(n, d, k, 32);
    let weights: Vec<usize> = (0..n).map(|n| [1, 0, 3, 2][n % 4]).collect();
    let rows: Vec<usize> = (0..n).flat_map(|n| vec![n; weights[n]]).collect();
    let order = shuffled(rows.len(), 33);
    let rows: Vec<usize> = order.iter().map(|i| rows[*i]).collect();
    let copies = x.select(Axis(0), &rows);
    let weights = weights.iter().map(|w| *w as f64).collect();
    (x, weights, copies, rows)
}

/// Without a coreset and without moves, which two clusters do not have, nothing is drawn but the seeds.
#[test]
fn a_weight_is_so_many_copies() {
    for (n, d) in [(1_500, 3), (4_000, 16)] {
        let (x, w, copies, rows) = copies(n, d, 2);
        let weighted = Dense::weighted(x.view(), w.view()).unwrap();
        let copied = Dense::new(copies.view()).unwrap();
        let start = seeds(&x, 2, 3);
        let fit = |data: &Dense<'_, f64>| {
            let fast = algorithms::fast(2).seeder(Given::new(start.view()));
            let fast = fast.tolerance(0.0).max_iterations(4).build();
            fast.unwrap().fit(data).unwrap()
        };
        let (a, b) = (fit(&weighted), fit(&copied));
        let (means, others) = (a.model.means().to_owned(), b.model.means().to_owned());
        assert!(distance(&means, &others) < 1e-8, "{n} x {d}");
        assert!(close(a.model.variance(), b.model.variance(), 1e-8));
        assert!(close(last(&a), last(&b), 1e-8));
        for (row, label) in rows.iter().zip(&b.search_labels) {
            assert_eq!(a.search_labels[*row], *label, "{n} x {d}");
        }
    }
}

/// With seeds and moves that are drawn, the same in distribution.
#[test]
fn copies_in_distribution() {
    let (x, w, copies, _) = copies(500, 2, 12);
    let weighted = Dense::weighted(x.view(), w.view()).unwrap();
    let copied = Dense::new(copies.view()).unwrap();
    let errors = |data: &Dense<'_, f64>, from: u64| {
        mean_of(from..from + 200, |seed| {
            let fit = algorithms::fast(16).seed(seed).build().unwrap();
            let model = fit.fit(data).unwrap().model;
            model.quantization_error(&weighted).unwrap()
        })
    };
    same_mean("fast", errors(&weighted, 0), errors(&copied, 1_000), 0.0);
}

/// A perfect solution: nothing moves, so nothing remains to be gained.
#[test]
fn rows_of_few_values_converge() {
    let two = Array2::from_shape_fn((200, 1), |(n, _)| (n % 2) as f64);
    let three = Array2::from_shape_fn((90, 2), |(n, j)| (n % 3 * (j + 1)) as f64);
    for (x, k) in [(&two, 2), (&three, 3), (&three, 5)] {
        let data = Dense::new(x.view()).unwrap();
        let fit = algorithms::fast(k).build().unwrap().fit(&data).unwrap();
        assert_eq!(fit.report.stop, Stop::Converged, "{k}: {}", fit.report);
        assert!(fit.report.iterations < 12, "{k}: {}", fit.report);
    }
}

/// Rows of weight 0 are absent: a coreset of as many rows as count is all rows, and phases follow the number that counts.
#[test]
fn rows_without_weight_do_not_count() {
    let x = Array2::from_shape_fn((100, 1), |(n, _)| (n * n % 97) as f64);
    let w = Array1::from_shape_fn(100, |n| if n % 10 == 3 { 1.0 } else { 0.0 });
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let (told, tell) = std::sync::mpsc::channel();
    let builder = algorithms::k_means(4).phases(move |shape| {
        told.send(shape.rows).unwrap();
        vec![Phase::new(Bounded::default())]
    });
    let drawn = |size| {
        let lightweight = algorithms::k_means(4).coreset(Lightweight::new(size));
        let uniform = algorithms::k_means(4).coreset(UniformCoreset::new(size));
        [lightweight, uniform].map(|b| b.build().unwrap().fit(&data).unwrap().coreset)
    };
    assert_eq!(drawn(10), [None, None]);
    assert_eq!(drawn(20), [None, None]);
    for fewer in drawn(9) {
        assert_eq!(fewer.unwrap().rows.len(), 9);
    }
    builder.build().unwrap().fit(&data).unwrap();
    assert_eq!(tell.try_iter().last(), Some(10));
}

/// Rows in many columns without clusters. Seeds find nothing in them, and the coreset has few rows for each cluster.
fn noise(n: usize) -> Array2<f32> {
    let mut rng = Rng::from_seed(41);
    Array2::from_shape_fn((n, 136), |_| rng.normal() as f32)
}

#[test]
fn begins_at_random_rows_where_these_are_as_good_as_seeds() {
    let noise = noise(9_500);
    let rows = |x: &Array2<f32>, builder: coremix::Builder<f32>| {
        let fit = builder.tolerance(1e-2).build().unwrap();
        let fit = fit.fit(&Dense::new(x.view()).unwrap()).unwrap();
        rises_in_phases("noise", &fit.report, x.nrows() as f64, rounding::<f32>());
        let rows: Vec<usize> = fit.report.phases.iter().map(|p| p.rows).collect();
        (rows.len(), rows[0] == x.nrows())
    };
    assert_eq!(rows(&noise, algorithms::fast(150)), (1, true));
    // Few clusters, or seeds that somebody gave.
    assert_eq!(rows(&noise, algorithms::fast(100)), (2, false));
    let given = Given::new(noise.slice(ndarray::s![..150, ..]));
    let with_given = algorithms::fast(150).seeder(given);
    assert_eq!(rows(&noise, with_given), (2, false));
    // Few rows far out, of which random rows know nothing; and clusters.
    let mut far = noise.clone();
    let outer = far.rows_mut().into_iter().step_by(1_000);
    outer.for_each(|mut row| row.mapv_inplace(|x| 1e4 * x));
    assert_eq!(rows(&far, algorithms::fast(150)), (2, false));
    let centres = blobs::<f32>(150, 136, 150, 42);
    let clusters = Array2::from_shape_fn(noise.dim(), |(n, j)| {
        noise[[n, j]] + 3.0 * centres[[n % 150, j]]
    });
    assert!(!rows(&clusters, algorithms::fast(150)).1);
    // Threads do not matter.
    same_on_threads("noise", &[2, 3, 7], || {
        let fit = algorithms::fast(150).max_iterations(6).build().unwrap();
        let fit = fit.fit(&Dense::new(noise.view()).unwrap()).unwrap();
        (fit.model, fit.search_labels, fit.report.evaluations)
    });
}

/// A phase on a coreset of 25 rows for each of 24 clusters, one on a larger coreset, and one on all rows.
fn phases(anew: bool) -> Vec<Phase<f32>> {
    let phase = |rows| Phase::new(Bounded::default()).rows(rows);
    let first = phase(PhaseRows::Coreset);
    vec![
        if anew {
            first.unless_random_rows_do()
        } else {
            first
        },
        phase(PhaseRows::Larger(Lightweight::new(2_400))),
        phase(PhaseRows::All),
    ]
}

#[test]
fn begins_anew_where_a_coreset_found_nothing() {
    let noise = noise(12_000).slice_move(ndarray::s![.., ..20]);
    let centres = blobs::<f32>(24, 20, 24, 42);
    let clusters = Array2::from_shape_fn(noise.dim(), |(n, j)| {
        noise[[n, j]] + 0.6 * centres[[n % 24, j]]
    });
    let fit = |x: &Array2<f32>, anew: bool, seed: u64| {
        let builder = algorithms::fast(24).coreset(Lightweight::new(600));
        let builder = builder.phases(move |_| phases(anew)).seed(seed);
        let data = Dense::new(x.view()).unwrap();
        let fit = builder.build().unwrap().fit(&data).unwrap();
        rises_in_phases("anew", &fit.report, x.nrows() as f64, rounding::<f32>());
        let rows: Vec<usize> = fit.report.phases.iter().map(|p| p.rows).collect();
        (rows, fit.model.quantization_error(&data).unwrap())
    };
    let (mut begun, mut gone_on) = (0.0, 0.0);
    for seed in 0..4 {
        let (rows, error) = fit(&noise, true, seed);
        assert_eq!(rows, [600, 12_000]);
        begun += error;
        gone_on += fit(&noise, false, seed).1;
        assert_eq!(fit(&clusters, true, seed).0, [600, 2_400, 12_000]);
    }
    assert!(begun < gone_on, "{begun} {gone_on}");
}

/// A larger tolerance does less, also where few iterations are left.
#[test]
fn a_larger_tolerance_costs_less() {
    let mut overlapping = blobs::<f32>(12_000, 8, 60, 43);
    let mut rng = Rng::from_seed(44);
    overlapping.mapv_inplace(|x| x + 4.0 * rng.normal() as f32);
    for (x, k) in [(noise(12_000), 150), (overlapping, 100)] {
        let data = Dense::new(x.view()).unwrap();
        let spent = [1e-4, 1e-3, 1e-2, 1e-1].map(|tolerance| {
            let fit = algorithms::fast(k).tolerance(tolerance);
            fit.build().unwrap().fit(&data).unwrap().report
        });
        let spent = spent.map(|report| report.distance_evaluations);
        assert!(spent.is_sorted_by(|a, b| a > b), "{k}: {spent:?}");
    }
}

/// Rows whose nearest centre is not on their list are searched over all centres as soon as iterations gain less. At the end of
/// the phase alone it is 1.3 % above exact searches, for half of their evaluations.
#[test]
fn what_lists_miss_is_found_early() {
    let x = noise(20_000);
    let data = Dense::new(x.view()).unwrap();
    let fits = |near: usize| {
        let fits = (0..8).map(|seed| {
            let phase = Phase::new(Bounded::default().nearest_centres(near)).rows(PhaseRows::All);
            let fit = algorithms::fast(150).coreset(Full).seeder(Uniform);
            let fit = fit.phases(move |_| vec![phase.clone()]).seed(seed);
            let fit = fit.build().unwrap().fit(&data).unwrap();
            let error = fit.model.quantization_error(&data).unwrap();
            (error, fit.report.distance_evaluations as f64)
        });
        fits.fold((0.0, 0.0), |sum, fit| (sum.0 + fit.0, sum.1 + fit.1))
    };
    let (listed, exact) = (fits(16), fits(150));
    assert!(listed.0 < 1.0105 * exact.0, "{}", listed.0 / exact.0);
    assert!(listed.1 < 0.35 * exact.1, "{}", listed.1 / exact.1);
}

/// The quantization errors of `fast` and of the best of three k-means, with F that rises in all phases of `fast`.
fn beside_k_means(data: &dyn Data<f64>, clusters: usize, seed: u64) -> [f64; 2] {
    let error = |builder: Builder<f64>| {
        let fit = builder.seed(seed).build().unwrap().fit(data).unwrap();
        rises_in_phases("ragged", &fit.report, data.len() as f64, rounding::<f64>());
        fit.model.quantization_error(data).unwrap()
    };
    let three = algorithms::k_means(clusters).restarts(3);
    [algorithms::fast(clusters), three].map(error)
}

fn no_worse(errors: &[[f64; 2]], most: f64) {
    let all = |i: usize| errors.iter().map(|errors| errors[i]).sum::<f64>();
    assert!(all(0) <= most * all(1), "{errors:?}");
    for [fast, three] in errors {
        assert!(*fast <= 1.005 * three, "{errors:?}");
    }
}

/// Centres that share a cluster, or two clusters, are moved where values are missing, too.
#[test]
fn missing_values_do_not_keep_centres_where_they_are() {
    for missing in [0.1, 0.3] {
        let errors = (0..6).map(|seed| {
            let (n, d, k) = (3_000, 8, 12);
            let (mut x, mut rng) = (blobs::<f64>(n, d, k, seed), Rng::from_seed(seed));
            x.mapv_inplace(|x| if rng.uniform() < missing { f64::NAN } else { x });
            beside_k_means(&Dense::with_missing(&x).unwrap(), k, seed)
        });
        no_worse(&errors.collect::<Vec<_>>(), 0.97);
    }
}

/// Rows of words, two thirds of them of a topic: of length 1.
#[test]
fn sparse_rows_leave_local_optima() {
    let (n, d, k) = (3_000, 600, 15);
    let errors = (0..6).map(|seed| {
        let mut rng = Rng::from_seed(seed);
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..n {
            let mut words: Vec<u32> = (0..30)
                .map(|word| match word % 3 {
                    0 => (rng.uniform().powi(3) * d as f64) as u32,
                    _ => (row % k * 40 + rng.below(40)) as u32,
                })
                .collect();
            words.sort_unstable();
            words.dedup();
            values.extend(words.iter().map(|_| (words.len() as f64).sqrt().recip()));
            columns.extend(words);
            starts.push(columns.len());
        }
        let data = Sparse::new(d, starts, columns, values).unwrap();
        same_on_threads("sparse rows", &[2], || {
            let fit = algorithms::fast::<f64>(k).build().unwrap().fit(&data);
            fit.unwrap().model
        });
        beside_k_means(&data, k, seed)
    });
    no_worse(&errors.collect::<Vec<_>>(), 0.99);
}
