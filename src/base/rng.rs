//! All randomness of the crate: ChaCha8 streams addressed by what they are for, never by thread.
//!
//! A stream belongs to (seed, restart, start, phase, purpose, iteration, block of rows). Nothing depends on threads or on
//! the order in which blocks are worked on, so a seed gives the same bits on any number of threads.

use ndarray::Array2;
use ndarray_rand::RandomExt;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A stream of random numbers handed to a stage.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// A stream from a seed alone, for use outside a fit.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Streams::new(seed, 0).at(Purpose::Sampling, 0, 0)
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * UNIT
    }

    /// The seed of a fit that is part of another one.
    pub(crate) fn seed(&mut self) -> u64 {
        (self.uniform() * 2f64.powi(53)) as u64
    }

    /// Uniform in `0..n` (0 when `n` is 0). The bias is below `n / 2^64`.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// Standard normal.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    /// Standard normal numbers, row after row as [`normal`](Self::normal) gives them.
    pub(crate) fn normals(&mut self, rows: usize, columns: usize) -> Array2<f64> {
        Array2::random_using((rows, columns), StandardNormal, &mut self.0)
    }

    /// Chi-squared with any positive number of degrees of freedom.
    pub fn chi_squared(&mut self, degrees: f64) -> f64 {
        let law = rand_distr::ChiSquared::new(degrees).expect("positive degrees of freedom");
        law.sample(&mut self.0)
    }

    /// A count of this rate, which is positive; at most 10^15.
    pub(crate) fn poisson(&mut self, rate: f64) -> f64 {
        const MOST: f64 = 1e15;
        let law = rand_distr::Poisson::new(rate.clamp(f64::MIN_POSITIVE, MOST));
        law.expect("a positive rate").sample(&mut self.0)
    }

    /// Standard exponential.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// A number in proportion to `weights`, given their sum; `None` if no weight is positive.
    pub(crate) fn proportional(
        &mut self,
        weights: impl Iterator<Item = f64>,
        total: f64,
    ) -> Option<usize> {
        let mut left = self.uniform() * total;
        let mut last = None;
        for (i, weight) in weights.enumerate() {
            if weight > 0.0 {
                // Rounding may leave a rest past the end: the last candidate takes it.
                last = Some(i);
                left -= weight;
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }

    /// Makes the list `count` distinct random numbers below `n`, in any order; all of them, if there are no more.
    pub fn distinct(&mut self, list: &mut Vec<u32>, count: usize, n: usize) {
        list.clear();
        list.resize(count.min(n), 0);
        self.fill_distinct(list, 0, n);
    }

    /// Fills the places from `filled` on with distinct random numbers below `n` that are not in the list yet.
    /// There must be as many: at least `list.len()` of them.
    pub(crate) fn fill_distinct(&mut self, list: &mut [u32], filled: usize, n: usize) {
        if 4 * list.len() < n {
            for place in filled..list.len() {
                list[place] = loop {
                    let c = self.below(n) as u32;
                    if !list[..place].contains(&c) {
                        break c;
                    }
                };
            }
        } else if filled < list.len() {
            // Most are needed: shuffle all that are left instead of guessing again and again.
            let mut left: Vec<u32> = (0..n as u32)
                .filter(|c| !list[..filled].contains(c))
                .collect();
            for place in &mut list[filled..] {
                *place = left.swap_remove(self.below(left.len()));
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Coreset = 1,
    Seeding = 2,
    Start = 3,
    Search = 4,
    Sampling = 5,
    Sketch = 6,
    Moves = 7,
    Subspace = 8,
    HeldOut = 9,
}

/// The streams of a fit, addressed by (restart, start, phase, purpose, iteration, block).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    key: [u8; 32],
}

impl Streams {
    pub(crate) fn new(seed: u64, restart: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&restart.to_le_bytes());
        Self { key }
    }

    /// The streams of another start of the same restart.
    pub(crate) fn start(mut self, start: usize) -> Self {
        self.key[16..24].copy_from_slice(&(start as u64).to_le_bytes());
        self
    }

    pub(crate) fn phase(mut self, phase: usize) -> Self {
        self.key[24..].copy_from_slice(&(phase as u64).to_le_bytes());
        self
    }

    pub(crate) fn at(&self, purpose: Purpose, iteration: usize, block: usize) -> Rng {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        let iteration = iteration as u64 & 0x0fff_ffff;
        let block = block as u64 & 0xffff_ffff;
        rng.set_stream((purpose as u64) << 60 | iteration << 32 | block);
        Rng(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed promises these numbers: those of ChaCha8 with this key and stream, computed by another implementation.
    #[test]
    fn streams_are_those_of_chacha() {
        let mut rng = Streams::new(7, 3).at(Purpose::Sampling, 2, 9);
        let numbers: Vec<u64> = (0..41).map(|_| rng.0.next_u64()).collect();
        let expected = [0xd0f104eeb582d41a, 0x75f16beb8ac0e940, 0xe787e0144779773c];
        assert_eq!([numbers[0], numbers[1], numbers[40]], expected);
    }

    /// The start of every purpose. A change here changes the results of all fits.
    #[test]
    fn every_purpose_has_the_stream_it_always_had() {
        let streams = Streams::new(7, 1).start(2).phase(3);
        let purposes = [
            Purpose::Coreset,
            Purpose::Seeding,
            Purpose::Start,
            Purpose::Search,
            Purpose::Sampling,
            Purpose::Sketch,
            Purpose::Moves,
            Purpose::Subspace,
            Purpose::HeldOut,
        ];
        let expected = [
            9489549007679695329,
            11056596196975596910,
            14543747296649615707,
            6704302937297360232,
            15298175130629413223,
            6681763325602045220,
            14767292518929192629,
            13187139711904625266,
            16784864003965165700,
        ];
        assert_eq!(
            purposes.map(|purpose| streams.at(purpose, 4, 5).0.next_u64()),
            expected
        );
    }
}
