//! Factors of matrices that are small compared with the data: Cholesky's, the inverse of a triangle, orthonormal directions.
//!
//! Matrices are in `f64`, row after row. Everything is sequential, so sums do not depend on threads. It ends where its
//! [`Watch`] says so, which is asked before each piece of work of at most a few hundred operations for every entry of a matrix.

use super::cancel::{Watch, check};
use super::error::Result;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Slice};

/// Rows that are worked on together: what was found before them enters as one matrix product.
const BLOCK: usize = 32;

/// Puts the lower Cholesky factor of a symmetric matrix (dim, dim) in place of its lower half, and zeros above the
/// diagonal. `false` unless all pivots are positive; the matrix then holds nothing of use.
pub(crate) fn cholesky(matrix: &mut [f64], dim: usize, watch: Watch<'_>) -> Result<bool> {
    for start in (0..dim).step_by(BLOCK) {
        check(watch)?;
        let width = BLOCK.min(dim - start);
        if start > 0 {
            let rows = ArrayViewMut2::from_shape((dim - start, dim), &mut matrix[start * dim..])
                .expect("as many numbers as entries");
            let (left, right) = rows.split_at(Axis(1), start);
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
                    return Ok(false);
                }
                rest[0] = square.sqrt();
            }
        }
    }
    for i in 0..dim {
        matrix[i * dim + i + 1..(i + 1) * dim].fill(0.0);
    }
    Ok(true)
}

pub(crate) struct Cholesky {
    /// (dim, dim), zeros above the diagonal.
    pub(crate) factor: Vec<f64>,
    pub(crate) log_det: f64,
}

impl Cholesky {
    /// From the lower half of a matrix (dim, dim); `None` unless it is finite, positive definite, and not empty.
    pub(crate) fn of(matrix: &[f64], dim: usize, watch: Watch<'_>) -> Result<Option<Self>> {
        if dim == 0 {
            return Ok(None);
        }
        let scale: Vec<f64> = (0..dim).map(|j| matrix[j * (dim + 1)].sqrt()).collect();
        // Columns of one unit: no pivot under- or overflows.
        let mut factor = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                factor[i * dim + j] = matrix[i * dim + j] / scale[i] / scale[j];
            }
        }
        if !factor.iter().all(|x| x.is_finite()) || !cholesky(&mut factor, dim, watch)? {
            return Ok(None);
        }
        for (row, scale) in factor.chunks_exact_mut(dim).zip(&scale) {
            row.iter_mut().for_each(|x| *x *= scale);
        }
        let logs = (0..dim).map(|j| factor[j * (dim + 1)].ln());
        let log_det = 2.0 * logs.sum::<f64>();
        Ok(log_det.is_finite().then_some(Self { factor, log_det }))
    }
}

/// Makes the lower Cholesky factor of $L L^T$ (dim, dim) that of $L L^T + x x^T$, by a rotation for each column (Golub and Van
/// Loan, Matrix Computations, 6.5). However long $x$ is, other directions keep their digits; in the sum they would have none.
pub(crate) fn rank_one_update(factor: &mut [f64], mut x: Vec<f64>) {
    let dim = x.len();
    for j in 0..dim {
        let pivot = factor[j * (dim + 1)];
        let length = pivot.hypot(x[j]);
        let c = pivot / length;
        let s = x[j] / length;
        for (row, x) in factor.chunks_exact_mut(dim).zip(&mut x).skip(j) {
            (row[j], *x) = (c * row[j] + s * *x, c * *x - s * row[j]);
        }
    }
}

/// The inverse of the lower Cholesky factor of the covariance with this lower half (dim, dim), raised to at least the diagonal
/// matrix of these positive variances, in every direction: in units of them its eigenvalues are raised to 1. Where some are,
/// it follows from eigenvectors: of a matrix that is put together again, the smallest eigenvalues would be lost in the
/// rounding of the largest.
pub(crate) fn whitening(matrix: &[f64], least: &[f64], watch: Watch<'_>) -> Result<Vec<f64>> {
    let dim = least.len();
    let unit: Vec<f64> = least.iter().map(|v| v.sqrt()).collect();
    let mut matrix = matrix.to_vec();
    for i in 0..dim {
        for j in 0..=i {
            matrix[i * dim + j] = matrix[i * dim + j] / unit[i] / unit[j];
            matrix[j * dim + i] = matrix[i * dim + j];
        }
    }
    let mut inverse = raised(&matrix, dim, watch)?;
    for row in inverse.chunks_exact_mut(dim) {
        row.iter_mut().zip(&unit).for_each(|(x, unit)| *x /= unit);
    }
    Ok(inverse)
}

