//! Stage 6, refinement: k-means on more and more rows, from the model of EM, as far as all of them.
//!
//! EM on a coreset leaves a model that is right for the coreset. [`Refine`] takes it to the data itself: phases of
//! k-means (supports of width 1, E9) on the coreset, a larger one, and all rows, each from the means of the one before.
//! Most rows are settled after a few iterations, and the work goes by those that are not:
//!
//! - Of many columns only a principal subspace is looked at, until all rows are done in it; the last phase is about all
//!   columns again (E39).
//! - The first search of a phase looks at the centres near a row's pivot, of which there are few (E40).
//! - Rows are kept by component, with bounds on their distances; rows that the bounds settle are not read (E35).
//! - A row looks at the centres near its own, packed so that all rows of a component share one look at them.
//! - The sums of the M-step are kept, and only rows that change their component are moved in them (E36).
//! - In the first iterations components move from where they hardly matter to where two would do better than one;
//!   a move is made only if it is sure to raise the free energy (E37).

mod assignment;
mod groups;
mod moves;
mod nearby;
mod phase;
mod subspace;
mod sums;
mod view;
mod worth;

use crate::coreset::{Coreset, Lightweight, Subset};
use crate::data::{Data, DenseRows, Frame};
use crate::em::{Kept, Observer, PhaseReport};
use crate::error::{Error, Result, positive};
use crate::float::Float;
use crate::m_step::SharedIsotropicMixture;
use crate::mixture::Mixture;
use crate::rng::{self, Streams};
use crate::stage::Stage;
use assignment::Assignment;
use phase::Phase;
use std::time::{Duration, Instant};
use subspace::Subspace;
use view::View;

/// What follows EM: nothing, `()`, or [`Refine`].
pub trait Refinement<D: Data, M>: Stage {
    /// Whether it searches all rows it begins with: EM without an M-step before it would search them twice.
    #[doc(hidden)]
    const SEARCHES: bool;

    /// Seedings of `first` out of `rows` rows that it wants to choose from.
    #[doc(hidden)]
    fn starts(&self, _first: usize, _rows: usize) -> usize {
        1
    }

    /// Goes on from the best of `starts`, which are about the rows of `coreset` (all, if there is none).
    ///
    /// # Errors
    /// Data with more rows than can be counted.
    #[doc(hidden)]
    fn refine(
        &self,
        data: &D,
        coreset: Option<&D>,
        starts: Vec<Run<M>>,
        streams: Seeded,
        observer: &mut Watch<'_, '_, M>,
    ) -> Result<Run<M>>;
}

/// A model and the phases it went through, from the seeds on.
#[doc(hidden)]
#[derive(Debug)]
pub struct Run<M> {
    pub(crate) model: M,
    /// What the last search found: nothing before the first.
    pub(crate) kept: Option<Kept>,
    pub(crate) phases: Vec<PhaseReport>,
    /// The rows the last phase ran on; `None` for all.
    pub(crate) rows: Option<Subset>,
    /// Distance evaluations to draw coresets.
    pub(crate) evaluations: u64,
    /// Time to draw coresets.
    pub(crate) drawing: Duration,
    /// Distance evaluations of the starts that were left for this one.
    pub(crate) left: u64,
}

impl<M> Run<M> {
    /// At the seeds.
    pub(crate) fn new(model: M) -> Self {
        Self {
            model,
            kept: None,
            phases: Vec::new(),
            rows: None,
            evaluations: 0,
            drawing: Duration::ZERO,
            left: 0,
        }
    }

    /// Distance evaluations to search, on the way here and in the starts that were left.
    pub(crate) fn searched(&self) -> u64 {
        let phases = self.phases.iter().map(|phase| phase.evaluations);
        self.left + phases.sum::<u64>()
    }

    /// The better of two, by the last free energy; the first if they are as good.
    pub(crate) fn better(self, other: Self) -> Self {
        let left = self.searched() + other.searched();
        let mut best = if other.free_energy() > self.free_energy() {
            other
        } else {
            self
        };
        best.left += left - best.searched();
        best
    }

    /// The last free energy.
    pub(crate) fn free_energy(&self) -> f64 {
        let energies = self.phases.iter().flat_map(|phase| &phase.free_energies);
        energies.copied().last().unwrap_or(f64::NEG_INFINITY)
    }
}

