//! What is particular to a family: its parameters, and samples of it.

use crate::input::Number;
use coremix::m_step::{
    DiagonalMixture, DirichletProcessMixture, IsotropicMixture, SharedIsotropicMixture,
};
use coremix::ndarray::{Array1, Array2, Array3};
use coremix::{Error, FileFault, Mixture, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;

/// A model by its family.
pub(crate) enum Family<'a, F> {
    Shared(&'a SharedIsotropicMixture<F>),
    Isotropic(&'a IsotropicMixture<F>),
    Diagonal(&'a DiagonalMixture<F>),
    DirichletProcess(&'a DirichletProcessMixture<F>),
}

impl<'a, F: Number> Family<'a, F> {
    pub(crate) fn of(model: &'a dyn Mixture<F>) -> Result<Self> {
        let any: &dyn Any = model;
        let found = any.downcast_ref().map(Self::Shared);
        let found = found.or_else(|| any.downcast_ref().map(Self::Isotropic));
        let found = found.or_else(|| any.downcast_ref().map(Self::Diagonal));
        let found = found.or_else(|| any.downcast_ref().map(Self::DirichletProcess));
        found.ok_or(Error::Model {
            path: "model".into(),
            fault: FileFault::NoFormat,
        })
    }
}

/// The parameters of a model beside its means.
pub(crate) enum Parameters {
    Shared(f64, Array1<f64>),
    Isotropic(Array1<f64>, Array1<f64>),
    /// With full covariances where these are diagonal in another basis alone.
    Diagonal(Array2<f64>, Option<Array3<f64>>, Array1<f64>),
    DirichletProcess {
        covariances: Array3<f64>,
        proportions: Array1<f64>,
        degrees_of_freedom: Array1<f64>,
        mean_precisions: Array1<f64>,
        sticks: Array2<f64>,
    },
}

impl Parameters {
    pub(crate) fn of<F: Number>(model: &dyn Mixture<F>) -> Result<Self> {
        let proportions = model.proportions();
        Ok(match Family::of(model)? {
            Family::Shared(own) => Self::Shared(own.variance(), proportions),
            Family::Isotropic(own) => Self::Isotropic(own.variances(), proportions),
            Family::Diagonal(own) => {
                let full = match model.frame().basis() {
                    Some(_) => Some(full(own)?),
                    None => None,
                };
                Self::Diagonal(own.column_variances(), full, proportions)
            }
            Family::DirichletProcess(own) => Self::DirichletProcess {
                covariances: own.covariances(),
                proportions,
                degrees_of_freedom: own.degrees_of_freedom(),
                mean_precisions: own.mean_precisions(),
                sticks: own.sticks(),
            },
        })
    }

    /// Puts them into a dictionary.
    pub(crate) fn put(self, found: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = found.py();
        match self {
            Self::Shared(variance, proportions) => {
                found.set_item("family", "tied-spherical")?;
                found.set_item("covariances", variance)?;
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::Isotropic(variances, proportions) => {
                found.set_item("family", "spherical")?;
                found.set_item("covariances", variances.into_pyarray(py))?;
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::Diagonal(variances, full, proportions) => {
                found.set_item("family", "diag")?;
                found.set_item("covariances", variances.into_pyarray(py))?;
                found.set_item("full", full.map(|full| full.into_pyarray(py)))?;
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::DirichletProcess {
                covariances,
                proportions,
                degrees_of_freedom,
                mean_precisions,
                sticks,
            } => {
                found.set_item("family", "dirichlet-process")?;
                found.set_item("covariances", covariances.into_pyarray(py))?;
                found.set_item("weights", proportions.into_pyarray(py))?;
                let degrees = degrees_of_freedom.into_pyarray(py);
                found.set_item("degrees_of_freedom", degrees)?;
                found.set_item("mean_precisions", mean_precisions.into_pyarray(py))?;
                found.set_item("sticks", sticks.into_pyarray(py))
            }
        }
    }
}

/// The covariances in the data's own columns (k, d, d).
fn full<F: Number>(model: &DiagonalMixture<F>) -> Result<Array3<f64>> {
    let (k, d) = model.means().dim();
    let mut all = Array3::zeros((k, d, d));
    for (c, mut own) in all.outer_iter_mut().enumerate() {
        own.assign(&model.covariance(c)?);
    }
    Ok(all)
}

/// Draws points from a model: points (n, d) and their components (n).
pub(crate) fn sample<F: Number>(
    model: &dyn Mixture<F>,
    n: usize,
    seed: u64,
) -> Result<(Array2<F>, Array1<u32>)> {
    match Family::of(model)? {
        Family::Shared(model) => model.sample(n, seed),
        Family::Isotropic(model) => model.sample(n, seed),
        Family::Diagonal(model) => model.sample(n, seed),
        Family::DirichletProcess(model) => model.sample(n, seed),
    }
}
