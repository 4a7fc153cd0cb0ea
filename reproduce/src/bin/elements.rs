//! Equal values stored in several number types: seconds of `fast`, bytes per row, and labels that differ from those of `f32`.
//! Usage: elements [ROWS [COLUMNS [CLUSTERS]]]

use coremix::Element;
use coremix::prelude::*;
use coremix::stage::Rng;
use half::{bf16, f16};
use ndarray::{Array1, Array2};
use std::time::Instant;

fn run<T: Element<Float = f32>>(
    name: &str,
    x: &Array2<T>,
    k: usize,
    labels: Option<&Array1<u32>>,
) -> Result<Array1<u32>> {
    let data = Dense::new(x)?;
    let mut seconds = Vec::new();
    let mut found = Array1::zeros(0);
    for _ in 0..5 {
        let started = Instant::now();
        let fit = algorithms::fast(k).fit(&data)?;
        seconds.push(started.elapsed().as_secs_f64());
        found = fit.model.predict(&data)?;
    }
    let other = labels.map_or(0, |labels| {
        labels.iter().zip(&found).filter(|(a, b)| a != b).count()
    });
    let bytes = size_of::<T>() * x.ncols();
    println!(
        "{name:>4}: {:.3} s, {bytes} bytes per row, {other} other labels",
        reproduce::median(&seconds)
    );
    Ok(found)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [n, d, k] = reproduce::sizes([200_000, 128, 500])?;
    let mut rng = Rng::from_seed(1);
    let centres = Array2::from_shape_fn((2 * k, d), |_| 20.0 * rng.normal());
    // Whole numbers that all of these types hold exactly.
    let x = Array2::from_shape_fn((n, d), |(i, j)| {
        (centres[[i * 7 % (2 * k), j]] + 15.0 * rng.normal())
            .round()
            .clamp(0.0, 100.0) as f32
    });
    let labels = run("f32", &x, k, None)?;
    run("u8", &x.mapv(|x| x as u8), k, Some(&labels))?;
    run("i8", &x.mapv(|x| x as i8), k, Some(&labels))?;
    run("f16", &x.mapv(f16::from_f32), k, Some(&labels))?;
    run("bf16", &x.mapv(bf16::from_f32), k, Some(&labels))?;
    Ok(())
}
