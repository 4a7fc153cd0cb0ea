//! The best components of a row among candidates: scored directly, whatever found them.

use crate::base::float::Float;
use crate::kernels::select;
use crate::rows::{Rows, Scores, some_scores};

/// Scratch of [`best`].
#[derive(Debug, Default)]
pub(crate) struct Ranking<F> {
    kept: Vec<F>,
    ids: Vec<u32>,
    scores: Vec<F>,
}

/// The best components of row `i` among all, exactly: ranked by the approximate scores `approximate`
/// (k), then every component within their rounding bound (E21) of the last place is scored directly.
pub(crate) fn best<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    i: usize,
    approximate: &[F],
    scratch: &mut Ranking<F>,
    out_ids: &mut [u32],
    out_scores: &mut [F],
) {
    let margin = reachable(scorer, rows, i, approximate, out_ids.len(), scratch);
    if margin.to_f64() == 0.0 {
        // The scores are exact already.
        scratch.scores.clear();
        let exact = scratch.ids.iter().map(|&c| approximate[c as usize]);
        scratch.scores.extend(exact);
    } else {
        some_scores(scorer, rows, i, &scratch.ids, &mut scratch.scores);
    }
    select::smallest(&scratch.ids, &scratch.scores, out_ids, out_scores);
}

/// Finds the components that may be among the `width` best of row `i`: those within the rounding bound (E21) of the last
/// place, by approximate scores (k). Returns the bound.
fn reachable<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    i: usize,
    approximate: &[F],
    width: usize,
    scratch: &mut Ranking<F>,
) -> F {
    let last = select::last_place(approximate, width, &mut scratch.kept);
    let margin = scorer.margin(rows, i, last);
    select::not_above(approximate, last + margin + margin, &mut scratch.ids);
    if scratch.ids.len() < width {
        // A family from outside gave NaN for scores, or for their margin: all are computed directly.
        scratch.ids.clear();
        scratch.ids.extend(0..approximate.len() as u32);
        return F::INFINITY;
    }
    margin
}

impl<F: Float> Ranking<F> {
    /// The components that may be among the `width` best of row `i`, as approximate scores (k) and their rounding tell, with
    /// their scores.
    pub(crate) fn of<S: Scores<F> + ?Sized>(
        &mut self,
        scorer: &S,
        rows: &Rows<F>,
        i: usize,
        approximate: &[F],
        width: usize,
    ) -> (&[u32], &[F]) {
        let _ = reachable(scorer, rows, i, approximate, width, self);
        some_scores(scorer, rows, i, &self.ids, &mut self.scores);
        (&self.ids, &self.scores)
    }
}
