//! A fit in Rust, for the test that compares it with the same fit in Python: rows of a `.npy` file in, a model file out.
//!
//! `same_bits ROWS.npy f32|f64 ALGORITHM CLUSTERS SEED MODEL.cmx [FAMILY|COORDINATES|refined]`

use coremix::prelude::*;
use ndarray::Array2;
use std::error::Error as StdError;

use coremix::ndarray;

fn fit<F: coremix::Element<Float = F> + coremix::Float + ndarray_npy::ReadableElement>(
    arguments: &[String],
) -> std::result::Result<(), Box<dyn StdError>> {
    let rows: Array2<F> = ndarray_npy::read_npy(&arguments[0])?;
    let algorithm: Algorithm = arguments[2].parse()?;
    let seed = arguments[4].parse()?;
    let mut algorithm = algorithm.clusters(arguments[3].parse()?).seed(seed);
    let last = arguments.get(6).map(String::as_str);
    algorithm = match last {
        Some("diag") => algorithm.covariance(Covariance::Diagonal),
        Some("spherical") => algorithm.covariance(Covariance::Spherical),
        Some("refined") => algorithm.refined(true),
        _ => algorithm,
    };
    let path = &arguments[5];
    match last.and_then(|q| q.parse().ok()) {
        Some(q) => {
            let sketch = Sketch::new(rows.view(), q, seed)?;
            let model = algorithm.boxed::<F>()?.fit(&sketch)?.model;
            model.save(path)?;
        }
        None => {
            let data = Dense::new(&rows)?;
            let model = algorithm.boxed::<F>()?.fit(&data)?.model;
            model.save(path)?;
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() < 6 {
        return Err("six arguments or seven: see the head of the file".into());
    }
    match &arguments[1][..] {
        "f64" => fit::<f64>(&arguments),
        _ => fit::<f32>(&arguments),
    }
}
