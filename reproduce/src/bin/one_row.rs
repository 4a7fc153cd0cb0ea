//! The prediction of one row at a time: microseconds of a call, p50 and p99, over 100,000 calls.
//!
//! `cargo run --release -p reproduce --bin one_row -- [CLUSTERS] [COLUMNS]` on generated data, f32, on one thread: a predictor,
//! for labels and for log-densities, compared with the model's `predict` of a row.

use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, ArrayView2};
use std::time::Instant;

type Answer<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const CALLS: usize = 100_000;
/// Rows that are asked about in turn.
const ROWS: usize = 4_096;

fn main() -> Answer<()> {
    let [k, d] = reproduce::sizes([1_000, 128])?;
    let mut rng = Rng::from_seed(1);
    let means = Array2::from_shape_fn((k, d), |_| rng.normal() as f32);
    let x = Array2::from_shape_fn((ROWS.max(4 * k), d), |(i, j)| {
        means[[i * 7919 % k, j]] + 0.5 * rng.normal() as f32
    });
    let data = Dense::new(&x)?;
    println!("{k} components, {d} columns, f32; microseconds of a call, of {CALLS} calls\n");
    println!(
        "{:<16}{:<26}{:>8}{:>8}",
        "covariances", "call", "p50", "p99"
    );
    let kinds = [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
    ];
    for kind in kinds {
        let fit = algorithms::gmm::<f32>(k).covariance(kind).max_iterations(1);
        let model = fit.fit(&data)?.model;
        let mut one = model.predictor();
        let name = format!("{kind:?}");
        timed(&name, "predictor, label", CALLS, x.view(), |row| {
            Ok(f64::from(one.predict(row)?.0))
        })?;
        timed(
            &name,
            "predictor, log-density",
            CALLS / 10,
            x.view(),
            |row| Ok(one.log_density(row)?),
        )?;
        timed(&name, "model.predict", CALLS / 10, x.view(), |row| {
            let row = ArrayView2::from_shape((1, row.len()), row)?;
            Ok(f64::from(model.predict(&Dense::new(row)?)?[0]))
        })?;
    }
    Ok(())
}

fn timed(
    kind: &str,
    call: &str,
    calls: usize,
    x: ArrayView2<'_, f32>,
    mut ask: impl FnMut(&[f32]) -> Answer<f64>,
) -> Answer<()> {
    let (mut times, mut sum) = (Vec::with_capacity(calls), 0.0);
    for i in 0..calls + calls / 10 {
        let row = x.row(i * 31 % x.nrows());
        let row = row.to_slice().ok_or("a row lies together")?;
        let started = Instant::now();
        sum += ask(row)?;
        times.push(1e6 * started.elapsed().as_secs_f64());
    }
    std::hint::black_box(sum);
    // The first calls warm up.
    let mut times = times.split_off(calls / 10);
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
    println!("{kind:<16}{call:<26}{:>8.1}{:>8.1}", at(0.5), at(0.99));
    Ok(())
}
