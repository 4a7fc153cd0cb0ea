//! k-means++ (Arthur, Vassilvitskii 2007), on weighted data, with greedy candidates as an option.

use super::{Seeder, Seeds, Uniform, by_weight};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, Data, Frame, OfColumns, Rows, View};

/// Each seed is a row drawn in proportion to its weighted squared distance to the nearest seed so far
/// ([E17](crate::equations#e17); Arthur, Vassilvitskii, SODA 2007): n distance evaluations per seed and candidate.
///
/// $$P(n) = \frac{w_n D_n^2}{\sum_j w_j D_j^2}, \qquad D_n^2 = \min_{c \in \text{seeds}} \lVert y_n - \mu_c \rVert^2$$
///
/// The first seed is drawn in proportion to the weights, and so are seeds when every row coincides with one.
///
/// With several candidates per seed the one that leaves the smallest potential $\sum_n w_n D_n^2$ is kept (greedy
/// k-means++): better starts, for n more evaluations per candidate.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let plain = algorithms::k_means(25).build()?.fit(&data)?; // the default
/// let greedy = algorithms::k_means(25).seeder(KMeansPlusPlus::greedy()).build()?.fit(&data)?;
/// // 2 + ln 25 candidates for each seed
/// assert!(greedy.report.evaluations.seeding > 4 * plain.report.evaluations.seeding);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KMeansPlusPlus {
    candidates: Candidates,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Candidates {
    /// One, as published.
    #[default]
    One,
    /// About the logarithm of the number of clusters.
    Greedy,
    Given(usize),
}

impl KMeansPlusPlus {
    /// Greedy, with $2 + \lfloor \ln k \rfloor$ candidates per seed, the number in common use.
    #[must_use]
    pub fn greedy() -> Self {
        let candidates = Candidates::Greedy;
        Self { candidates }
    }

    /// Greedy, with this many candidates per seed; at least 1, which is not greedy.
    #[must_use]
    pub fn candidates(self, candidates: usize) -> Self {
        let candidates = Candidates::Given(candidates);
        Self { candidates }
    }
}

impl Stage for KMeansPlusPlus {
    fn check(&self, _clusters: usize) -> Result<()> {
        match self.candidates {
            Candidates::Given(candidates) => positive("candidates", candidates),
            _ => Ok(()),
        }
    }
}

impl<F: Float> Seeder<F> for KMeansPlusPlus {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        self.choose(view, k, None, rng)
    }
}

/// As k-means++, by distances in these columns alone, of data in its own numbers: those of others mean nothing.
#[derive(Debug)]
pub(crate) struct InColumns {
    pub(crate) columns: Vec<usize>,
    pub(crate) seeder: KMeansPlusPlus,
}

impl Stage for InColumns {}

impl<F: Float> Seeder<F> for InColumns {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let mut columns = self.columns.clone();
        columns.retain(|j| *j < view.data.dim());
        if columns.is_empty() {
            return Uniform.seed(view, k, rng);
        }
        let data = OfColumns::new(view.data, view.frame, &columns);
        let frame = Frame::raw(data.summary())?;
        let (seeds, rows) = (self.seeder).draw(View::new(&data, &frame), k, None, rng)?;
        Seeds::at_rows(view, &rows, seeds.evaluations)?.complete(view, &rows, k, rng)
    }
}

impl KMeansPlusPlus {
    /// Draws seeds until there are `k`, `first` among them.
    pub(crate) fn choose<F: Float>(
        &self,
        view: View<'_, F>,
        k: usize,
        first: Option<&Centres<F>>,
        rng: &mut Rng,
    ) -> Result<Seeds<F>> {
        let (seeds, rows) = self.draw(view, k, first, rng)?;
        seeds.complete(view, &rows, k, rng)
    }

