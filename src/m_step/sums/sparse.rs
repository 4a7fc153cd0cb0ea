//! Sparse rows that wait to be added to sums.

use crate::base::float::Float;
use crate::kernels::sparse::Known;
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

impl Sparse {
    /// A row more that waits, with its shares of components. Returns how many numbers of 8 bytes those that wait take.
    pub(super) fn push<F: Float>(
        &mut self,
        row: Known<'_, F>,
        shares: impl Iterator<Item = (u32, f64)>,
    ) -> usize {
        self.waiting.resize_with(1, Waiting::default);
        let Waiting {
            ids,
            values,
            shares: all_shares,
        } = &mut self.waiting[0];
        let start = ids.len();
        ids.extend_from_slice(row.ids);
        values.extend(row.values.iter().map(|x| x.to_f64()));
        let entries = start..ids.len();
        all_shares.extend(shares.map(|(c, share)| (c, share, entries.clone())));
        3 * ids.len() / 2 + 4 * all_shares.len()
    }
}

impl Waiting {
    pub(super) fn row(&self, entries: &Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let ids = self.ids[entries.clone()].iter().map(|j| *j as usize);
        ids.zip(self.values[entries.clone()].iter().copied())
    }
}
