//! Rows to ask a model about that are read once.

use coremix::data::{Data, Frame, Rows, Source, Special, Summary};
use coremix::{Element, Error, Float, Result};
use std::ops::Range;

/// Rows of a source that are checked when they are loaded, and not before: nothing else is asked of them than by a model, so
/// that a pass over all rows is saved.
pub(crate) struct Asked<'a, F: Float + Element> {
    source: Box<dyn Source<Element = F> + 'a>,
    weights: Option<Vec<f64>>,
    /// No model asks for it.
    none: Summary,
}

impl<'a, F: Float + Element> Asked<'a, F> {
    pub(crate) fn new(
        source: Box<dyn Source<Element = F> + 'a>,
        weights: Option<Vec<f64>>,
    ) -> Self {
        let none = Summary::default();
        Self {
            source,
            weights,
            none,
        }
    }

    fn fill(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        values: &[F],
        frame: &Frame<F>,
        into: &mut Rows<F>,
    ) -> Result<()> {
        let dim = self.source.dim();
        let numbers = rows.clone();
        let numbers: Vec<usize> = numbers.collect();
        let weights = self.weights.as_deref();
        let weights = rows.map(|row| weights.map_or(1.0, |weights| weights[row]));
        into.fill(frame, weights, |i, out| {
            out.copy_from_slice(&values[i * dim..][..dim]);
            let within = |x: &F| x.to_f64().abs() <= F::LIMIT;
            match out.iter().position(|x| !within(x)) {
                None => Ok(()),
                Some(column) => Err(Error::TooLarge {
                    what: "data",
                    row: numbers[i],
                    column,
                    value: out[column].to_f64(),
                    limit: F::LIMIT,
                }),
            }
        })
    }

    fn read(&self, first: usize, out: &mut [F]) -> Result<()> {
        self.source.read(first, out).map_err(|error| Error::Stage {
            stage: self.source.name(),
            what: error.to_string(),
        })
    }
}

impl<F: Float + Element> Data<F> for Asked<'_, F> {
    fn special(&self) -> Special<'_> {
        Special::named(self.source.name())
    }

    fn len(&self) -> usize {
        self.source.len()
    }

    fn dim(&self) -> usize {
        self.source.dim()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn summary(&self) -> &Summary {
        &self.none
    }

    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        let mut values = vec![F::default(); rows.len() * self.dim()];
        self.read(rows.start, &mut values)?;
        self.fill(rows, &values, frame, into)
    }

    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        let dim = self.dim();
        let mut values = vec![F::default(); rows.len() * dim];
        for (row, out) in rows.iter().zip(values.chunks_exact_mut(dim.max(1))) {
            self.read(*row, out)?;
        }
        self.fill(rows.iter().copied(), &values, frame, into)
    }
}
