//! Squared Euclidean distances between padded rows: directly, plain or with a factor per coordinate, and by expansion (E21).

use super::columns::{Columns, PIECE, ROWS};
use super::stride;
use crate::base::float::Float;
use crate::base::simd::{SimdFloat, kernel, vectorised};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use pulp::Simd;

/// `|a - b|^2` of two padded rows.
#[inline(always)]
fn squared<F: Float, S: Simd>(simd: S, a: &[F], b: &[F]) -> F {
    if is_short(a) {
        return short(a, b);
    }
    let (a, _) = F::vectors::<S>(a);
    let (b, _) = F::vectors::<S>(b);
    let mut sums = F::splat(simd, F::zero());
    for (&a, &b) in a.iter().zip(b) {
        let t = F::minus(simd, a, b);
        sums = F::times_plus(simd, t, t, sums);
    }
    F::sum(simd, sums)
}

/// Four at a time: `a` is read once, and the four sums do not wait for each other.
#[inline(always)]
fn squared_of_four<F: Float, S: Simd>(simd: S, a: &[F], b: [&[F]; 4]) -> [F; 4] {
    if is_short(a) {
        return [
            short(a, b[0]),
            short(a, b[1]),
            short(a, b[2]),
            short(a, b[3]),
        ];
    }
    let (a, _) = F::vectors::<S>(a);
    let mut others = [a; 4];
    for (other, b) in others.iter_mut().zip(b) {
        *other = &F::vectors::<S>(b).0[..a.len()];
    }
    let mut sums = [F::splat(simd, F::zero()); 4];
    for (j, &a) in a.iter().enumerate() {
        for (sum, b) in sums.iter_mut().zip(&others) {
            let t = F::minus(simd, a, b[j]);
            *sum = F::times_plus(simd, t, t, *sum);
        }
    }
    let [a, b, c, d] = sums;
    [
        F::sum(simd, a),
        F::sum(simd, b),
        F::sum(simd, c),
        F::sum(simd, d),
    ]
}

/// Squared distance with a factor for every coordinate.
#[inline(always)]
fn scaled<F: SimdFloat + Float, S: Simd>(simd: S, a: &[F], b: &[F], factors: &[F]) -> F {
    let (a, a_rest) = F::vectors::<S>(a);
    let (b, b_rest) = F::vectors::<S>(b);
    let (factors, factors_rest) = F::vectors::<S>(factors);
    let mut sums = F::splat(simd, F::zero());
    for ((&a, &b), &factor) in a.iter().zip(b).zip(factors) {
        let t = F::minus(simd, a, b);
        sums = F::times_plus(simd, F::times(simd, t, t), factor, sums);
    }
    if !a_rest.is_empty() {
        let t = F::minus(simd, F::partial(simd, a_rest), F::partial(simd, b_rest));
        let factors = F::partial(simd, factors_rest);
        sums = F::times_plus(simd, F::times(simd, t, t), factors, sums);
    }
    F::sum(simd, sums)
}

#[inline(always)]
pub(super) fn squared_norm<F: Float, S: Simd>(simd: S, row: &[F]) -> F {
    let (row, rest) = F::vectors::<S>(row);
    let mut sums = F::splat(simd, F::zero());
    for &x in row {
        sums = F::times_plus(simd, x, x, sums);
    }
    if !rest.is_empty() {
        let x = F::partial(simd, rest);
        sums = F::times_plus(simd, x, x, sums);
    }
    F::sum(simd, sums)
}

/// `a - b` of two padded rows into `out`; returns its squared norm.
#[inline(always)]
pub(super) fn relative<F: Float, S: Simd>(simd: S, a: &[F], b: &[F], out: &mut [F]) -> F {
    let (a, a_rest) = F::vectors::<S>(a);
    let (b, b_rest) = F::vectors::<S>(b);
    let (out, out_rest) = F::vectors_mut::<S>(out);
    let mut sums = F::splat(simd, F::zero());
    for ((&a, &b), out) in a.iter().zip(b).zip(out) {
        *out = F::minus(simd, a, b);
        sums = F::times_plus(simd, *out, *out, sums);
    }
    let mut sum = F::sum(simd, sums);
    // Rows shorter than a vector.
    for ((&a, &b), out) in a_rest.iter().zip(b_rest).zip(out_rest) {
        *out = a - b;
        sum += *out * *out;
    }
    sum
}

/// The squared distance of two rows in `f64`.
pub(crate) fn exact<F: Float>(a: &[F], b: &[F]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| a.to_f64() - b.to_f64());
    differences.map(|t| t * t).sum()
}

