//! Whether a fit begins at random rows in place of its coreset ([`Phase::unless_random_rows_do`](super::Phase::unless_random_rows_do)).

use super::course::Course;
use super::run::Run;
use super::spent::Context;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::{Purpose, Streams};
use crate::data::{Centres, Data, View};
use crate::em::{self, AnyModel, Outcome};
use crate::seed::{Seeder, Uniform};
use std::time::Instant;

/// With as many rows of the coreset for each cluster, the phase on it is worth its time.
const FEW_PER_CLUSTER: usize = 64;

/// If there are fewer columns, or all rows are as many times those of the coreset, what its phase finds decides.
const MANY_COLUMNS: usize = 128;
const MANY_TIMES: usize = 8;

/// The comparison takes an iteration on as many rows as the coreset has, so it is made if all rows are as many times these.
const FEW_TIMES: usize = 4;

/// Random rows are as good as seeds if their error is at most this multiple of theirs: an iteration lowers it by more. Where
/// there are clusters for seeds to find, or rows far out, it is a larger one.
const RANDOM_ERROR: f64 = 1.1;

/// Rows on which random rows are compared with seeds.
const JUDGES: usize = 2048;

/// Some rows, with their weights.
fn chosen<F: Float>(
    data: &dyn Data<F>,
    rows: impl Iterator<Item = usize>,
) -> Result<Box<dyn Data<F> + '_>> {
    let rows: Vec<usize> = rows.collect();
    let weights = rows.iter().map(|&n| data.weight(n)).collect();
    data.select(&rows, weights)
}

impl<F: Float> Run<'_, F> {
    /// A start at random rows in the phase on all rows, if they are as good as the seeds, and that phase comes next and is not much longer
    /// than the one on the coreset. If it is, `course` is told that [`start_anew`](Self::start_anew) may be better.
    pub(super) fn random_start(
        &self,
        first: &Outcome<AnyModel<F>>,
        course: &mut Course<AnyModel<F>>,
        context: &mut Context<'_, F>,
    ) -> Result<Option<Outcome<AnyModel<F>>>> {
        let plan = &self.plan;
        let Some((reached, few, all)) = self.instead_of_coreset(course, context) else {
            return Ok(None);
        };
        let started = Instant::now();
        let random = self.random_rows(all, course)?;
        // Draws of a coreset have rows far out, which random ones of all rows may lack.
        let judges = (0..few.len()).step_by(few.len().div_ceil(JUDGES));
        let judges = chosen(few, judges)?;
        let judges = View::new(&*judges, &plan.frame);
        let (with_seeds, some) = em::error_of(judges, first.model.centres())?;
        let (with_random, more) = em::error_of(judges, &random)?;
        context.spent.seeding(some + more, started);
        if with_random > RANDOM_ERROR * with_seeds {
            return Ok(None);
        }
        let is_wide = plan.frame.dim() >= MANY_COLUMNS;
        if is_wide && reached == 1 && all.len() < MANY_TIMES * few.len() {
            return self.begun_at(first, random, reached).map(Some);
        }
        course.anew = all.len() >= FEW_TIMES * few.len();
        Ok(None)
    }

    /// After the phase on the coreset, another start in the phase on all rows, if an iteration on them from random rows would be better
    /// for rows that neither has seen. An iteration on some of them tells. Then the phase on the coreset found nothing but the few rows
    /// there are for each cluster, and the means would not leave them.
    pub(super) fn start_anew(
        &self,
        course: &Course<AnyModel<F>>,
        context: &mut Context<'_, F>,
    ) -> Result<Option<Outcome<AnyModel<F>>>> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        let begins = self.instead_of_coreset(course, context);
        let (Some((reached, few, all)), Some(fitted)) = (begins, course.first()) else {
            return Ok(None);
        };
        let started = Instant::now();
        let random = self.random_rows(all, course)?;
        let n = all.len();
        let step = (n / few.len()).max(2);
        let drawn = chosen(all, (0..n).step_by(step))?;
        let judges = chosen(all, (1..n).step_by(step * few.len().div_ceil(JUDGES)))?;
        // Means of m rows are off by the error of one row over m.
        let off = 1.0 + settings.clusters as f64 / drawn.len() as f64;
        let drawn = View::new(&*drawn, &plan.frame);
        let judges = View::new(&*judges, &plan.frame);
        let (means, evaluations) = em::iterated(drawn, random)?;
        let (of_fitted, some) = em::error_of(judges, fitted.model.centres())?;
        let (of_means, more) = em::error_of(judges, &means)?;
        context.spent.seeding(evaluations + some + more, started);
        let is_better = of_means < off * of_fitted;
        is_better
            .then(|| self.begun_at(fitted, means, reached))
            .transpose()
    }

    /// The phase in which a fit may begin without what the first one finds, the rows of that one, and all rows.
    fn instead_of_coreset(
        &self,
        course: &Course<AnyModel<F>>,
        context: &Context<'_, F>,
    ) -> Option<(usize, &dyn Data<F>, &dyn Data<F>)> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        let reached = plan.on_all().filter(|reached| *reached > 0)?;
        let begin = &plan.phases[0];
        let next = &plan.phases[reached];
        let few = plan.rows(begin.place);
        let all = plan.rows(next.place);
        let may_be = begin.phase.outline.unless_random
            && begin.phase.outline.starts == 1
            && !course.subspace
            && next.phase.e_step.bounds().is_some()
            && !all.is_ragged()
            && few.len() < FEW_PER_CLUSTER * settings.clusters
            && context.spent.evaluations.seeding > 0;
        may_be.then_some((reached, few, all))
    }

    /// Rows drawn at random for the centres: equal ones in each call.
    fn random_rows(&self, all: &dyn Data<F>, course: &Course<AnyModel<F>>) -> Result<Centres<F>> {
        let settings = &self.pipeline.settings;
        let streams = Streams::new(settings.seed, course.restarts.len() as u64);
        let mut rng = streams.at(Purpose::Seeding, 1, 0);
        let view = View::new(all, &self.plan.frame);
        Ok(Uniform.seed(view, settings.clusters, &mut rng)?.centres)
    }

    /// A start at these centres, in place of another one.
    fn begun_at(
        &self,
        other: &Outcome<AnyModel<F>>,
        centres: Centres<F>,
        reached: usize,
    ) -> Result<Outcome<AnyModel<F>>> {
        Ok(Outcome {
            model: self.model_at(centres)?,
            calibrated: false,
            found: None,
            exact: false,
            reached,
            ..other.clone()
        })
    }
}
