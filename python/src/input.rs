//! Rows from Python as data of the core: views of the memory of arrays and tables, and scans of files.

use crate::arrow::Table;
use crate::asked::Asked;
use crate::csr::Csr;
use crate::fitted::{Model, Texts};
use crate::scan::{Ahead, Reading, Scan};
use crate::strided::{Array, Strided};
use crate::threads;
use crate::watch::watched;
use coremix::data::{Blocks, Data, Dense, Sketch, Source};
use coremix::ndarray::{Array2, ArrayView1, ArrayView2, s};
use coremix::{Cancel, Element, Error, Float, Result};
use coremix_files::{InMemory, Keys, drop_decoders};
use half::f16;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Rows of which values may be missing: NaN, or null in a table.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Missing {
    /// The rows.
    #[pyo3(get)]
    of: Py<PyAny>,
}

#[pymethods]
impl Missing {
    #[new]
    fn new(of: Py<PyAny>) -> Self {
        Self { of }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.of.bind(py).len()
    }
}

/// Rows that are only read as long as this lives.
pub(crate) struct Input<'py> {
    pub(crate) of: Given<'py>,
    /// Whether NaN in an array stands for a missing value. Tables and scans know it themselves.
    may_miss: bool,
}

/// An array, a table, or rows that are not in memory.
pub(crate) enum Given<'py> {
    Scan(Py<Scan>),
    Table(Py<Table>),
    Csr(Py<Csr>),
    Array(Array<'py>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input<'py> {
    type Error = PyErr;

    fn extract(x: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Self::read(&x, None)
    }
}

impl<'py> Given<'py> {
    /// The rows of x for a model: its columns, where both have names, and the codes of its texts.
    fn read(x: &Bound<'py, PyAny>, of: Option<&Model>, may_miss: bool) -> PyResult<Self> {
        if let Some(array) = Array::read(x) {
            return Ok(Self::Array(array));
        }
        let columns = of.and_then(|model| model.1.as_deref());
        let texts = of.map(|model| &model.2);
        // Lists, other numbers, frames and tables, and scans whose categories may be other ones.
        let read = x.py().import("coremix._input")?;
        let read = read.call_method1("rows_alone", (x, columns, may_miss, texts))?;
        if let Ok(scan) = read.cast::<Scan>() {
            return Self::scan(scan, columns);
        }
        let table = || read.extract().ok().map(Self::Table);
        let known = Array::read(&read).map(Self::Array).or_else(table);
        let known = known.or_else(|| read.extract().ok().map(Self::Csr));
        let rule = "X must be a table, or a matrix of float32, float64, float16, uint8 or int8";
        known.ok_or_else(|| PyTypeError::new_err(rule))
    }

    /// The rows of a scan, whose columns are these where both have names.
    fn scan(scan: &Bound<'_, Scan>, columns: Option<&[String]>) -> PyResult<Self> {
        let own = scan.get();
        own.unchanged()?;
        match (&own.names, columns) {
            (Some(names), Some(columns)) if names != columns => {
                Err(PyValueError::new_err(format!(
                    "the scan has the columns {names:?}, and the model was fitted to {columns:?}: name these, as \
                     coremix.scan(..., columns=[...])"
                )))
            }
            _ => Ok(Self::Scan(scan.clone().unbind())),
        }
    }
}

impl<'py> Input<'py> {
    /// The rows of x for a model: its columns, where both have names, and the codes of its texts.
    pub(crate) fn read(x: &Bound<'py, PyAny>, of: Option<&Model>) -> PyResult<Self> {
        let missing = x.cast::<Missing>().ok();
        let may_miss = missing.is_some();
        let rows = match missing {
            Some(missing) => missing.get().of.bind(x.py()),
            None => x,
        };
        Ok(Self {
            of: Given::read(rows, of, may_miss)?,
            may_miss,
        })
    }

    /// The names of the columns, where the rows have them.
    pub(crate) fn names(&self) -> Option<&[String]> {
        match &self.of {
            Given::Scan(scan) => scan.get().names.as_deref(),
            Given::Table(table) => table.get().names.as_deref(),
            _ => None,
        }
    }

    /// The texts of the columns that are categories.
    pub(crate) fn texts(&self) -> Texts {
        match &self.of {
            Given::Scan(scan) => scan.get().texts.clone(),
            Given::Table(table) => table.get().texts.clone(),
            _ => Texts::new(),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match &self.of {
            Given::Scan(scan) => scan.get().len(),
            _ => self.rows(&Cancel::default()).len(),
        }
    }

    /// The keys of a scan, from the first row on, and the names of their columns.
    pub(crate) fn keys(&self) -> Result<(Option<Keys>, &[String])> {
        match &self.of {
            Given::Scan(scan) => scan.get().keys(),
            _ => Ok((None, &[])),
        }
    }

    /// Whether the rows are those of this file.
    pub(crate) fn reads(&self, path: &Path) -> bool {
        matches!(&self.of, Given::Scan(scan) if scan.get().reads(path))
    }

    /// Whether fits are computed in `f64`.
    pub(crate) fn is_double(&self) -> bool {
        match &self.of {
            Given::Scan(scan) => scan.get().is_double(),
            Given::Table(table) => table.get().is_double(),
            Given::Csr(csr) => csr.get().is_double(),
            Given::Array(array) => matches!(array, Array::F64(_)),
        }
    }

    /// Does the work with the rows on this number of threads, without holding the interpreter: Ctrl-C sets the flag and ends it. An
    /// error of a file comes first.
    pub(crate) fn work<'x, T: Send>(
        &'x self,
        py: Python<'_>,
        cancel: &Cancel,
        threads: usize,
        work: impl FnOnce(&Rows<'x>) -> Result<T> + Send,
    ) -> PyResult<Result<T>> {
        self.watched(py, cancel, threads, || Ok(()), work)
    }

    /// [Work](Self::work) with something to do whenever signals are looked for.
    pub(crate) fn watched<'x, T: Send>(
        &'x self,
        py: Python<'_>,
        cancel: &Cancel,
        threads: usize,
        look: impl FnMut() -> PyResult<()>,
        work: impl FnOnce(&Rows<'x>) -> Result<T> + Send,
    ) -> PyResult<Result<T>> {
        // Chosen here: a callback that fits is on a thread of another pool.
        let rows = self.rows(cancel);
        let pool = threads::pool(threads)?;
        let done = watched(py, cancel, look, || pool.install(|| work(&rows)));
        if rows.reading().is_some() {
            // The limit of memory is one for all calls together, and the next one begins at the first row.
            drop_decoders();
            py.import("coremix._input")?.call_method0("release")?;
        }
        let done = done?;
        if let (Some(reading), Err(_)) = (rows.reading(), &done)
            && let Some(fault) = reading.fault()
        {
            return Err(fault);
        }
        if let Given::Scan(scan) = &self.of {
            scan.get().unchanged()?;
        }
        Ok(done)
    }

    /// The rows for the threads of a fit, until the flag is set.
    pub(crate) fn rows(&self, cancel: &Cancel) -> Rows<'_> {
        let of = match &self.of {
            Given::Scan(scan) => {
                let scan = scan.get();
                Of::Scan(Arc::new(scan.reading(cancel)), 0..scan.len())
            }
            Given::Table(table) => {
                let table = table.get();
                Of::Table(table, 0..table.len())
            }
            Given::Csr(csr) => {
                let csr = csr.get();
                Of::Csr(csr, 0..csr.len())
            }
            Given::Array(Array::F32(array)) => Of::F32(array.as_array()),
            Given::Array(Array::F64(array)) => Of::F64(array.as_array()),
            Given::Array(Array::U8(array)) => Of::U8(array.as_array()),
            Given::Array(Array::I8(array)) => Of::I8(array.as_array()),
            Given::Array(Array::F16(array)) => Of::F16(array.as_array()),
        };
        Rows {
            of,
            may_miss: self.may_miss,
        }
    }
}

/// Weights, if there are any.
pub(crate) type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;

/// `Ok` if there are as many weights as rows.
pub(crate) fn weights_of_rows(weights: usize, rows: usize) -> std::result::Result<(), String> {
    if weights == rows {
        Ok(())
    } else {
        Err(format!("{weights} weights for {rows} rows: give each one"))
    }
}

/// Rows for the threads of a fit.
#[derive(Clone)]
pub(crate) struct Rows<'a> {
    of: Of<'a>,
    /// Whether NaN in an array stands for a missing value.
    may_miss: bool,
}

