//! `coremix fit`

use crate::arguments::{self, Assign, Common, Fit as Arguments, Metric, Names};
use crate::assign;
use crate::failure::{Failure, Result};
use crate::found::{self, Fitted};
use crate::labels::{self, Labels, PerFile};
use crate::messages::{is_quiet, note, warn};
use crate::outputs::{self, Output};
use crate::progress::Bar;
use crate::rows::{self, COLUMNS, MISSING, Shared, with_rows};
use coremix::data::Source as _;
use coremix::families::Column;
use coremix::prelude::*;
use coremix::{Checkpoint, Element, Estimator, Float};
use coremix_files::{Keys, ReadAhead, Room, Rows, texts_note};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(fit: &Arguments, cancel: &Cancel) -> Result<()> {
    let assign = assign_of(fit)?;
    let labels = match &assign {
        Some(assign) => {
            assign::check(assign)?;
            None
        }
        None => fit.labels.as_deref(),
    };
    if let Some(path) = labels {
        labels::check(path, false)?;
    }
    let checkpoint = checkpoint_of(fit);
    let keys = rows::keys(&fit.input);
    let outputs = [
        fit.model.as_deref().map(Output::Model),
        checkpoint.as_deref().map(Output::Checkpoint),
        labels.map(|path| Output::Labels(path, &keys)),
        fit.report.as_deref().map(Output::Report),
    ];
    let outputs: Vec<Output<'_>> = outputs.into_iter().flatten().collect();
    outputs::check(&outputs, &fit.input.rows, fit.over.force)?;
    // Wrong settings are an error before all rows are read.
    check_sketch(fit)?;
    algorithm(fit, &[], 0)?.boxed::<f64>()?;
    let opened = rows::for_fit(&fit.input, &fit.common)?;
    outputs::check(&outputs, &opened.files, fit.over.force)?;
    if !is_quiet() {
        rows::say_columns(&opened)?;
    }
    let columns = opened.columns;
    let weights_and_keys = (opened.weights, opened.keys);
    let texts = opened.texts;
    let decoder = opened.decoder;
    with_rows!(opened.rows, |rows| of_rows(
        fit,
        rows,
        (&columns, &texts),
        weights_and_keys,
        decoder,
        cancel
    ))
}

/// An error for a model that no sketch has.
fn check_sketch(fit: &Arguments) -> Result<()> {
    use arguments::Covariance::{Full, Tied};
    if fit.coordinates.is_none() {
        return Ok(());
    }
    let common = &fit.common;
    let other = match (&*fit.algorithm, common.covariance) {
        _ if common.metric == Metric::Cosine => "--metric cosine",
        ("dp-gmm", _) => "-a dp-gmm",
        ("table", _) => "-a table",
        (_, Some(Tied)) => "--covariance tied",
        (_, Some(Full)) => "--covariance full",
        _ => return Ok(()),
    };
    let what = format!("--coordinates: {other} needs all columns of a row: leave one of them out");
    Err(Failure::arguments(what))
}

/// The command that writes the labels of each file of rows by the saved model, if they are asked for.
fn assign_of(fit: &Arguments) -> Result<Option<Assign>> {
    let Some(labels) = &fit.labels else {
        return Ok(None);
    };
    if PerFile::of(labels).is_none() {
        return Ok(None);
    }
    let Some(model) = &fit.model else {
        let what = "--labels: a file for each file of rows needs --model, which labels them";
        return Err(Failure::arguments(what));
    };
    if fit.input.rows.iter().any(|path| path == Path::new("-")) {
        let what = "--labels: the standard input is one file of rows: name one file of labels";
        return Err(Failure::arguments(what));
    }
    Ok(Some(Assign {
        model: model.clone(),
        input: fit.input.clone(),
        labels: labels.clone(),
        top: None,
        densities: false,
        over: fit.over.clone(),
    }))
}

