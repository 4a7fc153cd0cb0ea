//! Algorithms by name: which one, and its settings, chosen at run time.

use crate::algorithms as own;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::coreset::{Coreset, Full, Lightweight};
use crate::e_step::{EStep, Neighborhood};
use crate::em::Rule;
use crate::fit::checkpoint::Checkpoint;
use crate::fit::{Builder, Estimator, MeansOf, WarmStart};
use crate::io::Save;
use crate::m_step::{Diagonal, Isotropic, MStep, SharedIsotropic};
use crate::seed::{AfkMc2, KMeansPlusPlus, Seeder};
use std::fmt;
use std::str::FromStr;

/// A named algorithm with its settings, chosen at run time.
///
/// The names are those of the functions in [`algorithms`](crate::algorithms), with hyphens: see [`NAMES`](Self::NAMES).
/// A setting that the algorithm does not have is an error; one that is not set has the default named here. Stages of your
/// own need the functions in [`algorithms`](crate::algorithms), or a [`Builder`].
///
/// ```
/// use coremix::prelude::*;
/// # use ndarray::Array2;
/// # let x = Array2::from_shape_fn((600, 2), |(n, j)| (n % 6 * (j + 1)) as f64 + 0.01 * (n / 6) as f64);
/// let data = Dense::new(x.view())?;
/// for name in ["k-means", "vc-gmm", "fast"] {
///     let algorithm = name.parse::<Algorithm>()?.clusters(6).coreset(200);
///     let fit = algorithm.boxed()?.fit(&data)?;
///     assert_eq!(fit.model.predict(&data)?.len(), 600);
/// }
/// let error = "k-means".parse::<Algorithm>()?.clusters(6).chain(10).boxed::<f64>().err().unwrap();
/// let has = "coreset, family, greedy, refined";
/// assert_eq!(error.to_string(), format!("chain is no setting of k-means: choose from {has}"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    name: &'static str,
    settings: Settings,
    cancel: Option<Cancel>,
    checkpoint: Option<Checkpoint>,
    warm: Option<WarmStart>,
}

/// What the components of a mixture are like, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// [`SharedIsotropic`].
    Shared,
    /// [`Isotropic`].
    Isotropic,
    /// [`Diagonal`].
    Diagonal,
}

/// The field, the method and the name of each setting, written once.
macro_rules! settings {
    ($($(#[$doc:meta])* $setting:ident: $kind:ty,)*) => {
        #[derive(Clone, Debug, Default, PartialEq)]
        struct Settings {
            $($setting: Option<$kind>,)*
        }

        impl Settings {
            /// Names of the settings that were given.
            fn given(&self) -> impl Iterator<Item = &'static str> {
                let all = [$(self.$setting.is_some().then_some(stringify!($setting))),*];
                all.into_iter().flatten()
            }
        }

        impl Algorithm {
            $($(#[$doc])*
            #[must_use]
            pub fn $setting(mut self, $setting: $kind) -> Self {
                self.settings.$setting = Some($setting);
                self
            })*
        }
    };
}

settings! {
    /// **Required.** The number of clusters; for `dp-gmm` the truncation.
    clusters: usize,
    /// Draws of the lightweight coreset. Default: none, but `lwcs-k-means` and `vc-gmm` draw 16 per cluster and 8,192 at
    /// least, and `fast` has its own.
    coreset: usize,
    /// Bytes that `fast` may keep of rows, as in [`fast_within`](crate::algorithms::fast_within). Default: no limit.
    memory: usize,
    /// Members of a support, C' or H, of the truncated algorithms. Default 3.
    c_prime: usize,
    /// Neighbors of a component, G, of `var-gmm-s` and `vc-gmm`. Default 5.
    neighbors: usize,
    /// Random components added to every search, of `var-gmm-s` and `vc-gmm`. Default 0.
    random: usize,
    /// Components drawn per point and search, F, of `d-gmm`. Default 5.
    drawn: usize,
    /// Chain length of the seeder, where it is [`AfkMc2`]. Default: its own.
    chain: usize,
    /// Several candidates for each seed, where the seeder is [`KMeansPlusPlus`]. Default: one.
    greedy: bool,
    /// Seeds that are the means of [`algorithms::fast`](crate::algorithms::fast), where the seeder is [`KMeansPlusPlus`]:
    /// mixtures often end at higher densities. Default: none.
    refined: bool,
    /// How much nearer a component must be, of `lazy-k-means`. Default 0.1.
    epsilon: f64,
    /// Concentration of the Dirichlet process. Default 1.
    concentration: f64,
    /// What components are like. Default: one shared variance, but diagonal covariances for `sparsified-gmm`.
    /// `lazy-k-means`, `fast` and `dp-gmm` have their own.
    family: Family,
    /// As [`Builder::tolerance`]. Default: that of the algorithm.
    tolerance: f64,
    /// As [`Builder::stop_rule`]. Default: that of the algorithm.
    stop_rule: Rule,
    /// As [`Builder::max_iterations`]. Default: that of the algorithm.
    max_iterations: usize,
    /// As [`Builder::restarts`]. Default 1.
    restarts: usize,
    /// As [`Builder::seed`]. Default 0.
    seed: u64,
}

/// The settings that all algorithms have.
const COMMON: [&str; 6] = [
    "clusters",
    "tolerance",
    "stop_rule",
    "max_iterations",
    "restarts",
    "seed",
];

/// What `boxed` makes: an algorithm with its settings.
type Built<F> = Result<Box<dyn Estimator<F>>>;

/// An algorithm: its name, the settings that it has beside the common ones, and its constructor.
struct Entry<F: Float> {
    name: &'static str,
    has: &'static [&'static str],
    build: fn(&Algorithm, usize) -> Built<F>,
}

const PLUS_PLUS: &[&str] = &["coreset", "family", "greedy", "refined"];
const NEIGHBORHOOD: &[&str] = &[
    "coreset",
    "family",
    "c_prime",
    "neighbors",
    "random",
    "chain",
];

const fn entry<F: Float>(
    name: &'static str,
    has: &'static [&'static str],
    build: fn(&Algorithm, usize) -> Built<F>,
) -> Entry<F> {
    Entry { name, has, build }
}

