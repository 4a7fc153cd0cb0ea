//! The bounded search against Lloyd's algorithm in ten lines, the moves where Lloyd's algorithm is stuck, and the phases.

use crate::common::{
    blobs, on, phases, rises, rises_in_phases, rounding, seeds, squared_distance, with_starts,
};
use crate::quality::Numbers;
use approx::assert_abs_diff_eq;
use coremix::data::View;
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::{Rng, Shape, Stage};
use coremix::{Element, Float, algorithms};
use ndarray::{Array1, Array2, Axis, array};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nearest centres, lowest index first.
fn nearest(x: &Array2<f64>, centres: &Array2<f64>) -> Vec<u32> {
    let label = |n: usize| {
        let d2 = |c: usize| squared_distance(x.row(n), centres.row(c));
        (0..centres.nrows())
            .min_by(|&a, &b| d2(a).total_cmp(&d2(b)))
            .unwrap() as u32
    };
    (0..x.nrows()).map(label).collect()
}

fn lloyd(
    x: &Array2<f64>,
    w: &Array1<f64>,
    centres: &Array2<f64>,
    iterations: usize,
) -> Array2<f64> {
    let mut centres = centres.clone();
    for _ in 0..iterations {
        let labels = nearest(x, &centres);
        for c in 0..centres.nrows() {
            let rows: Vec<usize> = (0..x.nrows()).filter(|&n| labels[n] == c as u32).collect();
            let mass: f64 = rows.iter().map(|&n| w[n]).sum();
            if mass > 0.0 {
                let sum = rows
                    .iter()
                    .fold(Array1::zeros(x.ncols()), |sum, &n| sum + &x.row(n) * w[n]);
                centres.row_mut(c).assign(&(sum / mass));
            }
        }
    }
    centres
}

/// One step of any length between 0 and 2 (E62), from the seeds: the means that the formula gives, and the fall of the quantization error
/// of the rows that it is about.
#[test]
fn a_step_beyond_the_means() {
    let (n, d, k) = (500, 4, 7);
    let (x, w) = (
        blobs::<f64>(n, d, k, 3),
        Array1::from_shape_fn(n, |i| 0.5 + (i % 3) as f64),
    );
    let (start, data) = (
        seeds(&x, k, 3),
        Dense::weighted(x.view(), w.view()).unwrap(),
    );
    let (labels, means) = (nearest(&x, &start), lloyd(&x, &w, &start, 1));
    let error = |centres: &Array2<f64>| {
        let of = |i: usize| w[i] * squared_distance(x.row(i), centres.row(labels[i] as usize));
        (0..n).map(of).sum::<f64>()
    };
    for step in [0.25, 1.0, 1.5, 1.99] {
        let phase = Phase::new(Bounded::default()).step(step);
        let builder = algorithms::k_means(k).phases(move |_| vec![phase.clone()]);
        let builder = builder.tolerance(0.0).max_iterations(1);
        let fit = builder.seeder(Given::new(start.view())).build().unwrap();
        let fit = fit.fit(&data).unwrap();
        let expected = &start + &(&means - &start).mapv(|v| step * v);
        assert_abs_diff_eq!(fit.model.means(), expected, epsilon = 1e-9);
        let fall: f64 = (0..n)
            .map(|i| {
                w[i] * squared_distance(
                    means.row(labels[i] as usize),
                    start.row(labels[i] as usize),
                )
            })
            .sum();
        let fall = step * (2.0 - step) * fall;
        assert_abs_diff_eq!(
            error(&start) - error(&expected),
            fall,
            epsilon = 1e-8 * error(&start)
        );
    }
}

/// Steps of half the way more end where k-means does: no row is nearer to another mean, and all centres are means.
#[test]
fn longer_steps_end_at_means() {
    for seed in 0..20 {
        let x = blobs::<f64>(600, 3, 8, seed);
        let (w, start) = (Array1::ones(600), seeds(&x, 8, seed));
        let data = Dense::new(x.view()).unwrap();
        let phase = Phase::new(Bounded::default()).step(1.5);
        let builder = algorithms::k_means(8).phases(move |_| vec![phase.clone()]);
        let builder = builder.tolerance(0.0).max_iterations(500);
        let fit = builder.seeder(Given::new(start.view())).build().unwrap();
        let fit = fit.fit(&data).unwrap();
        let means = fit.model.means().to_owned();
        assert_abs_diff_eq!(lloyd(&x, &w, &means, 1), means, epsilon = 1e-9);
        rises_in_phases("steps", &fit.report, 600.0, rounding::<f64>());
    }
}

