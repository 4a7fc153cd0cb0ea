//! Matrices in compressed rows, as scipy has them.

use coremix::data::{Source, Sparse};
use coremix::ndarray::{Array2, ArrayView1};
use coremix::{Element, Float, Result};
use numpy::{IntoPyArray, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::any::Any;
use std::borrow::Cow;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;

/// Sparse rows: a copy of their lists, never of the matrix.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Csr {
    starts: Vec<usize>,
    ids: Vec<u32>,
    values: Values,
    dim: usize,
}

pub(crate) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl From<&[f32]> for Values {
    fn from(values: &[f32]) -> Self {
        Self::F32(values.to_vec())
    }
}

impl From<&[f64]> for Values {
    fn from(values: &[f64]) -> Self {
        Self::F64(values.to_vec())
    }
}

#[pymethods]
impl Csr {
    /// Rows of `columns` columns: where the values of each start, their columns, and the values.
    #[new]
    fn new(
        starts: PyReadonlyArray1<'_, i64>,
        ids: PyReadonlyArray1<'_, u32>,
        values: &Bound<'_, PyAny>,
        columns: usize,
    ) -> PyResult<Self> {
        let of_single = values.extract::<PyReadonlyArray1<'_, f32>>().ok();
        let values = match of_single {
            Some(values) => Values::F32(values.as_array().to_vec()),
            None => {
                let values = values.extract::<PyReadonlyArray1<'_, f64>>();
                let rule = "values must be float32 or float64";
                let values = values.map_err(|_| PyTypeError::new_err(rule))?;
                Values::F64(values.as_array().to_vec())
            }
        };
        // A negative start becomes one beyond all values, which is refused.
        let place = |start: &i64| usize::try_from(*start).unwrap_or(usize::MAX);
        let rows = Self {
            starts: starts.as_array().iter().map(place).collect(),
            ids: ids.as_array().to_vec(),
            values,
            dim: columns,
        };
        if rows.are_lists() {
            Ok(rows)
        } else {
            Err(PyValueError::new_err(
                "X is no matrix in compressed rows: indptr must begin with 0, not fall, and end with the length of indices and data",
            ))
        }
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.len()
    }

    /// Number of columns.
    #[getter]
    pub(crate) fn columns(&self) -> usize {
        self.dim
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.len(), self.dim)
    }

    /// Number of the values that are stored.
    #[getter]
    fn nnz(&self) -> usize {
        self.stored()
    }

    /// The columns have no names.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        None
    }

    fn __repr__(&self) -> String {
        let n = self.len();
        let d = self.dim;
        let stored = self.stored();
        format!("Sparse rows, in memory: {n} rows, {d} columns, {stored} values; the others are 0")
    }

    /// Where the values of each row start, their columns, the values, and the number of columns: what it is made of.
    fn lists<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let starts: Vec<i64> = self.starts.iter().map(|start| *start as i64).collect();
        let values = match &self.values {
            Values::F32(values) => values.to_pyarray(py).into_any(),
            Values::F64(values) => values.to_pyarray(py).into_any(),
        };
        let columns = self.dim.into_pyobject(py)?.into_any();
        let ids = self.ids.to_pyarray(py).into_any();
        PyTuple::new(
            py,
            [starts.into_pyarray(py).into_any(), ids, values, columns],
        )
    }

    /// All of it as an array (n, d), with its zeros.
    fn toarray<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &self.values {
            Values::F32(_) => self.dense::<f32>()?.into_pyarray(py).into_any(),
            Values::F64(_) => self.dense::<f64>()?.into_pyarray(py).into_any(),
        })
    }

    /// NumPy would make an array of no dimension, with this as its value.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __array__(
        &self,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let rule = "sparse rows are no array: give them to an estimator as they are, or toarray(), with all zeros";
        Err(PyTypeError::new_err(rule))
    }

    /// Pickled as what it is made of.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        Ok((py.get_type::<Self>(), slf.get().lists(py)?))
    }
}

