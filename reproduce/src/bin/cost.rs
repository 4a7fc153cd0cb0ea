//! How costs grow: the time of `vc_gmm` and `fast` with the number of clusters; time and memory of every pass over
//! many rows, against a plain read of them.
//!
//! `cargo run --release -p reproduce --bin cost -- [clusters [POINTS.npy] K.. | crossing K.. | seeding K.. | rows [PART..]]`; everything
//! but `crossing`, on generated data, unless told. `crossing` has `vc_gmm` and `k_means` on one coreset, from the same seeds. At 32,000
//! clusters it takes minutes and 1 GB. Each part over many rows is a process of its own, so that the peak of its memory is its own.

use coremix::coreset::Coreset;
use coremix::data::View;
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::Rng;
use coremix::{Element, Progress, Report, algorithms};
use ndarray::Array2;
use ndarray_npy::read_npy;
use rayon::prelude::*;
use reproduce::{median, memory, overlapping_gaussians, slope};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CLUSTERS: [usize; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];

const CROSSING: [usize; 5] = [500, 1_000, 2_000, 8_000, 32_000];

/// Rows, columns and components of the mixture for many clusters.
const MIXTURE: (usize, usize, usize) = (1_200_000, 64, 10_000);

/// The size of the coreset of `vc_gmm` on it.
const CORESET: usize = 200_000;

/// Components that share a row of it.
const MEMBERS: usize = 3;

/// Rows, columns and clusters for many rows: the shape of SUSY.
const LARGE: (usize, usize, usize) = (5_000_000, 18, 2_000);

/// The parts that are measured over many rows.
const PARTS: [&str; 6] = ["read", "check", "coreset", "vc_gmm", "var_gmm_s", "fast"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &names[..] {
        [] => {
            clusters(&overlapping_gaussians(MIXTURE), &CLUSTERS)?;
            seeding(&CLUSTERS)?;
            rows(&PARTS)
        }
        ["clusters"] => clusters(&overlapping_gaussians(MIXTURE), &CLUSTERS),
        ["clusters", file, numbers @ ..] if file.ends_with(".npy") => {
            match read_npy::<_, Array2<f32>>(file) {
                Ok(x) => clusters(&x, &parse(numbers)?),
                Err(_) => clusters(&read_npy::<_, Array2<u8>>(file)?, &parse(numbers)?),
            }
        }
        ["clusters", numbers @ ..] => clusters(&overlapping_gaussians(MIXTURE), &parse(numbers)?),
        ["crossing"] => crossing(&CROSSING),
        ["crossing", numbers @ ..] => crossing(&parse(numbers)?),
        ["seeding"] => seeding(&CLUSTERS),
        ["seeding", numbers @ ..] => seeding(&parse(numbers)?),
        ["rows"] => rows(&PARTS),
        ["rows", parts @ ..] => rows(parts),
        ["part", name] => part(name),
        _ => Err("clusters, crossing, seeding or rows".into()),
    }
}

fn parse(numbers: &[&str]) -> Result<Vec<usize>> {
    Ok(numbers
        .iter()
        .map(|number| number.parse())
        .collect::<std::result::Result<_, _>>()?)
}

/// Times over the number of clusters, and how they grow. The peak of the memory is that of the process so far.
fn clusters<T: Element>(x: &Array2<T>, numbers: &[usize]) -> Result<()> {
    let (n, d) = x.dim();
    let input = memory("VmRSS:")?;
    println!("{n} x {d}; vc_gmm on a coreset of {CORESET}, C' = 3, G = 5; seconds\n");
    println!(
        "{:>7}{:>10}{:>6}{:>14}{:>12}{:>10}{:>13}{:>13}{:>8}{:>10}{:>9}",
        "k",
        "vc_gmm EM",
        "steps",
        "ms per search",
        "fast",
        "seeding",
        "first search",
        "others",
        "steps",
        "error",
        "peak MB"
    );
    let data = Dense::new(x.view())?;
    let mut columns: [Vec<f64>; 4] = Default::default();
    for &k in numbers {
        // The chains of AFK-MC2 would take longer than all else.
        let builder = algorithms::vc_gmm(k, CORESET, 3, 5).seeder(HierarchicalKMeansPlusPlus);
        let vc = builder.build()?.fit(&data)?.report;
        let em = vc.phases[0].elapsed.as_secs_f64();
        let search = em / (vc.iterations + 1) as f64;

        let started = Instant::now();
        let mut first = Duration::ZERO;
        let fit = algorithms::fast(k)
            .build()?
            .fit_observed(&data, |progress| {
                if let Progress::Iteration {
                    iteration: 0,
                    elapsed,
                    ..
                } = progress
                {
                    first += *elapsed;
                }
                ControlFlow::Continue(())
            })?;
        let (whole, first) = (started.elapsed().as_secs_f64(), first.as_secs_f64());
        let seeding = fit.report.timings.seeding.as_secs_f64();
        let others = (fit.report.phases.iter())
            .map(|phase| phase.elapsed.as_secs_f64())
            .sum::<f64>()
            - first;
        println!(
            "{k:>7}{em:>10.2}{:>6}{:>14.1}{whole:>12.2}{seeding:>10.3}{first:>13.2}{others:>13.2}{:>8}{:>10.3e}{:>9.0}",
            vc.iterations,
            1e3 * search,
            fit.report.iterations,
            fit.model.quantization_error(&data)?,
            1e-6 * 1024.0 * (memory("VmHWM:")? - input),
        );
        for (column, time) in columns.iter_mut().zip([em, search, whole, seeding]) {
            column.push(time);
        }
    }
    let [em, search, whole, seeding] = columns.map(|times| slope(numbers, &times));
    println!(
        "\ngrow as k to the power of: EM {em:.2}, a search {search:.2}, fast {whole:.2}, its seeding {seeding:.2}"
    );
    Ok(())
}

