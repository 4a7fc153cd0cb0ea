//! Estimators from bytes: algorithms by name, and stages that are combined freely.

use crate::bytes::Bytes;
use coremix::coreset::Coreset;
use coremix::families::Product;
use coremix::m_step::MStep;
use coremix::ndarray::{Array1, Array2};
use coremix::prelude::*;
use coremix::seed::Seeder;
use coremix::{Cancel, Error, Float};

/// Most clusters that are meant to be fitted.
const CLUSTERS: usize = 12;

/// Most M-steps of a phase.
const ITERATIONS: usize = 12;

/// An estimator of rows of type `R`.
pub(crate) type Boxed<F> = Box<dyn Estimator<F>>;

/// The checkpoint that a fit writes, and the flag that ends it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) cancel: Option<Cancel>,
}

/// An algorithm by its name, with its settings.
pub(crate) fn by_name(control: &Control, bytes: &mut Bytes<'_>) -> Algorithm {
    let name = bytes.choose(&Algorithm::NAMES);
    let mut algorithm: Algorithm = name.parse().expect("a name of the list");
    algorithm = algorithm
        .clusters(bytes.count(CLUSTERS))
        .seed(u64::from(bytes.byte()))
        .restarts(1 + bytes.few(2))
        .max_iterations(bytes.few(ITERATIONS))
        .stop_rule(rule(bytes));
    // Each of the others with some chance: most have a default that suits small data.
    for _ in 0..bytes.few(8) {
        let own = algorithm.clone();
        let with = match bytes.below(13) {
            0 => own.coreset(bytes.count(80)),
            1 => own.memory(bytes.count(256)),
            2 => own.c_prime(bytes.count(8)),
            3 => own.neighbors(bytes.count(8)),
            4 => own.random(bytes.count(8)),
            5 => own.drawn(bytes.count(8)),
            6 => own.chain(bytes.few(30)),
            7 => own.greedy(true),
            8 => own.epsilon(bytes.real()),
            9 => own.concentration(bytes.real()),
            10 => own.covariance(bytes.choose(&FAMILIES)),
            11 => own.prior(Prior::new(bytes.real()).ridge(bytes.real())),
            _ => own.tolerance(bytes.real()),
        };
        // A setting that the algorithm does not have would be all that is tried.
        if !matches!(with.boxed::<f64>(), Err(Error::Setting { .. })) {
            algorithm = with;
        }
    }
    if let Some(checkpoint) = &control.checkpoint {
        algorithm = algorithm.checkpoint(checkpoint);
    }
    if let Some(cancel) = &control.cancel {
        algorithm = algorithm.cancel(cancel);
    }
    algorithm
}

const FAMILIES: [Covariance; 7] = [
    Covariance::TiedSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
    Covariance::Factors(1),
    Covariance::Factors(2),
];

fn rule(bytes: &mut Bytes<'_>) -> Rule {
    bytes.choose(&[
        Rule::PerCoordinate,
        Rule::RelativeToFreeEnergy,
        Rule::Remaining,
    ])
}

fn any_coreset<F: Float>(bytes: &mut Bytes<'_>) -> AnyCoreset<F> {
    match bytes.below(4) {
        0 | 1 => Box::new(Full),
        2 => Box::new(UniformCoreset::new(bytes.count(80))),
        _ => Box::new(Lightweight::new(bytes.count(80))),
    }
}

/// A seeder for data of `columns` columns.
pub(crate) fn any_seeder<F: Float>(columns: usize, bytes: &mut Bytes<'_>) -> AnySeeder<F> {
    match bytes.below(6) {
        0 => Box::new(KMeansPlusPlus::greedy()),
        1 => Box::new(KMeansPlusPlus::default().candidates(bytes.few(6))),
        2 => Box::new(AfkMc2::new(bytes.few(30))),
        3 => Box::new(HierarchicalKMeansPlusPlus),
        4 => Box::new(UniformSeeder),
        _ => Box::new(given::<F>(columns, bytes)),
    }
}

/// Centres that are near 0 mostly.
fn given<F: Float>(columns: usize, bytes: &mut Bytes<'_>) -> Given<F> {
    const EXTREMES: [f64; 8] = [0.0, 1e9, -1e30, 1e37, 1e149, f64::NAN, f64::INFINITY, 1e300];
    let shape = match bytes.byte() {
        255 => (0, columns),
        254 => (3, columns + 1),
        byte => (1 + usize::from(byte) % CLUSTERS, columns),
    };
    let centres = Array2::from_shape_fn(shape, |_| match bytes.byte() {
        byte @ 0..=247 => F::from_f64(0.25 * f64::from(byte as i8)),
        byte => F::from_f64(EXTREMES[usize::from(byte) % EXTREMES.len()]),
    });
    Given::new(centres.view())
}

type AnyCoreset<F> = Box<dyn Coreset<F>>;
pub(crate) type AnySeeder<F> = Box<dyn Seeder<F>>;

/// The settings that are not stages.
fn with_settings<F: Float>(columns: usize, control: &Control, bytes: &mut Bytes<'_>) -> Builder<F> {
    let mut builder = Clusterer::builder()
        .clusters(bytes.count(CLUSTERS))
        .seed(u64::from(bytes.byte()))
        .restarts(1 + bytes.few(2))
        .max_iterations(bytes.few(ITERATIONS))
        .stop_rule(rule(bytes))
        .tolerance(bytes.real())
        .coreset(any_coreset(bytes))
        .seeder(any_seeder(columns, bytes));
    if let Some(checkpoint) = &control.checkpoint {
        builder = builder.checkpoint(checkpoint);
    }
    if let Some(cancel) = &control.cancel {
        builder = builder.cancel(cancel);
    }
    builder
}

