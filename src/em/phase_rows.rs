//! Which rows a phase runs on.

use crate::coreset::Lightweight;
use std::fmt;

/// The rows of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum PhaseRows {
    /// The rows of the builder's coreset. Without a coreset all rows, unless a later phase is on all rows anyway: then this
    /// phase is left out.
    Coreset,
    /// A larger coreset: left out unless it is larger than the one before, and at most a quarter of all rows. A larger one
    /// gains less than an iteration on all rows, and takes longer.
    Larger(Lightweight),
    /// All.
    All,
}

impl fmt::Display for PhaseRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coreset => "the coreset",
            Self::Larger(_) => "a larger coreset",
            Self::All => "all rows",
        })
    }
}
