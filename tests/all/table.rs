//! Tables of mixed columns: latent classes, Poisson and Gaussian columns, against naive sums.

use crate::common::{classes_are_found, close, read, rises_in_phases, rounding};
use coremix::data::Sparse;
use coremix::m_step::{Column, Table, TableMixture};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, testing};
use ndarray::{Array1, Array2, array};
use std::f64::consts::TAU;

fn kinds() -> Vec<Column> {
    vec![
        Column::Number,
        Column::Category(4),
        Column::Count,
        Column::Category(2),
        Column::Number,
    ]
}

/// Rows of three classes, and the class of each.
fn rows(n: usize, seed: u64) -> (Array2<f64>, Array1<u32>) {
    let mut rng = Rng::from_seed(seed);
    let truth = Array1::from_shape_fn(n, |n| n as u32 % 3);
    let x = Array2::from_shape_fn((n, 5), |(n, j)| {
        let c = truth[n] as usize;
        let uniform = rng.uniform();
        match j {
            0 => 1990.0 + 10.0 * c as f64 + rng.normal(),
            1 if uniform < 0.8 => c as f64,
            1 => 3.0,
            2 => {
                // Events of rate 1 have exponential gaps.
                let (mut count, mut time) = (0.0, rng.exponential());
                while time < [1.0, 4.0, 15.0][c] {
                    (count, time) = (count + 1.0, time + rng.exponential());
                }
                count
            }
            3 => f64::from(uniform < [0.1, 0.5, 0.9][c]),
            _ => rng.normal() * [1.0, 0.1, 3.0][c],
        }
    });
    (x, truth)
}

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| (n % 3) as f64 + 0.5)
}

fn ln_factorial(x: f64) -> f64 {
    (2..=x as u64).map(|i| (i as f64).ln()).sum()
}

/// ln p(c, y), from the parameters that the model shows.
fn naive_joint(model: &TableMixture<f64>, row: &[f64], c: usize) -> f64 {
    let (means, variances) = (Mixture::means(model), Mixture::variances(model));
    let terms = row
        .iter()
        .zip(kinds())
        .enumerate()
        .filter(|(_, (x, _))| !x.is_nan());
    let logs = terms.map(|(j, (x, kind))| match kind {
        Column::Number => {
            let v = variances[[c, j]];
            -0.5 * ((TAU * v).ln() + (x - means[[c, j]]).powi(2) / v)
        }
        Column::Count => x * variances[[c, j]].ln() - variances[[c, j]] - ln_factorial(*x),
        _ => model.probabilities(j).unwrap()[[c, *x as usize]].ln(),
    });
    Mixture::proportions(model)[c].ln() + logs.sum::<f64>()
}

fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

