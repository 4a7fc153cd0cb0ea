//! Promises of families with variances and proportions of their own, beyond the laws: how they start, whom a point
//! chooses, what is discarded, and models from known parameters.

use crate::common::{blobs, rises, seeds};
use approx::assert_abs_diff_eq;
use coremix::data::Rows;
use coremix::e_step::{EStep, Search};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::{Block, Rng, Stage};
use coremix::{Float, Phase, algorithms};
use ndarray::{Array1, Array2, Axis, array};

/// One variance and equal proportions for the first two M-steps of a truncated search: until then it is the shared
/// family. With all components in the support nothing is held back.
#[test]
fn truncated_searches_start_with_one_variance() {
    let x = blobs::<f64>(600, 3, 8, 4);
    let data = Dense::new(x.view()).unwrap();
    let start = seeds(&x, 8, 4);
    for width in [1, 2, 8] {
        let builder = algorithms::k_means_c_prime(8, width).seeder(Given::new(start.view()));
        for steps in 0..4 {
            let builder = builder.clone().tolerance(0.0).max_iterations(steps);
            let shared = builder.clone().build().unwrap().fit(&data).unwrap();
            let isotropic = builder.clone().covariance(Covariance::Spherical);
            let isotropic = isotropic.build().unwrap().fit(&data).unwrap();
            let diagonal = builder.covariance(Covariance::Diagonal);
            let diagonal = diagonal.build().unwrap().fit(&data).unwrap();
            let restricted = steps == 0 || (steps <= 2 && width < 8);
            let variances = isotropic.model.variances();
            let off = (&variances / shared.model.variance() - 1.0).mapv(f64::abs);
            let same = off.iter().all(|off| *off < 1e-12);
            assert_eq!(same, restricted, "width {width}, {steps} steps: {off}");
            let off = (&diagonal.model.variances() / shared.model.variance() - 1.0).mapv(f64::abs);
            assert_eq!(off.iter().all(|off| *off < 1e-12), restricted);
            let equal = isotropic.model.proportions().iter().all(|p| *p == 0.125);
            assert_eq!(equal, restricted, "width {width}, {steps} steps");
            if restricted {
                let far = (&isotropic.model.means() - &shared.model.means()).mapv(f64::abs);
                assert!(far.iter().all(|far| *far < 1e-12), "{far}");
                assert_eq!(isotropic.search_labels, shared.search_labels);
            }
        }
    }
}

/// However loose the tolerance, the first two M-steps do not count as settled.
#[test]
fn a_fit_does_not_end_before_variances_are_free() {
    let x = blobs::<f64>(600, 3, 8, 4);
    let data = Dense::new(x.view()).unwrap();
    let builder = algorithms::vc_gmm(8, 300, 3, 3).tolerance(1e9);
    let shared = builder.clone().build().unwrap().fit(&data).unwrap();
    assert_eq!(
        (shared.report.iterations, shared.report.stop),
        (1, Stop::Converged)
    );
    let own = builder
        .clone()
        .covariance(Covariance::Spherical)
        .build()
        .unwrap();
    let own = own.fit(&data).unwrap();
    assert_eq!(
        (own.report.iterations, own.report.stop),
        (3, Stop::Converged)
    );
    let own = builder.covariance(Covariance::Diagonal).max_iterations(1);
    let own = own.build().unwrap().fit(&data).unwrap();
    assert_eq!(
        (own.report.iterations, own.report.stop),
        (1, Stop::MaxIterations)
    );
}

