//! Products of families over blocks of columns, against naive sums and against the families alone.

use crate::common::{blobs, classes_are_found, close, last, rises_in_phases, rounding};
use coremix::data::Sparse;
use coremix::families::{Column, GaussianMixture, Part, Product, ProductMixture, Table};
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{BoxedMixture, Builder, Float, algorithms, testing};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, Array2, ArrayView1, Axis, array};
use std::f64::consts::TAU;

/// The columns of numbers; column 1 is a category out of 3, column 3 a count.
const NUMBERS: [usize; 3] = [0, 2, 4];
const KINDS: [Covariance; 5] = [
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::Full,
    Covariance::Factors(1),
];

fn kinds() -> Vec<Column> {
    let mut kinds = vec![Column::Number; 5];
    (kinds[1], kinds[3]) = (Column::Category(3), Column::Count);
    kinds
}

fn product(kind: Covariance) -> Product {
    Table::new(kinds()).numbers(Gaussian::new(kind))
}

/// A count: events of rate 1 have exponential gaps.
fn poisson(rng: &mut Rng, rate: f64) -> f64 {
    let (mut count, mut time) = (0.0, rng.exponential());
    while time < rate {
        (count, time) = (count + 1.0, time + rng.exponential());
    }
    count
}

/// Rows of three classes around `far`, whose numbers are correlated, and the class of each.
fn rows(n: usize, seed: u64, far: f64) -> (Array2<f64>, Array1<u32>) {
    let mut rng = Rng::from_seed(seed);
    let truth = Array1::from_shape_fn(n, |n| n as u32 % 3);
    let mut x = Array2::zeros((n, 5));
    for (mut row, c) in x.outer_iter_mut().zip(&truth) {
        let c = *c as usize;
        let both = rng.normal();
        row[0] = far + [0.0, 5.0, 5.0][c] + both + 0.4 * rng.normal();
        row[2] = far + [0.0, 0.0, 40.0][c] - 8.0 * both + 4.0 * rng.normal();
        row[4] = far + 0.3 * rng.normal() + 0.5 * both;
        row[1] = match rng.uniform() {
            u if u < 0.7 => c as f64,
            u if u < 0.85 => ((c + 1) % 3) as f64,
            _ => ((c + 2) % 3) as f64,
        };
        row[3] = poisson(&mut rng, [1.0, 4.0, 9.0][c]);
    }
    (x, truth)
}

fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |n| (n % 3) as f64 + 0.5)
}

/// These rows without three in eleven of their values.
fn holes(x: &Array2<f64>) -> Array2<f64> {
    let mut holes = x.clone();
    for ((n, j), x) in holes.indexed_iter_mut() {
        if (n * 7 + j * 3) % 11 < 3 {
            *x = f64::NAN;
        }
    }
    holes
}

/// The two parts of a model: its numbers, and the others.
fn parts<F: Float>(model: &ProductMixture<F>) -> (&GaussianMixture<F>, ProductMixture<F>) {
    let mut blocks = model.gaussians();
    let (columns, numbers) = blocks.next().unwrap();
    assert!(columns == NUMBERS && blocks.next().is_none());
    (numbers, model.marginal(&[1, 3]).unwrap())
}

/// A row of numbers under component `c`: the log-density of what is known, and what is expected of all with its covariance.
fn naive_numbers(
    model: &GaussianMixture<f64>,
    row: &[f64],
    c: usize,
) -> (f64, DVector<f64>, DMatrix<f64>) {
    let d = row.len();
    let covariance = model.covariance(c).unwrap();
    let covariance = DMatrix::from_fn(d, d, |i, j| covariance[[i, j]]);
    let mean = DVector::from_fn(d, |j, _| model.means()[[c, j]]);
    let known: Vec<usize> = (0..d).filter(|j| !row[*j].is_nan()).collect();
    let missing: Vec<usize> = (0..d).filter(|j| row[*j].is_nan()).collect();
    let among = |rows: &[usize], columns: &[usize]| {
        DMatrix::from_fn(rows.len(), columns.len(), |i, j| {
            covariance[(rows[i], columns[j])]
        })
    };
    let apart = DVector::from_fn(known.len(), |i, _| row[known[i]] - mean[known[i]]);
    let (mut expected, mut rest) = (DVector::zeros(d), DMatrix::zeros(d, d));
    let mut density = 0.0;
    let inverse = match known.is_empty() {
        true => DMatrix::zeros(0, 0),
        false => among(&known, &known).try_inverse().unwrap(),
    };
    if !known.is_empty() {
        let form = (apart.transpose() * &inverse * &apart)[0];
        let log_det = among(&known, &known).determinant().ln();
        density = -0.5 * (form + log_det + known.len() as f64 * TAU.ln());
    }
    let gain = among(&missing, &known) * inverse;
    let filled = &gain * &apart;
    let left = among(&missing, &missing) - &gain * among(&known, &missing);
    for j in known {
        expected[j] = row[j];
    }
    for (a, i) in missing.iter().enumerate() {
        expected[*i] = mean[*i] + filled[a];
        for (b, j) in missing.iter().enumerate() {
            rest[(*i, *j)] = left[(a, b)];
        }
    }
    (density, expected, rest)
}

