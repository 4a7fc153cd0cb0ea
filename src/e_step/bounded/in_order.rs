//! Rows in their order, with bounds that settle most of them in a search over all centres: only the others are read.

use super::assignment::TASK_ROWS;
use super::list_search::BATCH_ROWS;
use super::lists::{Moved, slack};
use super::sums::{KeptSums, Parts};
use crate::base::error::Result;
use crate::base::file_fault::FileFault;
use crate::base::float::Float;
use crate::base::parallel;
use crate::data::{Centres, Rows, View};
use crate::io::rule;
use crate::kernels::distance;
use crate::model::cells::{Cells, Nearest, TRIAL_ROWS};
use crate::model::search;

/// A row's component, and bounds on its distances: what a [`Member`](super::Member) is by component. Labels are those of distances to all
/// centres, so these bounds have room for rounding; a quarter less memory is read for each row, and there is no second component.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Bounds<F> {
    pub(crate) label: u32,
    /// Above the distance to the component's centre, by more than rounding.
    upper: F,
    /// Below the distance to any other centre.
    lower: F,
}

impl<F: Float> Bounds<F> {
    /// No bounds: the row is open.
    pub(crate) fn unknown(label: u32) -> Self {
        Self {
            label,
            upper: F::INFINITY,
            lower: F::zero(),
        }
    }

    /// Bounds from squared distances in `dim` coordinates: that to the nearest centre, and at most that to any other.
    pub(crate) fn found(label: u32, squared: F, others: F, dim: usize) -> Self {
        let slack = slack(dim, F::EPSILON);
        Self {
            label,
            upper: F::from_f64(squared.to_f64().sqrt() * slack),
            lower: F::from_f64(others.to_f64().sqrt() / slack),
        }
    }

    /// Moves the bounds with the centres. Whether another centre may be the nearest now.
    #[inline(always)]
    pub(crate) fn follow(&mut self, moved: &[Moved<F>]) -> bool {
        let moved = &moved[self.label as usize];
        // Each sum is rounded.
        self.upper = (self.upper + moved.own) * F::from_f64(1.0 + 2.0 * F::EPSILON);
        self.lower = (self.lower - moved.others) * F::from_f64(1.0 - 2.0 * F::EPSILON);
        !(self.upper < self.lower || self.upper < moved.half_gap)
    }
}

/// Half gaps between centres are computed where rows have at least this many times as many distances.
const GAP_SHARE: usize = 64;

/// How the bounds of `rows` rows change with the centres, and the number of distance evaluations.
pub(crate) fn moves<F: Float>(
    before: &Centres<F>,
    now: &Centres<F>,
    rows: usize,
) -> (Vec<Moved<F>>, u64) {
    let k = now.len();
    let slack = slack(now.dim(), F::EPSILON);
    let lengths = parallel::map(k, |c| {
        distance::exact(before.row(c), now.row(c)).sqrt() * slack
    });
    // The two that moved farthest.
    let mut far = 0.0;
    let mut next = 0.0;
    let mut farthest = 0;
    for (c, &length) in lengths.iter().enumerate() {
        if length > far {
            (far, next, farthest) = (length, far, c);
        } else if length > next {
            next = length;
        }
    }
    let mut moved: Vec<Moved<F>> = (0..k)
        .map(|c| Moved {
            own: F::from_f64(lengths[c]),
            others: F::from_f64(if c == farthest { next } else { far }),
            ..Moved::default()
        })
        .collect();
    if k > rows / GAP_SHARE {
        return (moved, 0);
    }
    let stride = now.row(0).len();
    let size = search::block_rows(k, now.dim());
    parallel::map_chunks(&mut moved, size, |_, range, moved| {
        let rows = &now.values[range.start * stride..range.end * stride];
        let rows = Rows::of_padded(rows, now.dim());
        let mut nearest = Nearest::default();
        nearest.of_all(&rows, now);
        for (i, (c, moved)) in range.zip(moved).enumerate() {
            // Where several centres coincide, the first is the nearest.
            let is_first = nearest.ids[i] == c as u32;
            let gap = Bounds::found(0, F::zero(), nearest.others[i], now.dim()).lower;
            moved.half_gap = if is_first {
                gap * F::from_f64(0.5)
            } else {
                F::zero()
            };
        }
    });
    (moved, (k * k) as u64)
}

/// A search by cells (E45) is tried where a row takes this many products, at this many places.
const CELL_PRODUCTS: usize = 1 << 16;
const TRIALS: usize = 8;

/// Rows that are searched by cells at once.
const CELL_ROWS: usize = 4 * TASK_ROWS;

/// Whether a search by cells takes few of all products, and the number of distance evaluations to know it.
pub(crate) fn cells_pay<F: Float>(view: View<'_, F>, centres: &Centres<F>) -> Result<(bool, u64)> {
    let n = view.len();
    let k = centres.len();
    if k * (centres.dim() + 1) < CELL_PRODUCTS || n < TRIALS * TRIAL_ROWS || n < k {
        return Ok((false, 0));
    }
    let cells = Cells::of(centres);
    let (pay, tried) = cells.pay(view.data, view.frame, TRIALS)?;
    Ok((pay, cells.evaluations + tried))
}

