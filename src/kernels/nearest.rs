//! The nearest of all centres for many rows, and the two nearest of a few for rows near one point: products (E21) and
//! selection in one go, nothing written in between but what stays in the nearest cache.

use super::distance;
use super::panels::{Panels, ROWS, costs_of_first};
use crate::base::float::Float;
use crate::base::simd::{LANES, SimdFloat, first_lane, kernel, lanes};
use crate::base::sort;
use pulp::Simd;

/// Rows that follow each other while a panel stays in a near cache.
const CHUNK: usize = 8 * ROWS;

/// Panels whose costs are read at once.
const PANELS: usize = 16;

/// Costs of a few rows and of some panels.
#[derive(Debug)]
#[repr(align(64))]
struct Costs<F>([F; ROWS * PANELS * LANES]);

/// Stands for the nearest centre of a row where, as far as rounding tells, several may be.
pub(crate) const OPEN: u32 = u32::MAX;

/// The nearest of all centres for padded rows, both as seen from `about` (padded; `None` where rows are so already), into
/// `ids`. Centres are ranked by expansion. The nearest is given where all others are farther by more than twice
/// `margin(norm, cost)`, the rounding bound (E21) of a row of that squared norm at its lowest cost. Other rows get
/// [`OPEN`]. `among` becomes the places of such rows and the centres that may be nearest to them, in the order of the rows.
/// An open row that is not in it has two such centres in one lane: then not all of them are known. `others`, if it is not empty,
/// becomes a lower bound on the squared distance to any centre but the nearest: of an open row, to any centre.
#[expect(clippy::too_many_arguments, reason = "those of the kernel")]
pub(crate) fn nearest<F: Float>(
    rows: &[F],
    about: Option<&[F]>,
    stride: usize,
    panels: &Panels<F>,
    margin: impl Fn(f64, f64) -> f64,
    ids: &mut [u32],
    others: &mut [F],
    among: &mut Vec<(usize, u32)>,
) {
    among.clear();
    of_all(rows, about, stride, panels, margin, ids, others, among);
}

kernel! {
    fn of_all[F: Float, M: Fn(f64, f64) -> f64](
        rows: &[F],
        about: Option<&[F]>,
        stride: usize,
        panels: &Panels<F>,
        margin: M,
        ids: &mut [u32],
        others: &mut [F],
        among: &mut Vec<(usize, u32)>,
    ) = nearest_of_all
}

#[expect(clippy::too_many_arguments, reason = "those of the kernel")]
#[inline(always)]
fn nearest_of_all<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    about: Option<&[F]>,
    stride: usize,
    panels: &Panels<F>,
    margin: impl Fn(f64, f64) -> f64,
    ids: &mut [u32],
    others: &mut [F],
    among: &mut Vec<(usize, u32)>,
) {
    let mut lanes = [Lanes::new(); CHUNK];
    let mut costs = Costs([F::zero(); ROWS * PANELS * LANES]);
    let mut place = 0;
    // A chunk of rows as seen from there.
    let mut relative = vec![F::zero(); about.map_or(0, |_| rows.len().min(CHUNK * stride))];
    for (mut rows, ids) in rows.chunks(CHUNK * stride).zip(ids.chunks_mut(CHUNK)) {
        if let Some(about) = about {
            let relatives = relative.chunks_exact_mut(stride);
            for (row, relative) in rows.chunks_exact(stride).zip(relatives) {
                distance::relative(simd, row, about, relative);
            }
            rows = &relative[..rows.len()];
        }
        let lanes = &mut lanes[..ids.len()];
        lanes.fill(Lanes::new());
        for (panel, part) in panels.parts(PANELS) {
            let mut first = 0;
            let width = part.norms.len();
            while first < lanes.len() {
                let rows = &rows[first * stride..];
                let taken = costs_of_first(simd, rows, stride, part, &mut costs.0, width);
                let costs = costs.0.chunks_exact(width).take(taken);
                for (lanes, costs) in lanes[first..].iter_mut().zip(costs) {
                    lanes.lower(simd, costs, panel);
                }
                first += taken;
            }
        }
        for ((row, lanes), id) in rows.chunks_exact(stride).zip(lanes).zip(ids) {
            let norm = distance::squared_norm(simd, row);
            let best = lanes.nearest(simd, norm, &margin);
            *id = best.id;
            if best.id == OPEN {
                among.extend(lanes.within(best.reach).map(|id| (place, id)));
            }
            if let Some(out) = others.get_mut(place) {
                *out = at_most(norm, best.next, &margin);
            }
            place += 1;
        }
    }
}

