//! Dirichlet process mixtures of Gaussians with full precision matrices: variational inference with weights.

mod merge;
mod model;
mod posterior;
mod settings;
mod sticks;

pub use model::DirichletProcessMixture;
pub(crate) use model::StoredProcess;
pub use settings::DirichletProcess;

use super::outer::Digits;
use super::{MStep, first_variance, steps_with_one_variance};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Centres, Data, Frame, Moments, Rows, Second};
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use merge::{Overlaps, Scatter};
use posterior::{FARTHEST, NormalWishart, Updated};
use settings::PriorScale;
use sticks::Sticks;

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
