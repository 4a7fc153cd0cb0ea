//! Split and merge: a component moves from where merging costs little to where a split gains much.

use super::assignment::{Assignment, Change, Member};
use super::list_search::BATCH_ROWS;
use super::sums::Offset;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel;
use crate::base::rng::Rng;
use crate::base::sort;
use crate::data::{Centres, Rows, View};
use crate::kernels::distance;

#[derive(Default)]
pub(crate) struct SplitMerge {
    /// Lower bound on the decrease of the squared distances after the means are updated.
    pub(crate) gain: f64,
    /// Lower bound on the gain of a round that is made when every mean is at its centre.
    pub(crate) settled: f64,
    /// Rows that belong elsewhere now, in the order of their places.
    pub(crate) changes: Vec<Change>,
    /// Components whose rows or centres are others now.
    pub(crate) stale: Vec<bool>,
    pub(crate) evaluations: u64,
}

/// A split must gain at least this many times the bound on the cost of the merge: moves for a little gain only shuffle
/// components.
const MARGIN: f64 = 1.2;

/// The gain over all rows may be this many times the gain over the sampled ones.
const DOUBT: f64 = 1.5;

/// One round of moves (E37): components are dissolved whose rows lose little by going to their second nearest centres, and
/// others are split in their place where that is sure to gain more, so no move has to be taken back. A component that is
/// split or merged has no part in another move. The bounds of all rows must be tight: the search before read every row. `offsets`
/// are those of the means from the centres, and every component has random numbers of its own.
pub(crate) fn split_and_merge<F: Float>(
    view: View<'_, F>,
    centres: &mut Centres<F>,
    assignment: &Assignment<F>,
    offsets: &[Offset],
    rng: &(dyn Fn(usize) -> Rng + Sync),
) -> Result<SplitMerge> {
    let k = assignment.components();
    let mut made = SplitMerge::default();
    let errors = parallel::map(k, |c| Errors::of(view, assignment, offsets, c));
    let least = errors
        .iter()
        .map(|errors| errors.settled)
        .fold(f64::INFINITY, f64::min);
    if k < 3 || !least.is_finite() {
        return Ok(made);
    }
    let guesses = parallel::map(k, |c| {
        // No split gains more than the whole error.
        if errors[c].own <= MARGIN * least {
            return Ok(None);
        }
        Split::guess(view, centres, assignment, c, &mut rng(c))
    });
    let mut splits = Vec::new();
    for guess in guesses {
        splits.extend(guess?);
    }
    made.evaluations += splits.iter().map(|split| split.evaluations).sum::<u64>();
    let largest_first = |a: &Split<F>, b: &Split<F>| {
        let by_gain = b.gain.total_cmp(&a.gain);
        by_gain.then(a.component.cmp(&b.component))
    };
    splits.sort_unstable_by(largest_first);
    // Splits that may pay for the merge with which they would be paired: their gains are computed over all rows.
    let mut losses: Vec<f64> = errors.iter().map(|errors| errors.settled).collect();
    losses.sort_unstable_by(f64::total_cmp);
    let pays = |pair: &(&Split<F>, &f64)| DOUBT * pair.0.gain > MARGIN * pair.1;
    splits.truncate(splits.iter().zip(&losses).take_while(pays).count());
    let exact = parallel::map(splits.len(), |place| {
        let split = &splits[place];
        let c = splits[place].component;
        match assignment.members(c).len() {
            ..=SAMPLE => Ok(split.gain),
            _ => Ok(errors[c].own - split.compare(view, assignment)?.error),
        }
    });
    for (split, exact) in splits.iter_mut().zip(parallel::all(exact)?) {
        let n = assignment.members(split.component).len();
        made.evaluations += if n > SAMPLE { 2 * n as u64 } else { 0 };
        split.gain = exact;
    }
    splits.sort_unstable_by(largest_first);
    // Rows that know few coordinates have their second nearest centres anywhere, also where a component is split.
    let is_ragged = view.data.is_ragged();
    let by = |after: fn(&Errors) -> f64| {
        let loss = |c: usize| [after(&errors[c]), errors[c].before];
        choose(assignment, &splits, loss, |split: &Split<F>, merged| {
            let back = || Split::back(split, view, assignment.members(merged));
            if is_ragged { back() } else { f64::INFINITY }
        })
    };
    made.settled = by(|errors| errors.settled).gain;
    let chosen = by(|errors| errors.loss);
    made.gain = chosen.gain;
    made.stale = chosen.stale;
    for Pair { split, merged } in chosen.pairs {
        let c = split.component;
        let to_second = |place: usize| match assignment.members[place].second {
            second if second as usize == c && split.nearer == LEAVES => None,
            second => Some(assignment.change(place, merged, second)),
        };
        made.changes
            .extend(assignment.places(merged).filter_map(to_second));
        let places = assignment.places(c);
        made.evaluations += 2 * places.len() as u64;
        let sides = places.zip(split.compare(view, assignment)?.sides);
        let leaving = sides.filter(|(_, side)| *side == LEAVES);
        let leaves = |(place, _)| assignment.change(place, c, merged as u32);
        made.changes.extend(leaving.map(leaves));
        centres.replace(c, split.centres.row(0));
        centres.replace(merged, split.centres.row(1));
    }
    made.changes.sort_unstable_by_key(|change| change.place);
    Ok(made)
}

