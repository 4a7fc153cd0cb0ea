//! Families at the edges of their arithmetic: shares that are small relative to a mass but not to a variance, numbers near
//! the ends of their type, wide supports, and densities over many components.

use crate::common::{blobs, rises, rounding};
use coremix::Float;
use coremix::data::Data;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{algorithms, metrics};
use ndarray::{Array1, Array2, Axis, array};

/// Free energies, variances and means of a few iterations of soft EM, with rows in this order.
macro_rules! soft_em {
    ($family:expr, $x:expr, $w:expr, $seeds:expr, $order:expr, $variances:expr) => {{
        let (x, w) = ($x.select(Axis(0), $order), $w.select(Axis(0), $order));
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let fit = algorithms::gmm($seeds.nrows())
            .m_step($family)
            .seeder(Given::new($seeds.view()))
            .tolerance(0.0)
            .max_iterations(6)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let f = fit.report.free_energies.clone();
        rises(format!("{:?}", $order), &f, w.sum(), 1e-9);
        let variances: Vec<f64> = $variances(&fit.model);
        let means: Vec<f64> = fit.model.means().iter().copied().collect();
        (f, variances, means)
    }};
}

/// One family, in all these orders of the rows: results differ only by rounding.
macro_rules! same_in_all_orders {
    ($family:expr, $x:expr, $w:expr, $seeds:expr, $orders:expr, $variances:expr) => {{
        let mut first = None;
        for order in $orders {
            let (f, variances, means) = soft_em!($family, $x, $w, $seeds, &order[..], $variances);
            let Some((f0, variances0, means0)) = &first else {
                first = Some((f, variances, means));
                continue;
            };
            let near = |a: &[f64], b: &[f64], within: f64| {
                a.iter()
                    .zip(b)
                    .all(|(a, b)| (a - b).abs() <= within * b.abs().max(1e-300))
            };
            assert!(near(&f, f0, 1e-9), "{order:?}: {f:?} {f0:?}");
            assert!(
                near(&variances, variances0, 1e-9),
                "{order:?}: {variances:?} {variances0:?}"
            );
            let scale = variances.iter().fold(0.0f64, |most, v| most.max(*v)).sqrt();
            let off = means.iter().zip(means0).map(|(a, b)| (a - b).abs());
            let off = off.fold(0.0, f64::max);
            assert!(off <= 1e-9 * scale, "{order:?}: {off} {scale}");
        }
    }};
}

/// As above, for all kinds with variances of columns or components.
macro_rules! same_in_all_orders_of_kinds {
    ($x:expr, $w:expr, $seeds:expr, $orders:expr) => {
        same_in_all_orders!(
            Gaussian::new(Covariance::Spherical),
            $x,
            $w,
            $seeds,
            $orders,
            |m: &GaussianMixture<f64>| m.variances().column(0).to_vec()
        );
        same_in_all_orders!(
            Gaussian::new(Covariance::Diagonal),
            $x,
            $w,
            $seeds,
            $orders,
            |m: &GaussianMixture<f64>| { m.variances().iter().copied().collect() }
        );
        same_in_all_orders!(
            Gaussian::new(Covariance::TiedSpherical),
            $x,
            $w,
            $seeds,
            $orders,
            |m: &GaussianMixture<f64>| vec![m.variance()]
        );
    };
}

/// A row of little weight so far out that the variance is its own.
#[test]
fn a_small_share_far_away_counts_in_any_order() {
    let x = array![[0.0, 1.0], [0.5, 1.5], [1e9, -1e9]];
    let w = array![1e10, 1e10, 1e-7];
    let seeds = array![[0.0, 0.0]];
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]];
    same_in_all_orders_of_kinds!(x, w, seeds, &orders);
}

/// Weights over forty powers of ten, and rows the farther out the less they weigh, over several components.
#[test]
fn the_order_of_rows_does_not_matter() {
    let (n, d, k) = (300, 3, 4);
    let mut rng = Rng::from_seed(8);
    let power: Vec<f64> = (0..n).map(|_| 20.0 * rng.uniform()).collect();
    let x = Array2::from_shape_fn((n, d), |(i, _)| {
        (i % k) as f64 * 3.0 + rng.normal() * (1.0 + 10f64.powf(0.4 * power[i]))
    });
    let w = Array1::from_shape_fn(n, |i| 10f64.powf(10.0 - 2.0 * power[i]));
    let seeds = Array2::from_shape_fn((k, d), |(c, _)| c as f64 * 3.0);
    let forth: Vec<usize> = (0..n).collect();
    let back: Vec<usize> = (0..n).rev().collect();
    let mut heavy_first = forth.clone();
    heavy_first.sort_by(|&a, &b| w[b].total_cmp(&w[a]));
    let light_first: Vec<usize> = heavy_first.iter().rev().copied().collect();
    let orders = [forth, back, heavy_first, light_first];
    same_in_all_orders_of_kinds!(x, w, seeds, &orders);
}

