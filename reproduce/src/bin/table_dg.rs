//! The tables of \[DG\] on the data in `../shared/data`: D-GMM against vc-GMM and k-means.
//!
//! `cargo run --release -p reproduce --bin table_dg -- [SET ..]` (default: all sets). All algorithms of a run start from the
//! same seeds, which AFK-MC2 finds on a lightweight coreset, and stop alike. vc-GMM and D-GMM run on that coreset;
//! k-means runs on all rows, and the line after it is k-means on the coreset. The evaluations that
//! found the seeds count in everybody's total. Errors are on all rows. Every figure is a mean over the runs with
//! its standard error in brackets; times are medians, coreset and seeds included. Run it on an otherwise idle
//! machine. Tables are Markdown; `docs/results.md` has their main figures.

use coremix::prelude::*;
use coremix::{Builder, Element, Evaluations, Float, algorithms, metrics};
use ndarray::{Array1, Array2};
use ndarray_npy::{ReadNpyError, read_npy};
use reproduce::{as_published, heading, mean, median, row, signed, with_error};
use std::time::Instant;

/// Chain length of AFK-MC2.
const CHAIN: usize = 5;
const TOLERANCE: f64 = 1e-3;
const G: usize = 5;
const R: usize = 5;

/// A large set: clusters, coreset, members of a support, seeds.
const LARGE: [(&str, usize, usize); 2] = [("kdd04bio", 500, 4_096), ("song", 1_000, 16_384)];
const LARGE_H: usize = 5;
const LARGE_SEEDS: u64 = 5;

/// The artificial sets.
const SMALL: [&str; 4] = ["s1", "s2", "s3", "s4"];
const SMALL_CLUSTERS: usize = 15;
const SMALL_CORESET: usize = 1_000;
const SMALL_H: usize = 3;
const SMALL_SEEDS: u64 = 100;

const NAMES: [&str; 4] = ["k-means", "k-means on coreset", "vc-GMM", "D-GMM"];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |set: &str| wanted.is_empty() || wanted.iter().any(|w| w == set);
    let path = |set: &str| format!("../shared/data/{set}.npy");
    for (set, k, coreset) in LARGE.into_iter().filter(|case| wanted(case.0)) {
        match read_npy::<_, Array2<f32>>(path(set)) {
            Err(ReadNpyError::Io(_)) => println!("SKIPPED {set}: {} is absent", path(set)),
            Err(error) => return Err(error.into()),
            Ok(x) => large(set, &x, k, coreset)?,
        }
    }
    let mut is_first = true;
    for set in SMALL.into_iter().filter(|set| wanted(set)) {
        let labels = path(&format!("{set}.labels"));
        match (
            read_npy::<_, Array2<f64>>(path(set)),
            read_npy::<_, Array1<u32>>(&labels),
        ) {
            (Err(ReadNpyError::Io(_)), _) => println!("SKIPPED {set}: {} is absent", path(set)),
            (_, Err(ReadNpyError::Io(_))) => println!("SKIPPED {set}: {labels} is absent"),
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
            (Ok(x), Ok(labels)) => {
                if std::mem::take(&mut is_first) {
                    small_heading();
                }
                small(set, &x, &class_means(&x, &labels))?;
            }
        }
    }
    Ok(())
}

/// Results of the runs of one algorithm.
struct Column<F> {
    means: Vec<Array2<F>>,
    /// Quantization errors on all rows.
    errors: Vec<f64>,
    evaluations: Vec<Evaluations>,
    iterations: Vec<f64>,
    seconds: Vec<f64>,
}

/// All algorithms from the same seeds, once for each of the numbers `1..=seeds`.
fn runs<T: Element>(
    x: &Array2<T>,
    k: usize,
    coreset: usize,
    h: usize,
    seeds: u64,
) -> Result<[Column<T::Float>; 4]> {
    let mut table = NAMES.map(|_| Column {
        means: Vec::new(),
        errors: Vec::new(),
        evaluations: Vec::new(),
        iterations: Vec::new(),
        seconds: Vec::new(),
    });
    for seed in 1..=seeds {
        // The seeds alone; the other runs draw the same coreset and the same seeds themselves.
        let started = Instant::now();
        let data = Dense::new(x.view())?;
        let seeded = algorithms::lwcs_k_means(k, coreset)
            .seeder(AfkMc2::new(CHAIN))
            .max_iterations(0)
            .seed(seed)
            .build()?
            .fit(&data)?;
        let seeding = started.elapsed().as_secs_f64();
        let cost = &seeded.report.evaluations;
        let given = Given::new(seeded.model.means());
        let from_given = algorithms::k_means(k).seeder(given);
        let [k_means, lwcs, vc, d] = &mut table;

        k_means.run(x, from_given, seed)?;
        let last = k_means.evaluations.last_mut().expect("one run at least");
        last.coreset = cost.coreset;
        last.seeding = cost.seeding;
        *k_means.seconds.last_mut().expect("one run at least") += seeding;

        let on_coreset = || {
            let builder = algorithms::k_means(k).coreset(Lightweight::new(coreset));
            builder.seeder(AfkMc2::new(CHAIN))
        };
        lwcs.run(x, on_coreset(), seed)?;
        vc.run(x, on_coreset().e_step(Neighborhood::new(h, G)), seed)?;
        d.run(x, on_coreset().e_step(SimilaritySampling::new(h, R)), seed)?;
    }
    Ok(table)
}

