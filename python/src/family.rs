//! The parts of a model that are particular to its family: its parameters, and samples of it.

use crate::input::Number;
use coremix::m_step::{
    Covariance, DirichletProcessMixture, GaussianMixture, VonMisesFisherMixture,
};
use coremix::ndarray::{Array1, Array2, Array3};
use coremix::{Error, FileFault, Mixture, Result};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;

/// A model by its family.
pub(crate) enum Family<'a, F> {
    Gaussian(&'a GaussianMixture<F>),
    DirichletProcess(&'a DirichletProcessMixture<F>),
    Directions(&'a VonMisesFisherMixture<F>),
}

impl<'a, F: Number> Family<'a, F> {
    pub(crate) fn of(model: &'a dyn Mixture<F>) -> Result<Self> {
        let any: &dyn Any = model;
        let found = any.downcast_ref().map(Self::Gaussian);
        let found = found.or_else(|| any.downcast_ref().map(Self::DirichletProcess));
        let found = found.or_else(|| any.downcast_ref().map(Self::Directions));
        found.ok_or(Error::Model {
            path: "model".into(),
            fault: FileFault::NoFormat,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::DirichletProcess(_) => "dirichlet-process",
            Self::Directions(_) => "von-mises-fisher",
            Self::Gaussian(model) => match model.covariance_kind() {
                Covariance::TiedSpherical => "tied-spherical",
                Covariance::Spherical => "spherical",
                Covariance::Diagonal => "diag",
                Covariance::Tied => "tied",
                _ => "full",
            },
        }
    }
}

/// The parameters of a model that are not its means.
pub(crate) enum Parameters {
    Gaussian {
        covariances: Covariances,
        /// Where covariances are diagonal in another basis alone.
        full: Option<Array3<f64>>,
        proportions: Array1<f64>,
    },
    DirichletProcess {
        covariances: Array3<f64>,
        proportions: Array1<f64>,
        degrees_of_freedom: Array1<f64>,
        mean_precisions: Array1<f64>,
        sticks: Array2<f64>,
    },
    Directions {
        concentrations: Array1<f64>,
        proportions: Array1<f64>,
    },
}

/// In the shape that scikit-learn has for each kind.
pub(crate) enum Covariances {
    One(f64),
    PerComponent(Array1<f64>),
    PerColumn(Array2<f64>),
    Matrix(Array2<f64>),
    Matrices(Array3<f64>),
}

impl Parameters {
    pub(crate) fn of<F: Number>(model: &dyn Mixture<F>) -> Result<Self> {
        let proportions = model.proportions();
        Ok(match Family::of(model)? {
            Family::Gaussian(own) => {
                let kind = own.covariance_kind();
                let standardised = model.frame().is_standardised();
                let covariances = match kind {
                    Covariance::TiedSpherical | Covariance::Spherical if standardised => {
                        Covariances::PerColumn(own.variances())
                    }
                    Covariance::TiedSpherical => Covariances::One(own.variance()),
                    Covariance::Spherical => {
                        Covariances::PerComponent(own.variances().column(0).to_owned())
                    }
                    Covariance::Diagonal => Covariances::PerColumn(own.column_variances()),
                    Covariance::Tied => Covariances::Matrix(own.covariance(0)?),
                    _ => Covariances::Matrices(own.covariances()),
                };
                let turned = kind == Covariance::Diagonal && model.frame().basis().is_some();
                Self::Gaussian {
                    covariances,
                    full: turned.then(|| own.covariances()),
                    proportions,
                }
            }
            Family::Directions(own) => Self::Directions {
                concentrations: own.concentrations().to_owned(),
                proportions,
            },
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
            Self::Gaussian {
                covariances,
                full,
                proportions,
            } => {
                match covariances {
                    Covariances::One(variance) => found.set_item("covariances", variance)?,
                    Covariances::PerComponent(own) => {
                        found.set_item("covariances", own.into_pyarray(py))?;
                    }
                    Covariances::PerColumn(own) => {
                        found.set_item("covariances", own.into_pyarray(py))?;
                        found.set_item("full", full.map(|full| full.into_pyarray(py)))?;
                    }
                    Covariances::Matrix(own) => {
                        found.set_item("covariances", own.into_pyarray(py))?;
                    }
                    Covariances::Matrices(own) => {
                        found.set_item("covariances", own.into_pyarray(py))?;
                    }
                }
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::Directions {
                concentrations,
                proportions,
            } => {
                found.set_item("concentrations", concentrations.into_pyarray(py))?;
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::DirichletProcess {
                covariances,
                proportions,
                degrees_of_freedom,
                mean_precisions,
                sticks,
            } => {
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

/// Draws points from a model: points (n, d) and their components (n).
pub(crate) fn sample<F: Number>(
    model: &dyn Mixture<F>,
    n: usize,
    seed: u64,
) -> Result<(Array2<F>, Array1<u32>)> {
    match Family::of(model)? {
        Family::Gaussian(model) => model.sample(n, seed),
        Family::DirichletProcess(model) => model.sample(n, seed),
        Family::Directions(_) => Err(Error::Parameter {
            name: "sample",
            value: "directions".into(),
            rule: "cannot be drawn yet",
        }),
    }
}
