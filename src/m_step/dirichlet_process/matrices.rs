//! Small symmetric matrices (d, d): Cholesky factors, packed triangles, products.

use crate::base::linalg;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

/// What rounding leaves of a sum of products, relative to its diagonal: a smaller pivot has no correct digit.
const ROUNDING: f64 = 1e-12;

/// The lower Cholesky factor of a symmetric matrix.
pub(super) struct Cholesky {
    /// (d, d), zeros above the diagonal.
    pub(super) factor: Vec<f64>,
    /// The smallest pivot, each relative to its own diagonal entry: what is left of the variance of a column when
    /// those before it are known.
    pub(super) least_pivot: f64,
}

impl Cholesky {
    /// Of the lower half of a matrix (d, d); `None` unless it is finite and positive definite.
    pub(super) fn of(matrix: &[f64], dim: usize) -> Option<Self> {
        let scale: Vec<f64> = (0..dim).map(|j| matrix[j * (dim + 1)].sqrt()).collect();
        if !scale.iter().all(|s| s.is_finite() && *s > 0.0) {
            return None;
        }
        // Columns of one unit: no pivot under- or overflows, and they can be compared.
        let mut factor = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                factor[i * dim + j] = matrix[i * dim + j] / scale[i] / scale[j];
            }
        }
        if !factor.iter().all(|x| x.is_finite()) {
            return None;
        }
        if !linalg::cholesky(&mut factor, dim) {
            return None;
        }
        let mut least_pivot = f64::INFINITY;
        for i in 0..dim {
            let row = &mut factor[i * dim..(i + 1) * dim];
            least_pivot = least_pivot.min(row[i] * row[i]);
            for x in &mut row[..=i] {
                *x *= scale[i];
            }
        }
        (least_pivot > 0.0).then_some(Self {
            factor,
            least_pivot,
        })
    }

    /// The same of a matrix that is positive definite but for rounding: as little as it takes is added to the
    /// diagonal, so that no pivot is mere rounding. `None` if it is not finite.
    pub(super) fn of_rounded(matrix: &[f64], dim: usize) -> Option<Self> {
        let beyond_rounding = |c: &Self| c.least_pivot >= 0.5 * ROUNDING;
        Self::of(matrix, dim).filter(beyond_rounding).or_else(|| {
            (0..13).find_map(|step| {
                let share = ROUNDING * 10f64.powi(step);
                let mut raised = matrix.to_vec();
                for j in 0..dim {
                    raised[j * (dim + 1)] *= 1.0 + share;
                }
                Self::of(&raised, dim).filter(beyond_rounding)
            })
        })
    }

    /// The logarithm of the determinant of the matrix.
    pub(super) fn log_det(&self, dim: usize) -> f64 {
        let diagonal = (0..dim).map(|j| self.factor[j * (dim + 1)].ln());
        2.0 * diagonal.sum::<f64>()
    }
}

/// The lower triangle, row after row.
pub(super) fn packed(matrix: &[f64], dim: usize) -> Vec<f64> {
    let rows = matrix.chunks_exact(dim).enumerate();
    rows.flat_map(|(i, row)| row[..=i].iter().copied())
        .collect()
}

/// A lower triangle, row after row, as a matrix (d, d).
pub(super) fn unpacked(triangle: &[f64], dim: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; dim * dim];
    let mut rest = triangle;
    for (i, row) in matrix.chunks_exact_mut(dim).enumerate() {
        let (head, after) = rest.split_at(i + 1);
        row[..=i].copy_from_slice(head);
        rest = after;
    }
    matrix
}

/// $M u$ for a lower triangle $M$, row after row.
pub(super) fn times(triangle: &[f64], u: &[f64]) -> Vec<f64> {
    let mut rest = triangle;
    let row = |j| {
        let (row, after) = rest.split_at(j);
        rest = after;
        row.iter().zip(u).map(|(x, u)| x * u).sum()
    };
    (1..=u.len()).map(row).collect()
}

/// The $u$ of $M u = v$ for a lower triangle $M$, row after row.
pub(super) fn solve(triangle: &[f64], v: &[f64]) -> Vec<f64> {
    let mut u: Vec<f64> = Vec::with_capacity(v.len());
    let mut rest = triangle;
    for (j, v) in v.iter().enumerate() {
        let (row, after) = rest.split_at(j + 1);
        rest = after;
        let known: f64 = row.iter().zip(&u).map(|(x, u)| x * u).sum();
        u.push((v - known) / row[j]);
    }
    u
}

/// $A B$ (d, d), either transposed on request.
pub(super) fn product(
    (a, a_transposed): (&[f64], bool),
    (b, b_transposed): (&[f64], bool),
    dim: usize,
) -> Vec<f64> {
    let view = |values, transposed| {
        let view = ArrayView2::from_shape((dim, dim), values).expect("d x d numbers");
        if transposed {
            view.reversed_axes()
        } else {
            view
        }
    };
    let mut out = vec![0.0; dim * dim];
    let mut into = ArrayViewMut2::from_shape((dim, dim), &mut out).expect("d x d numbers");
    let (a, b) = (view(a, a_transposed), view(b, b_transposed));
    general_mat_mul(1.0, &a, &b, 0.0, &mut into);
    out
}

pub(super) fn add(total: &mut [f64], part: &[f64]) {
    for (total, x) in total.iter_mut().zip(part) {
        *total += x;
    }
}
