//! Searches over all centres: the first of a phase, and that of rows which their lists do not cover.

use super::assignment::{Assignment, Change, Member, PART};
use super::list_search::{Kernel, TOGETHER, root};
use super::lists::InvertedLists;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::data::{Centres, Rows, View};
use crate::model::block::Block;
use crate::model::search::{self, Exact};

/// Up to so many centres, all of them are the list, whichever is the nearest.
const FEW: usize = 48;

/// Length of an inverted list of the first search, per centre on a neighbour list.
const WIDER: usize = 2;

/// Rows at this many times the mean squared distance are far: at most one in as many. They can gain most.
const FAR: f64 = 16.0;

/// Rows that say what a search of all would gain.
const DRAWS: usize = 512;

/// All centres are packed for every point if it has so many rows on average, in at most so many columns. With more columns
/// matrix products are faster: packed centres no longer stay in the nearest cache.
const PACKED: usize = 128;
const COLUMNS: usize = 128;

/// The nearest and the second nearest centre of a row, and the distances to them.
#[derive(Clone, Copy, Debug)]
struct TwoNearest<F> {
    nearest: u32,
    second: u32,
    distance: F,
    next: F,
}

impl<F: Float> Assignment<F> {
    /// Every row with its nearest centre and the second nearest: of all centres, or of the inverted list of its point (E40)
    /// if that is cheaper and there is a tolerance. In that case rows that may be nearer to a centre outside the list are
    /// [searched beyond it](Self::search_beyond), where neighbour lists of `near` centres would correct too little. Returns the
    /// number of distance evaluations as well.
    pub(crate) fn first(
        view: View<'_, F>,
        centres: &Centres<F>,
        near: usize,
        tolerance: f64,
    ) -> Result<(Self, u64)> {
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
        let iterations = |rows: usize| (rows * centres.len()) as f64 / (view.len() * near) as f64;
        let open = |_, member: &Member<F>| member.lower < F::zero();
        let mut error = all.squared(view);
        loop {
            let price = |rows: usize| tolerance * iterations(rows) * error;
            let (changes, more) = all.search_beyond(view, centres, near, open, error, price)?;
            all.apply(&changes);
            evaluations += more;
            // A few rows very far out hide others: these are far once the mean has fallen.
            let before = std::mem::replace(&mut error, all.squared(view));
            if changes.is_empty() || error >= 0.5 * before {
                return Ok((all, evaluations));
            }
        }
    }

    /// The same over all centres.
    pub(crate) fn exhaustive(view: View<'_, F>, centres: &Centres<F>) -> Result<(Self, u64)> {
        let (n, k) = (view.len(), centres.len());
        let list: Vec<u32> = (0..k as u32).collect();
        if (2..=FEW).contains(&k) {
            let all = Self::around(view, centres, centres, |_| &list)?;
            return Ok((all, (2 * n * k) as u64));
        }
        let number = (k as f64).sqrt() as usize;
        if centres.dim() <= COLUMNS && n / PACKED >= number {
            // Distances are expanded about one of a few centres, the nearest of them.
            let all = Self::around(view, centres, &centres.evenly(number), |_| &list)?;
            return Ok((all, (n * (number + k)) as u64));
        }
        let rows = search::block_rows(k, centres.dim());
        let found = parallel::map_blocks(n, rows, |_, range| {
            let found = two_nearest(centres, &view.load(range.clone())?);
            let members = range.zip(found).map(|(row, found)| {
                let mut member = Member::unknown(row as u32);
                member.set(&found);
                (found.nearest, member)
            });
            Ok(members.collect::<Vec<_>>())
        });
        let found = parallel::all(found)?;
        let all = Self::by_component(k, found.len(), |block| found[block].iter().copied());
        Ok((all, (n * k) as u64))
    }

