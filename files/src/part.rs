//! A file among others, in any format.

use crate::choice::{Columns, Holds};
use crate::csv::{self, CsvFile};
use crate::fault::{fault, guarded, invalid};
use crate::format::{Format, VectorFormat};
use crate::ipc::{self, ArrowFile};
use crate::keys::Keys;
use crate::npy::{self, NpyFile};
use crate::npz;
use crate::numbers::{ElementType, Number};
use crate::options::Options;
use crate::parquet::{self, ParquetFile};
use crate::partitions::{self, Folders};
use crate::paths::{INPUT, is_input, is_pipe};
use crate::plain;
use crate::source::Rows;
use crate::svmlight;
use crate::table::{OnDisk, ReadAt, Until};
use crate::vectors::VectorFile;
use coremix::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file among others.
pub(crate) struct Part {
    pub(crate) bytes: Arc<dyn ReadAt>,
    pub(crate) format: Format,
    /// Its columns, where they have names.
    pub(crate) columns: Option<Columns>,
    /// Whether it is a guess if they have.
    pub(crate) guessed: bool,
    /// The columns that its folders name.
    pub(crate) folders: Folders,
    /// The number of columns and the element type of sparse rows.
    pub(crate) sparse: Option<(usize, ElementType)>,
}

impl Part {
    /// Opens a file that was found below a path.
    pub(crate) fn open(file: &Path, below: &Path, options: &Options) -> Result<Self> {
        let name = file.display().to_string();
        let named = |error: io::Error| fault(&name, error);
        let bytes = if is_input(file) {
            plain::spooled(INPUT, options, &mut io::stdin().lock(), None).map_err(named)?
        } else if is_pipe(file) {
            let mut pipe = File::open(file).map_err(named)?;
            plain::spooled(&name, options, &mut pipe, None).map_err(named)?
        } else {
            Arc::new(OnDisk::open(file)?)
        };
        let format = match options.format.or_else(|| Format::of(file)) {
            Some(format) => format,
            // A stream has no name that could say its format.
            None if !file.is_file() => plain::format_of(&bytes).map_err(named)?,
            None => {
                let what = "its name does not say its format; npy, parquet, arrow, feather, ipc, csv, csv.gz, tsv, npz, svmlight, \
                            libsvm, svm, fvecs, bvecs, fbin and u8bin are read";
                return Err(fault(&name, what));
            }
        };
        Self::of(bytes, format, file, below, options)
    }

    /// A part of these bytes, of a file that was found below a path.
    pub(crate) fn of(
        mut bytes: Arc<dyn ReadAt>,
        format: Format,
        file: &Path,
        below: &Path,
        options: &Options,
    ) -> Result<Self> {
        if let Some(cancel) = &options.cancel {
            bytes = Arc::new(Until(bytes, cancel.clone()));
        }
        let mut guessed = false;
        let mut sparse = None;
        let columns = guarded(|| match format {
            Format::Npy | Format::Vectors(_) => Ok(None),
            Format::Npz => {
                sparse = Some(npz::about(&bytes)?);
                Ok(None)
            }
            Format::Svmlight => {
                let (text, columns) = svmlight::about(Arc::clone(&bytes), options)?;
                (bytes, sparse) = (text, Some((columns, svmlight::ELEMENT)));
                Ok(None)
            }
            Format::Parquet => parquet::columns(&bytes, options).map(Some),
            Format::Arrow => ipc::columns(&bytes, options).map(Some),
            Format::Csv | Format::CsvGz => csv::columns(&bytes, options).map(|text| {
                let columns;
                (columns, guessed, bytes) = text;
                Some(columns)
            }),
        });
        let mut columns = columns.map_err(|error| fault(&bytes.name(), error))?;
        let folders = columns
            .as_mut()
            .map(|columns| partitions::of(file, below, columns));
        Ok(Self {
            columns,
            bytes,
            format,
            guessed,
            folders: folders.unwrap_or_default(),
            sparse,
        })
    }

