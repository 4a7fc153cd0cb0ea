//! One fit: coreset, seeds and phases, for every restart.

use super::course::{Candidate, Course};
use super::phase::Columns;
use super::rows::{Cost, Plan, no_phase};
use super::task::Run;
use crate::base::cancel;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::{Purpose, Streams};
use crate::coreset::Subset;
use crate::data::View;
use crate::em::trace;
use crate::em::{
    self, Evaluations, Fresh, IncrementalPass, Joint, LastSearch, Pass, PhaseReport, Progress,
    Report, SetUp, Stop, StopRule, Supports, Watch,
};
use crate::io::{FileFault, Sections};
use std::any::Any;
use std::time::Instant;

/// What a fit found.
pub(crate) struct Fitted {
    pub(crate) model: Box<dyn Any + Send>,
    pub(crate) report: Report,
    pub(crate) supports: Supports,
    pub(crate) subset: Option<Subset>,
    pub(crate) exact: bool,
}

/// All of a fit; it ends at once where it is cancelled.
#[inline(never)]
pub(crate) fn run<F: Float>(run: Run<'_, F>, watch: &mut Watch<'_>) -> Result<Fitted> {
    let (data, seed) = (run.data, run.settings.seed);
    let _span = trace::fit(data.len(), data.dim(), run.clusters, seed);
    let work = || cancel::catch(|| all(&run, watch)).unwrap_or(Err(Error::Cancelled));
    cancel::under(&run.settings.cancel, work)
}

/// All restarts.
fn all<F: Float>(run: &Run<'_, F>, watch: &mut Watch<'_>) -> Result<Fitted> {
    let mut file = run.resumed(watch)?;
    let mut cost = Cost::default();
    let plan = Plan::new(run, file.as_mut(), &mut cost, watch)?;
    let mut course = match file {
        Some(file) => {
            Course::read(run, &plan, &mut cost, file).map_err(|fault| run.fault(fault))?
        }
        None => Course::default(),
    };
    let apart = parallel::fits_apart(run.settings.restarts, plan.most_rows());
    let cut = match watch.beside().filter(|_| apart) {
        Some(watch) => beside_each_other(run, &plan, &mut course, (&mut cost, &watch))?,
        None => in_turn(run, &plan, &mut course, (&mut cost, watch))?,
    };
    let Course { best, restarts, .. } = course;
    let (restart, best) = best.ok_or(Error::Cancelled)?;
    let last = best.phases.last().expect("at least one phase");
    let all = restarts.len() == run.settings.restarts && best.reached == plan.phases.len();
    let whole = all && !cut;
    let report = Report {
        stop: match watch.stop() {
            // The time may be up after all was done.
            Some(Stop::Cancelled) if whole => last.stop,
            stop => stop.unwrap_or(last.stop),
        },
        iterations: best.phases.iter().map(|phase| phase.iterations).sum(),
        free_energies: last.free_energies.clone(),
        emptied: last.emptied,
        unobserved: last.unobserved,
        distance_evaluations: cost.evaluations.total(),
        evaluations: cost.evaluations,
        coreset_size: plan.rows(plan.phases[0].2).len(),
        timings: cost.timings,
        restart,
        restarts,
        checkpoint_fault: watch.checkpoint_fault(),
        phases: best.phases,
    };
    Ok(Fitted {
        exact: best.exact,
        subset: plan.subset(best.place).cloned(),
        model: best.model,
        report,
        supports: best.supports,
    })
}

/// One restart after the other. Whether the last of them was cut short.
fn in_turn<'a, F: Float>(
    run: &Run<'a, F>,
    plan: &Plan<'a, F>,
    course: &mut Course<'a, F>,
    (cost, watch): (&mut Cost, &mut Watch<'_>),
) -> Result<bool> {
    while course.restarts.len() < run.settings.restarts {
        let (found, cut) = until_cancelled(run, plan, course, (cost, watch))?;
        if let Some(found) = found {
            course.keep(found);
        }
        if cut {
            return Ok(true);
        }
        if watch.stopped() {
            break;
        }
    }
    Ok(false)
}

