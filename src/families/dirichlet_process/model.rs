//! The model: a distribution over the parameters of the mixture, what rows cost under it, and its file.

use super::merge::Pair;
use super::posterior::{NormalWishart, Prior};
use super::sticks::{Sticks, log_sum_exp};
use crate::base::cached::Cached;
use crate::base::cancel::{Watch, unwatched};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::{Float, held_in_range};
use crate::base::parallel;
use crate::costs::observed::Observed;
use crate::costs::patterns::all_forms;
use crate::costs::whitened;
use crate::costs::whitening::{Transforms, Whitening};
use crate::costs::{Cost, Whitened};
use crate::families::proportions;
use crate::io::{all_finite, all_positive, rule};
use crate::model::Mixture;
use crate::model::posterior::LogJoint;
use crate::rows::{Centres, Frame, Rows};
use ndarray::{Array1, Array2, Array3, ArrayD, ArrayView2};
use std::f64::consts::PI;

/// A Dirichlet process mixture of Gaussians, as a distribution over its parameters (E29).
///
/// Densities and likelihoods are those of the predictive distribution, a mixture of Student t densities (Bishop 10.81) with
/// the expected proportions $\bar \pi_t$, normalised:
///
/// $$p(y) = \sum_{t=1}^{T} \bar \pi_t \thinspace \text{St} \left( y; m_t, \frac{(\nu_t + 1 - D) \beta_t}{1 + \beta_t} W_t, \nu_t + 1 - D \right)$$
///
/// [Labels](Mixture::predict) and [responsibilities](Mixture::responsibilities) are those of the E-step, and
/// [`quantization_error`](Mixture::quantization_error) is about the means $m_t$.
#[derive(Clone, Debug, PartialEq)]
pub struct DirichletProcessMixture<F> {
    pub(in crate::families) q: Distribution<F>,
    /// The means, rounded.
    pub(super) centres: Centres<F>,
    /// (T): costs are -2 (E ln pi + E ln N), without the constants of a density and `reference`: quadratic forms, and
    /// this.
    added: Vec<f64>,
    /// The mean of what is added, so that costs are small where most points are: they are stored in the type of the data.
    reference: f64,
    /// Added to what determinants add to costs of rows that know some of their columns (T).
    penalties: Vec<f64>,
    precisions: Vec<Cached<Vec<f64>>>,
    prior_terms: f64,
    /// Components that may merge after the next search.
    pub(super) pairs: Vec<Pair>,
    /// The points (T, d) near the rows of each component that sums are about.
    pub(super) origins: Vec<f64>,
    means: Array2<F>,
}

/// The distribution over the parameters, which all else follows from, as files have it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float", deny_unknown_fields))]
pub(in crate::families) struct Distribution<F> {
    pub(super) frame: Frame<F>,
    pub(super) least_variance: f64,
    /// The variance of every component, until that of the seeds is known: costs are squared distances in units of it.
    pub(super) first_variance: Option<f64>,
    pub(super) prior: Prior,
    pub(super) sticks: Sticks,
    pub(super) components: Vec<NormalWishart>,
}

impl<F: Float> DirichletProcessMixture<F> {
    pub(super) fn new(q: Distribution<F>, watch: Watch<'_>) -> Result<Self> {
        let zeros = Array2::zeros((q.components.len(), q.frame.dim()));
        let mut model = Self {
            q,
            centres: Centres::of_coordinates(zeros.view()),
            means: zeros,
            added: Vec::new(),
            reference: 0.0,
            penalties: Vec::new(),
            precisions: Vec::new(),
            prior_terms: 0.0,
            pairs: Vec::new(),
            origins: Vec::new(),
        };
        model.renew(watch)?;
        Ok(model)
    }

