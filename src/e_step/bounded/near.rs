//! The nearest of some centres to others, as lists.

use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Centres, Rows};
use crate::model::candidates::Candidates;

/// Centres whose lists are one piece of work.
pub(super) const CENTRES: usize = 32;

/// The `size` centres of `to` nearest to each of `from`, nearest first: (from, size). If `first` gives a centre, it is
/// put first.
pub(super) fn lists<F: Float>(
    from: &Centres<F>,
    to: &Centres<F>,
    size: usize,
    first: impl Fn(usize) -> Option<u32> + Sync,
) -> Vec<u32> {
    let stride = from.row(0).len();
    let mut lists = vec![0; from.len() * size];
    parallel::map_chunks(&mut lists, size * CENTRES, |_, range, lists| {
        let places = range.start / size..range.end / size;
        let rows = &from.values()[places.start * stride..places.end * stride];
        let rows = Rows::of_padded(rows, from.dim());
        let (mut candidates, mut approximate) = (Candidates::default(), Vec::new());
        rows.distances(to, &mut approximate);
        let approximate = approximate.chunks_exact(to.len());
        let each = lists.chunks_exact_mut(size).zip(approximate);
        for (i, (list, approximate)) in each.enumerate() {
            let (ids, squared) = candidates.of(to, &rows, i, approximate, size);
            fill(list, first(places.start + i), ids, squared);
        }
    });
    lists
}

/// Fills a list with the nearest of some centres. `first` comes before them, if there is one, also before copies of it.
pub(super) fn fill<F: Float>(list: &mut [u32], first: Option<u32>, ids: &[u32], squared: &[F]) {
    // Numbers that are not negative have the order of their bits; for a list, the first half of the bits is enough.
    let key =
        |(c, squared): (&u32, &F)| (1 + (squared.to_f64().to_bits() >> 32)) << 32 | u64::from(*c);
    let others = ids.iter().zip(squared).filter(|(c, _)| Some(**c) != first);
    let mut order: Vec<u64> = others.map(key).chain(first.map(u64::from)).collect();
    if order.len() > list.len() {
        order.select_nth_unstable(list.len() - 1);
        order.truncate(list.len());
    }
    order.sort_unstable();
    for (place, key) in list.iter_mut().zip(order) {
        *place = key as u32;
    }
}

/// A factor at least as large as the error of a computed distance.
pub(super) fn slack(dim: usize, epsilon: f64) -> f64 {
    1.0 + 4.0 * (dim + 8) as f64 * epsilon
}
