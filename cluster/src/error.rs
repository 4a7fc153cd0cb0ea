//! Errors of jobs.

use datafusion::error::DataFusionError;
use std::path::PathBuf;

/// The error of a job on a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the core crate: settings, also those of a job, or a coreset that cannot be clustered.
    #[error(transparent)]
    Core(#[from] coremix::Error),
    /// A column that is missing, of a wrong type, or has values that are not numbers.
    #[error("column `{column}`: {what}")]
    Column {
        /// The name of the column, or of several.
        column: String,
        /// A description of the fault.
        what: String,
    },
    /// The table has no rows.
    #[error("the table has no rows, or lists without numbers: check its path and its filter")]
    Empty,
    /// Two passes found different tables.
    #[error(
        "the table changed during the job, and must not: {before} rows at first, {after} later"
    )]
    Changed {
        /// Rows in the first pass.
        before: u64,
        /// Rows in a later one.
        after: u64,
    },
    /// The scheduler or an executor does not have the functions of this version.
    #[error(
        "versions differ: this program is coremix-cluster {}, but {theirs}; \
        run the same version on the scheduler, the executors and the client",
        crate::VERSION
    )]
    Version {
        /// The version of the other side, as far as it is known.
        theirs: String,
    },
    /// The model is too large for one message.
    #[error(
        "a message of {bytes} bytes is above the limit of {limit}: raise the message limit of the scheduler, \
        the executors and the client"
    )]
    MessageSize {
        /// The size it would have.
        bytes: usize,
        /// The limit of the client.
        limit: usize,
    },
    /// The scheduler cannot be reached, or went away during a pass.
    #[error("the scheduler cannot be reached, or went away: {cause}{}", resume(.checkpoint))]
    Connection {
        /// The message of the engine.
        cause: String,
        /// Where the job goes on from, if it writes checkpoints and has written one.
        checkpoint: Option<PathBuf>,
    },
    /// A checkpoint that cannot be read or written, or is one of another job.
    #[error("checkpoint {}: {what}", .path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// A description of the fault.
        what: String,
    },
    /// Any other error of the engine.
    #[error("the engine failed: {0}")]
    Engine(#[source] Box<DataFusionError>),
}

/// The result of a job.
pub type Result<T> = std::result::Result<T, Error>;

fn resume(checkpoint: &Option<PathBuf>) -> String {
    let way = "; run the job again to go on from the checkpoint";
    let way = |path: &PathBuf| format!("{way} {}", path.display());
    checkpoint.as_ref().map_or_else(String::new, way)
}

impl Error {
    /// A setting of the job that cannot be.
    pub(crate) fn setting(name: &'static str, value: impl ToString, rule: &'static str) -> Self {
        let value = value.to_string();
        coremix::Error::Parameter { name, value, rule }.into()
    }

    pub(crate) fn column(column: &str, what: impl Into<String>) -> Self {
        let (column, what) = (column.to_string(), what.into());
        Self::Column { column, what }
    }

    pub(crate) fn version(theirs: impl Into<String>) -> Self {
        let theirs = theirs.into();
        Self::Version { theirs }
    }

    /// The result belongs to another pass than the one that was asked for.
    pub(crate) fn other_pass() -> Self {
        Self::version("what came back is no result of it")
    }
}

/// Engines report what happened elsewhere as text alone, so text is what tells the cases apart.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        let text = error.to_string();
        let has =
            |words: &[&'static str]| words.iter().copied().find(|words| text.contains(*words));
        let unknown = has(&["is not provided", "There is no UD", "not found in registry"]);
        if unknown.is_some() && text.contains(crate::functions::PREFIX) {
            let theirs = "the scheduler or an executor is not: its functions are unknown there";
            return Self::version(theirs);
        }
        let lost = has(&[
            "Connection refused",
            "tcp connect error",
            "h2 protocol error",
            "error reading a body from connection",
            "connection reset",
            "broken pipe",
            "transport error",
            "connection error",
        ]);
        // A job that failed was answered: then a connection that broke is one between executors.
        let answered = text.contains("Job ") && text.contains("failed:");
        match lost {
            Some(cause) if !answered => Self::Connection {
                cause: cause.to_string(),
                checkpoint: None,
            },
            _ => Self::Engine(Box::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Error {
        DataFusionError::Execution(text.to_string()).into()
    }

    #[test]
    fn the_text_of_an_engine_tells_the_cases_apart() {
        let lost = of("status: Unknown, message: \"h2 protocol error: error reading a body\"");
        assert!(matches!(lost, Error::Connection { .. }));
        let between = of("Job x1 failed: transport error: Connection refused");
        assert!(matches!(between, Error::Engine(_)));
        let unknown = of("There is no UDAF named \"coremix_pass_v9_9_9\" in the TaskContext");
        assert!(matches!(unknown, Error::Version { .. }));
        let other = of("There is no UDF named \"median\" in the TaskContext");
        assert!(matches!(other, Error::Engine(_)));
    }
}
