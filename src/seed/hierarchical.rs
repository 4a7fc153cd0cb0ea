//! Hierarchical k-means++ on weighted data: D^2 sampling by rejection, where a seed is near the rows of its own cell
//! alone.

use super::{Cumulated, Seeder, Seeds, by_weight};
use crate::data::{Centres, Data, Frame, Rows};
use crate::error::Result;
use crate::float::Float;
use crate::parallel::{self, BLOCK};
use crate::rng::Rng;
use crate::stage::Stage;

/// k-means++ for many clusters: of the order of $n \log k$ distance evaluations where cells are of similar size, instead of
/// $n k$ (E38).
///
/// Rows are cut into cells. Each seed is a row drawn in proportion to $w_n \tilde D_n^2$, where $\tilde D_n^2$ is the
/// squared distance to the nearest seed so far **in the row's cell**. At first all rows are one cell, and a cell with
/// 16 seeds is cut into the Voronoi cells of these: up to 16 seeds it is k-means++ (E17), and later a row looks at
/// the seeds of its cell alone.
///
/// Rows are looked at in rounds, each for up to 16 times as many seeds as before. Within a round a row $n$ is proposed
/// in proportion to its $w_n \tilde D_n^2$ at the start of the round, and accepted with probability
///
/// $$\frac{\tilde D_n^2 \text{ now}}{\tilde D_n^2 \text{ at the start of the round}}$$
///
/// which draws it from the distribution as it is now (rejection sampling; Cohen-Addad, Lattanzi, Norouzi-Fard, Sohler,
/// Svensson, Fast and accurate k-means++ via rejection sampling, NeurIPS 2020, propose by the distances in a tree
/// instead). A round ends early when few proposals are accepted, or when a look at its seeds would take more than 16
/// evaluations per row.
///
/// The first seed is drawn in proportion to the weights, and so are seeds when every row coincides with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HierarchicalKMeansPlusPlus;

impl HierarchicalKMeansPlusPlus {
    /// The only one there is.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Stage for HierarchicalKMeansPlusPlus {
    fn check(&self, _clusters: usize) -> Result<()> {
        Ok(())
    }
}

/// Seeds that make a cell be cut, and evaluations per row that end a round.
const CUT: usize = 16;

/// Seeds at the end of a round for each at its start, at most.
const GROWTH: usize = 16;

/// Proposals of a round for each seed it is to find.
const PROPOSALS: usize = 4;

impl<D: Data> Seeder<D> for HierarchicalKMeansPlusPlus {
    fn seed(
        &self,
        data: &D,
        frame: &Frame<D::Float>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<D::Float>> {
        let mut cells = Cells::new(data, frame, by_weight(data, &[], 1, rng)[0]);
        while cells.seeds.len() < k {
            let wanted = cells.seeds.len().saturating_mul(GROWTH).min(k);
            if !cells.draw(wanted, rng) {
                // Every row coincides with a seed, and always will: any others are as good.
                let mut rows = cells.seeds;
                let others = by_weight(data, &rows, k - rows.len(), rng);
                rows.extend(&others);
                return Ok(Seeds::at_rows(data, frame, &rows, cells.evaluations));
            }
            if cells.seeds.len() < k {
                cells.look();
            }
        }
        Ok(Seeds {
            centres: cells.centres,
            evaluations: cells.evaluations,
        })
    }
}

/// Rows by cell, with their distances to the nearest seed of it.
struct Cells<'a, D: Data> {
    data: &'a D,
    frame: &'a Frame<D::Float>,
    /// Rows that are seeds, and where they are.
    seeds: Vec<usize>,
    centres: Centres<D::Float>,
    /// Per row: its nearest seed and the squared distance.
    nearest: Vec<(D::Float, u32)>,
    /// Per seed: its cell.
    cell_of: Vec<u32>,
    cells: Vec<Cell>,
    evaluations: u64,
}

/// Some rows, and the seeds among them.
#[derive(Default)]
struct Cell {
    rows: usize,
    seeds: Vec<u32>,
    /// As many of the last seeds have not been looked at by the rows.
    fresh: usize,
}

impl Cell {
    fn fresh(&self) -> &[u32] {
        &self.seeds[self.seeds.len() - self.fresh..]
    }
}

