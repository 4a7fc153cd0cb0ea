//! The coarse quantizer: a few points (pivots), and for each the inverted list of the centres near it.

use super::assignment::Assignment;
use super::neighbour_lists as nearby;
use super::sums::Sums;
use crate::data::{Centres, Dense, Frame};
use crate::float::Float;

/// A coarse quantizer and its inverted lists (E40): a row is compared with the list of its nearest pivot alone.
#[derive(Debug)]
pub(crate) struct CoarseQuantizer<F> {
    pub(crate) pivots: Centres<F>,
    /// Centres per pivot.
    size: usize,
    /// (pivots, size): nearest first.
    lists: Vec<u32>,
    /// The pivot nearest to each centre (k).
    pivot_of: Vec<u32>,
    pub(crate) evaluations: u64,
}

/// How many times the centres appear in all lists together: centres between two pivots are in the lists of both.
const OVERLAP: usize = 4;

/// Steps of k-means on the centres that place the pivots.
const STEPS: usize = 2;

/// A pivot with more centres of its own than so many times its share is replaced by several of these, in so many rounds at
/// most.
const WIDEST: usize = 2;
const ROUNDS: usize = 4;

impl<F: Float> CoarseQuantizer<F> {
    /// About $\sqrt k$ pivots among $k$ centres, with at least `least` centres each; `None` where looking at all centres
    /// would take about as long.
    pub(crate) fn of(centres: &Centres<F>, least: usize) -> Option<Self> {
        let (k, dim) = (centres.len(), centres.dim());
        let number = (k as f64).sqrt() as usize;
        let size = least.max(OVERLAP * k / number);
        if 2 * (number + size) > k {
            return None;
        }
        let values = (0..k).flat_map(|c| &centres.row(c)[..dim]).copied();
        let rows = Dense::of_values(values.collect(), dim, vec![1.0; k]);
        let frame = Frame::new(&vec![0.0; dim], 1.0);
        let mut pivots = Centres::with_capacity(number, dim);
        for pivot in 0..number {
            pivots.push(centres.row(pivot * k / number));
        }
        for _ in 0..STEPS {
            let assignment = Assignment::labelled(&rows, &frame, &pivots);
            Sums::of(&rows, &frame, &pivots, &assignment).move_centres(&mut pivots);
        }
        let mut assignment = Assignment::labelled(&rows, &frame, &pivots);
        let mut evaluations = ((STEPS + 1) * k * number) as u64;
        // Means of far centres leave too few pivots where most centres are: a list must reach beyond its own cell.
        for _ in 0..ROUNDS {
            let cell = size / OVERLAP;
            if (0..pivots.len()).all(|g| assignment.members(g).len() <= WIDEST * cell) {
                break;
            }
            let mut more = Centres::with_capacity(2 * number, dim);
            for g in 0..pivots.len() {
                let members = assignment.members(g);
                if members.len() <= WIDEST * cell {
                    more.push(pivots.row(g));
                    continue;
                }
                let parts = members.len().div_ceil(cell);
                for part in 0..parts {
                    let member = members[(2 * part + 1) * members.len() / (2 * parts)];
                    more.push(centres.row(member.row as usize));
                }
            }
            pivots = more;
            assignment = Assignment::labelled(&rows, &frame, &pivots);
            evaluations += (k * pivots.len()) as u64;
        }
        let lists = nearby::lists(&pivots, centres, size, |_| None);
        evaluations += (k * pivots.len()) as u64;
        Some(Self {
            pivots,
            size,
            lists,
            pivot_of: assignment.labels(),
            evaluations,
        })
    }

    /// The centres near pivot `pivot`.
    pub(crate) fn list(&self, pivot: usize) -> &[u32] {
        &self.lists[pivot * self.size..][..self.size]
    }

    /// The centres near the pivot of centre `c`.
    pub(crate) fn around(&self, c: usize) -> &[u32] {
        self.list(self.pivot_of[c] as usize)
    }
}
