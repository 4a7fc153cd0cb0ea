//! Passes whose statistics are fresh: every row is searched, shared out and summed up, in fixed shards of fixed blocks.

use super::joint::{Hidden, Joint};
use super::stop::StopRule;
use super::supports::Supports;
use super::{Found, Pass, SetUp};
use crate::base::cancel;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel::{self, Spare};
use crate::base::rng::{Purpose, Streams};
use crate::data::{Data, Rows, some_scores};
use crate::io::{FileFault, Sections, Stream};
use crate::model::block::{Block, UNSET};
use crate::model::posterior::{self, Likelihood, LogJoint};
use crate::model::search;

/// What is the same for every pass of a phase, and what it has found so far.
pub(crate) struct Fresh<'a, F: Float> {
    data: &'a dyn Data<F>,
    joint: &'a mut dyn Joint<F>,
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
    statistics: Option<Hidden>,
    gaps: (usize, usize),
    /// When components merge: where the free energy would settle. Those of the last two searches.
    rule: StopRule,
    free_energies: [f64; 2],
    merges: Merges,
    /// Told to the phases that follow.
    widened: usize,
    /// Whether the next pass scores the supports there are.
    again: bool,
    /// Memory of the passes before: an allocation costs more than the work done in it.
    blocks: Spare<(Rows<F>, Block<F>)>,
    spare: Spare<Hidden>,
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

/// Sums over the rows of a shard.
struct Shard {
    likelihood: Likelihood,
    evaluations: u64,
    statistics: Option<Hidden>,
}

/// Components merge where changes are below this, also if the tolerance is smaller: rounding decides when a change is 0.
const LEAST_TOLERANCE: f64 = 1e-9;

/// Most shards of a pass: how far it can spread over threads.
const MOST_SHARDS: usize = 32;

/// Shards of a pass, however many components there are, as long as there are rows for them.
const FEWEST_SHARDS: usize = 8;

/// Rows of a shard for every component, beyond that: its sums are zeroed and merged in little of the time its rows take.
const ROWS_PER_SUM: usize = 16;

