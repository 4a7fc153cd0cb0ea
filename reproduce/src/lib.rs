//! Code that the programs that print tables share: the stop rule of the papers, generated rows, the data, runs of an algorithm
//! and their means, medians of times, and rows of Markdown.

pub mod hard;

use coremix::data::Dense;
use coremix::stage::{Rng, Stage};
use coremix::{Builder, Element, Evaluations, Float, Mixture, Rule, metrics};
use ndarray::{Array, Array2, Dimension};
use ndarray_npy::{ReadNpyError, ReadableElement, read_npy};
use rayon::prelude::*;
use std::borrow::Borrow;
use std::io;
use std::num::ParseIntError;
use std::time::Instant;

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

/// An array of `../shared/data`, by its name: `s1`, or `s1.labels`. Where it is absent, that is printed.
///
/// # Errors
/// For a file that cannot be read.
pub fn load<T: ReadableElement, D: Dimension>(
    name: &str,
) -> Result<Option<Array<T, D>>, ReadNpyError> {
    let path = format!("../shared/data/{name}.npy");
    match read_npy(&path) {
        Ok(x) => Ok(Some(x)),
        Err(ReadNpyError::Io(_)) => {
            println!("SKIPPED {name}: {path} is absent");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Results of the runs of one algorithm.
#[derive(Clone, Default)]
pub struct Runs<F> {
    pub means: Vec<Array2<F>>,
    /// Quantization errors on all rows.
    pub errors: Vec<f64>,
    pub evaluations: Vec<Evaluations>,
    pub iterations: Vec<f64>,
    /// Seconds of checking the data and fitting it.
    pub seconds: Vec<f64>,
    /// The part of them that drew the coreset and the seeds.
    pub starts: Vec<f64>,
}

impl<F: Float> Runs<F> {
    /// One more run.
    ///
    /// # Errors
    /// As the fit.
    pub fn run<T>(&mut self, x: &Array2<T>, builder: Builder<F>) -> coremix::Result<()>
    where
        T: Element<Float = F>,
    {
        let started = Instant::now();
        let data = Dense::new(x.view())?;
        let fit = builder.build()?.fit(&data)?;
        self.seconds.push(started.elapsed().as_secs_f64());
        let timings = fit.report.timings;
        self.starts
            .push((timings.coreset + timings.seeding).as_secs_f64());
        self.errors.push(fit.model.quantization_error(&data)?);
        self.evaluations.push(fit.report.evaluations);
        self.iterations.push(fit.report.iterations as f64);
        self.means.push(fit.model.means().to_owned());
        Ok(())
    }

    /// The errors in percent above this one.
    #[must_use]
    pub fn above(&self, error: f64) -> (f64, f64) {
        let percent = self.errors.iter().map(|own| 100.0 * (own / error - 1.0));
        mean(&percent.collect::<Vec<_>>())
    }

    /// How many times fewer distances are evaluated than in the runs of another algorithm.
    #[must_use]
    pub fn fewer(&self, than: &Self, of: fn(&Evaluations) -> u64) -> String {
        let mean_of = |runs: &Self| {
            let sum: f64 = runs.evaluations.iter().map(|each| of(each) as f64).sum();
            sum / runs.evaluations.len() as f64
        };
        format!("{:.1}x", mean_of(than) / mean_of(self))
    }

    /// How many times as fast it is as another algorithm, by medians.
    #[must_use]
    pub fn faster(&self, than: &Self) -> String {
        format!("{:.1}x", median(&than.seconds) / median(&self.seconds))
    }

    /// The share of the time that drew coreset and seeds.
    #[must_use]
    pub fn start(&self) -> String {
        let share = self.starts.iter().sum::<f64>() / self.seconds.iter().sum::<f64>();
        format!("{:.0} %", 100.0 * share)
    }

    /// Root mean square distance of matched centres between all pairs of runs: its mean, and the standard error of that.
    ///
    /// # Errors
    /// If the runs have different numbers of clusters.
    pub fn stability(&self) -> coremix::Result<(f64, f64)> {
        let n = self.means.len();
        let mut by_run = vec![0.0; n];
        for i in 0..n {
            for j in 0..i {
                let rmse = metrics::matched_rmse(self.means[i].view(), self.means[j].view())?;
                for run in [i, j] {
                    by_run[run] += rmse / (n - 1) as f64;
                }
            }
        }
        // A run is in n - 1 of the pairs, and each pair has two: twice the error of a mean over runs.
        let (mean, error) = mean(&by_run);
        Ok((mean, 2.0 * error))
    }
}

/// The exponent of k in what grows with it: least squares of logarithms.
#[must_use]
pub fn slope(numbers: &[usize], values: &[f64]) -> f64 {
    let x: Vec<f64> = numbers.iter().map(|&k| (k as f64).ln()).collect();
    let y: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let middle = mean(&x).0;
    let height = mean(&y).0;
    let products = x.iter().zip(&y).map(|(x, y)| (x - middle) * (y - height));
    let squares = x.iter().map(|x| (x - middle).powi(2));
    products.sum::<f64>() / squares.sum::<f64>()
}

/// A line of what the system knows of this process, such as `VmHWM:`, in KiB.
///
/// # Errors
/// If the system does not say.
pub fn memory(what: &str) -> io::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other("no such line in /proc/self/status"))
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
pub fn heading<Name: Borrow<str>>(columns: &[Name]) {
    println!("\n||{}|", columns.join("|"));
    println!("|---|{}", "---|".repeat(columns.len()));
}

/// Published figures, each with the one of this crate in bold after it.
#[must_use]
pub fn beside(published: &[&str], here: impl IntoIterator<Item = String>) -> Vec<String> {
    let pairs = published.iter().zip(here);
    let cells =
        pairs.flat_map(|(published, here)| [(*published).to_owned(), format!("**{here}**")]);
    cells.collect()
}

/// A row of a Markdown table.
pub fn row(name: &str, cells: &[String]) {
    println!("|{name}|{}|", cells.join("|"));
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
