//! $|M u|^2$ for a lower triangular $M$ and many differences $u$: the Mahalanobis distances of full covariances.
//!
//! Rows are turned into columns of [`COLUMN`] rows each, so that one number of $M$ meets a whole vector of rows,
//! and the triangle is walked as it is: half the work of a matrix product, which would multiply its zeros.

use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// Rows side by side in a column: a whole number of panels for every vector there is.
const COLUMN: usize = 64;

/// Vectors of a panel: with two rows of the matrix at a time, eight sums in registers.
const PANEL: usize = 4;

/// The kernel for one column of rows; implemented for `f32` and `f64`.
pub trait Quadratic: Sized {
    #[doc(hidden)]
    fn quadratic<S: Simd>(simd: S, column: Column<'_, Self>);
}

/// One column of rows and what becomes of it.
#[derive(Debug)]
pub struct Column<'a, G> {
    /// (d, COLUMN): coordinate by coordinate.
    rows: &'a [G],
    /// (d).
    mean: &'a [G],
    /// The rows of the triangle, one after the other: 1 + 2 + .. + d numbers.
    factor: &'a [G],
    /// Scratch, (d, COLUMN).
    apart: &'a mut [G],
    /// (COLUMN): $|M u|^2$.
    forms: &'a mut [G],
    /// (COLUMN): $|u|^2$.
    squares: &'a mut [G],
}

macro_rules! quadratic {
    ($t:ty, $vectors:ident, $vectors_mut:ident, $splat:ident, $sub:ident, $mul_add:ident) => {
        impl Quadratic for $t {
            #[inline(always)]
            fn quadratic<S: Simd>(simd: S, column: Column<'_, Self>) {
                let Column {
                    rows,
                    mean,
                    factor,
                    apart,
                    forms,
                    squares,
                } = column;
                let dim = mean.len();
                let rows = S::$vectors(rows).0.as_chunks::<PANEL>().0;
                let apart = S::$vectors_mut(apart).0.as_chunks_mut::<PANEL>().0;
                let forms = S::$vectors_mut(forms).0.as_chunks_mut::<PANEL>().0;
                let squares = S::$vectors_mut(squares).0.as_chunks_mut::<PANEL>().0;
                let panels = forms.len();
                let zero = [simd.$splat(0.0); PANEL];
                for (panel, (form, square)) in forms.iter_mut().zip(squares).enumerate() {
                    let apart = &mut apart[..dim];
                    let mut sums = zero;
                    let rows = rows[panel..].iter().step_by(panels);
                    for ((u, z), &m) in apart.iter_mut().zip(rows).zip(mean) {
                        let m = simd.$splat(m);
                        for l in 0..PANEL {
                            u[l] = simd.$sub(z[l], m);
                            sums[l] = simd.$mul_add(u[l], u[l], sums[l]);
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
                        for ((u, &x), &y) in apart.iter().zip(first).zip(second) {
                            let (x, y) = (simd.$splat(x), simd.$splat(y));
                            for l in 0..PANEL {
                                a[l] = simd.$mul_add(x, u[l], a[l]);
                                b[l] = simd.$mul_add(y, u[l], b[l]);
                            }
                        }
                        let y = simd.$splat(second[done + 1]);
                        for l in 0..PANEL {
                            b[l] = simd.$mul_add(y, apart[done + 1][l], b[l]);
                            total[l] = simd.$mul_add(a[l], a[l], total[l]);
                            total[l] = simd.$mul_add(b[l], b[l], total[l]);
                        }
                        done += 2;
                    }
                    if done < dim {
                        let mut a = zero;
                        for (u, &x) in apart.iter().zip(rest) {
                            let x = simd.$splat(x);
                            for l in 0..PANEL {
                                a[l] = simd.$mul_add(x, u[l], a[l]);
                            }
                        }
                        for l in 0..PANEL {
                            total[l] = simd.$mul_add(a[l], a[l], total[l]);
                        }
                    }
                    *form = total;
                }
            }
        }
    };
}
quadratic!(
    f32,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    sub_f32s,
    mul_add_e_f32s
);
quadratic!(
    f64,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    sub_f64s,
    mul_add_e_f64s
);

/// A block of rows as columns, in the type `G` to compute in, and the scratch of the kernel.
#[derive(Debug)]
pub(crate) struct Columns<G> {
    n: usize,
    dim: usize,
    /// (columns, d, COLUMN); zeros where there is no row.
    rows: Vec<G>,
    apart: Vec<G>,
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
            apart: vec![G::zero(); size],
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
            Arch::new().dispatch(One(Column {
                rows,
                mean: &self.mean,
                factor: &self.factor,
                apart: &mut self.apart,
                forms: &mut self.forms,
                squares: &mut self.squares,
            }));
            let first = c * COLUMN;
            let found = self.forms.iter().zip(&self.squares);
            for (place, (&form, &square)) in found.enumerate().take(self.n - first) {
                see(first + place, form, square);
            }
        }
    }
}

struct One<'a, G>(Column<'a, G>);

impl<G: Quadratic> WithSimd for One<'_, G> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        G::quadratic(simd, self.0);
    }
}

/// $|M u|^2$ of one difference, for the triangle $M$, row after row.
pub(crate) fn form(factor: &[f64], u: &[f64]) -> f64 {
    Arch::new().dispatch(Form { factor, u })
}

struct Form<'a> {
    factor: &'a [f64],
    u: &'a [f64],
}

impl WithSimd for Form<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let mut rest = self.factor;
        let mut total = 0.0;
        for j in 1..=self.u.len() {
            let (row, after) = rest.split_at(j);
            rest = after;
            let ((row, row_rest), (u, u_rest)) =
                (S::as_simd_f64s(row), S::as_simd_f64s(&self.u[..j]));
            let mut sums = simd.mul_f64s(
                simd.partial_load_f64s(row_rest),
                simd.partial_load_f64s(u_rest),
            );
            for (&x, &u) in row.iter().zip(u) {
                sums = simd.mul_add_e_f64s(x, u, sums);
            }
            let v = simd.reduce_sum_f64s(sums);
            total += v * v;
        }
        total
    }
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
                let rows: Vec<Vec<f32>> = (0..n)
                    .map(|_| (0..d + 3).map(|_| rng.normal() as f32).collect())
                    .collect();
                let mean: Vec<f64> = (0..d).map(|_| rng.normal()).collect();
                let factor: Vec<f64> = (0..d * (d + 1) / 2).map(|_| rng.normal()).collect();
                let apart = |n: usize| -> Vec<f64> {
                    (0..d).map(|j| f64::from(rows[n][j]) - mean[j]).collect()
                };
                let naive = |n: usize| -> (f64, f64) {
                    let (u, mut place, mut total) = (apart(n), 0, 0.0);
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
                    let one = super::form(&factor, &apart(i));
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
