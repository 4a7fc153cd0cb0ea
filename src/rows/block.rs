//! A block of rows, the one type of rows there is.

use super::frame::Frame;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::kernels::sparse::{Entries, Known};
use crate::kernels::{distance, stride};
use std::borrow::Cow;
use std::sync::Arc;

/// A block of weighted rows in the coordinates of a frame: the inner loops of the crate.
///
/// Rows are dense, or sparse: rows of a [`Sketch`](crate::data::Sketch) know some of their coordinates, each as many. All rows of
/// a block are of one kind.
#[derive(Clone, Debug, Default)]
pub struct Rows<F> {
    pub(crate) dim: usize,
    /// Coordinates that each row stands for: more than it has, for projected rows; those that it knows, for sparse ones.
    pub(crate) entries: usize,
    /// Dense rows, padded; or (n, entries), the known coordinates of sparse rows.
    pub(crate) values: Vec<F>,
    pub(crate) weights: Vec<f64>,
    pub(crate) sparse: Option<Sparse<F>>,
}

/// What sparse rows have beside their values.
#[derive(Clone, Debug)]
pub(crate) struct Sparse<F> {
    /// (n, entries): which coordinates are known.
    pub(crate) ids: Vec<u32>,
    /// The mean of the data, in the frame, padded: it stands for coordinates that are not known.
    pub(crate) mean: Arc<[F]>,
}

impl<F: Float> Rows<F> {
    /// Makes room for `n` dense rows.
    pub(crate) fn reset(&mut self, n: usize, dim: usize) {
        if self.dim != dim || self.sparse.take().is_some() {
            // Padding is never written by `fill`, so it must start as zeros.
            self.values.clear();
            self.dim = dim;
        }
        self.values.resize(n * stride(dim), F::zero());
        self.weights.clear();
        self.entries = dim;
    }

    /// Takes rows of these weights in the coordinates of `frame`: `read` fills the numbers of row `i` (as many as the
    /// data has columns) as they are stored. For the same numbers it is what [`Dense`](crate::data::Dense) loads, bit for bit.
    ///
    /// # Errors
    /// What `read` returns; [`Error::NotFinite`] for a number that is NaN or infinite.
    pub fn fill(
        &mut self,
        frame: &Frame<F>,
        weights: impl ExactSizeIterator<Item = f64>,
        mut read: impl FnMut(usize, &mut [F]) -> Result<()>,
    ) -> Result<()> {
        self.reset(weights.len(), frame.dim());
        self.weights.extend(weights);
        let mut row = vec![F::zero(); frame.dim()];
        let places = self.values.chunks_exact_mut(stride(frame.dim()));
        for (i, out) in places.enumerate() {
            read(i, &mut row)?;
            if let Some(column) = row.iter().position(|x| !x.is_finite()) {
                let what = "data";
                return Err(Error::NotFinite {
                    what,
                    row: i,
                    column,
                });
            }
            frame.enter(row.iter().copied(), out);
        }
        Ok(())
    }

    /// Removes all rows. Those that follow are sparse, with `entries` known coordinates each.
    pub(crate) fn reset_sparse(&mut self, dim: usize, entries: usize, mean: &Arc<[F]>) {
        (self.dim, self.entries) = (dim, entries);
        self.values.clear();
        self.weights.clear();
        let mut ids = self
            .sparse
            .take()
            .map_or_else(Vec::new, |sparse| sparse.ids);
        ids.clear();
        let mean = Arc::clone(mean);
        self.sparse = Some(Sparse { ids, mean });
    }

    /// The known coordinates, if rows know only some.
    #[inline(always)]
    pub(crate) fn known(&self) -> Option<Entries<'_, F>> {
        self.sparse.as_ref().map(|sparse| Entries {
            entries: self.entries,
            ids: &sparse.ids,
            values: &self.values,
        })
    }

    /// Padded rows of `dim` coordinates, of weight 1.
    pub(crate) fn of_padded(values: &[F], dim: usize) -> Self {
        Self {
            dim,
            entries: dim,
            values: values.to_vec(),
            weights: vec![1.0; values.len() / stride(dim)],
            sparse: None,
        }
    }

    /// All rows as seen from a point, padded; `None` is the origin.
    pub(crate) fn relative(&self, about: Option<&[F]>) -> Cow<'_, [F]> {
        about.map_or(Cow::Borrowed(&self.values), |about| {
            let mut relative = vec![F::zero(); self.values.len()];
            distance::minus(&self.values, about, &mut relative);
            Cow::Owned(relative)
        })
    }

    /// All rows, padded, one after the other.
    pub(crate) fn values(&self) -> &[F] {
        &self.values
    }

    /// Row `i`: `d` numbers, padded.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[F] {
        let stride = stride(self.dim);
        &self.values[i * stride..(i + 1) * stride]
    }

    /// Number of rows in the block.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether the block has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Weight of row `i` of the block.
    #[inline(always)]
    #[must_use]
    pub fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    /// Coordinates that each row knows, out of d: all, for dense rows. Distances and densities are over these.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Row `i` as a centre: `d` numbers, padded. A coordinate that it does not know is the mean of the data there.
    #[doc(alias = "row")]
    #[must_use]
    pub fn coordinates(&self, i: usize) -> Cow<'_, [F]> {
        let Some((known, sparse)) = self.known().zip(self.sparse.as_ref()) else {
            return Cow::Borrowed(self.row(i));
        };
        let mut centre = sparse.mean.to_vec();
        let Known { ids, values } = known.row(i);
        for (&j, &x) in ids.iter().zip(values) {
            centre[j as usize] = x;
        }
        Cow::Owned(centre)
    }
}