impl Csr {
    /// The rows of files, whose lists these are.
    pub(crate) fn of_lists<'a, F: Float>(
        dim: usize,
        (starts, ids, values): (&[usize], &[u32], &'a [F]),
    ) -> Self
    where
        Values: From<&'a [F]>,
    {
        Self {
            starts: starts.to_vec(),
            ids: ids.to_vec(),
            values: values.into(),
            dim,
        }
    }

    /// Whether each row has its place in the lists: all else is checked where rows are read.
    fn are_lists(&self) -> bool {
        let values = match &self.values {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        };
        (self.starts.first(), self.starts.last()) == (Some(&0), Some(&values))
            && self.starts.is_sorted()
            && values == self.ids.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of the values that are stored.
    pub(crate) fn stored(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn is_double(&self) -> bool {
        matches!(self.values, Values::F64(_))
    }

    /// Where the values of these rows are.
    fn places(&self, rows: &Range<usize>) -> Range<usize> {
        self.starts[rows.start]..self.starts[rows.end]
    }

    fn values<F: Float>(&self, places: Range<usize>) -> Vec<F> {
        match &self.values {
            Values::F32(values) => {
                (values[places].iter().map(|x| F::from_f64((*x).into()))).collect()
            }
            Values::F64(values) => values[places].iter().map(|x| F::from_f64(*x)).collect(),
        }
    }

    /// Some of the rows; all of them as they are.
    pub(crate) fn data<'a, F: Float>(
        &'a self,
        rows: &Range<usize>,
        weights: Option<ArrayView1<'a, f64>>,
    ) -> Result<Sparse<'a, F>> {
        let all = *rows == (0..self.len());
        let places = self.places(rows);
        let starts: Cow<'_, [usize]> = if all {
            Cow::Borrowed(&self.starts)
        } else {
            let own = self.starts[rows.start..=rows.end].iter();
            own.map(|start| start - places.start).collect()
        };
        let of_this_type = match &self.values {
            Values::F32(values) => (values as &dyn Any).downcast_ref::<Vec<F>>(),
            Values::F64(values) => (values as &dyn Any).downcast_ref::<Vec<F>>(),
        };
        let ids = &self.ids[places.clone()];
        let values: Cow<'_, [F]> = match of_this_type {
            Some(values) => Cow::Borrowed(&values[places]),
            None => Cow::Owned(self.values::<F>(places)),
        };
        match weights {
            Some(weights) => Sparse::weighted(self.dim, starts, ids, values, weights.to_vec()),
            None => Sparse::new(self.dim, starts, ids, values),
        }
    }

    /// All rows with their zeros.
    fn dense<F: Float + Element>(&self) -> PyResult<Array2<F>> {
        let mut rows = Array2::default((self.len(), self.dim));
        let out = rows.as_slice_mut().expect("rows in order");
        let read = self.source::<F>(0..self.len()).read(0, out);
        read.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(rows)
    }

    /// These rows with their zeros, a block at a time.
    pub(crate) fn source<F>(&self, rows: Range<usize>) -> WithZeros<'_, F> {
        let number = PhantomData;
        WithZeros {
            csr: self,
            rows,
            number,
        }
    }
}

/// Sparse rows as dense ones.
pub(crate) struct WithZeros<'a, F> {
    csr: &'a Csr,
    rows: Range<usize>,
    number: PhantomData<F>,
}

impl<F: Float + Element> Source for WithZeros<'_, F> {
    type Element = F;

    fn name(&self) -> &'static str {
        "sparse matrix"
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.csr.dim
    }

    fn read(&self, first: usize, out: &mut [F]) -> io::Result<()> {
        let dim = self.csr.dim;
        for (i, out) in out.chunks_exact_mut(dim.max(1)).enumerate() {
            out.fill(F::default());
            let row = self.rows.start + first + i;
            let places = self.csr.places(&(row..row + 1));
            let values = self.csr.values::<F>(places.clone());
            for (&j, x) in self.csr.ids[places].iter().zip(values) {
                let what = "a column of a sparse matrix is beyond the last one";
                let place = out.get_mut(j as usize);
                *place.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, what))? = x;
            }
        }
        Ok(())
    }
}
