//! Rows by component with their bounds, and the lists of near centres by which they are searched (E35).

use super::vacant::Filled;
use super::{PhaseReport, SetUp};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::Centres;
use crate::e_step::bounded::hartigan::TransferCandidates;
use crate::e_step::bounded::{LIMITS, time_of_all, time_of_lists};
use crate::e_step::{Assignment, KeptSums, NeighbourLists};
use crate::io::{FileFault, rule};
use crate::model::posterior::Likelihood;

/// The rows from one search to the next, and in a checkpoint.
#[derive(Clone)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct ByComponent<F: Float> {
    pub(super) assignment: Assignment<F>,
    lists: Option<NeighbourLists<F>>,
    /// Rounds of moves and of transfers that are left.
    pub(super) moves: usize,
    transfers: usize,
    /// Whether every row has bounds: moves go by them.
    searched: bool,
    stale: bool,
    /// Centres on a neighbour list.
    near: usize,
    /// Rows to transfer after this search.
    #[cfg_attr(feature = "files", serde(skip))]
    candidates: Option<TransferCandidates>,
    /// Whether centres go to the means themselves: after moves, which pay only then, and where the last search changed nothing, so that
    /// the fixed point is reached and not approached.
    #[cfg_attr(feature = "files", serde(skip))]
    pub(super) exactly: bool,
}

impl<F: Float> ByComponent<F> {
    /// From the components of the rows where they are known, or from the nearest centres.
    pub(super) fn new(phase: &mut SetUp<'_, F>, report: &mut PhaseReport) -> Result<Self> {
        let labels = phase.labels.take();
        let view = phase.view();
        let centres = phase.centres();
        let k = centres.len();
        let near = phase.stages.e_step.bounds().map_or(k, |near| near.max(1));
        let near = longer(near, report.longer_lists, k);
        let mut searched = false;
        let assignment = match labels {
            Some(labels) => Assignment::of_labels(&labels, k),
            None => {
                // From random rows lists would find so little that later searches do not make up for it.
                let first = if phase.unfitted || phase.rule.tolerance.is_zero() {
                    Assignment::exhaustive(view, centres)?
                } else {
                    Assignment::first(view, centres, near)?
                };
                let (assignment, evaluations, seconds) = first;
                report.count(evaluations);
                searched = seconds;
                assignment
            }
        };
        Ok(Self {
            assignment,
            lists: None,
            moves: phase.moves,
            transfers: phase.transfers,
            searched,
            stale: false,
            near,
            candidates: None,
            exactly: false,
        })
    }

    /// Checks rows of a file, of which there are `n`, for `k` components.
    pub(super) fn check(&mut self, n: usize, k: usize) -> std::result::Result<(), FileFault> {
        self.assignment.check(n, k)?;
        let lists = self.lists.take();
        self.lists = lists.map(|lists| lists.checked(k)).transpose()?;
        rule((1..=k).contains(&self.near), "near", "must be at most all")
    }

    /// Searches for a nearer centre for every row that its bounds leave open, and moves it in the sums.
    pub(super) fn follow(
        &mut self,
        phase: &SetUp<'_, F>,
        sums: &mut KeptSums<F>,
        before: &Centres<F>,
        report: &mut PhaseReport,
    ) -> Result<()> {
        let centres = phase.centres();
        let mut lists = match self.lists.take() {
            Some(lists) => lists,
            None => {
                // Bounds from the old lists are stale; and split and merge need a search of all rows.
                if self.stale || self.moves > 0 {
                    self.assignment.forget();
                }
                let (lists, evaluations) = NeighbourLists::new(centres, self.near);
                report.count(evaluations);
                lists
            }
        };
        report.count(lists.follow(before, centres));
        let beyond = self.lists_miss(phase, sums, &lists, report)?;
        let assignment = &mut self.assignment;
        let (changes, evaluations) = assignment.search(phase.view(), centres, &lists, beyond)?;
        report.count(evaluations);
        self.assignment.apply(&changes);
        sums.apply(phase.view(), centres, &self.assignment, &changes)?;
        self.exactly = changes.is_empty();
        // Moves and transfers need the second nearest centres, which a search by lists finds.
        (self.searched, self.stale) = (!beyond, false);
        if !beyond && !self.search_beyond(phase, sums, &lists, report)? {
            self.lists = Some(lists);
        }
        Ok(())
    }