/// The inverse of the lower Cholesky factor of a symmetric matrix whose eigenvalues are raised to at least 1.
fn raised(matrix: &[f64], dim: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
    let mut shifted = matrix.to_vec();
    shifted.iter_mut().step_by(dim + 1).for_each(|x| *x -= 1.0);
    let positive = shifted.iter().step_by(dim + 1).all(|x| *x > 0.0);
    if positive
        && Cholesky::of(&shifted, dim, watch)?.is_some()
        && let Some(cholesky) = Cholesky::of(matrix, dim, watch)?
    {
        return inverse_of_lower(&cholesky.factor, dim, watch);
    }
    let (values, vectors) = eigen(matrix, dim, watch)?;
    let axes = Array2::from_shape_fn((dim, dim), |(i, a)| {
        values[a].max(1.0).sqrt() * vectors[a * dim + i]
    });
    // Axes as long as deviations, turned so that they are a lower triangle.
    let turn = orthonormal(&axes, watch)?;
    let mut factor = product(axes.view(), turn.t(), watch)?;
    for j in 0..dim {
        let sign = f64::signum(factor[j * (dim + 1)]);
        (0..j).for_each(|i| factor[i * dim + j] = 0.0);
        (j..dim).for_each(|i| factor[i * dim + j] *= sign);
    }
    inverse_of_lower(&factor, dim, watch)
}

/// The eigenvalues of a symmetric matrix (dim, dim), and as many eigenvectors, row after row: those of a tridiagonal matrix by
/// QR steps (Golub and Van Loan, Matrix Computations, 8.3). Columns are taken in the order of their variances, the largest
/// first: so small values keep their digits next to large ones, down to about 1: callers raise what is less.
pub(crate) fn eigen(matrix: &[f64], dim: usize, watch: Watch<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
    /// Values next to the diagonal that are no larger are taken to be 0, which moves eigenvalues by no more.
    const LEAST: f64 = 1e-12;
    /// Each eigenvalue takes two or three steps.
    const PATIENCE: usize = 30;
    let variance = |i: usize| matrix[i * (dim + 1)];
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&i, &j| variance(j).total_cmp(&variance(i)));
    let row = |&i: &usize| order.iter().map(move |j| matrix[i * dim + j]);
    let Tridiagonal {
        mut diagonal,
        beside: mut off_diagonal,
        mirrors,
    } = Tridiagonal::of(order.iter().flat_map(row).collect(), dim, watch)?;
    let mut vectors = Panels::of(&mirrors, dim, watch)?;
    let size = diagonal.iter().chain(&off_diagonal).map(|x| x.abs());
    let rounding = f64::EPSILON * size.fold(0.0, f64::max);
    // This bound grows where steps do not help, first to the rounding of the whole matrix: so the loop ends, and only when all
    // values next to the diagonal are within it. Numbers that are not finite count as 0, too.
    let mut least = LEAST;
    let mut steps = 0;
    let mut last = dim.saturating_sub(1);
    let mut rotations = Vec::new();
    loop {
        check(watch)?;
        let is_lost = |i: usize| {
            let neighbours = f64::EPSILON * (diagonal[i].abs() + diagonal[i + 1].abs());
            off_diagonal[i].is_nan() || off_diagonal[i].abs() <= neighbours.max(least)
        };
        let before = last;
        while last > 0 && is_lost(last - 1) {
            last -= 1;
        }
        let first = (0..last).rfind(|&i| is_lost(i)).map_or(0, |i| i + 1);
        if rotations.len() >= BLOCK * dim || last == 0 {
            vectors.rotate(&rotations, watch)?;
            rotations.clear();
        }
        if last == 0 {
            break;
        }
        steps = if last < before { 0 } else { steps + 1 };
        if steps == PATIENCE {
            (least, steps) = ((2.0 * least).max(rounding), 0);
        }
        // Wilkinson's shift: the eigenvalue of the last two rows that is nearest to the last entry.
        let half = (diagonal[last - 1] - diagonal[last]) / 2.0;
        let off = off_diagonal[last - 1];
        let shift =
            diagonal[last] - off / (half / off + (half / off).hypot(1.0).copysign(half / off));
        let mut x = diagonal[first] - shift;
        let mut z = off_diagonal[first];
        for i in first..last {
            let length = x.hypot(z);
            let (c, s) = if length > 0.0 {
                (x / length, z / length)
            } else {
                (1.0, 0.0)
            };
            if i > first {
                off_diagonal[i - 1] = length;
            }
            let a = diagonal[i];
            let b = diagonal[i + 1];
            let off = off_diagonal[i];
            diagonal[i] = c * (c * a + s * off) + s * (c * off + s * b);
            diagonal[i + 1] = s * (s * a - c * off) + c * (c * b - s * off);
            off_diagonal[i] = c * s * (b - a) + (c - s) * (c + s) * off;
            if i + 1 < last {
                (x, z) = (off_diagonal[i], s * off_diagonal[i + 1]);
                off_diagonal[i + 1] *= c;
            }
            rotations.push(Rotation { i, c, s });
        }
    }
    Ok((diagonal, vectors.rows(&order)))
}

