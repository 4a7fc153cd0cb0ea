//! Writing labels, other results and rows.

mod labels;
mod npy;
mod output;

pub use labels::LabelWriter;
pub use npy::{NpyNumber, NpyWriter};
pub use output::Output;
