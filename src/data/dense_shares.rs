//! What all centres together say of dense rows: the nearest, and the sum over all that a log-density is made of.

use super::rows::{rounding, underflow};
use super::{Centres, Rows};
use crate::base::float::Float;
use crate::kernels::exponential::best_and_sum;
use crate::kernels::shares::{self, Asked, Group};
use crate::kernels::{distance, stride};

/// The rounding bound of an expanded distance may be so many times the one of a distance without cancellation.
const EXPANDED: f64 = 16.0;

/// So many components near a row are listed, or this share of all if that is more. Beyond it all are computed without
/// cancellation, which takes less time.
const LISTED: usize = 8;
const SHARE: usize = 64;
const MOST: usize = 1024;

/// A sum of exponentials that is lost beside 1, and is more than those that are 0 leave in it.
const LOST: f64 = 1e-30;

/// Rows that are searched together: their components near are listed.
const TOGETHER: usize = 96;

impl<F: Float> Rows<F> {
    /// [`Rows::together`]. Distances are as they were found fast, but for those that may be the least one, and those whose
    /// rounding (E21) would change the sum: these are computed directly.
    pub(super) fn sum_up(&self, centres: &Centres<F>, beta: f64, found: &mut Vec<(u32, f64, f64)>) {
        let (k, stride) = (centres.len(), stride(self.dim));
        let expanded = centres.expanded();
        let most = (k / SHARE).clamp(LISTED, MOST);
        let rounding = Rounding {
            dim: self.dim,
            largest_norm: expanded.largest_norm(),
            beta,
            k: k as f64,
            gap: shares::gap::<F>(k),
            is_relative: expanded.about().is_some(),
        };
        let (by_expansion, by_difference) =
            (rounding.by_expansion::<F>(), rounding.by_difference::<F>());
        let (mut ids, mut squared) = (vec![0; self.len()], vec![F::zero(); self.len()]);
        // Per row: the sum over those computed directly, and over the others from the lowest score on, and that score.
        let mut sums = vec![(1.0, 0.0, 0.0); self.len()];
        let (mut known, mut listed, mut near) = (Vec::new(), Vec::new(), Vec::new());
        let (mut direct, mut group) = (Direct::default(), Group::default());
        let all: Vec<usize> = (0..self.len()).collect();
        let mut open = Vec::new();
        // Until most rows turn out to have too many: then the first look is wasted.
        let mut by_expansion_first = true;
        for rows in all.chunks(TOGETHER) {
            // Once more where rounding is felt in too many: scores without cancellation.
            let mut left = rows.to_vec();
            for directly in [false, true] {
                if left.is_empty() || !directly && !by_expansion_first {
                    continue;
                }
                let reach: &dyn Fn(f64, f64) -> (f64, f64) = match directly {
                    true => &by_difference,
                    false => &by_expansion,
                };
                let asked = Asked {
                    beta,
                    most,
                    reach,
                    directly,
                };
                let of_rows = left.iter().map(|&i| &self.values[i * stride..][..stride]);
                let panels = expanded.panels(centres);
                shares::of_rows(
                    of_rows,
                    expanded.about(),
                    panels,
                    &asked,
                    (&mut known, &mut listed),
                    &mut group,
                );
                open.clear();
                for (&i, known) in left.iter().zip(&mut known) {
                    if !known.listed(beta, &listed, &mut near) {
                        open.push(i);
                        continue;
                    }
                    let least = known.low.to_f64() + known.norm.to_f64();
                    sums[i] = (1.0, known.others, least);
                    match near[..] {
                        [alone] => ids[i] = alone,
                        _ => (ids[i], sums[i].0) = direct.sum_up(self.row(i), centres, beta, &near),
                    }
                }
                by_expansion_first &= directly || 2 * open.len() <= left.len();
                std::mem::swap(&mut left, &mut open);
            }
            for &i in &left {
                near.clear();
                near.extend(0..k as u32);
                (ids[i], sums[i].0) = direct.sum_up(self.row(i), centres, beta, &near);
            }
        }
        distance::to_own(&self.values, centres.values(), stride, &ids, &mut squared);
        let rows = ids.into_iter().zip(squared).zip(sums);
        found.clear();
        found.extend(rows.map(|((label, best), (mut sum, others, least))| {
            let best = best.to_f64();
            if others > LOST && best < f64::INFINITY {
                // They are behind the lowest score, and that is not quite the best one.
                sum += others * (-beta * (least - best)).exp();
            }
            (label, best, sum)
        }));
    }
}

