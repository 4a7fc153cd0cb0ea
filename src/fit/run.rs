//! One fit: coreset, seeds and phases, for every restart.

use super::builder::{Clusterer, Pipeline};
use super::course::Course;
use super::phase::Columns;
use super::result::Fit;
use super::rows::{Coresets, Plan, Planned, Principal, no_phase};
use super::spent::{Context, Spent};
use crate::base::error::{Error, Result, require};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::{Purpose, Streams};
use crate::base::share::Share;
use crate::data::{Centres, Data, Frame, Guarded, View};
use crate::em::trace;
use crate::em::{
    self, AnyFamily, AnyModel, FullPass, IncrementalPass, Monitor, Observer, Outcome, Pass,
    PhaseReport, Progress, Report, Rule, SavedModel, SavedPass, SavedPhase, Saver, SetUp, Stages,
    Stop, StopRule, shape,
};
use crate::io::{self, FileFault};
use crate::m_step::{Coordinates, MStep, Started};
use crate::seed::Seeder;
use std::time::Instant;

/// All starts together may read half of all rows, or this many if that is more: these are cheap.
const CHEAP_ROWS: usize = 1 << 16;

/// The part of a fit in its checkpoint.
type Saved = (Spent, Coresets, Course<SavedModel>);

pub(super) struct Run<'a, F: Float> {
    pub(super) pipeline: &'a Pipeline<F>,
    family: &'a dyn AnyFamily<F>,
    data: &'a dyn Data<F>,
    seeder: &'a dyn Seeder<F>,
    pub(super) plan: Plan<'a, F>,
}

impl<F: Float, M: MStep<F>> Clusterer<F, M> {
    /// A fit, with a seeder that may be another than its own.
    #[inline(never)]
    pub(super) fn run(
        &self,
        data: &dyn Data<F>,
        seeder: &dyn Seeder<F>,
        observer: Option<Observer<'_, F>>,
    ) -> Result<Fit<M::Model>> {
        let fit = self.pipeline.run(&self.m_step, data, seeder, observer)?;
        Ok(fit.map(AnyModel::into_typed))
    }
}

impl<F: Float> Pipeline<F> {
    #[inline(never)]
    fn run(
        &self,
        family: &dyn AnyFamily<F>,
        data: &dyn Data<F>,
        seeder: &dyn Seeder<F>,
        observer: Option<Observer<'_, F>>,
    ) -> Result<Fit<AnyModel<F>>> {
        let settings = &self.settings;
        let cancel = settings.cancel.clone();
        let coordinates = family.needs().coordinates;
        let directions = settings.directions || coordinates == Coordinates::Directions;
        let data: &dyn Data<F> = &Guarded::to_fit(data, cancel.as_ref(), directions)?;
        let phases = self.phases_for(data.summary().rows, data.dim())?;
        let saver = match &settings.checkpoint {
            Some(checkpoint) => {
                let names = [format!("{seeder:?}"), format!("{family:?}")];
                let identity = self.identity(data, names, &phases)?;
                Some(Saver::new(checkpoint, identity)?)
            }
            None => None,
        };
        let _span = trace::fit(data.len(), data.dim(), settings.clusters, settings.seed);
        let mut context = Context {
            monitor: Monitor::new(observer, cancel, saver),
            spent: Spent::default(),
        };
        let saved = match context.monitor.saver() {
            Some(saver) => saver.resumed::<Saved>()?,
            None => None,
        };
        let (known, from) = match saved {
            Some(((spent, coresets, course), middle)) => {
                (Some(coresets), Some((spent, course, middle)))
            }
            None => (None, None),
        };
        let is_plain = data.frame().is_plain();
        let frame = match coordinates {
            Coordinates::Raw => {
                let rule = "have other coordinates than the columns, which this family needs";
                require(is_plain, "rows", "of a sketch", rule)?;
                Frame::raw(data.summary())?
            }
            _ if settings.standardise => {
                let rule = "must be left out for a sketch, which has mixed the columns";
                require(is_plain, "standardise", true, rule)?;
                Frame::standardised(data.summary())
            }
            _ => data.frame(),
        };
        data.check(&frame)?;
        let coreset = &*self.coreset;
        let plan = Plan::new(data, frame, coreset, phases, settings, known, &mut context)?;
        let mut course = match from {
            Some((spent, course, middle)) => {
                let sound = spent.check();
                let course = sound.and_then(|()| course.resumed(family, settings, &plan, middle));
                context.spent = spent;
                course.map_err(|fault| settings.fault(fault))?
            }
            None => Course::of_restart(0),
        };
        let run = Run {
            pipeline: self,
            family,
            data,
            seeder,
            plan,
        };
        let in_parallel = parallel::fits_apart(settings.restarts, run.plan.most_rows());
        if in_parallel && !context.monitor.sees_restarts() {
            run.restarts_at_once(&mut course, &mut context.spent)?;
        } else {
            while course.restarts.len() < settings.restarts && !course.cut {
                let outcome = run.restart(&mut course, &mut context);
                course.keep(outcome)?;
                if context.monitor.is_stopped() {
                    break;
                }
            }
        }
        run.end(course, context)
    }
}

