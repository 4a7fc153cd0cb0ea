//! The driver asks the rule of the first phase where a fit begins ([`Begin`](super::Begin)).

use super::begin::{Begin, Beginning};
use super::course::Course;
use super::run::Run;
use super::spent::Context;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::{Purpose, Streams};
use crate::data::Centres;
use crate::em::{AnyModel, Outcome};
use std::time::Instant;

impl<F: Float> Run<'_, F> {
    /// Another start in place of the one at the seeds, in the phase on all rows.
    pub(super) fn begin_elsewhere(
        &self,
        first: &Outcome<AnyModel<F>>,
        course: &mut Course<AnyModel<F>>,
        context: &mut Context<'_, F>,
    ) -> Result<Option<Outcome<AnyModel<F>>>> {
        let Some((reached, rule, mut at)) = self.beginning(course, context) else {
            return Ok(None);
        };
        let started = Instant::now();
        let elsewhere = rule.before(&mut at, first.model.centres())?;
        context.spent.seeding(at.evaluations, started);
        course.undecided = at.undecided;
        let begun = elsewhere.map(|centres| self.begun_at(first, centres, reached));
        begun.transpose()
    }

    /// After the first phase, another start in the phase on all rows, in place of what it found.
    pub(super) fn begin_anew(
        &self,
        course: &Course<AnyModel<F>>,
        context: &mut Context<'_, F>,
    ) -> Result<Option<Outcome<AnyModel<F>>>> {
        let beginning = self.beginning(course, context);
        let (Some((reached, rule, mut at)), Some(fitted)) = (beginning, course.first()) else {
            return Ok(None);
        };
        let started = Instant::now();
        let elsewhere = rule.after(&mut at, fitted.model.centres())?;
        context.spent.seeding(at.evaluations, started);
        let begun = elsewhere.map(|centres| self.begun_at(fitted, centres, reached));
        begun.transpose()
    }

    /// The phase in which the fit would begin, and the rule of the first one with what it knows.
    fn beginning(
        &self,
        course: &Course<AnyModel<F>>,
        context: &Context<'_, F>,
    ) -> Option<(usize, &dyn Begin<F>, Beginning<'_, F>)> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        let reached = plan.on_all().filter(|reached| *reached > 0)?;
        let first = &plan.phases[0];
        let next = &plan.phases[reached];
        let rule = first.phase.begin.as_deref()?;
        let all_rows = plan.rows(next.place);
        let streams = Streams::new(settings.seed, course.restarts.len() as u64);
        let may_be = first.phase.outline.starts == 1
            && !course.subspace
            && next.phase.e_step.bounds().is_some()
            && !all_rows.is_ragged()
            && context.spent.evaluations.seeding > 0;
        let at = Beginning {
            few: plan.rows(first.place),
            all: all_rows,
            frame: &plan.frame,
            clusters: settings.clusters,
            is_next: reached == 1,
            rng: streams.at(Purpose::Seeding, 1, 0),
            evaluations: 0,
            undecided: false,
        };
        may_be.then_some((reached, rule, at))
    }

    /// A start at these centres, in place of another one.
    fn begun_at(
        &self,
        other: &Outcome<AnyModel<F>>,
        centres: Centres<F>,
        reached: usize,
    ) -> Result<Outcome<AnyModel<F>>> {
        Ok(Outcome {
            model: self.model_at(centres)?.model,
            calibrated: false,
            found: None,
            exact: false,
            reached,
            ..other.clone()
        })
    }
}