    /// Recomputes all that follows from the distributions: costs, divergences and rounded means.
    pub(super) fn renew(&mut self, watch: Watch<'_>) -> Result<()> {
        let components = &self.q.components;
        let origins = components.iter().flat_map(|q| q.near_rows(&self.q.prior));
        self.origins = origins.collect();
        self.centres.update(|c, row| {
            for (z, &m) in row.iter_mut().zip(&components[c].whitening.mean) {
                *z = F::from_f64(m);
            }
        });
        self.means = self.centres.leave(&self.q.frame);
        self.precisions = vec![Cached::default(); components.len()];
        let dim = self.centres.dim() as f64;
        if let Some(variance) = self.q.first_variance {
            self.added = vec![0.0; components.len()];
            self.penalties = vec![-dim * variance.ln(); components.len()];
            (self.reference, self.prior_terms) = (dim * variance.ln(), 0.0);
            return Ok(());
        }
        let logs = self.q.sticks.expected_logs();
        let added = components.iter().zip(logs);
        let added = added.map(|(q, log)| dim / q.mean_precision - q.expected_log_det() - 2.0 * log);
        self.added = added.collect();
        // By mass, so that costs are small where most points are: an empty component has as much in it as the prior is
        // weak, and no mass.
        let prior = &self.q.prior;
        let mass = |q: &NormalWishart| (q.mean_precision - prior.mean_precision).max(0.0);
        let total: f64 = components.iter().map(mass).sum();
        let parts = components.iter().zip(&self.added).map(|(q, a)| mass(q) * a);
        self.reference = parts.sum::<f64>() / total.max(f64::MIN_POSITIVE);
        for value in &mut self.added {
            *value -= self.reference;
        }
        let penalties = components.iter().zip(&self.added);
        let penalties = penalties.map(|(q, added)| added - q.whitening.log_det());
        self.penalties = penalties.collect();
        let divergences =
            parallel::map(components.len(), |t| components[t].divergence(prior, watch));
        let divergences = parallel::all(divergences)?;
        let sticks = self.q.sticks.divergence(prior.concentration);
        self.prior_terms = -(divergences.iter().sum::<f64>() + sticks);
        Ok(())
    }

    /// The costs of rows that know some of their columns (E60).
    pub(super) fn observed(&self) -> Observed<'_> {
        Observed {
            transforms: self,
            precisions: &self.precisions,
            means: None,
            penalties: &self.penalties,
            ridge: &[],
            unit: 1.0,
        }
    }

    /// The posterior means $m_t$ (T, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        self.means.view()
    }

    /// The expected precision matrices $\nu_t W_t$ (T, d, d), in the data's own unit to the power -2.
    #[must_use]
    pub fn precisions(&self) -> Array3<f64> {
        self.matrices(Frame::enter_product, Whitening::precision)
    }

    /// Their inverses $W_t^{-1} / \nu_t$ (T, d, d), in the data's own unit, squared.
    #[must_use]
    pub fn covariances(&self) -> Array3<f64> {
        self.matrices(Frame::leave_product, Whitening::covariance)
    }

    /// A matrix per component, times the units of its columns. Numbers beyond `f64` are held at its largest.
    fn matrices(
        &self,
        in_unit: impl Fn(&Frame<F>, usize, usize, f64) -> f64,
        of: fn(&Whitening) -> Vec<f64>,
    ) -> Array3<f64> {
        let (k, dim) = self.means.dim();
        let matrices = parallel::map(k, |t| of(&self.q.components[t].whitening));
        Array3::from_shape_fn((k, dim, dim), |(t, i, j)| {
            let x = matrices[t][i * dim + j];
            in_unit(&self.q.frame, i, j, x).clamp(-f64::MAX, f64::MAX)
        })
    }

    /// $\nu_t$ (T).
    #[must_use]
    pub fn degrees_of_freedom(&self) -> Array1<f64> {
        self.q.components.iter().map(|q| q.degrees).collect()
    }

    /// $\beta_t$ (T).
    #[must_use]
    pub fn mean_precisions(&self) -> Array1<f64> {
        self.q.components.iter().map(|q| q.mean_precision).collect()
    }

    /// $\gamma_{t1}, \gamma_{t2}$ (T, 2). The last stick is like the others, not fixed to 1.
    #[must_use]
    pub fn sticks(&self) -> Array2<f64> {
        let sticks = &self.q.sticks.0;
        Array2::from_shape_fn((sticks.len(), 2), |(t, i)| sticks[t][i])
    }
}

impl<F: Float> Transforms for DirichletProcessMixture<F> {
    fn transform(&self, c: usize) -> &Whitening {
        &self.q.components[c].whitening
    }
}

