//! Jobs, compared with the core in memory.

use crate::common::*;
use coremix::data::Dense;
use coremix::families::{Covariance, ExactSums};
use coremix::ndarray::Axis;
use coremix::prelude::{Clusterer, Exhaustive, Given};
use coremix::{Mixture, algorithms};
use coremix_cluster::{Job, Model, Support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_summary_is_exact() {
    let points = points(40).mapv(f64::from);
    let table = in_memory(batch(&points.mapv(|x| x as f32), 0, Layout::WideDouble));
    let summary = job("fast").summary(&table).await.unwrap();
    assert_eq!(summary.rows, 1_000);
    for (j, column) in points.axis_iter(Axis(1)).enumerate() {
        let n = column.len() as f64;
        let mean = column.sum() / n;
        let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let bounds = column
            .iter()
            .fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
        assert_eq!((summary.min[j], summary.max[j]), bounds);
        assert!((summary.mean[j] - mean).abs() <= 1e-14 * mean.abs().max(1.0));
        assert!((summary.variance[j] - variance).abs() <= 1e-12 * variance);
    }
}

/// Iterations have the bits of those in memory, on rows that were never split; their sums are tested against the formulas
/// there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn iterations_are_those_in_memory() {
    let points = points(40);
    let (x, folder) = (points.mapv(f64::from), tempfile::tempdir().unwrap());
    write(folder.path(), &points, 3, Layout::WideDouble).await;
    let data = Dense::new(&x).unwrap();
    for (algorithm, covariance, support, width) in [
        ("k-means", Covariance::TiedSpherical, Support::Nearest, 1),
        ("vc-gmm", Covariance::Spherical, Support::Best(3), 3),
        ("gmm", Covariance::Diagonal, Support::All, 25),
    ] {
        let settings = algorithm.parse::<coremix::Algorithm>().unwrap();
        let settings = settings.clusters(25).covariance(covariance);
        let job = Job::new(settings, ["f0", "f1", "f2", "f3"]).coreset(600);
        let job = job.support(support).tolerance(0.0);
        let table = open(folder.path(), 2, 300).await;
        let start = job.clone().max_iterations(0).fit(&table).await.unwrap();
        let fitted = job.clone().max_iterations(3).fit(&table).await.unwrap();
        let (Model::Double(mut model), mut energies) = (start.model, Vec::new()) else {
            panic!("f64 columns give an f64 model");
        };
        for _ in 0..3 {
            let sums = ExactSums::e_step(&model, &data, None, width).unwrap();
            energies.push(sums.free_energy());
            model = sums.update(&model).unwrap();
        }
        assert_eq!(fitted.free_energies[..3], energies, "{algorithm}");
        let expected = model.score(&data).unwrap();
        assert!(fitted.model == Model::Double(model), "{algorithm}");
        let score = job.score(&table, &fitted.model).await.unwrap();
        for (found, expected) in [
            (score.quantization_error, expected.quantization_error),
            (score.log_likelihood, expected.log_likelihood),
        ] {
            assert!(
                (found - expected).abs() <= 1e-12 * expected.abs(),
                "{score:?}"
            );
        }
    }
}

/// In `f32`, an iteration of k-means agrees with the core in memory to 1e-6 of the range of each column.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn iterations_are_those_of_the_core() {
    let points = points(80);
    let table = || in_memory(batch(&points, 0, Layout::Wide));
    let summary = job("fast").summary(&table()).await.unwrap();
    let job = job("k-means").tolerance(0.0);
    let start = job.clone().max_iterations(0).fit(&table()).await.unwrap();
    let one = job.clone().max_iterations(1).fit(&table()).await.unwrap();
    let seeds = start.model.means().mapv(|x| x as f32);
    let fit = Clusterer::builder()
        .clusters(25)
        .seeder(Given::new(seeds.view()))
        .e_step(Exhaustive::nearest())
        .max_iterations(1)
        .build()
        .unwrap()
        .fit(&Dense::new(points.view()).unwrap())
        .unwrap();
    for ((c, j), mean) in one.model.means().indexed_iter() {
        let expected = f64::from(fit.model.means()[[c, j]]);
        let bound = 1e-6 * (summary.max[j] - summary.min[j]);
        assert!((mean - expected).abs() <= bound, "{mean} {expected}");
    }
}

/// The model of the job is as good as one fitted to all rows in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_is_that_of_a_fit_to_all_rows() {
    let points = points(200);
    let data = Dense::new(points.view()).unwrap();
    let best = (0..5).map(|seed| {
        let fit = algorithms::fast(25)
            .seed(seed)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        fit.model.quantization_error(&data).unwrap()
    });
    let best = best.fold(f64::INFINITY, f64::min);
    let algorithm = "fast".parse::<coremix::Algorithm>().unwrap().clusters(25);
    let job = Job::new(algorithm, ["f0", "f1", "f2", "f3"])
        .coreset(2_000)
        .seed(1);
    let table = || in_memory(batch(&points, 0, Layout::Wide));
    let fitted = job.fit(&table()).await.unwrap();
    let error = job
        .score(&table(), &fitted.model)
        .await
        .unwrap()
        .quantization_error;
    assert!(error <= 1.01 * best, "{error} {best}");
    // The iterations over the table gained something on the coreset's model.
    let start = job.clone().max_iterations(0).fit(&table()).await.unwrap();
    let of_coreset = job
        .score(&table(), &start.model)
        .await
        .unwrap()
        .quantization_error;
    assert!(error < of_coreset, "{error} {of_coreset}");
}
