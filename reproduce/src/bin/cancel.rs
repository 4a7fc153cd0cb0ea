//! How long a fit takes to end once its time is up, for every named algorithm and for full and tied covariances, in every stage.
//!
//! `cargo run --release -p reproduce --bin cancel -- [ROWS COLUMNS CLUSTERS]` on generated rows; 145,751 x 74 and 2,000
//! clusters unless told, the shape of kdd04bio. Prints the longest delay, and at which times fits were cancelled, in seconds.

use coremix::Estimator;
use coremix::prelude::*;
use ndarray::Array2;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// When fits are cancelled, in seconds.
const TIMES: [f64; 10] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|a| a.parse())
        .collect::<std::result::Result<_, _>>()?;
    let (n, d, k) = match arguments[..] {
        [] => (145_751, 74, 2_000),
        [n, d, k] => (n, d, k),
        _ => return Err("ROWS COLUMNS CLUSTERS".into()),
    };
    let rows = Array2::from_shape_fn((n, d), |(n, j)| 10.0 * noise(n % k, j) + noise(k + n, j));
    let data = Dense::new(&rows)?;
    let sketch = Sketch::new(rows.view(), d.div_ceil(4), 1)?;
    for name in Algorithm::NAMES {
        match name {
            "sparsified-gmm" => measure(name, None, &sketch, k)?,
            // Full covariances of 2,000 components would not fit on a small machine.
            "dp-gmm" => measure(name, None, &data, k.min(100))?,
            _ => measure(name, None, &data, k)?,
        }
    }
    for kind in [Covariance::Full, Covariance::Tied] {
        measure("gmm", Some(kind), &data, k.min(100))?;
    }
    Ok(())
}

/// Between 0 and 1, as good as random.
fn noise(n: usize, j: usize) -> f32 {
    let mixed = (n as u64 * 1_000_003 + j as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f32 / (1 << 24) as f32
}

fn measure<F: coremix::Float>(
    name: &str,
    covariance: Option<Covariance>,
    data: &dyn Data<F>,
    k: usize,
) -> Result<()> {
    let mut line = Vec::new();
    let mut longest = 0.0f64;
    for time in TIMES {
        let algorithm = name.parse::<Algorithm>()?.clusters(k);
        let mut algorithm = algorithm.tolerance(0.0);
        if let Some(kind) = covariance {
            algorithm = algorithm.covariance(kind);
        }
        let started = Instant::now();
        let cancel = Cancel::after(Duration::from_secs_f64(time));
        let boxed: Box<dyn Estimator<F>> = algorithm.cancel(&cancel).boxed()?;
        let mut stage = "coreset";
        let found = boxed.fit_observed(data, &mut |progress| {
            stage = match progress {
                Progress::Coreset { .. } => "seeding",
                _ => "search",
            };
            ControlFlow::Continue(())
        });
        let late = started.elapsed().as_secs_f64() - time;
        match found {
            Ok(fit) if fit.report.stop != Stop::Cancelled => {
                line.push(format!("finished before {time}"));
                break;
            }
            Ok(_) | Err(Error::Cancelled) => longest = longest.max(late),
            Err(error) => return Err(error),
        }
        line.push(format!("{time} {stage} {late:.3}"));
    }
    let kind = covariance.map_or(String::new(), |kind| format!(", {kind:?}"));
    let name = format!("{name}{kind}");
    println!("{name:16} {longest:.3}  ({})", line.join(", "));
    Ok(())
}
