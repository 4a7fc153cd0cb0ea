//! Scores of all components turned into responsibilities, row by row, with whole vectors.

use super::exponential::quick;
use crate::base::float::Float;
use crate::base::simd::{LANES, vectorised};

/// The sum of some numbers, by halves.
#[inline(always)]
fn added<F: Float>(mut numbers: [F; LANES]) -> F {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for l in 0..width {
            numbers[l] += numbers[l + width];
        }
    }
    numbers[0]
}

/// The least of some numbers, by halves.
#[inline(always)]
fn least_lane<F: Float>(mut low: [F; LANES]) -> F {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for l in 0..width {
            let (a, b) = (low[l], low[l + width]);
            low[l] = if a < b { a } else { b };
        }
    }
    low[0]
}

/// The least of all scores with their errors added: the best one is not above it.
pub(crate) fn least_upper<F: Float>(row: &[F], errors: &[F]) -> F {
    vectorised!({
        let mut low = [F::INFINITY; LANES];
        let lines = row.as_chunks::<LANES>().0;
        for (line, errors) in lines.iter().zip(errors.as_chunks::<LANES>().0) {
            for l in 0..LANES {
                let upper = line[l] + errors[l];
                low[l] = if upper < low[l] { upper } else { low[l] };
            }
        }
        least_lane(low)
    })
}

/// The largest error of the scores that, less their errors, are not above `reach`; 0 for none.
pub(crate) fn largest_error<F: Float>(row: &[F], errors: &[F], reach: F) -> F {
    vectorised!({
        let mut most = [F::zero(); LANES];
        let lines = row.as_chunks::<LANES>().0;
        for (line, errors) in lines.iter().zip(errors.as_chunks::<LANES>().0) {
            for l in 0..LANES {
                let far = line[l] - errors[l] > reach;
                let error = if far { F::zero() } else { errors[l] };
                most[l] = if error > most[l] { error } else { most[l] };
            }
        }
        -least_lane(most.map(|error| -error))
    })
}

/// The places of a row whose scores, less their errors, are not above `reach`: into `ids`. A NaN is not above anything.
pub(crate) fn not_above<F: Float>(row: &[F], errors: &[F], reach: F, ids: &mut Vec<u32>) {
    ids.clear();
    vectorised!({
        let lines = row.as_chunks::<LANES>().0;
        let parts = lines.iter().zip(errors.as_chunks::<LANES>().0);
        for (number, (line, errors)) in parts.enumerate() {
            let (mut near, mut any) = ([F::zero(); LANES], F::zero());
            for l in 0..LANES {
                let far = line[l] - errors[l] > reach;
                near[l] = if far { F::zero() } else { F::one() };
                any += near[l];
            }
            if any != F::zero() {
                for (lane, near) in near.iter().enumerate() {
                    if *near != F::zero() {
                        ids.push((number * LANES + lane) as u32);
                    }
                }
            }
        }
    });
}

/// What a row of shares was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Row {
    /// The lowest score.
    pub(crate) best: f64,
    /// $\sum_c e^{-\beta (s_c - s)}$ with $s$ the lowest score.
    pub(crate) sum: f64,
    /// The expectation of the score.
    pub(crate) expected: f64,
}

/// Responsibilities of the first `k` of `stride` places of every row, in the type of the data; the others get 0. `stride` is
/// a multiple of [`LANES`], and the scores of places from `k` on are infinite. Where no score is finite, all are equal.
pub(crate) fn responsibilities<F: Float>(
    scores: &[F],
    (stride, k): (usize, usize),
    beta: f64,
    shares: &mut [F],
    found: &mut Vec<Row>,
) {
    let factor = factor(beta);
    found.clear();
    vectorised!({
        let rows = scores.chunks_exact(stride);
        for (scores, shares) in rows.zip(shares.chunks_exact_mut(stride)) {
            let row = log_sum_exp(scores, factor, shares);
            let scale = F::from_f64(1.0 / row.sum);
            for share in &mut *shares {
                *share *= scale;
            }
            if !row.best.is_finite() {
                shares[..k].fill(F::from_f64(1.0 / k as f64));
                shares[k..].fill(F::zero());
            }
            found.push(row);
        }
    });
}

/// The sums alone: what log-densities are made of.
pub(crate) fn sums<F: Float>(scores: &[F], stride: usize, beta: f64, found: &mut Vec<Row>) {
    let (factor, mut scratch) = (factor(beta), vec![F::zero(); stride]);
    found.clear();
    vectorised!({
        for scores in scores.chunks_exact(stride) {
            found.push(log_sum_exp(scores, factor, &mut scratch));
        }
    });
}

