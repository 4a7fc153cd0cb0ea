//! Passes whose statistics are kept: rows that the bounds settle are not read, and those that change their component are
//! moved in the sums. For supports of width 1, one shared variance and dense rows (E35, E36).

use super::moves::split_and_merge;
use super::outcome;
use super::stages::Stages;
use super::supports::Supports;
use super::transfers::Candidates;
use super::{Found, Pass, SetUp, StopRule};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Streams;
use crate::data::{Centres, Data, Rows, Scores};
use crate::e_step::{Assignment, Bounded, Change, NeighbourLists, Sums, Worth};
use crate::io::{FileFault, Sections, Stream};
use crate::m_step::MStep;
use crate::model::Mixture;
use crate::model::posterior::Likelihood;

/// The rows by component with their bounds, the sums, and the lists by which rows are searched.
pub(crate) struct Kept<'a, F: Float, M: MStep<F>> {
    data: &'a dyn Data<F>,
    stages: Stages<'a, F, M>,
    streams: Streams,
    /// What a wider search is worth, and when the phase ends.
    worth: Worth,
    /// How often the lists were doubled, in the phases before as well.
    widened: usize,
    rule: StopRule,
    /// Those of the last two searches.
    free_energies: [f64; 2],
    calibrated: bool,
    assignment: Assignment<F>,
    sums: Sums<F>,
    lists: Option<NeighbourLists<F>>,
    /// The centres of the last search, once the M-step has moved them.
    before: Option<Centres<F>>,
    /// Rounds of moves and of transfers that are left.
    moves: usize,
    transfers: usize,
    /// Rows to transfer after this search.
    candidates: Option<Candidates>,
    /// Whether every row has bounds: moves go by them.
    searched: bool,
    /// Whether bounds are stale.
    stale: bool,
    /// Weight of all rows, and of all their coordinates.
    weight: f64,
    entries: f64,
    steps: usize,
    evaluations: u64,
}

/// Neighbour lists become longer where a wider search gained at least this part of the error: about what the iterations of
/// a phase have to gain that then cost twice as much.
const LONGER: f64 = 1e-2;

/// Moves end after a round that was sure to gain less than this part of the error.
const LITTLE: f64 = 2e-3;

impl<'a, F: Float, M: MStep<F>> Kept<'a, F, M> {
    /// From the components of the rows where they are known, or from the nearest centres.
    pub(crate) fn new(mut set_up: SetUp<'a, F, M>) -> Self {
        let (worth, data) = (worth(&set_up), set_up.data);
        let model = set_up.stages.model();
        let (centres, frame) = (model.centres(), model.frame());
        let labels = set_up.labels.take();
        let searched = labels.is_none();
        let (assignment, evaluations) = match labels {
            Some(labels) => (Assignment::of_labels(&labels, centres.len()), 0),
            None => Assignment::first(data, frame, centres, &worth, data.residual()),
        };
        let sums = Sums::of(data, frame, centres, &assignment);
        Self {
            searched,
            evaluations,
            ..Self::with(set_up, assignment, sums)
        }
    }

    /// In the middle of a phase, from a checkpoint.
    pub(crate) fn resumed(
        set_up: SetUp<'a, F, M>,
        file: &mut Sections<'_>,
    ) -> std::result::Result<Self, FileFault> {
        let centres = set_up.stages.model().centres();
        let (n, k, dim) = (set_up.data.len(), centres.len(), centres.dim());
        let assignment = Assignment::read(file, n, k)?;
        let sums = Sums::read(file, k, dim)?;
        let lists = NeighbourLists::read(file, k)?;
        let before = file.has("centres before");
        let before = before.then(|| Centres::read("centres before", file, k, dim));
        let counts = file.counts::<7>("pass")?;
        let free_energies = file.numbers("pass free energies", &[2])?;
        let set_up = SetUp {
            widened: usize::try_from(counts[5]).unwrap_or(usize::MAX),
            ..set_up
        };
        Ok(Self {
            lists,
            before: before.transpose()?,
            free_energies: [free_energies[0], free_energies[1]],
            calibrated: true,
            moves: counts[0] as usize,
            searched: counts[1] == 1,
            stale: counts[2] == 1,
            steps: counts[3] as usize,
            evaluations: counts[4],
            transfers: counts[6] as usize,
            ..Self::with(set_up, assignment, sums)
        })
    }

