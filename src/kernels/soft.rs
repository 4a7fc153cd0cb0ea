//! Costs of all components turned into responsibilities, row by row, with whole vectors.

use super::exponential::quick;
use crate::base::float::Float;
use crate::base::simd::{LANES, first_lane, kernel, lane_bits, lanes, vectorised};
use pulp::Simd;

/// Responsibilities below 2^-60, of the best one's or of all, are 0 in sums. That changes F by less than its rounding. The rule
/// depends on the row alone, so the order of rows does not matter.
pub(crate) const LOST: f64 = 1.0 / (1u64 << 60) as f64;

/// The exponent of [`LOST`], in nats.
pub(crate) const LOST_NATS: f64 = -60.0 * std::f64::consts::LN_2;

/// The costs of a row that may be its best one.
#[derive(Debug)]
pub(crate) struct Contenders<F> {
    /// Upper bound on the best cost.
    pub(crate) upper: F,
    /// How many there are.
    pub(crate) number: usize,
}

kernel! {
    /// Upper bound on the best cost of each row: the minimum of cost plus error, with one error for each place; and how many
    /// costs, less their errors, are not above what `limit` makes of that bound.
    pub(crate) fn contenders[F: Float, L: Fn(F) -> F](
        costs: &[F],
        errors: &[F],
        limit: L,
        found: &mut Vec<Contenders<F>>,
    ) = contenders_of_rows
}

#[inline(always)]
fn contenders_of_rows<F: Float, L: Fn(F) -> F, S: Simd>(
    simd: S,
    costs: &[F],
    errors: &[F],
    limit: L,
    found: &mut Vec<Contenders<F>>,
) {
    let lanes = lanes::<F, S>();
    let places = errors.len();
    let errors_of = F::vectors::<S>(errors).0;
    found.clear();
    for row in costs.chunks_exact(errors.len()) {
        let row = F::vectors::<S>(row).0;
        let mut least = F::splat(simd, F::INFINITY);
        for (&cost, &error) in row.iter().zip(errors_of) {
            least = lower::<F, S>(simd, F::plus(simd, cost, error), least);
        }
        let upper = F::least(simd, least);
        let limit = F::splat(simd, limit(upper));
        let mut above = 0;
        for (&cost, &error) in row.iter().zip(errors_of) {
            // A NaN is not above anything.
            let is_above = F::less(simd, limit, F::minus(simd, cost, error));
            above += lane_bits(is_above, lanes).count_ones();
        }
        let number = places - above as usize;
        found.push(Contenders { upper, number });
    }
}

/// Vectors that are compared before one branch: each of their lanes has a bit.
const VECTORS_PER_BRANCH: usize = 64 / LANES;

kernel! {
    /// The places of a row whose costs, less their errors, are not above `reach`: into `ids`. A NaN is not above anything.
    pub(crate) fn not_above[F: Float](row: &[F], errors: &[F], reach: F, ids: &mut Vec<u32>) = list_not_above
}

#[inline(always)]
fn list_not_above<F: Float, S: Simd>(
    simd: S,
    row: &[F],
    errors: &[F],
    reach: F,
    ids: &mut Vec<u32>,
) {
    ids.clear();
    let lanes = lanes::<F, S>();
    let limit = F::splat(simd, reach);
    let vectors = F::vectors::<S>(row).0.chunks(VECTORS_PER_BRANCH);
    let errors = F::vectors::<S>(errors).0.chunks(VECTORS_PER_BRANCH);
    for (group, (costs, errors)) in vectors.zip(errors).enumerate() {
        let mut near = 0;
        for (number, (&cost, &error)) in costs.iter().zip(errors).enumerate() {
            let below = F::minus(simd, cost, error);
            // A NaN is replaced by the limit.
            let below = F::select(simd, F::less(simd, limit, below), below, limit);
            near |= lane_bits(F::equal(simd, below, limit), lanes) << (number * lanes);
        }
        let first = (group * VECTORS_PER_BRANCH * lanes) as u32;
        while near != 0 {
            ids.push(first + near.trailing_zeros());
            near &= near - 1;
        }
    }
}

/// The numbers of which the shares of a row are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) best: f64,
    /// $\sum_c e^{-\beta (s_c - s)}$ with $s$ the lowest cost.
    pub(crate) sum: f64,
    pub(crate) expected: f64,
    /// The first place with the lowest cost: 0 where none is finite, and in sums alone, which do not look for it.
    pub(crate) place: u32,
}

