//! The best components of a row among candidates: scored directly, whatever found them.

use crate::base::float::Float;
use crate::kernels::select;
use crate::rows::{Rows, Scores, some_scores};

#[derive(Debug, Default)]
pub(crate) struct Ranking<F> {
    kept: Vec<F>,
    ids: Vec<u32>,
    scores: Vec<F>,
}

impl<F: Float> Ranking<F> {
    /// The components that may be among the `width` best of row `i`, with their scores: ranked by the approximate scores
    /// `approximate` (k), those within their rounding bound (E21) of the last place, scored directly.
    pub(crate) fn of<S: Scores<F> + ?Sized>(
        &mut self,
        scorer: &S,
        rows: &Rows<F>,
        i: usize,
        approximate: &[F],
        width: usize,
    ) -> (&[u32], &[F]) {
        let Self { kept, ids, scores } = self;
        let last = select::last_place(approximate, width, kept);
        let margin = scorer.margin(rows, i, last);
        select::not_above(approximate, last + margin + margin, ids);
        let found = ids.len() >= width;
        if !found {
            // A family from outside gave NaN for scores, or for their margin: all are computed directly.
            ids.clear();
            ids.extend(0..approximate.len() as u32);
        }
        if found && margin.to_f64() == 0.0 {
            // They are exact already.
            scores.clear();
            scores.extend(ids.iter().map(|&c| approximate[c as usize]));
        } else {
            some_scores(scorer, rows, i, ids, scores);
        }
        (ids, scores)
    }
}
