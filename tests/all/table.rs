//! Tables of mixed columns: latent classes, Poisson and Gaussian columns, against naive sums.

use crate::common::{classes_are_found, close, read, rises_in_phases, rounding};
use coremix::data::Sparse;
use coremix::families::{Column, ProductMixture, Table};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Float, testing};
use ndarray::{Array1, Array2, Axis, array};
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
fn naive_joint(model: &ProductMixture<f64>, row: &[f64], c: usize) -> f64 {
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

/// Densities and one iteration of EM, with missing values and without, with a prior and without, whatever the unit of the weights.
#[test]
fn densities_and_updates_are_the_naive_ones() {
    for (prior_rows, unit) in [(0.0, 1.0), (0.5, 1.0), (3.0, 1e-200)] {
        densities_and_updates(prior_rows, unit);
    }
}

fn densities_and_updates(prior_rows: f64, unit: f64) {
    let (whole, _) = rows(300, 2);
    let w = weights(300) * unit;
    // In rows of mean weight.
    let a = prior_rows * w.sum() / 300.0;
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
                .m_step(Table::new(kinds()).prior_rows(prior_rows))
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
                    let expected = (known(j).map(squared).sum::<f64>() + a * prior) / (mass + a);
                    assert!(
                        close(Mixture::variances(&next)[[c, j]], expected, 1e-8),
                        "{c} {j}"
                    );
                }
                Column::Count => {
                    let expected = (own + a * all_mean) / (mass + a);
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
                        let expected = (own + a * (all / total)) / (mass + a);
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
    let standardised = algorithms::gmm::<f64>(2)
        .m_step(Table::new(category()))
        .standardise(true);
    assert!(standardised.build().is_err());
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
    assert_eq!(
        (open.columns(), told.columns()),
        (&open_kinds()[..], &open_kinds()[..])
    );
    assert_eq!(open.to_bytes(&[]).unwrap(), told.to_bytes(&[]).unwrap());
    // Without kinds all columns are numbers.
    let none = fit(Vec::new());
    assert_eq!(none.columns(), [Column::Number; 5]);

    let told = algorithms::table(1, vec![Column::Category(0), Column::Category(9)]);
    let x = array![[7.0, 0.0], [1e15, 8.0], [7.0, 3.0]];
    let model = told.fit(&Dense::new(&x).unwrap()).unwrap().model;
    let codes = [0, 1].map(|column| model.codes(column).unwrap().len());
    assert_eq!(codes, [2, 3]);

    for (value, kind) in [
        (-1.0, 0),
        (0.5, 0),
        (3.0, 3),
        (1e100, 0),
        (2f64.powi(54), 0),
    ] {
        let x = array![[value], [0.0], [1.0]];
        let table = algorithms::table(2, vec![Column::Category(kind)]);
        let found = table.build().unwrap().fit(&Dense::new(&x).unwrap());
        let said = found.map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("categories"), "{said}");
    }
    // In f32 larger codes would be one.
    let x = array![[0f32], [2f32.powi(25)]];
    let table = algorithms::table(1, vec![Column::Category(0)]);
    let found = table.build().unwrap().fit(&Dense::new(&x).unwrap());
    assert!(found.map(|_| ()).unwrap_err().to_string().contains("row 1"));
    let x = Array2::from_shape_fn(((1 << 20) + 1, 1), |(n, _)| n as f64);
    let table = algorithms::table(1, vec![Column::Category(0)]);
    let found = table.build().unwrap().fit(&Dense::new(&x).unwrap());
    let said = found.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("at most 1,048,576"), "{said}");
    let whole = Array2::from_shape_fn((9, 5), |(n, j)| (n * j) as f64);
    let mixed = Sketch::new(whole.view(), 3, 1).unwrap();
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

/// Latent classes of stepmix.
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
    assert!((found - likelihood).abs() < 1e-3, "{found} {likelihood}");

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

/// These rows with other codes for the categories 0, 1, 2 and 3.
fn with_codes(x: &Array2<f64>, codes: [f64; 4]) -> Array2<f64> {
    let mut x = x.clone();
    for j in [1, 3] {
        x.column_mut(j).mapv_inplace(|code| codes[code as usize]);
    }
    x
}

fn open_kinds() -> Vec<Column> {
    let open = kinds().into_iter().map(|kind| match kind {
        Column::Category(_) => Column::Category(0),
        other => other,
    });
    open.collect()
}

