//! Questions about many clusters: the likeliest few of each row, and a row that stands for each.

use crate::distances::check_distances;
use crate::errors::raise;
use crate::input::{Input, Number};
use coremix::data::{Data, RowKind, Rows};
use coremix::ndarray::{Array2, ArrayView1};
use coremix::{Cancel, Error, Float, Mixture, Result};
use numpy::IntoPyArray;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use rayon::prelude::*;

/// Rows that a thread takes at a time.
const BLOCK: usize = 1024;

/// The row of each cluster that is nearest to its mean: its number, and the squared distance in the unit of the model's frame.
#[derive(Clone)]
pub(crate) struct Medoids(Vec<Option<(usize, f64)>>);

impl Medoids {
    /// One for each of these clusters, without rows yet.
    pub(crate) fn new(components: usize) -> Self {
        Self(vec![None; components])
    }

    /// Takes these rows in, the first of which has this number. Rows without weight are absent.
    pub(crate) fn see<F: Float>(
        &mut self,
        model: &dyn Mixture<F>,
        data: &dyn Data<F>,
        number: usize,
    ) -> Result<()> {
        check_distances(model)?;
        let labels = model.predict(data)?;
        let of_missing = of_missing(model, data);
        let starts: Vec<usize> = (0..data.len()).step_by(BLOCK).collect();
        let nearest = |&first: &usize| -> Result<Self> {
            let mut own = Self::new(self.0.len());
            let mut rows = Rows::default();
            let mut squared = Vec::new();
            let last = data.len().min(first + BLOCK);
            data.load(first..last, model.frame(), &mut rows)?;
            let knows = |row: &usize| data.weight(*row) > 0.0 && rows.known(row - first) > 0;
            for row in (first..last).filter(knows) {
                let label = labels[row];
                rows.distances_to(row - first, model.centres(), &[label], &mut squared);
                let missing = match of_missing.get(label as usize) {
                    Some(of_one) => (data.dim() - rows.known(row - first)) as f64 * of_one,
                    None => 0.0,
                };
                own.put(label as usize, number + row, squared[0].to_f64() + missing);
            }
            Ok(own)
        };
        // One block wakes no other thread.
        let found: Result<Vec<Self>> = match &starts[..] {
            [one] => nearest(one).map(|part| vec![part]),
            all => all.par_iter().map(nearest).collect(),
        };
        for part in found? {
            let places = part.0.into_iter().enumerate();
            places
                .filter_map(|(c, found)| Some((c, found?)))
                .for_each(|(c, (row, squared))| self.put(c, row, squared));
        }
        Ok(())
    }

    /// The first one of equally near rows stays.
    fn put(&mut self, cluster: usize, row: usize, squared: f64) {
        let nearer = |&(_, least): &(usize, f64)| squared < least;
        if self.0[cluster].as_ref().is_none_or(nearer) {
            self.0[cluster] = Some((row, squared));
        }
    }

    /// The number of each row (k); -1 for a cluster without rows.
    pub(crate) fn rows(&self) -> Vec<i64> {
        let row = |found: &Option<(usize, f64)>| found.map_or(-1, |(row, _)| row as i64);
        self.0.iter().map(row).collect()
    }
}

/// The mean variance of a column of each component, in the unit of squared distances: a missing value is expected to be that far
/// from the mean. None where no value can be missing.
fn of_missing<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> Vec<f64> {
    if data.kind() != RowKind::Partial {
        return Vec::new();
    }
    let frame = model.frame();
    let of_row = |row: ArrayView1<'_, f64>| {
        let columns = row.iter().enumerate();
        let all: f64 = columns.map(|(j, v)| frame.enter_product(j, j, *v)).sum();
        all / row.len() as f64
    };
    model.variances().outer_iter().map(of_row).collect()
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
    let taken = x.work(py, &Cancel::new(), 0, |rows| {
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
