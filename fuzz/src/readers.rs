//! Files of any bytes: an error, or rows and models that answer.

use crate::bytes::Bytes;
use crate::damage::{damaged, repaired};
use crate::sound;
use crate::table::{FloatOf, Number};
use coremix::data::{Blocks, Data, Source};
use coremix::ndarray::Array2;
use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{BoxedMixture, Float, ModelInfo};
use coremix_files::{NpyFile, VectorFile, VectorFormat};

pub(crate) fn run(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    match bytes.below(8) {
        0 => rows::<u8>(bytes),
        1 => rows::<f32>(bytes),
        2 => rows::<f64>(bytes),
        3 => loaded::<f32>(bytes.rest().to_vec()),
        4 => loaded::<f32>(repaired(bytes.rest().to_vec())),
        5 => loaded::<f64>(repaired(bytes.rest().to_vec())),
        6 => loaded::<f32>(model::<f32>(bytes)),
        _ => loaded::<f64>(model::<f64>(bytes)),
    }
}

// ---- Rows of numbers ------------------------------------------------------------------------------------

fn rows<T: Number>(mut bytes: Bytes<'_>) {
    let formats = [
        VectorFormat::Fvecs,
        VectorFormat::Bvecs,
        VectorFormat::Fbin,
        VectorFormat::U8bin,
    ];
    let format = bytes.below(6);
    let file = bytes.rest().to_vec();
    let length = file.len();
    match formats.get(format) {
        Some(format) => source::<T, _>(VectorFile::<T>::over(file, *format), length),
        None => source::<T, _>(NpyFile::<T>::over(file), length),
    }
}

/// Reads a source over `length` bytes.
fn source<T: Number, S: Source<Element = T>>(opened: Result<S>, length: usize) {
    let Ok(source) = opened.map_err(|error| assert!(!error.to_string().is_empty())) else {
        return;
    };
    let (n, d) = (source.len(), source.dim());
    let numbers = n.checked_mul(d).expect("numbers that can be counted");
    assert!(
        numbers <= length,
        "{n} rows of {d} numbers in {length} bytes"
    );
    let bits = |x: &T| x.widen().to_f64().to_bits();
    let mut whole = vec![T::POISON; numbers];
    let read = source.read(0, &mut whole);
    if d > 0 && n > 0 {
        let mut row = vec![T::POISON; d];
        assert!(
            source.read(n, &mut row).is_err(),
            "a row after the last one"
        );
        for first in (0..n).rev().take(4) {
            let alone = source.read(first, &mut row);
            if read.is_ok() {
                alone.expect("a row of rows that were read");
                let same = row
                    .iter()
                    .map(bits)
                    .eq(whole[first * d..][..d].iter().map(bits));
                assert!(same, "row {first} is another one alone");
            }
        }
    }
    // Numbers that no data may have are an error; so are rows that cannot be read.
    let Ok(data) = Blocks::new(source) else {
        return;
    };
    assert!(read.is_ok(), "rows that could not be read became data");
    let fit = "k-means".parse::<Algorithm>().expect("a name");
    let fit = fit.clusters(1).boxed::<FloatOf<T>>().expect("settings");
    sound::fit(&fit.fit(&data).expect("a fit"), &data);
}

// ---- Models ---------------------------------------------------------------------------------------------

/// The file of a fitted model after some accidents.
fn model<F: Number + Float>(mut bytes: Bytes<'_>) -> Vec<u8> {
    let (d, k) = (1 + bytes.below(4), 1 + bytes.below(3));
    let mut rng = Rng::from_seed(u64::from(bytes.byte()));
    let x = Array2::from_shape_fn((12, d), |_| F::from_f64(rng.normal()));
    let kind = bytes.below(8);
    let name = match kind {
        6 => "dp-gmm",
        7 => "table",
        _ => "gmm",
    };
    let mut algorithm: Algorithm = name.parse().expect("a name");
    algorithm = algorithm.clusters(k).max_iterations(bytes.few(3));
    let families = [
        Covariance::TiedSpherical,
        Covariance::Spherical,
        Covariance::Diagonal,
        Covariance::Tied,
        Covariance::Full,
        if d > 1 {
            Covariance::Factors(1)
        } else {
            Covariance::Diagonal
        },
    ];
    match families.get(kind) {
        Some(family) => algorithm = algorithm.covariance(*family),
        None if name == "table" => algorithm = algorithm.covariance(Covariance::Full),
        None => {}
    }
    let fit = algorithm.boxed().expect("settings");
    let fit = match bytes.one_in(3) && kind < 3 {
        true => {
            let mut sketch = Sketch::<F>::builder(d, d, 9);
            sketch.push(x.view()).expect("rows");
            fit.fit(&sketch.finish().expect("a sketch"))
        }
        false => fit.fit(&Dense::new(&x).expect("data")),
    };
    let saved = fit.expect("a fit").model.to_bytes(&[("of", "rows")]);
    damaged(saved.expect("a family of the crate"), 0, &mut bytes)
}

/// Bytes that may be a model: one that answers, and whose file is the same again.
fn loaded<F: Number + Float>(file: Vec<u8>) {
    let info = ModelInfo::read_from(&file[..]);
    let Ok(model) = BoxedMixture::<F>::from_bytes(&file) else {
        return;
    };
    let info = info.expect("the header of a model");
    let means = model.means();
    assert_eq!((info.components, info.columns), means.dim());
    let mut rng = Rng::from_seed(7);
    let x = Array2::from_shape_fn((5, means.ncols()), |_| F::from_f64(rng.normal()));
    answers(&*model, &Dense::new(&x).expect("numbers"));
    model.sample(3, 1).expect("a sample");
    let notes = [("a", "b")];
    let file = model.to_bytes(&notes).expect("a model that was loaded");
    let back = BoxedMixture::<F>::from_bytes(&file).expect("the same model");
    assert_eq!(back.to_bytes(&notes), Ok(file));
    if let Some(basis) = model.frame().basis() {
        let x = Array2::<F>::ones((3, basis.columns()));
        let mut sketch = Sketch::<F>::builder(basis.columns(), 1, basis.seed());
        sketch.push(x.view()).expect("rows");
        answers(&*model, &sketch.finish().expect("a sketch"));
    }
}

/// Asks a model that may have any finite parameters: scores may leave the range of numbers.
fn answers<F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) {
    let labels = model.predict(data).expect("labels");
    assert!(labels.iter().all(|c| (*c as usize) < model.components()));
    model.responsibilities(data).expect("responsibilities");
    model.log_densities(data).expect("densities");
    model.score(data).ok();
}
