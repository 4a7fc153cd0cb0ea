//! A coarse quantizer of many centres: a few points, each with the cell of the centres that are nearest to it.

use crate::base::float::Float;
use crate::base::{parallel, sort};
use crate::rows::{Centres, Rows};

/// Points among centres, and which of them is nearest to each centre.
pub(crate) struct CoarseQuantizer<F> {
    pub(crate) points: Centres<F>,
    /// The point nearest to each centre, and its squared distance (k).
    pub(crate) nearest: Vec<u32>,
    pub(crate) squared: Vec<F>,
    pub(crate) evaluations: u64,
}

/// Steps of k-means on the centres that place the points.
const STEPS: usize = 2;

/// A point whose cell has more than this many times the mean number of centres is replaced by several of these centres, in at
/// most `ROUNDS` rounds.
const WIDEST: usize = 2;
const ROUNDS: usize = 4;

/// Centres whose nearest points are searched together.
const BLOCK: usize = 1024;

impl<F: Float> CoarseQuantizer<F> {
    /// About $\sqrt k$ points among $k$ centres.
    pub(crate) fn of(centres: &Centres<F>) -> Self {
        let number = ((centres.len() as f64).sqrt() as usize).max(1);
        let mut quantizer = Self::with(centres, centres.evenly(number), 0);
        let rows = Rows::of_padded(&centres.values, centres.dim());
        for _ in 0..STEPS {
            let mut points = quantizer.points;
            points.move_to_means(&rows, |_| 1.0, &quantizer.nearest);
            quantizer = Self::with(centres, points, quantizer.evaluations);
        }
        // If some centres are far out, too few points are left among most centres: their cells are too wide.
        let regular = centres.len() / number;
        for _ in 0..ROUNDS {
            let (starts, members) = quantizer.cells();
            let cells = starts.windows(2).map(|ends| &members[ends[0]..ends[1]]);
            if cells.clone().all(|cell| cell.len() <= WIDEST * regular) {
                break;
            }
            let mut points = Centres::with_capacity(2 * number, centres.dim());
            for (point, cell) in cells.enumerate() {
                if cell.len() <= WIDEST * regular {
                    points.push(quantizer.points.row(point));
                    continue;
                }
                let parts = cell.len().div_ceil(regular);
                for part in 0..parts {
                    let member = cell[(2 * part + 1) * cell.len() / (2 * parts)];
                    points.push(centres.row(member as usize));
                }
            }
            quantizer = Self::with(centres, points, quantizer.evaluations);
        }
        quantizer
    }

    /// Points with the centres nearest to them; `evaluations` were made before.
    fn with(centres: &Centres<F>, points: Centres<F>, evaluations: u64) -> Self {
        let stride = centres.row(0).len();
        let by_block = parallel::map_blocks(centres.len(), BLOCK, |_, range| {
            let values = &centres.values[range.start * stride..range.end * stride];
            let rows = Rows::of_padded(values, centres.dim());
            let mut ids = vec![0; range.len()];
            let mut squared = vec![F::zero(); range.len()];
            rows.nearest(&points, &mut ids, &mut squared);
            (ids, squared)
        });
        let (nearest, squared) = by_block.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        Self {
            evaluations: evaluations + (centres.len() * points.len()) as u64,
            nearest: nearest.concat(),
            squared: squared.concat(),
            points,
        }
    }

    /// The centres in the order of their points, after where those of each point start (points + 1).
    pub(crate) fn cells(&self) -> (Vec<usize>, Vec<u32>) {
        let of_points = || self.nearest.iter().copied().zip(0..);
        sort::sorted(self.points.len(), 0, of_points)
    }
}
