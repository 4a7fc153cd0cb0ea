//! One fit: coreset, seeds and phases, for every restart.

use super::builder::{Clusterer, Settings};
use super::course::Course;
use super::phase::{Columns, Phase};
use super::result::Fit;
use super::rows::{Context, Cost, Plan, Planned, no_phase};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::{Purpose, Streams};
use crate::data::{Centres, Data, Rows, View};
use crate::em::trace;
use crate::em::{
    self, FullPass, IncrementalPass, LastSearch, Monitor, Outcome, Pass, PhaseReport, Progress,
    Report, SetUp, Stages, Stop, StopRule, shape,
};
use crate::io::Sections;
use crate::m_step::MStep;
use crate::model::Mixture;
use crate::seed::Seeder;
use std::time::Instant;

/// Several starts on so many rows together take little time, also where that is more than half of all rows.
const FEW_ROWS: usize = 1 << 16;

/// A fit on its way.
struct Run<'a, F: Float, M: MStep<F>> {
    clusterer: &'a Clusterer<F, M>,
    data: &'a dyn Data<F>,
    seeder: &'a dyn Seeder<F>,
    plan: Plan<'a, F>,
}

/// All of a fit; it ends at once where it is cancelled.
#[inline(never)]
pub(super) fn run<F: Float, M: MStep<F>>(
    clusterer: &Clusterer<F, M>,
    data: &dyn Data<F>,
    seeder: &dyn Seeder<F>,
    phases: Vec<Phase<F>>,
    monitor: Monitor<'_, F>,
) -> Result<Fit<M::Model>> {
    let settings = &clusterer.settings;
    let _span = trace::fit(data.len(), data.dim(), settings.clusters, settings.seed);
    let cost = Cost::default();
    let mut context = Context { monitor, cost };
    let mut file = match context.monitor.saver() {
        Some(saver) => saver.resumed()?,
        None => None,
    };
    let (coreset, from) = (&*clusterer.coreset, file.as_mut());
    let plan = Plan::new(data, coreset, phases, settings, from, &mut context)?;
    let course = match file {
        Some(file) => {
            let course = Course::read(settings, &plan, &mut context.cost, file);
            course.map_err(|fault| settings.fault(fault))?
        }
        None => Course::of_restart(0),
    };
    let run = Run {
        clusterer,
        data,
        seeder,
        plan,
    };
    run.all(course, context)
}

