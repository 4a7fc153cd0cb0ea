//! Rows of Parquet, Arrow and CSV files are those that were written, for all types and settings.

use crate::common::{all, below, same_rows, seeded};
use crate::samples::{Arrow, KINDS, Lists, Parquet, compressions, csv, lists, numbers, table};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::DataType;
use coremix::data::Source;
use coremix_files::{ArrowFile, CsvFile, Number, Options, ParquetFile};
use half::f16;
use ndarray::Array2;
use proptest::prelude::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A table of columns of these types, and its rows.
fn columns(kinds: &[DataType], n: usize, nullable: bool, seed: u8) -> (RecordBatch, Array2<f64>) {
    let mut rng = seeded(seed);
    let (mut arrays, mut known): (Vec<(&str, ArrayRef)>, Vec<Vec<f64>>) = (vec![], vec![]);
    for (name, kind) in NAMES.iter().zip(kinds) {
        let (array, values) = numbers(kind, n, &mut rng);
        arrays.push((name, array));
        known.push(values);
    }
    let rows = Array2::from_shape_fn((n, kinds.len()), |(i, j)| known[j][i]);
    (table(arrays, nullable), rows)
}

/// A table of lists, and its rows.
fn of_lists(
    kind: &DataType,
    [n, each]: [usize; 2],
    is: Lists,
    seed: u8,
) -> (RecordBatch, Array2<f64>) {
    let (array, values) = numbers(kind, n * each, &mut seeded(seed));
    let rows = Array2::from_shape_vec((n, each), values).unwrap();
    (table(vec![("v", lists(array, each, is))], true), rows)
}

fn as_type<T: Number>(rows: &Array2<f64>) -> Array2<T> {
    rows.mapv(T::nearest)
}

fn parquet<T: Number>(bytes: &[u8], rows: &Array2<f64>, options: &Options) {
    let file = ParquetFile::<T>::over(bytes.to_vec(), options).unwrap();
    same_rows(&file, &as_type(rows));
}

fn arrow<T: Number>(bytes: &[u8], rows: &Array2<f64>, options: &Options) {
    let file = ArrowFile::<T>::over(bytes.to_vec(), options).unwrap();
    same_rows(&file, &as_type(rows));
}

/// The types that hold all numbers of a column of `KINDS` exactly read them; others are refused.
#[test]
fn types() {
    for (place, kind) in KINDS.iter().enumerate() {
        for lists in [false, true] {
            let (table, rows) = match lists {
                false => columns(std::slice::from_ref(kind), 230, true, place as u8),
                true => of_lists(kind, [80, 3], Lists::Small, place as u8),
            };
            let options = Options::new();
            let bytes = Parquet::any(&mut seeded(place as u8)).write(&table);
            let ipc = Arrow::any(&mut seeded(place as u8)).write(&table);
            parquet::<f64>(&bytes, &rows, &options);
            arrow::<f64>(&ipc, &rows, &options);
            let exact = |is: bool, name: &str, parquet: coremix::Result<()>, arrow| {
                for found in [parquet, arrow] {
                    assert_eq!(found.is_ok(), is, "{kind} as {name}");
                    if let Err(error) = found {
                        assert!(error.to_string().contains(name), "{error}");
                    }
                }
            };
            let opened = |options: &Options| {
                let a = ParquetFile::<f32>::over(bytes.clone(), options).map(|_| ());
                (a, ArrowFile::<f32>::over(ipc.clone(), options).map(|_| ()))
            };
            let (a, b) = opened(&options);
            exact(place < 6, "f32", a, b);
            if place < 6 {
                parquet::<f32>(&bytes, &rows, &options);
                arrow::<f32>(&ipc, &rows, &options);
            }
            // Rounded, where that was asked for.
            parquet::<f32>(&bytes, &rows, &options.clone().rounded());
            arrow::<f32>(&ipc, &rows, &options.clone().rounded());
            let a = ParquetFile::<u8>::over(bytes.clone(), &options.clone().rounded()).map(|_| ());
            let b = ArrowFile::<u8>::over(ipc.clone(), &options.clone().rounded()).map(|_| ());
            exact(place == 0, "u8", a, b);
            if place == 0 {
                parquet::<u8>(&bytes, &rows, &options);
                arrow::<u8>(&ipc, &rows, &options);
            }
            let a = ParquetFile::<i8>::over(bytes.clone(), &options).map(|_| ());
            let b = ArrowFile::<i8>::over(ipc.clone(), &options).map(|_| ());
            exact(*kind == DataType::Int8, "i8", a, b);
            if *kind == DataType::Int8 {
                parquet::<i8>(&bytes, &rows, &options);
                arrow::<i8>(&ipc, &rows, &options);
            }
            let short = matches!(kind, DataType::UInt8 | DataType::Int8 | DataType::Float16);
            let a = ParquetFile::<f16>::over(bytes.clone(), &options).map(|_| ());
            let b = ArrowFile::<f16>::over(ipc.clone(), &options).map(|_| ());
            exact(short, "f16", a, b);
            if short {
                parquet::<f16>(&bytes, &rows, &options);
                arrow::<f16>(&ipc, &rows, &options);
            }
        }
    }
}

