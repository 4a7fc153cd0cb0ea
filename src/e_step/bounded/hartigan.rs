//! Hartigan's single-row transfers: a row goes to another component where the squared distances fall once the means follow,
//! although its own mean is the nearest.

use super::assignment::{Assignment, Change};
use super::list_search::BATCH_ROWS;
use super::sums::{KeptSums, Offset};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::View;

/// Rows that may be worth a transfer, by their bounds.
#[derive(Clone)]
pub(crate) struct TransferCandidates {
    changes: Vec<Change>,
    /// The smallest weight: that of a single copy.
    copy: f64,
    /// How much their transfers could gain, one by one.
    pub(crate) gain: f64,
}

pub(crate) struct Transfers {
    /// Decrease of the squared distances after the means are updated.
    pub(crate) gain: f64,
    /// Rows that belong elsewhere now, in the order of their places.
    pub(crate) changes: Vec<Change>,
    /// Which components had no rows before (k).
    pub(crate) begun: Vec<bool>,
    pub(crate) evaluations: u64,
}

/// A component keeps at least this part of its mass: of less, differences of sums are rounding.
const LEFT: f64 = 1e-6;

/// Gains below this part of their terms are rounding.
const ROUNDING: f64 = 1e-9;

/// Decrease of the error when a row of this weight moves from its own component to another one (E50), by the offsets of their
/// means from it. `None` if too little mass would stay, or if moving a single copy of the row would not gain: once one copy has
/// moved, the others gain more.
fn gain(weight: f64, copy: f64, source: Offset, target: Offset) -> Option<f64> {
    if source.mass - weight <= LEFT * source.mass {
        return None;
    }
    let leaves = |w: f64| source.mass / (source.mass - w) * source.distance.powi(2);
    let comes = |w: f64| target.mass / (target.mass + w) * target.distance.powi(2);
    let pays = leaves(copy) - comes(copy) > ROUNDING * leaves(copy);
    pays.then(|| weight * (leaves(weight) - comes(weight)))
}

impl TransferCandidates {
    /// Rows whose transfer to the second component of their last search is not ruled out by their bounds. The bound on all
    /// centres of the list stands for that on this one.
    pub(crate) fn of<F: Float>(
        view: View<'_, F>,
        assignment: &Assignment<F>,
        offsets: &[Offset],
    ) -> Self {
        let weights = (0..view.len()).map(|row| view.weight(row as u32));
        let copy = weights.filter(|w| *w > 0.0).fold(f64::INFINITY, f64::min);
        let parts = assignment.map_parts(|_, components| {
            let mut changes = Vec::new();
            let mut total = 0.0;
            for (c, places) in components {
                for place in places {
                    let member = assignment.members[place];
                    let weight = view.weight(member.row);
                    if member.second as usize == c || weight <= 0.0 {
                        continue;
                    }
                    let mut source = offsets[c];
                    let mut target = offsets[member.second as usize];
                    source.distance += member.upper.to_f64();
                    // A negative bound says nothing of centres beyond the list.
                    target.distance = (member.lower.to_f64() - target.distance).max(0.0);
                    if let Some(gain) = gain(weight, copy, source, target) {
                        total += gain;
                        changes.push(assignment.change(place, c, member.second));
                    }
                }
            }
            (changes, total)
        });
        Self {
            copy,
            gain: parts.iter().map(|(_, gain)| gain).sum(),
            changes: parts.into_iter().flat_map(|(changes, _)| changes).collect(),
        }
    }

    /// Transfers them one after the other (E50) in the sums, each to means that have followed those before it.
    pub(crate) fn transfer<F: Float>(
        self,
        view: View<'_, F>,
        sums: &mut KeptSums<F>,
    ) -> Result<Transfers> {
        let mut made = Transfers {
            gain: 0.0,
            changes: Vec::new(),
            begun: vec![false; sums.components()],
            evaluations: 2 * self.changes.len() as u64,
        };
        for changes in self.changes.chunks(BATCH_ROWS) {
            let rows = view.gather(changes.iter().map(|change| change.row))?;
            for (i, change) in changes.iter().enumerate() {
                let row = rows.row(i);
                let weight = rows.weight(i);
                let source = sums.offset(change.from as usize, row);
                let target = sums.offset(change.to as usize, row);
                if let Some(gain) = gain(weight, self.copy, source, target) {
                    made.begun[change.to as usize] |= target.mass <= 0.0;
                    sums.move_row(row, weight, change);
                    made.gain += gain;
                    made.changes.push(*change);
                }
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Centres, Data, Dense};
    use ndarray::{Array1, Array2};

    /// Squared distances of weighted rows to the means of their components, in the naive way.
    fn naive(x: &Array2<f64>, w: &Array1<f64>, labels: &[u32], k: usize) -> f64 {
        let mut total = 0.0;
        for c in 0..k as u32 {
            let rows = || (0..labels.len()).filter(move |&n| labels[n] == c);
            let mass: f64 = rows().map(|n| w[n]).sum();
            for column in x.columns() {
                let mean = rows().map(|n| w[n] * column[n]).sum::<f64>() / mass.max(1e-300);
                let squared = rows().map(|n| w[n] * (column[n] - mean).powi(2));
                total += squared.sum::<f64>();
            }
        }
        total
    }

    /// The gain of a round is the decrease of the error about the means; every single transfer pays, and the sums follow.
    #[test]
    fn gains_are_those_of_the_means_that_follow() {
        let mut rng = Rng::from_seed(4);
        for (n, k, d) in [(400, 60, 5), (90, 30, 2), (300, 3, 4)] {
            let x = Array2::from_shape_fn((n, d), |_| rng.normal());
            let w = Array1::from_shape_fn(n, |i| [1.0, 0.25, 3.0, 0.0][i % 4]);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let frame = data.frame();
            let view = View::new(&data, &frame);
            let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut assignment, ..) = Assignment::exhaustive(view, &centres).unwrap();
            let mut sums = KeptSums::of(view, &centres, &assignment).unwrap();
            let before = naive(&x, &w, &assignment.labels(), k);
            let candidates = TransferCandidates::of(view, &assignment, &sums.offsets(&centres));
            let bound = candidates.gain;
            let made = candidates.transfer(view, &mut sums).unwrap();
            assert!(!made.changes.is_empty() && made.gain <= bound);
            let mut labels = assignment.labels();
            let mut least = before;
            for change in &made.changes {
                assert_eq!(labels[change.row as usize], change.from);
                labels[change.row as usize] = change.to;
                let now = naive(&x, &w, &labels, k);
                assert!(now < least, "{now} after {least}");
                least = now;
            }
            let gain = made.gain * frame.unit().powi(2);
            assert!((before - least - gain).abs() <= 1e-10 * before, "{gain}");
            assignment.forget_some(&made.changes);
            assignment.apply(&made.changes);
            assert_eq!(assignment.labels(), labels);
            let fresh = KeptSums::of(view, &centres, &assignment)
                .unwrap()
                .squared(&centres);
            assert!((sums.squared(&centres) - fresh).abs() <= 1e-10 * fresh);
        }
    }

    /// A row that is all of its component has nowhere better to be, however heavy it is.
    #[test]
    fn a_component_keeps_its_last_row() {
        let offset = |mass, distance| Offset { mass, distance };
        assert!(gain(2.0, 2.0, offset(2.0, 0.0), offset(5.0, 0.0)).is_none());
        assert!(gain(1e9, 1.0, offset(1e9 + 1e-3, 1e-5), offset(5.0, 0.0)).is_none());
    }
}