/// Densities and one iteration of EM with the prior, with missing values and without.
#[test]
fn densities_and_updates_are_the_naive_ones() {
    let (whole, _) = rows(300, 2);
    let w = weights(300);
    let mut holes = whole.clone();
    for ((n, j), x) in holes.indexed_iter_mut() {
        if (n * 7 + j * 3) % 11 < 3 {
            *x = f64::NAN;
        }
    }
    for x in [&whole, &holes] {
        let data = Dense::weighted_with_missing(x, &w).unwrap();
        let builder = || {
            algorithms::gmm::<f64>(3)
                .m_step(Table::new(kinds()))
                .seed(3)
                .tolerance(0.0)
        };
        let model = builder()
            .max_iterations(4)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap()
            .model;
        let next = builder()
            .max_iterations(5)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap()
            .model;
        let densities = model.log_densities(&data).unwrap();
        let mut shares = Array2::zeros((300, 3));
        for (n, row) in x.outer_iter().enumerate() {
            let row: Vec<f64> = row.to_vec();
            let joints: Vec<f64> = (0..3).map(|c| naive_joint(&model, &row, c)).collect();
            let all = log_sum(&joints);
            assert!(close(densities[n], all, 1e-9), "{} {all}", densities[n]);
            (0..3).for_each(|c| shares[[n, c]] = w[n] * (joints[c] - all).exp());
        }
        // Half a row of all rows in advance.
        let known = |j: usize| (0..300).filter(move |n| !x[[*n, j]].is_nan());
        for (c, j) in (0..3).flat_map(|c| (0..5).map(move |j| (c, j))) {
            let mass: f64 = known(j).map(|n| shares[[n, c]]).sum();
            let total: f64 = known(j).map(|n| w[n]).sum();
            let mean =
                |of: &dyn Fn(usize) -> f64| known(j).map(|n| w[n] * of(n)).sum::<f64>() / total;
            let all_mean = mean(&|n| x[[n, j]]);
            let own = known(j).map(|n| shares[[n, c]] * x[[n, j]]).sum::<f64>();
            match kinds()[j] {
                Column::Number => {
                    let prior = mean(&|n| (x[[n, j]] - all_mean).powi(2));
                    let squared = |n: usize| shares[[n, c]] * (x[[n, j]] - own / mass).powi(2);
                    let expected =
                        (known(j).map(squared).sum::<f64>() + 0.5 * prior) / (mass + 0.5);
                    assert!(
                        close(Mixture::variances(&next)[[c, j]], expected, 1e-8),
                        "{c} {j}"
                    );
                }
                Column::Count => {
                    let expected = (own + 0.5 * all_mean) / (mass + 0.5);
                    assert!(
                        close(Mixture::variances(&next)[[c, j]], expected, 1e-9),
                        "{c} {j}"
                    );
                }
                Column::Category(categories) => {
                    for l in 0..categories {
                        let is = |n: &usize| x[[*n, j]] == l as f64;
                        let own: f64 = known(j).filter(is).map(|n| shares[[n, c]]).sum();
                        let all: f64 = known(j).filter(is).map(|n| w[n]).sum();
                        let prior = (all + 1.0 / categories as f64) / (total + 1.0);
                        let expected = (own + 0.5 * prior) / (mass + 0.5);
                        let found = next.probabilities(j).unwrap()[[c, l]];
                        assert!(
                            close(found, expected, 1e-9),
                            "{c} {j} {l}: {found} {expected}"
                        );
                    }
                }
                _ => unreachable!(),
            }
        }
    }
}

fn laws<F: Float>() {
    let (x, truth) = rows(600, 5);
    let (x, w) = (x.mapv(F::from_f64), weights(600));
    let data = Dense::weighted(&x, &w).unwrap();
    testing::family(&Table::new(kinds()), &data, 3).unwrap();
    classes_are_found(&Table::new(kinds()), &data, w.sum(), truth.view());
}

/// The row and the column of the whole data, also of a block of columns, and also of rows without weight before.
#[test]
fn a_number_of_another_kind_is_named() {
    let bad = [(2, -1.0), (2, 0.5), (1, 4.0), (1, 1.5), (1, -1.0), (3, 2.0)];
    for (column, value) in bad {
        let (mut x, _) = rows(700, 1);
        x[[641, column]] = value;
        let data = Dense::new(&x).unwrap();
        let numbers = Table::new(kinds()).numbers(Gaussian::new(Covariance::Full));
        let alone = algorithms::gmm(2).m_step(Table::new(kinds()));
        let error = alone.build().unwrap().fit(&data).unwrap_err();
        let product = algorithms::gmm(2).m_step(numbers).build().unwrap();
        assert_eq!(product.fit(&data).unwrap_err(), error);
        let place = format!("row 641, column {column} is {value}; it must be");
        assert!(error.to_string().contains(&place), "{error}");
        // A row without weight may hold anything.
        let weights = Array1::from_shape_fn(700, |n| f64::from(n != 641));
        let data = Dense::weighted(&x, &weights).unwrap();
        assert!(product.fit(&data).is_ok());
    }
}

#[test]
fn all_searches_take_tables() {
    laws::<f32>();
    laws::<f64>();
}

