//! The lowest score of every row and the sum over all components that a log-density is made of.
//!
//! Scores of a few rows and of some panels stay in the nearest cache, until they are in the sums.

use super::panels::Panels;
use super::products;
use crate::base::float::Float;
use crate::base::simd::{LANES, first_lane};
use pulp::{Arch, Simd, WithSimd};

/// Rows that share one read of a panel, where there are registers for their numbers and all of their sums; else half as
/// many.
const ROWS: usize = 8;

/// Panels whose scores are read at once, and the most numbers that these have.
const PANELS: usize = 32;
const NUMBERS: usize = 1 << 17;

/// Vectors of scores that are looked at together: most of them have none that counts.
const VECTORS: usize = 4;

/// No further entry of the list.
const NONE: u32 = u32::MAX;

/// What is known of a row against all centres. Scores are squared distances, less the squared norm of the row where they are
/// expanded (E21).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares<F> {
    /// The squared norm of the row, if scores are less by it; else 0.
    pub(crate) norm: F,
    /// The lowest score.
    pub(crate) low: F,
    /// Components whose scores are not above this are listed.
    near: F,
    /// Components whose scores are above this are left out.
    far: F,
    /// The least that both have been.
    least: [F; 2],
    /// $\sum_c e^{-\beta (s_c - s)}$ over components that are neither, with $s$ the lowest score.
    pub(crate) others: f64,
    /// Its last entry of the list, and how many it has.
    last: u32,
    count: u32,
}

/// A component near a row: its score, and the entry of the same row before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<F> {
    id: u32,
    before: u32,
    score: F,
}

/// What is asked of rows.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// What one unit of score costs, in nats.
    pub(crate) beta: f64,
    /// So many components of a row are listed at most.
    pub(crate) most: usize,
    /// For a row of this squared norm and lowest squared distance: how much higher the scores are that must be listed, and
    /// those that count.
    pub(crate) reach: &'a dyn Fn(f64, f64) -> (f64, f64),
    /// Whether distances are computed directly: in twice the time.
    pub(crate) directly: bool,
}

/// How far behind the best one, in nats, `k` components together change the sum by less than its rounding.
pub(crate) fn gap<F: Float>(k: usize) -> f64 {
    (4.0 * k as f64 / F::EPSILON).ln()
}

/// How far off a sum over components may be for the rounding of their scores, relative to it.
pub(crate) fn tolerance<F: Float>() -> f64 {
    (8.0 * F::EPSILON).max(1e-12)
}

/// How far behind the best one, in nats, rounding is still felt in the sum over `count` components whose log-joints are
/// known to within `error`: beyond it, all of them together change the sum by less than `enough` of it.
#[inline(always)]
pub(crate) fn felt_within(count: f64, error: f64, enough: f64) -> f64 {
    let each = match error < 0.5 {
        // At least e^x - 1.
        true => error * (1.0 + error),
        false => error.exp_m1(),
    };
    if each <= enough {
        return 0.0;
    }
    // At least its logarithm: an exponent of two in place of it takes no time.
    let times = count * each / enough;
    match times.is_finite() {
        true => ((times.to_bits() >> 52) as f64 - 1022.0).max(0.0) * std::f64::consts::LN_2,
        false => f64::INFINITY,
    }
}

/// Padded rows in the memory of a search: as seen from a point, with rows of zeros up to a whole number of groups.
#[derive(Debug, Default)]
pub(crate) struct Group<F> {
    rows: Vec<F>,
    /// Scores of [`ROWS`] rows and of some panels.
    scores: Vec<F>,
}

impl<F: Float> Shares<F> {
    fn of(norm: F) -> Self {
        let all = F::INFINITY;
        Self {
            norm,
            low: all,
            near: all,
            far: all,
            least: [all; 2],
            others: 0.0,
            last: NONE,
            count: 0,
        }
    }

