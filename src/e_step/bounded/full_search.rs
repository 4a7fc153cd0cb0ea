//! Searches over all centres: the first of a phase, and that of rows which their lists do not cover.

use super::assignment::{Assignment, Change, Member, TASK_ROWS};
use super::limits::LIMITS;
use super::list_search::{BATCH_ROWS, Kernel, root};
use super::lists::{self, InvertedLists, NeighbourLists};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::costs::Cost;
use crate::data::{Centres, Rows, View};
use crate::kernels::distance;
use crate::model::block::Block;
use crate::model::cells::Nearest;
use crate::model::search::{self, Exact};

pub(crate) struct Searched {
    /// The changes, in the order of their places.
    pub(crate) changes: Vec<Change>,
    pub(crate) evaluations: u64,
    /// Whether all open rows were searched, and most of them for the nearest centre alone.
    pub(crate) whole: bool,
}

impl<F: Float> Assignment<F> {
    /// Every row with its nearest centre and the second nearest: of all centres, or of the inverted list of its point (E40)
    /// if that is cheaper, and the lists miss little. In that case far rows that may be nearer to a centre outside the list are
    /// compared with all. Returns the number of distance evaluations as well, and whether the second nearest are known.
    pub(crate) fn first(
        view: View<'_, F>,
        centres: &Centres<F>,
        near: usize,
    ) -> Result<(Self, u64, bool)> {
        let Some(lists) = InvertedLists::of(centres, LIMITS.wider * near) else {
            return Self::exhaustive(view, centres);
        };
        let points = &lists.quantizer.points;
        let mut assignment = Self::around(view, centres, points, |point| lists.list(point))?;
        let evaluations = view.len() * (points.len() + lists.list(0).len());
        let mut evaluations = lists.evaluations + evaluations as u64;
        let mut error = assignment.squared(view);
        loop {
            let far = far(view, error);
            let open = assignment.where_open(|_, m| m.lower < F::zero() && m.upper >= far);
            let searched = assignment.search_all(view, centres, &open, true)?;
            assignment.apply(&searched.changes);
            evaluations += searched.evaluations;
            // A few rows very far out hide others: these are far once the mean has fallen.
            let before = std::mem::replace(&mut error, assignment.squared(view));
            if searched.changes.is_empty() || error >= 0.5 * before {
                break;
            }
        }
        if view.len() >= LIMITS.sampled * LIMITS.drawn_rows {
            let step = view.len().div_ceil(LIMITS.drawn_rows);
            let drawn = assignment.drawn(0, step, |_, _| true);
            let stays = |row: &Change, nearest| row.from == nearest;
            let (missed, more) = missed_of(view, centres, &drawn, near, &stays)?;
            evaluations += more;
            if step as f64 * missed > LIMITS.missed * error {
                // Both together would take twice the memory.
                drop(assignment);
                let (assignment, more, seconds) = Self::exhaustive(view, centres)?;
                return Ok((assignment, evaluations + more, seconds));
            }
        }
        Ok((assignment, evaluations, true))
    }

    /// Every row with its nearest centre of all, the number of distance evaluations, and whether the second nearest are known: not
    /// where products are faster than lists.
    pub(crate) fn exhaustive(view: View<'_, F>, centres: &Centres<F>) -> Result<(Self, u64, bool)> {
        let n = view.len();
        let k = centres.len();
        let list: Vec<u32> = (0..k as u32).collect();
        let is_ragged = view.data.is_ragged();
        if !is_ragged && (2..=LIMITS.one_list).contains(&k) {
            let assignment = Self::around(view, centres, centres, |_| &list)?;
            return Ok((assignment, (2 * n * k) as u64, true));
        }
        let number = (k as f64).sqrt() as usize;
        if !is_ragged && centres.dim() <= LIMITS.packed_columns && n / LIMITS.packed_rows >= number
        {
            // Distances are expanded about one of a few centres, the nearest of them.
            let assignment = Self::around(view, centres, &centres.evenly(number), |_| &list)?;
            return Ok((assignment, (n * (number + k)) as u64, true));
        }
        let mut assignment = Self::of_labels(&vec![0; n], k);
        let rows = assignment.where_open(|_, _| true);
        let searched = assignment.search_all(view, centres, &rows, is_ragged)?;
        assignment.apply(&searched.changes);
        Ok((assignment, searched.evaluations, is_ragged))
    }

