//! Floors of variances (E20, E52): they follow from what a component's own numbers can tell, not from the range of the data.

use crate::common::{Stored, blobs, rises_in_phases, rounding};
use coremix::Float;
use coremix::algorithms;
use coremix::data::{Blocks, Data};
use coremix::families::GaussianMixture;
use coremix::metrics::adjusted_rand_index;
use coremix::prelude::*;
use coremix::selection::{Criterion, Sweep};
use coremix::stage::Rng;
use ndarray::{Array1, Array2, Axis, array, s};

const KINDS: [Covariance; 6] = [
    Covariance::TiedSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
    Covariance::Factors(1),
];

/// Rows about these centres (c, d) with such deviations, one centre after the other, and their centres.
fn rows_of(
    centres: &Array2<f64>,
    deviations: &[f64],
    n: usize,
    seed: u64,
) -> (Array2<f64>, Vec<u32>) {
    let mut rng = Rng::from_seed(seed);
    let k = centres.nrows();
    let x = Array2::from_shape_fn((n, centres.ncols()), |(i, j)| {
        centres[[i % k, j]] + deviations[i % k] * rng.normal()
    });
    (x, (0..n).map(|i| (i % k) as u32).collect())
}

fn three_blobs(n: usize, seed: u64) -> (Array2<f64>, Vec<u32>) {
    let centres = array![[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]];
    rows_of(&centres, &[1.0; 3], n, seed)
}

fn fit<F: Float>(
    data: &dyn Data<F>,
    k: usize,
    kind: Covariance,
    restarts: usize,
) -> Fit<GaussianMixture<F>> {
    let builder = algorithms::gmm(k).covariance(kind).restarts(restarts);
    let found = builder.seed(3).build().unwrap().fit(data).unwrap();
    let weight: f64 = (0..data.len()).map(|n| data.weight(n)).sum();
    let what = format!("{kind:?}");
    rises_in_phases(what, &found.report, weight, rounding::<F>());
    found
}

fn mean_density<F: Float>(model: &GaussianMixture<F>, x: &Array2<F>) -> f64 {
    let densities = model.log_densities(&Dense::new(x).unwrap()).unwrap();
    densities.sum() / x.nrows() as f64
}

/// A far value has a component of its own; the others are those of the fit without it.
fn far_value<F: Float>(far: f64, kind: Covariance) {
    let (x, truth) = three_blobs(600, 1);
    let near = x.mapv(F::from_f64);
    let mut all = near.clone();
    all.push_row(Array1::from_elem(2, F::from_f64(far)).view())
        .unwrap();
    let case = format!("{kind:?} with {far:e} in {}", std::any::type_name::<F>());
    let alone = fit::<F>(&Dense::new(&near).unwrap(), 3, kind, 5);
    let data = Dense::new(&all).unwrap();
    let found = fit::<F>(&data, 4, kind, 5);
    let labels = found.model.predict(&data).unwrap();
    let truth = Array1::from(truth);
    let score = adjusted_rand_index(labels.slice(s![..600]), truth.view()).unwrap();
    assert!(score > 0.97, "{case}: {score}");
    // Proportions are 600/601 of the others', or 3/4 of them where they are equal; so is a shared variance that of 601 rows.
    let (found_near, expected) = (
        mean_density(&found.model, &near),
        mean_density(&alone.model, &near),
    );
    let lost = if kind == Covariance::TiedSpherical {
        0.75f64.ln()
    } else {
        0.0
    };
    assert!(
        (found_near - expected - lost).abs() < 5e-3,
        "{case}: {found_near}, alone {expected}"
    );
    assert_eq!(found.report.at_floor, 0, "{case}");
}

#[test]
fn a_far_value_changes_nothing_else() {
    for kind in KINDS {
        for far in [-1e5, 1e4, 999_999.0, 1e8, 1e10, 1e12] {
            far_value::<f64>(far, kind);
            far_value::<f32>(far, kind);
        }
    }
}

