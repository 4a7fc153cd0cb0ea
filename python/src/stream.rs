//! A coreset that grows with rows that come once.

use crate::errors::{raise, raise_asked, row_of};
use crate::input::{Input, Number, Rows, Weights};
use coremix::coreset::OnePass;
use coremix::data::{Data as _, Dense, Source as _};
use coremix::ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use coremix::{Cancel, Error, Result};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};

/// Rows of either number type.
#[derive(Clone, Serialize, Deserialize)]
enum OfType {
    Single(OnePass<f32>),
    Double(OnePass<f64>),
}

/// A coreset of at most this number of rows of all that were pushed ([`OnePass`]). The first rows decide how many columns there are, and
/// whether numbers are kept as float64 or float32.
#[pyclass(module = "coremix._coremix")]
pub(crate) struct Stream {
    /// Draws of the coreset.
    #[pyo3(get)]
    size: usize,
    seed: u64,
    coreset: Option<OfType>,
    /// Batches that came.
    batches: u64,
    /// A number that stands for missing values, for each column, once some were missing. From then on rows are [`marked`].
    fills: Fills,
}

type Fills = Option<Vec<f64>>;

/// Does something with rows of either number type: `$of` is the coreset.
macro_rules! each {
    ($stream:expr, $of:ident => $do:expr) => {
        match $stream {
            OfType::Single($of) => $do,
            OfType::Double($of) => $do,
        }
    };
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
            fills: None,
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
        let (begun, cancel) = (self.coreset.clone(), Cancel::new());
        let (size, seed, mut fills) = (self.size, self.seed, self.fills.clone());
        let before = self.rows();
        let coreset = x.work(py, &cancel, threads, |rows| {
            let mut coreset = match begun {
                Some(begun) => begun,
                None if rows.is_double() => OfType::Double(self.start(rows)?),
                None => OfType::Single(self.start(rows)?),
            };
            each!(&mut coreset, own => {
                push(own, rows, weights, &cancel, Some((&mut fills, before, (size, seed))))
            })?;
            Ok((coreset, fills))
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
        self.coreset = Some(coreset.0);
        self.fills = coreset.1;
        self.batches += 1;
        Ok(())
    }

    /// All of it as bytes, for pickling: what goes on from there has the bits of what was never stopped.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = (
            self.size,
            self.seed,
            &self.coreset,
            self.batches,
            &self.fills,
        );
        let bytes = postcard::to_stdvec(&state);
        let bytes = bytes.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// From the bytes of `state`.
    #[staticmethod]
    fn of_state(state: &[u8]) -> PyResult<Self> {
        let wrong = |error| PyValueError::new_err(format!("rows of partial_fit: {error}"));
        let (size, seed, coreset, batches, fills) = postcard::from_bytes(state).map_err(wrong)?;
        Ok(Self {
            size,
            seed,
            coreset,
            batches,
            fills,
        })
    }

    /// Number of rows that came.
    #[getter]
    fn rows(&self) -> usize {
        let Some(coreset) = &self.coreset else {
            return 0;
        };
        each!(coreset, own => own.rows())
    }

    /// The rows of the coreset so far (at most `size`, d), and their weights.
    fn coreset<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
        let Some(coreset) = self.coreset.clone() else {
            return Err(raise(Error::Empty { what: "stream" }));
        };
        each!(coreset, own => {
            let (mut rows, weights) = own.finish().map_err(raise)?;
            if let Some(fills) = &self.fills {
                rows = known(rows.view(), fills.len());
            }
            Ok((rows.into_pyarray(py).into_any(), weights.into_pyarray(py)))
        })
    }
}

impl Stream {
    fn start<F: Number>(&self, rows: &Rows<'_>) -> Result<OnePass<F>> {
        OnePass::new(rows.shape().1, self.size, self.seed)
    }
}

/// A number that adds nothing to a squared distance.
const MARK: f64 = 1e-30;

