//! $|M u|^2$ for a lower triangular $M$ and many differences $u$: the Mahalanobis distances of full covariances.
//!
//! Rows are turned into columns of [`COLUMN`] rows each, so that one number of $M$ meets a whole vector of rows,
//! and the triangle is walked as it is: half the work of a matrix product, which would multiply its zeros.

use crate::base::float::Float;
use crate::base::simd::{SimdFloat, kernel, lanes};
use pulp::Simd;

/// Rows side by side in a column: a whole number of panels for every vector there is.
pub(crate) const COLUMN: usize = 64;

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
    /// rounded to `G`: shown to `see` in order, some rows at a time, with the number of the first.
    pub(crate) fn forms(
        &mut self,
        mean: &[f64],
        factor: &[f64],
        mut see: impl FnMut(usize, &[G], &[G]),
    ) {
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
            let count = COLUMN.min(self.n - first);
            see(first, &self.forms[..count], &self.squares[..count]);
        }
    }
}

impl Columns<f64> {
    /// Adds $\sum_n q_n u_n$ and the lower half of $\sum_n q_n u_n u_n^T$ for the differences $u$ of the rows from a mean. There is
    /// a share $q$ for each row, and zeros up to a multiple of [`COLUMN`].
    pub(crate) fn add_pairs(
        &mut self,
        mean: &[f64],
        shares: &[f64],
        first: &mut [f64],
        second: &mut [f64],
    ) {
        let size = self.rows.len() / self.dim * self.dim.next_multiple_of(TILE);
        self.differences.resize(size, 0.0);
        self.factor.resize(size, 0.0);
        pairs(
            &self.rows,
            mean,
            shares,
            &mut self.differences,
            &mut self.factor,
            first,
            second,
        );
    }
}

/// Coordinates whose products are added up together.
const TILE: usize = 4;

kernel! {
    /// The sums of [`Columns::add_pairs`], through the differences, and these times their shares: (columns, d up to a multiple of
    /// [`TILE`], COLUMN).
    fn pairs[](
        rows: &[f64],
        mean: &[f64],
        shares: &[f64],
        differences: &mut [f64],
        shared: &mut [f64],
        first: &mut [f64],
        second: &mut [f64],
    ) = pairs_of_columns
}

#[inline(always)]
fn pairs_of_columns<S: Simd>(
    simd: S,
    rows: &[f64],
    mean: &[f64],
    shares: &[f64],
    differences: &mut [f64],
    shared: &mut [f64],
    first: &mut [f64],
    second: &mut [f64],
) {
    let (dim, places) = (mean.len(), mean.len().next_multiple_of(TILE));
    for (j, (&m, first)) in mean.iter().zip(first).enumerate() {
        let m = f64::splat(simd, m);
        let mut sums = [f64::splat(simd, 0.0); PANEL];
        for (column, shares) in shares.chunks_exact(COLUMN).enumerate() {
            let rows = f64::vectors::<S>(&rows[(column * dim + j) * COLUMN..][..COLUMN]).0;
            let line = (column * places + j) * COLUMN;
            let apart = f64::vectors_mut::<S>(&mut differences[line..][..COLUMN]).0;
            let shared = f64::vectors_mut::<S>(&mut shared[line..][..COLUMN]).0;
            let shares = f64::vectors::<S>(shares).0;
            for v in 0..rows.len() {
                apart[v] = f64::minus(simd, rows[v], m);
                shared[v] = f64::times(simd, shares[v], apart[v]);
                sums[v % PANEL] = f64::plus(simd, sums[v % PANEL], shared[v]);
            }
        }
        for sum in sums {
            *first += f64::sum(simd, sum);
        }
    }
    // As many sums as there are registers for.
    match S::REGISTER_COUNT {
        32.. => tiles::<S, TILE>(simd, dim, differences, shared, second),
        _ => tiles::<S, 2>(simd, dim, differences, shared, second),
    }
}

