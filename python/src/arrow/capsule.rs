//! Batches from the capsules of the Arrow C data interface, and columns to them: the only file with unsafe code.
#![allow(unsafe_code)]

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, StructArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};
use std::ffi::{CStr, c_char};
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

pub(super) fn wrong(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("Arrow: {error}"))
}

fn gone() -> PyErr {
    let rule = "Arrow: these rows were read before: give the table or the batch itself";
    PyValueError::new_err(rule)
}

/// Moves the struct out of a capsule of this name, and leaves an empty one behind, which the capsule's destructor accepts.
///
/// Without the GIL two threads may have the same capsule: its lock lets one of them have the struct.
fn moved<T>(capsule: &Bound<'_, PyAny>, name: &CStr, empty: T) -> PyResult<T> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
    let pointer = pointer.as_ptr().cast::<T>();
    // SAFETY: a capsule of this name holds a valid struct of this type (Arrow PyCapsule interface), and the capsule is borrowed.
    Ok(with_critical_section(capsule, || unsafe {
        pointer.replace(empty)
    }))
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
    let stream = moved(
        &capsule,
        c"arrow_array_stream",
        FFI_ArrowArrayStream::empty(),
    )?;
    if stream.release.is_none() {
        return Err(gone());
    }
    ArrowArrayStreamReader::try_new(stream).map_err(|error| {
        let what = error.to_string();
        PyValueError::new_err(if what.contains("not supported") {
            format!("X has a column of another type than Arrow has ({what}): cast it")
        } else {
            "X is a column: give a frame or a table that has it, as frame[[name]]".into()
        })
    })
}

fn batch(of: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    let pair = of.call_method0("__arrow_c_array__")?;
    let pair = pair.cast::<PyTuple>()?;
    let schema = pair.get_item(0)?;
    let array = pair.get_item(1)?;
    let schema = moved(&schema, c"arrow_schema", FFI_ArrowSchema::empty())?;
    let array = moved(&array, c"arrow_array", FFI_ArrowArray::empty())?;
    // SAFETY: the first field of the struct is the pointer to its format (Arrow C data interface).
    let format = unsafe { (&raw const schema).cast::<*const c_char>().read() };
    if array.is_released() || format.is_null() {
        return Err(gone());
    }
    // SAFETY: an array and its schema, neither of them released.
    let data = unsafe { from_ffi(array, &schema) }.map_err(wrong)?;
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
