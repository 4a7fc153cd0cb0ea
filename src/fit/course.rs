//! Where a fit is between two of its phases, and how that is written to a checkpoint and read again.

use super::builder::Settings;
use super::rows::{Context, Cost, Plan};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::em::{
    Outcome, PhaseReport, SavedStages, Stop, Supports, loaded_model, saved_model, shape,
};
use crate::io::{FileFault, Sections, Stream};
use crate::model::Mixture;
use std::collections::VecDeque;

type Read<T> = std::result::Result<T, FileFault>;

/// How far a fit is.
pub(super) struct Course<Model> {
    /// The best of the restarts that have ended, and the last free energy of each.
    pub(super) best: Option<(usize, Outcome<Model>)>,
    pub(super) restarts: Vec<f64>,
    /// Whether one of them was cancelled.
    pub(super) cut: bool,
    /// The phase that the next restart is in, by its place in the plan.
    pub(super) number: usize,
    /// Whether phases in a subspace run in it.
    pub(super) subspace: bool,
    /// The candidates that the phase is still before, and the best of those that it is behind.
    pub(super) waiting: VecDeque<Outcome<Model>>,
    pub(super) leading: Option<Outcome<Model>>,
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

impl<Model> Course<Model> {
    /// Before a restart that knows nothing of those before it.
    pub(super) fn of_restart(restart: usize) -> Self {
        Self {
            best: None,
            restarts: vec![f64::NEG_INFINITY; restart],
            cut: false,
            number: 0,
            subspace: false,
            waiting: VecDeque::new(),
            leading: None,
            middle: None,
        }
    }

    /// Whether its restart has yet to begin.
    pub(super) fn is_new(&self) -> bool {
        self.waiting.is_empty() && self.leading.is_none()
    }

    /// A restart has ended, or was cut short.
    pub(super) fn keep(&mut self, found: Option<Outcome<Model>>) {
        let stop = |found: &Outcome<Model>| found.phases.last().map(|phase| phase.stop);
        self.cut |= found
            .as_ref()
            .and_then(stop)
            .is_none_or(|stop| stop == Stop::Cancelled);
        let Some(found) = found else {
            return;
        };
        let (own, place) = (found.standing(), self.restarts.len());
        self.restarts.push(own.1);
        let best = self.best.as_ref();
        if best.is_none_or(|(_, best)| own > best.standing()) {
            self.best = Some((place, found));
        }
    }

    /// The candidate that would be kept if the restart ended now.
    pub(super) fn first(&self) -> Option<&Outcome<Model>> {
        self.leading.as_ref().or(self.waiting.front())
    }

    /// The best candidate of the restart, which ends.
    pub(super) fn end(&mut self) -> Option<Outcome<Model>> {
        let first = self.waiting.pop_front();
        self.waiting.clear();
        self.number = 0;
        self.leading.take().or(first)
    }

    /// Writes a checkpoint between two phases.
    pub(super) fn save<F: Float>(
        &self,
        plan: &Plan<'_, F>,
        context: &mut Context<'_, F>,
    ) -> Result<()>
    where
        Model: Mixture<F>,
    {
        let Some(saver) = context.monitor.saver() else {
            return Ok(());
        };
        let fill = self.sections(plan, &context.cost, None);
        let fill = fill.map_err(|fault| saver.error(fault))?;
        saver.write(&fill)
    }

    /// A phase begins with this candidate: what its checkpoints hold besides the phase.
    pub(super) fn begin<F: Float>(
        &self,
        plan: &Plan<'_, F>,
        current: &Outcome<Model>,
        context: &mut Context<'_, F>,
    ) -> Result<()>
    where
        Model: Mixture<F>,
    {
        let Some(saver) = context.monitor.saver() else {
            return Ok(());
        };
        let fill = self.sections(plan, &context.cost, Some(current));
        saver.begin(fill.map_err(|fault| saver.error(fault))?);
        Ok(())
    }

