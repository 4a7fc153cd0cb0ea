//! Fits of files are those of the same rows in memory, bit for bit.

use crate::common::{below, seeded};
use crate::samples::{Arrow, Lists, Parquet, csv, lists, table};
use arrow_array::{ArrayRef, Float32Array, Float64Array, UInt8Array};
use coremix::data::{Blocks, Source};
use coremix::prelude::*;
use coremix_files::ReadAhead;
use coremix_files::{AnySource, ArrowFile, CsvFile, Number, Options, ParquetFile, open};
use ndarray::Array2;
use std::sync::Arc;

/// Rows around some centres.
pub(crate) fn blobs<T: Number>(n: usize, d: usize) -> Array2<T> {
    let mut rng = seeded(9);
    let mut draw = |n: usize| below(&mut rng, n) as f64;
    let centres = Array2::from_shape_fn((5, d), |_| 20.0 + draw(200));
    Array2::from_shape_fn((n, d), |(i, j)| {
        T::nearest((centres[[i % 5, j]] + draw(15)).floor())
    })
}

fn same_fits<T: Number>(
    source: impl Source<Element = T>,
    rows: &Array2<T>,
    weights: Option<Vec<f64>>,
) {
    let of_memory = weights.clone().map(ndarray::Array1::from);
    let dense = match &of_memory {
        None => Dense::new(rows.view()).unwrap(),
        Some(weights) => Dense::weighted(rows.view(), weights.view()).unwrap(),
    };
    let data = match weights {
        None => Blocks::new(source).unwrap(),
        Some(weights) => Blocks::weighted(source, weights).unwrap(),
    };
    for name in Algorithm::NAMES {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(5);
        let algorithm = algorithm.coreset(200).max_iterations(5);
        let estimator = algorithm.boxed::<T::Float>().unwrap();
        let a = estimator.fit(&data).unwrap();
        let b = estimator.fit(&dense).unwrap();
        assert_eq!(a.model.means(), b.model.means(), "{name}");
        assert_eq!(a.model.variances(), b.model.variances(), "{name}");
        assert_eq!(a.search_labels, b.search_labels, "{name}");
        let labels = a.model.predict(&data).unwrap();
        assert_eq!(labels, b.model.predict(&dense).unwrap(), "{name}");
    }
}

fn columns<T: Number>(
    rows: &Array2<T>,
    of: impl Fn(Vec<T>) -> ArrayRef,
) -> Vec<(&'static str, ArrayRef)> {
    let names = ["a", "b", "c"];
    let columns = rows.columns().into_iter().zip(names);
    columns
        .map(|(column, name)| (name, of(column.to_vec())))
        .collect()
}

fn of_tables<T: Number>(n: usize, of: impl Fn(Vec<T>) -> ArrayRef) {
    let rows = blobs::<T>(n, 3);
    let wide = table(columns(&rows, &of), true);
    let all = rows.iter().copied().collect();
    let list = table(vec![("v", lists(of(all), 3, Lists::Fixed))], true);
    for seed in 0..3 {
        let mut rng = seeded(seed);
        for table in [&wide, &list] {
            let file = Parquet::any(&mut rng).write(table);
            let file = ParquetFile::<T>::over(file, &Options::new()).unwrap();
            same_fits(ReadAhead::new(file), &rows, None);
            let file = Arrow::any(&mut rng).write(table);
            let file = ArrowFile::<T>::over(file, &Options::new()).unwrap();
            same_fits(file, &rows, None);
        }
    }
}

#[test]
fn of_f32() {
    of_tables::<f32>(1_131, |x| Arc::new(Float32Array::from(x)));
}

#[test]
fn of_f64() {
    of_tables::<f64>(700, |x| Arc::new(Float64Array::from(x)));
}

#[test]
fn of_u8() {
    of_tables::<u8>(900, |x| Arc::new(UInt8Array::from(x)));
}

#[test]
fn of_text() {
    let rows = blobs::<f64>(900, 3);
    let known: Vec<Vec<f64>> = rows.columns().into_iter().map(|c| c.to_vec()).collect();
    let file = csv(&["a", "b", "c"], &known, ',', true);
    same_fits(
        CsvFile::<f64>::over(file, &Options::new()).unwrap(),
        &rows,
        None,
    );
}

/// Files on the disk, in the type that they have, with weights.
#[test]
fn of_files_with_weights() {
    let folder = tempfile::tempdir().unwrap();
    let rows = blobs::<f32>(800, 3);
    let weights: Vec<f64> = (0..800).map(|n| f64::from(n % 4) * 0.75).collect();
    let mut all = columns(&rows, |x| Arc::new(Float32Array::from(x)));
    all.push(("w", Arc::new(Float64Array::from(weights.clone()))));
    let table = table(all, false);
    let mut rng = seeded(3);
    for (name, bytes) in [
        ("x.parquet", Parquet::any(&mut rng).write(&table)),
        ("x.feather", Arrow::any(&mut rng).write(&table)),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let opened = open(&path, &Options::new().weight("w")).unwrap();
        assert_eq!(opened.weights.as_ref(), Some(&weights));
        let AnySource::F32(source) = opened.rows else {
            panic!("{name} holds f32");
        };
        same_fits(source, &rows, opened.weights);
    }
}