/// Responsibilities of the first `k` places of every row of `stride`, in the type of the data. The other places, whose costs
/// are infinite, get 0, and so do shares below [`LOST`] times the best. Where no cost is finite, all are equal. `stride` is a
/// multiple of [`LANES`].
pub(crate) fn responsibilities<F: Float>(
    costs: &[F],
    stride: usize,
    k: usize,
    beta: f64,
    shares: &mut [F],
    found: &mut Vec<Row>,
) {
    found.clear();
    shared_out(costs, stride, factor(beta), shares, found);
    for (row, shares) in found.iter().zip(shares.chunks_exact_mut(stride)) {
        if !row.best.is_finite() {
            shares[..k].fill(F::from_f64(1.0 / k as f64));
            shares[k..].fill(F::zero());
        }
    }
}

/// Responsibilities of the members of lists of `width`, best first, as [`responsibilities`]. Shares have room for whole vectors.
pub(crate) fn of_lists<F: Float>(
    costs: &[F],
    width: usize,
    beta: f64,
    shares: &mut [F],
    found: &mut Vec<Row>,
) {
    let factor = factor(beta);
    found.clear();
    vectorised!({
        let lists = costs.chunks_exact(width);
        for (costs, exponents) in lists.zip(shares.chunks_exact_mut(width)) {
            for (exponent, cost) in exponents.iter_mut().zip(costs) {
                *exponent = (*cost - costs[0]) * factor;
            }
        }
    });
    exponentials(&mut shares[..costs.len().next_multiple_of(LANES)]);
    vectorised!({
        let lists = costs.chunks_exact(width);
        for (costs, shares) in lists.zip(shares.chunks_exact_mut(width)) {
            let best = costs[0].to_f64();
            let mut sum = 0.0;
            let mut inner = 0.0;
            for (share, cost) in shares.iter().zip(costs) {
                if *share > F::zero() {
                    sum += share.to_f64();
                    inner += share.to_f64() * (cost.to_f64() - best);
                }
            }
            if best.is_finite() {
                let scale = F::from_f64(1.0 / sum);
                for share in shares {
                    *share *= scale;
                }
            } else {
                shares.fill(F::from_f64(1.0 / width as f64));
            }
            let expected = best + inner / sum;
            found.push(Row {
                best,
                sum,
                expected,
                place: 0,
            });
        }
    });
}

kernel! {
    fn exponentials[F: Float](exponents: &mut [F]) = each_exponential
}

#[inline(always)]
fn each_exponential<F: Float, S: Simd>(simd: S, exponents: &mut [F]) {
    let lost = F::splat(simd, F::from_f64(LOST_NATS));
    let zero = F::splat(simd, F::zero());
    for exponent in F::vectors_mut::<S>(exponents).0 {
        // A NaN has no share: it is not above the limit.
        let live = F::less(simd, lost, *exponent);
        *exponent = F::select(simd, live, quick::<F, S>(simd, *exponent), zero);
    }
}

/// The sums alone of a row of whole vectors: what log-densities are made of.
pub(crate) fn sum<F: Float>(costs: &[F], beta: f64, found: &mut Vec<Row>) {
    found.push(summed_up(costs, factor(beta)));
}

/// Factor from differences of costs to exponents.
fn factor<F: Float>(beta: f64) -> F {
    // Beyond it, every difference is lost.
    F::from_f64(-beta.min(F::LARGEST_COST))
}

kernel! {
    fn shared_out[F: Float](costs: &[F], stride: usize, factor: F, shares: &mut [F], found: &mut Vec<Row>) = rows_shared_out
}

#[inline(always)]
fn rows_shared_out<F: Float, S: Simd>(
    simd: S,
    costs: &[F],
    stride: usize,
    factor: F,
    shares: &mut [F],
    found: &mut Vec<Row>,
) {
    let rows = costs.chunks_exact(stride);
    for (costs, shares) in rows.zip(shares.chunks_exact_mut(stride)) {
        let costs = F::vectors::<S>(costs).0;
        let shares = F::vectors_mut::<S>(shares).0;
        let best = least_of::<F, S>(simd, costs);
        let mut sums = Sums::about(simd, best, factor);
        for (&cost, share) in costs.iter().zip(&mut *shares) {
            *share = sums.add(simd, cost);
        }
        let place = first_place::<F, S>(simd, costs, best);
        let (row, scale) = sums.row(simd, place);
        let scale = F::splat(simd, F::from_f64(scale));
        for share in shares {
            *share = F::times(simd, *share, scale);
        }
        found.push(row);
    }
}

