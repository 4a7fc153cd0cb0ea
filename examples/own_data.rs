//! Data of one's own: the rows of an `.npy` file, read when they are asked for. They are never in memory at once.
//!
//! This shows how to write data. For rows that are only read from somewhere, a `data::Source` is enough: `data::Blocks` makes
//! data of it.

use coremix::data::{Frame, Rows, Summary};
use coremix::datasets::Birch;
use coremix::prelude::*;
use coremix::{Float, testing};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file of little-endian f32 or f64 (`F`), row after row.
struct NpyFile<F> {
    file: File,
    /// Where the numbers start.
    from: u64,
    shape: [usize; 2],
    summary: Summary,
    decode: fn(&[u8]) -> F,
}

fn fault(error: impl ToString) -> Error {
    Error::Stage {
        stage: "NpyFile",
        what: error.to_string(),
    }
}

impl<F: Float> NpyFile<F> {
    fn open(path: &Path, kind: &str, decode: fn(&[u8]) -> F) -> Result<Self> {
        let file = File::open(path).map_err(fault)?;
        let mut start = [0; 10];
        file.read_exact_at(&mut start, 0).map_err(fault)?;
        let mut header = vec![0; u16::from_le_bytes([start[8], start[9]]) as usize];
        file.read_exact_at(&mut header, 10).map_err(fault)?;
        let text = String::from_utf8_lossy(&header);
        if !start.starts_with(b"\x93NUMPY\x01") || !text.contains(kind) || text.contains("True") {
            return Err(fault(format!(
                "not rows of {kind}, one after the other: {text}"
            )));
        }
        let shape = text.split(['(', ')']).nth(1).unwrap_or_default();
        let numbers: Vec<usize> = shape.split(',').flat_map(|n| n.trim().parse()).collect();
        let shape =
            <[usize; 2]>::try_from(numbers).map_err(|_| fault(format!("not a table: {text}")))?;
        let from = 10 + header.len() as u64;
        let mut data = Self {
            file,
            from,
            shape,
            summary: Summary::default(),
            decode,
        };
        let read = |rows: Range<usize>, out: &mut [F]| data.read(rows.start, out).map_err(fault);
        data.summary = Summary::from_blocks(shape[0], shape[1], |_| 1.0, read)?;
        Ok(data)
    }

    /// Reads rows, as many as `out` has room for.
    fn read(&self, first: usize, out: &mut [F]) -> std::io::Result<()> {
        let size = size_of::<F>();
        let mut bytes = vec![0; size_of_val(out)];
        let place = (first * self.shape[1] * size) as u64;
        self.file.read_exact_at(&mut bytes, self.from + place)?;
        for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(size)) {
            *out = (self.decode)(bytes);
        }
        Ok(())
    }
}

impl<F: Float> Data<F> for NpyFile<F> {
    fn len(&self) -> usize {
        self.shape[0]
    }

    fn dim(&self) -> usize {
        self.shape[1]
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        let mut values = vec![F::zero(); rows.len() * self.dim()];
        self.read(rows.start, &mut values).map_err(fault)?;
        let row = |i: usize| i * self.dim()..(i + 1) * self.dim();
        into.fill(frame, rows.map(|_| 1.0), |i, out| {
            out.copy_from_slice(&values[row(i)]);
            Ok(())
        })
    }

    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        into.fill(frame, rows.iter().map(|_| 1.0), |i, out| {
            self.read(rows[i], out).map_err(fault)
        })
    }
}

fn main() -> Result<()> {
    let birch = Birch::grid(100).generate::<f32>(1)?;
    let folder = std::env::temp_dir().join(format!("coremix-own-data-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(fault)?;
    let (narrow, wide) = (folder.join("f32.npy"), folder.join("f64.npy"));
    ndarray_npy::write_npy(&narrow, &birch.points).map_err(fault)?;
    let points = birch.points.mapv(f64::from);
    ndarray_npy::write_npy(&wide, &points).map_err(fault)?;

    let data = NpyFile::open(&narrow, "<f4", |b| {
        f32::from_le_bytes(b.try_into().unwrap_or_default())
    })?;
    testing::data(&data, &Dense::new(birch.points.view())?)?;
    println!("f32: the fits of six algorithms are those of the same rows in memory, bit for bit");
    let data = NpyFile::open(&wide, "<f8", |b| {
        f64::from_le_bytes(b.try_into().unwrap_or_default())
    })?;
    testing::data(&data, &Dense::new(points.view())?)?;
    println!("f64: they are, too");

    let fit = algorithms::fast(25).build()?.fit(&data)?;
    println!(
        "{} rows, quantization error {:.4e}",
        data.len(),
        fit.model.quantization_error(&data)?
    );
    std::fs::remove_dir_all(&folder).map_err(fault)
}
