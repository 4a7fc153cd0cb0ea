//! Data, seeds, points and parameters of any size, near 0 and far from it.

use super::*;

/// A power of two times the data gives the same bits, scaled: every step happens in a frame of unit size.
fn scales_exactly<F: Float>(exponents: &[i32], of: impl Fn(&Algorithm<F>) -> bool) {
    let (n, d, k) = (400, 3, 5);
    let x = blobs::<F>(n, d, k, 8);
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>().into_iter().filter(of) {
        let fit = (algorithm.fit)(&data, &few_steps(k)).unwrap();
        let error = fit.model.quantization_error(&data).unwrap();
        let likelihood = fit.model.log_likelihood(&data).unwrap();
        let base_weight = fit
            .coreset
            .as_ref()
            .map_or(n as f64, |c| c.weights.iter().sum());
        for &exponent in exponents {
            let name = format!("{}, 2^{exponent}", algorithm.name);
            let by = 2f64.powi(exponent);
            let scaled_x = x.mapv(|v| F::from_f64(v.to_f64() * by));
            let scaled_data = Dense::new(scaled_x.view()).unwrap();
            let scaled = (algorithm.fit)(&scaled_data, &few_steps(k)).unwrap();
            sound(&name, &scaled, &scaled_data, n as f64);
            assert_eq!(scaled.report.iterations, fit.report.iterations, "{name}");
            assert_eq!(
                scaled.means.mapv(|v| v.to_f64() / by),
                fit.means.mapv(Float::to_f64),
                "{name}"
            );
            assert_eq!(
                scaled.variances.mapv(|v| v / by / by),
                fit.variances,
                "{name}"
            );
            assert_eq!(
                scaled.covariances.mapv(|v| v / by / by),
                fit.covariances,
                "{name}"
            );
            assert_eq!(scaled.proportions, fit.proportions, "{name}");
            assert_eq!(
                (&scaled.labels, &scaled.supports),
                (&fit.labels, &fit.supports),
                "{name}"
            );
            let scaled_error = scaled.model.quantization_error(&scaled_data).unwrap();
            assert_eq!(scaled_error / by / by, error, "{name}");
            // A density is per unit of volume.
            let shift = -(d as f64) * by.ln();
            let scaled_likelihood = scaled.model.log_likelihood(&scaled_data).unwrap();
            let expected = likelihood + n as f64 * shift;
            assert!(
                (scaled_likelihood - expected).abs() <= 1e-12 * expected.abs(),
                "{name}"
            );
            for (got, base) in scaled
                .report
                .free_energies
                .iter()
                .zip(&fit.report.free_energies)
            {
                let known = algorithm.rows.known(d) as f64 / d as f64;
                let expected = base + base_weight * known * shift;
                assert!((got - expected).abs() <= 1e-12 * expected.abs(), "{name}");
            }
        }
    }
}

#[test]
fn values_whose_squares_over_or_underflow() {
    scales_exactly::<f32>(&[100, -100, 70, -70], |a| !a.is_raw());
    scales_exactly::<f64>(&[480, -480], |a| !a.is_raw());
    scales_exactly::<f32>(&[10, 3, -10], |a| a.is_raw());
    let exponents = [300, 10, 3, -10, -300];
    let some = |a: &Algorithm<f64>| a.bayesian || a.rows == Known::Sketch || a.is_raw();
    scales_exactly::<f64>(&exponents, some);
}

