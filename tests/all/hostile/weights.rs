//! Weights that are none, at the ends of the range, and 0.

use super::*;

#[test]
fn weights_that_are_none() {
    let x = blobs::<f32>(900, 3, 4, 5);
    for bad in [-1.0, -1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for row in [0, 511, 899] {
            let mut w = unit_weights(900);
            w[row] = bad;
            w[899] = bad;
            refused!(
                Dense::weighted(x.view(), w.view()),
                Error::Weight { row: r, value } if *r == row && value.to_bits() == bad.to_bits(),
                &format!("row {row}"),
                format!("{bad:?}").trim_end_matches(".0"),
            );
        }
    }
    for zero in [0.0, -0.0] {
        let w = Array1::from_elem(900, zero);
        let result = Dense::weighted(x.view(), w.view());
        refused!(result, Error::TotalWeight { total } if *total == 0.0, "sum to 0");
    }
    let w = Array1::from_elem(900, 1e306);
    let result = Dense::weighted(x.view(), w.view());
    refused!(result, Error::TotalWeight { total } if total.is_infinite(), "sum to inf");
    for n in [0, 899, 901] {
        let w = unit_weights(n);
        refused!(
            Dense::weighted(x.view(), w.view()),
            Error::LengthMismatch { what: "weights", expected: 900, found } if *found == n,
            "weights",
            &n.to_string(),
            "900",
        );
    }
}

/// A negative weight is an error also where it is lost in the sum of the others.
#[test]
fn a_tiny_negative_weight_is_refused() {
    let x = Array2::from_shape_fn((3, 1), |(i, _)| i as f64);
    let weights = ndarray::array![1e24, -1e-300, 1.0];
    assert!(Dense::weighted(x.view(), weights.view()).is_err());
}

/// The unit of the weights is the user's: a power of two times the weights changes no bit of the model.
fn weights_scale_exactly<F: Float>(exponents: &[i32], tolerance: f64) {
    let x = blobs::<F>(400, 3, 5, 12);
    let w = Array1::from_shape_fn(400, |n| 0.25 + (n % 7) as f64);
    let data = Dense::weighted(x.view(), w.view()).unwrap();
    for algorithm in all::<F>().into_iter().filter(|a| !a.has_prior()) {
        let fit = (algorithm.fit)(&data, &few_steps(5)).unwrap();
        for &exponent in exponents {
            let name = format!("{}, weights times 2^{exponent}", algorithm.name);
            let scaled_w = w.mapv(|w| w * 2f64.powi(exponent));
            let scaled_data = Dense::weighted(x.view(), scaled_w.view()).unwrap();
            let scaled = (algorithm.fit)(&scaled_data, &few_steps(5)).unwrap();
            sound(&name, &scaled, &scaled_data, scaled_w.sum());
            let off = |got: f64, expected: f64| {
                assert!(
                    (got - expected).abs() <= tolerance * expected.abs().max(1.0),
                    "{name}: {got:e} instead of {expected:e}"
                );
            };
            for (got, expected) in scaled.means.iter().zip(&fit.means) {
                off(got.to_f64(), expected.to_f64());
            }
            for (got, expected) in scaled.variances.iter().zip(&fit.variances) {
                off(*got, *expected);
            }
            assert_eq!(scaled.labels, fit.labels, "{name}");
        }
    }
}

#[test]
fn the_unit_of_weights_is_free() {
    weights_scale_exactly::<f64>(&[-100, 100], 0.0);
    weights_scale_exactly::<f32>(&[-100, 100], 0.0);
}

/// 1e-300 and 1e300: shares far below the weight itself may fall out of range, nothing else.
#[test]
fn tiny_and_huge_weights() {
    weights_scale_exactly::<f64>(&[-940, 940], 1e-9);
    weights_scale_exactly::<f32>(&[-940, 940], 1e-6);
}

/// Sums of weights times squares overflow although neither does.
#[test]
fn huge_weights_on_large_values() {
    let x = blobs::<f64>(200, 3, 4, 13).mapv(|v| v * 2f64.powi(40));
    let (data, w) = (
        Dense::new(x.view()).unwrap(),
        Array1::from_elem(200, 2f64.powi(940)),
    );
    let heavy = Dense::weighted(x.view(), w.view()).unwrap();
    let of = |a: &Algorithm<f64>| !a.has_prior() && !a.is_raw();
    for algorithm in all::<f64>().into_iter().filter(of) {
        let fit = (algorithm.fit)(&data, &few_steps(4)).unwrap();
        let same = (algorithm.fit)(&heavy, &few_steps(4)).unwrap();
        sound(algorithm.name, &same, &heavy, w.sum());
        let scale = 1e-9 * 2f64.powi(40);
        let near = fit
            .means
            .iter()
            .zip(&same.means)
            .all(|(a, b)| (a - b).abs() <= scale);
        assert!(near, "{}: {} and {}", algorithm.name, fit.means, same.means);
        let off = same.variances_off(&fit);
        assert!(off < 1e-9, "{}: {off:e}", algorithm.name);
    }
}