fn of_rows<T: Element>(
    fit: &Arguments,
    rows: Rows<T>,
    (columns, texts): (&[String], &[(String, Vec<String>)]),
    (weights, keys): (Option<Vec<f64>>, Option<Keys>),
    decoder: u64,
    cancel: &Cancel,
) -> Result<()> {
    let started = Instant::now();
    let rows = Arc::new(rows);
    let fitted = fitted(fit, &rows, weights, columns, decoder, cancel)?;
    if let Some(fault) = &fitted.report.checkpoint_fault {
        warn(&format!("a checkpoint could not be written: {fault}"));
    }
    warn_of_few_rows(&fitted);
    if fitted.report.at_floor > 0 {
        let held = fitted.report.at_floor;
        warn(&format!(
            "a floor of variances holds {held} clusters with more rows than columns: rows equal in a column, or dependent columns. \
             Densities and criteria say little"
        ));
    }

    let mut notes = notes(fit, rows.len(), columns, &fitted.sizes)?;
    notes.extend(texts_note(&texts.iter().cloned().collect()));
    let notes: Vec<(&str, &str)> = notes.iter().map(|(name, text)| (*name, &**text)).collect();
    if let Some(path) = &fit.model {
        fitted.model.save_with_notes(path, &notes)?;
    }
    if let Some(path) = &fit.report {
        outputs::replace(path, |file| {
            let written = serde_json::to_writer_pretty(file, &fitted.report);
            written.map_err(|error| Failure::file(path, error))
        })?;
    }
    if let Some(path) = &fit.labels {
        let written = match assign_of(fit)? {
            Some(assign) => assign::run(&assign, cancel),
            None => {
                let labels = Labels {
                    path,
                    keys,
                    top: 0,
                    densities: false,
                };
                let rows = ReadAhead::new(rows.clone());
                labels::write(&*fitted.model, &rows, labels, cancel)
            }
        };
        written.map_err(|failure| match (failure, &fit.model) {
            (Failure::Interrupted(_), Some(model)) => Failure::Interrupted(format!(
                ": the model is saved in {}, and 'coremix assign' writes the labels",
                model.display()
            )),
            (failure, _) => failure,
        })?;
    }
    if let Some(path) = checkpoint_of(fit) {
        std::fs::remove_file(path).ok();
    }
    if is_quiet() {
        Ok(())
    } else {
        fitted.say(fit, rows.len(), started.elapsed())
    }
}

/// Fits a model to rows, in memory where they fit.
fn fitted<T: Element>(
    fit: &Arguments,
    rows: &Shared<T>,
    weights: Option<Vec<f64>>,
    columns: &[String],
    decoder: u64,
    cancel: &Cancel,
) -> Result<Fitted<T::Float>> {
    let mut algorithm = algorithm(fit, columns, rows.dim())?.cancel(cancel);
    if let Some(path) = checkpoint_of(fit) {
        let every = Duration::try_from_secs_f64(fit.checkpoint_every).unwrap_or(Duration::MAX);
        if Checkpoint::to(&path).exists() && !is_quiet() {
            note(&format!("coremix: goes on from {}", path.display()));
        }
        let checkpoint = Checkpoint::to(path).every(every);
        algorithm = algorithm.checkpoint(&checkpoint.resume_if_there());
    }
    let shape = (rows.len(), rows.dim());
    let weighted = weights.is_some();
    let room = Room::new(fit.common.memory, shape, weighted).decoder(decoder);
    let (algorithm, loaded) = match (rows.lists(), fit.coordinates) {
        (Some(_), Some(_)) => {
            let what = "--coordinates: sparse rows have no sketch: leave it out";
            return Err(Failure::arguments(what));
        }
        // The lists are in memory in any case.
        (Some((_, ids, _)), None) => {
            let lists = ids.len() * (size_of::<u32>() + size_of::<T::Float>()) + 8 * shape.0;
            let room = room.sparse(ids.len()).taking(lists as u64);
            (room.plan::<T>(algorithm, 0)?.0, true)
        }
        (None, Some(q)) => {
            // The sketch has a copy of the weights.
            let copy = if weighted { 8 * shape.0 as u64 } else { 0 };
            let room = room.taking(copy);
            room.check_sketch::<T::Float>(&algorithm, q)?;
            (algorithm, false)
        }
        (None, None) => room.plan::<T>(algorithm, 1)?,
    };
    let estimator: Box<dyn Estimator<T::Float>> = algorithm.boxed()?;
    let bar = Bar::of_fit();
    bar.say(format!("checking {} rows of {} columns", shape.0, shape.1));
    let again = || match checkpoint_of(fit) {
        Some(path) if Checkpoint::to(&path).exists() => "the same command goes on where it was",
        Some(_) => "nothing was there to save yet, so the same command begins anew",
        None => {
            "nothing is saved without --model and --checkpoint-every, so the same command begins anew"
        }
    };
    let ended_by = |error| match error {
        Error::Cancelled => Failure::Interrupted(format!(": {}", again())),
        error => Failure::naming(error, columns),
    };
    let data = match fit.coordinates {
        Some(q) => {
            let sketch = (q, fit.common.seed);
            rows::sketched(rows, weights.as_deref(), sketch, &bar, cancel).map_err(ended_by)?
        }
        None => rows::data(rows, weights, loaded, &bar)?,
    };
    let data = data.as_data();
    if !fit.common.categories.is_empty() {
        let kinds = kinds(&fit.common, columns, shape.1)?;
        room.check_categories::<T>(&algorithm, (&kinds, data.summary()), loaded)?;
    }
    // Coordinates of a sketch are no columns.
    if fit.coordinates.is_none() {
        let one_variance = has_one_variance(&fit.algorithm, &fit.common);
        rows::warn_of_columns(columns, data.summary(), one_variance);
    }
    let outcome = estimator.fit_observed(data, &mut |progress| {
        bar.see(progress);
        ControlFlow::Continue(())
    });
    drop(bar);
    match outcome {
        Ok(ended) if ended.report.stop != Stop::Cancelled => Ok(Fitted::new(ended, data)?),
        Ok(_) => Err(ended_by(Error::Cancelled)),
        Err(error) => Err(ended_by(error)),
    }
}