/// A component that is split, and one that is merged for it.
struct Pair<'a, F> {
    split: &'a Split<F>,
    merged: usize,
}

/// Moves that have no split or merged component in common.
struct Choice<'a, F> {
    pairs: Vec<Pair<'a, F>>,
    /// Lower bound on the gain of all pairs together.
    gain: f64,
    /// Components with a part in a move: split or merged, or receivers, which get the rows of merged ones.
    stale: Vec<bool>,
}

/// The splits that gain most, each with the merge of the least `loss` that is left: the loss after receivers' means have followed, and
/// before. Means that follow rows of several components may gain nothing by it, so such moves count with the loss before; and with
/// what rows lose that go `back` to the component that is split.
fn choose<'a, F: Float>(
    assignment: &Assignment<F>,
    splits: &'a [Split<F>],
    loss: impl Fn(usize) -> [f64; 2],
    back: impl Fn(&Split<F>, usize) -> f64,
) -> Choice<'a, F> {
    let k = assignment.components();
    let mut by_loss: Vec<usize> = (0..k).collect();
    sort::by(&mut by_loss, &|a, b| loss(a)[0].total_cmp(&loss(b)[0]));
    let mut by_loss = by_loss.into_iter();
    let mut pairs = Vec::new();
    let mut total = 0.0;
    // Split or merged; the first move that gives a component rows; and what each move counts on that means follow.
    let mut moved = vec![false; k];
    let mut first = vec![None; k];
    let mut follows = Vec::new();
    let receivers = |l: usize| assignment.members(l).iter().map(|m| m.second as usize);
    'splits: for split in splits {
        let c = split.component;
        let gain = split.gain;
        if moved[c] || first[c].is_some() {
            continue;
        }
        // A component passed over for this split may be a receiver of it; it is not tried again.
        let (merged, cost, follow, others) = loop {
            let Some(l) = by_loss.next() else {
                break 'splits;
            };
            if moved[l] || l == c || first[l].is_some() || receivers(l).any(|r| moved[r]) {
                continue;
            }
            let goes_back = receivers(l).any(|r| r == c);
            let more = if goes_back { back(split, l) } else { 0.0 };
            if more.is_infinite() {
                continue;
            }
            let mut others: Vec<usize> = receivers(l).filter_map(|r| first[r]).collect();
            others.sort_unstable();
            others.dedup();
            let given_back: f64 = others.iter().map(|pair: &usize| follows[*pair]).sum();
            let [after, before] = loss(l);
            let (merge_cost, follow) = if others.is_empty() && !goes_back {
                (after, before - after)
            } else {
                (before + more, 0.0)
            };
            let cost = merge_cost + given_back;
            if gain > MARGIN * cost {
                break (l, cost, follow, others);
            }
            if others.is_empty() && !goes_back {
                break 'splits;
            }
        };
        follows.push(follow);
        others.into_iter().for_each(|pair| follows[pair] = 0.0);
        total += gain - cost;
        (moved[c], moved[merged]) = (true, true);
        receivers(merged).for_each(|r| _ = first[r].get_or_insert(pairs.len()));
        pairs.push(Pair { split, merged });
    }
    let has_part = |c| moved[c] || Option::is_some(&first[c]);
    Choice {
        pairs,
        gain: total,
        stale: (0..k).map(has_part).collect(),
    }
}

/// Sums over the rows of a component, for split and merge.
struct Errors {
    /// The weighted squared distances to the component's own centre.
    own: f64,
    /// The increase if all rows go to their second nearest centres.
    before: f64,
    /// Upper bound on it if the means there follow.
    loss: f64,
    /// Upper bound on it if all means are at their centres, and follow.
    settled: f64,
}

/// The rows of a merged component that go to another one: their weight, and how much farther they are from its centre.
#[derive(Clone, Copy)]
struct Received {
    component: u32,
    weight: f64,
    loss: f64,
}

