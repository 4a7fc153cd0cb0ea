//! Factors of matrices that are small beside the data: Cholesky's, the inverse of a triangle, orthonormal directions.
//!
//! Matrices are in `f64`, row after row. Everything is sequential, so sums do not depend on threads.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Slice};

/// Rows that are worked on together: what was found before them enters as one matrix product.
const BLOCK: usize = 32;

/// Puts the lower Cholesky factor of a symmetric matrix (dim, dim) in place of its lower half, and zeros above the
/// diagonal. `false` unless all pivots are positive; the matrix then holds nothing of use.
pub(crate) fn cholesky(matrix: &mut [f64], dim: usize) -> bool {
    for start in (0..dim).step_by(BLOCK) {
        let width = BLOCK.min(dim - start);
        if start > 0 {
            let rows = ArrayViewMut2::from_shape((dim - start, dim), &mut matrix[start * dim..]);
            let (left, right) = rows
                .expect("as many numbers as entries")
                .split_at(Axis(1), start);
            let mut panel = right.split_at(Axis(1), width).0;
            let across = left.slice_axis(Axis(0), Slice::from(..width));
            general_mat_mul(-1.0, &left, &across.t(), 1.0, &mut panel);
        }
        for i in start..dim {
            let (above, rest) = matrix.split_at_mut(i * dim);
            let row = &mut rest[start..start + width];
            for j in 0..width.min(i - start) {
                let pivot = &above[(start + j) * dim + start..][..=j];
                row[j] = (row[j] - dot(&row[..j], &pivot[..j])) / pivot[j];
            }
            if i < start + width {
                let (row, rest) = row.split_at_mut(i - start);
                let square = rest[0] - dot(row, row);
                // NaN is no pivot either.
                if square.is_nan() || square <= 0.0 {
                    return false;
                }
                rest[0] = square.sqrt();
            }
        }
    }
    for i in 0..dim {
        matrix[i * dim + i + 1..(i + 1) * dim].fill(0.0);
    }
    true
}

/// The lower Cholesky factor of a symmetric matrix.
pub(crate) struct Cholesky {
    /// (dim, dim), zeros above the diagonal.
    pub(crate) factor: Vec<f64>,
    /// The logarithm of the determinant of the matrix.
    pub(crate) log_det: f64,
}

impl Cholesky {
    /// Of the lower half of a matrix (dim, dim); `None` unless it is finite, positive definite, and not empty.
    pub(crate) fn of(matrix: &[f64], dim: usize) -> Option<Self> {
        if dim == 0 {
            return None;
        }
        let scale: Vec<f64> = (0..dim).map(|j| matrix[j * (dim + 1)].sqrt()).collect();
        // Columns of one unit: no pivot under- or overflows.
        let mut factor = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                factor[i * dim + j] = matrix[i * dim + j] / scale[i] / scale[j];
            }
        }
        if !factor.iter().all(|x| x.is_finite()) || !cholesky(&mut factor, dim) {
            return None;
        }
        for (row, scale) in factor.chunks_exact_mut(dim).zip(&scale) {
            row.iter_mut().for_each(|x| *x *= scale);
        }
        let logs = (0..dim).map(|j| factor[j * (dim + 1)].ln());
        let log_det = 2.0 * logs.sum::<f64>();
        log_det.is_finite().then_some(Self { factor, log_det })
    }
}

/// The inverse of the lower Cholesky factor of the covariance with this lower half (dim, dim), raised to at least the diagonal
/// matrix of these positive variances, in every direction: in units of them its eigenvalues are raised to 1. Where some are,
/// it follows from eigenvectors: of a matrix that is put together again, the smallest eigenvalues would be lost in the
/// rounding of the largest.
pub(crate) fn whitening(matrix: &[f64], least: &[f64]) -> Vec<f64> {
    let dim = least.len();
    let unit: Vec<f64> = least.iter().map(|v| v.sqrt()).collect();
    let mut matrix = matrix.to_vec();
    for i in 0..dim {
        for j in 0..=i {
            matrix[i * dim + j] = matrix[i * dim + j] / unit[i] / unit[j];
            matrix[j * dim + i] = matrix[i * dim + j];
        }
    }
    let mut found = raised(&matrix, dim);
    for row in found.chunks_exact_mut(dim) {
        row.iter_mut().zip(&unit).for_each(|(x, unit)| *x /= unit);
    }
    found
}