/// The log-density of the category and the count under component `c`, of what is known.
fn naive_others(table: &ProductMixture<f64>, row: ArrayView1<'_, f64>, c: usize) -> f64 {
    let (of_category, rate) = (
        table.probabilities(0).unwrap(),
        Mixture::variances(table)[[c, 1]],
    );
    let category = match row[1].is_nan() {
        true => 0.0,
        false => of_category[[c, row[1] as usize]].ln(),
    };
    let factorial: f64 = (2..=row[3] as u64).map(|i| (i as f64).ln()).sum();
    match row[3].is_nan() {
        true => category,
        false => category + row[3] * rate.ln() - rate - factorial,
    }
}

fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

/// Densities, and an iteration of EM, with missing values and without: each block follows from the responsibilities of all.
#[test]
fn densities_and_updates_are_the_naive_ones() {
    let (whole, _) = rows(240, 2, 100.0);
    let w = weights(240);
    for (x, kind) in [&whole, &holes(&whole)]
        .into_iter()
        .flat_map(|x| KINDS.map(|kind| (x, kind)))
    {
        let partial = x.iter().any(|x| x.is_nan());
        if partial && matches!(kind, Covariance::Factors(_)) {
            continue;
        }
        let data = Dense::weighted_with_missing(x, &w).unwrap();
        let fit = |steps| {
            let builder = algorithms::gmm::<f64>(3).m_step(product(kind)).seed(3);
            let builder = builder.tolerance(0.0).max_iterations(steps);
            builder.build().unwrap().fit(&data).unwrap()
        };
        let (model, next) = (fit(4).model, fit(5).model);
        let (numbers, table) = parts(&model);
        let found = model.log_densities(&data).unwrap();
        let (mut mass, mut total) = (Array1::<f64>::zeros(3), 0.0);
        let mut completed = Vec::new();
        let mut others = (Array2::<f64>::zeros((3, 3)), Array1::<f64>::zeros(3));
        let mut counted = (Array1::<f64>::zeros(3), Array1::<f64>::zeros(3));
        for (n, row) in x.outer_iter().enumerate() {
            let of_numbers = NUMBERS.map(|j| row[j]);
            let naive = [0, 1, 2].map(|c| naive_numbers(numbers, &of_numbers, c));
            let joint = |c: usize| {
                let pi = Mixture::proportions(&model)[c];
                pi.ln() + naive[c].0 + naive_others(&table, row, c)
            };
            let joints = [joint(0), joint(1), joint(2)];
            let all = log_sum(&joints);
            let within = 1e-8 * (1.0 + all.abs());
            assert!(
                (found[n] - all).abs() < within,
                "{kind:?}: {} {all}",
                found[n]
            );
            total += w[n];
            let shares = joints.map(|joint| w[n] * (joint - all).exp());
            for c in 0..3 {
                mass[c] += shares[c];
                if !row[1].is_nan() {
                    others.0[[c, row[1] as usize]] += shares[c];
                    counted.0[c] += shares[c];
                }
                if !row[3].is_nan() {
                    others.1[c] += shares[c] * row[3];
                    counted.1[c] += shares[c];
                }
            }
            completed.push((shares, naive, of_numbers));
        }
        let (after, table) = parts(&next);
        for c in 0..3 {
            let pi = Mixture::proportions(&next)[c];
            assert!(close(pi, mass[c] / total, 1e-9), "{kind:?}: {pi}");
            for l in 0..3 {
                let expected = others.0[[c, l]] / counted.0[c];
                let found = table.probabilities(0).unwrap()[[c, l]];
                assert!(close(found, expected, 1e-8), "{kind:?}: {found} {expected}");
            }
            let expected = others.1[c] / counted.1[c];
            let found = Mixture::variances(&table)[[c, 1]];
            assert!(close(found, expected, 1e-8), "{kind:?}: {found} {expected}");
        }
        if matches!(kind, Covariance::Factors(_)) {
            continue;
        }
        let mut covariances = vec![DMatrix::<f64>::zeros(3, 3); 3];
        for c in 0..3 {
            let pairs = matches!(kind, Covariance::Full | Covariance::Tied);
            // By expectation of what is missing, or over the known ones of each column.
            let mut sums = (DVector::<f64>::zeros(3), DVector::<f64>::zeros(3));
            for (shares, naive, row) in &completed {
                for (j, x) in row.iter().enumerate() {
                    if pairs || !x.is_nan() {
                        sums.0[j] += shares[c] * naive[c].1[j];
                        sums.1[j] += shares[c];
                    }
                }
            }
            let mean = sums.0.component_div(&sums.1);
            for j in 0..3 {
                let found = after.means()[[c, j]];
                assert!(close(found, mean[j], 1e-9), "{kind:?} {c} {j}: {found}");
            }
            for (shares, naive, row) in &completed {
                let apart = &naive[c].1 - &mean;
                let outer = &apart * apart.transpose() + &naive[c].2;
                for (i, j) in (0..9).map(|p| (p / 3, p % 3)) {
                    if pairs || i == j && !row[i].is_nan() {
                        covariances[c][(i, j)] += shares[c] * outer[(i, j)];
                    }
                }
            }
            if !pairs {
                for j in 0..3 {
                    covariances[c][(j, j)] /= match kind {
                        Covariance::Diagonal => sums.1[j],
                        _ => sums.1.sum(),
                    };
                }
            }
        }
        for c in 0..3 {
            let expected = match kind {
                Covariance::Spherical => DMatrix::identity(3, 3) * covariances[c].trace(),
                Covariance::Diagonal => covariances[c].clone(),
                Covariance::Tied => covariances.iter().sum::<DMatrix<f64>>() / total,
                _ => &covariances[c] / mass[c],
            };
            let found = after.covariance(c).unwrap();
            for ((i, j), v) in found.indexed_iter() {
                let size = (expected[(i, i)] * expected[(j, j)]).sqrt();
                let off = (v - expected[(i, j)]).abs() / size;
                assert!(off < 1e-7, "{kind:?} {c} {i} {j}: {v} {}", expected[(i, j)]);
            }
        }
    }
}

