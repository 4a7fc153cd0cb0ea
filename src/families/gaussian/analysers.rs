//! Factor analysers (E58) by their parameters.

use super::covariance::Covariance;
use super::covariances::Covariances;
use super::mixture::GaussianMixture;
use crate::base::error::{Result, require, same_columns, same_length};
use crate::base::float::Float;
use crate::kernels::stride;
use crate::model::Mixture;
use crate::rows::Centres;
use ndarray::{Array2, Array3, ArrayView1, ArrayView2, ArrayView3, Axis};

impl<F: Float> GaussianMixture<F> {
    /// Factor analysers ([E58](crate::equations#e58)): means (k, d), loadings (k, d, q) of fewer factors than columns, the variance of
    /// each column besides them (k, d), and proportions (k).
    ///
    /// # Errors
    /// As [`from_parameters`](Self::from_parameters).
    pub fn from_factors(
        means: ArrayView2<'_, F>,
        loadings: ArrayView3<'_, f64>,
        noise: ArrayView2<'_, f64>,
        proportions: ArrayView1<'_, f64>,
    ) -> Result<Self> {
        let (k, dim, q) = loadings.dim();
        same_length("loadings", means.nrows(), k)?;
        same_columns("loadings", means.ncols(), dim)?;
        same_columns("noise", means.ncols(), noise.ncols())?;
        let kind = Covariance::Factors(q);
        kind.check_columns(dim)?;
        let whole = &noise + &loadings.mapv(|w| w * w).sum_axis(Axis(2));
        let diagonal = Covariance::Diagonal;
        // The frame is as wide as the components; variances besides factors may be no smaller than others.
        let frame = Self::from_parameters(diagonal, means, whole.view(), proportions)?
            .theta
            .common
            .frame;
        let mut model = Self::from_parameters(diagonal, means, noise, proportions)?;
        let theta = &mut model.theta;
        let common = &mut theta.common;
        let given = std::mem::replace(&mut common.frame, frame);
        common.centres = Centres::enter(means, &common.frame);
        let mut covariances = Covariances::new(kind, &common.centres);
        let numbers = theta.covariances.kind().numbers().iter().enumerate();
        let numbers = numbers.map(|(place, v)| {
            let j = place % dim;
            v * common.frame.enter_length(j, given.unit_of(j)).powi(2)
        });
        covariances.kind_mut().set(&numbers.collect::<Vec<f64>>())?;
        if let Covariances::Factors(factors) = &mut covariances {
            for component in loadings.outer_iter() {
                for column in component.columns() {
                    let row = column.iter().enumerate();
                    factors.push(row.map(|(j, w)| common.frame.enter_length(j, *w)));
                }
            }
        }
        let mut given = covariances.kind().loadings().iter();
        let finite = given.all(|w| w.is_finite());
        require(finite, "loadings", "one of them", "must be finite")?;
        theta.covariances = covariances;
        theta.set_given()?;
        model.renew(None)?;
        Ok(model)
    }

    /// The loadings of factor analysers (k, d, q), in the data's own unit: the covariance of component $c$ is $W_c W_c^T$ and the
    /// [`noise`](Self::noise) on the diagonal. Factors are turned so that they are independent given a row, the strongest first.
    /// There are none (k, d, 0) for other kinds.
    #[must_use]
    pub fn loadings(&self) -> Array3<f64> {
        let common = &self.theta.common;
        let k = common.k();
        let wide = stride(common.dim());
        let rows = self.theta.covariances.kind().loadings();
        let q = rows.len() / wide / k;
        Array3::from_shape_fn((k, common.dim(), q), |(c, j, a)| {
            rows[(c * q + a) * wide + j].to_f64() * common.frame.unit_of(j)
        })
    }

    /// The variance of each column besides factors (k, d), in the data's own unit, squared; without factors, all of it
    /// ([`variances`](crate::Mixture::variances)).
    #[must_use]
    pub fn noise(&self) -> Array2<f64> {
        let common = &self.theta.common;
        let kind = self.theta.covariances.kind();
        if kind.loadings().is_empty() {
            return Mixture::variances(self);
        }
        Array2::from_shape_fn((common.k(), common.dim()), |(c, j)| {
            common.frame.leave_product(j, j, kind.numbers_of(c)[j])
        })
    }
}
