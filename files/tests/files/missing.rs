//! Missing values that are kept: NaN in the rows, whatever a file writes for them.

use crate::common::all;
use arrow_array::types::{Float64Type, Int8Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, ListArray,
    NullArray, RecordBatch, StringArray, UInt8Array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use coremix::data::{Blocks, Data, RowKind, Source};
use coremix::prelude::*;
use coremix_files::{
    AnySource, ArrowFile, Batches, CsvFile, ElementType, Format, InMemory, LabelWriter, Missing,
    Number, Opened, Options, ParquetFile, ReadAhead, Spool, open,
};
use ndarray::{Array2, array};
use num_traits::AsPrimitive;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const NAN: f64 = f64::NAN;

fn keep() -> Options {
    Options::new().missing(Missing::Keep)
}

/// Rows in `f64`, read in pieces of several sizes; no number is NaN but those that are missing.
fn read<T: Number + AsPrimitive<f64>>(rows: &dyn Source<Element = T>) -> Array2<f64> {
    let found = all(rows, 3).unwrap().mapv(|x| x.as_());
    for piece in [1, 1_000] {
        same(&all(rows, piece).unwrap().mapv(|x| x.as_()), &found);
    }
    found
}

fn rows(opened: &Opened) -> Array2<f64> {
    match &opened.rows {
        AnySource::U8(rows) => read(&**rows),
        AnySource::I8(rows) => read(&**rows),
        AnySource::F16(rows) => read(&**rows),
        AnySource::F32(rows) => read(&**rows),
        AnySource::F64(rows) => read(&**rows),
        _ => panic!("other numbers"),
    }
}

fn may_miss(opened: &Opened) -> bool {
    match &opened.rows {
        AnySource::U8(rows) => rows.may_miss(),
        AnySource::I8(rows) => rows.may_miss(),
        AnySource::F16(rows) => rows.may_miss(),
        AnySource::F32(rows) => rows.may_miss(),
        AnySource::F64(rows) => rows.may_miss(),
        _ => panic!("other numbers"),
    }
}

/// Equal numbers, and NaN at the same places.
fn same(found: &Array2<f64>, expected: &Array2<f64>) {
    assert_eq!(found.dim(), expected.dim());
    let is_same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
    assert!(
        found.iter().zip(expected).all(is_same),
        "{found}\n{expected}"
    );
}

fn parquet(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn arrow(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn error(path: &Path, options: &Options) -> String {
    match open(path, options) {
        Err(error) => error.to_string(),
        Ok(opened) => match opened.rows {
            AnySource::F64(rows) => all(&*rows, 2).unwrap_err().to_string(),
            AnySource::I8(rows) => all(&*rows, 2).unwrap_err().to_string(),
            AnySource::F16(rows) => all(&*rows, 2).unwrap_err().to_string(),
            AnySource::F32(rows) => all(&*rows, 2).unwrap_err().to_string(),
            AnySource::U8(rows) => all(&*rows, 2).unwrap_err().to_string(),
            _ => panic!("other numbers"),
        },
    }
}

/// Text in a file.
struct Text(tempfile::TempDir);

impl Text {
    fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("t.csv"), text).unwrap();
        Self(folder)
    }

    fn open(&self, options: &Options) -> Opened {
        open(self.0.path().join("t.csv"), options).unwrap()
    }

    fn error(&self, options: &Options) -> String {
        error(&self.0.path().join("t.csv"), options)
    }
}

/// Empty fields, also in quotes and of blanks, words of other programs, and texts that are named, even if they are numbers.
#[test]
fn fields() {
    let text = Text::of(concat!(
        "x,y,spend,empty,name\n",
        "1,2,,,a\n",
        "\"\",3, ,\"\",b\n",
        "4,  ,7,NA,\n",
        "\" NA \",nan,,,d\n",
        "5,NULL,,?,e\n",
        "-,-999,,,f\n",
        "6,-999.0,,,g\n",
    ));
    let options = keep().missing_texts(["-", " -999 "]);
    let opened = text.open(&options);
    assert_eq!(opened.columns, ["x", "y", "spend"]);
    let others = [("name", "text"), ("empty", "no value")].map(|(a, b)| (a.into(), b.into()));
    assert_eq!(opened.not_used, others);
    assert!(may_miss(&opened));
    let expected = array![
        [1.0, 2.0, NAN],
        [NAN, 3.0, NAN],
        [4.0, NAN, 7.0],
        [NAN, NAN, NAN],
        [5.0, NAN, NAN],
        [NAN, NAN, NAN],
        [6.0, -999.0, NAN]
    ];
    same(&rows(&opened), &expected);
    let found = opened.missing.unwrap();
    assert_eq!((found.rows, found.values), (7, 13));
    // Columns that are named are read, whatever they hold.
    let named = text.open(&options.clone().columns(["empty", "x"]));
    assert_eq!(
        rows(&named).column(0).iter().filter(|x| x.is_nan()).count(),
        7
    );
    // A number that stands for a missing value does so for rows that are left out and counted, too.
    let two = Options::new().columns(["y"]).missing_texts(["-999"]);
    let dropped = text.open(&two.clone().missing(Missing::Drop));
    same(&rows(&dropped), &array![[2.0], [3.0], [-999.0]]);
    let counted = text.open(&two.missing(Missing::Count)).missing.unwrap();
    assert_eq!((counted.rows, counted.values), (4, 4));
    // Without the option, the error says what to do; other texts are no missing values.
    let x = Options::new().columns(["x"]);
    assert!(text.error(&x).ends_with(
        "column \"x\", line 3: an empty field: fill it in, or take the row out, or allow missing values"
    ));
    let found = text.error(&keep().columns(["x", "y"]));
    assert!(
        found.contains("column \"x\", line 7: \"-\" is not a number"),
        "{found}"
    );
    assert!(!found.contains("allow"), "{found}");
    let found = Text::of("x\n1\ninf\n\n2\n").error(&keep());
    assert!(
        found.contains("line 3: a value is NaN or infinite"),
        "{found}"
    );
}

/// A text after a hundred empty fields is an error that names it, not a missing value.
#[test]
fn a_column_of_text_that_begins_late() {
    let line = |i: usize| format!("{i},{}\n", if i < 300 { "" } else { "late" });
    let text = format!("x,note\n{}", (0..400).map(line).collect::<String>());
    let found = Text::of(&text).error(&keep());
    assert!(
        found.contains("column \"note\", line 302: \"late\" is not"),
        "{found}"
    );
    let late = Text::of(&text.replace("late", "7")).open(&keep());
    assert_eq!(late.columns, ["x", "note"]);
    assert!(Text::of(&text).open(&Options::new()).columns == ["x"]);
}

/// A weight is never missing; a key may be, as ever.
#[test]
fn weights_and_keys() {
    let text = Text::of("id,x,w\na,1,2\n,,3\nc,4,\n");
    let mut opened = text.open(&keep().key("id").columns(["x"]));
    same(&rows(&opened), &array![[1.0], [NAN], [4.0]]);
    assert_eq!(opened.keys.as_mut().unwrap().next(3).unwrap().num_rows(), 3);
    let found = text.error(&keep().key("id").weight("w"));
    assert!(
        found.ends_with("column \"w\", line 4: an empty field: fill it in, or take the row out"),
        "{found}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.parquet");
    let x: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    let id: ArrayRef = Arc::new(StringArray::from(vec![None, Some("b")]));
    let batch = RecordBatch::try_from_iter([("x", Arc::clone(&x)), ("w", x), ("id", id)]).unwrap();
    parquet(&path, &batch);
    let found = error(&path, &keep().weight("w"));
    assert!(
        found.ends_with("column \"w\", row 1: a null: fill it in, or take the row out"),
        "{found}"
    );
    let mut opened = open(&path, &keep().key("id").columns(["x"])).unwrap();
    assert_eq!(
        opened
            .keys
            .as_mut()
            .unwrap()
            .next(2)
            .unwrap()
            .column(0)
            .null_count(),
        1
    );
}

/// Nulls of every type that is read, from Arrow and Parquet, as the smallest float that holds the numbers.
#[test]
fn nulls_of_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let plain: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0), None]));
    let column = array![[1.0], [NAN], [3.0], [NAN]];
    use DataType::*;
    let mut cases: Vec<(ArrayRef, ElementType)> = Vec::new();
    for kind in [Int8, UInt8, Float16] {
        cases.push((cast(&plain, &kind).unwrap(), ElementType::F16));
    }
    for kind in [Int16, UInt16, Float32] {
        cases.push((cast(&plain, &kind).unwrap(), ElementType::F32));
    }
    let decimals = [
        Decimal32(7, 2),
        Decimal64(9, 2),
        Decimal128(20, 0),
        Decimal256(50, 3),
    ];
    for kind in [Int32, UInt32, Int64, UInt64, Float64]
        .iter()
        .chain(&decimals)
    {
        cases.push((cast(&plain, kind).unwrap(), ElementType::F64));
    }
    let whole = cast(&plain, &Int64).unwrap();
    cases.push((
        cast(&whole, &Duration(TimeUnit::Second)).unwrap(),
        ElementType::F64,
    ));
    let codes = arrow_array::Int8Array::from(vec![Some(1), None, Some(0), Some(2)]);
    let values = Float64Array::from(vec![Some(3.0), Some(1.0), None]);
    let coded = DictionaryArray::<Int8Type>::new(codes, Arc::new(values));
    cases.push((Arc::new(coded), ElementType::F64));
    for (case, (array, element)) in cases.into_iter().enumerate() {
        let kind = array.data_type().clone();
        let whole: ArrayRef = Arc::new(UInt8Array::from(vec![5, 6, 7, 8]));
        let batch = RecordBatch::try_from_iter([("x", array), ("z", whole)]).unwrap();
        let expected = ndarray::concatenate![
            ndarray::Axis(1),
            column.clone(),
            array![[5.0], [6.0], [7.0], [8.0]]
        ];
        for (name, write) in [
            ("parquet", parquet as fn(&Path, &RecordBatch)),
            ("arrow", arrow),
        ] {
            // No writer of Parquet takes numbers in dictionaries.
            if name == "parquet" && matches!(kind, Dictionary(..)) {
                continue;
            }
            let path = folder.path().join(format!("{case}.{name}"));
            write(&path, &batch);
            let opened = open(&path, &keep().columns(["x", "z"])).unwrap();
            assert_eq!(opened.rows.element(), element, "{kind} {name}");
            same(&rows(&opened), &expected);
            assert!(may_miss(&opened) && opened.missing.unwrap().values == 2);
            let without = error(&path, &Options::new().columns(["x", "z"]));
            assert!(
                without.contains("column \"x\", row 1: a null")
                    && without.ends_with("or allow missing values"),
                "{without}"
            );
            // Nothing is missing where it is not asked for.
            let other = open(&path, &keep().columns(["z"])).unwrap();
            assert_eq!(
                (other.rows.element(), may_miss(&other)),
                (ElementType::U8, false)
            );
            for element in [ElementType::U8, ElementType::I8] {
                let asked = keep().columns(["x", "z"]).element(element);
                let refused = open(&path, &asked).unwrap_err().to_string();
                assert!(
                    refused.contains("f32 or f64") || refused.contains(&element.to_string()),
                    "{refused}"
                );
            }
        }
    }
}

