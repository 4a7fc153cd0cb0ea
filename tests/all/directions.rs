//! Directions: rows of length 1, unit means, concentrations, on dense and sparse rows.

use crate::common::{Stored, blobs, close, on, read, rises_in_phases, rounding};
use crate::own_families::{naive_step, near};
use coremix::data::Blocks;
use coremix::families::VonMisesFisherMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{BoxedMixture, Float, Metric, algorithms, testing};
use ndarray::{Array1, Array2, ArrayView1, Axis, array, s};
use std::f64::consts::{PI, TAU};

/// Rows about some directions, of very different lengths.
fn rays<F: Float>(n: usize, d: usize, k: usize, seed: u64) -> Array2<F> {
    let mut x = blobs::<F>(n, d, k, seed).mapv(Float::to_f64);
    for (n, mut row) in x.outer_iter_mut().enumerate() {
        row *= 10f64.powi((n % 7) as i32 - 3);
    }
    x.mapv(F::from_f64)
}

fn normalised<F: Float>(x: &Array2<F>) -> Array2<F> {
    let mut unit = x.mapv(Float::to_f64);
    for mut row in unit.outer_iter_mut() {
        let length = row.dot(&row).sqrt();
        row /= if length > 0.0 { length } else { 1.0 };
    }
    unit.mapv(F::from_f64)
}

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| (1 + n % 3) as f64)
}

/// Spherical k-means by hand: the cosine of each row with the best direction, and the directions of the sums.
fn naive(
    x: &Array2<f64>,
    w: &Array1<f64>,
    seeds: &Array2<f64>,
    steps: usize,
) -> (Array2<f64>, f64) {
    let (unit, mut directions) = (normalised(x), normalised(seeds));
    let mut total = 0.0;
    for step in 0..=steps {
        let cosines = unit.dot(&directions.t());
        let mut sums = Array2::<f64>::zeros(directions.dim());
        total = 0.0;
        for (n, row) in cosines.outer_iter().enumerate() {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let best = row.iter().position(|x| *x == most).unwrap();
            total += w[n] * most;
            sums.row_mut(best).scaled_add(w[n], &unit.row(n));
        }
        if step < steps {
            directions = normalised(&sums);
        }
    }
    (directions, total)
}

/// 15 iterations of faiss, in f32.
#[test]
fn spherical_k_means_is_that_of_faiss() {
    let (x, expected) = (read("directions_data"), read("directions_means"));
    let fit = algorithms::k_means(8)
        .m_step(VonMisesFisher::tied())
        .seeder(Given::new(x.slice(s![..8, ..])))
        .tolerance(0.0)
        .max_iterations(15);
    let fit = fit.build().unwrap().fit(&Dense::new(&x).unwrap()).unwrap();
    let apart = (&fit.model.means() - &expected).mapv(f64::abs);
    assert!(apart.iter().all(|a| *a < 1e-5), "{apart}");
}

#[test]
fn spherical_k_means_is_that_by_hand() {
    let (x, w) = (rays::<f64>(500, 6, 5, 3), weights(500));
    let data = Dense::weighted(&x, &w).unwrap();
    let seeds = x.select(Axis(0), &[3, 101, 222, 333, 444]);
    for steps in [0, 1, 2, 6] {
        let fit = algorithms::k_means(5)
            .m_step(VonMisesFisher::tied())
            .seeder(Given::new(seeds.view()))
            .tolerance(0.0)
            .max_iterations(steps)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        let taken = fit.report.iterations;
        let (directions, total) = naive(&x, &w, &seeds, taken);
        let apart = (&fit.model.means() - &directions).mapv(f64::abs);
        assert!(apart.iter().all(|a| *a < 1e-12), "{steps}: {apart}");
        // |x - mu|^2 = 2 - 2 cos.
        let error = fit.model.quantization_error(&data).unwrap();
        assert!(
            close(error, 2.0 * (w.sum() - total), 1e-11),
            "{steps}: {error}"
        );
        assert_eq!(fit.model.concentrations().len(), 1);
    }
    // Lengths of rows say nothing: powers of two change no bit.
    let fit = |x: &Array2<f64>| {
        let fit = algorithms::spherical_k_means(5).seed(4).build().unwrap();
        fit.fit(&Dense::weighted(x, &w).unwrap()).unwrap()
    };
    let mut longer = x.clone();
    for (n, mut row) in longer.outer_iter_mut().enumerate() {
        row *= 2f64.powi((n % 5) as i32);
    }
    let (raw, unit) = (fit(&x), fit(&longer));
    assert_eq!(raw.search_labels, unit.search_labels);
    let lengths = raw.model.means().mapv(|x| x * x).sum_axis(Axis(1));
    assert!(lengths.iter().all(|length| (length - 1.0).abs() < 1e-12));
}

