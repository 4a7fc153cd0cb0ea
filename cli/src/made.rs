//! `coremix impute` and `coremix sample`: rows that a model makes.

use crate::arguments::{Impute, Sample};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::messages::{StandardOutput, is_quiet, item, leave_output_to_labels, warn};
use crate::outputs::{self, Output, is_standard_output};
use crate::progress::Bar;
use crate::rows::{self, with_rows};
use coremix::data::{Dense, Source};
use coremix::{BoxedMixture, Cancel, Element, Float, ModelInfo, Save};
use coremix_files::{Keys, ReadAhead, RowWriter, Rows, Values, column_texts};
use ndarray::{Array2, ArrayView1};
use std::path::{Path, PathBuf};

/// The columns of a model, as they are written.
struct Columns {
    names: Vec<String>,
    /// The texts of each, where it was text.
    texts: Vec<Option<Vec<String>>>,
}

impl Columns {
    fn of(info: &ModelInfo) -> Self {
        let names = rows::column_names(info).filter(|names| names.len() == info.columns);
        let numbered = || (1..=info.columns).map(|j| format!("column_{j}")).collect();
        let names = names.unwrap_or_else(numbered);
        let mut known = column_texts(info);
        let texts = names.iter().map(|name| known.remove(name)).collect();
        Self { names, texts }
    }

    /// The names, each with values of the type that its column has.
    fn like(&self) -> Vec<(&str, Values)> {
        let like = |texts: &Option<_>| match texts {
            Some(_) => Values::Texts(Vec::new()),
            None => Values::Numbers(Vec::new()),
        };
        let names = self.names.iter().map(String::as_str);
        names.zip(self.texts.iter().map(like)).collect()
    }

    /// The values of some rows, and how many are of categories that the model does not know.
    fn values<F: Float>(&self, rows: &Array2<F>) -> (Vec<Values>, usize) {
        let mut unknown = 0;
        let mut value = |(column, texts): (ArrayView1<'_, F>, &Option<Vec<String>>)| {
            let Some(texts) = texts else {
                return Values::Numbers(column.iter().map(|x| x.to_f64()).collect());
            };
            let text = |code: &F| texts.get(code.to_f64() as usize).cloned();
            let texts: Vec<_> = column.iter().map(text).collect();
            unknown += texts.iter().filter(|text| text.is_none()).count();
            Values::Texts(texts)
        };
        let values = rows.columns().into_iter().zip(&self.texts).map(&mut value);
        (values.collect(), unknown)
    }
}

/// Begins the file of rows.
fn begin(path: &Path, keys: Option<Keys>, columns: &[(&str, Values)]) -> Result<RowWriter> {
    Ok(if is_standard_output(path) {
        RowWriter::to_stream(StandardOutput::new(), "standard output", keys, columns)?
    } else {
        RowWriter::create(path, keys, columns)?
    })
}

/// Says what was written.
fn said(rows: usize, path: &Path) -> Result<()> {
    if is_quiet() || is_standard_output(path) {
        return Ok(());
    }
    item("rows", rows)?;
    item("written to", path.display())
}

pub(crate) fn impute(impute: &Impute, cancel: &Cancel) -> Result<()> {
    if is_standard_output(&impute.output) {
        leave_output_to_labels();
    }
    let output = Output::Rows(&impute.output);
    let check = |inputs: &[PathBuf]| outputs::check(&[output], inputs, impute.over.force);
    check(&[&impute.input.rows[..], std::slice::from_ref(&impute.model)].concat())?;
    let info = rows::model(&impute.model)?;
    let opened = rows::for_model(&impute.input, &info)?;
    check(&opened.files)?;
    let columns = Columns::of(&info);
    let keys = opened.keys;
    with_rows!(opened.rows, |rows| imputed(
        impute,
        (rows, keys),
        &columns,
        cancel
    ))
}

fn imputed<T: Element>(
    impute: &Impute,
    (rows, keys): (Rows<T>, Option<Keys>),
    columns: &Columns,
    cancel: &Cancel,
) -> Result<()> {
    /// Numbers that are read at once.
    const NUMBERS: usize = 1 << 20;
    let model: BoxedMixture<T::Float> = Save::load(&impute.model)?;
    if rows.lists().is_some() {
        let what = "sparse rows have no missing values: what is not there is 0";
        return Err(Failure::arguments(what));
    }
    let (n, dim) = (rows.len(), rows.dim());
    if dim != columns.names.len() {
        let fitted = columns.names.len();
        let what = format!(
            "the model has {fitted} columns, the rows have {dim}: give the columns of the fit"
        );
        return Err(Failure::arguments(what));
    }
    let may_miss = rows.may_miss();
    let rows = ReadAhead::new(rows);
    let mut writer = begin(&impute.output, keys, &columns.like())?;
    let bar = Bar::of_rows(n);
    let mut unknown = 0;
    let at_once = (NUMBERS / dim.max(1)).max(1);
    for first in (0..n).step_by(at_once) {
        interrupt::check(cancel)?;
        let count = at_once.min(n - first);
        let mut values = vec![T::default(); count * dim];
        rows.read(first, &mut values)
            .map_err(|error| Failure::rows(&error))?;
        let values: Vec<T::Float> = values.into_iter().map(T::widen).collect();
        let block = Array2::from_shape_vec((count, dim), values).expect("rows of d numbers");
        let data = if may_miss {
            Dense::with_missing(&block)?
        } else {
            Dense::batch(&block)?
        };
        let (values, not_known) = columns.values(&model.impute(&data)?);
        unknown += not_known;
        writer.write(values)?;
        bar.at(first + count);
    }
    writer.finish()?;
    drop(bar);
    if unknown > 0 {
        warn(&format!(
            "{unknown} values are categories that the model does not know, and left empty"
        ));
    }
    said(n, &impute.output)
}

pub(crate) fn sample(sample: &Sample) -> Result<()> {
    if is_standard_output(&sample.output) {
        leave_output_to_labels();
    }
    let output = Output::Rows(&sample.output);
    outputs::check(
        &[output],
        std::slice::from_ref(&sample.model),
        sample.over.force,
    )?;
    let info = rows::model(&sample.model)?;
    let columns = Columns::of(&info);
    match &*info.number {
        "f64" => drawn::<f64>(sample, &columns),
        _ => drawn::<f32>(sample, &columns),
    }
}

fn drawn<F: Float>(sample: &Sample, columns: &Columns) -> Result<()> {
    let model: BoxedMixture<F> = Save::load(&sample.model)?;
    let (rows, labels) = model.sample(sample.number, sample.seed)?;
    let mut like = columns.like();
    like.push(("label", Values::Labels(Vec::new())));
    let mut writer = begin(&sample.output, None, &like)?;
    let (mut values, _) = columns.values(&rows);
    values.push(Values::Labels(labels.to_vec()));
    writer.write(values)?;
    writer.finish()?;
    said(sample.number, &sample.output)
}