    /// The components that are listed and near, into `ids`; the others on the list go to the sum. `false`, and nothing of
    /// use, where not all that are near are listed.
    pub(crate) fn listed(&mut self, beta: f64, listed: &[Listed<F>], ids: &mut Vec<u32>) -> bool {
        ids.clear();
        // Numbers that left the range of the type are known nowhere.
        let known = self.low.is_finite() && self.norm.is_finite() && self.far.is_finite();
        if !known || self.near > self.least[0] || self.far > self.least[1] {
            return false;
        }
        let mut place = self.last;
        while let Some(entry) = listed.get(place as usize) {
            if entry.score <= self.near {
                ids.push(entry.id);
            } else if entry.score <= self.far {
                self.others += (-beta * (entry.score - self.low).to_f64()).exp();
            }
            place = entry.before;
        }
        !ids.is_empty()
    }

    /// There is a lower score than before.
    #[inline(always)]
    fn lower(&mut self, lowest: F, asked: &Asked<'_>) {
        if self.others > 0.0 {
            self.others *= (asked.beta * (lowest - self.low).to_f64()).exp();
        }
        self.low = lowest;
        let squared = (lowest + self.norm).to_f64().max(0.0);
        let (near, far) = (asked.reach)(self.norm.to_f64(), squared);
        self.near = lowest + F::from_f64(near);
        self.far = lowest + F::from_f64(far);
        for (least, now) in self.least.iter_mut().zip([self.near, self.far]) {
            *least = if now < *least { now } else { *least };
        }
    }

    /// Lists a component that is near, if there are not too many.
    #[inline(always)]
    fn list(&mut self, id: usize, score: F, most: usize, listed: &mut Vec<Listed<F>>) {
        self.count += 1;
        if self.count as usize > most {
            // Nothing else is looked at.
            let none = -F::INFINITY;
            (self.near, self.far, self.least) = (none, none, [none; 2]);
            return;
        }
        let before = std::mem::replace(&mut self.last, listed.len() as u32);
        let id = id as u32;
        listed.push(Listed { id, before, score });
    }
}

/// All centres against padded rows; both they and the panels are as seen from `about` (padded; `None` where rows are so
/// already). `shares` becomes what is known of every row; `listed` is the list of all.
pub(crate) fn of_rows<'a, F: Float>(
    rows: impl Iterator<Item = &'a [F]>,
    about: Option<&[F]>,
    panels: &Panels<F>,
    asked: &Asked<'_>,
    (shares, listed): (&mut Vec<Shares<F>>, &mut Vec<Listed<F>>),
    group: &mut Group<F>,
) {
    group.rows.clear();
    rows.for_each(|row| group.rows.extend_from_slice(row));
    listed.clear();
    shares.clear();
    Arch::new().dispatch(OfRows {
        about,
        panels,
        asked,
        shares,
        listed,
        group,
    });
}

struct OfRows<'a, F> {
    about: Option<&'a [F]>,
    panels: &'a Panels<F>,
    asked: &'a Asked<'a>,
    shares: &'a mut Vec<Shares<F>>,
    listed: &'a mut Vec<Listed<F>>,
    group: &'a mut Group<F>,
}

impl<F: Float> WithSimd for OfRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match (S::REGISTER_COUNT >= 32, self.asked.directly) {
            (true, false) => self.by_groups::<S, ROWS, false>(simd),
            (true, true) => self.by_groups::<S, ROWS, true>(simd),
            (false, false) => self.by_groups::<S, { ROWS / 2 }, false>(simd),
            (false, true) => self.by_groups::<S, { ROWS / 2 }, true>(simd),
        }
    }
}

