//! One entry for files of all formats.

use crate::choice::{Columns, element, features};
use crate::csv::{self, CsvFile};
use crate::fault::fault;
use crate::ipc::{self, ArrowFile};
use crate::keys::Keys;
use crate::npy;
use crate::numbers::{ElementType, Number};
use crate::options::{Format, Options};
use crate::parquet::{self, ParquetFile};
use crate::parts::Parts;
use crate::spool::Spool;
use crate::write::NpyNumber;
use crate::{NpyFile, OnDisk, ReadAt, VectorFile, VectorFormat};
use coremix::Result;
use coremix::data::Source;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A source of rows of one element type.
pub type Rows<T> = Box<dyn Source<Element = T> + Send + Sync>;

/// The rows of files, in the element type that they have.
#[non_exhaustive]
pub enum AnySource {
    /// Rows of `u8`.
    U8(Rows<u8>),
    /// Rows of `f32`.
    F32(Rows<f32>),
    /// Rows of `f64`.
    F64(Rows<f64>),
}

impl fmt::Debug for AnySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnySource")
            .field("element", &self.element())
            .field("len", &self.len())
            .field("dim", &self.dim())
            .finish()
    }
}

/// What is done with rows of any type.
macro_rules! each {
    ($any:expr, $rows:ident => $do:expr) => {
        match $any {
            AnySource::U8($rows) => $do,
            AnySource::F32($rows) => $do,
            AnySource::F64($rows) => $do,
        }
    };
}

impl AnySource {
    /// The element type.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::U8(_) => ElementType::U8,
            Self::F32(_) => ElementType::F32,
            Self::F64(_) => ElementType::F64,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(self, rows => rows.len())
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns.
    #[must_use]
    pub fn dim(&self) -> usize {
        each!(self, rows => rows.dim())
    }
}

/// What is read of files: rows, and what belongs to them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The rows.
    pub rows: AnySource,
    /// A weight for each row, if a column was named.
    pub weights: Option<Vec<f64>>,
    /// The key columns, if some were named.
    pub keys: Option<Keys>,
    /// The files, in the order of their rows.
    pub files: Vec<PathBuf>,
    /// The names of the columns of the rows, in their order; none in formats without names.
    pub columns: Vec<String>,
    /// The names of the columns that are neither of these nor weights or keys.
    pub not_used: Vec<String>,
}

/// Opens files of any format: one file, a folder of files, or a pattern such as `part-*.parquet`. Several files are read in
/// the order of their names. In a folder, files of known formats are read, but not hidden ones nor those in its folders.
/// The first file says which columns are read; they are found by their names in the others.
///
/// ```no_run
/// use coremix::data::Blocks;
/// use coremix::prelude::*;
/// use coremix_files::{AnySource, ElementType, Options, open};
///
/// let options = Options::new().key("id").element(ElementType::F64);
/// let AnySource::F64(rows) = open("points", &options)?.rows else {
///     unreachable!("numbers were asked for as f64");
/// };
/// let data = Blocks::new(rows)?;
/// let fit = algorithms::fast_within(1_000, 1 << 30).build()?.fit(&data)?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::File`](coremix::Error::File) for a file that cannot be read, is damaged, or does not have such columns; and
/// where files differ in their columns.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Opened> {
    let files = files_of(path.as_ref(), options)?;
    open_all(&files, options)
}

/// Opens several files of any format: their rows come in the order given.
///
/// # Errors
/// As [`open`].
pub fn open_all(files: &[PathBuf], options: &Options) -> Result<Opened> {
    let mut formats = Vec::with_capacity(files.len());
    for file in files {
        formats.push(format_of(file, options)?);
    }
    let files: Vec<(&Path, Format)> = files.iter().map(PathBuf::as_path).zip(formats).collect();
    let (mut options, mut not_used) = (options.clone(), Vec::new());
    // The first file whose columns have names.
    if let Some((file, format)) = files.iter().find(|(_, format)| format.is_table()) {
        let columns = columns_of(file, *format, &options)?;
        let used = features_of(file, &columns, &options)?;
        let known: Vec<&String> = options.weight.iter().chain(&options.keys).collect();
        let others = columns.iter().enumerate();
        let others = others.filter(|(i, (name, _))| !used.contains(i) && !known.contains(&name));
        not_used = others.map(|(_, (name, _))| name.clone()).collect();
        let names = used.iter().map(|place| columns[*place].0.clone());
        options.columns = Some(names.collect());
    }
    let options = &options;
    let elements = files
        .iter()
        .map(|(file, format)| element_of(file, *format, options));
    let element = match options.element {
        Some(element) => element,
        None => elements
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .max()
            .unwrap_or(ElementType::U8),
    };
    let rows = match element {
        ElementType::U8 => AnySource::U8(rows(&files, options)?),
        ElementType::F32 => AnySource::F32(rows(&files, options)?),
        ElementType::F64 => AnySource::F64(rows(&files, options)?),
    };
    Ok(Opened {
        rows,
        weights: weights(&files, options)?,
        keys: keys(&files, options)?,
        files: files.iter().map(|(file, _)| file.to_path_buf()).collect(),
        columns: options.columns.clone().unwrap_or_default(),
        not_used,
    })
}

