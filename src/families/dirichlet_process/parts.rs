//! Parts of a mixture: the predictive density of some columns, alone or under known values of the others.

use super::model::{DirichletProcessMixture, Distribution};
use super::posterior::{NormalWishart, Prior};
use super::sticks::{Sticks, log_sum_exp};
use crate::base::error::{Error, Result, require};
use crate::base::float::Float;
use crate::base::linalg::{self, Cholesky};
use crate::costs::whitening::Whitening;
use crate::families::columns::{TOO_FAR, check_columns, other_columns};
use crate::rows::Frame;
use std::ops::Index;

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
        check_columns(columns, self.q.frame.dim())?;
        let left_out = (self.q.frame.dim() - columns.len()) as f64;
        let components = self.q.components.iter().enumerate().map(|(t, q)| {
            let degrees = q.degrees - left_out;
            let all = Square::of(q.whitening.covariance(), q.whitening.mean.len());
            let own = all.entries(columns, columns);
            let covariance = own.iter().map(|x| x * (q.degrees / degrees)).collect();
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
        let others = other_columns(columns, values, self.q.frame.dim())?;
        let frame = &self.q.frame;
        let enter = |(j, y): (&usize, &f64)| frame.enter_length(*j, y - frame.offset[*j].to_f64());
        let known: Vec<f64> = columns.iter().zip(values).map(enter).collect();
        let marginal = self.marginal(columns)?;
        let mut logs = self.q.sticks.log_proportions();
        let mut components = Vec::with_capacity(logs.len());
        for (t, q) in self.q.components.iter().enumerate() {
            let own = &marginal.q.components[t];
            let form = own.whitening.form(&known, &mut Vec::new());
            logs[t] += own.predictive(0, 0.0).log_density(form);
            let share = q.mean_precision / (1.0 + q.mean_precision);
            let wider = 1.0 + share * form / own.degrees;
            components.push(given(t, q, (columns, &known), &others, wider)?);
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
        let own = self.q.frame.own_scale();
        let frame = match own {
            Some(own) => {
                let scale: Vec<F> = columns.iter().map(|j| own[*j]).collect();
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
        let scale = Square::of(self.inverse_scale.clone(), dim);
        let prior = Self {
            degrees: self.degrees - (dim - columns.len()) as f64,
            mean: columns.iter().map(|j| self.mean[*j]).collect(),
            inverse_scale: scale.entries(columns, columns),
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
            let own = (1.0 - beyond) * share;
            let whole = (after + own).max(f64::MIN_POSITIVE);
            let rows = |part: f64| (CERTAIN * (part / whole)).max(f64::MIN_POSITIVE);
            *stick = [rows(own), rows(after)];
            after += own;
        }
        Self(sticks)
    }
}

/// Component `t` of the other columns where the known ones have these values, and its covariance is so much wider.
fn given(
    t: usize,
    q: &NormalWishart,
    (columns, values): (&[usize], &[f64]),
    others: &[usize],
    wider: f64,
) -> Result<NormalWishart> {
    let known = columns.len();
    let left = others.len();
    let wide = 1 + left;
    let mean = &q.whitening.mean;
    let all = Square::of(q.whitening.covariance(), mean.len());
    let singular = || Error::parameter("component", t, SINGULAR);
    let Cholesky { factor, .. } =
        Cholesky::of(&all.entries(columns, columns), known, None)?.ok_or_else(singular)?;
    // L^-1 times the differences of the values, and times the covariances with the other columns.
    let mut solved = Vec::with_capacity(known * wide);
    for (j, y) in columns.iter().zip(values) {
        solved.push(y - mean[*j]);
        solved.extend(others.iter().map(|i| all[(*j, *i)]));
    }
    linalg::forward(&factor, known, &mut solved, wide);
    let mut rest = all.entries(others, others);
    let mut moved: Vec<f64> = others.iter().map(|i| mean[*i]).collect();
    for row in solved.chunks_exact(wide) {
        let (apart, across) = (row[0], &row[1..]);
        for (i, x) in across.iter().enumerate() {
            moved[i] += x * apart;
            let own = rest[i * left..][..left].iter_mut().zip(across);
            own.for_each(|(rest, y)| *rest -= x * y);
        }
    }
    rest.iter_mut().for_each(|x| *x *= wider);
    Ok(NormalWishart {
        mean_precision: q.mean_precision,
        degrees: q.degrees,
        whitening: whitening(t, moved, rest)?,
    })
}

const SINGULAR: &str = "has no positive definite covariance of these columns";

/// The whitening of component `t`.
fn whitening(t: usize, mean: Vec<f64>, covariance: Vec<f64>) -> Result<Whitening> {
    let none = vec![0.0; mean.len()];
    let found = Whitening::new(mean, &covariance, none, None)?;
    found.ok_or_else(|| Error::parameter("component", t, SINGULAR))
}

/// A symmetric matrix (dim, dim), row after row, of which the lower half is read.
struct Square {
    numbers: Vec<f64>,
    dim: usize,
}

impl Square {
    fn of(numbers: Vec<f64>, dim: usize) -> Self {
        Self { numbers, dim }
    }

    /// Its entries in these rows and columns, row after row.
    fn entries(&self, rows: &[usize], columns: &[usize]) -> Vec<f64> {
        let row = |i: &usize| columns.iter().map(|j| self[(*i, *j)]).collect::<Vec<_>>();
        rows.iter().flat_map(row).collect()
    }
}

impl Index<(usize, usize)> for Square {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.numbers[i.max(j) * self.dim + i.min(j)]
    }
}
