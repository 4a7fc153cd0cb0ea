//! The named algorithms: the one place that lists them, with the options each of them has.

use crate::Result;
use crate::family::{self, Covariances, Family};
use crate::iterations::Iterations;
use clap::{Args, ValueEnum};
use coremix::prelude::{Data, Dense, Estimator, Fit, Mixture, Report, Sketch};
use coremix::{Element, Float, Score};
use ndarray::Array2;
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// Lloyd's k-means from k-means++ seeds
    KMeans,
    /// Each point shared by its C' nearest components
    KMeansCPrime,
    /// EM for a Gaussian mixture, all components for each point
    Gmm,
    /// k-means whose points leave a component only for a clearly nearer one
    LazyKMeans,
    /// k-means on a lightweight coreset
    LwcsKMeans,
    /// k-means on growing coresets and on all rows, with moves that leave local optima
    Fast,
    /// Truncated EM on all rows
    VarGmmS,
    /// Truncated EM on a lightweight coreset
    VcGmm,
    /// Truncated EM on all rows, components drawn by similarity
    DGmm,
    /// Lloyd's k-means on a few preconditioned coordinates of each row
    SparsifiedKMeans,
    /// EM for a Gaussian mixture on a few preconditioned coordinates of each row
    SparsifiedGmm,
    /// Dirichlet process mixture of full Gaussians: finds how many of the components it needs
    DpGmm,
}

/// Settings that only some algorithms have.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Draws for the coreset [default: a tenth of the rows up to 65536, at least 1000 and 16 per cluster; dp-gmm: all rows]
    #[arg(long)]
    coreset: Option<usize>,
    /// Components in the support of a point, C' [default: 3]
    #[arg(long)]
    c_prime: Option<usize>,
    /// Neighbors of a component, G, itself included [default: 5]
    #[arg(long)]
    g: Option<usize>,
    /// Components in the support of a point, H [default: 3]
    #[arg(long)]
    h: Option<usize>,
    /// Components drawn for a point in every search, R [default: 5]
    #[arg(long)]
    r: Option<usize>,
    /// Random components added to every search [default: 0]
    #[arg(long)]
    random: Option<usize>,
    /// Chain length of AFK-MC2 seeding [default: 20]
    #[arg(long)]
    chain: Option<usize>,
    /// How much nearer a component must be to win a point, as a part of the distance [default: 0.1]
    #[arg(long)]
    epsilon: Option<f64>,
    /// Greedy k-means++ seeding: several candidates for each seed
    #[arg(long)]
    greedy: bool,
    /// What components are like [default: shared; sparsified-gmm: diagonal]
    #[arg(long, value_enum)]
    family: Option<family::Name>,
    /// Coordinates of a row that are kept, Q [default: a quarter of the columns, at least 2]
    #[arg(long)]
    q: Option<usize>,
    /// Coordinates of them that all rows share, Q_S [default: 0]
    #[arg(long)]
    shared: Option<usize>,
    /// Concentration of the Dirichlet process: the larger, the more components [default: 1]
    #[arg(long)]
    concentration: Option<f64>,
}

/// Settings that all algorithms have.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Largest change of the free energy that counts as converged, per coordinate, in half nats [default: 1e-3; fast: 1e-4
    /// below 128 clusters]
    #[arg(long)]
    tolerance: Option<f64>,
    /// Most iterations [default: 200; fast: 50 in each phase below 128 clusters, 12 from there on]
    #[arg(long)]
    max_iterations: Option<usize>,
    /// Runs from different seeds, of which the best is kept [default: 20 for up to 10000 rows, else 1]
    #[arg(long)]
    restarts: Option<usize>,
    /// Seed of all randomness in the algorithm
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// All settings, given or chosen.
pub(crate) struct Settings {
    clusters: usize,
    coreset: usize,
    c_prime: usize,
    g: usize,
    h: usize,
    r: usize,
    random: usize,
    chain: usize,
    epsilon: f64,
    greedy: bool,
    family: family::Name,
    q: usize,
    shared: usize,
    concentration: f64,
    restarts: usize,
    common: Common,
}

/// What came of a fit, whatever the family of its model.
pub(crate) struct Outcome {
    pub(crate) report: Report,
    /// Over all rows.
    pub(crate) score: Score,
    pub(crate) model: Box<dyn Covariances>,
    /// Means (k, d).
    pub(crate) means: Array2<f64>,
    /// Rows EM ran on; `None` for all.
    pub(crate) coreset: Option<Vec<usize>>,
    /// Some of these rows with more than one component in their support.
    pub(crate) shared: Vec<Shared>,
}

/// A row, and who answers for it: components and their responsibilities.
pub(crate) struct Shared {
    pub(crate) row: usize,
    pub(crate) support: Vec<(usize, f64)>,
}

