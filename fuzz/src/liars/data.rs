//! A table in memory, with lies.

use coremix::data::{Data, Frame, RowKind, Rows, Summary};
use coremix::ndarray::{Axis, s};
use coremix::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

type Inner = Rows<f64>;

/// A fault of data, from one of its calls on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lie {
    /// The truth.
    None,
    /// This many rows more or fewer in a block.
    Count(isize),
    Untouched,
    /// A number in a row.
    Value(f64),
    /// A weight when a row is loaded.
    Weight(f64),
    /// A weight when it is asked for.
    Asked(f64),
    /// Other rows.
    Shifted,
    /// Another number of rows and columns.
    Shape(usize, usize),
    Summary(usize, f64),
    /// A part without some rows, or with numbers that are none.
    Selected(usize, f64),
    /// Weights of other rows, or of more or fewer.
    Weights(isize),
    /// A row cannot be read.
    Unread,
    Frame(f64),
    /// Rows that have other coordinates.
    Kind(RowKind),
}

/// A table that lies from a certain call on.
#[derive(Debug)]
pub(crate) struct LyingData<'a> {
    inner: &'a Dense<'a, f64>,
    lie: Lie,
    /// The row that is lied about: the first of each block, where it is `None`.
    row: Option<usize>,
    from: usize,
    calls: AtomicUsize,
    summary: Summary,
    /// Weights, when they are asked for.
    asked: Vec<f64>,
}

impl<'a> LyingData<'a> {
    /// A lie about the first row of each block, from this call on.
    pub(crate) fn new(inner: &'a Dense<'a, f64>, lie: Lie, from: usize) -> Self {
        let n = inner.len();
        let mut summary = inner.summary().clone();
        if let Lie::Summary(place, value) = lie {
            match place {
                0 => summary.mean[0] = value,
                1 => summary.variance[0] = value,
                2 => summary.range[0] = (value, -value),
                3 => summary.total_weight = value,
                4 => summary.rows = value as usize,
                5 => drop(summary.mean.pop()),
                6 => drop(summary.variance.pop()),
                _ => summary.range.push((0.0, value)),
            }
        }
        let mut asked: Vec<f64> = match inner.weights() {
            Some(weights) => weights.to_vec(),
            None => vec![1.0; n],
        };
        match lie {
            Lie::Asked(value) => asked[0] = value,
            Lie::Weights(by) => asked.resize(n.saturating_add_signed(by), 1.0),
            _ => (),
        }
        Self {
            inner,
            lie,
            row: None,
            from,
            calls: AtomicUsize::new(0),
            summary,
            asked,
        }
    }

    /// The lie about this row alone, and the blocks that have it.
    pub(crate) fn about(self, row: usize) -> Self {
        Self {
            row: Some(row),
            ..self
        }
    }

    /// Whether its summary is wrong in what nobody can check without all rows, for a value outside of its range as well, or
    /// its frame is: then others may be blamed.
    pub(crate) fn is_subtle(&self) -> bool {
        matches!(self.lie, Lie::Summary(..) | Lie::Frame(_) | Lie::Shifted)
            || matches!(self.lie, Lie::Value(value) if value.is_finite())
    }

    /// The lie, from some call on.
    fn lie(&self) -> Option<Lie> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        (calls >= self.from).then_some(self.lie)
    }

    fn fill(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Inner) -> Result<()> {
        let place = match self.row {
            Some(about) => rows.iter().position(|row| *row == about),
            None => Some(0),
        };
        let lie = self.lie().filter(|_| place.is_some());
        let count = match lie {
            Some(Lie::Untouched) => return Ok(()),
            Some(Lie::Unread) => return Err(Error::Empty { what: "file" }),
            Some(Lie::Count(by)) => rows.len().saturating_add_signed(by),
            _ => rows.len(),
        };
        let n = self.inner.len();
        let row = |i: usize| match lie {
            Some(Lie::Shifted) => (rows[i % rows.len()] + 1) % n,
            _ => rows[i % rows.len()] % n,
        };
        let weight = |i: usize| match lie {
            Some(Lie::Weight(value)) if Some(i) == place => value,
            _ => (self.inner.weights()).map_or(1.0, |weights| weights[row(i)]),
        };
        let count = if rows.is_empty() { 0 } else { count };
        into.fill(frame, (0..count).map(weight), |i, out| {
            let points = self.inner.points();
            let numbers = points.row(row(i));
            out.iter_mut().zip(numbers).for_each(|(out, x)| *out = *x);
            if let Some(Lie::Value(value)) = lie
                && Some(i) == place
                && let Some(first) = out.first_mut()
            {
                *first = value;
            }
            Ok(())
        })
    }
}

impl Data<f64> for LyingData<'_> {
    fn len(&self) -> usize {
        match self.lie {
            Lie::Shape(rows, _) if self.lie().is_some() => rows,
            _ => self.inner.len(),
        }
    }

    fn dim(&self) -> usize {
        match self.lie {
            Lie::Shape(_, columns) if self.lie().is_some() => columns,
            _ => self.inner.dim(),
        }
    }

    fn weights(&self) -> Option<&[f64]> {
        match self.lie {
            Lie::Asked(_) | Lie::Weights(_) if self.lie().is_some() => Some(&self.asked),
            _ => self.inner.weights(),
        }
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn frame(&self) -> Frame<f64> {
        let Lie::Frame(value) = self.lie else {
            return self.inner.frame();
        };
        let mut summary = self.inner.summary().clone();
        match value.is_finite() {
            true => summary.range.iter_mut().for_each(|r| *r = (value, value)),
            false => {
                let columns = summary.mean.len() + 1;
                summary.mean = vec![0.0; columns];
                summary.variance = vec![1.0; columns];
                summary.range = vec![(0.0, 1.0); columns];
            }
        }
        Frame::of(&summary)
    }

    fn kind(&self) -> RowKind {
        match self.lie {
            Lie::Kind(kind) if self.lie().is_some() => kind,
            _ => RowKind::Dense,
        }
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<f64>, into: &mut Inner) -> Result<()> {
        self.fill(&rows.collect::<Vec<_>>(), frame, into)
    }

    fn gather(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Inner) -> Result<()> {
        self.fill(rows, frame, into)
    }

    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<f64> + '_>> {
        let n = self.inner.len();
        let mut rows: Vec<usize> = rows.iter().map(|row| row % n).collect();
        let mut weights = weights;
        let lie = self.lie();
        if let Some(Lie::Selected(0, _)) = lie {
            rows.pop();
            weights.pop();
        }
        if let (Some(Lie::Selected(1, value)), Some(first)) = (lie, weights.first_mut()) {
            *first = value;
        }
        let mut values = self.inner.points().select(Axis(0), &rows);
        if let (Some(Lie::Selected(2, value)), Some(first)) = (lie, values.first_mut()) {
            *first = value;
        }
        if let Some(Lie::Selected(3, _)) = lie {
            values = values.slice_move(s![.., 1..]);
        }
        Ok(Box::new(Dense::part_of(&self.summary, values, weights)?))
    }
}
