//! The rows that the phases of a fit run on: coresets are drawn, and rows projected, once per fit; restarts share them.

use super::phase::{Columns, Outline};
use super::task::Run;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::base::rng::{Purpose, Streams};
use crate::coreset::{Coreset, Subset};
use crate::data::{Data, Frame, Subspace};
use crate::em::{Evaluations, PhaseReport, PhaseRows, Progress, Timings, Watch};
use crate::io::{FileFault, Sections, Stream};
use crate::seed;
use std::sync::OnceLock;
use std::time::Instant;

/// Some rows, and the same in the subspace once a phase has asked for them.
pub(super) struct RowSet<'a, F: Float> {
    pub(super) which: PhaseRows,
    /// `None`: all rows as they are.
    selected: Option<(Box<dyn Data<F> + 'a>, Subset)>,
    projected: OnceLock<Option<SentRows<F>>>,
}

/// Rows that any thread may make for the others.
type SentRows<F> = Box<dyn Data<F> + Send>;

/// A subspace, and a sample of rows in it.
type Principal<F> = (Subspace<F>, SentRows<F>);

/// The phases of a fit on this data, each with the place of its rows, and the rows.
pub(super) struct Plan<'a, F: Float> {
    data: &'a dyn Data<F>,
    pub(super) frame: Frame<F>,
    pub(super) sets: Vec<RowSet<'a, F>>,
    /// Phases by their number in the list, with the place of their rows.
    pub(super) phases: Vec<(usize, Outline, usize)>,
    /// The subspace, and a sample of rows in it.
    subspace: OnceLock<Option<Principal<F>>>,
}

/// What a fit, or one of its restarts, has cost so far.
#[derive(Default)]
pub(super) struct Cost {
    pub(super) evaluations: Evaluations,
    pub(super) timings: Timings,
    /// When the phases began whose cost is part of these.
    booked: Vec<Instant>,
}

impl Cost {
    /// Adds what a phase cost, once.
    pub(super) fn book(&mut self, phase: &PhaseReport) {
        if !self.booked.contains(&phase.began) {
            self.booked.push(phase.began);
            self.evaluations.add(&Evaluations {
                search: phase.evaluations,
                ..Evaluations::default()
            });
            self.timings.add(&phase.timings);
        }
    }

    /// Adds what a restart cost.
    pub(super) fn add(&mut self, restart: &Self) {
        self.evaluations.add(&restart.evaluations);
        self.timings.add(&restart.timings);
    }

    /// What the fit has cost so far, into a checkpoint.
    pub(super) fn write(&self, out: &mut Stream<'_>) {
        let Evaluations {
            coreset,
            seeding,
            search,
            scoring,
        } = self.evaluations;
        out.numbers("cost", &[coreset, seeding, search, scoring]);
        out.numbers("times", &self.timings.seconds());
    }

    /// What the fit had cost.
    pub(super) fn read(&mut self, file: &mut Sections<'_>) -> std::result::Result<(), FileFault> {
        let cost = file.counts::<4>("cost")?;
        self.evaluations = Evaluations {
            coreset: cost[0],
            seeding: cost[1],
            search: cost[2],
            scoring: cost[3],
        };
        self.timings = Timings::of_seconds(&file.numbers("times", &[6])?);
        Ok(())
    }
}

impl<'a, F: Float> Plan<'a, F> {
    /// Draws the coreset, or reads it from a checkpoint, and leaves out phases whose rows are not worth it.
    pub(super) fn new(
        run: &Run<'a, F>,
        mut file: Option<&mut Sections<'_>>,
        cost: &mut Cost,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        let (data, k) = (run.data, run.clusters);
        seed::enough_rows(data, k, "data")?;
        let mut plan = Self {
            data,
            frame: data.frame(),
            sets: Vec::new(),
            phases: Vec::new(),
            subspace: OnceLock::new(),
        };
        let streams = Streams::new(run.settings.seed, 0);
        let drawn = plan.draw(
            run,
            run.coreset,
            (streams, 0),
            file.as_deref_mut(),
            (cost, watch),
        )?;
        let coreset = RowSet::new(PhaseRows::Coreset, data, drawn);
        seed::enough_rows(coreset.all(data), k, "coreset")?;
        plan.sets.push(coreset);
        // A fit that is stopped draws no further coreset, unless it has no phase without one.
        for hurry in [true, false] {
            plan.choose(run, file.as_deref_mut(), (cost, watch), hurry)?;
            if !plan.phases.is_empty() {
                return Ok(plan);
            }
        }
        Err(no_phase())
    }

