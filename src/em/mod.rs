//! The one EM loop: search, normalise, sum, update, until the free energy settles.
//!
//! Every algorithm of the crate runs through [`maximise`], phase by phase. What differs between them is behind two
//! traits. [`Joint`] is an E-step and an M-step with their model. [`Pass`] says whether the statistics are computed again
//! from all rows ([`fresh`]), or kept and corrected by the rows that changed their component ([`incremental`]).

mod fresh;
mod incremental;
mod joint;
mod observe;
mod phase_rows;
mod report;
mod saved;
mod saver;
mod stop;
mod supports;
pub(crate) mod trace;

pub(crate) use fresh::Fresh;
pub(crate) use incremental::{IncrementalPass, outside};
pub(crate) use joint::{Joined, Joint, loaded_model, saved_model, shape};
pub use observe::Progress;
pub(crate) use observe::{Event, LastSearch, Observer, Watch, standing};
pub use phase_rows::PhaseRows;
pub use report::{Evaluations, PhaseReport, Report, Timings};
pub(crate) use saved::SavedStages;
pub(crate) use saver::Saver;
pub(crate) use stop::StopRule;
pub use stop::{Rule, Stop};
pub(crate) use supports::Supports;

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::Streams;
use crate::data::Data;
use crate::io::Stream;
use crate::model::posterior::Likelihood;
use std::time::Instant;

/// One pass after the other over the rows of a phase.
pub(crate) trait Pass<F: Float> {
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
    fn joint(&mut self) -> &mut dyn Joint<F>;
    /// Distance evaluations so far.
    fn evaluations(&self) -> u64;
    /// What the last search found, taken out.
    fn supports(&mut self) -> Supports;
    /// The same, copied: the pass goes on.
    fn copy_of_supports(&self) -> Supports;
    /// Whether that is the best component of every row, for sure.
    fn is_exact(&self) -> bool;
    /// What the pass needs to go on with the next search, besides its stages and their model.
    fn save(&self, out: &mut Stream<'_>);
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
pub(crate) struct SetUp<'a, F: Float> {
    pub(crate) data: &'a dyn Data<F>,
    pub(crate) joint: &'a mut dyn Joint<F>,
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
pub(crate) fn maximise<F: Float>(
    pass: &mut dyn Pass<F>,
    rule: &StopRule,
    watch: &mut Watch<'_>,
    report: &mut PhaseReport,
) -> Result<()> {
    pass.start(watch.stopped())?;
    loop {
        watch.save(pass, report)?;
        let started = Instant::now();
        let found = pass.search()?;
        let model = pass.joint().model();
        let free_energy = found.likelihood.free_energy(model.log_joint()) + model.prior_terms();
        if !free_energy.is_finite() {
            let what = format!("the free energy is {free_energy}: it must be finite");
            return Err(Error::stage(pass.joint().family_name(), what));
        }
        report.search(&found, free_energy, pass.evaluations(), started);
        let stopped = watch.iteration(pass.joint(), report, rule.max_iterations);
        watch.keep(pass, report);
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
