//! Dirichlet process mixtures of Gaussians with full precision matrices: variational inference with weights.

mod merge;
mod model;
mod posterior;
mod prior;
mod sticks;

pub use model::DirichletProcessMixture;
pub(crate) use model::StoredProcess;

use super::outer::Digits;
use super::{MStep, first_variance, steps_with_one_variance};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::Data;
use crate::m_step::{Moments, Second};
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, Frame, Rows};
use merge::{Overlaps, Scatter};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use posterior::{FARTHEST, NormalWishart, Updated};
use sticks::Sticks;

/// A Dirichlet process mixture, truncated at $T$ components (the builder's clusters), with Normal-Wishart components
/// ([E29](crate::equations#e29), [E30](crate::equations#e30); \[DP\]; Bishop, PRML, 10.2; Blei and Jordan 2006).
///
/// $$v_t \sim \text{Beta}(1, \alpha), \quad \pi_t = v_t \prod_{s \lt t} (1 - v_s), \quad \Lambda_t \sim \mathcal W(W_0, \nu_0), \quad \mu_t \mid \Lambda_t \sim \mathcal N(m_0, (\beta_0 \Lambda_t)^{-1})$$
///
/// The other families find parameters. This one finds a distribution over parameters,
///
/// $$q(v_t) = \text{Beta}(\gamma_{t1}, \gamma_{t2}), \qquad q(\mu_t, \Lambda_t) = \mathcal N(\mu_t; m_t, (\beta_t \Lambda_t)^{-1}) \thinspace \mathcal W(\Lambda_t; W_t, \nu_t)$$
///
/// and the free energy of its report is the complete evidence lower bound (E30), with all constants.
///
/// **Update** (E29), with the mass $N_t$ and the weighted mean $\bar y_t$ of each component:
///
/// $$\gamma_{t1} = 1 + N_t, \quad \gamma_{t2} = \alpha + \sum_{s \gt t} N_s, \quad \beta_t = \beta_0 + N_t, \quad \nu_t = \nu_0 + N_t, \quad m_t = \frac{\beta_0 m_0 + N_t \bar y_t}{\beta_t}$$
///
/// $$W_t^{-1} = W_0^{-1} + \sum_n w_n q_{nt} (y_n - m_t)(y_n - m_t)^T + \beta_0 (m_t - m_0)(m_t - m_0)^T$$
///
/// **Priors.** By default they follow the data, so that a fit does not depend on its unit or origin: $m_0$ is the weighted
/// mean of all rows and $W_0^{-1}$ their weighted covariance, $\beta_0 = 1$ and $\nu_0 = D$, also where EM runs on a
/// coreset. [`paper_priors`](Self::paper_priors) are those of \[DP\].
///
/// **Start**: the means at the seeds, each with the mass $W / T$ and the same variance in every direction, from the first
/// search ([E8](crate::equations#e8)). This is a proper $q$, so the first free energy is a bound too. A truncated search
/// keeps to one variance for the first two M-steps, as in [`Gaussian`](super::Gaussian).
///
/// **Merges.** Where the bound would settle, two components become one if that is sure to raise it
/// ([E51](crate::equations#e51)), and EM goes on. Only full supports merge: with
/// [`Exhaustive::truncated`](crate::e_step::Exhaustive::truncated) and other truncated searches components only empty.
///
/// **Weights count points** here, so not only their ratios matter: the larger the total weight, the weaker the prior. If
/// columns determine one another, or if components collapse onto few points, only the prior bounds the precision. So a
/// prior has a variance floor like ([E20](crate::equations#e20)) for all points: where it would leave a column less than
/// $10^{-11} W$ times its variance, so much is added to its diagonal, and $10^{-8}$ times the variance at least where it
/// follows the data.
///
/// Works on [`Dense`](crate::data::Dense) data. Time $n T D^2$ per iteration; the sums take $T D^2$ numbers per shard of
/// the rows.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let process = DirichletProcess::new(1.0).mean_precision(0.1);
/// let fit = algorithms::gmm(30).m_step(process).build()?.fit(&data)?; // at most 30 components
/// assert!(fit.model.occupied(1e-3) <= 30 && fit.model.covariances().dim() == (30, 2, 2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DirichletProcess {
    concentration: f64,
    mean_precision: f64,
    degrees: Option<f64>,
    mean: PriorMean,
    scale: PriorScale,
    merges: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum PriorMean {
    OfData,
    Zero,
    Given(Array1<f64>),
}