kernel! {
    fn summed_up[F: Float](costs: &[F], factor: F) -> Row = row_summed_up
}

#[inline(always)]
fn row_summed_up<F: Float, S: Simd>(simd: S, costs: &[F], factor: F) -> Row {
    let costs = F::vectors::<S>(costs).0;
    let mut sums = Sums::about(simd, least_of(simd, costs), factor);
    for &cost in costs {
        sums.add(simd, cost);
    }
    sums.row(simd, 0).0
}

/// Sums of exponentials about the best cost of a row, and of these times the differences.
struct Sums<F: Float, S: Simd> {
    best: F,
    /// Factor from differences of costs to exponents.
    factor: F,
    exponentials: F::Vector<S>,
    differences: F::Vector<S>,
}

impl<F: Float, S: Simd> Sums<F, S> {
    #[inline(always)]
    fn about(simd: S, best: F, factor: F) -> Self {
        let zero = F::splat(simd, F::zero());
        Self {
            best,
            factor,
            exponentials: zero,
            differences: zero,
        }
    }

    /// Adds some costs, and returns their exponentials. Most have none that counts.
    #[inline(always)]
    fn add(&mut self, simd: S, costs: F::Vector<S>) -> F::Vector<S> {
        let zero = F::splat(simd, F::zero());
        let above = F::minus(simd, costs, F::splat(simd, self.best));
        let exponent = F::times(simd, above, F::splat(simd, self.factor));
        // A NaN has no share: infinity less infinity, and 0 times infinity.
        let live = F::less(simd, F::splat(simd, F::from_f64(LOST_NATS)), exponent);
        let lanes = lanes::<F, S>();
        if first_lane(live, lanes) == lanes {
            return zero;
        }
        let p = F::select(simd, live, quick::<F, S>(simd, exponent), zero);
        let above = F::select(simd, live, above, zero);
        self.exponentials = F::plus(simd, self.exponentials, p);
        self.differences = F::times_plus(simd, p, above, self.differences);
        p
    }

    /// The sums of a row with this best place, and one divided by that of the exponentials.
    #[inline(always)]
    fn row(self, simd: S, place: u32) -> (Row, f64) {
        let sum = F::sum(simd, self.exponentials).to_f64();
        let best = self.best.to_f64();
        let inner = F::sum(simd, self.differences).to_f64();
        let scale = 1.0 / sum;
        let row = Row {
            best,
            sum,
            expected: best + inner * scale,
            place,
        };
        (row, scale)
    }
}

/// The lowest cost; a NaN is none.
#[inline(always)]
fn least_of<F: Float, S: Simd>(simd: S, costs: &[F::Vector<S>]) -> F {
    // Several at once: each comparison waits for the one before.
    const ABREAST: usize = 4;
    let mut least = [F::splat(simd, F::INFINITY); ABREAST];
    let (groups, rest) = costs.as_chunks::<ABREAST>();
    for costs in groups {
        for l in 0..ABREAST {
            least[l] = lower::<F, S>(simd, costs[l], least[l]);
        }
    }
    for &cost in rest {
        least[0] = lower::<F, S>(simd, cost, least[0]);
    }
    let [a, b, c, d] = least;
    let a = lower::<F, S>(simd, a, b);
    let b = lower::<F, S>(simd, c, d);
    F::least(simd, lower::<F, S>(simd, a, b))
}

/// The lower one of a cost, unless it is a NaN, and another number.
#[inline(always)]
fn lower<F: Float, S: Simd>(simd: S, cost: F::Vector<S>, least: F::Vector<S>) -> F::Vector<S> {
    F::select(simd, F::less(simd, cost, least), cost, least)
}

kernel! {
    /// The first place with the lowest cost of every row of `stride`.
    pub(crate) fn first_lowest[F: Float](costs: &[F], stride: usize, labels: &mut [u32]) = first_lowest_of_rows
}

