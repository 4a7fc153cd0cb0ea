//! Hartigan's single-row transfers: a row goes to another component where the squared distances fall once the means follow,
//! although its own mean is the nearest.

use super::assignment::{Assignment, Change};
use super::list_search::TOGETHER;
use super::sums::{Offset, Sums};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::data::View;

/// Rows that may be worth a transfer, by their bounds.
pub(crate) struct Candidates {
    changes: Vec<Change>,
    /// The weight of a copy.
    copy: f64,
    /// How much their transfers could gain, one by one.
    pub(crate) gain: f64,
}

/// What a round of transfers did.
pub(crate) struct Transfers {
    /// How much the squared distances about the means of the rows fell, once these have followed.
    pub(crate) gain: f64,
    /// Rows that belong elsewhere now, in the order of their places.
    pub(crate) changes: Vec<Change>,
    /// Components that had no rows before.
    pub(crate) begun: Vec<usize>,
    pub(crate) evaluations: u64,
}

/// A component keeps at least this part of its mass: of less, differences of sums are rounding.
const LEFT: f64 = 1e-6;

/// Rows of smaller weights than that of a copy have at most this part of the mass.
const HARDLY_ANY: f64 = 1e-3;

/// Gains below this part of their terms are rounding.
const ROUNDING: f64 = 1e-9;

/// Mass of a component, and the squared distance of a row to the mean of its rows.
#[derive(Clone, Copy)]
struct Seen {
    mass: f64,
    squared: f64,
}

/// The weight of a row, and that of a single copy where weights count copies.
#[derive(Clone, Copy)]
struct Weight {
    row: f64,
    copy: f64,
}

/// What a transfer of a row gains (E50), from its own component to another one; `None` if it does not pay for one copy: the
/// others follow, and pay more.
fn gain(weight: Weight, own: Seen, other: Seen) -> Option<f64> {
    let w = weight.row;
    if own.mass - w <= LEFT * own.mass {
        return None;
    }
    let leaves = |w: f64| own.mass / (own.mass - w) * own.squared;
    let comes = |w: f64| other.mass / (other.mass + w) * other.squared;
    let copy = weight.copy.min(w);
    let pays = leaves(copy) - comes(copy) > ROUNDING * leaves(copy);
    pays.then(|| w * (leaves(w) - comes(w)))
}

/// The smallest weight, but for rows that have hardly any of the mass together.
fn copy_of<F: Float>(view: View<'_, F>) -> f64 {
    let weights = (0..view.len()).map(|row| view.weight(row as u32));
    let mut weights: Vec<f64> = weights.filter(|w| *w > 0.0).collect();
    weights.sort_unstable_by(f64::total_cmp);
    let mut left = HARDLY_ANY * weights.iter().sum::<f64>();
    let copy = weights.into_iter().find(|w| {
        left -= w;
        left < 0.0
    });
    copy.unwrap_or(f64::INFINITY)
}