impl<F: Float> Mixture<F> for DirichletProcessMixture<F> {
    /// -2 times expected log-joints (E29), up to constants.
    fn cost(&self) -> Cost<'_, F> {
        Cost::Whitened(Whitened::each(&self.added, self.observed()))
    }

    fn proportions(&self) -> Array1<f64> {
        let logs = self.q.sticks.log_proportions();
        logs.into_iter().map(f64::exp).collect()
    }

    fn variances(&self) -> Array2<f64> {
        let covariances = self.covariances();
        Array2::from_shape_fn(self.means.dim(), |(c, j)| covariances[[c, j, j]])
    }

    /// From the predictive density.
    fn sample(&self, n: usize, seed: u64) -> Result<(Array2<F>, Array1<u32>)> {
        let dim = self.centres.dim();
        let inverses = parallel::map(self.q.components.len(), |t| {
            unwatched(self.q.components[t].whitening.inverse(None))
        });
        let proportions = proportions::Proportions::learned(self.proportions().into_iter());
        let mut normals = vec![0.0; dim];
        proportions.draw(n, dim, seed, |t, rng, mut point| {
            let q = &self.q.components[t];
            // A Student t is a normal whose precision is drawn, here about (1 + 1 / beta) times as wide.
            let squared = rng.chi_squared(q.degrees - (dim as f64 - 1.0));
            // With very few degrees of freedom the draw of the precision underflows.
            let squared = squared.max(f64::MIN_POSITIVE);
            let wider = (1.0 + 1.0 / q.mean_precision) * q.degrees / squared;
            normals.fill_with(|| rng.normal());
            let rows = inverses[t].chunks_exact(dim);
            for ((j, (row, m)), x) in rows.zip(&q.whitening.mean).enumerate().zip(&mut point) {
                let step: f64 = row.iter().zip(&normals).map(|(c, e)| c * e).sum();
                let origin = self.q.frame.leave_exact(j, F::zero());
                let exact = origin + (m + wider.sqrt() * step) * self.q.frame.unit_of(j);
                *x = held_in_range(exact);
            }
        })
    }

    /// With `covariances` (T, d, d), `degrees_of_freedom` (T), `mean_precisions` (T) and `sticks` (T, 2).
    fn parameters(&self) -> Vec<(&'static str, ArrayD<f64>)> {
        vec![
            ("variances", self.variances().into_dyn()),
            ("proportions", self.proportions().into_dyn()),
            ("covariances", self.covariances().into_dyn()),
            ("degrees_of_freedom", self.degrees_of_freedom().into_dyn()),
            ("mean_precisions", self.mean_precisions().into_dyn()),
            ("sticks", self.sticks().into_dyn()),
        ]
    }

    fn centres(&self) -> &Centres<F> {
        &self.centres
    }

    fn frame(&self) -> &Frame<F> {
        &self.q.frame
    }

    fn log_joint(&self) -> LogJoint {
        LogJoint {
            alpha: -0.5 * self.reference,
            gamma: self.q.frame.log_density_shift() - 0.5 * (2.0 * PI).ln(),
            beta: 0.5,
        }
    }

    fn prior_terms(&self) -> f64 {
        self.prior_terms
    }

    /// Predictive densities (Bishop 10.81), in `f64` for every component: their tails fall off slowly, and there is no
    /// telling which of them matter. Labels come from expected log-joints.
    fn own_log_densities(&self, rows: &Rows<F>) -> Option<Vec<f64>> {
        let components = &self.q.components;
        let k = components.len();
        let mut logs = vec![0.0; rows.len() * k];
        let proportions = self.q.sticks.log_proportions();
        match rows.entries() {
            None => {
                let densities: Vec<_> = components.iter().map(|q| q.predictive(0, 0.0)).collect();
                whitened::forms(self, rows, k, |t, i, form| {
                    logs[i * k + t] = proportions[t] + densities[t].log_density(form);
                });
            }
            Some(entries) => {
                let ids: Vec<u32> = (0..k as u32).collect();
                all_forms(
                    &self.observed(),
                    entries,
                    &ids,
                    &mut |i, first, forms, log_dets| {
                        let missing = rows.dim - rows.known(i);
                        let numbers = forms.0.iter().zip(log_dets.0);
                        for (t, (form, log_det)) in (first..k).zip(numbers) {
                            let given = log_det - components[t].whitening.log_det();
                            let density = components[t].predictive(missing, given);
                            logs[i * k + t] = proportions[t] + density.log_density(*form);
                        }
                    },
                );
            }
        }
        let shift = self.q.frame.log_density_shift();
        let rows_of_logs = logs.chunks_exact(k).enumerate();
        let of_row = |(i, logs)| rows.known(i) as f64 * shift + rows.units(i) + log_sum_exp(logs);
        Some(rows_of_logs.map(of_row).collect())
    }
}

impl<F: Float> TryFrom<Distribution<F>> for DirichletProcessMixture<F> {
    type Error = FileFault;