/// At most the squared distance of a row of this squared norm to centres whose costs are not below this one.
#[inline(always)]
pub(super) fn at_most<F: Float>(norm: F, cost: F, margin: &impl Fn(f64, f64) -> f64) -> F {
    let squared = (cost + norm).to_f64().max(0.0);
    F::from_f64((squared - margin(norm.to_f64(), squared)).max(0.0))
}

/// The nearest centre of a row, by its lanes.
pub(super) struct Nearest<F> {
    /// The nearest centre, if it is sure.
    pub(super) id: u32,
    /// The highest cost of any that may be it.
    reach: F,
    /// The lowest cost of all others: of all, if it is not sure.
    pub(super) next: F,
}

/// Per lane: the lowest cost so far, the panel it is from, and the next lowest.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes<F> {
    low: [F; LANES],
    panel: [F; LANES],
    next: [F; LANES],
}

impl<F: Float> Lanes<F> {
    fn new() -> Self {
        Self {
            low: [F::INFINITY; LANES],
            panel: [F::zero(); LANES],
            next: [F::INFINITY; LANES],
        }
    }

    /// Takes in costs of some panels, the first of which has this number.
    #[inline(always)]
    fn lower<S: Simd>(&mut self, simd: S, costs: &[F], panel: usize) {
        let (costs, _) = F::vectors::<S>(costs);
        let (lows, _) = F::vectors_mut::<S>(&mut self.low);
        let (panels, _) = F::vectors_mut::<S>(&mut self.panel);
        let (nexts, _) = F::vectors_mut::<S>(&mut self.next);
        let per_line = LANES / lanes::<F, S>();
        let one = F::splat(simd, F::one());
        let first = F::splat(simd, F::from_f64(panel as f64));
        for v in 0..per_line {
            let mut low = lows[v];
            let mut panel = panels[v];
            let mut next = nexts[v];
            let mut number = first;
            for costs in costs.chunks_exact(per_line) {
                let cost = costs[v];
                next = F::lower(simd, next, F::higher(simd, low, cost));
                panel = F::select(simd, F::less(simd, cost, low), number, panel);
                low = F::lower(simd, low, cost);
                number = F::plus(simd, number, one);
            }
            (lows[v], panels[v], nexts[v]) = (low, panel, next);
        }
    }

    /// A row against one panel, of this number, where `next` is the lowest cost of all others.
    #[inline(always)]
    pub(super) fn of_panel<S: Simd>(
        simd: S,
        row: &[F],
        panels: &Panels<F>,
        number: F,
        next: F,
    ) -> Self {
        let mut lanes = Self::new();
        lanes.panel = [number; LANES];
        lanes.next[0] = next;
        let panel = number.to_f64() as usize;
        let values = &panels.values[panel * panels.dim * LANES..];
        lanes
            .low
            .copy_from_slice(&panels.norms[panel * LANES..][..LANES]);
        let (low, _) = F::vectors_mut::<S>(&mut lanes.low);
        for (&x, values) in row.iter().zip(values.chunks_exact(LANES)) {
            let x = F::splat(simd, x);
            for (low, &value) in low.iter_mut().zip(F::vectors::<S>(values).0) {
                *low = F::times_plus(simd, x, value, *low);
            }
        }
        lanes
    }

    /// The nearest centre of a row of this squared norm.
    #[inline(always)]
    pub(super) fn nearest<S: Simd>(
        &self,
        simd: S,
        norm: F,
        margin: &impl Fn(f64, f64) -> f64,
    ) -> Nearest<F> {
        // Coordinates in a frame are held far from overflow.
        let least = least(simd, &self.low);
        let lane = lane_of(simd, &self.low, least);
        // The nearest of all others, in that lane and elsewhere.
        let here = splat_lane::<F, S>(simd, lane);
        let infinity = F::splat(simd, F::INFINITY);
        let mut other = infinity;
        let low = F::vectors::<S>(&self.low).0;
        let next = F::vectors::<S>(&self.next).0;
        let vectors = low.iter().zip(next);
        for ((&low, &next), &number) in vectors.zip(F::vectors::<S>(F::NUMBERS).0) {
            let low = F::select(simd, F::equal(simd, number, here), infinity, low);
            other = F::lower(simd, other, F::lower(simd, low, next));
        }
        let other = F::least(simd, other);
        let cost = (least + norm).to_f64().max(0.0);
        let reach = least + F::from_f64(2.0 * margin(norm.to_f64(), cost));
        let id = self.panel[lane].to_f64() as u32 * LANES as u32 + lane as u32;
        let (id, next) = if other > reach {
            (id, other)
        } else {
            (OPEN, least)
        };
        Nearest { id, reach, next }
    }

