//! Squared distances from rows near one point to centres near it: expanded about that point (E21).

use super::{LANES, products};
use crate::base::float::Float;
use pulp::{Arch, Simd, WithSimd};

/// Rows that share one read of a panel.
const ROWS: usize = 8;

/// A few centres by coordinate, relative to a point near them: (panels, d, [`LANES`]) numbers $-2 (\mu - a)$, and
/// (panels, [`LANES`]) squared norms $\lVert \mu - a \rVert^2$. Places without a centre are infinitely far.
#[derive(Debug, Default)]
pub(crate) struct Packed<F> {
    about: Vec<F>,
    values: Vec<F>,
    norms: Vec<F>,
    /// Some rows, relative to that point.
    rows: Vec<F>,
    /// A centre, relative to it.
    relative: Vec<F>,
}

impl<F: Float> Packed<F> {
    /// Packs the centres `ids` out of padded rows of as many numbers as `about` has, `dim` of them coordinates.
    pub(crate) fn pack(&mut self, centres: &[F], dim: usize, ids: &[u32], about: &[F]) {
        let (stride, lanes) = (about.len(), ids.len().next_multiple_of(LANES));
        self.about.clear();
        self.about.extend_from_slice(about);
        self.values.clear();
        self.values.resize(lanes * dim, F::zero());
        self.norms.clear();
        self.norms.resize(lanes, F::INFINITY);
        let minus_two = F::from_f64(-2.0);
        self.relative.resize(stride, F::zero());
        let relative = &mut self.relative;
        let panels = self.values.chunks_exact_mut(LANES * dim);
        let norms = self.norms.chunks_exact_mut(LANES);
        vectorised!({
            for ((panel, norms), ids) in panels.zip(norms).zip(ids.chunks(LANES)) {
                for (lane, &id) in ids.iter().enumerate() {
                    let centre = &centres[id as usize * stride..][..stride];
                    norms[lane] = from_point(centre, about, relative);
                    let lines = panel.chunks_exact_mut(LANES);
                    for (line, &x) in lines.zip(&*relative) {
                        line[lane] = minus_two * x;
                    }
                }
            }
        });
    }

    /// Shows `found`, for each of some padded rows, its squared distance to the point, and the nearest and the next
    /// nearest of the packed centres: squared distances, and places in the list. The nearest is the first of equals, the
    /// next any of them; infinity and place 0 where there is no next.
    pub(crate) fn first_two(&mut self, rows: &[F], found: impl FnMut(F, (F, usize), (F, usize))) {
        self.rows.resize(ROWS * self.about.len(), F::zero());
        Arch::new().dispatch(ToPacked {
            rows,
            packed: self,
            found,
        });
    }
}

/// A padded row relative to a point, into `out`; returns its squared norm.
#[inline(always)]
fn from_point<F: Float>(row: &[F], about: &[F], out: &mut [F]) -> F {
    let (rows, abouts) = (row.as_chunks::<4>().0, about.as_chunks::<4>().0);
    let mut sums = [F::zero(); 4];
    for ((x, a), out) in rows.iter().zip(abouts).zip(out.as_chunks_mut::<4>().0) {
        for l in 0..4 {
            out[l] = x[l] - a[l];
            sums[l] += out[l] * out[l];
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// Per lane: the lowest so far and the next, and the panels they are from.
#[derive(Clone, Copy)]
struct Lanes<F> {
    low: [F; LANES],
    low_panel: [F; LANES],
    next: [F; LANES],
    next_panel: [F; LANES],
}

impl<F: Float> Lanes<F> {
    /// The first two by score and place, for a row of this squared norm: for the few rows where the lowest two are equal.
    #[cold]
    fn first_two_of_equals(&self, norm: F) -> ((F, usize), (F, usize)) {
        let all = (0..2 * LANES).map(|i| match i.checked_sub(LANES) {
            None => (self.low[i], self.low_panel[i], i),
            Some(lane) => (self.next[lane], self.next_panel[lane], lane),
        });
        let mut all: Vec<(f64, usize)> = all
            .map(|(score, panel, lane)| (score.to_f64(), panel.to_f64() as usize * LANES + lane))
            .collect();
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let squared = |score: f64| F::from_f64((score + norm.to_f64()).max(0.0));
        ((squared(all[0].0), all[0].1), (squared(all[1].0), all[1].1))
    }
}

struct ToPacked<'a, F, O> {
    rows: &'a [F],
    packed: &'a mut Packed<F>,
    found: O,
}

impl<F: Float, O: FnMut(F, (F, usize), (F, usize))> WithSimd for ToPacked<'_, F, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            rows,
            packed,
            mut found,
        } = self;
        let (places, stride) = (packed.norms.len(), packed.about.len());
        let none = Lanes {
            low: [F::INFINITY; LANES],
            low_panel: [F::zero(); LANES],
            next: [F::INFINITY; LANES],
            next_panel: [F::zero(); LANES],
        };
        for rows in rows.chunks(ROWS * stride) {
            // If there are too few rows, old ones fill up the group. Their results are ignored.
            let mut norms = [F::zero(); ROWS];
            let here = packed.rows.chunks_exact_mut(stride);
            for ((row, here), norm) in rows.chunks_exact(stride).zip(here).zip(&mut norms) {
                *norm = F::minus(simd, row, &packed.about, here);
            }
            let (here, dim) = (&packed.rows[..], packed.values.len() / places);
            // Two panels at a time, if there are registers for their sums: with one, additions would wait for each other.
            let together = if S::REGISTER_COUNT >= 32 { 2 } else { 1 };
            let panels = packed.values.chunks(together * LANES * dim);
            let panels = panels.zip(packed.norms.chunks(together * LANES));
            let (mut lanes, mut number) = ([none; ROWS], 0.0);
            for panels in panels {
                if panels.1.len() == 2 * LANES {
                    F::panels::<S, 2>(simd, here, stride, panels, number, &mut lanes);
                } else {
                    F::panels::<S, 1>(simd, here, stride, panels, number, &mut lanes);
                }
                number += together as f64;
            }
            for ((_, &norm), lanes) in rows.chunks_exact(stride).zip(&norms).zip(&lanes) {
                let (first, next) = F::first_two(simd, norm, lanes);
                found(norm, first, next);
            }
        }
    }
}

