//! $|M u|^2$ for a lower triangular $M$ and many differences $u$: the Mahalanobis distances of full covariances.
//!
//! Rows are turned into columns of [`COLUMN`] rows each, so that one number of $M$ meets a whole vector of rows,
//! and the triangle is walked as it is: half the work of a matrix product, which would multiply its zeros.

use crate::base::float::Float;
use crate::base::simd::{LANES, SimdFloat, aligned, kernel, lanes, vectorised};
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
            let mut a = zero;
            let mut b = zero;
            for ((u, &x), &y) in differences.iter().zip(first).zip(second) {
                let x = F::splat(simd, x);
                let y = F::splat(simd, y);
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
    /// (columns, d, COLUMN) from `start` on, a multiple of 64 bytes; zeros where there is no row.
    rows: Vec<G>,
    start: usize,
    differences: Vec<G>,
    factor: Vec<G>,
    mean: Vec<G>,
    forms: [G; COLUMN],
    squares: [G; COLUMN],
}

/// A column (d, COLUMN) of rows of `dim` numbers: four rows and four coordinates at a time, so that numbers move within
/// registers.
fn put_column<F: Float, G: Float>(rows: &[&[F]], dim: usize, column: &mut [G]) {
    vectorised!({
        let (fours, rest) = rows.as_chunks::<4>();
        for (four, rows) in fours.iter().enumerate() {
            let whole = rows.map(|row| row[..dim].as_chunks::<4>().0);
            for (j, lines) in column.chunks_mut(4 * COLUMN).take(dim / 4).enumerate() {
                for i in 0..4 {
                    let places = &mut lines[i * COLUMN + 4 * four..][..4];
                    for r in 0..4 {
                        places[r] = G::from_f64(whole[r][j][i].to_f64());
                    }
                }
            }
            for j in dim / 4 * 4..dim {
                for r in 0..4 {
                    column[j * COLUMN + 4 * four + r] = G::from_f64(rows[r][j].to_f64());
                }
            }
        }
        for (place, row) in (4 * fours.len()..).zip(rest) {
            for (j, z) in row[..dim].iter().enumerate() {
                column[j * COLUMN + place] = G::from_f64(z.to_f64());
            }
        }
    });
}

impl<G: Float> Columns<G> {
    /// From `n` rows of `dim` numbers (padding is left out).
    pub(crate) fn new<'a, F: Float>(n: usize, dim: usize, row: impl Fn(usize) -> &'a [F]) -> Self {
        let size = dim * COLUMN;
        let mut rows = vec![G::zero(); n.div_ceil(COLUMN) * size + LANES];
        let places = aligned(&mut rows);
        let free = places.len();
        for (c, column) in places.chunks_exact_mut(size).enumerate() {
            if c * COLUMN >= n {
                break;
            }
            let rows: [&[F]; COLUMN] = std::array::from_fn(|place| {
                let i = c * COLUMN + place;
                if i < n { row(i) } else { &[] }
            });
            put_column(&rows[..COLUMN.min(n - c * COLUMN)], dim, column);
        }
        Self {
            n,
            dim,
            start: rows.len() - free,
            rows,
            differences: vec![G::zero(); size + LANES],
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
        let columns = self.rows[self.start..].chunks_exact(self.dim * COLUMN);
        for (c, rows) in columns.take(self.n.div_ceil(COLUMN)).enumerate() {
            column(
                rows,
                &self.mean,
                &self.factor,
                aligned(&mut self.differences),
                &mut self.forms,
                &mut self.squares,
            );
            let first = c * COLUMN;
            let count = COLUMN.min(self.n - first);
            see(first, &self.forms[..count], &self.squares[..count]);
        }
    }
}

impl<G: Float> Columns<G> {
    /// Adds $\sum_n q_n u_n$ and the lower half of $\sum_n q_n u_n u_n^T$ for the differences $u$ of the rows from a mean, in `G` and
    /// then in `f64`. There is a share $q$ for each row, and zeros up to a multiple of [`COLUMN`]; `mass` is their sum, and `most` the
    /// largest.
    pub(crate) fn add_pairs(
        &mut self,
        mean: &[f64],
        shares: &[f64],
        [mass, most]: [f64; 2],
        first: &mut [f64],
        second: &mut [f64],
    ) {
        // Shares are held in the type, and a power of two is no matter.
        let unit = 2f64.powi(most.log2().floor().clamp(-1000.0, 1000.0) as i32);
        let per_unit = 1.0 / unit;
        let size = shares.len() * self.dim.next_multiple_of(TILE);
        self.differences.resize(size + LANES, G::zero());
        self.factor.resize(shares.len() + LANES, G::zero());
        let roots = &mut aligned(&mut self.factor)[..shares.len()];
        self.mean.clear();
        self.mean.extend(mean.iter().map(|m| G::from_f64(*m)));
        vectorised!({
            for (root, q) in roots.iter_mut().zip(shares) {
                *root = G::from_f64((q * per_unit).sqrt());
            }
        });
        let start = self.start;
        let scratch = aligned(&mut self.differences);
        pairs(
            &self.rows[start..],
            &self.mean,
            (roots, unit),
            scratch,
            first,
            second,
        );
        // These are about the rounded mean.
        for ((first, rounded), mean) in first.iter_mut().zip(&self.mean).zip(mean) {
            *first += mass * (rounded.to_f64() - mean);
        }
    }
}

/// Coordinates whose products are added up together.
const TILE: usize = 4;

