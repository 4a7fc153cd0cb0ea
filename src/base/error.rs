//! The one error type of the crate: what was wrong, where, and the rule it broke.

use crate::base::file_fault::FileFault;

/// `Result` with the crate's [`Error`], unless another one is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong. Variants carry fields, not prose, so that callers can match on causes.
///
/// Not converging is no error: it is a [`Stop`](crate::Stop) reason in the report.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A stage broke its rules.
    #[error("{stage}: {what}")]
    Stage {
        /// The name of the stage's type.
        stage: &'static str,
        /// The fault, and the rule.
        what: String,
    },
    /// A file that cannot be opened, or does not hold what it must.
    #[error("{path}: {what}")]
    File {
        /// The file.
        path: String,
        /// The fault, and the rule.
        what: String,
    },
    /// A fit was [cancelled](crate::Cancel) before its first search was done.
    #[error("cancelled before the first search was done, so there is no model")]
    Cancelled,
    /// An array has no rows or no columns.
    #[error("{what}: empty, but at least one row and one column are needed")]
    Empty {
        /// Which input.
        what: &'static str,
    },
    /// Two inputs that belong together differ in length.
    #[error("{what}: length {found}, but {expected} expected")]
    LengthMismatch {
        /// Which input.
        what: &'static str,
        /// The length it must have.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// An input has another number of columns than the data or the model.
    #[error("{what}: {found} columns, but {expected} expected")]
    DimensionMismatch {
        /// Which input.
        what: &'static str,
        /// The number of columns it must have.
        expected: usize,
        /// The number of columns it has.
        found: usize,
    },
    /// A sketch in other coordinates than those of the model: it can only be scored by a model that was fitted on a
    /// sketch with the same seed and transform.
    #[error(
        "data: it is in the coordinates of {found}, but the model is in those of {expected}; \
         make the sketch with the transform and the seed of the one that was fitted"
    )]
    BasisMismatch {
        /// The coordinates of the model.
        expected: String,
        /// The coordinates of the data.
        found: String,
    },
    /// A NaN or an infinity.
    #[error(
        "{what}: row {row}, column {column} is NaN or infinite; every value must be finite{}",
        if *what == "data" { ", or NaN in data with missing values" } else { "" }
    )]
    NotFinite {
        /// Which input.
        what: &'static str,
        /// Row of the first such value, from 0.
        row: usize,
        /// Column of the first such value, from 0.
        column: usize,
    },
    /// A finite value so large that sums over the data would overflow.
    #[error(
        "{what}: row {row}, column {column} is {value:e}; its size must not exceed {limit:e}: \
         use a larger unit"
    )]
    TooLarge {
        /// Which input.
        what: &'static str,
        /// Row of the first such value, from 0.
        row: usize,
        /// Column of the first such value, from 0.
        column: usize,
        /// The value.
        value: f64,
        /// The largest size allowed for this type.
        limit: f64,
    },
    /// A number that is none of its [kind of column](crate::families::Column).
    #[error("data: row {row}, column {column} is {}; it must be {kind}", brief(*value))]
    NotOfKind {
        /// Row of the first such number, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
        /// The number.
        value: f64,
        /// All that the column takes.
        kind: &'static str,
    },
    /// A row so far from the others that the number type cannot have differences of both sizes.
    #[error(
        "data: row {row} is {distance:.1e} from others that differ by about {others:.1e}; the number type cannot resolve both \
         differences: remove the row, or scale it"
    )]
    TooFar {
        /// The row, from 0.
        row: usize,
        /// How far it is from the others.
        distance: f64,
        /// How far these are from one another.
        others: f64,
    },
    /// A weight that is negative, NaN or infinite.
    #[error("weight of row {row} is {}; weights must be finite and not negative", brief(*value))]
    Weight {
        /// Row of the first such weight, from 0.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// The weights add up to nothing, or to so little or so much that sums over the data would not be finite.
    #[error(
        "the weights sum to {total:e}; the sum must be between 1e-290 and 1e290: \
         weights of about 1 are best, and not all may be 0"
    )]
    TotalWeight {
        /// The sum.
        total: f64,
    },
    /// More clusters than rows of positive weight to seed them from.
    #[error(
        "{clusters} clusters asked for, but the {rows_of} has only {rows} rows of positive weight: \
         ask for fewer clusters, or use more rows"
    )]
    TooManyClusters {
        /// The number of clusters asked for.
        clusters: usize,
        /// Rows of positive weight.
        rows: usize,
        /// `"data"`, `"coreset"`, or another name of these rows.
        rows_of: &'static str,
    },
    /// A setting outside its range.
    #[error("{name} = {value}: {rule}")]
    Parameter {
        /// The setting, as the builder names it.
        name: &'static str,
        /// Its value.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A name that is not on a list.
    #[error("{name} is no {what}: choose from {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The rule for it.
        what: String,
        /// The list.
        known: String,
    },
    /// A setting that an algorithm does not have.
    #[error(
        "{algorithm} has no setting `{setting}`; it has {}. `{setting}` is a setting of {}",
        has.join(", "),
        of.join(", ")
    )]
    Setting {
        /// The algorithm.
        algorithm: &'static str,
        /// The setting.
        setting: &'static str,
        /// The settings that it has, besides those that all have.
        has: Vec<&'static str>,
        /// The algorithms that have this setting.
        of: Vec<&'static str>,
    },
    /// A saved model that cannot be written or read.
    #[error("{path}: {fault}")]
    Model {
        /// The path of the file; `saved model` for bytes that come from no file.
        path: String,
        /// The fault.
        fault: FileFault,
    },
    /// A [checkpoint](crate::Checkpoint) that cannot be written, or that the fit cannot go on from.
    #[error("checkpoint {path}: {fault}")]
    Checkpoint {
        /// The path of the file.
        path: String,
        /// The fault.
        fault: FileFault,
    },
}