    /// Rows by component and their sums, before the first search.
    fn with(set_up: SetUp<'a, F, M>, assignment: Assignment<F>, sums: Sums<F>) -> Self {
        let worth = worth(&set_up);
        let SetUp {
            data,
            stages,
            streams,
            moves,
            transfers,
            calibrated,
            widened,
            rule,
            ..
        } = set_up;
        let mut row = Rows::default();
        data.load(0..1, stages.model().frame(), &mut row);
        let weight = data.summary().total_weight;
        Self {
            entries: weight * crate::data::Rows::entries(&row) as f64,
            weight,
            data,
            stages,
            streams,
            worth,
            widened,
            rule,
            free_energies: [f64::INFINITY; 2],
            calibrated,
            assignment,
            sums,
            lists: None,
            before: None,
            moves,
            transfers,
            candidates: None,
            searched: false,
            stale: false,
            steps: 0,
            evaluations: 0,
        }
    }

    /// Weighted squared distances of the rows to the centres of their components (E36).
    fn squared(&self) -> f64 {
        self.sums.squared(self.stages.model().centres()) + self.data.residual()
    }

    /// Supports of width 1 share nothing out: the squared distances are all there is.
    fn likelihood(&self, squared: f64) -> Likelihood {
        Likelihood {
            weight: self.weight,
            entries: self.entries,
            best: squared,
            spread: 0.0,
        }
    }

    /// Whether the phase would end with this free energy (E19), if there is nothing else to try.
    fn settles(&self, free_energy: f64, likelihood: &Likelihood) -> bool {
        let known = self.free_energies;
        self.moves == 0 && self.rule.settles_after(known, free_energy, likelihood)
    }

    /// Searches for a nearer centre for every row that its bounds leave open, and moves it in the sums.
    fn follow(&mut self, before: &Centres<F>) {
        let model = self.stages.model();
        let (centres, frame) = (model.centres(), model.frame());
        let mut lists = match self.lists.take() {
            Some(lists) => lists,
            None => {
                // Bounds from the old lists are stale; and moves need a search of all rows.
                if self.stale || self.moves > 0 {
                    self.assignment.forget();
                }
                let (lists, evaluations) = NeighbourLists::new(centres, self.worth.near);
                self.evaluations += evaluations;
                lists
            }
        };
        self.evaluations += lists.follow(before, centres);
        let (changes, evaluations) = self.assignment.search(self.data, frame, centres, &lists);
        self.evaluations += evaluations;
        self.move_rows(&changes);
        (self.searched, self.stale) = (true, false);
        if !self.widen(&lists, evaluations) {
            self.lists = Some(lists);
        }
    }

    /// Moves rows to other components, in the sums as well.
    fn move_rows(&mut self, changes: &[Change]) {
        let model = self.stages.model();
        let (centres, frame) = (model.centres(), model.frame());
        self.assignment.apply(changes);
        self.sums
            .apply(self.data, frame, centres, &self.assignment, changes);
    }

    /// Transfers rows one by one (E50). The rounds end with one that gained less than the phase would stop for.
    fn transfer(&mut self, candidates: Candidates) {
        let frame = self.stages.model().frame();
        let made = candidates.transfer(self.data, frame, &self.sums);
        self.evaluations += made.evaluations;
        let over = made.gain <= self.worth.tolerance * self.squared();
        self.transfers = if over { 0 } else { self.transfers - 1 };
        self.assignment.forget_some(&made.changes);
        self.move_rows(&made.changes);
    }

