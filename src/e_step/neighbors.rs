//! Which components are near each other, as seen by the points (E14).

use crate::block::UNSET;
use crate::float::Float;
use crate::parallel;

/// The neighbors G_c of every component: `c` itself first, then the others by increasing mean score; places
/// that nothing fills are unset. (k, G) numbers.
#[derive(Clone, Debug)]
pub struct Neighbors {
    size: usize,
    lists: Vec<u32>,
}

impl Neighbors {
    /// Lists of `size` for `k` components, filled by `fill` (which gets c and its empty list).
    pub(super) fn new(k: usize, size: usize, mut fill: impl FnMut(usize, &mut [u32])) -> Self {
        let mut lists = vec![UNSET; k * size];
        for (c, list) in lists.chunks_exact_mut(size).enumerate() {
            fill(c, list);
        }
        Self { size, lists }
    }

    /// The neighbors of `c`, itself first.
    #[inline(always)]
    pub(super) fn of(&self, c: u32) -> &[u32] {
        let start = c as usize * self.size;
        &self.lists[start..start + self.size]
    }

    /// New lists from the mean scores between components. A component that no point is nearest to keeps
    /// its list.
    pub(super) fn renew(&mut self, gathered: &[Grouped]) {
        let k = self.lists.len() / self.size;
        let size = self.size;
        parallel::map_chunks(&mut self.lists, size * COMPONENTS, |_, range, lists| {
            let mut stamps = Stamps::new(k);
            let mut found = Vec::new();
            for (c, list) in (range.start / size..).zip(lists.chunks_exact_mut(size)) {
                stamps.restart();
                found.clear();
                for pair in gathered.iter().flat_map(|worker| worker.of(c)) {
                    stamps.add(*pair, 0, &mut found);
                }
                if found.is_empty() {
                    continue;
                }
                let mut means: Vec<(f64, u32)> = found
                    .iter()
                    .filter(|pair| pair.to as usize != c)
                    .map(|pair| (pair.sum / pair.weight, pair.to))
                    .collect();
                let nearer =
                    |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
                if means.len() > size {
                    means.select_nth_unstable_by(size, nearer);
                    means.truncate(size);
                }
                means.sort_unstable_by(nearer);
                list.fill(UNSET);
                list[0] = c as u32;
                for (place, (_, to)) in list[1..].iter_mut().zip(means) {
                    *place = to;
                }
            }
        });
    }
}

/// Components renewed together.
const COMPONENTS: usize = 64;

/// Scored components kept before rows are grouped: bounds what is pending.
const PENDING: usize = 1 << 17;

/// Pairs kept before they are merged, and per component once they are more than that even so: bounds the
/// memory of a worker to the larger of [`KEPT`] and k times [`KEPT_PER_COMPONENT`] pairs, twice while merging.
const KEPT: usize = 1 << 18;
const KEPT_PER_COMPONENT: usize = 64;

/// Sum of w_n times the score of component `to` over points whose best component is `from`.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: u32,
    to: u32,
    sum: f64,
    weight: f64,
}

/// Weighted sums of scores between components, gathered by one worker.
///
/// Rows are kept until there are many, then grouped by their best component: sums over a group need no
/// hashing, only one stamp per component.
#[derive(Debug)]
pub(super) struct PairSums {
    rows: Vec<PendingRow>,
    ids: Vec<u32>,
    scores: Vec<f64>,
    pairs: Vec<Pair>,
    limit: usize,
    stamps: Stamps,
}

#[derive(Clone, Copy, Debug)]
struct PendingRow {
    best: u32,
    start: u32,
    end: u32,
    weight: f64,
}

impl PairSums {
    pub(super) fn new(k: usize) -> Self {
        let (rows, pairs) = Default::default();
        let (ids, scores) = (
            Vec::with_capacity(PENDING + 64),
            Vec::with_capacity(PENDING + 64),
        );
        Self {
            rows,
            ids,
            scores,
            pairs,
            limit: KEPT,
            stamps: Stamps::new(k),
        }
    }