/// The random streams of a run.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Seeded(pub(crate) Streams);

/// The observer of a run.
#[doc(hidden)]
pub struct Watch<'a, 'b, M>(pub(crate) &'a mut Observer<'b, M>);

impl<M> std::fmt::Debug for Watch<'_, '_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

impl Stage for () {
    fn check(&self, _clusters: usize) -> Result<()> {
        Ok(())
    }
}

/// No refinement: the fit ends with EM.
impl<D: Data, M> Refinement<D, M> for () {
    const SEARCHES: bool = false;

    fn refine(
        &self,
        _: &D,
        _: Option<&D>,
        starts: Vec<Run<M>>,
        _: Seeded,
        _: &mut Watch<'_, '_, M>,
    ) -> Result<Run<M>> {
        Ok(best(starts))
    }
}

/// The best of some runs, of which there is one at least.
fn best<M>(runs: Vec<Run<M>>) -> Run<M> {
    let best = runs.into_iter().reduce(Run::better);
    best.expect("at least one start")
}

/// k-means on the coreset, then on a larger one (as an option), then on all rows, with few looks at each row.
///
/// For dense rows and [`SharedIsotropic`](crate::m_step::SharedIsotropic). The free energy of every phase rises; the
/// rows the model is about at the end are all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refine {
    near: usize,
    coordinates: Option<usize>,
    through: Option<Lightweight>,
    starts: usize,
    moves: usize,
    tolerance: f64,
    max_iterations: usize,
}

impl Refine {
    /// The defaults below.
    #[must_use]
    pub fn new() -> Self {
        Self {
            near: 48,
            coordinates: None,
            through: None,
            starts: 1,
            moves: 3,
            tolerance: 1e-3,
            max_iterations: 12,
        }
    }

    /// Centres a row looks at: its own and the nearest others. Default 48: three panels of the kernel; fewer leave
    /// rows of many columns where they are. A third of them (16 at least) in the last phase, if there was one in a subspace before. All
    /// centres, and all [`coordinates`](Self::coordinates), make it Lloyd's algorithm.
    #[must_use]
    pub fn near(self, near: usize) -> Self {
        Self { near, ..self }
    }

    /// Coordinates of the principal subspace that all phases but the last look at, p. Default about $2 \sqrt d$, where that
    /// is at most $d / 2$ and less than $k$ (looking at all means on all columns costs less than projecting the rows); as
    /// many as there are columns, or more: none but the last phase on all columns.
    ///
    /// The subspace is dropped if more than half of the quantization error of the seeds, on a sample of the rows, lies
    /// beside it; after EM there is none, as it would give up what EM has found beside it.
    #[must_use]
    pub fn coordinates(self, coordinates: usize) -> Self {
        Self {
            coordinates: Some(coordinates),
            ..self
        }
    }

    /// A larger coreset between the coreset and all rows, as long as it is at most a quarter of them: a larger one gains less than an iteration on all rows, and takes
    /// longer. Default none.
    #[must_use]
    pub fn through(self, coreset: Lightweight) -> Self {
        Self {
            through: Some(coreset),
            ..self
        }
    }

    /// Seedings to start from, as long as their rows together are at most half of all: each goes through the phase on the
    /// first coreset, and the one with the largest free energy goes on. Default 1; more are for few clusters, which moves
    /// help little.
    #[must_use]
    pub fn starts(self, starts: usize) -> Self {
        Self { starts, ..self }
    }

    /// Rounds of split and merge in every phase, at most: they end after a round that moved fewer than one component in a
    /// hundred. Default 3.
    #[must_use]
    pub fn moves(self, moves: usize) -> Self {
        Self { moves, ..self }
    }

    /// Largest relative change of the quantization error that counts as converged. Default 1e-3, where an iteration
    /// gains a tenth of a percent; three times as much on coresets, twice as much in the phase on all columns after those in a subspace.
    #[must_use]
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Most M-steps per phase. Default 12.
    #[must_use]
    pub fn max_iterations(self, max_iterations: usize) -> Self {
        Self {
            max_iterations,
            ..self
        }
    }
}

