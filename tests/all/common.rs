//! Code that the test files share: the list of all algorithms behind one signature, and generated data.
#![allow(dead_code, unreachable_pub)]

mod compare;
mod families;
mod rows;

pub use compare::{
    close, distance, last, mean_of, on, rises, rises_in_phases, rounding, same, same_mean,
    same_on_threads, squared_distance,
};
pub use families::Family;
pub use rows::{Stored, blobs};

use coremix::coreset::Subset;
use coremix::families::Product;
use coremix::m_step::MStep;
use coremix::prelude::*;
use coremix::stage::{Rng, Shape, Stage};
use coremix::{BoxedMixture, Builder, Float, algorithms, metrics};
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, Axis};
use std::f64::consts::PI;
use std::path::Path;

/// Three classes of rows of this weight, by this family under every kind of search: the free energy rises, the classes are found, the
/// model is saved and loaded, and the rows that it draws have densities.
pub fn classes_are_found<F, M>(
    family: &M,
    data: &Dense<'_, F>,
    weight: f64,
    truth: ArrayView1<'_, u32>,
) where
    F: Float,
    M: MStep<F> + Stage + Clone,
    M::Model: Save + PartialEq,
{
    let own = || family.clone();
    let made = [
        ("soft", algorithms::gmm(3).m_step(own())),
        ("exact", algorithms::k_means(3).m_step(own())),
        ("two", algorithms::k_means_c_prime(3, 2).m_step(own())),
        ("truncated", algorithms::var_gmm_s(3, 2, 2).m_step(own())),
        ("coreset", algorithms::vc_gmm(3, 300, 2, 2).m_step(own())),
        ("drawn", algorithms::d_gmm(3, 2, 2).m_step(own())),
    ];
    for (name, builder) in made {
        let fit = builder.seed(1).restarts(30).build().unwrap();
        let fit = fit.fit(data).unwrap();
        let drawn = fit.coreset.as_ref().map(|own| own.weights.iter().sum());
        rises_in_phases(name, &fit.report, drawn.unwrap_or(weight), rounding::<F>());
        let labels = fit.model.predict(data).unwrap();
        let index = metrics::adjusted_rand_index(labels.view(), truth).unwrap();
        assert!(index > 0.8, "{name}: {index}");
        let bytes = fit.model.to_bytes(&[]).unwrap();
        let back = BoxedMixture::<F>::from_bytes(&bytes).unwrap();
        assert_eq!(back.predict(data).unwrap(), labels, "{name}");
        assert!(M::Model::from_bytes(&bytes).unwrap() == fit.model, "{name}");
        let (drawn, _) = fit.model.sample(200, 1).unwrap();
        let likelihood = fit.model.log_likelihood(&Dense::new(&drawn).unwrap());
        assert!(likelihood.unwrap().is_finite(), "{name}");
    }
}

/// Everything a law may look at, the same for every algorithm.
pub struct Outcome<F: Float> {
    pub means: Array2<F>,
    /// One per component and column, however many of them are the same (k, d).
    pub variances: Array2<f64>,
    /// Covariances of all pairs of columns (k, d, d).
    pub covariances: Array3<f64>,
    /// Mixing proportions (k).
    pub proportions: Vec<f64>,
    pub labels: Array1<u32>,
    pub supports: Option<Array2<u32>>,
    pub coreset: Option<Subset>,
    pub report: Report,
    /// The log-likelihood of the rows EM ran on: those of the coreset, or of the sketch.
    pub bound: f64,
    /// The part of the free energy that is not of rows.
    pub prior: f64,
    pub model: Box<dyn Mixture<F>>,
}

