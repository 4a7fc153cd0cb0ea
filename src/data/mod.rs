//! Stage 1, the points: weighted rows behind one trait.
//!
//! Stages ask data for blocks of rows ([`Data::load`]), in the coordinates of a [`Frame`], and do their
//! arithmetic on those blocks ([`Rows`]). Where rows come from and how they are stored is known here alone.

mod blocks;
mod dense;
mod guarded;
mod known_sums;
mod missing;
mod of_columns;
mod projected;
mod sketch;
mod sketch_builder;
mod sparse;
mod summary;
mod view;

pub use crate::rows::{Basis, Centres, Frame, Rows};
pub use blocks::{Blocks, Lists, Source};
pub use dense::Dense;
pub(crate) use guarded::Guarded;
pub(crate) use missing::load_row;
pub(crate) use of_columns::OfColumns;
pub(crate) use projected::Residual;
pub(crate) use projected::Subspace;
pub use sketch::Sketch;
pub use sketch_builder::SketchBuilder;
pub use sparse::Sparse;
pub use summary::Summary;
pub(crate) use summary::check_rows;
pub use view::View;

use crate::base::cancel::Cancel;
use crate::base::error::{Result, same_columns};
use crate::base::float::Float;
use crate::kernels::sparse::Absent;
use std::fmt::Debug;
use std::ops::Range;

/// A weighted set of `n` points in `d` dimensions; usable as a trait object.
///
/// The crate reads rows through it and asks nothing else: where they come from (memory, a file, a partition) is known to the
/// implementation alone. [`Rows::fill`] puts rows of numbers into a block, [`Summary::from_blocks`] makes the summary, and
/// [`select`](Self::select) reads rows into memory. Loaded rows are checked: a block with another number of rows than asked
/// for, or a value that is not finite, is an error of the fit that names the row. Rows that cannot be read are an error of
/// [`load`](Self::load).
///
/// Laws: the summary ignores rows of weight 0; `load` of a range equals `gather` of its rows; the same rows give the same
/// fit as [`Dense`] rows in memory, bit for bit.
///
/// [`Blocks`] makes data of rows that are read when they are asked for. `examples/own_data.rs` writes data of its own.
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::array;
/// let (x, w) = (array![[0.0], [1.0], [7.0]], array![1.0, 3.0, 0.0]);
/// let dense = Dense::weighted(x.view(), w.view())?;
/// let data: &dyn Data<f64> = &dense;
/// assert_eq!((data.len(), data.dim(), data.weight(1)), (3, 1, 3.0));
/// assert_eq!(data.summary().mean, [0.75]);
/// let part = data.select(&[1, 0], vec![2.0, 1.0])?; // rows with new weights
/// assert_eq!(part.weight(0), 2.0);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    note = "an array becomes data with `Dense::new(&array)?`, or with weights with `Dense::weighted(&array, &weights)?`"
)]
#[allow(clippy::len_without_is_empty, reason = "`dyn Data` has it")]
pub trait Data<F: Float>: Sync {
    /// Number of rows, n.
    fn len(&self) -> usize;
    /// Number of coordinates, d: those of the [frame](Self::frame).
    fn dim(&self) -> usize;
    /// Total weight, weighted mean and variance, ranges: found once, when the data is checked.
    fn summary(&self) -> &Summary;
    /// Loads consecutive rows in the coordinates of `frame`.
    ///
    /// # Errors
    /// Why they cannot be read, such as [`Error::Stage`](crate::Error::Stage).
    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()>;
    /// Loads any rows, in the order given.
    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()>;
    /// The weights of all rows; `None` if each is 1.
    fn weights(&self) -> Option<&[f64]> {
        None
    }
    /// The coordinates that rows have. By default all of them.
    fn kind(&self) -> RowKind {
        RowKind::Dense
    }
    /// The coordinates to compute in.
    fn frame(&self) -> Frame<F> {
        Frame::of(self.summary())
    }
    /// Some rows with new weights (a coreset), as data of their own. Its summary is that of the whole data, except the number
    /// of rows and the total weight ([`Dense::part_of`]), so that both have the same frame.
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>> {
        Ok(Box::new(Dense::selected(self, rows, weights)?))
    }
    #[doc(hidden)]
    fn special(&self) -> Special<'_> {
        Special::of::<Self>()
    }
}

impl<F: Float> dyn Data<F> + '_ {
    /// Weight of row `n`.
    #[must_use]
    pub fn weight(&self, n: usize) -> f64 {
        weight_of(self.weights(), n)
    }

    /// Whether there are no rows: then a model has empty answers, and a fit is an error.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether rows have only some of their coordinates.
    pub(crate) fn is_ragged(&self) -> bool {
        !self.kind().is_dense()
    }

    /// An error unless the rows can be loaded in the coordinates of `frame`.
    pub(crate) fn check(&self, frame: &Frame<F>) -> Result<()> {
        let basis = self.special().basis;
        if basis.is_none() {
            missing::check_frame(self.kind() == RowKind::Partial, frame)?;
        }
        same_columns("data", frame.dim(), self.dim())?;
        basis.map_or(Ok(()), |basis| sketch::check_frame(basis, frame))
    }

    /// The name of the data in errors.
    pub(crate) fn name(&self) -> &'static str {
        self.special().name
    }

    /// The flag that ends the fit on these rows.
    pub(crate) fn cancel(&self) -> Option<&Cancel> {
        self.special().cancel
    }

    pub(crate) fn residual(&self) -> Residual {
        self.special().residual
    }
}

/// Weight of row `n`.
fn weight_of(weights: Option<&[f64]>, n: usize) -> f64 {
    weights.map_or(1.0, |weights| weights[n])
}

/// The coordinates that the rows of data have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowKind {
    /// All of them.
    #[default]
    Dense,
    /// Each row some of them. Nothing is known of the others: rows of a [`Sketch`], and rows with missing values.
    Partial,
    /// Each row some of them. The others are 0: [`Sparse`] rows.
    Sparse,
}

impl RowKind {
    /// Whether rows have all coordinates.
    pub(crate) fn is_dense(self) -> bool {
        self == Self::Dense
    }

    /// The meaning of a coordinate that a row does not have.
    pub(crate) fn absent(self) -> Option<Absent> {
        match self {
            Self::Dense => None,
            Self::Partial => Some(Absent::Unknown),
            Self::Sparse => Some(Absent::Zero),
        }
    }
}

/// Facts about data that only a few kinds of the crate have.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Special<'a> {
    name: &'static str,
    cancel: Option<&'a Cancel>,
    residual: Residual,
    /// The basis of the coordinates, which a model of the rows must have as well.
    basis: Option<&'a Basis>,
    /// The summary of rows of length 1, where it is not that of rows that are loaded so.
    directions: Option<&'a dyn Directions>,
}

impl<'a> Special<'a> {
    /// Data like any other, with the name of its type.
    pub(crate) fn of<D: ?Sized>() -> Self {
        Self::named(crate::base::stage::name::<D>())
    }

    /// Data like any other, with this name in errors.
    #[must_use]
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            cancel: None,
            residual: Residual::default(),
            basis: None,
            directions: None,
        }
    }
}

/// Data that sums up its rows once each is brought to length 1 ([E56](crate::equations#e56)).
pub(crate) trait Directions: Sync + Debug {
    fn sum_up(&self) -> Result<Summary>;
}
