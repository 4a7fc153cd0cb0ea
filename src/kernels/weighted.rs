//! Sums of rows with a share for every component: products of the shares, transposed, with the rows.

use super::LANES;
use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// Rows of shares end with as many places more as the kernel may read beyond the last.
pub(crate) const SPARE: usize = LANES;

/// Components of a tile, at most.
const MOST: usize = 12;

/// The sums of a tile: [`MOST`] components, two vectors each.
type Tile<T> = [T; MOST * 2 * LANES];

/// Shares and rows as seen from a point, and the moments about other points that they are added to. Sums are of the type `T`
/// over all rows that are given; what they are added to is not.
pub(crate) struct Weighted<'a, T, G> {
    /// (rows, places), and [`SPARE`] more.
    pub(crate) shares: &'a [T],
    pub(crate) places: usize,
    /// (rows, stride): the stride is a multiple of [`LANES`].
    pub(crate) rows: &'a [T],
    pub(crate) stride: usize,
    /// All sums are multiplied by it.
    pub(crate) scale: f64,
    /// (k): the sums of the shares; a component without is left out.
    pub(crate) mass: &'a [f64],
    /// (k, columns): the points that moments are about.
    pub(crate) from: &'a [G],
    pub(crate) columns: usize,
    /// Which row of `first` each component has (k).
    pub(crate) place_of: &'a [u32],
    /// Rows of `columns` numbers.
    pub(crate) first: &'a mut [f64],
    /// (k, columns), or empty.
    pub(crate) second: &'a mut [f64],
    /// Whether component c needs its columns 0 to c alone (a lower triangle): most of the others are left out.
    pub(crate) lower: bool,
}

/// Adds first moments, and second ones of every coordinate where there is room for them, about the points `from`:
///
/// $\sum_n q_n (x_n - \mu) = \sum_n q_n x_n - m \mu$ and $\sum_n q_n (x_n - \mu)^2 = \sum_n q_n x_n^2 - 2 \mu \sum_n q_n x_n
/// + m \mu^2$.
pub(crate) fn add<T: Float, G: Float>(work: Weighted<'_, T, G>) {
    Arch::new().dispatch(work);
}

impl<T: Float, G: Float> WithSimd for Weighted<'_, T, G> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // As many components share one read of a row as there are registers for their sums.
        if S::REGISTER_COUNT >= 32 {
            self.tiles::<S, MOST>(simd);
        } else {
            self.tiles::<S, 6>(simd);
        }
    }
}

impl<T: Float, G: Float> Weighted<'_, T, G> {
    #[inline(always)]
    fn tiles<S: Simd, const N: usize>(mut self, simd: S) {
        let lanes = T::lanes(simd);
        // Not the padding of short rows.
        let vectors = (self.stride / lanes).min(self.columns.div_ceil(lanes));
        let mut tile = [T::zero(); MOST * 2 * LANES];
        for c in (0..self.mass.len()).step_by(N) {
            let shares = (&self.shares[c..], self.places);
            let vectors = match self.lower {
                true => vectors.min((c + N).div_ceil(lanes)),
                false => vectors,
            };
            let mut v = 0;
            while v < vectors {
                let rows = (self.rows, self.stride);
                if !self.second.is_empty() {
                    T::with_squares::<S, N>(simd, shares, rows, v, &mut tile);
                    self.add_second::<N>(c, v * lanes, lanes, &tile);
                    v += 1;
                } else if v + 1 < vectors {
                    T::of_two::<S, N>(simd, shares, rows, v, &mut tile);
                    self.add_first::<N>(c, v * lanes, 2 * lanes, &tile);
                    v += 2;
                } else {
                    T::of_one::<S, N>(simd, shares, rows, v, &mut tile);
                    self.add_first::<N>(c, v * lanes, lanes, &tile);
                    v += 1;
                }
            }
        }
    }

    /// Adds a tile of `width` columns of `N` components.
    #[inline(always)]
    fn add_first<const N: usize>(&mut self, c: usize, column: usize, width: usize, tile: &Tile<T>) {
        let known = width.min(self.columns.saturating_sub(column));
        let scale = self.scale;
        for (c, sums) in (c..self.mass.len().min(c + N)).zip(tile.chunks_exact(width)) {
            let mass = self.mass[c];
            if mass == 0.0 {
                continue;
            }
            let from = &self.from[c * self.columns + column..][..known];
            let first = self.place_of[c] as usize * self.columns + column;
            let first = &mut self.first[first..][..known];
            for ((first, sum), mu) in first.iter_mut().zip(sums).zip(from) {
                *first += scale * sum.to_f64() - mass * mu.to_f64();
            }
        }
    }

    /// The same with squares, which follow the sums of each component.
    #[inline(always)]
    fn add_second<const N: usize>(
        &mut self,
        c: usize,
        column: usize,
        width: usize,
        tile: &Tile<T>,
    ) {
        let known = width.min(self.columns.saturating_sub(column));
        let scale = self.scale;
        for (c, sums) in (c..self.mass.len().min(c + N)).zip(tile.chunks_exact(2 * width)) {
            let mass = self.mass[c];
            if mass == 0.0 {
                continue;
            }
            let place = c * self.columns + column;
            let from = &self.from[place..][..known];
            let second = &mut self.second[place..][..known];
            let first = self.place_of[c] as usize * self.columns + column;
            let first = &mut self.first[first..][..known];
            let (sums, squares) = sums.split_at(width);
            let moments = first.iter_mut().zip(second);
            for ((((first, second), sum), square), mu) in moments.zip(sums).zip(squares).zip(from) {
                let (sum, mu) = (scale * sum.to_f64(), mu.to_f64());
                *first += sum - mass * mu;
                // Only rounding can make it negative.
                let about = scale * square.to_f64() - mu * (2.0 * sum - mass * mu);
                *second += if about > 0.0 { about } else { 0.0 };
            }
        }
    }
}

