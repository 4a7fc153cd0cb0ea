//! Restarts at the same time give the results of restarts one after the other.

use crate::common::on;
use coremix::BoxedMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::Array2;
use std::ops::ControlFlow;

type Found = Fit<BoxedMixture<f32>>;

/// All that restarts could change.
fn bits(fit: &Found) -> Vec<u64> {
    let report = &fit.report;
    let mut bits: Vec<u64> = fit
        .model
        .means()
        .iter()
        .map(|x| u64::from(x.to_bits()))
        .collect();
    bits.extend(report.free_energies.iter().map(|x| x.to_bits()));
    bits.extend(report.restarts.iter().map(|x| x.to_bits()));
    bits.extend(fit.search_labels.iter().map(|c| u64::from(*c)));
    bits.extend(fit.supports.iter().flatten().map(|c| u64::from(*c)));
    let counts = report.evaluations;
    bits.extend([counts.coreset, counts.seeding, counts.search]);
    bits.extend([report.restart, report.restarts.len(), report.phases.len()].map(|x| x as u64));
    bits
}

/// With an observer they run one after the other; without one, and with as many threads as restarts, at the same time.
#[test]
fn beside_each_other_and_in_turn() {
    let mut rng = Rng::from_seed(4);
    let x = Array2::from_shape_fn((900, 40), |(n, j)| {
        ((n % 9) * (j % 3)) as f32 + rng.normal() as f32
    });
    let data = Dense::new(x.view()).unwrap();
    for name in Algorithm::NAMES {
        let algorithm: Algorithm = name.parse().unwrap();
        let algorithm = algorithm.clusters(9).restarts(7).seed(2);
        // A coreset, so that `fast` has phases in a subspace and on several kinds of rows.
        let algorithm = algorithm.coreset(200).max_iterations(8);
        let estimator = algorithm.boxed::<f32>().unwrap();
        let expected = on(2, || {
            let seen = estimator.fit_observed(&data, &mut |_| ControlFlow::Continue(()));
            bits(&seen.unwrap())
        });
        for threads in [1, 2, 3, 7, 8] {
            let found = on(threads, || bits(&estimator.fit(&data).unwrap()));
            assert_eq!(found, expected, "{name} on {threads} threads");
        }
    }
}

/// A fit that is cancelled before its restarts begin has no model; one that is cancelled in between keeps what was found.
#[test]
fn cancelled_restarts() {
    let mut rng = Rng::from_seed(5);
    let x = Array2::from_shape_fn((2_000, 4), |_| rng.normal());
    let data = Dense::new(x.view()).unwrap();
    let cancel = Cancel::default();
    let many = algorithms::gmm(20).restarts(1_000_000).tolerance(0.0);
    let many = many.cancel(&cancel).build().unwrap();
    let found = on(2, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(300));
                cancel.cancel();
            });
            many.fit(&data)
        })
    });
    let found = found.unwrap();
    assert_eq!(found.report.stop, Stop::Cancelled);
    // One that ended stands above one that was cut short, whatever their free energies.
    let kept = found.report.restarts[found.report.restart];
    assert_eq!(Some(&kept), found.report.free_energies.last());
    assert_eq!(many.fit(&data).unwrap_err(), Error::Cancelled);
}
