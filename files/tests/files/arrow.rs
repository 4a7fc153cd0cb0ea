//! Arrow files and streams with dictionaries, and files that only their footer describes.

use crate::common::{all, same_rows, seeded};
use crate::samples::{Arrow, Lists, lists, numbers, table};
use arrow_array::builder::{ListBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int8Array, RecordBatch, StringArray,
};
use arrow_cast::display::array_value_to_string;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::DataType;
use coremix::data::Source;
use coremix_files::{AnySource, ArrowFile, Format, Keys, LabelWriter, Options, open};
use ndarray::Array2;
use std::sync::Arc;

/// A column of names, each coded by the place of it in a dictionary of those of this batch.
fn coded(names: &[&str]) -> ArrayRef {
    let keys = Int8Array::from_iter_values(0..names.len() as i8);
    let names = StringArray::from(names.to_vec());
    Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(names)))
}

fn batch(first: usize, name: ArrayRef) -> RecordBatch {
    let x = (first..first + name.len()).map(|i| i as f64);
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values(x));
    RecordBatch::try_from_iter([("x", x), ("name", name)]).unwrap()
}

fn stream(batches: &[RecordBatch], how: DictionaryHandling) -> Vec<u8> {
    let how = IpcWriteOptions::default().with_dictionary_handling(how);
    let (mut file, schema) = (Vec::new(), batches[0].schema());
    let mut writer = StreamWriter::try_new_with_options(&mut file, &schema, how).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    file
}

fn file(batches: &[RecordBatch], how: DictionaryHandling) -> Vec<u8> {
    let how = IpcWriteOptions::default().with_dictionary_handling(how);
    let (mut file, schema) = (Vec::new(), batches[0].schema());
    let mut writer = FileWriter::try_new_with_options(&mut file, &schema, how).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    file
}

/// All keys, `piece` of them at once.
fn names(file: &[u8], rows: usize, piece: usize) -> Vec<String> {
    let options = Options::new().key("name");
    let mut keys = Keys::over(file.to_vec(), Format::Arrow, &options).unwrap();
    let mut found = Vec::new();
    while found.len() < rows {
        let batch = keys.next(piece.min(rows - found.len())).unwrap();
        let column = batch.column(0);
        found.extend((0..column.len()).map(|i| array_value_to_string(column, i).unwrap()));
    }
    found
}

#[test]
fn a_dictionary_holds_until_another_one_replaces_it() {
    let parts = [
        &["ann", "bob"][..],
        &["cat", "dan"],
        &["ann"],
        &["eve", "cat", "fay"],
    ];
    let expected: Vec<&str> = parts.concat();
    let (mut batches, mut first) = (Vec::new(), 0);
    for part in parts {
        batches.push(batch(first, coded(part)));
        first += part.len();
    }
    let file = stream(&batches, DictionaryHandling::Resend);
    for piece in [1, 2, 3, 8] {
        assert_eq!(names(&file, 8, piece), expected);
    }
    // The command writes labels so: keys, with rows that are read in another order.
    let folder = tempfile::tempdir().unwrap();
    let (path, labels) = (folder.path().join("x.arrows"), folder.path().join("l.csv"));
    std::fs::write(&path, &file).unwrap();
    let opened = open(&path, &Options::new().key("name")).unwrap();
    let AnySource::F64(rows) = opened.rows else {
        panic!("numbers of type f64");
    };
    let known = Array2::from_shape_fn((8, 1), |(i, _)| i as f64);
    same_rows(&*rows, &known);
    let mut writer = LabelWriter::create(&labels, opened.keys, &[]).unwrap();
    writer.write(&[0, 1, 2, 3, 4, 5, 6, 7], &[]).unwrap();
    writer.finish().unwrap();
    let text = std::fs::read_to_string(&labels).unwrap();
    let lines = expected
        .iter()
        .enumerate()
        .map(|(i, name)| format!("{name},{i}\n"));
    assert_eq!(text, format!("name,label\n{}", lines.collect::<String>()));
}

/// A dictionary that grows, in a stream and in a file.
#[test]
fn a_dictionary_can_be_added_to() {
    let parts = [
        &["ann", "bob"][..],
        &["ann", "bob", "cat"],
        &["ann", "bob", "cat", "dan"],
    ];
    let expected: Vec<&str> = parts.concat();
    let batches: Vec<_> = parts.iter().map(|part| batch(0, coded(part))).collect();
    for file in [
        stream(&batches, DictionaryHandling::Delta),
        file(&batches, DictionaryHandling::Delta),
        stream(&batches, DictionaryHandling::Resend),
    ] {
        assert_eq!(names(&file, 9, 9), expected);
        assert_eq!(names(&file, 9, 2), expected);
    }
}

