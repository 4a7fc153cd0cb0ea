//! Fits that start from a model, on the same rows and on others.

use crate::common::{blobs, close, rises, rounding};
use coremix::families::{Column, Table};
use coremix::m_step::MStep;
use coremix::prelude::*;
use coremix::stage::{Rng, Stage};
use coremix::{Builder, FileFault, Float, algorithms};
use ndarray::{Array1, Array2};

/// EM with supports of all components: its free energy is the log-likelihood of the model.
fn em<F: Float, M: MStep<F>>(k: usize, family: M) -> Builder<F, M> {
    let builder = algorithms::gmm(k).m_step(family);
    builder.tolerance(1e-5).max_iterations(1_000)
}

/// The free energies of a fit on other rows begin with the log-likelihood of the model that it starts from. The other rows
/// are in another unit, so they live in another frame.
fn begins_with_the_model<M>(family: M)
where
    M: MStep<f64> + Stage + Clone,
    M::Model: Save,
{
    let old = blobs::<f64>(700, 3, 7, 1);
    let weights = Array1::from_shape_fn(500, |n| [1.0, 0.5, 3.0][n % 3]);
    let data = Dense::new(old.view()).unwrap();
    let model = em(9, family.clone())
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    for shift in [0.0, 1.0, 40.0] {
        let new = blobs::<f64>(500, 3, 7, 1).mapv(|x| x + shift);
        let new = Dense::weighted(new.view(), weights.view()).unwrap();
        let warm = em(9, family.clone()).start_from(&model).build().unwrap();
        let fit = warm.fit(&new).unwrap();
        let likelihood = model.log_likelihood(&new).unwrap();
        let first = fit.report.free_energies[0];
        assert!(close(first, likelihood, 1e-9), "{first} {likelihood}");
        assert_eq!(fit.report.evaluations.seeding, 0);
    }
    // A fit that goes on with the same rows: from where the last one was.
    let fit = em(9, family)
        .start_from(&model)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    let likelihood = model.log_likelihood(&data).unwrap();
    assert!(close(fit.report.free_energies[0], likelihood, 1e-12));
    rises("it goes on", &fit.report.free_energies, 700.0, 1e-9);
    assert!(fit.report.iterations <= 3, "{}", fit.report.iterations);
}

#[test]
fn a_fit_begins_with_the_parameters_of_its_model() {
    begins_with_the_model(Gaussian::new(Covariance::TiedSpherical));
    begins_with_the_model(Gaussian::new(Covariance::Spherical));
    begins_with_the_model(Gaussian::new(Covariance::Diagonal));
    begins_with_the_model(Gaussian::new(Covariance::Spherical).equal_proportions());
}

/// Supports of some components: the first M-steps of a fit from seeds keep to a simpler family, and those of a fit from a model
/// must not. Found by a fuzz target.
fn never_falls_from_its_model<M>(family: M)
where
    M: MStep<f64> + Stage + Clone,
    M::Model: Save,
{
    let x = blobs::<f64>(300, 5, 4, 255);
    let data = Dense::new(x.view()).unwrap();
    for c_prime in [1, 2, 3] {
        let builder = || {
            let e_step = Exhaustive::truncated(c_prime);
            em(6, family.clone()).e_step(e_step).tolerance(1e-6)
        };
        let model = builder().build().unwrap().fit(&data).unwrap().model;
        let warm = builder().start_from(&model).build().unwrap();
        let found = warm.fit(&data).unwrap().report.free_energies;
        rises(c_prime, &found, 0.0, 1e-9);
        assert!(found.len() <= 4, "{found:?}");
    }
}

/// Rows along a line, of a much larger or smaller spread than those of the model: the floors of its covariances would leave the
/// narrow directions to the rounding of the new sums, and the free energy would go up and down without end.
#[test]
fn covariances_follow_rows_of_other_widths() {
    follow_rows_of_other_widths::<f64>();
    follow_rows_of_other_widths::<f32>();
}