const fn table<F: Float>() -> [Entry<F>; 11] {
    [
        entry("k-means", PLUS_PLUS, |a, k| {
            a.of_families(a.plus_plus(k, own::k_means(k))?, Family::Shared)
        }),
        entry(
            "k-means-c-prime",
            &["coreset", "family", "c_prime", "greedy", "refined"],
            |a, k| {
                let builder = own::k_means_c_prime(k, a.settings.c_prime.unwrap_or(3));
                a.of_families(a.plus_plus(k, builder)?, Family::Shared)
            },
        ),
        entry("gmm", PLUS_PLUS, |a, k| {
            a.of_families(a.plus_plus(k, own::gmm(k))?, Family::Shared)
        }),
        entry(
            "lazy-k-means",
            &["coreset", "epsilon", "greedy", "refined"],
            |a, k| {
                let builder = own::lazy_k_means(k, a.settings.epsilon.unwrap_or(0.1));
                a.finish(a.plus_plus(k, builder)?)
            },
        ),
        entry("lwcs-k-means", &["coreset", "family", "chain"], |a, k| {
            a.of_families(a.chains(own::k_means(k), Some(k)), Family::Shared)
        }),
        entry("var-gmm-s", NEIGHBORHOOD, |a, k| a.neighborhood(k, None)),
        entry("vc-gmm", NEIGHBORHOOD, |a, k| a.neighborhood(k, Some(k))),
        entry(
            "d-gmm",
            &["coreset", "family", "c_prime", "drawn", "chain"],
            |a, k| {
                let (h, r) = (
                    a.settings.c_prime.unwrap_or(3),
                    a.settings.drawn.unwrap_or(5),
                );
                a.of_families(a.chains(own::d_gmm(k, h, r), None), Family::Shared)
            },
        ),
        entry("sparsified-gmm", PLUS_PLUS, |a, k| {
            a.of_families(a.plus_plus(k, own::gmm(k))?, Family::Diagonal)
        }),
        entry(
            "dp-gmm",
            &["coreset", "concentration", "greedy", "refined"],
            |a, k| {
                let builder = own::dp_gmm(k, a.settings.concentration.unwrap_or(1.0));
                a.finish(a.plus_plus(k, builder)?)
            },
        ),
        entry("fast", &["coreset", "memory"], |a, k| {
            let builder = match a.settings.memory {
                Some(bytes) => own::fast_within(k, bytes),
                None => own::fast(k),
            };
            match a.settings.coreset {
                Some(draws) => a.finish(builder.coreset(Lightweight::new(draws))),
                None => a.finish(builder),
            }
        }),
    ]
}

/// One type for all seeders, so that each algorithm is compiled once.
type AnySeeder<F> = Box<dyn Seeder<F> + Send>;

/// A builder whose seeder and coreset are chosen.
type Seeded<F, E, M = SharedIsotropic> = Builder<Option<Lightweight>, AnySeeder<F>, E, M>;

impl Algorithm {
    /// All names.
    pub const NAMES: [&'static str; 11] = {
        let table = table::<f64>();
        let mut names = [""; 11];
        let mut i = 0;
        while i < names.len() {
            names[i] = table[i].name;
            i += 1;
        }
        names
    };

    /// As [`Builder::cancel`].
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// As [`Builder::checkpoint`].
    #[must_use]
    pub fn checkpoint(mut self, checkpoint: &Checkpoint) -> Self {
        self.checkpoint = Some(checkpoint.clone());
        self
    }

    /// As [`Builder::start_from`]: from a model of the algorithm's family.
    #[must_use]
    pub fn start_from(mut self, model: &impl Save) -> Self {
        self.warm = Some(WarmStart::new(model));
        self
    }

