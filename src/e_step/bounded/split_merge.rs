//! Split and merge: a component moves from where merging costs little to where a split gains much.

use super::assignment::{Assignment, Change, Member};
use super::list_search::TOGETHER;
use super::sums::Offset;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::{Purpose, Rng, Streams};
use crate::data::{Centres, Rows, View};

/// What a round of split and merge did.
pub(crate) struct SplitMerge {
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

/// One of the rounds of a phase.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    /// Of the means from the centres.
    pub(crate) offsets: &'a [Offset],
    /// A gain that is not worth a round.
    pub(crate) little: f64,
    pub(crate) streams: Streams,
    /// The number of the round, for its random stream.
    pub(crate) number: usize,
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
    view: View<'_, F>,
    centres: &mut Centres<F>,
    assignment: &Assignment<F>,
    round: Round<'_>,
) -> Result<SplitMerge> {
    let k = assignment.components();
    let mut made = SplitMerge {
        gain: 0.0,
        settled: 0.0,
        changes: Vec::new(),
        stale: vec![false; k],
        evaluations: 0,
    };
    if k < 3 {
        return Ok(made);
    }
    let errors = parallel::map(k, |c| Errors::of(view, assignment, round.offsets, c));
    let least = errors.iter().map(|errors| errors.settled);
    let least = least.fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return Ok(made);
    }
    let guesses = parallel::map(k, |c| {
        // No split gains more than the whole error.
        if errors[c].own <= MARGIN * least {
            return Ok(None);
        }
        let mut rng = round.streams.at(Purpose::Moves, round.number, c);
        Split::guess(view, centres.row(c), assignment.members(c), &mut rng)
    });
    let guesses = parallel::all(guesses)?;
    let guessed = guesses.iter().flatten().map(|split| split.evaluations);
    made.evaluations += guessed.sum::<u64>();
    let parts = Parts {
        view,
        assignment,
        errors,
        guesses,
    };
    let chosen = parts.choose(|errors| errors.loss)?;
    (made.gain, made.evaluations) = (chosen.gain, made.evaluations + chosen.evaluations);
    if chosen.gain < round.little {
        let settled = parts.choose(|errors| errors.settled)?;
        made.settled = settled.gain;
        made.evaluations += settled.evaluations;
    }
    made.stale = chosen.locked;
    for Pair { split, merged } in chosen.pairs {
        let places = assignment.places(merged).zip(assignment.members(merged));
        made.changes.extend(places.map(|(place, member)| Change {
            place,
            row: member.row,
            from: merged as u32,
            to: member.second,
        }));
        let (found, members) = (parts.guess(split), assignment.members(split));
        made.evaluations += 2 * members.len() as u64;
        let sides = found.compare(view, members)?.sides;
        let leaving = assignment.places(split).zip(members).zip(sides);
        let leaving = leaving.filter(|(_, side)| *side == LEAVES);
        made.changes
            .extend(leaving.map(|((place, member), _)| Change {
                place,
                row: member.row,
                from: split as u32,
                to: merged as u32,
            }));
        centres.replace(split, found.centres.row(0));
        centres.replace(merged, found.centres.row(1));
    }
    made.changes.sort_unstable_by_key(|change| change.place);
    Ok(made)
}

/// What a choice of moves is made from.
struct Parts<'a, F: Float> {
    view: View<'a, F>,
    assignment: &'a Assignment<F>,
    errors: Vec<Errors>,
    guesses: Vec<Option<Split<F>>>,
}

/// A component that is split, and one that is merged for it.
struct Pair {
    split: usize,
    merged: usize,
}

