//! Columns that hold numbers in other clothes, and columns that are left out unless they are asked for.

use crate::common::{all, seeded};
use crate::samples::{Arrow, Lists, Parquet, lists};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{
    ArrayRef, Decimal32Array, Decimal64Array, Decimal128Array, Decimal256Array,
    DurationNanosecondArray, Float32Array, Int64Array, PrimitiveArray, RecordBatch, StringArray,
};
use arrow_buffer::i256;
use coremix::data::Source;
use coremix_files::{AnySource, ArrowFile, ElementType, Options, ParquetFile, open};
use std::sync::Arc;

fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter(columns.to_vec()).unwrap()
}

/// The numbers that a table becomes as Arrow and as Parquet.
fn read(table: &RecordBatch, options: &Options) -> [Result<Vec<f64>, String>; 2] {
    let rows = |source: coremix::Result<Box<dyn Source<Element = f64>>>| {
        let source = source.map_err(|error| error.to_string())?;
        let rows = all(&*source, 3).map_err(|error| error.to_string())?;
        Ok(rows.into_iter().collect())
    };
    let arrow = Arrow::any(&mut seeded(1)).write(table);
    let parquet = Parquet::any(&mut seeded(1)).write(table);
    let arrow = ArrowFile::over(arrow, options).map(|file| Box::new(file) as _);
    let parquet = ParquetFile::over(parquet, options).map(|file| Box::new(file) as _);
    [rows(arrow), rows(parquet)]
}

fn decimals<T: ArrowPrimitiveType>(array: PrimitiveArray<T>) -> ArrayRef {
    Arc::new(array)
}

#[test]
fn decimals_are_the_nearest_numbers() {
    let stored: [i128; 6] = [0, 1, -1, 123_456_789, -999_999_999, 10];
    let of = |digits: i32| stored.map(|x| x as f64 / 10f64.powi(digits)).to_vec();
    let small = || stored.map(|x| x as i32).to_vec();
    for digits in [0i8, 1, 2, 9] {
        let columns = [
            decimals(
                Decimal32Array::from(small())
                    .with_precision_and_scale(9, digits)
                    .unwrap(),
            ),
            decimals(
                Decimal64Array::from(stored.map(|x| x as i64).to_vec())
                    .with_precision_and_scale(18, digits)
                    .unwrap(),
            ),
            decimals(
                Decimal128Array::from(stored.to_vec())
                    .with_precision_and_scale(38, digits)
                    .unwrap(),
            ),
            decimals(
                Decimal256Array::from(stored.map(i256::from_i128).to_vec())
                    .with_precision_and_scale(76, digits)
                    .unwrap(),
            ),
        ];
        for column in columns {
            for found in read(&table(&[("price", column)]), &Options::new()) {
                assert_eq!(found, Ok(of(digits.into())));
            }
        }
    }
    // Decimals without digits after the point are integers: up to 2^53.
    for large in [(1 << 53) + 1, i128::from(i64::MAX) * 9] {
        let column = Decimal128Array::from(vec![1, 1 << 53, large]);
        let column = decimals(column.with_precision_and_scale(38, 0).unwrap());
        for found in read(&table(&[("n", column)]), &Options::new()) {
            let error = found.unwrap_err();
            assert!(
                error.contains("column \"n\", row 2: ") && error.contains("2^53"),
                "{error}"
            );
        }
    }
    let column = Decimal128Array::from(vec![Some(5), None]);
    for found in read(&table(&[("n", decimals(column))]), &Options::new()) {
        let error = found.unwrap_err();
        assert!(error.contains("column \"n\", row 1: a null"), "{error}");
    }
    // Vectors of them.
    let column = Decimal128Array::from(stored.to_vec());
    let column = column.with_precision_and_scale(38, 3).unwrap();
    for is in [Lists::Small, Lists::Large, Lists::Fixed] {
        let lists = lists(decimals(column.clone()), 2, is);
        for found in read(&table(&[("v", lists)]), &Options::new()) {
            assert_eq!(found, Ok(of(3)));
        }
    }
}