#[derive(Clone, Debug, PartialEq)]
enum PriorScale {
    OfData,
    /// This multiple of the identity.
    Multiple(f64),
    Given(Array2<f64>),
}

impl DirichletProcess {
    /// With the concentration $\alpha \gt 0$: the larger, the more components are expected. About
    /// $\alpha \ln(1 + W / \alpha)$ of them, for points of total weight $W$.
    #[must_use]
    pub fn new(concentration: f64) -> Self {
        Self {
            concentration,
            mean_precision: 1.0,
            degrees: None,
            mean: PriorMean::OfData,
            scale: PriorScale::OfData,
            merges: true,
        }
    }

    /// Whether components merge where that is sure to raise the bound ([E51](crate::equations#e51)). By default they do.
    /// Without it EM is that of \[DP\]: components that are not needed empty slowly, and the more rows there are, the more of
    /// them are left when the bound has settled.
    #[must_use]
    pub fn merges(self, merges: bool) -> Self {
        Self { merges, ..self }
    }

    /// $\beta_0 \gt 0$: the weight of the prior mean, in points. Default 1.
    #[must_use]
    pub fn mean_precision(self, mean_precision: f64) -> Self {
        Self {
            mean_precision,
            ..self
        }
    }

    /// $\nu_0 \gt D - 1$: the weight of the prior precision, in points. Default $D$, the least whole number allowed.
    #[must_use]
    pub fn degrees_of_freedom(self, degrees_of_freedom: f64) -> Self {
        Self {
            degrees: Some(degrees_of_freedom),
            ..self
        }
    }

    /// $m_0$ (d), in the data's own unit. Default: the weighted mean of the data. A fit refuses values that rows of its
    /// type may not have.
    #[must_use]
    pub fn mean(self, mean: ArrayView1<'_, f64>) -> Self {
        Self {
            mean: PriorMean::Given(mean.to_owned()),
            ..self
        }
    }

    /// $W_0$ (d, d), symmetric and positive definite: precisions, in the data's own unit to the power -2. The prior
    /// expects the precision $\nu_0 W_0$. Default: the inverse of the weighted covariance of the data.
    #[must_use]
    pub fn scale(self, scale: ArrayView2<'_, f64>) -> Self {
        Self {
            scale: PriorScale::Given(scale.to_owned()),
            ..self
        }
    }

    /// The priors of \[DP\]: $m_0 = 0$, $W_0 = 10 I$, $\beta_0 = 1$, $\nu_0 = D$. They suit data of variance about 1
    /// around 0, and depend on unit and origin.
    #[must_use]
    pub fn paper_priors(self) -> Self {
        Self {
            concentration: self.concentration,
            mean_precision: 1.0,
            degrees: None,
            mean: PriorMean::Zero,
            scale: PriorScale::Multiple(10.0),
            merges: self.merges,
        }
    }
}

impl<F: Float> MStep<F> for DirichletProcess {
    type Model = DirichletProcessMixture<F>;
    type Statistics = Scatter;

    fn start(&self, seeds: Centres<F>, frame: Frame<F>, data: &dyn Data<F>) -> Result<Self::Model> {
        if data.is_sparse() {
            let rule = "works on dense rows alone, not on a sketch";
            return Err(Error::parameter("DirichletProcess", "a sketch", rule));
        }
        let prior = self.prior(&frame, data)?;
        let (variance, least_variance) = first_variance(&frame, data.summary());
        let components = (0..seeds.len()).map(|c| {
            let mean = seeds.row(c)[..seeds.dim()].iter().map(|z| z.to_f64());
            NormalWishart::isotropic(&prior, 0.0, mean.collect(), variance)
        });
        let components = components.collect();
        let sticks = Sticks::new(prior.concentration, &vec![0.0; seeds.len()]);
        Ok(DirichletProcessMixture::new(
            seeds,
            frame,
            prior,
            sticks,
            components,
            least_variance,
            Some(variance),
        ))
    }

