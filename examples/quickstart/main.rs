//! Clusters generated data or a file, says what happened, and draws the result.
//!
//! ```text
//! cargo run --release --example quickstart
//! cargo run --release --example quickstart -- points.npy --clusters 500 --coreset 8192
//! cargo run --release --example quickstart -- --help
//! ```

mod algorithm;
mod family;
mod input;
mod iterations;
mod picture;

use algorithm::{Algorithm, Common, Options, Outcome, Settings};
use clap::Parser;
use coremix::prelude::*;
use coremix::{Element, metrics};
use input::{Input, Points, Truth};
use iterations::Iterations;
use ndarray::ArrayView2;
use std::error::Error as StdError;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn StdError>>;

/// Clusters points, says what happened, and draws the result
#[derive(Parser)]
#[command(name = "quickstart", allow_negative_numbers = true)]
struct Cli {
    /// Points, one row each: .npy (float32, float64, uint8) or .csv [default: generated data]
    data: Option<PathBuf>,
    /// How to cluster
    #[arg(long, value_enum, default_value_t = Algorithm::VcGmm)]
    algorithm: Algorithm,
    /// Number of clusters, for dp-gmm the most it may find [default: 25 and 50 for generated data]
    #[arg(long)]
    clusters: Option<usize>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    common: Common,
    /// Where to draw points, centres and supports (.svg)
    #[arg(long, default_value = "out/quickstart.svg")]
    picture: PathBuf,
    /// Draw nothing
    #[arg(long, conflicts_with = "picture")]
    no_picture: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to try if this fails as well.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &(dyn StdError + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn run(cli: &Cli) -> Result<()> {
    // What can be wrong without the data is said before it is read.
    cli.algorithm.check(&cli.options)?;
    if !cli.no_picture {
        picture::check(&cli.picture)?;
    }
    let clusters = match (cli.clusters, &cli.data) {
        (Some(clusters), _) => clusters,
        // A truncation needs room.
        (None, None) if cli.algorithm == Algorithm::DpGmm => 50,
        (None, None) => 25,
        (None, Some(path)) => {
            let path = path.display();
            return Err(format!("{path}: the number of clusters is needed (--clusters)").into());
        }
    };

    let started = Instant::now();
    let input = match &cli.data {
        Some(path) => input::read(path)?,
        None => input::generated()?,
    };
    let read = started.elapsed();
    match &input.points {
        Points::F32(points) => cluster(cli, clusters, &input, points.view(), ("f32", read)),
        Points::F64(points) => cluster(cli, clusters, &input, points.view(), ("f64", read)),
        Points::U8(points) => cluster(cli, clusters, &input, points.view(), ("u8", read)),
    }
}

/// The whole example, for points stored as `T`.
fn cluster<T: Element>(
    cli: &Cli,
    clusters: usize,
    input: &Input,
    points: ArrayView2<'_, T>,
    (stored, read): (&str, Duration),
) -> Result<()> {
    let started = Instant::now();
    let data = Dense::new(points).map_err(|error| in_file(&input.name, &error))?;
    let checked = started.elapsed();

    let mut out = io::stdout().lock();
    let (n, d) = points.dim();
    writeln!(out, "Data\n  {}", input.name)?;
    writeln!(out, "  {n} rows, {d} columns, {stored}")?;
    writeln!(
        out,
        "  read in {:.1} ms, checked in {:.1} ms",
        ms(read),
        ms(checked)
    )?;

    let settings = Settings::new(cli.algorithm, clusters, (n, d), &cli.options, &cli.common);
    writeln!(out, "\nAlgorithm\n  {}", cli.algorithm.name())?;
    writeln!(out, "  {}", cli.algorithm.describe(&settings))?;

    writeln!(out, "\nIterations")?;
    let mut iterations = Iterations::new(&mut out, settings.several());
    let outcome = cli.algorithm.fit(&settings, &data, &mut iterations)?;

    writeln!(out, "\nReport\n{}", outcome.report)?;
    writeln!(out, "Scores, on all rows")?;
    scores(&mut out, &outcome, n, input.truth.as_ref())?;

    if !cli.no_picture {
        let started = Instant::now();
        let title = format!("{}, {clusters} clusters", cli.algorithm.name());
        let columns = input.columns.as_deref();
        let drawn = picture::draw(&cli.picture, &title, points, columns, &outcome)?;
        let (path, time) = (cli.picture.display(), ms(started.elapsed()));
        writeln!(
            out,
            "\nPicture\n  {path}: {drawn} of {n} points, in {time:.1} ms"
        )?;
    }
    Ok(())
}

fn scores(out: &mut impl Write, outcome: &Outcome, n: usize, truth: Option<&Truth>) -> Result<()> {
    let score = &outcome.score;
    let mut line = |what: &str, value: String| writeln!(out, "  {what:<32}{value:>14}");
    line(
        "quantization error",
        format!("{:.6e}", score.quantization_error),
    )?;
    line(
        "mean log-likelihood per point",
        format!("{:.6}", score.log_likelihood / n as f64),
    )?;
    let Some(truth) = truth else { return Ok(()) };
    let (found, known) = (score.labels.view(), truth.labels.view());
    line("purity", format!("{:.6}", metrics::purity(found, known)?))?;
    line("NMI", format!("{:.6}", metrics::nmi(found, known)?))?;
    line(
        "ARI",
        format!("{:.6}", metrics::adjusted_rand_index(found, known)?),
    )?;
    // Matching is one to one.
    let rmse = if outcome.means.nrows() == truth.centres.nrows() {
        let rmse = metrics::matched_rmse(outcome.means.view(), truth.centres.view())?;
        format!("{rmse:.6}")
    } else {
        format!("needs {} clusters", truth.centres.nrows())
    };
    line("matched RMSE of centres", rmse)?;
    Ok(())
}

/// What is wrong with the values of a file.
fn in_file(name: &str, error: &Error) -> String {
    match error {
        Error::NotFinite { .. } | Error::TooLarge { .. } => {
            format!("{name}: {error} (rows and columns count from 0)")
        }
        _ => format!("{name}: {error}"),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