/// Alone, a part is its family: the optimum has the same density. Blocks that are independent anyway are one.
#[test]
fn one_block_is_the_family() {
    let x = blobs::<f64>(600, 3, 3, 4) * &array![1.0, 30.0, 0.2];
    let data = Dense::new(&x).unwrap();
    let start = x.select(Axis(0), &[0, 1, 2]);
    fn settled<M: coremix::m_step::MStep<f64>>(
        builder: Builder<f64, M>,
        start: &Array2<f64>,
        data: &Dense<'_, f64>,
    ) -> f64 {
        let builder = builder.seeder(Given::new(start.view())).tolerance(1e-13);
        let fit = builder.max_iterations(4_000).build().unwrap().fit(data);
        fit.unwrap().model.log_likelihood(data).unwrap()
    }
    for kind in KINDS {
        let gaussian = algorithms::gmm(3).m_step(Gaussian::new(kind));
        let alone = settled(gaussian, &start, &data);
        let product = |family: Product| settled(algorithms::gmm(3).m_step(family), &start, &data);
        let one = product(Product::new(Gaussian::new(kind)));
        assert!(close(alone, one, 1e-8), "{kind:?}: {alone} {one}");
        let turned = product(Product::new(Table::default()).block([2, 0, 1], Gaussian::new(kind)));
        assert!(close(alone, turned, 1e-8), "{kind:?}: {alone} {turned}");
        if kind == Covariance::Diagonal {
            let two = product(Product::new(Gaussian::new(kind)).block([1], Gaussian::new(kind)));
            assert!(close(alone, two, 1e-8), "{alone} {two}");
        }
    }
}

