//! Squared distances of rows with few coordinates to padded centres, over the coordinates that are there, or over all where the
//! others are 0.
//!
//! A row is a sorted list of coordinates and as many values. Every function adds up in the same order, even places
//! and odd places apart, so that the same distance has the same bits wherever it is computed.

use super::distance::Scaled;
use super::stride;
use crate::base::float::Float;
use crate::base::simd::vectorised;

/// The meaning of a coordinate that a row does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nothing is known of it.
    Unknown,
    Zero,
}

impl Absent {
    #[inline(always)]
    pub(crate) fn is_unknown(self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Zero => false,
        }
    }
}

/// Rows that have some of their coordinates, each its own number of them.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a, F> {
    /// (n + 1): where the entries of each row start; the last one is where they end.
    pub(crate) starts: &'a [usize],
    /// The coordinates of all rows, one row after the other.
    pub(crate) ids: &'a [u32],
    /// Their values.
    pub(crate) values: &'a [F],
    pub(crate) absent: Absent,
    /// The coordinates that every row has, and begins with, where absent ones are 0.
    pub(crate) whole: &'a [u32],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known<'a, F> {
    pub(crate) ids: &'a [u32],
    pub(crate) values: &'a [F],
}

impl<F: Float> Known<'_, F> {
    /// The coordinates that it knows, with its numbers.
    #[inline(always)]
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, f64)> {
        let values = self.values.iter().map(|x| x.to_f64());
        self.ids.iter().map(|j| *j as usize).zip(values)
    }
}

impl<'a, F> Entries<'a, F> {
    /// Number of rows.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows from `first` on.
    #[inline(always)]
    pub(crate) fn from(&self, first: usize) -> Self {
        let starts = &self.starts[first..];
        Self { starts, ..*self }
    }

    /// The rows one by one.
    #[inline(always)]
    pub(crate) fn rows(&self) -> impl Iterator<Item = Known<'a, F>> {
        (0..self.len()).map(|i| self.row(i))
    }

    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> Known<'a, F> {
        let places = self.starts[i]..self.starts[i + 1];
        Known {
            ids: &self.ids[places.clone()],
            values: &self.values[places],
        }
    }
}

/// Tables (k, d), padded, turned round: (d, tables, k), each row of `k` padded with zeros to a [`stride`].
pub(crate) fn by_coordinate<F: Float, const TABLES: usize>(
    tables: [&[F]; TABLES],
    dim: usize,
    k: usize,
) -> Vec<F> {
    let from = stride(dim);
    let to = stride(k);
    let mut out = vec![F::zero(); dim * TABLES * to];
    for (j, out) in out.chunks_exact_mut(TABLES * to).enumerate() {
        for (table, out) in tables.iter().zip(out.chunks_exact_mut(to)) {
            for (c, out) in out[..k].iter_mut().enumerate() {
                *out = table[c * from + j];
            }
        }
    }
    out
}

/// The cost of one row and the centre whose numbers start at `start`: the sum of what `term` makes of squared differences,
/// and of their places among the numbers of all centres.
#[inline(always)]
fn cost<F: Float>(
    row: Known<'_, F>,
    centres: &[F],
    start: usize,
    term: impl Fn(F, usize) -> F,
) -> F {
    let Known { ids, values } = row;
    let part = |(&j, &x): (&u32, &F)| {
        let place = start + j as usize;
        let t = x - centres[place];
        term(t * t, place)
    };
    let (id_pairs, id_last) = ids.as_chunks::<2>();
    let (value_pairs, value_last) = values.as_chunks::<2>();
    let mut even = F::zero();
    let mut odd = F::zero();
    for (ids, values) in id_pairs.iter().zip(value_pairs) {
        even += part((&ids[0], &values[0]));
        odd += part((&ids[1], &values[1]));
    }
    for last in id_last.iter().zip(value_last) {
        even += part(last);
    }
    even + odd
}

/// Squared distances of one row to the centres `ids` of `centres` (k, d), into `out`.
pub(crate) fn to_some<F: Float>(
    row: Known<'_, F>,
    centres: &[F],
    dim: usize,
    ids: &[u32],
    out: &mut Vec<F>,
) {
    let stride = stride(dim);
    out.clear();
    out.extend(
        (ids.iter()).map(|&c| cost(row, centres, c as usize * stride, |squared, _| squared)),
    );
}

/// Scaled squared distances of one row to the centres `ids`, with a factor and a term per component and coordinate, into `out`.
pub(crate) fn scaled_to_some<F: Float>(
    row: Known<'_, F>,
    centres: &[F],
    dim: usize,
    scales: Scaled<'_, F>,
    ids: &[u32],
    out: &mut Vec<F>,
) {
    let stride = stride(dim);
    out.clear();
    let scaled = |squared, place: usize| squared * scales.factors[place] + scales.terms[place];
    out.extend((ids.iter()).map(|&c| cost(row, centres, c as usize * stride, scaled)));
}

/// Lowers each `nearest[i]` to the squared distance from row `i` to `centre`, if that is smaller.
pub(crate) fn lower<F: Float>(rows: Entries<'_, F>, centre: &[F], nearest: &mut [F]) {
    for (row, nearest) in rows.rows().zip(nearest) {
        let distance = cost(row, centre, 0, |squared, _| squared);
        if distance < *nearest {
            *nearest = distance;
        }
    }
}

