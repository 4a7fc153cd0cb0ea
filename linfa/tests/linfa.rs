//! linfa's traits give the models of the crate's own.

use coremix::prelude::*;
use coremix_linfa::Linfa;
use linfa::DatasetBase;
use linfa::traits::{Fit as _, Predict as _};
use ndarray::{Array1, Array2};

fn rows() -> Array2<f32> {
    let mut rng = coremix::stage::Rng::from_seed(3);
    Array2::from_shape_fn((300, 3), |(n, j)| {
        (7 * (n % 4) * (j + 1)) as f32 + rng.normal() as f32
    })
}

/// These rows in the crate's version of arrays.
fn own(rows: &Array2<f32>) -> coremix::ndarray::Array2<f32> {
    coremix::ndarray::Array2::from_shape_fn(rows.dim(), |at| rows[at])
}

#[test]
fn fits_and_predictions_are_those_of_the_crate() {
    let x = rows();
    let weights = Array1::from_shape_fn(300, |n| (n % 3) as f32);
    let gmm = || algorithms::gmm(4).seed(7).build().unwrap();
    let own = own(&x);
    let plain = gmm().fit(&Dense::new(own.view()).unwrap()).unwrap();
    let w = coremix::ndarray::Array1::from_shape_fn(300, |n| (n % 3) as f32);
    let data = Dense::weighted(own.view(), w.view()).unwrap();
    let weighted = gmm().fit(&data).unwrap();

    let found = Linfa::new(gmm())
        .fit(&DatasetBase::from(x.clone()))
        .unwrap();
    assert_eq!(found.fit.model.means(), plain.model.means());
    let dataset = DatasetBase::from(x.clone()).with_weights(weights);
    let boxed: Box<dyn Estimator<f32>> = Box::new(gmm());
    let found = Linfa::new(boxed).fit(&dataset).unwrap();
    assert_eq!(found.fit.model.means(), weighted.model.means());

    let expected: Vec<usize> = weighted
        .model
        .predict(&data)
        .unwrap()
        .iter()
        .map(|c| *c as usize)
        .collect();
    assert_eq!(found.predict(&x).to_vec(), expected);
    // Columns one after the other: other strides, the same rows.
    let mut columns = Array2::zeros((3, 300)).reversed_axes();
    columns.assign(&x);
    assert!(!columns.is_standard_layout());
    assert_eq!(found.predict(&columns).to_vec(), expected);
    assert_eq!(found.predict(dataset).targets.to_vec(), expected);
    let none = Array2::<f32>::zeros((0, 3));
    assert!(found.predict(&none).is_empty());
}

/// Every named algorithm, in both types.
#[test]
fn every_algorithm_is_the_one_of_the_crate() {
    fn check<F>(of: impl Fn(f32) -> F)
    where
        F: coremix::Element<Float = F> + coremix::Float + linfa::Float,
    {
        let x = rows().mapv(of);
        let own = coremix::ndarray::Array2::from_shape_fn(x.dim(), |at| x[at]);
        let data = Dense::new(own.view()).unwrap();
        let dataset = DatasetBase::from(x.clone());
        for name in Algorithm::NAMES {
            let algorithm = name.parse::<Algorithm>().unwrap().clusters(4);
            let estimator = algorithm.coreset(100).boxed::<F>().unwrap();
            let expected = estimator.fit(&data).unwrap().model;
            let found = Linfa::new(estimator).fit(&dataset).unwrap();
            assert_eq!(found.fit.model.means(), expected.means(), "{name}");
            let labels = expected.predict(&data).unwrap();
            let labels: Vec<usize> = labels.iter().map(|c| *c as usize).collect();
            assert_eq!(found.predict(&x).to_vec(), labels, "{name}");
        }
    }
    check::<f32>(|x| x);
    check::<f64>(f64::from);
}

#[test]
fn what_is_wrong_is_an_error_of_the_fit() {
    let mut x = rows();
    x[[5, 1]] = f32::NAN;
    let gmm = || Linfa::new(algorithms::gmm(4).build().unwrap());
    let error = gmm().fit(&DatasetBase::from(x)).unwrap_err();
    assert!(error.to_string().contains("row 5, column 1"), "{error}");
    let none = Array2::<f32>::zeros((0, 3));
    assert!(gmm().fit(&DatasetBase::from(none)).is_err());
    let negative = DatasetBase::from(rows()).with_weights(Array1::from_elem(300, -1.0));
    assert!(gmm().fit(&negative).is_err());
}
