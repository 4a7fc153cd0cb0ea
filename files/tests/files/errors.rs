//! Values that cannot be read in files that are not damaged: the error names the file, the column and the row.

use crate::common::seeded;
use crate::samples::{Arrow, Lists, Parquet, lists, table};
use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, LargeListArray,
    ListArray, RecordBatch,
};
use coremix::data::{Blocks, Source};
use coremix_files::{ArrowFile, CsvFile, Options, ParquetFile, Spool};
use std::sync::Arc;

const N: usize = 400;

/// The error of the row 321, of every format that can hold the table; rows before it can be read.
fn wrong(array: ArrayRef, part: &str) {
    wrong_at(array, 321, part);
}

fn wrong_at(array: ArrayRef, row: usize, part: &str) {
    let table = table(vec![("x", array)], true);
    let options = Options::new();
    for seed in 0..8 {
        let mut rng = seeded(seed);
        let file = ParquetFile::<f64>::over(Parquet::any(&mut rng).write(&table), &options);
        check(file.unwrap(), row, part);
        let file = ArrowFile::<f64>::over(Arrow::any(&mut rng).write(&table), &options);
        check(file.unwrap(), row, part);
    }
    let parts = (0..N / 50).map(|i| Ok(table.slice(i * 50, 50)));
    let error = Spool::<f64>::of_batches(parts, &options)
        .unwrap_err()
        .to_string();
    names(&error, &format!("row {row}"), part);
}

fn names(error: &str, row: &str, part: &str) {
    let place = format!("column \"x\", {row}: ");
    assert!(error.contains(&place) && error.contains(part), "{error}");
}

fn check(source: impl Source<Element = f64>, row: usize, part: &str) {
    check_named(source, row, &format!("row {row}"), part);
}

/// Checks the error where it calls the row by another name.
fn check_named(source: impl Source<Element = f64>, row: usize, name: &str, part: &str) {
    let d = source.dim();
    let mut out = vec![0.0; N * d];
    let error = source
        .read(row - 20, &mut out[..60 * d])
        .unwrap_err()
        .to_string();
    names(&error, name, part);
    assert!(error.contains("memory: "), "{error}");
    let last = source.read(row, &mut out[..d]).unwrap_err().to_string();
    names(&last, name, part);
    let error = Blocks::new(source).map(|_| ()).unwrap_err().to_string();
    names(&error, name, part);
}

#[test]
fn nulls() {
    let values = (0..N).map(|i| (i != 321 && i != 350).then_some(i as f32));
    wrong(Arc::new(Float32Array::from_iter(values)), "a null");
    let list = |i: usize| Some(vec![Some(1.0), (i != 321).then_some(2.0), Some(3.0)]);
    let array = ListArray::from_iter_primitive::<Float32Type, _, _>((0..N).map(list));
    wrong(Arc::new(array), "a null");
    let list = |i: usize| (i != 321).then(|| vec![Some(1.0), Some(2.0)]);
    let array = LargeListArray::from_iter_primitive::<Float32Type, _, _>((0..N).map(list));
    wrong(Arc::new(array), "a null");
    let array = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>((0..N).map(list), 2);
    wrong(Arc::new(array), "a null");
}

#[test]
fn lists_of_other_lengths() {
    for length in [0, 1, 2, 4, 300] {
        let list = |i: usize| {
            let len = if i == 321 { length } else { 3 };
            Some(vec![Some(1.0); len])
        };
        let array = ListArray::from_iter_primitive::<Float32Type, _, _>((0..N).map(list));
        let part = if length == 0 {
            "list"
        } else {
            "where others have"
        };
        wrong(Arc::new(array), part);
    }
}

