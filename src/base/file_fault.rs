//! Faults of a file of a model, or of a checkpoint.

use std::io;

/// The fault of a file of a model or a checkpoint, or why there is none: the cause of
/// [`Error::Model`](crate::Error::Model) and [`Error::Checkpoint`](crate::Error::Checkpoint).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The file cannot be read or written; what the system says.
    #[error("{message}")]
    System {
        /// The kind of the error.
        kind: io::ErrorKind,
        /// Its message.
        message: String,
    },
    /// No such file of this crate: other bytes at the start.
    #[error("not a file of coremix: it begins with other bytes; check the path")]
    Foreign,
    /// The file ends too early.
    #[error("truncated: it ends too early; restore it or write it anew")]
    Truncated,
    /// The checksum is not that of the bytes: the file was damaged.
    #[error("damaged: its checksum is wrong; restore it or write it anew")]
    Checksum,
    /// There is more in the file after its end.
    #[error("damaged: it goes on after its end; restore it or write it anew")]
    Longer,
    /// The format of a later version of the crate, or none.
    #[error(
        "format {found}, but this version of the crate knows formats 1 to {known} alone; \
         use the version that wrote it, or a later one"
    )]
    Version {
        /// The format of the file.
        found: u32,
        /// The latest one that is known here.
        known: u32,
    },
    /// A model of another family.
    #[error("a model of the family {found}, but one of {expected} is needed here")]
    Family {
        /// The family asked for.
        expected: &'static str,
        /// The family of the file.
        found: String,
    },
    /// A model in another number type.
    #[error(
        "a model in {found}, but {expected} is needed here: a model and its rows have one number type"
    )]
    Number {
        /// The type asked for.
        expected: &'static str,
        /// The type of the file.
        found: String,
    },
    /// Whole and undamaged, but with numbers that no such file has.
    #[error(
        "not as this crate writes it: section \"{section}\" {rule}; restore it or write it anew"
    )]
    Content {
        /// The section.
        section: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// Boxed models of a family from outside the crate cannot be saved.
    #[error("boxed models of this family cannot be saved: save them with their type")]
    NoFormat,
    /// A checkpoint of another fit: other data, another setting or another version of the crate.
    #[error(
        "of another fit: {what} is {found}, but that of this fit is {expected}; \
         use what that fit used, or remove the file to begin anew"
    )]
    OtherFit {
        /// The setting that differs.
        what: String,
        /// Its value in this fit.
        expected: String,
        /// Its value in the checkpoint.
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