/// Clusters of these deviations at these places (in both columns): densities are those of the rows of each.
fn apart<F: Float>(places: &[f64], deviations: &[f64], kind: Covariance) {
    let k = places.len();
    let centres = Array2::from_shape_fn((k, 2), |(c, _)| places[c]);
    let (x, _) = rows_of(&centres, deviations, 300 * k, 2);
    let x = x.mapv(F::from_f64);
    let data = Dense::new(&x).unwrap();
    let case = format!(
        "{kind:?}, {places:?}, {deviations:?} in {}",
        std::any::type_name::<F>()
    );
    let found = fit::<F>(&data, k, kind, 3);
    let mut expected = 0.0;
    for c in 0..k {
        let own: Vec<usize> = (c..x.nrows()).step_by(k).collect();
        let own = x.select(Axis(0), &own).mapv(|x| x.to_f64());
        let variances = own.var_axis(Axis(0), 0.0);
        let mut log_det: f64 = variances.mapv(f64::ln).sum();
        match kind {
            Covariance::Full | Covariance::Factors(_) => {
                let z = &own - &own.mean_axis(Axis(0)).unwrap();
                let r = (&z.column(0) * &z.column(1)).mean().unwrap();
                log_det += (1.0 - r * r / (variances[0] * variances[1])).ln();
            }
            Covariance::Diagonal => (),
            _ => log_det = 2.0 * variances.mean().unwrap().ln(),
        }
        let two_pi = 2.0 * std::f64::consts::PI;
        expected += (-two_pi.ln() - 1.0 - 0.5 * log_det - (k as f64).ln()) / k as f64;
    }
    let density = mean_density(&found.model, &x);
    assert!(
        (density - expected).abs() < 2e-2,
        "{case}: {density}, right {expected}"
    );
    assert_eq!(found.report.at_floor, 0, "{case}");
}

#[test]
fn narrow_clusters_far_apart() {
    for kind in [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Full,
        Covariance::Factors(1),
    ] {
        apart::<f64>(&[0.0, 1000.0], &[0.01; 2], kind);
        apart::<f32>(&[0.0, 1000.0], &[0.01; 2], kind);
        for far in [1e5, 1e7, 1e9] {
            apart::<f64>(&[0.0, far], &[1.0; 2], kind);
        }
        apart::<f32>(&[0.0, 1e5], &[1.0; 2], kind);
        // Very different deviations, also in one place.
        apart::<f64>(&[0.0, 1e3], &[1e-6, 1e2], kind);
        apart::<f64>(&[0.0, 1e9], &[1e-5, 1e6], kind);
        apart::<f32>(&[0.0, 1e6], &[1e-4, 1e4], kind);
    }
    for kind in [Covariance::TiedSpherical, Covariance::Tied] {
        apart::<f64>(&[0.0, 1e7], &[1.0; 2], kind);
        apart::<f64>(&[0.0, 1e8], &[1.0; 2], kind);
    }
}

