//! Stage 1, the points: weighted rows behind one trait.
//!
//! Stages ask data for blocks of rows ([`Data::load`]), in the coordinates of a [`Frame`], and do their
//! arithmetic on those blocks ([`Rows`]). Where rows come from and how they are stored is known here alone.

mod basis;
mod blocks;
mod centres;
mod dense;
mod dense_products;
mod dense_sums;
mod frame;
mod guarded;
mod linear;
mod moments;
mod projected;
mod rows;
mod scales;
mod scores;
mod sketch;
mod sketch_builder;
mod sketch_new;
mod sketch_sums;
mod sparse_rows;
mod stored;
mod summary;
mod view;

pub use basis::{Basis, Transform};
pub use blocks::{Blocks, Source};
pub use centres::Centres;
pub use dense::{Dense, Weight};
pub use frame::Frame;
pub(crate) use guarded::Guarded;
#[doc(hidden)]
pub use linear::Linear;
pub(crate) use linear::{Part, Terms, largest_error};
pub use moments::{Moments, Second};
pub use projected::Subspace;
pub use rows::Rows;
pub use scales::Scales;
pub use scores::Scores;
pub(crate) use scores::{all_scores, some_scores};
pub use sketch::Sketch;
pub use sketch_builder::SketchBuilder;
pub use summary::Summary;
pub(crate) use summary::check_rows;
pub(crate) use view::View;

use crate::base::error::{Result, same_columns};
use crate::base::float::Float;
use std::ops::Range;

/// A weighted set of `n` points in `d` dimensions; usable as a trait object.
///
/// The crate reads rows through it and asks nothing else: where they come from (memory, a file, a partition) is known to
/// the implementation alone. [`Rows::fill`] puts rows of numbers into a block, [`Summary::from_blocks`] makes the
/// summary, and [`select`](Self::select) may return other data than itself, such as [`Dense::part_of`] makes. What is
/// loaded is checked: a block of another number of rows than asked for, or a value that is not finite, is an error of
/// the fit that names the data. Rows that cannot be read are an error of [`load`](Self::load).
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
    /// Whether every row was checked when the data was made, and stays as it is: then blocks are not checked again when
    /// they are loaded.
    fn is_checked(&self) -> bool {
        false
    }
    /// Whether rows know only some of their coordinates, as those of a [`Sketch`].
    fn is_sparse(&self) -> bool {
        false
    }
    /// Number of rows, n.
    fn len(&self) -> usize;
    /// Whether there are no rows: then a model has empty answers, and a fit is an error.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of coordinates, d: those of the [frame](Self::frame).
    fn dim(&self) -> usize;
    /// Weight of row `n`, in `f64`.
    fn weight(&self, n: usize) -> f64;
    /// Total weight, weighted mean and variance, ranges: found once, when the data is checked.
    fn summary(&self) -> &Summary;
    /// The coordinates to compute in.
    ///
    /// # Errors
    /// As [`load`](Self::load): some rows are read.
    fn frame(&self) -> Result<Frame<F>> {
        frame_of_sample(self)
    }
    /// Whether the rows can be loaded in the coordinates of `frame`.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) if the data has another number of columns,
    /// [`Error::BasisMismatch`](crate::Error::BasisMismatch) for a [`Sketch`] in other coordinates.
    fn check(&self, frame: &Frame<F>) -> Result<()> {
        same_columns("data", frame.columns(), self.dim())
    }
    /// Loads consecutive rows in the coordinates of `frame`.
    ///
    /// # Errors
    /// Why they cannot be read, such as [`Error::Stage`](crate::Error::Stage).
    fn load(&self, rows: Range<usize>, frame: &Frame<F>, into: &mut Rows<F>) -> Result<()>;
    /// Loads any rows, in the order given.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn gather(&self, rows: &[usize], frame: &Frame<F>, into: &mut Rows<F>) -> Result<()>;
    /// Squared distances of consecutive rows to one centre, computed directly, into `out` (as many): for passes over all
    /// rows that need nothing else of them, and should take no longer than reading them.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn distances_from(
        &self,
        rows: Range<usize>,
        frame: &Frame<F>,
        centre: &[F],
        out: &mut [F],
    ) -> Result<()> {
        let mut block = Rows::default();
        self.load(rows, frame, &mut block)?;
        block.distances_from(centre, out);
        Ok(())
    }
    /// Weighted squared distances of all rows from the space that their coordinates span, in the unit of the frame,
    /// squared: 0, unless the rows are projections.
    fn residual(&self) -> f64 {
        0.0
    }
    /// Some rows with new weights (a coreset), as data of their own. Its summary is that of the whole data but for the
    /// number of rows and the total weight ([`Summary::reweighted`]), so that both live in the same frame.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Result<Box<dyn Data<F> + '_>>;
}

/// The coordinates to compute in, by the summary and a sample of the rows.
fn frame_of_sample<F: Float, D: Data<F> + ?Sized>(data: &D) -> Result<Frame<F>> {
    // In the finest unit that these data may get: in a unit of 1 wide rows would be held, and lie on each other.
    let finest = Frame::of_typical(data.summary(), Some(f64::MIN_POSITIVE));
    let sample: Vec<usize> = frame::sample(data.len())
        .filter(|&n| data.weight(n) > 0.0)
        .collect();
    let mut rows = Rows::default();
    data.gather(&sample, &finest, &mut rows)?;
    let typical = rows.typical().map(|typical| typical * finest.unit());
    Ok(Frame::of_typical(data.summary(), typical))
}
