//! Rows of files as data for [`coremix`]: Parquet, Arrow, CSV and others are read block by block, never as a whole.
//!
//! [`open`] opens files of any format. [`ParquetFile`], [`ArrowFile`], [`CsvFile`], [`NpyFile`], [`VectorFile`] and [`Spool`] are sources of one
//! kind each; [`Blocks`](coremix::data::Blocks) makes data of a source, for every algorithm. Fits are those of the same
//! rows in memory, bit for bit. [`ReadAhead`] reads while others compute.
//! [`NpyWriter`] and [`LabelWriter`] write labels, block by block. [`Room`] says whether rows and their fit have room in a limit of
//! memory.
//!
#![doc = include_str!("../docs/formats.md")]

#[cfg(target_endian = "big")]
compile_error!("numbers of files are read as little-endian");

/// A chapter of the guide: its Rust is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/src/bigger-than-memory.md")]
struct Guide;

mod batch;
mod bytes;
mod cells;
mod choice;
mod csv;
mod fault;
mod format;
mod frame;
mod ids;
mod ipc;
mod keys;
mod missing;
mod npy;
mod npz;
mod numbers;
mod open;
mod options;
mod parquet;
mod part;
mod partitions;
mod paths;
mod plain;
mod pool;
mod read_ahead;
mod room;
mod sketch;
mod source;
mod sparse;
mod spool;
mod svmlight;
mod table;
mod texts;
mod times;
mod vectors;
mod write;

pub use bytes::Bytes;
pub use choice::AS_CATEGORY;
pub use csv::CsvFile;
pub use format::{Format, VectorFormat};
pub use frame::Frame;
pub use ids::{column_names, column_texts, row_names, texts_note};
pub use ipc::ArrowFile;
pub use keys::Keys;
pub use missing::Found;
pub use npy::NpyFile;
pub use numbers::{ALLOW, ElementType, Number};
pub use open::{AnySource, KeyColumns, Opened, open, open_all};
pub use options::{Missing, Options};
pub use parquet::ParquetFile;
pub use paths::files_of;
pub use pool::{drop_decoders, most_threads};
pub use read_ahead::ReadAhead;
pub use room::Room;
pub use sketch::{sketch, sketch_bytes};
pub use source::{InMemory, Rows};
pub use spool::{Batches, Spool};
pub use table::{OnDisk, ReadAt};
pub use vectors::VectorFile;
#[doc(hidden)]
pub use write::Output as WholeFile;
pub use write::{LabelWriter, NpyNumber, NpyWriter, RowWriter, Values};