impl<F: Float> Outcome<F> {
    /// ln p(c, x) from the parameters (E1, E31, E33, E52), naively.
    pub fn log_joint(&self, x: ArrayView1<'_, F>, c: usize) -> f64 {
        let d = x.len();
        let apart: Vec<f64> = (0..d)
            .map(|j| x[j].to_f64() - self.means[[c, j]].to_f64())
            .collect();
        // Gaussian elimination of (covariance | x - mu): pivots, and the solution of the triangle so far.
        let mut rows = self.covariances.index_axis(Axis(0), c).to_owned();
        let (mut rest, mut sum) = (apart, self.proportions[c].ln());
        for j in 0..d {
            let pivot = rows[[j, j]];
            sum -= 0.5 * ((2.0 * PI * pivot).ln() + rest[j] * rest[j] / pivot);
            for i in j + 1..d {
                let factor = rows[[i, j]] / pivot;
                for l in j..d {
                    rows[[i, l]] -= factor * rows[[j, l]];
                }
                rest[i] -= factor * rest[j];
            }
        }
        sum
    }

    /// The smallest variance of a column given the others: at least the smallest variance in any direction, and at most d times
    /// as much.
    pub fn narrowest(&self) -> f64 {
        let d = self.variances.ncols();
        let given_others = |covariance: ArrayView2<'_, f64>, last: usize| {
            let mut rows = covariance.to_owned();
            for j in (0..d).filter(|j| *j != last) {
                for i in (0..d).filter(|i| *i > j || *i == last) {
                    let factor = rows[[i, j]] / rows[[j, j]];
                    for l in 0..d {
                        rows[[i, l]] -= factor * rows[[j, l]];
                    }
                }
            }
            rows[[last, last]]
        };
        let components = self.covariances.outer_iter();
        let all = components.flat_map(|own| (0..d).map(move |j| given_others(own, j)));
        all.fold(f64::INFINITY, f64::min) / d as f64
    }

    /// The squared pivots of covariance `c`: the variance of each column given those before it.
    fn pivots(&self, c: usize) -> Vec<f64> {
        let mut rows = self.covariances.index_axis(Axis(0), c).to_owned();
        let d = rows.nrows();
        for j in 0..d {
            for i in j + 1..d {
                let factor = rows[[i, j]] / rows[[j, j]];
                for l in j..d {
                    rows[[i, l]] -= factor * rows[[j, l]];
                }
            }
        }
        rows.diag().to_vec()
    }

    /// A bound on the relative error of a pivot that sums of products in f64 leave: d roundings of the variance of the
    /// column, of which the pivot is what is left once the columns before it are known.
    pub fn lost(&self) -> f64 {
        let mut most = 1.0f64;
        for (c, own) in self.covariances.outer_iter().enumerate() {
            for (variance, pivot) in own.diag().iter().zip(self.pivots(c)) {
                most = most.max((variance / pivot).abs());
            }
        }
        self.variances.ncols() as f64 * f64::EPSILON * most
    }

    /// The largest relative difference of two fits in any variance. A variance that collapses by ten orders in one
    /// step is what is left of a sum of the size it had before, and has no more digits than that sum.
    pub fn variances_off(&self, other: &Self) -> f64 {
        let largest = self.variances.iter().fold(0.0f64, |most, v| most.max(*v));
        let pairs = self.variances.iter().zip(&other.variances);
        pairs.fold(0.0, |most, (a, b)| {
            let off = (a - b).abs() - F::EPSILON * largest;
            most.max(off / a.max(*b))
        })
    }
}

/// Settings that a law may change.
#[derive(Clone)]
pub struct Settings<F> {
    pub clusters: usize,
    pub tolerance: f64,
    pub max_iterations: usize,
    pub seed: u64,
    pub given: Option<Array2<F>>,
    pub standardise: bool,
}

impl<F> Settings<F> {
    pub fn new(clusters: usize, seed: u64) -> Self {
        let (tolerance, max_iterations) = (1e-6, 30);
        Self {
            clusters,
            tolerance,
            max_iterations,
            seed,
            given: None,
            standardise: false,
        }
    }

    /// From these centres, for exactly this many iterations if nothing settles earlier.
    pub fn fixed(given: ArrayView2<'_, F>, max_iterations: usize) -> Self
    where
        F: Clone,
    {
        let (clusters, given) = (given.nrows(), Some(given.to_owned()));
        Self {
            clusters,
            tolerance: 0.0,
            max_iterations,
            seed: 1,
            given,
            standardise: false,
        }
    }
}

type Run<F> = Box<dyn for<'a> Fn(&Dense<'a, F>, &Settings<F>) -> Result<Outcome<F>> + Send + Sync>;