/// Tables side by side are the table of all columns, step by step.
#[test]
fn blocks_of_a_table_are_the_table() {
    let (x, _) = rows(300, 6, 50.0);
    let w = weights(300);
    for x in [x.clone(), holes(&x)] {
        let data = Dense::weighted_with_missing(&x, &w).unwrap();
        let others = Table::new(vec![Column::Count, Column::Category(0)]);
        let product = Product::new(Table::default()).block([3, 1], others);
        for steps in [0, 1, 6] {
            macro_rules! fit {
                ($family:expr) => {{
                    let builder = algorithms::gmm(3).m_step($family).seed(2);
                    let builder = builder.tolerance(0.0).max_iterations(steps);
                    builder.build().unwrap().fit(&data).unwrap()
                }};
            }
            let (one, two) = (fit!(Table::new(kinds())), fit!(product.clone()));
            assert!(close(last(&one), last(&two), 1e-10), "{steps}");
            let (a, b) = (
                Mixture::variances(&one.model),
                Mixture::variances(&two.model),
            );
            assert!(a.iter().zip(&b).all(|(a, b)| close(*a, *b, 1e-9)));
            assert_eq!(one.model.free_parameters(), two.model.free_parameters());
            let (a, b) = (one.model.explain(), two.model.explain());
            assert!(a.iter().zip(&b).all(|(a, b)| close(*a, *b, 1e-7)));
        }
    }
}

fn laws<F: Float>() {
    let (x, truth) = rows(600, 5, 0.0);
    let (x, w) = (x.mapv(F::from_f64), weights(600));
    let data = Dense::weighted(&x, &w).unwrap();
    for kind in KINDS {
        testing::family(&product(kind), &data, 3).unwrap();
    }
    let several = Product::new(Gaussian::new(Covariance::Full).prior(Prior::weak().ridge(0.01)))
        .block([2], Gaussian::new(Covariance::Spherical))
        .block([3], Table::new(vec![Column::Count]))
        .block([1], Table::new(vec![Column::Category(0)]));
    testing::family(&several, &data, 3).unwrap();
    let family = product(Covariance::Full);
    classes_are_found(&family, &data, w.sum(), truth.view());
}

#[test]
fn all_searches_take_products() {
    laws::<f32>();
    laws::<f64>();
}

/// In f32, a million deviations away, the fit is that of the same numbers in f64.
#[test]
fn numbers_far_from_zero_keep_their_digits() {
    let (x, truth) = rows(600, 9, 1e6);
    let narrow = x.mapv(|x| x as f32);
    let wide = narrow.mapv(f64::from);
    for kind in KINDS {
        fn fit<F: Float>(x: &Array2<F>, kind: Covariance) -> (f64, Array1<u32>, Array2<f64>) {
            let data = Dense::new(x).unwrap();
            let start = x.select(Axis(0), &[0, 1, 2]);
            let builder = algorithms::gmm(3).m_step(product(kind));
            let builder = builder.seeder(Given::new(start.view())).max_iterations(60);
            let model = builder.build().unwrap().fit(&data).unwrap().model;
            let density = model.log_likelihood(&data).unwrap();
            let labels = model.predict(&data).unwrap();
            (density, labels, Mixture::variances(&model))
        }
        let (a, b) = (fit(&narrow, kind), fit(&wide, kind));
        assert!(close(a.0, b.0, 1e-3), "{kind:?}: {} {}", a.0, b.0);
        let index = metrics::adjusted_rand_index(a.1.view(), b.1.view()).unwrap();
        assert!(index > 0.98, "{kind:?}: {index}");
        let index = metrics::adjusted_rand_index(a.1.view(), truth.view()).unwrap();
        // One variance is not that of such columns.
        assert!(kind == KINDS[0] || index > 0.85, "{kind:?}: {index}");
        for (a, b) in a.2.iter().zip(&b.2) {
            assert!((a / b - 1.0).abs() < 0.05, "{kind:?}: {a} {b}");
        }
    }
}