/// Rows that are no table are told, and a component with one row has finite densities.
#[test]
fn hostile_rows_are_fitted_or_told() {
    let fit = |x: &Array2<f64>, columns: Vec<Column>| {
        let fit = algorithms::gmm(2).m_step(Table::new(columns)).build()?;
        fit.fit(&Dense::with_missing(x)?)
    };
    let said = |x: Array2<f64>, columns: Vec<Column>| {
        fit(&x, columns).map(|_| ()).unwrap_err().to_string()
    };
    let category = || vec![Column::Category(2)];
    for x in [
        array![[0.0], [2.0]],
        array![[0.0], [0.5]],
        array![[0.0], [-1.0]],
    ] {
        assert!(said(x, category()).contains("row 1, column 0"));
    }
    assert!(said(array![[0.0], [1.5]], vec![Column::Count]).contains("count"));
    assert!(said(array![[0.0], [1.0]], vec![Column::Count; 2]).contains("kinds"));
    let standardised = algorithms::gmm(2)
        .m_step(Table::new(category()))
        .standardise(true);
    let data = Dense::new(&array![[0.0], [1.0], [1.0]]).map(|_| ());
    assert!(data.is_ok());
    let x = array![[0.0], [1.0], [1.0]];
    assert!(
        standardised
            .build()
            .unwrap()
            .fit(&Dense::new(&x).unwrap())
            .is_err()
    );
    // Constant columns, categories that no row has, counts that are all 0, and one far row.
    let x = array![
        [5.0, 0.0, 0.0, 1.0],
        [5.0, 0.0, 0.0, 2.0],
        [5.0, 2.0, 0.0, 1.0],
        [5.0, 2.0, 0.0, 1e9],
        [5.0, 0.0, 0.0, f64::NAN]
    ];
    let columns = vec![
        Column::Number,
        Column::Category(9),
        Column::Count,
        Column::Number,
    ];
    for seed in 0..5 {
        let fit = algorithms::gmm(3)
            .m_step(Table::new(columns.clone()))
            .seed(seed)
            .build()
            .unwrap();
        let data = Dense::with_missing(&x).unwrap();
        let fit = fit.fit(&data).unwrap();
        rises_in_phases(seed, &fit.report, 5.0, rounding::<f64>());
        assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
        let unseen = array![[5.0, 8.0, 1.0, 0.0], [4.0, 99.0, 3.0, 0.0]];
        let densities = fit
            .model
            .log_densities(&Dense::new(&unseen).unwrap())
            .unwrap();
        assert!(densities.iter().all(|x| x.is_finite()));
    }
    // Sparse rows: what is not there is the category or the count 0.
    let sparse = Sparse::new(
        2,
        vec![0, 1, 1, 3, 4],
        vec![0, 0, 1, 1],
        vec![1.0, 1.0, 2.0, 3.0],
    )
    .unwrap();
    let dense = array![[1.0, 0.0], [0.0, 0.0], [1.0, 2.0], [0.0, 3.0]];
    let columns = vec![Column::Category(2), Column::Count];
    let builder = || {
        algorithms::gmm(2)
            .m_step(Table::new(columns.clone()))
            .seed(2)
            .max_iterations(6)
    };
    let one = builder().build().unwrap().fit(&sparse).unwrap().model;
    let other = builder()
        .build()
        .unwrap()
        .fit(&Dense::new(&dense).unwrap())
        .unwrap()
        .model;
    let apart = (&Mixture::variances(&one) - &Mixture::variances(&other)).mapv(f64::abs);
    assert!(apart.iter().all(|a| *a < 1e-9), "{apart}");
}

/// The number of categories may follow from the data.
#[test]
fn categories_are_counted() {
    let (x, _) = rows(300, 5);
    let data = Dense::new(&x).unwrap();
    let open = kinds().into_iter().map(|kind| match kind {
        Column::Category(_) => Column::Category(0),
        other => other,
    });
    let fit = |columns| {
        let builder = algorithms::table(3, columns).restarts(1).seed(2);
        builder.build().unwrap().fit(&data).unwrap().model
    };
    let (open, told) = (fit(open.collect()), fit(kinds()));
    assert_eq!(open.columns(), kinds());
    assert_eq!(open.to_bytes(&[]).unwrap(), told.to_bytes(&[]).unwrap());
    // Without kinds all columns are numbers.
    let none = fit(Vec::new());
    assert_eq!(none.columns(), [Column::Number; 5]);

    for (value, kind) in [(1e15, 0), (-1.0, 0), (0.5, 0), (3.0, 1 << 30), (1e100, 0)] {
        let x = array![[value], [0.0], [1.0]];
        let table = algorithms::table(2, vec![Column::Category(kind)]);
        let found = table.build().unwrap().fit(&Dense::new(&x).unwrap());
        let said = found.map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("categories"), "{said}");
    }
    let mixed = Sketch::new(x.view(), 3, 1).unwrap();
    let fit = algorithms::table(2, Vec::new()).build().unwrap();
    let said = fit.fit(&mixed).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("of a sketch"), "{said}");
}

