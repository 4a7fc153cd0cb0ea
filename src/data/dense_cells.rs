//! The nearest of many centres for dense rows, cell by cell: exactly, or to within a factor.

use super::Rows;
use super::cells::{self, Cells};
use crate::base::float::Float;
use crate::kernels::stride;

/// Cells that a row is compared with in the second round; twice as many in every round after it.
const SECOND: usize = 2;

/// A cell that may have a nearer centre: a lower bound of the distance to its centres, and its number.
type Ahead = (f64, u32);

/// Where the search of a row is.
struct Course {
    /// Cells that are not ruled out yet, the nearest bound first; and how many of them were visited.
    ahead: Vec<Ahead>,
    visited: usize,
}

impl<F: Float> Rows<F> {
    /// The nearest centre of every row into `ids`, and its squared distance, computed directly: at most $1 + \epsilon$ times
    /// the least one (E45). With $\epsilon = 0$ they are those of [`Rows::nearest`], bit for bit. Returns the number of
    /// distance evaluations.
    pub(super) fn visit_cells(
        &self,
        cells: &Cells<F>,
        epsilon: f64,
        ids: &mut [u32],
        squared: &mut [F],
    ) -> u64 {
        let number = cells.cells.len();
        let mut to_points = Vec::new();
        self.distances(&cells.points, &mut to_points);
        let mut evaluations = (self.len() * number) as u64;
        ids.fill(u32::MAX);
        squared.fill(F::INFINITY);
        let mut rows_of = vec![Vec::new(); number];
        let mut nearest_point = Vec::with_capacity(self.len());
        for (i, to_points) in to_points.chunks_exact(number).enumerate() {
            let mut nearest = 0;
            for (point, distance) in to_points.iter().enumerate() {
                if *distance < to_points[nearest] {
                    nearest = point;
                }
            }
            nearest_point.push(nearest);
            rows_of[nearest].push(i as u32);
        }
        let mut block = Self::default();
        evaluations += self.visit(cells, &mut rows_of, &mut block, (ids, squared));
        let limit = Limit::new::<F>(self.dim, epsilon);
        let mut courses = Vec::with_capacity(self.len());
        for (i, to_points) in to_points.chunks_exact(number).enumerate() {
            let point = nearest_point[i];
            let margin = self.margin(i, &cells.points, F::INFINITY).to_f64();
            let most = limit.of(squared[i]);
            let (own, between) = (to_points[point].to_f64(), cells.between(point));
            let mut ahead = Vec::new();
            for (b, ((cell, between), to_point)) in
                cells.cells.iter().zip(between).zip(to_points).enumerate()
            {
                // The distance to the hyperplane between the two points: centres of this cell are beyond it.
                let behind = to_point.to_f64() - own - 2.0 * margin - cell.slack;
                let bound = behind * between;
                // What is not a number rules nothing out.
                #[allow(clippy::neg_cmp_op_on_partial_ord)]
                if !(bound > most) && b != point {
                    ahead.push((bound, b as u32));
                }
            }
            ahead.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            courses.push(Course { ahead, visited: 0 });
        }
        let mut each = SECOND;
        loop {
            let mut open = false;
            for (i, course) in courses.iter_mut().enumerate() {
                let most = limit.of(squared[i]);
                let next = course.ahead[course.visited..].iter().take(each);
                #[allow(clippy::neg_cmp_op_on_partial_ord)]
                for &(_, cell) in next.take_while(|(bound, _)| !(*bound > most)) {
                    rows_of[cell as usize].push(i as u32);
                    course.visited += 1;
                    open = true;
                }
            }
            if !open {
                break;
            }
            evaluations += self.visit(cells, &mut rows_of, &mut block, (ids, squared));
            each *= 2;
        }
        for id in ids {
            // No distance was a number.
            *id = if *id == u32::MAX { 0 } else { *id };
        }
        evaluations
    }

    /// Compares rows with the centres of cells; `rows_of` becomes empty. Returns the number of distance evaluations.
    fn visit(
        &self,
        cells: &Cells<F>,
        rows_of: &mut [Vec<u32>],
        block: &mut Self,
        (ids, squared): (&mut [u32], &mut [F]),
    ) -> u64 {
        let (stride, mut evaluations) = (stride(self.dim), 0);
        let (mut found, mut distances) = (Vec::new(), Vec::new());
        for (cell, rows) in cells.cells.iter().zip(rows_of) {
            if rows.is_empty() {
                continue;
            }
            block.dim = self.dim;
            block.values.clear();
            for &i in &*rows {
                block
                    .values
                    .extend_from_slice(&self.values[i as usize * stride..][..stride]);
            }
            block.weights.resize(rows.len(), 1.0);
            found.resize(rows.len(), 0);
            distances.resize(rows.len(), F::zero());
            block.nearest(&cell.centres, &mut found, &mut distances);
            evaluations += (rows.len() * cell.ids.len()) as u64;
            for ((i, &found), &distance) in rows.drain(..).zip(&found).zip(&distances) {
                let (i, id) = (i as usize, cell.ids[found as usize]);
                if distance < squared[i] || (distance == squared[i] && id < ids[i]) {
                    (ids[i], squared[i]) = (id, distance);
                }
            }
        }
        evaluations
    }
}