/// The rows that an algorithm looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Dense,
    /// All preconditioned coordinates: nothing is lost but the last digits.
    WholeSketch,
    /// Two thirds of the preconditioned coordinates.
    Sketch,
}

impl<F: Float> Algorithm<F> {
    /// Two fits that must be equal, of as many iterations: a last bit of F may let one stop earlier at tolerance 0, and then
    /// the other is fitted again for as many. A component that has next to no weight may move between them and F not.
    pub fn equally_long(
        &self,
        (rows, settings): (&Dense<'_, F>, &Settings<F>),
        (others, of_others): (&Dense<'_, F>, &Settings<F>),
    ) -> (Outcome<F>, Outcome<F>) {
        let again = |data: &Dense<'_, F>, settings: &Settings<F>, max_iterations| {
            let mut settings = settings.clone();
            settings.max_iterations = max_iterations;
            (self.fit)(data, &settings).unwrap()
        };
        let a = (self.fit)(rows, settings).unwrap();
        let b = (self.fit)(others, of_others).unwrap();
        match (a.report.iterations, b.report.iterations) {
            // The most iterations are those of each phase.
            _ if a.report.phases.len() > 1 => (a, b),
            (m, n) if m > n => (again(rows, settings, n), b),
            (m, n) if n > m => (a, again(others, of_others, m)),
            _ => (a, b),
        }
    }

    /// Whether it is deterministic for rows in any order.
    pub fn takes_any_order(&self) -> bool {
        self.deterministic && self.rows != Known::Sketch
    }

    /// Whether weights say more than their ratios, and components are wider than their rows.
    pub fn has_prior(&self) -> bool {
        self.bayesian || self.name.ends_with("prior")
    }

    /// Whether it fits columns of deviation 1.
    pub fn standardises(&self) -> bool {
        self.rows == Known::Dense && !self.is_raw()
    }

    /// Whether it computes in the data's own numbers, and refuses those that are too far from 0.
    pub fn is_raw(&self) -> bool {
        self.name.contains("product")
    }

    /// Whether its scores are the naive densities of its parameters and the rows as they are.
    pub fn is_naive(&self) -> bool {
        self.rows != Known::Sketch && !self.bayesian
    }
}

impl Known {
    /// Coordinates kept of `d`.
    pub fn known(self, d: usize) -> usize {
        match self {
            Self::Dense | Self::WholeSketch => d,
            Self::Sketch => (2 * d).div_ceil(3),
        }
    }
}

pub struct Algorithm<F: Float> {
    pub name: &'static str,
    /// Neither a random search nor a coreset: given seeds, nothing is left to chance. A sketch draws the coordinates of a row by
    /// its number.
    pub deterministic: bool,
    /// The rows that it reads.
    pub rows: Known,
    /// Has distributions in place of parameters: F bounds the evidence instead of a likelihood, and a weight of 2 says
    /// more than a weight of 1.
    pub bayesian: bool,
    pub fit: Run<F>,
}

/// Every algorithm of the crate that fits dense data, in settings that suit small data.
pub fn all<F: Float>() -> Vec<Algorithm<F>> {
    let truncated = || Neighborhood::new(3, 3);
    vec![
        algorithm("k-means", true, algorithms::k_means),
        algorithm("k-means-C'", true, |k| algorithms::k_means_c_prime(k, 2)),
        algorithm("k-means greedy", true, |k| {
            algorithms::k_means(k).seeder(KMeansPlusPlus::greedy())
        }),
        algorithm("gmm", true, algorithms::gmm),
        algorithm("lazy-k-means", true, |k| algorithms::lazy_k_means(k, 0.1)),
        algorithm("lwcs-k-means", false, |k| algorithms::lwcs_k_means(k, 60)),
        algorithm("var-gmm-s", false, |k| algorithms::var_gmm_s(k, 3, 3)),
        algorithm("var-gmm-s from seeds", false, move |k| {
            algorithms::var_gmm_s(k, 3, 3).e_step(truncated().from_seeds(true))
        }),
        algorithm("var-gmm-s warm", false, move |k| {
            algorithms::var_gmm_s(k, 3, 3).e_step(truncated().initial_searches(1))
        }),
        algorithm("vc-gmm", false, |k| algorithms::vc_gmm(k, 60, 3, 3)),
        algorithm("vc-gmm+1", false, move |k| {
            algorithms::vc_gmm(k, 60, 3, 3)
                .coreset(UniformCoreset::new(60))
                .seeder(UniformSeeder)
                .e_step(truncated().random(1))
        }),
        algorithm("d-gmm", false, |k| algorithms::d_gmm(k, 3, 2)),
        algorithm("d-gmm on a coreset", false, |k| {
            algorithms::d_gmm(k, 3, 2).coreset(Lightweight::new(60))
        }),
        algorithm("gmm, isotropic", true, |k| {
            algorithms::gmm(k).covariance(Covariance::Spherical)
        }),
        algorithm("gmm, isotropic, equal proportions", true, |k| {
            algorithms::gmm(k).m_step(Gaussian::new(Covariance::Spherical).equal_proportions())
        }),
        algorithm("gmm, diagonal", true, |k| {
            algorithms::gmm(k).covariance(Covariance::Diagonal)
        }),
        algorithm("k-means, isotropic", true, |k| {
            algorithms::k_means(k).covariance(Covariance::Spherical)
        }),
        algorithm("k-means-C', diagonal, equal proportions", true, |k| {
            algorithms::k_means_c_prime(k, 2)
                .m_step(Gaussian::new(Covariance::Diagonal).equal_proportions())
        }),
        algorithm("var-gmm-s warm, diagonal", false, move |k| {
            algorithms::var_gmm_s(k, 3, 3)
                .e_step(truncated().initial_searches(1))
                .covariance(Covariance::Diagonal)
        }),
        algorithm("vc-gmm, isotropic", false, |k| {
            algorithms::vc_gmm(k, 60, 3, 3).covariance(Covariance::Spherical)
        }),
        algorithm("vc-gmm, diagonal", false, |k| {
            algorithms::vc_gmm(k, 60, 3, 3).covariance(Covariance::Diagonal)
        }),
        algorithm("d-gmm, diagonal", false, |k| {
            algorithms::d_gmm(k, 3, 2).covariance(Covariance::Diagonal)
        }),
        algorithm("gmm, tied", true, |k| {
            algorithms::gmm(k).covariance(Covariance::Tied)
        }),
        algorithm("gmm, full", true, |k| {
            algorithms::gmm(k).covariance(Covariance::Full)
        }),
        algorithm("k-means-C', full, equal proportions", true, |k| {
            algorithms::k_means_c_prime(k, 2)
                .m_step(Gaussian::new(Covariance::Full).equal_proportions())
        }),
        algorithm("k-means, tied", true, |k| {
            algorithms::k_means(k).covariance(Covariance::Tied)
        }),
        algorithm("vc-gmm, full", false, |k| {
            algorithms::vc_gmm(k, 60, 3, 3).covariance(Covariance::Full)
        }),
        algorithm("d-gmm, tied", false, |k| {
            algorithms::d_gmm(k, 3, 2).covariance(Covariance::Tied)
        }),
        algorithm("var-gmm-s warm, full", false, move |k| {
            algorithms::var_gmm_s(k, 3, 3)
                .e_step(truncated().initial_searches(1))
                .covariance(Covariance::Full)
        }),
        algorithm("gmm, full, prior", true, |k| {
            let prior = Prior::weak().proportions(0.5);
            algorithms::gmm(k).covariance(Covariance::Full).prior(prior)
        }),
        algorithm("gmm, isotropic, prior", true, |k| {
            let builder = algorithms::gmm(k).covariance(Covariance::Spherical);
            builder.prior(Prior::new(3.0).proportions(2.0))
        }),
        algorithm("k-means, prior", true, |k| {
            algorithms::k_means(k).prior(Prior::new(2.0))
        }),
        algorithm("vc-gmm, tied, prior", false, |k| {
            let builder = algorithms::vc_gmm(k, 60, 3, 3).covariance(Covariance::Tied);
            builder.prior(Prior::new(10.0))
        }),
        algorithm("d-gmm, diagonal, prior", false, |k| {
            let builder = algorithms::d_gmm(k, 3, 2).covariance(Covariance::Diagonal);
            builder.prior(Prior::new(0.1).proportions(1.0))
        }),
        with_factors("gmm, factors", true, 1, algorithms::gmm),
        with_factors("gmm, more factors", true, 3, algorithms::gmm),
        with_factors("k-means, factors", true, 2, algorithms::k_means),
        with_factors("gmm, factors, prior", true, 2, |k| {
            algorithms::gmm(k).prior(Prior::new(2.0).proportions(0.5))
        }),
        with_factors("vc-gmm, factors", false, 2, |k| {
            algorithms::vc_gmm(k, 60, 3, 3)
        }),
        with_factors("d-gmm, factors", false, 2, |k| algorithms::d_gmm(k, 3, 2)),
        with_factors("var-gmm-s warm, factors", false, 2, move |k| {
            algorithms::var_gmm_s(k, 3, 3).e_step(truncated().initial_searches(1))
        }),
        algorithm("gmm, product", true, |k| {
            let family = Product::new(Gaussian::new(Covariance::Full));
            algorithms::gmm(k).m_step(family.block([0], Gaussian::new(Covariance::Spherical)))
        }),
        algorithm("k-means-C', product", true, |k| {
            let family = Product::new(Gaussian::new(Covariance::Diagonal));
            let family = family.block([0], Gaussian::new(Covariance::Tied));
            algorithms::k_means_c_prime(k, 2).m_step(family)
        }),
        algorithm("vc-gmm, product", false, |k| {
            let family = Product::new(Gaussian::new(Covariance::Full));
            algorithms::vc_gmm(k, 60, 3, 3).m_step(family)
        }),
        algorithm("k-means from hierarchical seeds", true, |k| {
            algorithms::k_means(k).seeder(HierarchicalKMeansPlusPlus)
        }),
        algorithm("k-means, bounded", true, |k| {
            algorithms::k_means(k).e_step(Bounded::default())
        }),
        algorithm("fast as it is", false, algorithms::fast),
        // All centres are near ones, so the search is exact.
        algorithm("fast without moves", true, |k| {
            algorithms::fast(k).phases(phases(k, None, None, 0))
        }),
        algorithm("fast in a subspace without moves", true, |k| {
            algorithms::fast(k).phases(phases(k, None, Some(1), 0))
        }),
        algorithm("fast", false, |k| {
            algorithms::fast(k)
                .coreset(Lightweight::new(60))
                .phases(phases(3, Some(90), None, 3))
        }),
        algorithm("fast in a subspace", false, |k| {
            algorithms::fast(k)
                .coreset(Lightweight::new(60))
                .phases(phases(3, None, Some(1), 3))
        }),
        algorithm("dp-gmm", true, |k| algorithms::dp_gmm(k, 1.0)),
        algorithm("dp-gmm, nearest", true, |k| {
            algorithms::dp_gmm(k, 1.0).e_step(Exhaustive::nearest())
        }),
        algorithm("dp-gmm on a coreset", false, |k| {
            algorithms::dp_gmm(k, 1.0).coreset(Lightweight::new(60))
        }),
        algorithm("dp-gmm, truncated, warm", false, move |k| {
            algorithms::dp_gmm(k, 1.0).e_step(truncated().initial_searches(1))
        }),
        on_sketch(
            "k-means on a whole sketch",
            true,
            Known::WholeSketch,
            algorithms::k_means,
        ),
        on_sketch(
            "gmm, isotropic, on a whole sketch",
            true,
            Known::WholeSketch,
            |k| algorithms::gmm(k).covariance(Covariance::Spherical),
        ),
        on_sketch(
            "sparsified k-means",
            true,
            Known::Sketch,
            algorithms::k_means,
        ),
        on_sketch(
            "sparsified-gmm",
            true,
            Known::Sketch,
            algorithms::sparsified_gmm,
        ),
        on_sketch("sparsified-gmm, isotropic", true, Known::Sketch, |k| {
            algorithms::sparsified_gmm(k).covariance(Covariance::Spherical)
        }),
        on_sketch("vc-gmm on a sketch", false, Known::Sketch, |k| {
            algorithms::vc_gmm(k, 60, 3, 3).covariance(Covariance::Spherical)
        }),
        on_sketch("d-gmm on a sketch", false, Known::Sketch, |k| {
            algorithms::d_gmm(k, 3, 2).covariance(Covariance::Diagonal)
        }),
        on_sketch("fast on a sketch", false, Known::Sketch, |k| {
            algorithms::fast(k).coreset(Lightweight::new(60))
        }),
    ]
}

/// The phases of `fast` for small data: the number of near centres, a larger coreset or none, a subspace or none, rounds of
/// moves and of transfers.
pub fn phases<F: Float>(
    near: usize,
    larger: Option<usize>,
    coordinates: Option<usize>,
    moves: usize,
) -> impl Fn(Shape) -> Vec<Phase<F>> + Clone + Send + Sync + 'static {
    move |_| {
        let columns = coordinates.map_or(Columns::All, Columns::Principal);
        let phase = |rows| {
            Phase::new(Bounded::default().nearest_centres(near))
                .rows(rows)
                .columns(columns)
                .split_and_merge(moves)
                .transfers(moves)
                .step(if moves > 0 { 1.9 } else { 1.0 })
        };
        let larger = larger.map(|size| PhaseRows::Larger(Lightweight::new(size)));
        let last = Bounded::default().nearest_centres(near.div_ceil(3).max(near.min(16)));
        let mut list = vec![phase(PhaseRows::Coreset).tolerance_factor(3.0)];
        list.extend(larger.map(|rows| phase(rows).tolerance_factor(3.0)));
        list.push(phase(PhaseRows::All));
        list.push(
            Phase::new(last)
                .rows(PhaseRows::All)
                .tolerance_factor(2.0)
                .after_subspace(),
        );
        list
    }
}

