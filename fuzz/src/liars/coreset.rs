//! A coreset of any rows with any weights.

use super::wrong;
use crate::bytes::Bytes;
use coremix::Float;
use coremix::coreset::{Coreset, Subset};
use coremix::data::View;
use coremix::prelude::*;
use coremix::stage::{Rng, Stage};

/// A coreset that returns this, whatever the data are.
#[derive(Clone, Debug)]
pub(crate) enum LyingCoreset {
    /// All rows as they are: the truth.
    All,
    Chosen(Subset),
    /// An error of its own.
    Refuses,
}

impl LyingCoreset {
    /// A lie about data of `rows` rows.
    pub(crate) fn new(rows: usize, bytes: &mut Bytes<'_>) -> Self {
        match bytes.byte() {
            0..=7 => return Self::Refuses,
            8..=15 => return Self::All,
            _ => {}
        }
        let count = bytes.below(64);
        let row = |bytes: &mut Bytes<'_>| match bytes.byte() {
            255 => usize::MAX,
            254 => rows,
            byte => usize::from(byte) % rows.max(1),
        };
        let weight = |bytes: &mut Bytes<'_>| match bytes.byte() {
            byte @ 0..=247 => f64::from(byte) / 16.0,
            _ => wrong(bytes),
        };
        let weights = match bytes.one_in(8) {
            true => count + 1,
            false => count,
        };
        Self::Chosen(Subset {
            rows: (0..count).map(|_| row(bytes)).collect(),
            weights: (0..weights).map(|_| weight(bytes)).collect(),
            evaluations: bytes.choose(&[0, 7, u64::MAX]),
        })
    }
}

impl Stage for LyingCoreset {}

impl<F: Float> Coreset<F> for LyingCoreset {
    fn sample(&self, _: View<'_, F>, _: &mut Rng) -> Result<Option<Subset>> {
        match self {
            Self::All => Ok(None),
            Self::Chosen(subset) => Ok(Some(subset.clone())),
            Self::Refuses => Err(Error::Empty { what: "patience" }),
        }
    }
}
