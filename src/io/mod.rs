//! Files: a container, how it is replaced as a whole, the header of a model, and checks of values.

mod atomic;
#[cfg_attr(not(feature = "files"), path = "absent.rs")]
mod codec;
mod container;
mod fault;
mod info;
mod values;

pub(crate) use crate::base::file_fault::FileFault;
pub(crate) use atomic::{prepare, replace};
pub(crate) use codec::serde_through;
pub(crate) use container::{
    CHECKPOINT, Contents, MODEL, SUMS, checksum, fields, hash_of, lines, only, put, read_file,
    take, to_vec, write_to,
};
pub use info::ModelInfo;
pub(crate) use values::{all_counts, all_finite, all_positive, rule};