/// What takes differences of scores to exponents.
fn factor<F: Float>(beta: f64) -> F {
    // Beyond it, every difference is lost.
    F::from_f64(-beta.min(F::LARGEST_SCORE))
}

/// Numbers that are looked at together: most of them have none that counts, where components are many.
const GROUP: usize = 4 * LANES;

/// The sum of the exponentials about the best score of a row, and these themselves into `shares`.
#[inline(always)]
fn log_sum_exp<F: Float>(scores: &[F], factor: F, shares: &mut [F]) -> Row {
    let least = least_of(scores);
    let (mut sums, mut inner) = ([F::zero(); LANES], [F::zero(); LANES]);
    for (scores, shares) in scores.chunks(GROUP).zip(shares.chunks_mut(GROUP)) {
        let lowest = least_of(scores);
        // Of NaN too.
        let counts = (lowest - least) * factor > F::LEAST_EXPONENT;
        if !counts {
            shares.fill(F::zero());
            continue;
        }
        let lines = scores.as_chunks::<LANES>().0.iter();
        for (line, shares) in lines.zip(shares.as_chunks_mut::<LANES>().0) {
            for l in 0..LANES {
                let above = line[l] - least;
                let exponent = above * factor;
                // Not of NaN either: infinity less infinity, and 0 times infinity.
                let live = exponent > F::LEAST_EXPONENT;
                let p = quick(exponent);
                let p = if live { p } else { F::zero() };
                let above = if live { above } else { F::zero() };
                shares[l] = p;
                sums[l] += p;
                inner[l] += p * above;
            }
        }
    }
    let (sum, expected) = (added(sums).to_f64(), added(inner).to_f64());
    let best = least.to_f64();
    Row {
        best,
        sum,
        expected: best + expected / sum,
    }
}

#[inline(always)]
fn least_of<F: Float>(scores: &[F]) -> F {
    let mut low = [F::INFINITY; LANES];
    for line in scores.as_chunks::<LANES>().0 {
        for l in 0..LANES {
            low[l] = if line[l] < low[l] { line[l] } else { low[l] };
        }
    }
    least_lane(low)
}

/// The first place with the lowest score, for every row of `stride` numbers, a multiple of [`LANES`].
pub(crate) fn first_lowest<F: Float>(scores: &[F], stride: usize, labels: &mut [u32]) {
    vectorised!({
        for (scores, label) in scores.chunks_exact(stride).zip(labels) {
            let least = least_of(scores);
            let mut at = 0;
            for (number, line) in scores.as_chunks::<LANES>().0.iter().enumerate() {
                let mut any = false;
                for score in line {
                    any |= *score == least;
                }
                if any {
                    let lane = line.iter().position(|score| *score == least);
                    at = number * LANES + lane.unwrap_or(0);
                    break;
                }
            }
            *label = at as u32;
        }
    });
}

/// Puts 0 where shares are below `least`.
pub(crate) fn drop_below<F: Float>(shares: &mut [F], least: F) {
    vectorised!({
        for share in shares {
            *share = if *share < least { F::zero() } else { *share };
        }
    });
}

