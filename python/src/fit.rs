//! A fit: rows and settings in, a model and what the fit found out.

use crate::distinct::{distinct, located};
use crate::errors::{Names, named};
use crate::fitted::{Model, OfType};
use crate::input::{Input, Number, Rows, Weights, owned, whole};
use crate::memory::{Made, within};
use crate::progress::{At, Callback};
use crate::report::report;
use crate::settings::{algorithm, kinds, limit};
use coremix::data::{Data, Dense, Sketch, Source as _, Summary};
use coremix::families::Column;
use coremix::ndarray::{Array1, ArrayView1};
use coremix::{Algorithm, BoxedMixture, Cancel, Estimator, Fit, Report, Result, Save};
use coremix_files::{Bytes, Room, row_names, sketch_bytes};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Instant;

/// How rows are prepared before the fit.
#[derive(Clone, Copy)]
struct Preparation {
    /// Whether equal rows become one, in ascending order: then this number of rows is needed.
    merge: Option<usize>,
    /// Coordinates that are kept of each row, and the seed of the sketch.
    sketch: Option<(usize, u64)>,
}

/// The results of a fit, without the type of its numbers.
struct Found {
    report: Report,
    /// The labels of all rows, if the fit found them, and exactly.
    labels: Option<Array1<u32>>,
    /// The weight of the rows of each component, if it found their labels.
    sizes: Option<Vec<f64>>,
    /// The weight of the rows that the free energy is about.
    weight: f64,
    /// Number of distinct rows, if equal ones were merged.
    distinct: Option<usize>,
    /// Weighted means and variances of all columns, of rows of length 1 for a model of these; of a sketch they are in other coordinates, so
    /// None.
    columns: Option<(Vec<f64>, Vec<f64>)>,
    /// Columns that seem to name the rows, and why.
    row_names: Vec<(usize, &'static str)>,
}

/// Fits a model. Settings are those of [`algorithm`]. Returns the model and a dictionary: `report`, `labels` (of
/// all rows if the fit found them exactly and rows are in memory, or None), `sizes`, `weight`, `distinct`, `columns` and `row_names`. `sizes` are
/// the weights of the rows of each cluster, where the fit found exact labels, or None. `distinct` is the number of distinct rows, if
/// equal ones were merged. `columns` are their means and variances, or None. `row_names` are
/// the columns that seem to name the rows. The model has the names of the columns. While it runs, `progress` is called with what it
/// is at.
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
    let cancel = Cancel::default();
    let names = names.unwrap_or_default();
    let algorithm = algorithm(settings, &names, &cancel)?;
    let weights = weights.as_ref().map(|weights| weights.as_array());
    let at = At::default();
    let sees = callback.is_some() || progress.is_some();
    let mut callback = sees.then(|| Callback::new(callback, &at));
    let mut last = Instant::now();
    let look = || match &progress {
        Some(progress) => at.tell(progress, &mut last),
        None => Ok(()),
    };
    let memory = limit(settings)?;
    let kinds = kinds(settings)?;
    let preparation = Preparation { merge, sketch };
    let fitted = x.watched(py, &cancel, threads, look, |rows| {
        let task = Task {
            rows,
            weights,
            algorithm: &algorithm,
            preparation,
            memory,
            kinds,
            names: columns.as_deref().unwrap_or_default(),
            cancel: &cancel,
        };
        if rows.is_double() {
            task.fit::<f64>(callback.as_mut())
                .map(|(m, f)| (OfType::Double(m), f))
        } else {
            task.fit::<f32>(callback.as_mut())
                .map(|(m, f)| (OfType::Single(m), f))
        }
    })?;
    callback.map_or(Ok(()), Callback::result)?;
    let (model, found) = fitted.map_err(|error| named(error, &names, columns.as_deref()))?;
    let result = PyDict::new(py);
    result.set_item("report", report(py, &found.report)?)?;
    let labels = found.labels.map(|l| l.mapv(|c| c as i32).into_pyarray(py));
    result.set_item("labels", labels)?;
    result.set_item("sizes", found.sizes.map(|sizes| sizes.into_pyarray(py)))?;
    result.set_item("weight", found.weight)?;
    result.set_item("distinct", found.distinct)?;
    result.set_item("columns", found.columns)?;
    result.set_item("row_names", found.row_names)?;
    Ok((Model(model, columns, x.texts()), result))
}

struct Task<'a, 'x> {
    rows: &'a Rows<'x>,
    weights: Option<ArrayView1<'x, f64>>,
    algorithm: &'a Algorithm,
    preparation: Preparation,
    /// Its limit, if there is one.
    memory: Option<Bytes>,
    /// The kinds of columns of a table.
    kinds: Vec<Column>,
    /// The names of the columns, if they have some.
    names: &'a [String],
    cancel: &'a Cancel,
}

