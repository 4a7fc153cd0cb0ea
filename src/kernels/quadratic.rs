//! $|M u|^2$ for a lower triangular $M$ and many differences $u$: the Mahalanobis distances of full covariances.
//!
//! Rows are turned into columns of [`COLUMN`] rows each, so that one number of $M$ meets a whole vector of rows,
//! and the triangle is walked as it is: half the work of a matrix product, which would multiply its zeros.

use crate::base::float::Float;
use crate::base::simd::{SimdFloat, kernel};
use pulp::Simd;

/// Rows side by side in a column: a whole number of panels for every vector there is.
const COLUMN: usize = 64;

/// Vectors of a panel: with two rows of the matrix at a time, eight sums in registers.
const PANEL: usize = 4;

kernel! {
    /// One column of rows `rows` (d, COLUMN), coordinate by coordinate: $|M u|^2$ into `forms` and $|u|^2$ into `squares`, for
    /// the differences $u$ from the mean. `factor` has the rows of the triangle, one after the other: 1 + 2 + .. + d numbers;
    /// `differences` (d, COLUMN) is scratch.
    fn column[F: Float](
        rows: &[F],
        mean: &[F],
        factor: &[F],
        differences: &mut [F],
        forms: &mut [F; COLUMN],
        squares: &mut [F; COLUMN],
    ) = forms_of_column
}

#[inline(always)]
fn forms_of_column<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    mean: &[F],
    factor: &[F],
    differences: &mut [F],
    forms: &mut [F; COLUMN],
    squares: &mut [F; COLUMN],
) {
    let dim = mean.len();
    let rows = F::vectors::<S>(rows).0.as_chunks::<PANEL>().0;
    let differences = F::vectors_mut::<S>(differences)
        .0
        .as_chunks_mut::<PANEL>()
        .0;
    let forms = F::vectors_mut::<S>(forms).0.as_chunks_mut::<PANEL>().0;
    let squares = F::vectors_mut::<S>(squares).0.as_chunks_mut::<PANEL>().0;
    let panels = forms.len();
    let zero = [F::splat(simd, F::zero()); PANEL];
    for (panel, (form, square)) in forms.iter_mut().zip(squares).enumerate() {
        let differences = &mut differences[..dim];
        let mut sums = zero;
        let rows = rows[panel..].iter().step_by(panels);
        for ((u, z), &m) in differences.iter_mut().zip(rows).zip(mean) {
            let m = F::splat(simd, m);
            for l in 0..PANEL {
                u[l] = F::minus(simd, z[l], m);
                sums[l] = F::times_plus(simd, u[l], u[l], sums[l]);
            }
        }
        *square = sums;

        let mut total = zero;
        let mut rest = factor;
        let mut done = 0;
        while done + 1 < dim {
            let (first, after) = rest.split_at(done + 1);
            let (second, after) = after.split_at(done + 2);
            rest = after;
            let (mut a, mut b) = (zero, zero);
            for ((u, &x), &y) in differences.iter().zip(first).zip(second) {
                let (x, y) = (F::splat(simd, x), F::splat(simd, y));
                for l in 0..PANEL {
                    a[l] = F::times_plus(simd, x, u[l], a[l]);
                    b[l] = F::times_plus(simd, y, u[l], b[l]);
                }
            }
            let y = F::splat(simd, second[done + 1]);
            for l in 0..PANEL {
                b[l] = F::times_plus(simd, y, differences[done + 1][l], b[l]);
                total[l] = F::times_plus(simd, a[l], a[l], total[l]);
                total[l] = F::times_plus(simd, b[l], b[l], total[l]);
            }
            done += 2;
        }
        if done < dim {
            let mut a = zero;
            for (u, &x) in differences.iter().zip(rest) {
                let x = F::splat(simd, x);
                for l in 0..PANEL {
                    a[l] = F::times_plus(simd, x, u[l], a[l]);
                }
            }
            for l in 0..PANEL {
                total[l] = F::times_plus(simd, a[l], a[l], total[l]);
            }
        }
        *form = total;
    }
}

/// A block of rows as columns, in the type `G` to compute in, and the scratch of the kernel.
#[derive(Debug)]
pub(crate) struct Columns<G> {
    n: usize,
    dim: usize,
    /// (columns, d, COLUMN); zeros where there is no row.
    rows: Vec<G>,
    differences: Vec<G>,
    factor: Vec<G>,
    mean: Vec<G>,
    forms: [G; COLUMN],
    squares: [G; COLUMN],
}

