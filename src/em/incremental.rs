//! Passes whose statistics are kept: rows that the bounds settle are not read, and those that change their component are
//! moved in the sums. For supports of width 1, one shared variance and dense rows (E35, E36).

use super::saved::{IncrementalState, SavedPass, SavedPhase};
use super::vacant::{self, Filled};
use super::{AnyModel, Ended, Pass, PhaseReport, SearchResult, SetUp, Stages, Supports};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Centres, View};
use crate::e_step::bounded::hartigan::TransferCandidates;
use crate::e_step::bounded::{LIMITS, time_of_all, time_of_lists};
use crate::e_step::{Assignment, Change, KeptSums, NeighbourLists};
use crate::io::{FileFault, rule};
use crate::model::posterior::Likelihood;
use std::borrow::Cow;

/// The rows by component with their bounds, the sums, and the lists by which rows are searched.
pub(crate) struct IncrementalPass<'a, F: Float> {
    phase: SetUp<'a, F>,
    /// Centres on a neighbour list.
    near: usize,
    kept: IncrementalState<F>,
    /// Rows to transfer after this search, and rows for components without mass.
    candidates: Option<TransferCandidates>,
    vacant: Option<Filled<F>>,
    /// Whether centres go to the means themselves: after moves, which pay only then, and where the last search changed nothing, so that
    /// the fixed point is reached and not approached.
    exactly: bool,
}

impl<'a, F: Float> IncrementalPass<'a, F> {
    /// From the components of the rows where they are known, or from the nearest centres; this first search starts the variance.
    pub(crate) fn new(mut phase: SetUp<'a, F>, report: &mut PhaseReport) -> Result<Self> {
        let labels = phase.labels.take();
        let view = phase.view();
        let centres = phase.centres();
        let near = near(&phase, report);
        let mut searched = false;
        let assignment = match labels {
            Some(labels) => Assignment::of_labels(&labels, centres.len()),
            None => {
                // From random rows lists would find so little that later searches do not make up for it.
                let first = if phase.unfitted || phase.rule.tolerance.is_zero() {
                    Assignment::exhaustive(view, centres)?
                } else {
                    Assignment::first(view, centres, near)?
                };
                let (found, evaluations, seconds) = first;
                report.add_evaluations(evaluations);
                searched = seconds;
                found
            }
        };
        let kept = IncrementalState {
            sums: KeptSums::of(view, centres, &assignment)?,
            assignment,
            lists: None,
            before: None,
            moves: phase.moves,
            transfers: phase.transfers,
            searched,
            stale: false,
        };
        let mut pass = Self {
            near,
            kept,
            candidates: None,
            vacant: None,
            exactly: false,
            phase,
        };
        let first = pass.likelihood();
        pass.phase.calibrate(&first);
        Ok(pass)
    }

    /// In the middle of a phase, from a checkpoint.
    pub(crate) fn resumed(
        mut phase: SetUp<'a, F>,
        mut kept: IncrementalState<F>,
        report: &PhaseReport,
    ) -> std::result::Result<Self, FileFault> {
        phase.calibrated = true;
        let centres = phase.centres();
        let n = phase.data.len();
        let k = centres.len();
        let dim = centres.dim();
        kept.assignment.check(n, k)?;
        kept.sums.check(k, dim)?;
        kept.lists = kept.lists.map(|lists| lists.checked(k)).transpose()?;
        let of_model = |centres: &Centres<F>| (centres.len(), centres.dim()) == (k, dim);
        let sound = kept.before.as_ref().is_none_or(of_model);
        rule(sound, "centres before", "must be those of the model")?;
        Ok(Self {
            near: near(&phase, report),
            kept,
            candidates: None,
            vacant: None,
            exactly: false,
            phase,
        })
    }

    /// Weighted squared distances of the rows to the centres of their components (E36).
    fn squared(&self) -> f64 {
        self.kept.sums.squared(self.phase.centres()) + self.phase.data.residual().squared
    }

    fn likelihood(&self) -> Likelihood {
        let weight = self.phase.data.summary().total_weight;
        let entries = weight * self.phase.coordinates();
        Likelihood::of_nearest(weight, entries, self.squared())
    }

    /// Whether the phase would end with what was found (E19), if there is nothing else to try.
    fn settles(&self, free_energy: f64, likelihood: &Likelihood, report: &PhaseReport) -> bool {
        let rule = &self.phase.rule;
        let before = &report.free_energies;
        self.kept.moves == 0 && rule.settles(before, free_energy, likelihood)
    }

