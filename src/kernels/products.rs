//! Rows times panels of centres or directions: how they are packed, and the inner loop of what goes by them.

use crate::base::simd::LANES;
use pulp::Simd;

macro_rules! products {
    ($name:ident, $t:ty, $vector:ident, $vectors:ident, $splat:ident, $mul_add:ident) => {
        /// Adds to `sums`, lane by lane, the products of `N` rows and the vectors at place `v` in the lines of `P`
        /// panels: all of the same columns. Sums stay in registers, if the caller has no more of them than there are.
        /// `DIRECTLY`: squared differences in place of products, for panels of numbers times -2.
        #[inline(always)]
        pub(super) fn $name<S: Simd, const N: usize, const P: usize, const DIRECTLY: bool>(
            simd: S,
            mut rows: [&[$t]; N],
            panels: [&[$t]; P],
            v: usize,
            sums: &mut [[S::$vector; N]; P],
        ) {
            // Known when this is compiled, and the lengths are the same: nothing is left to check in the loop.
            let per_line = LANES * size_of::<$t>() / size_of::<S::$vector>();
            let columns = rows[0].len();
            for row in &mut rows {
                *row = &row[..columns];
            }
            let mut lines = [S::$vectors(panels[0]).0; P];
            for (lines, panel) in lines.iter_mut().zip(panels) {
                *lines = &S::$vectors(panel).0[..columns * per_line];
            }
            let (half, mut total) = (simd.$splat(0.5), *sums);
            for j in 0..columns {
                let mut line = [simd.$splat(0.0); P];
                for (line, lines) in line.iter_mut().zip(&lines) {
                    *line = lines[j * per_line + v];
                }
                for (r, row) in rows.iter().enumerate() {
                    let x = simd.$splat(row[j]);
                    for (total, &line) in total.iter_mut().zip(&line) {
                        total[r] = if DIRECTLY {
                            let t = simd.$mul_add(half, line, x);
                            simd.$mul_add(t, t, total[r])
                        } else {
                            simd.$mul_add(x, line, total[r])
                        };
                    }
                }
            }
            *sums = total;
        }
    };
}

products!(f32s, f32, f32s, as_simd_f32s, splat_f32s, mul_add_e_f32s);
products!(f64s, f64, f64s, as_simd_f64s, splat_f64s, mul_add_e_f64s);
