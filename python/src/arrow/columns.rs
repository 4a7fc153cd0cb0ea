//! Arrow arrays as numbers.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use coremix::Float;

/// The largest integer up to which all are numbers of type `f64`.
const EXACT: u64 = 1 << 53;

/// Whether arrays of this type hold numbers, and whether these need `f64`.
pub(super) fn needs_double(kind: &DataType) -> Option<bool> {
    use DataType::*;
    match kind {
        Int8 | UInt8 | Int16 | UInt16 | Float16 | Float32 => Some(false),
        Int32 | UInt32 | Int64 | UInt64 | Float64 => Some(true),
        // Nothing but nulls.
        Null => Some(false),
        _ => None,
    }
}

/// A null, in words.
pub(super) const NULL: &str = "is null";

/// The first row with a null, unless values may be missing, or with an integer that is no number of type `f64`, and what it is.
pub(super) fn fault(array: &dyn Array, may_miss: bool) -> Option<(usize, &'static str)> {
    if let (Some(nulls), false) = (array.logical_nulls(), may_miss)
        && nulls.null_count() > 0
    {
        return Some(((0..nulls.len()).find(|row| nulls.is_null(*row))?, NULL));
    }
    let row = match array.data_type() {
        DataType::Int64 => {
            let mut values = array.as_primitive::<Int64Type>().iter();
            values.position(|x| x.is_some_and(|x| x.unsigned_abs() > EXACT))
        }
        DataType::UInt64 => {
            let mut values = array.as_primitive::<UInt64Type>().iter();
            values.position(|x| x.is_some_and(|x| x > EXACT))
        }
        _ => None,
    };
    row.map(|row| (row, "is an integer beyond 2^53"))
}

/// The numbers from place `first` on, to every `stride`-th place of `out`.
pub(super) fn fill<F: Float>(array: &ArrayRef, first: usize, out: &mut [F], stride: usize) {
    fill_values(array, first, out, stride);
    // Numbers under a null are no values.
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        let places = (first..array.len()).zip(out.iter_mut().step_by(stride));
        let places = places.filter(|(row, _)| nulls.is_null(*row));
        places.for_each(|(_, out)| *out = F::from_f64(f64::NAN));
    }
}

fn fill_values<F: Float>(array: &ArrayRef, first: usize, out: &mut [F], stride: usize) {
    fn put<P: ArrowPrimitiveType, F>(
        array: &ArrayRef,
        first: usize,
        (out, stride): (&mut [F], usize),
        number: impl Fn(P::Native) -> F,
    ) {
        let values = &array.as_primitive::<P>().values()[first..];
        for (out, x) in out.iter_mut().step_by(stride).zip(values) {
            *out = number(*x);
        }
    }
    let to = (out, stride);
    match array.data_type() {
        DataType::Int8 => put::<Int8Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::UInt8 => put::<UInt8Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::Int16 => put::<Int16Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::UInt16 => put::<UInt16Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::Int32 => put::<Int32Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::UInt32 => put::<UInt32Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::Int64 => put::<Int64Type, F>(array, first, to, |x| F::from_f64(x as f64)),
        DataType::UInt64 => put::<UInt64Type, F>(array, first, to, |x| F::from_f64(x as f64)),
        DataType::Float16 => put::<Float16Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::Float32 => put::<Float32Type, F>(array, first, to, |x| F::from_f64(x.into())),
        DataType::Float64 => put::<Float64Type, F>(array, first, to, F::from_f64),
        // Other types are refused when the table is made; NaN is an error of the fit.
        _ => to.0.fill(F::from_f64(f64::NAN)),
    }
}
