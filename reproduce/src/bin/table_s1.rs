//! Table S1 of \[KM\]: k-means, k-means-C' and lazy-k-means on the BIRCH 5 x 5 grid.
//!
//! `cargo run --release -p reproduce --bin table_s1 -- [RUNS]` (default 100). All algorithms start from the same greedy
//! k-means++ seeds in each run (except in the row of plain k-means++), so that they can be compared run by run. Standard errors
//! in brackets; the paper's figures are rows of their own. The second table says what lazy-k-means depends on.

use coremix::datasets::Birch;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::{Builder, algorithms};
use ndarray::Array2;
use rayon::prelude::*;
use reproduce::{TOLERANCE, as_published, heading, mean, row, signed, with_error};

const PER_CLUSTER: usize = 100;
const CLUSTERS: usize = 25;

/// Log-likelihood per point and quantization error of one run.
type Scores = (f64, f64);

const NAMES: [&str; 10] = [
    "k-means",
    "k-means-C', C' = 2",
    "lazy-k-means, epsilon = 0.1",
    "k-means, plain k-means++",
    "lazy-k-means, epsilon = 0.01",
    // The rule on squared distances.
    "lazy-k-means, 1 + epsilon = 1.1 of squared distances",
    "lazy-k-means, epsilon = 0.5",
    "lazy-k-means, epsilon = 0.1, stopped at 1e-4",
    "k-means, stopped at 1e-4",
    "k-means, from where lazy-k-means (0.1) ended",
];

/// How many of them are in the table of the paper.
const OF_PAPER: usize = 4;

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
    let settings = [columns(runs, |_| 0)?, columns(runs, |run| run)?];
    heading(&[
        "log-likelihood, one data set",
        "error",
        "log-likelihood, a new one in each run",
        "error",
    ]);
    for (i, name) in NAMES.iter().enumerate().take(OF_PAPER) {
        let cells = settings.iter().flat_map(|columns| {
            let (likelihoods, errors) = &columns[i];
            let best = likelihoods.iter().copied().fold(f64::MIN, f64::max);
            let least = errors.iter().copied().fold(f64::MAX, f64::min);
            [
                format!("{}, best {best:.3}", with_error(mean(likelihoods), 3)),
                format!("{}, best {least:.0}", with_error(mean(errors), 0)),
            ]
        });
        row(name, &cells.collect::<Vec<_>>());
    }
    let published = |name: &str, cells: [&str; 2]| {
        let cells = [cells[0], cells[1], "", ""].map(String::from);
        row(name, &cells);
    };
    published("k-means, as published", ["-6.127", "5503, best 4836"]);
    published(
        "lazy-k-means, as published",
        ["-6.12, best -6.02", "5450, best 4840"],
    );
    println!("\nLess k-means, paired:");
    heading(&[
        "log-likelihood, one data set",
        "error",
        "log-likelihood, a new one in each run",
        "error",
    ]);
    for (i, name) in NAMES.iter().enumerate().skip(1).filter(|(i, _)| *i != 3) {
        let cells = settings.iter().flat_map(|columns| {
            let (of, base) = (&columns[i], &columns[0]);
            let less = |a: &[f64], b: &[f64]| -> (f64, f64) {
                mean(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
            };
            [
                signed(less(&of.0, &base.0), 4),
                signed(less(&of.1, &base.1), 1),
            ]
        });
        row(name, &cells.collect::<Vec<_>>());
    }
    Ok(())
}

/// Log-likelihoods and errors of every row of the tables, run `r` on the data made from the seed `data(r)`.
fn columns(
    runs: u64,
    data: impl Fn(u64) -> u64 + Sync,
) -> Result<[(Vec<f64>, Vec<f64>); NAMES.len()]> {
    let of_runs: Vec<[Scores; NAMES.len()]> = (0..runs)
        .into_par_iter()
        .map(|seed| {
            let birch = Birch::grid(PER_CLUSTER).generate::<f64>(data(seed))?;
            let data = Dense::new(birch.points.view())?;
            run(&data, &greedy_seeds(&data, seed)?, seed)
        })
        .collect::<Result<_>>()?;
    Ok(std::array::from_fn(|i| {
        of_runs.iter().map(|scores| scores[i]).unzip()
    }))
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

/// All algorithms from the same seeds, and k-means from seeds of its own, run until nothing changes unless the name says
/// otherwise.
fn run(data: &Dense<'_, f64>, seeds: &Array2<f64>, seed: u64) -> Result<[Scores; NAMES.len()]> {
    let given = || Given::new(seeds.view());
    let fitted = |builder: Builder<f64>| -> Result<GaussianMixture<f64>> {
        Ok(builder.max_iterations(1_000).build()?.fit(data)?.model)
    };
    let scores = |model: &GaussianMixture<f64>| -> Result<Scores> {
        let n = (CLUSTERS * PER_CLUSTER) as f64;
        Ok((
            model.log_likelihood(data)? / n,
            model.quantization_error(data)?,
        ))
    };
    let settled = |builder: Builder<f64>| scores(&fitted(builder.tolerance(0.0))?);
    let k_means = || algorithms::k_means(CLUSTERS).seeder(given());
    let c_prime = algorithms::k_means_c_prime(CLUSTERS, 2).seeder(given());
    let lazy = |epsilon: f64| algorithms::lazy_k_means(CLUSTERS, epsilon).seeder(given());
    let lazy_end = fitted(lazy(0.1).tolerance(0.0))?;
    let after_lazy = algorithms::k_means(CLUSTERS).seeder(Given::new(lazy_end.means()));
    Ok([
        settled(k_means())?,
        scores(&fitted(as_published(c_prime, 1e-9))?)?,
        scores(&lazy_end)?,
        settled(algorithms::k_means(CLUSTERS).seed(seed))?,
        settled(lazy(0.01))?,
        settled(lazy(1.1f64.sqrt() - 1.0))?,
        settled(lazy(0.5))?,
        scores(&fitted(as_published(lazy(0.1), TOLERANCE))?)?,
        scores(&fitted(as_published(k_means(), TOLERANCE))?)?,
        settled(after_lazy)?,
    ])
}
