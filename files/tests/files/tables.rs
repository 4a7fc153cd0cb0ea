//! Tables of numbers in `.npy` and vector files, and what is wrong with them.

use crate::common::all;
use crate::fits::blobs;
use coremix::data::{Blocks, Source};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, testing};
use coremix_files::{NpyFile, VectorFile, VectorFormat};
use ndarray::{Array2, ShapeBuilder};
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder that goes with the test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

/// An `.npy` file, written naively.
fn npy(version: u8, descr: &str, columns: bool, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let order = if columns { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (text.len() + 11) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend((text.len() as u16).to_le_bytes()),
        _ => file.extend((text.len() as u32).to_le_bytes()),
    }
    file.extend(text.as_bytes());
    file.extend(numbers);
    file
}

#[test]
fn npy_files_as_other_code_writes_them() {
    let folder = Folder::new();
    let path = folder.path("x.npy");
    let x: Array2<f64> = blobs(1_131, 5);
    let columns = Array2::from_shape_fn(x.raw_dim().f(), |i| x[i]);
    assert!(!columns.is_standard_layout());
    for x in [&x, &columns] {
        ndarray_npy::write_npy(&path, x).unwrap();
        for piece in [1, 7, 512, 1_131] {
            assert_eq!(
                all(&NpyFile::<f64>::open(&path).unwrap(), piece).unwrap(),
                x
            );
        }
        assert!(NpyFile::<f32>::open(&path).is_err());
        ndarray_npy::write_npy(&path, &x.mapv(|x| x as f32)).unwrap();
        let narrow = NpyFile::<f32>::open(&path).unwrap();
        assert_eq!(all(&narrow, 100).unwrap(), x.mapv(|x| x as f32));
        let wide = NpyFile::<f64>::open(&path).unwrap();
        assert_eq!(all(&wide, 100).unwrap(), x.mapv(|x| f64::from(x as f32)));
        let bytes = x.mapv(|x| (128.0 + 9.0 * x).clamp(0.0, 255.0) as u8);
        ndarray_npy::write_npy(&path, &bytes).unwrap();
        let file = NpyFile::<u8>::open(&path).unwrap();
        assert_eq!(all(&file, 100).unwrap(), bytes);
        assert_eq!(
            all(&NpyFile::<f32>::open(&path).unwrap(), 9).unwrap(),
            bytes.mapv(f32::from)
        );
    }
    // A fit, once with rows column after column.
    let dense = Dense::new(x.view()).unwrap();
    ndarray_npy::write_npy(&path, &columns).unwrap();
    let data = Blocks::new(NpyFile::<f64>::open(&path).unwrap()).unwrap();
    testing::data(&data, &dense).unwrap();
    // It is lost while it is open.
    std::fs::write(&path, b"").unwrap();
    let error = algorithms::k_means(4)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("NpyFile: row "), "{error}");
    assert!(error.contains("x.npy: "), "{error}");
}