/// Whether rows have 4 or 8 numbers. Then their distances are added up in the order of [`short`] on every processor.
#[inline(always)]
fn is_short<F>(row: &[F]) -> bool {
    row.len() <= 8
}

/// Rows of 4 or 8 numbers.
#[inline(always)]
fn short<F: Float>(a: &[F], b: &[F]) -> F {
    let (a, _) = a.as_chunks::<4>();
    let (b, _) = b.as_chunks::<4>();
    let mut sums = [F::zero(); 4];
    for (a, b) in a.iter().zip(b) {
        for l in 0..4 {
            let t = a[l] - b[l];
            sums[l] += t * t;
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// Squared distances from the padded row `x` to the rows `ids` of `centres`, into `out`.
pub(crate) fn to_some<F: Float>(x: &[F], centres: &[F], ids: &[u32], out: &mut Vec<F>) {
    out.clear();
    out.resize(ids.len(), F::zero());
    some(x, centres, ids, out);
}

kernel! {
    fn some[F: Float](x: &[F], centres: &[F], ids: &[u32], out: &mut [F]) = to_some_by_fours
}

#[inline(always)]
fn to_some_by_fours<F: Float, S: Simd>(
    simd: S,
    x: &[F],
    centres: &[F],
    ids: &[u32],
    out: &mut [F],
) {
    let (fours, rest) = ids.as_chunks::<4>();
    let (out_fours, out_rest) = out.as_chunks_mut::<4>();
    for (out, ids) in out_fours.iter_mut().zip(fours) {
        *out = to_four(simd, x, centres, ids);
    }
    if !rest.is_empty() {
        // Some of them again: a sum does not depend on its neighbors.
        let n = rest.len();
        let ids = [rest[0], rest[1 % n], rest[2 % n], rest[0]];
        out_rest.copy_from_slice(&to_four(simd, x, centres, &ids)[..n]);
    }
}

#[inline(always)]
fn to_four<F: Float, S: Simd>(simd: S, x: &[F], centres: &[F], ids: &[u32; 4]) -> [F; 4] {
    let mut rows = [x; 4];
    for (row, &id) in rows.iter_mut().zip(ids) {
        *row = &centres[id as usize * x.len()..][..x.len()];
    }
    squared_of_four(simd, x, rows)
}

kernel! {
    /// Squared distances from padded rows to a centre each, `ids[i]`.
    pub(crate) fn to_own[F: Float](
        rows: &[F],
        centres: &[F],
        stride: usize,
        ids: &[u32],
        out: &mut [F],
    ) = to_own_centres
}

#[inline(always)]
fn to_own_centres<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    centres: &[F],
    stride: usize,
    ids: &[u32],
    out: &mut [F],
) {
    /// Rows of `D` numbers: so few that a loop would take longer than the arithmetic.
    #[inline(always)]
    fn of_length<F: Float, const D: usize>(rows: &[F], centres: &[F], ids: &[u32], out: &mut [F]) {
        let (rows, _) = rows.as_chunks::<D>();
        let (centres, _) = centres.as_chunks::<D>();
        for ((x, &id), out) in rows.iter().zip(ids).zip(out) {
            *out = short(x, &centres[id as usize]);
        }
    }
    match stride {
        4 => of_length::<F, 4>(rows, centres, ids, out),
        8 => of_length::<F, 8>(rows, centres, ids, out),
        stride => {
            for ((x, &id), out) in rows.chunks_exact(stride).zip(ids).zip(out) {
                *out = squared(simd, x, &centres[id as usize * stride..][..stride]);
            }
        }
    }
}

/// At most this many centres are compared with every row directly: for more, products take less time.
pub(crate) const DIRECT_CENTRES: usize = 4;

kernel! {
    /// The nearest of few centres for padded rows, and the squared distances to them; of equals the first.
    pub(crate) fn nearest_of_few[F: Float](
        rows: &[F],
        centres: &[F],
        stride: usize,
        ids: &mut [u32],
        least: &mut [F],
    ) = to_few
}

#[inline(always)]
fn to_few<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    centres: &[F],
    stride: usize,
    ids: &mut [u32],
    least: &mut [F],
) {
    match stride {
        4 => return few_by_coordinate::<F, 4>(rows, centres, ids, least),
        8 => return few_by_coordinate::<F, 8>(rows, centres, ids, least),
        _ => (),
    }
    let (first, others) = centres.split_at(stride);
    for ((x, id), least) in rows.chunks_exact(stride).zip(ids).zip(least) {
        // If a row has a NaN, all its distances are NaN: NaN must not look like a large distance.
        let mut nearest = 0;
        let mut lowest = squared(simd, x, first);
        for (c, centre) in (1..).zip(others.chunks_exact(stride)) {
            let distance = squared(simd, x, centre);
            let nearer = distance < lowest;
            nearest = if nearer { c } else { nearest };
            lowest = if nearer { distance } else { lowest };
        }
        (*id, *least) = (nearest, lowest);
    }
}

/// Rows of `D` numbers side by side; distances in the order of [`short`], bit for bit.
#[inline(always)]
fn few_by_coordinate<F: Float, const D: usize>(
    rows: &[F],
    centres: &[F],
    ids: &mut [u32],
    squared: &mut [F],
) {
    let (rows, _) = rows.as_chunks::<D>();
    let (centres, _) = centres.as_chunks::<D>();
    let mut columns = Columns::new();
    let out = ids.chunks_mut(ROWS).zip(squared.chunks_mut(ROWS));
    for (rows, (ids, squared)) in rows.chunks(ROWS).zip(out) {
        columns.take(
            rows,
            #[inline(always)]
            |_, x| x,
        );
        let pieces = ids.chunks_mut(PIECE).zip(squared.chunks_mut(PIECE));
        for (piece, (ids, squared)) in pieces.enumerate() {
            let mut nearest = [0; PIECE];
            let mut least = to_one(&columns, piece, &centres[0]);
            for (c, centre) in (0..).zip(centres).skip(1) {
                let distances = to_one(&columns, piece, centre);
                for r in 0..PIECE {
                    let nearer = distances[r] < least[r];
                    nearest[r] = if nearer { c } else { nearest[r] };
                    least[r] = if nearer { distances[r] } else { least[r] };
                }
            }
            ids.copy_from_slice(&nearest[..ids.len()]);
            squared.copy_from_slice(&least[..squared.len()]);
        }
    }
}

/// Squared distances of rows side by side to a centre.
#[inline(always)]
fn to_one<F: Float, const D: usize>(
    columns: &Columns<F, D>,
    piece: usize,
    centre: &[F; D],
) -> [F; PIECE] {
    let mut sums = [[F::zero(); PIECE]; 4];
    for (j, (column, &mu)) in columns.0.iter().zip(centre).enumerate() {
        let column = &column.as_chunks::<PIECE>().0[piece];
        let sums = &mut sums[j % 4];
        for r in 0..PIECE {
            let t = column[r] - mu;
            sums[r] += t * t;
        }
    }
    let mut distances = [F::zero(); PIECE];
    for (r, distance) in distances.iter_mut().enumerate() {
        *distance = (sums[0][r] + sums[2][r]) + (sums[1][r] + sums[3][r]);
    }
    distances
}

kernel! {
    /// Lowers each `nearest[i]` to the squared distance from row `i` of `rows` to `centre`, if that is smaller.
    pub(crate) fn lower[F: Float](rows: &[F], centre: &[F], nearest: &mut [F]) = lower_to_centre
}

#[inline(always)]
fn lower_to_centre<F: Float, S: Simd>(simd: S, rows: &[F], centre: &[F], nearest: &mut [F]) {
    for (row, nearest) in rows.chunks_exact(centre.len()).zip(nearest) {
        let distance = squared(simd, row, centre);
        if distance < *nearest {
            *nearest = distance;
        }
    }
}

kernel! {
    pub(crate) fn between[F: Float](a: &[F], b: &[F]) -> F = squared
}

kernel! {
    pub(crate) fn norm[F: Float](row: &[F]) -> F = squared_norm
}

pub(crate) fn norms<F: Float>(rows: &[F], stride: usize, out: &mut Vec<F>) {
    let zero = vec![F::zero(); stride];
    out.clear();
    out.resize(rows.len() / stride, F::INFINITY);
    lower(rows, &zero, out);
}

/// Factors (k, d) of squared differences, padded, and terms that are added to give costs, one per factor or component.
#[derive(Clone, Copy)]
pub(crate) struct Scaled<'a, F> {
    pub(crate) factors: &'a [F],
    pub(crate) terms: &'a [F],
}

