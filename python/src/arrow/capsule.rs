//! Batches from the capsules of the Arrow C data interface: the only file with unsafe code.
#![allow(unsafe_code)]

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};
use std::ffi::CStr;

/// The schema and all batches of a table, a stream of batches, or a batch.
pub(crate) fn batches(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    if of.hasattr("__arrow_c_stream__")? {
        return stream(of);
    }
    if of.hasattr("__arrow_c_array__")? {
        return array(of);
    }
    let rule = "not an Arrow table: it has neither __arrow_c_stream__ nor __arrow_c_array__";
    Err(PyTypeError::new_err(format!("{}: {rule}", of.get_type())))
}

fn wrong(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("Arrow: {error}"))
}

/// The pointer in a capsule of this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn stream(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    let reader = reader(of)?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    Ok((schema.as_ref().clone(), batches))
}

/// Reads the batches of a stream, one after the other.
pub(crate) fn reader(of: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = of.call_method0("__arrow_c_stream__")?;
    let pointer: *mut FFI_ArrowArrayStream = pointer(&capsule, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name holds a valid stream (Arrow PyCapsule interface). Reading moves the stream out and
    // leaves a released one behind, which the capsule's destructor accepts; the capsule lives until then.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer) };
    reader.map_err(|_| {
        PyValueError::new_err(
            "X is a column: give a frame or a table that has it, as frame[[name]]",
        )
    })
}

fn array(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    let pair = of.call_method0("__arrow_c_array__")?;
    let pair = pair.cast::<PyTuple>()?;
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let schema: *mut FFI_ArrowSchema = pointer(&schema, c"arrow_schema")?;
    let array: *mut FFI_ArrowArray = pointer(&array, c"arrow_array")?;
    // SAFETY: capsules of these names hold a valid schema and an array of that schema. Both are moved out, which leaves
    // released ones behind for the destructors; the capsules live until then.
    let data = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema);
        from_ffi(FFI_ArrowArray::from_raw(array), &schema)
    };
    let data = data.map_err(wrong)?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        let rule = "an Arrow array of numbers has no columns: give a record batch or a table";
        return Err(PyTypeError::new_err(rule));
    }
    let rows = StructArray::from(data);
    if rows.null_count() > 0 {
        let rule = "Arrow: a row is null; every row must have values";
        return Err(PyValueError::new_err(rule));
    }
    let batch = RecordBatch::from(rows);
    Ok((batch.schema().as_ref().clone(), vec![batch]))
}
