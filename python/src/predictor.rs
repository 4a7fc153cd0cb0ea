//! Predictions of one row at a time, without what arrays of rows need: conversions, threads, signals.

use crate::distances::check_distances;
use crate::errors::raise_in;
use crate::fitted::{Model, OfType};
use crate::input::{Input, Number};
use coremix::data::Source;
use coremix::{BoxedMixture, Cancel, Float, Predictor as OneRow, Result};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// A model that a Python object has.
struct Held<F: Float> {
    of: Py<Model>,
    model: fn(&OfType) -> Option<&BoxedMixture<F>>,
}

impl<F: Float> Deref for Held<F> {
    type Target = BoxedMixture<F>;

    fn deref(&self) -> &BoxedMixture<F> {
        (self.model)(&self.of.get().0).expect("a model keeps its number type")
    }
}

/// A predictor, and the row that it is given.
struct Asked<F: Float> {
    predictor: OneRow<F, Held<F>>,
    row: Vec<F>,
}

impl<F: Float> Asked<F> {
    fn of(of: Py<Model>, model: fn(&OfType) -> Option<&BoxedMixture<F>>, missing: bool) -> Self {
        let predictor = OneRow::new(Held { of, model });
        Self {
            predictor: if missing {
                predictor.with_missing()
            } else {
                predictor
            },
            row: Vec::new(),
        }
    }

    fn ask<T>(
        &mut self,
        row: &Row<'_>,
        ask: impl FnOnce(&mut OneRow<F, Held<F>>, &[F]) -> Result<T>,
    ) -> Result<T> {
        self.row.clear();
        match row {
            Row::F32(x) => (self.row).extend(x.as_array().iter().map(|x| F::from_f64((*x).into()))),
            Row::F64(x) => self
                .row
                .extend(x.as_array().iter().map(|x| F::from_f64(*x))),
            Row::Other(x) => self.row.extend(x.iter().map(|x| F::from_f64(*x))),
        }
        ask(&mut self.predictor, &self.row)
    }
}

enum OfNumber {
    Single(Asked<f32>),
    Double(Asked<f64>),
}

/// The integers below are numbers of type `f64`.
const EXACT: f64 = (1u64 << 53) as f64;

/// A row by the type of its numbers.
enum Row<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    Other(Vec<f64>),
}

impl<'py> Row<'py> {
    fn read(x: &Bound<'py, PyAny>, of: &Model) -> PyResult<Self> {
        // A subclass may be a masked array.
        if x.is_exact_instance_of::<PyUntypedArray>() {
            if let Ok(array) = x.cast::<PyArray1<f64>>() {
                return Ok(Self::F64(array.try_readonly()?));
            }
            if let Ok(array) = x.cast::<PyArray1<f32>>() {
                return Ok(Self::F32(array.try_readonly()?));
            }
            let shape = x.cast::<PyUntypedArray>()?.shape();
            if shape.len() != 1 {
                let rule = "give one row, whose shape is (n_features,); predict takes several";
                return Err(PyValueError::new_err(format!("shape {shape:?}: {rule}")));
            }
        }
        if (x.is_exact_instance_of::<PyList>() || x.is_exact_instance_of::<PyTuple>())
            && let Ok(values) = x.extract::<Vec<f64>>()
            && values.iter().all(|x| x.abs() < EXACT)
        {
            return Ok(Self::Other(values));
        }
        let one = x.py().import("coremix._input")?;
        let one = one.call_method1("one_row", (x, of.1.as_deref(), &of.2))?;
        let rows = Input::read(&one, Some(of))?;
        let rows = f64::read(&rows.rows(&Cancel::default()));
        let mut values = vec![0.0; rows.dim()];
        rows.read(0, &mut values)?;
        Ok(Self::Other(values))
    }
}

/// Predicts one row at a time, in microseconds. Threads can share it, one call after the other; for calls at the same time
/// make one for each.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Predictor {
    of: Py<Model>,
    missing: bool,
    own: Mutex<OfNumber>,
}

/// Does something for either number type.
macro_rules! ask {
    ($self:ident, $row:ident, $ask:expr) => {{
        let of = $self.of.get();
        // Before the lock: it may run Python, in which another thread could wait for the lock.
        let row = Row::read($row, of)?;
        let mut own = $self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match &mut *own {
            OfNumber::Single(own) => own.ask(&row, $ask),
            OfNumber::Double(own) => own.ask(&row, $ask),
        };
        found.map_err(|error| raise_in(error, of.1.as_deref()))
    }};
}

#[pymethods]
impl Predictor {
    #[new]
    #[pyo3(signature = (model, missing=false))]
    pub(crate) fn new(py: Python<'_>, model: Py<Model>, missing: bool) -> Self {
        let of = model.clone_ref(py);
        let own = match &model.get().0 {
            OfType::Single(_) => OfNumber::Single(Asked::of(
                of,
                |of| match of {
                    OfType::Single(model) => Some(model),
                    OfType::Double(_) => None,
                },
                missing,
            )),
            OfType::Double(_) => OfNumber::Double(Asked::of(
                of,
                |of| match of {
                    OfType::Double(model) => Some(model),
                    OfType::Single(_) => None,
                },
                missing,
            )),
        };
        Self {
            own: Mutex::new(own),
            missing,
            of: model,
        }
    }

    /// The likeliest component of a row (n_features,), as `predict` finds it.
    fn __call__(&self, row: &Bound<'_, PyAny>) -> PyResult<u32> {
        ask!(self, row, |own, row| Ok(own.predict(row)?.0))
    }

    /// The likeliest component of `row`, and the distance to its mean.
    fn nearest(&self, row: &Bound<'_, PyAny>) -> PyResult<(u32, f64)> {
        let checked = match &self.of.get().0 {
            OfType::Single(model) => check_distances(&**model),
            OfType::Double(model) => check_distances(&**model),
        };
        checked.map_err(|error| raise_in(error, None))?;
        let (label, squared) = ask!(self, row, |own, row| own.predict(row))?;
        Ok((label, squared.sqrt()))
    }

    /// The log-density of a row, in nats.
    fn log_density(&self, row: &Bound<'_, PyAny>) -> PyResult<f64> {
        ask!(self, row, |own, row| own.log_density(row))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Predictor({})", self.of.bind(py).repr()?))
    }

    /// Pickled as its model.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Py<Model>, bool)) {
        let of = slf.get().of.clone_ref(slf.py());
        (slf.get_type().into_any(), (of, slf.get().missing))
    }
}
