//! Sums over blocks of rows.

mod accumulate;
pub(crate) mod completed;
mod dense_products;
mod dense_sums;
pub(crate) mod moments;
#[cfg(test)]
mod moments_tests;
mod outer;
