//! Time by stage on generated data: one benchmark per stage and size, so that a change can be judged where
//! it was made. `cargo bench`.

use coremix::algorithms;
use coremix::prelude::*;
use coremix::stage::Rng;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ndarray::Array2;
use std::hint::black_box;

const N: usize = 20_000;
const CLUSTERS: usize = 200;

/// `N` points around `CLUSTERS` centres in `d` dimensions.
fn blobs(d: usize) -> Array2<f32> {
    let mut rng = Rng::from_seed(7);
    let centres = Array2::from_shape_fn((CLUSTERS, d), |_| 3.0 * rng.normal());
    Array2::from_shape_fn((N, d), |(n, j)| {
        (centres[[n % CLUSTERS, j]] + rng.normal()) as f32
    })
}

fn stages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stages");
    group.sample_size(10);
    for d in [2, 8, 32, 128] {
        let x = blobs(d);
        let data = Dense::new(x.view()).expect("finite data");
        let id = |stage| BenchmarkId::new(stage, format!("n{N} d{d} k{CLUSTERS}"));
        let first_rows = x.view().split_at(ndarray::Axis(0), CLUSTERS).0;
        let base = || algorithms::k_means(CLUSTERS).tolerance(0.0);
        let given = || Given::new(first_rows);

        group.bench_function(id("check"), |b| b.iter(|| Dense::new(black_box(x.view()))));
        // The coreset alone, with one search of its few rows.
        let coreset = base().seeder(UniformSeeder).coreset(Lightweight::new(500));
        let coreset = coreset.max_iterations(0).build().expect("valid settings");
        group.bench_function(id("coreset"), |b| b.iter(|| coreset.fit(&data)));
        // Seeds and one search.
        let afk = base()
            .seeder(AfkMc2::new(20))
            .max_iterations(0)
            .build()
            .expect("valid settings");
        group.bench_function(id("afk-mc2"), |b| b.iter(|| afk.fit(&data)));
        let plus_plus = base().max_iterations(0).build().expect("valid settings");
        group.bench_function(id("k-means++"), |b| b.iter(|| plus_plus.fit(&data)));
        // Five iterations of each search.
        let five = || base().seeder(given()).max_iterations(5);
        let hard = five().build().expect("valid settings");
        group.bench_function(id("exhaustive, width 1"), |b| b.iter(|| hard.fit(&data)));
        let em = five()
            .e_step(Exhaustive::all())
            .build()
            .expect("valid settings");
        group.bench_function(id("exhaustive, all"), |b| b.iter(|| em.fit(&data)));
        let truncated = five()
            .e_step(Neighborhood::new(5, 5))
            .build()
            .expect("valid settings");
        group.bench_function(id("neighborhood 5, 5"), |b| b.iter(|| truncated.fit(&data)));
        let seeds = base()
            .seeder(HierarchicalKMeansPlusPlus)
            .max_iterations(0)
            .build()
            .expect("valid settings");
        group.bench_function(id("hierarchical k-means++"), |b| {
            b.iter(|| seeds.fit(&data));
        });
        // Bounds on all rows, as long as in a phase of `fast`: with and without moves, and with all centres near, which is
        // Lloyd's algorithm.
        for (name, near, moves) in [
            ("bounded, moves", 48, 3),
            ("bounded", 48, 0),
            ("bounded, all near", CLUSTERS, 0),
        ] {
            let phase = Phase::new(Bounded::default().nearest_centres(near)).split_and_merge(moves);
            let bounded = base().seeder(given()).phases(move |_| vec![phase.clone()]);
            let bounded = bounded.tolerance(1e-3).max_iterations(12);
            let bounded = bounded.build().expect("valid settings");
            group.bench_function(id(name), |b| b.iter(|| bounded.fit(&data)));
        }
        let fast = algorithms::fast(CLUSTERS).build().expect("valid settings");
        group.bench_function(id("fast"), |b| b.iter(|| fast.fit(&data)));
        let model = hard.fit(&data).expect("enough rows").model;
        group.bench_function(id("predict"), |b| b.iter(|| model.predict(&data)));
    }
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
