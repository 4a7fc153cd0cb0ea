//! Which components share points, as a distribution to draw from (E25, E26).

use super::pairs::{COMPONENTS, Gathered, Pair, PairSums};
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::base::sort;

/// The similarities of every component to the others (E26), kept where they are positive: one number for each
/// pair that some support holds, never k^2.
///
/// Entries of a row are in increasing order, with their running sums. Each is at least as large as the mean of those before it.
/// So the difference of two running sums is exact to a few roundings per entry, however small it is compared with the rest of
/// the row. A support usually holds nearly all of its row, and the small rest must not be lost in rounding.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Similarity {
    /// Where the row of each component starts (k + 1).
    starts: Vec<usize>,
    /// The other components of each row, by increasing similarity.
    ids: Vec<u32>,
    /// Sums of the similarities of a row up to each entry, itself included.
    sums: Vec<f64>,
    /// The components of each row in increasing order, and their places in the row.
    sorted: Vec<u32>,
    places: Vec<u32>,
}

impl Similarity {
    /// Nothing known of any of `k` components.
    pub(super) fn unknown(k: usize) -> Self {
        Self {
            starts: vec![0; k + 1],
            ..Self::default()
        }
    }

    /// The similarities from what points added for each pair of components in their supports, once for both
    /// ways.
    pub(super) fn of(workers: Vec<PairSums>) -> Self {
        let gathered = Gathered::both_ways(workers);
        let parts = parallel::map_blocks(gathered.k, COMPONENTS, |_, range| {
            let mut reader = gathered.reader();
            let mut rows = Self::unknown(0);
            for c in range {
                rows.push(reader.component(c).iter().filter_map(|pair| {
                    (pair.to as usize != c && pair.sum > 0.0).then_some((pair.sum, pair.to))
                }));
            }
            rows
        });
        let mut similarity = Self::unknown(0);
        for rows in parts {
            let before = similarity.ids.len();
            similarity
                .starts
                .extend(rows.starts[1..].iter().map(|end| before + end));
            similarity.ids.extend(rows.ids);
            similarity.sums.extend(rows.sums);
            similarity.sorted.extend(rows.sorted);
            similarity.places.extend(rows.places);
        }
        similarity
    }

    fn push(&mut self, entries: impl Iterator<Item = (f64, u32)>) {
        let mut row: Vec<(f64, u32)> = entries.collect();
        sort::by_value(&mut row);
        let mut sum = 0.0;
        for &(similarity, id) in &row {
            sum += similarity;
            self.ids.push(id);
            self.sums.push(sum);
        }
        let mut sorted: Vec<(u32, u32)> = (0..).zip(&row).map(|(i, entry)| (entry.1, i)).collect();
        sorted.sort_unstable();
        self.sorted.extend(sorted.iter().map(|entry| entry.0));
        self.places.extend(sorted.iter().map(|entry| entry.1));
        self.starts.push(self.ids.len());
    }

    /// Whether these are rows of `k` components: those of a file may be others.
    pub(super) fn is_sound(&self, k: usize) -> bool {
        let Self {
            starts,
            ids,
            sums,
            sorted,
            places,
        } = self;
        let n = sums.len();
        let whole = starts.first() == Some(&0) && starts.last() == Some(&n);
        let sized = [ids.len(), sorted.len(), places.len()] == [n; 3];
        let row_is_sound = |c: usize| {
            let row = starts[c]..starts[c + 1];
            let ids = &ids[row.clone()];
            let sums = &sums[row.clone()];
            let sorted = &sorted[row.clone()];
            let places = &places[row];
            let known = |id: &u32| (*id as usize) < k && *id as usize != c;
            let mut placed = sorted.iter().zip(places);
            sums.is_sorted()
                && sums.iter().all(|sum| *sum > 0.0 && sum.is_finite())
                && sorted.windows(2).all(|pair| pair[0] < pair[1])
                && placed.all(|(id, place)| ids.get(*place as usize) == Some(id))
                && ids.iter().all(known)
        };
        let rises = whole && starts.len() == k + 1 && starts.is_sorted();
        rises && sized && (0..k).all(row_is_sound)
    }

