//! One pass over the rows: fixed shards of fixed blocks, merged in order.

use super::kept::Kept;
use crate::block::Block;
use crate::data::{Data, Rows, Scores};
use crate::e_step::EStep;
use crate::m_step::MStep;
use crate::mixture::Mixture;
use crate::parallel::{self, Spare};
use crate::posterior::{self, Likelihood, LogJoint};
use crate::rng::{Rng, Stage, Streams};
use crate::search;

/// What is the same for every pass of a phase, and how many there were.
pub(super) struct Pass<'a, D: Data, E, M: MStep<D>> {
    data: &'a D,
    e_step: &'a E,
    m_step: &'a M,
    streams: Streams,
    searches: usize,
    /// Memory of the passes before: fresh memory costs more than what is done with it.
    blocks: Spare<(D::Rows, Block<D::Float>)>,
    statistics: Spare<M::Statistics>,
}

/// What a pass found. `S` is the statistics, or nothing for a search alone.
pub(super) struct Found<S> {
    pub(super) likelihood: Likelihood,
    pub(super) evaluations: u64,
    pub(super) statistics: S,
}

/// Most shards of a pass: how far it can spread over threads.
const MOST_SHARDS: usize = 32;

/// Shards of a pass, however many components there are, as long as there are rows for them.
const FEWEST_SHARDS: usize = 8;

/// Rows of a shard for every component, beyond that: its sums are zeroed and merged in little of the time its rows take.
const ROWS_PER_SUM: usize = 16;