/// Scaled squared distances from the padded row `x` to the rows `ids` of `centres`, with a term per component, into `out`.
pub(crate) fn scaled_to_some<F: Float>(
    x: &[F],
    centres: &[F],
    scales: Scaled<'_, F>,
    ids: &[u32],
    out: &mut Vec<F>,
) {
    out.clear();
    out.resize(ids.len(), F::zero());
    some_scaled(x, centres, scales, ids, out);
}

kernel! {
    fn some_scaled[F: Float](
        x: &[F],
        centres: &[F],
        scales: Scaled<'_, F>,
        ids: &[u32],
        out: &mut [F],
    ) = some_scaled_by_ones
}

#[inline(always)]
fn some_scaled_by_ones<F: Float, S: Simd>(
    simd: S,
    x: &[F],
    centres: &[F],
    scales: Scaled<'_, F>,
    ids: &[u32],
    out: &mut [F],
) {
    for (out, &id) in out.iter_mut().zip(ids) {
        let start = id as usize * x.len();
        let centre = &centres[start..][..x.len()];
        let factors = &scales.factors[start..][..x.len()];
        *out = scaled(simd, x, centre, factors) + scales.terms[id as usize];
    }
}

/// Scaled squared distances of all padded rows to all centres: (rows, k) into `out`, the same numbers as
/// [`scaled_to_some`] gives.
pub(crate) fn scaled_to_all<F: Float>(
    rows: &[F],
    centres: &[F],
    scales: Scaled<'_, F>,
    out: &mut Vec<F>,
) {
    let k = scales.terms.len();
    let stride = centres.len() / k;
    let ids = (0..k as u32).collect::<Vec<_>>();
    out.resize(rows.len() / stride * k, F::zero());
    for (x, out) in rows.chunks_exact(stride).zip(out.chunks_exact_mut(k)) {
        some_scaled(x, centres, scales, &ids, out);
    }
}

