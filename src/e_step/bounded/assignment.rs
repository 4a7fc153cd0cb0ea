//! Which component each row belongs to, by component, with bounds that settle most rows without a look at them.

use super::neighbour_lists::NeighbourLists;
use super::quantizer::CoarseQuantizer;
use super::worth::{Doubt, Worth};
use crate::block::Block;
use crate::counting;
use crate::data::{Centres, Data, DenseRows, Frame, Rows};
use crate::float::Float;
use crate::kernels::packed::Packed;
use crate::kernels::select;
use crate::parallel;
use crate::search::{self, Exact};
use std::ops::Range;

/// A row of a component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<F> {
    pub(crate) row: u32,
    /// The second nearest component of the last look.
    pub(crate) second: u32,
    /// At least the distance to the component's centre.
    pub(crate) upper: F,
    /// At most the distance to any other centre the row would look at. Right after a look its size is the distance to
    /// `second`; negative if there are centres to look at that this look did not see.
    pub(crate) lower: F,
}

impl<F: Float> Member<F> {
    /// Before any look: nothing is known, and nothing settled.
    fn unknown(row: u32) -> Self {
        Self {
            row,
            second: 0,
            upper: F::INFINITY,
            lower: F::zero(),
        }
    }
}

/// A member, by its place, that belongs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) place: usize,
    pub(crate) row: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// All rows by component: those of component c are the members `starts[c]..starts[c + 1]`.
#[derive(Debug)]
pub(crate) struct Assignment<F> {
    starts: Vec<usize>,
    members: Vec<Member<F>>,
    /// Memory of the last members: fresh memory costs more than what is done with it.
    spare: Vec<Member<F>>,
}

/// Rows looked at together.
const LOOK: usize = 256;

/// So few centres are all looked at from the nearest of them.
const FEW: usize = 48;

/// Centres in a first look, per centre in the later ones.
const WIDER: usize = 2;

/// Places that are one piece of work: of a few components, or of a part of one.
const PART: usize = 1024;

/// Stretches of rows that are sorted by component each on its own, before they are put together.
const STRETCHES: usize = 8;

impl<F: Float> Assignment<F> {
    /// Every row with its nearest centre, and the next: over all centres, or those near its pivot (E40) if that is
    /// cheaper for lists of `near`. Returns the distance evaluations, too.
    pub(crate) fn nearest(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        near: usize,
    ) -> (Self, u64) {
        match CoarseQuantizer::of(centres, WIDER * near) {
            None => Self::exhaustive(data, frame, centres),
            Some(groups) => Self::by_groups(data, frame, centres, &groups),
        }
    }

    /// The same, over all centres also where a look beside the means near the one found would leave more than that is
    /// worth (E40).
    pub(crate) fn first(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        worth: &Worth,
        beside: f64,
    ) -> (Self, u64) {
        let Some(groups) = CoarseQuantizer::of(centres, WIDER * worth.near) else {
            return Self::exhaustive(data, frame, centres);
        };
        if worth.tolerance <= 0.0 {
            return Self::exhaustive(data, frame, centres);
        }
        let (mut all, looks) = Self::by_groups(data, frame, centres, &groups);
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
        let price = |rows| error * worth.price(rows, data.len(), centres.len());
        let (from, more) = doubt.pays(data, frame, centres, price, open, list);
        if let Some(from) = from {
            let (changes, wider) = all.widen(data, frame, centres, None, from);
            all.apply(&changes);
            return (all, looks + wider + more);
        }
        (all, looks + more)
    }

    /// The same over the centres near each row's pivot: it may miss the nearest.
    fn by_groups(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        groups: &CoarseQuantizer<F>,
    ) -> (Self, u64) {
        let all = Self::around(data, frame, centres, &groups.pivots, |g| groups.list(g));
        let looks = data.len() * (groups.pivots.len() + groups.list(0).len());
        (all, groups.evaluations + looks as u64)
    }

