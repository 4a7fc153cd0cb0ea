//! The truncated search of vc-GMM and var-GMM-S: a point is compared only with the neighbors of its components.

use super::exhaustive::All;
use super::neighbors::{Neighbors, mean_cost};
use super::pairs::{Gathered, PairSums};
use super::search_space::SearchSpace;
use super::{EStep, PerShard, Search, bounded, loaded};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::io;
use crate::model::Mixture;
use crate::model::block::{Block, UNSET};

/// A point is compared only with the neighbors of its components, and with some random ones (\[VC\] Alg. 1;
/// [E12](crate::equations#e12), [E13](crate::equations#e13)).
///
/// $K(n)$ becomes the $C'$ best components of the search space $G(n)$, the neighbors $G_c$ of the components of the last
/// $K(n)$ and random components $R(n)$: at most $C' G + |R(n)|$ distance evaluations per point and search.
///
/// $$G(n) = \bigcup_{c \in K(n)} G_c \cup R(n), \qquad K^{\text{new}}(n) = \text{the } C' \text{ best of } G(n)$$
///
/// Since $c \in G_c$, the old support is among the candidates, and the free energy does not fall (\[VC\] Prop. 1).
///
/// The neighbors $G_c$ ($c$ itself and $G - 1$ others) are those with the smallest weighted mean cost over the points
/// nearest to $c$, which the search computes anyway ([E14](crate::equations#e14)).
///
/// When C' is all components, a search is [`Exhaustive::all`](super::Exhaustive::all).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let search = Neighborhood::default().c_prime(3).neighbors(5).random(1);
/// let fit = algorithms::k_means(25).e_step(search).build()?.fit(&data)?;
/// let searches = fit.report.free_energies.len() as u64;
/// // The costs of the first supports are computed once more, under the variance that they start.
/// assert!(fit.report.evaluations.search <= 1_000 * (searches * (3 * 5 + 1) + 3));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighborhood {
    c_prime: usize,
    neighbors: usize,
    random: usize,
    initial_searches: usize,
    from_seeds: bool,
}

impl Default for Neighborhood {
    /// With 3 components in a support, and 5 neighbors of each.
    fn default() -> Self {
        Self::new(3, 5)
    }
}

impl Neighborhood {
    /// With these numbers of [components in a support](Self::c_prime) and of [neighbors](Self::neighbors).
    #[must_use]
    pub fn new(c_prime: usize, neighbors: usize) -> Self {
        Self {
            c_prime,
            neighbors,
            random: 0,
            initial_searches: 0,
            from_seeds: false,
        }
    }

    /// Components in a support, C': at least 1, and clamped to the number of clusters. Default 3.
    #[must_use]
    pub fn c_prime(self, c_prime: usize) -> Self {
        Self { c_prime, ..self }
    }

    /// Neighbors of a component, G, itself counted: at least 1, and clamped to the number of clusters. Default 5.
    #[must_use]
    pub fn neighbors(self, neighbors: usize) -> Self {
        Self { neighbors, ..self }
    }

    /// Adds this many random components to every search space ('+1' in \[VC\] is `random(1)`): better optima where neighbor
    /// estimates are wrong, for at most one more evaluation each. Default 0: the cheaper of the two in \[VC\].
    #[must_use]
    pub fn random(self, random: usize) -> Self {
        Self { random, ..self }
    }

    /// Further searches at the seeds, before the first M-step (\[VC\] Supplement F): supports that start at random are nearer to
    /// the seeds then. Default 0, as in the main experiments of \[VC\]; `docs/results.md` has what they gain.
    #[must_use]
    pub fn initial_searches(self, initial_searches: usize) -> Self {
        Self {
            initial_searches,
            ..self
        }
    }

    /// Whether supports and neighbors start from the seeds: K(n) = the C' nearest seeds of each point, G_c = the G nearest seeds of
    /// each seed. Costs n k + k^2 distance evaluations once. Default: at random, as published, with none.
    #[must_use]
    pub fn from_seeds(self, from_seeds: bool) -> Self {
        Self { from_seeds, ..self }
    }
}

