//! A block of rows, the one type of rows there is.

use super::frame::Frame;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::kernels::sparse::{Absent, Entries, Known};
use crate::kernels::{distance, stride};
use std::borrow::Cow;
use std::sync::Arc;

/// A block of weighted rows in the coordinates of a frame: the inner loops of the crate.
///
/// Rows are dense, or ragged: those of a [`Sketch`](crate::data::Sketch), and rows with missing values, know some of their
/// coordinates. All rows of a block are of one kind.
#[derive(Clone, Debug, Default)]
pub struct Rows<F> {
    pub(crate) dim: usize,
    /// Dense rows, padded; or the known coordinates of ragged rows, one row after the other.
    pub(crate) values: Vec<F>,
    pub(crate) weights: Vec<f64>,
    kind: Kind<F>,
}

/// The coordinates that rows have.
#[derive(Clone, Debug)]
enum Kind<F> {
    /// All of them. Rows in a subspace stand for more coordinates than they have.
    Dense { stands_for: usize },
    /// Each row its own.
    Ragged {
        /// (n + 1): where the entries of each row start; the last one is where they end.
        starts: Vec<usize>,
        /// The coordinates that are known, ascending in each row, after the `whole` ones.
        ids: Vec<u32>,
        /// The mean of the data, in the frame, padded: it stands for coordinates that are not known. `None` where coordinates
        /// that are not there are 0, and so are known.
        mean: Option<Arc<[F]>>,
        /// The coordinates that every row has, and begins with, where the others are 0.
        whole: Vec<u32>,
        /// The logarithm of the factor of each column, less their mean: none, where the factors are equal.
        log_scales: Arc<[f64]>,
    },
}

impl<F> Default for Kind<F> {
    fn default() -> Self {
        Self::Dense { stands_for: 0 }
    }
}

impl<F: Float> Rows<F> {
    /// Makes room for `n` dense rows.
    pub(crate) fn reset(&mut self, n: usize, dim: usize) {
        if self.dim != dim || self.entries().is_some() {
            // Padding is never written by `fill`, so it must start as zeros.
            self.values.clear();
            self.dim = dim;
        }
        self.values.resize(n * stride(dim), F::zero());
        self.weights.clear();
        self.stand_for(dim);
    }

    /// Declares that rows stand for this number of coordinates, as rows in a subspace do.
    pub(crate) fn stand_for(&mut self, stands_for: usize) {
        self.kind = Kind::Dense { stands_for };
    }