/// Rows by the type of their numbers.
#[derive(Clone)]
enum Of<'a> {
    Scan(Arc<Reading>, Range<usize>),
    Table(&'a Table, Range<usize>),
    Csr(&'a Csr, Range<usize>),
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

    /// Rows of a scan that are of this type, read into memory.
    fn loaded<'a>(
        reading: &Reading,
        weights: Option<ArrayView1<'a, f64>>,
    ) -> Option<Result<Known<'a, Self>>>;

    /// All others. Numbers that are wider are rounded.
    fn read<'a>(rows: &Rows<'a>) -> Read<'a, Self>;
}

fn dense<'a, T: Element>(
    view: ArrayView2<'a, T>,
    weights: Option<ArrayView1<'a, f64>>,
    may_miss: bool,
) -> Option<Result<Known<'a, T::Float>>> {
    view.to_slice()?;
    let data = match (weights, may_miss && !view.is_empty()) {
        (Some(weights), true) => Dense::weighted_with_missing(view, weights),
        (Some(weights), false) => Dense::weighted(view, weights),
        (None, true) => Dense::with_missing(view),
        (None, false) => Dense::batch(view),
    };
    Some(data.map(|data| Box::new(data) as Known<'a, T::Float>))
}

/// The rows of a scan in memory, as they are stored.
fn load<'a, T: Element>(
    reading: &Reading,
    rows: &impl Source<Element = T>,
    weights: Option<ArrayView1<'_, f64>>,
) -> Result<Known<'a, T::Float>> {
    let (n, dim) = reading.shape();
    let mut values = vec![T::default(); n * dim];
    for (piece, out) in values.chunks_mut(BLOCK * dim.max(1)).enumerate() {
        let read = reading.read(rows, piece * BLOCK, out);
        read.map_err(|error| unread("scan", &error))?;
    }
    let values = Array2::from_shape_vec((n, dim), values).expect("n x d numbers");
    owned(
        values,
        weights.map(|weights| weights.to_vec()),
        rows.may_miss(),
    )
}

