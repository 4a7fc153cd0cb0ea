//! Promises to users: the code they write compiles and runs as written, and the small print holds.

use crate::common::{blobs, phases};
use approx::assert_abs_diff_eq;
use coremix::data::{Data, Rows};
use coremix::families::{DirichletProcessMixture, GaussianMixture};
use coremix::prelude::*;
use coremix::stage::{Rng, Shape};
use coremix::{Builder, Evaluations, Float, PhaseReport, Score, Timings};
use coremix::{algorithms, metrics};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, array};
use std::ops::ControlFlow;

/// Points around the corners of a lattice; no two of them are equal.
fn points<F: Float>(n: usize, d: usize, blobs: usize) -> Array2<F> {
    let mut rng = Rng::from_seed(23);
    Array2::from_shape_fn((n, d), |(n, j)| {
        let corner = (n % blobs * (j + 2)) % 7;
        F::from_f64(3.0 * corner as f64 + rng.normal())
    })
}

// ---- The contract as written ----------------------------------------------------------------------------

/// The evaluations of all stages.
fn total(evaluations: &coremix::Evaluations) -> u64 {
    evaluations.coreset + evaluations.seeding + evaluations.search + evaluations.scoring
}

#[test]
fn a_fit_from_the_builder() -> Result<()> {
    let x: Array2<f32> = points(3_000, 5, 20);
    let w: Array1<f64> = Array1::from_elem(3_000, 1.5);
    let w: ArrayView1<f64> = w.view();
    let weighted: Dense<'_, f32> = Dense::weighted(x.view(), w)?;
    let data = Dense::new(x.view())?;

    let fit = Clusterer::builder()
        .clusters(50)
        .coreset(Lightweight::new(1_024))
        .seeder(AfkMc2::new(20))
        .e_step(Neighborhood::new(5, 5).random(1)) // C', G, extra random components per point
        .covariance(Covariance::TiedSpherical)
        .tolerance(1e-4)
        .max_iterations(200)
        .restarts(1)
        .seed(42)
        .build()?
        .fit(&data)?;

    let means: ArrayView2<'_, f32> = fit.model.means();
    assert_eq!(means.dim(), (50, 5));
    let labels: Array1<u32> = fit.model.predict(&data)?;
    let phi: f64 = fit.model.quantization_error(&data)?;
    let ll: f64 = fit.model.log_likelihood(&data)?;
    assert_eq!(labels.len(), 3_000);
    assert!(phi > 0.0 && ll.is_finite());
    let heavier: f64 = fit.model.quantization_error(&weighted)?;
    assert_abs_diff_eq!(heavier / phi, 1.5, epsilon = 1e-12);

    let r: &Report = &fit.report;
    let stop: Stop = r.stop;
    let iterations: usize = r.iterations;
    let free_energies: &Vec<f64> = &r.free_energies;
    let phases: &Vec<PhaseReport> = &r.phases;
    let distance_evaluations: u64 = r.distance_evaluations;
    let by_stage: Evaluations = r.evaluations;
    let stages: [u64; 4] = [
        by_stage.coreset,
        by_stage.seeding,
        by_stage.search,
        by_stage.scoring,
    ];
    let coreset_size: usize = r.coreset_size;
    let timings: Timings = r.timings;
    let zero_mass: usize = r.zero_mass;
    let at_floor: usize = r.at_floor;
    assert!(stop == Stop::Converged && iterations < 200, "{r}");
    assert_eq!(free_energies.len(), iterations + 1);
    assert_eq!(phases.len(), 1);
    assert_eq!(phases[0].free_energies, *free_energies);
    let phase = (phases[0].stop, phases[0].iterations, phases[0].rows);
    assert_eq!(phase, (stop, iterations, coreset_size));
    assert_eq!(
        (
            phases[0].evaluations,
            phases[0].zero_mass,
            phases[0].at_floor
        ),
        (by_stage.search, zero_mass, at_floor)
    );
    assert_eq!(stages.iter().sum::<u64>(), distance_evaluations);
    assert!(coreset_size <= 1_024 && coreset_size > 512);
    assert!(zero_mass < 50);
    assert!(timings.total() >= timings.search);
    // The report prints itself.
    let shown = r.to_string();
    assert!(
        shown.contains("converged") && shown.contains("seeding"),
        "{shown}"
    );

    // Labels and supports of a fit are about the rows on which EM ran.
    let coreset = fit.coreset.as_ref().expect("a coreset was asked for");
    assert_eq!(coreset.rows.len(), coreset_size);
    assert_eq!(fit.search_labels.len(), coreset_size);
    let supports: &Array2<u32> = fit.supports.as_ref().expect("supports are truncated");
    assert_eq!(supports.dim(), (coreset_size, 5));
    assert_eq!(supports.column(0), fit.search_labels);

    // One configuration fits any number of data sets; with an observer it is the same fit.
    let clusterer = algorithms::k_means(50).seed(42).build()?;
    let mut seen = 0;
    let observed = clusterer.fit_observed(&data, |_| {
        seen += 1;
        ControlFlow::Continue(())
    })?;
    assert_eq!(observed.model, clusterer.fit(&data)?.model);
    // The coreset, the seeding, the seeds, and one search more than there are M-steps.
    assert_eq!(seen, 4 + observed.report.iterations);

    // The model answers as a trait object as well.
    let model: &dyn Mixture<f32> = &fit.model;
    assert_eq!(model.predict(&data)?, labels);
    let shares: Array2<f32> = model.responsibilities(&data)?;
    assert_eq!(shares.dim(), (3_000, 50));
    let (supports, shares): (Array2<u32>, Array2<f32>) =
        model.truncated_responsibilities(&data, 3)?;
    assert_eq!((supports.dim(), shares.dim()), ((3_000, 3), (3_000, 3)));
    assert_eq!(supports.column(0), labels);

    let mut fit = fit;
    let score: Score = fit.score(&data)?;
    let found: (f64, f64) = (score.quantization_error, score.log_likelihood);
    assert_eq!((score.labels, found), (labels, (phi, ll)));
    assert_eq!(
        fit.report.distance_evaluations,
        distance_evaluations + 3_000 * 50
    );
    assert_eq!(
        total(&fit.report.evaluations),
        fit.report.distance_evaluations
    );

    let model: GaussianMixture<f32> = fit.model;
    let variance: f64 = model.variance();
    let rebuilt = GaussianMixture::tied_spherical(model.means(), variance)?;
    let (sample, components): (Array2<f32>, Array1<u32>) = rebuilt.sample(10, 7)?;
    assert_eq!((sample.dim(), components.len()), ((10, 5), 10));
    Ok(())
}

