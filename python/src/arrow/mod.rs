//! Tables and streams of the Arrow C data interface as rows.

mod capsule;
mod columns;
mod stream;
mod table;

pub(crate) use stream::Stream;
pub(crate) use table::Table;
