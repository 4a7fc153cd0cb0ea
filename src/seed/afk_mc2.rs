//! AFK-MC^2 (Bachem, Lucic, Hassani, Krause: Fast and provably good seedings for k-means, NIPS 2016), on
//! weighted data.

use super::k_means_plus_plus::Nearest;
use super::{Cumulated, Seeder, Seeds, by_weight};
use crate::base::error::{Result, positive, require};
use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::{Centres, Rows, View};

/// Approximates k-means++ by a Markov chain of length m per seed ([E18](crate::equations#e18); Bachem, Lucic, Hassani,
/// Krause, NIPS 2016): n + m k (k - 1) / 2 distance evaluations instead of n k.
///
/// Proposals are drawn half in proportion to the weights and half to the weighted squared distances $d_n^2$ from
/// the first seed. From row $x$ the chain moves to a proposed row $y$ with probability
///
/// $$\min \left( 1, \frac{D_y^2 b_x}{D_x^2 b_y} \right), \qquad b_n = \frac{1}{2 W} + \frac{d_n^2}{2 \sum_j w_j d_j^2}$$
///
/// where $D_n^2$ is the squared distance to the nearest seed so far: proposal and target ($w_n D_n^2$) carry the
/// same weight, which cancels. $m$ counts the first draw of a chain; the last state is the seed. A chain that ends
/// on a copy of a seed is drawn again up to 4 times. Then that seed is drawn from all rows as in
/// ([E17](crate::equations#e17)), for n evaluations more with each seed so far.
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let fit = algorithms::k_means(25).seeder(AfkMc2::new(10)).build()?.fit(&data)?;
/// assert!(fit.report.evaluations.seeding < 25 * 1_000);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfkMc2 {
    chain: usize,
}

impl AfkMc2 {
    /// A chain of length `chain`, $m$, per seed; at least 1.
    #[must_use]
    pub fn new(chain: usize) -> Self {
        Self { chain }
    }
}

impl Default for AfkMc2 {
    /// Chain length 20, the longer of the two in \[VC\]: close to k-means++ on its data, and still cheap.
    fn default() -> Self {
        Self::new(20)
    }
}

impl Stage for AfkMc2 {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("chain", self.chain)?;
        let rule = "must be at most 2^20";
        require(self.chain <= LONGEST, "chain", self.chain, rule)
    }
}

/// Seeds chosen between two comparisons with all seeds so far; within a batch candidates are kept up to date.
const BATCH: usize = 32;

/// Candidates of a batch at most, or of one chain if that is longer: bounds the memory.
const CANDIDATES: usize = 1 << 13;

/// Far beyond any use: such a chain evaluates more rows than k-means++ would.
const LONGEST: usize = 1 << 20;

/// Fresh chains tried before all rows are evaluated, when a chain found nothing but copies of seeds.
const RETRIES: usize = 4;

impl<F: Float> Seeder<F> for AfkMc2 {
    #[inline(never)]
    fn seed(&self, view: View<'_, F>, k: usize, rng: &mut Rng) -> Result<Seeds<F>> {
        let mut rows = Vec::with_capacity(k);
        rows.extend(by_weight(view.data, &rows, 1, rng));
        let mut seeds = Seeds::at_rows(view, &rows, 0)?;
        let proposal = Proposal::new(view, &seeds.centres)?;
        seeds.evaluations += view.len() as u64;
        view.expect(k - rows.len());

        while rows.len() < k {
            let batch = BATCH
                .min(CANDIDATES / self.chain)
                .max(1)
                .min(k - rows.len());
            let mut chains = Chains::draw(view, &proposal, batch * self.chain, rng)?;
            seeds.evaluations += chains.measure(&seeds.centres);
            for b in 0..batch {
                let of_this = b * self.chain..(b + 1) * self.chain;
                let mut choice = chains.walk(of_this, rng);
                for _ in 0..RETRIES {
                    if choice.is_none() {
                        let mut again = Chains::draw(view, &proposal, self.chain, rng)?;
                        seeds.evaluations += again.measure(&seeds.centres);
                        choice = again.walk(0..self.chain, rng);
                    }
                }
                if choice.is_none() {
                    // Exact D^2 sampling.
                    let mut nearest = Nearest::new(view);
                    nearest.lower_to(&seeds.centres)?;
                    seeds.evaluations += nearest.evaluations;
                    choice = nearest.draw(rng);
                }
                let Some(row) = choice else {
                    return seeds.complete(view, &rows, k, rng);
                };
                rows.push(row);
                view.done(1);
                let chosen = Seeds::at_rows(view, &[row], 0)?.centres;
                seeds.evaluations += chains.lower(chosen.row(0), (b + 1) * self.chain);
                seeds.centres.push(chosen.row(0));
            }
        }
        Ok(seeds)
    }
}