impl<F: Float> Run<'_, F> {
    /// The best of the restarts.
    fn end(self, course: Course<AnyModel<F>>, context: Context<'_, F>) -> Result<Fit<AnyModel<F>>> {
        let Context { monitor, spent } = context;
        let (restart, best) = course.best.ok_or(Error::Cancelled)?;
        let (supports, place) = best.found.ok_or_else(no_phase)?;
        let last = best.phases.last().expect("at least one phase");
        let all_ended = course.restarts.len() == self.pipeline.settings.restarts;
        let whole = all_ended && best.reached == self.plan.phases.len() && !course.cut;
        let first = self.plan.phases[0].place;
        let report = Report {
            stop: match monitor.stop() {
                // The time may be up after all was done.
                Some(Stop::Cancelled) if whole => last.stop,
                stop => stop.unwrap_or(last.stop),
            },
            iterations: best.phases.iter().map(|phase| phase.iterations).sum(),
            free_energies: last.free_energies.clone(),
            zero_mass: last.zero_mass,
            at_floor: last.at_floor,
            distance_evaluations: spent.evaluations.total(),
            evaluations: spent.evaluations,
            coreset_size: self.plan.rows(first).len(),
            coreset_entropy: self.plan.entropy(first),
            timings: spent.timings,
            restart,
            restarts: course.restarts,
            checkpoint_fault: monitor.checkpoint_fault(),
            phases: best.phases,
        };
        let (search_labels, supports) = supports.into_arrays();
        Ok(Fit {
            model: best.model,
            report,
            search_labels,
            exact: best.exact,
            supports,
            coreset: self.plan.subset(place).cloned(),
        })
    }

    /// Restarts that know nothing of each other, some at a time: what they found is kept until all of these have ended.
    fn restarts_at_once(&self, course: &mut Course<AnyModel<F>>, spent: &mut Spent) -> Result<()> {
        const BATCH: usize = 64;
        let settings = &self.pipeline.settings;
        let most = settings.restarts;
        for first in (0..most).step_by(BATCH) {
            let count = BATCH.min(most - first);
            let here = trace::here();
            let restarts = parallel::map_fits(count, self.plan.most_rows(), |i| {
                let _span = here.enter();
                let mut context = Context {
                    monitor: Monitor::new(None, settings.cancel.clone(), None),
                    spent: Spent::default(),
                };
                let mut course = Course::of_restart(first + i);
                let outcome = self.restart(&mut course, &mut context);
                (outcome, course.cut, context.spent)
            });
            for (outcome, cut, restart_spent) in restarts {
                *spent += restart_spent;
                course.cut |= cut;
                course.keep(outcome)?;
            }
            if course.cut {
                break;
            }
        }
        Ok(())
    }

    /// One restart: its starts through the first phase, and the best of them through the others.
    fn restart(
        &self,
        course: &mut Course<AnyModel<F>>,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<AnyModel<F>>> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        if course.is_new() {
            self.starts(course, context)?;
            course.save(plan, context)?;
        } else {
            plan.find_subspace(settings.seed, &mut context.spent)?;
        }
        while course.number < plan.phases.len() {
            let outline = plan.phases[course.number].phase.outline;
            if outline.after_subspace && !course.subspace {
                course.waiting.iter_mut().for_each(|c| c.reached += 1);
                course.number += 1;
                continue;
            }
            // Stop only after a search: a model without one has no supports to return.
            let has_found = course.first().is_some_and(|c| c.found.is_some());
            if context.monitor.is_stopped() && has_found {
                break;
            }
            while let Some(mut candidate) = course.waiting.pop_front() {
                // Once stopped, one search is enough.
                if course.leading.is_some() && context.monitor.is_stopped() {
                    course.cut = true;
                    continue;
                }
                let is_wanted = settings.cancel.is_some() && candidate.found.is_some();
                let before = is_wanted.then(|| candidate.clone());
                candidate = match (self.phase(candidate, course, context), before) {
                    (Err(Error::Cancelled), Some(before)) => before.cancelled(),
                    (Err(Error::Cancelled), None) if course.leading.is_some() => {
                        course.cut = true;
                        continue;
                    }
                    (after, _) => after?,
                };
                course.cut |= candidate.is_cancelled();
                let leading = course.leading.as_ref();
                if leading.is_none_or(|leading| candidate.is_better_than(leading)) {
                    course.leading = Some(candidate);
                }
                course.save(plan, context)?;
            }
            course.waiting.extend(course.leading.take());
            course.number += 1;
            let may_begin = course.number == 1 && course.undecided && !context.monitor.is_stopped();
            if may_begin && let Some(anew) = self.begin_anew(course, context)? {
                course.number = anew.reached;
                course.waiting = [anew].into();
            }
        }
        let best = course.end().filter(|best| best.found.is_some());
        best.ok_or_else(no_phase)
    }

    /// The starts of a restart, at their seeds.
    fn starts(&self, course: &mut Course<AnyModel<F>>, context: &mut Context<'_, F>) -> Result<()> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        let restart = course.restarts.len();
        let first = self.start(restart, 0, context)?;
        course.undecided = false;
        plan.find_subspace(settings.seed, &mut context.spent)?;
        course.subspace = match plan.subspace() {
            None => false,
            Some(Principal { subspace, sample }) => {
                // Most of the quantization error of the seeds is in it.
                let centres = subspace.enter(first.model.centres());
                let e_step = &plan.phases[0].phase.e_step;
                let near = e_step.bounds().unwrap_or(centres.len());
                !em::outside(View::new(&**sample, &subspace.frame()), &centres, near)?
            }
        };
        if let Some(other) = self.begin_elsewhere(&first, course, context)? {
            course.number = other.reached;
            course.waiting.push_back(other);
            return Ok(());
        }
        course.waiting.push_back(first);
        let runs = |planned: &&Planned<F>| course.subspace || !planned.phase.outline.after_subspace;
        let Some(Planned { phase, place }) = plan.phases.iter().find(runs) else {
            return Ok(());
        };
        // All starts from one model would be the same.
        let room = match settings.warm {
            Some(_) => 1,
            None => (self.data.len() / 2).max(CHEAP_ROWS) / plan.rows(*place).len(),
        };
        for start in 1..phase.outline.starts.min(room) {
            if context.monitor.is_stopped() {
                course.cut = true;
                break;
            }
            let candidate = self.start(restart, start, context)?;
            course.waiting.push_back(candidate);
        }
        Ok(())
    }

    /// A start, at its seeds or at a model.
    fn start(
        &self,
        restart: usize,
        start: usize,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<AnyModel<F>>> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        let started = Instant::now();
        let frame = plan.frame.clone();
        let calibrated;
        let mut evaluations = 0;
        let model = match &settings.warm {
            Some(warm) => {
                let Started { model, goes_on } =
                    warm.model(self.family, settings.clusters, frame, self.data)?;
                model.cost().check(self.data.kind())?;
                calibrated = goes_on;
                model
            }
            None => {
                let streams = Streams::new(settings.seed, restart as u64).start(start);
                let mut rng = streams.at(Purpose::Seeding, 0, 0);
                let rows = plan.rows(plan.phases[0].place);
                let share = Share::default();
                context.monitor.see(&Progress::Seeding {
                    restart,
                    start,
                    rows: rows.len(),
                    clusters: settings.clusters,
                    share: &share,
                });
                let view = View::new(rows, &frame).watched(&share);
                let seeds = self.seeder.seed(view, settings.clusters, &mut rng)?;
                let sound = seeds.check(settings.clusters, frame.dim());
                sound.map_err(|what| Error::stage(self.seeder.name(), what))?;
                evaluations = seeds.evaluations;
                let Started { model, goes_on } = self.model_at(seeds.centres)?;
                calibrated = goes_on;
                model
            }
        };
        context.spent.seeding(evaluations, started);
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

    pub(super) fn model_at(&self, seeds: Centres<F>) -> Result<Started<AnyModel<F>>> {
        let frame = self.plan.frame.clone();
        let k = seeds.len();
        let d = seeds.dim();
        let started = self.family.at_seeds(seeds, frame, self.data)?;
        let model = &started.model;
        let [components, centres, dim, about] = shape(&**model);
        let in_frame = model.frame().dim();
        let sums = model.fitted().statistics();
        let summed = sums.mass.len();
        let in_sums = sums.dim;
        if [components, centres, summed, dim, about, in_frame, in_sums] != [k, k, k, d, d, d, d] {
            let what = format!(
                "{components} components with {centres} centres of {dim} coordinates in a frame of {in_frame}, \
                 costs about points of {about}, and sums over {summed} components of {in_sums}: there must be one for each of {k} seeds of {d} coordinates"
            );
            return Err(Error::stage(self.family.name(), what));
        }
        model.cost().check(self.data.kind())?;
        Ok(started)
    }

    /// A candidate after the phase that the course is in: if the fit is cancelled, after the last search that was done.
    fn phase(
        &self,
        mut candidate: Outcome<AnyModel<F>>,
        course: &mut Course<AnyModel<F>>,
        context: &mut Context<'_, F>,
    ) -> Result<Outcome<AnyModel<F>>> {
        let plan = &self.plan;
        let settings = &self.pipeline.settings;
        let Planned { phase, place } = &plan.phases[course.number];
        let outline = phase.outline;
        let place = *place;
        let inside = course.subspace && outline.columns != Columns::All;
        let data = if inside {
            plan.projected(place, &mut context.spent)?
        } else {
            plan.rows(place)
        };
        // A phase before would have found components.
        let unfitted = course.number > 0 && candidate.found.is_none();
        // Components of other rows say nothing of these.
        let same = candidate.found.take().filter(|(_, set)| *set == place);
        candidate = course.begin(candidate, plan, context)?;
        let restart = course.restarts.len();
        let done = candidate.phases.len();
        let streams = Streams::new(settings.seed, restart as u64)
            .start(candidate.start)
            .phase(done);
        let mut rng = streams.at(Purpose::Start, 0, 0);
        let subspace = plan.subspace().filter(|_| inside).map(|p| &p.subspace);
        let e_step = &*phase.e_step;
        let mut stages = Stages::begin(e_step, candidate.model, subspace, &mut rng)?;
        let which = plan.sets[place].which;
        let mut report = PhaseReport::new(restart, done, which, data.len(), data.dim());
        let before = candidate.phases.last();
        report.longer_lists = before.map_or(0, |phase| phase.longer_lists);
        let mut saved = None;
        if let Some(bytes) = course.middle.take() {
            let resumed = io::only::<SavedPhase<'_, F, SavedModel>>("phase", &bytes);
            let resumed = resumed.and_then(|phase| {
                let model = self.family.read(&phase.model.0)?;
                stages.resume(model, &phase.search)?;
                (report, saved) = (phase.report.into_owned().checked()?, Some(phase.pass));
                Ok(())
            });
            resumed.map_err(|fault| settings.fault(fault))?;
        }
        let _span = trace::phase(&report);
        let soft = stages.shares_all().then_some(Rule::RemainingPerRow);
        let rule = StopRule {
            rule: settings.rule.rule.or(soft),
            tolerance: settings.rule.tolerance.times(outline.factor),
            ..settings.rule
        };
        let set_up = SetUp {
            data,
            stages,
            streams,
            moves: outline.moves,
            unfitted,
            transfers: outline.transfers,
            step: outline.step,
            labels: same.map(|(supports, _)| supports.into_labels()),
            calibrated: done > 0 || candidate.calibrated,
            rule,
        };
        let started = Instant::now();
        let pass = self.pass(set_up, saved, context.monitor.is_stopped(), &mut report)?;
        report.timings.search += started.elapsed();
        let ended = em::maximise(pass, &rule, &mut context.monitor, &mut report)?;
        report.elapsed = report.began.elapsed();
        context.spent += Spent::of(&report);
        candidate.phases.push(report);
        Ok(Outcome {
            model: ended.model,
            found: Some((ended.supports, place)),
            exact: ended.exact,
            reached: candidate.reached + 1,
            ..candidate
        })
    }

    /// The pass of a phase, at its beginning or from a checkpoint. Sparse rows, which know different coordinates, have no bounds.
    fn pass<'b>(
        &self,
        set_up: SetUp<'b, F>,
        saved: Option<SavedPass<'_, F>>,
        stopped: bool,
        report: &mut PhaseReport,
    ) -> Result<Box<dyn Pass<'b, F> + 'b>> {
        let has_bounds = set_up.stages.e_step.bounds().is_some();
        let data = set_up.data;
        let numbered = !has_bounds || u32::try_from(data.len()).is_ok();
        let rule = "too many for bounds, which number rows by 32 bits: use Bounded::streaming, or an exhaustive search";
        require(numbered, "rows", data.len(), rule)?;
        let bounded = has_bounds && !data.is_ragged();
        if bounded {
            set_up.stages.check_free_centres()?;
        }
        let fault = |fault| self.pipeline.settings.fault(fault);
        Ok(match saved {
            None if bounded => Box::new(IncrementalPass::new(set_up, report)?),
            None => Box::new(FullPass::new(set_up, stopped, report)?),
            Some(SavedPass::Incremental(saved)) if !data.is_ragged() => {
                Box::new(IncrementalPass::resumed(set_up, saved.into_owned()).map_err(fault)?)
            }
            Some(SavedPass::Full(saved)) if !bounded => {
                Box::new(FullPass::resumed(set_up, saved).map_err(fault)?)
            }
            Some(_) => return Err(fault(FileFault::content("pass", "must be of the E-step"))),
        })
    }
}
