//! What all components together say of rows: the best one, and the sum over all that a log-density is made of.

use crate::base::float::Float;
use crate::data::{Centres, Rows, Scores, all_scores, some_scores};
use crate::kernels::exponential::{best_and_sum, sum_within};
use crate::kernels::{select, shares};

/// What all components together say of a row.
pub(crate) struct Together {
    /// The best of them; of equals, the first.
    pub(crate) label: u32,
    /// Its score.
    pub(crate) best: f64,
    /// $\sum_c e^{-\beta (s_c - s)}$ with $s$ the best score: at least 1, but for rounding.
    pub(crate) sum: f64,
}

/// So few components within reach of a row are all computed directly.
const FEW: usize = 8;

/// The best component of every row and the sum over all. Scores are as they were found fast, but for those that may be the
/// best one, and those whose rounding (E21) would change the sum: these are computed directly. `centres` are those that
/// scores are squared distances to.
pub(crate) fn of_rows<F: Float, S: Scores<F> + ?Sized>(
    scorer: &S,
    centres: Option<&Centres<F>>,
    beta: f64,
    rows: &Rows<F>,
) -> Vec<Together> {
    let mut sums = Vec::new();
    if centres.is_some_and(|centres| rows.together(centres, beta, &mut sums)) {
        let found = sums.into_iter();
        return found
            .map(|(label, best, sum)| Together { label, best, sum })
            .collect();
    }
    let mut scores = Vec::new();
    let mut search = Search::new(scorer, beta, rows);
    all_scores(scorer, rows, &mut scores);
    let of_rows = scores.chunks_exact_mut(scorer.components()).enumerate();
    of_rows.map(|(i, scores)| search.row(i, scores)).collect()
}

/// The search, with its scratch.
struct Search<'a, F: Float, S: ?Sized> {
    scorer: &'a S,
    beta: f64,
    /// All that are farther behind the best one, in nats, change the sum by less than its rounding.
    gap: f64,
    rows: &'a Rows<F>,
    ids: Vec<u32>,
    scores: Vec<F>,
    exponents: Vec<f64>,
}

impl<'a, F: Float, S: Scores<F> + ?Sized> Search<'a, F, S> {
    fn new(scorer: &'a S, beta: f64, rows: &'a Rows<F>) -> Self {
        Self {
            scorer,
            beta,
            gap: shares::gap::<F>(scorer.components()),
            rows,
            ids: Vec::new(),
            scores: Vec::new(),
            exponents: Vec::new(),
        }
    }

    /// A row whose scores are these.
    fn row(&mut self, i: usize, scores: &mut [F]) -> Together {
        let (k, beta, gap) = (self.scorer.components(), self.beta, self.gap);
        let lowest = select::minimum(scores);
        let least = lowest.to_f64();
        let reach = F::from_f64(least.max(0.0) + gap / beta);
        let margin = self.scorer.margin(self.rows, i, reach).to_f64();
        let reach = F::from_f64(least + 2.0 * margin + gap / beta);
        if margin == 0.0 && least.is_finite() {
            // They are exact already.
            let label = scores.iter().position(|s| *s == lowest).unwrap_or(0) as u32;
            let (best, mut sum) = (least, sum_within(scores, lowest, beta, reach));
            if scores.iter().any(|score| score.to_f64().is_nan()) {
                // A family that breaks its rules must not go unnoticed.
                sum = f64::NAN;
            }
            return Together { label, best, sum };
        }
        if select::few_not_above(scores, reach, FEW, &mut self.ids) {
            return self.listed(i);
        }
        let enough = shares::tolerance::<F>();
        let felt = shares::felt_within(k as f64, beta * margin, enough).min(gap);
        // Always those that may be the best one, and what has no score.
        let near = F::from_f64(least + 2.0 * margin + felt / beta);
        select::not_above(scores, near, &mut self.ids);

        let mut found = self.listed(i);
        if felt < gap && found.best < f64::INFINITY {
            for &id in &self.ids {
                scores[id as usize] = F::INFINITY;
            }
            let others = sum_within(scores, lowest, beta, reach);
            // They are behind the lowest of the fast scores, and that is not quite the best one.
            found.sum += others * (-beta * (least - found.best)).exp();
        }
        found
    }

    /// The best one and the sum over the components that are listed, in any order, by direct scores.
    fn listed(&mut self, i: usize) -> Together {
        some_scores(self.scorer, self.rows, i, &self.ids, &mut self.scores);
        let found = best_and_sum(&self.ids, &self.scores, self.beta, &mut self.exponents);
        let (label, best, sum) = found;
        Together { label, best, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::data::{Data, Dense, Frame};
    use ndarray::Array2;

    /// Sums in which few components have a share, some, and all; rounding of fast scores that is felt and that is not:
    /// beside direct scores.
    fn sums_are_those_of_direct_scores<F: Float>(x: Array2<f64>, k: usize, within: f64) {
        let x = x.mapv(F::from_f64);
        let n = x.nrows();
        let data = Dense::new(x.view()).unwrap();
        let frame = Frame::of(data.summary());
        let centres = Centres::enter(x.view().split_at(ndarray::Axis(0), k).0, &frame);
        let mut rows = Default::default();
        data.load(0..n, &frame, &mut rows).unwrap();
        let (ids, mut scores): (Vec<u32>, _) = ((0..k as u32).collect(), Vec::new());
        for beta in [1e-3, 1.0, 1e2, 1e3, 1e4, 1e6, 1e9, 1e12] {
            let relative = of_rows(&centres, Some(&centres), beta, &rows);
            let whole = of_rows(&centres, None, beta, &rows);
            for (i, (a, b)) in relative.iter().zip(&whole).enumerate() {
                rows.distances_to(i, &centres, &ids, &mut scores);
                let scores: Vec<f64> = scores.iter().map(|s| s.to_f64()).collect();
                let least = scores.iter().fold(f64::INFINITY, |least, s| least.min(*s));
                let label = scores.iter().position(|s| *s == least).unwrap();
                let sum: f64 = scores.iter().map(|s| (-beta * (s - least)).exp()).sum();
                for found in [a, b] {
                    assert_eq!((found.label as usize, found.best), (label, least));
                    let off = (found.sum - sum).abs() / sum;
                    // The direct scores are rounded as well.
                    let rounded = 4.0 * F::EPSILON * beta * least;
                    assert!(off <= within + rounded, "{beta:e}: {off:e} {least}");
                }
            }
        }
    }

    /// Two far groups, one cloud, a cloud far from 0, and copies.
    fn data(case: usize) -> (Array2<f64>, usize) {
        let mut rng = Rng::from_seed(9);
        let (n, d, k) = [(100, 5, 60), (150, 20, 90), (150, 9, 90), (130, 3, 70)][case];
        let x = Array2::from_shape_fn((n, d), |(n, _)| match case {
            0 => (if n % 2 == 0 { 1.0 } else { -1.0 }) + 1e-3 * rng.normal(),
            1 => rng.normal(),
            2 => 1e6 + rng.normal(),
            _ => ((n % 10) as f64).sin(),
        });
        (x, k)
    }

    #[test]
    fn sums_over_all_components_are_exact() {
        for case in 0..4 {
            let (x, k) = data(case);
            sums_are_those_of_direct_scores::<f32>(x.clone(), k, 2e-6);
            sums_are_those_of_direct_scores::<f64>(x, k, 1e-13);
        }
    }
}
