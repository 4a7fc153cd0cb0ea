//! Component families: which there are, and what a picture needs of a model of any of them.

use clap::ValueEnum;
use coremix::m_step::{DirichletProcessMixture, GaussianMixture};
use coremix::prelude::Mixture;
use coremix::{BoxedMixture, Float};
use std::any::Any;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// One variance for all components, equal proportions
    #[default]
    Shared,
    /// A variance and a proportion per component
    Isotropic,
    /// A variance per component and column, a proportion per component
    Diagonal,
}

impl Name {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The family of the crate.
    pub(crate) fn of_crate(self) -> coremix::m_step::Covariance {
        match self {
            Self::Shared => coremix::m_step::Covariance::TiedSpherical,
            Self::Isotropic => coremix::m_step::Covariance::Spherical,
            Self::Diagonal => coremix::m_step::Covariance::Diagonal,
        }
    }
}

/// What a picture needs of a model, besides its means.
pub(crate) trait Covariances {
    /// Variance, covariance and variance of two columns of component `c`.
    fn covariance(&self, c: usize, columns: (usize, usize)) -> [f64; 3];
}

/// A fitted model of all columns, whatever its family.
pub(crate) trait Family<F: Float>: Mixture<F> + Covariances {}

impl<F: Float, M: Mixture<F> + Covariances> Family<F> for M {}

/// A model with what is particular to its family.
pub(crate) fn of<F: Float>(model: BoxedMixture<F>) -> Box<dyn Family<F>> {
    fn is<F: Float, M: Family<F>>(model: Box<dyn Any>) -> Result<Box<dyn Family<F>>, Box<dyn Any>> {
        Ok(model.downcast::<M>()?)
    }
    let model: Box<dyn Any> = model;
    is::<_, GaussianMixture<_>>(model)
        .or_else(is::<_, DirichletProcessMixture<_>>)
        .expect("one of the families of the crate")
}

impl<F: Float> Covariances for GaussianMixture<F> {
    fn covariance(&self, c: usize, (a, b): (usize, usize)) -> [f64; 3] {
        let covariance = self.covariance(c).expect("a component of the model");
        [covariance[[a, a]], covariance[[a, b]], covariance[[b, b]]]
    }
}

impl<F: Float> Covariances for DirichletProcessMixture<F> {
    fn covariance(&self, c: usize, (a, b): (usize, usize)) -> [f64; 3] {
        let covariances = self.covariances();
        [[a, a], [a, b], [b, b]].map(|[a, b]| covariances[[c, a, b]])
    }
}