/// K(n) is chosen by the largest log-joint, not by the smallest distance (\[KM\] Eq. 31).
#[test]
fn points_choose_the_likeliest_component() {
    let means = array![[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]];
    let x = array![[0.4, 0.0], [0.01, 0.0], [0.9, 0.3]];
    let data = Dense::new(x.view()).unwrap();
    let proportions = array![0.3, 0.3, 0.4];
    let variances = array![1e-4, 4.0, 1e-6];
    let model = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means.view(),
        variances.view(),
        proportions.view(),
    )
    .unwrap();
    let per_column = variances
        .insert_axis(Axis(1))
        .broadcast((3, 2))
        .unwrap()
        .to_owned();
    let diagonal = GaussianMixture::from_parameters(
        Covariance::Diagonal,
        means.view(),
        per_column.view(),
        proportions.view(),
    )
    .unwrap();
    for (labels, q) in [
        (
            model.predict(&data).unwrap(),
            model.truncated_responsibilities(&data, 2).unwrap(),
        ),
        (
            diagonal.predict(&data).unwrap(),
            diagonal.truncated_responsibilities(&data, 2).unwrap(),
        ),
    ] {
        // The nearest means are the third, the first and the second.
        assert_eq!(labels, array![1, 0, 1]);
        assert_eq!(q.0.row(1), array![0, 1]);
    }
    // At equal distance the larger proportion wins.
    let means = array![[-1.0], [1.0]];
    let x = array![[0.0], [-0.2]];
    let model = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means.view(),
        array![1.0, 1.0].view(),
        array![0.1, 0.9].view(),
    )
    .unwrap();
    let data = Dense::new(x.view()).unwrap();
    assert_eq!(model.predict(&data).unwrap(), array![1, 1]);
    let q = model.responsibilities(&data).unwrap();
    assert_abs_diff_eq!(q[[0, 1]], 0.9_f64, epsilon = 1e-12);
}

/// A component without mass is discarded and counted; with equal proportions it stays a candidate.
#[test]
fn components_without_mass_are_discarded() {
    let x = blobs::<f64>(200, 2, 3, 7);
    let data = Dense::new(x.view()).unwrap();
    let mut start = seeds(&x, 4, 7);
    let far = Array1::from_elem(2, 1e4);
    start.row_mut(2).assign(&far);
    macro_rules! check {
        ($m_step:expr, $discarded:expr) => {
            for e_step in [Exhaustive::nearest(), Exhaustive::truncated(2), Exhaustive::all()] {
                let builder = algorithms::k_means(4).e_step(e_step).m_step($m_step);
                let builder = builder.seeder(Given::new(start.view())).tolerance(0.0);
                let fit = builder.max_iterations(8).build().unwrap().fit(&data).unwrap();
                let model = &fit.model;
                // Responsibilities over all components reach the far seed in the first search, whose variance is
                // that of distances to the nearest.
                assert_eq!(fit.report.zero_mass, 1);
                assert_eq!(model.proportions()[2] == 0.0, $discarded);
                assert_eq!(model.means().row(2), far);
                assert_abs_diff_eq!(model.proportions().sum(), 1.0, epsilon = 1e-12);
                assert!(model.predict(&data).unwrap().iter().all(|c| *c != 2));
                // A point at its very mean: not even there, once it is discarded.
                let there = start.select(Axis(0), &[2]);
                let there = Dense::new(there.view()).unwrap();
                assert_eq!(model.predict(&there).unwrap()[0] == 2, !$discarded);
                assert_eq!(model.responsibilities(&there).unwrap()[[0, 2]] == 0.0, $discarded);
                assert!(model.log_likelihood(&there).unwrap().is_finite());
            }
        };
    }
    check!(Gaussian::new(Covariance::Spherical), true);
    check!(Gaussian::new(Covariance::Diagonal), true);
    check!(Gaussian::new(Covariance::Tied), true);
    check!(Gaussian::new(Covariance::Full), true);
    check!(Gaussian::new(Covariance::Factors(1)), true);
    check!(Gaussian::new(Covariance::Full).equal_proportions(), false);
    check!(
        Gaussian::new(Covariance::Spherical).equal_proportions(),
        false
    );
    check!(
        Gaussian::new(Covariance::Diagonal).equal_proportions(),
        false
    );
}