/// p(a | b) = p(a, b) / p(b), whichever the columns.
#[test]
fn parts_have_the_density_of_their_columns() {
    let (x, _) = rows(500, 7, 10.0);
    let data = Dense::new(&x).unwrap();
    macro_rules! check {
        ($name:expr, $family:expr) => {
            let fit = algorithms::gmm(3).m_step($family).seed(2).restarts(3);
            let model = fit.build().unwrap().fit(&data).unwrap().model;
            let (points, _) = model.sample(4, 4).unwrap();
            let densities = |model: &dyn Mixture<f64>, columns: &[usize]| {
                let own = points.select(Axis(1), columns);
                model.log_densities(&Dense::new(&own).unwrap()).unwrap()
            };
            let all: Vec<usize> = (0..5).collect();
            for known in [
                vec![0],
                vec![3],
                vec![1, 4],
                vec![3, 2, 0],
                vec![4, 0, 2],
                vec![1, 2, 3, 4],
            ] {
                let others: Vec<usize> = (0..5).filter(|j| !known.contains(j)).collect();
                let marginal = model.marginal(&known).unwrap();
                let (both, alone) = (densities(&model, &all), densities(&marginal, &known));
                for n in 0..4 {
                    let values: Vec<f64> = known.iter().map(|j| points[[n, *j]]).collect();
                    let condition = model.condition(&known, &values).unwrap();
                    let own = densities(&condition, &others)[n];
                    let within = 1e-7 * (1.0 + own.abs());
                    assert!(
                        (own - (both[n] - alone[n])).abs() < within,
                        "{} {known:?}",
                        $name
                    );
                    let shares = Mixture::proportions(&condition);
                    assert!(close(shares.sum(), 1.0, 1e-12));
                }
                let bytes = marginal.to_bytes(&[]).unwrap();
                assert!(BoxedMixture::<f64>::from_bytes(&bytes).is_ok());
            }
            let order = [2, 4, 0, 3, 1];
            let turned = model.marginal(&order).unwrap();
            let found = densities(&turned, &order);
            let off = (&found - &densities(&model, &all)).mapv(f64::abs);
            assert!(off.iter().all(|off| *off < 1e-8), "{}: {off}", $name);
            assert_eq!(
                turned.free_parameters(),
                model.free_parameters(),
                "{}",
                $name
            );
            for columns in [&[][..], &[5], &[1, 1]] {
                assert!(model.marginal(columns).is_err());
            }
            assert!(model.condition(&all, &[0.0; 5]).is_err());
            assert!(model.condition(&[0], &[]).is_err());
            assert!(model.condition(&[0], &[f64::NAN]).is_err());
        };
    }
    check!("table", Table::new(kinds()));
    for kind in KINDS {
        check!(format!("{kind:?}"), product(kind));
    }
}

/// Rows that are drawn have the density they are drawn from, and columns that tell components apart are explained.
#[test]
fn rows_are_drawn_and_explained() {
    let (x, _) = rows(1_500, 8, -20.0);
    let data = Dense::new(&x).unwrap();
    let fit = algorithms::gmm(3).m_step(product(Covariance::Full));
    let fit = fit.seed(1).restarts(8).build().unwrap().fit(&data).unwrap();
    let (model, n) = (fit.model, 60_000);
    let (drawn, from) = model.sample(n, 3).unwrap();
    assert_eq!(model.sample(9, 5).unwrap(), model.sample(9, 5).unwrap());
    let (numbers, table) = parts(&model);
    let shares = Mixture::proportions(&model);
    let (means, variances) = (Mixture::means(&model), Mixture::variances(&model));
    let explained = model.explain();
    let normal = |x: f64, m: f64, v: f64| -0.5 * ((TAU * v).ln() + (x - m).powi(2) / v);
    for c in 0..3 {
        let own: Vec<usize> = (0..n).filter(|i| from[*i] == c as u32).collect();
        let count = own.len() as f64;
        assert!((count / n as f64 - shares[c]).abs() < 0.01);
        let own = drawn.select(Axis(0), &own);
        let body = own.select(Axis(1), &NUMBERS);
        let apart = &body - &body.mean_axis(Axis(0)).unwrap();
        let sample = apart.t().dot(&apart) / count;
        let covariance = numbers.covariance(c).unwrap();
        for ((i, j), v) in sample.indexed_iter() {
            let size = (covariance[[i, i]] * covariance[[j, j]]).sqrt();
            assert!((v - covariance[[i, j]]).abs() < 0.05 * size);
        }
        let shares_of = table.probabilities(0).unwrap();
        for l in 0..3 {
            let found = own.column(1).iter().filter(|x| **x == l as f64).count();
            assert!((found as f64 / count - shares_of[[c, l]]).abs() < 0.015);
        }
        let rate = own.column(3).mean().unwrap();
        assert!((rate / variances[[c, 3]] - 1.0).abs() < 0.03);
        for j in 0..5 {
            let (spread, centres) = (variances.column(j), means.column(j));
            let mean = centres.dot(&shares);
            let whole = (&spread + &centres.mapv(|m| (m - mean).powi(2))).dot(&shares);
            let of_all = spread.dot(&shares);
            let ratio = |x: f64| match j {
                1 => (shares_of[[c, x as usize]] / shares_of.column(x as usize).dot(&shares)).ln(),
                3 => x * (spread[c] / of_all).ln() - spread[c] + of_all,
                _ => normal(x, centres[c], spread[c]) - normal(x, mean, whole),
            };
            let logs = own.column(j).mapv(ratio);
            let found = logs.mean().unwrap();
            let within = 5.0 * logs.std(0.0) / count.sqrt() + 1e-9;
            assert!(
                (found - explained[[c, j]]).abs() < within,
                "{c} {j}: {found}"
            );
        }
    }
}