/// With all centres near, all columns and no moves, bounds and kept sums change nothing but the time: after every iteration the means
/// are those of Lloyd's algorithm, and labels and quantization error belong to them.
#[test]
fn without_moves_it_is_lloyd() {
    for (n, d, k, seed) in [
        (400, 3, 9, 1),
        (900, 1, 5, 2),
        (700, 17, 40, 3),
        (50, 2, 50, 4),
        (300, 5, 1, 5),
        (300, 5, 2, 6),
    ] {
        let x: Array2<f64> = blobs(n, d, k.min(12), seed);
        let w = Array1::from_shape_fn(n, |i| [1.0, 0.0, 2.5, 0.125][i % 4]);
        let w = if k == 50 { Array1::ones(n) } else { w };
        let start = seeds(
            &x.select(Axis(0), &(0..n).filter(|i| w[*i] > 0.0).collect::<Vec<_>>()),
            k,
            seed,
        );
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        for iterations in [0, 1, 2, 3, 8] {
            let builder = algorithms::k_means(k)
                .phases(phases(k, None, Some(d), 0))
                .tolerance(0.0)
                .max_iterations(iterations)
                .seeder(Given::new(start.view()));
            let fit = builder.build().unwrap().fit(&data).unwrap();
            assert_eq!(fit.report.phases.len(), 1);
            let expected = lloyd(&x, &w, &start, iterations);
            let off = (&fit.model.means() - &expected)
                .mapv(f64::abs)
                .fold(0.0f64, |m, v| m.max(*v));
            assert!(off < 1e-9, "n {n} d {d} k {k} after {iterations}: {off:e}");
            assert_eq!(fit.search_labels.to_vec(), nearest(&x, &expected));
            // F is about the quantization error, which the kept sums know without a look at the rows (E36).
            let (weight, dims) = (w.sum(), d as f64);
            let phi: f64 = (0..n)
                .map(|i| {
                    w[i] * squared_distance(x.row(i), expected.row(fit.search_labels[i] as usize))
                })
                .sum();
            let variance = fit.model.variance();
            let f = weight
                * (-(k as f64).ln() - 0.5 * dims * (2.0 * std::f64::consts::PI * variance).ln())
                - phi / (2.0 * variance);
            let got = *fit.report.free_energies.last().unwrap();
            assert!((f - got).abs() < 1e-9 * f.abs().max(weight), "{f} {got}");
        }
    }
}

/// The E-step alone, in place of that of k-means: the same labels and means, with fewer looks.
#[test]
fn k_means_with_bounds_is_k_means() {
    for (n, d, k) in [(3_000, 2, 2), (2_000, 20, 7), (1_500, 40, 30)] {
        let x = wide(n, d, k as u64);
        let data = Dense::new(x.view()).unwrap();
        let start = seeds(&x, k, 9);
        for iterations in [1, 4, 12] {
            let builder = algorithms::k_means(k)
                .tolerance(0.0)
                .max_iterations(iterations)
                .seeder(Given::new(start.view()));
            let bounded = builder
                .clone()
                .e_step(Bounded::default().nearest_centres(k));
            let all = builder.build().unwrap().fit(&data).unwrap();
            let fit = bounded.build().unwrap().fit(&data).unwrap();
            assert!(fit.exact);
            assert_eq!(
                fit.search_labels, all.search_labels,
                "{n} {d} {k} after {iterations}"
            );
            let off = (&fit.model.means() - &all.model.means()).mapv(f64::abs);
            assert!(off.iter().all(|off| *off < 1e-9));
            let (few, many) = (fit.report.evaluations.search, all.report.evaluations.search);
            assert!(few < many || iterations < 12, "{few} of {many}");
        }
    }
}

/// A component that no row is near to is counted in every way, and the others have all rows; an iteration later it has some.
#[test]
fn a_component_without_rows_is_counted() {
    let x = wide(300, 4, 1);
    let data = Dense::new(x.view()).unwrap();
    let mut start = seeds(&x, 5, 2);
    start.row_mut(4).fill(1e6);
    for (iterations, without) in [(0, 1), (3, 0)] {
        let builder = algorithms::k_means(5)
            .tolerance(0.0)
            .max_iterations(iterations)
            .seeder(Given::new(start.view()));
        let bounded = builder
            .clone()
            .e_step(Bounded::default().nearest_centres(5));
        let all = builder.build().unwrap().fit(&data).unwrap();
        let fit = bounded.build().unwrap().fit(&data).unwrap();
        let used = |fit: &Fit<_>| fit.search_labels.iter().any(|label| *label == 4);
        assert_eq!([used(&fit), used(&all)], [without == 0; 2]);
        let found = [fit.report.zero_mass, all.report.zero_mass];
        assert_eq!(found, [without; 2]);
    }
}

/// Bounds and short lists: far fewer looks than rows times centres, at the same means.
#[test]
fn most_rows_are_settled_without_a_look() {
    let x: Array2<f64> = blobs(6_000, 2, 60, 3);
    let data = Dense::new(x.view()).unwrap();
    let start = seeds(&x, 60, 1);
    let fit = |near: usize| {
        let builder = algorithms::k_means(60)
            .phases(phases(near, None, None, 0))
            .tolerance(0.0)
            .max_iterations(12)
            .seeder(Given::new(start.view()));
        builder.build().unwrap().fit(&data).unwrap()
    };
    let (all, few) = (fit(60), fit(24));
    let iterations = few.report.iterations as u64;
    assert!(iterations > 5);
    let look = 6_000 * 60;
    // One exhaustive search; the rest are looks at what is open.
    let looks = few.report.evaluations.search - look;
    assert!(
        3 * looks < iterations * look,
        "{looks} in {iterations} iterations"
    );
    let phi = |fit: &Fit<_>| fit_error(fit, &data);
    assert_abs_diff_eq!(phi(&few) / phi(&all), 1.0, epsilon = 0.02);
}

