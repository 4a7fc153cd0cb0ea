//! Algorithms by name: which one, and its settings, chosen at run time.

use super::memory::Sizes;
use crate::algorithms;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result, positive, require};
use crate::base::float::Float;
use crate::base::parallel;
use crate::coreset::Lightweight;
use crate::e_step::{Neighborhood, bounds_may_pay};
use crate::em::Rule;
use crate::em::checkpoint::Checkpoint;
use crate::families::saved::Save;
use crate::families::{
    Column, Covariance, DirichletProcess, Gaussian, Prior, Table, VonMisesFisher,
};
use crate::fit::{Builder, Estimator, Phase, Shape, WarmStart};
use crate::m_step::MStep;
use crate::seed::{AfkMc2, Given, KMeansPlusPlus};
use ndarray::Array2;
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
/// let has = "k-means has no setting `chain`; it has coreset, covariance, prior, greedy, refined, metric. ";
/// let others = "`chain` is a setting of lwcs-k-means, var-gmm-s, vc-gmm, d-gmm";
/// assert_eq!(error.to_string(), format!("{has}{others}"));
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
                [$(self.$setting.is_some().then_some(stringify!($setting))),*].into_iter().flatten()
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
    /// Draws of the lightweight coreset. Default: none, but `lwcs-k-means` and `vc-gmm` draw 100 per cluster and 8,192 at
    /// least, and `fast` has its own.
    coreset: usize,
    /// Bytes that `fast` may take besides the rows, as in [`fast_within`](crate::algorithms::fast_within), with what a
    /// [checkpoint](Self::checkpoint) takes. Default: no limit.
    memory: usize,
    /// Members of a support, C' or H, of the truncated algorithms. Default 3.
    c_prime: usize,
    /// Neighbors of a component, G, of `var-gmm-s` and `vc-gmm`. Default 5.
    neighbors: usize,
    /// Random components added to every search, of `var-gmm-s` and `vc-gmm`. Default 0.
    random: usize,
    /// Components drawn per point and search, R, of `d-gmm`. Default 5.
    drawn: usize,
    /// Chain length of the seeder, where it is [`AfkMc2`]. Default: its own.
    chain: usize,
    /// Several candidates for each seed, where the seeder is [`KMeansPlusPlus`]. Default: one.
    greedy: bool,
    /// Seeds that are the means of [`algorithms::fast`](crate::algorithms::fast), where the seeder is [`KMeansPlusPlus`]:
    /// mixtures often end at higher densities. Default: of `gmm` alone.
    refined: bool,
    /// Centres to start from, in place of the algorithm's seeder: see [`Given`]. Default: none.
    centres: Array2<f64>,
    /// How much nearer a component must be, of `lazy-k-means`. Default 0.1.
    epsilon: f64,
    /// Concentration of the Dirichlet process. Default 1.
    concentration: f64,
    /// The Dirichlet process with its priors, in place of `concentration`. Default: with that concentration.
    process: DirichletProcess,
    /// The kind of the covariances. Default: one shared variance, but diagonal covariances for `sparsified-gmm`. In a `table` they are those of
    /// the numbers together; by default numbers are independent.
    covariance: Covariance,
    /// The kinds of the columns, of `table`. Default: all are numbers.
    columns: Vec<Column>,
    /// Rows that components have in advance, as [`Builder::prior`]. Default: none. In a `table` they are for all columns
    /// ([`Table::prior_rows`]), and a ridge and the like for the covariances of its numbers.
    prior: Prior,
    /// How rows are compared. Default: by distances.
    metric: Metric,
    /// As [`Builder::tolerance`]. Default: that of the algorithm.
    tolerance: f64,
    /// As [`Builder::stop_rule`]. Default: that of the algorithm.
    stop_rule: Rule,
    /// As [`Builder::max_iterations`]. Default: that of the algorithm.
    max_iterations: usize,
    /// As [`Builder::restarts`]. Default 1, of `table` 8.
    restarts: usize,
    /// As [`Builder::standardise`]. Default: no.
    standardise: bool,
    /// As [`Builder::seed`]. Default 0.
    seed: u64,
}

