//! The base of everything else: numbers, errors, randomness, threads, small linear algebra.

pub(crate) mod cached;
pub(crate) mod cancel;
pub(crate) mod error;
pub(crate) mod file_fault;
pub(crate) mod fixed;
pub(crate) mod float;
pub(crate) mod gamma;
pub(crate) mod linalg;
pub(crate) mod parallel;
pub(crate) mod rng;
pub(crate) mod serde;
pub(crate) mod share;
pub(crate) mod simd;
pub(crate) mod sort;
pub(crate) mod stage;
