//! An observer that stops a fit gets the first part of the same fit.

use crate::common::blobs;
use coremix::prelude::*;
use std::ops::ControlFlow;

/// A search, as an observer sees it.
#[derive(Clone, Debug, PartialEq)]
struct Search {
    /// Phase, rows, M-steps and evaluations of the phase so far.
    place: (usize, usize, usize, u64),
    free_energy: u64,
    means: Vec<u32>,
}

/// The first `searches` searches, after which the observer stops the fit, and the fit.
fn first(
    of: &dyn Estimator<f32>,
    data: &Dense<'_, f32>,
    searches: usize,
) -> (Vec<Search>, Report, Vec<u32>) {
    let mut seen = Vec::new();
    let fit = of.fit_observed(data, &mut |progress| {
        if let Progress::Iteration {
            phase,
            rows,
            iteration,
            free_energy,
            evaluations,
            model,
            ..
        } = progress
        {
            seen.push(Search {
                place: (*phase, *rows, *iteration, *evaluations),
                free_energy: free_energy.to_bits(),
                means: model.means().iter().map(|x| x.to_bits()).collect(),
            });
        }
        match seen.len() >= searches {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let fit = fit.unwrap();
    let means = fit.model.means().iter().map(|x| x.to_bits()).collect();
    (seen, fit.report, means)
}

/// Search by search, in every algorithm: what is seen, and what the fit that was stopped returns.
#[test]
fn a_fit_that_is_stopped_is_the_first_part_of_the_same_fit() {
    let x = blobs::<f32>(900, 20, 9, 6);
    let data = Dense::new(x.view()).unwrap();
    for name in Algorithm::NAMES {
        let algorithm: Algorithm = name.parse().unwrap();
        // A coreset, so that `fast` has phases in a subspace and on several kinds of rows. One start in each.
        let algorithm = algorithm.clusters(12).coreset(200);
        let algorithm = algorithm.max_iterations(6).tolerance(1e-9).restarts(1);
        let estimator = algorithm.boxed::<f32>().unwrap();
        let (whole, report, _) = first(&*estimator, &data, usize::MAX);
        assert!(whole.len() > 2, "{name}: {} searches", whole.len());
        let all = report.phases.iter().flat_map(|phase| &phase.free_energies);
        let all: Vec<u64> = all.map(|f| f.to_bits()).collect();
        let seen: Vec<u64> = whole.iter().map(|search| search.free_energy).collect();
        assert_eq!(seen, all, "{name}");
        for searches in 1..=whole.len() {
            let (part, report, means) = first(&*estimator, &data, searches);
            assert!(part == whole[..searches], "{name}: {searches} searches");
            let last = &whole[searches - 1];
            assert!(means == last.means, "{name}: model of search {searches}");
            let all = report.phases.iter().flat_map(|phase| &phase.free_energies);
            let all: Vec<u64> = all.map(|f| f.to_bits()).collect();
            assert_eq!(all, seen[..searches], "{name}: {searches} searches");
            let phase = report.phases.last().unwrap();
            let place = (phase.rows, phase.iterations);
            assert_eq!(place, (last.place.1, last.place.2), "{name}");
            assert_eq!(report.free_energies, phase.free_energies, "{name}");
            let ended = searches == whole.len() || report.stop == Stop::Observer;
            assert!(ended, "{name}: {}", report.stop);
        }
    }
}

/// Whoever watches sees how much of the seeding is done: from nothing to all of it, for every seeder.
#[test]
fn the_share_of_the_seeding_goes_to_one() {
    let x = blobs::<f32>(9_000, 4, 9, 6);
    let data = Dense::new(x.view()).unwrap();
    for name in Algorithm::NAMES {
        for (greedy, k) in [(false, 2), (false, 300), (true, 40)] {
            let mut algorithm: Algorithm = name.parse().unwrap();
            algorithm = algorithm.clusters(k).max_iterations(1).restarts(2);
            if greedy {
                algorithm = algorithm.greedy(true);
            }
            // Others have no greedy seeds.
            let Ok(estimator) = algorithm.boxed::<f32>() else {
                continue;
            };
            let (mut shares, mut last) = (Vec::new(), None);
            let fit = estimator.fit_observed(&data, &mut |progress| {
                match progress {
                    Progress::Seeding { share, .. } => {
                        shares.push(share.get());
                        last = Some((*share).clone());
                    }
                    Progress::Seeded { .. } => shares.push(last.take().unwrap().get()),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            fit.unwrap();
            assert!(shares.len() >= 4, "{name}: {shares:?}");
            let sound = |pair: &[f64]| *pair == [0.0, 1.0];
            assert!(shares.chunks(2).all(sound), "{name}, {k}: {shares:?}");
        }
    }
}