impl Stage for Neighborhood {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("c_prime", self.c_prime)?;
        positive("neighbors", self.neighbors)
    }
}

impl<F: Float> EStep<F> for Neighborhood {
    #[inline(never)]
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        saved: Option<&[u8]>,
        rng: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let k = model.components();
        if self.c_prime >= k {
            // Full supports need no neighbors.
            return Ok(Box::new(All::of_width(k)));
        }
        let size = self.neighbors.min(k);
        let mut evaluations = 0;
        let neighbors = match (saved, self.from_seeds) {
            (Some(bytes), _) => loaded(bytes, |known: &Neighbors| known.is_sound(k))?,
            (None, false) => {
                let mut lists = vec![UNSET; k * size];
                for (c, list) in lists.chunks_exact_mut(size).enumerate() {
                    list[0] = c as u32;
                    rng.fill_distinct(list, 1, k);
                }
                Neighbors { size, lists }
            }
            (None, true) => {
                evaluations = (k as u64).pow(2);
                let lists = bounded::nearest_lists(model.centres(), size);
                Neighbors { size, lists }
            }
        };
        Ok(Box::new(NeighborhoodSearch {
            settings: *self,
            all: All::of_width(self.c_prime),
            neighbors,
            evaluations,
            shards: PerShard::default(),
        }))
    }
}

struct NeighborhoodSearch<F> {
    settings: Neighborhood,
    /// Scratch of the first search, if it starts from seeds.
    all: All<F>,
    neighbors: Neighbors,
    /// Evaluations that the first neighbors took.
    evaluations: u64,
    shards: PerShard<Shard<F>>,
}

impl<F: Float> Search<F> for NeighborhoodSearch<F> {
    fn width(&self) -> usize {
        self.settings.c_prime
    }

    fn initial_searches(&self) -> usize {
        self.settings.initial_searches
    }

    fn by_component(&self) -> bool {
        true
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// Searches a block of rows (E12, E13).
    #[inline(never)]
    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, rng: &mut Rng) {
        let k = block.components();
        let width = block.width();
        // If the search starts from seeds, the first supports are the best ones.
        if self.settings.from_seeds && block.supports.contains(&UNSET) {
            return self.all.search(model, rows, block, rng);
        }
        let cost = model.cost();
        let mut evaluations = 0;
        let make = || Shard::new(k);
        self.shards.with(block.shard(), make, |shard| {
            for i in 0..rows.len() {
                let support = &mut block.supports[i * width..(i + 1) * width];
                let last_best = support[0];
                if last_best == UNSET {
                    rng.fill_distinct(support, 0, k);
                }
                let space = &mut shard.space;
                space.restart();
                // Every component is in its own list.
                space.insert(support.iter().map(|&c| self.neighbors.list(c)));
                for _ in 0..self.settings.random.min(k) {
                    space.insert(std::iter::once(&[rng.below(k) as u32][..]));
                }
                let ids = space.ids();
                let costs = &mut shard.costs;
                let pairs = &mut shard.pairs;
                cost.some(rows, i, ids, costs);
                block.set_best(i, ids, costs);
                let from = block.support(i)[0];
                let weight = rows.weight(i);
                if from == last_best {
                    pairs.push_in_order(from, weight, ids, costs)
                } else {
                    pairs.push(from, weight, ids, costs)
                }
                evaluations += ids.len();
            }
        });
        block.count(evaluations);
    }

    fn end_pass(&mut self) {
        let shards = self.shards.take().into_iter();
        let sums: Vec<PairSums> = shards.map(|shard| shard.pairs).collect();
        self.neighbors.renew(&Gathered::from(sums));
    }

    fn save(&self) -> Option<Vec<u8>> {
        io::to_vec(&self.neighbors).ok()
    }
}

/// Scratch of a shard, and the sums for the neighbor estimates of its rows (E14).
struct Shard<F> {
    space: SearchSpace,
    costs: Vec<F>,
    pairs: PairSums,
}

impl<F: Float> Shard<F> {
    fn new(k: usize) -> Self {
        Self {
            space: SearchSpace::new(k),
            costs: Vec::new(),
            pairs: PairSums::new(k, mean_cost),
        }
    }
}