    fn start_from(
        &self,
        from: &Self::Model,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Option<Self::Model>> {
        if from.first_variance.is_some() {
            return Ok(None);
        }
        let mut model = self.start(seeds, frame, data)?;
        let ratio = model.frame.unit() * from.frame.inverse_unit();
        let same = from.frame == model.frame;
        for (q, from) in model.components.iter_mut().zip(&from.components) {
            let mut carried = from.clone();
            if !same {
                carried.whitening.mean = std::mem::take(&mut q.whitening.mean);
                carried
                    .whitening
                    .factor
                    .iter_mut()
                    .for_each(|x| *x *= ratio);
            }
            *q = carried;
        }
        model.sticks = from.sticks.clone();
        model.first_variance = None;
        model.renew();
        Ok(Some(model))
    }

    fn initial_searches(&self) -> usize {
        // Starting the variance changes the balance between proportions and distances.
        1
    }

    fn restricted_steps(&self, truncated: bool) -> usize {
        steps_with_one_variance(truncated)
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let k = model.components.len();
        let unit = model.first_variance.take().unwrap_or(1.0);
        let variance = (unit * (first.best / first.entries))
            .max(model.least_variance)
            .min(FARTHEST);
        let mass = first.weight / k as f64;
        for component in &mut model.components {
            let mean = std::mem::take(&mut component.whitening.mean);
            *component = NormalWishart::isotropic(&model.prior, mass, mean, variance);
        }
        model.sticks = Sticks::new(model.prior.concentration, &vec![mass; k]);
        model.renew();
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        Scatter {
            moments: Moments::zeros(model.components.len(), model.centres.dim(), Second::PerPair),
            overlaps: None,
        }
    }

    fn statistics_size(&self, model: &Self::Model) -> usize {
        model.components.len() * model.centres.dim().pow(2)
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        statistics: &mut Self::Statistics,
    ) {
        let digits = match &mut statistics.overlaps {
            Some(overlaps) => {
                overlaps.add(rows, block);
                // What a merge gains is a small difference of large logarithms.
                Digits::All
            }
            None => Digits::Enough,
        };
        let component = |t: usize| &model.components[t].whitening;
        statistics
            .moments
            .add_pairs(rows, block, component, digits, &[]);
    }

    fn update(&self, scatter: Self::Statistics, model: &mut Self::Model, restricted: bool) {
        let (prior, old, sums) = (&model.prior, &model.components, &scatter.moments);
        let updated = |t: usize| Updated::new(prior, sums, t, &old[t].whitening.mean);
        // The mean alone, of components whose variances are not known yet, or whose sums are not finite because the mean is
        // far outside the data.
        let moved = |t: usize| {
            let mut moved = old[t].clone();
            if sums.mass(t) > 0.0 {
                for (m, f) in moved.whitening.mean.iter_mut().zip(sums.first(t)) {
                    *m += f / sums.mass(t);
                }
            }
            moved
        };
        if model.first_variance.is_some() {
            model.components = parallel::map(old.len(), moved);
            return model.renew();
        }
        model.components = if restricted {
            let updated = parallel::map(old.len(), updated);
            let dim = model.centres.dim();
            let trace = |u: &Updated| u.inverse_scale.iter().step_by(dim + 1).sum::<f64>();
            let degrees = sums.masses().iter().map(|mass| prior.degrees + mass);
            let entries = dim as f64 * degrees.sum::<f64>();
            let variance = updated.iter().map(trace).sum::<f64>() / entries;
            let one = |(t, u): (usize, Updated)| match variance.is_finite() {
                true => NormalWishart::isotropic(prior, sums.mass(t), u.mean, variance),
                false => old[t].clone(),
            };
            updated.into_iter().enumerate().map(one).collect()
        } else {
            parallel::map(old.len(), |t| {
                NormalWishart::new(prior, sums.mass(t), updated(t)).unwrap_or_else(|| moved(t))
            })
        };
        model.sticks = Sticks::new(prior.concentration, sums.masses());
        model.renew();
    }

    fn components_merge(&self) -> bool {
        self.merges
    }

    fn statistics_to_merge(&self, model: &Self::Model, parts: usize) -> Vec<Scatter> {
        let overlaps = Overlaps::new(&model.components, &model.prior);
        let part = |_| Scatter {
            overlaps: Some(overlaps.clone()),
            ..self.statistics(model)
        };
        (0..parts).map(part).collect()
    }

    fn merge_components(&self, statistics: &mut Scatter, model: &Self::Model) -> usize {
        let weaker = match self.scale {
            PriorScale::OfData => &merge::WEAKER[..],
            _ => &[],
        };
        statistics.merge_components(&model.components, &model.prior, weaker)
    }
}
