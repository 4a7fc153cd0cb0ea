//! The one EM loop: search, share out, sum up, update, until the free energy settles.
//!
//! Every algorithm of the crate runs through [`maximise`]. A phase is (rows, search, stop rule), started
//! from a model; the free energy never falls within a phase.

mod kept;
mod observe;
mod pass;
mod report;
mod stop;

pub(crate) use kept::Kept;
pub(crate) use observe::Observer;
pub use observe::Progress;
pub use report::{Evaluations, PhaseReport, Report, Timings};
pub use stop::Stop;
pub(crate) use stop::StopRule;

use crate::data::{Data, Scores};
use crate::e_step::EStep;
use crate::m_step::MStep;
use crate::mixture::Mixture;
use crate::rng::{Stage, Streams};
use pass::Pass;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A model and what the last search under it found.
#[derive(Debug)]
pub(crate) struct Maximised<M> {
    pub(crate) model: M,
    pub(crate) kept: Kept,
    pub(crate) phase: PhaseReport,
    pub(crate) update: Duration,
}

/// One phase of variational EM from the model `model`, whose variance is not yet known.
///
/// It ends after a search, so labels, supports, model and the last free energy belong together.
pub(crate) fn maximise<D, E, M>(
    data: &D,
    (e_step, m_step): (&E, &M),
    mut model: M::Model,
    rule: StopRule,
    streams: Streams,
    observer: &mut Observer<'_, M::Model>,
) -> Maximised<M::Model>
where
    D: Data,
    M: MStep<D>,
    E: EStep<D, M::Model>,
{
    let started = Instant::now();
    let k = model.components();
    let mut kept = Kept::unset(data.len(), e_step.width(k), k);
    let start = e_step.start(&model, &mut streams.at(Stage::Start, 0, 0));
    let (mut state, mut evaluations) = (start.state, start.evaluations);
    let mut pass = Pass::new(data, e_step, m_step, streams);

    let warm_up = if observer.stopped() {
        0
    } else {
        e_step.warm_up(k)
    };
    for _ in 0..warm_up {
        let found = pass.search_and_share_evenly(&model, &mut state, &mut kept);
        evaluations += found.evaluations;
        m_step.finish(found.statistics, &mut model, true);
    }

    // The first search knows no variance yet; it starts it (E8).
    let mut initial_searches = e_step.initial_searches(k).max(m_step.initial_searches());
    if observer.stopped() {
        initial_searches = initial_searches.min(1);
    }
    for search in 0..initial_searches {
        let found = pass.search(&model, &mut state, &mut kept);
        evaluations += found.evaluations;
        if search == 0 {
            m_step.calibrate(&mut model, &found.likelihood);
        }
    }

    let mut free_energies = Vec::new();
    let mut update = Duration::ZERO;
    let restricted = m_step.restricted_steps(e_step.width(k) < k);
    let (stop, emptied, unseen) = loop {
        let first = free_energies.is_empty();
        let found = if first && initial_searches > 0 {
            pass.sum(&model, &mut kept)
        } else {
            pass.search_and_sum(&model, &mut state, &mut kept)
        };
        evaluations += found.evaluations;
        if first && initial_searches == 0 {
            m_step.calibrate(&mut model, &found.likelihood);
        }
        let likelihood = found.likelihood.free_energy(model.log_joint());
        free_energies.push(likelihood + model.prior_terms());

        let progress = Progress::Iteration {
            iteration: free_energies.len() - 1,
            free_energy: free_energies[free_energies.len() - 1],
            evaluations,
            elapsed: started.elapsed(),
            model: &model,
        };
        let stopped = observer.see(progress) == ControlFlow::Break(());
        let steps = free_energies.len() - 1;
        let settled = &free_energies[steps.min(restricted)..];
        if let Some(stop) = rule.decide(settled, steps, found.likelihood.weight, stopped) {
            let gaps = &found.statistics;
            break (stop, m_step.emptied(gaps), m_step.unseen(gaps));
        }
        let updating = Instant::now();
        m_step.finish(found.statistics, &mut model, steps < restricted);
        update += updating.elapsed();
    };
    let phase = PhaseReport {
        rows: data.len(),
        iterations: free_energies.len() - 1,
        free_energies,
        stop,
        evaluations,
        emptied,
        unseen,
        elapsed: started.elapsed(),
    };
    Maximised {
        model,
        kept,
        phase,
        update,
    }
}
