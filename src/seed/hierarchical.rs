//! Hierarchical k-means++ on weighted data: D^2 sampling by rejection, where a seed is near the rows of its own cell
//! alone.

use super::{Cumulated, KMeansPlusPlus, Seeder, Seeds};
use crate::base::error::Result;
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, Rows, View};

/// k-means++ for many clusters: of the order of $n \log k$ distance evaluations where cells are of similar size, instead of
/// $n k$ ([E38](crate::equations#e38)).
///
/// Rows are cut into cells. Each seed is a row drawn in proportion to $w_n \tilde D_n^2$, where $\tilde D_n^2$ is the
/// squared distance to the nearest seed so far **in the row's cell**. At first all rows are one cell, and a cell with
/// 32 seeds is cut at once into the Voronoi cells of these: up to 32 seeds it is k-means++ ([E17](crate::equations#e17)),
/// and later a row is compared with the seeds of its cell alone.
///
/// Rows are evaluated in rounds, each for up to 16 times as many seeds as before. Within a round a row $n$ is proposed
/// in proportion to its $w_n \tilde D_n^2$ at the start of the round, and accepted with probability
///
/// $$\frac{\tilde D_n^2 \text{ now}}{\tilde D_n^2 \text{ at the start of the round}}$$
///
/// which draws it from the distribution as it is now (rejection sampling, as in Cohen-Addad, Lattanzi, Norouzi-Fard, Sohler,
/// Svensson, NeurIPS 2020). A round ends early when few proposals are accepted.
///
/// Up to 256 seeds of rows that lack values, or of sparse rows, are those of [`KMeansPlusPlus::greedy`]: distances of text differ
/// so little that later iterations seldom leave where they begin.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let seeder = HierarchicalKMeansPlusPlus;
/// let fit = algorithms::k_means(100).seeder(seeder).build()?.fit(&data)?;
/// assert!(fit.report.evaluations.seeding < 100 * 1_000);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HierarchicalKMeansPlusPlus;

impl Stage for HierarchicalKMeansPlusPlus {}

/// Up to this number of seeds, those of ragged rows are the best of several candidates each.
const GREEDY: usize = 256;

/// Seeds of a cell that is cut: with 16, rows near the edges of cells cost some percent of the potential.
const CUT: usize = 32;

/// Seeds at the end of a round for each at its start, at most.
const GROWTH: usize = 16;

/// Proposals of a round for each seed it is to find.
const PROPOSALS: usize = 4;

/// A batch of proposals has one proposal for this many seeds, and at least `MIN_BATCH` proposals.
const SEEDS_PER_PROPOSAL: usize = 4;
const MIN_BATCH: usize = 16;

/// Proposals of one parallel task.
const TASK_PROPOSALS: usize = 32;

impl<F: Float> Seeder<F> for HierarchicalKMeansPlusPlus {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        if view.data.is_ragged() && k <= GREEDY {
            return KMeansPlusPlus::greedy().seed(view, k, rng);
        }
        let first = Cumulated::new((0..view.len()).map(|n| view.data.weight(n))).draw(rng);
        let mut cells = Cells::new(view, first)?;
        let more = |seeds: usize| seeds.saturating_mul(GROWTH).min(k);
        let mut seeds = 1;
        while seeds < k {
            view.expect(view.len() + PROPOSALS * (more(seeds) - seeds));
            seeds = more(seeds);
        }
        while cells.seeds.len() < k {
            cells.compare_all()?;
            let wanted = more(cells.seeds.len());
            if !cells.draw(wanted, rng)? {
                break;
            }
        }
        let seeds = Seeds {
            centres: cells.centres,
            evaluations: cells.evaluations,
        };
        seeds.complete(view, &cells.seeds, k, rng)
    }
}

/// Rows by cell, with their distances to the nearest seed of it.
struct Cells<'a, F: Float> {
    view: View<'a, F>,
    /// Rows that are seeds, and where they are.
    seeds: Vec<usize>,
    centres: Centres<F>,
    cells: Vec<Cell>,
    /// Per row, as of its last evaluation.
    near: Vec<Near<F>>,
    evaluations: u64,
}

/// The seeds of some rows; once there are [`CUT`], cell `parts + i` is about those nearest to the i-th.
#[derive(Default)]
struct Cell {
    seeds: [u32; CUT],
    len: usize,
    parts: usize,
}

/// The search state of a row: its cell, how many of the seeds there it has been compared with, which is the nearest, and its
/// squared distance.
#[derive(Clone, Copy)]
struct Near<F> {
    squared: F,
    cell: u32,
    compared: u8,
    nearest: u8,
}

