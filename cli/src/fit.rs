//! `coremix fit`

use crate::arguments::{self, Fit as Arguments};
use crate::failure::{Failure, Result};
use crate::found::{self, Found, Quality};
use crate::labels::{self, Labels};
use crate::memory::Room;
use crate::outputs::{self, warn};
use crate::progress::Bar;
use crate::rows::{self, COLUMNS, Shared, with_rows};
use crate::standard::Scale;
use coremix::data::Source as _;
use coremix::prelude::*;
use coremix::{Checkpoint, Element, Estimator};
use coremix_files::{Keys, ReadAhead, Rows};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(fit: &Arguments, cancel: &Cancel, quiet: bool) -> Result<()> {
    if let Some(path) = &fit.labels {
        labels::check(path, false)?;
    }
    let outputs = [Some(&fit.model), fit.labels.as_ref(), fit.report.as_ref()];
    outputs::check(outputs.into_iter().flatten(), fit.input.rows.iter())?;
    if fit.standardise && matches!(&*fit.algorithm, "dp-gmm" | "sparsified-gmm") {
        let what = "--standardise: models of dp-gmm and sparsified-gmm have no other units";
        return Err(Failure::arguments(what));
    }
    let opened = rows::for_fit(&fit.input)?;
    if !quiet {
        rows::say_columns(&opened)?;
    }
    let (columns, beside) = (opened.columns, (opened.weights, opened.keys));
    with_rows!(opened.rows, |rows| of_rows(
        fit,
        rows,
        &columns,
        beside,
        (cancel, quiet)
    ))
}

fn of_rows<T: Element>(
    fit: &Arguments,
    rows: Rows<T>,
    columns: &[String],
    (weights, keys): (Option<Vec<f64>>, Option<Keys>),
    (cancel, quiet): (&Cancel, bool),
) -> Result<()> {
    let (started, rows) = (Instant::now(), Arc::new(rows));
    let found = match fit.standardise {
        false => fitted(fit, &rows, weights, columns, (cancel, quiet))?,
        true => {
            let scale = Scale::of(&rows, weights.as_deref(), columns, quiet)?;
            let scaled = scale.apply(&rows);
            let mut found = fitted(fit, &scaled, weights, columns, (cancel, quiet))?;
            found.model = scale.undo(&*found.model)?;
            if let Quality::Likelihood(each, _) = &mut found.quality {
                *each -= scale.log_density();
            }
            found
        }
    };
    if let Some(fault) = &found.report.checkpoint_fault {
        warn(&format!("a checkpoint could not be written: {fault}"));
    }
    if found.report.at_floor > 0 {
        let held = found.report.at_floor;
        warn(&format!(
            "a floor of variances holds {held} clusters with more rows than columns: rows equal in a column, or dependent columns. \
             Densities and criteria say little"
        ));
    }

    let notes = notes(fit, rows.len(), columns, &found.sizes)?;
    let notes: Vec<(&str, &str)> = notes.iter().map(|(name, text)| (*name, &**text)).collect();
    found.model.save_with_notes(&fit.model, &notes)?;
    if let Some(path) = &fit.report {
        outputs::replace(path, |file| {
            let written = serde_json::to_writer_pretty(file, &found.report);
            written.map_err(|error| Failure::file(path, error))
        })?;
    }
    if let Some(path) = &fit.labels {
        let labels = Labels {
            path,
            keys,
            densities: false,
        };
        let rows = ReadAhead::new(rows.clone());
        labels::write(&*found.model, &rows, labels, (cancel, quiet))?;
    }
    if fit.checkpoint_every > 0.0 {
        std::fs::remove_file(checkpoint_of(fit)).ok();
    }
    match quiet {
        true => Ok(()),
        false => found.say(fit, rows.len(), started.elapsed()),
    }
}

