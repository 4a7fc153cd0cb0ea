//! Rows with a value that is missing: where they are, and the other rows.

use crate::fault::of_rows;
use crate::numbers::Number;
use crate::options::{Missing, Options};
use crate::source::{Made, Rows};
use coremix::Result;
use coremix::data::Source as _;
use std::sync::Arc;

/// The values that are missing in files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Rows with such a value.
    pub rows: usize,
    /// Values that are missing.
    pub values: usize,
    /// The first one, or what else cannot be read: its column, its line or row, and what is wrong.
    pub first: Option<String>,
    /// Columns with a value in some row, and how many rows miss no value, one, two and so on, where they are kept.
    pub(crate) known: Vec<bool>,
    by_count: Vec<usize>,
}

impl Found {
    /// Counts the values that are missing in rows that are kept, of which `empty` columns without any value are left out.
    pub(crate) fn count(&mut self, empty: usize) {
        let some = self.by_count.iter().skip(empty).enumerate();
        self.values = some.map(|(count, rows)| count * rows).sum();
        self.rows = self.by_count.iter().skip(empty + 1).sum();
    }
}

/// The rows that are dropped, in order, if any may be.
pub(crate) type Dropped = Option<Arc<Vec<usize>>>;

/// Rows that are read at once.
const PIECE: usize = 1 << 12;

/// Counts the values that are missing in the columns of rows and weights, if options say so; the rows that are dropped.
pub(crate) fn scan(
    options: &Options,
    open: &dyn Fn(&Options) -> Result<Rows<f64>>,
) -> Result<(Option<Found>, Dropped)> {
    let Some(missing) = options.missing else {
        return Ok((None, None));
    };
    let mut counts = Found::default();
    let mut rows = Vec::new();
    let keeps = missing == Missing::Keep;
    // A weight is never missing: it is read after this.
    let weight = options
        .weight
        .iter()
        .filter(|_| !keeps)
        .map(|column| options.only(column));
    for mut columns in [options.clone()].into_iter().chain(weight) {
        columns.rounded = false;
        let strict = columns.clone();
        columns.lenient = true;
        let source = open(&columns)?;
        let n = source.len();
        let dim = source.dim();
        let mut values = Vec::new();
        let mut known = vec![false; dim];
        counts.by_count.resize(dim + 1, 0);
        for first in (0..n).step_by(PIECE) {
            values.resize(PIECE.min(n - first) * dim, 0.0);
            if let Err(error) = source.read(first, &mut values) {
                if missing == Missing::Count {
                    counts.first.get_or_insert(error.to_string());
                    break;
                }
                return Err(of_rows(&error));
            }
            for (row, values) in values.chunks_exact(dim.max(1)).enumerate() {
                let mut count = 0;
                for (x, known) in values.iter().zip(&mut known) {
                    count += usize::from(x.is_nan());
                    *known |= !x.is_nan();
                }
                if keeps {
                    counts.by_count[count] += 1;
                } else if count > 0 {
                    if counts.first.is_none() {
                        let strict = open(&strict)?;
                        let error = strict.read(first + row, &mut vec![0.0; dim]).err();
                        counts.first = error.map(|error| error.to_string());
                    }
                    counts.values += count;
                    rows.push(first + row);
                }
            }
        }
        // The first ones are the columns of the rows.
        if counts.known.is_empty() {
            counts.known = known;
        }
    }
    rows.sort_unstable();
    rows.dedup();
    if keeps {
        counts.count(0)
    } else {
        counts.rows = rows.len()
    }
    let dropped = (missing == Missing::Drop).then(|| Arc::new(rows));
    Ok((Some(counts), dropped))
}

/// Rows but some.
pub(crate) fn kept<T: Number>(rows: Rows<T>, dropped: &[usize]) -> Rows<T> {
    // For each row that is dropped, how many are kept before it.
    let before: Vec<usize> = dropped.iter().enumerate().map(|(i, row)| row - i).collect();
    let place = move |row: usize| row + before.partition_point(|before| *before <= row);
    let len = rows.len() - dropped.len();
    let dim = rows.dim();
    Made::of([len, dim], false, move |first, out| {
        let mut row = first;
        let end = first + out.len() / dim;
        let mut read = Vec::new();
        while row < end {
            let from = place(row);
            let to = (place(end - 1) + 1).min(from + PIECE);
            read.resize((to - from) * dim, T::default());
            rows.read(from, &mut read)?;
            while row < end && place(row) < to {
                let values = &read[(place(row) - from) * dim..][..dim];
                out[(row - first) * dim..][..dim].copy_from_slice(values);
                row += 1;
            }
        }
        Ok(())
    })
}