/// Rows that were made.
pub(crate) fn owned<'a, T: Element>(
    values: Array2<T>,
    weights: Option<Vec<f64>>,
    may_miss: bool,
) -> Result<Known<'a, T::Float>> {
    Ok(match (weights, may_miss) {
        (Some(weights), true) => Box::new(Blocks::weighted(InMemory(values), weights)?),
        (None, true) => Box::new(Blocks::new(InMemory(values))?),
        (weights, false) => Box::new(Dense::owned(values, weights)?),
    })
}

/// Rows that could not be read.
fn unread(stage: &'static str, error: &std::io::Error) -> Error {
    let what = error.to_string();
    Error::Stage { stage, what }
}

/// Rows that are read at a time.
const BLOCK: usize = 4096;

/// Numbers of sparse rows, with their zeros, that are there at a time.
const NUMBERS: usize = 1 << 24;

macro_rules! number {
    ($t:ty, $($own:ident)|+, of files $($ahead:ident)|+, $from_f64:expr) => {
        impl Number for $t {
            fn borrowed<'a>(
                rows: &Rows<'a>,
                weights: Option<ArrayView1<'a, f64>>,
            ) -> Option<Result<Known<'a, Self>>> {
                match rows.of {
                    Of::Csr(csr, ref range) if !range.is_empty() => {
                        let data = csr.data(range, weights);
                        Some(data.map(|data| Box::new(data) as Known<'a, Self>))
                    }
                    $(Of::$own(view) => dense(view, weights, rows.may_miss),)+
                    _ => None,
                }
            }

            fn loaded<'a>(
                reading: &Reading,
                weights: Option<ArrayView1<'a, f64>>,
            ) -> Option<Result<Known<'a, Self>>> {
                match &reading.ahead {
                    $(Ahead::$ahead(rows) => Some(load(reading, rows, weights)),)+
                    #[allow(unreachable_patterns, reason = "f32 and f64 have other types")]
                    _ => None,
                }
            }

            fn read<'a>(rows: &Rows<'a>) -> Read<'a, Self> {
                let may_miss = rows.may_miss;
                match &rows.of {
                    Of::Scan(reading, range) => Box::new(reading.source::<$t>(range.clone())),
                    Of::Table(table, range) => Box::new(table.source::<$t>(range.clone())),
                    Of::Csr(csr, range) => Box::new(csr.source::<$t>(range.clone())),
                    Of::F32(view) => Box::new(Strided::new(*view, may_miss, |x| x.into())),
                    Of::F64(view) => Box::new(Strided::new(*view, may_miss, $from_f64)),
                    Of::U8(view) => Box::new(Strided::new(*view, may_miss, |x| x.into())),
                    Of::I8(view) => Box::new(Strided::new(*view, may_miss, |x| x.into())),
                    Of::F16(view) => Box::new(Strided::new(*view, may_miss, |x| x.into())),
                }
            }
        }
    };
}
number!(f32, F32 | U8 | I8 | F16, of files F32 | U8 | I8 | F16, |x| x as f32);
number!(f64, F64, of files F64, |x| x);

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

    /// These rows in memory, if they are those of a scan.
    pub(crate) fn loaded<F: Number>(
        &self,
        weights: Option<ArrayView1<'a, f64>>,
    ) -> Result<Known<'a, F>> {
        let loaded = self.reading();
        let loaded = loaded.and_then(|reading| F::loaded(reading, weights));
        loaded.unwrap_or_else(|| self.data(weights))
    }

    /// The data to ask a model about: those of a scan are read once, unless values may be missing.
    pub(crate) fn asked<F: Number>(
        &self,
        weights: Option<ArrayView1<'a, f64>>,
    ) -> Result<Known<'a, F>> {
        let source = F::read(self);
        if self.reading().is_some() && !source.may_miss() {
            let weights = weights.map(|weights| weights.to_vec());
            Ok(Box::new(Asked::new(source, weights)))
        } else {
            self.data(weights)
        }
    }

    /// All of them as an array (n, d).
    pub(crate) fn values<F: Number>(&self) -> Result<Array2<F>> {
        let source = F::read(self);
        let mut values = Array2::default((source.len(), source.dim()));
        let out = values.as_slice_mut().expect("rows in order");
        let read = source.read(0, out);
        read.map_err(|error| unread(source.name(), &error))?;
        Ok(values)
    }

    /// The reader, if they are the rows of a scan.
    pub(crate) fn reading(&self) -> Option<&Arc<Reading>> {
        match &self.of {
            Of::Scan(reading, _) => Some(reading),
            _ => None,
        }
    }

    /// Goes through the rows in order, a block at a time, with their weights. [`Error::Cancelled`] if the flag is set meanwhile.
    pub(crate) fn each_block<F: Number>(
        &self,
        weights: Option<ArrayView1<'_, f64>>,
        cancel: &Cancel,
        mut see: impl FnMut(ArrayView2<'_, F>, Option<ArrayView1<'_, f64>>) -> Result<()>,
    ) -> Result<()> {
        let source = F::read(self);
        let n = source.len();
        let dim = source.dim();
        let mut values = Vec::new();
        // Zeros of sparse rows may be many.
        let block = match self.stored() {
            Some(_) => (NUMBERS / dim.max(1)).clamp(1, BLOCK),
            None => BLOCK,
        };
        for first in (0..n).step_by(block) {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let rows = first..n.min(first + block);
            values.resize(rows.len() * dim, F::default());
            let read = source.read(first, &mut values);
            read.map_err(|error| unread(source.name(), &error))?;
            let block = ArrayView2::from_shape((rows.len(), dim), &values).expect("n x d numbers");
            see(
                block,
                weights.as_ref().map(|weights| weights.slice(s![rows])),
            )?;
        }
        Ok(())
    }

    /// Some of the rows.
    pub(crate) fn part(&self, range: &Range<usize>) -> Rows<'a> {
        let first = range.start;
        let last = range.end;
        let chosen = s![first..last, ..];
        let of = match &self.of {
            Of::Scan(reading, all) => {
                Of::Scan(Arc::clone(reading), all.start + first..all.start + last)
            }
            Of::Table(table, all) => Of::Table(table, all.start + first..all.start + last),
            Of::Csr(csr, all) => Of::Csr(csr, all.start + first..all.start + last),
            Of::F32(view) => Of::F32(view.slice_move(chosen)),
            Of::F64(view) => Of::F64(view.slice_move(chosen)),
            Of::U8(view) => Of::U8(view.slice_move(chosen)),
            Of::I8(view) => Of::I8(view.slice_move(chosen)),
            Of::F16(view) => Of::F16(view.slice_move(chosen)),
        };
        Rows {
            of,
            may_miss: self.may_miss,
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match &self.of {
            Of::Scan(_, all) | Of::Table(_, all) | Of::Csr(_, all) => all.len(),
            Of::F32(view) => view.nrows(),
            Of::F64(view) => view.nrows(),
            Of::U8(view) => view.nrows(),
            Of::I8(view) => view.nrows(),
            Of::F16(view) => view.nrows(),
        }
    }

    /// Number of the values that sparse rows store.
    pub(crate) fn stored(&self) -> Option<usize> {
        match &self.of {
            Of::Csr(csr, _) => Some(csr.stored()),
            _ => None,
        }
    }

    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        let columns = match &self.of {
            Of::Scan(reading, _) => reading.shape().1,
            Of::Table(table, _) => table.columns(),
            Of::Csr(csr, _) => csr.columns(),
            Of::F32(view) => view.ncols(),
            Of::F64(view) => view.ncols(),
            Of::U8(view) => view.ncols(),
            Of::I8(view) => view.ncols(),
            Of::F16(view) => view.ncols(),
        };
        (self.len(), columns)
    }

    /// Whether nothing is known of them, not even how many columns there are: lists of any length, of which there are none.
    pub(crate) fn are_unknown(&self) -> bool {
        match &self.of {
            Of::Table(table, _) => table.columns() == 0,
            Of::Scan(reading, _) => reading.shape() == (0, 0),
            _ => false,
        }
    }

    /// A [sketch](coremix_files::sketch()) of the rows. [`Error::Cancelled`] if the flag is set meanwhile.
    pub(crate) fn sketch<F: Number>(
        &self,
        weights: Option<ArrayView1<'a, f64>>,
        sketch: (usize, u64),
        cancel: &Cancel,
    ) -> Result<Sketch<F>> {
        let source = F::read(self);
        let weights = weights.map(|weights| weights.to_vec());
        let made = coremix_files::sketch(&source, weights.as_deref(), sketch, cancel);
        made.map_err(|error| match error {
            Error::NotFinite { .. } if source.may_miss() => needs_all(),
            error => error,
        })
    }

    /// Whether fits are computed in `f64`.
    pub(crate) fn is_double(&self) -> bool {
        match &self.of {
            Of::F64(_) => true,
            Of::Scan(reading, _) => reading.is_double(),
            Of::Table(table, _) => table.is_double(),
            Of::Csr(csr, _) => csr.is_double(),
            _ => false,
        }
    }
}

/// An error where a value is missing, for what needs all of them.
pub(crate) fn whole<F: Float>(rows: ArrayView2<'_, F>) -> Result<()> {
    if rows.iter().any(|x| x.to_f64().is_nan()) {
        Err(needs_all())
    } else {
        Ok(())
    }
}

/// The error of what takes no missing values.
pub(crate) fn needs_all() -> Error {
    Error::Parameter {
        name: "allow_missing",
        value: "True".into(),
        rule: "directions, sketches and sums of partitions take no missing values; coremix.sample(..., allow_missing=True) keeps them in a coreset, and other estimators take them",
    }
}
