//! Jobs in the process: the same bits, whatever the partitioning.

use crate::common::*;
use coremix::Stop;
use coremix::data::Dense;
use coremix::{Mixture, load_model};
use coremix_cluster::{Error, Stores, Support};
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ColumnarValue, Volatility};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext, create_udf, ident};
use object_store::ObjectStoreExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_files_and_batches_do_not_matter() {
    let points = points(80);
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    write(&place("one"), &points, 1, Layout::Wide).await;
    write(&place("five"), &points, 5, Layout::Wide).await;
    write(&place("list"), &points, 3, Layout::List).await;
    write(&place("fixed"), &points, 2, Layout::FixedSizeList).await;
    for algorithm in ["fast", "k-means", "vc-gmm", "gmm"] {
        let job = job(algorithm);
        let first = job.fit(&open(&place("one"), 1, 8192).await).await.unwrap();
        assert_eq!(first.rows, 2_000);
        assert!(first.iterations > 0 && first.free_energies.len() == first.iterations + 1);
        for (name, partitions, batch_size) in [("one", 2, 333), ("five", 2, 8192), ("five", 7, 100)]
        {
            let table = open(&place(name), partitions, batch_size).await;
            let fitted = job.fit(&table).await.unwrap();
            assert_eq!(
                bits(&fitted),
                bits(&first),
                "{algorithm} {name} {partitions}"
            );
        }
        for (name, partitions) in [("list", 2), ("fixed", 7)] {
            let table = open(&place(name), partitions, 256).await;
            let fitted = job_of_lists(algorithm).fit(&table).await.unwrap();
            assert_eq!(
                bits(&fitted),
                bits(&first),
                "{algorithm} {name} {partitions}"
            );
        }
        let rising = first
            .free_energies
            .windows(2)
            .all(|f| f[1] >= f[0] - 1e-6 * f[0].abs());
        assert!(rising, "{algorithm}: {:?}", first.free_energies);
        let other = job
            .clone()
            .seed(8)
            .fit(&open(&place("one"), 1, 8192).await)
            .await
            .unwrap();
        assert_ne!(bits(&other), bits(&first), "another seed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_on_from_its_checkpoint_to_the_same_bits() {
    let points = points(40);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &points, 3, Layout::Wide).await;
    for algorithm in ["k-means", "vc-gmm"] {
        let job = job(algorithm).tolerance(1e-7);
        let whole = job.fit(&open(folder.path(), 2, 500).await).await.unwrap();
        assert!(whole.iterations >= 3, "{algorithm} {}", whole.iterations);
        let path = folder.path().join(format!("{algorithm}.cmx"));
        let parts = job.clone().checkpoint(&path);
        for stop in 0..3 {
            let table = open(folder.path(), stop + 1, 700).await;
            let fitted = parts
                .clone()
                .max_iterations(stop)
                .fit(&table)
                .await
                .unwrap();
            assert_eq!(
                (fitted.iterations, fitted.stop),
                (stop, Stop::MaxIterations)
            );
        }
        let fitted = parts.fit(&open(folder.path(), 7, 90).await).await.unwrap();
        assert_eq!(bits(&fitted), bits(&whole), "{algorithm}");
        // The file is a model file of the core.
        let loaded = load_model::<f32>(&path).unwrap();
        assert_eq!(loaded.means().mapv(f64::from), fitted.model.means());

        let other = parts
            .clone()
            .seed(9)
            .fit(&open(folder.path(), 1, 90).await)
            .await;
        let error = other.unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scores_and_labels_are_those_of_the_core() {
    let points = points(60);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("rows");
    write(&place, &points, 4, Layout::Wide).await;
    let data = Dense::new(points.view()).unwrap();
    for algorithm in ["fast", "gmm"] {
        let job = job(algorithm).key("id");
        let fitted = job.fit(&open(&place, 2, 400).await).await.unwrap();
        let coremix_cluster::Model::Single(model) = &fitted.model else {
            panic!("f32 columns give an f32 model");
        };
        let model: &dyn Mixture<f32> = model;
        let expected = model.score(&data).unwrap();
        let score = job
            .score(&open(&place, 7, 100).await, &fitted.model)
            .await
            .unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs();
        assert!(
            near(score.quantization_error, expected.quantization_error),
            "{score:?}"
        );
        assert!(
            near(score.log_likelihood, expected.log_likelihood),
            "{score:?}"
        );
        if algorithm == "gmm" {
            let last = fitted.free_energies.last().unwrap();
            assert_eq!(score.log_likelihood.to_bits(), last.to_bits());
        }
        let to = folder.path().join(format!("labels-{algorithm}"));
        let path = to.to_str().unwrap();
        job.assign(&open(&place, 3, 100).await, &fitted.model, path)
            .await
            .unwrap();
        assert_eq!(labels(&to).await, expected.labels.to_vec());
        let again = job
            .assign(&open(&place, 3, 100).await, &fitted.model, path)
            .await;
        assert!(again.unwrap_err().to_string().starts_with("path = "));
    }
}

/// A score reads every row once. A fit does so for the range, the moments, the coreset, and each E-step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passes_read_every_row_once() {
    let (points, read) = (points(20), Arc::new(AtomicUsize::new(0)));
    let count = read.clone();
    let counted = move |column: &[ColumnarValue]| {
        let [ColumnarValue::Array(rows)] = column else {
            panic!("a column of rows");
        };
        count.fetch_add(rows.len(), Ordering::Relaxed);
        Ok(column[0].clone())
    };
    let (float, volatile) = (DataType::Float32, Volatility::Volatile);
    let counted = create_udf(
        "counted",
        vec![float.clone()],
        float,
        volatile,
        Arc::new(counted),
    );
    let columns = ["f0", "f1", "f2"].map(ident);
    let last = counted.call(vec![ident("f3")]).alias("f3");
    let table = in_memory(batch(&points, 0, Layout::Wide));
    let table = table.select(columns.into_iter().chain([last])).unwrap();
    let job = job("gmm");
    let fitted = job.fit(&table).await.unwrap();
    let passes = 3 + fitted.iterations + 1;
    assert_eq!(read.swap(0, Ordering::Relaxed), passes * points.nrows());
    job.score(&table, &fitted.model).await.unwrap();
    assert_eq!(read.load(Ordering::Relaxed), points.nrows());
}

/// Any object store behind the same call: here one in memory, under the URL of a bucket.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_in_object_stores_are_tables() {
    let points = points(20);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &points, 2, Layout::Wide).await;
    let store = Arc::new(object_store::memory::InMemory::new());
    for file in 0..2 {
        let bytes = std::fs::read(folder.path().join(format!("{file}.parquet"))).unwrap();
        let path = object_store::path::Path::from(format!("rows/{file}.parquet"));
        store.put(&path, bytes.into()).await.unwrap();
    }
    let runtime = Stores::new().runtime().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    context.register_object_store(&url::Url::parse("s3://bucket").unwrap(), store);
    let table = context
        .read_parquet("s3://bucket/rows/", ParquetReadOptions::default())
        .await
        .unwrap();
    let local = open(folder.path(), 1, 8192).await;
    let job = job("fast").support(Support::Nearest).key("id");
    let fitted = job.fit(&table).await.unwrap();
    assert_eq!(bits(&fitted), bits(&job.fit(&local).await.unwrap()));
    // Labels go there as well.
    job.assign(&table, &fitted.model, "s3://bucket/labels/")
        .await
        .unwrap();
    let written = context
        .read_parquet("s3://bucket/labels/", ParquetReadOptions::default())
        .await
        .unwrap();
    assert_eq!(written.count().await.unwrap(), 500);
    // Without the feature, or without a bucket of that name, an error and no panic.
    let unknown = context
        .read_parquet("gs://bucket/rows/", ParquetReadOptions::default())
        .await;
    assert!(unknown.unwrap_err().to_string().contains("no such store"));
}