/// Codes from 1 on, years, ZIP codes, and in another order: the same mixture, and the same criteria.
#[test]
fn codes_are_labels() {
    let (x, _) = rows(400, 8);
    let all_codes = [
        [0.0, 1.0, 2.0, 3.0],
        [1.0, 2.0, 3.0, 4.0],
        [1998.0, 2004.0, 2011.0, 2024.0],
        [94_110.0, 10_001.0, 60_601.0, 501.0],
        [9e15, 0.0, 1e9, 7.0],
    ];
    for numbers in [None, Some(Covariance::Full)] {
        let fits = all_codes.map(|codes| {
            let x = with_codes(&x, codes);
            let data = Dense::new(&x).unwrap();
            let table = "table".parse::<Algorithm>().unwrap().clusters(3);
            let table = table.columns(open_kinds()).seed(4).restarts(2);
            let table = match numbers {
                None => table,
                Some(kind) => table.covariance(kind),
            };
            let model = table.boxed::<f64>().unwrap().fit(&data).unwrap().model;
            let likelihood = model.log_likelihood(&data).unwrap();
            let labels = model.predict(&data).unwrap();
            (
                model.free_parameters(),
                likelihood,
                labels,
                Mixture::variances(&model),
            )
        });
        for own in &fits {
            assert_eq!((own.0, &own.2), (fits[0].0, &fits[0].2));
            assert!(close(own.1, fits[0].1, 1e-9), "{} {}", own.1, fits[0].1);
            let apart = (&own.3 - &fits[0].3).mapv(f64::abs);
            assert!(apart.iter().all(|a| *a < 1e-6));
        }
    }
    // The order of probabilities is that of the codes.
    let fit = |codes| {
        let x = with_codes(&x, codes);
        let table = algorithms::table(3, open_kinds()).seed(4).restarts(2);
        table
            .build()
            .unwrap()
            .fit(&Dense::new(&x).unwrap())
            .unwrap()
            .model
    };
    let (model, turned) = (fit(all_codes[0]), fit(all_codes[3]));
    assert_eq!(
        turned.codes(1).unwrap(),
        [501.0, 10_001.0, 60_601.0, 94_110.0]
    );
    assert!(turned.codes(0).is_err() && turned.codes(5).is_err());
    let (p, q) = (
        model.probabilities(1).unwrap(),
        turned.probabilities(1).unwrap(),
    );
    for (own, other) in [(0, 3), (1, 1), (2, 2), (3, 0)] {
        let pairs = p.column(own).into_iter().zip(q.column(other));
        pairs.for_each(|(p, q)| assert!((p - q).abs() < 1e-9, "{p} {q}"));
    }
    // The mean of a category is the likeliest one.
    let means = Mixture::means(&turned);
    for c in 0..3 {
        let most = q.row(c).iter().copied().fold(0.0, f64::max);
        let l = q.row(c).iter().position(|p| *p == most).unwrap();
        assert_eq!(means[[c, 1]], turned.codes(1).unwrap()[l]);
    }
}

