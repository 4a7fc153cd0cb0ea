//! The settings of a job.

use crate::coreset::{self, Coreset};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::partial::Found;
use crate::summary::{self, Summary};
use crate::table::Table;
use crate::task::Work;
use coremix::Algorithm;
use datafusion::dataframe::DataFrame;
use std::path::PathBuf;

/// How many components share a row in the iterations over the whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// One: k-means.
    Nearest,
    /// The C' best components.
    Best(usize),
    /// All: EM without approximation.
    All,
}

/// The score of a model on all rows of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// Number of rows.
    pub rows: u64,
    /// The sum of the squared distances to the nearest mean ([E22](coremix::equations#e22)), in the unit of the columns,
    /// squared.
    pub quantization_error: f64,
    /// The log-likelihood over all components, in nats, for densities in the unit of the columns.
    pub log_likelihood: f64,
}

/// A clustering job: the same on a table in the process and on a cluster.
///
/// [`fit`](Self::fit) summarises the table, draws a coreset, fits the algorithm to it in this process, and then runs EM over
/// all rows, whose sums the engine adds. Equal seeds give equal models, bit for bit, however the rows are cut into files,
/// partitions and batches, and whichever engine runs.
///
/// ```
/// use coremix::prelude::*;
/// use coremix_cluster::Job;
/// use datafusion::prelude::{ParquetReadOptions, SessionContext};
/// # use datafusion::arrow::array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
/// # use std::sync::Arc;
/// # #[tokio::main]
/// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
/// # let value = |factor: i32| Float32Array::from_iter_values((0..600).map(|n| (n % 3 * factor) as f32 + 0.001 * n as f32));
/// # let columns: [(&str, ArrayRef); 3] = [
/// #     ("id", Arc::new(Int64Array::from_iter_values(0..600))), ("x", Arc::new(value(5))), ("y", Arc::new(value(-7)))];
/// # let batch = RecordBatch::try_from_iter(columns)?;
/// let context = SessionContext::new(); // or coremix_cluster::connect("df://host:50050", ..)
/// # /*
/// let table = context.read_parquet("rows/", ParquetReadOptions::default()).await?;
/// # */
/// # let table = context.read_batch(batch)?;
/// let algorithm = "fast".parse::<Algorithm>()?.clusters(3);
/// let job = Job::new(algorithm, ["x", "y"]).key("id").coreset(200).seed(42);
/// let fitted = job.fit(&table).await?;
/// assert_eq!(fitted.model.means().dim(), (3, 2));
/// println!("{} iterations, error {:e}", fitted.iterations, job.score(&table, &fitted.model).await?.quantization_error);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) algorithm: Algorithm,
    pub(crate) columns: Vec<String>,
    pub(crate) key: Option<String>,
    pub(crate) coreset: usize,
    pub(crate) seed: u64,
    pub(crate) support: Support,
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
    pub(crate) checkpoint: Option<PathBuf>,
}

impl Job {
    /// A job that fits `algorithm` to the rows of these columns: several columns of numbers, or one column of lists that are
    /// all as long (a List or FixedSizeList).
    ///
    /// Variances must be shared, spherical or diagonal. By default as many components share a row as in the algorithm
    /// ([`Algorithm::members`]).
    #[must_use]
    pub fn new(algorithm: Algorithm, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let support = match algorithm.members() {
            None => Support::All,
            Some(1) => Support::Nearest,
            Some(members) => Support::Best(members),
        };
        Self {
            algorithm,
            columns: columns.into_iter().map(Into::into).collect(),
            key: None,
            coreset: 1 << 15,
            seed: 0,
            support,
            tolerance: 1e-3,
            max_iterations: 50,
            checkpoint: None,
        }
    }

    /// The column that says which row is which: part of the identity by which rows are drawn, and written with their labels.
    /// Default: none.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// About how many rows the coreset has. A table with no more is taken as a whole. Default 32,768.
    #[must_use]
    pub fn coreset(mut self, rows: usize) -> Self {
        self.coreset = rows;
        self
    }

