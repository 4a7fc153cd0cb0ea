//! The model: a distribution over the parameters of the mixture, and what rows score under it.

use super::matrices;
use super::normal_wishart::{FARTHEST, NormalWishart};
use super::prior::Prior;
use super::sticks::Sticks;
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::linalg;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::data::{Centres, Frame, Rows, Scores, largest_terms};
use crate::io::Save;
use crate::kernels::quadratic::Columns;
use crate::kernels::stride;
use crate::m_step::proportions;
use crate::model::Mixture;
use crate::model::posterior::LogJoint;
use crate::model::predict;
use ndarray::{Array1, Array2, Array3, ArrayView2};
use std::f64::consts::PI;

/// A Dirichlet process mixture of Gaussians, as a distribution over its parameters (E29).
///
/// The predictive density of a point is a mixture of Student t densities (Bishop 10.81):
///
/// $$p(y) = \sum_{t=1}^{T} \bar \pi_t \thinspace \text{St} \left( y; m_t, \frac{(\nu_t + 1 - D) \beta_t}{1 + \beta_t} W_t, \nu_t + 1 - D \right)$$
///
/// That is what [`log_likelihood`](Mixture::log_likelihood), [`log_densities`](Mixture::log_densities) and
/// [`score`](Mixture::score) mean here, with the expected proportions $\bar \pi_t$, normalised.
/// [Labels](Mixture::predict) and [responsibilities](Mixture::responsibilities) are those of the E-step, and
/// [`quantization_error`](Mixture::quantization_error) is about the means $m_t$.
#[derive(Clone, Debug, PartialEq)]
pub struct DirichletProcessMixture<F> {
    /// The means, rounded.
    pub(super) centres: Centres<F>,
    pub(super) frame: Frame<F>,
    pub(super) prior: Prior,
    pub(super) sticks: Sticks,
    pub(super) components: Vec<NormalWishart>,
    pub(super) least_variance: f64,
    pub(super) scores: Scored,
    pub(super) prior_terms: f64,
    pub(super) means: Array2<F>,
}

/// What scores are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scored {
    /// Squared distances: no variance is known yet but that of the data.
    Distances { variance: f64 },
    /// -2 (E ln pi + E ln N), but for the constants of a density and for `reference`.
    Expected {
        /// (T): what is added to the quadratic form, less the reference.
        added: Vec<f64>,
        /// The mean of it, so that scores are small where most points are: they are stored in the type of the data.
        reference: f64,
        /// (T): the Frobenius norm of the factor.
        norms: Vec<f64>,
    },
}

impl<F: Float> DirichletProcessMixture<F> {
    /// What follows from the distributions: scores, divergences and rounded means.
    pub(super) fn renew(&mut self) {
        let dim = self.centres.dim() as f64;
        let components = &self.components;
        let mut added: Vec<f64> = components
            .iter()
            .zip(self.sticks.expected_logs())
            .map(|(q, log)| dim / q.mean_precision - q.expected_log_det() - 2.0 * log)
            .collect();
        // By mass, so that scores are small where most points are: an empty component has as much in it as the prior is
        // weak, and no mass.
        let prior_mass = self.prior.mean_precision;
        let mass = |q: &NormalWishart| (q.mean_precision - prior_mass).max(0.0);
        let total: f64 = components.iter().map(mass).sum();
        let parts = components.iter().zip(&added).map(|(q, a)| mass(q) * a);
        let reference = parts.sum::<f64>() / total.max(f64::MIN_POSITIVE);
        for value in &mut added {
            *value -= reference;
        }
        self.scores = Scored::Expected {
            added,
            reference,
            norms: components.iter().map(NormalWishart::norm).collect(),
        };
        let prior = &self.prior;
        let divergences = parallel::map(components.len(), |t| components[t].divergence(prior));
        let sticks = self.sticks.divergence(prior.concentration);
        self.prior_terms = -(divergences.iter().sum::<f64>() + sticks);
        self.renew_means();
    }

    pub(super) fn renew_means(&mut self) {
        let components = &self.components;
        self.centres.update(|c, row| {
            for (z, &m) in row.iter_mut().zip(&components[c].mean) {
                *z = F::from_f64(m);
            }
        });
        self.means = self.centres.leave(&self.frame);
    }

