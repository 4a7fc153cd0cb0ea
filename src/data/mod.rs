//! Stage 1, the points: weighted rows behind one trait.
//!
//! Stages ask data for blocks of rows ([`Data::load`]), in the coordinates of a [`Frame`], and do their
//! arithmetic on those blocks ([`Rows`]). Where rows come from and how they are stored is known here alone.

mod basis;
mod blocks;
mod cells;
mod centres;
mod checked;
mod dense;
mod dense_cells;
mod dense_products;
mod dense_rows;
mod dense_shares;
mod dense_sums;
mod file;
mod frame;
mod linear;
mod moments;
mod npy;
mod on_demand;
mod projected;
mod read_ahead;
mod scales;
mod scores;
mod second;
mod sketch;
mod sketch_builder;
mod sketch_new;
mod sketch_rows;
mod sketch_sums;
mod stored;
mod summary;
mod vectors;

pub use basis::{Basis, Transform};
pub use blocks::{Blocks, Source};
pub use centres::Centres;
pub(crate) use checked::Checked;
pub use dense::{Chosen, Dense, Weight};
pub use dense_rows::DenseRows;
pub use file::{OnDisk, ReadAt};
pub use frame::Frame;
#[doc(hidden)]
pub use linear::Linear;
pub(crate) use linear::{Exactness, largest_terms};
pub use moments::Moments;
pub use npy::NpyFile;
pub(crate) use on_demand::OnDemand;
pub use projected::Subspace;
pub use read_ahead::ReadAhead;
pub use scales::Scales;
pub use scores::Scores;
pub(crate) use scores::{all_scores, some_scores};
pub(crate) use second::Which;
pub use second::{PerComponent, PerCoordinate, Second};
pub use sketch::Sketch;
pub use sketch_builder::SketchBuilder;
pub use sketch_rows::SketchRows;
pub(crate) use stored::Decode;
pub use summary::Summary;
pub(crate) use summary::check_rows;
pub use vectors::{VectorFile, VectorFormat};

use crate::block::Block;
use crate::compiled::Compiled;
use crate::error::{Result, same_columns};
use crate::float::Float;
use std::borrow::Cow;
use std::ops::Range;

/// A weighted set of `n` points in `d` dimensions; usable as a trait object.
///
/// The crate reads rows through it and asks nothing else: where they come from (memory, a file, a partition) is known to
/// the implementation alone. [`DenseRows::fill`] puts rows of numbers into a block, [`Summary::from_blocks`] makes the
/// summary, and [`select`](Self::select) may return other data than itself, such as [`Dense::part_of`] makes. What is
/// loaded is checked: a block of another number of rows than asked for, or a value that is not finite, is an error of
/// the fit that names the data. Data that cannot read a row can leave NaN in it, and say why ([`fault`](Self::fault)).
///
/// Laws: the summary ignores rows of weight 0; `load` of a range equals `gather` of its rows; the same rows give the same
/// fit as [`Dense`] rows in memory, bit for bit.
///
/// [`Blocks`] makes data of rows that are read when they are asked for. `examples/own_data.rs` writes data of its own.
///
/// ```
/// use coremix::data::DenseRows;
/// use coremix::prelude::*;
/// # use ndarray::array;
/// let (x, w) = (array![[0.0], [1.0], [7.0]], array![1.0, 3.0, 0.0]);
/// let dense = Dense::weighted(x.view(), w.view())?;
/// let data: &dyn Data<Rows = DenseRows<f64>> = &dense;
/// assert_eq!((data.len(), data.dim(), data.weight(1)), (3, 1, 3.0));
/// assert_eq!(data.summary().mean, [0.75]);
/// let part = data.select(&[1, 0], vec![2.0, 1.0]); // rows with new weights
/// assert_eq!(part.weight(0), 2.0);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    note = "an array becomes data with `Dense::new(&array)?`, or with weights with `Dense::weighted(&array, &weights)?`"
)]
pub trait Data: Sync {
    /// A block of rows, ready to compute on: [`DenseRows`] or [`SketchRows`].
    type Rows: Rows;

