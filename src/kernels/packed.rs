//! Squared distances from many rows to a few centres that all of them look at.

use crate::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// Numbers side by side in a panel: a whole number of vectors of any processor.
pub(crate) const LANES: usize = 16;

/// Rows that share one look at a panel.
const ROWS: usize = 8;

/// A few centres by coordinate: (panels, d, [`LANES`]). Places that no centre fills are infinitely far.
#[derive(Debug, Default)]
pub(crate) struct Packed<F> {
    lanes: usize,
    values: Vec<F>,
}

impl<F: Float> Packed<F> {
    /// Packs the centres `ids` out of padded rows of `stride` numbers.
    pub(crate) fn pack(&mut self, centres: &[F], stride: usize, dim: usize, ids: &[u32]) {
        self.lanes = ids.len().next_multiple_of(LANES);
        self.values.clear();
        self.values.resize(self.lanes * dim, F::INFINITY);
        for (panel, ids) in self
            .values
            .chunks_exact_mut(LANES * dim)
            .zip(ids.chunks(LANES))
        {
            for (lane, &id) in ids.iter().enumerate() {
                let centre = &centres[id as usize * stride..][..dim];
                for (line, &x) in panel.chunks_exact_mut(LANES).zip(centre) {
                    line[lane] = x;
                }
            }
        }
    }

    /// Places per row in the result: the number of centres, rounded up.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Squared distances of padded rows to the packed centres, computed directly: (rows, lanes) into `out`.
    pub(crate) fn distances(&self, rows: &[F], stride: usize, dim: usize, out: &mut Vec<F>) {
        out.clear();
        out.resize(rows.len() / stride * self.lanes, F::zero());
        Arch::new().dispatch(ToPacked {
            rows,
            shape: (stride, dim),
            packed: self,
            out,
        });
    }
}

struct ToPacked<'a, F> {
    rows: &'a [F],
    shape: (usize, usize),
    packed: &'a Packed<F>,
    out: &'a mut [F],
}

impl<F: Float> WithSimd for ToPacked<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            shape: (stride, dim),
            packed,
            out,
        } = self;
        let (n, lanes) = (rows.len() / stride, packed.lanes);
        let mut first = 0;
        while first < n {
            let (rows, out) = (&rows[first * stride..], &mut out[first * lanes..]);
            for (p, panel) in packed.values.chunks_exact(dim * LANES).enumerate() {
                let out = &mut out[p * LANES..];
                match n - first {
                    ROWS.. => F::panel::<S, ROWS>(simd, rows, stride, panel, out, lanes),
                    4.. => F::panel::<S, 4>(simd, rows, stride, panel, out, lanes),
                    2.. => F::panel::<S, 2>(simd, rows, stride, panel, out, lanes),
                    _ => F::panel::<S, 1>(simd, rows, stride, panel, out, lanes),
                }
            }
            first += match n - first {
                ROWS.. => ROWS,
                4.. => 4,
                2.. => 2,
                _ => 1,
            };
        }
    }
}

/// `N` rows against one panel, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Panel: Sized {
    #[doc(hidden)]
    fn panel<S: Simd, const N: usize>(
        simd: S,
        rows: &[Self],
        stride: usize,
        panel: &[Self],
        out: &mut [Self],
        lanes: usize,
    );
}

macro_rules! panel {
    ($t:ty, $vectors:ident, $vectors_mut:ident, $splat:ident, $sub:ident, $mul_add:ident) => {
        impl Panel for $t {
            #[inline(always)]
            fn panel<S: Simd, const N: usize>(
                simd: S,
                rows: &[Self],
                stride: usize,
                panel: &[Self],
                out: &mut [Self],
                lanes: usize,
            ) {
                let (vectors, _) = S::$vectors(&panel[..LANES]);
                let per_line = vectors.len();
                let (vectors, _) = S::$vectors(panel);
                let rows: [&[Self]; N] =
                    std::array::from_fn(|r| &rows[r * stride..][..panel.len() / LANES]);
                for v in 0..per_line {
                    let mut sums = [simd.$splat(0.0); N];
                    for (j, line) in vectors.chunks_exact(per_line).enumerate() {
                        let centres = line[v];
                        for (sum, row) in sums.iter_mut().zip(&rows) {
                            let t = simd.$sub(simd.$splat(row[j]), centres);
                            *sum = simd.$mul_add(t, t, *sum);
                        }
                    }
                    for (r, &sum) in sums.iter().enumerate() {
                        let (places, _) = S::$vectors_mut(&mut out[r * lanes..][..LANES]);
                        places[v] = sum;
                    }
                }
            }
        }
    };
}
panel!(
    f32,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    sub_f32s,
    mul_add_e_f32s
);
panel!(
    f64,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    sub_f64s,
    mul_add_e_f64s
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::stride;
    use crate::rng::Rng;

    #[test]
    fn distances_are_the_naive_ones() {
        let mut rng = Rng::from_seed(1);
        for (n, d, ids) in [(1, 1, 1), (7, 3, 16), (8, 8, 17), (21, 74, 32), (16, 17, 5)] {
            let s = stride(d);
            let mut random = |n: usize| -> Vec<f64> {
                (0..n * s)
                    .map(|i| if i % s < d { rng.normal() } else { 0.0 })
                    .collect()
            };
            let (x, mu) = (random(n), random(40));
            let ids: Vec<u32> = (0..ids).map(|i| i * 7 % 40).collect();
            let (mut packed, mut out) = (Packed::default(), Vec::new());
            packed.pack(&mu, s, d, &ids);
            packed.distances(&x, s, d, &mut out);
            for (row, out) in x.chunks(s).zip(out.chunks(packed.lanes())) {
                for (place, got) in out.iter().enumerate() {
                    let Some(&id) = ids.get(place) else {
                        assert_eq!(*got, f64::INFINITY);
                        continue;
                    };
                    let centre = &mu[id as usize * s..][..s];
                    let naive: f64 = row.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!((got - naive).abs() <= 1e-12 * (1.0 + naive));
                }
            }
        }
    }
}
