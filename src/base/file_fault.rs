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
    /// Boxed models of a family from outside the crate cannot be saved.
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
            Self::Foreign => {
                f.write_str("not a file of coremix: it begins with other bytes; check the path")
            }
            Self::Truncated => {
                f.write_str("truncated: it ends too early; restore it or write it anew")
            }
            Self::Checksum => {
                f.write_str("damaged: its checksum is wrong; restore it or write it anew")
            }
            Self::Longer => {
                f.write_str("damaged: it goes on after its end; restore it or write it anew")
            }
            Self::Version { found, known } => write!(
                f,
                "format {found}, but this version of the crate knows formats 1 to {known} alone; \
                 use the version that wrote it, or a later one"
            ),
            Self::Family { expected, found } => write!(
                f,
                "a model of the family {found}, but one of {expected} is needed here"
            ),
            Self::Number { expected, found } => write!(
                f,
                "a model in {found}, but {expected} is needed here: \
                 a model and its rows have one number type"
            ),
            Self::Content { section, rule } => write!(
                f,
                "not as this crate writes it: section \"{section}\" {rule}; \
                 restore it or write it anew"
            ),
            Self::NoFormat => f.write_str(
                "boxed models of this family cannot be saved: save them with their type",
            ),
            Self::OtherFit {
                what,
                expected,
                found,
            } => write!(
                f,
                "of another fit: {what} is {found}, but that of this fit is {expected}; \
                 use what that fit used, or remove the file to begin anew"
            ),
        }
    }
}
