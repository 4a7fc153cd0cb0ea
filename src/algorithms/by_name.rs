//! Algorithms by name: which one, and its settings, chosen at run time.

use crate::algorithms;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::coreset::Lightweight;
use crate::e_step::Neighborhood;
use crate::em::Rule;
use crate::fit::checkpoint::Checkpoint;
use crate::fit::{Builder, Estimator, MeansOf, WarmStart};
use crate::io::Save;
use crate::m_step::{Covariance, MStep};
use crate::seed::{AfkMc2, KMeansPlusPlus, Seeder};
use std::fmt;
use std::str::FromStr;

/// A named algorithm with its settings, chosen at run time.
///
/// The names are those of the functions in [`algorithms`](crate::algorithms), with hyphens: see [`NAMES`](Self::NAMES).
/// Settings that an algorithm does not have are ignored, except for [another family](Self::with_family), which is an error; those that are not set have the defaults named here. Stages of your
/// own need the functions in [`algorithms`](crate::algorithms), or a [`Builder`].
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
/// let data = Dense::new(x.view())?;
/// for name in ["k-means", "vc-gmm", "fast"] {
///     let algorithm = name.parse::<Algorithm>()?.with_clusters(6).with_coreset(200);
///     let fit = algorithm.boxed()?.fit(&data)?;
///     assert_eq!(fit.model.predict(&data)?.len(), 600);
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    name: Name,
    clusters: Option<usize>,
    coreset: Option<usize>,
    memory: Option<usize>,
    c_prime: usize,
    neighbors: usize,
    random: usize,
    drawn: usize,
    chain: Option<usize>,
    greedy: bool,
    refined: bool,
    epsilon: f64,
    concentration: f64,
    family: Option<Family>,
    tolerance: Option<f64>,
    rule: Option<Rule>,
    max_iterations: Option<usize>,
    restarts: usize,
    seed: u64,
    cancel: Option<Cancel>,
    checkpoint: Option<Checkpoint>,
    warm: Option<WarmStart>,
}

/// What the components of a mixture are like, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// [`Covariance::TiedSpherical`].
    Shared,
    /// [`Covariance::Spherical`].
    Isotropic,
    /// [`Covariance::Diagonal`].
    Diagonal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    KMeans,
    KMeansCPrime,
    Gmm,
    LazyKMeans,
    LwcsKMeans,
    VarGmmS,
    VcGmm,
    DGmm,
    SparsifiedGmm,
    DpGmm,
    Fast,
}

/// One type for all seeders: so each algorithm is compiled once.
type AnySeeder<F> = Box<dyn Seeder<F>>;

impl Algorithm {
    /// All names.
    pub const NAMES: [&'static str; 11] = [
        "k-means",
        "k-means-c-prime",
        "gmm",
        "lazy-k-means",
        "lwcs-k-means",
        "var-gmm-s",
        "vc-gmm",
        "d-gmm",
        "sparsified-gmm",
        "dp-gmm",
        "fast",
    ];

    /// **Required.** The number of clusters; for `dp-gmm` the truncation.
    #[must_use]
    pub fn with_clusters(mut self, clusters: usize) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// Draws of the lightweight coreset. Default: none, but `lwcs-k-means` and `vc-gmm` draw 16 per cluster and 8,192 at
    /// least, and `fast` has its own.
    #[must_use]
    pub fn with_coreset(mut self, draws: usize) -> Self {
        self.coreset = Some(draws);
        self
    }

    /// Bytes that `fast` may keep of rows, as in [`fast_within`](crate::algorithms::fast_within). Default: no limit.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Members of a support, C' or H, of the truncated algorithms. Default 3.
    #[must_use]
    pub fn with_c_prime(mut self, c_prime: usize) -> Self {
        self.c_prime = c_prime;
        self
    }

    /// Neighbors of a component, G. Default 5.
    #[must_use]
    pub fn with_neighbors(mut self, neighbors: usize) -> Self {
        self.neighbors = neighbors;
        self
    }

    /// Random components added to every search, of `var-gmm-s` and `vc-gmm`. Default 0.
    #[must_use]
    pub fn with_random(mut self, random: usize) -> Self {
        self.random = random;
        self
    }

    /// Chain length of the seeder, where it is [`AfkMc2`]. Default: its own.
    #[must_use]
    pub fn with_chain(mut self, chain: usize) -> Self {
        self.chain = Some(chain);
        self
    }

    /// Several candidates for each seed, where the seeder is [`KMeansPlusPlus`]. Default: one.
    #[must_use]
    pub fn with_greedy(mut self, greedy: bool) -> Self {
        self.greedy = greedy;
        self
    }

