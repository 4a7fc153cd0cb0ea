//! Batches from the capsules of the Arrow C data interface, and columns to them: the only file with unsafe code.
#![allow(unsafe_code)]

use super::out::wrong;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, StructArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

/// The schema and all batches of a table, a stream of batches, or a batch.
pub(crate) fn batches(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    if of.hasattr("__arrow_c_stream__")? {
        return stream(of);
    }
    if of.hasattr("__arrow_c_array__")? {
        return batch(of);
    }
    let rule = "not an Arrow table: it has neither __arrow_c_stream__ nor __arrow_c_array__";
    Err(PyTypeError::new_err(format!("{}: {rule}", of.get_type())))
}

/// The pointer in a capsule of this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn stream(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    let capsule = of.call_method0("__arrow_c_stream__")?;
    let pointer: *mut FFI_ArrowArrayStream = pointer(&capsule, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name holds a valid stream (Arrow PyCapsule interface). Reading moves the stream out and
    // leaves a released one behind, which the capsule's destructor accepts; the capsule lives until then.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer) };
    let reader = reader.map_err(|_| {
        PyValueError::new_err(
            "X is a column: give a frame or a table that has it, as frame[[name]]",
        )
    })?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    Ok((schema.as_ref().clone(), batches))
}

fn batch(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
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

/// The numbers of an array that lie one after the other, as a column: the array lives as long.
pub(super) fn column<T: ArrowPrimitiveType>(
    x: &Bound<'_, PyArray1<T::Native>>,
) -> PyResult<ArrayRef>
where
    T::Native: Element,
{
    let numbers = x.try_readonly()?;
    let numbers = numbers.as_slice()?;
    let place = NonNull::from(numbers).cast();
    let owner = Arc::new(AssertUnwindSafe(x.clone().into_any().unbind()));
    // SAFETY: the numbers lie at this place as long as the array lives, which the buffer owns. NumPy neither moves nor frees
    // what an array that others refer to has.
    let buffer =
        unsafe { Buffer::from_custom_allocation(place, std::mem::size_of_val(numbers), owner) };
    let values = ScalarBuffer::new(buffer, 0, numbers.len());
    Ok(Arc::new(PrimitiveArray::<T>::new(values, None)))
}

/// A schema in a capsule, which releases it.
pub(super) fn schema<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(field).map_err(wrong)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// An array in a capsule, which releases it.
pub(super) fn array<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyCapsule>> {
    let array = FFI_ArrowArray::new(&array.to_data());
    PyCapsule::new_with_value(py, array, c"arrow_array")
}