    /// Draws `count` components one after the other from the row of `from`, or as many as there are, and adds them to
    /// `chosen`. Each is drawn in proportion to its similarity (E25), none twice and none that is in `chosen` already.
    #[inline]
    pub(super) fn draw(
        &self,
        from: u32,
        count: usize,
        rng: &mut Rng,
        gaps: &mut Gaps,
        chosen: &mut Vec<u32>,
    ) {
        let row = self.starts[from as usize]..self.starts[from as usize + 1];
        let ids = &self.ids[row.clone()];
        let sums = &self.sums[row.clone()];
        let sorted = &self.sorted[row.clone()];
        let places = &self.places[row];
        let taken = chosen
            .iter()
            .filter_map(|c| sorted.binary_search(c).ok())
            .map(|i| places[i]);
        gaps.around(taken, sums);
        for _ in 0..count {
            let Some(place) = gaps.take(rng, sums) else {
                break;
            };
            chosen.push(ids[place]);
        }
    }

    /// The similarities of component `c`: (component, similarity).
    #[cfg(test)]
    pub(super) fn row(&self, c: usize) -> Vec<(u32, f64)> {
        let range = self.starts[c]..self.starts[c + 1];
        let sums = &self.sums[range.clone()];
        (self.ids[range].iter().enumerate())
            .map(|(i, &id)| (id, sums[i] - if i > 0 { sums[i - 1] } else { 0.0 }))
            .collect()
    }
}

/// Rank by which [`Similarity::of`] keeps pairs if there are too many: the pairs that share most.
pub(super) fn least_shared(pair: &Pair) -> f64 {
    -pair.sum
}

/// The entries of a row that may be drawn, as gaps of consecutive entries between the others: scratch of [`Similarity::draw`].
///
/// A draw picks a gap by its sum, then an entry of it by bisection, and splits the gap there. No draw is
/// ever rejected, whatever share of the row is taken, and none reads a whole row.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    taken: Vec<u32>,
    gaps: Vec<Gap>,
}

/// The entries `start..end` of a row, and their sum.
#[derive(Debug)]
struct Gap {
    start: u32,
    end: u32,
    sum: f64,
}

impl Gaps {
    /// The entries of a row with these running sums, without those taken.
    fn around(&mut self, taken: impl Iterator<Item = u32>, sums: &[f64]) {
        self.taken.clear();
        self.taken.extend(taken);
        self.taken.sort_unstable();
        self.gaps.clear();
        let mut start = 0;
        for i in 0..self.taken.len() {
            let place = self.taken[i];
            self.push(start, place, sums);
            start = place + 1;
        }
        self.push(start, sums.len() as u32, sums);
    }

    fn push(&mut self, start: u32, end: u32, sums: &[f64]) {
        if start < end {
            let sum = sums[end as usize - 1] - before(start, sums);
            self.gaps.push(Gap { start, end, sum });
        }
    }

    /// Draws the place of an entry, and takes it; `None` when there is nothing left.
    fn take(&mut self, rng: &mut Rng, sums: &[f64]) -> Option<usize> {
        if self.gaps.is_empty() {
            return None;
        }
        let mut left = rng.uniform() * self.gaps.iter().map(|gap| gap.sum).sum::<f64>();
        // The search begins at the end, where the largest entries of a row are.
        let mut chosen = self.gaps.len() - 1;
        while chosen > 0 && left >= self.gaps[chosen].sum {
            left -= self.gaps[chosen].sum;
            chosen -= 1;
        }
        let Gap { start, end, .. } = self.gaps.swap_remove(chosen);
        let first = start as usize;
        let last = end as usize - 1;
        let left = before(start, sums) + left;
        let place = first + sums[first..last].partition_point(|&sum| sum <= left);
        self.push(start, place as u32, sums);
        self.push(place as u32 + 1, end, sums);
        Some(place)
    }
}