/// A fit and its model's answers on the data: numbers, and F that never falls and stays below the log-likelihood.
fn sound<F: Float, M: Mixture<F>>(
    fit: &Fit<M>,
    data: &dyn Data<F>,
    full: bool,
    case: &str,
) -> Vec<f64> {
    let within = rounding::<F>();
    let f = &fit.report.free_energies;
    let weight: f64 = (0..data.len()).map(|n| data.weight(n)).sum();
    rises(case, f, weight, within);
    let last = f[f.len() - 1];
    // Squares and weights that are both large have no finite product, and that is said.
    let ll = fit.model.log_likelihood(data).unwrap();
    let near = within * last.abs().max(weight);
    match fit.model.score(data) {
        Ok(score) => assert!(score.quantization_error.is_finite() && score.log_likelihood == ll),
        Err(error) => assert!(
            weight > 1e20 && error.to_string().contains("divide the weights"),
            "{case}: {error}"
        ),
    }
    assert!(ll.is_finite(), "{case}: {ll}");
    assert!(last <= ll + near, "{case}: {last} {ll}");
    assert!(!full || last >= ll - near, "{case}: {last} {ll}");
    let shares = fit.model.responsibilities(data).unwrap();
    for shares in shares.rows() {
        let sum: f64 = shares.iter().map(|q| q.to_f64()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{case}: {shares}");
    }
    f.clone()
}

/// All families and some searches on one data set: the free energies of each.
fn all_families<F: Float>(x: &Array2<F>, w: &Array1<f64>, case: &str) -> Vec<Vec<f64>> {
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let seeds = x.slice_axis(Axis(0), (0..3).into()).to_owned();
    let mut all = Vec::new();
    for width in [1, 2, 3] {
        macro_rules! family {
            ($family:expr, $name:expr) => {
                let case = format!("{case}, {}, width {width}", $name);
                let builder = algorithms::gmm(3)
                    .e_step(Exhaustive::truncated(width))
                    .m_step($family)
                    .seeder(Given::new(seeds.view()))
                    .tolerance(0.0)
                    .max_iterations(6);
                let fit = builder.clone().build().unwrap().fit(&data).unwrap();
                all.push(sound(&fit, &data, width == 3, &case));
                assert!(fit.model.means().iter().all(|x| x.is_finite()), "{case}");
                let drawn = fit.model.sample(5, 1).unwrap().0;
                assert!(drawn.iter().all(|x| x.is_finite()), "{case}: {drawn}");
                // Seeds that are drawn, and a coreset.
                let fit = builder.seeder(KMeansPlusPlus::default()).build().unwrap();
                sound(&fit.fit(&data).unwrap(), &data, width == 3, &case);
                let fit = algorithms::vc_gmm(3, 30, 2, 2)
                    .m_step($family)
                    .build()
                    .unwrap();
                let fit = fit.fit(&data).unwrap();
                let f = &fit.report.free_energies;
                assert!(f.iter().all(|f| f.is_finite()), "{case}: {f:?}");
                let ll = fit.model.log_likelihood(&data).unwrap();
                assert!(ll.is_finite(), "{case}");
            };
        }
        family!(Gaussian::new(Covariance::TiedSpherical), "shared");
        family!(Gaussian::new(Covariance::Spherical), "isotropic");
        family!(
            Gaussian::new(Covariance::Spherical).equal_proportions(),
            "isotropic, equal"
        );
        family!(Gaussian::new(Covariance::Diagonal), "diagonal");
        family!(Gaussian::new(Covariance::Tied), "tied");
        family!(Gaussian::new(Covariance::Full), "full");
        family!(Gaussian::new(Covariance::Factors(1)), "factors");
    }
    all
}

/// Small whole numbers, twice the powers of two: scaled by one they stay what they are, to the last bit. Columns do not
/// determine one another: then F would be that of the floor of variances, which is an estimate where squares underflow.
fn whole_numbers(n: usize, d: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, d), |(i, j)| {
        ((7 * i + 3 * j + i * i % 5 + i * j) % 11) as f64
    })
}

