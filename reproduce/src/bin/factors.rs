//! Factor analysers: truncated searches against exhaustive ones, from the same seeds, and one run with many parameters.
//!
//! `cargo run --release -p reproduce --bin factors -- [DATA_FOLDER] [--sets patches_u8,mnist_u8] [--k 100,1000] [--rows N]` prints, for
//! each number of components, iterations, evaluations of a row under a component, seconds of EM, and the log-likelihood per row over all
//! components, of the rows of the fit and of a tenth that is held out. The last columns are how many times fewer evaluations and
//! seconds the truncated search took than the exhaustive one up to the same likelihood. Values of the sets are whole numbers; uniform
//! noise of one step is added, so that they have a density.
//!
//! `cargo run --release -p reproduce --bin factors -- --large 20000 [--columns 3072] [--factors 15] [--rows N] [--iterations N]` fits computed rows, and
//! prints the parameters and the most memory that the program had (Linux).

use clap::Parser;
use coremix::algorithms;
use coremix::data::{Blocks, Source};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, ArrayView2, s};
use ndarray_npy::read_npy;
use std::path::PathBuf;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
struct Options {
    /// The folder of the data.
    #[arg(default_value = "../shared/data")]
    folder: PathBuf,
    #[arg(long, value_delimiter = ',', default_value = "patches_u8,mnist_u8")]
    sets: Vec<String>,
    /// Numbers of components.
    #[arg(long, value_delimiter = ',', default_value = "100,1000")]
    k: Vec<usize>,
    /// Evenly spaced rows of a set, or rows that are computed; all, and five for each component, by default.
    #[arg(long)]
    rows: Option<usize>,
    #[arg(long)]
    factors: Option<usize>,
    /// Members of a support, and neighbors of a component.
    #[arg(long, value_delimiter = ',', default_value = "3,5")]
    truncated: Vec<usize>,
    #[arg(long, default_value_t = 40)]
    iterations: usize,
    /// Leave out the exhaustive search from this number of components on.
    #[arg(long, default_value_t = usize::MAX)]
    alone_from: usize,
    /// One run with this many components, of computed rows.
    #[arg(long)]
    large: Option<usize>,
    /// Columns of computed rows.
    #[arg(long, default_value_t = 3072)]
    columns: usize,
}

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    if let Some(k) = options.large {
        return large(&options, k);
    }
    println!(
        "| set | k | search | iterations | evaluations | seconds | ms per iteration | fitted | held out | fewer evaluations | fewer seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for set in &options.sets {
        let all: Array2<u8> = read_npy(options.folder.join(format!("{set}.npy")))?;
        let step = options.rows.map_or(1, |rows| all.nrows().div_ceil(rows));
        // Values are whole numbers, and densities of such are those of their floor: noise as wide as the steps makes them numbers.
        let mut rng = Rng::from_seed(1);
        let some = all.slice(s![..;step, ..]);
        let some = some.mapv(|x| f32::from(x) + rng.uniform() as f32);
        let held = some.slice(s![..;10, ..]).to_owned();
        let fitted: Vec<usize> = (0..some.nrows()).filter(|i| i % 10 > 0).collect();
        let fitted = some.select(ndarray::Axis(0), &fitted);
        for &k in &options.k {
            compare(&options, set, k, fitted.view(), held.view())?;
        }
    }
    Ok(())
}

/// A fit: how likely rows are, and what it took.
struct Reached {
    likelihood: f64,
    evaluations: f64,
    seconds: f64,
    /// F after each iteration, per row.
    energies: Vec<f64>,
}