/// The mean log-ratio over rows that are drawn from each component.
#[test]
fn columns_that_tell_components_apart_are_explained() {
    let (x, _) = rows(2_000, 7);
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::table(3, kinds()).seed(1).build().unwrap();
    let model = fit.fit(&data).unwrap().model;
    let (apart, (drawn, from)) = (model.explain(), model.sample(60_000, 3).unwrap());
    let (means, variances) = (Mixture::means(&model), Mixture::variances(&model));
    let shares = Mixture::proportions(&model);
    let normal = |x: f64, m: f64, v: f64| -0.5 * ((TAU * v).ln() + (x - m).powi(2) / v);
    for (j, kind) in kinds().into_iter().enumerate() {
        let (own, spread) = (means.column(j), variances.column(j));
        let mean = own.dot(&shares);
        let variance = (&spread + &own.mapv(|m| (m - mean).powi(2))).dot(&shares);
        let rate = spread.dot(&shares);
        for c in 0..3 {
            let ratio = |x: f64| match kind {
                Column::Number => normal(x, own[c], spread[c]) - normal(x, mean, variance),
                Column::Count => x * (spread[c] / rate).ln() - spread[c] + rate,
                _ => {
                    let all = model.probabilities(j).unwrap();
                    let of = all.column(x as usize);
                    (of[c] / of.dot(&shares)).ln()
                }
            };
            let rows = (0..drawn.nrows()).filter(|n| from[*n] as usize == c);
            let logs: Vec<f64> = rows.map(|n| ratio(drawn[[n, j]])).collect();
            let n = logs.len() as f64;
            let found = logs.iter().sum::<f64>() / n;
            let deviation = (logs.iter().map(|l| (l - found).powi(2)).sum::<f64>() / n).sqrt();
            assert!(
                (found - apart[[c, j]]).abs() < 5.0 * deviation / n.sqrt() + 1e-9,
                "{c} {j}"
            );
        }
    }
    // A column that is the same for all says nothing.
    let mut same = x.clone();
    same.column_mut(0).fill(3.0);
    let fit = algorithms::table(3, kinds()).build().unwrap();
    let model = fit.fit(&Dense::new(&same).unwrap()).unwrap().model;
    assert!(model.explain().column(0).iter().all(|nats| *nats < 1e-6));
}

/// Latent classes of stepmix, which has no prior: with half a row of it, the likelihood is at most the same, and near.
#[test]
fn latent_classes_are_those_of_stepmix() {
    let x = read("classes_data");
    let (likelihood, expected) = (
        read("classes_likelihood")[[0, 0]],
        read("classes_parameters"),
    );
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::table(3, vec![Column::Category(0); 5]);
    let fit = fit.tolerance(1e-9).max_iterations(5_000).restarts(20);
    let model = fit.build().unwrap().fit(&data).unwrap().model;
    let found = model.log_likelihood(&data).unwrap();
    assert!(
        found < likelihood + 1e-3 && found > likelihood - 3.0,
        "{found} {likelihood}"
    );

    let shares = Mixture::proportions(&model);
    let mut order: Vec<usize> = (0..3).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    for (row, &c) in order.iter().enumerate() {
        assert!((shares[c] - expected[[row, 0]]).abs() < 0.01, "{shares}");
        let own: Vec<f64> = (0..5)
            .flat_map(|j| model.probabilities(j).unwrap().row(c).to_vec())
            .collect();
        for (own, expected) in own.iter().zip(expected.row(row).iter().skip(1)) {
            assert!((own - expected).abs() < 0.01, "{own} {expected}");
        }
    }
}