    /// The centres whose costs are not above `reach`; none if they are not all known.
    fn within(&self, reach: F) -> impl Iterator<Item = u32> {
        let known = self.next.iter().all(|next| *next > reach);
        let lanes = if known { 0..LANES } else { 0..0 };
        let lanes = lanes.filter(move |&lane| self.low[lane] <= reach);
        lanes.map(|lane| self.panel[lane].to_f64() as u32 * LANES as u32 + lane as u32)
    }
}

#[inline(always)]
fn least<F: SimdFloat, S: Simd>(simd: S, numbers: &[F; LANES]) -> F {
    let (vectors, _) = F::vectors::<S>(numbers);
    let mut least = vectors[0];
    for &vector in &vectors[1..] {
        least = F::lower(simd, least, vector);
    }
    F::least(simd, least)
}

/// The first lane that has this number; one has, as no cost is NaN.
#[inline(always)]
fn lane_of<F: SimdFloat, S: Simd>(simd: S, numbers: &[F; LANES], number: F) -> usize {
    let number = F::splat(simd, number);
    let mut lane = 0;
    for &vector in F::vectors::<S>(numbers).0 {
        let first = first_lane(F::equal(simd, vector, number), lanes::<F, S>());
        lane += first;
        if first < lanes::<F, S>() {
            break;
        }
    }
    lane % LANES
}

#[inline(always)]
fn splat_lane<F: Float, S: Simd>(simd: S, lane: usize) -> F::Vector<S> {
    F::splat(simd, F::NUMBERS[lane])
}

/// A few centres relative to a point near them, in panels.
#[derive(Debug, Default)]
pub(crate) struct Packed<F> {
    about: Vec<F>,
    panels: Panels<F>,
    /// Some rows, relative to that point.
    rows: Vec<F>,
    costs: Option<Box<Costs<F>>>,
}

impl<F: Float> Packed<F> {
    /// Packs the centres `ids` out of padded rows of as many numbers as `about` has, `dim` of them coordinates.
    pub(crate) fn pack(&mut self, centres: &[F], dim: usize, ids: &[u32], about: &[F]) {
        self.about.clear();
        self.about.extend_from_slice(about);
        self.rows.resize(LANES.max(ROWS) * about.len(), F::zero());
        self.panels.make_room(ids.len(), dim);
        pack_about(centres, ids, self);
    }

    /// Shows `found`, for each of some padded rows, its squared distance to the point, and the nearest and the next
    /// nearest of the packed centres: squared distances, and places in the list. The nearest is the first of equals, the
    /// next any of them; infinity and place 0 where there is no next.
    pub(crate) fn first_two(&mut self, rows: &[F], found: impl FnMut(F, (F, usize), (F, usize))) {
        two_nearest(rows, self, found);
    }
}

kernel! {
    fn pack_about[F: Float](centres: &[F], ids: &[u32], packed: &mut Packed<F>) = pack_relative
}

/// A panel at a time: first its centres relative to the point, then these by coordinate.
#[inline(always)]
fn pack_relative<F: Float, S: Simd>(simd: S, centres: &[F], ids: &[u32], packed: &mut Packed<F>) {
    let Packed {
        about,
        panels,
        rows,
        ..
    } = packed;
    let stride = about.len();
    for (panel, ids) in ids.chunks(LANES).enumerate() {
        for ((&id, row), norm) in ids
            .iter()
            .zip(rows.chunks_exact_mut(stride))
            .zip(&mut panels.norms[panel * LANES..])
        {
            let centre = &centres[id as usize * stride..][..stride];
            *norm = distance::relative(simd, centre, about, row);
        }
        panels.put_panel(panel, rows, stride, F::from_f64(-2.0));
    }
}

kernel! {
    fn two_nearest[F: Float, O: FnMut(F, (F, usize), (F, usize))](
        rows: &[F],
        packed: &mut Packed<F>,
        found: O,
    ) = two_nearest_of_packed
}

