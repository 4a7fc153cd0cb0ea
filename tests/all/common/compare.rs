//! Comparisons of numbers, and of fits.

use super::Outcome;
use coremix::Float;
use coremix::prelude::*;
use ndarray::Array2;
use std::fmt::Display;

/// The part of a free energy that rounding may take, in the law that it never falls.
pub fn rounding<F: Float>() -> f64 {
    if F::EPSILON > 1e-10 { 1e-6 } else { 1e-9 }
}

/// A law: free energies are finite and fall by rounding at most: by this part of the larger of their size and the weight of
/// the rows, as in the stop rule (E19), because F itself passes through zero.
#[track_caller]
pub fn rises(what: impl Display, energies: &[f64], weight: f64, rounding: f64) {
    let finite = energies.iter().all(|f| f.is_finite());
    assert!(finite, "{what}: {energies:?}");
    for pair in energies.windows(2) {
        let least = pair[0] - rounding * pair[0].abs().max(weight);
        assert!(pair[1] >= least, "{what}: F fell: {energies:?}");
    }
}

/// The law for each phase of a fit.
#[track_caller]
pub fn rises_in_phases(what: impl Display, report: &Report, weight: f64, rounding: f64) {
    for phase in &report.phases {
        rises(&what, &phase.free_energies, weight, rounding);
    }
}

/// The mean of a number over this many seeds, and the variance of that mean: on one thread, as waking others for a small fit takes
/// longer than the fit.
pub fn mean_of(seeds: std::ops::Range<u64>, number: impl Fn(u64) -> f64 + Send) -> (f64, f64) {
    let numbers: ndarray::Array1<f64> = on(1, || seeds.map(number).collect());
    (
        numbers.mean().unwrap(),
        numbers.var(0.0) / numbers.len() as f64,
    )
}

/// A law in distribution: two means agree within four standard errors, and this share of them.
#[track_caller]
pub fn same_mean(what: impl Display, a: (f64, f64), b: (f64, f64), share: f64) {
    let slack = 4.0 * (a.1 + b.1).sqrt() + share * a.0;
    let off = (a.0 - b.0).abs();
    assert!(off <= slack, "{what}: {} and {}, allowed {slack}", a.0, b.0);
}

/// The result of work on this number of threads.
pub fn on<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

/// A law: the result is the same on any number of threads.
#[track_caller]
pub fn same_on_threads<T: PartialEq + Send>(
    what: impl Display,
    threads: &[usize],
    work: impl Fn() -> T + Send + Sync,
) {
    let one = on(1, &work);
    for &threads in threads {
        assert!(on(threads, &work) == one, "{what} on {threads} threads");
    }
}

/// |x - mu|^2, naively.
pub fn squared_distance<F: Float>(x: ndarray::ArrayView1<F>, mu: ndarray::ArrayView1<F>) -> f64 {
    x.iter()
        .zip(mu)
        .map(|(a, b)| (a.to_f64() - b.to_f64()).powi(2))
        .sum()
}

/// Within `tolerance`, relative to the larger size or 1.
pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

/// The largest difference of two arrays.
pub fn distance<F: Float>(a: &Array2<F>, b: &Array2<F>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    a.iter().zip(b).fold(0.0, |most, (a, b)| {
        most.max((a.to_f64() - b.to_f64()).abs())
    })
}

/// The free energy of the last search.
pub fn last<M: LastFreeEnergy>(fit: &M) -> f64 {
    *fit.report().free_energies.last().unwrap()
}

pub trait LastFreeEnergy {
    fn report(&self) -> &Report;
}
impl<M> LastFreeEnergy for Fit<M> {
    fn report(&self) -> &Report {
        &self.report
    }
}
impl<F: Float> LastFreeEnergy for Outcome<F> {
    fn report(&self) -> &Report {
        &self.report
    }
}

/// Whether two fits end in the same model and took the same free energies to it.
pub fn same(name: &str, a: &Outcome<f64>, b: &Outcome<f64>, tolerance: f64) {
    let far = distance(&a.means, &b.means);
    assert!(far <= tolerance * 64.0, "{name}: means differ by {far}");
    let off = a.variances_off(b);
    assert!(off <= tolerance, "{name}: variances off by {off:e}");
    for (p, q) in a.proportions.iter().zip(&b.proportions) {
        assert!(close(*p, *q, tolerance), "{name}: proportions");
    }
    let largest = a.variances.iter().fold(0.0f64, |most, v| most.max(*v));
    for (v, w) in a.covariances.iter().zip(&b.covariances) {
        let off = (v - w).abs();
        assert!(off <= tolerance * largest, "{name}: covariances {v} {w}");
    }
    // F holds half the logarithm of every variance, times the mass of its component. Where a variance has collapsed it has no
    // more digits than the sum it came from (see `variances_off`), and F has no more than that leaves it.
    let lost = |((c, j), v): ((usize, usize), &f64)| {
        let rows = a.labels.iter().filter(|label| **label as usize == c);
        let heaviest = 3.0 * rows.count() as f64;
        match *v < 1e-8 * largest {
            true => heaviest * (v / b.variances[[c, j]]).ln().abs(),
            false => 0.0,
        }
    };
    let lost: f64 = a.variances.indexed_iter().map(lost).sum();
    let same = |f: f64, g: f64| (f - g).abs() <= tolerance * f.abs().max(g.abs()).max(1.0) + lost;
    assert!(
        same(last(a), last(b)),
        "{name}: last free energy {} {}",
        last(a),
        last(b)
    );
    for (f, g) in a.report.free_energies.iter().zip(&b.report.free_energies) {
        assert!(same(*f, *g), "{name}: {f} {g}");
    }
}