/// Weights whose sums over data could not be finite are refused by their sum; just inside the bounds every
/// algorithm is sound.
#[test]
fn weights_at_the_ends_of_the_range() {
    let x = blobs::<f64>(200, 3, 4, 13);
    for weight in [5e-324, 1e-310, 1e-293, 1e288, 1e306] {
        let w = Array1::from_elem(200, weight);
        let error = Dense::weighted(x.view(), w.view()).unwrap_err();
        assert!(matches!(error, Error::TotalWeight { .. }), "{error}");
        assert!(error.to_string().contains("1e290"), "{error}");
    }
    for weight in [1e-291, 1e287] {
        let w = Array1::from_elem(200, weight);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        for algorithm in all::<f64>() {
            let name = format!("{}, weights {weight:e}", algorithm.name);
            let fit = (algorithm.fit)(&data, &Settings::new(4, 2)).expect(&name);
            assert!(fit.means.iter().all(|m| m.is_finite()), "{name}");
            let sound = |v: &f64| v.is_finite() && *v > 0.0;
            assert!(fit.variances.iter().all(sound), "{name}");
            let energies = &fit.report.free_energies;
            assert!(
                energies.iter().all(|f| f.is_finite()),
                "{name}: {energies:?}"
            );
            answers(&name, &*fit.model, &data);
        }
    }
}

/// A row of weight 0 counts as absent, however far away it is and wherever it stands.
fn absent_rows<F: Float>(far: &[f64], tolerance: f64) {
    let x = blobs::<F>(300, 2, 4, 14);
    let start = seeds(&x, 4, 5);
    let without = Dense::new(x.view()).unwrap();
    for &far in far {
        let stray = Array2::from_elem((1, 2), F::from_f64(far));
        for first in [false, true] {
            let parts = if first {
                [stray.view(), x.view()]
            } else {
                [x.view(), stray.view()]
            };
            let with = concatenate(Axis(0), &parts).unwrap();
            let mut w = unit_weights(301);
            w[if first { 0 } else { 300 }] = 0.0;
            let data = Dense::weighted(with.view(), w.view()).unwrap();
            for algorithm in all::<F>() {
                let name = format!("{}, absent {far:e}, first: {first}", algorithm.name);
                let fit = match (algorithm.fit)(&data, &few_steps(4)) {
                    Err(Error::TooLarge { .. }) if algorithm.rows != Known::Dense => continue,
                    fit => fit.unwrap(),
                };
                sound(&name, &fit, &data, 300.0);
                // A row in front changes the numbers of the others.
                if !algorithm.deterministic || (algorithm.rows == Known::Sketch && first) {
                    continue;
                }
                let settings = Settings::fixed(start.view(), 4);
                let fit = (algorithm.fit)(&data, &settings).unwrap();
                let expected = (algorithm.fit)(&without, &settings).unwrap();
                let off = fit.variances_off(&expected);
                assert!(off <= tolerance, "{name}: variance off by {off:e}");
                for (a, b) in fit.means.iter().zip(&expected.means) {
                    let off = (a.to_f64() - b.to_f64()).abs();
                    assert!(off <= 10.0 * tolerance, "{name}: mean off by {off:e}");
                }
                let sums = |fit: &Outcome<F>, data| {
                    let error = fit.model.quantization_error(data).unwrap();
                    [error, fit.model.log_likelihood(data).unwrap()]
                };
                for (a, b) in sums(&fit, &data).into_iter().zip(sums(&expected, &without)) {
                    assert!(
                        (a - b).abs() <= tolerance * b.abs(),
                        "{name}: {a:e} and {b:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn rows_of_weight_zero_are_absent_f32() {
    absent_rows::<f32>(&[3.0, 1e10, 8e37], 1e-5);
}

#[test]
fn rows_of_weight_zero_are_absent_f64() {
    absent_rows::<f64>(&[3.0, 1e12, 1e149], 1e-9);
}

/// Rows of weight 0 are absent also where the unit of the frame is so small that a stray row overflows.
#[test]
fn rows_of_weight_zero_are_absent_beside_tiny_data() {
    let x = blobs::<f32>(300, 2, 4, 14).mapv(|v| v * 1e-30);
    let stray = Array2::from_elem((1, 2), 1e30f32);
    let x = concatenate(Axis(0), &[x.view(), stray.view()]).unwrap();
    let mut w = unit_weights(301);
    w[300] = 0.0;
    every_algorithm("tiny data and a stray row", x.view(), Some(&w), 4);
}

/// A row that no component explains has a density of 0. Without weight it does not count.
#[test]
fn a_density_of_zero_without_weight_does_not_count() {
    let mut x = Array2::<f64>::zeros((21, 2));
    let mut w = unit_weights(21);
    let model = algorithms::gmm(2).build().unwrap();
    let model = model.fit(&Dense::new(x.view()).unwrap()).unwrap().model;
    x.row_mut(20).fill(1e150);
    w[20] = 0.0;
    let all = Dense::weighted(x.view(), w.view()).unwrap();
    let alone = x.slice(ndarray::s![..20, ..]);
    let alone = Dense::new(alone).unwrap();
    assert_eq!(model.log_densities(&all).unwrap()[20], f64::NEG_INFINITY);
    let expected = model.log_likelihood(&alone).unwrap();
    assert!(expected.is_finite());
    assert_eq!(model.log_likelihood(&all).unwrap(), expected);
    assert_eq!(model.score(&all).unwrap().log_likelihood, expected);
}
