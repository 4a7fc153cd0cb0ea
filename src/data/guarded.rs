//! Data as the crate reads it: a cancelled fit reads no further row, and what data from outside gives is checked here, before
//! anyone computes with it.

use super::{Data, Frame, Rows, Summary};
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, sound_total, sound_weight};
use crate::base::float::Float;
use std::ops::Range;

/// Data behind a flag, and behind checks where it does not say that it [was checked](Data::is_checked).
pub(crate) struct Guarded<'a, F: Float> {
    data: Inner<'a, F>,
    /// The shape that was found at first: another one later is an error.
    len: usize,
    dim: usize,
    cancel: Cancel,
}

enum Inner<'a, F: Float> {
    Borrowed(&'a dyn Data<F>),
    Selected(Box<dyn Data<F> + 'a>),
}

impl<'a, F: Float> Guarded<'a, F> {
    /// All rows under this flag. Without rows it is an error: whoever has an answer about none does not come here.
    pub(crate) fn new(data: &'a dyn Data<F>, cancel: &Cancel) -> Result<Self> {
        let (len, dim) = (data.len(), data.dim());
        if len == 0 || dim == 0 {
            return Err(Error::Empty { what: "data" });
        }
        if !data.is_checked() {
            check_totals(data, len, dim)?;
        }
        Ok(Self {
            data: Inner::Borrowed(data),
            len,
            dim,
            cancel: cancel.clone(),
        })
    }

    fn inner(&self) -> &dyn Data<F> {
        match &self.data {
            Inner::Borrowed(data) => *data,
            Inner::Selected(data) => &**data,
        }
    }

    fn fault<T>(&self, what: String) -> Result<T> {
        Err(Error::stage(self.inner().name(), what))
    }

    /// Whether a block has these rows, with finite values and the weights that are known.
    fn check(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        frame: &Frame<F>,
        block: &Rows<F>,
    ) -> Result<()> {
        let (expected, found) = (rows.len(), block.len());
        if found != expected {
            let first = rows.min().unwrap_or(0);
            return self.fault(format!(
                "{found} rows in a block of {expected}, from row {first} on: load as many as asked for"
            ));
        }
        if let Some((i, what)) = block.unsound(frame) {
            let row = rows.clone().nth(i).unwrap_or(0);
            return self.fault(format!("row {row}: {what}"));
        }
        for (i, row) in rows.enumerate() {
            let (found, known) = (block.weight(i), self.weight(row));
            if found != known {
                return self.fault(format!(
                    "row {row} is loaded with weight {found}: it must be {known}"
                ));
            }
        }
        Ok(())
    }
}

/// Whether weights and summary of data from outside are sound, and about the same rows.
fn check_totals<F: Float>(data: &dyn Data<F>, len: usize, dim: usize) -> Result<()> {
    for row in 0..len {
        sound_weight(row, data.weight(row))?;
    }
    let error = |what: String| Err(Error::stage(data.name(), what));
    let summary = data.summary();
    let columns = [&summary.mean, &summary.variance].map(Vec::len);
    if columns != [dim; 2] || summary.range.len() != dim {
        return error(format!(
            "the summary is not about {dim} coordinates: it needs a mean, a variance and a range of each"
        ));
    }
    let ranges = summary.range.iter().flat_map(|(low, high)| [low, high]);
    let mut numbers = summary.mean.iter().chain(&summary.variance).chain(ranges);
    if !numbers.all(|x| x.is_finite()) {
        return error("the summary is not finite: means, variances and ranges must be".into());
    }
    sound_total(summary.total_weight)?;
    let rows = (0..len).filter(|&n| data.weight(n) > 0.0).count();
    if rows != summary.rows {
        let found = summary.rows;
        return error(format!(
            "the summary has {found} rows of positive weight, the data {rows}: make it from these weights"
        ));
    }
    Ok(())
}

impl<F: Float> Data<F> for Guarded<'_, F> {
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn is_checked(&self) -> bool {
        self.inner().is_checked()
    }

    fn is_sparse(&self) -> bool {
        self.inner().is_sparse()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn weight(&self, n: usize) -> f64 {
        self.inner().weight(n)
    }

    fn summary(&self) -> &Summary {
        self.inner().summary()
    }

    fn frame(&self) -> Result<Frame<F>> {
        let frame = self.inner().frame()?;
        let (found, expected) = (frame.dim(), self.dim);
        match found == expected {
            true => Ok(frame),
            false => self.fault(format!(
                "a frame of {found} coordinates: it must have {expected}"
            )),
        }
    }

    fn check(&self, frame: &Frame<F>) -> Result<()> {
        self.inner().check(frame)
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.cancel.check()?;
        if self.is_checked() {
            return self.inner().load(rows, frame, into);
        }
        // Rows of an earlier load must not remain.
        into.blank(0, frame);
        self.inner().load(rows.clone(), frame, into)?;
        Guarded::check(self, rows, frame, into)
    }

    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.cancel.check()?;
        if self.is_checked() {
            return self.inner().gather(rows, frame, into);
        }
        into.blank(0, frame);
        self.inner().gather(rows, frame, into)?;
        Guarded::check(self, rows.iter().copied(), frame, into)
    }

    fn distances_from(
        &self,
        rows: Range<usize>,
        frame: &Frame<F>,
        centre: &[F],
        out: &mut [F],
    ) -> Result<()> {
        self.cancel.check()?;
        if self.is_checked() {
            return self.inner().distances_from(rows, frame, centre, out);
        }
        let mut block = Rows::default();
        self.load(rows, frame, &mut block)?;
        block.distances_from(centre, out);
        Ok(())
    }

    fn residual(&self) -> f64 {
        self.inner().residual()
    }

    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>> {
        self.cancel.check()?;
        let selected = self.inner().select(rows, weights.clone())?;
        let (len, dim) = (selected.len(), selected.dim());
        let same = |n: usize| selected.weight(n) == weights[n];
        if len != rows.len() || dim != self.dim || !(0..len).all(same) {
            let (expected, of) = (rows.len(), self.dim);
            return self.fault(format!(
                "{expected} rows of {of} coordinates selected: it must have as many, with the weights given, but has {len} of {dim}, \
                 or other weights"
            ));
        }
        Ok(Box::new(Guarded {
            data: Inner::Selected(selected),
            len,
            dim,
            cancel: self.cancel.clone(),
        }))
    }
}
