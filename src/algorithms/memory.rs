//! How much memory fits take beside their rows, from the sizes of what they store.

use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::e_step::{Change, Member};
use crate::em::{MOST_NUMBERS, MOST_SHARDS, PhaseRows};
use crate::fit::{Columns, Phase, Shape};

/// What the sizes depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    shape: Shape,
    /// Bytes of a number.
    number: usize,
    /// Bytes per row where rows have bounds: members are there up to four times while they are sorted, and change once.
    bounds: usize,
}

/// Bytes per row of a coreset beside its numbers: which row it is, and its weight, in the rows and for a checkpoint as well.
const CHOSEN: usize = 2 * size_of::<usize>() + 3 * size_of::<f64>();

/// Bytes per draw: the random number, the row twice, and its weight.
const DRAWN: usize = 2 * size_of::<f64>() + 2 * size_of::<usize>();

/// Models beside the sums of shards, of as many numbers.
const MODELS: usize = 8;

/// Bytes of pairs of components that a row brings together, until they are summed up: on few rows and components most.
const PAIRS: usize = 200;

/// Small things.
const LITTLE: usize = 1 << 20;

impl Sizes {
    pub(super) fn of<F: Float>(shape: Shape) -> Self {
        Self {
            shape,
            number: size_of::<F>(),
            bounds: 4 * size_of::<Member<F>>() + size_of::<Change>(),
        }
    }

    /// Labels, and supports of so many members: 0 where they are full.
    pub(super) fn supports(rows: usize, members: usize) -> usize {
        rows * (1 + members) * size_of::<u32>()
    }

    /// Sums of all shards, with `second` moments per component, and models.
    pub(super) fn sums(self, second: usize) -> usize {
        let Shape {
            columns, clusters, ..
        } = self.shape;
        let numbers = clusters.saturating_mul(columns + 2 + second);
        let all = numbers.saturating_mul(MOST_SHARDS + MODELS);
        let all = all.min(MOST_NUMBERS.max(numbers.saturating_mul(2)));
        all.saturating_mul(size_of::<f64>()) + LITTLE
    }

    /// Blocks of rows with their scores, of all threads: no phase may depend on it.
    pub(super) fn blocks(self) -> usize {
        let Shape {
            columns, clusters, ..
        } = self.shape;
        let wide = columns + clusters.min(BLOCK);
        2 * parallel::threads() * BLOCK * wide * self.number
    }

    /// A coreset: its rows, and what it is drawn by.
    pub(super) fn coreset(self, draws: usize) -> usize {
        let draws = draws.min(self.shape.rows);
        self.selected(draws) + self.drawing(draws)
    }

    fn selected(self, draws: usize) -> usize {
        draws * (self.number * self.shape.columns + CHOSEN)
    }

    fn drawing(self, draws: usize) -> usize {
        draws * DRAWN + self.shape.rows * self.number
    }

    /// Phases of [`fast`](super::fast) and the like, from a coreset of `first` rows.
    pub(super) fn phases<F: Float>(self, phases: &[Phase<F>], first: usize) -> usize {
        let all = self.shape.rows;
        // What stays: coresets, and rows in a subspace.
        let (mut kept, mut before, mut peak) = (0, 0, 0);
        for phase in phases {
            let rows = match phase.outline.rows {
                PhaseRows::Coreset => first.min(all),
                PhaseRows::Larger(larger) => larger.draws(),
                PhaseRows::All => all,
            };
            if rows != before {
                if rows < all {
                    peak = peak.max(kept + self.drawing(rows));
                    kept += self.selected(rows);
                }
                if let Columns::Principal(coordinates) = phase.outline.columns {
                    kept += rows * self.number * coordinates;
                }
                before = rows;
            }
            let per_row = match phase.e_step.bounds() {
                Some(_) => self.bounds,
                None => Self::supports(1, 1),
            };
            peak = peak.max(kept + rows * per_row);
        }
        peak + self.sums(0)
    }

    /// Per row while seeds are drawn: squared distances, and for chains a density twice.
    pub(super) fn seeding(self, chains: bool) -> usize {
        self.number + if chains { 2 * size_of::<f64>() } else { 0 }
    }

    /// Per row where rows are searched in the order of their components: the order, twice, and pairs of components.
    pub(super) fn in_order(self) -> usize {
        2 * size_of::<usize>() + PAIRS
    }

    /// All rows in memory.
    pub(super) fn rows(self) -> usize {
        let Shape { rows, columns, .. } = self.shape;
        rows * columns * self.number
    }
}