/// Lists may not be longer than there are centres: to ask for more is to ask for all, in a subspace too.
#[test]
fn lists_of_more_centres_than_there_are() {
    let x: Array2<f64> = blobs(600, 12, 9, 3);
    let data = Dense::new(x.view()).unwrap();
    let fit = |near: usize| {
        let phase = move |columns| {
            let phase = Phase::new(Bounded::default().nearest_centres(near)).rows(PhaseRows::All);
            phase.columns(columns).transfers(2).split_and_merge(1)
        };
        let phases = move |_| vec![phase(Columns::Principal(3)), phase(Columns::All)];
        let builder = algorithms::k_means(9).phases(phases);
        builder.seed(1).build().unwrap().fit(&data).unwrap()
    };
    assert_eq!(fit(9).model, fit(usize::MAX).model);
}

fn fit_error(fit: &Fit<coremix::families::GaussianMixture<f64>>, data: &Dense<'_, f64>) -> f64 {
    fit.model.quantization_error(data).unwrap()
}

/// Two seeds in one cluster and one between two others: Lloyd's algorithm stays there, a move in the phase after it does not.
#[test]
fn moves_leave_local_optima() {
    let mut rng = Rng::from_seed(1);
    let corners = array![
        [0.0, 0.0],
        [40.0, 0.0],
        [0.0, 40.0],
        [40.0, 45.0],
        [90.0, 20.0]
    ];
    let x = Array2::from_shape_fn((1_000, 2), |(n, j)| corners[[n % 5, j]] + rng.normal());
    let data = Dense::new(x.view()).unwrap();
    let start = array![
        [-1.0, 0.0],
        [1.0, 0.0],
        [0.0, 40.0],
        [40.0, 22.0],
        [90.0, 20.0]
    ];
    let fit = |moves: usize| {
        let builder = algorithms::k_means(5)
            .phases(after_lloyd(48, moves))
            .tolerance(0.0)
            .max_iterations(20)
            .seeder(Given::new(start.view()));
        builder.build().unwrap().fit(&data).unwrap()
    };
    let (stuck, moved) = (fit(0), fit(3));
    assert_eq!(
        (stuck.report.phases.len(), moved.report.phases.len()),
        (2, 2)
    );
    assert_eq!(stuck.report.phases[0].stop, Stop::Converged);
    assert_eq!(
        stuck.report.phases[0].free_energies,
        moved.report.phases[0].free_energies
    );
    let best: f64 = (0..5)
        .map(|c| {
            let rows: Vec<usize> = (c..1_000).step_by(5).collect();
            let rows = x.select(Axis(0), &rows);
            let mean = rows.mean_axis(Axis(0)).unwrap();
            rows.outer_iter()
                .map(|row| squared_distance(row, mean.view()))
                .sum::<f64>()
        })
        .sum();
    assert!(fit_error(&stuck, &data) > 50.0 * best);
    assert_abs_diff_eq!(fit_error(&moved, &data) / best, 1.0, epsilon = 1e-9);
    rises("moved", &moved.report.free_energies, 0.0, 1e-9);
}

/// Lloyd's algorithm on all rows, and then a phase with `near` near centres and `moves` rounds of moves on the same rows.
fn after_lloyd<F: Float>(
    near: usize,
    moves: usize,
) -> impl Fn(Shape) -> Vec<Phase<F>> + Clone + Send + Sync + 'static {
    move |shape| {
        let exact = Bounded::default().nearest_centres(shape.clusters);
        let near = Bounded::default().nearest_centres(near);
        vec![
            Phase::new(exact).rows(PhaseRows::All),
            Phase::new(near).rows(PhaseRows::All).split_and_merge(moves),
        ]
    }
}

/// Many columns, few of which vary much: phases in a subspace, and the last one on all columns.
fn wide(n: usize, d: usize, seed: u64) -> Array2<f64> {
    let mut rng = Rng::from_seed(seed);
    let blobs: Array2<f64> = blobs(n, 4, 30, seed);
    let directions = Array2::from_shape_fn((4, d), |_| rng.normal() / (d as f64).sqrt());
    blobs.dot(&directions) + Array2::from_shape_fn((n, d), |_| 0.02 * rng.normal())
}