/// These phases, with `starts` starts of the first of them.
pub fn with_starts<F: Float>(
    starts: usize,
    list: impl Fn(Shape) -> Vec<Phase<F>> + Clone + Send + Sync + 'static,
) -> impl Fn(Shape) -> Vec<Phase<F>> + Clone + Send + Sync + 'static {
    move |shape| {
        let mut list = list(shape);
        let first = list.remove(0).starts(starts);
        list.insert(0, first);
        list
    }
}

fn algorithm<F, M>(
    name: &'static str,
    deterministic: bool,
    builder: impl Fn(usize) -> Builder<F, M> + Send + Sync + 'static,
) -> Algorithm<F>
where
    F: Float,
    M: MStep<F> + Stage,
    M::Model: Family<F>,
{
    let fit = move |data: &Dense<'_, F>, settings: &Settings<F>| {
        fit(builder(settings.clusters), settings, data)
    };
    Algorithm {
        name,
        deterministic,
        rows: Known::Dense,
        bayesian: name.starts_with("dp-gmm"),
        fit: Box::new(fit),
    }
}

/// An algorithm with this many factors, if there are more columns; fewer if not, and none in one column.
fn with_factors<F: Float>(
    name: &'static str,
    deterministic: bool,
    factors: usize,
    builder: impl Fn(usize) -> Builder<F> + Send + Sync + 'static,
) -> Algorithm<F> {
    let run = move |data: &Dense<'_, F>, settings: &Settings<F>| {
        let kind = match data.points().ncols() {
            1 => Covariance::Diagonal,
            d => Covariance::Factors(factors.min(d - 1)),
        };
        fit(builder(settings.clusters).covariance(kind), settings, data)
    };
    Algorithm {
        name,
        deterministic,
        rows: Known::Dense,
        bayesian: false,
        fit: Box::new(run),
    }
}

