//! One pass over the rows: fixed shards of fixed blocks, merged in order.

use super::Supports;
use crate::block::Block;
use crate::data::{Data, Rows, Scores};
use crate::e_step::EStep;
use crate::m_step::MStep;
use crate::mixture::Mixture;
use crate::parallel;
use crate::posterior::{self, Likelihood};
use crate::rng::{Stage, Streams};
use crate::search::block_rows;
use std::ops::Range;

/// What is the same for every pass of a phase, and how many there were.
pub(super) struct Pass<'a, D, E, M> {
    pub(super) data: &'a D,
    pub(super) e_step: &'a E,
    pub(super) m_step: &'a M,
    pub(super) streams: Streams,
    pub(super) searches: usize,
}

/// What a pass found. `S` is the statistics, or nothing for a search alone.
pub(super) struct Found<S> {
    pub(super) likelihood: Likelihood,
    pub(super) evaluations: u64,
    pub(super) statistics: S,
}

/// Most shards of a pass: how far it can spread over threads.
const MOST_SHARDS: usize = 32;

impl<D, E, M> Pass<'_, D, E, M>
where
    D: Data,
    M: MStep<D>,
    E: EStep<D, M::Model>,
{
    /// Searches all rows and sums up the statistics of the M-step.
    pub(super) fn search_and_sum(
        &mut self,
        model: &M::Model,
        state: &mut E::State,
        supports: &mut Supports,
        labels: &mut [u32],
    ) -> Found<M::Statistics> {
        let m_step = self.m_step;
        let mut shards = self.run(
            model,
            state,
            (supports, labels),
            || m_step.statistics(model),
            |rows, block, statistics| m_step.accumulate(rows, block, statistics),
        );
        let rest = shards.split_off(1);
        let mut total = shards.swap_remove(0);
        for shard in rest {
            total.likelihood.merge(&shard.likelihood);
            total.evaluations += shard.evaluations;
            m_step.merge(&mut total.statistics, shard.statistics);
        }
        total
    }

    /// Searches all rows, for supports and the state of the search alone.
    pub(super) fn search(
        &mut self,
        model: &M::Model,
        state: &mut E::State,
        supports: &mut Supports,
        labels: &mut [u32],
    ) -> Found<()> {
        let shards = self.run(model, state, (supports, labels), || (), |_, _, ()| ());
        let mut total = Found {
            likelihood: Likelihood::default(),
            evaluations: 0,
            statistics: (),
        };
        for shard in shards {
            total.likelihood.merge(&shard.likelihood);
            total.evaluations += shard.evaluations;
        }
        total
    }

    /// Runs the shards; each searches its blocks in order, normalises them and gives them to `sum`.
    fn run<S: Send>(
        &mut self,
        model: &M::Model,
        state: &mut E::State,
        (supports, labels): (&mut Supports, &mut [u32]),
        start: impl Fn() -> S + Sync,
        sum: impl Fn(&D::Rows, &Block<D::Float>, &mut S) + Sync,
    ) -> Vec<Found<S>> {
        let (n, k) = (self.data.len(), model.components());
        let shard_rows = shard_rows(n, k);
        let parts = supports.parts(n, shard_rows);
        let parts = parts
            .into_iter()
            .zip(labels.chunks_mut(shard_rows))
            .collect();
        let searched: &E::State = state;
        let shards = parallel::map_parts(parts, |shard, (supports, labels)| {
            let start_row = shard * shard_rows;
            let rows = start_row..start_row + labels.len();
            let mut worker = self.e_step.worker(model);
            let mut statistics = start();
            let found = self.shard(
                model,
                searched,
                rows,
                (supports, labels),
                &mut worker,
                &mut |rows, block| sum(rows, block, &mut statistics),
            );
            let (likelihood, evaluations) = found;
            (
                Found {
                    likelihood,
                    evaluations,
                    statistics,
                },
                worker,
            )
        });
        let (found, workers) = shards.into_iter().unzip();
        self.e_step.finish_pass(state, workers);
        self.searches += 1;
        found
    }

    fn shard(
        &self,
        model: &M::Model,
        state: &E::State,
        rows: Range<usize>,
        (supports, labels): (&mut [u32], &mut [u32]),
        worker: &mut E::Worker,
        sum: &mut dyn FnMut(&D::Rows, &Block<D::Float>),
    ) -> (Likelihood, u64) {
        let k = model.components();
        let mut block = Block::new(k, self.e_step.width(k));
        let mut block_of_rows = D::Rows::default();
        let (mut likelihood, mut evaluations) = (Likelihood::default(), 0);
        let size = block_rows(k);
        let per_row = supports.len() / rows.len();
        for start in rows.clone().step_by(size) {
            let range = start..(start + size).min(rows.end);
            let local = range.start - rows.start..range.end - rows.start;
            let supports = &mut supports[local.start * per_row..local.end * per_row];
            let mut rng = self.streams.at(Stage::Search, self.searches, start / size);

            self.data.load(range, model.frame(), &mut block_of_rows);
            block.reset(block_of_rows.len(), supports);
            evaluations +=
                self.e_step
                    .search(state, model, &block_of_rows, &mut rng, &mut block, worker);
            likelihood.merge(&posterior::normalise(
                &block_of_rows,
                &mut block,
                model.log_joint(),
            ));
            posterior::labels(&block, &mut labels[local]);
            sum(&block_of_rows, &block);
            supports.copy_from_slice(&block.supports);
        }
        (likelihood, evaluations)
    }
}

/// Rows of a shard: a whole number of blocks. Each shard has its own statistics (k x d numbers), so there
/// are about n / (2 k) shards at most: their statistics never take more memory than the data.
fn shard_rows(n: usize, k: usize) -> usize {
    let shards = (n / (2 * k)).clamp(1, MOST_SHARDS);
    let size = block_rows(k);
    n.div_ceil(shards).next_multiple_of(size)
}
