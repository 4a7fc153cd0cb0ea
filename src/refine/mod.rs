//! Stage 6, refinement: k-means on more and more rows, from the model of EM, as far as all of them.
//!
//! EM on a coreset leaves a model that is right for the coreset. [`Refine`] takes it to the data itself: phases of
//! k-means (supports of width 1, E9) on the coreset, a larger one, and all rows, each from the means of the one before.
//! Most rows are settled after a few iterations, and the work goes by those that are not:
//!
//! - Rows are kept by component, with bounds on their distances; rows that the bounds settle are not read (E35).
//! - A row looks at the centres near its own, packed so that all rows of a component share one look at them.
//! - The sums of the M-step are kept, and only rows that change their component are moved in them (E36).
//! - In the first iterations components move from where they hardly matter to where two would do better than one;
//!   a move is made only if it is sure to raise the free energy (E37).

mod assignment;
mod moves;
mod nearby;
mod sums;

use crate::coreset::{Coreset, Lightweight, Subset};
use crate::data::{Centres, Data, DenseRows};
use crate::em::{Kept, Maximised, Observer, PhaseReport, Progress, Stop};
use crate::error::{Error, Result, positive};
use crate::float::Float;
use crate::m_step::SharedIsotropicMixture;
use crate::mixture::Mixture;
use crate::posterior::Likelihood;
use crate::rng::{self, Streams};
use crate::stage::Stage;
use assignment::Assignment;
use moves::split_and_merge;
use nearby::Nearby;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use sums::Sums;

/// What follows EM: nothing, `()`, or [`Refine`].
pub trait Refinement<D: Data, M>: Stage {
    /// Goes on from `run`, which is about the rows of `coreset` (all, if there is none).
    ///
    /// # Errors
    /// Data with more rows than can be counted.
    #[doc(hidden)]
    fn refine(
        &self,
        data: &D,
        coreset: Option<&D>,
        run: Run<M>,
        streams: Seeded,
        observer: &mut Watch<'_, '_, M>,
    ) -> Result<Run<M>>;
}

/// A run of EM, and the phases after it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Run<M> {
    pub(crate) last: Maximised<M>,
    /// The phases before the last.
    pub(crate) earlier: Vec<PhaseReport>,
    /// The rows the last phase ran on; `None` for all.
    pub(crate) rows: Option<Subset>,
    /// Distance evaluations to draw coresets.
    pub(crate) evaluations: u64,
    /// Time to draw coresets.
    pub(crate) drawing: Duration,
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
    fn refine(
        &self,
        _: &D,
        _: Option<&D>,
        run: Run<M>,
        _: Seeded,
        _: &mut Watch<'_, '_, M>,
    ) -> Result<Run<M>> {
        Ok(run)
    }
}

/// k-means on the coreset, then on a larger one (as an option), then on all rows, with few looks at each row.
///
/// For dense rows and [`SharedIsotropic`](crate::m_step::SharedIsotropic). The free energy of every phase rises; the
/// rows the model is about at the end are all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refine {
    near: usize,
    through: Option<Lightweight>,
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
            through: None,
            moves: 3,
            tolerance: 1e-3,
            max_iterations: 12,
        }
    }

    /// Centres a row looks at: its own and the nearest others. Default 48: three panels of the kernel; fewer leave
    /// rows of many columns where they are. All centres make it Lloyd's algorithm.
    #[must_use]
    pub fn near(self, near: usize) -> Self {
        Self { near, ..self }
    }

    /// A larger coreset between the coreset and all rows, as long as it is at most half of them. Default none.
    #[must_use]
    pub fn through(self, coreset: Lightweight) -> Self {
        Self {
            through: Some(coreset),
            ..self
        }
    }

    /// Rounds of split and merge in every phase, at most: they end after a round that moved fewer than one component in a
    /// hundred. Default 3.
    #[must_use]
    pub fn moves(self, moves: usize) -> Self {
        Self { moves, ..self }
    }

    /// Largest relative change of the quantization error that counts as converged. Default 1e-3, where an iteration
    /// gains a tenth of a percent; three times as much on coresets.
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

/// How much looser the tolerance is on coresets: what they would still gain, more rows gain as well.
const LOOSER: f64 = 3.0;

/// Moves end after a round that moved fewer than one in so many components.
const FEW: usize = 100;