/// Durations are read where they are asked for; the numbers of the rows too.
#[test]
fn columns_that_are_read_if_they_are_asked_for() {
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
    let count = |from: i64| Arc::new(Int64Array::from_iter_values(from..from + 3)) as ArrayRef;
    let took: ArrayRef = Arc::new(DurationNanosecondArray::from(vec![5, 6, 7]));
    let index = "__index_level_0__";
    for (names, at) in [
        (["x", "y", index], 2),
        ([index, "x", "y"], 0),
        (["Unnamed: 0", "x", "y"], 0),
        (["", "x", "y"], 0),
        (["x", "took", "y"], 1),
    ] {
        let columns = names.map(|name| match name {
            "x" => ("x", x.clone()),
            "y" => ("y", count(10)),
            "took" => ("took", took.clone()),
            name => (name, count(5)),
        });
        let table = table(&columns);
        for found in read(&table, &Options::new()) {
            assert_eq!(
                found,
                Ok(vec![1.0, 10.0, 2.0, 11.0, 3.0, 12.0]),
                "{names:?}"
            );
        }
        for found in read(&table, &Options::new().columns([names[at]])) {
            assert_eq!(found, Ok(vec![5.0, 6.0, 7.0]), "{names:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in [
            ("x.arrow", Arrow::any(&mut seeded(2)).write(&table)),
            ("x.parquet", Parquet::any(&mut seeded(2)).write(&table)),
        ] {
            std::fs::write(folder.path().join(file), bytes).unwrap();
            let opened = open(folder.path().join(file), &Options::new()).unwrap();
            assert_eq!(opened.columns, ["x", "y"]);
            let words = if at == 1 {
                "durations"
            } else {
                "numbers of the rows"
            };
            assert_eq!(opened.not_used, [(names[at].into(), words.into())]);
            assert!(matches!(opened.rows, AnySource::F64(_)));
        }
    }
    // Several of them, as a table has that was written and read again, or whose rows have two numbers.
    for names in [
        ["Unnamed: 0.1", "Unnamed: 0"],
        ["", ""],
        ["__index_level_0__", "__index_level_1__"],
    ] {
        let table = table(&[(names[0], count(5)), (names[1], count(6)), ("x", x.clone())]);
        for found in read(&table, &Options::new()) {
            assert_eq!(found, Ok(vec![1.0, 2.0, 3.0]), "{names:?}");
        }
    }
    // Where there is nothing else, and where another column has no name.
    for found in read(&table(&[("", x.clone())]), &Options::new()) {
        assert_eq!(found, Ok(vec![1.0, 2.0, 3.0]));
    }
    for found in read(
        &table(&[("x", x.clone()), ("", x.clone())]),
        &Options::new(),
    ) {
        assert_eq!(found.unwrap().len(), 6);
    }
    // Text that names rows is text as before.
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    for found in read(&table(&[(index, names), ("x", x)]), &Options::new()) {
        assert_eq!(found, Ok(vec![1.0, 2.0, 3.0]));
    }
}

#[test]
fn messages_name_the_columns_of_lists_and_what_others_hold() {
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let v = lists(Arc::new(Float32Array::from(vec![1.0; 4])), 2, Lists::Small);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let all = table(&[("x", x), ("v", v.clone()), ("w", v), ("name", text)]);
    let none = Options::new().element(ElementType::F64);
    for (options, part) in [
        (
            none.clone(),
            "has columns of lists (\"v\", \"w\") and others",
        ),
        (
            none.clone().columns(["name"]),
            "column \"name\" does not hold numbers, but text",
        ),
    ] {
        for found in read(&all, &options) {
            let error = found.unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
    for bytes in [vec![], b"ARROW1".to_vec()] {
        let part = if bytes.is_empty() {
            "an empty file"
        } else {
            "too early"
        };
        let error = ArrowFile::<f64>::over(bytes, &none)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = ParquetFile::<f64>::over(vec![], &none)
        .unwrap_err()
        .to_string();
    assert!(error.contains("an empty file"), "{error}");
}
