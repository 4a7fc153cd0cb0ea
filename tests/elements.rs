//! Rows stored in small number types: fits are those of the same values in `f32`, bit for bit. A program of its own, since numbers
//! of sixteen bits need the feature `half`, with which the crate would be built a second time: `cargo test --features half --test elements`.

#[path = "all/common/rows.rs"]
mod rows;

use coremix::data::Blocks;
use coremix::prelude::*;
use coremix::{BoxedMixture, Element, Fit, Save};
#[cfg(feature = "half")]
use half::{bf16, f16};
use ndarray::{Array1, Array2};
use rows::{Stored, blobs};

/// Whole numbers that all types hold.
fn whole_numbers(columns: usize) -> Array2<f32> {
    blobs::<f32>(700, columns, 5, 1).mapv(|x| (4.0 * x).round().clamp(0.0, 100.0))
}

/// All that a fit finds, as bits.
fn found(fit: &Fit<BoxedMixture<f32>>) -> (Vec<u8>, Vec<u64>) {
    let free_energies = fit.report.free_energies.iter().map(|f| f.to_bits());
    (fit.model.to_bytes(&[]).unwrap(), free_energies.collect())
}

fn fits_are_those_of_f32<T: Element<Float = f32>>(of: impl Fn(f32) -> T) {
    // Short rows, whole vectors, and rows that end within one.
    for columns in [1, 3, 8, 16, 21] {
        let wide = whole_numbers(columns);
        let narrow = wide.mapv(&of);
        let back = narrow.mapv(|x| x.widen());
        assert_eq!(back, wide);
        let weights: Array1<f64> = (0..700).map(|i| (i % 4) as f64).collect();
        for name in ["fast", "gmm", "vc-gmm", "dp-gmm", "sparsified-gmm"] {
            let fit = |data: &dyn coremix::data::Data<f32>| {
                let algorithm = name.parse::<Algorithm>().unwrap().clusters(5).coreset(400);
                found(&algorithm.boxed().unwrap().fit(data).unwrap())
            };
            let expected = fit(&Dense::weighted(&wide, &weights).unwrap());
            assert!(
                fit(&Dense::weighted(&narrow, &weights).unwrap()) == expected,
                "{name}, {columns}"
            );
            let blocks = Blocks::weighted(Stored(narrow.clone()), weights.to_vec()).unwrap();
            assert!(fit(&blocks) == expected, "{name} from blocks, {columns}");
        }
    }
    let (wide, narrow) = (whole_numbers(24), whole_numbers(24).mapv(&of));
    let (wide, narrow) = (
        Sketch::new(wide.view(), 6, 1).unwrap(),
        Sketch::new(narrow.view(), 6, 1).unwrap(),
    );
    let fit = |data| algorithms::sparsified_gmm(5).fit(data).unwrap().model;
    assert_eq!(fit(&wide), fit(&narrow));
}

#[test]
fn whole_numbers_of_eight_bits() {
    fits_are_those_of_f32(|x| x as u8);
    fits_are_those_of_f32(|x| x as i8);
}

#[cfg(feature = "half")]
#[test]
fn floating_point_numbers_of_sixteen_bits() {
    fits_are_those_of_f32(f16::from_f32);
    fits_are_those_of_f32(bf16::from_f32);
}

/// All values of both types are those of the crate that has the types.
#[cfg(feature = "half")]
#[test]
fn sixteen_bits_are_widened_exactly() {
    let same = |found: f32, expected: f32| {
        found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
    };
    for bits in 0..=u16::MAX {
        let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(same(half.widen(), half.to_f32()), "f16 {bits:#x}");
        assert!(same(brain.widen(), brain.to_f32()), "bf16 {bits:#x}");
    }
}

/// NaN and infinity of these types are found where they are.
#[cfg(feature = "half")]
#[test]
fn what_is_no_number_is_an_error() {
    let mut x = whole_numbers(9).mapv(f16::from_f32);
    x[[3, 7]] = f16::NAN;
    let error = Dense::new(&x).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("row 3") && error.contains("column 7"),
        "{error}"
    );
    x[[3, 7]] = f16::INFINITY;
    assert!(Dense::new(&x).is_err());
    // Numbers below the normal ones of `f16` are numbers.
    x[[3, 7]] = f16::from_bits(1);
    assert_eq!(x[[3, 7]].widen(), 2f32.powi(-24));
    algorithms::k_means(3)
        .fit(&Dense::new(&x).unwrap())
        .unwrap();
}
