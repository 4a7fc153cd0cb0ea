//! Sparse rows that wait to be added to sums.

use std::ops::Range;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sparse {
    /// Whether zeros of rows are yet to be added.
    pub(super) zeros_wait: bool,
    /// Rows that are yet to be added, while they take less memory than sums of all coordinates.
    pub(super) waiting: Vec<Waiting>,
}

/// Sparse rows, with their shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waiting {
    pub(super) ids: Vec<u32>,
    pub(super) values: Vec<f64>,
    /// Component, share, and where the entries of the row are.
    pub(super) shares: Vec<(u32, f64, Range<usize>)>,
}

impl Waiting {
    pub(super) fn row(&self, entries: &Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let ids = self.ids[entries.clone()].iter().map(|j| *j as usize);
        ids.zip(self.values[entries.clone()].iter().copied())
    }
}
