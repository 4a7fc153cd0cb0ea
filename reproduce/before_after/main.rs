//! One fit, timed from checked rows to the model, by the library of either side: `run` builds it against both.
//!
//! `ALGORITHM POINTS.npy CLUSTERS SEED` prints seconds, quantization error and peak memory in KiB; with DETAILS set also what
//! each phase cost. The algorithms of the
//! papers stop by their rule, on both sides.

use coremix::prelude::*;
use coremix::{Element, algorithms};
use ndarray::Array2;
use std::time::Instant;

#[cfg(before)]
macro_rules! as_published {
    ($builder:expr) => {
        $builder
    };
}
#[cfg(not(before))]
macro_rules! as_published {
    ($builder:expr) => {
        $builder
            .stop_rule(Rule::RelativeToFreeEnergy)
            .tolerance(1e-4)
    };
}

type AnyResult<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What each phase cost.
fn details(report: &Report) {
    eprintln!("{:?}", report.timings);
    for phase in &report.phases {
        eprintln!(
            "{} rows, {} iterations, {} evaluations, {:?}",
            phase.rows, phase.iterations, phase.evaluations, phase.elapsed
        );
    }
}

fn fit<T: Element>(x: &Array2<T>, algorithm: &str, k: usize, seed: u64) -> AnyResult<()> {
    let data = Dense::new(x.view())?;
    let started = Instant::now();
    macro_rules! timed {
        ($builder:expr) => {{
            let fit = $builder.seed(seed).build()?.fit(&data)?;
            let seconds = started.elapsed().as_secs_f64();
            if std::env::var_os("DETAILS").is_some() {
                details(&fit.report);
            }
            (seconds, fit.model.quantization_error(&data)?)
        }};
    }
    let coreset = if k > 500 { 16_384 } else { 8_192 };
    let (seconds, error) = match algorithm {
        "fast" => timed!(algorithms::fast(k)),
        "vc_gmm" => timed!(as_published!(algorithms::vc_gmm(k, coreset, 5, 5))),
        "var_gmm_s" => timed!(as_published!(algorithms::var_gmm_s(k, 5, 5))),
        // Seeding by k-means++ would take longer than all that is compared.
        "k_means" => {
            let builder = algorithms::k_means(k).seeder(AfkMc2::new(20));
            timed!(as_published!(builder.max_iterations(25)))
        }
        "gmm" => timed!(as_published!(algorithms::gmm(k).max_iterations(8))),
        other => return Err(format!("{other}: not one of them").into()),
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap_or("0").trim().trim_end_matches(" kB");
    println!("{seconds} {error} {peak}");
    Ok(())
}

fn main() -> AnyResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [algorithm, points, k, seed] = &arguments[..] else {
        return Err("usage: ALGORITHM POINTS.npy CLUSTERS SEED".into());
    };
    let (k, seed) = (k.parse()?, seed.parse()?);
    match ndarray_npy::read_npy::<_, Array2<f32>>(points) {
        Ok(x) => fit(&x, algorithm, k, seed),
        Err(_) => fit(&ndarray_npy::read_npy::<_, Array2<u8>>(points)?, algorithm, k, seed),
    }
}