/// Moves that have no component in common.
struct Choice {
    pairs: Vec<Pair>,
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
    fn choose(&self, loss: impl Fn(&Errors) -> f64) -> Result<Choice> {
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
        let by_gain = parallel::map(promising, |place| {
            let (guess, c) = candidates[place];
            let gain = match members(c).len() {
                ..=SAMPLE => guess,
                _ => errors[c].own - self.guess(c).compare(self.view, members(c))?.error,
            };
            Ok((gain, c))
        });
        let mut by_gain = parallel::all(by_gain)?;
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
            choice.pairs.push(Pair { split, merged });
        }
        Ok(choice)
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

/// A component that gets rows of a merged one: their weight, and how much farther it is from them.
struct Receiver {
    component: u32,
    weight: f64,
    loss: f64,
}

impl Errors {
    fn of<F: Float>(
        view: View<'_, F>,
        assignment: &Assignment<F>,
        offsets: &[Offset],
        c: usize,
    ) -> Self {
        let mut own = 0.0;
        let mut receivers: Vec<Receiver> = Vec::new();
        for member in assignment.members(c) {
            let weight = view.weight(member.row);
            if weight > 0.0 {
                let squared = member.upper.to_f64().powi(2);
                own += weight * squared;
                let loss = weight * (member.lower.to_f64().powi(2) - squared);
                match receivers.iter_mut().find(|r| r.component == member.second) {
                    Some(receiver) => {
                        receiver.weight += weight;
                        receiver.loss += loss;
                    }
                    None => receivers.push(Receiver {
                        component: member.second,
                        weight,
                        loss,
                    }),
                }
            }
        }
        let lost = |settled: bool| -> f64 {
            let parts = receivers.iter().map(|receiver| {
                let Offset { mass, distance } = offsets[receiver.component as usize];
                let behind = if settled { 0.0 } else { mass * distance };
                // The mean of the receiver follows, at least so far that its pull is this. As one difference of large numbers
                // the rest would be rounding, where weights differ much.
                let (weight, mean) = (receiver.weight, (receiver.loss / receiver.weight).sqrt());
                match weight * mean > behind {
                    true => {
                        let share = weight / (mass + weight);
                        share * mean * (mass * mean + 2.0 * behind)
                            - behind * (behind / (mass + weight))
                    }
                    false => receiver.loss,
                }
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

/// Rows of a component that decide where it would split.
const SAMPLE: usize = 128;

/// Starts tried per split, and steps of 2-means from each.
const STARTS: usize = 2;
const STEPS: usize = 3;

/// The number of the centre that leaves, among the two of a split.
const LEAVES: u32 = 1;

/// Two centres in place of one: where 2-means on a few rows of a component puts its parts.
struct Split<F> {
    /// How much the squared distances fall, over the rows that decided: an estimate for more rows.
    gain: f64,
    /// The centre that stays, and the one that leaves.
    centres: Centres<F>,
    evaluations: u64,
}

/// Rows compared with the two centres of a split: which one is nearer, and the weighted squared distances to it.
#[derive(Default)]
struct Sides {
    sides: Vec<u32>,
    error: f64,
}

impl Sides {
    fn of<F: Float>(centres: &Centres<F>, rows: &Rows<F>, weight: impl Fn(usize) -> f64) -> Self {
        let (mut sides, mut squared) = (vec![0; rows.len()], vec![F::zero(); rows.len()]);
        rows.nearest(centres, &mut sides, &mut squared);
        let errors = squared.iter().enumerate();
        let error = errors
            .map(|(i, squared)| weight(i) * squared.to_f64())
            .sum();
        Self { sides, error }
    }
}

impl<F: Float> Split<F> {
    /// A split by 2-means on some of the rows of a component, the best of a few starts: a drawn row and the centre. `None`
    /// without rows apart from the centre.
    fn guess(
        view: View<'_, F>,
        centre: &[F],
        members: &[Member<F>],
        rng: &mut Rng,
    ) -> Result<Option<Self>> {
        let (ids, weights) = sample(view, members, rng);
        let rows = view.gather(ids.into_iter())?;
        let weight = |i: usize| weights[i];
        let mut to_centre = vec![F::INFINITY; rows.len()];
        rows.distances_from(centre, &mut to_centre);
        let errors = || {
            weights
                .iter()
                .zip(&to_centre)
                .map(|(w, squared)| w * squared.to_f64())
        };
        let total: f64 = errors().sum();
        let mut best: Option<Self> = None;
        for _ in 0..STARTS {
            let mut left = rng.uniform() * total;
            let drawn = errors().position(|e| {
                left -= e;
                left < 0.0
            });
            let Some(drawn) = drawn else {
                return Ok(None);
            };
            let mut centres = Centres::with_capacity(2, view.frame.dim());
            centres.push(centre);
            centres.push(rows.row(drawn));
            let mut found = Sides::of(&centres, &rows, weight);
            for _ in 0..STEPS {
                centres.move_to_means(rows.values(), weight, &found.sides);
                found = Sides::of(&centres, &rows, weight);
            }
            let gain = total - found.error;
            if best.as_ref().is_none_or(|best| gain > best.gain) {
                best = Some(Self {
                    gain,
                    centres,
                    evaluations: ((1 + 2 * STARTS * (STEPS + 1)) * rows.len()) as u64,
                });
            }
        }
        Ok(best)
    }

    /// All rows of a component compared with both centres.
    fn compare(&self, view: View<'_, F>, members: &[Member<F>]) -> Result<Sides> {
        let parts = parallel::map_blocks(members.len(), TOGETHER, |_, places| {
            let rows = view.gather(members[places].iter().map(|member| member.row))?;
            Ok(Sides::of(&self.centres, &rows, |i| rows.weight(i)))
        });
        let mut all = Sides::default();
        for part in parallel::all(parts)? {
            all.sides.extend(part.sides);
            all.error += part.error;
        }
        Ok(all)
    }
}

/// Some rows of a component, drawn by half in proportion to their weight and by half to their error, so that a few rows far
/// away are not missed. With their new weights, sums over them are those over all rows on average. All rows, if there are
/// few.
fn sample<F: Float>(
    view: View<'_, F>,
    members: &[Member<F>],
    rng: &mut Rng,
) -> (Vec<u32>, Vec<f64>) {
    let row = |member: &Member<F>| member.row;
    let weight = |member: &Member<F>| view.weight(member.row);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Dense};
    use crate::e_step::{NeighbourLists, Sums};
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
            let view = View::new(&data, &frame);
            let mut centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
            let (mut assignment, _) = Assignment::exhaustive(view, &centres).unwrap();
            let mut sums = Sums::of(view, &centres, &assignment).unwrap();
            for round in 0..4 {
                let before = centres.clone();
                sums.move_centres(&mut centres);
                assignment.forget();
                let (mut near, _) = NeighbourLists::new(&centres, 6);
                let _ = near.follow(&before, &centres);
                let (changes, _) = assignment.search(view, &centres, &near).unwrap();
                assignment.apply(&changes);
                sums.apply(view, &centres, &assignment, &changes).unwrap();
                let error = sums.squared(&centres);
                assert_abs_diff_eq!(
                    error,
                    naive(view, &centres, &assignment),
                    epsilon = 1e-9 * error
                );

                let offsets = sums.offsets(&centres);
                let round = Round {
                    offsets: &offsets,
                    little: 0.0,
                    streams: Streams::new(seed, 0),
                    number: round,
                };
                let made = split_and_merge(view, &mut centres, &assignment, round).unwrap();
                assignment.apply(&made.changes);
                sums.renew(view, &centres, &assignment, &made.stale)
                    .unwrap();
                assert_abs_diff_eq!(
                    sums.squared(&centres),
                    naive(view, &centres, &assignment),
                    epsilon = 1e-9 * error
                );
                let mut followed = centres.clone();
                sums.move_centres(&mut followed);
                let after = sums.squared(&followed);
                assert!(
                    after <= error - made.gain * (1.0 - 1e-9),
                    "seed {seed}: {error} to {after}, not by {}",
                    made.gain
                );
                let stale = made.stale.iter().filter(|stale| **stale).count();
                assert_eq!(stale > 0, made.gain > 0.0);
                moved += usize::from(made.gain > 0.0);
            }
        }
        assert!(moved > 400, "{moved}");
    }

    fn naive(view: View<'_, f64>, centres: &Centres<f64>, assignment: &Assignment<f64>) -> f64 {
        let mut total = 0.0;
        for (n, &label) in assignment.labels().iter().enumerate() {
            let rows = view.load(n..n + 1).unwrap();
            let places = rows.row(0).iter().zip(centres.row(label as usize));
            total += rows.weight(0) * places.map(|(x, mu)| (x - mu).powi(2)).sum::<f64>();
        }
        total
    }
}
