//! Scores that compare a clustering with something known: true classes, true centres, or a reference solution.
//!
//! [`purity`], [`accuracy`], [`nmi`] and [`adjusted_rand_index`] compare two labellings of the same `n` points. Labels
//! are names only: any `u32` values, in any order, with gaps. The cost is `O(n log n)` time and `O(n)` memory whatever
//! the values are; [`accuracy`] costs a matching as well. [`matched_rmse`] compares two sets of centres whose order means
//! nothing, [`relative_error`] two quantization errors.
//!
//! All scores are unitless, except [`matched_rmse`], which has the unit of the data.

pub(crate) mod assignment;
mod contingency;
mod errors;
mod labels;
#[cfg(test)]
mod least_cost;
mod matched;

pub use errors::relative_error;
pub use labels::{adjusted_rand_index, nmi, purity};
pub use matched::{accuracy, matched_rmse};
