//! Sparse rows: fits and answers are those of dense rows with the zeros, at a cost that follows the entries.

use crate::common::{blobs, close, on, rises_in_phases, rounding};
use coremix::data::{Frame, RowKind, Rows, Sparse, Summary};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, algorithms};
use ndarray::{Array1, Array2};
use std::ops::Range;

/// Rows in groups that have columns of their own, and some in common; some rows are empty.
struct Text<F> {
    dim: usize,
    starts: Vec<usize>,
    ids: Vec<u32>,
    values: Vec<F>,
    dense: Array2<F>,
}

fn text<F: Float>(n: usize, dim: usize, groups: usize, seed: u64) -> Text<F> {
    let mut rng = Rng::from_seed(seed);
    let mut dense = Array2::from_elem((n, dim), F::zero());
    for ((n, j), x) in dense.indexed_iter_mut() {
        let uniform = rng.uniform();
        let own = j % groups == n % groups;
        let chance = if own { 0.5 } else { 0.05 };
        if uniform < chance && n % 41 != 40 {
            *x = F::from_f64(0.2 + uniform * 3.0);
        }
    }
    let (mut starts, mut ids, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense.outer_iter() {
        for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != F::zero()) {
            ids.push(j as u32);
            values.push(*x);
        }
        starts.push(ids.len());
    }
    Text {
        dim,
        starts,
        ids,
        values,
        dense,
    }
}

impl<F: Float> Text<F> {
    fn data<'a>(&'a self, weights: &'a Array1<f64>) -> Sparse<'a, F> {
        let weights = weights.as_slice().unwrap();
        Sparse::weighted(self.dim, &self.starts, &self.ids, &self.values, weights).unwrap()
    }
}

/// Empty rows do not count: ties of directions, up to rounding, would decide where they belong.
fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| if n % 41 == 40 { 0.0 } else { (n % 4) as f64 })
}

/// Rows of zeros are as far from one direction as from another, up to rounding: all others have the same labels.
fn same_labels(one: &Array1<u32>, other: &Array1<u32>, name: &str) {
    let pairs = one.iter().zip(other).enumerate();
    let other = pairs.filter(|(n, (a, b))| n % 41 != 40 && a != b);
    assert_eq!(other.count(), 0, "{name}");
}

/// Both kinds of rows, with the same seeds.
fn fits_are_those_of_dense_rows<F: Float>(within: f64) {
    let (text, w) = (text::<F>(420, 60, 5, 3), weights(420));
    let (sparse, dense) = (text.data(&w), Dense::weighted(&text.dense, &w).unwrap());
    let given = text.dense.select(ndarray::Axis(0), &[1, 7, 13, 19, 25]);
    let summary = |data: &dyn Data<F>| data.summary().clone();
    let (a, b) = (summary(&sparse), summary(&dense));
    assert!(a.rows == b.rows && a.total_weight == b.total_weight);
    for j in 0..60 {
        assert!(close(a.mean[j], b.mean[j], 1e-9) && close(a.variance[j], b.variance[j], 1e-9));
    }
    for kind in [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
    ] {
        for (what, standardise, directions) in [
            ("plain", false, false),
            ("standardised", true, false),
            ("directions", false, true),
        ] {
            for soft in [false, true] {
                let name = format!("{kind:?}, {what}, soft {soft}");
                let builder = || match soft {
                    true => algorithms::gmm::<F>(5),
                    false => algorithms::k_means::<F>(5),
                };
                let builder = || {
                    builder()
                        .covariance(kind)
                        .standardise(standardise)
                        .directions(directions)
                };
                let fit = |data: &dyn Data<F>| {
                    let builder = builder()
                        .seeder(Given::new(given.view()))
                        .max_iterations(5)
                        .tolerance(0.0);
                    builder.build().unwrap().fit(data).unwrap()
                };
                let (one, other) = (fit(&sparse), fit(&dense));
                rises_in_phases(&name, &one.report, w.sum(), rounding::<F>());
                same_labels(&one.search_labels, &other.search_labels, &name);
                let apart = (&one.model.means() - &other.model.means()).mapv(|x| x.to_f64().abs());
                assert!(apart.iter().all(|a| *a < within), "{name}");
                for (v, own) in one.model.variances().iter().zip(&other.model.variances()) {
                    assert!(
                        (v - own).abs() <= within * (1e-3 + own),
                        "{name}: {v} {own}"
                    );
                }
                // Each kind of rows is asked about either model.
                for model in [&one.model, &other.model] {
                    let (a, b) = (model.score(&sparse).unwrap(), model.score(&dense).unwrap());
                    same_labels(&a.labels, &b.labels, &name);
                    let pairs = [
                        (a.quantization_error, b.quantization_error),
                        (a.log_likelihood, b.log_likelihood),
                    ];
                    for (a, b) in pairs {
                        assert!(
                            (a - b).abs() <= 30.0 * within * (1.0 + b.abs()),
                            "{name}: {a} {b}"
                        );
                    }
                }
                let again = on(3, || fit(&sparse));
                assert!(again.model == one.model, "{name}");
            }
        }
    }
}

