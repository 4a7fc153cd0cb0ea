//! Restarts at the same time and one after the other: `cargo run --release -p reproduce --bin restarts -- [RESTARTS]`.
//!
//! An observer makes a fit run its restarts one after the other. Without one they run at the same time if rows are few. The
//! program checks that both give the same model, and prints the medians of five fits each, in turn.

use coremix::Estimator;
use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::Array2;
use std::ops::ControlFlow;
use std::time::Instant;

type Table = f32;

fn main() -> Result<()> {
    let restarts = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let restarts: usize = restarts.unwrap_or(8);
    println!("{restarts} restarts, 16 columns, 20 clusters");
    println!("algorithm     rows  in turn ms  at once ms  ratio");
    for rows in [500, 2_000, 8_000, 32_000, 128_000] {
        let mut rng = Rng::from_seed(1);
        let x = Array2::from_shape_fn((rows, 16), |(n, j)| {
            (n % 20 * (j % 5)) as f32 * 0.5 + rng.normal() as f32
        });
        let data = Dense::new(x.view())?;
        for name in ["k-means", "gmm", "fast"] {
            let algorithm: Algorithm = name.parse()?;
            let algorithm = algorithm.clusters(20).restarts(restarts);
            compare(name, &*algorithm.max_iterations(10).boxed()?, &data)?;
        }
    }
    Ok(())
}

fn compare(name: &str, estimator: &dyn Estimator<Table>, data: &Dense<'_, f32>) -> Result<()> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        let started = Instant::now();
        let one = estimator.fit_observed(data, &mut |_| ControlFlow::Continue(()))?;
        times[0].push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let other = estimator.fit(data)?;
        times[1].push(started.elapsed().as_secs_f64());
        assert_eq!(one.model.means(), other.model.means());
    }
    let [turn, at_once] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        1e3 * times[2]
    });
    let (rows, ratio) = (data.len(), turn / at_once);
    println!("{name:<8} {rows:>9} {turn:>11.1} {at_once:>11.1} {ratio:>6.2}");
    Ok(())
}
