//! The nearest of many centres, cell by cell: those that cannot have it are left out (E45).

use super::quantizer::CoarseQuantizer;
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::{parallel, sort};
use crate::data::Data;
use crate::kernels::distance;
use crate::rows::{Centres, Frame, Rows};

/// Centres in the cells of a coarse quantizer.
pub(crate) struct Cells<F> {
    /// One for every cell; no cell is empty.
    points: Centres<F>,
    cells: Vec<Cell<F>>,
    /// $1 / (2 \lVert p_a - p_b \rVert)$ for every two points (cells, cells); 0 where they are equal.
    between: Vec<f64>,
    /// Distance evaluations to make them.
    pub(crate) evaluations: u64,
}

struct Cell<F> {
    /// Their numbers, in ascending order.
    ids: Vec<u32>,
    centres: Centres<F>,
    /// Bound on how much farther, in squared distance, one of them may be from its point than from another point, because of
    /// rounding.
    slack: f64,
}

/// Cells that may have a nearer centre than the one found, by the lower bounds of their distances, and how many of them were
/// visited.
struct Queue {
    cells: Vec<(f64, u32)>,
    visited: usize,
    /// The lowest bound of all other cells.
    left_out: f64,
}

impl Queue {
    fn of_none() -> Self {
        Self {
            cells: Vec::new(),
            visited: 0,
            left_out: f64::INFINITY,
        }
    }
}

/// Rows on which a search by cells is tried at a place of the data.
pub(crate) const TRIAL_ROWS: usize = 32;

/// Cells that a row is compared with in the second round; twice as many in every round after it.
const SECOND: usize = 2;

/// Bound on the loss of a sum of squares by underflow.
fn least_square<F: Float>() -> f64 {
    2f64.powi(5 - F::MAX_EXPONENT)
}

impl<F: Float> Cells<F> {
    pub(crate) fn of(centres: &Centres<F>) -> Self {
        let quantizer = CoarseQuantizer::of(centres);
        let (starts, members) = quantizer.cells();
        let dim = centres.dim();
        let mut points = Centres::with_capacity(starts.len(), dim);
        let mut cells = Vec::new();
        for (point, ends) in starts.windows(2).enumerate() {
            let ids = members[ends[0]..ends[1]].to_vec();
            if ids.is_empty() {
                continue;
            }
            points.push(quantizer.points.row(point));
            let mut cell_centres = Centres::with_capacity(ids.len(), dim);
            let mut farthest = 0.0f64;
            for &c in &ids {
                cell_centres.push(centres.row(c as usize));
                farthest = farthest.max(quantizer.squared[c as usize].to_f64());
            }
            let rounding = (dim + 8) as f64 * F::EPSILON;
            cells.push(Cell {
                ids,
                centres: cell_centres,
                slack: 3.0 * rounding * farthest + least_square::<F>(),
            });
        }
        let row = |a: usize| -> Vec<f64> {
            let half_inverse_distance = |b: usize| {
                let squared = distance::exact(points.row(a), points.row(b));
                // Less than it is, if anything.
                let distance = squared.sqrt() * (1.0 + 1e-9);
                if distance > 0.0 { 0.5 / distance } else { 0.0 }
            };
            (0..points.len()).map(half_inverse_distance).collect()
        };
        let between = parallel::map(points.len(), row).concat();
        let evaluations = quantizer.evaluations + (points.len() * points.len()) as u64;
        Self {
            points,
            cells,
            between,
            evaluations,
        }
    }

    /// Whether a search by cells takes at most 1 / `MIN_SAVING` of all distance evaluations, on [`TRIAL_ROWS`] rows at each of `places`
    /// places of the data, and the evaluations to know it.
    pub(crate) fn pay(
        &self,
        data: &dyn Data<F>,
        frame: &Frame<F>,
        places: usize,
    ) -> Result<(bool, u64)> {
        const MIN_SAVING: u64 = 8;
        let mut rows = Rows::default();
        let mut evaluations = 0;
        for place in 0..places {
            let first = place * (data.len() / places);
            data.load(first..first + TRIAL_ROWS, frame, &mut rows)?;
            evaluations += self.nearest(&rows).evaluations;
        }
        let centres: usize = self.cells.iter().map(|cell| cell.ids.len()).sum();
        let exhaustive = (places * TRIAL_ROWS * centres) as u64;
        Ok((evaluations * MIN_SAVING <= exhaustive, evaluations))
    }