    /// The name of the data in errors: that of its type.
    fn name(&self) -> &'static str {
        crate::stage::name::<Self>()
    }
    /// Whether every row was checked when the data was made, and stays as it is: then blocks are not checked again when
    /// they are loaded.
    fn is_checked(&self) -> bool {
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
    fn frame(&self) -> Frame<<Self::Rows as Rows>::Float> {
        frame_of_sample(self)
    }
    /// Whether the rows can be loaded in the coordinates of `frame`.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`](crate::Error::DimensionMismatch) if the data has another number of columns,
    /// [`Error::BasisMismatch`](crate::Error::BasisMismatch) for a [`Sketch`] in other coordinates.
    fn check(&self, frame: &Frame<<Self::Rows as Rows>::Float>) -> Result<()> {
        same_columns("data", frame.columns(), self.dim())
    }
    /// Why this row could not be read when it was last asked for, where that is known: it is part of the error of the fit.
    fn fault(&self, _row: usize) -> Option<String> {
        None
    }
    /// Loads consecutive rows in the coordinates of `frame`.
    fn load(
        &self,
        rows: Range<usize>,
        frame: &Frame<<Self::Rows as Rows>::Float>,
        into: &mut Self::Rows,
    );
    /// Loads any rows, in the order given.
    fn gather(
        &self,
        rows: &[usize],
        frame: &Frame<<Self::Rows as Rows>::Float>,
        into: &mut Self::Rows,
    );
    /// Squared distances of consecutive rows to one centre, computed directly, into `out` (as many): for passes over all
    /// rows that need nothing else of them, and should take no longer than reading them.
    fn distances_from(
        &self,
        rows: Range<usize>,
        frame: &Frame<<Self::Rows as Rows>::Float>,
        centre: &[<Self::Rows as Rows>::Float],
        out: &mut [<Self::Rows as Rows>::Float],
    ) {
        let mut block = Self::Rows::default();
        self.load(rows, frame, &mut block);
        block.distances_from(centre, out);
    }
    /// Weighted squared distances of all rows from the space that their coordinates span, in the unit of the frame,
    /// squared: 0, unless the rows are projections.
    fn residual(&self) -> f64 {
        0.0
    }
    /// Some rows with new weights (a coreset), as data of their own. Its summary is that of the whole data but for the
    /// number of rows and the total weight ([`Summary::reweighted`]), so that both live in the same frame.
    fn select(&self, rows: &[usize], weights: Vec<f64>) -> Box<dyn Data<Rows = Self::Rows> + '_>;
}

/// The coordinates to compute in, by the summary and a sample of the rows.
fn frame_of_sample<D: Data + ?Sized>(data: &D) -> Frame<<D::Rows as Rows>::Float> {
    // In the finest unit that these data may get: in a unit of 1 wide rows would be held, and lie on each other.
    let finest = Frame::of_typical(data.summary(), Some(f64::MIN_POSITIVE));
    let sample: Vec<usize> = frame::sample(data.len())
        .filter(|&n| data.weight(n) > 0.0)
        .collect();
    let mut rows = D::Rows::default();
    data.gather(&sample, &finest, &mut rows);
    let typical = rows.typical().map(|typical| typical * finest.unit());
    Frame::of_typical(data.summary(), typical)
}

