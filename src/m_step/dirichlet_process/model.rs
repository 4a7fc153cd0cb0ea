//! The model: a distribution over the parameters of the mixture, what rows score under it, and its file.

use super::posterior::NormalWishart;
use super::prior::Prior;
use super::sticks::Sticks;
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::data::{Centres, Frame, Rows, Scores};
use crate::io::{self, Common, FileFault, Reader, Save};
use crate::m_step::proportions;
use crate::model::posterior::LogJoint;
use crate::model::whitened::{self, Whitening};
use crate::model::{Mixture, predict};
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
    /// The variance of every component, until that of the seeds is known: scores are squared distances in units of it.
    pub(super) first_variance: Option<f64>,
    /// (T): scores are -2 (E ln pi + E ln N), but for the constants of a density and for `reference`: quadratic forms, and
    /// this.
    added: Vec<f64>,
    /// The mean of what is added, so that scores are small where most points are: they are stored in the type of the data.
    reference: f64,
    prior_terms: f64,
    means: Array2<F>,
}

impl<F: Float> DirichletProcessMixture<F> {
    /// With all that follows from the distributions.
    pub(super) fn new(
        centres: Centres<F>,
        frame: Frame<F>,
        prior: Prior,
        sticks: Sticks,
        components: Vec<NormalWishart>,
        least_variance: f64,
        first_variance: Option<f64>,
    ) -> Self {
        let mut model = Self {
            means: centres.leave(&frame),
            centres,
            frame,
            prior,
            sticks,
            components,
            least_variance,
            first_variance,
            added: Vec::new(),
            reference: 0.0,
            prior_terms: 0.0,
        };
        model.renew();
        model
    }

    /// What follows from the distributions: scores, divergences and rounded means.
    pub(super) fn renew(&mut self) {
        let components = &self.components;
        self.centres.update(|c, row| {
            for (z, &m) in row.iter_mut().zip(&components[c].whitening.mean) {
                *z = F::from_f64(m);
            }
        });
        self.means = self.centres.leave(&self.frame);
        let dim = self.centres.dim() as f64;
        if let Some(variance) = self.first_variance {
            self.added = vec![0.0; components.len()];
            (self.reference, self.prior_terms) = (dim * variance.ln(), 0.0);
            return;
        }
        let logs = self.sticks.expected_logs();
        let added = components
            .iter()
            .zip(logs)
            .map(|(q, log)| dim / q.mean_precision - q.expected_log_det() - 2.0 * log);
        self.added = added.collect();
        // By mass, so that scores are small where most points are: an empty component has as much in it as the prior is
        // weak, and no mass.
        let prior = &self.prior;
        let mass = |q: &NormalWishart| (q.mean_precision - prior.mean_precision).max(0.0);
        let total: f64 = components.iter().map(mass).sum();
        let parts = components.iter().zip(&self.added).map(|(q, a)| mass(q) * a);
        self.reference = parts.sum::<f64>() / total.max(f64::MIN_POSITIVE);
        for value in &mut self.added {
            *value -= self.reference;
        }
        let divergences = parallel::map(components.len(), |t| components[t].divergence(prior));
        let sticks = self.sticks.divergence(prior.concentration);
        self.prior_terms = -(divergences.iter().sum::<f64>() + sticks);
    }

    fn whitenings(&self) -> impl Iterator<Item = &Whitening> {
        self.components.iter().map(|q| &q.whitening)
    }

    /// The posterior means $m_t$ (T, d), in the data's own unit.
    #[must_use]
    pub fn means(&self) -> ArrayView2<'_, F> {
        self.means.view()
    }

    /// The expected precision matrices $\nu_t W_t$ (T, d, d), in the data's own unit to the power -2.
    #[must_use]
    pub fn precisions(&self) -> Array3<f64> {
        self.matrices(self.frame.inverse_unit(), Whitening::precision)
    }

    /// Their inverses $W_t^{-1} / \nu_t$ (T, d, d), in the data's own unit, squared.
    #[must_use]
    pub fn covariances(&self) -> Array3<f64> {
        self.matrices(self.frame.unit(), Whitening::covariance)
    }

    /// A matrix per component, times the square of a unit. Numbers beyond `f64` are held at its largest.
    fn matrices(&self, unit: f64, of: fn(&Whitening) -> Vec<f64>) -> Array3<f64> {
        let (k, dim) = self.means.dim();
        let matrices = parallel::map(k, |t| of(&self.components[t].whitening));
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
        let inverses = parallel::map(self.components.len(), |t| {
            self.components[t].whitening.inverse()
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
            for ((j, (row, m)), x) in rows.zip(&q.whitening.mean).enumerate().zip(&mut point) {
                let step: f64 = row.iter().zip(&normals).map(|(c, e)| c * e).sum();
                let origin = self.frame.leave_exact(j, F::zero());
                let exact = origin + (m + wider.sqrt() * step) * self.frame.unit();
                *x = F::from_f64(exact.clamp(-most, most));
            }
        }
        Ok((points, labels))
    }
}

/// Scores are -2 times expected log-joints (E29), but for constants.
impl<F: Float> Scores<F> for DirichletProcessMixture<F> {
    fn components(&self) -> usize {
        self.components.len()
    }

    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        whitened::scores(self.whitenings(), &self.added, rows, out);
    }

    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        let component = |t: usize| &self.components[t].whitening;
        whitened::some_scores(component, &self.added, rows, i, ids, out);
    }
}