impl<'a, F: Float> Cells<'a, F> {
    /// One cell with one seed, which no row has been compared with.
    fn new(view: View<'a, F>, first: usize) -> Result<Self> {
        let near = Near {
            squared: F::INFINITY,
            cell: 0,
            compared: 0,
            nearest: 0,
        };
        let mut cells = Self {
            view,
            seeds: Vec::new(),
            centres: Centres::with_capacity(1, view.data.dim()),
            cells: vec![Cell::default()],
            near: vec![near; view.len()],
            evaluations: 0,
        };
        let centre = Seeds::at_rows(view, &[first], 0)?.centres;
        cells.push(first, centre.row(0), 0);
        Ok(cells)
    }

    /// A seed in a cell that is not cut yet.
    fn push(&mut self, row: usize, centre: &[F], cell: u32) {
        let seed = self.seeds.len() as u32;
        self.seeds.push(row);
        self.centres.push(centre);
        let parts = self.cells.len();
        let cell = &mut self.cells[cell as usize];
        cell.seeds[cell.len] = seed;
        cell.len += 1;
        if cell.len == CUT {
            cell.parts = parts;
            let seeds = cell.seeds;
            self.cells.extend(seeds.map(|seed| {
                let mut part = Cell::default();
                (part.seeds[0], part.len) = (seed, 1);
                part
            }));
        }
    }

    /// Compares row `i` of a block with the seeds that it has not been compared with, down to a cell that is not cut. Counts
    /// the evaluations.
    fn follow(
        &self,
        rows: &Rows<F>,
        i: usize,
        mut near: Near<F>,
        distances: &mut Vec<F>,
        evaluations: &mut u64,
    ) -> Near<F> {
        loop {
            let cell = &self.cells[near.cell as usize];
            let fresh = &cell.seeds[near.compared as usize..cell.len];
            if !fresh.is_empty() {
                rows.distances_to(i, &self.centres, fresh, distances);
                *evaluations += fresh.len() as u64;
                for (place, &squared) in (near.compared..).zip(&*distances) {
                    if squared < near.squared {
                        (near.squared, near.nearest) = (squared, place);
                    }
                }
                near.compared = cell.len as u8;
            }
            if cell.len < CUT {
                return near;
            }
            near.cell = (cell.parts + usize::from(near.nearest)) as u32;
            // The part begins with the seed that is the nearest.
            (near.nearest, near.compared) = (0, 1);
        }
    }

    /// Every row is compared with the seeds that are new to it.
    ///
    /// Rows are read in their own order: those of a cell lie far apart, and its few seeds stay in the cache.
    fn compare_all(&mut self) -> Result<()> {
        let mut near = std::mem::take(&mut self.near);
        let this = &*self;
        let evaluations = parallel::map_chunks(&mut near, BLOCK, |_, range, near| {
            let rows = this.view.load(range)?;
            let mut distances = Vec::new();
            let mut evaluations = 0;
            for (i, near) in near.iter_mut().enumerate() {
                *near = this.follow(&rows, i, *near, &mut distances, &mut evaluations);
            }
            this.view.done(near.len());
            Ok(evaluations)
        });
        self.near = near;
        self.evaluations += parallel::all(evaluations)?.iter().sum::<u64>();
        Ok(())
    }