    fn try_from(mut q: Distribution<F>) -> std::result::Result<Self, FileFault> {
        let k = q.components.len();
        let dim = q.frame.dim();
        let prior = &q.prior;
        let basis = "must not be there: the family has none";
        rule(q.frame.basis().is_none(), "basis", basis)?;
        rule(k > 0, "components", "must be at least one")?;
        all_positive("least variance", &[q.least_variance], 1)?;
        let first = q.first_variance.as_slice();
        all_positive("first variance", first, first.len())?;
        let strength = [prior.concentration, prior.mean_precision, prior.degrees];
        all_positive("prior", &strength, 3)?;
        all_finite("prior mean", &prior.mean, dim)?;
        all_finite("prior inverse scale", &prior.inverse_scale, dim * dim)?;
        all_positive("sticks", q.sticks.0.as_flattened(), 2 * k)?;
        let wide = |nu: f64| nu - (dim as f64 - 1.0) > 0.0;
        let most = Frame::<F>::farthest_centre();
        for q in &q.components {
            let mean = &q.whitening.mean;
            let factor = &q.whitening.factor;
            all_positive("mean precisions", &[q.mean_precision], 1)?;
            all_positive("degrees of freedom", &[q.degrees], 1)?;
            all_positive("inflations", &[q.whitening.inflation], 1)?;
            all_finite("component means", mean, dim)?;
            all_finite("factors", factor, dim * (dim + 1) / 2)?;
            let near = mean.iter().all(|m| m.abs() <= most);
            rule(near, "component means", "must be near the frame")?;
            let diagonal = (0..dim).all(|j| factor[j * (j + 3) / 2] > 0.0);
            rule(diagonal, "factors", "must have a positive diagonal")?;
        }
        let all_wide = wide(prior.degrees) && q.components.iter().all(|q| wide(q.degrees));
        let degrees = "must be greater than d - 1";
        rule(all_wide, "degrees of freedom", degrees)?;
        let definite = || FileFault::content("prior inverse scale", "must be positive definite");
        q.prior = unwatched(q.prior.factored(None)).ok_or_else(definite)?;
        Ok(unwatched(Self::new(q, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Distribution<f64>, f64);

    #[test]
    fn values_that_no_process_has_are_errors_that_name_the_section() {
        let whitening = Whitening {
            mean: vec![0.5, 0.25],
            factor: vec![1.0, 0.2, 2.0],
            inflation: 1.5,
        };
        let component = NormalWishart {
            mean_precision: 3.0,
            degrees: 4.0,
            whitening,
        };
        let prior = Prior {
            concentration: 1.0,
            mean_precision: 1.0,
            degrees: 2.0,
            mean: vec![0.0; 2],
            inverse_scale: vec![1.0, 0.0, 0.0, 1.0],
            ..Prior::default()
        };
        let prior = unwatched(prior.factored(None));
        let sound = Distribution {
            frame: Frame::<f64>::from_parts(&[1.0, 2.0], &[0.1, 0.2], 0),
            least_variance: 1e-9,
            first_variance: None,
            prior: prior.unwrap(),
            sticks: Sticks(vec![[1.0, 2.0], [1.0, 1.0]]),
            components: vec![component.clone(), component],
        };
        let refuse = |section: &str, change: Change, bad: &[f64]| {
            for bad in bad {
                let mut q = sound.clone();
                change(&mut q, *bad);
                match DirichletProcessMixture::try_from(q).map(|_| ()) {
                    Err(FileFault::Content { section: found, .. }) => assert_eq!(found, section),
                    other => panic!("{section} {bad}: {other:?}"),
                }
            }
        };
        assert!(DirichletProcessMixture::try_from(sound.clone()).is_ok());
        let improper = &[f64::NAN, f64::INFINITY, 0.0, -1.0];
        refuse("least variance", |q, x| q.least_variance = x, improper);
        let first: Change = |q, x| q.first_variance = Some(x);
        refuse("first variance", first, improper);
        refuse("sticks", |q, x| q.sticks.0[1][0] = x, improper);
        refuse("prior", |q, x| q.prior.concentration = x, improper);
        let scale: Change = |q, x| q.prior.inverse_scale[0] = x;
        refuse("prior inverse scale", scale, improper);
        let precision: Change = |q, x| q.components[1].mean_precision = x;
        refuse("mean precisions", precision, improper);
        let degrees: Change = |q, x| q.components[1].degrees = x;
        refuse("degrees of freedom", degrees, improper);
        refuse("degrees of freedom", degrees, &[0.5]);
        refuse("degrees of freedom", |q, x| q.prior.degrees = x, &[0.5]);
        let factor: Change = |q, x| q.components[1].whitening.factor[2] = x;
        refuse("factors", factor, improper);
        let longer: Change = |q, x| q.components[0].whitening.factor.push(x);
        refuse("factors", longer, &[0.0]);
        let inflation: Change = |q, x| q.components[1].whitening.inflation = x;
        refuse("inflations", inflation, improper);
        let mean: Change = |q, x| q.components[0].whitening.mean[1] = x;
        refuse("component means", mean, &[f64::NAN, f64::INFINITY, 1e300]);
        refuse("prior mean", |q, x| q.prior.mean.push(x), &[0.0]);
        refuse("sticks", |q, _| q.sticks.0.truncate(1), &[0.0]);
        refuse("components", |q, _| q.components.clear(), &[0.0]);
    }
}
