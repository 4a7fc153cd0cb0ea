//! Which component each row belongs to, by component, with bounds that settle most rows without a look at them.

use super::groups::Groups;
use super::nearby::Nearby;
use crate::block::Block;
use crate::counting;
use crate::data::{Centres, Data, DenseRows, Frame, Rows};
use crate::float::Float;
use crate::kernels::packed::Packed;
use crate::parallel;
use crate::search::{self, Exact};
use std::ops::Range;

/// A row of a component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<F> {
    pub(super) row: u32,
    /// The second nearest component of the last look.
    pub(super) second: u32,
    /// At least the distance to the component's centre.
    pub(super) upper: F,
    /// At most the distance to any other centre the row would look at. Right after a look its size is the distance to
    /// `second`; negative if there are centres to look at that this look did not see.
    pub(super) lower: F,
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
pub(super) struct Change {
    pub(super) place: usize,
    pub(super) row: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// All rows by component: those of component c are the members `starts[c]..starts[c + 1]`.
#[derive(Debug)]
pub(super) struct Assignment<F> {
    starts: Vec<usize>,
    members: Vec<Member<F>>,
}

/// Rows looked at together.
const LOOK: usize = 256;

/// Centres in a first look, per centre in the later ones.
const WIDER: usize = 2;

/// Rows of a part of the components, at least: one piece of work.
const PART: usize = 2048;

impl<F: Float> Assignment<F> {
    /// Every row with its nearest centre, and the next: over all centres, or those near its pivot (E40) if that is
    /// cheaper for lists of `near`. Returns the distance evaluations, too.
    pub(super) fn nearest<D>(
        data: &D,
        frame: &Frame<F>,
        centres: &Centres<F>,
        near: usize,
    ) -> (Self, u64)
    where
        D: Data<Float = F, Rows = DenseRows<F>>,
    {
        match Groups::of(centres, WIDER * near) {
            None => Self::exhaustive(data, frame, centres),
            Some(groups) => Self::grouped(data, frame, centres, &groups),
        }
    }

    /// The same over all centres.
    pub(super) fn exhaustive<D>(data: &D, frame: &Frame<F>, centres: &Centres<F>) -> (Self, u64)
    where
        D: Data<Float = F, Rows = DenseRows<F>>,
    {
        let k = centres.len();
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
        let all = Self::by_component(data.len(), k, || blocks.iter().flatten().copied());
        (all, (data.len() * k) as u64)
    }

    /// The same over the centres near each row's pivot: it may miss the nearest.
    fn grouped<D>(
        data: &D,
        frame: &Frame<F>,
        centres: &Centres<F>,
        groups: &Groups<F>,
    ) -> (Self, u64)
    where
        D: Data<Float = F, Rows = DenseRows<F>>,
    {
        let (mut pivots, mut evaluations) = Self::exhaustive(data, frame, &groups.pivots);
        evaluations += groups.evaluations + (data.len() * groups.list(0).len()) as u64;
        let starts = &pivots.starts;
        let parts = parts(starts, &mut pivots.members);
        let found = parallel::map_parts(parts, |_, (own, members)| {
            let mut kernel = Kernel::default();
            let mut found = Vec::with_capacity(members.len());
            let first = starts[own.start];
            for pivot in own {
                let members = &members[starts[pivot] - first..starts[pivot + 1] - first];
                let list = groups.list(pivot);
                kernel.pack(centres, list, groups.pivots.row(pivot));
                for members in members.chunks(LOOK) {
                    let rows = members.iter().map(|member| member.row as usize);
                    let mut of_rows = members.iter();
                    kernel.look(data, frame, rows, |best, next| {
                        found.extend(of_rows.next().map(|member| {
                            let member = Member {
                                row: member.row,
                                second: list[next.1],
                                upper: root(best.0),
                                lower: -root(next.0),
                            };
                            (list[best.1], member)
                        }));
                    });
                }
            }
            found
        });
        let k = centres.len();
        let all = Self::by_component(data.len(), k, || found.iter().flatten().copied());
        (all, evaluations)
    }

    /// Weighted squared distances of the rows to their centres, as far as they are known to the bounds.
    pub(super) fn squared<D: Data>(&self, data: &D) -> f64 {
        let members = self.members.iter();
        members
            .map(|m| data.weight(m.row as usize) * m.upper.to_f64().powi(2))
            .sum()
    }

    /// Rows with a component each, of which nothing more is known.
    pub(super) fn of_labels(labels: &[u32], k: usize) -> Self {
        let members = || {
            labels
                .iter()
                .zip(0..)
                .map(|(&c, row)| (c, Member::unknown(row)))
        };
        Self::by_component(labels.len(), k, members)
    }

    fn by_component<I: Iterator<Item = (u32, Member<F>)>>(
        n: usize,
        k: usize,
        all: impl Fn() -> I,
    ) -> Self {
        let starts = counting::starts(k, all().map(|(c, _)| c));
        let mut next = starts.clone();
        let mut members = vec![Member::unknown(0); n];
        for (c, member) in all() {
            members[next[c as usize]] = member;
            next[c as usize] += 1;
        }
        Self { starts, members }
    }

    /// Number of components, k.
    pub(super) fn components(&self) -> usize {
        self.starts.len() - 1
    }

    /// The places of component `c`.
    pub(super) fn places(&self, c: usize) -> Range<usize> {
        self.starts[c]..self.starts[c + 1]
    }

    /// The members of component `c`.
    pub(super) fn members(&self, c: usize) -> &[Member<F>] {
        &self.members[self.places(c)]
    }