/// The inverse of the lower Cholesky factor of a symmetric matrix whose eigenvalues are raised to at least 1.
fn raised(matrix: &[f64], dim: usize) -> Vec<f64> {
    let mut rest = matrix.to_vec();
    rest.iter_mut().step_by(dim + 1).for_each(|x| *x -= 1.0);
    let positive = rest.iter().step_by(dim + 1).all(|x| *x > 0.0);
    if positive
        && Cholesky::of(&rest, dim).is_some()
        && let Some(found) = Cholesky::of(matrix, dim)
    {
        return inverse_of_lower(&found.factor, dim);
    }
    let (values, vectors) = eigen(matrix, dim);
    let axes = Array2::from_shape_fn((dim, dim), |(i, a)| {
        values[a].max(1.0).sqrt() * vectors[a * dim + i]
    });
    // Axes as long as deviations, turned so that they are a lower triangle.
    let mut factor = axes.dot(&orthonormal(&axes).t());
    for j in 0..dim {
        if factor[[j, j]] < 0.0 {
            factor.column_mut(j).mapv_inplace(|x| -x);
        }
        (0..j).for_each(|i| factor[[i, j]] = 0.0);
    }
    let factor: Vec<f64> = factor.iter().copied().collect();
    inverse_of_lower(&factor, dim)
}

/// The eigenvalues of a symmetric matrix (dim, dim), and as many eigenvectors, row after row: those of a tridiagonal matrix by
/// QR steps (Golub and Van Loan, Matrix Computations, 8.3). Columns are taken in the order of their variances, the largest
/// first: so small values beside large ones keep their digits.
fn eigen(matrix: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let variance = |i: usize| matrix[i * (dim + 1)];
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&i, &j| variance(j).total_cmp(&variance(i)));
    let row = |&i: &usize| order.iter().map(move |j| matrix[i * dim + j]);
    let Tridiagonal {
        mut diagonal,
        mut beside,
        mirrors,
    } = Tridiagonal::of(order.iter().flat_map(row).collect(), dim);
    let is_lost = |diagonal: &[f64], beside: &[f64], i: usize| {
        beside[i].abs() <= f64::EPSILON * (diagonal[i].abs() + diagonal[i + 1].abs())
    };
    let mut vectors = vec![0.0; dim * dim];
    vectors.iter_mut().step_by(dim + 1).for_each(|x| *x = 1.0);
    let mut last = dim.saturating_sub(1);
    // Each value takes two or three steps. The bound is for numbers that are not finite.
    for _ in 0..32 * dim {
        while last > 0 && is_lost(&diagonal, &beside, last - 1) {
            last -= 1;
        }
        let split = (0..last).rfind(|&i| is_lost(&diagonal, &beside, i));
        let first = split.map_or(0, |i| i + 1);
        if first == last {
            break;
        }
        // Wilkinson's shift: the eigenvalue of the last two rows that is nearest to the last entry.
        let (half, off) = (
            (diagonal[last - 1] - diagonal[last]) / 2.0,
            beside[last - 1],
        );
        let shift =
            diagonal[last] - off / (half / off + (half / off).hypot(1.0).copysign(half / off));
        let (mut x, mut z) = (diagonal[first] - shift, beside[first]);
        for i in first..last {
            let length = x.hypot(z);
            let (c, s) = if length > 0.0 {
                (x / length, z / length)
            } else {
                (1.0, 0.0)
            };
            if i > first {
                beside[i - 1] = length;
            }
            let (a, b, off) = (diagonal[i], diagonal[i + 1], beside[i]);
            diagonal[i] = c * (c * a + s * off) + s * (c * off + s * b);
            diagonal[i + 1] = s * (s * a - c * off) + c * (c * b - s * off);
            beside[i] = c * s * (b - a) + (c - s) * (c + s) * off;
            if i + 1 < last {
                (x, z) = (beside[i], s * beside[i + 1]);
                beside[i + 1] *= c;
            }
            let (above, below) = vectors[i * dim..].split_at_mut(dim);
            for (x, y) in above.iter_mut().zip(&mut below[..dim]) {
                (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
            }
        }
    }
    for vector in vectors.chunks_exact_mut(dim.max(1)) {
        for (i, mirror) in mirrors.iter().enumerate().rev() {
            reflect(mirror, &mut vector[i + 1..]);
        }
        let sorted = vector.to_vec();
        for (&place, x) in order.iter().zip(sorted) {
            vector[place] = x;
        }
    }
    (diagonal, vectors)
}

