//! Transfers: a row goes to another component where the squared distances fall once the means follow, although its own mean
//! is the nearest (Hartigan's method).

use crate::base::cancel;
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Data, Frame, Rows};
use crate::e_step::{Assignment, Change, Sums};
use std::collections::{BTreeMap, HashMap};

/// Rows that may be worth a transfer, by their bounds.
pub(crate) struct Candidates {
    changes: Vec<Change>,
    /// The mass for which a transfer has to pay.
    unit: f64,
    /// What their transfers could gain, one by one.
    pub(crate) gain: f64,
}

/// What a round of transfers did.
pub(crate) struct Transfers {
    /// What the squared distances about the means of the rows fell by, once these have followed.
    pub(crate) gain: f64,
    /// Rows that belong elsewhere now, in the order of their places.
    pub(crate) changes: Vec<Change>,
    pub(crate) evaluations: u64,
}

/// Rows read together.
const GATHER: usize = 256;

/// Weights looked at together.
const WEIGHTS: usize = 1 << 16;

/// A component keeps at least this part of its mass: of less, differences of sums are rounding.
const LEFT: f64 = 1e-6;

/// Gains below this part of their terms are rounding.
const ROUNDING: f64 = 1e-9;

/// What a transfer of a row of weight `w` gains (E50), given mass and squared distance of its own component and of the other
/// one; `None` if it does not pay. Whether it pays is decided for the mass `unit` of it, at most: more of the row pays more.
fn gain((w, unit): (f64, f64), (own, near): (f64, f64), (other, far): (f64, f64)) -> Option<f64> {
    if own - w <= LEFT * own {
        return None;
    }
    let leaves = |w: f64| own / (own - w) * near;
    let comes = |w: f64| other / (other + w) * far;
    let unit = unit.min(w);
    let pays = leaves(unit) - comes(unit) > ROUNDING * leaves(unit);
    pays.then(|| w * (leaves(w) - comes(w)))
}

/// What a single copy of a row weighs, where weights count copies: the smallest weight, but for rows that together have hardly
/// any of the mass.
fn unit_of<F: Float>(data: &dyn Data<F>) -> f64 {
    /// Rows of smaller weights have at most this part of the mass.
    const HARDLY_ANY: f64 = 1e-3;

    // Mass and smallest weight, by powers of two.
    let add = |all: &mut BTreeMap<i32, (f64, f64)>, power, (mass, least)| {
        let place = all.entry(power).or_insert((0.0, f64::INFINITY));
        *place = (place.0 + mass, place.1.min(least));
    };
    let parts = parallel::map_blocks(data.len(), WEIGHTS, |_, range| {
        let mut all = BTreeMap::new();
        for w in range.map(|n| data.weight(n)).filter(|w| *w > 0.0) {
            add(&mut all, w.log2().floor() as i32, (w, w));
        }
        all
    });
    let mut all = BTreeMap::new();
    for (power, found) in parts.into_iter().flatten() {
        add(&mut all, power, found);
    }
    let mut left = HARDLY_ANY * data.summary().total_weight;
    let least = all.into_values().find(|(mass, _)| {
        left -= mass;
        left < 0.0
    });
    least.map_or(f64::INFINITY, |(_, least)| least)
}

