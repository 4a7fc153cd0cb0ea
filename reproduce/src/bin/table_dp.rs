//! The experiment of \[DP\] on the data in `../shared/data`: Dirichlet process mixtures on all rows and on coresets.
//!
//! `cargo run --release -p reproduce --bin table_dp -- [SET ..] [OPTIONS]`, sets `mnist`, `song` (default: both), `kdd04bio`,
//! and `none`, a small generated set. As in the paper, each set is split at random into 80 % for fitting and 20 % held out,
//! and the priors are `paper_priors`. Fits of lightweight coresets and of uniform ones are compared with the fit of all
//! rows of the same split. The error is the difference of the log-likelihoods of the held-out rows, relative to that of all
//! rows: its mean over the draws, with 95 % intervals. Times have the coreset and the seeds in them, and are medians. Draw
//! `i` is from split `i` modulo the number of splits, with the seed `i`. Rows per parameter are those of the lightweight
//! coreset over the parameters of the components that have 0.1 % of the weight or more. Run it on an otherwise idle machine:
//! a set takes minutes, and each fit of all rows of kdd04bio half a minute.

use clap::Parser;
use coremix::algorithms;
use coremix::coreset::Coreset;
use coremix::prelude::*;
use coremix::stage::Rng;
use faer::{MatRef, Side};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use reproduce::{
    TOLERANCE, as_published, heading, load, mean, median, overlapping_gaussians, row, with_error,
};
use std::time::Instant;

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Debug, Parser)]
struct Settings {
    /// `mnist`, `song`, `kdd04bio`; `none` for a small generated set
    #[arg(default_values = ["mnist", "song"])]
    sets: Vec<String>,
    /// Splits, each with a fit of all rows
    #[arg(long, default_value_t = 5)]
    splits: usize,
    /// Coresets of each size and kind, over all splits
    #[arg(long, default_value_t = 25)]
    draws: usize,
    /// Sizes of coresets
    #[arg(long, value_delimiter = ',', default_values_t = [500, 1_000, 2_000, 4_000, 8_000, 16_000])]
    sizes: Vec<usize>,
    /// Components
    #[arg(long, default_value_t = 100)]
    truncation: usize,
    /// Concentration
    #[arg(long, default_value_t = 5.0)]
    concentration: f64,
    /// The priors of the data instead of those of the paper
    #[arg(long)]
    priors_of_data: bool,
}

fn main() -> Outcome<()> {
    let settings = Settings::parse();
    for set in &settings.sets {
        let (what, x): (_, Option<Array2<f32>>) = match set.as_str() {
            "kdd04bio" => {
                let x = load(set)?.map(|x: Array2<f32>| standardised(x.view()));
                ("standardised", x)
            }
            "song" => {
                // The 12 averages of the timbre, and the first 13 of its covariances.
                let first_columns = |x: Array2<f32>| standardised(x.slice(s![.., ..25]));
                let x = load(set)?.map(first_columns);
                ("its first columns, standardised", x)
            }
            "mnist" => {
                let x = load("mnist_u8")?.map(|x| whitened(&x, 10));
                ("whitened principal components", x.transpose()?)
            }
            "none" => ("Gaussians", Some(overlapping_gaussians((1_000, 2, 5)))),
            other => return Err(format!("{other}: not one of mnist, song, kdd04bio, none").into()),
        };
        if let Some(x) = x {
            table(set, what, &x, &settings)?;
        }
    }
    Ok(())
}

/// Mean 0 and variance 1 in every column, over all rows.
fn standardised(x: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut x = x.mapv(f64::from);
    for mut column in x.columns_mut() {
        let mean = column.mean().expect("a set has rows");
        column -= mean;
        let deviation = column.dot(&column) / column.len() as f64;
        column /= deviation.sqrt().max(f64::MIN_POSITIVE);
    }
    x.mapv(|value| value as f32)
}

/// The principal components of largest variance, each of variance 1, over all rows.
fn whitened(x: &Array2<u8>, components: usize) -> Outcome<Array2<f32>> {
    let (n, d) = x.dim();
    let mut mean = Array1::<f64>::zeros(d);
    let mut second = Array2::<f64>::zeros((d, d));
    for rows in x.axis_chunks_iter(Axis(0), 4_096) {
        let rows = rows.mapv(f64::from);
        mean += &rows.sum_axis(Axis(0));
        second += &rows.t().dot(&rows);
    }
    mean /= n as f64;
    let column = mean.view().insert_axis(Axis(1));
    let covariance = second / n as f64 - column.dot(&column.t());
    let values = covariance.as_slice().expect("contiguous");
    let eigen = MatRef::from_row_major_slice(values, d, d)
        .self_adjoint_eigen(Side::Lower)
        .map_err(|error| format!("{error:?}"))?;
    // In increasing order.
    let (vectors, variances) = (eigen.U(), eigen.S().column_vector());
    let basis = Array2::from_shape_fn((d, components), |(j, c)| {
        vectors[(j, d - 1 - c)] / variances[d - 1 - c].sqrt()
    });
    let mut out = Array2::zeros((n, components));
    let chunks = out.axis_chunks_iter_mut(Axis(0), 4_096);
    for (mut out, rows) in chunks.zip(x.axis_chunks_iter(Axis(0), 4_096)) {
        let rows = rows.mapv(f64::from) - &mean;
        out.assign(&rows.dot(&basis).mapv(|value| value as f32));
    }
    Ok(out)
}