/// All searches: F rises, the bits are the same on any number of threads, files have them, and predictions take rows of any length.
fn laws<F: Float>() {
    let (x, w) = (rays::<F>(900, 12, 6, 5), weights(900));
    let data = Dense::weighted(&x, &w).unwrap();
    type Made<F> = coremix::Builder<F, VonMisesFisher>;
    let made: Vec<(&str, Made<F>)> = vec![
        (
            "exact",
            algorithms::k_means(6).m_step(VonMisesFisher::tied()),
        ),
        (
            "exact, own",
            algorithms::k_means(6).m_step(VonMisesFisher::default()),
        ),
        ("soft", algorithms::gmm(6).m_step(VonMisesFisher::default())),
        (
            "soft, tied",
            algorithms::gmm(6).m_step(VonMisesFisher::tied()),
        ),
        (
            "three",
            algorithms::k_means_c_prime(6, 3).m_step(VonMisesFisher::default()),
        ),
        (
            "truncated",
            algorithms::var_gmm_s(6, 2, 3).m_step(VonMisesFisher::default()),
        ),
        (
            "coreset",
            algorithms::vc_gmm(6, 300, 2, 3).m_step(VonMisesFisher::tied()),
        ),
        (
            "drawn",
            algorithms::d_gmm(6, 2, 3).m_step(VonMisesFisher::tied()),
        ),
        ("fast", algorithms::spherical_k_means(6)),
    ];
    for (name, builder) in made {
        let clusterer = builder.seed(2).tolerance(1e-7).build().unwrap();
        let fit = clusterer.fit(&data).unwrap();
        let drawn = fit
            .coreset
            .as_ref()
            .map(|coreset| coreset.weights.iter().sum());
        let weight = drawn.unwrap_or(w.sum());
        rises_in_phases(name, &fit.report, weight, rounding::<F>());
        let again = on(2, || clusterer.fit(&data).unwrap());
        assert!(fit.model == again.model, "{name}");
        let bytes = fit.model.to_bytes(&[]).unwrap();
        let back = VonMisesFisherMixture::<F>::from_bytes(&bytes).unwrap();
        assert!(back == fit.model, "{name}");
        let boxed = BoxedMixture::<F>::from_bytes(&bytes).unwrap();
        let labels = fit.model.predict(&data).unwrap();
        let longer = x.mapv(|x| x * F::from_f64(64.0));
        assert_eq!(
            boxed.predict(&Dense::new(&longer).unwrap()).unwrap(),
            labels,
            "{name}"
        );
        let warm = algorithms::k_means(6)
            .m_step(VonMisesFisher::tied())
            .start_from(&fit.model);
        assert!(warm.build().unwrap().fit(&data).is_ok(), "{name}");
    }
}

#[test]
fn all_searches_take_directions() {
    laws::<f32>();
    laws::<f64>();
}

/// Densities integrate to 1 over the circle; a soft fit has the log-likelihood of its parameters.
#[test]
fn densities_are_those_of_the_sphere() {
    let x = rays::<f64>(300, 2, 3, 9);
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::gmm(3)
        .m_step(VonMisesFisher::default())
        .seed(3)
        .tolerance(1e-9)
        .build()
        .unwrap();
    let fit = fit.fit(&data).unwrap();
    let steps = 200_000;
    let circle = Array2::from_shape_fn((steps, 2), |(n, j)| {
        let angle = n as f64 / steps as f64 * std::f64::consts::TAU;
        [angle.cos(), angle.sin()][j]
    });
    let densities = fit
        .model
        .log_densities(&Dense::new(&circle).unwrap())
        .unwrap();
    let integral = densities.mapv(f64::exp).sum() * std::f64::consts::TAU / steps as f64;
    assert!((integral - 1.0).abs() < 1e-5, "{integral}");
    let last = *fit.report.free_energies.last().unwrap();
    assert!(close(last, fit.model.log_likelihood(&data).unwrap(), 1e-9));
}