impl Candidates {
    /// Rows whose transfer to the second component of their last search is not ruled out by their bounds. The bound on all
    /// centres of the list stands for that on this one. `offsets` are
    /// the mass of each component, and how far the mean of its rows is from its centre.
    pub(crate) fn of<F: Float>(
        data: &dyn Data<F>,
        assignment: &Assignment<F>,
        offsets: &[(f64, f64)],
    ) -> Self {
        let unit = unit_of(data);
        let parts = assignment.map_parts(|_, components| {
            let (mut changes, mut all) = (Vec::new(), 0.0);
            for (c, places) in components {
                let (own, off) = offsets[c];
                for place in places {
                    let member = assignment.member(place);
                    let (row, second) = (member.row as usize, member.second as usize);
                    let w = data.weight(row);
                    if second == c || w <= 0.0 {
                        continue;
                    }
                    let (other, off_there) = offsets[second];
                    let near = member.upper.to_f64() + off;
                    // A negative bound says nothing of centres beyond the list.
                    let far = (member.lower.to_f64() - off_there).max(0.0);
                    let gain = gain((w, unit), (own, near * near), (other, far * far));
                    if let Some(gain) = gain {
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
            unit,
            gain: parts.iter().map(|(_, gain)| gain).sum(),
            changes: parts.into_iter().flat_map(|(changes, _)| changes).collect(),
        }
    }

    /// Transfers them one after the other (E50), each to means that have followed those before it. First, all are compared
    /// with the means as they are, several at a time: few are left.
    pub(crate) fn transfer<F: Float>(
        self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        sums: &Sums<F>,
    ) -> Transfers {
        let mut evaluations = 2 * self.changes.len() as u64;
        let promising = parallel::map_blocks(self.changes.len(), GATHER, |_, range| {
            let changes = &self.changes[range];
            let rows = gathered(data, frame, changes);
            let pays = |(i, change): &(usize, &Change)| {
                let to = |c: u32| {
                    (
                        sums.mass(c as usize),
                        sums.squared_to(c as usize, rows.row(*i)),
                    )
                };
                let w = data.weight(change.row as usize);
                gain((w, self.unit), to(change.from), to(change.to)).is_some()
            };
            let found = changes.iter().enumerate().filter(pays);
            found.map(|(_, change)| *change).collect::<Vec<_>>()
        });
        let promising = promising.concat();
        evaluations += 2 * promising.len() as u64;
        let mut means = Means {
            sums,
            moved: HashMap::new(),
        };
        let mut transfers = Transfers {
            gain: 0.0,
            changes: Vec::new(),
            evaluations,
        };
        for changes in promising.chunks(GATHER) {
            cancel::check();
            let rows = gathered(data, frame, changes);
            for (i, change) in changes.iter().enumerate() {
                let (row, w) = (rows.row(i), data.weight(change.row as usize));
                let [from, to] = [change.from, change.to].map(|c| means.of(c).seen_from(row));
                if let Some(gain) = gain((w, self.unit), from, to) {
                    means.of(change.from).add(row, -w);
                    means.of(change.to).add(row, w);
                    transfers.gain += gain;
                    transfers.changes.push(*change);
                }
            }
        }
        transfers
    }
}

/// The rows of some changes.
fn gathered<F: Float>(data: &dyn Data<F>, frame: &Frame<F>, changes: &[Change]) -> Rows<F> {
    let ids: Vec<usize> = changes.iter().map(|change| change.row as usize).collect();
    let mut rows = Rows::default();
    data.gather(&ids, frame, &mut rows);
    rows
}

/// The mass of a component and the mean of its rows.
struct Mean {
    mass: f64,
    mean: Vec<f64>,
}

impl Mean {
    /// The mass, and the squared distance to a row.
    fn seen_from<F: Float>(&self, row: &[F]) -> (f64, f64) {
        let places = row.iter().zip(&self.mean);
        (
            self.mass,
            places.map(|(z, m)| (z.to_f64() - m).powi(2)).sum(),
        )
    }

    /// Takes a row of weight `w` in, or out where that is negative.
    fn add<F: Float>(&mut self, row: &[F], w: f64) {
        self.mass += w;
        for (m, z) in self.mean.iter_mut().zip(row) {
            *m += w / self.mass * (z.to_f64() - *m);
        }
    }
}

/// The means of the rows of components, of which those that have followed a transfer are kept.
struct Means<'a, F> {
    sums: &'a Sums<F>,
    moved: HashMap<u32, Mean>,
}

impl<F: Float> Means<'_, F> {
    fn of(&mut self, c: u32) -> &mut Mean {
        self.moved.entry(c).or_insert_with(|| Mean {
            mass: self.sums.mass(c as usize),
            mean: self.sums.mean(c as usize).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Centres, Dense};
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

    /// What a round gains is what the error about the means falls by, and every single transfer pays.
    #[test]
    fn gains_are_those_of_the_means_that_follow() {
        let mut rng = Rng::from_seed(4);
        for (n, k, d) in [(400, 60, 5), (90, 30, 2), (300, 3, 4)] {
            let x = Array2::from_shape_fn((n, d), |_| rng.normal());
            let w = Array1::from_shape_fn(n, |i| [1.0, 0.25, 3.0, 0.0][i % 4]);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let frame = data.frame();
            let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut assignment, _) = Assignment::exhaustive(&data, &frame, &centres);
            let sums = Sums::of(&data, &frame, &centres, &assignment);
            let before = naive(&x, &w, &assignment.labels(), k);
            let candidates = Candidates::of(&data, &assignment, &sums.offsets(&centres));
            let bound = candidates.gain;
            let made = candidates.transfer(&data, &frame, &sums);
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
        }
    }

    /// A row that is all of its component has nowhere better to be, however heavy it is.
    #[test]
    fn a_component_keeps_its_last_row() {
        assert!(gain((2.0, 2.0), (2.0, 0.0), (5.0, 0.0)).is_none());
        assert!(gain((1e9, 1.0), (1e9 + 1e-3, 1e-9), (5.0, 0.0)).is_none());
    }

    /// A row of weight 3 goes where its copies would go, one after the other, and gains as much as they do.
    #[test]
    fn a_weight_is_so_many_copies() {
        let one = |own: f64, other: f64, (near, far)| gain((1.0, 1.0), (own, near), (other, far));
        // Distances in one column: the row at 0, its component of mass 9 about -1.9, the other one of mass 8 about 2.
        let (mut own, mut other, mut copies) = ((9.0, -1.9f64), (8.0, 2.0f64), 0.0);
        let whole = gain((3.0, 1.0), (9.0, 1.9f64.powi(2)), (8.0, 4.0)).unwrap();
        for _ in 0..3 {
            let squares = (own.1.powi(2), other.1.powi(2));
            copies += one(own.0, other.0, squares).unwrap();
            own = (own.0 - 1.0, own.1 * own.0 / (own.0 - 1.0));
            other = (other.0 + 1.0, other.1 * other.0 / (other.0 + 1.0));
        }
        assert!((whole - copies).abs() < 1e-12, "{whole} {copies}");
        // One copy does not pay, though all together would: they stay.
        assert!(gain((3.0, 1.0), (9.0, 3.0), (8.0, 4.0)).is_none());
        assert!(gain((3.0, 3.0), (9.0, 3.0), (8.0, 4.0)).is_some());
    }

    /// One row of hardly any weight does not decide for all others.
    #[test]
    fn the_unit_is_the_weight_of_a_copy() {
        let unit = |w: Vec<f64>| {
            let x = Array2::<f64>::from_shape_fn((w.len(), 1), |(n, _)| n as f64);
            let w = Array1::from(w);
            unit_of(&Dense::weighted(x.view(), w.view()).unwrap())
        };
        assert_eq!(unit([3.0, 2.0, 0.0, 1.0].repeat(50)), 1.0);
        assert_eq!(unit(vec![0.7; 9]), 0.7);
        let mut w = vec![1.0; 200];
        w[7] = 1e-9;
        assert_eq!(unit(w), 1.0);
    }

    /// Weights have no unit: products of tiny ones must not underflow.
    #[test]
    fn weights_have_no_unit() {
        let at = |unit: f64| gain((unit, unit), (9.0 * unit, 3.0), (8.0 * unit, 3.1)).unwrap();
        assert_eq!(at(1.0), at(2f64.powi(-500)) * 2f64.powi(500));
    }
}
