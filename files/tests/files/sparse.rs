//! Sparse rows of files: they are those that were written, and hostile files are told.

use crate::common::{below, seeded};
use coremix::Float as _;
use coremix::data::{Dense, Source, Sparse};
use coremix::prelude::*;
use coremix_files::{
    AnySource, Bytes, ElementType, LabelWriter, Missing, Number, Opened, Options, Rows, open,
    open_all,
};
use ndarray::{Array1, Array2};
use ndarray_npy::{WritableElement, WriteNpyExt};
use std::fs;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A matrix as scipy has it.
struct Csr<T> {
    shape: [i64; 2],
    starts: Vec<i32>,
    ids: Vec<i32>,
    values: Vec<T>,
}

fn npy<T: WritableElement + Clone>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Array1::from(values.to_vec()).write_npy(&mut bytes).unwrap();
    bytes
}

/// An array of no axis, of three letters.
fn letters(text: &str) -> Vec<u8> {
    let mut header = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }".to_owned();
    header += &" ".repeat((64 - (10 + header.len() + 1) % 64) % 64);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes().chain(text.bytes()));
    bytes
}

fn archive(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

impl<T: WritableElement + Clone> Csr<T> {
    fn members(&self) -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("indices", npy(&self.ids)),
            ("indptr", npy(&self.starts)),
            ("format", letters("csr")),
            ("shape", npy(&self.shape)),
            ("data", npy(&self.values)),
        ]
    }

    fn npz(&self) -> Vec<u8> {
        archive(&self.members(), CompressionMethod::Deflated)
    }
}

/// Rows in groups of columns, and as a dense matrix.
fn rows(n: usize, d: usize, seed: u8) -> (Csr<f32>, Array2<f64>) {
    let mut rng = seeded(seed);
    let mut dense = Array2::zeros((n, d));
    let (mut starts, mut ids, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in 0..d {
            let chance = if j % 3 == i % 3 { 2 } else { 12 };
            if below(&mut rng, chance) == 0 {
                let x = 0.25 + below(&mut rng, 8) as f32 / 8.0;
                ids.push(j as i32);
                values.push(x);
                dense[[i, j]] = f64::from(x);
            }
        }
        starts.push(ids.len() as i32);
    }
    let shape = [n as i64, d as i64];
    let csr = Csr {
        shape,
        starts,
        ids,
        values,
    };
    (csr, dense)
}

fn text(csr: &Csr<f32>) -> String {
    let mut text = "# as svmlight has it\n".to_owned();
    for i in 0..csr.starts.len() - 1 {
        let places = csr.starts[i] as usize..csr.starts[i + 1] as usize;
        text += if i % 2 == 0 { "1" } else { "-1,2 qid:7" };
        for place in places {
            text += &format!(" {}:{}", csr.ids[place], csr.values[place]);
        }
        text += if i % 5 == 0 { " # a note\n" } else { "\r\n" };
    }
    text
}

fn dense_of<T: Number>(rows: &Rows<T>) -> Array2<f64> {
    let mut values = vec![T::default(); rows.len() * rows.dim()];
    rows.read(0, &mut values).unwrap();
    let values = values.into_iter().map(|x| x.widen().to_f64()).collect();
    Array2::from_shape_vec((rows.len(), rows.dim()), values).unwrap()
}

fn matrix(opened: &Opened) -> Array2<f64> {
    match &opened.rows {
        AnySource::F32(rows) => dense_of(rows),
        AnySource::F64(rows) => dense_of(rows),
        other => panic!("{other:?}"),
    }
}

