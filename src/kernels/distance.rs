//! Squared Euclidean distances between padded rows, directly and by expansion (E21).

use super::abreast::{Columns, ROWS};
use super::stride;
use crate::base::float::Float;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use pulp::{Arch, Simd, WithSimd};

/// `|a - b|^2` of two padded rows, with the vectors of the processor; plain, or with a factor per coordinate.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Squared: Sized {
    #[doc(hidden)]
    fn squared<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> Self;
    #[doc(hidden)]
    fn squared_of_four<S: Simd>(simd: S, a: &[Self], b: [&[Self]; 4]) -> [Self; 4];
    #[doc(hidden)]
    fn scaled<S: Simd>(simd: S, a: &[Self], b: &[Self], factors: &[Self]) -> Self;
    #[doc(hidden)]
    fn norm<S: Simd>(simd: S, a: &[Self]) -> Self;
}

macro_rules! squared {
    ($t:ty, $vectors:ident, $partial:ident, $splat:ident, $sub:ident, $mul:ident, $mul_add:ident, $sum:ident) => {
        impl Squared for $t {
            #[inline(always)]
            fn squared<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> Self {
                if is_short(a) {
                    return short(a, b);
                }
                let ((vectors, _), (others, _)) = (S::$vectors(a), S::$vectors(b));
                let mut sums = simd.$splat(0.0);
                for (&a, &b) in vectors.iter().zip(others) {
                    let t = simd.$sub(a, b);
                    sums = simd.$mul_add(t, t, sums);
                }
                simd.$sum(sums)
            }

            /// Four at a time: `a` is read once, and the four sums do not wait for each other.
            #[inline(always)]
            fn squared_of_four<S: Simd>(simd: S, a: &[Self], b: [&[Self]; 4]) -> [Self; 4] {
                let [b0, b1, b2, b3] = b;
                if is_short(a) {
                    return [short(a, b0), short(a, b1), short(a, b2), short(a, b3)];
                }
                let (a, _) = S::$vectors(a);
                // No closures here: they would be compiled for the oldest processor.
                let b0 = &S::$vectors(b0).0[..a.len()];
                let b1 = &S::$vectors(b1).0[..a.len()];
                let b2 = &S::$vectors(b2).0[..a.len()];
                let b3 = &S::$vectors(b3).0[..a.len()];
                let mut sums = [simd.$splat(0.0); 4];
                for (j, &a) in a.iter().enumerate() {
                    let t0 = simd.$sub(a, b0[j]);
                    let t1 = simd.$sub(a, b1[j]);
                    let t2 = simd.$sub(a, b2[j]);
                    let t3 = simd.$sub(a, b3[j]);
                    sums[0] = simd.$mul_add(t0, t0, sums[0]);
                    sums[1] = simd.$mul_add(t1, t1, sums[1]);
                    sums[2] = simd.$mul_add(t2, t2, sums[2]);
                    sums[3] = simd.$mul_add(t3, t3, sums[3]);
                }
                [
                    simd.$sum(sums[0]),
                    simd.$sum(sums[1]),
                    simd.$sum(sums[2]),
                    simd.$sum(sums[3]),
                ]
            }

            #[inline(always)]
            fn scaled<S: Simd>(simd: S, a: &[Self], b: &[Self], factors: &[Self]) -> Self {
                let ((a, a_rest), (b, b_rest)) = (S::$vectors(a), S::$vectors(b));
                let (factors, factors_rest) = S::$vectors(factors);
                let mut sums = simd.$splat(0.0);
                for ((&a, &b), &factor) in a.iter().zip(b).zip(factors) {
                    let t = simd.$sub(a, b);
                    sums = simd.$mul_add(simd.$mul(t, t), factor, sums);
                }
                if !a_rest.is_empty() {
                    let t = simd.$sub(simd.$partial(a_rest), simd.$partial(b_rest));
                    sums = simd.$mul_add(simd.$mul(t, t), simd.$partial(factors_rest), sums);
                }
                simd.$sum(sums)
            }

            #[inline(always)]
            fn norm<S: Simd>(simd: S, a: &[Self]) -> Self {
                let (a, a_rest) = S::$vectors(a);
                let mut sums = simd.$splat(0.0);
                for &a in a {
                    sums = simd.$mul_add(a, a, sums);
                }
                if !a_rest.is_empty() {
                    let a = simd.$partial(a_rest);
                    sums = simd.$mul_add(a, a, sums);
                }
                simd.$sum(sums)
            }
        }
    };
}
squared!(
    f32,
    as_simd_f32s,
    partial_load_f32s,
    splat_f32s,
    sub_f32s,
    mul_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s
);
squared!(
    f64,
    as_simd_f64s,
    partial_load_f64s,
    splat_f64s,
    sub_f64s,
    mul_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s
);