impl<G: Float> Columns<G> {
    /// From `n` rows of `dim` numbers (padding is left out).
    pub(crate) fn new<'a, F: Float>(n: usize, dim: usize, row: impl Fn(usize) -> &'a [F]) -> Self {
        let size = dim * COLUMN;
        let mut rows = vec![G::zero(); n.div_ceil(COLUMN) * size];
        for (c, column) in rows.chunks_exact_mut(size).enumerate() {
            for place in 0..COLUMN.min(n - c * COLUMN) {
                for (j, z) in row(c * COLUMN + place).iter().take(dim).enumerate() {
                    column[j * COLUMN + place] = G::from_f64(z.to_f64());
                }
            }
        }
        Self {
            n,
            dim,
            rows,
            differences: vec![G::zero(); size],
            factor: Vec::new(),
            mean: Vec::new(),
            forms: [G::zero(); COLUMN],
            squares: [G::zero(); COLUMN],
        }
    }

    /// $|M (z - m)|^2$ and $|z - m|^2$ of every row, for the mean $m$ (d) and the triangle $M$, row after row, both
    /// rounded to `G`: shown to `see` in order.
    pub(crate) fn forms(&mut self, mean: &[f64], factor: &[f64], mut see: impl FnMut(usize, G, G)) {
        let rounded = |x: &f64| G::from_f64(*x);
        self.mean.clear();
        self.mean.extend(mean.iter().map(rounded));
        self.factor.clear();
        self.factor.extend(factor.iter().map(rounded));
        for (c, rows) in self.rows.chunks_exact(self.dim * COLUMN).enumerate() {
            column(
                rows,
                &self.mean,
                &self.factor,
                &mut self.differences,
                &mut self.forms,
                &mut self.squares,
            );
            let first = c * COLUMN;
            let found = self.forms.iter().zip(&self.squares);
            for (place, (&form, &square)) in found.enumerate().take(self.n - first) {
                see(first + place, form, square);
            }
        }
    }
}

kernel! {
    /// $|M u|^2$ of one difference, for the triangle $M$, row after row.
    pub(crate) fn form[](factor: &[f64], u: &[f64]) -> f64 = form_of_one
}

#[inline(always)]
fn form_of_one<S: Simd>(simd: S, factor: &[f64], u: &[f64]) -> f64 {
    let (mut rest, mut total) = (factor, 0.0);
    for j in 1..=u.len() {
        let (row, after) = rest.split_at(j);
        rest = after;
        let ((row, row_rest), (u, u_rest)) = (f64::vectors::<S>(row), f64::vectors::<S>(&u[..j]));
        let (row_rest, u_rest) = (f64::partial(simd, row_rest), f64::partial(simd, u_rest));
        let mut sums = f64::times(simd, row_rest, u_rest);
        for (&x, &u) in row.iter().zip(u) {
            sums = f64::times_plus(simd, x, u, sums);
        }
        let v = f64::sum(simd, sums);
        total += v * v;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use approx::assert_abs_diff_eq;

    #[test]
    fn forms_of_columns_and_of_one_row_are_the_naive_sums() {
        let mut rng = Rng::from_seed(1);
        for d in [1, 2, 3, 7, 8, 16, 17, 74] {
            for n in [1, 63, 64, 65, 200] {
                let mut row = |_| (0..d + 3).map(|_| rng.normal() as f32).collect();
                let rows: Vec<Vec<f32>> = (0..n).map(&mut row).collect();
                let mean: Vec<f64> = (0..d).map(|_| rng.normal()).collect();
                let factor: Vec<f64> = (0..d * (d + 1) / 2).map(|_| rng.normal()).collect();
                let differences = |n: usize| -> Vec<f64> {
                    (0..d).map(|j| f64::from(rows[n][j]) - mean[j]).collect()
                };
                let naive = |n: usize| -> (f64, f64) {
                    let (u, mut place, mut total) = (differences(n), 0, 0.0);
                    for j in 0..d {
                        let v: f64 = (0..=j).map(|i| factor[place + i] * u[i]).sum();
                        place += j + 1;
                        total += v * v;
                    }
                    (total, u.iter().map(|u| u * u).sum())
                };
                let mut seen = 0;
                Columns::<f64>::new(n, d, |i| &rows[i]).forms(&mean, &factor, |i, form, square| {
                    let (expected, squares) = naive(i);
                    assert_eq!(i, seen);
                    assert_abs_diff_eq!(form, expected, epsilon = 1e-11 * expected);
                    assert_abs_diff_eq!(square, squares, epsilon = 1e-13 * squares);
                    let one = super::form(&factor, &differences(i));
                    assert_abs_diff_eq!(one, expected, epsilon = 1e-11 * expected);
                    seen += 1;
                });
                assert_eq!(seen, n);
                Columns::<f32>::new(n, d, |i| &rows[i]).forms(&mean, &factor, |i, form, _| {
                    let expected = naive(i).0;
                    assert_abs_diff_eq!(
                        f64::from(form),
                        expected,
                        epsilon = 1e-3 * (1.0 + expected)
                    );
                });
            }
        }
    }
}
