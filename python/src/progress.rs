//! The words that a callback is told, and the use of its answer.

use coremix::{Float, Progress, Share};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A Python function that sees each step of a fit, and what a fit is at, for whoever looks meanwhile.
pub(crate) struct Callback {
    function: Option<Py<PyAny>>,
    at: At,
    /// The exception that the function raised: the fit stops, and then raises it.
    raised: Option<PyErr>,
}

/// The stage that a fit is at: any thread can look.
#[derive(Clone, Default)]
pub(crate) struct At(Arc<Mutex<Option<Stage>>>);

#[derive(Clone)]
struct Stage {
    restart: usize,
    rows: usize,
    /// Seeds that are chosen, and how many of them are.
    seeds: Option<(usize, Share)>,
    /// Iterations so far, most iterations, free energy, and the time since the phase began.
    iteration: Option<(usize, usize, f64, Duration)>,
}

impl At {
    fn see<F: Float>(&self, step: &Progress<'_, F>) {
        let (restart, rows, seeds, iteration) = match step {
            Progress::Seeding {
                restart,
                rows,
                clusters,
                share,
                ..
            } => (restart, rows, Some((*clusters, (*share).clone())), None),
            Progress::Iteration {
                restart,
                rows,
                iteration,
                limit,
                free_energy,
                elapsed,
                ..
            } => {
                let iteration = (*iteration, *limit, *free_energy, *elapsed);
                (restart, rows, None, Some(iteration))
            }
            _ => return,
        };
        let stage = Stage {
            restart: *restart,
            rows: *rows,
            seeds,
            iteration,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage);
    }

    /// Calls a function with a dictionary of it, at most four times in a second; `last` is when it was called.
    pub(crate) fn tell(&self, function: &Bound<'_, PyAny>, last: &mut Instant) -> PyResult<()> {
        const EVERY: Duration = Duration::from_millis(250);
        let stage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stage) = stage.clone().filter(|_| last.elapsed() >= EVERY) else {
            return Ok(());
        };
        *last = Instant::now();
        let at = PyDict::new(function.py());
        at.set_item("restart", stage.restart)?;
        at.set_item("rows", stage.rows)?;
        if let Some((clusters, share)) = stage.seeds {
            at.set_item("clusters", clusters)?;
            at.set_item("share", share.get())?;
        }
        if let Some((iteration, limit, free_energy, elapsed)) = stage.iteration {
            at.set_item("iteration", iteration)?;
            at.set_item("limit", limit)?;
            at.set_item("free_energy", free_energy)?;
            at.set_item("seconds", elapsed.as_secs_f64())?;
        }
        function.call1((at,)).map(drop)
    }
}

impl Callback {
    pub(crate) fn new(function: Option<Py<PyAny>>, at: &At) -> Self {
        Self {
            function,
            at: at.clone(),
            raised: None,
        }
    }

    /// Calls the function with a dictionary. `False` and exceptions stop the fit.
    pub(crate) fn see<F: Float>(&mut self, step: &Progress<'_, F>) -> ControlFlow<()> {
        self.at.see(step);
        // A step is told once it is done.
        let function = match &self.function {
            Some(function) if !matches!(step, Progress::Seeding { .. }) => function,
            _ => return ControlFlow::Continue(()),
        };
        let answer = Python::attach(|py| {
            let answer = function.call1(py, (told(py, step)?,))?;
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

/// The values that a callback is always told; None where a stage does not have it.
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
