//! Record batches from elsewhere, compressed text, files that are written.

use crate::common::{same_rows, seeded};
use crate::samples::{Lists, csv, lists, numbers, table};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType};
use coremix_files::{AnySource, ElementType, NpyWriter, Options, Spool, open};
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