/// Padded rows less a padded row, into `out`.
pub(crate) fn minus<F: Float>(rows: &[F], from: &[F], out: &mut [F]) {
    /// Rows of `N` numbers: a loop over any number takes longer than the few differences of short rows.
    #[inline(always)]
    fn short<F: Float, const N: usize>(rows: &[F], from: &[F], out: &mut [F]) {
        let Some(from) = from.first_chunk::<N>() else {
            return;
        };
        let rows = rows.as_chunks::<N>().0.iter();
        for (row, out) in rows.zip(out.as_chunks_mut::<N>().0) {
            let mut values = [F::zero(); N];
            for l in 0..N {
                values[l] = row[l] - from[l];
            }
            *out = values;
        }
    }
    vectorised!({
        match from.len() {
            4 => short::<F, 4>(rows, from, out),
            8 => short::<F, 8>(rows, from, out),
            stride => {
                let rows = rows.chunks_exact(stride);
                for (row, out) in rows.zip(out.chunks_exact_mut(stride)) {
                    for ((out, &x), &a) in out.iter_mut().zip(row).zip(from) {
                        *out = x - a;
                    }
                }
            }
        }
    });
}

/// Padded rows with their squared norms.
#[derive(Clone, Copy)]
pub(crate) struct Normed<'a, F> {
    pub(crate) rows: &'a [F],
    pub(crate) norms: &'a [F],
}

/// All squared distances by expansion, `|x|^2 - 2 x.mu + |mu|^2` clamped at 0: fast, and good to the
/// rounding bound of (E21). `out` becomes (rows, k), row-major.
pub(crate) fn to_all<F: Float>(
    rows: Normed<'_, F>,
    centres: Normed<'_, F>,
    dim: usize,
    out: &mut Vec<F>,
) {
    let stride = stride(dim);
    let n = rows.norms.len();
    let k = centres.norms.len();
    out.resize(n * k, F::zero());
    let x = matrix(rows.rows, n, dim, stride);
    let mu = matrix(centres.rows, k, dim, stride);
    let minus_two = F::from_f64(-2.0);
    let mut products = ArrayViewMut2::from_shape((n, k), out).expect("n x k numbers");
    general_mat_mul(minus_two, &x, &mu.t(), F::zero(), &mut products);
    vectorised!({
        for (row, &x2) in out.chunks_exact_mut(k).zip(rows.norms) {
            for (value, &mu2) in row.iter_mut().zip(centres.norms) {
                let distance = *value + (x2 + mu2);
                // Written so that a NaN stays NaN: otherwise it would count as a near component.
                *value = if distance < F::zero() {
                    F::zero()
                } else {
                    distance
                };
            }
        }
    });
}