    /// Draws seeds until there are `wanted`, or the round should end. `false` if there is nothing to draw.
    fn draw(&mut self, wanted: usize, rng: &mut Rng) -> Result<bool> {
        let squared = |n: usize| self.near[n].squared.to_f64();
        let old =
            Cumulated::new((0..self.view.len()).map(|n| self.view.data.weight(n) * squared(n)));
        if old.total() <= 0.0 {
            return Ok(false);
        }
        let mut distances = Vec::new();
        let mut left = PROPOSALS * (wanted - self.seeds.len());
        while left > 0 {
            // With the seeds there are now they are compared all together; with those that come from among them, one after
            // the other.
            let together = (self.seeds.len() / SEEDS_PER_PROPOSAL)
                .max(MIN_BATCH)
                .min(left);
            left -= together;
            self.view.done(together);
            let proposals: Vec<(usize, f64)> = (0..together)
                .map(|_| (old.draw(rng), rng.uniform()))
                .collect();
            let this = &*self;
            let pieces = parallel::map_blocks(together, TASK_PROPOSALS, |_, range| {
                let mut rows = Rows::default();
                let mut distances = Vec::new();
                let ids: Vec<usize> = proposals[range].iter().map(|(n, _)| *n).collect();
                this.view.data.gather(&ids, this.view.frame, &mut rows)?;
                let mut evaluations = 0;
                let near = ids.iter().enumerate().map(|(i, &n)| {
                    this.follow(&rows, i, this.near[n], &mut distances, &mut evaluations)
                });
                Ok((near.collect::<Vec<_>>(), rows, evaluations))
            });
            let pieces = parallel::all(pieces)?;
            let evaluations = pieces.iter().map(|(.., evaluations)| evaluations);
            self.evaluations += evaluations.sum::<u64>();
            for (proposals, (near, rows, _)) in proposals.chunks(TASK_PROPOSALS).zip(pieces) {
                let mut evaluations = 0;
                for (i, (&(n, u), near)) in proposals.iter().zip(near).enumerate() {
                    let near = self.follow(&rows, i, near, &mut distances, &mut evaluations);
                    if u * self.near[n].squared.to_f64() < near.squared.to_f64() {
                        self.push(n, &rows.coordinates(i), near.cell);
                        if self.seeds.len() == wanted {
                            self.view.done(left);
                            self.evaluations += evaluations;
                            return Ok(true);
                        }
                    }
                }
                self.evaluations += evaluations;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Dense};
    use crate::seed::KMeansPlusPlus;
    use ndarray::{Array1, Array2};

    /// While there is one cell, three seeds come as often as (E17) says.
    #[test]
    fn one_cell_is_k_means_plus_plus() {
        let x = [0.0, 1.0, 1.5, 4.0, 9.0];
        let w = [1.0, 2.0, 0.0, 0.5, 0.3];
        let rows = Array2::from_shape_vec((5, 1), x.to_vec()).unwrap();
        let weights = Array1::from(w.to_vec());
        let data = Dense::weighted(rows.view(), weights.view()).unwrap();
        let frame = data.frame();
        let rounds = 40_000;
        let mut rng = Rng::from_seed(3);
        let mut counts = vec![0; 125];
        for _ in 0..rounds {
            let view = View::new(&data, &frame);
            let seeds = HierarchicalKMeansPlusPlus.seed(view, 3, &mut rng).unwrap();
            let row = |c: usize| {
                let value: f64 = frame.leave_exact(0, seeds.centres.row(c)[0]);
                (0..5).find(|&n| (x[n] - value).abs() < 1e-9).unwrap()
            };
            counts[25 * row(0) + 5 * row(1) + row(2)] += 1;
        }
        let share = |n: usize, seeds: &[usize]| {
            let part = |n: usize| {
                let squared = seeds.iter().map(|&s| (x[n] - x[s]).powi(2));
                w[n] * squared.reduce(f64::min).unwrap_or(1.0)
            };
            part(n) / (0..5).map(part).sum::<f64>()
        };
        for (i, &count) in counts.iter().enumerate() {
            let a = i / 25;
            let b = i / 5 % 5;
            let c = i % 5;
            let p = share(a, &[]) * share(b, &[a]) * share(c, &[a, b]);
            let frequency = f64::from(count) / f64::from(rounds);
            let error = 5.0 * (p * (1.0 - p) / f64::from(rounds)).sqrt();
            assert!(
                (frequency - p).abs() <= error,
                "{a} {b} {c}: {frequency} for {p}"
            );
        }
    }

    /// With many cells seeds are distinct rows, never copies, and leave a potential like that of k-means++.
    #[test]
    fn many_cells_leave_little_more() {
        let mut rng = Rng::from_seed(5);
        let n = 3_000;
        let d = 3;
        let k = 300;
        let blobs = Array2::from_shape_fn((40, d), |_| 6.0 * rng.normal());
        let half = Array2::from_shape_fn((n, d), |(n, j)| blobs[[n % 40, j]] + rng.normal());
        let x = ndarray::concatenate![ndarray::Axis(0), half, half];
        let data = Dense::new(x.view()).unwrap();
        let frame = data.frame();
        let mut rows = Rows::default();
        data.load(0..data.len(), &frame, &mut rows).unwrap();
        let potential = |seeder: &dyn Seeder<f64>| {
            let potentials = (0..5).map(|seed| {
                let view = View::new(&data, &frame);
                let mut rng = Rng::from_seed(seed);
                let centres = seeder.seed(view, k, &mut rng).unwrap().centres;
                let mut nearest = vec![f64::INFINITY; data.len()];
                for c in 0..k {
                    rows.lower_to_distances(0, centres.row(c), &mut nearest);
                    assert!((0..c).all(|b| centres.row(b) != centres.row(c)));
                }
                nearest.iter().sum::<f64>()
            });
            potentials.sum::<f64>()
        };
        let more = potential(&HierarchicalKMeansPlusPlus) / potential(&KMeansPlusPlus::default());
        assert!((0.9..1.1).contains(&more), "{more}");
    }
}
