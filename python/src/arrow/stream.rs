//! Batches that come one after the other: of a stream, or of an iterator of Python.

use super::capsule::{batches, reader, wrong};
use crate::strided::Array;
use arrow_array::ffi_stream::ArrowArrayStreamReader;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, UInt8Type,
};
use arrow_array::{ArrayRef, FixedSizeListArray, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_schema::{Field, Schema, SchemaRef};
use coremix::Error;
use coremix::ndarray::ArrayView2;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};
use std::collections::VecDeque;
use std::sync::Arc;

/// Batches of one schema, each of which is in memory until the next one is asked for.
pub(crate) struct Stream<'py> {
    py: Python<'py>,
    from: From<'py>,
    /// Batches that came together with one that is done.
    waiting: VecDeque<RecordBatch>,
    schema: SchemaRef,
    /// Whether they are arrays, whose columns have no names.
    pub(crate) unnamed: bool,
    /// Whether a number may be missing.
    lenient: bool,
    /// Rows and batches of Python that came.
    rows: usize,
    items: usize,
    raised: Option<PyErr>,
}

enum From<'py> {
    Reader(Box<ArrowArrayStreamReader>),
    Iterator(Bound<'py, PyIterator>),
}

impl<'py> Stream<'py> {
    /// From what has an Arrow stream, or from an iterator of batches: of whatever has the Arrow C interface, or of pairs of an
    /// array and the names of its columns. `lenient`: a number may be missing.
    pub(crate) fn of(of: &Bound<'py, PyAny>, lenient: bool) -> PyResult<Self> {
        let mut stream = Self {
            py: of.py(),
            from: if of.hasattr("__arrow_c_stream__")? {
                From::Reader(Box::new(reader(of)?))
            } else {
                From::Iterator(of.try_iter()?)
            },
            waiting: VecDeque::new(),
            schema: Arc::new(Schema::empty()),
            unnamed: false,
            lenient,
            rows: 0,
            items: 0,
            raised: None,
        };
        if let From::Reader(reader) = &stream.from {
            stream.schema = reader.schema();
        } else if !stream.advance()? {
            let what = "there is no batch, so no columns are known";
            return Err(PyValueError::new_err(what));
        }
        Ok(stream)
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// An error, if Python raised one.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }

    /// Takes what comes next; `false` at the end.
    fn advance(&mut self) -> PyResult<bool> {
        self.py.check_signals()?;
        let item = match &mut self.from {
            From::Reader(reader) => {
                let Some(batch) = self.py.detach(|| reader.next()) else {
                    return Ok(false);
                };
                self.waiting.push_back(batch.map_err(wrong)?);
                return Ok(true);
            }
            From::Iterator(items) => items.next(),
        };
        let Some(item) = item.transpose()? else {
            return Ok(false);
        };
        let (schema, batches) = match item.cast::<PyTuple>() {
            Ok(pair) => {
                let (array, names) = pair.extract::<(Bound<'_, PyAny>, Option<Vec<String>>)>()?;
                self.unnamed |= names.is_none();
                let batch = self.of_array(&array, names)?;
                (batch.schema().as_ref().clone(), vec![batch])
            }
            Err(_) => batches(&item)?,
        };
        let columns = |schema: &Schema| {
            let each = schema.fields().iter();
            let each: Vec<_> = each
                .map(|one| format!("{} ({})", one.name(), one.data_type()))
                .collect();
            each.join(", ")
        };
        if self.items == 0 {
            self.schema = Arc::new(schema);
        } else if columns(&schema) != columns(&self.schema) {
            return Err(PyValueError::new_err(format!(
                "batch {} has the columns {}, where the first one has {}",
                self.items,
                columns(&schema),
                columns(&self.schema)
            )));
        }
        self.items += 1;
        self.rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        self.waiting.extend(batches);
        Ok(true)
    }

    /// The rows of an array: columns of these names, or lists.
    fn of_array(
        &self,
        array: &Bound<'py, PyAny>,
        names: Option<Vec<String>>,
    ) -> PyResult<RecordBatch> {
        let from = (self.rows, self.lenient);
        let rule = "a batch must be an array or a table";
        match Array::read(array).ok_or_else(|| PyTypeError::new_err(rule))? {
            Array::F32(rows) => {
                batch::<Float32Type>(rows.as_array(), names, from, |x| x.is_finite())
            }
            Array::F64(rows) => {
                batch::<Float64Type>(rows.as_array(), names, from, |x| x.is_finite())
            }
            Array::F16(rows) => {
                batch::<Float16Type>(rows.as_array(), names, from, |x| x.is_finite())
            }
            Array::U8(rows) => batch::<UInt8Type>(rows.as_array(), names, from, |_| true),
            Array::I8(rows) => batch::<Int8Type>(rows.as_array(), names, from, |_| true),
        }
    }
}

fn batch<P: ArrowPrimitiveType>(
    rows: ArrayView2<'_, P::Native>,
    names: Option<Vec<String>>,
    (first, lenient): (usize, bool),
    finite: fn(P::Native) -> bool,
) -> PyResult<RecordBatch> {
    if let (Some(((row, column), _)), false) =
        (rows.indexed_iter().find(|(_, x)| !finite(**x)), lenient)
    {
        let row = first + row;
        let name = names.as_ref().map(|names| format!("{:?}", names[column]));
        let column = name.unwrap_or(column.to_string());
        return Err(PyValueError::new_err(format!(
            "row {row}, column {column} is NaN or infinite; rows count from 0; missing=True takes NaN as missing"
        )));
    }
    let array = |values: Vec<P::Native>| -> ArrayRef {
        Arc::new(PrimitiveArray::<P>::from_iter_values(values))
    };
    let Some(names) = names else {
        let item = Arc::new(Field::new("item", P::DATA_TYPE, false));
        let each = i32::try_from(rows.ncols()).ok().filter(|each| *each > 0);
        let each = each.ok_or_else(|| PyValueError::new_err("a batch must have columns"))?;
        let values = array(rows.iter().copied().collect());
        let lists = FixedSizeListArray::try_new(item, each, values, None).map_err(wrong)?;
        return RecordBatch::try_from_iter([("array", Arc::new(lists) as ArrayRef)]).map_err(wrong);
    };
    let columns = rows
        .columns()
        .into_iter()
        .map(|column| array(column.to_vec()));
    RecordBatch::try_from_iter(names.iter().zip(columns)).map_err(wrong)
}

impl Iterator for Stream<'_> {
    type Item = coremix::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.waiting.pop_front() {
                return Some(Ok(batch));
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.raised = Some(error);
                    return Some(Err(Error::Cancelled));
                }
            }
        }
    }
}
