//! Which centres are near each other, and how far they moved.

use super::groups::Groups;
use crate::data::Centres;
use crate::float::Float;
use crate::kernels::distance;
use crate::parallel;

/// The centres that the rows of a component look at: its own, and the nearest others.
#[derive(Debug)]
pub(super) struct Nearby<F> {
    size: usize,
    /// (k, size): the component itself first.
    lists: Vec<u32>,
    moved: Vec<Moved<F>>,
}

/// What the last M-step means for the bounds of a component's rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved<F> {
    /// How far its own centre moved.
    pub(super) own: F,
    /// How far any other on its list moved.
    pub(super) others: F,
    /// Half the distance from its centre to the nearest on its list: no row nearer than that belongs elsewhere.
    pub(super) half_gap: F,
}

/// Centres whose lists are one piece of work.
const CENTRES: usize = 32;

/// Candidates for a list, per place in it, where not all centres are.
const CANDIDATES: usize = 16;

/// The `size` centres of `to` nearest to each of `from`, nearest first: (from, size). They are ranked by expanded distances;
/// `adjust` may change those of each of `from`.
pub(super) fn lists<F: Float>(
    from: &Centres<F>,
    to: &Centres<F>,
    size: usize,
    adjust: impl Fn(usize, &mut [F]) + Sync,
) -> Vec<u32> {
    let stride = from.row(0).len();
    let mut lists = vec![0; from.len() * size];
    parallel::map_chunks(&mut lists, size * CENTRES, |_, range, lists| {
        let places = range.start / size..range.end / size;
        let rows = &from.values()[places.start * stride..places.end * stride];
        let rows = (rows, &from.norms()[places.clone()]);
        let mut squared = Vec::new();
        distance::to_all(rows, (to.values(), to.norms()), to.dim(), &mut squared);
        let squared = squared.chunks_exact_mut(to.len());
        for ((i, list), squared) in places.zip(lists.chunks_exact_mut(size)).zip(squared) {
            adjust(i, squared);
            fill(list, squared.iter().copied().zip(0..));
        }
    });
    lists
}

/// Fills a list with the nearest of some centres; a negative distance is before all others.
fn fill<F: Float>(list: &mut [u32], centres: impl Iterator<Item = (F, u32)>) {
    // Numbers that are not negative are in the order of their bits.
    let key = |(squared, c): (F, u32)| {
        let squared = squared.to_f64() as f32;
        let rank = if squared < 0.0 {
            0
        } else {
            1 + squared.to_bits()
        };
        u64::from(rank) << 32 | u64::from(c)
    };
    let mut order: Vec<u64> = centres.map(key).collect();
    if order.len() > list.len() {
        order.select_nth_unstable(list.len() - 1);
        order.truncate(list.len());
    }
    order.sort_unstable();
    for (place, key) in list.iter_mut().zip(order) {
        *place = key as u32;
    }
}

impl<F: Float> Nearby<F> {
    /// Lists of `size` centres, itself counted, by their distances now. Returns the distance evaluations, too.
    ///
    /// Of many centres, those near a centre's pivot are looked at.
    pub(super) fn new(centres: &Centres<F>, size: usize) -> (Self, u64) {
        let k = centres.len();
        let size = size.min(k);
        // A copy of a centre must not come before it.
        let first = -F::from_f64(1.0);
        let groups = Groups::of(centres, CANDIDATES * size);
        let lists = match &groups {
            None => lists(centres, centres, size, |c, squared| squared[c] = first),
            Some(groups) => {
                let mut lists = vec![0; k * size];
                parallel::map_chunks(&mut lists, size * CENTRES, |_, range, lists| {
                    let mut squared = Vec::new();
                    for (c, list) in (range.start / size..).zip(lists.chunks_exact_mut(size)) {
                        let candidates = groups.around(c);
                        centres.distances_of(centres.row(c), candidates, &mut squared);
                        let others = squared.iter().copied().zip(candidates.iter().copied());
                        let others = others.filter(|(_, other)| *other as usize != c);
                        fill(list, others.chain([(first, c as u32)]));
                    }
                });
                lists
            }
        };
        let still = Moved {
            own: F::zero(),
            others: F::zero(),
            half_gap: F::zero(),
        };
        let looks = match &groups {
            Some(groups) => groups.evaluations + (k * groups.around(0).len()) as u64,
            None => (k * k) as u64,
        };
        let nearby = Self {
            size,
            lists,
            moved: vec![still; k],
        };
        (nearby, looks)
    }

    /// The centres near `c`, itself first.
    pub(super) fn list(&self, c: u32) -> &[u32] {
        &self.lists[c as usize * self.size..][..self.size]
    }

    /// What the last move means for component `c`.
    pub(super) fn moved(&self, c: u32) -> Moved<F> {
        self.moved[c as usize]
    }

    /// Notes that the centres moved from `before` to `now`. Returns the distance evaluations.
    pub(super) fn follow(&mut self, before: &Centres<F>, now: &Centres<F>) -> u64 {
        let k = now.len();
        // Distances are rounded: bounds give way by more than that.
        let slack = 1.0 + 4.0 * (now.dim() + 8) as f64 * F::EPSILON;
        let distance = |a: &[F], b: &[F]| -> f64 {
            let squared: f64 = a
                .iter()
                .zip(b)
                .map(|(a, b)| (a.to_f64() - b.to_f64()).powi(2))
                .sum();
            squared.sqrt()
        };
        let own: Vec<f64> = parallel::map(k, |c| distance(before.row(c), now.row(c)) * slack);
        let mut moved = std::mem::take(&mut self.moved);
        let this = &*self;
        parallel::map_chunks(&mut moved, CENTRES, |_, range, moved| {
            let mut squared = Vec::new();
            for (c, moved) in range.zip(moved) {
                let others = &this.list(c as u32)[1..];
                now.distances_of(now.row(c), others, &mut squared);
                let nearest = squared.iter().fold(f64::INFINITY, |d, s| d.min(s.to_f64()));
                let farthest = others.iter().fold(0.0, |m: f64, &o| m.max(own[o as usize]));
                *moved = Moved {
                    own: F::from_f64(own[c]),
                    others: F::from_f64(farthest),
                    half_gap: F::from_f64(nearest.sqrt() / (2.0 * slack)),
                };
            }
        });
        self.moved = moved;
        (k * self.size) as u64
    }
}