/// All rows with their bounds.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "files", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "files", serde(bound = "F: Float"))]
pub(crate) struct RowsInOrder<F: Float> {
    /// The rows of every shard.
    shards: Vec<Vec<Bounds<F>>>,
    /// Whether open rows are compared with the centres of some cells alone.
    in_cells: bool,
}

impl<F: Float> RowsInOrder<F> {
    /// Rows with these bounds: shards are of as many rows, except the last one.
    pub(crate) fn of(shards: Vec<Vec<Bounds<F>>>, in_cells: bool) -> Self {
        Self { shards, in_cells }
    }

    /// The sums of the components.
    pub(crate) fn sums(&self, view: View<'_, F>, centres: &Centres<F>) -> Result<KeptSums<F>> {
        let shard_rows = self.shards[0].len();
        let label = |n: usize| self.shards[n / shard_rows][n % shard_rows].label;
        KeptSums::of_rows(view, centres, shard_rows, label)
    }

    pub(crate) fn labels(&self) -> Vec<u32> {
        self.shards.iter().flatten().map(|row| row.label).collect()
    }

    /// The nearest centre of every row that its bounds leave open, after centres moved from `before`; the sums follow. Returns the
    /// number of distance evaluations.
    pub(crate) fn search(
        &mut self,
        view: View<'_, F>,
        before: &Centres<F>,
        centres: &Centres<F>,
        sums: &mut KeptSums<F>,
    ) -> Result<u64> {
        let k = centres.len();
        let dim = centres.dim();
        let (moved, mut evaluations) = moves(before, centres, view.len());
        let cells = self.in_cells.then(|| Cells::of(centres));
        evaluations += cells.as_ref().map_or(0, |cells| cells.evaluations);
        let (task, batch) = match &cells {
            Some(_) => (CELL_ROWS, CELL_ROWS),
            None => (TASK_ROWS, search::block_rows(k, dim).min(BATCH_ROWS)),
        };
        let shard_rows = self.shards[0].len();
        let about = &*sums;
        let shards = self.shards.iter_mut().collect();
        let by_shard = parallel::map_parts(shards, |shard, rows: &mut Vec<_>| {
            let mut open = Vec::new();
            let mut evaluations = 0;
            let mut block = Rows::default();
            let mut nearest = Nearest::default();
            let mut parts = Parts::of(k);
            let firsts = (shard * shard_rows..).step_by(task);
            for (first, rows) in firsts.zip(rows.chunks_mut(task)) {
                open.clear();
                for (n, row) in (first..).zip(rows.iter_mut()) {
                    if row.follow(&moved) {
                        open.push(n);
                    }
                }
                for open in open.chunks(batch) {
                    view.data.gather(open, view.frame, &mut block)?;
                    nearest.evaluations = 0;
                    match &cells {
                        Some(cells) => nearest = cells.nearest(&block),
                        None => {
                            nearest.of_all(&block, centres);
                        }
                    }
                    evaluations += nearest.evaluations;
                    for (i, &n) in open.iter().enumerate() {
                        let row = &mut rows[n - first];
                        let to = nearest.ids[i];
                        if to != row.label {
                            let values = block.row(i);
                            let weight = block.weight(i);
                            parts.add(about, values, -weight, row.label);
                            parts.add(about, values, weight, to);
                        }
                        *row = Bounds::found(to, nearest.squared[i], nearest.others[i], dim);
                    }
                }
            }
            Ok((parts, evaluations))
        });
        let by_shard = parallel::all(by_shard)?.into_iter();
        let (parts, counts) = by_shard.unzip::<_, _, Vec<_>, Vec<_>>();
        evaluations += counts.iter().sum::<u64>();
        sums.add_parts(Parts::joined(parts));
        if sums.have_lost_digits(centres) {
            *sums = self.sums(view, centres)?;
        }
        Ok(evaluations)
    }

    /// Checks that of a file, for `n` rows in shards of `shard_rows`, and `k` components.
    pub(crate) fn check(
        &self,
        n: usize,
        shard_rows: usize,
        k: usize,
    ) -> std::result::Result<(), FileFault> {
        let known = |row: &Bounds<F>| {
            let bounds = [row.upper.to_f64(), row.lower.to_f64()];
            (row.label as usize) < k && !bounds.iter().any(|bound| bound.is_nan())
        };
        let sizes = (0..n)
            .step_by(shard_rows)
            .map(|first| shard_rows.min(n - first));
        let sized = self.shards.iter().map(Vec::len).eq(sizes);
        let sound = sized && self.shards.iter().flatten().all(known);
        rule(sound, "rows", "must have known components and bounds")
    }
}