    /// What writes all sections of it. The model of the current candidate is that of the phase that runs.
    fn sections<'b, F: Float>(
        &'b self,
        plan: &'b Plan<'_, F>,
        cost: &'b Cost,
        current: Option<&'b Outcome<Model>>,
    ) -> Read<impl Fn(&mut Stream<'_>) + 'b>
    where
        Model: Mixture<F>,
    {
        let mut all = Vec::new();
        if let Some((_, best)) = &self.best {
            all.push(("best ".to_string(), best, Some(saved_model(&best.model)?)));
        }
        let others = self.waiting.iter().chain(&self.leading);
        let candidates = current.into_iter().chain(others);
        for (i, candidate) in candidates.enumerate() {
            let model = match i == 0 && current.is_some() {
                true => None,
                false => Some(saved_model(&candidate.model)?),
            };
            all.push((format!("candidate {i} "), candidate, model));
        }
        let counts = [
            self.number,
            usize::from(self.subspace),
            all.len() - usize::from(self.best.is_some()),
            usize::from(self.leading.is_some()),
            usize::from(current.is_some()),
            self.best.as_ref().map_or(0, |(restart, _)| *restart),
        ];
        Ok(move |out: &mut Stream<'_>| {
            cost.write(out);
            plan.write(out);
            out.numbers("course", &counts.map(|x| x as u64));
            out.numbers("restarts", &self.restarts);
            for (of, outcome, model) in &all {
                write(outcome, model.as_deref(), of, out);
            }
        })
    }

    /// From a checkpoint of this fit.
    pub(super) fn read<F: Float>(
        settings: &Settings,
        plan: &Plan<'_, F>,
        cost: &mut Cost,
        mut file: Sections<'static>,
    ) -> Read<Self>
    where
        Model: Mixture<F>,
    {
        cost.read(&mut file)?;
        let rule = |rule| FileFault::content("course", rule);
        let counts = file.counts::<6>("course")?;
        let restarts = file.all::<f64>("restarts")?;
        let (number, candidates) = (counts[0] as usize, counts[2] as usize);
        let (leads, runs) = (counts[3] == 1, counts[4] == 1);
        let restart = restarts.len();
        if restart >= settings.restarts || number > plan.phases.len() {
            return Err(rule("must be within the restarts and phases of the fit"));
        }
        if candidates == 0 || runs && (number == plan.phases.len() || leads && candidates == 1) {
            return Err(rule("must have a candidate for its phase"));
        }
        let mut course = Self {
            restarts,
            number,
            subspace: counts[1] == 1,
            ..Self::of_restart(0)
        };
        if restart > 0 {
            let best = read("best ", None, &mut file, plan, settings.clusters)?;
            if best.found.is_none() || best.phases.is_empty() {
                return Err(rule("must have what was found, and phases behind it"));
            }
            course.best = Some(((counts[5] as usize).min(restart - 1), best));
        }
        for i in 0..candidates {
            if runs && i == 0 {
                course.middle = Some(Middle {
                    report: PhaseReport::read("phase ", &mut file)?,
                    stages: SavedStages::read(&mut file)?,
                    pass: Sections::default(),
                });
            }
            let running = course.middle.as_ref().filter(|_| i == 0);
            let model = running.map(|middle| middle.stages.whole_model());
            let of = format!("candidate {i} ");
            let candidate = read(&of, model, &mut file, plan, settings.clusters)?;
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

/// A candidate as sections whose names begin with `of`.
fn write<Model>(outcome: &Outcome<Model>, model: Option<&[u8]>, of: &str, out: &mut Stream<'_>) {
    let place = outcome.found.as_ref().map_or(0, |(_, place)| place + 1);
    let numbers = [
        outcome.start,
        outcome.reached,
        usize::from(outcome.exact),
        place,
        outcome.phases.len(),
        usize::from(outcome.calibrated),
    ];
    out.numbers(&format!("{of}numbers"), &numbers.map(|x| x as u64));
    if let Some((supports, _)) = &outcome.found {
        supports.write(of, out);
    }
    for (i, phase) in outcome.phases.iter().enumerate() {
        phase.write(&format!("{of}phase {i} "), out);
    }
    if let Some(model) = model {
        out.numbers(&format!("{of}model"), model);
    }
}

/// A candidate from such sections, or with another model than theirs.
fn read<F: Float, Model: Mixture<F>>(
    of: &str,
    model: Option<&[u8]>,
    file: &mut Sections<'_>,
    plan: &Plan<'_, F>,
    k: usize,
) -> Read<Outcome<Model>> {
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
    let phases = 0..numbers[4];
    let phases = phases.map(|i| PhaseReport::read(&format!("{of}phase {i} "), file));
    let phases = phases.collect::<Read<Vec<_>>>()?;
    let model: Model = match model {
        Some(model) => loaded_model(model)?,
        None => loaded_model(&file.all::<u8>(&format!("{of}model"))?)?,
    };
    if shape(&model) != [k, k, plan.frame.dim()] || *model.frame() != plan.frame {
        let rule = "must be in the coordinates of the data";
        return Err(FileFault::content("model", rule));
    }
    Ok(Outcome {
        model,
        start: numbers[0] as usize,
        calibrated: numbers[5] == 1,
        found,
        exact: numbers[2] == 1,
        reached: numbers[1] as usize,
        phases,
    })
}
