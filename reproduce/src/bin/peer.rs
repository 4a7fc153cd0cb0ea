//! One fit of one algorithm, timed from the checked rows to the model: what `reproduce/peers/run` compares with other
//! libraries.
//!
//! `cargo run --release -p reproduce --bin peer -- ALGORITHM POINTS.npy CLUSTERS SEED CENTRES.npy` prints the seconds and writes
//! the means; for `iteration` they are the seconds of one iteration of k-means from the first rows. Points are `f32`, `u8` or `f64` (as `f32`: what the others are given).

use coremix::prelude::*;
use coremix::{Element, algorithms};
use ndarray::Array2;
use ndarray_npy::ReadableElement;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [algorithm, points, clusters, seed, centres] = &arguments[..] else {
        return Err("usage: peer ALGORITHM POINTS.npy CLUSTERS SEED CENTRES.npy".into());
    };
    let (k, seed) = (clusters.parse()?, seed.parse()?);
    let (means, seconds) = match read::<f32>(points) {
        Ok(x) => fit(algorithm, &x, k, seed)?,
        Err(_) => match read::<u8>(points) {
            Ok(x) => fit(algorithm, &x, k, seed)?,
            Err(_) => fit(algorithm, &read::<f64>(points)?.mapv(|v| v as f32), k, seed)?,
        },
    };
    ndarray_npy::write_npy(centres, &means)?;
    println!("{seconds}");
    Ok(())
}

fn read<T: ReadableElement>(points: &str) -> Result<Array2<T>> {
    Ok(ndarray_npy::read_npy(points)?)
}

fn fit<T: Element<Float = f32>>(
    algorithm: &str,
    x: &Array2<T>,
    k: usize,
    seed: u64,
) -> Result<(Array2<f32>, f64)> {
    if algorithm == "iteration" {
        return iteration(x, k);
    }
    let started = Instant::now();
    let data = Dense::new(x.view())?;
    let model = match algorithm {
        "fast" => algorithms::fast(k).seed(seed).build()?.fit(&data)?.model,
        "vc-gmm" => {
            algorithms::vc_gmm(k, 16_384, 3, 5)
                .seed(seed)
                .build()?
                .fit(&data)?
                .model
        }
        "var-gmm-s" => {
            algorithms::var_gmm_s(k, 3, 5)
                .seed(seed)
                .build()?
                .fit(&data)?
                .model
        }
        "k-means" => algorithms::k_means(k).seed(seed).build()?.fit(&data)?.model,
        other => {
            return Err(
                format!("{other}: not one of fast, vc-gmm, var-gmm-s, k-means, iteration").into(),
            );
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    Ok((model.means().to_owned(), seconds))
}

/// Seconds of an iteration: those of 12 less those of 2, so that what is done once does not count.
fn iteration<T: Element<Float = f32>>(x: &Array2<T>, k: usize) -> Result<(Array2<f32>, f64)> {
    let data = Dense::new(x.view())?;
    let seeds = Array2::from_shape_fn((k, x.ncols()), |at| x[at].widen());
    let fit = |iterations| -> Result<_> {
        let started = Instant::now();
        let builder = algorithms::k_means(k).seeder(Given::new(seeds.view()));
        let fit = builder.tolerance(0.0).max_iterations(iterations);
        let model = fit.build()?.fit(&data)?.model;
        Ok((model, started.elapsed().as_secs_f64()))
    };
    let (_, short) = fit(2)?;
    let (model, long) = fit(12)?;
    Ok((model.means().to_owned(), (long - short) / 10.0))
}
