//! Passes that read all rows: each is searched, shared out and summed up.

use super::outcome;
use super::pass::{RowPass, shard_rows};
use super::stages::Stages;
use super::stop::StopRule;
use super::supports::Supports;
use super::{Found, Pass, SetUp};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel::Spare;
use crate::base::rng::{Purpose, Streams};
use crate::data::{Data, Rows, Scores};
use crate::e_step::PerShard;
use crate::io::{FileFault, Sections, Stream};
use crate::m_step::{MStep, Statistics};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior::{Likelihood, LogJoint};

/// What is the same for every pass of a phase, and what it has found so far.
pub(crate) struct FullPass<'a, F: Float, M: MStep<F>> {
    data: &'a dyn Data<F>,
    stages: Stages<'a, F, M>,
    streams: Streams,
    calibrated: bool,
    /// The first M-steps that keep to a simpler family: none from a model that is known.
    restricted: usize,
    supports: Supports,
    /// Whether all is done that comes before the first pass.
    started: bool,
    /// Searches and M-steps so far.
    searches: usize,
    steps: usize,
    evaluations: u64,
    /// The sums for the next M-step; components without mass, and unobserved coordinates.
    statistics: Option<M::Statistics>,
    zero_mass: usize,
    unobserved: usize,
    /// When components merge: where the free energy would settle. Those of the last two searches.
    rule: StopRule,
    free_energies: [f64; 2],
    merges: Merges,
    /// Told to the phases that follow.
    widened: usize,
    /// Whether the next pass scores the supports there are.
    again: bool,
    /// Memory of the passes before.
    blocks: Spare<(Rows<F>, Block<F>)>,
    spare: Spare<M::Statistics>,
}

/// What a pass does with the blocks of a shard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Searches, for supports and the state of the search alone.
    Search,
    /// Searches and sums up.
    SearchAndSum,
    /// Scores the supports of the last search again and sums up.
    Sum,
}

/// Whether components merge after this search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merges {
    NotYet,
    Now,
    /// They did not the last time, and the free energy has hardly changed since.
    Tried,
}

/// Components merge where changes are below this, also if the tolerance is smaller: rounding decides when a change is 0.
const LEAST_TOLERANCE: f64 = 1e-9;

impl<'a, F: Float, M: MStep<F>> FullPass<'a, F, M> {
    pub(crate) fn new(set_up: SetUp<'a, F, M>) -> Self {
        let SetUp {
            data,
            stages,
            streams,
            labels,
            calibrated,
            widened,
            rule,
            ..
        } = set_up;
        let k = stages.model().components();
        let restricted = match calibrated {
            true => 0,
            false => stages.restricted_steps(),
        };
        let supports = match labels {
            Some(labels) if stages.width == 1 && k > 1 => Supports::of_labels(labels, k),
            _ => Supports::unset(data.len(), stages.width, k),
        };
        Self {
            supports,
            data,
            stages,
            streams,
            calibrated,
            restricted,
            started: false,
            searches: 0,
            steps: 0,
            evaluations: 0,
            statistics: None,
            zero_mass: 0,
            unobserved: 0,
            rule,
            free_energies: [f64::INFINITY; 2],
            merges: Merges::NotYet,
            widened,
            again: false,
            blocks: Spare::default(),
            spare: Spare::default(),
        }
    }

    /// In the middle of a phase, from a checkpoint.
    pub(crate) fn resumed(
        set_up: SetUp<'a, F, M>,
        file: &mut Sections<'_>,
    ) -> std::result::Result<Self, FileFault> {
        let mut pass = Self::new(set_up);
        let (n, k) = (pass.data.len(), pass.stages.model().components());
        let supports = Supports::read("", file, n, k)?;
        if supports.per_row() != pass.supports.per_row() {
            let rule = "must be as wide as the search says";
            return Err(FileFault::content("supports", rule));
        }
        let counts = file.counts::<5>("pass")?;
        // Older files have none: what follows from them is when components merge.
        if file.has("pass free energies") {
            let known = file.numbers("pass free energies", &[3])?;
            pass.free_energies = [known[0], known[1]];
            if known[2] == 1.0 {
                pass.merges = Merges::Tried;
            }
        }
        let flag = |i: usize| counts[i] == 1;
        (pass.supports, pass.started) = (supports, true);
        (pass.searches, pass.steps) = (counts[0] as usize, counts[1] as usize);
        (pass.evaluations, pass.calibrated, pass.again) = (counts[2], flag(3), flag(4));
        Ok(pass)
    }