    /// Whether a search over all centres gains more for its time than one by lists, of the rows that these do not cover: it gains as
    /// much as that one, about the gain of the last iteration, and what lists miss, which a sample estimates.
    fn lists_miss(
        &mut self,
        phase: &SetUp<'_, F>,
        sums: &KeptSums<F>,
        lists: &NeighbourLists<F>,
        report: &mut PhaseReport,
    ) -> Result<bool> {
        let [.., before, last] = report.free_energies[..] else {
            return Ok(false);
        };
        let rule = &phase.rule;
        let likelihood = phase.likelihood(phase.squared(sums));
        let earlier = &report.free_energies[..report.steps() - 1];
        let settled = || rule.settles(earlier, last, &likelihood);
        if self.transfers_wait() && settled() {
            return Ok(false);
        }
        let view = phase.view();
        let centres = phase.centres();
        let k = centres.len();
        let assignment = &self.assignment;
        let (listed, open) = assignment.left_open(lists);
        let by_lists = time_of_lists(listed, k, self.near);
        let times_as_long = |rows: usize| time_of_all(rows, k) / by_lists;
        let every = LIMITS.estimates * times_as_long(LIMITS.drawn_rows.min(open));
        if open == 0
            || !report
                .steps()
                .is_multiple_of((every.ceil() as usize).max(1))
        {
            return Ok(false);
        }
        let turn = report.steps();
        let (missed, evaluations) = assignment.missed(view, centres, lists, open, turn)?;
        report.count(evaluations);
        let gain = 2.0 * (last - before) / likelihood.entries * likelihood.best;
        let by_lists = LIMITS.soon * gain * (times_as_long(open) - 1.0);
        let pays = missed > by_lists.max(rule.tolerance.of(likelihood.best));
        if pays && missed >= LIMITS.sure_gain * likelihood.best {
            self.lengthen(report);
        }
        Ok(pays)
    }

    /// Whether transfers need a search for the second nearest centres first.
    fn transfers_wait(&self) -> bool {
        self.transfers > 0 && !self.searched
    }

    /// Before the phase ends, searches rows that their lists do not cover over all centres. Whether it gained so much that the
    /// phase goes on: with new lists, as centres are near others now than when these were made.
    fn search_beyond(
        &mut self,
        phase: &SetUp<'_, F>,
        sums: &mut KeptSums<F>,
        lists: &NeighbourLists<F>,
        report: &mut PhaseReport,
    ) -> Result<bool> {
        let error = phase.squared(sums);
        let SetUp { rule, .. } = phase;
        let last = report.steps() == rule.max_iterations;
        if !(last || self.settles(phase, &phase.likelihood(error), report)) {
            return Ok(false);
        }
        let view = phase.view();
        let centres = phase.centres();
        let near = self.near;
        let n = view.len();
        let k = centres.len();
        let iterations = |rows: usize| time_of_all(rows, k) / time_of_lists(n, k, near);
        let price = |rows: usize| rule.tolerance.of_search(iterations(rows)).of(error);
        let assignment = &mut self.assignment;
        let turn = report.steps();
        let searched = assignment.search_beyond(view, centres, lists, error, turn, price)?;
        report.count(searched.evaluations);
        self.assignment.apply(&searched.changes);
        sums.apply(view, centres, &self.assignment, &searched.changes)?;
        self.exactly &= searched.changes.is_empty();
        let gained = error - phase.squared(sums);
        let pays = !searched.changes.is_empty() && gained >= rule.tolerance.of(error);
        self.searched = !searched.whole;
        self.stale = pays || searched.whole;
        if gained >= LIMITS.sure_gain * error {
            self.lengthen(report);
        }
        Ok(self.stale)
    }

    fn lengthen(&mut self, report: &mut PhaseReport) {
        self.near = longer(self.near, 1, self.assignment.components());
        report.longer_lists += 1;
    }

    /// Whether the phase would end with what was found (E19), if there is nothing else to try.
    pub(super) fn settles(
        &self,
        phase: &SetUp<'_, F>,
        likelihood: &Likelihood,
        report: &PhaseReport,
    ) -> bool {
        let free_energy = phase.free_energy(likelihood);
        let before = &report.free_energies;
        self.moves == 0 && phase.rule.settles(before, free_energy, likelihood)
    }