/// Far values with weights, on a coreset, and under hard assignments to one variance.
#[test]
fn a_far_value_with_weights_and_coresets() {
    let (x, truth) = three_blobs(3_000, 4);
    let truth = Array1::from(truth);
    let mut all = x.clone();
    all.push_row(array![1e9, -1e9].view()).unwrap();
    let w = Array1::from_shape_fn(3_001, |i| {
        if i < 3_000 {
            0.5 + (i % 4) as f64
        } else {
            1e-3
        }
    });
    let data = Dense::weighted(all.view(), w.view()).unwrap();
    for kind in KINDS {
        let found = fit::<f64>(&data, 4, kind, 5);
        let labels = found.model.predict(&data).unwrap();
        let score = adjusted_rand_index(labels.slice(s![..3_000]), truth.view()).unwrap();
        assert!(score > 0.97, "{kind:?}: {score}");
        let expected = if kind == Covariance::TiedSpherical {
            -4.24
        } else {
            -3.95
        };
        let density = mean_density(&found.model, &x);
        assert!((density - expected).abs() < 0.1, "{kind:?}: {density}");
        assert_eq!(found.report.at_floor, 0);
    }
    let (data, blocks) = (
        Dense::new(&all).unwrap(),
        Blocks::new(Stored(all.clone())).unwrap(),
    );
    for kind in KINDS {
        let [memory, read] = [
            fit::<f64>(&data, 4, kind, 1),
            fit::<f64>(&blocks, 4, kind, 1),
        ];
        assert_eq!(memory.model, read.model, "{kind:?}");
    }
    let fits = [
        algorithms::fast(4)
            .restarts(3)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap(),
        algorithms::vc_gmm(4, 600, 4, 4)
            .restarts(3)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap(),
    ];
    for fit in fits {
        let variance = fit.model.variance();
        assert!((0.7..1.3).contains(&variance), "{variance}: {}", fit.report);
        assert_eq!(fit.report.at_floor, 0);
    }
}

/// In one dimension all kinds are one model, and those with one variance another: also where all components collapse.
#[test]
fn in_one_dimension_all_kinds_are_one() {
    fn energies<F: Float>(x: &Array2<f64>, k: usize, kinds: &[Gaussian]) -> Vec<(f64, usize)> {
        let x = x.mapv(F::from_f64);
        let data = Dense::new(&x).unwrap();
        let of = |kind: &Gaussian| {
            let builder = algorithms::gmm(k).m_step(*kind).seed(5);
            let builder = builder.tolerance(1e-6).max_iterations(1_000);
            let found = builder.build().unwrap().fit(&data).unwrap();
            let (what, weight) = (format!("{kind:?}"), x.nrows() as f64);
            rises_in_phases(what, &found.report, weight, rounding::<F>());
            let last = found.report.free_energies.last().copied().unwrap();
            (last / x.nrows() as f64, found.report.at_floor)
        };
        kinds.iter().map(of).collect()
    }
    let own = [
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Full,
    ]
    .map(Gaussian::new);
    let tied = [Covariance::TiedSpherical, Covariance::Tied]
        .map(|kind| Gaussian::new(kind).equal_proportions());
    let mut rng = Rng::from_seed(2);
    let steps = Array2::from_shape_fn((8_000, 1), |_| (25.0 * rng.uniform()).floor());
    let spread = Array2::from_shape_fn((2_000, 1), |(i, _)| (i % 3) as f64 * 4.0 + rng.normal());
    let mut far = spread.clone();
    far[[0, 0]] = 1e8;
    for (x, k, held) in [
        (&steps, 25, 25),
        (&steps, 10, 0),
        (&spread, 3, 0),
        (&far, 4, 0),
    ] {
        for kinds in [&own[..], &tied[..]] {
            for found in [energies::<f64>(x, k, kinds), energies::<f32>(x, k, kinds)] {
                println!("{k} {found:?}");
                for (energy, at_floor) in &found {
                    assert!((energy - found[0].0).abs() < 1e-4, "{k} {found:?}");
                    assert!(
                        held == 0 || kinds.len() < 3 || *at_floor == held,
                        "{k} {found:?}"
                    );
                }
            }
        }
    }
}