impl<'a, D, E, M> Pass<'a, D, E, M>
where
    D: Data,
    M: MStep<D>,
    E: EStep<D, M::Model>,
{
    pub(super) fn new(data: &'a D, e_step: &'a E, m_step: &'a M, streams: Streams) -> Self {
        Self {
            data,
            e_step,
            m_step,
            streams,
            searches: 0,
            blocks: Spare::default(),
            statistics: Spare::default(),
        }
    }

    /// Sums over no rows.
    fn no_rows(&self, model: &M::Model) -> M::Statistics {
        let spare = self.statistics.take();
        spare.unwrap_or_else(|| self.m_step.statistics(model))
    }

    /// Searches all rows and sums up the statistics of the M-step.
    pub(super) fn search_and_sum(
        &mut self,
        model: &M::Model,
        state: &mut E::State,
        kept: &mut Kept,
    ) -> Found<M::Statistics> {
        self.search_and_share(model, model.log_joint(), state, kept)
    }

    /// The same with equal responsibilities within each support.
    pub(super) fn search_and_share_evenly(
        &mut self,
        model: &M::Model,
        state: &mut E::State,
        kept: &mut Kept,
    ) -> Found<M::Statistics> {
        let flat = LogJoint {
            beta: 0.0,
            ..model.log_joint()
        };
        self.search_and_share(model, flat, state, kept)
    }

    fn search_and_share(
        &mut self,
        model: &M::Model,
        log_joint: LogJoint,
        state: &mut E::State,
        kept: &mut Kept,
    ) -> Found<M::Statistics> {
        self.prepare(kept, model.components());
        let (found, workers) = {
            let state = &*state;
            self.run(
                model,
                log_joint,
                kept,
                |rows, rng, block, worker| {
                    self.e_step.search(state, model, rows, rng, block, worker)
                },
                || self.no_rows(model),
                |rows, block, statistics| self.m_step.accumulate(rows, block, model, statistics),
            )
        };
        self.finish_search(state, workers);
        self.merge(found)
    }

    /// Searches all rows, for supports and the state of the search alone.
    pub(super) fn search(
        &mut self,
        model: &M::Model,
        state: &mut E::State,
        kept: &mut Kept,
    ) -> Found<()> {
        self.prepare(kept, model.components());
        let (found, workers) = {
            let state = &*state;
            self.run(
                model,
                model.log_joint(),
                kept,
                |rows, rng, block, worker| {
                    self.e_step.search(state, model, rows, rng, block, worker)
                },
                || (),
                |_, _, ()| (),
            )
        };
        self.finish_search(state, workers);
        total(&found)
    }

    /// Scores the supports of the last search again and sums up the statistics of the M-step.
    pub(super) fn sum(&self, model: &M::Model, kept: &mut Kept) -> Found<M::Statistics> {
        let (found, _) = self.run(
            model,
            model.log_joint(),
            kept,
            |rows, _, block, _| search::again(model, model.log_joint().beta, rows, block),
            || self.no_rows(model),
            |rows, block, statistics| self.m_step.accumulate(rows, block, model, statistics),
        );
        self.merge(found)
    }

    /// Puts rows in the order that suits the search; nothing is known of them before the first one.
    fn prepare(&self, kept: &mut Kept, k: usize) {
        if self.searches > 0 && self.e_step.by_component(k) {
            kept.order_by_label(k);
        }
    }

    fn finish_search(&mut self, state: &mut E::State, workers: Vec<E::Worker>) {
        self.e_step.finish_pass(state, workers);
        self.searches += 1;
    }

    /// The sums of all shards, in order.
    fn merge(&self, found: Vec<Found<M::Statistics>>) -> Found<M::Statistics> {
        let Found {
            likelihood,
            evaluations,
            statistics: (),
        } = total(&found);
        let mut parts = found.into_iter().map(|shard| shard.statistics).collect();
        let statistics = self.m_step.merge(&mut parts);
        self.statistics.give(parts);
        Found {
            likelihood,
            evaluations,
            statistics,
        }
    }

    /// Runs the shards; each finds the supports of its blocks in order, normalises them and sums them up.
    fn run<S: Send>(
        &self,
        model: &M::Model,
        log_joint: LogJoint,
        kept: &mut Kept,
        find: impl Fn(&D::Rows, &mut Rng, &mut Block<D::Float>, &mut E::Worker) -> u64 + Sync,
        start: impl Fn() -> S + Sync,
        sum: impl Fn(&D::Rows, &Block<D::Float>, &mut S) + Sync,
    ) -> (Vec<Found<S>>, Vec<E::Worker>) {
        let (n, k) = (self.data.len(), model.components());
        let size = self.m_step.statistics_size(model);
        let (shard_rows, block_rows) = (shard_rows(n, k, size), search::block_rows(k));
        let shards = parallel::map_parts(kept.rows().into_parts(shard_rows), |shard, kept| {
            let first = shard * shard_rows;
            let mut worker = self.e_step.worker(model);
            let fresh = || (D::Rows::default(), Block::new(k, self.e_step.width(k)));
            let (mut rows, mut block) = self.blocks.take().unwrap_or_else(fresh);
            let (likelihood, evaluations) = (Likelihood::default(), 0);
            let mut found = Found {
                likelihood,
                evaluations,
                statistics: start(),
            };
            for (b, kept) in kept.into_parts(block_rows).into_iter().enumerate() {
                let from = first + b * block_rows;
                let mut rng = self
                    .streams
                    .at(Stage::Search, self.searches, from / block_rows);
                if kept.order.is_empty() {
                    let range = from..from + kept.labels.len();
                    self.data.load(range, model.frame(), &mut rows);
                } else {
                    self.data.gather(kept.order, model.frame(), &mut rows);
                }
                block.reset(rows.len(), kept.supports);
                found.evaluations += find(&rows, &mut rng, &mut block, &mut worker);
                let likelihood = posterior::normalise(&rows, &mut block, log_joint);
                found.likelihood.merge(&likelihood);
                posterior::labels(&block, kept.labels);
                kept.supports.copy_from_slice(&block.supports);
                sum(&rows, &block, &mut found.statistics);
            }
            self.blocks.give([(rows, block)]);
            (found, worker)
        });
        shards.into_iter().unzip()
    }
}

/// Likelihood and evaluations of all shards, in order.
fn total<S>(found: &[Found<S>]) -> Found<()> {
    let (likelihood, evaluations) = (Likelihood::default(), 0);
    let mut total = Found {
        likelihood,
        evaluations,
        statistics: (),
    };
    for shard in found {
        total.likelihood.merge(&shard.likelihood);
        total.evaluations += shard.evaluations;
    }
    total
}

/// Rows of a shard: a whole number of blocks. Each shard has its own statistics (k x d numbers in `f64`), so
/// a shard has [`ROWS_PER_SUM`] k rows at least, which keeps them below the order of the data, but there are a few for the threads in any case
/// (first moments are made for components that the shard meets).
/// Where statistics are larger, of `numbers` numbers, all together have at most 2^27 of them (1 GiB), or there is one shard.
fn shard_rows(n: usize, k: usize, numbers: usize) -> usize {
    let shards = (n / (ROWS_PER_SUM * k)).clamp(FEWEST_SHARDS, MOST_SHARDS);
    let shards = shards.min((1 << 27) / numbers.max(1)).max(1);
    let size = search::block_rows(k);
    n.div_ceil(shards).next_multiple_of(size)
}