/// In the words of `Display`: a `main` that returns an error prints it so.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// A [`Error::Stage`]: what the stage of this name did, and the rule.
    pub(crate) fn stage(stage: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        Self::Stage { stage, what }
    }

    /// The message with the name of the column in place of its number; `None` if it is about no column that has a name here.
    #[must_use]
    pub fn naming(&self, columns: &[String]) -> Option<String> {
        let (Self::NotFinite { column, .. }
        | Self::TooLarge { column, .. }
        | Self::NotOfKind { column, .. }) = self
        else {
            return None;
        };
        let number = format!("column {column}");
        let name = columns.get(*column)?;
        let message = self.to_string();
        Some(message.replacen(&number, &format!("column {name:?}"), 1))
    }

    pub(crate) fn unknown(name: &str, what: &str, known: &str) -> Self {
        let [name, what, known] = [name, what, known].map(str::to_owned);
        Self::Unknown { name, what, known }
    }

    pub(crate) fn parameter(
        name: &'static str,
        value: impl std::fmt::Display,
        rule: &'static str,
    ) -> Self {
        let text = value.to_string();
        // A number of very many digits.
        let long = text.parse().ok().filter(|_| text.len() > 24);
        let value = long.map_or(text, brief);
        Self::Parameter { name, value, rule }
    }
}

/// A number without the zeros of a very large or small one.
fn brief(x: f64) -> String {
    format!("{x:?}").trim_end_matches(".0").to_owned()
}

pub(crate) fn ensure(holds: bool, wrong: impl FnOnce() -> Error) -> Result<()> {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// `Ok` if a setting keeps its rule.
pub(crate) fn require(
    holds: bool,
    name: &'static str,
    value: impl std::fmt::Display,
    rule: &'static str,
) -> Result<()> {
    ensure(holds, || Error::parameter(name, value, rule))
}

/// The number of rows of `columns` numbers each among `numbers` that lie one after the other.
pub(crate) fn whole_rows(what: &'static str, numbers: usize, columns: usize) -> Result<usize> {
    ensure(columns > 0, || Error::Empty { what })?;
    let rows = numbers / columns;
    let holds = rows * columns == numbers;
    let rule = "must divide the number of values, as these are whole rows";
    let value = format_args!("{columns}, of {numbers} values");
    require(holds, "columns", value, rule).map(|()| rows)
}

/// `Ok` if two inputs that belong together are as long.
pub(crate) fn same_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    ensure(expected == found, || Error::LengthMismatch {
        what,
        expected,
        found,
    })
}

/// `Ok` if an input has as many columns as the data or the model.
pub(crate) fn same_columns(what: &'static str, expected: usize, found: usize) -> Result<()> {
    ensure(expected == found, || Error::DimensionMismatch {
        what,
        expected,
        found,
    })
}

/// `Ok` if a row may have this weight.
pub(crate) fn sound_weight(row: usize, value: f64) -> Result<()> {
    let sound = value.is_finite() && value >= 0.0;
    ensure(sound, || Error::Weight { row, value })
}

/// A value of a row that is finite, and whose size is at most `limit`.
pub(crate) fn sound_value(
    what: &'static str,
    (row, column): (usize, usize),
    value: f64,
    limit: f64,
) -> Result<()> {
    ensure(value.is_finite(), || Error::NotFinite { what, row, column })?;
    ensure(value.abs() <= limit, || Error::TooLarge {
        what,
        row,
        column,
        value,
        limit,
    })
}

/// The sum of all weights, if sums over the data stay finite and normal with it.
pub(crate) fn sound_total(total: f64) -> Result<f64> {
    let sound = (1e-290..=1e290).contains(&total);
    ensure(sound, || Error::TotalWeight { total }).map(|()| total)
}

/// `Ok` if a setting is finite and not negative.
pub(crate) fn not_negative(name: &'static str, value: f64) -> Result<()> {
    let holds = value.is_finite() && value >= 0.0;
    require(holds, name, value, "must be finite and not negative")
}

/// `Ok` if a count that must be positive is.
pub(crate) fn positive(name: &'static str, value: usize) -> Result<()> {
    require(value > 0, name, value, "must be at least 1")
}
