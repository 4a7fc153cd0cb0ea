//! The settings of a fit by name.

use crate::bytes::bytes_of;
use crate::errors::{Names, named, raise};
use crate::fitted::{Model, each};
use coremix::families::{Column, Covariance, DirichletProcess, Prior};
use coremix::{Algorithm, Cancel, Metric, Rule};
use coremix_files::Bytes;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The algorithm that these settings name: each is as the method of [`Algorithm`]. Settings that are `None` have the
/// default of the algorithm.
pub(crate) fn algorithm(
    settings: &Bound<'_, PyDict>,
    names: &Names,
    cancel: &Cancel,
) -> PyResult<Algorithm> {
    let mut algorithm: Option<Algorithm> = None;
    let given = || settings.iter().filter(|(_, value)| !value.is_none());
    for (name, value) in given() {
        if name.extract::<&str>()? == "algorithm" {
            let parsed = value.extract::<&str>()?.parse();
            algorithm = Some(parsed.map_err(|error| named(error, names, None))?);
        }
    }
    let missing = || PyTypeError::new_err("algorithm must be given");
    let mut algorithm = algorithm.ok_or_else(missing)?.cancel(cancel);
    for (name, value) in given() {
        let name: &str = name.extract()?;
        let own = names.get(name).map_or(name, |own| own);
        algorithm = match name {
            // The rows decide what becomes of a limit.
            "algorithm" | "memory" => algorithm,
            "clusters" => algorithm.clusters(count(own, &value)?),
            "coreset" => algorithm.coreset(count(own, &value)?),
            "c_prime" => algorithm.c_prime(count(own, &value)?),
            "neighbors" => algorithm.neighbors(count(own, &value)?),
            "random" => algorithm.random(count(own, &value)?),
            "drawn" => algorithm.drawn(count(own, &value)?),
            "chain" => algorithm.chain(count(own, &value)?),
            "max_iterations" => algorithm.max_iterations(count(own, &value)?),
            "restarts" => algorithm.restarts(count(own, &value)?),
            "greedy" => algorithm.greedy(flag(own, &value)?),
            "standardise" => algorithm.standardise(flag(own, &value)?),
            "refined" => algorithm.refined(flag(own, &value)?),
            "epsilon" => algorithm.epsilon(number(own, &value)?),
            "concentration" => algorithm.concentration(number(own, &value)?),
            "tolerance" => algorithm.tolerance(number(own, &value)?),
            "process" => algorithm.process(process(value.cast()?, names)?),
            "prior" => algorithm.prior(prior(value.cast()?, names)?),
            "covariance" => algorithm.covariance(covariance(own, &value)?),
            "columns" => algorithm.columns(kinds_in(own, &value)?),
            "metric" => algorithm.metric(one_of(own, &value, &METRICS)?),
            "stop_rule" => algorithm.stop_rule(one_of(own, &value, &STOP_RULES)?),
            "centres" => {
                let centres: PyReadonlyArray2<'_, f64> = value.extract()?;
                algorithm.centres(centres.as_array().to_owned())
            }
            "start_from" => {
                let model = value.cast::<Model>()?;
                each!(model.get(), model: F => algorithm.start_from(model))
            }
            "seed" => algorithm.seed(value.extract()?),
            other => return Err(PyTypeError::new_err(format!("no setting {other}"))),
        };
    }
    Ok(algorithm)
}

/// The kinds of columns among settings, if there are some.
pub(crate) fn kinds(settings: &Bound<'_, PyDict>) -> PyResult<Vec<Column>> {
    let given = settings.get_item("columns")?;
    given.map_or(Ok(Vec::new()), |kinds| kinds_in("columns", &kinds))
}

fn kinds_in(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<Column>> {
    let kinds: Vec<Bound<'_, PyAny>> = value.extract()?;
    let kinds = kinds.iter().map(|kind| one_of(name, kind, &COLUMNS));
    kinds.collect()
}

/// The limit of memory among settings, if there is one.
pub(crate) fn limit(settings: &Bound<'_, PyDict>) -> PyResult<Option<Bytes>> {
    let limit = settings
        .get_item("memory")?
        .filter(|limit| !limit.is_none());
    limit.map(|limit| bytes_of("memory", &limit)).transpose()
}

/// A number of something: negative ones are errors that name the parameter.
fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let wrong = |_| match value.extract::<i128>() {
        Ok(value) => PyValueError::new_err(format!("{name} = {value}: must be at least 1")),
        Err(_) => PyTypeError::new_err(format!("{name} = {value:?}: must be an integer")),
    };
    value.extract().map_err(wrong)
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let wrong = |_| PyTypeError::new_err(format!("{name} = {value:?}: must be a number"));
    value.extract().map_err(wrong)
}

fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    // A bool of NumPy, too.
    let wrong = |_| PyTypeError::new_err(format!("{name} = {value:?}: must be True or False"));
    value.extract().map_err(wrong)
}