#[inline(always)]
fn first_lowest_of_rows<F: Float, S: Simd>(
    simd: S,
    costs: &[F],
    stride: usize,
    labels: &mut [u32],
) {
    for (costs, label) in costs.chunks_exact(stride).zip(labels) {
        let costs = F::vectors::<S>(costs).0;
        *label = first_place::<F, S>(simd, costs, least_of::<F, S>(simd, costs));
    }
}

/// The first place of a row with this cost; 0 if there is none.
#[inline(always)]
fn first_place<F: Float, S: Simd>(simd: S, costs: &[F::Vector<S>], cost: F) -> u32 {
    let cost = F::splat(simd, cost);
    let lanes = lanes::<F, S>();
    let mut place = 0;
    // The last one that is found stays: a search that ends at the first would mispredict a branch in each row.
    for (vector, &other) in costs.iter().enumerate().rev() {
        let lane = first_lane(F::equal(simd, other, cost), lanes);
        let here = vector * lanes + lane;
        place = if lane < lanes { here } else { place };
    }
    place as u32
}

/// Puts 0 where shares are [`LOST`].
pub(crate) fn drop_lost<F: Float>(shares: &mut [F]) {
    let lost = F::from_f64(LOST);
    vectorised!({
        for share in shares {
            *share = if *share < lost { F::zero() } else { *share };
        }
    });
}