/// From the smallest numbers of a type to the largest it takes, with weights as far apart: everything is finite, and F is that
/// of the same numbers at 1, in another unit.
fn in_any_unit<F: Float>(exponents: &[i32]) {
    let (n, d) = (40, 2);
    let x = whole_numbers(n, d);
    for weight in [-330, 0, 330] {
        let weight = 2f64.powi(weight);
        let w = Array1::from_shape_fn(n, |i| (1 + i % 4) as f64 * weight);
        let at_one = all_families(&x.mapv(F::from_f64), &w, &format!("weights {weight:e}"));
        for &e in exponents {
            // Two factors: one alone may be below the smallest number.
            let scaled = x.mapv(|x| F::from_f64(x * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)));
            let case = format!("2^{e}, weights {weight:e}");
            let all = all_families(&scaled, &w, &case);
            let shift = -w.sum() * d as f64 * f64::from(e) * std::f64::consts::LN_2;
            for (family, (f, at_one)) in all.iter().zip(&at_one).enumerate() {
                for (f, g) in f.iter().zip(at_one) {
                    let off = (f - shift - g).abs();
                    let within = if F::EPSILON < 1e-10 { 1e-9 } else { 1e-5 };
                    assert!(
                        off <= within * (shift.abs() + w.sum()),
                        "{case}, family {family}: {f} {g} {shift}"
                    );
                }
            }
        }
    }
}

#[test]
fn fits_in_any_unit_of_f64() {
    in_any_unit::<f64>(&[
        -1_074, -1_050, -997, -600, -533, -530, -511, -300, 300, 480, 494,
    ]);
}

#[test]
fn fits_in_any_unit_of_f32() {
    in_any_unit::<f32>(&[-149, -140, -127, -124, -64, 64, 110, 121]);
}

/// Many equal rows make the unit of the fit small; the others are so far out in it that the products which scores are made of
/// leave the range of `f32`, where the scores themselves do not.
#[test]
fn scores_whose_terms_leave_the_range() {
    let (near, far, less) = (0.1f32, 8.5070587e37f32, 1.6777218e37f32);
    // The next number: between equal rows alone there is no distance.
    let next = 0.10000001f32;
    let rows = [
        [near, far],
        [far, far],
        [-1e30, next],
        [-1e30, next],
        [less, 1e30],
        [next, next],
        [next, next],
        [next, next],
        [next, next],
        [next, next],
        [next, next],
        [next, next],
        [next, next],
        [next, -far],
        [-1e30, near],
        [near, near],
        [1e21, near],
        [far, near],
        [-far, -1e30],
        [near, far],
        [less, 1e29],
        [near, -far],
        [-1e30, near],
        [far, 1e33],
        [near, far],
        [-1e36, -far],
        [-1e30, near],
        [far, less],
    ];
    let x = Array2::from(rows.to_vec());
    let wide = x.mapv(f64::from);
    let seeds = array![
        [0.1, 0.1],
        [0.1, -far],
        [-far, -1e30],
        [far, far],
        [far, 0.1],
        [0.1, far]
    ];
    macro_rules! fit {
        ($family:expr, $x:expr, $seeds:expr, $iterations:expr) => {{
            let data = Dense::new($x.view()).unwrap();
            let builder = algorithms::gmm(6).m_step($family).tolerance(0.0);
            let builder = builder.max_iterations($iterations);
            let builder = builder.seeder(Given::new($seeds.view()));
            let fit = builder.build().unwrap().fit(&data).unwrap();
            // Equal rows in a component have the floor of their type (E20): its share of the free energy.
            let spherical = fit.model.covariance_kind() == Covariance::Spherical;
            let (means, mut floors) = (fit.model.means().mapv(f64::from), 0.0);
            for ((c, j), variance) in fit.model.column_variances().indexed_iter() {
                let columns = if spherical { 0..2 } else { j..j + 1 };
                let far = columns.fold(0.0, |far, j| means[[c, j]].abs().max(far));
                if *variance < 1e-12 * far.powi(2) {
                    let rows = $x.nrows() as f64 * fit.model.proportions()[c];
                    floors -= rows / 2.0 * variance.ln();
                }
            }
            (fit.report.free_energies.clone(), floors, fit.search_labels)
        }};
    }
    macro_rules! same_in_both_types {
        ($family:expr) => {
            let narrow = |iterations| fit!($family, x, seeds, iterations);
            let exact = |iterations| fit!($family, wide, seeds.mapv(f64::from), iterations);
            let ((f, _, labels), (exact_f, _, exact_labels)) = (narrow(4), exact(4));
            assert_eq!(labels, exact_labels, "{f:?} {exact_f:?}");
            rises("terms", &f, 0.0, 1e-6);
            for (steps, (f, exact_f)) in f.iter().zip(&exact_f).enumerate() {
                // The first search is that of the start, which has no floor.
                let floors = |floors: f64| if steps > 0 { floors } else { 0.0 };
                let f = f - floors(narrow(steps.max(1)).1);
                let exact_f = exact_f - floors(exact(steps.max(1)).1);
                let within = 1e-7 * exact_f.abs();
                assert!((f - exact_f).abs() < within, "{steps}: {f} {exact_f}");
            }
        };
    }
    same_in_both_types!(Gaussian::new(Covariance::Spherical));
    same_in_both_types!(Gaussian::new(Covariance::Diagonal));
}