/// The named algorithms return the builder, so every stage and setting can still be changed.
#[test]
fn named_algorithms_are_builders() -> Result<()> {
    let x: Array2<f64> = points(400, 3, 6);
    let data = Dense::new(x.view())?;
    let given = x.slice(ndarray::s![..6, ..]);
    let everything_changed = algorithms::k_means(3)
        .clusters(6)
        .coreset(Lightweight::new(300))
        .seeder(AfkMc2::default())
        .e_step(Neighborhood::new(2, 3).from_seeds(true))
        .covariance(Covariance::TiedSpherical)
        .tolerance(1e-6)
        .max_iterations(50)
        .restarts(2)
        .seed(9)
        .build()?;
    let fit: Fit<GaussianMixture<f64>> = everything_changed.fit(&data)?;
    assert_eq!(fit.model.means().nrows(), 6);

    // A builder whose stages are all replaced is the algorithm of those stages.
    let k_means = || algorithms::k_means(6).seed(3);
    let lwcs = k_means()
        .coreset(Lightweight::new(200))
        .seeder(AfkMc2::default());
    let vc = lwcs.clone().e_step(Neighborhood::new(2, 3));
    let same = |a: GaussianMixture<f64>, b: GaussianMixture<f64>| assert_eq!(a, b);
    macro_rules! model {
        ($builder:expr) => {
            $builder.build()?.fit(&data)?.model
        };
    }
    same(
        model!(algorithms::lwcs_k_means(6, 200).seed(3)),
        model!(lwcs),
    );
    same(
        model!(algorithms::vc_gmm(6, 200, 2, 3).seed(3)),
        model!(vc.clone()),
    );
    same(
        model!(algorithms::var_gmm_s(6, 2, 3).seed(3)),
        model!(vc.clone().coreset(Full)),
    );
    same(
        model!(algorithms::d_gmm(6, 3, 2).seed(3)),
        model!(vc.coreset(Full).e_step(SimilaritySampling::new(3, 2))),
    );
    let two = k_means().e_step(Exhaustive::truncated(2));
    same(
        model!(algorithms::k_means_c_prime(6, 2).seed(3)),
        model!(two),
    );
    let gmm = k_means().e_step(Exhaustive::all());
    let at_rows = algorithms::gmm(6).seeder(KMeansPlusPlus::default());
    same(model!(at_rows.seed(3)), model!(gmm));
    let lazy = k_means().e_step(Lazy::new(0.1));
    same(
        model!(algorithms::lazy_k_means(6, 0.1).seed(3)),
        model!(lazy),
    );
    same(
        model!(k_means()),
        model!(Clusterer::builder().clusters(6).seed(3)),
    );
    let defaults = Clusterer::builder()
        .clusters(6)
        .coreset(Full)
        .seeder(KMeansPlusPlus::default())
        .e_step(Exhaustive::nearest())
        .covariance(Covariance::TiedSpherical)
        .tolerance(1e-3)
        .stop_rule(Rule::PerCoordinate)
        .max_iterations(200)
        .restarts(1)
        .seed(3);
    same(model!(k_means()), model!(defaults));

    let seeded = algorithms::gmm(6)
        .seeder(Given::new(given))
        .max_iterations(0);
    let off = &model!(seeded).means() - &given;
    assert!(off.iter().all(|t| t.abs() < 1e-13));
    model!(
        k_means()
            .coreset(UniformCoreset::new(100))
            .seeder(UniformSeeder)
    );
    model!(k_means().seeder(HierarchicalKMeansPlusPlus));
    model!(k_means().seeder(KMeansPlusPlus::greedy()));
    model!(k_means().seeder(KMeansPlusPlus::default().candidates(3)));
    Ok(())
}