    /// The posterior means $m_t$ (T, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        self.means.view()
    }

    /// The expected precision matrices $\nu_t W_t$ (T, d, d), in the data's own unit to the power -2.
    #[must_use]
    pub fn precisions(&self) -> Array3<f64> {
        let unit = self.frame.inverse_unit();
        self.matrices(unit, |factor, dim| {
            matrices::product((factor, true), (factor, false), dim)
        })
    }

    /// Their inverses $W_t^{-1} / \nu_t$ (T, d, d), in the data's own unit, squared.
    #[must_use]
    pub fn covariances(&self) -> Array3<f64> {
        self.matrices(self.frame.unit(), |factor, dim| {
            let inverse = linalg::inverse_of_lower(factor, dim);
            matrices::product((&inverse, false), (&inverse, true), dim)
        })
    }

    /// A matrix per component, from its factor (d, d), times the square of a unit. Numbers beyond `f64` are held at its largest.
    fn matrices(&self, unit: f64, of: impl Fn(&[f64], usize) -> Vec<f64> + Sync) -> Array3<f64> {
        let (k, dim) = self.means.dim();
        let matrices = parallel::map(k, |t| {
            of(&matrices::unpacked(&self.components[t].factor, dim), dim)
        });
        let held = |x: f64| (x * unit * unit).clamp(-f64::MAX, f64::MAX);
        let values = matrices.into_iter().flatten().map(held);
        Array3::from_shape_vec((k, dim, dim), values.collect()).expect("T x d x d numbers")
    }

    /// $\nu_t$ (T).
    #[must_use]
    pub fn degrees_of_freedom(&self) -> Array1<f64> {
        self.components.iter().map(|q| q.degrees).collect()
    }

    /// $\beta_t$ (T).
    #[must_use]
    pub fn mean_precisions(&self) -> Array1<f64> {
        self.components.iter().map(|q| q.mean_precision).collect()
    }

    /// $\gamma_{t1}, \gamma_{t2}$ (T, 2). The last stick is like the others, not fixed to 1.
    #[must_use]
    pub fn sticks(&self) -> Array2<f64> {
        let sticks = &self.sticks.0;
        Array2::from_shape_fn((sticks.len(), 2), |(t, i)| {
            if i == 0 { sticks[t].0 } else { sticks[t].1 }
        })
    }

    /// The expected mixing proportions, normalised to sum to 1 (T).
    #[must_use]
    pub fn proportions(&self) -> Array1<f64> {
        let logs = self.sticks.log_proportions();
        logs.into_iter().map(f64::exp).collect()
    }

    /// The effective number of components: the exponential of the entropy of the expected
    /// [proportions](Self::proportions). $T$ if all are equal, 1 if one has everything.
    #[must_use]
    pub fn effective_components(&self) -> f64 {
        let logs = self.sticks.log_proportions();
        let terms = logs.into_iter().filter(|l| l.is_finite());
        (-terms.map(|l| l.exp() * l).sum::<f64>()).exp()
    }

    /// The number of components whose expected [proportion](Self::proportions) is at least `least`.
    #[must_use]
    pub fn occupied(&self, least: f64) -> usize {
        self.proportions().iter().filter(|p| **p >= least).count()
    }

    /// Draws `n` points from the predictive density: points (n, d), in the data's own unit, and the components they came
    /// from (n). The same `seed` gives the same points.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) if `n` is 0.
    pub fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        positive("n", n)?;
        let dim = self.centres.dim();
        let inverses: Vec<Vec<f64>> = parallel::map(self.components.len(), |t| {
            let factor = matrices::unpacked(&self.components[t].factor, dim);
            linalg::inverse_of_lower(&factor, dim)
        });
        let proportions = proportions::Proportions::learned(self.proportions().into_iter());
        let mut rng = Rng::from_seed(seed);
        let labels = Array1::from_shape_fn(n, |_| proportions.draw(&mut rng) as u32);
        let mut points = Array2::from_elem((n, dim), F::zero());
        let mut normals = vec![0.0; dim];
        // Heavy tails can leave the range of the type.
        let most = 4.0 * F::LIMIT;
        for (mut point, &t) in points.rows_mut().into_iter().zip(&labels) {
            let q = &self.components[t as usize];
            // A Student t is a normal whose precision is drawn, here about (1 + 1 / beta) times as wide.
            let squared = rng.chi_squared(q.degrees - (dim as f64 - 1.0));
            // With very few degrees of freedom the draw of the precision underflows.
            let squared = squared.max(f64::MIN_POSITIVE);
            let wider = (1.0 + 1.0 / q.mean_precision) * q.degrees / squared;
            normals.fill_with(|| rng.normal());
            let rows = inverses[t as usize].chunks_exact(dim);
            for ((j, (row, m)), x) in rows.zip(&q.mean).enumerate().zip(&mut point) {
                let step: f64 = row.iter().zip(&normals).map(|(c, e)| c * e).sum();
                let origin = self.frame.leave_exact(j, F::zero());
                let exact = origin + (m + wider.sqrt() * step) * self.frame.unit();
                *x = F::from_f64(exact.clamp(-most, most));
            }
        }
        Ok((points, labels))
    }
}