/// A constant column has the smallest variance allowed, a clamp that keeps F finite and rising.
#[test]
fn constant_columns_are_held_by_the_floor() {
    let mut x = blobs::<f64>(300, 3, 4, 2);
    x.column_mut(1).fill(-7.5);
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::gmm(4).covariance(Covariance::Diagonal).seed(2);
    let fit = fit.build().unwrap().fit(&data).unwrap();
    // Numbers about -7.5 are told apart from it.
    let floor = (7.5 * 2f64.powi(-40)).powi(2);
    for variances in fit.model.variances().rows() {
        assert_abs_diff_eq!(variances[1] / floor, 1.0, epsilon = 1e-9);
        assert!(variances[0] > 0.1 && variances[2] > 0.1);
    }
}

/// Models from known parameters give them back, and draw points that have them.
#[test]
fn parameters_and_samples() {
    parameters_and_samples_in::<f64>(1e-12);
    parameters_and_samples_in::<f32>(1e-5);
}

fn parameters_and_samples_in<F: Float>(tolerance: f64) {
    let means = array![[0.0, 30.0, -4.0], [100.0, 31.0, 5.0]].mapv(F::from_f64);
    let variances = array![[1.0, 4.0, 0.25], [9.0, 1e-4, 2.0]];
    let proportions = array![0.25, 0.75];
    let model = GaussianMixture::from_parameters(
        Covariance::Diagonal,
        means.view(),
        variances.view(),
        proportions.view(),
    )
    .unwrap();
    assert_eq!(model.means(), means);
    let off = (&model.variances() / &variances - 1.0).mapv(f64::abs);
    assert!(off.iter().all(|off| *off <= tolerance), "{off}");
    assert_eq!(model.proportions(), proportions);
    let (points, labels) = model.sample(40_000, 3).unwrap();
    moments_are(&points, &labels, &means, &variances, &proportions);
    assert_eq!(model.sample(5, 3).unwrap(), model.sample(5, 3).unwrap());

    let isotropic = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means.view(),
        variances.column(0),
        proportions.view(),
    )
    .unwrap();
    assert_eq!(isotropic.means(), means);
    let columns = Array2::from_shape_fn((2, 3), |(c, _)| variances[[c, 0]]);
    let (points, labels) = isotropic.sample(40_000, 4).unwrap();
    moments_are(&points, &labels, &means, &columns, &proportions);
}

fn moments_are<F: Float>(
    points: &Array2<F>,
    labels: &Array1<u32>,
    means: &Array2<F>,
    variances: &Array2<f64>,
    proportions: &Array1<f64>,
) {
    let points = points.mapv(Float::to_f64);
    for (c, &p) in proportions.indexed_iter() {
        let rows: Vec<usize> = (0..labels.len())
            .filter(|&n| labels[n] == c as u32)
            .collect();
        let share = rows.len() as f64 / labels.len() as f64;
        assert!((share - p).abs() < 0.015, "{share} of {p}");
        let own = points.select(Axis(0), &rows);
        for j in 0..own.ncols() {
            let (variance, n) = (variances[[c, j]], rows.len() as f64);
            let mean = own.column(j).mean().unwrap();
            let off = (mean - means[[c, j]].to_f64()).abs();
            assert!(
                off < 5.0 * (variance / n).sqrt() + 1e-5,
                "mean off by {off}"
            );
            let ratio = own.column(j).var(0.0) / variance;
            assert!(
                (ratio - 1.0).abs() < 0.08,
                "variance {ratio} times what it should be"
            );
        }
    }
}

