//! Saved models whose family the file says.

use crate::base::error::Result;
use crate::base::float::Float;
use crate::io::{FileFault, ModelInfo, Reader, Save};
use crate::m_step::{Covariance, DirichletProcessMixture, GaussianMixture};
use crate::model::BoxedMixture;
use crate::model::Mixture;
use std::io::Read;
use std::path::Path;

/// Loads a model of any family: what [`Save::load`] of a [`BoxedMixture`] does.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// # let path = std::env::temp_dir().join(format!("coremix-load-{}", std::process::id()));
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = "gmm".parse::<Algorithm>()?.clusters(25).boxed()?.fit(&data)?;
/// fit.model.save(&path)?;
/// let model = coremix::load_model::<f32>(&path)?;
/// assert_eq!(model.log_densities(&data)?, fit.model.log_densities(&data)?);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`Save::load`].
pub fn load_model<F: Float>(path: impl AsRef<Path>) -> Result<BoxedMixture<F>> {
    Save::load(path)
}

/// The same from what a model was [written to](Save::write_to).
///
/// # Errors
/// As [`Save::read_from`].
pub fn read_model<F: Float>(from: impl Read) -> Result<BoxedMixture<F>> {
    Save::read_from(from)
}

/// An error for a file of another family; of the damage, if that is why.
fn unknown<T>(bytes: &[u8], found: String) -> Result<T> {
    Reader::new(bytes).map_err(FileFault::of_bytes)?;
    let expected = "a family of this crate";
    Err(FileFault::Family { expected, found }.of_bytes())
}

impl<F: Float> Save for Box<dyn Mixture<F>> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        self.saved(notes)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let family = ModelInfo::read_from(bytes)?.family;
        if Covariance::ALL.iter().any(|kind| kind.name() == family) {
            return Ok(Box::new(GaussianMixture::<F>::from_bytes(bytes)?));
        }
        Ok(match &family[..] {
            "DirichletProcess" => Box::new(DirichletProcessMixture::<F>::from_bytes(bytes)?),
            other => return unknown(bytes, other.to_string()),
        })
    }
}
