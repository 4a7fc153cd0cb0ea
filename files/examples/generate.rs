//! Writes rows around random centres to a file, as large as asked for, in little memory.
//!
//! ```text
//! cargo run --release -p coremix-files --example generate -- points.parquet --rows 20000000 --columns 16
//! ```
//!
//! The name says the format: `.parquet` (f32), `.npy` (f32), or `.npy` of u8 with `--bytes`. Equal arguments give equal
//! files.

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::Field;
use clap::Parser;
use coremix::stage::Rng;
use coremix_files::NpyWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Writes rows around random centres.
#[derive(Parser)]
struct Arguments {
    /// The file: .parquet or .npy.
    file: PathBuf,
    /// Number of rows.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Number of columns.
    #[arg(long, default_value_t = 16)]
    columns: usize,
    /// Number of clusters.
    #[arg(long, default_value_t = 1_000)]
    clusters: usize,
    /// Seed of the rows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes u8 to .npy.
    #[arg(long)]
    bytes: bool,
    /// Writes lists to Parquet, in one column.
    #[arg(long)]
    lists: bool,
}

/// Rows that are made at once.
const BLOCK: usize = 8_192;

/// Rows around centres.
struct Rows {
    rng: Rng,
    columns: usize,
    centres: Vec<f32>,
}

impl Rows {
    fn new(arguments: &Arguments) -> Self {
        let mut rng = Rng::from_seed(arguments.seed);
        let numbers = arguments.clusters.max(1) * arguments.columns;
        let centres = (0..numbers).map(|_| rng.uniform() as f32 * 256.0).collect();
        Self {
            rng,
            columns: arguments.columns,
            centres,
        }
    }

    fn block(&mut self, rows: usize) -> Vec<f32> {
        let clusters = self.centres.len() / self.columns;
        let mut block = Vec::with_capacity(rows * self.columns);
        for _ in 0..rows {
            let cluster = ((self.rng.uniform() * clusters as f64) as usize).min(clusters - 1);
            let centre = &self.centres[cluster * self.columns..][..self.columns];
            let rng = &mut self.rng;
            block.extend(centre.iter().map(|x| x + 8.0 * rng.normal() as f32));
        }
        block
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.columns == 0 {
        return Err("--columns must be at least 1".into());
    }
    let rows = Rows::new(&arguments);
    match arguments
        .file
        .extension()
        .and_then(|ending| ending.to_str())
    {
        Some("npy") if arguments.bytes => npy(&arguments, rows, |x| x.clamp(0.0, 255.0) as u8),
        Some("npy") => npy(&arguments, rows, |x| x),
        Some("parquet") => parquet(&arguments, rows),
        _ => Err("the file must end in .parquet or .npy".into()),
    }
}

/// The rows of each block.
fn blocks(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows)
        .step_by(BLOCK)
        .map(move |first| BLOCK.min(rows - first))
}

fn npy<T: coremix_files::NpyNumber>(
    arguments: &Arguments,
    mut rows: Rows,
    number: impl Fn(f32) -> T,
) -> Result<(), Box<dyn Error>> {
    let mut writer = NpyWriter::<T>::rows(&arguments.file, arguments.columns)?;
    for count in blocks(arguments.rows) {
        let block: Vec<T> = rows.block(count).into_iter().map(&number).collect();
        writer.write(&block)?;
    }
    Ok(writer.finish()?)
}

fn parquet(arguments: &Arguments, mut rows: Rows) -> Result<(), Box<dyn Error>> {
    let d = arguments.columns;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(1 << 20))
        .build();
    let batch = |first: usize, block: Vec<f32>| {
        let n = block.len() / d;
        let id: ArrayRef = Arc::new(Int64Array::from_iter_values(
            (first..first + n).map(|i| i as i64),
        ));
        let mut columns = vec![("id".to_owned(), id)];
        if arguments.lists {
            let item = Arc::new(Field::new_list_field(
                arrow_schema::DataType::Float32,
                false,
            ));
            let values = Arc::new(Float32Array::from(block));
            let list = FixedSizeListArray::try_new(item, d as i32, values, None)?;
            columns.push(("v".into(), Arc::new(list)));
        } else {
            for j in 0..d {
                let column = block.iter().skip(j).step_by(d).copied();
                columns.push((
                    format!("x{j}"),
                    Arc::new(Float32Array::from_iter_values(column)),
                ));
            }
        }
        let columns = columns
            .into_iter()
            .map(|(name, array)| (name, array, false));
        RecordBatch::try_from_iter_with_nullable(columns)
    };
    let schema = batch(0, rows.block(0))?.schema();
    let file = File::create(&arguments.file)?;
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties))?;
    let mut first = 0;
    for count in blocks(arguments.rows) {
        writer.write(&batch(first, rows.block(count))?)?;
        first += count;
    }
    writer.close()?;
    Ok(())
}
