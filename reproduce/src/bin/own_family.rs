//! Seconds of a family from outside: von Mises-Fisher components, as in `examples/own_family_vmf.rs`, whose cost is a squared distance
//! with a factor and an addend. Usage: own_family [ROWS [COLUMNS [CLUSTERS]]]

#[allow(dead_code)]
#[path = "../../../examples/own_family_vmf.rs"]
mod own_family_vmf;

use coremix::prelude::*;
use coremix::stage::Rng;
use ndarray::{Array2, Axis};
use own_family_vmf::{VonMisesFisher, normalise};
use std::time::Instant;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [n, d, k] = reproduce::sizes([50_000, 64, 100])?;
    let mut rng = Rng::from_seed(1);
    let directions = Array2::from_shape_fn((k, d), |_| 3.0 * rng.normal());
    let mut x = Array2::from_shape_fn((n, d), |(i, j)| {
        (directions[[i % k, j]] + rng.normal()) as f32
    });
    for mut row in x.axis_iter_mut(Axis(0)) {
        normalise(row.as_slice_mut().expect("one row after the other"));
    }
    let data = Dense::new(&x)?;
    for (name, builder) in [
        ("all components", algorithms::gmm(k)),
        ("the best one", algorithms::k_means(k)),
        ("three among neighbors", algorithms::var_gmm_s(k, 3, 5)),
    ] {
        let clusterer = builder
            .m_step(VonMisesFisher)
            .tolerance(0.0)
            .max_iterations(10)
            .build()?;
        let started = Instant::now();
        let fit = clusterer.fit(&data)?;
        let (seconds, f) = (
            started.elapsed().as_secs_f64(),
            fit.report.free_energies.last().copied(),
        );
        println!(
            "{name}: {seconds:.2} s, free energy {:.9e}",
            f.unwrap_or(f64::NAN)
        );
    }
    Ok(())
}