/// Every question about a row that no fit takes is the error of the fit; a code that was not seen is as unlikely under all.
#[test]
fn models_take_what_fits_take() {
    let (x, _) = rows(700, 1);
    let data = Dense::new(&x).unwrap();
    let alone = algorithms::table(3, kinds()).build().unwrap();
    let family = Table::new(kinds()).numbers(Gaussian::new(Covariance::Full));
    let product = algorithms::gmm(3).m_step(family).build().unwrap();
    let models: [coremix::BoxedMixture<f64>; 2] = [
        Box::new(alone.fit(&data).unwrap().model),
        Box::new(product.fit(&data).unwrap().model),
    ];
    for model in &models {
        for (column, value) in [
            (2, -1.5),
            (2, 0.5),
            (2, 1e17),
            (1, 1.5),
            (1, -1.0),
            (3, 1e300),
        ] {
            let value = if value > 1e200 { 2f64.powi(60) } else { value };
            let shown = format!("{value:?}").trim_end_matches(".0").to_owned();
            let mut x = x.clone();
            x[[641, column]] = value;
            let row = x.row(641).to_vec();
            let data = Dense::with_missing(&x).unwrap();
            let mut one = model.predictor();
            let mut with_missing = model.predictor().with_missing();
            let mut partial = row.clone();
            partial[0] = f64::NAN;
            let found = [
                model.predict(&data).map(|_| ()),
                model.responsibilities(&data).map(|_| ()),
                model.truncated_responsibilities(&data, 2).map(|_| ()),
                model.log_densities(&data).map(|_| ()),
                model.log_likelihood(&data).map(|_| ()),
                model.score(&data).map(|_| ()),
                model.density_threshold(&data, 0.5).map(|_| ()),
            ];
            for found in found {
                let said = found.unwrap_err().to_string();
                let place = format!("row 641, column {column} is {shown}; it must be");
                assert!(said.contains(&place), "{said}");
            }
            for found in [
                one.predict(&row).map(|_| ()),
                one.log_density(&row).map(|_| ()),
                with_missing.predict(&partial).map(|_| ()),
                with_missing.likeliest(&partial, 2).map(|_| ()),
                with_missing.log_density(&partial).map(|_| ()),
            ] {
                let place = format!("row 0, column {column} is {shown}; it must be");
                assert!(found.unwrap_err().to_string().contains(&place));
            }
            let mut holes = x.clone();
            holes[[3, 0]] = f64::NAN;
            let holes = Dense::with_missing(&holes).unwrap();
            assert!(model.impute(&holes).is_err() && model.expected(&holes).is_err());
        }
        let mut unseen = x.row(5).to_owned().insert_axis(ndarray::Axis(0));
        let mut without = unseen.clone();
        unseen[[0, 1]] = 17.0;
        without[[0, 1]] = f64::NAN;
        let without = Dense::with_missing(&without).unwrap();
        let unseen = Dense::new(&unseen).unwrap();
        let (a, b) = (
            model.log_densities(&unseen).unwrap(),
            model.log_densities(&without).unwrap(),
        );
        assert!(close(a[0], b[0] - 27.6, 1e-9), "{a} {b}");
        let (a, b) = (
            model.responsibilities(&unseen).unwrap(),
            model.responsibilities(&without).unwrap(),
        );
        a.iter()
            .zip(&b)
            .for_each(|(a, b)| assert!(close(*a, *b, 1e-9)));
    }
}

/// A missing value becomes the likeliest category, and a whole count: by the posteriors of the parameters.
#[test]
fn missing_values_become_data() {
    let (x, _) = rows(400, 6);
    let x = with_codes(&x, [4.0, 17.0, 6.0, 900.0]);
    let mut holes = x.clone();
    for ((n, j), x) in holes.indexed_iter_mut() {
        if (n * 7 + j * 3) % 11 < 3 {
            *x = f64::NAN;
        }
    }
    let data = Dense::with_missing(&holes).unwrap();
    let fit = algorithms::table(3, open_kinds()).seed(2).build().unwrap();
    let model = fit.fit(&data).unwrap().model;
    let family = Table::new(open_kinds()).numbers(Gaussian::new(Covariance::Diagonal));
    let product = algorithms::gmm(3).m_step(family).seed(2).restarts(8);
    let product = product.build().unwrap().fit(&data).unwrap().model;
    let (filled, expected) = (model.impute(&data).unwrap(), model.expected(&data).unwrap());
    let (shares, means) = (
        model.responsibilities(&data).unwrap(),
        Mixture::means(&model),
    );
    let rates = Mixture::variances(&model);
    for ((n, j), hole) in holes.indexed_iter() {
        let (found, mean) = (filled[[n, j]], shares.row(n).dot(&means.column(j)));
        if !hole.is_nan() {
            assert_eq!((found, expected[[n, j]]), (*hole, *hole));
            continue;
        }
        match open_kinds()[j] {
            Column::Number => assert!(close(found, mean, 1e-9) && found == expected[[n, j]]),
            Column::Count => {
                let rate = shares.row(n).dot(&rates.column(j));
                assert!(close(expected[[n, j]], rate, 1e-9) && found == rate.round());
            }
            _ => {
                let own = shares.row(n).dot(&model.probabilities(j).unwrap());
                let l = (0..own.len())
                    .max_by(|a, b| own[*a].total_cmp(&own[*b]))
                    .unwrap();
                assert_eq!(found, model.codes(j).unwrap()[l]);
                assert_eq!(found, expected[[n, j]]);
            }
        }
    }
    for filled in [&filled, &product.impute(&data).unwrap()] {
        let fit = algorithms::table(3, open_kinds()).build().unwrap();
        assert!(fit.fit(&Dense::new(filled).unwrap()).is_ok());
        let known = |(j, n): &(usize, usize)| filled[[*n, *j]] == x[[*n, *j]];
        let places = (0..400)
            .map(|n| (1, n))
            .filter(|(j, n)| holes[[*n, *j]].is_nan());
        let places: Vec<_> = places.collect();
        let right = places.iter().filter(|place| known(place)).count();
        assert!(
            right as f64 > 0.7 * places.len() as f64,
            "{right} of {}",
            places.len()
        );
    }
}

