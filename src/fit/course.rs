//! Where a fit is between two of its phases, and how that is written to a checkpoint and read again.

use super::rows::{Cost, Plan};
use super::task::Run;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Streams;
use crate::em::{Joint, LastSearch, PhaseReport, SavedStages, Supports, Watch};
use crate::io::{FileFault, Sections, Stream};
use std::collections::VecDeque;

type Read<T> = std::result::Result<T, FileFault>;

/// The stages of a restart on their way through the phases, or of one of its starts.
pub(super) struct Candidate<'a, F: Float> {
    pub(super) joint: Box<dyn Joint<F> + 'a>,
    pub(super) start: usize,
    /// Whether variances are known before the first phase.
    pub(super) calibrated: bool,
    pub(super) streams: Streams,
    pub(super) phases: Vec<PhaseReport>,
    /// Phases of the plan behind it, also those that it left out.
    pub(super) reached: usize,
    /// What the last search found, and the place of its rows.
    pub(super) found: Option<(Supports, usize)>,
    /// Whether that was the best component of every row.
    pub(super) exact: bool,
}

/// How far a fit is.
pub(super) struct Course<'a, F: Float> {
    /// The best of the restarts that have ended, and the last free energy of each.
    pub(super) best: Option<(usize, LastSearch)>,
    pub(super) restarts: Vec<f64>,
    /// The phase that the next restart is in, by its place in the plan.
    pub(super) number: usize,
    /// Whether phases in a subspace run in it.
    pub(super) subspace: bool,
    /// The candidates that the phase is still before, and the best of those that it is behind.
    pub(super) waiting: VecDeque<Candidate<'a, F>>,
    pub(super) leading: Option<Candidate<'a, F>>,
    /// Where the first of those that wait is in the middle of the phase.
    pub(super) middle: Option<Middle>,
}

/// A phase to go on with.
pub(super) struct Middle {
    pub(super) report: PhaseReport,
    pub(super) stages: SavedStages,
    /// What is left of the file: the pass.
    pub(super) pass: Sections<'static>,
}

impl<F: Float> Default for Course<'_, F> {
    fn default() -> Self {
        Self {
            best: None,
            restarts: Vec::new(),
            number: 0,
            subspace: false,
            waiting: VecDeque::new(),
            leading: None,
            middle: None,
        }
    }
}

impl<'a, F: Float> Course<'a, F> {
    /// Before a restart that knows nothing of those before it.
    pub(super) fn of_restart(restart: usize) -> Self {
        Self {
            restarts: vec![f64::NEG_INFINITY; restart],
            ..Self::default()
        }
    }

    /// Whether its restart has yet to begin.
    pub(super) fn is_new(&self) -> bool {
        self.waiting.is_empty() && self.leading.is_none()
    }

    /// A restart has ended.
    pub(super) fn keep(&mut self, found: LastSearch) {
        let (own, place) = (found.standing(), self.restarts.len());
        self.restarts.push(own.1);
        let best = self.best.as_ref();
        if best.is_none_or(|(_, best)| own > best.standing()) {
            self.best = Some((place, found));
        }
    }

