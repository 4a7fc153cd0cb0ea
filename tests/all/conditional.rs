//! Marginal and conditional mixtures against ratios of densities.

use crate::common::{blobs, close};
use coremix::families::{DirichletProcessMixture, GaussianMixture};
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
    // Some columns of a row do not say its length.
    let x = blobs::<f64>(200, 3, 2, 1);
    let data = Dense::new(&x).unwrap();
    let gaussian = algorithms::gmm(2).directions(true).fit(&data).unwrap();
    let process = algorithms::dp_gmm(2, 1.0).directions(true).fit(&data);
    let process = process.unwrap().model;
    for found in [
        gaussian.model.marginal(&[0, 1]).map(|_| ()),
        gaussian.model.condition(&[0], &[0.5]).map(|_| ()),
        process.marginal(&[0, 1]).map(|_| ()),
        process.condition(&[0], &[0.5]).map(|_| ()),
    ] {
        assert!(found.unwrap_err().to_string().contains("directions"));
    }
}

/// Dirichlet processes of columns that depend on one another, of which few rows make the tails heavy.
fn processes() -> impl Iterator<Item = (String, DirichletProcessMixture<f64>)> {
    let turned = array![
        [1.0, 0.5, 0.0, 0.0],
        [0.0, 1.0, -0.7, 0.0],
        [0.0, 0.0, 1.0, 0.3],
        [20.0, 0.0, 0.0, 30.0]
    ];
    [(30, false), (300, false), (300, true)]
        .into_iter()
        .map(move |(n, standardise)| {
            let x = blobs::<f64>(n, 4, 3, 7).dot(&turned);
            let fit = algorithms::dp_gmm(6, 1.0).standardise(standardise).seed(1);
            let fit = fit.build().unwrap().fit(&Dense::new(&x).unwrap()).unwrap();
            (format!("{n} {standardise}"), fit.model)
        })
}

/// $\ln \Gamma$ by Stirling's series, of a number so much larger.
fn log_gamma(x: f64) -> f64 {
    let below: f64 = (0..40).map(|i| (x + f64::from(i)).ln()).sum();
    let z = x + 40.0;
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5));
    (z - 0.5) * z.ln() - z + 0.5 * std::f64::consts::TAU.ln() + series - below
}

/// The predictive density as it is in books, of some columns alone: a Student t with the degrees of freedom of all of them.
fn student_t(model: &DirichletProcessMixture<f64>, columns: &[usize], point: &[f64]) -> f64 {
    let d = columns.len() as f64;
    let dim = model.means().ncols() as f64;
    let terms = (0..model.components()).map(|t| {
        let beta = model.mean_precisions()[t];
        let nu = model.degrees_of_freedom()[t];
        let degrees = nu + 1.0 - dim;
        let covariances = model.covariances();
        let rows = covariances.index_axis(Axis(0), t).select(Axis(0), columns);
        let among = rows.select(Axis(1), columns);
        let scale = among.mapv(|x| x * nu * (1.0 + beta) / (beta * degrees));
        // Elimination, which has the determinant and the solution.
        let mut rows = scale.clone();
        let from_mean = columns.iter().zip(point);
        let from_mean = from_mean.map(|(j, y)| y - model.means()[[t, *j]]);
        let differences: Vec<f64> = from_mean.collect();
        let mut right = differences.clone();
        let mut log_det = 0.0;
        for i in 0..columns.len() {
            log_det += rows[[i, i]].ln();
            for k in i + 1..columns.len() {
                let factor = rows[[k, i]] / rows[[i, i]];
                for j in i..columns.len() {
                    rows[[k, j]] -= factor * rows[[i, j]];
                }
                right[k] -= factor * right[i];
            }
        }
        let mut form = 0.0;
        for i in (0..columns.len()).rev() {
            for j in i + 1..columns.len() {
                right[i] -= rows[[i, j]] * right[j];
            }
            right[i] /= rows[[i, i]];
            form += right[i] * differences[i];
        }
        let density = log_gamma((degrees + d) / 2.0)
            - log_gamma(degrees / 2.0)
            - 0.5 * (d * (degrees * std::f64::consts::PI).ln() + log_det)
            - 0.5 * (degrees + d) * (form / degrees).ln_1p();
        model.proportions()[t] * density.exp()
    });
    terms.sum::<f64>().ln()
}