    /// The nearest centre of every dense row: that of [`Rows::nearest`], bit for bit.
    pub(crate) fn nearest(&self, rows: &Rows<F>) -> Nearest<F> {
        let number = self.cells.len();
        let mut to_points = Vec::new();
        rows.distances(&self.points, &mut to_points);
        let mut nearest = Nearest {
            ids: vec![0; rows.len()],
            squared: vec![F::INFINITY; rows.len()],
            others: vec![F::INFINITY; rows.len()],
            evaluations: (rows.len() * number) as u64,
        };
        let mut visitors = vec![Vec::new(); number];
        let first = |to_points: &[F]| {
            let lower = |a: usize, b: usize| if to_points[b] < to_points[a] { b } else { a };
            (1..number).fold(0, lower)
        };
        let nearest_points: Vec<usize> = to_points.chunks_exact(number).map(first).collect();
        for (i, point) in nearest_points.iter().enumerate() {
            visitors[*point].push(i as u32);
        }
        self.visit(rows, &mut visitors, &mut nearest);
        let rounding = 1.0 + 4.0 * (self.points.dim() + 8) as f64 * F::EPSILON;
        // Cells farther than this have no centre that matters, where there is one at this squared distance.
        let limit = |squared: F| (rounding * squared.to_f64() + least_square::<F>()).sqrt();
        let mut queues: Vec<Queue> = Vec::with_capacity(rows.len());
        for (i, to_points) in to_points.chunks_exact(number).enumerate() {
            let point = nearest_points[i];
            let most = limit(nearest.squared[i]);
            let margin = rows.margin(i, &self.points, F::INFINITY).to_f64();
            let between = &self.between[point * number..][..number];
            let mut queue = Queue::of_none();
            for (b, (cell, between)) in self.cells.iter().zip(between).enumerate() {
                // The distance to the hyperplane between the two points: centres of this cell are beyond it.
                let behind = to_points[b].to_f64() - to_points[point].to_f64();
                let bound = (behind - 2.0 * margin - cell.slack) * between;
                // A bound that is not a number rules nothing out.
                if b != point && (bound <= most || bound.is_nan()) {
                    queue.cells.push((bound, b as u32));
                } else if b != point {
                    queue.left_out = queue.left_out.min(bound);
                }
            }
            sort::by_value(&mut queue.cells);
            queues.push(queue);
        }
        let mut each = SECOND;
        loop {
            let mut open = false;
            for (i, queue) in queues.iter_mut().enumerate() {
                let most = limit(nearest.squared[i]);
                let next = queue.cells[queue.visited..].iter().take(each);
                for (_, cell) in next.take_while(|(bound, _)| *bound <= most || bound.is_nan()) {
                    visitors[*cell as usize].push(i as u32);
                    queue.visited += 1;
                    open = true;
                }
            }
            if !open {
                for (others, queue) in nearest.others.iter_mut().zip(&queues) {
                    let next = queue
                        .cells
                        .get(queue.visited)
                        .map_or(f64::INFINITY, |c| c.0);
                    let beyond = F::from_f64(next.min(queue.left_out).max(0.0).powi(2));
                    *others = if beyond < *others { beyond } else { *others };
                }
                return nearest;
            }
            self.visit(rows, &mut visitors, &mut nearest);
            each *= 2;
        }
    }

    /// Compares rows with the centres of the cells that they visit; `visitors` become empty.
    fn visit(&self, rows: &Rows<F>, visitors: &mut [Vec<u32>], nearest: &mut Nearest<F>) {
        for (cell, visitors) in self.cells.iter().zip(visitors) {
            if visitors.is_empty() {
                continue;
            }
            let values: Vec<F> = visitors
                .iter()
                .flat_map(|&i| rows.row(i as usize))
                .copied()
                .collect();
            let some = Rows::of_padded(&values, self.points.dim());
            let mut here = Nearest::default();
            here.of_all(&some, &cell.centres);
            nearest.evaluations += here.evaluations;
            let here = here.ids.iter().zip(&here.squared).zip(&here.others);
            for (i, ((&place, &distance), &others)) in visitors.drain(..).zip(here) {
                let i = i as usize;
                let id = cell.ids[place as usize];
                let mut other = distance;
                if distance < nearest.squared[i]
                    || (distance == nearest.squared[i] && id < nearest.ids[i])
                {
                    other = nearest.squared[i];
                    (nearest.ids[i], nearest.squared[i]) = (id, distance);
                }
                nearest.others[i] = [other, others, nearest.others[i]]
                    .into_iter()
                    .fold(F::INFINITY, |a, b| if b < a { b } else { a });
            }
        }
    }
}

