//! The settings of a fit by name.

use crate::errors::{Names, named};
use crate::memory::bytes_of;
use crate::model::{Model, each};
use coremix::m_step::Covariance;
use coremix::{Algorithm, Cancel};
use coremix_files::Bytes;
use numpy::PyReadonlyArray2;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The algorithm that these settings name: each is as the method of [`Algorithm`]. Those that are `None` have the
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
            "greedy" => algorithm.greedy(value.extract()?),
            "refined" => algorithm.refined(value.extract()?),
            "epsilon" => algorithm.epsilon(number(own, &value)?),
            "concentration" => algorithm.concentration(number(own, &value)?),
            "tolerance" => algorithm.tolerance(number(own, &value)?),
            "covariance" => algorithm.covariance(covariance(own, value.extract()?)?),
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

fn covariance(name: &str, value: &str) -> PyResult<Covariance> {
    match value {
        "tied-spherical" => Ok(Covariance::TiedSpherical),
        "spherical" => Ok(Covariance::Spherical),
        "diag" => Ok(Covariance::Diagonal),
        "tied" => Ok(Covariance::Tied),
        "full" => Ok(Covariance::Full),
        _ => {
            let rule = "must be 'full', 'tied', 'diag', 'spherical' or 'tied-spherical'";
            Err(PyValueError::new_err(format!("{name} = {value:?}: {rule}")))
        }
    }
}
