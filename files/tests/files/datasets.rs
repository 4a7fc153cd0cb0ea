//! Files of all formats through one entry: folders, patterns, types, keys; and labels with keys.

use crate::common::{below, name, same_rows, seeded};
use crate::samples::{Arrow, Parquet, csv, numbers, table};
use arrow_array::cast::AsArray;
use arrow_array::{Array, Int64Array, StringArray};
use arrow_schema::DataType;
use coremix_files::{
    AnySource, ElementType, Format, LabelWriter, Number, Opened, Options, open, open_all,
};
use ndarray::Array2;
use std::path::Path;
use std::sync::Arc;

fn check<T: Number>(opened: AnySource, rows: &Array2<f64>) {
    assert_eq!(opened.element(), name::<T>());
    let expected = rows.mapv(|x| T::nearest(x));
    let source: Box<dyn std::any::Any> = match opened {
        AnySource::U8(rows) => Box::new(rows),
        AnySource::I8(rows) => Box::new(rows),
        AnySource::F16(rows) => Box::new(rows),
        AnySource::F32(rows) => Box::new(rows),
        AnySource::F64(rows) => Box::new(rows),
        _ => unreachable!(),
    };
    let source = source.downcast::<coremix_files::Rows<T>>().unwrap();
    same_rows(&**source, &expected);
}

/// Three files of rows, with keys and weights: all rows, all weights.
fn write(folder: &Path, ending: &str, kind: &DataType) -> (Array2<f64>, Vec<f64>) {
    let mut rng = seeded(2);
    let (mut all, mut weights) = (Vec::new(), Vec::new());
    for part in 0..3 {
        let n = 100 + below(&mut rng, 300);
        let (x, a) = numbers(kind, n, &mut rng);
        let (y, b) = numbers(kind, n, &mut rng);
        let first = weights.len();
        let w: Vec<f64> = (first..first + n).map(|i| (i % 5) as f64 / 4.0).collect();
        let id: Vec<i64> = (first..first + n).map(|i| i as i64 * 10).collect();
        let path = folder.join(format!("part-{part}.{ending}"));
        let bytes = match Format::named(ending).unwrap() {
            Format::Csv => {
                let ids = id.iter().map(|id| *id as f64).collect();
                csv(
                    &["x", "y", "w", "id"],
                    &[a.clone(), b.clone(), w.clone(), ids],
                    ',',
                    true,
                )
            }
            format => {
                let table = table(
                    vec![
                        ("x", x),
                        ("y", y),
                        ("w", Arc::new(arrow_array::Float64Array::from(w.clone()))),
                        ("id", Arc::new(Int64Array::from(id))),
                    ],
                    part == 1,
                );
                match format {
                    Format::Parquet => Parquet::any(&mut rng).write(&table),
                    _ => Arrow::any(&mut rng).write(&table),
                }
            }
        };
        std::fs::write(path, bytes).unwrap();
        weights.extend(w);
        a.into_iter().zip(b).for_each(|(x, y)| all.extend([x, y]));
    }
    (
        Array2::from_shape_vec((weights.len(), 2), all).unwrap(),
        weights,
    )
}