kernel! {
    /// The sums of [`Columns::add_pairs`], for the roots of shares in a unit, through the differences times these: (columns, d up to a
    /// multiple of [`TILE`], COLUMN).
    fn pairs[G: Float](
        rows: &[G],
        mean: &[G],
        shares: (&[G], f64),
        scaled: &mut [G],
        first: &mut [f64],
        second: &mut [f64],
    ) = pairs_of_columns
}

#[inline(always)]
fn pairs_of_columns<G: Float, S: Simd>(
    simd: S,
    rows: &[G],
    mean: &[G],
    (roots, unit): (&[G], f64),
    scaled: &mut [G],
    first: &mut [f64],
    second: &mut [f64],
) {
    let dim = mean.len();
    let places = mean.len().next_multiple_of(TILE);
    for (j, (&m, first)) in mean.iter().zip(first).enumerate() {
        let m = G::splat(simd, m);
        let mut sums = [G::splat(simd, G::zero()); PANEL];
        for (column, roots) in roots.chunks_exact(COLUMN).enumerate() {
            let rows = &rows[(column * dim + j) * COLUMN..][..COLUMN];
            let scaled = &mut scaled[(column * places + j) * COLUMN..][..COLUMN];
            let rows = G::vectors::<S>(rows).0;
            let roots = G::vectors::<S>(roots).0;
            let places = G::vectors_mut::<S>(scaled)
                .0
                .iter_mut()
                .zip(rows)
                .zip(roots);
            for (v, ((scaled, &row), &root)) in places.enumerate() {
                *scaled = G::times(simd, G::minus(simd, row, m), root);
                sums[v % PANEL] = G::times_plus(simd, *scaled, root, sums[v % PANEL]);
            }
        }
        for sum in sums {
            *first += unit * G::sum(simd, sum).to_f64();
        }
    }
    let scaled = &scaled[..roots.len() * places];
    // As many sums as there are registers for.
    match S::REGISTER_COUNT {
        32.. => tiles::<G, S, TILE>(simd, dim, unit, scaled, second),
        _ => tiles::<G, S, 2>(simd, dim, unit, scaled, second),
    }
}

#[inline(always)]
fn tiles<G: Float, S: Simd, const N: usize>(
    simd: S,
    dim: usize,
    unit: f64,
    scaled: &[G],
    second: &mut [f64],
) {
    let size = dim.next_multiple_of(TILE) * COLUMN;
    let per_line = COLUMN / lanes::<G, S>();
    for i in (0..dim).step_by(N) {
        for j in (0..=i).step_by(TILE) {
            let mut sums = [[G::splat(simd, G::zero()); TILE]; N];
            for column in scaled.chunks_exact(size) {
                let left = G::vectors::<S>(&column[i * COLUMN..][..N * COLUMN]).0;
                let right = G::vectors::<S>(&column[j * COLUMN..][..TILE * COLUMN]).0;
                for v in 0..per_line {
                    for a in 0..N {
                        let u = left[a * per_line + v];
                        for b in 0..TILE {
                            let w = right[b * per_line + v];
                            sums[a][b] = G::times_plus(simd, u, w, sums[a][b]);
                        }
                    }
                }
            }
            for (a, sums) in sums.into_iter().enumerate().take(dim - i) {
                let known = (i + a + 1 - j).min(TILE);
                let into = &mut second[(i + a) * dim + j..][..known];
                for (into, sum) in into.iter_mut().zip(sums) {
                    *into += unit * G::sum(simd, sum).to_f64();
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
    let mut rest = factor;
    let mut total = 0.0;
    for j in 1..=u.len() {
        let (row, after) = rest.split_at(j);
        rest = after;
        let (row, row_rest) = f64::vectors::<S>(row);
        let (u, u_rest) = f64::vectors::<S>(&u[..j]);
        let row_rest = f64::partial(simd, row_rest);
        let u_rest = f64::partial(simd, u_rest);
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
                    let u = differences(n);
                    let mut place = 0;
                    let mut total = 0.0;
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
                let extent = [shares.iter().sum(), 2.0];
                on_every_processor(|| {
                    let mut first = vec![1.0; d];
                    let mut second = vec![1.0; d * d];
                    columns.add_pairs(&mean, &shares, extent, &mut first, &mut second);
                    columns.add_pairs(&mean, &shares, extent, &mut first, &mut second);
                    let mut of_narrow = vec![0.0; d];
                    let mut pairs = vec![0.0; d * d];
                    narrow.add_pairs(&mean, &shares, extent, &mut of_narrow, &mut pairs);
                    let sum = |term: &dyn Fn(&[f64]) -> f64| -> f64 {
                        let terms = (0..n).map(|i| 2.0 * shares[i] * term(&differences(i)));
                        1.0 + terms.sum::<f64>()
                    };
                    let near = |a: f64, b: f64, within: f64| {
                        assert_abs_diff_eq!(a, b, epsilon = within * n as f64);
                    };
                    for i in 0..d {
                        let naive = sum(&|u| u[i]);
                        near(first[i], naive, 1e-11);
                        near(1.0 + 2.0 * of_narrow[i], naive, 1e-5);
                        for j in (0..=i).step_by(1 + d / 9) {
                            let place = i * d + j;
                            let naive = sum(&|u| u[i] * u[j]);
                            near(second[place], naive, 1e-11);
                            near(1.0 + 2.0 * pairs[place], naive, 1e-5);
                        }
                        assert!(second[i * d + i + 1..(i + 1) * d].iter().all(|x| *x == 1.0));
                    }
                });
            }
        }
    }
}
