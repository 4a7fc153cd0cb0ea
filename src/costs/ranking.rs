//! The best components of a row: ranked by fast costs, decided by direct ones.

use super::Cost;
use crate::base::float::Float;
use crate::kernels::select;
use crate::rows::Rows;

#[derive(Debug, Default)]
pub(crate) struct Ranking<F> {
    kept: Vec<F>,
    ids: Vec<u32>,
    costs: Vec<F>,
}

impl<F: Float> Ranking<F> {
    /// The components that may be among the `width` best of row `i`, with their costs: ranked by the costs `approximate` (k) of
    /// [`Cost::all`], those within their rounding bound (E21) of the last place, computed directly.
    pub(crate) fn of(
        &mut self,
        cost: Cost<'_, F>,
        rows: &Rows<F>,
        i: usize,
        approximate: &[F],
        width: usize,
    ) -> (&[u32], &[F]) {
        let Self { kept, ids, costs } = self;
        let last = select::last_place(approximate, width, kept);
        let margin = cost.margin(rows, i, last);
        select::not_above(approximate, last + margin + margin, ids);
        let found = ids.len() >= width;
        if !found {
            // A family from outside gave NaN: all are computed directly.
            ids.clear();
            ids.extend(0..approximate.len() as u32);
        }
        if found && margin.to_f64() == 0.0 {
            // They are exact already.
            costs.clear();
            costs.extend(ids.iter().map(|&c| approximate[c as usize]));
        } else {
            cost.some(rows, i, ids, costs);
        }
        (ids, costs)
    }
}