/// The free energy in a subspace is that of the rows as they are: for the means, the variance and the labels of a fit that
/// stops there, it is the naive one (E39), and it rises through the last phase on all columns.
#[test]
fn in_a_subspace_the_free_energy_is_that_of_the_rows() {
    let (n, d, k) = (3_000, 48, 40);
    let x = wide(n, d, 7);
    let w = Array1::from_shape_fn(n, |i| [1.0, 0.25, 3.0][i % 3]);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    // 16 coordinates are those that `fast` would take.
    for coordinates in [16, 3, 5, 47] {
        let clusterer = algorithms::k_means(k)
            .phases(phases(12, None, Some(coordinates), 3))
            .max_iterations(12)
            .seeder(UniformSeeder)
            .build()
            .unwrap();
        let all = clusterer.fit(&data).unwrap();
        let energies: Vec<f64> = all
            .report
            .phases
            .iter()
            .flat_map(|phase| phase.free_energies.clone())
            .collect();
        assert_eq!(all.report.phases.len(), 2);
        rises(coordinates, &energies, 0.0, 1e-9);
        for stop_at in [1, 3, energies.len()] {
            let mut seen = 0;
            let fit = clusterer
                .fit_observed(&data, |progress| {
                    seen += usize::from(matches!(progress, Progress::Iteration { .. }));
                    if seen == stop_at {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })
                .unwrap();
            let (means, variance) = (fit.model.means(), fit.model.variance());
            let phi: f64 = (0..n)
                .map(|i| {
                    w[i] * squared_distance(x.row(i), means.row(fit.search_labels[i] as usize))
                })
                .sum();
            let f = w.sum()
                * (-(k as f64).ln()
                    - 0.5 * d as f64 * (2.0 * std::f64::consts::PI * variance).ln())
                - phi / (2.0 * variance);
            let got = *fit.report.free_energies.last().unwrap();
            assert!((f - got).abs() < 1e-9 * f.abs().max(w.sum()), "{f} {got}");
        }
    }
}

/// At every step the model and the figures that an observer sees belong together, and an observer changes nothing.
#[test]
fn an_observer_sees_the_model_of_every_step() -> Result<()> {
    let (n, d) = (6_000, 40);
    let x = wide(n, d, 3);
    let data = Dense::new(x.view())?;
    for coordinates in [8, d] {
        let clusterer = algorithms::fast(30)
            .coreset(Lightweight::new(1_000))
            .phases(phases(48, Some(32_768), Some(coordinates), 3))
            .seed(5)
            .build()?;
        let (mut variances, mut seen) = (Vec::new(), Vec::new());
        let observed = clusterer.fit_observed(&data, |progress| {
            if let Progress::Iteration {
                model, free_energy, ..
            } = progress
            {
                assert!(free_energy.is_finite());
                variances.push(model.variances()[[0, 0]]);
                seen.push(model.means().to_owned());
            }
            ControlFlow::Continue(())
        })?;
        // The means of every step are others, and the last are those of the fit.
        let steps = observed.report.phases.iter().map(|p| p.iterations + 1);
        assert_eq!(seen.len(), steps.sum::<usize>());
        let moved = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let steps: usize = observed.report.phases.iter().map(|p| p.iterations).sum();
        assert!(moved >= steps, "{moved} of {steps}");
        assert_eq!(seen.last().unwrap(), &observed.model.means());
        assert_eq!(*variances.last().unwrap(), observed.model.variance());
        let alone = clusterer.fit(&data)?;
        assert_eq!(alone.model, observed.model);
        assert_eq!(alone.search_labels, observed.search_labels);
        assert_eq!(alone.report.free_energies, observed.report.free_energies);
    }
    Ok(())
}

/// A larger coreset is worth it up to a quarter of the rows.
#[test]
fn a_larger_coreset_is_a_quarter_at_most() -> Result<()> {
    let x: Array2<f64> = blobs(10_000, 3, 5, 1);
    let data = Dense::new(x.view())?;
    for (draws, expected) in [
        (2_500, vec![500, 2_500, 10_000]),
        (2_501, vec![500, 10_000]),
    ] {
        let fit = algorithms::fast(5)
            .coreset(Lightweight::new(500))
            .phases(phases(48, Some(draws), None, 3))
            .build()?
            .fit(&data)?;
        let rows: Vec<usize> = fit.report.phases.iter().map(|phase| phase.rows).collect();
        assert_eq!(rows.len(), expected.len());
        // Rows drawn more than once are there once.
        assert!(
            rows.iter()
                .zip(&expected)
                .all(|(rows, draws)| rows <= draws)
        );
    }
    Ok(())
}

/// Rows that vary as much in every direction have no subspace worth working in.
#[test]
fn a_subspace_that_holds_too_little_is_dropped() {
    let mut rng = Rng::from_seed(3);
    let x = Array2::from_shape_fn((2_000, 64), |_| rng.normal());
    let flat = Dense::new(x.view()).unwrap();
    let x = wide(2_000, 64, 3);
    let thick = Dense::new(x.view()).unwrap();
    let phases = |data: &Dense<'_, f64>, k: usize| {
        algorithms::k_means(k)
            .phases(algorithms::fast_phases)
            .max_iterations(12)
            .build()
            .unwrap()
            .fit(data)
            .unwrap()
            .report
            .phases
            .len()
    };
    assert_eq!((phases(&flat, 20), phases(&thick, 20)), (1, 2));
    // 16 coordinates are no fewer than 16 clusters.
    assert_eq!((phases(&thick, 16), phases(&thick, 17)), (1, 2));
}