/// Missing values of a block follow from the known ones, and components from all blocks.
#[test]
fn missing_numbers_are_filled_in_from_the_others() {
    let (x, _) = rows(400, 3, 30.0);
    let holes = holes(&x);
    let data = Dense::with_missing(&holes).unwrap();
    let fit = algorithms::gmm(3).m_step(product(Covariance::Full)).seed(1);
    let model = fit.restarts(4).build().unwrap().fit(&data).unwrap().model;
    let filled = model.expected(&data).unwrap();
    let as_data = model.impute(&data).unwrap();
    let shares = model.responsibilities(&data).unwrap();
    let (numbers, table) = parts(&model);
    let of_categories = shares.dot(&table.probabilities(0).unwrap());
    let means = Mixture::means(&model);
    for (n, row) in holes.outer_iter().enumerate() {
        let own = NUMBERS.map(|j| row[j]);
        for j in 0..5 {
            let expected = match NUMBERS.iter().position(|own| *own == j) {
                _ if !row[j].is_nan() => row[j],
                Some(place) => (0..3)
                    .map(|c| shares[[n, c]] * naive_numbers(numbers, &own, c).1[place])
                    .sum(),
                None if j == 1 => {
                    let likeliest = |a: usize, b: usize| {
                        if of_categories[[n, b]] > of_categories[[n, a]] {
                            b
                        } else {
                            a
                        }
                    };
                    (0..3).reduce(likeliest).unwrap() as f64
                }
                None => shares.row(n).dot(&means.column(j)),
            };
            assert!(close(filled[[n, j]], expected, 1e-8), "{n} {j}");
            let whole = if j == 3 {
                filled[[n, j]].round()
            } else {
                filled[[n, j]]
            };
            assert_eq!(as_data[[n, j]], whole, "{n} {j}");
        }
    }
    // Rows that know nothing of a block, or nothing at all.
    let mut x = holes.clone();
    x.row_mut(0).fill(f64::NAN);
    NUMBERS.iter().for_each(|j| x[[1, *j]] = f64::NAN);
    let data = Dense::with_missing(&x).unwrap();
    for kind in KINDS {
        let fit = algorithms::gmm(3).m_step(product(kind)).seed(1).build();
        match fit.unwrap().fit(&data) {
            Ok(fit) => {
                rises_in_phases(format!("{kind:?}"), &fit.report, 400.0, rounding::<f64>());
                let densities = fit.model.log_densities(&data).unwrap();
                assert!(densities[0].abs() < 1e-9 && densities[1] < 0.0, "{kind:?}");
            }
            Err(error) => assert!(matches!(kind, Covariance::Factors(_)), "{error}"),
        }
    }
}

