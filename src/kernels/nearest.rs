//! The nearest of all centres for many rows: products and selection in one go, nothing written in between.

use super::{LANES, products};
use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Rows that follow each other while a panel stays in the nearest cache.
const CHUNK: usize = 96;

/// Columns of a panel that follow each other while it stays in the nearest cache.
const COLUMNS: usize = 128;

/// All centres by coordinate: (panels, d, [`LANES`]) numbers $-2 \mu$, and (panels, [`LANES`]) squared norms. Places that
/// no centre fills are infinitely far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels<F> {
    pub(super) dim: usize,
    pub(super) values: Vec<F>,
    pub(super) norms: Vec<F>,
}

impl<F: Float> Panels<F> {
    /// Packs padded centres with their squared norms.
    pub(crate) fn pack(centres: &[F], stride: usize, dim: usize, norms: &[F]) -> Self {
        Self::scaled(centres, stride, dim, F::from_f64(-2.0), norms)
    }

    /// Packs padded rows times a factor, each with a constant in place of a squared norm.
    pub(crate) fn scaled(rows: &[F], stride: usize, dim: usize, factor: F, norms: &[F]) -> Self {
        let values = products::panels(rows, stride, dim, factor);
        let mut norms = norms.to_vec();
        norms.resize(norms.len().next_multiple_of(LANES), F::INFINITY);
        Self { dim, values, norms }
    }
}

/// Stands for the nearest centre of a row where, as far as rounding tells, several may be.
pub(crate) const OPEN: u32 = u32::MAX;

/// The nearest of all centres for padded rows, both as seen from `about` (padded; `None` where rows are so already), into
/// `ids`. Centres are ranked by expansion. The nearest is given where all others are farther by more than twice
/// `margin(norm, score)`, the rounding bound (E21) of a row of that squared norm at its lowest score. Other rows get
/// [`OPEN`]. `among` becomes the places of such rows and the centres that may be nearest to them, in the order of the rows.
/// An open row that is not in it has two such centres in one lane: then not all of them are known.
pub(crate) fn nearest<F: Float>(
    (rows, about): (&[F], Option<&[F]>),
    stride: usize,
    panels: &Panels<F>,
    margin: impl Fn(f64, f64) -> f64,
    ids: &mut [u32],
    among: &mut Vec<(usize, u32)>,
) {
    among.clear();
    Arch::new().dispatch(ToPanels {
        rows,
        about,
        stride,
        panels,
        margin,
        ids,
        among,
    });
}

struct ToPanels<'a, F, M> {
    rows: &'a [F],
    about: Option<&'a [F]>,
    stride: usize,
    panels: &'a Panels<F>,
    margin: M,
    ids: &'a mut [u32],
    among: &'a mut Vec<(usize, u32)>,
}

/// Per lane: the lowest score so far, the panel it is from, and the next lowest.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes<F> {
    low: [F; LANES],
    panel: [F; LANES],
    next: [F; LANES],
}

impl<F: Float, M: Fn(f64, f64) -> f64> WithSimd for ToPanels<'_, F, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            about,
            stride,
            panels,
            margin,
            ids,
            among,
        } = self;
        let mut lanes = [Lanes::new(); CHUNK];
        let mut place = 0;
        let mut sums = [F::zero(); CHUNK * 2 * LANES];
        let twos = panels.values.chunks_exact(2 * panels.dim * LANES);
        let norms = panels.norms.chunks_exact(2 * LANES);
        let (last, last_norms) = (twos.remainder(), norms.remainder());
        // A chunk of rows as seen from there.
        let mut relative = vec![F::zero(); about.map_or(0, |_| rows.len().min(CHUNK * stride))];
        for (rows, ids) in rows.chunks(CHUNK * stride).zip(ids.chunks_mut(CHUNK)) {
            let rows = about.map_or(rows, |about| {
                let places = rows
                    .chunks_exact(stride)
                    .zip(relative.chunks_exact_mut(stride));
                for (row, relative) in places {
                    F::minus(simd, row, about, relative);
                }
                &relative[..rows.len()]
            });
            let lanes = &mut lanes[..rows.len() / stride];
            lanes.fill(Lanes::new());
            let mut number = 0.0;
            // Two panels at a time: with one alone, sums would wait for each other.
            for panels in twos.clone().zip(norms.clone()) {
                lower::<F, S, 2>(simd, rows, stride, panels, number, lanes, &mut sums);
                number += 2.0;
            }
            if !last.is_empty() {
                let panels = (last, last_norms);
                lower::<F, S, 1>(simd, rows, stride, panels, number, lanes, &mut sums);
            }
            for ((row, lanes), id) in rows.chunks_exact(stride).zip(lanes).zip(ids) {
                let norm = F::norm(simd, row);
                let reach;
                (*id, reach) = F::nearest(simd, norm, lanes, &margin);
                if *id == OPEN {
                    among.extend(lanes.within(reach).map(|id| (place, id)));
                }
                place += 1;
            }
        }
    }
}

