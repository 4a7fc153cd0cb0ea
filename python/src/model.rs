//! The questions that Python asks of a fitted model.

use crate::clusters::Medoids;
use crate::distances::distances;
use crate::errors::{raise, raise_asked, row_of};
use crate::family;
use crate::fitted::{Model, OfType, Texts, each};
use crate::input::{Given, Input, Number, Rows, Weights, weights_of_rows};
use crate::predictor::Predictor;
use coremix::data::{Dense, Source as _};
use coremix::ndarray::{Array2, ArrayView1, s};
use coremix::{Cancel, Error, ModelInfo, Result, Save};
use coremix_files::{LabelWriter, column_names, column_texts, texts_note};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyFileExistsError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

/// The note of a file that names the columns, as JSON.
const COLUMNS: &str = "columns";

/// A model with the names and the texts of columns in its file.
fn named(model: OfType, info: &ModelInfo) -> Model {
    Model(model, column_names(info), column_texts(info))
}

#[pymethods]
impl Model {
    /// The model of `bytes`, which `to_bytes` made, or which are a file.
    #[staticmethod]
    pub(crate) fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let info = ModelInfo::read_from(bytes).map_err(raise)?;
        let model = match &info.number[..] {
            "f64" => Save::from_bytes(bytes).map(OfType::Double),
            _ => Save::from_bytes(bytes).map(OfType::Single),
        };
        Ok(named(model.map_err(raise)?, &info))
    }

    /// The bytes of the model's file, with `notes` (names and texts), and the names of the columns.
    #[pyo3(signature = (notes=Vec::new()))]
    pub(crate) fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        notes: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let notes = self.with_columns(py, notes)?;
        let notes: Vec<_> = notes.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        let bytes = each!(self, model: F => model.to_bytes(&notes));
        Ok(PyBytes::new(py, &bytes.map_err(raise)?))
    }

    /// Writes the file `path` with the model and `notes`: all of it, or nothing.
    #[pyo3(signature = (path, notes=Vec::new()))]
    fn save(&self, py: Python<'_>, path: PathBuf, notes: Vec<(String, String)>) -> PyResult<()> {
        let notes = self.with_columns(py, notes)?;
        let notes: Vec<_> = notes.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        each!(self, model: F => model.save_with_notes(path, &notes)).map_err(raise)
    }

    /// The model in the file `path`, such as the core and the command `coremix` write.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let info = ModelInfo::of_file(&path).map_err(raise)?;
        let model = match &info.number[..] {
            "f64" => Save::load(path).map(OfType::Double),
            _ => Save::load(path).map(OfType::Single),
        };
        Ok(named(model.map_err(raise)?, &info))
    }

    /// The notes in the file `path` of a model, by name.
    #[staticmethod]
    fn notes(path: PathBuf) -> PyResult<HashMap<String, String>> {
        let info = ModelInfo::of_file(&path).map_err(raise)?;
        Ok(info.notes.into_iter().collect())
    }

    fn __repr__(&self) -> PyResult<String> {
        let family = self.family()?;
        let k = self.components();
        let d = self.columns();
        let dtype = self.dtype();
        Ok(format!(
            "Model(family='{family}', components={k}, columns={d}, dtype='{dtype}')"
        ))
    }

    /// Pickled as its file.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let load = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((load, (self.to_bytes(py, Vec::new())?,)))
    }

    /// The bytes of the file are the model, whatever the names of its columns are.
    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        let bytes = |of: &Self| each!(of, model: F => model.to_bytes(&[])).map_err(raise);
        Ok(bytes(self)? == bytes(other)?)
    }

    /// `float32` or `float64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.0 {
            OfType::Single(_) => "float32",
            OfType::Double(_) => "float64",
        }
    }

    /// The name of the family: the kind of its covariances, or `dirichlet-process`.
    #[getter]
    fn family(&self) -> PyResult<String> {
        each!(self, model: F => family::name(model)).map_err(raise)
    }

    /// Number of free parameters; None for a Dirichlet process.
    #[getter]
    fn free_parameters(&self) -> Option<usize> {
        each!(self, model: F => model.free_parameters())
    }

    /// The components that a floor of variances holds.
    #[getter]
    fn at_floor(&self) -> Vec<usize> {
        each!(self, model: F => model.at_floor())
    }

    /// The length of each column (d) that distances count as 1: its deviation, where columns were standardised.
    #[getter]
    fn units(&self) -> Vec<f64> {
        each!(self, model: F => {
            let frame = model.frame();
            let unit = |j: usize| frame.leave_product(j, j, 1.0).sqrt() / frame.unit();
            (0..frame.dim()).map(unit).collect()
        })
    }

    /// Number of components.
    #[getter]
    fn components(&self) -> usize {
        each!(self, model: F => model.components())
    }

    /// Whether it was fitted to standardised columns.
    #[getter]
    fn standardised(&self) -> bool {
        each!(self, model: F => model.frame().is_standardised())
    }

    /// The names of the columns, or None.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.1.clone()
    }

    /// The texts of the columns that were text, in the order of their codes.
    #[getter]
    fn texts(&self) -> Texts {
        self.2.clone()
    }

    /// Number of columns.
    #[getter]
    fn columns(&self) -> usize {
        each!(self, model: F => model.frame().dim())
    }

    /// The parameters by name; `family` is the name of the family.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("family", self.family()?)?;
        each!(self, model: F => family::put_parameters(&**model, &found)?);
        each!(self, model: F => found.set_item("means", model.means().into_pyarray(py))?);
        Ok(found)
    }

    /// The likeliest component of each row of `x` (n), on this number of `threads`; 0 means one per processor.
    #[pyo3(signature = (x, threads=0))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let x = Input::read(x, Some(self))?;
        let mut labels = Vec::with_capacity(x.len());
        each!(self, model: F => self.asked(py, &x, threads, |rows, _| {
            let found = model.predict(&*rows.asked::<F>(None)?)?;
            labels.extend(found.into_iter().map(|c| c as i32));
            Ok(())
        })?);
        Ok(labels.into_pyarray(py))
    }

    /// Predicts one row at a time; NaN stands for `missing` values, if there may be some.
    #[pyo3(signature = (missing=false))]
    fn predictor(slf: Bound<'_, Self>, missing: bool) -> Predictor {
        Predictor::new(slf.py(), slf.unbind(), missing)
    }

    /// The posteriors of all components for the rows of `x` (n, k), on this number of `threads`.
    #[pyo3(signature = (x, threads=0))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = Input::read(x, Some(self))?;
        each!(self, model: F => {
            let mut all = Array2::<F>::default((x.len(), model.components()));
            self.asked(py, &x, threads, |rows, part| {
                let found = model.responsibilities(&*rows.asked::<F>(None)?)?;
                all.slice_mut(s![part, ..]).assign(&found);
                Ok(())
            })?;
            Ok(all.into_pyarray(py).into_any())
        })
    }

    /// The rows of `x` (n, d) with what is missing filled in, on this number of `threads`: in a table by data, or by what is `expected`.
    #[pyo3(signature = (x, threads=0, *, expected=false))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
        expected: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = Input::read(x, Some(self))?;
        each!(self, model: F => {
                    let mut all = Array2::<F>::default((x.len(), self.columns()));
                    self.asked(py, &x, threads, |rows, part| {
                        let known = rows.values::<F>()?;
        let may_miss = F::read(rows).may_miss();
                        let known = if may_miss && !known.is_empty() {
        Dense::with_missing(&known)?
        } else {
        Dense::batch(&known)?
        };
                        let filled = if expected { model.expected(&known)? } else { model.impute(&known)? };
                        all.slice_mut(s![part, ..]).assign(&filled);
                        Ok(())
                    })?;
                    Ok(all.into_pyarray(py).into_any())
                })
    }

    /// The `m` likeliest components of each row of `x`, best first, and their posteriors, which sum to 1 over these; with
    /// `return_distance` also the distances to their means: (n, m) each, on this number of `threads`.
    #[pyo3(signature = (x, m, threads=0, *, return_distance=false))]
    fn predict_top<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        m: usize,
        threads: usize,
        return_distance: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let x = Input::read(x, Some(self))?;
        each!(self, model: F => {
                    let shape = (x.len(), m.min(model.components()));
                    let mut ids = Array2::<i32>::default(shape);
        let mut shares = Array2::<F>::default(shape);
                    let mut far = return_distance.then(|| Array2::<F>::default(shape));
                    self.asked(py, &x, threads, |rows, part| {
                        let data = rows.asked::<F>(None)?;
                        let found = model.truncated_responsibilities(&*data, m)?;
                        let own = found.0.mapv(|c| c as i32);
                        if let Some(far) = &mut far {
                            distances(&**model, &*data, Some(own.view()), far.slice_mut(s![part.clone(), ..]))?;
                        }
                        ids.slice_mut(s![part.clone(), ..]).assign(&own);
                        shares.slice_mut(s![part, ..]).assign(&found.1);
                        Ok(())
                    })?;
                    let mut found = vec![ids.into_pyarray(py).into_any(), shares.into_pyarray(py).into_any()];
                    found.extend(far.map(|far| far.into_pyarray(py).into_any()));
                    PyTuple::new(py, found)
                })
    }

    /// The row of `x` that is nearest to the mean of each component, among those whose likeliest component it is: row numbers (k),
    /// -1 for a component without rows. Rows of `weights` 0 are absent. On this number of `threads`.
    #[pyo3(signature = (x, weights=None, threads=0))]
    fn medoids<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        weights: Weights<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let x = Input::read(x, Some(self))?;
        let weights = weights_for(&weights, &x)?;
        let mut medoids = Medoids::new(self.components());
        each!(self, model: F => self.weighed(py, &x, weights, threads, |rows, own, first| {
            medoids.see(&**model, &*rows.asked::<F>(own)?, first)
        })?);
        Ok(medoids.rows().into_pyarray(py))
    }

    /// The log-density of each row of `x` (n), in nats, on this number of `threads`.
    #[pyo3(signature = (x, threads=0))]
    fn log_densities<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = Input::read(x, Some(self))?;
        let mut densities = Vec::with_capacity(x.len());
        each!(self, model: F => self.asked(py, &x, threads, |rows, _| {
            densities.extend(model.log_densities(&*rows.asked::<F>(None)?)?);
            Ok(())
        })?);
        Ok(densities.into_pyarray(py))
    }

    /// The distances of each row of `x` to all means (n, k), on this number of `threads`.
    #[pyo3(signature = (x, threads=0))]
    fn distances<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = Input::read(x, Some(self))?;
        each!(self, model: F => {
            let mut all = Array2::<F>::default((x.len(), model.components()));
            self.asked(py, &x, threads, |rows, part| {
                let data = rows.asked::<F>(None)?;
                distances(&**model, &*data, None, all.slice_mut(s![part, ..]))
            })?;
            Ok(all.into_pyarray(py).into_any())
        })
    }

    /// The sum of squared distances of the rows of `x` to their nearest means, times `weights`, on this number of `threads`.
    #[pyo3(signature = (x, weights=None, threads=0))]
    fn quantization_error<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        weights: Weights<'py>,
        threads: usize,
    ) -> PyResult<f64> {
        let x = Input::read(x, Some(self))?;
        let weights = weights_for(&weights, &x)?;
        let mut total = 0.0;
        each!(self, model: F => self.weighed(py, &x, weights, threads, |rows, own, _| {
            total += model.quantization_error(&*rows.asked::<F>(own)?)?;
            Ok(())
        })?);
        Ok(total)
    }

    /// The sum of the log-densities of the rows of `x`, times their `weights`, in nats, on this number of `threads`.
    #[pyo3(signature = (x, weights=None, threads=0))]
    fn log_likelihood<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        weights: Weights<'py>,
        threads: usize,
    ) -> PyResult<f64> {
        let x = Input::read(x, Some(self))?;
        let weights = weights_for(&weights, &x)?;
        let mut total = 0.0;
        each!(self, model: F => self.weighed(py, &x, weights, threads, |rows, own, _| {
            total += model.log_likelihood(&*rows.asked::<F>(own)?)?;
            Ok(())
        })?);
        Ok(total)
    }

    /// The sum of the `weights` of the rows of `x` in each component (k), on this number of `threads`.
    #[pyo3(signature = (x, weights=None, threads=0))]
    fn sizes<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        weights: Weights<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = Input::read(x, Some(self))?;
        let weights = weights_for(&weights, &x)?;
        let mut sizes = vec![0.0; self.components()];
        each!(self, model: F => self.asked(py, &x, threads, |rows, part| {
            let labels = model.predict(&*rows.asked::<F>(None)?)?;
            for (row, label) in part.zip(labels) {
                sizes[label as usize] += weights.map_or(1.0, |weights| weights[row]);
            }
            Ok(())
        })?);
        Ok(sizes.into_pyarray(py))
    }

    /// Writes the likeliest component of each row of `x` to the file `path`, on this number of `threads`, with the keys of a scan:
    /// see [`LabelWriter`]. `densities`: the log-densities, too. `force`: also over a file that holds no such labels.
    #[pyo3(signature = (x, path, *, densities=false, force=false, threads=0))]
    fn assign(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        path: PathBuf,
        densities: bool,
        force: bool,
        threads: usize,
    ) -> PyResult<()> {
        const LOG_DENSITY: &str = "log_density";
        let x = Input::read(x, Some(self))?;
        let columns: &[&str] = if densities { &[LOG_DENSITY] } else { &[] };
        LabelWriter::check(&path, columns).map_err(raise)?;
        let (keys, names) = x.keys().map_err(raise)?;
        if x.reads(&path) {
            let what = "is read as an input: choose another name for the labels";
            return Err(PyValueError::new_err(format!("{}: {what}", path.display())));
        }
        let others: Vec<&str> = names
            .iter()
            .map(|key| &**key)
            .chain([LOG_DENSITY])
            .collect();
        let there = path
            .metadata()
            .is_ok_and(|there| !there.is_file() || there.len() > 0);
        if there && !force && !LabelWriter::wrote(&path, &others) {
            let what = "is there, and nothing in it says that it is a file of labels of coremix: choose another name, or replace it with force=True";
            return Err(PyFileExistsError::new_err(format!(
                "{}: {what}",
                path.display()
            )));
        }
        let mut writer = LabelWriter::create(&path, keys, columns).map_err(raise)?;
        let cancel = Cancel::default();
        let written = each!(self, model: F => x.work(py, &cancel, threads, |rows| {
            if !rows.are_unknown() {
                writer.label(&**model, &F::read(rows), |_| if cancel.is_cancelled() {
ControlFlow::Break(())
} else {
ControlFlow::Continue(())
})?;
            }
            if cancel.is_cancelled() {
Err(Error::Cancelled)
} else {
writer.finish()
}
        })?);
        written.map_err(|error| raise_asked(error, self.1.as_deref().or(x.names())))
    }

    /// The mixture of these columns alone, or, with their `values`, that of the others given these.
    #[pyo3(signature = (columns, values=None))]
    fn part(&self, columns: Vec<usize>, values: Option<Vec<f64>>) -> PyResult<Self> {
        let values = values.as_deref();
        let part = match &self.0 {
            OfType::Single(model) => {
                family::part(&**model, &columns, values).map(|part| part.map(OfType::Single))
            }
            OfType::Double(model) => {
                family::part(&**model, &columns, values).map(|part| part.map(OfType::Double))
            }
        };
        let Some(part) = part.map_err(raise)? else {
            let family = self.family()?;
            let rule = format!(
                "{family}: this family has no densities of some columns alone; GaussianMixture without metric='cosine' has"
            );
            return Err(PyValueError::new_err(rule));
        };
        let left = match values {
            Some(_) => (0..self.columns())
                .filter(|j| !columns.contains(j))
                .collect(),
            None => columns,
        };
        let of_left = |all: &Vec<String>| left.iter().map(|j| all[*j].clone()).collect();
        let names: Option<Vec<String>> = self.1.as_ref().map(of_left);
        let mut texts = self.2.clone();
        texts.retain(|name, _| names.as_ref().is_some_and(|names| names.contains(name)));
        Ok(Self(part, names, texts))
    }

    /// Draws `n` points from the model with this `seed`: points (n, d) and their components (n).
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<i32>>)> {
        each!(self, model: F => {
            let drawn = py.detach(|| model.sample(n, seed));
            let (points, labels) = drawn.map_err(raise)?;
            let labels = labels.mapv(|c| c as i32).into_pyarray(py);
            Ok((points.into_pyarray(py).into_any(), labels))
        })
    }
}

