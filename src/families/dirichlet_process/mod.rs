//! Dirichlet process mixtures of Gaussians with full precision matrices: variational inference with weights.

mod merge;
mod model;
mod parts;
mod posterior;
mod settings;
mod sticks;

pub use model::DirichletProcessMixture;
pub(super) use model::Distribution;
pub use settings::DirichletProcess;

use crate::base::cancel::{Cancel, unwatched};
use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Data, RowKind};
use crate::families::variances::{STEPS_WITH_ONE_VARIANCE, variance_floors, variance_of};
use crate::m_step::sums::accumulate::About;
use crate::m_step::sums::outer::Pairs;
use crate::m_step::{MStep, Moments, Needs, Started, Variances};
use crate::model::block::Block;
use crate::model::posterior::Likelihood;
use crate::rows::{Centres, Frame, Rows};
use posterior::{FARTHEST, NormalWishart, Updated};
use sticks::Sticks;

impl<F: Float> Distribution<F> {
    /// Carries all but the means over from another distribution; in the same frame these as well, with all their digits.
    fn carry_over(&mut self, from: &Self) {
        let ours = &self.frame;
        let theirs = &from.frame;
        let ratio = |j: usize| theirs.enter_length(j, ours.unit_of(j));
        let ratios: Vec<f64> = (0..ours.dim()).map(ratio).collect();
        let same = ours == theirs;
        for (q, from) in self.components.iter_mut().zip(&from.components) {
            let mut carried = from.clone();
            if !same {
                carried.whitening.mean = std::mem::take(&mut q.whitening.mean);
                let factor = carried
                    .whitening
                    .factor
                    .iter_mut()
                    .zip(ratios.iter().cycle());
                factor.for_each(|(x, ratio)| *x *= ratio);
            }
            *q = carried;
        }
        self.sticks = from.sticks.clone();
        self.first_variance = None;
    }
}

impl<F: Float> MStep<F> for DirichletProcess {
    type Model = DirichletProcessMixture<F>;

    fn start(
        &self,
        seeds: Centres<F>,
        frame: Frame<F>,
        data: &dyn Data<F>,
        before: Option<&Self::Model>,
    ) -> Result<Started<Self::Model>> {
        let rule = "needs all coordinates of a row, or rows with missing values: not rows of a sketch, nor sparse rows";
        let missing = data.kind() == RowKind::Partial && frame.basis().is_none();
        let suits = missing || !data.is_ragged();
        require(suits, "rows", "known in part", rule)?;
        let prior = self.prior(&frame, data)?;
        let floors = variance_floors(&frame, data.summary());
        let mut least_variance = floors.iter().sum::<f64>() / data.dim() as f64;
        let variance = variance_of(&frame, data.summary()).max(least_variance);
        // Far values may make nearly all of the variance, and of the range, that the floor is a share of; the prior leaves them alone.
        let diagonal = prior.inverse_scale.iter().step_by(data.dim() + 1);
        let near = 2.0 * diagonal.sum::<f64>() / data.dim() as f64;
        if self.prior_is_of_data() && near < variance {
            least_variance = least_variance.min((1e-12 * near).max(F::EPSILON * F::EPSILON));
        }
        let components = (0..seeds.len()).map(|c| {
            let mean = seeds.row(c)[..seeds.dim()].iter().map(|z| z.to_f64());
            NormalWishart::isotropic(&prior, 0.0, mean.collect(), variance)
        });
        let mut q = Distribution {
            components: components.collect(),
            sticks: Sticks::new(prior.concentration, &vec![0.0; seeds.len()]),
            first_variance: Some(variance),
            frame,
            least_variance,
            prior,
        };
        // A model that knows no variances yet has means alone to go on from.
        let before = before.filter(|before| before.q.first_variance.is_none());
        if let Some(before) = before {
            q.carry_over(&before.q);
        }
        Ok(Started {
            model: DirichletProcessMixture::new(q, data.cancel())?,
            goes_on: before.is_some(),
        })
    }

    fn needs(&self) -> Needs {
        Needs {
            // Starting the variance changes the balance between proportions and distances.
            searches_first: true,
            restricted_steps: STEPS_WITH_ONE_VARIANCE,
            variances: Variances::Columns,
            ..Needs::default()
        }
    }

