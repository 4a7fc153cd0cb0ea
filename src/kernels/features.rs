//! Inputs of products, made of rows: coordinates of a frame, differences, squares, norms, weighted copies.

use super::distance::squared_norm;
use crate::base::float::Float;
use crate::base::simd::{kernel, vectorised};
use pulp::Simd;

kernel! {
    /// Takes padded rows of stored numbers, as many as the padded offset has, into the frame of this offset and this scale of each
    /// column, in place: `(x - offset) * scale`, held between `-most` and `most`.
    pub(crate) fn enter[F: Float](rows: &mut [F], offset: &[F], scale: &[F], most: F) = enter_frame
}

#[inline(always)]
fn enter_frame<F: Float, S: Simd>(simd: S, rows: &mut [F], offset: &[F], scale: &[F], most: F) {
    let stride = offset.len();
    let (offset, offset_rest) = F::vectors::<S>(offset);
    let (scale, scale_rest) = F::vectors::<S>(scale);
    let least_held = F::splat(simd, -most);
    let most_held = F::splat(simd, most);
    for row in rows.chunks_exact_mut(stride) {
        let (row, rest) = F::vectors_mut::<S>(row);
        for ((x, &offset), &scale) in row.iter_mut().zip(offset).zip(scale) {
            // Comparisons clamp `z`, so that NaN stays NaN.
            let z = F::times(simd, F::minus(simd, *x, offset), scale);
            let z = F::select(simd, F::less(simd, most_held, z), most_held, z);
            *x = F::select(simd, F::less(simd, z, least_held), least_held, z);
        }
        // Rows shorter than a vector.
        for ((x, &offset), &scale) in rest.iter_mut().zip(offset_rest).zip(scale_rest) {
            let z = (*x - offset) * scale;
            let z = if most < z { most } else { z };
            *x = if z < -most { -most } else { z };
        }
    }
}

/// Brings padded rows to length 1, in place; rows of zeros stay.
pub(crate) fn to_length_one<F: Float>(rows: &mut [F], stride: usize) {
    vectorised!({
        for row in rows.chunks_exact_mut(stride) {
            // Every stride is a multiple of 4.
            let mut sums = [0.0; 4];
            let (chunks, _) = row.as_chunks::<4>();
            for chunk in chunks {
                for l in 0..4 {
                    let x = chunk[l].to_f64();
                    sums[l] += x * x;
                }
            }
            let squared = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            // Squares of very small numbers of `f64` are lost.
            if squared > 1e-200 {
                let factor = 1.0 / squared.sqrt();
                row.iter_mut()
                    .for_each(|x| *x = F::from_f64(x.to_f64() * factor));
            } else {
                small_to_length_one(row);
            }
        }
    });
}

#[cold]
fn small_to_length_one<F: Float>(row: &mut [F]) {
    let sizes = row.iter().map(|x| x.to_f64().abs());
    let largest = sizes.fold(0.0, f64::max);
    if largest > 0.0 {
        let squares = row.iter().map(|x| (x.to_f64() / largest).powi(2));
        let length = squares.sum::<f64>().sqrt();
        row.iter_mut()
            .for_each(|x| *x = F::from_f64(x.to_f64() / largest / length));
    }
}

kernel! {
    /// Padded rows as seen from a point (d), each followed by its squared norm: (rows, d + 1).
    pub(crate) fn with_norms[F: Float](rows: &[F], stride: usize, about: &[F], out: &mut [F]) = rows_with_norms
}

#[inline(always)]
fn rows_with_norms<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    stride: usize,
    about: &[F],
    out: &mut [F],
) {
    match stride {
        4 => return short_with_norms::<F, 4>(rows, about, out),
        8 => return short_with_norms::<F, 8>(rows, about, out),
        _ => (),
    }
    let places = out.chunks_exact_mut(about.len() + 1);
    for (row, out) in rows.chunks_exact(stride).zip(places) {
        if let Some((norm, out)) = out.split_last_mut() {
            for ((out, &x), &a) in out.iter_mut().zip(row).zip(about) {
                *out = x - a;
            }
            *norm = squared_norm(simd, out);
        }
    }
}

