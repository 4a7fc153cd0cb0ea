//! The state of a fit between two of its phases, as checkpoints store it.

use super::builder::Settings;
use super::rows::{Plan, no_phase};
use super::spent::Context;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::serde::Serialize;
use crate::em::{AnyFamily, AnyModel, Outcome, PhaseReport, SavedModel, shape};
use crate::io::{FileFault, all_counts, rule};
use std::collections::VecDeque;

type Read<T> = std::result::Result<T, FileFault>;

#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Course<Model> {
    /// The best of the restarts that have ended, and the last free energy of each.
    pub(super) best: Option<(usize, Outcome<Model>)>,
    pub(super) restarts: Vec<f64>,
    /// Whether one of them was cancelled, or has left out starts.
    #[cfg_attr(feature = "files", serde(skip))]
    pub(super) cut: bool,
    /// The phase that the next restart is in, by its place in the plan.
    pub(super) number: usize,
    /// Whether phases in a subspace run in it.
    pub(super) subspace: bool,
    /// Whether another start may be better than what the first phase finds.
    pub(super) undecided: bool,
    /// The candidates that the phase is still before, and the best of those that it is behind.
    pub(super) waiting: VecDeque<Outcome<Model>>,
    pub(super) leading: Option<Outcome<Model>>,
    /// The state of the first waiting candidate, if it is in the middle of the phase: the bytes of a
    /// [`SavedPhase`](crate::em::SavedPhase).
    #[cfg_attr(feature = "files", serde(skip))]
    pub(super) middle: Option<Vec<u8>>,
}

impl<Model> Course<Model> {
    /// Before a restart that knows nothing of those before it.
    pub(super) fn of_restart(restart: usize) -> Self {
        Self {
            best: None,
            restarts: vec![f64::NEG_INFINITY; restart],
            cut: false,
            number: 0,
            subspace: false,
            undecided: false,
            waiting: VecDeque::new(),
            leading: None,
            middle: None,
        }
    }

    /// Whether its restart has yet to begin.
    pub(super) fn is_new(&self) -> bool {
        self.waiting.is_empty() && self.leading.is_none()
    }

    /// A restart has ended, or was cancelled, if before it found anything.
    pub(super) fn keep(&mut self, outcome: Result<Outcome<Model>>) -> Result<()> {
        let outcome = match outcome {
            Err(Error::Cancelled) => {
                self.cut = true;
                return Ok(());
            }
            outcome => outcome?,
        };
        self.cut |= outcome.is_cancelled();
        let place = self.restarts.len();
        self.restarts.push(outcome.last());
        let best = self.best.as_ref();
        if best.is_none_or(|(_, best)| outcome.is_better_than(best)) {
            self.best = Some((place, outcome));
        }
        Ok(())
    }

    /// The candidate that would be kept if the restart ended now.
    pub(super) fn first(&self) -> Option<&Outcome<Model>> {
        self.leading.as_ref().or(self.waiting.front())
    }

    /// The best candidate of the restart, which ends.
    pub(super) fn end(&mut self) -> Option<Outcome<Model>> {
        let first = self.waiting.pop_front();
        self.waiting.clear();
        self.number = 0;
        self.leading.take().or(first)
    }

    /// Writes a checkpoint between two phases.
    pub(super) fn save<F: Float>(
        &self,
        plan: &Plan<'_, F>,
        context: &mut Context<'_, F>,
    ) -> Result<()>
    where
        Model: Serialize,
    {
        match context.monitor.saver() {
            Some(saver) => saver.write(&(&context.spent, plan.coresets(), self)),
            None => Ok(()),
        }
    }

    /// A phase begins with this candidate: what its checkpoints hold besides the phase.
    pub(super) fn begin<F: Float>(
        &mut self,
        candidate: Outcome<Model>,
        plan: &Plan<'_, F>,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<Model>>
    where
        Model: Serialize,
    {
        self.waiting.push_front(candidate);
        if let Some(saver) = context.monitor.saver() {
            saver.begin(&(&context.spent, plan.coresets(), &*self))?;
        }
        self.waiting.pop_front().ok_or_else(no_phase)
    }
}

impl Course<SavedModel> {
    /// The course in a checkpoint of this fit, with the bytes of the phase that runs.
    pub(super) fn resumed<F: Float>(
        self,
        family: &dyn AnyFamily<F>,
        settings: &Settings,
        plan: &Plan<'_, F>,
        middle: Vec<u8>,
    ) -> Read<Course<AnyModel<F>>> {
        let restart = self.restarts.len();
        let runs = !middle.is_empty();
        let within = restart < settings.restarts && self.number <= plan.phases.len();
        let of_fit = "must be within the restarts and phases of the fit";
        rule(within, "course", of_fit)?;
        let goes_on = if runs {
            self.number < plan.phases.len() && !self.waiting.is_empty()
        } else {
            !self.is_new()
        };
        rule(goes_on, "course", "must have a candidate for its phase")?;
        let behind = match &self.best {
            Some((place, best)) => {
                *place < restart && best.found.is_some() && !best.phases.is_empty()
            }
            None => restart == 0,
        };
        let of_best = "must have what was found, and phases behind it";
        rule(behind, "course", of_best)?;
        let check = |candidate| checked(candidate, family, plan, settings.clusters);
        Ok(Course {
            best: match self.best {
                Some((place, best)) => Some((place, check(best)?)),
                None => None,
            },
            restarts: self.restarts,
            cut: self.cut,
            number: self.number,
            subspace: self.subspace,
            undecided: self.undecided,
            waiting: self.waiting.into_iter().map(check).collect::<Read<_>>()?,
            leading: self.leading.map(check).transpose()?,
            middle: runs.then_some(middle),
        })
    }
}

fn checked<F: Float>(
    candidate: Outcome<SavedModel>,
    family: &dyn AnyFamily<F>,
    plan: &Plan<'_, F>,
    k: usize,
) -> Read<Outcome<AnyModel<F>>> {
    let candidate = candidate.with(|SavedModel(bytes)| family.read(&bytes))?;
    if let Some((supports, place)) = &candidate.found {
        let within = *place < plan.sets.len();
        rule(within, "candidate", "must be on rows of the fit")?;
        supports.check(plan.rows(*place).len(), k)?;
    }
    let within = candidate.reached <= plan.phases.len();
    rule(within, "candidate", "must be within the phases of the fit")?;
    all_counts("candidate", &[candidate.start as u64])?;
    let model = &candidate.model;
    let dim = plan.frame.dim();
    let same = shape(&**model) == [k, k, dim, dim] && *model.frame() == plan.frame;
    rule(same, "model", "must be in the coordinates of the data")?;
    let phases = candidate.phases.into_iter().map(PhaseReport::checked);
    Ok(Outcome {
        phases: phases.collect::<Read<_>>()?,
        ..candidate
    })
}