impl Default for Refine {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage for Refine {
    fn check(&self, clusters: usize) -> Result<()> {
        positive("near", self.near)?;
        positive("starts", self.starts)?;
        if let Some(coordinates) = self.coordinates {
            positive("coordinates", coordinates)?;
        }
        if let Some(coreset) = &self.through {
            coreset.check(clusters)?;
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let rule = "must be finite and not negative";
            return Err(Error::parameter("tolerance", self.tolerance, rule));
        }
        Ok(())
    }
}

/// How much looser the tolerance is on coresets: what they would still gain, more rows gain as well.
const LOOSER: f64 = 3.0;

/// How much looser it is in the phase on all columns after those in a subspace: an iteration takes several times as long.
const LAST: f64 = 2.0;

/// How many times fewer near centres are enough for rows whose component was found in a subspace.
const FEWER: usize = 3;

/// They look at as many near centres in any case, or at all that the others look at.
const LEAST: usize = 16;

impl<F: Float, D: Data<Float = F, Rows = DenseRows<F>>> Refinement<D, SharedIsotropicMixture<F>>
    for Refine
{
    const SEARCHES: bool = true;

    fn starts(&self, first: usize, rows: usize) -> usize {
        self.starts.min(rows / 2 / first).max(1)
    }

    fn refine(
        &self,
        data: &D,
        coreset: Option<&D>,
        mut starts: Vec<Run<SharedIsotropicMixture<F>>>,
        Seeded(streams): Seeded,
        Watch(observer): &mut Watch<'_, '_, SharedIsotropicMixture<F>>,
    ) -> Result<Run<SharedIsotropicMixture<F>>> {
        if u32::try_from(data.len()).is_err() {
            return Err(Error::parameter(
                "rows",
                data.len(),
                "must be below 2^32 to refine",
            ));
        }
        // EM has found means on all columns and components for its rows: both are kept, so that F goes on from there.
        let after_em = starts[0].kept.is_some();
        if observer.stopped() && after_em {
            return Ok(best(starts));
        }
        // The coreset of the run, a larger one, all rows.
        let frame = Mixture::<D>::frame(&starts[0].model).clone();
        let mut larger = None;
        if let (Some(first), Some(through)) = (coreset, &self.through)
            && through.draws() > first.len()
            && through.draws() <= data.len() / 4
            && !observer.stopped()
        {
            let started = Instant::now();
            let mut rng = streams.at(rng::Stage::Coreset, 1, 0);
            larger = Coreset::<D>::sample(through, data, &frame, &mut rng)?;
            for run in &mut starts {
                run.evaluations += larger.as_ref().map_or(0, |subset| subset.evaluations);
                run.drawing = started.elapsed();
            }
        }
        let selected = larger
            .as_ref()
            .map(|subset| data.select(&subset.rows, subset.weights.clone()));
        let row_sets = [
            coreset.map(|rows| (rows, starts[0].rows.take())),
            selected.as_ref().map(|rows| (rows, larger)),
            Some((data, None)),
        ];

        let subspace = match after_em {
            false => self.subspace(coreset.unwrap_or(data), &frame, &starts[0].model, streams),
            true => None,
        };
        for (place, (rows, subset)) in row_sets.into_iter().flatten().enumerate() {
            // A run ends after a search, also one that was stopped before it.
            if observer.stopped() && !starts[0].phases.is_empty() {
                return Ok(best(starts));
            }
            if place > 0 {
                // Components of other rows.
                starts[0].kept = None;
            }
            let started = Instant::now();
            let phase = Phase {
                near: self.near,
                moves: self.moves,
                tolerance: if subset.is_some() { LOOSER } else { 1.0 } * self.tolerance,
                max_iterations: self.max_iterations,
                streams,
                started,
            };
            let mut run = match &subspace {
                None => phase.best(&View::whole(rows, &frame), starts, observer),
                Some(subspace) => {
                    let (projected, beside) = subspace.project(rows, &frame);
                    let view = View::inside(&projected, beside, rows.dim(), subspace);
                    phase.best(&view, starts, observer)
                }
            };
            run.rows = subset;
            starts = vec![run];
        }
        let mut run = best(starts);
        if subspace.is_some() && !observer.stopped() {
            // All columns again, from the components that the rows have.
            let phase = Phase {
                near: self.near.div_ceil(FEWER).max(self.near.min(LEAST)),
                moves: 0,
                tolerance: LAST * self.tolerance,
                max_iterations: self.max_iterations,
                streams,
                started: Instant::now(),
            };
            phase.run(&View::whole(data, &frame), &mut run, observer);
        }
        Ok(run)
    }
}

impl Refine {
    /// The subspace to work in, if it is worth it: it has at most half of the columns, and at least half of the quantization
    /// error of the model in it.
    fn subspace<F: Float, D: Data<Float = F, Rows = DenseRows<F>>>(
        &self,
        data: &D,
        frame: &Frame<F>,
        model: &SharedIsotropicMixture<F>,
        streams: Streams,
    ) -> Option<Subspace<F>> {
        let d = frame.dim();
        let (p, most) = match self.coordinates {
            None => {
                let clusters = Mixture::<D>::centres(model).len();
                (Subspace::<F>::default_dim(d), (d / 2).min(clusters - 1))
            }
            Some(p) => (p, d - 1),
        };
        if p > most {
            return None;
        }
        let mut rng = streams.at(rng::Stage::Subspace, 0, 0);
        let (subspace, sample) = Subspace::principal(data, frame, p, &mut rng);
        let (projected, beside) = subspace.project(&sample, frame);
        let view = View::inside(&projected, beside, d, &subspace);
        let centres = view.enter(Mixture::<D>::centres(model));
        let (assignment, _) = Assignment::nearest(&projected, view.frame, &centres, self.near);
        let inside = assignment.squared(&projected);
        (beside <= inside).then_some(subspace)
    }
}

#[cfg(test)]
mod tests {
    use super::moves::split_and_merge;
    use super::nearby::Nearby;
    use super::sums::Sums;
    use super::*;
    use crate::data::{Centres, Dense};
    use crate::rng::Rng;
    use ndarray::{Array1, Array2};