/// A symmetric matrix between mirrors that leave it with entries on and beside the diagonal alone.
struct Tridiagonal {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    /// One for each row but the last, across the columns behind the diagonal.
    mirrors: Vec<Vec<f64>>,
}

impl Tridiagonal {
    fn of(mut a: Vec<f64>, dim: usize) -> Self {
        let (mut beside, mut mirrors) = (Vec::new(), Vec::new());
        for i in 1..dim {
            let mut mirror = a[(i - 1) * dim + i..i * dim].to_vec();
            beside.push(mirror_of(&mut mirror));
            let rows = || (i..dim).map(|row| row * dim + i..(row + 1) * dim);
            let mut image: Vec<f64> = rows().map(|row| dot(&a[row], &mirror)).collect();
            let along = dot(&image, &mirror) / 2.0;
            image
                .iter_mut()
                .zip(&mirror)
                .for_each(|(p, m)| *p -= along * m);
            for (row, (m, p)) in rows().zip(mirror.iter().zip(&image)) {
                for (x, (n, q)) in a[row].iter_mut().zip(mirror.iter().zip(&image)) {
                    *x -= m * q + p * n;
                }
            }
            mirrors.push(mirror);
        }
        Self {
            diagonal: a.iter().step_by(dim + 1).copied().collect(),
            beside,
            mirrors,
        }
    }
}

/// The lower triangle of a matrix (dim, dim), row after row.
pub(crate) fn packed(matrix: &[f64], dim: usize) -> Vec<f64> {
    let rows = matrix.chunks_exact(dim).enumerate();
    rows.flat_map(|(i, row)| row[..=i].iter().copied())
        .collect()
}

/// A lower triangle, row after row, as a matrix (dim, dim).
pub(crate) fn unpacked(triangle: &[f64], dim: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; dim * dim];
    let mut rest = triangle;
    for (i, row) in matrix.chunks_exact_mut(dim).enumerate() {
        let (head, after) = rest.split_at(i + 1);
        row[..=i].copy_from_slice(head);
        rest = after;
    }
    matrix
}

/// $A B$ (dim, dim).
pub(crate) fn multiply(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    let view = |x| ArrayView2::from_shape((dim, dim), x).expect("a square");
    product(view(a), view(b))
}

/// $A A^T$ (dim, dim).
pub(crate) fn square(matrix: &[f64], dim: usize) -> Vec<f64> {
    let matrix = ArrayView2::from_shape((dim, dim), matrix).expect("a square");
    product(matrix, matrix.reversed_axes())
}

/// $A^T A$ (dim, dim).
pub(crate) fn gram(matrix: &[f64], dim: usize) -> Vec<f64> {
    let matrix = ArrayView2::from_shape((dim, dim), matrix).expect("a square");
    product(matrix.reversed_axes(), matrix)
}

/// A product, row after row.
fn product(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Vec<f64> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    general_mat_mul(1.0, &a, &b, 0.0, &mut out);
    out.into_raw_vec_and_offset().0
}

