//! Rows that are not in memory: of files, or of batches that were written to one.

use crate::arrow::Stream;
use crate::bytes::bytes_of;
use crate::csr::Csr;
use crate::errors::{raise, unread};
use crate::fitted::Texts;
use crate::watch::interruptible;
use coremix::data::Source;
use coremix::{Cancel, Element, Float};
use coremix_files::{
    AnySource, Batches, Bytes, ElementType, Format, KeyColumns, Keys, Missing, Opened, Options,
    ReadAhead, Rows, open, open_all,
};
use half::f16;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// The result of `coremix.scan`: rows of files, which are read block by block, or of batches that were written to a temporary
/// file. It can be given wherever an array can.
#[pyclass(frozen, module = "coremix._coremix")]
pub(crate) struct Scan {
    rows: Shared,
    /// The names of the columns, if each has one.
    pub(crate) names: Option<Vec<String>>,
    /// The texts of the columns that are categories, in the order of their codes.
    pub(crate) texts: Texts,
    weights: Option<Py<PyArray1<f64>>>,
    keys: KeyColumns,
    files: Vec<(PathBuf, Stamp)>,
    not_used: Vec<(String, String)>,
    /// Rows that were left out, and the values that are missing in the others, and the rows with some.
    dropped: usize,
    missing: (usize, usize),
    chosen: Chosen,
    /// The most that fits may take, unless an estimator says it.
    pub(crate) memory: Bytes,
    /// Bytes that a decoder takes.
    decoder: u64,
    /// A function of Python that makes it again.
    again: Py<PyAny>,
}

/// Makes a list of the element types that files have, and does something with rows of any of them.
macro_rules! of_elements {
    ($($kind:ident: $t:ty),+) => {
        /// Rows of the element type that the files have.
        enum Shared {
            $($kind(Arc<Rows<$t>>),)+
        }

        impl Shared {
            fn of(rows: AnySource) -> PyResult<Self> {
                match rows {
                    $(AnySource::$kind(rows) => Ok(Self::$kind(Arc::new(rows))),)+
                    _ => Err(PyTypeError::new_err("numbers of an unknown type")),
                }
            }

            fn element(&self) -> ElementType {
                match self {
                    $(Self::$kind(_) => ElementType::$kind,)+
                }
            }

            /// Rows and columns.
            fn shape(&self) -> (usize, usize) {
                match self {
                    $(Self::$kind(rows) => (rows.len(), rows.dim()),)+
                }
            }

            fn ahead(&self) -> Ahead {
                match self {
                    $(Self::$kind(rows) => Ahead::$kind(ReadAhead::new(Arc::clone(rows))),)+
                }
            }
        }

        /// Rows that are read ahead, by their type.
        pub(crate) enum Ahead {
            $($kind(ReadAhead<Arc<Rows<$t>>>),)+
        }
    };
}
of_elements!(U8: u8, I8: i8, F16: f16, F32: f32, F64: f64);

/// Does something with rows of any type.
macro_rules! each {
    ($ahead:expr, $rows:ident => $do:expr) => {
        match $ahead {
            $crate::scan::Ahead::U8($rows) => $do,
            $crate::scan::Ahead::I8($rows) => $do,
            $crate::scan::Ahead::F16($rows) => $do,
            $crate::scan::Ahead::F32($rows) => $do,
            $crate::scan::Ahead::F64($rows) => $do,
        }
    };
}

/// Bytes of a file, and the time of its last change. `None` for pipes.
type Stamp = Option<(u64, Option<SystemTime>)>;

fn stamp(path: &Path) -> Stamp {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((about.len(), about.modified().ok()))
}