/// Every family fits, predicts and scores through the same calls, on rows and on sketches of them.
#[test]
fn families_and_sketches() -> Result<()> {
    let x: Array2<f32> = points(600, 8, 6);
    let data = Dense::new(x.view())?;
    macro_rules! fit {
        ($m_step:expr) => {
            Clusterer::builder()
                .clusters(6)
                .coreset(Lightweight::new(300))
                .seeder(AfkMc2::new(20))
                .e_step(Neighborhood::new(3, 3).random(1))
                .m_step($m_step)
                .seed(42)
                .build()?
                .fit(&data)?
        };
    }
    let isotropic = fit!(Gaussian::new(Covariance::Spherical));
    let (means, variances) = (isotropic.model.means(), isotropic.model.variances());
    let (means, variances): (ArrayView2<f32>, Array2<f64>) = (means, variances);
    let proportions: Array1<f64> = isotropic.model.proportions();
    assert_eq!(
        (means.dim(), variances.dim(), proportions.len()),
        ((6, 8), (6, 8), 6)
    );
    let rebuilt = GaussianMixture::from_parameters(
        Covariance::Spherical,
        means,
        variances.column(0),
        proportions.view(),
    )?;
    assert_eq!(rebuilt.means(), means);

    let diagonal = fit!(Gaussian::new(Covariance::Diagonal).equal_proportions());
    let variances: Array2<f64> = diagonal.model.variances();
    assert_eq!(variances.dim(), (6, 8));
    GaussianMixture::from_parameters(
        Covariance::Diagonal,
        diagonal.model.means(),
        variances.view(),
        diagonal.model.proportions().view(),
    )?;

    let (q, seed) = (4, 1);
    let sketch = Sketch::new(x.view(), q, seed)?;
    let w = Array1::from_elem(600, 2.0);
    let weighted = Sketch::of_dense(&Dense::weighted(x.view(), w.view())?, q, seed)?;
    let sparsified = algorithms::sparsified_gmm(6)
        .seed(3)
        .build()?
        .fit(&sketch)?;
    let means: ArrayView2<f32> = sparsified.model.means();
    assert_eq!(means.dim(), (6, 8));
    assert_eq!(sketch.indices().dim(), (600, q));
    let labels: Array1<u32> = sparsified.model.predict(&sketch)?;
    assert_eq!(labels, sparsified.search_labels);
    let (of_rows, of_entries): (f64, f64) = (
        sparsified.model.log_likelihood(&data)?,
        sparsified.model.log_likelihood(&weighted)?,
    );
    assert!(of_rows.is_finite() && of_entries.is_finite());
    let columns: Array2<f64> = sparsified.model.column_variances();
    let covariance: Array2<f64> = sparsified.model.covariance(2)?;
    assert_abs_diff_eq!(columns[[2, 5]] / covariance[[5, 5]], 1.0, epsilon = 1e-9);
    let other = Sketch::new(x.view(), q, seed + 1)?;
    let error = sparsified.model.predict(&other).unwrap_err();
    assert!(matches!(error, Error::BasisMismatch { .. }), "{error}");

    let (truncation, concentration) = (12, 1.0);
    let dp = algorithms::dp_gmm(truncation, concentration)
        .coreset(Lightweight::new(300))
        .seed(3)
        .build()?
        .fit(&data)?;
    let (means, precisions) = (dp.model.means(), dp.model.precisions());
    assert_eq!((means.dim(), precisions.dim()), ((12, 8), (12, 8, 8)));
    let proportions: Array1<f64> = dp.model.proportions();
    assert_abs_diff_eq!(proportions.sum(), 1.0, epsilon = 1e-12);
    let nats: f64 = proportions.iter().map(|p| -p * p.ln()).sum();
    let found = nats.exp();
    assert!((1.0..=12.0).contains(&found), "{found}");
    let predictive: Array1<f64> = dp.model.log_densities(&data)?;
    let sum = dp.model.log_likelihood(&data)?;
    assert_abs_diff_eq!(predictive.sum() / sum, 1.0, epsilon = 1e-9);

    let models: [&dyn Mixture<f32>; 4] = [
        &isotropic.model,
        &diagonal.model,
        &sparsified.model,
        &dp.model,
    ];
    for model in models {
        assert_eq!(model.predict(&data)?.len(), 600);
        assert!(model.quantization_error(&data)? > 0.0);
        assert!(model.log_likelihood(&data)?.is_finite());
        assert_eq!(model.responsibilities(&data)?.nrows(), 600);
    }
    Ok(())
}