/// [`ROWS`] rows against some panels, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Panel: Sized {
    /// `a - b` of two padded rows into `out`; returns its squared norm.
    #[doc(hidden)]
    fn minus<S: Simd>(simd: S, a: &[Self], b: &[Self], out: &mut [Self]) -> Self;
    /// Takes `P` panels, the first of which has this number, into what is known of the rows.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn panels<S: Simd, const P: usize>(
        simd: S,
        rows: &[Self],
        stride: usize,
        panels: (&[Self], &[Self]),
        number: f64,
        lanes: &mut [Lanes<Self>; ROWS],
    );
    /// The lowest of all lanes and the next, for a row of this squared norm.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn first_two<S: Simd>(
        simd: S,
        norm: Self,
        lanes: &Lanes<Self>,
    ) -> ((Self, usize), (Self, usize));
}

macro_rules! panel {
    ($t:ty, $products:ident, $vectors:ident, $vectors_mut:ident, $splat:ident, $sub:ident, $mul_add:ident, $sum:ident, $less:ident, $equal:ident, $select:ident, $min:ident, $max:ident, $least:ident) => {
        impl Panel for $t {
            #[inline(always)]
            fn minus<S: Simd>(simd: S, a: &[Self], b: &[Self], out: &mut [Self]) -> Self {
                let ((a, a_rest), (b, b_rest)) = (S::$vectors(a), S::$vectors(b));
                let (out, out_rest) = S::$vectors_mut(out);
                let mut sums = simd.$splat(0.0);
                for ((&a, &b), out) in a.iter().zip(b).zip(out) {
                    *out = simd.$sub(a, b);
                    sums = simd.$mul_add(*out, *out, sums);
                }
                let mut sum = simd.$sum(sums);
                // Rows shorter than a vector.
                for ((a, b), out) in a_rest.iter().zip(b_rest).zip(out_rest) {
                    *out = a - b;
                    sum += *out * *out;
                }
                sum
            }

            #[inline(always)]
            #[allow(private_interfaces)]
            fn panels<S: Simd, const P: usize>(
                simd: S,
                rows: &[Self],
                stride: usize,
                (panels, norms): (&[Self], &[Self]),
                number: f64,
                lanes: &mut [Lanes<Self>; ROWS],
            ) {
                let dim = panels.len() / (P * LANES);
                let (norms, _) = S::$vectors(norms);
                let per_line = norms.len() / P;
                let rows: [&[Self]; ROWS] = std::array::from_fn(|r| &rows[r * stride..][..dim]);
                let panels: [&[Self]; P] =
                    std::array::from_fn(|p| &panels[p * dim * LANES..][..dim * LANES]);
                for v in 0..per_line {
                    let mut sums = [[simd.$splat(0.0); ROWS]; P];
                    for (p, sums) in sums.iter_mut().enumerate() {
                        *sums = [norms[p * per_line + v]; ROWS];
                    }
                    products::$products::<S, ROWS, P, false>(simd, rows, panels, v, &mut sums);
                    for (r, lanes) in lanes.iter_mut().enumerate() {
                        let low_place = &mut S::$vectors_mut(&mut lanes.low).0[v];
                        let low_panel_place = &mut S::$vectors_mut(&mut lanes.low_panel).0[v];
                        let next_place = &mut S::$vectors_mut(&mut lanes.next).0[v];
                        let next_panel_place = &mut S::$vectors_mut(&mut lanes.next_panel).0[v];
                        let (mut low, mut low_panel) = (*low_place, *low_panel_place);
                        let (mut next, mut next_panel) = (*next_place, *next_panel_place);
                        for (p, sums) in sums.iter().enumerate() {
                            let (score, number) = (sums[r], simd.$splat((number + p as f64) as $t));
                            // The higher of the two, from here or from before, may still be the next.
                            let lower = simd.$less(score, low);
                            let above = simd.$max(low, score);
                            let above_panel = simd.$select(lower, low_panel, number);
                            low = simd.$min(low, score);
                            low_panel = simd.$select(lower, number, low_panel);
                            next_panel =
                                simd.$select(simd.$less(above, next), above_panel, next_panel);
                            next = simd.$min(next, above);
                        }
                        (*low_place, *low_panel_place) = (low, low_panel);
                        (*next_place, *next_panel_place) = (next, next_panel);
                    }
                }
            }

            #[inline(always)]
            #[allow(private_interfaces)]
            fn first_two<S: Simd>(
                simd: S,
                norm: Self,
                lanes: &Lanes<Self>,
            ) -> ((Self, usize), (Self, usize)) {
                let (numbers, _) = S::$vectors(&const { numbers!($t) });
                let (lows, _) = S::$vectors(&lanes.low);
                let (nexts, _) = S::$vectors(&lanes.next);
                let mut least = simd.$splat(Self::INFINITY);
                for &low in lows {
                    least = simd.$min(least, low);
                }
                let first = simd.$least(least);
                let least = simd.$splat(first);
                let lane = lane_where!(lows.len(), &low in lows => simd.$equal(low, least));
                // In its lane, the next is the lowest of the others.
                let here = simd.$splat(lane as $t);
                let mut least = simd.$splat(Self::INFINITY);
                for ((&low, &next), &number) in lows.iter().zip(nexts).zip(numbers) {
                    let other = simd.$select(simd.$equal(number, here), next, low);
                    least = simd.$min(least, other);
                }
                let next = simd.$least(least);
                if next == first {
                    return lanes.first_two_of_equals(norm);
                }
                let least = simd.$splat(next);
                let others = lows.iter().zip(nexts).zip(numbers);
                let next_lane = lane_where!(lows.len(), ((&low, &next), &number) in others => {
                    let other = simd.$select(simd.$equal(number, here), next, low);
                    simd.$equal(other, least)
                });
                let next_panel = if next_lane == lane {
                    lanes.next_panel[lane]
                } else {
                    lanes.low_panel[next_lane]
                };
                let place = |panel: $t, lane| panel as usize * LANES + lane;
                let first = ((first + norm).max(0.0), place(lanes.low_panel[lane], lane));
                if next < Self::INFINITY {
                    (
                        first,
                        ((next + norm).max(0.0), place(next_panel, next_lane)),
                    )
                } else {
                    (first, (Self::INFINITY, 0))
                }
            }
        }
    };
}