#[inline(always)]
fn two_nearest_of_packed<F: Float, S: Simd>(
    simd: S,
    rows: &[F],
    packed: &mut Packed<F>,
    mut found: impl FnMut(F, (F, usize), (F, usize)),
) {
    let Packed {
        about,
        panels,
        rows: relative,
        costs,
    } = packed;
    let stride = about.len();
    let costs = costs.get_or_insert_with(
        #[inline(always)]
        || Box::new(Costs([F::zero(); ROWS * PANELS * LANES])),
    );
    for rows in rows.chunks(ROWS * stride) {
        let mut norms = [F::zero(); ROWS];
        let relatives = relative.chunks_exact_mut(stride);
        for ((row, relative), norm) in rows.chunks_exact(stride).zip(relatives).zip(&mut norms) {
            *norm = distance::relative(simd, row, about, relative);
        }
        let relative = &relative[..rows.len()];
        let mut lanes = [TwoLanes::new(); ROWS];
        let lanes = &mut lanes[..rows.len() / stride];
        for (panel, part) in panels.parts(PANELS) {
            let mut first = 0;
            let width = part.norms.len();
            while first < lanes.len() {
                let rows = &relative[first * stride..];
                let taken = costs_of_first(simd, rows, stride, part, &mut costs.0, width);
                let costs = costs.0.chunks_exact(width).take(taken);
                for (lanes, costs) in lanes[first..].iter_mut().zip(costs) {
                    lanes.lower(simd, costs, panel);
                }
                first += taken;
            }
        }
        for (&norm, lanes) in norms.iter().zip(lanes) {
            let (first, next) = lanes.first_two(simd, norm);
            found(norm, first, next);
        }
    }
}

/// Per lane: the lowest so far and the next, and the panels they are from.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct TwoLanes<F> {
    low: [F; LANES],
    low_panel: [F; LANES],
    next: [F; LANES],
    next_panel: [F; LANES],
}

#[repr(align(64))]
struct Numbers<F>([F; LANES]);

impl<F: Float> TwoLanes<F> {
    fn new() -> Self {
        Self {
            low: [F::INFINITY; LANES],
            low_panel: [F::zero(); LANES],
            next: [F::INFINITY; LANES],
            next_panel: [F::zero(); LANES],
        }
    }

    /// Takes in costs of some panels, the first of which has this number.
    #[inline(always)]
    fn lower<S: Simd>(&mut self, simd: S, costs: &[F], panel: usize) {
        let (costs, _) = F::vectors::<S>(costs);
        let (lows, _) = F::vectors_mut::<S>(&mut self.low);
        let (low_panels, _) = F::vectors_mut::<S>(&mut self.low_panel);
        let (nexts, _) = F::vectors_mut::<S>(&mut self.next);
        let (next_panels, _) = F::vectors_mut::<S>(&mut self.next_panel);
        let per_line = LANES / lanes::<F, S>();
        let one = F::splat(simd, F::one());
        let first = F::splat(simd, F::from_f64(panel as f64));
        for v in 0..per_line {
            let mut low = lows[v];
            let mut low_panel = low_panels[v];
            let mut next = nexts[v];
            let mut next_panel = next_panels[v];
            let mut number = first;
            for costs in costs.chunks_exact(per_line) {
                let cost = costs[v];
                // The higher of the two, from here or from before, may still be the next.
                let lower = F::less(simd, cost, low);
                let above = F::higher(simd, low, cost);
                let above_panel = F::select(simd, lower, low_panel, number);
                low = F::lower(simd, low, cost);
                low_panel = F::select(simd, lower, number, low_panel);
                let nearer = F::less(simd, above, next);
                next_panel = F::select(simd, nearer, above_panel, next_panel);
                next = F::lower(simd, next, above);
                number = F::plus(simd, number, one);
            }
            (lows[v], low_panels[v]) = (low, low_panel);
            (nexts[v], next_panels[v]) = (next, next_panel);
        }
    }

