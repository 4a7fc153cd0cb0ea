//! Bad tables and bad settings: an error that names what is wrong, never a panic.

use crate::common::*;
use coremix::Algorithm;
use coremix::families::Covariance;
use coremix::ndarray::{Array2, array};
use coremix_cluster::{Error, Job, Model, Precision, Support};
use datafusion::arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::Float32Type;
use datafusion::dataframe::DataFrame;
use std::sync::Arc;

fn table(columns: Vec<(&str, ArrayRef)>) -> DataFrame {
    in_memory(RecordBatch::try_from_iter(columns).unwrap())
}

fn small(algorithm: &str, columns: &[&str]) -> Job {
    let algorithm = algorithm.parse::<Algorithm>().unwrap().clusters(2);
    Job::new(algorithm, columns.iter().copied())
}

/// The fit ends with an error of these words.
async fn refused(job: Job, table: &DataFrame, words: &str) {
    let error = job.fit(table).await.unwrap_err().to_string();
    assert!(error.contains(words), "{error}, and not {words}");
}

fn floats(values: Vec<Option<f32>>) -> ArrayRef {
    Arc::new(Float32Array::from(values))
}

#[tokio::test]
async fn columns_that_cannot_be_used_are_named() {
    let good = || floats(vec![Some(1.0), Some(2.0), Some(3.0), Some(9.0)]);
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let nan = [f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY];
    let table = table(vec![
        ("x", good()),
        ("null", floats(vec![Some(1.0), None, Some(3.0), None])),
        ("nan", floats(nan.map(Some).to_vec())),
        ("word", words),
        ("Upper.case", good()),
    ]);
    let missing = "column `missing`: is not in the table, which has x, null";
    let infinite = "column `nan`: 0 NULL and 3 NaN or infinite values in 4 rows";
    for (columns, words) in [
        (&["x", "missing"][..], missing),
        (&["x", "word"], "column `word`: Utf8"),
        (&["x", "null"], "column `null`: 2 NULL and 0 NaN"),
        (&["x", "null"], "the command takes them with --missing"),
        (&["x", "word"], "--categories"),
        (&["nan", "x"], infinite),
        (&["x", "x"], "column `x`: is named twice"),
        (&[], "columns = none"),
    ] {
        refused(small("k-means", columns), &table, words).await;
    }
    let keyed = small("k-means", &["x"]).key("nothing");
    refused(keyed, &table, "column `nothing`: is not in the table").await;
    // Without a pass before it, a score says the same.
    let model = Model::from_parameters(Precision::Single, array![[0.0, 1.0]].view(), 1.0).unwrap();
    let score = small("k-means", &["nan", "x"]).score(&table, &model).await;
    assert!(score.unwrap_err().to_string().contains(infinite));
    // Names are taken as they are.
    let job = small("k-means", &["x", "Upper.case"]);
    job.fit(&table).await.unwrap();
}

#[tokio::test]
async fn lists_that_cannot_be_used_are_named() {
    let lists = |rows: Vec<Option<Vec<Option<f32>>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
    };
    let row = |x: f32| Some(vec![Some(x), Some(-x)]);
    let one = |x| Some(vec![x]);
    for (middle, words) in [
        (one(Some(1.0)), "column `v`: lists of 1 and of 2 numbers"),
        (one(Some(1.0)), "sparse rows of .npz and svmlight files"),
        (None, "column `v`: 1 NULL"),
        (Some(vec![Some(1.0), None]), "column `v`: 1 NULL"),
    ] {
        let table = table(vec![("v", lists(vec![row(1.0), middle, row(2.0)]))]);
        refused(small("k-means", &["v"]), &table, words).await;
    }
    let empty = table(vec![("v", lists(vec![Some(vec![]), Some(vec![])]))]);
    refused(small("k-means", &["v"]), &empty, "no rows").await;
    let two = vec![("v", lists(vec![row(1.0)])), ("x", floats(vec![Some(1.0)]))];
    let words = "of lists must be the only column";
    refused(small("k-means", &["v", "x"]), &table(two), words).await;
}

