//! Coordinates of rows along a few directions: a product of a tall matrix and a small one.

use super::{LANES, products};
use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// Directions by coordinate: (panels, d, [`LANES`]) numbers, zeros where there are no more directions.
#[derive(Clone, Debug)]
pub(crate) struct Directions<F> {
    number: usize,
    dim: usize,
    values: Vec<F>,
}

impl<F: Float> Directions<F> {
    /// Packs directions of `dim` coordinates each.
    pub(crate) fn pack(directions: &[F], dim: usize) -> Self {
        Self {
            number: directions.len() / dim,
            dim,
            values: products::panels(directions, dim, dim, F::from_f64(1.0)),
        }
    }
}

/// The coordinates of rows, padded to `stride` numbers, along all directions: `out` is (rows, directions).
pub(crate) fn project<F: Float>(
    rows: &[F],
    stride: usize,
    directions: &Directions<F>,
    out: &mut [F],
) {
    Arch::new().dispatch(Project {
        rows,
        stride,
        directions,
        out,
    });
}

struct Project<'a, F> {
    rows: &'a [F],
    stride: usize,
    directions: &'a Directions<F>,
    out: &'a mut [F],
}

impl<F: Float> WithSimd for Project<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            stride,
            directions:
                Directions {
                    number,
                    dim,
                    values,
                },
            out,
        } = self;
        let twos = values.chunks_exact(2 * LANES * dim);
        let last = twos.remainder();
        let (mut first, count) = (0, rows.len() / stride);
        while first < count {
            let rows = &rows[first * stride..];
            let out = &mut out[first * number..];
            let (mut from, mut taken) = (0, 0);
            for panels in twos.clone() {
                taken = along::<F, S, 2>(simd, rows, stride, panels, (&mut *out, from, *number));
                from += 2 * LANES;
            }
            if !last.is_empty() {
                taken = along::<F, S, 1>(simd, rows, stride, last, (&mut *out, from, *number));
            }
            first += taken;
        }
    }
}

/// The first rows along the directions of `P` panels: as many as there are registers for their sums. Returns their number.
#[inline(always)]
fn along<F: Float, S: Simd, const P: usize>(
    simd: S,
    rows: &[F],
    stride: usize,
    panels: &[F],
    out: (&mut [F], usize, usize),
) -> usize {
    match rows.len() / stride {
        12.. if S::REGISTER_COUNT >= 32 => F::along::<S, 12, P>(simd, rows, stride, panels, out),
        6.. => F::along::<S, 6, P>(simd, rows, stride, panels, out),
        _ => F::along::<S, 1, P>(simd, rows, stride, panels, out),
    }
}

/// Rows times panels of directions, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Along: Sized {
    /// `N` rows along the directions of `P` panels, into `out` from this direction on out of so many. Returns the number of
    /// rows.
    #[doc(hidden)]
    fn along<S: Simd, const N: usize, const P: usize>(
        simd: S,
        rows: &[Self],
        stride: usize,
        panels: &[Self],
        out: (&mut [Self], usize, usize),
    ) -> usize;
}

macro_rules! along {
    ($t:ty, $products:ident, $vectors_mut:ident, $splat:ident) => {
        impl Along for $t {
            #[inline(always)]
            fn along<S: Simd, const N: usize, const P: usize>(
                simd: S,
                rows: &[Self],
                stride: usize,
                panels: &[Self],
                (out, from, number): (&mut [Self], usize, usize),
            ) -> usize {
                let dim = panels.len() / (P * LANES);
                let rows: [&[Self]; N] = std::array::from_fn(|r| &rows[r * stride..][..dim]);
                let panels: [&[Self]; P] =
                    std::array::from_fn(|p| &panels[p * dim * LANES..][..dim * LANES]);
                let mut lanes = [[0.0; LANES]; P];
                let mut all = [lanes; N];
                let per_line = S::$vectors_mut(&mut lanes[0]).0.len();
                for v in 0..per_line {
                    let mut sums = [[simd.$splat(0.0); N]; P];
                    products::$products::<S, N, P, false>(simd, rows, panels, v, &mut sums);
                    for (r, all) in all.iter_mut().enumerate() {
                        for (lanes, sums) in all.iter_mut().zip(&sums) {
                            S::$vectors_mut(lanes).0[v] = sums[r];
                        }
                    }
                }
                for (out, all) in out.chunks_exact_mut(number).zip(&all) {
                    for (out, lanes) in out[from..].chunks_mut(LANES).zip(all) {
                        out.copy_from_slice(&lanes[..out.len()]);
                    }
                }
                N
            }
        }
    };
}
along!(f32, f32s, as_mut_simd_f32s, splat_f32s);
along!(f64, f64s, as_mut_simd_f64s, splat_f64s);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::stride;
    use approx::assert_abs_diff_eq;

    #[test]
    fn coordinates_are_the_naive_products() {
        let mut rng = Rng::from_seed(1);
        for (n, d, p) in [
            (1, 9, 1),
            (5, 20, 16),
            (13, 33, 24),
            (30, 74, 40),
            (25, 5, 56),
        ] {
            let s = stride(d);
            let place = |i: usize, rng: &mut Rng| if i % s < d { rng.normal() } else { 0.0 };
            let rows: Vec<f64> = (0..n * s).map(|i| place(i, &mut rng)).collect();
            let directions: Vec<f64> = (0..p * d).map(|_| rng.normal()).collect();
            let packed = Directions::pack(&directions, d);
            let mut all = Vec::new();
            with_all_vectors!({
                all.push(vec![f64::NAN; n * p]);
                Project {
                    rows: &rows,
                    stride: s,
                    directions: &packed,
                    out: all.last_mut().unwrap(),
                }
            });
            let mut out = vec![f64::NAN; n * p];
            project(&rows, s, &packed, &mut out);
            for other in all {
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12 * (1.0 + a.abs());
                assert!(out.iter().zip(&other).all(near));
            }
            for (row, out) in rows.chunks(s).zip(out.chunks(p)) {
                for (direction, &got) in directions.chunks(d).zip(out) {
                    let naive: f64 = row.iter().zip(direction).map(|(a, b)| a * b).sum();
                    assert_abs_diff_eq!(got, naive, epsilon = 1e-12 * (1.0 + naive.abs()));
                }
            }
        }
    }
}
