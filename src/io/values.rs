//! Checks of what a file holds.

use crate::base::file_fault::FileFault;
use crate::base::float::Float;

type Result = std::result::Result<(), FileFault>;

/// An error of the section unless `sound`.
pub(crate) fn rule(sound: bool, section: &str, rule: &'static str) -> Result {
    if sound {
        Ok(())
    } else {
        Err(FileFault::content(section, rule))
    }
}

/// As many numbers as there must be, and all finite.
pub(crate) fn all_finite<F: Float>(section: &str, numbers: &[F], count: usize) -> Result {
    let sized = numbers.len() == count;
    rule(sized, section, "must have as many numbers as its model")?;
    let finite = numbers.iter().all(|x| x.is_finite());
    rule(finite, section, "must be finite")
}

/// Checks finite numbers that are positive, and not so small that their reciprocals overflow.
pub(crate) fn all_positive(section: &str, numbers: &[f64], count: usize) -> Result {
    all_finite(section, numbers, count)?;
    let positive = numbers.iter().all(|x| *x >= f64::MIN_POSITIVE);
    rule(positive, section, "must be positive")
}

/// Counts, of which no fit comes near 2^60: sums of a few do not overflow.
pub(crate) fn all_counts(section: &str, counts: &[u64]) -> Result {
    let small = counts.iter().all(|count| *count < 1 << 60);
    rule(small, section, "must have counts below 2^60")
}
