//! `coremix clusters`

use crate::arguments::Clusters;
use crate::failure::{Failure, Result};
use crate::fit::{covariance_of, has_one_variance};
use crate::memory::Room;
use crate::outputs::{say, warn};
use crate::progress::Bar;
use crate::rows::{self, Shared, with_rows};
use crate::standard::Scale;
use coremix::data::Source as _;
use coremix::prelude::*;
use coremix::selection::{Criterion, Sweep};
use coremix::{Element, Error, Estimator};
use std::sync::Arc;

pub(crate) fn run(clusters: &Clusters, cancel: &Cancel, quiet: bool) -> Result<()> {
    let opened = rows::for_fit(&clusters.input)?;
    if !quiet {
        rows::say_columns(&opened)?;
        say("")?;
    }
    let (weights, columns) = (opened.weights, opened.columns);
    with_rows!(opened.rows, |rows| {
        let rows = Arc::new(rows);
        match clusters.standardise {
            false => of_rows(clusters, &rows, weights, &columns, (cancel, quiet)),
            true => {
                let rows = Scale::of(&rows, weights.as_deref(), &columns, quiet)?.apply(&rows);
                of_rows(clusters, &rows, weights, &columns, (cancel, quiet))
            }
        }
    })
}

fn of_rows<T: Element>(
    clusters: &Clusters,
    rows: &Shared<T>,
    weights: Option<Vec<f64>>,
    columns: &[String],
    (cancel, quiet): (&Cancel, bool),
) -> Result<()> {
    let mut algorithm = clusters.algorithm.parse::<Algorithm>()?;
    algorithm = algorithm
        .seed(clusters.seed)
        .restarts(clusters.restarts)
        .cancel(cancel);
    if let Some(covariance) = covariance_of(&clusters.algorithm, clusters.covariance) {
        algorithm = algorithm.covariance(covariance.of_crate());
    }
    // Without a coreset, the rows that are not held out are copied.
    let copies = if clusters.coreset.is_some() { 1 } else { 2 };
    let room = Room::new(clusters.memory, (rows.len(), rows.dim()), true);
    let loaded = room.holds::<T>(&algorithm.clone().clusters(clusters.to), copies)?;
    if !loaded && clusters.coreset.is_none() {
        let hint = "--memory: the rows must fit in it twice: allow more, or give a --coreset";
        return Err(Failure::arguments(hint));
    }
    let build = |k| -> coremix::Result<Box<dyn Estimator<T::Float>>> {
        algorithm.clone().clusters(k).boxed()
    };
    let bar = Bar::of_fit(quiet);
    bar.say(format!(
        "fitting {} to {} clusters",
        clusters.from, clusters.to
    ));
    let data = rows::data(rows.clone(), weights, loaded, &bar)?;
    let one_variance =
        !clusters.standardise && has_one_variance(&clusters.algorithm, clusters.covariance);
    rows::warn_of_columns(columns, data.as_data().summary(), one_variance);
    let mut sweep = Sweep::new((clusters.from..=clusters.to).step_by(clusters.step.max(1)))
        .held_out(clusters.held_out)
        .seed(clusters.seed);
    if let Some(draws) = clusters.coreset {
        sweep = sweep.coreset(Lightweight::new(draws));
    }
    let found = sweep.run(data.as_data(), build).and_then(|found| {
        let last = found.candidates().last().map(|last| last.clusters);
        let best = |criterion| found.best(criterion).map(|best| best.clusters);
        if [Criterion::Bic, Criterion::Icl]
            .iter()
            .all(|one| best(*one) == last)
        {
            warn("the most clusters are the best by BIC and ICL: raise --to");
        }
        if !clusters.dirichlet_process {
            return Ok(found.to_string());
        }
        let process = algorithms::dp_gmm(clusters.to, 1.0)
            .seed(clusters.seed)
            .restarts(clusters.restarts)
            .cancel(cancel)
            .build()?;
        let process = sweep.beside(data.as_data(), clusters.to, &process)?;
        let used = process.criteria.in_use;
        let mut line = format!("dp-gmm uses {used} of {} components", clusters.to);
        if let Some(held_out) = process.held_out {
            line += &format!(", held-out {held_out:.5}");
        }
        Ok(format!("{found}\n{line}"))
    });
    drop(bar);
    match found {
        Err(Error::Cancelled) => Err(Failure::Interrupted(String::new())),
        _ if cancel.is_cancelled() => Err(Failure::Interrupted(String::new())),
        Ok(found) => say(&found),
        Err(error) => Err(error.into()),
    }
}
