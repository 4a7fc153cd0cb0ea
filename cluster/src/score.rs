//! How good a model is on a table.

use crate::error::Result;
use crate::job::fits;
use crate::model::Model;
use crate::step::e_step;
use crate::summary::{Bounds, range};
use crate::table::Table;

/// What a model costs on all rows of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// Number of rows.
    pub rows: u64,
    /// The sum of the squared distances to the nearest mean ([E22](coremix::equations#e22)), in the unit of the columns,
    /// squared.
    pub quantization_error: f64,
    /// The log-likelihood over all components, in nats, for densities in the unit of the columns.
    pub log_likelihood: f64,
}

pub(crate) async fn run(table: &Table, model: &Model) -> Result<Score> {
    let range = range(table).await?;
    fits(model, range.ranges.len())?;
    let bounds = Bounds::of(&range);
    // With all components in the support, the free energy is the log-likelihood, and the best mean is the nearest.
    let all = e_step(table, &range, &bounds, model, model.components(), false).await?;
    Ok(Score {
        rows: range.rows,
        quantization_error: all.likelihood.best,
        log_likelihood: all.free_energy,
    })
}
