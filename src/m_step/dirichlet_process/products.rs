//! Weighted sums of the products of rows with themselves, as matrix products.

use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::kernels::weighted::{self, Weighted};

/// Rows whose sums stay in the type of the data, before they are added up in `f64`.
const ROWS: usize = 128;

/// Scratch: rows, the same with their shares, and constants.
#[derive(Debug, Default)]
pub(super) struct Scratch<F> {
    narrow: Buffers<F>,
    wide: Buffers<f64>,
    ones: Vec<f64>,
    zeros: Vec<f64>,
    order: Vec<u32>,
}

#[derive(Debug, Default)]
struct Buffers<T> {
    rows: Vec<T>,
    shared: Vec<T>,
}

/// Adds the lower half of $\sum_n q_n u_n u_n^T$ to a matrix (d, d), for rows $u$ (n, d) with their shares; what is above it
/// is left undefined. `norm` is the Frobenius norm of the factor that takes these rows to unit variance in every direction.
///
/// Sums in `f32` are off by about 1e-6 of the mean squared length. That is felt in the smallest eigenvalue, so they are
/// taken only where it is not much smaller than the others: the mean squared length times the squared norm is $d^2$ where
/// all are the same, and at most 64 times as much here.
pub(super) fn add_products<F: Float>(
    rows: &[f64],
    shares: impl ExactSizeIterator<Item = f64> + Clone,
    norm: f64,
    into: &mut [f64],
    scratch: &mut Scratch<F>,
) {
    const SPREAD: f64 = 64.0;
    /// Shares within these bounds can be rounded to any type.
    const HELD: std::ops::Range<f64> = 1e-6..1e12;

    let dim = rows.len() / shares.len();
    scratch.ones.resize(dim, 1.0);
    scratch.zeros.resize(dim * dim, 0.0);
    scratch.order.clear();
    scratch.order.extend(0..dim as u32);
    let (mut mass, mut squares, mut most) = (0.0, 0.0, 0.0f64);
    for (row, share) in rows.chunks_exact(dim).zip(shares.clone()) {
        mass += share;
        most = most.max(share);
        squares += share * row.iter().map(|u| u * u).sum::<f64>();
    }
    let spread = squares / mass * norm.powi(2);
    let constants = (&scratch.ones[..], &scratch.zeros[..], &scratch.order[..]);
    if spread <= SPREAD * (dim * dim) as f64 && HELD.contains(&most) {
        in_type(rows, shares, constants, into, &mut scratch.narrow);
    } else {
        in_type(rows, shares, constants, into, &mut scratch.wide);
    }
}

/// The same in the type of the buffers.
fn in_type<T: Float>(
    rows: &[f64],
    shares: impl Iterator<Item = f64>,
    (ones, zeros, order): (&[f64], &[f64], &[u32]),
    into: &mut [f64],
    buffers: &mut Buffers<T>,
) {
    let dim = ones.len();
    let stride = dim.next_multiple_of(LANES);
    let mut shares = shares;
    for rows in rows.chunks(ROWS * dim) {
        let count = rows.len() / dim;
        let Buffers { rows: all, shared } = &mut *buffers;
        all.clear();
        all.resize(count * stride, T::zero());
        shared.clear();
        shared.resize(count * stride + weighted::SPARE, T::zero());
        let places = all
            .chunks_exact_mut(stride)
            .zip(shared.chunks_exact_mut(stride));
        for ((row, share), (all, shared)) in rows.chunks_exact(dim).zip(&mut shares).zip(places) {
            for ((&u, all), shared) in row.iter().zip(all).zip(shared) {
                *all = T::from_f64(u);
                *shared = T::from_f64(share * u);
            }
        }
        weighted::add(Weighted {
            shares: shared,
            places: stride,
            rows: all,
            stride,
            scale: 1.0,
            mass: ones,
            from: zeros,
            columns: dim,
            place_of: order,
            first: into,
            second: &mut [],
            lower: true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn products_are_the_naive_ones<F: Float>(norm: f64, within: f64) {
        let mut rng = Rng::from_seed(4);
        for (n, dim) in [(1, 1), (40, 3), (300, 17), (200, 40)] {
            let rows: Vec<f64> = (0..n * dim).map(|_| rng.normal()).collect();
            let shares: Vec<f64> = (0..n).map(|_| 2.0 * rng.uniform()).collect();
            let mut into = vec![0.5; dim * dim];
            let mut scratch = Scratch::<F>::default();
            // Twice: scratch is reused.
            for _ in 0..2 {
                add_products(&rows, shares.iter().copied(), norm, &mut into, &mut scratch);
            }
            for i in 0..dim {
                for j in 0..=i {
                    let terms = rows.chunks(dim).zip(&shares);
                    let naive: f64 = terms.map(|(u, q)| 2.0 * q * u[i] * u[j]).sum();
                    let off = (into[i * dim + j] - 0.5 - naive).abs();
                    assert!(off <= within * 2.0 * n as f64, "{dim} {i} {j}: {off:e}");
                }
            }
        }
    }

    #[test]
    fn sums_of_products_are_the_naive_ones() {
        products_are_the_naive_ones::<f64>(1.0, 1e-14);
        products_are_the_naive_ones::<f32>(1.0, 1e-6);
        // Nearly singular ones are summed in `f64` whatever the rows are.
        products_are_the_naive_ones::<f32>(1e6, 1e-14);
    }
}
