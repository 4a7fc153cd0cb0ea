//! The memory that fits take besides their rows, from the sizes of all that they store: in bytes, for any number of rows.

use crate::base::float::Float;
use crate::base::parallel::{self, BLOCK};
use crate::e_step::{Bounds, Change, Member};
use crate::em::{self, PhaseRows};
use crate::fit::{Columns, Phase, Shape};

#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    shape: Shape,
    /// Bytes of a number of the data.
    number: f64,
    /// Values of a row, where only those that are not 0 are stored.
    stored: Option<f64>,
    /// Per row where rows have bounds: members are there up to four times while they are sorted, and change once.
    bounds: f64,
}

/// Bytes per row of a coreset besides its numbers: which row it is, and its weight, in the rows and for a checkpoint as well.
const CHOSEN: f64 = (2 * size_of::<usize>() + 3 * size_of::<f64>()) as f64;

/// Bytes per draw: the random number, the row twice, and its weight.
const DRAWN: f64 = (2 * size_of::<f64>() + 2 * size_of::<usize>()) as f64;

/// Models held at the same time as the sums of shards; each has as many numbers as the sums of one shard.
const MODELS: usize = 8;

/// Bytes per row for pairs of components that share the row, until these are summed up: most on few rows and components.
const PAIRS: f64 = 200.0;

/// Bytes per column while sparse rows are summed up, some blocks at a time.
const SUMMARY: f64 = 800.0;

const FIXED_BYTES: f64 = (1 << 20) as f64;

impl Sizes {
    pub(super) fn of<F: Float>(shape: Shape) -> Self {
        Self {
            shape,
            number: size_of::<F>() as f64,
            stored: None,
            bounds: (4 * size_of::<Member<F>>() + size_of::<Change>()) as f64,
        }
    }

    /// For rows with this number of stored values in all.
    pub(super) fn sparse(self, stored: usize) -> Self {
        let stored = Some(stored as f64 / self.shape.rows.max(1) as f64);
        Self { stored, ..self }
    }

    /// For another number of such rows.
    pub(super) fn of_rows(self, rows: usize) -> Self {
        let shape = Shape { rows, ..self.shape };
        Self { shape, ..self }
    }

    /// Bytes of a row.
    fn row(self) -> f64 {
        let of_sparse = |stored: f64| stored * (self.number + size_of::<u32>() as f64);
        let dense = self.number * self.shape.columns as f64;
        self.stored.map_or(dense, of_sparse)
    }

    /// Bytes per row of a label and a support of `members` components; full supports are not stored (`members` = 0).
    pub(super) fn supports(members: usize) -> f64 {
        (1.0 + members as f64) * size_of::<u32>() as f64
    }

    /// Bytes per row of a label, where rows get bounds: as long as there are both.
    pub(super) fn labelled<F: Float>() -> f64 {
        (2 * size_of::<u32>() + size_of::<Bounds<F>>()) as f64
    }

    /// Sums of all shards, and models: with a variance for each coordinate, and `extra` numbers more for each component.
    pub(super) fn sums(self, extra: f64) -> f64 {
        let Shape {
            rows,
            columns,
            clusters,
        } = self.shape;
        let d = columns as f64;
        let k = clusters as f64;
        let all_extra = k * extra;
        let of_all = if self.stored.is_some() { k * d } else { 0.0 };
        let shards = em::shards(rows, clusters, all_extra.max(of_all) as usize);
        let numbers = 2.0 * k * (d + 1.0) + all_extra;
        let summary = if self.stored.is_some() {
            SUMMARY * d
        } else {
            0.0
        };
        numbers * (shards + MODELS) as f64 * size_of::<f64>() as f64 + summary + FIXED_BYTES
    }

    /// Blocks of rows with their costs, of all threads: no phase may depend on it.
    pub(super) fn blocks(self) -> f64 {
        let costs = self.shape.clusters.min(BLOCK) as f64 * self.number;
        (2 * parallel::threads() * BLOCK) as f64 * (self.row() + costs)
    }

    /// A coreset: its rows, and what it is drawn by.
    pub(super) fn coreset(self, draws: usize) -> f64 {
        let draws = draws.min(self.shape.rows);
        self.selected(draws) + self.drawing(draws)
    }

    fn selected(self, draws: usize) -> f64 {
        draws as f64 * (self.row() + CHOSEN)
    }

    fn drawing(self, draws: usize) -> f64 {
        draws as f64 * DRAWN + self.shape.rows as f64 * self.number
    }

    /// Phases of [`fast`](super::fast) and the like, from a coreset of `first` rows.
    pub(super) fn phases<F: Float>(self, phases: &[Phase<F>], first: usize) -> f64 {
        let all_rows = self.shape.rows;
        // `kept` counts coresets and rows in a subspace, which stay until the end.
        let mut kept = 0.0;
        let mut before = 0;
        let mut peak = 0.0_f64;
        for phase in phases {
            let rows = match phase.outline.rows {
                PhaseRows::Coreset => first.min(all_rows),
                PhaseRows::Larger(larger) => larger.size,
                PhaseRows::All => all_rows,
            };
            if rows != before {
                if rows < all_rows {
                    peak = peak.max(kept + self.drawing(rows));
                    kept += self.selected(rows);
                }
                if let Columns::Principal(coordinates) = phase.outline.columns {
                    kept += rows as f64 * coordinates as f64 * self.number;
                }
                before = rows;
            }
            let per_row = match phase.e_step.bounds() {
                Some(_) => self.bounds,
                None => Self::supports(1),
            };
            peak = peak.max(kept + rows as f64 * per_row);
        }
        peak + self.sums(0.0)
    }

    /// Per row while seeds are drawn: squared distances, and for chains a density twice.
    pub(super) fn seeding(self, chains: bool) -> f64 {
        let densities = if chains { 2 * size_of::<f64>() } else { 0 };
        self.number + densities as f64
    }

    /// Per row where rows are searched in the order of their components: the order, twice, and pairs of components.
    pub(super) fn in_order() -> f64 {
        (2 * size_of::<usize>()) as f64 + PAIRS
    }

    pub(super) fn rows(self) -> f64 {
        let Shape { rows, columns, .. } = self.shape;
        rows as f64 * columns as f64 * self.number
    }
}
