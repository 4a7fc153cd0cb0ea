//! Accidents that happen to files, and good files for them to happen to.

use crate::samples::{Arrow, KINDS, Lists, Parquet, csv, lists, numbers, table};
use arrow_schema::DataType;
use coremix::data::Source;
use coremix_files::{ArrowFile, CsvFile, Format, Keys, Number, Options, ParquetFile};
use coremix_files::{NpyFile, VectorFile, VectorFormat};
use proptest::prelude::Rng;

/// A format of files that accidents happen to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Parquet,
    Arrow,
    Csv,
    Npy,
    Vectors(VectorFormat),
}

pub(crate) const ALL: [Kind; 8] = [
    Kind::Parquet,
    Kind::Arrow,
    Kind::Csv,
    Kind::Npy,
    Kind::Vectors(VectorFormat::Fvecs),
    Kind::Vectors(VectorFormat::Bvecs),
    Kind::Vectors(VectorFormat::Fbin),
    Kind::Vectors(VectorFormat::U8bin),
];

fn below(rng: &mut impl Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

/// A good file, of any settings.
pub(crate) fn good(kind: Kind, rng: &mut impl Rng) -> Vec<u8> {
    let (n, d) = (1 + below(rng, 120), 1 + below(rng, 4));
    let columns = |rng: &mut _| match below(rng, 3) {
        0 => {
            let (values, _) = numbers(&KINDS[below(rng, 11)], n * d, rng);
            let is = [Lists::Small, Lists::Large, Lists::Fixed][below(rng, 3)];
            table(vec![("v", lists(values, d, is))], below(rng, 2) == 0)
        }
        _ => {
            let (a, _) = numbers(&KINDS[below(rng, 11)], n, rng);
            let (b, _) = numbers(&KINDS[below(rng, 11)], n, rng);
            table(vec![("a", a), ("b", b)], below(rng, 2) == 0)
        }
    };
    match kind {
        Kind::Parquet => {
            let table = columns(rng);
            Parquet::any(rng).write(&table)
        }
        Kind::Arrow => {
            let table = columns(rng);
            Arrow::any(rng).write(&table)
        }
        Kind::Csv => {
            let (_, a) = numbers(&DataType::Float64, n, rng);
            let (_, b) = numbers(&DataType::UInt8, n, rng);
            csv(&["a", "b"], &[a, b], ',', true)
        }
        Kind::Npy => {
            let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {d}), }}");
            file.extend(text.as_bytes());
            file.resize(127, b' ');
            file.push(b'\n');
            (0..n * d).for_each(|i| file.extend((i as f32).to_le_bytes()));
            file
        }
        Kind::Vectors(format) => {
            let counted = matches!(format, VectorFormat::Fvecs | VectorFormat::Bvecs);
            let mut file = Vec::new();
            if !counted {
                file.extend((n as u32).to_le_bytes());
                file.extend((d as u32).to_le_bytes());
            }
            for i in 0..n {
                if counted {
                    file.extend((d as u32).to_le_bytes());
                }
                for j in 0..d {
                    match format {
                        VectorFormat::Fvecs | VectorFormat::Fbin => {
                            file.extend(((i * j) as f32).to_le_bytes());
                        }
                        _ => file.push((i * j) as u8),
                    }
                }
            }
            file
        }
    }
}

/// Damages a good file by a few accidents: most of them where the file says what it is.
pub(crate) fn damaged(good: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    let mut file = good.to_vec();
    // Parts of another life of the file, and numbers at the ends of their ranges.
    let numbers: [&[u8]; 8] = [
        &[0xff; 8],
        &[0xff, 0xff, 0xff, 0x7f],
        &[0, 0, 0, 0x80],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0; 8],
        &[1, 0, 0, 0],
        &[0x80],
    ];
    for _ in 0..=below(rng, 6).saturating_sub(2) {
        if file.is_empty() {
            break;
        }
        let len = file.len();
        let at = match below(rng, 5) {
            0 => below(rng, len),
            1 => below(rng, len.min(100)),
            _ => len - 1 - below(rng, len.min(1_200)),
        };
        match below(rng, 10) {
            0 | 1 => file[at] = rng.next_u32() as u8,
            2 | 3 => file[at] ^= 1 << below(rng, 8),
            4 => file.truncate(at),
            5 => {
                let end = (at + 1 + below(rng, 9)).min(len);
                file.drain(at..end);
            }
            6 => {
                let end = (at + 1 + below(rng, 40)).min(len);
                let part = file[at..end].to_vec();
                let to = below(rng, len);
                file.splice(to..to, part);
            }
            7 | 8 => {
                let number = numbers[below(rng, numbers.len())];
                let end = (at + number.len()).min(len);
                file.splice(at..end, number.iter().copied());
            }
            _ => {
                let other = below(rng, len);
                file.swap(at, other);
            }
        }
    }
    file
}

/// The outcome of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Became {
    /// It could not be opened.
    Refused,
    /// It was opened, but not all of its rows could be read.
    Broken,
    /// Not all of its rows could be read, because a decoder panicked, which was caught.
    Caught,
    /// It has rows.
    Read,
}

fn outcome(error: &dyn std::fmt::Display, became: Became) -> Became {
    match error.to_string().contains("the decoder stopped with") {
        true => Became::Caught,
        false => became,
    }
}

/// Reads all rows, some at once, and then some of them again.
fn read<T: Number>(source: coremix::Result<impl Source<Element = T>>) -> Became {
    let source = match source {
        Ok(source) => source,
        Err(error) => return outcome(&error, Became::Refused),
    };
    let (n, d) = (source.len(), source.dim());
    // Files can be of very many rows that take no bytes.
    let mut out = vec![T::default(); 50.min(n) * d];
    let mut rows = (0..n).step_by(50).take(200).chain([n / 2, n / 3]);
    let broken = rows.find_map(|first| {
        let count = 50.min(n - first);
        source.read(first, &mut out[..count * d]).err()
    });
    match broken {
        Some(error) => outcome(&error, Became::Broken),
        None => Became::Read,
    }
}

/// Reads the keys of a file: text, and lists of text.
pub(crate) fn keys(kind: Kind, file: Vec<u8>) -> Became {
    let format = match kind {
        Kind::Parquet => Format::Parquet,
        Kind::Arrow => Format::Arrow,
        _ => Format::Csv,
    };
    let mut options = Options::new().key("text");
    if kind != Kind::Csv {
        options = options.key("texts");
    }
    let mut keys = match Keys::over(file, format, &options) {
        Ok(keys) => keys,
        Err(error) => return outcome(&error, Became::Refused),
    };
    // No good file has as many rows.
    for _ in 0..1_000 {
        match keys.next(1) {
            Ok(batch) => assert_eq!(batch.num_rows(), 1),
            Err(error) if error.to_string().contains("fewer keys than rows") => break,
            Err(error) => return outcome(&error, Became::Broken),
        }
    }
    Became::Read
}

/// Opens a file as rows of `T`, and reads it.
pub(crate) fn open<T: Number>(kind: Kind, file: Vec<u8>) -> Became {
    let options = Options::new();
    match kind {
        Kind::Parquet => read(ParquetFile::<T>::over(file, &options)),
        Kind::Arrow => read(ArrowFile::<T>::over(file, &options)),
        Kind::Csv => read(CsvFile::<T>::over(file, &options)),
        Kind::Npy => read(NpyFile::<T>::over(file)),
        Kind::Vectors(format) => read(VectorFile::<T>::over(file, format)),
    }
}
