//! Passes over all rows: each is searched, shared out and summed up. Where only the nearest centre counts, an
//! [incremental](super::incremental) one follows, once bounds would settle most rows.

use super::incremental::IncrementalPass;
use super::kept::{Kept, KeptRows};
use super::pass::{RowPass, shard_rows};
use super::saved::{SavedFull, SavedPass, SavedPhase};
use super::vacant::{self, Filled};
use super::{AnyModel, Ended, Pass, PhaseReport, SearchResult, SetUp, Stages, StopRule, Supports};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel::Spare;
use crate::base::rng::Purpose;
use crate::data::{Centres, RowKind, Rows};
use crate::e_step::bounded::{cells_pay, moves};
use crate::e_step::{Assignment, Bounds, Offset, PerShard, RowsInOrder};
use crate::io::{FileFault, all_counts, rule};
use crate::m_step::Moments;
use crate::model::block::{Block, UNSET};
use crate::model::posterior::{Likelihood, LogJoint};
use std::borrow::Cow;

/// A phase whose passes read all rows.
pub(crate) struct FullPass<'a, F: Float> {
    phase: SetUp<'a, F>,
    /// The first M-steps that keep to a simpler family: none from a model that is known.
    restricted: usize,
    supports: Supports,
    searches: usize,
    /// The sums for the next M-step.
    statistics: Option<Moments>,
    merges: Merges,
    /// Rounds of split and merge that are left, and the rows by component after this search, for the next one.
    moves: usize,
    assignment: Option<Assignment<F>>,
    /// Rows for components without mass, after this search.
    vacant: Option<Filled<F>>,
    /// Whether the next pass computes the costs of the supports there are.
    again: bool,
    /// Bounds of some rows of each shard after this search, where it finds them; of all, if they were wanted.
    probes: Vec<Vec<Bounds<F>>>,
    wanted: bool,
    /// Bounds of all rows, in place of supports, and their sums: for the next pass.
    kept: Option<Kept<F>>,
    /// Memory of the passes before.
    blocks: Spare<(Rows<F>, Block<F>)>,
    spare: Spare<Moments>,
    /// Second moments that do not depend on responsibilities, once they are known, and the weight of their rows.
    scatter: Option<(Vec<f64>, f64)>,
}

/// The work of a pass on the blocks of a shard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Searches, for supports and the state of the search alone.
    Search,
    SearchAndSum,
    /// Computes the costs of the supports of the last search again and sums up.
    Sum,
}

/// Whether components merge after this search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merges {
    NotYet,
    Now,
    /// A merge was tried without success, and the free energy has hardly changed since.
    Tried,
}

/// Bounds are kept from this number of products in an iteration on: fewer products take no longer than the rest of an iteration.
const PRODUCTS: f64 = (1 << 22) as f64;

impl<'a, F: Float> FullPass<'a, F> {
    /// Does all that comes before the first pass: initial searches, and the variance they start (E8); little of it if the
    /// fit is `stopped`.
    pub(crate) fn new(
        phase: SetUp<'a, F>,
        stopped: bool,
        report: &mut PhaseReport,
    ) -> Result<Self> {
        let mut pass = Self::before(phase);
        let search = &pass.phase.stages.search;
        report.count(search.evaluations());
        // A model that is known is no start to be made better.
        let initial = if stopped || pass.phase.calibrated {
            0
        } else {
            search.initial_searches()
        };
        for _ in 0..initial {
            pass.run(Mode::Search, pass.phase.model().log_joint(), report)?;
        }
        // The first search knows no variance yet; it starts it. Where responsibilities do not depend on it, that is the search
        // before the first M-step.
        let stages = &pass.phase.stages;
        pass.again =
            stages.width > 1 || stages.model.fitted().needs().searches_first || pass.completes();
        if pass.again {
            let likelihood = pass.run(Mode::Search, pass.phase.model().log_joint(), report)?;
            pass.phase.calibrate(&likelihood);
        }
        Ok(pass)
    }

    /// In the middle of a phase, from a checkpoint.
    pub(crate) fn resumed(
        phase: SetUp<'a, F>,
        saved: SavedFull<'_>,
    ) -> std::result::Result<Self, FileFault> {
        let mut pass = Self::before(phase);
        let n = pass.phase.data.len();
        let k = pass.phase.model().components();
        let supports = saved.supports.into_owned();
        supports.check(n, k)?;
        let as_wide = supports.per_row == pass.supports.per_row;
        rule(as_wide, "supports", "must be as wide as the search says")?;
        let known = !saved.again || !supports.supports.contains(&UNSET);
        let say = "must be known where their costs are computed again";
        rule(known, "supports", say)?;
        all_counts("pass", &[saved.searches as u64])?;
        if saved.tried {
            pass.merges = Merges::Tried;
        }
        (pass.supports, pass.searches) = (supports, saved.searches);
        pass.moves = saved.moves.min(pass.moves);
        pass.wanted = saved.wanted;
        (pass.phase.calibrated, pass.again) = (saved.calibrated, saved.again);
        Ok(pass)
    }

