//! Table S1 of \[KM\]: k-means, k-means-C' and lazy-k-means on the BIRCH 5 x 5 grid.
//!
//! `cargo run --release -p reproduce --bin table_s1 -- [RUNS]` (default 100). All algorithms start from the same greedy
//! k-means++ seeds in each run (but for the last row: plain k-means++), so that they can be compared run by run. Standard errors in brackets; the
//! paper's figures are printed beside ours.

use coremix::algorithms;
use coremix::datasets::Birch;
use coremix::m_step::GaussianMixture;
use coremix::prelude::*;
use ndarray::Array2;
use reproduce::{as_published, mean};

const PER_CLUSTER: usize = 100;
const CLUSTERS: usize = 25;

/// Log-likelihood per point and quantization error of one run.
type Scores = (f64, f64);

fn main() -> Result<()> {
    let runs = match std::env::args().nth(1).map(|runs| runs.parse::<u64>()) {
        None => 100,
        Some(Ok(runs)) if runs >= 2 => runs,
        Some(_) => {
            eprintln!("error: RUNS must be a number, at least 2");
            std::process::exit(2);
        }
    };
    println!("BIRCH 5 x 5, {PER_CLUSTER} points per cluster, {runs} runs, greedy k-means++ seeds");
    table("one data set", runs, |_| 0)?;
    table("a new data set in each run", runs, |run| run)
}

/// Prints the table for `runs` runs, run `r` on the data made from the seed `data(r)`.
fn table(title: &str, runs: u64, data: impl Fn(u64) -> u64) -> Result<()> {
    let mut table = [const { Vec::new() }; 4];
    for seed in 0..runs {
        let birch = Birch::grid(PER_CLUSTER).generate::<f64>(data(seed))?;
        let data = Dense::new(birch.points.view())?;
        let seeds = greedy_seeds(&data, seed)?;
        for (column, scores) in table.iter_mut().zip(run(&data, &seeds, seed)?) {
            column.push(scores);
        }
    }
    println!(
        "\n{title:<28}{:>20}{:>12}{:>20}{:>12}",
        "log-likelihood", "best", "quantization", "best"
    );
    let names = [
        "k-means",
        "k-means-C', C' = 2",
        "lazy-k-means, eps = 0.1",
        "k-means, plain k-means++",
    ];
    for (name, column) in names.iter().zip(&table) {
        let likelihoods: Vec<f64> = column.iter().map(|s| s.0).collect();
        let errors: Vec<f64> = column.iter().map(|s| s.1).collect();
        let (likelihood, error) = (mean(&likelihoods), mean(&errors));
        let best = likelihoods
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{name:<28}{:>12.3} ({:.3}){best:>12.3}{:>14.0} ({:>3.0}){least:>12.0}",
            likelihood.0, likelihood.1, error.0, error.1
        );
    }
    println!(
        "{:<28}{:>20}{:>12}{:>20}{:>12}",
        "k-means, as published", "-6.12", "-6.02", "5450", "4840"
    );
    for (name, column) in names.iter().zip(&table).take(3).skip(1) {
        let gains: Vec<f64> = column
            .iter()
            .zip(&table[0])
            .map(|(a, b)| a.0 - b.0)
            .collect();
        let (gain, error) = mean(&gains);
        println!("{name} less k-means, paired: {gain:+.4} nats per point ({error:.4})");
    }
    Ok(())
}

/// Greedy k-means++ seeds, in the data's own unit.
fn greedy_seeds(data: &Dense<'_, f64>, seed: u64) -> Result<Array2<f64>> {
    let fit = algorithms::k_means(CLUSTERS)
        .seeder(KMeansPlusPlus::greedy())
        .max_iterations(0)
        .seed(seed)
        .build()?
        .fit(data)?;
    Ok(fit.model.means().to_owned())
}

/// Three algorithms from the same seeds, and k-means from seeds of its own, run until nothing changes.
fn run(data: &Dense<'_, f64>, seeds: &Array2<f64>, seed: u64) -> Result<[Scores; 4]> {
    let given = || Given::new(seeds.view());
    let settled = |model: &GaussianMixture<f64>| -> Result<Scores> {
        let n = (CLUSTERS * PER_CLUSTER) as f64;
        Ok((
            model.log_likelihood(data)? / n,
            model.quantization_error(data)?,
        ))
    };
    let k_means = algorithms::k_means(CLUSTERS).seeder(given()).tolerance(0.0);
    let c_prime = algorithms::k_means_c_prime(CLUSTERS, 2).seeder(given());
    let c_prime = as_published(c_prime, 1e-9);
    let lazy = algorithms::lazy_k_means(CLUSTERS, 0.1)
        .seeder(given())
        .tolerance(0.0);
    let plain = algorithms::k_means(CLUSTERS).tolerance(0.0).seed(seed);
    Ok([
        settled(&k_means.build()?.fit(data)?.model)?,
        settled(&c_prime.max_iterations(1_000).build()?.fit(data)?.model)?,
        settled(&lazy.build()?.fit(data)?.model)?,
        settled(&plain.build()?.fit(data)?.model)?,
    ])
}