/// The first `dim` columns of padded rows as a matrix.
pub(crate) fn matrix<F>(values: &[F], n: usize, dim: usize, stride: usize) -> ArrayView2<'_, F> {
    // No rows have no memory that strides could lead to.
    let shape = match n {
        0 => (0, dim).into(),
        _ => (n, dim).strides((stride, 1)),
    };
    ArrayView2::from_shape(shape, values).expect("padded rows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::base::simd::on_every_processor;
    use crate::kernels::panels::tests::{SHAPES, norms as naive_norms, random};

    fn distances_are_the_naive_ones<F: Float>(within: f64) {
        let mut rng = Rng::from_seed(1);
        for (n, d, k) in SHAPES.into_iter().chain([(0, 20, 2)]) {
            let s = stride(d);
            let x: Vec<F> = random(&mut rng, n, d);
            let mu: Vec<F> = random(&mut rng, k, d);
            let factors: Vec<F> = random(&mut rng, k, d);
            let terms: Vec<F> = random(&mut rng, k, 4);
            let terms = &terms[..k];
            let ids: Vec<u32> = (0..k as u32).rev().collect();
            let near = |got: F, naive: f64| {
                assert!((got.to_f64() - naive).abs() <= within * (naive.abs() + d as f64));
            };
            on_every_processor(|| {
                let mut to_first = vec![F::zero(); n];
                let mut nx = Vec::new();
                let mut table = Vec::new();
                let mut some = Vec::new();
                let mut all_scaled = Vec::new();
                norms(&x, s, &mut nx);
                let rows = &x[..];
                let norms = &nx[..];
                let centres = Normed {
                    rows: &mu,
                    norms: &naive_norms(&mu, d),
                };
                to_all(Normed { rows, norms }, centres, d, &mut table);
                let scales = Scaled {
                    factors: &factors,
                    terms,
                };
                scaled_to_all(&x, &mu, scales, &mut all_scaled);
                let first = vec![0; n];
                to_own(&x, &mu, s, &first, &mut to_first);
                let mut nearest = vec![F::INFINITY; n];
                lower(&x, &mu[..s], &mut nearest);
                assert_eq!(to_first, nearest);
                for (i, x) in x.chunks(s).enumerate() {
                    to_some(x, &mu, &ids, &mut some);
                    assert_eq!(to_first[i], some[k - 1]);
                    assert_eq!(to_first[i], between(x, &mu[..s]));
                    near(norm(x), nx[i].to_f64());
                    for (&c, &got) in ids.iter().zip(&some) {
                        let c = c as usize;
                        let naive = exact(x, &mu[c * s..][..s]);
                        near(got, naive);
                        near(table[i * k + c], naive);
                    }
                    scaled_to_some(x, &mu, scales, &ids, &mut some);
                    for (&c, &got) in ids.iter().zip(&some) {
                        let c = c as usize;
                        let part = |j: usize| {
                            let t = x[j].to_f64() - mu[c * s + j].to_f64();
                            factors[c * s + j].to_f64() * t * t
                        };
                        assert_eq!(got, all_scaled[i * k + c]);
                        near(got, terms[c].to_f64() + (0..d).map(part).sum::<f64>());
                    }
                }
            });
        }
    }

    #[test]
    fn direct_expanded_and_scaled_distances_are_the_naive_ones() {
        distances_are_the_naive_ones::<f32>(1e-5);
        distances_are_the_naive_ones::<f64>(1e-13);
    }

    /// Fewer short rows than lie side by side, as many, and more, and rows that are no numbers; distances are those of
    /// [`to_own`], bit for bit.
    #[test]
    fn the_nearest_of_few_is_so_in_any_number_of_rows() {
        let mut rng = Rng::from_seed(2);
        for (n, d) in [
            (1, 1),
            (ROWS - 1, 4),
            (ROWS, 3),
            (133, 2),
            (130, 8),
            (9, 20),
        ] {
            let s = stride(d);
            let mut x: Vec<f64> = random(&mut rng, n, d);
            let mu: Vec<f64> = random(&mut rng, DIRECT_CENTRES, d);
            x.extend(vec![f64::NAN; s]);
            for k in 1..=DIRECT_CENTRES {
                on_every_processor(|| {
                    let mut ids = vec![0; n + 1];
                    let mut least = vec![0.0; n + 1];
                    nearest_of_few(&x, &mu[..k * s], s, &mut ids, &mut least);
                    assert!(least[n].is_nan());
                    let mut other = vec![0.0; n];
                    to_own(&x[..n * s], &mu, s, &ids, &mut other);
                    assert_eq!(other, least[..n]);
                    for c in 0..k as u32 {
                        to_own(&x[..n * s], &mu, s, &vec![c; n], &mut other);
                        for i in 0..n {
                            assert!(other[i] > least[i] || ids[i] <= c, "{n} {d} {k}: {i} {c}");
                        }
                    }
                });
            }
        }
    }
}
