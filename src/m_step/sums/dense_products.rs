//! Weighted sums of dense rows with a share for every component, as matrix products (E5, E46).

use super::moments::{Moments, OfKind};
use crate::base::float::Float;
use crate::base::simd::LANES;
use crate::kernels::weighted::{self, Weighted};
use crate::kernels::{distance, features, soft, stride};
use crate::model::block::Block;
use crate::rows::{Centres, Frame, Part, Rows, Terms};
use std::ops::Range;

/// Rows whose sums stay in the type of the data, before they are added up in `f64`.
const ROWS: usize = 128;

/// Weights that differ more than this have no sums in the type of the data.
const WEIGHTS_APART: f64 = 1e10;

impl<R: Float> Rows<R> {
    /// Sum of squared distances of some rows to a centre, with their shares.
    fn squares(&self, rows: Range<usize>, centre: &[R], share: impl Fn(usize) -> f64) -> f64 {
        let shares = rows
            .map(|i| (i, share(i)))
            .filter(|(_, share)| *share > 0.0);
        let squares =
            shares.map(|(i, share)| share * distance::between(self.row(i), centre).to_f64());
        squares.sum()
    }

    /// Adds all rows, in the type of the responsibilities. `false`, and nothing done, where sums of
    /// products would not be exact enough.
    pub(super) fn sum_products<B: Float>(
        &self,
        block: &Block<B>,
        terms: &Terms,
        centres: &Centres<R>,
        moments: &mut Moments,
    ) -> bool {
        let (least, most) = self
            .weights
            .iter()
            .filter(|w| **w > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(least, most), &w| {
                (least.min(w), most.max(w))
            });
        if most == 0.0 {
            return true;
        }
        if most > WEIGHTS_APART * least || B::from_f64(most) <= B::zero() {
            return false;
        }
        let k = block.components();
        let dim = self.dim;
        // Whitened rows may leave the range of that type.
        let far = |z: &R| z.to_f64().abs() > Frame::<B>::most().to_f64();
        if R::EPSILON < B::EPSILON
            && (0..self.len()).any(|i| self.weights[i] > 0.0 && self.row(i).iter().any(far))
        {
            return false;
        }
        // Sums of squares in the type of the data save half of the time where few components need more digits.
        let by_column = moments.kind.of_component(dim) > 1;
        let few = 8 * terms.far.len() <= k;
        let narrow_squares = match &mut moments.of_kind {
            OfKind::Narrow(narrow) if few && B::EPSILON > f64::EPSILON => {
                *narrow = true;
                true
            }
            _ => false,
        };
        let one_by_one = if narrow_squares {
            &terms.far
        } else {
            &terms.tight
        };
        // Components far from the point that all others are seen from: directly.
        for (i, weight) in self.weights.iter().enumerate() {
            let shares = block.responsibilities(i);
            for &c in one_by_one {
                let share = weight * shares[c as usize].to_f64();
                if share > 0.0 {
                    moments.add_row(c as usize, share, self.row(i), centres);
                }
            }
        }
        if one_by_one.len() == k {
            return true;
        }
        let places = block.stride;
        let width = stride(dim);
        let expanded = centres.expanded();
        let origin = vec![R::zero(); width];
        let about = expanded.about().unwrap_or(&origin);
        let mut mass = Vec::new();
        let mut from_costs = Vec::new();
        let per_row = width.next_multiple_of(LANES);
        moments.meet(0..k);
        let by_component = moments.kind.of_component(dim) == 1;
        let Moments {
            mass: masses,
            places: place_of,
            first: firsts,
            second: seconds,
            ..
        } = moments;
        let mut narrow = (Vec::new(), Vec::new());
        let mut wide = (Vec::new(), Vec::new());
        for first in (0..self.weights.len()).step_by(ROWS) {
            let end = self.weights.len().min(first + ROWS);
            let weights = &self.weights[first..end];
            let costs = if by_component {
                &block.costs[first * places..end * places]
            } else {
                &[]
            };
            let shares = &block.responsibilities[first * places..end * places + weighted::SPARE];
            soft::totals(shares, costs, places, weights, &mut mass, &mut from_costs);
            mass.truncate(k);
            for &c in one_by_one {
                mass[c as usize] = 0.0;
            }
            for (c, &mass) in mass.iter().enumerate() {
                masses[c] += mass;
                if mass > 0.0
                    && by_component
                    && let Some(&Part { factor, added }) = terms.parts.get(c)
                {
                    let known = added * mass;
                    let scaled = from_costs[c] - added * mass;
                    // Where the constant is nearly all of the costs, their digits are its digits.
                    let squared = if scaled > B::EPSILON.sqrt() * known.abs() {
                        scaled / factor
                    } else {
                        self.squares(first..end, centres.row(c), |i| {
                            weights[i - first] * block.responsibilities(i)[c].to_f64()
                        })
                    };
                    seconds[c] += squared;
                }
            }
            let rows = &self.values[first * width..end * width];
            macro_rules! add {
                ($shares:expr, $rows:expr, $scale:expr) => {
                    weighted::add(Weighted {
                        shares: $shares,
                        places,
                        rows: $rows,
                        stride: per_row,
                        scale: $scale,
                        mass: &mass,
                        from: expanded.normed(centres).rows,
                        columns: width,
                        place_of,
                        first: firsts,
                        second: if by_column { seconds } else { &mut [] },
                    })
                };
            }
            if !by_column {
                let (of_rows, _) = &mut narrow;
                let scales = weights.iter().map(|w| B::from_f64(w / most));
                features::relative_and_scaled(rows, about, scales, per_row, of_rows);
                add!(shares, of_rows, most);
            } else if narrow_squares {
                let (of_rows, of_shares) = &mut narrow;
                let scales = std::iter::repeat(B::one());
                features::relative_and_scaled(rows, about, scales, per_row, of_rows);
                features::times(shares, weights, 1.0 / most, places, of_shares);
                add!(of_shares, of_rows, most);
            } else {
                // Variances are differences of these sums: they need all digits of `f64`.
                let (of_rows, of_shares) = &mut wide;
                let scales = std::iter::repeat(1.0);
                features::relative_and_scaled(rows, about, scales, per_row, of_rows);
                features::times(shares, weights, 1.0, places, of_shares);
                add!(of_shares, of_rows, 1.0);
            }
        }
        true
    }
}
