//! Lists of near centres: neighbour lists, which centres are near each other and how far they moved; and inverted lists,
//! which centres are near the points of a coarse quantizer.

use super::limits::LIMITS;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::parallel;
use crate::costs::Cost;
use crate::data::{Centres, Rows};
use crate::io::rule;
use crate::kernels::distance;
use crate::model::quantizer::CoarseQuantizer;
use crate::rows::Ranking;

/// How many distances to all centres take as long as one to a centre of a list in the first search of a phase, whose lists are
/// packed for many rows: products of wide rows alone are faster.
pub(crate) fn product_rate(columns: usize) -> f64 {
    if columns > LIMITS.packed_columns {
        LIMITS.product_rate
    } else {
        1.0
    }
}

/// How long a search of some rows over all `k` centres takes, in distances.
pub(crate) fn time_of_all(rows: usize, k: usize) -> f64 {
    rows as f64 * (k as f64 + LIMITS.gathered)
}

/// How long a search by `k` lists of `near` centres takes.
pub(crate) fn time_of_lists(rows: usize, k: usize, near: usize) -> f64 {
    rows as f64 * (near as f64 + LIMITS.gathered) + LIMITS.packed * (k * near) as f64
}

/// The centres that the rows of a component are compared with: the component's own, and the nearest others.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct NeighbourLists<F> {
    size: usize,
    /// (k, size): the component itself first.
    lists: Vec<u32>,
    #[cfg_attr(feature = "files", serde(skip))]
    pub(crate) moved: Vec<Moved<F>>,
    /// A lower bound of the distance from each centre to any candidate that is not on its list (k). Candidates are all centres, or,
    /// where there are many, those on the inverted list of its cell: then a centre of another cell may be nearer (E35).
    reach: Vec<f64>,
}

/// How the last M-step changes the bounds of a component's rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved<F> {
    /// How far its own centre moved.
    pub(crate) own: F,
    /// How far any other on its list moved.
    pub(crate) others: F,
    /// Half the distance from its centre to the nearest other on its list: no centre on the list is nearer to a row
    /// within it.
    pub(crate) half_gap: F,
    /// Half of its `reach`: no candidate outside the list is nearer to a row within it.
    pub(crate) half_reach: F,
}

impl<F: Float> NeighbourLists<F> {
    /// Lists of `size` centres, itself counted, by the current distances. Returns the number of distance evaluations as
    /// well.
    ///
    /// If there are many centres, the candidates are those on the inverted list of the centre's cell.
    pub(crate) fn new(centres: &Centres<F>, size: usize) -> (Self, u64) {
        let k = centres.len();
        let size = size.min(k);
        let (lists, evaluations) = match InvertedLists::of(centres, LIMITS.candidates * size) {
            None => (nearest_lists(centres, size), (k * k) as u64),
            Some(inverted) => {
                let mut lists = vec![0; k * size];
                parallel::map_chunks(&mut lists, size * CENTRES, |_, range, lists| {
                    let mut squared = Vec::new();
                    for (c, list) in (range.start / size..).zip(lists.chunks_exact_mut(size)) {
                        let candidates = inverted.around(c);
                        let row = centres.row(c);
                        distance::to_some(row, &centres.values, candidates, &mut squared);
                        fill(list, Some(c as u32), candidates, &squared);
                    }
                });
                let listed = (k * inverted.size) as u64;
                (lists, inverted.evaluations + listed)
            }
        };
        let mut neighbours = Self {
            size,
            lists,
            moved: vec![Moved::default(); k],
            reach: Vec::new(),
        };
        neighbours.reach = parallel::map(k, |c| {
            reach(centres, centres.row(c), neighbours.list(c as u32))
        });
        (neighbours, evaluations)
    }

    /// Checks those of a file, for `k` components. The moves of the centres are computed anew after the next M-step, so they
    /// are not stored.
    pub(crate) fn checked(self, k: usize) -> Result<Self, FileFault> {
        let sound = are_lists(&self.lists, self.size, k, |c| (c as usize) < k);
        let requirement = "must be lists of components, each with its own first";
        rule(sound, "neighbours", requirement)?;
        let reaches = self.reach.len() == k && !self.reach.iter().any(|reach| reach.is_nan());
        rule(reaches, "reaches", "must be a number for each list")?;
        let moved = vec![Moved::default(); k];
        Ok(Self { moved, ..self })
    }

