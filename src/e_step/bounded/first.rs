//! The first search of a phase: nothing is known of the rows yet.

use super::assignment::{Assignment, Member, PART};
use super::kernel::{Kernel, TOGETHER, root};
use super::quantizer::CoarseQuantizer;
use super::wider::{packs, two_nearest};
use super::worth::{Doubt, Worth};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::data::{Centres, Data, Frame, Rows};
use crate::model::search;

/// Up to so many centres, all of them are the list, whichever is the nearest.
const FEW: usize = 48;

/// Length of an inverted list of the first search, per centre on a neighbour list.
const WIDER: usize = 2;

impl<F: Float> Assignment<F> {
    /// Every row with its nearest centre and the second nearest: of all centres, or of the inverted list of its point (E40)
    /// if that is cheaper. In that case it also searches over all centres if that is worth its cost: if the next search,
    /// over neighbour lists, would correct too little. `beside` is the residual of projected rows. Returns the number of
    /// distance evaluations as well.
    pub(crate) fn first(
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        worth: &Worth,
        beside: f64,
    ) -> (Self, u64) {
        let Some(quantizer) = CoarseQuantizer::of(centres, WIDER * worth.near) else {
            return Self::exhaustive(data, frame, centres);
        };
        if worth.tolerance <= 0.0 {
            return Self::exhaustive(data, frame, centres);
        }
        let (mut all, evaluations) = Self::by_quantizer(data, frame, centres, &quantizer);
        let open = |_, member: &Member<F>| member.lower < F::zero();
        let list = |c: u32, near: &mut Vec<u32>| {
            let mut squared = Vec::new();
            near.clear();
            near.extend(0..centres.len() as u32);
            centres.distances_of(centres.row(c as usize), near, &mut squared);
            let of = |c: &u32| squared[*c as usize].to_f64();
            let order = |a: &u32, b: &u32| of(a).total_cmp(&of(b)).then(a.cmp(b));
            near.select_nth_unstable_by(worth.near - 1, order);
            near.truncate(worth.near);
        };
        let error = all.squared(data) + beside;
        let doubt = Doubt::of(&all, data, error, open);
        let price = |rows: usize| error * worth.price((rows * centres.len()) as f64);
        let (from, more) = doubt.pays(data, frame, centres, price, open, list);
        if let Some(from) = from {
            let (changes, wider) = all.widen(data, frame, centres, None, from);
            all.apply(&changes);
            return (all, evaluations + wider + more);
        }
        (all, evaluations + more)
    }

    /// The same over the inverted list of each row's point alone: it may miss the nearest.
    fn by_quantizer(
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        quantizer: &CoarseQuantizer<F>,
    ) -> (Self, u64) {
        let all = Self::around(data, frame, centres, &quantizer.points, |g| {
            quantizer.list(g)
        });
        let evaluations = data.len() * (quantizer.points.len() + quantizer.list(0).len());
        (all, quantizer.evaluations + evaluations as u64)
    }

    /// The same over all centres.
    pub(crate) fn exhaustive(
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
    ) -> (Self, u64) {
        let k = centres.len();
        if (2..=FEW).contains(&k) {
            let list: Vec<u32> = (0..k as u32).collect();
            let all = Self::around(data, frame, centres, centres, |_| &list);
            return (all, (2 * data.len() * k) as u64);
        }
        let number = (k as f64).sqrt() as usize;
        if packs(data.len(), number, centres.dim()) {
            // Distances are expanded about one of a few centres, the nearest of them.
            let list: Vec<u32> = (0..k as u32).collect();
            let points = centres.evenly(number);
            let all = Self::around(data, frame, centres, &points, |_| &list);
            return (all, (data.len() * (number + k)) as u64);
        }
        let blocks = parallel::map_blocks(
            data.len(),
            search::block_rows(k, centres.dim()),
            |_, range| {
                let mut rows = Rows::default();
                data.load(range.clone(), frame, &mut rows);
                let found = range.zip(two_nearest(centres, &rows));
                let member =
                    |(row, ([nearest, second], [upper, lower])): (usize, ([u32; 2], [F; 2]))| {
                        let member = Member {
                            row: row as u32,
                            second,
                            upper,
                            lower,
                        };
                        (nearest, member)
                    };
                found.map(member).collect::<Vec<_>>()
            },
        );
        let all = Self::by_component(k, blocks.len(), |block| blocks[block].iter().copied());
        (all, (data.len() * k) as u64)
    }

    /// The nearest centre of every row and the second nearest, among those that `list` gives for its point.
    fn around<'a>(
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        points: &Centres<F>,
        list: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Self {
        let near = Self::labelled(data, frame, points);
        let slack = 8.0 * (centres.dim() + 8) as f64 * F::EPSILON;
        let found = parallel::map_blocks(data.len(), PART, |_, places| {
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
                    let rows = members.iter().map(|member| member.row as usize);
                    kernel.gather(data, frame, rows);
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
            found
        });
        let part = |part: usize| found[part].iter().copied();
        Self::by_component(centres.len(), found.len(), part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Dense, Rows};
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
        let found = Assignment::around(&data, &frame, &centres, &points, |_| &all);
        let mut rows = Rows::default();
        data.load(0..data.len(), &frame, &mut rows);
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
            let (found, _) = Assignment::exhaustive(&data, &frame, &centres);
            let mut rows = Rows::default();
            data.load(0..data.len(), &frame, &mut rows);
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