/// The report counts components that collapse onto repeated values, and nothing else.
#[test]
fn the_report_counts_components_at_the_floor() {
    // Ages, children, a flag and a bill: whole numbers, many of them repeated.
    let mut rng = Rng::from_seed(9);
    let x = Array2::from_shape_fn((1_300, 4), |(_, j)| match j {
        0 => (18.0 + 47.0 * rng.uniform()).floor(),
        1 => (-2.0 * rng.uniform().ln()).floor().min(5.0),
        2 => f64::from(rng.uniform() < 0.2),
        _ => (1e3 * (1.0 + 2.0 * rng.uniform() + rng.normal().abs())).floor(),
    });
    fn held<F: Float>(x: &Array2<f64>, k: usize, kind: Covariance) -> usize {
        let x = x.mapv(F::from_f64);
        let found = fit::<F>(&Dense::new(&x).unwrap(), k, kind, 2);
        let text = found.report.to_string();
        assert_eq!(text.contains("floor"), found.report.at_floor > 0, "{text}");
        assert!(found.report.at_floor <= found.model.at_floor().len());
        found.report.at_floor
    }
    assert!(held::<f64>(&x, 6, Covariance::Diagonal) > 0);
    assert!(held::<f32>(&x, 6, Covariance::Diagonal) > 0);
    let good = three_blobs(900, 3).0;
    for kind in KINDS {
        for k in [2, 3, 5] {
            assert_eq!(held::<f64>(&good, k, kind), 0, "{kind:?} {k}");
            assert_eq!(held::<f32>(&good, k, kind), 0, "{kind:?} {k}");
        }
        // As many components as rows: each has one.
        assert_eq!(
            held::<f64>(&good.slice(s![..6, ..]).to_owned(), 6, kind),
            0,
            "{kind:?}"
        );
    }
    // Columns that determine one another, a constant column, and few distinct rows.
    let mut dependent = good.clone();
    let sum = &good.column(0) + &good.column(1);
    dependent.push_column(sum.view()).unwrap();
    for kind in [Covariance::Tied, Covariance::Full] {
        assert_eq!(held::<f64>(&dependent, 3, kind), 3, "{kind:?}");
    }
    assert_eq!(held::<f64>(&dependent, 3, Covariance::Diagonal), 0);
    let mut constant = good.clone();
    constant.column_mut(1).fill(0.0);
    for kind in [Covariance::Diagonal, Covariance::Tied, Covariance::Full] {
        assert_eq!(held::<f64>(&constant, 3, kind), 3, "{kind:?}");
    }
    let few = Array2::from_shape_fn((300, 2), |(i, j)| ((i % 3) * (j + 1)) as f64);
    for kind in KINDS {
        let expected = if kind == Covariance::TiedSpherical {
            0
        } else {
            3
        };
        assert_eq!(held::<f64>(&few, 3, kind), expected, "{kind:?}");
        assert_eq!(held::<f32>(&few, 3, kind), expected, "{kind:?}");
    }
}

/// F never falls where floors bind and move: repeated rows, low rank, far values and weights, and fits that go on.
#[test]
fn the_free_energy_rises_at_floors() {
    fn of<F: Float>(seed: u64) {
        let mut rng = Rng::from_seed(seed);
        let (n, d) = (80 + rng.below(200), 1 + rng.below(6));
        let rank = 1 + rng.below(d);
        let mut normals = |n, d| Array2::from_shape_fn((n, d), |_| rng.normal());
        let axes = normals(rank, d);
        let mut x = normals(n, rank).dot(&axes);
        if seed.is_multiple_of(2) {
            x.mapv_inplace(|x| (2.0 * x).round());
        }
        if seed.is_multiple_of(3) {
            x.row_mut(0).fill(10f64.powi(3 + (seed % 9) as i32));
        }
        if seed.is_multiple_of(5) {
            x.mapv_inplace(|x| x + 1e4);
        }
        let x = x.mapv(F::from_f64);
        let w = Array1::from_shape_fn(n, |i| [1.0, 0.5, 3.0][i % 3]);
        let data = Dense::weighted(x.view(), w.view()).unwrap();
        // One column has no factors.
        let kinds = KINDS
            .into_iter()
            .filter(|kind| d > 1 || *kind != Covariance::Factors(1));
        for kind in kinds {
            for k in [1, 3, 7] {
                let builder = algorithms::gmm(k)
                    .seeder(KMeansPlusPlus::default())
                    .covariance(kind)
                    .tolerance(0.0)
                    .max_iterations(30);
                let found = builder
                    .clone()
                    .seed(seed)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap();
                let case = format!("{kind:?} {k} {seed} {n} {d} {rank}");
                rises_in_phases(&case, &found.report, w.sum(), rounding::<F>());
                let on = builder
                    .start_from(&found.model)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap();
                rises_in_phases(&case, &on.report, w.sum(), rounding::<F>());
                let (before, after) = (
                    found.report.free_energies.last().unwrap(),
                    on.report.free_energies[0],
                );
                assert!(
                    (before - after).abs() <= 1e-6 * before.abs().max(w.sum()),
                    "{case}: {before} {after}"
                );
            }
        }
    }
    for seed in 0..40 {
        of::<f64>(seed);
        of::<f32>(seed);
    }
}

