//! Files that are damaged, or made to do harm: an error or rows, and never a panic.

use crate::common::{all, seeded};
use crate::damage::{ALL, Became, Kind, damaged, good, keys, open};
use crate::samples::{Arrow, Lists, Parquet, lists, numbers, table};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::DataType;
use bytes::Bytes;
use coremix::data::Source;
use coremix_files::{ArrowFile, Format, Keys, Options, ParquetFile};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// Good files are read as the type that holds everything.
#[test]
fn good_files_are_read() {
    for kind in ALL {
        for seed in 0..30 {
            let file = good(kind, &mut seeded(seed));
            assert_eq!(open::<f64>(kind, file), Became::Read, "{kind:?} {seed}");
        }
    }
}

/// Thousands of accidents for each format.
#[test]
fn damaged_files() {
    for kind in ALL {
        let (mut rng, mut counts) = (seeded(7), [0; 4]);
        let times = if kind == Kind::Parquet { 6_000 } else { 3_000 };
        for round in 0..times {
            let file = damaged(&good(kind, &mut rng), &mut rng);
            let became = match round % 3 {
                0 => open::<f32>(kind, file),
                _ => open::<f64>(kind, file),
            };
            counts[became as usize] += 1;
        }
        assert!(counts[0] > times / 10, "{kind:?}: {counts:?}");
        assert!(counts[3] > times / 100, "{kind:?}: {counts:?}");
    }
}

/// Thousands of accidents for the readers of keys.
#[test]
fn damaged_keys() {
    for kind in [Kind::Parquet, Kind::Arrow, Kind::Csv] {
        let (mut rng, mut counts) = (seeded(8), [0; 4]);
        for _ in 0..3_000 {
            let good = good(kind, &mut rng);
            let became = keys(kind, damaged(&good, &mut rng));
            counts[became as usize] += 1;
        }
        assert_eq!(keys(kind, good(kind, &mut rng)), Became::Read);
        assert!(
            counts[0] + counts[1] > 100 && counts[3] > 100,
            "{kind:?}: {counts:?}"
        );
    }
}

/// Every place at which a file can end.
#[test]
fn truncated_files() {
    for kind in [Kind::Parquet, Kind::Arrow] {
        for seed in 0..4 {
            let file = good(kind, &mut seeded(seed));
            for len in 0..file.len() {
                let became = open::<f64>(kind, file[..len].to_vec());
                let whole = kind == Kind::Arrow && became == Became::Read;
                // A stream may end after any of its messages.
                assert!(became != Became::Read || whole, "{kind:?} {seed} {len}");
            }
        }
    }
}

fn parquet(compression: Compression) -> Vec<u8> {
    let (values, _) = numbers(&DataType::Float64, 2_000, &mut seeded(1));
    let how = Parquet {
        compression,
        second_version: false,
        dictionary: false,
        group: 100_000,
        page: 100_000,
        encoding: None,
    };
    let lists = lists(values, 4, Lists::Small);
    how.write(&RecordBatch::try_from_iter([("v", lists)]).unwrap())
}

/// Replaces the only place of some bytes, searched from the end.
fn replace(file: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let place = file.windows(from.len()).rposition(|part| part == from);
    let place = place.unwrap_or_else(|| panic!("{from:x?} is not there"));
    file.splice(place..place + from.len(), to.iter().copied());
}

/// A number as Thrift writes it: zigzag, seven bits in a byte.
fn zigzag(value: i64) -> Vec<u8> {
    let mut left = (value << 1 ^ value >> 63) as u64;
    let mut bytes = Vec::new();
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes
}

/// Replaces the footer by another one.
fn with_footer(file: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let size = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap());
    let start = file.len() - 8 - size as usize;
    let mut footer = file[start..file.len() - 8].to_vec();
    change(&mut footer);
    let mut changed = file[..start].to_vec();
    changed.extend(&footer);
    changed.extend((footer.len() as u32).to_le_bytes());
    changed.extend(b"PAR1");
    changed
}

fn refused(file: Vec<u8>, part: &str) {
    let opened = ParquetFile::<f64>::over(file, &Options::new());
    let error = match opened {
        Err(error) => error.to_string(),
        Ok(file) => {
            let mut out = vec![0.0; file.dim()];
            file.read(0, &mut out).unwrap_err().to_string()
        }
    };
    assert!(error.contains(part), "{error}");
}