    /// The nearest centre of every row and the second nearest, among those that `list` gives for its point.
    fn around<'a>(
        view: View<'_, F>,
        centres: &Centres<F>,
        points: &Centres<F>,
        list: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Result<Self> {
        let near = Self::labelled(view, points)?;
        let slack = 8.0 * (centres.dim() + 8) as f64 * F::EPSILON;
        let found = parallel::map_blocks(view.len(), PART, |_, places| {
            let mut kernel = Kernel::default();
            let mut farthest = Vec::new();
            let mut found = Vec::with_capacity(places.len());
            for (point, places) in sort::among(near.starts(), places) {
                let list = list(point);
                // Centres that are not on the list are at least this far from the point.
                let reach = if list.len() == centres.len() {
                    f64::INFINITY
                } else {
                    let last = &list[list.len() - 1..];
                    centres.distances_of(points.row(point), last, &mut farthest);
                    farthest[0].to_f64().sqrt() * (1.0 - slack)
                };
                kernel.pack(centres, list, points.row(point));
                for members in near.stretch(places).chunks(TOGETHER) {
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
            let mut block = Block::new(k, 1);
            block.reset(rows.len(), &[]);
            search::best(centres, &rows, &mut block, &mut Exact::default());
            Ok(block.supports)
        });
        Ok(Self::of_labels(&parallel::all(labels)?.concat(), k))
    }

    /// Searches all centres for open rows, which may be nearer to one outside their list (E35): those far out, and all, if some
    /// rows drawn say that this lowers the squared distances by more than the `price` of a search of so many rows, beyond what
    /// lists of `near` centres do. `error` are the squared distances. Returns the changes, by place, and the number of distance
    /// evaluations.
    pub(crate) fn search_beyond(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        near: usize,
        open: impl Fn(usize, &Member<F>) -> bool + Sync,
        error: f64,
        price: impl Fn(usize) -> f64,
    ) -> Result<(Vec<Change>, u64)> {
        let far = far(view, error);
        let some = self.places_of(|c, place| {
            let member = self.member(place);
            member.upper < far && open(c, member)
        });
        let price = price(some.len());
        let (promised, evaluations) = match price > 0.0 && some.len() > DRAWS {
            true => self.gain(view, centres, near, &some)?,
            false => (f64::INFINITY, 0),
        };
        let all = promised > price;
        let (changes, more) =
            self.search_all(view, centres, |c, m| (all || m.upper >= far) && open(c, m))?;
        Ok((changes, evaluations + more))
    }

    /// How much a search of the open members over all centres would lower the squared distances, more than one over the `near`
    /// centres around their own: by a few of them, drawn in proportion to their part of these, one at the middle of every step.
    /// Returns the number of distance evaluations as well.
    fn gain(
        &self,
        view: View<'_, F>,
        centres: &Centres<F>,
        near: usize,
        open: &[(u32, u32)],
    ) -> Result<(f64, u64)> {
        let error = |&(_, place): &(u32, u32)| {
            let member = self.member(place as usize);
            view.weight(member.row) * member.upper.to_f64().powi(2)
        };
        let step = open.iter().map(error).sum::<f64>() / DRAWS as f64;
        let (mut sum, mut steps, mut drawn) = (0.0, 0.5, Vec::new());
        for member in open {
            let error = error(member);
            sum += error;
            let times = (sum / step - steps).max(0.0).ceil();
            if times > 0.0 {
                steps += times;
                // A row stands for so many of its kind.
                drawn.push((*member, times * step / error));
            }
        }
        let gains = parallel::map_blocks(drawn.len(), TOGETHER / 8, |_, range| {
            let drawn = &drawn[range];
            let places = drawn.iter().map(|((_, place), _)| *place as usize);
            let rows = view.gather(places.map(|place| self.member(place).row))?;
            let (found, mut squared) = (two_nearest(centres, &rows), Vec::new());
            let gains = drawn.iter().zip(found).enumerate();
            let gains = gains.map(|(i, (((c, _), times), found))| {
                let mut list: Vec<u32> = (0..centres.len() as u32).collect();
                if near < list.len() {
                    centres.distances_from(*c as usize, &list, &mut squared);
                    let of = |c: &u32| squared[*c as usize].to_f64();
                    list.select_nth_unstable_by(near - 1, |a, b| of(a).total_cmp(&of(b)));
                    list.truncate(near);
                }
                rows.distances_to(i, centres, &list, &mut squared);
                let own = squared.iter().fold(f64::INFINITY, |d, s| d.min(s.to_f64()));
                let fall = own - found.distance.to_f64().powi(2);
                times * rows.weight(i) * fall.max(0.0)
            });
            Ok(gains.sum::<f64>())
        });
        let gains = parallel::all(gains)?;
        let evaluations = drawn.len() * (2 * centres.len() + near);
        Ok((gains.iter().sum(), evaluations as u64))
    }

    /// Compares the open members with all centres. Returns the changes, by place, and the number of distance evaluations.
    fn search_all(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        open: impl Fn(usize, &Member<F>) -> bool + Sync,
    ) -> Result<(Vec<Change>, u64)> {
        let open = self.places_of(|c, place| open(c, self.member(place)));
        let rows = search::block_rows(centres.len(), centres.dim());
        let found = parallel::map_blocks(open.len(), rows, |_, range| {
            let places = open[range].iter().map(|(_, place)| *place as usize);
            let rows = places.map(|place| self.member(place).row);
            Ok(two_nearest(centres, &view.gather(rows)?))
        });
        let found = parallel::all(found)?;
        let mut changes = Vec::new();
        let (_, members) = self.members_mut();
        for (&(from, place), mut found) in open.iter().zip(found.concat()) {
            // The row stays if others are only as near.
            if found.second == from && found.distance == found.next {
                std::mem::swap(&mut found.nearest, &mut found.second);
            }
            let member = &mut members[place as usize];
            member.set(&found);
            if found.nearest != from {
                changes.push(Change {
                    place: place as usize,
                    row: member.row,
                    from,
                    to: found.nearest,
                });
            }
        }
        Ok((changes, (open.len() * centres.len()) as u64))
    }

    /// The components and places of some members. Places are as many as rows, whose numbers have 32 bits.
    fn places_of(&self, wanted: impl Fn(usize, usize) -> bool + Sync) -> Vec<(u32, u32)> {
        let found = self.map_parts(|_, components| {
            let places = components.flat_map(|(c, places)| places.map(move |place| (c, place)));
            let found = places.filter(|(c, place)| wanted(*c, *place));
            let found = found.map(|(c, place)| (c as u32, place as u32));
            found.collect::<Vec<_>>()
        });
        found.concat()
    }
}

impl<F: Float> Member<F> {
    /// Takes the bounds of a search over all centres.
    fn set(&mut self, found: &TwoNearest<F>) {
        (self.second, self.upper, self.lower) = (found.second, found.distance, found.next);
    }
}

/// The distance from which on rows are far, by the squared distances of all rows.
fn far<F: Float>(view: View<'_, F>, squared: f64) -> F {
    F::from_f64((FAR * squared / view.data.summary().total_weight).sqrt())
}

/// The nearest centre of every row and the second nearest. A single centre is the second nearest as well, at any distance.
fn two_nearest<F: Float>(centres: &Centres<F>, rows: &Rows<F>) -> Vec<TwoNearest<F>> {
    let width = centres.len().min(2);
    let mut block = Block::new(centres.len(), width);
    block.reset(rows.len(), &[]);
    search::best(centres, rows, &mut block, &mut Exact::default());
    let pairs = block.supports.chunks_exact(width);
    let found = pairs.zip(block.scores.chunks_exact(width));
    let found = found.map(|(ids, squared)| TwoNearest {
        nearest: ids[0],
        second: ids[width - 1],
        distance: root(squared[0]),
        next: if width > 1 {
            root(squared[1])
        } else {
            F::INFINITY
        },
    });
    found.collect()
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
        let mut place = |_: usize| rng.uniform() as f32;
        let pairs = Array2::from_shape_fn((300, 2), |(i, _)| place(i));
        let mut rng = Rng::from_seed(3);
        let mut near = |i: usize, j: usize| pairs[[i % 300, j]] + 1e-4 * rng.normal() as f32;
        let centres = Array2::from_shape_fn((600, 2), |(i, j)| near(i, j));
        let x = Array2::from_shape_fn((6_000, 2), |(i, j)| near(i, j));
        let data = Dense::new(x.view()).unwrap();
        let frame = data.frame();
        let centres = Centres::enter(centres.view(), &frame);
        let points = Centres::enter(x.view().split_at(ndarray::Axis(0), 5).0, &frame);
        let all: Vec<u32> = (0..600).collect();
        let found =
            Assignment::around(View::new(&data, &frame), &centres, &points, |_| &all).unwrap();
        let mut rows = Rows::default();
        data.load(0..data.len(), &frame, &mut rows).unwrap();
        let distance = |row: u32, c: usize| -> f64 {
            let pairs = rows.row(row as usize).iter().zip(centres.row(c));
            let squares = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
            squares.sum::<f64>().sqrt()
        };
        for c in 0..600 {
            for member in found.members(c) {
                let own = distance(member.row, c);
                let least = (0..600).map(|c| distance(member.row, c));
                let least = least.fold(f64::INFINITY, f64::min);
                assert!(own <= least * (1.0 + 1e-4), "{own} {least}");
                assert!((f64::from(member.upper) - own).abs() <= 1e-4 * own);
                let next = distance(member.row, member.second as usize);
                assert!((f64::from(member.lower) - next).abs() <= 1e-4 * next);
            }
        }
    }

    /// Few centres and many, compared with a search row by row.
    #[test]
    fn a_first_search_finds_the_two_nearest() {
        let mut rng = Rng::from_seed(1);
        let x = Array2::from_shape_fn((3_000, 5), |_| rng.normal());
        let data = Dense::new(x.view()).unwrap();
        let frame = data.frame();
        for k in [1, 2, 3, 16, 17, FEW, FEW + 1] {
            let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (found, _) = Assignment::exhaustive(View::new(&data, &frame), &centres).unwrap();
            let mut rows = Rows::default();
            data.load(0..data.len(), &frame, &mut rows).unwrap();
            let all: Vec<u32> = (0..k as u32).collect();
            for c in 0..k {
                for member in found.members(c) {
                    let mut squared = Vec::new();
                    rows.distances_to(member.row as usize, &centres, &all, &mut squared);
                    let mut naive: Vec<(f64, usize)> = squared.into_iter().zip(0..).collect();
                    naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                    assert_eq!(naive[0].1, c);
                    assert!((member.upper - root(naive[0].0)).abs() < 1e-7);
                    match naive.get(1) {
                        Some(next) => {
                            assert_eq!(member.second as usize, next.1);
                            assert!((member.lower - root(next.0)).abs() < 1e-7);
                        }
                        None => assert_eq!(member.lower, f64::INFINITY),
                    }
                }
            }
        }
    }
}
