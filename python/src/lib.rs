//! The native part of the Python package `coremix`: arrays, tables and scans of files in, fits and models out.
//!
//! The interface that scikit-learn asks of an estimator is in Python (`python/coremix`). Here is what needs the core: rows without a copy,
//! fits that can be interrupted, models, and the sums of partitions.
//!
//! It needs no GIL, which free-threaded Python does not have. Models and tables never change. A stream is borrowed by one thread at
//! a time; others get an error meanwhile. Global are only the thread pools, behind a lock that no thread holds while it runs Python.
//! Arrays are read as borrowed (the crate `numpy` counts that under a lock), also where the GIL is released. Capsules of Arrow are
//! emptied under the lock of the object.

mod arrow;
mod asked;
mod bytes;
mod clusters;
mod csr;
mod distances;
mod distinct;
mod errors;
mod family;
mod fit;
mod fitted;
mod input;
mod memory;
mod model;
mod partition;
mod predictor;
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
#[pymodule(gil_used = false)]
mod _coremix {
    #[pymodule_export]
    use super::arrow::{Arrow, Table};
    #[pymodule_export]
    use super::clusters::take;
    #[pymodule_export]
    use super::csr::Csr;
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::fitted::Model;
    #[pymodule_export]
    use super::input::Missing;
    #[pymodule_export]
    use super::partition::{describe, merge, sample, stats, update};
    #[pymodule_export]
    use super::predictor::Predictor;
    #[pymodule_export]
    use super::scan::Scan;
    #[pymodule_export]
    use super::settings::settings;
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::sweep::sweep;

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "a name of Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
