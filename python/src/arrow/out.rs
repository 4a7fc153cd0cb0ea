//! Arrays for whatever reads the Arrow C data interface.

use super::capsule::{array, column, schema, wrong};
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{Field, Fields};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Columns of numbers, one without a name or several with names, that `pyarrow.array`, `polars.from_arrow` and all else take
/// that reads the Arrow C data interface. They are not copied: leave the arrays unchanged.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Arrow {
    field: Field,
    array: ArrayRef,
}

#[pymethods]
impl Arrow {
    #[new]
    #[pyo3(signature = (columns, names=None))]
    fn new(columns: Vec<Bound<'_, PyAny>>, names: Option<Vec<String>>) -> PyResult<Self> {
        let columns = columns.iter().map(of_numbers);
        let mut columns = columns.collect::<PyResult<Vec<_>>>()?;
        let array: ArrayRef = match names {
            None if columns.len() == 1 => columns.remove(0),
            None => return Err(PyValueError::new_err("names: several columns need them")),
            Some(names) if names.len() != columns.len() => {
                let own = names.len();
                let of = columns.len();
                return Err(PyValueError::new_err(format!(
                    "names: {own} for {of} columns"
                )));
            }
            Some(names) => {
                let named = names.into_iter().zip(&columns);
                let fields: Fields = named
                    .map(|(name, column)| Field::new(name, column.data_type().clone(), false))
                    .collect();
                Arc::new(StructArray::try_new(fields, columns, None).map_err(wrong)?)
            }
        };
        let field = Field::new("", array.data_type().clone(), false);
        Ok(Self { field, array })
    }

    /// The schema and the array, each in a capsule. Another schema is not made.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        Ok((schema(py, &self.field)?, array(py, &self.array)?))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.field)
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "Arrow({} rows, {})",
            self.array.len(),
            self.field.data_type()
        )
    }
}

/// The numbers of an array as a column.
fn of_numbers(x: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if let Ok(x) = x.cast::<PyArray1<i32>>() {
        return column::<Int32Type>(x);
    }
    if let Ok(x) = x.cast::<PyArray1<i64>>() {
        return column::<Int64Type>(x);
    }
    if let Ok(x) = x.cast::<PyArray1<f32>>() {
        return column::<Float32Type>(x);
    }
    if let Ok(x) = x.cast::<PyArray1<f64>>() {
        return column::<Float64Type>(x);
    }
    let rule = "a column is an array of one dimension, of int32, int64, float32 or float64";
    Err(PyTypeError::new_err(rule))
}