/// All types, versions and orders.
#[test]
fn npy_files_of_all_types() {
    fn check<T: Float + coremix_files::Number>(
        folder: &Folder,
        descr: &str,
        stored: &[f64],
        bytes: Vec<u8>,
    ) {
        for version in 1..=3 {
            for columns in [false, true] {
                let file = npy(version, descr, columns, "(3, 2)", &bytes);
                let file = NpyFile::<T>::open(folder.write("x.npy", &file)).unwrap();
                let rows = all(&file, 2).unwrap();
                for ((n, j), x) in rows.indexed_iter() {
                    let place = if columns { j * 3 + n } else { n * 2 + j };
                    assert_eq!(x.to_f64(), stored[place], "{descr}");
                }
            }
        }
    }
    let folder = Folder::new();
    macro_rules! types {
        ($float:ty, $($descr:expr => $t:ty),+) => {$({
            let numbers = [0 as $t, 1 as $t, <$t>::MAX / 2 as $t, <$t>::MIN / 2 as $t, 7 as $t, 100 as $t];
            let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            let stored: Vec<f64> = numbers.iter().map(|&x| x as f64).collect();
            check::<$float>(&folder, $descr, &stored, bytes);
        })+};
    }
    types!(f32, "<f4" => f32, "|u1" => u8, "|i1" => i8, "<u2" => u16, "<i2" => i16);
    types!(f64, "<f8" => f64, "<f4" => f32, "|u1" => u8, "|i1" => i8, "<u2" => u16, "<i2" => i16);
    types!(f64, "<u4" => u32, "<i4" => i32);
    let bits = [0u16, 0x3c00, 0xc100, 1, 0x7bff, 0x8400];
    let half: Vec<u8> = bits.iter().flat_map(|x| x.to_le_bytes()).collect();
    let stored = [0.0, 1.0, -2.5, 2f64.powi(-24), 65_504.0, -2f64.powi(-14)];
    check::<f32>(&folder, "<f2", &stored, half.clone());
    check::<f64>(&folder, "<f2", &stored, half);
    let refused = |file: Vec<u8>, part: &str| {
        let path = folder.write("x.npy", &file);
        let error = NpyFile::<f32>::open(&path).map(|_| ()).unwrap_err();
        let shown = error.to_string();
        assert!(matches!(error, Error::File { .. }), "{shown}");
        assert!(shown.contains("x.npy: ") && shown.contains(part), "{shown}");
    };
    refused(npy(1, "<f8", false, "(3, 2)", &[0; 48]), "f64");
    refused(npy(1, "<i4", false, "(3, 2)", &[0; 24]), "i32");
    refused(npy(1, ">f4", false, "(3, 2)", &[0; 24]), ">f4");
    refused(npy(1, "<f4", false, "(3, 2)", &[0; 23]), "need ");
    refused(npy(1, "<f4", false, "(3, 2)", &[0; 25]), "need ");
    refused(npy(1, "<f4", false, "(6,)", &[0; 24]), "1 axes");
    refused(npy(1, "<f4", false, "(3, 2, 1)", &[0; 24]), "3 axes");
    refused(npy(4, "<f4", false, "(3, 2)", &[0; 24]), "version 4.0");
    let huge = format!("({0}, {0})", u64::MAX);
    refused(npy(1, "<f4", false, &huge, &[0; 24]), "need more bytes");
    refused(b"".to_vec(), "not an .npy file");
    refused(b"\x93NUMPY\x02\x00\xff\xff".to_vec(), "within the length");
    refused(
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
        "must not exceed",
    );
    refused(
        b"\x93NUMPY\x02\x00\xff\xff\x00\x00".to_vec(),
        "the header ends at byte 65547",
    );
    assert!(NpyFile::<f32>::open(folder.path("")).is_err());
    assert!(NpyFile::<f32>::open(folder.path("none.npy")).is_err());
    let none = folder.write("x.npy", &npy(1, "<f4", false, "(0, 2)", &[]));
    let error = Blocks::new(NpyFile::<f32>::open(none).unwrap())
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error, Error::Empty { what: "data" });
    let file = folder.write("x.npy", &npy(1, "<f4", false, "(3, 2)", &[0; 24]));
    let file = NpyFile::<f32>::open(file).unwrap();
    let mut out = [0.0; 4];
    assert!(file.read(1, &mut out).is_ok());
    assert!(file.read(2, &mut out).is_err() && file.read(usize::MAX, &mut out).is_err());
    assert!(file.read(0, &mut out[..3]).is_err());
}

/// Headers as other code may write them, and headers that say something else.
#[test]
fn npy_headers() {
    let open = |text: &str, numbers: usize| {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend(vec![0; numbers]);
        let file = NpyFile::<f32>::over(file);
        file.map(|file| (file.len(), file.dim()))
            .map_err(|error| error.to_string())
    };
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }      \n";
    assert_eq!(open(text, 24), Ok((3, 2)));
    let text = "{\"shape\":(3,2,),\"fortran_order\":True,\"descr\":\"|u1\"}";
    assert_eq!(open(text, 6), Ok((3, 2)));
    let refused = |descr, order, shape, part: &str| {
        let entries = [("descr", descr), ("fortran_order", order), ("shape", shape)];
        let entries = entries.map(|(key, value)| format!("'{key}': {value}"));
        let error = open(&format!("{{{}}}", entries.join(", ")), 24).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    for (descr, part) in [
        ("'>f4'", "\">f4\""),
        ("'<c8'", "\"<c8\""),
        ("'|f4'", "\"|f4\""),
        ("[('a', '<f4')]", "[('a'"),
    ] {
        refused(descr, "False", "(3, 2)", part);
    }
    for (shape, part) in [
        ("()", "0 axes"),
        ("(3,)", "1 axes"),
        ("(3, 2, 1)", "3 axes"),
        ("(-3, 2)", "not a number"),
        ("(99999999999999999999999, 2)", "not a number"),
        ("(3 2)", "not a number"),
        ("3", "\"shape\""),
    ] {
        refused("'<f4'", "True", shape, part);
    }
    refused("'<f4'", "0", "(3, 2)", "neither True");
    for text in ["", "{}", "{'descr' '<f4'}", "{'descr': '<f4"] {
        assert!(open(text, 24).unwrap_err().contains("\"descr\""), "{text}");
    }
}

