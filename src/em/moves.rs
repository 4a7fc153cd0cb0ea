//! Split and merge: a component moves from where merging costs little to where a split gains much.

use crate::data::{Centres, Data, DenseRows, Frame, Rows};
use crate::e_step::{Assignment, Change, Member};
use crate::float::Float;
use crate::kernels::vectorised;
use crate::parallel;
use crate::rng::{Rng, Stage, Streams};

/// What a round of moves did.
pub(crate) struct Moves {
    /// Components that moved.
    pub(crate) moved: usize,
    /// What the squared distances fall by at least, once the means follow.
    pub(crate) gain: f64,
    /// Rows that belong elsewhere now, in the order of their places.
    pub(crate) changes: Vec<Change>,
    /// Components whose rows or centres are others now.
    pub(crate) stale: Vec<bool>,
    pub(crate) evaluations: u64,
}

/// How much more a split must gain than the merge is sure to cost: moves for a little gain only shuffle components.
const MARGIN: f64 = 1.2;

/// Rows of a component that decide where it would split.
const SAMPLE: usize = 128;

/// Starts tried per split, and steps of 2-means from each.
const STARTS: usize = 2;
const STEPS: usize = 3;

/// How far the gain over some rows may be below that over all.
const DOUBT: f64 = 1.5;

/// Rows read together.
const GATHER: usize = 256;

/// One round of moves (E37). Dissolving component $l$, each of its rows to the second nearest centre, costs at most
///
/// $$L_l = \sum_r \left( L_{l r} - \frac{\max(0, \sqrt{m_{l r} L_{l r}} - m_r o_r)^2}{m_r + m_{l r}} \right), \qquad
/// L_{l r} = \sum_{n : c_n = l, \text{second} = r} w_n \left( d_{n r}^2 - d_{n l}^2 \right)$$
///
/// once the means of the components $r$ that get its rows have followed. Here $m_r$ is the mass of such a component, and
/// $m_{l r}$ the mass that it gets. The mean of its rows is at the distance $o_r$ from its centre: both are in `offsets`.
/// Splitting component $g$ at the centres $a$ and $b$ gains
///
/// $$G_g = \sum_{n : c_n = g} w_n \left( d_{n g}^2 - \min(d_{n a}^2, d_{n b}^2) \right)$$
///
/// If no component has a part in two moves, the update of the means lowers the squared distances by $G_g - L_l$ at least.
/// So a move with $G_g > L_l$ raises the free energy, and no move has to be taken back. The bounds of all rows must be
/// tight: the search before read every row.
pub(crate) fn split_and_merge<F>(
    data: &dyn Data<Rows = DenseRows<F>>,
    frame: &Frame<F>,
    centres: &mut Centres<F>,
    assignment: &Assignment<F>,
    offsets: &[(f64, f64)],
    (streams, round): (Streams, usize),
) -> Moves
where
    F: Float,
{
    let k = assignment.components();
    let mut moves = Moves {
        moved: 0,
        gain: 0.0,
        changes: Vec::new(),
        stale: vec![false; k],
        evaluations: 0,
    };
    if k < 3 {
        return moves;
    }
    let errors = parallel::map(k, |c| Errors::of(data, assignment, offsets, c));
    let mut by_loss: Vec<usize> = (0..k).collect();
    by_loss.sort_by(|&a, &b| errors[a].loss.total_cmp(&errors[b].loss));
    let least = errors[by_loss[0]].loss;
    if !least.is_finite() {
        return moves;
    }
    let guesses = parallel::map(k, |c| {
        // No split gains more than the whole error.
        if errors[c].own <= MARGIN * least {
            return None;
        }
        let mut rng = streams.at(Stage::Moves, round, c);
        Split::guess(data, frame, centres.row(c), assignment.members(c), &mut rng)
    });
    moves.evaluations += guesses
        .iter()
        .flatten()
        .map(|split| split.evaluations)
        .sum::<u64>();

    // Those that could pay for the merge they would be paired with, exactly.
    let mut candidates: Vec<(f64, usize)> = (0..k)
        .filter_map(|c| guesses[c].as_ref().map(|split| (split.gain, c)))
        .collect();
    candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let pays = |pair: &(&(f64, usize), &usize)| DOUBT * pair.0.0 > MARGIN * errors[*pair.1].loss;
    let promising = candidates.iter().zip(&by_loss).take_while(pays).count();
    let mut by_gain = parallel::map(promising, |place| {
        let (guess, c) = candidates[place];
        let (split, members) = (guesses[c].as_ref().expect("a guess"), assignment.members(c));
        let gain = match members.len() {
            ..=SAMPLE => guess,
            _ => errors[c].own - split.error(data, frame, members),
        };
        (gain, c)
    });
    let evaluated = candidates[..promising]
        .iter()
        .map(|(_, c)| assignment.members(*c).len());
    moves.evaluations += evaluated
        .filter(|n| *n > SAMPLE)
        .map(|n| 2 * n as u64)
        .sum::<u64>();
    by_gain.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut by_loss = by_loss.into_iter().peekable();

    // Split or dissolved; and receivers, which get the rows of a merged one.
    let mut locked = vec![false; k];
    let mut pairs = Vec::new();
    for (gain, split) in by_gain {
        if locked[split] {
            continue;
        }
        let free = |&l: &usize| {
            let receivers = || assignment.members(l).iter().map(|m| m.second as usize);
            !locked[l]
                && l != split
                && receivers().all(|receiver| !locked[receiver] && receiver != split)
        };
        // A component passed over for this split may be a receiver of it; it is not tried again.
        while by_loss.peek().is_some_and(|l| !free(l)) {
            by_loss.next();
        }
        let Some(&merged) = by_loss.peek() else {
            break;
        };
        if gain <= MARGIN * errors[merged].loss {
            break;
        }
        by_loss.next();
        moves.gain += gain - errors[merged].loss;
        for c in [split, merged] {
            (locked[c], moves.stale[c]) = (true, true);
        }
        for member in assignment.members(merged) {
            let receiver = member.second as usize;
            (locked[receiver], moves.stale[receiver]) = (true, true);
        }
        pairs.push((split, merged));
    }

    moves.moved = pairs.len();
    let sides = parallel::map(pairs.len(), |pair| {
        let (split, _) = pairs[pair];
        let found = guesses[split].as_ref().expect("a split with a gain");
        (found, found.sides(data, frame, assignment.members(split)))
    });
    for ((split, merged), (found, sides)) in pairs.into_iter().zip(sides) {
        let places = assignment.places(merged).zip(assignment.members(merged));
        moves.changes.extend(places.map(|(place, member)| Change {
            place,
            row: member.row,
            from: merged as u32,
            to: member.second,
        }));
        moves.evaluations += 2 * assignment.members(split).len() as u64;
        let places = assignment.places(split).zip(assignment.members(split));
        let leaving = places.zip(sides);
        moves.changes.extend(
            leaving
                .filter(|(_, leaves)| *leaves)
                .map(|((place, member), _)| Change {
                    place,
                    row: member.row,
                    from: split as u32,
                    to: merged as u32,
                }),
        );
        centres.replace(split, &found.stay);
        centres.replace(merged, &found.leave);
    }
    moves.changes.sort_unstable_by_key(|change| change.place);
    moves
}

