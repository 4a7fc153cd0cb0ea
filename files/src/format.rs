//! Formats of files, by how their names end.

use crate::fault::fault;
use coremix::Result;
use std::path::Path;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A matrix of `NumPy`: `.npy`.
    Npy,
    /// A sparse matrix, as `scipy.sparse.save_npz` writes it: `.npz`. Its lists are read into memory, never its zeros.
    Npz,
    /// Sparse rows as text: `.svmlight`, `.libsvm`, `.svm`. Labels and query numbers are left out. Columns keep their numbers: where they
    /// count from 1, column 0 is empty.
    Svmlight,
    /// `.parquet`, `.pq`.
    Parquet,
    /// Arrow IPC, as a file or as a stream: `.arrow`, `.arrows`, `.feather`, `.ipc`.
    Arrow,
    /// Text with a delimiter: `.csv`, `.tsv`.
    Csv,
    /// Text in a file whose name says that it is compressed: `.csv.gz`, `.tsv.gz`. The content decides whether it is.
    CsvGz,
    /// Vectors: `.fvecs`, `.bvecs`, `.fbin`, `.u8bin`.
    Vectors(VectorFormat),
}

impl Format {
    /// The format of a file by how its name ends.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        let name = path.as_ref().file_name()?.to_str()?.to_ascii_lowercase();
        let (before, ending) = name.rsplit_once('.')?;
        Some(match ending {
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "svmlight" | "libsvm" | "svm" => Self::Svmlight,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Self::Arrow,
            "csv" | "tsv" => Self::Csv,
            "gz" if before.ends_with(".csv") || before.ends_with(".tsv") => Self::CsvGz,
            "fvecs" => Self::Vectors(VectorFormat::Fvecs),
            "bvecs" => Self::Vectors(VectorFormat::Bvecs),
            "fbin" => Self::Vectors(VectorFormat::Fbin),
            "u8bin" => Self::Vectors(VectorFormat::U8bin),
            _ => return None,
        })
    }

    /// The format of this name: an ending, such as `parquet`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::of(Path::new("x").with_extension(name))
    }
}

/// A format of vector files. Numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorFormat {
    /// Rows of f32, each after the number of its columns in 4 bytes.
    Fvecs,
    /// Rows of u8, each after the number of its columns in 4 bytes.
    Bvecs,
    /// The numbers of rows and columns in 4 bytes each, then rows of f32.
    Fbin,
    /// The numbers of rows and columns in 4 bytes each, then rows of u8.
    U8bin,
}

impl VectorFormat {
    /// The format of a file by how its name ends: `.fvecs`, `.bvecs`, `.fbin` or `.u8bin`.
    ///
    /// # Errors
    /// [`Error::File`](coremix::Error::File) for another ending.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let what = "its name must end in .fvecs, .bvecs, .fbin or .u8bin";
        match Format::of(path) {
            Some(Format::Vectors(format)) => Ok(format),
            _ => Err(fault(&path.display().to_string(), what)),
        }
    }
}
