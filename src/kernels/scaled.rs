//! Squared distances between padded rows with a factor per coordinate and component.

use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// Scaled squared distances from the padded row `x` to the rows `ids` of `centres`, with their factors (k, d)
/// and terms (k), into `out`.
pub(crate) fn to_some<F: Float>(
    x: &[F],
    centres: &[F],
    scales: (&[F], &[F]),
    ids: &[u32],
    out: &mut Vec<F>,
) {
    out.clear();
    out.resize(ids.len(), F::zero());
    Arch::new().dispatch(ToSome {
        x,
        centres,
        scales,
        ids,
        out,
    });
}

struct ToSome<'a, F> {
    x: &'a [F],
    centres: &'a [F],
    scales: (&'a [F], &'a [F]),
    ids: &'a [u32],
    out: &'a mut [F],
}

impl<F: Float> WithSimd for ToSome<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (factors, terms) = self.scales;
        for (out, &id) in self.out.iter_mut().zip(self.ids) {
            let start = id as usize * self.x.len();
            let places = start..start + self.x.len();
            let (centre, factors) = (&self.centres[places.clone()], &factors[places]);
            *out = F::scaled(simd, self.x, centre, factors) + terms[id as usize];
        }
    }
}

/// Scaled squared distances of all padded rows to all centres: (rows, k) into `out`, the same numbers as
/// [`to_some`] gives.
pub(crate) fn to_all<F: Float>(rows: &[F], centres: &[F], scales: (&[F], &[F]), out: &mut Vec<F>) {
    let stride = centres.len() / scales.1.len();
    out.resize(rows.len() / stride * scales.1.len(), F::zero());
    Arch::new().dispatch(ToAll {
        rows,
        stride,
        centres,
        scales,
        out,
    });
}

struct ToAll<'a, F> {
    rows: &'a [F],
    stride: usize,
    centres: &'a [F],
    scales: (&'a [F], &'a [F]),
    out: &'a mut [F],
}

impl<F: Float> WithSimd for ToAll<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (factors, terms) = self.scales;
        let out = self.out.chunks_exact_mut(terms.len());
        for (x, out) in self.rows.chunks_exact(self.stride).zip(out) {
            let centres = self.centres.chunks_exact(self.stride);
            let components = centres.zip(factors.chunks_exact(self.stride)).zip(terms);
            for (out, ((centre, factors), &term)) in out.iter_mut().zip(components) {
                *out = F::scaled(simd, x, centre, factors) + term;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::stride;
    use approx::assert_abs_diff_eq;

    #[test]
    fn all_and_some_are_the_naive_sums() {
        let mut rng = Rng::from_seed(1);
        for d in [1, 2, 4, 5, 8, 9, 16, 17, 33, 74] {
            let (n, k, s) = (5, 7, stride(d));
            let mut padded = |rows: usize| -> Vec<f64> {
                (0..rows * s)
                    .map(|i| if i % s < d { rng.normal() } else { 0.0 })
                    .collect()
            };
            let (x, mu, factors, terms) = (padded(n), padded(k), padded(k), padded(k));
            let terms: Vec<f64> = terms.into_iter().step_by(s).collect();
            let naive = |i: usize, c: usize| -> f64 {
                let term = |j: usize| factors[c * s + j] * (x[i * s + j] - mu[c * s + j]).powi(2);
                terms[c] + (0..d).map(term).sum::<f64>()
            };
            let (mut all, mut some) = (Vec::new(), Vec::new());
            to_all(&x, &mu, (&factors, &terms), &mut all);
            for i in 0..n {
                let row = &x[i * s..(i + 1) * s];
                let ids = [6, 0, 3];
                to_some(row, &mu, (&factors, &terms), &ids, &mut some);
                for (&id, &got) in ids.iter().zip(&some) {
                    assert_eq!(got, all[i * k + id as usize]);
                }
                for c in 0..k {
                    let got = all[i * k + c];
                    assert_abs_diff_eq!(
                        got,
                        naive(i, c),
                        epsilon = 1e-12 * (1.0 + got.abs() + d as f64)
                    );
                }
            }
        }
    }
}