const COMMON: &[&str] = &[
    "clusters",
    "centres",
    "tolerance",
    "stop_rule",
    "max_iterations",
    "restarts",
    "standardise",
    "seed",
];

/// A builder of one of the families.
enum Made<F: Float> {
    Gaussian(Builder<F>),
    Dirichlet(Builder<F, DirichletProcess>),
    Table(Builder<F, Table>),
}

/// How rows are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// By squared distances.
    #[default]
    Euclidean,
    /// By cosines: rows and centres have length 1, as in [`spherical_k_means`](crate::algorithms::spherical_k_means). Components are
    /// [`VonMisesFisher::tied`] ones; with [`Covariance::Spherical`] each has a [concentration of its own](VonMisesFisher).
    Cosine,
}

/// An algorithm: the settings that it has besides the common ones, and its columns of the table.
struct Entry {
    settings: &'static [&'static str],
    rows: Fitted,
    supports: Width,
}

/// The rows that a fit is on.
#[derive(Clone, Copy, PartialEq)]
enum Fitted {
    /// All, unless a coreset is asked for.
    All,
    /// A coreset.
    Drawn,
    /// All, after coresets.
    Phases,
}

/// How many components share a row.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    One,
    Members,
    Full,
}

macro_rules! algorithms {
    ($($name:literal $rows:ident $width:ident [$($setting:ident)*]
       => |$s:pat_param, $k:ident| $family:ident $made:expr;)*) => {
        impl Algorithm {
            /// All names.
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            fn entry(name: &str) -> Entry {
                match name {
                    $($name => Entry {
                        settings: &[$(stringify!($setting)),*],
                        rows: Fitted::$rows,
                        supports: Width::$width,
                    },)*
                    _ => unreachable!("parsed from the names"),
                }
            }

            fn made<F: Float>(&self, clusters: usize) -> Made<F> {
                match self.name {
                    $($name => {
                        let $s = &self.settings;
                        let $k = clusters;
                        Made::$family($made)
                    })*
                    _ => unreachable!("parsed from the names"),
                }
            }
        }
    };
}

// Name, the rows that are fitted, how many components share one; settings; family and constructor.
algorithms! {
    "k-means" All One [coreset covariance prior greedy refined metric] => |_, k| Gaussian algorithms::k_means(k);
    "k-means-c-prime" All Members [coreset covariance prior c_prime greedy refined metric] =>
        |s, k| Gaussian algorithms::k_means_c_prime(k, s.members());
    "gmm" All Full [coreset covariance prior greedy refined metric] => |_, k| Gaussian algorithms::gmm(k);
    "lazy-k-means" All One [coreset epsilon greedy refined metric] =>
        |s, k| Gaussian algorithms::lazy_k_means(k, s.epsilon.unwrap_or(0.1));
    "lwcs-k-means" Drawn One [coreset covariance prior chain metric] =>
        |_, k| Gaussian algorithms::lwcs_k_means(k, draws(k));
    "var-gmm-s" All Members [coreset covariance prior c_prime neighbors random chain metric] =>
        |s, k| Gaussian algorithms::truncated(k, s.neighborhood());
    "vc-gmm" Drawn Members [coreset covariance prior c_prime neighbors random chain metric] =>
        |s, k| Gaussian algorithms::truncated(k, s.neighborhood()).coreset(Lightweight::new(draws(k)));
    "d-gmm" All Members [coreset covariance prior c_prime drawn chain metric] =>
        |s, k| Gaussian algorithms::d_gmm(k, s.members(), s.drawn.unwrap_or(5));
    "sparsified-gmm" All Full [coreset covariance prior greedy refined] =>
        |_, k| Gaussian algorithms::sparsified_gmm(k);
    "dp-gmm" All Full [coreset concentration process greedy refined] => |s, k| Dirichlet {
        let process = || DirichletProcess::new(s.concentration.unwrap_or(1.0));
        algorithms::dp_gmm(k, 1.0).m_step(s.process.clone().unwrap_or_else(process))
    };
    "table" All Full [coreset columns covariance prior greedy] =>
        |s, k| Table algorithms::table(k, s.columns.clone().unwrap_or_default());
    "fast" Phases One [coreset memory metric] => |_, k| Gaussian algorithms::fast(k);
}