/// A block of rows in the coordinates of a frame: the inner loops of the crate.
pub trait Rows: Default + Send + Sync + 'static {
    /// The type the crate computes in.
    type Float: Float + Compiled<Self>;

    /// Number of rows in the block.
    fn len(&self) -> usize;
    /// Whether the block has no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Weight of row `i` of the block.
    fn weight(&self, i: usize) -> f64;
    /// Coordinates that each row knows, out of d: all, for dense rows. Distances and densities are over these.
    fn entries(&self) -> usize;
    /// Squared distances of all rows to all centres by expansion (E21): (len, k) into `out`.
    ///
    /// $$\hat s_c = \lVert z - a \rVert^2 - 2 (z - a)^\top (\mu_c - a) + \lVert \mu_c - a \rVert^2$$
    ///
    /// about a point $a$ near most of the centres.
    ///
    /// Fast, and good enough to rank; in the unit of the frame, squared, as are all distances here.
    fn distances(&self, centres: &Centres<Self::Float>, out: &mut Vec<Self::Float>);
    /// Bound on the rounding error of row `i` in [`distances`](Self::distances) (E21).
    ///
    /// $$\gamma \left( \lVert z \rVert + \max_c \lVert \mu_c \rVert \right)^2, \qquad \gamma = (d + 8) \cdot \text{machine epsilon, for dense rows}$$
    ///
    /// with both as seen from $a$. It is about the centres that could be as near as the squared distance `reach` (all of
    /// them, for infinity): where those are no farther from the origin than $\lVert z \rVert + \frac 32
    /// \sqrt{\text{reach}}$, that is in place of the largest norm.
    fn margin(&self, i: usize, centres: &Centres<Self::Float>, reach: Self::Float) -> Self::Float;
    /// The nearest of all centres for every row, and its squared distance, computed directly: the lowest index where
    /// several are as near. `false`, and nothing done, where that is no faster than to go through
    /// [`distances`](Self::distances).
    fn nearest(
        &self,
        centres: &Centres<Self::Float>,
        ids: &mut [u32],
        squared: &mut [Self::Float],
    ) -> bool;
    /// The nearest centre of every row, and its squared distance, computed directly: at most $1 + \epsilon$ times the least
    /// one. With $\epsilon = 0$ it is what [`nearest`](Self::nearest) finds. Returns the number of distance evaluations;
    /// none, and nothing done, where the centres are not in cells, or these are of no use to rows of this kind.
    #[doc(hidden)]
    fn nearest_by_cells(
        &self,
        _centres: &Centres<Self::Float>,
        _epsilon: f64,
        _ids: &mut [u32],
        _squared: &mut [Self::Float],
    ) -> Option<u64> {
        None
    }
    /// Whether cells are of use to rows of this kind.
    #[doc(hidden)]
    #[must_use]
    fn use_cells() -> bool {
        false
    }
    /// Per row: the nearest of all centres, the first of equals; its squared distance $s$, computed directly; and
    /// $\sum_c e^{-\beta (s_c - s)}$ over all centres. `false`, and nothing done, where that is no faster than to go through
    /// [`distances`](Self::distances).
    #[doc(hidden)]
    fn together(
        &self,
        _centres: &Centres<Self::Float>,
        _beta: f64,
        _found: &mut Vec<(u32, f64, f64)>,
    ) -> bool {
        false
    }
    /// Scores of all rows that are products (E46): (len, k padded to whole vectors) into `out`, where the padding stays as
    /// it is. `features` is scratch. `false`, and nothing done, where there is no faster way than
    /// [`Scores::all`].
    #[doc(hidden)]
    fn linear(
        &self,
        _scores: &Linear<Self::Float>,
        _features: &mut Vec<Self::Float>,
        _out: &mut [Self::Float],
    ) -> bool {
        false
    }
    /// Squared distances of row `i` to the centres `ids`, computed directly.
    fn distances_to(
        &self,
        i: usize,
        centres: &Centres<Self::Float>,
        ids: &[u32],
        out: &mut Vec<Self::Float>,
    );
    /// Squared distances of all rows to all centres with a factor per component and coordinate, and what the
    /// scales add (E31), computed directly: (len, k) into `out`.
    ///
    /// $$s_c = \sum_j \left( a_{cj} (z_j - \mu_{cj})^2 + b_{cj} \right)$$
    ///
    /// over the coordinates that the row knows.
    fn scaled_distances(
        &self,
        centres: &Centres<Self::Float>,
        scales: &Scales<Self::Float>,
        out: &mut Vec<Self::Float>,
    );
    /// The same of row `i` to the centres `ids`.
    fn scaled_distances_to(
        &self,
        i: usize,
        centres: &Centres<Self::Float>,
        scales: &Scales<Self::Float>,
        ids: &[u32],
        out: &mut Vec<Self::Float>,
    );
    /// Lowers `nearest` to the squared distances of as many rows, from row `first` on, to one more centre,
    /// computed directly.
    fn lower(&self, first: usize, centre: &[Self::Float], nearest: &mut [Self::Float]);
    /// Squared distances of all rows to one centre, computed directly, into `out` (len): held where they stay finite.
    fn distances_from(&self, centre: &[Self::Float], out: &mut [Self::Float]);
    /// A distance at which rows have others: that of the column where it is largest. `None` where rows are equal, or know
    /// only some of their coordinates.
    fn typical(&self) -> Option<f64>;
    /// Row `i` as a centre: `d` numbers, padded. A coordinate that it does not know is the mean of
    /// the data there.
    #[doc(alias = "row")]
    fn to_centre(&self, i: usize) -> Cow<'_, [Self::Float]>;
    /// Adds the rows, shared out by the responsibilities of `block`, to `moments` about `centres` (E5).
    fn accumulate<S: Second>(
        &self,
        block: &Block<Self::Float>,
        centres: &Centres<Self::Float>,
        moments: &mut Moments<S>,
    );
}