/// Adds up shares of all rows with their weights; and shares times costs, if there are any. One sum for every place.
pub(crate) fn totals<F: Float>(
    shares: &[F],
    costs: &[F],
    stride: usize,
    weights: &[f64],
    masses: &mut Vec<f64>,
    from_costs: &mut Vec<f64>,
) {
    for sums in [&mut *masses, &mut *from_costs] {
        sums.clear();
        sums.resize(stride, 0.0);
    }
    let masses = &mut masses[..];
    let from_costs = &mut from_costs[..];
    // Sums of some places stay in registers while all rows add to them.
    vectorised!({
        let parts = masses.as_chunks_mut::<LANES>().0.iter_mut();
        let parts = parts.zip(from_costs.as_chunks_mut::<LANES>().0).enumerate();
        for (part, (mass, from_costs)) in parts {
            let mut sums = [0.0; LANES];
            let mut times_costs = [0.0; LANES];
            for (i, weight) in weights.iter().enumerate() {
                let places = i * stride + part * LANES..i * stride + (part + 1) * LANES;
                let mut of_row = [0.0; LANES];
                for (share, q) in of_row.iter_mut().zip(&shares[places.clone()]) {
                    *share = weight * q.to_f64();
                }
                for l in 0..LANES {
                    sums[l] += of_row[l];
                }
                if !costs.is_empty() {
                    let costs = &costs[places][..LANES];
                    for l in 0..LANES {
                        let term = of_row[l] * costs[l].to_f64();
                        // Rows of weight 0 may be infinitely far.
                        times_costs[l] += if of_row[l] > 0.0 { term } else { 0.0 };
                    }
                }
            }
            (*mass, *from_costs) = (sums, times_costs);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn rows<F: Float>(n: usize, k: usize, stride: usize, spread: f64) -> Vec<F> {
        let mut rng = Rng::from_seed(k as u64);
        let place = |i| {
            if i % stride < k {
                F::from_f64(5.0 + spread * rng.uniform())
            } else {
                F::INFINITY
            }
        };
        (0..n * stride).map(place).collect()
    }

    fn shares_are_the_naive_ones<F: Float>(within: f64) {
        for (k, stride) in [(1, 16), (7, 16), (33, 48), (64, 64), (200, 208)] {
            for (beta, spread) in [(0.0, 1.0), (0.7, 3.0), (2.0, 500.0), (1e30, 1.0)] {
                let costs = rows::<F>(9, k, stride, spread);
                let mut shares = vec![F::one(); 9 * stride];
                let mut results = Vec::new();
                responsibilities(&costs, stride, k, beta, &mut shares, &mut results);
                let mut labels = [0; 9];
                let mut alone = Vec::new();
                for row in costs.chunks_exact(stride) {
                    sum(row, beta, &mut alone);
                }
                first_lowest(&costs, stride, &mut labels);
                let weights: Vec<f64> = (0..9).map(|i| 1.0 + i as f64).collect();
                let [mut masses, mut added, mut alone_masses, mut none] = [const { Vec::new() }; 4];
                totals(&shares, &costs, stride, &weights, &mut masses, &mut added);
                totals(&shares, &[], stride, &weights, &mut alone_masses, &mut none);
                assert_eq!((&alone_masses, none), (&masses, vec![0.0; stride]));
                for i in 0..9 {
                    let row = costs[i * stride..][..k].iter();
                    let row: Vec<f64> = row.map(|s| s.to_f64()).collect();
                    let mut sorted = row.clone();
                    sorted.sort_by(f64::total_cmp);
                    assert_eq!(row[labels[i] as usize], sorted[0]);
                    let weight = |s: &f64| (-beta * (s - sorted[0])).exp();
                    let p: Vec<f64> = row.iter().map(weight).collect();
                    let sum: f64 = p.iter().sum();
                    assert!((results[i].sum - sum).abs() <= within * sum);
                    // A list of all of them, best first, and the sums alone.
                    let mut list = vec![F::zero(); stride];
                    let mut of_list = Vec::new();
                    let best_first: Vec<F> = sorted.iter().map(|s| F::from_f64(*s)).collect();
                    of_lists(&best_first, k, beta, &mut list, &mut of_list);
                    for row in [of_list[0], alone[i]] {
                        assert!((row.sum - sum).abs() <= within * sum);
                        assert!((row.expected - results[i].expected).abs() <= within * row.best);
                    }
                    for (q, s) in list.iter().zip(&sorted) {
                        let p = weight(s) / sum;
                        let off = within * (1.0 + beta * (s - sorted[0]).min(100.0 / beta));
                        assert!((q.to_f64() - p).abs() <= off * p + LOST);
                    }
                    let expected: f64 = p.iter().zip(&row).map(|(p, s)| p / sum * s).sum();
                    assert!((results[i].expected - expected).abs() <= within * expected);
                    for (c, p) in p.iter().enumerate() {
                        let q = shares[i * stride + c].to_f64();
                        // Differences of costs are rounded to the type.
                        let off = within * (1.0 + beta * (row[c] - sorted[0]).min(100.0 / beta));
                        let p = p / sum;
                        assert!((q - p).abs() <= off * p + LOST, "{q} {p}");
                    }
                    let padding = &shares[i * stride + k..(i + 1) * stride];
                    assert!(padding.iter().all(|q| *q == F::zero()));
                }
                for c in 0..k {
                    let weighted = |i: usize| weights[i] * shares[i * stride + c].to_f64();
                    let mass: f64 = (0..9).map(weighted).sum();
                    let from_costs = (0..9).map(|i| weighted(i) * costs[i * stride + c].to_f64());
                    let from_costs: f64 = from_costs.sum();
                    assert!((masses[c] - mass).abs() <= 1e-13 * mass);
                    assert!((added[c] - from_costs).abs() <= 1e-13 * from_costs);
                }
            }
        }
    }

    #[test]
    fn shares_are_those_of_plain_exponentials() {
        shares_are_the_naive_ones::<f32>(2e-6);
        shares_are_the_naive_ones::<f64>(1e-13);
    }

    /// Rows without a finite cost, of which nothing is known, and with a cost that is none.
    #[test]
    fn what_is_infinitely_far_is_shared_out_equally() {
        let mut costs = vec![f32::INFINITY; 48];
        costs[16..19].copy_from_slice(&[1.0, f32::NAN, 2.0]);
        costs[32..35].copy_from_slice(&[1e37, f32::INFINITY, 0.0]);
        let mut shares = vec![0.0; 48];
        let mut results = Vec::new();
        responsibilities(&costs, 16, 3, 1.0, &mut shares, &mut results);
        assert_eq!(shares[..4], [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0]);
        assert!(results[0].best.is_infinite() && shares[17] == 0.0);
        assert_eq!(shares[32..36], [0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn what_is_within_reach_is_listed() {
        let costs = [1.0, 2.0, f64::NAN, 9.0, 2.5, 7.0];
        let mut row = [f64::INFINITY; 16];
        row[..6].copy_from_slice(&costs);
        let mut errors = [0.0; 16];
        (errors[0], errors[3]) = (0.5, 8.0);
        let mut results = Vec::new();
        let mut ids = Vec::new();
        contenders(&row, &errors, |upper| upper + 1.0, &mut results);
        let Contenders { upper, number } = results[0];
        assert_eq!((results.len(), upper, number), (1, 1.5, 5));
        not_above(&row, &errors, upper + 1.0, &mut ids);
        assert_eq!(ids, [0, 1, 2, 3, 4]);
    }
}