impl Default for Refine {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage for Refine {
    fn check(&self, clusters: usize) -> Result<()> {
        positive("near", self.near)?;
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

impl<F: Float, D: Data<Float = F, Rows = DenseRows<F>>> Refinement<D, SharedIsotropicMixture<F>>
    for Refine
{
    fn refine(
        &self,
        data: &D,
        coreset: Option<&D>,
        mut run: Run<SharedIsotropicMixture<F>>,
        Seeded(streams): Seeded,
        Watch(observer): &mut Watch<'_, '_, SharedIsotropicMixture<F>>,
    ) -> Result<Run<SharedIsotropicMixture<F>>> {
        if observer.stopped() {
            return Ok(run);
        }
        if u32::try_from(data.len()).is_err() {
            return Err(Error::parameter(
                "rows",
                data.len(),
                "must be below 2^32 to refine",
            ));
        }
        // The coreset of the run, a larger one, all rows.
        let mut larger = None;
        if let (Some(first), Some(through)) = (coreset, &self.through)
            && through.draws() > first.len()
            && through.draws() <= data.len() / 2
        {
            let started = Instant::now();
            let mut rng = streams.at(rng::Stage::Coreset, 1, 0);
            let frame = Mixture::<D>::frame(&run.last.model);
            larger = Coreset::<D>::sample(through, data, frame, &mut rng)?;
            run.drawing = started.elapsed();
        }
        let selected = larger.as_ref().map(|subset| {
            run.evaluations += subset.evaluations;
            data.select(&subset.rows, subset.weights.clone())
        });
        let phases = [
            coreset.map(|rows| (rows, run.rows.take())),
            selected.as_ref().map(|rows| (rows, larger)),
            Some((data, None)),
        ];
        for (phase, (rows, subset)) in phases.into_iter().flatten().enumerate() {
            if observer.stopped() {
                break;
            }
            let tolerance = if subset.is_some() { LOOSER } else { 1.0 } * self.tolerance;
            run.rows = subset;
            let (model, streams) = (run.last.model.clone(), (streams, phase));
            let last = self.phase(rows, model, streams, tolerance, observer);
            let earlier = std::mem::replace(&mut run.last, last);
            run.earlier.push(earlier.phase);
        }
        Ok(run)
    }
}

impl Refine {
    /// One phase of k-means from the model's means (E9, E35 to E37).
    fn phase<F: Float, D: Data<Float = F, Rows = DenseRows<F>>>(
        &self,
        data: &D,
        mut model: SharedIsotropicMixture<F>,
        (streams, phase): (Streams, usize),
        tolerance: f64,
        observer: &mut Observer<'_, SharedIsotropicMixture<F>>,
    ) -> Maximised<SharedIsotropicMixture<F>> {
        let started = Instant::now();
        let frame = Mixture::<D>::frame(&model).clone();
        let mut centres: Centres<F> = Mixture::<D>::centres(&model).clone();
        let (k, weight) = (centres.len(), data.summary().total_weight);
        let entries = weight * data.dim() as f64;

        // Every row against every centre, once.
        let mut assignment = Assignment::nearest(data, &frame, &centres);
        let mut sums = Sums::of(data, &frame, &centres, &assignment);
        let mut evaluations = (data.len() * k) as u64;
        let mut nearby: Option<Nearby<F>> = None;
        let (mut moves, mut free_energies, mut errors) = (self.moves, Vec::new(), Vec::new());
        let stop = loop {
            let error = sums.squared(&centres);
            let likelihood = Likelihood {
                weight,
                entries,
                best: error,
                spread: 0.0,
            };
            let free_energy = likelihood.free_energy(Mixture::<D>::log_joint(&model));
            free_energies.push(free_energy);
            errors.push(error);
            let steps = errors.len() - 1;
            let progress = Progress::Iteration {
                iteration: steps,
                free_energy,
                evaluations,
                elapsed: started.elapsed(),
                model: &model,
            };
            if observer.see(progress) == ControlFlow::Break(()) {
                break Stop::Observer;
            }
            let settled = matches!(errors[..], [.., a, b] if (a - b).abs() <= tolerance * b);
            if moves == 0 && settled {
                break Stop::Converged;
            }
            if steps >= self.max_iterations {
                break Stop::MaxIterations;
            }
            if moves > 0 {
                let round = phase << 16 | steps;
                let made =
                    split_and_merge(data, &frame, &mut centres, &assignment, (streams, round));
                evaluations += made.evaluations;
                if made.changes.is_empty() {
                    moves = 0;
                } else {
                    // A round after one that moved hardly any would gain less than the looks it needs are worth.
                    let few = made.moved < k / FEW;
                    moves = if few { 0 } else { moves - 1 };
                    assignment.apply(&made.changes);
                    sums.renew(data, &frame, &centres, &assignment, &made.stale);
                    // The centres near a row's own are others now.
                    nearby = None;
                }
            }

            let before = centres.clone();
            sums.move_centres(&mut centres);
            let variance = sums.squared(&centres) / entries;
            model.renew(centres.clone(), variance);

            let mut near = match nearby.take() {
                Some(near) => near,
                None => {
                    assignment.forget();
                    evaluations += (k * k) as u64;
                    Nearby::new(&centres, self.near)
                }
            };
            evaluations += near.follow(&before, &centres);
            let (changes, looks) = assignment.search(data, &frame, &centres, &near);
            evaluations += looks;
            assignment.apply(&changes);
            sums.apply(data, &frame, &centres, &assignment, &changes);
            nearby = Some(near);
        };
        let phase = PhaseReport {
            rows: data.len(),
            iterations: free_energies.len() - 1,
            free_energies,
            stop,
            evaluations,
            emptied: sums.emptied(),
            unseen: 0,
            elapsed: started.elapsed(),
        };
        Maximised {
            model,
            kept: Kept::of_labels(assignment.labels(), k),
            phase,
            update: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
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
            let mut assignment = Assignment::nearest(&data, &frame, &centres);
            let mut sums = Sums::of(&data, &frame, &centres, &assignment);
            for round in 0..4 {
                let before = centres.clone();
                sums.move_centres(&mut centres);
                assignment.forget();
                let mut near = Nearby::new(&centres, 6);
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
