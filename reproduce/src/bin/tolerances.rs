//! Error and time of `fast` at several tolerances, on the rows of files: time should fall with every step.
//!
//! `cargo run --release -p reproduce --bin tolerances -- [--seeds 3] [--tolerances 1e-4,1e-3,1e-2,1e-1] [--phases] SET.npy:K ...`
//! prints a line per set and tolerance, medians over the seeds: the quantization error, its difference from that of the first
//! tolerance, seconds, seconds of all processors together, and distance evaluations per row. The last two are of use on a machine that is
//! not idle. `--phases` adds what every phase did.

use clap::Parser;
use coremix::prelude::*;
use coremix::{Element, algorithms};
use ndarray::Array2;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    #[arg(long, value_delimiter = ',', default_value = "1e-4,1e-3,1e-2,1e-1")]
    tolerances: Vec<f64>,
    #[arg(long)]
    phases: bool,
    #[arg(required = true)]
    sets: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    println!(
        "| set | k | tolerance | error | to the first | seconds | of processors | evaluations per row |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for set in &arguments.sets {
        let (path, k) = set.rsplit_once(':').ok_or("a set is FILE.npy:K")?;
        let k = k.parse()?;
        match ndarray_npy::read_npy::<_, Array2<f32>>(path) {
            Ok(x) => run(&arguments, path, &x, k)?,
            Err(_) => match ndarray_npy::read_npy::<_, Array2<u8>>(path) {
                Ok(x) => run(&arguments, path, &x, k)?,
                Err(_) => run(
                    &arguments,
                    path,
                    &ndarray_npy::read_npy::<_, Array2<f64>>(path)?,
                    k,
                )?,
            },
        }
    }
    Ok(())
}

fn run<T: Element>(arguments: &Arguments, path: &str, x: &Array2<T>, k: usize) -> Result<()> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut first = None;
    for &tolerance in &arguments.tolerances {
        let mut runs = Vec::new();
        for seed in 1..=arguments.seeds {
            let data = Dense::new(x.view())?;
            let (started, spent) = (Instant::now(), processors()?);
            let builder = algorithms::fast(k).tolerance(tolerance).seed(seed);
            let fit = builder.build()?.fit(&data)?;
            let seconds = started.elapsed().as_secs_f64();
            let spent = processors()? - spent;
            let evaluations = fit.report.distance_evaluations as f64 / x.nrows() as f64;
            runs.push([
                fit.model.quantization_error(&data)?,
                seconds,
                spent,
                evaluations,
            ]);
            if arguments.phases {
                println!("{}", fit.report);
                for p in &fit.report.phases {
                    let at = |i: usize| p.free_energies.get(i).copied().unwrap_or(f64::NAN);
                    println!(
                        "{:>8} rows {:>4} columns {:>3} iterations {:>6.0} evaluations per row {:.3} s, longer lists {}, F {:.6e} to {:.6e}",
                        p.rows,
                        p.columns,
                        p.iterations,
                        p.evaluations as f64 / p.rows as f64,
                        p.elapsed.as_secs_f64(),
                        p.longer_lists,
                        at(0),
                        at(p.free_energies.len() - 1)
                    );
                }
            }
        }
        let [error, seconds, spent, evaluations] = std::array::from_fn(|i| {
            let mut values: Vec<f64> = runs.iter().map(|run| run[i]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        });
        let change = 100.0 * (error / *first.get_or_insert(error) - 1.0);
        println!(
            "| {name} | {k} | {tolerance:.0e} | {error:.6e} | {change:+.2} % | {seconds:.3} | {spent:.2} | {evaluations:.0} |"
        );
    }
    Ok(())
}

/// Seconds of all processors that this process has used.
fn processors() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}
