//! One fit: coreset, seeds and phases, for every restart.

use super::phase::Columns;
use super::rows::{Plan, no_phase};
use super::task::Run;
use crate::cancel;
use crate::compiled::Compiled;
use crate::coreset::Subset;
use crate::data::Rows;
use crate::em::{
    self, Fresh, Joint, LastSearch, Pass, PhaseReport, Progress, Report, SetUp, Stop, StopRule,
    Supports, Watch,
};
use crate::error::{Error, Result};
use crate::rng::{Stage, Streams};
use std::any::Any;
use std::time::Instant;

/// What a fit found.
pub(crate) struct Fitted {
    pub(crate) model: Box<dyn Any>,
    pub(crate) report: Report,
    pub(crate) supports: Supports,
    pub(crate) subset: Option<Subset>,
    pub(crate) exact: bool,
}

/// The stages of a restart on their way through the phases, or of one of its starts.
struct Candidate<'a, R: Rows> {
    joint: Box<dyn Joint<R> + 'a>,
    streams: Streams,
    phases: Vec<PhaseReport>,
    /// Phases of the plan behind it, also those that it left out.
    reached: usize,
    /// What the last search found, and the place of its rows.
    found: Option<(Supports, usize)>,
    /// Whether that was the best component of every row.
    exact: bool,
}

/// All of a fit; it ends at once where it is cancelled.
pub(crate) fn run<R: Rows>(run: Run<'_, R>, watch: &mut Watch<'_>) -> Result<Fitted> {
    let work = || cancel::catch(|| all(&run, watch)).unwrap_or(Err(Error::Cancelled));
    cancel::under(&run.settings.cancel, work)
}

/// All restarts.
fn all<R: Rows>(run: &Run<'_, R>, watch: &mut Watch<'_>) -> Result<Fitted> {
    let mut plan = Plan::new(run, watch)?;
    let mut best: Option<(usize, LastSearch)> = None;
    let (mut restarts, mut cut) = (Vec::new(), false);
    for restart in 0..run.settings.restarts {
        let found = match cancel::catch(|| one(run, &mut plan, restart, watch)) {
            Some(found) => found?,
            None => match watch.take_last_search() {
                Some(mut found) => {
                    let last = found.phases.last_mut().expect("its own");
                    last.stop = Stop::Cancelled;
                    plan.book(last);
                    cut = true;
                    found
                }
                None => {
                    cut = true;
                    break;
                }
            },
        };
        let own = found.standing();
        restarts.push(own.1);
        if best.as_ref().is_none_or(|(_, best)| own > best.standing()) {
            best = Some((restart, found));
        }
        if watch.stopped() {
            break;
        }
    }
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
        distance_evaluations: plan.evaluations.total(),
        evaluations: plan.evaluations,
        coreset_size: plan.rows(plan.phases[0].2).len(),
        timings: plan.timings,
        restart,
        restarts,
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

/// One restart: its starts through the first phase, and the best of them through the others.
fn one<'a, R: Rows>(
    run: &Run<'a, R>,
    plan: &mut Plan<'a, R>,
    restart: usize,
    watch: &mut Watch<'_>,
) -> Result<LastSearch> {
    // That of another restart says nothing of this one.
    watch.take_last_search();
    let (_, first, place) = plan.phases[0];
    let room = run.data.len() / 2 / plan.rows(place).len();
    let mut candidates = Vec::new();
    for start in 0..first.starts.min(room).max(1) {
        candidates.push(seeded(run, plan, (restart, start), watch)?);
        if watch.stopped() {
            break;
        }
    }
    plan.find_subspace(run.settings.seed);
    let subspace = worth_it(plan, &*candidates[0].joint);
    for number in 0..plan.phases.len() {
        let (_, outline, _) = plan.phases[number];
        if outline.after_subspace && !subspace {
            candidates.iter_mut().for_each(|c| c.reached += 1);
            continue;
        }
        // A run ends after a search, also one that was stopped before it.
        if watch.stopped() && !candidates[0].phases.is_empty() {
            break;
        }
        let mut best: Option<Candidate<'_, R>> = None;
        for mut candidate in candidates {
            // Once stopped, one search is enough.
            if best.is_none() || !watch.stopped() {
                phase(
                    run,
                    plan,
                    (restart, number, subspace),
                    &mut candidate,
                    watch,
                )?;
            }
            let own = em::standing(candidate.reached, &candidate.phases);
            if best
                .as_ref()
                .is_none_or(|best| own > em::standing(best.reached, &best.phases))
            {
                best = Some(candidate);
            }
        }
        candidates = best.into_iter().collect();
    }
    let best = candidates.swap_remove(0);
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

/// A start at its seeds.
fn seeded<'a, R: Rows>(
    run: &Run<'a, R>,
    plan: &mut Plan<'a, R>,
    (restart, start): (usize, usize),
    watch: &mut Watch<'_>,
) -> Result<Candidate<'a, R>> {
    let started = Instant::now();
    let streams = Streams::new(run.settings.seed, restart as u64).start(start);
    let mut rng = streams.at(Stage::Seeding, 0, 0);
    let rows = plan.rows(plan.phases[0].2);
    let seeds = run.seeder.seed(rows, &plan.frame, run.clusters, &mut rng)?;
    let what = seeds.check(run.clusters, plan.frame.dim());
    what.map_err(|what| Error::Stage {
        stage: run.names.seeder,
        what,
    })?;
    plan.evaluations.seeding += seeds.evaluations;
    plan.timings.seeding += started.elapsed();
    watch.see(Progress::Seeded {
        restart,
        start,
        evaluations: seeds.evaluations,
        elapsed: started.elapsed(),
    });
    Ok(Candidate {
        joint: (run.start)(seeds.centres, plan.frame.clone())?,
        streams,
        phases: Vec::new(),
        reached: 0,
        found: None,
        exact: false,
    })
}

