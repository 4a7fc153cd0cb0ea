//! Seeds from another fit.

use coremix::data::View;
use coremix::datasets::Birch;
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::Rng;
use coremix::{Fit, algorithms};
use ndarray::Array2;

fn points() -> Array2<f64> {
    Birch::grid(60).generate::<f64>(3).unwrap().points
}

fn seeds(x: &Array2<f64>, seed: u64) -> Seeds<f64> {
    let data = Dense::new(x).unwrap();
    let seeder = MeansOf::new(algorithms::fast(25).build().unwrap());
    let mut rng = Rng::from_seed(seed);
    seeder
        .seed(View::new(&data, &data.frame()), 25, &mut rng)
        .unwrap()
}

/// Three groups that differ in all columns, in units of their own: no seed merges two of them, whatever kind of covariance learns units.
/// The oracle is the fit that begins at the means of the groups.
#[test]
fn mixtures_find_groups_in_columns_of_different_units() {
    let groups = [
        [30.0, 2_200.0, 3.0],
        [45.0, 3_800.0, 12.0],
        [68.0, 2_600.0, 25.0],
    ];
    let spread = [5.0, 250.0, 2.0];
    for seed in 0..50 {
        let mut rng = Rng::from_seed(seed);
        let mut x = Array2::zeros((600, 3));
        for ((i, j), value) in x.indexed_iter_mut() {
            *value = groups[i % 3][j] + spread[j] * rng.normal();
        }
        let data = Dense::new(&x).unwrap();
        for kind in [Covariance::Diagonal, Covariance::Tied, Covariance::Full] {
            let mixture = algorithms::gmm(3).covariance(kind).seed(seed);
            let at_groups = Given::new(ndarray::arr2(&groups).view());
            let oracle = mixture.clone().seeder(at_groups).build().unwrap();
            let [found, best] = [mixture.build().unwrap(), oracle]
                .map(|it| it.fit(&data).unwrap().model.log_likelihood(&data).unwrap() / 600.0);
            assert!(found > best - 0.01, "{seed} {kind:?}: {found} and {best}");
        }
    }
}

/// They are the means of that fit, from a seed that is drawn, and evaluations are those of all of its stages.
#[test]
fn seeds_are_the_means_of_the_other_fit() {
    let x = points();
    let data = Dense::new(&x).unwrap();
    let drawn = (Rng::from_seed(9).uniform() * 2f64.powi(53)) as u64;
    let other = algorithms::fast(25).seed(drawn).build().unwrap();
    let fit = other.fit(&data).unwrap();
    let found = seeds(&x, 9);
    assert_eq!(found.evaluations, fit.report.distance_evaluations);
    let frame = data.frame();
    let means = fit.model.means();
    let in_frame = Given::new(means).seed(View::new(&data, &frame), 25, &mut Rng::from_seed(0));
    assert_eq!(found.centres, in_frame.unwrap().centres);
    assert_ne!(found.centres, seeds(&x, 10).centres);
}

#[test]
fn the_laws_of_seeders_hold() {
    let x = points();
    let data = Dense::new(&x).unwrap();
    let seeder = MeansOf::new(algorithms::fast(25).build().unwrap());
    coremix::testing::seeder(&seeder, &data, 25).unwrap();
}

/// A mixture that starts there explains rows at least as well as from seeds of k-means++, in the mean of some seeds.
#[test]
fn mixtures_end_higher() {
    let x = points();
    let data = Dense::new(&x).unwrap();
    let mean = |refined: bool| {
        let of_seed = |seed| {
            let algorithm: Algorithm = "gmm".parse().unwrap();
            let algorithm = algorithm.clusters(25).covariance(Covariance::Diagonal);
            let algorithm = algorithm.refined(refined).seed(seed);
            let estimator = algorithm.boxed::<f64>().unwrap();
            let model = estimator.fit(&data).unwrap().model;
            model.log_likelihood(&data).unwrap()
        };
        (0..8).map(of_seed).sum::<f64>() / 8.0
    };
    assert!(mean(true) > mean(false));
}

/// Every restart has seeds of its own.
#[test]
fn restarts_start_elsewhere() {
    let x = points();
    let data = Dense::new(&x).unwrap();
    let seeder = || MeansOf::new(algorithms::k_means(25).build().unwrap());
    let of = |restarts| {
        let fit = algorithms::gmm(25)
            .seeder(seeder())
            .restarts(restarts)
            .seed(4);
        fit.build().unwrap().fit(&data).unwrap()
    };
    let bound = |fit: &Fit<GaussianMixture<f64>>| *fit.report.free_energies.last().unwrap();
    let (one, several) = (of(1), of(6));
    assert!(bound(&several) >= bound(&one));
    assert!(several.report.restart > 0 || bound(&several) == bound(&one));
}

#[test]
fn another_number_of_clusters_is_an_error() {
    let seeder = MeansOf::new(algorithms::fast::<f64>(7).build().unwrap());
    let error = algorithms::gmm(8).seeder(seeder).build().unwrap_err();
    let text = "clusters of the fit for the seeds and of this fit = 7 and 8: must be equal";
    assert_eq!(error.to_string(), text);
}

/// A flag that is set ends the other fit as well.
#[test]
fn a_cancelled_fit_has_no_seeds() {
    let x = points();
    let cancel = Cancel::default();
    cancel.cancel();
    let seeder = MeansOf::new(algorithms::fast(25).build().unwrap());
    let fit = algorithms::gmm(25).seeder(seeder).cancel(&cancel);
    let found = fit.build().unwrap().fit(&Dense::new(&x).unwrap());
    assert_eq!(found.unwrap_err(), Error::Cancelled);
}

/// A checkpoint belongs to one search and one list of phases: `fast` within memory has other phases.
#[test]
fn settings_tell_searches_and_phases() {
    let of = [
        algorithms::k_means::<f64>(25),
        algorithms::gmm::<f64>(25),
        algorithms::fast::<f64>(25),
        algorithms::fast_within::<f64>(25, 1 << 24),
    ];
    let of = of.map(|builder| format!("{:?}", MeansOf::new(builder.build().unwrap())));
    for (i, settings) in of.iter().enumerate() {
        assert!(!of[..i].contains(settings), "{settings}");
    }
}
