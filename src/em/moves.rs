//! Split and merge: a component moves from where merging costs little to where a split gains much.

use super::split::{SAMPLE, Split};
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::{Purpose, Streams};
use crate::data::{Centres, Data, Frame};
use crate::e_step::{Assignment, Change};

/// What a round of moves did.
pub(crate) struct Moves {
    /// What the squared distances fall by at least, once the means follow.
    pub(crate) gain: f64,
    /// What a round would gain that is made once the means have settled. Only where `gain` is little.
    pub(crate) settled: f64,
    /// Rows that belong elsewhere now, in the order of their places.
    pub(crate) changes: Vec<Change>,
    /// Components whose rows or centres are others now.
    pub(crate) stale: Vec<bool>,
    pub(crate) evaluations: u64,
}

/// How much more a split must gain than the merge is sure to cost: moves for a little gain only shuffle components.
const MARGIN: f64 = 1.2;

/// How far the gain over some rows may be below that over all.
const DOUBT: f64 = 1.5;

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
pub(crate) fn split_and_merge<F: Float>(
    data: &dyn Data<F>,
    frame: &Frame<F>,
    centres: &mut Centres<F>,
    assignment: &Assignment<F>,
    (offsets, little): (&[(f64, f64)], f64),
    (streams, round): (Streams, usize),
) -> Moves {
    let k = assignment.components();
    let mut moves = Moves {
        gain: 0.0,
        settled: 0.0,
        changes: Vec::new(),
        stale: vec![false; k],
        evaluations: 0,
    };
    if k < 3 {
        return moves;
    }
    let errors = parallel::map(k, |c| Errors::of(data, assignment, offsets, c));
    let least = errors.iter().map(|errors| errors.settled);
    let least = least.fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return moves;
    }
    let guesses = parallel::map(k, |c| {
        // No split gains more than the whole error.
        if errors[c].own <= MARGIN * least {
            return None;
        }
        let mut rng = streams.at(Purpose::Moves, round, c);
        Split::guess(data, frame, centres.row(c), assignment.members(c), &mut rng)
    });
    let guessed = guesses.iter().flatten().map(|split| split.evaluations);
    moves.evaluations += guessed.sum::<u64>();
    let parts = Parts {
        data,
        frame,
        assignment,
        errors,
        guesses,
    };
    let chosen = parts.choose(|errors| errors.loss);
    (moves.gain, moves.evaluations) = (chosen.gain, moves.evaluations + chosen.evaluations);
    if chosen.gain < little {
        let settled = parts.choose(|errors| errors.settled);
        moves.settled = settled.gain;
        moves.evaluations += settled.evaluations;
    }
    moves.stale = chosen.locked;
    let pairs = chosen.pairs;
    let sides = parallel::map(pairs.len(), |pair| {
        let split = pairs[pair].0;
        let found = parts.guess(split);
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
        let leaving = places.zip(sides).filter(|(_, leaves)| *leaves);
        moves
            .changes
            .extend(leaving.map(|((place, member), _)| Change {
                place,
                row: member.row,
                from: split as u32,
                to: merged as u32,
            }));
        centres.replace(split, &found.stay);
        centres.replace(merged, &found.leave);
    }
    moves.changes.sort_unstable_by_key(|change| change.place);
    moves
}

/// What a choice of moves is made from.
struct Parts<'a, F: Float> {
    data: &'a dyn Data<F>,
    frame: &'a Frame<F>,
    assignment: &'a Assignment<F>,
    errors: Vec<Errors>,
    guesses: Vec<Option<Split<F>>>,
}

/// Moves that have no component in common.
struct Choice {
    /// Which component is split, and which one is merged for it.
    pairs: Vec<(usize, usize)>,
    /// What they gain together, at least.
    gain: f64,
    /// Components with a part in a move: split or merged, or receivers, which get the rows of a merged one.
    locked: Vec<bool>,
    evaluations: u64,
}