/// An algorithm on a sketch of the data.
fn on_sketch<F, M>(
    name: &'static str,
    deterministic: bool,
    rows: Known,
    builder: impl Fn(usize) -> Builder<F, M> + Send + Sync + 'static,
) -> Algorithm<F>
where
    F: Float,
    M: MStep<F> + Stage,
    M::Model: Family<F> + Mixture<F>,
{
    let run = move |data: &Dense<'_, F>, settings: &Settings<F>| {
        let q = rows.known(data.points().ncols());
        let sketch = Sketch::of_dense(data, q, settings.seed)?;
        fit(builder(settings.clusters), settings, &sketch)
    };
    Algorithm {
        name,
        deterministic,
        rows,
        bayesian: false,
        fit: Box::new(run),
    }
}

fn fit<F, M>(
    builder: Builder<F, M>,
    settings: &Settings<F>,
    data: &dyn Data<F>,
) -> Result<Outcome<F>>
where
    F: Float,
    M: MStep<F> + Stage,
    M::Model: Family<F> + Mixture<F>,
{
    let builder = builder
        .tolerance(settings.tolerance)
        .max_iterations(settings.max_iterations)
        .standardise(settings.standardise)
        .seed(settings.seed);
    match &settings.given {
        Some(given) => outcome(builder.seeder(Given::new(given.view())), data),
        None => outcome(builder, data),
    }
}

