//! Whether a search over all centres is worth its cost: its gain is estimated from a few rows.

use super::assignment::{Assignment, Member};
use super::neighbour_lists::NeighbourLists;
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Centres, Data, Frame, Rows};
use crate::model::block::Block;
use crate::model::search::{self, Exact};

/// The price of a search. A phase ends when an iteration, with `near` evaluations per row, gains less than the tolerance. So
/// that gain is the price of an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worth {
    pub(crate) near: usize,
    pub(crate) tolerance: f64,
    /// All centres, k.
    all: usize,
    /// What an iteration costs, in distance evaluations.
    iteration: f64,
}

/// The centres of a list are packed for the rows of its component. That takes as long as comparing so many rows with them.
const PACKING: f64 = 32.0;

/// After the first search of a phase, a gain of more than this part of the error is worth any search. Lists correct most of
/// what the first one misses.
const HIGHEST_PRICE: f64 = 5e-3;

/// Draws per row that would be found, if a search were just worth its cost.
const FOUND: f64 = 4.0;

/// Draws, at least and at most. Up to `MOST` rows are searched without an estimate.
const LEAST: usize = 64;
const MOST: usize = 256;

/// Bounds leave about one of so many rows open in an iteration, so an iteration costs less than a search of all rows.
const SETTLED: f64 = 4.0;

/// Levels of the squared distances of rows.
const LEVELS: usize = 10;

/// Rows that are searched together.
const TOGETHER: usize = 32;

impl Worth {
    /// For lists of `near` of `all` centres, or of all, before there was an iteration.
    pub(crate) fn new((near, all): (usize, usize), tolerance: f64, rows: usize) -> Self {
        // A setting may ask for more than there are.
        let near = near.min(all);
        let worth = Self {
            near,
            tolerance,
            all,
            iteration: 0.0,
        };
        worth.after(rows as f64 * near as f64 / SETTLED, tolerance)
    }

    /// After an iteration of so many evaluations. If it gained less than the tolerance, a wider search has to gain less too.
    pub(crate) fn after(self, evaluations: f64, gained: f64) -> Self {
        Self {
            tolerance: self.tolerance.min(gained),
            iteration: self.with_packing(evaluations),
            ..self
        }
    }

    /// What so many evaluations by lists cost: these are packed for every component that has rows to compare.
    fn with_packing(&self, evaluations: f64) -> f64 {
        evaluations + PACKING * evaluations.min(self.all as f64 * self.near as f64)
    }

    /// What a search of this cost has to gain, relative to the error: the tolerance, for each iteration that would
    /// cost as much.
    pub(crate) fn price(&self, evaluations: f64) -> f64 {
        self.tolerance * evaluations / self.iteration.max(1.0)
    }

    /// Draws that tell whether a gain is above a price.
    pub(crate) fn draws(price: f64) -> usize {
        ((FOUND / price).ceil() as usize).clamp(LEAST, MOST)
    }

    /// For rows that their lists do not cover: the distance to their centre from which on a search over all centres is worth
    /// its cost; `None` if it never is. Returns the number of distance evaluations as well.
    pub(crate) fn is_worth_it<F: Float>(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        nearby: &NeighbourLists<F>,
        error: f64,
    ) -> (Option<F>, u64) {
        let open = |c: usize, m: &Member<F>| m.upper > nearby.moved(c as u32).half_reach;
        let doubt = Doubt::of(assignment, data, error, open);
        let (n, k) = (data.len() as f64, centres.len() as f64);
        let price = |rows: usize| {
            // New lists follow, and with them a search of all rows.
            let again = self.with_packing(n * k.min(self.near as f64));
            let price = self.price(rows as f64 * k + again);
            error * price.min(HIGHEST_PRICE)
        };
        let list = |c: u32, near: &mut Vec<u32>| {
            near.clear();
            near.extend_from_slice(nearby.list(c));
        };
        doubt.pays(data, frame, centres, price, open, list)
    }
}

/// Rows that a search over all centres might move: their number and their weighted squared distances, by part.
pub(crate) struct Doubt<'a, F> {
    assignment: &'a Assignment<F>,
    error: f64,
    /// The mean squared distance of all rows.
    mean: f64,
    parts: Vec<([usize; LEVELS], f64)>,
}

