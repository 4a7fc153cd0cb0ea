//! What can go wrong in a job.

use datafusion::error::DataFusionError;
use std::path::{Path, PathBuf};

/// The error of a job on a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What the core crate refuses: settings of the algorithm, a coreset that cannot be clustered.
    #[error(transparent)]
    Core(#[from] coremix::Error),
    /// A setting of the job that cannot be.
    #[error("{name} = {value}: {rule}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// The value it has.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A column that is missing, of a wrong type, or has values that are not numbers.
    #[error("column `{column}`: {what}")]
    Column {
        /// The name of the column.
        column: String,
        /// What is wrong with it.
        what: String,
    },
    /// The table has no rows.
    #[error("the table has no rows, or lists without numbers: check its path and its filter")]
    Empty,
    /// Rows that a pass over the table could not use, as its functions say it.
    #[error("{0}")]
    Rows(String),
    /// Two passes found different tables.
    #[error("the table changed during the job, and must not: {0}")]
    Changed(String),
    /// The scheduler or an executor does not have the functions of this version.
    #[error(
        "versions differ: this program is coremix-cluster {ours}, {theirs}; \
        run the same version on the scheduler, the executors and the client"
    )]
    Version {
        /// The version of this program.
        ours: &'static str,
        /// What is known of the other side.
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
        /// What the engine says.
        cause: String,
        /// Where the job goes on from, if it writes checkpoints and has written one.
        checkpoint: Option<PathBuf>,
    },
    /// A checkpoint that cannot be read or written, or is one of another job.
    #[error("checkpoint {}: {what}", .path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Any other error of the engine.
    #[error("the engine failed: {0}")]
    Engine(#[source] Box<DataFusionError>),
}

/// The result of a job.
pub type Result<T> = std::result::Result<T, Error>;

fn resume(checkpoint: &Option<PathBuf>) -> String {
    match checkpoint {
        Some(path) => format!(
            "; run the job again to go on from the checkpoint {}",
            path.display()
        ),
        None => String::new(),
    }
}

impl Error {
    pub(crate) fn setting(name: &'static str, value: impl ToString, rule: &'static str) -> Self {
        let value = value.to_string();
        Self::Setting { name, value, rule }
    }

    pub(crate) fn column(column: &str, what: impl ToString) -> Self {
        Self::Column {
            column: column.to_string(),
            what: what.to_string(),
        }
    }

    pub(crate) fn checkpoint(path: &Path, what: impl ToString) -> Self {
        Self::Checkpoint {
            path: path.to_path_buf(),
            what: what.to_string(),
        }
    }

    pub(crate) fn version(theirs: impl Into<String>) -> Self {
        Self::Version {
            ours: crate::VERSION,
            theirs: theirs.into(),
        }
    }

    /// The same with where the job goes on from.
    pub(crate) fn with_checkpoint(self, path: Option<&Path>) -> Self {
        match self {
            Self::Connection { cause, .. } => Self::Connection {
                cause,
                checkpoint: path.filter(|path| path.exists()).map(Path::to_path_buf),
            },
            other => other,
        }
    }
}

/// Engines report what happened elsewhere as text alone, so text is what tells the cases apart.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        let text = error.to_string();
        let unknown = ["is not provided", "There is no UD", "not found in registry"];
        let is_unknown = unknown.iter().any(|words| text.contains(words));
        if text.contains(crate::functions::PREFIX) && is_unknown {
            return Self::version(
                "but the scheduler or an executor is not: its functions are unknown there",
            );
        }
        // A job that failed was answered: then a connection that broke is one between executors.
        let answered = text.contains("Job ") && text.contains("failed:");
        let lost = [
            "Connection refused",
            "tcp connect error",
            "h2 protocol error",
            "error reading a body from connection",
            "connection reset",
            "broken pipe",
            "transport error",
            "connection error",
        ];
        if let Some(cause) = lost
            .iter()
            .find(|words| text.contains(**words) && !answered)
        {
            return Self::Connection {
                cause: cause.to_string(),
                checkpoint: None,
            };
        }
        Self::Engine(Box::new(error))
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
        let unknown = of("There is no UDF named \"coremix_pass_v9_9_9\" in the TaskContext");
        assert!(matches!(unknown, Error::Version { .. }));
        let other = of("There is no UDF named \"median\" in the TaskContext");
        assert!(matches!(other, Error::Engine(_)));
    }
}
