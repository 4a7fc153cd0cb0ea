//! Failures of the command, in one line each.

use coremix::Error;
use std::fmt::Display;
use std::path::Path;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why the command ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The crate says what.
    #[error("{}", in_options(.0))]
    Coremix(#[from] coremix::Error),
    /// A file, and why.
    #[error("{path}: {what}")]
    File { path: String, what: String },
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
        let path = path.display().to_string();
        let what = what.to_string();
        Self::File { path, what }
    }

    /// Rows that cannot be read: the error names the file and the row.
    pub(crate) fn rows(what: &std::io::Error) -> Self {
        Self::Rows(what.to_string())
    }

    /// About rows whose columns have these names.
    pub(crate) fn naming(error: Error, columns: &[String]) -> Self {
        match error.naming(columns) {
            Some(message) => Self::Rows(message),
            None => error.into(),
        }
    }

    pub(crate) fn arguments(what: impl Into<String>) -> Self {
        Self::Arguments(what.into())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Coremix(
                Error::Parameter { .. } | Error::Unknown { .. } | Error::Setting { .. },
            )
            | Self::Arguments(_) => 2,
            Self::Coremix(_) | Self::File { .. } | Self::Rows(_) => 1,
            Self::Interrupted(_) => 130,
        }
    }
}

/// Settings that are options, with hyphens.
const OPTIONS: [&str; 12] = [
    "coreset",
    "covariance",
    "factors",
    "ridge",
    "c_prime",
    "neighbors",
    "concentration",
    "tolerance",
    "max_iterations",
    "restarts",
    "held_out",
    "memory",
];

/// The message of the crate, with the options of the command in place of its settings.
fn in_options(error: &Error) -> String {
    let option = |name: &str| {
        let others = match name {
            "columns" => "--counts or --categories",
            "q" => "--coordinates",
            "prior" => "--prior-rows, --prior-proportions or --ridge",
            "prior rows" => "--prior-rows",
            "prior rows of proportions" => "--prior-proportions",
            "prior variance" => "--prior-variance",
            _ => "",
        };
        let is_one = OPTIONS.contains(&name);
        let hyphens = || format!("--{}", name.replace('_', "-"));
        match others {
            "" => is_one.then(hyphens),
            others => Some(others.to_string()),
        }
    };
    match error {
        Error::Parameter { name, value, rule } => match option(name) {
            Some(option) => format!("{option} {value}: {rule}"),
            None => error.to_string(),
        },
        Error::Setting {
            algorithm,
            setting,
            of: algorithms,
            ..
        } => {
            // If gmm has the setting, it is named first: it is the plainest.
            let mut algorithms = algorithms.clone();
            algorithms.sort_by_key(|name| *name != "gmm");
            let option = option(setting).unwrap_or(setting.to_string());
            let others = match algorithms.split_off(1.min(algorithms.len())) {
                others if others.is_empty() => String::new(),
                others if others.len() == 1 => format!(" or {}", others[0]),
                others => format!(", or one of {}", others.join(", ")),
            };
            format!(
                "{algorithm} has no {option}: take -a {}{others}",
                algorithms.concat()
            )
        }
        _ => error.to_string(),
    }
}