/// Rows of `D` numbers with their padding, which is written as well: the next row comes over it.
#[inline(always)]
fn short_with_norms<F: Float, const D: usize>(rows: &[F], about: &[F], out: &mut [F]) {
    let dim = about.len();
    let mut from = [F::zero(); D];
    from[..dim].copy_from_slice(about);
    for (i, row) in rows.as_chunks::<D>().0.iter().enumerate() {
        let mut seen = [F::zero(); D];
        let mut squares = [F::zero(); D];
        for j in 0..D {
            seen[j] = row[j] - from[j];
            squares[j] = seen[j] * seen[j];
        }
        let mut half = D / 2;
        while half > 0 {
            for j in 0..half {
                squares[j] += squares[j + half];
            }
            half /= 2;
        }
        let out = &mut out[i * (dim + 1)..];
        match out.first_chunk_mut::<D>() {
            Some(out) => *out = seen,
            None => out[..dim].copy_from_slice(&seen[..dim]),
        }
        out[dim] = squares[0];
    }
}

/// Padded rows as seen from a point (d), each followed by the squares of its coordinates: (rows, 2 d).
pub(crate) fn with_squares<F: Float>(rows: &[F], stride: usize, about: &[F], out: &mut [F]) {
    let dim = about.len();
    vectorised!({
        for (row, out) in rows.chunks_exact(stride).zip(out.chunks_exact_mut(2 * dim)) {
            let (out, squares) = out.split_at_mut(dim);
            let places = out.iter_mut().zip(squares);
            for (((out, square), &x), &a) in places.zip(row).zip(about) {
                let x = x - a;
                *out = x;
                *square = x * x;
            }
        }
    });
}

/// Padded rows as seen from a point, padded, each times a factor, in the type `T` and in rows of `stride` numbers: the rest is
/// zeros.
pub(crate) fn relative_and_scaled<F: Float, T: Float>(
    rows: &[F],
    about: &[F],
    factors: impl Iterator<Item = T>,
    stride: usize,
    out: &mut Vec<T>,
) {
    let width = about.len();
    out.resize(rows.len() / width * stride, T::zero());
    vectorised!({
        let rows = rows.chunks_exact(width).zip(factors);
        for ((row, factor), out) in rows.zip(out.chunks_exact_mut(stride)) {
            // Rows of weight 0 may be so far that the difference overflows.
            let counts = factor > T::zero();
            for ((out, &x), &a) in out.iter_mut().zip(row).zip(about) {
                let x = T::from_f64(x.to_f64());
                let a = T::from_f64(a.to_f64());
                *out = if counts { (x - a) * factor } else { T::zero() };
            }
        }
    });
}