#[tokio::test]
async fn tables_that_are_empty_or_odd() {
    let none = table(vec![("x", floats(vec![]))]);
    assert!(matches!(
        small("k-means", &["x"]).fit(&none).await,
        Err(Error::Empty)
    ));
    assert!(matches!(
        small("k-means", &["x"]).summary(&none).await,
        Err(Error::Empty)
    ));

    // Fewer rows than clusters.
    let one = table(vec![("x", floats(vec![Some(1.0)]))]);
    assert!(matches!(
        small("k-means", &["x"]).fit(&one).await,
        Err(Error::Core(_))
    ));

    // Rows that are all equal, all zero, whole numbers, and of the largest size.
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float32Array::from(vec![3.5; 50])),
        Arc::new(Float64Array::from(vec![0.0; 50])),
        Arc::new(Int64Array::from_iter_values(0..50)),
        Arc::new(Float64Array::from_iter_values(
            (0..50).map(|i| f64::from(i) * 1e148),
        )),
        Arc::new(Float64Array::from_iter_values(
            (0..50).map(|i| f64::from(i) * 1e-300),
        )),
    ];
    for column in columns {
        let table = table(vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..50))),
            ("x", column),
        ]);
        for algorithm in ["k-means", "gmm"] {
            match small(algorithm, &["x"]).key("id").fit(&table).await {
                Ok(fitted) => assert!(fitted.free_energies.iter().all(|f| f.is_finite())),
                Err(error) => assert!(matches!(error, Error::Core(_)), "{error}"),
            }
        }
    }
    let large: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 1e200]));
    let words = "column `x`: a value of 1e200";
    refused(small("k-means", &["x"]), &table(vec![("x", large)]), words).await;
}

/// 40 rows.
fn some_rows() -> DataFrame {
    let x = (0..40).map(|i| Some(i as f32)).collect();
    let y = (0..40).map(|i| Some((i * i % 7) as f32)).collect();
    table(vec![("x", floats(x)), ("y", floats(y))])
}

#[tokio::test]
async fn settings_that_cannot_be() {
    let (table, job) = (some_rows(), || small("k-means", &["x"]));
    refused(job().coreset(0), &table, "coreset = 0").await;
    refused(job().tolerance(f64::NAN), &table, "tolerance = NaN").await;
    refused(job().support(Support::Best(0)), &table, "support").await;
    refused(small("dp-gmm", &["x"]), &table, "Job::sample").await;
    let cosine = "gmm".parse::<Algorithm>().unwrap().clusters(2);
    let cosine = cosine.metric(coremix::Metric::Cosine);
    refused(Job::new(cosine, ["x", "y"]), &table, "must be of Gaussians").await;
    let job_of = |kind: Covariance| {
        let gmm = "gmm".parse::<Algorithm>().unwrap().clusters(2);
        Job::new(gmm.covariance(kind), ["x", "y"])
    };
    use Covariance::{Diagonal, Factors, Full, Spherical, Tied, TiedSpherical};
    for kind in [Full, Tied, Factors(1)] {
        refused(job_of(kind), &table, "a variance per component or column").await;
        refused(job_of(kind), &table, "Job::sample draws a coreset").await;
    }
    for kind in [TiedSpherical, Spherical, Diagonal] {
        job_of(kind).fit(&table).await.unwrap();
    }
    // More than all components is all.
    job().support(Support::Best(99)).fit(&table).await.unwrap();

    let model = Model::from_parameters(Precision::Single, array![[0.0, 1.0]].view(), 1.0).unwrap();
    assert!(matches!(
        job().score(&table, &model).await,
        Err(Error::Core(_))
    ));
    assert!(matches!(
        job().key("x").assign(&table, &model, "x").await,
        Err(Error::Core(_))
    ));
    let model =
        Model::from_parameters(Precision::Single, Array2::zeros((1, 1)).view(), 1.0).unwrap();
    let error = job().assign(&table, &model, "x").await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Core(coremix::Error::Parameter { name: "key", .. })
        ),
        "{error}"
    );
}

/// A file that is no checkpoint is left alone.
#[tokio::test]
async fn a_checkpoint_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "mine").unwrap();
    for path in [path.clone(), folder.path().join("no/folder.cmx")] {
        let job = small("k-means", &["x"]).checkpoint(path);
        let error = job.fit(&some_rows()).await.unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