#[pymethods]
impl Scan {
    /// The rows of files `paths`, or of one folder or pattern, as :func:`coremix.scan` makes them from its other arguments, the
    /// `options`, within a limit of `memory`. `again` makes them once more, when they are unpickled. Sparse rows are a `Csr`.
    #[staticmethod]
    fn of_files(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        options: &Bound<'_, PyDict>,
        memory: &Bound<'_, PyAny>,
        again: Py<PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let cancel = Cancel::default();
        let memory = bytes_of("memory", memory)?;
        let chosen = Chosen::of(options)?;
        let cancelled = chosen.options.clone().cancel(&cancel).memory(memory);
        let opened = interruptible(py, &cancel, || match &paths[..] {
            [one] => open(one, &cancelled),
            several => open_all(several, &cancelled),
        })?;
        let opened = opened.map_err(raise)?;
        if let Some(sparse) = sparse(&opened) {
            return Ok(Py::new(py, sparse)?.into_any());
        }
        let scan = Self::of(py, opened, chosen, memory, again)?;
        Ok(Py::new(py, scan)?.into_any())
    }

    /// The rows of `batches`, an Arrow stream or an iterator of tables, or of pairs of an array and the names of its columns. They
    /// are written to a temporary file. `options`, `memory` and `again` are as for files.
    #[staticmethod]
    fn of_batches(
        batches: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        memory: &Bound<'_, PyAny>,
        again: Py<PyAny>,
    ) -> PyResult<Self> {
        let py = batches.py();
        let cancel = Cancel::default();
        let memory = bytes_of("memory", memory)?;
        let mut chosen = Chosen::of(options)?;
        let lenient = chosen.dropping || chosen.keeping;
        let mut stream = Stream::of(batches, lenient)?;
        chosen.unnamed = stream.unnamed;
        let written = Batches::write(&stream.schema(), &mut stream, &chosen.options);
        stream.raised()?;
        let written = written.map_err(raise)?;
        let cancelled = chosen.options.clone().cancel(&cancel);
        let opened = interruptible(py, &cancel, || written.open(&cancelled))?;
        chosen.written = Some(written.bytes());
        Self::of(py, opened.map_err(raise)?, chosen, memory, again)
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
        self.rows.shape().1
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.len(), self.columns())
    }

    /// The names of the columns, or None.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }

    /// The texts of the columns that are categories, in the order of their codes.
    #[getter]
    fn texts(&self) -> Texts {
        self.texts.clone()
    }

    /// A function that opens the same rows again, with other arguments if they are given.
    #[getter]
    fn again(&self, py: Python<'_>) -> Py<PyAny> {
        self.again.clone_ref(py)
    }

    /// The type that numbers are read as: `uint8`, `int8`, `float16`, `float32` or `float64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.rows.element() {
            ElementType::U8 => "uint8",
            ElementType::I8 => "int8",
            ElementType::F16 => "float16",
            ElementType::F32 => "float32",
            ElementType::F64 => "float64",
        }
    }

    /// Bytes that the rows would take as an array.
    #[getter]
    fn nbytes(&self) -> usize {
        self.len()
            .saturating_mul(self.columns())
            .saturating_mul(self.rows.element().size())
    }

    /// The weights of the rows (n), if a column of them was named.
    #[getter]
    fn weights(&self, py: Python<'_>) -> Option<Py<PyArray1<f64>>> {
        self.weights.as_ref().map(|weights| weights.clone_ref(py))
    }

    /// The files, in the order of their rows.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.0.clone()).collect()
    }

    /// The columns that are neither read nor weights or keys, with what they hold, such as `text`.
    #[getter]
    fn not_used(&self) -> Vec<(String, String)> {
        self.not_used.clone()
    }

    /// Bytes of the temporary file, where rows were written to one.
    #[getter]
    fn spooled(&self) -> Option<u64> {
        self.chosen.written
    }

    fn __repr__(&self) -> String {
        self.said()
    }

    /// NumPy would make an array of no dimension, with this as its value.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __array__(
        &self,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "the rows of a scan are not in memory: give the scan itself to an estimator, or read its files into an array, such as \
             pandas.read_parquet(path).to_numpy(), or coremix.sample(scan, size)",
        ))
    }

    /// Pickled as what makes it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Py<PyAny>, Bound<'py, PyTuple>) {
        (self.again.clone_ref(py), PyTuple::empty(py))
    }
}

