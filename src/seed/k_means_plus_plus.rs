//! k-means++ (Arthur, Vassilvitskii 2007), on weighted data, with greedy candidates as an option.

use super::{Seeder, Seeds, by_weight, proportional};
use crate::data::{Data, Frame, Rows};
use crate::error::{Result, positive};
use crate::float::Float;
use crate::parallel::{self, BLOCK};
use crate::rng::Rng;
use crate::stage::Stage;

/// Each seed is a row drawn in proportion to its weighted squared distance to the nearest seed so far (E17;
/// Arthur, Vassilvitskii, SODA 2007): n distance evaluations per seed and candidate.
///
/// $$P(n) = \frac{w_n D_n^2}{\sum_j w_j D_j^2}, \qquad D_n^2 = \min_{c \in \text{seeds}} \lVert y_n - \mu_c \rVert^2$$
///
/// The first seed is drawn in proportion to the weights, and so are seeds when every row coincides with one.
///
/// With several candidates per seed the one that leaves the smallest potential $\sum_n w_n D_n^2$ is kept (greedy
/// k-means++): better starts, more evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KMeansPlusPlus {
    candidates: Candidates,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidates {
    Fixed(usize),
    Logarithmic,
}

impl KMeansPlusPlus {
    /// One candidate per seed, as published.
    #[must_use]
    pub fn new() -> Self {
        Self {
            candidates: Candidates::Fixed(1),
        }
    }

    /// Greedy, with $2 + \lfloor \ln k \rfloor$ candidates per seed, the number in common use.
    #[must_use]
    pub fn greedy() -> Self {
        Self {
            candidates: Candidates::Logarithmic,
        }
    }

    /// Greedy, with this many candidates per seed; at least 1, which is not greedy.
    #[must_use]
    pub fn candidates(self, candidates: usize) -> Self {
        Self {
            candidates: Candidates::Fixed(candidates),
        }
    }
}

impl Default for KMeansPlusPlus {
    /// As published: one candidate per seed.
    fn default() -> Self {
        Self::new()
    }
}

impl Stage for KMeansPlusPlus {
    fn check(&self, _clusters: usize) -> Result<()> {
        match self.candidates {
            Candidates::Fixed(candidates) => positive("candidates", candidates),
            Candidates::Logarithmic => Ok(()),
        }
    }
}

impl<D: Data> Seeder<D> for KMeansPlusPlus {
    fn seed(
        &self,
        data: &D,
        frame: &Frame<D::Float>,
        k: usize,
        rng: &mut Rng,
    ) -> Result<Seeds<D::Float>> {
        let candidates = match self.candidates {
            Candidates::Fixed(candidates) => candidates.min(data.len()),
            Candidates::Logarithmic => 2 + (k as f64).ln() as usize,
        };
        let mut rows = Vec::with_capacity(k);
        let mut nearest = Nearest::new(data, frame);
        rows.extend(by_weight(data, &rows, rng));
        nearest.lower(&rows);
        while rows.len() < k {
            let drawn: Vec<usize> = (0..candidates).filter_map(|_| nearest.draw(rng)).collect();
            if drawn.is_empty() {
                // Every row coincides with a seed: any other row is as good as the next.
                rows.extend(by_weight(data, &rows, rng));
            } else {
                rows.push(nearest.lower(&drawn));
            }
        }
        Ok(Seeds::at_rows(data, frame, &rows, nearest.evaluations))
    }
}

/// The squared distance of every row to its nearest seed, and w_n times it summed over blocks.
struct Nearest<'a, D: Data> {
    data: &'a D,
    frame: &'a Frame<D::Float>,
    squared: Vec<D::Float>,
    potentials: Vec<f64>,
    evaluations: u64,
}

impl<'a, D: Data> Nearest<'a, D> {
    fn new(data: &'a D, frame: &'a Frame<D::Float>) -> Self {
        let squared = vec![D::Float::INFINITY; data.len()];
        Self {
            data,
            frame,
            squared,
            potentials: Vec::new(),
            evaluations: 0,
        }
    }

    /// A row with probability proportional to w_n d_n^2; `None` if that is 0 everywhere.
    fn draw(&self, rng: &mut Rng) -> Option<usize> {
        let total = self.potentials.iter().sum();
        let block = proportional(self.potentials.iter().copied(), total, rng)?;
        let start = block * BLOCK;
        let end = (start + BLOCK).min(self.data.len());
        let weights = (start..end).map(|n| self.data.weight(n) * self.squared[n].to_f64());
        proportional(weights, self.potentials[block], rng).map(|i| start + i)
    }

    /// Takes the candidate row that leaves the smallest potential as the next seed, and returns it.
    fn lower(&mut self, candidates: &[usize]) -> usize {
        let Self { data, frame, .. } = *self;
        self.evaluations += (data.len() * candidates.len()) as u64;
        let mut seeds = D::Rows::default();
        data.gather(candidates, frame, &mut seeds);
        let lowered = |range: std::ops::Range<usize>, candidate: usize, rows: &mut D::Rows| {
            let mut squared = self.squared[range].to_vec();
            rows.lower(seeds.row(candidate), &mut squared);
            let potential: f64 = squared
                .iter()
                .enumerate()
                .map(|(i, d2)| rows.weight(i) * d2.to_f64())
                .sum();
            (squared, potential)
        };
        let tried = parallel::map_blocks(data.len(), BLOCK, |_, range| {
            let mut rows = D::Rows::default();
            data.load(range.clone(), frame, &mut rows);
            (0..candidates.len())
                .map(|candidate| lowered(range.clone(), candidate, &mut rows))
                .collect::<Vec<_>>()
        });
        let potential = |candidate: usize| tried.iter().map(|b| b[candidate].1).sum::<f64>();
        let best = (0..candidates.len())
            .map(|candidate| (potential(candidate), candidate))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(0, |(_, candidate)| candidate);
        self.potentials = tried.iter().map(|block| block[best].1).collect();
        for (block, chosen) in tried.into_iter().enumerate() {
            let squared = &chosen[best].0;
            self.squared[block * BLOCK..][..squared.len()].copy_from_slice(squared);
        }
        candidates[best]
    }
}