    /// Takes rows of these weights in the coordinates of `frame`: `read` fills the numbers of row `i` (as many as the
    /// data has columns) as they are stored. For the same numbers it is what [`Dense`](crate::data::Dense) loads, bit for bit.
    ///
    /// # Errors
    /// The error of `read`; [`Error::NotFinite`] for a number that is NaN or infinite.
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
                let row = i;
                return Err(Error::NotFinite { what, row, column });
            }
            frame.enter(row.iter().copied(), out);
        }
        Ok(())
    }

    /// Removes all rows. Ragged rows are then [pushed](Self::push) one by one.
    pub(crate) fn reset_ragged(&mut self, frame: &Frame<F>) {
        let mean = Some(Arc::clone(&frame.mean));
        self.reset_to(frame.dim(), mean, Vec::new(), frame.log_scales());
    }

    /// As [`reset_ragged`](Self::reset_ragged), for rows whose coordinates are 0 where they are not there. All begin with the
    /// coordinates `whole`.
    pub(crate) fn reset_sparse(&mut self, frame: &Frame<F>, whole: Vec<u32>) {
        self.reset_to(frame.dim(), None, whole, Arc::default());
    }

    fn reset_to(
        &mut self,
        dim: usize,
        mean: Option<Arc<[F]>>,
        whole: Vec<u32>,
        log_scales: Arc<[f64]>,
    ) {
        self.dim = dim;
        self.values.clear();
        self.weights.clear();
        let (mut starts, mut ids) = match std::mem::take(&mut self.kind) {
            Kind::Ragged { starts, ids, .. } => (starts, ids),
            Kind::Dense { .. } => (Vec::new(), Vec::new()),
        };
        starts.clear();
        starts.push(0);
        ids.clear();
        self.kind = Kind::Ragged {
            starts,
            ids,
            mean,
            whole,
            log_scales,
        };
    }

    /// Adds a ragged row: the coordinates that it knows, ascending, and their values.
    pub(crate) fn push(&mut self, weight: f64, known: &[u32], values: impl Iterator<Item = F>) {
        let Kind::Ragged { starts, ids, .. } = &mut self.kind else {
            unreachable!("`reset_ragged` comes first");
        };
        ids.extend_from_slice(known);
        starts.push(ids.len());
        self.values.extend(values);
        self.weights.push(weight);
    }

    /// The known coordinates, if rows know only some.
    #[inline(always)]
    pub(crate) fn entries(&self) -> Option<Entries<'_, F>> {
        match &self.kind {
            Kind::Dense { .. } => None,
            Kind::Ragged {
                starts,
                ids,
                mean,
                whole,
                ..
            } => Some(Entries {
                starts,
                ids,
                values: &self.values,
                absent: match mean {
                    Some(_) => Absent::Unknown,
                    None => Absent::Zero,
                },
                whole,
            }),
        }
    }

    /// Padded rows of `dim` coordinates, of weight 1.
    pub(crate) fn of_padded(values: &[F], dim: usize) -> Self {
        Self {
            dim,
            values: values.to_vec(),
            weights: vec![1.0; values.len() / stride(dim)],
            kind: Kind::Dense { stands_for: dim },
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

    /// Row `i`: `d` numbers, padded.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &[F] {
        let stride = stride(self.dim);
        &self.values[i * stride..(i + 1) * stride]
    }

    /// Row `i` (d) in the data's own unit; NaN for coordinates that are not known. For rows of a frame without directions, in which zeros are 0.
    pub(crate) fn leave(&self, i: usize, frame: &Frame<F>, out: &mut [F]) {
        let Some(entries) = self.entries() else {
            let row = self.row(i).iter().enumerate();
            let pairs = out.iter_mut().zip(row);
            return pairs.for_each(|(out, (j, z))| *out = frame.leave(j, *z));
        };
        out.fill(match entries.absent {
            Absent::Unknown => F::from_f64(f64::NAN),
            Absent::Zero => F::zero(),
        });
        let Known { ids, values } = entries.row(i);
        for (&j, &z) in ids.iter().zip(values) {
            out[j as usize] = frame.leave(j as usize, z);
        }
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

    /// Coordinates that row `i` knows, out of d: all, for dense rows. Distances and densities are over these.
    #[inline(always)]
    #[must_use]
    pub fn known(&self, i: usize) -> usize {
        match &self.kind {
            Kind::Dense { stands_for } => *stands_for,
            Kind::Ragged { mean: None, .. } => self.dim,
            Kind::Ragged { starts, .. } => starts[i + 1] - starts[i],
        }
    }

    /// Whether the columns that rows know differ in their units.
    pub(crate) fn has_units(&self) -> bool {
        matches!(&self.kind, Kind::Ragged { log_scales, .. } if !log_scales.is_empty())
    }

    /// The log-density of row `i` in the data's own unit, less that for [as many](Self::known) columns of the mean unit.
    pub(crate) fn units(&self, i: usize) -> f64 {
        match &self.kind {
            Kind::Ragged {
                starts,
                ids,
                log_scales,
                ..
            } if self.has_units() => {
                let known = ids[starts[i]..starts[i + 1]].iter();
                known.map(|j| log_scales[*j as usize]).sum()
            }
            _ => 0.0,
        }
    }

    /// The least and the most coordinates that a row knows.
    pub(crate) fn fewest_and_most_known(&self) -> (usize, usize) {
        match &self.kind {
            Kind::Dense { stands_for } => (*stands_for, *stands_for),
            Kind::Ragged { mean: None, .. } => (self.dim, self.dim),
            Kind::Ragged { .. } => (0..self.len()).fold((self.dim, 0), |(fewest, most), i| {
                (fewest.min(self.known(i)), most.max(self.known(i)))
            }),
        }
    }

    /// $\sum_n w_n D_n$, the weight of all known coordinates; `weight` is $\sum_n w_n$.
    pub(crate) fn weight_known(&self, weight: f64) -> f64 {
        let (fewest, most) = self.fewest_and_most_known();
        if fewest >= most {
            return weight * most as f64;
        }
        let known = |i| self.weights[i] * self.known(i) as f64;
        (0..self.len()).map(known).sum()
    }

    /// Shows each coordinate that row `i` knows, with its value.
    pub(crate) fn each_known(&self, i: usize, mut see: impl FnMut(usize, F)) {
        match self.entries() {
            Some(entries) if entries.absent.is_unknown() => {
                let Known { ids, values } = entries.row(i);
                let pairs = ids.iter().zip(values);
                pairs.for_each(|(j, x)| see(*j as usize, *x));
            }
            _ => {
                let row = self.coordinates(i);
                let columns = row[..self.dim].iter().enumerate();
                columns.for_each(|(j, x)| see(j, *x));
            }
        }
    }

    /// Row `i` as a centre: `d` numbers, padded. A coordinate that it does not know is the mean of the data there.
    #[doc(alias = "row")]
    #[must_use]
    pub fn coordinates(&self, i: usize) -> Cow<'_, [F]> {
        let mean = match &self.kind {
            Kind::Ragged { mean, .. } => mean.as_deref(),
            Kind::Dense { .. } => None,
        };
        self.coordinates_or(i, mean.unwrap_or_default())
    }

    /// Row `i` as a centre, where coordinates that it does not know are those of a padded row.
    pub(crate) fn coordinates_or(&self, i: usize, others: &[F]) -> Cow<'_, [F]> {
        let Some(entries) = self.entries() else {
            return Cow::Borrowed(self.row(i));
        };
        let mut centre = match entries.absent {
            Absent::Unknown => others.to_vec(),
            Absent::Zero => vec![F::zero(); stride(self.dim)],
        };
        let Known { ids, values } = entries.row(i);
        for (&j, &x) in ids.iter().zip(values) {
            centre[j as usize] = x;
        }
        Cow::Owned(centre)
    }
}