/// Squared distances from the padded row `x` to the rows `ids` of `centres`, into `out`.
pub(crate) fn to_some<F: Float>(x: &[F], centres: &[F], ids: &[u32], out: &mut Vec<F>) {
    out.clear();
    out.resize(ids.len(), F::zero());
    Arch::new().dispatch(ToSome {
        x,
        centres,
        ids,
        out,
    });
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

struct ToSome<'a, F> {
    x: &'a [F],
    centres: &'a [F],
    ids: &'a [u32],
    out: &'a mut [F],
}

impl<F: Float> WithSimd for ToSome<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            x,
            centres,
            ids,
            out,
        } = self;
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
}

#[inline(always)]
fn to_four<S: Simd, F: Float>(simd: S, x: &[F], centres: &[F], ids: &[u32; 4]) -> [F; 4] {
    let [a, b, c, d] = *ids;
    let rows = [
        row(centres, a, x.len()),
        row(centres, b, x.len()),
        row(centres, c, x.len()),
        row(centres, d, x.len()),
    ];
    F::squared_of_four(simd, x, rows)
}

#[inline(always)]
fn row<F>(rows: &[F], i: u32, stride: usize) -> &[F] {
    &rows[i as usize * stride..][..stride]
}

/// Squared distances from padded rows to a centre each, `ids[i]`.
pub(crate) fn to_own<F: Float>(
    rows: &[F],
    centres: &[F],
    stride: usize,
    ids: &[u32],
    out: &mut [F],
) {
    Arch::new().dispatch(ToOwn {
        rows,
        centres,
        stride,
        ids,
        out,
    });
}

struct ToOwn<'a, F> {
    rows: &'a [F],
    centres: &'a [F],
    stride: usize,
    ids: &'a [u32],
    out: &'a mut [F],
}

impl<F: Float> WithSimd for ToOwn<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.stride {
            4 => self.of_length::<S, 4>(simd),
            8 => self.of_length::<S, 8>(simd),
            stride => {
                let rows = self.rows.chunks_exact(stride);
                for ((x, &id), out) in rows.zip(self.ids).zip(self.out) {
                    *out = F::squared(simd, x, row(self.centres, id, stride));
                }
            }
        }
    }
}

impl<F: Float> ToOwn<'_, F> {
    /// Rows of `D` numbers: so few that a loop would take longer than the arithmetic.
    #[inline(always)]
    fn of_length<S: Simd, const D: usize>(self, simd: S) {
        let (rows, _) = self.rows.as_chunks::<D>();
        let (centres, _) = self.centres.as_chunks::<D>();
        for ((x, &id), out) in rows.iter().zip(self.ids).zip(self.out) {
            *out = F::squared(simd, x, &centres[id as usize]);
        }
    }
}

/// At most so many centres are compared with every row directly: for more, products take less time.
const FEW: usize = 4;

/// Whether so many centres are few: [`nearest_of_few`].
pub(crate) fn are_few(centres: usize) -> bool {
    centres <= FEW
}

/// The nearest of few centres for padded rows, and the squared distances to them; of equals the first.
pub(crate) fn nearest_of_few<F: Float>(
    rows: &[F],
    centres: &[F],
    stride: usize,
    ids: &mut [u32],
    squared: &mut [F],
) {
    Arch::new().dispatch(ToFew {
        rows,
        centres,
        stride,
        ids,
        squared,
    });
}

struct ToFew<'a, F> {
    rows: &'a [F],
    centres: &'a [F],
    stride: usize,
    ids: &'a mut [u32],
    squared: &'a mut [F],
}

impl<F: Float> WithSimd for ToFew<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.stride {
            4 => self.side_by_side::<4>(),
            8 => self.side_by_side::<8>(),
            _ => self.one_by_one(simd),
        }
    }
}