/// The inverse of a lower triangular matrix (dim, dim) with zeros above the diagonal and none on it.
pub(crate) fn inverse_of_lower(factor: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    for start in (0..dim).step_by(BLOCK) {
        let end = dim.min(start + BLOCK);
        if start > 0 {
            let (above, rows) = out.split_at_mut(start * dim);
            let factor = ArrayView2::from_shape((dim, dim), factor).expect("a square");
            let above = ArrayView2::from_shape((start, dim), above).expect("whole rows");
            let rows = &mut rows[..(end - start) * dim];
            let rows = ArrayViewMut2::from_shape((end - start, dim), rows).expect("whole rows");
            let factor = factor.slice_axis(Axis(0), Slice::from(start..end));
            general_mat_mul(
                -1.0,
                &factor.split_at(Axis(1), start).0,
                &above.split_at(Axis(1), start).0,
                0.0,
                &mut rows.split_at(Axis(1), start).0,
            );
        }
        for i in start..end {
            let (above, row) = out.split_at_mut(i * dim);
            row[i] = 1.0;
            let coefficients = &factor[i * dim..][..=i];
            for (k, above) in above.chunks_exact(dim).enumerate().skip(start) {
                for (x, y) in row[..=k].iter_mut().zip(above) {
                    *x -= coefficients[k] * y;
                }
            }
            row[..=i].iter_mut().for_each(|x| *x /= coefficients[i]);
        }
    }
    out
}

/// Orthonormal rows whose first `i` span the first `i` of `rows` (p, d), p <= d, for every `i`; where rows depend on those
/// before them, there are others in their place.
///
/// By Householder's reflections, which are orthogonal whatever the rows are: nothing depends on their rank.
pub(crate) fn orthonormal(rows: &Array2<f64>) -> Array2<f64> {
    let (p, d) = rows.dim();
    assert!(p <= d, "at most as many directions as columns");
    let mut rows = rows.as_standard_layout().into_owned();
    // Row i becomes the mirror that turns it into the span of the first i + 1 axes: zeros, then a vector of length
    // sqrt(2), or of zeros alone, which is no mirror.
    for i in 0..p {
        let (mirrors, mut rest) = rows.view_mut().split_at(Axis(0), i);
        let mut row = rest.row_mut(0);
        let row = row.as_slice_mut().expect("in order");
        for (j, mirror) in mirrors.outer_iter().enumerate() {
            reflect(&mirror.as_slice().expect("in order")[j..], &mut row[j..]);
        }
        row[..i].fill(0.0);
        mirror_of(&mut row[i..]);
    }
    let mut out = Array2::zeros((p, d));
    out.diag_mut().fill(1.0);
    for (i, mut row) in out.outer_iter_mut().enumerate() {
        let row = row.as_slice_mut().expect("in order");
        // Later mirrors leave this axis alone.
        for j in (0..=i).rev() {
            reflect(
                &rows.row(j).as_slice().expect("in order")[j..],
                &mut row[j..],
            );
        }
    }
    out
}

/// Puts the mirror of length sqrt(2) that turns a vector into its first axis in its place; what the first entry becomes.
fn mirror_of(row: &mut [f64]) -> f64 {
    // Squares may over- or underflow where numbers do not.
    let most = row.iter().fold(0.0f64, |most, x| x.abs().max(most));
    scale(row, most);
    let length = dot(row, row).sqrt().copysign(row[0]);
    row[0] += length;
    scale(row, dot(row, row).sqrt());
    row.iter_mut().for_each(|x| *x *= std::f64::consts::SQRT_2);
    -length * most
}

/// The mirror image of `x` behind the plane across `mirror`, which is of length sqrt(2).
fn reflect(mirror: &[f64], x: &mut [f64]) {
    let along = dot(mirror, x);
    for (x, m) in x.iter_mut().zip(mirror) {
        *x -= along * m;
    }
}

