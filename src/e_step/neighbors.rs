//! Which components are near each other, estimated from the points (E14).

use super::bounded::are_lists;
use super::pairs::{COMPONENTS, Gathered, Pair};
use crate::base::{parallel, sort};
use crate::model::block::UNSET;

/// The neighbors G_c of every component: `c` itself first, then the others by increasing mean cost. Places
/// that are not filled are unset. (k, G) numbers.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Neighbors {
    pub(super) size: usize,
    pub(super) lists: Vec<u32>,
}

impl Neighbors {
    /// Whether these are lists of `k` components: those of a file may be others.
    pub(super) fn is_sound(&self, k: usize) -> bool {
        let known = |c: u32| (c as usize) < k || c == UNSET;
        are_lists(&self.lists, self.size, k, known)
    }

    #[inline(always)]
    pub(super) fn list(&self, c: u32) -> &[u32] {
        let start = c as usize * self.size;
        &self.lists[start..start + self.size]
    }

    /// New lists from the mean costs between components. A component that no point is nearest to keeps
    /// its list.
    pub(super) fn renew(&mut self, gathered: &Gathered) {
        let size = self.size;
        parallel::map_chunks(&mut self.lists, size * COMPONENTS, |_, range, lists| {
            let mut reader = gathered.reader();
            for (c, list) in (range.start / size..).zip(lists.chunks_exact_mut(size)) {
                let pairs = reader.component(c);
                if pairs.is_empty() {
                    continue;
                }
                let others = pairs.iter().filter(|pair| pair.to as usize != c);
                let mut means: Vec<(f64, u32)> =
                    others.map(|pair| (mean_cost(pair), pair.to)).collect();
                sort::keep_least(&mut means, size);
                sort::by_value(&mut means);
                list.fill(UNSET);
                list[0] = c as u32;
                for (place, (_, to)) in list[1..].iter_mut().zip(means) {
                    *place = to;
                }
            }
        });
    }
}

/// The mean cost of the points nearest to one component under another.
pub(super) fn mean_cost(pair: &Pair) -> f64 {
    pair.sum / pair.weight
}

#[cfg(test)]
mod tests {
    use super::super::pairs::PairSums;
    use super::*;
    use crate::base::rng::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn neighbors_are_the_smallest_weighted_means_of_the_naive_table() {
        let mut rng = Rng::from_seed(4);
        let k = 30;
        let size = 4;
        let mut lists = vec![UNSET; k * size];
        (0..k).for_each(|c| lists[c * size] = c as u32);
        let mut neighbors = Neighbors { size, lists };
        let mut workers: Vec<PairSums> = (0..3).map(|_| PairSums::new(k, mean_cost)).collect();
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
            let costs: Vec<f64> = ids.iter().map(|_| rng.uniform()).collect();
            let weight = rng.below(4) as f64;
            workers[n / 300].push(best, weight, &ids, &costs);
            for (&to, &cost) in ids.iter().zip(&costs) {
                let entry = table.entry((best, to)).or_default();
                entry.0 += weight * cost;
                entry.1 += weight;
            }
        }
        neighbors.renew(&Gathered::from(workers));
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
            assert_eq!(neighbors.list(c), expected, "component {c}");
        }
    }
}
