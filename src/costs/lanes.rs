//! Small matrices of a few components at once: numbers of all of them side by side, so that one instruction works on several components.
//! Every component has the bits that it has alone.

use crate::base::float::Float;
use crate::kernels::sparse::Known;
use pulp::Simd;

/// Components of a group.
pub(crate) const GROUP: usize = 8;

/// A number for each component of a group.
pub(crate) type Lanes = [f64; GROUP];

/// As vectors: several of them have a group where vectors are short.
#[inline(always)]
fn vectors<S: Simd>(numbers: &[Lanes]) -> &[S::f64s] {
    S::as_simd_f64s(numbers.as_flattened()).0
}

#[inline(always)]
fn vectors_mut<S: Simd>(numbers: &mut [Lanes]) -> &mut [S::f64s] {
    S::as_mut_simd_f64s(numbers.as_flattened_mut()).0
}

/// Adds products with one number of each component to a vector.
#[inline(always)]
pub(crate) fn add<S: Simd>(simd: S, sums: &mut [Lanes], factor: &Lanes, numbers: &[Lanes]) {
    let factor = vectors::<S>(std::slice::from_ref(factor));
    let sums = vectors_mut::<S>(sums).chunks_exact_mut(factor.len());
    for (sums, numbers) in sums.zip(vectors::<S>(numbers).chunks_exact(factor.len())) {
        for ((sum, &x), &a) in sums.iter_mut().zip(numbers).zip(factor) {
            *sum = simd.mul_add_e_f64s(x, a, *sum);
        }
    }
}

/// Subtracts such products.
#[inline(always)]
pub(crate) fn subtract<S: Simd>(simd: S, sums: &mut [Lanes], factor: &Lanes, numbers: &[Lanes]) {
    add(simd, sums, &times(simd, factor, &[-1.0; GROUP]), numbers);
}

#[inline(always)]
pub(crate) fn times<S: Simd>(simd: S, a: &Lanes, b: &Lanes) -> Lanes {
    let mut out = [*a];
    let factors = vectors::<S>(std::slice::from_ref(b));
    for (x, &b) in vectors_mut::<S>(&mut out).iter_mut().zip(factors) {
        *x = simd.mul_f64s(*x, b);
    }
    out[0]
}

/// On numbers of its own the loop becomes one instruction.
#[inline(always)]
fn each(mut numbers: Lanes, of: impl Fn(f64) -> f64) -> Lanes {
    for x in &mut numbers {
        *x = of(*x);
    }
    numbers
}

/// Sums that do not wait for one another.
const SUMS: usize = 4;

/// `start` less the products of numbers at these places (n) of two tables.
#[inline(always)]
fn left_of<S: Simd>(
    simd: S,
    start: &Lanes,
    [a, b]: [&[Lanes]; 2],
    n: usize,
    place: impl Fn(usize) -> usize,
) -> Lanes {
    let a = vectors::<S>(a);
    let b = vectors::<S>(b);
    let mut out = [*start];
    let out_vectors = vectors_mut::<S>(&mut out);
    let parts = out_vectors.len();
    for (part, out) in out_vectors.iter_mut().enumerate() {
        let mut sums = [simd.splat_f64s(0.0); SUMS];
        let product = |e: usize, sum: S::f64s| {
            let at = place(e) * parts + part;
            simd.mul_add_e_f64s(a[at], b[at], sum)
        };
        let whole = n / SUMS * SUMS;
        for e in (0..whole).step_by(SUMS) {
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum = product(e + l, *sum);
            }
        }
        for e in whole..n {
            sums[0] = product(e, sums[0]);
        }
        let [a, b, c, d] = sums;
        let sum = simd.add_f64s(simd.add_f64s(a, b), simd.add_f64s(c, d));
        *out = simd.sub_f64s(*out, sum);
    }
    out[0]
}

/// `start` less a scalar product.
#[inline(always)]
pub(crate) fn left<S: Simd>(simd: S, start: &Lanes, a: &[Lanes], b: &[Lanes]) -> Lanes {
    left_of(
        simd,
        start,
        [a, b],
        a.len(),
        #[inline(always)]
        |e| e,
    )
}

/// As [`left`], of the numbers at these places alone.
#[inline(always)]
pub(crate) fn left_at<S: Simd>(
    simd: S,
    start: &Lanes,
    a: &[Lanes],
    b: &[Lanes],
    places: &[u32],
) -> Lanes {
    left_of(
        simd,
        start,
        [a, b],
        places.len(),
        #[inline(always)]
        |e| places[e] as usize,
    )
}

/// The differences of what is known of a row from means (d), at their places.
#[inline(always)]
pub(crate) fn differences<F: Float, S: Simd>(
    simd: S,
    means: &[Lanes],
    row: Known<'_, F>,
    apart: &mut [Lanes],
) {
    let means = vectors::<S>(means);
    let apart = vectors_mut::<S>(apart);
    let parts = GROUP * size_of::<f64>() / size_of::<S::f64s>();
    for (&j, x) in row.ids.iter().zip(row.values) {
        let first = j as usize * parts;
        let x = simd.splat_f64s(x.to_f64());
        let places = apart[first..][..parts].iter_mut();
        for (apart, &mean) in places.zip(&means[first..]) {
            *apart = simd.sub_f64s(x, mean);
        }
    }
}

