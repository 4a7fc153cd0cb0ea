//! Small matrices of a few components at once: numbers of all of them side by side, so that one instruction works on several components.
//! Every component has the bits that it has alone.

use crate::base::float::Float;
use crate::kernels::sparse::Known;
use pulp::Simd;
use std::hint::black_box;

/// Components of a group.
pub(crate) const GROUP: usize = 8;

/// Rows that are multiplied at once, so that a matrix is read once for all of them.
pub(crate) const ROWS: usize = 4;

/// A number for each component of a group, in one line of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(64))]
pub(crate) struct Lanes(pub(crate) [f64; GROUP]);

/// Vectors of a group: several where vectors are short. For processors without any the compiler may not know that there are as many as
/// components: it would write each out, which took half of its time for these files.
#[inline(always)]
fn parts<S: Simd>() -> usize {
    match GROUP * size_of::<f64>() / size_of::<S::f64s>() {
        GROUP => black_box(GROUP),
        parts => parts,
    }
}

impl Lanes {
    pub(crate) fn all(x: f64) -> Self {
        Self([x; GROUP])
    }

    /// One of the vectors.
    #[inline(always)]
    fn part<S: Simd>(&self, part: usize) -> S::f64s {
        S::as_simd_f64s(&self.0).0[part]
    }

    #[inline(always)]
    fn part_mut<S: Simd>(&mut self, part: usize) -> &mut S::f64s {
        &mut S::as_mut_simd_f64s(&mut self.0).0[part]
    }

    /// The vectors of a function of those of `self` and of another.
    #[inline(always)]
    fn with<S: Simd>(mut self, other: &Self, of: impl Fn(S::f64s, S::f64s) -> S::f64s) -> Self {
        for part in 0..parts::<S>() {
            let x = self.part_mut::<S>(part);
            *x = of(*x, other.part::<S>(part));
        }
        self
    }

    #[inline(always)]
    pub(crate) fn times<S: Simd>(self, simd: S, other: &Self) -> Self {
        self.with::<S>(
            other,
            #[inline(always)]
            |a, b| simd.mul_f64s(a, b),
        )
    }

    #[inline(always)]
    pub(crate) fn negative<S: Simd>(self, simd: S) -> Self {
        self.times(simd, &Self::all(-1.0))
    }

    #[inline(always)]
    pub(crate) fn plus<S: Simd>(self, simd: S, other: &Self) -> Self {
        self.with::<S>(
            other,
            #[inline(always)]
            |a, b| simd.add_f64s(a, b),
        )
    }

    #[inline(always)]
    pub(crate) fn minus<S: Simd>(self, simd: S, other: &Self) -> Self {
        self.with::<S>(
            other,
            #[inline(always)]
            |a, b| simd.sub_f64s(a, b),
        )
    }
}

/// Adds products with one number of each component to a vector.
#[inline(always)]
pub(crate) fn add<S: Simd>(simd: S, sums: &mut [Lanes], factor: &Lanes, numbers: &[Lanes]) {
    for (sum, x) in sums.iter_mut().zip(numbers) {
        for part in 0..parts::<S>() {
            let sum = sum.part_mut::<S>(part);
            *sum = simd.mul_add_e_f64s(x.part::<S>(part), factor.part::<S>(part), *sum);
        }
    }
}

/// Subtracts such products.
#[inline(always)]
pub(crate) fn subtract<S: Simd>(simd: S, sums: &mut [Lanes], factor: &Lanes, numbers: &[Lanes]) {
    add(simd, sums, &factor.negative(simd), numbers);
}

/// A scalar product.
#[inline(always)]
pub(crate) fn product<S: Simd>(simd: S, a: &[Lanes], b: &[Lanes]) -> Lanes {
    let mut sum = Lanes::default();
    for (a, b) in a.iter().zip(b) {
        add(
            simd,
            std::slice::from_mut(&mut sum),
            a,
            std::slice::from_ref(b),
        );
    }
    sum
}