    /// Chooses the phases whose rows are worth it, and draws their coresets; in a `hurry` none once the fit is stopped,
    /// unless they are in a checkpoint.
    fn choose(
        &mut self,
        run: &Run<'a, F>,
        mut file: Option<&mut Sections<'_>>,
        (cost, watch): (&mut Cost, &mut Watch<'_>),
        hurry: bool,
    ) -> Result<()> {
        let (data, without) = (run.data, self.sets[0].selected.is_none());
        let streams = Streams::new(run.settings.seed, 0);
        let all_follow = |number: usize| {
            let later = &run.outlines[number + 1..];
            later
                .iter()
                .any(|later| later.rows == PhaseRows::All && !later.after_subspace)
        };
        for (number, &outline) in run.outlines.iter().enumerate() {
            let before = self.sets.last().map_or(data, |set| set.all(data)).len();
            let place = match outline.rows {
                // Without a coreset its phases would be on all rows, as those that come later anyway.
                PhaseRows::Coreset if without && all_follow(number) => continue,
                PhaseRows::Coreset => 0,
                PhaseRows::Larger(larger) => {
                    let size = larger.draws();
                    if without
                        || size <= before
                        || size > data.summary().rows / 4
                        || (hurry && file.is_none() && watch.stopped())
                    {
                        continue;
                    }
                    let number = self.sets.len();
                    let file = file.as_deref_mut();
                    let drawn = self.draw(run, &larger, (streams, number), file, (cost, watch))?;
                    self.sets.push(RowSet::new(outline.rows, data, drawn));
                    self.sets.len() - 1
                }
                PhaseRows::All => match self.sets.iter().position(|set| set.selected.is_none()) {
                    Some(place) => place,
                    None => {
                        self.sets.push(RowSet::new(PhaseRows::All, data, None));
                        self.sets.len() - 1
                    }
                },
            };
            self.phases.push((number, outline, place));
        }
        Ok(())
    }

    /// Draws a coreset, or reads it from a checkpoint, and checks what comes.
    fn draw(
        &self,
        run: &Run<'a, F>,
        coreset: &dyn Coreset<F>,
        (streams, number): (Streams, usize),
        file: Option<&mut Sections<'_>>,
        (cost, watch): (&mut Cost, &mut Watch<'_>),
    ) -> Result<Option<Subset>> {
        let started = Instant::now();
        let subset = match file {
            Some(file) => read_subset(number, file).map_err(|fault| run.fault(fault))?,
            None => {
                let mut rng = streams.at(Purpose::Coreset, number, 0);
                coreset.sample(self.data, &self.frame, &mut rng)?
            }
        };
        if let Some(subset) = &subset {
            let sound = subset.check(self.data.len());
            sound.map_err(|what| Error::stage(run.names.coreset, what))?;
            cost.evaluations.add(&Evaluations {
                coreset: subset.evaluations,
                ..Evaluations::default()
            });
        }
        cost.timings.coreset += started.elapsed();
        watch.see(Progress::Coreset {
            rows: subset.as_ref().map_or(self.data.len(), |s| s.rows.len()),
            weight: subset
                .as_ref()
                .map_or(self.data.summary().total_weight, |s| s.weights.iter().sum()),
            evaluations: subset.as_ref().map_or(0, |s| s.evaluations),
            elapsed: started.elapsed(),
        });
        Ok(subset)
    }

    /// Its coresets into a checkpoint.
    pub(super) fn write(&self, out: &mut Stream<'_>) {
        for (number, set) in self.sets.iter().enumerate() {
            if let Some((_, subset)) = &set.selected {
                let rows = subset.rows.iter().map(|row| *row as u64);
                out.section(&format!("coreset {number} rows"), subset.rows.len(), rows);
                out.numbers(&format!("coreset {number} weights"), &subset.weights);
                let evaluations = [subset.evaluations];
                out.numbers(&format!("coreset {number} evaluations"), &evaluations);
            }
        }
    }

    /// The rows at a place.
    pub(super) fn rows(&self, place: usize) -> &dyn Data<F> {
        self.sets[place].all(self.data)
    }

    /// What was drawn for them: `None` for all rows as they are.
    pub(super) fn subset(&self, place: usize) -> Option<&Subset> {
        self.sets[place].selected.as_ref().map(|(_, subset)| subset)
    }

    /// The most rows of a phase.
    pub(super) fn most_rows(&self) -> usize {
        let rows = self.phases.iter().map(|phase| self.rows(phase.2).len());
        rows.max().unwrap_or(0)
    }

    /// Finds the subspace that the phases ask for, if there are such and rows have one. Whoever is first does it for all.
    pub(super) fn find_subspace(&self, seed: u64, cost: &mut Cost) {
        let wanted = self.phases.iter().find_map(|(_, outline, place)| {
            let Columns::Principal(p) = outline.columns else {
                return None;
            };
            Some((p, *place))
        });
        let Some((p, place)) = wanted.filter(|(p, _)| *p < self.frame.dim()) else {
            return;
        };
        self.subspace.get_or_init(|| {
            let started = Instant::now();
            let mut rng = Streams::new(seed, 0).at(Purpose::Subspace, 0, 0);
            let rows = self.rows(place);
            // Sparse rows have no principal directions.
            let found = (!rows.is_sparse()).then(|| {
                let (subspace, sample) = Subspace::principal(rows, &self.frame, p, &mut rng);
                let sample = subspace.project(&*sample);
                (subspace, Box::new(sample) as SentRows<F>)
            });
            cost.timings.projection += started.elapsed();
            found
        });
    }

    /// The subspace, and a sample of the rows in it.
    pub(super) fn subspace(&self) -> Option<(&Subspace<F>, &dyn Data<F>)> {
        let (subspace, sample) = self.subspace.get()?.as_ref()?;
        Some((subspace, &**sample))
    }

    /// Projects the rows at a place on the subspace. Whoever is first does it for all.
    pub(super) fn project(&self, place: usize, cost: &mut Cost) {
        if let Some((subspace, _)) = self.subspace() {
            self.sets[place].projected.get_or_init(|| {
                let started = Instant::now();
                let found = subspace.project(self.sets[place].all(self.data));
                cost.timings.projection += started.elapsed();
                Some(Box::new(found) as SentRows<F>)
            });
        }
    }

    /// The rows at a place in the subspace, if they have been projected.
    pub(super) fn projected(&self, place: usize) -> Option<&dyn Data<F>> {
        let rows = self.sets[place].projected.get()?.as_ref()?;
        Some(&**rows)
    }
}

/// A coreset from a checkpoint; `None` for all rows as they are.
fn read_subset(
    number: usize,
    file: &mut Sections<'_>,
) -> std::result::Result<Option<Subset>, FileFault> {
    let rows = format!("coreset {number} rows");
    if !file.has(&rows) {
        return Ok(None);
    }
    let rows = file.all::<u64>(&rows)?.into_iter();
    Ok(Some(Subset {
        rows: rows.map(|row| row as usize).collect(),
        weights: file.all(&format!("coreset {number} weights"))?,
        evaluations: file.counts::<1>(&format!("coreset {number} evaluations"))?[0],
    }))
}

/// No phase of the list has anything to run on.
pub(super) fn no_phase() -> Error {
    let rule = "no phase of the list runs on this data: add one on all rows and columns";
    Error::parameter("phases", 0, rule)
}

impl<'a, F: Float> RowSet<'a, F> {
    fn new(which: PhaseRows, data: &'a dyn Data<F>, subset: Option<Subset>) -> Self {
        let selected = subset.map(|subset| {
            let rows = data.select(&subset.rows, subset.weights.clone());
            (rows, subset)
        });
        Self {
            which: if selected.is_some() {
                which
            } else {
                PhaseRows::All
            },
            selected,
            projected: OnceLock::new(),
        }
    }

    fn all<'b>(&'b self, data: &'b dyn Data<F>) -> &'b dyn Data<F> {
        match &self.selected {
            Some((rows, _)) => &**rows,
            None => data,
        }
    }
}
