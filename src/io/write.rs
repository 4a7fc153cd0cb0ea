//! A model as the bytes of a file: what all families have, then the sections of its own.

use super::info::{ModelInfo, check_notes};
use super::sections::{Stream, write_to};
use super::{MODEL, signs_of};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::data::{Centres, Frame, Transform};
use ndarray::ArrayView2;

/// The bytes of a model of this family. `means` (k, columns) are those that the model gives; they are stored if they do not
/// follow from the centres bit for bit. `fill` writes the sections of the family; it is called twice.
pub(crate) fn model<F: Float>(
    family: &'static str,
    (centres, frame): (&Centres<F>, &Frame<F>),
    means: ArrayView2<'_, F>,
    notes: &[(&str, &str)],
    fill: &dyn Fn(&mut Stream<'_>),
) -> Result<Vec<u8>> {
    let info = ModelInfo {
        format: MODEL.version,
        crate_version: env!("CARGO_PKG_VERSION").to_string(),
        family: family.to_string(),
        number: F::NAME.to_string(),
        components: centres.len(),
        coordinates: centres.dim(),
        columns: frame.columns(),
        notes: check_notes(notes)?,
    };
    let left = centres.leave(frame);
    let bits = |x: &F| x.to_f64().to_bits();
    let follow = left.iter().map(bits).eq(means.iter().map(bits));
    let sections = |out: &mut Stream<'_>| {
        write_frame(frame, out);
        centres.write("centres", out);
        if !follow {
            out.section("means", means.len(), means.iter().copied());
        }
        fill(out);
    };
    let mut bytes = Vec::new();
    let written = write_to(&mut bytes, (&MODEL, &info.text()), &sections);
    written.map_err(|error| FileFault::from(error).of_bytes())?;
    Ok(bytes)
}

fn write_frame<F: Float>(frame: &Frame<F>, out: &mut Stream<'_>) {
    let dim = frame.dim();
    out.numbers("frame exponent", &[i64::from(frame.exponent())]);
    out.numbers("frame offset", &frame.offset()[..dim]);
    out.numbers("frame mean", &frame.mean()[..dim]);
    if let Some(basis) = frame.basis() {
        let transform = match basis.transform() {
            Transform::Cosine => 0,
            Transform::Hadamard => 1,
        };
        let (seed, columns) = (basis.seed(), basis.columns() as u64);
        out.numbers("basis", &[seed, transform, columns, signs_of(basis)]);
    }
}
