//! Labels of rows, block by block.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::messages::{StandardOutput, leave_output_to_labels};
use crate::outputs::{LOG_DENSITY, is_standard_output};
use crate::progress::Bar;
use coremix::data::Source;
use coremix::prelude::*;
use coremix::{Element, Mixture};
use coremix_files::{Keys, LabelWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The file of labels to write.
pub(crate) struct Labels<'a> {
    pub(crate) path: &'a Path,
    pub(crate) keys: Option<Keys>,
    /// The number of clusters of each row that are written with their shares; 0 for labels alone.
    pub(crate) top: usize,
    /// Also the log densities of the rows.
    pub(crate) densities: bool,
}

/// The columns that a file of labels has besides labels.
fn columns(densities: bool) -> &'static [&'static str] {
    if densities { &[LOG_DENSITY] } else { &[] }
}

/// Files of labels for the rows of each input file, in whose names a star stands for the name of that file.
pub(crate) struct PerFile<'a> {
    path: &'a Path,
    before: String,
    after: String,
}

impl<'a> PerFile<'a> {
    /// `None` where the path names one file for all rows.
    pub(crate) fn of(path: &'a Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy();
        let (before, after) = name.split_once('*')?;
        Some(Self {
            path,
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// The file for the labels of this file of rows.
    pub(crate) fn at(&self, file: &Path) -> PathBuf {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // The name of rows.csv.gz is rows.
        let stem = name.split_once('.').map_or(&*name, |(stem, _)| stem);
        let Self { before, after, .. } = self;
        self.path.with_file_name(format!("{before}{stem}{after}"))
    }
}

/// An error if nothing can be written there, before hours of work.
pub(crate) fn check(path: &Path, more: bool) -> Result<()> {
    if is_standard_output(path) {
        leave_output_to_labels();
        return Ok(());
    }
    if path.is_dir() {
        return Err(Failure::arguments(format!(
            "--labels {}: name a file for the labels of all rows, or '{}' for one for each file of rows",
            path.display(),
            path.join("*.csv").display(),
        )));
    }
    LabelWriter::check(path, columns(more)).map_err(|error| Failure::arguments(error.to_string()))
}

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
        top,
        densities,
    } = labels;
    let top = top.min(model.components());
    let columns = columns(densities);
    let mut writer = if is_standard_output(path) {
        LabelWriter::to_stream_with_top(
            StandardOutput::new(),
            "standard output",
            keys,
            top,
            columns,
        )?
    } else {
        LabelWriter::create_with_top(path, keys, top, columns)?
    };
    let bar = Bar::of_rows(rows.len());
    interrupt::check(cancel)?;
    writer.label(model, rows, |done| {
        bar.at(done);
        if cancel.is_cancelled() || StandardOutput::is_closed() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    interrupt::check(cancel)?;
    Ok(writer.finish()?)
}
