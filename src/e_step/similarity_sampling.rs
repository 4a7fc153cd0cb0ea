//! The truncated search of D-GMM: the candidates of a point are drawn by how much they share points with its best component.

use super::exhaustive::All;
use super::pairs::PairSums;
use super::similarity::{Gaps, Similarity, least_shared};
use super::{EStep, PerShard, Search, loaded};
use crate::base::error::{Result, positive};
use crate::base::float::Float;
use crate::base::rng::Rng;
use crate::base::stage::Stage;
use crate::data::Rows;
use crate::io;
use crate::model::Mixture;
use crate::model::block::{Block, UNSET};
use crate::model::posterior;

/// A point tries a few components drawn in proportion to their similarity to its nearest one (\[DG\] Alg. 1;
/// [E25](crate::equations#e25), [E26](crate::equations#e26)).
///
/// $K(n)$ becomes the $H$ best of its last members and of $R$ components drawn without replacement from those
/// outside: at most $H + R$ distance evaluations per point and search. With $c_n$ the best member of the last $K(n)$, the
/// first one is drawn with the probability
///
/// $$p(j \mid n) = \frac{s_{c_n j}}{\sum_{l \notin K(n)} s_{c_n l}}, \qquad j \notin K(n)$$
///
/// and every further one in the same way from those that are left. The old support is among the candidates, so
/// the free energy does not fall ([E13](crate::equations#e13)).
///
/// Components are similar if they share points, by the responsibilities of the last search ([E2](crate::equations#e2)):
///
/// $$s_{ij} = \sum_{n : \, i, j \in K(n)} w_n q_{ni} q_{nj}$$
///
/// If fewer than $R$ components outside $K(n)$ have a positive similarity, the rest is drawn uniformly from all other
/// components, so that exploration never stops. In the first search no component has one.
///
/// When H is all components, a search is [`Exhaustive::all`](super::Exhaustive::all).
///
/// ```
/// use coremix::prelude::*;
/// # let birch = coremix::datasets::Birch::grid(40).generate::<f32>(1)?;
/// let data = Dense::new(birch.points.view())?; // 1,000 points in 25 clusters
/// let search = SimilaritySampling::default().c_prime(3).drawn(5);
/// let fit = algorithms::k_means(25).e_step(search).build()?.fit(&data)?;
/// let searches = fit.report.free_energies.len() as u64;
/// // The costs of the first supports are computed once more, under the variance that they start.
/// assert!(fit.report.evaluations.search <= 1_000 * (searches * (3 + 5) + 3));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimilaritySampling {
    c_prime: usize,
    drawn: usize,
}

impl Default for SimilaritySampling {
    /// With 3 components in a support, and 5 drawn ones.
    fn default() -> Self {
        Self::new(3, 5)
    }
}

impl SimilaritySampling {
    /// With these numbers of [components in a support](Self::c_prime) and of [drawn ones](Self::drawn).
    #[must_use]
    pub fn new(c_prime: usize, drawn: usize) -> Self {
        Self { c_prime, drawn }
    }

    /// Components in a support, H: at least 1, and clamped to the number of clusters. Default 3.
    #[must_use]
    pub fn c_prime(self, c_prime: usize) -> Self {
        Self { c_prime, ..self }
    }

    /// Other components that each point tries in each search, R: at least 1, and clamped to those outside the support. Default 5.
    #[must_use]
    pub fn drawn(self, drawn: usize) -> Self {
        Self { drawn, ..self }
    }
}

impl Stage for SimilaritySampling {
    fn check(&self, _clusters: usize) -> Result<()> {
        positive("c_prime", self.c_prime)?;
        positive("drawn", self.drawn)
    }
}

impl<F: Float> EStep<F> for SimilaritySampling {
    #[inline(never)]
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        saved: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let k = model.components();
        if self.c_prime >= k {
            // Every support is full already; there is nothing to search.
            return Ok(Box::new(All::of_width(k)));
        }
        let similarity = match saved {
            Some(bytes) => loaded(bytes, |known: &Similarity| known.is_sound(k))?,
            None => Similarity::unknown(k),
        };
        Ok(Box::new(SamplingSearch {
            settings: *self,
            similarity,
            shards: PerShard::default(),
        }))
    }
}

struct SamplingSearch<F> {
    settings: SimilaritySampling,
    similarity: Similarity,
    shards: PerShard<Shard<F>>,
}

