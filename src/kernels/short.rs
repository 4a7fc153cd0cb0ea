//! The nearest of all centres for many short rows: rows side by side, so that none has to be selected across lanes.

use super::columns::{Columns, ROWS};
use super::distance::Normed;
use super::nearest::{Lanes, OPEN, at_most};
use super::panels::Panels;
use crate::base::float::Float;
use crate::base::simd::{LANES, kernel};
use pulp::Simd;

/// The most numbers that a short row has.
const MOST: usize = 8;

/// Vectors of rows that share one read of a centre: with one alone, its comparisons would wait for each other.
const VECTORS: usize = 4;

/// Whether rows of `stride` numbers are short, and `k` centres not too many: their numbers are kept in the type of the rows.
pub(crate) fn fits(stride: usize, k: usize) -> bool {
    stride <= MOST && k < 1 << 24
}

/// From this many centres on, a first search finds only the panel that holds the nearest centre.
const PANEL_CENTRES: usize = 400;

/// As [`nearest`](super::nearest::nearest), for padded rows, and centres as seen from `about`, that [fit](fits): 4 or 8 numbers, of
/// which `dim` are not padding. `panels` gives the same centres in panels.
#[expect(clippy::too_many_arguments, reason = "those of the kernel")]
pub(crate) fn nearest<'a, F: Float>(
    rows: &[F],
    about: Option<&[F]>,
    dim: usize,
    centres: Normed<'_, F>,
    panels: impl FnOnce() -> &'a Panels<F>,
    margin: impl Fn(f64, f64) -> f64,
    ids: &mut [u32],
    others: &mut [F],
) {
    let Normed { rows: mu, norms } = centres;
    let panels = (norms.len() >= PANEL_CENTRES).then(panels);
    // The difference to zero is the same number.
    let from = |j: usize| about.map_or(F::zero(), |about| about[j]);
    match mu.len() / norms.len() {
        4 => {
            let from: [F; 4] = std::array::from_fn(from);
            of_length(rows, from, dim, mu, norms, panels, margin, ids, others);
        }
        _ => {
            let from: [F; MOST] = std::array::from_fn(from);
            of_length(rows, from, dim, mu, norms, panels, margin, ids, others);
        }
    }
}

kernel! {
    fn of_length[F: Float, M: Fn(f64, f64) -> f64, const D: usize](
        rows: &[F],
        from: [F; D],
        dim: usize,
        centres: &[F],
        norms: &[F],
        panels: Option<&Panels<F>>,
        margin: M,
        ids: &mut [u32],
        others: &mut [F],
    ) = nearest_of_all
}

/// Per row: its lowest cost, the group of centres that has it, and the lowest cost of all other groups.
#[repr(align(64))]
struct Best<F> {
    low: [F; ROWS],
    group: [F; ROWS],
    next: [F; ROWS],
}

/// With `panels`, where there are many centres.
#[expect(clippy::too_many_arguments, reason = "those of the kernel")]
#[inline(always)]
fn nearest_of_all<F: Float, S: Simd, const D: usize>(
    simd: S,
    rows: &[F],
    from: [F; D],
    dim: usize,
    centres: &[F],
    norms: &[F],
    panels: Option<&Panels<F>>,
    margin: impl Fn(f64, f64) -> f64,
    ids: &mut [u32],
    others: &mut [F],
) {
    let (rows, _) = rows.as_chunks::<D>();
    let (centres, _) = centres.as_chunks::<D>();
    let zero = F::zero();
    let minus_two = F::from_f64(-2.0);
    let mut columns = Columns::new();
    let mut best = Best {
        low: [zero; ROWS],
        group: [zero; ROWS],
        next: [zero; ROWS],
    };
    let mut padded = [[zero; D]; ROWS];
    for (chunk, (rows, ids)) in rows.chunks(ROWS).zip(ids.chunks_mut(ROWS)).enumerate() {
        // None, where bounds are not wanted.
        let others = others.chunks_mut(ROWS).nth(chunk).unwrap_or_default();
        let rows = rows.first_chunk().unwrap_or_else(
            #[inline(always)]
            || {
                padded[..rows.len()].copy_from_slice(rows);
                &padded
            },
        );
        columns.take(
            rows,
            #[inline(always)]
            |j, x| minus_two * (x - from[j]),
        );
        let columns = &columns.0[..dim];
        match panels {
            None => best.of::<S, D, 1>(simd, columns, centres, norms),
            Some(_) => best.of::<S, D, LANES>(simd, columns, centres, norms),
        }
        let mut all_norms = [zero; ROWS];
        for (norm, row) in all_norms.iter_mut().zip(rows) {
            for j in 0..D {
                let x = row[j] - from[j];
                *norm += x * x;
            }
        }
        if let Some(panels) = panels {
            for (r, id) in ids.iter_mut().enumerate() {
                let mut row = [zero; D];
                for j in 0..D {
                    row[j] = rows[r][j] - from[j];
                }
                let group = best.group[r];
                let next = best.next[r];
                let lanes = Lanes::of_panel(simd, &row[..dim], panels, group, next);
                let nearest = lanes.nearest(simd, all_norms[r], &margin);
                *id = nearest.id;
                if let Some(out) = others.get_mut(r) {
                    *out = at_most(all_norms[r], nearest.next, &margin);
                }
            }
            continue;
        }
        let mut reach = [zero; ROWS];
        for r in 0..ROWS {
            let cost = (best.low[r] + all_norms[r]).to_f64().max(0.0);
            let margin = margin(all_norms[r].to_f64(), cost);
            reach[r] = best.low[r] + F::from_f64(2.0 * margin);
        }
        for (r, id) in ids.iter_mut().enumerate() {
            *id = if best.next[r] > reach[r] {
                best.group[r].to_f64() as u32
            } else {
                OPEN
            };
        }
        for (r, out) in others.iter_mut().enumerate() {
            let next = if ids[r] == OPEN {
                best.low[r]
            } else {
                best.next[r]
            };
            *out = at_most(all_norms[r], next, &margin);
        }
    }
}