    /// The nearest centre of every row and the second nearest, among those that `list` gives for its point.
    fn around<'a>(
        view: View<'_, F>,
        centres: &Centres<F>,
        points: &Centres<F>,
        list: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Result<Self> {
        let near = Self::labelled(view, points)?;
        let members_by_task = parallel::map_blocks(view.len(), TASK_ROWS, |_, places| {
            let mut kernel = Kernel::default();
            let mut nearest = Vec::with_capacity(places.len());
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
                        nearest.push((list[best.1], member));
                    });
                }
            }
            Ok(nearest)
        });
        let members_by_task = parallel::all(members_by_task)?;
        let row = |place: usize| members_by_task[place / TASK_ROWS][place % TASK_ROWS];
        Ok(Self::by_component(centres.len(), view.len(), row))
    }

    /// Every row with its nearest centre, without bounds.
    fn labelled(view: View<'_, F>, centres: &Centres<F>) -> Result<Self> {
        let k = centres.len();
        let rows = search::block_rows(k, centres.dim());
        let labels = parallel::map_blocks(view.len(), rows, |_, range| {
            let rows = view.load(range)?;
            let mut labels = vec![0; rows.len()];
            let mut squared = vec![F::zero(); rows.len()];
            rows.nearest(centres, &mut labels, &mut squared);
            Ok(labels)
        });
        Ok(Self::of_labels(&parallel::all(labels)?.concat(), k))
    }

    /// After centres moved: how many rows a search by these lists reads, and how many the lists do not cover, so that they may be nearer
    /// to another centre (E35).
    pub(crate) fn left_open(&self, lists: &NeighbourLists<F>) -> (usize, usize) {
        let counts = self.map_parts(|_, components| {
            let mut listed = 0;
            let mut open = 0;
            for (c, places) in components {
                let moved = lists.moved[c];
                for member in self.members[places].iter().map(|m| m.after(moved)) {
                    listed += usize::from(member.is_open(moved));
                    open += usize::from(member.is_uncovered(moved));
                }
            }
            (listed, open)
        });
        let listed = counts.iter().map(|(listed, _)| listed).sum();
        (listed, counts.iter().map(|(_, open)| open).sum())
    }

    /// Searches all centres for rows that their lists do not cover, if that lowers the squared distances by more than its price, which
    /// depends on the number of rows. Far rows can gain most, and are always searched. `error` is the squared distance of all rows.
    pub(crate) fn search_beyond(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        lists: &NeighbourLists<F>,
        error: f64,
        turn: usize,
        price: impl Fn(usize) -> f64,
    ) -> Result<Searched> {
        let mut open = self.where_open(|c, m| m.is_uncovered(lists.moved[c]));
        let price = price(open.len());
        let far = far(view, error);
        let mut missed = f64::INFINITY;
        let mut evaluations = 0;
        if price > 0.0 {
            (missed, evaluations) = self.missed(view, centres, lists, open.len(), turn)?;
        }
        let pays = missed > price;
        if !pays {
            open.retain(|row| self.members[row.place].upper >= far);
        }
        let mut searched = self.search_all(view, centres, &open, !pays || price <= 0.0)?;
        searched.evaluations += evaluations;
        searched.whole = pays && price > 0.0;
        Ok(searched)
    }

    /// How much a search of all centres would lower the squared distances of the rows that their lists do not cover, about `open`:
    /// estimated by a sample, another one in each turn. Also the number of distance evaluations. A gain counts only as far as no list
    /// around the row's own centre gives it.
    pub(crate) fn missed(
        &self,
        view: View<'_, F>,
        centres: &Centres<F>,
        lists: &NeighbourLists<F>,
        open: usize,
        turn: usize,
    ) -> Result<(f64, u64)> {
        let step = open.div_ceil(LIMITS.drawn_rows).max(1);
        let drawn = self.drawn(turn % step, step, |c, member| {
            let moved = lists.moved[c];
            member.after(moved).is_uncovered(moved)
        });
        let listed = |row: &Change, nearest| lists.list(row.from).contains(&nearest);
        let near = lists.list(0).len();
        let (missed, evaluations) = missed_of(view, centres, &drawn, near, &listed)?;
        Ok((step as f64 * missed, evaluations))
    }

    /// The open members among those at even steps, as changes to no other component yet.
    fn drawn(
        &self,
        from: usize,
        step: usize,
        open: impl Fn(usize, &Member<F>) -> bool,
    ) -> Vec<Change> {
        let mut drawn = Vec::new();
        let mut c = 0;
        for place in (from..self.len()).step_by(step) {
            while self.starts[c + 1] <= place {
                c += 1;
            }
            if open(c, &self.members[place]) {
                drawn.push(self.change(place, c, c as u32));
            }
        }
        drawn
    }

    /// Searches all centres for these rows: for the nearest and the second nearest, or, faster, for the nearest and a bound of the
    /// distance to others.
    pub(super) fn search_all(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        open: &[Change],
        for_second: bool,
    ) -> Result<Searched> {
        let rows = search::block_rows(centres.len(), centres.dim());
        // A single centre is the second nearest as well, at any distance.
        let width = centres.len().min(2);
        let nearest = parallel::map_blocks(open.len(), rows, |_, range| {
            let open = &open[range];
            let rows = view.gather(open.iter().map(|row| row.row))?;
            if !for_second && let Some(nearest) = nearest_alone(&rows, centres, open) {
                return Ok(nearest);
            }
            let mut block = Block::listed(centres.len(), width);
            block.reset(rows.len(), &[]);
            block.supports.resize(rows.len() * width, 0);
            let cost = Cost::Squared(centres);
            search::ranked(cost, &rows, &mut block, &mut Exact::default());
            let nearest = open.iter().enumerate().map(|(i, row)| {
                let ids = block.support(i);
                let squared = block.costs(i);
                let mut to = ids[0];
                let mut member = Member {
                    row: row.row,
                    second: ids[width - 1],
                    upper: root(squared[0]),
                    lower: squared.get(1).map_or(F::INFINITY, |next| root(*next)),
                };
                // The row stays if others are only as near.
                if member.second == row.from && member.upper == member.lower {
                    std::mem::swap(&mut to, &mut member.second);
                }
                (to, member)
            });
            Ok(nearest.collect::<Vec<_>>())
        });
        let mut changes = Vec::new();
        for (row, (to, member)) in open.iter().zip(parallel::joined(nearest)?) {
            self.members[row.place] = member;
            if to != row.from {
                changes.push(Change { to, ..*row });
            }
        }
        Ok(Searched {
            changes,
            evaluations: (open.len() * centres.len()) as u64,
            whole: false,
        })
    }

    /// The members that are open, as changes to no other component yet.
    fn where_open(&self, open: impl Fn(usize, &Member<F>) -> bool + Sync) -> Vec<Change> {
        let open_by_part = self.map_parts(|_, components| {
            components
                .flat_map(|(c, places)| places.map(move |place| (c, place)))
                .filter(|(c, place)| open(*c, &self.members[*place]))
                .map(|(c, place)| self.change(place, c, c as u32))
                .collect::<Vec<_>>()
        });
        open_by_part.concat()
    }
}

