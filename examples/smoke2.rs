//! x
use coremix::{algorithms, prelude::*};
use ndarray::Array2;
fn main() {
    let x: Array2<f32> = ndarray_npy::read_npy("../shared/data/kdd04bio.npy").unwrap();
    let data = Dense::new(x.view()).unwrap();
    for m in [1, 2, 5, 20, 100] {
        let mut qs = vec![];
        for seed in 1..=4 {
            let fit = algorithms::k_means(500)
                .seeder(AfkMc2::new(m))
                .max_iterations(0)
                .seed(seed)
                .build()
                .unwrap()
                .fit(&data)
                .unwrap();
            qs.push(format!(
                "{:.3}",
                fit.model.quantization_error(&data).unwrap() / 1.116946e11
            ));
        }
        println!("m={m} {qs:?}");
    }
    let mut qs = vec![];
    for seed in 1..=3 {
        let fit = algorithms::k_means(500)
            .max_iterations(0)
            .seed(seed)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        qs.push(format!(
            "{:.3}",
            fit.model.quantization_error(&data).unwrap() / 1.116946e11
        ));
    }
    println!("++ {qs:?}");
    for seed in 1..=3 {
        let t = std::time::Instant::now();
        let fit = algorithms::k_means(500)
            .seed(seed)
            .build()
            .unwrap()
            .fit(&data)
            .unwrap();
        println!(
            "km {:.4} {:?}\n{}",
            fit.model.quantization_error(&data).unwrap() / 1.116946e11,
            t.elapsed(),
            fit.report
        );
    }
}