impl<F: Float> OfRows<'_, F> {
    /// `N` rows at a time.
    #[inline(always)]
    fn by_groups<S: Simd, const N: usize, const DIRECTLY: bool>(self, simd: S) {
        let Self {
            about,
            panels,
            asked,
            shares,
            listed,
            group,
        } = self;
        let (dim, stride) = (panels.dim, super::stride(panels.dim));
        for row in group.rows.chunks_exact_mut(stride) {
            if let Some(about) = about {
                for (x, about) in row.iter_mut().zip(about) {
                    *x -= *about;
                }
            }
            let norm = if DIRECTLY {
                F::zero()
            } else {
                super::distance::squared_norm(simd, row)
            };
            shares.push(Shares::of(norm));
        }
        group
            .rows
            .resize(shares.len().next_multiple_of(N) * stride, F::zero());
        let each = NUMBERS / (dim * LANES) / 2 * 2;
        let each = each.clamp(2, PANELS);
        group.scores.resize(N * each * LANES, F::zero());
        let scores = &mut group.scores[..];
        let parts = panels.values.chunks(each * dim * LANES);
        for (part, (values, norms)) in parts.zip(panels.norms.chunks(each * LANES)).enumerate() {
            let first = part * each * LANES;
            let groups = group.rows.chunks_exact(N * stride);
            for (rows, shares) in groups.zip(shares.chunks_mut(N)) {
                let twos = values.chunks_exact(2 * dim * LANES);
                let (last, width) = (twos.remainder(), norms.len());
                let mut place = 0;
                // Two panels at a time: with one alone, sums would wait for each other.
                for values in twos {
                    let norms = &norms[place..place + 2 * LANES];
                    F::scores::<S, N, 2, DIRECTLY>(
                        simd,
                        rows,
                        (values, norms),
                        scores,
                        place,
                        width,
                    );
                    place += 2 * LANES;
                }
                if !last.is_empty() {
                    let norms = &norms[place..];
                    F::scores::<S, N, 1, DIRECTLY>(simd, rows, (last, norms), scores, place, width);
                }
                for (shares, scores) in shares.iter_mut().zip(scores.chunks_exact_mut(width)) {
                    F::take_in(simd, scores, first, asked, shares, listed);
                }
            }
        }
    }
}

/// Scores and what follows from them, with the vectors of the processor.
///
/// Implemented for `f32` and `f64`; [`Float`] names it, so that kernels can be generic.
pub trait Share: Sized {
    /// `N` rows against `P` panels and their norms, from this place on of their scores, which have this width.
    #[doc(hidden)]
    fn scores<S: Simd, const N: usize, const P: usize, const DIRECTLY: bool>(
        simd: S,
        rows: &[Self],
        panels: (&[Self], &[Self]),
        out: &mut [Self],
        place: usize,
        width: usize,
    );
    /// Takes in the scores of a row for some components, from this one on.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn take_in<S: Simd>(
        simd: S,
        scores: &mut [Self],
        first: usize,
        asked: &Asked<'_>,
        shares: &mut Shares<Self>,
        listed: &mut Vec<Listed<Self>>,
    );
}

