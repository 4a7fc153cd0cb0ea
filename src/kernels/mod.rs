//! The inner loops: distances, selection of the best, sums. Compiled for the widest vectors the processor
//! has (chosen at run time by `pulp`), each with its naive version as the oracle of its tests.

pub(crate) mod accumulate;
pub(crate) mod columns;
pub(crate) mod distance;
pub(crate) mod exponential;
pub(crate) mod features;
pub(crate) mod nearest;
pub(crate) mod panels;
pub(crate) mod quadratic;
pub(crate) mod select;
pub(crate) mod short;
pub(crate) mod soft;
pub(crate) mod sparse;
pub(crate) mod weighted;
pub(crate) mod zeros;

/// Length of a stored row of `d` numbers: padded with zeros to a whole number of vectors, so that no long
/// row has a tail.
pub(crate) fn stride(d: usize) -> usize {
    match d {
        0..=4 => 4,
        5..=8 => 8,
        _ => d.next_multiple_of(16),
    }
}
