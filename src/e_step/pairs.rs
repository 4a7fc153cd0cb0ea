//! Sums over pairs of components that points bring together, in memory that follows from the pairs there are:
//! what neighbor estimates (E14) and similarities (E26) are made of.

use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::model::block::UNSET;

/// Components whose pairs are read together.
pub(super) const COMPONENTS: usize = 64;

/// Values kept before rows are grouped: bounds what is pending.
const PENDING: usize = 1 << 17;

/// Pairs are merged once there are `KEPT` of them, and then whenever their number has doubled. If more are left, each component
/// keeps its [`KEPT_PER_COMPONENT`] best. So a worker holds about twice the larger of `KEPT` and k times [`KEPT_PER_COMPONENT`]
/// pairs, and a merged copy for a moment.
const KEPT: usize = 1 << 18;
const KEPT_PER_COMPONENT: usize = 64;

/// A weighted sum of values from component `from` to component `to`, and the sum of the weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    from: u32,
    pub(super) to: u32,
    pub(super) sum: f64,
    pub(super) weight: f64,
}

/// Weighted sums between components, gathered by one worker. Memory follows from the pairs that occur, never
/// from k^2.
///
/// Rows are kept until there are many, then grouped by their first component: sums over a group need no
/// hashing, only one stamp per component.
#[derive(Debug)]
pub(super) struct PairSums {
    rows: Vec<PendingRow>,
    ids: Vec<u32>,
    values: Vec<f64>,
    pairs: Vec<Pair>,
    run: OneComponent,
    /// Pairs with the lowest rank are kept where there are too many.
    rank: fn(&Pair) -> f64,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct PendingRow {
    from: u32,
    start: u32,
    end: u32,
    weight: f64,
}

impl PairSums {
    /// Nothing yet, between any of `k` components. Where there are too many pairs to keep, those of the lowest
    /// `rank` stay for each component.
    pub(super) fn new(k: usize, rank: fn(&Pair) -> f64) -> Self {
        Self {
            rows: Vec::new(),
            ids: Vec::new(),
            values: Vec::new(),
            pairs: Vec::new(),
            run: OneComponent::new(k),
            rank,
            limit: KEPT,
        }
    }

    /// Adds the values from one component to others, with this weight.
    #[inline]
    pub(super) fn push<F: Float>(&mut self, from: u32, weight: f64, ids: &[u32], values: &[F]) {
        if weight <= 0.0 {
            return;
        }
        let start = self.ids.len() as u32;
        self.ids.extend_from_slice(ids);
        self.values.extend(values.iter().map(|v| v.to_f64()));
        self.rows.push(PendingRow {
            from,
            start,
            end: self.ids.len() as u32,
            weight,
        });
        if self.ids.len() >= PENDING {
            self.group();
        }
    }

    /// As [`push`](Self::push), for rows that mostly come in the order of `from`: consecutive rows of one component are summed up
    /// as they come.
    #[inline(always)]
    pub(super) fn push_in_order<F: Float>(
        &mut self,
        from: u32,
        weight: f64,
        ids: &[u32],
        values: &[F],
    ) {
        if weight <= 0.0 {
            return;
        }
        if self.run.from != from {
            self.end_run();
            self.run.from = from;
        }
        self.run.add(weight, ids, values);
    }

    /// Turns the rows of the last run into pairs.
    fn end_run(&mut self) {
        self.run.end(&mut self.pairs);
        if self.pairs.len() > self.limit {
            self.shrink();
        }
    }

    /// Turns pending rows into pairs.
    fn group(&mut self) {
        self.end_run();
        let order = by_component(self.components(), self.rows.iter().map(|row| row.from)).1;
        let groups =
            order.chunk_by(|&a, &b| self.rows[a as usize].from == self.rows[b as usize].from);
        for group in groups {
            self.run.from = self.rows[group[0] as usize].from;
            for &row in group {
                let row = self.rows[row as usize];
                let places = row.start as usize..row.end as usize;
                let ids = &self.ids[places.clone()];
                let values = &self.values[places];
                self.run.add(row.weight, ids, values);
            }
            self.run.end(&mut self.pairs);
        }
        self.rows.clear();
        self.ids.clear();
        self.values.clear();
        if self.pairs.len() > self.limit {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        let starts = self.merge();
        if self.pairs.len() > KEPT {
            self.forget(&starts);
        }
        self.limit = KEPT.max(2 * self.pairs.len());
    }

    /// Adds up pairs that occur several times; they are in the order of `from` afterwards, where those of
    /// each component start is returned (k + 1).
    fn merge(&mut self) -> Vec<usize> {
        let k = self.components();
        let (starts, order) = by_component(k, self.pairs.iter().map(|pair| pair.from));
        let mut merged = Vec::with_capacity(self.pairs.len());
        let mut merged_starts = vec![0];
        for ends in starts.windows(2) {
            let pairs = order[ends[0]..ends[1]].iter();
            self.run
                .merge(pairs.map(|&i| self.pairs[i as usize]), &mut merged);
            merged_starts.push(merged.len());
        }
        self.pairs = merged;
        merged_starts
    }

    fn components(&self) -> usize {
        self.run.sums.len()
    }

    /// Keeps the pairs of the lowest ranks of each component. There are more only with random supports and many components, and
    /// few of the dropped pairs would ever be used.
    fn forget(&mut self, starts: &[usize]) {
        let rank = self.rank;
        let mut kept = Vec::with_capacity(self.pairs.len());
        for c in 0..self.components() {
            let pairs = &mut self.pairs[starts[c]..starts[c + 1]];
            if pairs.len() > KEPT_PER_COMPONENT {
                pairs.select_nth_unstable_by(KEPT_PER_COMPONENT, |a, b| {
                    rank(a).total_cmp(&rank(b)).then(a.to.cmp(&b.to))
                });
            }
            kept.extend(pairs.iter().take(KEPT_PER_COMPONENT));
        }
        self.pairs = kept;
    }

    fn finish(mut self) -> Grouped {
        self.group();
        Grouped {
            starts: self.merge(),
            pairs: self.pairs,
        }
    }
}

/// Sums of the pairs of one component, by the other component, without clearing k numbers for every component.
#[derive(Debug)]
struct OneComponent {
    from: u32,
    /// (k): sums and weights; a weight of 0 where there is nothing yet.
    sums: Vec<[f64; 2]>,
    /// The components with a sum, and room for one more.
    found: Vec<u32>,
    len: usize,
}

impl OneComponent {
    fn new(k: usize) -> Self {
        Self {
            from: UNSET,
            sums: vec![[0.0; 2]; k],
            found: vec![0; k + 1],
            len: 0,
        }
    }