    pub(crate) fn list(&self, c: u32) -> &[u32] {
        &self.lists[c as usize * self.size..][..self.size]
    }

    /// Updates the bounds after the centres moved from `before` to `now`. Returns the number of distance evaluations.
    pub(crate) fn follow(&mut self, before: &Centres<F>, now: &Centres<F>) -> u64 {
        let k = now.len();
        // Distances are rounded: bounds are moved by more than the rounding.
        let slack = slack(now.dim(), F::EPSILON);
        let squared = |c| distance::exact(before.row(c), now.row(c));
        let moves: Vec<f64> = parallel::map(k, |c| squared(c).sqrt() * slack);
        let longest_move = moves.iter().copied().fold(0.0, f64::max);
        for (reach, own_move) in self.reach.iter_mut().zip(&moves) {
            *reach -= own_move + longest_move;
        }
        let mut moved = std::mem::take(&mut self.moved);
        let this = &*self;
        parallel::map_chunks(&mut moved, CENTRES, |_, range, moved| {
            let mut squared = Vec::new();
            for (c, moved) in range.zip(moved) {
                let others = &this.list(c as u32)[1..];
                distance::to_some(now.row(c), &now.values, others, &mut squared);
                let nearest = squared.iter().fold(f64::INFINITY, |d, s| d.min(s.to_f64()));
                let farthest = others
                    .iter()
                    .fold(0.0, |m: f64, &o| m.max(moves[o as usize]));
                *moved = Moved {
                    own: F::from_f64(moves[c]),
                    others: F::from_f64(farthest),
                    half_gap: F::from_f64(nearest.sqrt() / (2.0 * slack)),
                    half_reach: F::from_f64(this.reach[c].max(0.0) / 2.0),
                };
            }
        });
        self.moved = moved;
        (k * self.size) as u64
    }
}

/// Whether these are lists of `size` known members for each of `k` components, itself first.
pub(crate) fn are_lists(lists: &[u32], size: usize, k: usize, known: impl Fn(u32) -> bool) -> bool {
    let whole = size > 0 && Some(lists.len()) == k.checked_mul(size);
    let mut firsts = lists.iter().step_by(size.max(1)).zip(0..);
    whole && lists.iter().all(|c| known(*c)) && firsts.all(|(first, c)| *first == c)
}

/// The centres near each point of a coarse quantizer (E40): a row is compared only with the list of its nearest point.
pub(super) struct InvertedLists<F> {
    pub(super) quantizer: CoarseQuantizer<F>,
    size: usize,
    /// (points, size): nearest first.
    lists: Vec<u32>,
    pub(super) evaluations: u64,
}

impl<F: Float> InvertedLists<F> {
    /// Lists of at least `least` centres for about $\sqrt k$ points; `None` if a comparison with all centres would take about
    /// as long.
    pub(super) fn of(centres: &Centres<F>, least: usize) -> Option<Self> {
        let k = centres.len();
        let number = (k as f64).sqrt() as usize;
        let size = least.max(LIMITS.overlap * k / number);
        let rate = product_rate(centres.dim());
        if 2.0 * rate * (number + size) as f64 > k as f64 {
            return None;
        }
        let quantizer = CoarseQuantizer::of(centres);
        Some(Self {
            size,
            lists: lists(&quantizer.points, centres, size, |_| None),
            evaluations: quantizer.evaluations + (k * quantizer.points.len()) as u64,
            quantizer,
        })
    }

    pub(super) fn list(&self, point: usize) -> &[u32] {
        &self.lists[point * self.size..][..self.size]
    }

    /// The centres near the point of centre `c`.
    fn around(&self, c: usize) -> &[u32] {
        self.list(self.quantizer.nearest[c] as usize)
    }
}

/// Centres whose lists are one piece of work.
const CENTRES: usize = 32;

/// Each centre and the `size - 1` nearest others: (k, size).
pub(crate) fn nearest_lists<F: Float>(centres: &Centres<F>, size: usize) -> Vec<u32> {
    lists(centres, centres, size, |c| Some(c as u32))
}

