//! What can be wrong with a file of a model, or with a checkpoint.

use std::fmt;
use std::io;

/// What is wrong with the file of a model or a checkpoint, or why there is none: the cause of
/// [`Error::Model`](crate::Error::Model) and [`Error::Checkpoint`](crate::Error::Checkpoint).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFault {
    /// The file cannot be read or written; what the system says.
    System {
        /// The kind of the error.
        kind: io::ErrorKind,
        /// Its message.
        message: String,
    },
    /// No such file of this crate: other bytes at the start.
    Foreign,
    /// The file ends too early.
    Truncated,
    /// The checksum is not that of the bytes: the file was damaged.
    Checksum,
    /// There is more in the file after its end.
    Longer,
    /// The format of a later version of the crate, or none.
    Version {
        /// The format of the file.
        found: u32,
        /// The latest one that is known here.
        known: u32,
    },
    /// A model of another family.
    Family {
        /// The family asked for.
        expected: &'static str,
        /// The family of the file.
        found: String,
    },
    /// A model in another number type.
    Number {
        /// The type asked for.
        expected: &'static str,
        /// The type of the file.
        found: String,
    },
    /// Whole and undamaged, but with numbers that no such file has.
    Content {
        /// The section.
        section: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// Models of this family cannot be saved.
    NoFormat,
    /// A checkpoint of another fit: other data, another setting or another version of the crate.
    OtherFit {
        /// What differs.
        what: String,
        /// That of this fit.
        expected: String,
        /// That of the checkpoint.
        found: String,
    },
}

impl From<io::Error> for FileFault {
    fn from(error: io::Error) -> Self {
        Self::System {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { message, .. } => f.write_str(message),
            Self::Foreign => f.write_str("not a file of coremix: other bytes at its start"),
            Self::Truncated => f.write_str("truncated: it ends too early"),
            Self::Checksum => f.write_str("damaged: the checksum differs"),
            Self::Longer => f.write_str("there is more in it after its end"),
            Self::Version { found, known } => write!(
                f,
                "format {found}, but only formats 1 to {known} are known to this version of the crate"
            ),
            Self::Family { expected, found } => {
                write!(f, "a model of the family {found}, but {expected} expected")
            }
            Self::Number { expected, found } => {
                write!(f, "a model in {found}, but {expected} expected")
            }
            Self::Content { section, rule } => write!(f, "section \"{section}\" {rule}"),
            Self::NoFormat => f.write_str("models of this family cannot be saved"),
            Self::OtherFit {
                what,
                expected,
                found,
            } => write!(
                f,
                "of another fit: {what} is {found}, but that of this fit is {expected}"
            ),
        }
    }
}
