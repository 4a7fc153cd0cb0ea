//! The settings of a fit by name.

use crate::errors::{Names, named};
use coremix::{Algorithm, Cancel, Family};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The algorithm that these settings name: each is as the method `with_...` of [`Algorithm`]. Those that are `None` have the
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
            algorithm = Some(parsed.map_err(|error| named(error, names))?);
        }
    }
    let missing = || PyTypeError::new_err("algorithm must be given");
    let mut algorithm = algorithm.ok_or_else(missing)?.with_cancel(cancel);
    for (name, value) in given() {
        let name: &str = name.extract()?;
        let own = names.get(name).map_or(name, |own| own);
        algorithm = match name {
            "algorithm" => algorithm,
            "clusters" => algorithm.with_clusters(count(own, &value)?),
            "coreset" => algorithm.with_coreset(count(own, &value)?),
            "memory" => algorithm.with_memory(count(own, &value)?),
            "c_prime" => algorithm.with_c_prime(count(own, &value)?),
            "neighbors" => algorithm.with_neighbors(count(own, &value)?),
            "random" => algorithm.with_random(count(own, &value)?),
            "drawn" => algorithm.with_drawn(count(own, &value)?),
            "chain" => algorithm.with_chain(count(own, &value)?),
            "max_iterations" => algorithm.with_max_iterations(count(own, &value)?),
            "restarts" => algorithm.with_restarts(count(own, &value)?),
            "greedy" => algorithm.with_greedy(value.extract()?),
            "refined" => algorithm.with_refined(value.extract()?),
            "epsilon" => algorithm.with_epsilon(number(own, &value)?),
            "concentration" => algorithm.with_concentration(number(own, &value)?),
            "tolerance" => algorithm.with_tolerance(number(own, &value)?),
            "family" => algorithm.with_family(family(own, value.extract()?)?),
            "seed" => algorithm.with_seed(value.extract()?),
            other => return Err(PyTypeError::new_err(format!("no setting {other}"))),
        };
    }
    Ok(algorithm)
}

/// A number of something: negative ones are errors that name the parameter.
fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let wrong = |_| match value.extract::<i128>() {
        Ok(value) => PyValueError::new_err(format!("{name} = {value}: must be at least 1")),
        Err(_) => PyTypeError::new_err(format!("{name} = {value}: must be an integer")),
    };
    value.extract().map_err(wrong)
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let wrong = |_| PyTypeError::new_err(format!("{name} = {value}: must be a number"));
    value.extract().map_err(wrong)
}

fn family(name: &str, value: &str) -> PyResult<Family> {
    match value {
        "tied-spherical" => Ok(Family::Shared),
        "spherical" => Ok(Family::Isotropic),
        "diag" => Ok(Family::Diagonal),
        _ => {
            let rule = "must be 'diag', 'spherical' or 'tied-spherical'";
            Err(PyValueError::new_err(format!("{name} = {value:?}: {rule}")))
        }
    }
}
