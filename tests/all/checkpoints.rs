//! Checkpoints: a fit that goes on gives the bits of one that was never stopped.

use crate::cancel::Counting;
use crate::common::{blobs, on, phases, with_starts};
use coremix::data::Rows;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{BoxedMixture, Estimator, FileFault, Float, algorithms};
use ndarray::{Array1, Array2, Axis, s};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A file in a folder of its own, which is removed in the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = format!("coremix-checkpoints-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("fit.ckp")
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint::to(self.file()).every(Duration::MAX)
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.file()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// All of a fit that does not depend on time.
#[derive(Debug, PartialEq)]
struct Bits {
    model: Vec<u8>,
    labels: Array1<u32>,
    supports: Option<Array2<u32>>,
    coreset: Option<coremix::coreset::Subset>,
    report: String,
    free_energies: Vec<u64>,
}

fn bits<F: Float>(fit: &Fit<BoxedMixture<F>>) -> Bits {
    let all = fit.report.phases.iter().flat_map(|p| &p.free_energies);
    let all = all
        .chain(&fit.report.free_energies)
        .chain(&fit.report.restarts);
    let Report {
        stop,
        iterations,
        ref phases,
        distance_evaluations,
        evaluations,
        coreset_size,
        zero_mass,
        at_floor,
        restart,
        ref checkpoint_fault,
        ..
    } = fit.report;
    let phases: Vec<_> = phases
        .iter()
        .map(|p| {
            let shape = (p.ran_on, p.rows, p.columns, p.iterations);
            (
                shape,
                p.stop,
                p.evaluations,
                [p.zero_mass, p.unobserved, p.at_floor],
            )
        })
        .collect();
    let numbers = (
        stop,
        iterations,
        distance_evaluations,
        evaluations,
        coreset_size,
    );
    let others = ([zero_mass, at_floor], restart, fit.exact, checkpoint_fault);
    Bits {
        model: fit.model.to_bytes(&[]).unwrap(),
        labels: fit.search_labels.clone(),
        supports: fit.supports.clone(),
        coreset: fit.coreset.clone(),
        report: format!("{numbers:?} {others:?} {phases:?}"),
        free_energies: all.map(|f| f.to_bits()).collect(),
    }
}

type Boxed<F> = Box<dyn Estimator<F>>;

/// A fit that is stopped after `after` searches.
fn stopped<F: Float>(fit: &Boxed<F>, data: &dyn Data<F>, after: usize) -> Result<bool> {
    let mut searches = 0;
    let found = fit.fit_observed(data, &mut |progress| {
        searches += usize::from(matches!(progress, Progress::Iteration { .. }));
        match searches >= after {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(found.report.stop == Stop::Observer)
}

/// Stopped after any search, with checkpoints of several intervals, and resumed: the same bits, and the same as with
/// checkpoints alone.
fn resumes<F: Float>(name: &str, data: &dyn Data<F>, fit: impl Fn(Option<Checkpoint>) -> Boxed<F>) {
    let place = Place::new(name);
    let whole = bits(&fit(None).fit(data).unwrap());
    let mut searches = 0;
    let counted = fit(Some(place.checkpoint().every_iterations(1)));
    let found = counted.fit_observed(data, &mut |progress| {
        searches += usize::from(matches!(progress, Progress::Iteration { .. }));
        ControlFlow::Continue(())
    });
    assert_eq!(bits(&found.unwrap()), whole, "{name}: with checkpoints");
    let again = fit(Some(place.checkpoint().resume())).fit(data).unwrap();
    assert_eq!(bits(&again), whole, "{name}: from its end");
    assert!(searches > 3, "{name}: {searches}");
    let step = searches.div_ceil(8);
    for (i, after) in (1..=searches).step_by(step).enumerate() {
        let every = [Some(1), Some(3), None][i % 3];
        let checkpoint = match every {
            Some(every) => place.checkpoint().every_iterations(every),
            None => place.checkpoint(),
        };
        stopped(&fit(Some(checkpoint.clone())), data, after).unwrap();
        let resumed = fit(Some(checkpoint.resume())).fit(data).unwrap();
        assert_eq!(bits(&resumed), whole, "{name}: after {after}, {every:?}");
    }
}

/// A fit that is stopped again and again ends as one that never was.
fn resumes_often<F: Float>(
    name: &str,
    data: &dyn Data<F>,
    fit: impl Fn(Option<Checkpoint>) -> Boxed<F>,
) {
    let place = Place::new(&format!("{name} often"));
    let whole = bits(&fit(None).fit(data).unwrap());
    let checkpoint = place.checkpoint().every_iterations(1).resume_if_there();
    let mut stops = 0;
    // Three searches at a time: the last of them is made again.
    while stopped(&fit(Some(checkpoint.clone())), data, 3).unwrap() {
        stops += 1;
        assert!(stops < 200, "{name}: it gets nowhere");
    }
    assert!(stops > 1, "{name}: {stops} stops");
    let resumed = fit(Some(checkpoint)).fit(data).unwrap();
    assert_eq!(bits(&resumed), whole, "{name}: after {stops} stops");
}

fn named(name: &str) -> Algorithm {
    let algorithm = name.parse::<Algorithm>().unwrap().clusters(10);
    let algorithm = algorithm.coreset(120).restarts(2).seed(5);
    algorithm.max_iterations(6).tolerance(1e-9)
}

fn boxed<F: Float>(algorithm: &Algorithm, checkpoint: Option<Checkpoint>) -> Boxed<F> {
    match checkpoint {
        Some(checkpoint) => algorithm.clone().checkpoint(&checkpoint).boxed(),
        None => algorithm.boxed(),
    }
    .unwrap()
}

#[test]
fn every_named_algorithm_goes_on_to_the_same_bits() {
    let (x, y) = (blobs::<f32>(700, 3, 9, 1), blobs::<f64>(500, 5, 8, 2));
    let weights = Array1::from_shape_fn(700, |n| [1.0, 0.25, 2.0, 0.0][n % 4]);
    let dense = Dense::weighted(x.view(), weights.view()).unwrap();
    let sketch = Sketch::new(y.view(), 3, 7).unwrap();
    for name in Algorithm::NAMES {
        let algorithm = named(name);
        resumes::<f32>(name, &dense, |checkpoint| boxed(&algorithm, checkpoint));
        resumes_often::<f32>(name, &dense, |checkpoint| boxed(&algorithm, checkpoint));
        if !matches!(name, "dp-gmm" | "table") {
            let of = format!("{name} on a sketch");
            resumes::<f64>(&of, &sketch, |checkpoint| boxed(&algorithm, checkpoint));
        }
    }
}

#[test]
fn every_family_goes_on_to_the_same_bits() {
    let x = blobs::<f64>(500, 4, 8, 3);
    let data = Dense::new(x.view()).unwrap();
    for name in ["gmm", "vc-gmm", "d-gmm"] {
        for family in [
            coremix::families::Covariance::Spherical,
            coremix::families::Covariance::Diagonal,
        ] {
            let algorithm = named(name).covariance(family);
            let of = format!("{name} {family:?}");
            resumes::<f64>(&of, &data, |checkpoint| boxed(&algorithm, checkpoint));
        }
    }
}

fn own<M>(builder: Builder<f64, M>, checkpoint: Option<Checkpoint>) -> Boxed<f64>
where
    M: coremix::m_step::MStep<f64> + Send + 'static,
{
    let builder = match checkpoint {
        Some(checkpoint) => builder.checkpoint(&checkpoint),
        None => builder,
    };
    Box::new(builder.build().unwrap())
}

/// Phases on all kinds of rows, with starts, moves and restarts, and in a subspace.
#[test]
fn phases_go_on_to_the_same_bits() {
    let x = blobs::<f64>(900, 6, 14, 4);
    let data = Dense::new(x.view()).unwrap();
    let builder = || {
        let builder = algorithms::fast(24).coreset(Lightweight::new(100));
        builder
            .restarts(2)
            .max_iterations(5)
            .tolerance(1e-9)
            .seed(3)
    };
    let larger = phases(6, Some(180), None, 3);
    let list = with_starts(3, larger);
    resumes("starts and moves", &data, |checkpoint| {
        own(builder().phases(list.clone()), checkpoint)
    });
    resumes_often("starts and moves", &data, |checkpoint| {
        own(builder().phases(list.clone()), checkpoint)
    });
    // Nearly all of the error is in three columns.
    let flat = Array2::from_shape_fn(x.dim(), |(n, j)| x[[n, j]] * [1.0, 0.01][j / 3]);
    let flat = Dense::new(flat.view()).unwrap();
    let subspace = phases(6, Some(180), Some(3), 2);
    let fit = |checkpoint| own(builder().phases(subspace.clone()), checkpoint);
    resumes("in a subspace", &flat, fit);
    let report = fit(None).fit(&flat).unwrap().report;
    let columns: Vec<usize> = report.phases.iter().map(|p| p.columns).collect();
    assert_eq!(columns, [3, 3, 3, 6]);
    // Lists of near centres that are made by the coarse quantizer, and wider searches.
    let large = blobs::<f64>(4_000, 3, 150, 5);
    let large = Dense::new(large.view()).unwrap();
    resumes("many centres", &large, |checkpoint| {
        let list = phases(4, None, None, 2);
        let builder = algorithms::fast(300).coreset(Lightweight::new(900));
        own(
            builder.max_iterations(5).tolerance(1e-3).phases(list),
            checkpoint,
        )
    });
}

/// At random rows in place of the seeds, where the phase on the coreset is left out.
#[test]
fn random_rows_go_on_to_the_same_bits() {
    let mut rng = Rng::from_seed(7);
    let noise = Array2::from_shape_fn((900, 130), |_| rng.normal());
    let data = Dense::new(noise.view()).unwrap();
    let fit = |checkpoint| {
        let builder = algorithms::fast(24).coreset(Lightweight::new(300));
        own(builder.restarts(2).max_iterations(5), checkpoint)
    };
    let report = fit(None).fit(&data).unwrap().report;
    let rows: Vec<usize> = report.phases.iter().map(|p| p.rows).collect();
    assert_eq!(rows, [900]);
    resumes("random rows", &data, fit);
    resumes_often("random rows", &data, fit);
}

/// Where the phase on the coreset found nothing, and the next one begins at other means.
#[test]
fn starts_anew_go_on_to_the_same_bits() {
    let mut rng = Rng::from_seed(7);
    let noise = Array2::from_shape_fn((2_400, 40), |_| rng.normal());
    let data = Dense::new(noise.view()).unwrap();
    let fit = |checkpoint| {
        let phase = |rows| Phase::new(Bounded::default()).rows(rows);
        let list = move |_| {
            vec![
                phase(PhaseRows::Coreset).unless_random_rows_do(),
                phase(PhaseRows::Larger(Lightweight::new(600))),
                phase(PhaseRows::All),
            ]
        };
        let builder = algorithms::fast(24).coreset(Lightweight::new(400));
        own(
            builder.phases(list).restarts(2).max_iterations(5),
            checkpoint,
        )
    };
    let report = fit(None).fit(&data).unwrap().report;
    let rows: Vec<usize> = report.phases.iter().map(|p| p.rows).collect();
    assert_eq!(rows, [400, 2_400]);
    resumes("anew", &data, fit);
    resumes_often("anew", &data, fit);
}

/// While all rows are compared with all centres, and once bounds settle most of them.
#[test]
fn chosen_searches_go_on_to_the_same_bits() {
    let x = blobs::<f64>(40_000, 16, 8, 9);
    let data = Dense::new(x.view()).unwrap();
    let fit = |checkpoint| {
        let builder = algorithms::k_means(8).seeder(UniformSeeder);
        own(builder.tolerance(0.0).max_iterations(5), checkpoint)
    };
    let report = fit(None).fit(&data).unwrap().report;
    assert!(report.evaluations.search < 6 * 40_000 * 8);
    resumes("chosen", &data, fit);
    resumes_often("chosen", &data, fit);
}

/// Between rounds of transfers, and on any number of threads.
#[test]
fn transfers_go_on_to_the_same_bits() {
    let x = blobs::<f64>(400, 3, 5, 9);
    let data = Dense::new(x.view()).unwrap();
    let fit = |rounds, checkpoint| {
        let phase = Phase::new(Bounded::default().nearest_centres(8)).rows(PhaseRows::All);
        let phase = phase.transfers(rounds);
        let builder = algorithms::k_means(40).phases(move |_| vec![phase.clone()]);
        own(builder.tolerance(1e-4).max_iterations(60), checkpoint)
    };
    // None, one round and more.
    let iterations = |rounds| fit(rounds, None).fit(&data).unwrap().report.iterations;
    let found = [0, 1, 8].map(iterations);
    assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
    resumes("transfers", &data, |checkpoint| fit(8, checkpoint));
    resumes_often("transfers", &data, |checkpoint| fit(8, checkpoint));
    let whole = bits(&fit(8, None).fit(&data).unwrap());
    for threads in [1, 3] {
        let found = on(threads, || bits(&fit(8, None).fit(&data).unwrap()));
        assert_eq!(found, whole, "{threads} threads");
    }
}

/// Searches that start in other ways.
#[test]
fn truncated_searches_go_on_to_the_same_bits() {
    let x = blobs::<f64>(500, 3, 12, 6);
    let data = Dense::new(x.view()).unwrap();
    let truncated = || Neighborhood::new(3, 4);
    for (name, e_step) in [
        ("from seeds", truncated().from_seeds(true)),
        ("warm", truncated().initial_searches(2)),
        ("with random components", truncated().random(1)),
    ] {
        resumes(name, &data, |checkpoint| {
            let builder = algorithms::var_gmm_s(15, 3, 4).e_step(e_step);
            own(builder.max_iterations(7).tolerance(1e-9), checkpoint)
        });
    }
}

#[test]
fn threads_may_be_others() {
    let x = blobs::<f32>(3_000, 4, 20, 7);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("threads");
    for name in ["vc-gmm", "fast", "gmm"] {
        let algorithm = named(name);
        let checkpoint = place.checkpoint().every_iterations(1);
        let whole = on(1, || {
            bits(&boxed::<f32>(&algorithm, None).fit(&data).unwrap())
        });
        stopped(
            &boxed::<f32>(&algorithm, Some(checkpoint.clone())),
            &data,
            3,
        )
        .unwrap();
        for threads in [1, 2, 3, 7] {
            let copy = place.0.join("copy.ckp");
            std::fs::copy(place.file(), &copy).unwrap();
            let checkpoint = Checkpoint::to(&copy).resume();
            let resumed = on(threads, || {
                let fit = boxed::<f32>(&algorithm, Some(checkpoint.clone()));
                bits(&fit.fit(&data).unwrap())
            });
            assert_eq!(resumed, whole, "{name} on {threads} threads");
        }
    }
}

fn fault<T>(result: Result<T>) -> FileFault {
    match result.map(|_| ()).unwrap_err() {
        Error::Checkpoint { fault, .. } => fault,
        other => panic!("{other}"),
    }
}

fn what<T>(result: Result<T>) -> String {
    match fault(result) {
        FileFault::OtherFit { what, .. } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn checkpoints_of_other_fits_are_refused() {
    let x = blobs::<f64>(400, 3, 8, 8);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("others");
    let checkpoint = place.checkpoint().every_iterations(1);
    let base = named("vc-gmm");
    stopped(&boxed::<f64>(&base, Some(checkpoint.clone())), &data, 4).unwrap();
    let resume = checkpoint.resume();
    let file = place.bytes();
    let of = |algorithm: &Algorithm, data: &dyn Data<f64>| {
        boxed(algorithm, Some(resume.clone())).fit(data)
    };
    for (expected, other) in [
        ("clusters", base.clone().clusters(11)),
        ("coreset", base.clone().coreset(121)),
        ("seeder", base.clone().chain(7)),
        ("phase 0", base.clone().c_prime(2)),
        ("phase 0", base.clone().neighbors(4)),
        ("phase 0", base.clone().random(1)),
        (
            "family",
            base.clone()
                .covariance(coremix::families::Covariance::Diagonal),
        ),
        ("tolerance", base.clone().tolerance(1e-8)),
        (
            "stop rule",
            base.clone().stop_rule(Rule::RelativeToFreeEnergy),
        ),
        ("max iterations", base.clone().max_iterations(7)),
        ("restarts", base.clone().restarts(3)),
        ("seed", base.clone().seed(6)),
        ("coreset", named("var-gmm-s").coreset(130)),
        ("seeder", named("gmm")),
        ("seeder", named("fast")),
    ] {
        assert_eq!(what(of(&other, &data)), expected, "{other:?}");
    }
    // Other rows, other weights, the same rows in another order, another type, a sketch.
    let mut y = x.clone();
    y[[200, 1]] += 1e-9;
    assert_eq!(what(of(&base, &Dense::new(y.view()).unwrap())), "summary");
    let fewer = x.slice(s![..399, ..]);
    assert_eq!(what(of(&base, &Dense::new(fewer).unwrap())), "rows");
    let narrower = x.slice(s![.., ..2]);
    assert_eq!(what(of(&base, &Dense::new(narrower).unwrap())), "columns");
    let w = Array1::from_elem(400, 1.0 + 1e-12);
    let weighted = Dense::weighted(x.view(), w.view()).unwrap();
    assert_eq!(what(of(&base, &weighted)), "total weight");
    let order: Vec<usize> = (0..400).map(|n| n ^ 1).collect();
    let others = x.select(Axis(0), &order);
    let others = what(of(&base, &Dense::new(others.view()).unwrap()));
    assert!(others == "summary" || others == "some rows", "{others}");
    let single = x.mapv(|x| x as f32);
    let single = Dense::new(single.view()).unwrap();
    let found = boxed::<f32>(&base, Some(resume.clone())).fit(&single);
    assert_eq!(what(found), "number type");
    let sketch = Sketch::new(x.view(), 3, 1).unwrap();
    let found = boxed::<f64>(&base, Some(resume.clone())).fit(&sketch);
    assert_eq!(what(found), "sketch");
    // A refused file stays as it was, and the message says what differs.
    assert_eq!(place.bytes(), file);
    let message = of(&base.clone().seed(6), &data).unwrap_err().to_string();
    assert!(
        message.contains("seed is 5, but that of this fit is 6"),
        "{message}"
    );
    of(&base, &data).unwrap();
}

/// Given seeds and priors are settings too, however large they are.
#[test]
fn arrays_are_settings() {
    let x = blobs::<f64>(300, 3, 6, 9);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("arrays");
    let resume = place.checkpoint().resume();
    let seeds = x.slice(s![..5, ..]).to_owned();
    let mut others = seeds.clone();
    others[[2, 1]] += 1e-12;
    let given = |seeds: &Array2<f64>| algorithms::gmm(5).seeder(Given::new(seeds.view()));
    own(given(&seeds), Some(place.checkpoint()))
        .fit(&data)
        .unwrap();
    own(given(&seeds), Some(resume.clone())).fit(&data).unwrap();
    assert_eq!(
        what(own(given(&others), Some(resume.clone())).fit(&data)),
        "seeder"
    );
    let mean = Array1::from_elem(3, 0.5);
    let prior = |mean: &Array1<f64>| {
        let process = DirichletProcess::new(1.0).mean(mean.view());
        algorithms::gmm(5).m_step(process)
    };
    own(prior(&mean), Some(place.checkpoint()))
        .fit(&data)
        .unwrap();
    own(prior(&mean), Some(resume.clone())).fit(&data).unwrap();
    assert_eq!(
        what(own(prior(&(&mean + 1e-9)), Some(resume.clone())).fit(&data)),
        "family"
    );
    let process = DirichletProcess::new(1.0).mean(mean.view()).merges(false);
    let apart = algorithms::gmm(5).m_step(process);
    assert_eq!(what(own(apart, Some(resume)).fit(&data)), "family");
}

/// Before components merge, where they have, and where they have not.
#[test]
fn merges_go_on() {
    let x = blobs::<f64>(3_000, 3, 5, 9);
    let data = Dense::new(x.view()).unwrap();
    let fit = |tolerance: f64, merges: bool| {
        let process = DirichletProcess::new(1.0).merges(merges);
        let builder = algorithms::dp_gmm(14, 1.0).m_step(process);
        builder.tolerance(tolerance).max_iterations(60)
    };
    for tolerance in [1e-3, 1e-4] {
        let [merged, plain] = [true, false].map(|merges| {
            let fit = fit(tolerance, merges).build().unwrap();
            let report = fit.fit(&data).unwrap().report;
            *report.free_energies.last().unwrap()
        });
        assert!(merged > plain + 1.0, "{merged} {plain}");
        resumes("merging", &data, |checkpoint| {
            own(fit(tolerance, true), checkpoint)
        });
    }
}

/// Small checkpoints in the middle of a phase: with fresh and with kept statistics.
fn small(place: &Place, name: &str, x: &Array2<f64>) -> Algorithm {
    let algorithm = name.parse::<Algorithm>().unwrap().clusters(4);
    let algorithm = algorithm.max_iterations(4).tolerance(0.0);
    let algorithm = algorithm.restarts(2).coreset(30);
    let data = Dense::new(x.view()).unwrap();
    let checkpoint = place.checkpoint().every_iterations(1);
    stopped(&boxed::<f64>(&algorithm, Some(checkpoint)), &data, 8).unwrap();
    algorithm
}

#[test]
fn damaged_checkpoints_are_errors() {
    let x = blobs::<f64>(40, 2, 4, 10);
    let data = Dense::new(x.view()).unwrap();
    for name in ["var-gmm-s", "fast"] {
        let place = Place::new(&format!("damaged {name}"));
        let algorithm = small(&place, name, &x);
        let bytes = place.bytes();
        let resume = |bytes: &[u8]| {
            std::fs::write(place.file(), bytes).unwrap();
            let checkpoint = place.checkpoint().resume();
            boxed::<f64>(&algorithm, Some(checkpoint)).fit(&data)
        };
        resume(&bytes).unwrap();
        let mut damaged = bytes.clone();
        for i in 0..bytes.len() {
            let flip = [1, 0x80, 0xff, 1 << (i % 8)][i % 4];
            damaged[i] ^= flip;
            let fault = fault(resume(&damaged));
            damaged[i] ^= flip;
            match i {
                0..12 => assert_eq!(fault, FileFault::Foreign),
                12..16 => assert!(matches!(fault, FileFault::Version { .. })),
                16..24 => assert!(matches!(fault, FileFault::Truncated | FileFault::Longer)),
                _ => assert_eq!(fault, FileFault::Checksum),
            }
        }
        for length in (1..bytes.len()).step_by(7) {
            assert_eq!(fault(resume(&bytes[..length])), FileFault::Truncated);
        }
        assert_eq!(fault(resume(&[])), FileFault::Foreign);
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(fault(resume(&longer)), FileFault::Longer);
        // The file of a model is no checkpoint.
        let model = algorithms::k_means(4)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap()
            .model;
        assert_eq!(
            fault(resume(&model.to_bytes(&[]).unwrap())),
            FileFault::Foreign
        );
    }
}

/// Checkpoints with a right checksum and wrong contents: an error or a fit, and never a panic.
#[test]
fn forged_checkpoints_do_not_panic() {
    const WORDS: [u64; 11] = [
        0,
        1,
        3,
        u64::MAX,
        1 << 63,
        1 << 32,
        1 << 61,
        0x7ff0_0000_0000_0000, // infinity
        0x7fef_ffff_ffff_ffff, // the largest number
        0x7ff8_0000_0000_0000, // NaN
        0xbff0_0000_0000_0000, // -1
    ];
    let x = blobs::<f64>(40, 2, 4, 11);
    let data = Dense::new(x.view()).unwrap();
    let (mut rng, mut refused, mut fitted) = (Rng::from_seed(12), 0, 0);
    for name in ["var-gmm-s", "d-gmm", "fast", "dp-gmm"] {
        let place = Place::new(&format!("forged {name}"));
        let algorithm = small(&place, name, &x);
        let bytes = place.bytes();
        // Behind the header, which is compared whole.
        let header = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
        let first = 32 + header;
        for _ in 0..1_500 {
            let mut forged = bytes.clone();
            for _ in 0..=rng.below(2) {
                let at = first + rng.below(forged.len() - 16 - first);
                match rng.below(4) {
                    0 => forged[at] ^= 1 << rng.below(8),
                    1 => forged[at..at + 4].copy_from_slice(&(rng.below(9) as u32).to_le_bytes()),
                    2 => {
                        let word = WORDS[rng.below(WORDS.len())];
                        forged[at..at + 8].copy_from_slice(&word.to_le_bytes());
                    }
                    _ => {
                        let end = (at + rng.below(24)).min(forged.len() - 4);
                        forged.drain(at..end);
                        let length = forged.len() as u64;
                        forged[16..24].copy_from_slice(&length.to_le_bytes());
                    }
                }
            }
            let end = forged.len() - 4;
            let sum = crc32fast::hash(&forged[..end]);
            forged[end..].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(place.file(), &forged).unwrap();
            let checkpoint = place.checkpoint().resume();
            match boxed::<f64>(&algorithm, Some(checkpoint)).fit(&data) {
                Ok(fit) => {
                    assert!(fit.search_labels.iter().all(|label| *label < 4));
                    fitted += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        refused > 500 && fitted > 50,
        "{refused} refused, {fitted} fitted"
    );
}

#[test]
fn files_that_cannot_be_written_or_read() {
    let x = blobs::<f64>(300, 2, 6, 13);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("files");
    let fit = |checkpoint: Checkpoint| {
        let algorithm = named("k-means").restarts(3);
        boxed::<f64>(&algorithm, Some(checkpoint))
    };
    let kind = |fault| match fault {
        FileFault::System { kind, .. } => kind,
        other => panic!("{other}"),
    };
    let nowhere = place.0.join("nowhere").join("fit.ckp");
    let found = fault(fit(Checkpoint::to(&nowhere)).fit(&data));
    assert_eq!(kind(found), std::io::ErrorKind::NotFound);
    let found = fault(fit(Checkpoint::to(&place.0)).fit(&data));
    assert_eq!(kind(found), std::io::ErrorKind::IsADirectory);
    let found = fault(fit(place.checkpoint().resume()).fit(&data));
    assert_eq!(kind(found), std::io::ErrorKind::NotFound);
    let error = algorithms::k_means::<f64>(3)
        .checkpoint(&place.checkpoint().every_iterations(0))
        .build()
        .unwrap_err();
    assert!(
        error.to_string().starts_with("every_iterations = 0"),
        "{error}"
    );
    fit(place.checkpoint().resume_if_there())
        .fit(&data)
        .unwrap();

    // Files that killed processes left are removed; other files stay.
    for name in [".fit.ckp.123.4.tmp", ".fit.ckp.old.tmp", "fit.ckp.1.2.tmp"] {
        std::fs::write(place.0.join(name), "").unwrap();
    }
    fit(place.checkpoint()).fit(&data).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(&place.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".fit.ckp.old.tmp", "fit.ckp", "fit.ckp.1.2.tmp"]);

    // The folder goes away while the fit runs.
    let whole = bits(
        &boxed::<f64>(&named("k-means").restarts(3), None)
            .fit(&data)
            .unwrap(),
    );
    let folder = place.0.join("folder");
    std::fs::create_dir(&folder).unwrap();
    let later = fit(Checkpoint::to(folder.join("fit.ckp")).every_iterations(1));
    let found = later.fit_observed(&data, &mut |_| {
        std::fs::remove_dir_all(&folder).ok();
        ControlFlow::Continue(())
    });
    // The observer sees the coreset and the seeds before the first checkpoint: there the folder is gone already.
    assert_eq!(kind(fault(found)), std::io::ErrorKind::NotFound);
    std::fs::create_dir(&folder).unwrap();
    let mut found = later
        .fit_observed(&data, &mut |progress| {
            if matches!(progress, Progress::Iteration { .. }) {
                std::fs::remove_dir_all(&folder).ok();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(found.report.checkpoint_fault.take().is_some());
    assert_eq!(bits(&found), whole);
}

/// A fit that is cancelled is resumed as one that is stopped.
#[test]
fn cancelled_fits_go_on() {
    let x = blobs::<f64>(600, 3, 9, 14);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("cancelled");
    let mut cancelled = 0;
    for name in ["vc-gmm", "fast", "k-means"] {
        let algorithm = named(name);
        let whole = bits(&boxed::<f64>(&algorithm, None).fit(&data).unwrap());
        for after in [1, 2, 4, 5] {
            let cancel = coremix::Cancel::default();
            let checkpoint = place.checkpoint().every_iterations(1);
            let fit = boxed::<f64>(&algorithm.clone().cancel(&cancel), Some(checkpoint));
            let mut searches = 0;
            let found = fit.fit_observed(&data, &mut |progress| {
                searches += usize::from(matches!(progress, Progress::Iteration { .. }));
                if searches == after {
                    cancel.cancel();
                }
                ControlFlow::Continue(())
            });
            // The last search of a fit may be the one.
            cancelled += usize::from(found.unwrap().report.stop == Stop::Cancelled);
            let checkpoint = place.checkpoint().resume();
            let resumed = boxed::<f64>(&algorithm, Some(checkpoint)).fit(&data);
            assert_eq!(bits(&resumed.unwrap()), whole, "{name}: after {after}");
        }
    }
    assert!(cancelled >= 8, "{cancelled}");
}

/// The fits that a mixture begins with go on, too, and leave no files behind.
#[test]
fn seeds_of_mixtures_go_on() {
    let x = blobs::<f64>(6_000, 3, 24, 14);
    let place = Place::new("seeds");
    let rows = |counting: &Counting<'_>| counting.loaded.load(Ordering::Relaxed);
    for covariance in [Covariance::TiedSpherical, Covariance::Diagonal] {
        let algorithm = named("gmm").clusters(24).restarts(1);
        let algorithm = algorithm.covariance(covariance);
        let data = Counting::new(&x, usize::MAX);
        let mut seeded = 0;
        let whole = on(1, || {
            boxed::<f64>(&algorithm, None).fit_observed(&data, &mut |progress| {
                if matches!(progress, Progress::Seeded { .. }) {
                    seeded = rows(&data);
                }
                ControlFlow::Continue(())
            })
        });
        let whole = (bits(&whole.unwrap()), rows(&data));
        let mut saved = 0;
        for part in 1..8 {
            let data = Counting::new(&x, seeded - part * seeded / 32);
            let checkpoint = place.checkpoint().every_iterations(1);
            let fit = boxed::<f64>(&algorithm.clone().cancel(&data.cancel), Some(checkpoint));
            assert!(matches!(on(1, || fit.fit(&data)), Err(Error::Cancelled)));
            let files = std::fs::read_dir(&place.0).unwrap().count();
            let data = Counting::new(&x, usize::MAX);
            let again = boxed::<f64>(&algorithm, Some(place.checkpoint().resume_if_there()));
            let again = on(1, || again.fit(&data));
            assert_eq!(bits(&again.unwrap()), whole.0, "{covariance:?} {part}");
            let is_less = rows(&data) < whole.1;
            saved += usize::from(is_less);
            assert!(files > 0 || !is_less);
            assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 1);
            std::fs::remove_file(place.file()).unwrap();
        }
        assert!(saved > 1, "{covariance:?}: {saved}");
    }
}

/// A fit that goes on in the middle of its last phase, and is stopped before that begins: there is a search to end with, and the
/// file is as good as before. Found by a fuzz target.
#[test]
fn fits_that_go_on_and_are_stopped_at_once() {
    let x = blobs::<f64>(600, 3, 9, 14);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("stopped-at-once");
    let fit = |checkpoint| {
        let phase = || Phase::new(Bounded::default().nearest_centres(4)).rows(PhaseRows::All);
        let builder = Clusterer::builder().clusters(9).tolerance(0.0);
        let builder = builder.max_iterations(4);
        own(
            builder.phases(move |_| vec![phase(), phase(), phase()]),
            checkpoint,
        )
    };
    let whole = bits(&fit(None).fit(&data).unwrap());
    let mut stopped = 0;
    for after in 1..16 {
        let mut seen = 0;
        let checkpoint = place.checkpoint().every_iterations(1);
        let first = fit(Some(checkpoint)).fit_observed(&data, &mut |progress| {
            seen += usize::from(matches!(progress, Progress::Iteration { .. }));
            match seen == after {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        stopped += usize::from(first.unwrap().report.stop == Stop::Observer);
        let again = fit(Some(place.checkpoint().resume()));
        let again = again.fit_observed(&data, &mut |_| ControlFlow::Break(()));
        assert_eq!(again.unwrap().report.stop, Stop::Observer, "after {after}");
        let rest = fit(Some(place.checkpoint().resume())).fit(&data);
        assert_eq!(bits(&rest.unwrap()), whole, "after {after}");
    }
    assert!(stopped >= 10, "{stopped}");
}

/// Coresets that a checkpoint holds are read even if the fit is stopped before it needs them.
#[test]
fn fits_with_coresets_go_on_and_are_stopped_at_once() {
    let x = blobs::<f64>(800, 3, 9, 14);
    let data = Dense::new(x.view()).unwrap();
    let place = Place::new("coresets-stopped-at-once");
    let fit = |checkpoint| {
        let phase = |rows| Phase::new(Bounded::default().nearest_centres(4)).rows(rows);
        let builder = Clusterer::builder().clusters(9).tolerance(0.0);
        let builder = builder.coreset(Lightweight::new(60)).max_iterations(3);
        let larger = PhaseRows::Larger(Lightweight::new(150));
        own(
            builder.phases(move |_| {
                vec![
                    phase(PhaseRows::Coreset),
                    phase(larger),
                    phase(PhaseRows::All),
                ]
            }),
            checkpoint,
        )
    };
    let whole = bits(&fit(None).fit(&data).unwrap());
    for after in 1..8 {
        let mut seen = 0;
        let checkpoint = place.checkpoint().every_iterations(1);
        let first = fit(Some(checkpoint)).fit_observed(&data, &mut |progress| {
            seen += usize::from(matches!(progress, Progress::Iteration { .. }));
            match seen == after {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        first.unwrap();
        let again = fit(Some(place.checkpoint().resume()));
        let again = again.fit_observed(&data, &mut |_| ControlFlow::Break(()));
        again.unwrap_or_else(|error| panic!("after {after}: {error}"));
        let rest = fit(Some(place.checkpoint().resume())).fit(&data);
        assert_eq!(bits(&rest.unwrap()), whole, "after {after}");
    }
}

/// Stages from outside: an E-step with a state that it does not save, and a family without a format.
mod outside {
    use super::*;
    use coremix::e_step::{EStep, Search};
    use coremix::stage::{Block, Stage};

    /// k-means for rows of even searches, and what it found before for odd ones.
    #[derive(Clone, Debug)]
    pub(super) struct EveryOther {
        pub(super) saves: bool,
        /// Whether what is loaded is not what was saved.
        pub(super) forgets: bool,
    }

    impl Stage for EveryOther {}

    impl<F: Float> EStep<F> for EveryOther {
        fn begin(
            &self,
            _: &dyn Mixture<F>,
            saved: Option<&[u8]>,
            _: &mut Rng,
        ) -> Result<Box<dyn Search<F>>> {
            let searches = saved.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
            let searches = if self.forgets { 0 } else { searches };
            let saves = self.saves;
            Ok(Box::new(OneOfTwo { saves, searches }))
        }
    }

    struct OneOfTwo {
        saves: bool,
        searches: u64,
    }

    impl<F: Float> Search<F> for OneOfTwo {
        fn width(&self) -> usize {
            1
        }

        fn search(
            &self,
            model: &dyn Mixture<F>,
            rows: &Rows<F>,
            block: &mut Block<F>,
            _: &mut Rng,
        ) {
            for i in 0..rows.len() {
                let ids = match self.searches % 2 {
                    1 => block.support(i).to_vec(),
                    _ => (0..model.components() as u32).collect(),
                };
                block.keep_best(i, model, rows, &ids);
            }
        }

        fn end_pass(&mut self) {
            self.searches += 1;
        }

        fn save(&self) -> Option<Vec<u8>> {
            let searches = self.searches.to_le_bytes();
            self.saves.then(|| searches.to_vec())
        }
    }
}

#[test]
fn own_stages_go_on_from_what_they_save() {
    let x = blobs::<f64>(400, 3, 8, 15);
    let data = Dense::new(x.view()).unwrap();
    for saves in [true, false] {
        resumes(&format!("own, {saves}"), &data, |checkpoint| {
            let e_step = outside::EveryOther {
                saves,
                forgets: false,
            };
            let builder = algorithms::k_means(12).e_step(e_step);
            own(
                builder.restarts(3).max_iterations(6).tolerance(0.0),
                checkpoint,
            )
        });
    }
}

/// The laws find a stage that does not load what it saved.
#[test]
fn the_laws_hold_a_state_against_its_bytes() {
    let x = blobs::<f64>(300, 2, 5, 19);
    let data = Dense::new(x.view()).unwrap();
    let law = |saves, forgets| {
        let e_step = outside::EveryOther { saves, forgets };
        coremix::testing::e_step(&e_step, &data, 5)
    };
    law(true, false).unwrap();
    law(false, false).unwrap();
    let error = law(true, true).unwrap_err().to_string();
    assert!(error.contains("resumed after"), "{error}");
}

/// The file is for those who look into it: its header can be read.
#[test]
fn the_header_is_text() {
    let x = blobs::<f64>(40, 2, 4, 16);
    let place = Place::new("header");
    small(&place, "vc-gmm", &x);
    let bytes = place.bytes();
    let length = u64::from_le_bytes(bytes[24..32].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[32..32 + length]).unwrap();
    let fields = header.lines().map(|line| line.split_once(": ").unwrap());
    let fields: Vec<_> = fields.collect();
    for (name, value) in [
        ("clusters", "4"),
        ("coreset", "Lightweight { size: 30 }"),
        ("rows", "40"),
        ("columns", "2"),
        ("seed", "0"),
    ] {
        let own = fields.iter().find(|field| field.0 == name);
        assert_eq!(own.unwrap().1, value, "{header}");
    }
    let (whole, sum) = bytes.split_at(bytes.len() - 4);
    assert_eq!(crc32fast::hash(whole).to_le_bytes(), sum);
}

/// The fit of a process that is killed, for the tests below.
fn killed(path: &Path, name: &str) -> Result<Bits> {
    let x = blobs::<f64>(3_000, 5, 25, 17);
    let data = Dense::new(x.view())?;
    let algorithm = named(name).clusters(40).coreset(900);
    let algorithm = algorithm.max_iterations(12);
    let checkpoint = Checkpoint::to(path).every(Duration::ZERO).resume_if_there();
    let fit = boxed::<f64>(&algorithm, Some(checkpoint)).fit(&data)?;
    Ok(bits(&fit))
}

const FILE: &str = "COREMIX_TEST_CHECKPOINT";
const NAME: &str = "COREMIX_TEST_ALGORITHM";

#[test]
#[ignore = "the process that the next test kills"]
fn child() {
    if let (Ok(path), Ok(name)) = (std::env::var(FILE), std::env::var(NAME)) {
        let found = killed(Path::new(&path), &name).unwrap();
        let done = Path::new(&path).with_extension("done");
        std::fs::write(done, format!("{found:?}")).unwrap();
    }
}

/// Processes that are killed at random moments and started again. `reproduce/src/bin/kill.rs` does it more often.
#[test]
fn killed_processes_go_on() {
    let mut rng = Rng::from_seed(18);
    for name in ["fast", "vc-gmm", "dp-gmm"] {
        let (place, calm) = (
            Place::new(&format!("killed {name}")),
            Place::new(&format!("calm {name}")),
        );
        let begun = std::time::Instant::now();
        let whole = killed(&calm.file(), name).unwrap();
        let time = begun.elapsed().as_secs_f64();
        let mut kills = 0;
        loop {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "checkpoints::child", "--ignored"])
                .env(FILE, place.file())
                .env(NAME, name)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            if kills < 6 {
                std::thread::sleep(Duration::from_secs_f64(time * rng.uniform()));
                child.kill().unwrap();
                kills += 1;
            }
            match child.wait().unwrap().code() {
                Some(0) => break,
                // Killed.
                None => {}
                Some(code) => panic!("{name}: the process ended with {code}"),
            }
        }
        let done = std::fs::read_to_string(place.file().with_extension("done")).unwrap();
        assert_eq!(done, format!("{whole:?}"), "{name}: after {kills} kills");
    }
}

/// A disk that is full: the process may not write more than some blocks to any file.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    let (place, name) = (Place::new("full"), "vc-gmm");
    let whole = killed(&place.file(), name).unwrap();
    let old = place.bytes();
    let limited = || {
        let test = std::env::current_exe().unwrap();
        let command = "trap '' XFSZ; ulimit -f 4; exec \"$0\" --exact checkpoints::child --ignored";
        std::process::Command::new("sh")
            .args(["-c", command])
            .arg(test)
            .env(FILE, place.file())
            .env(NAME, name)
            .output()
            .unwrap()
    };
    let files = || std::fs::read_dir(&place.0).unwrap().count();
    // There is no file yet: the first checkpoint cannot be written.
    std::fs::remove_file(place.file()).unwrap();
    let ended = limited();
    let message = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(
        !ended.status.success() && message.contains("checkpoint /"),
        "{message}"
    );
    assert_eq!(files(), 0);
    // Another one is there, and stays.
    let x = blobs::<f64>(3_000, 5, 25, 17);
    let data = Dense::new(x.view()).unwrap();
    let algorithm = named(name).clusters(40).coreset(900);
    let algorithm = algorithm.max_iterations(12);
    let checkpoint = place.checkpoint().every_iterations(1);
    stopped(&boxed::<f64>(&algorithm, Some(checkpoint)), &data, 4).unwrap();
    let before = place.bytes();
    assert_ne!(before, old);
    assert!(!limited().status.success());
    assert_eq!(place.bytes(), before);
    assert_eq!(files(), 1);
    assert_eq!(killed(&place.file(), name).unwrap(), whole);
}
