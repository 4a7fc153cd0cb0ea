//! The memory of fits, by an allocator that counts: a program of its own, since other tests would count as well.

use coremix::Checkpoint;
use coremix::data::{Blocks, Source};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use ndarray::{Array2, s};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, and how many bytes it has given, now and at most.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How often this thread took memory.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

fn taken(bytes: usize) {
    TAKEN.set(TAKEN.get() + 1);
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

fn given_back(bytes: usize) {
    NOW.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: all work is that of `System`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        given_back(layout.size());
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while one is copied to the other.
        taken(size);
        given_back(layout.size());
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test at a time: also what a test takes before it measures would count in another one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes that `work` takes at once, in addition to those that were taken before, on two threads.
fn peak<T: Send>(work: impl FnOnce() -> T + Send) -> usize {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2);
    let pool = pool.build().unwrap();
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    drop(pool.install(work));
    MOST.load(Ordering::Relaxed) - before
}

/// Rows in clusters, computed from their numbers.
fn row(n: usize, j: usize, clusters: usize) -> f32 {
    let mixed = |n: usize| {
        let n = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (n >> 40) as f32 / (1 << 24) as f32
    };
    20.0 * mixed((n % clusters) * 64 + j) + mixed((n << 8) + j + (1 << 40))
}

/// A byte for each row and component would be more than all that is kept: labels, supports, bounds, sums of all shards.
#[test]
fn nothing_of_the_size_of_rows_times_components_is_kept() {
    let _alone = alone();
    let (n, d, k) = (60_000, 2, 400);
    let x = Array2::from_shape_fn((n, d), |(n, j)| row(n, j, k));
    let data = Dense::new(&x).unwrap();
    for name in Algorithm::NAMES {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(k);
        let algorithm = algorithm.max_iterations(1).tolerance(0.0);
        let estimator = algorithm.boxed::<f32>().unwrap();
        let mut model = None;
        let bytes = peak(|| model = Some(estimator.fit(&data).unwrap().model));
        assert!(bytes < n * k, "{name}: {bytes} bytes");
        // Each family once.
        if !matches!(name, "fast" | "sparsified-gmm" | "dp-gmm" | "table") {
            continue;
        }
        let model = model.unwrap();
        let bytes = peak(|| {
            model.score(&data).unwrap();
            model.log_densities(&data).unwrap();
            model.truncated_responsibilities(&data, 2).unwrap();
        });
        assert!(bytes < n * k, "{name}: {bytes} bytes for questions");
    }
    // A result of that size, which the user asks for, is counted.
    let means = x.slice(s![..k, ..]);
    let model = GaussianMixture::tied_spherical(means, 1.0).unwrap();
    let bytes = peak(|| model.responsibilities(&data).unwrap());
    assert!(bytes >= n * k * size_of::<f32>(), "{bytes} bytes");
}

/// One row at a time takes no memory after the first call: with one variance, one for each component, and one for each column.
#[test]
fn a_row_is_predicted_without_an_allocation() {
    let _alone = alone();
    let (n, d, k) = (2_000, 24, 50);
    let x = Array2::from_shape_fn((n, d), |(n, j)| row(n, j, k));
    let data = Dense::new(&x).unwrap();
    for kind in [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
    ] {
        let fit = algorithms::gmm(k).covariance(kind).max_iterations(2);
        let model = fit.fit(&data).unwrap().model;
        let mut predictor = model.predictor();
        predictor.predict(x.row(0).as_slice().unwrap()).unwrap();
        let (before, mut sum) = (TAKEN.get(), 0.0);
        for row in x.outer_iter() {
            sum += predictor.predict(row.as_slice().unwrap()).unwrap().1;
        }
        assert_eq!(TAKEN.get(), before, "{kind:?}");
        assert!(sum > 0.0);
    }
    // It counts.
    let before = TAKEN.get();
    drop(vec![sum_of(&x); 2]);
    assert_eq!(TAKEN.get(), before + 1);
}

fn sum_of(x: &Array2<f32>) -> f32 {
    x.iter().sum()
}

/// Rows that are not in memory.
struct Generated {
    rows: usize,
    columns: usize,
    clusters: usize,
}

impl Source for Generated {
    type Element = f32;

    fn len(&self) -> usize {
        self.rows
    }

    fn dim(&self) -> usize {
        self.columns
    }

    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        for (n, out) in (first..).zip(out.chunks_exact_mut(self.columns)) {
            (0..self.columns).for_each(|j| out[j] = row(n, j, self.clusters));
        }
        Ok(())
    }
}

