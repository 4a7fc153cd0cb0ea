//! The rows of several sources, one after the other.

use crate::fault::rows_asked_for;
use coremix::data::Source;
use coremix::{Error, Result};
use std::io;

/// The rows of several sources, such as the files of a data set, one after the other: a [`Source`].
#[derive(Debug)]
pub struct Parts<S> {
    parts: Vec<S>,
    /// The row at which each begins, and the number of all.
    starts: Vec<usize>,
    dim: usize,
}

impl<S: Source> Parts<S> {
    /// The rows of these sources, in this order. Sources without rows may have any number of columns.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] where they differ in their numbers of columns; [`Error::Empty`] where there is none.
    pub fn new(parts: Vec<S>) -> Result<Self> {
        let first = parts.iter().find(|part| !part.is_empty()).or(parts.first());
        let dim = first.ok_or(Error::Empty { what: "data" })?.dim();
        let mut starts = vec![0usize];
        for part in &parts {
            if !part.is_empty() && part.dim() != dim {
                return Err(Error::DimensionMismatch {
                    what: "part of the data",
                    expected: dim,
                    found: part.dim(),
                });
            }
            starts.push(starts[starts.len() - 1].saturating_add(part.len()));
        }
        Ok(Self { parts, starts, dim })
    }
}

impl<S: Source> Source for Parts<S> {
    type Element = S::Element;

    fn len(&self) -> usize {
        self.starts[self.parts.len()]
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read(&self, first: usize, out: &mut [S::Element]) -> io::Result<()> {
        let rows = rows_asked_for(first, out.len(), [self.len(), self.dim])?;
        let (mut row, end) = (first, first + rows);
        while row < end {
            let part = self.starts.partition_point(|start| *start <= row) - 1;
            let to = end.min(self.starts[part + 1]);
            let out = &mut out[(row - first) * self.dim..(to - first) * self.dim];
            self.parts[part].read(row - self.starts[part], out)?;
            row = to;
        }
        Ok(())
    }
}