/// EM on a coreset: seconds, iterations, the error on all rows, and the free energy.
struct Run {
    seconds: f64,
    steps: usize,
    error: f64,
    free_energy: f64,
}

/// Seconds of EM and errors on all rows of `vc_gmm`, as published and with supports that start from the seeds, and of `k_means`, from
/// the same seeds on the same coreset. Then searches over all components: `k_means` up to the lower error of the two fits of `vc_gmm`,
/// and the same model up to their higher free energy. Iterations are doubled until a fit reaches it or ends; the ratio is its time to that
/// of `vc_gmm`.
fn crossing(numbers: &[usize]) -> Result<()> {
    let x = overlapping_gaussians(MIXTURE);
    let (data, (n, d)) = (Dense::new(x.view())?, x.dim());
    println!("{n} x {d}; a coreset of {CORESET}; seconds of EM, steps and error on all rows\n");
    println!(
        "{:>7}{:>26}{:>26}{:>26}{:>19}{:>19}",
        "k", "vc_gmm, 3 of 5 near", "from seeds", "k_means", "that error", "that free energy"
    );
    let run = |builder: coremix::Builder<f32>| -> Result<Run> {
        let builder = builder.seeder(HierarchicalKMeansPlusPlus);
        let builder = builder.coreset(Lightweight::new(CORESET));
        let fit = builder.build()?.fit(&data)?;
        Ok(Run {
            seconds: fit.report.phases[0].elapsed.as_secs_f64(),
            steps: fit.report.iterations,
            error: fit.model.quantization_error(&data)?,
            free_energy: *fit.report.free_energies.last().ok_or("no search")?,
        })
    };
    for &k in numbers {
        let near = |from_seeds| {
            let search = Neighborhood::new(MEMBERS, 5).from_seeds(from_seeds);
            algorithms::var_gmm_s(k, MEMBERS, 5).e_step(search)
        };
        let random = run(near(false))?;
        let seeds = run(near(true))?;
        let all = run(algorithms::k_means(k).max_iterations(300))?;
        print!("{k:>7}");
        for fit in [&random, &seeds, &all] {
            print!("{:>10.3}{:>5}{:>11.4e}", fit.seconds, fit.steps, fit.error);
        }
        // Searches over all components, and the number that is lower the better a fit is.
        type Badness = fn(&Run) -> f64;
        let by_error: Badness = |fit| fit.error;
        let by_free_energy: Badness = |fit| -fit.free_energy;
        let exact = [
            (algorithms::k_means(k), by_error),
            (algorithms::k_means_c_prime(k, MEMBERS), by_free_energy),
        ];
        for (builder, badness) in exact {
            let better = match badness(&random) < badness(&seeds) {
                true => &random,
                false => &seeds,
            };
            let (mut steps, mut fit) = (1, run(builder.clone().max_iterations(1))?);
            while badness(&fit) > badness(better) && fit.steps == steps {
                steps *= 2;
                fit = run(builder.clone().max_iterations(steps))?;
            }
            let ratio = match badness(&fit) > badness(better) {
                true => "never".to_string(),
                false => format!("{:.2}", fit.seconds / better.seconds),
            };
            print!("{:>11}{ratio:>8}", fit.steps);
        }
        println!();
    }
    Ok(())
}

/// Time of seeders on the coreset of `fast`, the squared distance they leave per row, and how the times grow.
fn seeding(numbers: &[usize]) -> Result<()> {
    let x = overlapping_gaussians(MIXTURE);
    let data = Dense::new(x.view())?;
    let frame = data.frame();
    println!("\nseeding on coresets of 32 rows per cluster; milliseconds, potential\n");
    println!(
        "{:>7}{:>26}{:>26}",
        "k", "hierarchical k-means++", "AFK-MC2, chain of 2"
    );
    let mut columns: [Vec<f64>; 2] = Default::default();
    for &k in numbers {
        let mut rng = Rng::from_seed(1);
        let subset = Coreset::<f32>::sample(
            &Lightweight::new(32 * k),
            View::new(&data, &frame),
            &mut rng,
        )?;
        let subset = subset.ok_or("fewer rows than the coreset is to have")?;
        let rows = data.select(&subset.rows, subset.weights)?;
        let view = View::new(&*rows, &frame);
        print!("{k:>7}");
        let hierarchical = |rng: &mut Rng| HierarchicalKMeansPlusPlus.seed(view, k, rng);
        columns[0].push(time_seeder(hierarchical)?);
        let chains = |rng: &mut Rng| AfkMc2::new(2).seed(view, k, rng);
        columns[1].push(time_seeder(chains)?);
        println!();
    }
    let [hierarchical, chains] = columns.map(|times| slope(numbers, &times));
    println!("\ngrow as k to the power of: {hierarchical:.2} and {chains:.2}");
    Ok(())
}