    /// The same over all centres.
    pub(crate) fn exhaustive(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
    ) -> (Self, u64) {
        let k = centres.len();
        if (2..=FEW).contains(&k) {
            let list: Vec<u32> = (0..k as u32).collect();
            let all = Self::around(data, frame, centres, centres, |_| &list);
            return (all, (2 * data.len() * k) as u64);
        }
        let width = k.min(2);
        let blocks = parallel::map_blocks(data.len(), search::block_rows(k), |_, range| {
            let mut rows = DenseRows::default();
            data.load(range.clone(), frame, &mut rows);
            let mut block = Block::new(k, width);
            block.reset(rows.len(), &[]);
            search::best(centres, &rows, &mut block, &mut Exact::default());
            let found = range
                .zip(block.supports.chunks_exact(width))
                .zip(block.scores.chunks_exact(width));
            found
                .map(|((row, ids), squared)| {
                    let member = Member {
                        row: row as u32,
                        second: ids[width - 1],
                        upper: root(squared[0]),
                        lower: if width > 1 {
                            root(squared[1])
                        } else {
                            F::INFINITY
                        },
                    };
                    (ids[0], member)
                })
                .collect::<Vec<_>>()
        });
        let all = Self::by_component(k, blocks.len(), |block| blocks[block].iter().copied());
        (all, (data.len() * k) as u64)
    }

    /// Every row with its nearest centre, and nothing more known.
    pub(crate) fn labelled(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
    ) -> Self {
        let k = centres.len();
        let blocks = parallel::map_blocks(data.len(), search::block_rows(k), |_, range| {
            let mut rows = DenseRows::default();
            data.load(range, frame, &mut rows);
            let mut block = Block::new(k, 1);
            block.reset(rows.len(), &[]);
            search::best(centres, &rows, &mut block, &mut Exact::default());
            block.supports
        });
        Self::of_labels(&blocks.concat(), k)
    }

