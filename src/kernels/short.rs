//! The nearest of all centres for many short rows: rows side by side, so that none has to be selected across lanes.

use super::LANES;
use super::abreast::{Columns, ROWS};
use super::nearest::{OPEN, Panels};
use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// The most numbers that a short row has.
const MOST: usize = 8;

/// Vectors of rows that share one read of a centre: with one alone, its comparisons would wait for each other.
const VECTORS: usize = 4;

/// Whether rows of `stride` numbers are short, and `k` centres not too many: their numbers are kept in the type of the rows.
pub(crate) fn fits(stride: usize, k: usize) -> bool {
    stride <= MOST && k < 1 << 24
}

/// From so many centres on, only the panel with the nearest is searched for first.
const MANY: usize = 400;

/// As [`nearest`](super::nearest::nearest), for padded rows, and centres relative to `about` with their squared norms, that
/// [fit](fits): 4 or 8 numbers, of which `dim` are not padding. `panels` gives the same centres in panels.
pub(crate) fn nearest<'a, F: Float>(
    (rows, about): (&[F], Option<&[F]>),
    (stride, dim): (usize, usize),
    centres: (&[F], &[F]),
    panels: impl FnOnce() -> &'a Panels<F>,
    margin: impl Fn(f64, f64) -> f64,
    ids: &mut [u32],
) {
    debug_assert!(fits(stride, centres.1.len()));
    let panels = (centres.1.len() >= MANY).then(panels);
    let arch = Arch::new();
    macro_rules! of_length {
        ($d:tt) => {
            arch.dispatch(ToCentres::<F, _, $d> {
                rows,
                about,
                dim,
                centres,
                panels,
                margin,
                ids,
            })
        };
    }
    match stride {
        4 => of_length!(4),
        MOST => of_length!(MOST),
        _ => unreachable!("rows of 4 or 8 numbers"),
    }
}

struct ToCentres<'a, F, M, const D: usize> {
    rows: &'a [F],
    about: Option<&'a [F]>,
    dim: usize,
    centres: (&'a [F], &'a [F]),
    /// Where there are many centres.
    panels: Option<&'a Panels<F>>,
    margin: M,
    ids: &'a mut [u32],
}

/// Per row: its lowest score, the group of centres that has it, and the lowest score of all other groups.
#[repr(align(64))]
struct Abreast<F> {
    low: [F; ROWS],
    group: [F; ROWS],
    next: [F; ROWS],
}

impl<F: Float, M: Fn(f64, f64) -> f64, const D: usize> WithSimd for ToCentres<'_, F, M, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            about,
            dim,
            centres: (centres, norms),
            panels,
            margin,
            ids,
        } = self;
        let (rows, _) = rows.as_chunks::<D>();
        let (centres, _) = centres.as_chunks::<D>();
        let zero = F::zero();
        // The difference to zero is the same number.
        let mut from = [zero; D];
        from.copy_from_slice(about.unwrap_or(&[zero; D]));
        let minus_two = F::from_f64(-2.0);
        let mut columns = Columns::new();
        let mut best = Abreast {
            low: [zero; ROWS],
            group: [zero; ROWS],
            next: [zero; ROWS],
        };
        let mut padded = [[zero; D]; ROWS];
        for (rows, ids) in rows.chunks(ROWS).zip(ids.chunks_mut(ROWS)) {
            let rows = rows.first_chunk().unwrap_or_else(|| {
                padded[..rows.len()].copy_from_slice(rows);
                &padded
            });
            columns.take(rows, |j, x| minus_two * (x - from[j]));
            let columns = &columns.0[..dim];
            match panels {
                None => F::abreast::<S, D, 1>(simd, columns, (centres, norms), &mut best),
                Some(_) => F::abreast::<S, D, LANES>(simd, columns, (centres, norms), &mut best),
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
                    let panel = (best.group[r], best.next[r]);
                    let lanes = F::of_panel(simd, &row[..dim], panels, panel);
                    (*id, _) = F::nearest(simd, all_norms[r], &lanes, &margin);
                }
                continue;
            }
            let mut reach = [zero; ROWS];
            for r in 0..ROWS {
                let score = (best.low[r] + all_norms[r]).to_f64().max(0.0);
                let margin = margin(all_norms[r].to_f64(), score);
                reach[r] = best.low[r] + F::from_f64(2.0 * margin);
            }
            for (r, id) in ids.iter_mut().enumerate() {
                *id = if best.next[r] > reach[r] {
                    best.group[r].to_f64() as u32
                } else {
                    OPEN
                };
            }
        }
    }
}

/// Rows by coordinate against all centres in groups of `GROUP`, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Short: Sized {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn abreast<S: Simd, const D: usize, const GROUP: usize>(
        simd: S,
        columns: &[[Self; ROWS]],
        centres: (&[[Self; D]], &[Self]),
        best: &mut Abreast<Self>,
    );
}