    /// Whether the last search compared every row with all centres, unless its bounds settled it.
    pub(super) fn is_exact(&self, phase: &SetUp<'_, F>) -> bool {
        let k = self.assignment.components();
        let e_step = phase.stages.e_step;
        self.searched && e_step.bounds().is_some_and(|near| near >= k)
    }

    /// Whether moves or transfers are to come: rows to transfer are looked for where the phase `would_end`.
    pub(super) fn is_pending(
        &mut self,
        phase: &SetUp<'_, F>,
        sums: &KeptSums<F>,
        error: f64,
        would_end: bool,
    ) -> bool {
        // With lists of one there are no others to go to.
        if would_end && self.transfers > 0 && self.searched && self.near > 1 {
            let offsets = sums.offsets(phase.centres());
            let candidates = TransferCandidates::of(phase.view(), &self.assignment, &offsets);
            let pays = candidates.gain > phase.rule.tolerance.of(error);
            self.candidates = Some(candidates).filter(|_| pays);
        }
        self.moves > 0 || self.candidates.is_some() || would_end && self.transfers_wait()
    }

    /// Transfers, or a round of split and merge.
    pub(super) fn move_components(
        &mut self,
        phase: &mut SetUp<'_, F>,
        sums: &mut KeptSums<F>,
        report: &mut PhaseReport,
    ) -> Result<()> {
        if self.candidates.is_none() && (self.moves == 0 || !self.searched) {
            return Ok(());
        }
        let mut centres = phase.centres().clone();
        let moved = if let Some(candidates) = self.candidates.take() {
            // Rounds end with one that gained less than the phase would stop for (E50).
            let made = candidates.transfer(phase.view(), sums)?;
            report.count(made.evaluations);
            let over = made.gain <= phase.rule.tolerance.of(phase.squared(sums));
            self.transfers = if over { 0 } else { self.transfers - 1 };
            self.assignment.forget_some(&made.changes);
            self.assignment.apply(&made.changes);
            made.begun
        } else {
            let offsets = sums.offsets(&centres);
            let squared = sums.squared(&centres);
            let assignment = &mut self.assignment;
            let (made, over) =
                phase.split_and_merge(&mut centres, assignment, &offsets, squared, report)?;
            self.moves = if over { 0 } else { self.moves - 1 };
            if made.changes.is_empty() {
                self.exactly = true;
                if !over {
                    // The next round goes by distances too: new lists, and a search of all rows.
                    self.lists = None;
                }
                return Ok(());
            }
            sums.renew(phase.view(), &centres, assignment, &made.stale)?;
            made.stale
        };
        self.exactly = true;
        // Means may be far from where their centres were: the M-step would round as if all of that were left.
        let mut means = centres.clone();
        sums.move_centres(&mut means);
        centres.update_where(&moved, &means);
        sums.renew_where(phase.view(), &centres, &self.assignment, |_| false)?;
        if moved.contains(&true) {
            self.place(phase, centres)?;
        }
        Ok(())
    }

    /// Gives these rows to their components: lists of near centres may not have them.
    pub(super) fn fill(
        &mut self,
        filled: Filled<F>,
        phase: &mut SetUp<'_, F>,
        sums: &mut KeptSums<F>,
    ) -> Result<()> {
        let Filled { centres, rows } = filled;
        let mut labels = self.assignment.labels();
        rows.iter().for_each(|(row, c)| labels[*row] = *c);
        self.assignment = Assignment::of_labels(&labels, centres.len());
        *sums = KeptSums::of(phase.view(), &centres, &self.assignment)?;
        self.exactly = true;
        self.place(phase, centres)
    }

    /// Gives the model other centres. Lists and bounds are stale.
    fn place(&mut self, phase: &mut SetUp<'_, F>, centres: Centres<F>) -> Result<()> {
        (self.lists, self.stale) = (None, true);
        phase.stages.place(centres)
    }
}

/// Neighbour lists of `near` centres, doubled so often, of `most` at most.
fn longer(near: usize, times: usize, most: usize) -> usize {
    let factor = 1usize.checked_shl(times as u32).filter(|_| times < 64);
    near.saturating_mul(factor.unwrap_or(usize::MAX)).min(most)
}