/// A vector file, written naively.
fn vectors(format: VectorFormat, rows: &Array2<u8>) -> Vec<u8> {
    let (n, d) = rows.dim();
    let mut file = Vec::new();
    let counted = matches!(format, VectorFormat::Fvecs | VectorFormat::Bvecs);
    if !counted {
        file.extend((n as u32).to_le_bytes());
        file.extend((d as u32).to_le_bytes());
    }
    for row in rows.outer_iter() {
        if counted {
            file.extend((d as i32).to_le_bytes());
        }
        for &x in row {
            match format {
                VectorFormat::Fvecs | VectorFormat::Fbin => file.extend(f32::from(x).to_le_bytes()),
                VectorFormat::Bvecs | VectorFormat::U8bin => file.push(x),
            }
        }
    }
    file
}

const FORMATS: [(&str, VectorFormat); 4] = [
    ("x.fvecs", VectorFormat::Fvecs),
    ("x.bvecs", VectorFormat::Bvecs),
    ("x.fbin", VectorFormat::Fbin),
    ("x.u8bin", VectorFormat::U8bin),
];

#[test]
fn vector_files() {
    let folder = Folder::new();
    let rows = Array2::from_shape_fn((1_131, 5), |(n, j)| ((n * (j + 3)) % 251) as u8);
    for (name, format) in FORMATS {
        let mut bytes = vectors(format, &rows);
        let path = folder.write(name, &bytes);
        assert_eq!(VectorFormat::of(&path), Ok(format));
        for piece in [1, 100, 1_131] {
            let file = VectorFile::<f32>::open(&path).unwrap();
            assert_eq!(all(&file, piece).unwrap(), rows.mapv(f32::from));
        }
        let file = VectorFile::<f64>::open(&path).unwrap();
        assert_eq!(all(&file, 9).unwrap(), rows.mapv(f64::from));
        let file = VectorFile::<u8>::open(&path);
        assert_eq!(
            file.is_ok(),
            name.contains('b') && name != "x.fbin",
            "{name}"
        );
        if let Ok(file) = file {
            let data = Blocks::new(file).unwrap();
            testing::data(&data, &Dense::new(rows.view()).unwrap()).unwrap();
        }
        // One byte less or more.
        for len in [bytes.len() - 1, bytes.len() + 1, 3, 0] {
            bytes.resize(len, 0);
            let path = folder.write(name, &bytes);
            let error = VectorFile::<f32>::open(&path).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
    // A row of another length, in a file of the right length.
    let mut bytes = vectors(VectorFormat::Bvecs, &rows);
    bytes[9 * 600] = 4;
    let path = folder.write("x.bvecs", &bytes);
    let error = Blocks::new(VectorFile::<u8>::open(&path).unwrap())
        .map(|_| ())
        .unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains("row 600 has 4 numbers, but row 0 has 5"),
        "{shown}"
    );
    assert!(
        shown.starts_with("VectorFile: row 600 could not be read: "),
        "{shown}"
    );
    for start in [0i32, -1, i32::MIN, i32::MAX] {
        let path = folder.write("x.fvecs", &start.to_le_bytes());
        assert!(VectorFile::<f32>::open(&path).is_err());
    }
    let path = folder.write("x.fbin", &[0xff; 8]);
    assert!(VectorFile::<f32>::open(&path).is_err());
    assert!(VectorFile::<f32>::open(folder.write("x.bin", &[0; 8])).is_err());
}

/// Damages a good file by one to four accidents.
fn damaged(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut file = good.to_vec();
    let below = |rng: &mut Rng, n: usize| ((rng.uniform() * n as f64) as usize).min(n - 1);
    // Most of what can go wrong is in the header.
    let place = |rng: &mut Rng, file: &[u8]| match below(rng, 4) {
        0 | 1 => below(rng, file.len()),
        _ => below(rng, file.len().min(80)),
    };
    for _ in 0..=below(rng, 8).saturating_sub(4) {
        if file.is_empty() {
            break;
        }
        let at = place(rng, &file);
        match below(rng, 9) {
            0 | 7 | 8 => file[at] = below(rng, 256) as u8,
            1 => file[at] ^= 1 << below(rng, 8),
            2 => file.truncate(at),
            3 => drop(file.remove(at)),
            4 => file.insert(
                at,
                b"0123456789(){},:' \"<f4u18iTrueFalse\x00\xff"[below(rng, 36)],
            ),
            5 => {
                let other = place(rng, &file);
                file.swap(at, other);
            }
            _ => {
                let end = (at + below(rng, 9)).min(file.len());
                let part = file[at..end].to_vec();
                file.splice(at..at, part);
            }
        }
    }
    file
}

/// Files that accidents happened to are errors, or hold what they say: nothing panics.
#[test]
fn damaged_npy_files() {
    let folder = Folder::new();
    let mut rng = Rng::from_seed(13);
    let numbers: Vec<u8> = (0..48).map(|i| i * 5).collect();
    let path = folder.path("x.npy");
    let (mut opened, mut refused) = (0, 0);
    for round in 0..6_000 {
        let columns = round % 2 == 0;
        let (descr, size) = [("<f4", 4), ("<f8", 8), ("|u1", 1)][round / 2 % 3];
        let good = npy(
            1 + (round % 3) as u8,
            descr,
            columns,
            "(3, 2)",
            &numbers[..6 * size],
        );
        let file = damaged(&good, &mut rng);
        std::fs::write(&path, &file).unwrap();
        let Ok(source) = NpyFile::<f64>::open(&path) else {
            refused += 1;
            continue;
        };
        opened += 1;
        // The numbers are the end of the file; their type and order are in its text.
        let (n, d) = (source.len(), source.dim());
        let text = String::from_utf8_lossy(&file);
        let found = ["<f2", "<f4", "<f8", "u1", "i1", "<u2", "<i2", "<u4", "<i4"].into_iter();
        let size = found
            .clone()
            .find(|name| text.contains(name))
            .map(|name| name[name.len() - 1..].parse::<usize>().unwrap());
        let size = size.unwrap();
        let tail = &file[file.len() - n * d * size..];
        let rows = all(&source, 2).unwrap();
        for ((i, j), x) in rows.indexed_iter() {
            let place = if text.contains("True") {
                j * n + i
            } else {
                i * d + j
            };
            let bytes = &tail[place * size..][..size];
            let expected = match found.clone().find(|name| text.contains(name)).unwrap() {
                "<f2" => {
                    let bits = i32::from(u16::from_le_bytes(bytes.try_into().unwrap()));
                    let (sign, exponent) = (1.0 - f64::from(bits >> 15) * 2.0, bits >> 10 & 31);
                    let fraction = f64::from(bits & 1023) / 1024.0;
                    match exponent {
                        0 => sign * fraction * 2f64.powi(-14),
                        31 if fraction == 0.0 => sign * f64::INFINITY,
                        31 => *x,
                        _ => sign * (1.0 + fraction) * 2f64.powi(exponent - 15),
                    }
                }
                "<f4" => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
                "<f8" => f64::from_le_bytes(bytes.try_into().unwrap()),
                "u1" => f64::from(bytes[0]),
                "i1" => f64::from(bytes[0] as i8),
                "<u2" => f64::from(u16::from_le_bytes(bytes.try_into().unwrap())),
                "<i2" => f64::from(i16::from_le_bytes(bytes.try_into().unwrap())),
                "<u4" => f64::from(u32::from_le_bytes(bytes.try_into().unwrap())),
                _ => f64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
            };
            assert_eq!(x.to_bits(), expected.to_bits(), "{text}");
        }
        // Where other code reads the file too, it reads the same.
        if let Ok(other) = ndarray_npy::read_npy::<_, Array2<f64>>(&path) {
            assert_eq!(other.mapv(f64::to_bits), rows.mapv(f64::to_bits));
        }
        if let Ok(data) = Blocks::new(source) {
            let _ = algorithms::k_means(1).build().unwrap().fit(&data);
        }
    }
    assert!(opened > 200 && refused > 2_000, "{opened} {refused}");
}

#[test]
fn damaged_vector_files() {
    let folder = Folder::new();
    let mut rng = Rng::from_seed(14);
    let rows = Array2::from_shape_fn((5, 3), |(n, j)| (40 * n + 7 * j) as u8);
    let (mut opened, mut refused) = (0, 0);
    for round in 0..3_000 {
        let (name, format) = FORMATS[round % 4];
        let file = damaged(&vectors(format, &rows), &mut rng);
        let path = folder.write(name, &file);
        let Ok(source) = VectorFile::<f32>::open(&path) else {
            refused += 1;
            continue;
        };
        let (n, d) = (source.len(), source.dim());
        let size = if name.contains("fb") || name.contains("fv") {
            4
        } else {
            1
        };
        let before = if name.contains("vecs") { 4 } else { 0 };
        assert_eq!(
            file.len(),
            n * (before + d * size) + if before == 0 { 8 } else { 0 }
        );
        let Ok(rows) = all(&source, 2) else {
            // Rows of other lengths are noticed when they are read.
            assert_eq!(before, 4);
            refused += 1;
            continue;
        };
        opened += 1;
        for ((i, j), x) in rows.indexed_iter() {
            let start = if before == 0 { 8 } else { 0 };
            let bytes = &file[start + i * (before + d * size) + before + j * size..][..size];
            let expected = match bytes.try_into() {
                Ok(four) => f32::from_le_bytes(four),
                Err(_) => f32::from(bytes[0]),
            };
            assert_eq!(x.to_bits(), expected.to_bits());
        }
        if let Ok(data) = Blocks::new(source) {
            let _ = algorithms::k_means(1).build().unwrap().fit(&data);
        }
    }
    assert!(opened > 100 && refused > 1_000, "{opened} {refused}");
}