    /// Searches for a nearer centre for every row that its bounds leave open, and moves it in the sums.
    fn follow(&mut self, before: &Centres<F>, report: &mut PhaseReport) -> Result<()> {
        let centres = self.phase.centres();
        let mut lists = match self.kept.lists.take() {
            Some(lists) => lists,
            None => {
                // Bounds from the old lists are stale; and split and merge need a search of all rows.
                if self.kept.stale || self.kept.moves > 0 {
                    self.kept.assignment.forget();
                }
                let (lists, evaluations) = NeighbourLists::new(centres, self.near);
                report.add_evaluations(evaluations);
                lists
            }
        };
        report.add_evaluations(lists.follow(before, centres));
        let beyond = self.lists_miss(&lists, report)?;
        let view = self.phase.view();
        let centres = self.phase.centres();
        let assignment = &mut self.kept.assignment;
        let (changes, evaluations) = assignment.search(view, centres, &lists, beyond)?;
        report.add_evaluations(evaluations);
        self.move_rows(&changes)?;
        self.exactly = changes.is_empty();
        // Moves and transfers need the second nearest centres, which a search by lists finds.
        (self.kept.searched, self.kept.stale) = (!beyond, false);
        if !beyond && !self.search_beyond(&lists, report)? {
            self.kept.lists = Some(lists);
        }
        Ok(())
    }

    /// Whether a search over all centres gains more for its time than one by lists, of the rows that these do not cover: it gains as
    /// much as that one, about the gain of the last iteration, and what lists miss, which a sample estimates.
    fn lists_miss(&mut self, lists: &NeighbourLists<F>, report: &mut PhaseReport) -> Result<bool> {
        let [.., before, last] = report.free_energies[..] else {
            return Ok(false);
        };
        let rule = &self.phase.rule;
        let likelihood = self.likelihood();
        let earlier = &report.free_energies[..report.steps() - 1];
        let settled = || rule.settles(earlier, last, &likelihood);
        if self.transfers_wait() && settled() {
            return Ok(false);
        }
        let tolerance = rule.tolerance;
        let view = self.phase.view();
        let centres = self.phase.centres();
        let k = centres.len();
        let (listed, open) = self.kept.assignment.left_open(lists);
        let by_lists = time_of_lists(listed, k, self.near);
        let times_as_long = |rows: usize| time_of_all(rows, k) / by_lists;
        let every = (LIMITS.estimates * times_as_long(LIMITS.drawn_rows.min(open))).ceil() as usize;
        if open == 0 || !report.steps().is_multiple_of(every.max(1)) {
            return Ok(false);
        }
        let assignment = &self.kept.assignment;
        let turn = report.steps();
        let (missed, evaluations) = assignment.missed(view, centres, lists, open, turn)?;
        report.add_evaluations(evaluations);
        let gain = 2.0 * (last - before) / likelihood.entries * likelihood.best;
        let by_lists = LIMITS.soon * gain * (times_as_long(open) - 1.0);
        let pays = missed > by_lists.max(tolerance.of(likelihood.best));
        if pays && missed >= LIMITS.sure_gain * likelihood.best {
            self.lengthen(report);
        }
        Ok(pays)
    }

    /// Whether transfers need a search for the second nearest centres first.
    fn transfers_wait(&self) -> bool {
        self.kept.transfers > 0 && !self.kept.searched
    }

    /// Moves rows to other components, in the sums as well.
    fn move_rows(&mut self, changes: &[Change]) -> Result<()> {
        let view = self.phase.view();
        let centres = self.phase.centres();
        let IncrementalState {
            assignment, sums, ..
        } = &mut self.kept;
        assignment.apply(changes);
        sums.apply(view, centres, assignment, changes)
    }

    /// Before the phase ends, searches rows that their lists do not cover over all centres. Whether it gained so much that the
    /// phase goes on: with new lists, as centres are near others now than when these were made.
    fn search_beyond(
        &mut self,
        lists: &NeighbourLists<F>,
        report: &mut PhaseReport,
    ) -> Result<bool> {
        let likelihood = self.likelihood();
        let error = likelihood.best;
        let free_energy = self.phase.free_energy(&likelihood);
        let last = report.steps() == self.phase.rule.max_iterations;
        if !(last || self.settles(free_energy, &likelihood, report)) {
            return Ok(false);
        }
        let view = self.phase.view();
        let centres = self.phase.centres();
        let tolerance = self.phase.rule.tolerance;
        let near = self.near;
        let n = view.len();
        let k = centres.len();
        let iterations = |rows: usize| time_of_all(rows, k) / time_of_lists(n, k, near);
        let price = |rows: usize| tolerance.of_search(iterations(rows)).of(error);
        let assignment = &mut self.kept.assignment;
        let turn = report.steps();
        let found = assignment.search_beyond(view, centres, lists, error, turn, price)?;
        report.add_evaluations(found.evaluations);
        self.move_rows(&found.changes)?;
        self.exactly &= found.changes.is_empty();
        let gained = error - self.squared();
        let pays = !found.changes.is_empty() && gained >= tolerance.of(error);
        self.kept.searched = !found.whole;
        self.kept.stale = pays || found.whole;
        if gained >= LIMITS.sure_gain * error {
            self.lengthen(report);
        }
        Ok(self.kept.stale)
    }

