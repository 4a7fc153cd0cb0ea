//! Models with several numbers of clusters, and how they compare.

use crate::errors::{Names, named};
use crate::fitted::{Model, OfType};
use crate::input::{Input, Number, Rows, Weights};
use crate::memory::{Made, within};
use crate::report::report;
use crate::settings::{algorithm, limit};
use coremix::coreset::Lightweight;
use coremix::ndarray::ArrayView1;
use coremix::selection::{Candidate, Criterion, Sweep};
use coremix::{Algorithm, BoxedMixture, Cancel, Error, Report, Result, Save};
use coremix_files::{Bytes, sketch_bytes};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A model of the sweep, without the type of its numbers.
struct Found {
    model: OfType,
    report: Report,
    /// Numbers of the table, by name.
    values: Vec<(&'static str, Option<f64>)>,
    /// The criteria by which this model is the best one.
    best_by: Vec<String>,
}

/// How rows are prepared and models are compared.
struct Task<'a, 'x> {
    rows: &'a Rows<'x>,
    weights: Option<ArrayView1<'x, f64>>,
    algorithm: &'a Algorithm,
    clusters: &'a [usize],
    held_out: f64,
    coreset: Option<usize>,
    warm_starts: bool,
    seed: u64,
    /// Coordinates that are kept of each row, and the seed of the sketch.
    sketch: Option<(usize, u64)>,
    /// Its limit, if there is one.
    memory: Option<Bytes>,
    cancel: &'a Cancel,
}

/// A model, its report, and its line of the table.
type Line<'py> = (Model, Bound<'py, PyDict>, Bound<'py, PyDict>);

/// Fits a model for each number of clusters to the same rows: see [`Sweep`]. Settings are those of [`algorithm`]. Returns for
/// each its model, its report, and a dictionary: the columns of the table, and `best_by`.
#[pyfunction]
#[pyo3(signature = (x, settings, clusters, *, held_out=0.1, coreset=None, warm_starts=true, seed=0, weights=None, names=None, columns=None, sketch=None, threads=0))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn sweep<'py>(
    py: Python<'py>,
    x: Input<'py>,
    settings: &Bound<'py, PyDict>,
    clusters: Vec<usize>,
    held_out: f64,
    coreset: Option<usize>,
    warm_starts: bool,
    seed: u64,
    weights: Weights<'py>,
    names: Option<Names>,
    columns: Option<Vec<String>>,
    sketch: Option<(usize, u64)>,
    threads: usize,
) -> PyResult<Vec<Line<'py>>> {
    let cancel = Cancel::default();
    let names = names.unwrap_or_default();
    let algorithm = algorithm(settings, &names, &cancel)?;
    let memory = limit(settings)?;
    let weights = weights.as_ref();
    let weights = weights.map(|weights| weights.as_array());
    let found = x.work(py, &cancel, threads, |rows| {
        let task = Task {
            rows,
            weights,
            algorithm: &algorithm,
            clusters: &clusters,
            held_out,
            coreset,
            warm_starts,
            seed,
            sketch,
            memory,
            cancel: &cancel,
        };
        if rows.is_double() {
            task.run::<f64>(OfType::Double)
        } else {
            task.run::<f32>(OfType::Single)
        }
    })?;
    let found = found.map_err(|error| named(error, &names, columns.as_deref()))?;
    let texts = x.texts();
    let tell = |one: Found| {
        let line = PyDict::new(py);
        for (name, value) in one.values {
            line.set_item(name, value)?;
        }
        line.set_item("best_by", one.best_by)?;
        Ok((
            Model(one.model, columns.clone(), texts.clone()),
            report(py, &one.report)?,
            line,
        ))
    };
    found.into_iter().map(tell).collect()
}

impl Task<'_, '_> {
    fn run<F: Number>(&self, wrap: impl Fn(BoxedMixture<F>) -> OfType) -> Result<Vec<Found>> {
        let mut sweep = Sweep::new(self.clusters.iter().copied())
            .held_out(self.held_out)
            .warm_starts(self.warm_starts)
            .seed(self.seed);
        if let Some(draws) = self.coreset {
            sweep = sweep.coreset(Lightweight::new(draws));
        }
        let of_sketch = self.sketch.map(|(q, _)| Made {
            what: "the sketch",
            bytes: sketch_bytes::<F>(2 * self.rows.len(), q),
            each: 0,
        });
        let most = self.clusters.iter().copied().max().unwrap_or(1);
        // Without a coreset, the rows that are not held out are copied.
        let copies = if self.coreset.is_some() { 1 } else { 2 };
        let (algorithm, loaded) = within::<F>(
            self.rows,
            self.weights.is_some(),
            self.algorithm.clone().clusters(most),
            self.memory,
            (copies, self.coreset.is_some()),
            of_sketch,
        )?;
        let build = |k| algorithm.clone().clusters(k).boxed::<F>();
        let selection = match (self.sketch, loaded) {
            (Some(sketch), _) => {
                sweep.run(&self.rows.sketch(self.weights, sketch, self.cancel)?, build)
            }
            (None, true) => sweep.run(&*self.rows.loaded::<F>(self.weights)?, build),
            (None, false) => sweep.run(&*self.rows.data::<F>(self.weights)?, build),
        }?;
        let best = Criterion::ALL.map(|one| (one, selection.best(one).map(|found| found.clusters)));
        let all = selection.candidates.into_iter();
        all.map(|one| {
            let best = best
                .iter()
                .filter(|(_, clusters)| *clusters == Some(one.clusters));
            let best_by = best.map(|(criterion, _)| criterion.to_string()).collect();
            let values = values(&one);
            let mut model = one.model;
            if self.sketch.is_some() {
                // This model, for dense rows.
                model = Save::from_bytes(&model.to_bytes(&[])?)?;
            }
            Ok::<_, Error>(Found {
                model: wrap(model),
                report: one.report,
                values,
                best_by,
            })
        })
        .collect()
    }
}

/// The columns of the table.
fn values<F: Number>(one: &Candidate<F>) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("clusters", Some(one.clusters as f64)),
        ("in_use", Some(one.criteria.in_use as f64)),
        ("log_likelihood", Some(one.criteria.log_likelihood)),
        ("bic", one.value(Criterion::Bic)),
        ("aic", one.value(Criterion::Aic)),
        ("icl", one.value(Criterion::Icl)),
        ("held_out", one.held_out),
        ("held_out_error", one.held_out_error),
    ]
}