#[test]
fn numbers_that_are_none() {
    // Only where it helps is there the advice to allow missing values.
    for (value, what) in [
        (f64::NAN, "a value is NaN: mend it, or allow missing values"),
        (
            f64::INFINITY,
            "a value is infinite, or an integer beyond 2^53: mend it",
        ),
        (
            f64::NEG_INFINITY,
            "a value is infinite, or an integer beyond 2^53: mend it",
        ),
    ] {
        let values = (0..N).map(|i| if i == 321 { value } else { 1.0 });
        let values: Vec<f64> = values.collect();
        wrong(Arc::new(Float64Array::from(values.clone())), what);
        let text: String = values.iter().map(|x| format!("{x}\n")).collect();
        let file = CsvFile::<f64>::over(format!("x\n{text}").into_bytes(), &Options::new());
        check_named(file.unwrap(), 321, "line 323", "NaN or infinite");
    }
    for value in [(1i64 << 53) + 1, i64::MIN] {
        let values = (0..N).map(|i| if i == 321 { value } else { 1 << 53 });
        wrong(
            Arc::new(Int64Array::from_iter_values(values)),
            "beyond 2^53",
        );
    }
    let values: Vec<f32> = (0..3 * N)
        .map(|i| if i == 3 * 321 + 1 { f32::NAN } else { 1.0 })
        .collect();
    for is in [Lists::Small, Lists::Large, Lists::Fixed] {
        wrong(
            lists(Arc::new(Float32Array::from(values.clone())), 3, is),
            "a value is NaN",
        );
    }
}

/// Where missing values are allowed already, no error says to allow them.
#[test]
fn no_advice_that_was_followed() {
    let x = ndarray::array![[1.0, f64::NAN], [f64::INFINITY, 2.0]];
    let path = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
    ndarray_npy::write_npy(path.path(), &x).unwrap();
    let options = Options::new().missing(coremix_files::Missing::Keep);
    let error = coremix_files::open(path.path(), &options).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("column 0, row 1: a value is infinite"),
        "{text}"
    );
    assert!(!text.contains("allow missing"), "{text}");
}

#[test]
fn text_that_is_no_number() {
    for (field, part) in [
        ("", "an empty field"),
        ("1,5", "is not a number of type f64"),
        ("x", "\"x\" is not a number of type f64"),
        ("1e999", "infinite"),
    ] {
        let row = |i: usize| match i == 321 {
            true => format!("a,\"{field}\"\n"),
            false => format!("b,{i}\n"),
        };
        let text: String = (0..N).map(row).collect();
        let file = CsvFile::<f64>::over(format!("name,x\n{text}").into_bytes(), &Options::new());
        // Below the header.
        check_named(file.unwrap(), 321, "line 323", part);
    }
    let row = |i: usize| {
        if i == 321 {
            "1\n".to_owned()
        } else {
            format!("{i},2\n")
        }
    };
    let text: String = (0..N).map(row).collect();
    let error = CsvFile::<f64>::over(format!("x,y\n{text}").into_bytes(), &Options::new());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("line 323 has 1 fields, where others have 2"),
        "{error}"
    );
    // Lines are counted alike, wherever reading begins.
    for end in ["\n", "\r\n"] {
        let line = |i: usize| match i {
            0 | 2_500 => format!("{i}, {end}"),
            _ => format!("{i},{i}{end}"),
        };
        let text = format!("x,y{end}{}", (0..3_000).map(line).collect::<String>());
        let options = Options::new().columns(["x", "y"]);
        let file = CsvFile::<f64>::over(text.clone().into_bytes(), &options).unwrap();
        for (from, to, line) in [(0, 9, 2), (2_490, 2_501, 2_502), (2_500, 2_501, 2_502)] {
            let error = file.read(from, &mut vec![0.0; 2 * (to - from)]);
            let error = error.unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}:")), "{error}");
        }
        let short = text.replace("7,7", "7");
        let error = CsvFile::<f64>::over(short.into_bytes(), &options).unwrap_err();
        assert!(error.to_string().contains("line 9 has 1 fields"), "{error}");
    }
    // A column that is asked for is read, though most of its fields are empty.
    let text = "name,x\na,1\nb,\nc,\nd,\n";
    let options = Options::new().columns(["x"]);
    let file = CsvFile::<f64>::over(text.as_bytes().to_vec(), &options).unwrap();
    let error = file.read(0, &mut [0.0; 4]).unwrap_err().to_string();
    assert!(
        error.contains("column \"x\", line 3: an empty field"),
        "{error}"
    );
    let file = CsvFile::<u8>::over(b"x\n255\n256\n".to_vec(), &Options::new()).unwrap();
    let error = file.read(0, &mut [0; 2]).unwrap_err().to_string();
    assert!(
        error.contains("\"256\" is not a number of type u8"),
        "{error}"
    );
}