macro_rules! short {
    ($t:ty, $vectors:ident, $vectors_mut:ident, $splat:ident, $mul_add:ident, $less:ident, $select:ident, $min:ident, $max:ident) => {
        impl Short for $t {
            #[inline(always)]
            #[allow(private_interfaces)]
            fn abreast<S: Simd, const D: usize, const GROUP: usize>(
                simd: S,
                columns: &[[Self; ROWS]],
                (centres, norms): (&[[Self; D]], &[Self]),
                best: &mut Abreast<Self>,
            ) {
                let (lows, _) = S::$vectors_mut(&mut best.low);
                let (ids, _) = S::$vectors_mut(&mut best.group);
                let (nexts, _) = S::$vectors_mut(&mut best.next);
                let groups = lows.as_chunks_mut::<VECTORS>().0.iter_mut();
                let ids = ids.as_chunks_mut::<VECTORS>().0;
                let nexts = nexts.as_chunks_mut::<VECTORS>().0;
                let groups = groups.zip(ids).zip(nexts).enumerate();
                for (group, ((lows, ids), nexts)) in groups {
                    let infinity = simd.$splat(Self::INFINITY);
                    let mut low = [infinity; VECTORS];
                    let mut id = [infinity; VECTORS];
                    let mut next = [infinity; VECTORS];
                    let mut number = 0.0;
                    for (centres, norms) in centres.chunks(GROUP).zip(norms.chunks(GROUP)) {
                        let mut lowest = [infinity; VECTORS];
                        for (centre, &norm) in centres.iter().zip(norms) {
                            let mut scores = [simd.$splat(norm); VECTORS];
                            for (column, &mu) in columns.iter().zip(centre) {
                                let mu = simd.$splat(mu);
                                let column = &S::$vectors(column).0.as_chunks::<VECTORS>().0[group];
                                for v in 0..VECTORS {
                                    scores[v] = simd.$mul_add(column[v], mu, scores[v]);
                                }
                            }
                            for v in 0..VECTORS {
                                lowest[v] = simd.$min(lowest[v], scores[v]);
                            }
                        }
                        let this = simd.$splat(number);
                        for v in 0..VECTORS {
                            let score = lowest[v];
                            next[v] = simd.$min(next[v], simd.$max(low[v], score));
                            id[v] = simd.$select(simd.$less(score, low[v]), this, id[v]);
                            low[v] = simd.$min(low[v], score);
                        }
                        number += 1.0;
                    }
                    (*lows, *ids, *nexts) = (low, id, next);
                }
            }
        }
    };
}
short!(
    f32,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    mul_add_e_f32s,
    less_than_f32s,
    select_f32s,
    min_f32s,
    max_f32s
);
short!(
    f64,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    mul_add_e_f64s,
    less_than_f64s,
    select_f64s,
    min_f64s,
    max_f64s
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::nearest::tests::sure_ones_are_the_nearest;

    #[test]
    fn sure_ones_are_the_nearest_of_the_naive_search() {
        let shapes = [
            (1, 1, 1),
            (64, 3, 16),
            (130, 8, 17),
            (21, 4, 100),
            (90, 5, 300),
        ];
        sure_ones_are_the_nearest(&shapes, |(rows, shape, centres, ids), margin| {
            let panels = Panels::pack(centres.0, shape.0, shape.1, centres.1);
            nearest((rows, None), shape, centres, || &panels, margin, ids);
        });
    }

    /// By the panel with the nearest first: the same answers, wherever two centres are not in one group and equally near.
    #[test]
    fn sure_ones_by_panels_are_the_nearest_of_the_naive_search() {
        let shapes = [(64, 3, 16), (130, 8, 40), (21, 4, 100), (90, 5, 500)];
        sure_ones_are_the_nearest(&shapes, |(rows, shape, centres, ids), margin| {
            let panels = Panels::pack(centres.0, shape.0, shape.1, centres.1);
            let mut of_any = Vec::new();
            macro_rules! search {
                ($d:literal) => {
                    with_all_vectors!(ToCentres::<f32, _, $d> {
                        rows,
                        about: None,
                        dim: shape.1,
                        centres,
                        panels: Some(&panels),
                        margin,
                        ids: {
                            of_any.push(vec![0; ids.len()]);
                            of_any.last_mut().unwrap()
                        },
                    })
                };
            }
            match shape.0 {
                4 => search!(4),
                _ => search!(8),
            }
            ids.copy_from_slice(&of_any[0]);
            for other in of_any {
                assert_eq!(ids, other);
            }
        });
    }

    /// The rounding bound is called with the norms and scores of the rows; centres that coincide leave a row open.
    #[test]
    fn copies_are_never_sure_and_margins_are_of_the_row() {
        let mut mu = vec![9.0f64; 40 * 4];
        for c in [3, 19] {
            mu[c * 4..c * 4 + 4].copy_from_slice(&[1.0, 2.0, 0.0, 0.0]);
        }
        let norms: Vec<f64> = mu
            .chunks(4)
            .map(|c| c.iter().map(|x| x * x).sum())
            .collect();
        let row = [2.0, 4.0, 0.0, 0.0];
        let margin = |norm: f64, score: f64| {
            // The rows that fill up are 0.
            assert!((norm, score) == (20.0, 5.0) || (norm, score) == (0.0, 5.0));
            1e-12
        };
        let mut found = [0; 2];
        let panels = Panels::pack(&mu, 4, 4, &norms);
        let (each, by_panels) = found.split_at_mut(1);
        nearest(
            (&row, None),
            (4, 4),
            (&mu, &norms),
            || &panels,
            margin,
            each,
        );
        Arch::new().dispatch(ToCentres::<f64, _, 4> {
            rows: &row,
            about: None,
            dim: 4,
            centres: (&mu, &norms),
            panels: Some(&panels),
            margin,
            ids: by_panels,
        });
        assert_eq!(found, [OPEN; 2]);
    }
}