/// Fits a model to rows, in memory where they fit.
fn fitted<T: Element>(
    fit: &Arguments,
    rows: &Shared<T>,
    weights: Option<Vec<f64>>,
    columns: &[String],
    (cancel, quiet): (&Cancel, bool),
) -> Result<Found<T::Float>> {
    let mut algorithm = algorithm(fit)?.cancel(cancel);
    if fit.checkpoint_every > 0.0 {
        let every = Duration::try_from_secs_f64(fit.checkpoint_every).unwrap_or(Duration::MAX);
        let path = checkpoint_of(fit);
        if path.exists() && !quiet {
            eprintln!("coremix: goes on from {}", path.display());
        }
        let checkpoint = Checkpoint::to(path).every(every);
        algorithm = algorithm.checkpoint(&checkpoint.resume_if_there());
    }
    let (shape, weighted) = ((rows.len(), rows.dim()), weights.is_some());
    let room = Room::new(fit.memory, shape, weighted);
    let loaded = room.holds::<T>(&algorithm, 1)?;
    if !loaded {
        algorithm = room.within::<T::Float>(algorithm)?;
    }
    let estimator: Box<dyn Estimator<T::Float>> = algorithm.boxed()?;
    let bar = Bar::of_fit(quiet);
    bar.say(format!("checking {} rows of {} columns", shape.0, shape.1));
    let data = rows::data(rows.clone(), weights, loaded, &bar)?;
    let data = data.as_data();
    let one_variance = !fit.standardise && has_one_variance(&fit.algorithm, fit.covariance);
    rows::warn_of_columns(columns, data.summary(), one_variance);
    let found = estimator.fit_observed(data, &mut |progress| {
        bar.see(progress);
        ControlFlow::Continue(())
    });
    drop(bar);
    let again = match checkpoint_of(fit).exists() {
        true if fit.checkpoint_every > 0.0 => ": the same command goes on where it was",
        _ => "",
    };
    let found = match found {
        Ok(found) if found.report.stop != Stop::Cancelled => found,
        Ok(_) | Err(Error::Cancelled) => return Err(Failure::Interrupted(again.into())),
        Err(error) => return Err(error.into()),
    };
    Ok(Found::new(found, data.weights()))
}

/// The covariances that are asked for. Of gmm they are diagonal by default, as in Python: columns may differ in their units.
pub(crate) fn covariance_of(
    algorithm: &str,
    given: Option<arguments::Covariance>,
) -> Option<arguments::Covariance> {
    given.or((algorithm == "gmm").then_some(arguments::Covariance::Diagonal))
}

/// Whether the variance of a component is that of all columns.
pub(crate) fn has_one_variance(algorithm: &str, given: Option<arguments::Covariance>) -> bool {
    use arguments::Covariance::{Spherical, TiedSpherical};
    match covariance_of(algorithm, given) {
        Some(covariance) => matches!(covariance, Spherical | TiedSpherical),
        None => !matches!(algorithm, "dp-gmm" | "sparsified-gmm"),
    }
}

/// The algorithm with its settings.
fn algorithm(fit: &Arguments) -> Result<Algorithm> {
    let mut algorithm = fit.algorithm.parse::<Algorithm>()?;
    algorithm = algorithm.clusters(fit.clusters);
    algorithm = algorithm.seed(fit.seed).restarts(fit.restarts);
    macro_rules! set {
        ($($setting:ident)*) => {$(if let Some(value) = fit.$setting {
            algorithm = algorithm.$setting(value);
        })*};
    }
    set!(coreset tolerance max_iterations c_prime neighbors concentration);
    if let Some(covariance) = covariance_of(&fit.algorithm, fit.covariance) {
        algorithm = algorithm.covariance(covariance.of_crate());
    }
    Ok(algorithm)
}

/// Beside the model.
fn checkpoint_of(fit: &Arguments) -> PathBuf {
    let mut name = fit.model.clone().into_os_string();
    name.push(".checkpoint");
    PathBuf::from(name)
}

/// The note with the size of each cluster.
pub(crate) const SIZES: &str = "sizes";

/// What the file of the model says of the fit.
fn notes(
    fit: &Arguments,
    rows: usize,
    columns: &[String],
    sizes: &[f64],
) -> Result<Vec<(&'static str, String)>> {
    let mut notes = vec![
        ("algorithm", fit.algorithm.clone()),
        ("clusters", fit.clusters.to_string()),
        ("seed", fit.seed.to_string()),
        ("restarts", fit.restarts.to_string()),
        ("rows", rows.to_string()),
        ("memory", fit.memory.0.to_string()),
    ];
    let mut add = |name, value: Option<String>| notes.extend(value.map(|value| (name, value)));
    add("coreset", fit.coreset.map(|x| x.to_string()));
    add("tolerance", fit.tolerance.map(|x| x.to_string()));
    add("max-iterations", fit.max_iterations.map(|x| x.to_string()));
    add("c-prime", fit.c_prime.map(|x| x.to_string()));
    add("neighbors", fit.neighbors.map(|x| x.to_string()));
    add("concentration", fit.concentration.map(|x| x.to_string()));
    add("standardised", fit.standardise.then(|| "yes".into()));
    let sizes: Vec<_> = sizes
        .iter()
        .map(|size| found::in_words(fit, *size))
        .collect();
    notes.push((SIZES, sizes.join(" ")));
    if !columns.is_empty() {
        let names = serde_json::to_string(columns);
        let names = names.map_err(|error| Failure::arguments(error.to_string()))?;
        notes.push((COLUMNS, names));
    }
    Ok(notes)
}
