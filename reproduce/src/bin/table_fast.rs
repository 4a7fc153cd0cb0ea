//! Time to quality: `fast` on the named sets, its quantization error against the reference and where its time goes.
//!
//! `cargo run --release -p reproduce --bin table_fast -- DATA_FOLDER [seeds] [sets...]`; with `levers` among the sets, also what it
//! would be without each of its parts.

use coremix::Element;
use coremix::algorithms::{self, fast_phases};
use coremix::prelude::*;
use coremix::stage::Shape;
use ndarray::Array2;
use ndarray_npy::ReadableElement;
use std::path::Path;
use std::time::Instant;

/// A variant, by what is different in its phases.
type Variant = (&'static str, fn(Shape) -> Vec<Phase<f32>>);

/// `fast` as it is, and without each of its parts.
const VARIANTS: [Variant; 7] = [
    ("fast", fast_phases),
    ("no moves", |shape| {
        let phases = fast_phases(shape).into_iter();
        phases.map(|phase| phase.split_and_merge(0)).collect()
    }),
    ("no transfers", |shape| {
        let phases = fast_phases(shape).into_iter();
        phases.map(|phase| phase.transfers(0)).collect()
    }),
    ("no larger coreset", |shape| {
        let mut phases = fast_phases(shape);
        // On the coreset, on larger ones, on all rows, and on all columns.
        phases.drain(1..phases.len() - 2);
        phases
    }),
    ("all columns", |shape| {
        let phases = fast_phases(shape).into_iter();
        phases.map(|phase| phase.columns(Columns::All)).collect()
    }),
    ("16 near centres", |shape| near(shape, 16)),
    ("all centres near", |shape| near(shape, shape.clusters)),
];

/// The phases of `fast` with other lists of near centres.
fn near(shape: Shape, near: usize) -> Vec<Phase<f32>> {
    let phases = fast_phases(shape).into_iter();
    let bounded = Bounded::default().nearest_centres(near);
    phases.map(|phase| phase.e_step(bounded)).collect()
}

/// Name, clusters, the reference error of converged greedy k-means++, and the seconds of the fastest other route to
/// about +1 % of it.
const SETS: [(&str, usize, f64, f64); 4] = [
    ("kdd04bio", 500, 1.116_946e11, 1.6),
    ("song", 1000, 2.495_159e11, 9.2),
    ("mnist_u8", 500, 1.020_308e11, 2.7),
    ("cod_rna", 500, 1.157_249e6, 6.9),
];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "../shared/data".into());
    let seeds: u64 = arguments.next().map_or(Ok(5), |seeds| seeds.parse())?;
    let mut wanted: Vec<String> = arguments.collect();
    let named = wanted.len();
    wanted.retain(|name| name != "levers");
    let variants = if wanted.len() < named {
        &VARIANTS[..]
    } else {
        &VARIANTS[..1]
    };
    println!(
        "{:<18}{:<10}{:>6}{:>10}{:>10}{:>9}{:>9}   phases: rows, M-steps, ms",
        "", "set", "k", "error", "s.e.", "seconds", "ratio"
    );
    for (name, k, reference, other) in SETS {
        if !wanted.is_empty() && !wanted.iter().any(|set| set == name) {
            continue;
        }
        let file = Path::new(&folder).join(format!("{name}.npy"));
        if !file.exists() {
            println!("{name}: {} is absent", file.display());
            continue;
        }
        for &variant in variants {
            if name == "mnist_u8" {
                row::<u8>(variant, (name, &file), (k, reference, other), seeds)?;
            } else {
                row::<f32>(variant, (name, &file), (k, reference, other), seeds)?;
            }
        }
    }
    Ok(())
}

fn row<T: Element<Float = f32> + ReadableElement>(
    (variant, phases_of): Variant,
    (name, file): (&str, &Path),
    (k, reference, other): (usize, f64, f64),
    seeds: u64,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let x: Array2<T> = ndarray_npy::read_npy(file)?;
    let (mut errors, mut times, mut phases) = (Vec::new(), Vec::new(), String::new());
    for seed in 1..=seeds {
        let started = Instant::now();
        let data = Dense::new(x.view())?;
        let checked = started.elapsed();
        let fit = algorithms::fast(k)
            .phases(phases_of)
            .seed(seed)
            .build()?
            .fit(&data)?;
        times.push(started.elapsed().as_secs_f64());
        errors.push(100.0 * (fit.model.quantization_error(&data)? / reference - 1.0));
        let ms = |time: std::time::Duration| 1e3 * time.as_secs_f64();
        let timings = &fit.report.timings;
        phases = format!(
            "check {:.0} coreset {:.0} seeding {:.0}",
            ms(checked),
            ms(timings.coreset),
            ms(timings.seeding)
        );
        for phase in &fit.report.phases {
            phases += &format!(
                "; {} {} {:.0}",
                phase.rows,
                phase.iterations,
                ms(phase.elapsed)
            );
        }
    }
    times.sort_by(f64::total_cmp);
    let (n, median) = (errors.len() as f64, times[times.len() / 2]);
    let mean = errors.iter().sum::<f64>() / n;
    let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    println!(
        "{variant:<18}{name:<10}{k:>6}{mean:>+9.2}%{:>9.2}%{median:>9.3}{:>8.1}x   {phases}",
        (variance / n).sqrt(),
        other / median
    );
    Ok(())
}