/// Restarts that know nothing of each other, some at a time: what they found is kept until all of these have ended. Whether
/// one was cut short; those that found nothing are left out.
fn beside_each_other<'a, F: Float>(
    run: &Run<'a, F>,
    plan: &Plan<'a, F>,
    course: &mut Course<'a, F>,
    (cost, watch): (&mut Cost, &(dyn Fn() -> Watch<'static> + Sync)),
) -> Result<bool> {
    const TOGETHER: usize = 64;
    let most = run.settings.restarts;
    for first in (0..most).step_by(TOGETHER) {
        let count = TOGETHER.min(most - first);
        let here = trace::here();
        let found = parallel::map_fits(count, plan.most_rows(), |i| {
            let _span = here.enter();
            let (mut own, mut watch) = (Cost::default(), watch());
            let mut course = Course::of_restart(first + i);
            let found = until_cancelled(run, plan, &mut course, (&mut own, &mut watch));
            (found, own)
        });
        let mut cut = false;
        for (found, own) in found {
            let (found, cut_short) = found?;
            cost.add(&own);
            cut |= cut_short;
            if let Some(found) = found {
                course.keep(found);
            }
        }
        if cut {
            return Ok(true);
        }
    }
    Ok(false)
}

/// One restart, or what its last search found if it is cancelled, and whether it was.
fn until_cancelled<'a, F: Float>(
    run: &Run<'a, F>,
    plan: &Plan<'a, F>,
    course: &mut Course<'a, F>,
    (cost, watch): (&mut Cost, &mut Watch<'_>),
) -> Result<(Option<LastSearch>, bool)> {
    if let Some(found) = cancel::catch(|| one(run, plan, course, (cost, watch))) {
        return Ok((Some(found?), false));
    }
    let mut found = watch.take_last_search();
    if let Some(last) = found.as_mut().and_then(|found| found.phases.last_mut()) {
        last.stop = Stop::Cancelled;
        cost.book(last);
    }
    Ok((found, true))
}

/// One restart: its starts through the first phase, and the best of them through the others.
fn one<'a, F: Float>(
    run: &Run<'a, F>,
    plan: &Plan<'a, F>,
    course: &mut Course<'a, F>,
    (cost, watch): (&mut Cost, &mut Watch<'_>),
) -> Result<LastSearch> {
    // That of another restart says nothing of this one.
    watch.take_last_search();
    if course.is_new() {
        starts(run, plan, course, (cost, watch))?;
        course.save(run, plan, (cost, watch))?;
    } else {
        plan.find_subspace(run.settings.seed, cost);
    }
    while course.number < plan.phases.len() {
        let (_, outline, _) = plan.phases[course.number];
        if outline.after_subspace && !course.subspace {
            course.waiting.iter_mut().for_each(|c| c.reached += 1);
            course.number += 1;
            continue;
        }
        // A run ends after a search, also one that was stopped before it.
        // One that goes on in the middle of a phase has none yet.
        if watch.stopped() && course.first().is_some_and(|c| c.found.is_some()) {
            break;
        }
        while let Some(mut candidate) = course.waiting.pop_front() {
            // Once stopped, one search is enough.
            if course.leading.is_none() || !watch.stopped() {
                phase(run, plan, course, &mut candidate, (cost, watch))?;
            }
            let standing = |c: &Candidate<'_, F>| em::standing(c.reached, &c.phases);
            let leading = course.leading.as_ref();
            if leading.is_none_or(|leading| standing(&candidate) > standing(leading)) {
                course.leading = Some(candidate);
            }
            course.save(run, plan, (cost, watch))?;
        }
        course.waiting.extend(course.leading.take());
        course.number += 1;
    }
    let best = course.end().ok_or_else(no_phase)?;
    let (supports, place) = best.found.ok_or_else(no_phase)?;
    Ok(LastSearch {
        exact: best.exact,
        model: best.joint.into_model(),
        supports,
        place,
        reached: best.reached,
        phases: best.phases,
    })
}

/// Several starts on so many rows together take little time, also where that is more than half of all rows.
const FEW_ROWS: usize = 1 << 16;

/// The starts of a restart, at their seeds.
fn starts<'a, F: Float>(
    run: &Run<'a, F>,
    plan: &Plan<'a, F>,
    course: &mut Course<'a, F>,
    (cost, watch): (&mut Cost, &mut Watch<'_>),
) -> Result<()> {
    let (_, first, place) = plan.phases[0];
    let room = (run.data.len() / 2).max(FEW_ROWS) / plan.rows(place).len();
    // From a model all starts would be the same.
    let room = if run.warm.is_some() { 1 } else { room };
    for start in 0..first.starts.min(room).max(1) {
        let restart = course.restarts.len();
        let candidate = seeded(run, plan, (restart, start), (cost, watch))?;
        course.waiting.push_back(candidate);
        if watch.stopped() {
            break;
        }
    }
    plan.find_subspace(run.settings.seed, cost);
    course.subspace = worth_it(plan, &*course.waiting[0].joint);
    Ok(())
}

/// A start at its seeds.
fn seeded<'a, F: Float>(
    run: &Run<'a, F>,
    plan: &Plan<'a, F>,
    (restart, start): (usize, usize),
    (cost, watch): (&mut Cost, &mut Watch<'_>),
) -> Result<Candidate<'a, F>> {
    let started = Instant::now();
    let streams = Streams::new(run.settings.seed, restart as u64).start(start);
    let (joint, known, evaluations) = match run.warm {
        Some(warm) => {
            let (joint, known) = warm(plan.frame.clone())?;
            (joint, known, 0)
        }
        None => {
            let mut rng = streams.at(Purpose::Seeding, 0, 0);
            let rows = plan.rows(plan.phases[0].2);
            let seeds = run.seeder.seed(rows, &plan.frame, run.clusters, &mut rng)?;
            let sound = seeds.check(run.clusters, plan.frame.dim());
            sound.map_err(|what| Error::stage(run.names.seeder, what))?;
            let joint = (run.start)(seeds.centres, plan.frame.clone())?;
            (joint, false, seeds.evaluations)
        }
    };
    cost.evaluations.add(&Evaluations {
        seeding: evaluations,
        ..Evaluations::default()
    });
    cost.timings.seeding += started.elapsed();
    watch.see(Progress::Seeded {
        restart,
        start,
        evaluations,
        elapsed: started.elapsed(),
    });
    Ok(Candidate {
        joint,
        calibrated: known,
        start,
        streams,
        phases: Vec::new(),
        reached: 0,
        found: None,
        exact: false,
    })
}

