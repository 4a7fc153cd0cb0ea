//! One pass over the rows of a phase, in fixed shards of fixed blocks: search, normalise, hand on.

use super::supports::Supports;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::parallel::{self, Spare};
use crate::base::rng::Rng;
use crate::data::{Data, RowKind, Rows};
use crate::e_step::Search;
use crate::kernels::soft;
use crate::model::Mixture;
use crate::model::block::{Block, UNSET};
use crate::model::posterior::{self, Likelihood, LogJoint};
use crate::model::search;

/// Most shards of a pass: how far it can spread over threads.
const MOST_SHARDS: usize = 32;

/// Shards of a pass, however many components there are, as long as there are rows for them.
const FEWEST_SHARDS: usize = 8;

/// Further sums of all shards together, at most: 1 GiB.
const MOST_NUMBERS: usize = 1 << 27;

/// Sums of one kind for all shards of sparse rows together, at most, unless these would be fewer than [`FEWEST_SPARSE`]: the rows may
/// take far less memory.
const MOST_SPARSE: usize = 1 << 22;
const FEWEST_SPARSE: usize = 4;

/// Beyond [`FEWEST_SHARDS`], a shard has at least this many rows per component, so that clearing and merging its sums costs
/// little.
const ROWS_PER_SUM: usize = 16;

/// One pass with the model fixed. It knows the number type alone, so it is compiled once for all families.
pub(crate) struct RowPass<'a, F: Float> {
    pub(crate) data: &'a dyn Data<F>,
    pub(crate) model: &'a dyn Mixture<F>,
    /// Without a search the costs of the last supports are computed again.
    pub(crate) search: Option<&'a dyn Search<F>>,
    pub(crate) width: usize,
    pub(crate) log_joint: LogJoint,
    pub(crate) shard_rows: usize,
    /// Whether all blocks are to get bounds on the distances to others.
    pub(crate) wants_bounds: bool,
    pub(crate) stream: &'a (dyn Fn(usize) -> Rng + Sync),
    /// Names of the stages that may be to blame for a wrong block.
    pub(crate) search_name: &'static str,
    pub(crate) family_name: &'static str,
    /// Memory of the passes before: an allocation costs more than the work done in it.
    pub(crate) spare: &'a Spare<(Rows<F>, Block<F>)>,
}

pub(crate) type Sink<'a, F> = &'a (dyn Fn(&Rows<F>, &Block<F>) + Sync);

/// Sums over the rows of a shard, or of all.
#[derive(Default)]
pub(crate) struct PassTotals {
    pub(crate) likelihood: Likelihood,
    pub(crate) evaluations: u64,
}

impl<F: Float> RowPass<'_, F> {
    /// Finds the supports of all rows, and hands each block to the sink, if there is one.
    #[inline(never)]
    pub(crate) fn run(
        &self,
        supports: &mut Supports,
        sink: Option<Sink<'_, F>>,
    ) -> Result<PassTotals> {
        let Self {
            data, model, width, ..
        } = *self;
        let k = model.components();
        let block_rows = search::block_rows(k, data.dim());
        let live = (width < k).then(|| Live::of(model, width)).flatten();
        let parts = supports.rows().into_parts(self.shard_rows);
        let shards = parallel::map_parts(parts, |shard, rows_of_shard| {
            let first = shard * self.shard_rows;
            let mut sums = PassTotals::default();
            let fresh = || (Rows::default(), Block::new(k, width));
            let (mut rows, mut block) = self.spare.take().unwrap_or_else(fresh);
            (block.shard, block.wants_bounds) = (shard, self.wants_bounds);
            for (b, kept) in rows_of_shard.into_parts(block_rows).into_iter().enumerate() {
                let from = first + b * block_rows;
                block.reset(kept.labels.len(), kept.supports);
                if kept.order.is_empty() {
                    let range = from..from + kept.labels.len();
                    data.load(range.clone(), model.frame(), &mut rows)?;
                    block.number(range);
                } else {
                    data.gather(kept.order, model.frame(), &mut rows)?;
                    block.number(kept.order.iter().copied());
                }
                match self.search {
                    None => search::again(model.cost(), self.log_joint.beta, &rows, &mut block),
                    Some(search) => {
                        let mut rng = (self.stream)(from / block_rows);
                        search.search(model, &rows, &mut block, &mut rng);
                        let sound = block.check();
                        sound.map_err(|what| self.fault(&rows, &block, what))?;
                    }
                }
                if let Some(live) = &live {
                    live.lead(model, &rows, &mut block);
                }
                sums.evaluations += block.evaluations();
                let likelihood = posterior::normalise(&rows, &mut block, self.log_joint);
                sums.likelihood.merge(&likelihood);
                posterior::labels(&block, kept.labels);
                kept.supports.copy_from_slice(&block.supports);
                if let Some(sink) = sink {
                    if width > 1 {
                        // No sum needs them (E41).
                        soft::drop_lost(&mut block.responsibilities);
                    }
                    sink(&rows, &block);
                }
            }
            self.spare.give([(rows, block)]);
            Ok(sums)
        });
        let mut totals = PassTotals::default();
        for shard in shards {
            let PassTotals {
                likelihood,
                evaluations,
            } = shard?;
            totals.likelihood.merge(&likelihood);
            totals.evaluations = totals.evaluations.saturating_add(evaluations);
        }
        totals.likelihood.best += data.residual().squared;
        Ok(totals)
    }

    /// The error for a block with a fault, which `what` describes. It blames the family if it gives a row no cost or names a
    /// component that does not exist, and the search otherwise.
    fn fault(&self, rows: &Rows<F>, block: &Block<F>, what: String) -> Error {
        let model = self.model;
        let mut costs = Vec::new();
        let ids: Vec<u32> = (0..model.components() as u32).collect();
        for i in 0..rows.len() {
            model.cost().some(rows, i, &ids, &mut costs);
            if let Some(c) = costs.iter().position(|cost| cost.to_f64().is_nan()) {
                let row = block.row(i);
                let what = format!(
                    "the cost of row {row} under component {c} is NaN: it must be a number"
                );
                return Error::stage(self.family_name, what);
            }
        }
        let stage = match block.foreign() {
            Some((_, c)) if c != UNSET => self.family_name,
            _ => self.search_name,
        };
        Error::stage(stage, what)
    }
}