/// Lists that are null, at the beginning too, and nulls in lists; columns of nulls alone, and of NaN alone.
#[test]
fn lists_and_empty_columns() {
    let folder = tempfile::tempdir().unwrap();
    let lists = [
        None,
        Some(vec![Some(1.0), None]),
        None,
        Some(vec![Some(3.0), Some(4.0)]),
    ];
    let long = ListArray::from_iter_primitive::<Float64Type, _, _>(lists.clone());
    let fixed = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(lists, 2);
    let expected = array![[NAN, NAN], [1.0, NAN], [NAN, NAN], [3.0, 4.0]];
    let lists: [ArrayRef; 2] = [Arc::new(long), Arc::new(fixed)];
    for (case, array) in lists.into_iter().enumerate() {
        let batch = RecordBatch::try_from_iter([("v", array)]).unwrap();
        let paths = ["parquet", "arrow"].map(|name| folder.path().join(format!("{case}.{name}")));
        parquet(&paths[0], &batch);
        arrow(&paths[1], &batch);
        for path in &paths {
            same(&rows(&open(path, &keep()).unwrap()), &expected);
        }
        let spool = Spool::<f64>::of_batches([Ok(batch.clone())], &keep()).unwrap();
        same(&read(&spool), &expected);
        assert!(spool.may_miss());
    }
    let x: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.0), None, Some(f32::NAN)]));
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![NAN; 3]));
    let nulls: ArrayRef = Arc::new(Float64Array::from(vec![None; 3]));
    let none: ArrayRef = Arc::new(NullArray::new(3));
    let columns = [("x", x), ("nan", nan), ("nulls", nulls), ("none", none)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let paths = ["e.parquet", "e.arrow"].map(|name| folder.path().join(name));
    parquet(&paths[0], &batch);
    arrow(&paths[1], &batch);
    let mut found: Vec<Opened> = paths
        .iter()
        .map(|path| open(path, &keep()).unwrap())
        .collect();
    let written = Batches::write(
        &batch.schema(),
        [Ok(batch.clone())],
        &keep().columns(["x", "nan"]),
    );
    assert_eq!(
        written
            .unwrap()
            .open(&keep().columns(["x"]))
            .unwrap()
            .columns,
        ["x"]
    );
    let written = Batches::write(&batch.schema(), [Ok(batch)], &keep()).unwrap();
    found.push(written.open(&keep()).unwrap());
    for opened in found {
        assert_eq!((opened.columns.len(), &*opened.columns[0]), (1, "x"));
        let words = opened.not_used.iter().map(|(_, holds)| &**holds);
        assert_eq!(words.collect::<Vec<_>>(), ["no value"; 3]);
        assert_eq!(opened.rows.element(), ElementType::F32);
        same(&rows(&opened), &array![[1.0], [NAN], [NAN]]);
    }
    // Named, a column of nulls is read; without the option it is an error.
    for path in &paths {
        let opened = open(path, &keep().columns(["none", "x"])).unwrap();
        same(&rows(&opened), &array![[NAN, 1.0], [NAN, NAN], [NAN, NAN]]);
        let found = error(path, &Options::new().columns(["none", "x"]));
        assert!(found.contains("column \"none\", row 0: a null"), "{found}");
    }
    let found = Text::of("x,y\n,\n,\n").error(&keep());
    assert!(
        found.contains("no column of which some value is there"),
        "{found}"
    );
}