/// As reported: the squares of the values are below the smallest numbers.
#[test]
fn values_whose_squares_vanish() {
    let x = Array2::from_shape_fn((60, 2), |(i, j)| 1e-160 * ((7 * i + 3 * j) % 11) as f64);
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::gmm(3)
        .covariance(Covariance::Spherical)
        .build()
        .unwrap();
    let fit = fit.fit(&data).unwrap();
    sound(&fit, &data, true, "1e-160");
}

/// Rows that are all the same, at 0 and far from it, with learned proportions: whoever has them all has their likelihood.
#[test]
fn rows_that_are_all_zero() {
    fn of<F: Float>() {
        for value in [0.0, 1e-30, 3.0, 1e30] {
            let x = Array2::from_elem((40, 2), F::from_f64(value));
            let w = Array1::from_elem(40, 1.5);
            all_families(&x, &w, &format!("all {value}"));
        }
    }
    of::<f32>();
    of::<f64>();
}

/// Weights over two hundred powers of ten side by side.
#[test]
fn weights_far_apart() {
    fn of<F: Float>(scales: &[f64]) {
        let x = whole_numbers(40, 2);
        for &scale in scales {
            let x = x.mapv(|x| F::from_f64(x * scale));
            for seed in 0..4 {
                let mut rng = Rng::from_seed(seed);
                let w = Array1::from_shape_fn(40, |_| 10f64.powf(200.0 * rng.uniform() - 100.0));
                all_families(&x, &w, &format!("{scale:e}, weights of seed {seed}"));
            }
        }
    }
    of::<f64>(&[1e-300, 1e-160, 1e-20, 1.0, 1e20, 1e140]);
    of::<f32>(&[1e-38, 1e-20, 1.0, 1e20, 1e36]);
}

/// Seeds as far out as the type takes: fine for weights that are numbers of rows, an error that names the seed where sums
/// of their distances would overflow.
#[test]
fn seeds_far_out_and_heavy_rows() {
    let x = whole_numbers(40, 2);
    let seeds = array![[1e149, -1e149], [0.0, 0.0], [3.0, 3.0]];
    for weight in [1.0, 1e12, 1e100] {
        let w = Array1::from_elem(40, weight);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        macro_rules! family {
            ($family:expr) => {
                for width in [1, 2, 3] {
                    let builder = algorithms::gmm(3).e_step(Exhaustive::truncated(width));
                    let builder = builder.m_step($family).seeder(Given::new(seeds.view()));
                    let case = format!("weight {weight:e}, width {width}");
                    match builder.build().unwrap().fit(&data) {
                        Ok(fit) => {
                            assert!(weight < 1e10, "{case}");
                            sound(&fit, &data, width == 3, &case);
                        }
                        Err(Error::TooLarge {
                            row, column, value, ..
                        }) => {
                            assert!(weight > 1e10, "{case}");
                            assert_eq!((row, value.abs(), column < 2), (0, 1e149, true));
                        }
                        Err(other) => panic!("{case}: {other}"),
                    }
                }
            };
        }
        family!(Gaussian::new(Covariance::TiedSpherical));
        family!(Gaussian::new(Covariance::Spherical));
        family!(Gaussian::new(Covariance::Diagonal));
        family!(Gaussian::new(Covariance::Tied));
        family!(Gaussian::new(Covariance::Full));
        family!(Gaussian::new(Covariance::Factors(1)));
    }
}