/// The scalar products of a vector with others, of the numbers at these places alone.
#[inline(always)]
pub(crate) fn products_at<S: Simd, const R: usize>(
    simd: S,
    others: [&[Lanes]; R],
    x: &[Lanes],
    places: &[u32],
) -> [Lanes; R] {
    let mut out = [Lanes::default(); R];
    for part in 0..parts::<S>() {
        let mut sums = [simd.splat_f64s(0.0); R];
        for &place in places {
            let place = place as usize;
            let x = x[place].part::<S>(part);
            for (sum, other) in sums.iter_mut().zip(others) {
                *sum = simd.mul_add_e_f64s(other[place].part::<S>(part), x, *sum);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out.part_mut::<S>(part) = sum;
        }
    }
    out
}

/// The differences of what is known of a row from means (d), at their places.
#[inline(always)]
pub(crate) fn differences<F: Float, S: Simd>(
    simd: S,
    means: &[Lanes],
    row: Known<'_, F>,
    apart: &mut [Lanes],
) {
    for (&j, x) in row.ids.iter().zip(row.values) {
        let j = j as usize;
        let x = simd.splat_f64s(x.to_f64());
        for part in 0..parts::<S>() {
            *apart[j].part_mut::<S>(part) = simd.sub_f64s(x, means[j].part::<S>(part));
        }
    }
}

/// Factors symmetric matrices $A = L D L^T$ (n, n), given by their upper halves: $L^T$, without its diagonal of ones, takes their place,
/// and the inverses of $D$ are in `inverse` (n). Returns the least numbers of $D$: a matrix is positive definite where they are positive.
#[inline(always)]
pub(crate) fn factor<S: Simd>(simd: S, matrix: &mut [Lanes], inverse: &mut [Lanes]) -> Lanes {
    let n = inverse.len();
    let one = simd.splat_f64s(1.0);
    let mut least = Lanes::all(f64::INFINITY);
    for (j, inverse) in inverse.iter_mut().enumerate() {
        let (above, below) = matrix.split_at_mut((j + 1) * n);
        let (pivot, row) = above[j * (n + 1)..].split_at_mut(1);
        for part in 0..parts::<S>() {
            let pivot = pivot[0].part::<S>(part);
            let least = least.part_mut::<S>(part);
            // NaN is not positive either.
            let is_more = simd.greater_than_f64s(pivot, *least);
            *least = simd.select_f64s(is_more, *least, pivot);
            *inverse.part_mut::<S>(part) = simd.div_f64s(one, pivot);
        }
        for (i, below) in below.chunks_exact_mut(n).enumerate() {
            let share = row[i].times(simd, inverse);
            subtract(simd, &mut below[j + 1 + i..], &share, &row[i..]);
        }
        for x in row.iter_mut() {
            *x = x.times(simd, inverse);
        }
    }
    least
}

/// The logarithms of products of positive numbers. It takes few logarithms.
pub(crate) fn log_product(numbers: &[Lanes]) -> Lanes {
    /// Products of this number of inverse pivots are normal numbers.
    const FACTORS: usize = 4;
    let mut logs = Lanes::default();
    for numbers in numbers.chunks(FACTORS) {
        for (l, log) in logs.0.iter_mut().enumerate() {
            let product: f64 = numbers.iter().map(|number| number.0[l]).product();
            *log += product.ln();
        }
    }
    logs
}

/// Solves $L x = b$ in place.
#[inline(always)]
pub(crate) fn forward<S: Simd>(simd: S, factor: &[Lanes], x: &mut [Lanes]) {
    let n = x.len();
    for j in 0..n {
        let (entry, after) = x[j..].split_at_mut(1);
        subtract(
            simd,
            after,
            &entry[0],
            &factor[j * n + j + 1..][..n - j - 1],
        );
    }
}

/// Solves $L^T x = b$ in place.
#[inline(always)]
pub(crate) fn backward<S: Simd>(simd: S, factor: &[Lanes], x: &mut [Lanes]) {
    let n = x.len();
    for j in (0..n).rev() {
        let (entry, after) = x[j..].split_at_mut(1);
        let row = &factor[j * n + j + 1..][..n - j - 1];
        for part in 0..parts::<S>() {
            // The latest number comes last: the others need not wait for it.
            let mut sum = simd.splat_f64s(0.0);
            for (x, factor) in after.iter().zip(row).rev() {
                sum = simd.mul_add_e_f64s(x.part::<S>(part), factor.part::<S>(part), sum);
            }
            let entry = entry[0].part_mut::<S>(part);
            *entry = simd.sub_f64s(*entry, sum);
        }
    }
}

/// $L^{-1}$ times a diagonal, row after row, into the lower half of `out` (n, n).
#[inline(always)]
pub(crate) fn inverse_of_factor<S: Simd>(
    simd: S,
    factor: &[Lanes],
    diagonal: &[Lanes],
    out: &mut Vec<Lanes>,
) {
    let n = diagonal.len();
    out.clear();
    out.resize(n * n, Lanes::default());
    for (t, x) in diagonal.iter().enumerate() {
        let (above, below) = out.split_at_mut((t + 1) * n);
        let row = &mut above[t * n..][..=t];
        row[t] = *x;
        for (below, factor) in below.chunks_exact_mut(n).zip(&factor[t * n + t + 1..]) {
            subtract(simd, &mut below[..=t], factor, row);
        }
    }
}

/// Multiplies numbers by others.
#[inline(always)]
pub(crate) fn scale<S: Simd>(simd: S, x: &mut [Lanes], scales: &[Lanes]) {
    for (x, scale) in x.iter_mut().zip(scales) {
        *x = x.times(simd, scale);
    }
}

/// The sum of squares over pivots, of which the inverses are given.
#[inline(always)]
pub(crate) fn sum_of_squares<S: Simd>(simd: S, x: &[Lanes], inverse: &[Lanes]) -> Lanes {
    let mut sum = [Lanes::default()];
    for (x, inverse) in x.iter().zip(inverse) {
        add(simd, &mut sum, &x.times(simd, inverse), &[*x]);
    }
    sum[0]
}

/// Rows (`ROWS`, n) of a table.
#[inline(always)]
fn rows_of(table: &[Lanes]) -> [&[Lanes]; ROWS] {
    let n = table.len() / ROWS;
    let (a, rest) = table.split_at(n);
    let (b, rest) = rest.split_at(n);
    let (c, d) = rest.split_at(n);
    [a, b, c, d]
}

/// $\lvert M u \rvert^2$ of rows $u$ (`ROWS`, n) for triangles, row after row.
#[inline(always)]
pub(crate) fn squares<S: Simd>(simd: S, factors: &[Lanes], u: &[Lanes]) -> [Lanes; ROWS] {
    let [a, b, c, d] = rows_of(u);
    let mut out = [Lanes::default(); ROWS];
    for part in 0..parts::<S>() {
        let zero = simd.splat_f64s(0.0);
        let mut forms = [zero; ROWS];
        let mut rest = factors;
        for j in 1..=a.len() {
            let (row, after) = rest.split_at(j);
            rest = after;
            let mut v = [zero; ROWS];
            for ((((factor, a), b), c), d) in row.iter().zip(a).zip(b).zip(c).zip(d) {
                let factor = factor.part::<S>(part);
                v[0] = simd.mul_add_e_f64s(factor, a.part::<S>(part), v[0]);
                v[1] = simd.mul_add_e_f64s(factor, b.part::<S>(part), v[1]);
                v[2] = simd.mul_add_e_f64s(factor, c.part::<S>(part), v[2]);
                v[3] = simd.mul_add_e_f64s(factor, d.part::<S>(part), v[3]);
            }
            for (form, v) in forms.iter_mut().zip(v) {
                *form = simd.mul_add_e_f64s(v, v, *form);
            }
        }
        for (out, form) in out.iter_mut().zip(forms) {
            *out.part_mut::<S>(part) = form;
        }
    }
    out
}

/// Adds the products of the numbers of rows (`ROWS`, n), times their shares, to the lower halves of matrices (n, n), and the rows to
/// their sums (n).
#[inline(always)]
pub(crate) fn add_rows<S: Simd>(
    simd: S,
    u: &[Lanes],
    shares: &[Lanes; ROWS],
    first: &mut [Lanes],
    second: &mut [Lanes],
) {
    let [a, b, c, d] = rows_of(u);
    let n = first.len();
    for part in 0..parts::<S>() {
        let shares = shares.map(
            #[inline(always)]
            |share| share.part::<S>(part),
        );
        for (i, first) in first.iter_mut().enumerate() {
            let shared = [
                simd.mul_f64s(shares[0], a[i].part::<S>(part)),
                simd.mul_f64s(shares[1], b[i].part::<S>(part)),
                simd.mul_f64s(shares[2], c[i].part::<S>(part)),
                simd.mul_f64s(shares[3], d[i].part::<S>(part)),
            ];
            let first = first.part_mut::<S>(part);
            for shared in shared {
                *first = simd.add_f64s(*first, shared);
            }
            let sums = &mut second[i * n..][..=i];
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let sum = sum.part_mut::<S>(part);
                let with_a = simd.mul_add_e_f64s(shared[0], a.part::<S>(part), *sum);
                let with_b = simd.mul_add_e_f64s(shared[1], b.part::<S>(part), with_a);
                let with_c = simd.mul_add_e_f64s(shared[2], c.part::<S>(part), with_b);
                *sum = simd.mul_add_e_f64s(shared[3], d.part::<S>(part), with_c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::unwatched;
    use crate::base::linalg::Cholesky;
    use crate::base::rng::Rng;
    use crate::base::simd::kernel;

    kernel! {
        fn factored[](matrix: &mut [Lanes], inverse: &mut [Lanes]) -> Lanes = factor
    }

    kernel! {
        fn solve[](factor: &[Lanes], inverse: &[Lanes], x: &mut [Lanes]) = solved
    }

    #[inline(always)]
    fn solved<S: Simd>(simd: S, factor: &[Lanes], inverse: &[Lanes], x: &mut [Lanes]) {
        forward(simd, factor, x);
        scale(simd, x, inverse);
        backward(simd, factor, x);
    }

    /// Factors, determinants and solutions are those of one matrix after the other.
    #[test]
    fn factors_are_those_of_single_matrices() {
        let mut rng = Rng::from_seed(3);
        for n in [0, 1, 2, 5, 11] {
            let roots: Vec<Lanes> = (0..n * n)
                .map(|_| Lanes(std::array::from_fn(|_| rng.normal())))
                .collect();
            let mut matrix = vec![Lanes::default(); n * n];
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                for l in 0..GROUP {
                    let products = (0..n).map(|t| roots[i * n + t].0[l] * roots[j * n + t].0[l]);
                    matrix[i * n + j].0[l] = products.sum();
                }
            }
            let singles = matrix.clone();
            let mut inverse = vec![Lanes::default(); n];
            let least = factored(&mut matrix, &mut inverse);
            let b: Vec<Lanes> = (0..n)
                .map(|_| Lanes(std::array::from_fn(|_| rng.normal())))
                .collect();
            let mut x = b.clone();
            solve(&matrix, &inverse, &mut x);
            let logs = log_product(&inverse);
            for l in 0..GROUP {
                let single: Vec<f64> = singles.iter().map(|x| x.0[l]).collect();
                if let Some(cholesky) = unwatched(Cholesky::of(&single, n, None)) {
                    assert!(least.0[l] > 0.0);
                    assert!((cholesky.log_det + logs.0[l]).abs() < 1e-9);
                    for i in 0..n {
                        let product: f64 = (0..n).map(|j| single[i * n + j] * x[j].0[l]).sum();
                        assert!(
                            (product - b[i].0[l]).abs() < 1e-6,
                            "{n}: {product} {}",
                            b[i].0[l]
                        );
                        for j in 0..=i {
                            let pivot = cholesky.factor[j * (n + 1)];
                            let entry = if i == j { 1.0 } else { matrix[j * n + i].0[l] };
                            assert!((cholesky.factor[i * n + j] / pivot - entry).abs() < 1e-9);
                        }
                    }
                }
            }
        }
        for square in [0.0, -1.0, f64::NAN] {
            let least = factored(&mut [Lanes::all(square)], &mut [Lanes::default()]);
            assert!(least.0.iter().all(|x| x.is_nan() || *x <= 0.0));
        }
    }
}