    fn calibrate(&self, model: &mut Self::Model, first: &Likelihood) {
        let k = model.q.components.len();
        let unit = model.q.first_variance.take().unwrap_or(1.0);
        // Costs have the logarithm of this variance for each column that a row lacks.
        let missing = model.centres.dim() as f64 * first.weight - first.entries;
        let squared = first.best + missing * unit.ln();
        let variance = unit * (squared / first.entries);
        let variance = variance.max(model.q.least_variance).min(FARTHEST);
        let mass = first.weight / k as f64;
        for component in &mut model.q.components {
            let mean = std::mem::take(&mut component.whitening.mean);
            *component = NormalWishart::isotropic(&model.q.prior, mass, mean, variance);
        }
        model.q.sticks = Sticks::new(model.q.prior.concentration, &vec![mass; k]);
        // Nothing is factored: variances are the same in every direction.
        unwatched(model.renew(None));
    }

    fn statistics(&self, model: &Self::Model) -> Moments {
        let k = model.q.components.len();
        let dim = model.centres.dim();
        Moments::pairs(k, dim).with_own(model.pairs.len())
    }

    fn accumulate(
        &self,
        rows: &Rows<F>,
        block: &Block<F>,
        model: &Self::Model,
        sums: &mut Moments,
    ) {
        merge::add_lost(rows, block, &model.pairs, sums.own_mut());
        // The gain of a merge is a small difference of large logarithms.
        let component = |t: usize| &model.q.components[t].whitening;
        // Before there are covariances, nothing says how many digits they need.
        let is_anchor = |t: &usize| model.pairs.is_empty() && !component(*t).is_diagonal();
        let anchor = |t: usize| Some(t).filter(is_anchor).map(component);
        let pairs = Pairs {
            observed: Some(model.observed()),
            anchors: (0..model.q.components.len()).map(anchor).collect(),
            ..Pairs::about(&model.origins)
        };
        sums.add_about(rows, block, &About::Pairs(pairs));
    }

    fn update(
        &self,
        sums: Moments,
        model: &mut Self::Model,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        model.pairs.clear();
        let prior = &model.q.prior;
        let old = &model.q.components;
        let origin = |t: usize| &model.origins[t * sums.dim..][..sums.dim];
        let updated = |t: usize| Updated::new(prior, &sums, t, origin(t));
        // The mean alone, of components whose variances are not known yet, or whose sums are not finite because the mean is
        // far outside the data.
        let moved = |t: usize| {
            let mut moved = old[t].clone();
            if sums.mass(t) > 0.0 {
                let means = moved.whitening.mean.iter_mut().zip(origin(t));
                for ((m, origin), f) in means.zip(sums.first(t)) {
                    *m = origin + f / sums.mass(t);
                }
            }
            moved
        };
        if model.q.first_variance.is_some() {
            model.q.components = parallel::map(old.len(), moved);
            return model.renew(cancel);
        }
        model.q.components = if restricted {
            let updated = parallel::map(old.len(), updated);
            let degrees = sums.mass.iter().map(|mass| prior.degrees + mass);
            let entries = model.centres.dim() as f64 * degrees.sum::<f64>();
            let variance = updated.iter().map(Updated::trace).sum::<f64>() / entries;
            let one = updated.into_iter().zip(&sums.mass).zip(old);
            one.map(|((updated, mass), old)| {
                if variance.is_finite() {
                    NormalWishart::isotropic(prior, *mass, updated.mean, variance)
                } else {
                    old.clone()
                }
            })
            .collect()
        } else {
            let components = parallel::map(old.len(), |t| {
                let new = NormalWishart::new(prior, sums.mass(t), updated(t), cancel)?;
                Ok(new.unwrap_or_else(|| moved(t)))
            });
            parallel::all(components)?
        };
        model.q.sticks = Sticks::new(prior.concentration, &sums.mass);
        model.renew(cancel)
    }

    fn merges(&self) -> bool {
        self.merges
    }

    fn prepare_merges(&self, model: &mut Self::Model) {
        model.pairs = merge::pairs(&model.q.components, &model.q.prior);
    }

    fn merge(
        &self,
        sums: &mut Moments,
        model: &Self::Model,
        cancel: Option<&Cancel>,
    ) -> Result<usize> {
        let priors = merge::priors(&model.q.prior, self.prior_is_of_data(), cancel)?;
        let merged =
            |priors: Vec<_>| merge::merge(sums, &model.origins, &priors, &model.pairs, cancel);
        priors.map_or(Ok(0), merged)
    }
}