/// A far value is one component more, by BIC and ICL; AIC takes more components than there are.
#[test]
fn a_far_value_is_one_cluster_more() {
    for far in [999_999.0, 1e4, 1e9] {
        let mut x = three_blobs(600, 1).0;
        x.push_row(array![far, far].view()).unwrap();
        let data = Dense::new(&x).unwrap();
        let full = |k| {
            algorithms::gmm(k)
                .covariance(Covariance::Full)
                .restarts(3)
                .build()
        };
        let found = Sweep::new(1..=6).run(&data, full).unwrap();
        for criterion in [Criterion::Bic, Criterion::Aic, Criterion::Icl] {
            let best = found.best(criterion).unwrap().clusters;
            let all: Vec<_> = found
                .candidates
                .iter()
                .map(|c| c.value(criterion))
                .collect();
            let is_right = if criterion == Criterion::Aic {
                best >= 4
            } else {
                best == 4
            };
            assert!(is_right, "{far:e} {criterion} {all:?}");
        }
    }
}

/// Columns in units that are far apart, as metres of light and hertz: each covariance that has a variance for each column, and the
/// process, find what they find in one unit. A floor, a prior or a start that is the same for all columns would hold the small ones.
#[test]
fn units_of_columns_far_apart_change_nothing() {
    let x = blobs::<f64>(400, 4, 2, 3);
    let kinds = [
        Covariance::Full,
        Covariance::Tied,
        Covariance::Diagonal,
        Covariance::Factors(1),
    ];
    for units in [
        [1e-7, 1.0, 1e14, 1.0],
        [1e10, 1e-10, 1.0, 3.0],
        [1.0, 1.0, 1.0, 1e-20],
    ] {
        let scaled = Array2::from_shape_fn(x.dim(), |(n, j)| units[j] * x[[n, j]]);
        let shift: f64 = 400.0 * units.iter().map(|u: &f64| u.ln()).sum::<f64>();
        for k in [1, 2] {
            for (kind, rows) in kinds
                .into_iter()
                .flat_map(|kind| [(kind, 0.0), (kind, 2.0)])
            {
                let of = |x: &Array2<f64>| {
                    let data = Dense::new(x.view()).unwrap();
                    let seeds = x.select(Axis(0), &[0, 1][..k]);
                    let family = Gaussian::new(kind).prior(Prior::new(rows));
                    let builder = algorithms::gmm(k).m_step(family).tolerance(1e-7);
                    let builder = builder
                        .seeder(Given::new(seeds.view()))
                        .max_iterations(2_000);
                    let fit = builder.build().unwrap().fit(&data).unwrap();
                    fit.model.log_likelihood(&data).unwrap()
                };
                let (one, other) = (of(&x), of(&scaled) + shift);
                let what = format!("{kind:?}, k = {k}, {rows} rows, {units:?}");
                // Two components begin with other responsibilities, and may end in another optimum.
                let within = if k == 1 { 0.5 } else { 10.0 };
                assert!((one - other).abs() < within, "{what}: {one} {other}");
            }
        }
    }
}