impl Task<'_, '_> {
    fn fit<F: Number>(&self, callback: Option<&mut Callback>) -> Result<(BoxedMixture<F>, Found)> {
        let (algorithm, loaded) = self.within::<F>()?;
        let estimator = algorithm.boxed::<F>()?;
        if let Some(least) = self.preparation.merge {
            let merged = distinct::<F>(self.rows, self.weights, least)?;
            let made = match self.preparation.sketch {
                Some((q, seed)) => {
                    whole(merged.rows.view())?;
                    let rows = Dense::owned(merged.rows, Some(merged.weights))?;
                    let sketch = Sketch::of_dense(&rows, q, seed)?;
                    self.of_sketch(&*estimator, sketch, callback)
                }
                None => {
                    let may_miss = F::read(self.rows).may_miss();
                    let data = owned(merged.rows, Some(merged.weights), may_miss)?;
                    self.check_categories(&algorithm, &*data)?;
                    self.of_dense(&*estimator, &*data, callback)
                }
            };
            let (model, mut found) = made.map_err(|error| located(&merged.first, error))?;
            (found.labels, found.sizes) = (None, None);
            found.distinct = Some(merged.found);
            return Ok((model, found));
        }
        if let Some(sketch) = self.preparation.sketch {
            let sketch = self.rows.sketch(self.weights, sketch, self.cancel)?;
            return self.of_sketch(&*estimator, sketch, callback);
        }
        let data = if loaded {
            self.rows.loaded(self.weights)
        } else {
            self.rows.data(self.weights)
        };
        let data = data?;
        self.check_categories(&algorithm, &*data)?;
        self.of_dense(&*estimator, &*data, callback)
    }

    /// An error if a table in memory has more categories than the limit allows.
    fn check_categories<F: Number>(&self, algorithm: &Algorithm, data: &dyn Data<F>) -> Result<()> {
        let limit = self.memory.filter(|_| !self.kinds.is_empty());
        let Some(limit) = limit else {
            return Ok(());
        };
        let room = Room::beside(limit, (data.len(), data.dim()));
        let of = data.summary();
        room.check_categories::<F>(algorithm, (&self.kinds, of), false)
    }

    /// The algorithm in the limit of memory, and whether rows of a scan are loaded.
    fn within<F: Number>(&self) -> Result<(Algorithm, bool)> {
        let n = self.rows.len();
        let number = size_of::<F>();
        let Preparation { merge, sketch } = self.preparation;
        let of_sketch = sketch.map(|(q, _)| Made {
            what: "the sketch",
            bytes: sketch_bytes::<F>(n, q),
            each: 0,
        });
        // Copies of rows that are in memory anyway do not count.
        let merge = merge.filter(|_| self.rows.reading().is_some());
        let of_merged = merge.map(|_| Made {
            what: "merge_rows",
            bytes: n.saturating_mul(5 * size_of::<usize>()),
            each: 2 * number,
        });
        let weighted = self.weights.is_some();
        let made = of_merged.or(of_sketch);
        let algorithm = self.algorithm.clone();
        within::<F>(self.rows, weighted, algorithm, self.memory, (1, true), made)
    }

    fn of_dense<F: Number>(
        &self,
        estimator: &dyn Estimator<F>,
        data: &dyn Data<F>,
        callback: Option<&mut Callback>,
    ) -> Result<(BoxedMixture<F>, Found)> {
        let fit = match callback {
            Some(callback) => estimator.fit_observed(data, &mut |step| callback.see(step))?,
            None => estimator.fit(data)?,
        };
        let weight = weight_of(&fit, data.summary().total_weight);
        let own = fit.exact && fit.coreset.is_none();
        let labels = own.then_some(fit.search_labels);
        let sizes = labels.as_ref().map(|labels| {
            let mut sizes = vec![0.0; fit.model.components()];
            for (row, label) in labels.iter().enumerate() {
                sizes[*label as usize] += data.weight(row);
            }
            sizes
        });
        let found = Found {
            report: fit.report,
            // They are as many as the rows, which are not in memory.
            labels: labels.filter(|_| self.rows.reading().is_none()),
            sizes,
            weight,
            distinct: None,
            columns: Some(if fit.model.frame().has_directions() {
                columns(&Summary::of_directions(data)?)
            } else {
                columns(data.summary())
            }),
            row_names: row_names(self.names, data.summary()),
        };
        Ok((fit.model, found))
    }

    fn of_sketch<F: Number>(
        &self,
        estimator: &dyn Estimator<F>,
        sketch: Sketch<F>,
        callback: Option<&mut Callback>,
    ) -> Result<(BoxedMixture<F>, Found)> {
        let fit = match callback {
            Some(callback) => estimator.fit_observed(&sketch, &mut |step| callback.see(step))?,
            None => estimator.fit(&sketch)?,
        };
        let weight = weight_of(&fit, sketch.summary().total_weight);
        // This model, for dense rows.
        let model = Save::from_bytes(&fit.model.to_bytes(&[])?)?;
        let found = Found {
            report: fit.report,
            labels: None,
            sizes: None,
            weight,
            distinct: None,
            columns: None,
            row_names: Vec::new(),
        };
        Ok((model, found))
    }
}

/// Means and variances.
fn columns(summary: &Summary) -> (Vec<f64>, Vec<f64>) {
    (summary.mean.clone(), summary.variance.clone())
}

/// The weight of the rows that the free energy is about.
fn weight_of<M>(fit: &Fit<M>, all: f64) -> f64 {
    match &fit.coreset {
        Some(coreset) => coreset.weights.iter().sum(),
        None => all,
    }
}