/// Names within lists, and more names together than the codes of one batch can tell apart.
#[test]
fn dictionaries_within_lists_and_of_many_values() {
    let lists = |of: [&str; 3]| {
        let mut lists = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
        lists.append_value([Some(of[0]), Some(of[1])]);
        lists.append_value([Some(of[2])]);
        batch(0, Arc::new(lists.finish()))
    };
    let batches = [
        lists(["a", "b", "a"]),
        lists(["c", "d", "d"]),
        lists(["b", "a", "e"]),
    ];
    let file = stream(&batches, DictionaryHandling::Resend);
    let expected = ["[a, b]", "[a]", "[c, d]", "[d]", "[b, a]", "[e]"];
    assert_eq!(names(&file, 6, 1), expected);
    assert_eq!(names(&file, 6, 6), expected);
    let all: Vec<String> = (0..500).map(|i| format!("name {i}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let batches = all.chunks(100).map(|part| batch(0, coded(part)));
    let batches: Vec<_> = batches.collect();
    let file = stream(&batches, DictionaryHandling::Resend);
    assert_eq!(names(&file, 500, 500), all);
    assert_eq!(names(&file, 500, 70), all);
}

/// Numbers that are coded, whose dictionary changes from batch to batch: in any order of reads.
#[test]
fn numbers_that_are_coded() {
    let mut rng = seeded(3);
    for kind in [DataType::Float64, DataType::Int32, DataType::UInt8] {
        let (mut batches, mut known) = (Vec::new(), Vec::new());
        for part in 0..6 {
            let (values, numbers) = numbers(&kind, 20 + part, &mut rng);
            let keys = Int8Array::from_iter_values((0..70).map(|i| (i * 7 % (20 + part)) as i8));
            known.extend(keys.values().iter().map(|key| numbers[*key as usize]));
            let array = DictionaryArray::<Int8Type>::new(keys, values);
            batches.push(RecordBatch::try_from_iter([("v", Arc::new(array) as ArrayRef)]).unwrap());
        }
        let rows = Array2::from_shape_vec((420, 1), known).unwrap();
        let bytes = stream(&batches, DictionaryHandling::Resend);
        same_rows(
            &ArrowFile::<f64>::over(bytes, &Options::new()).unwrap(),
            &rows,
        );
        let bytes = file(&batches[..1], DictionaryHandling::Resend);
        let rows = rows.slice(ndarray::s![..70, ..]).to_owned();
        same_rows(
            &ArrowFile::<f64>::over(bytes, &Options::new()).unwrap(),
            &rows,
        );
    }
    // A null among the values is one where it is used.
    let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    let array = DictionaryArray::<Int8Type>::new(Int8Array::from(vec![0, 0, 1]), values);
    let batch = RecordBatch::try_from_iter([("v", Arc::new(array) as ArrayRef)]).unwrap();
    let bytes = stream(&[batch], DictionaryHandling::Resend);
    let rows = ArrowFile::<f64>::over(bytes, &Options::new()).unwrap();
    rows.read(0, &mut [0.0; 2]).unwrap();
    let error = rows.read(0, &mut [0.0; 3]).unwrap_err().to_string();
    assert!(error.contains("column \"v\", row 2: a null"), "{error}");
}

/// Polars writes files whose first bytes are no message: the footer says where all of them are.
#[test]
fn a_file_is_read_by_its_footer() {
    let mut rng = seeded(4);
    for compression in [None, Some(arrow_ipc::CompressionType::ZSTD)] {
        for of_lists in [false, true] {
            let how = Arrow {
                compression,
                stream: false,
                batch: 100,
            };
            let (values, known) = numbers(&DataType::Float64, 900, &mut rng);
            let (columns, rows) = match of_lists {
                true => (lists(values, 3, Lists::Fixed), (300, 3)),
                false => (values, (900, 1)),
            };
            let rows = Array2::from_shape_vec(rows, known).unwrap();
            let mut bytes = how.write(&table(vec![("v", columns)], true));
            let tail: [u8; 10] = bytes[bytes.len() - 10..].try_into().unwrap();
            let size = arrow_ipc::reader::read_footer_length(tail).unwrap();
            let footer = bytes[bytes.len() - 10 - size..bytes.len() - 10].to_vec();
            let footer = arrow_ipc::root_as_footer(&footer).unwrap();
            let first = footer.recordBatches().unwrap().get(0).offset() as usize;
            for other in [0, 4, 0xff] {
                bytes[8..first].fill(other);
                let file = ArrowFile::<f64>::over(bytes.clone(), &Options::new()).unwrap();
                same_rows(&file, &rows);
            }
            // A message that the footer places elsewhere is none.
            let at = first.to_le_bytes();
            let place = bytes.windows(8).rposition(|part| part == at).unwrap();
            for other in [first + 8, bytes.len() - 8, usize::MAX / 2] {
                let mut moved = bytes.clone();
                moved[place..place + 8].copy_from_slice(&other.to_le_bytes());
                let read = ArrowFile::<f64>::over(moved, &Options::new());
                assert!(
                    read.map_or(true, |file| all(&file, 900).is_err()),
                    "{other}"
                );
            }
        }
    }
}