impl<'a, F: Float> Fresh<'a, F> {
    pub(crate) fn new(set_up: SetUp<'a, F>) -> Self {
        let SetUp {
            data,
            joint,
            streams,
            labels,
            calibrated,
            widened,
            rule,
            ..
        } = set_up;
        let k = joint.model().components();
        let restricted = match calibrated {
            true => 0,
            false => joint.restricted_steps(),
        };
        let supports = match labels {
            Some(labels) if joint.width() == 1 && k > 1 => Supports::of_labels(labels, k),
            _ => Supports::unset(data.len(), joint.width(), k),
        };
        Self {
            supports,
            data,
            joint,
            streams,
            calibrated,
            restricted,
            started: false,
            searches: 0,
            steps: 0,
            evaluations: 0,
            statistics: None,
            gaps: (0, 0),
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
        set_up: SetUp<'a, F>,
        file: &mut Sections<'_>,
    ) -> std::result::Result<Self, FileFault> {
        let mut pass = Self::new(set_up);
        let (n, k) = (pass.data.len(), pass.joint.model().components());
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
        let searches = mode != Mode::Sum;
        if searches && self.searches > 0 && self.joint.search().by_component() {
            let k = self.joint.model().components();
            self.supports.order_by_label(k);
        }
        let mut supports = std::mem::take(&mut self.supports);
        let shards = self.shards(mode, log_joint, &mut supports);
        self.supports = supports;
        let (mut likelihood, mut parts) = (Likelihood::default(), vec![]);
        for shard in shards {
            let shard = shard?;
            likelihood.merge(&shard.likelihood);
            self.evaluations = self.evaluations.saturating_add(shard.evaluations);
            parts.extend(shard.statistics);
        }
        likelihood.best += self.data.residual();
        if searches {
            self.joint.search_mut().end_pass();
            self.searches += 1;
        }
        if !parts.is_empty() {
            let merged = self.joint.merge(&mut parts, self.data.residual());
            self.spare.give(parts);
            self.statistics = Some(merged.statistics);
            self.gaps = (merged.zero_mass, merged.unobserved);
        }
        Ok(likelihood)
    }

    /// Runs the shards; each finds the supports of its blocks in order, normalises them and sums them up.
    fn shards(
        &self,
        mode: Mode,
        log_joint: LogJoint,
        supports: &mut Supports,
    ) -> Vec<Result<Shard>> {
        let Self {
            data,
            streams,
            searches,
            ref blocks,
            ref spare,
            ..
        } = *self;
        let joint = &*self.joint;
        let model = joint.model();
        let k = model.components();
        let (shard_rows, block_rows) = (self.shard_rows(), search::block_rows(k, data.dim()));
        let parts = supports.rows().into_parts(shard_rows);
        parallel::map_parts(parts, |shard, rows_of_shard| {
            let first = shard * shard_rows;
            let mut found = Shard {
                likelihood: Likelihood::default(),
                evaluations: 0,
                statistics: match mode {
                    Mode::Search => None,
                    _ => Some(spare.take().unwrap_or_else(|| joint.statistics())),
                },
            };
            let fresh = || (Rows::default(), Block::new(k, joint.width()));
            let (mut rows, mut block) = blocks.take().unwrap_or_else(fresh);
            block.in_shard(shard);
            for (b, kept) in rows_of_shard.into_parts(block_rows).into_iter().enumerate() {
                cancel::check();
                let from = first + b * block_rows;
                let mut rng = streams.at(Purpose::Search, searches, from / block_rows);
                block.reset(kept.labels.len(), kept.supports);
                if kept.order.is_empty() {
                    let range = from..from + kept.labels.len();
                    data.load(range.clone(), model.frame(), &mut rows);
                    block.number(range);
                } else {
                    data.gather(kept.order, model.frame(), &mut rows);
                    block.number(kept.order.iter().copied());
                }
                if mode == Mode::Sum {
                    search::again(model, log_joint.beta, &rows, &mut block);
                } else {
                    joint.search().search(model, &rows, &mut block, &mut rng);
                    block
                        .check()
                        .map_err(|what| fault(joint, &rows, &block, what))?;
                }
                found.evaluations += block.evaluations();
                let likelihood = posterior::normalise(&rows, &mut block, log_joint);
                found.likelihood.merge(&likelihood);
                posterior::labels(&block, kept.labels);
                kept.supports.copy_from_slice(&block.supports);
                if let Some(statistics) = &mut found.statistics {
                    posterior::drop_lost(&mut block);
                    joint.accumulate(&rows, &block, &mut **statistics);
                }
            }
            blocks.give([(rows, block)]);
            Ok(found)
        })
    }

    fn shard_rows(&self) -> usize {
        let (shape, k) = (
            (self.data.len(), self.data.dim()),
            self.joint.model().components(),
        );
        shard_rows(shape, k, self.joint.statistics_size())
    }

    fn log_joint(&self) -> LogJoint {
        self.joint.model().log_joint()
    }
}

impl<F: Float> Pass<F> for Fresh<'_, F> {
    fn start(&mut self, stopped: bool) -> Result<()> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let evaluations = self.joint.search().evaluations();
        self.evaluations = self.evaluations.saturating_add(evaluations);
        // A model that is known is no start to be made better.
        let warm_up = match stopped || self.calibrated {
            true => 0,
            false => self.joint.search().warm_up(),
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
        let mut initial = self.joint.initial_searches();
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
        let may_merge = !restricted && self.steps < self.rule.max_iterations && self.joint.merges();
        self.merges = match (self.settles(&likelihood), self.merges) {
            (false, _) => Merges::NotYet,
            (true, Merges::NotYet) if may_merge => Merges::Now,
            (true, merges) => merges,
        };
        Ok(Found {
            likelihood,
            pending: restricted || self.merges == Merges::Now,
            zero_mass: self.gaps.0,
            unobserved: self.gaps.1,
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
        let parts = self.data.len().div_ceil(self.shard_rows());
        self.statistics = None;
        self.spare = Spare::default();
        self.spare.give(self.joint.statistics_to_merge(parts));
        self.pass(Mode::SearchAndSum, self.log_joint())?;
        let joint = &*self.joint;
        let merged = self.statistics.as_deref_mut();
        let merged = merged.map_or(0, |sums| joint.merge_components(sums));
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

    fn joint(&mut self) -> &mut dyn Joint<F> {
        self.joint
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn supports(&mut self) -> Supports {
        std::mem::take(&mut self.supports)
    }

    fn copy_of_supports(&self) -> Supports {
        self.supports.clone()
    }

    fn is_exact(&self) -> bool {
        self.joint.search().is_exact()
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

impl<F: Float> Fresh<'_, F> {
    /// Starts the variance, if nothing is known of it yet.
    fn calibrate(&mut self, found: &Likelihood) {
        if !self.calibrated {
            self.joint.calibrate(found);
            self.calibrated = true;
        }
    }

    /// Whether the phase would end with this search, if there is nothing to merge, and rounding is left aside.
    fn settles(&mut self, likelihood: &Likelihood) -> bool {
        let model = self.joint.model();
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
            Some(statistics) => self.joint.update(statistics, restricted),
            None => Ok(()),
        }
    }
}

/// What is wrong with a block: of the family, where it gives a row no score, or names a component that does not exist (what a
/// search names is checked before), and of the search otherwise.
fn fault<F: Float>(joint: &dyn Joint<F>, rows: &Rows<F>, block: &Block<F>, what: String) -> Error {
    let (model, mut scores) = (joint.model(), Vec::new());
    let ids: Vec<u32> = (0..model.components() as u32).collect();
    for i in 0..rows.len() {
        some_scores(model, rows, i, &ids, &mut scores);
        if let Some(c) = scores.iter().position(|score| score.to_f64().is_nan()) {
            let row = block.row(i);
            let what =
                format!("the score of row {row} under component {c} is NaN: it must be a number");
            return Error::stage(joint.family_name(), what);
        }
    }
    // The best of all components as the family says it: it may have no number that a component can have.
    let (mut best, mut best_scores) = (vec![0; rows.len()], vec![F::from_f64(0.0); rows.len()]);
    let found = model.best(rows, &mut best, &mut best_scores);
    if found && let Some(i) = best.iter().position(|c| *c == UNSET) {
        let what = format!("component {UNSET} of row {} does not exist", block.row(i));
        return Error::stage(joint.family_name(), what);
    }
    let stage = match block.foreign() {
        Some((_, c)) if c != UNSET => joint.family_name(),
        _ => joint.search_name(),
    };
    Error::stage(stage, what)
}

/// Rows of a shard: a whole number of blocks.
///
/// Each shard has its own statistics, k x d numbers in `f64`. So a shard has [`ROWS_PER_SUM`] k rows at least, which
/// keeps all statistics below the order of the data. There are a few shards for the threads in any case: first moments
/// are made only for components that a shard meets. Where statistics are larger, of `numbers` numbers, all together have
/// at most 2^27 of them (1 GiB), or there is one shard.
fn shard_rows((n, dim): (usize, usize), k: usize, numbers: usize) -> usize {
    let shards = (n / (ROWS_PER_SUM * k)).clamp(FEWEST_SHARDS, MOST_SHARDS);
    let shards = shards.min((1 << 27) / numbers.max(1)).max(1);
    let size = search::block_rows(k, dim);
    n.div_ceil(shards).next_multiple_of(size)
}
