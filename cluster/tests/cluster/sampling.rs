//! Which rows are in a coreset, and with which weight.

use crate::common::*;
use coremix::ndarray::{Array2, Axis};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_and_weights_are_those_of_the_lightweight_coreset() {
    let points = points(80);
    let (n, size, seeds) = (2_000.0, 600, 40);
    let table = in_memory(batch(&points, 0, Layout::Wide));
    let x = points.mapv(f64::from);
    let mean = x.mean_axis(Axis(0)).unwrap();
    let squared: Vec<f64> = x
        .outer_iter()
        .map(|row| (&row - &mean).mapv(|y| y * y).sum())
        .collect();
    let spread: f64 = squared.iter().sum();
    let probability: Vec<f64> = squared
        .iter()
        .map(|s| (size as f64 * (0.5 / n + 0.5 * s / spread)).min(1.0))
        .collect();
    // Mean and variance of the size and of the sum of weights, over independent draws of the rows.
    let expected: f64 = probability.iter().sum();
    let deviation = probability
        .iter()
        .map(|p| p * (1.0 - p))
        .sum::<f64>()
        .sqrt();
    let weight_deviation = probability
        .iter()
        .map(|p| (1.0 - p) / p)
        .sum::<f64>()
        .sqrt();
    let (mut total_size, mut total_weight) = (0.0, 0.0);
    for seed in 0..seeds {
        let coreset = job("fast")
            .key("id")
            .seed(seed)
            .sample(&table)
            .await
            .unwrap();
        let found = coreset.weights.len() as f64;
        assert!(
            (found - expected).abs() < 5.0 * deviation,
            "{found} {expected}"
        );
        for (row, weight) in coreset.points.outer_iter().zip(&coreset.weights) {
            let at = x
                .outer_iter()
                .position(|y| y == row)
                .expect("a row of the table");
            assert!((weight * probability[at] - 1.0).abs() < 1e-9);
        }
        total_size += found / seeds as f64;
        total_weight += coreset.weights.sum() / seeds as f64;
    }
    let few = 4.0 / (seeds as f64).sqrt();
    assert!(
        (total_size - expected).abs() < few * deviation,
        "{total_size} {expected}"
    );
    assert!(
        (total_weight - n).abs() < few * weight_deviation,
        "{total_weight} {n}"
    );
}

/// Every row is there once if there are no more than asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_table_is_its_own_coreset() {
    let points = points(20);
    let table = in_memory(batch(&points, 0, Layout::Wide));
    let coreset = job("fast").coreset(500).sample(&table).await.unwrap();
    assert_eq!(coreset.weights.sum(), 500.0);
    assert_eq!(coreset.points.nrows(), coreset.weights.len());
}

/// 400 rows with 25 copies each. Without a key there are about half as many different rows as asked for, or more, and
/// the weights still stand for all rows. With a key copies are drawn one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_are_neither_lost_nor_all_there_is() {
    let distinct = points(16);
    let copies = Array2::from_shape_fn((10_000, 4), |(i, j)| distinct[[i % 400, j]]);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &copies, 3, Layout::Wide).await;
    let job = job("fast").coreset(200);
    let (mut weights, seeds) = (0.0, 30);
    for seed in 0..seeds {
        let table = open(folder.path(), 2, 300).await;
        let coreset = job.clone().seed(seed).sample(&table).await.unwrap();
        assert!(
            (100..=260).contains(&coreset.weights.len()),
            "{}",
            coreset.weights.len()
        );
        weights += coreset.weights.sum() / f64::from(seeds as u32);
        if seed < 3 {
            let other = job
                .clone()
                .seed(seed)
                .sample(&open(folder.path(), 7, 77).await)
                .await
                .unwrap();
            assert!(other == coreset, "seed {seed}");
        }
    }
    assert!((weights - 10_000.0).abs() < 600.0, "{weights}");
    let keyed = job
        .key("id")
        .sample(&open(folder.path(), 2, 300).await)
        .await
        .unwrap();
    assert!(
        (130..=270).contains(&keyed.weights.len()),
        "{}",
        keyed.weights.len()
    );
}

/// The order and the cut of the rows are no part of a draw.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draw_depends_on_the_rows_alone() {
    let points = points(40);
    let mut reversed = points.clone();
    reversed.invert_axis(Axis(0));
    let reversed = reversed.as_standard_layout().to_owned();
    let job = job("fast");
    let one = job
        .sample(&in_memory(batch(&points, 0, Layout::Wide)))
        .await
        .unwrap();
    let other = job
        .sample(&in_memory(batch(&reversed, 0, Layout::Wide)))
        .await
        .unwrap();
    assert!(one == other, "another order, another coreset");
}
