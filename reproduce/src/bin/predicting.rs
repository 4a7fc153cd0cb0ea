//! Labels where there are many components: all of them searched, and by cells.
//!
//! `cargo run --release -p reproduce --bin predicting -- CLUSTERS` on generated data: means in groups, and rows around the
//! means. Microseconds per row, medians, on all threads.

use coremix::m_step::GaussianMixture;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, ArrayView2, s};
use reproduce::median;
use std::time::Instant;

type Answer<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How far rows are from their means, where the means of a group are 1 from its centre, and groups 1 or 3 from each other.
const KINDS: [(&str, f64, f64); 4] = [
    ("groups, near", 3.0, 0.3),
    ("groups, wide", 3.0, 1.0),
    ("one cloud, near", 0.0, 0.3),
    ("one cloud, wide", 0.0, 1.0),
];
const RUNS: usize = 3;

fn main() -> Answer<()> {
    let k: usize = std::env::args().nth(1).map_or(Ok(10_000), |k| k.parse())?;
    // With `few` rows no cells are made, with `many` they are.
    let few = (63.0 * (k as f64).sqrt()) as usize;
    let many = (65.0 * (k as f64).sqrt()) as usize + 1;
    println!("{k} components, {many} rows; microseconds per row\n");
    print!("{:>4}{:>18}{:>8}{:>9}", "d", "data", "all", "cells");
    println!("{:>9}{:>11}", "ratio", "cells / ms");
    for d in [16, 64] {
        for (name, apart, spread) in KINDS {
            compare((k, d), (few, many), name, (apart, spread))?;
        }
    }
    Ok(())
}

fn compare(
    (k, d): (usize, usize),
    (few, many): (usize, usize),
    name: &str,
    (apart, spread): (f64, f64),
) -> Answer<()> {
    let mut rng = Rng::from_seed(1);
    let groups = Array2::from_shape_fn(((k as f64).sqrt() as usize, d), |_| apart * rng.normal());
    let means = Array2::from_shape_fn((k, d), |(c, j)| {
        (groups[[c % groups.nrows(), j]] + rng.normal()) as f32
    });
    let x = Array2::from_shape_fn((many, d), |(i, j)| {
        means[[i * 7919 % k, j]] + (spread * rng.normal()) as f32
    });
    let model = GaussianMixture::tied_spherical(means.view(), spread * spread)?;
    let model: &dyn Mixture<f32> = &model;
    let (all, labels) = timed(x.slice(s![..few, ..]), |data| model.predict(data))?;
    let started = Instant::now();
    let found = model.predict(&Dense::new(x.view())?)?;
    let first = started.elapsed().as_secs_f64();
    assert_eq!(labels, found.slice(s![..few]));
    let (cells, _) = timed(x.view(), |data| model.predict(data))?;
    let making = (first - cells * 1e-6 * many as f64).max(0.0);
    print!(
        "{d:>4}{name:>18}{all:>8.2}{cells:>9.2}{:>8.2}x",
        all / cells
    );
    println!("{:>11.0}", 1e3 * making);
    Ok(())
}

/// Microseconds per row, and the labels.
fn timed(
    x: ArrayView2<'_, f32>,
    predict: impl Fn(&Dense<'_, f32>) -> Result<ndarray::Array1<u32>>,
) -> Answer<(f64, ndarray::Array1<u32>)> {
    let data = Dense::new(x)?;
    let mut times = Vec::new();
    let mut labels = None;
    for _ in 0..RUNS {
        let started = Instant::now();
        labels = Some(predict(&data)?);
        times.push(1e6 * started.elapsed().as_secs_f64() / x.nrows() as f64);
    }
    Ok((median(&times), labels.ok_or("no runs")?))
}