    /// Adds up pairs of one component where they occur several times.
    fn merge(&mut self, pairs: impl Iterator<Item = Pair>, merged: &mut Vec<Pair>) {
        for pair in pairs {
            self.from = pair.from;
            let [sum, weight] = &mut self.sums[pair.to as usize];
            self.found[self.len] = pair.to;
            self.len += usize::from(*weight == 0.0);
            *sum += pair.sum;
            *weight += pair.weight;
        }
        self.end(merged);
    }

    #[inline(always)]
    fn add<F: Float>(&mut self, weight: f64, ids: &[u32], values: &[F]) {
        // A copy: what is behind a reference would be stored after every component.
        let mut len = self.len;
        let sums = &mut self.sums[..];
        let listed = &mut self.found[..];
        for (&id, value) in ids.iter().zip(values) {
            let [sum, weights] = &mut sums[id as usize];
            // Without branches: written always, counted once.
            listed[len] = id;
            len += usize::from(*weights == 0.0);
            *sum += weight * value.to_f64();
            *weights += weight;
        }
        self.len = len;
    }

    fn end(&mut self, pairs: &mut Vec<Pair>) {
        for &to in &self.found[..self.len] {
            let [sum, weight] = std::mem::take(&mut self.sums[to as usize]);
            let from = self.from;
            pairs.push(Pair {
                from,
                to,
                sum,
                weight,
            });
        }
        self.len = 0;
    }
}

/// Counting sort: where the items of each of `k` components start (k + 1), and the items in order of their
/// component, those of one component in their own order.
fn by_component(k: usize, items: impl Iterator<Item = u32> + Clone) -> (Vec<usize>, Vec<u32>) {
    sort::sorted(k, 0, || items.clone().zip(0..))
}

/// The pairs of one worker, by component.
struct Grouped {
    starts: Vec<usize>,
    pairs: Vec<Pair>,
}

impl Grouped {
    fn reversed(&self) -> Self {
        let k = self.starts.len() - 1;
        let (starts, order) = by_component(k, self.pairs.iter().map(|pair| pair.to));
        let turn = |&i: &u32| {
            let pair = self.pairs[i as usize];
            let from = pair.to;
            let to = pair.from;
            Pair { from, to, ..pair }
        };
        let pairs = order.iter().map(turn).collect();
        Self { starts, pairs }
    }

    fn of(&self, c: usize) -> &[Pair] {
        &self.pairs[self.starts[c]..self.starts[c + 1]]
    }
}

pub(super) struct Gathered {
    pub(super) k: usize,
    workers: Vec<Grouped>,
}

impl From<Vec<PairSums>> for Gathered {
    fn from(workers: Vec<PairSums>) -> Self {
        let k = workers.first().map_or(0, PairSums::components);
        let workers = parallel::map_parts(workers, |_, sums| sums.finish());
        Self { k, workers }
    }
}

impl Gathered {
    /// With every pair the other way round as well: what was added from i to j counts from j to i, too.
    pub(super) fn both_ways(workers: Vec<PairSums>) -> Self {
        let Self { k, mut workers } = Self::from(workers);
        let reversed: Vec<&Grouped> = workers.iter().collect();
        let reversed = parallel::map_parts(reversed, |_, grouped| grouped.reversed());
        workers.extend(reversed);
        Self { k, workers }
    }

    /// A reader, which carries the scratch for one component after the other.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader {
            gathered: self,
            run: OneComponent::new(self.k),
            found: Vec::new(),
        }
    }
}

/// Adds up what the workers gathered, in their order.
pub(super) struct Reader<'a> {
    gathered: &'a Gathered,
    run: OneComponent,
    found: Vec<Pair>,
}

impl Reader<'_> {
    /// All pairs from component `c`, each component once.
    pub(super) fn component(&mut self, c: usize) -> &[Pair] {
        self.found.clear();
        let workers = self.gathered.workers.iter();
        let pairs = workers.flat_map(|worker| worker.of(c));
        self.run.merge(pairs.copied(), &mut self.found);
        &self.found
    }
}
