//! Searches over all centres: the first of a phase, and that of rows which their lists do not cover.

use super::assignment::{Assignment, Change, Member, TASK_ROWS};
use super::list_search::{BATCH_ROWS, Kernel, root};
use super::lists::{self, InvertedLists, PACKED_COLUMNS};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::costs::Cost;
use crate::data::{Centres, Rows, View};
use crate::kernels::distance;
use crate::model::block::Block;
use crate::model::search::{self, Exact};

/// At most this many centres are packed as one list about the nearest centre of each row.
const FULL_LIST_CENTRES: usize = 48;

/// Length of an inverted list of the first search, per centre on a neighbour list.
const WIDER: usize = 2;

/// A row is far if its squared distance is at least this many times the mean. At most one row in 16 is far, and these can gain
/// most.
const FAR_RATIO: f64 = 16.0;

/// At most this many open rows, drawn at even steps, whose gains estimate the gain of a search of all open rows.
pub(crate) const DRAWN_ROWS: usize = 1024;

/// All centres are packed for every point if a point has at least this many rows on average, in at most [`PACKED_COLUMNS`].
const PACKED_ROWS: usize = 128;

pub(crate) struct Searched {
    /// The changes, in the order of their places.
    pub(crate) changes: Vec<Change>,
    pub(crate) evaluations: u64,
    /// How much open rows that were not searched would lower the squared distances, estimated by those that were drawn.
    pub(crate) missed: f64,
    /// Whether all open rows were searched, and most of them for the nearest centre alone.
    pub(crate) whole: bool,
}

/// When rows are searched beyond their lists.
pub(crate) struct Beyond<P> {
    /// Centres on a list.
    pub(crate) near: usize,
    /// The squared distances of all rows.
    pub(crate) error: f64,
    /// The least gain for which a search is worth its time, from the number of its rows.
    pub(crate) price: P,
    /// The number of the sample.
    pub(crate) turn: usize,
    /// Whether far rows are searched even if the others are not.
    pub(crate) with_far: bool,
}

impl Searched {
    fn join(&mut self, more: Self) {
        self.changes.extend(more.changes);
        self.evaluations += more.evaluations;
    }
}

impl<F: Float> Assignment<F> {
    /// Every row with its nearest centre and the second nearest: of all centres, or of the inverted list of its point (E40)
    /// if that is cheaper and there is a tolerance. In that case far rows that may be nearer to a centre outside the list are
    /// compared with all. Returns the number of distance evaluations as well, and whether the second nearest are known.
    pub(crate) fn first(
        view: View<'_, F>,
        centres: &Centres<F>,
        near: usize,
        tolerance: f64,
    ) -> Result<(Self, u64, bool)> {
        let lists = match tolerance > 0.0 {
            true => InvertedLists::of(centres, WIDER * near),
            false => None,
        };
        let Some(lists) = lists else {
            return Self::exhaustive(view, centres);
        };
        let points = &lists.quantizer.points;
        let mut all = Self::around(view, centres, points, |point| lists.list(point))?;
        let evaluations = view.len() * (points.len() + lists.list(0).len());
        let mut evaluations = lists.evaluations + evaluations as u64;
        let mut error = all.squared(view);
        loop {
            let far = far(view, error);
            let open = all.where_open(|_, m| m.lower < F::zero() && m.upper >= far);
            let found = all.search_all(view, centres, &open, true)?;
            all.apply(&found.changes);
            evaluations += found.evaluations;
            // A few rows very far out hide others: these are far once the mean has fallen.
            let before = std::mem::replace(&mut error, all.squared(view));
            if found.changes.is_empty() || error >= 0.5 * before {
                return Ok((all, evaluations, true));
            }
        }
    }

