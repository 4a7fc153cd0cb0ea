//! Record batches from elsewhere, compressed text, files that are written.

use crate::common::{same_rows, seeded};
use crate::samples::{Lists, csv, lists, numbers, table};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType};
use coremix_files::{
    AnySource, Batches, ElementType, LabelWriter, NpyWriter, Options, Spool, open,
};
use ndarray::Array2;
use std::io::Write;

/// Batches of some lengths, one of them empty, and their rows.
fn batches(of_lists: bool) -> (Vec<RecordBatch>, Array2<f64>) {
    let mut rng = seeded(5);
    let (table, rows) = match of_lists {
        true => {
            let (values, known) = numbers(&DataType::Float64, 1_000 * 3, &mut rng);
            let rows = Array2::from_shape_vec((1_000, 3), known).unwrap();
            (
                table(vec![("v", lists(values, 3, Lists::Small))], true),
                rows,
            )
        }
        false => {
            let (a, x) = numbers(&DataType::Float32, 1_000, &mut rng);
            let (b, y) = numbers(&DataType::Int32, 1_000, &mut rng);
            let rows = Array2::from_shape_fn((1_000, 2), |(i, j)| [x[i], y[i]][j]);
            (table(vec![("a", a), ("b", b)], true), rows)
        }
    };
    let mut ends = vec![0, 0, 3, 3, 200, 650, 651, 1_000];
    ends.dedup_by_key(|end| *end + 1_000_000 * usize::from(*end == 3));
    let parts = ends
        .windows(2)
        .map(|ends| table.slice(ends[0], ends[1] - ends[0]));
    (parts.collect(), rows)
}

#[test]
fn batches_that_differ() {
    let none = Vec::<Result<RecordBatch, ArrowError>>::new();
    assert!(Spool::<f64>::of_batches(none, &Options::new()).is_err());
    // Another schema.
    let (mut other, _) = self::batches(false);
    other.extend(self::batches(true).0);
    let error = Spool::<f64>::of_batches(other.into_iter().map(Ok), &Options::new());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("columns are not those of the first one"),
        "{error}"
    );
}