/// The `size` centres of `to` nearest to each of `from`, nearest first: (from, size). If `first` gives a centre, it is
/// put first.
fn lists<F: Float>(
    from: &Centres<F>,
    to: &Centres<F>,
    size: usize,
    first: impl Fn(usize) -> Option<u32> + Sync,
) -> Vec<u32> {
    let stride = from.row(0).len();
    let mut lists = vec![0; from.len() * size];
    parallel::map_chunks(&mut lists, size * CENTRES, |_, range, lists| {
        let places = range.start / size..range.end / size;
        let rows = &from.values[places.start * stride..places.end * stride];
        let rows = Rows::of_padded(rows, from.dim());
        let mut ranking = Ranking::default();
        let mut approximate = Vec::new();
        rows.distances(to, &mut approximate);
        let approximate = approximate.chunks_exact(to.len());
        let each = lists.chunks_exact_mut(size).zip(approximate);
        for (i, (list, approximate)) in each.enumerate() {
            Cost::Squared(to).ranked(&rows, i, approximate, size, &mut ranking);
            let Ranking { ids, costs, .. } = &ranking;
            fill(list, first(places.start + i), ids, costs);
        }
    });
    lists
}

/// Fills a list with the nearest of some centres. `first` comes before them, if there is one, also before copies of it.
fn fill<F: Float>(list: &mut [u32], first: Option<u32>, ids: &[u32], squared: &[F]) {
    // Numbers that are not negative have the order of their bits; for a list, the first half of the bits is enough.
    let key = |squared: &F| (1 + (squared.to_f64().to_bits() >> 32)) << 32;
    let others = ids
        .iter()
        .zip(squared)
        .filter(|(c, _)| Some(**c) != first)
        .map(|(c, squared)| key(squared) | u64::from(*c));
    let mut order: Vec<u64> = others.chain(first.map(u64::from)).collect();
    if order.len() > list.len() {
        order.select_nth_unstable(list.len() - 1);
        order.truncate(list.len());
    }
    order.sort_unstable();
    for (place, key) in list.iter_mut().zip(order) {
        *place = key as u32;
    }
}

/// At most the distance from a padded row to any centre that is not on its list of the nearest of them.
pub(super) fn reach<F: Float>(centres: &Centres<F>, row: &[F], list: &[u32]) -> f64 {
    let [.., last] = list else { return 0.0 };
    if list.len() == centres.len() {
        return f64::INFINITY;
    }
    let mut farthest = Vec::new();
    distance::to_some(row, &centres.values, &[*last], &mut farthest);
    // Lists are sorted by half of the bits of squared distances.
    farthest[0].to_f64().sqrt() * (1.0 - 2f64.powi(-20)) / slack(centres.dim(), F::EPSILON)
}

/// A factor at least as large as the error of a computed distance.
pub(super) fn slack(dim: usize, epsilon: f64) -> f64 {
    1.0 + 4.0 * (dim + 8) as f64 * epsilon
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use ndarray::Array2;

    /// Two groups of centres so far from the origin that expanded distances within them are rounding, one with a copy.
    #[test]
    fn lists_hold_the_nearest_also_far_from_the_origin() {
        let mut rng = Rng::from_seed(4);
        let mut coordinates = Array2::from_shape_fn((300, 3), |(c, _)| {
            [0.5, -0.5][c % 2] + 1e-4 * rng.normal() as f32
        });
        let row = coordinates.row(8).to_owned();
        coordinates.row_mut(2).assign(&row);
        let centres = Centres::of_coordinates(coordinates.view());
        let (near, _) = NeighbourLists::new(&centres, 20);
        for c in 0..300 {
            let squared = |o: usize| distance::exact(centres.row(c), centres.row(o));
            let list = near.list(c as u32);
            assert_eq!(list[0], c as u32);
            let mut naive: Vec<f64> = (0..300).filter(|&o| o != c).map(squared).collect();
            naive.sort_by(f64::total_cmp);
            for (&other, naive) in list[1..].iter().zip(&naive) {
                let got = squared(other as usize);
                assert!((got - naive).abs() <= 1e-5 * naive, "{c}: {got} {naive}");
            }
        }
    }
}
