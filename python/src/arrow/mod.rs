//! Tables of the Arrow C data interface as rows.

mod capsule;
mod columns;
mod table;

pub(crate) use table::Table;
