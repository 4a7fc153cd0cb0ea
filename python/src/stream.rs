//! A coreset that grows with rows that come once.

use crate::errors::{raise, raise_asked, row_of};
use crate::input::{Input, Number, Rows, Weights};
use coremix::coreset::OnePass;
use coremix::data::Source as _;
use coremix::ndarray::{Array1, Array2, ArrayView1};
use coremix::{Cancel, Error, Float as _, Result};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};

/// A coreset of at most this number of rows of all that were pushed ([`OnePass`]). The first rows decide how many columns there are. All
/// numbers are kept as float64, so that later batches may be of any type.
#[pyclass(module = "coremix._coremix")]
#[derive(Serialize, Deserialize)]
pub(crate) struct Stream {
    /// Draws of the coreset.
    #[pyo3(get)]
    size: usize,
    seed: u64,
    coreset: Option<OnePass<f64>>,
    /// Batches that came.
    batches: u64,
    /// Whether one of them was of float64.
    is_double: bool,
}

#[pymethods]
impl Stream {
    #[new]
    fn new(size: usize, seed: u64) -> Self {
        Self {
            size,
            seed,
            coreset: None,
            batches: 0,
            is_double: false,
        }
    }

    /// Takes a batch of rows in. After an error none of them is in.
    #[pyo3(signature = (x, *, weights=None, threads=0))]
    fn push(
        &mut self,
        py: Python<'_>,
        x: Input<'_>,
        weights: Weights<'_>,
        threads: usize,
    ) -> PyResult<()> {
        let weights = weights.as_ref().map(|weights| weights.as_array());
        let begun = self.coreset.clone();
        let cancel = Cancel::default();
        let coreset = x.work(py, &cancel, threads, |rows| {
            let start = || OnePass::new(rows.shape().1, self.size, self.seed);
            push(begun.map_or_else(start, Ok)?, rows, weights, &cancel)
        })?;
        let coreset = coreset.map_err(|mut error| match row_of(&mut error) {
            Some(row) => {
                // The coreset counts the rows of the batches before.
                *row = row.saturating_sub(self.rows());
                let text = raise_asked(error, x.names()).value(py).to_string();
                PyValueError::new_err(format!("batch {} (counted from 0): {text}", self.batches))
            }
            None => raise_asked(error, x.names()),
        })?;
        self.coreset = Some(coreset);
        self.batches += 1;
        self.is_double |= x.is_double();
        Ok(())
    }

    /// All of it as bytes, for pickling: what goes on from there has the bits of what was never stopped.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = postcard::to_stdvec(self);
        let bytes = bytes.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// From the bytes of `state`.
    #[staticmethod]
    fn of_state(state: &[u8]) -> PyResult<Self> {
        let wrong = |error| PyValueError::new_err(format!("rows of partial_fit: {error}"));
        postcard::from_bytes(state).map_err(wrong)
    }

    /// Number of rows that came.
    #[getter]
    fn rows(&self) -> usize {
        self.coreset.as_ref().map_or(0, OnePass::rows)
    }

    /// The rows of the coreset so far (at most `size`, d), and their weights: in float32 if all batches have such numbers.
    fn coreset<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
        let none = || raise(Error::Empty { what: "stream" });
        let coreset = self.coreset.clone().ok_or_else(none)?;
        let (rows, weights) = coreset.finish().map_err(raise)?;
        let rows = if self.is_double || rows.iter().any(|x| x.abs() > f32::LIMIT) {
            rows.into_pyarray(py).into_any()
        } else {
            rows.mapv(|x| x as f32).into_pyarray(py).into_any()
        };
        Ok((rows, weights.into_pyarray(py)))
    }
}

/// Reads the rows in order, a block at a time.
fn push<F: Number>(
    coreset: OnePass<F>,
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    cancel: &Cancel,
) -> Result<OnePass<F>> {
    let n = rows.len();
    let given = weights.map_or(rows.len(), |weights| weights.len());
    if given != n {
        return Err(Error::LengthMismatch {
            what: "weights",
            expected: n,
            found: given,
        });
    }
    let mut coreset = coreset.may_miss(F::read(rows).may_miss());
    rows.each_block::<F>(weights, cancel, |block, weights| match weights {
        Some(weights) => coreset.push_weighted(block, weights),
        None => coreset.push(block),
    })?;
    Ok(coreset)
}

/// Draws of the rows, with their weights: in one pass, and the same for any number of threads.
pub(crate) fn sample<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    (size, seed): (usize, u64),
    cancel: &Cancel,
) -> Result<(Array2<F>, Array1<f64>)> {
    let coreset = OnePass::<F>::new(rows.shape().1, size, seed)?;
    push(coreset, rows, weights, cancel)?.finish()
}