impl<F: Float> Search<F> for SamplingSearch<F> {
    fn width(&self) -> usize {
        self.settings.c_prime
    }

    /// Searches a block of rows (E25).
    #[inline(never)]
    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, rng: &mut Rng) {
        let k = block.components();
        let width = block.width();
        let cost = model.cost();
        let beta = model.log_joint().beta;
        let drawn = self.settings.drawn.min(k - width);
        let make = || Shard::new(k);
        self.shards.with(block.shard(), make, |shard| {
            for i in 0..rows.len() {
                let support = block.support(i);
                let candidates = &mut shard.candidates;
                candidates.clear();
                if support[0] != UNSET {
                    candidates.extend_from_slice(support);
                    let similarity = &self.similarity;
                    similarity.draw(support[0], drawn, rng, &mut shard.gaps, candidates);
                }
                let known = candidates.len();
                candidates.resize(width + drawn, UNSET);
                rng.fill_distinct(candidates, known, k);
                cost.some(rows, i, candidates, &mut shard.costs);
                block.set_best(i, candidates, &shard.costs);
                shard.share(block.support(i), block.costs(i), rows.weight(i), beta);
            }
        });
        block.count(rows.len() * (width + drawn));
    }

    fn end_pass(&mut self) {
        let shards = self.shards.take().into_iter();
        self.similarity = Similarity::of(shards.map(|shard| shard.pairs).collect());
    }

    fn save(&self) -> Option<Vec<u8>> {
        io::to_vec(&self.similarity).ok()
    }
}

/// Scratch of a shard, and what its rows add to the similarities (E26).
struct Shard<F> {
    candidates: Vec<u32>,
    gaps: Gaps,
    costs: Vec<F>,
    responsibilities: Vec<f64>,
    pairs: PairSums,
}

impl<F: Float> Shard<F> {
    fn new(k: usize) -> Self {
        Self {
            candidates: Vec::new(),
            gaps: Gaps::default(),
            costs: Vec::new(),
            responsibilities: Vec::new(),
            pairs: PairSums::new(k, least_shared),
        }
    }