/// Whether there is a subspace, and most of the quantization error of the seeds is in it.
fn worth_it<R: Rows>(plan: &Plan<'_, R>, joint: &dyn Joint<R>) -> bool {
    let Some((subspace, sample)) = plan.subspace() else {
        return false;
    };
    let centres = subspace.enter(joint.model().centres());
    let near = joint.bounds().map_or(centres.len(), |bounds| bounds.size());
    !R::Float::outside(sample, &subspace.frame(), &centres, near)
}

/// One phase of a candidate.
fn phase<R: Rows>(
    run: &Run<'_, R>,
    plan: &mut Plan<'_, R>,
    (restart, number, subspace): (usize, usize, bool),
    candidate: &mut Candidate<'_, R>,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let (e_step, outline, place) = plan.phases[number];
    let inside = subspace && matches!(outline.columns, Columns::Principal(_));
    if inside {
        plan.project(place);
    }
    let subspace = plan.subspace().filter(|_| inside).map(|(s, _)| s);
    candidate.joint.enter(e_step, subspace)?;
    let width = candidate.joint.width();
    if !(1..=run.clusters).contains(&width) {
        let rule = format!(
            "width {width}: must be at least 1, and at most {}",
            run.clusters
        );
        return Err(Error::Stage {
            stage: candidate.joint.search_name(),
            what: rule,
        });
    }
    let data = match plan.projected(place) {
        Some(projected) if inside => projected,
        _ => plan.rows(place),
    };
    let done = candidate.phases.len();
    // Components of other rows say nothing of these.
    let same = candidate.found.take().filter(|(_, of)| *of == place);
    let mut report = PhaseReport::new(
        (restart, done),
        (plan.sets[place].which, data.len(), data.dim()),
    );
    let rule = StopRule {
        tolerance: run.settings.rule.tolerance * outline.factor,
        ..run.settings.rule
    };
    let set_up = SetUp {
        data,
        joint: &mut *candidate.joint,
        streams: candidate.streams.phase(done),
        moves: outline.moves,
        labels: same.map(|(supports, _)| supports.into_labels()),
        calibrated: done > 0,
        rule,
    };
    let started = Instant::now();
    let mut pass: Box<dyn Pass<R>> = match set_up.joint.bounds().is_some() {
        true => R::Float::kept_pass(set_up),
        false => Box::new(Fresh::new(set_up)),
    };
    // Kept statistics begin with a search.
    report.timings.search += started.elapsed();
    watch.begin(place, candidate.reached, &candidate.phases);
    em::maximise(&mut *pass, &rule, watch, &mut report)?;
    let (supports, exact) = (pass.supports(), pass.is_exact());
    drop(pass);
    candidate.joint.leave();
    report.elapsed = report.began.elapsed();
    plan.book(&report);
    candidate.phases.push(report);
    candidate.reached += 1;
    (candidate.found, candidate.exact) = (Some((supports, place)), exact);
    Ok(())
}