fn follow_rows_of_other_widths<F: Float>() {
    let kinds = [Covariance::Tied, Covariance::Full, Covariance::Factors(1)];
    for (seed, kind) in (0..60).zip(kinds.into_iter().cycle()) {
        let mut rng = Rng::from_seed(seed);
        let d = 2 + seed as usize % 6;
        let k = 1 + seed as usize % 4;
        let mut fitted = None;
        for (n, wide, off) in [
            (60, 1.0, 0.0),
            (40, 1e3, 1e-6),
            (150, 10.0, 1e-5),
            (80, 1e3, 0.0),
            (77, 1e-3, 1e-6),
        ] {
            let direction: Vec<f64> = (0..d).map(|_| rng.normal()).collect();
            let mut x = Array2::zeros((n, d));
            for mut row in x.rows_mut() {
                let along = wide * rng.normal();
                let columns = row.iter_mut().zip(&direction);
                columns.for_each(|(x, z)| *x = F::from_f64(along * z + off * rng.normal()));
            }
            if seed % 2 == 0 {
                x.column_mut(0).fill(F::from_f64(1e3));
            }
            let builder = em(k, Gaussian::new(kind)).tolerance(0.0).max_iterations(30);
            let builder = match &fitted {
                Some(model) => builder.start_from(model),
                None => builder,
            };
            let data = Dense::new(x.view()).unwrap();
            let fit = builder.seed(seed).build().unwrap().fit(&data).unwrap();
            let what = format!("{kind:?}, seed {seed}, {wide} wide");
            rises(what, &fit.report.free_energies, n as f64, rounding::<F>());
            fitted = Some(fit.model);
        }
    }
}

#[test]
fn a_fit_that_goes_on_never_falls() {
    never_falls_from_its_model(Gaussian::new(Covariance::TiedSpherical));
    never_falls_from_its_model(Gaussian::new(Covariance::Spherical));
    never_falls_from_its_model(Gaussian::new(Covariance::Diagonal));
    never_falls_from_its_model(DirichletProcess::new(1.0));
}

/// Families with a prior, whose free energy is no likelihood: the same rows begin where the model ended.
fn goes_on_where_it_was<M>(family: M)
where
    M: MStep<f64> + Stage + Clone,
    M::Model: Save,
{
    let x = Array2::from_shape_fn((300, 4), |(n, j)| match j {
        0 | 2 => (n % 3 * (4 - j)) as f64 + (n * n % 17) as f64 / 10.0,
        1 => ((n + n / 7 % 2) % 3) as f64,
        _ => (n % 3 * 5 + n % 4) as f64,
    });
    let data = Dense::new(x.view()).unwrap();
    let first = em(3, family.clone()).build().unwrap().fit(&data).unwrap();
    let warm = em(3, family.clone())
        .start_from(&first.model)
        .build()
        .unwrap();
    let (end, begin) = (
        first.report.free_energies.last().unwrap(),
        warm.fit(&data).unwrap().report.free_energies[0],
    );
    assert!(begin >= end - 1e-9 * end.abs(), "{begin} {end}");
    // A category that the model has not seen: other parameters, so the means alone.
    let mut other = x.clone();
    other[[0, 1]] = 3.0;
    let fit = warm.fit(&Dense::new(other.view()).unwrap()).unwrap();
    assert!(fit.report.free_energies[0] < *end);
}

#[test]
fn tables_and_products_go_on() {
    let kinds = [
        Column::Number,
        Column::Category(0),
        Column::Number,
        Column::Count,
    ];
    goes_on_where_it_was(Table::new(kinds.to_vec()));
    for kind in [
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
        Covariance::Factors(1),
    ] {
        goes_on_where_it_was(Table::new(kinds.to_vec()).numbers(Gaussian::new(kind)));
    }
}

