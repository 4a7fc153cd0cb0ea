//! Milliseconds of an iteration of EM with full supports and tied or full covariances:
//! `covariances ROWS.npy COMPONENTS tied|full`.
//!
//! An iteration is the difference of two fits with 6 and 2 iterations, divided by 4. The first rows are the first means.

use coremix::prelude::*;
use coremix::{Element, Float, algorithms};
use ndarray::{Array2, Axis};
use ndarray_npy::{ReadableElement, read_npy};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, components, kind] = &arguments[..] else {
        panic!("covariances ROWS.npy COMPONENTS tied|full");
    };
    let k = components.parse().expect("a number of components");
    let kind = match &kind[..] {
        "tied" => Covariance::Tied,
        _ => Covariance::Full,
    };
    let ms = match read_npy(path) {
        Ok(x) => iteration::<f32>(x, k, kind),
        Err(_) => iteration::<f64>(read_npy(path).expect("rows of f32 or f64"), k, kind),
    };
    println!("{ms}");
}

fn iteration<F>(x: Array2<F>, k: usize, kind: Covariance) -> f64
where
    F: Float + Element<Float = F> + ReadableElement,
{
    let data = Dense::new(x.view()).expect("finite data");
    let start = x.view().split_at(Axis(0), k).0;
    let seconds = |iterations| {
        let builder = algorithms::gmm(k).covariance(kind).tolerance(0.0);
        let builder = builder.seeder(Given::new(start)).max_iterations(iterations);
        let clusterer = builder.build().expect("valid settings");
        let started = Instant::now();
        let fit = black_box(clusterer.fit(&data).expect("enough rows"));
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(fit.report.iterations, iterations, "the fit ended early");
        seconds
    };
    let few = seconds(2);
    1e3 * (seconds(6) - few) / 4.0
}