/// Blocks and rows that are none are told by name; few rows, constant columns and far rows have finite densities.
#[test]
fn hostile_blocks_and_rows_are_fitted_or_told() {
    let (x, _) = rows(60, 1, 0.0);
    let said = |x: &Array2<f64>, family: Product| {
        let fit = algorithms::gmm(2).m_step(family).build();
        let fit = fit.and_then(|fit| fit.fit(&Dense::new(x)?));
        fit.map(|_| ()).unwrap_err().to_string()
    };
    let full = || Gaussian::new(Covariance::Full);
    let twice = Product::new(full())
        .block([1], Table::default())
        .block([0, 1], full());
    assert!(said(&x, twice).contains("column = 1"));
    assert!(said(&x, Product::new(full()).block([5], Table::default())).contains("column = 5"));
    let one = Gaussian::new(Covariance::TiedSpherical);
    assert!(said(&x, Product::new(one)).contains("Spherical"));
    let factors = Gaussian::new(Covariance::Factors(2));
    assert!(said(&x, Product::new(Table::default()).block([0, 2], factors)).contains("factors"));
    let counts = Table::new(vec![Column::Count; 2]);
    let found = said(&x, Product::new(full()).block([3, 4], counts.clone()));
    assert!(found.contains("column 4"), "{found}");
    assert!(said(&x, Product::new(full()).block([3], counts)).contains("kinds"));
    let sketch = Sketch::new(x.view(), 3, 1).unwrap();
    let fit = algorithms::gmm(2).m_step(product(Covariance::Full));
    let told = fit.clone().build().unwrap().fit(&sketch).map(|_| ());
    assert!(told.unwrap_err().to_string().contains("of a sketch"));
    assert!(fit.standardise(true).build().is_err());

    // Constant columns, equal rows, and one far row.
    let x = array![
        [5.0, 0.0, 1.0, 0.0, 1.0],
        [5.0, 0.0, 2.0, 0.0, 2.0],
        [5.0, 2.0, 1.0, 0.0, 1.0],
        [5.0, 2.0, 1.0, 7.0, 1e9],
        [5.0, 0.0, 1.0, 0.0, 1.0]
    ];
    for (seed, kind) in (0..3).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let data = Dense::new(&x).unwrap();
        let fit = algorithms::gmm(4).m_step(product(kind)).seed(seed).build();
        let fit = fit.unwrap().fit(&data).unwrap();
        rises_in_phases(format!("{kind:?}"), &fit.report, 5.0, rounding::<f64>());
        let unseen = array![[1e12, 9.0, -1e12, 1e3, 0.0], [4.0, 1.0, 0.0, 0.0, 0.0]];
        for x in [&x, &unseen] {
            let found = fit.model.log_densities(&Dense::new(x).unwrap()).unwrap();
            assert!(found.iter().all(|x| x.is_finite()), "{kind:?}: {found}");
        }
    }
    // Sparse rows: a value that is not there is 0.
    let mut rng = Rng::from_seed(4);
    let mut dense = Array2::from_shape_fn((80, 3), |(n, j)| match j {
        2 => poisson(&mut rng, 1.0 + 6.0 * (n % 2) as f64),
        _ => rng.normal() * f64::from(rng.uniform() < 0.6) + (n % 2) as f64 * 3.0,
    });
    dense
        .column_mut(1)
        .iter_mut()
        .step_by(2)
        .for_each(|x| *x = 0.0);
    let (mut starts, mut ids, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense.outer_iter() {
        for (j, x) in row.indexed_iter().filter(|(_, x)| **x != 0.0) {
            ids.push(j as u32);
            values.push(*x);
        }
        starts.push(ids.len());
    }
    let sparse = Sparse::new(3, starts, ids, values).unwrap();
    let family = Product::new(full()).block([2], Table::new(vec![Column::Count]));
    let fit = algorithms::gmm(2).m_step(family).seed(2).max_iterations(5);
    let fit = fit.build().unwrap();
    let (one, other) = (
        fit.fit(&sparse).unwrap(),
        fit.fit(&Dense::new(&dense).unwrap()),
    );
    assert!(close(last(&one), last(&other.unwrap()), 1e-8));
}