    fn lengthen(&mut self, report: &mut PhaseReport) {
        self.near = longer(self.near, 1, self.phase.centres().len());
        report.longer_lists += 1;
    }

    /// Transfers rows one by one (E50). The rounds end with one that gained less than the phase would stop for.
    fn transfer(&mut self, candidates: TransferCandidates, report: &mut PhaseReport) -> Result<()> {
        let made = candidates.transfer(self.phase.view(), &mut self.kept.sums)?;
        report.add_evaluations(made.evaluations);
        let over = made.gain <= self.phase.rule.tolerance.of(self.squared());
        self.kept.transfers = if over { 0 } else { self.kept.transfers - 1 };
        self.kept.assignment.forget_some(&made.changes);
        self.kept.assignment.apply(&made.changes);
        let mut centres = self.phase.centres().clone();
        self.move_to_means(&mut centres, &made.begun)?;
        if made.begun.contains(&true) {
            self.place(centres)
        } else {
            Ok(())
        }
    }

    /// Moves centres to the means of their rows. These may be far from where the centres were: the M-step would round as if all
    /// of that were left.
    fn move_to_means(&mut self, centres: &mut Centres<F>, which: &[bool]) -> Result<()> {
        let IncrementalState {
            assignment, sums, ..
        } = &mut self.kept;
        let mut means = centres.clone();
        sums.move_centres(&mut means);
        centres.update_where(which, &means);
        sums.renew_where(self.phase.view(), centres, assignment, |_| false)
    }

    /// Whether the last search compared every row with all centres, unless its bounds settled it.
    fn is_exact(&self) -> bool {
        let k = self.phase.centres().len();
        let e_step = self.phase.stages.e_step;
        self.kept.searched && e_step.bounds().is_some_and(|near| near >= k)
    }

    /// Rows for the components without mass (E54).
    fn vacant(&self, report: &mut PhaseReport) -> Result<Option<Filled<F>>> {
        let view = self.phase.view();
        let centres = self.phase.centres().clone();
        let mut means = centres.clone();
        let sums = &self.kept.sums;
        sums.move_centres(&mut means);
        report.add_evaluations(view.len() as u64);
        let labels = self.kept.assignment.labels();
        vacant::fill(view, centres, &|c| sums.mass(c), &means, &labels, &[])
    }

    /// Gives these rows to their components: lists of near centres may not have them.
    fn fill(&mut self, filled: Filled<F>) -> Result<()> {
        let Filled { centres, rows } = filled;
        let mut labels = self.kept.assignment.labels();
        rows.iter().for_each(|(row, c)| labels[*row] = *c);
        self.kept.assignment = Assignment::of_labels(&labels, centres.len());
        self.kept.sums = KeptSums::of(self.phase.view(), &centres, &self.kept.assignment)?;
        self.place(centres)
    }

    /// Gives the model other centres. Lists and bounds are stale.
    fn place(&mut self, centres: Centres<F>) -> Result<()> {
        (self.kept.lists, self.kept.stale) = (None, true);
        self.phase.stages.place(centres)
    }
}

