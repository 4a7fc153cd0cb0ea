//! Which centres are near each other, and how far they moved.

use crate::data::Centres;
use crate::float::Float;
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
const CENTRES: usize = 16;

impl<F: Float> Nearby<F> {
    /// Lists of `size` centres, itself counted, by their distances now.
    pub(super) fn new(centres: &Centres<F>, size: usize) -> Self {
        let k = centres.len();
        let size = size.min(k);
        let all: Vec<u32> = (0..k as u32).collect();
        let mut lists = vec![0; k * size];
        parallel::map_chunks(&mut lists, size * CENTRES, |_, range, lists| {
            let mut squared = Vec::new();
            for (c, list) in (range.start / size..).zip(lists.chunks_exact_mut(size)) {
                centres.distances_from(c, &all, &mut squared);
                squared[c] = -F::from_f64(1.0);
                let mut order: Vec<(F, u32)> = squared.iter().copied().zip(0..).collect();
                let nearer = |a: &(F, u32), b: &(F, u32)| {
                    a.0.to_f64().total_cmp(&b.0.to_f64()).then(a.1.cmp(&b.1))
                };
                if order.len() > size {
                    order.select_nth_unstable_by(size - 1, nearer);
                    order.truncate(size);
                }
                order.sort_unstable_by(nearer);
                for (place, (_, c)) in list.iter_mut().zip(order) {
                    *place = c;
                }
            }
        });
        let still = Moved {
            own: F::zero(),
            others: F::zero(),
            half_gap: F::zero(),
        };
        Self {
            size,
            lists,
            moved: vec![still; k],
        }
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
                now.distances_from(c, others, &mut squared);
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