/// [`Algorithm::peak_memory`] is enough, and not much more than a fit takes if rows are many.
#[test]
fn a_fit_takes_as_much_memory_as_it_says() {
    let _alone = alone();
    let (columns, clusters) = (8, 20);
    let (small, large) = (20_000, 400_000);
    let peaks = |algorithm: &Algorithm, rows| {
        let source = Generated {
            rows,
            columns,
            clusters,
        };
        let data = Blocks::new(source).unwrap();
        let fit = algorithm.boxed::<f32>().unwrap();
        let most = peak(|| fit.fit(&data).unwrap());
        let said = algorithm.peak_memory::<f32>(rows, columns, None).unwrap();
        assert!(most <= said, "{algorithm}: {most} bytes, {said} expected");
        (most, said)
    };
    let kinds = [
        Covariance::Tied,
        Covariance::Full,
        Covariance::Factors(3),
        Covariance::Factors(7),
    ];
    for (name, kind) in ["gmm", "vc-gmm", "table"]
        .into_iter()
        .flat_map(|name| kinds.map(|kind| (name, kind)))
    {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(clusters);
        let algorithm = algorithm.max_iterations(2).covariance(kind);
        peaks(&algorithm.clone().restarts(3), small);
        peaks(&algorithm, large);
    }
    for name in Algorithm::NAMES {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(clusters);
        let algorithm = algorithm.max_iterations(2);
        let path = std::env::temp_dir().join(format!("coremix-memory-{}", std::process::id()));
        let checkpoint = Checkpoint::to(&path).every_iterations(1);
        for algorithm in [
            algorithm.clone().checkpoint(&checkpoint).restarts(3),
            algorithm.clone().checkpoint(&checkpoint),
            algorithm.clone().coreset(9_000),
            algorithm.clone().restarts(2).cancel(&Cancel::default()),
            algorithm,
        ] {
            peaks(&algorithm, small);
            let (most, said) = peaks(&algorithm, large);
            assert!(
                said <= 4 * most,
                "{algorithm}: {most} bytes, {said} expected"
            );
        }
    }
}

/// Sums of pairs of columns are most of what a fit of many columns takes: all of each matrix counts.
#[test]
fn pairs_of_columns_count() {
    let _alone = alone();
    let (columns, clusters) = (64, 16);
    let algorithm = |name: &str| {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(clusters);
        algorithm.max_iterations(4).tolerance(0.0)
    };
    let with = |name, kind| algorithm(name).covariance(kind);
    for algorithm in [
        with("gmm", Covariance::Full),
        with("gmm", Covariance::Tied),
        with("gmm", Covariance::Factors(4)),
        with("vc-gmm", Covariance::Full).coreset(2_000),
        algorithm("dp-gmm"),
    ] {
        let source = Generated {
            rows: 20_000,
            columns,
            clusters,
        };
        let data = Blocks::new(source).unwrap();
        let fit = algorithm.boxed::<f32>().unwrap();
        let most = peak(|| fit.fit(&data).unwrap());
        let said = algorithm.peak_memory::<f32>(20_000, columns, None).unwrap();
        assert!(most <= said, "{algorithm}: {most} bytes, {said} expected");
    }
}

/// Any numbers have an answer.
#[test]
fn memory_of_absurd_sizes() {
    let _alone = alone();
    for name in Algorithm::NAMES {
        let algorithm = name.parse::<Algorithm>().unwrap();
        let of = |clusters| {
            let algorithm = algorithm.clone().clusters(clusters);
            algorithm.peak_memory::<f32>(usize::MAX, usize::MAX, None)
        };
        assert!(of(usize::MAX).unwrap() > usize::MAX / 2, "{name}");
        assert!(of(0).is_err(), "{name}");
    }
}

/// `fast_within` takes at most its bytes, and makes use of them.
#[test]
fn a_limit_on_memory_is_kept() {
    let _alone = alone();
    let (rows, columns, clusters) = (300_000, 8, 12);
    let data = Blocks::new(Generated {
        rows,
        columns,
        clusters,
    });
    let data = data.unwrap();
    let mut before = 0;
    for limit in [6 << 20, 8 << 20, 12 << 20] {
        let fit = algorithms::fast_within(clusters, limit).max_iterations(5);
        let fit = fit.build().unwrap();
        let most = peak(|| fit.fit(&data).unwrap());
        assert!(most <= limit, "{limit}: {most} bytes");
        assert!(most > before, "{limit}: {most} bytes, {before} with less");
        before = most;
    }
    // Whether coresets fit does not depend on the number of threads.
    let of_phases = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let fit = algorithms::fast_within::<f32>(clusters, 8 << 20).max_iterations(1);
        let (pool, fit) = (pool.build().unwrap(), fit.build().unwrap());
        let mut rows: Vec<usize> = Vec::new();
        // Where no other test is measured.
        peak(|| {
            let report = pool.install(|| fit.fit(&data).unwrap()).report;
            rows = report.phases.iter().map(|phase| phase.rows).collect();
        });
        rows
    };
    assert_eq!(of_phases(1), of_phases(5));
    // Without a limit all rows are kept.
    let fit = algorithms::fast(clusters).max_iterations(5).build();
    let fit = fit.unwrap();
    let most = peak(|| fit.fit(&data).unwrap());
    assert!(most > 48 * rows, "{most} bytes");
}