impl Scan {
    fn of(
        py: Python<'_>,
        opened: Opened,
        chosen: Chosen,
        memory: Bytes,
        again: Py<PyAny>,
    ) -> PyResult<Self> {
        let rows = Shared::of(opened.rows)?;
        let columns = opened.columns;
        let files = opened.files.into_iter();
        let found = opened.missing.unwrap_or_default();
        let (dropped, missing) = if chosen.dropping {
            (found.rows, (0, 0))
        } else {
            (0, (found.values, found.rows))
        };
        let mut scan = Self {
            rows,
            names: None,
            texts: opened.texts.into_iter().collect(),
            weights: opened.weights.map(|all| all.into_pyarray(py).unbind()),
            keys: opened.key_columns,
            files: files.map(|path| (path.clone(), stamp(&path))).collect(),
            not_used: opened.not_used,
            dropped,
            missing,
            chosen,
            memory,
            decoder: opened.decoder,
            again,
        };
        // The numbers of lists have no names of their own.
        if columns.len() == scan.columns() && !scan.chosen.unnamed {
            scan.names = Some(columns);
        }
        Ok(scan)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.shape().0
    }

    pub(crate) fn is_double(&self) -> bool {
        self.rows.element() == ElementType::F64
    }

    /// The keys from the first row on, and the names of their columns.
    pub(crate) fn keys(&self) -> coremix::Result<(Option<Keys>, &[String])> {
        Ok((self.keys.read()?, &self.chosen.key))
    }

    /// Whether a file is one of these.
    pub(crate) fn reads(&self, path: &Path) -> bool {
        let Ok(whole) = path.canonicalize() else {
            return false;
        };
        let mut files = self.files.iter();
        files.any(|file| file.0.canonicalize().is_ok_and(|own| own == whole))
    }

    /// An error if a file is no longer what it was.
    pub(crate) fn unchanged(&self) -> PyResult<()> {
        let Some((path, _)) = self.files.iter().find(|file| stamp(&file.0) != file.1) else {
            return Ok(());
        };
        let name = path.display();
        match path.try_exists() {
            Ok(false) => Err(PyFileNotFoundError::new_err(format!(
                "{name}: is gone since coremix.scan opened it: put it back, or scan the others"
            ))),
            _ => Err(PyOSError::new_err(format!(
                "{name}: has changed since coremix.scan opened it: scan it again"
            ))),
        }
    }

    /// The rows, for one piece of work that this flag ends.
    pub(crate) fn reading(&self, cancel: &Cancel) -> Reading {
        Reading {
            ahead: self.rows.ahead(),
            cancel: cancel.clone(),
            fault: OnceLock::new(),
            memory: self.memory,
            decoder: self.decoder,
        }
    }

