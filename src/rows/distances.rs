//! The arithmetic of the crate on blocks of rows: distances to centres.

use super::{Centres, Ranking, Rows};
use crate::base::float::Float;
use crate::kernels::distance::Normed;
use crate::kernels::sparse::{self, Absent};
use crate::kernels::{distance, nearest, select, short, stride, zeros};
use std::{iter, slice};

/// Bound on the loss by underflow of squares and products of `dim` columns, in a distance by expansion and in a direct one
/// (E21).
fn underflow<F: Float>(dim: usize) -> f64 {
    4.0 * (dim + 8) as f64 * F::LEAST
}

/// Bound on the rounding error of a distance by expansion (E21) for a row of this squared norm, to centres that could be as
/// near as the squared distance `reach`. Without roots: $(a + b)^2 \le 2 a^2 + 2 b^2$.
#[inline(always)]
fn rounding<F: Float>(dim: usize, norm: f64, largest_norm: f64, reach: f64) -> f64 {
    let gamma = (dim + 8) as f64 * F::EPSILON;
    let for_any = gamma * (2.0 * norm + 2.0 * largest_norm);
    // A centre much farther out than the row is too far away to be one of the nearest, rounded or not (E21).
    let within = gamma * (8.0 * norm + 4.5 * reach);
    let relative = if 2.0 * within <= 1.25 * reach {
        within.min(for_any)
    } else {
        for_any
    };
    relative + underflow::<F>(dim)
}

/// Short rows are searched side by side, 64 at a time: fewer than this are searched by panels.
const FEW_ROWS: usize = 24;

impl<F: Float> Rows<F> {
    /// Squared distances of all rows to one centre, computed directly, into `out` (len): held where they stay finite, as rows of
    /// weight 0 may be far enough to overflow.
    #[inline(never)]
    pub(crate) fn distances_from(&self, centre: &[F], out: &mut [F]) {
        let most = F::from_f64(F::LARGEST_COST);
        out.fill(F::INFINITY);
        self.lower_to_distances(0, centre, out);
        for squared in out {
            *squared = if *squared > most { most } else { *squared };
        }
    }

    /// Squared distances of all rows to all centres by expansion about a point near most of the centres (E21): (len, k) into
    /// `out`. Fast, and good enough to rank; in the unit of the frame, squared, as are all distances here.
    #[inline(never)]
    pub(crate) fn distances(&self, centres: &Centres<F>, out: &mut Vec<F>) {
        if let Some(known) = self.entries() {
            let turned = || centres.by_coordinate();
            return match known.absent {
                Absent::Unknown => {
                    sparse::to_all::<F, false>(known, turned(), &[], centres.len(), out)
                }
                Absent::Zero => {
                    let seen = centres.seen_by_sparse(known.whole);
                    let lists = || centres.non_zeros();
                    match known.whole.is_empty().then(lists).flatten() {
                        Some(lists) => seen.to_lists(known, lists, out),
                        None => seen.to_all::<false>(known, turned(), &[], out),
                    }
                }
            };
        }
        let expanded = centres.expanded();
        let relative = self.relative(expanded.about());
        let mut norms = Vec::new();
        distance::norms(&relative, stride(self.dim), &mut norms);
        let rows = &relative[..];
        let norms = &norms[..];
        let centres = expanded.normed(centres);
        distance::to_all(Normed { rows, norms }, centres, self.dim, out);
    }

    /// Bound on the rounding error of row `i` in [`distances`](Self::distances) (E21), for the centres that could be as near as
    /// the squared distance `reach` (all of them, for infinity). It is 0 for ragged rows, whose distances are direct.
    #[inline(never)]
    pub(crate) fn margin(&self, i: usize, centres: &Centres<F>, reach: F) -> F {
        if self.entries().is_some() {
            return F::zero();
        }
        let row = self.row(i);
        let expanded = centres.expanded();
        let norm = match expanded.about() {
            None => distance::norm(row),
            Some(about) => distance::between(row, about),
        };
        let norm = norm.to_f64();
        let reach = reach.to_f64();
        F::from_f64(rounding::<F>(self.dim, norm, expanded.largest_norm, reach))
    }

    /// The nearest of all centres for every row, and its squared distance, computed directly: the lowest index where
    /// several are as near. `false`, and nothing done, where that is no faster than to go through
    /// [`distances`](Self::distances): for ragged rows.
    #[inline(never)]
    pub(crate) fn nearest(&self, centres: &Centres<F>, ids: &mut [u32], squared: &mut [F]) -> bool {
        self.nearest_and_others(centres, ids, squared, &mut [])
    }