impl<F: Float> Parts<'_, F> {
    fn guess(&self, c: usize) -> &Split<F> {
        self.guesses[c].as_ref().expect("a split with a gain")
    }

    /// The splits that gain most, each with the merge of the least `loss` that is left.
    fn choose(&self, loss: impl Fn(&Errors) -> f64) -> Choice {
        let (errors, members) = (&self.errors, |c| self.assignment.members(c));
        let loss = |c: usize| loss(&errors[c]);
        let k = errors.len();
        let mut by_loss: Vec<usize> = (0..k).collect();
        by_loss.sort_by(|&a, &b| loss(a).total_cmp(&loss(b)));

        // Those that could pay for the merge they would be paired with, exactly.
        let mut candidates: Vec<(f64, usize)> = (0..k)
            .filter_map(|c| self.guesses[c].as_ref().map(|split| (split.gain, c)))
            .collect();
        candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let pays = |pair: &(&(f64, usize), &usize)| DOUBT * pair.0.0 > MARGIN * loss(*pair.1);
        let promising = candidates.iter().zip(&by_loss).take_while(pays).count();
        let mut by_gain = parallel::map(promising, |place| {
            let (guess, c) = candidates[place];
            let gain = match members(c).len() {
                ..=SAMPLE => guess,
                _ => errors[c].own - self.guess(c).error(self.data, self.frame, members(c)),
            };
            (gain, c)
        });
        by_gain.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let evaluated = by_gain.iter().map(|(_, c)| members(*c).len());
        let evaluated = evaluated.filter(|n| *n > SAMPLE).map(|n| 2 * n as u64);
        let mut choice = Choice {
            pairs: Vec::new(),
            gain: 0.0,
            locked: vec![false; k],
            evaluations: evaluated.sum(),
        };
        let locked = &mut choice.locked;
        let mut by_loss = by_loss.into_iter().peekable();
        for (gain, split) in by_gain {
            if locked[split] {
                continue;
            }
            let free = |&l: &usize| {
                let receivers = || members(l).iter().map(|m| m.second as usize);
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
            if gain <= MARGIN * loss(merged) {
                break;
            }
            by_loss.next();
            choice.gain += gain - loss(merged);
            (locked[split], locked[merged]) = (true, true);
            for member in members(merged) {
                locked[member.second as usize] = true;
            }
            choice.pairs.push((split, merged));
        }
        choice
    }
}

/// Weighted squared distances of a component's rows.
struct Errors {
    /// To its centre.
    own: f64,
    /// How much more to the second nearest centres, at most, once these have followed.
    loss: f64,
    /// The same if all means were at their centres by now.
    settled: f64,
}

impl Errors {
    fn of<F: Float>(
        data: &dyn Data<F>,
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
        let lost = |settled: bool| -> f64 {
            let parts = parts.iter().map(|&(receiver, weight, loss)| {
                let (mass, offset) = offsets[receiver as usize];
                let behind = if settled { 0.0 } else { mass * offset };
                // What its mean gains by following, at least.
                let pull = (weight * (loss / weight).sqrt() - behind).max(0.0);
                loss - pull * (pull / (mass + weight))
            });
            parts.sum()
        };
        Self {
            own,
            loss: lost(false),
            settled: lost(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split_and_merge;
    use crate::base::rng::{Rng, Streams};
    use crate::data::{Centres, Data, Dense, Rows};
    use crate::e_step::{Assignment, NeighbourLists, Sums};
    use approx::assert_abs_diff_eq;
    use ndarray::{Array1, Array2};

    /// The kept sums are the naive ones after any changes, and every round of moves lowers the error by what it promised:
    /// once the means follow, and before any row looks for a nearer one.
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
            let (mut assignment, _) = Assignment::exhaustive(&data, &frame, &centres);
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
                let made = split_and_merge(
                    &data,
                    &frame,
                    &mut centres,
                    &assignment,
                    (&offsets, 0.0),
                    streams,
                );
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
                let stale = made.stale.iter().filter(|stale| **stale).count();
                assert_eq!(stale > 0, made.gain > 0.0);
                moved += usize::from(made.gain > 0.0);
            }
        }
        assert!(moved > 400, "{moved}");
    }

    fn naive(
        data: &Dense<'_, f64>,
        frame: &crate::data::Frame<f64>,
        centres: &Centres<f64>,
        assignment: &Assignment<f64>,
    ) -> f64 {
        let mut rows = Rows::default();
        let mut total = 0.0;
        for (n, &label) in assignment.labels().iter().enumerate() {
            data.load(n..n + 1, frame, &mut rows);
            let places = rows.row(0).iter().zip(centres.row(label as usize));
            total += data.weight(n) * places.map(|(x, mu)| (x - mu).powi(2)).sum::<f64>();
        }
        total
    }
}
