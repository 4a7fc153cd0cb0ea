//! Options for reading files.

use crate::bytes::Bytes;
use crate::cells::{Cells, Signs};
use crate::fault::invalid;
use crate::format::Format;
use crate::numbers::{ElementType, NO_NAN, Number};
use crate::texts::Texts;
use coremix::Cancel;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The treatment of rows with a missing value, in place of an error when they are read: a null, NaN, and in text an empty
/// field, `NA`, `N/A`, `NaN`, `NaT`, `null`, `None`, `?`, `\N`, or one of [`Options::missing_texts`]. It takes a pass over all rows, when they
/// are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// They are counted, and an error when they are read.
    Count,
    /// They are counted and left out, with their weights and keys.
    Drop,
    /// They are counted, and the missing values are read as NaN: [`Source::may_miss`](coremix::data::Source::may_miss). Columns of
    /// text are columns of numbers if what is there is; those of which all values are missing are left out, unless they are named.
    /// A missing weight is still an error.
    Keep,
}

/// Makes a method for each of these options, from what it takes and what is kept of it.
macro_rules! options {
    ($($(#[$doc:meta])* $option:ident($value:ident: $given:ty) = $kept:expr;)+) => {
        impl Options {
            $($(#[$doc])*
            #[must_use]
            pub fn $option(mut self, $value: $given) -> Self {
                self.$option = $kept;
                self
            })+
        }
    };
}

/// Options for reading files: columns, weights, keys, types.
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
    /// Columns whose text is read as codes, and the codes that are known.
    pub(crate) categories: Vec<String>,
    pub(crate) texts: BTreeMap<String, Texts>,
    /// Columns whose text is known to say numbers.
    pub(crate) cells: BTreeMap<String, Cells>,
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
    pub(crate) missing_texts: Vec<String>,
    /// A value that is missing is read as NaN.
    pub(crate) lenient: bool,
    pub(crate) width: usize,
    pub(crate) spool: Option<PathBuf>,
    pub(crate) cancel: Option<Cancel>,
    /// Bytes for rows that are in memory in any case.
    pub(crate) memory: Option<u64>,
}

impl Options {
    /// These options for a single column of numbers.
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

    /// Columns that are categories: where they hold text, true and false, or times, these are read as codes, 0, 1 and so on, in the
    /// order of the texts of all files, which [`open`](crate::open) goes through for it: [`Opened::texts`](crate::Opened::texts).
    /// Blanks around a text do not count, nor do capitals of true and false. A time has one text however it was stored, in UTC:
    /// `2024-05-31` at midnight, else `2024-05-31T08:30:00`. Numbers are read as they are.
    #[must_use]
    pub fn categories<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.categories = columns.into_iter().map(Into::into).collect();
        self
    }

    /// A column whose text is read as codes: the places of its texts among these. Other texts get the number of all of these,
    /// which is no code.
    #[must_use]
    pub fn texts<T: Into<String>>(
        mut self,
        column: impl Into<String>,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        let texts = Texts::new(texts.into_iter().map(Into::into));
        self.texts.insert(column.into(), texts);
        self
    }

    /// A column that names the rows, of any type: it is written next to the labels. There can be several.
    #[must_use]
    pub fn key(mut self, column: impl Into<String>) -> Self {
        self.keys.push(column.into());
        self
    }

    /// How values that are missing are treated: without this they are an error when they are read. Sources of a single kind know
    /// no rows that are left out.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        (self.missing, self.lenient) = (Some(missing), missing == Missing::Keep);
        self
    }

    /// More texts in fields of CSV files that stand for a missing value, such as `-` or `-999`, also where they are numbers.
    #[must_use]
    pub fn missing_texts<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.missing_texts = texts.into_iter().map(Into::into).collect();
        self
    }

    /// How cells are read.
    pub(crate) fn signs(&self) -> Signs {
        Signs {
            decimal: self.decimal.unwrap_or('.'),
            thousands: self.thousands,
            missing: self.missing_texts.clone(),
        }
    }

    /// Whether missing values are read as NaN, which numbers of type `T` must have where rows with them are kept.
    pub(crate) fn lenient<T: Number>(&self) -> io::Result<bool> {
        let keeps = self.lenient && self.missing == Some(Missing::Keep);
        if keeps && T::TYPE != T::TYPE.with_nan() {
            Err(invalid(NO_NAN))
        } else {
            Ok(self.lenient)
        }
    }

    /// Numbers may be rounded to `f32`. This matters together with [`element`](Self::element).
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.rounded = true;
        self
    }
}

options! {
    /// The column of the weights: numbers that are finite and not negative.
    weight(column: impl Into<String>) = Some(column.into());
    /// The element type of the rows. An error where not all numbers are of this type exactly, unless they may be
    /// [`rounded`](Self::rounded).
    element(element: ElementType) = Some(element);
    /// The format of the files. Without this, it is that of their names.
    format(format: Format) = Some(format);
    /// The delimiter of the fields of CSV files: a blank stands for runs of blanks. Without this, a tab for names with `.tsv`;
    /// for others a comma, or a semicolon where the comma is the decimal sign.
    delimiter(delimiter: u8) = Some(delimiter);
    /// Whether the first line of CSV files names the columns; if not, they are called `column_1`, `column_2` and so on.
    /// Without this it does, unless all of its fields are numbers, or missing. Then it does where it counts 0, 1, 2 and so on,
    /// as pandas names columns (two columns or one: only where no other line has whole numbers), is a field shorter than the
    /// others, has numbers above text, or has the only whole numbers of eleven lines or more.
    header(header: bool) = Some(header);
    /// The encoding of CSV files by its name, such as `windows-1252`, `latin1` or `utf-16`. Without this it is UTF-8, or
    /// UTF-16 where the file begins with its mark.
    encoding(name: impl Into<String>) = Some(name.into());
    /// The decimal sign of CSV files: a point without this.
    decimal(sign: char) = Some(sign);
    /// The separator of thousands in the numbers of CSV files: none without this.
    thousands(sign: char) = Some(sign);
    /// Lines of CSV files that begin with this are comments: none without this.
    comment(sign: u8) = Some(sign);
    /// The least number of columns of sparse rows in text, of which the last ones may be all zeros: that of a model that is asked. Others
    /// have as many as they name.
    width(columns: usize) = columns;
    /// The folder for what cannot be read at any place, such as a pipe or text that is compressed: that for temporary files without this.
    spool(folder: impl Into<PathBuf>) = Some(folder.into());
    /// A flag that ends reading, also while [`open`](crate::open) goes through the files: from then on every read is an error.
    cancel(cancel: &Cancel) = Some(cancel.clone());
    /// The memory for rows that are read at once, such as lists of sparse rows: files that take more are an error.
    memory(limit: Bytes) = Some(limit.0);
}