/// Whether there is a subspace, and most of the quantization error of the seeds is in it.
fn worth_it<F: Float>(plan: &Plan<'_, F>, joint: &dyn Joint<F>) -> bool {
    let Some((subspace, sample)) = plan.subspace() else {
        return false;
    };
    let centres = subspace.enter(joint.model().centres());
    let near = joint.bounds().map_or(centres.len(), |bounds| bounds.size());
    !em::outside(View::new(sample, &subspace.frame()), &centres, near)
}

/// One phase of a candidate.
fn phase<F: Float>(
    run: &Run<'_, F>,
    plan: &Plan<'_, F>,
    course: &mut Course<'_, F>,
    candidate: &mut Candidate<'_, F>,
    (cost, watch): (&mut Cost, &mut Watch<'_>),
) -> Result<()> {
    let (e_step, outline, place) = plan.phases[course.number];
    let inside = course.subspace && matches!(outline.columns, Columns::Principal(_));
    if inside {
        plan.project(place, cost);
    }
    let subspace = plan.subspace().filter(|_| inside).map(|(s, _)| s);
    let done = candidate.phases.len();
    let streams = candidate.streams.phase(done);
    let mut rng = streams.at(Purpose::Start, 0, 0);
    candidate.joint.enter(e_step, subspace, &mut rng)?;
    let width = candidate.joint.width();
    if !(1..=run.clusters).contains(&width) {
        let most = run.clusters;
        let what = format!("width {width}: must be at least 1, and at most {most}");
        return Err(Error::stage(candidate.joint.search_name(), what));
    }
    let data = match plan.projected(place) {
        Some(projected) if inside => projected,
        _ => plan.rows(place),
    };
    // Components of other rows say nothing of these.
    let same = candidate.found.take().filter(|(_, of)| *of == place);
    let (mut report, mut file) = match course.middle.take() {
        Some(middle) => {
            let resumed = candidate.joint.resume(&middle.stages);
            resumed.map_err(|fault| run.fault(fault))?;
            (middle.report, Some(middle.pass))
        }
        None => {
            let ran_on = (plan.sets[place].which, data.len(), data.dim());
            let report = PhaseReport::new((course.restarts.len(), done), ran_on);
            (report, None)
        }
    };
    let _span = trace::phase(&report);
    let rule = StopRule {
        tolerance: run.settings.rule.tolerance * outline.factor,
        ..run.settings.rule
    };
    course.begin(run, plan, candidate, (cost, watch))?;
    let set_up = SetUp {
        data,
        joint: &mut *candidate.joint,
        streams,
        moves: outline.moves,
        transfers: outline.transfers,
        labels: same.map(|(supports, _)| supports.into_labels()),
        calibrated: done > 0 || candidate.calibrated,
        widened: candidate.phases.last().map_or(0, |phase| phase.widened),
        rule,
    };
    if set_up.joint.bounds().is_some() && u32::try_from(data.len()).is_err() {
        let rule = "too many for bounds, which number rows by 32 bits: use Bounded::streaming, or an exhaustive search";
        return Err(Error::parameter("rows", data.len(), rule));
    }
    let started = Instant::now();
    let pass = pass_of(set_up, file.as_mut());
    let mut pass = pass.map_err(|fault| run.fault(fault))?;
    if let Some(file) = file {
        file.end().map_err(|fault| run.fault(fault))?;
    }
    // Kept statistics begin with a search.
    report.timings.search += started.elapsed();
    watch.begin(place, candidate.reached, &candidate.phases);
    em::maximise(&mut *pass, &rule, watch, &mut report)?;
    let (supports, exact) = (pass.supports(), pass.is_exact());
    drop(pass);
    candidate.joint.leave();
    report.elapsed = report.began.elapsed();
    cost.book(&report);
    candidate.phases.push(report);
    candidate.reached += 1;
    (candidate.found, candidate.exact) = (Some((supports, place)), exact);
    Ok(())
}

/// The pass of a phase, at its beginning or from a checkpoint.
fn pass_of<'a, F: Float>(
    set_up: SetUp<'a, F>,
    file: Option<&mut Sections<'_>>,
) -> std::result::Result<Box<dyn Pass<F> + 'a>, FileFault> {
    // Sparse rows, which know different coordinates, have no bounds: their passes are fresh.
    if set_up.joint.bounds().is_some() && !set_up.data.is_sparse() {
        return Ok(match file {
            Some(file) => Box::new(IncrementalPass::resumed(set_up, file)?),
            None => Box::new(IncrementalPass::new(set_up)),
        });
    }
    Ok(match file {
        Some(file) => Box::new(Fresh::resumed(set_up, file)?),
        None => Box::new(Fresh::new(set_up)),
    })
}