/// The covariances that are asked for. For gmm the default is diagonal, as in Python: columns may differ in their units.
pub(crate) fn covariance_of(
    algorithm: &str,
    given: Option<arguments::Covariance>,
) -> Option<arguments::Covariance> {
    given.or((algorithm == "gmm").then_some(arguments::Covariance::Diagonal))
}

/// Whether the variance of a component is that of all columns, as they are.
pub(crate) fn has_one_variance(algorithm: &str, common: &Common) -> bool {
    use arguments::Covariance::{Spherical, TiedSpherical};
    let one = match covariance_of(algorithm, common.covariance) {
        Some(covariance) => matches!(covariance, Spherical | TiedSpherical),
        None => !matches!(algorithm, "dp-gmm" | "sparsified-gmm" | "table"),
    };
    one && common.factors.is_none() && !common.standardise && common.metric == Metric::Euclidean
}

/// The rows that components have in advance, if any option asks for them.
fn prior_of(common: &Common) -> Option<Prior> {
    let rows = common.prior_rows;
    let ridge = common.ridge;
    rows.or(common.prior_proportions).or(ridge)?;
    let prior = Prior::new(rows.unwrap_or(0.0))
        .ridge(ridge.unwrap_or(0.0))
        .proportions(common.prior_proportions.unwrap_or(0.0));
    let variance = common.prior_variance;
    Some(variance.map_or(prior, |variance| prior.variance(variance)))
}

/// Says that densities are those of no rows at all, where a component has too few for its covariance, and nothing in advance.
fn warn_of_few_rows<F: Float>(fitted: &Fitted<F>) {
    let few = match found::covariances(&*fitted.model) {
        _ if fitted.model.at_floor().is_empty() => return,
        None | Some(Covariance::TiedSpherical | Covariance::Tied) => return,
        Some(Covariance::Diagonal | Covariance::Spherical) => 1,
        Some(Covariance::Factors(factors)) => factors + 1,
        Some(_) => fitted.model.means().ncols(),
    };
    let rows = fitted.report.phases.last().map_or(0, |phase| phase.rows);
    let masses = fitted
        .model
        .proportions()
        .into_iter()
        .map(|p| p * rows as f64);
    let least = masses
        .filter(|mass| *mass > 0.0)
        .fold(f64::INFINITY, f64::min);
    // Proportions are sums that are rounded.
    if least < few as f64 + 0.5 {
        let has = match few {
            1 => "a component has a single row",
            _ if few < fitted.model.means().ncols() => {
                "a component has so few rows that its factors go through all of them"
            }
            _ => "a component has no more rows than columns",
        };
        warn(&format!(
            "{has}, so that its variances stand at their floor and its density says nothing: ask for fewer clusters, for --covariance tied, or for --prior-rows 1"
        ));
    }
}

/// The kinds of `dim` columns with these names, or numbered from 0 on if they have none. Before the columns are known, `dim` is 0.
fn kinds(common: &Common, names: &[String], dim: usize) -> Result<Vec<Column>> {
    let mut kinds = vec![Column::Number; dim];
    let options = [
        ("--counts", &common.counts, Column::Count),
        ("--categories", &common.categories, Column::Category(0)),
    ];
    for (option, given, kind) in options {
        for name in given
            .iter()
            .flat_map(|Names(names)| names)
            .filter(|_| dim > 0)
        {
            let place = if names.is_empty() {
                name.parse().ok().filter(|place| *place < dim)
            } else {
                names.iter().position(|known| known == name)
            };
            let known = if names.is_empty() {
                format!("0 to {}", dim - 1)
            } else {
                names.join(", ")
            };
            let unknown =
                || Failure::arguments(format!("{option} {name}: no such column; they are {known}"));
            let place = place.ok_or_else(unknown)?;
            if kinds[place] != Column::Number && kinds[place] != kind {
                let twice = format!("{option} {name}: it is one of --counts already");
                return Err(Failure::arguments(twice));
            }
            kinds[place] = kind;
        }
    }
    Ok(kinds)
}

