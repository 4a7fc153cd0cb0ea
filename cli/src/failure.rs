//! What goes wrong, in one line.

use std::fmt::Display;
use std::path::Path;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why the command ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The crate says what.
    #[error("{0}")]
    Coremix(#[from] coremix::Error),
    /// A file, and why.
    #[error("{path}: {what}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// Rows that cannot be read.
    #[error("{0}")]
    Rows(String),
    /// Arguments that do not go together.
    #[error("{0}")]
    Arguments(String),
    /// Ctrl-C.
    #[error("interrupted{0}")]
    Interrupted(String),
}

impl Failure {
    pub(crate) fn file(path: &Path, what: impl Display) -> Self {
        let (path, what) = (path.display().to_string(), what.to_string());
        Self::File { path, what }
    }

    /// Rows that cannot be read: the error names the file and the row.
    pub(crate) fn rows(what: &std::io::Error) -> Self {
        Self::Rows(what.to_string())
    }

    pub(crate) fn arguments(what: impl Into<String>) -> Self {
        Self::Arguments(what.into())
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Coremix(coremix::Error::Parameter { .. } | coremix::Error::Unknown { .. })
            | Self::Arguments(_) => 2,
            Self::Coremix(_) | Self::File { .. } | Self::Rows(_) => 1,
            Self::Interrupted(_) => 130,
        }
    }
}
