//! How good components are for rows: what a search ranks by.

use super::{Centres, Linear, Rows};
use crate::base::float::Float;

/// Something that scores rows under its components; the lower, the better the component.
///
/// Law: [`all`](Self::all) agrees with [`some`](Self::some) to within [`margin`](Self::margin), to the last bit where
/// that is 0, for every component that can have a share in the posterior.
pub trait Scores<F: Float>: Sync {
    /// Number of components, k.
    fn components(&self) -> usize;
    /// Scores of all rows under all components, fast, good to the margin: (len, k) into `out`. By default they are those
    /// that [`some`](Self::some) computes directly.
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        direct(self, rows, out);
    }
    /// Bound on the rounding error of the scores of row `i` in [`all`](Self::all),
    /// for components whose score could be as low as `reach`. The default, 0, is right where those are computed directly:
    /// whoever gives a faster one gives its margin too.
    fn margin(&self, _rows: &Rows<F>, _i: usize, _reach: F) -> F {
        F::from_f64(0.0)
    }
    /// Scores that are products: where rows take them so, they take the place of [`all`](Self::all) in searches for all
    /// components. `None` by default.
    #[doc(hidden)]
    fn linear(&self) -> Option<&Linear<F>> {
        None
    }
    /// Scores of row `i` under the components `ids`, computed directly.
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>);
    /// The best component of every row and its score, as [`some`](Self::some) finds it: the lowest index where several are
    /// as good. `false`, and nothing done, where that is no faster than to go through [`all`](Self::all).
    fn best(&self, _rows: &Rows<F>, _ids: &mut [u32], _scores: &mut [F]) -> bool {
        false
    }
}

/// Scores as [`all`](Scores::all) computes them, and directly where a family gives another number of them.
pub(crate) fn all_scores<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    out: &mut Vec<F>,
) {
    scorer.all(rows, out);
    if out.len() != rows.len() * scorer.components() {
        direct(scorer, rows, out);
    }
}

fn direct<F: Float, S: Scores<F> + ?Sized>(scorer: &S, rows: &Rows<F>, out: &mut Vec<F>) {
    let ids: Vec<u32> = (0..scorer.components() as u32).collect();
    let mut scores = Vec::new();
    out.clear();
    for i in 0..rows.len() {
        some_scores(scorer, rows, i, &ids, &mut scores);
        out.extend_from_slice(&scores);
    }
}

/// Scores as [`some`](Scores::some) computes them, NaN where a family gives too few: then a row has none, which is an error.
#[inline(always)]
pub(crate) fn some_scores<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    rows: &Rows<F>,
    i: usize,
    ids: &[u32],
    out: &mut Vec<F>,
) {
    scorer.some(rows, i, ids, out);
    if out.len() != ids.len() {
        out.clear();
        out.resize(ids.len(), F::from_f64(f64::NAN));
    }
}

impl<F: Float> Scores<F> for Centres<F> {
    fn components(&self) -> usize {
        self.len()
    }
    fn all(&self, rows: &Rows<F>, out: &mut Vec<F>) {
        rows.distances(self, out);
    }
    fn margin(&self, rows: &Rows<F>, i: usize, reach: F) -> F {
        rows.margin(i, self, reach)
    }
    fn some(&self, rows: &Rows<F>, i: usize, ids: &[u32], out: &mut Vec<F>) {
        rows.distances_to(i, self, ids, out);
    }
    fn best(&self, rows: &Rows<F>, ids: &mut [u32], scores: &mut [F]) -> bool {
        rows.nearest(self, ids, scores)
    }
}
