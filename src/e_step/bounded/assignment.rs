//! Which component each row belongs to, stored by component, with bounds that settle most rows without reading them.

use super::lists::Moved;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::sort;
use crate::data::View;
use crate::io::rule;
use std::ops::Range;

/// A row of a component.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Member<F> {
    pub(crate) row: u32,
    /// The second nearest component of the last search.
    pub(crate) second: u32,
    /// At least the distance to the component's centre.
    pub(crate) upper: F,
    /// At most the distance to any other centre on the row's list. Right after a search its absolute value is the distance
    /// to `second`. It is negative if that search did not evaluate all centres on the list.
    pub(crate) lower: F,
}

impl<F: Float> Member<F> {
    /// Before any search: there are no bounds, and the row is not settled.
    pub(super) fn unknown(row: u32) -> Self {
        Self {
            row,
            second: 0,
            upper: F::INFINITY,
            lower: F::zero(),
        }
    }

    /// With bounds that hold after an M-step.
    #[inline(always)]
    pub(super) fn after(mut self, moved: Moved<F>) -> Self {
        self.upper += moved.own;
        self.lower -= moved.others;
        self
    }

    /// Whether the row is settled neither by its bounds, nor by the gap between its centre and the next one.
    #[inline(always)]
    pub(super) fn is_open(&self, moved: Moved<F>) -> bool {
        !(self.upper <= self.lower || self.upper <= moved.half_gap)
    }

    /// Whether the row may be nearer to a centre outside its list (E35).
    #[inline(always)]
    pub(super) fn is_uncovered(&self, moved: Moved<F>) -> bool {
        self.upper > moved.half_reach
    }
}

/// A member, by its place, that moves to another component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) place: usize,
    pub(crate) row: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// All rows by component: those of component c are the members `starts[c]..starts[c + 1]`.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct Assignment<F> {
    pub(super) starts: Vec<usize>,
    pub(crate) members: Vec<Member<F>>,
    /// Memory of the last members, for reuse: an allocation costs more than the work done in it.
    #[cfg_attr(feature = "files", serde(skip))]
    spare: Vec<Member<F>>,
}

/// Places that are one piece of work: of a few components, or of a part of one.
pub(super) const TASK_ROWS: usize = 1024;

impl<F: Float> Assignment<F> {
    /// Weighted squared distances of the rows to their centres, by the upper bounds.
    pub(crate) fn squared(&self, view: View<'_, F>) -> f64 {
        let parts = parallel::map_blocks(self.members.len(), TASK_ROWS, |_, places| {
            let squared = |m: &Member<F>| view.weight(m.row) * m.upper.to_f64().powi(2);
            self.members[places].iter().map(squared).sum::<f64>()
        });
        parts.iter().sum()
    }

    /// Rows with a component each, without bounds.
    pub(crate) fn of_labels(labels: &[u32], k: usize) -> Self {
        let row = |row: usize| (labels[row], Member::unknown(row as u32));
        Self::by_component(k, labels.len(), row)
    }

    /// `n` rows, each with its component, in the order of these.
    pub(super) fn by_component(
        k: usize,
        n: usize,
        row: impl Fn(usize) -> (u32, Member<F>) + Sync,
    ) -> Self {
        let (starts, members) = sort::sorted_apart(k, Member::unknown(0), n, row);
        Self {
            starts,
            members,
            spare: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn components(&self) -> usize {
        self.starts.len() - 1
    }

    /// The move of the member at a place of component `from`.
    pub(super) fn change(&self, place: usize, from: usize, to: u32) -> Change {
        let row = self.members[place].row;
        let from = from as u32;
        Change {
            place,
            row,
            from,
            to,
        }
    }

    pub(crate) fn places(&self, c: usize) -> Range<usize> {
        self.starts[c]..self.starts[c + 1]
    }

    /// `work` on every part of the places, in order: it gets the number of the part, and the components there with their
    /// places.
    pub(crate) fn map_parts<T: Send>(
        &self,
        work: impl Fn(usize, &mut dyn Iterator<Item = (usize, Range<usize>)>) -> T + Sync,
    ) -> Vec<T> {
        parallel::map_blocks(self.len(), TASK_ROWS, |part, places| {
            work(part, &mut sort::among(&self.starts, places))
        })
    }

    pub(crate) fn members(&self, c: usize) -> &[Member<F>] {
        &self.members[self.places(c)]
    }

    pub(crate) fn labels(&self) -> Vec<u32> {
        let mut labels = vec![0; self.members.len()];
        for c in 0..self.components() {
            for member in self.members(c) {
                labels[member.row as usize] = c as u32;
            }
        }
        labels
    }

    /// Moves members to their new components. `changes` are in the order of their places.
    pub(crate) fn apply(&mut self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let k = self.components();
        let left = sort::starts(k, changes.iter().map(|change| change.from));
        let target = |i: usize| (changes[i].to, changes[i].place);
        let (came, coming) = sort::sorted_apart(k, 0, changes.len(), target);
        let starts: Vec<usize> = (0..=k)
            .map(|c| self.starts[c] - left[c] + came[c])
            .collect();
        let mut members = std::mem::take(&mut self.spare);
        sort::fill(&starts, Member::unknown(0), &mut members, |c, places| {
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
        self.starts = starts;
        self.spare = std::mem::replace(&mut self.members, members);
    }

    /// Resets the bounds of members that are about to move: they are to another centre.
    pub(crate) fn forget_some(&mut self, changes: &[Change]) {
        for change in changes {
            self.members[change.place] = Member::unknown(change.row);
        }
    }

    /// Resets the bounds of all members: the next search reads every row.
    pub(crate) fn forget(&mut self) {
        parallel::map_chunks(&mut self.members, TASK_ROWS, |_, _, members| {
            for member in members {
                *member = Member::unknown(member.row);
            }
        });
    }

    /// Checks that of a file, for `n` rows and `k` components.
    pub(crate) fn check(&self, n: usize, k: usize) -> Result<(), FileFault> {
        let Self {
            starts, members, ..
        } = self;
        let whole = starts.first() == Some(&0) && starts.last() == Some(&n);
        let rise = whole && starts.len() == k + 1 && starts.is_sorted();
        rule(rise, "starts", "must rise from 0 to n")?;
        let rows: Vec<u32> = members.iter().map(|m| m.row).collect();
        let once = sort::is_permutation(&rows, n);
        rule(once, "members", "must be all rows, each once")?;
        let known = members.iter().all(|m| (m.second as usize) < k);
        rule(known, "members", "must have known components")?;
        let numbers = |m: &Member<F>| !m.upper.to_f64().is_nan() && !m.lower.to_f64().is_nan();
        rule(members.iter().all(numbers), "members", "must have bounds")
    }
}
