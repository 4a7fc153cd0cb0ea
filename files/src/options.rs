//! What to read from a file, and how.

use crate::numbers::ElementType;
use coremix::Cancel;
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
    /// The same by the name of a file that is compressed: `.csv.gz`, `.tsv.gz`. Both are told apart by what they hold.
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

/// What is done about rows with a missing value, in place of an error when they are read: a null, NaN, and in text an empty
/// field, `NA`, `N/A`, `NaN`, `null`, `None`, `?` or `\N`. It takes a pass over all rows, when they are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// They are counted, and an error when they are read.
    Count,
    /// They are counted and left out, with their weights and keys.
    Drop,
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
    pub(crate) encoding: Option<String>,
    pub(crate) decimal: Option<char>,
    pub(crate) thousands: Option<char>,
    pub(crate) comment: Option<u8>,
    pub(crate) missing: Option<Missing>,
    /// A value that is missing is read as NaN: rows that have one are dropped.
    pub(crate) lenient: bool,
    pub(crate) spool: Option<PathBuf>,
    pub(crate) cancel: Option<Cancel>,
}

impl Options {
    /// The same for a single column of numbers.
    pub(crate) fn only(&self, column: &str) -> Self {
        let mut only = self.clone().columns([column]);
        (only.weight, only.keys) = (None, Vec::new());
        only
    }

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

    /// What separates the fields of CSV files: a blank stands for runs of blanks. Without this, a tab for names with `.tsv`;
    /// for others a comma, or a semicolon where the comma is the decimal sign.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = Some(delimiter);
        self
    }

    /// Whether the first line of CSV files names the columns; if not, they are called `column_1`, `column_2` and so on.
    /// Without this it does, unless all of its fields are numbers, or missing. Then it does where it counts 0, 1, 2 and so on,
    /// as pandas names columns (two columns or one: only where no other line has whole numbers), is a field shorter than the
    /// others, has numbers above text, or has the only whole numbers of eleven lines or more.
    #[must_use]
    pub fn header(mut self, header: bool) -> Self {
        self.header = Some(header);
        self
    }

    /// The encoding of CSV files by its name, such as `windows-1252`, `latin1` or `utf-16`. Without this it is UTF-8, or
    /// UTF-16 where the file begins with its mark.
    #[must_use]
    pub fn encoding(mut self, name: impl Into<String>) -> Self {
        self.encoding = Some(name.into());
        self
    }

    /// The decimal sign of CSV files: a point without this.
    #[must_use]
    pub fn decimal(mut self, sign: char) -> Self {
        self.decimal = Some(sign);
        self
    }

    /// What separates thousands in the numbers of CSV files: nothing without this.
    #[must_use]
    pub fn thousands(mut self, sign: char) -> Self {
        self.thousands = Some(sign);
        self
    }

    /// Lines of CSV files that begin with this are comments: none without this.
    #[must_use]
    pub fn comment(mut self, sign: u8) -> Self {
        self.comment = Some(sign);
        self
    }

    /// What [`open`](crate::open) does about values that are missing. Sources of a single kind know no rows that are left out.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = Some(missing);
        self
    }

    /// The folder for what cannot be read at any place, such as a pipe or text that is compressed: that for temporary files without this.
    #[must_use]
    pub fn spool(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spool = Some(folder.into());
        self
    }

    /// A flag that ends reading, also while [`open`](crate::open) goes through the files: from then on every read is an error.
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }
}
