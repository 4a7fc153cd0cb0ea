//! Clusters the rows of a file of any format without loading it, and writes their labels with their keys.
//!
//! ```text
//! cargo run --release -p coremix-files --example from_parquet -- points.parquet --key id --algorithm vc-gmm --clusters 1000
//! ```

use clap::Parser;
use coremix::data::{Blocks, Data, Source};
use coremix::{Algorithm, Element, Float};
use coremix_files::ReadAhead;
use coremix_files::{AnySource, Keys, LabelWriter, Opened, Options, open};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

/// Clusters the rows of a file without loading it.
#[derive(Parser)]
struct Arguments {
    /// A file, a folder or a pattern.
    file: PathBuf,
    /// The algorithm, such as fast, vc-gmm or k-means.
    #[arg(long, default_value = "fast")]
    algorithm: String,
    /// Number of clusters.
    #[arg(long, default_value_t = 100)]
    clusters: usize,
    /// Draws of the coreset, for algorithms that have one.
    #[arg(long)]
    coreset: Option<usize>,
    /// Bytes that fast may keep of rows, as in `algorithms::fast_within`.
    #[arg(long)]
    memory: Option<usize>,
    /// Seed of the fit.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A column that is no coordinate, written with the labels.
    #[arg(long)]
    key: Vec<String>,
    /// The columns of the rows.
    #[arg(long)]
    column: Vec<String>,
    /// Reads blocks when they are asked for, not before.
    #[arg(long)]
    no_read_ahead: bool,
    /// Loads all rows first, for comparison.
    #[arg(long)]
    in_memory: bool,
    /// Where to write the labels, as Parquet.
    #[arg(long)]
    labels: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut options = arguments.key.iter().fold(Options::new(), Options::key);
    if !arguments.column.is_empty() {
        options = options.columns(&arguments.column);
    }
    let Opened { rows, keys, .. } = open(&arguments.file, &options)?;
    println!("{rows:?}");
    match rows {
        AnySource::U8(rows) => source(rows, keys, &arguments),
        AnySource::I8(rows) => source(rows, keys, &arguments),
        AnySource::F16(rows) => source(rows, keys, &arguments),
        AnySource::F32(rows) => source(rows, keys, &arguments),
        AnySource::F64(rows) => source(rows, keys, &arguments),
        other => Err(format!("{other:?}").into()),
    }
}

fn source<T: Element + Default>(
    rows: coremix_files::Rows<T>,
    keys: Option<Keys>,
    arguments: &Arguments,
) -> Result<(), Box<dyn Error>> {
    if arguments.in_memory {
        let (n, d) = (rows.len(), rows.dim());
        let mut all = vec![T::default(); n * d];
        for (block, out) in all.chunks_mut(4_096 * d.max(1)).enumerate() {
            rows.read(block * 4_096, out)?;
        }
        let all = coremix::ndarray::Array2::from_shape_vec((n, d), all)?;
        let data = coremix::data::Dense::new(&all)?;
        return fit(&data, keys, arguments);
    }
    match arguments.no_read_ahead {
        true => fit(&Blocks::new(rows)?, keys, arguments),
        false => fit(&Blocks::new(ReadAhead::new(rows))?, keys, arguments),
    }
}

fn fit<F: Float>(
    data: &dyn Data<F>,
    keys: Option<Keys>,
    arguments: &Arguments,
) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let mut algorithm: Algorithm = arguments.algorithm.parse()?;
    algorithm = algorithm.clusters(arguments.clusters).seed(arguments.seed);
    if let Some(size) = arguments.coreset {
        algorithm = algorithm.coreset(size);
    }
    if let Some(bytes) = arguments.memory {
        algorithm = algorithm.memory(bytes);
    }
    let fit = algorithm.boxed::<F>()?.fit(data)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "fitted in {seconds:.2} s: {:?} after {} iterations",
        fit.report.stop, fit.report.iterations
    );
    peak("after the fit");
    let begun = Instant::now();
    let score = fit.model.score(data)?;
    println!("scored in {:.2} s", begun.elapsed().as_secs_f64());
    println!(
        "quantization error {}, log-likelihood {}",
        score.quantization_error, score.log_likelihood
    );
    let Some(path) = &arguments.labels else {
        peak("at the end");
        return Ok(());
    };
    let begun = Instant::now();
    let labels = fit.model.predict(data)?;
    let mut writer = LabelWriter::create(path, keys, &[])?;
    for labels in labels.to_vec().chunks(1 << 16) {
        writer.write(labels, &[])?;
    }
    writer.finish()?;
    println!("labelled in {:.2} s", begun.elapsed().as_secs_f64());
    peak("at the end");
    Ok(())
}

/// The most memory that the process has had so far.
fn peak(when: &str) {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("{} {when}", peak.unwrap_or_default());
    }
}