/// A sum that leaves the range of `f64` is an error that says so, and not infinity.
#[test]
fn a_quantization_error_beyond_the_type_is_an_error() {
    let x = whole_numbers(40, 2) * 1e140;
    let w = Array1::from_elem(40, 1e100);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    let fit = algorithms::k_means(3).build().unwrap().fit(&data).unwrap();
    assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
    for error in [
        fit.model.quantization_error(&data).unwrap_err(),
        fit.model.score(&data).unwrap_err(),
    ] {
        assert!(error.to_string().contains("divide the weights"), "{error}");
    }
}

/// A variance that the unit of the frame takes below all numbers is an error, and not another variance.
#[test]
fn variances_that_are_lost_beside_the_means() {
    let (means, shares) = (array![[0.0], [1e149]], array![0.5, 0.5]);
    for (first, second) in [(1e-30, 1e-30), (1e-20, 1e-30)] {
        let variances = array![first, second];
        let matrices = array![[[first]], [[second]]];
        let spherical = GaussianMixture::from_parameters(
            Covariance::Spherical,
            means.view(),
            variances.view(),
            shares.view(),
        );
        let full = GaussianMixture::from_parameters(
            Covariance::Full,
            means.view(),
            matrices.view(),
            shares.view(),
        );
        for model in [spherical, full] {
            let error = model.map(drop).unwrap_err().to_string();
            assert!(
                error.contains("too small compared with the means"),
                "{error}"
            );
        }
    }
}

/// Samples keep their spread where squares in the unit of the data are 0, and are finite where components are wider than
/// the type. The means of a boxed model are those that were given.
#[test]
fn samples_and_means_at_the_ends_of_the_range() {
    let x = blobs::<f64>(300, 2, 3, 5) * 1e-165;
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::gmm(3).build().unwrap().fit(&data).unwrap();
    let (drawn, labels) = fit.model.sample(50, 1).unwrap();
    for (row, c) in drawn.outer_iter().zip(&labels) {
        assert!(row != fit.model.means().row(*c as usize));
    }
    let (means, shares) = (
        array![[3.0003757f32, 1e-20], [43.00101, 3e-20]],
        array![0.5, 0.5],
    );
    let wide = array![1e80, 1e80];
    let model = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means.view(),
        wide.view(),
        shares.view(),
    )
    .unwrap();
    let (drawn, _) = model.sample(100, 1).unwrap();
    assert!(drawn.iter().all(|x| x.is_finite()));
    assert_eq!(Mixture::means(&model), means);
}

/// Mixtures that learn a variance for each column end alike in any units of the columns: with missing values and weights.
#[test]
fn units_of_columns_do_not_matter() {
    let n = 400;
    let mut rng = Rng::from_seed(5);
    // One group at the origin, and one beyond it along each column.
    let x = Array2::from_shape_fn((n, 3), |(n, j)| {
        let beyond = if n % 4 == j { 8.0 } else { 0.0 };
        beyond + rng.normal()
    });
    let weights = Array1::from_shape_fn(n, |n| [1.0, 2.0, 0.5][n % 3]);
    let mut holes = x.clone();
    for n in (0..n).step_by(5) {
        holes[[n, n % 3]] = f64::NAN;
    }
    let kinds = [
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
        Covariance::Factors(1),
    ];
    for kind in kinds {
        for x in [&x, &holes] {
            let fit = |scales: &Array1<f64>| {
                let x = x * scales;
                let data = Dense::weighted_with_missing(&x, &weights).unwrap();
                let mixture = algorithms::gmm(4).covariance(kind).tolerance(1e-9);
                let fit = mixture.max_iterations(2_000).fit(&data).unwrap();
                let density = fit.model.log_likelihood(&data).unwrap();
                (fit.model.predict(&data).unwrap(), density)
            };
            let (labels, density) = fit(&array![1.0, 1e3, 1e-4]);
            for scales in [array![3e-4, 1.1, 6e6], array![7e5, 1.0, 1e-3]] {
                let (scaled, of_scaled) = fit(&scales);
                let what = format!("{kind:?}, {scales}");
                let agree = metrics::adjusted_rand_index(labels.view(), scaled.view());
                assert!(agree.unwrap() > 0.999, "{what}");
                if x.iter().all(|x| x.is_finite()) {
                    let shift = scales.mapv(f64::ln).sum() - 0.1f64.ln();
                    let off = (of_scaled + weights.sum() * shift - density).abs();
                    assert!(off < 1e-4 * weights.sum(), "{what}: {off}");
                }
            }
        }
    }
}
