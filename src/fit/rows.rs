//! The rows that the phases of a fit run on: coresets are drawn, and rows projected, once per fit; restarts share them.

use super::builder::Settings;
use super::phase::{Columns, Phase};
use super::spent::{Context, Spent};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::{Purpose, Streams};
use crate::coreset::{Coreset, Subset};
use crate::data::{Data, Frame, Subspace, View};
use crate::em::{PhaseRows, Progress};
use crate::seed;
use std::sync::OnceLock;
use std::time::Instant;

/// Some rows, and the same in the subspace once a phase has asked for them.
pub(super) struct RowSet<'a, F: Float> {
    pub(super) which: PhaseRows,
    /// `None`: all rows as they are.
    selected: Option<(Box<dyn Data<F> + 'a>, Subset)>,
    projected: OnceLock<SentRows<F>>,
}

/// Rows that any thread may make for the others.
pub(super) type SentRows<F> = Box<dyn Data<F> + Send>;

/// A subspace, and a sample of rows in it.
pub(super) struct Principal<F: Float> {
    pub(super) subspace: Subspace<F>,
    pub(super) sample: SentRows<F>,
}

/// The phases of a fit on this data, each with the place of its rows, and the rows.
pub(super) struct Plan<'a, F: Float> {
    data: &'a dyn Data<F>,
    pub(super) frame: Frame<F>,
    pub(super) sets: Vec<RowSet<'a, F>>,
    pub(super) phases: Vec<Planned<F>>,
    principal: OnceLock<Principal<F>>,
}

pub(super) struct Planned<F: Float> {
    pub(super) phase: Phase<F>,
    pub(super) place: usize,
}

/// Coresets from a checkpoint, by place; none for all rows as they are.
pub(super) type Coresets = Vec<Option<Subset>>;

impl<'a, F: Float> Plan<'a, F> {
    /// Draws the coreset, or reads it from a checkpoint, and leaves out phases whose rows are not worth it.
    pub(super) fn new(
        data: &'a dyn Data<F>,
        frame: Frame<F>,
        coreset: &dyn Coreset<F>,
        list: Vec<Phase<F>>,
        settings: &Settings,
        mut known: Option<Coresets>,
        context: &mut Context<'_, F>,
    ) -> Result<Self> {
        let k = settings.clusters;
        seed::enough_rows(data, k, "data")?;
        let mut plan = Self {
            data,
            frame,
            sets: Vec::new(),
            phases: Vec::new(),
            principal: OnceLock::new(),
        };
        let which = PhaseRows::Coreset;
        let known_rows = known.as_mut();
        plan.draw(which, coreset, settings, known_rows, context)?;
        seed::enough_rows(plan.rows(0), k, "coreset")?;
        // The first phase that is sure to run has the starts of those before it as well.
        let mut starts = 1;
        let mut runs = false;
        for (number, phase) in list.iter().enumerate() {
            starts = phase.outline.starts.max(if runs { 1 } else { starts });
            let Some(place) = plan.place_of(phase, &list[number + 1..]) else {
                continue;
            };
            if place == plan.sets.len() {
                let rows = phase.outline.rows;
                match &rows {
                    PhaseRows::Larger(larger) => {
                        plan.draw(rows, larger, settings, known.as_mut(), context)?;
                    }
                    _ => plan.sets.push(RowSet::new(rows, data, None)?),
                }
            }
            let mut phase = phase.clone();
            phase.outline.starts = starts;
            runs |= !phase.outline.after_subspace;
            plan.phases.push(Planned { phase, place });
            // A fit that is stopped ends with its first search, which may be that of the next phase.
            let begins_later = phase_begins_later(&plan.phases, &list[number + 1..]);
            if known.is_none() && context.monitor.is_stopped() && runs && !begins_later {
                break;
            }
        }
        if plan.phases.is_empty() {
            Err(no_phase())
        } else {
            Ok(plan)
        }
    }

    /// The place of the rows of a phase, the next one for further rows; `None` if they are not worth it. `later` are the phases
    /// after it in the list.
    fn place_of(&self, phase: &Phase<F>, later: &[Phase<F>]) -> Option<usize> {
        let without = self.sets[0].selected.is_none();
        let next = self.sets.len();
        match phase.outline.rows {
            // If there is no coreset, skip this phase: it would repeat the later phase on all rows.
            PhaseRows::Coreset => {
                let on_all = later.iter().any(|later| later.outline.is_on_all());
                (!without || !on_all).then_some(0)
            }
            PhaseRows::Larger(larger) => {
                let size = larger.size;
                let before = self.rows(next - 1).len();
                let worth = !without && size > before && size <= self.data.summary().rows / 4;
                worth.then_some(next)
            }
            PhaseRows::All => {
                let whole_set = self.sets.iter().position(|set| set.selected.is_none());
                Some(whole_set.unwrap_or(next))
            }
        }
    }

