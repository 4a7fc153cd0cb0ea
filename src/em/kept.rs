//! What is kept per row between searches: its label, and its support where that is not everything.

use crate::block::UNSET;
use ndarray::{Array1, Array2};

/// Labels (n) and truncated supports (n, width); no supports when every support is everything.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Indices per row: the width, or 0 when supports are full.
    per_row: usize,
    supports: Vec<u32>,
    labels: Vec<u32>,
}

/// The part of it that belongs to some consecutive rows.
pub(super) struct KeptRows<'a> {
    per_row: usize,
    pub(super) supports: &'a mut [u32],
    pub(super) labels: &'a mut [u32],
}

impl Kept {
    /// Nothing searched yet.
    pub(super) fn unset(n: usize, width: usize, k: usize) -> Self {
        let per_row = if width < k { width } else { 0 };
        Self {
            per_row,
            supports: vec![UNSET; n * per_row],
            labels: vec![0; n],
        }
    }

    /// Rows that belong to one component each.
    pub(crate) fn of_labels(labels: Vec<u32>, k: usize) -> Self {
        let per_row = usize::from(k > 1);
        let supports = if per_row == 1 {
            labels.clone()
        } else {
            Vec::new()
        };
        Self {
            per_row,
            supports,
            labels,
        }
    }

    /// What is kept of all rows.
    pub(super) fn rows(&mut self) -> KeptRows<'_> {
        KeptRows {
            per_row: self.per_row,
            supports: &mut self.supports,
            labels: &mut self.labels,
        }
    }

    /// The best component of every row (n).
    pub(crate) fn into_labels(self) -> Vec<u32> {
        self.labels
    }

    /// Labels (n), and supports (n, width), best first, unless they are full.
    pub(crate) fn into_arrays(self) -> (Array1<u32>, Option<Array2<u32>>) {
        let shape = (self.labels.len(), self.per_row);
        let supports = (self.per_row > 0)
            .then(|| Array2::from_shape_vec(shape, self.supports).expect("n x width numbers"));
        (self.labels.into(), supports)
    }
}

impl<'a> KeptRows<'a> {
    /// Consecutive parts of `rows` rows each, the last one shorter.
    pub(super) fn into_parts(self, rows: usize) -> Vec<KeptRows<'a>> {
        let per_row = self.per_row;
        let mut rest = self.supports;
        let mut parts = Vec::new();
        for labels in self.labels.chunks_mut(rows) {
            let (supports, after) = rest.split_at_mut(labels.len() * per_row);
            rest = after;
            parts.push(KeptRows {
                per_row,
                supports,
                labels,
            });
        }
        parts
    }
}