    /// The lowest of all lanes and the next, for a row of this squared norm.
    #[inline(always)]
    fn first_two<S: Simd>(&self, simd: S, norm: F) -> ((F, usize), (F, usize)) {
        let first = least(simd, &self.low);
        let lane = lane_of(simd, &self.low, first);
        // Candidates for the next lowest cost: `next` in the lane of the lowest, and `low` in all other lanes.
        let mut others = Numbers([F::INFINITY; LANES]);
        let here = splat_lane::<F, S>(simd, lane);
        let low = F::vectors::<S>(&self.low).0;
        let next = F::vectors::<S>(&self.next).0;
        let vectors = low.iter().zip(next);
        let vectors = vectors.zip(F::vectors::<S>(F::NUMBERS).0);
        for (other, ((&low, &next), &number)) in
            F::vectors_mut::<S>(&mut others.0).0.iter_mut().zip(vectors)
        {
            *other = F::select(simd, F::equal(simd, number, here), next, low);
        }
        let next = least(simd, &others.0);
        if next == first {
            return self.first_two_of_equals(norm);
        }
        let next_lane = lane_of(simd, &others.0, next);
        let next_panel = if next_lane == lane {
            self.next_panel[lane]
        } else {
            self.low_panel[next_lane]
        };
        let squared = |cost: F| {
            let squared = cost + norm;
            if squared > F::zero() {
                squared
            } else {
                F::zero()
            }
        };
        let first = (squared(first), place(self.low_panel[lane], lane));
        if next < F::INFINITY {
            (first, (squared(next), place(next_panel, next_lane)))
        } else {
            (first, (F::INFINITY, 0))
        }
    }

    /// The first two by cost and place, for a row of this squared norm: for the few rows where the lowest two are equal.
    #[cold]
    fn first_two_of_equals(&self, norm: F) -> ((F, usize), (F, usize)) {
        let lanes = (0..LANES).flat_map(|lane| {
            let low = (self.low[lane].to_f64(), place(self.low_panel[lane], lane));
            [
                low,
                (self.next[lane].to_f64(), place(self.next_panel[lane], lane)),
            ]
        });
        let mut ordered: Vec<(f64, usize)> = lanes.collect();
        sort::by_value(&mut ordered);
        let squared = |cost: f64| F::from_f64((cost + norm.to_f64()).max(0.0));
        (
            (squared(ordered[0].0), ordered[0].1),
            (squared(ordered[1].0), ordered[1].1),
        )
    }
}

#[inline(always)]
fn place<F: Float>(panel: F, lane: usize) -> usize {
    panel.to_f64() as usize * LANES + lane
}

#[cfg(test)]
pub(super) mod tests {
    use super::distance::Normed;
    use super::*;
    use crate::base::rng::Rng;
    use crate::base::simd::on_every_processor;
    use crate::kernels::panels::tests::{SHAPES, norms, random};
    use crate::kernels::stride;
    use std::cell::RefCell;

    /// Holds a search of this shape (n, d, k) against the naive one. It takes rows, their stride, centres, the margin, and gives
    /// ids, bounds on the distances to others, and candidates of open rows. Two centres coincide, in one lane of two panels or in two: they are never sure.
    pub(in crate::kernels) fn sure_ones_are_the_nearest<F: Float>(
        shape: (usize, usize, usize),
        search: impl Fn(
            &[F],
            usize,
            Normed<'_, F>,
            &dyn Fn(f64, f64) -> f64,
            &mut [u32],
            &mut [F],
            &mut Vec<(usize, u32)>,
        ),
    ) {
        let (n, d, k) = shape;
        let within = (0.3 / k as f64).min(1e-2);
        let mut rng = Rng::from_seed(6);
        let s = stride(d);
        let mut x: Vec<F> = random(&mut rng, n, d);
        let mut mu: Vec<F> = random(&mut rng, k, d);
        if k > 1 {
            let copy = if k % 2 == 0 { k / 2 } else { 16 };
            mu.copy_within(..s, copy * s);
            x[..s].copy_from_slice(&mu[..s]);
        }
        on_every_processor(|| {
            let mut ids = vec![0; n];
            let mut others = vec![F::zero(); n];
            let mut candidates = Vec::new();
            let asked = RefCell::new(Vec::new());
            let margin = |norm: f64, cost: f64| {
                asked.borrow_mut().push([norm, cost]);
                within
            };
            let centres = Normed {
                rows: &mu,
                norms: &norms(&mu, d),
            };
            search(
                &x,
                s,
                centres,
                &margin,
                &mut ids,
                &mut others,
                &mut candidates,
            );
            let sure = ids.iter().filter(|id| **id != OPEN).count();
            assert!(2 * sure >= n, "{sure} of {n}: {d} {k}");
            for (place, (row, &label)) in x.chunks(s).zip(&ids).enumerate() {
                let exact = mu.chunks(s).map(|c| distance::exact(row, c));
                let mut naive: Vec<(f64, u32)> = exact.zip(0..).collect();
                naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                // The margin is that of the row's norm and its lowest cost.
                let of_row = [distance::exact(row, &vec![F::zero(); s]), naive[0].0];
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * (d as f64 + b);
                let is_near = |asked: &[f64; 2]| asked.iter().zip(&of_row).all(near);
                assert!(asked.borrow().iter().any(is_near));
                // All but the nearest are at least as far as the bound, which is close.
                let next = naive.get(usize::from(label != OPEN));
                let next = next.map_or(f64::INFINITY, |n| n.0);
                let bound = others[place].to_f64();
                let close = 2.0 * within + 1e-4 * (d as f64 + next);
                assert!(
                    bound <= next && bound >= (next - close).min(f64::MAX),
                    "{bound} {next}"
                );
                let listed = || candidates.iter().filter(|(open, _)| *open == place);
                if label != OPEN {
                    assert_eq!(label, naive[0].1);
                    assert!(k == 1 || naive[1].0 - naive[0].0 > within);
                    assert_eq!(listed().count(), 0);
                    continue;
                }
                assert!(naive[1].0 - naive[0].0 < 3.0 * within);
                if listed().count() > 0 {
                    // As near as others there, and all that are nearer than the margin.
                    for (far, id) in &naive {
                        let is_listed = listed().any(|(_, listed)| listed == id);
                        let behind = far - naive[0].0;
                        assert!(is_listed || behind > within);
                        assert!(!is_listed || behind <= 3.0 * within);
                    }
                }
            }
        });
    }