impl<F: Float> ToFew<'_, F> {
    #[inline(always)]
    fn one_by_one<S: Simd>(self, simd: S) {
        let (first, others) = self.centres.split_at(self.stride);
        let rows = self.rows.chunks_exact(self.stride);
        for ((x, id), squared) in rows.zip(self.ids).zip(self.squared) {
            // Of NaN all are NaN: it is not taken for something that is far.
            let (mut nearest, mut least) = (0, F::squared(simd, x, first));
            for (c, centre) in (1..).zip(others.chunks_exact(self.stride)) {
                let distance = F::squared(simd, x, centre);
                let nearer = distance < least;
                nearest = if nearer { c } else { nearest };
                least = if nearer { distance } else { least };
            }
            (*id, *squared) = (nearest, least);
        }
    }

    /// Rows of `D` numbers; distances in the order of [`short`], bit for bit.
    #[inline(always)]
    fn side_by_side<const D: usize>(self) {
        let (rows, _) = self.rows.as_chunks::<D>();
        let (centres, _) = self.centres.as_chunks::<D>();
        let mut columns = Columns::new();
        let out = self.ids.chunks_mut(ROWS).zip(self.squared.chunks_mut(ROWS));
        for (rows, (ids, squared)) in rows.chunks(ROWS).zip(out) {
            columns.take(rows, |_, x| x);
            let (mut nearest, mut least) = ([0; ROWS], to_one(&columns, &centres[0]));
            for (c, centre) in (0..).zip(centres).skip(1) {
                let distances = to_one(&columns, centre);
                for r in 0..ROWS {
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
fn to_one<F: Float, const D: usize>(columns: &Columns<F, D>, centre: &[F; D]) -> [F; ROWS] {
    let mut sums = [[F::zero(); ROWS]; 4];
    for (j, (column, &mu)) in columns.0.iter().zip(centre).enumerate() {
        let sums = &mut sums[j % 4];
        for r in 0..ROWS {
            let t = column[r] - mu;
            sums[r] += t * t;
        }
    }
    let mut all = [F::zero(); ROWS];
    for (r, all) in all.iter_mut().enumerate() {
        *all = (sums[0][r] + sums[2][r]) + (sums[1][r] + sums[3][r]);
    }
    all
}

/// Lowers each `nearest[i]` to the squared distance from row `i` of `rows` to `centre`, if that is smaller.
pub(crate) fn lower<F: Float>(rows: &[F], centre: &[F], nearest: &mut [F]) {
    Arch::new().dispatch(Lower {
        rows,
        centre,
        nearest,
    });
}

struct Lower<'a, F> {
    rows: &'a [F],
    centre: &'a [F],
    nearest: &'a mut [F],
}

impl<F: Float> WithSimd for Lower<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            centre,
            nearest,
        } = self;
        for (row, nearest) in rows.chunks_exact(centre.len()).zip(nearest) {
            let distance = F::squared(simd, row, centre);
            if distance < *nearest {
                *nearest = distance;
            }
        }
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
                    let parts = row.as_chunks::<16>().0.iter().zip(from.as_chunks::<16>().0);
                    for ((row, from), out) in parts.zip(out.as_chunks_mut::<16>().0) {
                        let mut values = [F::zero(); 16];
                        for l in 0..16 {
                            values[l] = row[l] - from[l];
                        }
                        *out = values;
                    }
                }
            }
        }
    });
}

/// Squared distance of two padded rows.
pub(crate) fn between<F: Float>(a: &[F], b: &[F]) -> F {
    Arch::new().dispatch(Between { a, b })
}

struct Between<'a, F> {
    a: &'a [F],
    b: &'a [F],
}

impl<F: Float> WithSimd for Between<'_, F> {
    type Output = F;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> F {
        F::squared(simd, self.a, self.b)
    }
}

/// Squared norm of a padded row.
pub(crate) fn norm<F: Float>(row: &[F]) -> F {
    Arch::new().dispatch(Norm { row })
}

struct Norm<'a, F> {
    row: &'a [F],
}

impl<F: Float> WithSimd for Norm<'_, F> {
    type Output = F;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> F {
        F::norm(simd, self.row)
    }
}

/// Squared norms of padded rows.
pub(crate) fn norms<F: Float>(rows: &[F], stride: usize, out: &mut Vec<F>) {
    let zero = vec![F::zero(); stride];
    out.clear();
    out.resize(rows.len() / stride, F::INFINITY);
    lower(rows, &zero, out);
}