impl<F: Float> Mixture<F> for DirichletProcessMixture<F> {
    fn proportions(&self) -> Array1<f64> {
        self.proportions()
    }

    fn variances(&self) -> Array2<f64> {
        let covariances = self.covariances();
        Array2::from_shape_fn(self.means.dim(), |(c, j)| covariances[[c, j, j]])
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
        LogJoint {
            alpha: -0.5 * self.reference,
            gamma: self.frame.log_density_shift() - 0.5 * (2.0 * PI).ln(),
            beta: 0.5,
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
        let (k, dim) = (self.components.len(), self.centres.dim());
        let mut logs = vec![0.0; rows.len() * k];
        let proportions = self.sticks.log_proportions();
        let densities: Vec<_> = self.components.iter().map(|q| q.predictive()).collect();
        whitened::forms(self.whitenings(), rows, dim, |t, i, form| {
            logs[i * k + t] = proportions[t] + densities[t].log_density(form);
        });
        let shift = dim as f64 * self.frame.log_density_shift();
        let rows = logs.chunks_exact(k).map(|logs| {
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            shift + most + logs.iter().map(|l| (l - most).exp()).sum::<f64>().ln()
        });
        rows.collect()
    }
}

const FAMILY: &str = "DirichletProcess";

impl<F: Float> Save for DirichletProcessMixture<F> {
    fn to_bytes(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let common = (&self.centres, &self.frame);
        io::model(FAMILY, common, self.means(), notes, &|file| {
            let (k, dim, prior) = (self.components.len(), self.centres.dim(), &self.prior);
            file.numbers("least variance", &[self.least_variance]);
            if let Some(variance) = self.first_variance {
                file.numbers("first variance", &[variance]);
            }
            let strength = [prior.concentration, prior.mean_precision, prior.degrees];
            file.numbers("prior", &strength);
            file.numbers("prior mean", &prior.mean);
            file.numbers("prior inverse scale", &prior.inverse_scale);
            let sticks = self.sticks.0.iter().flat_map(|&(a, b)| [a, b]);
            file.section("sticks", 2 * k, sticks);
            let mut each = |name, size, of: fn(&NormalWishart) -> &[f64]| {
                let numbers = self.components.iter().flat_map(|q| of(q).iter().copied());
                file.section(name, k * size, numbers);
            };
            each("mean precisions", 1, |q| {
                std::slice::from_ref(&q.mean_precision)
            });
            each("degrees of freedom", 1, |q| {
                std::slice::from_ref(&q.degrees)
            });
            each("inflations", 1, |q| {
                std::slice::from_ref(&q.whitening.inflation)
            });
            each("component means", dim, |q| &q.whitening.mean);
            each("factors", dim * (dim + 1) / 2, |q| &q.whitening.factor);
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let mut file = Reader::new(bytes)?;
            let common: Common<F> = file.common(FAMILY)?;
            let (k, dim) = (common.centres.len(), common.centres.dim());
            if common.frame.basis().is_some() {
                let rule = "must not be there: the family has none";
                return Err(FileFault::content("basis", rule));
            }
            let least_variance = file.one_positive("least variance")?;
            let first_variance = match file.has("first variance") {
                true => Some(file.one_positive("first variance")?),
                false => None,
            };
            let strength = file.positive("prior", &[3])?;
            let mean = file.finite("prior mean", &[dim])?;
            let inverse_scale = file.finite("prior inverse scale", &[dim, dim])?;
            let prior = Prior::new(strength[0], strength[1], strength[2], mean, inverse_scale);
            let rule = "must be positive definite";
            let prior = prior.ok_or_else(|| FileFault::content("prior inverse scale", rule))?;
            let sticks = file.positive("sticks", &[k, 2])?;
            let sticks = sticks.chunks_exact(2).map(|stick| (stick[0], stick[1]));
            // As many means as there are in the file: then the size of a triangle does not overflow.
            let means = file.finite::<f64>("component means", &[k, dim])?;
            let size = dim * (dim + 1) / 2;
            let mean_precisions = file.positive("mean precisions", &[k])?;
            let degrees = file.positive("degrees of freedom", &[k])?;
            let inflations = file.positive("inflations", &[k])?;
            let factors = file.finite::<f64>("factors", &[k, size])?;
            file.end()?;
            let wide = |nu: &f64| nu - (dim as f64 - 1.0) > 0.0;
            if !wide(&prior.degrees) || !degrees.iter().all(wide) {
                let rule = "must be greater than d - 1";
                return Err(FileFault::content("degrees of freedom", rule));
            }
            let diagonal = |factor: &[f64]| (0..dim).all(|j| factor[j * (j + 3) / 2] > 0.0);
            if !factors.chunks_exact(size).all(diagonal) {
                let rule = "must have a positive diagonal";
                return Err(FileFault::content("factors", rule));
            }
            let parts = means.chunks_exact(dim).zip(factors.chunks_exact(size));
            let components = parts.enumerate().map(|(t, (mean, factor))| NormalWishart {
                mean_precision: mean_precisions[t],
                degrees: degrees[t],
                whitening: Whitening {
                    mean: mean.to_vec(),
                    factor: factor.to_vec(),
                    inflation: inflations[t],
                },
            });
            let (components, sticks) = (components.collect(), Sticks(sticks.collect()));
            let (centres, frame) = (common.centres, common.frame);
            io::finite(Self::new(
                centres,
                frame,
                prior,
                sticks,
                components,
                least_variance,
                first_variance,
            ))
        };
        read().map_err(FileFault::of_bytes)
    }
}