/// A rotation of the rows `i` and `i + 1`, by an angle of this cosine and sine.
struct Rotation {
    i: usize,
    c: f64,
    s: f64,
}

/// Rows (dim, dim) in panels of a few columns: all rotations of many steps are made in a panel while it is near the processor.
struct Panels {
    dim: usize,
    values: Vec<[f64; Self::WIDTH]>,
}

impl Panels {
    const WIDTH: usize = 16;

    /// The axes behind all mirrors, the last one first.
    fn of(mirrors: &[Vec<f64>], dim: usize, watch: Watch<'_>) -> Result<Self> {
        let mut values = vec![[0.0; Self::WIDTH]; dim.div_ceil(Self::WIDTH) * dim];
        let mut rows = vec![0.0; BLOCK.min(dim) * dim];
        for start in (0..dim).step_by(BLOCK) {
            check(watch)?;
            let end = dim.min(start + BLOCK);
            let rows = &mut rows[..(end - start) * dim];
            rows.fill(0.0);
            (start..end).for_each(|i| rows[(i - start) * dim + i] = 1.0);
            let before = mirrors.iter().enumerate().take(end).rev();
            reflect_rows(before.map(|(j, mirror)| (j + 1, &mirror[..])), rows, dim);
            for (i, row) in (start..end).zip(rows.chunks_exact(dim)) {
                for (panel, part) in row.chunks(Self::WIDTH).enumerate() {
                    values[panel * dim + i][..part.len()].copy_from_slice(part);
                }
            }
        }
        Ok(Self { dim, values })
    }

