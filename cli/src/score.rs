//! `coremix score`

use crate::arguments::Score;
use crate::failure::Result;
use crate::messages::{item, say, short};
use crate::progress::Bar;
use crate::rows::{self, with_rows};
use coremix::{BoxedMixture, Element, Save};
use coremix_files::Rows;
use std::sync::Arc;

pub(crate) fn run(score: &Score) -> Result<()> {
    let info = rows::model(&score.model)?;
    let opened = rows::for_model(&score.input, &info)?;
    let weights = opened.weights;
    with_rows!(opened.rows, |rows| of_rows(score, (rows, weights)))
}

fn of_rows<T: Element>(score: &Score, (rows, weights): (Rows<T>, Option<Vec<f64>>)) -> Result<()> {
    let model: BoxedMixture<T::Float> = Save::load(&score.model)?;
    let bar = Bar::of_fit();
    bar.say("reading");
    let rows = Arc::new(rows);
    let data = rows::data(&rows, weights, false, &bar)?;
    let data = data.as_data();
    bar.say("scoring");
    let totals = model.score(data)?;
    drop(bar);
    let rows = data.len();
    let weight = data.summary().total_weight;
    let error = totals.quantization_error;
    let likelihood = totals.log_likelihood;
    // Codes of categories are labels, which have no distances.
    let distances = !error.is_nan();
    if score.json {
        let numbers = serde_json::json!({
            "rows": rows,
            "weight": weight,
            "quantization_error": distances.then_some(error),
            "log_likelihood": likelihood,
        });
        say(&numbers.to_string())?;
        return Ok(());
    }
    let weighted = if weight == rows as f64 {
        String::new()
    } else {
        format!(", of weight {weight}")
    };
    item("rows", format_args!("{rows}{weighted}"))?;
    // Where variances differ, a row does not belong to the nearest centre.
    if model.cost().is_squared() {
        let each = short(error / weight);
        let total = short(error);
        let what = "the mean squared distance to the nearest centre";
        item("error", format_args!("{each}, {what}; {total} in all"))?;
    }
    let each = likelihood / weight;
    let total = short(likelihood);
    item(
        "log-likelihood",
        format_args!("{each:.5} per row; {total} in all"),
    )
}
