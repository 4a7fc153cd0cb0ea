//! Own stages and data that lie: an error that names who lied, or a fit with labels of components that exist.

use crate::bytes::Bytes;
use crate::liars::{LyingCoreset, LyingData, LyingFamily, LyingSearch, LyingSeeder};
use crate::table::{Shape, Table};
use coremix::Float;
use coremix::data::Data;
use coremix::m_step::MStep;
use coremix::prelude::*;
use coremix::testing;

pub(crate) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let bytes = &mut bytes;
    let shape = Shape::new(bytes);
    let cast = Cast::new(shape.rows, bytes);
    match bytes.below(4) {
        0 => sketch(shape, &cast, bytes),
        _ => dense(shape, &cast, bytes),
    }
}

/// Who takes part, and who of them lies.
#[derive(Clone)]
struct Cast {
    clusters: usize,
    iterations: usize,
    restarts: usize,
    coreset: LyingCoreset,
    seeder: LyingSeeder,
    /// The names of those who lie.
    liars: Vec<&'static str>,
    /// Whether there are others to be blamed for what they say.
    subtle: bool,
}

impl Cast {
    fn new(rows: usize, bytes: &mut Bytes<'_>) -> Self {
        let mut cast = Self {
            clusters: 1 + bytes.below(12),
            iterations: bytes.few(6),
            restarts: 1 + bytes.few(2),
            coreset: LyingCoreset::All,
            seeder: LyingSeeder::honest(),
            liars: Vec::new(),
            subtle: false,
        };
        if bytes.one_in(3) {
            cast.coreset = LyingCoreset::new(rows, bytes);
            cast.liars.push("LyingCoreset");
        }
        if bytes.one_in(3) {
            cast.seeder = LyingSeeder::new(bytes);
            cast.liars.push("LyingSeeder");
        }
        cast
    }

    fn builder<F: Float>(&self) -> Builder<F> {
        Clusterer::builder()
            .clusters(self.clusters)
            .max_iterations(self.iterations)
            .restarts(self.restarts)
            .coreset(self.coreset.clone())
            .seeder(self.seeder.clone())
    }

    /// This cast with another liar.
    fn with(&self, liar: &'static str) -> Self {
        let mut cast = self.clone();
        cast.liars.push(liar);
        cast
    }
}

fn sketch(shape: Shape, cast: &Cast, bytes: &mut Bytes<'_>) {
    let search = bytes.one_in(2).then(|| LyingSearch::new(bytes));
    let q = 1 + bytes.below(6);
    let table = Table::<f32>::new(shape, bytes);
    let data = table.data().and_then(|data| Sketch::of_dense(&data, q, 1));
    let Ok(data) = data else {
        return;
    };
    match search {
        Some(search) => {
            let builder = cast.builder().e_step(search);
            fit(builder, &data, &data, &cast.with("LyingSearch"));
        }
        None => fit(cast.builder(), &data, &data, cast),
    }
}

fn dense(shape: Shape, cast: &Cast, bytes: &mut Bytes<'_>) {
    let (which, alone) = (bytes.below(8), bytes.one_in(8));
    let search = LyingSearch::new(bytes);
    let family = LyingFamily::drawn(bytes);
    let lies = bytes.one_in(3).then(|| bytes.part(8));
    let table = Table::<f64>::new(shape, bytes);
    let Ok(honest) = table.data() else {
        return;
    };
    let lying = lies.map(|mut lies| LyingData::drawn(&honest, &mut lies));
    let (data, cast): (&dyn Data<f64>, _) = match &lying {
        Some(lying) => {
            let mut cast = cast.with("LyingData");
            cast.subtle = lying.is_subtle();
            (lying, cast)
        }
        None => (&honest, cast.clone()),
    };
    if alone {
        if let Some(lying) = &lying {
            testing::data(lying, &honest).ok();
        }
        return laws(&cast, &search, &family, &honest);
    }
    let honest: &dyn Data<f64> = &honest;
    let builder = cast.builder();
    let (own_search, own_family) = (cast.with("LyingSearch"), cast.with("LyingFamily"));
    match which {
        0 => fit(builder.e_step(search), data, honest, &own_search),
        1 => {
            let builder = builder.e_step(search).covariance(Covariance::Diagonal);
            fit(builder, data, honest, &own_search);
        }
        2 => fit(builder.m_step(family), data, honest, &own_family),
        3 => {
            let builder = builder.e_step(Exhaustive::all()).m_step(family);
            fit(builder, data, honest, &own_family);
        }
        4 => {
            let builder = builder.e_step(Neighborhood::new(2, 3)).m_step(family);
            fit(builder, data, honest, &own_family);
        }
        5 => {
            let builder = builder.e_step(search).m_step(family);
            fit(builder, data, honest, &own_search.with("LyingFamily"));
        }
        6 => {
            let phases = |_| {
                let moving = Phase::new(Bounded::default().nearest_centres(3)).split_and_merge(2);
                let all = Phase::new(Bounded::default()).rows(PhaseRows::All);
                vec![moving, all.transfers(3)]
            };
            fit(builder.phases(phases), data, honest, &cast);
        }
        _ => {
            let builder = builder.e_step(SimilaritySampling::new(2, 2));
            fit(
                builder.covariance(Covariance::Spherical),
                data,
                honest,
                &cast,
            );
        }
    }
}

/// Fits the data, and asks the model about rows as they are.
fn fit<F, M>(builder: Builder<F, M>, data: &dyn Data<F>, honest: &dyn Data<F>, cast: &Cast)
where
    F: Float,
    M: MStep<F>,
{
    let found = builder.build().and_then(|fit| fit.fit(data));
    let fit = match found {
        Ok(fit) => fit,
        Err(error) => return blamed(&error, cast),
    };
    let k = cast.clusters;
    assert!(
        fit.search_labels.iter().all(|c| (*c as usize) < k),
        "{:?}",
        fit.search_labels
    );
    if let Some(supports) = &fit.supports {
        assert!(supports.iter().all(|c| (*c as usize) < k), "{supports}");
    }
    let phases = &fit.report.phases;
    let mut energies = phases.iter().flat_map(|phase| &phase.free_energies);
    assert!(energies.all(|f| f.is_finite()), "{phases:?}");
    // Whatever it says: a liar may be the model.
    for rows in [honest, data] {
        let model: &dyn Mixture<F> = &fit.model;
        model.predict(rows).ok();
        model.responsibilities(rows).ok();
        model.truncated_responsibilities(rows, 2).ok();
        model.log_densities(rows).ok();
        model.score(rows).ok();
    }
}

/// Asserts that an error about a stage names one that lied.
fn blamed(error: &Error, cast: &Cast) {
    assert!(!error.to_string().is_empty(), "{error:?}");
    // Weights times squared distances may leave the range of numbers, whoever chose them.
    let overflows = error.to_string().contains("the free energy is");
    if let Error::Stage { stage, .. } = error
        && !(cast.subtle || overflows)
    {
        assert!(
            cast.liars.contains(stage),
            "{error}, but {:?} lied",
            cast.liars
        );
    }
}

/// Holds each stage alone against the laws: they may be broken, and that is all.
fn laws(cast: &Cast, search: &LyingSearch, family: &LyingFamily, data: &dyn Data<f64>) {
    let k = cast.clusters.min(3);
    for result in [
        testing::coreset(&cast.coreset, data),
        testing::seeder(&cast.seeder, data, k),
        testing::e_step(search, data, k),
        testing::family(family, data, k),
    ] {
        if let Err(error) = result {
            assert!(!error.to_string().is_empty(), "{error:?}");
        }
    }
}