/// Which lower bounds rule a cell out.
struct Limit {
    rounding: f64,
    factor: f64,
    least: f64,
}

impl Limit {
    fn new<F: Float>(dim: usize, epsilon: f64) -> Self {
        Self {
            rounding: 1.0 + 4.0 * (dim + 8) as f64 * F::EPSILON,
            factor: 1.0 / (1.0 + epsilon),
            least: cells::least_square::<F>(),
        }
    }

    /// Cells farther than this have no centre that matters, where there is one at this squared distance.
    fn of<F: Float>(&self, squared: F) -> f64 {
        (self.rounding * self.factor * squared.to_f64() + self.least).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Centres, Data, Dense, Frame};
    use ndarray::Array2;

    /// Centres in groups, in one cloud, with copies, all equal, with one far out, and far from 0; few and one of them.
    fn cases() -> Vec<(Array2<f64>, Array2<f64>)> {
        let mut rng = Rng::from_seed(5);
        let mut cases = Vec::new();
        for (kind, k, d) in [
            (0, 300, 3),
            (0, 200, 20),
            (1, 300, 9),
            (2, 150, 2),
            (3, 50, 4),
            (4, 130, 6),
            (5, 120, 5),
            (1, 2, 3),
            (1, 1, 2),
        ] {
            let groups = Array2::from_shape_fn((9, d), |_| 8.0 * rng.normal());
            let mut mu = Array2::from_shape_fn((k, d), |(c, j)| match kind {
                0 => groups[[c % 9, j]] + rng.normal(),
                5 => 1e4 + rng.normal(),
                _ => rng.normal(),
            });
            for c in 0..k {
                if kind == 2 && c % 3 > 0 || kind == 3 {
                    let row = mu.row(if kind == 3 { 0 } else { c / 3 * 3 }).to_owned();
                    mu.row_mut(c).assign(&row);
                }
            }
            if kind == 4 {
                mu.row_mut(k / 2).fill(1e6);
            }
            let x = Array2::from_shape_fn((400, d), |(i, j)| {
                mu[[i % k, j]] + if i % 5 == 0 { 3.0 } else { 0.2 } * rng.normal()
            });
            cases.push((x, mu));
        }
        cases
    }

    /// What is found by cells, beside what all centres say.
    fn labels_are_near_enough<F: Float>() {
        for (x, mu) in cases() {
            let (x, mu) = (x.mapv(F::from_f64), mu.mapv(F::from_f64));
            let data = Dense::new(x.view()).unwrap();
            let frame = Frame::of(data.summary());
            let centres = Centres::enter(mu.view(), &frame);
            let mut rows = Rows::default();
            data.load(0..x.nrows(), &frame, &mut rows);
            let n = rows.len();
            let (mut exact, mut least) = (vec![0; n], vec![F::zero(); n]);
            assert!(Rows::nearest(&rows, &centres, &mut exact, &mut least));
            let cells = Cells::of(&centres);
            let members: usize = cells.cells.iter().map(|cell| cell.ids.len()).sum();
            assert_eq!(members, mu.nrows());
            let (mut ids, mut squared) = (vec![0; n], vec![F::zero(); n]);
            let all = rows.visit_cells(&cells, 0.0, &mut ids, &mut squared);
            assert_eq!((&ids, &squared), (&exact, &least));
            for epsilon in [1e-3, 0.3, 2.0, 1e9] {
                let count = rows.visit_cells(&cells, epsilon, &mut ids, &mut squared);
                assert!(count <= all);
                for (found, least) in squared.iter().zip(&least) {
                    let most = least.to_f64() * (1.0 + epsilon) * (1.0 + 100.0 * F::EPSILON);
                    assert!(found.to_f64() <= most, "{epsilon}: {found} {least}");
                }
            }
        }
    }

    #[test]
    fn labels_by_cells_are_near_enough() {
        labels_are_near_enough::<f32>();
        labels_are_near_enough::<f64>();
    }

    /// Where centres are in groups, most cells are ruled out.
    #[test]
    fn cells_are_ruled_out() {
        let (x, mu) = cases().swap_remove(0);
        let data = Dense::new(x.view()).unwrap();
        let frame = Frame::of(data.summary());
        let centres = Centres::enter(mu.view(), &frame);
        let mut rows = Rows::default();
        data.load(0..x.nrows(), &frame, &mut rows);
        let (mut ids, mut squared) = (vec![0; rows.len()], vec![0.0; rows.len()]);
        let found = rows.visit_cells(&Cells::of(&centres), 0.0, &mut ids, &mut squared);
        assert!(found < (rows.len() * mu.nrows() / 2) as u64, "{found}");
    }
}