#[test]
fn metrics_take_views_and_return_results() -> Result<()> {
    let (labels, truth) = (array![0u32, 0, 1, 1], array![5u32, 5, 7, 7]);
    let (labels, truth): (ArrayView1<u32>, ArrayView1<u32>) = (labels.view(), truth.view());
    let purity: Result<f64> = metrics::purity(labels, truth);
    let nmi: Result<f64> = metrics::nmi(labels, truth);
    let rand: Result<f64> = metrics::adjusted_rand_index(labels, truth);
    assert_eq!((purity?, nmi?, rand?), (1.0, 1.0, 1.0));
    let (a, b) = (
        array![[0.0f32, 0.0], [1.0, 1.0]],
        array![[1.0f32, 1.0], [0.0, 0.0]],
    );
    let (a, b): (ArrayView2<f32>, ArrayView2<f32>) = (a.view(), b.view());
    let rmse: Result<f64> = metrics::matched_rmse(a, b);
    assert_eq!(rmse?, 0.0);
    let (q, q_ref): (f64, f64) = (1.1, 1.0);
    let error: Result<f64> = metrics::relative_error(q, q_ref);
    assert_abs_diff_eq!(error?, 0.1, epsilon = 1e-12);
    Ok(())
}

#[test]
fn all_storage_types() -> Result<()> {
    let x: Array2<f64> = points(300, 3, 4);
    let single = x.mapv(|v| v as f32);
    let bytes = x.mapv(|v| (10.0 * v).clamp(0.0, 255.0) as u8);
    let fit: Fit<GaussianMixture<f64>> = algorithms::k_means(4)
        .build()?
        .fit(&Dense::new(x.view())?)?;
    let of_singles: Fit<GaussianMixture<f32>> = algorithms::k_means(4)
        .build()?
        .fit(&Dense::new(single.view())?)?;
    let of_bytes: Fit<GaussianMixture<f32>> = algorithms::k_means(4)
        .build()?
        .fit(&Dense::new(bytes.view())?)?;
    assert_eq!(fit.search_labels, of_singles.search_labels);
    assert_eq!(of_bytes.model.means().dim(), (4, 3));
    Ok(())
}

