//! A model as bytes: sections of numbers, and what is around them.

use super::checksum::Crc64;
use super::info::{ModelInfo, check_notes};
use super::numbers::Number;
use super::sections::head;
use super::{MODEL, signs_of};
use crate::data::{Centres, Frame, Transform};
use crate::error::Result;
use crate::float::Float;
use ndarray::ArrayView2;

/// The bytes of a model, section by section.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Begins with the header and with what all families have: centres and frame. `means` (k, columns) are those that
    /// the model gives; they are stored if they do not follow from the centres bit for bit.
    pub(crate) fn new<F: Float>(
        family: &'static str,
        (centres, frame): (&Centres<F>, &Frame<F>),
        means: ArrayView2<'_, F>,
        notes: &[(&str, &str)],
    ) -> Result<Self> {
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
        let header = info.text();
        // The length of the file is known at its end.
        let mut bytes = MODEL.prefix(0, &header);
        bytes.extend_from_slice(header.as_bytes());
        let mut writer = Self { bytes };
        writer.frame(frame);
        let dim = centres.dim();
        let rows = (0..centres.len()).flat_map(|c| centres.row(c)[..dim].iter().copied());
        writer.section("centres", centres.len() * dim, rows);
        let left = centres.leave(frame);
        let bits = |x: &F| x.to_f64().to_bits();
        if !left.iter().map(bits).eq(means.iter().map(bits)) {
            writer.section("means", means.len(), means.iter().copied());
        }
        Ok(writer)
    }

    fn frame<F: Float>(&mut self, frame: &Frame<F>) {
        let dim = frame.dim();
        self.numbers("frame exponent", &[i64::from(frame.exponent())]);
        self.numbers("frame offset", &frame.offset()[..dim]);
        self.numbers("frame mean", &frame.mean()[..dim]);
        if let Some(basis) = frame.basis() {
            let transform = match basis.transform() {
                Transform::Cosine => 0,
                Transform::Hadamard => 1,
            };
            let (seed, columns) = (basis.seed(), basis.columns() as u64);
            self.numbers("basis", &[seed, transform, columns, signs_of(basis)]);
        }
    }

    /// A section of these numbers.
    pub(crate) fn numbers<N: Number>(&mut self, name: &str, numbers: &[N]) {
        self.section(name, numbers.len(), numbers.iter().copied());
    }

    /// A section of `count` numbers.
    pub(crate) fn section<N: Number>(
        &mut self,
        name: &str,
        count: usize,
        numbers: impl Iterator<Item = N>,
    ) {
        head::<N>(name, count, &mut self.bytes);
        self.bytes.reserve(count * N::SIZE);
        for number in numbers.take(count) {
            number.put(&mut self.bytes);
        }
    }

    /// The file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = (self.bytes.len() + 8) as u64;
        let place = MODEL.magic.len() + size_of_val(&MODEL.version);
        self.bytes[place..place + 8].copy_from_slice(&length.to_le_bytes());
        Crc64::of(&self.bytes).put(&mut self.bytes);
        self.bytes
    }
}
