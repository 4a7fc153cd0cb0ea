//! Sparsified rows: a few coordinates of each, after a preconditioner that makes all coordinates alike.

use super::{Data, RowKind, Special, Summary, weight_of};
use crate::base::error::{Error, Result, ensure};
use crate::base::float::Float;
use crate::rows::{Basis, Frame, Rows, clamped};
use ndarray::{Array2, ArrayView2};
use std::ops::Range;
use std::sync::Arc;

/// Points of which only a few coordinates are kept: q of P preconditioned ones, another choice for every row
/// ([E27](crate::equations#e27); \[SG\]).
///
/// A row $y$ goes through an orthonormal [`Basis`], $y \mapsto H D y$, which spreads what it knows evenly over all
/// coordinates. Then q of them are kept, chosen at random, and the row can be dropped: memory is O(n q), whatever P is,
/// and so is the time of an iteration. Coordinates are kept in `F`, relative to those of the first row that counts: a
/// far-off origin costs nothing, unless that row is as far from all others.
///
/// Everything that works on [`Dense`](super::Dense) works on a sketch:
///
/// - Distances and densities are over the q coordinates that a row knows, and never rescaled; a quantization error is, by
///   P/q, which makes it an estimate of that of the rows ([E28](crate::equations#e28)).
/// - A coordinate that a seed does not know is the mean over the rows that know it, or over all rows where none does. A
///   component of which no row knows a coordinate keeps its value there.
/// - Means, and centres given as seeds, are in the data's own columns and unit. A model fitted on a sketch predicts and
///   scores `Dense` rows too, and any other sketch with the same seed.
///
/// Same rows, same seed: the same sketch, whether the rows come at once or in blocks, on any number of threads. The
/// seed of a fit is another one.
///
/// ```
/// use coremix::prelude::*;
/// use coremix::{algorithms, datasets::Birch};
///
/// let birch = Birch::grid(100).generate::<f64>(1)?;
/// let sketch = Sketch::new(birch.points.view(), 1, 42)?; // one of the two coordinates of each point
/// let fit = algorithms::k_means(25).seed(1).build()?.fit(&sketch)?;
/// assert_eq!(fit.model.means().dim(), (25, 2)); // in the data's own columns
/// let labels = fit.model.predict(&Dense::new(birch.points.view())?)?;
/// # assert_eq!(labels.len(), 2_500);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketch<F> {
    pub(super) basis: Basis,
    /// The offset of the frame (P), which was subtracted from all entries.
    pub(super) pivot: Arc<[f64]>,
    /// Coordinates kept per row, q.
    pub(super) entries: usize,
    /// (n, q): which, ascending.
    pub(super) ids: Vec<u32>,
    /// (n, q): the coordinates less the offset.
    pub(super) values: Vec<F>,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) summary: Summary,
}

impl<F: Float> Sketch<F> {
    /// The coordinates that were chosen from.
    #[must_use]
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// Which coordinates each row keeps: (n, q), ascending in each row.
    #[must_use]
    pub fn indices(&self) -> ArrayView2<'_, u32> {
        ArrayView2::from_shape((self.len(), self.entries), &self.ids).expect("n x q numbers")
    }

    /// Their values: (n, q), in the unit of the data.
    #[must_use]
    pub fn values(&self) -> Array2<f64> {
        let places = self.ids.iter().zip(&self.values);
        let values = places.map(|(&j, x)| self.pivot[j as usize] + x.to_f64());
        Array2::from_shape_vec((self.len(), self.entries), values.collect()).expect("n x q numbers")
    }

    fn fill(
        &self,
        rows: impl ExactSizeIterator<Item = usize>,
        frame: &Frame<F>,
        into: &mut Rows<F>,
    ) {
        let most = Frame::most();
        let enter = |j: u32, x: F| clamped(x * frame.scale[j as usize], most);
        let shift = |j: usize| F::from_f64(self.pivot[j] - frame.offset[j].to_f64());
        // In the frame of this data all shifts are 0.
        let same_frame = (0..self.dim()).all(|j| self.pivot[j] == frame.offset[j].to_f64());
        into.reset_ragged(frame);
        for n in rows {
            let places = n * self.entries..(n + 1) * self.entries;
            let ids = &self.ids[places.clone()];
            let values = &self.values[places];
            let shifted = |(&j, &x): (&u32, &F)| {
                if same_frame {
                    enter(j, x)
                } else {
                    enter(j, x + shift(j as usize))
                }
            };
            let weight = weight_of(self.weights.as_deref(), n);
            into.push(weight, ids, ids.iter().zip(values).map(shifted));
        }
    }
}

/// An error where rows in this basis are asked for in another frame.
pub(super) fn check_frame<F: Float>(basis: &Basis, frame: &Frame<F>) -> Result<()> {
    ensure(frame.basis() == Some(basis), || {
        let columns = || "the columns of dense rows".to_owned();
        let name = |basis: &Basis| format!("a sketch with seed {}", basis.seed());
        Error::BasisMismatch {
            expected: frame.basis().map_or_else(columns, name),
            found: name(basis),
        }
    })
}

impl<F: Float> Data<F> for Sketch<F> {
    fn kind(&self) -> RowKind {
        RowKind::Partial
    }

    #[inline(never)]
    fn special(&self) -> Special<'_> {
        Special {
            basis: Some(&self.basis),
            ..Special::of::<Self>()
        }
    }

    fn len(&self) -> usize {
        self.values.len() / self.entries
    }

    fn dim(&self) -> usize {
        self.basis.columns()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// Mean, variance and range of each coordinate, over the rows that know it. A coordinate that no row knows has the mean of
    /// all rows, and the mean variance of the others.
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn frame(&self) -> Frame<F> {
        Frame::of(&self.summary).with_basis(self.basis.clone())
    }

    #[inline(never)]
    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.fill(rows, frame, into);
        Ok(())
    }

    #[inline(never)]
    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()> {
        self.fill(rows.iter().copied(), frame, into);
        Ok(())
    }

    #[inline(never)]
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>> {
        let places = |&n: &usize| n * self.entries..(n + 1) * self.entries;
        let mut ids = Vec::with_capacity(rows.len() * self.entries);
        let mut values = Vec::with_capacity(rows.len() * self.entries);
        for n in rows {
            ids.extend_from_slice(&self.ids[places(n)]);
            values.extend_from_slice(&self.values[places(n)]);
        }
        Ok(Box::new(Self {
            basis: self.basis.clone(),
            pivot: Arc::clone(&self.pivot),
            entries: self.entries,
            ids,
            values,
            summary: self.summary.reweighted(&weights),
            weights: Some(weights),
        }))
    }
}