    /// Draws the next coreset, or reads it from a checkpoint, and checks what comes.
    fn draw(
        &mut self,
        which: PhaseRows,
        coreset: &dyn Coreset<F>,
        settings: &Settings,
        known: Option<&mut Coresets>,
        context: &mut Context<'_, F>,
    ) -> Result<()> {
        let started = Instant::now();
        let number = self.sets.len();
        let subset = match known {
            Some(known) => known.get_mut(number).and_then(Option::take),
            None => {
                let streams = Streams::new(settings.seed, 0);
                let mut rng = streams.at(Purpose::Coreset, number, 0);
                coreset.sample(View::new(self.data, &self.frame), &mut rng)?
            }
        };
        if let Some(subset) = &subset {
            let sound = subset.check(self.data.len());
            sound.map_err(|what| Error::stage(coreset.name(), what))?;
        }
        let evaluations = subset.as_ref().map_or(0, |s| s.evaluations);
        self.sets.push(RowSet::new(which, self.data, subset)?);
        let rows = self.rows(number);
        let elapsed = started.elapsed();
        let spent = &mut context.spent.evaluations.coreset;
        *spent = spent.saturating_add(evaluations);
        context.spent.timings.coreset += elapsed;
        context.monitor.see(&Progress::Coreset {
            rows: rows.len(),
            weight: rows.summary().total_weight,
            evaluations,
            elapsed,
        });
        Ok(())
    }

    pub(super) fn coresets(&self) -> Vec<Option<&Subset>> {
        let places = 0..self.sets.len();
        places.map(|place| self.subset(place)).collect()
    }

    pub(super) fn rows(&self, place: usize) -> &dyn Data<F> {
        self.sets[place].all(self.data)
    }

    /// The rows that were drawn, and their weights; `None` for all rows as they are.
    pub(super) fn subset(&self, place: usize) -> Option<&Subset> {
        self.sets[place].selected.as_ref().map(|(_, subset)| subset)
    }

    /// How even the chances of all rows were when these were drawn.
    pub(super) fn entropy(&self, place: usize) -> Option<f64> {
        self.subset(place)?.entropy(self.data)
    }

    /// The first phase on all rows that does not need another one in a subspace.
    pub(super) fn on_all(&self) -> Option<usize> {
        let mut phases = self.phases.iter();
        phases.position(|planned| planned.phase.outline.is_on_all())
    }

    pub(super) fn most_rows(&self) -> usize {
        let rows = self.phases.iter().map(|phase| self.rows(phase.place).len());
        rows.max().unwrap_or(0)
    }

    /// Finds the subspace that the phases ask for, if there are such and rows have one. Whoever is first does it for all.
    pub(super) fn find_subspace(&self, seed: u64, spent: &mut Spent) -> Result<()> {
        let wanted = self.phases.iter().find_map(|planned| {
            let rows = self.rows(planned.place);
            match planned.phase.outline.columns {
                Columns::Principal(p) if p < self.frame.dim() => Some((p, rows)),
                _ => None,
            }
        });
        // Sparse rows have no principal directions.
        let wanted = wanted.filter(|(_, rows)| !rows.is_ragged());
        let (Some((p, rows)), None) = (wanted, self.subspace()) else {
            return Ok(());
        };
        let started = Instant::now();
        let mut rng = Streams::new(seed, 0).at(Purpose::Subspace, 0, 0);
        let (subspace, sample) = Subspace::principal(rows, &self.frame, p, &mut rng)?;
        let sample: SentRows<F> = Box::new(subspace.project(&*sample)?);
        spent.timings.projection += started.elapsed();
        // A restart on another thread may have found the subspace as well; it is equal.
        self.principal.set(Principal { subspace, sample }).ok();
        Ok(())
    }

    pub(super) fn subspace(&self) -> Option<&Principal<F>> {
        self.principal.get()
    }

    /// The rows at a place, projected on the subspace. Whoever is first does it for all.
    pub(super) fn projected(&self, place: usize, spent: &mut Spent) -> Result<&dyn Data<F>> {
        let set = &self.sets[place];
        if let Some(Principal { subspace, .. }) = self.subspace()
            && set.projected.get().is_none()
        {
            let started = Instant::now();
            let projected = subspace.project(set.all(self.data))?;
            spent.timings.projection += started.elapsed();
            set.projected.set(Box::new(projected)).ok();
        }
        Ok(match set.projected.get() {
            Some(rows) => &**rows,
            None => set.all(self.data),
        })
    }
}

/// Whether the fit may begin in the phase after the first, on all rows.
fn phase_begins_later<F: Float>(planned: &[Planned<F>], later: &[Phase<F>]) -> bool {
    let on_all = |phase: &Phase<F>| phase.outline.rows == PhaseRows::All;
    matches!(planned, [first] if first.phase.begin.is_some()) && later.first().is_some_and(on_all)
}

/// No phase of the list has anything to run on.
pub(super) fn no_phase() -> Error {
    let rule = "no phase of the list runs on this data: add one on all rows and columns";
    Error::parameter("phases", 0, rule)
}

impl<'a, F: Float> RowSet<'a, F> {
    fn new(which: PhaseRows, data: &'a dyn Data<F>, subset: Option<Subset>) -> Result<Self> {
        let selected = match subset {
            Some(subset) => Some((data.select(&subset.rows, subset.weights.clone())?, subset)),
            None => None,
        };
        Ok(Self {
            which: if selected.is_some() {
                which
            } else {
                PhaseRows::All
            },
            selected,
            projected: OnceLock::new(),
        })
    }

    fn all<'b>(&'b self, data: &'b dyn Data<F>) -> &'b dyn Data<F> {
        match &self.selected {
            Some((rows, _)) => &**rows,
            None => data,
        }
    }
}
