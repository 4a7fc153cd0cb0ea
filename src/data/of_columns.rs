//! Some columns of data, in the numbers that it has.

use super::{Data, Dense, Frame, RowKind, Rows, Special, Summary, missing};
use crate::base::error::Result;
use crate::base::float::Float;
use std::ops::Range;

/// Some columns of data, as data of their own: what a family of these columns starts from.
pub(crate) struct OfColumns<'a, F: Float> {
    data: &'a dyn Data<F>,
    /// The coordinates of all columns: their own numbers.
    raw: &'a Frame<F>,
    columns: &'a [usize],
    summary: Summary,
    may_miss: bool,
}

impl<'a, F: Float> OfColumns<'a, F> {
    pub(crate) fn new(data: &'a dyn Data<F>, raw: &'a Frame<F>, columns: &'a [usize]) -> Self {
        let whole = data.summary();
        let select = |values: &[f64]| columns.iter().map(|j| values[*j]).collect();
        Self {
            data,
            raw,
            columns,
            summary: Summary {
                rows: whole.rows,
                total_weight: whole.total_weight,
                mean: select(&whole.mean),
                variance: select(&whole.variance),
                range: columns.iter().map(|j| whole.range[*j]).collect(),
                range_of_few: 0.0,
            },
            may_miss: data.kind() == RowKind::Partial,
        }
    }
}

impl<F: Float> Data<F> for OfColumns<'_, F> {
    #[inline(never)]
    fn special(&self) -> Special<'_> {
        let whole = self.data.special();
        Special {
            cancel: whole.cancel,
            ..Special::named(whole.name)
        }
    }

    fn kind(&self) -> RowKind {
        missing::kind(self.may_miss)
    }

    fn len(&self) -> usize {
        self.data.len()
    }

    fn dim(&self) -> usize {
        self.columns.len()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.data.weights()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    #[inline(never)]
    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        let mut whole = Rows::default();
        self.data.load(rows, self.raw, &mut whole)?;
        *into = whole.of_columns(0..whole.len(), self.columns, frame);
        Ok(())
    }

    #[inline(never)]
    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        let mut whole = Rows::default();
        self.data.gather(rows, self.raw, &mut whole)?;
        *into = whole.of_columns(0..whole.len(), self.columns, frame);
        Ok(())
    }
}

impl<F: Float> Rows<F> {
    /// Some of these rows, which are in the data's own numbers, with some of their columns, in the coordinates of `frame`: as
    /// [`Dense`] data of these columns loads them, bit for bit.
    pub(crate) fn of_columns(
        &self,
        some: Range<usize>,
        columns: &[usize],
        frame: &Frame<F>,
    ) -> Self {
        let may_miss = (self.entries()).is_some_and(|entries| entries.absent.is_unknown());
        let mut values = Vec::with_capacity(some.len() * columns.len());
        let mut rows = Self::default();
        let mut row = vec![F::zero(); self.dim];
        for i in some.clone() {
            row.fill(F::from_f64(f64::NAN));
            self.each_known(i, |j, x| row[j] = x);
            values.extend(columns.iter().map(|j| row[*j]));
        }
        let weights = Some(&self.weights[some.clone()]);
        let block = Dense::of_block(&values, columns.len(), weights, may_miss);
        block.fill(0..some.len(), frame, &mut rows);
        rows
    }
}
