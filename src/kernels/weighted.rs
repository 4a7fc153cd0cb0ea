//! Sums of rows with a share for every component: products of the shares, transposed, with the rows.

use crate::base::float::Float;
use crate::base::simd::{LANES, kernel, lanes};
use pulp::Simd;

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
}

kernel! {
    /// Adds first moments, and second ones of every coordinate where there is room for them, about the points `from`:
    ///
    /// $\sum_n q_n (x_n - \mu) = \sum_n q_n x_n - m \mu$ and $\sum_n q_n (x_n - \mu)^2 = \sum_n q_n x_n^2 - 2 \mu \sum_n q_n x_n
    /// + m \mu^2$.
    pub(crate) fn add[T: Float, G: Float](work: Weighted<'_, T, G>) = add_by_tiles
}

#[inline(always)]
fn add_by_tiles<T: Float, G: Float, S: Simd>(simd: S, work: Weighted<'_, T, G>) {
    // As many components share one read of a row as there are registers for their sums.
    if S::REGISTER_COUNT >= 32 {
        work.tiles::<S, MOST>(simd);
    } else {
        work.tiles::<S, 6>(simd);
    }
}

impl<T: Float, G: Float> Weighted<'_, T, G> {
    #[inline(always)]
    fn tiles<S: Simd, const N: usize>(mut self, simd: S) {
        let lanes = lanes::<T, S>();
        // The padding of short rows is left out.
        let vectors = (self.stride / lanes).min(self.columns.div_ceil(lanes));
        let mut tile = [T::zero(); MOST * 2 * LANES];
        for c in (0..self.mass.len()).step_by(N) {
            let mut v = 0;
            while v < vectors {
                if !self.second.is_empty() {
                    self.sums::<S, N, 2>(
                        simd,
                        c,
                        &mut tile,
                        #[inline(always)]
                        |row| [row[v], T::times(simd, row[v], row[v])],
                    );
                    self.add::<N, true>(c, v * lanes, lanes, &tile);
                    v += 1;
                } else if v + 1 < vectors {
                    self.sums::<S, N, 2>(
                        simd,
                        c,
                        &mut tile,
                        #[inline(always)]
                        |row| [row[v], row[v + 1]],
                    );
                    self.add::<N, false>(c, v * lanes, 2 * lanes, &tile);
                    v += 2;
                } else {
                    self.sums::<S, N, 1>(
                        simd,
                        c,
                        &mut tile,
                        #[inline(always)]
                        |row| [row[v]],
                    );
                    self.add::<N, false>(c, v * lanes, lanes, &tile);
                    v += 1;
                }
            }
        }
    }

    /// The sums of `N` components from `c` on, of the `V` vectors that `of` takes from each row: all in registers.
    #[inline(always)]
    fn sums<S: Simd, const N: usize, const V: usize>(
        &self,
        simd: S,
        c: usize,
        tile: &mut Tile<T>,
        of: impl Fn(&[T::Vector<S>]) -> [T::Vector<S>; V],
    ) {
        let mut sums = [[T::splat(simd, T::zero()); V]; N];
        for (n, row) in self.rows.chunks_exact(self.stride).enumerate() {
            let vectors = of(T::vectors::<S>(row).0);
            let shares = &self.shares[n * self.places + c..][..N];
            for (sums, &q) in sums.iter_mut().zip(shares) {
                let q = T::splat(simd, q);
                for (sum, &x) in sums.iter_mut().zip(&vectors) {
                    *sum = T::times_plus(simd, q, x, *sum);
                }
            }
        }
        let (tile, _) = T::vectors_mut::<S>(tile);
        for (to, sums) in tile.chunks_exact_mut(V).zip(sums) {
            to.copy_from_slice(&sums);
        }
    }

    /// Adds a tile of `width` columns of `N` components; their squares follow the sums of each, if these are wanted.
    #[inline(always)]
    fn add<const N: usize, const SQUARES: bool>(
        &mut self,
        c: usize,
        column: usize,
        width: usize,
        tile: &Tile<T>,
    ) {
        let known = width.min(self.columns.saturating_sub(column));
        let scale = self.scale;
        let each = width * (1 + usize::from(SQUARES));
        for (c, sums) in (c..self.mass.len().min(c + N)).zip(tile.chunks_exact(each)) {
            let mass = self.mass[c];
            if mass == 0.0 {
                continue;
            }
            let place = c * self.columns + column;
            let from = &self.from[place..][..known];
            let first = self.place_of[c] as usize * self.columns + column;
            let first = &mut self.first[first..][..known];
            let (sums, squares) = sums.split_at(width);
            for ((first, sum), mu) in first.iter_mut().zip(sums).zip(from) {
                *first += scale * sum.to_f64() - mass * mu.to_f64();
            }
            if SQUARES {
                let second = &mut self.second[place..][..known];
                let sums = sums.iter().zip(squares).zip(from);
                for (second, ((sum, square), mu)) in second.iter_mut().zip(sums) {
                    let sum = scale * sum.to_f64();
                    let mu = mu.to_f64();
                    // Only rounding can make it negative.
                    let about = scale * square.to_f64() - mu * (2.0 * sum - mass * mu);
                    *second += if about > 0.0 { about } else { 0.0 };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::base::simd::on_every_processor;
    use crate::kernels::panels::tests::SHAPES;

    fn moments_are_the_naive_ones<T: Float>(within: f64) {
        let mut rng = Rng::from_seed(3);
        for (n, d, k) in SHAPES {
            let stride = d.next_multiple_of(LANES);
            let places = k.next_multiple_of(LANES);
            let mut random = |n: usize, draw: fn(&mut Rng) -> f64| -> Vec<T> {
                (0..n).map(|_| T::from_f64(draw(&mut rng))).collect()
            };
            let shares = random(n * places + SPARE, Rng::uniform);
            let rows = random(n * stride, Rng::normal);
            let from = random(k * d, Rng::normal);
            let share = |i: usize, c: usize| 2.0 * shares[i * places + c].to_f64();
            let mut mass: Vec<f64> = (0..k).map(|c| (0..n).map(|i| share(i, c)).sum()).collect();
            if k > 1 {
                mass[k / 2] = 0.0;
            }
            let place_of: Vec<u32> = (0..k as u32).rev().collect();
            for squares in [0, k * d] {
                on_every_processor(|| {
                    let mut first = vec![0.25; k * d];
                    let mut second = vec![0.5; squares];
                    add(Weighted {
                        shares: &shares,
                        places,
                        rows: &rows,
                        stride,
                        scale: 2.0,
                        mass: &mass,
                        from: &from,
                        columns: d,
                        place_of: &place_of,
                        first: &mut first,
                        second: &mut second,
                    });
                    // Only some components of the largest shape are checked: the naive sums take long.
                    for c in (0..k).step_by(1 + k / 50) {
                        for j in (0..d).step_by(1 + d / 50) {
                            let mut a = 0.25;
                            let mut b = 0.5;
                            for i in (0..n).filter(|_| mass[c] > 0.0) {
                                let t = rows[i * stride + j].to_f64() - from[c * d + j].to_f64();
                                a += share(i, c) * t;
                                b += share(i, c) * t * t;
                            }
                            let near = |a: f64, b: f64| (a - b).abs() < within * (1.0 + n as f64);
                            assert!(near(first[place_of[c] as usize * d + j], a));
                            assert!(squares == 0 || near(second[c * d + j], b));
                        }
                    }
                });
            }
        }
    }

    #[test]
    fn sums_are_the_naive_ones() {
        moments_are_the_naive_ones::<f32>(1e-5);
        moments_are_the_naive_ones::<f64>(1e-13);
    }
}
