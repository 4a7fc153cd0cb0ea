//! Scores that compare a clustering with something known: true classes, true centres, or a reference solution.
//!
//! [`purity`], [`accuracy`], [`nmi`] and [`adjusted_rand_index`] compare two labellings of the same `n` points. Labels
//! are names only: any `u32` values, in any order, with gaps. The cost is `O(n log n)` time and `O(n)` memory whatever
//! the values are; [`accuracy`] costs a matching as well. [`matched_rmse`] compares two sets of centres whose order means
//! nothing, [`relative_error`] two quantization errors.
//!
//! All scores are unitless, except [`matched_rmse`], which has the unit of the data.

pub(crate) mod assignment;
mod contingency;
mod errors;
mod labels;
mod matched;

pub use errors::relative_error;
pub use labels::{adjusted_rand_index, nmi, purity};
pub use matched::{accuracy, matched_rmse};

/// What the tests of all scores share.
#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2};

    /// A small generator, so that the oracles need no dependency: Knuth's 64-bit congruential constants.
    pub(super) struct Lcg(pub(super) u64);

    impl Lcg {
        pub(super) fn next(&mut self) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 33
        }

        pub(super) fn labels(&mut self, n: usize, k: u64) -> Array1<u32> {
            // Spread over the whole range of u32, so that a table indexed by label could not work.
            (0..n)
                .map(|_| ((self.next() % k) as u32).wrapping_mul(2_654_435_769))
                .collect()
        }

        pub(super) fn centres(&mut self, k: usize, d: usize) -> Array2<f64> {
            Array2::from_shape_simple_fn((k, d), || self.next() as f64 / (1_u64 << 31) as f64)
        }
    }

    pub(super) fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-13 * expected.abs().max(1.0),
            "{found} is not {expected}"
        );
    }

    /// Reads a fixture: rows of comma-separated numbers.
    pub(super) fn fixture(text: &str) -> Vec<Vec<f64>> {
        text.lines()
            .map(|line| line.split(',').map(|v| v.parse().unwrap()).collect())
            .collect()
    }
}
