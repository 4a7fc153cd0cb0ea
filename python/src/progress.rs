//! What a callback is told, and what becomes of its answer.

use coremix::{Float, Progress};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::ops::ControlFlow;
use std::time::Duration;

/// A Python function that sees each step of a fit.
pub(crate) struct Callback {
    function: Py<PyAny>,
    /// What it raised: the fit stops, and then raises it.
    raised: Option<PyErr>,
}

impl Callback {
    pub(crate) fn new(function: Py<PyAny>) -> Self {
        Self {
            function,
            raised: None,
        }
    }

    /// Calls the function with a dictionary. `False` and exceptions stop the fit.
    pub(crate) fn see<F: Float>(&mut self, step: &Progress<'_, F>) -> ControlFlow<()> {
        // A step is told once it is done.
        if matches!(step, Progress::Seeding { .. }) {
            return ControlFlow::Continue(());
        }
        let answer = Python::attach(|py| {
            let answer = self.function.call1(py, (told(py, step)?,))?;
            Ok::<_, PyErr>(answer.bind(py).is(PyBool::new(py, false)))
        });
        match answer {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// An error if the function raised one.
    pub(crate) fn result(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}

/// What a callback is always told; None where a stage does not have it.
const KEYS: [&str; 11] = [
    "stage",
    "restart",
    "start",
    "phase",
    "rows",
    "weight",
    "iteration",
    "limit",
    "free_energy",
    "evaluations",
    "seconds",
];

fn told<'py, F: Float>(py: Python<'py>, step: &Progress<'_, F>) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    for key in KEYS {
        told.set_item(key, py.None())?;
    }
    let spent = |stage: &str, evaluations: u64, elapsed: Duration| {
        told.set_item("stage", stage)?;
        told.set_item("evaluations", evaluations)?;
        told.set_item("seconds", elapsed.as_secs_f64())
    };
    match step {
        Progress::Coreset {
            rows,
            weight,
            evaluations,
            elapsed,
            ..
        } => {
            spent("coreset", *evaluations, *elapsed)?;
            told.set_item("rows", rows)?;
            told.set_item("weight", weight)?;
        }
        Progress::Seeded {
            restart,
            start,
            evaluations,
            elapsed,
            ..
        } => {
            spent("seeded", *evaluations, *elapsed)?;
            told.set_item("restart", restart)?;
            told.set_item("start", start)?;
        }
        Progress::Iteration {
            restart,
            phase,
            rows,
            iteration,
            limit,
            free_energy,
            evaluations,
            elapsed,
            ..
        } => {
            spent("iteration", *evaluations, *elapsed)?;
            told.set_item("restart", restart)?;
            told.set_item("phase", phase)?;
            told.set_item("rows", rows)?;
            told.set_item("iteration", iteration)?;
            told.set_item("limit", limit)?;
            told.set_item("free_energy", free_energy)?;
        }
        _ => told.set_item("stage", "other")?,
    }
    Ok(told)
}
