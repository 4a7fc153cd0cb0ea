//! Means of k-means on pictures, the most common ones first.
//!
//! `cargo run --release -p gallery --bin digits -- MNIST.npy [-k 100] [--out digits.png]`: rows of `u8`, each a square picture,
//! as in MNIST (n, 784).

use clap::Parser;
use coremix::prelude::*;
use image::{GrayImage, Luma};
use ndarray::Array2;
use ndarray_npy::read_npy;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "The means of square pictures")]
struct Arguments {
    pictures: PathBuf,
    /// Means
    #[arg(short, long, default_value_t = 100)]
    k: usize,
    #[arg(long, default_value = "digits.png")]
    out: PathBuf,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> std::process::ExitCode {
    gallery::run(program)
}

fn program() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let pictures: Array2<u8> = read_npy(&arguments.pictures)
        .map_err(|error| format!("{}: {error}", arguments.pictures.display()))?;
    let (n, d) = pictures.dim();
    let side = (d as f64).sqrt() as usize;
    if side * side != d {
        return Err(format!("a row has {d} numbers: a square picture is needed").into());
    }

    let started = Instant::now();
    let data = Dense::new(pictures.view())?;
    let fit = algorithms::fast(arguments.k)
        .seed(arguments.seed)
        .build()?
        .fit(&data)?;
    let labels = fit.model.predict(&data)?;
    let seconds = started.elapsed().as_secs_f64();

    let mut counts = vec![0usize; arguments.k];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    let mut order: Vec<usize> = (0..arguments.k).collect();
    order.sort_by_key(|&c| (std::cmp::Reverse(counts[c]), c));
    let across = (arguments.k as f64).sqrt().ceil() as usize;
    let down = arguments.k.div_ceil(across);
    let cell = side + 2;
    let size = |cells: usize| (cells * cell + 2) as u32;
    let mut out = GrayImage::from_pixel(size(across), size(down), Luma([255]));
    let means = fit.model.means();
    for (place, c) in order.into_iter().enumerate() {
        let (left, top) = (place % across * cell + 2, place / across * cell + 2);
        for (j, x) in means.row(c).iter().enumerate() {
            let ink = Luma([255 - x.round().clamp(0.0, 255.0) as u8]);
            out.put_pixel((left + j % side) as u32, (top + j / side) as u32, ink);
        }
    }
    out.save(&arguments.out)
        .map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    println!("{} means of {n} pictures: {seconds:.2} s", arguments.k);
    println!("{}", arguments.out.display());
    Ok(())
}