impl<F: Float> Best<F> {
    /// Rows by coordinate against all centres in groups of `GROUP`.
    #[inline(always)]
    fn of<S: Simd, const D: usize, const GROUP: usize>(
        &mut self,
        simd: S,
        columns: &[[F; ROWS]],
        centres: &[[F; D]],
        norms: &[F],
    ) {
        let lows = F::vectors_mut::<S>(&mut self.low).0;
        let ids = F::vectors_mut::<S>(&mut self.group).0;
        let nexts = F::vectors_mut::<S>(&mut self.next).0;
        let lows = lows.as_chunks_mut::<VECTORS>().0;
        let ids = ids.as_chunks_mut::<VECTORS>().0;
        let nexts = nexts.as_chunks_mut::<VECTORS>().0;
        let infinity = F::splat(simd, F::INFINITY);
        for (place, ((lows, ids), nexts)) in lows.iter_mut().zip(ids).zip(nexts).enumerate() {
            let mut low = [infinity; VECTORS];
            let mut id = [infinity; VECTORS];
            let mut next = [infinity; VECTORS];
            let mut number = F::zero();
            for (centres, norms) in centres.chunks(GROUP).zip(norms.chunks(GROUP)) {
                let mut lowest = [infinity; VECTORS];
                for (centre, &norm) in centres.iter().zip(norms) {
                    let mut costs = [F::splat(simd, norm); VECTORS];
                    for (column, &mu) in columns.iter().zip(centre) {
                        let mu = F::splat(simd, mu);
                        let column = &F::vectors::<S>(column).0.as_chunks::<VECTORS>().0[place];
                        for v in 0..VECTORS {
                            costs[v] = F::times_plus(simd, column[v], mu, costs[v]);
                        }
                    }
                    for v in 0..VECTORS {
                        lowest[v] = F::lower(simd, lowest[v], costs[v]);
                    }
                }
                let this = F::splat(simd, number);
                for v in 0..VECTORS {
                    let cost = lowest[v];
                    next[v] = F::lower(simd, next[v], F::higher(simd, low[v], cost));
                    id[v] = F::select(simd, F::less(simd, cost, low[v]), this, id[v]);
                    low[v] = F::lower(simd, low[v], cost);
                }
                number += F::one();
            }
            (*lows, *ids, *nexts) = (low, id, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::nearest::tests::sure_ones_are_the_nearest;

    fn searches_are_the_naive_ones<F: Float>() {
        // Centre by centre, and by the panel with the nearest first.
        for shape in [
            (1, 1, 1),
            (64, 3, 16),
            (130, 8, 17),
            (21, 4, 100),
            (90, 5, 500),
        ] {
            sure_ones_are_the_nearest(
                shape,
                |rows: &[F], stride, centres, margin, ids, others, _| {
                    let panels = Panels::pack(centres.rows, stride, shape.1, centres.norms);
                    nearest(
                        rows,
                        None,
                        shape.1,
                        centres,
                        || &panels,
                        margin,
                        ids,
                        others,
                    );
                },
            );
        }
    }

    #[test]
    fn sure_ones_are_the_nearest_of_the_naive_search() {
        searches_are_the_naive_ones::<f32>();
        searches_are_the_naive_ones::<f64>();
    }
}
