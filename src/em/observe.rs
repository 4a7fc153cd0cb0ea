//! Progress for observers: one closure sees a fit from the coreset to the last iteration, and can stop it.

use crate::base::float::Float;
use crate::base::share::Share;
use crate::model::Mixture;
use std::time::Duration;

/// The progress of a fit, as an observer sees it. Times count from the start of the stage, evaluations within it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a, F: Float> {
    /// A coreset is drawn (once per fit, and once for each larger one).
    #[non_exhaustive]
    Coreset {
        /// Its rows.
        rows: usize,
        /// Sum of their weights.
        weight: f64,
        /// Distance evaluations.
        evaluations: u64,
        /// Time taken.
        elapsed: Duration,
    },
    /// The seeds of a restart, or of one of its starts, are about to be chosen.
    #[non_exhaustive]
    Seeding {
        /// Which restart, from 0.
        restart: usize,
        /// Which of its starts, from 0.
        start: usize,
        /// Rows to choose from.
        rows: usize,
        /// How many seeds.
        clusters: usize,
        /// How much of it is done, while it lasts.
        share: &'a Share,
    },
    /// The seeds of a restart, or of one of its [starts](crate::Phase::starts), are chosen.
    #[non_exhaustive]
    Seeded {
        /// Which restart, from 0.
        restart: usize,
        /// Which of its starts, from 0.
        start: usize,
        /// Distance evaluations.
        evaluations: u64,
        /// Time taken.
        elapsed: Duration,
    },
    /// A search is done: the model, and the free energy of its supports. Phases of restarts and starts that are not kept
    /// are seen as well.
    #[non_exhaustive]
    Iteration {
        /// Which restart, from 0.
        restart: usize,
        /// Which phase of it, from 0.
        phase: usize,
        /// Rows of the phase.
        rows: usize,
        /// M-steps so far.
        iteration: usize,
        /// Most M-steps of the phase. It often converges before.
        limit: usize,
        /// Free energy under the current model.
        free_energy: f64,
        /// Distance evaluations of the searches of this phase so far.
        evaluations: u64,
        /// Time since the phase began.
        elapsed: Duration,
        /// The current model.
        model: &'a dyn Mixture<F>,
    },
}