/// Without a step on the same rows the fit is the model itself.
#[test]
fn no_step_leaves_the_model_as_it_is() {
    let x = blobs::<f32>(600, 4, 6, 2);
    let data = Dense::new(x.view()).unwrap();
    let sketch = Sketch::new(x.view(), 3, 3).unwrap();
    let model = algorithms::k_means(8)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    for e_step in [Exhaustive::nearest(), Exhaustive::all()] {
        let builder = algorithms::k_means(8).e_step(e_step).max_iterations(0);
        let still = builder
            .start_from(&model)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        assert_eq!(still.model, model);
    }
    let model = em(8, Gaussian::new(Covariance::Diagonal))
        .build()
        .unwrap()
        .fit(&sketch)
        .unwrap()
        .model;
    let builder = em(8, Gaussian::new(Covariance::Diagonal))
        .max_iterations(0)
        .start_from(&model);
    let still = builder.build().unwrap().fit(&sketch).unwrap().model;
    assert_eq!(still.means(), model.means());
    assert_eq!(still.variances(), model.variances());
    assert_eq!(still.proportions(), model.proportions());
    // Dense rows have other axes: means alone.
    let builder = em(8, Gaussian::new(Covariance::Diagonal))
        .max_iterations(0)
        .start_from(&model);
    let dense = builder.build().unwrap().fit(&data).unwrap().model;
    let off = (&dense.means() - &model.means()).mapv(f32::abs);
    assert!(off.iter().all(|off| *off < 1e-5), "{off}");
    assert_ne!(dense.proportions(), model.proportions());
}

#[test]
fn a_dirichlet_process_carries_its_distributions_over() {
    let x = blobs::<f64>(500, 3, 5, 4);
    let data = Dense::new(x.view()).unwrap();
    let process = || algorithms::dp_gmm(9, 1.0).tolerance(1e-9);
    let model = process().build().unwrap().fit(&data).unwrap().model;
    for shift in [0.0, 100.0] {
        let moved = x.mapv(|x| x + shift);
        let moved = Dense::new(moved.view()).unwrap();
        let builder = process().max_iterations(0).start_from(&model);
        let fit = builder.build().unwrap().fit(&moved).unwrap();
        assert_eq!(fit.model.sticks(), model.sticks());
        assert_eq!(fit.model.degrees_of_freedom(), model.degrees_of_freedom());
        let pairs = fit.model.covariances();
        for (a, b) in pairs.iter().zip(&model.covariances()) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-3), "{a} {b}");
        }
        for (a, b) in fit.model.means().iter().zip(model.means()) {
            assert!(close(*a, *b, 1e-9), "{a} {b}");
        }
    }
    let again = process()
        .start_from(&model)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    assert!(again.report.iterations <= 5, "{}", again.report.iterations);
}

/// Every named algorithm starts from the model of a fit before, also when that comes from a file.
#[test]
fn algorithms_by_name() {
    let x = blobs::<f32>(900, 3, 12, 5);
    let data = Dense::new(x.view()).unwrap();
    for name in Algorithm::NAMES {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(12).coreset(200);
        let first = algorithm.boxed::<f32>().unwrap().fit(&data).unwrap();
        let bytes = first.model.to_bytes(&[]).unwrap();
        let loaded = coremix::BoxedMixture::<f32>::from_bytes(&bytes).unwrap();
        let warm = algorithm.clone().start_from(&loaded);
        let fit = warm.boxed::<f32>().unwrap().fit(&data).unwrap();
        assert_eq!(fit.report.evaluations.seeding, 0, "{name}");
        let error =
            |fit: &Fit<coremix::BoxedMixture<f32>>| fit.model.quantization_error(&data).unwrap();
        assert!(error(&fit) <= 1.1 * error(&first), "{name}");
    }
}

fn of_model<T>(result: Result<T>) -> FileFault {
    match result.map(|_| ()).unwrap_err() {
        Error::Model { fault, .. } => fault,
        other => panic!("{other}"),
    }
}

