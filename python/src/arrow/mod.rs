//! The Arrow C data interface: tables and streams as rows, and results as columns.

mod capsule;
mod columns;
mod out;
mod stream;
mod table;

pub(crate) use out::Arrow;
pub(crate) use stream::Stream;
pub(crate) use table::Table;
