//! An algorithm by its name, chosen at run time: `cargo run --release --example by_name -- NAME CLUSTERS`.
//!
//! Both can be left out: `fast` and 25 are the defaults. An unknown name prints all there are; `--list` prints them one by one.

use coremix::datasets::Birch;
use coremix::prelude::*;
use std::error::Error as StdError;
use std::process::ExitCode;

fn run(name: &str, clusters: usize) -> Result<()> {
    let birch = Birch::grid(400).generate::<f32>(1)?;
    let data = Dense::new(birch.points.view())?;

    let algorithm: Algorithm = name.parse()?;
    let algorithm = algorithm.clusters(clusters).seed(42);
    // Boxed estimators have one type, whatever the algorithm is.
    let estimator: Box<dyn Estimator<f32>> = algorithm.boxed()?;
    let mut fit = estimator.fit(&data)?;
    let score = fit.score(&data)?; // of all rows, and exact

    println!("{algorithm}, {} components", fit.model.components());
    for mean in fit.model.means().outer_iter().take(5) {
        println!("  mean {mean:.3}");
    }
    println!("first labels {}", score.labels.slice(ndarray::s![..10]));
    println!("quantization error {:.5e}", score.quantization_error);
    println!("log-likelihood {:.5e}", score.log_likelihood);
    let (found, truth) = (score.labels.view(), birch.labels.view());
    let index = metrics::adjusted_rand_index(found, truth)?;
    println!("adjusted Rand index {index:.4}\n{}", fit.report);
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "fast".into());
    if name == "--list" {
        Algorithm::NAMES.iter().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let clusters = arguments.next().map_or(Ok(25), |k| k.parse());
    let done: std::result::Result<(), Box<dyn StdError>> = match clusters {
        Ok(clusters) => run(&name, clusters).map_err(Into::into),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
