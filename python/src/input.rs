//! Arrays as data of the core: views of their memory.

use crate::arrow::Table;
use crate::strided::Strided;
use coremix::data::{Blocks, Data, Dense, Sketch, Source};
use coremix::ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};
use coremix::{Cancel, Element, Error, Float, Result};
use half::f16;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::ops::Range;

/// An array that is only read as long as this lives, by its number type, or a table.
pub(crate) enum Input<'py> {
    Table(Py<Table>),
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
    U8(PyReadonlyArray2<'py, u8>),
    I8(PyReadonlyArray2<'py, i8>),
    F16(PyReadonlyArray2<'py, f16>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input<'py> {
    type Error = PyErr;

    fn extract(x: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Self::read(&x, None)
    }
}

impl<'py> Input<'py> {
    /// The rows of x: the columns of these names, where both have names.
    pub(crate) fn read(x: &Bound<'py, PyAny>, columns: Option<&[String]>) -> PyResult<Self> {
        if let Some(array) = Self::array(x) {
            return Ok(array);
        }
        // Lists, other numbers, frames and tables.
        let read = x.py().import("coremix._input")?;
        let read = read.call_method1("rows_alone", (x, columns))?;
        let known = Self::array(&read).or_else(|| read.extract().ok().map(Self::Table));
        let rule = "X must be a table, or a matrix of float32, float64, float16, uint8 or int8";
        known.ok_or_else(|| PyTypeError::new_err(rule))
    }

    /// The names of the columns, where the rows have them.
    pub(crate) fn names(&self) -> Option<&[String]> {
        match self {
            Self::Table(table) => table.get().names.as_deref(),
            _ => None,
        }
    }

    /// An array that is read as it is. What lies under the mask of a masked array is no value.
    fn array(x: &Bound<'py, PyAny>) -> Option<Self> {
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

    /// What the threads of a fit read.
    pub(crate) fn rows(&self) -> Rows<'_> {
        match self {
            Self::Table(table) => {
                let table = table.get();
                Rows::Table(table, 0..table.len())
            }
            Self::F32(array) => Rows::F32(array.as_array()),
            Self::F64(array) => Rows::F64(array.as_array()),
            Self::U8(array) => Rows::U8(array.as_array()),
            Self::I8(array) => Rows::I8(array.as_array()),
            Self::F16(array) => Rows::F16(array.as_array()),
        }
    }
}

/// Weights, if there are any.
pub(crate) type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;

/// `Ok` if there are as many weights as rows.
pub(crate) fn weights_of_rows(weights: usize, rows: usize) -> std::result::Result<(), String> {
    match weights == rows {
        true => Ok(()),
        false => Err(format!("{weights} weights for {rows} rows: give each one")),
    }
}

/// Rows by the type of their numbers.
#[derive(Clone)]
pub(crate) enum Rows<'a> {
    Table(&'a Table, Range<usize>),
    F32(ArrayView2<'a, f32>),
    F64(ArrayView2<'a, f64>),
    U8(ArrayView2<'a, u8>),
    I8(ArrayView2<'a, i8>),
    F16(ArrayView2<'a, f16>),
}

/// Rows that are read when they are asked for.
pub(crate) type Read<'a, F> = Box<dyn Source<Element = F> + 'a>;

/// Data that models of this number type know.
pub(crate) type Known<'a, F> = Box<dyn Data<F> + 'a>;

/// `f32` or `f64`, as what rows of any type are read as.
pub(crate) trait Number: Float + Element<Float = Self> {
    /// Rows that the core can borrow as they are.
    fn borrowed<'a>(
        rows: &Rows<'a>,
        weights: Option<ArrayView1<'a, f64>>,
    ) -> Option<Result<Known<'a, Self>>>;

    /// All others. Numbers that are wider are rounded.
    fn read<'a>(rows: &Rows<'a>) -> Read<'a, Self>;
}

fn dense<'a, T: Element>(
    view: ArrayView2<'a, T>,
    weights: Option<ArrayView1<'a, f64>>,
) -> Option<Result<Known<'a, T::Float>>> {
    view.to_slice()?;
    let data = match weights {
        Some(weights) => Dense::weighted(view, weights),
        None => Dense::batch(view),
    };
    Some(data.map(|data| Box::new(data) as Known<'a, T::Float>))
}

macro_rules! number {
    ($t:ty, $($own:ident)|+, $from_f64:expr) => {
        impl Number for $t {
            fn borrowed<'a>(
                rows: &Rows<'a>,
                weights: Option<ArrayView1<'a, f64>>,
            ) -> Option<Result<Known<'a, Self>>> {
                match rows {
                    $(Rows::$own(view) => dense(*view, weights),)+
                    _ => None,
                }
            }

            fn read<'a>(rows: &Rows<'a>) -> Read<'a, Self> {
                match rows {
                    Rows::Table(table, range) => Box::new(table.source::<$t>(range.clone())),
                    Rows::F32(view) => Box::new(Strided::new(*view, |x| x.into())),
                    Rows::F64(view) => Box::new(Strided::new(*view, $from_f64)),
                    Rows::U8(view) => Box::new(Strided::new(*view, |x| x.into())),
                    Rows::I8(view) => Box::new(Strided::new(*view, |x| x.into())),
                    Rows::F16(view) => Box::new(Strided::new(*view, |x| x.into())),
                }
            }
        }
    };
}
number!(f32, F32 | U8, |x| x as f32);
number!(f64, F64, |x| x);

impl<'a> Rows<'a> {
    /// The data for models of this number type.
    pub(crate) fn data<F: Number>(
        &self,
        weights: Option<ArrayView1<'a, f64>>,
    ) -> Result<Known<'a, F>> {
        if let Some(data) = F::borrowed(self, weights) {
            return data;
        }
        let source = F::read(self);
        if source.is_empty() {
            // Without rows a model has empty answers.
            let none = ArrayView2::from_shape((0, source.dim()), &[]).expect("no numbers");
            return Ok(Box::new(Dense::<F>::batch(none)?));
        }
        Ok(match weights {
            Some(weights) => Box::new(Blocks::weighted(source, weights.to_vec())?),
            None => Box::new(Blocks::new(source)?),
        })
    }

    /// Some of the rows.
    pub(crate) fn part(&self, range: &Range<usize>) -> Rows<'a> {
        let (first, last) = (range.start, range.end);
        let chosen = s![first..last, ..];
        match self {
            Self::Table(table, all) => Rows::Table(table, all.start + first..all.start + last),
            Self::F32(view) => Rows::F32(view.slice_move(chosen)),
            Self::F64(view) => Rows::F64(view.slice_move(chosen)),
            Self::U8(view) => Rows::U8(view.slice_move(chosen)),
            Self::I8(view) => Rows::I8(view.slice_move(chosen)),
            Self::F16(view) => Rows::F16(view.slice_move(chosen)),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Table(_, all) => all.len(),
            Self::F32(view) => view.nrows(),
            Self::F64(view) => view.nrows(),
            Self::U8(view) => view.nrows(),
            Self::I8(view) => view.nrows(),
            Self::F16(view) => view.nrows(),
        }
    }

    /// Whether nothing is known of them, not even how many columns there are: lists of any length, of which there are none.
    pub(crate) fn are_unknown(&self) -> bool {
        matches!(self, Self::Table(table, _) if table.columns() == 0)
    }

    /// A sketch of the rows: `q` coordinates of each. [`Error::Cancelled`] if the flag is set meanwhile.
    pub(crate) fn sketch<F: Number>(
        &self,
        weights: Option<ArrayView1<'a, f64>>,
        (q, seed): (usize, u64),
        cancel: &Cancel,
    ) -> Result<Sketch<F>> {
        /// Rows that are read at a time.
        const BLOCK: usize = 4096;
        let source = F::read(self);
        let (n, dim) = (source.len(), source.dim());
        let mut builder = Sketch::builder(dim, q, seed);
        let ones = Array1::ones(BLOCK);
        for first in (0..n).step_by(BLOCK) {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let rows = first..n.min(first + BLOCK);
            let mut block = Array2::<F>::default((rows.len(), dim));
            if let Some(out) = block.as_slice_mut() {
                source.read(first, out).map_err(|error| Error::Stage {
                    stage: source.name(),
                    what: error.to_string(),
                })?;
            }
            match weights {
                Some(weights) => builder.push_weighted(block.view(), weights.slice(s![rows]))?,
                None => builder.push_weighted(block.view(), ones.slice(s![..rows.len()]))?,
            }
        }
        builder.finish()
    }

    /// Whether fits are computed in `f64`.
    pub(crate) fn is_double(&self) -> bool {
        match self {
            Self::F64(_) => true,
            Self::Table(table, _) => table.is_double(),
            _ => false,
        }
    }
}
