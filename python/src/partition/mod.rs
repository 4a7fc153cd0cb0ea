//! An iteration of EM on rows that lie in many places: sums of each partition, merged in any order.

use crate::errors::{raise, raise_in, raise_summed};
use crate::family;
use crate::fitted::{Model, OfType, each};
use crate::input::{Input, Number, Rows, Weights, needs_all};
use coremix::data::{Blocks, Dense, RowKind};
use coremix::families::{Covariance, ExactSums, Family, GaussianMixture};
use coremix::ndarray::{Array2, ArrayView1};
use coremix::{BoxedMixture, Cancel, Error, Mixture as _, Result};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// The mixture, if there are sums for it.
fn gaussian<F: Number>(model: &BoxedMixture<F>) -> Result<&GaussianMixture<F>> {
    let rule = match Family::of(&**model) {
        Some(Family::Gaussian(own)) if own.frame().basis().is_some() => {
            "partitions are not for models on a sketch: fit one to the coresets that coremix.sample draws on each, or to a coremix.scan"
        }
        Some(Family::Gaussian(own)) => match own.covariance_kind() {
            Covariance::TiedSpherical | Covariance::Spherical | Covariance::Diagonal => {
                return Ok(own);
            }
            _ => {
                "partitions have sums of variances alone: fit other covariances to the coresets that coremix.sample draws on each, \
                 or to a coremix.scan"
            }
        },
        _ => {
            "partitions are for Gaussian mixtures, not for a Dirichlet process, directions or tables: fit these to the coresets that \
             coremix.sample draws on each, or to a coremix.scan"
        }
    };
    Err(Error::Parameter {
        name: "model",
        value: family::name(model)?,
        rule,
    })
}

fn sums_of<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    model: &BoxedMixture<F>,
    width: Option<usize>,
) -> Result<ExactSums> {
    let model = gaussian(model)?;
    let (k, columns) = model.means().dim();
    let width = width.unwrap_or(k);
    if rows.are_unknown() {
        let none = Array2::zeros((0, columns));
        return ExactSums::e_step(model, &Dense::<F>::batch(&none)?, weights, width);
    }
    // Sparse rows with their zeros: a block of them at a time.
    let data = match rows.stored() {
        Some(_) if rows.len() > 0 => Box::new(Blocks::new(F::read(rows))?),
        _ => rows.asked::<F>(None)?,
    };
    if data.kind() == RowKind::Dense {
        ExactSums::e_step(model, &*data, weights, width)
    } else {
        Err(needs_all())
    }
}

fn read(sums: &[u8]) -> PyResult<ExactSums> {
    let what = "statistics: these are not the bytes that stats or merge made";
    ExactSums::from_bytes(sums).map_err(|error| PyValueError::new_err(format!("{what} ({error})")))
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
    let weights = weights.as_ref().map(|weights| weights.as_array());
    let cancel = Cancel::default();
    let sums = x.work(
        py,
        &cancel,
        threads,
        |rows| each!(model, own: F => sums_of::<F>(rows, weights, own, width)),
    )?;
    let sums = sums.map_err(|error| raise_summed(error, model.1.as_deref().or(x.names())))?;
    Ok(PyBytes::new(py, &sums.to_bytes()))
}

/// The sums of all parts together, which must be of the same model.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    parts: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let parts = parts.iter().map(|part| read(part.as_bytes()));
    let merged = parts.reduce(|all, part| all?.merge(part?).map_err(raise));
    let no_parts = "no parts to merge: there must be at least one";
    let merged = merged.ok_or_else(|| PyValueError::new_err(no_parts))??;
    Ok(PyBytes::new(py, &merged.to_bytes()))
}

/// The model after the M-step.
#[pyfunction]
pub(crate) fn update(model: &Model, sums: &[u8]) -> PyResult<Model> {
    let sums = read(sums)?;
    let updated = match &model.0 {
        OfType::Single(model) => {
            gaussian(model).and_then(|model| Ok(OfType::Single(Box::new(sums.update(model)?))))
        }
        OfType::Double(model) => {
            gaussian(model).and_then(|model| Ok(OfType::Double(Box::new(sums.update(model)?))))
        }
    };
    Ok(Model(
        updated.map_err(raise)?,
        model.1.clone(),
        model.2.clone(),
    ))
}

/// The numbers that sums say of their rows and model: `rows`, `weight`, `free_energy`, `masses`.
#[pyfunction]
pub(crate) fn describe<'py>(py: Python<'py>, sums: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let sums = read(sums)?;
    let found = PyDict::new(py);
    found.set_item("rows", sums.rows())?;
    found.set_item("weight", sums.weight())?;
    found.set_item("free_energy", sums.free_energy())?;
    found.set_item("masses", sums.masses().collect::<Vec<_>>())?;
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
    let weights = weights.as_ref().map(|weights| weights.as_array());
    let cancel = Cancel::default();
    macro_rules! drawn {
        ($of:ty) => {{
            let drawn = x.work(py, &cancel, threads, |rows| {
                crate::stream::sample::<$of>(rows, weights, (size, seed), &cancel)
            })?;
            let drawn = drawn.map_err(|error| raise_in(error, x.names()))?;
            (
                drawn.0.into_pyarray(py).into_any(),
                drawn.1.into_pyarray(py),
            )
        }};
    }
    Ok(if x.is_double() {
        drawn!(f64)
    } else {
        drawn!(f32)
    })
}
