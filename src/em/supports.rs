//! The supports of all rows between iterations: the only thing kept per row and component.

use crate::block::UNSET;
use ndarray::Array2;

/// Truncated supports (n, width); nothing at all when every support is everything.
#[derive(Clone, Debug)]
pub(crate) struct Supports {
    /// Indices per row: the width, or 0 when supports are full.
    per_row: usize,
    indices: Vec<u32>,
}

impl Supports {
    pub(crate) fn unset(n: usize, width: usize, k: usize) -> Self {
        let per_row = if width < k { width } else { 0 };
        Self {
            per_row,
            indices: vec![UNSET; n * per_row],
        }
    }

    /// Consecutive parts of `rows` rows each (the last one shorter), for workers to write to.
    pub(crate) fn parts(&mut self, n: usize, rows: usize) -> Vec<&mut [u32]> {
        let mut rest = &mut self.indices[..];
        let mut parts = Vec::new();
        for start in (0..n).step_by(rows) {
            let size = rows.min(n - start) * self.per_row;
            let (part, after) = rest.split_at_mut(size);
            parts.push(part);
            rest = after;
        }
        parts
    }

    /// As a table (n, width), best first; `None` when supports are full.
    pub(crate) fn into_table(self, n: usize) -> Option<Array2<u32>> {
        if self.per_row == 0 {
            return None;
        }
        Array2::from_shape_vec((n, self.per_row), self.indices).ok()
    }
}
