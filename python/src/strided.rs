//! Rows of arrays in any memory order and number type, read without copying the array.

use coremix::Element;
use coremix::data::Source;
use coremix::ndarray::{ArrayView2, s};
use half::f16;
use numpy::{PyReadonlyArray2, PyUntypedArray};
use pyo3::prelude::*;
use std::io;

/// An array by its number type.
pub(crate) enum Array<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
    U8(PyReadonlyArray2<'py, u8>),
    I8(PyReadonlyArray2<'py, i8>),
    F16(PyReadonlyArray2<'py, f16>),
}

impl<'py> Array<'py> {
    /// An array that is read as it is. Numbers under the mask of a masked array are no values.
    pub(crate) fn read(x: &Bound<'py, PyAny>) -> Option<Self> {
        if !x.is_exact_instance_of::<PyUntypedArray>() && x.hasattr("mask").unwrap_or(true) {
            return None;
        }
        let array = x.extract().ok().map(Self::F32);
        array
            .or_else(|| x.extract().ok().map(Self::F64))
            .or_else(|| x.extract().ok().map(Self::U8))
            .or_else(|| x.extract().ok().map(Self::I8))
            .or_else(|| x.extract().ok().map(Self::F16))
    }
}

/// Rows that are read through a view, and turned into numbers of another type.
pub(crate) struct Strided<'a, S, T> {
    view: ArrayView2<'a, S>,
    may_miss: bool,
    number: fn(S) -> T,
}

impl<'a, S, T> Strided<'a, S, T> {
    /// Rows of a view; whether NaN stands for a missing value.
    pub(crate) fn new(view: ArrayView2<'a, S>, may_miss: bool, number: fn(S) -> T) -> Self {
        Self {
            view,
            may_miss,
            number,
        }
    }
}

impl<S: Copy + Sync, T: Element> Source for Strided<'_, S, T> {
    type Element = T;

    fn name(&self) -> &'static str {
        "array"
    }

    fn len(&self) -> usize {
        self.view.nrows()
    }

    fn dim(&self) -> usize {
        self.view.ncols()
    }

    fn may_miss(&self) -> bool {
        self.may_miss
    }

    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        let dim = self.view.ncols();
        let rows = self.view.slice(s![first..first + out.len() / dim, ..]);
        // In the order of the memory that is read: a column of a block at a time in Fortran order.
        if rows.strides()[0].unsigned_abs() < rows.strides()[1].unsigned_abs() {
            for (j, column) in rows.columns().into_iter().enumerate() {
                for (out, x) in out[j..].iter_mut().step_by(dim).zip(column) {
                    *out = (self.number)(*x);
                }
            }
        } else {
            for (out, row) in out.chunks_exact_mut(dim).zip(rows.rows()) {
                for (out, x) in out.iter_mut().zip(row) {
                    *out = (self.number)(*x);
                }
            }
        }
        Ok(())
    }
}