/// How much a search of all centres would lower the squared distances of these rows, and the number of distance evaluations. It
/// counts where the nearest centre is not listed for the row, and only as far as the `near` centres around the row's own do not
/// give it.
fn missed_of<F: Float>(
    view: View<'_, F>,
    centres: &Centres<F>,
    drawn: &[Change],
    near: usize,
    is_listed: &(dyn Fn(&Change, u32) -> bool + Sync),
) -> Result<(f64, u64)> {
    let k = centres.len();
    let every_centre: Vec<u32> = (0..k as u32).collect();
    let gains = parallel::map_blocks(drawn.len(), BATCH_ROWS / 8, |_, range| {
        let drawn = &drawn[range];
        let rows = view.gather(drawn.iter().map(|row| row.row))?;
        let mut nearest = vec![0; rows.len()];
        let mut least = vec![F::zero(); rows.len()];
        rows.nearest(centres, &mut nearest, &mut least);
        let mut squared = Vec::new();
        let mut gain = 0.0;
        for (i, row) in drawn.iter().enumerate() {
            if is_listed(row, nearest[i]) {
                continue;
            }
            // The lists may be old: this one is not.
            let from = centres.row(row.from as usize);
            distance::to_some(from, &centres.values, &every_centre, &mut squared);
            let mut list: Vec<(f64, u32)> = Vec::with_capacity(k);
            for (square, c) in squared.iter().zip(0..) {
                list.push((square.to_f64(), c));
            }
            sort::keep_least(&mut list, near);
            let list: Vec<u32> = list.iter().map(|(_, c)| *c).collect();
            rows.distances_to(i, centres, &list, &mut squared);
            let listed = squared.iter().fold(f64::INFINITY, |d, s| d.min(s.to_f64()));
            gain += rows.weight(i) * (listed - least[i].to_f64()).max(0.0);
        }
        Ok(gain)
    });
    let gain: f64 = parallel::all(gains)?.iter().sum();
    Ok((gain, (drawn.len() * (k + near)) as u64))
}