/// The components of a mixture of which some were discarded. A search that begins at random, or follows neighbors, may come upon
/// no other for a row, whose density would be 0.
struct Live {
    is_live: Vec<bool>,
    /// The components that were not discarded, and others where a support needs more.
    some: Vec<u32>,
}

impl Live {
    /// `None` if none was discarded.
    fn of<F: Float>(model: &dyn Mixture<F>, width: usize) -> Option<Self> {
        let is_live: Vec<bool> = model.proportions().iter().map(|p| *p > 0.0).collect();
        let ids = |live| (0..).zip(&is_live).filter(move |(_, is)| **is == live);
        let mut some: Vec<u32> = ids(true).map(|(c, _)| c).collect();
        let missing = width.saturating_sub(some.len());
        some.extend(ids(false).map(|(c, _)| c).take(missing));
        (is_live.contains(&true) && is_live.contains(&false)).then_some(Self { is_live, some })
    }

    /// Gives rows whose best component was discarded the best of all others (E13).
    fn lead<F: Float>(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>) {
        let mut costs = Vec::new();
        for i in 0..rows.len() {
            if !self.is_live[block.support(i)[0] as usize] {
                model.cost().some(rows, i, &self.some, &mut costs);
                block.set_best(i, &self.some, &costs);
                block.count(self.some.len());
            }
        }
    }
}

/// Rows of a shard: a whole number of blocks.
///
/// Each shard has its own statistics, k x d numbers in `f64`. So a shard has [`ROWS_PER_SUM`] k rows at least, which
/// keeps all statistics below the order of the data. There are a few shards for the threads in any case: first moments
/// are made only for components that a shard meets. With `further` sums, of pairs of coordinates or of the family's own, all shards
/// together have at most [`MOST_NUMBERS`] of them, or there is one shard; and so with sums of all coordinates, where rows have few
/// of very many.
pub(super) fn shard_rows<F: Float>(data: &dyn Data<F>, k: usize, further: usize) -> usize {
    let n = data.len();
    let dim = data.dim();
    let of_all = if data.is_ragged() {
        further.max(k * dim)
    } else {
        further
    };
    let most = match data.kind() {
        RowKind::Sparse => (MOST_SPARSE / (k * dim)).max(FEWEST_SPARSE),
        _ => MOST_SHARDS,
    };
    n.div_ceil(shards(n, k, of_all).min(most))
        .next_multiple_of(search::block_rows(k, dim))
}

pub(crate) fn shards(n: usize, k: usize, further: usize) -> usize {
    let shards = (n / ROWS_PER_SUM / k).clamp(FEWEST_SHARDS, MOST_SHARDS);
    shards.min(MOST_NUMBERS / further.max(1)).max(1)
}
