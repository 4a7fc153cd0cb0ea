//! One fit of one algorithm, timed from the checked rows to the model: what `reproduce/peers/run` compares with other
//! libraries.
//!
//! `cargo run --release -p reproduce --bin peer -- ALGORITHM POINTS.npy CLUSTERS SEED CENTRES.npy` prints the seconds and writes
//! the means. For `iteration` they are the seconds of one iteration of k-means, which starts at the first rows and ends after
//! `--max-iterations`; `--search` says which rows are read: all (`products`), those that bounds leave open (`bounds`), or as
//! `k_means` chooses. Labels are the same; which part of all distances was evaluated goes to the error output. Points are `f32`, `u8` or `f64` (as `f32`: what the others are given).

use clap::{Parser, ValueEnum};
use coremix::prelude::*;
use coremix::stage::Stage;
use coremix::{Builder, Element, algorithms};
use ndarray::Array2;
use ndarray_npy::ReadableElement;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(about = "One fit of one algorithm: prints its seconds and writes its means")]
struct Arguments {
    algorithm: Algorithm,
    points: PathBuf,
    clusters: usize,
    seed: u64,
    centres: PathBuf,
    /// In place of the algorithm's own.
    #[arg(long)]
    tolerance: Option<f64>,
    /// In place of the algorithm's own, per phase.
    #[arg(long)]
    max_iterations: Option<usize>,
    /// For `iteration`: whether rows have bounds on their distances.
    #[arg(long, default_value = "chosen")]
    search: Search,
}

#[derive(Clone, Copy, ValueEnum)]
enum Search {
    Chosen,
    Products,
    Bounds,
}

#[derive(Clone, Copy, ValueEnum)]
enum Algorithm {
    Fast,
    VcGmm,
    VarGmmS,
    KMeans,
    Iteration,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (means, seconds) = match read::<f32>(&arguments.points) {
        Ok(x) => run(&arguments, &x)?,
        Err(_) => match read::<u8>(&arguments.points) {
            Ok(x) => run(&arguments, &x)?,
            Err(_) => run(
                &arguments,
                &read::<f64>(&arguments.points)?.mapv(|v| v as f32),
            )?,
        },
    };
    ndarray_npy::write_npy(&arguments.centres, &means)?;
    println!("{seconds}");
    Ok(())
}

fn read<T: ReadableElement>(points: &Path) -> Result<Array2<T>> {
    Ok(ndarray_npy::read_npy(points)?)
}

fn run<T: Element<Float = f32>>(
    arguments: &Arguments,
    x: &Array2<T>,
) -> Result<(Array2<f32>, f64)> {
    let k = arguments.clusters;
    let started = Instant::now();
    let data = Dense::new(x.view())?;
    let model = match arguments.algorithm {
        Algorithm::Fast => {
            let builder = arguments.set(algorithms::fast(k));
            builder.build()?.fit(&data)?.model
        }
        Algorithm::VcGmm => {
            let builder = arguments.set(algorithms::vc_gmm(k, 16_384, 3, 5));
            builder.build()?.fit(&data)?.model
        }
        Algorithm::VarGmmS => {
            let builder = arguments.set(algorithms::var_gmm_s(k, 3, 5));
            builder.build()?.fit(&data)?.model
        }
        Algorithm::KMeans => {
            let builder = arguments.set(algorithms::k_means(k));
            builder.build()?.fit(&data)?.model
        }
        Algorithm::Iteration => return arguments.iteration(x),
    };
    let seconds = started.elapsed().as_secs_f64();
    Ok((model.means().to_owned(), seconds))
}

impl Arguments {
    /// The builder with the seed and the options.
    fn set<M: Stage>(&self, mut builder: Builder<f32, M>) -> Builder<f32, M> {
        if let Some(tolerance) = self.tolerance {
            builder = builder.tolerance(tolerance);
        }
        if let Some(iterations) = self.max_iterations {
            builder = builder.max_iterations(iterations);
        }
        builder.seed(self.seed)
    }

    /// Seconds of an iteration: those of many less those of 2, so that what is done once does not count, by what was run.
    fn iteration<T: Element<Float = f32>>(&self, x: &Array2<T>) -> Result<(Array2<f32>, f64)> {
        let (data, k) = (Dense::new(x.view())?, self.clusters);
        let seeds = Array2::from_shape_fn((k, x.ncols()), |at| x[at].widen());
        let fit = |iterations| -> Result<_> {
            let started = Instant::now();
            let builder = algorithms::k_means(k).seeder(Given::new(seeds.view()));
            let builder = builder.tolerance(0.0).max_iterations(iterations);
            let builder = match self.search {
                Search::Chosen => builder,
                Search::Products => builder.e_step(Exhaustive::truncated(1)),
                Search::Bounds => builder.e_step(Bounded::default().nearest_centres(k)),
            };
            let fit = builder.build()?.fit(&data)?;
            let ran = fit.report.iterations as f64;
            Ok((
                fit.model,
                ran,
                started.elapsed().as_secs_f64(),
                fit.report.evaluations.search,
            ))
        };
        let (_, few, short, a) = fit(2)?;
        let (model, many, long, b) = fit(self.max_iterations.unwrap_or(12))?;
        eprintln!(
            "ran {many} share {:.3}",
            (b - a) as f64 / (many - few) / (x.nrows() * k) as f64
        );
        Ok((model.means().to_owned(), (long - short) / (many - few)))
    }
}