impl<'a, F: Float> Doubt<'a, F> {
    /// The distance from which on a search of the open rows over all centres has the largest gain less its price, which
    /// depends on their number; `None` if no gain is above its price. Rows far from their centres can gain most.
    pub(crate) fn pays(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        price: impl Fn(usize) -> f64,
        open: impl Fn(usize, &Member<F>) -> bool + Sync,
        list: impl Fn(u32, &mut Vec<u32>) + Sync,
    ) -> (Option<F>, u64) {
        let rows: usize = self.rows(0);
        if rows == 0 {
            return (None, 0);
        }
        if price(rows) <= 0.0 || rows <= MOST {
            return (Some(F::zero()), 0);
        }
        let draws = Worth::draws(price(rows) / self.error);
        let gains = self.gains(data, frame, centres, draws, open, list);
        let net = |level: usize| gains[level..].iter().sum::<f64>() - price(self.rows(level));
        let best = (0..LEVELS).max_by(|&a, &b| net(a).total_cmp(&net(b)));
        let best = best.filter(|&level| net(level) > 0.0);
        let from = best.map(|level| match level {
            0 => F::zero(),
            _ => F::from_f64((self.mean * 2f64.powi(level as i32)).sqrt() * (1.0 - 1e-6)),
        });
        // At most: each draw is compared with all centres and with its list, which may be chosen among all centres.
        (from, (3 * draws * centres.len()) as u64)
    }

    /// Counts the open members.
    pub(crate) fn of(
        assignment: &'a Assignment<F>,
        data: &dyn Data<F>,
        error: f64,
        open: impl Fn(usize, &Member<F>) -> bool + Sync,
    ) -> Self {
        let mean = error / data.summary().total_weight;
        let parts = assignment.map_parts(|_, components| {
            let (mut rows, mut error) = ([0; LEVELS], 0.0);
            for (c, places) in components {
                for member in places.map(|place| assignment.member(place)) {
                    if open(c, member) {
                        rows[level(member, mean)] += 1;
                        error += share(data, member);
                    }
                }
            }
            (rows, error)
        });
        Self {
            assignment,
            error,
            mean,
            parts,
        }
    }

    /// Open members of this level and above.
    fn rows(&self, level: usize) -> usize {
        let rows = |part: &([usize; LEVELS], f64)| part.0[level..].iter().sum::<usize>();
        self.parts.iter().map(rows).sum()
    }

    /// Estimates how much a search over all centres would lower the error, beyond a search over the `list` of each
    /// component. By level, from `draws` of the open members, drawn in proportion to their part of the error.
    fn gains(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        draws: usize,
        open: impl Fn(usize, &Member<F>) -> bool + Sync,
        list: impl Fn(u32, &mut Vec<u32>) + Sync,
    ) -> [f64; LEVELS] {
        let all: f64 = self.parts.iter().map(|(_, error)| error).sum();
        let step = all / draws as f64;
        let mut before = 0.0;
        let from: Vec<f64> = self
            .parts
            .iter()
            .map(|(_, error)| {
                before += error;
                before - error
            })
            .collect();
        // Systematic sampling: the member at the middle of every step.
        let drawn = self.assignment.map_parts(|part, components| {
            let (mut drawn, mut at) = (Vec::new(), from[part]);
            let mut next = ((at / step - 0.5).ceil().max(0.0) + 0.5) * step;
            if next >= at + self.parts[part].1 {
                return drawn;
            }
            for (c, places) in components {
                for member in places.map(|place| self.assignment.member(place)) {
                    if !open(c, member) {
                        continue;
                    }
                    let share = share(data, member);
                    at += share;
                    while next < at && drawn.len() < draws {
                        drawn.push((c, member.row as usize, share, level(member, self.mean)));
                        next += step;
                    }
                }
            }
            drawn
        });
        let drawn = drawn.concat();
        let gains = parallel::map_blocks(drawn.len(), TOGETHER, |_, range| {
            let drawn = &drawn[range];
            let ids: Vec<usize> = drawn.iter().map(|(_, row, ..)| *row).collect();
            let mut rows = Rows::default();
            data.gather(&ids, frame, &mut rows);
            let mut block = Block::new(centres.len(), 1);
            block.reset(rows.len(), &[]);
            search::best(centres, &rows, &mut block, &mut Exact::default());
            let (mut squared, mut near) = (Vec::new(), Vec::new());
            let mut gains = [0.0; LEVELS];
            for (i, (c, row, share, level)) in drawn.iter().enumerate() {
                // The distance that the next search would find, without an update of the means.
                list(*c as u32, &mut near);
                rows.distances_to(i, centres, &near, &mut squared);
                let own = squared.iter().fold(f64::INFINITY, |d, s| d.min(s.to_f64()));
                let gain = data.weight(*row) * (own - block.scores[i].to_f64()).max(0.0);
                gains[*level] += step * gain / share;
            }
            gains
        });
        std::array::from_fn(|level| gains.iter().map(|gains| gains[level]).sum())
    }
}

/// A row's level: 1 from twice the mean squared distance on, 2 from four times, and so on.
fn level<F: Float>(member: &Member<F>, mean: f64) -> usize {
    let times = member.upper.to_f64().powi(2) / mean;
    times.log2().clamp(0.0, (LEVELS - 1) as f64) as usize
}

/// A row's part of the error, by its upper bound.
fn share<F: Float>(data: &dyn Data<F>, member: &Member<F>) -> f64 {
    data.weight(member.row as usize) * member.upper.to_f64().powi(2)
}