    /// As [`nearest`](Self::nearest). `others`, if it is not empty, becomes at most the squared distance of each row to any centre
    /// but its nearest.
    pub(crate) fn nearest_and_others(
        &self,
        centres: &Centres<F>,
        ids: &mut [u32],
        squared: &mut [F],
        others: &mut [F],
    ) -> bool {
        if self.entries().is_some() {
            return false;
        }
        let stride = stride(self.dim);
        if centres.len() <= distance::DIRECT_CENTRES {
            if !others.is_empty() {
                self.two_nearest_of_few(centres, ids, squared, others);
                return true;
            }
            let centres = &centres.values;
            distance::nearest_of_few(&self.values, centres, stride, ids, squared);
            return true;
        }
        let expanded = centres.expanded();
        let rows = &self.values[..];
        let about = expanded.about();
        let dim = self.dim;
        let largest_norm = expanded.largest_norm;
        let margin = |norm, cost| rounding::<F>(dim, norm, largest_norm, cost);
        // The nearest centres within rounding, of rows for which there are several, as far as they are known.
        let mut candidates = Vec::new();
        let mut by_panels = |rows: &[F], ids: &mut [u32], others: &mut [F]| {
            let panels = expanded.panels(centres);
            let candidates = &mut candidates;
            nearest::nearest(rows, about, stride, panels, margin, ids, others, candidates);
        };
        if self.len() >= FEW_ROWS && short::fits(stride, centres.len()) {
            let panels = || expanded.panels(centres);
            let seen = expanded.normed(centres);
            short::nearest(rows, about, dim, seen, panels, margin, ids, others);
            // This search leaves some rows open. A search by panels finds the centres within their rounding.
            if ids.contains(&nearest::OPEN) {
                let is_open = |i: &usize| ids[*i] == nearest::OPEN;
                let open: Vec<usize> = (0..ids.len()).filter(is_open).collect();
                let rows: Vec<F> = open.iter().flat_map(|i| self.row(*i)).copied().collect();
                let mut nearest_of_open = vec![0; open.len()];
                by_panels(&rows, &mut nearest_of_open, &mut []);
                for (&i, id) in open.iter().zip(nearest_of_open) {
                    ids[i] = id;
                }
                for (row, _) in &mut candidates {
                    *row = open[*row];
                }
            }
        } else {
            by_panels(rows, ids, others);
        }
        let mut ranking = Ranking::default();
        let mut candidates = candidates.into_iter().peekable();
        for (i, id) in ids.iter_mut().enumerate() {
            if *id == nearest::OPEN {
                let of_row = iter::from_fn(|| candidates.next_if(|(row, _)| *row == i));
                ranking.ids.clear();
                ranking.ids.extend(of_row.map(|(_, c)| c));
                ranking.decide(1, centres.len(), |ids, out| {
                    distance::to_some(self.row(i), &centres.values, ids, out);
                });
                let id = slice::from_mut(id);
                select::smallest(&ranking.ids, &ranking.costs, id, &mut squared[i..=i]);
            }
        }
        distance::to_own(&self.values, &centres.values, stride, ids, squared);
        true
    }

    /// As [`nearest_and_others`](Self::nearest_and_others), of few centres: one after the other, directly.
    fn two_nearest_of_few(
        &self,
        centres: &Centres<F>,
        ids: &mut [u32],
        squared: &mut [F],
        others: &mut [F],
    ) {
        let mut labels = vec![0; ids.len()];
        let mut one = vec![F::zero(); ids.len()];
        squared.fill(F::INFINITY);
        others.fill(F::INFINITY);
        for c in 0..centres.len() as u32 {
            labels.fill(c);
            distance::to_own(
                &self.values,
                &centres.values,
                stride(self.dim),
                &labels,
                &mut one,
            );
            let two_nearest = ids.iter_mut().zip(&mut *squared).zip(&mut *others);
            for (((id, least), other), &one) in two_nearest.zip(&one) {
                if one < *least {
                    (*id, *other, *least) = (c, *least, one);
                } else if one < *other {
                    *other = one;
                }
            }
        }
    }

    /// The squared distance of every row to the centre that `ids` names for it, computed directly.
    #[inline(never)]
    pub(crate) fn distances_to_own(&self, centres: &Centres<F>, ids: &[u32], out: &mut [F]) {
        let Some(known) = self.entries() else {
            let stride = stride(self.dim);
            return distance::to_own(&self.values, &centres.values, stride, ids, out);
        };
        debug_assert_eq!(known.len(), ids.len());
        let mut squared = Vec::new();
        for (i, out) in out.iter_mut().enumerate() {
            self.distances_to(i, centres, &ids[i..=i], &mut squared);
            *out = squared[0];
        }
    }

    /// Squared distances of row `i` to the centres `ids`, computed directly.
    #[inline(never)]
    pub fn distances_to(&self, i: usize, centres: &Centres<F>, ids: &[u32], out: &mut Vec<F>) {
        if let Some(known) = self.entries() {
            return match known.absent {
                Absent::Unknown => {
                    sparse::to_some(known.row(i), &centres.values, self.dim, ids, out)
                }
                Absent::Zero => {
                    let seen = centres.seen_by_sparse(known.whole);
                    seen.to_some(known, i, ids, out)
                }
            };
        }
        distance::to_some(self.row(i), &centres.values, ids, out);
    }

    /// Lowers `nearest` to the squared distances of as many rows, from row `first` on, to one more centre,
    /// computed directly.
    #[inline(never)]
    pub fn lower_to_distances(&self, first: usize, centre: &[F], nearest: &mut [F]) {
        if let Some(known) = self.entries() {
            return match known.absent {
                Absent::Unknown => sparse::lower(known.from(first), centre, nearest),
                Absent::Zero => zeros::lower(known.from(first), centre, nearest),
            };
        }
        distance::lower(&self.values[first * centre.len()..], centre, nearest);
    }
}
