//! A seeder of any number of seeds, which may be anywhere.

use super::wrong;
use crate::bytes::Bytes;
use coremix::Float;
use coremix::data::View;
use coremix::prelude::*;
use coremix::seed::{Seeder, Seeds};
use coremix::stage::{Rng, Stage};

/// Seeds at these rows, or at the first ones, with wrong numbers in some.
#[derive(Clone, Debug)]
pub(crate) struct LyingSeeder {
    /// This many seeds instead of one per cluster.
    count: Option<usize>,
    /// Steps from one row to the next.
    step: usize,
    /// Seeds, coordinates, and what is put there.
    spoiled: Vec<(usize, usize, f64)>,
    evaluations: u64,
}

impl LyingSeeder {
    /// The truth: seeds at the first rows.
    pub(crate) fn honest() -> Self {
        Self {
            count: None,
            step: 1,
            spoiled: Vec::new(),
            evaluations: 0,
        }
    }

    pub(crate) fn new(bytes: &mut Bytes<'_>) -> Self {
        Self {
            count: bytes.one_in(3).then(|| bytes.below(20)),
            step: bytes.below(7),
            spoiled: (0..bytes.few(3))
                .map(|_| (bytes.below(12), bytes.below(6), wrong(bytes)))
                .collect(),
            evaluations: bytes.choose(&[0, 7, u64::MAX]),
        }
    }
}

impl Stage for LyingSeeder {}

impl<F: Float> Seeder<F> for LyingSeeder {
    fn seed(&self, view: View<'_, F>, k: usize, _: &mut Rng) -> Result<Seeds<F>> {
        let rows = 0..self.count.unwrap_or(k);
        let rows: Vec<usize> = rows.map(|c| c * self.step % view.data.len()).collect();
        let mut seeds = Seeds::at_rows(view, &rows, self.evaluations)?;
        seeds.centres.update(|c, row| {
            for (_, place, value) in self.spoiled.iter().filter(|(seed, ..)| *seed == c) {
                let last = row.len().saturating_sub(1);
                row[last.min(*place)] = F::from_f64(*value);
            }
        });
        Ok(seeds)
    }
}
