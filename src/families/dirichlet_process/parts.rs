//! Parts of a mixture: the predictive density of some columns, alone or under known values of the others.

use super::model::{DirichletProcessMixture, Distribution};
use super::posterior::{NormalWishart, Prior};
use super::sticks::{Sticks, log_sum_exp};
use crate::base::error::{Error, Result, require};
use crate::base::float::Float;
use crate::costs::whitening::Whitening;
use crate::families::columns::{TOO_FAR, among, check_part, given, other_columns, singular};
use crate::rows::Frame;
use ndarray::Array2;

impl<F: Float> DirichletProcessMixture<F> {
    /// The mixture of these columns alone, in this order: the others are integrated out.
    ///
    /// The precision matrix of a component has a Wishart distribution, so the covariance matrix of some of its columns has an inverse
    /// Wishart distribution with fewer degrees of freedom ([E29](crate::equations#e29)): $m_a$, $\beta$, $\nu - (D - D_a)$ and
    /// $(W^{-1})_{aa}$. Densities are those of the model for rows that know these columns alone.
    ///
    /// # Errors
    /// [`Error::Parameter`] without columns, for one that there is not, or that comes twice.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        check_part(columns, &self.q.frame)?;
        let left_out = (self.q.frame.dim() - columns.len()) as f64;
        let components = self.q.components.iter().enumerate().map(|(t, q)| {
            let degrees = q.degrees - left_out;
            let covariance = among(&covariance_of(q), columns) * (q.degrees / degrees);
            let mean = columns.iter().map(|j| q.whitening.mean[*j]).collect();
            Ok(NormalWishart {
                mean_precision: q.mean_precision,
                degrees,
                whitening: whitening(t, mean, covariance)?,
            })
        });
        let components = components.collect::<Result<Vec<_>>>()?;
        self.of_parts(columns, components, self.q.sticks.clone())
    }

    /// The mixture of the other columns, in their order, where these `columns` have these `values`: what the model says of what is
    /// not known.
    ///
    /// The predictive density of a component is a Student t, and so is that of its other columns $a$ given the known ones $b$. With
    /// $\delta = y_b - m_b$ and $\Psi = W^{-1}$, the component of the result has
    ///
    /// $$m_a + \Psi_{ab} \Psi_{bb}^{-1} \delta, \qquad \beta, \qquad \nu, \qquad W_{a|b}^{-1} = \left( 1 + \frac{\beta}{1 + \beta}
    /// \delta^\top \Psi_{bb}^{-1} \delta \right) \left( \Psi_{aa} - \Psi_{ab} \Psi_{bb}^{-1} \Psi_{ba} \right)$$
    ///
    /// and its proportion is the posterior of the component under the known values, which is taken for certain.
    ///
    /// # Errors
    /// As [`marginal`](Self::marginal); [`Error::LengthMismatch`] for another number of values, [`Error::NotFinite`] for one that is NaN
    /// or infinite; [`Error::Parameter`] if no column is left, or if the values are too far from all components.
    pub fn condition(&self, columns: &[usize], values: &[f64]) -> Result<Self> {
        let others = other_columns(columns, values, &self.q.frame)?;
        let frame = &self.q.frame;
        let enter = |(j, y): (&usize, &f64)| frame.enter_length(*j, y - frame.offset[*j].to_f64());
        let known: Vec<f64> = columns.iter().zip(values).map(enter).collect();
        let marginal = self.marginal(columns)?;
        let mut logs = self.q.sticks.log_proportions();
        let mut components = Vec::with_capacity(logs.len());
        for (t, q) in self.q.components.iter().enumerate() {
            let known_columns = &marginal.q.components[t];
            let form = known_columns.whitening.form(&known, &mut Vec::new());
            logs[t] += known_columns.predictive(0, 0.0).log_density(form);
            let share = q.mean_precision / (1.0 + q.mean_precision);
            let wider = 1.0 + share * form / known_columns.degrees;
            let mean = &q.whitening.mean;
            let from_mean = columns.iter().zip(&known).map(|(j, y)| y - mean[*j]);
            let differences: Vec<f64> = from_mean.collect();
            let conditional = given(t, &covariance_of(q), (columns, &differences), &others)?;
            let moved = others
                .iter()
                .zip(&conditional.step)
                .map(|(j, step)| mean[*j] + step);
            components.push(NormalWishart {
                mean_precision: q.mean_precision,
                degrees: q.degrees,
                whitening: whitening(t, moved.collect(), conditional.rest * wider)?,
            });
        }
        let total = log_sum_exp(&logs);
        require(total.is_finite(), "values", total, TOO_FAR)?;
        let most = Frame::<F>::farthest_centre();
        let means = components.iter().flat_map(|q| &q.whitening.mean);
        let farthest = means.fold(0.0f64, |far, m| far.max(m.abs()));
        require(farthest <= most, "values", farthest, TOO_FAR)?;
        let shares: Vec<f64> = logs.iter().map(|log| (log - total).exp()).collect();
        let sticks = self.q.sticks.with_shares(&shares);
        self.of_parts(&others, components, sticks)
    }

    /// A mixture of these columns, with the prior of these.
    fn of_parts(
        &self,
        columns: &[usize],
        components: Vec<NormalWishart>,
        sticks: Sticks,
    ) -> Result<Self> {
        let frame = self.q.frame.of_columns(columns);
        let frame = match self.q.frame.own_scale() {
            Some(factors) => {
                let scale: Vec<F> = columns.iter().map(|j| factors[*j]).collect();
                frame.with_scale(&scale)
            }
            None => frame,
        };
        let q = Distribution {
            frame,
            least_variance: self.q.least_variance,
            first_variance: self.q.first_variance,
            prior: self.q.prior.of_columns(columns)?,
            sticks,
            components,
        };
        Self::new(q, None)
    }
}