    fn before(mut phase: SetUp<'a, F>) -> Self {
        let k = phase.model().components();
        let width = phase.stages.width;
        let supports = match phase.labels.take() {
            Some(labels) if width == 1 && k > 1 => Supports::of_labels(labels, k),
            _ => Supports::unset(phase.data.len(), width, k),
        };
        let restricted = if phase.calibrated {
            0
        } else {
            phase.stages.restricted_steps()
        };
        let stages = &phase.stages;
        let moves = match stages.e_step.bounds() {
            Some(_) if stages.has_free_centres() => phase.moves,
            _ => 0,
        };
        Self {
            phase,
            restricted,
            supports,
            searches: 0,
            statistics: None,
            merges: Merges::NotYet,
            moves,
            assignment: None,
            vacant: None,
            again: false,
            probes: Vec::new(),
            wanted: false,
            kept: None,
            blocks: Spare::default(),
            spare: Spare::default(),
            scatter: None,
        }
    }

    /// One pass with the model fixed: its likelihood.
    fn run(
        &mut self,
        mode: Mode,
        log_joint: LogJoint,
        report: &mut PhaseReport,
    ) -> Result<Likelihood> {
        let SetUp {
            data,
            stages,
            streams,
            ..
        } = &self.phase;
        let model = &*stages.model;
        let fitted = stages.model.fitted();
        let searches = self.searches;
        let further = fitted.statistics().further();
        let searching = mode != Mode::Sum;
        if searching && searches > 0 && stages.search.by_component() {
            self.supports.order_by_label(model.components());
        }
        let sums = PerShard::default();
        let spare = &self.spare;
        let known = self.scatter.is_some();
        let probes = PerShard::default();
        let dim = data.dim();
        let wanted = self.wanted;
        let shard_rows = shard_rows(*data, model.components(), further);
        let accumulate = |rows: &Rows<F>, block: &Block<F>| {
            if !block.others.is_empty() {
                let squared = block.costs.iter().zip(&block.others);
                let bounds = block
                    .supports
                    .iter()
                    .zip(squared)
                    .map(|(c, (nearest, others))| Bounds::found(*c, *nearest, *others, dim));
                let room = || Vec::with_capacity(if wanted { shard_rows } else { 0 });
                probes.with(block.shard(), room, |probes| probes.extend(bounds));
            }
            let make = || {
                let mut sums = spare.take().unwrap_or_else(|| fitted.statistics());
                sums.know_scatter(known);
                sums
            };
            sums.with(block.shard(), make, |sums| {
                fitted.accumulate(rows, block, sums);
            });
        };
        let pass = RowPass {
            data: *data,
            model,
            search: searching.then_some(&*stages.search),
            width: stages.width,
            log_joint,
            shard_rows,
            wants_bounds: wanted,
            stream: &|block| streams.at(Purpose::Search, searches, block),
            search_name: stages.e_step.name(),
            family_name: fitted.name(),
            spare: &self.blocks,
        };
        let sink = (mode != Mode::Search).then_some(&accumulate as _);
        let totals = pass.run(&mut self.supports, sink)?;
        report.count(totals.evaluations);
        self.probes = probes.into_values();
        let mut parts = sums.into_values();
        if !parts.is_empty() {
            let mut moments = Moments::merge(parts.iter_mut());
            if !self.phase.stages.search.by_component() {
                moments.keep_scatter(&mut self.scatter);
            }
            moments.add_total(data.residual().squared, 0.0);
            moments.settle(model.centres());
            self.spare.give(parts);
            (report.zero_mass, report.unobserved) = (moments.zero_mass(), moments.unobserved());
            report.at_floor = moments.with_enough_rows(&model.at_floor());
            self.statistics = Some(moments);
        }
        if searching {
            self.phase.stages.search.end_pass();
            self.searches += 1;
        }
        Ok(totals.likelihood)
    }

    /// Decides whether to merge components after this search: only when the phase would otherwise end, and only if all
    /// components share every row (E51).
    fn merges(&self, search: &SearchResult, report: &PhaseReport) -> Merges {
        let rule = StopRule {
            tolerance: self.phase.rule.tolerance.of_merges(),
            ..self.phase.rule
        };
        let full = self.phase.stages.width == self.phase.model().components();
        let possible = full && self.phase.stages.model.fitted().merges();
        let more = report.steps() < rule.max_iterations;
        match self.merges {
            _ if !rule.settles(
                &report.free_energies,
                search.free_energy,
                &search.likelihood,
            ) =>
            {
                Merges::NotYet
            }
            Merges::NotYet if possible && more && !search.pending => Merges::Now,
            merges => merges,
        }
    }