    /// Adds a point of this weight, its support, and the costs of the members, best first.
    #[inline]
    fn share(&mut self, support: &[u32], costs: &[F], weight: f64, beta: f64) {
        let best = costs[0].to_f64();
        if support.len() == 1 || !best.is_finite() {
            // A point of one component, or infinitely far from all: it adds to no pair.
            return;
        }
        let q = &mut self.responsibilities;
        q.resize(support.len(), 0.0);
        posterior::shares(costs, best, beta, q);
        // Each pair once: similarities are symmetric.
        for i in 0..support.len() - 1 {
            let others = &support[i + 1..];
            let shares = &q[i + 1..];
            self.pairs.push(support[i], weight * q[i], others, shares);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Dense};
    use crate::families::GaussianMixture;
    use ndarray::{Array1, Array2};

    struct Problem {
        x: Array2<f64>,
        w: Array1<f64>,
        means: Array2<f64>,
        variance: f64,
    }

    struct Searched {
        supports: Vec<u32>,
        similarity: Similarity,
    }

    impl Problem {
        fn new(n: usize, k: usize, variance: f64) -> Self {
            let mut rng = Rng::from_seed(6);
            Self {
                x: Array2::from_shape_fn((n, 3), |_| rng.normal()),
                w: Array1::from_shape_fn(n, |n| [0.0, 1.0, 0.5, 3.0][n % 4]),
                means: Array2::from_shape_fn((k, 3), |_| rng.normal()),
                variance,
            }
        }

        /// The results of consecutive searches over `shards` equal blocks.
        fn search(
            &self,
            e_step: SimilaritySampling,
            shards: usize,
            searches: usize,
        ) -> Vec<Searched> {
            let data = Dense::weighted(self.x.view(), self.w.view()).unwrap();
            let model = GaussianMixture::tied_spherical(self.means.view(), self.variance).unwrap();
            let SimilaritySampling {
                c_prime: h,
                drawn: r,
            } = e_step;
            let n = self.x.nrows();
            let k = self.means.nrows();
            let mut rng = Rng::from_seed(4);
            let mut search = SamplingSearch {
                settings: e_step,
                similarity: Similarity::unknown(k),
                shards: PerShard::default(),
            };
            let mut supports = vec![UNSET; n * h];
            let each = (0..searches).map(|_| {
                for shard in 0..shards {
                    let range = shard * n / shards..(shard + 1) * n / shards;
                    let mut rows = Rows::default();
                    let frame = Mixture::<f64>::frame(&model);
                    data.load(range.clone(), frame, &mut rows).unwrap();
                    let mut block = Block::new(k, h);
                    let places = range.start * h..range.end * h;
                    block.reset(rows.len(), &supports[places.clone()]);
                    block.shard = shard;
                    search.search(&model, &rows, &mut block, &mut rng);
                    let evaluations = (rows.len() * (h + r.min(k - h))) as u64;
                    assert_eq!(block.evaluations(), evaluations);
                    supports[places].copy_from_slice(&block.supports);
                }
                Search::<f64>::end_pass(&mut search);
                Searched {
                    supports: supports.clone(),
                    similarity: search.similarity.clone(),
                }
            });
            each.collect()
        }

        fn squared_distance(&self, n: usize, c: u32) -> f64 {
            let pairs = self.x.row(n).into_iter().zip(self.means.row(c as usize));
            pairs.map(|(a, b)| (a - b).powi(2)).sum()
        }

        /// The dense table of (E26), from supports and the definition alone.
        fn naive(&self, supports: &[u32], h: usize) -> Array2<f64> {
            let k = self.means.nrows();
            let mut table = Array2::zeros((k, k));
            for (n, support) in supports.chunks(h).enumerate() {
                let density = |c: u32| (-self.squared_distance(n, c) / (2.0 * self.variance)).exp();
                let total: f64 = support.iter().map(|&c| density(c)).sum();
                for &i in support {
                    for &j in support.iter().filter(|&&j| j != i) {
                        table[[i as usize, j as usize]] +=
                            self.w[n] * (density(i) / total) * (density(j) / total);
                    }
                }
            }
            table
        }
    }

    #[test]
    fn similarities_are_those_of_the_naive_table() {
        let problem = Problem::new(600, 12, 0.2);
        let h = 3;
        for shards in [1, 3] {
            let mut iterations = problem.search(SimilaritySampling::new(h, 2), shards, 4);
            let Searched {
                supports,
                similarity,
            } = iterations.pop().unwrap();
            let naive = problem.naive(&supports, h);
            for (c, naive) in naive.outer_iter().enumerate() {
                let row = similarity.row(c);
                let total = naive.sum();
                assert_eq!(row.len(), naive.iter().filter(|s| **s > 0.0).count());
                for (id, s) in row {
                    let expected = naive[id as usize];
                    let slack = 1e-9 * expected + 1e-14 * total;
                    assert!((s - expected).abs() <= slack, "{s} {expected}");
                }
            }
            let pairs = naive.iter().filter(|s| **s > 0.0).count();
            assert!(pairs > 40, "{pairs} pairs show little");
        }
    }

    /// With one component in reach of a row there is nobody similar to draw, and all draws are uniform: every
    /// point still finds its best component.
    #[test]
    fn exploration_never_stops() {
        let problem = Problem::new(200, 30, 1e-7);
        let iterations = problem.search(SimilaritySampling::new(2, 2), 1, 120);
        let similar = |searched: &Searched| (0..30).any(|c| !searched.similarity.row(c).is_empty());
        assert!(!iterations.iter().any(similar));
        for (n, support) in iterations[119].supports.chunks(2).enumerate() {
            let distance = |c: &u32| problem.squared_distance(n, *c);
            let nearest = (0..30).min_by(|a, b| distance(a).total_cmp(&distance(b)));
            assert_eq!(Some(support[0]), nearest);
        }
    }

    /// Drawn components are those of the row of the head, not of any other member.
    #[test]
    fn draws_come_from_the_row_of_the_nearest_component() {
        let h = 3;
        let mut checked = 0;
        let iterations = Problem::new(900, 25, 0.2).search(SimilaritySampling::new(h, 2), 1, 8);
        for pair in iterations.windows(2) {
            let supports = pair[0].supports.chunks(h).zip(pair[1].supports.chunks(h));
            for (before, after) in supports {
                let row = pair[0].similarity.row(before[0] as usize);
                let outside = || row.iter().filter(|e| !before.contains(&e.0));
                if outside().count() >= 2 {
                    let mut fresh = after.iter().filter(|c| !before.contains(c));
                    assert!(fresh.all(|c| outside().any(|e| e.0 == *c)));
                    checked += 1;
                }
            }
        }
        assert!(checked > 500, "{checked}");
    }
}
