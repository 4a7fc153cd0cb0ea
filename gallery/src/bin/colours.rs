//! A photograph in few colours: k-means on its pixels.
//!
//! `cargo run --release -p gallery --bin colours -- PHOTO [-k 16] [--out colours.png]`; PNG or JPEG. The picture has the
//! photograph in k colours, and below it the colours, as wide as the part of the pixels that have them.

use clap::Parser;
use coremix::prelude::*;
use image::{Rgb, RgbImage};
use ndarray::ArrayView2;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "A photograph in few colours: k-means on its pixels")]
struct Arguments {
    photo: PathBuf,
    /// Colours
    #[arg(short, long, default_value_t = 16)]
    k: usize,
    #[arg(long, default_value = "colours.png")]
    out: PathBuf,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> std::process::ExitCode {
    gallery::run(program)
}

fn program() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let photo = image::open(&arguments.photo)
        .map_err(|error| format!("{}: {error}", arguments.photo.display()))?
        .into_rgb8();
    let (width, height) = photo.dimensions();
    let pixels = ArrayView2::from_shape(((width * height) as usize, 3), photo.as_raw())?;

    let started = Instant::now();
    let data = Dense::new(pixels)?; // u8: no copy
    let fit = algorithms::fast(arguments.k)
        .seed(arguments.seed)
        .build()?
        .fit(&data)?;
    let labels = fit.model.predict(&data)?;
    let seconds = started.elapsed().as_secs_f64();

    let colours: Vec<Rgb<u8>> = fit.model.means().rows().into_iter().map(colour).collect();
    let mut counts = vec![0usize; arguments.k];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    let bar = (height / 12).max(8);
    let mut out = RgbImage::new(width, height + bar);
    for (n, &label) in labels.iter().enumerate() {
        let n = n as u32;
        out.put_pixel(n % width, n / width, colours[label as usize]);
    }
    // From dark to light.
    let mut order: Vec<usize> = (0..arguments.k).collect();
    let light = |c: usize| colours[c].0.iter().map(|&x| u32::from(x)).sum::<u32>();
    order.sort_by_key(|&c| light(c));
    let (mut before, mut x) = (0, 0);
    for c in order {
        before += counts[c];
        let end = (before as f64 / labels.len() as f64 * f64::from(width)).round() as u32;
        for x in x..end.min(width) {
            (height..height + bar).for_each(|y| out.put_pixel(x, y, colours[c]));
        }
        x = end;
    }
    out.save(&arguments.out)
        .map_err(|error| format!("{}: {error}", arguments.out.display()))?;

    let error = fit.model.quantization_error(&data)? / labels.len() as f64;
    println!(
        "{width} x {height} pixels in {} colours: {seconds:.2} s, off by {:.1} of 255 in the root of the mean square",
        arguments.k,
        (error / 3.0).sqrt()
    );
    println!("{}", arguments.out.display());
    Ok(())
}

fn colour(mean: ndarray::ArrayView1<'_, f32>) -> Rgb<u8> {
    Rgb([0, 1, 2].map(|j| mean[j].round().clamp(0.0, 255.0) as u8))
}