/// Rows (n, d) as (n, 2 d): what stands for missing values is there, and behind it a mark of each that is missing. A coreset of
/// whole rows is drawn by distances, in which marks are nothing, and has the expected weights for any distances.
fn marked<F: Number>(rows: ArrayView2<'_, F>, fills: &[f64]) -> Array2<F> {
    let d = fills.len();
    Array2::from_shape_fn((rows.nrows(), 2 * d), |(i, j)| {
        let x = rows[[i, j % d]];
        match (x.to_f64().is_nan(), j < d) {
            (false, true) => x,
            (true, true) => F::from_f64(fills[j]),
            (missing, false) => F::from_f64(if missing { MARK } else { 0.0 }),
        }
    })
}

/// The rows (n, d) that were marked: NaN where a value is missing.
fn known<F: Number>(marked: ArrayView2<'_, F>, d: usize) -> Array2<F> {
    Array2::from_shape_fn((marked.nrows(), d), |(i, j)| {
        match marked[[i, d + j]].to_f64() > 0.0 {
            true => F::from_f64(f64::NAN),
            false => marked[[i, j]],
        }
    })
}

/// Rows of a stream, with their weights.
type Block<'a, F> = (ArrayView2<'a, F>, Option<ArrayView1<'a, f64>>);

/// Takes rows in of which values may be missing, whose first one is this row of the stream: all rows are marked from the first
/// missing value on.
fn push_known<F: Number>(
    (coreset, fills): (&mut OnePass<F>, &mut Fills),
    (block, weights): Block<'_, F>,
    first: usize,
    (size, seed): (usize, u64),
) -> Result<()> {
    let counts = |weights: &ArrayView1<'_, f64>| weights.iter().any(|weight| *weight != 0.0);
    let checked = match weights.filter(counts) {
        Some(weights) => Dense::weighted_with_missing(block, weights),
        None => Dense::with_missing(block),
    };
    let checked = checked.map_err(|mut error| {
        row_of(&mut error).into_iter().for_each(|row| *row += first);
        error
    })?;
    if fills.is_none() && !checked.kind().is_dense() {
        let means = checked.summary().mean.iter();
        let means = means.map(|mean| if mean.is_nan() { 0.0 } else { *mean });
        let means = fills.insert(means.collect());
        let before = std::mem::replace(coreset, OnePass::new(2 * means.len(), size, seed)?);
        match before.finish() {
            Ok((rows, weights)) => {
                coreset.push_weighted(marked(rows.view(), means).view(), weights.view())?;
            }
            Err(Error::Empty { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let wide = fills.as_ref().map(|fills| marked(block, fills));
    let block = wide.as_ref().map_or(block, |wide| wide.view());
    push_block(coreset, block, weights)
}

fn push_block<F: Number>(
    coreset: &mut OnePass<F>,
    block: ArrayView2<'_, F>,
    weights: Option<ArrayView1<'_, f64>>,
) -> Result<()> {
    match weights {
        Some(weights) => coreset.push_weighted(block, weights),
        None => coreset.push(block),
    }
}

/// Reads the rows in order, a block at a time. Values may be missing where there is something to keep about it, and the number of the
/// first row of the stream.
fn push<F: Number>(
    coreset: &mut OnePass<F>,
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    cancel: &Cancel,
    missing: Option<(&mut Fills, usize, (usize, u64))>,
) -> Result<()> {
    let (n, given) = (
        rows.len(),
        weights.map_or(rows.len(), |weights| weights.len()),
    );
    if given != n {
        return Err(Error::LengthMismatch {
            what: "weights",
            expected: n,
            found: given,
        });
    }
    let may_miss = F::read(rows).may_miss();
    match missing {
        Some((fills, mut first, how)) if may_miss || fills.is_some() => {
            rows.each_block::<F>(weights, cancel, |block, weights| {
                push_known((coreset, fills), (block, weights), first, how)?;
                first += block.nrows();
                Ok(())
            })
        }
        _ => rows.each_block::<F>(weights, cancel, |block, weights| {
            push_block(coreset, block, weights)
        }),
    }
}

/// Draws of the rows, with their weights: in one pass, and the same for any number of threads.
pub(crate) fn sample<F: Number>(
    rows: &Rows<'_>,
    weights: Option<ArrayView1<'_, f64>>,
    (size, seed): (usize, u64),
    cancel: &Cancel,
) -> Result<(Array2<F>, Array1<f64>)> {
    let mut coreset = OnePass::<F>::new(rows.shape().1, size, seed)?;
    push(&mut coreset, rows, weights, cancel, None)?;
    coreset.finish()
}