/// The proposal distribution: cumulated over rows, for drawing by bisection.
struct Proposal {
    cumulated: Cumulated,
    /// Per row, q_n / w_n up to a constant: 1 / W + d_n^2 / sum w d^2.
    densities: Vec<f64>,
}

impl Proposal {
    fn new<F: Float>(view: View<'_, F>, first: &Centres<F>) -> Result<Self> {
        let data = view.data;
        let mut nearest = Nearest::new(view);
        nearest.lower_to(first)?;
        let squared = || nearest.squared.iter().map(|d2| d2.to_f64());
        let weighted = squared().enumerate().map(|(n, d2)| data.weight(n) * d2);
        let base = 1.0 / data.summary().total_weight;
        // Weights may be so small that the spread has no inverse.
        let slope = 1.0 / weighted.sum::<f64>();
        let slope = if slope.is_finite() { slope } else { 0.0 };
        let densities: Vec<f64> = squared().map(|d2| base + slope * d2).collect();
        let weights = densities.iter().enumerate();
        let cumulated = Cumulated::new(weights.map(|(n, density)| data.weight(n) * density));
        Ok(Self {
            cumulated,
            densities,
        })
    }
}

/// The candidates of the chains of a batch, with their squared distances to the nearest seed so far.
struct Chains<F: Float> {
    candidates: Vec<usize>,
    densities: Vec<f64>,
    rows: Rows<F>,
    nearest: Vec<F>,
}

impl<F: Float> Chains<F> {
    fn draw(view: View<'_, F>, proposal: &Proposal, n: usize, rng: &mut Rng) -> Result<Self> {
        let candidates: Vec<usize> = (0..n).map(|_| proposal.cumulated.draw(rng)).collect();
        let densities = candidates.iter().map(|&n| proposal.densities[n]).collect();
        let mut rows = Rows::default();
        view.data.gather(&candidates, view.frame, &mut rows)?;
        Ok(Self {
            candidates,
            densities,
            rows,
            nearest: vec![F::INFINITY; n],
        })
    }

    /// Distances to the nearest of all seeds so far.
    fn measure(&mut self, seeds: &Centres<F>) -> u64 {
        let rows = &self.rows;
        let ids: Vec<u32> = (0..seeds.len() as u32).collect();
        let size = (4_096 / seeds.len()).clamp(4, BLOCK);
        parallel::map_chunks(&mut self.nearest, size, |_, range, nearest| {
            let mut squared = Vec::new();
            for (i, nearest) in range.zip(nearest) {
                rows.distances_to(i, seeds, &ids, &mut squared);
                let lower = |a: F, b: &F| if *b < a { *b } else { a };
                *nearest = squared.iter().fold(*nearest, lower);
            }
        });
        (self.candidates.len() * seeds.len()) as u64
    }

    /// One more seed, for the candidates from `from` on.
    fn lower(&mut self, seed: &[F], from: usize) -> u64 {
        if from >= self.candidates.len() {
            return 0;
        }
        self.rows
            .lower_to_distances(from, seed, &mut self.nearest[from..]);
        (self.candidates.len() - from) as u64
    }

    /// Walks one chain (Metropolis-Hastings); `None` if it ends on a copy of a seed.
    fn walk(&self, chain: std::ops::Range<usize>, rng: &mut Rng) -> Option<usize> {
        let mut state = chain.start;
        let ratio = |i: usize| self.nearest[i].to_f64() / self.densities[i];
        for next in chain.skip(1) {
            // Accepts with probability min(1, ratio(next) / ratio(state)); always leaves a ratio of 0.
            if rng.uniform() * ratio(state) < ratio(next) || ratio(state) == 0.0 {
                state = next;
            }
        }
        (self.nearest[state].to_f64() > 0.0).then(|| self.candidates[state])
    }
}
