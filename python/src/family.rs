//! The parts of a model that are particular to its family: its parameters, and samples of it.

use crate::input::Number;
use coremix::m_step::{
    Column, Covariance, DirichletProcessMixture, GaussianMixture, PartMixture, ProductMixture,
    TableMixture, VonMisesFisherMixture,
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
    Table(&'a TableMixture<F>),
    Product(&'a ProductMixture<F>),
}

impl<'a, F: Number> Family<'a, F> {
    pub(crate) fn of(model: &'a dyn Mixture<F>) -> Result<Self> {
        let any: &dyn Any = model;
        let found = any.downcast_ref().map(Self::Gaussian);
        let found = found.or_else(|| any.downcast_ref().map(Self::DirichletProcess));
        let found = found.or_else(|| any.downcast_ref().map(Self::Directions));
        let found = found.or_else(|| any.downcast_ref().map(Self::Table));
        let found = found.or_else(|| any.downcast_ref().map(Self::Product));
        found.ok_or(Error::Model {
            path: "model".into(),
            fault: FileFault::NoFormat,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::DirichletProcess(_) => "dirichlet-process",
            Self::Directions(_) => "von-mises-fisher",
            Self::Table(_) => "table",
            Self::Product(_) => "product",
            Self::Gaussian(model) => covariance_of(model),
        }
    }
}

/// The name of the kind of covariances.
fn covariance_of<F: Number>(model: &GaussianMixture<F>) -> &'static str {
    match model.covariance_kind() {
        Covariance::TiedSpherical => "tied-spherical",
        Covariance::Spherical => "spherical",
        Covariance::Diagonal => "diag",
        Covariance::Tied => "tied",
        Covariance::Factors(_) => "factors",
        _ => "full",
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
    Table {
        kinds: Vec<&'static str>,
        variances: Array2<f64>,
        /// By the number of the column.
        probabilities: Vec<(usize, Array2<f64>)>,
        proportions: Array1<f64>,
        explain: Array2<f64>,
        /// The kinds of covariances that blocks of numbers have, and these.
        numbers: Vec<(&'static str, Covariances)>,
    },
}

/// In the shape that scikit-learn has for each kind.
pub(crate) enum Covariances {
    One(f64),
    PerComponent(Array1<f64>),
    PerColumn(Array2<f64>),
    Matrix(Array2<f64>),
    Matrices(Array3<f64>),
    /// Loadings, and variances besides them.
    Factors(Array3<f64>, Array2<f64>),
}

impl Covariances {
    fn of<F: Number>(own: &GaussianMixture<F>) -> Result<Self> {
        let standardised = Mixture::frame(own).is_standardised();
        Ok(match own.covariance_kind() {
            Covariance::TiedSpherical | Covariance::Spherical if standardised => {
                Self::PerColumn(own.variances())
            }
            Covariance::TiedSpherical => Self::One(own.variance()),
            Covariance::Spherical => Self::PerComponent(own.variances().column(0).to_owned()),
            Covariance::Diagonal => Self::PerColumn(own.column_variances()),
            Covariance::Tied => Self::Matrix(own.covariance(0)?),
            Covariance::Factors(_) => Self::Factors(own.loadings(), own.noise()),
            _ => Self::Matrices(own.covariances()),
        })
    }

    fn put(self, found: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = found.py();
        match self {
            Self::One(variance) => found.set_item("covariances", variance),
            Self::PerComponent(own) => found.set_item("covariances", own.into_pyarray(py)),
            Self::PerColumn(own) => found.set_item("covariances", own.into_pyarray(py)),
            Self::Matrix(own) => found.set_item("covariances", own.into_pyarray(py)),
            Self::Matrices(own) => found.set_item("covariances", own.into_pyarray(py)),
            Self::Factors(loadings, noise) => {
                found.set_item("loadings", loadings.into_pyarray(py))?;
                found.set_item("noise", noise.into_pyarray(py))
            }
        }
    }
}

impl Parameters {
    pub(crate) fn of<F: Number>(model: &dyn Mixture<F>) -> Result<Self> {
        let proportions = model.proportions();
        Ok(match Family::of(model)? {
            Family::Gaussian(own) => {
                let kind = own.covariance_kind();
                let turned = kind == Covariance::Diagonal && model.frame().basis().is_some();
                Self::Gaussian {
                    covariances: Covariances::of(own)?,
                    full: turned.then(|| own.covariances()),
                    proportions,
                }
            }
            Family::Directions(own) => Self::Directions {
                concentrations: own.concentrations().to_owned(),
                proportions,
            },
            Family::Table(own) => {
                let columns = own.columns().iter().enumerate();
                let of_categories = columns.filter(|(_, kind)| matches!(kind, Column::Category(_)));
                let probabilities = of_categories.map(|(j, _)| Ok((j, own.probabilities(j)?)));
                Self::Table {
                    kinds: own.columns().iter().map(kind_of).collect(),
                    variances: own.variances(),
                    probabilities: probabilities.collect::<Result<_>>()?,
                    proportions,
                    explain: own.explain(),
                    numbers: Vec::new(),
                }
            }
            Family::Product(own) => {
                let mut kinds = vec!["number"; model.frame().dim()];
                let (mut probabilities, mut numbers) = (Vec::new(), Vec::new());
                for (columns, part) in own.parts() {
                    match part {
                        PartMixture::Gaussian(own) => {
                            numbers.push((covariance_of(own), Covariances::of(own)?));
                        }
                        PartMixture::Table(own) => {
                            for (j, kind) in own.columns().iter().enumerate() {
                                kinds[columns[j]] = kind_of(kind);
                                if matches!(kind, Column::Category(_)) {
                                    probabilities.push((columns[j], own.probabilities(j)?));
                                }
                            }
                        }
                        _ => {}
                    }
                }
                Self::Table {
                    kinds,
                    variances: own.variances(),
                    probabilities,
                    proportions,
                    explain: own.explain(),
                    numbers,
                }
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
            Self::Gaussian {
                covariances,
                full,
                proportions,
            } => {
                if matches!(covariances, Covariances::PerColumn(_)) {
                    found.set_item("full", full.map(|full| full.into_pyarray(py)))?;
                }
                covariances.put(found)?;
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::Directions {
                concentrations,
                proportions,
            } => {
                found.set_item("concentrations", concentrations.into_pyarray(py))?;
                found.set_item("weights", proportions.into_pyarray(py))
            }
            Self::Table {
                kinds,
                variances,
                probabilities,
                proportions,
                explain,
                numbers,
            } => {
                let by_column = PyDict::new(py);
                for (column, own) in probabilities {
                    by_column.set_item(column, own.into_pyarray(py))?;
                }
                // Where there are several blocks, the first, and their number.
                found.set_item("blocks", numbers.len())?;
                if let Some((kind, own)) = numbers.into_iter().next() {
                    found.set_item("covariance_type", kind)?;
                    own.put(found)?;
                }
                found.set_item("kinds", kinds)?;
                found.set_item("variances", variances.into_pyarray(py))?;
                found.set_item("probabilities", by_column)?;
                found.set_item("weights", proportions.into_pyarray(py))?;
                found.set_item("explain", explain.into_pyarray(py))
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

/// The name of a kind of columns.
fn kind_of(column: &Column) -> &'static str {
    match column {
        Column::Count => "count",
        Column::Category(_) => "category",
        _ => "number",
    }
}

/// Draws points from a model: points (n, d) and their components (n).
pub(crate) fn sample<F: Number>(
    model: &dyn Mixture<F>,
    n: usize,
    seed: u64,
) -> Result<(Array2<F>, Array1<u32>)> {
    model.sample(n, seed)
}
