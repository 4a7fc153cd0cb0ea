//! The expanded distances of some rows to all centres (E21), less the squared norms of the rows: what ranks centres, and
//! what sums over all of them are made of.

use super::nearest::Panels;
use super::{LANES, products};
use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// $\lVert \mu_c \rVert^2 - 2 x^\top \mu_c$ for padded rows and all centres, both as seen from the same point, into `out`
/// (rows, places of the panels). Meant for so few rows that `out` stays in a cache.
pub(crate) fn scores<F: Float>(rows: &[F], stride: usize, panels: &Panels<F>, out: &mut [F]) {
    Arch::new().dispatch(ToPanels {
        rows,
        stride,
        panels,
        out,
    });
}

struct ToPanels<'a, F> {
    rows: &'a [F],
    stride: usize,
    panels: &'a Panels<F>,
    out: &'a mut [F],
}

impl<F: Float> WithSimd for ToPanels<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            stride,
            panels,
            out,
        } = self;
        let shape = (stride, panels.norms.len());
        let twos = panels.values.chunks_exact(2 * panels.dim * LANES);
        let norms = panels.norms.chunks_exact(2 * LANES);
        let (last, last_norms) = (twos.remainder(), norms.remainder());
        let mut from = 0;
        // Two panels at a time: with one alone, sums would wait for each other.
        for panels in twos.zip(norms) {
            all_rows::<F, S, 2>(simd, rows, shape, panels, from, out);
            from += 2 * LANES;
        }
        if !last.is_empty() {
            all_rows::<F, S, 1>(simd, rows, shape, (last, last_norms), from, out);
        }
    }
}

/// All rows against `P` panels, whose centres have the places from `from` on.
#[inline(always)]
fn all_rows<F: Float, S: Simd, const P: usize>(
    simd: S,
    rows: &[F],
    (stride, places): (usize, usize),
    panels: (&[F], &[F]),
    from: usize,
    out: &mut [F],
) {
    let count = rows.len() / stride;
    let mut first = 0;
    while first < count {
        // As many rows share one read of a panel as there are registers for their sums.
        let together = match count - first {
            12.. if S::REGISTER_COUNT >= 32 => 12,
            6.. => 6,
            2.. => 2,
            _ => 1,
        };
        let rows = &rows[first * stride..][..together * stride];
        let out = &mut out[first * places..];
        match together {
            12 => F::scores::<S, 12, P>(simd, rows, panels, out, from, places),
            6 => F::scores::<S, 6, P>(simd, rows, panels, out, from, places),
            2 => F::scores::<S, 2, P>(simd, rows, panels, out, from, places),
            _ => F::scores::<S, 1, P>(simd, rows, panels, out, from, places),
        }
        first += together;
    }
}

/// Scores of few rows and few panels, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Expand: Sized {
    /// `N` rows against `P` panels and their norms, from this place on of their scores, which have this width.
    #[doc(hidden)]
    fn scores<S: Simd, const N: usize, const P: usize>(
        simd: S,
        rows: &[Self],
        panels: (&[Self], &[Self]),
        out: &mut [Self],
        place: usize,
        width: usize,
    );
}

macro_rules! expand {
    ($t:ty, $products:ident, $vectors:ident, $vectors_mut:ident, $splat:ident) => {
        impl Expand for $t {
            #[inline(always)]
            fn scores<S: Simd, const N: usize, const P: usize>(
                simd: S,
                rows: &[Self],
                (panels, norms): (&[Self], &[Self]),
                out: &mut [Self],
                place: usize,
                width: usize,
            ) {
                let dim = panels.len() / (P * LANES);
                let stride = rows.len() / N;
                let rows: [&[Self]; N] = std::array::from_fn(|r| &rows[r * stride..][..dim]);
                let (norms, _) = S::$vectors(norms);
                let per_line = norms.len() / P;
                let panels: [&[Self]; P] =
                    std::array::from_fn(|p| &panels[p * dim * LANES..][..dim * LANES]);
                for v in 0..per_line {
                    let mut scores = [[simd.$splat(0.0); N]; P];
                    for (p, scores) in scores.iter_mut().enumerate() {
                        *scores = [norms[p * per_line + v]; N];
                    }
                    products::$products::<S, N, P, false>(simd, rows, panels, v, &mut scores);
                    for r in 0..N {
                        let line = &mut out[r * width + place..][..P * LANES];
                        let (line, _) = S::$vectors_mut(line);
                        for (p, scores) in scores.iter().enumerate() {
                            line[p * per_line + v] = scores[r];
                        }
                    }
                }
            }
        }
    };
}
expand!(f32, f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s);
expand!(f64, f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::stride;

    #[test]
    fn scores_are_the_naive_ones() {
        let mut rng = Rng::from_seed(1);
        for (n, d, k) in [
            (1, 1, 1),
            (5, 20, 16),
            (13, 33, 24),
            (30, 74, 40),
            (25, 5, 56),
        ] {
            let s = stride(d);
            let mut padded = |n: usize| -> Vec<f64> {
                let place = |i| if i % s < d { rng.normal() } else { 0.0 };
                (0..n * s).map(place).collect()
            };
            let (rows, mu) = (padded(n), padded(k));
            let norm = |c: &[f64]| c.iter().map(|x| x * x).sum();
            let norms: Vec<f64> = mu.chunks(s).map(norm).collect();
            let panels = Panels::pack(&mu, s, d, &norms);
            let places = panels.norms.len();
            let mut all = Vec::new();
            with_all_vectors!({
                all.push(vec![f64::NAN; n * places]);
                ToPanels {
                    rows: &rows,
                    stride: s,
                    panels: &panels,
                    out: all.last_mut().unwrap(),
                }
            });
            all.push(vec![f64::NAN; n * places]);
            scores(&rows, s, &panels, all.last_mut().unwrap());
            for out in all {
                for (row, out) in rows.chunks(s).zip(out.chunks(places)) {
                    for (c, mu) in mu.chunks(s).enumerate() {
                        let product: f64 = row.iter().zip(mu).map(|(a, b)| a * b).sum();
                        assert!(
                            (out[c] - (norms[c] - 2.0 * product)).abs() < 1e-12 * (1.0 + norms[c])
                        );
                    }
                    assert!(out[k..].iter().all(|x| *x == f64::INFINITY));
                }
            }
        }
    }
}