impl Algorithm {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The options it has, by name.
    fn uses(self) -> &'static [&'static str] {
        match self {
            Self::KMeans | Self::Gmm => &["greedy", "family"],
            Self::KMeansCPrime => &["c-prime", "greedy", "family"],
            // Its rule compares distances, which are scores for the shared variance alone.
            Self::LazyKMeans => &["epsilon", "greedy"],
            Self::LwcsKMeans => &["coreset", "chain", "family"],
            Self::Fast => &[],
            Self::VarGmmS => &["c-prime", "g", "random", "chain", "family"],
            Self::VcGmm => &["coreset", "c-prime", "g", "random", "chain", "family"],
            Self::DGmm => &["h", "r", "chain", "family"],
            Self::SparsifiedKMeans => &["q", "shared", "greedy", "family"],
            Self::SparsifiedGmm => &["q", "shared", "greedy", "family"],
            Self::DpGmm => &["concentration", "coreset", "greedy"],
        }
    }

    /// Refuses options that would change nothing.
    pub(crate) fn check(self, options: &Options) -> Result<()> {
        let given = [
            ("coreset", options.coreset.is_some()),
            ("c-prime", options.c_prime.is_some()),
            ("g", options.g.is_some()),
            ("h", options.h.is_some()),
            ("r", options.r.is_some()),
            ("random", options.random.is_some()),
            ("chain", options.chain.is_some()),
            ("epsilon", options.epsilon.is_some()),
            ("greedy", options.greedy),
            ("family", options.family.is_some()),
            ("q", options.q.is_some()),
            ("shared", options.shared.is_some()),
            ("concentration", options.concentration.is_some()),
        ];
        for (option, given) in given {
            if given && !self.uses().contains(&option) {
                let (name, uses) = (self.name(), self.uses().join(", --"));
                let only = if uses.is_empty() {
                    String::new()
                } else {
                    format!(", only for --{uses}")
                };
                return Err(format!("--{option}: {name} has no use for it{only}").into());
            }
        }
        Ok(())
    }

    /// The settings that matter to it, for a reader.
    pub(crate) fn describe(self, settings: &Settings) -> String {
        let Settings { common, .. } = settings;
        let own = [
            ("coreset", settings.coreset.to_string()),
            ("c-prime", settings.c_prime.to_string()),
            ("g", settings.g.to_string()),
            ("h", settings.h.to_string()),
            ("r", settings.r.to_string()),
            ("random", settings.random.to_string()),
            ("chain", settings.chain.to_string()),
            ("epsilon", settings.epsilon.to_string()),
            ("greedy", settings.greedy.to_string()),
            ("family", settings.family.name()),
            ("q", settings.q.to_string()),
            ("shared", settings.shared.to_string()),
            ("concentration", settings.concentration.to_string()),
        ];
        // Where neither is given, an algorithm has its own.
        let all = [
            ("tolerance", common.tolerance.map(|t| t.to_string())),
            (
                "max-iterations",
                common.max_iterations.map(|most| most.to_string()),
            ),
            ("restarts", Some(settings.restarts.to_string())),
            ("seed", Some(common.seed.to_string())),
        ];
        let mut text = format!("clusters {}", settings.clusters);
        for (name, value) in own.iter().filter(|(name, _)| self.uses().contains(name)) {
            text += &format!(", {name} {value}");
        }
        for (name, value) in all {
            if let Some(value) = value {
                text += &format!(", {name} {value}");
            }
        }
        text
    }

    /// Fits its model to the data.
    pub(crate) fn fit<T: Element>(
        self,
        s: &Settings,
        data: &Dense<'_, T>,
        iterations: &mut Iterations<'_>,
    ) -> Result<Outcome> {
        match self {
            Self::SparsifiedKMeans | Self::SparsifiedGmm => {
                self.fit_to(s, &sketch(s, data)?, data, iterations)
            }
            _ => self.fit_to(s, data, data, iterations),
        }
    }

    /// Fits its model to `data`, the rows themselves or a sketch of them.
    fn fit_to<F: Float>(
        self,
        s: &Settings,
        data: &dyn Data<F>,
        rows: &dyn Data<F>,
        iterations: &mut Iterations<'_>,
    ) -> Result<Outcome> {
        let estimator: Box<dyn Estimator<F>> = self.with(s)?.boxed()?;
        let fit = estimator.fit_observed(data, &mut |progress| iterations.see(progress))?;
        iterations.finish(&fit.report)?;
        // A model of sketched rows is one of all their columns as well.
        let mut fit = fit.map(family::of);
        let score = fit.score(rows)?;
        Ok(Outcome {
            score,
            means: fit.model.means().mapv(Float::to_f64),
            shared: shared(&fit, rows)?,
            coreset: fit.coreset.map(|coreset| coreset.rows),
            report: fit.report,
            model: fit.model,
        })
    }

    /// The algorithm of the crate.
    fn with(self, s: &Settings) -> coremix::Result<coremix::Algorithm> {
        let name = match self {
            Self::SparsifiedKMeans => Self::KMeans.name(),
            _ => self.name(),
        };
        let mut algorithm = name
            .parse::<coremix::Algorithm>()?
            .clusters(s.clusters)
            .restarts(s.restarts)
            .seed(s.common.seed);
        for option in self.uses() {
            algorithm = match *option {
                "coreset" => algorithm.coreset(s.coreset),
                "c-prime" => algorithm.c_prime(s.c_prime),
                "g" => algorithm.neighbors(s.g),
                "h" => algorithm.c_prime(s.h),
                "r" => algorithm.drawn(s.r),
                "random" => algorithm.random(s.random),
                "chain" => algorithm.chain(s.chain),
                "epsilon" => algorithm.epsilon(s.epsilon),
                "greedy" => algorithm.greedy(s.greedy),
                "family" => algorithm.covariance(s.family.of_crate()),
                "concentration" => algorithm.concentration(s.concentration),
                // Of the sketch.
                _ => algorithm,
            };
        }
        if let Some(tolerance) = s.common.tolerance {
            algorithm = algorithm.tolerance(tolerance);
        }
        if let Some(max_iterations) = s.common.max_iterations {
            algorithm = algorithm.max_iterations(max_iterations);
        }
        Ok(algorithm)
    }
}