#[test]
fn models_that_do_not_fit_are_errors() {
    let (x, y) = (blobs::<f64>(300, 3, 5, 6), blobs::<f64>(300, 4, 5, 6));
    let data = Dense::new(x.view()).unwrap();
    fn fitted<F>(x: &Array2<F>) -> coremix::BoxedMixture<F>
    where
        F: Float + coremix::Element<Float = F>,
    {
        let data = Dense::new(x.view()).unwrap();
        let algorithm = "k-means".parse::<Algorithm>().unwrap().clusters(5);
        algorithm.boxed().unwrap().fit(&data).unwrap().model
    }
    let model = fitted(&x);
    // Another kind of covariance takes the means alone; another family, nothing.
    let other = algorithms::gmm(5)
        .covariance(Covariance::Diagonal)
        .start_from(&model);
    let start = other.max_iterations(0).build().unwrap().fit(&data).unwrap();
    assert_eq!(start.model.means(), model.means());
    let family = algorithms::dp_gmm(5, 1.0).start_from(&model);
    let found = of_model(family.build().unwrap().fit(&data));
    assert!(matches!(found, FileFault::Family { .. }), "{found}");
    let number = algorithms::gmm(5).start_from(&fitted(&x.mapv(|x| x as f32)));
    let found = of_model(number.build().unwrap().fit(&data));
    assert!(matches!(found, FileFault::Number { .. }), "{found}");
    let others = algorithms::gmm(6).start_from(&model).build().unwrap();
    let error = others.fit(&data).unwrap_err();
    assert!(
        matches!(
            error,
            Error::LengthMismatch {
                expected: 6,
                found: 5,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("model to start from"), "{error}");
    let columns = algorithms::gmm(5).start_from(&fitted(&y)).build().unwrap();
    let error = columns.fit(&data).unwrap_err();
    assert!(
        matches!(
            error,
            Error::DimensionMismatch {
                expected: 3,
                found: 4,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("model to start from"), "{error}");
    // A model of a sketch, on the sketch of other columns.
    let sketch = Sketch::new(y.view(), 2, 1).unwrap();
    let warm = algorithms::gmm(5).start_from(&model).build().unwrap();
    assert!(warm.fit(&sketch).is_err());
}

/// A model of rows that are wider by more than its variances can say: an error that names the setting, on a coreset as well.
#[test]
fn a_model_of_far_wider_rows_is_an_error() {
    let x = blobs::<f64>(300, 3, 5, 6);
    let data = Dense::new(x.view()).unwrap();
    let model = algorithms::gmm(5)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    for scale in [5e-324, 1e-310, 1e-300] {
        let tiny = x.mapv(|x| x.round() * scale);
        let data = Dense::new(tiny.view()).unwrap();
        for rows in [100, 1_000] {
            let warm = algorithms::gmm(5).start_from(&model);
            let warm = warm.coreset(Lightweight::new(rows)).build().unwrap();
            let error = warm.fit(&data).unwrap_err().to_string();
            assert!(error.starts_with("start_from = "), "{scale}: {error}");
        }
    }
}

/// A warm start is one of the settings of a checkpoint, and goes on as any fit.
#[test]
fn with_checkpoints() {
    let x = blobs::<f64>(500, 3, 8, 7);
    let data = Dense::new(x.view()).unwrap();
    let models = [1, 2].map(|seed| {
        let builder = algorithms::gmm(8).seed(seed).max_iterations(2);
        builder.build().unwrap().fit(&data).unwrap().model
    });
    let path = std::env::temp_dir().join(format!("coremix-warm-{}", std::process::id()));
    let fit = |model, checkpoint: Option<Checkpoint>| {
        let builder = algorithms::gmm(8).start_from(model).max_iterations(9);
        match checkpoint {
            Some(checkpoint) => builder.checkpoint(&checkpoint).build(),
            None => builder.build(),
        }
        .unwrap()
    };
    let whole = fit(&models[0], None).fit(&data).unwrap();
    for every in [1, 100] {
        let checkpoint = Checkpoint::to(&path).every_iterations(every);
        let stopped =
            fit(&models[0], Some(checkpoint.clone())).fit_observed(
                &data,
                |progress| match progress {
                    Progress::Iteration { iteration: 1, .. } => std::ops::ControlFlow::Break(()),
                    _ => std::ops::ControlFlow::Continue(()),
                },
            );
        assert_eq!(stopped.unwrap().report.stop, Stop::Observer);
        let resumed = fit(&models[0], Some(checkpoint.clone().resume()))
            .fit(&data)
            .unwrap();
        assert_eq!(resumed.model, whole.model);
        assert_eq!(resumed.report.free_energies, whole.report.free_energies);
        let other = fit(&models[1], Some(checkpoint.resume()))
            .fit(&data)
            .unwrap_err();
        let message = other.to_string();
        assert!(message.contains("of another fit: start is"), "{message}");
    }
    std::fs::remove_file(path).ok();
}

/// Initial searches move no seed, and end with supports that are nearer to the seeds than random ones.
#[test]
fn initial_searches_leave_the_seeds() {
    let x = blobs::<f64>(600, 5, 6, 12);
    let data = Dense::new(x.view()).unwrap();
    let seeded = |initial| {
        let e_step = Neighborhood::new(3, 5).initial_searches(initial);
        let builder = em(12, Gaussian::new(Covariance::Spherical)).e_step(e_step);
        let fit = builder.max_iterations(0).build().unwrap().fit(&data);
        let Fit { model, report, .. } = fit.unwrap();
        (model.means().to_owned(), report)
    };
    let (seeds, without) = seeded(0);
    let (same, with) = seeded(2);
    assert_eq!(seeds, same);
    assert!(with.evaluations.search > 2 * without.evaluations.search);
    assert!(with.free_energies[0] > without.free_energies[0]);
}

/// Initial searches are for seeds: a model that is known needs none.
#[test]
fn no_initial_searches_from_a_model() {
    let x = blobs::<f64>(600, 5, 6, 12);
    let data = Dense::new(x.view()).unwrap();
    let builder = |initial| {
        let e_step = Neighborhood::new(3, 5)
            .from_seeds(true)
            .initial_searches(initial);
        em(12, Gaussian::new(Covariance::Spherical))
            .e_step(e_step)
            .tolerance(1e-6)
    };
    let first = builder(0).build().unwrap().fit(&data).unwrap();
    let reached = *first.report.free_energies.last().unwrap();
    let warm = builder(2).start_from(&first.model).build().unwrap();
    let begins = warm.fit(&data).unwrap().report.free_energies[0];
    assert!(close(begins, reached, 1e-3), "{begins} after {reached}");
}

/// A truncated fit that goes on from its own model, of which components were discarded.
#[test]
fn a_truncated_fit_goes_on_from_its_own_model() {
    let mut discarded = 0;
    for seed in 0..60 {
        let x = blobs::<f64>(40 + seed as usize % 30, 2, 5, seed);
        let data = Dense::new(x.view()).unwrap();
        for kind in [
            Covariance::Tied,
            Covariance::Full,
            Covariance::Spherical,
            Covariance::Diagonal,
            Covariance::Factors(1),
        ] {
            let builder = || algorithms::var_gmm_s(8, 2, 2).covariance(kind).seed(seed);
            let first = builder().build().unwrap().fit(&data).unwrap();
            discarded += usize::from(first.report.zero_mass > 0);
            let again = builder().start_from(&first.model).build().unwrap();
            let energies = again.fit(&data).unwrap().report.free_energies;
            assert!(
                energies.iter().all(|f| f.is_finite()),
                "{kind:?} {seed}: {energies:?}"
            );
        }
    }
    assert!(discarded > 5, "{discarded}");
}
