//! Searches over all centres, for rows that their lists do not cover.

use super::assignment::{Assignment, Change, Member, PART};
use super::by_lists::{self, Worker};
use super::kernel::root;
use super::neighbour_lists::NeighbourLists;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::data::{Centres, Data, Frame, Rows};
use crate::model::block::Block;
use crate::model::search::{self, Exact};

/// With so many rows per group, or more, all centres are packed for each group: that takes about as long as comparing a few
/// tens of rows with them.
const PACKED: usize = 128;

/// With more columns, matrix products are faster than packed centres: these no longer stay in the nearest cache.
const COLUMNS: usize = 128;

/// Whether rows in so many groups are compared with all centres group by group, or all together by matrix products.
pub(super) fn packs(rows: usize, groups: usize, columns: usize) -> bool {
    columns <= COLUMNS && rows / PACKED >= groups
}

/// Which rows may be nearer to a centre that they were not compared with, and lie at some distance at least.
struct Uncovered<'a, F> {
    nearby: Option<&'a NeighbourLists<F>>,
    from: F,
}

impl<F: Float> Uncovered<'_, F> {
    fn has(&self, c: usize, member: &Member<F>) -> bool {
        let reach = self.nearby.map(|near| near.moved(c as u32).half_reach);
        match reach {
            _ if member.upper < self.from => false,
            Some(reach) => member.upper > reach,
            None => member.lower < F::zero(),
        }
    }
}

impl<F: Float> Assignment<F> {
    /// Searches all centres for a nearer one, for every uncovered row: one at a distance of at least `from` that may be
    /// nearer to a centre outside the list of its component (E35), or of its point. Returns the changes, by place, and the
    /// number of distance evaluations.
    ///
    /// Where such rows are many, they are searched component by component. A few in all components are searched together.
    pub(crate) fn widen(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        nearby: Option<&NeighbourLists<F>>,
        from: F,
    ) -> (Vec<Change>, u64) {
        let uncovered = Uncovered { nearby, from };
        if packs(self.count(&uncovered), centres.len(), centres.dim()) {
            return self.widen_components(data, frame, centres, &uncovered);
        }
        self.widen_together(data, frame, centres, &uncovered)
    }

    /// The number of uncovered rows.
    fn count(&self, uncovered: &Uncovered<'_, F>) -> usize {
        let counts = self.map_parts(|_, components| {
            let open = components.map(|(c, places)| {
                let members = self.stretch(places).iter();
                members.filter(|member| uncovered.has(c, member)).count()
            });
            open.sum::<usize>()
        });
        counts.iter().sum()
    }

    /// Compares uncovered rows with all centres, packed about the centre of their component.
    fn widen_components(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        uncovered: &Uncovered<'_, F>,
    ) -> (Vec<Change>, u64) {
        let (starts, members) = self.members_mut();
        let found = parallel::map_chunks(members, PART, |_, places, members| {
            let mut worker = Worker::new(data, frame, centres);
            let (first, mut list) = (places.start, Vec::with_capacity(centres.len()));
            for (c, places) in sort::among(starts, places) {
                let members = &mut members[places.start - first..places.end - first];
                let open = (0..members.len()).filter(|&i| uncovered.has(c, &members[i]));
                worker.open.clear();
                worker.open.extend(open);
                // The row's own centre is the first: the row stays if others are only as near.
                list.clear();
                list.push(c as u32);
                list.extend((0..centres.len() as u32).filter(|&other| other != c as u32));
                worker.search(c as u32, places.start, members, &list);
            }
            worker
        });
        by_lists::all(found)
    }

    /// Compares uncovered rows of all components with all centres.
    fn widen_together(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        uncovered: &Uncovered<'_, F>,
    ) -> (Vec<Change>, u64) {
        let places = self.places_of(uncovered);
        let k = centres.len();
        let found = parallel::map_blocks(
            places.len(),
            search::block_rows(k, centres.dim()),
            |_, range| {
                let row = |(_, place): &(u32, usize)| self.member(*place).row as usize;
                let ids: Vec<usize> = places[range].iter().map(row).collect();
                let mut rows = Rows::default();
                data.gather(&ids, frame, &mut rows);
                two_nearest(centres, &rows)
            },
        );
        let mut changes = Vec::new();
        let (_, members) = self.members_mut();
        for (&(component, place), found) in places.iter().zip(found.concat()) {
            // The row stays if others are only as near.
            let ([to, second], [nearest, next]) = match found {
                ([a, b], [x, y]) if b == component && x == y => ([b, a], [y, x]),
                found => found,
            };
            let member = &mut members[place];
            (member.second, member.upper, member.lower) = (second, nearest, next);
            if to != component {
                changes.push(Change {
                    place,
                    row: member.row,
                    from: component,
                    to,
                });
            }
        }
        (changes, (places.len() * k) as u64)
    }

    /// The components and places of uncovered rows.
    fn places_of(&self, uncovered: &Uncovered<'_, F>) -> Vec<(u32, usize)> {
        let found = self.map_parts(|_, components| {
            let mut found = Vec::new();
            for (c, places) in components {
                let open = places.filter(|&place| uncovered.has(c, self.member(place)));
                found.extend(open.map(|place| (c as u32, place)));
            }
            found
        });
        found.concat()
    }
}

/// The nearest centre of every row and the second nearest, with their distances. A single centre is the second nearest as
/// well, at any distance.
pub(super) fn two_nearest<F: Float>(
    centres: &Centres<F>,
    rows: &Rows<F>,
) -> Vec<([u32; 2], [F; 2])> {
    let width = centres.len().min(2);
    let mut block = Block::new(centres.len(), width);
    block.reset(rows.len(), &[]);
    search::best(centres, rows, &mut block, &mut Exact::default());
    let pairs = block.supports.chunks_exact(width);
    let found = pairs.zip(block.scores.chunks_exact(width));
    found
        .map(|(ids, squared)| match (ids, squared) {
            (&[a, b], &[x, y]) => ([a, b], [root(x), root(y)]),
            _ => ([ids[0]; 2], [root(squared[0]), F::INFINITY]),
        })
        .collect()
}
