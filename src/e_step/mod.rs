//! Stage 4, the E-step: a search for the support K(n) of every point.
//!
//! A search chooses components and scores them; it does not normalise. Only the EM loop computes responsibilities and the
//! free energy, so every algorithm has the same objective. Hard k-means has supports of width 1, k-means-C' of width C',
//! and EM of all components. From the log-joints ([E1](crate::equations#e1)), the loop computes
//! ([E2](crate::equations#e2)) and ([E3](crate::equations#e3)):
//!
//! $$q_{nc} = \frac{p(c, y_n \mid \theta)}{\sum_{c' \in K(n)} p(c', y_n \mid \theta)} \text{ for } c \in K(n), \qquad F(\theta) = \sum_n w_n \ln \sum_{c \in K(n)} p(c, y_n \mid \theta)$$
//!
//! and $q_{nc} = 0$ outside $K(n)$. A search raises $F$ whenever the sum over $K(n)$ grows; it does not have to find
//! the best members.
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
mod search_space;
mod similarity;
mod similarity_sampling;

pub use bounded::Bounded;
pub(crate) use bounded::{Assignment, Change, NeighbourLists, Sums};
pub use exhaustive::Exhaustive;
pub use lazy::Lazy;
pub use neighborhood::{Neighborhood, Start};
pub use similarity_sampling::SimilaritySampling;

use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::model::Mixture;
use crate::model::block::Block;

/// A search for supports.
///
/// Only the two types, [`width`](Self::width) and [`search`](Self::search) must be written: the other methods have
/// defaults. The builder needs [`Stage`] and `Clone` as well.
///
/// Laws: with the model fixed, a search never lowers the free energy; what it does for a row depends on
/// that row, its last support, the model, the state and random numbers alone. It must not depend on other rows. Every
/// block of rows has a random stream of its own, another one in every search.
///
/// What a search can read, besides the last supports in the block:
///
/// - `model.centres().row(c)`: the mean of component `c`; `model.components()`: how many there are;
/// - `rows.to_centre(i)`: the coordinates of row `i` of the block, in the same [frame](crate::data::Frame) as the means;
/// - `rows.distances_to(i, model.centres(), &ids, &mut squared)`: squared distances to some means. They are not counted:
///   [`Block::keep_best`] counts those that it takes.
///
/// The first search of a phase has no last supports, or has those of the phase before. So it must give `keep_best` at
/// least `width` different components for every row.
///
/// `examples/own_e_step.rs` is another one.
///
/// ```
/// use coremix::data::Rows;
/// use coremix::e_step::EStep;
/// use coremix::prelude::*;
/// use coremix::{Block, Rng, Stage};
///
/// /// The component that a row has, or the better of two others at random.
/// #[derive(Clone)]
/// struct Two;
///
/// impl Stage for Two {}
///
/// impl<F: Float, M: Mixture<F>> EStep<F, M> for Two {
///     type State = ();
///     type Worker = (Vec<u32>, Vec<F>);
///
///     fn width(&self, _: usize) -> usize {
///         1
///     }
///
///     fn search(
///         &self,
///         (): &(),
///         model: &M,
///         rows: &Rows<F>,
///         block: &mut Block<F>,
///         rng: &mut Rng,
///         (ids, scores): &mut Self::Worker,
///     ) {
///         for i in 0..rows.len() {
///             rng.distinct(ids, 2, model.components());
///             block.keep_best(i, model, rows, ids, scores);
///         }
///     }
/// }
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// # let data = Dense::new(birch.points.view())?;
/// coremix::testing::e_step(&Two, &data, 25)?; // the laws hold
/// let fit = algorithms::k_means(25).e_step(Two).build()?.fit(&data)?;
/// assert!(!fit.exact);
/// # Ok::<(), Error>(())
/// ```
pub trait EStep<F: Float, M: Mixture<F>>: Stage + Sync {
    /// What is kept from one search to the next, besides the supports.
    type State: Default + Send + Sync;
    /// What one worker keeps from block to block: scratch, and what [`finish_pass`](Self::finish_pass)
    /// needs. A worker searches a fixed sequence of blocks, in order. `()` if nothing is kept.
    type Worker: Default + Send + 'static;

    /// Members of a support, C', out of `k` components: 1 to `k`.
    fn width(&self, k: usize) -> usize;

    /// Searches a block of rows: `block` comes with the supports of the last search ([unset](Block::support) at first)
    /// and leaves with the new ones and their scores. Call [`Block::keep_best`] for every row `i` of `rows`: it sets both.
    /// Row `i` of `rows` is row `i` of `block`.
    fn search(
        &self,
        state: &Self::State,
        model: &M,
        rows: &Rows<F>,
        block: &mut Block<F>,
        rng: &mut Rng,
        worker: &mut Self::Worker,
    );

    /// Whether the search finds the best components of every row, whatever the supports and the state were before. Then
    /// labels are exact.
    fn is_exact(&self, _k: usize) -> bool {
        false
    }

    /// Rounds of a search and an M-step before the variance is started. In them all members of a support have the same
    /// responsibility. They belong to the start, not to EM, and have no free energy.
    fn warm_up(&self, _k: usize) -> usize {
        0
    }

    /// Searches with the model fixed before the first M-step of EM; the first of them starts the variance
    /// ([E8](crate::equations#e8)).
    ///
    /// 0 is allowed only if responsibilities do not depend on the variance (width 1). Then the search before the first
    /// M-step starts it.
    fn initial_searches(&self, k: usize) -> usize {
        usize::from(self.width(k) > 1)
    }

    /// Whether rows are searched fastest in the order of the best component of their last search, so that rows with the same
    /// candidates follow each other. The results of the search do not depend on the order.
    fn by_component(&self, _k: usize) -> bool {
        false
    }

    /// The state before the first search.
    fn start(&self, _model: &M, _rng: &mut Rng) -> Started<Self::State> {
        Started {
            state: Self::State::default(),
            evaluations: 0,
        }
    }

    /// A new worker, for some blocks of one pass over the rows. The model stays as it is during a pass, so what depends on
    /// it alone can be made here, such as a sorted list of means.
    fn worker(&self, _model: &M) -> Self::Worker {
        Self::Worker::default()
    }

    /// The state as bytes, for a [checkpoint](crate::Checkpoint) in the middle of a phase. Default: no bytes for a state
    /// without data, such as `()`. Any other is `None`, and then checkpoints are written between phases alone.
    fn save_state(&self, _state: &Self::State) -> Option<Vec<u8>> {
        (size_of::<Self::State>() == 0).then(Vec::new)
    }

    /// The state from these bytes, for `k` components; `None` if they are not those of such a state.
    fn load_state(&self, bytes: &[u8], _k: usize) -> Option<Self::State> {
        let nothing = bytes.is_empty() && size_of::<Self::State>() == 0;
        nothing.then(Self::State::default)
    }

    /// Updates the state from the workers of one pass, in their order, after every search of all rows.
    fn finish_pass(&self, _state: &mut Self::State, _workers: Vec<Self::Worker>) {}

    /// The bounds that settle rows without reading them ([E35](crate::equations#e35)), or `None` for a search without
    /// bounds. With bounds, the driver searches only rows that are not settled, and keeps the statistics.
    fn bounds(&self) -> Option<&Bounded> {
        None
    }
}

/// A state before the first search, and the distance evaluations it took.
#[derive(Debug)]
pub struct Started<S> {
    /// The state.
    pub state: S,
    /// Distance evaluations.
    pub evaluations: u64,
}