    /// Rows for the components without mass (E54). A search over all components shows at once that no row is near to them; another
    /// one may not have come upon them yet, so there it waits until the phase would end, and rows must have one component each.
    fn vacant(&self, search: &SearchResult, report: &mut PhaseReport) -> Result<Option<Filled<F>>> {
        let stages = &self.phase.stages;
        let rule = &self.phase.rule;
        let settles = || {
            rule.settles(
                &report.free_energies,
                search.free_energy,
                &search.likelihood,
            )
        };
        let in_time = stages.search.compares_all() || stages.width == 1 && settles();
        let more = report.zero_mass > 0 && self.moves == 0 && report.steps() < rule.max_iterations;
        let sums = self.statistics.as_ref();
        let Some(sums) = sums.filter(|_| more && in_time && stages.has_free_centres()) else {
            return Ok(None);
        };
        let view = self.phase.view();
        report.count(view.len() as u64);
        let mass = |c| sums.mass(c);
        let to_means = |centres: &mut Centres<F>| sums.move_centres(centres, |_, _, _| ());
        let (labels, order) = self.supports.places();
        vacant::fill(view, self.phase.centres(), &mass, &to_means, labels, order)
    }

    /// Wants bounds of all rows from the next search if they would settle at least half of the rows after two such moves as the
    /// next, as far as those that have some tell: settled rows come nearer to their bounds in each search. Then they are kept, or
    /// without them if cells rule out most centres.
    fn keep_bounds(&mut self, report: &mut PhaseReport) -> Result<()> {
        let view = self.phase.view();
        let centres = self.phase.centres();
        let n = view.len();
        let k = centres.len();
        let mut probes = std::mem::take(&mut self.probes);
        let products = n as f64 * k as f64 * centres.dim() as f64;
        let may = !probes.is_empty() && products >= PRODUCTS && report.steps() > self.restricted;
        let may = may && self.phase.is_nearest();
        let Some(sums) = self.statistics.as_ref().filter(|_| may) else {
            return Ok(());
        };
        // Where the centres lie to each other changes little.
        let mut in_cells = false;
        if self.wanted || report.steps() == self.restricted + 1 {
            let (pay, spent) = cells_pay(view, centres)?;
            report.count(spent);
            in_cells = pay;
        }
        if !self.wanted && !in_cells {
            let mut means = centres.clone();
            sums.move_centres(&mut means, |_, _, _| ());
            let (moved, spent) = moves(centres, &means, n);
            report.count(spent);
            let open = |row: &mut Bounds<F>| {
                let first = row.follow(&moved);
                usize::from(first || row.follow(&moved))
            };
            let seen: usize = probes.iter().map(Vec::len).sum();
            let open: usize = probes.iter_mut().flatten().map(open).sum();
            self.wanted = 2 * open <= seen;
            return Ok(());
        }
        let labels = std::mem::take(&mut self.supports).into_labels();
        let shard_rows = shard_rows(view.data, k, 0);
        if probes.iter().map(Vec::len).sum::<usize>() < n {
            let unknown = |labels: &[u32]| labels.iter().copied().map(Bounds::unknown).collect();
            probes = labels.chunks(shard_rows).map(unknown).collect();
        }
        drop(labels);
        let rows = RowsInOrder::of(probes, in_cells);
        let sums = rows.sums(view, centres)?;
        // The free energy once more, rounded as those that follow: where nothing changes from now on, it does not.
        if let Some(last) = report.free_energies.last_mut() {
            let likelihood = self.phase.likelihood(self.phase.squared(&sums));
            *last = self.phase.free_energy(&likelihood);
        }
        self.kept = Some(Kept::new(KeptRows::InOrder(rows), sums));
        Ok(())
    }

    /// A round of split and merge. The sums are taken once more, for the components that rows have after it.
    fn split_and_merge(
        &mut self,
        mut assignment: Assignment<F>,
        report: &mut PhaseReport,
    ) -> Result<()> {
        let phase = &self.phase;
        let mut centres = self.phase.centres().clone();
        let Some(sums) = &self.statistics else {
            return Ok(());
        };
        let offset = |c| Offset {
            mass: sums.mass(c),
            distance: sums.offset(c),
        };
        let offsets: Vec<Offset> = (0..centres.len()).map(offset).collect();
        let squared = assignment.squared(phase.view());
        let (made, over) =
            phase.split_and_merge(&mut centres, &mut assignment, &offsets, squared, report)?;
        self.moves = if over { 0 } else { self.moves - 1 };
        if made.changes.is_empty() {
            return Ok(());
        }
        self.supports = Supports::of_labels(assignment.labels(), centres.len());
        self.phase.stages.place(centres)?;
        self.run(Mode::Sum, self.phase.model().log_joint(), report)?;
        Ok(())
    }