impl<'a, D: Data> Cells<'a, D> {
    /// One cell with one seed.
    fn new(data: &'a D, frame: &'a Frame<D::Float>, first: usize) -> Self {
        let mut cells = Self {
            data,
            frame,
            seeds: Vec::new(),
            centres: Centres::with_capacity(1, data.dim()),
            nearest: vec![(D::Float::INFINITY, 0); data.len()],
            cell_of: Vec::new(),
            cells: vec![Cell::default()],
            evaluations: 0,
        };
        let mut row = D::Rows::default();
        data.gather(&[first], frame, &mut row);
        cells.add(first, &row, 0);
        cells.look();
        cells
    }

    /// A seed in a cell.
    fn add(&mut self, seed: usize, row: &D::Rows, cell: u32) {
        self.cells[cell as usize]
            .seeds
            .push(self.seeds.len() as u32);
        self.cells[cell as usize].fresh += 1;
        self.seeds.push(seed);
        self.cell_of.push(cell);
        self.centres.push(&row.to_centre(0));
    }

    /// Draws seeds until there are `wanted`, or the round is better ended. `false` if there is nothing to draw.
    fn draw(&mut self, wanted: usize, rng: &mut Rng) -> bool {
        let squared = |n: usize| self.nearest[n].0.to_f64();
        let old = Cumulated::new((0..self.data.len()).map(|n| self.data.weight(n) * squared(n)));
        if old.total() <= 0.0 {
            return false;
        }
        let (mut row, mut distances) = (D::Rows::default(), Vec::new());
        let mut look = 0;
        for _ in 0..PROPOSALS * (wanted - self.seeds.len()) {
            let n = old.draw(rng);
            let (before, seed) = self.nearest[n];
            let cell = self.cell_of[seed as usize];
            let fresh = self.cells[cell as usize].fresh();
            self.data.gather(&[n], self.frame, &mut row);
            row.distances_to(0, &self.centres, fresh, &mut distances);
            self.evaluations += fresh.len() as u64;
            let now = distances
                .iter()
                .fold(before, |a, &b| if b < a { b } else { a });
            if rng.uniform() * before.to_f64() < now.to_f64() {
                self.add(n, &row, cell);
                look += self.cells[cell as usize].rows;
                if self.seeds.len() == wanted || look > CUT * self.data.len() {
                    break;
                }
            }
        }
        true
    }

    /// Every row looks at the fresh seeds of its cell; then cells of many seeds are cut.
    ///
    /// Rows are read in their own order: those of a cell lie far apart, and its few seeds stay in the cache.
    fn look(&mut self) {
        let mut nearest = std::mem::take(&mut self.nearest);
        let all = &*self;
        let evaluations = parallel::map_chunks(&mut nearest, BLOCK, |_, range, nearest| {
            let (mut rows, mut distances) = (D::Rows::default(), Vec::new());
            all.data.load(range, all.frame, &mut rows);
            let mut evaluations = 0;
            for (i, nearest) in nearest.iter_mut().enumerate() {
                let fresh = all.cells[all.cell_of[nearest.1 as usize] as usize].fresh();
                if fresh.is_empty() {
                    continue;
                }
                rows.distances_to(i, &all.centres, fresh, &mut distances);
                let found = distances.iter().copied().zip(fresh.iter().copied());
                *nearest = found.fold(*nearest, |a, b| if b.0 < a.0 { b } else { a });
                evaluations += fresh.len() as u64;
            }
            evaluations
        });
        self.nearest = nearest;
        self.evaluations += evaluations.iter().sum::<u64>();
        self.cut();
    }

    fn cell(&self, row: usize) -> usize {
        self.cell_of[self.nearest[row].1 as usize] as usize
    }