    /// The nearest centre of every row, and the next, among those that `list` gives for its pivot.
    fn around<'a>(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        pivots: &Centres<F>,
        list: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Self {
        let near = Self::labelled(data, frame, pivots);
        let slack = 8.0 * (centres.dim() + 8) as f64 * F::EPSILON;
        let found = parallel::map_blocks(data.len(), PART, |_, places| {
            let mut kernel = Kernel::default();
            let mut farthest = Vec::new();
            let mut found = Vec::with_capacity(places.len());
            for (pivot, places) in counting::among(&near.starts, places) {
                let list = list(pivot);
                // Centres that are not on the list are at least so far from the pivot.
                let reach = if list.len() == centres.len() {
                    f64::INFINITY
                } else {
                    let last = &list[list.len() - 1..];
                    centres.distances_of(pivots.row(pivot), last, &mut farthest);
                    farthest[0].to_f64().sqrt() * (1.0 - slack)
                };
                kernel.pack(centres, list, pivots.row(pivot));
                for members in near.members[places].chunks(LOOK) {
                    let rows = members.iter().map(|member| member.row as usize);
                    kernel.gather(data, frame, rows);
                    kernel.look(centres, |i, about, best, next| {
                        let others = root(next.0);
                        let seen_all = others.to_f64() <= reach - root(about).to_f64();
                        let member = Member {
                            row: members[i].row,
                            second: list[next.1],
                            upper: root(best.0),
                            lower: if seen_all { others } else { -others },
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

    /// Weighted squared distances of the rows to their centres, as far as they are known to the bounds.
    pub(crate) fn squared(&self, data: &dyn Data<Rows = DenseRows<F>>) -> f64 {
        let members = self.members.iter();
        members
            .map(|m| data.weight(m.row as usize) * m.upper.to_f64().powi(2))
            .sum()
    }

    /// Rows with a component each, of which nothing more is known.
    pub(crate) fn of_labels(labels: &[u32], k: usize) -> Self {
        let row = |row: usize| (labels[row], Member::unknown(row as u32));
        Self::by_component(k, labels.len(), |n| std::iter::once(row(n)))
    }

    /// The rows of `parts` parts, sorted by component: stretches of parts each on its own, and then all together.
    fn by_component<I: Iterator<Item = (u32, Member<F>)>>(
        k: usize,
        parts: usize,
        part: impl Fn(usize) -> I + Sync,
    ) -> Self {
        let stretch = parts.div_ceil(STRETCHES).max(1);
        let sorted = parallel::map_blocks(parts, stretch, |_, parts| {
            let all = || parts.clone().flat_map(&part);
            let starts = counting::starts(k, all().map(|(c, _)| c));
            let mut next = starts.clone();
            let mut members = vec![Member::unknown(0); starts[k]];
            for (c, member) in all() {
                members[next[c as usize]] = member;
                next[c as usize] += 1;
            }
            (starts, members)
        });
        let starts = (0..=k)
            .map(|c| sorted.iter().map(|(starts, _)| starts[c]).sum())
            .collect();
        Self::filled(starts, Vec::new(), |c, places| {
            for (starts, members) in &sorted {
                places.put(&members[starts[c]..starts[c + 1]]);
            }
        })
    }

    /// The members of every component c put into its places `starts[c]..starts[c + 1]` of a list, whatever is in it.
    fn filled(
        starts: Vec<usize>,
        mut members: Vec<Member<F>>,
        fill: impl Fn(usize, &mut Places<'_, F>) + Sync,
    ) -> Self {
        members.resize(starts[starts.len() - 1], Member::unknown(0));
        parallel::map_parts(parts(&starts, &mut members), |_, (components, members)| {
            let mut places = Places(members);
            for c in components {
                fill(c, &mut places);
            }
        });
        Self {
            starts,
            members,
            spare: Vec::new(),
        }
    }

    /// Where the members of each component start (k + 1).
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The member at a place.
    pub(crate) fn member(&self, place: usize) -> &Member<F> {
        &self.members[place]
    }

    /// Number of components, k.
    pub(crate) fn components(&self) -> usize {
        self.starts.len() - 1
    }

    /// The places of component `c`.
    pub(crate) fn places(&self, c: usize) -> Range<usize> {
        self.starts[c]..self.starts[c + 1]
    }

    /// The members of component `c`.
    pub(crate) fn members(&self, c: usize) -> &[Member<F>] {
        &self.members[self.places(c)]
    }

    /// The component of every row (n).
    pub(crate) fn labels(&self) -> Vec<u32> {
        let mut labels = vec![0; self.members.len()];
        for c in 0..self.components() {
            for member in self.members(c) {
                labels[member.row as usize] = c as u32;
            }
        }
        labels
    }

    /// Looks for a nearer centre among those near the row's own, for every row that the bounds do not settle. Returns
    /// what changes, by place, and the distance evaluations.
    pub(crate) fn search(
        &mut self,
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        nearby: &NeighbourLists<F>,
    ) -> (Vec<Change>, u64) {
        self.each(data, frame, centres, Some(nearby), Look::component)
    }

    /// Looks for a nearer centre among all, for every row at least `from` away that may be nearer to one that is not on the list of its own
    /// (E35), or on that of its pivot. Returns what changes, by place, and the distance evaluations.
    pub(crate) fn widen(
        &mut self,
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        nearby: Option<&NeighbourLists<F>>,
        from: F,
    ) -> (Vec<Change>, u64) {
        self.each(data, frame, centres, nearby, |look, c, first, members| {
            look.uncovered(c, first, members, from);
        })
    }

    /// A look at the members of every component.
    fn each<'a>(
        &mut self,
        data: &'a dyn Data<Rows = DenseRows<F>>,
        frame: &'a Frame<F>,
        centres: &'a Centres<F>,
        nearby: Option<&'a NeighbourLists<F>>,
        component: impl Fn(&mut Look<'a, F>, u32, usize, &mut [Member<F>]) + Sync,
    ) -> (Vec<Change>, u64) {
        let starts = &self.starts;
        let found = parallel::map_chunks(&mut self.members, PART, |_, places, members| {
            let mut look = Look::new(data, frame, centres, nearby);
            let first = places.start;
            for (c, places) in counting::among(starts, places) {
                let members = &mut members[places.start - first..places.end - first];
                component(&mut look, c as u32, places.start, members);
            }
            (look.changes, look.evaluations)
        });
        let evaluations = found.iter().map(|(_, evaluations)| evaluations).sum();
        let changes = found.into_iter().flat_map(|(changes, _)| changes);
        (changes.collect(), evaluations)
    }

    /// Moves members to where they belong. `changes` are in the order of their places.
    pub(crate) fn apply(&mut self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let k = self.components();
        let left = counting::starts(k, changes.iter().map(|change| change.from));
        let came = counting::starts(k, changes.iter().map(|change| change.to));
        let (mut next, mut coming) = (came.clone(), vec![0; changes.len()]);
        for change in changes {
            coming[next[change.to as usize]] = change.place;
            next[change.to as usize] += 1;
        }
        let starts = (0..=k).map(|c| self.starts[c] - left[c] + came[c]);
        let spare = std::mem::take(&mut self.spare);
        let filled = Self::filled(starts.collect(), spare, |c, places| {
            let mut from = self.starts[c];
            for change in &changes[left[c]..left[c + 1]] {
                places.put(&self.members[from..change.place]);
                from = change.place + 1;
            }
            places.put(&self.members[from..self.starts[c + 1]]);
            for &place in &coming[came[c]..came[c + 1]] {
                places.put(&self.members[place..=place]);
            }
        });
        self.spare = std::mem::replace(self, filled).members;
    }

    /// Forgets the bounds of all members: the next search looks at every row.
    pub(crate) fn forget(&mut self) {
        parallel::map_chunks(&mut self.members, PART, |_, _, members| {
            for member in members {
                member.lower = F::zero();
                member.upper = F::INFINITY;
            }
        });
    }
}

/// Places that are still to be filled.
struct Places<'a, F>(&'a mut [Member<F>]);

impl<F: Float> Places<'_, F> {
    fn put(&mut self, members: &[Member<F>]) {
        let (places, rest) = std::mem::take(&mut self.0).split_at_mut(members.len());
        places.copy_from_slice(members);
        self.0 = rest;
    }
}

/// Some components, and their members.
type Part<'a, F> = (Range<usize>, &'a mut [Member<F>]);

/// Consecutive components with at least [`PART`] members together, but for the last.
fn parts<'a, F>(starts: &[usize], mut members: &'a mut [Member<F>]) -> Vec<Part<'a, F>> {
    let (mut parts, mut first) = (Vec::new(), 0);
    for c in 0..starts.len() - 1 {
        let size = starts[c + 1] - starts[first];
        if size >= PART || c + 2 == starts.len() {
            let (part, rest) = members.split_at_mut(size);
            members = rest;
            parts.push((first..c + 1, part));
            first = c + 1;
        }
    }
    parts
}

fn root<F: Float>(squared: F) -> F {
    F::from_f64(squared.to_f64().sqrt())
}

/// One worker's look at the members of some components.
struct Look<'a, F: Float> {
    data: &'a dyn Data<Rows = DenseRows<F>>,
    frame: &'a Frame<F>,
    centres: &'a Centres<F>,
    /// None before there are lists.
    nearby: Option<&'a NeighbourLists<F>>,
    changes: Vec<Change>,
    evaluations: u64,
    /// Places among the members of the component that the bounds leave open.
    open: Vec<usize>,
    kernel: Kernel<F>,
}

impl<'a, F: Float> Look<'a, F> {
    fn new(
        data: &'a dyn Data<Rows = DenseRows<F>>,
        frame: &'a Frame<F>,
        centres: &'a Centres<F>,
        nearby: Option<&'a NeighbourLists<F>>,
    ) -> Self {
        Self {
            data,
            frame,
            centres,
            nearby,
            changes: Vec::new(),
            evaluations: 0,
            open: Vec::new(),
            kernel: Kernel::default(),
        }
    }

    fn component(&mut self, c: u32, first: usize, members: &mut [Member<F>]) {
        self.open.clear();
        let nearby = self.nearby.expect("lists");
        let moved = nearby.moved(c);
        for (i, member) in members.iter_mut().enumerate() {
            member.upper += moved.own;
            member.lower -= moved.others;
            // Not settled by what the row knows, nor by how far the next centre is from its own.
            if !(member.upper <= member.lower || member.upper <= moved.half_gap) {
                self.open.push(i);
            }
        }
        let list = nearby.list(c);
        self.look(c, first, members, list, false);
    }

    /// Those out of reach of the list, and so far from their centre at least, beside all centres.
    fn uncovered(&mut self, c: u32, first: usize, members: &mut [Member<F>], from: F) {
        self.open.clear();
        let reach = self.nearby.map(|near| near.moved(c).half_reach);
        let places = members.iter().enumerate();
        let open = places.filter(|(_, member)| match reach {
            _ if member.upper < from => false,
            Some(reach) => member.upper > reach,
            None => member.lower < F::zero(),
        });
        self.open.extend(open.map(|(i, _)| i));
        let others = (0..self.centres.len() as u32).filter(|other| *other != c);
        let all: Vec<u32> = std::iter::once(c).chain(others).collect();
        self.look(c, first, members, &all, true);
    }

    /// The open members beside the centres of `list`, their own first.
    fn look(&mut self, c: u32, first: usize, members: &mut [Member<F>], list: &[u32], all: bool) {
        if self.open.is_empty() {
            return;
        }
        self.kernel
            .pack(self.centres, list, self.centres.row(c as usize));
        let open = std::mem::take(&mut self.open);
        for open in open.chunks(LOOK) {
            let rows = open.iter().map(|&i| members[i].row as usize);
            self.kernel.gather(self.data, self.frame, rows);
            self.evaluations += (open.len() * list.len()) as u64;
            let changes = &mut self.changes;
            self.kernel.look(self.centres, |place, _, best, next| {
                let member = &mut members[open[place]];
                // The row's own centre is the first: it stays where others are only as near.
                member.upper = root(best.0);
                member.second = list[next.1];
                member.lower = root(next.0);
                if best.1 > 0 {
                    // Its new centre has other centres near it, which it has not seen.
                    if !all {
                        member.lower = -member.lower;
                    }
                    changes.push(Change {
                        place: first + open[place],
                        row: member.row,
                        from: c,
                        to: list[best.1],
                    });
                }
            });
        }
        self.open = open;
    }
}

/// Rows beside packed centres: the nearest of these, and the next.
#[derive(Default)]
struct Kernel<F> {
    ids: Vec<usize>,
    rows: DenseRows<F>,
    list: Vec<u32>,
    packed: Packed<F>,
    squared: Vec<F>,
}

/// Centres so many times nearer than the point they are expanded about (squared) are computed directly (E21).
const NEARER: f64 = 64.0;

impl<F: Float> Kernel<F> {
    /// Takes the centres of `list`, all of them near the padded row `about`, as the rows will be.
    fn pack(&mut self, centres: &Centres<F>, list: &[u32], about: &[F]) {
        self.list.clear();
        self.list.extend_from_slice(list);
        self.packed
            .pack(centres.values(), centres.dim(), list, about);
    }

    /// Takes rows.
    fn gather(
        &mut self,
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        rows: impl Iterator<Item = usize>,
    ) {
        self.ids.clear();
        self.ids.extend(rows);
        data.gather(&self.ids, frame, &mut self.rows);
    }

    /// Shows `found`, for each row by its place, its squared distance to what it was packed about, and the squared distances
    /// and places in the list of the two nearest.
    fn look(
        &mut self,
        centres: &Centres<F>,
        mut found: impl FnMut(usize, F, (F, usize), (F, usize)),
    ) {
        let Self {
            rows,
            list,
            packed,
            squared,
            ..
        } = self;
        let (share, mut i) = (F::from_f64(1.0 / NEARER), 0);
        packed.first_two(rows.values(), |about, mut best, mut next| {
            let least = share * about;
            if next.0 < least {
                rows.distances_to(i, centres, list, squared);
                (best, next) = select::first_two(squared);
            } else if best.0 < least {
                rows.distances_to(i, centres, &list[best.1..=best.1], squared);
                best.0 = squared[0];
            }
            found(i, about, best, next);
            i += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::rng::Rng;
    use approx::assert_abs_diff_eq;
    use ndarray::Array2;

    /// Tight pairs of centres far from any pivot: expanded distances alone would confuse them.
    #[test]
    fn what_is_much_nearer_than_the_pivot_is_exact() {
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
        let pivots = Centres::enter(x.view().split_at(ndarray::Axis(0), 5).0, &frame);
        let all: Vec<u32> = (0..600).collect();
        let found = Assignment::around(&data, &frame, &centres, &pivots, |_| &all);
        let mut rows = DenseRows::default();
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
                assert_abs_diff_eq!(f64::from(member.upper), own, epsilon = 1e-4 * own);
                let next = distance(member.row, member.second as usize);
                assert_abs_diff_eq!(f64::from(member.lower), next, epsilon = 1e-4 * next);
            }
        }
    }

    /// Few centres and many, beside what rows find one by one.
    #[test]
    fn a_first_look_finds_the_two_nearest() {
        let mut rng = Rng::from_seed(1);
        let x = Array2::from_shape_fn((3_000, 5), |_| rng.normal());
        let data = Dense::new(x.view()).unwrap();
        let frame = data.frame();
        for k in [1, 2, 3, 16, 17, FEW, FEW + 1] {
            let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (found, _) = Assignment::exhaustive(&data, &frame, &centres);
            let mut rows = DenseRows::default();
            data.load(0..data.len(), &frame, &mut rows);
            let all: Vec<u32> = (0..k as u32).collect();
            for c in 0..k {
                for member in found.members(c) {
                    let mut squared = Vec::new();
                    rows.distances_to(member.row as usize, &centres, &all, &mut squared);
                    let mut naive: Vec<(f64, usize)> = squared.into_iter().zip(0..).collect();
                    naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                    assert_eq!(naive[0].1, c);
                    assert_abs_diff_eq!(member.upper, root(naive[0].0), epsilon = 1e-7);
                    match naive.get(1) {
                        Some(next) => {
                            assert_eq!(member.second as usize, next.1);
                            assert_abs_diff_eq!(member.lower, root(next.0), epsilon = 1e-7);
                        }
                        None => assert_eq!(member.lower, f64::INFINITY),
                    }
                }
            }
        }
    }

    /// Rows move between components as in a list of labels; those that stay come first, in their order.
    #[test]
    fn changes_move_rows() {
        let mut rng = Rng::from_seed(2);
        for (n, k) in [(5_000, 3), (5_000, 700), (1, 1), (9, 40)] {
            let mut labels: Vec<u32> = (0..n).map(|_| rng.below(k) as u32).collect();
            let mut assignment = Assignment::<f32>::of_labels(&labels, k);
            for _ in 0..3 {
                assert_eq!(assignment.labels(), labels);
                let mut changes = Vec::new();
                let mut expected: Vec<Vec<u32>> = vec![Vec::new(); k];
                for (c, stay) in expected.iter_mut().enumerate() {
                    for place in assignment.places(c) {
                        let row = assignment.member(place).row;
                        let to = rng.below(3 * k);
                        if to < k && to != c {
                            let (from, to) = (c as u32, to as u32);
                            changes.push(Change {
                                place,
                                row,
                                from,
                                to,
                            });
                        } else {
                            stay.push(row);
                        }
                    }
                }
                for change in &changes {
                    labels[change.row as usize] = change.to;
                    expected[change.to as usize].push(change.row);
                }
                assignment.apply(&changes);
                for (c, expected) in expected.iter().enumerate() {
                    let rows: Vec<u32> = assignment.members(c).iter().map(|m| m.row).collect();
                    assert_eq!(rows, *expected);
                }
            }
        }
    }
}