/// Adds up shares of all rows with their weights, and shares times scores: two sums for every place.
pub(crate) fn totals<F: Float>(
    (shares, scores): (&[F], &[F]),
    stride: usize,
    weights: &[f64],
    totals: &mut Vec<[f64; 2]>,
) {
    totals.clear();
    vectorised!({
        for first in (0..stride).step_by(LANES) {
            let (mut mass, mut scored) = ([0.0; LANES], [0.0; LANES]);
            for (i, weight) in weights.iter().enumerate() {
                let place = i * stride + first;
                let (Some(q), Some(s)) = (
                    shares[place..].first_chunk::<LANES>(),
                    scores[place..].first_chunk::<LANES>(),
                ) else {
                    continue;
                };
                let (mut shares, mut terms) = ([0.0; LANES], [0.0; LANES]);
                for l in 0..LANES {
                    shares[l] = weight * q[l].to_f64();
                }
                for l in 0..LANES {
                    terms[l] = shares[l] * s[l].to_f64();
                }
                // Rows of weight 0 may be infinitely far.
                for l in 0..LANES {
                    terms[l] = if shares[l] > 0.0 { terms[l] } else { 0.0 };
                }
                for l in 0..LANES {
                    mass[l] += shares[l];
                    scored[l] += terms[l];
                }
            }
            for l in 0..LANES {
                totals.push([mass[l], scored[l]]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn rows<F: Float>(n: usize, k: usize, stride: usize, spread: f64) -> Vec<F> {
        let mut rng = Rng::from_seed(k as u64);
        let place = |i| match i % stride < k {
            true => F::from_f64(5.0 + spread * rng.uniform()),
            false => F::INFINITY,
        };
        (0..n * stride).map(place).collect()
    }

    fn shares_are_the_naive_ones<F: Float>(within: f64) {
        for (k, stride) in [(1, 16), (7, 16), (16, 16), (33, 48), (200, 208)] {
            for (beta, spread) in [(0.0, 1.0), (0.7, 3.0), (2.0, 500.0), (1e30, 1.0)] {
                let scores = rows::<F>(9, k, stride, spread);
                let (mut shares, mut found) = (vec![F::one(); 9 * stride], Vec::new());
                responsibilities(&scores, (stride, k), beta, &mut shares, &mut found);
                let mut labels = [0; 9];
                first_lowest(&scores, stride, &mut labels);
                let weights: Vec<f64> = (0..9).map(|i| 1.0 + i as f64).collect();
                let mut sums = Vec::new();
                totals((&shares, &scores), stride, &weights, &mut sums);
                for i in 0..9 {
                    let row: Vec<f64> = scores[i * stride..][..k]
                        .iter()
                        .map(|s| s.to_f64())
                        .collect();
                    let mut sorted = row.clone();
                    sorted.sort_by(f64::total_cmp);
                    assert_eq!(row[labels[i] as usize], sorted[0]);
                    let p: Vec<f64> = row
                        .iter()
                        .map(|s| (-beta * (s - sorted[0])).exp())
                        .collect();
                    let sum: f64 = p.iter().sum();
                    assert!((found[i].sum - sum).abs() <= within * sum);
                    let expected: f64 = p.iter().zip(&row).map(|(p, s)| p / sum * s).sum();
                    assert!((found[i].expected - expected).abs() <= within * expected);
                    for (c, p) in p.iter().enumerate() {
                        let q = shares[i * stride + c].to_f64();
                        // Differences of scores are rounded to the type.
                        let off = within * (1.0 + beta * (row[c] - sorted[0]).min(100.0 / beta));
                        assert!(
                            (q - p / sum).abs() <= off * p / sum + 1e-37,
                            "{q} {}",
                            p / sum
                        );
                    }
                    assert!(
                        shares[i * stride + k..(i + 1) * stride]
                            .iter()
                            .all(|q| *q == F::zero())
                    );
                }
                for c in 0..k {
                    let of = |i: usize| weights[i] * shares[i * stride + c].to_f64();
                    let mass: f64 = (0..9).map(of).sum();
                    let scored: f64 = (0..9)
                        .map(|i| of(i) * scores[i * stride + c].to_f64())
                        .sum();
                    assert!((sums[c][0] - mass).abs() <= 1e-13 * mass);
                    assert!((sums[c][1] - scored).abs() <= 1e-13 * scored);
                }
            }
        }
    }

    #[test]
    fn shares_are_those_of_plain_exponentials() {
        shares_are_the_naive_ones::<f32>(2e-6);
        shares_are_the_naive_ones::<f64>(1e-13);
    }

    /// Rows without a finite score, of which nothing is known, and with a score that is none.
    #[test]
    fn what_is_infinitely_far_is_shared_out_equally() {
        let mut scores = vec![f32::INFINITY; 48];
        scores[16..19].copy_from_slice(&[1.0, f32::NAN, 2.0]);
        scores[32..35].copy_from_slice(&[1e37, f32::INFINITY, 0.0]);
        let (mut shares, mut found) = (vec![0.0; 48], Vec::new());
        responsibilities(&scores, (16, 3), 1.0, &mut shares, &mut found);
        assert_eq!(shares[..4], [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0]);
        assert!(found[0].best.is_infinite() && shares[17] == 0.0);
        assert_eq!(shares[32..36], [0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn what_is_within_reach_is_listed() {
        let scores = [1.0, 2.0, f64::NAN, 9.0, 2.5, 7.0];
        let mut row = [f64::INFINITY; 16];
        row[..6].copy_from_slice(&scores);
        let mut errors = [0.0; 16];
        (errors[0], errors[3]) = (0.5, 8.0);
        let reach = least_upper(&row, &errors) + 1.0;
        assert_eq!(reach, 2.5);
        let mut ids = Vec::new();
        not_above(&row, &errors, reach, &mut ids);
        assert_eq!(ids, [0, 1, 2, 3, 4]);
        assert_eq!(largest_error(&row, &errors, reach), 8.0);
        assert_eq!(largest_error(&row, &errors, 0.9), 0.5);
    }
}
