//! The one EM loop: search, normalise, sum, update, until the free energy settles.
//!
//! Every algorithm of the crate runs through [`maximise`], phase by phase. [`Stages`] are the search and the family of a phase
//! with their model. A [`Pass`] says whether the statistics are computed again from all rows ([`full`]), or kept and corrected
//! by the rows that changed their component ([`incremental`]). The [report](PhaseReport) is what a phase has done so far.

mod by_component;
pub(crate) mod checkpoint;
mod family;
mod full;
mod identity;
mod incremental;
mod kept;
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
mod tolerance;
pub(crate) mod trace;
mod vacant;

pub(crate) use checkpoint::Saver;
pub(crate) use family::{AnyFamily, AnyModel, SavedModel};
pub(crate) use full::FullPass;
pub(crate) use identity::Identity;
pub(crate) use incremental::{IncrementalPass, error_of, iterated, outside};
pub(crate) use monitor::{Monitor, Observer};
pub use observe::Progress;
pub(crate) use outcome::{Ended, Outcome};
pub(crate) use pass::{RowPass, shards};
pub use phase_rows::PhaseRows;
pub use report::{Evaluations, PhaseReport, Report, Timings};
pub(crate) use saved::{SavedPass, SavedPhase};
pub(crate) use stages::{SetUp, Stages, shape};
pub(crate) use stop::StopRule;
pub use stop::{Rule, Stop};
pub(crate) use supports::Supports;
pub(crate) use tolerance::Tolerance;

use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::model::posterior::Likelihood;
use std::time::Instant;

/// One pass after the other over the rows of a phase. The report says how far the phase is; what a pass evaluates is added to it.
pub(crate) trait Pass<'a, F: Float> {
    /// The E-step: searches under the current model, and sums up what the M-step needs.
    fn search(&mut self, report: &mut PhaseReport) -> Result<SearchResult>;
    /// Split and merge (E37), transfers (E50) and merges (E51), where they are sure to raise the free energy.
    fn move_components(&mut self, report: &mut PhaseReport) -> Result<()>;
    fn update(&mut self, report: &PhaseReport) -> Result<()>;
    /// The pass that does the next search: another one from where sums are kept on.
    fn next(self: Box<Self>) -> Box<dyn Pass<'a, F> + 'a>;
    fn stages(&mut self) -> &mut Stages<'a, F>;
    /// A copy of the result of the last search; at the `end` supports are not there twice.
    fn found(&mut self, end: bool) -> Ended<F>;
    /// The state from which the phase goes on with the next search; `None` if its search cannot save its state.
    fn save<'b>(&'b self, report: &'b PhaseReport) -> Option<SavedPhase<'b, F, AnyModel<F>>>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchResult {
    pub(crate) likelihood: Likelihood,
    pub(crate) free_energy: f64,
    /// Whether moves, transfers, merges or restricted steps are still to come: the free energy cannot have settled before them.
    pub(crate) pending: bool,
}

/// One phase of variational EM. It ends after a search, so labels, supports, model and the last free energy belong together. A
/// phase that is cancelled ends with the last search that was done.
#[inline(never)]
pub(crate) fn maximise<'a, F: Float>(
    mut pass: Box<dyn Pass<'a, F> + 'a>,
    rule: &StopRule,
    monitor: &mut Monitor<'_, F>,
    report: &mut PhaseReport,
) -> Result<Ended<F>> {
    // If the fit can be cancelled, a copy of what each search found.
    let mut last = None;
    let mut turn = |pass: &mut dyn Pass<'a, F>| {
        monitor.save(pass, report)?;
        let started = Instant::now();
        let search = pass.search(report)?;
        pass.stages().check(search.free_energy)?;
        report.record(search.free_energy, started);
        let stopped = monitor.iteration(pass, report, rule.max_iterations);
        if monitor.is_cancellable() {
            // One copy at a time.
            drop(last.take());
            last = Some(pass.found(false));
        }
        if let Some(stop) = rule.decide(&report.free_energies, &search, stopped) {
            return Ok(Some(stop));
        }
        let started = Instant::now();
        pass.move_components(report)?;
        pass.update(report)?;
        report.timings.update += started.elapsed();
        Ok(None)
    };
    let ended = loop {
        match turn(&mut *pass) {
            Ok(None) => pass = pass.next(),
            Ok(Some(stop)) => break Ok(stop),
            Err(error) => break Err(error),
        }
    };
    report.stop = match ended {
        Err(Error::Cancelled) if last.is_some() => Stop::Cancelled,
        ended => ended?,
    };
    Ok(last.unwrap_or_else(|| pass.found(true)))
}
