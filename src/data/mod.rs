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
pub(crate) use of_columns::OfColumns;
#[doc(hidden)]
pub use projected::Residual;
pub use projected::Subspace;
pub use sketch::Sketch;
pub use sketch_builder::SketchBuilder;
pub use sparse::Sparse;
pub use summary::Summary;
pub(crate) use summary::check_rows;
pub use view::View;

use crate::base::cancel::Cancel;
use crate::base::error::{Result, same_columns};
use crate::base::float::Float;
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
pub trait Data<F: Float>: Sync {
    /// The name of the data in errors: that of its type.
    fn name(&self) -> &'static str {
        crate::base::stage::name::<Self>()
    }
    /// Whether rows have only some of their coordinates. In a [`Sketch`], and with missing values, the others are not known; in
    /// [`Sparse`] data they are 0.
    fn is_sparse(&self) -> bool {
        false
    }
    /// Whether coordinates that rows do not have are 0: otherwise nothing is known of them. By default the first row tells.
    #[doc(hidden)]
    fn others_are_zero(&self) -> bool {
        let mut rows = Rows::default();
        self.is_sparse()
            && !self.is_empty()
            && self.load(0..1, &self.frame(), &mut rows).is_ok()
            && rows
                .entries()
                .is_some_and(|entries| entries.others_are_zero)
    }
    /// Number of rows, n.
    fn len(&self) -> usize;
    /// Whether there are no rows: then a model has empty answers, and a fit is an error.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of coordinates, d: those of the [frame](Self::frame).
    fn dim(&self) -> usize;
    /// The weights of all rows; `None` if each is 1.
    fn weights(&self) -> Option<&[f64]> {
        None
    }
    /// Weight of row `n`.
    fn weight(&self, n: usize) -> f64 {
        self.weights().map_or(1.0, |weights| weights[n])
    }
    /// Total weight, weighted mean and variance, ranges: found once, when the data is checked.
    fn summary(&self) -> &Summary;
    /// The coordinates to compute in.
    fn frame(&self) -> Frame<F> {
        Frame::of(self.summary())
    }
    /// Whether the rows can be loaded in the coordinates of `frame`.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) if the data has another number of columns,
    /// [`Error::BasisMismatch`](crate::Error::BasisMismatch) for a [`Sketch`] in other coordinates.
    fn check(&self, frame: &Frame<F>) -> Result<()> {
        same_columns("data", frame.dim(), self.dim())
    }
    /// Loads consecutive rows in the coordinates of `frame`.
    ///
    /// # Errors
    /// Why they cannot be read, such as [`Error::Stage`](crate::Error::Stage).
    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()>;
    /// Loads any rows, in the order given.
    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()>;
    /// The flag that ends the fit on these rows.
    #[doc(hidden)]
    fn cancel(&self) -> Option<&Cancel> {
        None
    }
    /// The part of the rows outside the space that their coordinates span.
    #[doc(hidden)]
    fn residual(&self) -> Residual {
        Residual::default()
    }
    /// The summary of the rows once each is brought to length 1 ([E56](crate::equations#e56)).
    #[doc(hidden)]
    fn directions(&self) -> Result<Summary> {
        Summary::of_loaded(self, &Frame::sphere(self.dim()))
    }
    /// Some rows with new weights (a coreset), as data of their own. Its summary is that of the whole data, except the number
    /// of rows and the total weight ([`Summary::reweighted`]), so that both have the same frame.
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>> {
        Ok(Box::new(Dense::selected(self, rows, weights)?))
    }
}
