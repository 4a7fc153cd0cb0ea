//! The model of a job, in the number type of its columns.

use crate::rows::Rows;
use coremix::data::Dense;
use coremix::m_step::{Covariance, GaussianMixture};
use coremix::ndarray::{Array2, ArrayView2};
use coremix::{Error, Mixture, ModelInfo, Result, Save};
use std::path::Path;

/// The numbers that rows are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `f32`: columns of `f16`, `f32` and integers of at most 16 bits.
    Single,
    /// `f64`: all others.
    Double,
}

/// A mixture of isotropic Gaussians with one shared variance, in `f32` or `f64`: what k-means and the truncated
/// mixtures of the core fit.
///
/// ```
/// use coremix_cluster::{Model, Precision};
/// # use coremix::ndarray::array;
/// let model = Model::from_parameters(Precision::Single, array![[0.0, 0.0], [3.0, 4.0]].view(), 0.5)?;
/// assert_eq!((model.components(), model.columns()), (2, 2));
/// let bytes = model.to_bytes(&[])?;
/// assert_eq!(Model::from_bytes(&bytes)?, model);
/// # Ok::<(), coremix::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Model {
    /// In `f32`.
    Single(GaussianMixture<f32>),
    /// In `f64`.
    Double(GaussianMixture<f64>),
}

/// The same for both types.
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

    /// The bytes of a model file, with notes, as [`Save::to_bytes`] writes them.
    ///
    /// # Errors
    /// As [`Save::to_bytes`].
    pub fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        each!(self, model => model.to_bytes(notes))
    }

    /// A model from the bytes of a file. The number type is that of the file.
    ///
    /// # Errors
    /// As [`Save::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match &ModelInfo::read_from(bytes)?.number[..] {
            "f64" => Save::from_bytes(bytes).map(Self::Double),
            _ => Save::from_bytes(bytes).map(Self::Single),
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
        match self {
            Self::Single(model) => model.means().mapv(f64::from),
            Self::Double(model) => model.means().to_owned(),
        }
    }

    /// The variance of every column, in the unit of the columns, squared.
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

    /// The number type.
    #[must_use]
    pub fn precision(&self) -> Precision {
        match self {
            Self::Single(_) => Precision::Single,
            Self::Double(_) => Precision::Double,
        }
    }

    /// The model that a boxed fit has, if it is of this family.
    pub(crate) fn of_fit<F: coremix::Float>(fitted: &dyn Mixture<F>) -> Result<Self> {
        fn shares<F: coremix::Float>(model: &GaussianMixture<F>) -> bool {
            model.covariance_kind() == Covariance::TiedSpherical
        }
        let any: &dyn std::any::Any = fitted;
        if let Some(model) = any
            .downcast_ref::<GaussianMixture<f32>>()
            .filter(|model| shares(model))
        {
            let means = model.means().mapv(f64::from);
            return Self::from_parameters(Precision::Single, means.view(), model.variance());
        }
        if let Some(model) = any
            .downcast_ref::<GaussianMixture<f64>>()
            .filter(|model| shares(model))
        {
            return Self::from_parameters(Precision::Double, model.means(), model.variance());
        }
        Err(Error::Parameter {
            name: "algorithm",
            value: "one with variances of its own for each component".to_string(),
            rule: "must share one variance: no other family can be fitted on a table",
        })
    }

    /// The `width` best components of every row, best first (n * width).
    pub(crate) fn supports(&self, rows: &Rows, width: usize) -> Result<Vec<u32>> {
        match self {
            Self::Single(model) => {
                let values: Vec<f32> = rows.values().iter().map(|x| *x as f32).collect();
                supports(model, &values, rows, width)
            }
            Self::Double(model) => supports(model, rows.values(), rows, width),
        }
    }
}

fn supports<F: coremix::Float>(
    model: &GaussianMixture<F>,
    values: &[F],
    rows: &Rows,
    width: usize,
) -> Result<Vec<u32>> {
    let mismatch = |_| Error::DimensionMismatch {
        what: "rows",
        expected: model.means().ncols(),
        found: rows.dim(),
    };
    let view = ArrayView2::from_shape((rows.len(), rows.dim()), values).map_err(mismatch)?;
    let data = Dense::batch(view)?;
    let model: &dyn Mixture<F> = model;
    Ok(match width {
        1 => model.predict(&data)?.to_vec(),
        _ => {
            let (ids, _) = model.truncated_responsibilities(&data, width)?;
            ids.iter().copied().collect()
        }
    })
}