    /// The component of every row (n).
    pub(super) fn labels(&self) -> Vec<u32> {
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
    pub(super) fn search<D>(
        &mut self,
        data: &D,
        frame: &Frame<F>,
        centres: &Centres<F>,
        nearby: &Nearby<F>,
    ) -> (Vec<Change>, u64)
    where
        D: Data<Float = F, Rows = DenseRows<F>>,
    {
        let starts = &self.starts;
        let parts = parts(starts, &mut self.members);
        let found = parallel::map_parts(parts, |_, (components, members)| {
            let mut look = Look::new(data, frame, centres, nearby);
            let first = starts[components.start];
            for c in components {
                let places = starts[c]..starts[c + 1];
                let members = &mut members[places.start - first..places.end - first];
                look.component(c as u32, places.start, members);
            }
            (look.changes, look.evaluations)
        });
        let evaluations = found.iter().map(|(_, evaluations)| evaluations).sum();
        let changes = found.into_iter().flat_map(|(changes, _)| changes);
        (changes.collect(), evaluations)
    }

    /// Moves members to where they belong. `changes` are in the order of their places.
    pub(super) fn apply(&mut self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let k = self.components();
        let mut sizes: Vec<usize> = (0..k).map(|c| self.places(c).len()).collect();
        for change in changes {
            sizes[change.from as usize] -= 1;
            sizes[change.to as usize] += 1;
        }
        let mut starts = Vec::with_capacity(k + 1);
        starts.push(0);
        for size in &sizes {
            starts.push(starts[starts.len() - 1] + size);
        }
        let mut next = starts.clone();
        let mut members = vec![Member::unknown(0); self.members.len()];
        let mut leaving = changes.iter().peekable();
        for c in 0..k {
            let mut place = self.starts[c];
            while place < self.starts[c + 1] {
                let until = match leaving.peek() {
                    Some(change) if change.place < self.starts[c + 1] => change.place,
                    _ => self.starts[c + 1],
                };
                let stay = &self.members[place..until];
                members[next[c]..next[c] + stay.len()].copy_from_slice(stay);
                next[c] += stay.len();
                place = until;
                if until < self.starts[c + 1] {
                    leaving.next();
                    place += 1;
                }
            }
        }
        for change in changes {
            let to = change.to as usize;
            members[next[to]] = self.members[change.place];
            next[to] += 1;
        }
        (self.starts, self.members) = (starts, members);
    }

    /// Forgets the bounds of all members: the next search looks at every row.
    pub(super) fn forget(&mut self) {
        for member in &mut self.members {
            member.lower = F::zero();
            member.upper = F::INFINITY;
        }
    }
}

/// One piece of work: some components, and their members.
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
struct Look<'a, D: Data> {
    data: &'a D,
    frame: &'a Frame<D::Float>,
    centres: &'a Centres<D::Float>,
    nearby: &'a Nearby<D::Float>,
    changes: Vec<Change>,
    evaluations: u64,
    /// Places among the members of the component that the bounds leave open.
    open: Vec<usize>,
    kernel: Kernel<D::Float>,
}

impl<'a, F: Float, D: Data<Float = F, Rows = DenseRows<F>>> Look<'a, D> {
    fn new(
        data: &'a D,
        frame: &'a Frame<F>,
        centres: &'a Centres<F>,
        nearby: &'a Nearby<F>,
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
        let moved = self.nearby.moved(c);
        for (i, member) in members.iter_mut().enumerate() {
            member.upper += moved.own;
            member.lower -= moved.others;
            // Not settled by what the row knows, nor by how far the next centre is from its own.
            if !(member.upper <= member.lower || member.upper <= moved.half_gap) {
                self.open.push(i);
            }
        }
        if self.open.is_empty() {
            return;
        }
        let list = self.nearby.list(c);
        self.kernel
            .pack(self.centres, list, self.centres.row(c as usize));
        let open = std::mem::take(&mut self.open);
        for open in open.chunks(LOOK) {
            let rows: Vec<usize> = open.iter().map(|&i| members[i].row as usize).collect();
            self.evaluations += (open.len() * list.len()) as u64;
            let (mut places, changes) = (open.iter(), &mut self.changes);
            self.kernel
                .look(self.data, self.frame, rows.into_iter(), |best, next| {
                    let Some(&i) = places.next() else { return };
                    let member = &mut members[i];
                    // The row's own centre is the first: it stays where others are only as near.
                    member.upper = root(best.0);
                    member.second = list[next.1];
                    member.lower = root(next.0);
                    if best.1 > 0 {
                        // Its new centre has other centres near it, which it has not seen.
                        member.lower = -member.lower;
                        changes.push(Change {
                            place: first + i,
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
    packed: Packed<F>,
}

impl<F: Float> Kernel<F> {
    /// Takes the centres of `list`, all of them near the padded row `about`, as the rows will be.
    fn pack(&mut self, centres: &Centres<F>, list: &[u32], about: &[F]) {
        self.packed
            .pack(centres.values(), centres.dim(), list, about);
    }

    /// Shows `found` the squared distances and places in the list of the two nearest for each of these rows.
    fn look<D>(
        &mut self,
        data: &D,
        frame: &Frame<F>,
        rows: impl Iterator<Item = usize>,
        found: impl FnMut((F, usize), (F, usize)),
    ) where
        D: Data<Float = F, Rows = DenseRows<F>>,
    {
        self.ids.clear();
        self.ids.extend(rows);
        data.gather(&self.ids, frame, &mut self.rows);
        self.packed.first_two(self.rows.values(), found);
    }
}
