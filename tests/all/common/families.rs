//! Numbers that the laws read from models of each family.

use coremix::families::{DirichletProcessMixture, GaussianMixture, ProductMixture};
use coremix::{Float, Mixture};
use ndarray::{Array2, Array3};

/// Numbers that the laws read from a model of any family.
pub trait Family<F: Float> {
    fn means(&self) -> Array2<F>;
    /// (k, d).
    fn variances(&self) -> Array2<f64>;
    /// (k, d, d), in the coordinates of the model.
    fn covariances(&self) -> Array3<f64>;
    fn proportions(&self) -> Vec<f64>;
}

impl<F: Float> Family<F> for GaussianMixture<F> {
    fn means(&self) -> Array2<F> {
        self.means().to_owned()
    }
    fn variances(&self) -> Array2<f64> {
        Mixture::variances(self)
    }
    fn covariances(&self) -> Array3<f64> {
        self.covariances()
    }
    fn proportions(&self) -> Vec<f64> {
        Mixture::proportions(self).to_vec()
    }
}

/// Its naive densities here are not its own: it has a distribution over parameters.
impl<F: Float> Family<F> for DirichletProcessMixture<F> {
    fn means(&self) -> Array2<F> {
        self.means().to_owned()
    }
    fn variances(&self) -> Array2<f64> {
        let covariances = self.covariances();
        Array2::from_shape_fn(self.means().dim(), |(c, j)| covariances[[c, j, j]])
    }
    fn covariances(&self) -> Array3<f64> {
        self.covariances()
    }
    fn proportions(&self) -> Vec<f64> {
        Mixture::proportions(self).to_vec()
    }
}

/// All parts are Gaussian.
impl<F: Float> Family<F> for ProductMixture<F> {
    fn means(&self) -> Array2<F> {
        Mixture::means(self)
    }
    fn variances(&self) -> Array2<f64> {
        Mixture::variances(self)
    }
    fn covariances(&self) -> Array3<f64> {
        let (k, d) = Mixture::means(self).dim();
        let mut all = Array3::zeros((k, d, d));
        for (columns, part) in self.gaussians() {
            for ((c, i, j), v) in part.covariances().indexed_iter() {
                all[[c, columns[i], columns[j]]] = *v;
            }
        }
        all
    }
    fn proportions(&self) -> Vec<f64> {
        Mixture::proportions(self).to_vec()
    }
}
