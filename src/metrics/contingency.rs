//! How often each label of one side meets each label of the other.

use crate::base::error::{Error, Result, ensure, same_length};
use ndarray::ArrayView1;

/// The non-zero cells of the table `n_ij` of two labellings, ordered by row and then column, and its margins.
pub(super) struct Contingency {
    pub(super) cells: Vec<Cell>,
    /// Points per distinct value of the first labelling, in ascending order of the value.
    pub(super) rows: Vec<u64>,
    /// Points per distinct value of the second labelling, in ascending order of the value.
    pub(super) columns: Vec<u64>,
    pub(super) total: u64,
}

pub(super) struct Cell {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) count: u64,
}

impl Contingency {
    /// Sorts the pairs of labels: sums over the table then run in one fixed order, which hashing would not give.
    pub(super) fn new(first: ArrayView1<u32>, second: ArrayView1<u32>) -> Result<Self> {
        let some = !first.is_empty() || !second.is_empty();
        ensure(some, || Error::Empty { what: "labels" })?;
        same_length("labels", first.len(), second.len())?;
        let mut keys: Vec<(u32, u32)> = first.iter().copied().zip(second.iter().copied()).collect();
        keys.sort_unstable();

        let mut classes: Vec<u32> = second.to_vec();
        classes.sort_unstable();
        classes.dedup();

        let mut cells = Vec::new();
        let mut rows = Vec::new();
        let mut columns = vec![0; classes.len()];
        for (row, of_row) in keys.chunk_by(|x, y| x.0 == y.0).enumerate() {
            rows.push(of_row.len() as u64);
            for run in of_row.chunk_by(|x, y| x.1 == y.1) {
                let count = run.len() as u64;
                let column = classes.partition_point(|&class| class < run[0].1);
                columns[column] += count;
                cells.push(Cell { row, column, count });
            }
        }
        Ok(Self {
            cells,
            rows,
            columns,
            total: keys.len() as u64,
        })
    }

    /// Whether the two labellings are one partition under two sets of names.
    pub(super) fn is_bijection(&self) -> bool {
        self.cells.len() == self.rows.len() && self.cells.len() == self.columns.len()
    }
}