/// Four blobs at the corners of a rectangle: two clusters are best on its short sides, and may get stuck on the long ones,
/// where moves do not help. The best of several seedings goes on, as long as their rows are at most half of all.
#[test]
fn the_best_of_several_starts_goes_on() {
    let mut rng = Rng::from_seed(4);
    let corner = |n: usize, j: usize| if j == 0 { n % 2 * 10 } else { n / 2 % 2 * 9 } as f64;
    let x = Array2::from_shape_fn((4_000, 2), |(n, j)| corner(n, j) + 0.1 * rng.normal());
    let data = Dense::new(x.view()).unwrap();
    let fit = |starts: usize, coreset: usize, seed: u64| {
        let clusterer = algorithms::fast(2)
            .coreset(Lightweight::new(coreset))
            .phases(with_starts(starts, phases(48, None, None, 3)))
            .tolerance(1e-3)
            .max_iterations(12)
            .seed(seed);
        clusterer.build().unwrap().fit(&data).unwrap()
    };
    let mut stuck = 0;
    for seed in 0..20 {
        let (one, several) = (fit(1, 200, seed), fit(10, 200, seed));
        assert!(fit_error(&several, &data) < 4_000.0 * 21.0);
        stuck += usize::from(fit_error(&one, &data) > 4_000.0 * 24.0);
        let phases = several.report.phases.iter().map(|phase| phase.evaluations);
        assert!(several.report.evaluations.search > phases.sum());
        assert!(several.report.evaluations.seeding > one.report.evaluations.seeding);
    }
    assert!((2..19).contains(&stuck), "{stuck}");
}

/// With many centres and few columns the first search goes by the coarse quantizer, and a row may miss its nearest centre; few do,
/// and the looks are far fewer than rows times centres.
#[test]
fn the_coarse_quantizer_misses_little() {
    let x: Array2<f64> = blobs(20_000, 3, 400, 9);
    let data = Dense::new(x.view()).unwrap();
    let start = seeds(&x, 1_000, 2);
    let fit = |near: usize, iterations: usize| {
        // At tolerance 0 no row may be missed, and every search is over all centres.
        let builder = algorithms::k_means(1_000)
            .phases(phases(near, None, None, 0))
            .tolerance(1e-2)
            .max_iterations(iterations)
            .seeder(Given::new(start.view()));
        builder.build().unwrap().fit(&data).unwrap()
    };
    let (all, few) = (fit(1_000, 0), fit(48, 0));
    // Rows are compared with all centres in groups, by the nearest of 31.
    assert_eq!(all.report.evaluations.search, 20_000 * (1_000 + 31));
    assert!(3 * few.report.evaluations.search < all.report.evaluations.search);
    let differ = (all.search_labels.iter().zip(&few.search_labels)).filter(|(a, b)| a != b);
    let differ = differ.count();
    assert!(differ > 0 && differ < 20_000 / 8, "{differ} of 20,000");
    let (all, few) = (fit(1_000, 6), fit(48, 6));
    let ratio = fit_error(&few, &data) / fit_error(&all, &data);
    assert!(ratio < 1.005, "{ratio}");
}

/// A second phase on the same rows goes on from the labels of the first: F is never lower than at its end, also where
/// columns are many, and the first search of the second phase changes nothing.
#[test]
fn a_second_phase_goes_on_from_the_labels_of_the_first() {
    let x = wide(2_000, 64, 5);
    let data = Dense::new(x.view()).unwrap();
    for iterations in [0, 8, 30] {
        let builder = algorithms::k_means(300)
            .phases(after_lloyd(8, 3))
            .max_iterations(iterations);
        let fit = builder.build().unwrap().fit(&data).unwrap();
        let energies: Vec<f64> = (fit.report.phases.iter())
            .flat_map(|phase| phase.free_energies.clone())
            .collect();
        assert_eq!(fit.report.phases.len(), 2);
        rises(iterations, &energies, 0.0, 1e-9);
        let [first, second] = &fit.report.phases[..] else {
            panic!("two phases");
        };
        let last = first.free_energies.last().unwrap();
        assert_abs_diff_eq!(second.free_energies[0], last, epsilon = 1e-12 * last.abs());
        // The labels are there already: the first of the second phase's searches costs nothing.
        if iterations == 0 {
            assert_eq!((first.evaluations, second.evaluations), (2_000 * 300, 0));
        }
    }
}