/// Matrices, vectors, folders of several formats, and their names.
#[test]
fn folders_and_matrices() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    ndarray_npy::write_npy(path("d.npy"), &array![[1.0f32, f32::NAN], [2.0, 3.0]]).unwrap();
    let mut vectors = Vec::new();
    for row in [[1.0f32, f32::NAN], [2.0, 3.0]] {
        vectors.extend(2u32.to_le_bytes());
        row.iter().for_each(|x| vectors.extend(x.to_le_bytes()));
    }
    fs::write(path("d.fvecs"), vectors).unwrap();
    for name in ["d.npy", "d.fvecs"] {
        let opened = open(path(name), &keep()).unwrap();
        same(&rows(&opened), &array![[1.0, NAN], [2.0, 3.0]]);
        assert!(may_miss(&opened) && opened.rows.element() == ElementType::F32);
        let found = error(&path(name), &Options::new());
        assert!(found.contains("column 1, row 0: a value is NaN"), "{found}");
        assert!(found.ends_with("or allow missing values"), "{found}");
    }
    ndarray_npy::write_npy(path("whole.npy"), &array![[1u8, 2], [3, 4]]).unwrap();
    let opened = open(path("whole.npy"), &keep()).unwrap();
    assert_eq!(
        (opened.rows.element(), may_miss(&opened)),
        (ElementType::U8, false)
    );
    for (name, text) in [
        ("h/year=2023/1.csv", "x\n1\n\n3\n"),
        ("h/year=__HIVE_DEFAULT_PARTITION__/1.csv", "x\n4\n"),
    ] {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), text).unwrap();
    }
    let opened = open(path("h"), &keep().columns(["x", "year"])).unwrap();
    let expected = array![[1.0, 2023.0], [NAN, 2023.0], [3.0, 2023.0], [4.0, NAN]];
    same(&rows(&opened), &expected);
    assert!(may_miss(&opened));
    // One file has all, another one has not.
    fs::create_dir(path("mixed")).unwrap();
    let some: ArrayRef = Arc::new(UInt8Array::from(vec![Some(1), None]));
    let all: ArrayRef = Arc::new(UInt8Array::from(vec![7, 8]));
    parquet(
        &path("mixed/a.parquet"),
        &RecordBatch::try_from_iter([("x", all)]).unwrap(),
    );
    parquet(
        &path("mixed/b.parquet"),
        &RecordBatch::try_from_iter([("x", some)]).unwrap(),
    );
    let opened = open(path("mixed"), &keep()).unwrap();
    same(&rows(&opened), &array![[7.0], [8.0], [1.0], [NAN]]);
    assert_eq!(opened.rows.element(), ElementType::F16);
}