/// Scores are -2 times expected log-joints (E29), but for constants. The fast ones are in the type of the data; those
/// of components that may have a share in the row are then computed again in `f64`, so nothing is left to the margin.
impl<F: Float> Scores<F> for DirichletProcessMixture<F> {
    fn components(&self) -> usize {
        self.components.len()
    }

    /// Scores of components more than about 45 nats below the best one are approximate: their responsibility is lost
    /// beside 1.
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        /// exp(-REACH) is lost beside 1 in `f64`.
        const REACH: f64 = 45.0;
        let Scored::Expected { added, norms, .. } = &self.scores else {
            return rows.distances(&self.centres, out);
        };
        let (n, k, dim) = (rows.len(), self.components.len(), self.centres.dim());
        out.resize(n * k, F::zero());
        // Bounds on the errors (E29).
        let mut errors = vec![0.0; n * k];
        let gamma = (dim + 8) as f64 * F::EPSILON;
        let felt_from = 2.0 * largest_terms(dim) * gamma;
        // Means are rounded: as seen from a point near them, less of them is lost (E21).
        let about = self.centres.expanded().about();
        let (relative, stride) = (rows.relative(about), stride(dim));
        let mut columns = Columns::<F>::new(n, dim, |i| &relative[i * stride..][..stride]);
        let mut mean = vec![0.0; dim];
        for (t, q) in self.components.iter().enumerate() {
            for (j, (mean, m)) in mean.iter_mut().zip(&q.mean).enumerate() {
                *mean = m - about.map_or(0.0, |about| about[j].to_f64());
            }
            // With o the error of M u: o (2 |M u| + o) <= (1 + 1 / s) o^2 + s |M u|^2 for any s, so that no pair needs a
            // root.
            let far = mean.iter().map(|m| m * m).sum::<f64>();
            let share = gamma * (dim as f64).sqrt();
            let of_off = 2.0 * norms[t].powi(2) * (1.0 + 1.0 / share);
            let of_square = of_off * gamma.powi(2);
            let of_form = share + gamma;
            let constant = of_off * F::EPSILON.powi(2) * far + gamma * added[t].abs();
            columns.forms(&mean, &q.factor, |i, form, square| {
                let form = form.to_f64();
                errors[i * k + t] = of_square * square.to_f64() + of_form * form + constant;
                out[i * k + t] = F::from_f64(form + added[t]);
            });
        }
        let (mut near, mut scores) = (Vec::new(), Vec::new());
        for i in 0..n {
            let found = &mut out[i * k..(i + 1) * k];
            let errors = &errors[i * k..(i + 1) * k];
            let best = found
                .iter()
                .zip(errors)
                .fold(f64::INFINITY, |least, (s, e)| least.min(s.to_f64() + e));
            near.clear();
            // `!(s > reach)`, not `s <= reach`: an overflowed (NaN) score must be computed directly.
            #[allow(clippy::neg_cmp_op_on_partial_ord)]
            near.extend((0u32..).zip(&*found).zip(errors).filter_map(|((t, s), e)| {
                // Of a NaN too.
                let felt = !(*e <= felt_from);
                let reach = if felt { best + 2.0 * REACH } else { best };
                (!(s.to_f64() - e > reach)).then_some(t)
            }));
            self.some(rows, i, &near, &mut scores);
            for (&t, &score) in near.iter().zip(&scores) {
                found[t as usize] = score;
            }
            for score in found {
                *score = F::from_f64(held::<F>(score.to_f64()));
            }
        }
    }

    fn margin(&self, rows: &Rows<F>, i: usize, reach: F) -> F {
        match self.scores {
            Scored::Distances { .. } => rows.margin(i, &self.centres, reach),
            Scored::Expected { .. } => F::zero(),
        }
    }

    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let Scored::Expected { added, .. } = &self.scores else {
            return rows.distances_to(i, &self.centres, ids, out);
        };
        out.clear();
        let mut apart = vec![0.0; self.centres.dim()];
        out.extend(ids.iter().map(|&t| {
            let q = &self.components[t as usize];
            let score = q.form(rows.row(i), &mut apart) + added[t as usize];
            F::from_f64(held::<F>(score))
        }));
    }
}

/// A score, clamped so that it stays finite; NaN becomes the largest score.
fn held<F: Float>(score: f64) -> f64 {
    score.min(F::LARGEST_SCORE)
}

impl<F: Float> Mixture<F> for DirichletProcessMixture<F> {
    fn proportions(&self) -> Array1<f64> {
        self.proportions().to_owned()
    }

    fn variances(&self) -> Array2<f64> {
        let covariances = self.covariances();
        let (k, d) = (self.components.len(), self.centres.dim());
        Array2::from_shape_fn((k, d), |(c, j)| covariances[[c, j, j]])
    }