/// Tiles of the sums, with the vectors of the processor: rows by rows, all sums in registers.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Weigh: Sized {
    /// Numbers of a vector.
    #[doc(hidden)]
    fn lanes<S: Simd>(simd: S) -> usize;
    /// `N` components, one vector of the rows.
    #[doc(hidden)]
    fn of_one<S: Simd, const N: usize>(
        simd: S,
        shares: (&[Self], usize),
        rows: (&[Self], usize),
        v: usize,
        tile: &mut [Self],
    );
    /// `N` components, two vectors of the rows.
    #[doc(hidden)]
    fn of_two<S: Simd, const N: usize>(
        simd: S,
        shares: (&[Self], usize),
        rows: (&[Self], usize),
        v: usize,
        tile: &mut [Self],
    );
    /// `N` components, one vector of the rows, and its squares.
    #[doc(hidden)]
    fn with_squares<S: Simd, const N: usize>(
        simd: S,
        shares: (&[Self], usize),
        rows: (&[Self], usize),
        v: usize,
        tile: &mut [Self],
    );
}

macro_rules! weigh {
    ($t:ty, $vectors:ident, $vectors_mut:ident, $splat:ident, $mul:ident, $mul_add:ident) => {
        impl Weigh for $t {
            #[inline(always)]
            fn lanes<S: Simd>(simd: S) -> usize {
                size_of_val(&simd.$splat(0.0)) / size_of::<$t>()
            }

            #[inline(always)]
            fn of_one<S: Simd, const N: usize>(
                simd: S,
                (shares, places): (&[Self], usize),
                (rows, stride): (&[Self], usize),
                v: usize,
                tile: &mut [Self],
            ) {
                let mut sums = [simd.$splat(0.0); N];
                for (n, row) in rows.chunks_exact(stride).enumerate() {
                    let x = S::$vectors(row).0[v];
                    let shares = &shares[n * places..][..N];
                    for (sum, &q) in sums.iter_mut().zip(shares) {
                        *sum = simd.$mul_add(simd.$splat(q), x, *sum);
                    }
                }
                let (tile, _) = S::$vectors_mut(tile);
                for (to, sum) in tile.iter_mut().zip(sums) {
                    *to = sum;
                }
            }

            #[inline(always)]
            fn of_two<S: Simd, const N: usize>(
                simd: S,
                (shares, places): (&[Self], usize),
                (rows, stride): (&[Self], usize),
                v: usize,
                tile: &mut [Self],
            ) {
                let mut sums = [[simd.$splat(0.0); 2]; N];
                for (n, row) in rows.chunks_exact(stride).enumerate() {
                    let (row, _) = S::$vectors(row);
                    let (x, y) = (row[v], row[v + 1]);
                    let shares = &shares[n * places..][..N];
                    for (sum, &q) in sums.iter_mut().zip(shares) {
                        let q = simd.$splat(q);
                        sum[0] = simd.$mul_add(q, x, sum[0]);
                        sum[1] = simd.$mul_add(q, y, sum[1]);
                    }
                }
                let (tile, _) = S::$vectors_mut(tile);
                for (to, sum) in tile.chunks_exact_mut(2).zip(sums) {
                    to[0] = sum[0];
                    to[1] = sum[1];
                }
            }

            #[inline(always)]
            fn with_squares<S: Simd, const N: usize>(
                simd: S,
                (shares, places): (&[Self], usize),
                (rows, stride): (&[Self], usize),
                v: usize,
                tile: &mut [Self],
            ) {
                let mut sums = [[simd.$splat(0.0); 2]; N];
                for (n, row) in rows.chunks_exact(stride).enumerate() {
                    let x = S::$vectors(row).0[v];
                    let square = simd.$mul(x, x);
                    let shares = &shares[n * places..][..N];
                    for (sum, &q) in sums.iter_mut().zip(shares) {
                        let q = simd.$splat(q);
                        sum[0] = simd.$mul_add(q, x, sum[0]);
                        sum[1] = simd.$mul_add(q, square, sum[1]);
                    }
                }
                let (tile, _) = S::$vectors_mut(tile);
                for (to, sum) in tile.chunks_exact_mut(2).zip(sums) {
                    to[0] = sum[0];
                    to[1] = sum[1];
                }
            }
        }
    };
}
weigh!(
    f32,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    mul_f32s,
    mul_add_e_f32s
);
weigh!(
    f64,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    mul_f64s,
    mul_add_e_f64s
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    #[test]
    fn sums_are_the_naive_ones() {
        let mut rng = Rng::from_seed(3);
        for (n, d, k, squares) in [
            (1, 4, 1, false),
            (5, 8, 7, true),
            (130, 16, 13, false),
            (70, 48, 30, true),
            (40, 96, 25, false),
        ] {
            let (stride, places) = (d.max(LANES), usize::next_multiple_of(k, LANES));
            let shares: Vec<f64> = (0..n * places + SPARE).map(|_| rng.uniform()).collect();
            let place = |i: usize| i % stride < d;
            let rows: Vec<f64> = (0..n * stride)
                .map(|i| if place(i) { rng.normal() } else { 0.0 })
                .collect();
            let from: Vec<f64> = (0..k * d).map(|_| rng.normal()).collect();
            let mut mass: Vec<f64> = (0..k)
                .map(|c| (0..n).map(|i| 2.0 * shares[i * places + c]).sum())
                .collect();
            if k > 1 {
                mass[k / 2] = 0.0;
            }
            let place_of: Vec<u32> = (0..k as u32).rev().collect();
            let mut all = Vec::new();
            with_all_vectors!({
                let second = if squares {
                    vec![0.5; k * d]
                } else {
                    Vec::new()
                };
                all.push((vec![0.25; k * d], second));
                let (first, second) = all.last_mut().unwrap();
                Weighted {
                    shares: &shares,
                    places,
                    rows: &rows,
                    stride,
                    scale: 2.0,
                    mass: &mass,
                    from: &from,
                    columns: d,
                    place_of: &place_of,
                    first,
                    second,
                    lower: false,
                }
            });
            for (first, second) in all {
                for c in 0..k {
                    for j in 0..d {
                        let (mut a, mut b) = (0.25, 0.5);
                        for i in (0..n).filter(|_| mass[c] > 0.0) {
                            let t = rows[i * stride + j] - from[c * d + j];
                            a += 2.0 * shares[i * places + c] * t;
                            b += 2.0 * shares[i * places + c] * t * t;
                        }
                        let got = first[place_of[c] as usize * d + j];
                        assert!((got - a).abs() < 1e-11 * (1.0 + n as f64), "{got} {a}");
                        if squares {
                            let got = second[c * d + j];
                            assert!((got - b).abs() < 1e-11 * (1.0 + n as f64), "{got} {b}");
                        }
                    }
                }
            }
        }
    }
}