/// Median of three runs, printed.
fn time_seeder(seed: impl Fn(&mut Rng) -> coremix::Result<Seeds<f32>>) -> Result<f64> {
    let mut times = Vec::new();
    let mut evaluations = 0;
    for run in 0..5 {
        let mut rng = Rng::from_seed(run);
        let started = Instant::now();
        let seeds = black_box(seed(&mut rng)?);
        times.push(started.elapsed().as_secs_f64());
        evaluations = seeds.evaluations;
    }
    let time = median(&times);
    print!("{:>12.1}{:>14.1e}", 1e3 * time, evaluations as f64);
    Ok(time)
}

/// Every part over many rows, each in its own process.
fn rows(parts: &[&str]) -> Result<()> {
    let (n, d, k) = LARGE;
    println!("\n{n} x {d}, k = {k}; milliseconds, and peak memory above the input\n");
    for part in parts {
        let status = Command::new(std::env::current_exe()?)
            .args(["part", part])
            .status()?;
        if !status.success() {
            return Err(format!("{part} failed").into());
        }
    }
    Ok(())
}

fn part(name: &str) -> Result<()> {
    let (n, _, k) = LARGE;
    let x = overlapping_gaussians(LARGE);
    let read = time_of(9, || read(&x));
    let input = memory("VmRSS:")?;
    let mut report = None;
    let mut fit = |fitted: Report| report = Some(fitted);
    let time = match name {
        "read" => read,
        "check" => time_of(5, || Dense::new(x.view()).map(drop)),
        "coreset" => {
            let data = Dense::new(x.view())?;
            let frame = data.frame();
            let coreset = Lightweight::new(65_536);
            time_of(5, || {
                let mut rng = Rng::from_seed(1);
                Coreset::<f32>::sample(&coreset, View::new(&data, &frame), &mut rng).map(drop)
            })
        }
        _ => {
            let started = Instant::now();
            let data = Dense::new(x.view())?;
            match name {
                "vc_gmm" => fit(algorithms::vc_gmm(k, 65_536, 3, 5)
                    .build()?
                    .fit(&data)?
                    .report),
                "var_gmm_s" => {
                    let builder = algorithms::var_gmm_s(k, 3, 5)
                        .max_iterations(3)
                        .tolerance(0.0);
                    fit(builder.build()?.fit(&data)?.report);
                }
                "fast" => fit(algorithms::fast(k).build()?.fit(&data)?.report),
                _ => return Err(format!("{name}: one of {PARTS:?}").into()),
            }
            started.elapsed().as_secs_f64()
        }
    };
    let above = 1024.0 * (memory("VmHWM:")? - input);
    println!(
        "{name:<10}{:>9.1} ms, {:.1} times a plain read ({:.1} ms); {:.1} MB above the input, {:.1} bytes per row",
        1e3 * time,
        time / read,
        1e3 * read,
        1e-6 * above,
        above / n as f64
    );
    if let Some(report) = report {
        let ms = |time: Duration| 1e3 * time.as_secs_f64();
        let timings = &report.timings;
        print!(
            "{:10}coreset {:.0}, seeding {:.0}",
            "",
            ms(timings.coreset),
            ms(timings.seeding)
        );
        for phase in &report.phases {
            print!(
                "; {} rows: {} steps in {:.0}",
                phase.rows,
                phase.iterations,
                ms(phase.elapsed)
            );
        }
        println!();
    }
    Ok(())
}

/// The smallest of `runs` times after a first one, in seconds.
fn time_of<T>(runs: usize, mut run: impl FnMut() -> T) -> f64 {
    black_box(run());
    let times = (0..runs).map(|_| {
        let started = Instant::now();
        black_box(run());
        started.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Reads all numbers, on all threads.
fn read(x: &Array2<f32>) -> f32 {
    let values = x.as_slice().expect("row-major");
    let chunk = |values: &[f32]| {
        let (lanes, rest) = values.as_chunks::<64>();
        let mut sums = [0.0; 64];
        for values in lanes {
            for (sum, x) in sums.iter_mut().zip(values) {
                *sum += x;
            }
        }
        sums.iter().chain(rest).sum::<f32>()
    };
    values.par_chunks(1 << 16).map(chunk).sum()
}