    /// Searches rows that their lists do not cover over all centres, where that is worth it: from time to time, and before
    /// the phase ends. Whether it gained so much that centres are near others now than when the lists were made. `iteration`
    /// is the number of distance evaluations of the search before it.
    fn widen(&mut self, lists: &NeighbourLists<F>, iteration: u64) -> bool {
        let error = self.squared();
        let likelihood = self.likelihood(error);
        let free_energy = likelihood.free_energy(self.stages.model().log_joint());
        let settled = self.settles(free_energy, &likelihood);
        // After 16 steps, 64, and so on: shorter phases ask in the first search and in the last.
        let due = self.steps > 4
            && self.steps.is_power_of_two()
            && self.steps.trailing_zeros().is_multiple_of(2);
        if !(settled || due || self.steps == self.rule.max_iterations) {
            return false;
        }
        let gained = (free_energy - self.free_energies[1]).abs() / (self.entries / 2.0);
        let worth = self.worth.after(iteration as f64, gained);
        let model = self.stages.model();
        let (centres, frame) = (model.centres(), model.frame());
        let rows = &self.assignment;
        let (from, evaluations) = worth.is_worth_it(self.data, frame, centres, rows, lists, error);
        self.evaluations += evaluations;
        let Some(from) = from else {
            return false;
        };
        let (changes, evaluations) =
            self.assignment
                .widen(self.data, frame, centres, Some(lists), from);
        self.evaluations += evaluations;
        self.move_rows(&changes);
        let gained = error - self.squared();
        self.stale = !changes.is_empty() && gained >= worth.tolerance * error;
        if gained >= LONGER * error {
            let all = self.stages.model().components();
            self.worth.near = longer(self.worth.near, 1, all);
            self.widened += 1;
        }
        self.stale
    }
}