#[inline(always)]
fn tiles<S: Simd, const N: usize>(
    simd: S,
    dim: usize,
    differences: &[f64],
    shared: &[f64],
    second: &mut [f64],
) {
    let size = dim.next_multiple_of(TILE) * COLUMN;
    let per_line = COLUMN / lanes::<f64, S>();
    for i in (0..dim).step_by(N) {
        for j in (0..=i).step_by(TILE) {
            let mut sums = [[f64::splat(simd, 0.0); TILE]; N];
            let columns = differences
                .chunks_exact(size)
                .zip(shared.chunks_exact(size));
            for (apart, shared) in columns {
                let apart = f64::vectors::<S>(&apart[i * COLUMN..][..N * COLUMN]).0;
                let shared = f64::vectors::<S>(&shared[j * COLUMN..][..TILE * COLUMN]).0;
                for v in 0..per_line {
                    for a in 0..N {
                        let u = apart[a * per_line + v];
                        for b in 0..TILE {
                            let w = shared[b * per_line + v];
                            sums[a][b] = f64::times_plus(simd, u, w, sums[a][b]);
                        }
                    }
                }
            }
            for (a, sums) in sums.into_iter().enumerate().take(dim - i) {
                let known = (i + a + 1 - j).min(TILE);
                let into = &mut second[(i + a) * dim + j..][..known];
                for (into, sum) in into.iter_mut().zip(sums) {
                    *into += f64::sum(simd, sum);
                }
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
    use crate::base::simd::on_every_processor;
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
                let mut columns = Columns::<f64>::new(n, d, |i| &rows[i]);
                columns.forms(&mean, &factor, |first, forms, squares_found| {
                    for (form, square) in forms.iter().zip(squares_found) {
                        let (expected, squares) = naive(seen);
                        assert_abs_diff_eq!(*form, expected, epsilon = 1e-11 * expected);
                        assert_abs_diff_eq!(*square, squares, epsilon = 1e-13 * squares);
                        let one = super::form(&factor, &differences(seen));
                        assert_abs_diff_eq!(one, expected, epsilon = 1e-11 * expected);
                        seen += 1;
                    }
                    assert_eq!(seen, n.min(first + COLUMN));
                });
                assert_eq!(seen, n);
                let mut narrow = Columns::<f32>::new(n, d, |i| &rows[i]);
                narrow.forms(&mean, &factor, |first, forms, _| {
                    for (place, &form) in forms.iter().enumerate() {
                        let expected = naive(first + place).0;
                        assert_abs_diff_eq!(
                            f64::from(form),
                            expected,
                            epsilon = 1e-3 * (1.0 + expected)
                        );
                    }
                });
                // Sums of pairs, after forms and twice, in the same scratch.
                let mut shares: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
                shares.resize(n.next_multiple_of(COLUMN), 0.0);
                let (mut first, mut second) = (vec![1.0; d], vec![1.0; d * d]);
                on_every_processor(|| {
                    (first, second) = (vec![1.0; d], vec![1.0; d * d]);
                    columns.add_pairs(&mean, &shares, &mut first, &mut second);
                    columns.add_pairs(&mean, &shares, &mut first, &mut second);
                    let sum = |of: &dyn Fn(&[f64]) -> f64| -> f64 {
                        let all = (0..n).map(|i| 2.0 * shares[i] * of(&differences(i)));
                        1.0 + all.sum::<f64>()
                    };
                    for i in 0..d {
                        assert_abs_diff_eq!(first[i], sum(&|u| u[i]), epsilon = 1e-11 * n as f64);
                        for j in (0..=i).step_by(1 + d / 9) {
                            let naive = sum(&|u| u[i] * u[j]);
                            assert_abs_diff_eq!(
                                second[i * d + j],
                                naive,
                                epsilon = 1e-11 * n as f64
                            );
                        }
                        assert!(second[i * d + i + 1..(i + 1) * d].iter().all(|x| *x == 1.0));
                    }
                });
            }
        }
    }
}