    fn saved(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        self.to_bytes(notes)
    }

    fn loaded(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes(bytes)
    }

    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.frame
    }

    fn log_joint(&self) -> LogJoint {
        let shift = self.frame.log_density_shift();
        match self.scores {
            Scored::Distances { variance } => LogJoint {
                alpha: 0.0,
                gamma: shift - 0.5 * (2.0 * PI * variance).ln(),
                beta: 0.5 / variance,
            },
            Scored::Expected { reference, .. } => LogJoint {
                alpha: -0.5 * reference,
                gamma: shift - 0.5 * (2.0 * PI).ln(),
                beta: 0.5,
            },
        }
    }

    fn prior_terms(&self) -> f64 {
        self.prior_terms
    }

    /// Labels come from expected log-joints, densities from the predictive distribution.
    fn evaluations_per_component(&self) -> u64 {
        2
    }

    /// Predictive densities (Bishop 10.81), in `f64` for every component: their tails fall off slowly, and there is no
    /// telling which of them matter.
    fn judge(&self, rows: &Rows<F>, labels: Option<&mut [u32]>) -> Vec<f64> {
        if let Some(labels) = labels {
            predict::label(self, rows, labels);
        }
        let (n, k) = (rows.len(), self.components.len());
        let mut logs = vec![0.0; n * k];
        let mut columns = Columns::<f64>::new(n, self.centres.dim(), |i| rows.row(i));
        let proportions = self.sticks.log_proportions();
        for (t, (q, proportion)) in self.components.iter().zip(proportions).enumerate() {
            let (constant, b, c) = q.predictive();
            columns.forms(&q.mean, &q.factor, |i, form, _| {
                logs[i * k + t] = proportion + constant - b * (c * form.min(FARTHEST)).ln_1p();
            });
        }
        let shift = self.centres.dim() as f64 * self.frame.log_density_shift();
        let rows = logs.chunks_exact(k).map(|logs| {
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            shift + most + logs.iter().map(|l| (l - most).exp()).sum::<f64>().ln()
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::prior::tests::ill_conditioned;
    use super::*;
    use crate::algorithms;
    use crate::base::float::Element;
    use crate::data::{Data, Dense};
    use crate::kernels::quadratic;

    fn scores<T: Element<Float = T> + Float>() -> f64 {
        let x = ill_conditioned::<T>(700);
        let data = Dense::new(x.view()).unwrap();
        let fit = algorithms::dp_gmm(8, 1.0)
            .max_iterations(15)
            .build()
            .unwrap();
        let model = fit.fit(&data).unwrap().model;
        let mut far = x.clone();
        far.row_mut(0).fill(T::from_f64(T::LIMIT));
        far.row_mut(1).fill(T::from_f64(1e9));
        let data = Dense::new(far.view()).unwrap();
        let mut rows = Rows::default();
        data.load(0..700, &model.frame, &mut rows).unwrap();
        let (mut fast, mut direct) = (Vec::new(), Vec::new());
        model.all(&rows, &mut fast);
        let ids: Vec<u32> = (0..8).collect();
        let mut columns = Columns::<T>::new(700, 6, |i| rows.row(i));
        let mut off = 0.0f64;
        for q in &model.components {
            columns.forms(&q.mean, &q.factor, |i, form, _| {
                let row = rows.row(i)[..6]
                    .iter()
                    .zip(&q.mean)
                    .map(|(z, m)| z.to_f64() - m);
                let exact = quadratic::form(&q.factor, &row.collect::<Vec<_>>());
                if i > 1 && exact < 90.0 {
                    off = off.max((form.to_f64() - exact).abs());
                }
            });
        }
        for i in 0..700 {
            model.some(&rows, i, &ids, &mut direct);
            let best = direct.iter().fold(f64::INFINITY, |a, s| a.min(s.to_f64()));
            for (fast, direct) in fast[i * 8..].iter().zip(&direct) {
                assert!(fast.is_finite() && direct.is_finite());
                // The same where a component may have a share, and far where it has none.
                let near = direct.to_f64() < best + 80.0 || fast.to_f64() < best + 80.0;
                // What the bound allows that decides which are computed directly.
                let within = 2.0 * largest_terms(6) * 14.0 * T::EPSILON;
                let off = (fast.to_f64() - direct.to_f64()).abs();
                assert!(!near || off <= within, "{fast} {direct}");
            }
        }
        off
    }

    #[test]
    fn scores_are_exact_where_they_count() {
        // Left to `f32` they would be off by more than anything below notices.
        assert!(scores::<f32>() > 1e-2);
        assert!(scores::<f64>() < 1e-6);
    }
}
