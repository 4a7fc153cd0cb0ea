//! Searches over all centres, for rows that their lists do not cover.

use super::assignment::{Assignment, Change, Member, PART};
use super::kernel::root;
use super::neighbour_lists::NeighbourLists;
use crate::block::Block;
use crate::counting;
use crate::data::{Centres, Data, DenseRows, Frame, Rows};
use crate::float::Float;
use crate::parallel;
use crate::search::{self, Exact};

/// A row that its list does not cover: its place and its component.
#[derive(Clone, Copy)]
struct Uncovered {
    place: usize,
    component: u32,
}

impl<F: Float> Assignment<F> {
    /// Searches all centres for a nearer one, for every row at a distance of at least `from` that may be nearer to a
    /// centre outside the list of its component (E35), or outside that of its point. Returns the changes, by place, and
    /// the number of distance evaluations.
    ///
    /// Such rows are few and in all components. So they are searched together, and not component by component.
    pub(crate) fn widen(
        &mut self,
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        nearby: Option<&NeighbourLists<F>>,
        from: F,
    ) -> (Vec<Change>, u64) {
        let uncovered = self.uncovered(nearby, from);
        let k = centres.len();
        let found = parallel::map_blocks(uncovered.len(), search::block_rows(k), |_, range| {
            let uncovered = &uncovered[range];
            let row = |u: &Uncovered| self.member(u.place).row as usize;
            let ids: Vec<usize> = uncovered.iter().map(row).collect();
            let mut rows = DenseRows::default();
            data.gather(&ids, frame, &mut rows);
            two_nearest(centres, &rows)
        });
        let mut changes = Vec::new();
        let (_, members) = self.members_mut();
        for (&Uncovered { place, component }, found) in uncovered.iter().zip(found.concat()) {
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
        (changes, (uncovered.len() * k) as u64)
    }

    /// The rows at a distance of at least `from` that may be nearer to a centre that they were not compared with.
    fn uncovered(&self, nearby: Option<&NeighbourLists<F>>, from: F) -> Vec<Uncovered> {
        let starts = self.starts();
        let found = parallel::map_blocks(starts[starts.len() - 1], PART, |_, places| {
            let mut uncovered = Vec::new();
            for (c, places) in counting::among(starts, places) {
                let component = c as u32;
                let reach = nearby.map(|near| near.moved(component).half_reach);
                let open = |member: &Member<F>| match reach {
                    _ if member.upper < from => false,
                    Some(reach) => member.upper > reach,
                    None => member.lower < F::zero(),
                };
                let open = places.filter(|place| open(self.member(*place)));
                uncovered.extend(open.map(|place| Uncovered { place, component }));
            }
            uncovered
        });
        found.concat()
    }
}

/// The nearest centre of every row and the second nearest, with their distances. A single centre is the second nearest as
/// well, at any distance.
pub(super) fn two_nearest<F: Float>(
    centres: &Centres<F>,
    rows: &DenseRows<F>,
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
