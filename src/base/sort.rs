//! Counting sorts by component.

use std::ops::Range;

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

/// The components with items among `places`, and which of these are theirs.
pub(crate) fn among(
    starts: &[usize],
    places: Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let first = starts.partition_point(|&start| start <= places.start) - 1;
    (first..starts.len() - 1)
        .take_while(move |&c| starts[c] < places.end)
        .map(move |c| {
            let own = starts[c].max(places.start)..starts[c + 1].min(places.end);
            (c, own)
        })
        .filter(|(_, own)| !own.is_empty())
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
        let of = [0, 0, 0, 2, 2, 5, 5, 5, 5, 6];
        let starts = starts(8, of.iter().copied());
        for size in 1..12 {
            let pieces = (0..of.len()).step_by(size);
            let all = pieces.flat_map(|from| among(&starts, from..of.len().min(from + size)));
            let found = all.flat_map(|(c, own)| own.map(move |_| c as u32));
            assert_eq!(found.collect::<Vec<u32>>(), of);
        }
    }

    /// The order is that of a stable sort.
    #[test]
    fn items_are_sorted_and_stay_in_their_order() {
        let of = [5, 0, 2, 5, 0, 6, 2, 5];
        let (starts, items) = sorted(8, 0, || of.iter().copied().zip(0..));
        let mut expected: Vec<usize> = (0..of.len()).collect();
        expected.sort_by_key(|&i| of[i]);
        assert_eq!(items, expected);
        assert_eq!(starts, super::starts(8, of.iter().copied()));
    }
}