    /// The candidate that would be kept if the restart ended now.
    pub(super) fn first(&self) -> Option<&Candidate<'a, F>> {
        self.leading.as_ref().or(self.waiting.front())
    }

    /// The best candidate of the restart, which ends.
    pub(super) fn end(&mut self) -> Option<Candidate<'a, F>> {
        let first = self.waiting.pop_front();
        self.waiting.clear();
        self.number = 0;
        self.leading.take().or(first)
    }

    /// Writes a checkpoint between two phases.
    pub(super) fn save(
        &self,
        run: &Run<'_, F>,
        plan: &Plan<'_, F>,
        (cost, watch): (&Cost, &mut Watch<'_>),
    ) -> Result<()> {
        let Some(saver) = watch.saver() else {
            return Ok(());
        };
        let written = self.written(run, (plan, cost), None);
        let written = written.map_err(|fault| saver.error(fault))?;
        saver.write(&|out| written.write(out))
    }

    /// A phase begins with this candidate: what its checkpoints hold besides the phase.
    pub(super) fn begin(
        &self,
        run: &Run<'_, F>,
        plan: &Plan<'_, F>,
        current: &Candidate<'_, F>,
        (cost, watch): (&Cost, &mut Watch<'_>),
    ) -> Result<()> {
        let Some(saver) = watch.saver() else {
            return Ok(());
        };
        let written = self.written(run, (plan, cost), Some(current));
        let written = written.map_err(|fault| saver.error(fault))?;
        saver.begin(|out| written.write(out));
        Ok(())
    }

    fn written<'b>(
        &'b self,
        run: &Run<'_, F>,
        (plan, cost): (&'b Plan<'_, F>, &'b Cost),
        current: Option<&'b Candidate<'_, F>>,
    ) -> Read<Written<'b>> {
        let mut candidates = Vec::new();
        candidates.extend(current.map(|candidate| Record::of(candidate, None)));
        for candidate in self.waiting.iter().chain(&self.leading) {
            let model = (run.save)(candidate.joint.model_as_any())?;
            candidates.push(Record::of(candidate, Some(model)));
        }
        let best = self.best.as_ref().map(|(_, best)| -> Read<Record<'b>> {
            let found = Some((&best.supports, best.place));
            let model = (run.save)(&*best.model)?;
            Ok(Record {
                start: 0,
                calibrated: true,
                reached: best.reached,
                exact: best.exact,
                found,
                phases: &best.phases,
                model: Some(model),
            })
        });
        let best_restart = self.best.as_ref().map_or(0, |(restart, _)| *restart);
        let counts = [
            self.number,
            usize::from(self.subspace),
            candidates.len(),
            usize::from(self.leading.is_some()),
            usize::from(current.is_some()),
            best_restart,
        ];
        Ok(Written {
            counts: counts.map(|x| x as u64),
            restarts: &self.restarts,
            best: best.transpose()?,
            candidates,
            plan: Box::new(|out| {
                cost.write(out);
                plan.write(out);
            }),
        })
    }

    /// From a checkpoint of this fit.
    pub(super) fn read(
        run: &Run<'a, F>,
        plan: &Plan<'a, F>,
        cost: &mut Cost,
        mut file: Sections<'static>,
    ) -> Read<Self> {
        cost.read(&mut file)?;
        let rule = |rule| FileFault::content("course", rule);
        let counts = file.counts::<6>("course")?;
        let restarts = file.all::<f64>("restarts")?;
        let (number, candidates) = (counts[0] as usize, counts[2] as usize);
        let (leads, runs) = (counts[3] == 1, counts[4] == 1);
        let restart = restarts.len();
        if restart >= run.settings.restarts || number > plan.phases.len() {
            return Err(rule("must be within the restarts and phases of the fit"));
        }
        if candidates == 0 || runs && (number == plan.phases.len() || leads && candidates == 1) {
            return Err(rule("must have a candidate for its phase"));
        }
        let mut course = Self {
            restarts,
            number,
            subspace: counts[1] == 1,
            ..Self::default()
        };
        if restart > 0 {
            let best = (counts[5] as usize).min(restart - 1);
            let found = Found::read("best ", &mut file, plan, run.clusters)?;
            let model = file.all::<u8>("best model")?;
            let (supports, place) = found.found.ok_or(rule("must have what was found"))?;
            let last = LastSearch {
                model: (run.load)(&model)?.into_model(),
                supports,
                exact: found.exact,
                place,
                reached: found.reached,
                phases: found.phases,
            };
            if last.phases.is_empty() {
                return Err(rule("must have phases behind what was found"));
            }
            course.best = Some((best, last));
        }
        for i in 0..candidates {
            let of = format!("candidate {i} ");
            let found = Found::read(&of, &mut file, plan, run.clusters)?;
            let model = match runs && i == 0 {
                true => {
                    let report = PhaseReport::read("phase ", &mut file)?;
                    let stages = SavedStages::read(&mut file)?;
                    let model = stages.whole.as_ref().unwrap_or(&stages.model).clone();
                    let pass = Sections::default();
                    course.middle = Some(Middle {
                        report,
                        stages,
                        pass,
                    });
                    model
                }
                false => file.all(&format!("{of}model"))?,
            };
            let streams = Streams::new(run.settings.seed, restart as u64);
            let candidate = Candidate {
                joint: (run.load)(&model)?,
                start: found.start,
                calibrated: found.calibrated,
                streams: streams.start(found.start),
                phases: found.phases,
                reached: found.reached,
                found: found.found,
                exact: found.exact,
            };
            match leads && i + 1 == candidates {
                true => course.leading = Some(candidate),
                false => course.waiting.push_back(candidate),
            }
        }
        match &mut course.middle {
            Some(middle) => middle.pass = file,
            None => file.end()?,
        }
        Ok(course)
    }
}

