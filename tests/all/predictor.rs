//! One row at a time: the answers are those about all rows.

use coremix::families::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{BoxedMixture, Float, Predictor};
use ndarray::{Array2, ArrayView2};

/// Rows around `k` centres that overlap, with two columns of few values, so that rows repeat and distances tie.
fn points<F: Float>(n: usize, d: usize, k: usize, seed: u64) -> Array2<F> {
    let mut rng = Rng::from_seed(seed);
    let centres = Array2::from_shape_fn((k, d), |_| 3.0 * rng.normal());
    Array2::from_shape_fn((n, d), |(i, j)| {
        let x = centres[[i % k, j]] + rng.normal();
        F::from_f64(if j < 2 { x.round() } else { x } + 100.0)
    })
}

/// Compares the answers about each row with those about all rows.
fn compare<F: Float>(model: &BoxedMixture<F>, x: ArrayView2<'_, F>, name: &str) {
    let data = Dense::new(x).unwrap();
    let labels = model.predict(&data).unwrap();
    let densities = model.log_densities(&data).unwrap();
    let (mut one, means) = (model.predictor(), model.means());
    let mut total = 0.0;
    for (i, row) in x.outer_iter().enumerate() {
        let row = row.to_vec();
        let (label, squared) = one.predict(&row).unwrap();
        assert_eq!(label, labels[i], "{name}: row {i}");
        let pairs = row.iter().zip(means.row(label as usize));
        let expected: f64 = pairs.map(|(x, m)| (x.to_f64() - m.to_f64()).powi(2)).sum();
        let rounding = 1e3 * F::EPSILON * (1.0 + expected);
        assert!((squared - expected).abs() <= rounding, "{name}: row {i}");
        let density = one.log_density(&row).unwrap();
        let rounding = 1e2 * F::EPSILON * (1.0 + densities[i].abs());
        assert!(
            (density - densities[i]).abs() <= rounding,
            "{name}: row {i}"
        );
        total += squared;
    }
    if model.proportions().len() == 1 {
        let all = model.quantization_error(&data).unwrap();
        assert!((total - all).abs() <= 1e3 * F::EPSILON * all, "{name}");
    }
}

fn every_family<F: Float>() {
    let kinds = [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
        Covariance::Factors(1),
    ];
    for (d, k) in [(1, 1), (2, 3), (5, 1), (7, 9), (33, 20)] {
        let x = points::<F>(800, d, k.max(4), 7 + d as u64);
        let data = Dense::new(x.view()).unwrap();
        let named = |name: &str| name.parse::<Algorithm>().unwrap().clusters(k).seed(3);
        for kind in kinds {
            if d == 1 && kind == Covariance::Factors(1) {
                continue;
            }
            let algorithm = named("gmm").covariance(kind).max_iterations(5);
            let fit = algorithm.boxed::<F>().unwrap().fit(&data).unwrap();
            compare(&fit.model, x.view(), &format!("{kind:?}, {k} in {d}"));
        }
        for name in ["fast", "vc-gmm", "dp-gmm"] {
            let algorithm = named(name).max_iterations(5);
            if name == "vc-gmm" && k < 4 {
                continue;
            }
            let fit = algorithm.boxed::<F>().unwrap().fit(&data).unwrap();
            compare(&fit.model, x.view(), &format!("{name}, {k} in {d}"));
        }
        let sketch = Sketch::new(x.view(), d.div_ceil(2), 5).unwrap();
        let algorithm = named("sparsified-gmm").max_iterations(5);
        let fit = algorithm.boxed::<F>().unwrap().fit(&sketch).unwrap();
        compare(&fit.model, x.view(), &format!("sketch, {k} in {d}"));
    }
}

#[test]
fn one_row_has_the_label_that_it_has_among_all_in_f64() {
    every_family::<f64>();
}

#[test]
fn one_row_has_the_label_that_it_has_among_all_in_f32() {
    every_family::<f32>();
}

/// Equal means, and rows in the middle between two: the lower index. From 2,048 components on, rows together go through cells.
#[test]
fn of_equally_near_components_the_first_is_taken() {
    for k in [2usize, 17, 400, 2_500] {
        let means = Array2::from_shape_fn((k, 3), |(c, j)| (c / 2 * (j + 1) % 50) as f64);
        let model = GaussianMixture::tied_spherical(means.view(), 1.0).unwrap();
        let model: BoxedMixture<f64> = Box::new(model);
        let x = Array2::from_shape_fn((4_000, 3), |(i, j)| (i * (j + 1) % 101) as f64 / 2.0);
        compare(&model, x.view(), &format!("{k} means"));
    }
}

/// A model by reference, in a box, shared, and as a trait object.
#[test]
fn whatever_holds_a_model_can_be_asked() {
    let x = points::<f32>(300, 4, 5, 1);
    let data = Dense::new(x.view()).unwrap();
    let model = algorithms::k_means(5).fit(&data).unwrap().model;
    let row = x.row(7).to_vec();
    let expected = model.predictor().predict(&row).unwrap();
    assert_eq!(expected.0, model.predict(&data).unwrap()[7]);
    let object: &dyn Mixture<f32> = &model;
    assert_eq!(Predictor::new(object).predict(&row).unwrap(), expected);
    let shared = std::sync::Arc::new(model.clone());
    assert_eq!(Predictor::new(shared).predict(&row).unwrap(), expected);
    let boxed: BoxedMixture<f32> = Box::new(model);
    assert_eq!(boxed.predictor().predict(&row).unwrap(), expected);
    let mut owned = Predictor::new(boxed);
    assert_eq!(owned.predict(&row).unwrap(), expected);
}

/// After an error the next answer is right.
#[test]
fn wrong_rows_are_errors() {
    let x = points::<f32>(300, 4, 5, 1);
    let model = algorithms::gmm(5).fit(&Dense::new(x.view()).unwrap());
    let model = model.unwrap().model;
    let mut one = model.predictor();
    let good = x.row(0).to_vec();
    let expected = one.predict(&good).unwrap();
    for place in 0..4 {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let mut row = good.clone();
            row[place] = bad;
            let error = one.predict(&row).unwrap_err();
            match &error {
                Error::TooLarge { column, .. } if bad == f32::MAX => assert_eq!(*column, place),
                Error::NotFinite { column, .. } => assert_eq!(*column, place),
                other => panic!("{other}"),
            }
            assert_eq!(one.log_density(&row).unwrap_err(), error);
            assert_eq!(one.predict(&good).unwrap(), expected);
        }
    }
    for wrong in [0, 1, 3, 5, 8] {
        let error = one.predict(&vec![0.5; wrong]).unwrap_err();
        let (expected, found) = (4, wrong);
        assert!(
            matches!(error, Error::DimensionMismatch { expected: e, found: f, .. } if (e, f) == (expected, found))
        );
    }
    assert_eq!(one.predict(&good).unwrap(), expected);
}
