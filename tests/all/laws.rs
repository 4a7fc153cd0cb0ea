//! The laws of the crate, over all algorithms from one list (docs/architecture.md names each).

use crate::common::{
    Algorithm, Known, Outcome, Settings, all, blobs, close, distance, last, mean_of, rises,
    rises_in_phases, rounding, same, same_mean, same_on_threads, seeds, shuffled, squared_distance,
    turned,
};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, algorithms, testing};
use nalgebra::DMatrix;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate};
use proptest::prelude::*;
use std::io::Write;
use std::ops::Range;

/// Sizes and seeds of a generated problem.
#[derive(Clone, Copy, Debug)]
struct Problem {
    n: usize,
    d: usize,
    k: usize,
    seed: u64,
}

fn problems() -> impl Strategy<Value = Problem> {
    (40usize..700, 1usize..12, 2usize..9, 0u64..1_000_000).prop_map(|(n, d, k, seed)| Problem {
        n,
        d,
        k,
        seed,
    })
}

impl Problem {
    fn points<F: Float>(self) -> Array2<F> {
        blobs(self.n, self.d, self.k, self.seed)
    }

    /// All algorithms with the points. Algorithms with distributions over full covariances also get rows that are turned.
    fn for_all<F: Float>(self) -> Vec<(Array2<F>, Algorithm<F>)> {
        let points = all().into_iter().map(|a| (self.points(), a));
        let bayesian = all().into_iter().filter(|a| a.bayesian);
        let turned = bayesian.map(|a| (turned(self.n, self.d, self.seed), a));
        points.chain(turned).collect()
    }
}

/// Problems of each law: as many as COREMIX_CASES says, or 8.
fn cases() -> ProptestConfig {
    let asked = std::env::var("COREMIX_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|cases| cases.parse().ok()).unwrap_or(8),
        ..ProptestConfig::default()
    }
}