/// Rows of weight 0 decide nothing, in whatever order they come, however far away they are.
#[test]
fn rows_of_no_weight_are_no_part_of_a_subspace() {
    let x = wide(4_096, 64, 6);
    let w = Array1::from_shape_fn(4_096, |n| (n % 2) as f64);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let fit = |data: &Dense<'_, f64>| algorithms::fast(20).build().unwrap().fit(data).unwrap();
    assert_eq!(fit(&data).report.phases.len(), 2);
    let far = Array2::from_shape_fn(
        (40_000, 2),
        |(n, _)| {
            if n == 7 { 1e30 } else { (n % 97) as f32 }
        },
    );
    let w = Array1::from_shape_fn(40_000, |n| if n == 7 { 0.0 } else { 1.0 });
    let data = Dense::weighted(far.view(), w.view()).unwrap();
    let fit = algorithms::lwcs_k_means(10, 500)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    let mut rows = fit.coreset.unwrap().rows;
    rows.dedup();
    assert!(rows.len() > 400, "{}", rows.len());
}

/// A stop within any phase leaves labels, rows and model that belong together.
#[test]
fn an_observer_may_stop_any_phase() {
    let x: Array2<f32> = blobs(4_000, 3, 6, 5);
    let data = Dense::new(x.view()).unwrap();
    for iterations in [0, 3] {
        let clusterer = algorithms::fast(6)
            .coreset(Lightweight::new(200))
            .phases(phases(48, Some(800), None, 3))
            .max_iterations(iterations)
            .build()
            .unwrap();
        stop_anywhere(&clusterer, &data);
    }
}