/// Everything can be moved to and shared with other threads, and held across an await.
#[test]
fn all_public_types_are_send_sync_unpin() {
    fn check<T: Send + Sync + Unpin>() {}
    type D<'a> = Dense<'a, f32>;
    type Model = GaussianMixture<f32>;
    check::<(Clusterer<f32>, Clusterer<f64, Gaussian>)>();
    check::<(Builder<f32>, Builder<f64, DirichletProcess>)>();
    check::<(
        Fit<Model>,
        Score,
        Report,
        PhaseReport,
        Evaluations,
        Timings,
        Stop,
    )>();
    check::<Progress<'_, f32>>();
    check::<(Error, Result<Model>, Rng)>();
    check::<(
        coremix::stage::Block<f32>,
        coremix::stage::Likelihood,
        coremix::stage::LogJoint,
    )>();
    check::<(D<'_>, Dense<'_, f64>, Dense<'_, u8>, Rows<f32>)>();
    check::<(coremix::data::Centres<f32>, coremix::data::Frame<f64>)>();
    check::<(coremix::m_step::Moments, coremix::data::Summary)>();
    check::<coremix::datasets::Labelled<f32>>();
    check::<(Full, Lightweight, UniformCoreset, coremix::coreset::Subset)>();
    check::<(
        AfkMc2,
        Given<f32>,
        HierarchicalKMeansPlusPlus,
        KMeansPlusPlus,
        UniformSeeder,
        coremix::seed::Seeds<f32>,
    )>();
    check::<(Bounded, Exhaustive, Lazy)>();
    check::<(Neighborhood, SimilaritySampling)>();
    check::<(Phase<f64>, PhaseRows, Columns, coremix::stage::Shape, Rule)>();
    check::<(Gaussian, Model, GaussianMixture<f64>)>();
    check::<(Gaussian, Covariance, DirichletProcess)>();
    check::<(GaussianMixture<f32>, DirichletProcessMixture<f32>)>();
    check::<(
        Sketch<f32>,
        Rows<f32>,
        coremix::data::SketchBuilder<f32>,
        coremix::data::Basis,
    )>();
    check::<coremix::m_step::Moments>();
}

// ---- The small print, for every named algorithm ---------------------------------------------------------

/// Calls `$check(name, builder)` for every named algorithm, with `$k` clusters.
macro_rules! every_algorithm {
    ($check:ident, $k:expr) => {
        $check("k_means", algorithms::k_means($k));
        $check("k_means_c_prime", algorithms::k_means_c_prime($k, 2));
        $check("gmm", algorithms::gmm($k));
        $check("lazy_k_means", algorithms::lazy_k_means($k, 0.05));
        $check("lwcs_k_means", algorithms::lwcs_k_means($k, 400));
        $check("var_gmm_s", algorithms::var_gmm_s($k, 3, 3));
        $check("vc_gmm", algorithms::vc_gmm($k, 400, 3, 3));
        $check("d_gmm", algorithms::d_gmm($k, 3, 3));
    };
}

fn restarts_keep_the_best(name: &str, builder: Builder<f32>) {
    let x: Array2<f32> = points(1_500, 4, 15);
    let data = Dense::new(x.view()).unwrap();
    let (mut later_ones_won, mut first_ones_won) = (0, 0);
    for seed in 0..6 {
        let fit = |restarts| {
            let builder = builder.clone().seed(seed).restarts(restarts);
            let (mut coresets, mut seeded) = (0, Vec::new());
            let (mut seeding, mut searches) = (0, Vec::new());
            let fit = builder.build().unwrap().fit_observed(&data, |progress| {
                match *progress {
                    Progress::Coreset { .. } => coresets += 1,
                    Progress::Seeded {
                        restart,
                        evaluations,
                        ..
                    } => {
                        seeded.push(restart);
                        seeding += evaluations;
                        searches.push(0);
                    }
                    // Within a restart the count goes up; its last value is that of the restart.
                    Progress::Iteration { evaluations, .. } => {
                        *searches.last_mut().unwrap() = evaluations;
                    }
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            let fit = fit.unwrap();
            // One coreset, drawn once and paid for once.
            assert_eq!(coresets, 1, "{name}");
            assert_eq!(seeded, (0..restarts).collect::<Vec<_>>(), "{name}");
            assert_eq!(fit.report.evaluations.seeding, seeding, "{name}");
            assert_eq!(
                fit.report.evaluations.search,
                searches.iter().sum::<u64>(),
                "{name}"
            );
            assert_eq!(
                searches[fit.report.restart],
                fit.report.phases[0].evaluations
            );
            fit
        };
        let (one, five) = (fit(1), fit(5));
        let report = &five.report;
        assert_eq!(report.restarts.len(), 5, "{name}");
        assert_eq!(report.restarts[0], one.report.restarts[0], "{name}");
        assert_eq!(one.coreset, five.coreset, "{name}");
        assert_eq!(report.evaluations.coreset, one.report.evaluations.coreset);
        let best = report
            .restarts
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(report.free_energies.last(), Some(&best), "{name}");
        assert_eq!(report.restarts[report.restart], best, "{name}");
        assert_eq!(
            total(&report.evaluations),
            report.distance_evaluations,
            "{name}"
        );
        assert_eq!(five.search_labels.len(), report.coreset_size, "{name}");
        later_ones_won += usize::from(report.restart > 0);
        first_ones_won += usize::from(report.restart == 0);
        // The whole fit is that of the restart that was kept.
        if report.restart == 0 {
            assert_eq!(five.model, one.model, "{name}");
        } else {
            assert!(five.model != one.model, "{name}");
        }
    }
    assert!(later_ones_won > 0, "{name}: {first_ones_won} of 6");
}

#[test]
fn restarts_share_the_coreset_and_keep_the_best() {
    every_algorithm!(restarts_keep_the_best, 12);
}

/// Where the search is exhaustive and the rows are all rows, labels are what `predict` says.
fn labels_are_predictions(x: ArrayView2<'_, f64>, given: ArrayView2<'_, f64>, iterations: usize) {
    let k = given.nrows();
    let single = x.mapv(|v| v as f32);
    let single_given = given.mapv(|v| v as f32);
    for e_step in [
        Exhaustive::nearest(),
        Exhaustive::truncated(2),
        Exhaustive::all(),
    ] {
        fn builder<F: Float>(k: usize, e_step: Exhaustive, given: ArrayView2<'_, F>) -> Builder<F> {
            let builder = algorithms::k_means(k).e_step(e_step);
            builder.seeder(Given::new(given))
        }
        let data = Dense::new(x).unwrap();
        let seeded = builder(k, e_step, given).max_iterations(iterations);
        let fit = seeded.build().unwrap().fit(&data).unwrap();
        let predicted = fit.model.predict(&data).unwrap();
        assert_eq!(fit.search_labels, predicted, "{e_step:?}, f64");
        let score = fit.model.score(&data).unwrap();
        assert_eq!(score.labels, predicted, "{e_step:?}, f64");
        let data = Dense::new(single.view()).unwrap();
        let seeded = builder(k, e_step, single_given.view()).max_iterations(iterations);
        let fit = seeded.build().unwrap().fit(&data).unwrap();
        let predicted = fit.model.predict(&data).unwrap();
        assert_eq!(fit.search_labels, predicted, "{e_step:?}, f32");
        let score = fit.model.score(&data).unwrap();
        assert_eq!(score.labels, predicted, "{e_step:?}, f32");
    }
}

#[test]
fn labels_of_an_exhaustive_search_are_predictions() {
    let x: Array2<f64> = points(1_500, 4, 15);
    let rows: Vec<usize> = (0..12).map(|i| 7 * i).collect();
    labels_are_predictions(x.view(), x.select(ndarray::Axis(0), &rows).view(), 10);
    // Points on the diagonal are as far from a centre as from its mirror image: ties, which every search
    // must break the same way although approximate distances would not.
    let mut rng = Rng::from_seed(5);
    let diagonal: Vec<f64> = (0..500).map(|_| 3.0 * rng.normal()).collect();
    let x = Array2::from_shape_fn((500, 2), |(n, _)| diagonal[n]);
    for _ in 0..20 {
        let (a, b) = (rng.normal(), rng.normal());
        labels_are_predictions(x.view(), array![[a, b], [b, a]].view(), 0);
    }
}

// ---- Distance evaluations -------------------------------------------------------------------------------

#[test]
fn distance_evaluations_follow_the_formulas() -> Result<()> {
    let (n, k, m) = (1_300u64, 11u64, 7u64);
    let x: Array2<f32> = points(n as usize, 3, 15);
    let data = Dense::new(x.view())?;
    let clusters = k as usize;
    macro_rules! report {
        ($builder:expr) => {
            $builder.seed(4).build()?.fit(&data)?.report
        };
    }
    let searches = |report: &Report| report.iterations as u64 + 1;

    // k-means: n k per search, n per seed.
    let r = report!(algorithms::k_means(clusters));
    assert!(r.iterations > 2);
    assert_eq!(r.evaluations.search, n * k * searches(&r));
    assert_eq!(r.evaluations.seeding, n * k);
    assert_eq!((r.evaluations.coreset, r.evaluations.scoring), (0, 0));
    assert_eq!(r.distance_evaluations, n * k * (searches(&r) + 1));
    // Restarts pay for themselves.
    let r = report!(algorithms::k_means(clusters).restarts(3));
    assert_eq!(r.evaluations.seeding, 3 * n * k);
    // Greedy k-means++: the first seed has one candidate; the chosen one of several is measured once more.
    let greedy = KMeansPlusPlus::default().candidates(3);
    let r = report!(algorithms::k_means(clusters).seeder(greedy));
    assert_eq!(r.evaluations.seeding, n + (3 + 1) * n * (k - 1));
    let r = report!(algorithms::k_means(clusters).seeder(KMeansPlusPlus::greedy()));
    assert_eq!(r.evaluations.seeding, n + (2 + 2 + 1) * n * (k - 1));

    // Wider supports: one search starts the variance, and its supports are scored again under it.
    let r = report!(algorithms::k_means_c_prime(clusters, 2));
    assert_eq!(r.evaluations.search, n * k * searches(&r) + 2 * n);
    let r = report!(algorithms::gmm(clusters));
    assert_eq!(r.evaluations.search, n * k * searches(&r) + k * n);
    let r = report!(algorithms::lazy_k_means(clusters, 0.1));
    assert_eq!(r.evaluations.search, n * k * searches(&r));

    // AFK-MC2 on rows without duplicates; more seeds than fit one batch, too. (A chain that ends on a row
    // that is a seed already is followed by a fresh one: with a chain of length 1 that happens.)
    for k in [1, k, 50, 70] {
        let of_chain = |m| algorithms::k_means(k as usize).seeder(AfkMc2::new(m as usize));
        for m in [m, 20] {
            let r = report!(of_chain(m));
            assert_eq!(
                r.evaluations.seeding,
                n + m * k * (k - 1) / 2,
                "m = {m}, k = {k}"
            );
        }
    }
    let r = report!(algorithms::k_means(clusters).seeder(UniformSeeder));
    assert_eq!(r.evaluations.seeding, 0);
    let given = x.slice(ndarray::s![..clusters, ..]);
    let r = report!(algorithms::k_means(clusters).seeder(Given::new(given)));
    assert_eq!(r.evaluations.seeding, 0);

    // A lightweight coreset looks at every row once; the rest is paid on its rows.
    let r = report!(algorithms::lwcs_k_means(clusters, 300));
    let rows = r.coreset_size as u64;
    assert_eq!(r.evaluations.coreset, n);
    assert_eq!(r.evaluations.seeding, rows + 20 * k * (k - 1) / 2);
    assert_eq!(r.evaluations.search, rows * k * searches(&r));
    let r = report!(algorithms::k_means(clusters).coreset(UniformCoreset::new(300)));
    assert_eq!((r.evaluations.coreset, r.coreset_size), (0, 300));
    // As many draws as rows: no coreset.
    let fit = algorithms::lwcs_k_means(clusters, n as usize)
        .build()?
        .fit(&data)?;
    assert!(fit.coreset.is_none());
    assert_eq!(
        (
            fit.report.evaluations.coreset,
            fit.report.coreset_size as u64
        ),
        (0, n)
    );

    // A truncated search never pays more than C' G + random per point, whatever k is.
    let (c_prime, g, random) = (2u64, 3u64, 1u64);
    let e_step = Neighborhood::new(2, 3).random(1);
    let r = report!(algorithms::var_gmm_s(clusters, 2, 3).e_step(e_step));
    let most = n * (c_prime * g + random) * searches(&r) + c_prime * n;
    assert!(
        r.evaluations.search <= most,
        "{} of {most}",
        r.evaluations.search
    );
    assert!(r.evaluations.search >= n * c_prime * searches(&r));
    // H old members and R drawn ones, of which there are no more than k - H.
    let r = report!(algorithms::d_gmm(clusters, 2, 3));
    assert_eq!(r.evaluations.search, n * 5 * searches(&r) + 2 * n);
    let r = report!(algorithms::d_gmm(clusters, clusters - 1, 3));
    assert_eq!(r.evaluations.search, n * k * searches(&r) + (k - 1) * n);
    Ok(())
}

fn sums_by_stage(name: &str, builder: Builder<f32>) {
    let x: Array2<f32> = points(900, 4, 15);
    let data = Dense::new(x.view()).unwrap();
    let mut fit = builder.restarts(2).build().unwrap().fit(&data).unwrap();
    fit.score(&data).unwrap();
    let r = &fit.report;
    let Evaluations {
        coreset,
        seeding,
        search,
        scoring,
        ..
    } = r.evaluations;
    assert_eq!(
        coreset + seeding + search + scoring,
        r.distance_evaluations,
        "{name}"
    );
    let k = fit.model.means().nrows() as u64;
    // Every row against every component, for its posterior; the likeliest mean is the nearest.
    assert_eq!(scoring, data.len() as u64 * k, "{name}");
}

#[test]
fn evaluations_add_up() {
    every_algorithm!(sums_by_stage, 12);
}

// ---- Phases ---------------------------------------------------------------------------------------------

/// `fast` needs the number of clusters alone, is the same builder as any other, and ends on all rows.
#[test]
fn fast_is_a_builder_like_any_other() -> Result<()> {
    let x: Array2<f32> = points(20_000, 4, 15);
    let data = Dense::new(x.view())?;
    let fit: Fit<GaussianMixture<f32>> = algorithms::fast(12).seed(42).build()?.fit(&data)?;
    let report = &fit.report;
    assert_eq!(report.coreset_size, 8_192);
    let rows: Vec<usize> = report.phases.iter().map(|phase| phase.rows).collect();
    // On the coreset and on all rows: a larger coreset would not be much smaller than these.
    assert_eq!(rows, [8_192, 20_000]);
    assert!(fit.coreset.is_none());
    assert_eq!(fit.search_labels.len(), 20_000);
    assert_eq!(fit.supports.as_ref().map(|s| s.dim()), Some((20_000, 1)));
    let searched = report.phases.iter().map(|phase| phase.evaluations);
    assert_eq!(report.evaluations.search, searched.sum::<u64>());
    assert_eq!(total(&report.evaluations), report.distance_evaluations);
    let last = report.phases.last().unwrap();
    assert_eq!(
        (report.stop, &report.free_energies),
        (last.stop, &last.free_energies)
    );

    // Anything can still be overridden.
    let fit = algorithms::fast(12)
        .coreset(Full)
        .seeder(KMeansPlusPlus::default())
        .phases(phases(48, Some(32_768), None, 0))
        .tolerance(1e-6)
        .build()?
        .fit(&data)?;
    let rows: Vec<usize> = fit.report.phases.iter().map(|phase| phase.rows).collect();
    assert_eq!(rows, [20_000]);

    // `fast` has the settings of every other algorithm.
    let fit = algorithms::fast(12).max_iterations(3).build()?.fit(&data)?;
    for phase in &fit.report.phases {
        assert!(phase.iterations <= 3);
        assert!(phase.iterations == 3 || phase.stop == Stop::Converged);
    }
    let loose = algorithms::fast(12).tolerance(1e9).build()?.fit(&data)?;
    let steps = |fit: &Fit<_>| fit.report.iterations;
    let tight = algorithms::fast(12).tolerance(0.0).build()?.fit(&data)?;
    assert!(steps(&loose) < steps(&tight));

    // Lloyd's algorithm comes first where a phase says so.
    let lloyd_first = |shape: Shape| {
        let exact = Bounded::default().nearest_centres(shape.clusters);
        let mut list = vec![Phase::new(exact)];
        list.extend(algorithms::fast_phases(shape));
        list
    };
    let fit = algorithms::fast(12)
        .phases(lloyd_first)
        .max_iterations(3)
        .build()?
        .fit(&data)?;
    let rows: Vec<usize> = fit.report.phases.iter().map(|phase| phase.rows).collect();
    assert_eq!(rows, [8_192, 8_192, 20_000]);
    Ok(())
}

#[test]
fn settings_of_phases_are_checked() {
    let refused = |list: Vec<Phase<f64>>| {
        let builder = algorithms::fast(5).phases(move |_| list.clone());
        match builder.build() {
            Err(Error::Parameter { name, .. }) => name,
            other => panic!("{other:?}"),
        }
    };
    let phase = || Phase::new(Bounded::default());
    let none = Lightweight::new(0);
    assert_eq!(
        refused(vec![Phase::new(Bounded::default().nearest_centres(0))]),
        "nearest_centres"
    );
    assert_eq!(refused(vec![phase().starts(0)]), "starts");
    let columns = Columns::Principal(0);
    assert_eq!(refused(vec![phase().columns(columns)]), "coordinates");
    assert_eq!(
        refused(vec![phase().tolerance_factor(-1.0)]),
        "tolerance_factor"
    );
    assert_eq!(
        refused(vec![phase().tolerance_factor(f64::NAN)]),
        "tolerance_factor"
    );
    for step in [0.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(vec![phase().step(step)]), "step", "{step}");
    }
    assert_eq!(
        refused(vec![phase().rows(PhaseRows::Larger(none))]),
        "coreset"
    );
    assert_eq!(refused(vec![]), "phases");
    // Not the first of them alone.
    assert_eq!(refused(vec![phase(), phase().starts(0)]), "starts");
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let error = algorithms::fast::<f64>(5)
            .tolerance(bad)
            .build()
            .unwrap_err();
        let named = matches!(error, Error::Parameter { name, .. } if name == "tolerance");
        assert!(named, "{error:?}");
    }
}

/// Rows from whatever views as a matrix, weights of either type: the same fit.
#[test]
fn rows_and_weights_of_any_kind() {
    let x: Array2<f32> = blobs(300, 3, 5, 1);
    let w = Array1::from_shape_fn(300, |n| 0.5 + (n % 3) as f64);
    let narrow = w.mapv(|w| w as f32);
    let means = |data: &Dense<'_, f32>| {
        let fit = algorithms::k_means(5).seed(2).build().unwrap();
        fit.fit(data).unwrap().model.means().to_owned()
    };
    let of_views = means(&Dense::weighted(x.view(), w.view()).unwrap());
    assert_eq!(means(&Dense::weighted(&x, &w).unwrap()), of_views);
    assert_eq!(means(&Dense::weighted(&x, &narrow).unwrap()), of_views);
    assert_eq!(
        means(&Dense::new(&x).unwrap()),
        means(&Dense::owned(x.clone(), None).unwrap())
    );
}
