//! Clusters a table of Parquet files, in this process or on a cluster: the same model, bit for bit.
//!
//! ```sh
//! cargo run -p coremix-cluster --features ballista --example cluster_parquet -- ROWS/ --columns x,y --key id
//! cargo run -p coremix-cluster --features ballista --example cluster_parquet -- ROWS/ --columns x,y --key id \
//!     --scheduler df://localhost:50050
//! ```
//!
//! Without a table it makes a small one first.

use clap::Parser;
use coremix::Algorithm;
use coremix_cluster::{Connection, Job, Stores, connect};
use datafusion::arrow::array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Parser)]
struct Options {
    /// A Parquet file, a folder of them, or s3://bucket/folder/ (feature `aws`). All executors must reach it.
    table: Option<String>,
    /// The columns, or one column of lists.
    #[arg(long, value_delimiter = ',', default_value = "x,y")]
    columns: Vec<String>,
    /// The column that says which row is which.
    #[arg(long)]
    key: Option<String>,
    /// Which algorithm is fitted to the coreset.
    #[arg(long, default_value = "fast")]
    algorithm: String,
    /// Number of clusters.
    #[arg(long, default_value_t = 25)]
    clusters: usize,
    /// Rows of the coreset, about.
    #[arg(long, default_value_t = 4096)]
    coreset: usize,
    /// The seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The scheduler of a cluster, such as df://localhost:50050. Default: this process.
    #[arg(long)]
    scheduler: Option<String>,
    /// A file from which the job goes on.
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Where the model is saved.
    #[arg(long)]
    model: Option<PathBuf>,
    /// A new folder for the labels, as Parquet. Needs --key.
    #[arg(long)]
    labels: Option<String>,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = match &options.table {
        Some(path) => path.clone(),
        None => made(folder.path()).await?,
    };
    let context = match &options.scheduler {
        Some(url) => connect(url, Connection::default()).await?,
        None => SessionContext::new_with_config_rt(SessionConfig::new(), Stores::new().runtime()?),
    };
    let table = context
        .read_parquet(&path, ParquetReadOptions::default())
        .await?;

    let algorithm = options
        .algorithm
        .parse::<Algorithm>()?
        .clusters(options.clusters);
    let mut job = Job::new(algorithm, &options.columns)
        .coreset(options.coreset)
        .seed(options.seed);
    if let Some(key) = &options.key {
        job = job.key(key);
    }
    if let Some(path) = &options.checkpoint {
        job = job.checkpoint(path);
    }
    let mut show = |progress: coremix_cluster::Progress| {
        println!(
            "iteration {}: free energy {:.6e}",
            progress.iteration, progress.free_energy
        );
    };
    let fitted = job.fit_observed(&table, &mut show).await?;
    println!(
        "{} rows, {} in the coreset; {}",
        fitted.rows, fitted.coreset_rows, fitted.stop
    );
    let score = job.score(&table, &fitted.model).await?;
    println!("quantization error {:.6e}", score.quantization_error);
    println!("log-likelihood {:.6e}", score.log_likelihood);
    if let Some(path) = &options.model {
        fitted.model.save(path)?;
    }
    if let Some(path) = &options.labels {
        job.assign(&table, &fitted.model, path).await?;
    }
    Ok(())
}

/// A table of four files: points around 25 places of a grid.
async fn made(folder: &std::path::Path) -> Result<String> {
    let birch = coremix::datasets::Birch::grid(400).generate::<f32>(1)?;
    let context = SessionContext::new();
    for (file, rows) in birch
        .points
        .axis_chunks_iter(coremix::ndarray::Axis(0), 2_500)
        .enumerate()
    {
        let ids = (0..rows.nrows()).map(|i| (2_500 * file + i) as i64);
        let column = |j| {
            Arc::new(Float32Array::from_iter_values(
                rows.column(j).iter().copied(),
            ))
        };
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(Int64Array::from_iter_values(ids))),
            ("x", column(0)),
            ("y", column(1)),
        ];
        let path = folder.join(format!("{file}.parquet")).display().to_string();
        let table = context.read_batch(RecordBatch::try_from_iter(columns)?)?;
        table
            .write_parquet(&path, DataFrameWriteOptions::new(), None)
            .await?;
    }
    Ok(folder.display().to_string())
}
