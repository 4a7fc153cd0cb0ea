//! The model of a job, in the number type of its columns.

use crate::rows::Rows;
use coremix::data::Dense;
use coremix::families::{ExactSums, GaussianMixture};
use coremix::ndarray::{Array2, ArrayView2};
use coremix::{Float, Mixture, Result, Save};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The numbers that rows are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `f32`: columns of `f16`, `f32` and integers of at most 16 bits.
    Single,
    /// `f64`: all others.
    Double,
}

/// A mixture of Gaussians with a variance for all components, for each of them, or for each of their columns, in `f32` or `f64`.
///
/// ```
/// use coremix_cluster::{Model, Precision};
/// # use coremix::ndarray::array;
/// let model = Model::from_parameters(Precision::Single, array![[0.0, 0.0], [3.0, 4.0]].view(), 0.5)?;
/// assert_eq!((model.components(), model.columns()), (2, 2));
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Model {
    /// In `f32`.
    Single(GaussianMixture<f32>),
    /// In `f64`.
    Double(GaussianMixture<f64>),
}

/// An expression for either number type.
macro_rules! each {
    ($self:expr, $model:ident => $value:expr) => {
        match $self {
            Model::Single($model) => $value,
            Model::Double($model) => $value,
        }
    };
}

impl Model {
    /// A model from means (k, d), rounded to `precision`, and the variance per column, shared by all components.
    ///
    /// # Errors
    /// As [`GaussianMixture::tied_spherical`].
    pub fn from_parameters(
        precision: Precision,
        means: ArrayView2<'_, f64>,
        variance: f64,
    ) -> Result<Self> {
        Ok(match precision {
            Precision::Single => {
                let means = means.mapv(|x| x as f32);
                Self::Single(GaussianMixture::tied_spherical(means.view(), variance)?)
            }
            Precision::Double => Self::Double(GaussianMixture::tied_spherical(means, variance)?),
        })
    }

    /// Loads a model file of this number type.
    ///
    /// # Errors
    /// As [`Save::load`].
    pub fn load(precision: Precision, path: impl AsRef<Path>) -> Result<Self> {
        match precision {
            Precision::Single => Save::load(path).map(Self::Single),
            Precision::Double => Save::load(path).map(Self::Double),
        }
    }

    /// Saves the model as a file that the core crate loads, all of it or nothing.
    ///
    /// # Errors
    /// As [`Save::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with_notes(path, &[])
    }

    pub(crate) fn save_with_notes(
        &self,
        path: impl AsRef<Path>,
        notes: &[(&str, &str)],
    ) -> Result<()> {
        each!(self, model => model.save_with_notes(path, notes))
    }

    /// The means (k, d), in the unit of the columns.
    #[must_use]
    pub fn means(&self) -> Array2<f64> {
        each!(self, model => model.means().mapv(f64::from))
    }

    /// The mean variance of a column, in the unit of the columns, squared: the one there is, if components share it.
    #[must_use]
    pub fn variance(&self) -> f64 {
        each!(self, model => model.variance())
    }

    /// Number of components, k.
    #[must_use]
    pub fn components(&self) -> usize {
        each!(self, model => model.means().nrows())
    }

    /// Number of columns, d.
    #[must_use]
    pub fn columns(&self) -> usize {
        each!(self, model => model.means().ncols())
    }

    /// The sums of an E-step over rows with supports of this width, or without one those of a score.
    pub(crate) fn sums(&self, rows: &Rows, width: Option<usize>) -> Result<ExactSums> {
        each!(self, model => sums(model, rows, width))
    }

    /// The model after the M-step.
    pub(crate) fn update(&self, sums: &ExactSums) -> Result<Self> {
        Ok(match self {
            Self::Single(model) => Self::Single(sums.update(model)?),
            Self::Double(model) => Self::Double(sums.update(model)?),
        })
    }

    pub(crate) fn quantization_error(&self, sums: &ExactSums) -> f64 {
        each!(self, model => sums.quantization_error(model))
    }

    /// The likeliest component of every row.
    pub(crate) fn labels(&self, rows: &Rows) -> Result<Vec<u32>> {
        each!(self, model => labels(model, rows))
    }
}

fn sums<F: Float>(
    model: &GaussianMixture<F>,
    rows: &Rows,
    width: Option<usize>,
) -> Result<ExactSums> {
    let points = rows.points::<F>();
    let data = Dense::batch(&points)?;
    match width {
        Some(width) => ExactSums::e_step(model, &data, None, width),
        None => ExactSums::score(model, &data),
    }
}

fn labels<F: Float>(model: &GaussianMixture<F>, rows: &Rows) -> Result<Vec<u32>> {
    let points = rows.points::<F>();
    Ok(model.predict(&Dense::batch(&points)?)?.to_vec())
}