impl<F: Float> Column<F> {
    fn run<T>(&mut self, x: &Array2<T>, builder: Builder<F>, seed: u64) -> Result<()>
    where
        T: Element<Float = F>,
    {
        let started = Instant::now();
        let data = Dense::new(x.view())?;
        let builder = as_published(builder, TOLERANCE);
        let fit = builder.seed(seed).build()?.fit(&data)?;
        self.seconds.push(started.elapsed().as_secs_f64());
        self.errors.push(fit.model.quantization_error(&data)?);
        self.evaluations.push(fit.report.evaluations);
        self.iterations.push(fit.report.iterations as f64);
        self.means.push(fit.model.means().to_owned());
        Ok(())
    }

    /// Matched RMSE between all pairs of runs: its mean, and the standard error of that.
    fn stability(&self) -> Result<(f64, f64)> {
        let n = self.means.len();
        let mut by_run = vec![0.0; n];
        for i in 0..n {
            for j in 0..i {
                let rmse = metrics::matched_rmse(self.means[i].view(), self.means[j].view())?;
                for run in [i, j] {
                    by_run[run] += rmse / (n - 1) as f64;
                }
            }
        }
        // A run is in n - 1 of the pairs, and each pair has two: twice the error of a mean over runs.
        let (mean, error) = mean(&by_run);
        Ok((mean, 2.0 * error))
    }
}

fn large(set: &str, x: &Array2<f32>, k: usize, coreset: usize) -> Result<()> {
    let h = LARGE_H;
    let (n, d) = x.dim();
    println!(
        "\n{set} ({n} x {d}), M = {k}, N' = {coreset}, H = C' = {h}, R = {R}, G = {G}, m = {CHAIN}, \
         tolerance {TOLERANCE}, {LARGE_SEEDS} seeds"
    );
    heading(&[
        "error, %",
        "search",
        "all evaluations",
        "iterations",
        "s",
        "RMSE between runs",
    ]);
    let table = runs(x, k, coreset, h, LARGE_SEEDS)?;
    let base = &table[0];
    for (name, column) in NAMES.iter().zip(&table) {
        let over = column.errors.iter().zip(&base.errors);
        let over = mean(&over.map(|(e, b)| 100.0 * (e / b - 1.0)).collect::<Vec<_>>());
        let ratio = |of: fn(&Evaluations) -> u64| {
            let sum = |column: &Column<f32>| column.evaluations.iter().map(of).sum::<u64>() as f64;
            sum(base) / sum(column)
        };
        let cells = [
            signed(over, 2),
            format!("{:.1}x", ratio(|e| e.search)),
            format!("{:.1}x", ratio(Evaluations::total)),
            with_error(mean(&column.iterations), 1),
            format!("{:.3}", median(&column.seconds)),
            with_error(column.stability()?, 0),
        ];
        row(name, &cells);
    }
    Ok(())
}

fn small_heading() {
    println!(
        "\nS1-S4, M = {SMALL_CLUSTERS}, N' = {SMALL_CORESET}, H = C' = {SMALL_H}, R = {R}, G = {G}, m = {CHAIN}, \
         tolerance {TOLERANCE}, {SMALL_SEEDS} runs"
    );
    println!("RMSE of matched centres, to the class means and between all pairs of runs");
    heading(&[
        "to the truth",
        "median",
        "between runs",
        "error, %",
        "iterations",
        "search",
    ]);
}

fn small(set: &str, x: &Array2<f64>, truth: &Array2<f64>) -> Result<()> {
    let table = runs(x, SMALL_CLUSTERS, SMALL_CORESET, SMALL_H, SMALL_SEEDS)?;
    let base = &table[0];
    let to_truth = |column: &Column<f64>| -> Result<Vec<f64>> {
        let rmse = |means: &Array2<f64>| metrics::matched_rmse(means.view(), truth.view());
        column.means.iter().map(rmse).collect()
    };
    let searches =
        |column: &Column<f64>| -> f64 { column.evaluations.iter().map(|e| e.search as f64).sum() };
    for (name, column) in NAMES.iter().zip(&table) {
        let found = to_truth(column)?;
        let (off, stability) = (mean(&found), column.stability()?);
        let over = column.errors.iter().zip(&base.errors);
        let over = mean(&over.map(|(e, b)| 100.0 * (e / b - 1.0)).collect::<Vec<_>>());
        let cells = [
            with_error(off, 0),
            format!("{:.0}", median(&found)),
            with_error(stability, 0),
            signed(over, 2),
            with_error(mean(&column.iterations), 1),
            format!("{:.1}x", searches(base) / searches(column)),
        ];
        row(&format!("{set}: {name}"), &cells);
    }
    // Each run has the same seeds, so the paired differences say more than the means.
    let [_, _, vc, d] = &table;
    let gains: Vec<f64> = (to_truth(d)?.iter().zip(to_truth(vc)?))
        .map(|(d, vc)| d - vc)
        .collect();
    let mut cells = vec![signed(mean(&gains), 0)];
    cells.resize(6, String::new());
    row(&format!("{set}: D-GMM less vc-GMM, paired"), &cells);
    Ok(())
}

/// The mean of each class, in the order of the labels.
fn class_means(x: &Array2<f64>, labels: &Array1<u32>) -> Array2<f64> {
    let mut classes: Vec<u32> = labels.to_vec();
    classes.sort_unstable();
    classes.dedup();
    let mean = |class: u32| -> Array1<f64> {
        let rows: Vec<usize> = (0..labels.len()).filter(|&n| labels[n] == class).collect();
        let members = x.select(ndarray::Axis(0), &rows);
        members
            .mean_axis(ndarray::Axis(0))
            .expect("a class has members")
    };
    let means: Vec<Array1<f64>> = classes.into_iter().map(mean).collect();
    let views: Vec<_> = means.iter().map(|mean| mean.view()).collect();
    ndarray::stack(ndarray::Axis(0), &views).expect("rows of one length")
}