    /// The seed of the coreset, and of the algorithm on it. Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many components share a row in the iterations over the table. Default: see [`new`](Self::new).
    #[must_use]
    pub fn support(mut self, support: Support) -> Self {
        self.support = support;
        self
    }

    /// The largest change of the free energy that counts as settled, per coordinate of every row
    /// ([E19](coremix::equations#e19)). Default 1e-3.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Most EM iterations over the table; with 0 the model is that of the coreset. Default 50.
    #[must_use]
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.max_iterations = iterations;
        self
    }

    /// A file that is written after the fit of the coreset and after each iteration, all of it or nothing. A job that finds
    /// it goes on from there, to the same bits. It is a model file that the core crate loads.
    #[must_use]
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(path.into());
        self
    }

    /// Statistics of the table, from two passes.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is missing, no number, or has values that are none; [`Error::Empty`];
    /// [`Error::Version`], [`Error::Connection`] and [`Error::Engine`] for what happens in a cluster.
    pub async fn summary(&self, table: &DataFrame) -> Result<Summary> {
        let table = self.open(table).await?;
        let range = summary::range(&table).await?;
        summary::summary(&table, &range).await
    }

    /// The coreset alone: three passes, and more where rows have many copies and no key.
    ///
    /// # Errors
    /// As [`summary`](Self::summary).
    pub async fn sample(&self, table: &DataFrame) -> Result<Coreset> {
        let table = self.open(table).await?;
        let range = summary::range(&table).await?;
        let summary = summary::summary(&table, &range).await?;
        coreset::draw(&table, &range, &summary, self.coreset, self.seed).await
    }

    /// Quantization error and log-likelihood of a model on the table: one pass.
    ///
    /// # Errors
    /// As [`summary`](Self::summary); [`Error::Core`] for a model with another number of columns.
    pub async fn score(&self, table: &DataFrame, model: &Model) -> Result<Score> {
        let table = self.open(table).await?;
        table.fits(model, None)?;
        let Found::Sums(sums) = table.pass(Work::Score(model.clone())).await?.found else {
            return Err(Error::other_pass());
        };
        Ok(Score {
            rows: sums.rows(),
            quantization_error: model.quantization_error(&sums),
            log_likelihood: sums.free_energy(),
        })
    }

    /// Writes the key and the likeliest component of every row (`label`) as Parquet, below the folder `path`. A local folder
    /// must not exist yet, and all executors must be able to write it. URLs such as `s3://bucket/labels/` are taken as they
    /// are.
    ///
    /// # Errors
    /// As [`score`](Self::score); [`Error::Core`] without a [`key`](Self::key), and for a folder that exists.
    pub async fn assign(&self, table: &DataFrame, model: &Model, path: &str) -> Result<()> {
        let table = self.open(table).await?;
        // Values that are no numbers are named before anything is written.
        let range = summary::range(&table).await?;
        table.fits(model, Some(range.ranges.len()))?;
        table.write_labels(model, &folder(path)?).await
    }

    /// The table with the columns of this job, and the same version on the other side.
    pub(crate) async fn open(&self, table: &DataFrame) -> Result<Table> {
        let rule = "must be at least 1";
        if self.coreset == 0 {
            return Err(Error::setting("coreset", self.coreset, rule));
        }
        if self.support == Support::Best(0) {
            return Err(Error::setting("support", "Best(0)", rule));
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let rule = "must be a finite number of at least 0";
            return Err(Error::setting("tolerance", self.tolerance, rule));
        }
        let table = Table::of(table, &self.columns, self.key.as_deref())?;
        table.handshake().await?;
        Ok(table)
    }
}

/// The place of files as executors understand it: absolute, and a folder.
fn folder(path: &str) -> Result<String> {
    let mut place = path.to_string();
    if !path.contains("://") {
        let absolute = std::path::absolute(path);
        let absolute = absolute.map_err(|_| Error::setting("path", path, "must be a path"))?;
        if absolute.exists() {
            return Err(Error::setting(
                "path",
                path,
                "is there already: name a new folder for the labels",
            ));
        }
        place = absolute.display().to_string();
    }
    if !place.ends_with('/') {
        place.push('/');
    }
    Ok(place)
}