/// How far rounding is felt in the sums of a row.
#[derive(Clone, Copy)]
struct Rounding {
    dim: usize,
    largest_norm: f64,
    beta: f64,
    k: f64,
    gap: f64,
    /// Whether rows and centres are rounded differences to a point.
    is_relative: bool,
}

impl Rounding {
    /// Of scores by expansion: for a squared norm and the least squared distance, how much higher scores are that must be
    /// computed directly, and those that count.
    fn by_expansion<F: Float>(self) -> impl Fn(f64, f64) -> (f64, f64) {
        move |norm, squared| {
            let reach = squared + self.gap / self.beta;
            let margin = rounding::<F>(self.dim, norm, self.largest_norm, reach);
            let margin = margin.min(self.expanded::<F>(norm, squared));
            self.felt::<F>([margin; 2], squared)
        }
    }

    /// Bound on the rounding of an expanded distance to any centre, for the order in which it is computed here: a sum of
    /// `dim` products and a norm that is rounded once, and the squared norm of the row; and on that of the distance computed
    /// directly.
    fn expanded<F: Float>(&self, norm: f64, squared: f64) -> f64 {
        let (row, centre, d) = (norm.sqrt(), self.largest_norm.sqrt(), self.dim as f64);
        let products = (d + 4.0) * (centre + 2.0 * row) * centre;
        // A row is added up in lanes, and none is shorter than one number.
        let relative = 0.5 * F::EPSILON * (products + (d + 8.0) * (norm + squared));
        let sum = relative + underflow::<F>(self.dim);
        match self.is_relative {
            true => sum + self.of_differences::<F>(row + centre),
            false => sum,
        }
    }

    /// What the rounding of numbers as seen from a point adds to a squared distance of this root. No number is larger than
    /// the root of the largest norm and the distance together.
    fn of_differences<F: Float>(&self, distance: f64) -> f64 {
        let sizes = distance + 2.0 * self.largest_norm.sqrt();
        2.0 * F::EPSILON * sizes * (distance + F::EPSILON * sizes)
    }

    /// The same of sums of squared differences.
    fn by_difference<F: Float>(self) -> impl Fn(f64, f64) -> (f64, f64) {
        move |_, squared| {
            let reach = squared + self.gap / self.beta;
            let direct = (self.dim + 8) as f64 * F::EPSILON * reach + underflow::<F>(self.dim);
            let more = match self.is_relative {
                true => self.of_differences::<F>(reach.sqrt()),
                false => 0.0,
            };
            self.felt::<F>([direct + more, more], squared)
        }
    }

    /// Beyond which scores of this rounding bound may stay, where so much of it is more than that of a direct distance; and
    /// beyond which they are left out.
    fn felt<F: Float>(&self, [margin, more]: [f64; 2], squared: f64) -> (f64, f64) {
        // A rounding bound that is not much beside that of the distance computed directly.
        let few = EXPANDED * (self.dim + 8) as f64 * F::EPSILON;
        let enough = shares::tolerance::<F>().max(self.beta * few * squared);
        let felt = shares::felt_within(self.k, self.beta * more, enough).min(self.gap);
        (
            2.0 * margin + felt / self.beta,
            2.0 * margin + self.gap / self.beta,
        )
    }
}

/// Components that are computed directly, with scratch.
#[derive(Default)]
struct Direct<F> {
    squared: Vec<F>,
    exponents: Vec<f64>,
}

impl<F: Float> Direct<F> {
    /// The nearest of some centres, the first of equals, and the sum over them.
    fn sum_up(&mut self, row: &[F], centres: &Centres<F>, beta: f64, ids: &[u32]) -> (u32, f64) {
        distance::to_some(row, centres.values(), ids, &mut self.squared);
        let (label, _, sum) = best_and_sum(ids, &self.squared, beta, &mut self.exponents);
        (label, sum)
    }
}