#[test]
fn sparse_rows_are_fitted_as_dense_ones() {
    fits_are_those_of_dense_rows::<f64>(1e-9);
    fits_are_those_of_dense_rows::<f32>(2e-4);
}

/// Rows in both forms. Explicit zeros are among the stored values, and rows without any.
fn with_columns<F: Float>(
    groups: usize,
    column: impl Fn(usize, usize, f64) -> Option<f64>,
) -> Text<F> {
    let (mut text, mut rng) = (text::<F>(300, 40, groups, 7), Rng::from_seed(9));
    (text.starts, text.ids, text.values) = (vec![0], Vec::new(), Vec::new());
    for (n, mut row) in text.dense.outer_iter_mut().enumerate() {
        for (j, x) in row.iter_mut().enumerate() {
            let given = if j < 3 {
                column(n, j, rng.normal())
            } else {
                None
            };
            *x = given.map_or(*x, F::from_f64);
            if given.is_some() || *x != F::zero() || (n + j) % 17 == 0 {
                text.ids.push(j as u32);
                text.values.push(*x);
            }
        }
        text.starts.push(text.ids.len());
    }
    text
}

/// Columns far from 0: that every row has, some of them, those of a group; constants, and columns below 0. Fits are those of dense
/// rows, and the free energy does not fall.
fn rows_far_from_the_origin_are_those_of_dense_rows<F: Float>(offsets: &[f64], within: f64) {
    const GROUPS: usize = 4;
    let w = Array1::from_shape_fn(300, |n| 0.5 + (n % 3) as f64);
    type Column = fn(usize, usize, f64, f64) -> Option<f64>;
    let columns: [(&str, Column); 5] = [
        ("constant", |_, j, far, _| (j == 1).then_some(far)),
        ("of all", |n, _, far, x| {
            Some(far + 3.0 * (n % GROUPS) as f64 + x)
        }),
        ("below 0", |n, _, far, x| {
            Some(-far - 30.0 * (n % GROUPS) as f64 - x.abs())
        }),
        ("of a group", |n, j, far, x| {
            (j == 1 && n % GROUPS == 2).then_some(far + x)
        }),
        ("one of several", |n, j, far, _| {
            (n % GROUPS == j).then_some(far)
        }),
    ];
    for (&far, (what, column)) in offsets
        .iter()
        .flat_map(|far| columns.iter().map(move |c| (far, c)))
    {
        let text = with_columns::<F>(GROUPS, |n, j, x| column(n, j, far, x));
        let (sparse, dense) = (text.data(&w), Dense::weighted(&text.dense, &w).unwrap());
        assert_eq!(sparse.frame().unit(), dense.frame().unit());
        let given = text.dense.select(ndarray::Axis(0), &[40, 41, 42, 43]);
        for (kind, soft, directions) in [
            (Covariance::TiedSpherical, false, false),
            (Covariance::TiedSpherical, true, false),
            (Covariance::Spherical, true, false),
            (Covariance::Diagonal, true, false),
            (Covariance::TiedSpherical, false, true),
        ] {
            let name = format!("{what} {far}, {kind:?}, soft {soft}, directions {directions}");
            let fit = |data: &dyn Data<F>| {
                let builder = match soft {
                    true => algorithms::gmm::<F>(GROUPS),
                    false => algorithms::k_means::<F>(GROUPS),
                };
                let seeds = Given::new(given.view());
                let builder = builder
                    .seeder(seeds)
                    .covariance(kind)
                    .directions(directions);
                let builder = builder.max_iterations(6).tolerance(0.0);
                builder.build().unwrap().fit(data).unwrap()
            };
            let (one, other) = (fit(&sparse), fit(&dense));
            rises_in_phases(&name, &one.report, w.sum(), rounding::<F>());
            let [a, b] = [&one, &other].map(|fit| *fit.report.free_energies.last().unwrap());
            // These are the digits that values have next to the deviation of 1 of a group.
            let digits = 16.0 * f64::EPSILON * far;
            assert!(
                (a - b).abs() <= within.max(digits) * b.abs().max(1e3),
                "{name}: {a} {b}"
            );
            let labels = [&one.model, &other.model].map(|model| model.predict(&sparse).unwrap());
            assert_eq!(labels[0], labels[1], "{name}");
            assert_eq!(labels[0], other.model.predict(&dense).unwrap(), "{name}");
            let densities = one.model.log_densities(&sparse).unwrap();
            let mut predictor = one.model.predictor();
            for n in (0..300).step_by(7).filter(|_| !directions) {
                let row = text.dense.row(n).to_vec();
                let (a, b) = (densities[n], predictor.log_density(&row).unwrap());
                assert!(
                    (a - b).abs() <= 1e3 * within * (40.0 + b.abs()),
                    "{name}: {a} {b}"
                );
            }
            assert!(on(3, || fit(&sparse)).model == one.model, "{name}");
        }
    }
}

