//! Counting sorts by component, and sorts that are compiled once for all that need them.

use super::parallel;
use std::cmp::Ordering;
use std::ops::Range;

/// Stretches of items that are sorted separately, at most.
const STRETCHES: usize = 8;

/// Items that are one piece of work: of a few components.
const TASK_ITEMS: usize = 1024;

/// Numbers with a value each, in the order of the values, and in their own where values are equal.
pub(crate) fn by_value<N: Ord>(valued: &mut [(f64, N)]) {
    valued.sort_unstable_by(lower);
}

/// Keeps the `count` that have the least values, in any order.
pub(crate) fn keep_least<N: Ord>(valued: &mut Vec<(f64, N)>, count: usize) {
    if count < valued.len() {
        valued.select_nth_unstable_by(count, lower);
        valued.truncate(count);
    }
}

fn lower<N: Ord>(a: &(f64, N), b: &(f64, N)) -> Ordering {
    a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
}

/// Numbers in any order; equal ones stay in theirs.
pub(crate) fn by(numbers: &mut [usize], order: &dyn Fn(usize, usize) -> Ordering) {
    numbers.sort_by(|a, b| order(*a, *b));
}

/// Where the items of each of `k` components start (k + 1), once they are in the order of their components.
pub(crate) fn starts(k: usize, components: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0; k + 1];
    for c in components {
        starts[c as usize + 1] += 1;
    }
    for c in 0..k {
        starts[c + 1] += starts[c];
    }
    starts
}

/// Items in the order of their components, those of one component in their own order, after where those of each of `k`
/// components start (k + 1). `items` is asked for twice; `any` fills places before their items come.
pub(crate) fn sorted<T: Clone, I: Iterator<Item = (u32, T)>>(
    k: usize,
    any: T,
    items: impl Fn() -> I,
) -> (Vec<usize>, Vec<T>) {
    let starts = starts(k, items().map(|(c, _)| c));
    let mut next = starts.clone();
    let mut sorted = vec![any; starts[k]];
    for (c, item) in items() {
        let place = &mut next[c as usize];
        sorted[*place] = item;
        *place += 1;
    }
    (starts, sorted)
}

/// As [`sorted`], on several threads, of items that `item` gives by their numbers below `n`: stretches of them separately, then all
/// together.
pub(crate) fn sorted_apart<T: Copy + Send + Sync>(
    k: usize,
    any: T,
    n: usize,
    item: impl Fn(usize) -> (u32, T) + Sync,
) -> (Vec<usize>, Vec<T>) {
    // Each stretch counts the items of all components.
    let stretch = n.div_ceil(STRETCHES).max(k).max(1);
    let of_stretch = |_, items: Range<usize>| sorted(k, any, || items.clone().map(&item));
    let mut stretches = parallel::map_blocks(n, stretch, of_stretch);
    if stretches.len() == 1 {
        return stretches.remove(0);
    }
    let start = |c: usize| stretches.iter().map(|(starts, _)| starts[c]).sum();
    let starts: Vec<usize> = (0..=k).map(start).collect();
    let mut sorted = Vec::new();
    fill(&starts, any, &mut sorted, |c, places| {
        for (starts, items) in &stretches {
            places.put(&items[starts[c]..starts[c + 1]]);
        }
    });
    (starts, sorted)
}

/// Puts the items of every component c into its places `starts[c]..starts[c + 1]` of `sorted`, whose contents are overwritten.
pub(crate) fn fill<T: Copy + Send>(
    starts: &[usize],
    any: T,
    sorted: &mut Vec<T>,
    put: impl Fn(usize, &mut Places<'_, T>) + Sync,
) {
    sorted.resize(starts[starts.len() - 1], any);
    parallel::map_parts(parts(starts, sorted), |_, (components, items)| {
        let mut places = Places(items);
        for c in components {
            put(c, &mut places);
        }
    });
}

/// Places that are not filled yet.
pub(crate) struct Places<'a, T>(&'a mut [T]);

impl<T: Copy> Places<'_, T> {
    pub(crate) fn put(&mut self, items: &[T]) {
        let (places, rest) = std::mem::take(&mut self.0).split_at_mut(items.len());
        places.copy_from_slice(items);
        self.0 = rest;
    }
}

/// Some components, and their items.
type Part<'a, T> = (Range<usize>, &'a mut [T]);

/// Parts of consecutive components with at least [`TASK_ITEMS`] items each, except the last.
fn parts<'a, T>(starts: &[usize], mut items: &'a mut [T]) -> Vec<Part<'a, T>> {
    let mut parts = Vec::new();
    let mut first = 0;
    for c in 0..starts.len() - 1 {
        let size = starts[c + 1] - starts[first];
        if size >= TASK_ITEMS || c + 2 == starts.len() {
            let (part, rest) = items.split_at_mut(size);
            items = rest;
            parts.push((first..c + 1, part));
            first = c + 1;
        }
    }
    parts
}

/// The components with items among `places`, and which of these are theirs.
pub(crate) fn among(
    starts: &[usize],
    places: Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let first = starts.partition_point(|&start| start <= places.start) - 1;
    (first..starts.len() - 1)
        .take_while(move |&c| starts[c] < places.end)
        .map(move |c| {
            let within = starts[c].max(places.start)..starts[c + 1].min(places.end);
            (c, within)
        })
        .filter(|(_, within)| !within.is_empty())
}

/// Whether these are the numbers below `n`, each once.
pub(crate) fn is_permutation<T: Copy + TryInto<usize>>(numbers: &[T], n: usize) -> bool {
    let mut seen = vec![false; n.min(numbers.len())];
    let first_time = |x: &T| {
        let place = (*x).try_into().ok().and_then(|x| seen.get_mut(x));
        place.is_some_and(|seen| !std::mem::replace(seen, true))
    };
    numbers.len() == n && numbers.iter().all(first_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of any size together are the places of every component once, in order, empty components left out.
    #[test]
    fn pieces_are_all_places() {
        let components = [0, 0, 0, 2, 2, 5, 5, 5, 5, 6];
        let starts = starts(8, components.iter().copied());
        for size in 1..12 {
            let pieces = (0..components.len()).step_by(size);
            let listed: Vec<u32> = pieces
                .flat_map(|from| among(&starts, from..components.len().min(from + size)))
                .flat_map(|(c, places)| places.map(move |_| c as u32))
                .collect();
            assert_eq!(listed, components);
        }
    }

    /// The order is that of a stable sort.
    #[test]
    fn items_are_sorted_and_stay_in_their_order() {
        let components = [5, 0, 2, 5, 0, 6, 2, 5];
        let (starts, items) = sorted(8, 0, || components.iter().copied().zip(0..));
        let mut expected: Vec<usize> = (0..components.len()).collect();
        expected.sort_by_key(|&i| components[i]);
        assert_eq!(items, expected);
        assert_eq!(starts, super::starts(8, components.iter().copied()));
    }

    /// In stretches the order is that of all items at once, also of none, and of many components without items.
    #[test]
    fn stretches_are_sorted_as_all_at_once() {
        for (k, n) in [(1, 0), (3, 1), (5, 40), (7, 9_000), (3_000, 20_000)] {
            let item = |i: usize| ((i * i % 1_009 * k / 1_500) as u32 % k as u32, i);
            let in_stretches = sorted_apart(k, 0, n, item);
            assert_eq!(in_stretches, sorted(k, 0, || (0..n).map(item)), "{k} {n}");
        }
    }
}
