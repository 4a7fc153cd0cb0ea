//! Settings out of range, centres and parameters from outside, and fits that end early.

use super::*;

#[test]
fn numbers_of_clusters() {
    let x = blobs::<f64>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    let mut w = unit_weights(90);
    w.slice_mut(s![5..]).fill(0.0);
    let few = Dense::weighted(x.view(), w.view()).unwrap();
    for algorithm in all::<f64>() {
        let fit = |data, k| (algorithm.fit)(data, &Settings::new(k, 1));
        refused!(
            fit(&data, 0),
            Error::Parameter {
                name: "clusters",
                ..
            },
            "clusters = 0"
        );
        for k in [u32::MAX as usize, usize::MAX] {
            let shown = format!("clusters = {k}");
            refused!(
                fit(&data, k),
                Error::Parameter {
                    name: "clusters",
                    ..
                },
                &shown
            );
        }
        refused!(
            fit(&data, 91),
            Error::TooManyClusters {
                clusters: 91,
                rows: 90,
                rows_of: "data"
            },
            "91",
            "90",
            "data",
        );
        refused!(
            fit(&few, 6),
            Error::TooManyClusters {
                clusters: 6,
                rows: 5,
                rows_of: "data"
            },
            "6 clusters",
            "5 rows of positive weight",
        );
        // As many clusters as rows is no error, where no coreset takes rows away.
        if let Err(error) = fit(&data, 90) {
            assert!(!algorithm.deterministic, "{}: {error}", algorithm.name);
            assert!(
                matches!(
                    error,
                    Error::TooManyClusters {
                        rows_of: "coreset",
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
    let unset = Clusterer::<f64>::builder().build();
    refused!(
        unset,
        Error::Parameter {
            name: "clusters",
            ..
        },
        "must be given"
    );
    for coreset in [1, 6] {
        let fit = algorithms::lwcs_k_means(7, coreset)
            .build()
            .unwrap()
            .fit(&data);
        refused!(
            fit,
            Error::TooManyClusters { clusters: 7, rows, rows_of: "coreset" } if *rows <= coreset,
            "7",
            "coreset",
        );
        let coreset = UniformCoreset::new(coreset);
        let fit = algorithms::k_means(7)
            .coreset(coreset)
            .build()
            .unwrap()
            .fit(&data);
        refused!(
            fit,
            Error::TooManyClusters {
                rows_of: "coreset",
                ..
            },
            "7",
            "coreset"
        );
    }
}

#[test]
fn counts_of_zero() {
    let k_means = || algorithms::k_means::<f64>(3);
    let neighborhood = |e_step| k_means().e_step(e_step).build().map(drop);
    for (result, name) in [
        (k_means().restarts(0).build().map(drop), "restarts"),
        (
            k_means().e_step(Exhaustive::truncated(0)).build().map(drop),
            "c_prime",
        ),
        (
            algorithms::k_means_c_prime::<f64>(3, 0).build().map(drop),
            "c_prime",
        ),
        (neighborhood(Neighborhood::new(0, 3)), "c_prime"),
        (neighborhood(Neighborhood::new(3, 0)), "neighbors"),
        (
            algorithms::var_gmm_s::<f64>(3, 0, 2).build().map(drop),
            "c_prime",
        ),
        (
            algorithms::vc_gmm::<f64>(3, 50, 2, 0).build().map(drop),
            "neighbors",
        ),
        (
            algorithms::d_gmm::<f64>(3, 0, 2).build().map(drop),
            "c_prime",
        ),
        (algorithms::d_gmm::<f64>(3, 2, 0).build().map(drop), "drawn"),
        (
            algorithms::vc_gmm::<f64>(3, 0, 2, 2).build().map(drop),
            "coreset",
        ),
        (
            algorithms::lwcs_k_means::<f64>(3, 0).build().map(drop),
            "coreset",
        ),
        (
            k_means().coreset(UniformCoreset::new(0)).build().map(drop),
            "coreset",
        ),
        (k_means().seeder(AfkMc2::new(0)).build().map(drop), "chain"),
        (
            k_means()
                .seeder(KMeansPlusPlus::default().candidates(0))
                .build()
                .map(drop),
            "candidates",
        ),
    ] {
        let shown = format!("{name} = 0: must be at least 1");
        refused!(result, Error::Parameter { name: n, .. } if *n == name, &shown);
    }
}

#[test]
fn tolerances_and_epsilons() {
    let x = blobs::<f32>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e-300] {
        for algorithm in all::<f32>() {
            let settings = Settings {
                tolerance: bad,
                ..Settings::new(3, 1)
            };
            let shown = format!("tolerance = {bad:?}");
            let fit = (algorithm.fit)(&data, &settings);
            refused!(
                fit,
                Error::Parameter {
                    name: "tolerance",
                    ..
                },
                &shown
            );
        }
        let shown = format!("epsilon = {bad:?}");
        let lazy = algorithms::lazy_k_means::<f64>(3, bad).build();
        refused!(
            lazy,
            Error::Parameter {
                name: "epsilon",
                ..
            },
            &shown
        );
    }
    // The largest numbers there are, where any size is allowed.
    let lazy = algorithms::lazy_k_means(3, f64::MAX).tolerance(f64::MAX);
    let fit = lazy
        .max_iterations(usize::MAX)
        .seed(u64::MAX)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    assert_eq!(fit.report.stop, Stop::Converged);
    assert!(fit.report.free_energies.iter().all(|f| f.is_finite()));
}

/// A chain that no memory holds is a setting to refuse, or to make do without; not a panic.
#[test]
fn the_longest_chain() {
    let x = blobs::<f32>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    let built = algorithms::k_means(3)
        .seeder(AfkMc2::new(usize::MAX))
        .build();
    if let Err(error) = built.and_then(|clusterer| clusterer.fit(&data)) {
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    }
}

#[test]
fn given_centres() {
    let x = blobs::<f64>(90, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<f64>() {
        let fit = |given: &Array2<f64>| {
            let settings = Settings {
                given: Some(given.clone()),
                ..Settings::new(4, 1)
            };
            (algorithm.fit)(&data, &settings)
        };
        let what = "given centres";
        refused!(fit(&Array2::zeros((0, 3))), Error::Empty { what: w } if *w == what, what);
        refused!(fit(&Array2::zeros((4, 0))), Error::Empty { what: w } if *w == what, what);
        refused!(
            fit(&Array2::zeros((5, 3))),
            Error::LengthMismatch { what: w, expected: 4, found: 5 } if *w == what,
            what, "5", "4",
        );
        refused!(
            fit(&Array2::zeros((4, 2))),
            Error::DimensionMismatch { what: w, expected: 3, found: 2 } if *w == what,
            what, "2 columns", "3 expected",
        );
        for bad in [f64::NAN, f64::INFINITY] {
            let mut given = seeds(&x, 4, 1);
            given[[2, 1]] = bad;
            refused!(
                fit(&given),
                Error::NotFinite { what: w, row: 2, column: 1 } if *w == what,
                what, "row 2, column 1",
            );
        }
        let mut given = seeds(&x, 4, 1);
        given[[3, 0]] = -1e200;
        refused!(
            fit(&given),
            Error::TooLarge { what: w, row: 3, column: 0, .. } if *w == what,
            what, "row 3, column 0", "-1e200",
        );
    }
}

/// Sizes beyond what there is are clamped: the same bits as the largest size that is.
#[test]
fn sizes_that_are_clamped() {
    let x = blobs::<f64>(400, 3, 4, 5);
    let data = Dense::new(x.view()).unwrap();
    let k = 5;
    let same = |a: Array2<f64>, b: Array2<f64>| assert_eq!(a, b);
    macro_rules! means {
        ($builder:expr) => {{
            let fit = $builder.seed(4).build().unwrap().fit(&data).unwrap();
            fit.model.means().to_owned()
        }};
    }
    for huge in [k + 1, 1 << 40, usize::MAX] {
        let all = means!(algorithms::gmm(k).seeder(KMeansPlusPlus::default()));
        same(means!(algorithms::k_means_c_prime(k, huge)), all.clone());
        let seeded = algorithms::gmm(k).seeder(AfkMc2::default());
        same(means!(algorithms::var_gmm_s(k, huge, 2)), means!(seeded));
        let seeded = algorithms::gmm(k).seeder(AfkMc2::default());
        same(means!(algorithms::d_gmm(k, huge, huge)), means!(seeded));
        let wide = means!(algorithms::d_gmm(k, 2, k - 2));
        same(means!(algorithms::d_gmm(k, 2, huge)), wide);
        let wide = means!(algorithms::var_gmm_s(k, 2, k));
        same(means!(algorithms::var_gmm_s(k, 2, huge)), wide);
        let from_seeds = |g| Neighborhood::new(2, g).from_seeds(true);
        let wide = means!(algorithms::gmm(k).e_step(from_seeds(k)));
        same(means!(algorithms::gmm(k).e_step(from_seeds(huge))), wide);
        let whole = means!(algorithms::k_means(k).seeder(AfkMc2::default()));
        if huge >= data_rows(&data) {
            same(means!(algorithms::lwcs_k_means(k, huge)), whole);
            let uniform = algorithms::k_means(k).coreset(UniformCoreset::new(huge));
            same(means!(uniform), means!(algorithms::k_means(k)));
        }
    }
}

/// Stages that do not go together are an error of `build`, before there are rows: a search that compares distances with variances of
/// components or columns, and standardised columns with a family that has coordinates of its own.
#[test]
fn stages_that_do_not_go_together_are_not_built() {
    for kind in [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
        Covariance::Factors(2),
    ] {
        let compare = [
            algorithms::fast::<f64>(25),
            algorithms::fast_within(25, 1 << 30),
            algorithms::lazy_k_means(25, 0.1),
            algorithms::k_means(25).e_step(Bounded::default()),
            algorithms::k_means(25)
                .phases(|_| vec![Phase::new(Exhaustive::all()), Phase::new(Lazy::new(0.1))]),
        ];
        for builder in compare {
            let built = builder.clone().covariance(kind).build().map(|_| ());
            let said = built.unwrap_err().to_string();
            assert!(said.contains("needs one variance"), "{kind:?}: {said}");
            assert!(
                builder
                    .covariance(Covariance::TiedSpherical)
                    .build()
                    .is_ok()
            );
        }
        assert!(algorithms::gmm::<f64>(25).covariance(kind).build().is_ok());
        assert!(
            algorithms::k_means::<f64>(25)
                .covariance(kind)
                .build()
                .is_ok()
        );
    }
    let process = algorithms::fast::<f64>(9).m_step(DirichletProcess::new(1.0));
    assert!(process.build().is_err());
    let directions = algorithms::spherical_k_means::<f64>(9).standardise(true);
    assert!(directions.build().is_err());
}

fn data_rows<T: Element>(data: &Dense<'_, T>) -> usize {
    coremix::data::Data::len(data)
}

#[test]
fn no_iterations_leave_the_seeds_where_they_are() {
    let x = blobs::<f64>(300, 3, 4, 18);
    let data = Dense::new(x.view()).unwrap();
    let start = seeds(&x, 4, 6);
    // A warm-up moves the seeds before the first iteration, a refinement after the last: that is what they are for.
    let moves = |name: &str| ["warm", "refined", "fast"].iter().any(|n| name.contains(n));
    for algorithm in all::<f64>().iter().filter(|a| !moves(a.name)) {
        let fit = (algorithm.fit)(&data, &Settings::fixed(start.view(), 0)).unwrap();
        sound(algorithm.name, &fit, &data, 300.0);
        assert_eq!(
            (fit.report.iterations, fit.report.stop),
            (0, Stop::MaxIterations)
        );
        let off = (&fit.means - &start).mapv(f64::abs);
        assert!(
            off.iter().all(|t| *t < 1e-14 * 16.0),
            "{}: {off}",
            algorithm.name
        );
    }
}

#[test]
fn an_observer_can_stop_anywhere() {
    let x = blobs::<f64>(300, 3, 4, 18);
    let data = Dense::new(x.view()).unwrap();
    // How many things were seen before the break: the coreset, the seeding, the seeds, then searches.
    for seen in 1..7 {
        macro_rules! stops {
            ($builder:expr) => {{
                let clusterer = $builder.tolerance(0.0).restarts(3).build().unwrap();
                let mut left = seen;
                let fit = clusterer.fit_observed(&data, |progress| {
                    left -= 1;
                    if let Progress::Iteration {
                        free_energy, model, ..
                    } = progress
                    {
                        assert!(free_energy.is_finite());
                        assert!(model.means().iter().all(|m| m.is_finite()));
                    }
                    if left == 0 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                let fit = fit.unwrap();
                assert_eq!(left, 0, "asked again after it broke");
                assert_eq!(fit.report.stop, Stop::Observer);
                assert_eq!(fit.report.iterations, seen.max(4) - 4);
                assert_eq!(fit.report.free_energies.len(), fit.report.iterations + 1);
                assert_eq!((fit.report.restart, fit.report.restarts.len()), (0, 1));
                assert!(fit.report.free_energies.iter().all(|f| f.is_finite()));
                assert_eq!(fit.search_labels.len(), fit.report.coreset_size);
                let labels = fit.model.predict(&data).unwrap();
                assert!(labels.iter().all(|&label| label < 4));
                assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
            }};
        }
        stops!(algorithms::k_means(4));
        stops!(algorithms::k_means_c_prime(4, 2));
        stops!(algorithms::gmm(4));
        stops!(algorithms::lazy_k_means(4, 0.01));
        stops!(algorithms::lwcs_k_means(4, 100));
        stops!(algorithms::var_gmm_s(4, 2, 2));
        stops!(algorithms::vc_gmm(4, 100, 2, 2));
        stops!(algorithms::d_gmm(4, 2, 2));
    }
}

fn parameters<F: Float>() {
    let f = F::from_f64;
    let from =
        |means: &Array2<F>, variance| GaussianMixture::tied_spherical(means.view(), variance);
    let means = blobs::<F>(4, 3, 4, 21);
    for shape in [(0, 3), (3, 0)] {
        let none = Array2::from_elem(shape, f(0.0));
        refused!(from(&none, 1.0), Error::Empty { what: "means" }, "means");
    }
    for bad in [f64::NAN, f64::NEG_INFINITY] {
        let mut means = means.clone();
        means[[2, 1]] = f(bad);
        refused!(
            from(&means, 1.0),
            Error::NotFinite {
                what: "means",
                row: 2,
                column: 1
            },
            "means: row 2, column 1",
        );
    }
    let mut large = means.clone();
    large[[3, 0]] = f(if F::EPSILON > 1e-10 { 3e38 } else { 1e200 });
    refused!(
        from(&large, 1.0),
        Error::TooLarge {
            what: "means",
            row: 3,
            column: 0,
            ..
        },
        "means: row 3, column 0",
    );
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
        let shown = format!("variance = {bad}");
        refused!(
            from(&means, bad),
            Error::Parameter {
                name: "variance",
                ..
            },
            &shown
        );
    }
    let model = from(&means, 0.5).unwrap();
    same_means("as given", model.means(), means.view());
    assert_abs_diff_eq!(model.variance(), 0.5, epsilon = 1e-15);
    refused!(
        model.sample(0, 1),
        Error::Parameter { name: "n", .. },
        "n = 0"
    );
    let (points, labels) = model.sample(50, 1).unwrap();
    assert_eq!((points.dim(), labels.len()), ((50, 3), 50));
    assert!(points.iter().all(|x| Float::is_finite(*x)) && labels.iter().all(|&c| c < 4));
    assert_eq!(model.sample(50, 1).unwrap(), (points, labels));
}

#[test]
fn parameters_from_outside() {
    parameters::<f32>();
    parameters::<f64>();
}