/// The sum of the entries before a place.
#[inline(always)]
fn before(place: u32, sums: &[f64]) -> f64 {
    match place {
        0 => 0.0,
        place => sums[place as usize - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Row 0 of `k` components with these similarities.
    fn row(k: usize, entries: &[(u32, f64)]) -> Similarity {
        let mut sums = PairSums::new(k, least_shared);
        let ids: Vec<u32> = entries.iter().map(|e| e.0).collect();
        let values: Vec<f64> = entries.iter().map(|e| e.1).collect();
        sums.push(0, 1.0, &ids, &values);
        Similarity::of(vec![sums])
    }

    /// How often each sequence is drawn, against its probability (E25).
    fn distribution(entries: &[(u32, f64)], members: &[u32], count: usize) {
        const DRAWS: usize = 200_000;
        let similarity = row(20, entries);
        let mut rng = Rng::from_seed(8);
        let mut gaps = Gaps::default();
        let mut counts: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for _ in 0..DRAWS {
            let mut chosen = members.to_vec();
            similarity.draw(0, count, &mut rng, &mut gaps, &mut chosen);
            *counts.entry(chosen.split_off(members.len())).or_default() += 1;
        }
        let outside: BTreeMap<u32, f64> = entries.iter().copied().collect();
        let outside = || outside.iter().filter(|(c, _)| !members.contains(c));
        let mut total = 0.0;
        let mut chi_squared = 0.0;
        for (drawn, times) in &counts {
            let mut left: f64 = outside().map(|(_, s)| s).sum();
            let mut p = 1.0;
            for c in drawn {
                let s = outside().find(|(id, _)| *id == c).unwrap().1;
                p *= s / left;
                left -= s;
            }
            total += p;
            let expected = p * DRAWS as f64;
            chi_squared += (*times as f64 - expected).powi(2) / expected;
        }
        // The proposals sum to 1 over what can be drawn (erratum 2), and every sequence occurs.
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        // Chi-square has this mean, and twice it as variance.
        let mean = counts.len() as f64 - 1.0;
        let slack = 5.0 * (2.0 * mean).sqrt();
        assert!(
            (chi_squared - mean).abs() < slack,
            "{chi_squared} for {mean}"
        );
    }

    #[test]
    fn draws_are_in_proportion_and_without_replacement() {
        let entries = [(3, 0.4), (19, 2.0), (7, 0.1), (1, 0.9), (12, 0.3), (5, 0.6)];
        distribution(&entries, &[], 1);
        distribution(&entries, &[], 3);
        distribution(&entries, &[0, 19, 3], 2);
        distribution(&entries, &[12, 1, 4], 3);
    }

    /// Errata 2 and 3: the members hold all but a part of the row that rounding would swallow, and what is
    /// left keeps its proportions.
    #[test]
    fn what_the_support_leaves_is_drawn_however_small_it_is() {
        for unit in [1e-25, 1e-90, 1e-250] {
            let others = [(9, unit), (2, 3.0 * unit), (4, 2.0 * unit), (6, unit)];
            let mut entries = vec![(1, 0.7), (3, 0.2), (5, 1e-5)];
            entries.extend(others);
            distribution(&entries, &[0, 1, 3, 5], 2);
        }
        // Far from each other: the largest comes first, and the small ones after it.
        let similarity = row(20, &[(1, 1.0), (2, 1e-30), (3, 1e-60), (4, 1e-200)]);
        let mut chosen = vec![0];
        let mut rng = Rng::from_seed(1);
        let mut gaps = Gaps::default();
        similarity.draw(0, 9, &mut rng, &mut gaps, &mut chosen);
        assert_eq!(chosen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_row_gives_as_many_as_it_has() {
        let similarity = row(20, &[(1, 0.0), (2, 0.5), (0, 3.0), (7, 1e-3)]);
        let mut rng = Rng::from_seed(1);
        let mut gaps = Gaps::default();
        for (members, expected) in [
            (vec![], vec![2, 7]),
            (vec![7, 0], vec![2]),
            (vec![7, 2, 5], vec![]),
        ] {
            let mut chosen = members.clone();
            similarity.draw(0, 5, &mut rng, &mut gaps, &mut chosen);
            let mut drawn = chosen[members.len()..].to_vec();
            drawn.sort_unstable();
            assert_eq!(drawn, expected);
        }
        let mut none = vec![4];
        similarity.draw(3, 5, &mut rng, &mut gaps, &mut none);
        Similarity::unknown(20).draw(0, 5, &mut rng, &mut gaps, &mut none);
        assert_eq!(none, [4]);
    }

    /// Long rows: every entry comes once.
    #[test]
    fn long_rows_are_drawn_to_the_end() {
        let mut rng = Rng::from_seed(5);
        let entries: Vec<(u32, f64)> = (1..700).map(|c| (c, rng.uniform() + 1e-3)).collect();
        let mut chosen = vec![0, 13, 500];
        row(700, &entries).draw(0, 700, &mut rng, &mut Gaps::default(), &mut chosen);
        chosen.sort_unstable();
        assert!(chosen.into_iter().eq(0..700));
    }
}