fn stop_anywhere(clusterer: &Clusterer<f32>, data: &Dense<'_, f32>) {
    let mut sizes = Vec::new();
    for stop_at in 1.. {
        let mut seen = 0;
        let fit = clusterer
            .fit_observed(data, |_| {
                seen += 1;
                if seen == stop_at {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
        let rows = fit.report.phases.last().unwrap().rows;
        assert_eq!(fit.search_labels.len(), rows);
        let on_all_rows = fit.coreset.is_none();
        assert_eq!(on_all_rows, rows == 4_000);
        if let Some(coreset) = &fit.coreset {
            assert_eq!((coreset.rows.len(), coreset.weights.len()), (rows, rows));
        }
        sizes.push(rows);
        if seen < stop_at {
            assert!(fit.report.stop != Stop::Observer);
            break;
        }
        assert_eq!(fit.report.stop, Stop::Observer);
    }
    sizes.dedup();
    assert_eq!(sizes, [200, 800, 4_000]);
}

/// Where rows repeat and centres coincide there is nothing to gain, and nothing breaks.
#[test]
fn copies_and_few_rows() {
    let x = Array2::from_shape_fn((64, 2), |(n, j)| ((n % 4) * (j + 1)) as f64);
    let data = Dense::new(x.view()).unwrap();
    for k in [1, 2, 3, 4, 9, 64] {
        let fit = algorithms::fast(k).build().unwrap().fit(&data).unwrap();
        let error = fit_error(&fit, &data);
        assert!(
            if k >= 4 { error < 1e-12 } else { error > 0.0 },
            "{k}: {error}"
        );
    }
}

/// Moves are made only where the sums prove that F rises (E37): over many fits with many moves it never falls.
#[test]
fn moves_never_lower_the_free_energy() {
    let mut made = 0;
    for seed in 0..150 {
        let (n, k) = (300 + 7 * (seed as usize % 30), 20 + seed as usize % 23);
        let x: Array2<f64> = blobs(n, 1 + seed as usize % 3, 25, seed);
        let w = Array1::from_shape_fn(n, |i| [1.0, 0.3, 7.0][i % 3]);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let fit = |moves: usize| {
            let builder = algorithms::k_means(k)
                .phases(phases(6, None, None, moves))
                .tolerance(0.0)
                .max_iterations(12)
                .seeder(UniformSeeder)
                .seed(seed);
            builder.build().unwrap().fit(&data).unwrap()
        };
        let (with, without) = (fit(8), fit(0));
        rises(seed, &with.report.free_energies, 0.0, 1e-12);
        made += usize::from(fit_error(&with, &data) < 0.98 * fit_error(&without, &data));
    }
    assert!(made > 75, "moves helped in {made} fits of 150");
}

/// Transfers begin where the phase would have ended, and each of them pays (E50): F never falls, and ends above the fixed
/// point of Lloyd's algorithm where rows are few.
#[test]
fn transfers_leave_the_fixed_points_of_lloyd() {
    let mut gained = 0;
    for seed in 0..40 {
        let k = 10 + 3 * (seed as usize % 9);
        let x = wide(260, 1 + seed as usize % 5, seed);
        let w = Array1::from_shape_fn(260, |i| [1.0, 2.0, 1.0][i % 3]);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let fit = |transfers: usize, near: usize| {
            let phase = Phase::new(Bounded::default().nearest_centres(near)).rows(PhaseRows::All);
            let phase = phase.transfers(transfers);
            let builder = algorithms::k_means(k)
                .phases(move |_| vec![phase.clone()])
                .tolerance(1e-9)
                .max_iterations(500)
                .seeder(UniformSeeder)
                .seed(seed);
            builder.build().unwrap().fit(&data).unwrap()
        };
        for near in [5, k] {
            let (with, without) = (fit(100, near), fit(0, near));
            assert_eq!(
                (with.report.stop, without.report.stop),
                (Stop::Converged, Stop::Converged)
            );
            let energies = &with.report.free_energies;
            assert!(energies.starts_with(&without.report.free_energies));
            rises(seed, energies, 0.0, 1e-12);
            let (with, without) = (fit_error(&with, &data), fit_error(&without, &data));
            assert!(with <= without * (1.0 + 1e-12), "{with} {without}");
            gained += usize::from(with < 0.99 * without);
        }
    }
    assert!(gained > 40, "transfers gained 1 % in {gained} fits of 80");
}

/// An initial centre far from all rows has none of them, until one is transferred to it: its sums must not be about that place.
fn a_far_centre_begins_near<F: Float + Element<Float = F>>(far: f64) {
    for seed in 0..40 {
        let mut numbers = Numbers(seed);
        let (n, d, k) = (60, numbers.size(1, 3), numbers.size(3, 8));
        let x = Array2::from_shape_fn((n, d), |_| F::from_f64(numbers.normal()));
        let mut centres = x.select(ndarray::Axis(0), &(0..k).collect::<Vec<_>>());
        centres.row_mut(k - 1).fill(F::from_f64(far));
        let data = Dense::new(x.view()).unwrap();
        let phase = Phase::new(Bounded::default()).transfers(20);
        let fit = algorithms::k_means(k)
            .seeder(Given::new(centres.view()))
            .phases(move |_| vec![phase.clone()])
            .tolerance(1e-6)
            .build()
            .unwrap();
        let fit = fit.fit(&data).unwrap();
        let what = format!("{far}, seed {seed}");
        rises(what, &fit.report.free_energies, 0.0, rounding::<F>());
        let error = fit.model.quantization_error(&data).unwrap() / (n * d) as f64;
        let variance = fit.model.variance();
        assert!((variance / error - 1.0).abs() < 1e-4, "{variance} {error}");
    }
}

#[test]
fn transfers_to_a_far_centre_raise_the_free_energy() {
    a_far_centre_begins_near::<f32>(1e4);
    a_far_centre_begins_near::<f32>(1e6);
    a_far_centre_begins_near::<f64>(1e8);
    a_far_centre_begins_near::<f64>(1e15);
}

/// Where weights differ by more than a number has digits, what a merge costs rows of little weight is not lost in the rounding of
/// others.
#[test]
fn moves_of_rows_of_little_weight_raise_the_free_energy() {
    for seed in 0..400 {
        let mut numbers = Numbers(seed);
        let (n, d, k) = (
            numbers.size(100, 400),
            numbers.size(1, 3),
            numbers.size(4, 25),
        );
        let x = Array2::<f64>::zeros((n, d)).mapv(|_| numbers.normal());
        let heavy = 0.3 * numbers.uniform();
        let weight = |_| match numbers.uniform() < heavy {
            true => 1e17,
            false => 1.0,
        };
        let w: ndarray::Array1<f64> = (0..n).map(weight).collect();
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let phase = Phase::new(Bounded::default()).split_and_merge(10);
        let fit = algorithms::k_means(k)
            .phases(move |_| vec![phase.clone()])
            .tolerance(1e-6)
            .seed(seed)
            .build()
            .unwrap();
        let energies = fit.fit(&data).unwrap().report.free_energies;
        rises(seed, &energies, 0.0, 1e-9);
    }
}

// ---- Restarts and sketches ------------------------------------------------------------------------------

/// Free energies of different rows do not compare: a restart that is broken off on its coreset does not take the place of one
/// that is finished, though the F of so few rows is larger.
#[test]
fn a_restart_that_is_broken_off_is_no_better_than_one_that_is_finished() -> Result<()> {
    let x: Array2<f32> = blobs(20_000, 6, 30, 11);
    let data = Dense::new(x.view())?;
    let one = algorithms::fast(50).build()?.fit(&data)?;
    let rows: Vec<usize> = one.report.phases.iter().map(|phase| phase.rows).collect();
    assert_eq!(rows, [one.report.coreset_size, 20_000]);
    let clusterer = algorithms::fast(50).restarts(3).build()?;
    for stop_at in [0, 1, 4] {
        let (mut stop, mut reached) = (false, f64::NEG_INFINITY);
        let fit = clusterer.fit_observed(&data, |progress| {
            if let Progress::Iteration {
                restart: 1,
                phase: 0,
                iteration,
                free_energy,
                ..
            } = *progress
            {
                reached = free_energy;
                stop = iteration == stop_at;
            }
            if stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        assert!(stop);
        assert_eq!(fit.report.stop, Stop::Observer);
        assert_eq!(fit.report.restarts.len(), 2);
        assert_eq!(fit.report.restarts[1], reached);
        assert_eq!(fit.report.restart, 0);
        assert_eq!(fit.model, one.model);
        assert_eq!(fit.search_labels, one.search_labels);
        assert!(fit.coreset.is_none());
        assert_eq!(fit.report.free_energies, one.report.free_energies);
        assert_eq!(fit.report.phases.len(), 2);
    }
    Ok(())
}

/// The first seeding is bad, those that follow are good.
#[derive(Debug)]
struct Improving {
    bad: Array2<f64>,
    good: Array2<f64>,
    seeded: AtomicUsize,
}

impl Stage for Improving {}

impl Seeder<f64> for Improving {
    fn seed(&self, view: View<'_, f64>, k: usize, _: &mut Rng) -> Result<Seeds<f64>> {
        let first = self.seeded.fetch_add(1, Ordering::Relaxed) == 0;
        let centres = if first { &self.bad } else { &self.good };
        let centres = Dense::new(centres.view())?;
        let rows: Vec<usize> = (0..k).collect();
        Seeds::at_rows(View::new(&centres, view.frame), &rows, 0)
    }
}

/// A subspace may be worth it for the seeds of one restart and not for those of another. Both come as far, so the larger F
/// decides, not the number of phases.
#[test]
fn restarts_with_and_without_a_subspace_compare() -> Result<()> {
    let (n, d, k) = (3_000, 40, 6);
    let mut rng = Rng::from_seed(2);
    // Six blobs along one column, and as much noise in all others.
    let x = Array2::from_shape_fn((n, d), |(n, j)| {
        let place = if j == 0 { 40.0 * (n % k) as f64 } else { 0.0 };
        place + rng.normal()
    });
    let data = Dense::new(x.view())?;
    // All in two of the blobs, or one in each.
    let bad = x.select(Axis(0), &[0, 1, 6, 7, 12, 13]);
    let good = x.select(Axis(0), &[0, 1, 2, 3, 4, 5]);
    let clusterer = algorithms::k_means(k)
        .phases(phases(6, None, Some(2), 0))
        .seeder(Improving {
            bad,
            good,
            seeded: AtomicUsize::new(0),
        })
        .restarts(2)
        .build()?;
    // Restarts run at the same time: on one thread, the first one asks for its seeds first.
    let fit = on(1, || clusterer.fit(&data))?;
    let restarts = &fit.report.restarts;
    assert!(restarts[1] > restarts[0], "{restarts:?}");
    assert_eq!(fit.report.restart, 1);
    // It ran on all columns alone; the other had a phase more.
    let columns: Vec<usize> = fit.report.phases.iter().map(|p| p.columns).collect();
    assert_eq!(columns, [d]);
    Ok(())
}

/// On a sketch `fast` has the same phases, without a subspace.
#[test]
fn fast_fits_sketches() -> Result<()> {
    fast_on_a_sketch::<f32>()?;
    fast_on_a_sketch::<f64>()
}

fn fast_on_a_sketch<F: Float>() -> Result<()>
where
    HierarchicalKMeansPlusPlus: Seeder<F>,
{
    let (n, k) = (12_000, 60);
    let x: Array2<F> = blobs(n, 40, 50, 7);
    let w = Array1::from_shape_fn(n, |i| [1.0, 2.0, 0.0, 0.5][i % 4]);
    let dense = Dense::weighted(x.view(), w.view())?;
    let sketch = Sketch::of_dense(&dense, 16, 3)?;
    let fit = algorithms::fast(k).seed(1).build()?.fit(&sketch)?;
    let report = &fit.report;
    let rows: Vec<usize> = report.phases.iter().map(|phase| phase.rows).collect();
    assert_eq!(rows, [report.coreset_size, n]);
    assert!(report.coreset_size < 8_193);
    assert!(report.phases.iter().all(|p| p.columns == sketch.dim()));
    rises_in_phases("fast on a sketch", report, w.sum(), rounding::<F>());
    // The labels are exact, and far better than those of the seeds.
    assert_eq!(fit.search_labels, fit.model.predict(&sketch)?);
    let seeded = algorithms::fast(k).seed(1).max_iterations(0).build()?;
    let seeded = seeded.fit(&sketch)?.model.quantization_error(&sketch)?;
    assert!(fit.model.quantization_error(&sketch)? < 0.95 * seeded);
    // At least as good as these phases with a search over all components, without moves.
    let factor = (n as f64 / 50_000.0).clamp(0.1, 1.0);
    let exhaustive = algorithms::fast(k)
        .seed(1)
        .phases(move |_| {
            vec![
                Phase::new(Exhaustive::nearest()).tolerance_factor(3.0),
                Phase::new(Exhaustive::nearest())
                    .rows(PhaseRows::All)
                    .tolerance_factor(factor),
            ]
        })
        .build()?
        .fit(&sketch)?;
    let [moved, plain] = [&fit, &exhaustive].map(|fit| fit.model.quantization_error(&sketch));
    assert!(moved? <= plain?);
    Ok(())
}
