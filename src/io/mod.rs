//! Models as files: everything a model is made of, bit for bit, in a format that describes itself (`docs/model-file.md`).
//! Checkpoints of fits have the same format, with other first bytes and sections (`docs/checkpoint-file.md`).

mod atomic;
mod checksum;
mod fault;
mod info;
pub(crate) mod models;
pub(crate) mod numbers;
mod read;
mod sections;
#[cfg(feature = "serde")]
mod with_serde;
mod write;

pub(crate) use crate::base::file_fault::FileFault;
pub(crate) use atomic::prepare;
pub(crate) use checksum::Crc64;
pub use info::ModelInfo;
pub(crate) use numbers::Number;
pub(crate) use read::{Common, Reader, finite};
pub(crate) use sections::{FileKind, Sections, Stream, write};
pub(crate) use write::model;

use crate::base::error::{Error, Result};
use crate::data::Basis;
use info::{PREFIX, Prefix};
use std::io::{Read, Write};
use std::path::Path;

/// The files of models.
const MODEL: FileKind = FileKind {
    magic: *b"\x89coremix\r\n\x1a\n",
    version: 1,
};

/// Checkpoints of fits (`docs/checkpoint-file.md`).
pub(crate) const CHECKPOINT: FileKind = FileKind {
    magic: *b"\x89coremck\r\n\x1a\n",
    version: 1,
};

/// A model that can be saved, and loaded again.
///
/// A model that comes back is the same, bit for bit: so are its means, predictions, densities and samples, with the same
/// build on the same CPU. All families of the crate are `Save`, and so are
/// [boxed models](crate::BoxedMixture), which load any family; [`load_model`](crate::load_model) is short for those.
/// The format is described in `docs/model-file.md`. Files of this version can be loaded by all later ones.
///
/// ```
/// use coremix::m_step::GaussianMixture;
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// # let path = std::env::temp_dir().join(format!("coremix-save-{}", std::process::id()));
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let model = algorithms::gmm(25).build()?.fit(&data)?.model;
/// model.save(&path)?;
///
/// let loaded = GaussianMixture::<f32>::load(&path)?; // of this family
/// assert_eq!(loaded, model);
/// let loaded = coremix::load_model::<f32>(&path)?; // of whatever family it is
/// assert_eq!(loaded.predict(&data)?, model.predict(&data)?);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), Error>(())
/// ```
pub trait Save: Sized {
    /// The model as the bytes of a file. `notes` are names and values for whoever reads the header
    /// ([`ModelInfo`]), such as the algorithm, its settings and its seed.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a note whose name has other signs than letters, digits, `_`, `-` and `.`, or whose
    /// value is not one line. [`Error::Model`] for a boxed model of a family of your own.
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>>;

    /// A model from the bytes of a file.
    ///
    /// # Errors
    /// [`Error::Model`], with the cause: not a whole and undamaged file of a model, another family, another number
    /// type, or values that no model has.
    fn from_bytes(bytes: &[u8]) -> Result<Self>;

    /// Saves the model as a file. The file is there as a whole or not at all: it is written beside `path` and then takes
    /// its place, so a full disk or a crash leaves an older file as it was.
    ///
    /// # Errors
    /// [`Error::Model`] if the file cannot be written.
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with_notes(path, &[])
    }

    /// The same with notes, as in [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// As [`save`](Self::save) and [`to_bytes`](Self::to_bytes).
    fn save_with_notes(&self, path: impl AsRef<Path>, notes: &[(&str, &str)]) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes(notes).map_err(|error| at(error, path))?;
        atomic::write(path, &bytes).map_err(|error| FileFault::from(error).at(path))
    }

    /// Loads a model from a file.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes); [`Error::Model`] if the file cannot be read.
    fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_file(&MODEL, path).map_err(|fault| fault.at(path))?;
        Self::from_bytes(&bytes).map_err(|error| at(error, path))
    }

    /// Writes the model, with notes as in [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`Error::Model`] if it cannot be written; as [`to_bytes`](Self::to_bytes).
    fn write_to(&self, mut to: impl Write, notes: &[(&str, &str)]) -> Result<()> {
        let bytes = self.to_bytes(notes)?;
        let written = to.write_all(&bytes).and_then(|()| to.flush());
        written.map_err(|error| FileFault::from(error).of_bytes())
    }

    /// Reads a model, and nothing beyond its end.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes); [`Error::Model`] if it cannot be read.
    fn read_from(from: impl Read) -> Result<Self> {
        Self::from_bytes(&read_one(&MODEL, from).map_err(FileFault::of_bytes)?)
    }
}

/// The bytes of a whole file of this kind. One of another kind is not read to its end.
pub(crate) fn read_file(kind: &FileKind, path: &Path) -> std::result::Result<Vec<u8>, FileFault> {
    let mut file = std::fs::File::open(path)?;
    let bytes = read_one(kind, &mut file)?;
    match file.take(1).read_to_end(&mut Vec::new())? {
        0 => Ok(bytes),
        _ => Err(FileFault::Longer),
    }
}

/// The bytes of one file; its start says how many they are. Memory grows as they come.
fn read_one(kind: &FileKind, mut from: impl Read) -> std::result::Result<Vec<u8>, FileFault> {
    let mut bytes = Vec::new();
    from.by_ref().take(PREFIX as u64).read_to_end(&mut bytes)?;
    let prefix = Prefix::of(kind, &bytes)?;
    let rest = prefix.length.saturating_sub(bytes.len() as u64);
    from.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The error with the path of the file.
fn at(error: Error, path: &Path) -> Error {
    match error {
        Error::Model { fault, .. } => fault.at(path),
        other => other,
    }
}

/// What tells whether a basis has the signs that it had: they follow from the seed, by a random generator.
fn signs_of(basis: &Basis) -> u64 {
    let signs: Vec<u8> = basis.signs().iter().map(|s| u8::from(*s > 0.0)).collect();
    Crc64::of(&signs)
}