impl<F: Float, M: MStep<F>> Run<'_, F, M> {
    /// All restarts, and the best of them.
    fn all(
        self,
        mut course: Course<M::Model>,
        mut context: Context<'_, F>,
    ) -> Result<Fit<M::Model>> {
        let restarts = self.clusterer.settings.restarts;
        let apart = parallel::fits_apart(restarts, self.plan.most_rows());
        match context.monitor.beside().filter(|_| apart) {
            Some(monitor) => self.beside_each_other(&mut course, &mut context.cost, &monitor)?,
            None => {
                while course.restarts.len() < restarts && !course.cut {
                    let found = self.restart(&mut course, &mut context)?;
                    course.keep(found);
                    if context.monitor.is_stopped() {
                        break;
                    }
                }
            }
        }
        let (restart, best) = course.best.ok_or(Error::Cancelled)?;
        let (supports, place) = best.found.ok_or_else(no_phase)?;
        let last = best.phases.last().expect("at least one phase");
        let all = course.restarts.len() == restarts && best.reached == self.plan.phases.len();
        let whole = all && !course.cut;
        let Cost {
            evaluations,
            timings,
            ..
        } = context.cost;
        let report = Report {
            stop: match context.monitor.stop() {
                // The time may be up after all was done.
                Some(Stop::Cancelled) if whole => last.stop,
                stop => stop.unwrap_or(last.stop),
            },
            iterations: best.phases.iter().map(|phase| phase.iterations).sum(),
            free_energies: last.free_energies.clone(),
            emptied: last.emptied,
            unobserved: last.unobserved,
            distance_evaluations: evaluations.total(),
            evaluations,
            coreset_size: self.plan.rows(self.plan.phases[0].place).len(),
            timings,
            restart,
            restarts: course.restarts,
            checkpoint_fault: context.monitor.checkpoint_fault(),
            phases: best.phases,
        };
        let (labels, supports) = supports.into_arrays();
        Ok(Fit {
            model: best.model,
            report,
            labels,
            exact: best.exact,
            supports,
            coreset: self.plan.subset(place).cloned(),
        })
    }

    /// Restarts that know nothing of each other, some at a time: what they found is kept until all of these have ended.
    fn beside_each_other(
        &self,
        course: &mut Course<M::Model>,
        cost: &mut Cost,
        monitor: &(dyn Fn() -> Monitor<'static, F> + Sync),
    ) -> Result<()> {
        const TOGETHER: usize = 64;
        let most = self.clusterer.settings.restarts;
        for first in (0..most).step_by(TOGETHER) {
            let count = TOGETHER.min(most - first);
            let here = trace::here();
            let found = parallel::map_fits(count, self.plan.most_rows(), |i| {
                let _span = here.enter();
                let (monitor, cost) = (monitor(), Cost::default());
                let mut context = Context { monitor, cost };
                let found = self.restart(&mut Course::of_restart(first + i), &mut context);
                (found, context.cost)
            });
            for (found, own) in found {
                cost.add(&own);
                course.keep(found?);
            }
            if course.cut {
                break;
            }
        }
        Ok(())
    }

    /// One restart; `None` if it was cancelled before it found anything.
    fn restart(
        &self,
        course: &mut Course<M::Model>,
        context: &mut Context<'_, F>,
    ) -> Result<Option<Outcome<M::Model>>> {
        match self.phases(course, context) {
            Err(Error::Cancelled) => Ok(None),
            found => found.map(Some),
        }
    }

    /// One restart: its starts through the first phase, and the best of them through the others.
    fn phases(
        &self,
        course: &mut Course<M::Model>,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<M::Model>> {
        let (plan, settings) = (&self.plan, &self.clusterer.settings);
        if course.is_new() {
            self.starts(course, context)?;
            course.save(plan, context)?;
        } else {
            plan.find_subspace(settings.seed, &mut context.cost)?;
        }
        while course.number < plan.phases.len() {
            let outline = plan.phases[course.number].phase.outline;
            if outline.after_subspace && !course.subspace {
                course.waiting.iter_mut().for_each(|c| c.reached += 1);
                course.number += 1;
                continue;
            }
            // A run ends after a search, also one that was stopped before it.
            // One that goes on in the middle of a phase has none yet.
            let has_found = course.first().is_some_and(|c| c.found.is_some());
            if context.monitor.is_stopped() && has_found {
                break;
            }
            while let Some(mut candidate) = course.waiting.pop_front() {
                // Once stopped, one search is enough.
                if course.leading.is_none() || !context.monitor.is_stopped() {
                    let is_wanted = settings.cancel.is_some() && candidate.found.is_some();
                    let before = is_wanted.then(|| candidate.clone());
                    candidate = match (self.phase(candidate, course, context), before) {
                        (Err(Error::Cancelled), Some(before)) => before.cancelled(),
                        (after, _) => after?,
                    };
                }
                let leading = course.leading.as_ref();
                if leading.is_none_or(|leading| candidate.standing() > leading.standing()) {
                    course.leading = Some(candidate);
                }
                course.save(plan, context)?;
            }
            course.waiting.extend(course.leading.take());
            course.number += 1;
        }
        let best = course.end().ok_or_else(no_phase)?;
        match best.found {
            Some(_) => Ok(best),
            None => Err(no_phase()),
        }
    }

    /// The starts of a restart, at their seeds.
    fn starts(&self, course: &mut Course<M::Model>, context: &mut Context<'_, F>) -> Result<()> {
        let (plan, settings) = (&self.plan, &self.clusterer.settings);
        let Planned { phase, place } = &plan.phases[0];
        // From a model all starts would be the same.
        let room = match settings.warm {
            Some(_) => 1,
            None => (self.data.len() / 2).max(FEW_ROWS) / plan.rows(*place).len(),
        };
        for start in 0..phase.outline.starts.min(room).max(1) {
            let candidate = self.start(course.restarts.len(), start, context)?;
            course.waiting.push_back(candidate);
            if context.monitor.is_stopped() {
                break;
            }
        }
        plan.find_subspace(settings.seed, &mut context.cost)?;
        course.subspace = match plan.subspace() {
            None => false,
            Some((subspace, sample)) => {
                // Most of the quantization error of the seeds is in it.
                let centres = subspace.enter(course.waiting[0].model.centres());
                let bounds = phase.e_step.bounds();
                let near = bounds.map_or(centres.len(), |bounds| bounds.size());
                !em::outside(View::new(sample, &subspace.frame()), &centres, near)?
            }
        };
        Ok(())
    }

    /// A start, at its seeds or at a model.
    fn start(
        &self,
        restart: usize,
        start: usize,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<M::Model>> {
        let (plan, settings, started) = (&self.plan, &self.clusterer.settings, Instant::now());
        let (m_step, frame) = (&self.clusterer.m_step, plan.frame.clone());
        let (mut calibrated, mut evaluations) = (false, 0);
        let model = match &settings.warm {
            Some(warm) => {
                let (model, known) = warm.model(m_step, settings.clusters, frame, self.data)?;
                calibrated = known;
                model
            }
            None => {
                let streams = Streams::new(settings.seed, restart as u64).start(start);
                let mut rng = streams.at(Purpose::Seeding, 0, 0);
                let rows = plan.rows(plan.phases[0].place);
                let seeds = self
                    .seeder
                    .seed(rows, &frame, settings.clusters, &mut rng)?;
                let sound = seeds.check(settings.clusters, frame.dim());
                sound.map_err(|what| Error::stage(self.seeder.name(), what))?;
                evaluations = seeds.evaluations;
                self.model_at(seeds.centres)?
            }
        };
        let spent = &mut context.cost.evaluations.seeding;
        *spent = spent.saturating_add(evaluations);
        context.cost.timings.seeding += started.elapsed();
        context.monitor.see(&Progress::Seeded {
            restart,
            start,
            evaluations,
            elapsed: started.elapsed(),
        });
        Ok(Outcome {
            model,
            start,
            calibrated,
            found: None,
            exact: false,
            reached: 0,
            phases: Vec::new(),
        })
    }

    /// The model at the seeds, checked.
    fn model_at(&self, seeds: Centres<F>) -> Result<M::Model> {
        let (m_step, frame) = (&self.clusterer.m_step, self.plan.frame.clone());
        let (k, d) = (seeds.len(), seeds.dim());
        let model = m_step.start(seeds, frame, self.data)?;
        let (found, in_frame) = (shape(&model), model.frame().dim());
        if found != [k, k, d] || in_frame != d {
            let [components, centres, dim] = found;
            let what = format!(
                "{components} components with {centres} centres of {dim} coordinates in a frame of {in_frame}: \
                 there must be one for each of {k} seeds of {d} coordinates"
            );
            return Err(Error::stage(m_step.name(), what));
        }
        Ok(model)
    }

    /// A candidate after the phase that the course is in: if the fit is cancelled, after the last search that was done.
    fn phase(
        &self,
        mut candidate: Outcome<M::Model>,
        course: &mut Course<M::Model>,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<M::Model>> {
        let (plan, settings) = (&self.plan, &self.clusterer.settings);
        let Planned { phase, place } = &plan.phases[course.number];
        let (outline, place) = (phase.outline, *place);
        let inside = course.subspace && matches!(outline.columns, Columns::Principal(_));
        if inside {
            plan.project(place, &mut context.cost)?;
        }
        let data = match plan.projected(place) {
            Some(projected) if inside => projected,
            _ => plan.rows(place),
        };
        // Components of other rows say nothing of these.
        let same = candidate.found.take().filter(|(_, of)| *of == place);
        course.begin(plan, &candidate, context)?;
        let (restart, done) = (course.restarts.len(), candidate.phases.len());
        let streams = Streams::new(settings.seed, restart as u64).start(candidate.start);
        let streams = streams.phase(done);
        let mut rng = streams.at(Purpose::Start, 0, 0);
        let subspace = plan.subspace().filter(|_| inside).map(|(s, _)| s);
        let m_step = &self.clusterer.m_step;
        let mut stages =
            Stages::begin(m_step, &*phase.e_step, candidate.model, subspace, &mut rng)?;
        let (mut report, mut file) = match course.middle.take() {
            Some(middle) => {
                let resumed = stages.resume(&middle.stages);
                resumed.map_err(|fault| settings.fault(fault))?;
                (middle.report, Some(middle.pass))
            }
            None => {
                let ran_on = plan.sets[place].which;
                let report = PhaseReport::new(restart, done, ran_on, data.len(), data.dim());
                (report, None)
            }
        };
        let _span = trace::phase(&report);
        let rule = StopRule {
            tolerance: settings.rule.tolerance * outline.factor,
            ..settings.rule
        };
        let mut row = Rows::default();
        data.load(0..1, stages.model().frame(), &mut row)?;
        let set_up = SetUp {
            data,
            entries: row.entries(),
            stages,
            streams,
            moves: outline.moves,
            transfers: outline.transfers,
            labels: same.map(|(supports, _)| supports.into_labels()),
            calibrated: done > 0 || candidate.calibrated,
            widened: candidate.phases.last().map_or(0, |phase| phase.widened),
            rule,
        };
        // Sparse rows, which know different coordinates, have no bounds.
        let bounded = phase.e_step.bounds().is_some();
        if bounded && u32::try_from(data.len()).is_err() {
            let rule = "too many for bounds, which number rows by 32 bits: use Bounded::streaming, or an exhaustive search";
            return Err(Error::parameter("rows", data.len(), rule));
        }
        let mut last = LastSearch {
            is_wanted: settings.cancel.is_some(),
            found: None,
        };
        let ended = (|| {
            let started = Instant::now();
            let bounded = bounded && !data.is_sparse();
            let mut pass = pass_of(set_up, bounded, file.as_mut(), settings)?;
            if let Some(file) = file {
                file.end().map_err(|fault| settings.fault(fault))?;
            }
            // Kept statistics begin with a search.
            report.timings.search += started.elapsed();
            let monitor = &mut context.monitor;
            em::maximise(&mut *pass, &rule, monitor, &mut last, &mut report)?;
            Ok(pass.end())
        })();
        let found = match (ended, last.found) {
            (Err(Error::Cancelled), Some(found)) => {
                report.stop = Stop::Cancelled;
                found
            }
            (ended, _) => ended?,
        };
        report.elapsed = report.began.elapsed();
        context.cost.add_phase(&report);
        candidate.phases.push(report);
        Ok(Outcome {
            model: found.model,
            found: Some((found.supports, place)),
            exact: found.exact,
            reached: candidate.reached + 1,
            ..candidate
        })
    }
}

/// The pass of a phase, at its beginning or from a checkpoint.
fn pass_of<'a, F: Float, M: MStep<F>>(
    set_up: SetUp<'a, F, M>,
    bounded: bool,
    file: Option<&mut Sections<'_>>,
    settings: &Settings,
) -> Result<Box<dyn Pass<'a, F, M> + 'a>> {
    let fault = |fault| settings.fault(fault);
    Ok(match (bounded, file) {
        (true, Some(file)) => Box::new(IncrementalPass::resumed(set_up, file).map_err(fault)?),
        (true, None) => Box::new(IncrementalPass::new(set_up)?),
        (false, Some(file)) => Box::new(FullPass::resumed(set_up, file).map_err(fault)?),
        (false, None) => Box::new(FullPass::new(set_up)),
    })
}
