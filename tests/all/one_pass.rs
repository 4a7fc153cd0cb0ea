//! Coresets of rows that come once.

use approx::assert_abs_diff_eq;
use coremix::Error;
use coremix::coreset::OnePass;
use coremix::stage::Rng;
use ndarray::{Array1, Array2, Axis, Slice};

fn points(n: usize, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut rng = Rng::from_seed(seed);
    let heavy = |rng: &mut Rng| rng.normal() * rng.normal().exp();
    let x = Array2::from_shape_fn((n, 3), |_| 5.0 + heavy(&mut rng));
    let w = Array1::from_shape_fn(n, |i| (i % 3) as f64 * 0.7);
    (x, w)
}

fn coreset(
    (x, w): (&Array2<f64>, &Array1<f64>),
    (size, seed, block): (usize, u64, usize),
) -> (Array2<f64>, Array1<f64>) {
    let mut coreset = OnePass::new(3, size, seed).unwrap();
    for from in (0..x.nrows()).step_by(block) {
        let part = Slice::from(from..(from + block).min(x.nrows()));
        let (x, w) = (x.slice_axis(Axis(0), part), w.slice_axis(Axis(0), part));
        coreset.push_weighted(x, w).unwrap();
    }
    assert_eq!(coreset.rows(), x.nrows());
    coreset.finish().unwrap()
}

#[test]
fn expected_weights_are_the_old_ones() {
    let (n, rounds) = (150, 6_000);
    let (x, w) = points(n, 3);
    // One column for each round: the weights of all rows.
    let mut drawn = Array2::zeros((n, rounds));
    for round in 0..rounds {
        let (rows, weights) = coreset((&x, &w), (16, round as u64, 37));
        assert!(rows.nrows() <= 16);
        for (row, weight) in rows.outer_iter().zip(&weights) {
            let n = x.outer_iter().position(|own| own == row).unwrap();
            drawn[[n, round]] += weight;
        }
    }
    for (drawn, w) in drawn.outer_iter().zip(&w) {
        let mean = drawn.mean().unwrap();
        let error = 5.0 * drawn.std(0.0) / (rounds as f64).sqrt();
        assert!((mean - w).abs() <= error, "{mean} for {w}");
    }
    let total = drawn.sum() / rounds as f64;
    assert_abs_diff_eq!(total, w.sum(), epsilon = 0.01 * w.sum());
}

#[test]
fn blocks_do_not_matter_and_seeds_do() {
    let (x, w) = points(5_000, 4);
    let one = coreset((&x, &w), (100, 7, 5_000));
    for block in [1, 13, 200, 4_999] {
        assert_eq!(coreset((&x, &w), (100, 7, block)), one);
    }
    assert_ne!(coreset((&x, &w), (100, 8, 5_000)), one);
}

#[test]
fn few_rows_stay_as_they_are() {
    let (x, w) = points(30, 5);
    let w = w + 1.0;
    let (rows, weights) = coreset((&x, &w), (30, 0, 7));
    assert_eq!((rows, weights), (x, w));
}

#[test]
fn rows_that_cannot_be_used_are_named() {
    let mut coreset = OnePass::<f32>::new(2, 4, 0).unwrap();
    let empty = Err(Error::Empty { what: "stream" });
    assert_eq!(coreset.clone().finish(), empty);
    coreset.push(Array2::zeros((5, 2)).view()).unwrap();
    coreset.push(Array2::zeros((0, 2)).view()).unwrap();
    let mut bad = Array2::zeros((3, 2));
    bad[[1, 1]] = f32::NAN;
    let found = coreset.push(bad.view()).unwrap_err();
    let text = "data: row 6, column 1 is NaN or infinite";
    assert!(found.to_string().starts_with(text), "{found}");
    assert!(coreset.push(Array2::zeros((3, 1)).view()).is_err());
    let zeros = Array2::zeros((2, 2));
    let weights = Array1::from_vec(vec![1.0, -1.0]);
    let found = coreset.push_weighted(zeros.view(), weights.view());
    let (row, value) = (6, -1.0);
    assert_eq!(found, Err(Error::Weight { row, value }));
    assert_eq!(coreset.rows(), 5);
    let (zeros, weights) = (Array2::zeros((40, 2)), Array1::from_elem(40, 1e300));
    let found = coreset.push_weighted(zeros.view(), weights.view());
    assert!(matches!(found, Err(Error::TotalWeight { .. })));
    assert!(matches!(coreset.finish(), Err(Error::TotalWeight { .. })));
    assert!(OnePass::<f32>::new(0, 4, 0).is_err() && OnePass::<f32>::new(2, 0, 0).is_err());
}

/// Rows with missing values, the bits of which are in the coreset, and whose expected weights are the old ones.
#[test]
fn missing_values_stay_missing() {
    let (mut x, w) = points(90, 6);
    for ((i, j), x) in x.indexed_iter_mut() {
        if (3 * i + 5 * j) % 4 == 0 {
            *x = f64::NAN;
        }
    }
    let take = |seed: u64, block: usize| {
        let mut coreset = OnePass::new(3, 12, seed).unwrap().may_miss(true);
        for from in (0..90).step_by(block) {
            let part = Slice::from(from..(from + block).min(90));
            let (x, w) = (x.slice_axis(Axis(0), part), w.slice_axis(Axis(0), part));
            coreset.push_weighted(x, w).unwrap();
        }
        coreset.finish().unwrap()
    };
    let bits = |row: ndarray::ArrayView1<'_, f64>| row.mapv(f64::to_bits);
    let (one, other) = (take(3, 90), take(3, 7));
    assert_eq!(one.0.mapv(f64::to_bits), other.0.mapv(f64::to_bits));
    assert_eq!(one.1, other.1);
    let rounds = 4_000;
    let mut drawn = Array2::zeros((90, rounds));
    for round in 0..rounds {
        let (rows, weights) = take(round as u64, 37);
        for (row, weight) in rows.outer_iter().zip(&weights) {
            let n = x.outer_iter().position(|own| bits(own) == bits(row));
            drawn[[n.unwrap(), round]] += weight;
        }
    }
    for (drawn, w) in drawn.outer_iter().zip(&w) {
        let mean = drawn.mean().unwrap();
        let error = 5.0 * drawn.std(0.0) / (rounds as f64).sqrt();
        assert!((mean - w).abs() <= error, "{mean} for {w}");
    }
    // A column that no row of a list knows, and rows that know nothing.
    let nothing = Array2::from_elem((60, 3), f64::NAN);
    let mut coreset = OnePass::new(3, 5, 1).unwrap().may_miss(true);
    coreset.push(nothing.view()).unwrap();
    let (rows, weights) = coreset.clone().finish().unwrap();
    assert!(rows.iter().all(|x| x.is_nan()));
    assert_abs_diff_eq!(weights.sum(), 60.0, epsilon = 1e-9);
    let mut bad = Array2::from_elem((3, 3), f64::NAN);
    bad[[2, 1]] = f64::INFINITY;
    let found = coreset.push(bad.view()).unwrap_err();
    let text = "data: row 62, column 1 is NaN or infinite";
    assert!(found.to_string().starts_with(text), "{found}");
    let mut coreset = coreset.may_miss(false);
    assert!(coreset.push(nothing.view()).is_err());
}