fn outcome<F, M>(builder: Builder<F, M>, data: &dyn Data<F>) -> Result<Outcome<F>>
where
    F: Float,
    M: MStep<F> + Stage,
    M::Model: Family<F> + Mixture<F>,
{
    let fit = builder.build()?.fit(data)?;
    let bound = match &fit.coreset {
        Some(c) => {
            let rows = data.select(&c.rows, c.weights.clone())?;
            Mixture::<F>::log_likelihood(&fit.model, &*rows)?
        }
        None => Mixture::<F>::log_likelihood(&fit.model, data)?,
    };
    Ok(Outcome {
        bound,
        prior: Mixture::<F>::prior_terms(&fit.model),
        means: Family::means(&fit.model),
        variances: Family::variances(&fit.model),
        covariances: Family::covariances(&fit.model),
        proportions: Family::proportions(&fit.model),
        labels: fit.search_labels,
        supports: fit.supports,
        coreset: fit.coreset,
        report: fit.report,
        model: Box::new(fit.model),
    })
}

/// The numbers of a fixture, (rows, columns).
pub fn read(name: &str) -> Array2<f64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let text = std::fs::read_to_string(folder.join(format!("{name}.csv"))).expect(name);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split(',').map(|v| v.parse().expect(name)).collect())
        .collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

/// Stretched and turned, so that covariances are full.
pub fn turned<F: Float>(n: usize, d: usize, seed: u64) -> Array2<F> {
    let mut rng = Rng::from_seed(seed ^ 0x7075);
    let turn = Array2::from_shape_fn((d, d), |_| rng.normal());
    blobs::<f64>(n, d, 5, seed).dot(&turn).mapv(F::from_f64)
}

/// The numbers below `n` in another order.
pub fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::from_seed(seed);
    let mut rows: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        rows.swap(i, rng.below(i + 1));
    }
    rows
}

/// `k` rows of `x`, as seeds that no symmetry ties.
pub fn seeds<F: Float>(x: &Array2<F>, k: usize, seed: u64) -> Array2<F> {
    let mut rng = Rng::from_seed(seed ^ 0x5eed);
    let mut rows: Vec<usize> = (0..x.nrows()).collect();
    for i in 0..k {
        rows.swap(i, i + rng.below(x.nrows() - i));
    }
    x.select(ndarray::Axis(0), &rows[..k])
}
