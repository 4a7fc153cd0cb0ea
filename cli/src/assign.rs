//! `coremix assign`

use crate::arguments::Assign;
use crate::failure::{Failure, Result};
use crate::labels::{self, Labels};
use crate::outputs::{self, item};
use crate::rows::{self, with_rows};
use coremix::data::Source;
use coremix::{BoxedMixture, Cancel, Element, ModelInfo, Save};
use coremix_files::ReadAhead;
use coremix_files::{Keys, Rows};

pub(crate) fn run(assign: &Assign, cancel: &Cancel, quiet: bool) -> Result<()> {
    labels::check(&assign.labels, assign.densities)?;
    let inputs = assign.input.rows.iter().chain([&assign.model]);
    outputs::check([&assign.labels].into_iter(), inputs)?;
    let info = ModelInfo::of_file(&assign.model)?;
    let opened = rows::for_model(&assign.input, &info)?;
    let keys = opened.keys;
    with_rows!(opened.rows, |rows| of_rows(
        assign,
        (rows, keys),
        (cancel, quiet)
    ))
}

fn of_rows<T: Element>(
    assign: &Assign,
    (rows, keys): (Rows<T>, Option<Keys>),
    (cancel, quiet): (&Cancel, bool),
) -> Result<()> {
    let model: BoxedMixture<T::Float> = Save::load(&assign.model)?;
    let (own, found) = (model.means().ncols(), rows.dim());
    if own != found {
        let what = format!(
            "the model has {own} columns, the rows have {found}: give the columns of the fit"
        );
        return Err(Failure::arguments(what));
    }
    let labels = Labels {
        path: &assign.labels,
        keys,
        densities: assign.densities,
    };
    let n = rows.len();
    labels::write(&*model, &ReadAhead::new(rows), labels, (cancel, quiet))?;
    if quiet {
        return Ok(());
    }
    item("rows", n)?;
    item("labels", assign.labels.display())
}
