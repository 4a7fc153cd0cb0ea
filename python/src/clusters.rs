//! Questions about many clusters: the likeliest few of each row, and a row that stands for each.

use crate::errors::raise;
use crate::input::{Input, Number};
use coremix::data::Data;
use coremix::ndarray::Array2;
use coremix::{Cancel, Error, Float, Mixture, Result};
use numpy::IntoPyArray;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// The row of each cluster that is nearest to its mean: its number, and its squared distance.
pub(crate) struct Medoids(Vec<Option<(usize, f64)>>);

impl Medoids {
    /// One for each of these clusters, without rows yet.
    pub(crate) fn new(components: usize) -> Self {
        Self(vec![None; components])
    }

    /// Takes these rows in, the first of which has this number: the first one of equally near rows stays.
    pub(crate) fn see<F: Float>(
        &mut self,
        model: &dyn Mixture<F>,
        data: &dyn Data<F>,
        number: usize,
    ) -> Result<()> {
        for (own, found) in self.0.iter_mut().zip(model.medoids(data)?) {
            let least = own.map_or(f64::INFINITY, |(_, squared)| squared);
            if let Some((row, squared)) = found.filter(|(_, squared)| *squared < least) {
                *own = Some((number + row, squared));
            }
        }
        Ok(())
    }

    /// The number of each row (k); -1 for a cluster without rows.
    pub(crate) fn rows(&self) -> Vec<i64> {
        let row = |found: &Option<(usize, f64)>| found.map_or(-1, |(row, _)| row as i64);
        self.0.iter().map(row).collect()
    }
}

/// Some of the rows, as an array (ids, d).
#[pyfunction]
pub(crate) fn take<'py>(
    py: Python<'py>,
    x: Input<'py>,
    ids: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(wrong) = ids.iter().find(|id| **id >= x.len()) {
        return Err(PyIndexError::new_err(format!("there is no row {wrong}")));
    }
    Ok(if x.is_double() {
        taken::<f64>(py, &x, &ids)?.into_pyarray(py).into_any()
    } else {
        taken::<f32>(py, &x, &ids)?.into_pyarray(py).into_any()
    })
}

fn taken<F: Number>(py: Python<'_>, x: &Input<'_>, ids: &[usize]) -> PyResult<Array2<F>> {
    let taken = x.work(py, &Cancel::default(), 0, |rows| {
        let source = F::read(rows);
        let mut out = vec![F::default(); ids.len() * source.dim()];
        for (id, out) in ids.iter().zip(out.chunks_exact_mut(source.dim().max(1))) {
            source.read(*id, out).map_err(|error| Error::Stage {
                stage: source.name(),
                what: error.to_string(),
            })?;
        }
        Ok(Array2::from_shape_vec((ids.len(), source.dim()), out).expect("n x d numbers"))
    })?;
    taken.map_err(raise)
}