    /// Every row with its nearest centre of all, the number of distance evaluations, and whether the second nearest are known: not
    /// where products are faster than lists.
    pub(crate) fn exhaustive(view: View<'_, F>, centres: &Centres<F>) -> Result<(Self, u64, bool)> {
        let (n, k) = (view.len(), centres.len());
        let list: Vec<u32> = (0..k as u32).collect();
        if (2..=FULL_LIST_CENTRES).contains(&k) {
            let all = Self::around(view, centres, centres, |_| &list)?;
            return Ok((all, (2 * n * k) as u64, true));
        }
        let number = (k as f64).sqrt() as usize;
        if centres.dim() <= PACKED_COLUMNS && n / PACKED_ROWS >= number {
            // Distances are expanded about one of a few centres, the nearest of them.
            let all = Self::around(view, centres, &centres.evenly(number), |_| &list)?;
            return Ok((all, (n * (number + k)) as u64, true));
        }
        let mut all = Self::of_labels(&vec![0; n], k);
        let rows = all.where_open(|_, _| true);
        let found = all.search_all(view, centres, &rows, false)?;
        all.apply(&found.changes);
        Ok((all, found.evaluations, false))
    }

    /// The nearest centre of every row and the second nearest, among those that `list` gives for its point.
    fn around<'a>(
        view: View<'_, F>,
        centres: &Centres<F>,
        points: &Centres<F>,
        list: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Result<Self> {
        let near = Self::labelled(view, points)?;
        let found = parallel::map_blocks(view.len(), TASK_ROWS, |_, places| {
            let mut kernel = Kernel::default();
            let mut found = Vec::with_capacity(places.len());
            for (point, places) in sort::among(&near.starts, places) {
                let list = list(point);
                let reach = lists::reach(centres, points.row(point), list);
                kernel.pack(centres, list, points.row(point));
                for members in near.members[places].chunks(BATCH_ROWS) {
                    view.gather_into(members.iter().map(|member| member.row), &mut kernel.rows)?;
                    kernel.compare(centres, |i, about, best, next| {
                        let others = root(next.0);
                        let compared_all = others.to_f64() <= reach - root(about).to_f64();
                        let member = Member {
                            row: members[i].row,
                            second: list[next.1],
                            upper: root(best.0),
                            lower: if compared_all { others } else { -others },
                        };
                        found.push((list[best.1], member));
                    });
                }
            }
            Ok(found)
        });
        let found = parallel::all(found)?;
        let part = |part: usize| found[part].iter().copied();
        Ok(Self::by_component(centres.len(), found.len(), part))
    }

    /// Every row with its nearest centre, without bounds.
    fn labelled(view: View<'_, F>, centres: &Centres<F>) -> Result<Self> {
        let k = centres.len();
        let rows = search::block_rows(k, centres.dim());
        let labels = parallel::map_blocks(view.len(), rows, |_, range| {
            let rows = view.load(range)?;
            let (mut labels, mut squared) = (vec![0; rows.len()], vec![F::zero(); rows.len()]);
            rows.nearest(centres, &mut labels, &mut squared);
            Ok(labels)
        });
        Ok(Self::of_labels(&parallel::all(labels)?.concat(), k))
    }