/// The nearest of all centres for each of these rows, and a bound of the distance to others; `None` for rows that have no products.
fn nearest_alone<F: Float>(
    rows: &Rows<F>,
    centres: &Centres<F>,
    open: &[Change],
) -> Option<Vec<(u32, Member<F>)>> {
    let mut near = Nearest::default();
    if !near.of_all(rows, centres) {
        return None;
    }
    let distances = near.squared.iter().zip(&near.others);
    let nearest = open.iter().zip(&near.ids).zip(distances);
    let members = nearest.map(|((row, to), (squared, others))| {
        let member = Member {
            row: row.row,
            second: row.from,
            upper: root(*squared),
            lower: root(*others),
        };
        (*to, member)
    });
    Some(members.collect())
}

/// The distance from which on rows are far, by the squared distances of all rows.
fn far<F: Float>(view: View<'_, F>, squared: f64) -> F {
    F::from_f64((LIMITS.far * squared / view.data.summary().total_weight).sqrt())
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
        let frame = data.frame();
        let every_centre = (0..600).collect::<Vec<u32>>();
        let centres = Centres::enter(centres.view(), &frame);
        let points = Centres::enter(x.view().split_at(ndarray::Axis(0), 5).0, &frame);
        let view = View::new(&data, &frame);
        let assignment = Assignment::around(view, &centres, &points, |_| &every_centre).unwrap();
        let rows = view.load(0..data.len()).unwrap();
        let distance =
            |row: u32, c: usize| distance::exact(rows.row(row as usize), centres.row(c)).sqrt();
        for c in 0..600 {
            for member in assignment.members(c) {
                let to_nearest = distance(member.row, c);
                let least = (0..600).map(|c| distance(member.row, c)).reduce(f64::min);
                assert!(to_nearest <= least.unwrap() * (1.0 + 1e-4));
                assert!((f64::from(member.upper) - to_nearest).abs() <= 1e-4 * to_nearest);
                let next = distance(member.row, member.second as usize);
                assert!((f64::from(member.lower) - next).abs() <= 1e-4 * next);
            }
        }
    }

    /// Half of the rows overlap, so that short lists miss centres: the estimate from a sample of all rows is the naive gain, and the
    /// search beyond lists finds the nearest of all centres, and bounds of the distances.
    #[test]
    fn beyond_lists() {
        let n = 900;
        let k = 60;
        let d = 8;
        let mut rng = Rng::from_seed(7);
        let mut random = |n: usize| Array2::from_shape_fn((n, d), |_| rng.normal() as f32);
        let mut x = random(n);
        let first = random(k);
        let step = random(k);
        for (i, mut row) in x.outer_iter_mut().enumerate().take(n / 2) {
            row *= 0.2;
            row += &first.row(i % k);
        }
        let data = Dense::new(x.view()).unwrap();
        let now = &first + &(step * 0.05);
        let frame = data.frame();
        let before = Centres::enter(first.view(), &frame);
        let now = Centres::enter(now.view(), &frame);
        let view = View::new(&data, &frame);
        let rows = view.load(0..n).unwrap();
        let distance =
            |row: u32, c: u32| distance::exact(rows.row(row as usize), now.row(c as usize));
        let nearest = |row: u32, candidates: &[u32]| {
            let squared = candidates.iter().map(|c| distance(row, *c));
            squared.fold(f64::INFINITY, f64::min)
        };
        let labels: Vec<u32> = (0..n).map(|i| (i % k) as u32).collect();
        let mut assignment = Assignment::of_labels(&labels, k);
        for member in &mut assignment.members {
            member.upper = 100.0;
        }
        let (mut lists, _) = NeighbourLists::new(&before, 2);
        lists.follow(&before, &now);
        let every: Vec<u32> = (0..k as u32).collect();
        let (new, _) = NeighbourLists::new(&now, 2);
        let mut naive = 0.0;
        let mut without = 0.0;
        for &c in &every {
            for member in assignment.members(c as usize) {
                let least = nearest(member.row, &every);
                let gain = nearest(member.row, new.list(c)) - least;
                without += gain;
                if nearest(member.row, lists.list(c)) > least {
                    naive += gain;
                }
            }
        }
        let (listed, open) = assignment.left_open(&lists);
        assert_eq!((listed, open), (n, n));
        let (missed, _) = assignment.missed(view, &now, &lists, open, 3).unwrap();
        assert!((missed - naive).abs() <= 1e-5 * naive, "{missed} {naive}");
        let drawn = assignment.drawn(0, 1, |_, _| true);
        let stays = |row: &Change, nearest| row.from == nearest;
        let (missed, _) = missed_of(view, &now, &drawn, 2, &stays).unwrap();
        assert!(
            (missed - without).abs() <= 1e-5 * without,
            "{missed} {without}"
        );
        // Some rows are covered by lists then.
        let (by_lists, _) = assignment.search(view, &now, &lists, false).unwrap();
        assignment.apply(&by_lists);
        let (_, open) = assignment.left_open(&lists);
        assert!(open < n);
        let (changes, _) = assignment.search(view, &now, &lists, true).unwrap();
        assignment.apply(&changes);
        for &c in &every {
            for member in assignment.members(c as usize) {
                let squared = distance(member.row, c);
                assert!(squared <= nearest(member.row, &every) * (1.0 + 1e-5));
                assert!(f64::from(member.upper) >= squared.sqrt() * (1.0 - 1e-5));
                let others: Vec<u32> = every.iter().copied().filter(|o| *o != c).collect();
                let others = nearest(member.row, &others).sqrt();
                assert!(f64::from(member.lower) <= others * (1.0 + 1e-5));
            }
        }
    }

    /// Iterations by lists find hardly any of what inverted lists miss in many columns, and nearly all in two: only there these
    /// are kept.
    #[test]
    fn where_inverted_lists_miss_much_the_first_search_is_over_all_centres() {
        let n = LIMITS.sampled * LIMITS.drawn_rows;
        let k = 2_000;
        let near = 4;
        for (d, listed) in [(2, true), (16, false)] {
            let mut rng = Rng::from_seed(3);
            let mut random = |n| Array2::from_shape_fn((n, d), |_| rng.normal() as f32);
            let x = random(n);
            let centres = random(k);
            let data = Dense::new(x.view()).unwrap();
            let frame = data.frame();
            let centres = Centres::enter(centres.view(), &frame);
            let view = View::new(&data, &frame);
            let (first, evaluations, _) = Assignment::first(view, &centres, near).unwrap();
            assert_eq!(evaluations < (n * k) as u64, listed, "{d}: {evaluations}");
            let (exhaustive, ..) = Assignment::exhaustive(view, &centres).unwrap();
            let more = first.squared(view) / exhaustive.squared(view) - 1.0;
            assert!(listed || more.abs() < 1e-6, "{d}: {more}");
        }
    }
}
