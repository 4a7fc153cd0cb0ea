//! Marginal and conditional mixtures against ratios of densities.

use crate::common::{blobs, close};
use coremix::families::GaussianMixture;
use coremix::prelude::*;
use ndarray::{Array1, Array2, Axis, array};

const KINDS: [Covariance; 6] = [
    Covariance::TiedSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
    Covariance::Factors(1),
];

fn models() -> impl Iterator<Item = (String, GaussianMixture<f64>)> {
    let x = blobs::<f64>(500, 4, 3, 7).dot(&array![
        [1.0, 0.5, 0.0, 0.0],
        [0.0, 1.0, -0.7, 0.0],
        [0.0, 0.0, 1.0, 0.3],
        [20.0, 0.0, 0.0, 30.0]
    ]);
    KINDS.into_iter().flat_map(move |kind| {
        let x = x.clone();
        [false, true].map(move |standardise| {
            let gmm = algorithms::gmm(3).covariance(kind).standardise(standardise);
            let fit = gmm
                .seed(1)
                .build()
                .unwrap()
                .fit(&Dense::new(&x).unwrap())
                .unwrap();
            (format!("{kind:?} {standardise}"), fit.model)
        })
    })
}

fn log_densities(model: &GaussianMixture<f64>, x: &Array2<f64>) -> Array1<f64> {
    model.log_densities(&Dense::new(x).unwrap()).unwrap()
}

/// p(a | b) = p(a, b) / p(b), wherever the point is.
#[test]
fn a_condition_is_the_ratio_of_two_densities() {
    for (name, model) in models() {
        let (points, _) = model.sample(6, 4).unwrap();
        for known in [vec![0], vec![3], vec![2, 0], vec![1, 2, 3]] {
            let others: Vec<usize> = (0..4).filter(|j| !known.contains(j)).collect();
            let marginal = model.marginal(&known).unwrap();
            for point in points.outer_iter() {
                let values: Vec<f64> = known.iter().map(|j| point[*j]).collect();
                let condition = model.condition(&known, &values).unwrap();
                let whole = point.to_owned().insert_axis(Axis(0));
                let own = log_densities(&condition, &whole.select(Axis(1), &others))[0];
                let both = log_densities(&model, &whole)[0];
                let alone = log_densities(&marginal, &whole.select(Axis(1), &known))[0];
                assert!(
                    (own - (both - alone)).abs() < 1e-7 * (1.0 + own.abs()),
                    "{name} {known:?}: {own}"
                );
            }
        }
        // In another order, all columns are the model.
        let turned = model.marginal(&[2, 0, 3, 1]).unwrap();
        let own = log_densities(&turned, &points.select(Axis(1), &[2, 0, 3, 1]));
        for (a, b) in own.iter().zip(&log_densities(&model, &points)) {
            assert!(close(*a, *b, 1e-8), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_asked_is_told() {
    let (_, model) = models().last().unwrap();
    assert!(model.marginal(&[]).is_err());
    assert!(model.marginal(&[4]).is_err());
    assert!(model.marginal(&[1, 1]).is_err());
    assert!(model.condition(&[0, 1, 2, 3], &[0.0; 4]).is_err());
    assert!(model.condition(&[0], &[]).is_err());
    assert!(model.condition(&[0], &[f64::NAN]).is_err());
    let far = model.condition(&[0], &[1e9]).unwrap();
    assert!((far.proportions().sum() - 1.0).abs() < 1e-12);
    assert!(model.condition(&[0], &[1e300]).is_err());
}