    /// A point of this weight, its best component, and all components it was scored under.
    #[inline]
    pub(super) fn add<F: Float>(&mut self, best: u32, weight: f64, ids: &[u32], scores: &[F]) {
        if weight <= 0.0 {
            return;
        }
        let start = self.ids.len() as u32;
        self.ids.extend_from_slice(ids);
        self.scores.extend(scores.iter().map(|s| s.to_f64()));
        self.rows.push(PendingRow {
            best,
            start,
            end: self.ids.len() as u32,
            weight,
        });
        if self.ids.len() >= PENDING {
            self.group();
        }
    }

    /// Turns pending rows into pairs.
    fn group(&mut self) {
        let order = by_component(self.stamps.len(), self.rows.iter().map(|row| row.best)).1;
        let groups =
            order.chunk_by(|&a, &b| self.rows[a as usize].best == self.rows[b as usize].best);
        for group in groups {
            let from = self.rows[group[0] as usize].best;
            self.stamps.restart();
            let first = self.pairs.len();
            for &row in group {
                let row = self.rows[row as usize];
                for i in row.start as usize..row.end as usize {
                    let sum = row.weight * self.scores[i];
                    let pair = Pair {
                        from,
                        to: self.ids[i],
                        sum,
                        weight: row.weight,
                    };
                    self.stamps.add(pair, first, &mut self.pairs);
                }
            }
        }
        self.rows.clear();
        self.ids.clear();
        self.scores.clear();
        if self.pairs.len() > self.limit {
            let starts = self.merge();
            if self.pairs.len() > KEPT {
                self.forget_the_far(&starts);
            }
            self.limit = KEPT.max(2 * self.pairs.len());
        }
    }

    /// Adds up pairs that occur several times; they are in the order of `from` afterwards, where those of
    /// each component start is returned (k + 1).
    fn merge(&mut self) -> Vec<u32> {
        let k = self.stamps.len();
        let (starts, order) = by_component(k, self.pairs.iter().map(|pair| pair.from));
        let mut merged = Vec::with_capacity(self.pairs.len());
        let mut merged_starts = Vec::with_capacity(k + 1);
        for c in 0..k {
            merged_starts.push(merged.len() as u32);
            self.stamps.restart();
            for &i in &order[starts[c] as usize..starts[c + 1] as usize] {
                let first = merged_starts[c] as usize;
                self.stamps.add(self.pairs[i as usize], first, &mut merged);
            }
        }
        merged_starts.push(merged.len() as u32);
        self.pairs = merged;
        merged_starts
    }

    /// Keeps the pairs with the smallest means of each component: only with random supports and many
    /// components are there so many that this matters, and none of the others would become a neighbor.
    fn forget_the_far(&mut self, starts: &[u32]) {
        let mut kept = Vec::with_capacity(self.pairs.len());
        for c in 0..self.stamps.len() {
            let pairs = &mut self.pairs[starts[c] as usize..starts[c + 1] as usize];
            if pairs.len() > KEPT_PER_COMPONENT {
                let mean = |pair: &Pair| pair.sum / pair.weight;
                pairs.select_nth_unstable_by(KEPT_PER_COMPONENT, |a, b| {
                    mean(a).total_cmp(&mean(b)).then(a.to.cmp(&b.to))
                });
            }
            kept.extend(pairs.iter().take(KEPT_PER_COMPONENT));
        }
        self.pairs = kept;
    }

    /// All that was gathered, by component.
    fn finish(mut self) -> Grouped {
        // A single group is in order and free of repetitions already.
        let single = self.pairs.is_empty();
        self.group();
        let starts = if single {
            starts(self.stamps.len(), &self.pairs)
        } else {
            self.merge()
        };
        Grouped {
            starts,
            pairs: self.pairs,
        }
    }
}

/// Where the pairs of each of `k` components start (k + 1), for pairs in the order of `from`.
fn starts(k: usize, pairs: &[Pair]) -> Vec<u32> {
    let mut starts = vec![0; k + 1];
    for pair in pairs {
        starts[pair.from as usize + 1] += 1;
    }
    for c in 0..k {
        starts[c + 1] += starts[c];
    }
    starts
}

