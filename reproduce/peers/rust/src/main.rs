//! One fit of superkmeans-rs, timed from rows in memory to centres.
//!
//! `peers ROWS COLUMNS CLUSTERS ITERATIONS SEED POINTS CENTRES` reads rows of `f32` without a header, in the order of this
//! machine, writes the centres in the same form, and prints the seconds.

use std::time::Instant;
use superkmeans::{SuperKMeans, SuperKMeansConfig};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n, d, k, iterations, seed, points, centres] = &arguments[..] else {
        return Err("usage: peers ROWS COLUMNS CLUSTERS ITERATIONS SEED POINTS CENTRES".into());
    };
    let (n, d, k): (usize, usize, usize) = (n.parse()?, d.parse()?, k.parse()?);
    let rows = read(points)?;
    if Some(rows.len()) != n.checked_mul(d) {
        return Err(format!("{points}: {} numbers, not {n} x {d}", rows.len()).into());
    }
    let config = SuperKMeansConfig {
        iters: iterations.parse()?,
        seed: seed.parse()?,
        ..SuperKMeansConfig::default()
    };
    let started = Instant::now();
    let found = SuperKMeans::with_config(k, d, config).train(&rows, n);
    println!("{}", started.elapsed().as_secs_f64());
    let bytes: Vec<u8> = found.iter().flat_map(|v| v.to_ne_bytes()).collect();
    Ok(std::fs::write(centres, bytes)?)
}

fn read(points: &str) -> Result<Vec<f32>> {
    let bytes = std::fs::read(points)?;
    let numbers = bytes.as_chunks().0.iter();
    Ok(numbers.map(|&bytes| f32::from_ne_bytes(bytes)).collect())
}
