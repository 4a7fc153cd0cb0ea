//! Dirichlet process mixtures of Gaussians with full precision matrices: variational inference with weights.

mod from_parameters;
mod gamma;
mod ill_conditioned;
mod matrices;
mod merging;
mod mixture;
mod normal_wishart;
mod prior;
mod products;
mod saving;
mod statistics;
mod sticks;

pub use mixture::DirichletProcessMixture;
use statistics::Scatter;

use super::{MStep, Merging, first_variance, steps_with_one_variance};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Centres, Data, Frame, Rows};
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use merging::{Overlaps, WEAKER};
use mixture::Scored;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use normal_wishart::{FARTHEST, NormalWishart};
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
/// coreset. A variance below the floor ([E20](crate::equations#e20)) is raised to it; where columns determine one another
/// to within 1e-8 of their variance, each variance grows by that share. [`paper_priors`](Self::paper_priors) are those of
/// \[DP\].
///
/// **Start**: the means at the seeds, each with the mass $W / T$ and the same variance in every direction, from the first
/// search ([E8](crate::equations#e8)). This is a proper $q$, so the first free energy is a bound too. A truncated search
/// keeps to one variance for the first two M-steps, as in [`Gaussian`](super::Gaussian).
///
/// **Merges.** Where the bound would settle, two components become one if that is sure to raise it
/// ([E51](crate::equations#e51)), and EM goes on. If $W_0$ follows the data, the merge must pay under weaker priors, too. Only
/// full supports merge: with [`Exhaustive::truncated`](crate::e_step::Exhaustive::truncated) and other truncated searches
/// components only empty.
///
/// **Weights count points** here, so not only their ratios matter: the larger the total weight, the weaker the prior. If
/// columns determine one another, or if components collapse onto few points, only the prior bounds the precision. It must
/// then not be lost in rounding. So a nearly singular component sums its rows in its own coordinates. There is a limit: a
/// prior below 1e-21 of the data. An inverse scale matrix that leaves a column less than $10^{-21} W$ times its variance
/// gets so much added to its diagonal. With the default priors this happens from a total weight of 1e13 on if columns
/// determine one another, and from 1e21 on otherwise. In the same way a prior is raised that is below
/// $10^{-21} \frac{\beta_0 W}{\beta_0 + W} (m_0 - \bar y)^2$ in a column, or so narrow that scores would leave the type: in `f32` below about
/// $10^{-36} D \nu_0$ of the squared range.
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
        let components = (0..seeds.len())
            .map(|c| {
                let mean = seeds.row(c)[..seeds.dim()].iter().map(|z| z.to_f64());
                NormalWishart::isotropic(&prior, 0.0, mean.collect(), variance)
            })
            .collect();
        let scores = Scored::Distances { variance };
        Ok(DirichletProcessMixture {
            sticks: Sticks::new(prior.concentration, &vec![0.0; seeds.len()]),
            means: seeds.leave(&frame),
            centres: seeds,
            frame,
            prior,
            components,
            least_variance,
            scores,
            prior_terms: 0.0,
        })
    }

    fn start_from(
        &self,
        from: &Self::Model,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
    ) -> Result<Option<Self::Model>> {
        if let Scored::Distances { .. } = from.scores {
            return Ok(None);
        }
        let mut model = self.start(seeds, frame, data)?;
        let ratio = model.frame.unit() * from.frame.inverse_unit();
        let same = from.frame == model.frame;
        let carried = from.components.iter().enumerate().map(|(t, q)| {
            let dim = q.mean.len();
            let mean = match same {
                true => q.mean.clone(),
                false => model.components[t].mean.clone(),
            };
            NormalWishart {
                mean,
                factor: q.factor.iter().map(|x| x * ratio).collect(),
                log_det: q.log_det + 2.0 * dim as f64 * ratio.ln(),
                ..q.clone()
            }
        });
        model.components = carried.collect();
        model.sticks = from.sticks.clone();
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
        let variance = (first.best / first.entries)
            .max(model.least_variance)
            .min(FARTHEST);
        let mass = first.weight / k as f64;
        for component in &mut model.components {
            let mean = std::mem::take(&mut component.mean);
            *component = NormalWishart::isotropic(&model.prior, mass, mean, variance);
        }
        model.sticks = Sticks::new(model.prior.concentration, &vec![mass; k]);
        model.renew();
    }

    fn statistics(&self, model: &Self::Model) -> Self::Statistics {
        let (k, dim) = (model.components.len(), model.centres.dim());
        Scatter {
            dim,
            mass: vec![0.0; k],
            first: vec![0.0; k * dim],
            second: vec![0.0; k * dim * dim],
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
        statistics.add(rows, block, model);
    }

    fn update(&self, scatter: Self::Statistics, model: &mut Self::Model, restricted: bool) {
        let k = model.components.len();
        if let Scored::Distances { .. } = model.scores {
            // Warm-up: the variances are not known yet.
            for (t, component) in model.components.iter_mut().enumerate() {
                component.mean = scatter.moved_mean(t, component);
            }
            model.renew_means();
            return;
        }
        let prior = &model.prior;
        if restricted {
            let old = &model.components;
            let updated = parallel::map(k, |t| scatter.trace(t, &old[t], prior));
            let degrees = scatter.mass.iter().map(|mass| prior.degrees + mass);
            let entries = scatter.dim as f64 * degrees.sum::<f64>();
            let variance = updated.iter().map(|u| u.1).sum::<f64>() / entries;
            if variance.is_finite() {
                let updated = updated.into_iter().zip(&scatter.mass);
                model.components = updated
                    .map(|((mean, _), &mass)| {
                        NormalWishart::isotropic(&model.prior, mass, mean, variance)
                    })
                    .collect();
            }
        } else {
            let old = &model.components;
            model.components = parallel::map(k, |t| {
                let updated = scatter.update(t, &old[t], prior);
                updated.unwrap_or_else(|| {
                    // The sums are not finite, because the mean is far outside the data. The mean is updated alone first.
                    let mut kept = old[t].clone();
                    kept.mean = scatter.moved_mean(t, &kept);
                    kept
                })
            });
        }
        model.sticks = Sticks::new(model.prior.concentration, &scatter.mass);
        model.renew();
    }

    fn merging(&self) -> Option<&dyn Merging<Self::Model, Self::Statistics>> {
        self.merges.then_some(self)
    }
}

impl<F: Float> Merging<DirichletProcessMixture<F>, Scatter> for DirichletProcess {
    fn statistics_to_merge(
        &self,
        model: &DirichletProcessMixture<F>,
        parts: usize,
    ) -> Vec<Scatter> {
        let overlaps = Overlaps::new(&model.components, &model.prior);
        let part = |_| Scatter {
            overlaps: Some(overlaps.clone()),
            ..self.statistics(model)
        };
        (0..parts).map(part).collect()
    }

    fn merge_components(
        &self,
        statistics: &mut Scatter,
        model: &DirichletProcessMixture<F>,
    ) -> usize {
        let weaker = match self.scale {
            PriorScale::OfData => &WEAKER[..],
            _ => &[],
        };
        statistics.merge_components(model, weaker)
    }
}