    /// Seeds that are the means of [`algorithms::fast`], where the seeder is [`KMeansPlusPlus`]: mixtures often end at higher
    /// densities. Default: none.
    #[must_use]
    pub fn with_refined(mut self, refined: bool) -> Self {
        self.refined = refined;
        self
    }

    /// Components drawn per point and search, F, of `d-gmm`. Default 5.
    #[must_use]
    pub fn with_drawn(mut self, drawn: usize) -> Self {
        self.drawn = drawn;
        self
    }

    /// How much nearer a component must be, of `lazy-k-means`. Default 0.1.
    #[must_use]
    pub fn with_epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Concentration of the Dirichlet process. Default 1.
    #[must_use]
    pub fn with_concentration(mut self, concentration: f64) -> Self {
        self.concentration = concentration;
        self
    }

    /// What components are like. Default: one shared variance, but diagonal covariances for `sparsified-gmm`.
    /// `lazy-k-means`, `fast` and `dp-gmm` have their own.
    #[must_use]
    pub fn with_family(mut self, family: Family) -> Self {
        self.family = Some(family);
        self
    }

    /// As [`Builder::tolerance`]. Default: that of the algorithm.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// As [`Builder::stop_rule`]. Default: that of the algorithm.
    #[must_use]
    pub fn with_stop_rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// As [`Builder::max_iterations`]. Default: that of the algorithm.
    #[must_use]
    pub fn with_max_iterations(mut self, max_iterations: usize) -> Self {
        self.max_iterations = Some(max_iterations);
        self
    }

    /// As [`Builder::restarts`]. Default 1.
    #[must_use]
    pub fn with_restarts(mut self, restarts: usize) -> Self {
        self.restarts = restarts;
        self
    }