#[test]
fn folders_and_patterns() {
    for ending in ["parquet", "arrow", "csv"] {
        let folder = tempfile::tempdir().unwrap();
        let kind = if ending == "csv" {
            DataType::Float64
        } else {
            DataType::Int16
        };
        let (rows, weights) = write(folder.path(), ending, &kind);
        // Other files are not read.
        std::fs::write(folder.path().join("_SUCCESS.csv"), b"").unwrap();
        std::fs::write(folder.path().join(".part.parquet"), b"").unwrap();
        std::fs::write(folder.path().join("notes.txt"), b"").unwrap();
        std::fs::create_dir(folder.path().join("more.parquet")).unwrap();
        let options = Options::new().weight("w").key("id").key("text");
        let pattern = folder.path().join(format!("part-[0-9].{ending}"));
        let list: Vec<_> = (0..3)
            .map(|i| folder.path().join(format!("part-{i}.{ending}")))
            .collect();
        let opened: [Opened; 3] = [
            open(folder.path(), &options).unwrap(),
            open(&pattern, &options).unwrap(),
            open_all(&list, &options).unwrap(),
        ];
        for opened in opened {
            assert_eq!(opened.files, list);
            assert_eq!(opened.weights.as_ref(), Some(&weights));
            match ending {
                "csv" => check::<f64>(opened.rows, &rows),
                _ => check::<f32>(opened.rows, &rows),
            }
            let mut keys = opened.keys.unwrap();
            let mut first = 0;
            for rows in [1, 0, 150, 7, weights.len() - 158] {
                let batch = keys.next(rows).unwrap();
                assert_eq!(batch.num_rows(), rows);
                for row in 0..rows {
                    let id = (first + row) as i64 * 10;
                    let found = match ending {
                        "csv" => batch
                            .column(0)
                            .as_string::<i32>()
                            .value(row)
                            .trim()
                            .parse()
                            .unwrap(),
                        _ => batch
                            .column(0)
                            .as_primitive::<arrow_array::types::Int64Type>()
                            .value(row),
                    };
                    assert_eq!(found, id);
                }
                first += rows;
            }
            let error = keys.next(1).unwrap_err().to_string();
            assert!(error.contains("fewer keys than rows"), "{error}");
        }
        let error = open(folder.path().join("x-*"), &options).unwrap_err();
        assert!(
            error.to_string().contains("no file matches this pattern"),
            "{error}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let error = open(folder.path(), &Options::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("without files of a known format"), "{error}");
    assert!(open(folder.path().join("none.parquet"), &Options::new()).is_err());
}

/// Files that differ in type are read as the widest; files that differ in columns are an error.
#[test]
fn files_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = seeded(4);
    let mut rows = Vec::new();
    for (part, kind) in [DataType::UInt8, DataType::Float32, DataType::Float64]
        .iter()
        .enumerate()
    {
        let (x, known) = numbers(kind, 50, &mut rng);
        rows.extend(known);
        let bytes = Parquet::any(&mut rng).write(&table(vec![("x", x)], false));
        std::fs::write(folder.path().join(format!("{part}.parquet")), bytes).unwrap();
        let opened = open(folder.path(), &Options::new()).unwrap();
        let expected = Array2::from_shape_vec((rows.len(), 1), rows.clone()).unwrap();
        match part {
            0 => check::<u8>(opened.rows, &expected),
            1 => check::<f32>(opened.rows, &expected),
            _ => check::<f64>(opened.rows, &expected),
        }
    }
    let options = Options::new().element(ElementType::F32);
    assert!(open(folder.path(), &options).is_err());
    let opened = open(folder.path(), &options.rounded()).unwrap();
    assert_eq!(opened.rows.element(), ElementType::F32);
    let (y, _) = numbers(&DataType::Float32, 50, &mut rng);
    let bytes = Parquet::any(&mut rng).write(&table(vec![("y", y.clone()), ("z", y)], false));
    std::fs::write(folder.path().join("3.parquet"), bytes).unwrap();
    let error = open(folder.path(), &Options::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("3.parquet: has no column \"x\""), "{error}");
    let error = open(folder.path(), &Options::new().columns(["x"]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("3.parquet: has no column \"x\""), "{error}");
}

/// Text of several files: one without rows says nothing about columns, and one without names has them nowhere else.
#[test]
fn text_in_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.csv", "name,x,y\n");
    write("b.csv", "name,x,y\nr,1,2\ns,3,4\n");
    let opened = open(folder.path(), &Options::new().key("name")).unwrap();
    assert_eq!(opened.columns, ["x", "y"]);
    assert_eq!(opened.files.len(), 2);
    check::<f64>(opened.rows, &ndarray::array![[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(opened.keys.unwrap().next(2).unwrap().num_rows(), 2);
    // Most fields of the next file are empty.
    write("c.csv", "name,x,y\nt,5,6\nu,,7\nv,,8\n");
    let opened = open(folder.path(), &Options::new()).unwrap();
    let AnySource::F64(rows) = opened.rows else {
        panic!("text is read as f64");
    };
    let error = rows.read(0, &mut [0.0; 10]).unwrap_err().to_string();
    assert!(
        error.contains("c.csv: column \"x\", line 3: an empty field"),
        "{error}"
    );
    write("c.csv", "1,5,6\n");
    let error = open(folder.path(), &Options::new())
        .unwrap_err()
        .to_string();
    assert!(
        error
            .contains("c.csv: has no column \"x\", for its first line does not name its 3 columns"),
        "{error}"
    );
    // Two columns of one name are an error in one file as well.
    write("d.csv", "x,y,x\n1,2,3\n");
    let error = open(folder.path().join("d.csv"), &Options::new()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("columns 1 and 3 are both called \"x\""),
        "{error}"
    );
}

/// Neither kind of bytes holds the other, and halves hold both.
#[test]
fn bytes_and_halves_stay_as_short_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = seeded(5);
    let mut rows = Vec::new();
    let kinds = [
        DataType::Int8,
        DataType::UInt8,
        DataType::Float16,
        DataType::Float32,
    ];
    for (part, kind) in kinds.iter().enumerate() {
        let (x, known) = numbers(kind, 50, &mut rng);
        rows.extend(known);
        let bytes = Parquet::any(&mut rng).write(&table(vec![("x", x)], false));
        std::fs::write(folder.path().join(format!("{part}.parquet")), bytes).unwrap();
        let opened = open(folder.path(), &Options::new()).unwrap();
        let expected = Array2::from_shape_vec((rows.len(), 1), rows.clone()).unwrap();
        match part {
            0 => check::<i8>(opened.rows, &expected),
            1 | 2 => check::<half::f16>(opened.rows, &expected),
            _ => check::<f32>(opened.rows, &expected),
        }
    }
    let matrix = Array2::from_shape_fn((60, 2), |(i, j)| (i * 2 + j) as f64 - 60.0);
    let path = folder.path().join("a.npy");
    ndarray_npy::write_npy(&path, &matrix.mapv(|x| x as i8)).unwrap();
    check::<i8>(open(&path, &Options::new()).unwrap().rows, &matrix);
}

#[test]
fn matrices_and_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows = Array2::from_shape_fn((60, 2), |(i, j)| (i * 2 + j) as f64);
    ndarray_npy::write_npy(path("a.npy"), &rows.mapv(|x| x as u8)).unwrap();
    ndarray_npy::write_npy(path("b.npy"), &rows.mapv(|x| x as i16)).unwrap();
    ndarray_npy::write_npy(path("c.npy"), &rows).unwrap();
    let options = Options::new();
    check::<u8>(open(path("a.npy"), &options).unwrap().rows, &rows);
    check::<f32>(open(path("b.npy"), &options).unwrap().rows, &rows);
    check::<f64>(open(path("c.npy"), &options).unwrap().rows, &rows);
    let narrow = options.clone().element(ElementType::F32);
    assert!(open(path("c.npy"), &narrow).is_err());
    check::<f32>(open(path("c.npy"), &narrow.rounded()).unwrap().rows, &rows);
    let mut file = Vec::new();
    for row in rows.outer_iter() {
        file.extend(2u32.to_le_bytes());
        row.iter().for_each(|x| file.push(*x as u8));
    }
    std::fs::write(path("x.bvecs"), &file).unwrap();
    check::<u8>(open(path("x.bvecs"), &options).unwrap().rows, &rows);
    // By a format that the name does not say.
    std::fs::rename(path("x.bvecs"), path("x.bin")).unwrap();
    let error = open(path("x.bin"), &options).unwrap_err().to_string();
    assert!(error.contains("does not say its format"), "{error}");
    let named = options.clone().format(Format::named("bvecs").unwrap());
    check::<u8>(open(path("x.bin"), &named).unwrap().rows, &rows);
    for options in [
        options.clone().weight("w"),
        options.clone().key("id"),
        options.columns(["x"]),
    ] {
        let error = open(path("a.npy"), &options).unwrap_err().to_string();
        assert!(error.contains("its columns have no names"), "{error}");
    }
    for (name, is) in [
        ("x.PARQUET", Some(Format::Parquet)),
        ("x.y.feather", Some(Format::Arrow)),
        ("x.csv.gz", Some(Format::CsvGz)),
        ("x.gz", None),
        ("parquet", None),
    ] {
        assert_eq!(Format::of(name), is, "{name}");
    }
}

/// Labels with the keys of the rows, through all readers of keys and to both formats that have room for keys.
#[test]
fn labels_beside_keys() {
    let all = ["parquet", "arrow", "csv"].into_iter();
    for (ending, to) in all.flat_map(|ending| ["parquet", "csv", "csv.gz"].map(|to| (ending, to))) {
        let folder = tempfile::tempdir().unwrap();
        let (rows, _) = write(folder.path(), ending, &DataType::Float32);
        let options = Options::new().columns(["x"]).key("text").key("id");
        let opened = open(folder.path(), &options).unwrap();
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("labels").with_extension(to);
        let mut writer = LabelWriter::create(&path, opened.keys, &["score"]).unwrap();
        let labels: Vec<u32> = (0..rows.nrows() as u32).map(|i| i % 7).collect();
        let scores: Vec<f64> = labels.iter().map(|l| f64::from(*l) / 8.0).collect();
        for (labels, scores) in labels.chunks(130).zip(scores.chunks(130)) {
            writer.write(labels, &[scores]).unwrap();
        }
        assert!(writer.write(&[1], &[&[1.0]]).is_err(), "no more keys");
        // After an error nothing is written.
        drop(writer);
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);

        let opened = open(folder.path(), &options).unwrap();
        let mut writer = LabelWriter::create(&path, opened.keys, &["score"]).unwrap();
        writer.write(&labels, &[&scores]).unwrap();
        writer.finish().unwrap();
        let written = open(
            &path,
            &Options::new()
                .columns(["label", "score"])
                .key("text")
                .key("id"),
        );
        let written = written.unwrap();
        let expected = Array2::from_shape_fn((labels.len(), 2), |(i, j)| {
            [f64::from(labels[i]), scores[i]][j]
        });
        check::<f64>(written.rows, &expected);
        let texts = written.keys.unwrap().next(labels.len()).unwrap();
        let texts: &StringArray = texts.column(0).as_string();
        assert!(texts.value(0).starts_with("row") && texts.null_count() == 0);
        // Labels alone have no room for keys.
        let keys = open(folder.path(), &options).unwrap().keys;
        let mut npy = LabelWriter::create(out.path().join("labels.npy"), keys, &[]).unwrap();
        npy.write(&labels, &[]).unwrap();
        npy.finish().unwrap();
        let found: ndarray::Array1<u32> =
            ndarray_npy::read_npy(out.path().join("labels.npy")).unwrap();
        assert_eq!(found.to_vec(), labels);
    }
}
