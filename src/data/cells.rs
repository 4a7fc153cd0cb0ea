//! Many centres in cells, for searches that leave out most of them (E45).

use super::{Centres, Rows};
use crate::base::float::Float;
use crate::base::{parallel, sort};
use crate::kernels::stride;

/// Steps of k-means on the centres that place the points.
const STEPS: usize = 2;

/// Centres whose nearest points are searched together.
const BLOCK: usize = 1024;

/// The cells of a coarse quantizer of some centres: each centre is in the cell of the point nearest to it.
#[derive(Clone, Debug)]
pub(crate) struct Cells<F> {
    /// One for every cell; no cell is empty.
    pub(crate) points: Centres<F>,
    pub(crate) cells: Vec<Cell<F>>,
    /// $1 / (2 \lVert p_a - p_b \rVert)$ for every two points (cells, cells); 0 where they are equal.
    between: Vec<f64>,
}

/// Some centres that are near each other.
#[derive(Clone, Debug)]
pub(crate) struct Cell<F> {
    /// Their numbers, in ascending order.
    pub(crate) ids: Vec<u32>,
    pub(crate) centres: Centres<F>,
    /// By how much one of them may be farther from its point than from another, in squared distance: for rounding.
    pub(crate) slack: f64,
}

impl<F: Float> Cells<F> {
    /// About $\sqrt k$ cells of $k$ centres.
    pub(crate) fn of(centres: &Centres<F>) -> Self {
        let (k, stride) = (centres.len(), stride(centres.dim()));
        let number = ((k as f64).sqrt() as usize).clamp(1, k);
        let mut points = centres.evenly(number);
        for _ in 0..STEPS {
            let (nearest, _) = nearest(centres, &points);
            let (mut sums, mut counts) = (vec![0.0; number * stride], vec![0.0; number]);
            for (&point, row) in nearest.iter().zip(centres.values().chunks_exact(stride)) {
                let place = point as usize;
                counts[place] += 1.0;
                for (sum, x) in sums[place * stride..].iter_mut().zip(row) {
                    *sum += x.to_f64();
                }
            }
            points.update(|point, row| {
                if counts[point] > 0.0 {
                    for (x, sum) in row.iter_mut().zip(&sums[point * stride..]) {
                        *x = F::from_f64(sum / counts[point]);
                    }
                }
            });
        }
        let (nearest, squared) = nearest(centres, &points);
        Self::with(centres, &points, &nearest, &squared)
    }

    fn with(centres: &Centres<F>, all: &Centres<F>, nearest: &[u32], squared: &[F]) -> Self {
        let dim = centres.dim();
        let of_points = || nearest.iter().copied().zip(0..);
        let (starts, members) = sort::sorted(all.len(), 0, of_points);
        let (mut points, mut cells) = (Centres::with_capacity(all.len(), dim), Vec::new());
        for (point, ends) in starts.windows(2).enumerate() {
            let ids = members[ends[0]..ends[1]].to_vec();
            if ids.is_empty() {
                continue;
            }
            points.push(all.row(point));
            let mut own = Centres::with_capacity(ids.len(), dim);
            let mut farthest = 0.0f64;
            for &c in &ids {
                own.push(centres.row(c as usize));
                farthest = farthest.max(squared[c as usize].to_f64());
            }
            let rounding = (dim + 8) as f64 * F::EPSILON;
            cells.push(Cell {
                ids,
                centres: own,
                slack: 3.0 * rounding * farthest + least_square::<F>(),
            });
        }
        let number = cells.len();
        let row = |a: usize| -> Vec<f64> {
            let of = |b: usize| {
                let pairs = points.row(a).iter().zip(points.row(b));
                let squares = pairs.map(|(x, y)| (x.to_f64() - y.to_f64()).powi(2));
                // Less than it is, if anything.
                let distance = squares.sum::<f64>().sqrt() * (1.0 + 1e-9);
                match distance > 0.0 {
                    true => 0.5 / distance,
                    false => 0.0,
                }
            };
            (0..number).map(of).collect()
        };
        let between = parallel::map(number, row).concat();
        Self {
            points,
            cells,
            between,
        }
    }

    /// $1 / (2 \lVert p_a - p_b \rVert)$ for all points $b$.
    pub(crate) fn between(&self, a: usize) -> &[f64] {
        let number = self.cells.len();
        &self.between[a * number..][..number]
    }
}

/// What may be lost of a sum of squares because they are too small for the type.
pub(super) fn least_square<F: Float>() -> f64 {
    2f64.powi(5 - F::MAX_EXPONENT)
}

/// The nearest point of every centre, and how far it is.
fn nearest<F: Float>(centres: &Centres<F>, points: &Centres<F>) -> (Vec<u32>, Vec<F>) {
    let stride = stride(centres.dim());
    let found = parallel::map_blocks(centres.len(), BLOCK, |_, range| {
        let values = &centres.values()[range.start * stride..range.end * stride];
        let rows = Rows::of_padded(values, centres.dim());
        let (mut ids, mut squared) = (vec![0; range.len()], vec![F::zero(); range.len()]);
        rows.nearest(points, &mut ids, &mut squared);
        (ids, squared)
    });
    let (ids, squared): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    (ids.concat(), squared.concat())
}
