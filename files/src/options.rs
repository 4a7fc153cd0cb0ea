//! What to read from a file, and how.

use crate::numbers::ElementType;
use std::path::{Path, PathBuf};

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A matrix of `NumPy`: `.npy`.
    Npy,
    /// `.parquet`, `.pq`.
    Parquet,
    /// Arrow IPC, as a file or as a stream: `.arrow`, `.arrows`, `.feather`, `.ipc`.
    Arrow,
    /// Text with a delimiter: `.csv`, `.tsv`.
    Csv,
    /// The same, compressed: `.csv.gz`, `.tsv.gz`.
    CsvGz,
    /// Vectors: `.fvecs`, `.bvecs`, `.fbin`, `.u8bin`.
    Vectors(crate::VectorFormat),
}

impl Format {
    /// The format of a file by how its name ends.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        let name = path.as_ref().file_name()?.to_str()?.to_ascii_lowercase();
        let (before, ending) = name.rsplit_once('.')?;
        Some(match ending {
            "npy" => Self::Npy,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Self::Arrow,
            "csv" | "tsv" => Self::Csv,
            "gz" if before.ends_with(".csv") || before.ends_with(".tsv") => Self::CsvGz,
            _ => Self::Vectors(crate::VectorFormat::of(name).ok()?),
        })
    }

    /// The format of this name: an ending, such as `parquet`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::of(Path::new("x").with_extension(name))
    }
}

/// What to read from files, and how: columns, weights, keys, types.
///
/// ```
/// use coremix_files::{ElementType, Options};
///
/// let options = Options::new()
///     .columns(["x", "y"])
///     .weight("count")
///     .key("id")
///     .element(ElementType::F32);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) weight: Option<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) element: Option<ElementType>,
    pub(crate) rounded: bool,
    pub(crate) format: Option<Format>,
    pub(crate) delimiter: Option<u8>,
    pub(crate) header: Option<bool>,
    pub(crate) spool: Option<PathBuf>,
}

impl Options {
    /// All columns of numbers, in the smallest element type that holds them exactly.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The columns of the rows, in this order: columns of numbers, or one column of lists that all have the same length.
    /// Without this, all columns of numbers but the weight, the keys, durations, and the numbers of the rows that data frames
    /// write; or, where there are none, the only column of lists of numbers.
    #[must_use]
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// The column of the weights: numbers that are finite and not negative.
    #[must_use]
    pub fn weight(mut self, column: impl Into<String>) -> Self {
        self.weight = Some(column.into());
        self
    }

    /// A column that names the rows, of any type: it is written beside the labels. There can be several.
    #[must_use]
    pub fn key(mut self, column: impl Into<String>) -> Self {
        self.keys.push(column.into());
        self
    }

    /// The element type of the rows. An error where not all numbers are of this type exactly, unless they may be
    /// [`rounded`](Self::rounded).
    #[must_use]
    pub fn element(mut self, element: ElementType) -> Self {
        self.element = Some(element);
        self
    }

    /// Numbers may be rounded to `f32`. This matters together with [`element`](Self::element).
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.rounded = true;
        self
    }

    /// The format of the files. Without this, it is that of their names.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// What separates the fields of CSV files. Without this, a tab for names with `.tsv`, a comma for others.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = Some(delimiter);
        self
    }

    /// Whether the first line of CSV files names the columns. Without this it does, unless all of its fields are numbers.
    /// If not, the columns are called `column_1`, `column_2` and so on.
    #[must_use]
    pub fn header(mut self, header: bool) -> Self {
        self.header = Some(header);
        self
    }

    /// The folder for the rows of sources that cannot be read at any place: that for temporary files without this.
    #[must_use]
    pub fn spool(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spool = Some(folder.into());
        self
    }
}