    /// As [`Builder::seed`]. Default 0.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// As [`Builder::cancel`].
    #[must_use]
    pub fn with_cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// As [`Builder::checkpoint`].
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: &Checkpoint) -> Self {
        self.checkpoint = Some(checkpoint.clone());
        self
    }

    /// As [`Builder::start_from`]: from a model of the algorithm's family.
    #[must_use]
    pub fn with_start_from(mut self, model: &impl Save) -> Self {
        self.warm = Some(WarmStart::new(model));
        self
    }

    /// The algorithm, ready to fit data of the number type `F`.
    ///
    /// # Errors
    /// As [`Builder::build`]; [`Error::Parameter`] for a family that the algorithm does not
    /// have.
    #[inline(never)]
    pub fn boxed<F: Float>(&self) -> Result<Box<dyn Estimator<F>>> {
        let k = self.clusters()?;
        let (c_prime, g) = (self.c_prime, self.neighbors);
        let plus_plus = self.plus_plus()?;
        let chain = self.chain.map_or_else(AfkMc2::default, AfkMc2::new);
        let chain: AnySeeder<F> = Box::new(chain);
        match self.name {
            Name::KMeans => self.of_families(algorithms::k_means(k).seeder(plus_plus)),
            Name::KMeansCPrime => {
                self.of_families(algorithms::k_means_c_prime(k, c_prime).seeder(plus_plus))
            }
            Name::Gmm | Name::SparsifiedGmm => {
                self.of_families(algorithms::gmm(k).seeder(plus_plus))
            }
            Name::LwcsKMeans => self.of_families(algorithms::lwcs_k_means(k, 1).seeder(chain)),
            Name::VarGmmS | Name::VcGmm => {
                let e_step = Neighborhood::new(c_prime, g).random(self.random);
                let builder = algorithms::var_gmm_s(k, c_prime, g).e_step(e_step);
                self.of_families(builder.seeder(chain))
            }
            Name::DGmm => {
                let builder = algorithms::d_gmm(k, c_prime, self.drawn);
                self.of_families(builder.seeder(chain))
            }
            Name::LazyKMeans => {
                self.no_family()?;
                let builder = algorithms::lazy_k_means(k, self.epsilon).seeder(plus_plus);
                self.finish(self.with_draws(builder))
            }
            Name::Fast => {
                self.no_family()?;
                let mut builder = match self.memory {
                    Some(bytes) => algorithms::fast_within(k, bytes),
                    None => algorithms::fast(k),
                };
                if let Some(draws) = self.coreset {
                    builder = builder.coreset(Lightweight::new(draws));
                }
                self.finish(builder)
            }
            Name::DpGmm => {
                self.no_family()?;
                let builder = algorithms::dp_gmm(k, self.concentration).seeder(plus_plus);
                self.finish(self.with_draws(builder))
            }
        }
    }

    /// With the components asked for.
    fn of_families<F: Float>(&self, builder: Builder<F>) -> Result<Box<dyn Estimator<F>>> {
        let builder = self.with_draws(builder);
        let own = match self.name {
            Name::SparsifiedGmm => Family::Diagonal,
            _ => Family::Shared,
        };
        let covariance = match self.family.unwrap_or(own) {
            Family::Shared => Covariance::TiedSpherical,
            Family::Isotropic => Covariance::Spherical,
            Family::Diagonal => Covariance::Diagonal,
        };
        self.finish(builder.covariance(covariance))
    }

    /// With the settings that all have.
    fn finish<F, M>(&self, builder: Builder<F, M>) -> Result<Box<dyn Estimator<F>>>
    where
        F: Float,
        M: MStep<F> + 'static,
    {
        let mut builder = builder.restarts(self.restarts).seed(self.seed);
        if let Some(cancel) = &self.cancel {
            builder = builder.cancel(cancel);
        }
        if let Some(checkpoint) = &self.checkpoint {
            builder = builder.checkpoint(checkpoint);
        }
        if let Some(warm) = &self.warm {
            builder = builder.warm_start(warm);
        }
        if let Some(rule) = self.rule {
            builder = builder.stop_rule(rule);
        }
        if let Some(tolerance) = self.tolerance {
            builder = builder.tolerance(tolerance);
        }
        if let Some(max_iterations) = self.max_iterations {
            builder = builder.max_iterations(max_iterations);
        }
        Ok(Box::new(builder.build()?))
    }

    /// Seeds of k-means++, or what k-means made of such.
    fn plus_plus<F: Float>(&self) -> Result<AnySeeder<F>> {
        Ok(match (self.refined, self.greedy) {
            (true, _) => Box::new(MeansOf::new(
                algorithms::fast::<F>(self.clusters()?).build()?,
            )),
            (false, true) => Box::new(KMeansPlusPlus::greedy()),
            (false, false) => Box::new(KMeansPlusPlus::new()),
        })
    }

    /// With a coreset, if there is to be one.
    fn with_draws<F: Float, M: MStep<F>>(&self, builder: Builder<F, M>) -> Builder<F, M> {
        let own = match self.name {
            Name::LwcsKMeans | Name::VcGmm => {
                let clusters = self.clusters.unwrap_or(0);
                Some(clusters.saturating_mul(16).max(8_192))
            }
            _ => None,
        };
        match self.coreset.or(own) {
            Some(draws) => builder.coreset(Lightweight::new(draws)),
            None => builder,
        }
    }

    fn clusters(&self) -> Result<usize> {
        let rule = "must be given: .with_clusters(k)";
        let missing = || Error::parameter("clusters", "unset", rule);
        self.clusters.ok_or_else(missing)
    }

    fn no_family(&self) -> Result<()> {
        match self.family {
            None => Ok(()),
            // What the others have anyway.
            Some(Family::Shared) if !self.is_dirichlet_process() => Ok(()),
            Some(family) => {
                let rule = "this algorithm has a family of its own: leave the family unset";
                Err(Error::parameter("family", format!("{family:?}"), rule))
            }
        }
    }

    /// Whether it is the Dirichlet process.
    pub(crate) fn is_dirichlet_process(&self) -> bool {
        self.name == Name::DpGmm
    }
}

/// The name.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[self.name as usize])
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// The algorithm of this name, with default settings and no number of clusters.
    fn from_str(name: &str) -> Result<Self> {
        const ALL: [Name; 11] = [
            Name::KMeans,
            Name::KMeansCPrime,
            Name::Gmm,
            Name::LazyKMeans,
            Name::LwcsKMeans,
            Name::VarGmmS,
            Name::VcGmm,
            Name::DGmm,
            Name::SparsifiedGmm,
            Name::DpGmm,
            Name::Fast,
        ];
        let place = Self::NAMES.iter().position(|own| *own == name);
        let Some(place) = place else {
            let rule = "must be k-means, k-means-c-prime, gmm, lazy-k-means, lwcs-k-means, var-gmm-s, vc-gmm, d-gmm, \
                sparsified-gmm, dp-gmm or fast";
            return Err(Error::parameter("algorithm", format!("{name:?}"), rule));
        };
        Ok(Self {
            name: ALL[place],
            clusters: None,
            coreset: None,
            memory: None,
            c_prime: 3,
            neighbors: 5,
            random: 0,
            drawn: 5,
            chain: None,
            greedy: false,
            refined: false,
            epsilon: 0.1,
            concentration: 1.0,
            family: None,
            tolerance: None,
            rule: None,
            max_iterations: None,
            restarts: 1,
            seed: 0,
            cancel: None,
            checkpoint: None,
            warm: None,
        })
    }
}
