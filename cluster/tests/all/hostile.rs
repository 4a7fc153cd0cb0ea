//! Bad tables and bad settings: an error that names what is wrong, never a panic.

use crate::common::*;
use coremix::Algorithm;
use coremix::ndarray::{Array2, array};
use coremix_cluster::{Error, Fitted, Job, Model, Precision, Support};
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

async fn text(job: Job, table: &DataFrame) -> String {
    let result: Result<Fitted, Error> = job.fit(table).await;
    result.unwrap_err().to_string()
}

fn floats(values: Vec<Option<f32>>) -> ArrayRef {
    Arc::new(Float32Array::from(values))
}

#[tokio::test]
async fn columns_that_cannot_be_used_are_named() {
    let good = || floats(vec![Some(1.0), Some(2.0), Some(3.0), Some(9.0)]);
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let table = table(vec![
        ("x", good()),
        ("null", floats(vec![Some(1.0), None, Some(3.0), None])),
        (
            "nan",
            floats(vec![
                Some(f32::NAN),
                Some(1.0),
                Some(f32::INFINITY),
                Some(f32::NEG_INFINITY),
            ]),
        ),
        ("word", words),
        ("Upper.case", good()),
    ]);
    let fit = async |columns: &[&str]| text(small("k-means", columns), &table).await;
    assert!(
        fit(&["x", "missing"])
            .await
            .starts_with("column `missing`: is not in the table, which has x, null")
    );
    assert!(fit(&["x", "word"]).await.contains("column `word`: Utf8"));
    assert!(
        fit(&["x", "null"])
            .await
            .contains("column `null`: 2 NULL and 0 NaN")
    );
    assert!(
        fit(&["nan", "x"])
            .await
            .contains("column `nan`: 0 NULL and 3 NaN or infinite values in 4 rows")
    );
    assert!(
        fit(&["x", "x"])
            .await
            .contains("column `x`: is named twice")
    );
    assert!(fit(&[]).await.contains("columns = none"));
    let keyed = small("k-means", &["x"]).key("nothing");
    assert!(
        text(keyed, &table)
            .await
            .contains("column `nothing`: is not in the table")
    );
    // Names are taken as they are.
    small("k-means", &["x", "Upper.case"])
        .fit(&table)
        .await
        .unwrap();
}

#[tokio::test]
async fn lists_that_cannot_be_used_are_named() {
    let lists = |rows: Vec<Option<Vec<Option<f32>>>>| {
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows));
        table(vec![("v", lists)])
    };
    let row = |x: f32| Some(vec![Some(x), Some(-x)]);
    let fit = async |rows| text(small("k-means", &["v"]), &lists(rows)).await;
    let ragged = fit(vec![row(1.0), Some(vec![Some(1.0)]), row(2.0)]).await;
    assert!(
        ragged.contains("column `v`: lists of 2 and of 1 numbers"),
        "{ragged}"
    );
    let null = fit(vec![row(1.0), None, row(2.0)]).await;
    assert!(null.contains("column `v`: 1 NULL"), "{null}");
    let item = fit(vec![row(1.0), Some(vec![Some(1.0), None]), row(2.0)]).await;
    assert!(item.contains("column `v`: 1 NULL"), "{item}");
    let empty = fit(vec![Some(vec![]), Some(vec![])]).await;
    assert!(empty.contains("no rows"), "{empty}");
    let two = table(vec![
        (
            "v",
            lists(vec![row(1.0)]).collect().await.unwrap()[0]
                .column(0)
                .clone(),
        ),
        ("x", floats(vec![Some(1.0)])),
    ]);
    assert!(
        text(small("k-means", &["v", "x"]), &two)
            .await
            .contains("of lists must be the only column")
    );
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
    let error = text(small("k-means", &["x"]), &table(vec![("x", large)])).await;
    assert!(error.contains("column `x`: a value of 1e200"), "{error}");
}

#[tokio::test]
async fn settings_that_cannot_be() {
    let table = table(vec![(
        "x",
        floats((0..40).map(|i| Some(i as f32)).collect()),
    )]);
    let job = || small("k-means", &["x"]);
    assert!(text(job().coreset(0), &table).await.contains("coreset = 0"));
    assert!(
        text(job().tolerance(f64::NAN), &table)
            .await
            .contains("tolerance = NaN")
    );
    assert!(
        text(job().support(Support::Best(0)), &table)
            .await
            .contains("support")
    );
    for algorithm in ["dp-gmm", "sparsified-gmm"] {
        let error = text(small(algorithm, &["x"]), &table).await;
        assert!(error.contains("share one variance"), "{error}");
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
        matches!(error, Error::Setting { name: "key", .. }),
        "{error}"
    );
}

/// A file that is no checkpoint is left alone.
#[tokio::test]
async fn a_checkpoint_that_is_none() {
    let table = table(vec![(
        "x",
        floats((0..40).map(|i| Some(i as f32)).collect()),
    )]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "mine").unwrap();
    let error = small("k-means", &["x"])
        .checkpoint(&path)
        .fit(&table)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let nowhere = folder.path().join("no/folder.cmx");
    let error = small("k-means", &["x"])
        .checkpoint(nowhere)
        .fit(&table)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
}
