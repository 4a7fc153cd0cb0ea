//! Searches over lists of near centres: those of the component, for rows that the bounds leave open.

use super::assignment::{Assignment, Change, Member, TASK_ROWS};
use super::lists::{Moved, NeighbourLists};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::data::{Centres, Rows, View};
use crate::kernels::nearest::Packed;
use crate::kernels::select;

/// Rows that are read and compared in one batch.
pub(super) const BATCH_ROWS: usize = 256;

/// Rows so near to each other are read about as fast in any order.
const NEAR_ROWS: u32 = 32;

impl<F: Float> Assignment<F> {
    /// Searches the neighbour list of the row's component for a nearer centre, for every row that the bounds do not settle.
    /// Rows that may be nearer to a centre outside their list are searched over all centres instead, if `beyond`.
    /// Returns the changes, by place, and the number of distance evaluations.
    pub(crate) fn search(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        lists: &NeighbourLists<F>,
        beyond: bool,
    ) -> Result<(Vec<Change>, u64)> {
        let starts = &self.starts;
        let by_task = parallel::map_chunks(&mut self.members, TASK_ROWS, |_, places, members| {
            let mut search = ListSearch::default();
            let first = places.start;
            for (c, places) in sort::among(starts, places) {
                let members = &mut members[places.start - first..places.end - first];
                let list = lists.list(c as u32);
                search.open(
                    c as u32,
                    lists.moved[c],
                    members,
                    beyond.then_some(places.start),
                );
                search.run(view, centres, list, members, places.start)?;
                if beyond {
                    // The next lists are other ones: bounds must hold for centres outside of these as well.
                    let reach = lists.moved[c].half_reach + lists.moved[c].half_reach;
                    for member in members.iter_mut().filter(|m| m.lower > reach - m.upper) {
                        member.lower = reach - member.upper;
                    }
                }
            }
            Ok((search.changes, search.beyond, search.evaluations))
        });
        let mut changes = Vec::new();
        let mut open = Vec::new();
        let mut evaluations = 0;
        for (of_lists, beyond, evaluated) in parallel::all(by_task)? {
            changes.extend(of_lists);
            open.extend(beyond);
            evaluations += evaluated;
        }
        if let Some(first) = open.first() {
            // About in the order of the rows, which are read faster so.
            let near = |i: usize| (open[i].row / NEAR_ROWS, open[i]);
            let groups = view.len().div_ceil(NEAR_ROWS as usize);
            let (_, open) = sort::sorted_apart(groups, *first, open.len(), near);
            let searched = self.search_all(view, centres, &open, false)?;
            changes.extend(searched.changes);
            parallel::sort_by_key(&mut changes, |change| change.place);
            evaluations += searched.evaluations;
        }
        Ok((changes, evaluations))
    }
}

/// A search of the members of some components, one component after the other.
#[derive(Default)]
struct ListSearch<F> {
    changes: Vec<Change>,
    evaluations: u64,
    /// Which members of the component are to be searched by the list.
    open: Vec<usize>,
    /// Members of all components to be searched over all centres, as changes to no other component yet.
    beyond: Vec<Change>,
    kernel: Kernel<F>,
}

impl<F: Float> ListSearch<F> {
    /// Moves the bounds of members of component `c` after an M-step, and finds which of them these leave open. If the place of the first
    /// member is given, members that the list does not cover are put apart.
    fn open(&mut self, c: u32, moved: Moved<F>, members: &mut [Member<F>], beyond: Option<usize>) {
        self.open.clear();
        for (i, member) in members.iter_mut().enumerate() {
            *member = member.after(moved);
            if let Some(first) = beyond.filter(|_| member.is_uncovered(moved)) {
                self.beyond.push(Change {
                    place: first + i,
                    row: member.row,
                    from: c,
                    to: c,
                });
            } else if member.is_open(moved) {
                self.open.push(i);
            }
        }
    }

    /// Compares the open members, of which the first has this place, with the centres of `list`, whose first is their own.
    fn run(
        &mut self,
        view: View<'_, F>,
        centres: &Centres<F>,
        list: &[u32],
        members: &mut [Member<F>],
        first: usize,
    ) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.kernel
            .pack(centres, list, centres.row(list[0] as usize));
        self.evaluations += (self.open.len() * list.len()) as u64;
        for open in self.open.chunks(BATCH_ROWS) {
            let rows = open.iter().map(|&i| members[i].row);
            view.gather_into(rows, &mut self.kernel.rows)?;
            let changes = &mut self.changes;
            self.kernel.compare(centres, |place, _, best, next| {
                let member = &mut members[open[place]];
                // The row's own centre is the first: the row stays if others are only as near.
                member.upper = root(best.0);
                member.second = list[next.1];
                member.lower = root(next.0);
                if best.1 > 0 {
                    if list.len() < centres.len() {
                        // The new component has another list, with centres that were not evaluated.
                        member.lower = -member.lower;
                    }
                    changes.push(Change {
                        place: first + open[place],
                        row: member.row,
                        from: list[0],
                        to: list[best.1],
                    });
                }
            });
        }
        Ok(())
    }
}

/// Compares rows with packed centres: finds the nearest and the second nearest.
#[derive(Default)]
pub(super) struct Kernel<F> {
    pub(super) rows: Rows<F>,
    list: Vec<u32>,
    packed: Packed<F>,
    squared: Vec<F>,
}

/// A distance is computed directly if the square of the distance to the point of the expansion is more than this many times as
/// large (E21).
const DIRECT_RATIO: f64 = 64.0;

impl<F: Float> Kernel<F> {
    /// Packs the centres of `list`. They should be near the padded row `about`, and so should the rows.
    pub(super) fn pack(&mut self, centres: &Centres<F>, list: &[u32], about: &[F]) {
        self.list.clear();
        self.list.extend_from_slice(list);
        self.packed
            .pack(&centres.values, centres.dim(), list, about);
    }

    /// Calls `found` for each row: its number among the loaded rows, its squared distance to the point of the expansion,
    /// and the squared distances and places in the list of the two nearest centres.
    pub(super) fn compare(
        &mut self,
        centres: &Centres<F>,
        mut found: impl FnMut(usize, F, (F, usize), (F, usize)),
    ) {
        let Self {
            rows,
            list,
            packed,
            squared,
        } = self;
        let share = F::from_f64(1.0 / DIRECT_RATIO);
        let mut i = 0;
        packed.first_two(&rows.values, |about, mut best, mut next| {
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

pub(super) fn root<F: Float>(squared: F) -> F {
    F::from_f64(squared.to_f64().sqrt())
}
