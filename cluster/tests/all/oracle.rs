//! Jobs beside naive sums, and beside the core in memory.

use crate::common::*;
use coremix::data::Dense;
use coremix::ndarray::{Array2, Axis};
use coremix::prelude::{Clusterer, Exhaustive, Given};
use coremix::{Mixture, algorithms};
use coremix_cluster::{Job, Support};

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

/// One step of EM in `f64`, by the formulas, with the `width` nearest means as supports.
fn naive_step(
    x: &Array2<f64>,
    means: &Array2<f64>,
    variance: f64,
    width: usize,
) -> (Array2<f64>, f64, f64) {
    let ((n, d), k) = (x.dim(), means.nrows());
    let (mut mass, mut sums) = (vec![0.0; k], Array2::<f64>::zeros((k, d)));
    let mut free_energy = 0.0;
    let mut responsibilities = Array2::<f64>::zeros((n, k));
    for (i, row) in x.outer_iter().enumerate() {
        let squared = |c: usize| {
            row.iter()
                .zip(means.row(c))
                .map(|(a, b)| (a - b).powi(2))
                .sum::<f64>()
        };
        let mut all: Vec<(f64, usize)> = (0..k).map(|c| (squared(c), c)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let log_joint = |s: f64| {
            -(k as f64).ln()
                - 0.5 * d as f64 * (std::f64::consts::TAU * variance).ln()
                - 0.5 * s / variance
        };
        let best = log_joint(all[0].0);
        let total: f64 = all[..width]
            .iter()
            .map(|(s, _)| (log_joint(*s) - best).exp())
            .sum();
        free_energy += best + total.ln();
        for (s, c) in &all[..width] {
            let q = (log_joint(*s) - best).exp() / total;
            responsibilities[[i, *c]] = q;
            mass[*c] += q;
            sums.row_mut(*c).scaled_add(q, &row);
        }
    }
    let mut new = means.clone();
    for c in (0..k).filter(|c| mass[*c] > 0.0) {
        new.row_mut(c).assign(&(&sums.row(c) / mass[c]));
    }
    let mut squared = 0.0;
    for (i, row) in x.outer_iter().enumerate() {
        for c in 0..k {
            let s: f64 = row
                .iter()
                .zip(new.row(c))
                .map(|(a, b)| (a - b).powi(2))
                .sum();
            squared += responsibilities[[i, c]] * s;
        }
    }
    (new, squared / (n * d) as f64, free_energy)
}

/// In `f64`, iterations agree with the formulas to 1e-12 of the range of each column.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn iterations_are_those_of_the_formulas() {
    let points = points(40);
    let x = points.mapv(f64::from);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &points, 3, Layout::WideDouble).await;
    let summary = job("fast")
        .summary(&open(folder.path(), 2, 300).await)
        .await
        .unwrap();
    for (algorithm, support, width) in [
        ("k-means", Support::Nearest, 1),
        ("vc-gmm", Support::Best(3), 3),
        ("gmm", Support::All, 25),
    ] {
        let job = job(algorithm).support(support).tolerance(0.0);
        let at = async |iterations| {
            let table = open(folder.path(), 2, 300).await;
            job.clone()
                .max_iterations(iterations)
                .fit(&table)
                .await
                .unwrap()
        };
        let start = at(0).await;
        let (mut means, mut variance) = (start.model.means(), start.model.variance());
        for iteration in 1..=3 {
            let fitted = at(iteration).await;
            let step = naive_step(&x, &means, variance, width);
            (means, variance) = (step.0, step.1);
            let free_energy = fitted.free_energies[iteration - 1];
            assert!(
                (free_energy - step.2).abs() <= 1e-12 * step.2.abs(),
                "{algorithm} {free_energy} {}",
                step.2
            );
            for ((c, j), mean) in fitted.model.means().indexed_iter() {
                let bound = 1e-12 * (summary.max[j] - summary.min[j]);
                assert!(
                    (mean - means[[c, j]]).abs() <= bound,
                    "{algorithm} {iteration}: {mean} {}",
                    means[[c, j]]
                );
            }
            let found = fitted.model.variance();
            assert!(
                (found - variance).abs() <= 1e-11 * variance,
                "{algorithm}: {found} {variance}"
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
