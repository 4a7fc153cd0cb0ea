//! Passes whose statistics are kept: rows that the bounds settle are not read, and those that change their component are
//! moved in the sums. For supports of width 1, one shared variance and dense rows (E35, E36).

use super::outcome;
use super::stages::Stages;
use super::supports::Supports;
use super::{Found, Pass, SetUp, StopRule};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::rng::Streams;
use crate::data::Scores;
use crate::data::{Centres, Data, View};
use crate::e_step::bounded::hartigan::Candidates;
use crate::e_step::bounded::split_merge::{Round, split_and_merge};
use crate::e_step::{Assignment, Bounded, Change, Member, NeighbourLists, Sums};
use crate::io::{FileFault, Sections, Stream};
use crate::m_step::MStep;
use crate::model::Mixture;
use crate::model::posterior::Likelihood;

/// The rows by component with their bounds, the sums, and the lists by which rows are searched.
pub(crate) struct IncrementalPass<'a, F: Float, M: MStep<F>> {
    data: &'a dyn Data<F>,
    stages: Stages<'a, F, M>,
    streams: Streams,
    /// Centres on a neighbour list.
    near: usize,
    /// How often the lists were doubled, in the phases before as well.
    widened: usize,
    rule: StopRule,
    /// The free energies of the last two searches.
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

/// A search over all centres takes as long as several iterations, so it must gain several times the tolerance; but a gain of
/// this part of the error is worth any search.
const GAIN: f64 = 5e-3;

/// Neighbour lists become longer where a search over all centres gained at least this part of the error: iterations cost twice
/// as much then.
const LONGER: f64 = 1e-2;

/// Moves end after a round that was sure to gain less than this part of the error.
const LITTLE: f64 = 2e-3;