    /// The text that is printed, line by line.
    fn said(&self) -> String {
        /// Names that are printed.
        const SHOWN: usize = 6;
        let list = |names: Vec<String>| {
            if names.len() > SHOWN {
                format!(
                    "{}, ... ({} in all)",
                    names[..SHOWN].join(", "),
                    names.len()
                )
            } else {
                names.join(", ")
            }
        };
        let n = self.len();
        let d = self.columns();
        let mut lines = vec![format!(
            "Scan of {n} rows, {d} columns of {}: {} as an array",
            self.dtype(),
            Bytes(self.nbytes() as u64)
        )];
        let mut line = |name: &str, text: String| {
            if !text.is_empty() {
                lines.push(format!("  {name:<9}{text}"));
            }
        };
        line("columns", list(self.names.clone().unwrap_or_default()));
        let pairs = self.not_used.iter();
        line(
            "not used",
            list(
                pairs
                    .map(|(name, holds)| format!("{name} ({holds})"))
                    .collect(),
            ),
        );
        line("weights", self.chosen.weight.clone().unwrap_or_default());
        line("key", list(self.chosen.key.clone()));
        if self.dropped > 0 {
            line(
                "left out",
                format!("{} rows with a missing value", self.dropped),
            );
        }
        let (values, rows) = self.missing;
        if values > 0 {
            line("missing", format!("{values} values, in {rows} rows"));
        }
        let bytes = self.files.iter().filter_map(|file| Some(file.1?.0)).sum();
        if let Some((first, _)) = self.files.first() {
            let more = match self.files.len() {
                1 => String::new(),
                files => format!(" and {} more files", files - 1),
            };
            line(
                "file",
                format!("{}{more}, {}", first.display(), Bytes(bytes)),
            );
        }
        if let Some(bytes) = self.chosen.written {
            let folder = self.chosen.spool.clone().unwrap_or_else(std::env::temp_dir);
            line(
                "written",
                format!(
                    "{} to a temporary file in {}",
                    Bytes(bytes),
                    folder.display()
                ),
            );
        }
        line("memory", format!("{} for a fit", self.memory));
        lines.join("\n")
    }
}

/// The rows of files, if they are sparse: these are in memory, and have neither names, weights nor keys.
fn sparse(opened: &Opened) -> Option<Csr> {
    match &opened.rows {
        AnySource::F32(rows) => Some(Csr::of_lists(rows.dim(), rows.lists()?)),
        AnySource::F64(rows) => Some(Csr::of_lists(rows.dim(), rows.lists()?)),
        _ => None,
    }
}

/// The options that were given.
#[derive(Default)]
struct Chosen {
    options: Options,
    weight: Option<String>,
    key: Vec<String>,
    spool: Option<PathBuf>,
    /// Whether rows with a missing value are left out.
    dropping: bool,
    /// Whether missing values are kept.
    keeping: bool,
    /// Whether columns have no names though there are batches.
    unnamed: bool,
    /// Bytes of the temporary file of batches.
    written: Option<u64>,
}

impl Chosen {
    /// Options by their names in Python.
    fn of(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut chosen = Self::default();
        let mut options = Options::new();
        for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
            let name: &str = name.extract()?;
            let sign = || -> PyResult<char> {
                let wrong =
                    |_| PyValueError::new_err(format!("{name} = {value}: must be one sign"));
                value.extract().map_err(wrong)
            };
            let byte = || {
                let rule = "must be one ASCII character";
                let wrong = || PyValueError::new_err(format!("{name} = {value}: {rule}"));
                let byte = u8::try_from(sign()?).ok().filter(u8::is_ascii);
                byte.ok_or_else(wrong)
            };
            options = match name {
                "columns" => options.columns(value.extract::<Vec<String>>()?),
                "categories" => match value.extract::<Texts>() {
                    Ok(texts) => {
                        let options = options.categories(texts.keys());
                        let each = texts.into_iter();
                        each.fold(options, |options, (column, texts)| {
                            options.texts(column, texts)
                        })
                    }
                    Err(_) => options.categories(value.extract::<Vec<String>>()?),
                },
                "weights" => {
                    let weight = chosen.weight.insert(value.extract()?);
                    options.weight(weight.clone())
                }
                "key" => {
                    chosen.key = value.extract()?;
                    chosen
                        .key
                        .iter()
                        .fold(options, |options, key| options.key(key))
                }
                "format" => {
                    let named: &str = value.extract()?;
                    let rule = "must be parquet, arrow, csv, tsv, csv.gz, npy, npz, svmlight, fvecs, bvecs, fbin or u8bin";
                    let wrong = || PyValueError::new_err(format!("format = {named:?}: {rule}"));
                    let format = Format::named(named).ok_or_else(wrong)?;
                    let options = options.format(format);
                    let delimiter = given.get_item("delimiter")?;
                    let has_one = delimiter.is_some_and(|delimiter| !delimiter.is_none());
                    if named.starts_with("tsv") && !has_one {
                        options.delimiter(b'\t')
                    } else {
                        options
                    }
                }
                "dtype" => match value.extract()? {
                    "float32" => options.element(ElementType::F32).rounded(),
                    "float64" => options.element(ElementType::F64),
                    other => {
                        let rule = "must be float32, float64 or None";
                        return Err(PyValueError::new_err(format!("dtype = {other:?}: {rule}")));
                    }
                },
                "delimiter" => options.delimiter(byte()?),
                "comment" => options.comment(byte()?),
                "decimal" => options.decimal(sign()?),
                "thousands" => options.thousands(sign()?),
                "encoding" => options.encoding(value.extract::<String>()?),
                "header" => options.header(value.extract()?),
                "drop_missing" => {
                    chosen.dropping = value.extract()?;
                    if chosen.dropping {
                        options.missing(Missing::Drop)
                    } else {
                        options
                    }
                }
                "missing" => {
                    chosen.keeping = true;
                    let texts: Vec<String> = value.extract()?;
                    options.missing(Missing::Keep).missing_texts(texts)
                }
                "spool" => {
                    let folder = chosen.spool.insert(value.extract()?);
                    options.spool(folder.clone())
                }
                other => return Err(PyTypeError::new_err(format!("no option {other}"))),
            };
        }
        chosen.options = options;
        Ok(chosen)
    }
}