/// The nearest centres of rows, and the squared distances to them.
#[derive(Default)]
pub(crate) struct Nearest<F> {
    pub(crate) ids: Vec<u32>,
    pub(crate) squared: Vec<F>,
    /// At most the squared distances to all others.
    pub(crate) others: Vec<F>,
    pub(crate) evaluations: u64,
}

impl<F: Float> Nearest<F> {
    /// Compares dense rows with all centres. `false`, and nothing is found, for others.
    pub(crate) fn of_all(&mut self, rows: &Rows<F>, centres: &Centres<F>) -> bool {
        let n = rows.len();
        self.ids.resize(n, 0);
        self.squared.resize(n, F::zero());
        self.others.resize(n, F::zero());
        self.evaluations += (n * centres.len()) as u64;
        rows.nearest_and_others(centres, &mut self.ids, &mut self.squared, &mut self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense};
    use crate::rows::Frame;
    use ndarray::Array2;

    /// The kinds of centres below, how many of how many coordinates.
    const CASES: [(usize, usize, usize); 9] = [
        (0, 300, 3),
        (0, 200, 20),
        (1, 300, 9),
        (2, 150, 2),
        (3, 50, 4),
        (4, 130, 6),
        (5, 120, 5),
        (1, 2, 3),
        (1, 1, 2),
    ];

    /// Labels by cells are those of a search over all centres; returns the part of its evaluations that they take. Centres are
    /// in groups, in one cloud, with copies, all equal, with one far out, or far from 0.
    fn labels_are_exact<F: Float>(kind: usize, k: usize, d: usize) -> f64 {
        let mut rng = Rng::from_seed(5);
        let groups = Array2::from_shape_fn((9, d), |_| 8.0 * rng.normal());
        let mut mu = Array2::from_shape_fn((k, d), |(c, j)| match kind {
            0 => groups[[c % 9, j]] + rng.normal(),
            5 => 1e4 + rng.normal(),
            _ => rng.normal(),
        });
        for c in (0..k).filter(|c| kind == 2 && c % 3 > 0 || kind == 3) {
            let row = mu.row(if kind == 3 { 0 } else { c / 3 * 3 }).to_owned();
            mu.row_mut(c).assign(&row);
        }
        if kind == 4 {
            mu.row_mut(k / 2).fill(1e6);
        }
        let x = Array2::from_shape_fn((400, d), |(i, j)| {
            let noise = if i % 5 == 0 { 3.0 } else { 0.2 };
            F::from_f64(mu[[i % k, j]] + noise * rng.normal())
        });
        let data = Dense::new(x.view()).unwrap();
        let frame = Frame::of(data.summary());
        let centres = Centres::enter(mu.mapv(F::from_f64).view(), &frame);
        let mut rows = Rows::default();
        data.load(0..400, &frame, &mut rows).unwrap();
        let mut exact = vec![0; 400];
        let mut least = vec![F::zero(); 400];
        assert!(rows.nearest(&centres, &mut exact, &mut least));
        let by_cells = Cells::of(&centres).nearest(&rows);
        assert_eq!((&by_cells.ids, &by_cells.squared), (&exact, &least));
        for (i, &id) in exact.iter().enumerate() {
            let others = (0..k).filter(|c| *c != id as usize);
            let squared = others.map(|c| distance::exact(rows.row(i), centres.row(c)));
            let next = squared.fold(f64::INFINITY, f64::min);
            assert!(by_cells.others[i].to_f64() <= next * (1.0 + 64.0 * F::EPSILON));
        }
        by_cells.evaluations as f64 / (400 * k) as f64
    }

    /// Labels by cells are exact, and most cells are ruled out if centres are in groups.
    #[test]
    fn labels_by_cells_are_exact() {
        for (kind, k, d) in CASES {
            labels_are_exact::<f32>(kind, k, d);
            let part = labels_are_exact::<f64>(kind, k, d);
            assert!(part < 0.5 || (kind, d) != (0, 3), "{part}");
        }
    }
}