panel!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    sub_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s,
    less_than_f32s,
    equal_f32s,
    select_f32s,
    min_f32s,
    max_f32s,
    reduce_min_f32s
);
panel!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    sub_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s,
    less_than_f64s,
    equal_f64s,
    select_f64s,
    min_f64s,
    max_f64s,
    reduce_min_f64s
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::kernels::stride;

    #[test]
    fn the_first_two_are_those_of_the_naive_distances() {
        let mut rng = Rng::from_seed(1);
        for (n, d, ids) in [
            (1, 1, 1),
            (7, 3, 16),
            (8, 8, 17),
            (21, 74, 32),
            (16, 17, 5),
            (9, 9, 40),
        ] {
            let s = stride(d);
            let mut random = |n: usize| -> Vec<f64> {
                (0..n * s)
                    .map(|i| if i % s < d { rng.normal() } else { 0.0 })
                    .collect()
            };
            let (x, mut mu) = (random(n), random(40));
            // A copy: the first of equals is the nearest, the other one the next.
            mu.copy_within(7 * s..8 * s, 14 * s);
            // Copies whose places and lanes are in another order: places 3 and 16.
            mu.copy_within(21 * s..22 * s, 32 * s);
            let ids: Vec<u32> = (0..ids).map(|i| i * 7 % 40).collect();
            let (mut packed, mut found) = (Packed::default(), Vec::new());
            packed.pack(&mu, d, &ids, &mu[7 * s..8 * s]);
            packed.first_two(&x, |_, first, next| found.push((first, next)));
            assert_eq!(found.len(), n);
            with_all_vectors!(ToPacked {
                rows: &x,
                packed: &mut packed,
                found: |_, first, next| found.push((first, next)),
            });
            assert!(found.len() >= 6 * n && found.len() % n == 0);
            let all_rows = x.chunks(s).cycle();
            for (row, (first, next)) in all_rows.zip(found) {
                let squared = |id: &u32| -> f64 {
                    let centre = &mu[*id as usize * s..][..s];
                    row.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum()
                };
                let mut naive: Vec<(f64, usize)> = ids.iter().map(squared).zip(0..).collect();
                naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                naive.push((f64::INFINITY, 0));
                for (got, naive) in [first, next].iter().zip(&naive) {
                    let own = got.1 < ids.len() && squared(&ids[got.1]) == naive.0;
                    assert!(
                        got.1 == naive.1 || (got == &next && own),
                        "{got:?} {naive:?}"
                    );
                    let near = (got.0 - naive.0).abs() <= 1e-12 * (1.0 + naive.0);
                    assert!(near || got.0 == naive.0, "{got:?} {naive:?}");
                }
            }
        }
    }
}
