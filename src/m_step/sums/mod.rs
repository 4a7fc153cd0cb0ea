//! Sums over blocks of rows.

mod accumulate;
pub(crate) mod completed;
mod dense_products;
mod dense_sums;
mod merge;
pub(crate) mod moments;
#[cfg(test)]
mod moments_tests;
mod moved;
mod outer;
pub(crate) mod products;
pub(crate) mod scatter;
mod sparse;
mod sparse_sums;