/// F never falls within a phase.
fn never_falls<F: Float>(problem: Problem) {
    let w = Array1::from_shape_fn(problem.n, |n| 0.5 + (n % 3) as f64);
    for (x, algorithm) in problem.for_all::<F>() {
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let fit = (algorithm.fit)(&data, &Settings::new(problem.k, problem.seed)).unwrap();
        rises_in_phases(algorithm.name, &fit.report, w.sum(), rounding::<F>());
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn free_energy_never_falls(problem in problems()) {
        never_falls::<f64>(problem);
        never_falls::<f32>(problem);
    }

    /// \[VC\] Prop. 1: with the model fixed, one more truncated search never lowers F.
    #[test]
    fn a_search_never_lowers_the_free_energy(problem in problems(), random in 0usize..3) {
        searches_never_lower(&problem.points::<f64>(), problem.k, random);
    }

    /// Any number of threads gives the same bits: one shard, several, and several blocks in each.
    #[test]
    fn threads_do_not_matter(problem in problems()) {
        let x = blobs::<f32>(problem.n + 2_000, problem.d, problem.k, problem.seed);
        let data = Dense::new(x.view()).unwrap();
        for algorithm in all::<f32>() {
            let settings = Settings::new(problem.k, problem.seed);
            same_on_threads(algorithm.name, &[2, [3, 7][(problem.seed % 2) as usize]], || {
                let fit = (algorithm.fit)(&data, &settings).unwrap();
                let error = fit.model.quantization_error(&data).unwrap();
                let likelihood = fit.model.log_likelihood(&data).unwrap();
                let bits = |values: &[f64]| values.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
                (
                    fit.means.mapv(f32::to_bits),
                    bits(&fit.report.free_energies),
                    bits(&[error, likelihood]),
                    bits(&fit.variances.iter().chain(&fit.proportions).copied().collect::<Vec<_>>()),
                    (fit.labels, fit.supports, fit.report.distance_evaluations),
                )
            });
        }
    }

    /// Weight w is w copies, weight 0 is absence; a permutation of the points permutes the labels.
    #[test]
    fn copies_and_permutations(problem in problems()) {
        let weights: Vec<usize> = (0..problem.n).map(|n| [1, 0, 3, 2, 1][n % 5]).collect();
        let w = Array1::from_iter(weights.iter().map(|&w| w as f64));
        let rows: Vec<usize> = (0..problem.n).flat_map(|n| vec![n; weights[n]]).rev().collect();
        for (x, algorithm) in problem.for_all::<f64>().into_iter().filter(|(_, a)| a.takes_any_order()) {
            let weighted = Dense::weighted(x.view(), w.view()).unwrap();
            let copies = x.select(Axis(0), &rows);
            let copied = Dense::new(copies.view()).unwrap();
            let settings = Settings::fixed(seeds(&x, problem.k, problem.seed).view(), 4);
            let (a, b) = algorithm.equally_long((&weighted, &settings), (&copied, &settings));
            same(algorithm.name, &a, &b, digits(&a));
            let likelihood = |data| a.model.log_likelihood(data).unwrap();
            prop_assert!(close(likelihood(&weighted), likelihood(&copied), 1e-12));
            let error = |data| a.model.quantization_error(data).unwrap();
            prop_assert!(close(error(&weighted), error(&copied), 1e-12));
            for (&row, label) in rows.iter().zip(&b.labels) {
                prop_assert_eq!(a.labels[row], *label, "{}", algorithm.name);
            }
        }
    }

    /// Another order of the rows permutes the labels, and changes nothing else but rounding: without weights and with them.
    #[test]
    fn the_order_of_rows_does_not_matter(problem in problems(), of in 0u64..1_000_000) {
        let x = problem.points::<f64>();
        let order = shuffled(problem.n, of);
        let other = x.select(Axis(0), &order);
        let ones = Array1::ones(problem.n);
        let weights = Array1::from_shape_fn(problem.n, |n| 0.5 + (n % 5) as f64);
        let settings = Settings::fixed(seeds(&x, problem.k, problem.seed).view(), 4);
        for algorithm in all::<f64>().into_iter().filter(|a| a.takes_any_order()) {
            for w in [&ones, &weights] {
                let of_other = w.select(Axis(0), &order);
                let a = Dense::weighted(x.view(), w.view()).unwrap();
                let b = Dense::weighted(other.view(), of_other.view()).unwrap();
                let (a, b) = algorithm.equally_long((&a, &settings), (&b, &settings));
                same(algorithm.name, &a, &b, digits(&a));
                for (&row, label) in order.iter().zip(&b.labels) {
                    prop_assert_eq!(a.labels[row], *label, "{}", algorithm.name);
                }
            }
        }
    }

    /// Shifts that are exact move the means; powers of two scale them exactly.
    #[test]
    fn shift_and_scale(problem in problems()) {
        // Multiples of 1/1024 below 64: shifted by 256 and scaled by 8 they are still exact in f64.
        for (x, algorithm) in problem.for_all::<f64>().into_iter().filter(|(_, a)| a.deterministic) {
            shifts_and_scales(&x.mapv(|v| (v * 1024.0).round() / 1024.0), problem, &algorithm);
        }
    }

    /// f32 data far from 0 gives what the same rounded data gives in f64.
    #[test]
    fn far_from_zero_in_f32(problem in problems()) {
        let x = problem.points::<f64>().mapv(|v| (v + 1e6) as f32);
        let wide_points = x.mapv(f64::from);
        let start = seeds(&x, problem.k, problem.seed);
        let wide_start = start.mapv(f64::from);
        let (data, wide) = (Dense::new(x.view()).unwrap(), Dense::new(wide_points.view()).unwrap());
        for (a, b) in all::<f32>().iter().zip(all::<f64>()).filter(|(a, _)| a.deterministic) {
            let a_fit = (a.fit)(&data, &Settings::fixed(start.view(), 3)).unwrap();
            let b_fit = (b.fit)(&wide, &Settings::fixed(wide_start.view(), 3)).unwrap();
            // The variance floor (E20) follows the digits of the type: where it holds a component up, F differs, and from
            // the next iteration on responsibilities and means. A transform may gather the offsets of all columns in one
            // coordinate.
            let gathered = if a.rows == Known::Dense { 1.0 } else { problem.d as f64 };
            let floor = (f64::from(f32::EPSILON) * 1e6).powi(2) * gathered;
            let held_up = |fit: &Outcome<f32>| fit.narrowest() < 2.0 * floor;
            // A point on a border may change sides in any iteration, and change back; what follows is another path. Values
            // here are multiples of 1/16, and ties are common, which a transform rounds apart.
            let another_path = || {
                let tie = |centres: &Array2<f64>| a.rows != Known::Dense && tied(&wide_points, centres);
                let mut parted = tie(&wide_start);
                for iterations in 1..=3 {
                    let a_fit = (a.fit)(&data, &Settings::fixed(start.view(), iterations)).unwrap();
                    let b_fit = (b.fit)(&wide, &Settings::fixed(wide_start.view(), iterations)).unwrap();
                    parted |= a_fit.labels != b_fit.labels || tie(&b_fit.means);
                    parted |= iterations < 3 && held_up(&a_fit);
                }
                parted
            };
            // Means near 1e6 are rounded to multiples of 1/16.
            let far = distance(&a_fit.means.mapv(f64::from), &b_fit.means);
            prop_assert!(far <= 0.04 || another_path(), "{}: means differ by {far}", a.name);
            let (f, g) = (last(&a_fit), last(&b_fit));
            prop_assert!(held_up(&a_fit) || close(f, g, 1e-4) || another_path(), "{}: {f} {g}", a.name);
        }
    }

    /// F(q_old, theta_new) = -ln C - D/2 ln(2 pi e sigma_new^2) + mean entropy of q_old, per unit weight,
    /// at every iteration (E10; \[KM\] Prop. 3 is width 1, Prop. 4 its limit).
    #[test]
    fn free_energy_after_the_m_step(problem in problems(), c_prime in 1usize..9) {
        let x = problem.points::<f64>();
        let w = Array1::from_shape_fn(problem.n, |n| 0.25 + (n % 4) as f64);
        let start = seeds(&x, problem.k, problem.seed);
        identity_after_the_m_step(&x, &w, &start, c_prime.min(problem.k));
    }

    /// \[KM\] Corollary 2: k-means raises F strictly until it has converged, and F and the quantization
    /// error of the same assignment are two ways to say the same thing (E9).
    #[test]
    fn k_means_raises_the_free_energy(problem in problems()) {
        k_means_rises(&problem.points::<f64>(), problem.k, problem.seed);
    }

    /// F <= log-likelihood on the rows EM ran on, equal when every support is everything; F is the naive sum.
    #[test]
    fn free_energy_bounds_the_likelihood(problem in problems()) {
        let x = problem.points::<f64>();
        let data = Dense::new(x.view()).unwrap();
        for algorithm in all::<f64>() {
            let fit = (algorithm.fit)(&data, &Settings::new(problem.k, problem.seed)).unwrap();
            // Without the logarithm of a prior density, which is none of the rows.
            let f = last(&fit) - fit.prior;
            let bound = fit.bound;
            if algorithm.bayesian {
                // It bounds the evidence (tests/dirichlet_process.rs).
                continue;
            }
            prop_assert!(fit.prior <= 0.0, "{}: {}", algorithm.name, fit.prior);
            prop_assert!(f <= bound + 1e-9 * bound.abs(), "{}: {f} > {bound}", algorithm.name);
            if fit.supports.is_none() {
                prop_assert!(close(f, bound, 1e-9), "{}: {f} {bound}", algorithm.name);
            }
            // The coordinates that a sketch knows are not known here.
            if algorithm.is_naive() {
                let naive = naive_free_energy(&x, &fit, problem.k);
                let near = near_naive(f, naive, &x, &fit);
                prop_assert!(near, "{}: {f} {naive}", algorithm.name);
            }
        }
    }

    /// Responsibilities sum to 1, and agree with their definition; labels agree with the last search.
    #[test]
    fn responsibilities_and_labels(problem in problems(), c_prime in 1usize..9) {
        let x = problem.points::<f64>();
        let data = Dense::new(x.view()).unwrap();
        for algorithm in all::<f64>() {
            let fit = (algorithm.fit)(&data, &Settings::new(problem.k, problem.seed)).unwrap();
            let full = fit.model.responsibilities(&data).unwrap();
            let labels = fit.model.predict(&data).unwrap();
            let lost = fit.lost();
            let (support, truncated) =
                fit.model.truncated_responsibilities(&data, c_prime).unwrap();
            for n in 0..problem.n {
                let row = full.row(n);
                prop_assert!(close(row.sum(), 1.0, 1e-12));
                prop_assert!(close(truncated.row(n).sum(), 1.0, 1e-12));
                let most = row.iter().copied().fold(0.0, f64::max);
                prop_assert!(row[labels[n] as usize] >= most - 1e-12);
                prop_assert_eq!(support[[n, 0]], labels[n]);
                let kept: f64 = support.row(n).iter().map(|&c| row[c as usize]).sum();
                for (&c, &q) in support.row(n).iter().zip(truncated.row(n)) {
                    prop_assert!(close(q * kept, row[c as usize], 1e-9));
                    // Variances of preconditioned coordinates are none of the columns.
                    if !algorithm.is_naive() {
                        continue;
                    }
                    // The naive densities are off by what their pivots have lost, times squares of about their size.
                    let log_joint = |c: u32| fit.log_joint(x.row(n), c as usize);
                    let (own, best) = (log_joint(c), log_joint(labels[n]));
                    let off = lost * (own.abs() + best.abs() + 20.0 * problem.d as f64);
                    prop_assert!(close(q / truncated[[n, 0]], (own - best).exp(), 1e-7 + off));
                }
            }
            // A search knows some coordinates of a row, and a prediction all of them.
            if algorithm.takes_any_order() && algorithm.name != "lazy-k-means" {
                prop_assert_eq!(&labels, &fit.labels, "{}", algorithm.name);
            }
        }
    }

    /// A neighborhood of everything is EM, and so is sampling with a support of everything; a support of
    /// width 1 is Lloyd's algorithm; weights of 1 are none; a coreset of all rows is none.
    #[test]
    fn limits(problem in problems()) {
        let x = problem.points::<f64>();
        let data = Dense::new(x.view()).unwrap();
        let start = seeds(&x, problem.k, problem.seed);
        let given = || Given::new(start.view());
        let k = problem.k;

        let em = algorithms::gmm(k).seeder(given()).tolerance(0.0).max_iterations(5)
            .build().unwrap().fit(&data).unwrap();
        let wide = algorithms::var_gmm_s(k, k + 3, k).seeder(given())
            .tolerance(0.0).max_iterations(5).build().unwrap().fit(&data).unwrap();
        prop_assert!(distance(&em.model.means().to_owned(), &wide.model.means().to_owned()) < 1e-9);
        prop_assert!(close(last(&em), last(&wide), 1e-9));
        for h in [k, k + 3] {
            let sampling = algorithms::d_gmm(k, h, 2).seeder(given())
                .tolerance(0.0).max_iterations(5).build().unwrap().fit(&data).unwrap();
            prop_assert_eq!(em.model.means(), sampling.model.means());
            prop_assert_eq!(&em.report.free_energies, &sampling.report.free_energies);
            prop_assert!(sampling.supports.is_none());
        }
        // All but one in the support, and that one drawn by every point: a search over all components.
        let all_but_one = (k - 1).max(1);
        let exhaustive = algorithms::k_means_c_prime(k, all_but_one).seeder(given())
            .tolerance(0.0).max_iterations(3).build().unwrap().fit(&data).unwrap();
        let sampling = algorithms::d_gmm(k, all_but_one, k).seeder(given())
            .tolerance(0.0).max_iterations(3).build().unwrap().fit(&data).unwrap();
        prop_assert_eq!(&sampling.supports, &exhaustive.supports);
        prop_assert!(close(last(&sampling), last(&exhaustive), 1e-9));

        // All but one component, and neighbors that are all: the truncated search itself, exhaustively.
        if k > 2 {
            let nearly = algorithms::k_means_c_prime(k, k - 1).seeder(given())
                .tolerance(0.0).max_iterations(3).build().unwrap().fit(&data).unwrap();
            let neighbors = algorithms::var_gmm_s(k, k - 1, k).seeder(given())
                .e_step(Neighborhood::new(k - 1, k).from_seeds(true))
                .tolerance(0.0).max_iterations(3).build().unwrap().fit(&data).unwrap();
            prop_assert!(close(last(&nearly), last(&neighbors), 1e-9));
            prop_assert_eq!(nearly.search_labels, neighbors.search_labels);
        }

        for iterations in 0..4 {
            let fit = algorithms::k_means(k).seeder(given()).tolerance(0.0)
                .max_iterations(iterations).build().unwrap().fit(&data).unwrap();
            let (centres, labels) = lloyd(&x, start.clone(), iterations);
            prop_assert!(distance(&fit.model.means().to_owned(), &centres) < 1e-9);
            prop_assert_eq!(fit.search_labels.to_vec(), labels);
        }

        let ones = Array1::<f64>::ones(problem.n);
        let weighted = Dense::weighted(x.view(), ones.view()).unwrap();
        for algorithm in all::<f64>() {
            let settings = Settings::new(k, problem.seed);
            let a = (algorithm.fit)(&data, &settings).unwrap();
            let b = (algorithm.fit)(&weighted, &settings).unwrap();
            prop_assert_eq!(a.means, b.means, "{}", algorithm.name);
        }
        let whole = algorithms::lwcs_k_means(k, problem.n).seed(3).build().unwrap();
        let none = algorithms::k_means(k).seeder(AfkMc2::default()).seed(3).build().unwrap();
        let (whole, none) = (whole.fit(&data).unwrap(), none.fit(&data).unwrap());
        prop_assert_eq!(whole.model.means(), none.model.means());
    }

    /// f32 agrees with f64. Two iterations: near a saddle point EM itself makes a difference ten times as large
    /// in each further one (the saved case 164 x 8), whatever the arithmetic. A variance that falls in one step to less than the
    /// rounding of squares in f32 stays at that (E20), which may change F by as much as that variance counts. Where F is near 0, the
    /// measure is a nat for each row, times the root of the condition number of the correlations: by this a rounded difference of
    /// a row and a mean counts more along the narrowest axis. A row between two means may go to either.
    #[test]
    fn precision(problem in problems()) {
        let x = problem.points::<f32>();
        let wide = x.mapv(f64::from);
        let start = seeds(&x, problem.k, problem.seed);
        let (data, wide) = (Dense::new(x.view()).unwrap(), Dense::new(wide.view()).unwrap());
        for (a, b) in all::<f32>().iter().zip(all::<f64>()).filter(|(a, _)| a.deterministic) {
            let a_fit = (a.fit)(&data, &Settings::fixed(start.view(), 2)).unwrap();
            let b_fit =
                (b.fit)(&wide, &Settings::fixed(start.mapv(f64::from).view(), 2)).unwrap();
            let far = distance(&a_fit.means.mapv(f64::from), &b_fit.means);
            if far > 1e-4 {
                let wide_start = start.mapv(f64::from);
                let next = (b.fit)(&wide, &Settings::fixed(wide_start.view(), 1)).unwrap().means;
                let tied = has_tie(wide.points(), &wide_start) || has_tie(wide.points(), &next);
                prop_assert!(tied, "{}: means differ by {far}", a.name);
                continue;
            }
            let (f, g) = (last(&a_fit), last(&b_fit));
            let widest = b_fit.variances.iter().fold(0.0, |most: f64, v| most.max(*v));
            let lost = |v: f64| v < 64.0 * f64::from(f32::EPSILON) * widest;
            let variances = a_fit.variances.indexed_iter().zip(&b_fit.variances);
            let raised = variances.filter(|(_, wide)| lost(**wide)).map(|(((c, _), v), wide)| {
                0.5 * problem.n as f64 * b_fit.proportions[c] * (v / wide).ln().abs()
            });
            let raised: f64 = raised.sum();
            let shares = b_fit.proportions.iter().zip(b_fit.covariances.outer_iter());
            let nats = shares.map(|(share, own)| share * problem.n as f64 * narrowness(own));
            let measure = nats.sum::<f64>().max(f.abs()).max(g.abs());
            prop_assert!((f - g).abs() <= 1e-6 * measure + raised, "{}: {f} {g}", a.name);
        }
    }
}

/// Whether a row is as near to two means as f32 can tell.
fn has_tie(points: ArrayView2<'_, f64>, means: &Array2<f64>) -> bool {
    points.outer_iter().any(|row| {
        let squared = means.outer_iter().map(|mean| squared_distance(row, mean));
        let mut squared: Vec<f64> = squared.collect();
        squared.sort_by(f64::total_cmp);
        squared
            .windows(2)
            .any(|two| two[1] - two[0] <= 2e-6 * two[1])
    })
}

/// The root of the condition number of the correlations of a covariance (d, d): 1 where columns are independent.
fn narrowness(covariance: ArrayView2<'_, f64>) -> f64 {
    let d = covariance.nrows();
    let deviations = covariance.diag().mapv(f64::sqrt);
    let correlations = DMatrix::from_fn(d, d, |i, j| {
        covariance[[i, j]] / (deviations[i] * deviations[j])
    });
    let found = correlations.symmetric_eigenvalues();
    (found.max() / found.min().max(f64::EPSILON)).sqrt()
}

/// Shifts that are exact move the means; powers of two scale them exactly. Points are multiples of 1/1024.
fn shifts_and_scales(x: &Array2<f64>, problem: Problem, algorithm: &Algorithm<f64>) {
    let data = Dense::new(x.view()).unwrap();
    // Off the lattice of the points by less than half a step, each by another amount: no point is as far from two
    // seeds, where rounding alone would decide.
    let mut start = seeds(x, problem.k, problem.seed);
    for (c, mut seed) in start.outer_iter_mut().enumerate() {
        seed += (c + 1) as f64 / f64::from(1 << 20);
    }
    let (moved_rows, scaled_rows) = (x.mapv(|v| v + 256.0), x.mapv(|v| v * 8.0));
    let moved_data = Dense::new(moved_rows.view()).unwrap();
    let scaled_data = Dense::new(scaled_rows.view()).unwrap();
    let from = |change: &dyn Fn(f64) -> f64| Settings::fixed(start.mapv(change).view(), 4);
    let (as_it_is, moved, scaled) = (from(&|v| v), from(&|v| v + 256.0), from(&|v| v * 8.0));
    let (a, mut b) = algorithm.equally_long((&data, &as_it_is), (&moved_data, &moved));
    b.means -= 256.0;
    same(algorithm.name, &a, &b, digits(&a));
    assert_eq!(&a.labels, &b.labels);
    let (a, c) = algorithm.equally_long((&data, &as_it_is), (&scaled_data, &scaled));
    // Bit for bit: a power of two changes no rounding. Only F itself is rounded elsewhere, which may
    // let a phase of one of them stop an iteration earlier at tolerance 0.
    if a.report.iterations == c.report.iterations {
        assert_eq!(a.means.mapv(|v| v * 8.0), c.means);
    } else {
        assert!(distance(&a.means.mapv(|v| v * 8.0), &c.means) < 1e-9);
    }
    assert_eq!(&a.labels, &c.labels);
    let log_unit = (problem.n * algorithm.rows.known(problem.d)) as f64 * 8f64.ln();
    for (f, g) in a.report.free_energies.iter().zip(&c.report.free_energies) {
        assert!(close(*f, g + log_unit, 1e-12));
    }
}

/// A similarity has no unit: in another one (a power of two, so that nothing is rounded otherwise) the same
/// components are drawn, and the fit is the same bit for bit (\[DG\] Eq. 12 as printed would draw others).
#[test]
fn similarities_have_no_unit() {
    let x = blobs::<f64>(600, 5, 30, 12);
    let fit = |x: &Array2<f64>| {
        let data = Dense::new(x.view()).unwrap();
        let builder = algorithms::d_gmm(30, 3, 3).tolerance(0.0).max_iterations(8);
        builder.seed(5).build().unwrap().fit(&data).unwrap()
    };
    let a = fit(&x);
    for unit in [1024.0, 1.0 / 1024.0] {
        let b = fit(&x.mapv(|v| v * unit));
        assert_eq!(a.model.means().mapv(|v| v * unit), b.model.means());
        assert_eq!(
            (&a.supports, &a.search_labels),
            (&b.supports, &b.search_labels)
        );
    }
}

/// Weights and copies are the same in distribution where the search, the seeds or the coreset are random, and so are two rows
/// of half the weight.
#[test]
fn copies_in_distribution() {
    let x = blobs::<f64>(150, 2, 6, 9);
    let weights: Vec<usize> = (0..150).map(|n| [1, 0, 4, 2][n % 4]).collect();
    let w = Array1::from_iter(weights.iter().map(|&w| w as f64));
    let weighted = Dense::weighted(x.view(), w.view()).unwrap();
    let rows: Vec<usize> = (0..150).flat_map(|n| vec![n; weights[n]]).collect();
    let copies = x.select(Axis(0), &rows);
    let copied = Dense::new(copies.view()).unwrap();
    let twice = concatenate![Axis(0), x, x];
    let half = concatenate![Axis(0), w, w] / 2.0;
    let halved = Dense::weighted(twice.view(), half.view()).unwrap();
    // Copies of a row know different coordinates of it, and together more than one row of their weight.
    for algorithm in all::<f64>().into_iter().filter(|a| a.rows != Known::Sketch) {
        let errors = |data: &Dense<f64>, seeds: Range<u64>| {
            mean_of(seeds, |seed| {
                let fit = (algorithm.fit)(data, &Settings::new(6, seed)).unwrap();
                fit.model.quantization_error(&weighted).unwrap()
            })
        };
        let a = errors(&weighted, 0..300);
        for (what, data, from) in [("copies", &copied, 1_000), ("halves", &halved, 2_000)] {
            let what = format!("{}, {what}", algorithm.name);
            // 1.0 % of the mean covers what differs by right: draws are without replacement among rows.
            same_mean(what, a, errors(data, from..from + 300), 0.01);
        }
    }
}

/// A seed gives the same fit again, and any other seed another one, also beyond 32 bits.
#[test]
fn the_seed_decides() {
    let x = blobs::<f32>(1_500, 4, 15, 23);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<f32>() {
        let fit = |seed| {
            let settings = Settings {
                max_iterations: 3,
                ..Settings::new(12, seed)
            };
            let fit = (algorithm.fit)(&data, &settings).unwrap();
            (fit.means, fit.report.free_energies, fit.labels, fit.coreset)
        };
        let one = fit(7);
        assert!(fit(7) == one, "{}", algorithm.name);
        for other in [8, 7 + (1 << 32)] {
            assert!(fit(other) != one, "{}, seed {other}", algorithm.name);
        }
    }
}

/// Many shards of several blocks each, with weights, in f64.
#[test]
fn threads_do_not_matter_at_size() {
    let x = blobs::<f64>(40_000, 3, 50, 1);
    let w = Array1::from_shape_fn(40_000, |n| (n % 5) as f64 / 3.0);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    for algorithm in all::<f64>() {
        let settings = Settings {
            max_iterations: 4,
            ..Settings::new(50, 3)
        };
        same_on_threads(algorithm.name, &[2, 7], || {
            let fit = (algorithm.fit)(&data, &settings).unwrap();
            let energies = fit.report.free_energies;
            (fit.means, energies, fit.labels, fit.supports)
        });
    }
}

/// E[sum of coreset weights] = total weight, and so it is for every row.
#[test]
fn coreset_weights_are_unbiased() {
    let (n, seeds) = (200, 400);
    let x = blobs::<f64>(n, 3, 4, 5);
    let w = Array1::from_shape_fn(n, |n| (n % 3) as f64);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let b = || algorithms::k_means(3).max_iterations(0);
    for uniform in [false, true] {
        // One column for each seed: the weights of all rows.
        let mut drawn = Array2::<f64>::zeros((n, seeds));
        for seed in 0..seeds {
            let fit = if uniform {
                let b = b().coreset(UniformCoreset::new(50)).seed(seed as u64);
                b.build().unwrap().fit(&data).unwrap()
            } else {
                let b = b().coreset(Lightweight::new(50)).seed(seed as u64);
                b.build().unwrap().fit(&data).unwrap()
            };
            let subset = fit.coreset.unwrap();
            assert!(subset.rows.is_sorted() && subset.rows.iter().all(|&n| w[n] > 0.0));
            for (row, weight) in subset.rows.iter().zip(&subset.weights) {
                drawn[[*row, seed]] += weight;
            }
        }
        let unbiased = |of: ArrayView1<f64>, expected: f64, errors: f64, what: &str| {
            let mean = of.mean().unwrap();
            let slack = errors * of.std(0.0) / (seeds as f64).sqrt() + 1e-9;
            assert!(
                (mean - expected).abs() <= slack,
                "{what}: {mean} for {expected}"
            );
        };
        unbiased(drawn.sum_axis(Axis(0)).view(), w.sum(), 4.0, "all rows");
        for (row, of) in drawn.outer_iter().enumerate() {
            // Among this many rows, one may be off by more.
            unbiased(of, w[row], 5.0, &format!("row {row}"));
        }
    }
}

/// The lazy rule: a point that stays is never farther than 1 + epsilon times its nearest component.
#[test]
fn lazy_points_are_near_enough() {
    for (epsilon, seed) in [0.05, 0.2, 1.0]
        .into_iter()
        .flat_map(|e| [(e, 3), (e, 4), (e, 5)])
    {
        let x = blobs::<f64>(500, 2, 8, seed);
        let data = Dense::new(x.view()).unwrap();
        let lazy = |epsilon| {
            let lazy = algorithms::lazy_k_means(8, epsilon).seed(1).build();
            lazy.unwrap().fit(&data).unwrap()
        };
        let (fit, plain) = (lazy(epsilon), lazy(0.0));
        let lloyd = algorithms::k_means(8).seed(1).build().unwrap();
        let lloyd = lloyd.fit(&data).unwrap();
        assert_eq!(plain.model.means(), lloyd.model.means());
        let mut stayed = 0;
        for (n, &label) in fit.search_labels.iter().enumerate() {
            let d = |c: usize| squared_distance(x.row(n), fit.model.means().row(c)).sqrt();
            let nearest = (0..8).map(d).fold(f64::INFINITY, f64::min);
            assert!(d(label as usize) <= (1.0 + epsilon) * nearest * (1.0 + 1e-12));
            stayed += usize::from(d(label as usize) > nearest);
        }
        assert!(stayed > 0, "the rule was never used: {epsilon}, {seed}");
    }
}

/// A step of k-means can lower the log-likelihood of its mixture while it raises the free energy ([KM] Fig. S4).
#[test]
fn the_likelihood_may_fall_where_the_free_energy_rises() {
    let mut falls = 0;
    for seed in 0..20 {
        let mut rng = Rng::from_seed(seed);
        let centres = Array2::from_shape_fn((7, 2), |_| 1.5 * rng.normal());
        let x = Array2::from_shape_fn((350, 2), |(n, j)| centres[[n % 7, j]] + rng.normal());
        let data = Dense::new(&x).unwrap();
        let mut before: Option<[f64; 2]> = None;
        for iterations in 0..30 {
            let k_means = algorithms::k_means(7).seed(seed).tolerance(0.0);
            let fit = k_means.max_iterations(iterations).build().unwrap();
            let fit = fit.fit(&data).unwrap();
            if fit.report.iterations < iterations {
                break;
            }
            let likelihood = fit.model.log_likelihood(&data).unwrap() / 350.0;
            let bound = fit.report.free_energies.last().unwrap() / 350.0;
            assert!(bound <= likelihood);
            if let Some([old_likelihood, old_bound]) = before {
                assert!(bound >= old_bound - 1e-12, "{seed}: {bound} {old_bound}");
                falls += usize::from(likelihood < old_likelihood - 1e-3);
            }
            before = Some([likelihood, bound]);
        }
    }
    assert!(falls >= 3, "{falls}");
}

/// (E10) at the first iterations of k-means-C' from the given start.
fn identity_after_the_m_step(
    x: &Array2<f64>,
    w: &Array1<f64>,
    start: &Array2<f64>,
    c_prime: usize,
) {
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let (k, d) = (start.nrows() as f64, x.ncols() as f64);
    let fit = |iterations| {
        algorithms::k_means_c_prime(start.nrows(), c_prime)
            .seeder(Given::new(start.view()))
            .tolerance(0.0)
            .max_iterations(iterations)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap()
    };
    for iteration in 0..4 {
        let (old, new) = (fit(iteration), fit(iteration + 1));
        if new.report.iterations != iteration + 1 {
            break;
        }
        let (support, q) = old
            .model
            .truncated_responsibilities(&data, c_prime)
            .unwrap();
        let sigma2 = new.model.variance();
        let norm = -k.ln() - d / 2.0 * (2.0 * std::f64::consts::PI * sigma2).ln();
        let (mut f, mut entropy) = (0.0, 0.0);
        for n in 0..x.nrows() {
            for (&c, &q) in support
                .row(n)
                .iter()
                .zip(q.row(n))
                .filter(|(_, q)| **q > 0.0)
            {
                let d2 = squared_distance(x.row(n), new.model.means().row(c as usize));
                f += w[n] * q * (norm - d2 / (2.0 * sigma2) - q.ln());
                entropy -= w[n] * q * q.ln();
            }
        }
        let (f, entropy) = (f / w.sum(), entropy / w.sum());
        let identity = norm - d / 2.0 + entropy;
        assert!(close(f, identity, 1e-9), "{f} {identity}");
        // The next search can only raise it.
        assert!(last(&new) >= f * w.sum() - 1e-9 * (f * w.sum()).abs());
    }
}

/// k-means raises F strictly until it has converged, and F is what the quantization error says (E9).
fn k_means_rises(x: &Array2<f64>, k: usize, seed: u64) {
    let data = Dense::new(x.view()).unwrap();
    let builder = algorithms::k_means(k)
        .tolerance(0.0)
        .max_iterations(1_000)
        .seed(seed);
    let fit = builder.build().unwrap().fit(&data).unwrap();
    let f = &fit.report.free_energies;
    // Once nothing changes but the last bits, nothing ever changes again.
    let settled = |pair: &[f64]| (pair[1] - pair[0]).abs() <= 1e-13 * pair[0].abs();
    let rising = f.windows(2).take_while(|pair| !settled(pair)).count();
    for pair in f.windows(2).take(rising) {
        assert!(pair[1] > pair[0], "{f:?}");
    }
    assert!(f.windows(2).skip(rising).all(settled), "{f:?}");
    let error = fit.model.quantization_error(&data).unwrap();
    let (n, d) = (x.nrows() as f64, x.ncols() as f64);
    assert!(close(fit.model.variance(), error / (n * d), 1e-9));
    let two_pi_e = 2.0 * std::f64::consts::PI * std::f64::consts::E;
    let by_error = -n * ((k as f64).ln() + d / 2.0 * (two_pi_e * error / (n * d)).ln());
    assert!(close(last(&fit), by_error, 1e-9));
}

/// With the model fixed, more truncated searches never lower F.
fn searches_never_lower(x: &Array2<f64>, k: usize, random: usize) {
    let data = Dense::new(x.view()).unwrap();
    testing::e_step(&Neighborhood::new(2, 3).random(random), &data, k).unwrap();
    testing::e_step(&SimilaritySampling::new(2, random + 1), &data, k).unwrap();
}

/// Whether a point is as far from its two nearest centres, up to the rounding of f32.
fn tied(points: &Array2<f64>, centres: &Array2<f64>) -> bool {
    points.outer_iter().any(|point| {
        let to = |centre: ArrayView1<f64>| (&point - &centre).mapv(|v| v * v).sum().sqrt();
        let (mut nearest, mut next) = (f64::INFINITY, f64::INFINITY);
        for distance in centres.outer_iter().map(to) {
            next = next.min(distance.max(nearest));
            nearest = nearest.min(distance);
        }
        next - nearest < 1e-3
    })
}

/// The difference that two fits of four iterations may have: rounding of sums moves a pivot by `lost`, and EM makes a
/// difference ten times as large in each of the three further iterations (see `precision`).
fn digits(fit: &Outcome<f64>) -> f64 {
    (1e3 * fit.lost()).max(1e-8)
}

/// Whether F is the naive sum, whose terms are off by what the pivots have lost: half for the logarithm of each, and half for
/// the squares, which are 1 in the mean. Its means are rounded, by up to twice their last digit in other axes: so are the squares of
/// rows about them, in narrow variances.
fn near_naive(f: f64, naive: f64, x: &Array2<f64>, fit: &Outcome<f64>) -> bool {
    let widest = x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let shares = fit.proportions.iter().zip(fit.variances.outer_iter());
    let rounded = shares.map(|(share, own)| {
        let narrow = own.iter().map(|v| f64::EPSILON * widest / v.sqrt());
        4.0 * share * x.nrows() as f64 * narrow.sum::<f64>()
    });
    let rounded: f64 = rounded.sum();
    (f - naive).abs() <= 1e-9 * f.abs().max(1.0) + fit.lost() * x.len() as f64 + rounded
}

/// F from its definition (E3), on the rows EM ran on.
fn naive_free_energy(x: &Array2<f64>, fit: &Outcome<f64>, k: usize) -> f64 {
    let everything: Vec<u32> = (0..k as u32).collect();
    (0..fit.labels.len())
        .map(|i| {
            let (row, weight) = match &fit.coreset {
                Some(c) => (c.rows[i], c.weights[i]),
                None => (i, 1.0),
            };
            let support = match &fit.supports {
                Some(supports) => supports.row(i).to_vec(),
                None => everything.clone(),
            };
            let terms: Vec<f64> = support
                .iter()
                .map(|&c| fit.log_joint(x.row(row), c as usize))
                .collect();
            let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            weight * (most + terms.iter().map(|t| (t - most).exp()).sum::<f64>().ln())
        })
        .sum()
}

/// Lloyd's algorithm, as short as it can be.
fn lloyd(x: &Array2<f64>, mut centres: Array2<f64>, iterations: usize) -> (Array2<f64>, Vec<u32>) {
    let nearest = |centres: &Array2<f64>| -> Vec<u32> {
        let d2 = |n: usize, c: usize| squared_distance(x.row(n), centres.row(c));
        let best = |n| (0..centres.nrows()).min_by(|&a, &b| d2(n, a).total_cmp(&d2(n, b)));
        (0..x.nrows()).map(|n| best(n).unwrap() as u32).collect()
    };
    for _ in 0..iterations {
        let labels = nearest(&centres);
        for c in 0..centres.nrows() {
            let rows: Vec<_> = (0..x.nrows()).filter(|&n| labels[n] == c as u32).collect();
            if !rows.is_empty() {
                centres
                    .row_mut(c)
                    .assign(&x.select(Axis(0), &rows).mean_axis(Axis(0)).unwrap());
            }
        }
        // A centre without rows gets the row farthest from the new means, and from those chosen before (E54).
        let mut chosen: Vec<usize> = Vec::new();
        for c in (0..centres.nrows()).filter(|c| !labels.contains(&(*c as u32))) {
            let left = |n: usize| {
                let own = squared_distance(x.row(n), centres.row(labels[n] as usize));
                let chosen = chosen.iter();
                let apart = chosen.map(|&row| squared_distance(x.row(n), x.row(row)));
                apart.fold(own, f64::min)
            };
            let far = (0..x.nrows()).max_by(|&a, &b| left(a).total_cmp(&left(b)));
            let far = far.filter(|&n| left(n) > 0.0);
            if let Some(far) = far {
                centres.row_mut(c).assign(&x.row(far));
                chosen.push(far);
            }
        }
    }
    let labels = nearest(&centres);
    (centres, labels)
}

/// Real data obeys the same laws; says so when it is not there.
#[test]
fn laws_on_real_data() {
    for (name, k) in [("s1", 15), ("unbalance", 8), ("statlog", 20)] {
        let path = format!(
            "{}/../../shared/data/{name}.npy",
            env!("CARGO_MANIFEST_DIR")
        );
        let Ok(x) = ndarray_npy::read_npy::<_, Array2<f64>>(&path) else {
            // Past the capture of the test harness: an absent set must not look like a passed one.
            writeln!(
                std::io::stderr(),
                "SKIPPED: {path} is absent; its laws were not checked"
            )
            .unwrap();
            continue;
        };
        let data = Dense::new(x.view()).unwrap();
        let (start, ones) = (seeds(&x, k, 1), Array1::ones(x.nrows()));
        for c_prime in [1, 2, k] {
            identity_after_the_m_step(&x, &ones, &start, c_prime);
        }
        k_means_rises(&x, k, 2);
        searches_never_lower(&x, k, 1);
        for algorithm in all::<f64>() {
            let mut settings = Settings::new(k, 4);
            settings.max_iterations = 15;
            let fit = (algorithm.fit)(&data, &settings).unwrap();
            let what = format!("{name} {}", algorithm.name);
            rises(what, &fit.report.free_energies, 0.0, 1e-9);
            if algorithm.is_naive() {
                let naive = naive_free_energy(&x, &fit, k);
                let (last, name) = (last(&fit), format!("{name} {}", algorithm.name));
                let of_rows = last - fit.prior;
                assert!(
                    near_naive(of_rows, naive, &x, &fit),
                    "{name}: {last} {naive}"
                );
            }
            assert!(algorithm.bayesian || last(&fit) <= fit.bound + 1e-9 * fit.bound.abs());
        }
    }
}