/// 1e30 and 1e-30 themselves in f32, against the same rounded data in f64.
#[test]
fn f32_beyond_its_squares_agrees_with_f64() {
    for by in [1e30, 1e-30] {
        let x = blobs::<f64>(400, 3, 5, 8).mapv(|v| (v * by) as f32);
        let wide = x.mapv(f64::from);
        let (data, wide_data) = (
            Dense::new(x.view()).unwrap(),
            Dense::new(wide.view()).unwrap(),
        );
        let start = seeds(&x, 5, 3);
        let (f32s, f64s) = (all::<f32>(), all::<f64>());
        let given = |a: &Algorithm<f32>| a.deterministic && !a.is_raw();
        for (a, b) in f32s.iter().zip(&f64s).filter(|(a, _)| given(a)) {
            let fit = (a.fit)(&data, &Settings::fixed(start.view(), 5)).unwrap();
            let start = start.mapv(f64::from);
            let exact = (b.fit)(&wide_data, &Settings::fixed(start.view(), 5)).unwrap();
            sound(a.name, &fit, &data, 400.0);
            let off = |got: f64, expected: f64| (got - expected).abs() / expected.abs();
            let variances_off = outcome_off(&fit, &exact);
            assert!(variances_off < 1e-5, "{} {by:e}", a.name);
            let (got, expected) = (
                fit.model.quantization_error(&data).unwrap(),
                exact.model.quantization_error(&wide_data).unwrap(),
            );
            assert!(off(got, expected) < 1e-5, "{} {by:e}", a.name);
            let difference = (&fit.means.mapv(f64::from) - &exact.means) / by;
            assert!(
                difference.iter().all(|t| t.abs() < 1e-5),
                "{} {by:e}",
                a.name
            );
        }
    }
}

/// Where the true variance or error is no number of the type any more, the rest must still be sound.
#[test]
fn beyond_every_square() {
    let x = blobs::<f64>(200, 2, 3, 9);
    for by in [1e149, 1e-181, 1e-300, 1e-320] {
        let x = x.mapv(|v| v.clamp(-9.0, 9.0) * by);
        every_algorithm(&format!("f64 times {by:e}"), x.view(), None, 3);
    }
    for by in [8e36, 1e-37, 1e-42] {
        let x = x.mapv(|v| (v.clamp(-9.0, 9.0) * by) as f32);
        every_algorithm(&format!("f32 times {by:e}"), x.view(), None, 3);
    }
    // Columns of very different units: the small ones vanish in distances.
    let mut mixed = blobs::<f32>(200, 2, 3, 9);
    mixed.column_mut(0).mapv_inplace(|v| v * 1e30);
    mixed.column_mut(1).mapv_inplace(|v| v * 1e-30);
    every_algorithm("1e30 with 1e-30", mixed.view(), None, 3);
    // One value alone at the limit: the type cannot resolve the others.
    fn refused<F: Float>(row: usize, value: f64) {
        let mut lone = blobs::<F>(200, 2, 3, 9);
        lone[[row, 1]] = F::from_f64(value);
        let data = Dense::new(lone.view()).unwrap();
        for a in all::<F>().iter().filter(|a| a.rows == Known::Dense) {
            let error = (a.fit)(&data, &Settings::new(3, 1))
                .map(|_| ())
                .unwrap_err();
            let named = error.to_string().contains(&format!("row {row} is "));
            assert!(named, "{}: {error}", a.name);
        }
    }
    refused::<f32>(77, 8e37);
    refused::<f64>(0, -1e150);
}