/// In units of `size`, unless that is 0.
fn scale(row: &mut [f64], size: f64) {
    if size > 0.0 {
        row.iter_mut().for_each(|x| *x /= size);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    ArrayView1::from(a).dot(&ArrayView1::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use approx::{assert_abs_diff_eq, assert_relative_eq};

    /// Below, at and beyond one block, and several.
    const SIZES: [usize; 9] = [1, 2, 3, 7, 31, 32, 33, 64, 101];

    fn random(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
        Rng::from_seed(seed).normals(rows, columns)
    }

    fn of(values: &[f64], dim: usize) -> Array2<f64> {
        Array2::from_shape_vec((dim, dim), values.to_vec()).unwrap()
    }

    /// The one lower triangle of positive diagonal whose square is the matrix.
    #[test]
    fn cholesky_is_the_root_and_reads_the_lower_half_alone() {
        for n in SIZES {
            let x = random(n, n + 3, n as u64);
            let a = x.dot(&x.t()) + Array2::<f64>::eye(n) * 0.1;
            let mut values: Vec<f64> = a
                .indexed_iter()
                .map(|((i, j), x)| if j > i { f64::NAN } else { *x })
                .collect();
            assert!(cholesky(&mut values, n));
            let factor = of(&values, n);
            assert_relative_eq!(factor.dot(&factor.t()), a, epsilon = 1e-11 * n as f64);
            for ((i, j), x) in factor.indexed_iter() {
                assert!(j < i || (i == j) == (*x > 0.0) && (i == j || *x == 0.0));
            }

            let inverse = of(&inverse_of_lower(&values, n), n);
            assert_abs_diff_eq!(inverse.dot(&factor), Array2::eye(n), epsilon = 1e-10);
            for ((i, j), x) in inverse.indexed_iter() {
                assert!(j <= i || *x == 0.0);
            }
        }
    }

    #[test]
    fn no_cholesky_of_what_is_not_positive_definite() {
        for n in SIZES {
            for bad in [0, n / 2, n - 1] {
                for entry in [0.0, -1.0, f64::NAN] {
                    let mut a = Array2::<f64>::eye(n);
                    a[[bad, bad]] = entry;
                    let mut values = a.into_raw_vec_and_offset().0;
                    assert!(!cholesky(&mut values, n), "{n} {bad} {entry}");
                }
            }
        }
        // Of rank 1: the second pivot is exactly 0.
        assert!(!cholesky(&mut [4.0, 2.0, 2.0, 1.0], 2));
        assert!(cholesky(&mut [], 0));
    }

    #[test]
    fn cholesky_takes_columns_of_any_unit() {
        let units = [1e-140, 1.0, 1e140];
        let correlations = [1.0, 0.5, 0.2, 0.5, 1.0, 0.4, 0.2, 0.4, 1.0];
        let entry = |i: usize| correlations[i] * units[i / 3] * units[i % 3];
        let matrix: Vec<f64> = (0..9).map(entry).collect();
        let Cholesky { factor, log_det } = Cholesky::of(&matrix, 3).unwrap();
        for (a, b) in square(&factor, 3).iter().zip(&matrix) {
            assert_abs_diff_eq!(a, b, epsilon = 1e-14 * b);
        }
        assert_abs_diff_eq!(log_det, f64::ln(0.63), epsilon = 1e-12);
        assert_eq!(unpacked(&packed(&factor, 3), 3), factor);
        assert!(Cholesky::of(&[1.0, 1.0, 1.0, 1.0 - 1e-9], 2).is_none());
        assert!(Cholesky::of(&[f64::NAN], 1).is_none());
    }

    /// One variance is far larger than the others: each eigenvalue keeps its own digits, wherever its column is.
    #[test]
    fn small_eigenvalues_stay_beside_a_large_one() {
        let variances = [1.0, 2.0, 3.0, 1e18];
        let all = |order: [usize; 4], dim: usize| {
            let entry = |i: usize, j: usize| match i == j {
                true => variances[order[i]],
                false => 0.1 + 0.05 * (order[i] + order[j]) as f64,
            };
            let matrix = Array2::from_shape_fn((dim, dim), |(i, j)| entry(i, j));
            let (mut values, _) = eigen(matrix.as_slice().unwrap(), dim);
            values.sort_by(f64::total_cmp);
            values
        };
        let mut expected = all([0, 1, 2, 3], 3);
        // A large variance moves the others by the square of a covariance over it.
        expected.push(1e18);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            for (value, expected) in all(order, 4).iter().zip(&expected) {
                assert_relative_eq!(value, expected, max_relative = 1e-9);
            }
        }
    }

    #[test]
    fn eigenvalues_are_raised_and_vectors_stay() {
        for n in SIZES {
            let vectors = orthonormal(&random(n, n, 3));
            let values: Vec<f64> = (0..n).map(|i| 10f64.powi(i as i32 % 9 - 6)).collect();
            let of_values = |values: &[f64]| {
                let scaled = &vectors.t() * &ndarray::Array1::from(values.to_vec());
                scaled.dot(&vectors)
            };
            for least in [1e-9, 1e-3] {
                // Columns in units of their own.
                let unit = |i: usize| 10f64.powi(i as i32 % 3);
                let of_units = |x: Array2<f64>| {
                    Array2::from_shape_fn((n, n), |(i, j)| x[[i, j]] * unit(i) * unit(j))
                };
                let matrix: Vec<f64> = of_units(of_values(&values)).iter().copied().collect();
                let floors: Vec<f64> = (0..n).map(|i| least * unit(i).powi(2)).collect();
                let found = of(&whitening(&matrix, &floors), n);
                let raised: Vec<f64> = values.iter().map(|v| v.max(least)).collect();
                let white = found.dot(&of_units(of_values(&raised))).dot(&found.t());
                assert_abs_diff_eq!(white, Array2::eye(n), epsilon = 1e-8);
                assert!(found.indexed_iter().all(|((i, j), x)| j <= i || *x == 0.0));
            }
            // Of rank 0.
            let found = of(&whitening(&vec![0.0; n * n], &vec![0.25; n]), n);
            assert_abs_diff_eq!(found, Array2::eye(n) * 2.0, epsilon = 1e-14);
        }
    }

    /// Orthonormal directions that span what the rows up to their own do are unique, but for their signs.
    fn check(rows: &Array2<f64>) {
        let q = orthonormal(rows);
        assert_abs_diff_eq!(q.dot(&q.t()), Array2::eye(rows.nrows()), epsilon = 1e-13);
        // Each row lies in the span of the directions up to its own.
        let most = rows
            .iter()
            .fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let rows = rows / most;
        for i in 0..rows.nrows() {
            let q = q.slice_axis(Axis(0), Slice::from(..=i));
            let back = q.dot(&rows.row(i)).dot(&q);
            assert_abs_diff_eq!(back, rows.row(i).to_owned(), epsilon = 1e-12);
        }
    }

    #[test]
    fn directions_are_orthonormal_whatever_the_rank_and_the_unit() {
        for (p, d) in [(1, 1), (1, 5), (3, 3), (4, 9), (16, 40)] {
            check(&random(p, d, 7));
            check(&Array2::zeros((p, d)));
            check(&Array2::ones((p, d)));
            check(&Array2::from_shape_fn((p, d), |(i, j)| {
                f64::from(i + d - p == j)
            }));
            // Of rank 1 and 2, but for rounding; rows that nearly depend on others; one row of zeros between others.
            check(&random(p, 1, 1).dot(&random(1, d, 2)));
            check(&random(p, 2, 3).dot(&random(2, d, 4)));
            check(&(random(p, 1, 5).dot(&random(1, d, 6)) + 1e-12 * random(p, d, 7)));
            let mut gap = random(p, d, 8);
            gap.row_mut(p / 2).fill(0.0);
            check(&gap);
            for unit in [1e-300, 1e300] {
                check(&(random(p, d, 9) * unit));
            }
        }
    }
}