/// Parameters that are none are refused by name.
#[test]
fn impossible_parameters() {
    let means = array![[0.0, 1.0], [2.0, 3.0]];
    let good = (array![1.0, 2.0], array![0.5, 0.5]);
    let isotropic = |variances: &Array1<f64>, proportions: &Array1<f64>| {
        GaussianMixture::from_parameters(
            Covariance::Spherical,
            means.view(),
            variances.view(),
            proportions.view(),
        )
        .map(drop)
    };
    let diagonal = |variances: Array2<f64>, proportions: &Array1<f64>| {
        GaussianMixture::from_parameters(
            Covariance::Diagonal,
            means.view(),
            variances.view(),
            proportions.view(),
        )
        .map(drop)
    };
    isotropic(&good.0, &good.1).unwrap();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = isotropic(&array![1.0, bad], &good.1).unwrap_err();
        assert!(error.to_string().starts_with("variance ="), "{error}");
        let error = diagonal(array![[1.0, 1.0], [bad, 1.0]], &good.1).unwrap_err();
        assert!(error.to_string().starts_with("variance ="), "{error}");
    }
    for bad in [
        array![-0.5, 1.5],
        array![f64::NAN, 1.0],
        array![0.5, 0.6],
        array![0.0, 0.0],
    ] {
        for error in [
            isotropic(&good.0, &bad),
            diagonal(Array2::ones((2, 2)), &bad),
        ] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains("proportions"), "{error}");
        }
    }
    let three = Array1::from_elem(3, 1.0 / 3.0);
    for error in [
        isotropic(&three, &good.1),
        isotropic(&good.0, &three),
        diagonal(Array2::ones((3, 2)), &good.1),
        diagonal(Array2::ones((2, 2)), &three),
    ] {
        assert!(
            matches!(error, Err(Error::LengthMismatch { .. })),
            "{error:?}"
        );
    }
    let error = diagonal(Array2::ones((2, 3)), &good.1);
    assert!(
        matches!(error, Err(Error::DimensionMismatch { .. })),
        "{error:?}"
    );
    let model = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means.view(),
        good.0.view(),
        good.1.view(),
    )
    .unwrap();
    assert!(model.sample(0, 1).is_err());
    // Scores are in units of one variance: all variances must fit into the type in this unit.
    let narrow = means.mapv(|m| m as f32);
    for (ratio, fits) in [(1e-18, true), (1e-19, false), (1e-40, false)] {
        let variances = array![[1e20, 1e20 * ratio], [1e20, 1e20]];
        let model = GaussianMixture::from_parameters(
            Covariance::Diagonal,
            narrow.view(),
            variances.view(),
            good.1.view(),
        );
        assert_eq!(model.is_ok(), fits, "{ratio:e}");
        let Ok(model) = model else { continue };
        let data = Dense::new(narrow.view()).unwrap();
        let densities = model.log_densities(&data).unwrap();
        assert!(densities.iter().all(|p| p.is_finite()), "{densities}");
        let q = model.responsibilities(&data).unwrap();
        assert!(q.iter().all(|q| q.is_finite()), "{q}");
    }
    assert!(isotropic(&array![1e300, 1e-300], &good.1).is_err());
}

/// Columns that determine one another: the smallest eigenvalue is the smallest variance allowed, and F rises all the same.
#[test]
fn dependent_columns_are_held_by_the_floor() {
    let mut x = blobs::<f64>(300, 3, 4, 2);
    let sum = &x.column(0) - &x.column(2);
    x.column_mut(1).assign(&sum);
    let data = Dense::new(x.view()).unwrap();
    for kind in [Covariance::Tied, Covariance::Full] {
        let fit = algorithms::gmm(4).covariance(kind).seed(2);
        let fit = fit.build().unwrap().fit(&data).unwrap();
        rises(format!("{kind:?}"), &fit.report.free_energies, 0.0, 1e-9);
        // The direction (1, -1, -1), along which the columns have 1e-8 of their variances in the component.
        let null = array![1.0, -1.0, -1.0];
        for covariance in fit.model.covariances().outer_iter() {
            let along = null.dot(&covariance.dot(&null)) / (1e-8 * covariance.diag().sum());
            assert!((0.3..=3.0).contains(&along), "{along}");
        }
        let drawn = fit.model.sample(2_000, 3).unwrap();
        let off = &drawn.0.column(0) - &drawn.0.column(1) - drawn.0.column(2);
        assert!(off.iter().all(|off| off.abs() < 1e-2));
    }
}