#[test]
fn rows_far_from_the_origin_are_fitted_as_dense_ones() {
    rows_far_from_the_origin_are_those_of_dense_rows::<f64>(&[0.0, 1.0, 1e3, 1e6, 1.7e9], 1e-9);
    rows_far_from_the_origin_are_those_of_dense_rows::<f32>(&[0.0, 1.0, 1e3], 1e-5);
}

/// Random sparse rows without groups, of which components shrink to few: F does not fall, and is that of dense rows.
#[test]
fn variances_near_their_floors_are_those_of_dense_rows() {
    let (text, w) = (text::<f64>(500, 60, 60, 5), Array1::from_elem(500, 1.0));
    let (sparse, dense) = (text.data(&w), Dense::new(&text.dense).unwrap());
    let fit = |data: &dyn Data<f64>| {
        let builder = algorithms::gmm::<f64>(8)
            .seeder(KMeansPlusPlus::default())
            .covariance(Covariance::Diagonal)
            .seed(2);
        builder
            .max_iterations(40)
            .build()
            .unwrap()
            .fit(data)
            .unwrap()
    };
    let (one, other) = (fit(&sparse), fit(&dense));
    rises_in_phases("floors", &one.report, 500.0, rounding::<f64>());
    let [a, b] = [&one, &other].map(|fit| *fit.report.free_energies.last().unwrap());
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
}

/// All algorithms that take such rows, on coresets too; groups are found again.
#[test]
fn all_searches_take_sparse_rows() {
    let (text, w) = (text::<f32>(1_000, 80, 5, 1), weights(1_000));
    let data = text.data(&w);
    let truth = Array1::from_shape_fn(1_000, |n| n as u32 % 5);
    for name in Algorithm::NAMES {
        let algorithm = name.parse::<Algorithm>().unwrap().clusters(5).seed(3);
        let fit = algorithm.boxed::<f32>().unwrap().fit(&data);
        if name == "dp-gmm" {
            assert!(fit.is_err());
            continue;
        }
        let fit = fit.unwrap();
        let drawn = fit
            .coreset
            .as_ref()
            .map(|coreset| coreset.weights.iter().sum());
        rises_in_phases(
            name,
            &fit.report,
            drawn.unwrap_or(w.sum()),
            rounding::<f32>(),
        );
    }
    let fit = algorithms::spherical_k_means(5)
        .seed(1)
        .restarts(4)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    let labels = fit.model.predict(&data).unwrap();
    let index = metrics::adjusted_rand_index(labels.view(), truth.view()).unwrap();
    assert!(index > 0.9, "{index}");
    for kind in [Covariance::Full, Covariance::Tied] {
        let fit = algorithms::gmm(4)
            .covariance(kind)
            .build()
            .unwrap()
            .fit(&data);
        assert!(
            fit.map(|_| ())
                .unwrap_err()
                .to_string()
                .contains("coordinates")
        );
    }
}

#[test]
fn lists_that_are_no_rows_are_told() {
    let new = |starts: &[usize], ids: &[u32], values: &[f64]| {
        let data = Sparse::new(3, starts.to_vec(), ids.to_vec(), values.to_vec());
        data.map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(new(&[0, 0, 1], &[2], &[1.0]).is_ok());
    let said = |found: std::result::Result<(), String>, what: &str| {
        let error = found.unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    said(new(&[], &[], &[]), "data");
    said(new(&[0], &[], &[]), "data");
    said(new(&[0, 2], &[1], &[1.0]), "end at");
    said(new(&[1, 1], &[1], &[1.0]), "start at");
    said(
        new(&[0, 2, 1, 2], &[0, 1], &[1.0, 2.0]),
        "row 1 ends before",
    );
    said(new(&[0, 2], &[1, 1], &[1.0, 2.0]), "ascend");
    said(new(&[0, 2], &[2, 1], &[1.0, 2.0]), "ascend");
    said(new(&[0, 1], &[3], &[1.0]), "column 3 must be below");
    said(new(&[0, 1], &[0, 1], &[1.0]), "columns of values");
    said(new(&[0, 1], &[0], &[f64::NAN]), "row 0, column 0");
    said(new(&[0, 0, 1], &[2], &[1e200]), "row 1, column 2");
    let none: Vec<f64> = Vec::new();
    assert!(Sparse::new(0, vec![0, 0], Vec::new(), none).is_err());
    let weights =
        |w: &[f64]| Sparse::weighted(2, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0], w.to_vec());
    assert!(
        weights(&[1.0]).is_err() && weights(&[1.0, -1.0]).is_err() && weights(&[0.0, 0.0]).is_err()
    );
    // Nothing but zeros, and one row.
    let empty = Sparse::<f64>::new(4, vec![0, 0, 0], Vec::new(), Vec::new()).unwrap();
    let fit = algorithms::k_means(1).build().unwrap().fit(&empty).unwrap();
    assert_eq!(fit.model.quantization_error(&empty).unwrap(), 0.0);
}

/// Data of a program's own, which hands on the rows of others.
struct Handed<'a>(Sparse<'a, f64>);

