//! The best components of a row among candidates: scored directly, whatever found them.

use crate::base::float::Float;
use crate::kernels::select;
use crate::model::block::{Block, UNSET};
use crate::rows::{Rows, Scores, some_scores};

impl<F: Float> Block<F> {
    /// Sets the support of row `i` of the block to the best components among `ids` and the members of its last support.
    /// Repeated ones count once. Counts the evaluations.
    ///
    /// Fewer candidates than a support has members, or a row or a component that does not exist, is an error of the search,
    /// which the fit returns ([`Error::Stage`](crate::Error::Stage)). The first search has no last supports, so there `ids` needs
    /// as many different components as a support has members. If every support holds every component, all are scored,
    /// and `ids` is ignored.
    pub fn keep_best<M>(&mut self, i: usize, model: &M, rows: &Rows<F>, ids: &[u32])
    where
        M: Scores<F> + ?Sized,
    {
        let (k, width) = (self.components(), self.width());
        if i >= rows.len() || !self.has(i) {
            let (n, known) = (self.len(), rows.len());
            self.fault.get_or_insert_with(|| {
                format!("row {i} of a block of {n} does not exist among {known} rows: they are numbered from 0")
            });
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut scores = std::mem::take(&mut self.candidate_scores);
        candidates.clear();
        if self.is_full() {
            candidates.extend(0..k as u32);
        } else {
            candidates.extend(self.support(i).iter().filter(|c| **c != UNSET));
            candidates.extend(ids);
            candidates.sort_unstable();
            candidates.dedup();
        }
        let fault = match candidates.last() {
            Some(&c) if c as usize >= k => Some(format!(
                "component {c} of {k} does not exist: they are numbered from 0 to {}",
                k - 1
            )),
            _ if candidates.len() < width => Some(format!(
                "{} candidates for a support of {width}: at least {width} different ones are needed; \
                 the last support counts, but the first search has none",
                candidates.len()
            )),
            _ => None,
        };
        if let Some(what) = fault {
            let row = self.row(i);
            self.fault
                .get_or_insert_with(|| format!("row {row}: {what}"));
        } else {
            some_scores(model, rows, i, &candidates, &mut scores);
            self.count(candidates.len());
            let places = i * width..(i + 1) * width;
            if self.is_full() {
                self.scores_mut(i).copy_from_slice(&scores);
            } else {
                let support = &mut self.supports[places.clone()];
                select::smallest(&candidates, &scores, support, &mut self.scores[places]);
            }
        }
        (self.candidates, self.candidate_scores) = (candidates, scores);
    }
}

/// Scratch of [`best`].
#[derive(Debug, Default)]
pub(crate) struct Scratch<F> {
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
    scratch: &mut Scratch<F>,
    out_ids: &mut [u32],
    out_scores: &mut [F],
) {
    let margin = reachable(scorer, rows, i, approximate, out_ids.len(), scratch);
    if margin.to_f64() == 0.0 {
        // They are exact already.
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
    scratch: &mut Scratch<F>,
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

impl<F: Float> Scratch<F> {
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
