//! Fast costs rank, direct ones decide: where rounding could change which component is the best, costs are computed again (E21).

use crate::base::float::Float;
use crate::kernels::{select, soft};

/// The components that may be the best of a row, and their direct costs.
#[derive(Debug, Default)]
pub(crate) struct Ranking<F> {
    kept: Vec<F>,
    pub(crate) ids: Vec<u32>,
    pub(crate) costs: Vec<F>,
}

impl<F: Float> Ranking<F> {
    /// Finds the components that may be among the `width` best, by fast costs of all, whose rounding errors `margin` bounds up to a cost.
    pub(crate) fn among(
        &mut self,
        fast: &[F],
        width: usize,
        margin: impl FnOnce(F) -> F,
        direct: impl FnOnce(&[u32], &mut Vec<F>),
    ) {
        let last = select::last_place(fast, width, &mut self.kept);
        let margin = margin(last);
        select::not_above(fast, last + margin + margin, &mut self.ids);
        if self.ids.len() < width || margin.to_f64() != 0.0 {
            return self.decide(width, fast.len(), direct);
        }
        // They are exact already.
        self.costs.clear();
        self.costs
            .extend(self.ids.iter().map(|&c| fast[c as usize]));
    }

    /// Finds the components, of `k`, whose fast costs (padded) less their errors are not above `reach`: without their direct costs.
    pub(crate) fn reach(&mut self, fast: &[F], errors: &[F], k: usize, reach: F) {
        soft::not_above(fast, errors, reach, &mut self.ids);
        // Where all are reached the padding is, too.
        self.ids.retain(|&c| (c as usize) < k);
    }

    /// Computes the costs directly. All of `k` may be the best if there are fewer than `least`: a search knows none of several in one lane,
    /// and a family from outside may give NaN.
    pub(crate) fn decide(
        &mut self,
        least: usize,
        k: usize,
        direct: impl FnOnce(&[u32], &mut Vec<F>),
    ) {
        if self.ids.len() < least {
            self.ids.clear();
            self.ids.extend(0..k as u32);
        }
        direct(&self.ids, &mut self.costs);
    }

    /// Puts the direct costs in the places of fast ones.
    pub(crate) fn put(&self, costs: &mut [F]) {
        for (&c, &cost) in self.ids.iter().zip(&self.costs) {
            costs[c as usize] = cost;
        }
    }
}