/// Covariances with all pairs of columns need rows that know all columns.
#[test]
fn sketches_have_no_pairs_of_columns() {
    let x = blobs::<f64>(300, 8, 4, 2);
    let sketch = Sketch::new(x.view(), 3, 1).unwrap();
    for kind in [Covariance::Tied, Covariance::Full] {
        let fit = algorithms::gmm(4).covariance(kind).build().unwrap();
        let error = fit.fit(&sketch).unwrap_err().to_string();
        assert!(
            error.contains("needs all coordinates") && error.contains("sketch"),
            "{error}"
        );
    }
}

/// Samples have the covariances of their components.
#[test]
fn samples_have_full_covariances() {
    let means = array![[0.0, 1e3], [30.0, -5.0]];
    let covariances = array![[[4.0, 1.5], [1.5, 1.0]], [[0.5, -0.3], [-0.3, 2.0]]];
    let proportions = array![0.25, 0.75];
    let model = GaussianMixture::from_parameters(
        Covariance::Full,
        means.view(),
        covariances.view(),
        proportions.view(),
    )
    .unwrap();
    let (x, labels) = model.sample(40_000, 5).unwrap();
    for c in 0..2 {
        let own: Vec<usize> = (0..40_000).filter(|n| labels[*n] == c).collect();
        let own = x.select(Axis(0), &own);
        let apart = &own - &means.row(c as usize);
        let found = apart.t().dot(&apart) / own.nrows() as f64;
        for (found, expected) in found
            .iter()
            .zip(&covariances.index_axis(Axis(0), c as usize))
        {
            assert_abs_diff_eq!(*found, *expected, epsilon = 0.1);
        }
    }
    for covariance in [
        array![[1.0, 2.0], [2.0, 1.0]],
        array![[1.0, 0.5], [0.4, 1.0]],
    ] {
        let tied = GaussianMixture::from_parameters(
            Covariance::Tied,
            means.view(),
            covariance.view(),
            proportions.view(),
        );
        assert!(tied.is_err());
    }
}

/// EM in ten lines, for full and tied covariances and weights that are no whole numbers.
#[test]
fn full_covariances_are_those_of_the_naive_loop() {
    let (x, k) = (blobs::<f64>(240, 3, 4, 6), 3);
    let turn = array![[1.0, 0.4, 0.0], [0.0, 1.0, -0.7], [0.3, 0.0, 1.0]];
    let x = x.dot(&turn);
    let w = Array1::from_shape_fn(240, |n| 0.25 + (n % 5) as f64);
    let start = seeds(&x, k, 2);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    for kind in [Covariance::Tied, Covariance::Full] {
        let fit = |iterations| {
            let builder = algorithms::gmm(k).covariance(kind).tolerance(0.0);
            let builder = builder.seeder(Given::new(start.view()));
            builder
                .max_iterations(iterations)
                .build()
                .unwrap()
                .fit(&data)
                .unwrap()
                .model
        };
        let model = fit(0);
        let (mut means, mut pi) = (model.means().to_owned(), model.proportions().to_owned());
        let mut covariances = model.covariances();
        for iteration in 1..6 {
            let known = GaussianMixture::from_parameters(
                Covariance::Full,
                means.view(),
                covariances.view(),
                pi.view(),
            );
            let q = known.unwrap().responsibilities(&data).unwrap() * w.view().insert_axis(Axis(1));
            let mass = q.sum_axis(Axis(0));
            pi = &mass / w.sum();
            means = q.t().dot(&x) / mass.view().insert_axis(Axis(1));
            for (c, mut own) in covariances.outer_iter_mut().enumerate() {
                let apart = &x - &means.row(c);
                let shared = &apart * &q.column(c).insert_axis(Axis(1));
                own.assign(&(shared.t().dot(&apart) / mass[c]));
            }
            if kind == Covariance::Tied {
                let parts = covariances
                    .outer_iter()
                    .zip(&pi)
                    .map(|(own, pi)| &own * *pi);
                let tied = parts.reduce(|sum, own| sum + own).unwrap();
                covariances
                    .outer_iter_mut()
                    .for_each(|mut own| own.assign(&tied));
            }
            let model = fit(iteration);
            for (a, b) in model.means().iter().zip(&means) {
                assert_abs_diff_eq!(*a, *b, epsilon = 1e-9);
            }
            for (a, b) in model.covariances().iter().zip(&covariances) {
                assert_abs_diff_eq!(*a, *b, epsilon = 1e-9);
            }
            for (a, b) in model.proportions().iter().zip(&pi) {
                assert_abs_diff_eq!(*a, *b, epsilon = 1e-10);
            }
        }
    }
}