impl Settings {
    /// What was not given is chosen from the numbers of rows and clusters.
    pub(crate) fn new(
        algorithm: Algorithm,
        clusters: usize,
        (rows, columns): (usize, usize),
        options: &Options,
        common: &Common,
    ) -> Self {
        // Beyond the cap, draws cost more time than they are worth.
        let least = clusters.saturating_mul(16).max(1_000);
        let coreset = match algorithm {
            Algorithm::DpGmm => rows,
            _ => (rows / 10).min(65_536).max(least),
        };
        let family = match algorithm {
            Algorithm::SparsifiedGmm => family::Name::Diagonal,
            _ => family::Name::Shared,
        };
        Self {
            clusters,
            coreset: options.coreset.unwrap_or(coreset),
            c_prime: options.c_prime.unwrap_or(3),
            g: options.g.unwrap_or(5),
            h: options.h.unwrap_or(3),
            r: options.r.unwrap_or(5),
            random: options.random.unwrap_or(0),
            chain: options.chain.unwrap_or(20),
            epsilon: options.epsilon.unwrap_or(0.1),
            greedy: options.greedy,
            family: options.family.unwrap_or(family),
            q: options.q.unwrap_or((columns / 4).max(2).min(columns)),
            shared: options.shared.unwrap_or(0),
            concentration: options.concentration.unwrap_or(1.0),
            // Where a run takes milliseconds, several cost nothing and miss less.
            restarts: common
                .restarts
                .unwrap_or(if rows <= 10_000 { 20 } else { 1 }),
            common: common.clone(),
        }
    }

    /// Whether there is more than one run.
    pub(crate) fn several(&self) -> bool {
        self.restarts > 1
    }
}

/// A few preconditioned coordinates of each row.
fn sketch<T: Element>(s: &Settings, data: &Dense<'_, T>) -> coremix::Result<Sketch<T::Float>> {
    let points = data.points();
    let builder = Sketch::builder(points.ncols(), s.q, s.common.seed);
    let mut builder = builder.shared(s.shared);
    builder.push(points)?;
    builder.finish()
}

/// Rows whose supports are worth a look: enough to see a pattern, few enough to see each.
const SHARED: usize = 120;

/// Responsibilities below this are left out where the support is all components.
const VISIBLE: f64 = 0.01;

fn shared<F: Float>(
    fit: &Fit<Box<dyn Family<F>>>,
    data: &dyn Data<F>,
) -> coremix::Result<Vec<Shared>> {
    let (k, ran_on) = (fit.model.components(), fit.labels.len());
    let width = fit.supports.as_ref().map_or(k, |supports| supports.ncols());
    if width == 1 {
        return Ok(Vec::new());
    }
    let picked = some(ran_on, SHARED);
    let rows: Vec<usize> = match &fit.coreset {
        Some(coreset) => picked.iter().map(|&i| coreset.rows[i]).collect(),
        None => picked.clone(),
    };
    let few = data.select(&rows, vec![1.0; rows.len()])?;
    let posteriors = fit.model.responsibilities(&*few)?;
    let shared = picked.iter().zip(&rows).zip(posteriors.rows());
    let shared = shared.map(|((&i, &row), posterior)| {
        let posterior = |c: usize| posterior[c].to_f64();
        let mut support: Vec<(usize, f64)> = match &fit.supports {
            Some(supports) => supports.row(i).iter().map(|&c| c as usize).collect(),
            None => (0..k)
                .filter(|&c| posterior(c) >= VISIBLE)
                .collect::<Vec<_>>(),
        }
        .into_iter()
        .map(|c| (c, posterior(c)))
        .collect();
        // Supports renormalise: what lies outside K(n) counts for nothing.
        let total: f64 = support.iter().map(|(_, q)| q).sum();
        for (_, q) in &mut support {
            *q /= total.max(f64::MIN_POSITIVE);
        }
        Shared { row, support }
    });
    Ok(shared.collect())
}

/// At most `most` of `n` numbers, at random but always the same ones.
pub(crate) fn some(n: usize, most: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut chosen = index::sample(&mut rng, n, most.min(n)).into_vec();
    chosen.sort_unstable();
    chosen
}
