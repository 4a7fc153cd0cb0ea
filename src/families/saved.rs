//! Models as files, and back, bit for bit (`docs/files.md`).

use crate::base::error::{Error, Result};
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::serde::{DeserializeOwned, Serialize};
use crate::io::{self, Contents, MODEL, ModelInfo};
use crate::model::{BoxedMixture, Mixture};
use std::io::Write;
use std::path::Path;

/// A model that can be saved, and loaded again.
///
/// A model that comes back is the same, bit for bit: so are its predictions, densities and samples, with the same build on
/// the same CPU. All families of the crate are `Save`, and so are [boxed models](crate::BoxedMixture), which load any of
/// these. A family of your own is `Save` as soon as it implements serde's traits and [`info`](Self::info). The format is described in
/// `docs/files.md`: files of this version can be loaded by all later ones. Models are values of serde, too, for formats of
/// your own.
///
/// ```
/// use coremix::families::GaussianMixture;
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
pub trait Save: Serialize + DeserializeOwned {
    /// The header of the file: see [`ModelInfo::new`].
    ///
    /// # Errors
    /// [`Error::Model`] for a boxed model of a family of your own.
    fn info(&self) -> Result<ModelInfo>;

    /// The model of a file whose header and checksum are right.
    #[doc(hidden)]
    fn of_values(_: &ModelInfo, values: &[u8]) -> std::result::Result<Self, FileFault> {
        io::only("model", values)
    }

    /// The model as the bytes of a file. `notes` are names and values for whoever reads the header
    /// ([`ModelInfo`]), such as the algorithm, its settings and its seed.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a note whose name has other signs than letters, digits, `_`, `-` and `.`, or whose
    /// value is not one line. [`Error::Model`] for a boxed model of a family of your own.
    #[inline(never)]
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let info = self.info()?.with_notes(notes)?;
        let mut bytes = Vec::new();
        let written = io::to_vec(self).and_then(|values| {
            let fill = |to: &mut dyn Write| to.write_all(&values);
            io::write_to(&mut bytes, &MODEL, &info.text(), &fill)
        });
        written.map_err(|error| FileFault::from(error).of_bytes())?;
        Ok(bytes)
    }

    /// A model from the bytes of a file.
    ///
    /// # Errors
    /// [`Error::Model`], with the cause: not a whole and undamaged file of a model, another family, another number
    /// type, or values that no model has.
    #[inline(never)]
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let contents = Contents::of(&MODEL, bytes)?;
            let header = ModelInfo::parse(contents.version, contents.header)?;
            let model = Self::of_values(&header, contents.values)?;
            Ok((header, model))
        };
        let (header, model) = read().map_err(FileFault::of_bytes)?;
        let expected = ModelInfo {
            crate_version: header.crate_version.clone(),
            notes: header.notes.clone(),
            ..model.info()?
        };
        if expected == header {
            Ok(model)
        } else {
            Err(FileFault::content("header", "must be that of the model").of_bytes())
        }
    }

    /// Saves the model as a file. The file is there as a whole or not at all: it is written next to `path` and then takes
    /// its place, so a full disk or a crash leaves an older file as it was.
    ///
    /// # Errors
    /// [`Error::Model`] if the file cannot be written.
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with_notes(path, &[])
    }

    /// As above, with notes as in [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// As [`save`](Self::save) and [`to_bytes`](Self::to_bytes).
    fn save_with_notes(&self, path: impl AsRef<Path>, notes: &[(&str, &str)]) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes(notes).map_err(|error| at(error, path))?;
        let written = io::replace(path, |file| file.write_all(&bytes));
        written.map_err(|error| FileFault::from(error).at(path))
    }

    /// Loads a model from a file.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes); [`Error::Model`] if the file cannot be read.
    fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = io::read_file(&MODEL, path).map_err(|fault| fault.at(path))?;
        Self::from_bytes(&bytes).map_err(|error| at(error, path))
    }
}

fn at(error: Error, path: &Path) -> Error {
    match error {
        Error::Model { fault, .. } => fault.at(path),
        other => other,
    }
}

impl ModelInfo {
    /// The header of a model of this family, without notes.
    #[must_use]
    pub fn new<F: Float>(family: &str, model: &dyn Mixture<F>) -> Self {
        Self {
            format: MODEL.version,
            crate_version: env!("CARGO_PKG_VERSION").to_string(),
            family: family.to_string(),
            number: F::NAME.to_string(),
            components: model.components(),
            columns: model.frame().dim(),
            notes: Vec::new(),
        }
    }
}

/// Loads a model of any family: what [`Save::load`] of a [`BoxedMixture`] does.
pub fn load_model<F: Float>(path: impl AsRef<Path>) -> Result<BoxedMixture<F>> {
    Save::load(path)
}