    fn rotate(&mut self, rotations: &[Rotation], watch: Watch<'_>) -> Result<()> {
        for panel in self.values.chunks_exact_mut(self.dim.max(1)) {
            check(watch)?;
            for &Rotation { i, c, s } in rotations {
                let [above, below] = &mut panel[i..i + 2] else {
                    continue;
                };
                for (x, y) in above.iter_mut().zip(below) {
                    (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
                }
            }
        }
        Ok(())
    }

    /// The rows one after the other, with their numbers in these places.
    fn rows(&self, places: &[usize]) -> Vec<f64> {
        let mut rows = vec![0.0; self.dim * self.dim];
        for (i, row) in rows.chunks_exact_mut(self.dim.max(1)).enumerate() {
            for (j, &place) in places.iter().enumerate() {
                row[place] = self.values[j / Self::WIDTH * self.dim + i][j % Self::WIDTH];
            }
        }
        rows
    }
}

/// A symmetric matrix between mirrors that leave it with entries on the diagonal and next to it alone.
struct Tridiagonal {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    /// One for each row but the last, across the columns behind the diagonal.
    mirrors: Vec<Vec<f64>>,
}

impl Tridiagonal {
    fn of(mut a: Vec<f64>, dim: usize, watch: Watch<'_>) -> Result<Self> {
        let mut off_diagonal = Vec::new();
        let mut mirrors = Vec::new();
        for i in 1..dim {
            check(watch)?;
            let mut mirror = a[(i - 1) * dim + i..i * dim].to_vec();
            off_diagonal.push(mirror_of(&mut mirror));
            let rows = || (i..dim).map(|row| row * dim + i..(row + 1) * dim);
            let mut image: Vec<f64> = rows().map(|row| dot(&a[row], &mirror)).collect();
            let along = dot(&image, &mirror) / 2.0;
            let pairs = image.iter_mut().zip(&mirror);
            pairs.for_each(|(p, m)| *p -= along * m);
            for (row, (m, p)) in rows().zip(mirror.iter().zip(&image)) {
                for (x, (n, q)) in a[row].iter_mut().zip(mirror.iter().zip(&image)) {
                    *x -= m * q + p * n;
                }
            }
            mirrors.push(mirror);
        }
        Ok(Self {
            diagonal: a.iter().step_by(dim + 1).copied().collect(),
            beside: off_diagonal,
            mirrors,
        })
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
    for (i, row) in matrix.chunks_exact_mut(dim).enumerate() {
        row[..=i].copy_from_slice(&triangle[i * (i + 1) / 2..][..=i]);
    }
    matrix
}

/// $A B$ (dim, dim).
pub(crate) fn multiply(a: &[f64], b: &[f64], dim: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
    product(table(a, dim), table(b, dim), watch)
}

/// $A A^T$ (dim, dim).
pub(crate) fn square(matrix: &[f64], dim: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
    let matrix = table(matrix, dim);
    product(matrix, matrix.reversed_axes(), watch)
}

/// $A^T A$ (dim, dim).
pub(crate) fn gram(matrix: &[f64], dim: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
    let matrix = table(matrix, dim);
    product(matrix.reversed_axes(), matrix, watch)
}

fn table(matrix: &[f64], dim: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((dim, dim), matrix).expect("a square")
}

fn product(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, watch: Watch<'_>) -> Result<Vec<f64>> {
    /// Rows in a piece of work.
    const ROWS: usize = 128;
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    let pieces = a.axis_chunks_iter(Axis(0), ROWS);
    for (a, mut out) in pieces.zip(out.axis_chunks_iter_mut(Axis(0), ROWS)) {
        check(watch)?;
        general_mat_mul(1.0, &a, &b, 0.0, &mut out);
    }
    Ok(out.into_raw_vec_and_offset().0)
}

/// The inverse of a lower triangular matrix (dim, dim) with zeros above the diagonal and none on it.
pub(crate) fn inverse_of_lower(factor: &[f64], dim: usize, watch: Watch<'_>) -> Result<Vec<f64>> {
    let mut out = vec![0.0; dim * dim];
    for start in (0..dim).step_by(BLOCK) {
        check(watch)?;
        let end = dim.min(start + BLOCK);
        if start > 0 {
            let (above, rows) = out.split_at_mut(start * dim);
            let factor = table(factor, dim);
            let above = ArrayView2::from_shape((start, dim), above).expect("whole rows");
            let rows = &mut rows[..(end - start) * dim];
            let rows = ArrayViewMut2::from_shape((end - start, dim), rows).expect("whole rows");
            let factor = factor.slice_axis(Axis(0), Slice::from(start..end));
            let a = factor.split_at(Axis(1), start).0;
            let b = above.split_at(Axis(1), start).0;
            general_mat_mul(-1.0, &a, &b, 0.0, &mut rows.split_at(Axis(1), start).0);
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
    Ok(out)
}

/// $A A^T$ (q, q) of `q` rows of `wide` numbers.
pub(crate) fn gram_of_rows(rows: &[f64], wide: usize) -> Vec<f64> {
    let rows = ArrayView2::from_shape((rows.len() / wide, wide), rows).expect("whole rows");
    rows.dot(&rows.t()).into_raw_vec_and_offset().0
}

/// Solves $L X = B$ for a lower triangle (q, q) and `q` rows of `wide` numbers, in the place of these.
pub(crate) fn forward(lower: &[f64], q: usize, rows: &mut [f64], wide: usize) {
    for i in 0..q {
        let (before, rest) = rows.split_at_mut(i * wide);
        let row = &mut rest[..wide];
        for (l, before) in before.chunks_exact(wide).enumerate() {
            subtract(lower[i * q + l], before, row);
        }
        row.iter_mut().for_each(|x| *x /= lower[i * (q + 1)]);
    }
}

/// Solves $L^T X = B$, as [`forward`].
pub(crate) fn backward(lower: &[f64], q: usize, rows: &mut [f64], wide: usize) {
    for i in (0..q).rev() {
        let (rest, after) = rows.split_at_mut((i + 1) * wide);
        let row = &mut rest[i * wide..];
        for (l, after) in (i + 1..q).zip(after.chunks_exact(wide)) {
            subtract(lower[l * q + i], after, row);
        }
        row.iter_mut().for_each(|x| *x /= lower[i * (q + 1)]);
    }
}

fn subtract(factor: f64, from: &[f64], row: &mut [f64]) {
    row.iter_mut().zip(from).for_each(|(x, y)| *x -= factor * y);
}

/// Orthonormal rows whose first `i` span the first `i` of `rows` (p, d), p <= d, for every `i`; where rows depend on those
/// before them, there are others in their place.
///
/// By Householder's reflections, which are orthogonal whatever the rows are: nothing depends on their rank.
pub(crate) fn orthonormal(rows: &Array2<f64>, watch: Watch<'_>) -> Result<Array2<f64>> {
    let (p, d) = rows.dim();
    assert!(p <= d, "at most as many directions as columns");
    let mut rows: Vec<f64> = rows.iter().copied().collect();
    // Row i becomes the mirror that turns it into the span of the first i + 1 axes: zeros, then a vector of length
    // sqrt(2), or of zeros alone, which is no mirror.
    for start in (0..p).step_by(BLOCK) {
        check(watch)?;
        let (before, rest) = rows.split_at_mut(start * d);
        let rows = &mut rest[..BLOCK.min(p - start) * d];
        reflect_rows(mirrors(before, d, 0), rows, d);
        for i in 0..rows.len() / d {
            let (before, rest) = rows.split_at_mut(i * d);
            let row = &mut rest[..d];
            reflect_rows(mirrors(before, d, start), row, d);
            row[..start + i].fill(0.0);
            mirror_of(&mut row[start + i..]);
        }
    }
    let mut out = vec![0.0; p * d];
    out.iter_mut().step_by(d + 1).for_each(|x| *x = 1.0);
    for start in (0..p).step_by(BLOCK) {
        check(watch)?;
        let range = start * d..p.min(start + BLOCK) * d;
        // Later mirrors leave these axes alone.
        let before: Vec<_> = mirrors(&rows[..range.end], d, 0).collect();
        reflect_rows(before.into_iter().rev(), &mut out[range], d);
    }
    Ok(Array2::from_shape_vec((p, d), out).expect("p x d numbers"))
}

/// Rows of `d` that are mirrors, the first of them across the columns from `start` on, each other one from the next column on.
fn mirrors(rows: &[f64], d: usize, start: usize) -> impl Iterator<Item = (usize, &[f64])> {
    let rows = rows.chunks_exact(d).zip(start..);
    rows.map(|(row, j)| (j, &row[j..]))
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

/// The mirror images of rows of `dim` behind mirrors across the columns from some on, one mirror after the other: each is read
/// once for all rows.
fn reflect_rows<'a>(
    mirrors: impl Iterator<Item = (usize, &'a [f64])>,
    rows: &mut [f64],
    dim: usize,
) {
    for (start, mirror) in mirrors {
        for row in rows.chunks_exact_mut(dim) {
            reflect(mirror, &mut row[start..]);
        }
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