/// A truncated search that begins at random when components have been discarded: every row finds one that is left.
#[test]
fn the_first_support_has_a_component_that_is_left() {
    fn check<F: Float>(
        kind: Covariance,
        e_step: impl EStep<F> + Clone + 'static,
        weighted: bool,
        seed: u64,
    ) {
        let x = blobs::<F>(300, 2, 3, seed);
        let weight = |n: usize| if weighted { (n % 3) as f64 } else { 1.0 };
        let w = Array1::from_shape_fn(300, weight);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        // Most components begin where no row is.
        let start = Array2::from_shape_fn((12, 2), |(c, _)| {
            F::from_f64(if c % 4 == 1 { c as f64 } else { 1e5 })
        });
        let list = move |_| {
            vec![
                Phase::new(Exhaustive::nearest()),
                Phase::new(e_step.clone()),
            ]
        };
        let fit = algorithms::gmm(12).covariance(kind).phases(list).seed(seed);
        let fit = fit
            .seeder(Given::new(start.view()))
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let likelihood = fit.model.log_likelihood(&data).unwrap();
        let energies = &fit.report.free_energies;
        assert!(
            energies
                .iter()
                .all(|f| f.abs() < 1e5 && *f <= likelihood + 1.0),
            "{kind:?}: {energies:?}"
        );
        rises(format!("{kind:?}"), energies, 0.0, 1e-6);
        assert!(fit.report.zero_mass >= 9);
        let proportions = fit.model.proportions();
        assert!(
            fit.search_labels
                .iter()
                .all(|c| proportions[*c as usize] > 0.0),
            "{kind:?}"
        );
    }
    for kind in [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
    ] {
        for seed in 0..4 {
            for weighted in [false, true] {
                check::<f64>(kind, Neighborhood::new(3, 1), weighted, seed);
                check::<f64>(kind, Neighborhood::new(2, 2).random(1), weighted, seed);
                check::<f64>(kind, Neighborhood::new(1, 2).random(1), weighted, seed);
                check::<f64>(
                    kind,
                    Neighborhood::new(11, 2).initial_searches(1),
                    weighted,
                    seed,
                );
                check::<f64>(kind, SimilaritySampling::new(3, 1), weighted, seed);
                check::<f64>(kind, SimilaritySampling::new(1, 1), weighted, seed);
                check::<f64>(kind, Dead, weighted, seed);
                check::<f32>(kind, Neighborhood::new(3, 1), weighted, seed);
                check::<f32>(kind, SimilaritySampling::new(2, 1), weighted, seed);
            }
        }
    }
}

/// A search from outside that always tries the first component, which is discarded, and one of the last two.
#[derive(Clone, Debug)]
struct Dead;

impl Stage for Dead {}

impl<F: Float> EStep<F> for Dead {
    fn begin(
        &self,
        _: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        Ok(Box::new(Dead))
    }
}

impl<F: Float> Search<F> for Dead {
    fn width(&self) -> usize {
        2
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, rng: &mut Rng) {
        for i in 0..rows.len() {
            block.keep_best(i, model, rows, &[0, 10 + rng.below(2) as u32]);
        }
    }
}