impl Candidates {
    /// Rows whose transfer to the second component of their last search is not ruled out by their bounds. The bound on all
    /// centres of the list stands for that on this one.
    pub(crate) fn of<F: Float>(
        view: View<'_, F>,
        assignment: &Assignment<F>,
        offsets: &[Offset],
    ) -> Self {
        let copy = copy_of(view);
        let parts = assignment.map_parts(|_, components| {
            let (mut changes, mut all) = (Vec::new(), 0.0);
            for (c, places) in components {
                let own = offsets[c];
                for place in places {
                    let member = assignment.member(place);
                    let row = view.weight(member.row);
                    let (weight, other) = (Weight { row, copy }, offsets[member.second as usize]);
                    if member.second as usize == c || row <= 0.0 {
                        continue;
                    }
                    let near = member.upper.to_f64() + own.distance;
                    // A negative bound says nothing of centres beyond the list.
                    let far = (member.lower.to_f64() - other.distance).max(0.0);
                    let seen = |mass, distance: f64| Seen {
                        mass,
                        squared: distance * distance,
                    };
                    if let Some(gain) = gain(weight, seen(own.mass, near), seen(other.mass, far)) {
                        all += gain;
                        changes.push(Change {
                            place,
                            row: member.row,
                            from: c as u32,
                            to: member.second,
                        });
                    }
                }
            }
            (changes, all)
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
        sums: &mut Sums<F>,
    ) -> Result<Transfers> {
        let mut made = Transfers {
            gain: 0.0,
            changes: Vec::new(),
            begun: Vec::new(),
            evaluations: 2 * self.changes.len() as u64,
        };
        for changes in self.changes.chunks(TOGETHER) {
            let rows = view.gather(changes.iter().map(|change| change.row))?;
            for (i, change) in changes.iter().enumerate() {
                let (row, w) = (rows.row(i), rows.weight(i));
                let seen = |c: u32| Seen {
                    mass: sums.mass(c as usize),
                    squared: sums.squared_to(c as usize, row),
                };
                let weight = Weight {
                    row: w,
                    copy: self.copy,
                };
                if let Some(gain) = gain(weight, seen(change.from), seen(change.to)) {
                    if sums.mass(change.to as usize) <= 0.0 {
                        made.begun.push(change.to as usize);
                    }
                    sums.move_row(row, w, change);
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
                total += rows()
                    .map(|n| w[n] * (column[n] - mean).powi(2))
                    .sum::<f64>();
            }
        }
        total
    }

    /// What a round gains is what the error about the means falls by, every single transfer pays, and the sums follow.
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
            let (mut assignment, _) = Assignment::exhaustive(view, &centres).unwrap();
            let mut sums = Sums::of(view, &centres, &assignment).unwrap();
            let before = naive(&x, &w, &assignment.labels(), k);
            let candidates = Candidates::of(view, &assignment, &sums.offsets(&centres));
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
            let fresh = Sums::of(view, &centres, &assignment)
                .unwrap()
                .squared(&centres);
            assert!((sums.squared(&centres) - fresh).abs() <= 1e-10 * fresh);
        }
    }

    fn seen(mass: f64, squared: f64) -> Seen {
        Seen { mass, squared }
    }

    fn weight(row: f64, copy: f64) -> Weight {
        Weight { row, copy }
    }

    /// A row that is all of its component has nowhere better to be, however heavy it is.
    #[test]
    fn a_component_keeps_its_last_row() {
        assert!(gain(weight(2.0, 2.0), seen(2.0, 0.0), seen(5.0, 0.0)).is_none());
        assert!(gain(weight(1e9, 1.0), seen(1e9 + 1e-3, 1e-9), seen(5.0, 0.0)).is_none());
    }

    /// A row of weight 3 goes where its copies would go, one after the other, and gains as much as they do.
    #[test]
    fn a_weight_is_so_many_copies() {
        // Distances in one column: the row at 0, its component of mass 9 about -1.9, the other one of mass 8 about 2.
        let (mut own, mut other, mut copies) = ((9.0, -1.9f64), (8.0, 2.0f64), 0.0);
        let whole = gain(weight(3.0, 1.0), seen(9.0, 1.9f64.powi(2)), seen(8.0, 4.0)).unwrap();
        for _ in 0..3 {
            let (near, far) = (seen(own.0, own.1.powi(2)), seen(other.0, other.1.powi(2)));
            copies += gain(weight(1.0, 1.0), near, far).unwrap();
            own = (own.0 - 1.0, own.1 * own.0 / (own.0 - 1.0));
            other = (other.0 + 1.0, other.1 * other.0 / (other.0 + 1.0));
        }
        assert!((whole - copies).abs() < 1e-12, "{whole} {copies}");
        // One copy does not pay, though all together would: they stay.
        assert!(gain(weight(3.0, 1.0), seen(9.0, 3.0), seen(8.0, 4.0)).is_none());
        assert!(gain(weight(3.0, 3.0), seen(9.0, 3.0), seen(8.0, 4.0)).is_some());
    }

    /// One row of hardly any weight does not decide for all others.
    #[test]
    fn the_weight_of_a_copy() {
        let copy = |w: Vec<f64>| {
            let x = Array2::<f64>::from_shape_fn((w.len(), 1), |(n, _)| n as f64);
            let w = Array1::from(w);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            copy_of(View::new(&data, &data.frame()))
        };
        assert_eq!(copy([3.0, 2.0, 0.0, 1.0].repeat(50)), 1.0);
        assert_eq!(copy(vec![0.7; 9]), 0.7);
        let mut w = vec![1.0; 200];
        w[7] = 1e-9;
        assert_eq!(copy(w), 1.0);
    }

    /// Weights have no unit: products of tiny ones must not underflow.
    #[test]
    fn weights_have_no_unit() {
        let at = |unit: f64| {
            let weight = weight(unit, unit);
            gain(weight, seen(9.0 * unit, 3.0), seen(8.0 * unit, 3.1)).unwrap()
        };
        assert_eq!(at(1.0), at(2f64.powi(-500)) * 2f64.powi(500));
    }
}