/// Squared distances of all rows to all `k` centres, which come [by coordinate](by_coordinate): (n, k) into `out`. `SCALED` ones
/// have factors and terms, which come by coordinate too: (d, 2, k). They are the numbers that [`to_some`] and
/// [`scaled_to_some`] give.
pub(crate) fn to_all<F: Float, const SCALED: bool>(
    rows: Entries<'_, F>,
    centres: &[F],
    scales: &[F],
    k: usize,
    out: &mut Vec<F>,
) {
    out.resize(rows.len() * k, F::zero());
    vectorised!(match stride(k) {
        4 => lanes::<F, SCALED, 4>(rows, centres, scales, k, out),
        8 => lanes::<F, SCALED, 8>(rows, centres, scales, k, out),
        _ => lanes::<F, SCALED, 16>(rows, centres, scales, k, out),
    });
}

/// `L` components at a time.
#[inline(always)]
fn lanes<F: Float, const SCALED: bool, const L: usize>(
    rows: Entries<'_, F>,
    centres: &[F],
    scales: &[F],
    k: usize,
    out: &mut [F],
) {
    let stride = stride(k);
    for (row, out) in rows.rows().zip(out.chunks_exact_mut(k)) {
        for (chunk, out) in out.chunks_mut(L).enumerate() {
            let mut sums = [[F::zero(); L]; 2];
            let part = |sums: &mut [F; L], j: u32, x: F| {
                let j = j as usize;
                let first = chunk * L;
                let mu = *at::<F, L>(centres, j * stride + first);
                if SCALED {
                    let factors = *at::<F, L>(scales, 2 * j * stride + first);
                    let terms = *at::<F, L>(scales, (2 * j + 1) * stride + first);
                    for l in 0..L {
                        let t = x - mu[l];
                        sums[l] += t * t * factors[l] + terms[l];
                    }
                } else {
                    for l in 0..L {
                        let t = x - mu[l];
                        sums[l] += t * t;
                    }
                }
            };
            let (id_pairs, id_last) = row.ids.as_chunks::<2>();
            let (value_pairs, value_last) = row.values.as_chunks::<2>();
            for (ids, values) in id_pairs.iter().zip(value_pairs) {
                part(&mut sums[0], ids[0], values[0]);
                part(&mut sums[1], ids[1], values[1]);
            }
            for (&j, &x) in id_last.iter().zip(value_last) {
                part(&mut sums[0], j, x);
            }
            for (l, out) in out.iter_mut().enumerate() {
                *out = sums[0][l] + sums[1][l];
            }
        }
    }
}

#[inline(always)]
pub(crate) fn at<T, const L: usize>(values: &[T], start: usize) -> &[T; L] {
    (&values[start..start + L]).try_into().expect("L numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use approx::assert_abs_diff_eq;

    #[test]
    fn all_some_and_lower_are_the_naive_sums_bit_for_bit_alike() {
        let mut rng = Rng::from_seed(1);
        let n = 6;
        let d = 23;
        // The last two have rows of several lengths, one of them empty.
        let lengths = [
            (1, [1; 6]),
            (3, [2; 6]),
            (3, [9; 6]),
            (4, [23; 6]),
            (7, [8; 6]),
            (20, [5; 6]),
            (33, [11; 6]),
            (5, [4, 0, 8, 12, 20, 1]),
            (18, [23, 20, 17, 2, 11, 8]),
        ];
        for (k, lengths) in lengths {
            let s = stride(d);
            let mut padded = || -> Vec<f64> {
                (0..k * s)
                    .map(|i| if i % s < d { rng.normal() } else { 0.0 })
                    .collect()
            };
            let mu = padded();
            let factors = padded();
            let terms = padded();
            let mut starts = vec![0];
            let mut ids = Vec::new();
            for length in lengths {
                let mut known = vec![0; length];
                rng.fill_distinct(&mut known, 0, d);
                known.sort_unstable();
                ids.extend(known);
                starts.push(ids.len());
            }
            let values: Vec<f64> = ids.iter().map(|_| rng.normal()).collect();
            let rows = Entries {
                starts: &starts,
                ids: &ids,
                values: &values,
                absent: Absent::Unknown,
                whole: &[],
            };
            let naive = |i: usize, c: usize, scaled: bool| -> f64 {
                let Known { ids, values } = rows.row(i);
                let part = |(&j, x): (&u32, &f64)| {
                    let place = c * s + j as usize;
                    let squared = (x - mu[place]).powi(2);
                    let scaled_part = factors[place] * squared + terms[place];
                    if scaled { scaled_part } else { squared }
                };
                ids.iter().zip(values).map(part).sum()
            };
            let mut table = Vec::new();
            let mut all_scaled = Vec::new();
            let mut some = Vec::new();
            let turned = by_coordinate([&mu], d, k);
            to_all::<f64, false>(rows, &turned, &[], k, &mut table);
            let scales = by_coordinate([&factors, &terms], d, k);
            to_all::<f64, true>(rows, &turned, &scales, k, &mut all_scaled);
            let ids: Vec<u32> = (0..k as u32).rev().collect();
            let mut nearest = vec![f64::INFINITY; n];
            lower(rows, &mu[..s], &mut nearest);
            for i in 0..n {
                assert_eq!(nearest[i], table[i * k]);
                let check = |some: &[f64], table: &[f64], scaled: bool| {
                    for (&c, &got) in ids.iter().zip(some) {
                        assert_eq!(got, table[i * k + c as usize]);
                        let naive = naive(i, c as usize, scaled);
                        let within = 1e-12 * (1.0 + if scaled { d as f64 } else { got });
                        assert_abs_diff_eq!(got, naive, epsilon = within);
                    }
                };
                to_some(rows.row(i), &mu, d, &ids, &mut some);
                check(&some, &table, false);
                let factors = &factors[..];
                let terms = &terms[..];
                let scales = Scaled { factors, terms };
                scaled_to_some(rows.row(i), &mu, d, scales, &ids, &mut some);
                check(&some, &all_scaled, true);
            }
        }
    }
}
