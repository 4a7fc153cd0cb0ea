//! The Arrow C data interface: tables as rows, and results as columns.

mod capsule;
mod columns;
mod out;
mod table;

pub(crate) use out::Arrow;
pub(crate) use table::Table;