#[test]
fn far_from_zero() {
    let x = blobs::<f64>(400, 3, 5, 10);
    // f32 at 1e6 has steps of 1/16; what is left of the data is then the same in f64.
    let far = x.mapv(|v| (v + 1e6) as f32);
    every_algorithm("f32 at 1e6", far.view(), None, 5);
    let wide = far.mapv(f64::from);
    // f64 at 1e9, the data rounded first so that the shift loses nothing.
    let near = x.mapv(|v| (v * 1048576.0).round() / 1048576.0);
    let moved = near.mapv(|v| v + 1e9);
    every_algorithm("f64 at 1e9", moved.view(), None, 5);
    let start = seeds(&near, 5, 3);
    let far_start = seeds(&far, 5, 3);
    let data = (
        Dense::new(far.view()).unwrap(),
        Dense::new(wide.view()).unwrap(),
    );
    let shifted = (
        Dense::new(near.view()).unwrap(),
        Dense::new(moved.view()).unwrap(),
    );
    for (a, b) in all::<f32>()
        .iter()
        .zip(&all::<f64>())
        .filter(|(a, _)| a.deterministic)
    {
        let name = a.name;

        let fit = (a.fit)(&data.0, &Settings::fixed(far_start.view(), 5)).unwrap();
        let wide_start = far_start.mapv(f64::from);
        let exact = (b.fit)(&data.1, &Settings::fixed(wide_start.view(), 5)).unwrap();
        // Half a step of f32 at 1e6, and what rounding in the frame adds.
        let difference = &fit.means.mapv(f64::from) - &exact.means;
        assert!(
            difference.iter().all(|t| t.abs() <= 0.03126),
            "{name}: {difference}"
        );
        assert!(outcome_off(&fit, &exact) < 1e-5, "{name}");

        let here = (b.fit)(&shifted.0, &Settings::fixed(start.view(), 5)).unwrap();
        let moved_start = start.mapv(|v| v + 1e9);
        let there = (b.fit)(&shifted.1, &Settings::fixed(moved_start.view(), 5)).unwrap();
        // A step of f64 at 1e9 is 1.2e-7; a transform adds up several.
        let step = [1.3e-7, 1e-6][usize::from(a.rows != Known::Dense)];
        let difference = &there.means.mapv(|v| v - 1e9) - &here.means;
        assert!(
            difference.iter().all(|t| t.abs() <= step),
            "{name}: {difference}"
        );
        assert!(there.variances_off(&here) < 1e-6, "{name}");
        assert_eq!(there.labels, here.labels, "{name}");
    }
}

/// Seeds far away, one of them or all: the data pull in those that get points.
fn far_seeds<F: Float>(far: f64) {
    let x = blobs::<F>(300, 2, 4, 15);
    let data = Dense::new(x.view()).unwrap();
    let near = seeds(&x, 4, 5);
    let mut one = near.clone();
    one.row_mut(2).fill(F::from_f64(far));
    let every = near.mapv(|v| F::from_f64(v.to_f64() * far / 10.0));
    for algorithm in all::<F>() {
        for (what, given) in [("one seed", &one), ("all seeds", &every)] {
            let name = format!("{}, {what} at {far:e}", algorithm.name);
            let settings = Settings {
                given: Some(given.clone()),
                ..Settings::new(4, 2)
            };
            let fit = (algorithm.fit)(&data, &settings).unwrap();
            sound(&name, &fit, &data, 300.0);
            // No point is nearest to a mean that stayed out there, so the others are among the points.
            let error = fit.model.quantization_error(&data).unwrap();
            assert!(error < 300.0 * 1e3, "{name}: {error:e}");
        }
    }
}

/// Their squared distances overflow.
#[test]
fn seeds_astronomically_far_from_the_data() {
    far_seeds::<f32>(1e25);
    far_seeds::<f32>(1e37);
    far_seeds::<f64>(1e149);
}

/// Nothing overflows, as when seeds come in another unit than the data; but the first step is longer than
/// the data are wide by more than the digits of the type, and no variance must be a difference over it.
#[test]
fn seeds_in_another_unit() {
    far_seeds::<f32>(1e5);
    far_seeds::<f32>(1e9);
    far_seeds::<f64>(1e9);
    far_seeds::<f64>(1e15);
}