/// Codes of categories have no distances, whatever other columns and parts there are.
#[test]
fn categories_have_no_quantization_error() -> Result<()> {
    let (x, _) = rows(300, 4);
    let data = Dense::new(&x)?;
    let model = algorithms::table(3, kinds()).build()?.fit(&data)?.model;
    assert!(model.quantization_error(&data).is_err());
    let score = model.score(&data)?;
    assert!(score.quantization_error.is_nan() && score.log_likelihood.is_finite());
    let (label, squared) = model.predictor().predict(x.row(0).as_slice().unwrap())?;
    assert!(label == model.predict(&data)?[0] && squared.is_nan());
    // The columns without categories.
    let own = x.select(Axis(1), &[0, 2, 4]);
    let own = Dense::new(&own)?;
    let model = model.marginal(&[0, 2, 4])?;
    let error = model.quantization_error(&own)?;
    assert!(error > 0.0 && error == model.score(&own)?.quantization_error);
    // Parts that are tables, and numbers in a block of their own.
    let numbers = || Gaussian::new(Covariance::Diagonal);
    let of_codes = Table::new(vec![Column::Category(4); 2]);
    let of_codes = Product::new(numbers()).block([1, 3], of_codes);
    let fit = algorithms::gmm(3).m_step(of_codes).build()?.fit(&data)?;
    assert!(fit.model.quantization_error(&data).is_err());
    let of_counts = Product::new(numbers()).block([2], Table::new(vec![Column::Count]));
    let fit = algorithms::gmm(3).m_step(of_counts).build()?.fit(&data)?;
    assert!(fit.model.quantization_error(&data)? > 0.0);
    Ok(())
}

/// Weights in any unit give the same parameters, and F in that unit; probabilities of one component are shares.
#[test]
fn the_unit_of_weights_does_not_count() {
    let (x, _) = rows(300, 3);
    let one = weights(300);
    for prior_rows in [0.0, 0.5] {
        let fit = |unit: f64, k: usize| {
            let w = &one * unit;
            let family = Table::new(kinds()).prior_rows(prior_rows);
            let fit = algorithms::gmm(k)
                .m_step(family)
                .seed(1)
                .max_iterations(20)
                .tolerance(0.0);
            let fit = fit
                .build()
                .unwrap()
                .fit(&Dense::weighted(&x, &w).unwrap())
                .unwrap();
            (fit.report.free_energies.last().unwrap() / unit, fit.model)
        };
        let (energy, model) = fit(1.0, 3);
        for unit in [1e-290, 1.0 / one.sum(), 7.0, 1e280] {
            let (own, other) = fit(unit, 3);
            assert!(close(own, energy, 1e-9), "{unit}: {own} {energy}");
            let apart = (&Mixture::variances(&other) - &Mixture::variances(&model)).mapv(f64::abs);
            assert!(apart.iter().all(|a| *a < 1e-6), "{unit}: {apart}");
        }
        let shares = fit(1.0 / one.sum(), 1).1.probabilities(1).unwrap();
        for l in 0..4 {
            let of = (0..300)
                .filter(|n| x[[*n, 1]] == f64::from(l))
                .map(|n| one[n]);
            assert!(close(
                shares[[0, l as usize]],
                of.sum::<f64>() / one.sum(),
                1e-12
            ));
        }
    }
}

/// A column of one number has no density: it is held by a floor, and counted.
#[test]
fn a_constant_number_is_counted() {
    let (mut x, _) = rows(600, 3);
    for value in [3.25, 0.0, -1e9] {
        x.column_mut(4).fill(value);
        let fit = algorithms::table(1, kinds()).build().unwrap();
        let fit = fit.fit(&Dense::new(&x).unwrap()).unwrap();
        assert_eq!(fit.report.at_floor, 1, "{value}");
        assert!(
            fit.model
                .explain()
                .column(4)
                .iter()
                .all(|nats| *nats < 1e-6)
        );
    }
    let fit = algorithms::table(1, kinds()).build().unwrap();
    let fit = fit.fit(&Dense::new(&rows(600, 3).0).unwrap()).unwrap();
    assert_eq!(fit.report.at_floor, 0);
}

