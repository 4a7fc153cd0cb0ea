//! The search and the family of a phase, with their model.

use super::report::PhaseReport;
use super::{AnyModel, Ended, StopRule, Supports};
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, ensure};
use crate::base::float::Float;
use crate::base::rng::{Purpose, Rng, Streams};
use crate::data::{Data, Subspace, View};
use crate::e_step::bounded::split_merge::{self, SplitMerge};
use crate::e_step::{Assignment, EStep, KeptSums, Offset, Search};
use crate::io::{FileFault, rule};
use crate::m_step::Moments;
use crate::model::Mixture;
use crate::model::posterior::Likelihood;
use crate::rows::Centres;

/// The parts that every pass of a phase needs.
pub(crate) struct SetUp<'a, F: Float> {
    pub(crate) data: &'a dyn Data<F>,
    pub(crate) stages: Stages<'a, F>,
    pub(crate) streams: Streams,
    /// Rounds of moves and of transfers that are left.
    pub(crate) moves: usize,
    pub(crate) transfers: usize,
    /// How far centres move, in distances to their means.
    pub(crate) step: f64,
    /// The components of the rows, if a phase before ran on the same ones.
    pub(crate) labels: Option<Vec<u32>>,
    /// Whether the variance is known already.
    pub(crate) calibrated: bool,
    /// Whether no phase has fitted the centres, and they are no seeds: then inverted lists of near centres miss the nearest of many rows.
    pub(crate) unfitted: bool,
    pub(crate) rule: StopRule,
}

impl<F: Float> SetUp<'_, F> {
    pub(super) fn model(&self) -> &dyn Mixture<F> {
        &*self.stages.model
    }

    pub(super) fn view(&self) -> View<'_, F> {
        View::new(self.data, self.model().frame())
    }

    pub(super) fn centres(&self) -> &Centres<F> {
        self.model().centres()
    }

    /// Coordinates that each row stands for.
    pub(super) fn coordinates(&self) -> f64 {
        (self.data.dim() + self.data.residual().coordinates) as f64
    }

    /// Whether a component of each row is all that the M-step asks for, and the nearest centre is the best: then sums can be kept.
    pub(super) fn is_nearest(&self) -> bool {
        let stages = &self.stages;
        let model = self.model();
        let has_totals = stages.model.fitted().statistics().has_totals();
        let of_one = stages.width == 1 && model.components() > 1 && has_totals;
        of_one && !self.data.is_ragged() && stages.has_free_centres()
    }

    /// Weighted squared distances of the rows to the centres of their components (E36).
    pub(super) fn squared(&self, sums: &KeptSums<F>) -> f64 {
        sums.squared(self.centres()) + self.data.residual().squared
    }

    /// The likelihood of rows with these squared distances.
    pub(super) fn likelihood(&self, squared: f64) -> Likelihood {
        let weight = self.data.summary().total_weight;
        Likelihood::of_nearest(weight, weight * self.coordinates(), squared)
    }

    /// Moments for an M-step from sums that are kept, and the likelihood.
    pub(super) fn moments(&self, sums: &KeptSums<F>) -> (Moments, Likelihood) {
        let (mut moments, squared) = sums.moments_about(self.centres());
        let likelihood = self.likelihood(squared + self.data.residual().squared);
        moments.add_total(likelihood.best, likelihood.entries);
        (moments, likelihood)
    }

    pub(super) fn free_energy(&self, likelihood: &Likelihood) -> f64 {
        likelihood.free_energy(self.model().log_joint()) + self.model().prior_terms()
    }

    /// A round of split and merge (E37) after a search of every row. Rows and centres follow, and it says whether rounds are over.
    pub(super) fn split_and_merge(
        &self,
        centres: &mut Centres<F>,
        assignment: &mut Assignment<F>,
        offsets: &[Offset],
        squared: f64,
        report: &mut PhaseReport,
    ) -> Result<(SplitMerge, bool)> {
        // The error outside a subspace cannot be lowered, so it does not count.
        let little = self.rule.tolerance.of_moves().of(squared);
        let rng = |c| self.streams.at(Purpose::Moves, report.iterations, c);
        let made = split_merge::split_and_merge(self.view(), centres, assignment, offsets, &rng)?;
        assignment.apply(&made.changes);
        report.count(made.evaluations);
        // While means are still on their way, most merges cannot be sure to pay.
        let over = made.gain <= little && made.settled <= little;
        Ok((made, over))
    }

    /// Starts the variance (E8), if nothing is known of it yet.
    pub(super) fn calibrate(&mut self, first: &Likelihood) {
        if !std::mem::replace(&mut self.calibrated, true) {
            self.stages.model.fitted_mut().calibrate(first);
        }
    }

    /// The result of a search, with a copy of the model.
    pub(super) fn ended(&mut self, supports: Supports, exact: bool) -> Ended<F> {
        let model = self.stages.whole_model().clone();
        Ended {
            model,
            supports,
            exact,
        }
    }
}

pub(crate) struct Stages<'a, F: Float> {
    pub(crate) e_step: &'a dyn EStep<F>,
    pub(super) search: Box<dyn Search<F>>,
    /// Members of a support: a search from outside may say something else each time.
    pub(super) width: usize,
    /// Whether the model has [free centres](Mixture::free_centres).
    are_free: bool,
    /// With its family, in the coordinates of the phase.
    pub(crate) model: AnyModel<F>,
    /// In all coordinates, while `model` is in a subspace.
    whole: Option<(AnyModel<F>, Subspace<F>)>,
}

