//! A long fit with a progress bar that Ctrl-C ends, with the model it has by then.
//!
//! `cargo run --release -p gallery --bin progress -- [--rows 1000000] [-k 2000] [--seconds 60]` on generated rows.

use clap::Parser;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Cancel, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use ndarray::Array2;
use std::ops::ControlFlow;
use std::time::Duration;

#[derive(Parser)]
#[command(about = "A long fit with a progress bar, which Ctrl-C or a time limit ends")]
struct Arguments {
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Clusters
    #[arg(short, long, default_value_t = 2_000)]
    k: usize,
    /// The time limit
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
}

fn main() -> std::process::ExitCode {
    gallery::run(program)
}

fn program() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let mut rng = Rng::from_seed(1);
    let x = Array2::from_shape_fn((arguments.rows, 16), |_| rng.normal() as f32);
    let data = Dense::new(x.view())?;

    // The flag is set by the time limit, or by Ctrl-C.
    let cancel = Cancel::after(Duration::try_from_secs_f64(arguments.seconds)?);
    let of_handler = cancel.clone();
    ctrlc::set_handler(move || of_handler.cancel())?;

    let bar = ProgressBar::new(1);
    bar.set_style(ProgressStyle::with_template(
        "{elapsed:>4} [{bar:30}] {msg}",
    )?);
    bar.enable_steady_tick(Duration::from_millis(200));
    let fit = algorithms::fast(arguments.k)
        .cancel(&cancel)
        .build()?
        .fit_observed(&data, |progress| {
            if let Progress::Iteration {
                phase,
                rows,
                iteration,
                limit,
                free_energy,
                ..
            } = progress
            {
                bar.set_length(*limit as u64);
                bar.set_position(*iteration as u64);
                bar.set_message(format!(
                    "phase {phase} on {rows} rows, step {iteration} of {limit} at most, F = {free_energy:.6e}"
                ));
            }
            ControlFlow::Continue(())
        })?;
    bar.finish_and_clear();
    println!("{}", fit.report);
    let error = fit.model.quantization_error(&data)?;
    println!("quantization error {error:.4e}");
    Ok(())
}