/// Some rows against `P` panels.
#[inline(always)]
fn lower<F: Float, S: Simd, const P: usize>(
    simd: S,
    rows: &[F],
    stride: usize,
    (panels, norms): (&[F], &[F]),
    number: f64,
    lanes: &mut [Lanes<F>],
    sums: &mut [F],
) {
    let dim = panels.len() / (P * LANES);
    for from in (0..dim).step_by(COLUMNS) {
        let panels = Part {
            panels,
            norms,
            number,
            columns: from..dim.min(from + COLUMNS),
        };
        let mut first = 0;
        while first < lanes.len() {
            let left = lanes.len() - first;
            let (rows, lanes) = (&rows[first * stride..], &mut lanes[first..]);
            let sums = &mut sums[first * P * LANES..];
            // As many rows share one read of a panel as there are registers for their sums.
            first += match left {
                12.. if S::REGISTER_COUNT >= 32 => {
                    F::lowest::<S, 12, P>(simd, rows, stride, &panels, sums, lanes)
                }
                6.. => F::lowest::<S, 6, P>(simd, rows, stride, &panels, sums, lanes),
                2.. => F::lowest::<S, 2, P>(simd, rows, stride, &panels, sums, lanes),
                _ => F::lowest::<S, 1, P>(simd, rows, stride, &panels, sums, lanes),
            };
        }
    }
}

/// Some columns of a few panels.
struct Part<'a, F> {
    panels: &'a [F],
    norms: &'a [F],
    /// The number of the first of them.
    number: f64,
    columns: Range<usize>,
}

impl<F: Float> Lanes<F> {
    fn new() -> Self {
        Self {
            low: [F::INFINITY; LANES],
            panel: [F::zero(); LANES],
            next: [F::INFINITY; LANES],
        }
    }

    /// The centres whose scores are not above `reach`; none if they are not all known.
    fn within(&self, reach: F) -> impl Iterator<Item = u32> {
        let known = self.next.iter().all(|next| *next > reach);
        let lanes = if known { 0..LANES } else { 0..0 };
        let lanes = lanes.filter(move |&lane| self.low[lane] <= reach);
        lanes.map(|lane| self.panel[lane].to_f64() as u32 * LANES as u32 + lane as u32)
    }
}

/// Rows against panels, and the selection among their lanes, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Lowest: Sized {
    /// `N` rows against some columns of `P` panels; `sums` are the scores up to there. Returns the number of rows.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn lowest<S: Simd, const N: usize, const P: usize>(
        simd: S,
        rows: &[Self],
        stride: usize,
        part: &Part<'_, Self>,
        sums: &mut [Self],
        lanes: &mut [Lanes<Self>],
    ) -> usize;
    /// A row against one panel, of this number, where `next` is the lowest score of all others.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn of_panel<S: Simd>(
        simd: S,
        row: &[Self],
        panels: &Panels<Self>,
        panel: (Self, Self),
    ) -> Lanes<Self>;
    /// The nearest centre of a row of this squared norm, if it is sure; and the highest score of any that may be it.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn nearest<S: Simd>(
        simd: S,
        norm: Self,
        lanes: &Lanes<Self>,
        margin: &impl Fn(f64, f64) -> f64,
    ) -> (u32, Self);
}

