//! A fitted model, for Python.

use crate::distances::distances;
use crate::errors::raise;
use crate::family::{Parameters, sample};
use crate::input::{Input, Weights};
use crate::threads;
use coremix::data::DenseRows;
use coremix::ndarray::Array1;
use coremix::{BoxedMixture, ModelInfo, Result, Save};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

/// A mixture model of any family. It does not change.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Model(pub(crate) OfType);

/// A model of either number type.
pub(crate) enum OfType {
    Single(BoxedMixture<DenseRows<f32>>),
    Double(BoxedMixture<DenseRows<f64>>),
}

/// The same for a model of either number type: `$of` is the model, `$number` its type.
macro_rules! each {
    ($model:expr, $of:ident: $number:ident => $do:expr) => {
        match &$model.0 {
            $crate::model::OfType::Single($of) => {
                #[allow(dead_code, reason = "not all need it")]
                type $number = f32;
                $do
            }
            $crate::model::OfType::Double($of) => {
                #[allow(dead_code, reason = "not all need it")]
                type $number = f64;
                $do
            }
        }
    };
}
pub(crate) use each;

/// Work on rows while the interpreter is free.
fn free<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| threads::on(threads, work))?.map_err(raise)
}

#[pymethods]
impl Model {
    /// The model of these bytes.
    #[staticmethod]
    pub(crate) fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let info = ModelInfo::read_from(bytes).map_err(raise)?;
        let model = match &info.number[..] {
            "f64" => Save::from_bytes(bytes).map(OfType::Double),
            _ => Save::from_bytes(bytes).map(OfType::Single),
        };
        model.map(Self).map_err(raise)
    }

    /// The bytes of the model's file, with notes by name.
    #[pyo3(signature = (notes=Vec::new()))]
    pub(crate) fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        notes: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let notes: Vec<_> = notes.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        let bytes = each!(self, model: F => model.saved(&notes));
        Ok(PyBytes::new(py, &bytes.map_err(raise)?))
    }

    /// Writes the file of the model: all of it, or nothing.
    #[pyo3(signature = (path, notes=Vec::new()))]
    fn save(&self, path: PathBuf, notes: Vec<(String, String)>) -> PyResult<()> {
        let notes: Vec<_> = notes.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        each!(self, model: F => model.save_with_notes(path, &notes)).map_err(raise)
    }

    /// The model of a file, such as the core and the command `coremix` write.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let info = ModelInfo::of_file(&path).map_err(raise)?;
        let model = match &info.number[..] {
            "f64" => Save::load(path).map(OfType::Double),
            _ => Save::load(path).map(OfType::Single),
        };
        model.map(Self).map_err(raise)
    }

    /// Pickled as its file.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let load = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((load, (self.to_bytes(py, Vec::new())?,)))
    }

    /// The bytes of the file are the model.
    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        let own = self.to_bytes(py, Vec::new())?;
        Ok(own.as_bytes() == other.to_bytes(py, Vec::new())?.as_bytes())
    }

    /// `float32` or `float64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.0 {
            OfType::Single(_) => "float32",
            OfType::Double(_) => "float64",
        }
    }

    /// Number of components.
    #[getter]
    fn components(&self) -> usize {
        each!(self, model: F => model.components())
    }

    /// Number of columns.
    #[getter]
    fn columns(&self) -> usize {
        each!(self, model: F => model.frame().columns())
    }

    /// The parameters by name; `family` is the name of the family.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        each!(self, model: F => Parameters::of(&**model).map_err(raise)?.put(&found)?);
        each!(self, model: F => found.set_item("means", model.means().into_pyarray(py))?);
        Ok(found)
    }

    /// The likeliest component of each row (n).
    #[pyo3(signature = (x, threads=0))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Input<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let rows = x.rows();
        let labels = free(py, threads, || {
            let labels = each!(self, model: F => model.predict(&*rows.data::<F>(None)?)?);
            Ok(labels.mapv(|c| c as i32))
        })?;
        Ok(labels.into_pyarray(py))
    }

    /// The posteriors of all components (n, k).
    #[pyo3(signature = (x, threads=0))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        x: Input<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = x.rows();
        Ok(each!(self, model: F => free(py, threads, || {
            model.responsibilities(&*rows.data::<F>(None)?)
        })?
        .into_pyarray(py)
        .into_any()))
    }

    /// The log-density of each row (n), in nats.
    #[pyo3(signature = (x, threads=0))]
    fn log_densities<'py>(
        &self,
        py: Python<'py>,
        x: Input<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = x.rows();
        let found: Array1<f64> = free(
            py,
            threads,
            || each!(self, model: F => model.log_densities(&*rows.data::<F>(None)?)),
        )?;
        Ok(found.into_pyarray(py))
    }

    /// The distances of each row to all means (n, k).
    #[pyo3(signature = (x, threads=0))]
    fn distances<'py>(
        &self,
        py: Python<'py>,
        x: Input<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = x.rows();
        Ok(each!(self, model: F => free(py, threads, || {
            Ok(distances(&**model, &*rows.data::<F>(None)?))
        })?
        .into_pyarray(py)
        .into_any()))
    }

    /// The sum of weighted squared distances to the nearest means.
    #[pyo3(signature = (x, weights=None, threads=0))]
    fn quantization_error<'py>(
        &self,
        py: Python<'py>,
        x: Input<'py>,
        weights: Weights<'py>,
        threads: usize,
    ) -> PyResult<f64> {
        let rows = x.rows();
        let weights = weights.as_ref().map(|weights| weights.as_array());
        free(
            py,
            threads,
            || each!(self, model: F => model.quantization_error(&*rows.data::<F>(weights)?)),
        )
    }

    /// Draws points from the model: points (n, d) and their components (n).
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<i32>>)> {
        each!(self, model: F => {
            let (points, labels) = free(py, 0, || sample::<F>(&**model, n, seed))?;
            let labels = labels.mapv(|c| c as i32).into_pyarray(py);
            Ok((points.into_pyarray(py).into_any(), labels))
        })
    }
}
