//! Component families: which there are, and what a picture needs of a model of any of them.

use clap::ValueEnum;
use coremix::Float;
use coremix::m_step::{DiagonalMixture, IsotropicMixture, SharedIsotropicMixture};
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
    /// The covariance of two columns of component `c`.
    fn covariance(&self, c: usize, columns: (usize, usize)) -> f64;
}

impl<F: Float> Family for SharedIsotropicMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, _: usize, (a, b): (usize, usize)) -> f64 {
        if a == b { self.variance() } else { 0.0 }
    }
}

impl<F: Float> Family for IsotropicMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, c: usize, (a, b): (usize, usize)) -> f64 {
        if a == b { self.variances()[c] } else { 0.0 }
    }
}

impl<F: Float> Family for DiagonalMixture<F> {
    fn means(&self) -> Array2<f64> {
        self.means().mapv(F::to_f64)
    }

    fn covariance(&self, c: usize, (a, b): (usize, usize)) -> f64 {
        if a == b {
            self.variances()[[c, a]]
        } else {
            0.0
        }
    }
}