/// All sections of a course.
struct Written<'b> {
    counts: [u64; 6],
    restarts: &'b [f64],
    best: Option<Record<'b>>,
    candidates: Vec<Record<'b>>,
    plan: Box<dyn Fn(&mut Stream<'_>) + 'b>,
}

impl Written<'_> {
    fn write(&self, out: &mut Stream<'_>) {
        (self.plan)(out);
        out.numbers("course", &self.counts);
        out.numbers("restarts", self.restarts);
        if let Some(best) = &self.best {
            best.write("best ", out);
        }
        for (i, candidate) in self.candidates.iter().enumerate() {
            candidate.write(&format!("candidate {i} "), out);
        }
    }
}

/// What is written of a candidate, or of a restart that has ended.
struct Record<'b> {
    start: usize,
    calibrated: bool,
    reached: usize,
    exact: bool,
    found: Option<(&'b Supports, usize)>,
    phases: &'b [PhaseReport],
    /// `None` where it is that of the phase that runs.
    model: Option<Vec<u8>>,
}

impl<'b> Record<'b> {
    fn of<F: Float>(candidate: &'b Candidate<'_, F>, model: Option<Vec<u8>>) -> Self {
        let found = candidate.found.as_ref();
        Self {
            start: candidate.start,
            calibrated: candidate.calibrated,
            reached: candidate.reached,
            exact: candidate.exact,
            found: found.map(|(supports, place)| (supports, *place)),
            phases: &candidate.phases,
            model,
        }
    }

    fn write(&self, of: &str, out: &mut Stream<'_>) {
        let place = self.found.map_or(0, |(_, place)| place + 1);
        let numbers = [
            self.start,
            self.reached,
            usize::from(self.exact),
            place,
            self.phases.len(),
            usize::from(self.calibrated),
        ];
        out.numbers(&format!("{of}numbers"), &numbers.map(|x| x as u64));
        if let Some((supports, _)) = self.found {
            supports.write(of, out);
        }
        for (i, phase) in self.phases.iter().enumerate() {
            phase.write(&format!("{of}phase {i} "), out);
        }
        if let Some(model) = &self.model {
            out.numbers(&format!("{of}model"), model);
        }
    }
}

/// What was written of it, but for the model.
struct Found {
    start: usize,
    calibrated: bool,
    reached: usize,
    exact: bool,
    found: Option<(Supports, usize)>,
    phases: Vec<PhaseReport>,
}

impl Found {
    fn read<F: Float>(
        of: &str,
        file: &mut Sections<'_>,
        plan: &Plan<'_, F>,
        k: usize,
    ) -> Read<Self> {
        let name = format!("{of}numbers");
        let numbers = file.counts::<6>(&name)?;
        let place = numbers[3] as usize;
        if place > plan.sets.len() || numbers[1] as usize > plan.phases.len() {
            let rule = "must be within the phases of the fit";
            return Err(FileFault::content(&name, rule));
        }
        let found = match place {
            0 => None,
            _ => {
                let n = plan.rows(place - 1).len();
                Some((Supports::read(of, file, n, k)?, place - 1))
            }
        };
        let mut phases = Vec::new();
        for i in 0..numbers[4] {
            phases.push(PhaseReport::read(&format!("{of}phase {i} "), file)?);
        }
        Ok(Self {
            start: numbers[0] as usize,
            calibrated: numbers[5] == 1,
            reached: numbers[1] as usize,
            exact: numbers[2] == 1,
            found,
            phases,
        })
    }
}