macro_rules! share {
    ($t:ty, $products:ident, $vectors:ident, $vectors_mut:ident, $splat:ident, $sub:ident, $mul:ident, $add:ident, $min:ident, $less:ident, $select:ident, $not_above:ident, $least:ident, $sum:ident, $powers:ident) => {
        impl Share for $t {
            #[inline(always)]
            fn scores<S: Simd, const N: usize, const P: usize, const DIRECTLY: bool>(
                simd: S,
                rows: &[Self],
                (panels, norms): (&[Self], &[Self]),
                out: &mut [Self],
                place: usize,
                width: usize,
            ) {
                let dim = panels.len() / (P * LANES);
                let stride = rows.len() / N;
                let rows: [&[Self]; N] = std::array::from_fn(|r| &rows[r * stride..][..dim]);
                let (norms, _) = S::$vectors(norms);
                let per_line = norms.len() / P;
                let panels: [&[Self]; P] =
                    std::array::from_fn(|p| &panels[p * dim * LANES..][..dim * LANES]);
                for v in 0..per_line {
                    let mut scores = [[simd.$splat(0.0); N]; P];
                    // Places that no centre fills stay infinitely far.
                    let (zero, infinity) = (simd.$splat(0.0), simd.$splat(Self::INFINITY));
                    for (p, scores) in scores.iter_mut().enumerate() {
                        let norm = norms[p * per_line + v];
                        *scores = [norm; N];
                        if DIRECTLY {
                            let filled = simd.$less(norm, infinity);
                            *scores = [simd.$select(filled, zero, infinity); N];
                        }
                    }
                    products::$products::<S, N, P, DIRECTLY>(simd, rows, panels, v, &mut scores);
                    for r in 0..N {
                        let line = &mut out[r * width + place..][..P * LANES];
                        let (line, _) = S::$vectors_mut(line);
                        for (p, scores) in scores.iter().enumerate() {
                            line[p * per_line + v] = scores[r];
                        }
                    }
                }
            }

            #[inline(always)]
            #[allow(private_interfaces)]
            fn take_in<S: Simd>(
                simd: S,
                scores: &mut [Self],
                first: usize,
                asked: &Asked<'_>,
                shares: &mut Shares<Self>,
                listed: &mut Vec<Listed<Self>>,
            ) {
                let (vectors, _) = S::$vectors_mut(scores);
                let infinity = simd.$splat(Self::INFINITY);
                let mut lows = [infinity; VECTORS];
                let (groups, rest) = vectors.as_chunks::<VECTORS>();
                for group in groups {
                    for (low, &score) in lows.iter_mut().zip(group) {
                        *low = simd.$min(*low, score);
                    }
                }
                for (low, &score) in lows.iter_mut().zip(rest) {
                    *low = simd.$min(*low, score);
                }
                let pairs = [simd.$min(lows[0], lows[1]), simd.$min(lows[2], lows[3])];
                let lowest = simd.$least(simd.$min(pairs[0], pairs[1]));
                if lowest < shares.low {
                    shares.lower(lowest, asked);
                }
                if lowest > shares.far {
                    return;
                }
                // Beyond it, every difference is lost.
                let beta = asked.beta.min(Self::LARGEST_SCORE);
                let factor = simd.$splat((-beta * std::f64::consts::LOG2_E) as $t);
                let lanes = size_of::<S::$products>() / size_of::<$t>();
                let low = simd.$splat(shares.low);
                let mut total = simd.$splat(0.0);
                let mut place = first;
                for group in vectors.chunks_mut(VECTORS) {
                    let mut lowest = infinity;
                    for &score in &*group {
                        lowest = simd.$min(lowest, score);
                    }
                    let far = simd.$not_above(lowest, simd.$splat(shares.far));
                    if first_lane(far, lanes) < lanes {
                        let near = simd.$not_above(lowest, simd.$splat(shares.near));
                        if first_lane(near, lanes) < lanes {
                            for (v, scores) in group.iter_mut().enumerate() {
                                // One after the other; infinity in the place of what is listed.
                                loop {
                                    let near = simd.$not_above(*scores, simd.$splat(shares.near));
                                    let lane = first_lane(near, lanes);
                                    if lane == lanes {
                                        break;
                                    }
                                    let of_lane: &mut [$t] = pulp::bytemuck::cast_slice_mut(
                                        std::slice::from_mut(scores),
                                    );
                                    let score =
                                        std::mem::replace(&mut of_lane[lane], Self::INFINITY);
                                    let id = place + v * lanes + lane;
                                    shares.list(id, score, asked.most, listed);
                                }
                            }
                        }
                        for &score in &*group {
                            let power = simd.$mul(simd.$sub(score, low), factor);
                            let power = super::exponential::$powers(simd, power);
                            total = simd.$add(total, power);
                        }
                    }
                    place += group.len() * lanes;
                }
                shares.others += f64::from(simd.$sum(total));
            }
        }
    };
}
share!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    sub_f32s,
    mul_f32s,
    add_f32s,
    min_f32s,
    less_than_f32s,
    select_f32s,
    less_than_or_equal_f32s,
    reduce_min_f32s,
    reduce_sum_f32s,
    powers_of_two_f32s
);
share!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    sub_f64s,
    mul_f64s,
    add_f64s,
    min_f64s,
    less_than_f64s,
    select_f64s,
    less_than_or_equal_f64s,
    reduce_min_f64s,
    reduce_sum_f64s,
    powers_of_two_f64s
);

#[cfg(test)]
mod tests;
