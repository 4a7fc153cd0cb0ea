//! One phase of k-means on some rows: search, sum up, move the means, until the error settles.

use super::Run;
use super::assignment::Assignment;
use super::moves::split_and_merge;
use super::nearby::Nearby;
use super::sums::Sums;
use super::view::View;
use super::worth::Worth;
use crate::data::{Data, DenseRows};
use crate::em::{Kept, Observer, PhaseReport, Progress, Stop};
use crate::float::Float;
use crate::m_step::SharedIsotropicMixture;
use crate::mixture::Mixture;
use crate::posterior::Likelihood;
use crate::rng::Streams;
use std::ops::ControlFlow;
use std::time::Instant;

/// What a phase goes by.
pub(super) struct Phase {
    /// Centres that a row looks at.
    pub(super) near: usize,
    /// Rounds of moves, at most.
    pub(super) moves: usize,
    /// Relative change of the error that counts as settled.
    pub(super) tolerance: f64,
    /// M-steps, at most.
    pub(super) max_iterations: usize,
    pub(super) streams: Streams,
    pub(super) started: Instant,
}

/// Moves end after a round that moved fewer than one in so many components.
const FEW: usize = 100;

impl Phase {
    /// The best of some runs after the phase.
    pub(super) fn best<F: Float, D: Data<Float = F, Rows = DenseRows<F>>>(
        &self,
        view: &View<'_, D>,
        runs: Vec<Run<SharedIsotropicMixture<F>>>,
        observer: &mut Observer<'_, SharedIsotropicMixture<F>>,
    ) -> Run<SharedIsotropicMixture<F>> {
        let mut best: Option<Run<_>> = None;
        let mut started = self.started;
        for mut run in runs {
            // A run ends after a search: once stopped, those that had one stay as they are, and one has to have one.
            if best.is_none() || !observer.stopped() {
                Self { started, ..*self }.run(view, &mut run, observer);
                started = Instant::now();
            } else if run.phases.is_empty() {
                continue;
            }
            best = Some(match best {
                Some(best) => best.better(run),
                None => run,
            });
        }
        best.expect("at least one run")
    }