/// Weighted squared distances of a component's rows.
struct Errors {
    /// To its centre.
    own: f64,
    /// How much more to the second nearest centres, at most, once these have followed.
    loss: f64,
}

impl Errors {
    fn of<F: Float>(
        data: &dyn Data<Rows = DenseRows<F>>,
        assignment: &Assignment<F>,
        offsets: &[(f64, f64)],
        c: usize,
    ) -> Self {
        let mut own = 0.0;
        // Weight and loss by the component that gets the rows.
        let mut parts: Vec<(u32, f64, f64)> = Vec::new();
        for member in assignment.members(c) {
            let weight = data.weight(member.row as usize);
            if weight > 0.0 {
                let squared = member.upper.to_f64().powi(2);
                own += weight * squared;
                let loss = weight * (member.lower.to_f64().powi(2) - squared);
                match parts.iter_mut().find(|part| part.0 == member.second) {
                    Some(part) => {
                        part.1 += weight;
                        part.2 += loss;
                    }
                    None => parts.push((member.second, weight, loss)),
                }
            }
        }
        let lost = parts.iter().map(|&(receiver, weight, loss)| {
            let (mass, offset) = offsets[receiver as usize];
            // What its mean gains by following, at least.
            let pull = (weight * (loss / weight).sqrt() - mass * offset).max(0.0);
            loss - pull * (pull / (mass + weight))
        });
        Self {
            own,
            loss: lost.sum(),
        }
    }
}

/// Two centres in place of one.
struct Split<F> {
    gain: f64,
    stay: Vec<F>,
    leave: Vec<F>,
    evaluations: u64,
}