    /// One pass with the model fixed: its likelihood.
    fn pass(&mut self, mode: Mode, log_joint: LogJoint) -> Result<Likelihood> {
        let mut supports = std::mem::take(&mut self.supports);
        let Self {
            data,
            stages,
            streams,
            searches,
            ..
        } = &*self;
        let (m_step, model) = (stages.m_step, stages.model());
        let searching = mode != Mode::Sum;
        if searching && *searches > 0 && stages.search.by_component() {
            supports.order_by_label(model.components());
        }
        let sums = PerShard::default();
        let accumulate = |rows: &Rows<F>, block: &Block<F>| {
            let make = || {
                self.spare
                    .take()
                    .unwrap_or_else(|| m_step.statistics(model))
            };
            sums.with(block.shard(), make, |sums| {
                m_step.accumulate(rows, block, model, sums);
            });
        };
        let pass = RowPass {
            data: *data,
            model,
            search: searching.then_some(&*stages.search),
            width: stages.width,
            log_joint,
            shard_rows: self.shard_rows(),
            stream: &|block| streams.at(Purpose::Search, *searches, block),
            search_name: stages.search_name(),
            family_name: stages.family_name(),
            spare: &self.blocks,
        };
        let sink = (mode != Mode::Search).then_some(&accumulate as _);
        let found = pass.run(&mut supports, sink);
        self.supports = supports;
        let found = found?;
        self.evaluations = self.evaluations.saturating_add(found.evaluations);
        if searching {
            self.stages.search.end_pass();
            self.searches += 1;
        }
        let mut parts = sums.into_values();
        if !parts.is_empty() {
            let all = self.stages.merge(&mut parts, self.data.residual());
            self.spare.give(parts);
            (self.zero_mass, self.unobserved) = (all.zero_mass(), all.unobserved());
            self.statistics = Some(all);
        }
        Ok(found.likelihood)
    }

    fn shard_rows(&self) -> usize {
        let model = self.stages.model();
        let numbers = self.stages.m_step.statistics_size(model);
        shard_rows(self.data, model.components(), numbers)
    }

    fn log_joint(&self) -> LogJoint {
        self.stages.model().log_joint()
    }
}