#[test]
fn settings_that_do_not_go_together_are_told() {
    let x = rays::<f64>(60, 3, 2, 1);
    let data = Dense::new(&x).unwrap();
    let said = |error: Error| error.to_string();
    let both = algorithms::k_means::<f64>(2)
        .directions(true)
        .standardise(true)
        .build();
    assert!(said(both.map(|_| ()).unwrap_err()).contains("together"));
    let bounds = algorithms::fast(2)
        .m_step(VonMisesFisher::tied())
        .build()
        .unwrap()
        .fit(&data);
    assert!(said(bounds.map(|_| ()).unwrap_err()).contains("bounds"));
    let line = array![[1.0], [2.0], [-1.0]];
    let one = algorithms::spherical_k_means(2)
        .build()
        .unwrap()
        .fit(&Dense::new(&line).unwrap());
    assert!(said(one.map(|_| ()).unwrap_err()).contains("columns"));
    let holes = array![[1.0, f64::NAN], [2.0, 1.0], [0.0, 1.0]];
    let holes = Dense::with_missing(&holes).unwrap();
    let fit = algorithms::spherical_k_means(2)
        .build()
        .unwrap()
        .fit(&holes);
    assert!(said(fit.map(|_| ()).unwrap_err()).contains("direction"));
    let sketch = Sketch::new(x.view(), 2, 1).unwrap();
    assert!(
        algorithms::k_means(2)
            .directions(true)
            .build()
            .unwrap()
            .fit(&sketch)
            .is_err()
    );
    let cosine = |name: &str| {
        name.parse::<Algorithm>()
            .unwrap()
            .clusters(2)
            .metric(Metric::Cosine)
    };
    for name in [
        "k-means",
        "fast",
        "gmm",
        "lazy-k-means",
        "var-gmm-s",
        "vc-gmm",
        "d-gmm",
    ] {
        let fit = cosine(name).boxed::<f64>().unwrap().fit(&data).unwrap();
        let lengths = fit.model.means().mapv(|x| x * x).sum_axis(Axis(1));
        assert!(
            lengths.iter().all(|length| (length - 1.0).abs() < 1e-12),
            "{name}"
        );
    }
    assert!(cosine("dp-gmm").boxed::<f64>().is_err());
    assert!(
        cosine("gmm")
            .covariance(Covariance::Full)
            .boxed::<f64>()
            .is_err()
    );
}

/// Rows of zeros, opposite rows, numbers at the limits of the types.
#[test]
fn hostile_rows_have_finite_fits() {
    let (tiny, huge) = (1e-300, 1e149);
    let x = array![
        [0.0, 0.0],
        [tiny, 0.0],
        [0.0, tiny],
        [huge, huge],
        [-huge, -huge],
        [1.0, 0.0],
        [-1.0, 0.0],
        [0.0, 0.0]
    ];
    let data = Dense::new(&x).unwrap();
    for k in 1..=5 {
        for family in [VonMisesFisher::default(), VonMisesFisher::tied()] {
            for seed in 0..4 {
                let fit = algorithms::gmm(k)
                    .m_step(family)
                    .seed(seed)
                    .build()
                    .unwrap();
                let fit = fit.fit(&data).unwrap();
                rises_in_phases(
                    format!("{k} {family:?}"),
                    &fit.report,
                    8.0,
                    rounding::<f64>(),
                );
                let shares = fit.model.responsibilities(&data).unwrap();
                assert!(shares.iter().all(|share: &f64| share.is_finite()));
            }
        }
    }
    let model = algorithms::spherical_k_means(3)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap()
        .model;
    let labels = model.predict(&data).unwrap();
    assert!(labels[1] == labels[5] && labels[3] != labels[4]);
    let zeros = Array2::<f32>::zeros((20, 3));
    let fit = algorithms::spherical_k_means(1)
        .build()
        .unwrap()
        .fit(&Dense::new(&zeros).unwrap());
    assert!(fit.unwrap().model.means().iter().all(|x| x.is_finite()));
}

/// Rows of a source have the bits of those in memory.
#[test]
fn blocks_have_the_same_bits() {
    let x = rays::<f32>(2_000, 20, 8, 2);
    let blocks = Blocks::new(Stored(x.clone())).unwrap();
    let fit = |data: &dyn Data<f32>| {
        let fit = algorithms::spherical_k_means(8).seed(1).build().unwrap();
        fit.fit(data).unwrap().model
    };
    assert!(fit(&blocks) == fit(&Dense::new(&x).unwrap()));
}