impl Prior {
    /// The prior of these columns alone.
    fn of_columns(&self, columns: &[usize]) -> Result<Self> {
        let dim = self.mean.len();
        let scale = symmetric(&self.inverse_scale, dim);
        let prior = Self {
            degrees: self.degrees - (dim - columns.len()) as f64,
            mean: columns.iter().map(|j| self.mean[*j]).collect(),
            inverse_scale: among(&scale, columns).into_iter().collect(),
            ..self.clone()
        };
        let rule = "is not positive definite in these columns";
        let singular = || Error::parameter("prior inverse scale", "its part", rule);
        prior.factored(None)?.ok_or_else(singular)
    }
}

impl Sticks {
    /// With these expected proportions, which are taken for certain. The rest beyond all sticks stays the same.
    fn with_shares(&self, shares: &[f64]) -> Self {
        /// Rows that speak for a proportion: the logarithm of its expectation is then that which is expected.
        const CERTAIN: f64 = (1u64 << 60) as f64;
        let beyond = self.0.iter().map(|[a, b]| (b / (a + b)).ln());
        let beyond = beyond.sum::<f64>().exp();
        let mut sticks = vec![[0.0; 2]; shares.len()];
        let mut after = beyond;
        for (stick, share) in sticks.iter_mut().zip(shares).rev() {
            let broken = (1.0 - beyond) * share;
            let whole = (after + broken).max(f64::MIN_POSITIVE);
            let rows = |part: f64| (CERTAIN * (part / whole)).max(f64::MIN_POSITIVE);
            *stick = [rows(broken), rows(after)];
            after += broken;
        }
        Self(sticks)
    }
}

/// The covariances (d, d) of a component: the inverse of its expected precisions.
fn covariance_of(q: &NormalWishart) -> Array2<f64> {
    symmetric(&q.whitening.covariance(), q.whitening.mean.len())
}

/// The symmetric matrix (dim, dim) that has this lower half.
fn symmetric(lower: &[f64], dim: usize) -> Array2<f64> {
    Array2::from_shape_fn((dim, dim), |(i, j)| lower[i.max(j) * dim + i.min(j)])
}

/// The whitening of component `t`.
fn whitening(t: usize, mean: Vec<f64>, covariance: Array2<f64>) -> Result<Whitening> {
    let none = vec![0.0; mean.len()];
    let covariance: Vec<f64> = covariance.into_iter().collect();
    Whitening::new(mean, &covariance, none, None)?.ok_or_else(|| singular(t))
}