/// Points so far from a model that nothing about them fits in the type.
fn far_points<F: Float>(unit: f64, far: &[f64]) {
    let x = blobs::<F>(100, 3, 4, 20).mapv(|v| F::from_f64(v.to_f64() * unit));
    let data = Dense::new(x.view()).unwrap();
    for algorithm in all::<F>() {
        let fit = (algorithm.fit)(&data, &Settings::new(4, 1)).unwrap();
        for &far in far {
            let name = format!("{} of size {unit:e}, asked about {far:e}", algorithm.name);
            let away = Array2::from_shape_fn((70, 3), |(n, j)| match (n + j) % 4 {
                0 => F::from_f64(far),
                1 => F::from_f64(-far),
                2 => F::from_f64(0.0),
                _ => x[[n, j]],
            });
            answers(&name, &*fit.model, &Dense::new(away.view()).unwrap());
            // Among points that are near, those of weight 0 are far.
            let both = concatenate(Axis(0), &[x.view(), away.view()]).unwrap();
            let w = Array1::from_shape_fn(170, |n| if n < 100 { 1.0 } else { 0.0 });
            let both = Dense::weighted(both.view(), w.view()).unwrap();
            answers(&name, &*fit.model, &both);
            let (a, b) = (
                fit.model.quantization_error(&both).unwrap(),
                fit.model.quantization_error(&data).unwrap(),
            );
            assert!((a - b).abs() <= 1e-12 * b, "{name}: {a:e} and {b:e}");
            let (a, b) = (
                fit.model.log_likelihood(&both).unwrap(),
                fit.model.log_likelihood(&data).unwrap(),
            );
            assert!((a - b).abs() <= 1e-12 * b.abs(), "{name}: {a:e} and {b:e}");
        }
    }
}

#[test]
fn points_astronomically_far_from_the_model() {
    far_points::<f32>(1.0, &[1e6, 1e15, 1e20, 1e37]);
    far_points::<f32>(1e-30, &[1e6, 1e20, 1e37]);
    far_points::<f64>(1.0, &[1e9, 1e100, 1e149]);
    far_points::<f64>(1e-250, &[1.0, 1e149]);
}

/// Means and variances of very different size: what is asked for is kept as far as `kept` says, and no answer
/// is NaN.
fn extreme_parameters<F: Float>(sizes: &[f64], variances: &[f64], kept: bool) {
    let base = blobs::<F>(4, 3, 4, 22);
    for &size in sizes {
        let means = base.mapv(|v| F::from_f64(v.to_f64() * size));
        let data = Dense::new(means.view()).unwrap();
        for &variance in variances {
            let name = format!("means of size {size:e}, variance {variance:e}");
            for k in [1, 4] {
                let means = means.slice(s![..k, ..]);
                let model = match GaussianMixture::tied_spherical(means, variance) {
                    // Below all numbers in the unit of the frame.
                    Err(Error::Parameter {
                        name: "variance", ..
                    }) if !kept => continue,
                    model => model.unwrap(),
                };
                same_means(&name, model.means(), means);
                let got = model.variance();
                assert!(got > 0.0 && got.is_finite(), "{name}: {got:e}");
                if kept {
                    assert!((got / variance - 1.0).abs() < 1e-12, "{name}: {got:e}");
                }
                answers(&name, &model, &data);
                let (points, _) = model.sample(20, 3).unwrap();
                assert!(points.iter().all(|x| !x.to_f64().is_nan()), "{name}");
            }
        }
    }
}

#[test]
fn parameters_of_any_size() {
    let variances = [1e-60, 1e-30, 1.0, 1e30, 1e60];
    extreme_parameters::<f32>(&[1.0, 1e-30, 1e30], &variances, true);
    let variances = [1e-100, 1.0, 1e100];
    extreme_parameters::<f64>(&[1.0, 1e-100, 1e100], &variances, true);
}

/// Parameters at the ends of the range of f64, where the variance and the squared size of the means are too far apart for one
/// unit.
#[test]
fn parameters_at_the_ends_of_the_range() {
    extreme_parameters::<f32>(&[1e-30, 1.0, 1e30], &[1e-300, 1e300], false);
    extreme_parameters::<f64>(&[1e-200, 1.0, 1e140], &[1e-300, 1.0, 1e300], false);
}