    /// Searches all centres for open rows, which may be nearer to a centre outside their list (E35). A sample of them, other ones
    /// in each turn, tells how much the others would gain: these are all searched if that is more than the price of their search.
    /// A gain counts only as far as no list of as many centres around the row's own would give it. Far rows can gain most.
    pub(crate) fn search_beyond(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        open: impl Fn(usize, &Member<F>) -> bool + Sync,
        beyond: Beyond<impl Fn(usize) -> f64>,
    ) -> Result<Searched> {
        let (open, far) = (self.where_open(open), far(view, beyond.error));
        let price = (beyond.price)(open.len());
        let is_far = |row: &Change| self.members[row.place].upper >= far;
        let (far, others) = open.into_iter().partition::<Vec<_>, _>(is_far);
        let step = match price > 0.0 {
            true => others.len().div_ceil(DRAWN_ROWS).max(1),
            false => 1,
        };
        let first = beyond.turn % step;
        let drawn: Vec<Change> = others.iter().skip(first).step_by(step).copied().collect();
        let mut found = self.search_all(view, centres, &drawn, true)?;
        let mut gain = f64::INFINITY;
        if price > 0.0 {
            gain = self.gain_beyond(view, centres, beyond.near, &found.changes)?;
            found.evaluations += (found.changes.len() * (centres.len() + beyond.near)) as u64;
        }
        found.missed = step as f64 * gain;
        let pays = found.missed > price;
        if pays {
            (found.missed, found.whole) = (0.0, step > 1);
            let rest = others.iter().enumerate().filter(|(i, _)| i % step != first);
            let rest: Vec<Change> = rest.map(|(_, change)| *change).collect();
            found.join(self.search_all(view, centres, &rest, false)?);
        }
        if pays || beyond.with_far {
            found.join(self.search_all(view, centres, &far, !found.whole)?);
        }
        found.changes.sort_unstable_by_key(|change| change.place);
        Ok(found)
    }

    /// How much more changes lower the squared distances than lists of the `near` centres around the rows' own would.
    fn gain_beyond(
        &self,
        view: View<'_, F>,
        centres: &Centres<F>,
        near: usize,
        changes: &[Change],
    ) -> Result<f64> {
        let all: Vec<u32> = (0..centres.len() as u32).collect();
        let gains = parallel::map_blocks(changes.len(), BATCH_ROWS / 8, |_, range| {
            let changes = &changes[range];
            let rows = view.gather(changes.iter().map(|change| change.row))?;
            let (mut squared, mut gain) = (Vec::new(), 0.0);
            for (i, change) in changes.iter().enumerate() {
                let mut list = all.clone();
                let from = centres.row(change.from as usize);
                distance::to_some(from, &centres.values, &all, &mut squared);
                let of = |c: &u32| squared[*c as usize].to_f64();
                if near < list.len() {
                    list.select_nth_unstable_by(near - 1, |a, b| of(a).total_cmp(&of(b)));
                    list.truncate(near);
                }
                rows.distances_to(i, centres, &list, &mut squared);
                let listed = squared.iter().fold(f64::INFINITY, |d, s| d.min(s.to_f64()));
                let fall = listed - self.members[change.place].upper.to_f64().powi(2);
                gain += rows.weight(i) * fall.max(0.0);
            }
            Ok(gain)
        });
        Ok(parallel::all(gains)?.iter().sum())
    }

    /// Searches all centres for these rows: for the nearest and the second nearest, or, faster, for the nearest and a bound of the
    /// distance to others.
    fn search_all(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        open: &[Change],
        for_second: bool,
    ) -> Result<Searched> {
        let rows = search::block_rows(centres.len(), centres.dim());
        // A single centre is the second nearest as well, at any distance.
        let width = centres.len().min(2);
        let found = parallel::map_blocks(open.len(), rows, |_, range| {
            let open = &open[range];
            let rows = view.gather(open.iter().map(|row| row.row))?;
            if !for_second && let Some(found) = nearest_alone(&rows, centres, open) {
                return Ok(found);
            }
            let mut block = Block::listed(centres.len(), width);
            block.reset(rows.len(), &[]);
            block.supports.resize(rows.len() * width, 0);
            let cost = Cost::Squared(centres);
            search::ranked(cost, &rows, &mut block, &mut Exact::default());
            let found = open.iter().enumerate().map(|(i, row)| {
                let (ids, squared) = (block.support(i), block.costs(i));
                let mut change = Change { to: ids[0], ..*row };
                let mut member = Member {
                    row: row.row,
                    second: ids[width - 1],
                    upper: root(squared[0]),
                    lower: squared.get(1).map_or(F::INFINITY, |next| root(*next)),
                };
                // The row stays if others are only as near.
                if member.second == row.from && member.upper == member.lower {
                    std::mem::swap(&mut change.to, &mut member.second);
                }
                (change, member)
            });
            Ok(found.collect::<Vec<_>>())
        });
        let mut changes = Vec::new();
        for (change, member) in parallel::all(found)?.into_iter().flatten() {
            self.members[change.place] = member;
            if change.to != change.from {
                changes.push(change);
            }
        }
        Ok(Searched {
            changes,
            evaluations: (open.len() * centres.len()) as u64,
            missed: 0.0,
            whole: false,
        })
    }

