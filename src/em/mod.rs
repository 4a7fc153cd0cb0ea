//! The one EM loop: search, normalise, sum, update, until the free energy settles.
//!
//! Every algorithm of the crate runs through [`maximise`], phase by phase. [`Stages`] are the search and the family of a phase
//! with their model. A [`Pass`] says whether the statistics are computed again from all rows ([`full`]), or kept and corrected
//! by the rows that changed their component ([`incremental`]).

pub(crate) mod checkpoint;
mod fingerprint;
mod full;
mod incremental;
mod monitor;
mod observe;
mod outcome;
mod pass;
mod phase_rows;
mod report;
mod saved;
mod stages;
mod stop;
mod supports;
pub(crate) mod trace;

pub(crate) use checkpoint::Saver;
pub(crate) use fingerprint::Fingerprint;
pub(crate) use full::FullPass;
pub(crate) use incremental::{IncrementalPass, outside};
pub(crate) use monitor::{Monitor, Observer};
pub use observe::Progress;
pub(crate) use outcome::{LastSearch, Outcome};
pub use phase_rows::PhaseRows;
pub use report::{Evaluations, PhaseReport, Report, Timings};
pub(crate) use saved::SavedStages;
pub(crate) use stages::{Stages, loaded_model, saved_model, shape};
pub(crate) use stop::StopRule;
pub use stop::{Rule, Stop};
pub(crate) use supports::Supports;

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::Streams;
use crate::data::Data;
use crate::io::Stream;
use crate::m_step::MStep;
use crate::model::Mixture;
use crate::model::posterior::Likelihood;
use std::time::Instant;

/// One pass after the other over the rows of a phase.
pub(crate) trait Pass<'a, F: Float, M: MStep<F>> {
    /// Everything before the first pass: warm-up, first searches, and the variance they start (E8). Nothing, if the pass
    /// goes on from a checkpoint.
    fn start(&mut self, stopped: bool) -> Result<()>;
    /// Searches under the current model, and sums up what the M-step needs.
    fn search(&mut self) -> Result<Found>;
    /// Split and merge (E37), transfers (E50) and merges (E51), where they are sure to raise the free energy.
    fn move_components(&mut self) -> Result<()>;
    /// The M-step.
    fn update(&mut self) -> Result<()>;
    /// The stages and their model.
    fn stages(&mut self) -> &mut Stages<'a, F, M>;
    /// Distance evaluations so far.
    fn evaluations(&self) -> u64;
    /// What the last search found, copied.
    fn supports(&self) -> Supports;
    /// Whether that is the best component of every row, for sure.
    fn is_exact(&self) -> bool;
    /// What the pass needs to go on with the next search, besides its stages and their model.
    fn save(&self, out: &mut Stream<'_>);
    /// The model in all coordinates, and what the last search found.
    fn end(self: Box<Self>) -> outcome::Found<M::Model>;
}

/// What a search found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) likelihood: Likelihood,
    /// Whether moves, transfers, merges or restricted steps are still to come: the free energy cannot have settled before them.
    pub(crate) pending: bool,
    pub(crate) zero_mass: usize,
    pub(crate) unobserved: usize,
    /// How often neighbour lists were doubled so far, earlier phases counted.
    pub(crate) widened: usize,
}

/// What every pass of a phase needs.
pub(crate) struct SetUp<'a, F: Float, M: MStep<F>> {
    pub(crate) data: &'a dyn Data<F>,
    /// Coordinates that a row knows.
    pub(crate) entries: usize,
    pub(crate) stages: Stages<'a, F, M>,
    pub(crate) streams: Streams,
    /// Rounds of moves and of transfers, at most.
    pub(crate) moves: usize,
    pub(crate) transfers: usize,
    /// The components of the rows, if a phase before ran on the same ones.
    pub(crate) labels: Option<Vec<u32>>,
    /// Whether the variance is known already.
    pub(crate) calibrated: bool,
    /// How often the phases before doubled their neighbour lists.
    pub(crate) widened: usize,
    pub(crate) rule: StopRule,
}

/// One phase of variational EM. It ends after a search, so labels, supports, model and the last free energy belong together.
#[inline(never)]
pub(crate) fn maximise<'a, F: Float, M: MStep<F>>(
    pass: &mut dyn Pass<'a, F, M>,
    rule: &StopRule,
    monitor: &mut Monitor<'_, F>,
    last: &mut LastSearch<M::Model>,
    report: &mut PhaseReport,
) -> Result<()> {
    pass.start(monitor.is_stopped())?;
    loop {
        monitor.save(pass, report)?;
        let started = Instant::now();
        let found = pass.search()?;
        let model = pass.stages().model();
        let free_energy = found.likelihood.free_energy(model.log_joint()) + model.prior_terms();
        if !free_energy.is_finite() {
            let what = format!("the free energy is {free_energy}: it must be finite");
            return Err(Error::stage(pass.stages().family_name(), what));
        }
        report.search(&found, free_energy, pass.evaluations(), started);
        let stopped = monitor.iteration(pass, report, rule.max_iterations);
        last.keep(pass);
        if let Some(stop) = rule.decide(&report.free_energies, &found, stopped) {
            report.stop = stop;
            return Ok(());
        }
        let started = Instant::now();
        pass.move_components()?;
        pass.update()?;
        report.timings.update += started.elapsed();
    }
}