/// Counting sort: where the items of each of `k` components start (k + 1), and the items in order of their
/// component, those of one component in their own order.
fn by_component(k: usize, items: impl Iterator<Item = u32> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0; k + 1];
    let mut n = 0;
    for c in items.clone() {
        starts[c as usize + 1] += 1;
        n += 1;
    }
    for c in 0..k {
        starts[c + 1] += starts[c];
    }
    let mut next = starts.clone();
    let mut order = vec![0; n];
    for (i, c) in (0u32..).zip(items) {
        let place = &mut next[c as usize];
        order[*place as usize] = i;
        *place += 1;
    }
    (starts, order)
}

/// The pairs of one worker, by component.
pub(super) struct Grouped {
    starts: Vec<u32>,
    pairs: Vec<Pair>,
}

impl Grouped {
    fn of(&self, c: usize) -> &[Pair] {
        &self.pairs[self.starts[c] as usize..self.starts[c + 1] as usize]
    }
}

/// Where each component stands in a list, without clearing k numbers for every list.
#[derive(Debug)]
struct Stamps {
    now: u32,
    stamps: Vec<u32>,
    places: Vec<u32>,
}

impl Stamps {
    fn new(k: usize) -> Self {
        Self {
            now: 0,
            stamps: vec![0; k],
            places: vec![0; k],
        }
    }

    fn restart(&mut self) {
        if self.now == u32::MAX {
            self.stamps.fill(0);
            self.now = 0;
        }
        self.now += 1;
    }

    fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Adds a pair to the list that starts at `first`, to the one of the same component if there is one.
    #[inline(always)]
    fn add(&mut self, pair: Pair, first: usize, found: &mut Vec<Pair>) {
        let c = pair.to as usize;
        if self.stamps[c] == self.now {
            let sums = &mut found[first + self.places[c] as usize];
            sums.sum += pair.sum;
            sums.weight += pair.weight;
        } else {
            self.stamps[c] = self.now;
            self.places[c] = (found.len() - first) as u32;
            found.push(pair);
        }
    }
}

/// What the workers gathered, ready for [`Neighbors::renew`].
pub(super) fn gathered(workers: Vec<PairSums>) -> Vec<Grouped> {
    parallel::map_parts(workers, |_, sums| sums.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn neighbors_are_the_smallest_weighted_means_of_the_naive_table() {
        let mut rng = Rng::from_seed(4);
        let (k, size) = (30, 4);
        let mut neighbors = Neighbors::new(k, size, |c, list| list[0] = c as u32);
        let mut workers: Vec<PairSums> = (0..3).map(|_| PairSums::new(k)).collect();
        let mut table: BTreeMap<(u32, u32), (f64, f64)> = BTreeMap::new();
        for n in 0..900 {
            // Component 7 is nearest to no point and must keep its list.
            let best = [rng.below(k), 8][usize::from(n % 50 == 0)] as u32;
            if best == 7 {
                continue;
            }
            let mut ids: Vec<u32> = (0..k as u32).filter(|_| rng.below(3) == 0).collect();
            ids.retain(|&c| c != best);
            ids.push(best);
            let scores: Vec<f64> = ids.iter().map(|_| rng.uniform()).collect();
            let weight = rng.below(4) as f64;
            workers[n / 300].add(best, weight, &ids, &scores);
            for (&to, &score) in ids.iter().zip(&scores) {
                let entry = table.entry((best, to)).or_default();
                entry.0 += weight * score;
                entry.1 += weight;
            }
            if n % 40 == 0 {
                workers[n / 300].group();
                workers[n / 300].merge();
            }
        }
        neighbors.renew(&gathered(workers));
        for c in 0..k as u32 {
            let mut means: Vec<(f64, u32)> = table
                .iter()
                .filter(|((from, to), (_, w))| *from == c && *to != c && *w > 0.0)
                .map(|((_, to), (sum, weight))| (sum / weight, *to))
                .collect();
            means.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut expected = vec![c];
            expected.extend(means.iter().map(|m| m.1).take(size - 1));
            expected.resize(size, UNSET);
            assert_eq!(neighbors.of(c), expected, "component {c}");
        }
    }
}
