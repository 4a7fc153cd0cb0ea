//! The coarse quantizer: a few points, and for each the inverted list of the centres near it.

use super::assignment::Assignment;
use super::near;
use super::sums::Sums;
use crate::base::float::Float;
use crate::data::{Centres, Dense, Frame};

/// A coarse quantizer and its inverted lists (E40): a row is compared only with the list of its nearest point.
#[derive(Debug)]
pub(crate) struct CoarseQuantizer<F> {
    pub(crate) points: Centres<F>,
    /// Centres on each list.
    size: usize,
    /// (points, size): nearest first.
    lists: Vec<u32>,
    /// The cell of each centre: the number of the point nearest to it (k).
    cell_of: Vec<u32>,
    pub(crate) evaluations: u64,
}

/// How many lists a centre is on, on average: centres between two points are on the lists of both.
const OVERLAP: usize = 4;

/// Steps of k-means on the centres that place the points.
const STEPS: usize = 2;

/// A point whose cell has more centres than so many times the regular size is replaced by several of these centres, in at
/// most so many rounds.
const WIDEST: usize = 2;
const ROUNDS: usize = 4;

impl<F: Float> CoarseQuantizer<F> {
    /// About $\sqrt k$ points among $k$ centres, with at least `least` centres on each list; `None` if a comparison with all
    /// centres would take about as long.
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
        let mut points = centres.evenly(number);
        for _ in 0..STEPS {
            let assignment = Assignment::labelled(&rows, &frame, &points);
            Sums::of(&rows, &frame, &points, &assignment).move_centres(&mut points);
        }
        let mut assignment = Assignment::labelled(&rows, &frame, &points);
        let mut evaluations = ((STEPS + 1) * k * number) as u64;
        // If some centres are far out, too few points are left among most centres: a list must be longer than its cell.
        for _ in 0..ROUNDS {
            let cell = size / OVERLAP;
            if (0..points.len()).all(|g| assignment.members(g).len() <= WIDEST * cell) {
                break;
            }
            let mut more = Centres::with_capacity(2 * number, dim);
            for g in 0..points.len() {
                let members = assignment.members(g);
                if members.len() <= WIDEST * cell {
                    more.push(points.row(g));
                    continue;
                }
                let parts = members.len().div_ceil(cell);
                for part in 0..parts {
                    let member = members[(2 * part + 1) * members.len() / (2 * parts)];
                    more.push(centres.row(member.row as usize));
                }
            }
            points = more;
            assignment = Assignment::labelled(&rows, &frame, &points);
            evaluations += (k * points.len()) as u64;
        }
        let lists = near::lists(&points, centres, size, |_| None);
        evaluations += (k * points.len()) as u64;
        Some(Self {
            points,
            size,
            lists,
            cell_of: assignment.labels(),
            evaluations,
        })
    }

    /// The centres near point `point`.
    pub(crate) fn list(&self, point: usize) -> &[u32] {
        &self.lists[point * self.size..][..self.size]
    }

    /// The centres near the point of centre `c`.
    pub(crate) fn around(&self, c: usize) -> &[u32] {
        self.list(self.cell_of[c] as usize)
    }
}
