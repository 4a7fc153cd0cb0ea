//! Labels of rows, block by block.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::progress::Bar;
use coremix::data::Source;
use coremix::prelude::*;
use coremix::{Element, Mixture};
use coremix_files::{Keys, NpyWriter, ParquetWriter};
use ndarray::ArrayView2;
use std::path::Path;

/// Where labels go.
enum Writer {
    Npy(NpyWriter<u32>),
    Parquet(Box<ParquetWriter>),
}

/// What is written.
pub(crate) struct Labels<'a> {
    pub(crate) path: &'a Path,
    pub(crate) keys: Option<Keys>,
    /// Also the log densities of the rows.
    pub(crate) densities: bool,
}

/// An error if nothing can be written there, before hours of work.
pub(crate) fn check(path: &Path, keys: bool, densities: bool) -> Result<()> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("npy") if keys || densities => {
            let what =
                "an .npy file holds labels alone; a .parquet file has room for keys and densities";
            Err(Failure::arguments(format!("{}: {what}", path.display())))
        }
        Some("npy" | "parquet") => Ok(()),
        _ => {
            let what = "labels are written as .npy or .parquet";
            Err(Failure::arguments(format!("{}: {what}", path.display())))
        }
    }
}

/// Bytes of rows that are labelled at once, and rows at most.
const PIECE: usize = 8 << 20;
const MOST: usize = 1 << 16;

/// Writes the label of every row of a source.
pub(crate) fn write<T: Element>(
    model: &dyn Mixture<T::Float>,
    rows: &impl Source<Element = T>,
    labels: Labels<'_>,
    (cancel, quiet): (&Cancel, bool),
) -> Result<()> {
    let Labels {
        path,
        keys,
        densities,
    } = labels;
    let columns: &[&str] = if densities { &["log_density"] } else { &[] };
    let mut writer = match path.extension().is_some_and(|ending| ending == "npy") {
        true => Writer::Npy(NpyWriter::numbers(path)?),
        false => Writer::Parquet(Box::new(ParquetWriter::create(path, keys, columns)?)),
    };
    let (n, dim) = (rows.len(), rows.dim());
    let at_once = (PIECE / (dim * size_of::<T>()).max(1)).clamp(1, MOST);
    let bar = Bar::of_rows(quiet, n);
    let mut values = Vec::new();
    for first in (0..n).step_by(at_once) {
        interrupt::check(cancel)?;
        let count = at_once.min(n - first);
        values.resize(count * dim, T::default());
        let read = rows.read(first, &mut values);
        read.map_err(|error| Failure::rows(&error))?;
        let block = ArrayView2::from_shape((count, dim), &values).expect("rows of d numbers");
        let data = Dense::batch(block).map_err(|error| numbered(error, first))?;
        let found = model.predict(&data)?.to_vec();
        match &mut writer {
            Writer::Npy(writer) => writer.write(&found)?,
            Writer::Parquet(writer) if densities => {
                let densities = model.log_densities(&data)?.to_vec();
                writer.write(&found, &[&densities])?;
            }
            Writer::Parquet(writer) => writer.write(&found, &[])?,
        }
        bar.at(first + count);
    }
    match writer {
        Writer::Npy(writer) => writer.finish()?,
        Writer::Parquet(writer) => writer.finish()?,
    }
    Ok(())
}

/// The error, with the number of its row in the file.
fn numbered(mut error: coremix::Error, first: usize) -> coremix::Error {
    if let coremix::Error::NotFinite { row, .. } | coremix::Error::TooLarge { row, .. } = &mut error
    {
        *row += first;
    }
    error
}