fn error(path: &Path, options: &Options) -> String {
    open(path, options).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn rows_are_those_that_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (csr, dense) = rows(300, 40, 1);
    fs::write(path("a.npz"), csr.npz()).unwrap();
    let stored = archive(&csr.members(), CompressionMethod::Stored);
    fs::write(path("b.npz"), stored).unwrap();
    fs::write(path("c.svmlight"), text(&csr)).unwrap();
    for (name, element) in [
        ("a.npz", ElementType::F32),
        ("b.npz", ElementType::F32),
        ("c.svmlight", ElementType::F64),
    ] {
        let opened = open(path(name), &Options::new()).unwrap();
        assert_eq!(opened.rows.element(), element, "{name}");
        assert_eq!(opened.rows.stored(), Some(csr.ids.len()), "{name}");
        assert_eq!(matrix(&opened), dense, "{name}");
    }
    let narrow = Options::new().element(ElementType::F32).rounded();
    let opened = open(path("c.svmlight"), &narrow).unwrap();
    assert_eq!(opened.rows.element(), ElementType::F32);
    // Columns in any order, and twice.
    let mut turned = rows(300, 40, 1).0;
    for pair in turned.starts.windows(2) {
        let places = pair[0] as usize..pair[1] as usize;
        turned.ids[places.clone()].reverse();
        turned.values[places].reverse();
    }
    fs::write(path("d.npz"), turned.npz()).unwrap();
    assert_eq!(
        matrix(&open(path("d.npz"), &Options::new()).unwrap()),
        dense
    );
    fs::write(path("e.svm"), "0 3:1 1:2 3:0.5\n0\n").unwrap();
    let opened = open(path("e.svm"), &Options::new().width(6)).unwrap();
    let expected = ndarray::array![[0.0, 2.0, 0.0, 1.5, 0.0, 0.0], [0.0; 6]];
    assert_eq!(matrix(&opened), expected);
    // Several files, of which one names fewer columns.
    let files = [path("e.svm"), path("c.svmlight")];
    let opened = open_all(&files, &Options::new()).unwrap();
    assert_eq!((opened.rows.len(), opened.rows.dim()), (302, 40));
    assert_eq!(opened.rows.stored(), Some(csr.ids.len() + 2));
    assert_eq!(matrix(&opened).slice(ndarray::s![2.., ..]), dense);
    // Other numbers.
    let bytes = Csr {
        shape: [2, 3],
        starts: vec![0, 1, 2],
        ids: vec![2, 0],
        values: vec![-3i8, 4],
    };
    fs::write(path("f.npz"), bytes.npz()).unwrap();
    let opened = open(path("f.npz"), &Options::new()).unwrap();
    assert_eq!(opened.rows.element(), ElementType::F32);
    let expected = ndarray::array![[0.0, 0.0, -3.0], [4.0, 0.0, 0.0]];
    assert_eq!(matrix(&opened), expected);
}

/// Lists that have no room are an error before they are read.
#[test]
fn lists_stay_within_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (csr, _) = rows(7_000, 30, 2);
    let npz = folder.path().join("a.npz");
    fs::write(&npz, csr.npz()).unwrap();
    let text = folder.path().join("a.svmlight");
    fs::write(&text, "1 3:1 5:2\n".repeat(20_000)).unwrap();
    for path in [npz, text] {
        assert!(open(&path, &Options::new().memory(Bytes(64 << 20))).is_ok());
        let refused = open(&path, &Options::new().memory(Bytes(100 << 10))).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("memory") && said.contains("allow more"),
            "{said}"
        );
    }
}