/// Rows of a scan for one piece of work: they are read ahead, until its flag is set.
pub(crate) struct Reading {
    pub(crate) ahead: Ahead,
    cancel: Cancel,
    /// The first error of reading: its kind, and a text with the file, the row and the column.
    fault: OnceLock<(io::ErrorKind, String)>,
    /// The limit of the scan, and the bytes of a decoder.
    pub(crate) memory: Bytes,
    pub(crate) decoder: u64,
}

impl Reading {
    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        each!(&self.ahead, rows => (rows.len(), rows.dim()))
    }

    pub(crate) fn is_double(&self) -> bool {
        matches!(self.ahead, Ahead::F64(_))
    }

    /// The exception, if rows could not be read.
    pub(crate) fn fault(&self) -> Option<PyErr> {
        let (kind, text) = self.fault.get()?;
        Some(unread(*kind, text))
    }

    /// Reads rows as they are.
    pub(crate) fn read<T: Element>(
        &self,
        rows: &impl Source<Element = T>,
        first: usize,
        out: &mut [T],
    ) -> io::Result<()> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        rows.read(first, out).inspect_err(|error| {
            self.fault.get_or_init(|| (error.kind(), error.to_string()));
        })
    }

    /// Some of the rows as numbers of one type.
    pub(crate) fn source<F: Float + Element>(self: &Arc<Self>, rows: Range<usize>) -> ReadRows<F> {
        let of = Arc::clone(self);
        let number = PhantomData;
        ReadRows { of, rows, number }
    }
}

/// Rows of a scan as numbers of one type.
pub(crate) struct ReadRows<F> {
    of: Arc<Reading>,
    rows: Range<usize>,
    number: PhantomData<F>,
}

impl<F: Float + Element> Source for ReadRows<F> {
    type Element = F;

    fn name(&self) -> &'static str {
        "scan"
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.of.shape().1
    }

    fn may_miss(&self) -> bool {
        each!(&self.of.ahead, rows => rows.may_miss())
    }

    fn read(&self, first: usize, out: &mut [F]) -> io::Result<()> {
        each!(&self.of.ahead, rows => {
            let mut own = vec![Default::default(); out.len()];
            self.of.read(rows, self.rows.start + first, &mut own)?;
            for (out, x) in out.iter_mut().zip(own) {
                *out = F::from_f64(x.widen().to_f64());
            }
            Ok(())
        })
    }
}
