//! The native part of the Python package `coremix`: arrays, tables and scans of files in, fits and models out.
//!
//! What scikit-learn asks of an estimator is in Python (`python/coremix`). Here is what needs the core: rows without a copy,
//! fits that can be interrupted, models, and the sums of partitions.

mod arrow;
mod asked;
mod clusters;
mod distances;
mod distinct;
mod errors;
mod family;
mod fit;
mod input;
mod memory;
mod model;
mod partition;
mod progress;
mod report;
mod scan;
mod settings;
mod stream;
mod strided;
mod sweep;
mod threads;
mod watch;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _coremix {
    #[pymodule_export]
    use super::arrow::Table;
    #[pymodule_export]
    use super::clusters::take;
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::partition::{describe, merge, sample, stats, update};
    #[pymodule_export]
    use super::scan::Scan;
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::sweep::sweep;

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "a name of Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
