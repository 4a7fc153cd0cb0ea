//! Writing labels, other results and rows.

mod labels;
mod npy;
mod output;
mod rows;

pub use labels::LabelWriter;
pub use npy::{NpyNumber, NpyWriter};
pub use output::Output;
pub use rows::{RowWriter, Values};