/// Fits are those of sparse rows in memory, and labels those of the model.
#[test]
fn fits_and_labels_are_those_of_rows_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let (csr, dense) = rows(700, 30, 2);
    fs::write(&path, csr.npz()).unwrap();
    let AnySource::F32(source) = open(&path, &Options::new()).unwrap().rows else {
        panic!("numbers of type f32");
    };
    let (starts, ids, values) = source.lists().unwrap();
    let data = Sparse::new(source.dim(), starts, ids, values).unwrap();
    let fit = algorithms::spherical_k_means(3).seed(1).build().unwrap();
    let model = fit.fit(&data).unwrap().model;
    let dense = dense.mapv(|x| x as f32);
    let labels = model.predict(&Dense::new(&dense).unwrap()).unwrap();
    assert_eq!(model.predict(&data).unwrap(), labels);
    let out = folder.path().join("labels.csv");
    let mut writer = LabelWriter::create(&out, None, &["density"]).unwrap();
    let see = |_| ControlFlow::Continue(());
    writer
        .label(&model, &coremix_files::ReadAhead::new(source), see)
        .unwrap();
    writer.finish().unwrap();
    let written = fs::read_to_string(out).unwrap();
    let written = written
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap());
    assert!(
        written
            .map(|label| label.parse::<u32>().unwrap())
            .eq(labels)
    );
}

#[test]
fn hostile_files_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let good = || rows(20, 10, 3).0;
    let told = |bytes: Vec<u8>, what: &str| {
        fs::write(path("x.npz"), bytes).unwrap();
        let found = error(&path("x.npz"), &Options::new());
        assert!(found.contains("x.npz") && found.contains(what), "{found}");
    };
    let mut csc = good().members();
    csc[2].1 = letters("csc");
    told(
        archive(&csc, CompressionMethod::Deflated),
        "\"csc\": save it by rows",
    );
    let own = archive(&[("means", npy(&[1.0]))], CompressionMethod::Stored);
    told(own, "no array \"shape\"");
    let mut wrong = good();
    wrong.ids[3] = 10;
    told(wrong.npz(), "a value in column 10, and 10 columns");
    let mut wrong = good();
    wrong.ids[3] = -1;
    told(wrong.npz(), "not those of rows");
    let mut wrong = good();
    wrong.starts[4] = 100;
    told(wrong.npz(), "not those of rows");
    let mut wrong = good();
    wrong.shape[0] = 1 << 40;
    told(wrong.npz(), "not those of rows");
    let mut wrong = good();
    wrong.values.pop();
    told(wrong.npz(), "not those of rows");
    let mut wrong = good();
    wrong.values[2] = f32::NAN;
    told(wrong.npz(), "NaN");
    // Each byte that is lost or changed is an error, or changes nothing that is read.
    let whole = good().npz();
    for place in (0..whole.len()).step_by(7) {
        let mut cut = whole.clone();
        cut.truncate(place);
        fs::write(path("y.npz"), cut).unwrap();
        assert!(open(path("y.npz"), &Options::new()).is_err());
        let mut turned = whole.clone();
        turned[place] ^= 0x55;
        fs::write(path("y.npz"), turned).unwrap();
        let _ = open(path("y.npz"), &Options::new());
    }
    for (line, what) in [
        ("a 1:2\n", "line 1: \"a\" is no label"),
        ("1 1:2\n1 2\n", "line 2: \"2\" is no column"),
        ("1 x:2\n", "\"x:2\" is no column"),
        ("1 -1:2\n", "\"-1:2\" is no column"),
        ("1 1:x\n", "\"1:x\" is no column"),
        ("1 1:inf\n", "not finite"),
        ("1 4294967295:1\n", "beyond all columns"),
    ] {
        fs::write(path("x.svmlight"), line).unwrap();
        let found = error(&path("x.svmlight"), &Options::new());
        assert!(
            found.contains("x.svmlight") && found.contains(what),
            "{found}"
        );
    }
    fs::write(path("x.svmlight"), "1 1:2\n").unwrap();
    for missing in [Missing::Keep, Missing::Drop] {
        let found = error(&path("x.svmlight"), &Options::new().missing(missing));
        assert!(found.contains("what is not there is 0"), "{found}");
    }
    let counted = open(path("x.svmlight"), &Options::new().missing(Missing::Count)).unwrap();
    assert!(counted.missing.is_none());
    let found = error(&path("x.svmlight"), &Options::new().key("id"));
    assert!(found.contains("no names"), "{found}");
}
