//! `coremix fit`

use crate::arguments::Fit;
use crate::failure::{Failure, Result};
use crate::labels::{self, Labels};
use crate::memory::{self, Shape};
use crate::outputs::{self, say};
use crate::progress::Bar;
use crate::rows::{self, COLUMNS, with_rows};
use coremix::data::Source as _;
use coremix::prelude::*;
use coremix::{Checkpoint, Element, Estimator};
use coremix_files::{Keys, Rows};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) fn run(fit: &Fit, cancel: &Cancel, quiet: bool) -> Result<()> {
    if let Some(path) = &fit.labels {
        labels::check(path, false)?;
    }
    let outputs = [Some(&fit.model), fit.labels.as_ref(), fit.report.as_ref()];
    outputs::check(outputs.into_iter().flatten(), fit.input.rows.iter())?;
    // An unknown name is told before the files are read.
    fit.algorithm.parse::<Algorithm>()?;
    let opened = rows::for_fit(&fit.input)?;
    if let Some(columns) = rows::columns_of(&opened).filter(|_| !quiet) {
        say(&columns)?;
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
    fit: &Fit,
    rows: Rows<T>,
    columns: &[String],
    (weights, keys): (Option<Vec<f64>>, Option<Keys>),
    (cancel, quiet): (&Cancel, bool),
) -> Result<()> {
    let shape = Shape {
        rows: rows.len(),
        columns: rows.dim(),
        clusters: fit.clusters,
        bytes: size_of::<T::Float>(),
        weighted: weights.is_some(),
    };
    let loaded = memory::holds_all(fit.memory, shape, size_of::<T>());
    let checkpoint = (fit.checkpoint_every > 0.0).then(|| checkpoint_of(fit));
    let algorithm = algorithm(fit, shape, loaded)?.cancel(cancel);
    let algorithm = match &checkpoint {
        Some(checkpoint) => algorithm.checkpoint(checkpoint),
        None => algorithm,
    };
    let estimator: Box<dyn Estimator<T::Float>> = algorithm.boxed()?;
    let bar = Bar::of_fit(quiet);
    bar.say(format!(
        "checking {} rows of {} columns",
        shape.rows, shape.columns
    ));
    let data = rows::data(rows, weights, loaded, &bar)?;
    let found = estimator.fit_observed(data.as_data(), &mut |progress| {
        bar.see(progress);
        ControlFlow::Continue(())
    });
    drop(bar);
    let again = match &checkpoint {
        Some(checkpoint) if checkpoint.path().exists() => ": the same command goes on where it was",
        _ => "",
    };
    let found = match found {
        Ok(found) if found.report.stop != Stop::Cancelled => found,
        Ok(_) | Err(Error::Cancelled) => return Err(Failure::Interrupted(again.into())),
        Err(error) => return Err(error.into()),
    };
    if let Some(fault) = &found.report.checkpoint_fault {
        eprintln!("coremix: warning: a checkpoint could not be written: {fault}");
    }

    let notes = notes(fit, shape, columns)?;
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
        labels::write(&*found.model, data.source(), labels, (cancel, quiet))?;
    }
    if let Some(checkpoint) = &checkpoint {
        std::fs::remove_file(checkpoint.path()).ok();
    }
    if !quiet {
        say(&format!("{}\nsaved {}", found.report, fit.model.display()))?;
    }
    Ok(())
}

/// The algorithm with its settings.
fn algorithm(fit: &Fit, shape: Shape, loaded: bool) -> Result<Algorithm> {
    let mut algorithm = fit.algorithm.parse::<Algorithm>()?;
    algorithm = algorithm.clusters(fit.clusters);
    algorithm = algorithm.seed(fit.seed).restarts(fit.restarts);
    macro_rules! set {
        ($($setting:ident)*) => {$(if let Some(value) = fit.$setting {
            algorithm = algorithm.$setting(value);
        })*};
    }
    set!(coreset tolerance max_iterations c_prime neighbors concentration);
    if let Some(covariance) = fit.covariance {
        algorithm = algorithm.covariance(covariance.of_crate());
    }
    if loaded {
        return Ok(algorithm);
    }
    match &*fit.algorithm {
        "fast" => algorithm = algorithm.memory(memory::for_coresets(fit.memory, shape)?),
        name => memory::check(fit.memory, (name, fit.coreset), shape)?,
    }
    Ok(algorithm)
}

/// Beside the model.
fn checkpoint_of(fit: &Fit) -> Checkpoint {
    let mut name = fit.model.clone().into_os_string();
    name.push(".checkpoint");
    let every = Duration::try_from_secs_f64(fit.checkpoint_every).unwrap_or(Duration::MAX);
    Checkpoint::to(PathBuf::from(name))
        .every(every)
        .resume_if_there()
}

/// What the file of the model says of the fit.
fn notes(fit: &Fit, shape: Shape, columns: &[String]) -> Result<Vec<(&'static str, String)>> {
    let mut notes = vec![
        ("algorithm", fit.algorithm.clone()),
        ("clusters", fit.clusters.to_string()),
        ("seed", fit.seed.to_string()),
        ("restarts", fit.restarts.to_string()),
        ("rows", shape.rows.to_string()),
        ("memory", fit.memory.0.to_string()),
    ];
    let mut add = |name, value: Option<String>| notes.extend(value.map(|value| (name, value)));
    add("coreset", fit.coreset.map(|x| x.to_string()));
    add("tolerance", fit.tolerance.map(|x| x.to_string()));
    add("max-iterations", fit.max_iterations.map(|x| x.to_string()));
    add("c-prime", fit.c_prime.map(|x| x.to_string()));
    add("neighbors", fit.neighbors.map(|x| x.to_string()));
    add("concentration", fit.concentration.map(|x| x.to_string()));
    if !columns.is_empty() {
        let names = serde_json::to_string(columns);
        let names = names.map_err(|error| Failure::arguments(error.to_string()))?;
        notes.push((COLUMNS, names));
    }
    Ok(notes)
}