#[test]
fn columns_that_are_not_there() {
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0; N]));
    let table: RecordBatch = table(vec![("x", x.slice(0, N))], false);
    let (a, b) = (
        Parquet::any(&mut seeded(1)).write(&table),
        Arrow::any(&mut seeded(1)).write(&table),
    );
    for (options, part) in [
        (
            Options::new().columns(["y"]),
            "no column \"y\"; it has text, x, texts",
        ),
        (
            Options::new().columns(["text"]),
            "column \"text\" does not hold numbers",
        ),
        (
            Options::new().columns(["texts"]),
            "column \"texts\" does not hold numbers",
        ),
        (Options::new().weight("w"), "no column \"w\""),
    ] {
        let errors = [
            ParquetFile::<f64>::over(a.clone(), &options)
                .map(|_| ())
                .unwrap_err(),
            ArrowFile::<f64>::over(b.clone(), &options)
                .map(|_| ())
                .unwrap_err(),
            Spool::<f64>::of_batches([Ok(table.clone())], &options)
                .map(|_| ())
                .unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

/// Columns that are chosen: by name, or all that hold numbers but weights and keys, or the only lists.
#[test]
fn columns_that_are_chosen() {
    let ones: ArrayRef = Arc::new(Float32Array::from(vec![1.0; N]));
    let list = || {
        lists(
            Arc::new(Float32Array::from(vec![1.0; 2 * N])),
            2,
            Lists::Small,
        )
    };
    let dim = |columns: Vec<(&str, ArrayRef)>, options: &Options| {
        let file = Parquet::any(&mut seeded(1)).write(&table(columns, false));
        let file = ParquetFile::<f32>::over(file, options);
        file.map(|file| file.dim())
            .map_err(|error| error.to_string())
    };
    let plain = || {
        vec![
            ("x", ones.clone()),
            ("w", ones.clone()),
            ("y", ones.clone()),
        ]
    };
    let mixed = || vec![("x", ones.clone()), ("v", list())];
    let twice = || {
        vec![
            ("x", ones.clone()),
            ("x", ones.clone()),
            ("y", ones.clone()),
        ]
    };
    let none = Options::new();
    assert_eq!(dim(plain(), &none), Ok(3));
    assert_eq!(dim(plain(), &none.clone().weight("w")), Ok(2));
    assert_eq!(dim(mixed(), &none.clone().key("x")), Ok(2));
    assert_eq!(dim(mixed(), &none.clone().columns(["v"])), Ok(2));
    assert_eq!(dim(twice(), &none.clone().columns(["y"])), Ok(1));
    for (found, part) in [
        (dim(mixed(), &none), "say which columns to read"),
        (
            dim(mixed(), &none.clone().columns(["v", "x"])),
            "must be the only column",
        ),
        (
            dim(plain(), &none.clone().columns::<&str>([])),
            "no columns were asked for",
        ),
        (
            dim(twice(), &none.clone().columns(["x"])),
            "its columns 2 and 3 are both called \"x\": rename one",
        ),
    ] {
        let error = found.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

/// Some writers make a row group for a table without rows.
#[test]
fn a_row_group_without_rows_is_none() {
    use parquet::file::writer::SerializedFileWriter;
    let schema = "message rows { REQUIRED FLOAT x; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let mut bytes = Vec::new();
    let mut file =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Default::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    while let Some(column) = group.next_column().unwrap() {
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
    let rows = ParquetFile::<f32>::over(bytes, &Options::new()).unwrap();
    assert_eq!((rows.len(), rows.dim()), (0, 1));
}