impl<'a, F: Float, M: MStep<F>> Pass<'a, F, M> for FullPass<'a, F, M> {
    fn start(&mut self, stopped: bool) -> Result<()> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let evaluations = self.stages.search.evaluations();
        self.evaluations = self.evaluations.saturating_add(evaluations);
        // A model that is known is no start to be made better.
        let warm_up = match stopped || self.calibrated {
            true => 0,
            false => self.stages.search.warm_up(),
        };
        for _ in 0..warm_up {
            // All members of a support have the same responsibility.
            let flat = LogJoint {
                beta: 0.0,
                ..self.log_joint()
            };
            self.pass(Mode::SearchAndSum, flat)?;
            self.step(true)?;
        }
        // The first search knows no variance yet; it starts it (E8).
        let of_search = self.stages.search.initial_searches();
        let mut initial = of_search.max(self.stages.m_step.initial_searches());
        if stopped {
            initial = initial.min(1);
        }
        for _ in 0..initial {
            let found = self.pass(Mode::Search, self.log_joint())?;
            self.calibrate(&found);
        }
        self.again = initial > 0;
        Ok(())
    }

    fn search(&mut self) -> Result<Found> {
        // The searches before the first M-step have found supports already: they are scored under the new variance.
        let mode = match std::mem::take(&mut self.again) {
            true => Mode::Sum,
            false => Mode::SearchAndSum,
        };
        let likelihood = self.pass(mode, self.log_joint())?;
        self.calibrate(&likelihood);
        let restricted = self.steps <= self.restricted;
        let may_merge = !restricted && self.steps < self.rule.max_iterations && self.merges();
        self.merges = match (self.settles(&likelihood), self.merges) {
            (false, _) => Merges::NotYet,
            (true, Merges::NotYet) if may_merge => Merges::Now,
            (true, merges) => merges,
        };
        Ok(Found {
            likelihood,
            pending: restricted || self.merges == Merges::Now,
            zero_mass: self.zero_mass,
            unobserved: self.unobserved,
            widened: self.widened,
        })
    }

    /// Components merge. They split, and rows are transferred, where rows have bounds ([`IncrementalPass`](super::IncrementalPass)).
    ///
    /// The sums are taken once more, with what merges need: in each pass that would take up to half of the time.
    fn move_components(&mut self) -> Result<()> {
        if self.merges != Merges::Now {
            return Ok(());
        }
        let stages = &self.stages;
        let Some(merging) = stages.m_step.merging() else {
            return Ok(());
        };
        let parts = self.data.len().div_ceil(self.shard_rows());
        self.spare = Spare::default();
        self.spare
            .give(merging.statistics_to_merge(stages.model(), parts));
        self.statistics = None;
        self.pass(Mode::SearchAndSum, self.log_joint())?;
        let (sums, model) = (self.statistics.as_mut(), self.stages.model());
        let merged = sums.map_or(0, |sums| merging.merge_components(sums, model));
        self.merges = match merged {
            0 => Merges::Tried,
            _ => Merges::NotYet,
        };
        Ok(())
    }

    fn update(&mut self) -> Result<()> {
        self.step(self.steps < self.restricted)?;
        self.steps += 1;
        Ok(())
    }

    fn stages(&mut self) -> &mut Stages<'a, F, M> {
        &mut self.stages
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn end(self: Box<Self>) -> outcome::Found<M::Model> {
        outcome::Found {
            exact: self.is_exact(),
            model: self.stages.into_model(),
            supports: self.supports,
        }
    }

    fn supports(&self) -> Supports {
        self.supports.clone()
    }

    fn is_exact(&self) -> bool {
        self.stages.search.is_exact()
    }

    /// Between an M-step and a search there are no sums.
    fn save(&self, out: &mut Stream<'_>) {
        self.supports.write("", out);
        let counts = [
            self.searches as u64,
            self.steps as u64,
            self.evaluations,
            u64::from(self.calibrated),
            u64::from(self.again),
        ];
        out.numbers("pass", &counts);
        let tried = f64::from(self.merges == Merges::Tried);
        let [before, last] = self.free_energies;
        out.numbers("pass free energies", &[before, last, tried]);
    }
}

impl<F: Float, M: MStep<F>> FullPass<'_, F, M> {
    /// Whether components merge (E51): those of some families do, with full supports.
    fn merges(&self) -> bool {
        let full = self.stages.width == self.stages.model().components();
        full && self.stages.m_step.merging().is_some()
    }

    /// Starts the variance, if nothing is known of it yet.
    fn calibrate(&mut self, found: &Likelihood) {
        if !self.calibrated {
            self.stages.calibrate(found);
            self.calibrated = true;
        }
    }

    /// Whether the phase would end with this search, if there is nothing to merge, and rounding is left aside.
    fn settles(&mut self, likelihood: &Likelihood) -> bool {
        let model = self.stages.model();
        let free_energy = likelihood.free_energy(model.log_joint()) + model.prior_terms();
        let rule = StopRule {
            tolerance: self.rule.tolerance.max(LEAST_TOLERANCE),
            ..self.rule
        };
        let settled = rule.settles_after(self.free_energies, free_energy, likelihood);
        self.free_energies = [self.free_energies[1], free_energy];
        settled
    }

    fn step(&mut self, restricted: bool) -> Result<()> {
        match self.statistics.take() {
            Some(statistics) => self.stages.update(statistics, restricted),
            None => Ok(()),
        }
    }
}
