//! Component families: which there are, and what a picture needs of a model of any of them.

use clap::ValueEnum;
use coremix::Float;
use coremix::m_step::{
    DiagonalMixture, DirichletProcessMixture, IsotropicMixture, SharedIsotropicMixture,
};
use ndarray::Array2;

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
}

/// A fitted model, whatever its family.
pub(crate) trait Family {
    /// Means (k, d).
    fn means(&self) -> Array2<f64>;
    /// Variance, covariance and variance of two columns of component `c`.
    fn covariance(&self, c: usize, columns: (usize, usize)) -> [f64; 3];
}

impl<F: Float> Family for SharedIsotropicMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, _: usize, columns: (usize, usize)) -> [f64; 3] {
        round(self.variance(), columns)
    }
}

impl<F: Float> Family for IsotropicMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, c: usize, columns: (usize, usize)) -> [f64; 3] {
        round(self.variances()[c], columns)
    }
}

impl<F: Float> Family for DiagonalMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, c: usize, (a, b): (usize, usize)) -> [f64; 3] {
        let covariance = self.covariance(c).expect("a component of the model");
        [covariance[[a, a]], covariance[[a, b]], covariance[[b, b]]]
    }
}

impl<F: Float> Family for DirichletProcessMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, c: usize, (a, b): (usize, usize)) -> [f64; 3] {
        let covariances = self.covariances();
        [[a, a], [a, b], [b, b]].map(|[a, b]| covariances[[c, a, b]])
    }
}

/// The same variance along all columns.
fn round(variance: f64, (a, b): (usize, usize)) -> [f64; 3] {
    [variance, if a == b { variance } else { 0.0 }, variance]
}
