//! A search that leaves out rows, names components that do not exist, and says what is not so.

use crate::bytes::Bytes;
use coremix::Float;
use coremix::data::Rows;
use coremix::e_step::{EStep, Search};
use coremix::prelude::*;
use coremix::stage::{Block, Rng, Stage};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The width of supports, honest or not.
#[derive(Clone, Copy, Debug)]
enum Width {
    Honest(usize),
    Always(usize),
    /// Another one each time it is asked for.
    Growing,
}

/// The action for a row.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Looks at all components.
    All,
    /// Looks at the components of a list.
    Listed,
    Nothing,
    /// Sets another row of the block, or one behind it.
    Row(usize),
    /// Compares with rows of no block.
    NoRows,
}

/// A search with a list of deeds, one for each of as many rows.
#[derive(Debug)]
pub(crate) struct LyingSearch {
    width: Width,
    ids: Vec<u32>,
    deeds: Vec<Deed>,
    initial_searches: usize,
    is_exact: bool,
    by_component: bool,
    bounds: Option<usize>,
    evaluations: u64,
    asked: AtomicUsize,
}

impl LyingSearch {
    pub(crate) fn new(bytes: &mut Bytes<'_>) -> Self {
        let id = |bytes: &mut Bytes<'_>| match bytes.byte() {
            255 => u32::MAX,
            254 => u32::MAX - 1,
            byte => u32::from(byte) % 13,
        };
        let deeds = [
            Deed::All,
            Deed::All,
            Deed::Listed,
            Deed::Nothing,
            Deed::NoRows,
        ];
        let deed = |bytes: &mut Bytes<'_>| match bytes.byte() {
            byte @ 248..=255 => Deed::Row([0, 1, 511, usize::MAX][usize::from(byte) % 4]),
            byte @ 240..=247 => deeds[usize::from(byte) % deeds.len()],
            byte => deeds[usize::from(byte) % 2],
        };
        Self {
            width: match bytes.byte() {
                255 => Width::Growing,
                254 => Width::Always(usize::MAX),
                byte @ 240..=253 => Width::Always(usize::from(byte) % 14),
                byte => Width::Honest(1 + usize::from(byte) % 4),
            },
            ids: (0..bytes.few(12)).map(|_| id(bytes)).collect(),
            deeds: (0..1 + bytes.few(20)).map(|_| deed(bytes)).collect(),
            initial_searches: bytes.few(2) * usize::from(bytes.one_in(4)),
            is_exact: bytes.one_in(4),
            by_component: bytes.one_in(4),
            bounds: bytes.one_in(16).then(|| bytes.few(20)),
            evaluations: bytes.choose(&[0, 7, u64::MAX]),
            asked: AtomicUsize::new(0),
        }
    }
}

impl Clone for LyingSearch {
    fn clone(&self) -> Self {
        Self {
            ids: self.ids.clone(),
            deeds: self.deeds.clone(),
            asked: AtomicUsize::new(self.asked.load(Ordering::Relaxed)),
            ..*self
        }
    }
}

impl Stage for LyingSearch {}

impl<F: Float> EStep<F> for LyingSearch {
    fn begin(
        &self,
        model: &dyn Mixture<F>,
        _: Option<&[u8]>,
        _: &mut Rng,
    ) -> Result<Box<dyn Search<F>>> {
        let mut search = self.clone();
        if let Width::Honest(width) = &mut search.width {
            *width = model.components().min(*width);
        }
        Ok(Box::new(search))
    }

    fn bounds(&self) -> Option<usize> {
        self.bounds
    }
}

impl<F: Float> Search<F> for LyingSearch {
    fn width(&self) -> usize {
        match self.width {
            Width::Honest(width) => width,
            Width::Always(width) => width,
            Width::Growing => 1 + self.asked.fetch_add(1, Ordering::Relaxed) % 5,
        }
    }

    fn search(&self, model: &dyn Mixture<F>, rows: &Rows<F>, block: &mut Block<F>, _: &mut Rng) {
        let all: Vec<u32> = (0..model.components() as u32).collect();
        for i in 0..rows.len() {
            match self.deeds[i % self.deeds.len()] {
                Deed::All => block.keep_best(i, model, rows, &all),
                Deed::Listed => block.keep_best(i, model, rows, &self.ids),
                Deed::Nothing => {}
                Deed::Row(step) => {
                    block.keep_best(i.saturating_add(step), model, rows, &all);
                }
                Deed::NoRows => block.keep_best(i, model, &Rows::default(), &all),
            }
        }
    }

    fn is_exact(&self) -> bool {
        self.is_exact
    }

    fn initial_searches(&self) -> usize {
        self.initial_searches
    }

    fn by_component(&self) -> bool {
        self.by_component
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
    }
}