/// Rows of `stride` shares, each times its weight and a factor, in the type `T`; what comes after the last is zeros.
pub(crate) fn times<F: Float, T: Float>(
    shares: &[F],
    weights: &[f64],
    factor: f64,
    stride: usize,
    out: &mut Vec<T>,
) {
    out.resize(shares.len(), T::zero());
    vectorised!({
        let rows = shares.chunks_exact(stride).zip(weights);
        for ((shares, &weight), out) in rows.zip(out.chunks_exact_mut(stride)) {
            let weight = T::from_f64(weight * factor);
            for (out, share) in out.iter_mut().zip(shares) {
                *out = weight * T::from_f64(share.to_f64());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::simd::on_every_processor;

    /// Numbers within and beyond what is held, and NaN; in lengths of a part of a vector and of several.
    #[test]
    fn rows_enter_as_one_number_does() {
        let values = [0.5, -3.0, 1e30, -1e30, f64::NAN, 7.25, f64::INFINITY, 0.0];
        for stride in [4, 8, 16, 48] {
            let offset: Vec<f64> = (0..stride).map(|j| 0.25 * j as f64).collect();
            let scale: Vec<f64> = (0..stride).map(|j| 0.5 + j as f64).collect();
            let rows: Vec<f64> = (0..3 * stride).map(|i| values[i * 5 % 8]).collect();
            on_every_processor(|| {
                let mut got = rows.clone();
                enter(&mut got, &offset, &scale, 1e3);
                for (i, (got, x)) in got.iter().zip(&rows).enumerate() {
                    let expected = (x - offset[i % stride]) * scale[i % stride];
                    let expected = expected.clamp(-1e3, 1e3);
                    assert!(*got == expected || (got.is_nan() && expected.is_nan()));
                }
            });
        }
    }

    /// Lengths of rows whose squares overflow or underflow in `f32`, or underflow in `f64`, and of zeros.
    #[test]
    fn rows_of_any_size_get_length_one() {
        fn lengths<F: Float>(sizes: &[f64]) {
            for (stride, size) in [4, 8, 48]
                .into_iter()
                .flat_map(|s| sizes.iter().map(move |x| (s, *x)))
            {
                let mut rows: Vec<F> = (0..stride)
                    .map(|j| F::from_f64(size * (j as f64 - 1.5)))
                    .collect();
                rows.extend(vec![F::zero(); stride]);
                to_length_one(&mut rows, stride);
                let squares = rows[..stride].iter().map(|x| x.to_f64() * x.to_f64());
                assert!(
                    (squares.sum::<f64>() - 1.0).abs() < 1e-6,
                    "{stride} {size:e}"
                );
                assert!(rows[stride..].iter().all(|x| *x == F::zero()));
            }
        }
        lengths::<f32>(&[1.0, 1e30, 1e-30]);
        lengths::<f64>(&[1.0, 1e140, 1e-140, 1e-290]);
    }

    #[test]
    fn features_are_the_naive_ones() {
        for (d, stride) in [(1, 4), (3, 4), (4, 4), (6, 8), (8, 8), (17, 32), (40, 48)] {
            let n = 3;
            let place = |i: usize| if i % stride < d { 0.5 + i as f64 } else { 0.0 };
            let rows: Vec<f64> = (0..n * stride).map(place).collect();
            let mut about: Vec<f64> = (0..stride).map(|j| 0.25 * j as f64).collect();
            about[d..].fill(0.0);
            let x = |i: usize, j: usize| rows[i * stride + j] - about[j];
            let mut norms = vec![0.0; n * (d + 1)];
            with_norms(&rows, stride, &about[..d], &mut norms);
            let mut squares = vec![0.0; n * 2 * d];
            with_squares(&rows, stride, &about[..d], &mut squares);
            let mut scaled = Vec::new();
            let mut wide = Vec::new();
            let factors = (0..n).map(|i| i as f64);
            relative_and_scaled(&rows, &about, factors, 48, &mut scaled);
            relative_and_scaled(&rows, &about, [1.0; 3].into_iter(), 48, &mut wide);
            for i in 0..n {
                let norm: f64 = (0..d).map(|j| x(i, j).powi(2)).sum();
                assert!((norms[i * (d + 1) + d] - norm).abs() <= 1e-14 * norm);
                for j in 0..d {
                    assert_eq!(norms[i * (d + 1) + j], x(i, j));
                    assert_eq!(squares[i * 2 * d + j], x(i, j));
                    assert_eq!(squares[i * 2 * d + d + j], x(i, j) * x(i, j));
                    assert_eq!(scaled[i * 48 + j], i as f64 * x(i, j));
                    assert_eq!(wide[i * 48 + j], x(i, j));
                }
                assert!(wide[i * 48 + d..(i + 1) * 48].iter().all(|x| *x == 0.0));
            }
        }
        let mut out: Vec<f64> = Vec::new();
        times(&[1f32, 2.0, 3.0, 4.0, 5.0], &[2.0, 0.5], 1.0, 2, &mut out);
        assert_eq!(out, [2.0, 4.0, 1.5, 2.0, 0.0]);
        let mut narrow: Vec<f32> = Vec::new();
        times(&[1.0, 2.0, 3.0], &[2.0], 0.25, 2, &mut narrow);
        assert_eq!(narrow, [0.5f32, 1.0, 0.0]);
    }
}
