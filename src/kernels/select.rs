//! Choosing the components with the lowest costs; ties go to the lower index, so that a choice never
//! depends on the order in which components were evaluated.

use crate::base::float::Float;
use crate::base::simd::{kernel, lanes, vectorised};
use pulp::Simd;

/// The `out_ids.len()` best of `(ids, costs)`, best first, by (cost, index).
///
/// Needs at least as many candidates as places, and no NaN among the costs.
pub(crate) fn smallest<F: Float>(
    ids: &[u32],
    costs: &[F],
    out_ids: &mut [u32],
    out_costs: &mut [F],
) {
    let width = out_ids.len();
    debug_assert!(ids.len() >= width);
    if width > INSERTED_PLACES {
        return smallest_of_many(ids, costs, out_ids, out_costs);
    }
    if ids.len() > width && smallest_by_rank(ids, costs, out_ids, out_costs) {
        return;
    }
    // The last place, once all are filled: most candidates fail against it alone.
    let mut last = None;
    let mut filled = 0;
    for (&id, &cost) in ids.iter().zip(costs) {
        let before = |other: F, other_id: u32| cost < other || (cost == other && id < other_id);
        if let Some((last_cost, last_id)) = last {
            if !before(last_cost, last_id) {
                continue;
            }
            filled -= 1;
        }
        let mut place = filled;
        while place > 0 && before(out_costs[place - 1], out_ids[place - 1]) {
            out_ids[place] = out_ids[place - 1];
            out_costs[place] = out_costs[place - 1];
            place -= 1;
        }
        out_ids[place] = id;
        out_costs[place] = cost;
        filled += 1;
        if filled == width {
            last = Some((out_costs[width - 1], out_ids[width - 1]));
        }
    }
}

/// As [`smallest`], without branches, which no processor could predict, for more candidates than places. `false` if there are
/// too many candidates, or if equal costs leave a place open.
fn smallest_by_rank<F: Float>(
    ids: &[u32],
    costs: &[F],
    out_ids: &mut [u32],
    out_costs: &mut [F],
) -> bool {
    if ids.len() > RANKED {
        return false;
    }
    // One more place than there are to fill: behind the last one, equal costs show there.
    let mut places = [0; INSERTED_PLACES + 2];
    let width = out_ids.len();
    rank(costs, &mut places[..width + 2]);
    if places[width] == NONE {
        return false;
    }
    let outs = out_ids.iter_mut().zip(out_costs);
    for (&place, (out_id, out_cost)) in places.iter().zip(outs) {
        let candidate = ids.get(place as usize).zip(costs.get(place as usize));
        match candidate {
            Some((&id, &cost)) if !cost.to_f64().is_nan() => (*out_id, *out_cost) = (id, cost),
            _ => return false,
        }
    }
    true
}

/// As many candidates are ranked by comparing each with all others.
const RANKED: usize = 32;

/// A place without a cost.
const NONE: u8 = u8::MAX;

/// Candidates, or how many are lower than each of them.
#[repr(align(64))]
struct Ranked<F>([F; RANKED]);

/// The places of the lowest of at most [`RANKED`] costs, lowest first, into all of `places` but the last, which is for the
/// others. If costs tie, the last one takes the place, and the next place stays [`NONE`]. NaN has the first place: no cost is
/// below it.
fn rank<F: Float>(costs: &[F], places: &mut [u8]) {
    let mut padded = Ranked([F::INFINITY; RANKED]);
    padded.0[..costs.len()].copy_from_slice(costs);
    places.fill(NONE);
    rank_padded(&padded, costs.len(), places);
}

kernel! {
    fn rank_padded[F: Float](costs: &Ranked<F>, len: usize, places: &mut [u8]) = rank_by_counts
}

#[inline(always)]
fn rank_by_counts<F: Float, S: Simd>(simd: S, costs: &Ranked<F>, len: usize, places: &mut [u8]) {
    let mut ranks = Ranked([F::zero(); RANKED]);
    let zero = F::splat(simd, F::zero());
    let one = F::splat(simd, F::one());
    let vectors = F::vectors::<S>(&costs.0).0.iter();
    let counts = F::vectors_mut::<S>(&mut ranks.0).0;
    for (&vector, count) in vectors.zip(counts).take(len.div_ceil(lanes::<F, S>())) {
        // Two counts, which do not wait for each other.
        let mut even = F::splat(simd, F::WHOLE);
        let mut odd = zero;
        let (pairs, rest) = costs.0[..len].as_chunks::<2>();
        for &[a, b] in pairs {
            let a = F::less(simd, F::splat(simd, a), vector);
            let b = F::less(simd, F::splat(simd, b), vector);
            even = F::plus(simd, even, F::select(simd, a, one, zero));
            odd = F::plus(simd, odd, F::select(simd, b, one, zero));
        }
        for &last in rest {
            let last = F::less(simd, F::splat(simd, last), vector);
            even = F::plus(simd, even, F::select(simd, last, one, zero));
        }
        *count = F::plus(simd, even, odd);
    }
    let last = places.len() - 1;
    for (i, rank) in ranks.0[..len].iter().enumerate() {
        places[usize::from(F::low_byte(*rank)).min(last)] = i as u8;
    }
}

