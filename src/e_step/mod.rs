//! Stage 4, the E-step: a search for the support K(n) of every point.
//!
//! A search chooses components and computes their costs; it does not normalise. Only the EM loop computes responsibilities and the
//! free energy, so every algorithm has the same objective. Hard k-means has supports of width 1, k-means-C' of width C',
//! and EM of all components. A search raises the free energy ([E3](crate::equations#e3)) whenever the sum over $K(n)$ grows; it
//! does not have to find the best members.
//!
//! [`Exhaustive`] finds them at the cost of $nk$ distance evaluations. [`Lazy`] does not move points that would gain too
//! little. [`Neighborhood`] costs at most $n C' G$ and [`SimilaritySampling`] $n (H + R)$, for any $k$: the first
//! evaluates neighbors, the second draws candidates. [`Bounded`] does not read rows that bounds settle.

pub(crate) mod bounded;
mod exhaustive;
pub(crate) mod lazy;
mod neighborhood;
mod neighbors;
mod pairs;
mod per_shard;
mod search_space;
mod similarity;
mod similarity_sampling;

pub use bounded::Bounded;
pub(crate) use bounded::{
    Assignment, Bounds, Change, KeptSums, Member, NeighbourLists, Offset, RowsInOrder,
};
pub use exhaustive::Exhaustive;
pub(crate) use exhaustive::bounds_may_pay;
pub use lazy::Lazy;
pub use neighborhood::Neighborhood;
pub(crate) use per_shard::PerShard;
pub use similarity_sampling::SimilaritySampling;

use crate::base::error::{Result, require};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::serde::DeserializeOwned;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::io::{self, FileFault};
use crate::model::Mixture;
use crate::model::block::Block;

/// A way to search: settings that begin a [`Search`] for each phase.
///
/// `examples/own_e_step.rs` writes one; [`testing::e_step`](crate::testing::e_step) holds it against the laws.
#[diagnostic::on_unimplemented(
    note = "an E-step is one of `coremix::e_step`, or a struct of yours that implements `EStep<F>`: `examples/own_e_step.rs` writes one"
)]
pub trait EStep<F: Float>: Stage + Send + Sync {
    /// The search of a phase that begins with this model. `saved` is what [`Search::save`] gave, if the phase goes on from
    /// a checkpoint.
    ///
    /// # Errors
    /// A family that the search does not work with; bytes that are not of such a search.
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        saved: Option<&[u8]>,
        rng: &mut Rng,
    ) -> Result<Box<dyn Search<F>>>;

    /// Whether it compares distances, so that all components must have one variance: for others [`build`](crate::Builder::build) is an error.
    fn compares_distances(&self) -> bool {
        false
    }

    /// How many centres a row is compared with, where bounds settle rows without reading them ([E35](crate::equations#e35)).
    /// The driver then searches only rows that are not settled, and keeps the statistics. `None` is a search without bounds.
    fn bounds(&self) -> Option<usize> {
        None
    }
}

/// A search for supports, with all that it keeps from one pass over the rows to the next. Only [`width`](Self::width) and
/// [`search`](Self::search) must be written.
///
/// Laws: with the model fixed, a search never lowers the free energy; what it does for a row depends on
/// that row, its last support, the model, the state and random numbers alone. It must not depend on other rows. Every
/// block of rows has a random stream of its own, another one in every search.
///
/// A search can read the last supports in the block, and:
///
/// - `model.centres().row(c)`: the mean of component `c`; `model.components()`: how many there are;
/// - `rows.coordinates(i)`: the coordinates of row `i` of the block, in the same [frame](crate::data::Frame) as the means;
/// - `rows.distances_to(i, model.centres(), &ids, &mut squared)`: squared distances to some means. They are not counted:
///   [`Block::keep_best`] counts those that it takes.
///
/// The first search of a phase has no last supports, or has those of the phase before. So it must give `keep_best` at
/// least `width` different components for every row.
pub trait Search<F: Float>: Send + Sync {
    /// Members of a support, C': 1 to the number of components.
    fn width(&self) -> usize;

    /// Searches a block of rows: `block` comes with the supports of the last search ([unset](Block::support) at first)
    /// and leaves with the new ones and their costs. Call [`Block::keep_best`] for every row `i` of `rows`: it sets both.
    /// Row `i` of `rows` is row `i` of `block`.
    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, rng: &mut Rng);

    /// After every pass over the rows: combines what was learned, in the order of the shards.
    fn end_pass(&mut self) {}

    /// Whether the search finds the best components of every row, whatever the supports and the state were before. Then
    /// labels are exact.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether every row is compared with all components: one without rows has none near then ([E54](crate::equations#e54)).
    #[doc(hidden)]
    fn compares_all(&self) -> bool {
        self.is_exact()
    }

    /// Further searches at the seeds, before the variance is started. They belong to the start, not to EM, and have no free energy.
    fn initial_searches(&self) -> usize {
        0
    }

    /// Whether rows are searched fastest in the order of the best component of their last search, so that rows with the same
    /// candidates follow each other. The results of the search do not depend on the order.
    fn by_component(&self) -> bool {
        false
    }

    /// Distance evaluations that [`EStep::begin`] took.
    fn evaluations(&self) -> u64 {
        0
    }

    /// The state as bytes, for a [checkpoint](crate::Checkpoint) in the middle of a phase. Default: none, for a search that
    /// keeps nothing. With `None` checkpoints are written between phases alone.
    fn save(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}

/// An error unless costs are squared distances, for a search that compares these.
pub(crate) fn check_squared(is_squared: bool, search: &'static str) -> Result<()> {
    let rule = "needs one variance for all components: for other families take gmm, vc-gmm or another E-step";
    require(is_squared, "e_step", search, rule)
}

/// The state of a search from its bytes.
fn loaded<T: DeserializeOwned>(bytes: &[u8], is_sound: impl Fn(&T) -> bool) -> Result<T> {
    let state = io::only::<T>("state", bytes).ok().filter(is_sound);
    let fault = || FileFault::content("state", "must be a state of the E-step");
    state.ok_or_else(|| fault().of_bytes())
}