    /// Whether sums may have values that the model expects of rows that lack them.
    fn completes(&self) -> bool {
        let SetUp { data, stages, .. } = &self.phase;
        let sums = stages.model.fitted().statistics();
        data.kind() == RowKind::Partial && sums.further() > 0
    }

    fn step(&mut self, restricted: bool) -> Result<()> {
        match self.statistics.take() {
            Some(statistics) => {
                let cancel = self.phase.data.cancel();
                self.phase.stages.update(statistics, restricted, cancel)
            }
            None => Ok(()),
        }
    }
}

impl<'a, F: Float> Pass<'a, F> for FullPass<'a, F> {
    fn search(&mut self, report: &mut PhaseReport) -> Result<SearchResult> {
        // The searches before the first M-step have found supports already: their costs are computed under the new variance.
        let again = std::mem::take(&mut self.again);
        if self.moves > 0 {
            // Moves go by the second nearest centres as well.
            let view = self.phase.view();
            let centres = self.phase.centres();
            let (assignment, evaluations, _) = Assignment::exhaustive(view, centres)?;
            report.count(evaluations);
            self.supports = Supports::of_labels(assignment.labels(), centres.len());
            self.assignment = Some(assignment);
        }
        let mode = if again || self.assignment.is_some() {
            Mode::Sum
        } else {
            Mode::SearchAndSum
        };
        let likelihood = self.run(mode, self.phase.model().log_joint(), report)?;
        self.phase.calibrate(&likelihood);
        let mut search = SearchResult {
            likelihood,
            free_energy: self.phase.free_energy(&likelihood),
            pending: report.steps() <= self.restricted || self.moves > 0,
        };
        self.merges = self.merges(&search, report);
        self.vacant = self.vacant(&search, report)?;
        search.pending |= self.merges == Merges::Now || self.vacant.is_some();
        Ok(search)
    }

    /// Components merge, or split and merge. Rows are transferred where they have bounds ([`IncrementalPass`](super::IncrementalPass)).
    ///
    /// The sums are taken once more, with what merges need: in each pass that would take up to half of the time.
    fn move_components(&mut self, report: &mut PhaseReport) -> Result<()> {
        if let Some(Filled { centres, rows }) = self.vacant.take() {
            // The sums say nothing of these components: the M-step leaves them there, and the next search finds them.
            self.supports.give(&rows);
            return self.phase.stages.place(centres);
        }
        if let Some(assignment) = self.assignment.take() {
            return self.split_and_merge(assignment, report);
        }
        self.keep_bounds(report)?;
        if self.merges != Merges::Now {
            return Ok(());
        }
        self.phase.stages.model.fitted_mut().prepare_merges();
        // The statistics of merges have more sums than others, so their memory is not reused.
        self.spare = Spare::default();
        self.statistics = None;
        self.run(Mode::SearchAndSum, self.phase.model().log_joint(), report)?;
        self.spare = Spare::default();
        let fitted = self.phase.stages.model.fitted();
        let cancel = self.phase.data.cancel();
        let sums = self.statistics.as_mut();
        let merged = sums.map_or(Ok(0), |sums| fitted.merge(sums, cancel))?;
        self.merges = match merged {
            0 => Merges::Tried,
            _ => Merges::NotYet,
        };
        Ok(())
    }

    fn update(&mut self, report: &PhaseReport) -> Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.before = Some(self.phase.centres().clone());
        }
        self.step(report.iterations < self.restricted)
    }

    fn stages(&mut self) -> &mut Stages<'a, F> {
        &mut self.phase.stages
    }

    fn found(&mut self, end: bool) -> Ended<F> {
        let exact = self.phase.stages.search.is_exact();
        if end {
            // They may take as much memory as the copy of the model.
            self.statistics = None;
        }
        let supports = if end {
            std::mem::take(&mut self.supports)
        } else {
            self.supports.clone()
        };
        self.phase.ended(supports, exact)
    }

    /// Between an M-step and a search there are no sums.
    fn save<'b>(&'b self, report: &'b PhaseReport) -> Option<SavedPhase<'b, F, AnyModel<F>>> {
        let pass = SavedFull {
            supports: Cow::Borrowed(&self.supports),
            wanted: self.wanted,
            searches: self.searches,
            moves: self.moves,
            calibrated: self.phase.calibrated,
            again: self.again,
            tried: self.merges == Merges::Tried,
        };
        SavedPhase::of(&self.phase.stages, report, SavedPass::Full(pass))
    }

    fn next(mut self: Box<Self>) -> Box<dyn Pass<'a, F> + 'a> {
        match self.kept.take() {
            Some(kept) => Box::new(IncrementalPass::of(self.phase, kept)),
            None => self,
        }
    }
}
