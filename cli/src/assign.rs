//! `coremix assign`

use crate::arguments::Assign;
use crate::failure::{Failure, Result};
use crate::labels::{self, Labels, PerFile};
use crate::messages::{is_quiet, item};
use crate::outputs::{self, Output, is_standard_output};
use crate::rows::{self, with_rows};
use coremix::data::Source;
use coremix::{BoxedMixture, Cancel, Element, Save};
use coremix_files::ReadAhead;
use coremix_files::{Keys, Rows};
use std::path::PathBuf;

pub(crate) fn run(assign: &Assign, cancel: &Cancel) -> Result<()> {
    let Some(each) = files(assign)? else {
        return to_one(assign, cancel);
    };
    for (file, labels) in each {
        let mut one = assign.clone();
        one.input.rows = vec![file];
        one.labels = labels;
        to_one(&one, cancel)?;
    }
    Ok(())
}

/// An error if one of the files of labels cannot be written, before there is a model.
pub(crate) fn check(assign: &Assign) -> Result<()> {
    files(assign).map(|_| ())
}

/// The files of rows, each with the file for its labels, if each has one. A name that cannot be written is an error before the
/// first file is.
fn files(assign: &Assign) -> Result<Option<Vec<(PathBuf, PathBuf)>>> {
    let Some(labels) = PerFile::of(&assign.labels) else {
        return Ok(None);
    };
    let files = rows::files(&assign.input)?;
    let each: Vec<_> = files.iter().map(|file| labels.at(file)).collect();
    let keys = rows::keys(&assign.input);
    let outputs: Vec<_> = each
        .iter()
        .map(|labels| Output::Labels(labels, &keys))
        .collect();
    outputs::check(&outputs, &files, assign.over.force)?;
    for labels in &each {
        labels::check(labels, false)?;
    }
    Ok(Some(files.into_iter().zip(each).collect()))
}

/// Writes the labels of all rows to one file.
fn to_one(assign: &Assign, cancel: &Cancel) -> Result<()> {
    labels::check(&assign.labels, assign.densities || assign.top.is_some())?;
    let keys = rows::keys(&assign.input);
    let output = Output::Labels(&assign.labels, &keys);
    let check = |inputs: &[PathBuf]| outputs::check(&[output], inputs, assign.over.force);
    check(&[&assign.input.rows[..], std::slice::from_ref(&assign.model)].concat())?;
    let info = rows::model(&assign.model)?;
    let opened = rows::for_model(&assign.input, &info)?;
    check(&opened.files)?;
    let keys = opened.keys;
    with_rows!(opened.rows, |rows| of_rows(assign, (rows, keys), cancel))
}

fn of_rows<T: Element>(
    assign: &Assign,
    (rows, keys): (Rows<T>, Option<Keys>),
    cancel: &Cancel,
) -> Result<()> {
    let model: BoxedMixture<T::Float> = Save::load(&assign.model)?;
    let fitted = model.means().ncols();
    let given = rows.dim();
    if fitted != given {
        let what = format!(
            "the model has {fitted} columns, the rows have {given}: give the columns of the fit"
        );
        return Err(Failure::arguments(what));
    }
    let labels = Labels {
        path: &assign.labels,
        keys,
        top: assign.top.unwrap_or(0),
        densities: assign.densities,
    };
    let n = rows.len();
    labels::write(&*model, &ReadAhead::new(rows), labels, cancel)?;
    if is_quiet() || is_standard_output(&assign.labels) {
        return Ok(());
    }
    item("rows", n)?;
    item("labels", assign.labels.display())
}
