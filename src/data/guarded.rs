//! Data as it enters a fit: its answers and rows are checked here, and nowhere else.

use super::{Data, Directions, Frame, RowKind, Rows, Special, Summary, missing, weight_of};
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, ensure, same_length, sound_total, sound_weight};
use crate::base::float::Float;
use crate::base::parallel::BLOCK;
use std::borrow::Cow;
use std::ops::Range;

/// The rows of a fit or a prediction: every block is as it must be, or an error. Once the fit is cancelled there are no more.
pub(crate) struct Guarded<'a, F: Float> {
    data: Rowset<'a, F>,
    /// Name of the data, also after a part of it was selected.
    name: &'static str,
    kind: RowKind,
    weights: Option<Cow<'a, [f64]>>,
    len: usize,
    dim: usize,
    /// The summary of rows of length 1, if these are to be fitted.
    directions: Option<Summary>,
    cancel: Cancel,
}

enum Rowset<'a, F: Float> {
    Borrowed(&'a dyn Data<F>),
    Selected(Box<dyn Data<F> + 'a>),
}

impl<'a, F: Float> Guarded<'a, F> {
    /// Data that has rows.
    pub(crate) fn new(data: &'a dyn Data<F>, cancel: Option<&Cancel>) -> Result<Self> {
        let len = data.len();
        let dim = data.dim();
        ensure(len > 0 && dim > 0, || Error::Empty { what: "data" })?;
        let weights = data.weights();
        same_length("weights", len, weights.map_or(len, <[f64]>::len))?;
        let mut numbered = weights.into_iter().flatten().enumerate();
        numbered.try_for_each(|(n, weight)| sound_weight(n, *weight))?;
        Ok(Self {
            data: Rowset::Borrowed(data),
            name: data.name(),
            kind: data.kind(),
            weights: weights.map(Cow::Borrowed),
            len,
            dim,
            directions: None,
            cancel: cancel.or(data.cancel()).cloned().unwrap_or_default(),
        })
    }

    /// Data to fit: its weights and its summary are checked, too.
    pub(crate) fn to_fit(
        data: &'a dyn Data<F>,
        cancel: Option<&Cancel>,
        directions: bool,
    ) -> Result<Self> {
        let mut checked = Self::new(data, cancel)?;
        let summary = data.summary();
        let frame = data.frame().dim();
        let dim = checked.dim;
        let columns = [&summary.mean, &summary.variance].map(Vec::len);
        if columns != [dim; 2] || summary.range.len() != dim || frame != dim {
            return checked.wrong(format!(
                "the summary is not about {dim} coordinates: it needs a mean, a variance and a range of each"
            ));
        }
        if data.is_ragged() {
            missing::check(summary)?;
        }
        let ranges = summary.range.iter().flat_map(|(low, high)| [low, high]);
        let mut numbers = summary.mean.iter().chain(&summary.variance).chain(ranges);
        if !numbers.all(|x| x.is_finite()) {
            return checked
                .wrong("the summary is not finite: means, variances and ranges must be".into());
        }
        sound_total(summary.total_weight)?;
        let mut rows = checked.len;
        if let Some(weights) = &checked.weights {
            rows = weights.iter().filter(|weight| **weight > 0.0).count();
        }
        if summary.rows != rows {
            let summed = summary.rows;
            return checked.wrong(format!(
                "the summary has {summed} rows of positive weight, the data {rows}: make it from these weights"
            ));
        }
        if directions {
            checked.directions = Some(Summary::of_directions(data)?)
        } else {
            checked.check_outliers()?
        }
        Ok(checked)
    }

    /// Whether squared differences of most rows are numbers of the type, in a unit in which the widest range is 1.
    fn check_outliers(&self) -> Result<()> {
        let few = self.summary().range_of_few;
        let widest = self.summary().widest_range();
        let least = (2f64.powi(-F::MAX_EXPONENT) / F::EPSILON).sqrt();
        if few >= least * widest || few <= 0.0 {
            return Ok(());
        }
        let frame = self.frame();
        let mut rows = Rows::default();
        let mut farthest = (0, 0.0);
        for first in (0..self.len).step_by(BLOCK) {
            self.load(first..self.len.min(first + BLOCK), &frame, &mut rows)?;
            for i in (0..rows.len()).filter(|i| rows.weight(*i) > 0.0) {
                let sizes = rows.row(i).iter().map(|z| z.to_f64().abs());
                let size = sizes.fold(0.0, f64::max);
                if size > farthest.1 {
                    farthest = (first + i, size);
                }
            }
        }
        Err(Error::TooFar {
            row: farthest.0,
            distance: widest,
            others: few,
        })
    }

    fn wrong<T>(&self, what: String) -> Result<T> {
        Err(Error::stage(self.name, what))
    }

    /// An error of the data; `number` tells which row of the data a row of the block is.
    fn located(&self, error: Error, number: impl Fn(usize) -> usize) -> Error {
        match error {
            Error::NotFinite { row, column, .. } => {
                let what = format!(
                    "row {}: a value is NaN or infinite, in column {column}",
                    number(row)
                );
                Error::stage(self.name, what)
            }
            other => other,
        }
    }

    fn data(&self) -> &dyn Data<F> {
        match &self.data {
            Rowset::Borrowed(data) => *data,
            Rowset::Selected(data) => &**data,
        }
    }

    fn load_checked(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        frame: &Frame<F>,
        into: &mut Rows<F>,
        load: impl FnOnce(&dyn Data<F>, &mut Rows<F>) -> Result<()>,
    ) -> Result<()> {
        self.cancel.check()?;
        // Rows of an earlier load must not remain; their memory may.
        into.weights.clear();
        let of_block = |i: usize| rows.clone().nth(i).unwrap_or_default();
        load(self.data(), into).map_err(|error| self.located(error, of_block))?;
        let expected = rows.len();
        let loaded = into.len();
        if loaded != expected {
            let first = of_block(0);
            return self.wrong(format!(
                "{loaded} rows in a block of {expected}, from row {first} on: load as many as asked for"
            ));
        }
        if into.dim != frame.dim() {
            let loaded = into.dim;
            let expected = frame.dim();
            return self.wrong(format!(
                "row {}: {loaded} coordinates, but {expected} expected",
                of_block(0)
            ));
        }
        let as_said = match into.entries() {
            // Zeros are other numbers in some frames: there sparse rows are dense.
            None => self.kind != RowKind::Partial,
            Some(entries) => self.kind.absent() == Some(entries.absent),
        };
        if !as_said {
            let first = of_block(0);
            let kind = self.kind;
            return self.wrong(format!(
                "row {first} is loaded with other coordinates than those of {kind:?} rows, which the data says it has"
            ));
        }
        let weights = into.weights.iter();
        let mut pairs = rows.clone().zip(&into.weights);
        // No branch for each row: rows may be so short that it would take as long as to load them.
        let sound = match self.weights() {
            None => weights.fold(true, |sound, w| sound & (*w == 1.0)),
            Some(known) => (pairs.clone()).fold(true, |sound, (row, w)| sound & (*w == known[row])),
        };
        if sound {
            return Ok(());
        }
        let other = pairs.find(|(row, weight)| **weight != weight_of(self.weights(), *row));
        other.map_or(Ok(()), |(row, weight)| {
            let known = weight_of(self.weights(), row);
            self.wrong(format!(
                "row {row} is loaded with weight {weight}: it must be {known}"
            ))
        })
    }
}

/// A summary that is known already.
impl Directions for Summary {
    fn sum_up(&self) -> Result<Summary> {
        Ok(self.clone())
    }
}

impl<F: Float> Data<F> for Guarded<'_, F> {
    fn kind(&self) -> RowKind {
        self.kind
    }

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn summary(&self) -> &Summary {
        let directions = self.directions.as_ref();
        directions.unwrap_or_else(|| self.data().summary())
    }

    #[inline(never)]
    fn frame(&self) -> Frame<F> {
        match &self.directions {
            Some(directions) => Frame::sphere(self.dim).with_mean(&directions.mean),
            None => self.data().frame(),
        }
    }

    #[inline(never)]
    fn special(&self) -> Special<'_> {
        let directions = self
            .directions
            .as_ref()
            .map(|summary| summary as &dyn Directions);
        let special = self.data().special();
        Special {
            name: self.name,
            cancel: Some(&self.cancel),
            directions: directions.or(special.directions),
            ..special
        }
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.load_checked(rows.clone(), frame, into, |data, into| {
            data.load(rows, frame, into)
        })
    }

    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.load_checked(rows.iter().copied(), frame, into, |data, into| {
            data.gather(rows, frame, into)
        })
    }

    #[inline(never)]
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>> {
        self.cancel.check()?;
        let selected = self.data().select(rows, weights.clone());
        let selected = selected.map_err(|error| self.located(error, |row| row))?;
        let len = selected.len();
        let dim = selected.dim();
        if (len, dim) != (rows.len(), self.dim) || selected.weights() != Some(&weights) {
            let expected = rows.len();
            let columns = self.dim;
            return self.wrong(format!(
                "{expected} rows of {columns} coordinates selected: it must have as many, with the weights given, but has {len} of {dim}, \
                 or other weights"
            ));
        }
        Ok(Box::new(Guarded {
            kind: selected.kind(),
            data: Rowset::Selected(selected),
            name: self.name,
            directions: self
                .directions
                .as_ref()
                .map(|directions| directions.reweighted(&weights)),
            weights: Some(Cow::Owned(weights)),
            len,
            dim,
            cancel: self.cancel.clone(),
        }))
    }
}
