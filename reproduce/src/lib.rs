//! Code that the programs that print tables share: the stop rule of the papers, generated rows, means over runs, medians of
//! times, and rows of Markdown.

pub mod hard;

use coremix::stage::{Rng, Stage};
use coremix::{Builder, Float, Rule};
use ndarray::Array2;
use rayon::prelude::*;
use std::num::ParseIntError;

/// The stop rule of the papers: a change of the free energy relative to itself.
pub fn as_published<F: Float, M: Stage>(builder: Builder<F, M>, tolerance: f64) -> Builder<F, M> {
    let rule = Rule::RelativeToFreeEnergy;
    builder.stop_rule(rule).tolerance(tolerance)
}

/// The tolerance of the papers, unless a table says another.
pub const TOLERANCE: f64 = 1e-4;

/// `n` rows of `d` columns around the centres of `components` Gaussians that overlap: always the same ones.
#[must_use]
pub fn overlapping_gaussians((n, d, components): (usize, usize, usize)) -> Array2<f32> {
    let mut rng = Rng::from_seed(7);
    let centres = Array2::from_shape_fn((components, d), |_| rng.normal());
    let mut points = Array2::zeros((n, d));
    let values = points.as_slice_mut().expect("row-major");
    values
        .par_chunks_mut(1_024 * d)
        .enumerate()
        .for_each(|(chunk, rows)| {
            let mut rng = Rng::from_seed(8 + chunk as u64);
            for row in rows.chunks_mut(d) {
                let centre = rng.below(components);
                for (j, x) in row.iter_mut().enumerate() {
                    *x = (centres[[centre, j]] + rng.normal()) as f32;
                }
            }
        });
    points
}

/// Mean and its standard error.
#[must_use]
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// The median; of an even number of values the upper one.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The numbers of the command line, one after the other, and `defaults` for those that are left out.
///
/// # Errors
/// If one of them is no number.
pub fn sizes<const N: usize>(defaults: [usize; N]) -> Result<[usize; N], ParseIntError> {
    let mut sizes = defaults;
    for (size, given) in sizes.iter_mut().zip(std::env::args().skip(1)) {
        *size = given.parse()?;
    }
    Ok(sizes)
}

/// The heading of a Markdown table, the first column without a name.
pub fn heading(columns: &[&str]) {
    println!("\n| | {} |", columns.join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
}

/// A row of a Markdown table.
pub fn row(name: &str, cells: &[String]) {
    println!("| {name} | {} |", cells.join(" | "));
}

/// The mean with its standard error in brackets, both with `digits` digits.
#[must_use]
pub fn with_error((mean, error): (f64, f64), digits: usize) -> String {
    format!("{mean:.digits$} ({error:.digits$})")
}

/// The mean with its sign, and its standard error in brackets.
#[must_use]
pub fn signed((mean, error): (f64, f64), digits: usize) -> String {
    format!("{mean:+.digits$} ({error:.digits$})")
}