/// An algorithm with the settings that every fit has, for `dim` columns with these names.
pub(crate) fn common(
    name: &str,
    common: &Common,
    columns: &[String],
    dim: usize,
) -> Result<Algorithm> {
    let mut algorithm = name.parse::<Algorithm>()?;
    algorithm = algorithm.seed(common.seed).standardise(common.standardise);
    if let Some(restarts) = common.restarts {
        algorithm = algorithm.restarts(restarts);
    }
    if !common.counts.is_empty() || !common.categories.is_empty() {
        algorithm = algorithm.columns(kinds(common, columns, dim)?);
    }
    let covariance = match common.metric {
        Metric::Euclidean => covariance_of(name, common.covariance),
        Metric::Cosine => {
            algorithm = algorithm.metric(coremix::Metric::Cosine);
            common.covariance
        }
    };
    let factors = common.factors.map(Covariance::Factors);
    if let Some(covariance) = factors.or(covariance.map(arguments::Covariance::of_crate)) {
        algorithm = algorithm.covariance(covariance);
    }
    if let Some(prior) = prior_of(common) {
        algorithm = algorithm.prior(prior);
    }
    Ok(algorithm)
}

/// The algorithm with its settings.
fn algorithm(fit: &Arguments, columns: &[String], dim: usize) -> Result<Algorithm> {
    let mut algorithm = common(&fit.algorithm, &fit.common, columns, dim)?.clusters(fit.clusters);
    macro_rules! set {
        ($($setting:ident)*) => {$(if let Some(value) = fit.$setting {
            algorithm = algorithm.$setting(value);
        })*};
    }
    set!(tolerance max_iterations c_prime neighbors concentration);
    if let Some(draws) = fit.common.coreset {
        algorithm = algorithm.coreset(draws);
    }
    Ok(algorithm)
}

/// The path of checkpoints, if there are any: next to the model.
fn checkpoint_of(fit: &Arguments) -> Option<PathBuf> {
    let model = fit.model.clone().filter(|_| fit.checkpoint_every > 0.0);
    let mut name = model?.into_os_string();
    name.push(".checkpoint");
    Some(PathBuf::from(name))
}

/// The note with the size of each cluster, and that with the memory, in bytes.
pub(crate) const SIZES: &str = "sizes";
pub(crate) const MEMORY: &str = "memory";

/// Notes that are numbers.
pub(crate) const NUMBERS: [&str; 16] = [
    "clusters",
    "seed",
    "restarts",
    "rows",
    MEMORY,
    "coreset",
    "tolerance",
    "max-iterations",
    "c-prime",
    "neighbors",
    "coordinates",
    "concentration",
    "prior-rows",
    "prior-variance",
    "prior-proportions",
    "ridge",
];

/// Notes on the fit for the file of the model.
fn notes(
    fit: &Arguments,
    rows: usize,
    columns: &[String],
    sizes: &[f64],
) -> Result<Vec<(&'static str, String)>> {
    let mut notes = vec![
        ("algorithm", fit.algorithm.clone()),
        ("clusters", fit.clusters.to_string()),
        ("seed", fit.common.seed.to_string()),
        ("rows", rows.to_string()),
        (MEMORY, fit.common.memory.0.to_string()),
    ];
    let mut add = |name, value: Option<String>| notes.extend(value.map(|value| (name, value)));
    add("restarts", fit.common.restarts.map(|x| x.to_string()));
    add("coreset", fit.common.coreset.map(|x| x.to_string()));
    add("tolerance", fit.tolerance.map(|x| x.to_string()));
    add("max-iterations", fit.max_iterations.map(|x| x.to_string()));
    add("c-prime", fit.c_prime.map(|x| x.to_string()));
    add("neighbors", fit.neighbors.map(|x| x.to_string()));
    add("coordinates", fit.coordinates.map(|x| x.to_string()));
    add("concentration", fit.concentration.map(|x| x.to_string()));
    let common = &fit.common;
    let text = |x: Option<f64>| x.map(|x| x.to_string());
    add("prior-rows", text(common.prior_rows));
    add("prior-variance", text(common.prior_variance));
    add("prior-proportions", text(common.prior_proportions));
    add("ridge", text(common.ridge));
    add("standardised", fit.common.standardise.then(|| "yes".into()));
    let cosine = fit.common.metric == Metric::Cosine;
    add("metric", cosine.then(|| "cosine".into()));
    let sizes: Vec<_> = sizes
        .iter()
        .map(|size| found::in_words(fit, *size))
        .collect();
    notes.push((SIZES, sizes.join(" ")));
    let mut list = |name, texts: &[String]| {
        let texts =
            serde_json::to_string(texts).map_err(|error| Failure::arguments(error.to_string()))?;
        notes.push((name, texts));
        Ok::<_, Failure>(())
    };
    if let Some(texts) = rows::missing(&fit.input) {
        list(MISSING, &texts)?;
    }
    if !columns.is_empty() {
        list(COLUMNS, columns)?;
    }
    Ok(notes)
}
