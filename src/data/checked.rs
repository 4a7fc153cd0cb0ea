//! Data from outside: what it says and what it loads is checked before anyone computes with it.

use super::{Data, Frame, Rows, Summary};
use crate::base::error::{Error, Result, sound_total, sound_weight};
use crate::base::float::Float;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Data that may break its rules. A block that does is replaced by rows that do no harm, and the fault is kept: whoever
/// computed with it asks for the [`result`](Self::result) at the end, and what was computed does not count.
pub(crate) struct Checked<'a, F: Float> {
    data: Wrapped<'a, F>,
    /// The shape that it must have.
    len: usize,
    dim: usize,
    /// Whether it has another one: then it is asked for nothing.
    misshapen: bool,
    faults: Arc<Faults>,
}

enum Wrapped<'a, F: Float> {
    Borrowed(&'a dyn Data<F>),
    Selected(Box<dyn Data<F> + 'a>),
}

struct Faults {
    stage: &'static str,
    any: Arc<AtomicBool>,
    /// That of the lowest row, whatever the order in which blocks are loaded.
    first: Mutex<Option<(usize, String)>>,
}

impl Faults {
    fn note(&self, row: usize, what: String) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(known, _)| row < *known) {
            *first = Some((row, what));
        }
        self.any.store(true, Ordering::Relaxed);
    }
}

impl<'a, F: Float> Checked<'a, F> {
    /// The data with its blocks checked; `None` where that is not needed. Without rows it is an error: whoever has an
    /// answer about none does not come here.
    pub(crate) fn unless_known(data: &'a dyn Data<F>) -> Result<Option<Self>> {
        let (len, dim) = (data.len(), data.dim());
        if len == 0 || dim == 0 {
            return Err(Error::Empty { what: "data" });
        }
        if data.is_checked() {
            return Ok(None);
        }
        for row in 0..len {
            sound_weight(row, data.weight(row))?;
        }
        let faults = Faults {
            stage: data.name(),
            any: Arc::default(),
            first: Mutex::default(),
        };
        let error = |what: String| Err(Error::stage(faults.stage, what));
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
        Ok(Some(Self {
            data: Wrapped::Borrowed(data),
            len,
            dim,
            misshapen: false,
            faults: Arc::new(faults),
        }))
    }

    /// Set as soon as there is a fault.
    pub(crate) fn fault(&self) -> Arc<AtomicBool> {
        self.faults.any.clone()
    }

    /// The fault, if there was one.
    pub(crate) fn result(&self) -> Result<()> {
        let first = self.faults.first.lock();
        let first = first.unwrap_or_else(PoisonError::into_inner);
        let error = |what: &String| Err(Error::stage(self.faults.stage, what.clone()));
        first.as_ref().map_or(Ok(()), |(_, what)| error(what))
    }

    fn data(&self) -> &dyn Data<F> {
        match &self.data {
            Wrapped::Borrowed(data) => *data,
            Wrapped::Selected(data) => &**data,
        }
    }

    /// Loads rows by `load`, and checks them.
    fn load_checked(
        &self,
        numbers: impl ExactSizeIterator<Item = usize> + Clone,
        frame: &Frame<F>,
        into: &mut Rows<F>,
        load: impl FnOnce(&mut Rows<F>),
    ) {
        // Rows of an earlier load must not remain.
        into.blank(0, frame);
        if !self.misshapen {
            load(into);
        }
        let (expected, found) = (numbers.len(), into.len());
        let first = numbers.clone().min().unwrap_or(0);
        let fault = if found != expected {
            Some((
                first,
                format!(
                    "{found} rows in a block of {expected}, from row {first} on: load as many as asked for"
                ),
            ))
        } else if let Some((i, what)) = into.unsound(frame) {
            let row = numbers.clone().nth(i).unwrap_or(first);
            let what = self.data().fault(row).unwrap_or(what);
            Some((row, format!("row {row}: {what}")))
        } else {
            let mut weights = numbers.enumerate().map(|(i, row)| (row, into.weight(i)));
            let other = weights.find(|(row, weight)| self.weight(*row) != *weight);
            other.map(|(row, weight)| {
                let known = self.weight(row);
                (
                    row,
                    format!("row {row} is loaded with weight {weight}: it must be {known}"),
                )
            })
        };
        if let Some((row, what)) = fault {
            self.faults.note(row, what);
            into.blank(expected, frame);
        }
    }
}

impl<F: Float> Data<F> for Checked<'_, F> {
    fn name(&self) -> &'static str {
        self.faults.stage
    }

    fn is_checked(&self) -> bool {
        true
    }

    fn is_sparse(&self) -> bool {
        self.data().is_sparse()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn weight(&self, n: usize) -> f64 {
        match self.misshapen {
            true => 1.0,
            false => self.data().weight(n),
        }
    }

    fn summary(&self) -> &Summary {
        self.data().summary()
    }

    fn frame(&self) -> Frame<F> {
        let frame = self.data().frame();
        if frame.dim() == self.dim {
            return frame;
        }
        let (found, expected) = (frame.dim(), self.dim);
        self.faults.note(
            0,
            format!("a frame of {found} coordinates: it must have {expected}"),
        );
        Frame::of(self.summary())
    }

    fn check(&self, frame: &Frame<F>) -> Result<()> {
        self.data().check(frame)
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) {
        let load = |into: &mut Rows<F>| self.data().load(rows.clone(), frame, into);
        self.load_checked(rows.clone(), frame, into, load);
    }

    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) {
        let load = |into: &mut Rows<F>| self.data().gather(rows, frame, into);
        self.load_checked(rows.iter().copied(), frame, into, load);
    }

    fn distances_from(&self, rows: Range<usize>, frame: &Frame<F>, centre: &[F], out: &mut [F]) {
        // What it leaves alone is a fault as well.
        out.fill(F::from_f64(f64::NAN));
        if !self.misshapen {
            self.data().distances_from(rows.clone(), frame, centre, out);
        }
        if let Some(i) = out.iter().position(|squared| !squared.is_finite()) {
            let row = rows.start + i;
            let what = self.data().fault(row);
            let what = what.unwrap_or_else(|| "its distance is not finite: it must be".into());
            self.faults.note(row, format!("row {row}: {what}"));
            out.fill(F::from_f64(0.0));
        }
    }

    fn residual(&self) -> f64 {
        self.data().residual()
    }

    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Box<dyn Data<F> + '_> {
        let selected = self.data().select(rows, weights.clone());
        let (len, dim) = (selected.len(), selected.dim());
        let same = |n: usize| selected.weight(n) == weights[n];
        let misshapen = len != rows.len() || dim != self.dim || !(0..len).all(same);
        if misshapen {
            let (expected, of) = (rows.len(), self.dim);
            let what = format!(
                "{expected} rows of {of} coordinates selected: it must have as many, with the weights given, but has {len} of {dim}, \
                 or other weights"
            );
            self.faults.note(0, what);
        } else if selected.is_checked() {
            return selected;
        } else {
            // Here, where the numbers of the rows are known.
            let mut faults = rows.iter().map(|&row| (row, self.data().fault(row)));
            if let Some((row, Some(what))) = faults.find(|(_, what)| what.is_some()) {
                self.faults.note(row, format!("row {row}: {what}"));
            }
        }
        Box::new(Checked {
            data: Wrapped::Selected(selected),
            len: rows.len(),
            dim: self.dim,
            misshapen,
            faults: self.faults.clone(),
        })
    }
}
