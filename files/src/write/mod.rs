//! What is written: labels and other results, rows; as `.npy` and as Parquet.

mod npy;
mod output;
mod parquet;

pub use npy::{NpyNumber, NpyWriter};
pub use parquet::ParquetWriter;
