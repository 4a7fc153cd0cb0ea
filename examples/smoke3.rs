//! x
use coremix::{algorithms, prelude::*};
use ndarray::Array2;
fn main() {
    for (n, k, n1, phi) in [
        ("song", 1000, 16384, 2.495159e11),
        ("kdd04bio", 500, 8192, 1.116946e11),
    ] {
        let x: Array2<f32> = ndarray_npy::read_npy(format!("../shared/data/{n}.npy")).unwrap();
        let data = Dense::new(x.view()).unwrap();
        for full in [false, true] {
            let r: Vec<f64> = (1..=4)
                .map(|s| {
                    let q = if full {
                        algorithms::var_gmm_s(k, 5, 5)
                            .seeder(AfkMc2::new(2))
                            .seed(s)
                            .build()
                            .unwrap()
                            .fit(&data)
                            .unwrap()
                            .model
                            .quantization_error(&data)
                            .unwrap()
                    } else {
                        algorithms::vc_gmm(k, n1, 5, 5)
                            .seeder(AfkMc2::new(2))
                            .seed(s)
                            .build()
                            .unwrap()
                            .fit(&data)
                            .unwrap()
                            .model
                            .quantization_error(&data)
                            .unwrap()
                    };
                    100.0 * (q / phi - 1.0)
                })
                .collect();
            println!(
                "{n} {full} mean {:.2} {:?}",
                r.iter().sum::<f64>() / 4.0,
                r.iter().map(|r| format!("{r:.2}")).collect::<Vec<_>>()
            );
        }
    }
}