impl Model {
    /// The notes, and that of the columns.
    fn with_columns(
        &self,
        py: Python<'_>,
        mut notes: Vec<(String, String)>,
    ) -> PyResult<Vec<(String, String)>> {
        if let Some(names) = &self.1 {
            let json = py.import("json")?.call_method1("dumps", (names,))?;
            notes.push((COLUMNS.into(), json.extract()?));
        }
        notes.extend(texts_note(&self.2).map(|(name, texts)| (name.into(), texts)));
        Ok(notes)
    }

    /// [Asks](Self::asked) about parts with their weights, from a row on. A part without weight is left out: its rows are no data.
    fn weighed<'x>(
        &self,
        py: Python<'_>,
        x: &'x Input<'_>,
        weights: Option<ArrayView1<'x, f64>>,
        threads: usize,
        mut ask: impl FnMut(&Rows<'x>, Option<ArrayView1<'x, f64>>, usize) -> Result<()> + Send,
    ) -> PyResult<()> {
        self.asked(py, x, threads, |rows, part| {
            let first = part.start;
            let own = weights.map(|weights| weights.slice_move(s![part]));
            if own.is_none_or(|own| own.iter().any(|w| *w != 0.0)) {
                ask(rows, own, first)
            } else {
                Ok(())
            }
        })
    }

    /// Asks about part after part of the rows, without holding the interpreter: Ctrl-C ends it after a part.
    fn asked<'x>(
        &self,
        py: Python<'_>,
        x: &'x Input<'_>,
        threads: usize,
        mut ask: impl FnMut(&Rows<'x>, Range<usize>) -> Result<()> + Send,
    ) -> PyResult<()> {
        /// Products of a part: a small part of a second on one thread.
        const PRODUCTS: usize = 1 << 32;
        /// So few rows that they are asked about at once, on one thread: they are one block of the core.
        const FEW: usize = 32;
        /// And so few products that starting a thread would take as long.
        const SHORT: usize = 1 << 21;
        let cancel = Cancel::default();
        let mut each = self.components().saturating_mul(self.columns()).max(1);
        // The Dirichlet process, which has no fixed number of parameters, has a matrix per component.
        if self.free_parameters().is_none() {
            each = each.saturating_mul(self.columns());
        }
        let named = |error| raise_asked(error, self.1.as_deref().or(x.names()));
        if !matches!(x.of, Given::Scan(_)) {
            let rows = x.rows(&cancel);
            let n = rows.len();
            if n <= FEW && each.saturating_mul(n) <= SHORT && !rows.are_unknown() {
                return py.detach(|| ask(&rows, 0..n)).map_err(named);
            }
        }
        let size = (PRODUCTS / each).max(1 << 10);
        let done = x.work(py, &cancel, threads, |rows| {
            let n = if rows.are_unknown() {
                0
            } else {
                rows.len().max(1)
            };
            for first in (0..n).step_by(size) {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                let part = first..rows.len().min(first + size);
                let own = rows.part(&part);
                ask(&own, part).map_err(|error| numbered(error, first))?;
            }
            Ok(())
        })?;
        done.map_err(named)
    }
}

/// The weights of these rows, one for each.
fn weights_for<'a>(
    weights: &'a Weights<'_>,
    x: &Input<'_>,
) -> PyResult<Option<ArrayView1<'a, f64>>> {
    let weights = weights.as_ref().map(|weights| weights.as_array());
    if let Some(weights) = weights {
        weights_of_rows(weights.len(), x.len()).map_err(PyValueError::new_err)?;
    }
    Ok(weights)
}

/// The error, with the number of its row among all.
fn numbered(mut error: Error, first: usize) -> Error {
    if let Some(row) = row_of(&mut error) {
        *row += first;
    }
    error
}
