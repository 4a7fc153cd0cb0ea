//! One task, timed from checked rows to its result, by the library of either side: `run` builds it against both.
//!
//! `TASK POINTS.npy CLUSTERS SEED` prints seconds, a figure of quality and peak memory in KiB. Fits take one of the named
//! algorithms, and the figure is the quantization error. `predict` and `score` take the model of a short fit, whose time is
//! not counted; `score` gives the log-likelihood. `gmm_spherical`, `gmm_diagonal`, `gmm_tied`, `gmm_full` and `gmm_factors` are eight iterations with at
//! most 50 components on at most 50,000 rows and 32 columns, evenly spaced, and give the log-likelihood.

use coremix::prelude::*;
use coremix::{Element, algorithms};
use ndarray::{Array2, ArrayView2, s};
use std::time::Instant;

type AnyResult<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Seconds and quality of a task.
fn run<T: Element>(x: ArrayView2<'_, T>, task: &str, k: usize, seed: u64) -> AnyResult<(f64, f64)> {
    // For a Dirichlet process, the rows that it takes without a coreset of its own.
    let (rows, columns) = match task {
        "dp_gmm" => (20_000, 32),
        _ if task.starts_with("gmm_") => (50_000, 32),
        _ => x.dim(),
    };
    let (rows, step) = (rows.min(x.nrows()), x.ncols().div_ceil(columns));
    let x = x.slice_move(s![..rows, ..;step]);
    let data = Dense::new(x)?;
    let started = Instant::now();
    macro_rules! fit {
        ($builder:expr) => {{
            let fit = $builder.seed(seed).build()?.fit(&data)?;
            let seconds = started.elapsed().as_secs_f64();
            (seconds, fit.model.quantization_error(&data)?)
        }};
    }
    macro_rules! published {
        ($builder:expr) => {
            fit!(
                $builder
                    .stop_rule(Rule::RelativeToFreeEnergy)
                    .tolerance(1e-4)
            )
        };
    }
    let kinds = [
        ("gmm_spherical", Covariance::Spherical),
        ("gmm_diagonal", Covariance::Diagonal),
        ("gmm_tied", Covariance::Tied),
        ("gmm_full", Covariance::Full),
        ("gmm_factors", Covariance::Factors(2)),
    ];
    if let Some((_, kind)) = kinds.iter().find(|(name, _)| *name == task) {
        let mixture = algorithms::gmm(k.min(50)).seeder(AfkMc2::new(20));
        let mixture = mixture.m_step(Gaussian::new(*kind)).max_iterations(8);
        let fit = mixture.seed(seed).build()?.fit(&data)?;
        let seconds = started.elapsed().as_secs_f64();
        return Ok((seconds, fit.model.log_likelihood(&data)?));
    }
    let coreset = if k > 500 { 16_384 } else { 8_192 };
    Ok(match task {
        "fast" => fit!(algorithms::fast(k)),
        "vc_gmm" => published!(algorithms::vc_gmm(k, coreset, 5, 5)),
        "var_gmm_s" => published!(algorithms::var_gmm_s(k, 5, 5)),
        "d_gmm" => published!(algorithms::d_gmm(k, 5, 5).max_iterations(30)),
        // Seeding by k-means++ would take longer than all that is compared.
        "k_means" => published!(
            algorithms::k_means(k)
                .seeder(AfkMc2::new(20))
                .max_iterations(25)
        ),
        "gmm" => published!(algorithms::gmm(k).seeder(AfkMc2::new(20)).max_iterations(8)),
        "dp_gmm" => fit!(algorithms::dp_gmm(20, 1.0).max_iterations(20)),
        "predict" | "score" => {
            let model = algorithms::vc_gmm(k, coreset, 5, 5)
                .seed(seed)
                .build()?
                .fit(&data)?
                .model;
            let started = Instant::now();
            if task == "score" {
                let found = model.log_likelihood(&data)?;
                (started.elapsed().as_secs_f64(), found)
            } else {
                model.predict(&data)?;
                (
                    started.elapsed().as_secs_f64(),
                    model.quantization_error(&data)?,
                )
            }
        }
        other => return Err(format!("{other}: not one of them").into()),
    })
}

fn main() -> AnyResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, points, k, seed] = &arguments[..] else {
        return Err("usage: TASK POINTS.npy CLUSTERS SEED".into());
    };
    let (k, seed) = (k.parse()?, seed.parse()?);
    let (seconds, quality) = match ndarray_npy::read_npy::<_, Array2<f32>>(points) {
        Ok(x) => run(x.view(), task, k, seed)?,
        Err(_) => run(
            ndarray_npy::read_npy::<_, Array2<u8>>(points)?.view(),
            task,
            k,
            seed,
        )?,
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap_or("0").trim().trim_end_matches(" kB");
    println!("{seconds} {quality} {peak}");
    Ok(())
}