impl<F: Float> Split<F> {
    /// A split by 2-means on some of the rows of a component, the best of a few starts: a drawn row and the centre. `None`
    /// without rows apart from the centre.
    fn guess(
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        centre: &[F],
        members: &[Member<F>],
        rng: &mut Rng,
    ) -> Option<Self> {
        let (ids, weights) = sample(data, members, rng);
        let mut rows = DenseRows::default();
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
    fn error_of(&self, rows: &DenseRows<F>, weights: &[f64]) -> f64 {
        let (to_stay, to_leave) = self.distances(rows);
        let nearest = to_stay.iter().zip(&to_leave).zip(weights);
        nearest
            .map(|((a, b), weight)| weight * a.to_f64().min(b.to_f64()))
            .sum()
    }

    /// The same over all rows of a component.
    fn error(
        &self,
        data: &dyn Data<Rows = DenseRows<F>>,
        frame: &Frame<F>,
        members: &[Member<F>],
    ) -> f64 {
        let parts = parallel::map_blocks(members.len(), GATHER, |_, places| {
            let rows = gathered(data, frame, &members[places]);
            let weights: Vec<f64> = (0..rows.len()).map(|i| rows.weight(i)).collect();
            self.error_of(&rows, &weights)
        });
        parts.iter().sum()
    }

    /// Squared distances of rows to both centres.
    fn distances(&self, rows: &DenseRows<F>) -> (Vec<F>, Vec<F>) {
        let to = |centre: &[F]| {
            let mut squared = vec![F::INFINITY; rows.len()];
            rows.lower(0, centre, &mut squared);
            squared
        };
        (to(&self.stay), to(&self.leave))
    }

    /// Moves both centres to the means of the rows nearer to them.
    fn step(&mut self, rows: &DenseRows<F>, weights: &[f64]) {
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
    fn sides(
        &self,
        data: &dyn Data<Rows = DenseRows<F>>,
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

/// Some rows of a component, by half in proportion to their weight and by half to their error, with weights that make
/// sums over them those over all rows on average: few rows far away are not missed. All rows, if there are few.
fn sample<F: Float>(
    data: &dyn Data<Rows = DenseRows<F>>,
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
    let slope = if errors > 0.0 { mass / errors } else { 0.0 };
    // Expected draws of a row: it stands for its weight over these.
    let share = |member: &Member<F>| {
        SAMPLE as f64 * (weight(member) + slope * error(member))
            / (mass * if slope > 0.0 { 2.0 } else { 1.0 })
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
fn gathered<F: Float>(
    data: &dyn Data<Rows = DenseRows<F>>,
    frame: &Frame<F>,
    members: &[Member<F>],
) -> DenseRows<F> {
    let ids: Vec<usize> = members.iter().map(|m| m.row as usize).collect();
    let mut rows = DenseRows::default();
    data.gather(&ids, frame, &mut rows);
    rows
}

#[cfg(test)]
mod tests {
    use super::split_and_merge;
    use crate::data::{Centres, Data, Dense, DenseRows};
    use crate::e_step::{Assignment, NeighbourLists, Sums};
    use approx::assert_abs_diff_eq;

    use crate::rng::{Rng, Streams};
    use ndarray::{Array1, Array2};

    /// The kept sums are the naive ones after any changes, and every round of moves lowers the error by what it promised: once
    /// the means follow, and before any row looks for a nearer one.
    #[test]
    fn moves_lower_the_error_by_themselves() {
        let mut moved = 0;
        for seed in 0..200 {
            let mut rng = Rng::from_seed(seed);
            let (n, d, k) = (200 + rng.below(200), 1 + rng.below(3), 10 + rng.below(40));
            let blobs = Array2::from_shape_fn((12, d), |_| 5.0 * rng.normal());
            let x = Array2::from_shape_fn((n, d), |(n, j)| blobs[[n % 12, j]] + rng.normal());
            let w = Array1::from_shape_fn(n, |n| [1.0, 4.0, 0.25][n % 3]);
            let data = Dense::weighted(x.view(), w.view()).unwrap();
            let frame = data.frame();
            let mut centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut assignment, _) = Assignment::nearest(&data, &frame, &centres, k);
            let mut sums = Sums::of(&data, &frame, &centres, &assignment);
            for round in 0..4 {
                let before = centres.clone();
                sums.move_centres(&mut centres);
                assignment.forget();
                let (mut near, _) = NeighbourLists::new(&centres, 6);
                let _ = near.follow(&before, &centres);
                let (changes, _) = assignment.search(&data, &frame, &centres, &near);
                assignment.apply(&changes);
                sums.apply(&data, &frame, &centres, &assignment, &changes);
                let error = sums.squared(&centres);
                assert_abs_diff_eq!(
                    error,
                    naive(&data, &frame, &centres, &assignment),
                    epsilon = 1e-9 * error
                );

                let streams = (Streams::new(seed, 0), round);
                let offsets = sums.offsets(&centres);
                let made =
                    split_and_merge(&data, &frame, &mut centres, &assignment, &offsets, streams);
                assignment.apply(&made.changes);
                sums.renew(&data, &frame, &centres, &assignment, &made.stale);
                assert_abs_diff_eq!(
                    sums.squared(&centres),
                    naive(&data, &frame, &centres, &assignment),
                    epsilon = 1e-9 * error
                );
                let mut followed = centres.clone();
                sums.move_centres(&mut followed);
                let after = sums.squared(&followed);
                assert!(
                    after <= error - made.gain * (1.0 - 1e-9),
                    "seed {seed}, round {round}: {error} to {after}, not by {}",
                    made.gain
                );
                assert_eq!(made.moved > 0, made.gain > 0.0);
                moved += made.moved;
            }
        }
        assert!(moved > 1_000, "{moved}");
    }

    fn naive(
        data: &Dense<'_, f64>,
        frame: &crate::data::Frame<f64>,
        centres: &Centres<f64>,
        assignment: &Assignment<f64>,
    ) -> f64 {
        let mut rows = DenseRows::default();
        let mut total = 0.0;
        for (n, &label) in assignment.labels().iter().enumerate() {
            data.load(n..n + 1, frame, &mut rows);
            let places = rows.row(0).iter().zip(centres.row(label as usize));
            total += data.weight(n) * places.map(|(x, mu)| (x - mu).powi(2)).sum::<f64>();
        }
        total
    }
}
