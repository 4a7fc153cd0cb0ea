//! A pass over a file reads each of its bytes about once, in any of the orders in which fits read.

use crate::common::seeded;
use crate::samples::{Arrow, Parquet, csv, numbers, table};
use arrow_schema::DataType;
use coremix::data::Source;
use coremix_files::ReadAt;
use coremix_files::{ArrowFile, CsvFile, Options, ParquetFile};
use parquet::basic::Compression;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in memory that count how many of them are read.
struct Counted {
    bytes: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn name(&self) -> String {
        "counted".into()
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.bytes.read_at(from, out)
    }
}

const N: usize = 40_000;
const BLOCK: usize = 512;

/// Orders of reads: the first row of each, and how many.
fn orders() -> Vec<(&'static str, Vec<(usize, usize)>)> {
    let blocks = |from: usize, to: usize| {
        (from..to)
            .step_by(BLOCK)
            .map(move |first| (first, BLOCK.min(to - first)))
    };
    let mut two = Vec::new();
    for (a, b) in blocks(0, N / 2).zip(blocks(N / 2, N)) {
        two.extend([a, b]);
    }
    vec![
        ("one after the other", blocks(0, N).collect()),
        // Two threads read so.
        ("from two places", two),
        // Coresets are read so.
        (
            "far apart",
            (0..N).step_by(337).map(|first| (first, 1)).collect(),
        ),
    ]
}

/// The share of the file that each order reads.
fn shares(bytes: &[u8], open: impl Fn(Counted) -> Box<dyn Source<Element = f64>>) -> [f64; 3] {
    let mut shares = [0.0; 3];
    for ((_, order), share) in orders().into_iter().zip(&mut shares) {
        let read = Arc::new(AtomicU64::new(0));
        let source = open(Counted {
            bytes: bytes.to_vec(),
            read: Arc::clone(&read),
        });
        assert_eq!(source.len(), N);
        let mut out = vec![0.0; BLOCK * source.dim()];
        let before = read.load(Ordering::Relaxed);
        for (first, rows) in order {
            source.read(first, &mut out[..rows * source.dim()]).unwrap();
        }
        *share = (read.load(Ordering::Relaxed) - before) as f64 / bytes.len() as f64;
    }
    shares
}

#[test]
fn each_page_is_read_once() {
    let mut rng = seeded(1);
    let (x, known) = numbers(&DataType::Float64, N, &mut rng);
    let (y, _) = numbers(&DataType::Float32, N, &mut rng);
    let table = table(vec![("x", x), ("y", y)], true);
    let options = Options::new();
    for group in [15_000, N] {
        let how = Parquet {
            compression: Compression::SNAPPY,
            second_version: false,
            dictionary: false,
            group,
            page: 1_000,
            encoding: None,
        };
        let bytes = how.write(&table);
        let shares = shares(&bytes, |bytes| {
            Box::new(ParquetFile::over(bytes, &options).unwrap())
        });
        // The columns of text are not read; headers of pages are read twice where pages are passed over.
        assert!(
            shares.iter().all(|share| *share < 0.9),
            "{group}: {shares:?}"
        );
        assert!(shares[0] > 0.3, "{group}: {shares:?}");
    }
    for compression in [None, Some(arrow_ipc::CompressionType::ZSTD)] {
        let how = Arrow {
            compression,
            stream: false,
            batch: 10_000,
        };
        let bytes = how.write(&table);
        let shares = shares(&bytes, |bytes| {
            Box::new(ArrowFile::over(bytes, &options).unwrap())
        });
        assert!(
            shares[0] < 0.9 && shares[1] < 0.9,
            "{compression:?}: {shares:?}"
        );
        if compression.is_none() {
            assert!(shares[2] < 0.01, "{shares:?}");
        }
    }
    let bytes = csv(&["x"], &[known], ',', true);
    let shares = shares(&bytes, |bytes| {
        Box::new(CsvFile::over(bytes, &options).unwrap())
    });
    assert!(shares.iter().all(|share| *share < 1.3), "{shares:?}");
}