#[test]
fn parts_of_a_dirichlet_process_are_student_ts() {
    for (name, model) in processes() {
        let (points, _) = model.sample(8, 4).unwrap();
        let density = |model: &DirichletProcessMixture<f64>, x: &Array2<f64>| {
            model.log_densities(&Dense::new(x).unwrap()).unwrap()[0]
        };
        for known in [vec![0], vec![3], vec![2, 0], vec![1, 2, 3]] {
            let others: Vec<usize> = (0..4).filter(|j| !known.contains(j)).collect();
            let marginal = model.marginal(&known).unwrap();
            assert!(close(marginal.proportions().sum(), 1.0, 1e-12));
            for point in points.outer_iter() {
                let values: Vec<f64> = known.iter().map(|j| point[*j]).collect();
                let whole = point.to_owned().insert_axis(Axis(0));
                let alone = density(&marginal, &whole.select(Axis(1), &known));
                let naive = student_t(&model, &known, &values);
                assert!(
                    close(alone, naive, 1e-9),
                    "{name} {known:?}: {alone} {naive}"
                );
                // Missing values are left out of the density in the same way.
                let mut holes = whole.clone();
                others.iter().for_each(|j| holes[[0, *j]] = f64::NAN);
                let holes = Dense::with_missing(&holes).unwrap();
                let left_out = model.log_densities(&holes).unwrap()[0];
                assert!(close(alone, left_out, 1e-9), "{name} {known:?}");
                // p(a | b) = p(a, b) / p(b).
                let condition = model.condition(&known, &values).unwrap();
                let given = density(&condition, &whole.select(Axis(1), &others));
                let both = density(&model, &whole);
                assert!(
                    close(given, both - alone, 1e-8),
                    "{name} {known:?}: {given}"
                );
                assert!(close(condition.proportions().sum(), 1.0, 1e-12));
                // Its labels go by these proportions.
                let shares = condition
                    .responsibilities(&Dense::new(&points.select(Axis(1), &others)).unwrap());
                assert!(shares.unwrap().iter().all(|q| q.is_finite()));
            }
        }
        let order = [2, 0, 3, 1];
        let turned = model.marginal(&order).unwrap();
        let of_turned = density(&turned, &points.select(Axis(1), &order));
        assert!(close(of_turned, density(&model, &points), 1e-9));
        assert!(model.marginal(&[]).is_err() && model.marginal(&[4]).is_err());
        assert!(model.condition(&[0], &[f64::NAN]).is_err());
        assert!(model.condition(&[0, 1, 2, 3], &[0.0; 4]).is_err());
        assert!(model.condition(&[0], &[1e300]).is_err());
        let far = model.condition(&[0], &[1e9]).unwrap();
        assert!(close(far.proportions().sum(), 1.0, 1e-12));
        // A file keeps it.
        let bytes = far.to_bytes(&[]).unwrap();
        assert!(DirichletProcessMixture::<f64>::from_bytes(&bytes).unwrap() == far);
    }
}

/// Far from 0, numbers of the type are too coarse for the means: parts of a mixture keep the digits that the mixture has.
#[test]
fn parts_keep_the_digits_of_means_far_from_0() {
    let x = blobs::<f64>(300, 3, 3, 5).mapv(|x| (x + 3e6) as f32);
    let data = Dense::new(&x).unwrap();
    let density = |model: &GaussianMixture<f32>, columns: &[usize]| {
        let rows = x.select(Axis(1), columns);
        model.log_densities(&Dense::new(&rows).unwrap()).unwrap()
    };
    for kind in [
        Covariance::TiedSpherical,
        Covariance::Diagonal,
        Covariance::Full,
        Covariance::Factors(1),
    ] {
        let model = algorithms::gmm(3)
            .covariance(kind)
            .fit(&data)
            .unwrap()
            .model;
        let whole = density(&model, &[0, 1, 2]);
        let same = density(&model.marginal(&[0, 1, 2]).unwrap(), &[0, 1, 2]);
        let alone = density(&model.marginal(&[0]).unwrap(), &[0]);
        for n in (0..300).step_by(60) {
            assert!(close(whole[n], same[n], 1e-4), "{kind:?}");
            let others = model.condition(&[0], &[f64::from(x[[n, 0]])]).unwrap();
            let both = alone[n] + density(&others, &[1, 2])[n];
            assert!(close(whole[n], both, 1e-3), "{kind:?} {both} {}", whole[n]);
        }
    }
}
