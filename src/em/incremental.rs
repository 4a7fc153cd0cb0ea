//! Passes whose sums are kept: rows that the bounds settle are not read, and those that change their component are moved in the sums.
//! For supports of width 1, one shared variance and dense rows (E35, E36).

use super::by_component::ByComponent;
use super::kept::{Kept, KeptRows};
use super::pass::shard_rows;
use super::saved::{SavedPass, SavedPhase};
use super::vacant::{self, Filled};
use super::{AnyModel, Ended, Pass, PhaseReport, SearchResult, SetUp, Stages, Supports};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::{Centres, View};
use crate::e_step::{Assignment, KeptSums};
use crate::io::{FileFault, rule};
use crate::m_step::Moments;
use std::borrow::Cow;

/// A phase that keeps its sums, whatever the order of its rows is.
pub(crate) struct IncrementalPass<'a, F: Float> {
    phase: SetUp<'a, F>,
    kept: Kept<F>,
    /// The sums for the next M-step, of a search of rows in their order.
    moments: Option<Moments>,
    /// Rows for components without mass, after this search.
    vacant: Option<Filled<F>>,
}

impl<'a, F: Float> IncrementalPass<'a, F> {
    /// From the components of the rows where they are known, or from the nearest centres; this first search starts the variance.
    pub(crate) fn new(mut phase: SetUp<'a, F>, report: &mut PhaseReport) -> Result<Self> {
        let rows = Box::new(ByComponent::new(&mut phase, report)?);
        let sums = KeptSums::of(phase.view(), phase.centres(), &rows.assignment)?;
        let first = phase.likelihood(phase.squared(&sums));
        phase.calibrate(&first);
        let kept = Kept::new(KeptRows::ByComponent(rows), sums);
        Ok(Self::of(phase, kept))
    }

    /// Goes on with what was kept.
    pub(super) fn of(phase: SetUp<'a, F>, kept: Kept<F>) -> Self {
        Self {
            phase,
            kept,
            moments: None,
            vacant: None,
        }
    }

    /// In the middle of a phase, from a checkpoint.
    pub(crate) fn resumed(
        mut phase: SetUp<'a, F>,
        mut kept: Kept<F>,
    ) -> std::result::Result<Self, FileFault> {
        phase.calibrated = true;
        let centres = phase.centres();
        let n = phase.data.len();
        let k = centres.len();
        let dim = centres.dim();
        kept.sums.check(k, dim)?;
        let has_bounds = phase.stages.e_step.bounds().is_some();
        let sound = match &mut kept.rows {
            KeptRows::InOrder(rows) => {
                rows.check(n, shard_rows(phase.data, k, 0), k)?;
                !has_bounds && phase.is_nearest() && kept.before.is_some()
            }
            KeptRows::ByComponent(rows) => {
                rows.check(n, k)?;
                has_bounds
            }
        };
        rule(sound, "pass", "must be of the E-step")?;
        let of_model = |centres: &Centres<F>| (centres.len(), centres.dim()) == (k, dim);
        let sound = kept.before.as_ref().is_none_or(of_model);
        rule(sound, "centres before", "must be those of the model")?;
        Ok(Self::of(phase, kept))
    }

    /// Rows for the components without mass (E54).
    fn vacant(&self, report: &mut PhaseReport) -> Result<Option<Filled<F>>> {
        let view = self.phase.view();
        let Kept { sums, rows, .. } = &self.kept;
        report.count(view.len() as u64);
        let mass = |c| sums.mass(c);
        let to_means = |centres: &mut Centres<F>| sums.move_centres(centres);
        let labels = rows.labels();
        vacant::fill(view, self.phase.centres(), &mass, &to_means, &labels, &[])
    }
}