/// Rows to fit and rows held out.
fn split(x: &Array2<f32>, split: u64) -> (Array2<f32>, Array2<f32>) {
    let mut rng = Rng::from_seed(1_000 + split);
    let mut rows: Vec<usize> = (0..x.nrows()).collect();
    for i in (1..rows.len()).rev() {
        rows.swap(i, rng.below(i + 1));
    }
    let (held_out, fitted) = rows.split_at(x.nrows() / 5);
    (x.select(Axis(0), fitted), x.select(Axis(0), held_out))
}

/// The result of a fit, and its costs.
struct Run {
    /// Log-likelihood of a held-out row.
    nats: f64,
    seconds: f64,
    iterations: usize,
    /// Components of 0.1 % of the rows or more.
    components: usize,
    /// Normalised entropy of the coreset, 1 where there is none.
    entropy: f64,
}

impl Settings {
    fn run(
        &self,
        (fitted, held_out): &(Array2<f32>, Array2<f32>),
        coreset: impl Coreset<f32> + 'static,
        seed: usize,
    ) -> Result<Run> {
        let started = Instant::now();
        // As published: components that are not needed empty by themselves.
        let family = DirichletProcess::new(self.concentration).merges(false);
        let family = if self.priors_of_data {
            family
        } else {
            family.paper_priors()
        };
        let builder = algorithms::dp_gmm(self.truncation, self.concentration).m_step(family);
        let builder = as_published(builder.coreset(coreset), TOLERANCE).seed(seed as u64);
        let fit = builder.build()?.fit(&Dense::new(fitted)?)?;
        let seconds = started.elapsed().as_secs_f64();
        let densities = fit.model.log_densities(&Dense::new(held_out)?)?;
        Ok(Run {
            nats: densities.mean().expect("rows"),
            seconds,
            iterations: fit.report.iterations,
            components: fit
                .model
                .proportions()
                .iter()
                .filter(|p| **p >= 0.001)
                .count(),
            entropy: fit.report.coreset_entropy.unwrap_or(1.0),
        })
    }
}

/// The mean of a figure of all runs, and its standard error.
fn mean_of(runs: &[Run], figure: impl Fn(&Run) -> f64) -> (f64, f64) {
    mean(&runs.iter().map(figure).collect::<Vec<_>>())
}

fn seconds(runs: &[Run]) -> f64 {
    median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>())
}

fn table(set: &str, what: &str, x: &Array2<f32>, settings: &Settings) -> Outcome<()> {
    let (n, d) = x.dim();
    let splits: Vec<_> = (0..settings.splits).map(|i| split(x, i as u64)).collect();
    let full = splits.iter().enumerate();
    let full = full.map(|(i, split)| settings.run(split, Full, i));
    let full = full.collect::<Result<Vec<_>>>()?;
    println!(
        "\n{set} ({n} x {d}: {what}), T = {}, concentration {}, {} priors, {} splits, {} draws.\nAll rows: {} nats per held-out row, \
         {:.2} s, {:.0} iterations, {:.0} components of 0.1 % or more.",
        settings.truncation,
        settings.concentration,
        if settings.priors_of_data {
            "the data's"
        } else {
            "the paper's"
        },
        settings.splits,
        settings.draws,
        with_error(mean_of(&full, |run| run.nats), 4),
        seconds(&full),
        mean_of(&full, |run| run.iterations as f64).0,
        mean_of(&full, |run| run.components as f64).0,
    );
    heading(&[
        "error of lightweight, %",
        "of uniform, %",
        "times as fast: lightweight",
        "uniform",
        "rows per parameter",
        "entropy",
    ]);
    for &size in &settings.sizes {
        let draws = |uniform: bool| -> Result<Vec<Run>> {
            let run = |draw: usize| {
                let split = &splits[draw % splits.len()];
                if uniform {
                    settings.run(split, UniformCoreset::new(size), draw)
                } else {
                    settings.run(split, Lightweight::new(size), draw)
                }
            };
            (0..settings.draws).map(run).collect()
        };
        let error = |runs: &[Run]| {
            let pairs = runs.iter().zip(full.iter().cycle());
            let errors = pairs.map(|(run, all)| 100.0 * (run.nats / all.nats - 1.0).abs());
            let (error, deviation) = mean(&errors.collect::<Vec<_>>());
            format!("{error:.1} ± {:.1}", 1.96 * deviation)
        };
        let faster = |runs: &[Run]| format!("{:.1}x", seconds(&full) / seconds(runs));
        let lightweight = draws(false)?;
        let uniform = draws(true)?;
        let components = mean_of(&lightweight, |run| run.components as f64).0;
        let parameters = components * ((d + 1) * (d + 2) / 2) as f64;
        let cells = [
            error(&lightweight),
            error(&uniform),
            faster(&lightweight),
            faster(&uniform),
            format!("{:.2}", size as f64 / parameters),
            format!("{:.3}", mean_of(&lightweight, |run| run.entropy).0),
        ];
        row(&size.to_string(), &cells);
    }
    Ok(())
}
