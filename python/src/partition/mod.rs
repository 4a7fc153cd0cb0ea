//! An iteration of EM on rows that lie in many places: sums of each partition, merged in any order.

mod coreset;
mod exact;
mod m_step;
mod pass;
mod plain;
mod sums;

use crate::errors::raise;
use crate::input::{Input, Weights};
use crate::model::Model;
use crate::threads;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sums::Sums;

fn wrong(what: String) -> PyErr {
    PyValueError::new_err(what)
}

/// The sums of an E-step on some rows, as bytes. `width`: components that share a row; None means all.
#[pyfunction]
#[pyo3(signature = (x, model, *, weights=None, width=None, threads=0))]
pub(crate) fn stats<'py>(
    py: Python<'py>,
    x: Input<'py>,
    model: &Model,
    weights: Weights<'py>,
    width: Option<usize>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = x.rows();
    let weights = weights.as_ref().map(|weights| weights.as_array());
    let sums = py.detach(|| threads::on(threads, || pass::pass(&rows, weights, model, width)))?;
    Ok(PyBytes::new(py, &sums.map_err(wrong)?.to_bytes()))
}

/// The sums of all parts together, which must be of the same model.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    parts: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut parts = parts.iter().map(|part| Sums::of_bytes(part.as_bytes()));
    let first = parts
        .next()
        .unwrap_or_else(|| Err("no parts to merge: there must be at least one".into()));
    let merged = parts.try_fold(first.map_err(wrong)?, |all, part| {
        part.and_then(|part| all.merge(part)).map_err(wrong)
    })?;
    Ok(PyBytes::new(py, &merged.to_bytes()))
}

/// The model after the M-step.
#[pyfunction]
pub(crate) fn update(model: &Model, sums: &[u8]) -> PyResult<Model> {
    let sums = Sums::of_bytes(sums).map_err(wrong)?;
    m_step::update(model, &sums).map_err(wrong)
}

/// What sums say of their rows and model: `rows`, `weight`, `free_energy`, `masses`.
#[pyfunction]
pub(crate) fn describe<'py>(py: Python<'py>, sums: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let sums = Sums::of_bytes(sums).map_err(wrong)?;
    let found = PyDict::new(py);
    found.set_item("rows", sums.rows)?;
    found.set_item("weight", exact::weight(sums.weight))?;
    found.set_item("free_energy", exact::nats(sums.free_energy))?;
    let masses: Vec<f64> = (0..sums.components.len()).map(|c| sums.mass(c)).collect();
    found.set_item("masses", masses)?;
    Ok(found)
}

/// A coreset of `size` draws: rows (at most `size`, d) and weights.
#[pyfunction]
#[pyo3(signature = (x, size, seed, *, weights=None, threads=0))]
pub(crate) fn sample<'py>(
    py: Python<'py>,
    x: Input<'py>,
    size: usize,
    seed: u64,
    weights: Weights<'py>,
    threads: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
    let rows = x.rows();
    let weights = weights.as_ref().map(|weights| weights.as_array());
    macro_rules! drawn {
        ($of:ty) => {{
            let draw = || coreset::sample::<$of>(&rows, weights, size, seed);
            let drawn = py.detach(|| threads::on(threads, draw))?.map_err(raise)?;
            (
                drawn.0.into_pyarray(py).into_any(),
                drawn.1.into_pyarray(py),
            )
        }};
    }
    Ok(match rows.is_double() {
        true => drawn!(f64),
        false => drawn!(f32),
    })
}