/// Puts lower Cholesky factors in place of the lower halves of matrices (n, n), and gives the inverses of their pivots (n). Returns
/// the least squares of the pivots: a factor is one where it is positive.
#[inline(always)]
pub(crate) fn cholesky<S: Simd>(simd: S, matrix: &mut [Lanes], inverse: &mut [Lanes]) -> Lanes {
    let n = inverse.len();
    let mut least = [f64::INFINITY; GROUP];
    for i in 0..n {
        let (above, row) = matrix.split_at_mut(i * n);
        for j in 0..i {
            let (before, entry) = row.split_at_mut(j);
            let rest = left(simd, &entry[0], before, &above[j * n..]);
            entry[0] = times(simd, &rest, &inverse[j]);
        }
        let square = left(simd, &row[i], &row[..i], &row[..i]);
        for l in 0..GROUP {
            // NaN is no pivot either.
            least[l] = if square[l] > least[l] {
                least[l]
            } else {
                square[l]
            };
        }
        row[i] = each(
            square,
            #[inline(always)]
            |x| x.sqrt(),
        );
        inverse[i] = each(
            row[i],
            #[inline(always)]
            |x| 1.0 / x,
        );
    }
    least
}

/// The logarithms of products of positive numbers. It takes few logarithms.
pub(crate) fn log_product(numbers: &[Lanes]) -> Lanes {
    /// Products of this number of inverse pivots are normal numbers.
    const FACTORS: usize = 8;
    let mut logs = [0.0; GROUP];
    for numbers in numbers.chunks(FACTORS) {
        for l in 0..GROUP {
            let product: f64 = numbers.iter().map(|number| number[l]).product();
            logs[l] += product.ln();
        }
    }
    logs
}

/// Solves $L x = b$ in place.
#[inline(always)]
pub(crate) fn forward<S: Simd>(simd: S, factor: &[Lanes], inverse: &[Lanes], x: &mut [Lanes]) {
    let n = inverse.len();
    for i in 0..n {
        let (before, entry) = x.split_at_mut(i);
        let rest = left(simd, &entry[0], &factor[i * n..][..i], before);
        entry[0] = times(simd, &rest, &inverse[i]);
    }
}

/// Solves $L^T x = b$ in place.
#[inline(always)]
pub(crate) fn backward<S: Simd>(simd: S, factor: &[Lanes], inverse: &[Lanes], x: &mut [Lanes]) {
    let n = inverse.len();
    for i in (0..n).rev() {
        let (before, entry) = x.split_at_mut(i);
        entry[0] = times(simd, &entry[0], &inverse[i]);
        subtract(simd, before, &entry[0], &factor[i * n..][..i]);
    }
}

/// $\lvert M u \rvert^2$ for triangles, row after row.
#[inline(always)]
pub(crate) fn squares<S: Simd>(simd: S, factors: &[Lanes], u: &[Lanes]) -> Lanes {
    let mut rest = factors;
    let mut forms = [0.0; GROUP];
    for j in 1..=u.len() {
        let (row, after) = rest.split_at(j);
        rest = after;
        let v = left(simd, &[0.0; GROUP], row, u);
        add(simd, std::slice::from_mut(&mut forms), &v, &[v]);
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cancel::unwatched;
    use crate::base::linalg::Cholesky;
    use crate::base::rng::Rng;
    use crate::base::simd::kernel;

    kernel! {
        fn factor[](matrix: &mut [Lanes], inverse: &mut [Lanes]) -> Lanes = cholesky
    }

    kernel! {
        fn solve[](factor: &[Lanes], inverse: &[Lanes], x: &mut [Lanes]) = solved
    }

    #[inline(always)]
    fn solved<S: Simd>(simd: S, factor: &[Lanes], inverse: &[Lanes], x: &mut [Lanes]) {
        forward(simd, factor, inverse, x);
        backward(simd, factor, inverse, x);
    }

    /// Factors, determinants and solutions are those of one matrix after the other.
    #[test]
    fn factors_are_those_of_single_matrices() {
        let mut rng = Rng::from_seed(3);
        for n in [0, 1, 2, 5, 11] {
            let roots: Vec<Lanes> = (0..n * n)
                .map(|_| std::array::from_fn(|_| rng.normal()))
                .collect();
            let mut matrix = vec![[0.0; GROUP]; n * n];
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                for l in 0..GROUP {
                    let products = (0..n).map(|t| roots[i * n + t][l] * roots[j * n + t][l]);
                    matrix[i * n + j][l] = products.sum();
                }
            }
            let singles = matrix.clone();
            let mut inverse = vec![[0.0; GROUP]; n];
            let least = factor(&mut matrix, &mut inverse);
            let b: Vec<Lanes> = (0..n)
                .map(|_| std::array::from_fn(|_| rng.normal()))
                .collect();
            let mut x = b.clone();
            solve(&matrix, &inverse, &mut x);
            let logs = log_product(&inverse);
            for l in 0..GROUP {
                let single: Vec<f64> = singles.iter().map(|x| x[l]).collect();
                if let Some(own) = unwatched(Cholesky::of(&single, n, None)) {
                    assert!(least[l] > 0.0);
                    assert!((own.log_det + 2.0 * logs[l]).abs() < 1e-9);
                    for i in 0..n {
                        let product: f64 = (0..n).map(|j| single[i * n + j] * x[j][l]).sum();
                        assert!(
                            (product - b[i][l]).abs() < 1e-6,
                            "{n}: {product} {}",
                            b[i][l]
                        );
                        for j in 0..=i {
                            assert!((own.factor[i * n + j] - matrix[i * n + j][l]).abs() < 1e-9);
                        }
                    }
                }
            }
        }
        for square in [0.0, -1.0, f64::NAN] {
            let least = factor(&mut [[square; GROUP]], &mut [[0.0; GROUP]]);
            assert!(least.iter().all(|x| x.is_nan() || *x <= 0.0));
        }
    }
}