/// Parquet that declares more than there can be. Each is an error before anything of that size is made.
#[test]
fn parquet_bombs() {
    let file = parquet(Compression::SNAPPY);
    // 500 rows of 4 numbers.
    assert!(ParquetFile::<f64>::over(file.clone(), &Options::new()).is_ok());
    let many = |from: i64, to: i64| {
        let (from, to) = (zigzag(from), zigzag(to));
        with_footer(&file, |footer| {
            while let Some(place) = footer.windows(from.len()).position(|part| part == from) {
                footer.splice(place..place + from.len(), to.iter().copied());
            }
        })
    };
    refused(many(500, i64::MAX / 4), "damaged");
    refused(many(500, 1 << 40), "damaged");
    refused(many(500, -500), "damaged");
    // How many numbers there are is known from the pages.
    for numbers in [1 << 50, 1 << 34] {
        let file = ParquetFile::<f64>::over(many(2_000, numbers), &Options::new()).unwrap();
        assert_eq!((file.len(), file.dim()), (500, 4));
        file.read(0, &mut [0.0; 4]).unwrap();
    }
    // A list of structures that is longer than the footer.
    let list = with_footer(&file, |footer| {
        // Field 4 of the file, row groups: one structure.
        replace(
            footer,
            &[0x19, 0x1c],
            &[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
        );
    });
    refused(list, "damaged footer");
    refused(
        with_footer(&file, |footer| footer.clear()),
        "damaged footer",
    );
    // A footer that is longer than the file.
    let mut long = file.clone();
    let place = long.len() - 8;
    long[place..place + 4].copy_from_slice(&[0xff; 4]);
    refused(long, "a footer of 4294967295 bytes");
    refused(b"PAR1PAR1".to_vec(), "not a Parquet file");

    // A page that says that it becomes two gigabytes: its header is the first of the file.
    for compression in crate::samples::compressions() {
        let mut file = parquet(compression);
        // Fields 1 to 3 of the header: the kind of the page, and its two sizes. The second one loses the bytes that the
        // first one gains.
        let sizes = 4 + 2;
        let (_, first) = number(&file, sizes + 1);
        let (stored, second) = number(&file, sizes + 1 + first + 1);
        let says = zigzag(i64::from(i32::MAX));
        let stored = zigzag(stored - (says.len() - first) as i64);
        assert_eq!(stored.len(), second);
        let header = [&[0x15][..], &says, &[0x15], &stored].concat();
        file.splice(sizes..sizes + 1 + first + 1 + second, header);
        refused(file, "that become 2147483647");
    }
}

/// A file with a checksum in the header of its first page, the only one of its column.
fn with_checksum(file: &[u8], checksum: impl FnOnce(&[u8]) -> u32) -> Vec<u8> {
    let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::copy_from_slice(file));
    let total = footer.unwrap().row_group(0).column(0).compressed_size();
    // Fields 1 to 3 of the header: the kind of the page, and its two sizes.
    let uncompressed = 4 + 2 + 1;
    let compressed = uncompressed + number(file, uncompressed).1 + 1;
    let (stored, length) = number(file, compressed);
    let end = 4 + total as usize;
    let sum = checksum(&file[end - stored as usize..end]);
    let field = [&[0x15][..], &zigzag(i64::from(sum as i32))].concat();
    let (from, to) = (zigzag(total), zigzag(total + field.len() as i64));
    assert_eq!(from.len(), to.len());
    let mut longer = with_footer(file, |footer| {
        while let Some(place) = footer.windows(from.len()).position(|part| *part == *from) {
            footer.splice(place..place + from.len(), to.iter().copied());
        }
    });
    // Field 4 is the checksum; the field after it counts from there.
    let next = compressed + length;
    longer[next] -= 0x10;
    longer.splice(next..next, field);
    longer
}

/// Where a file has checksums they are compared: pages without compression show no other sign of damage.
#[test]
fn pages_that_differ_from_their_checksums() {
    for compression in crate::samples::compressions() {
        let plain = parquet(compression);
        let open = |file: Vec<u8>| ParquetFile::<f64>::over(file, &Options::new()).unwrap();
        let expected = all(&open(plain.clone()), 500).unwrap();
        let right = with_checksum(&plain, crc32fast::hash);
        assert!(all(&open(right.clone()), 500).unwrap() == expected);
        let wrong = with_checksum(&plain, |page| crc32fast::hash(page) ^ 1);
        refused(wrong, "column \"v.list.item\": ");
        // A byte in the middle of the page.
        let mut damaged = right;
        damaged[2_000] ^= 1;
        refused(damaged, "checksum mismatch");
    }
}

/// A number as Thrift writes it, and its length.
fn number(file: &[u8], at: usize) -> (i64, usize) {
    let len = 1 + file[at..].iter().position(|byte| byte & 0x80 == 0).unwrap();
    let bytes = file[at..at + len].iter().rev();
    let value = bytes.fold(0, |value, byte| value << 7 | i64::from(byte & 0x7f));
    (value >> 1, len)
}