fn compare(
    options: &Options,
    set: &str,
    k: usize,
    x: ArrayView2<'_, f32>,
    held: ArrayView2<'_, f32>,
) -> Result<(), Failure> {
    let (data, held) = (Dense::new(x)?, Dense::new(held)?);
    let kind = Covariance::Factors(options.factors.unwrap_or(5));
    let (c_prime, neighbors) = (options.truncated[0], options.truncated[1]);
    let fit = |name: &str, builder: coremix::Builder<f32>, than: Option<&Reached>| {
        let builder = builder.covariance(kind).seeder(AfkMc2::new(20)).seed(1);
        let builder = builder.tolerance(1e-4).max_iterations(options.iterations);
        let fit = builder.build()?.fit(&data)?;
        // Without seeding, which is the same for both.
        let phases = fit.report.phases.iter();
        let seconds: f64 = phases.map(|phase| phase.elapsed.as_secs_f64()).sum();
        let rows = x.nrows() as f64;
        let per_row = |model: &GaussianMixture<f32>, data: &Dense<'_, f32>, rows: f64| {
            Ok::<_, coremix::Error>(model.log_likelihood(data)? / rows)
        };
        let found = Reached {
            likelihood: per_row(&fit.model, &data, rows)?,
            evaluations: fit.report.evaluations.search as f64,
            seconds,
            energies: fit.report.free_energies.iter().map(|f| f / rows).collect(),
        };
        let fewer = than.map_or("|".to_string(), |all| {
            // F of a search over all components is the likelihood.
            let reached = all.energies.iter().position(|f| *f >= found.likelihood);
            let part = reached.map_or(1.0, |place| (place + 1) as f64 / all.energies.len() as f64);
            let sign = if reached.is_some() { "" } else { "> " };
            let [evaluations, time] = [
                part * all.evaluations / found.evaluations,
                part * all.seconds / found.seconds,
            ];
            format!("{sign}{evaluations:.1} | {sign}{time:.1}")
        });
        println!(
            "| {set} | {k} | {name} | {} | {:.3e} | {seconds:.1} | {:.0} | {:.3} | {:.3} | {fewer} |",
            fit.report.iterations,
            found.evaluations,
            1e3 * seconds / fit.report.iterations.max(1) as f64,
            found.likelihood,
            per_row(&fit.model, &held, held.points().nrows() as f64)?,
        );
        Ok::<_, Failure>(found)
    };
    let all = match k < options.alone_from {
        true => Some(fit("all", algorithms::gmm(k), None)?),
        false => None,
    };
    let name = format!("{c_prime} of {neighbors}");
    fit(
        &name,
        algorithms::var_gmm_s(k, c_prime, neighbors),
        all.as_ref(),
    )?;
    Ok(())
}

/// Rows about many centres, with a few directions each, computed from their numbers.
struct Computed {
    rows: usize,
    columns: usize,
    groups: usize,
}

/// A number between -1 and 1 that follows from two others.
fn mixed(a: u64, b: u64) -> f32 {
    let mut x = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x >> 40) as f32) / (1 << 23) as f32 - 1.0
}

impl Source for Computed {
    type Element = f32;

    fn len(&self) -> usize {
        self.rows
    }

    fn dim(&self) -> usize {
        self.columns
    }

    fn read(&self, first: usize, out: &mut [f32]) -> std::io::Result<()> {
        for (i, row) in (first as u64..).zip(out.chunks_exact_mut(self.columns)) {
            let group = i.wrapping_mul(7_919) % self.groups as u64;
            let along = [mixed(i, 1 << 40), mixed(i, 1 << 41)];
            for (j, x) in (0..).zip(row) {
                let factors = [mixed(group, j + (1 << 42)), mixed(group, j + (1 << 43))];
                *x = 2.0 * mixed(group, j) + 0.3 * mixed(i, j);
                *x += along[0] * factors[0] + along[1] * factors[1];
            }
        }
        Ok(())
    }
}

fn large(options: &Options, k: usize) -> Result<(), Failure> {
    let (d, q) = (options.columns, options.factors.unwrap_or(15));
    let source = Computed {
        rows: options.rows.unwrap_or(5 * k),
        columns: d,
        groups: k,
    };
    let rows = source.len();
    let data = Blocks::new(source)?;
    let builder = algorithms::var_gmm_s(k, options.truncated[0], options.truncated[1]);
    let builder = builder
        .seeder(UniformSeeder)
        .covariance(Covariance::Factors(q));
    let start = Instant::now();
    let fit = builder
        .tolerance(1e-4)
        .max_iterations(options.iterations)
        .build()?
        .fit(&data)?;
    println!(
        "{} parameters, {rows} rows of {d}, {} iterations, {:.0} s, F per row {:.3?}, {} evaluations; {}",
        k * (d * (q + 2) + 1),
        fit.report.iterations,
        start.elapsed().as_secs_f64(),
        fit.report
            .free_energies
            .iter()
            .map(|f| f / rows as f64)
            .collect::<Vec<_>>(),
        fit.report.evaluations.search,
        most_memory(),
    );
    Ok(())
}

fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or("memory not known").to_string()
}