    fn searches_are_the_naive_ones<F: Float>() {
        for shape in SHAPES {
            sure_ones_are_the_nearest(
                shape,
                |rows: &[F], stride, centres, margin, ids, others, candidates| {
                    let panels = Panels::pack(centres.rows, stride, shape.1, centres.norms);
                    nearest(rows, None, stride, &panels, margin, ids, others, candidates);
                },
            );
        }
    }

    #[test]
    fn sure_ones_are_the_nearest_of_the_naive_search() {
        searches_are_the_naive_ones::<f32>();
        searches_are_the_naive_ones::<f64>();
    }

    fn first_two_are_the_naive_ones<F: Float>(within: f64) {
        let mut rng = Rng::from_seed(1);
        for (n, d, k) in SHAPES {
            let s = stride(d);
            let number = k.max(40);
            let x: Vec<F> = random(&mut rng, n, d);
            let mut mu: Vec<F> = random(&mut rng, number, d);
            // A copy: the first of equals is the nearest, the other one the next. And copies whose places and lanes are in
            // another order: places 3 and 16.
            mu.copy_within(7 * s..8 * s, 14 * s);
            mu.copy_within(21 * s..22 * s, 32 * s);
            let ids: Vec<u32> = (0..k).map(|i| (i * 7 % number) as u32).collect();
            on_every_processor(|| {
                let mut packed = Packed::default();
                let mut pairs = Vec::new();
                packed.pack(&mu, d, &ids, &mu[7 * s..8 * s]);
                packed.first_two(&x, |_, first, next| pairs.push((first, next)));
                assert_eq!(pairs.len(), n);
                for (row, (first, next)) in x.chunks(s).zip(pairs) {
                    let to = |id: &u32| distance::exact(row, &mu[*id as usize * s..][..s]);
                    let mut naive: Vec<(f64, usize)> = ids.iter().map(to).zip(0..).collect();
                    naive.sort_by(|a, b| a.0.total_cmp(&b.0));
                    naive.push((f64::INFINITY, 0));
                    for (got, naive) in [first, next].iter().zip(&naive) {
                        let near = |a: f64| (a - naive.0).abs() <= within * (d as f64 + naive.0);
                        let squared = got.0.to_f64();
                        assert!(near(squared) || squared == naive.0, "{got:?} {naive:?}");
                        // Which of equals is the next is open.
                        let is_equal = got.1 < ids.len() && near(to(&ids[got.1]));
                        assert!(got.1 == naive.1 || is_equal, "{got:?} {naive:?}");
                    }
                }
            });
        }
    }

    #[test]
    fn the_first_two_are_those_of_the_naive_distances() {
        first_two_are_the_naive_ones::<f32>(1e-5);
        first_two_are_the_naive_ones::<f64>(1e-12);
    }
}