impl<'a, F: Float> Pass<'a, F> for IncrementalPass<'a, F> {
    fn search(&mut self, report: &mut PhaseReport) -> Result<SearchResult> {
        let Self { phase, kept, .. } = self;
        let Kept { rows, sums, before } = kept;
        if let Some(before) = before.take() {
            match rows {
                KeptRows::InOrder(rows) => {
                    let evaluations = rows.search(phase.view(), &before, phase.centres(), sums)?;
                    report.count(evaluations);
                }
                KeptRows::ByComponent(rows) => rows.follow(phase, sums, &before, report)?,
            }
        }
        report.zero_mass = sums.zero_mass();
        let likelihood = match rows {
            KeptRows::InOrder(_) => {
                let (moments, likelihood) = phase.moments(sums);
                report.at_floor = moments.with_enough_rows(&phase.model().at_floor());
                self.moments = Some(moments);
                likelihood
            }
            // Components may move before the M-step.
            KeptRows::ByComponent(_) => phase.likelihood(phase.squared(sums)),
        };
        let free_energy = phase.free_energy(&likelihood);
        let (may_fill, settles) = match rows {
            KeptRows::InOrder(_) => (true, false),
            // Split and merge moves components without mass first, to better places.
            KeptRows::ByComponent(rows) => {
                (rows.moves == 0, rows.settles(phase, &likelihood, report))
            }
        };
        // After the last M-step none follows.
        let more = report.steps() < phase.rule.max_iterations;
        if more && may_fill && report.zero_mass > 0 && (settles || rows.is_exact(phase)) {
            self.vacant = self.vacant(report)?;
        }
        let Self { phase, kept, .. } = self;
        let Kept { rows, sums, .. } = kept;
        let would_end = more && settles && self.vacant.is_none();
        let pending = match rows {
            KeptRows::InOrder(_) => false,
            KeptRows::ByComponent(rows) => rows.is_pending(phase, sums, likelihood.best, would_end),
        };
        Ok(SearchResult {
            likelihood,
            free_energy,
            pending: pending || self.vacant.is_some(),
        })
    }

    fn move_components(&mut self, report: &mut PhaseReport) -> Result<()> {
        let Self { phase, kept, .. } = self;
        let Kept { rows, sums, before } = kept;
        match (rows, self.vacant.take()) {
            (KeptRows::InOrder(_), None) => Ok(()),
            (KeptRows::InOrder(_), Some(filled)) => {
                // The sums say nothing of these components: the M-step leaves them there, and the next search finds them.
                *before = Some(phase.centres().clone());
                phase.stages.place(filled.centres)
            }
            (KeptRows::ByComponent(rows), None) => rows.move_components(phase, sums, report),
            (KeptRows::ByComponent(rows), Some(filled)) => rows.fill(filled, phase, sums),
        }
    }

    fn update(&mut self, _: &PhaseReport) -> Result<()> {
        let Self { phase, kept, .. } = self;
        let before = phase.centres().clone();
        let mut moments = match self.moments.take() {
            Some(moments) => moments,
            None => phase.moments(&kept.sums).0,
        };
        if let KeptRows::ByComponent(rows) = &kept.rows
            && !rows.exactly
        {
            moments.step = phase.step;
        }
        phase.stages.update_from(moments)?;
        kept.before.get_or_insert(before);
        Ok(())
    }

    fn stages(&mut self) -> &mut Stages<'a, F> {
        &mut self.phase.stages
    }

    fn found(&mut self, end: bool) -> Ended<F> {
        if end {
            // They may take as much memory as the copy of the model.
            self.moments = None;
        }
        let k = self.phase.centres().len();
        let exact = self.kept.rows.is_exact(&self.phase);
        let supports = Supports::of_labels(self.kept.rows.labels(), k);
        self.phase.ended(supports, exact)
    }

    fn save<'b>(&'b self, report: &'b PhaseReport) -> Option<SavedPhase<'b, F, AnyModel<F>>> {
        let pass = SavedPass::Incremental(Box::new(Cow::Borrowed(&self.kept)));
        SavedPhase::of(&self.phase.stages, report, pass)
    }

    fn next(self: Box<Self>) -> Box<dyn Pass<'a, F> + 'a> {
        self
    }
}

/// The quantization error of some centres on these rows, and the number of distance evaluations.
pub(crate) fn error_of<F: Float>(view: View<'_, F>, centres: &Centres<F>) -> Result<(f64, u64)> {
    let (assignment, evaluations, _) = Assignment::exhaustive(view, centres)?;
    Ok((assignment.squared(view), evaluations))
}

/// The means after an iteration of k-means from some centres, and the number of distance evaluations.
pub(crate) fn iterated<F: Float>(
    view: View<'_, F>,
    mut centres: Centres<F>,
) -> Result<(Centres<F>, u64)> {
    let (assignment, evaluations, _) = Assignment::exhaustive(view, &centres)?;
    KeptSums::of(view, &centres, &assignment)?.move_centres(&mut centres);
    Ok((centres, evaluations))
}

/// Whether most of the quantization error of some centres lies outside a subspace: then the subspace is not used. The rows are
/// a sample in the subspace, and `centres` are in it as well.
pub(crate) fn outside<F: Float>(
    view: View<'_, F>,
    centres: &Centres<F>,
    near: usize,
) -> Result<bool> {
    let (assignment, ..) = Assignment::first(view, centres, near.min(centres.len()))?;
    Ok(view.data.residual().squared > assignment.squared(view))
}
