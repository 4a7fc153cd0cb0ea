//! x
use coremix::{Element, algorithms, prelude::*};
use ndarray::Array2;
fn run<T: Element>(
    x: Array2<T>,
    name: &str,
    k: usize,
    n1: usize,
    g: usize,
    r: usize,
    m: usize,
    phi: f64,
    var: bool,
) {
    let data = Dense::new(x.view()).unwrap();
    for full in [false, true] {
        if full && !var {
            continue;
        }
        let mut e = vec![];
        let mut ev = 0;
        for seed in 1..=5 {
            let es = Neighborhood::new(g, g).random(r);
            let (q, n) = if full {
                let f = algorithms::var_gmm_s(k, g, g)
                    .seeder(AfkMc2::new(m))
                    .e_step(es)
                    .seed(seed)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap();
                (
                    f.model.quantization_error(&data).unwrap(),
                    f.report.evaluations.search,
                )
            } else {
                let f = algorithms::vc_gmm(k, n1, g, g)
                    .seeder(AfkMc2::new(m))
                    .e_step(es)
                    .seed(seed)
                    .build()
                    .unwrap()
                    .fit(&data)
                    .unwrap();
                (
                    f.model.quantization_error(&data).unwrap(),
                    f.report.evaluations.search,
                )
            };
            e.push(100.0 * (q / phi - 1.0));
            ev += n / 5;
        }
        let mean = e.iter().sum::<f64>() / 5.0;
        let se = (e.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20.0).sqrt();
        println!(
            "{name} {k} G={g}+{r} m={m} {} {mean:+.2} ({se:.2}) evals {ev}",
            if full { "var" } else { "vc" }
        );
    }
}
fn main() {
    let var = std::env::args().nth(1).is_some();
    let read = |n: &str| -> Array2<f32> {
        ndarray_npy::read_npy(format!("../shared/data/{n}.npy")).unwrap()
    };
    run(
        read("kdd04bio"),
        "kdd",
        500,
        8192,
        5,
        0,
        2,
        1.116946e11,
        var,
    );
    run(
        read("kdd04bio"),
        "kdd",
        500,
        8192,
        5,
        0,
        20,
        1.116946e11,
        var,
    );
    run(read("song"), "song", 1000, 16384, 5, 0, 2, 2.495159e11, var);
    let x: Array2<u8> = ndarray_npy::read_npy("../shared/data/mnist_u8.npy").unwrap();
    run(x, "mnist", 500, 8192, 5, 0, 2, 1.020308e11, var);
    run(
        read("cod_rna"),
        "cod",
        500,
        32768,
        5,
        0,
        20,
        1.157249e6,
        var,
    );
    run(
        read("cod_rna"),
        "cod",
        500,
        32768,
        3,
        1,
        20,
        1.157249e6,
        var,
    );
}