    /// The members that are open, as changes to no other component yet.
    fn where_open(&self, open: impl Fn(usize, &Member<F>) -> bool + Sync) -> Vec<Change> {
        let found = self.map_parts(|_, components| {
            let places = components.flat_map(|(c, places)| places.map(move |place| (c, place)));
            let found = places.filter(|(c, place)| open(*c, &self.members[*place]));
            let found = found.map(|(c, place)| self.change(place, c, c as u32));
            found.collect::<Vec<_>>()
        });
        found.concat()
    }
}

/// The nearest of all centres for each of these rows, and a bound of the distance to others; `None` for rows that have no products.
fn nearest_alone<F: Float>(
    rows: &Rows<F>,
    centres: &Centres<F>,
    open: &[Change],
) -> Option<Vec<(Change, Member<F>)>> {
    let (mut ids, mut squared) = (vec![0; rows.len()], vec![F::zero(); rows.len()]);
    let mut others = squared.clone();
    if !rows.nearest_and_others(centres, &mut ids, &mut squared, &mut others) {
        return None;
    }
    let found = open.iter().zip(ids).zip(squared.iter().zip(&others));
    let found = found.map(|((row, to), (own, others))| {
        let member = Member {
            row: row.row,
            second: row.from,
            upper: root(*own),
            lower: root(*others),
        };
        (Change { to, ..*row }, member)
    });
    Some(found.collect())
}

/// The distance from which on rows are far, by the squared distances of all rows.
fn far<F: Float>(view: View<'_, F>, squared: f64) -> F {
    F::from_f64((FAR_RATIO * squared / view.data.summary().total_weight).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use ndarray::Array2;

    /// Tight pairs of centres far from any point of the quantizer: expanded distances alone would confuse them.
    #[test]
    fn what_is_much_nearer_than_the_point_is_exact() {
        let mut rng = Rng::from_seed(2);
        let pairs = Array2::from_shape_fn((300, 2), |_| rng.uniform() as f32);
        let mut near = |(i, j): (usize, usize)| pairs[[i % 300, j]] + 1e-4 * rng.normal() as f32;
        let centres = Array2::from_shape_fn((600, 2), &mut near);
        let x = Array2::from_shape_fn((6_000, 2), near);
        let data = Dense::new(x.view()).unwrap();
        let (frame, all) = (data.frame(), (0..600).collect::<Vec<u32>>());
        let centres = Centres::enter(centres.view(), &frame);
        let points = Centres::enter(x.view().split_at(ndarray::Axis(0), 5).0, &frame);
        let view = View::new(&data, &frame);
        let found = Assignment::around(view, &centres, &points, |_| &all).unwrap();
        let rows = view.load(0..data.len()).unwrap();
        let distance =
            |row: u32, c: usize| distance::exact(rows.row(row as usize), centres.row(c)).sqrt();
        for c in 0..600 {
            for member in found.members(c) {
                let own = distance(member.row, c);
                let least = (0..600).map(|c| distance(member.row, c)).reduce(f64::min);
                assert!(own <= least.unwrap() * (1.0 + 1e-4));
                assert!((f64::from(member.upper) - own).abs() <= 1e-4 * own);
                let next = distance(member.row, member.second as usize);
                assert!((f64::from(member.lower) - next).abs() <= 1e-4 * next);
            }
        }
    }
}