impl<'a, F: Float, M: MStep<F>> IncrementalPass<'a, F, M> {
    /// From the components of the rows where they are known, or from the nearest centres.
    pub(crate) fn new(mut set_up: SetUp<'a, F, M>) -> Result<Self> {
        let model = set_up.stages.model();
        let (view, centres) = (View::new(set_up.data, model.frame()), model.centres());
        let labels = set_up.labels.take();
        let searched = labels.is_none();
        let (assignment, evaluations) = match labels {
            Some(labels) => (Assignment::of_labels(&labels, centres.len()), 0),
            None => Assignment::first(view, centres, near(&set_up), set_up.rule.tolerance)?,
        };
        let sums = Sums::of(view, centres, &assignment)?;
        Ok(Self {
            searched,
            evaluations,
            ..Self::with(set_up, assignment, sums)
        })
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
        let near = near(&set_up);
        let SetUp {
            data,
            entries,
            stages,
            streams,
            moves,
            transfers,
            calibrated,
            widened,
            rule,
            ..
        } = set_up;
        let weight = data.summary().total_weight;
        Self {
            entries: weight * entries as f64,
            weight,
            data,
            stages,
            streams,
            near,
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
    fn follow(&mut self, before: &Centres<F>) -> Result<()> {
        let model = self.stages.model();
        let (view, centres) = (View::new(self.data, model.frame()), model.centres());
        let mut lists = match self.lists.take() {
            Some(lists) => lists,
            None => {
                // Bounds from the old lists are stale; and split and merge need a search of all rows.
                if self.stale || self.moves > 0 {
                    self.assignment.forget();
                }
                let (lists, evaluations) = NeighbourLists::new(centres, self.near);
                self.evaluations += evaluations;
                lists
            }
        };
        self.evaluations += lists.follow(before, centres);
        let (changes, evaluations) = self.assignment.search(view, centres, &lists)?;
        self.evaluations += evaluations;
        self.move_rows(&changes)?;
        (self.searched, self.stale) = (true, false);
        if !self.search_beyond(&lists)? {
            self.lists = Some(lists);
        }
        Ok(())
    }

    /// Moves rows to other components, in the sums as well.
    fn move_rows(&mut self, changes: &[Change]) -> Result<()> {
        let model = self.stages.model();
        let (view, centres) = (View::new(self.data, model.frame()), model.centres());
        self.assignment.apply(changes);
        self.sums.apply(view, centres, &self.assignment, changes)
    }

    /// Before the phase ends, searches rows that their lists do not cover over all centres. Whether it gained so much that the
    /// phase goes on: with new lists, as centres are near others now than when these were made.
    fn search_beyond(&mut self, lists: &NeighbourLists<F>) -> Result<bool> {
        let error = self.squared();
        let likelihood = self.likelihood(error);
        let free_energy = likelihood.free_energy(self.stages.model().log_joint());
        let last = self.steps == self.rule.max_iterations;
        if !(last || self.settles(free_energy, &likelihood)) {
            return Ok(false);
        }
        let model = self.stages.model();
        let (view, centres) = (View::new(self.data, model.frame()), model.centres());
        let tolerance = self.rule.tolerance;
        let price = (tolerance * centres.len() as f64 / self.near as f64).min(GAIN);
        let open = |c: usize, m: &Member<F>| m.upper > lists.moved(c as u32).half_reach;
        let (near, price) = (self.near, price * error);
        let (changes, evaluations) = self
            .assignment
            .search_beyond(view, centres, near, open, error, price)?;
        self.evaluations += evaluations;
        let k = centres.len();
        self.move_rows(&changes)?;
        let gained = error - self.squared();
        self.stale = !changes.is_empty() && gained >= tolerance * error;
        if gained >= LONGER * error {
            self.near = longer(self.near, 1, k);
            self.widened += 1;
        }
        Ok(self.stale)
    }

    /// Transfers rows one by one (E50). The rounds end with one that gained less than the phase would stop for.
    fn transfer(&mut self, candidates: Candidates) -> Result<()> {
        let model = self.stages.model();
        let (view, mut centres) = (View::new(self.data, model.frame()), model.centres().clone());
        let made = candidates.transfer(view, &mut self.sums)?;
        self.evaluations += made.evaluations;
        let over = made.gain <= self.rule.tolerance * self.squared();
        self.transfers = if over { 0 } else { self.transfers - 1 };
        self.assignment.forget_some(&made.changes);
        self.assignment.apply(&made.changes);
        let mut begun = vec![false; centres.len()];
        made.begun.iter().for_each(|c| begun[*c] = true);
        self.move_to_means(&mut centres, &begun);
        self.sums
            .renew_where(view, &centres, &self.assignment, |_| false)?;
        match made.begun.is_empty() {
            true => Ok(()),
            false => self.place(centres),
        }
    }

    /// Moves centres to the means of their rows. These may be far from where the centres were: the M-step would round as if all
    /// of that were left.
    fn move_to_means(&self, centres: &mut Centres<F>, which: &[bool]) {
        let mut means = centres.clone();
        self.sums.move_centres(&mut means);
        centres.update_where(which, &means);
    }

    /// Gives the model other centres. Lists and bounds are stale.
    fn place(&mut self, centres: Centres<F>) -> Result<()> {
        (self.lists, self.stale) = (None, true);
        self.stages.place(centres)
    }
}

impl<'a, F: Float, M: MStep<F>> Pass<'a, F, M> for IncrementalPass<'a, F, M> {
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
            self.follow(&before)?;
        }
        let squared = self.squared();
        let likelihood = self.likelihood(squared);
        let free_energy = likelihood.free_energy(self.stages.model().log_joint());
        let settled = self.settles(free_energy, &likelihood);
        self.free_energies = [self.free_energies[1], free_energy];
        // With lists of one there are no others to go to; after the last M-step none follows.
        let may = self.transfers > 0 && self.near > 1 && self.steps < self.rule.max_iterations;
        if may && settled {
            let model = self.stages.model();
            let view = View::new(self.data, model.frame());
            let offsets = self.sums.offsets(model.centres());
            let candidates = Candidates::of(view, &self.assignment, &offsets);
            let pays = candidates.gain > self.rule.tolerance * squared;
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
            return self.transfer(candidates);
        }
        if self.moves == 0 || !self.searched {
            return Ok(());
        }
        let model = self.stages.model();
        let (view, mut centres) = (View::new(self.data, model.frame()), model.centres().clone());
        // A round that gains less is not worth its evaluations. What is beside a subspace cannot be gained.
        let little = LITTLE * self.sums.squared(&centres);
        let round = Round {
            offsets: &self.sums.offsets(&centres),
            little,
            streams: self.streams,
            number: self.steps,
        };
        let made = split_and_merge(view, &mut centres, &self.assignment, round)?;
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
        self.assignment.apply(&made.changes);
        self.sums
            .renew(view, &centres, &self.assignment, &made.stale)?;
        self.move_to_means(&mut centres, &made.stale);
        self.place(centres)
    }

    fn update(&mut self) -> Result<()> {
        let before = self.stages.model().centres().clone();
        let (mut moments, squared) = self.sums.moments_about(&before);
        moments.add_total(squared + self.data.residual(), self.entries);
        self.stages.update_from(moments)?;
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

/// Centres on the neighbour lists of a phase.
fn near<F: Float, M: MStep<F>>(set_up: &SetUp<'_, F, M>) -> usize {
    let all = set_up.stages.model().components();
    let near = set_up.stages.bounds().map_or(all, Bounded::size);
    longer(near, set_up.widened, all)
}

/// Neighbour lists of `near` centres, doubled so often, at most of `all`.
fn longer(near: usize, times: usize, all: usize) -> usize {
    let factor = 1usize.checked_shl(times as u32).filter(|_| times < 64);
    near.saturating_mul(factor.unwrap_or(usize::MAX)).min(all)
}

/// Whether most of the quantization error of some centres lies outside a subspace: then the subspace is not used. The rows are
/// a sample in the subspace, and `centres` are in it as well.
pub(crate) fn outside<F: Float>(
    view: View<'_, F>,
    centres: &Centres<F>,
    near: usize,
) -> Result<bool> {
    let (assignment, _) = Assignment::first(view, centres, near.min(centres.len()), LITTLE)?;
    Ok(view.residual() > assignment.squared(view))
}