/// Rows of very different sizes: those of a coreset keep all their digits, however far the largest is.
#[test]
fn selected_rows_keep_small_numbers() {
    for (d, sizes) in [(65, -24..12), (8, -30..15), (3, 0..17)] {
        let mut x = blobs::<f32>(155, d, 5, 4);
        for (n, mut row) in x.outer_iter_mut().enumerate() {
            row *= 10f32.powi(sizes.start + (n % sizes.len()) as i32);
        }
        let blocks = Blocks::new(Stored(x.clone())).unwrap();
        let dense = Dense::new(&x).unwrap();
        let fit = |data: &dyn Data<f32>| {
            let fit = algorithms::spherical_k_means(3).coreset(Lightweight::new(80));
            fit.seed(1).build().unwrap().fit(data).unwrap().model
        };
        assert!(fit(&blocks) == fit(&dense), "{d}");
    }
}

/// The variances of a sharp component: A / kappa across its direction, (d - 1) / (2 kappa^2) along it.
#[test]
fn variances_of_sharp_components_are_positive() {
    for (d, within) in [(2, 0.0), (3, 1e-5), (3, 1e-4), (20, 0.0), (20, 1e-3)] {
        let mut rng = coremix::stage::Rng::from_seed(3);
        let mut x = Array2::from_shape_fn((60, d), |_| within * rng.normal());
        x.column_mut(0).fill(1.0);
        let fit = algorithms::gmm(1).m_step(VonMisesFisher::default()).build();
        let model = fit.unwrap().fit(&Dense::new(&x).unwrap()).unwrap().model;
        let (kappa, variances) = (model.concentrations()[0], model.variances());
        assert!(close(variances[[0, 1]] * kappa, 1.0, 1e-3));
        let along = (d as f64 - 1.0) / (2.0 * kappa * kappa);
        // The direction is not quite the first column.
        let tilt = 1.0 - model.means()[[0, 0]].powi(2);
        let expected = along + tilt.max(0.0) / kappa;
        assert!(
            (variances[[0, 0]] / expected - 1.0).abs() < 0.1,
            "{d} {within}: {variances}"
        );
        assert!(variances.iter().all(|variance| *variance > 0.0));
    }
}

/// The mean of drawn rows is as long as the concentration says, in the direction of the component, and what is fitted to them is
/// near.
#[test]
fn directions_are_drawn() {
    for (d, kappa) in [
        (2, 0.01),
        (2, 3.0),
        (3, 40.0),
        (3, 1e9),
        (50, 1.0),
        (50, 300.0),
        (5, 1e14),
    ] {
        let mut x = Array2::<f64>::zeros((40, d));
        let mut rng = coremix::stage::Rng::from_seed(3);
        let deviation = (1.0_f64 / kappa).sqrt().min(1.0);
        x.outer_iter_mut().for_each(|mut row| {
            row.mapv_inplace(|_| deviation * rng.normal());
            row[0] += 1.0;
        });
        let fit = algorithms::gmm(1)
            .m_step(VonMisesFisher::default())
            .build()
            .unwrap();
        let model = fit.fit(&Dense::new(&x).unwrap()).unwrap().model;
        let own = model.concentrations()[0];
        // The ratio of Bessel functions by its continued fraction.
        let ratio = (0..3_000).rev().fold(0.0, |ratio, i| {
            1.0 / ((d as f64 + 2.0 * f64::from(i)) / own + ratio)
        });
        let n = 20_000;
        let (drawn, components) = model.sample(n, 5).unwrap();
        assert!(components.iter().all(|c| *c == 0));
        let lengths = drawn.mapv(|x| x * x).sum_axis(Axis(1));
        assert!(lengths.iter().all(|length| (length - 1.0).abs() < 1e-12));
        let falls: Vec<f64> = drawn
            .outer_iter()
            .map(|row| (&row - &model.means().row(0)).mapv(|x| x * x).sum() / 2.0)
            .collect();
        let mean = falls.iter().sum::<f64>() / n as f64;
        let spread = falls.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / n as f64;
        let expected = if own > 1e6 {
            (d as f64 - 1.0) / 2.0 / own
        } else {
            1.0 - ratio
        };
        let within = 5.0 * (spread / n as f64).sqrt();
        assert!(
            (mean - expected).abs() < within,
            "{d} {own}: {mean} {expected}"
        );
        // Across the direction no way is preferred.
        let across = drawn.mean_axis(Axis(0)).unwrap() - &model.means().row(0) * (1.0 - mean);
        assert!(across.dot(&across).sqrt() < 6.0 / (n as f64).sqrt());
        assert_eq!(drawn, model.sample(n, 5).unwrap().0);
        assert!(model.sample(0, 5).is_err());
    }
}

/// Rows of length 1 about `about` axes, with weights.
fn about_axes(n: usize, d: usize, about: usize, noise: f64) -> (Array2<f64>, Array1<f64>) {
    let mut rng = Rng::from_seed(3);
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        f64::from(u8::from(i % about == j)) + noise * rng.normal()
    });
    (normalised(&x), (0..n).map(|i| (1 + i % 3) as f64).collect())
}