impl<'a, F: Float> Stages<'a, F> {
    /// Takes the model to the coordinates of a subspace, if there is one, and begins a search.
    pub(crate) fn begin(
        e_step: &'a dyn EStep<F>,
        mut model: AnyModel<F>,
        subspace: Option<&Subspace<F>>,
        rng: &mut Rng,
    ) -> Result<Self> {
        let mut whole = None;
        if let Some(subspace) = subspace {
            let projected = subspace.enter(model.centres());
            whole = Some((model.clone(), subspace.clone()));
            let (centres, frame) = model.free_centres().ok_or_else(no_one_variance)?;
            (*centres, *frame) = (projected, subspace.frame());
        }
        let search = e_step.begin(&*model, None, rng)?;
        let width = search.width();
        let most = model.components();
        let what = || format!("width {width}: must be at least 1, and at most {most}");
        let fault = || Error::stage(e_step.name(), what());
        ensure((1..=most).contains(&width), fault)?;
        Ok(Self {
            e_step,
            search,
            width,
            are_free: model.free_centres().is_some(),
            model,
            whole,
        })
    }

    pub(crate) fn resume(
        &mut self,
        model: AnyModel<F>,
        search: &[u8],
    ) -> std::result::Result<(), FileFault> {
        let same = shape(&*model) == shape(&*self.model) && model.frame() == self.model.frame();
        rule(same, "model", "must be in the coordinates of the phase")?;
        self.model = model;
        let mut rng = Rng::from_seed(0);
        let search = self.e_step.begin(&*self.model, Some(search), &mut rng);
        self.search = search.map_err(|error| match error {
            Error::Model { fault, .. } => fault,
            _ => FileFault::content("state", "must be a state of the E-step"),
        })?;
        Ok(())
    }

    pub(super) fn whole_model(&mut self) -> &AnyModel<F> {
        if let Some((whole, subspace)) = &mut self.whole {
            let lifted = (subspace.leave(self.model.centres()), whole.frame().clone());
            whole.clone_from(&self.model);
            if let Some((centres, frame)) = whole.free_centres() {
                (*centres, *frame) = lifted;
            }
        }
        self.whole.as_ref().map_or(&self.model, |(whole, _)| whole)
    }

    /// An error unless the free energy is a number.
    pub(super) fn check(&self, free_energy: f64) -> Result<()> {
        let what = || format!("the free energy is {free_energy}: it must be finite");
        let fault = || Error::stage(self.model.fitted().name(), what());
        ensure(free_energy.is_finite(), fault)
    }

    /// Whether all components share each row.
    pub(crate) fn shares_all(&self) -> bool {
        self.width == self.model.components()
    }

    pub(super) fn restricted_steps(&self) -> usize {
        let truncated = self.width < self.model.components();
        usize::from(truncated) * self.model.fitted().needs().restricted_steps
    }

    /// The M-step. An error, if the model has another shape after it.
    pub(super) fn update(
        &mut self,
        statistics: Moments,
        restricted: bool,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let before = shape(&*self.model);
        let fitted = self.model.fitted_mut();
        fitted.update(statistics, restricted, cancel)?;
        let after = shape(&*self.model);
        let what = || {
            format!(
                "{} components with {} centres of {} coordinates, and costs about points of {}, after an M-step: \
                 there must be {}, {}, {} and {}, as before",
                after[0], after[1], after[2], after[3], before[0], before[1], before[2], before[3]
            )
        };
        let fault = || Error::stage(self.model.fitted().name(), what());
        ensure(before == after, fault)
    }

    /// Puts centres in the place of those of the model.
    pub(super) fn place(&mut self, centres: Centres<F>) -> Result<()> {
        let (free_centres, _) = self.model.free_centres().ok_or_else(no_one_variance)?;
        *free_centres = centres;
        Ok(())
    }

    /// Whether a component without mass may lie anywhere: its centre is all there is of it.
    pub(super) fn has_free_centres(&self) -> bool {
        self.are_free && self.model.cost().is_squared()
    }

    /// An error unless moves may put centres anywhere.
    pub(crate) fn check_free_centres(&self) -> Result<()> {
        ensure(self.has_free_centres(), no_one_variance)
    }

    pub(super) fn update_from(&mut self, moments: Moments) -> Result<()> {
        let has_totals = self.model.fitted().statistics().has_totals();
        if !has_totals || !self.model.cost().is_squared() {
            return Err(no_one_variance());
        }
        self.update(moments, false, None)
    }
}

/// A phase asks for what only a family with one shared variance can do.
fn no_one_variance() -> Error {
    let rule = "need one variance for all components, and centres that may lie anywhere: use TiedSpherical, or another search";
    Error::parameter("phases", "bounds or a subspace", rule)
}

/// Components, centres and their coordinates, and those of the centres that costs are about.
pub(crate) fn shape<F: Float>(model: &dyn Mixture<F>) -> [usize; 4] {
    let cost = model.cost();
    let centres = model.centres();
    let dim = centres.dim();
    [
        cost.components(),
        centres.len(),
        dim,
        cost.dim().unwrap_or(dim),
    ]
}
