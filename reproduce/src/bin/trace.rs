//! Time and gain of each step of `fast`: `cargo run --release -p reproduce --bin trace -- POINTS.npy CLUSTERS [SEED
//! [MAX_ITERATIONS [TOLERANCE]]]`, or `N:D:COMPONENTS` in place of the file for rows of overlapping Gaussians.

use coremix::prelude::*;
use coremix::{Builder, Element, Progress, algorithms};
use ndarray::Array2;
use ndarray_npy::{ReadableElement, read_npy};
use reproduce::overlapping_gaussians;
use std::ops::ControlFlow;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (k, seed) = (
        arguments[1].parse()?,
        arguments.get(2).map_or(Ok(1), |s| s.parse())?,
    );
    let most = arguments.get(3).map_or(Ok(100), |s| s.parse())?;
    let tolerance = arguments.get(4).map_or(Ok(1e-3), |s| s.parse())?;
    let fast = algorithms::fast(k).seed(seed).max_iterations(most);
    let fast = fast.tolerance(tolerance);
    let parts: Vec<usize> = arguments[0]
        .split(':')
        .filter_map(|part| part.parse().ok())
        .collect();
    if let [n, d, components] = parts[..] {
        return trace(&overlapping_gaussians((n, d, components)), fast);
    }
    match read_npy::<_, Array2<f32>>(&arguments[0]) {
        Ok(x) => trace(&x, fast),
        Err(_) => trace(&read_npy::<_, Array2<u8>>(&arguments[0])?, fast),
    }
}

fn trace<T: Element<Float = f32> + ReadableElement>(
    x: &Array2<T>,
    fast: Builder<f32>,
) -> Result<()> {
    let data = Dense::new(x.view())?;
    let d = x.ncols() as f64;
    let (mut before, mut last, mut evaluated) = (0.0, Instant::now(), 0);
    let started = Instant::now();
    let fit = fast.build()?.fit_observed(&data, |progress| {
        if let Progress::Iteration { phase, rows, iteration, free_energy, evaluations, .. } = progress {
            if *iteration == 0 { evaluated = 0; }
            let gain = (free_energy - before) / (x.nrows() as f64 * d / 2.0);
            println!("phase {phase} rows {rows:>8} step {iteration:>3} gain {:>9.4} % {:>9.1} ms {:>6.1} evaluations per row",
                100.0 * gain, 1e3 * last.elapsed().as_secs_f64(), (evaluations - evaluated) as f64 / *rows as f64);
            (before, last, evaluated) = (*free_energy, Instant::now(), *evaluations);
        }
        ControlFlow::Continue(())
    })?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{seconds:.3} s, error {:.6e}",
        fit.model.quantization_error(&data)?
    );
    for phase in &fit.report.phases {
        println!("{phase:?}");
    }
    Ok(())
}