    /// The kept sums are the naive ones after any changes, and every round of moves lowers the error by itself: before
    /// the means follow, and before any row looks for a nearer one.
    #[test]
    fn moves_lower_the_error_by_themselves() {
        let mut moved = 0;
        for seed in 0..200 {
            let mut rng = Rng::from_seed(seed);
            let (n, d, k) = (200 + rng.below(200), 1 + rng.below(3), 10 + rng.below(40));
            let blobs = Array2::from_shape_fn((12, d), |_| 5.0 * rng.normal());
            let x = Array2::from_shape_fn((n, d), |(n, j)| blobs[[n % 12, j]] + rng.normal());
            let w = Array1::from_shape_fn(n, |n| [1.0, 4.0, 0.25][n % 3]);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let frame = data.frame();
            let mut centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut assignment, _) = Assignment::nearest(&data, &frame, &centres, k);
            let mut sums = Sums::of(&data, &frame, &centres, &assignment);
            for round in 0..4 {
                let before = centres.clone();
                sums.move_centres(&mut centres);
                assignment.forget();
                let (mut near, _) = Nearby::new(&centres, 6);
                let _ = near.follow(&before, &centres);
                let (changes, _) = assignment.search(&data, &frame, &centres, &near);
                assignment.apply(&changes);
                sums.apply(&data, &frame, &centres, &assignment, &changes);
                let error = sums.squared(&centres);
                assert!((error - naive(&data, &frame, &centres, &assignment)).abs() < 1e-9 * error);

                let streams = (Streams::new(seed, 0), round);
                let made = split_and_merge(&data, &frame, &mut centres, &assignment, streams);
                assignment.apply(&made.changes);
                sums.renew(&data, &frame, &centres, &assignment, &made.stale);
                let after = sums.squared(&centres);
                assert!((after - naive(&data, &frame, &centres, &assignment)).abs() < 1e-9 * error);
                assert!(
                    after <= error,
                    "seed {seed}, round {round}: {error} to {after}"
                );
                assert_eq!(made.moved > 0, after < error);
                moved += made.moved;
            }
        }
        assert!(moved > 1_000, "{moved}");
    }

    fn naive(
        data: &Dense<'_, f64>,
        frame: &crate::data::Frame<f64>,
        centres: &Centres<f64>,
        assignment: &Assignment<f64>,
    ) -> f64 {
        let mut rows = DenseRows::default();
        let mut total = 0.0;
        for (n, &label) in assignment.labels().iter().enumerate() {
            data.load(n..n + 1, frame, &mut rows);
            let places = rows.row(0).iter().zip(centres.row(label as usize));
            total += data.weight(n) * places.map(|(x, mu)| (x - mu).powi(2)).sum::<f64>();
        }
        total
    }
}