/// The density of large counts, from the expansion of ln y! without cancellation.
#[test]
fn large_counts_have_densities() {
    for mean in [3.0, 7e4, 1e9, 1e15] {
        let x = Array2::from_shape_fn((200, 1), |(n, _)| {
            let apart = (n % 21) as f64 - 10.0;
            f64::floor(mean + 0.1 * apart * f64::sqrt(mean))
        });
        let data = Dense::new(&x).unwrap();
        let fit = algorithms::table(1, vec![Column::Count]).build().unwrap();
        let model = fit.fit(&data).unwrap().model;
        let rate = x.mean().unwrap();
        for (x, found) in x.iter().zip(model.log_densities(&data).unwrap()) {
            let expected = match mean < 100.0 {
                true => x * rate.ln() - rate - ln_factorial(*x),
                // A normal distribution with the terms of the next order.
                false => {
                    let t = (x - rate) / rate.sqrt();
                    let skew = (t.powi(3) - 3.0 * t) / (6.0 * rate.sqrt());
                    -0.5 * (TAU * rate).ln() - 0.5 * t * t + skew
                }
            };
            let within = if mean < 1e6 { 1e-4 } else { 1e-6 };
            assert!(
                (found - expected).abs() < within,
                "{x} of {mean}: {found} {expected}"
            );
        }
    }
}

/// Tables of all kinds of columns, weights and gaps, drawn at random: F is finite and never falls.
#[test]
fn free_energies_of_any_table_rise() {
    for seed in 0..150 {
        let mut rng = Rng::from_seed(seed);
        let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
        let (n, d, k) = (5 + below(120), 1 + below(5), 1 + below(4));
        let shapes: Vec<usize> = (0..d).map(|_| below(12)).collect();
        let (unit, holes) = (below(4), below(3) == 0);
        let columns = shapes.iter().map(|shape| match shape {
            0..=3 => Column::Number,
            4..=8 => Column::Count,
            _ => Column::Category(0),
        });
        let columns: Vec<Column> = columns.collect();
        let mut x = Array2::from_shape_fn((n, d), |(n, j)| match shapes[j] {
            0 => rng.normal() * 1e3,
            1 => 1.7e9 + (n % 2) as f64,
            2 => 0.1,
            3 if rng.uniform() < 0.6 => 0.0,
            3 => rng.normal() * 1e-7,
            4 => 0.0,
            5 => poisson(&mut rng, 2.0),
            6 => (rng.uniform() * 1e15).floor(),
            7 => 1e15 + (rng.normal() * 3e7).floor(),
            8 if rng.uniform() < 0.8 => 0.0,
            8 => poisson(&mut rng, 30.0),
            9 => 5.0,
            10 => (rng.uniform() * 3.0).floor() * 1e6,
            _ => n as f64,
        });
        if holes {
            for ((n, _), x) in x.indexed_iter_mut() {
                if n > 2 && rng.uniform() < 0.3 {
                    *x = f64::NAN;
                }
            }
        }
        let w = Array1::from_shape_fn(n, |_| match unit {
            0 => 1.0,
            1 => 1e-290 * (0.5 + rng.uniform()),
            2 => 1e280 * rng.uniform(),
            _ => 10f64.powf(-300.0 + 300.0 * rng.uniform()),
        });
        let data = Dense::weighted_with_missing(&x, &w).unwrap();
        for width in [1, 2, k] {
            for rows in [0.0, 0.5] {
                let family = Table::new(columns.clone()).prior_rows(rows);
                let fit = algorithms::gmm(k).m_step(family).seed(seed);
                let fit = fit.e_step(Exhaustive::truncated(width)).tolerance(0.0);
                let fit = fit.max_iterations(30).build().unwrap().fit(&data).unwrap();
                let energies = &fit.report.free_energies;
                assert!(
                    energies.iter().all(|f| f.is_finite()),
                    "{seed}: {energies:?}"
                );
                rises_in_phases(seed, &fit.report, w.sum(), rounding::<f64>());
                assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
            }
        }
    }
}

fn poisson(rng: &mut Rng, rate: f64) -> f64 {
    let (mut count, mut time) = (0.0, rng.exponential());
    while time < rate {
        (count, time) = (count + 1.0, time + rng.exponential());
    }
    count
}
