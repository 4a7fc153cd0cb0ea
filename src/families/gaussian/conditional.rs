//! Parts of a mixture: the density of some columns, alone or under known values of the others.

use super::covariance::Among;
use super::mixture::GaussianMixture;
use crate::base::error::{Result, require};
use crate::base::float::{Float, held_in_range};
use crate::families::columns::{TOO_FAR, among, check_part, given, other_columns};
use crate::model::Mixture;
use crate::rows::Centres;
use ndarray::{Array1, Array2, Array3, Axis};
use std::f64::consts::TAU;

impl<F: Float> GaussianMixture<F> {
    /// The mixture of these columns alone, in this order: the density of the others is integrated out.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) without columns, for one that there is not, or that comes twice.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        check_part(columns, &self.theta.common.frame)?;
        let means = self.exact_means().select(Axis(1), columns);
        self.of_parts(columns, means, self.proportions(), None)
    }

    /// The mixture of the other columns, in their order, where these `columns` have these `values`: what the model says of what is
    /// not known.
    ///
    /// With $a$ the other columns and $b$ the known ones,
    ///
    /// $$p(y_a \mid y_b) = \sum_c q_c \mathcal N(y_a; \mu_{ca} + G_c (y_b - \mu_{cb}), \Sigma_{caa} - G_c \Sigma_{cba}), \qquad G_c = \Sigma_{cab}
    /// \Sigma_{cbb}^{-1}$$
    ///
    /// where $q_c$ is the posterior of component $c$ under the known values.
    ///
    /// # Errors
    /// As [`marginal`](Self::marginal); [`Error::LengthMismatch`](crate::Error::LengthMismatch) for another number of values, [`Error::NotFinite`](crate::Error::NotFinite) for one that is NaN
    /// or infinite; [`Error::Parameter`](crate::Error::Parameter) if no column is left, or if the values are so far from all components that none has a share.
    pub fn condition(&self, columns: &[usize], values: &[f64]) -> Result<Self> {
        let others = other_columns(columns, values, &self.theta.common.frame)?;
        let left = others.len();
        let means = self.exact_means();
        let mut moved = means.select(Axis(1), &others);
        let k = means.nrows();
        let mut logs = Array1::zeros(k);
        let mut covariances = Array3::zeros((k, left, left));
        for c in 0..k {
            let known_means = columns.iter().map(|j| means[[c, *j]]);
            let differences: Vec<f64> =
                values.iter().zip(known_means).map(|(y, m)| y - m).collect();
            let known = (columns, &differences[..]);
            let conditional = given(c, &self.covariance(c)?, known, &others)?;
            let constant = columns.len() as f64 * TAU.ln();
            logs[c] = self.theta.common.proportions.values[c].ln()
                - conditional.volume
                - 0.5 * (conditional.squared + constant);
            let mut row = moved.row_mut(c);
            row += &conditional.step;
            covariances
                .index_axis_mut(Axis(0), c)
                .assign(&conditional.rest);
        }
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        require(most.is_finite(), "values", most, TOO_FAR)?;
        let shares = logs.mapv(|log| (log - most).exp());
        let shares = &shares / shares.sum();
        self.of_parts(&others, moved, shares, Some(covariances))
    }

    /// The means (k, d), not rounded: far from 0 they have more digits than numbers of the type.
    fn exact_means(&self) -> Array2<f64> {
        let common = &self.theta.common;
        common.centres.leave_wide(&common.frame)
    }

    /// A mixture of these columns with covariances (k, d, d), or with those of the columns here.
    fn of_parts(
        &self,
        columns: &[usize],
        exact: Array2<f64>,
        proportions: Array1<f64>,
        covariances: Option<Array3<f64>>,
    ) -> Result<Self> {
        let covariance = |c: usize| match &covariances {
            Some(matrices) => matrices.index_axis(Axis(0), c).to_owned(),
            None => among(&self.covariance_of(c), columns),
        };
        let k = exact.nrows();
        let frame = &self.theta.common.frame;
        let means = exact.mapv(|x| held_in_range(x));
        let means = means.view();
        let shares = proportions.view();
        let kind = self.covariance_kind().of_columns(Among {
            columns: columns.len(),
            conditioned: covariances.is_some(),
            has_basis: frame.basis().is_some(),
            is_standardised: frame.is_standardised(),
            equal_proportions: self.theta.common.proportions.free() == 0,
        });
        if kind.factors().is_some() {
            let loadings = self.loadings().select(Axis(1), columns);
            let noise = self.noise().select(Axis(1), columns);
            let mut part = Self::from_factors(means, loadings.view(), noise.view(), shares)?;
            let common = &mut part.theta.common;
            common.centres = Centres::enter_wide(&exact, &common.frame);
            part.renew(None)?;
            return Ok(part);
        }
        let covariances = kind.of_matrices(k, columns.len(), covariance);
        Self::of_means(kind, means, Some(&exact), covariances.view(), shares)
    }
}