/// Stages of the crate in any combination, for data of `columns` columns.
pub(crate) fn of_stages<F: Float>(
    columns: usize,
    control: &Control,
    bytes: &mut Bytes<'_>,
) -> Result<Boxed<F>> {
    let builder = with_settings::<F>(columns, control, bytes);
    match bytes.below(6) {
        0 => of_family(builder.e_step(exhaustive(bytes)), bytes),
        1 => of_family(builder.e_step(neighborhood(bytes)), bytes),
        2 => of_family(builder.e_step(sampling(bytes)), bytes),
        3 => built(builder.e_step(Lazy::new(bytes.real()))),
        _ => {
            let list: Vec<_> = (0..bytes.few(4)).map(|_| phase(bytes)).collect();
            built(builder.phases(move |_| list.clone()))
        }
    }
}

/// The Dirichlet process with any prior and search.
pub(crate) fn dirichlet_process<F: Float>(
    columns: usize,
    control: &Control,
    bytes: &mut Bytes<'_>,
) -> Result<Boxed<F>> {
    let builder = with_settings::<F>(columns, control, bytes).m_step(process(columns, bytes));
    match bytes.below(3) {
        0 => built(builder.e_step(exhaustive(bytes))),
        1 => built(builder.e_step(neighborhood(bytes))),
        _ => built(builder.e_step(sampling(bytes))),
    }
}

fn exhaustive(bytes: &mut Bytes<'_>) -> Exhaustive {
    match bytes.below(3) {
        0 => Exhaustive::all(),
        1 => Exhaustive::nearest(),
        _ => Exhaustive::truncated(bytes.count(8)),
    }
}

fn neighborhood(bytes: &mut Bytes<'_>) -> Neighborhood {
    let search = Neighborhood::new(bytes.count(8), bytes.count(8));
    let search = match bytes.one_in(3) {
        true => search.random(bytes.count(4)),
        false => search,
    };
    search
        .from_seeds(bytes.choose(&[false, true]))
        .initial_searches(bytes.few(3))
}

fn sampling(bytes: &mut Bytes<'_>) -> SimilaritySampling {
    SimilaritySampling::new(bytes.count(8), bytes.count(8))
}

fn phase<F: Float>(bytes: &mut Bytes<'_>) -> Phase<F> {
    let mut e_step = Bounded::default().nearest_centres(bytes.count(20));
    if bytes.one_in(4) {
        e_step = e_step.streaming();
    }
    let rows = match bytes.below(3) {
        0 => PhaseRows::Coreset,
        1 => PhaseRows::All,
        _ => PhaseRows::Larger(Lightweight::new(bytes.count(200))),
    };
    let columns = match bytes.below(2) {
        0 => Columns::All,
        _ => Columns::Principal(bytes.count(6)),
    };
    let factor = match bytes.below(4) {
        0 => bytes.real(),
        _ => 1.0,
    };
    let phase = Phase::new(e_step)
        .rows(rows)
        .columns(columns)
        .starts(bytes.few(3))
        .split_and_merge(bytes.few(4))
        .transfers(bytes.few(4))
        .tolerance_factor(factor);
    match bytes.one_in(4) {
        true => phase.after_subspace(),
        false => phase,
    }
}

fn process(columns: usize, bytes: &mut Bytes<'_>) -> DirichletProcess {
    let mut process = DirichletProcess::new(bytes.real());
    if bytes.one_in(4) {
        process = process.paper_priors();
    }
    for _ in 0..bytes.few(3) {
        let wide = columns + usize::from(bytes.one_in(16));
        process = match bytes.below(4) {
            0 => process.mean_precision(bytes.real()),
            1 => process.degrees_of_freedom(columns as f64 + bytes.real()),
            2 => {
                let mean: Array1<f64> = (0..wide).map(|_| bytes.real()).collect();
                process.mean(mean.view())
            }
            _ => {
                // Symmetric, and positive definite where the numbers on the diagonal are large enough.
                let numbers: Vec<f64> = (0..wide + 1).map(|_| bytes.real()).collect();
                let scale = Array2::from_shape_fn((wide, wide), |(i, j)| match i == j {
                    true => 4.0 * numbers[i],
                    false => numbers[wide] / (2 + i + j) as f64,
                });
                process.scale(scale.view())
            }
        };
    }
    process
}

/// With the components asked for.
fn of_family<F: Float>(builder: Builder<F>, bytes: &mut Bytes<'_>) -> Result<Boxed<F>> {
    match bytes.below(9) {
        0 => built(builder),
        1 => built(builder.covariance(Covariance::Spherical)),
        2 => built(builder.m_step(Gaussian::new(Covariance::Spherical).equal_proportions())),
        3 => built(builder.covariance(Covariance::Diagonal)),
        4 => built(builder.covariance(Covariance::Tied)),
        5 => built(builder.covariance(Covariance::Full)),
        6 => built(builder.covariance(Covariance::Factors(1))),
        7 => {
            let numbers = Product::new(Gaussian::new(Covariance::Full));
            built(builder.m_step(numbers.block([0], Gaussian::new(Covariance::Spherical))))
        }
        _ => built(builder.m_step(Gaussian::new(Covariance::Diagonal).equal_proportions())),
    }
}

fn built<F, M>(builder: Builder<F, M>) -> Result<Boxed<F>>
where
    F: Float,
    M: MStep<F> + 'static,
{
    Ok(Box::new(builder.build()?))
}