/// As [`smallest`], for many places, which a sort fills faster than insertion.
fn smallest_of_many<F: Float>(ids: &[u32], costs: &[F], out_ids: &mut [u32], out_costs: &mut [F]) {
    let width = out_ids.len();
    let pairs = costs.iter().zip(ids);
    let mut keys: Vec<(i64, u32)> = pairs.map(|(s, &id)| (key(s.to_f64()), id)).collect();
    if keys.len() > width {
        keys.select_nth_unstable(width - 1);
        keys.truncate(width);
    }
    keys.sort_unstable();
    for ((&(key, id), out_id), out_cost) in keys.iter().zip(out_ids).zip(out_costs) {
        *out_id = id;
        *out_cost = F::from_f64(cost_of(key));
    }
}

/// A whole number in the order of the costs: both zeros are one, and NaN of either sign is behind all others.
#[inline(always)]
fn key(cost: f64) -> i64 {
    // The bits of numbers below 0 rise as these fall.
    let bits = if cost.is_nan() { f64::NAN } else { cost + 0.0 }.to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[inline(always)]
fn cost_of(key: i64) -> f64 {
    let bits = if key < 0 { key ^ i64::MAX } else { key };
    f64::from_bits(bits as u64)
}

/// At most this many places are filled by insertion.
const INSERTED_PLACES: usize = 16;

/// The `width`-th smallest value (infinity where there are fewer numbers).
pub(crate) fn last_place<F: Float>(values: &[F], width: usize, kept: &mut Vec<F>) -> F {
    if width <= 2 {
        let (low, next) = two_smallest(values);
        return if width == 1 { low } else { next };
    }
    kept.clear();
    if width > INSERTED_PLACES {
        kept_below(values, width, kept);
        kept.resize(kept.len().max(width), F::INFINITY);
        return match nth(kept, width - 1) {
            // There are fewer than `width` numbers.
            last if last.to_f64().is_nan() => F::INFINITY,
            last => last,
        };
    }
    kept.resize(width, F::INFINITY);
    for &value in values {
        if value < kept[width - 1] {
            let mut place = width - 1;
            while place > 0 && value < kept[place - 1] {
                kept[place] = kept[place - 1];
                place -= 1;
            }
            kept[place] = value;
        }
    }
    kept[width - 1]
}

/// The value in this place of their order.
fn nth<F: Float>(values: &mut [F], place: usize) -> F {
    let order = |value: &F| key(value.to_f64());
    *values.select_nth_unstable_by_key(place, order).1
}

/// Puts the `width` smallest values into `kept`, and few others where there are many.
///
/// Values are in groups. The `width`-th smallest of the groups' minima is a bound: `width` values at least are not above it.
fn kept_below<F: Float>(values: &[F], width: usize, kept: &mut Vec<F>) {
    let groups = (width + width / 2).next_multiple_of(16);
    if values.len() < 4 * groups {
        return kept.extend_from_slice(values);
    }
    kept.resize(groups, F::INFINITY);
    vectorised!({
        for values in values.chunks(groups) {
            for (low, &value) in kept.iter_mut().zip(values) {
                if value < *low {
                    *low = value;
                }
            }
        }
    });
    let bound = nth(kept, width - 1);
    kept.clear();
    vectorised!({
        for values in values.chunks(CHUNK) {
            let mut any = false;
            for &value in values {
                any |= value <= bound;
            }
            if any {
                // Without a branch for each, which nothing could foretell.
                let first = kept.len();
                kept.extend_from_slice(values);
                let mut end = first;
                for &value in values {
                    kept[end] = value;
                    end += usize::from(value <= bound);
                }
                kept.truncate(end);
            }
        }
    });
}

/// The places of all values that are not above `threshold`, NaN among them: an overflowed approximation must stay a
/// candidate.
pub(crate) fn not_above<F: Float>(values: &[F], threshold: F, places: &mut Vec<u32>) {
    places.clear();
    vectorised!({
        for (chunk, values) in values.chunks(CHUNK).enumerate() {
            // Most chunks have none.
            let mut any = false;
            for &value in values {
                #[allow(clippy::neg_cmp_op_on_partial_ord)]
                let kept = !(value > threshold);
                any |= kept;
            }
            if any {
                // Without a branch for each, which nothing could foretell.
                let mut end = places.len();
                places.resize(end + values.len(), 0);
                for (i, &value) in values.iter().enumerate() {
                    places[end] = (chunk * CHUNK + i) as u32;
                    #[allow(clippy::neg_cmp_op_on_partial_ord)]
                    let kept = !(value > threshold);
                    end += usize::from(kept);
                }
                places.truncate(end);
            }
        }
    });
}

/// Values compared together.
const CHUNK: usize = 64;

/// The two smallest values (infinity if there are fewer), NaN ignored.
fn two_smallest<F: Float>(values: &[F]) -> (F, F) {
    vectorised!({
        let mut lows = [F::INFINITY; 16];
        let mut nexts = [F::INFINITY; 16];
        let (chunks, rest) = values.as_chunks::<16>();
        for chunk in chunks {
            for l in 0..16 {
                let value = chunk[l];
                let above = if value < lows[l] { lows[l] } else { value };
                lows[l] = if value < lows[l] { value } else { lows[l] };
                nexts[l] = if above < nexts[l] { above } else { nexts[l] };
            }
        }
        // The two smallest of two pairs of two, all lanes at once.
        let mut half = 8;
        while half > 0 {
            for l in 0..half {
                let a = lows[l];
                let b = lows[l + half];
                let (low, above) = if b < a { (b, a) } else { (a, b) };
                let c = nexts[l];
                let d = nexts[l + half];
                let next = if d < c { d } else { c };
                lows[l] = low;
                nexts[l] = if above < next { above } else { next };
            }
            half /= 2;
        }
        let mut low = lows[0];
        let mut next = nexts[0];
        for &value in rest {
            if value < low {
                (low, next) = (value, low);
            } else if value < next {
                next = value;
            }
        }
        (low, next)
    })
}

/// The least of some values and the second least, with their places: the first of equals, and place 0 if there is no second.
/// It is fastest if they are near the front.
#[inline]
pub(crate) fn first_two<F: Float>(values: &[F]) -> ((F, usize), (F, usize)) {
    let (low, next) = two_smallest(values);
    let place = |value: F, other: usize| {
        let mut places = values.iter().enumerate();
        let place = places.find(|(i, v)| **v == value && *i != other);
        place.map_or(0, |(i, _)| i)
    };
    let first = place(low, usize::MAX);
    ((low, first), (next, place(next, first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::base::simd::on_every_processor;

    fn smallest_are_heads<F: Float>() {
        let mut rng = Rng::from_seed(3);
        let few = (0..900).map(|round| (1 + round % 34, 1 + round % 17));
        let many = [17, 40, 100, 1_000]
            .map(|n| [(n, INSERTED_PLACES + 1), (n, n / 2), (n, n - 1), (n, n)]);
        for (n, width) in few.chain(many.into_iter().flatten()) {
            // Costs that differ, or many ties, also of both zeros.
            let cost = |rng: &mut Rng| match (n % 3, rng.below(40)) {
                (0, _) => rng.uniform() - 0.5,
                (_, 0) => 0.0,
                (_, 1) => -0.0,
                (_, 2) => f64::INFINITY,
                (_, other) => (other % 8) as f64 - 2.0,
            };
            let costs: Vec<F> = (0..n).map(|_| F::from_f64(cost(&mut rng))).collect();
            let mut ids = Vec::new();
            rng.distinct(&mut ids, n, n);
            let pairs = costs.iter().copied().zip(ids.iter().copied());
            let mut expected: Vec<(F, u32)> = pairs.collect();
            expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
            expected.truncate(width);
            on_every_processor(|| {
                let width = expected.len();
                let mut out_ids = vec![0; width];
                let mut out_costs = vec![F::zero(); width];
                smallest(&ids, &costs, &mut out_ids, &mut out_costs);
                assert!(out_costs.into_iter().zip(out_ids).eq(expected.clone()));
            });
        }
    }

    /// Few places and many, and as many candidates as places.
    #[test]
    fn smallest_is_the_head_of_a_sort_by_cost_and_index() {
        smallest_are_heads::<f32>();
        smallest_are_heads::<f64>();
    }

    #[test]
    fn first_two_are_the_head_of_a_sort_by_value_and_place() {
        let mut rng = Rng::from_seed(4);
        for n in 1..80 {
            for _ in 0..20 {
                let values: Vec<f64> = (0..n).map(|_| rng.below(2 * n) as f64).collect();
                let mut places: Vec<usize> = (0..n).collect();
                places.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
                let (first, next) = first_two(&values);
                assert_eq!(first, (values[places[0]], places[0]));
                match places.get(1) {
                    Some(&place) => assert_eq!(next, (values[place], place)),
                    None => assert_eq!(next, (f64::INFINITY, 0)),
                }
            }
        }
    }

    /// Few places and many, fewer values than places, and NaN of either sign.
    #[test]
    fn the_last_place_is_that_of_a_sort() {
        let mut rng = Rng::from_seed(3);
        let mut kept = Vec::new();
        for n in [1, 5, 16, 17, 18, 60, 300, 3_000] {
            for width in [1, 2, 3, INSERTED_PLACES, INSERTED_PLACES + 1, 48] {
                let mut values: Vec<f64> = (0..n).map(|_| rng.below(40) as f64).collect();
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let last = sorted.get(width - 1).copied().unwrap_or(f64::INFINITY);
                assert_eq!(last_place(&values, width, &mut kept), last, "{n} {width}");
                if width <= n {
                    values.extend([f64::NAN, -f64::NAN]);
                    assert_eq!(last_place(&values, width, &mut kept), last, "{n} {width}");
                }
            }
        }
    }
}