impl Data<f64> for Handed<'_> {
    fn kind(&self) -> RowKind {
        RowKind::Sparse
    }
    fn len(&self) -> usize {
        Data::len(&self.0)
    }
    fn dim(&self) -> usize {
        Data::dim(&self.0)
    }
    fn summary(&self) -> &Summary {
        self.0.summary()
    }
    fn load(&self, rows: Range<usize>, frame: &Frame<f64>, into: &mut Rows<f64>) -> Result<()> {
        self.0.load(rows, frame, into)
    }
    fn gather(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Rows<f64>) -> Result<()> {
        self.0.gather(rows, frame, into)
    }
}

/// Zeros that are not stored are not taken for values that are not known, wherever the rows come from.
#[test]
fn zeros_are_no_missing_values() {
    let (starts, columns) = ([0, 1, 3, 4, 5, 7], [0, 0, 2, 1, 1, 0, 1]);
    let values = [1.0, 0.9, 0.1, 2.0, 2.1, 0.5, 0.7];
    let sparse = || Sparse::new(3, &starts[..], &columns[..], &values[..]).unwrap();
    let dense = blobs::<f64>(60, 3, 2, 1);
    for kind in [Covariance::Full, Covariance::Tied] {
        let fit = algorithms::gmm(2).covariance(kind).build().unwrap();
        let model = fit.fit(&Dense::new(&dense).unwrap()).unwrap().model;
        for data in [&sparse() as &dyn Data<f64>, &Handed(sparse())] {
            assert!(fit.fit(data).is_err());
            assert!(model.predict(data).is_err());
        }
    }
}

/// Rows that a program's data selects by default stay the same rows: zeros that are not stored are zeros.
#[test]
fn selected_zeros_are_zeros() {
    let (starts, columns) = ([0, 1, 3, 4, 5, 7], [0, 0, 2, 1, 1, 0, 1]);
    let values = [1.0, 0.9, 0.1, 2.0, 2.1, 0.5, 0.7];
    let handed = Handed(Sparse::new(3, &starts[..], &columns[..], &values[..]).unwrap());
    let (rows, weights) = ([4, 0, 1], vec![1.0, 2.0, 3.0]);
    let expected = handed.0.select(&rows, weights.clone()).unwrap();
    let found = handed.select(&rows, weights).unwrap();
    let frame = handed.frame();
    let loaded = |data: &dyn Data<f64>| {
        let mut rows = Rows::default();
        data.load(0..3, &frame, &mut rows).unwrap();
        (0..3)
            .map(|i| rows.coordinates(i)[..3].to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(loaded(&*found), loaded(&*expected));
    assert_eq!(found.summary(), expected.summary());
}

/// A block of other rows than the data says it has is an error that names the data.
#[test]
fn rows_of_another_kind_are_told() {
    struct Other<'a>(Dense<'a, f64>, RowKind);
    impl Data<f64> for Other<'_> {
        fn kind(&self) -> RowKind {
            self.1
        }
        fn len(&self) -> usize {
            self.0.len()
        }
        fn dim(&self) -> usize {
            self.0.dim()
        }
        fn summary(&self) -> &Summary {
            self.0.summary()
        }
        fn load(&self, rows: Range<usize>, frame: &Frame<f64>, into: &mut Rows<f64>) -> Result<()> {
            self.0.load(rows, frame, into)
        }
        fn gather(&self, rows: &[usize], frame: &Frame<f64>, into: &mut Rows<f64>) -> Result<()> {
            self.0.gather(rows, frame, into)
        }
    }
    let whole = blobs::<f64>(60, 3, 2, 1);
    let mut partial = whole.clone();
    partial[[7, 1]] = f64::NAN;
    let fit = algorithms::k_means(2).build().unwrap();
    for (x, kind) in [
        (&whole, RowKind::Partial),
        (&partial, RowKind::Dense),
        (&partial, RowKind::Sparse),
    ] {
        let data = Other(Dense::with_missing(x).unwrap(), kind);
        let error = fit.fit(&data).map(drop).unwrap_err().to_string();
        assert!(
            error.starts_with("Other") && error.contains("coordinates"),
            "{error}"
        );
    }
}