    pub(crate) fn fault(&self, what: impl fmt::Display) -> Error {
        fault(&self.bytes.name(), what)
    }

    /// The content of a column.
    pub(crate) fn holds(&self, name: &str) -> Option<Holds> {
        let mut each = self.columns.iter().flat_map(|columns| &columns.each);
        each.find(|one| one.name == name).map(|one| one.holds)
    }

    pub(crate) fn has_rows(&self) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.has_rows)
    }

    /// The smallest element type that holds all of its numbers exactly.
    pub(crate) fn element(&self, options: &Options) -> Result<ElementType> {
        if let Some((_, element)) = self.sparse {
            return Ok(element);
        }
        match (&self.columns, self.format) {
            (Some(columns), _) => {
                let places = columns.features(options).map_err(|what| self.fault(what))?;
                Ok(columns.element(&places, options))
            }
            (_, Format::Npy) => npy::element(&*self.bytes),
            (_, Format::Vectors(VectorFormat::Bvecs | VectorFormat::U8bin)) => Ok(ElementType::U8),
            _ => Ok(ElementType::F32),
        }
    }

    /// Its rows, and the bytes of a decoder.
    pub(crate) fn rows<T: Number>(&self, options: &Options) -> Result<(Rows<T>, u64)> {
        let named =
            options.columns.is_some() || options.weight.is_some() || !options.keys.is_empty();
        if named && self.columns.is_none() {
            let what = "its columns have no names: name no columns, weights or keys, nor read it together with files that have names";
            return Err(self.fault(what));
        }
        let mut file_options = self.folders.own(options, self.columns.as_ref());
        (file_options.weight, file_options.keys) = (None, Vec::new());
        let file_options = &file_options;
        let bytes = Arc::clone(&self.bytes);
        let mut decoder = 0;
        let rows: Rows<T> = match self.format {
            Format::Npy => {
                let mut file = NpyFile::<T>::of(bytes, file_options.rounded)?;
                file.table.may_miss = file_options.lenient;
                Box::new(file)
            }
            Format::Npz => Box::new(npz::rows::<T>(&bytes, file_options)?),
            Format::Svmlight => Box::new(svmlight::rows::<T>(&bytes, file_options)?),
            Format::Vectors(format) => {
                let mut file = VectorFile::<T>::over(bytes, format)?;
                file.table.may_miss = file_options.lenient;
                Box::new(file)
            }
            Format::Parquet => {
                let file = ParquetFile::<T>::over(bytes, file_options)?;
                decoder = file.decoder;
                Box::new(file)
            }
            Format::Arrow => {
                let file = ArrowFile::<T>::over(bytes, file_options)?;
                decoder = file.decoder;
                Box::new(file)
            }
            Format::Csv | Format::CsvGz => Box::new(CsvFile::<T>::over(bytes, file_options)?),
        };
        let rows = self.folders.rows(rows, options);
        Ok((rows.map_err(|what| self.fault(what))?, decoder))
    }

    pub(crate) fn keys(&self, options: &Options) -> Result<Keys> {
        let file_options = self.folders.own(options, self.columns.as_ref());
        let keys = Keys::over(Arc::clone(&self.bytes), self.format, &file_options)?;
        Ok(self.folders.keys(keys, options))
    }
}

impl Keys {
    /// The key columns that options name, of bytes in a format that has columns.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) where they cannot be read, are damaged, or do not have such columns.
    pub fn over(bytes: impl ReadAt + 'static, format: Format, options: &Options) -> Result<Self> {
        let path = bytes.name();
        let bytes = Arc::new(bytes);
        let none = "its columns have no names, so none can be a key";
        let keys = guarded(|| match format {
            Format::Parquet => parquet::keys(bytes, options),
            Format::Arrow => ipc::keys(bytes, options),
            Format::Csv | Format::CsvGz => csv::keys(bytes, options),
            Format::Npy | Format::Npz | Format::Svmlight | Format::Vectors(_) => Err(invalid(none)),
        });
        keys.map_err(|error| fault(&path, error))
    }
}