/// The inner loops of [`Rows`], under the same names: generic code, which [`Compiled`] compiles inside the crate.
pub(crate) trait Arithmetic: Rows {
    fn distances(&self, centres: &Centres<Self::Float>, out: &mut Vec<Self::Float>);
    fn nearest_by_cells(
        &self,
        _centres: &Centres<Self::Float>,
        _epsilon: f64,
        _ids: &mut [u32],
        _squared: &mut [Self::Float],
    ) -> Option<u64> {
        None
    }
    fn together(
        &self,
        _centres: &Centres<Self::Float>,
        _beta: f64,
        _found: &mut Vec<(u32, f64, f64)>,
    ) -> bool {
        false
    }
    fn linear(
        &self,
        _scores: &Linear<Self::Float>,
        _features: &mut Vec<Self::Float>,
        _out: &mut [Self::Float],
    ) -> bool {
        false
    }
    fn margin(&self, i: usize, centres: &Centres<Self::Float>, reach: Self::Float) -> Self::Float;
    fn nearest(
        &self,
        centres: &Centres<Self::Float>,
        ids: &mut [u32],
        squared: &mut [Self::Float],
    ) -> bool;
    fn distances_to(
        &self,
        i: usize,
        centres: &Centres<Self::Float>,
        ids: &[u32],
        out: &mut Vec<Self::Float>,
    );
    fn scaled_distances(
        &self,
        centres: &Centres<Self::Float>,
        scales: &Scales<Self::Float>,
        out: &mut Vec<Self::Float>,
    );
    fn scaled_distances_to(
        &self,
        i: usize,
        centres: &Centres<Self::Float>,
        scales: &Scales<Self::Float>,
        ids: &[u32],
        out: &mut Vec<Self::Float>,
    );
    fn lower(&self, first: usize, centre: &[Self::Float], nearest: &mut [Self::Float]);
    fn distances_from(&self, centre: &[Self::Float], out: &mut [Self::Float]);
    fn typical(&self) -> Option<f64>;
    fn accumulate<S: Second>(
        &self,
        block: &Block<Self::Float>,
        centres: &Centres<Self::Float>,
        moments: &mut Moments<S>,
    );
}

/// Hands the inner loops of rows to what is compiled inside the crate.
macro_rules! compiled_loops {
    ($float:ident) => {
        #[inline]
        fn distances(&self, centres: &Centres<$float>, out: &mut Vec<$float>) {
            $float::distances(self, centres, out)
        }
        #[inline]
        fn margin(&self, i: usize, centres: &Centres<$float>, reach: $float) -> $float {
            $float::margin(self, i, centres, reach)
        }
        #[inline]
        fn nearest(
            &self,
            centres: &Centres<$float>,
            ids: &mut [u32],
            squared: &mut [$float],
        ) -> bool {
            $float::nearest_of_all(self, centres, ids, squared)
        }
        #[inline]
        fn nearest_by_cells(
            &self,
            centres: &Centres<$float>,
            epsilon: f64,
            ids: &mut [u32],
            squared: &mut [$float],
        ) -> Option<u64> {
            $float::nearest_by_cells(self, centres, epsilon, ids, squared)
        }
        #[inline]
        fn together(
            &self,
            centres: &Centres<$float>,
            beta: f64,
            found: &mut Vec<(u32, f64, f64)>,
        ) -> bool {
            $float::together(self, centres, beta, found)
        }
        #[inline]
        fn linear(
            &self,
            scores: &Linear<$float>,
            features: &mut Vec<$float>,
            out: &mut [$float],
        ) -> bool {
            $float::linear(self, scores, features, out)
        }
        #[inline]
        fn distances_to(
            &self,
            i: usize,
            centres: &Centres<$float>,
            ids: &[u32],
            out: &mut Vec<$float>,
        ) {
            $float::distances_to(self, i, centres, ids, out)
        }
        #[inline]
        fn scaled_distances(
            &self,
            centres: &Centres<$float>,
            scales: &Scales<$float>,
            out: &mut Vec<$float>,
        ) {
            $float::scaled_distances(self, centres, scales, out)
        }
        #[inline]
        fn scaled_distances_to(
            &self,
            i: usize,
            centres: &Centres<$float>,
            scales: &Scales<$float>,
            ids: &[u32],
            out: &mut Vec<$float>,
        ) {
            $float::scaled_distances_to(self, i, centres, scales, ids, out)
        }
        #[inline]
        fn lower(&self, first: usize, centre: &[$float], nearest: &mut [$float]) {
            $float::lower(self, first, centre, nearest)
        }
        #[inline]
        fn distances_from(&self, centre: &[$float], out: &mut [$float]) {
            $float::distances_of_rows(self, centre, out)
        }
        #[inline]
        fn typical(&self) -> Option<f64> {
            $float::typical(self)
        }
        fn accumulate<S: Second>(
            &self,
            block: &Block<$float>,
            centres: &Centres<$float>,
            moments: &mut Moments<S>,
        ) {
            $float::accumulate(self, block, centres, S::which(moments));
        }
    };
}
use compiled_loops;