impl Received {
    /// Upper bound on the loss after the receiver's mean has followed (E37). `mass` is the receiver's own, and `behind` is that
    /// mass times the distance of its mean from its centre. Computed as a product; a difference would cancel when weights
    /// differ widely.
    fn left(self, mass: f64, behind: f64) -> f64 {
        let Self { weight, loss, .. } = self;
        let mean = (loss / weight).sqrt();
        if weight * mean > behind {
            let share = weight / (mass + weight);
            share * mean * (mass * mean + 2.0 * behind) - behind * (behind / (mass + weight))
        } else {
            loss
        }
    }
}

impl Errors {
    fn of<F: Float>(
        view: View<'_, F>,
        assignment: &Assignment<F>,
        offsets: &[Offset],
        c: usize,
    ) -> Self {
        let mut squared_error = 0.0;
        let mut receivers: Vec<Received> = Vec::new();
        for member in assignment.members(c) {
            let weight = view.weight(member.row);
            if weight > 0.0 {
                let squared = member.upper.to_f64().powi(2);
                squared_error += weight * squared;
                let loss = weight * (member.lower.to_f64().powi(2) - squared);
                match receivers.iter_mut().find(|r| r.component == member.second) {
                    Some(received) => {
                        received.weight += weight;
                        received.loss += loss;
                    }
                    None => receivers.push(Received {
                        component: member.second,
                        weight,
                        loss,
                    }),
                }
            }
        }
        let offset = |received: &Received| offsets[received.component as usize];
        let loss = |r: &Received| r.left(offset(r).mass, offset(r).mass * offset(r).distance);
        Self {
            own: squared_error,
            before: receivers.iter().map(|r| r.loss).sum(),
            loss: receivers.iter().map(loss).sum(),
            settled: receivers.iter().map(|r| r.left(offset(r).mass, 0.0)).sum(),
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
    component: usize,
    /// How much the squared distances fall: over the rows that decided at first, an estimate for more rows.
    gain: f64,
    /// The centre that stays, and the one that leaves.
    centres: Centres<F>,
    /// The one nearer to the component's own centre, and how far it is from there.
    nearer: u32,
    way: f64,
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
        let mut sides = vec![0; rows.len()];
        let mut squared = vec![F::zero(); rows.len()];
        if !rows.nearest(centres, &mut sides, &mut squared) {
            rows.distances_from(centres.row(0), &mut squared);
            let before = squared.clone();
            rows.lower_to_distances(0, centres.row(1), &mut squared);
            let pairs = squared.iter().zip(&before);
            sides = pairs.map(|(now, before)| u32::from(now < before)).collect();
        }
        let squared = squared.iter().enumerate();
        let error = squared
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
        centres: &Centres<F>,
        assignment: &Assignment<F>,
        component: usize,
        rng: &mut Rng,
    ) -> Result<Option<Self>> {
        let centre = centres.row(component);
        let members = assignment.members(component);
        let (ids, weights) = sample(view, members, rng);
        let rows = view.gather(ids.into_iter())?;
        let weight = |i: usize| weights[i];
        let mut to_centre = vec![F::INFINITY; rows.len()];
        rows.distances_from(centre, &mut to_centre);
        let pairs = || weights.iter().zip(&to_centre);
        let errors = || pairs().map(|(w, squared)| w * squared.to_f64());
        let total: f64 = errors().sum();
        let mut best: Option<Self> = None;
        for _ in 0..STARTS {
            let Some(drawn) = rng.proportional(errors(), total) else {
                return Ok(None);
            };
            let mut centres = Centres::with_capacity(2, view.frame.dim());
            centres.push(centre);
            centres.push(&rows.coordinates_or(drawn, centre));
            let mut sides = Sides::of(&centres, &rows, weight);
            for _ in 0..STEPS {
                centres.move_to_means(&rows, weight, &sides.sides);
                sides = Sides::of(&centres, &rows, weight);
            }
            let gain = total - sides.error;
            if best.as_ref().is_none_or(|best| gain > best.gain) {
                let ways = [0, 1].map(|side| distance::exact(centre, centres.row(side)).sqrt());
                best = Some(Self {
                    component,
                    gain,
                    centres,
                    nearer: u32::from(ways[1] < ways[0]),
                    way: ways[0].min(ways[1]),
                    evaluations: ((1 + 2 * STARTS * (STEPS + 1)) * rows.len()) as u64,
                });
            }
        }
        Ok(best)
    }

    /// Upper bound on how much farther the rows of a merged component whose second nearest centre is split are from the nearer of
    /// its two: by the triangle inequality.
    fn back(&self, view: View<'_, F>, members: &[Member<F>]) -> f64 {
        members
            .iter()
            .filter(|member| member.second as usize == self.component)
            .map(|member| {
                let second = member.lower.to_f64().abs();
                view.weight(member.row) * self.way * (2.0 * second + self.way)
            })
            .sum()
    }

    /// All rows of a component compared with both centres.
    fn compare(&self, view: View<'_, F>, assignment: &Assignment<F>) -> Result<Sides> {
        let members = assignment.members(self.component);
        let parts = parallel::map_blocks(members.len(), BATCH_ROWS, |_, places| {
            let rows = view.gather(members[places].iter().map(|member| member.row))?;
            Ok(Sides::of(&self.centres, &rows, |i| rows.weight(i)))
        });
        let mut compared = Sides::default();
        for part in parallel::all(parts)? {
            compared.sides.extend(part.sides);
            compared.error += part.error;
        }
        Ok(compared)
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
    // Expected draws of a row: it stands for its weight over these. Two quotients, for weights and errors of any size.
    let share =
        |member: &Member<F>| 0.5 * SAMPLE as f64 * (weight(member) / mass + error(member) / errors);
    let mut ids = Vec::with_capacity(SAMPLE);
    let mut weights = Vec::with_capacity(SAMPLE);
    // One draw from each stretch of the same share.
    let mut sum = 0.0;
    let mut drawn = 0usize;
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
    use crate::e_step::KeptSums;
    use ndarray::{Array1, Array2, ArrayView2, Axis};
    use std::collections::{BTreeMap, BTreeSet};

    /// One round from these centres: its bound on the gain and how much the squared distances fell, as parts of these, and from how
    /// many components each of the others got rows.
    fn round(
        x: &Array2<f64>,
        w: &Array1<f64>,
        centres: ArrayView2<'_, f64>,
    ) -> (f64, f64, Vec<usize>) {
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        let frame = data.frame();
        let view = View::new(&data, &frame);
        let mut centres = Centres::enter(centres, &frame);
        let (mut assignment, ..) = Assignment::exhaustive(view, &centres).unwrap();
        let sums = KeptSums::of(view, &centres, &assignment).unwrap();
        let before = sums.squared(&centres);
        let offsets = sums.offsets(&centres);
        let rng = |c| Rng::from_seed(c as u64);
        let made = split_and_merge(view, &mut centres, &assignment, &offsets, &rng).unwrap();
        assignment.apply(&made.changes);
        let sums = KeptSums::of(view, &centres, &assignment).unwrap();
        sums.move_centres(&mut centres);
        let mut from: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for change in &made.changes {
            from.entry(change.to).or_default().insert(change.from);
        }
        let from = from.values().map(BTreeSet::len).collect();
        let fell = before - sums.squared(&centres);
        (made.gain / before, fell / before, from)
    }

    /// The rows of two components go to the one between them, whose mean follows one of them, or neither: both moves together cost 20,
    /// and each alone 10 / 11. So the second split must gain that.
    #[test]
    fn a_mean_does_not_follow_two_ways() {
        for (split, expected) in [(15.0f64, 15.0 - 10.0 / 11.0), (30.0, 2.0 * 30.0 - 20.0)] {
            let a = (split / 2.0).sqrt();
            let expected = expected / (2.0 * split);
            let x = vec![-1.0, 1.0, 0.0, 100.0 - a, 100.0 + a, 200.0 - a, 200.0 + a];
            let x = Array2::from_shape_vec((7, 1), x).unwrap();
            let w = Array1::from(vec![10.0, 10.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
            let centres = ndarray::array![[-1.0], [1.0], [0.0], [100.0], [200.0]];
            let (gain, fell, _) = round(&x, &w, centres.view());
            assert!((gain - expected).abs() < 1e-9, "{gain} {expected}");
            assert!(fell >= gain * (1.0 - 1e-9), "{fell} {gain}");
        }
    }

    /// Rows with tails that no variance holds: many components in the middle are worth less than splits far out, though their rows go to
    /// the same ones. The error falls by the bound at least.
    #[test]
    fn many_moves_of_a_round_share_receivers() {
        let mut shared = 0;
        let mut made = 0;
        for seed in 0..60 {
            let mut rng = Rng::from_seed(seed);
            let n = 600;
            let d = 1 + seed as usize % 4;
            let k = 20 + seed as usize % 20;
            let x = Array2::from_shape_simple_fn((n, d), || rng.normal() / rng.normal());
            let w = Array1::from_shape_fn(n, |i| [1.0, 0.2, 5.0][i % 3]);
            let (gain, fell, from) = round(&x, &w, x.view().split_at(Axis(0), k).0);
            assert!(fell >= gain * (1.0 - 1e-9), "seed {seed}: {fell} {gain}");
            shared += usize::from(from.iter().any(|components| *components > 1));
            made += usize::from(gain > 0.0);
        }
        assert!(made > 40 && shared > 20, "{made} {shared}");
    }
}