/// Keys whose lengths are stored as differences: more of them than the page has values.
#[test]
fn more_lengths_than_values() {
    let text = StringArray::from_iter_values((0..500).map(|i| format!("row {i}")));
    let table = RecordBatch::try_from_iter([("text", Arc::new(text) as ArrayRef)]).unwrap();
    for encoding in [
        Encoding::DELTA_BYTE_ARRAY,
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
    ] {
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(encoding)
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, table.schema(), Some(properties)).unwrap();
        writer.write(&table).unwrap();
        writer.close().unwrap();
        let read = |file| {
            let keys = Keys::over(file, Format::Parquet, &Options::new().key("text"));
            keys.unwrap().next(500)
        };
        assert_eq!(read(file.clone()).unwrap().num_rows(), 500);
        // Blocks of 128 numbers in 4 parts, and how many there are.
        let good = [0x80, 1, 4, 0xf4, 0x03];
        let streams = file.windows(5).filter(|part| **part == good).count();
        assert_eq!(
            streams,
            1 + usize::from(encoding == Encoding::DELTA_BYTE_ARRAY)
        );
        let last = file.windows(5).rposition(|part| part == good).unwrap();
        // One more than there are, many more, a block without parts, and one with more parts than numbers.
        for bad in [
            [0x80, 1, 4, 0xf5, 0x03],
            [0x80, 1, 4, 0xff, 0x7f],
            [0x80, 1, 0, 0xf4, 0x03],
            [0x10, 0x20, 4, 0xf4, 0x03],
        ] {
            file[last..last + 5].copy_from_slice(&bad);
            let error = read(file.clone()).unwrap_err().to_string();
            assert!(error.contains("more lengths than values"), "{error}");
        }
        file[last..last + 5].copy_from_slice(&good);
        // After the first length and the smallest difference, a part whose differences are wider than the page is long.
        file[last + 7..last + 11].fill(0xff);
        assert!(read(file).is_err());
    }
}

/// Compressed buffers of Arrow that say that they become very long.
#[test]
fn arrow_bombs() {
    let (values, _) = numbers(&DataType::Float64, 600, &mut seeded(1));
    for codec in [
        arrow_ipc::CompressionType::LZ4_FRAME,
        arrow_ipc::CompressionType::ZSTD,
    ] {
        for stream in [false, true] {
            let how = Arrow {
                compression: Some(codec),
                stream,
                batch: 1_000,
            };
            let file = how.write(&table(vec![("x", values.clone())], false));
            let open = |file| ArrowFile::<f64>::over(file, &Options::new());
            let mut out = vec![0.0; 600];
            open(file.clone()).unwrap().read(0, &mut out).unwrap();
            // The length before the numbers: 4,800 bytes.
            for says in [i64::MAX, 1 << 40, 1 << 20, 4_000, 0, -2, i64::MIN] {
                let mut bomb = file.clone();
                replace(&mut bomb, &4_800i64.to_le_bytes(), &says.to_le_bytes());
                let error = open(bomb).unwrap().read(0, &mut out).unwrap_err();
                assert!(error.to_string().contains("damaged"), "{error}");
            }
            // More rows than there can be.
            for rows in [i64::MAX, 1 << 40, 601, -1] {
                let mut bomb = file.clone();
                while let Some(place) = bomb
                    .windows(8)
                    .position(|part| part == 600i64.to_le_bytes())
                {
                    bomb[place..place + 8].copy_from_slice(&rows.to_le_bytes());
                }
                let read = open(bomb).and_then(|file| {
                    let read = file.read(0, &mut out);
                    read.map_err(|error| coremix::Error::File {
                        path: String::new(),
                        what: error.to_string(),
                    })
                });
                assert!(read.is_err(), "{rows}");
            }
        }
    }
    // Vectors that are longer than all numbers together: the schema is the first message.
    const EACH: usize = 77_777;
    let (values, _) = numbers(&DataType::UInt8, 3 * EACH, &mut seeded(1));
    let how = Arrow {
        compression: None,
        stream: true,
        batch: 1_000,
    };
    let file = how.write(&table(
        vec![("v", lists(values, EACH, Lists::Fixed))],
        false,
    ));
    let open = |file| ArrowFile::<u8>::over(file, &Options::new());
    assert_eq!(open(file.clone()).unwrap().dim(), EACH);
    let each = (EACH as i32).to_le_bytes();
    let place = file.windows(4).position(|part| part == each).unwrap();
    for says in [i32::MAX, 1 << 30, 3 * EACH as i32 + 1, -1, i32::MIN] {
        let mut bomb = file.clone();
        bomb[place..place + 4].copy_from_slice(&says.to_le_bytes());
        assert!(open(bomb).is_err(), "{says}");
    }
    for bytes in [
        &b"ARROW1"[..],
        b"FEA1....FEA1",
        b"",
        &[0xff; 100],
        &[0; 100],
    ] {
        assert!(ArrowFile::<f64>::over(bytes.to_vec(), &Options::new()).is_err());
    }
}
