//! A component in two: where 2-means on a few of its rows would put its parts, and what that gains.

use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::base::simd::vectorised;
use crate::data::{Data, Frame, Rows};
use crate::e_step::Member;

/// Rows of a component that decide where it would split.
pub(super) const SAMPLE: usize = 128;

/// Starts tried per split, and steps of 2-means from each.
const STARTS: usize = 2;
const STEPS: usize = 3;

/// Rows read together.
const GATHER: usize = 256;

/// Two centres in place of one.
pub(super) struct Split<F> {
    /// What the squared distances fall by, over the rows that decided: an estimate for more rows.
    pub(super) gain: f64,
    pub(super) stay: Vec<F>,
    pub(super) leave: Vec<F>,
    pub(super) evaluations: u64,
}

impl<F: Float> Split<F> {
    /// A split by 2-means on some of the rows of a component, the best of a few starts: a drawn row and the centre. `None`
    /// without rows apart from the centre.
    pub(super) fn guess(
        data: &dyn Data<F>,
        frame: &Frame<F>,
        centre: &[F],
        members: &[Member<F>],
        rng: &mut Rng,
    ) -> Option<Self> {
        let (ids, weights) = sample(data, members, rng);
        let mut rows = Rows::default();
        data.gather(&ids, frame, &mut rows);
        let mut to_centre = vec![F::INFINITY; rows.len()];
        rows.lower(0, centre, &mut to_centre);
        let errors = || {
            weights
                .iter()
                .zip(&to_centre)
                .map(|(w, d2)| w * d2.to_f64())
        };
        let total: f64 = errors().sum();
        let mut best: Option<Self> = None;
        for _ in 0..STARTS {
            let mut left = rng.uniform() * total;
            let drawn = errors().position(|e| {
                left -= e;
                left < 0.0
            })?;
            let mut split = Self {
                gain: 0.0,
                stay: centre.to_vec(),
                leave: rows.row(drawn).to_vec(),
                evaluations: 0,
            };
            for _ in 0..STEPS {
                split.step(&rows, &weights);
            }
            split.gain = total - split.error_of(&rows, &weights);
            if best.as_ref().is_none_or(|best| split.gain > best.gain) {
                best = Some(split);
            }
        }
        let mut best = best?;
        best.evaluations = ((1 + 2 * STARTS * (STEPS + 1)) * rows.len()) as u64;
        Some(best)
    }

    /// Weighted squared distances of rows to the nearer centre.
    fn error_of(&self, rows: &Rows<F>, weights: &[f64]) -> f64 {
        let (to_stay, to_leave) = self.distances(rows);
        let nearest = to_stay.iter().zip(&to_leave).zip(weights);
        nearest
            .map(|((a, b), weight)| weight * a.to_f64().min(b.to_f64()))
            .sum()
    }

    /// The same over all rows of a component.
    pub(super) fn error(&self, data: &dyn Data<F>, frame: &Frame<F>, members: &[Member<F>]) -> f64 {
        let parts = parallel::map_blocks(members.len(), GATHER, |_, places| {
            let rows = gathered(data, frame, &members[places]);
            let weights: Vec<f64> = (0..rows.len()).map(|i| rows.weight(i)).collect();
            self.error_of(&rows, &weights)
        });
        parts.iter().sum()
    }

    /// Squared distances of rows to both centres.
    fn distances(&self, rows: &Rows<F>) -> (Vec<F>, Vec<F>) {
        let to = |centre: &[F]| {
            let mut squared = vec![F::INFINITY; rows.len()];
            rows.lower(0, centre, &mut squared);
            squared
        };
        (to(&self.stay), to(&self.leave))
    }

    /// Moves both centres to the means of the rows nearer to them.
    fn step(&mut self, rows: &Rows<F>, weights: &[f64]) {
        let (to_stay, to_leave) = self.distances(rows);
        let mut sums = [vec![0.0; self.stay.len()], vec![0.0; self.stay.len()]];
        let mut mass = [0.0; 2];
        vectorised!({
            for i in 0..rows.len() {
                let (side, weight) = (usize::from(to_leave[i] < to_stay[i]), weights[i]);
                mass[side] += weight;
                for (sum, x) in sums[side].iter_mut().zip(rows.row(i)) {
                    *sum += weight * x.to_f64();
                }
            }
        });
        let centres = [&mut self.stay, &mut self.leave];
        for ((centre, sums), mass) in centres.into_iter().zip(sums).zip(mass) {
            if mass > 0.0 {
                for (x, sum) in centre.iter_mut().zip(sums) {
                    *x = F::from_f64(sum / mass);
                }
            }
        }
    }

    /// Whether each member leaves, in order.
    pub(super) fn sides(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        members: &[Member<F>],
    ) -> Vec<bool> {
        let parts = parallel::map_blocks(members.len(), GATHER, |_, places| {
            let (to_stay, to_leave) = self.distances(&gathered(data, frame, &members[places]));
            let sides = to_stay.iter().zip(&to_leave).map(|(a, b)| b < a);
            sides.collect::<Vec<bool>>()
        });
        parts.concat()
    }
}

/// Some rows of a component, drawn by half in proportion to their weight and by half to their error, so that a few rows far
/// away are not missed. With their new weights, sums over them are those over all rows on average. All rows, if there are
/// few.
fn sample<F: Float>(
    data: &dyn Data<F>,
    members: &[Member<F>],
    rng: &mut Rng,
) -> (Vec<usize>, Vec<f64>) {
    let row = |member: &Member<F>| member.row as usize;
    let weight = |member: &Member<F>| data.weight(row(member));
    if members.len() <= SAMPLE {
        return (
            members.iter().map(row).collect(),
            members.iter().map(weight).collect(),
        );
    }
    let error = |member: &Member<F>| match weight(member) {
        0.0 => 0.0,
        weight => weight * member.upper.to_f64().powi(2),
    };
    let mass: f64 = members.iter().map(weight).sum();
    let errors: f64 = members.iter().map(error).sum();
    let known = errors > 0.0 && errors.is_finite();
    // Expected draws of a row: it stands for its weight over these. Two quotients, for weights and errors of any size.
    let share = |member: &Member<F>| {
        let (by_weight, by_error) = (weight(member) / mass, error(member) / errors);
        SAMPLE as f64
            * match known {
                true => 0.5 * (by_weight + by_error),
                false => by_weight,
            }
    };
    let (mut ids, mut weights) = (Vec::with_capacity(SAMPLE), Vec::with_capacity(SAMPLE));
    // One draw from each stretch of the same share.
    let (mut sum, mut drawn) = (0.0, 0usize);
    let first = rng.uniform();
    for member in members {
        let share = share(member);
        sum += share;
        let mut times = 0;
        while first + (drawn as f64) < sum {
            (drawn, times) = (drawn + 1, times + 1);
        }
        if times > 0 {
            ids.push(row(member));
            weights.push(weight(member) * f64::from(times) / share);
        }
    }
    (ids, weights)
}

/// The rows of some members.
fn gathered<F: Float>(data: &dyn Data<F>, frame: &Frame<F>, members: &[Member<F>]) -> Rows<F> {
    let ids: Vec<usize> = members.iter().map(|m| m.row as usize).collect();
    let mut rows = Rows::default();
    data.gather(&ids, frame, &mut rows);
    rows
}