impl<'a, F: Float> Pass<'a, F> for IncrementalPass<'a, F> {
    fn search(&mut self, report: &mut PhaseReport) -> Result<SearchResult> {
        if let Some(before) = self.kept.before.take() {
            self.follow(&before, report)?;
        }
        report.zero_mass = self.kept.sums.zero_mass();
        let likelihood = self.likelihood();
        let free_energy = self.phase.free_energy(&likelihood);
        // With lists of one there are no others to go to; after the last M-step none follows.
        let rule = &self.phase.rule;
        let more = report.steps() < rule.max_iterations;
        let settles = self.settles(free_energy, &likelihood, report);
        // Split and merge moves such components first, to better places.
        let vacant = report.zero_mass > 0 && self.kept.moves == 0;
        if more && vacant && (settles || self.is_exact()) {
            self.vacant = self.vacant(report)?;
        }
        let transfers = self.kept.transfers > 0 && self.kept.searched && self.vacant.is_none();
        if more && transfers && self.near > 1 && settles {
            let offsets = self.kept.sums.offsets(self.phase.centres());
            let candidates =
                TransferCandidates::of(self.phase.view(), &self.kept.assignment, &offsets);
            let pays = candidates.gain > rule.tolerance.of(likelihood.best);
            self.candidates = Some(candidates).filter(|_| pays);
        }
        Ok(SearchResult {
            likelihood,
            free_energy,
            pending: self.kept.moves > 0
                || self.candidates.is_some()
                || self.vacant.is_some()
                || more && settles && self.transfers_wait(),
        })
    }

    fn move_components(&mut self, report: &mut PhaseReport) -> Result<()> {
        if let Some(filled) = self.vacant.take() {
            self.exactly = true;
            return self.fill(filled);
        }
        if let Some(candidates) = self.candidates.take() {
            self.exactly = true;
            return self.transfer(candidates, report);
        }
        if self.kept.moves == 0 || !self.kept.searched {
            return Ok(());
        }
        self.exactly = true;
        let view = self.phase.view();
        let mut centres = self.phase.centres().clone();
        let IncrementalState {
            assignment,
            sums,
            moves,
            ..
        } = &mut self.kept;
        let offsets = sums.offsets(&centres);
        let squared = sums.squared(&centres);
        let phase = &self.phase;
        let (made, over) =
            phase.split_and_merge(&mut centres, assignment, &offsets, squared, report)?;
        *moves = if over { 0 } else { *moves - 1 };
        if made.changes.is_empty() {
            if !over {
                // The next round goes by distances too: new lists, and a search of all rows.
                self.kept.lists = None;
            }
            return Ok(());
        }
        sums.renew(view, &centres, assignment, &made.stale)?;
        self.move_to_means(&mut centres, &made.stale)?;
        self.place(centres)
    }

    fn update(&mut self, _: &PhaseReport) -> Result<()> {
        let before = self.phase.centres().clone();
        let (mut moments, squared) = self.kept.sums.moments_about(&before);
        let data = self.phase.data;
        let known = data.summary().total_weight * self.phase.coordinates();
        moments.add_total(squared + data.residual().squared, known);
        if !self.exactly {
            moments.step = self.phase.step;
        }
        self.phase.stages.update_from(moments)?;
        self.kept.before = Some(before);
        Ok(())
    }

    fn stages(&mut self) -> &mut Stages<'a, F> {
        &mut self.phase.stages
    }

    /// Components from the phase before are as exact as its search was, whatever this one's is.
    fn found(&mut self, _: bool) -> Ended<F> {
        let k = self.phase.centres().len();
        let exact = self.is_exact();
        let supports = Supports::of_labels(self.kept.assignment.labels(), k);
        self.phase.ended(supports, exact)
    }

    fn save<'b>(&'b self, report: &'b PhaseReport) -> Option<SavedPhase<'b, F, AnyModel<F>>> {
        let pass = SavedPass::Incremental(Box::new(Cow::Borrowed(&self.kept)));
        self.phase.stages.saved(report, pass)
    }
}

/// Centres on the neighbour lists of a phase.
fn near<F: Float>(phase: &SetUp<'_, F>, report: &PhaseReport) -> usize {
    let all = phase.centres().len();
    let near = phase.stages.e_step.bounds().map_or(all, |near| near.max(1));
    longer(near, report.longer_lists, all)
}

/// Neighbour lists of `near` centres, doubled so often, at most of `all`.
fn longer(near: usize, times: usize, all: usize) -> usize {
    let factor = 1usize.checked_shl(times as u32).filter(|_| times < 64);
    near.saturating_mul(factor.unwrap_or(usize::MAX)).min(all)
}

/// The quantization error of some centres on these rows, and the number of distance evaluations.
pub(crate) fn error_of<F: Float>(view: View<'_, F>, centres: &Centres<F>) -> Result<(f64, u64)> {
    let (assignment, evaluations, _) = Assignment::exhaustive(view, centres)?;
    Ok((assignment.squared(view), evaluations))
}

/// The means after an iteration of k-means from some centres, and the number of distance evaluations.
pub(crate) fn iterated<F: Float>(
    view: View<'_, F>,
    mut centres: Centres<F>,
) -> Result<(Centres<F>, u64)> {
    let (assignment, evaluations, _) = Assignment::exhaustive(view, &centres)?;
    KeptSums::of(view, &centres, &assignment)?.move_centres(&mut centres);
    Ok((centres, evaluations))
}

/// Whether most of the quantization error of some centres lies outside a subspace: then the subspace is not used. The rows are
/// a sample in the subspace, and `centres` are in it as well.
pub(crate) fn outside<F: Float>(
    view: View<'_, F>,
    centres: &Centres<F>,
    near: usize,
) -> Result<bool> {
    let (assignment, ..) = Assignment::first(view, centres, near.min(centres.len()))?;
    Ok(view.data.residual().squared > assignment.squared(view))
}
