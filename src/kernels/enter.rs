//! Rows into the coordinates of a frame, in place.

use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// `(x - offset) * scale`, held between `-most` and `most`, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Enter: Sized {
    #[doc(hidden)]
    fn enter<S: Simd>(simd: S, row: &mut [Self], offset: &[Self], scale: Self, most: Self);
}

macro_rules! enter {
    ($t:ty, $vectors:ident, $vectors_mut:ident, $splat:ident, $sub:ident, $mul:ident, $less:ident, $select:ident) => {
        impl Enter for $t {
            #[inline(always)]
            fn enter<S: Simd>(simd: S, row: &mut [Self], offset: &[Self], scale: Self, most: Self) {
                let ((row, rest), (offset, offset_rest)) =
                    (S::$vectors_mut(row), S::$vectors(offset));
                let factor = simd.$splat(scale);
                let (least, most_held) = (simd.$splat(-most), simd.$splat(most));
                for (x, &offset) in row.iter_mut().zip(offset) {
                    // By comparisons, so that NaN stays NaN.
                    let z = simd.$mul(simd.$sub(*x, offset), factor);
                    let z = simd.$select(simd.$less(most_held, z), most_held, z);
                    *x = simd.$select(simd.$less(z, least), least, z);
                }
                // Rows shorter than a vector.
                for (x, &offset) in rest.iter_mut().zip(offset_rest) {
                    let z = (*x - offset) * scale;
                    let z = if most < z { most } else { z };
                    *x = if z < -most { -most } else { z };
                }
            }
        }
    };
}
enter!(
    f32,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    sub_f32s,
    mul_f32s,
    less_than_f32s,
    select_f32s
);
enter!(
    f64,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    sub_f64s,
    mul_f64s,
    less_than_f64s,
    select_f64s
);

/// Takes padded rows of stored numbers, as many as the padded offset has, into the frame of this offset and scale.
pub(crate) fn enter<F: Float>(rows: &mut [F], offset: &[F], scale: F, most: F) {
    Arch::new().dispatch(Rows {
        rows,
        offset,
        scale,
        most,
    });
}

struct Rows<'a, F> {
    rows: &'a mut [F],
    offset: &'a [F],
    scale: F,
    most: F,
}

impl<F: Float> WithSimd for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for row in self.rows.chunks_exact_mut(self.offset.len()) {
            F::enter(simd, row, self.offset, self.scale, self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers within and beyond what is held, and NaN; in lengths of a part of a vector and of several.
    #[test]
    fn rows_enter_as_one_number_does() {
        let values = [0.5, -3.0, 1e30, -1e30, f64::NAN, 7.25, f64::INFINITY, 0.0];
        for stride in [4, 8, 16, 48] {
            let offset: Vec<f64> = (0..stride).map(|j| 0.25 * j as f64).collect();
            let rows: Vec<f64> = (0..3 * stride).map(|i| values[i * 5 % 8]).collect();
            let one = |(i, x): (usize, &f64)| ((x - offset[i % stride]) * 0.5).clamp(-1e3, 1e3);
            let expected: Vec<f64> = rows.iter().enumerate().map(one).collect();
            let same = |got: &[f64]| {
                for (got, expected) in got.iter().zip(&expected) {
                    assert!(got == expected || (got.is_nan() && expected.is_nan()));
                }
            };
            let mut got = rows.clone();
            enter(&mut got, &offset, 0.5, 1e3);
            same(&got);
            with_all_vectors!(Rows {
                rows: {
                    got.clone_from(&rows);
                    &mut got
                },
                offset: &offset,
                scale: 0.5,
                most: 1e3
            });
            same(&got);
        }
    }
}
