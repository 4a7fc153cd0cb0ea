//! Sparse rows of files: the lists of what is not 0 are in memory, the zeros never.

use crate::fault::{invalid, rows_asked_for};
use crate::numbers::Number;
use crate::source::Rows;
use coremix::Float;
use coremix::data::{Lists, Source};
use std::io;

/// Rows (n, d) in compressed form, as [`Sparse`](coremix::data::Sparse) takes them.
pub(crate) struct SparseRows<T: Number> {
    dim: usize,
    /// (n + 1).
    starts: Vec<usize>,
    ids: Vec<u32>,
    values: Vec<T::Float>,
    /// Values, at most.
    most: usize,
}

impl<T: Number> SparseRows<T> {
    /// No rows yet, of this number of columns.
    pub(crate) fn new(dim: usize) -> Self {
        Self {
            dim,
            starts: vec![0],
            ids: Vec::new(),
            values: Vec::new(),
            most: usize::MAX,
        }
    }

    /// At most as many values as have room in a limit of memory while lists grow.
    pub(crate) fn within(self, memory: Option<u64>) -> Self {
        // A list that grows is there three times, at its old length and at twice that.
        let each = 3 * (size_of::<u32>() + size_of::<T::Float>()) as u64;
        let most = memory.map_or(usize::MAX, |memory| (memory / each) as usize);
        Self { most, ..self }
    }

    /// Adds a row: its columns, in any order, and their values. Several of one column are added up.
    pub(crate) fn push(&mut self, row: &mut [(u32, f64)]) -> io::Result<()> {
        row.sort_by_key(|entry| entry.0);
        if let Some((id, _)) = row.last().filter(|last| last.0 as usize >= self.dim) {
            let what = format!("has a value in column {id}, and {} columns", self.dim);
            return Err(invalid(what));
        }
        for alike in row.chunk_by(|a, b| a.0 == b.0) {
            self.ids.push(alike[0].0);
            let sum = alike.iter().map(|entry| entry.1).sum();
            self.values.push(T::Float::from_f64(sum));
        }
        self.starts.push(self.ids.len());
        if self.ids.len() > self.most {
            Err(invalid(
                "does not fit in memory with those before: allow more",
            ))
        } else {
            Ok(())
        }
    }

    /// All rows of several files, in their order, if all are sparse: `dim` columns each, unless there are no rows.
    pub(crate) fn join(dim: usize, parts: &[Rows<T>]) -> Option<Self> {
        let mut joined = Self::new(dim);
        for part in parts {
            let (starts, ids, values) = part.lists()?;
            let before = joined.ids.len();
            joined
                .starts
                .extend(starts.iter().skip(1).map(|start| before + start));
            joined.ids.extend_from_slice(ids);
            joined.values.extend_from_slice(values);
        }
        Some(joined)
    }
}

impl<T: Number> Source for SparseRows<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn lists(&self) -> Option<Lists<'_, T>> {
        Some((&self.starts, &self.ids, &self.values))
    }

    /// With their zeros.
    fn read(&self, first: usize, out: &mut [T]) -> io::Result<()> {
        rows_asked_for(first, out.len(), [self.len(), self.dim])?;
        for (row, out) in (first..).zip(out.chunks_exact_mut(self.dim.max(1))) {
            out.fill(T::default());
            let places = self.starts[row]..self.starts[row + 1];
            for (&j, x) in self.ids[places.clone()].iter().zip(&self.values[places]) {
                out[j as usize] = T::nearest(x.to_f64());
            }
        }
        Ok(())
    }
}