#[test]
fn all_compressions_and_versions() {
    let kinds = [DataType::Float32, DataType::UInt8, DataType::Int16];
    let (table, rows) = columns(&kinds, 1_131, false, 3);
    let (v, of_v) = of_lists(&DataType::Float32, [300, 4], Lists::Fixed, 4);
    for compression in compressions() {
        for second_version in [false, true] {
            for dictionary in [false, true] {
                let how = Parquet {
                    compression,
                    second_version,
                    dictionary,
                    group: 500,
                    page: 90,
                    encoding: None,
                };
                parquet::<f32>(&how.write(&table), &rows, &Options::new());
                parquet::<f32>(&how.write(&v), &of_v, &Options::new());
            }
        }
    }
    for compression in [
        None,
        Some(arrow_ipc::CompressionType::LZ4_FRAME),
        Some(arrow_ipc::CompressionType::ZSTD),
    ] {
        for stream in [false, true] {
            for batch in [100, 10_000] {
                let how = Arrow {
                    compression,
                    stream,
                    batch,
                };
                arrow::<f32>(&how.write(&table), &rows, &Options::new());
                for is in [Lists::Small, Lists::Large, Lists::Fixed] {
                    let (v, of_v) = of_lists(&DataType::Float64, [300, 4], is, 5);
                    arrow::<f64>(&how.write(&v), &of_v, &Options::new());
                    parquet::<f64>(
                        &Parquet::any(&mut seeded(6)).write(&v),
                        &of_v,
                        &Options::new(),
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any types, sizes of row groups, pages and batches, with and without nulls allowed; columns in any order.
    #[test]
    fn any_table(seed: u8, n in 1usize..900, d in 1usize..=5, nullable: bool, each in 1usize..9) {
        let mut rng = seeded(seed);
        let kinds: Vec<DataType> = (0..d).map(|_| KINDS[below(&mut rng, 11)].clone()).collect();
        let (table, rows) = columns(&kinds, n, nullable, seed);
        let mut order: Vec<usize> = (0..d).collect();
        order.rotate_left(below(&mut rng, d));
        let options = Options::new().columns(order.iter().map(|j| NAMES[*j]));
        let rows = rows.select(ndarray::Axis(1), &order);
        let rows = rows.as_standard_layout().to_owned();
        parquet::<f64>(&Parquet::any(&mut rng).write(&table), &rows, &options);
        arrow::<f64>(&Arrow::any(&mut rng).write(&table), &rows, &options);

        let kind = &KINDS[below(&mut rng, 11)];
        let is = [Lists::Small, Lists::Large, Lists::Fixed][below(&mut rng, 3)];
        let (table, rows) = of_lists(kind, [n, each], is, seed);
        parquet::<f64>(&Parquet::any(&mut rng).write(&table), &rows, &Options::new());
        arrow::<f64>(&Arrow::any(&mut rng).write(&table), &rows, &Options::new());
    }

    #[test]
    fn any_text(seed: u8, n in 1usize..5_000, d in 1usize..=5, header: bool, tab: bool) {
        let mut rng = seeded(seed);
        let known: Vec<Vec<f64>> = (0..d).map(|_| numbers(&DataType::Float64, n, &mut rng).1).collect();
        let delimiter = if tab { '\t' } else { ',' };
        let text = csv(&NAMES[..d], &known, delimiter, header);
        let rows = Array2::from_shape_fn((n, d), |(i, j)| known[j][i]);
        let options = Options::new().header(header).delimiter(delimiter as u8);
        let file = CsvFile::<f64>::over(text.clone(), &options).unwrap();
        same_rows(&file, &rows);
        let file = CsvFile::<f32>::over(text, &options).unwrap();
        prop_assert!(all(&file, 99).unwrap() == rows.mapv(|x| x as f32));
    }
}

/// Parts of arrays, as slices are written: offsets do not start at 0.
#[test]
fn parts_of_arrays() {
    for is in [Lists::Small, Lists::Large, Lists::Fixed] {
        let (table, rows) = of_lists(&DataType::Float32, [300, 4], is, 7);
        let rows = rows.slice(ndarray::s![33..270, ..]).to_owned();
        let part = table.slice(33, 237);
        for seed in 0..12 {
            let mut rng = seeded(seed);
            parquet::<f32>(&Parquet::any(&mut rng).write(&part), &rows, &Options::new());
            arrow::<f32>(&Arrow::any(&mut rng).write(&part), &rows, &Options::new());
        }
    }
}

#[test]
fn no_rows() {
    let (table, _) = columns(&[DataType::Float32], 3, true, 1);
    let none = table.slice(0, 0);
    let (a, b) = (
        Parquet::any(&mut seeded(1)).write(&none),
        Arrow::any(&mut seeded(1)).write(&none),
    );
    assert_eq!(
        ParquetFile::<f32>::over(a, &Options::new()).unwrap().len(),
        0
    );
    let none = ArrowFile::<f32>::over(b, &Options::new());
    assert!(none.is_err() || none.unwrap().is_empty());
    assert_eq!(
        CsvFile::<f32>::over(b"x,y\n".to_vec(), &Options::new())
            .unwrap()
            .len(),
        0
    );
}
