use coremix::{algorithms, prelude::*};
use ndarray::Array2;
use std::time::Instant;
fn main() {
    let name = std::env::args().nth(1).unwrap();
    let k: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let n1: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    let g: usize = std::env::args().nth(4).unwrap().parse().unwrap();
    let r: usize = std::env::args().nth(5).unwrap().parse().unwrap();
    let m: usize = std::env::args().nth(6).unwrap().parse().unwrap();
    let init: usize = std::env::args().nth(7).unwrap().parse().unwrap();
    let reference: f64 = std::env::args().nth(8).unwrap().parse().unwrap();
    let x: Array2<f32> = ndarray_npy::read_npy(format!("../shared/data/{name}.npy")).unwrap();
    for seed in 1..=3 {
        let t = Instant::now();
        let data = Dense::new(x.view()).unwrap();
        let t0 = t.elapsed();
        if n1 > 0 {
            let fit = algorithms::vc_gmm(k, n1, g, g)
                .seeder(AfkMc2::new(m))
                .e_step(
                    Neighborhood::new(g, g)
                        .start(if std::env::var("SEEDS").is_ok() {
                            Start::Seeds
                        } else {
                            Start::Random
                        })
                        .random(r)
                        .initial_searches(init),
                )
                .seed(seed)
                .tolerance(std::env::var("TOL").map_or(1e-4, |t| t.parse().unwrap()))
                .build()
                .unwrap()
                .fit(&data)
                .unwrap();
            let t = t.elapsed();
            println!(
                "vc {:?} check {:?} q {:+.4}\n{}",
                t,
                t0,
                fit.model.quantization_error(&data).unwrap() / reference - 1.0,
                fit.report
            );
        }
        let t = Instant::now();
        let data = Dense::new(x.view()).unwrap();
        let fit = if n1 > 0 {
            algorithms::var_gmm_s(k, g, g)
                .seeder(AfkMc2::new(m))
                .e_step(
                    Neighborhood::new(g, g)
                        .start(if std::env::var("SEEDS").is_ok() {
                            Start::Seeds
                        } else {
                            Start::Random
                        })
                        .random(r)
                        .initial_searches(init),
                )
                .seed(seed)
                .tolerance(std::env::var("TOL").map_or(1e-4, |t| t.parse().unwrap()))
                .build()
                .unwrap()
                .fit(&data)
                .unwrap()
        } else {
            algorithms::k_means(k)
                .seeder(KMeansPlusPlus::new())
                .seed(seed)
                .tolerance(std::env::var("TOL").map_or(1e-4, |t| t.parse().unwrap()))
                .build()
                .unwrap()
                .fit(&data)
                .unwrap()
        };
        let t = t.elapsed();
        println!(
            "var/km {:?} check {:?} q {:+.4}\n{}",
            t,
            t0,
            fit.model.quantization_error(&data).unwrap() / reference - 1.0,
            fit.report
        );
    }
}