    /// As above, until all rows coincide with seeds; with the rows that became some.
    #[inline(never)]
    fn draw<F: Float>(
        &self,
        view: View<'_, F>,
        k: usize,
        first: Option<&Centres<F>>,
        rng: &mut Rng,
    ) -> Result<(Seeds<F>, Vec<usize>)> {
        let candidates = match self.candidates {
            Candidates::One => 1,
            Candidates::Greedy => 2 + (k as f64).ln() as usize,
            Candidates::Given(candidates) => candidates.min(view.len()),
        };
        let mut nearest = Nearest::new(view);
        let mut rows = Vec::new();
        let mut centres = match first {
            Some(first) => first.clone(),
            None => {
                rows = by_weight(view.data, &[], 1, rng);
                Seeds::at_rows(view, &rows, 0)?.centres
            }
        };
        view.expect(k - centres.len().min(k));
        nearest.lower_to(&centres)?;
        while centres.len() < k {
            let drawn: Vec<usize> = (0..candidates).filter_map(|_| nearest.draw(rng)).collect();
            let Some(best) = nearest.best(&drawn)? else {
                break;
            };
            let seed = Seeds::at_rows(view, &[best], 0)?.centres;
            nearest.lower_to(&seed)?;
            centres.push(seed.row(0));
            rows.push(best);
            view.done(1);
        }
        let evaluations = nearest.evaluations;
        let seeds = Seeds {
            centres,
            evaluations,
        };
        Ok((seeds, rows))
    }
}

/// The squared distance of every row to its nearest seed, and w_n times it summed over blocks.
pub(super) struct Nearest<'a, F: Float> {
    view: View<'a, F>,
    pub(super) squared: Vec<F>,
    potentials: Vec<f64>,
    pub(super) evaluations: u64,
}

impl<'a, F: Float> Nearest<'a, F> {
    pub(super) fn new(view: View<'a, F>) -> Self {
        Self {
            view,
            squared: vec![F::INFINITY; view.len()],
            potentials: Vec::new(),
            evaluations: 0,
        }
    }

    /// A row with probability proportional to w_n d_n^2; `None` if that is 0 everywhere.
    pub(super) fn draw(&self, rng: &mut Rng) -> Option<usize> {
        let total = self.potentials.iter().sum();
        let block = rng.proportional(self.potentials.iter().copied(), total)?;
        let start = block * BLOCK;
        let end = (start + BLOCK).min(self.view.len());
        let weights = (start..end).map(|n| self.view.data.weight(n) * self.squared[n].to_f64());
        let row = rng.proportional(weights, self.potentials[block])?;
        Some(start + row)
    }

    /// The candidate row that would leave the smallest potential; `None` without candidates.
    fn best(&mut self, candidates: &[usize]) -> Result<Option<usize>> {
        if candidates.len() < 2 {
            return Ok(candidates.first().copied());
        }
        let view = self.view;
        self.evaluations += (view.len() * candidates.len()) as u64;
        let seeds = Seeds::at_rows(view, candidates, 0)?.centres;
        let potentials = parallel::map_blocks(view.len(), BLOCK, |_, range| {
            let rows = view.load(range.clone())?;
            let mut squared = Vec::new();
            Ok((0..candidates.len())
                .map(|candidate| {
                    squared.clear();
                    squared.extend_from_slice(&self.squared[range.clone()]);
                    rows.lower_to_distances(0, seeds.row(candidate), &mut squared);
                    potential::<F>(&rows, &squared)
                })
                .collect::<Vec<f64>>())
        });
        let potentials = parallel::all(potentials)?;
        let potential = |candidate: usize| potentials.iter().map(|b| b[candidate]).sum::<f64>();
        let best = (0..candidates.len()).min_by(|&a, &b| potential(a).total_cmp(&potential(b)));
        Ok(best.map(|candidate| candidates[candidate]))
    }

    /// Takes any centres as the next seeds.
    pub(super) fn lower_to(&mut self, seeds: &Centres<F>) -> Result<()> {
        let view = self.view;
        self.evaluations += (view.len() * seeds.len()) as u64;
        let potentials = parallel::map_chunks(&mut self.squared, BLOCK, |_, range, squared| {
            let rows = view.load(range)?;
            (0..seeds.len()).for_each(|c| rows.lower_to_distances(0, seeds.row(c), squared));
            Ok(potential::<F>(&rows, squared))
        });
        self.potentials = parallel::all(potentials)?;
        Ok(())
    }
}

/// Sum of w_n d_n^2 over a block.
fn potential<F: Float>(rows: &Rows<F>, squared: &[F]) -> f64 {
    let squared = squared.iter().enumerate();
    squared.map(|(i, d2)| rows.weight(i) * d2.to_f64()).sum()
}