/// Files that hold no product are refused.
#[test]
fn files_are_checked() {
    let (x, _) = rows(60, 1, 0.0);
    let fit = algorithms::gmm(2).m_step(product(Covariance::Full)).build();
    let model = fit.unwrap().fit(&Dense::new(&x).unwrap()).unwrap().model;
    let json = serde_json::to_string(&model).unwrap();
    let read = |json: &str| serde_json::from_str::<ProductMixture<f64>>(json);
    assert!(read(&json).is_ok());
    for (from, to) in [
        ("\"columns\":[0,2,4]", "\"columns\":[0,2,2]"),
        ("\"columns\":[0,2,4]", "\"columns\":[0,2]"),
        ("\"columns\":[0,2,4]", "\"columns\":[0,2,3]"),
        ("\"columns\":[0,2,4]", "\"columns\":[0,2,5]"),
        ("\"columns\":[0,2,4]", "\"columns\":[0,2,4,5]"),
        ("\"alone\":[null,", "\"alone\":[null,null,"),
        ("\"kind\":\"Count\"", "\"kind\":\"Number\""),
        ("\"codes\":[0.0,", "\"codes\":[0.5,"),
        ("\"codes\":[0.0,", "\"codes\":["),
        ("\"parameters\":[", "\"parameters\":[-"),
        ("\"parameters\":[", "\"parameters\":[0.5,"),
        ("\"mixing\":\"Equal\"", "\"mixing\":\"Unknown\""),
        ("\"exponent\":0", "\"exponent\":1"),
        ("\"blocks\":[", "\"blocks\":[],\"other\":["),
        ("\"model\":{", "\"model\":{\"Product\":{},"),
    ] {
        let changed = json.replacen(from, to, 1);
        assert!(changed != json, "{from}");
        assert!(read(&changed).is_err(), "{to}");
    }
    let whole = algorithms::gmm(3).build().unwrap();
    let other = whole.fit(&Dense::new(&x).unwrap()).unwrap().model;
    let bytes = other.to_bytes(&[]).unwrap();
    assert!(ProductMixture::<f64>::from_bytes(&bytes).is_err());
    let info = model.info().unwrap();
    assert_eq!(
        (&*info.family, info.components, info.columns),
        ("Product", 2, 5)
    );
}

/// By name, `covariance` and `prior` are those of the numbers of a table.
#[test]
fn a_table_by_name_has_covariances() {
    let (x, _) = rows(200, 2, 0.0);
    let data = Dense::new(&x).unwrap();
    let table = || "table".parse::<Algorithm>().unwrap().clusters(3).seed(4);
    let fit = |algorithm: Algorithm| algorithm.boxed::<f64>().unwrap().fit(&data).unwrap().model;
    let own = algorithms::gmm(3)
        .m_step(product(Covariance::Full))
        .restarts(8)
        .seed(4);
    let own = own.build().unwrap().fit(&data).unwrap().model;
    let by_name = fit(table().columns(kinds()).covariance(Covariance::Full));
    assert_eq!(by_name.means(), Mixture::means(&own));
    let any: &dyn std::any::Any = &*by_name;
    assert!(any.downcast_ref::<ProductMixture<f64>>().unwrap() == &own);
    assert_eq!(by_name.prior_terms() != 0.0, own.prior_terms() != 0.0);
    // Rows in advance alone are for all columns, whose numbers are independent.
    let in_advance = fit(table().columns(kinds()).prior(Prior::new(5.0)));
    let any: &dyn std::any::Any = &*in_advance;
    let alone = any.downcast_ref::<ProductMixture<f64>>().unwrap();
    assert!(alone.gaussians().next().is_none());
    let with = fit(table()
        .columns(kinds())
        .prior(Prior::new(5.0).variance(2.0)));
    let any: &dyn std::any::Any = &*with;
    let numbers = parts(any.downcast_ref::<ProductMixture<f64>>().unwrap()).0;
    assert_eq!(numbers.covariance_kind(), Covariance::Diagonal);
    // Without kinds all columns are numbers.
    let all = fit(table().covariance(Covariance::Tied));
    let any: &dyn std::any::Any = &*all;
    let all = any.downcast_ref::<ProductMixture<f64>>().unwrap();
    assert_eq!(all.gaussians().next().unwrap().0, [0, 1, 2, 3, 4]);
    // 3 means, a covariance of 6 numbers and the rest of each component, and 2 proportions.
    let tied = fit(table().columns(kinds()).covariance(Covariance::Tied));
    assert_eq!(tied.free_parameters(), Some(3 * 3 + 6 + 3 * (2 + 1) + 2));
    let part: Part = Table::default().into();
    assert_eq!(part, Part::Table(Table::default()));
    let memory = |covariance| {
        let algorithm = table().columns(kinds()).covariance(covariance);
        algorithm.peak_memory::<f64>(1_000, 5, None).unwrap()
    };
    assert!(memory(Covariance::Full) > memory(Covariance::Diagonal));
}