/// Fits, labels and blocks of such rows are those of the same rows in memory, bit for bit; and sources of a single kind say that they miss
/// values.
#[test]
fn fits_are_those_of_rows_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let x = Array2::from_shape_fn((3_000, 4), |(i, j)| {
        let wave = ((i * 31 + j * 17) % 97) as f64 / 97.0;
        match (i * 7 + j * 5) % 6 {
            0 => NAN,
            _ => (i % 3 * 10) as f64 + wave,
        }
    });
    let line = |row: ndarray::ArrayView1<'_, f64>| {
        let fields = row.iter().map(|x| {
            if x.is_nan() {
                String::new()
            } else {
                x.to_string()
            }
        });
        fields.collect::<Vec<_>>().join(",") + "\n"
    };
    let lines: String = x.outer_iter().map(line).collect();
    fs::write(&path, format!("a,b,c,d\n{lines}")).unwrap();
    let AnySource::F64(rows) = open(&path, &keep()).unwrap().rows else {
        panic!("text is read as f64");
    };
    let clusterer = algorithms::fast::<f64>(3).seed(1).build().unwrap();
    let dense = Dense::with_missing(&x).unwrap();
    let expected = clusterer.fit(&dense).unwrap().model;
    let rows = Arc::new(rows);
    let ahead = Blocks::new(ReadAhead::new(Arc::clone(&rows))).unwrap();
    let held = Blocks::new(InMemory(x.clone())).unwrap();
    for data in [&ahead as &dyn Data<f64>, &held] {
        assert_ne!(data.kind(), RowKind::Dense);
        assert_eq!(clusterer.fit(data).unwrap().model.means(), expected.means());
    }
    let labels = folder.path().join("labels.npy");
    let mut writer = LabelWriter::create(&labels, None, &[]).unwrap();
    writer
        .label(&expected, &rows, |_| ControlFlow::Continue(()))
        .unwrap();
    writer.finish().unwrap();
    let found: ndarray::Array1<u32> = ndarray_npy::read_npy(&labels).unwrap();
    assert_eq!(found, expected.predict(&dense).unwrap());
    let file = CsvFile::<f64>::open(&path, &keep()).unwrap();
    assert!(
        file.may_miss()
            && !CsvFile::<f64>::open(&path, &Options::new())
                .unwrap()
                .may_miss()
    );
    same(&read(&file), &x);
    let refused = CsvFile::<u8>::open(&path, &keep()).unwrap_err().to_string();
    assert!(
        refused.contains("need numbers of type f16, f32 or f64"),
        "{refused}"
    );
    let null: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![Some(1), None]));
    let batch = RecordBatch::try_from_iter([("x", null)]).unwrap();
    let paths = ["n.parquet", "n.arrow"].map(|name| folder.path().join(name));
    parquet(&paths[0], &batch);
    arrow(&paths[1], &batch);
    let parquet = ParquetFile::<f64>::open(&paths[0], &keep()).unwrap();
    let arrow = ArrowFile::<f64>::open(&paths[1], &keep()).unwrap();
    assert!(parquet.may_miss() && arrow.may_miss());
    same(&read(&parquet), &array![[1.0], [NAN]]);
    same(&read(&arrow), &array![[1.0], [NAN]]);
}

/// The files of `tests/made` and `tests/text`, as other programs write them.
#[test]
fn files_of_other_programs() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let blanks = keep().delimiter(b' ').format(Format::Csv).columns(["V1"]);
    for (name, options, missing) in [
        ("made/pandas-missing.parquet", keep(), 1),
        (
            "text/pandas-missing.csv",
            keep().columns(["x", "y", "z"]),
            1,
        ),
        ("text/polars-null.csv", keep().columns(["x", "y", "z"]), 1),
        ("text/pandas-series.csv", keep(), 1),
        ("text/r-missing.txt", blanks, 1),
    ] {
        let opened = open(tests.join(name), &options).unwrap();
        let found = rows(&opened);
        let nan = found.iter().filter(|x| x.is_nan()).count();
        assert_eq!(
            (nan, opened.missing.unwrap().values),
            (missing, missing),
            "{name}"
        );
    }
}