/// The names of kinds of covariances.
const COVARIANCES: [(&str, Covariance); 6] = [
    ("full", Covariance::Full),
    ("tied", Covariance::Tied),
    ("diag", Covariance::Diagonal),
    ("spherical", Covariance::Spherical),
    ("tied-spherical", Covariance::TiedSpherical),
    // Their number follows a colon.
    ("factors", Covariance::Factors(0)),
];

const COLUMNS: [(&str, Column); 3] = [
    ("number", Column::Number),
    ("count", Column::Count),
    ("category", Column::Category(0)),
];

const METRICS: [(&str, Metric); 2] = [("euclidean", Metric::Euclidean), ("cosine", Metric::Cosine)];

/// The names of stop rules.
const STOP_RULES: [(&str, Rule); 4] = [
    ("per-coordinate", Rule::PerCoordinate),
    ("relative-to-free-energy", Rule::RelativeToFreeEnergy),
    ("remaining", Rule::Remaining),
    ("remaining-per-row", Rule::RemainingPerRow),
];

/// The kind of covariances that a name means.
fn covariance(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Covariance> {
    let given = value.extract::<&str>().unwrap_or_default();
    let factors = given.strip_prefix("factors:").map(str::parse);
    match factors {
        Some(Ok(factors)) => Ok(Covariance::Factors(factors)),
        _ => one_of(name, value, &COVARIANCES),
    }
}

/// The value that a name means.
fn one_of<T: Copy>(name: &str, value: &Bound<'_, PyAny>, all: &[(&str, T)]) -> PyResult<T> {
    let given = value.extract::<&str>().ok();
    if let Some((_, meant)) = all.iter().find(|(own, _)| Some(*own) == given) {
        return Ok(*meant);
    }
    let known: Vec<_> = all.iter().map(|(own, _)| format!("'{own}'")).collect();
    let (last, others) = known.split_last().expect("there are names");
    let rule = format!("must be {} or {last}", others.join(", "));
    let value = match given {
        Some(given) => format!("{given:?}"),
        None => value.repr()?.to_string(),
    };
    Err(PyValueError::new_err(format!("{name} = {value}: {rule}")))
}

/// Rows in advance, of some variance, in covariances and in proportions, and a ridge.
fn prior(settings: &Bound<'_, PyDict>, names: &Names) -> PyResult<Prior> {
    let as_number = |name: &str, core: &str| {
        let own = names.get(core).map_or(core, |own| own);
        settings
            .get_item(name)?
            .map_or(Ok(0.0), |value| number(own, &value))
    };
    let prior = Prior::new(as_number("rows", "prior rows")?)
        .proportions(as_number("proportions", "prior rows of proportions")?)
        .ridge(as_number("ridge", "ridge")?);
    let given = settings
        .get_item("variance")?
        .filter(|value| !value.is_none());
    let Some(variance) = given else {
        return Ok(prior);
    };
    let name = names.get("prior variance");
    let name = name.map_or("prior variance", |given| given);
    Ok(prior.variance(number(name, &variance)?))
}

/// A Dirichlet process with its concentration and priors by name; those that are `None` have their defaults.
fn process(priors: &Bound<'_, PyDict>, names: &Names) -> PyResult<DirichletProcess> {
    let given =
        |name: &str| Ok::<_, PyErr>(priors.get_item(name)?.filter(|value| !value.is_none()));
    let as_number = |name: &str| {
        let own = names.get(name).map_or(name, |own| own);
        given(name)?.map(|value| number(own, &value)).transpose()
    };
    let mut process = DirichletProcess::new(as_number("concentration")?.unwrap_or(1.0));
    if let Some(precision) = as_number("mean_precision")? {
        process = process.mean_precision(precision);
    }
    if let Some(degrees) = as_number("degrees_of_freedom")? {
        process = process.degrees_of_freedom(degrees);
    }
    if let Some(mean) = given("mean")? {
        process = process.mean(mean.extract::<PyReadonlyArray1<'_, f64>>()?.as_array());
    }
    if let Some(scale) = given("scale")? {
        process = process.scale(scale.extract::<PyReadonlyArray2<'_, f64>>()?.as_array());
    }
    if let Some(merges) = given("merges")? {
        let own = names.get("merges").map_or("merges", |own| own);
        process = process.merges(flag(own, &merges)?);
    }
    Ok(process)
}

/// The names of the settings that an algorithm has; without one, the names of all algorithms.
#[pyfunction]
#[pyo3(signature = (algorithm=None))]
pub(crate) fn settings(algorithm: Option<&str>) -> PyResult<Vec<&'static str>> {
    let Some(name) = algorithm else {
        return Ok(Algorithm::NAMES.to_vec());
    };
    Ok(name.parse::<Algorithm>().map_err(raise)?.settings())
}
