//! Properties of `coremix` that hold for any bytes.
//!
//! A target takes bytes, makes something of them, and panics if a promise is broken: data and settings, own stages that lie,
//! files, a fit that is stopped and resumed. libFuzzer looks for such bytes (`fuzz/run`). The bytes that it found, and a few
//! that reach much code, are in `fuzz/corpus`: the test of this crate runs them all once.

mod bits;
mod bytes;
mod damage;
mod estimators;
mod fit;
mod liars;
pub mod memory;
mod readers;
mod resume;
mod sound;
mod stages;
mod table;
mod threads;

/// A function that panics if bytes break a promise.
pub type Target = fn(&[u8]);

/// The targets, by the names of their folders in `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 4] = [
    ("fit", fit::run),
    ("readers", readers::run),
    ("resume", resume::run),
    ("stages", stages::run),
];

/// Runs a target on one thread, so that what it does depends on the bytes alone.
pub fn run(target: Target, bytes: &[u8]) {
    threads::on(1, || target(bytes));
}