fn draws(clusters: usize) -> usize {
    clusters.saturating_mul(100).max(8_192)
}

impl Settings {
    fn members(&self) -> usize {
        self.c_prime.unwrap_or(3)
    }

    fn neighborhood(&self) -> Neighborhood {
        let search = Neighborhood::new(self.members(), self.neighbors.unwrap_or(5));
        search.random(self.random.unwrap_or(0))
    }
}

impl Algorithm {
    /// The names of the settings that it has: each is a method.
    #[must_use]
    pub fn settings(&self) -> Vec<&'static str> {
        [COMMON, Self::entry(self.name).settings].concat()
    }

    /// The components that share a row: one, some ([`c_prime`](Self::c_prime)), or `None` for all of them.
    #[must_use]
    pub fn members(&self) -> Option<usize> {
        match Self::entry(self.name).supports {
            Width::One => Some(1),
            Width::Members => Some(self.settings.members()),
            Width::Full => None,
        }
    }

    /// As [`Builder::cancel`].
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Upper bound on the bytes that a fit of this many rows takes at its peak, besides the rows themselves: from the sizes of
    /// all that it stores. `stored` is the number of values that [sparse](crate::data::Sparse) rows store in all; `None` for other rows.
    ///
    /// For `fast` with a limit on its [`memory`](Self::memory): what it takes in any case, if that is more.
    ///
    /// # Errors
    /// Without a number of clusters, or with none.
    pub fn peak_memory<F: Float>(
        &self,
        rows: usize,
        columns: usize,
        stored: Option<usize>,
    ) -> Result<usize> {
        let s = &self.settings;
        let clusters = self.number()?;
        positive("clusters", clusters)?;
        let entry = Self::entry(self.name);
        let has = |setting| entry.settings.contains(&setting);
        let shape = Shape {
            rows,
            columns,
            clusters,
        };
        let sizes = Sizes::of::<F>(shape);
        let sizes = stored.map_or(sizes, |stored| sizes.sparse(stored));
        if entry.rows == Fitted::Phases {
            let phases: Vec<Phase<F>> = match s.memory {
                Some(limit) => algorithms::phases_within(limit, self.copies(8.0))(shape),
                None => algorithms::fast_phases(shape),
            };
            let of_phases =
                sizes.phases(&phases, s.coreset.unwrap_or(algorithms::rows_for(clusters)));
            // A limit does not count blocks: what fits may not depend on the number of threads.
            let blocks = s.memory.map_or_else(|| sizes.blocks(), |_| 0.0);
            let extra = self.copies(8.0) * rows as f64 + blocks;
            return Ok((of_phases + extra) as usize);
        }
        let drawn = (entry.rows == Fitted::Drawn).then(|| draws(clusters));
        let coreset = s.coreset.or(drawn);
        let searched = coreset.map_or(rows, |draws| draws.min(rows));
        let supports = Sizes::supports(self.members().unwrap_or(0));
        let mut per_row = supports + self.copies(supports);
        let bounded = matches!(self.name, "k-means" | "lwcs-k-means");
        if bounded && bounds_may_pay(clusters, columns) {
            let of_bounds = Sizes::labelled::<F>();
            per_row += of_bounds + self.copies(of_bounds) - self.copies(supports);
        }
        if has("neighbors") || has("drawn") {
            per_row += supports + Sizes::in_order();
        }
        let d = shape.columns as f64;
        let numbers = |kind: Covariance| kind.numbers(shape.columns) as f64;
        let mut more = if has("concentration") {
            d * d
        } else {
            s.covariance.map_or(0.0, numbers)
        };
        if has("columns") {
            let columns = s.columns.iter().flatten();
            let categories = columns.filter_map(|column| column.categories());
            more += 3.0 * d + categories.map(|number| number as f64).sum::<f64>();
        }
        // Restarts on few rows run at the same time.
        let at_once = parallel::fits_beside(self.restarts_of(), searched);
        let of_rows = searched as f64 * per_row.max(sizes.seeding(has("chain")));
        let mut needed = at_once as f64 * (of_rows + sizes.sums(more)) + sizes.blocks();
        if let Some(draws) = coreset {
            needed += sizes.coreset(draws);
        }
        if s.refined.unwrap_or(self.begins_refined()) {
            // The start is fitted to a coreset where there are more rows.
            let draws = algorithms::draws_of_start(clusters).min(searched);
            let few = Shape {
                rows: draws,
                ..shape
            };
            let drawn = if draws < searched {
                sizes.coreset(draws)
            } else {
                0.0
            };
            let phases = algorithms::fast_phases::<F>(few);
            let of_start = sizes
                .of_rows(draws)
                .phases(&phases, algorithms::rows_for(clusters));
            needed = needed.max(at_once as f64 * (drawn + of_start) + sizes.blocks());
        }
        Ok(needed as usize)
    }

    /// Bytes of all further copies of `kept` bytes per row: those of the best restart, those to return when the fit is
    /// cancelled, and those of the checkpoint at the end of a phase.
    fn copies(&self, kept: f64) -> f64 {
        let best = usize::from(self.restarts_of() > 1);
        let saved = usize::from(self.checkpoint.is_some()) * (1 + best);
        (best + saved + usize::from(self.cancel.is_some())) as f64 * kept
    }

    /// Whether it begins at the means of `fast` unless it is told otherwise.
    fn begins_refined(&self) -> bool {
        self.name == "gmm" && self.settings.greedy != Some(true) && self.settings.centres.is_none()
    }

    fn restarts_of(&self) -> usize {
        let default = if self.name == "table" {
            algorithms::TABLE_RESTARTS
        } else {
            1
        };
        self.settings.restarts.unwrap_or(default)
    }

    fn number(&self) -> Result<usize> {
        let rule = "must be given: .clusters(k)";
        let missing = || Error::parameter("clusters", "unset", rule);
        self.settings.clusters.ok_or_else(missing)
    }

    /// The algorithm, ready to fit data of the number type `F`.
    ///
    /// # Errors
    /// As [`Builder::build`]; [`Error::Setting`] for a setting that the algorithm does not have.
    #[inline(never)]
    pub fn boxed<F: Float>(&self) -> Result<Box<dyn Estimator<F>>> {
        let entry = Self::entry(self.name);
        let has = self.settings();
        if let Some(setting) = self.settings.given().find(|given| !has.contains(given)) {
            let has_setting = |name: &&str| Self::entry(name).settings.contains(&setting);
            return Err(Error::Setting {
                algorithm: self.name,
                setting,
                has: entry.settings.to_vec(),
                of: Self::NAMES.into_iter().filter(has_setting).collect(),
            });
        }
        let made = self.made(self.number()?);
        let cosine = self.settings.metric == Some(Metric::Cosine);
        let prior = self.settings.prior;
        let rule = "must be left out: directions have a concentration";
        let given = format!("{prior:?}");
        require(
            !cosine || prior.is_none(),
            "prior with metric cosine",
            given,
            rule,
        )?;
        let made = match (made, prior) {
            (Made::Gaussian(builder), Some(prior)) => Made::Gaussian(builder.prior(prior)),
            (made, _) => made,
        };
        match (made, self.settings.covariance) {
            (Made::Gaussian(_), None) if cosine && entry.rows == Fitted::Phases => {
                let rule = "must be left out with metric cosine, whose last searches read all rows";
                let limit = self.settings.memory;
                require(limit.is_none(), "memory", limit.unwrap_or_default(), rule)?;
                self.built(algorithms::spherical_k_means(self.number()?))
            }
            (Made::Gaussian(builder), None | Some(Covariance::TiedSpherical)) if cosine => {
                self.built(builder.m_step(VonMisesFisher::tied()))
            }
            (Made::Gaussian(builder), Some(Covariance::Spherical)) if cosine => {
                self.built(builder.m_step(VonMisesFisher::default()))
            }
            (_, Some(kind)) if cosine => {
                let name = "covariance with metric cosine";
                let kind = format!("{kind:?}");
                let rule = "must be left out, or spherical for a concentration of each component";
                Err(Error::parameter(name, kind, rule))
            }
            (Made::Gaussian(builder), Some(kind)) => self.built(builder.covariance(kind)),
            (Made::Gaussian(builder), None) => self.built(builder),
            (Made::Dirichlet(builder), _) => self.built(builder),
            (Made::Table(builder), kind) => {
                let rows = prior.map_or(0.0, |prior| prior.rows);
                let table =
                    Table::new(self.settings.columns.clone().unwrap_or_default()).prior_rows(rows);
                if kind.is_none() && prior.is_none_or(|prior| prior == Prior::new(rows)) {
                    return self.built(builder.m_step(table));
                }
                let numbers = Gaussian::new(kind.unwrap_or(Covariance::Diagonal));
                let numbers = prior.map_or(numbers, |prior| numbers.prior(prior));
                self.built(builder.m_step(table.numbers(numbers)))
            }
        }
    }

    fn built<F: Float, M: MStep<F>>(
        &self,
        builder: Builder<F, M>,
    ) -> Result<Box<dyn Estimator<F>>> {
        let builder = builder.of_any_family(|builder| self.set(builder))?;
        Ok(Box::new(builder.build()?))
    }

    /// With the other settings that several have.
    fn set<F: Float>(&self, mut builder: Builder<F>) -> Result<Builder<F>> {
        let s = &self.settings;
        macro_rules! set {
            ($($setting:ident $value:ident: $from:expr => $to:expr;)*) => {$(
                if let Some($value) = $from {
                    builder = builder.$setting($to);
                }
            )*};
        }
        set! {
            tolerance value: s.tolerance => value;
            stop_rule rule: s.stop_rule => rule;
            max_iterations most: s.max_iterations => most;
            restarts number: s.restarts => number;
            standardise standardise: s.standardise => standardise;
            seed seed: s.seed => seed;
            coreset draws: s.coreset => Lightweight::new(draws);
            phases bytes: s.memory => algorithms::phases_within(bytes, self.copies(8.0));
            seeder chain: s.chain => AfkMc2::new(chain);
            cancel cancel: &self.cancel => cancel;
            written_to checkpoint: &self.checkpoint => checkpoint;
            warm_start warm: &self.warm => warm;
        }
        if s.greedy == Some(true) {
            let columns = s.columns.as_deref().unwrap_or_default();
            builder = algorithms::seeded_by(columns, KMeansPlusPlus::greedy(), builder);
        }
        builder = match s.refined {
            Some(true) => builder.seeder_of(algorithms::seeder_of),
            Some(false) if s.greedy != Some(true) => builder.seeder(KMeansPlusPlus::default()),
            _ => builder,
        };
        if let Some(centres) = &s.centres {
            builder = builder.seeder(Given::new(centres.mapv(F::from_f64).view()));
        }
        Ok(builder)
    }
}

#[cfg(feature = "files")]
impl Algorithm {
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
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// The algorithm of this name, with hyphens or underscores; with default settings and no number of clusters.
    fn from_str(name: &str) -> Result<Self> {
        let hyphens = name.replace('_', "-");
        let known = Self::NAMES.into_iter().find(|known| *known == hyphens);
        let unknown = || Error::unknown(name, "algorithm", &Self::NAMES.join(", "));
        Ok(Self {
            name: known.ok_or_else(unknown)?,
            settings: Settings::default(),
            cancel: None,
            checkpoint: None,
            warm: None,
        })
    }
}
