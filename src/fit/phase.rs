//! Phases as data: which rows, which columns, which search, how many moves.

use super::begin::Begin;
use crate::base::error::{Result, not_negative, positive, require};
use crate::base::float::Float;
use crate::base::stage::Stage;
use crate::e_step::EStep;
use crate::em::PhaseRows;
use std::sync::Arc;

/// One run of the EM loop, from the model of the phase before, or from the seeds.
///
/// A list of phases is set by [`Builder::phases`](crate::Builder::phases). The tolerance and the most iterations are the
/// builder's, for every phase.
#[derive(Clone, Debug)]
pub struct Phase<F: Float> {
    pub(crate) e_step: Arc<dyn EStep<F>>,
    pub(crate) outline: Outline,
    /// Whether the fit begins elsewhere.
    pub(crate) begin: Option<Arc<dyn Begin<F>>>,
}

/// The settings of a phase other than its E-step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) rows: PhaseRows,
    pub(crate) columns: Columns,
    pub(crate) starts: usize,
    pub(crate) moves: usize,
    pub(crate) transfers: usize,
    pub(crate) step: f64,
    pub(crate) factor: f64,
    pub(crate) after_subspace: bool,
}

impl Outline {
    /// Whether the phase is on all rows, and does not need another one in a subspace.
    pub(super) fn is_on_all(&self) -> bool {
        self.rows == PhaseRows::All && !self.after_subspace
    }
}

/// The columns of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Columns {
    /// All.
    All,
    /// A principal subspace of this many coordinates ([E39](crate::equations#e39)), one for all phases: for dense rows
    /// and one shared variance. It is dropped if more than half of the quantization error of the seeds, on a sample of
    /// the rows, lies outside it. On a [`Sketch`](crate::data::Sketch) there is none.
    Principal(usize),
}

/// The sizes on which a list of phases may depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Rows of positive weight, n.
    pub rows: usize,
    /// Columns, d.
    pub columns: usize,
    /// Clusters, k.
    pub clusters: usize,
}

impl<F: Float> Phase<F> {
    /// A phase on the rows of the coreset and all columns, without moves.
    pub fn new(e_step: impl EStep<F> + 'static) -> Self {
        Self {
            e_step: Arc::new(e_step),
            outline: Outline {
                rows: PhaseRows::Coreset,
                columns: Columns::All,
                starts: 1,
                moves: 0,
                transfers: 0,
                step: 1.0,
                factor: 1.0,
                after_subspace: false,
            },
            begin: None,
        }
    }

    /// Another E-step.
    #[must_use]
    pub fn e_step(mut self, e_step: impl EStep<F> + 'static) -> Self {
        self.e_step = Arc::new(e_step);
        self
    }

    /// The rows. Default: those of the coreset.
    #[must_use]
    pub fn rows(mut self, rows: PhaseRows) -> Self {
        self.outline.rows = rows;
        self
    }

    /// The columns. Default: all.
    #[must_use]
    pub fn columns(mut self, columns: Columns) -> Self {
        self.outline.columns = columns;
        self
    }

    /// How many seedings the first phase that runs starts from, as long as their rows together are at most half of all, or 65,536.
    /// Each goes through the phase, and the one with the largest free energy goes on. If phases before it are left out, the largest
    /// of their numbers counts. Default 1.
    #[must_use]
    pub fn starts(mut self, starts: usize) -> Self {
        self.outline.starts = starts;
        self
    }

    /// Rounds of split and merge ([E37](crate::equations#e37)), at most, where the E-step keeps bounds. They end after a round
    /// that is sure to gain less than 0.2 % of the quantization error, or than the tolerance, up to 2 %. Default 0.
    #[must_use]
    pub fn split_and_merge(mut self, rounds: usize) -> Self {
        self.outline.moves = rounds;
        self
    }

    /// Rounds of transfers ([E50](crate::equations#e50)), at most, where the E-step keeps bounds. In a round single rows go
    /// to another component because the error falls once the means follow (Hartigan's method). A row is a large part of
    /// its component where there are few rows per component, so transfers gain most there. Rounds begin once the phase
    /// would have ended, and end with one that gains less than the tolerance. Default 0.
    #[must_use]
    pub fn transfers(mut self, rounds: usize) -> Self {
        self.outline.transfers = rounds;
        self
    }

    /// How far centres move towards the means of their rows, and beyond them, where the E-step keeps bounds: 1 is the mean itself, and
    /// below 2 the free energy does not fall either (over-relaxation; [E62](crate::equations#e62)). Where iterations gain a little
    /// each for a long time, longer steps need fewer of them. Default 1.
    #[must_use]
    pub fn step(mut self, step: f64) -> Self {
        self.outline.step = step;
        self
    }

    /// Times the builder's tolerance. Default 1.
    #[must_use]
    pub fn tolerance_factor(mut self, factor: f64) -> Self {
        self.outline.factor = factor;
        self
    }

    /// Leaves the phase out where phases in a [subspace](Columns::Principal) ran on all columns, because it was dropped or
    /// is as large as the data.
    #[must_use]
    pub fn after_subspace(mut self) -> Self {
        self.outline.after_subspace = true;
        self
    }

    pub(crate) fn check(&self, clusters: usize) -> Result<()> {
        let Outline {
            rows,
            columns,
            starts,
            step,
            factor,
            ..
        } = self.outline;
        self.e_step.check(clusters)?;
        positive("starts", starts)?;
        if let Columns::Principal(coordinates) = columns {
            positive("coordinates", coordinates)?;
        }
        if let PhaseRows::Larger(coreset) = rows {
            coreset.check(clusters)?;
        }
        let rises = step > 0.0 && step < 2.0;
        require(rises, "step", step, "must be more than 0 and less than 2")?;
        not_negative("tolerance_factor", factor)
    }
}