/// The integral over the sphere of exp(kappa (cos - 1)), in logarithms, and the mean of 1 - cos under it: by Simpson's rule over the
/// angle to the mean direction.
fn integrals(d: usize, kappa: f64) -> (f64, f64) {
    const NODES: usize = 40_000;
    let widest = (20.0 + 2.0 * (d as f64).sqrt()) / kappa.sqrt();
    let step = widest.min(PI) / NODES as f64;
    // 1 - cos, and the logarithm of what there is at the angle.
    let at = |i: usize| {
        let angle = i as f64 * step;
        let off = 2.0 * (angle / 2.0).sin().powi(2);
        (
            off,
            (d - 2) as f64 * angle.sin().abs().max(1e-300).ln() - kappa * off,
        )
    };
    let largest = (0..=NODES).map(|i| at(i).1).fold(f64::MIN, f64::max);
    let (mut sum, mut falls) = (0.0, 0.0);
    for i in 0..=NODES {
        let simpson = [1.0, 4.0, 2.0][if i == 0 || i == NODES { 0 } else { 2 - i % 2 }];
        let (off, log) = at(i);
        let part = simpson * (log - largest).exp();
        (sum, falls) = (sum + part, falls + off * part);
    }
    // The surface of the sphere of rows at one angle: 2 pi^((d - 1) / 2) / Gamma((d - 1) / 2).
    let half = (d - 1) as f64 / 2.0;
    let surface = 2f64.ln() + half * PI.ln() - special::Gamma::ln_gamma(half).0;
    (surface + largest + (sum * step / 3.0).ln(), falls / sum)
}

#[test]
fn components_are_those_of_naive_em() {
    for (d, about, noise) in [(2, 2, 0.3), (3, 2, 0.5), (40, 3, 0.1)] {
        let (x, w) = about_axes(180, d, about, noise);
        let data = Dense::weighted(&x, &w).unwrap();
        testing::family(&VonMisesFisher::default(), &data, about).unwrap();
        let builder = algorithms::gmm(about)
            .m_step(VonMisesFisher::default())
            .tolerance(0.0);
        let model = builder.max_iterations(500).fit(&data).unwrap().model;
        let (means, shares, kappas) = (model.means(), model.proportions(), model.concentrations());
        let integrals: Vec<_> = kappas.iter().map(|kappa| integrals(d, *kappa)).collect();
        let log_joint = |row: ArrayView1<'_, f64>, c: usize| {
            shares[c].ln() + kappas[c] * (row.dot(&means.row(c)) - 1.0) - integrals[c].0
        };
        let (likelihood, proportions, mean_rows) = naive_step(&x, &w, log_joint, about);
        near(model.log_likelihood(&data).unwrap(), likelihood, 1e-9);
        for c in 0..about {
            near(shares[c], proportions[c], 1e-6);
            let length = mean_rows.row(c).dot(&mean_rows.row(c)).sqrt();
            near(1.0 - integrals[c].1, length, 1e-6);
            let cosine = mean_rows.row(c).dot(&means.row(c)) / length;
            assert!((1.0 - cosine).abs() < 1e-9, "{cosine}");
            // All variances together: 1 - |mean|^2.
            near(model.variances().row(c).sum(), 1.0 - length * length, 1e-6);
        }
    }
}

#[test]
fn directions_that_coincide_or_have_no_mean() {
    let (x, _) = about_axes(40, 3, 2, 0.0);
    for family in 1..=2 {
        let data = Dense::new(&x).unwrap();
        testing::family(&VonMisesFisher::default(), &data, family).unwrap();
        let single = x.mapv(|x| x as f32);
        testing::family(
            &VonMisesFisher::default(),
            &Dense::new(&single).unwrap(),
            family,
        )
        .unwrap();
    }
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::gmm(2)
        .m_step(VonMisesFisher::default())
        .restarts(3)
        .fit(&data);
    assert_eq!(fit.unwrap().model.concentrations().to_vec(), [1e10; 2]);
    // Opposite rows: their mean is 0.
    let x = array![[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]];
    let data = Dense::new(&x).unwrap();
    let model = algorithms::gmm(1)
        .m_step(VonMisesFisher::default())
        .fit(&data)
        .unwrap()
        .model;
    assert_eq!(model.concentrations().to_vec(), [1e-6]);
    near(model.log_likelihood(&data).unwrap(), -4.0 * TAU.ln(), 1e-5);
}