/// All squared distances by expansion, `|x|^2 - 2 x.mu + |mu|^2` clamped at 0: fast, and good to the
/// rounding bound of (E21). `out` becomes (rows, k), row-major.
pub(crate) fn to_all<F: Float>(
    (rows, row_norms): (&[F], &[F]),
    (centres, centre_norms): (&[F], &[F]),
    dim: usize,
    out: &mut Vec<F>,
) {
    let stride = stride(dim);
    let (n, k) = (row_norms.len(), centre_norms.len());
    out.resize(n * k, F::zero());
    let x = matrix(rows, n, dim, stride);
    let mu = matrix(centres, k, dim, stride);
    let minus_two = F::from_f64(-2.0);
    let mut products = ArrayViewMut2::from_shape((n, k), out).expect("n x k numbers");
    general_mat_mul(minus_two, &x, &mu.t(), F::zero(), &mut products);
    vectorised!({
        for (row, &x2) in out.chunks_exact_mut(k).zip(row_norms) {
            for (value, &mu2) in row.iter_mut().zip(centre_norms) {
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
    use approx::assert_abs_diff_eq;

    #[test]
    fn no_rows_have_no_distances() {
        let (centres, mut out) = (vec![1.0; 2 * stride(20)], vec![0.5]);
        to_all::<f64>((&[], &[]), (&centres, &[20.0; 2]), 20, &mut out);
        assert!(out.is_empty());
    }

    fn padded(n: usize, d: usize, rng: &mut Rng) -> Vec<f64> {
        let s = stride(d);
        (0..n * s)
            .map(|i| if i % s < d { rng.normal() } else { 0.0 })
            .collect()
    }

    #[test]
    fn direct_and_expanded_distances_are_the_naive_ones() {
        let mut rng = Rng::from_seed(1);
        for d in [1, 2, 4, 5, 8, 9, 16, 17, 33, 74] {
            let (n, k, s) = (5, 7, stride(d));
            let (x, mu) = (padded(n, d, &mut rng), padded(k, d, &mut rng));
            let naive = |i: usize, c: usize| -> f64 {
                (0..d).map(|j| (x[i * s + j] - mu[c * s + j]).powi(2)).sum()
            };
            let (mut nx, mut nmu, mut all) = (Vec::new(), Vec::new(), Vec::new());
            norms(&x, s, &mut nx);
            norms(&mu, s, &mut nmu);
            to_all((&x, &nx), (&mu, &nmu), d, &mut all);
            let ids = [6, 0, 3];
            for i in 0..n {
                let row = &x[i * s..(i + 1) * s];
                let mut some = Vec::new();
                to_some(row, &mu, &ids, &mut some);
                for (&id, &got) in ids.iter().zip(&some) {
                    assert_abs_diff_eq!(got, naive(i, id as usize), epsilon = 1e-12 * (1.0 + got));
                }
                for c in 0..k {
                    assert_abs_diff_eq!(
                        all[i * k + c],
                        naive(i, c),
                        epsilon = 1e-12 * (1.0 + naive(i, c))
                    );
                }
            }
            for k in 1..=FEW {
                let (mut ids, mut squared) = ([0; 5], [0.0; 5]);
                let rows = [&x[..4 * s], &vec![f64::NAN; s]].concat();
                nearest_of_few(&rows, &mu[..k * s], s, &mut ids, &mut squared);
                for i in 0..4 {
                    let best = (0..k).min_by(|&a, &b| naive(i, a).total_cmp(&naive(i, b)));
                    assert_eq!(Some(ids[i] as usize), best);
                    let naive = naive(i, ids[i] as usize);
                    assert_abs_diff_eq!(squared[i], naive, epsilon = 1e-12 * (1.0 + naive));
                }
                assert!(squared[4].is_nan());
            }
            let mut nearest = vec![f64::INFINITY; n];
            lower(&x, &mu[..s], &mut nearest);
            lower(&x, &mu[s..2 * s], &mut nearest);
            for (i, &got) in nearest.iter().enumerate() {
                assert_abs_diff_eq!(
                    got,
                    naive(i, 0).min(naive(i, 1)),
                    epsilon = 1e-12 * (1.0 + got)
                );
            }
        }
    }

    /// Fewer short rows than lie side by side, as many, and more: those of [`to_own`], bit for bit.
    #[test]
    fn the_nearest_of_few_is_so_in_any_number_of_rows() {
        let mut rng = Rng::from_seed(2);
        for (n, d) in [
            (1, 1),
            (ROWS - 1, 4),
            (ROWS, 3),
            (2 * ROWS + 5, 2),
            (70, 7),
            (130, 8),
        ] {
            let s = stride(d);
            let (x, mu) = (padded(n, d, &mut rng), padded(FEW, d, &mut rng));
            for k in 1..=FEW {
                let (mut ids, mut squared) = (vec![0; n], vec![0.0; n]);
                nearest_of_few(&x, &mu[..k * s], s, &mut ids, &mut squared);
                let mut of_any = Vec::new();
                with_all_vectors!({
                    of_any.push(vec![0.0; n]);
                    ToOwn {
                        rows: &x,
                        centres: &mu,
                        stride: s,
                        ids: &ids,
                        out: of_any.last_mut().unwrap(),
                    }
                });
                assert!(of_any.iter().all(|least| *least == squared), "{n} {d} {k}");
                let least = squared;
                for c in 0..k as u32 {
                    let mut other = vec![0.0; n];
                    to_own(&x, &mu, s, &vec![c; n], &mut other);
                    for i in 0..n {
                        assert!(other[i] > least[i] || ids[i] <= c, "{n} {d} {k}: {i} {c}");
                    }
                }
            }
        }
    }
}
