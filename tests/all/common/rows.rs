//! Rows for tests, and a source that reads them: also for programs that need no more of what the tests share.
#![allow(unreachable_pub)]

use coremix::data::Source;
use coremix::stage::Rng;
use coremix::{Element, Float};
use ndarray::Array2;

/// `n` points around `blobs` centres, some far apart and some overlapping.
pub fn blobs<F: Float>(n: usize, d: usize, blobs: usize, seed: u64) -> Array2<F> {
    let mut rng = Rng::from_seed(seed);
    let centres = Array2::from_shape_fn((blobs, d), |_| 4.0 * rng.normal());
    Array2::from_shape_fn((n, d), |(n, j)| {
        F::from_f64(centres[[n % blobs, j]] + rng.normal())
    })
}

/// Rows that are read from an array, as from a file.
#[derive(Debug)]
pub struct Stored<T>(pub Array2<T>);

impl<T: Element> Source for Stored<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.0.nrows()
    }

    fn dim(&self) -> usize {
        self.0.ncols()
    }

    fn read(&self, first: usize, out: &mut [T]) -> std::io::Result<()> {
        let values = self.0.as_slice().unwrap();
        out.copy_from_slice(&values[first * self.dim()..][..out.len()]);
        Ok(())
    }
}