    /// The algorithm, ready to fit data of the number type `F`.
    ///
    /// # Errors
    /// As [`Builder::build`]; [`Error::Unknown`] for a setting that the algorithm does not have.
    #[inline(never)]
    pub fn boxed<F: Float>(&self) -> Result<Box<dyn Estimator<F>>> {
        let table = table::<F>();
        let entry = table.iter().find(|entry| entry.name == self.name);
        let entry = entry.expect("parsed from the table");
        let has = |setting: &&str| COMMON.contains(setting) || entry.has.contains(setting);
        if let Some(setting) = self.settings.given().find(|setting| !has(setting)) {
            let what = format!("setting of {}", self.name);
            return Err(Error::unknown(setting, what, entry.has));
        }
        let rule = "must be given: .clusters(k)";
        let missing = || Error::parameter("clusters", "unset", rule);
        (entry.build)(self, self.settings.clusters.ok_or_else(missing)?)
    }

    /// With seeds of k-means++, or what k-means made of such.
    fn plus_plus<F: Float, E, M>(
        &self,
        k: usize,
        builder: Builder<Full, KMeansPlusPlus, E, M>,
    ) -> Result<Seeded<F, E, M>> {
        let greedy = self.settings.greedy.unwrap_or(false);
        let seeder: AnySeeder<F> = match self.settings.refined.unwrap_or(false) {
            true => Box::new(MeansOf::new(own::fast(k).build()?)),
            false if greedy => Box::new(KMeansPlusPlus::greedy()),
            false => Box::new(KMeansPlusPlus::new()),
        };
        let draws = self.settings.coreset.map(Lightweight::new);
        Ok(builder.seeder(seeder).coreset(draws))
    }

    /// With seeds of AFK-MC^2, and a coreset for so many clusters if there are some.
    fn chains<F: Float, S, E>(
        &self,
        builder: Builder<Full, S, E>,
        for_clusters: Option<usize>,
    ) -> Seeded<F, E> {
        let chain = self.settings.chain;
        let seeder: AnySeeder<F> = Box::new(chain.map_or_else(AfkMc2::default, AfkMc2::new));
        let own = for_clusters.map(|k| k.saturating_mul(16).max(8_192));
        let draws = self.settings.coreset.or(own);
        builder.seeder(seeder).coreset(draws.map(Lightweight::new))
    }

    fn neighborhood<F: Float>(&self, k: usize, for_clusters: Option<usize>) -> Built<F> {
        let s = &self.settings;
        let search = Neighborhood::new(s.c_prime.unwrap_or(3), s.neighbors.unwrap_or(5));
        let builder = own::k_means(k).e_step(search.random(s.random.unwrap_or(0)));
        self.of_families(self.chains(builder, for_clusters), Family::Shared)
    }

    /// With the components asked for.
    fn of_families<F: Float, E>(&self, builder: Seeded<F, E>, own: Family) -> Built<F>
    where
        E: Clone + Send + 'static,
        E: EStep<F, <SharedIsotropic as MStep<F>>::Model>,
        E: EStep<F, <Isotropic as MStep<F>>::Model>,
        E: EStep<F, <Diagonal as MStep<F>>::Model>,
    {
        match self.settings.family.unwrap_or(own) {
            Family::Shared => self.finish(builder),
            Family::Isotropic => self.finish(builder.m_step(Isotropic::new())),
            Family::Diagonal => self.finish(builder.m_step(Diagonal::new())),
        }
    }

    /// With the settings that all have.
    fn finish<F, C, S, E, M>(&self, mut builder: Builder<C, S, E, M>) -> Built<F>
    where
        F: Float,
        C: Coreset<F> + Send + 'static,
        S: Seeder<F> + Send + 'static,
        M: MStep<F> + Send + 'static,
        E: EStep<F, M::Model> + Clone + Send + 'static,
    {
        let s = &self.settings;
        builder = builder
            .restarts(s.restarts.unwrap_or(1))
            .seed(s.seed.unwrap_or(0));
        if let Some(cancel) = &self.cancel {
            builder = builder.cancel(cancel);
        }
        if let Some(checkpoint) = &self.checkpoint {
            builder = builder.checkpoint(checkpoint);
        }
        if let Some(warm) = &self.warm {
            builder = builder.warm_start(warm);
        }
        if let Some(rule) = s.stop_rule {
            builder = builder.stop_rule(rule);
        }
        if let Some(tolerance) = s.tolerance {
            builder = builder.tolerance(tolerance);
        }
        if let Some(max_iterations) = s.max_iterations {
            builder = builder.max_iterations(max_iterations);
        }
        Ok(Box::new(builder.build()?))
    }
}

/// The name.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// The algorithm of this name, with default settings and no number of clusters.
    fn from_str(name: &str) -> Result<Self> {
        let known = Self::NAMES.into_iter().find(|known| *known == name);
        let unknown = || Error::unknown(name, "algorithm", &Self::NAMES);
        Ok(Self {
            name: known.ok_or_else(unknown)?,
            settings: Settings::default(),
            cancel: None,
            checkpoint: None,
            warm: None,
        })
    }
}