    /// Cells of many seeds become one cell for each.
    fn cut(&mut self) {
        let mut cells: Vec<Cell> = Vec::with_capacity(self.cells.len());
        for cell in std::mem::take(&mut self.cells) {
            let parts = match cell.seeds.len() {
                CUT.. => cell.seeds.into_iter().map(|seed| vec![seed]).collect(),
                _ => vec![cell.seeds],
            };
            for seeds in parts {
                for &seed in &seeds {
                    self.cell_of[seed as usize] = cells.len() as u32;
                }
                cells.push(Cell {
                    seeds,
                    ..Cell::default()
                });
            }
        }
        self.cells = cells;
        for n in 0..self.data.len() {
            let cell = self.cell(n);
            self.cells[cell].rows += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::seed::KMeansPlusPlus;
    use ndarray::{Array1, Array2};

    /// While there is one cell, three seeds come as often as (E17) says.
    #[test]
    fn one_cell_is_k_means_plus_plus() {
        let x = ndarray::array![[0.0], [1.0], [1.5], [4.0], [9.0]];
        let w = [1.0, 2.0, 0.0, 0.5, 0.3];
        let weights = Array1::from(w.to_vec());
        let data = Dense::weighted(x.view(), weights.view()).unwrap();
        let frame = data.frame();
        let rounds = 40_000;
        let mut counts = std::collections::BTreeMap::new();
        let mut rng = Rng::from_seed(3);
        for _ in 0..rounds {
            let seeder = HierarchicalKMeansPlusPlus::new();
            let seeds = seeder.seed(&data, &frame, 3, &mut rng).unwrap().centres;
            let row = |c: usize| {
                let value = frame.leave_exact(0, seeds.row(c)[0]);
                (0..5).find(|&n| (x[[n, 0]] - value).abs() < 1e-9).unwrap()
            };
            *counts.entry((row(0), row(1), row(2))).or_insert(0) += 1;
        }
        let share = |n: usize, seeds: &[usize]| -> f64 {
            let part = |n: usize| {
                let squared = seeds.iter().map(|&s| (x[[n, 0]] - x[[s, 0]]).powi(2));
                w[n] * squared.fold(f64::INFINITY, f64::min).min(1e9)
            };
            let all: f64 = (0..5)
                .map(|n| if seeds.is_empty() { w[n] } else { part(n) })
                .sum();
            (if seeds.is_empty() { w[n] } else { part(n) }) / all
        };
        let mut seen = 0;
        for (a, b, c) in (0..125).map(|i| (i / 25, i / 5 % 5, i % 5)) {
            let p = share(a, &[]) * share(b, &[a]) * share(c, &[a, b]);
            let found = counts.get(&(a, b, c)).copied().unwrap_or(0);
            let error = 5.0 * (p * (1.0 - p) / f64::from(rounds)).sqrt();
            let found_share = f64::from(found) / f64::from(rounds);
            assert!(
                (found_share - p).abs() <= error,
                "{a} {b} {c}: {found_share} for {p}"
            );
            seen += found;
        }
        assert_eq!(seen, rounds);
    }

    /// With many cells seeds are distinct rows, never copies, and leave a potential like that of k-means++.
    #[test]
    fn many_cells_leave_little_more() {
        let mut rng = Rng::from_seed(5);
        let (n, d, k) = (3_000, 3, 300);
        let blobs = Array2::from_shape_fn((40, d), |_| 6.0 * rng.normal());
        let half = Array2::from_shape_fn((n, d), |(n, j)| blobs[[n % 40, j]] + rng.normal());
        let x = ndarray::concatenate![ndarray::Axis(0), half, half];
        let data = Dense::new(x.view()).unwrap();
        let (mut ours, mut theirs) = (0.0, 0.0);
        for seed in 0..5 {
            ours += potential(&HierarchicalKMeansPlusPlus::new(), &data, k, seed);
            theirs += potential(&KMeansPlusPlus::new(), &data, k, seed);
        }
        assert!((0.9..1.1).contains(&(ours / theirs)), "{}", ours / theirs);
    }

    /// The potential that distinct seeds leave.
    fn potential<'a>(
        seeder: &impl Seeder<Dense<'a, f64>>,
        data: &Dense<'a, f64>,
        k: usize,
        seed: u64,
    ) -> f64 {
        let frame = data.frame();
        let seeds = seeder
            .seed(data, &frame, k, &mut Rng::from_seed(seed))
            .unwrap();
        let mut rows = crate::data::DenseRows::default();
        data.load(0..data.len(), &frame, &mut rows);
        let mut nearest = vec![f64::INFINITY; data.len()];
        for c in 0..k {
            let centre = seeds.centres.row(c);
            rows.lower(0, centre, &mut nearest);
            assert!((0..c).all(|b| seeds.centres.row(b) != centre));
        }
        nearest.iter().sum()
    }
}