    /// k-means from the model's means (E9, E35 to E40), and from the components of the rows where these are kept.
    pub(super) fn run<F: Float, D: Data<Float = F, Rows = DenseRows<F>>>(
        &self,
        view: &View<'_, D>,
        run: &mut Run<SharedIsotropicMixture<F>>,
        observer: &mut Observer<'_, SharedIsotropicMixture<F>>,
    ) {
        let View { data, frame, .. } = *view;
        let known = run.kept.take().map(Kept::into_labels);
        let model = &mut run.model;
        let mut centres = view.enter(Mixture::<D>::centres(model));
        let (k, weight) = (centres.len(), data.summary().total_weight);
        let entries = weight * view.columns as f64;
        let worth = Worth {
            near: self.near,
            tolerance: self.tolerance,
        };

        let (mut assignment, mut evaluations) = match &known {
            Some(labels) => (Assignment::of_labels(labels, k), 0),
            None => Assignment::first(data, frame, &centres, &worth, view.beside),
        };
        let mut sums = Sums::of(data, frame, &centres, &assignment);
        let mut nearby: Option<Nearby<F>> = None;
        // Moves need bounds, which rows with labels do not have before their first look.
        let mut looked = known.is_none();
        // The lists of near centres were others when rows last looked.
        let mut stale = false;
        if run.phases.is_empty() {
            // The first search starts the variance (E8), and in a subspace the means are those it holds.
            let error = sums.squared(&centres) + view.beside;
            model.set_variance(error / entries);
            model.set_centres(view.leave(&centres));
        }
        let (mut moves, mut free_energies, mut errors) = (self.moves, Vec::new(), Vec::new());
        let stop = loop {
            let error = sums.squared(&centres) + view.beside;
            let likelihood = Likelihood {
                weight,
                entries,
                best: error,
                spread: 0.0,
            };
            let free_energy = likelihood.free_energy(Mixture::<D>::log_joint(model));
            free_energies.push(free_energy);
            errors.push(error);
            let steps = errors.len() - 1;
            let progress = Progress::Iteration {
                iteration: steps,
                free_energy,
                evaluations,
                elapsed: self.started.elapsed(),
                model,
            };
            if observer.see(progress) == ControlFlow::Break(()) {
                break Stop::Observer;
            }
            let settled = |a: f64, b: f64| moves == 0 && (a - b).abs() <= self.tolerance * b;
            if matches!(errors[..], [.., a, b] if settled(a, b)) {
                break Stop::Converged;
            }
            if steps >= self.max_iterations {
                break Stop::MaxIterations;
            }
            if moves > 0 && looked {
                let round = run.phases.len() << 16 | steps;
                let streams = (self.streams, round);
                let made = split_and_merge(data, frame, &mut centres, &assignment, streams);
                evaluations += made.evaluations;
                if made.changes.is_empty() {
                    moves = 0;
                } else {
                    // A round after one that moved hardly any would gain less than the looks it needs are worth.
                    let few = made.moved < k / FEW;
                    moves = if few { 0 } else { moves - 1 };
                    assignment.apply(&made.changes);
                    sums.renew(data, frame, &centres, &assignment, &made.stale);
                    // The centres near a row's own are others now.
                    (nearby, stale) = (None, true);
                }
            }

            let before = centres.clone();
            sums.move_centres(&mut centres);
            let variance = (sums.squared(&centres) + view.beside) / entries;
            model.set_variance(variance);
            if observer.looks() {
                model.set_centres(view.leave(&centres));
            }

            let mut near = match nearby.take() {
                Some(near) => near,
                None => {
                    // What rows know of the centres before is void; and moves go by looks at all rows.
                    if stale || moves > 0 {
                        assignment.forget();
                    }
                    stale = false;
                    let (near, looks) = Nearby::new(&centres, self.near);
                    evaluations += looks;
                    near
                }
            };
            evaluations += near.follow(&before, &centres);
            let (changes, looks) = assignment.search(data, frame, &centres, &near);
            evaluations += looks;
            assignment.apply(&changes);
            sums.apply(data, frame, &centres, &assignment, &changes);
            looked = true;

            // Rows that their lists do not cover, where that is worth it: from time to time, and before the phase ends.
            let error_now = sums.squared(&centres) + view.beside;
            let ends = steps + 1 == self.max_iterations
                || moves == 0 && (error - error_now).abs() <= self.tolerance * error_now;
            let due = (steps + 1).is_power_of_two() && (steps + 1).trailing_zeros() % 2 == 0;
            if ends || due {
                let (from, looks) =
                    worth.is_worth_it(data, frame, &centres, &assignment, &near, error_now);
                evaluations += looks;
                if let Some(from) = from {
                    let (changes, looks) =
                        assignment.widen(data, frame, &centres, Some(&near), from);
                    evaluations += looks;
                    assignment.apply(&changes);
                    sums.apply(data, frame, &centres, &assignment, &changes);
                    let gain = error_now - sums.squared(&centres) - view.beside;
                    if !changes.is_empty() && gain >= self.tolerance * error_now {
                        // Centres are near others now than when the lists were made: new ones are worth a look at all rows.
                        stale = true;
                        continue;
                    }
                }
            }
            nearby = Some(near);
        };
        if free_energies.len() > 1 {
            model.set_centres(view.leave(&centres));
        }
        run.phases.push(PhaseReport {
            rows: data.len(),
            iterations: free_energies.len() - 1,
            free_energies,
            stop,
            evaluations,
            emptied: sums.emptied(),
            unseen: 0,
            elapsed: self.started.elapsed(),
        });
        run.kept = Some(Kept::of_labels(assignment.labels(), k));
    }
}
