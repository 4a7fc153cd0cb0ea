//! A fit: rows and settings in, a model and what the fit found out.

use crate::distinct::distinct;
use crate::errors::{Names, named};
use crate::input::{Input, Number, Rows, Weights};
use crate::model::{Model, OfType};
use crate::progress::{At, Callback};
use crate::report::report;
use crate::settings::algorithm;
use crate::threads;
use crate::watch::watched;
use coremix::data::{Data, Dense, Sketch};
use coremix::ndarray::{Array1, ArrayView1};
use coremix::{Algorithm, BoxedMixture, Cancel, Error, Fit, Report, Result, Save};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Instant;

/// How rows are prepared before the fit.
#[derive(Clone, Copy)]
struct Preparation {
    /// Whether equal rows become one, in ascending order: then so many rows are needed.
    merge: Option<usize>,
    /// Coordinates that are kept of each row, and the seed of the sketch.
    sketch: Option<(usize, u64)>,
}

/// What a fit found, without the type of its numbers.
struct Found {
    report: Report,
    /// Of all rows, if the fit found them, and exactly.
    labels: Option<Array1<u32>>,
    /// Of the rows that the free energy is about.
    weight: f64,
    /// Number of distinct rows, if equal ones were merged.
    distinct: Option<usize>,
    /// Weighted means and variances of all columns; of a sketch they are in other coordinates, so None.
    columns: Option<(Vec<f64>, Vec<f64>)>,
}

/// Fits a model. Settings are those of [`algorithm`]. Returns the model and a dictionary: `report`, `labels` (of
/// all rows if the fit found them exactly, or None), `weight`, `distinct` (distinct rows, if equal ones were merged), `columns`
/// (their means and variances, or None). The model has the names of the columns. While it runs, `progress` is called with what it is at.
#[pyfunction]
#[pyo3(signature = (x, settings, *, weights=None, names=None, columns=None, merge=None, sketch=None, threads=0, callback=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    x: Input<'py>,
    settings: &Bound<'py, PyDict>,
    weights: Weights<'py>,
    names: Option<Names>,
    columns: Option<Vec<String>>,
    merge: Option<usize>,
    sketch: Option<(usize, u64)>,
    threads: usize,
    callback: Option<Py<PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let cancel = Cancel::new();
    let names = names.unwrap_or_default();
    let algorithm = algorithm(settings, &names, &cancel)?;
    let rows = x.rows();
    let weights = weights.as_ref().map(|weights| weights.as_array());
    let at = At::default();
    let sees = callback.is_some() || progress.is_some();
    let mut callback = sees.then(|| Callback::new(callback, &at));
    let memory = settings.get_item("memory")?;
    let memory = memory.map_or(Ok(None), |memory| memory.extract())?;
    let preparation = Preparation { merge, sketch };
    let task = Task {
        rows: &rows,
        weights,
        algorithm: &algorithm,
        preparation,
        memory,
        cancel: &cancel,
    };
    // Chosen here: a callback that fits is on a thread of another pool.
    let pool = threads::pool(threads)?;
    let mut last = Instant::now();
    let look = || match &progress {
        Some(progress) => at.tell(progress, &mut last),
        None => Ok(()),
    };
    let fitted = watched(py, &cancel, look, || {
        pool.install(|| match rows.is_double() {
            true => task
                .fit::<f64>(callback.as_mut())
                .map(|(m, f)| (OfType::Double(m), f)),
            false => task
                .fit::<f32>(callback.as_mut())
                .map(|(m, f)| (OfType::Single(m), f)),
        })
    })?;
    callback.map_or(Ok(()), Callback::result)?;
    let (model, found) = fitted.map_err(|error| named(error, &names, columns.as_deref()))?;
    let result = PyDict::new(py);
    result.set_item("report", report(py, &found.report)?)?;
    let labels = found.labels.map(|l| l.mapv(|c| c as i32).into_pyarray(py));
    result.set_item("labels", labels)?;
    result.set_item("weight", found.weight)?;
    result.set_item("distinct", found.distinct)?;
    result.set_item("columns", found.columns)?;
    Ok((Model(model, columns), result))
}

struct Task<'a> {
    rows: &'a Rows<'a>,
    weights: Option<ArrayView1<'a, f64>>,
    algorithm: &'a Algorithm,
    preparation: Preparation,
    /// Its limit, if there is one.
    memory: Option<usize>,
    cancel: &'a Cancel,
}

impl Task<'_> {
    fn fit<F: Number>(&self, callback: Option<&mut Callback>) -> Result<(BoxedMixture<F>, Found)> {
        if let Some(least) = self.preparation.merge {
            let (merged, rows): (Dense<'_, F>, _) = distinct(self.rows, self.weights, least)?;
            let (model, mut found) = match self.preparation.sketch {
                Some((q, seed)) => self.of_sketch(Sketch::of_dense(&merged, q, seed)?, callback)?,
                None => self.of_dense(&merged, callback)?,
            };
            found.labels = None;
            found.distinct = Some(rows);
            return Ok((model, found));
        }
        if let Some(sketch) = self.preparation.sketch {
            let sketch = self.rows.sketch(self.weights, sketch, self.cancel)?;
            return self.of_sketch(sketch, callback);
        }
        self.of_dense(&*self.rows.data(self.weights)?, callback)
    }

    fn of_dense<F: Number>(
        &self,
        data: &dyn Data<F>,
        callback: Option<&mut Callback>,
    ) -> Result<(BoxedMixture<F>, Found)> {
        let estimator = self.algorithm.boxed::<F>()?;
        if let Some(memory) = self.memory {
            let needed = self.algorithm.peak_memory::<F>(data.len(), data.dim())?;
            if needed > memory {
                let mib = needed.div_ceil(1 << 20);
                return Err(Error::Parameter {
                    name: "memory",
                    value: format!("{memory} bytes, where {} needs {mib} MiB", self.algorithm),
                    rule: "give more, or take fewer clusters",
                });
            }
        }
        let fit = match callback {
            Some(callback) => estimator.fit_observed(data, &mut |step| callback.see(step))?,
            None => estimator.fit(data)?,
        };
        let weight = weight_of(&fit, data.summary().total_weight);
        let own = fit.exact && fit.coreset.is_none();
        let labels = own.then_some(fit.search_labels);
        let found = Found {
            report: fit.report,
            labels,
            weight,
            distinct: None,
            columns: Some((data.summary().mean.clone(), data.summary().variance.clone())),
        };
        Ok((fit.model, found))
    }

    fn of_sketch<F: Number>(
        &self,
        sketch: Sketch<F>,
        callback: Option<&mut Callback>,
    ) -> Result<(BoxedMixture<F>, Found)> {
        let estimator = self.algorithm.boxed::<F>()?;
        let fit = match callback {
            Some(callback) => estimator.fit_observed(&sketch, &mut |step| callback.see(step))?,
            None => estimator.fit(&sketch)?,
        };
        let weight = weight_of(&fit, sketch.summary().total_weight);
        // The same model, for dense rows.
        let model = Save::from_bytes(&fit.model.to_bytes(&[])?)?;
        let found = Found {
            report: fit.report,
            labels: None,
            weight,
            distinct: None,
            columns: None,
        };
        Ok((model, found))
    }
}

/// The weight of the rows that the free energy is about.
fn weight_of<M>(fit: &Fit<M>, all: f64) -> f64 {
    match &fit.coreset {
        Some(coreset) => coreset.weights.iter().sum(),
        None => all,
    }
}
