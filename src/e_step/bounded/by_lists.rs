//! The searches that follow: the neighbour list of the own component, for rows that the bounds leave open.

use super::assignment::{Assignment, Change, Member, PART};
use super::kernel::{Kernel, TOGETHER, root};
use super::neighbour_lists::{Moved, NeighbourLists};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::data::{Centres, Data, Frame};

impl<F: Float> Assignment<F> {
    /// Searches the neighbour list of the row's component for a nearer centre, for every row that the bounds do not settle.
    /// Returns the changes, by place, and the number of distance evaluations.
    pub(crate) fn search(
        &mut self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centres: &Centres<F>,
        nearby: &NeighbourLists<F>,
    ) -> (Vec<Change>, u64) {
        let (starts, members) = self.members_mut();
        let found = parallel::map_chunks(members, PART, |_, places, members| {
            let mut worker = Worker::new(data, frame, centres);
            let first = places.start;
            for (c, places) in sort::among(starts, places) {
                let members = &mut members[places.start - first..places.end - first];
                worker.by_bounds(nearby.moved(c as u32), members);
                worker.search(c as u32, places.start, members, nearby.list(c as u32));
            }
            worker
        });
        all(found)
    }
}

/// What all workers found: the changes, by place, and the number of distance evaluations.
pub(super) fn all<F: Float>(workers: Vec<Worker<'_, F>>) -> (Vec<Change>, u64) {
    let evaluations = workers.iter().map(|worker| worker.evaluations).sum();
    let changes = workers.into_iter().flat_map(|worker| worker.changes);
    (changes.collect(), evaluations)
}

/// What one worker needs to search the members of some components.
pub(super) struct Worker<'a, F: Float> {
    data: &'a dyn Data<F>,
    frame: &'a Frame<F>,
    centres: &'a Centres<F>,
    changes: Vec<Change>,
    evaluations: u64,
    /// Places among the members of the component that are to be searched.
    pub(super) open: Vec<usize>,
    kernel: Kernel<F>,
}

impl<'a, F: Float> Worker<'a, F> {
    pub(super) fn new(data: &'a dyn Data<F>, frame: &'a Frame<F>, centres: &'a Centres<F>) -> Self {
        Self {
            data,
            frame,
            centres,
            changes: Vec::new(),
            evaluations: 0,
            open: Vec::new(),
            kernel: Kernel::default(),
        }
    }

    /// The bounds of members after an M-step, and which of them these leave open.
    fn by_bounds(&mut self, moved: Moved<F>, members: &mut [Member<F>]) {
        self.open.clear();
        for (i, member) in members.iter_mut().enumerate() {
            member.upper += moved.own;
            member.lower -= moved.others;
            // Settled neither by the row's bounds, nor by the gap between its centre and the next one.
            if !(member.upper <= member.lower || member.upper <= moved.half_gap) {
                self.open.push(i);
            }
        }
    }

    /// Compares the open members with the centres of `list`, whose first is their own.
    pub(super) fn search(&mut self, c: u32, first: usize, members: &mut [Member<F>], list: &[u32]) {
        if self.open.is_empty() {
            return;
        }
        self.kernel
            .pack(self.centres, list, self.centres.row(c as usize));
        let open = std::mem::take(&mut self.open);
        let all = list.len() == self.centres.len();
        for open in open.chunks(TOGETHER) {
            let rows = open.iter().map(|&i| members[i].row as usize);
            self.kernel.gather(self.data, self.frame, rows);
            self.evaluations += (open.len() * list.len()) as u64;
            let changes = &mut self.changes;
            self.kernel.compare(self.centres, |place, _, best, next| {
                let member = &mut members[open[place]];
                // The row's own centre is the first: the row stays if others are only as near.
                member.upper = root(best.0);
                member.second = list[next.1];
                member.lower = root(next.0);
                if best.1 > 0 {
                    if !all {
                        // The new component has another list, with centres that were not evaluated.
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