impl<'a, F: Float, M: MStep<F>> Pass<'a, F, M> for Kept<'a, F, M> {
    fn start(&mut self, _: bool) -> Result<()> {
        if !self.calibrated {
            // The first search starts the variance (E8).
            let first = self.likelihood(self.squared());
            self.stages.calibrate(&first);
        }
        Ok(())
    }

    fn search(&mut self) -> Result<Found> {
        if let Some(before) = self.before.take() {
            self.follow(&before);
        }
        let squared = self.squared();
        let likelihood = self.likelihood(squared);
        let free_energy = likelihood.free_energy(self.stages.model().log_joint());
        let settled = self.settles(free_energy, &likelihood);
        self.free_energies = [self.free_energies[1], free_energy];
        // With lists of one there are no others to go to; after the last M-step none follows.
        let may =
            self.transfers > 0 && self.worth.near > 1 && self.steps < self.rule.max_iterations;
        if may && settled {
            let offsets = self.sums.offsets(self.stages.model().centres());
            let candidates = Candidates::of(self.data, &self.assignment, &offsets);
            let pays = candidates.gain > self.worth.tolerance * squared;
            self.candidates = Some(candidates).filter(|_| pays);
        }
        Ok(Found {
            likelihood,
            pending: self.moves > 0 || self.candidates.is_some(),
            zero_mass: self.sums.zero_mass(),
            unobserved: 0,
            widened: self.widened,
        })
    }

    fn move_components(&mut self) -> Result<()> {
        if let Some(candidates) = self.candidates.take() {
            self.transfer(candidates);
            return Ok(());
        }
        if self.moves == 0 || !self.searched {
            return Ok(());
        }
        let model = self.stages.model();
        let (mut centres, frame) = (model.centres().clone(), model.frame());
        let streams = (self.streams, self.steps);
        let offsets = self.sums.offsets(&centres);
        let rows = &self.assignment;
        // A round after one that gained hardly anything would gain less than the evaluations it needs are worth.
        // Rows beside a subspace are not theirs to gain.
        let little = LITTLE * (self.squared() - self.data.residual());
        let bounds = (&offsets[..], little);
        let made = split_and_merge(self.data, frame, &mut centres, rows, bounds, streams);
        self.evaluations += made.evaluations;
        // While means are still on their way, most merges cannot be sure to pay.
        let over = made.gain <= little && made.settled <= little;
        self.moves = if over { 0 } else { self.moves - 1 };
        if made.changes.is_empty() {
            if !over {
                // The next round goes by distances too: new lists, and a search of all rows.
                self.lists = None;
            }
            return Ok(());
        }
        // The neighbour lists are stale.
        (self.lists, self.stale) = (None, true);
        self.assignment.apply(&made.changes);
        self.sums
            .renew(self.data, frame, &centres, &self.assignment, &made.stale);
        // Rows that were merged may be far from the centre they came to. The M-step rounds as if all of that were left.
        let mut means = centres.clone();
        self.sums.move_centres(&mut means);
        centres.update_where(&made.stale, &means);
        self.stages.place(centres)
    }

    fn update(&mut self) -> Result<()> {
        let before = self.stages.model().centres().clone();
        let (moments, squared) = self.sums.moments_about(&before);
        let squared = squared + self.data.residual();
        self.stages.update_from(moments, squared, self.entries)?;
        self.before = Some(before);
        self.steps += 1;
        Ok(())
    }

    fn stages(&mut self) -> &mut Stages<'a, F, M> {
        &mut self.stages
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    fn end(self: Box<Self>) -> outcome::Found<M::Model> {
        outcome::Found {
            exact: self.is_exact(),
            supports: self.supports(),
            model: self.stages.into_model(),
        }
    }

    /// Components from the phase before are as exact as its search was, whatever this one's is.
    fn is_exact(&self) -> bool {
        let k = self.stages.model().components();
        self.searched
            && self
                .stages
                .bounds()
                .is_some_and(|bounds| bounds.size() >= k)
    }

    fn save(&self, out: &mut Stream<'_>) {
        self.assignment.write(out);
        self.sums.write(out);
        if let Some(lists) = &self.lists {
            lists.write(out);
        }
        if let Some(before) = &self.before {
            before.write("centres before", out);
        }
        let counts = [
            // No fit has so many rounds; files have smaller counts.
            (self.moves as u64).min((1 << 60) - 1),
            u64::from(self.searched),
            u64::from(self.stale),
            self.steps as u64,
            self.evaluations,
            self.widened as u64,
            (self.transfers as u64).min((1 << 60) - 1),
        ];
        out.numbers("pass", &counts);
        out.numbers("pass free energies", &self.free_energies);
    }

    fn supports(&self) -> Supports {
        Supports::of_labels(self.assignment.labels(), self.assignment.components())
    }
}

/// What a wider search is worth in a phase.
fn worth<F: Float, M: MStep<F>>(set_up: &SetUp<'_, F, M>) -> Worth {
    let stages = &set_up.stages;
    let all = stages.model().components();
    let near = stages.bounds().map_or(all, Bounded::size);
    let near = longer(near, set_up.widened, all);
    Worth::new((near, all), set_up.rule.tolerance, set_up.data.len())
}

/// Neighbour lists of `near` centres, doubled so often, at most of `all`.
fn longer(near: usize, times: usize, all: usize) -> usize {
    let factor = 1usize.checked_shl(times as u32).filter(|_| times < 64);
    near.saturating_mul(factor.unwrap_or(usize::MAX)).min(all)
}

/// Whether most of the quantization error of some centres lies outside a subspace: then the subspace is not used. `data` is
/// a sample in the subspace, and `centres` are in it as well.
pub(crate) fn outside<F: Float>(
    data: &dyn Data<F>,
    frame: &crate::data::Frame<F>,
    centres: &Centres<F>,
    near: usize,
) -> bool {
    // Wide enough that no row far out is at a wrong centre: it would hide all that is beside the subspace.
    let worth = Worth::new((near, centres.len()), LITTLE, data.len());
    let (assignment, _) = Assignment::first(data, frame, centres, &worth, data.residual());
    data.residual() > assignment.squared(data)
}
