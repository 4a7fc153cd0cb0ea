//! The liars that the tests of the core have as well, with lies by the bytes of an input.

use super::data::{Lie, LyingData};
use super::family::{Lies, LyingFamily};
use super::wrong;
use crate::bytes::Bytes;
use coremix::costs::Factor;
use coremix::data::{Data, RowKind};
use coremix::prelude::*;

impl<'a> LyingData<'a> {
    pub(crate) fn drawn(inner: &'a Dense<'a, f64>, bytes: &mut Bytes<'_>) -> Self {
        let value = wrong(bytes);
        let (n, d) = (inner.len(), inner.dim());
        // Not beyond any table: rows are read for as long as data says that there are more.
        let number = |bytes: &mut Bytes<'_>, known: usize| {
            let off = [known, 0, 1, known + 1, known.saturating_sub(1), known + 600];
            bytes.choose(&off)
        };
        let lie = match bytes.below(13) {
            0 => Lie::Count(bytes.choose(&[-1, 1, 600])),
            1 => Lie::Untouched,
            2 => Lie::Value(value),
            3 => Lie::Weight(value),
            4 => Lie::Asked(value),
            5 => Lie::Shifted,
            6 => Lie::Shape(number(bytes, n), number(bytes, d)),
            7 => match bytes.below(8) {
                4 => Lie::Summary(4, bytes.choose(&[0.0, n as f64 + 1.0, 2f64.powi(70)])),
                place => Lie::Summary(place, value),
            },
            8 => Lie::Selected(bytes.below(4), value),
            9 => Lie::Weights(bytes.choose(&[-1, 1, 600])),
            10 => Lie::Unread,
            11 => Lie::Frame(value),
            _ => Lie::Kind(bytes.choose(&[RowKind::Partial, RowKind::Sparse])),
        };
        let from = match bytes.below(2) {
            0 => 0,
            _ => bytes.below(40),
        };
        Self::new(inner, lie, from)
    }
}

impl LyingFamily {
    pub(crate) fn drawn(bytes: &mut Bytes<'_>) -> Self {
        let mut lies = Lies::default();
        for _ in 0..1 + bytes.few(2) {
            let off = bytes.choose(&[-1, 1, -1000, 3]);
            match bytes.below(14) {
                0 => lies.cost = Some((bytes.below(60), wrong(bytes))),
                1 => lies.costs = off,
                2..=4 => {
                    lies.factor = Some(Factor {
                        factor: wrong(bytes),
                        per_coordinate: wrong(bytes),
                        added: wrong(bytes),
                    })
                }
                5 => lies.log_joint = Some((bytes.below(3), wrong(bytes))),
                6 => lies.prior_terms = wrong(bytes),
                7 => lies.components = off,
                8 => (lies.components, lies.only_later) = (off, true),
                9 => lies.mean = Some((bytes.below(12), wrong(bytes))),
                10 => lies.variances = Some((bytes.below(9), bytes.below(9))),
                11 => lies.proportions = Some(wrong(bytes)),
                12 => {
                    lies.restricted = bytes.choose(&[1, usize::MAX]);
                    lies.searches_first = bytes.one_in(2);
                }
                _ => lies.refuses = bytes.one_in(2),
            }
        }
        lies.into()
    }
}