/// The files that a path names, in the order of their names.
fn files_of(path: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    let name = path.display().to_string();
    let (pattern, none) = match (path.is_dir(), path.exists()) {
        (true, _) => (
            format!("{}/*", glob::Pattern::escape(&name)),
            "a folder without files of a known format: check the path, or give one",
        ),
        (_, false) if name.contains(['*', '?', '[']) => {
            (name.clone(), "no file matches this pattern")
        }
        _ => return Ok(vec![path.to_owned()]),
    };
    let found = glob::glob(&pattern).map_err(|error| fault(&name, error))?;
    let found = found.collect::<std::result::Result<Vec<_>, _>>();
    let mut found = found.map_err(|error| fault(&name, error))?;
    found.retain(|file| {
        let own = file.file_name().unwrap_or_default().to_string_lossy();
        let known = options.format.is_some() || Format::of(file).is_some();
        file.is_file() && (!path.is_dir() || known && !own.starts_with(['.', '_']))
    });
    found.sort();
    match found.is_empty() {
        true => Err(fault(&name, none)),
        false => Ok(found),
    }
}

fn format_of(file: &Path, options: &Options) -> Result<Format> {
    let format = options.format.or_else(|| Format::of(file));
    format.ok_or_else(|| {
        let what = "its name does not say its format; npy, parquet, arrow, feather, ipc, csv, csv.gz, tsv, fvecs, bvecs, \
                    fbin and u8bin are read";
        fault(&file.display().to_string(), what)
    })
}

/// The smallest element type that holds all numbers of a file exactly.
fn element_of(file: &Path, format: Format, options: &Options) -> Result<ElementType> {
    Ok(match format {
        Format::Npy => npy::element(file)?,
        Format::Vectors(VectorFormat::Bvecs | VectorFormat::U8bin) => ElementType::U8,
        Format::Vectors(_) => ElementType::F32,
        Format::Parquet | Format::Arrow | Format::Csv | Format::CsvGz => {
            let columns = columns_of(file, format, options)?;
            element(&columns, &features_of(file, &columns, options)?)
        }
    })
}

/// The places of the columns of a file that are read.
fn features_of(file: &Path, columns: &Columns, options: &Options) -> Result<Vec<usize>> {
    features(columns, options).map_err(|what| fault(&file.display().to_string(), what))
}

/// The columns of a table.
fn columns_of(file: &Path, format: Format, options: &Options) -> Result<Columns> {
    let bytes: Arc<dyn ReadAt> = Arc::new(OnDisk::open(file)?);
    let columns = match format {
        Format::Parquet => parquet::columns(&bytes),
        Format::Arrow => ipc::columns(&*bytes),
        _ => csv::columns(&bytes, options, format == Format::CsvGz),
    };
    columns.map_err(|error| fault(&file.display().to_string(), error))
}

fn rows<T: Number + NpyNumber>(files: &[(&Path, Format)], options: &Options) -> Result<Rows<T>> {
    if let [(file, format)] = files {
        return rows_of(file, *format, options);
    }
    let mut parts: Vec<Rows<T>> = Vec::with_capacity(files.len());
    for (file, format) in files {
        let part: Rows<T> = rows_of(file, *format, options)?;
        let other = parts
            .iter()
            .position(|other| !other.is_empty() && other.dim() != part.dim());
        if let Some(other) = other.filter(|_| !part.is_empty()) {
            let (own, others) = (part.dim(), parts[other].dim());
            let what = format!(
                "has {own} columns, where {} has {others}",
                files[other].0.display()
            );
            return Err(fault(&file.display().to_string(), what));
        }
        parts.push(part);
    }
    Ok(Box::new(Parts::new(parts)?))
}

fn rows_of<T: Number + NpyNumber>(
    file: &Path,
    format: Format,
    options: &Options,
) -> Result<Rows<T>> {
    let named = options.columns.is_some() || options.weight.is_some() || !options.keys.is_empty();
    if named && !format.is_table() {
        let what = "its columns have no names: name no columns, weights or keys, nor read it together with files that have names";
        return Err(fault(&file.display().to_string(), what));
    }
    Ok(match format {
        Format::Npy => Box::new(NpyFile::<T>::open_as(file, options.rounded)?),
        Format::Vectors(vectors) => Box::new(VectorFile::<T>::open_as(file, vectors)?),
        Format::Parquet => Box::new(ParquetFile::<T>::open(file, options)?),
        Format::Arrow => Box::new(ArrowFile::<T>::open(file, options)?),
        Format::Csv => Box::new(CsvFile::<T>::open(file, options)?),
        Format::CsvGz => Box::new(Spool::<T>::of_csv(OnDisk::open(file)?, options)?),
    })
}

/// The column of the weights, of all files.
fn weights(files: &[(&Path, Format)], options: &Options) -> Result<Option<Vec<f64>>> {
    /// Rows that are read at once.
    const PIECE: usize = 1 << 16;
    let Some(column) = &options.weight else {
        return Ok(None);
    };
    let mut only = options.clone().columns([column]).element(ElementType::F64);
    (only.weight, only.keys) = (None, Vec::new());
    let rows: Rows<f64> = rows(files, &only)?;
    if rows.dim() != 1 && !rows.is_empty() {
        let what = format!("column {column:?} holds lists, not weights");
        return Err(fault(&files[0].0.display().to_string(), what));
    }
    let mut weights = Vec::new();
    while weights.len() < rows.len() {
        let first = weights.len();
        weights.resize(rows.len().min(first + PIECE), 0.0);
        let read = rows.read(first, &mut weights[first..]);
        read.map_err(|error| fault(&format!("weights {column:?}"), error))?;
    }
    Ok(Some(weights))
}

/// The key columns of all files.
fn keys(files: &[(&Path, Format)], options: &Options) -> Result<Option<Keys>> {
    if options.keys.is_empty() {
        return Ok(None);
    }
    let mut all: Option<Keys> = None;
    for (file, format) in files {
        if !format.is_table() {
            continue;
        }
        let keys = Keys::over(OnDisk::open(file)?, *format, options)?;
        all = Some(match all {
            None => keys,
            Some(before) => before.chain(keys)?,
        });
    }
    Ok(all)
}
