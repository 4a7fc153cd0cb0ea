//! Labels of rows, block by block.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::outputs::{LOG_DENSITY, StandardOutput, is_standard_output, leave_output_to_labels};
use crate::progress::Bar;
use coremix::data::Source;
use coremix::prelude::*;
use coremix::{Element, Mixture};
use coremix_files::{Keys, LabelWriter};
use ndarray::ArrayView2;
use std::path::Path;

/// The file of labels to write.
pub(crate) struct Labels<'a> {
    pub(crate) path: &'a Path,
    pub(crate) keys: Option<Keys>,
    /// Also the log densities of the rows.
    pub(crate) densities: bool,
}

/// The columns that a file of labels has besides labels.
fn columns(densities: bool) -> &'static [&'static str] {
    if densities { &[LOG_DENSITY] } else { &[] }
}

/// An error if nothing can be written there, before hours of work.
pub(crate) fn check(path: &Path, densities: bool) -> Result<()> {
    if is_standard_output(path) {
        leave_output_to_labels();
        return Ok(());
    }
    LabelWriter::check(path, columns(densities))
        .map_err(|error| Failure::arguments(error.to_string()))
}

/// Rows that are labelled in one batch take at most this many bytes, and are at most `BATCH_ROWS`.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ROWS: usize = 1 << 16;

/// Writes the label of every row of a source.
pub(crate) fn write<T: Element>(
    model: &dyn Mixture<T::Float>,
    rows: &impl Source<Element = T>,
    labels: Labels<'_>,
    cancel: &Cancel,
) -> Result<()> {
    let Labels {
        path,
        keys,
        densities,
    } = labels;
    let columns = columns(densities);
    let mut writer = match is_standard_output(path) {
        true => LabelWriter::to_stream(StandardOutput::new(), "standard output", keys, columns)?,
        false => LabelWriter::create(path, keys, columns)?,
    };
    let (n, dim) = (rows.len(), rows.dim());
    let at_once = (BATCH_BYTES / (dim * size_of::<T>()).max(1)).clamp(1, BATCH_ROWS);
    let bar = Bar::of_rows(n);
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
        let densities = densities.then(|| model.log_densities(&data)).transpose()?;
        let densities = densities.map(|densities| densities.to_vec());
        let columns: Vec<&[f64]> = densities.iter().map(Vec::as_slice).collect();
        writer.write(&found, &columns)?;
        bar.at(first + count);
        if StandardOutput::is_closed() {
            break;
        }
    }
    Ok(writer.finish()?)
}

/// The error, with the number of its row in the file.
fn numbered(mut error: coremix::Error, first: usize) -> coremix::Error {
    if let coremix::Error::NotFinite { row, .. } | coremix::Error::TooLarge { row, .. } = &mut error
    {
        *row += first;
    }
    error
}