macro_rules! lowest {
    ($t:ty, $products:ident, $vectors:ident, $vectors_mut:ident, $splat:ident, $less:ident, $equal:ident, $select:ident, $min:ident, $max:ident, $mul_add:ident, $least:ident) => {
        impl Lowest for $t {
            #[inline(always)]
            #[allow(private_interfaces)]
            fn lowest<S: Simd, const N: usize, const P: usize>(
                simd: S,
                rows: &[Self],
                stride: usize,
                part: &Part<'_, Self>,
                sums: &mut [Self],
                lanes: &mut [Lanes<Self>],
            ) -> usize {
                let dim = part.panels.len() / (P * LANES);
                let (norms, _) = S::$vectors(part.norms);
                let (sums, _) = S::$vectors_mut(&mut sums[..N * P * LANES]);
                let per_line = norms.len() / P;
                let columns = part.columns.clone();
                let rows: [&[Self]; N] =
                    std::array::from_fn(|r| &rows[r * stride..][columns.clone()]);
                let panels: [&[Self]; P] = std::array::from_fn(|p| {
                    let lines = columns.start * LANES..columns.end * LANES;
                    &part.panels[p * dim * LANES..][lines]
                });
                for v in 0..per_line {
                    let mut scores = [[simd.$splat(0.0); N]; P];
                    for (p, scores) in scores.iter_mut().enumerate() {
                        for (r, score) in scores.iter_mut().enumerate() {
                            *score = if columns.start == 0 {
                                norms[p * per_line + v]
                            } else {
                                sums[(r * P + p) * per_line + v]
                            };
                        }
                    }
                    products::$products::<S, N, P, false>(simd, rows, panels, v, &mut scores);
                    if columns.end < dim {
                        for (p, scores) in scores.iter().enumerate() {
                            for (r, &score) in scores.iter().enumerate() {
                                sums[(r * P + p) * per_line + v] = score;
                            }
                        }
                        continue;
                    }
                    for (r, lanes) in lanes.iter_mut().take(N).enumerate() {
                        let low_place = &mut S::$vectors_mut(&mut lanes.low).0[v];
                        let panel_place = &mut S::$vectors_mut(&mut lanes.panel).0[v];
                        let next_place = &mut S::$vectors_mut(&mut lanes.next).0[v];
                        let (mut low, mut panel, mut next) =
                            (*low_place, *panel_place, *next_place);
                        for (p, scores) in scores.iter().enumerate() {
                            let score = scores[r];
                            let number = simd.$splat((part.number + p as f64) as $t);
                            next = simd.$min(next, simd.$max(low, score));
                            panel = simd.$select(simd.$less(score, low), number, panel);
                            low = simd.$min(low, score);
                        }
                        (*low_place, *panel_place, *next_place) = (low, panel, next);
                    }
                }
                N
            }

            #[inline(always)]
            #[allow(private_interfaces)]
            fn of_panel<S: Simd>(
                simd: S,
                row: &[Self],
                panels: &Panels<Self>,
                (number, next): (Self, Self),
            ) -> Lanes<Self> {
                let mut lanes = Lanes::new();
                lanes.panel = [number; LANES];
                lanes.next[0] = next;
                let panel = number as usize;
                let values = &panels.values[panel * panels.dim * LANES..];
                lanes.low.copy_from_slice(&panels.norms[panel * LANES..][..LANES]);
                let (low, _) = S::$vectors_mut(&mut lanes.low);
                for (&x, values) in row.iter().zip(values.chunks_exact(LANES)) {
                    let x = simd.$splat(x);
                    for (low, &value) in low.iter_mut().zip(S::$vectors(values).0) {
                        *low = simd.$mul_add(x, value, *low);
                    }
                }
                lanes
            }

            #[inline(always)]
            #[allow(private_interfaces)]
            fn nearest<S: Simd>(
                simd: S,
                norm: Self,
                lanes: &Lanes<Self>,
                margin: &impl Fn(f64, f64) -> f64,
            ) -> (u32, Self) {
                // Coordinates in a frame are held far from overflow.
                let (low, _) = S::$vectors(&lanes.low);
                let (next, _) = S::$vectors(&lanes.next);
                let (numbers, _) = S::$vectors(&const { numbers!($t) });
                let infinity = simd.$splat(Self::INFINITY);
                let mut lowest = infinity;
                for &low in low {
                    lowest = simd.$min(lowest, low);
                }
                let least = simd.$least(lowest);
                let lowest = simd.$splat(least);
                let lane = lane_where!(low.len(), &low in low => simd.$equal(low, lowest));
                // The nearest of all others, in that lane and elsewhere.
                let here = simd.$splat(lane as $t);
                let mut other = infinity;
                for ((&low, &next), &number) in low.iter().zip(next).zip(numbers) {
                    let low = simd.$select(simd.$equal(number, here), infinity, low);
                    other = simd.$min(other, simd.$min(low, next));
                }
                let other = simd.$least(other);
                let score = f64::from(least + norm).max(0.0);
                let reach = least + 2.0 * margin(f64::from(norm), score) as $t;
                if other > reach {
                    let id = lanes.panel[lane] as u32 * LANES as u32 + lane as u32;
                    (id, reach)
                } else {
                    (OPEN, reach)
                }
            }
        }
    };
}
lowest!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    less_than_f32s,
    equal_f32s,
    select_f32s,
    min_f32s,
    max_f32s,
    mul_add_e_f32s,
    reduce_min_f32s
);
lowest!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    less_than_f64s,
    equal_f64s,
    select_f64s,
    min_f64s,
    max_f64s,
    mul_add_e_f64s,
    reduce_min_f64s
);

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::stride;

    /// Padded rows, (stride, d), padded centres with their norms, and what is found.
    type Found<'a> = (
        &'a [f32],
        (usize, usize),
        (&'a [f32], &'a [f32]),
        &'a mut [u32],
    );

    /// Runs a search on random rows and centres of these shapes (n, d, k), with this margin, beside the naive one.
    pub(in crate::kernels) fn sure_ones_are_the_nearest(
        shapes: &[(usize, usize, usize)],
        search: impl Fn(Found<'_>, &dyn Fn(f64, f64) -> f64),
    ) {
        let mut rng = Rng::from_seed(6);
        let (mut sure, mut all) = (0, 0);
        for &(n, d, k) in shapes {
            let s = stride(d);
            let mut random = |n: usize| -> Vec<f32> {
                let place = |i| if i % s < d { rng.normal() as f32 } else { 0.0 };
                (0..n * s).map(place).collect()
            };
            let (x, mu) = (random(n), random(k));
            let squared = |a: &[f32], b: &[f32]| -> f64 {
                let t = a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b));
                t.map(|t| t * t).sum()
            };
            let of_norm = |c: &[f32]| squared(c, &vec![0.0; s]) as f32;
            let norms: Vec<f32> = mu.chunks(s).map(of_norm).collect();
            let mut found = vec![0; n];
            search((&x, (s, d), (&mu, &norms), &mut found), &|norm, score| {
                assert!(norm >= 0.0 && score >= 0.0);
                1e-2
            });
            for (row, found) in x.chunks(s).zip(found) {
                let mut naive: Vec<(f64, usize)> =
                    mu.chunks(s).map(|c| squared(row, c)).zip(0..).collect();
                naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                all += 1;
                if found != OPEN {
                    sure += 1;
                    assert_eq!(found as usize, naive[0].1);
                    assert!(k == 1 || naive[1].0 - naive[0].0 > 1e-2);
                } else {
                    assert!(naive[1].0 - naive[0].0 < 3e-2);
                }
            }
        }
        assert!(sure > all / 2 && sure < all, "{sure} of {all}");
    }

    #[test]
    fn sure_ones_are_the_nearest_of_the_naive_search() {
        let listed_rows = std::cell::Cell::new(0);
        let shapes = [
            (1, 1, 1),
            (7, 3, 16),
            (30, 8, 17),
            (21, 74, 100),
            (50, 2, 300),
            (70, 300, 40),
            (119, 20, 33),
        ];
        sure_ones_are_the_nearest(&shapes, |(rows, (s, d), (mu, norms), ids), margin| {
            let panels = Panels::pack(mu, s, d, norms);
            let mut among = Vec::new();
            let mut of_any = Vec::new();
            with_all_vectors!({
                of_any.push((vec![0; ids.len()], Vec::new()));
                let (ids, among) = of_any.last_mut().unwrap();
                ToPanels {
                    rows,
                    about: None,
                    stride: s,
                    panels: &panels,
                    margin,
                    ids,
                    among,
                }
            });
            nearest((rows, None), s, &panels, margin, ids, &mut among);
            for other in of_any {
                assert_eq!((&*ids, &among), (&other.0[..], &other.1));
            }
            for (place, row) in rows.chunks(s).enumerate() {
                let listed = || among.iter().filter(|(of, _)| *of == place);
                assert!(ids[place] == OPEN || listed().count() == 0);
                // What is listed is as near as the others there, and has the nearest among it.
                let squared =
                    |c: &[f32]| -> f32 { row.iter().zip(c).map(|(a, b)| (a - b).powi(2)).sum() };
                let all: Vec<f32> = mu.chunks(s).map(squared).collect();
                let least = all.iter().fold(f32::INFINITY, |least, s| least.min(*s));
                for (_, id) in listed() {
                    assert!(all[*id as usize] <= least + 3e-2);
                }
                let best = all.iter().position(|s| *s == least).unwrap() as u32;
                assert!(listed().count() == 0 || listed().any(|(_, id)| *id == best));
                let near = |s: &f32| *s < least + 1e-2;
                let count = all.iter().filter(|s| near(s)).count();
                if listed().count() > 0 {
                    listed_rows.set(listed_rows.get() + 1);
                    assert!(listed().count() >= count);
                }
            }
        });
        assert!(listed_rows.get() > 0);
    }

    /// Centres that coincide, in one lane and in two, leave a row open.
    #[test]
    fn copies_are_never_sure() {
        for other in [3, 16, 19] {
            let mut mu = vec![9.0f64; 40 * 4];
            for c in [0, other] {
                mu[c * 4..c * 4 + 4].copy_from_slice(&[1.0, 2.0, 0.0, 0.0]);
            }
            let norms: Vec<f64> = mu
                .chunks(4)
                .map(|c| c.iter().map(|x| x * x).sum())
                .collect();
            let panels = Panels::pack(&mu, 4, 4, &norms);
            let mut found = [0];
            let mut among = Vec::new();
            let rows = (&mu[..4], None);
            nearest(rows, 4, &panels, |_, _| 1e-12, &mut found, &mut among);
            assert_eq!(found, [OPEN]);
            // Two in one lane are not told apart.
            match other {
                16 => assert!(among.is_empty()),
                _ => assert_eq!(among, [(0, 0), (0, other as u32)]),
            }
        }
    }
}