#[test]
fn batches_with_all_that_belongs_to_them() {
    use arrow_array::{ArrayRef, DictionaryArray, StringViewArray, UInt32Array};
    use coremix::Error;
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    // Rows, weights, and a key of coded text: each batch has a dictionary of its own, of views, as polars writes them.
    let batch = |first: u32| {
        let numbers = |by: f64| -> ArrayRef {
            let values = (first..first + 3).map(|i| by * f64::from(i));
            Arc::new(arrow_array::Float64Array::from_iter_values(values))
        };
        let names = StringViewArray::from(vec![format!("a{first}"), format!("b{first}")]);
        let key = DictionaryArray::new(UInt32Array::from(vec![1, 0, 1]), Arc::new(names));
        let columns: [(&str, ArrayRef); 4] = [
            ("x", numbers(1.0)),
            ("key", Arc::new(key)),
            ("w", numbers(2.0)),
            ("y", numbers(3.0)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches = [batch(0), batch(3)];
    let options = Options::new().columns(["y"]).weight("w").key("key");
    let options = options.spool(folder.path());
    let schema = batches[0].schema();
    let written = Batches::write(&schema, batches.clone().map(Ok), &options).unwrap();
    let opened = written.open(&options).unwrap();
    assert!(written.bytes() > 0 && std::fs::read_dir(folder.path()).unwrap().count() == 0);
    assert_eq!(opened.columns, ["y"]);
    assert_eq!(opened.not_used, [("x".into(), "numbers".into())]);
    assert_eq!(opened.weights.unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    let AnySource::F64(rows) = &opened.rows else {
        unreachable!("numbers of f64");
    };
    same_rows(
        rows,
        &Array2::from_shape_fn((6, 1), |(i, _)| 3.0 * i as f64),
    );
    // Keys are read as often as they are asked for, by each writer.
    for ending in ["parquet", "arrow", "csv"] {
        let path = folder.path().join("labels").with_extension(ending);
        let keys = opened.key_columns.read().unwrap();
        let mut writer = LabelWriter::create(&path, keys, &[]).unwrap();
        writer.write(&[0, 1, 2, 3, 4, 5], &[]).unwrap();
        writer.finish().unwrap();
        assert!(LabelWriter::wrote(&path, &["key"]));
        let known = Options::new().columns(["label"]).key("key");
        let found = open(&path, &known).unwrap();
        assert_eq!(
            (
                found.rows.len(),
                found.keys.unwrap().schema().field(0).name().as_str()
            ),
            (6, "key")
        );
        std::fs::remove_file(path).unwrap();
    }
    // An error of a batch comes out as it is, and leaves nothing.
    let torn = Error::Empty { what: "the tape" };
    let parts = [Ok(batch(0)), Err(torn.clone())];
    assert_eq!(Batches::write(&schema, parts, &options).unwrap_err(), torn);
    let other = batches[0].project(&[0, 1, 2]).unwrap();
    let error = Batches::write(&schema, [Ok(batch(0)), Ok(other)], &options);
    assert!(error.unwrap_err().to_string().contains("record batches: "));
    for wrong in [
        options.clone().weight("z"),
        options.clone().key("z"),
        options.clone().columns(["z"]),
    ] {
        let error = Batches::write(&schema, [Ok(batch(0))], &wrong).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("has no column \"z\"; it has x, key, w, y"),
            "{error}"
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn reading_ends_with_a_flag() {
    use coremix::Cancel;
    use coremix::data::Source as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, format!("x,y\n{}", "1,2\n".repeat(5_000))).unwrap();
    let cancel = Cancel::default();
    let options = Options::new().cancel(&cancel);
    let AnySource::F64(rows) = open(&path, &options).unwrap().rows else {
        unreachable!("text is f64");
    };
    rows.read(0, &mut [0.0; 4]).unwrap();
    cancel.cancel();
    assert!(rows.read(4_000, &mut [0.0; 4]).is_err());
    assert!(open(&path, &options).is_err());
    assert!(open(&path, &Options::new()).is_ok());
}

#[test]
fn rows_are_labelled_block_by_block() {
    use coremix::data::Dense;
    use coremix::{BoxedMixture, Error, Mixture as _, algorithms};
    use std::ops::ControlFlow;
    let folder = tempfile::tempdir().unwrap();
    let rows = Array2::from_shape_fn((200_000, 2), |(i, j)| ((i % 7) * (j + 1)) as f32);
    let path = folder.path().join("rows.npy");
    let mut writer = NpyWriter::<f32>::rows(&path, 2).unwrap();
    writer.write(rows.as_slice().unwrap()).unwrap();
    writer.finish().unwrap();
    let data = Dense::new(&rows).unwrap();
    let fit = algorithms::k_means(7).build().unwrap().fit(&data).unwrap();
    let expected = fit.model.predict(&data).unwrap();
    let model: BoxedMixture<f32> = Box::new(fit.model);
    let source = coremix_files::NpyFile::<f32>::open(&path).unwrap();
    for ending in ["npy", "parquet", "arrow", "csv"] {
        let path = folder.path().join("labels").with_extension(ending);
        let mut writer = LabelWriter::create(&path, None, &[]).unwrap();
        let mut seen = Vec::new();
        let see = |done| {
            seen.push(done);
            ControlFlow::Continue(())
        };
        writer.label(&*model, &source, see).unwrap();
        writer.finish().unwrap();
        assert!(seen.len() > 1 && seen.last() == Some(&200_000));
        if ending != "npy" {
            let AnySource::F64(found) = open(&path, &Options::new().element(ElementType::F64))
                .unwrap()
                .rows
            else {
                unreachable!("numbers were asked for as f64");
            };
            let found = crate::common::all(&*found, 4_096).unwrap();
            assert!(
                found
                    .iter()
                    .zip(&expected)
                    .all(|(found, own)| *found == f64::from(*own))
            );
        }
        // It can be ended after a block.
        let mut writer = LabelWriter::create(&path, None, &[]).unwrap();
        let mut blocks = 0;
        let see = |_| {
            blocks += 1;
            ControlFlow::Break(())
        };
        writer.label(&*model, &source, see).unwrap();
        assert_eq!(blocks, 1);
    }
    // A row that cannot be read is an error with the file and the row.
    let mut writer = NpyWriter::<f32>::rows(&path, 2).unwrap();
    let mut values = rows.into_raw_vec_and_offset().0;
    values[150_001] = f32::NAN;
    writer.write(&values).unwrap();
    writer.finish().unwrap();
    let source = coremix_files::NpyFile::<f32>::open(&path).unwrap();
    let mut writer = LabelWriter::create(folder.path().join("l.csv"), None, &[]).unwrap();
    let error = writer.label(&*model, &source, |_| ControlFlow::Continue(()));
    let Err(Error::File { path: file, what }) = error else {
        unreachable!("a file is named");
    };
    assert!(
        file.ends_with("rows.npy") && what.starts_with("column 1, row 75000: "),
        "{what}"
    );
}

#[test]
fn spooled_batches() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for of_lists in [false, true] {
        let (batches, rows) = batches(of_lists);
        let options = Options::new().spool(folder.path());
        let source = Spool::<f64>::of_batches(batches.into_iter().map(Ok), &options).unwrap();
        assert_eq!(files(), 1);
        same_rows(&source, &rows);
        drop(source);
        assert_eq!(files(), 0);
    }
    let torn = [Err(ArrowError::ComputeError("the tape is torn".into()))];
    let options = Options::new().spool(folder.path());
    assert!(Spool::<f64>::of_batches(torn, &options).is_err());
    assert_eq!(files(), 0);
    let options = Options::new().spool(folder.path().join("none"));
    let error = Spool::<f64>::of_batches(self::batches(false).0.into_iter().map(Ok), &options);
    assert!(error.unwrap_err().to_string().contains("none: "));
}

#[test]
fn compressed_text() {
    let folder = tempfile::tempdir().unwrap();
    let known = vec![numbers(&DataType::Float64, 3_000, &mut seeded(1)).1];
    let text = csv(&["x"], &known, '\t', true);
    let path = folder.path().join("x.tsv.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    file.write_all(&text).unwrap();
    file.finish().unwrap();
    let opened = open(&path, &Options::new().key("text")).unwrap();
    let AnySource::F64(rows) = opened.rows else {
        panic!("text is read as f64");
    };
    let expected = Array2::from_shape_vec((3_000, 1), known[0].clone()).unwrap();
    same_rows(&*rows, &expected);
    let keys = opened.keys.unwrap().next(3_000).unwrap();
    assert_eq!(keys.num_rows(), 3_000);
    // Cut off.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = open(&path, &Options::new().element(ElementType::F32)).unwrap_err();
    assert!(error.to_string().contains("x.tsv.gz: line "), "{error}");
}

/// Other code reads the numbers that were written block by block.
#[test]
fn npy_files_that_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let rows = Array2::from_shape_fn((333, 3), |(i, j)| (i * 3 + j) as f64 / 8.0);
    let mut writer = NpyWriter::<f64>::rows(&path, 3).unwrap();
    for block in rows.as_slice().unwrap().chunks(30) {
        writer.write(block).unwrap();
    }
    assert!(writer.write(&[1.0]).is_err());
    writer.finish().unwrap();
    let read: Array2<f64> = ndarray_npy::read_npy(&path).unwrap();
    assert_eq!(read, rows);
    let mut writer = NpyWriter::<u32>::numbers(&path).unwrap();
    writer.write(&[4, 5]).unwrap();
    writer.write(&[u32::MAX]).unwrap();
    writer.finish().unwrap();
    let read: ndarray::Array1<u32> = ndarray_npy::read_npy(&path).unwrap();
    assert_eq!(read.to_vec(), [4, 5, u32::MAX]);
}
