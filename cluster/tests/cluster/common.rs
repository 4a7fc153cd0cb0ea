//! Tables for the tests.

use coremix::Algorithm;
use coremix::datasets::Birch;
use coremix::ndarray::{Array2, Axis, s};
use coremix_cluster::{Fitted, Job};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float32Array, Float64Array, Int64Array,
    ListArray, RecordBatch,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::dataframe::{DataFrame, DataFrameWriteOptions};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::path::Path;
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// How the columns of a table are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Layout {
    Wide,
    WideDouble,
    List,
    FixedSizeList,
}

/// Points around the 25 places of a grid, `per` each, and two more columns.
pub(crate) fn points(per: usize) -> Array2<f32> {
    let birch = Birch::grid(per).generate::<f32>(3).unwrap().points;
    let mut points = Array2::zeros((birch.nrows(), 4));
    points.slice_mut(s![.., ..2]).assign(&birch);
    for (mut to, from) in points.outer_iter_mut().zip(birch.outer_iter()) {
        to[2] = 1_000.0 + from[0] * 0.5;
        to[3] = -0.01 * from[1];
    }
    points
}

/// The columns of a table of these points: an identifier and the points.
pub(crate) fn batch(points: &Array2<f32>, first: usize, layout: Layout) -> RecordBatch {
    let (n, d) = points.dim();
    let ids = (first..first + n).map(|id| id as i64);
    let mut columns: Vec<(String, ArrayRef)> =
        vec![("id".into(), Arc::new(Int64Array::from_iter_values(ids)))];
    let flat = || Arc::new(Float32Array::from_iter_values(points.iter().copied()));
    let item = || Arc::new(Field::new_list_field(DataType::Float32, true));
    match layout {
        Layout::Wide | Layout::WideDouble => {
            for (j, column) in points.axis_iter(Axis(1)).enumerate() {
                let column: ArrayRef = match layout {
                    Layout::Wide => {
                        Arc::new(Float32Array::from_iter_values(column.iter().copied()))
                    }
                    _ => Arc::new(Float64Array::from_iter_values(
                        column.iter().map(|x| f64::from(*x)),
                    )),
                };
                columns.push((format!("f{j}"), column));
            }
        }
        Layout::List => {
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(d, n));
            columns.push((
                "v".into(),
                Arc::new(ListArray::new(item(), offsets, flat(), None)),
            ));
        }
        Layout::FixedSizeList => {
            let list = FixedSizeListArray::new(item(), d as i32, flat(), None);
            columns.push(("v".into(), Arc::new(list)));
        }
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes the points as `files` Parquet files in a new folder.
pub(crate) async fn write(folder: &Path, points: &Array2<f32>, files: usize, layout: Layout) {
    let context = SessionContext::new();
    let rows = points.nrows().div_ceil(files);
    for (file, part) in points.axis_chunks_iter(Axis(0), rows).enumerate() {
        let batch = batch(&part.to_owned(), file * rows, layout);
        let path = folder.join(format!("{file}.parquet"));
        let table = context.read_batch(batch).unwrap();
        let written =
            table.write_parquet(path.to_str().unwrap(), DataFrameWriteOptions::new(), None);
        written.await.unwrap();
    }
}

/// The table of a folder, cut into partitions and batches of some size.
pub(crate) async fn open(folder: &Path, partitions: usize, batch_size: usize) -> DataFrame {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch_size)
        .with_repartition_file_min_size(1);
    read(&SessionContext::new_with_config(config), folder).await
}

pub(crate) async fn read(context: &SessionContext, folder: &Path) -> DataFrame {
    let path = format!("{}/", folder.display());
    context
        .read_parquet(path, ParquetReadOptions::default())
        .await
        .unwrap()
}

/// A table in memory.
pub(crate) fn in_memory(batch: RecordBatch) -> DataFrame {
    SessionContext::new().read_batch(batch).unwrap()
}

/// A job with 25 clusters on the wide columns.
pub(crate) fn job(algorithm: &str) -> Job {
    let algorithm = algorithm.parse::<Algorithm>().unwrap().clusters(25);
    Job::new(algorithm, ["f0", "f1", "f2", "f3"])
        .coreset(600)
        .seed(7)
}

/// The job on a column of lists.
pub(crate) fn job_of_lists(algorithm: &str) -> Job {
    let algorithm = algorithm.parse::<Algorithm>().unwrap().clusters(25);
    Job::new(algorithm, ["v"]).coreset(600).seed(7)
}

/// All bits of a fit, those of the model as a hash: the numbers are too many to print.
pub(crate) fn bits(fitted: &Fitted) -> (u64, Vec<u64>, usize) {
    let model = XxHash3_64::oneshot(&postcard::to_allocvec(&fitted.model).unwrap());
    let energies = fitted.free_energies.iter().map(|f| f.to_bits()).collect();
    (model, energies, fitted.coreset_rows)
}

/// The labels below a folder, by identifier.
pub(crate) async fn labels(folder: &Path) -> Vec<u32> {
    let batches = read(&SessionContext::new(), folder)
        .await
        .collect()
        .await
        .unwrap();
    let mut labels = Vec::new();
    for batch in &batches {
        use datafusion::arrow::datatypes::{Int64Type, UInt32Type};
        let ids = batch
            .column_by_name("id")
            .unwrap()
            .as_primitive::<Int64Type>();
        let label = batch
            .column_by_name("label")
            .unwrap()
            .as_primitive::<UInt32Type>();
        assert_eq!(label.null_count(), 0);
        labels.extend(
            ids.values()
                .iter()
                .copied()
                .zip(label.values().iter().copied()),
        );
    }
    labels.sort_unstable();
    assert!(
        (0..).zip(&labels).all(|(i, label)| label.0 == i),
        "every row once"
    );
    labels.into_iter().map(|label| label.1).collect()
}
